"""Checks one version of a resource against the conditions of a wait. Pure; the API does the waiting.

All conditions must hold for the same version. One failure condition that holds fails the wait, whatever else holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from hyperfleet.aggregation.availability import READY
from hyperfleet.model.condition import TRUE, ConditionStatus
from hyperfleet.model.status import AdapterState
from hyperfleet.services.wait_query import WaitCondition, WaitQuery, WaitSubject

# An adapter in one of these states has by definition not seen the current generation.
_BEHIND: Final[tuple[AdapterState, ...]] = ("Outdated", "Unreported")


class _Condition(Struct, frozen=True, rename="camel"):
    type: str
    status: ConditionStatus
    reason: str
    message: str
    observed_generation: int


class _Adapter(Struct, frozen=True, rename="camel"):
    name: str
    state: AdapterState
    observed_generation: int


class _Status(Struct, frozen=True, rename="camel"):
    phase: str
    phase_description: str
    conditions: tuple[_Condition, ...]
    adapters: tuple[_Adapter, ...]


class WaitedVersion(Struct, frozen=True):
    """The part of a stored answer that a wait checks."""

    generation: int
    status: _Status


class UnmetCondition(Struct, frozen=True):
    """A condition that does not hold, and what there is instead."""

    condition: WaitCondition
    why: str


class WaitCheck(Struct, frozen=True):
    """The result for one version: the failure condition that holds, if any, and the conditions that do not hold yet."""

    failure: UnmetCondition | None
    missing: tuple[UnmetCondition, ...]

    @property
    def is_met(self) -> bool:
        """Tell whether the wait has succeeded."""
        return self.failure is None and not self.missing


def check_version(query: WaitQuery, answer: bytes | None) -> WaitCheck:
    """Check one version of a resource, given as its stored answer; None: the resource is gone."""
    version = _decoder.decode(answer) if answer is not None else None
    checks = [(each, _check(each, version, query.is_any_generation)) for each in query.conditions]
    failures = [(each, _check(each, version, query.is_any_generation)) for each in query.failures]
    failed = next((UnmetCondition(each, check.found) for each, check in failures if check.holds), None)
    return WaitCheck(failed, tuple([UnmetCondition(each, check.found) for each, check in checks if not check.holds]))


class _Check(Struct, frozen=True):
    holds: bool
    found: str  # the present state, whether or not the condition holds


def _check(wanted: WaitCondition, version: WaitedVersion | None, is_any_generation: bool) -> _Check:
    if version is None:
        return _Check(wanted.subject == "deleted", "the resource was removed")
    return _CHECKS[wanted.subject](wanted, version, is_any_generation)


def _check_condition(wanted: WaitCondition, version: WaitedVersion, is_any_generation: bool) -> _Check:
    condition = next((each for each in version.status.conditions if each.type == wanted.name), None)
    if condition is None:
        types = ", ".join(each.type for each in version.status.conditions)
        return _Check(False, f"it has no condition {wanted.name}; it has {types}")
    found = _describe(condition)
    is_current = is_any_generation or condition.observed_generation == version.generation
    if not is_current:
        found = f"{found} (of generation {condition.observed_generation}, the resource is at {version.generation})"
    return _Check(condition.status == wanted.value and is_current, found)


def _check_phase(wanted: WaitCondition, version: WaitedVersion, _: bool) -> _Check:
    status = version.status
    found = f"the phase is {status.phase}: {status.phase_description}{_blame(version)}"
    return _Check(status.phase == wanted.value, found)


def _check_adapter(wanted: WaitCondition, version: WaitedVersion, is_any_generation: bool) -> _Check:
    adapter = next((each for each in version.status.adapters if each.name == wanted.name), None)
    if adapter is None:
        return _Check(wanted.value == "Unreported", f"{wanted.name} has not reported")
    found = f"{adapter.name} is {adapter.state} at generation {adapter.observed_generation}{_blame(version)}"
    is_current = is_any_generation or wanted.value in _BEHIND or adapter.observed_generation == version.generation
    return _Check(adapter.state == wanted.value and is_current, found)


def _describe(condition: _Condition) -> str:
    return f"{condition.type} is {condition.status}: {condition.reason}, {condition.message or 'no message'}"


def _blame(version: WaitedVersion) -> str:
    """Append the message of Ready, which names the adapters responsible and their reasons."""
    ready = next((each for each in version.status.conditions if each.type == READY), None)
    return f"; {_describe(ready)}" if ready is not None and ready.status != TRUE else ""


def _check_generation(wanted: WaitCondition, version: WaitedVersion, _: bool) -> _Check:
    generation = int(wanted.value)
    behind = [each.name for each in version.status.adapters if each.observed_generation < generation]
    if version.generation < generation:
        return _Check(False, f"the resource is at generation {version.generation}")
    if not version.status.adapters:
        return _Check(False, "no adapter has reported")
    return _Check(not behind, f"not seen by {', '.join(behind)}" if behind else "every adapter has seen it")


def _check_deleted(_: WaitCondition, version: WaitedVersion, __: bool) -> _Check:
    return _Check(False, f"it is still there, with phase {version.status.phase}")


_CHECKS: Final[Mapping[WaitSubject, Callable[[WaitCondition, WaitedVersion, bool], _Check]]] = {
    "condition": _check_condition,
    "phase": _check_phase,
    "adapter": _check_adapter,
    "generation": _check_generation,
    "deleted": _check_deleted,
}
_decoder: Final = msgspec.json.Decoder(WaitedVersion)
