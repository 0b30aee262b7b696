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
    ├── UnreadableFile       a file cannot be read at all: it is not there, too large, or not text
    ├── StoreError           the store could not do what was asked
    │   ├── StoreUnavailable … it cannot be reached; a write in progress may or may not have happened
    │   ├── Contended        … the write conflicted with another one; a retry may succeed
    │   ├── HistoryPruned    … the requested history has been deleted by retention
    │   └── SchemaMismatch   … its tables are of another version
    ├── BrokerUnavailable    the broker cannot be reached
    ├── KubernetesError      a Kubernetes API did not do what was asked
    │   ├── KubernetesUnreachable … it cannot be reached, or cannot answer now; a write may or may not have happened
    │   ├── KubernetesForbidden   … our credentials do not allow it
    │   ├── KindUnknown           … it serves no such kind
    │   ├── ObjectNotFound        … there is no such object, or not the namespace that it should be in
    │   ├── ObjectConflict        … the object changed, is another one, or a field belongs to another manager
    │   ├── ObjectInvalid         … it refuses the object
    │   └── VersionExpired        … it no longer has the changes since a version: list again
    ├── AccessError          a kubeconfig or credentials of a cluster cannot be used
    ├── RestartRequired      a policy changes what is read at the start only
    ├── DeliveryFailed       the receiver of a webhook did not take a message
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


class RestartRequired(HyperFleetError):  # noqa: N818  # names a state, as above
    """A policy changes what is read at the start only: where events go."""

    code: ClassVar[str] = "RestartRequired"


class SettingsError(DocumentError):
    """Settings have problems; the server does not start."""

    code: ClassVar[str] = "InvalidSettings"


class UnreadableFile(HyperFleetError):  # noqa: N818  # names a state, as above
    """A file cannot be read at all: it is not there, too large, or not text."""

    code: ClassVar[str] = "UnreadableFile"


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


class BrokerUnavailable(HyperFleetError):  # noqa: N818
    """The broker cannot be reached, or refuses messages now; the relay tries again."""

    code = "BrokerUnavailable"


class DeliveryFailed(HyperFleetError):  # noqa: N818
    """The receiver of a webhook did not take a message. The text has no secrets."""

    code = "DeliveryFailed"

    def __init__(self, message: str, *, status: int = 0, retry_after: float = 0.0) -> None:
        """Take the status of the answer (0: there was none), and the seconds to wait that it asks for."""
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after

    @property
    def is_final(self) -> bool:
        """Tell whether the receiver asks never to be called again: 410 Gone."""
        return self.status == 410


class KubernetesError(HyperFleetError):
    """A Kubernetes API did not do what was asked. The message is the server's own where it gave one."""

    code: ClassVar[str] = "KubernetesError"

    def __init__(self, message: str, *, status: int | None = None) -> None:
        """Keep the message, and the HTTP status of the answer; None: there was no answer."""
        self.status = status
        super().__init__(message)


class KubernetesUnreachable(KubernetesError):  # noqa: N818
    """The API cannot be reached, or cannot answer now. A write may or may not have happened; a retry may succeed."""

    code: ClassVar[str] = "KubernetesUnreachable"

    def __init__(self, message: str, *, status: int | None = None, retry_after: float | None = None) -> None:
        """Keep how many seconds the server asks to wait, if it does."""
        self.retry_after = retry_after
        super().__init__(message, status=status)


class KubernetesForbidden(KubernetesError):  # noqa: N818
    """Our credentials are not accepted, or do not allow this."""

    code: ClassVar[str] = "KubernetesForbidden"


class KindUnknown(KubernetesError):  # noqa: N818
    """The API serves no such kind, at least not yet: its CustomResourceDefinition may be missing."""

    code: ClassVar[str] = "KindUnknown"


class ObjectNotFound(KubernetesError):  # noqa: N818
    """There is no such object; or an object was to be created in a namespace that does not exist."""

    code: ClassVar[str] = "ObjectNotFound"


class ObjectConflict(KubernetesError):  # noqa: N818
    """The object changed meanwhile, has another uid, or a field of it belongs to another manager."""

    code: ClassVar[str] = "ObjectConflict"


class ObjectInvalid(KubernetesError):  # noqa: N818
    """The API refuses the object or the request; repeating it changes nothing."""

    code: ClassVar[str] = "ObjectInvalid"


class VersionExpired(KubernetesError):  # noqa: N818
    """The API no longer has the changes since a version: list again, and watch from there."""

    code: ClassVar[str] = "VersionExpired"


class AccessError(HyperFleetError):
    """A kubeconfig cannot be read, or what it names cannot be used."""

    code: ClassVar[str] = "InvalidAccess"


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

    def __init__(self, package: str, extra: str = "server") -> None:
        """Name the package, and what to install."""
        super().__init__(
            f"the command needs the Python package {package}, which is not installed. "
            f"Install everything it needs: pip install 'hyperfleet[{extra}]'"
        )
