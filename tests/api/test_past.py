"""`?at=`: a resource and what was reported on it, as a GET answered them then, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import httpx
import msgspec
import pytest

from hyperfleet.api.context import RequestLimits
from hyperfleet.ports import Pruning, Store
from hyperfleet.services.past import write_time
from tests.api.fleet import Fleet, HandClock, errors_of, open_fleet, path_of, problem_of
from tests.api.lives import VALUES, Life, pass_time, policy_for


@pytest.fixture
def lively(store: Store, clock: HandClock, limits: RequestLimits) -> Iterator[Fleet]:
    """Give a client of a server with a policy in which time plays every part."""
    with open_fleet(store, clock, limits, policy_for(store, reads_times=False)) as fleet:
        yield fleet


@pytest.mark.parametrize("seed", range(4))
def test_everything_is_answered_as_it_was(lively: Fleet, seed: int) -> None:
    life = Life(lively, seed)
    life.run(60)
    assert len({seen.body for seen in life.seen}) > 50
    for seen in life.seen:
        life.tick()
        answer = lively.get(seen.path, params={"at": write_time(seen.moment)})
        assert answer.status_code == seen.status, (seen, answer.text)
        if seen.status == 200 and seen.path.endswith("/statuses"):
            assert without_times(answer.content) == without_times(seen.body)
        elif seen.status == 200:
            assert (answer.content, answer.headers["etag"]) == (seen.body, seen.etag)


def without_times(body: bytes) -> dict[str, Any]:
    """Read a status object without the times that heartbeats move: the past has those of the adapter's next change."""
    told = msgspec.json.decode(body)
    entries = [{**each, "lastUpdated": None} for each in told["adapterStatuses"]]
    return {**told, "adapterStatuses": entries, "lastUpdated": None}


def read_at(client: Fleet, resource: dict[str, Any], at: datetime, below: str = "", **more: Any) -> httpx.Response:
    """Ask how it was; time passes before, so that no moment is yet to come."""
    pass_time(client)
    return client.get(f"{path_of(resource)}{below}", params={"at": write_time(at)}, **more)


def test_a_spec_stays_what_it_was_to_the_last_digit(client: Fleet) -> None:
    cluster = client.create(spec={f"key/~{place} \u2028": value for place, value in enumerate(VALUES)}, labels={})
    client.report(cluster, "dns")
    told, then = client.get(path_of(cluster)), pass_time(client)
    pass_time(client)
    client.report(cluster, "dns", "False/Broken")
    assert client.get(path_of(cluster)).content != told.content
    assert read_at(client, cluster, then).content == told.content


def test_the_moment_of_a_change_belongs_to_what_came_after(client: Fleet) -> None:
    cluster = client.create()
    pass_time(client)
    client.report(cluster, "dns", "False/Broken")
    told = client.get(path_of(cluster))
    since = datetime.fromisoformat(told.json()["status"]["phaseSince"])
    assert read_at(client, cluster, since).content == told.content
    before = read_at(client, cluster, since - timedelta(microseconds=1)).json()
    assert (before["status"]["phase"], told.json()["status"]["phase"]) == ("Pending", "Failed")


def test_a_duration_counts_back_from_now(memory_client: Fleet) -> None:
    cluster = memory_client.create()
    memory_client.clock.pass_time(timedelta(hours=2))
    memory_client.report(cluster, "dns", "False/Broken")
    phases = {at: memory_client.get(f"{path_of(cluster)}?at={at}").json()["status"]["phase"] for at in ("0s", "1m")}
    assert phases == {"0s": "Failed", "1m": "Pending"}


def test_masks_and_entity_tags(client: Fleet) -> None:
    cluster = client.create()
    pass_time(client)
    client.report(cluster, "dns", "False/Broken")
    told, then = client.get(path_of(cluster)), pass_time(client)
    pass_time(client)
    client.report(cluster, "dns")
    path, at = path_of(cluster), {"at": write_time(then)}
    masked = client.get(path, params={**at, "fields": "status.phase"})
    assert masked.json() == {"id": cluster["id"], "status": {"phase": "Failed"}}
    tag = told.headers["etag"]
    assert masked.headers["etag"] == tag
    assert masked.headers["cache-control"] == "no-cache"
    assert client.get(path, params=at, headers={"If-None-Match": tag}).status_code == 304
    assert client.get(path, params=at, headers={"If-None-Match": '"1"'}).status_code == 200
    assert client.get(path, headers={"If-None-Match": tag}).status_code == 200


def test_before_it_was_there(client: Fleet) -> None:
    before = pass_time(client)
    pass_time(client)
    cluster = client.create()
    pool = client.create_pool(cluster)
    created = cluster["metadata"]["createdAt"]
    for path in (path_of(cluster), f"{path_of(cluster)}/statuses"):
        detail = problem_of(client.get(path, params={"at": write_time(before)}), 404, "NotFound")["detail"]
        assert detail == f"Cluster {cluster['id']} did not exist yet at {write_time(before)}: it was created {created}"
    detail = problem_of(read_at(client, pool, before), 404, "NotFound")["detail"]
    assert detail.endswith(f"it was created {pool['metadata']['createdAt']}")


def test_after_it_was_removed(client: Fleet) -> None:
    before = pass_time(client)
    pass_time(client)
    cluster = client.create()
    told, then = client.get(path_of(cluster)), pass_time(client)
    pass_time(client)
    client.delete(path_of(cluster))
    client.post(f"{path_of(cluster)}/force-delete", {"reason": "the account was closed"})
    (gone,) = client.get(f"{path_of(cluster)}/history?subject=phase&limit=1").json()["items"]
    after = pass_time(client)
    detail = problem_of(read_at(client, cluster, after), 404, "NotFound")["detail"]
    assert detail.endswith(f"no longer existed at {write_time(after)}: it was removed {gone['time']}")
    assert read_at(client, cluster, then).content == told.content
    detail = problem_of(read_at(client, cluster, before), 404, "NotFound")["detail"]
    assert detail.endswith(f"did not exist yet at {write_time(before)}, and it has been removed since")


def test_what_never_was(client: Fleet) -> None:
    cluster = client.create()
    pool = client.create_pool(cluster)
    now = write_time(pass_time(client))
    for path in (
        "/clusters/cls-none",
        f"/clusters/{pool['id']}",
        f"/clusters/{cluster['id']}/nodepools/{cluster['id']}",
        f"/clusters/cls-none/nodepools/{pool['id']}",
    ):
        for below in ("", "/statuses"):
            problem_of(client.get(f"{path}{below}", params={"at": now}), 404, "NotFound")


def test_what_is_forgotten(client: Fleet) -> None:
    cluster = client.create()
    then = pass_time(client)
    pass_time(client)
    client.report(cluster, "dns", "False/Broken")
    told = client.get(path_of(cluster))
    now = pass_time(client)
    for log in ("events", "reports"):
        client.run(client.store.prune(Pruning(log, timedelta()), 1_000))
    for below in ("", "/statuses"):
        problem = problem_of(read_at(client, cluster, then, below), 410, "Forgotten")
        assert f"the state of Cluster {cluster['id']} at {write_time(then)}" in problem["detail"]
        assert "has been pruned" in problem["detail"]
    assert read_at(client, cluster, now + timedelta(seconds=1)).content == told.content


def test_reports_of_those_who_were_there(client: Fleet) -> None:
    cluster = client.create()
    path, silent = f"{path_of(cluster)}/statuses", pass_time(client)
    pass_time(client)
    client.report(cluster, "dns")
    client.report(cluster, "stranger", "Unknown")
    both, with_both = client.get(path).content, pass_time(client)
    pass_time(client)
    assert client.delete(f"{path}/adapters/dns").status_code == 204
    one, with_one = client.get(path).content, pass_time(client)
    assert problem_of(read_at(client, cluster, silent, "/statuses"), 404, "NotFound")["detail"] == (
        f"no adapter had reported on {cluster['id']} at {write_time(silent)}"
    )
    assert read_at(client, cluster, with_both, "/statuses").content == both
    assert read_at(client, cluster, with_one, "/statuses").content == one


@pytest.mark.parametrize(
    ("query", "expected", "because"),
    [
        ("?at=2025-10-17T12:00:30Z", ("at", "InTheFuture"), "clocks may differ a little, but not by that much"),
        ("?at=2025-10-17T12:00:00", ("at", "BadFormat"), "without a zone it is no moment"),
        ("?at=yesterday", ("at", "BadFormat"), "neither a time nor a duration"),
        ("?at=-5m", ("at", "BadFormat"), "a duration goes back, not forth"),
        ("?at=", ("at", "Empty"), "an empty variable must not ask for the present"),
        ("?at=1m&at=2m", ("at", "Repeated"), "there is one moment at a time"),
        ("?At=1m", ("At", "UnknownParameter"), "what is misspelt must not be ignored"),
    ],
)
def test_wrong_moments(memory_client: Fleet, query: str, expected: tuple[str, str], because: str) -> None:
    path = path_of(memory_client.create())
    for below in ("", "/statuses"):
        assert errors_of(memory_client.get(f"{path}{below}{query}"), 400, "InvalidQuery") == {expected}, because


def test_a_clock_that_is_a_little_behind_does_no_harm(memory_client: Fleet) -> None:
    path = path_of(memory_client.create())
    assert memory_client.get(f"{path}?at=2025-10-17T12:00:05Z").content == memory_client.get(path).content


def test_one_moment_has_one_generation(memory_client: Fleet) -> None:
    path = f"{path_of(memory_client.create())}/statuses"
    errors = errors_of(memory_client.get(f"{path}?at=1m&generation=1"), 400, "InvalidQuery")
    assert errors == {("generation", "Exclusive")}
    assert errors_of(memory_client.get(f"{path}?at=1m&fields=id"), 400, "InvalidQuery") == {
        ("fields", "UnknownParameter")
    }
