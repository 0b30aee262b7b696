"""Every exit code of the command line, and what it means wherever a command says nothing more exact."""

from collections.abc import Mapping
from typing import Final

OK: Final = 0
FALSE: Final = 1  # the answer is no: an expression is false, a policy has problems, something is not ready
USAGE: Final = 2  # wrong arguments, input that cannot be read, output that cannot be written
FAILED: Final = 3  # what was waited for will not be
NOT_FOUND: Final = 4  # there is no such thing, or no longer
REFUSED: Final = 5  # the server understood and will not do it
UNAVAILABLE: Final = 69  # something outside is not there: the database, the server, the address to listen at
INTERNAL: Final = 70  # a mistake of ours
DENIED: Final = 77  # no token, a wrong one, or one that may not do this
TIMEOUT: Final = 124  # time is up, as timeout(1) says it
INTERRUPTED: Final = 130  # Ctrl-C, as shells say it
UNREAD: Final = (
    141  # whoever read our output stopped, as shells say it of a closed pipe; nothing is known of the answer
)

MEANINGS: Final[Mapping[int, str]] = {
    OK: "done, or the answer is yes",
    FALSE: "the answer is no",
    USAGE: "wrong arguments, or input that cannot be read",
    FAILED: "what was waited for will not be",
    NOT_FOUND: "there is no such resource, or no longer",
    REFUSED: "the server refused: it is invalid, or in conflict with what is there",
    UNAVAILABLE: "the server or the database cannot be reached, or cannot answer now; trying again may help",
    INTERNAL: "a mistake of this program or of the server",
    DENIED: "the token is missing, wrong, or not allowed to do this",
    TIMEOUT: "time is up",
    INTERRUPTED: "interrupted (Ctrl-C)",
    UNREAD: "whoever read the output stopped reading",
}
