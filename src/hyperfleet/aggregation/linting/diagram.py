"""Draw the phases that a policy can reach, and the moves between them, as a Mermaid state diagram.

A move is caused by one report, an edit, silence (`staleThreshold`, `defaultBehavior.timeout`) or a deletion. Moves by
`olderThan` and damping are not drawn. A comment in the diagram tells when it may be incomplete.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from hyperfleet.aggregation.linting.enumeration import GOES_STALE, TIMES_OUT, Combination, Enumeration, sort_states
from hyperfleet.model.phase import PHASES, Phase
from hyperfleet.model.status import AdapterState

# The states that an adapter can reach by its next report. Only an edit of the resource leads to Outdated.
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
_ORDER: Final = (*_WORDS.values(), _EDIT, TIMES_OUT, GOES_STALE)
UNREPORTED: Final[AdapterState] = "Unreported"


def reachable_phases(enumeration: Enumeration) -> tuple[Phase, ...]:
    """Return the reachable phases, by priority; Deleting is always reachable."""
    reached: set[Phase] = {"Deleting"}
    for result in enumeration.results.values():
        reached.update((result.phase, *result.later.values()))
    return tuple(phase for phase in PHASES if phase in reached)


def phase_moves(enumeration: Enumeration) -> dict[tuple[Phase, Phase], tuple[str, ...]]:
    """Return each move from phase to phase that one report, one edit or silence can cause, with the causes."""
    causes: dict[tuple[Phase, Phase], set[str]] = {}
    for combination, result in enumeration.results.items():
        for cause, following in _followers(combination):
            after = enumeration.results.get(following)
            if after is not None:
                causes.setdefault((result.phase, after.phase), set()).add(cause)
        for cause, phase in result.later.items():
            causes.setdefault((result.phase, phase), set()).add(cause)
    moves = sorted(move for move in causes if move[0] != move[1])
    return {move: tuple(sorted(causes[move], key=_ORDER.index)) for move in moves}


def _followers(combination: Combination) -> Iterator[tuple[str, Combination]]:
    for place, states in enumerate(combination):
        for state in dict.fromkeys(states):  # adapters of one group in the same state are interchangeable
            others = list(states)
            others.remove(state)
            for following in _NEXT[state]:
                changed = sort_states((following, *others))
                yield _WORDS[following], (*combination[:place], changed, *combination[place + 1 :])
    yield _EDIT, tuple(sort_states(tuple(map(_edited, states))) for states in combination)


def _edited(state: AdapterState) -> AdapterState:
    """Return the state after an edit. An unhealthy adapter stays so until it reports again."""
    return state if state in ("Unreported", "Unhealthy") else "Outdated"


def draw_phases(enumeration: Enumeration) -> str:
    """Draw the phases as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", *_reservations(enumeration), "    [*] --> " + _initial(enumeration)]
    for (before, after), causes in phase_moves(enumeration).items():
        lines.append(f"    {before} --> {after}: {', '.join(causes)}")
    lines += [f"    {phase} --> Deleting: delete" for phase in reachable_phases(enumeration) if phase != "Deleting"]
    lines.append("    Deleting --> [*]: all finalized")
    return "\n".join(lines) + "\n"


def _reservations(enumeration: Enumeration) -> Iterator[str]:
    """Yield comments on why the diagram may be incomplete."""
    tried, total = len(enumeration.results), enumeration.total
    if tried < total:
        yield f"    %% a sample: {tried} of {total} combinations of adapter states were tried"
    if not enumeration.is_closed:
        yield "    %% the rules depend on more than adapter states; more moves are possible"


def _initial(enumeration: Enumeration) -> Phase:
    unreported = tuple((UNREPORTED,) * len(group) for group in enumeration.groups)
    return enumeration.results[unreported].phase
