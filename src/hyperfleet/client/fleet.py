"""The front door: `Fleet` for plain code, `AsyncFleet` for an event loop. The same operations, written once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from types import TracebackType
from typing import Any, Final, Self, Unpack

from msgspec.structs import replace

from hyperfleet.client import questions, reporting
from hyperfleet.client.answers.fleet import Adapter, Description, Liveness, Policy, Problems, Readiness
from hyperfleet.client.answers.past import ResourceTransitions
from hyperfleet.client.answers.report import AdapterProgress, BatchResult, FailedAdapter, Outcome
from hyperfleet.client.answers.resource import Cluster, NodePool, PageAnswer, Resource, WatchEvent
from hyperfleet.client.answers.simulation import Simulation, SimulationProgress
from hyperfleet.client.effects import Feed, Flow, Pause, Request
from hyperfleet.client.endpoint import Endpoint, Options, find_endpoint
from hyperfleet.client.errors import ApiError, ConnectionFailed, FleetError
from hyperfleet.client.events import ServerEvent
from hyperfleet.client.exchange import Patience, decode_part, fetch, may_repeat, told_pause
from hyperfleet.client.operation import AsyncFace, Face, SyncFace, feed, operation
from hyperfleet.client.paging import turn_pages
from hyperfleet.client.performing import AsyncLink, Link, connect, connect_async
from hyperfleet.client.places import BASE, CLUSTERS, NODE_POOLS, Place, Subject, quoted
from hyperfleet.client.query import Filters, Moment, Moves, query_of
from hyperfleet.client.reporting import BatchReport, Words
from hyperfleet.client.resources import AsyncResources, Resources
from hyperfleet.client.surroundings import REAL
from hyperfleet.client.waiting import Seen
from hyperfleet.client.watching import Watch, conclude
from hyperfleet.model.kind import Kind

_YAML: Final = {"Content-Type": "application/yaml"}


class FleetOperations(Face):
    """What can be done beside the operations on resources of one kind."""

    # ── reporting ────────────────────────────────────────────────────────────────────────────────────────────────

    @operation
    def report(self, subject: Subject, adapter: str, **words: Unpack[Words]) -> Flow[Outcome]:
        """Say how an adapter's work on a resource goes; the one call that the author of an adapter needs.

        `fleet.report(cluster, "dns", available=True, reason="RecordsCreated", data={"records": 5})`. Safe to be
        repeated. A report that came too late is no error but an outcome, `discarded`.
        """
        return (yield from reporting.report(subject, adapter, words, self._patience))

    @operation
    def report_batch(self, reports: Iterable[BatchReport | Mapping[str, Any]]) -> Flow[BatchResult]:
        """Send many reports on many resources; each is taken in or refused as if it had come alone."""
        return (yield from reporting.report_batch(reports, self._patience))

    # ── the guide's four questions ───────────────────────────────────────────────────────────────────────────────

    @operation
    def wait_for_adapter(
        self,
        subject: Subject,
        adapter: str,
        *,
        timeout: float = 600.0,
        on_version: Seen[Resource] | None = None,
    ) -> Flow[Resource]:
        """Wait until an adapter has completed the present generation; raise `WaitFailed` as soon as it fails."""
        return (yield from questions.wait_for_adapter(subject, adapter, timeout, self._patience, on_version))

    @operation
    def is_ready(self, subject: Subject) -> Flow[bool]:
        """Tell whether a resource is Ready now."""
        return (yield from questions.is_ready(subject, self._patience))

    @operation
    def failed_adapters(self, subject: Subject) -> Flow[tuple[FailedAdapter, ...]]:
        """Return the adapters that failed on the present generation of a resource, and why."""
        return (yield from questions.failed_adapters(subject, self._patience))

    @operation
    def progress(self, subject: Subject) -> Flow[tuple[AdapterProgress, ...]]:
        """Return how far each adapter is with a resource, in the order of the policy."""
        return (yield from questions.progress(subject, self._patience))

    # ── the fleet ────────────────────────────────────────────────────────────────────────────────────────────────

    @operation
    def problems(self, *, limit: int | None = None, **filters: Unpack[Filters]) -> Flow[Problems]:
        """Ask what fails, grouped by cause."""
        query = query_of({**filters, "limit": limit})
        return (yield from fetch(Problems, Request("GET", f"{BASE}/problems", query), self._patience))

    @feed
    def transitions(
        self,
        *,
        after: int | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        order: str | None = None,
        limit: int | None = None,
        **moves: Unpack[Moves],
    ) -> Feed[ResourceTransitions]:
        """Go through what changed over the whole fleet: the newest first, or the oldest first `after` a position.

        `order` is `asc` or `desc`. Filters hold for a resource as it was right after the change.
        """
        given = {**moves, "after": after, "since": since, "until": until, "order": order}
        yield from turn_pages(ResourceTransitions, f"{BASE}/transitions", given, limit, self._patience)

    @feed
    def watch_transitions(
        self, *, after: int | None = None, since: Moment | None = None, **moves: Unpack[Moves]
    ) -> Feed[WatchEvent[ResourceTransitions]]:
        """Follow what changes over the whole fleet, from now on, `since` a time or `after` a position.

        Events are `transitions`, each with the change as `resource`. `relist`: what came next was pruned, so some
        changes were missed; it goes on from now, or from `since`.
        """
        request = Request("GET", f"{BASE}/transitions", query_of({**moves, "since": since}))
        yield from Watch(request, ResourceTransitions, self._patience, after=after).follow()

    @operation
    def adapters(self) -> Flow[tuple[Adapter, ...]]:
        """List every adapter that was heard of or is waited for."""
        page = yield from fetch(PageAnswer, Request("GET", f"{BASE}/adapters"), self._patience)
        return tuple([decode_part(Adapter, raw) for raw in page.items])

    @operation
    def adapter(self, name: str) -> Flow[Adapter]:
        """Read one adapter, and which resources wait for it."""
        return (yield from fetch(Adapter, Request("GET", f"{BASE}/adapters/{quoted(name)}"), self._patience))

    @feed
    def watch_adapters(self) -> Feed[WatchEvent[Adapter]]:
        """Follow all adapters as they change; after a lost connection all are told again, after a `relist`."""
        watch = Watch(Request("GET", f"{BASE}/adapters"), Adapter, self._patience)
        yield from watch.follow(is_log=False)

    # ── the policy ───────────────────────────────────────────────────────────────────────────────────────────────

    @operation
    def policy(self) -> Flow[Policy]:
        """Read the policy in force."""
        return (yield from fetch(Policy, Request("GET", f"{BASE}/policy"), self._patience))

    @operation
    def reload_policy(self) -> Flow[Policy]:
        """Put what now stands in the server's policy file in force; `Invalid` has every problem with its place."""
        return (yield from fetch(Policy, Request("POST", f"{BASE}/policy:reload"), self._patience))

    @operation
    def simulate(
        self,
        policy: str,
        *,
        on_progress: Callable[[SimulationProgress], None] | None = None,
        replay: str | None = None,
        limit: int | None = None,
        **filters: Unpack[Filters],
    ) -> Flow[Simulation]:
        """Ask what another policy (YAML or JSON) would change; with `replay="7d"`, also what it would have been."""
        query = query_of({**filters, "replay": replay, "limit": limit})
        request = Request("POST", f"{BASE}/policy:simulate", query, _YAML, policy.encode())

        def see(event: ServerEvent) -> None:
            if on_progress is not None and event.name == "progress":
                on_progress(decode_part(SimulationProgress, event.data))

        result = yield from _persist(request, self._patience, see)
        return decode_part(Simulation, result.data)

    # ── the server ───────────────────────────────────────────────────────────────────────────────────────────────

    @operation
    def health(self) -> Flow[Liveness]:
        """Ask whether the server's process answers; asked once, and not tried again."""
        return (yield from fetch(Liveness, Request("GET", "/healthz"), self._impatience))

    @operation
    def ready(self) -> Flow[Readiness]:
        """Ask whether the server can do its work, and if not, why; asked once, and not tried again."""
        return (yield from fetch(Readiness, Request("GET", "/readyz", answers=(503,)), self._impatience))

    @operation
    def version(self) -> Flow[str]:
        """Ask for the version of the server."""
        description = yield from fetch(Description, Request("GET", "/openapi.json"), self._patience)
        return description.info.version

    @property
    def _impatience(self) -> Patience:
        return replace(self._patience, retries=0)


def _persist(request: Request, patience: Patience, see: Callable[[ServerEvent], None]) -> Flow[ServerEvent]:
    """Listen to a stream until its result; begin anew if it is lost on the way, or there is no room now."""
    attempts = patience.begin()
    while True:
        try:
            return (yield from conclude(request, attempts.timeout, see))
        except (ConnectionFailed, ApiError) as error:
            failure: FleetError = error
            pause = attempts.pause(told_pause(error)) if may_repeat(request, error) else None
        if pause is None:
            raise failure
        yield Pause(pause)


# ── the reports of one adapter ───────────────────────────────────────────────────────────────────────────────────


class ReporterOperations(Face):
    """What one adapter says. Every word is a report with all three conditions of the contract."""

    adapter: str

    @operation
    def report(self, subject: Subject, **words: Unpack[Words]) -> Flow[Outcome]:
        """Say how the work on a resource goes, in your own words."""
        return (yield from reporting.report(subject, self.adapter, words, self._patience))


class Reporter(ReporterOperations, SyncFace):
    """An adapter that reports, for plain code."""

    def __init__(self, link: Link, adapter: str) -> None:
        """Report as `adapter`."""
        self._link = link
        self.adapter = adapter


class AsyncReporter(ReporterOperations, AsyncFace):
    """An adapter that reports, for code in an event loop."""

    def __init__(self, link: AsyncLink, adapter: str) -> None:
        """Report as `adapter`."""
        self._link = link
        self.adapter = adapter


# ── the two faces ────────────────────────────────────────────────────────────────────────────────────────────────


def _prepare(server: str | None, options: Options) -> tuple[Endpoint, Patience]:
    default = Patience()
    patience = Patience(
        options.get("timeout", default.timeout),
        options.get("deadline", default.deadline),
        options.get("retries", default.retries),
        options.get("surroundings", REAL),
    )
    return find_endpoint(server, options), patience


class Fleet(FleetOperations, SyncFace):
    """A fleet, for plain code. It may be used by several threads; close it, or use it in a `with` block."""

    def __init__(self, server: str | None = None, **options: Unpack[Options]) -> None:
        """Reach the server at an address, or at that of HYPERFLEET_SERVER; nothing is sent yet."""
        self._link = connect(*_prepare(server, options), options)

    @cached_property
    def clusters(self) -> Resources[Cluster]:
        """Return the operations on clusters."""
        return Resources(self._link, CLUSTERS)

    @cached_property
    def node_pools(self) -> Resources[NodePool]:
        """Return the operations on node pools."""
        return Resources(self._link, NODE_POOLS)

    def resources(self, kind: Kind, parent: Kind | None = None) -> Resources[Resource]:
        """Return the operations on resources of a kind that the server's settings add."""
        return Resources(self._link, Place(kind, Resource, parent))

    def reporter(self, adapter: str) -> Reporter:
        """Return somebody who reports as one adapter."""
        return Reporter(self._link, adapter)

    def close(self) -> None:
        """Close all connections."""
        self._link.client.close()

    def __enter__(self) -> Self:
        """Close with the block."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close all connections."""
        self.close()


class AsyncFleet(FleetOperations, AsyncFace):
    """A fleet, for code in an event loop; close it with `aclose`, or use it in an `async with` block."""

    def __init__(self, server: str | None = None, **options: Unpack[Options]) -> None:
        """Reach the server at an address, or at that of HYPERFLEET_SERVER; nothing is sent yet."""
        self._link = connect_async(*_prepare(server, options), options)

    @cached_property
    def clusters(self) -> AsyncResources[Cluster]:
        """Return the operations on clusters."""
        return AsyncResources(self._link, CLUSTERS)

    @cached_property
    def node_pools(self) -> AsyncResources[NodePool]:
        """Return the operations on node pools."""
        return AsyncResources(self._link, NODE_POOLS)

    def resources(self, kind: Kind, parent: Kind | None = None) -> AsyncResources[Resource]:
        """Return the operations on resources of a kind that the server's settings add."""
        return AsyncResources(self._link, Place(kind, Resource, parent))

    def reporter(self, adapter: str) -> AsyncReporter:
        """Return somebody who reports as one adapter."""
        return AsyncReporter(self._link, adapter)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._link.client.aclose()

    async def __aenter__(self) -> Self:
        """Close with the block."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        """Close all connections."""
        await self.aclose()
