"""The composition root: the only module that knows which backend implements which port.

`serving.serve` runs the system that is built here; tests and the command line use single parts.
"""

from __future__ import annotations

import asyncio
import importlib.resources
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from hyperfleet.aggregation import BodyProblem
from hyperfleet.api.app import create_app
from hyperfleet.api.audit import describe_event
from hyperfleet.api.context import BrowserRules, Context, MetricsOptions, RequestLimits
from hyperfleet.api.exposition import read_process
from hyperfleet.api.forwarding import Forwarding
from hyperfleet.api.rate_limits import RateLimiter
from hyperfleet.api.wire import present
from hyperfleet.backends.clock import SystemClock
from hyperfleet.documents import DocumentProblem, has_errors, pointer
from hyperfleet.errors import SettingsError
from hyperfleet.event_system import EventSystem
from hyperfleet.model.kind import Kinds
from hyperfleet.ports import Clock, Pruning, Store
from hyperfleet.sentinel.rule_file import load_rules
from hyperfleet.services.audit import AuditedCommitter, Journal
from hyperfleet.services.committer import Capacity, Committer
from hyperfleet.services.deadlines import DeadlineTimer
from hyperfleet.services.ids import new_id
from hyperfleet.services.look_planning import LookRules, find_problems, with_filters
from hyperfleet.services.measures import Measures
from hyperfleet.services.policies import PolicyRegistry, PolicyText
from hyperfleet.services.recomputation import Recomputation
from hyperfleet.services.redaction import Redactor
from hyperfleet.services.resources import CheckSpec
from hyperfleet.services.retention import Retention
from hyperfleet.services.tail import LogTail
from hyperfleet.services.tenancy import Tenancy
from hyperfleet.services.traced_store import trace_store
from hyperfleet.services.worker_totals import MetricsBoard, WorkerTotals
from hyperfleet.settings import (
    AUDIT_WORDS,
    Named,
    Settings,
    parse_address,
    parse_collector,
    parse_database,
    parse_networks,
)

if TYPE_CHECKING:
    from jsonschema import ValidationError
    from starlette.types import ASGIApp

    from hyperfleet.access.authenticator import TokenAuthenticator
    from hyperfleet.backends.shared_board import SharedBoard
    from hyperfleet.backends.telemetry import Telemetry

BUILT_IN: Final = "built in"
# PostgreSQL commits concurrently: one batch is computed while another is flushed. More would only make batches smaller.
_POSTGRES_WRITERS: Final = 2
_LOCAL_NAMES: Final = ("localhost", "127.0.0.1", "::1")
_LAST_SPANS: Final = 3.0  # seconds to export the remaining spans at the end, within the grace period of a pod


class MigratableStore(Store, Protocol):
    """A store with tables that can be brought up to date."""

    async def migrate(self) -> list[str]:
        """Bring the tables up to date; return the names of the applied migrations."""
        ...

    async def schema_version(self) -> int:
        """Return the version of the tables; 0: there are none."""
        ...


class System:
    """A server without its sockets: store, committer, loops and the application, started and stopped together."""

    def __init__(self, settings: Settings, board: MetricsBoard | None = None, *, clock: Clock | None = None) -> None:
        """Build the parts; nothing runs yet. Workers share their metrics through the `board`.

        The `clock` is that of the machine, except when a past is generated.
        """
        kinds = Kinds()
        self.store = open_store(settings.database, settings.pool_size, clock)
        look_rules = read_look_rules(settings.sentinel.config)
        self.policies = PolicyRegistry(
            self.store, kinds, present, lambda: read_policy(settings.policy), look_rules.plan
        )
        self._journal = open_journal(settings)
        committer = Committer if self._journal is None else AuditedCommitter
        self.committer = committer(self.store, self.policies, _capacity(settings))
        recomputation = Recomputation(self.store, self.committer, self.policies)
        self.policies.on_change = recomputation.loop.nudge
        deadlines = DeadlineTimer(self.store, self.committer)
        self.tail = LogTail(self.store, settings.limits.max_watches, _watches_of_each(settings))
        self.events = EventSystem(settings, self.store, clock or SystemClock(), kinds, self.policies, look_rules)
        self.committer.on_commit = self._announce_commit
        retention = Retention(self.store, _prunings(settings), settings.pubsub.max_lag, self.events.drop_overdue)
        self._loops = [deadlines.loop, recomputation.loop, retention.loop, self.tail.loop]
        measures = Measures(settings.metrics.max_adapters)
        measures.observe(self.committer, self.tail)
        measures.observe_upkeep(self._loops, retention)
        totals = WorkerTotals(measures, read_process, board)
        if board is not None:
            self._loops.append(totals.loop)
        self._authenticator = build_authenticator(settings)
        self._telemetry = open_telemetry(settings)
        if self._telemetry is not None:
            self.committer.tracer = self.events.tracer = self._telemetry
            self.committer.on_traced = self.events.note_traces
        self.context = Context(
            store=self.store if self._telemetry is None else trace_store(self.store, self._telemetry),
            committer=self.committer,
            policies=self.policies,
            kinds=kinds,
            check_spec=spec_checker(settings),
            new_id=new_id,
            clock=clock or SystemClock(),
            tail=self.tail,
            limits=_limits(settings),
            redactor=_redactor(settings),
            rate_limiter=_rate_limiter(settings),
            journal=self._journal,
            journals_reports=settings.audit.reports,
            measures=measures,
            totals=totals,
            metrics=_metrics(settings),
            tenancy=Tenancy(settings.tenancy.label),
            browsers=_browsers(settings),
            events=self.events.options,
            authenticator=self._authenticator,
        )
        self.app = create_app(self.context)
        if self._telemetry is not None or settings.access_log:
            self.app = _observe(self.app, settings, self._telemetry)
        if settings.trusted_proxies:
            self.app = Forwarding(self.app, parse_networks(settings.trusted_proxies))
        self._has_policy_file = settings.policy is not None

    async def start(self, *, adopts_policy: bool = False) -> None:
        """Open the store, put our policy in force or adopt the active one, and start everything."""
        await self.store.open()
        await (self.policies.adopt() if adopts_policy else self.policies.activate())
        await self.events.start(self.context.measures)  # first: a new relay must miss nothing that is written here
        self.committer.start()
        for loop in self._loops:
            loop.start()
        if self._authenticator is not None:
            self._authenticator.start()
        if self._has_policy_file and not adopts_policy:  # otherwise another process has logged them
            self.policies.look_for_warnings()

    def _announce_commit(self) -> None:
        self.tail.nudge()
        self.events.nudge()

    def reload_access(self) -> None:
        """Check at once whether tokens or keys have changed."""
        if self._authenticator is not None:
            self._authenticator.reload()

    def reopen_journal(self) -> None:
        """Open the audit log again: its file may have been rotated."""
        if self._journal is not None:
            self._journal.reopen()

    def record_event(self, event: str, *, is_done: bool) -> None:
        """Record an event in the audit log that no request asked for."""
        if self._journal is not None:
            self._journal.write([describe_event(event, self.context.clock.now(), is_done=is_done)])

    async def stop(self) -> None:
        """Finish the accepted work, then close everything."""
        if self._authenticator is not None:
            await self._authenticator.stop()
        for loop in self._loops:
            await loop.stop()
        await self.committer.close()
        await self.events.stop()
        await self.store.close()
        if self._telemetry is not None:
            await asyncio.to_thread(self._telemetry.close, _LAST_SPANS)


def make_board(workers: int) -> SharedBoard:
    """Return shared memory for the metrics of workers; call it before they are forked."""
    from hyperfleet.backends.shared_board import SharedBoard

    return SharedBoard(workers)


def open_store(url: str, pool_size: int = 10, clock: Clock | None = None) -> Store:
    """Return the store that a URL names; nothing is connected yet. Loads only the driver that is needed."""
    if parse_database(url).engine == "memory":
        from hyperfleet.backends.memory import MemoryStore

        return MemoryStore(clock or SystemClock())
    return open_tables(url, pool_size, clock)


def open_tables(url: str, pool_size: int = 10, clock: Clock | None = None) -> MigratableStore:
    """Return the store that a URL names, which must be one with tables. PostgreSQL has a clock of its own."""
    database = parse_database(url)
    if database.engine == "postgresql":
        from hyperfleet.backends.postgres import PostgresStore

        return PostgresStore(database.location, pool_size=pool_size)
    from hyperfleet.backends.sqlite import SqliteStore

    return SqliteStore(Path(database.location), clock or SystemClock())


def build_authenticator(settings: Settings) -> TokenAuthenticator | None:
    """Return the authenticator, if authentication is enabled; reads the files that the settings name."""
    auth = settings.auth
    if not auth.is_enabled:
        return None
    from hyperfleet.access.factory import build_authenticator

    return build_authenticator(auth.tokens, auth.issuers, time.time)


def open_journal(settings: Settings) -> Journal | None:
    """Return the journal of the audit log, if there is one: by default the log, if authentication is enabled."""
    from hyperfleet.backends.journal import FileJournal, LogJournal

    to = settings.audit.to or ("log" if settings.auth.is_enabled else "none")
    if to in AUDIT_WORDS:
        return LogJournal() if to == "log" else None
    try:
        return FileJournal(to)
    except OSError as error:
        raise _unreadable(to, "audit.to", error) from error


def check_tls(settings: Settings) -> tuple[DocumentProblem, ...]:
    """Return the warnings about the files of TLS; raise `SettingsError` if they cannot be used."""
    tls = settings.tls
    if tls.certificate is None or tls.key is None:
        return ()
    from hyperfleet.access.certificates import check_files

    problems = check_files(tls.certificate, tls.key, tls.client_ca, SystemClock().now())
    if has_errors(problems):
        raise SettingsError(problems)
    return problems


def open_telemetry(settings: Settings) -> Telemetry | None:
    """Return the tracer, if a collector is configured. It has a thread, so the process must not fork afterwards."""
    tracing = settings.tracing
    if tracing.endpoint is None:
        return None
    from hyperfleet.backends.telemetry import Telemetry

    return Telemetry(parse_collector(tracing.endpoint), tracing.sample_ratio, tracing.service_name)


def _observe(app: ASGIApp, settings: Settings, telemetry: Telemetry | None) -> ASGIApp:
    """Wrap the application in its observers; the span is outermost, so that the log can name it."""
    from hyperfleet.api.access_log import AccessLog
    from hyperfleet.api.tracing import Tracing

    if settings.access_log:
        app = AccessLog(app)
    return app if telemetry is None else Tracing(app, telemetry)


def read_policy(file: str | None) -> PolicyText:
    """Read a policy file; without one, the built-in policy."""
    if file is None:
        text = importlib.resources.files("hyperfleet").joinpath("policies/default.yaml").read_text("utf-8")
        return PolicyText(text, BUILT_IN, is_built_in=True)
    try:
        return PolicyText(Path(file).read_text("utf-8"), file)
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(file, "policy", error) from error


def read_look_rules(file: str | None) -> LookRules:
    """Read the rules of the sentinel; without a file, the built-in ones. Raises `SettingsError` on any problem."""
    if file is None:
        return LookRules()
    try:
        text = Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(file, "sentinel.config", error) from error
    loaded = load_rules(text, file, find_problems)
    if loaded.rules is None:
        raise SettingsError(loaded.problems)
    return with_filters(loaded.rules)


def spec_checker(settings: Settings) -> CheckSpec:
    """Return the function that compares a spec with the JSON Schema of its kind, for the kinds that have one."""
    redactor = _redactor(settings)
    checks = {kind: _schema_check(kind, file, redactor) for kind, file in settings.spec_schemas.items()}

    def check(kind: str, spec: Mapping[str, Any]) -> tuple[BodyProblem, ...]:
        return checks[kind](spec) if kind in checks else ()

    return check


def _schema_check(kind: str, file: str, redactor: Redactor) -> Callable[[Mapping[str, Any]], tuple[BodyProblem, ...]]:
    from jsonschema import Draft202012Validator, SchemaError

    try:
        schema = msgspec.json.decode(Path(file).read_bytes())
        Draft202012Validator.check_schema(schema)
    except (OSError, UnicodeDecodeError, msgspec.DecodeError, SchemaError) as error:
        raise _unreadable(file, f"specSchemas.{kind}", error) from error
    validator = Draft202012Validator(schema)

    def check(spec: Mapping[str, Any]) -> tuple[BodyProblem, ...]:
        found = sorted(validator.iter_errors(spec), key=lambda error: [str(part) for part in error.path])
        return tuple(
            BodyProblem(pointer.join("/spec", *error.path), "SchemaMismatch", _describe_mismatch(error, redactor))
            for error in found
        )

    return check


def _describe_mismatch(error: ValidationError, redactor: Redactor) -> str:
    """Describe why a spec does not fit; the library's message quotes the value, so not if it contains a secret."""
    if any(map(redactor.is_sensitive, error.path)) or redactor.redact(error.instance).notes:
        return f"does not fit {error.validator!r} of the schema; the value is not shown, as it looks like a secret"
    return str(error.message)


def _unreadable(file: str, key: str, error: Exception) -> SettingsError:
    reason = getattr(error, "strerror", None) or getattr(error, "message", None) or str(error)
    return SettingsError([DocumentProblem(Named(file, 0, 0), f"{key}: {reason}", "Unreadable")])


def _capacity(settings: Settings) -> Capacity:
    is_postgres = parse_database(settings.database).engine == "postgresql"
    return Capacity(
        queue=settings.limits.max_queued_writes,
        batch=settings.limits.max_writes_per_transaction,
        writers=_POSTGRES_WRITERS if is_postgres else 1,
    )


def _limits(settings: Settings) -> RequestLimits:
    limits = settings.limits
    return RequestLimits(
        body_bytes=limits.max_body_bytes,
        batch_bytes=limits.max_batch_bytes,
        depth=limits.max_depth,
        values=limits.max_values,
        batch_values=limits.max_batch_values,
        batch=limits.max_batch_reports,
        time=limits.request_timeout,
    )


def _metrics(settings: Settings) -> MetricsOptions:
    metrics = settings.metrics
    return MetricsOptions(
        public=metrics.public,
        per_resource=metrics.per_resource,
        max_resources=metrics.max_resources,
        max_adapters=metrics.max_adapters,
        refresh_interval=metrics.refresh_interval,
    )


def _redactor(settings: Settings) -> Redactor:
    return Redactor(settings.redaction.keys, is_enabled=settings.redaction.enabled)


def _browsers(settings: Settings) -> BrowserRules:
    """Check names where a web page could use the server without a token: a loopback address is reached by one alone."""
    address = parse_address(settings.listen)
    names = {*_LOCAL_NAMES, address.host, *map(str.lower, settings.allowed_hosts)}
    is_open = address.is_loopback and not settings.auth.is_enabled
    return BrowserRules(frozenset(names) if is_open else None, settings.tls.certificate is not None)


def _rate_limiter(settings: Settings) -> RateLimiter | None:
    limits = settings.limits
    if limits.max_requests_per_second is None and not settings.auth.is_enabled:
        return None
    return RateLimiter(limits.max_requests_per_second, limits.max_burst)


def _watches_of_each(settings: Settings) -> int | None:
    """Return how many watches one caller may have; without authentication, all requests are of one caller."""
    return settings.limits.max_watches_per_caller if settings.auth.is_enabled else None


def _prunings(settings: Settings) -> tuple[Pruning, ...]:
    retention = settings.retention
    return (
        Pruning("events", retention.events),
        Pruning("reports", retention.reports),
        Pruning("transitions", retention.transitions),
        Pruning("keys", retention.idempotency_keys),
    )
