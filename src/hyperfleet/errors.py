"""Every error this code raises on purpose, drawn as a tree.

    HyperFleetError
    ├── ExprError            an expression does not parse, check or evaluate
    │   ├── ExprSyntaxError  … does not parse
    │   ├── ExprTypeError    … does not type-check
    │   └── ExprRuntimeError … fails on the given values
    │       └── ExprBudgetError  … would cost more than it may
    ├── DocumentError        a YAML document is not what it should be; carries every problem with its place
    │   ├── PolicyError      … and it was to be a policy
    │   └── SettingsError    … and it was to be our settings
    ├── StoreError           the store did not do what it was asked to
    │   ├── StoreUnavailable … it cannot be reached; a write under way may or may not have happened
    │   ├── Contended        … another writer was in the way; the same call may succeed if repeated
    │   ├── Forgotten        … what was asked for was there once, and has been pruned since
    │   └── SchemaMismatch   … its tables are not those of this version
    ├── Overloaded           more was asked of us than we can do now
    │   └── TooManyWatches   … by one caller, who has a full share already
    └── MergeError           conditions cannot be merged as asked

An error is for a broken promise. What can be expected (a discarded report, a bad report body) is a value.
`code` is stable: programs may depend on it, the text is for people.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:  # the command line imports this at every start, and should not have to load msgspec for it
    from collections.abc import Sequence

    from hyperfleet.document_problem import Problem


class HyperFleetError(Exception):
    """The root of the tree; callers at the edge catch this and nothing wider."""

    code: ClassVar[str] = "Error"


class ExprError(HyperFleetError):
    """One or more faults of an expression, each placed in its source.

    `str()` is the original implementation's text: `message (line:column)`, then the source line and a caret.
    """

    code: ClassVar[str] = "ExpressionError"

    def __init__(self, message: str, *, line: int = 0, column: int = 0, snippet: str = "") -> None:
        """Place `message` at `line` and `column` (both from 1; 0 means: nowhere in particular)."""
        self.message = message
        self.line = line
        self.column = column
        self.snippet = snippet
        self.others: tuple[ExprError, ...] = ()
        place = f" ({line}:{column}){snippet}" if line else ""
        super().__init__(message + place)


class ExprSyntaxError(ExprError):
    """The source is not an expression."""

    code: ClassVar[str] = "ExpressionSyntax"


class ExprTypeError(ExprError):
    """The expression does not fit its environment or the expected result."""

    code: ClassVar[str] = "ExpressionType"


class ExprRuntimeError(ExprError):
    """The expression failed on these values."""

    code: ClassVar[str] = "ExpressionRuntime"


class ExprBudgetError(ExprRuntimeError):
    """The expression would take more time or memory than it may."""

    code: ClassVar[str] = "ExpressionBudget"


class DocumentError(HyperFleetError):
    """A document has problems; all of them are listed, never only the first."""

    code: ClassVar[str] = "InvalidDocument"

    def __init__(self, problems: Sequence[Problem]) -> None:
        """Carry `problems`, in the order of their places."""
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class PolicyError(DocumentError):
    """A policy has problems, so nothing that depends on it may start."""

    code: ClassVar[str] = "InvalidPolicy"


class SettingsError(DocumentError):
    """Settings have problems, so the server does not start."""

    code: ClassVar[str] = "InvalidSettings"


class StoreError(HyperFleetError):
    """The store did not do what it was asked to."""

    code: ClassVar[str] = "StoreError"


class StoreUnavailable(StoreError):  # noqa: N818  # these name states, not mistakes
    """The store cannot be reached. A write that was under way may or may not have happened."""

    code: ClassVar[str] = "StoreUnavailable"


class Contended(StoreError):  # noqa: N818
    """Another writer was in the way; nothing was written and the same call may succeed if repeated."""

    code: ClassVar[str] = "Contended"


class Forgotten(StoreError):  # noqa: N818
    """What was asked for was there once, and has been pruned since."""

    code: ClassVar[str] = "Forgotten"


class SchemaMismatch(StoreError):  # noqa: N818
    """The tables are not those of this version of the program."""

    code: ClassVar[str] = "SchemaMismatch"


class Overloaded(HyperFleetError):  # noqa: N818
    """A queue is full: more was asked of us than we can do now."""

    code: ClassVar[str] = "Overloaded"


class TooManyWatches(Overloaded):
    """One caller watches more than one caller may; others are not concerned."""

    code: ClassVar[str] = "TooManyWatches"


class MergeError(HyperFleetError):
    """Conditions cannot be merged as asked (nothing to merge, a type given twice, …)."""

    code: ClassVar[str] = "CannotMerge"
