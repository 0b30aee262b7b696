"""Secrets in reports: sent by every way, in good bodies and bad ones, and then looked for everywhere."""

from __future__ import annotations

import asyncio
import gzip
import logging
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import msgspec
import pytest
from msgspec.structs import replace

from hyperfleet.api.context import MetricsOptions, RequestLimits
from hyperfleet.backends.memory import MemoryStore
from hyperfleet.backends.postgres import PostgresStore
from hyperfleet.backends.sqlite import SqliteStore
from hyperfleet.bootstrap import spec_checker
from hyperfleet.ports import Store
from hyperfleet.services.redaction import REDACTED, Redactor
from hyperfleet.settings import Settings
from tests.api.compat_client import COMPAT, report_body
from tests.api.fleet import ROOT, Fleet, HandClock, open_fleet, path_of
from tests.api.listening import Connection
from tests.api.scrapes import fetch_within
from tests.world import body

SECRET = "hunter2-zq9"  # noqa: S105  # it is to be found nowhere
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJkbnMifQ.aHVudGVyMg-zq9"
SEEN = "seen-zone-7"  # what is no secret; whoever does not find this was not looking
HIDDEN = (SECRET, *JWT.split("."))  # each part of it tells something

DATA = {
    "zone": SEEN,
    "dbPassword": SECRET,
    "nested": [{"api-key": SECRET, "secretName": "dns-secret", "tokenExpiresAt": "2026"}],
    "url": f"postgres://dns:{SECRET}@db/dns",
    "kubeconfig": {"users": [{"token": SECRET}]},
}
CLEAN = {
    "zone": SEEN,
    "dbPassword": REDACTED,
    "nested": [{"api-key": REDACTED, "secretName": "dns-secret", "tokenExpiresAt": "2026"}],
    "url": f"postgres://dns:{REDACTED}@db/dns",
    "kubeconfig": REDACTED,
}
AVAILABLE = f"False/Failed/login with Bearer {JWT} was refused"
POINTERS = ["/conditions/0/message", "/data/dbPassword", "/data/nested/0/api-key", "/data/url", "/data/kubeconfig"]

Send = Callable[[Fleet, str, Any], httpx.Response]


def sending(method: str, suffix: str = "/statuses", **headers: str) -> Send:
    """Send a report alone."""
    return lambda fleet, path, report: fleet.request(method, path + suffix, json=report, headers=headers)


def send_zipped(fleet: Fleet, path: str, report: Any) -> httpx.Response:
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    return fleet.request(
        "POST", f"{path}/statuses", content=gzip.compress(msgspec.json.encode(report)), headers=headers
    )


def send_escaped(fleet: Fleet, path: str, report: Any) -> httpx.Response:
    raw = msgspec.json.encode(report).replace(b"assword", b"\\u0061ssword").replace(b"/", b"\\/")
    return fleet.request("POST", f"{path}/statuses", content=raw, headers={"Content-Type": "application/json"})


def send_patch(fleet: Fleet, path: str, report: Any) -> httpx.Response:
    first = fleet.post(f"{path}/statuses", body("first", "True"))
    assert first.status_code == 200
    id_ = fleet.get(f"{path}/statuses").json()["id"]
    return fleet.patch(f"{path}/statuses/{id_}", report)


def send_bundle(fleet: Fleet, path: str, report: Any) -> httpx.Response:
    return fleet.post(f"{path}/statuses", {"adapterStatuses": [body("first", "True"), report]})


def send_batch(fleet: Fleet, path: str, report: Any) -> httpx.Response:
    return fleet.post("/statuses:batch", {"reports": [{"clusterId": path.rpartition("/")[2], **report}]})


def send_as_go_clients_do(fleet: Fleet, cluster: dict[str, Any]) -> httpx.Response:
    """Send a report in the dialect, where a reason may be any text: ours would not be taken with a secret in it."""
    report = report_body("dns", AVAILABLE, data=DATA, observed_time="2025-10-17T12:00:00Z")
    for condition in report["conditions"][:2]:
        condition["reason"] = f"bad token {JWT}"
    return fleet.put(f"{COMPAT}/clusters/{cluster['id']}/statuses", report)


WAYS: dict[str, Send] = {
    "lane POST": sending("POST"),
    "lane PUT": sending("PUT", "/statuses/adapters/dns"),
    "POST": sending("POST", Prefer="return=representation"),
    "PUT": sending("PUT", "/statuses/adapters/dns", Prefer="return=representation"),
    "zipped": send_zipped,
    "escaped": send_escaped,
    "PATCH": send_patch,
    "bundle": send_bundle,
    "batch": send_batch,
}


def assert_hidden(text: str) -> None:
    """See to it that nothing of a secret is in a text."""
    assert [secret for secret in HIDDEN if secret in text] == []


def ask(fleet: Fleet, path: str) -> str:
    """Return what is told, which must be something."""
    response = fleet.get(path)
    assert response.status_code == 200, response.text
    return response.text


def read_everything(fleet: Fleet, cluster: dict[str, Any]) -> str:
    """Ask for everything that is told of a cluster."""
    path = path_of(cluster)
    fleet.clock.time = fleet.run(fleet.store.due(1)).now  # the clock that writes go by
    now = fleet.clock.time.isoformat().replace("+00:00", "Z")
    answers = [
        ask(fleet, each)
        for each in (
            *(path, f"{path}?fields=status", f"{path}/statuses", f"{path}/statuses/adapters/dns", "/clusters"),
            *(f"{path}/statuses?generation=1", f"{path}/history", f"{path}:explain", "/problems", "/clusters:summary"),
            *(f"{path}?at={now}", f"{path}/statuses?at={now}", f"{path}:diff?from={now}", "/clusters?q=login"),
            *("/adapters", "/adapters/dns", f"{ROOT}/metrics", f"{COMPAT}{path}", f"{COMPAT}{path}/statuses"),
        )
    ]
    policy = {"Content-Type": "application/yaml"}
    answers += [
        fleet.request("POST", f"/policy:simulate{query}", content="requiredAdapters: [dns]", headers=policy).text
        for query in ("", "?replay=1h")
    ]
    with Connection(fleet, "/clusters?watch=true&after=0") as watch:
        watch.wait_for(lambda: b"modified" in watch.body or b"added" in watch.body)
        answers.append(watch.body.decode())
    return "\n".join(answers)


def read_metrics(fleet: Fleet, cluster: dict[str, Any]) -> str:
    """Ask for metrics that tell of each resource, too."""
    options = MetricsOptions(per_resource=True, refresh_interval=timedelta(0))
    told = fleet.run(fetch_within(replace(fleet.context, metrics=options))).text
    assert cluster["id"] in told
    return str(told)


def read_storage(request: pytest.FixtureRequest, tmp_path: Path, store: Store) -> bytes:
    """Return every byte that the store keeps."""
    if isinstance(store, SqliteStore):
        return b"".join(file.read_bytes() for file in tmp_path.glob("fleet.db*"))
    if isinstance(store, PostgresStore):
        return asyncio.run(_dump(request.getfixturevalue("postgres_url")))
    return SEEN.encode()  # memory keeps nothing


async def _dump(url: str) -> bytes:
    connection = await asyncpg.connect(url)
    try:
        tables = await connection.fetch("SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public'")
        rows = [row for (table,) in tables for row in await connection.fetch(f"SELECT * FROM {table}")]  # noqa: S608
    finally:
        await connection.close()
    values = [value for row in rows for value in row.values()]
    return b"\n".join(value if isinstance(value, bytes) else str(value).encode() for value in values)


@pytest.mark.parametrize("way", WAYS)
def test_a_secret_is_taken_out_on_every_way_in(memory_client: Fleet, way: str) -> None:
    cluster = memory_client.create()
    response = WAYS[way](memory_client, path_of(cluster), body("dns", AVAILABLE, data=DATA))
    assert response.status_code in (200, 201), response.text
    assert_hidden(response.text)
    (outcome,) = [
        each for each in (response.json().get("outcomes") or response.json()["results"]) if each["adapter"] == "dns"
    ]
    notes = [note for note in outcome["notes"] if note["code"] == "Redacted"]
    start = {"bundle": "/adapterStatuses/1", "batch": "/reports/0"}.get(way, "")
    assert [note["pointer"] for note in notes] == [start + pointer for pointer in POINTERS]
    stored = memory_client.get(f"{path_of(cluster)}/statuses/adapters/dns").json()
    assert stored["data"] == CLEAN
    assert stored["conditions"][0]["message"] == f"login with Bearer {REDACTED} was refused"


def test_a_secret_is_taken_out_of_what_go_clients_send(memory_client: Fleet) -> None:
    cluster = memory_client.create()
    answer = send_as_go_clients_do(memory_client, cluster)
    assert answer.status_code == 201, answer.text
    assert answer.json()["data"] == CLEAN
    assert [each["reason"] for each in answer.json()["conditions"][:2]] == ["bad_token_redacted_"] * 2
    assert_hidden(answer.text + read_everything(memory_client, cluster) + read_metrics(memory_client, cluster))


def test_no_secret_is_anywhere(
    request: pytest.FixtureRequest,
    client: Fleet,
    store: Store,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    cluster = client.create()
    path = path_of(cluster)
    for number, send in enumerate(WAYS.values()):
        report = body("dns", AVAILABLE, data={**DATA, "number": number}, metadata={"token": SECRET})
        assert send(client, path, report).status_code in (200, 201)
    assert send_as_go_clients_do(client, client.create("other")).status_code == 201
    bad = body("dns", "Maybe", data=DATA)
    for send in WAYS.values():
        assert_hidden(send(client, path, bad).text)
    told = read_everything(client, cluster) + read_metrics(client, cluster)
    assert SEEN in told
    assert_hidden(told)
    assert_hidden(caplog.text)
    stored = read_storage(request, tmp_path, store)
    assert SEEN.encode() in stored
    assert_hidden(stored.decode("latin-1"))


def test_no_problem_quotes_a_secret(memory_client: Fleet) -> None:
    cluster = memory_client.create()
    path = path_of(cluster)
    good = body("dns", "True", data=DATA)
    for report in (
        {**good, "conditions": []},
        {**good, "password": SECRET},
        {**good, "observedGeneration": SECRET[:0]},
        {**good, "data": {**DATA, "token": 10**30}},
        {**good, "conditions": [{"type": "A", "status": JWT, "reason": JWT, "token": SECRET}]},
        {**good, "observedTime": JWT},
        {**good, "adapter": JWT},
        {"adapterStatuses": [good], "secret": SECRET},
        {"reports": [good]},
        [good],
    ):
        for send in (WAYS["lane POST"], WAYS["lane PUT"], WAYS["POST"], WAYS["escaped"]):
            assert_hidden(send(memory_client, path, report).text)
        if isinstance(report, dict):
            assert_hidden(memory_client.put(f"{COMPAT}{path}/statuses", report).text)
            assert_hidden(send_batch(memory_client, path, report).text)
    torn = msgspec.json.encode(good)[:-9]
    answer = memory_client.request("POST", f"{path}/statuses", content=torn)
    assert answer.status_code == 400
    assert_hidden(answer.text)
    answer = memory_client.post("/clusters", {"name": "x", "spec": {}, "labels": {"api-token": f"{SECRET} !"}})
    assert answer.status_code == 400
    assert_hidden(answer.text)


def test_a_schema_does_not_quote_a_secret(tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    inner = {"properties": {"size": {"type": "integer"}, "dbPassword": {"type": "integer"}}}
    file.write_bytes(msgspec.json.encode({"properties": {"a": inner, "b": {"anyOf": [{"type": "string"}]}}}))
    check = spec_checker(Settings(spec_schemas={"Cluster": str(file)}))
    found = check("Cluster", {"a": {"size": "big", "dbPassword": SECRET}, "b": [{"token": SECRET}]})
    assert {error.pointer for error in found} == {"/spec/a/size", "/spec/a/dbPassword", "/spec/b"}
    assert_hidden(repr(found))
    assert "'big' is not of type 'integer'" in repr(found)


def test_a_replay_is_still_known(client: Fleet) -> None:
    cluster = client.create()
    report = body("dns", "True", data=DATA, observedTime="2025-10-17T11:59:59Z")
    first = client.post(f"{path_of(cluster)}/statuses", report).json()["outcomes"][0]
    again = client.post(f"{path_of(cluster)}/statuses", report).json()["outcomes"][0]
    assert "replayed" not in first
    assert again["replayed"] is True
    assert again["notes"] == first["notes"]
    turned = {**report, "data": {**DATA, "dbPassword": "another"}}
    assert client.post(f"{path_of(cluster)}/statuses", turned).json()["outcomes"][0]["replayed"] is True


def test_what_we_answered_may_be_sent_back_without_a_note(memory_client: Fleet) -> None:
    cluster = memory_client.create()
    memory_client.report(cluster, "dns", data=DATA)
    stored = memory_client.get(f"{path_of(cluster)}/statuses/adapters/dns").json()
    answer = memory_client.report(cluster, "dns", data=stored["data"])
    assert "notes" not in answer["outcomes"][0]


def test_it_can_be_switched_off_and_extended(clock: HandClock) -> None:
    for redactor, expected in (
        (Redactor(is_enabled=False), {"token": "a", "pin": "b"}),
        (Redactor(["pin"]), {"token": REDACTED, "pin": REDACTED}),
    ):
        with open_fleet(MemoryStore(clock), clock, RequestLimits(), redactor=redactor) as fleet:
            cluster = fleet.create()
            fleet.report(cluster, "dns", data={"token": "a", "pin": "b"})
            assert fleet.get(f"{path_of(cluster)}/statuses/adapters/dns").json()["data"] == expected
