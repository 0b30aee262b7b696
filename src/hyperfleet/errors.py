"""Every error this code raises on purpose, drawn as a tree.

    HyperFleetError
    ├── ExprError            an expression does not parse, check or evaluate
    │   ├── ExprSyntaxError  … does not parse
    │   ├── ExprTypeError    … does not type-check
    │   └── ExprRuntimeError … fails on the given values
    │       └── ExprBudgetError  … exceeds its limit of time or memory
    ├── DocumentError        a YAML document is not what it should be; carries every problem with its place
    │   ├── PolicyError      … a policy
    │   └── SettingsError    … the server's settings
    ├── StoreError           the store could not do what was asked
    │   ├── StoreUnavailable … it cannot be reached; a write in progress may or may not have happened
    │   ├── Contended        … the write conflicted with another one; a retry may succeed
    │   ├── HistoryPruned    … the requested history has been deleted by retention
    │   └── SchemaMismatch   … its tables are of another version
    ├── PolicyTooExpensive   a policy takes more work than a simulation may
    ├── Overloaded           there is more work than the server can do now
    │   └── TooManyWatches   … one caller has too many watches
    ├── MergeError           conditions cannot be merged as asked
    └── MissingPackage       the command needs a package that is not installed

An expected result (a discarded report, an invalid report body) is a value, not an error.
`code` is stable: programs may depend on it. The text is for people and may change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:  # the command line imports this at every start, and should not have to load msgspec for it
    from collections.abc import Sequence

    from hyperfleet.document_problem import DocumentProblem


class HyperFleetError(Exception):
    """The root of the tree. Code at the edge catches this and nothing wider."""

    code: ClassVar[str] = "Error"


_LONGEST_MESSAGE: Final = 190  # characters: a message may quote a value, and values may be very long
_SHOWN_END: Final = 40  # of them from the end


def shorten_message(text: str) -> str:
    """Return a message of bounded length that can be encoded: halves of characters are replaced."""
    if len(text) > _LONGEST_MESSAGE:
        text = f"{text[: _LONGEST_MESSAGE - _SHOWN_END - 1]}…{text[-_SHOWN_END:]}"
    return _encodable(text)


def _encodable(text: str) -> str:
    """Replace halves of characters."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class ExprError(HyperFleetError):
    """One or more faults in an expression, each with its place in the source.

    `str()` is the original implementation's text: `message (line:column)`, then the source line and a caret. It has
    at most 500 characters, whatever the source and the values are.
    """

    code: ClassVar[str] = "ExpressionError"

    def __init__(self, message: str, *, line: int = 0, column: int = 0, snippet: str = "") -> None:
        """Place `message` at `line` and `column` (both from 1; 0: unknown)."""
        self.message = shorten_message(message)
        self.line = line
        self.column = column
        self.snippet = _encodable(snippet)
        self.others: tuple[ExprError, ...] = ()
        place = f" ({line}:{column}){self.snippet}" if line else ""
        super().__init__(self.message + place)


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
    """The expression exceeded its limit of time or memory."""

    code: ClassVar[str] = "ExpressionBudget"


class DocumentError(HyperFleetError):
    """A document has problems; all of them are listed, never only the first."""

    code: ClassVar[str] = "InvalidDocument"

    def __init__(self, problems: Sequence[DocumentProblem]) -> None:
        """Take all problems, in the order of their places."""
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class PolicyError(DocumentError):
    """A policy has problems; nothing that depends on it may start."""

    code: ClassVar[str] = "InvalidPolicy"


class PolicyTooExpensive(HyperFleetError):  # noqa: N818  # names a state, as below
    """A policy takes more work than a simulation may."""

    code: ClassVar[str] = "PolicyTooExpensive"


class SettingsError(DocumentError):
    """Settings have problems; the server does not start."""

    code: ClassVar[str] = "InvalidSettings"


class StoreError(HyperFleetError):
    """The store could not do what was asked."""

    code: ClassVar[str] = "StoreError"


class StoreUnavailable(StoreError):  # noqa: N818  # these name states, not mistakes
    """The store cannot be reached. A write in progress may or may not have happened."""

    code: ClassVar[str] = "StoreUnavailable"


class Contended(StoreError):  # noqa: N818
    """The write conflicted with another writer. Nothing was written; a retry may succeed."""

    code: ClassVar[str] = "Contended"


class HistoryPruned(StoreError):  # noqa: N818
    """The requested history existed and has been deleted by retention."""

    code: ClassVar[str] = "Forgotten"


class SchemaMismatch(StoreError):  # noqa: N818
    """The tables are of another version of the program."""

    code: ClassVar[str] = "SchemaMismatch"


class Overloaded(HyperFleetError):  # noqa: N818
    """A queue is full: there is more work than the server can do now."""

    code: ClassVar[str] = "Overloaded"


class TooManyWatches(Overloaded):
    """One caller has more watches than allowed. Other callers are not affected."""

    code: ClassVar[str] = "TooManyWatches"


class MergeError(HyperFleetError):
    """Conditions cannot be merged as asked (nothing to merge, a type given twice, …)."""

    code: ClassVar[str] = "CannotMerge"


class MissingPackage(HyperFleetError):  # noqa: N818
    """The command needs a package that is not installed: that of an extra, or one that such a package needs."""

    code: ClassVar[str] = "MissingPackage"

    def __init__(self, package: str) -> None:
        """Name the package, and what to install."""
        super().__init__(
            f"the command needs the Python package {package}, which is not installed. "
            "Install everything it needs: pip install 'hyperfleet[server]'"
        )
