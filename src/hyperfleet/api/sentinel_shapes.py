"""The answers about sentinels: what is due, what was done about it, who the members are."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from hyperfleet.api.wire import Time
from hyperfleet.sentinel.rules import State

Count = Annotated[int, Meta(ge=0)]


class DueRuleAnswer(Struct, frozen=True, rename="camel"):
    """A rule that wants a look at a resource now; its `where` holds, its `when` is for the sentinel to evaluate."""

    name: Annotated[str, Meta(description="The reason that the event would carry.")]
    state: Annotated[State, Meta(description="The state of the resource that the rule is about.")]
    age_seconds: Annotated[float, Meta(description="For how long the resource has been in that state.")]
    attempts: Annotated[Count, Meta(description="Looks before this one since it was Ready or its generation changed.")]
    when: Annotated[str | UnsetType, Meta(description="A condition in CEL on the resource.")] = UNSET


class DueResourceAnswer(Struct, frozen=True, rename="camel"):
    """A resource that is due."""

    resource: Annotated[Raw, Meta(extra_json_schema={"type": "object"}, description="The resource, as GET answers it.")]
    rules: Annotated[
        tuple[DueRuleAnswer, ...],
        Meta(description="The rules that want a look, the longest due first; empty: none does, schedule the next one."),
    ]
    receipt: Annotated[str, Meta(description="Names this look in `:look`.")]
    due_since: Time


class DueList(Struct, frozen=True):
    """What is due, the longest first."""

    items: tuple[DueResourceAnswer, ...]
    time: Annotated[Time, Meta(description="The time of the server.")]
    next: Annotated[Time | UnsetType, Meta(description="When the next resource is due; absent: unknown.")] = UNSET


class LookedAnswer(Struct, frozen=True):
    """What was done about decisions of a sentinel."""

    published: Annotated[Count, Meta(description="Events that the broker has taken over.")]
    skipped: Annotated[Count, Meta(description="Decisions about resources that have changed meanwhile, or are gone.")]


class MemberList(Struct, frozen=True, rename="camel"):
    """The members of a sentinel, which share what is due."""

    sentinel: str
    members: tuple[str, ...]
    expires_in_seconds: Annotated[int, Meta(description="Renew a membership before that.")]


class SentinelAnswer(Struct, frozen=True):
    """A sentinel and its members."""

    name: str
    members: tuple[str, ...]


class RuleAnswer(Struct, frozen=True):
    """A rule."""

    name: str
    state: State
    after: Annotated[str | UnsetType, Meta(description="The age of the state; absent: as the policy says.")] = UNSET
    where: dict[str, str] | UnsetType = UNSET
    when: str | UnsetType = UNSET


class DueCounts(Struct, frozen=True, rename="camel"):
    """How many resources of a kind are due."""

    kind: str
    due: Annotated[Count, Meta(description="At most 10000.")]
    lag_seconds: Annotated[float, Meta(description="For how long the first of them has been due.")]
    next: Annotated[Time | UnsetType, Meta(description="When the next one is due.")] = UNSET


class SentinelList(Struct, frozen=True):
    """All sentinels, the rules, and what is due."""

    items: tuple[SentinelAnswer, ...]
    rules: tuple[RuleAnswer, ...]
    kinds: tuple[DueCounts, ...]
