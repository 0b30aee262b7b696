"""What every handler works with; the composition root builds it once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from msgspec import Struct, field

from hyperfleet.api.outgoing import OutgoingBytes
from hyperfleet.api.rate_limits import RateLimiter
from hyperfleet.events.broker_choice import BrokerChoice
from hyperfleet.events.in_process import InProcessBroker
from hyperfleet.events.looking import Looking
from hyperfleet.events.webhooks import Webhooks
from hyperfleet.messaging import Broker, PubSubBlock
from hyperfleet.model.kind import Kinds
from hyperfleet.ports import Clock, Store
from hyperfleet.services.audit import Journal
from hyperfleet.services.callers import Authenticator
from hyperfleet.services.committer import Committer
from hyperfleet.services.measures import DEFAULT_ADAPTERS, Measures
from hyperfleet.services.policies import PolicyRegistry
from hyperfleet.services.redaction import Redactor
from hyperfleet.services.resources import CheckSpec
from hyperfleet.services.tail import LogTail
from hyperfleet.services.tenancy import Tenancy
from hyperfleet.services.worker_totals import WorkerTotals


class RequestLimits(Struct, frozen=True):
    """The limits of one request."""

    body_bytes: int = 1024 * 1024  # about the largest object that etcd, and so Kubernetes, stores
    batch_bytes: int = 8 * 1024 * 1024  # a full batch of reports of 8 KiB
    depth: int = 32  # of nested JSON; far more than a spec needs
    values: int = 20_000  # in the JSON of one report or resource: some tens of milliseconds of work
    batch_values: int = 200_000  # in that of many reports
    batch: int = 1_000  # reports in one request; more would delay other writes
    time: timedelta = timedelta(seconds=30)  # before most proxies give up, at 60 s


def _choose_in_process(_: PubSubBlock | None) -> BrokerChoice:
    return BrokerChoice()


class EventOptions(Struct):
    """Where events go. Set when the server starts, because the policy in force may say so."""

    choice: BrokerChoice = BrokerChoice()
    queues: InProcessBroker | None = None  # None: the broker is another program
    broker: Broker | None = None  # whichever was chosen; None: the server has not started yet
    choose: Callable[[PubSubBlock | None], BrokerChoice] = _choose_in_process  # what a policy would lead to
    find_trouble: Callable[[], str] = str  # why events cannot be published now; empty: they can
    looking: Looking | None = None  # what the server does for sentinels; None: it has not started yet
    find_sentinel_trouble: Callable[[], tuple[str, ...]] = tuple  # what is wrong with its own sentinel
    webhooks: Webhooks | None = None  # None: there are none


class MetricsOptions(Struct, frozen=True):
    """What `/metrics` shows, and to whom."""

    public: bool = False  # unauthenticated callers see the metrics of the server
    per_resource: bool = False
    max_resources: int = 10_000  # of each kind: some 20 MB of text
    max_adapters: int = DEFAULT_ADAPTERS
    refresh_interval: timedelta = timedelta(seconds=5)  # several scrapers at 15 s share one read


class BrowserRules(Struct, frozen=True):
    """How the server protects itself against web pages."""

    hosts: frozenset[str] | None = None  # names that requests may use for it; None: any
    has_tls: bool = False


class Context(Struct, frozen=True):
    """The services behind the API."""

    store: Store
    committer: Committer
    policies: PolicyRegistry
    kinds: Kinds
    check_spec: CheckSpec
    new_id: Callable[[str], str]  # prefix → id
    clock: Clock
    tail: LogTail
    limits: RequestLimits = RequestLimits()
    redactor: Redactor = Redactor()
    authenticator: Authenticator | None = None  # None: callers are anonymous
    rate_limiter: RateLimiter | None = None  # None: no rate limit
    journal: Journal | None = None  # of the audit log; None: there is none
    journals_reports: bool = True  # the journal includes accepted reports
    measures: Measures = field(default_factory=Measures)
    totals: WorkerTotals | None = None  # None: this process is the only one
    metrics: MetricsOptions = MetricsOptions()
    tenancy: Tenancy = Tenancy()
    browsers: BrowserRules = BrowserRules()
    events: EventOptions = field(default_factory=EventOptions)
    outgoing: OutgoingBytes = field(default_factory=OutgoingBytes)
