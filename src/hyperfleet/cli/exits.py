"""Every exit code of the command line."""

from typing import Final

OK: Final = 0
FALSE: Final = 1  # the answer is no: an expression is false, a policy has problems
USAGE: Final = 2  # wrong arguments, unreadable input
INTERRUPTED: Final = 130  # Ctrl-C, as shells say it
