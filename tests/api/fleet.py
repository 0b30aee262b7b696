"""A server for tests without a socket: the real application on a real store, asked over HTTP in one process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from hyperfleet.aggregation import BodyProblem
from hyperfleet.api.app import create_app
from hyperfleet.api.context import Context, EventOptions, RequestLimits
from hyperfleet.api.wire import BASE, present
from hyperfleet.events.in_process import InProcessBroker
from hyperfleet.events.looking import Looking
from hyperfleet.events.making import Origin
from hyperfleet.events.webhook_sender import WebhookServices
from hyperfleet.events.webhook_target import Webhook
from hyperfleet.events.webhooks import Webhooks
from hyperfleet.model.kind import Kinds
from hyperfleet.ports import Store
from hyperfleet.services.audit import AuditedCommitter
from hyperfleet.services.committer import Capacity, Committer
from hyperfleet.services.ids import new_id
from hyperfleet.services.look_planning import LookRules
from hyperfleet.services.measures import Measures
from hyperfleet.services.policies import PolicyRegistry, PolicyText
from hyperfleet.services.tail import LogTail
from tests.world import body

ROOT = "http://fleet"
QUEUE = 1_000  # writes that may wait
WATCHES = 20
WATCHES_OF_EACH = 10
START = datetime(2025, 10, 17, 12, 0, 0, tzinfo=UTC)

POLICY = """
requiredAdapters: [validation, dns]
clusterConditions:
  - type: AllDone
    evaluate:
      expr: all(requiredAdapters, .state == "Completed")
phases: {ready: {requiredConditions: [{type: AllDone, status: "True"}]}}
"""

SPEC = {"region": "us-east-1", "nodes": {"count": 3, "size": "m5.large"}}


# A webhook that never sends; its name has no address.
OPS = Webhook(name="ops", url="https://hooks.example.org/s3cr3t-path", format="slack")


class HandClock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.time = START

    def now(self) -> datetime:
        """Return the time it was set to."""
        return self.time

    def pass_time(self, duration: timedelta) -> None:
        """Move on."""
        self.time += duration


def origin_of(store_id: str) -> Origin:
    """Return where events of a store come from."""
    kinds = Kinds()
    parents = {kind.name: kind.parent for kind in kinds}
    return Origin(store_id, lambda kind, id_, _: f"{BASE}/{kind}/{id_}", parents.get)


class Fleet:
    """A client of a server of its own. Paths are below the base path, or whole addresses that begin with `ROOT`."""

    def __init__(
        self, store: Store, clock: HandClock, runner: asyncio.Runner, limits: RequestLimits, policy: str, **more: Any
    ) -> None:
        self.store = store
        self.clock = clock
        self.policy = policy
        self.limits = limits
        self._runner = runner
        kinds = Kinds()
        look_rules = more.pop("look_rules", LookRules())
        self.policies = PolicyRegistry(
            store, kinds, present, lambda: PolicyText(self.policy, "policy.yaml"), look_rules.plan
        )
        committer = AuditedCommitter if "journal" in more else Committer
        self.committer = committer(store, self.policies, Capacity(queue=QUEUE))
        self.tail = LogTail(store, WATCHES, WATCHES_OF_EACH if "authenticator" in more else None)
        self.committer.on_commit = self.tail.nudge
        self.measures = Measures()
        self.measures.observe(self.committer, self.tail)
        broker = InProcessBroker(store, clock)
        looking = Looking(store, self.policies, broker, origin_of, look_rules)
        self.context = Context(
            store,
            self.committer,
            self.policies,
            kinds,
            check_spec,
            new_id,
            clock,
            self.tail,
            limits,
            measures=self.measures,
            events=EventOptions(queues=broker, looking=looking, webhooks=self._webhooks(kinds)),
            **more,
        )
        self.app = create_app(self.context)
        self._http = httpx.AsyncClient(transport=httpx.ASGITransport(self.app))
        del self._http.headers["accept-encoding"]  # so that what is read most is read by the fast lane, too

    def _webhooks(self, kinds: Kinds) -> Webhooks:
        async def resolve(_: str, __: int) -> tuple[str, ...]:
            return ()

        origin = Origin("test", lambda _, id_, __: id_, lambda _: None)
        services = WebhookServices(self.store, self.policies, kinds, self.clock, "fleet", lambda _: origin)
        return Webhooks([OPS], services, resolve)

    def request(self, method: str, path: str, **more: Any) -> httpx.Response:
        """Send a request and return the response; a body is JSON if nothing else is said."""
        if more.get("content"):
            more["headers"] = {"Content-Type": "application/json", **dict(more.get("headers") or {})}
        url = path if path.startswith(ROOT) else f"{ROOT}{BASE}{path}"
        response = self._runner.run(self._http.request(method, url, **more))
        assert response.headers["x-request-id"], "every answer has a request id"
        return response

    def get(self, path: str, **more: Any) -> httpx.Response:
        """Send a GET."""
        return self.request("GET", path, **more)

    def post(self, path: str, json: Any = None, **more: Any) -> httpx.Response:
        """Send a POST."""
        return self.request("POST", path, **({} if json is None else {"json": json}), **more)

    def put(self, path: str, json: Any, **more: Any) -> httpx.Response:
        """Send a PUT."""
        return self.request("PUT", path, json=json, **more)

    def patch(self, path: str, json: Any, **more: Any) -> httpx.Response:
        """Send a PATCH."""
        return self.request("PATCH", path, json=json, **more)

    def delete(self, path: str, **more: Any) -> httpx.Response:
        """Send a DELETE."""
        return self.request("DELETE", path, **more)

    def create(self, name: str = "my-cluster", path: str = "/clusters", **more: Any) -> dict[str, Any]:
        """Create a resource, which must succeed, and return it."""
        response = self.post(path, {"name": name, "spec": SPEC, **more})
        assert response.status_code == 201, response.text
        return dict(response.json())

    def create_pool(self, cluster: Mapping[str, Any], name: str = "workers", **more: Any) -> dict[str, Any]:
        """Create a node pool."""
        return self.create(name, f"/clusters/{cluster['id']}/nodepools", **more)

    def report(self, resource: Mapping[str, Any], adapter: str, available: str = "True", **more: Any) -> dict[str, Any]:
        """Report on a resource the contract's way, which must succeed, and return the answer."""
        response = self.post(f"{path_of(resource)}/statuses", body(adapter, available, **more))
        assert response.status_code == 200, response.text
        return dict(response.json())

    def fetch_raw(self, path: str, headers: Mapping[str, str]) -> bytes:
        """GET what goes over the wire, not inflated."""

        async def fetch() -> bytes:
            async with self._http.stream("GET", f"{ROOT}{BASE}{path}", headers=headers) as response:
                return b"".join([chunk async for chunk in response.aiter_raw()])

        return self._runner.run(fetch())

    def run(self, coroutine: Any) -> Any:
        """Wait for something that is not a request."""
        return self._runner.run(coroutine)

    async def start(self) -> None:
        """Open the store and set the committer going."""
        await self.store.open()
        await self.policies.activate()
        self.committer.start()
        self.tail.loop.start()

    async def stop(self) -> None:
        """Finish what is under way."""
        await self._http.aclose()
        self.tail.close()
        await self.tail.loop.stop()
        await self.committer.close()
        await self.store.close()


@contextmanager
def open_fleet(
    store: Store, clock: HandClock, limits: RequestLimits, policy: str = POLICY, **more: Any
) -> Iterator[Fleet]:
    """Run a server for a while; `more` goes into its context."""
    with asyncio.Runner() as runner:

        async def make() -> Fleet:  # in the loop, because stores and committers belong to one
            return Fleet(store, clock, runner, limits, policy, **more)

        fleet = runner.run(make())
        runner.run(fleet.start())
        try:
            yield fleet
        finally:
            runner.run(fleet.stop())


def path_of(resource: Mapping[str, Any]) -> str:
    """Return where a resource is, below the base path."""
    return str(resource["href"]).removeprefix(BASE)


def problem_of(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """Return a problem document, which it must be, with that status and code."""
    assert response.headers["content-type"] == "application/problem+json", response.text
    problem = dict(response.json())
    assert (response.status_code, problem["status"], problem["code"]) == (status, status, code), problem
    assert problem["type"] == f"/problems/{code}"
    assert problem["requestId"] == response.headers["x-request-id"]
    assert problem["title"]
    assert problem["detail"]
    return problem


def errors_of(response: httpx.Response, status: int = 400, code: str = "InvalidBody") -> set[tuple[str, str]]:
    """Return where a problem document sees errors, and of what code."""
    errors = problem_of(response, status, code)["errors"]
    return {
        (error.get("pointer") or error.get("parameter") or error.get("header", ""), error["code"]) for error in errors
    }


def check_spec(kind: str, spec: Mapping[str, Any]) -> tuple[BodyProblem, ...]:
    """Stand for a JSON Schema: a `region` that is not a string does not fit."""
    if isinstance(spec.get("region", ""), str):
        return ()
    return (BodyProblem("/spec/region", "SchemaMismatch", f"the region of a {kind} is a string"),)
