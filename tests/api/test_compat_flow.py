"""The whole way as the Go clients go it: a sentinel polls and decides, adapters look and report; on every store."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from hyperfleet.api.context import RequestLimits
from hyperfleet.ports import Store
from tests.api.compat_client import POLICY, GoClient, conditions_of, declined, report_body
from tests.api.fleet import HandClock, open_fleet

SELECTOR = {"shard-no": "1", "env": "it's"}  # a value with a quote is no label, but a sentinel may be told to look
DEBOUNCE = timedelta(seconds=10)
RESYNC = timedelta(minutes=30)


@pytest.fixture
def go(store: Store, clock: HandClock, limits: RequestLimits) -> Iterator[GoClient]:
    with open_fleet(store, clock, limits, POLICY) as fleet:
        yield GoClient(fleet)


class Sentinel:
    """Polls a kind page after page and decides from the Reconciled condition who is to be worked on."""

    def __init__(self, go: GoClient, plural: str, page_size: int = 2) -> None:
        self.go, self.plural, self.page_size = go, plural, page_size

    def probe(self) -> None:
        """Look once whether the API answers, as it does before it starts."""
        answer = self.go.get(f"/{self.plural}", page=1, size=1, search="labels.hyperfleet_probe='no-such-value'")
        assert (answer.status_code, answer.json()["total"]) == (200, 0)

    def poll(self, now: datetime, selector: dict[str, str] | None = None) -> dict[str, dict[str, Any]]:
        """Return the events of one cycle by the name of the resource."""
        return {resource["name"]: self._event(resource) for resource in self._fetch(selector) if _is_due(resource, now)}

    def _fetch(self, selector: dict[str, str] | None) -> Iterator[dict[str, Any]]:
        terms = [f"labels.{key}='{_quoted(value)}'" for key, value in sorted((selector or {}).items())]
        search = {"search": " and ".join(terms)} if terms else {}
        page, seen = 1, 0
        while True:
            listed = self.go.get(f"/{self.plural}", page=page, size=self.page_size, **search).json()
            yield from listed["items"]
            seen += listed["size"]
            page += 1
            if seen >= listed["total"] or not listed["items"]:
                return

    def _event(self, resource: dict[str, Any]) -> dict[str, Any]:
        keys = ("id", "kind", "href", "generation", "owner_references")
        return {key: resource[key] for key in keys if key in resource}


class Adapter:
    """Works on events: looks at the resource, then reports what it did."""

    def __init__(self, go: GoClient, name: str) -> None:
        self.go, self.name = go, name

    def handle(self, event: dict[str, Any], now: datetime, available: str = "True/Done/All is well") -> int:
        """Do the work and report; return the status of the answer."""
        path = event["href"].removeprefix("/api/hyperfleet/v1")
        found = self.go.get(path)
        if found.status_code == 404:
            assert declined(found, 404, "NTF-001"), "gone, not a wrong path"
            return 404
        resource = found.json()
        extra = {"Finalized": "True/Cleanup" if "deleted_time" in resource else "False/NotDeleting"}
        body = report_body(
            self.name, available, generation=resource["generation"], extra=extra, observed_time=now.isoformat()
        )
        return self.go.request("PUT", f"{path}/statuses", json=body).status_code


def _is_due(resource: dict[str, Any], now: datetime) -> bool:
    """Decide as a sentinel does that was told nothing else."""
    reconciled = conditions_of(resource).get("Reconciled")
    if reconciled is None:
        return True
    age = now - datetime.fromisoformat(reconciled["last_updated_time"])
    is_behind = resource["generation"] > reconciled["observed_generation"]
    return is_behind or age > (RESYNC if reconciled["status"] == "True" else DEBOUNCE)


def _quoted(value: str) -> str:
    return value.replace("'", "''")


def test_from_creation_to_removal(go: GoClient) -> None:
    sentinel, pools = Sentinel(go, "clusters"), Sentinel(go, "nodepools")
    validation, dns = Adapter(go, "validation"), Adapter(go, "dns")
    sentinel.probe()
    cluster = go.create("one", labels={"shard-no": "1"})
    for name in ("two", "three"):
        go.create(name, labels={"shard-no": "2"})
    pool = go.create_pool(cluster)
    start = go.fleet.clock.time = datetime.fromisoformat(cluster["created_time"])  # PostgreSQL has a clock of its own
    assert sentinel.poll(start) == {}, "not before the debounce"

    # It becomes reconciled, one adapter after the other.
    later = start + timedelta(seconds=11)
    assert set(sentinel.poll(later)) == {"one", "two", "three"}, "page after page"
    assert sentinel.poll(later, SELECTOR) == {}
    events = sentinel.poll(later, {"shard-no": "1"})
    assert set(events["one"]) == {"id", "kind", "href", "generation"}
    assert validation.handle(events["one"], later) == 201
    assert dns.handle(events["one"], later, "Unknown/Waiting/for the zone") == 201
    assert conditions_of(go.read(cluster))["Reconciled"]["status"] == "False"
    assert dns.handle(events["one"], later) == 201
    assert dns.handle(events["one"], later, "Unknown/Waiting/again") == 204
    found = conditions_of(go.read(cluster))
    assert {found[name]["status"] for name in ("Reconciled", "LastKnownReconciled", "DnsSuccessful")} == {"True"}
    assert "Ready" not in found
    assert sentinel.poll(later, {"shard-no": "1"}) == {}, "it has settled"
    (event,) = pools.poll(later).values()
    assert event["owner_references"]["id"] == cluster["id"]
    assert validation.handle(event, later) == 201

    # It is changed; what was known stays known.
    patched = go.request("PATCH", f"/clusters/{cluster['id']}", json={"spec": {"region": "eu"}}).json()
    found = conditions_of(patched)
    assert (found["Reconciled"]["status"], found["LastKnownReconciled"]["status"]) == ("False", "True")
    changed = datetime.fromisoformat(patched["updated_time"]) + timedelta(seconds=11)
    (event,) = sentinel.poll(changed, {"shard-no": "1"}).values()
    assert event["generation"] == 2
    for adapter in (validation, dns):
        adapter.handle(event, later)
    assert conditions_of(go.read(cluster))["Reconciled"]["status"] == "True"

    # It is deleted, and goes with the last report, though that is the node pool's.
    deleted = go.request("DELETE", f"/clusters/{cluster['id']}").json()
    gone = datetime.fromisoformat(deleted["deleted_time"]) + timedelta(seconds=11)
    (event,) = sentinel.poll(gone, {"shard-no": "1"}).values()
    assert [adapter.handle(event, later) for adapter in (validation, dns)] == [201, 201]
    (below,) = pools.poll(gone).values()
    assert validation.handle(below, later) == 201
    assert [adapter.handle(each, later) for adapter in (validation, dns) for each in (event, below)] == [404] * 4
    assert sentinel.poll(gone, {"shard-no": "1"}) == pools.poll(gone) == {}
    assert pool["name"] not in go.names("/resources")


def test_who_falls_silent_is_asked_again(go: GoClient) -> None:
    sentinel, adapters = Sentinel(go, "clusters"), [Adapter(go, "validation"), Adapter(go, "dns")]
    cluster = go.create("one")
    start = go.fleet.clock.time = datetime.fromisoformat(cluster["created_time"])  # PostgreSQL has a clock of its own
    (event,) = sentinel.poll(start + timedelta(seconds=11)).values()
    for adapter in adapters:
        adapter.handle(event, start)
    assert sentinel.poll(start + RESYNC - timedelta(minutes=1)) == {}
    assert set(sentinel.poll(start + RESYNC + timedelta(minutes=1))) == {"one"}
