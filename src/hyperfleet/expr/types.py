"""The static types of expressions, and the names that error texts print for them.

Used by callers that declare an environment (`Schema`), by the checker, which gives every node its type, and by
the compiler, which picks code by it. Types are values: frozen, compared by content (a struct by its name).
This module knows nothing of nodes or of run-time values, except that `infer` reads the type off plain data.

`ANY` is compatible with everything and defers the decision to run time; `NIL` is the type of `nil` alone.
Every type has a `kind`, the quick way to ask what sort of thing it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import ClassVar, Literal, TypeAlias

Kind: TypeAlias = Literal["any", "nil", "bool", "int", "float", "string", "time", "duration"]


@dataclass(frozen=True, slots=True, eq=False)
class Scalar:
    """A type without parts.

    `kind` says how its values behave; `name` tells apart what shares a kind (`int`, `int64`, `time.Month`).
    A `defined` type has a name of its own and is no number to the operators, even when its kind is.
    """

    name: str
    kind: Kind
    defined: bool = False

    def __eq__(self, other: object) -> bool:
        """Compare by kind and name; the two spellings of "any" are equal."""
        if not isinstance(other, Scalar) or self.kind != other.kind:
            return False
        return self.kind == "any" or self.name == other.name

    def __hash__(self) -> int:
        """Agree with equality."""
        return hash(self.kind) if self.kind == "any" else hash(self.name)


@dataclass(frozen=True, slots=True)
class Array:
    """A list of `element`; `shown` replaces the printed name (literals print as `[]interface {}`)."""

    element: Type
    shown: str = field(default="", compare=False)
    kind: ClassVar[Literal["array"]] = "array"

    @property
    def name(self) -> str:
        """Return the name that error texts print."""
        return self.shown or f"[]{self.element.name}"


@dataclass(frozen=True, slots=True)
class Map:
    """A map from `key` to `value`.

    `fields` types single keys; with `strict` no other key may be named. `total` promises that subscripting a
    value never fails (a dict with `__missing__`); otherwise a missing key reads as the zero value of `value`.
    """

    key: Type
    value: Type
    fields: Mapping[str, Type] | None = field(default=None, hash=False)
    strict: bool = False
    total: bool = False
    shown: str = field(default="", compare=False)
    kind: ClassVar[Literal["map"]] = "map"

    @property
    def name(self) -> str:
        """Return the name that error texts print."""
        return self.shown or f"map[{self.key.name}]{self.value.name}"


@dataclass(frozen=True, slots=True)
class Func:
    """A function: called with `parameters`, the last of which repeats when `variadic`.

    `result` is None when it returns nothing; with more than two `results` (a value and an error) it cannot be
    used. With `overloads` the first one that fits decides instead.
    `builtin` names the function of the language that this is, which has rules of its own.
    """

    parameters: tuple[Type, ...]
    result: Type | None
    variadic: bool = False
    overloads: tuple[Func, ...] = ()
    builtin: str = ""
    results: int = 1
    shown: str = field(default="", compare=False)
    kind: ClassVar[Literal["func"]] = "func"

    @property
    def name(self) -> str:
        """Return the name that error texts print."""
        if self.shown:
            return self.shown
        names = [parameter.name for parameter in self.parameters]
        if self.variadic and names:
            names[-1] = f"...{names[-1]}"
        result = f" {self.result.name}" if self.result is not None else ""
        return f"func({', '.join(names)}){result}"


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a struct: its signature without the receiver; `call` takes the receiver first."""

    signature: Func
    call: Callable[..., object] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Struct:
    """A record with exactly these fields; its values are dicts that have every one. Two are equal by name."""

    name: str
    fields: Mapping[str, Type] = field(default_factory=dict, compare=False)
    methods: Mapping[str, Method] = field(default_factory=dict, compare=False)
    kind: ClassVar[Literal["struct"]] = "struct"


@dataclass(frozen=True, slots=True)
class Nullable:
    """A `target` or nil (a pointer in the original); operators and accesses look through it."""

    target: Type
    kind: ClassVar[Literal["nullable"]] = "nullable"

    @property
    def name(self) -> str:
        """Return the name that error texts print."""
        return f"*{self.target.name}"


Type: TypeAlias = Scalar | Array | Map | Func | Struct | Nullable
Schema: TypeAlias = Mapping[str, Type]
"""What an environment declares: a type for every name. Other names are unknown."""

ANY = Scalar("interface {}", "any")
UNKNOWN = Scalar("unknown", "any")
"""Equal to `ANY`; what the checker could not find out, where `ANY` was declared. Only error texts differ."""

NIL = Scalar("unknown", "nil")  # so do error texts print it
BOOL = Scalar("bool", "bool")
INT = Scalar("int", "int")
FLOAT = Scalar("float64", "float")
STRING = Scalar("string", "string")
TIME = Scalar("time.Time", "time")
DURATION = Scalar("time.Duration", "duration")

BYTE = Scalar("uint8", "int")
BYTES = Array(BYTE)
LOCATION = Nullable(Struct("time.Location"))
MONTH = Scalar("time.Month", "int", defined=True)
WEEKDAY = Scalar("time.Weekday", "int", defined=True)

ANY_ARRAY = Array(ANY)
ANY_MAP = Map(STRING, ANY)


def untyped_array(element: Type) -> Array:
    """Return an array whose elements are known to be `element` though it prints as an array of anything."""
    return Array(element, shown=ANY_ARRAY.name)


def infer(value: object) -> Type:
    """Return the type that plain data has on its own, as the original types a value of unknown origin."""
    for accepted, found in _PLAIN:
        if isinstance(value, accepted):
            return found
    if callable(value):
        return Func((ANY,), ANY, variadic=True)
    return ANY


def infer_schema(values: Mapping[str, object]) -> dict[str, Type]:
    """Declare an environment by the values it will hold."""
    return {name: infer(value) for name, value in values.items()}


_PLAIN: tuple[tuple[type, Type], ...] = (
    (type(None), NIL),
    (bool, BOOL),  # before int: a bool is an int to Python only
    (int, INT),
    (float, FLOAT),
    (str, STRING),
    (bytes, BYTES),
    (list, ANY_ARRAY),
    (dict, ANY_MAP),
    (datetime, TIME),
    (timedelta, DURATION),
)
