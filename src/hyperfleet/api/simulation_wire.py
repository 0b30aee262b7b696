"""How a simulation looks on the wire: what would change, and what would have been otherwise in the past."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Annotated, Final

from msgspec import UNSET, Meta, Struct, UnsetType, field

from hyperfleet.api.shapes import Count, PolicyFault, Time
from hyperfleet.api.wire import href_of
from hyperfleet.model.kind import Kinds
from hyperfleet.model.resource import Resource
from hyperfleet.services.lives import Stretch
from hyperfleet.services.replay import Account, Differing, Replay, Story
from hyperfleet.services.simulation import Change, Findings, Move

_SHOWN_MESSAGE: Final = 1_000  # characters

Seconds = Annotated[float, Meta(ge=0)]


class SimulatedCountBody(Struct, frozen=True, rename="camel"):
    """How many resources would make the same move."""

    subject: Annotated[str, Meta(description="`phase`, or the type of a condition.")]
    from_: Annotated[str | None, Meta(description="null: it is not there now.")] = field(name="from")
    to: Annotated[str | None, Meta(description="null: it would not be there. The same: only its words would change.")]
    count: Annotated[int, Meta(ge=1)]


class SimulatedTransitionBody(Struct, frozen=True, rename="camel"):
    """What would become of the phase or of one condition."""

    subject: Annotated[str, Meta(description="`phase`, or the type of a condition.")]
    from_: Annotated[str | None, Meta(description="null: it is not there now.")] = field(name="from")
    to: Annotated[str | None, Meta(description="null: it would not be there. The same: only its words would change.")]
    reason: str
    message: str
    why: Annotated[str, Meta(description="Which rule would say so, and which adapters are behind it.")]


class SimulatedChangeBody(Struct, frozen=True, rename="camel"):
    """A resource whose phase or conditions would change."""

    id: str
    name: str
    kind: str
    href: str
    transitions: tuple[SimulatedTransitionBody, ...]


class ReplayedAccount(Struct, frozen=True, rename="camel"):
    """What became of one subject under one policy, over all resources."""

    transitions: Count
    seconds: Annotated[dict[str, Seconds], Meta(description="How long it was in each state, all resources together.")]


class ReplayedSubjectBody(Struct, frozen=True, rename="camel"):
    """The phase, or a condition, under both policies."""

    subject: str
    present: Annotated[ReplayedAccount, Meta(description="Under the policy in force.")]
    candidate: Annotated[ReplayedAccount, Meta(description="Under the policy that is tried.")]


class ReplayedStretch(Struct, frozen=True, rename="camel"):
    """A time in which something stayed what it was."""

    state: str
    since: Time
    seconds: Seconds


class ReplayedStory(Struct, frozen=True, rename="camel"):
    """A subject of one resource that would have been something else for a while."""

    subject: str
    gist: Annotated[str, Meta(description="What would have lasted longer or shorter: `False 12m → 3m`.")]
    present: Annotated[tuple[ReplayedStretch, ...], Meta(description="The first 50.")]
    candidate: Annotated[tuple[ReplayedStretch, ...], Meta(description="The first 50.")]


class ReplayedLife(Struct, frozen=True, rename="camel"):
    """A resource whose past would have been another one."""

    id: str
    name: str
    kind: str
    href: str
    subjects: tuple[ReplayedStory, ...]


class ReplayAnswer(Struct, frozen=True, rename="camel"):
    """What the recorded reports would have come to."""

    from_: Annotated[Time, Meta(description="Where it begins.")] = field(name="from")
    to: Time
    complete: Annotated[
        bool,
        Meta(
            description="If false, some of it is no longer kept (`retention`), or there were more reports than are "
            "lived again at once: narrow it by filters or ask for a shorter time."
        ),
    ]
    resources: Annotated[Count, Meta(description="How many lives were lived again.")]
    reports: Annotated[Count, Meta(description="How many reports went into them.")]
    differing: Annotated[Count, Meta(description="How many of the lives would have been others.")]
    subjects: tuple[ReplayedSubjectBody, ...]
    lives: Annotated[tuple[ReplayedLife, ...], Meta(description="Those that would have been others, up to `limit`.")]


class SimulationAnswer(Struct, frozen=True, rename="camel"):
    """What another policy would change."""

    policy: Annotated[str, Meta(description="The digest that it would have in force.")]
    examined: Annotated[Count, Meta(description="How many resources were looked at.")]
    changed: Annotated[Count, Meta(description="Of how many the phase or the status of a condition would move.")]
    reworded: Annotated[Count, Meta(description="Of how many only reasons or messages would change.")]
    unchanged: Count
    summary: Annotated[
        tuple[SimulatedCountBody, ...],
        Meta(description="Which moves there would be, the most frequent first; then rewordings."),
    ]
    changes: Annotated[
        tuple[SimulatedChangeBody, ...], Meta(description="Up to `limit`; those that move something come first.")
    ]
    truncated: Annotated[bool, Meta(description="There are more changes than are told; all are counted.")]
    warnings: Annotated[
        tuple[PolicyFault, ...] | UnsetType,
        Meta(description="What is likely wrong with the policy although it loads; absent if that takes too long."),
    ] = UNSET
    replay: Annotated[ReplayAnswer | UnsetType, Meta(description="If it was asked for.")] = UNSET


class SimulationProgressBody(Struct, frozen=True, rename="camel"):
    """How far a simulation is; told several times a second to those who prefer a stream."""

    examined: Count
    total: Count
    changed: Count


def present_findings(findings: Findings, digest: str, kinds: Kinds) -> SimulationAnswer:
    """Write down what a simulation found, without warnings and replay."""
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


def _present_summary(findings: Findings) -> Iterator[SimulatedCountBody]:
    for (subject, before, after), number in findings.summary.items():
        yield SimulatedCountBody(subject, before, after, number)


def _by_weight(row: SimulatedCountBody) -> tuple[bool, int, str]:
    """Put what moves before what is only said in other words, and what is frequent before what is rare."""
    return row.from_ == row.to, -row.count, row.subject


def _present_change(change: Change, kinds: Kinds) -> SimulatedChangeBody:
    return SimulatedChangeBody(
        *_identify(change.resource, kinds), tuple([_present_move(move) for move in change.moves])
    )


def _present_move(move: Move) -> SimulatedTransitionBody:
    message = move.message[:_SHOWN_MESSAGE]
    return SimulatedTransitionBody(move.subject, move.before, move.after, move.reason, message, move.why)


def present_replay(replay: Replay, kinds: Kinds) -> ReplayAnswer:
    """Write down what became of the past."""
    return ReplayAnswer(
        from_=replay.span.begin,
        to=replay.span.end,
        complete=replay.is_complete,
        resources=replay.resources,
        reports=replay.reports,
        differing=replay.differing,
        subjects=tuple(
            [
                ReplayedSubjectBody(subject, _present_account(each.present), _present_account(each.candidate))
                for subject, each in replay.accounts.items()
            ]
        ),
        lives=tuple([_present_life(each, kinds) for each in replay.told]),
    )


def _present_account(account: Account) -> ReplayedAccount:
    seconds = {state: lasted / timedelta(seconds=1) for state, lasted in sorted(account.lasted.items())}
    return ReplayedAccount(account.transitions, seconds)


def _present_life(differing: Differing, kinds: Kinds) -> ReplayedLife:
    stories = tuple([_present_story(story) for story in differing.stories])
    return ReplayedLife(*_identify(differing.resource, kinds), stories)


def _present_story(story: Story) -> ReplayedStory:
    return ReplayedStory(
        story.subject,
        story.gist,
        _present_stretches(story.present.stretches),
        _present_stretches(story.candidate.stretches),
    )


def _present_stretches(stretches: Iterable[Stretch]) -> tuple[ReplayedStretch, ...]:
    return tuple([ReplayedStretch(each.state, each.begin, each.seconds) for each in stretches])


def _identify(resource: Resource, kinds: Kinds) -> tuple[str, str, str, str]:
    kind = kinds.get(resource.kind)
    href = href_of(kind, resource.id, resource.parent_id, kinds) if kind else ""
    return resource.id, resource.name, resource.kind, href
