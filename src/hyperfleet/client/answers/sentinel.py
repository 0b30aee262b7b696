"""Answers to sentinels: what is due, what was done, who shares the work."""

from __future__ import annotations

from datetime import datetime

from msgspec import Raw, Struct, field

from hyperfleet.client.answers.document import ApiDocument


class DueItemRule(Struct, frozen=True, rename="camel"):
    """A rule that wants a look at a resource now."""

    name: str
    state: str = ""
    age_seconds: float = 0.0
    attempts: int = 0
    when: str = ""


class DueItem(Struct, frozen=True, rename="camel"):
    """A resource that is due."""

    resource: Raw
    receipt: str
    due_since: datetime
    rules: tuple[DueItemRule, ...] = ()


class DueListing(ApiDocument, frozen=True, rename="camel", dict=True):
    """What is due, the longest first."""

    time: datetime
    items: tuple[DueItem, ...] = ()
    next: datetime | None = None


class Looked(ApiDocument, frozen=True, rename="camel", dict=True):
    """What was done about decisions."""

    published: int = 0
    skipped: int = 0


class SentinelMembers(ApiDocument, frozen=True, rename="camel", dict=True):
    """The members of a sentinel."""

    sentinel: str = ""
    members: tuple[str, ...] = ()
    expires_in_seconds: int = 0


class DueCount(Struct, frozen=True, rename="camel"):
    """How many resources of a kind are due."""

    kind: str
    due: int = 0
    lag_seconds: float = 0.0
    next: datetime | None = None


class SentinelEntry(Struct, frozen=True):
    """A sentinel and its members."""

    name: str
    members: tuple[str, ...] = ()


class Sentinels(ApiDocument, frozen=True, rename="camel", dict=True):
    """All sentinels and what is due."""

    items: tuple[SentinelEntry, ...] = ()
    kinds: tuple[DueCount, ...] = ()


class CompatListAnswer(ApiDocument, frozen=True, dict=True):
    """A page of a list in the form that the Go programs read."""

    total: int = 0
    items: tuple[Raw, ...] = field(default_factory=tuple)
