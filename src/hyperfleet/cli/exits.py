"""Every exit code of the command line."""

from typing import Final

OK: Final = 0
FALSE: Final = 1  # the answer is no: an expression is false, a policy has problems
USAGE: Final = 2  # wrong arguments, input that cannot be read, output that cannot be written
UNAVAILABLE: Final = 69  # something outside is not there: the database, the address to listen at; trying again may help
INTERRUPTED: Final = 130  # Ctrl-C, as shells say it
UNREAD: Final = (
    141  # whoever read our output stopped, as shells say it of a closed pipe; nothing is known of the answer
)
