"""The composition root: the only place that knows which backend stands behind which port.

`serving.serve` runs what is put together here; tests and the command line take single parts.
"""

from __future__ import annotations

import importlib.resources
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from hyperfleet.aggregation import BodyProblem
from hyperfleet.api.app import create_app
from hyperfleet.api.context import Context, Limits
from hyperfleet.api.wire import present
from hyperfleet.backends.clock import SystemClock
from hyperfleet.documents import Problem
from hyperfleet.errors import SettingsError
from hyperfleet.model.kind import Kinds
from hyperfleet.ports import Clock, Pruning, Store
from hyperfleet.services.committer import Capacity, Committer
from hyperfleet.services.ids import new_id
from hyperfleet.services.policies import PolicyBook, PolicyText
from hyperfleet.services.recomputation import Recomputation
from hyperfleet.services.resources import CheckSpec
from hyperfleet.services.retention import Retention
from hyperfleet.services.tail import Tail
from hyperfleet.services.timekeeper import Timekeeper
from hyperfleet.settings import Named, Settings, parse_database

BUILT_IN: Final = "built in"
# PostgreSQL commits for several at once; the flush of one batch hides the computing of the next.
_POSTGRES_WRITERS: Final = 2


class MigratableStore(Store, Protocol):
    """A store with tables that can be brought up to date."""

    async def migrate(self) -> list[str]:
        """Bring the tables up to date; return the names of what was done."""
        ...

    async def schema_version(self) -> int:
        """Return the version of the tables; 0: there are none."""
        ...


class System:
    """A server without its sockets: store, committer, loops and the application, started and stopped together."""

    def __init__(self, settings: Settings, *, clock: Clock | None = None) -> None:
        """Put the parts together; nothing runs yet. The `clock` is that of the machine unless a past is made up."""
        kinds = Kinds()
        self.store = open_store(settings.database, settings.pool_size, clock)
        self.policies = PolicyBook(self.store, kinds, present, lambda: read_policy(settings.policy))
        self.committer = Committer(self.store, self.policies, _capacity(settings))
        recomputation = Recomputation(self.store, self.committer, self.policies)
        self.policies.on_change = recomputation.loop.nudge
        timekeeper = Timekeeper(self.store, self.committer)
        self.tail = Tail(self.store, settings.limits.max_watches)
        self.committer.on_commit = self.tail.nudge
        retention = Retention(self.store, _prunings(settings))
        self._loops = [timekeeper.loop, recomputation.loop, retention.loop, self.tail.loop]
        self.context = Context(
            store=self.store,
            committer=self.committer,
            policies=self.policies,
            kinds=kinds,
            check_spec=spec_checker(settings),
            new_id=new_id,
            clock=clock or SystemClock(),
            tail=self.tail,
            limits=_limits(settings),
        )
        self.app = create_app(self.context)
        self._has_policy_file = settings.policy is not None

    async def start(self, *, adopts_policy: bool = False) -> None:
        """Open the store, put our policy in force, or adopt the one that is, set everything going."""
        await self.store.open()
        await (self.policies.adopt() if adopts_policy else self.policies.activate())
        self.committer.start()
        for loop in self._loops:
            loop.start()
        if self._has_policy_file and not adopts_policy:  # else somebody else was told
            self.policies.look_for_warnings()

    async def stop(self) -> None:
        """Finish what was accepted, then let go."""
        for loop in self._loops:
            await loop.stop()
        await self.committer.close()
        await self.store.close()


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


def read_policy(file: str | None) -> PolicyText:
    """Read a policy file; without one, the policy that is built in."""
    if file is None:
        text = importlib.resources.files("hyperfleet").joinpath("policies/default.yaml").read_text("utf-8")
        return PolicyText(text, BUILT_IN, is_built_in=True)
    try:
        return PolicyText(Path(file).read_text("utf-8"), file)
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(file, "policy", error) from error


def spec_checker(settings: Settings) -> CheckSpec:
    """Return the function that compares a spec with the JSON Schema of its kind, for the kinds that have one."""
    checks = {kind: _schema_check(kind, file) for kind, file in settings.spec_schemas.items()}

    def check(kind: str, spec: Mapping[str, Any]) -> tuple[BodyProblem, ...]:
        return checks[kind](spec) if kind in checks else ()

    return check


def _schema_check(kind: str, file: str) -> Callable[[Mapping[str, Any]], tuple[BodyProblem, ...]]:
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
            BodyProblem("/spec" + "".join(f"/{_escape(part)}" for part in error.path), "SchemaMismatch", error.message)
            for error in found
        )

    return check


def _escape(part: object) -> str:
    return str(part).replace("~", "~0").replace("/", "~1")


def _unreadable(file: str, key: str, error: Exception) -> SettingsError:
    reason = getattr(error, "strerror", None) or getattr(error, "message", None) or str(error)
    return SettingsError([Problem(Named(file, 0, 0), f"{key}: {reason}", "Unreadable")])


def _capacity(settings: Settings) -> Capacity:
    is_postgres = parse_database(settings.database).engine == "postgresql"
    return Capacity(
        queue=settings.limits.max_queued_writes,
        batch=settings.limits.max_writes_per_transaction,
        writers=_POSTGRES_WRITERS if is_postgres else 1,
    )


def _limits(settings: Settings) -> Limits:
    limits = settings.limits
    return Limits(
        body_bytes=limits.max_body_bytes,
        batch_bytes=limits.max_batch_bytes,
        depth=limits.max_depth,
        batch=limits.max_batch_reports,
        time=limits.request_timeout,
    )


def _prunings(settings: Settings) -> tuple[Pruning, ...]:
    retention = settings.retention
    return (
        Pruning("events", retention.events),
        Pruning("reports", retention.reports),
        Pruning("transitions", retention.transitions),
        Pruning("keys", retention.idempotency_keys),
    )
