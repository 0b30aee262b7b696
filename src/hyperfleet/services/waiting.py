"""Whether one version of a resource is what somebody waits for, and if not, why. Pure; the API does the waiting.

All wishes must hold of one version; one failure is enough to fail, also if everything else holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from hyperfleet.aggregation.availability import READY
from hyperfleet.model.condition import TRUE, ConditionStatus
from hyperfleet.model.status import AdapterState
from hyperfleet.services.wishes import Subject, Waiting, Wish

# An adapter in one of these states has by definition not seen the present generation.
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


class Sight(Struct, frozen=True):
    """What a wait looks at of one version of a resource, out of its stored answer."""

    generation: int
    status: _Status


class Shortfall(Struct, frozen=True):
    """A wish that does not hold, and why, in the words of whoever knows best."""

    wish: Wish
    why: str


class Finding(Struct, frozen=True):
    """What one version means to a wait: the failure that holds, if one does, and what is still missing."""

    failure: Shortfall | None
    missing: tuple[Shortfall, ...]

    @property
    def is_met(self) -> bool:
        """Tell whether the wait is over and good."""
        return self.failure is None and not self.missing


def examine(waiting: Waiting, answer: bytes | None) -> Finding:
    """Compare one version of a resource, as it was answered, with what is waited for; None: it is gone."""
    sight = _decoder.decode(answer) if answer is not None else None
    checks = [(wish, _check(wish, sight, waiting.is_any_generation)) for wish in waiting.wishes]
    failures = [(wish, _check(wish, sight, waiting.is_any_generation)) for wish in waiting.failures]
    failed = next((Shortfall(wish, check.found) for wish, check in failures if check.holds), None)
    return Finding(failed, tuple([Shortfall(wish, check.found) for wish, check in checks if not check.holds]))


class _Check(Struct, frozen=True):
    holds: bool
    found: str  # what there is, whether or not it holds


def _check(wish: Wish, sight: Sight | None, is_any_generation: bool) -> _Check:
    if sight is None:
        return _Check(wish.subject == "deleted", "the resource was removed")
    return _CHECKS[wish.subject](wish, sight, is_any_generation)


def _check_condition(wish: Wish, sight: Sight, is_any_generation: bool) -> _Check:
    condition = next((each for each in sight.status.conditions if each.type == wish.name), None)
    if condition is None:
        types = ", ".join(each.type for each in sight.status.conditions)
        return _Check(False, f"it has no condition {wish.name}; it has {types}")
    found = _describe(condition)
    is_current = is_any_generation or condition.observed_generation == sight.generation
    if not is_current:
        found = f"{found} (of generation {condition.observed_generation}, the resource is at {sight.generation})"
    return _Check(condition.status == wish.value and is_current, found)


def _check_phase(wish: Wish, sight: Sight, _: bool) -> _Check:
    status = sight.status
    found = f"the phase is {status.phase}: {status.phase_description}{_blame(sight)}"
    return _Check(status.phase == wish.value, found)


def _check_adapter(wish: Wish, sight: Sight, is_any_generation: bool) -> _Check:
    adapter = next((each for each in sight.status.adapters if each.name == wish.name), None)
    if adapter is None:
        return _Check(wish.value == "Unreported", f"{wish.name} has not reported")
    found = f"{adapter.name} is {adapter.state} at generation {adapter.observed_generation}{_blame(sight)}"
    is_current = is_any_generation or wish.value in _BEHIND or adapter.observed_generation == sight.generation
    return _Check(adapter.state == wish.value and is_current, found)


def _describe(condition: _Condition) -> str:
    return f"{condition.type} is {condition.status}: {condition.reason}, {condition.message or 'no message'}"


def _blame(sight: Sight) -> str:
    """Add who is to blame and why, in the words of Ready, which names the adapters and what they say."""
    ready = next((each for each in sight.status.conditions if each.type == READY), None)
    return f"; {_describe(ready)}" if ready is not None and ready.status != TRUE else ""


def _check_generation(wish: Wish, sight: Sight, _: bool) -> _Check:
    wanted = int(wish.value)
    behind = [each.name for each in sight.status.adapters if each.observed_generation < wanted]
    if sight.generation < wanted:
        return _Check(False, f"the resource is at generation {sight.generation}")
    if not sight.status.adapters:
        return _Check(False, "no adapter has reported")
    return _Check(not behind, f"not seen by {', '.join(behind)}" if behind else "every adapter has seen it")


def _check_deleted(_: Wish, sight: Sight, __: bool) -> _Check:
    return _Check(False, f"it is still there, with phase {sight.status.phase}")


_CHECKS: Final[Mapping[Subject, Callable[[Wish, Sight, bool], _Check]]] = {
    "condition": _check_condition,
    "phase": _check_phase,
    "adapter": _check_adapter,
    "generation": _check_generation,
    "deleted": _check_deleted,
}
_decoder: Final = msgspec.json.Decoder(Sight)
