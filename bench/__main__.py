"""`python -m bench [name …]`: run all measurements of the core, or some.

`python -m bench server`, or another of `SERVERS`, measures a server; it has options of its own.
"""

from __future__ import annotations

import importlib
import sys

NAMES = ("model", "aggregate", "expr")
SERVERS = ("server", "simulate", "tracing", "watch", "cli", "hostile", "events", "sentinel")  # most take minutes


def main() -> None:
    """Run the named measurements in turn."""
    given = sys.argv[1:]
    if given and given[0] in SERVERS:
        importlib.import_module(f"bench.{given[0]}").main(given[1:])
        return
    for name in given or NAMES:
        if name not in NAMES:
            sys.exit(f"unknown measurement {name}; known are {', '.join((*NAMES, *SERVERS))}")
        print(f"\n## {name}\n")
        importlib.import_module(f"bench.{name}").main()


if __name__ == "__main__":
    main()
