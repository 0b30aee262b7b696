"""The entry point: `Fleet` (synchronous) and `AsyncFleet`. The same operations, written once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from types import TracebackType
from typing import Any, Self, Unpack

from msgspec.structs import replace

from hyperfleet.client import policies, recipes, reporting
from hyperfleet.client.answers.fleet import (
    Adapter,
    Liveness,
    OpenApiDocument,
    Policy,
    PolicyCheck,
    PolicyVersion,
    Problems,
    Readiness,
)
from hyperfleet.client.answers.past import ResourceTransitions
from hyperfleet.client.answers.report import AdapterProgress, BatchResult, FailedAdapter, Outcome
from hyperfleet.client.answers.resource import Cluster, NodePool, PageAnswer, Resource, WatchEvent
from hyperfleet.client.answers.simulation import Simulation, SimulationProgress
from hyperfleet.client.answers.webhook import Webhook, WebhookTest
from hyperfleet.client.effects import ApiRequest, Feed, Flow, Pause
from hyperfleet.client.endpoint import ClientOptions, ServerEndpoint, find_endpoint
from hyperfleet.client.errors import ApiError, ConnectionFailed, FleetError
from hyperfleet.client.events import ServerEvent
from hyperfleet.client.exchange import RetryPolicy, decode_part, fetch, may_repeat, requested_pause
from hyperfleet.client.operation import AsyncFace, Face, SyncFace, feed, operation
from hyperfleet.client.paging import turn_pages
from hyperfleet.client.paths import BASE, CLUSTERS, NODE_POOLS, ResourceLike, ResourceType, quote_segment
from hyperfleet.client.query import Filters, Moment, Moves, query_of
from hyperfleet.client.reporting import BatchReport, ReportFields
from hyperfleet.client.resources import AsyncResources, Resources
from hyperfleet.client.runtime import REAL
from hyperfleet.client.sentinels import SentinelOperations
from hyperfleet.client.subscriptions import AsyncSubscribing, Subscribing
from hyperfleet.client.transport import AsyncLink, Link, connect, connect_async
from hyperfleet.client.waiting import VersionCallback
from hyperfleet.client.watching import Watch, read_result
from hyperfleet.model.kind import Kind


class FleetOperations(SentinelOperations):
    """The operations that are not about resources of one kind."""

    # ── reporting ────────────────────────────────────────────────────────────────────────────────────────────────

    @operation
    def report(self, subject: ResourceLike, adapter: str, **words: Unpack[ReportFields]) -> Flow[Outcome]:
        """Report an adapter's work on a resource; the one call that the author of an adapter needs.

        `fleet.report(cluster, "dns", available=True, reason="RecordsCreated", data={"records": 5})`. Safe to
        repeat. A late report is not an error but an outcome, `discarded`.
        """
        return (yield from reporting.report(subject, adapter, words, self._retry))

    @operation
    def report_batch(self, reports: Iterable[BatchReport | Mapping[str, Any]]) -> Flow[BatchResult]:
        """Send many reports on many resources; each is accepted or refused on its own."""
        return (yield from reporting.report_batch(reports, self._retry))

    # ── the guide's four recipes ─────────────────────────────────────────────────────────────────────────────────

    @operation
    def wait_for_adapter(
        self,
        subject: ResourceLike,
        adapter: str,
        *,
        timeout: float = 600.0,
        on_version: VersionCallback[Resource] | None = None,
    ) -> Flow[Resource]:
        """Wait until an adapter has completed the present generation; raise `WaitFailed` as soon as it fails."""
        return (yield from recipes.wait_for_adapter(subject, adapter, timeout, self._retry, on_version))

    @operation
    def is_ready(self, subject: ResourceLike) -> Flow[bool]:
        """Return whether a resource is Ready now."""
        return (yield from recipes.is_ready(subject, self._retry))

    @operation
    def failed_adapters(self, subject: ResourceLike) -> Flow[tuple[FailedAdapter, ...]]:
        """Return the adapters that failed on the present generation of a resource, and why."""
        return (yield from recipes.failed_adapters(subject, self._retry))

    @operation
    def progress(self, subject: ResourceLike) -> Flow[tuple[AdapterProgress, ...]]:
        """Return the progress of each adapter on a resource, in the order of the policy."""
        return (yield from recipes.progress(subject, self._retry))

    # ── the fleet ────────────────────────────────────────────────────────────────────────────────────────────────

    @operation
    def problems(self, *, limit: int | None = None, **filters: Unpack[Filters]) -> Flow[Problems]:
        """Return what fails, grouped by cause."""
        query = query_of({**filters, "limit": limit})
        return (yield from fetch(Problems, ApiRequest("GET", f"{BASE}/problems", query), self._retry))

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
        yield from turn_pages(ResourceTransitions, f"{BASE}/transitions", given, limit, self._retry)

    @feed
    def watch_transitions(
        self, *, after: int | None = None, since: Moment | None = None, **moves: Unpack[Moves]
    ) -> Feed[WatchEvent[ResourceTransitions]]:
        """Follow what changes over the whole fleet, from now on, `since` a time or `after` a position.

        Events are `transitions`, each with the change as `resource`. `relist`: what came next was pruned, so some
        changes were missed; it goes on from now, or from `since`.
        """
        request = ApiRequest("GET", f"{BASE}/transitions", query_of({**moves, "since": since}))
        yield from Watch(request, ResourceTransitions, self._retry, after=after).follow()

    @operation
    def adapters(self) -> Flow[tuple[Adapter, ...]]:
        """List every adapter that has reported or is required."""
        page = yield from fetch(PageAnswer, ApiRequest("GET", f"{BASE}/adapters"), self._retry)
        return tuple([decode_part(Adapter, raw) for raw in page.items])

    @operation
    def adapter(self, name: str) -> Flow[Adapter]:
        """Read one adapter, and which resources it blocks."""
        return (yield from fetch(Adapter, ApiRequest("GET", f"{BASE}/adapters/{quote_segment(name)}"), self._retry))

    @feed
    def watch_adapters(self) -> Feed[WatchEvent[Adapter]]:
        """Follow all adapters as they change; after a lost connection comes a `relist`, then all of them again."""
        watch = Watch(ApiRequest("GET", f"{BASE}/adapters"), Adapter, self._retry)
        yield from watch.follow(is_log=False)

    # ── the policy ───────────────────────────────────────────────────────────────────────────────────────────────

    @operation
    def policy(self) -> Flow[Policy]:
        """Read the policy in force."""
        return (yield from policies.read_policy(self._retry))

    @operation
    def put_policy(self, policy: str, *, replaces: int) -> Flow[Policy]:
        """Put another policy (YAML or JSON) in force in place of a version; `Invalid` has every problem with its place.

        Raises `PreconditionFailed` if another version is in force by now: read it, and decide again.
        """
        return (yield from policies.put_policy(policy, replaces, self._retry))

    @operation
    def check_policy(self, policy: str, *, replaces: int) -> Flow[PolicyCheck]:
        """Check a policy as `put_policy` does, without putting it in force; also return what is likely wrong."""
        return (yield from policies.check_policy(policy, replaces, self._retry))

    @feed
    def policy_versions(self, *, limit: int | None = None) -> Feed[PolicyVersion]:
        """List the versions of the policy, the newest first, without their texts."""
        yield from policies.list_versions(limit, self._retry)

    @operation
    def policy_version(self, version: int) -> Flow[PolicyVersion]:
        """Read one version of the policy with its text."""
        return (yield from policies.read_version(version, self._retry))

    @operation
    def rollback_policy(self, version: int, *, replaces: int) -> Flow[Policy]:
        """Put the text of an earlier version in force again, as a new version, in place of the one in force."""
        return (yield from policies.roll_back(version, replaces, self._retry))

    @operation
    def reload_policy(self) -> Flow[Policy]:
        """Put the server's policy file in force, changed or not; `Invalid` has every problem with its place."""
        return (yield from fetch(Policy, ApiRequest("POST", f"{BASE}/policy:reload"), self._retry))

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
        """Return what another policy (YAML or JSON) would change; with `replay="7d"`, also in the past."""
        query = query_of({**filters, "replay": replay, "limit": limit})
        request = ApiRequest("POST", f"{BASE}/policy:simulate", query, policies.YAML, policy.encode())

        def see(event: ServerEvent) -> None:
            if on_progress is not None and event.name == "progress":
                on_progress(decode_part(SimulationProgress, event.data))

        result = yield from _read_result(request, self._retry, see)
        return decode_part(Simulation, result.data)

    # ── webhooks ─────────────────────────────────────────────────────────────────────────────────────────────────

    @operation
    def webhooks(self) -> Flow[tuple[Webhook, ...]]:
        """List the webhooks of the server, and how they are doing; for administrators of the whole fleet."""
        page = yield from fetch(PageAnswer, ApiRequest("GET", f"{BASE}/webhooks"), self._retry)
        return tuple([decode_part(Webhook, raw) for raw in page.items])

    @operation
    def webhook(self, name: str) -> Flow[Webhook]:
        """Read one webhook."""
        return (yield from fetch(Webhook, ApiRequest("GET", f"{BASE}/webhooks/{quote_segment(name)}"), self._retry))

    @operation
    def test_webhook(self, name: str) -> Flow[WebhookTest]:
        """Send a test message to the receiver of a webhook, and return what it answered; without retries."""
        request = ApiRequest("POST", f"{BASE}/webhooks/{quote_segment(name)}:test")
        return (yield from fetch(WebhookTest, request, self._no_retry))

    @operation
    def enable_webhook(self, name: str) -> Flow[Webhook]:
        """Let a disabled webhook send again."""
        request = ApiRequest("POST", f"{BASE}/webhooks/{quote_segment(name)}:enable")
        return (yield from fetch(Webhook, request, self._retry))

    # ── the server ───────────────────────────────────────────────────────────────────────────────────────────────

    @operation
    def health(self) -> Flow[Liveness]:
        """Return whether the server's process answers; without retries."""
        return (yield from fetch(Liveness, ApiRequest("GET", "/healthz"), self._no_retry))

    @operation
    def ready(self) -> Flow[Readiness]:
        """Return whether the server is ready, and if not, why; without retries."""
        return (yield from fetch(Readiness, ApiRequest("GET", "/readyz", answers=(503,)), self._no_retry))

    @operation
    def version(self) -> Flow[str]:
        """Return the version of the server."""
        description = yield from fetch(OpenApiDocument, ApiRequest("GET", "/openapi.json"), self._retry)
        return description.info.version

    @property
    def _no_retry(self) -> RetryPolicy:
        return replace(self._retry, retries=0)


def _read_result(request: ApiRequest, retry: RetryPolicy, see: Callable[[ServerEvent], None]) -> Flow[ServerEvent]:
    """Read a stream until its result; start over if the connection is lost or the server is busy."""
    attempts = retry.begin()
    while True:
        try:
            return (yield from read_result(request, attempts.timeout, see))
        except (ConnectionFailed, ApiError) as error:
            failure: FleetError = error
            pause = attempts.pause(requested_pause(error)) if may_repeat(request, error) else None
        if pause is None:
            raise failure
        yield Pause(pause)


# ── the reports of one adapter ───────────────────────────────────────────────────────────────────────────────────


class ReporterOperations(Face):
    """The reports of one adapter, each with the three conditions of the contract."""

    adapter: str

    @operation
    def report(self, subject: ResourceLike, **words: Unpack[ReportFields]) -> Flow[Outcome]:
        """Report the adapter's work on a resource."""
        return (yield from reporting.report(subject, self.adapter, words, self._retry))


class Reporter(ReporterOperations, SyncFace):
    """Reports as one adapter, synchronously."""

    def __init__(self, link: Link, adapter: str) -> None:
        """Report as `adapter`."""
        self._link = link
        self.adapter = adapter


class AsyncReporter(ReporterOperations, AsyncFace):
    """Reports as one adapter, asynchronously."""

    def __init__(self, link: AsyncLink, adapter: str) -> None:
        """Report as `adapter`."""
        self._link = link
        self.adapter = adapter


# ── the two faces ────────────────────────────────────────────────────────────────────────────────────────────────


def _prepare(server: str | None, options: ClientOptions) -> tuple[ServerEndpoint, RetryPolicy]:
    default = RetryPolicy()
    retry = RetryPolicy(
        options.get("timeout", default.timeout),
        options.get("deadline", default.deadline),
        options.get("retries", default.retries),
        options.get("runtime", REAL),
    )
    return find_endpoint(server, options), retry


class Fleet(FleetOperations, Subscribing):
    """A fleet, for synchronous code. Several threads may use it; close it, or use it in a `with` block."""

    def __init__(self, server: str | None = None, **options: Unpack[ClientOptions]) -> None:
        """Use the server at an address, by default that of HYPERFLEET_SERVER; nothing is sent yet."""
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
        return Resources(self._link, ResourceType(kind, Resource, parent))

    def reporter(self, adapter: str) -> Reporter:
        """Return a reporter for one adapter."""
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


class AsyncFleet(FleetOperations, AsyncSubscribing):
    """A fleet, for asynchronous code; close it with `aclose`, or use it in an `async with` block."""

    def __init__(self, server: str | None = None, **options: Unpack[ClientOptions]) -> None:
        """Use the server at an address, by default that of HYPERFLEET_SERVER; nothing is sent yet."""
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
        return AsyncResources(self._link, ResourceType(kind, Resource, parent))

    def reporter(self, adapter: str) -> AsyncReporter:
        """Return a reporter for one adapter."""
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
