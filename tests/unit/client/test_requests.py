"""From arguments to requests: filters, times, paths, reports, errors for people."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperfleet.aggregation import read_report
from hyperfleet.client import Cluster, ConditionResult, NodePool
from hyperfleet.client.answers.resource import Metadata, Resource
from hyperfleet.client.errors import (
    ErrorDetail,
    ProblemDocument,
    Unauthenticated,
    format_problem,
    make_problem,
    read_problem,
)
from hyperfleet.client.paths import BASE, CLUSTERS, NODE_POOLS, direct_path, type_of
from hyperfleet.client.query import query_of, write_moment, write_seconds
from hyperfleet.client.reporting import BatchReport, ReportFields, compose, report, report_batch
from hyperfleet.documents.durations import parse_duration
from tests.unit.client.world import NOW, World, answer


def test_filters() -> None:
    given = {
        "labels": {"env": "prod", "team": "a"},
        "conditions": "Ready!=True",
        "phase": ["Failed", "Degraded"],
        "adapter_state": {"dns": ["Failed", "Running"], "infra": "Stale"},
        "updated_since": timedelta(minutes=15),
        "order_by": "-name",
        "fields": ("name", "status.phase"),
        "q": None,
        "reason": "",
        "limit": 5,
        "continue": "x",
        "times": False,
    }
    assert dict(query_of(given)) == {
        "labelSelector": "env=prod,team=a",
        "conditions": "Ready!=True",
        "phase": "Failed,Degraded",
        "adapterState": "dns:Failed|Running,infra:Stale",
        "updatedSince": "900000000us",
        "orderBy": "-name",
        "fields": "name,status.phase",
        "limit": "5",
        "continue": "x",
        "times": "false",
    }


@given(st.timedeltas(timedelta(0), timedelta(days=10_000)), st.floats(0.001, 1e7))
def test_durations_are_sent_unchanged(duration: timedelta, seconds: float) -> None:
    assert parse_duration(write_moment(duration)) == duration
    assert parse_duration(write_seconds(seconds)).total_seconds() == pytest.approx(seconds, abs=0.001)


def test_a_time_needs_a_zone() -> None:
    assert write_moment(datetime(2026, 1, 1, tzinfo=UTC)) == "2026-01-01T00:00:00+00:00"
    with pytest.raises(ValueError, match="needs a zone"):
        write_moment(datetime(2026, 1, 1))  # noqa: DTZ001  # that is what is refused
    with pytest.raises(TypeError, match="q cannot be float"):
        query_of({"q": 1.5})


@pytest.mark.parametrize(
    ("subject", "path"),
    [
        (Cluster("cls-1", href=f"{BASE}/clusters/cls-1"), f"{BASE}/clusters/cls-1"),
        (NodePool("np-1", metadata=Metadata(cluster_id="cls/1")), f"{BASE}/clusters/cls%2F1/nodepools/np-1"),
        ("/v1/clusters/cls-1", f"{BASE}/clusters/cls-1"),
        ("/api/v1/clusters/cls-1/nodepools/np-1", f"{BASE}/clusters/cls-1/nodepools/np-1"),
        (f"{BASE}/clusters/cls-1", f"{BASE}/clusters/cls-1"),
        ("clusters/a b?c#d/", f"{BASE}/clusters/a%20b%3Fc%23d"),
        ("cls-1", ""),
        (Cluster("cls-1"), ""),
        (Cluster("cls-1", href="http://elsewhere/"), ""),
    ],
)
def test_paths(subject: Resource | str, path: str) -> None:
    assert direct_path(subject) == path


def test_the_type_of_a_resource_is_recognised() -> None:
    pools = (NodePool("x"), Resource("np-1"), "np-1", "clusters/c/nodepools/x", Resource("x", href="/a/nodepools/x"))
    assert all(type_of(each) is NODE_POOLS for each in pools)
    assert all(type_of(each) is CLUSTERS for each in (Cluster("np"), "cls-1", "whatever", "/v1/clusters/np-1"))


@pytest.mark.parametrize("id_", ["", ".", "..", "clusters/../policy"])
def test_ids_that_change_the_path_are_refused(id_: str) -> None:
    world = World()
    with pytest.raises(ValueError, match="neither an id nor a name"):
        world.run(NODE_POOLS.locate(id_, world.retry(), "cls-1"))


@given(st.text(min_size=1).filter(lambda text: "/" not in text and text not in (".", "..")))
def test_no_id_changes_the_path(id_: str) -> None:
    world = World()
    path = world.run(CLUSTERS.locate(id_, world.retry()))
    rest = path.removeprefix(f"{BASE}/clusters/")
    assert rest
    assert set(rest).isdisjoint("/?#: ")


@given(
    st.fixed_dictionaries(
        {"available": st.sampled_from([True, False, None, "True", "Unknown"])},
        optional={
            "applied": st.sampled_from([True, False, None]),
            "health": st.just(ConditionResult(False, "Broken", "it broke")),
            "finalized": st.booleans(),
            "reason": st.just("JobRunning"),
            "message": st.text(max_size=20).filter(lambda text: text.isprintable()),
            "conditions": st.just({"DNSReady": True, "Slow": ConditionResult(None, "NotMeasured")}),
            "data": st.just({"records": 5}),
            "metadata": st.just({"job": "x"}),
        },
    ),
    st.integers(1, 10**9),
)
def test_the_server_reads_every_report(fields: Any, generation: int) -> None:
    body = msgspec.json.decode(msgspec.json.encode(compose("dns", fields, generation, NOW)))
    read = read_report(body, "")
    assert read.errors == ()
    assert read.notes == ()
    assert read.report is not None
    assert read.report.observed_time == NOW
    available = read.report.condition("Available")
    assert available is not None
    assert available.reason == fields.get("reason", "")
    assert {each.type for each in read.report.conditions} >= {"Available", "Applied", "Health"}


def test_the_generation_is_given_or_from_the_object_or_read() -> None:
    taken = answer({"phase": "Ready", "outcomes": [{"adapter": "dns", "outcome": "aggregated"}]})

    def sent(subject: Resource | str, fields: ReportFields, *before: Any) -> list[int]:
        world = World(*before, taken)
        world.run(report(subject, "dns", fields, world.retry()))
        assert world.is_over
        return [msgspec.json.decode(world.sent[-1].body)["observedGeneration"], len(world.sent)]

    assert sent(Cluster("c", generation=4), {"available": True}) == [4, 1]
    assert sent(Cluster("c", generation=4), {"available": True, "generation": 3}) == [3, 1]
    assert sent("c", {"available": True, "generation": 3}) == [3, 1]
    assert sent("c", {"available": True}, answer({"id": "c", "generation": 7})) == [7, 2]
    assert sent(Cluster("c"), {"available": True}, answer({"id": "c", "generation": 7})) == [7, 2]


def test_a_long_batch_is_sent_in_parts_and_counted_as_one() -> None:
    def part(number: int) -> Any:
        results: list[dict[str, Any]] = [{"index": index, "status": 200} for index in range(number)]
        results[-1]["problem"] = {"code": "NotFound", "status": 404}
        return answer({"results": results, "accepted": number - 1, "refused": 1})

    world = World(part(500), part(2))
    entries = [BatchReport(f"np-{number}", "dns", {"available": True, "generation": 1}) for number in range(502)]
    done = world.run(report_batch(entries, world.retry()))
    assert [each.index for each in done.results] == list(range(502))
    assert (done.accepted, done.refused) == (500, 2)
    assert msgspec.json.decode(world.sent[1].body)["reports"][0]["nodePoolId"] == "np-500"
    with pytest.raises(ValueError, match="needs a generation"):
        world.run(report_batch([BatchReport("c", "dns", {"available": True})], world.retry()))


# ── errors ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_problem_is_reported_with_its_place() -> None:
    problem = ProblemDocument(
        title="The policy has problems",
        detail="3 things are wrong",
        status=500,
        code="InvalidPolicy",
        request_id="req-7",
        errors=(
            ErrorDetail("A", "no such adapter", line=3, column=5),
            ErrorDetail("B", "not a number", pointer="/spec/replicas"),
            ErrorDetail("C", "not a phase", parameter="phase"),
            ErrorDetail("D", "3 things are wrong"),
        ),
    )
    assert format_problem(problem).splitlines() == [
        "The policy has problems: 3 things are wrong (InvalidPolicy)",
        "  3:5: no such adapter",
        "  /spec/replicas: not a number",
        "  phase: not a phase",
        "  the server's log has it under req-7",
    ]


def test_unauthenticated_has_a_hint() -> None:
    error = Unauthenticated(ProblemDocument(detail="send a token", status=401, code="Unauthenticated"))
    assert "HYPERFLEET_TOKEN" in str(error)
    assert (error.code, error.status, Unauthenticated.code) == ("Unauthenticated", 401, "ApiError")


@given(st.binary(max_size=300), st.integers(400, 599))
def test_any_response_can_be_formatted(body: bytes, status: int) -> None:
    problem = read_problem(body, status) or make_problem(status, body)
    assert problem.status == status
    assert len(format_problem(problem)) < 500
