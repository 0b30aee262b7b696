"""Answers about the whole fleet: adapters, shared causes, counts, the policy, and the server itself."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct, field

from hyperfleet.client.answers.document import Document
from hyperfleet.client.errors import Fault


class ReportCounts(Struct, frozen=True, rename="camel"):
    """How many reports of an adapter were taken in."""

    aggregated: int = 0
    stored: int = 0
    replayed: int = 0


class LostReport(Struct, frozen=True, rename="camel"):
    """A report that was not stored."""

    cause: str = ""
    resource: str = ""
    time: datetime | None = None


class BlockedResource(Struct, frozen=True, rename="camel"):
    """A resource that waits for an adapter."""

    id: str
    name: str = ""
    phase: str = ""
    href: str = ""


class Adapter(Document, frozen=True, rename="camel", dict=True):
    """What is known of one adapter over all resources. `blocked` is told only of one that was asked for by name."""

    name: str
    reports: ReportCounts = field(default_factory=ReportCounts)
    discards: Mapping[str, int] = field(default_factory=dict)
    rejected: Mapping[str, int] = field(default_factory=dict)
    blocks: Mapping[str, int] = field(default_factory=dict)
    last_seen: datetime | None = None
    clock_skew_seconds: float | None = None
    last_discard: LostReport | None = None
    last_refusal: LostReport | None = None
    blocked: tuple[BlockedResource, ...] = ()


class TrendPoint(Struct, frozen=True, rename="camel"):
    """How many resources there were of each sort at one moment."""

    at: datetime | None = None
    total: int = 0
    groups: tuple[Mapping[str, str | int | None], ...] = ()


class Summary(Document, frozen=True, rename="camel", dict=True):
    """How many resources there are of each sort, the largest group first; `at` is None for now.

    The points of a `trend` come oldest first, and the last one is the summary itself.
    """

    group_by: tuple[str, ...] = ()
    total: int = 0
    groups: tuple[Mapping[str, str | int | None], ...] = ()
    at: datetime | None = None
    trend: tuple[TrendPoint, ...] = ()


class AffectedResource(Struct, frozen=True, rename="camel"):
    """A resource for which an adapter fails."""

    id: str
    name: str = ""
    kind: str = ""
    href: str = ""
    since: datetime | None = None


class MostlyShared(Struct, frozen=True, rename="camel"):
    """A label that more than half of the resources have, but not all."""

    key: str
    value: str = ""
    share: float = 0.0


class Growth(Struct, frozen=True, rename="camel"):
    """How many of the failures began lately."""

    last_hour: int = 0
    last_24h: int = field(default=0, name="last24h")


class SharedCause(Struct, frozen=True, rename="camel"):
    """Failures that look as if they had one cause."""

    adapter: str
    reason: str = ""
    message: str = ""
    example: str = ""
    count: int = 0
    kinds: Mapping[str, int] = field(default_factory=dict)
    resources: tuple[AffectedResource, ...] = ()
    shared_labels: Mapping[str, str] = field(default_factory=dict)
    mostly_shared_labels: tuple[MostlyShared, ...] = ()
    since: datetime | None = None
    newest: datetime | None = None
    growth: Growth = field(default_factory=Growth)


class Problems(Document, frozen=True, rename="camel", dict=True):
    """What fails, grouped by cause, those with the most resources first."""

    items: tuple[SharedCause, ...] = ()
    total: int = 0
    examined: int = 0
    complete: bool = True


class Recomputation(Struct, frozen=True, rename="camel"):
    """How far the fleet is from being computed under the policy in force."""

    remaining: int = 0


class Policy(Document, frozen=True, rename="camel", dict=True):
    """The policy every status is computed with."""

    version: int = 0
    digest: str = ""
    file: str = ""
    activated_at: datetime | None = None
    text: str = ""
    recomputation: Recomputation = field(default_factory=Recomputation)
    warnings: tuple[Fault, ...] = ()


class Unreadiness(Struct, frozen=True, rename="camel"):
    """One thing that keeps a server from doing its work."""

    check: str = ""
    message: str = ""


class Readiness(Document, frozen=True, rename="camel", dict=True):
    """Whether a server can do its work now, and if not, why."""

    status: str = ""
    reasons: tuple[Unreadiness, ...] = ()

    @property
    def is_ready(self) -> bool:
        """Tell whether it can."""
        return self.status == "ready"


class Liveness(Document, frozen=True, rename="camel", dict=True):
    """A process that answers."""

    status: str = ""


class Info(Struct, frozen=True):
    """The part of a server's description that names it."""

    title: str = ""
    version: str = ""


class Description(Document, frozen=True, dict=True):
    """The OpenAPI description of a server; `raw` has all of it."""

    openapi: str = ""
    info: Info = field(default_factory=Info)
