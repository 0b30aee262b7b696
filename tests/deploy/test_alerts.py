"""Alerts, recorded series and the dashboard: well formed, about metrics that there are, firing when they should."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hyperfleet.api.context import MetricsOptions, RequestLimits
from hyperfleet.api.metrics import list_families
from hyperfleet.backends.memory import MemoryStore
from tests.api.fleet import HandClock, open_fleet
from tests.api.scrapes import Scrape, fetch_within
from tests.deploy.alerting import (
    ALERTS,
    DASHBOARD,
    PROMTOOL,
    RECORDING,
    Promtool,
    find_promtool,
    metrics_in,
    read_rules,
    recorded_in,
    selectors_in,
)

SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",), "info": ("_info", "")}
ADDED = {"job", "instance", "pod", "le", "worker"}  # labels that are not the family's own
TARGET = 'job="hyperfleet", instance="a:80"'


@pytest.fixture
def promtool(tmp_path: Path) -> Promtool:
    """Give promtool, or skip: rules are then only read."""
    program = find_promtool()
    if program is None:
        pytest.skip(
            f"Server missing: promtool was not found; to enable: apt-get install prometheus, or name it in {PROMTOOL}"
        )
    return Promtool(program, tmp_path)


@pytest.fixture(scope="module")
def scrape() -> Scrape:
    """Give the metrics of a real server that was asked for everything it has."""
    clock = HandClock()
    with open_fleet(MemoryStore(clock), clock, RequestLimits()) as fleet:
        fleet.report(fleet.create(), "dns")
        context = msgspec.structs.replace(fleet.context, metrics=MetricsOptions(per_resource=True))
        return Scrape(fleet.run(fetch_within(context)))


def panels() -> list[dict[str, Any]]:
    """Return the panels of the dashboard."""
    return list(msgspec.json.decode(DASHBOARD.read_bytes())["panels"])


def expressions() -> Iterator[str]:
    """Yield every expression of the rules and of the dashboard."""
    yield from (str(rule["expr"]) for file in (ALERTS, RECORDING) for rule in read_rules(file))
    yield from shown()
    dashboard = msgspec.json.decode(DASHBOARD.read_bytes())
    yield from (str(each["query"]) for each in dashboard["templating"]["list"])


def shown() -> Iterator[str]:
    """Yield what the dashboard asks Prometheus to compute."""
    yield from (str(target["expr"]) for panel in panels() for target in panel.get("targets", ()))
    dashboard = msgspec.json.decode(DASHBOARD.read_bytes())
    yield from (str(each["expr"]) for each in dashboard["annotations"]["list"])


# ── what they are about ──────────────────────────────────────────────────────────────────────────────────────────


def test_every_metric_that_is_asked_for_is_told(scrape: Scrape) -> None:
    told = {name + suffix for name, family in scrape.families.items() for suffix in SUFFIXES[family.type]}
    asked = {name for expression in expressions() for name in metrics_in(expression)}
    assert len(asked) > 30
    assert asked - told == set()


def test_every_label_that_is_looked_at_is_there() -> None:
    labels = {family.name: set(family.labels) for family in list_families()}
    for expression in expressions():
        for name, matched in selectors_in(expression):
            known = labels.get(re.sub(r"_(bucket|sum|count)$", "", name), labels.get(name, ADDED))
            assert set(matched) <= known | ADDED, (name, expression)


def test_every_recorded_series_that_is_asked_for_is_recorded() -> None:
    recorded = {rule["record"] for rule in read_rules(RECORDING)}
    asked = {name for expression in expressions() for name in recorded_in(expression)}
    assert asked - recorded == set()
    assert recorded - asked == set(), "nobody asks for these"


# ── what an alert must have ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("rule", read_rules(ALERTS), ids=lambda rule: str(rule["alert"]))
def test_an_alert_helps_whoever_gets_it(rule: dict[str, Any]) -> None:
    assert rule["alert"].startswith("HyperFleet")
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
    assert rule["annotations"]["runbook_url"].endswith(f"#{rule['alert'].lower()}")
    assert "for" in rule or "changes(" in rule["expr"], "what passes by itself wakes nobody"


def test_no_name_is_given_twice() -> None:
    names = [rule["alert"] for rule in read_rules(ALERTS)]
    assert len(names) == len(set(names))


# ── the dashboard ────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_dashboard_asks_in_the_order_of_three_in_the_morning() -> None:
    rows = [
        panel["title"] for panel in sorted(panels(), key=lambda each: each["gridPos"]["y"]) if panel["type"] == "row"
    ]
    words = ["broken", "Since when", "Why", "Whose", "What else", "server"]
    assert [word in row for word, row in zip(words, rows, strict=True)] == [True] * 6


def test_what_the_dashboard_asks_is_understood(promtool: Promtool) -> None:
    """Its variables stand only where a label's value does, so promtool can read each expression as it is."""
    asked = list(shown())
    assert len(asked) > 30
    done = promtool.read(asked)
    assert done.returncode == 0, done.stderr
    assert promtool.read([*asked, "sum by (kind) hyperfleet_resources"]).returncode != 0, "what is wrong is noticed"


def test_panels_are_told_apart_and_do_not_overlap() -> None:
    ids = [panel["id"] for panel in panels()]
    assert len(ids) == len(set(ids))
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels())
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert {x for x, _ in cells} == set(range(24))


def test_every_panel_explains_itself_and_takes_the_chosen_source() -> None:
    dashboard = msgspec.json.decode(DASHBOARD.read_bytes())
    assert dashboard["templating"]["list"][0]["type"] == "datasource"
    for panel in panels():
        if panel["type"] != "row":
            assert panel["description"].endswith(".")
            assert {panel["datasource"]["uid"]} == {"${datasource}"}
            assert {target["datasource"]["uid"] for target in panel["targets"]} == {"${datasource}"}
            assert all('job=~"$job' in target["expr"] for target in panel["targets"]), panel["title"]


# ── what they do ─────────────────────────────────────────────────────────────────────────────────────────────────


def series(name: str, values: str, labels: str = "") -> dict[str, str]:
    """Make up a series of a server."""
    both = ", ".join(filter(None, (TARGET, labels)))
    return {"series": f"{name}{{{both}}}", "values": values}


def histogram(name: str, counts: dict[str, int], labels: str = "") -> list[dict[str, str]]:
    """Make up a histogram that grows by so many, up to each bound, in each minute."""
    rows = [
        series(f"{name}_bucket", f"0+{count}x2000", ", ".join(filter(None, (labels, f'le="{end}"'))))
        for end, count in counts.items()
    ]
    return [*rows, series(f"{name}_count", f"0+{max(counts.values())}x2000", labels)]


RESOURCES = "hyperfleet_resources"
REPORTS = "hyperfleet_reports_total"
PROBLEMS = "hyperfleet_problems_total"
REQUESTS = "hyperfleet_http_requests_total"
SILENT = "hyperfleet_adapter_last_seen_timestamp_seconds"
BLOCKED = "hyperfleet_resources_blocked"
OLDEST = "hyperfleet_resources_oldest_phase_timestamp_seconds"
STATES = "hyperfleet_resource_adapters"
OTHERS = 'kind="Cluster", phase="Ready"'

# How a fleet looks of which nobody need be told anything.
QUIET = [
    series("up", "1x2000"),
    series("hyperfleet_build_info", "1x2000", 'version="1"'),
    series("hyperfleet_store_up", "1x2000"),
    series("hyperfleet_fleet_figures_up", "1x2000"),
    series("hyperfleet_ready", "1x2000", 'check="queue"'),
    series("hyperfleet_ready", "1x2000", 'check="store"'),
    series("hyperfleet_policy_info", "1x2000", 'version="1", digest="a"'),
    series("process_start_time_seconds", "5x2000"),
    series(REQUESTS, "0+100x2000", 'route="/v1/clusters", method="GET", code="200"'),
    series(REQUESTS, "0+1x2000", 'route="/v1/clusters", method="GET", code="503"'),
    *histogram("hyperfleet_commit_duration_seconds", {"0.01": 100, "0.5": 100, "+Inf": 100}),
    *histogram("hyperfleet_http_request_duration_seconds", {"0.01": 100, "+Inf": 100}, 'route="/a", method="GET"'),
    *histogram("hyperfleet_report_lag_seconds", {"1": 10, "+Inf": 10}, 'adapter="dns"'),
    series("hyperfleet_write_queue_length", "10x2000"),
    series("hyperfleet_write_queue_capacity", "2000x2000"),
    series("hyperfleet_deadline_lag_seconds", "1x2000"),
    series("hyperfleet_recomputation_backlog", "100-10x10 0x2000"),
    series(REPORTS, "0+100x2000", 'adapter="dns", outcome="aggregated"'),
    series(REPORTS, "0+1x2000", 'adapter="dns", outcome="OutOfOrder"'),
    series(SILENT, "0+60x2000", 'adapter="dns"'),
    series(SILENT, "0x2000", 'adapter="retired"'),  # nobody waits for it
    series("hyperfleet_adapter_clock_skew_seconds", "-2x2000", 'adapter="dns"'),
    series(RESOURCES, "1000x2000", OTHERS),
    series(RESOURCES, "2x2000", 'kind="Cluster", phase="Failed"'),
    series(STATES, "2x2000", 'kind="Cluster", adapter="dns", state="Failed"'),
]

# What is to be seen, for each alert, after it has been so for hours.
LOUD: dict[str, list[dict[str, str]]] = {
    "HyperFleetDown": [],
    "HyperFleetReplicaDown": [series("up", "0x2000")],
    "HyperFleetNotReady": [  # one of two has lost its way to the store
        series("hyperfleet_ready", "0x2000", 'check="store"'),
        series("hyperfleet_ready", "1x2000", 'check="store", pod="b"'),
        series("hyperfleet_store_up", "0x2000"),
        series("hyperfleet_store_up", "1x2000", 'pod="b"'),
    ],
    "HyperFleetStoreUnavailable": [series("hyperfleet_store_up", "0x2000")],
    "HyperFleetErrors": [
        series(REQUESTS, "0+90x2000", 'route="/a", method="GET", code="200"'),
        series(REQUESTS, "0+10x2000", 'route="/a", method="GET", code="500"'),
    ],
    "HyperFleetSlow": histogram(
        "hyperfleet_http_request_duration_seconds", {"1": 90, "5": 100, "+Inf": 100}, 'route="/a", method="GET"'
    ),
    "HyperFleetCommitsSlow": histogram("hyperfleet_commit_duration_seconds", {"0.5": 90, "1": 100, "+Inf": 100}),
    "HyperFleetQueueFilling": [
        series("hyperfleet_write_queue_length", "1500x2000"),
        series("hyperfleet_write_queue_capacity", "2000x2000"),
    ],
    "HyperFleetWritesRefused": [series(PROBLEMS, "0+60x2000", 'code="Overloaded"')],
    "HyperFleetWritesFailing": [series("hyperfleet_write_failures_total", "0+60x2000", 'error="StoreUnavailable"')],
    "HyperFleetDeadlinesLate": [series("hyperfleet_deadline_lag_seconds", "120x2000")],
    "HyperFleetRecomputationStuck": [series("hyperfleet_recomputation_backlog", "100x2000")],
    "HyperFleetPoliciesDiffer": [
        series("hyperfleet_policy_info", "1x2000", 'version="1", digest="a"'),
        series("hyperfleet_policy_info", "1x2000", 'version="2", digest="b"'),
    ],
    "HyperFleetLoopFailing": [series("hyperfleet_loop_failures_total", "0+1x2000", 'loop="deadlines"')],
    "HyperFleetPruningStuck": [series("hyperfleet_pruning_failures_total", "0+1x2000", 'log="events"')],
    "HyperFleetReaderDropped": [series("hyperfleet_dropped_readers_total", "0+1x2000", 'reader="relay"')],
    "HyperFleetEventsDelayed": [series("hyperfleet_relay_lag_seconds", "90x2000")],
    "HyperFleetNoRelay": [series("hyperfleet_relay_active", "0x2000")],
    "HyperFleetDeadLetters": [series("hyperfleet_subscription_messages", "3x2000", 'subscription="dns", state="dead"')],
    "HyperFleetSentinelStuck": [series("hyperfleet_sentinel_lag_seconds", "600x2000")],
    "HyperFleetWebhookFailing": [series("hyperfleet_webhook_lag_seconds", "3600x2000", 'webhook="ops"')],
    "HyperFleetWebhookDisabled": [series("hyperfleet_webhook_disabled", "1x2000", 'webhook="ops"')],
    "HyperFleetWorkerDied": [series("process_start_time_seconds", "0+5x2000")],
    "HyperFleetFleetFiguresMissing": [series("hyperfleet_fleet_figures_up", "0x2000")],
    "HyperFleetMetricsCutOff": [series("hyperfleet_resource_metrics_cut_off", "1x2000", 'kind="Cluster"')],
    "HyperFleetAdapterSilent": [
        series(SILENT, "0x2000", 'adapter="dns"'),
        series(BLOCKED, "3x2000", 'adapter="dns", kind="Cluster"'),
    ],
    "HyperFleetReportsDiscarded": [
        series(REPORTS, "0+10x2000", 'adapter="dns", outcome="aggregated"'),
        series(REPORTS, "0+5x2000", 'adapter="dns", outcome="OutOfOrder"'),
    ],
    "HyperFleetReportsLate": histogram(
        "hyperfleet_report_lag_seconds", {"300": 10, "900": 100, "+Inf": 100}, 'adapter="dns"'
    ),
    "HyperFleetClockSkew": [series("hyperfleet_adapter_clock_skew_seconds", "-600x2000", 'adapter="dns"')],
    "HyperFleetAuthFailures": [series(PROBLEMS, "0+120x2000", 'code="InvalidToken"')],
    "HyperFleetRateLimited": [series(PROBLEMS, "0+60x2000", 'code="RateLimited"')],
    "HyperFleetClustersFailing": [
        series(RESOURCES, "90x2000", OTHERS),
        series(RESOURCES, "10x2000", 'kind="Cluster", phase="Degraded"'),
    ],
    "HyperFleetAdapterFailing": [
        series(RESOURCES, "100x2000", OTHERS),
        series(STATES, "10x2000", 'kind="Cluster", adapter="dns", state="Unhealthy"'),
    ],
    "HyperFleetStuckDeleting": [series(OLDEST, "0x2000", 'kind="Cluster", phase="Deleting"')],
    "HyperFleetStuckFailed": [series(OLDEST, "0x2000", 'kind="Cluster", phase="Failed"')],
    "HyperFleetSlowToReady": [
        # Quick for a day, then slow.
        series(
            "hyperfleet_time_to_ready_seconds_bucket", "0+1x1800 1800x200", 'kind="Cluster", since="change", le="60"'
        ),
        series("hyperfleet_time_to_ready_seconds_bucket", "0+1x2000", 'kind="Cluster", since="change", le="600"'),
        series("hyperfleet_time_to_ready_seconds_bucket", "0+1x2000", 'kind="Cluster", since="change", le="+Inf"'),
        series("hyperfleet_time_to_ready_seconds_count", "0+1x2000", 'kind="Cluster", since="change"'),
    ],
    "HyperFleetFlapping": [series("hyperfleet_resources_flapping", "1x2000", 'kind="Cluster", subject="Ready"')],
}

PATIENT = {"HyperFleetStuckFailed", "HyperFleetSlowToReady"}

# What a gauge is when all is well again; what is not here is no longer told then. Counters stand still.
WELL: dict[str, int] = {
    "up": 1,
    "hyperfleet_ready": 1,
    "hyperfleet_store_up": 1,
    "hyperfleet_fleet_figures_up": 1,
    "hyperfleet_write_queue_length": 0,
    "hyperfleet_write_queue_capacity": 2000,
    "hyperfleet_deadline_lag_seconds": 0,
    "hyperfleet_recomputation_backlog": 0,
    "hyperfleet_resource_metrics_cut_off": 0,
    "hyperfleet_webhook_lag_seconds": 0,
    "hyperfleet_webhook_disabled": 0,
    "hyperfleet_adapter_clock_skew_seconds": 0,
    BLOCKED: 0,
    STATES: 0,
}


def mend(given: dict[str, str], minutes: int) -> dict[str, str]:
    """Let a series that was made up be well again after so many minutes."""
    made_up = re.fullmatch(r"(-?\d+)([+-]\d+)?x2000", given["values"])
    if made_up is None:
        return given
    start, step = int(made_up[1]), int(made_up[2] or 0)
    name = given["series"].partition("{")[0]
    well = start + minutes * step if step else WELL.get(name, start if OTHERS in given["series"] else None)
    after = "stale" if well is None else f"{well}x2000"
    return {**given, "values": f"{start}{step:+}x{minutes} {after}"}


def firing(names: str, count: int, later: int = 0) -> dict[str, Any]:
    """Expect so many alerts of these names to fire after three hours; those that are about days, after days."""
    samples = [{"labels": "{}", "value": count}] if count else []
    expression = f'count(ALERTS{{alertname=~"{names}", alertstate="firing"}})'
    time = (1980 if names in PATIENT else 180) + later
    return {"expr": expression, "eval_time": f"{time}m", "exp_samples": samples}


def test_the_rules_are_rules(promtool: Promtool) -> None:
    done = promtool.check(RECORDING, ALERTS)
    assert done.returncode == 0, done.stderr


def test_every_alert_is_tried() -> None:
    assert {rule["alert"] for rule in read_rules(ALERTS)} == set(LOUD)


def test_a_quiet_fleet_is_quiet(promtool: Promtool) -> None:
    done = promtool.test([{"interval": "1m", "input_series": QUIET, "promql_expr_test": [firing(".*", 0)]}])
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_fires_when_it_should(promtool: Promtool) -> None:
    tests = [
        {"name": name, "interval": "1m", "input_series": given, "promql_expr_test": [firing(name, 1)]}
        for name, given in LOUD.items()
    ]
    done = promtool.test(tests)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_ends_when_its_cause_does(promtool: Promtool) -> None:
    tests = []
    for name, given in LOUD.items():
        lasting = 1990 if name in PATIENT else 190
        mended = [mend(each, lasting) for each in given] or [series("hyperfleet_build_info", f"_x{lasting} 1x2000")]
        expected = [firing(name, 1), firing(name, 0, later=130)]
        tests.append({"name": name, "interval": "1m", "input_series": mended, "promql_expr_test": expected})
    done = promtool.test(tests)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_store_that_all_have_lost_is_told_of_once(promtool: Promtool) -> None:
    given = [series("hyperfleet_store_up", "0x2000"), series("hyperfleet_ready", "0x2000", 'check="store"')]
    expected = [firing("HyperFleetStoreUnavailable", 1), firing("HyperFleetNotReady", 0)]
    done = promtool.test([{"interval": "1m", "input_series": given, "promql_expr_test": expected}])
    assert done.returncode == 0, done.stdout + done.stderr
