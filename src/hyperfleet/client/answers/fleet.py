"""Answers about the whole fleet: adapters, shared causes, counts, the policy, and the server itself."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct, field

from hyperfleet.client.answers.document import ApiDocument
from hyperfleet.client.errors import ErrorDetail


class ReportCounts(Struct, frozen=True, rename="camel"):
    """The number of accepted reports of an adapter."""

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


class Adapter(ApiDocument, frozen=True, rename="camel", dict=True):
    """One adapter over all resources. `blocked` is set only if the adapter was requested by name."""

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


class Summary(ApiDocument, frozen=True, rename="camel", dict=True):
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


class MostlySharedLabel(Struct, frozen=True, rename="camel"):
    """A label that more than half of the resources have, but not all."""

    key: str
    value: str = ""
    share: float = 0.0


class FailureGrowth(Struct, frozen=True, rename="camel"):
    """How many of the failures began recently."""

    last_hour: int = 0
    last_24h: int = field(default=0, name="last24h")


class SharedCause(Struct, frozen=True, rename="camel"):
    """Failures that seem to have the same cause."""

    adapter: str
    reason: str = ""
    message: str = ""
    example: str = ""
    count: int = 0
    kinds: Mapping[str, int] = field(default_factory=dict)
    resources: tuple[AffectedResource, ...] = ()
    shared_labels: Mapping[str, str] = field(default_factory=dict)
    mostly_shared_labels: tuple[MostlySharedLabel, ...] = ()
    since: datetime | None = None
    newest: datetime | None = None
    growth: FailureGrowth = field(default_factory=FailureGrowth)


class Problems(ApiDocument, frozen=True, rename="camel", dict=True):
    """What fails, grouped by cause, those with the most resources first."""

    items: tuple[SharedCause, ...] = ()
    total: int = 0
    examined: int = 0
    complete: bool = True


class RecomputationProgress(Struct, frozen=True, rename="camel"):
    """How many resources have yet to be computed under the policy in force."""

    remaining: int = 0


class Policy(ApiDocument, frozen=True, rename="camel", dict=True):
    """The policy every status is computed with."""

    version: int = 0
    digest: str = ""
    source: str = ""  # `file`, `api` or `built-in`
    file: str = ""
    activated_at: datetime | None = None
    text: str = ""
    recomputation: RecomputationProgress = field(default_factory=RecomputationProgress)
    warnings: tuple[ErrorDetail, ...] = ()
    by: str = ""
    restores: int | None = None


class PolicyCheck(ApiDocument, frozen=True, rename="camel", dict=True):
    """What the server found of a policy that compiles; nothing was changed."""

    dry_run: bool = True
    digest: str = ""
    changes: bool = True
    in_force: int = 0  # the version
    warnings: tuple[ErrorDetail, ...] = ()


class PolicyVersion(ApiDocument, frozen=True, rename="camel", dict=True):
    """One version of the policy; `text` is empty in lists."""

    version: int = 0
    digest: str = ""
    source: str = ""
    file: str = ""
    activated_at: datetime | None = None
    in_force: bool = False
    text: str = ""
    by: str = ""
    restores: int | None = None


class UnreadyReason(Struct, frozen=True, rename="camel"):
    """One reason why a server is not ready."""

    check: str = ""
    message: str = ""


class Readiness(ApiDocument, frozen=True, rename="camel", dict=True):
    """Whether a server is ready, and if not, why."""

    status: str = ""
    reasons: tuple[UnreadyReason, ...] = ()
    warnings: tuple[UnreadyReason, ...] = ()

    @property
    def is_ready(self) -> bool:
        """Return whether it is ready."""
        return self.status == "ready"


class Liveness(ApiDocument, frozen=True, rename="camel", dict=True):
    """The answer of a running process."""

    status: str = ""


class OpenApiInfo(Struct, frozen=True):
    """The title and version in an OpenAPI document."""

    title: str = ""
    version: str = ""


class OpenApiDocument(ApiDocument, frozen=True, dict=True):
    """The OpenAPI document of a server; `raw` has all of it."""

    openapi: str = ""
    info: OpenApiInfo = field(default_factory=OpenApiInfo)
