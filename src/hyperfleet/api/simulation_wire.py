"""The wire shapes of a simulation: what would change, and what would have been different in the past."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Annotated, Final

from msgspec import UNSET, Meta, Struct, UnsetType, field

from hyperfleet.api.shapes import Count, PolicyFault, Time
from hyperfleet.api.wire import href_of
from hyperfleet.model.kind import Kinds
from hyperfleet.model.resource import Resource
from hyperfleet.services.replay import INEXACT, DifferingResource, Replay, SubjectDifference, SubjectTotals
from hyperfleet.services.simulation import PredictedChange, PredictedMove, SimulationFindings
from hyperfleet.services.timelines import StatePeriod

_MAX_MESSAGE: Final = 1_000  # characters; enough to recognise it

Seconds = Annotated[float, Meta(ge=0)]


class SimulatedCountBody(Struct, frozen=True, rename="camel"):
    """The number of resources with the same transition."""

    subject: Annotated[str, Meta(description="`phase`, or the type of a condition.")]
    from_: Annotated[str | None, Meta(description="null: it does not exist now.")] = field(name="from")
    to: Annotated[
        str | None, Meta(description="null: it would not exist. Equal to `from`: only reason or message would change.")
    ]
    count: Annotated[int, Meta(ge=1)]


class SimulatedTransitionBody(Struct, frozen=True, rename="camel"):
    """The transition of the phase or of one condition."""

    subject: Annotated[str, Meta(description="`phase`, or the type of a condition.")]
    from_: Annotated[str | None, Meta(description="null: it does not exist now.")] = field(name="from")
    to: Annotated[
        str | None, Meta(description="null: it would not exist. Equal to `from`: only reason or message would change.")
    ]
    reason: str
    message: str
    why: Annotated[str, Meta(description="The rule and the adapters behind it.")]


class SimulatedChangeBody(Struct, frozen=True, rename="camel"):
    """A resource whose phase or conditions would change."""

    id: str
    name: str
    kind: str
    href: str
    transitions: tuple[SimulatedTransitionBody, ...]


class ReplayedAccount(Struct, frozen=True, rename="camel"):
    """The totals of one subject under one policy, over all resources."""

    transitions: Count
    seconds: Annotated[dict[str, Seconds], Meta(description="The time in each state, summed over all resources.")]


class ReplayedSubjectBody(Struct, frozen=True, rename="camel"):
    """The phase, or a condition, under both policies."""

    subject: str
    present: Annotated[ReplayedAccount, Meta(description="Under the policy in force.")]
    candidate: Annotated[ReplayedAccount, Meta(description="Under the candidate.")]


class ReplayedStretch(Struct, frozen=True, rename="camel"):
    """A period in one state."""

    state: str
    since: Time
    seconds: Seconds


class ReplayedStory(Struct, frozen=True, rename="camel"):
    """A subject of one resource that would have had other states."""

    subject: str
    gist: Annotated[str, Meta(description="Which states would have lasted longer or shorter: `False 12m → 3m`.")]
    present: Annotated[tuple[ReplayedStretch, ...], Meta(description="The first 50.")]
    candidate: Annotated[tuple[ReplayedStretch, ...], Meta(description="The first 50.")]


class ReplayedLife(Struct, frozen=True, rename="camel"):
    """A resource with a different past under the candidate."""

    id: str
    name: str
    kind: str
    href: str
    subjects: tuple[ReplayedStory, ...]


class ReplayAnswer(Struct, frozen=True, rename="camel"):
    """The result of replaying recorded reports."""

    from_: Annotated[Time, Meta(description="The start of the replay.")] = field(name="from")
    to: Time
    complete: Annotated[
        bool,
        Meta(
            description="If false, some of it is no longer kept (`retention`), or there were more reports than one "
            "replay processes: use filters or a shorter time."
        ),
    ]
    inexact: Annotated[tuple[str, ...], Meta(description="What a replay cannot reproduce exactly, and why.")]
    resources: Annotated[Count, Meta(description="The number of replayed resources.")]
    reports: Annotated[Count, Meta(description="The number of replayed reports.")]
    differing: Annotated[Count, Meta(description="The number of resources with a different past.")]
    subjects: tuple[ReplayedSubjectBody, ...]
    lives: Annotated[tuple[ReplayedLife, ...], Meta(description="Resources with a different past, up to `limit`.")]


class SimulationAnswer(Struct, frozen=True, rename="camel"):
    """What another policy would change."""

    policy: Annotated[str, Meta(description="The digest of the candidate.")]
    examined: Annotated[Count, Meta(description="The number of simulated resources.")]
    changed: Annotated[Count, Meta(description="The number of resources whose phase or condition status would change.")]
    reworded: Annotated[
        Count, Meta(description="The number of resources of which only reasons or messages would change.")
    ]
    unchanged: Count
    summary: Annotated[
        tuple[SimulatedCountBody, ...],
        Meta(description="The transitions, most frequent first; then changes of wording."),
    ]
    changes: Annotated[tuple[SimulatedChangeBody, ...], Meta(description="Up to `limit`; transitions first.")]
    truncated: Annotated[bool, Meta(description="There are more changes than are shown; all are counted.")]
    warnings: Annotated[
        tuple[PolicyFault, ...] | UnsetType,
        Meta(description="Lint warnings of the policy; absent if the lint takes too long."),
    ] = UNSET
    replay: Annotated[ReplayAnswer | UnsetType, Meta(description="If requested.")] = UNSET


class SimulationProgressBody(Struct, frozen=True, rename="camel"):
    """The progress of a simulation; sent several times a second in a stream."""

    examined: Count
    total: Count
    changed: Count


def present_findings(findings: SimulationFindings, digest: str, kinds: Kinds) -> SimulationAnswer:
    """Write the result of a simulation, without warnings and replay."""
    return SimulationAnswer(
        policy=digest,
        examined=findings.examined,
        changed=findings.changed,
        reworded=findings.reworded,
        unchanged=findings.examined - findings.changed - findings.reworded,
        summary=tuple(sorted(_present_summary(findings), key=_by_weight)),
        changes=tuple([_present_change(change, kinds) for change in findings.changes]),
        truncated=findings.is_truncated,
    )


def _present_summary(findings: SimulationFindings) -> Iterator[SimulatedCountBody]:
    for (subject, before, after), number in findings.summary.items():
        yield SimulatedCountBody(subject, before, after, number)


def _by_weight(row: SimulatedCountBody) -> tuple[bool, int, str]:
    """Sort transitions before changes of wording, and frequent ones before rare ones."""
    return row.from_ == row.to, -row.count, row.subject


def _present_change(change: PredictedChange, kinds: Kinds) -> SimulatedChangeBody:
    return SimulatedChangeBody(
        *_identify(change.resource, kinds), tuple([_present_move(move) for move in change.moves])
    )


def _present_move(move: PredictedMove) -> SimulatedTransitionBody:
    message = move.message[:_MAX_MESSAGE]
    return SimulatedTransitionBody(move.subject, move.before, move.after, move.reason, message, move.why)


def present_replay(replay: Replay, kinds: Kinds) -> ReplayAnswer:
    """Write the result of a replay."""
    return ReplayAnswer(
        from_=replay.range_.begin,
        to=replay.range_.end,
        complete=replay.is_complete,
        inexact=INEXACT,
        resources=replay.resources,
        reports=replay.reports,
        differing=replay.differing,
        subjects=tuple(
            [
                ReplayedSubjectBody(subject, _present_account(each.present), _present_account(each.candidate))
                for subject, each in replay.totals.items()
            ]
        ),
        lives=tuple([_present_life(each, kinds) for each in replay.shown]),
    )


def _present_account(account: SubjectTotals) -> ReplayedAccount:
    seconds = {state: lasted / timedelta(seconds=1) for state, lasted in sorted(account.durations.items())}
    return ReplayedAccount(account.transitions, seconds)


def _present_life(differing: DifferingResource, kinds: Kinds) -> ReplayedLife:
    stories = tuple([_present_story(story) for story in differing.differences])
    return ReplayedLife(*_identify(differing.resource, kinds), stories)


def _present_story(story: SubjectDifference) -> ReplayedStory:
    return ReplayedStory(
        story.subject,
        story.summary,
        _present_stretches(story.present.periods),
        _present_stretches(story.candidate.periods),
    )


def _present_stretches(stretches: Iterable[StatePeriod]) -> tuple[ReplayedStretch, ...]:
    return tuple([ReplayedStretch(each.state, each.begin, each.seconds) for each in stretches])


def _identify(resource: Resource, kinds: Kinds) -> tuple[str, str, str, str]:
    kind = kinds.get(resource.kind)
    href = href_of(kind, resource.id, resource.parent_id, kinds) if kind else ""
    return resource.id, resource.name, resource.kind, href
