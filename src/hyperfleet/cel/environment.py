"""Declare what expressions may use, and compile them: everything that is wrong is found, with line and column."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, get_args

from hyperfleet.cel.faults import CelFault, make_fault, read_faults
from hyperfleet.cel.functions import CelFunction
from hyperfleet.cel.guard import find_hazards
from hyperfleet.cel.program import Activation, CelFailure, Program, Scope
from hyperfleet.cel.tree import OPTIONAL, read_tree
from hyperfleet.cel.values import Inward, ValueFault
from hyperfleet.errors import MissingPackage

if TYPE_CHECKING:
    from cel_expr_python import cel

CelType = Literal[
    "any", "bool", "int", "double", "string", "timestamp", "duration", "list", "map", "uint", "null", "bytes"
]

MAX_SOURCE: Final = 10_000  # characters; people read expressions, and the engine checks ten of them in a millisecond
# Keywords and types: the engine refuses variables with these names, or never finds them.
_KEYWORDS: Final = "as break const continue else false for function if import in let loop null package namespace"
_MORE_KEYWORDS: Final = "return true var void while"
_TYPE_NAMES: Final = "bool bytes double dyn int list map null_type optional_type string type uint"
RESERVED_NAMES: Final = frozenset(f"{_KEYWORDS} {_MORE_KEYWORDS} {_TYPE_NAMES}".split())
_CONCRETE: Final[tuple[CelType, ...]] = tuple(each for each in get_args(CelType) if each != "any")
_PYTHON_TYPES: Final[Mapping[str, type]] = {
    "bool": bool,
    "int": int,
    "double": float,
    "string": str,
    "timestamp": datetime,
    "duration": timedelta,
    "list": list,
    "map": dict,
}


class Compiled(NamedTuple):
    """A program, or every fault that keeps an expression from being one."""

    program: Program | None
    faults: tuple[CelFault, ...] = ()


class CelEnvironment:
    """Variables with their types, and functions. Make one, and compile many expressions with it."""

    def __init__(
        self, variables: Mapping[str, CelType], functions: Iterable[CelFunction] = (), *, has_optionals: bool = True
    ) -> None:
        """Declare variables and functions; without optionals it is the dialect of the Go sentinel."""
        engine = _load_engine()
        self.variables = dict(variables)
        self._engine = engine
        self._native = engine.module.NewEnv(
            variables={name: engine.types[type_] for name, type_ in variables.items()},
            extensions=engine.make_extensions(has_optionals),
            functions=[_declare(engine, each) for each in _group(functions)],
        )

    def compile(self, source: str, expect: CelType | None = None) -> Compiled:
        """Check an expression; `expect` is the type that its value must have."""
        fault = _refuse(source)
        if fault is not None:
            return Compiled(None, (fault,))
        try:
            expression = self._native.compile(source)
            tree = read_tree(expression.serialize())
            faults = (*self._check_result(source, expression, expect), *find_hazards(tree, source))
            program = Program(source, expression, _PYTHON_TYPES.get(expect or ""), tree)
        except RuntimeError as error:
            return Compiled(None, read_faults(str(error), source))
        return Compiled(None, faults) if faults else Compiled(program)

    def activate(self, values: Mapping[str, Any], now: datetime | None = None, context: Any = None) -> Activation:
        """Convert the values of variables once, for any number of programs; functions may read `now` and `context`."""
        inward = Inward()
        try:
            converted = {name: self._convert(inward, name, value) for name, value in values.items()}
        except ValueFault as fault:
            return Activation(None, Scope(now, context), CelFailure("input", str(fault)))
        return Activation(self._native.Activation(converted), Scope(now, context))

    def _convert(self, inward: Inward, name: str, value: Any) -> Any:
        """Pass times and durations as they are to variables of that type; elsewhere the engine takes none."""
        is_temporal = isinstance(value, datetime | timedelta) and self.variables.get(name) in ("timestamp", "duration")
        return value if is_temporal else inward.convert(value)

    def _check_result(self, source: str, expression: cel.Expression, expect: CelType | None) -> Iterable[CelFault]:
        kind = expression.return_type().name().lower().partition("<")[0]  # `map` of map<string, dyn>
        if kind == OPTIONAL:
            yield make_fault(source, 1, 1, "the result is an optional value; end it with .orValue(…)")
        elif expect not in (None, "any") and kind not in ("dyn", expect):
            yield make_fault(source, 1, 1, f"the result must be {expect}, and is {kind}")


def _refuse(source: str) -> CelFault | None:
    """Find what must not be given to the engine."""
    if len(source) > MAX_SOURCE:
        return make_fault(source, 1, 1, f"an expression has at most {MAX_SOURCE} characters, this one {len(source)}")
    if not source.strip():
        return make_fault(source, 1, 1, "the expression is empty")
    for offset, character in enumerate(source):
        if character == "\0" or "\ud800" <= character <= "\udfff":
            before = source[:offset]
            line, column = before.count("\n") + 1, offset - before.rfind("\n")
            return make_fault(source, line, column, f"the character {ascii(character)[1:-1]} is not allowed")
    return None


class _Engine(NamedTuple):
    module: Any
    types: Mapping[str, cel.Type]
    make_extensions: Callable[[bool], list[cel.CelExtensionBase]]


@lru_cache(maxsize=1)
def _load_engine() -> _Engine:
    """Load the engine: 20 ms that a command without expressions need not spend."""
    try:
        from cel_expr_python import cel  # noqa: PLC0415
        from cel_expr_python.ext import ext_bindings, ext_encoders, ext_math, ext_optional, ext_strings  # noqa: PLC0415
    except ModuleNotFoundError:
        raise MissingPackage("cel-expr-python") from None

    def make_extensions(has_optionals: bool) -> list[cel.CelExtensionBase]:
        strings = ext_strings.ExtStrings()
        if not has_optionals:
            return [strings]
        others = (ext_math.ExtMath(), ext_encoders.ExtEncoders(), ext_bindings.ExtBindings())
        return [ext_optional.ExtOptional(), strings, *others]

    kinds = cel.Type
    types = {
        "any": kinds.DYN,
        "bool": kinds.BOOL,
        "int": kinds.INT,
        "uint": kinds.UINT,
        "double": kinds.DOUBLE,
        "string": kinds.STRING,
        "bytes": kinds.BYTES,
        "null": kinds.NULL,
        "timestamp": kinds.TIMESTAMP,
        "duration": kinds.DURATION,
        "list": kinds.List(kinds.DYN),
        "map": kinds.Map(kinds.DYN, kinds.DYN),
    }
    return _Engine(cel, types, make_extensions)


def _group(functions: Iterable[CelFunction]) -> list[list[CelFunction]]:
    """Group functions of the same name: they are overloads of one declaration."""
    by_name: dict[str, list[CelFunction]] = {}
    for each in functions:
        by_name.setdefault(each.name, []).append(each)
    return list(by_name.values())


def _declare(engine: _Engine, overloads: list[CelFunction]) -> cel.FunctionDecl:
    """Declare a function. A parameter of any type needs an overload for each type: a dynamic one matches none."""
    native = []
    for function in overloads:
        for parameters in _expand(function.parameters):
            id_ = "_".join((function.name.replace(".", "_"), "of" if function.is_member else "with", *parameters))
            native.append(
                engine.module.Overload(
                    id_,
                    engine.types[function.result],
                    [engine.types[each] for each in parameters],
                    function.is_member,
                    function.implementation,
                )
            )
    declaration: cel.FunctionDecl = engine.module.FunctionDecl(overloads[0].name, native)
    return declaration


def _expand(parameters: tuple[str, ...]) -> list[tuple[str, ...]]:
    expanded: list[tuple[str, ...]] = [()]
    for each in parameters:
        options = _CONCRETE if each == "any" else (each,)
        expanded = [(*before, option) for before in expanded for option in options]
    return expanded
