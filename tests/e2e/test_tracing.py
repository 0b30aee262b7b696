"""Traces of a real server, taken by a real collector."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hyperfleet.api.wire import BASE
from tests.e2e.collector import CollectedSpan, Collector, collecting
from tests.e2e.server import Server, await_state, run_command, running
from tests.world import body

TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLER = "b7ad6b7169203331"
PARENT = {"traceparent": f"00-{TRACE}-{CALLER}-01", "tracestate": "fleet=blue"}
CLUSTER = f"{BASE}/clusters/{{clusterId}}"


@pytest.fixture
def collector() -> Iterator[Collector]:
    """Give a collector."""
    with collecting() as found:
        yield found


@pytest.fixture
def server(tmp_path: Path, collector: Collector) -> Iterator[Server]:
    """Give a server that sends the traces of those who trace, and of nobody else."""
    settings = {"tracing_endpoint": collector.url, "tracing_sample_ratio": "0", "log_format": "json"}
    with running(tmp_path, f"sqlite:{tmp_path / 'fleet.db'}", **settings) as server:
        yield server


def test_every_way_that_a_request_can_take_is_a_span_below_its_callers(server: Server, collector: Collector) -> None:
    created = server.http.post("/clusters", json={"name": "one", "spec": {}}, headers=PARENT).json()
    path = f"/clusters/{created['id']}"
    answers = [
        server.http.post(f"{path}/statuses", json=body("dns", "True"), headers=PARENT),
        server.http.get(path, headers={**PARENT, "X-Request-Id": "mine"}),
        server.http.get(f"{path}:explain", headers=PARENT),
        server.http.get("/clusters/nobody", headers=PARENT),
        server.http.get(f"{server.url}/compat{BASE}{path}", headers=PARENT),
        server.http.get("/nowhere", headers=PARENT),
        server.http.get(f"{server.url}/readyz", headers=PARENT),
    ]
    assert [each.status_code for each in answers] == [200, 200, 200, 404, 200, 404, 200]
    server.stop()  # sends what is left
    found = {(each.name, each.attributes["http.response.status_code"]) for each in collector.spans if each.is_server}
    assert found == {
        (f"POST {BASE}/clusters", 201),
        (f"POST {CLUSTER}/statuses", 200),
        (f"GET {CLUSTER}", 200),
        (f"GET {CLUSTER}:explain", 200),
        (f"GET {CLUSTER}", 404),
        (f"GET /compat{BASE}/clusters/{{id}}", 200),
        ("GET", 404),
    }, "probes are nobody's business"
    for span in (each for each in collector.spans if each.is_server):
        assert (span.trace_id, span.parent_id, span.state) == (TRACE, CALLER, "fleet=blue")
        assert not span.is_error, "what a caller does wrong is no error of ours"
        assert span.resource["service.name"] == "hyperfleet"


def test_a_span_is_told_as_the_conventions_want(server: Server, collector: Collector) -> None:
    server.http.get("/clusters/c1?limit=topsecret", headers={**PARENT, "X-Request-Id": "mine", "User-Agent": "me/1"})
    server.stop()
    (span,) = [each for each in collector.spans if each.is_server]
    told = {
        "http.request.method": "GET",
        "http.route": CLUSTER,
        "http.response.status_code": 400,
        "url.path": f"{BASE}/clusters/c1",
        "url.scheme": "http",
        "network.protocol.version": "1.1",
        "client.address": "127.0.0.1",
        "user_agent.original": "me/1",
        "hyperfleet.request_id": "mine",
    }
    assert told.items() <= span.attributes.items()
    assert span.attributes["http.response.body.size"] > 0
    assert "topsecret" not in str(span), "a query may say more than a collector should know"


def test_a_commit_is_linked_to_those_who_take_part(server: Server, collector: Collector) -> None:
    created = server.http.post("/clusters", json={"name": "one", "spec": {}}).json()
    sent = [{"clusterId": created["id"], **body(name, "True")} for name in ("dns", "validation")]
    answer = server.http.post("/statuses:batch", json={"reports": sent}, headers=PARENT).json()
    assert answer["refused"] == 0
    server.stop()
    (request,) = collector.find(f"POST {BASE}/statuses:batch")
    commits = collector.find("commit")
    assert commits, "recorded because a recorded request takes part"
    for commit in commits:
        assert commit.links == (request.span_id,), "once, however many of its commands are in there"
        assert commit.trace_id != TRACE, "it may be done for several"
    assert sum(each.attributes["hyperfleet.batch.size"] for each in commits) == 2


def test_an_event_names_the_span_that_published_it_which_is_linked_to_the_request(
    server: Server, collector: Collector
) -> None:
    server.http.put("/subscriptions/dns", json={}).raise_for_status()
    server.http.post("/clusters", json={"name": "one", "spec": {}}).raise_for_status()
    server.http.post("/clusters", json={"name": "two", "spec": {}}, headers=PARENT).raise_for_status()
    pulled: dict[str, str] = {}

    def pull() -> bool:
        answer = server.http.post("/subscriptions/dns:pull", json={"waitSeconds": 5}).json()
        pulled.update({each["event"]["id"]: each["event"].get("traceparent", "") for each in answer["messages"]})
        return len(pulled) == 2

    await_state(pull)
    server.stop()
    (request,) = collector.find(f"POST {BASE}/clusters")
    (published,) = collector.find("publish events")
    assert published.links == (request.span_id,)
    assert published.trace_id != TRACE, "one publication may be for several requests"
    assert pulled["2"] == f"00-{published.trace_id}-{published.span_id}-01"


def test_what_a_request_asks_of_the_store_is_below_it(server: Server, collector: Collector) -> None:
    created = server.http.post("/clusters", json={"name": "one", "spec": {}}).json()
    for path in (f"/clusters/{created['id']}", "/clusters"):  # the fast lane, and the ordinary way
        server.http.get(path, headers=PARENT).raise_for_status()
    server.stop()
    requests = [each for each in collector.spans if each.is_server]
    reads = [each for each in collector.spans if each.name.startswith("store ")]
    assert {each.parent_id for each in reads} == {each.span_id for each in requests}
    assert len(requests) == 2


def test_nothing_is_recorded_that_nobody_asked_for(server: Server, collector: Collector) -> None:
    server.http.post("/clusters", json={"name": "one", "spec": {}}).raise_for_status()
    unsampled = {"traceparent": f"00-{TRACE}-{CALLER}-00"}
    server.http.get("/clusters", headers=unsampled).raise_for_status()
    server.http.get("/clusters", headers={"traceparent": "nonsense"}).raise_for_status()
    server.stop()
    assert collector.spans == []


def test_deadlines_and_policies_are_traced(tmp_path: Path, collector: Collector) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("requiredAdapters: [dns]\npolicies: {staleThreshold: 1s}\n")
    settings = {"tracing_endpoint": collector.url, "tracing_sample_ratio": "1", "tracing_service_name": "blue"}
    with running(tmp_path, f"sqlite:{tmp_path / 'fleet.db'}", policy=str(policy), **settings) as server:
        created = server.http.post("/clusters", json={"name": "one", "spec": {}}).json()
        server.http.post(f"/clusters/{created['id']}/statuses", json=body("dns", "True")).raise_for_status()
        await_state(lambda: collector.find("recompute: deadline"))
        policy.write_text("requiredAdapters: [dns]\npolicies: {staleThreshold: 2h}\n")
        server.reload()
        (recomputed, *_) = await_state(lambda: collector.find("recompute: policy"))
        assert await_state(lambda: [each for each in collector.find("commit") if recomputed.span_id in each.links])
        server.stop()
    assert recomputed.attributes["hyperfleet.resources"] == 1
    assert recomputed.resource["service.name"] == "blue"


def test_the_log_and_the_dialect_name_the_trace(server: Server) -> None:
    url = f"{server.url}/compat{BASE}/clusters/nobody"
    assert server.http.get(url, headers=PARENT).json()["trace_id"] == TRACE
    own = server.http.get(url, headers={"X-Request-Id": "mine"}).json()["trace_id"]
    assert own != "mine", "also where nothing is recorded there is a trace"
    assert len(own) == len(TRACE)


@pytest.mark.postgres
def test_each_of_several_workers_sends_its_own(tmp_path: Path, collector: Collector, postgres_url: str) -> None:
    run_command("db", "migrate", database=postgres_url)
    settings = {"tracing_endpoint": collector.url, "tracing_sample_ratio": "1", "workers": "2"}
    with running(tmp_path, postgres_url, **settings) as server:

        def ask() -> set[int]:
            server.http.get("/clusters", headers={"Connection": "close"}).raise_for_status()
            return _processes(collector.spans)

        await_state(lambda: len(ask()) == 2)
        server.stop()


def test_a_collector_that_is_away_is_told_of_and_waited_for_by_nobody(tmp_path: Path) -> None:
    settings = {"tracing_endpoint": "http://127.0.0.1:9", "tracing_sample_ratio": "1", "log_format": "json"}
    with running(tmp_path, f"sqlite:{tmp_path / 'fleet.db'}", **settings) as server:

        def look() -> list[dict[str, str]]:
            server.http.get("/clusters").raise_for_status()
            lines = [json.loads(line) for line in server.log.splitlines()]
            return [line for line in lines if "traces are not delivered" in line["message"]]

        (warning,) = await_state(look)
        assert warning["level"] == "warning"
        server.http.get("/clusters").raise_for_status()
        assert server.stop() == 0
        assert len(look_again(server)) == 1, "not for every delivery that fails"


def look_again(server: Server) -> list[str]:
    """Return what the log of a server that has stopped says of deliveries."""
    return [line for line in server.log.splitlines() if "not delivered" in line or "Failed to export" in line]


def test_traces_need_what_is_installed_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "opentelemetry.py").write_text("raise ModuleNotFoundError('blocked by a test')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = run_command("serve", "--check", tracing_endpoint="http://127.0.0.1:4318", database="memory:")
    assert done.returncode == 1
    assert "HYPERFLEET_TRACING_ENDPOINT: " in done.stdout
    assert "pip install 'hyperfleet[tracing]'" in done.stdout


def _processes(spans: list[CollectedSpan]) -> set[int]:
    return {each.resource["process.pid"] for each in spans}
