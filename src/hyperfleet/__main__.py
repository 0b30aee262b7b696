"""`python -m hyperfleet` is the command `hyperfleet`."""

from hyperfleet.cli import main

main()
