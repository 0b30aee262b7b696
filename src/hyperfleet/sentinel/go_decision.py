"""Decide as the Go sentinel does, from a configuration file of its own. `go_files` makes a `GoSentinel`.

A resource is a mapping in the form of the compat API. An expression that fails skips the resource with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final, Literal, NamedTuple

from msgspec import Struct

from hyperfleet.cel import CelEnvironment, Outcome, Program
from hyperfleet.cel.program import CURRENT_SCOPE
from hyperfleet.cel.values import Inward

MATCHED: Final = "message decision matched"
NOT_MATCHED: Final = "message decision result is false"
NO_ADAPTERS: Final = "no adapter is required"

_RECONCILED: Final = "Reconciled"
_ABSENT: Final[Mapping[str, Any]] = {
    "status": "",
    "observed_generation": 0,
    "last_updated_time": "",
    "last_transition_time": "",
    "reason": "",
    "message": "",
}


class GoDecision(NamedTuple):
    """Whether an event is wanted. `code` is one of few, for metrics; `reason` is the text of the Go sentinel."""

    is_wanted: bool
    reason: str
    code: Literal["matched", "notMatched", "noAdapters", "failed"]


class BuiltData(NamedTuple):
    """The data of an event, and the keys that were left out because a field was not there."""

    data: dict[str, Any]
    omitted: tuple[str, ...] = ()


class GoParam(NamedTuple):
    """A named value of the decision, and the environment in which those before it have their types."""

    name: str
    program: Program
    environment: CelEnvironment


class DataTemplate(NamedTuple):
    """The data of events: a program, a constant or a mapping at each key."""

    environment: CelEnvironment
    fields: Mapping[str, Any]
    is_default: bool = False  # the usual identity: a resource without an owner is nothing to report


class GoSentinel(Struct, frozen=True, kw_only=True):
    """A configuration file of the Go sentinel, compiled."""

    name: str
    resource_type: str  # the plural of a kind
    poll_interval: timedelta
    labels: tuple[tuple[str, str], ...]  # all of them must match
    params: tuple[GoParam, ...]  # each after those it needs
    result: GoParam
    data_template: DataTemplate
    is_default: bool  # the file has no decision of its own

    def decide(self, resource: Mapping[str, Any], now: datetime) -> GoDecision:
        """Tell whether adapters are asked to look at a resource, and why."""
        if self.is_default and not _has_condition(resource, _RECONCILED):
            return GoDecision(False, NO_ADAPTERS, "noAdapters")
        values: dict[str, Any] = {"resource": resource, "now": now}
        for param in self.params:
            outcome = _evaluate(param, values)
            if outcome.failure is not None:
                return GoDecision(False, f'param "{param.name}" evaluation failed: {outcome.failure.message}', "failed")
            values[param.name] = outcome.value
        outcome = _evaluate(self.result, values)
        if outcome.failure is not None:
            return GoDecision(False, f"result evaluation failed: {outcome.failure.message}", "failed")
        return GoDecision(True, MATCHED, "matched") if outcome.value else GoDecision(False, NOT_MATCHED, "notMatched")

    def data(self, resource: Mapping[str, Any], reason: str) -> BuiltData:
        """Build the data of an event; a key whose expression fails is left out, as is an object left empty."""
        environment, fields, is_default = self.data_template
        activation = environment.activate({"resource": resource, "reason": reason})
        omitted: list[str] = []

        def build(template: Mapping[str, Any], path: str) -> dict[str, Any]:
            built: dict[str, Any] = {}
            for key, value in template.items():
                if isinstance(value, Mapping):
                    if inner := build(value, f"{path}{key}."):
                        built[key] = inner
                elif isinstance(value, Program):
                    outcome = value.evaluate(activation)
                    if outcome.failure is None:
                        built[key] = outcome.value
                    else:
                        omitted.append(f"{path}{key}: {outcome.failure.message}")
                else:
                    built[key] = value
            return built

        return BuiltData(build(fields, ""), () if is_default else tuple(omitted))


def find_condition(type_: str) -> dict[str, Any]:
    """Return a condition of the resource for `condition("Type")`; one that is absent has empty fields."""
    for each in _conditions_of(CURRENT_SCOPE.get().context):
        if isinstance(each, Mapping) and each.get("type") == type_:
            given = {key: value for key in _ABSENT if (value := each.get(key)) is not None}
            converted: dict[str, Any] = {**_ABSENT, **Inward().convert(given)}
            return converted
    return dict(_ABSENT)


def _evaluate(step: GoParam, values: Mapping[str, Any]) -> Outcome:
    """Evaluate an expression on the variables that it uses: most use few, and converting a resource is costly."""
    used = {name: values[name] for name in step.program.variables}
    return step.program.evaluate(step.environment.activate(used, context=values["resource"]))


def _has_condition(resource: Mapping[str, Any], type_: str) -> bool:
    return any(isinstance(each, Mapping) and each.get("type") == type_ for each in _conditions_of(resource))


def _conditions_of(resource: Mapping[str, Any]) -> list[Any] | tuple[Any, ...]:
    status = resource.get("status")
    conditions = status.get("conditions") if isinstance(status, Mapping) else None
    return conditions if isinstance(conditions, list | tuple) else ()
