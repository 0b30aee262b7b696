"""Regular expressions with the original's syntax and linear time, by RE2.

Called by `matches` and by the checker, which refuses a bad constant pattern. RE2 says the same as the original
does about a bad pattern, in other words; `_REASONS` translates.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import re2

from hyperfleet.expr.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST = 10_000
"""Characters of a pattern; RE2 bounds time and memory of a match by the size of the pattern."""

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False  # it would write to stderr
_OPTIONS.max_mem = 8 << 20  # RE2's own default, stated because it is the memory budget of a pattern
_OPTIONS.never_capture = True  # we only ask whether it matches

_REASONS = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "trailing \\": "trailing backslash at end of expression",
    "invalid named capture group": "invalid named capture",
    "pattern too large - compile failed": "expression too large",
}

# RE2 knows an escape for half a character, the original does not.
_SINGLE_BYTE = re.compile(r"(?<!\\)(?:\\\\)*\\C")


class PatternError(ValueError):
    """A pattern is no regular expression; `str()` is the original's text."""


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> Callable[[str], bool]:
    """Return a function that tells whether a text contains a match of `pattern`."""
    if len(pattern) > LONGEST:
        raise PatternError("error parsing regexp: expression too large")
    if _SINGLE_BYTE.search(pattern):
        raise PatternError("error parsing regexp: invalid escape sequence: `\\C`")
    try:
        search = re2.compile(pattern.encode("utf-8", "surrogateescape"), _OPTIONS).search
    except re2.error as error:
        raise PatternError(_explain(error)) from None
    return lambda text: search(text.encode("utf-8", "surrogateescape")) is not None


def _explain(error: re2.error) -> str:
    """Say what is wrong with a pattern in the original's words."""
    reason, colon, fragment = error.args[0].decode("utf-8", "replace").partition(": ")
    shown = f": `{fragment}`" if colon else ": ``" if reason == "trailing \\" else ""
    return f"error parsing regexp: {_REASONS.get(reason, reason)}{shown}"


def matches(text: str, pattern: str) -> bool:
    """Tell whether `text` contains a match of `pattern`."""
    try:
        return compile_pattern(pattern)(text)
    except PatternError as error:
        raise Fault(str(error)) from None
