"""Regular expressions with the original's syntax and linear time, by RE2.

Called by `matches` and by the checker, which refuses a bad constant pattern. RE2 says the same as the original
does about a bad pattern, in other words; `_REASONS` translates. The cost of a pattern is the size of the machine that
RE2 makes of it, whether or not it is cached: results must not depend on what ran before.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import re2

from hyperfleet.expr.faults import EvaluationFault

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST = 4_000
"""Characters of a pattern; RE2 needs 40 ms for the worst pattern of twice the length."""

ALLOWANCE = 30_000
"""What all constant patterns of an expression may cost together; a unit is about a microsecond."""

REFUSAL = 3_000
"""What it costs to find out that a pattern is too large."""

_BASE = 50  # what the smallest pattern costs

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False  # it would write to stderr
_OPTIONS.max_mem = 512 << 10  # a sixteenth of RE2's default: enough for 25,000 instructions
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


class Pattern(NamedTuple):
    """A compiled regular expression: whether a text contains a match, and the instructions of its machine."""

    search: Callable[[str], bool]
    size: int

    def price(self) -> int:
        """Return what compiling it costs, in units of `ALLOWANCE`."""
        return _BASE + self.size

    def steps(self, length: int) -> int:
        """Return what a search in a text costs, in steps of work: at worst the whole machine runs per character."""
        return 1 + length * (128 + self.size) // 1024


@lru_cache(maxsize=128)  # as many as RE2's wrapper keeps anyway
def compile_pattern(pattern: str) -> Pattern:
    """Compile a regular expression."""
    if len(pattern) > LONGEST:
        raise PatternError("error parsing regexp: expression too large")
    if _SINGLE_BYTE.search(pattern):
        raise PatternError("error parsing regexp: invalid escape sequence: `\\C`")
    try:
        machine = re2.compile(str.encode(pattern, "utf-8", "surrogateescape"), _OPTIONS)
    except UnicodeEncodeError:
        raise PatternError("error parsing regexp: invalid UTF-8") from None
    except re2.error as error:
        raise PatternError(_explain(error)) from None
    search = machine.search
    # The class's own method: a host's subclass of str may have another.
    return Pattern(lambda text: search(str.encode(text, "utf-8", "surrogateescape")) is not None, machine.programsize)


def _explain(error: re2.error) -> str:
    """Describe the error of a pattern with the original's message."""
    reason, colon, fragment = error.args[0].decode("utf-8", "replace").partition(": ")
    shown = f": `{fragment}`" if colon else ": ``" if reason == "trailing \\" else ""
    return f"error parsing regexp: {_REASONS.get(reason, reason)}{shown}"


def load_pattern(pattern: str) -> Pattern:
    """Compile a regular expression that only run time knows."""
    try:
        return compile_pattern(pattern)
    except PatternError as error:
        raise EvaluationFault(str(error)) from None
