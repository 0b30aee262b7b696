"""The functions of templates: what each takes. `functions` and `evaluator` have what they do.

The subject of `replace`, `trimPrefix`, `trimSuffix`, `contains`, `hasPrefix` and `hasSuffix` comes first, as in the Go
adapter, so a pipe does not suit them; `date` takes the layout first, `default` the fall-back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

ParameterKind = Literal["any", "string", "time"]


class FunctionSignature(NamedTuple):
    """The kinds of the parameters; `is_open` lets the last one repeat, also not at all."""

    parameters: tuple[ParameterKind, ...] = ()
    is_open: bool = False

    def check_count(self, given: int) -> str:
        """Return what is wanted if this number of arguments does not fit."""
        least = len(self.parameters) - self.is_open
        if given < least or (given > least and not self.is_open):
            wanted = "no argument" if least == 0 else "1 argument" if least == 1 else f"{least} arguments"
            return f"at least {wanted}" if self.is_open else wanted
        return ""

    def kind_of(self, index: int) -> ParameterKind:
        """Return the kind of an argument."""
        return self.parameters[min(index, len(self.parameters) - 1)]


_TEXT: Final = FunctionSignature(("string",))
_TWO_TEXTS: Final = FunctionSignature(("string", "string"))
_DATE: Final = FunctionSignature(("string", "time"))
_ONE: Final = FunctionSignature(("any",))
_TWO: Final = FunctionSignature(("any", "any"))
_SOME: Final = FunctionSignature(("any", "any"), is_open=True)
_ANY_NUMBER: Final = FunctionSignature(("any",), is_open=True)

SIGNATURES: Final[Mapping[str, FunctionSignature]] = {
    # Go's own
    "and": _SOME,
    "or": _SOME,
    "not": _ONE,
    "eq": FunctionSignature(("any", "any", "any"), is_open=True),
    "ne": _TWO,
    "lt": _TWO,
    "le": _TWO,
    "gt": _TWO,
    "ge": _TWO,
    "index": _SOME,
    "slice": _SOME,
    "len": _ONE,
    "print": _ANY_NUMBER,
    "println": _ANY_NUMBER,
    "printf": FunctionSignature(("string", "any"), is_open=True),
    "html": _ANY_NUMBER,
    "urlquery": _ANY_NUMBER,
    # the Go adapter's
    "now": FunctionSignature(),
    "date": _DATE,
    "dateFormat": _DATE,
    "lower": _TEXT,
    "upper": _TEXT,
    "title": _TEXT,
    "trim": _TEXT,
    "trimPrefix": _TWO_TEXTS,
    "trimSuffix": _TWO_TEXTS,
    "replace": FunctionSignature(("string", "string", "string")),
    "contains": _TWO_TEXTS,
    "hasPrefix": _TWO_TEXTS,
    "hasSuffix": _TWO_TEXTS,
    "quote": _TEXT,
    "default": _TWO,
    "int": _ONE,
    "int64": _ONE,
    "float": _ONE,
    "float64": _ONE,
    "string": _ONE,
}
