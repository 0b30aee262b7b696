"""The phases a policy can reach and what leads from one to the next, as a Mermaid state diagram."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from hyperfleet.aggregation.enumeration import Combination, Enumeration
from hyperfleet.model.status import PHASES, AdapterState, Phase

# Which states an adapter can take next by its own report. To Outdated leads only an edit of the resource.
_NEXT: Final[Mapping[AdapterState, tuple[AdapterState, ...]]] = {
    "Unreported": ("Pending", "Running", "Completed", "Failed", "Unhealthy"),
    "Outdated": ("Pending", "Running", "Completed", "Failed", "Unhealthy"),
    "Pending": ("Running", "Completed", "Failed", "Unhealthy"),
    "Running": ("Pending", "Completed", "Failed", "Unhealthy"),
    "Completed": ("Pending", "Running", "Failed", "Unhealthy"),
    "Failed": ("Pending", "Running", "Completed", "Unhealthy"),
    "Unhealthy": ("Pending", "Running", "Completed", "Failed"),
}
_WORDS: Final[Mapping[AdapterState, str]] = {
    "Pending": "waits",
    "Running": "starts",
    "Completed": "completes",
    "Failed": "fails",
    "Unhealthy": "gets unhealthy",
}
_EDIT: Final = "edit"
UNREPORTED: Final[AdapterState] = "Unreported"


def reachable_phases(enumeration: Enumeration) -> tuple[Phase, ...]:
    """Return the phases that some combination of adapter states leads to, by priority; any can be deleted."""
    reached = {result.phase for result in enumeration.results.values()} | {"Deleting"}
    return tuple(phase for phase in PHASES if phase in reached)


def phase_moves(enumeration: Enumeration) -> dict[tuple[Phase, Phase], tuple[str, ...]]:
    """Return each move from phase to phase that one report or one edit can cause, with the causes."""
    causes: dict[tuple[Phase, Phase], set[str]] = {}
    for combination, result in enumeration.results.items():
        for cause, following in _followers(combination):
            after = enumeration.results.get(following)
            if after is not None and after.phase != result.phase:
                causes.setdefault((result.phase, after.phase), set()).add(cause)
    order = [*_WORDS.values(), _EDIT]
    return {move: tuple(sorted(found, key=order.index)) for move, found in sorted(causes.items())}


def _followers(combination: Combination) -> Iterator[tuple[str, Combination]]:
    for index, state in enumerate(combination):
        for following in _NEXT[state]:
            yield _WORDS[following], (*combination[:index], following, *combination[index + 1 :])
    # Who is unhealthy stays so whatever is edited, until it reports again.
    yield _EDIT, tuple(state if state in ("Unreported", "Unhealthy") else "Outdated" for state in combination)


def draw_phases(enumeration: Enumeration) -> str:
    """Draw the phases as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", "    [*] --> " + _initial(enumeration)]
    for (before, after), causes in phase_moves(enumeration).items():
        lines.append(f"    {before} --> {after}: {', '.join(causes)}")
    lines += [f"    {phase} --> Deleting: delete" for phase in reachable_phases(enumeration) if phase != "Deleting"]
    lines.append("    Deleting --> [*]: all finalized")
    return "\n".join(lines) + "\n"


def _initial(enumeration: Enumeration) -> Phase:
    nobody: Combination = tuple(UNREPORTED for _ in enumeration.groups)
    return enumeration.results[nobody].phase
