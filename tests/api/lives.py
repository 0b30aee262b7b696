"""Random lives of a cluster and its node pool, and everything that a GET answered on the way."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, NamedTuple

from hyperfleet.backends.postgres import PostgresStore
from hyperfleet.ports import StatusCause, Store
from hyperfleet.services.upkeep import Recompute
from tests.api.fleet import Fleet, path_of
from tests.world import body

ADAPTERS = ("validation", "dns", "monitoring", "stranger")
VERDICTS = ("True", "True", "True/Done/all well", "False/JobRunning", "False/Broken/no such zone", "Unknown")
# What JSON libraries like to change: exponents, wide integers, escapes, order, emptiness.
VALUES: tuple[Any, ...] = (
    1.0,
    -0.0,
    1e-7,
    1.7976931348623157e308,
    0.1 + 0.2,
    2**64 - 1,
    -(2**63),
    'quote " slash / back \\ tab \t line \n control \x01\x7f',
    "é ☃ 𝄞 \u2028",
    "",
    None,
    [],
    {},
    [1, [True, {"z": 1, "a": 2}]],
)


def policy_for(store: Store, *, reads_times: bool) -> str:
    """Return a policy in which time plays every part it can; a database with a clock of its own gets milliseconds."""
    unit = "ms" if isinstance(store, PostgresStore) else "m"
    silent = f"""'any(allAdapters, {{olderThan(#, "7{unit}")}})'"""
    aged = f"- {{type: Silent, polarity: Negative, evaluate: {{expr: {silent}}}}}"
    return f"""
requiredAdapters: [validation, dns]
optionalAdapters: [monitoring]
clusterConditions:
  - type: Slow
    goBadAfter: 3{unit}
    goGoodAfter: 1{unit}
    evaluate: {{expr: 'all(requiredAdapters, {{.available == "True"}})'}}
  - {{type: Dns, mirror: {{adapter: dns}}}}
  - {{type: Pools, summary: {{over: nodePools, type: Ready}}}}
  {aged if reads_times else ""}
phases: {{ready: {{requiredConditions: [{{type: Slow, status: "True"}}]}}}}
policies: {{staleThreshold: 10{unit}, staleAction: degraded}}
defaultBehavior: {{timeout: 10{unit}}}
flapping: {{window: 20{unit}, transitions: 2}}
"""


def pass_time(client: Fleet, duration: timedelta = timedelta(seconds=1)) -> datetime:
    """Let time pass, or look at the clock of a database that has its own: that of this machine. Return the time."""
    if isinstance(client.store, PostgresStore):
        client.clock.time = datetime.now(UTC)
    else:
        client.clock.pass_time(duration)
    return client.clock.now()


class Seen(NamedTuple):
    """What a GET answered at a moment."""

    path: str
    moment: datetime
    status: int
    body: bytes
    etag: str


class Life:
    """Drives a cluster and its node pool, and looks at both after every write."""

    def __init__(self, client: Fleet, seed: int) -> None:
        self.client = client
        self.seen: list[Seen] = []
        self._random = Random(seed)  # the same lives in every run
        self._said: dict[tuple[str, str], dict[str, Any]] = {}
        self._generations: dict[str, int] = {}
        self._cluster = client.create(spec={"first": 1}, labels={})
        self._pool = client.create_pool(self._cluster)
        self.look()

    def run(self, steps: int) -> None:
        """Live for so many steps, then die."""
        doings: list[Callable[[], None]] = [
            *[self._report] * 6,
            *[self._beat] * 6,
            *[self._beat_together] * 2,
            self._bundle,
            self._edit,
            self._retire,
            *[self._wake] * 2,
            self._change_policy,
        ]
        for _ in range(steps):
            self._do(self._random.choice(doings))
        self._do(self._delete)
        for _ in range(4):
            self._do(self._report)
        self._do(self._force)

    def look(self) -> None:
        """Note what is answered now."""
        self.tick()
        for path in (path_of(self._cluster), path_of(self._pool)):
            for where in (path, f"{path}/statuses"):
                answer = self.client.get(where)
                etag = answer.headers.get("etag", "")
                self.seen.append(Seen(where, self.client.clock.now(), answer.status_code, answer.content, etag))

    def tick(self) -> None:
        """Let time pass, sometimes next to none."""
        pass_time(self.client, timedelta(microseconds=self._random.choice((1, 10**6, 10**8))))

    def _do(self, doing: Callable[[], None]) -> None:
        self.tick()
        doing()
        self.look()

    def _resource(self) -> dict[str, Any]:
        return self._random.choice((self._cluster, self._cluster, self._pool))

    def _new_body(self, resource: dict[str, Any], adapter: str) -> dict[str, Any]:
        newest = self._generations.get(resource["id"], 1)
        more: dict[str, Any] = {"data": {"value": self._random.choice(VALUES)}} if self._random.random() < 0.3 else {}
        generation = max(1, newest - self._random.choice((0, 0, 0, 1)))
        said = body(adapter, self._random.choice(VERDICTS), generation=generation, **more)
        self._said[resource["id"], adapter] = said
        return said

    def _report(self) -> None:
        resource = self._resource()
        said = self._new_body(resource, self._random.choice(ADAPTERS))
        self._send(resource, said)

    def _beat(self) -> None:
        """Let an adapter say again what it said before."""
        if self._said:
            (id_, _), said = self._random.choice(list(self._said.items()))
            self._send(self._cluster if id_ == self._cluster["id"] else self._pool, said)

    def _beat_together(self) -> None:
        """Let all adapters of a resource say again what they said, in one request."""
        resource = self._resource()
        bodies = [said for (id_, _), said in self._said.items() if id_ == resource["id"]]
        if bodies:
            self._send(resource, {"adapterStatuses": bodies})

    def _bundle(self) -> None:
        resource = self._resource()
        bodies = [self._new_body(resource, adapter) for adapter in self._random.sample(ADAPTERS, 2)]
        self._send(resource, {"adapterStatuses": bodies})

    def _send(self, resource: dict[str, Any], said: dict[str, Any]) -> None:
        answer = self.client.post(f"{path_of(resource)}/statuses", said)
        assert answer.status_code in (200, 201, 404), answer.text  # 404: it has gone

    def _edit(self) -> None:
        resource = self._resource()
        changes: dict[str, Any] = {"spec": {f"key {self._random.randrange(5)}": self._random.choice(VALUES)}}
        if self._random.random() < 0.5:
            changes = {"labels": {"tier": self._random.choice(("web", "", None))}}
        answer = self.client.patch(path_of(resource), changes)
        assert answer.status_code == 200, answer.text
        self._generations[resource["id"]] = answer.json()["generation"]

    def _retire(self) -> None:
        """Retire an adapter that the status tells of; when one that is not told of went, nobody can tell later."""
        resource = self._resource()
        for adapter in self.client.get(path_of(resource)).json()["status"]["adapters"][:1]:
            self.client.delete(f"{path_of(resource)}/statuses/adapters/{adapter['name']}")

    def _wake(self) -> None:
        id_ = self._resource()["id"]
        self.client.run(self.client.committer.submit(Recompute(id_, StatusCause("deadline"))))

    def _change_policy(self) -> None:
        self.client.policy = policy_for(self.client.store, reads_times=self._random.random() < 0.5)
        self.client.run(self.client.policies.activate())
        self._wake()

    def _delete(self) -> None:
        answer = self.client.delete(path_of(self._cluster))
        assert answer.status_code == 202, answer.text
        for resource in (self._cluster, self._pool):
            self._generations[resource["id"]] = self._generations.get(resource["id"], 1) + 1

    def _force(self) -> None:
        self.client.post(f"{path_of(self._cluster)}/force-delete", {"reason": "the test ends"})
