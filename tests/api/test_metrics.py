"""`/metrics`: what is counted, in which form, and who sees what of it."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from hyperfleet import __version__
from hyperfleet.api.app import create_app
from hyperfleet.api.context import MetricsOptions, RequestLimits
from hyperfleet.api.metrics import list_families
from hyperfleet.api.request_metrics import RequestInfo
from hyperfleet.backends.memory import MemoryStore
from hyperfleet.errors import StoreUnavailable
from hyperfleet.messaging import Message
from hyperfleet.model.phase import PHASES
from hyperfleet.ports import GroupCount, Query, Scope, StatusCause, StoredAnswer
from hyperfleet.services.callers import Caller, Rejection, Role
from hyperfleet.services.upkeep import recompute_all
from tests.api.fleet import ROOT, Fleet, HandClock, open_fleet, path_of
from tests.api.scrapes import OPEN_METRICS, Scrape, fetch_within
from tests.world import body

CLUSTERS = "/api/hyperfleet/v1/clusters"
FRESH = MetricsOptions(refresh_interval=timedelta(0))
READER: frozenset[Role] = frozenset({"reader"})


def scrape(fleet: Fleet, **headers: str) -> Scrape:
    """Read the metrics of a fleet whose server keeps nothing from the scrape before."""
    return Scrape(ask(fleet, FRESH, headers))


def ask(fleet: Fleet, options: MetricsOptions = FRESH, headers: Mapping[str, str] | None = None, **more: Any) -> Any:
    """Ask a server with other options, on the same store, for metrics."""
    context = replace(fleet.context, metrics=options, **more)
    return fleet.run(fetch_within(context, headers=headers))


def make_ready(fleet: Fleet, cluster: Mapping[str, Any], **more: Any) -> None:
    """Let all required adapters say that they are done."""
    for adapter in ("validation", "dns"):
        fleet.report(cluster, adapter, **more)


# ── the form ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_form_is_chosen_by_the_reader(memory_client: Fleet) -> None:
    memory_client.create()
    plain = memory_client.get(f"{ROOT}/metrics")
    assert plain.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    Scrape(plain)
    open_ = memory_client.get(f"{ROOT}/metrics", headers=OPEN_METRICS)
    assert open_.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert open_.text.endswith("# EOF\n")
    Scrape(open_)


def test_it_is_compressed_for_who_wants_it(memory_client: Fleet) -> None:
    answer = memory_client.get(f"{ROOT}/metrics", headers={"Accept-Encoding": "gzip"})
    assert answer.headers["content-encoding"] == "gzip"
    assert "hyperfleet_build_info" in Scrape(answer).names


def test_every_family_says_what_it_is(memory_client: Fleet) -> None:
    for family in Scrape(memory_client.get(f"{ROOT}/metrics")).families.values():
        assert family.documentation
        assert family.type != "unknown"
    for family in list_families():
        assert family.name.startswith("hyperfleet_")
        assert family.help.endswith((".", "%"))
        assert family.name.endswith("_total") == (family.kind == "counter")


def test_nothing_is_shown_that_is_not_described(client: Fleet) -> None:
    cluster = client.create()
    make_ready(client, cluster)
    options = replace(FRESH, per_resource=True)
    shown = {name for name in Scrape(ask(client, options)).families if name.startswith("hyperfleet_")}
    assert shown == {family.name.removesuffix("_total") for family in list_families()}


def test_the_standard_figures_are_there(memory_client: Fleet) -> None:
    found = scrape(memory_client)
    assert {"process_cpu_seconds_total", "process_resident_memory_bytes", "python_gc_collections_total"} <= found.names
    assert found.get("hyperfleet_build_info", version=__version__) == 1
    assert found.get("hyperfleet_policy_info", version="1") == 1
    assert found.get("hyperfleet_policy_activated_timestamp_seconds") > 0
    assert found.get("hyperfleet_store_up") == 1
    assert found.find("hyperfleet_ready") == {("store",): 1, ("queue",): 1, ("policy",): 1}


# ── the fleet ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_resources_are_counted_by_what_they_are(client: Fleet) -> None:
    ready, waiting = client.create("ready"), client.create("waiting")
    client.create_pool(waiting)
    make_ready(client, ready)
    client.report(waiting, "dns", "False", health="False")
    found = scrape(client)
    phases = found.find("hyperfleet_resources", kind="Cluster")
    assert set(phases) == {(phase,) for phase in PHASES}
    assert phases["Ready",] == 1
    assert sum(phases.values()) == 2
    assert sum(found.find("hyperfleet_resources", kind="NodePool").values()) == 1
    assert found.find("hyperfleet_resource_conditions", kind="Cluster", condition="Ready") == {
        ("True",): 1,
        ("False",): 1,
    }
    assert found.find("hyperfleet_resource_ready_reasons", kind="Cluster")["AllAdaptersReady",] == 1
    assert found.find("hyperfleet_resources_blocked", kind="Cluster") == {("validation",): 1, ("dns",): 1}
    assert found.get("hyperfleet_resource_adapters", kind="Cluster", adapter="dns", state="Unhealthy") == 1
    assert found.get("hyperfleet_resource_adapters", kind="Cluster", adapter="validation", state="Unreported") == 1
    assert found.get("hyperfleet_adapter_last_seen_timestamp_seconds", adapter="dns") > 0
    assert found.get("hyperfleet_log_position") > 0


def test_readers_of_the_log_and_queues_are_shown(client: Fleet) -> None:
    client.run(client.store.open_reader("relay"))
    client.put("/subscriptions/dns", {})
    client.create("one")
    made = Message("clusterEvents", "1", "/x", "t", "Cluster/c", client.clock.time, "", "c", b"{}")
    client.run(client.store.queues.enqueue([made, made]))
    client.run(client.store.queues.take("dns", 1, timedelta(minutes=1), 3))
    found = scrape(client)
    assert found.get("hyperfleet_reader_lag_events", reader="relay") == found.get("hyperfleet_log_position")
    messages = found.find("hyperfleet_subscription_messages", subscription="dns")
    assert messages == {("waiting",): 1, ("in_flight",): 1, ("dead",): 0}
    oldest = found.get("hyperfleet_subscription_oldest_timestamp_seconds", subscription="dns")
    assert oldest == pytest.approx(client.clock.time.timestamp(), abs=1)
    assert found.get("hyperfleet_recomputation_backlog") == 0
    assert found.get("hyperfleet_fleet_figures_up") == 1


def test_since_when_something_is_being_deleted(memory_client: Fleet, clock: HandClock) -> None:
    first, second = memory_client.create("first"), memory_client.create("second")
    clock.pass_time(timedelta(minutes=1))
    begun = clock.now().timestamp()
    memory_client.delete(path_of(second))
    clock.pass_time(timedelta(minutes=1))
    memory_client.delete(path_of(first))
    found = scrape(memory_client)
    assert found.get("hyperfleet_resources", kind="Cluster", phase="Deleting") == 2
    assert found.get("hyperfleet_resources_oldest_phase_timestamp_seconds", phase="Deleting") == begun


def test_stale_flapping_and_overdue(clock: HandClock) -> None:
    policy = "requiredAdapters: [dns]\npolicies: {staleThreshold: 5m}\nflapping: {transitions: 3, window: 10m}\n"
    with open_fleet(MemoryStore(clock), clock, RequestLimits(), policy) as fleet:
        cluster, steady = fleet.create(), fleet.create("steady")
        for available in ("True", "False", "True", "False", "True"):
            clock.pass_time(timedelta(seconds=10))
            fleet.report(cluster, "dns", available)
        found = scrape(fleet)
        assert found.get("hyperfleet_resources_flapping", kind="Cluster", subject="Ready") == 1
        assert found.get("hyperfleet_deadline_lag_seconds") == 0
        assert found.find("hyperfleet_resources_stale") == {}
        clock.pass_time(timedelta(hours=1))
        assert 3_000 < scrape(fleet).get("hyperfleet_deadline_lag_seconds") <= 3_600
        fleet.report(steady, "dns")
        fleet.run(keep_deadlines(fleet))
        found = scrape(fleet)
        assert found.find("hyperfleet_resources_stale") == {("dns", "Cluster"): 1}
        assert found.get("hyperfleet_deadline_lag_seconds") == 0
        fleet.report(cluster, "dns")
        assert scrape(fleet).find("hyperfleet_resources_stale") == {}, "it was heard of again"


async def keep_deadlines(fleet: Fleet) -> None:
    """Compute what is due, as the timekeeper does."""
    await recompute_all(fleet.committer, (await fleet.store.due(100)).ids, StatusCause("deadline"))


def test_a_scrape_without_its_store(clock: HandClock) -> None:
    class LostStore(MemoryStore):
        """A store that was lost."""

        async def check(self) -> None:
            raise StoreUnavailable("no route to the database")

        async def summarize(self, query: Query, prefixes: tuple[str, ...]) -> tuple[GroupCount, ...]:
            raise StoreUnavailable("no route to the database")

    with open_fleet(LostStore(clock), clock, RequestLimits()) as fleet:
        found = scrape(fleet)
        assert (found.get("hyperfleet_store_up"), found.get("hyperfleet_fleet_figures_up")) == (0, 0)
        assert found.find("hyperfleet_ready")["store",] == 0
        assert "hyperfleet_resources" not in found.names
        assert "process_cpu_seconds_total" in found.names


def test_scrapes_in_short_succession_ask_the_store_once(clock: HandClock) -> None:
    class CountingStore(MemoryStore):
        """A store that counts."""

        asked = 0

        async def summarize(self, query: Query, prefixes: tuple[str, ...]) -> tuple[GroupCount, ...]:
            self.asked += 1
            await asyncio.sleep(0)
            return await super().summarize(query, prefixes)

    store = CountingStore(clock)
    with open_fleet(store, clock, RequestLimits()) as fleet:

        async def ask_at_once() -> None:
            async with httpx.AsyncClient(transport=httpx.ASGITransport(fleet.app)) as http:
                await asyncio.gather(*[http.get(f"{ROOT}/metrics") for _ in range(5)])

        fleet.get(f"{ROOT}/metrics")
        once = store.asked
        fleet.run(ask_at_once())
        assert store.asked == once > 0


# ── each resource ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("headers", [{}, OPEN_METRICS, {"Accept-Encoding": "gzip"}], ids=["text", "open", "gzip"])
def test_every_cluster_is_a_state_set_if_wanted(client: Fleet, headers: Mapping[str, str]) -> None:
    cluster = client.create()
    pool = client.create_pool(cluster)
    make_ready(client, cluster)
    assert "hyperfleet_cluster_status_condition" not in Scrape(ask(client, FRESH, headers)).names
    found = Scrape(ask(client, replace(FRESH, per_resource=True), headers))
    assert found.find("hyperfleet_cluster_status_condition", cluster=cluster["id"], condition="Ready") == {
        ("my-cluster", "True"): 1,
        ("my-cluster", "False"): 0,
        ("my-cluster", "Unknown"): 0,
    }
    of_pool = found.find("hyperfleet_nodepool_status_condition", nodepool=pool["id"], condition="Ready")
    assert of_pool["workers", "True"] == 1  # nobody is required
    assert found.find("hyperfleet_resource_metrics_cut_off") == {("Cluster",): 0, ("NodePool",): 0}


@pytest.mark.parametrize("count", [4, 5, 6, 450])
def test_too_many_resources_are_cut_off_and_that_is_told(
    memory_client: Fleet, caplog: pytest.LogCaptureFixture, count: int
) -> None:
    most = 5 if count < 100 else 420  # also in the midst of a page that is not the first
    for number in range(count):
        memory_client.create(f"cluster-{number}")
    found = Scrape(ask(memory_client, replace(FRESH, per_resource=True, max_resources=most)))
    told = {
        sample.labels["cluster"] for sample in found.samples if sample.name == "hyperfleet_cluster_status_condition"
    }
    assert len(told) == min(count, most)
    assert found.get("hyperfleet_resource_metrics_cut_off", kind="Cluster") == (count > most)
    assert (f"at most {most}" in caplog.text) == (count > most)


# ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────


def requests(found: Scrape) -> dict[tuple[str, ...], float]:
    """Return how many requests were counted, by route, method and code, but for those for metrics."""
    counted = found.find("hyperfleet_http_requests_total")
    return {(route, method, code): value for (code, method, route), value in counted.items() if route != "/metrics"}


def test_requests_are_counted_by_template_on_every_way(client: Fleet) -> None:
    cluster = client.create()
    path = path_of(cluster)
    client.get(path)  # the fast lane
    client.get(path, headers={"If-None-Match": "*"})  # the ordinary way
    client.get(f"{ROOT}/v1{path}")  # an alias, on the fast lane …
    client.get(f"{ROOT}/v1{path}?fields=id")  # … and on the ordinary way
    client.get("/clusters/cls-none")
    client.report(cluster, "dns")  # the report lane
    client.post(f"{path}/statuses", body("dns", "True"), headers={"Prefer": "return=minimal"})  # the ordinary way
    client.put(f"{path}/statuses/adapters/dns", body("dns", "True"))
    client.get(f"{ROOT}/compat{CLUSTERS}/{cluster['id']}")
    client.get(f"{ROOT}/compat{CLUSTERS}/none/")
    client.get(f"{ROOT}/compat/nowhere")
    client.get(f"{ROOT}/nowhere/{cluster['id']}")
    client.request("BREW", "/clusters")
    client.get(f"{ROOT}/healthz")
    one, statuses = f"{CLUSTERS}/{{clusterId}}", f"{CLUSTERS}/{{clusterId}}/statuses"
    assert requests(scrape(client)) == {
        (CLUSTERS, "POST", "201"): 1,
        (one, "GET", "200"): 3,
        (one, "GET", "304"): 1,
        (one, "GET", "404"): 1,
        (statuses, "POST", "200"): 2,
        (f"{statuses}/adapters/{{adapter}}", "PUT", "200"): 1,
        (f"/compat{CLUSTERS}/{{id}}", "GET", "200"): 1,
        (f"/compat{CLUSTERS}/{{id}}", "GET", "404"): 1,
        ("unmatched", "GET", "404"): 2,
        (CLUSTERS, "other", "405"): 1,
        ("/healthz", "GET", "200"): 1,
    }


def test_durations_and_those_in_flight(memory_client: Fleet) -> None:
    memory_client.create()
    found = scrape(memory_client)
    assert found.get("hyperfleet_http_request_duration_seconds_count", route=CLUSTERS) == 1
    assert found.get("hyperfleet_http_request_duration_seconds_bucket", route=CLUSTERS, le="+Inf") == 1
    assert found.get("hyperfleet_http_request_duration_seconds_sum", route=CLUSTERS) > 0
    assert found.get("hyperfleet_http_requests_in_flight") == 1  # the scrape itself


def test_a_wait_counts_as_a_request_but_not_how_long_it_took(memory_client: Fleet) -> None:
    cluster = memory_client.create()
    assert memory_client.get(f"{path_of(cluster)}:wait?for=phase=Pending&timeout=0s").status_code == 200
    found, route = scrape(memory_client), f"{CLUSTERS}/{{clusterId}}:wait"
    assert found.get("hyperfleet_http_requests_total", route=route) == 1
    assert found.get("hyperfleet_http_request_duration_seconds_count", route=route) == 0
    assert found.get("hyperfleet_watches_open") == 0


def test_a_request_that_ended_leaves_nothing_behind(memory_client: Fleet) -> None:
    path = path_of(memory_client.create())
    gc.collect()
    gc.disable()
    try:
        for asked in (path, f"{ROOT}/v1{path}", f"{ROOT}/v1{path}?fields=id", f"{ROOT}/compat{CLUSTERS}"):
            assert memory_client.get(asked).status_code == 200
            assert [each for each in gc.get_objects() if isinstance(each, RequestInfo)] == [], asked
    finally:
        gc.enable()


def test_problems_are_counted_by_code(memory_client: Fleet) -> None:
    memory_client.get("/clusters/cls-none")
    memory_client.post("/clusters", {"name": "no spec", "spec": 1})
    found = scrape(memory_client).find("hyperfleet_problems_total")
    assert found == {("NotFound",): 1, ("InvalidBody",): 1}


def test_problems_of_the_dialect_are_counted_as_ours_are(clock: HandClock) -> None:
    class LostStore(MemoryStore):
        """A store that was lost."""

        async def find(self, query: Query) -> tuple[StoredAnswer, ...]:
            raise StoreUnavailable("no route to the database")

    with open_fleet(LostStore(clock), clock, RequestLimits()) as fleet:
        assert fleet.get(f"{ROOT}/compat{CLUSTERS}").status_code == 503
        assert fleet.get(f"{ROOT}/compat{CLUSTERS}?search=((").status_code == 400
        found = scrape(fleet).find("hyperfleet_problems_total")
        assert found == {("StoreUnavailable",): 1, ("HYPERFLEET-VAL-005",): 1}


def test_a_watcher_that_goes_is_no_problem(memory_client: Fleet) -> None:
    async def leave() -> None:
        scope = {"type": "http", "method": "GET", "path": CLUSTERS, "query_string": b"watch=true", "headers": []}

        begun = asyncio.Event()

        async def receive() -> Any:
            await begun.wait()
            return {"type": "http.disconnect"}

        async def send(_: Any) -> None:
            begun.set()

        async with asyncio.timeout(10):
            await memory_client.app({**scope, "root_path": "", "http_version": "1.1"}, receive, send)

    memory_client.run(leave())
    found = scrape(memory_client)
    assert requests(found)[CLUSTERS, "GET", "200"] == 1
    assert found.find("hyperfleet_problems_total") == {}


# ── reports, writes and transitions ──────────────────────────────────────────────────────────────────────────────


def test_reports_are_counted_by_what_became_of_them(client: Fleet) -> None:
    cluster = client.create()
    client.report(cluster, "dns", observedTime="2025-10-17T11:59:58Z")
    client.report(cluster, "dns", observedTime="2025-10-17T11:59:58Z")
    client.report(cluster, "dns", observedTime="2025-10-17T11:00:00Z")
    client.post(f"{path_of(cluster)}/statuses", body("dns", "True", generation=7))
    found = scrape(client)
    assert found.find("hyperfleet_reports_total", adapter="dns") == {
        ("aggregated",): 1,
        ("replayed",): 1,
        ("OutOfOrder",): 1,
        ("GenerationAhead",): 1,
    }
    assert found.get("hyperfleet_report_lag_seconds_count", adapter="dns") == 1


def test_how_late_reports_are(memory_client: Fleet) -> None:
    cluster = memory_client.create()
    memory_client.report(cluster, "dns", observedTime="2025-10-17T11:59:56Z")
    found = scrape(memory_client)
    assert found.get("hyperfleet_report_lag_seconds_sum") == 4
    assert found.get("hyperfleet_report_lag_seconds_bucket", le="2") == 0
    assert found.get("hyperfleet_report_lag_seconds_bucket", le="5") == 1


def test_writes_are_counted_once_they_are_durable(client: Fleet) -> None:
    cluster = client.create()
    make_ready(client, cluster)
    found = scrape(client)
    assert found.get("hyperfleet_write_batch_size_count") == 3
    assert found.get("hyperfleet_write_batch_size_sum") == 3
    assert found.get("hyperfleet_commit_duration_seconds_count") == 3
    assert found.get("hyperfleet_write_queue_length") == 0
    assert found.get("hyperfleet_write_queue_capacity") == 1_000
    assert found.find("hyperfleet_write_failures_total") == {}


def test_transitions_and_how_long_things_took(memory_client: Fleet, clock: HandClock) -> None:
    cluster = memory_client.create()
    clock.pass_time(timedelta(minutes=3))
    make_ready(memory_client, cluster)
    clock.pass_time(timedelta(hours=2))
    memory_client.report(cluster, "dns", "False")
    clock.pass_time(timedelta(seconds=30))
    memory_client.report(cluster, "dns", "True")  # a recovery: not the time that it took to be ready
    clock.pass_time(timedelta(hours=1))
    memory_client.patch(path_of(cluster), {"spec": {"region": "eu-west-1"}})
    clock.pass_time(timedelta(seconds=45))
    make_ready(memory_client, cluster, generation=2)
    found = scrape(memory_client)
    moves = found.find("hyperfleet_status_transitions_total", kind="Cluster", subject="Ready")
    assert moves == {("none", "False"): 1, ("False", "True"): 3, ("True", "False"): 2}
    stay = found.find("hyperfleet_status_time_in_state_seconds_sum", kind="Cluster", subject="Ready")
    assert stay == {("False",): 180 + 30 + 45, ("True",): 7_200 + 3_600}
    assert found.find("hyperfleet_time_to_ready_seconds_count", kind="Cluster") == {("creation",): 1, ("change",): 1}
    assert found.find("hyperfleet_time_to_ready_seconds_sum", kind="Cluster") == {("creation",): 180, ("change",): 45}


def test_a_removed_resource_leaves_its_phase(memory_client: Fleet) -> None:
    cluster = memory_client.create()
    memory_client.delete(path_of(cluster))
    memory_client.post(f"{path_of(cluster)}/force-delete", {"reason": "a test"})
    found = scrape(memory_client)
    left = found.find("hyperfleet_status_transitions_total", kind="Cluster", subject="phase", to="none")
    assert sum(left.values()) == 1


# ── who sees what ────────────────────────────────────────────────────────────────────────────────────────────────


class Door:
    """Knows some callers by token."""

    def recognize(self, token: bytes) -> Caller | None:
        """Know them at once."""
        return {
            b"all": Caller("all", roles=READER),
            b"red": Caller("red", Scope(frozenset({"red"})), "red", READER),
            b"blue": Caller("blue", Scope(frozenset({"blue"})), "blue", frozenset({"editor", "reporter"})),
            b"none": Caller("none", roles=frozenset()),
        }.get(token)

    async def identify(self, token: bytes) -> Caller | Rejection:
        """Know nobody else."""
        return Rejection("nobody knows this token")


def ask_as(fleet: Fleet, token: str | None, **options: Any) -> httpx.Response:
    """Ask a server that knows its callers."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    found: httpx.Response = ask(fleet, replace(FRESH, **options), headers, authenticator=Door())
    return found


@pytest.mark.parametrize("is_public", [False, True])
@pytest.mark.parametrize(("token", "status"), [("wrong", 401), ("none", 403), ("all", 200), ("red", 200)])
def test_whom_it_is_shown_to(memory_client: Fleet, token: str, status: int, is_public: bool) -> None:
    assert ask_as(memory_client, token, public=is_public).status_code == status


def test_who_is_not_known_sees_the_server_if_it_is_public(memory_client: Fleet) -> None:
    memory_client.create()
    assert ask_as(memory_client, None).status_code == 401
    found = Scrape(ask_as(memory_client, None, public=True, per_resource=True))
    assert {"process_cpu_seconds_total", "hyperfleet_store_up", "hyperfleet_http_requests_total"} <= found.names
    assert not any(
        name.startswith(("hyperfleet_resource", "hyperfleet_cluster", "hyperfleet_adapter")) for name in found.names
    )
    assert "my-cluster" not in ask_as(memory_client, None, public=True, per_resource=True).text


def test_tenants_see_their_own_and_nothing_of_the_server(client: Fleet) -> None:
    async def write() -> None:
        context = replace(client.context, authenticator=Door())
        blue = {"Authorization": "Bearer blue"}
        async with httpx.AsyncClient(transport=httpx.ASGITransport(create_app(context)), headers=blue) as http:
            created = await http.post(f"{ROOT}{CLUSTERS}", json={"name": "blue-cluster", "spec": {}})
            assert created.status_code == 201, created.text
            told = await http.post(
                f"{ROOT}{CLUSTERS}/{created.json()['id']}/statuses", json=body("blue-adapter", "True")
            )
            assert told.status_code == 200, told.text

    client.run(write())
    blue, red = ask_as(client, "blue", per_resource=True), ask_as(client, "red", per_resource=True)
    assert "blue-cluster" in blue.text
    assert (
        Scrape(blue).get("hyperfleet_resources", kind="Cluster", phase="Pending")
        + Scrape(blue).get("hyperfleet_resources", kind="Cluster", phase="Provisioning")
        == 1
    )
    assert "blue" not in red.text
    assert sum(Scrape(red).find("hyperfleet_resources").values()) == 0
    for answer in (blue, red):
        hidden = ("process_", "python_", "hyperfleet_http", "hyperfleet_reports", "hyperfleet_log", "hyperfleet_build")
        assert not any(name.startswith(hidden) for name in Scrape(answer).names)
    assert "blue-cluster" in ask_as(client, "all", per_resource=True).text
