"""Decide the phase of a resource: the first of Deleting, Degraded, Failed, Ready, Provisioning, Pending that holds.

The policy requires conditions for a phase. The guards here keep a mistake in a policy from hiding a state that matters
and from claiming one that does not hold. A guard yields the evidence for its phase, so that deciding (is there any?)
and explaining (which?) cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from hyperfleet.aggregation.availability import READY
from hyperfleet.aggregation.policy import PhaseRule
from hyperfleet.aggregation.publication import Published
from hyperfleet.aggregation.situation import Situation
from hyperfleet.model.condition import FALSE, TRUE, ConditionStatus
from hyperfleet.model.phase import PHASES, Phase

_NO_RULE: Final = PhaseRule()
Guard: TypeAlias = "Callable[[PhaseInputs], Iterator[str]]"


class PhaseInputs:
    """What the guards look at: the situation and the published conditions with their culprits."""

    __slots__ = ("_published", "situation")

    def __init__(self, situation: Situation, published: Sequence[Published]) -> None:
        """Take what one aggregation publishes."""
        self.situation = situation
        self._published = {item.condition.type: item for item in published}

    def status_of(self, type_: str) -> ConditionStatus:
        """Return the published status of a condition."""
        return self._published[type_].condition.status

    def match(self, phase: Phase) -> str:
        """Describe the conditions by which the policy matches a phase; empty if it does not match."""
        required = self.situation.policy.phases.get(phase, _NO_RULE).required_conditions
        for type_, status in required:
            if self.status_of(type_) != status:
                return ""
        return "the policy matches: " + ", ".join([f"{t}={s}" for t, s in required]) if required else ""

    def behind(self, phase: Phase) -> list[Published]:
        """Return the conditions that the policy requires for a phase."""
        required = self.situation.policy.phases.get(phase, _NO_RULE).required_conditions
        return [self._published[type_] for type_, _ in required]


def decide_phase(inputs: PhaseInputs) -> Phase:
    """Return the first phase for which there is evidence."""
    for phase, guard in _guards(inputs):
        for _ in guard(inputs):
            return phase
    raise AssertionError("Pending always holds")


def evidence_for(phase: Phase, inputs: PhaseInputs) -> list[str]:
    """Return the evidence for a phase; empty: it does not hold."""
    return [evidence for name, guard in _guards(inputs) if name == phase for evidence in guard(inputs)]


def _guards(inputs: PhaseInputs) -> Sequence[tuple[Phase, Guard]]:
    """Return the guards by priority. A resource without required adapters is Ready, whatever the policy says."""
    situation = inputs.situation
    return _GUARDS if situation.adapters.required or situation.resource.is_deleting else _NOTHING_REQUIRED


def _deleting(inputs: PhaseInputs) -> Iterator[str]:
    if inputs.situation.resource.is_deleting:
        yield "deletion was requested"


def _degraded(inputs: PhaseInputs) -> Iterator[str]:
    situation = inputs.situation
    if matched := inputs.match("Degraded"):
        yield matched
    for view in situation.adapters.required:
        if view.health == FALSE:
            yield f"the required adapter {view.adapter} has Health=False"
    if situation.policy.stale_action == "degraded" and next(_failures(situation), None) is None:
        for view in situation.adapters.required:
            if view.is_stale:
                yield f"the required adapter {view.adapter} is stale"


def _failed(inputs: PhaseInputs) -> Iterator[str]:
    yield from _failures(inputs.situation)
    if (matched := inputs.match("Failed")) and _blames_a_failure(inputs):
        yield matched


def _failures(situation: Situation) -> Iterator[str]:
    for view in situation.adapters.required:
        if view.state == "Failed":
            yield f"the required adapter {view.adapter} failed: {view.message or view.reason}"
    for view in situation.missing:
        yield f"the required adapter {view.adapter} has not reported in time"


def _blames_a_failure(inputs: PhaseInputs) -> bool:
    """Tell whether the policy matches because of a failure, not only because of unfinished work.

    The culprits of a condition that damping holds are no longer known; the phase that followed from it is.
    """
    behind, previous = inputs.behind("Failed"), inputs.situation.previous
    if not any(published.verdict.names_adapters for published in behind):
        return True
    if previous and previous.phase == "Failed" and any(published.is_held for published in behind):
        return True
    return any(view.state == "Failed" for published in behind for view in published.verdict.culprits)


def _ready(inputs: PhaseInputs) -> Iterator[str]:
    if inputs.status_of(READY) == TRUE and (matched := inputs.match("Ready")):
        yield f"{matched}; and Ready=True"


def _provisioning(inputs: PhaseInputs) -> Iterator[str]:
    adapters = inputs.situation.adapters
    for view in adapters.required:
        if view.state in ("Running", "Completed"):
            yield f"the required adapter {view.adapter} is {view.state}"
    if any(view.state == "Running" for view in adapters.all) and (matched := inputs.match("Provisioning")):
        yield matched


def _pending(_: PhaseInputs) -> Iterator[str]:
    yield "no required adapter has started on the current generation"


def _nothing_required(_: PhaseInputs) -> Iterator[str]:
    yield "no adapters are required"


_GUARD_OF: Final[Mapping[Phase, Guard]] = {
    "Deleting": _deleting,
    "Degraded": _degraded,
    "Failed": _failed,
    "Ready": _ready,
    "Provisioning": _provisioning,
    "Pending": _pending,
}
_GUARDS: Final[Sequence[tuple[Phase, Guard]]] = tuple((phase, _GUARD_OF[phase]) for phase in PHASES)
_NOTHING_REQUIRED: Final[Sequence[tuple[Phase, Guard]]] = (("Ready", _nothing_required),)
