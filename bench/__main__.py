"""`python -m bench [name …]`: run all measurements of the core, or some; `python -m bench server` measures a server."""

from __future__ import annotations

import importlib
import sys

NAMES = ("model", "aggregate", "expr")
SERVER = "server"  # takes minutes and has options of its own: see `bench/server.py`


def main() -> None:
    """Run the named measurements in turn."""
    given = sys.argv[1:]
    if SERVER in given:
        given.remove(SERVER)
        importlib.import_module("bench.server").main(given)
        return
    for name in given or NAMES:
        if name not in NAMES:
            sys.exit(f"unknown measurement {name}; known are {', '.join((*NAMES, SERVER))}")
        print(f"\n## {name}\n")
        importlib.import_module(f"bench.{name}").main()


if __name__ == "__main__":
    main()
