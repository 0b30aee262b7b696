"""Every exit code of the command line, and its general meaning; commands may be more specific."""

from collections.abc import Mapping
from typing import Final

OK: Final = 0
FALSE: Final = 1  # the answer is no: an expression is false, a policy has problems, something is not ready
USAGE: Final = 2  # wrong arguments, input that cannot be read, output that cannot be written
FAILED: Final = 3  # a wait that failed
NOT_FOUND: Final = 4  # it does not exist, or no longer
REFUSED: Final = 5  # the server understood the request and refused it
UNAVAILABLE: Final = 69  # something outside is not available: the database, the server, the address to listen on
INTERNAL: Final = 70  # a bug
DENIED: Final = 77  # no token, a wrong one, or one without permission
TIMEOUT: Final = 124  # timeout, like timeout(1)
INTERRUPTED: Final = 130  # Ctrl-C, as in shells
UNREAD: Final = 141  # stdout was closed, as in shells for a closed pipe; says nothing about the answer

MEANINGS: Final[Mapping[int, str]] = {
    OK: "done, or the answer is yes",
    FALSE: "the answer is no",
    USAGE: "wrong arguments, or input that cannot be read",
    FAILED: "the wait failed: the awaited state will not be reached",
    NOT_FOUND: "the resource does not exist, or no longer",
    REFUSED: "the server refused: the request is invalid, or conflicts with the present state",
    UNAVAILABLE: "the server or the database cannot be reached, or cannot answer now; trying again may help",
    INTERNAL: "a bug in this program or in the server",
    DENIED: "the token is missing, wrong, or lacks permission",
    TIMEOUT: "timeout",
    INTERRUPTED: "interrupted (Ctrl-C)",
    UNREAD: "the output was closed before everything was written",
}
