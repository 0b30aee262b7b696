"""What every handler works with, put together once by the composition root."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from msgspec import Struct, field

from hyperfleet.api.rate_limits import RateLimiter
from hyperfleet.model.kind import Kinds
from hyperfleet.ports import Clock, Store
from hyperfleet.services.audit import Journal
from hyperfleet.services.callers import Authenticator
from hyperfleet.services.committer import Committer
from hyperfleet.services.measures import DEFAULT_ADAPTERS, Measures
from hyperfleet.services.policies import PolicyBook
from hyperfleet.services.redaction import Redactor
from hyperfleet.services.resources import CheckSpec
from hyperfleet.services.tail import Tail
from hyperfleet.services.tallies import Tallies
from hyperfleet.services.tenancy import Tenancy


class RequestLimits(Struct, frozen=True):
    """How much one request may ask for."""

    body_bytes: int = 1024 * 1024
    batch_bytes: int = 8 * 1024 * 1024
    depth: int = 32  # of nested JSON
    batch: int = 1_000  # reports in one request
    time: timedelta = timedelta(seconds=30)


class MetricsOptions(Struct, frozen=True):
    """What `/metrics` tells, and whom."""

    public: bool = False  # somebody who is not known sees the figures of the server
    per_resource: bool = False
    max_resources: int = 10_000
    max_adapters: int = DEFAULT_ADAPTERS
    refresh_interval: timedelta = timedelta(seconds=5)


class Context(Struct, frozen=True):
    """The services behind the API."""

    store: Store
    committer: Committer
    policies: PolicyBook
    kinds: Kinds
    check_spec: CheckSpec
    new_id: Callable[[str], str]  # prefix → id
    clock: Clock
    tail: Tail
    limits: RequestLimits = RequestLimits()
    redactor: Redactor = Redactor()
    authenticator: Authenticator | None = None  # None: nobody is asked who they are
    rate_limiter: RateLimiter | None = None  # None: everybody may ask as fast as they can
    journal: Journal | None = None  # of the audit log; None: there is none
    journals_reports: bool = True  # it has also the reports that were taken
    measures: Measures = field(default_factory=Measures)
    tallies: Tallies | None = None  # None: nobody but this process has counted anything
    metrics: MetricsOptions = MetricsOptions()
    tenancy: Tenancy = Tenancy()
