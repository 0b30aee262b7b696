"""`python -m bench [name …]`: run all measurements, or some."""

from __future__ import annotations

import importlib
import sys

NAMES = ("model", "aggregate", "expr")


def main() -> None:
    """Run the named measurements in turn."""
    for name in sys.argv[1:] or NAMES:
        if name not in NAMES:
            sys.exit(f"unknown measurement {name}; known are {', '.join(NAMES)}")
        print(f"\n## {name}\n")
        importlib.import_module(f"bench.{name}").main()


if __name__ == "__main__":
    main()
