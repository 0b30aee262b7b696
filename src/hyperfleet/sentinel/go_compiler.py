"""Compile the expressions of a Go sentinel file; every fault is collected with its place. Only `go_files` uses this."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hyperfleet.cel import RESERVED_NAMES, CelEnvironment, CelFunction, CelType, Program, place_faults
from hyperfleet.documents import DocumentProblem, Places
from hyperfleet.documents.pointer import join
from hyperfleet.sentinel.go_decision import DataTemplate, GoParam, find_condition

# The decision of the Go sentinel when a file has none; the ages are in here and nowhere else.
DEFAULT_PARAMS: Final[tuple[tuple[str, str], ...]] = (
    ("ref_time", 'condition("Reconciled").last_updated_time'),
    ("is_reconciled", 'condition("Reconciled").status == "True"'),
    ("has_ref_time", 'ref_time != ""'),
    ("is_new_resource", "resource.generation == 1 && !has_ref_time"),
    ("generation_mismatch", 'resource.generation > condition("Reconciled").observed_generation'),
    ("reconciled_and_stale", 'is_reconciled && has_ref_time && now - timestamp(ref_time) > duration("30m")'),
    ("not_reconciled_and_debounced", '!is_reconciled && has_ref_time && now - timestamp(ref_time) > duration("10s")'),
)
DEFAULT_RESULT: Final = "is_new_resource || generation_mismatch || reconciled_and_stale || not_reconciled_and_debounced"
DEFAULT_DATA: Final[Mapping[str, str]] = {
    "id": "resource.id",
    "kind": "resource.kind",
    "href": "resource.href",
    "generation": "resource.generation",
    "owner_references": "resource.owner_references",
}
MAX_PARAMS: Final = 50  # each is evaluated for every resource in every pass
MAX_DATA_DEPTH: Final = 8

_OWN_NAMES: Final = ("resource", "now", "reason")
_CONDITION: Final = CelFunction("condition", ("string",), "any", find_condition)
_ANY: Final[CelType] = "any"
_RESULT: Final = "/message_decision/result"
_TEMPORAL: Final[Mapping[str, CelType]] = {"timestamp": "timestamp", "duration": "duration"}


class GoCompiler:
    """Compiles one file and collects `problems`."""

    def __init__(self, places: Places) -> None:
        """Locate problems by `places`."""
        self._places = places
        self.problems: list[DocumentProblem] = []

    def compile_decision(
        self, written: Sequence[tuple[str, str] | None] | None, result: str
    ) -> tuple[tuple[GoParam, ...], GoParam | None]:
        """Compile params and result; without any, those of the Go sentinel."""
        if written is None:
            written, result = DEFAULT_PARAMS, DEFAULT_RESULT
        named = self._unique(written)
        untyped = _make_environment(dict.fromkeys(named, _ANY))
        drafts = {name: self._compile(untyped, expr, _place_of(index)) for name, (index, expr) in named.items()}
        good = {name: draft for name, draft in drafts.items() if draft is not None}
        if len(good) < len(written):
            self._compile(untyped, result, _RESULT, "bool")
            return (), None
        return self._compile_in_order(self._order(good, named), named, result)

    def _compile_in_order(
        self, order: Sequence[str], named: Mapping[str, tuple[int, str]], result: str
    ) -> tuple[tuple[GoParam, ...], GoParam | None]:
        """Compile again, now that the types before each param are known: the engine takes a time only if declared."""
        params: list[GoParam] = []
        types = dict.fromkeys(named, _ANY)
        for name in order:
            environment = _make_environment(types)
            index, expr = named[name]
            program = self._compile(environment, expr, _place_of(index))
            if program is not None:
                types[name] = _TEMPORAL.get(program.result, "any")
                params.append(GoParam(name, program, environment))
        environment = _make_environment(types)
        program = self._compile(environment, result, _RESULT, "bool")
        return tuple(params), GoParam("result", program, environment) if program else None

    def compile_data(self, written: Mapping[str, Any] | None) -> DataTemplate:
        """Compile the data of events; without any, the usual identity."""
        environment = CelEnvironment({"resource": "any", "reason": "string"}, has_optionals=False)
        template = DEFAULT_DATA if written is None else written
        return DataTemplate(environment, self._compile_map(environment, template, "/message_data", 0), written is None)

    def _unique(self, written: Sequence[tuple[str, str] | None]) -> dict[str, tuple[int, str]]:
        """Return the params by name with their position and expression."""
        named: dict[str, tuple[int, str]] = {}
        if len(written) > MAX_PARAMS:
            self._report("/message_decision/params", f"{len(written)} params; at most {MAX_PARAMS}", "TooMany")
        for index, param in enumerate(written[:MAX_PARAMS]):
            name, expr = param or ("", "")
            pointer = f"/message_decision/params/{index}/name"
            if name in named:
                self._report(pointer, f"there is already a param {name}", "DuplicateParam")
            elif name in _OWN_NAMES or name in RESERVED_NAMES:
                self._report(pointer, f"the name {name} has a meaning of its own; choose another one", "ReservedName")
            elif name:
                named[name] = (index, expr or "")
        return named

    def _order(self, drafts: Mapping[str, Program], named: Mapping[str, tuple[int, str]]) -> list[str]:
        """Put every param after those it needs, and otherwise keep the order of the file."""
        waiting, order = dict(drafts), list[str]()
        while waiting:
            ready = [name for name, draft in waiting.items() if not draft.variables & waiting.keys()]
            if not ready:
                first = named[next(iter(waiting))][0]
                message = f"these params need each other or themselves: {', '.join(waiting)}"
                self._report(_place_of(first), message, "Cycle")
                break
            order.append(ready[0])
            del waiting[ready[0]]
        for name in order:
            index = named[name][0]
            for needed in sorted(drafts[name].variables & drafts.keys()):
                if named[needed][0] > index:
                    message = f"{needed} is below: here it is evaluated first, the Go sentinel fails on every resource"
                    self._report(_place_of(index), message, "GoDifference", warn=True)
        return order

    def _compile_map(
        self, environment: CelEnvironment, template: Mapping[str, Any], pointer: str, depth: int
    ) -> dict[str, Any]:
        if not template or depth > MAX_DATA_DEPTH:
            self._report(pointer, "must not be empty" if not template else "is nested too deeply", "NotAllowed")
            return {}
        compiled: dict[str, Any] = {}
        for key, value in template.items():
            compiled[key] = self._compile_leaf(environment, value, join(pointer, key), depth)
        return compiled

    def _compile_leaf(self, environment: CelEnvironment, value: Any, pointer: str, depth: int) -> Any:
        if isinstance(value, Mapping):
            return self._compile_map(environment, value, pointer, depth + 1)
        if isinstance(value, bool | int | float):
            return value  # a constant
        if not isinstance(value, str) or not value:
            self._report(pointer, "expected a CEL expression, a number, true or false, or a mapping", "WrongType")
            return None
        return self._compile(environment, value, pointer)

    def _compile(
        self, environment: CelEnvironment, source: str | None, pointer: str, expect: CelType | None = None
    ) -> Program | None:
        if not isinstance(source, str):
            return None  # missing: already reported
        program, faults = environment.compile(source, expect)
        for problem in place_faults(faults, self._places, pointer):
            if problem not in self.problems:
                self.problems.append(problem)
        if program is not None and "deleted_time" in program.fields:
            message = "the Go sentinel does not know deleted_time, and fails on it"
            self._report(pointer, message, "GoDifference", warn=True)
        return program

    def _report(self, pointer: str, message: str, code: str, *, warn: bool = False) -> None:
        problem = DocumentProblem(self._places.value(pointer), message, code, "warning" if warn else "error")
        if problem not in self.problems:
            self.problems.append(problem)


def _place_of(index: int) -> str:
    return f"/message_decision/params/{index}/expr"


def _make_environment(params: Mapping[str, CelType]) -> CelEnvironment:
    """Return the environment of a decision: strings, and no optionals, as in Go."""
    return CelEnvironment({"resource": "any", "now": "timestamp", **params}, (_CONDITION,), has_optionals=False)
