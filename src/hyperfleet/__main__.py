"""The command `hyperfleet`, and `python -m hyperfleet`.

The package can be installed for its libraries alone. Then the command lacks packages, and says what to install.
"""

import sys

from hyperfleet.errors import MissingPackage

_UNAVAILABLE = 69  # as in `cli.exits`, which cannot be imported without click


def main() -> None:
    """Run the command line of this process."""
    try:
        from hyperfleet.cli import main as run
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "hyperfleet"):  # a bug of ours
            raise
        print(f"Error: {MissingPackage(package)}", file=sys.stderr)
        sys.exit(_UNAVAILABLE)
    run()


if __name__ == "__main__":
    main()
