"""What the API tells of itself is true: the document has every route, and only these; examples work; shapes fit."""

from __future__ import annotations

import re
import shlex
from datetime import timedelta
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.routing import Route

from hyperfleet.api import (
    adapters,
    differences,
    explanations,
    failures,
    health,
    history,
    lists,
    metrics,
    openapi,
    policy,
    policy_versions,
    reconciling,
    resources,
    sentinels,
    simulation,
    statuses,
    subscriptions,
    transitions,
    waiting,
    webhooks,
)
from hyperfleet.api.context import Context, RequestLimits
from hyperfleet.api.description import request_schemas
from hyperfleet.api.description.filters import FILTERS, GROUP_BY, PAGES, REPLAY, SPAN, SUBJECT
from hyperfleet.api.description.operations import Operation
from hyperfleet.api.description.page import curl
from hyperfleet.api.description.table import list_operations
from hyperfleet.api.description.watch_operations import WATCHING
from hyperfleet.api.problems import CATALOGUE, Refused
from hyperfleet.api.report_bodies import read_report_of, read_reports, split_batch
from hyperfleet.api.resource_bodies import (
    read_creation,
    read_force_reason,
    read_merge_patch,
    read_replacement,
    read_rollback,
)
from hyperfleet.api.simulation import read_replay
from hyperfleet.api.wire import BASE, RESOURCE_KEYS
from hyperfleet.model.kind import CLUSTER
from hyperfleet.ports import EVERYTHING
from hyperfleet.services.history_query import read_history_query
from hyperfleet.services.parameters import Parameters
from hyperfleet.services.redaction import Redactor
from hyperfleet.services.search import read_fields, read_group_by, read_query
from tests.api.fleet import ROOT, START, Fleet, path_of, problem_of
from tests.world import body

VERBS = {"get", "post", "put", "patch", "delete"}


def document_of(client: Fleet) -> dict[str, Any]:
    return dict(client.get(f"{ROOT}/openapi.json").json())


def methods_of(context: Context) -> set[tuple[str, str]]:
    """Return every method and path that the application has; parameters of paths have no names here."""
    modules = (
        resources,
        lists,
        waiting,
        statuses,
        explanations,
        differences,
        history,
        transitions,
        failures,
        adapters,
        policy,
        policy_versions,
        simulation,
        reconciling,
        subscriptions,
        sentinels,
        webhooks,
    )
    below = [route for module in modules for route in module.routes(context)]
    server = [route for module in (health, openapi, metrics) for route in module.routes(context)]
    return {
        (method.lower(), re.sub(r"\{\w+(:\w+)?\}", "{}", path))
        for path, route in [*((BASE + each.path, each) for each in below), *((each.path, each) for each in server)]
        for method in _methods(route)
    }


def _methods(route: Route) -> set[str]:
    return (route.methods or set()) - {"HEAD"}  # it goes with GET


def test_the_document_has_every_route_and_only_these(memory_client: Fleet) -> None:
    described = {
        (verb, re.sub(r"\{\w+\}", "{}", path))
        for path, item in document_of(memory_client)["paths"].items()
        for verb in item
    }
    assert described == methods_of(memory_client.context)


def test_the_document_is_sound(memory_client: Fleet) -> None:
    document = document_of(memory_client)
    assert document["openapi"] == "3.1.0"
    for reference in re.findall(r'"\$ref":"#/([^"]+)"', memory_client.get(f"{ROOT}/openapi.json").text):
        found: Any = document
        for part in reference.split("/"):
            found = found[part]
    ids = [operation["operationId"] for item in document["paths"].values() for operation in item.values()]
    assert len(ids) == len(set(ids))
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_no_two_schemas_share_a_name(memory_client: Fleet) -> None:
    named: dict[str, Any] = {}

    def look_into(value: Any) -> None:
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            look_into(inner)
        if isinstance(value, dict) and isinstance(value.get("title"), str):
            assert named.setdefault(value["title"], value) == value

    for operation in list_operations(memory_client.context):
        look_into(operation.body.shape if operation.body else {})
    assert "Report" in named


def test_every_link_leads_to_an_operation(memory_client: Fleet) -> None:
    operations = [each for item in document_of(memory_client)["paths"].values() for each in item.values()]
    ids = {operation["operationId"] for operation in operations}
    links = [
        link["operationId"]
        for operation in operations
        for response in operation["responses"].values()
        for link in response.get("links", {}).values()
    ]
    assert links
    assert set(links) <= ids


def test_a_body_may_come_too_slowly_or_be_too_large_wherever_one_is_read(memory_client: Fleet) -> None:
    paths = document_of(memory_client)["paths"]
    for path, operations in paths.items():
        for verb in VERBS & operations.keys():
            if "requestBody" in operations[verb]:
                assert {"408", "413", "415"} <= operations[verb]["responses"].keys(), f"{verb} {path}"


def test_every_parameter_of_a_path_is_described(memory_client: Fleet) -> None:
    for operation in list_operations(memory_client.context):
        named = {parameter.name for parameter in operation.parameters if parameter.location == "path"}
        assert named == set(re.findall(r"\{(\w+)\}", operation.path)), operation.id


def fits(document: dict[str, Any], name: str, value: Any) -> None:
    schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
    jsonschema.Draft202012Validator(schema).validate(value)


def test_answers_fit_their_shapes(memory_client: Fleet) -> None:
    document = document_of(memory_client)
    cluster = memory_client.create(labels={"tier": "web"})
    pool = memory_client.create_pool(cluster)
    fits(document, "BriefReportAnswer", memory_client.report(cluster, "dns", "False/Broken", colour="blue"))
    bundle = {"adapterStatuses": [body("dns", "False/Broken", colour="blue")]}
    fits(document, "ReportAnswer", memory_client.post(f"{path_of(cluster)}/statuses", bundle).json())
    fits(document, "ResourceAnswer", memory_client.get(path_of(pool)).json())
    fits(document, "StatusObject", memory_client.get(f"{path_of(cluster)}/statuses").json())
    fits(document, "ResourceList", memory_client.get("/clusters?page=1").json())
    fits(document, "Summary", memory_client.get("/clusters:summary?groupBy=blockedBy").json())
    fits(document, "ExplanationAnswer", memory_client.get(f"{path_of(cluster)}:explain").json())
    fits(document, "Differences", memory_client.get(f"{path_of(cluster)}:diff?from=0s&times=true").json())
    fits(document, "TransitionPage", memory_client.get("/transitions?limit=2").json())
    fits(document, "HistoryPage", memory_client.get(f"{path_of(cluster)}/history?limit=2").json())
    fits(document, "WaitAnswer", memory_client.get(f"{path_of(cluster)}:wait?for=generation=1").json())
    fits(document, "SharedCauses", memory_client.get("/problems").json())
    fits(document, "AdapterList", memory_client.get("/adapters").json())
    fits(document, "AdapterDetail", memory_client.get("/adapters/validation").json())
    fits(document, "PolicyInForce", memory_client.get("/policy").json())
    any_version, other = {"If-Match": "*"}, {"requiredAdapters": ["dns"]}
    fits(document, "PolicyCheck", memory_client.put("/policy?dryRun=true", other, headers=any_version).json())
    fits(document, "PolicyInForce", memory_client.put("/policy", other, headers=any_version).json())
    rolled_back = memory_client.post("/policy:rollback", {"version": 1}, headers=any_version).json()
    assert rolled_back["restores"] == 1
    fits(document, "PolicyInForce", rolled_back)
    fits(document, "PolicyVersionList", memory_client.get("/policy/versions?limit=2").json())
    fits(document, "PolicyVersionAnswer", memory_client.get("/policy/versions/3").json())
    simulated = memory_client.post("/policy:simulate?replay=1h", {"requiredAdapters": ["validation", "ghost"]}).json()
    fits(document, "SimulationAnswer", simulated)
    assert simulated["changes"]
    assert simulated["replay"]["lives"]
    fits(document, "Readiness", memory_client.get(f"{ROOT}/readyz").json())
    fits(document, "ProblemDocument", memory_client.get("/clusters?limit=0").json())


def test_what_flaps_fits_its_shape(memory_client: Fleet) -> None:
    document = document_of(memory_client)
    cluster = memory_client.create()
    for seconds in range(6):
        memory_client.clock.pass_time(timedelta(seconds=1))
        memory_client.report(cluster, "dns", "True" if seconds % 2 else "False/Broken")
    shown = memory_client.get(path_of(cluster)).json()
    assert "phaseFlapping" in shown["status"]
    fits(document, "ResourceAnswer", shown)
    fits(document, "ExplanationAnswer", memory_client.get(f"{path_of(cluster)}:explain").json())


def send_example(client: Fleet, operation: Operation, cluster: str, pool: str) -> None:
    """Send what the page shows, with ids that exist."""
    command = shlex.split(curl(operation, ROOT))
    method = command[command.index("--request") + 1] if "--request" in command else "GET"
    headers = dict([value.split(": ") for word, value in pairwise(command) if word == "--header"])
    content = command[command.index("--data") + 1].encode() if "--data" in command else b""
    url = command[-1]
    for sample, real in (("cls-01jd3k2m9pqr5tv8wxyz", cluster), ("np-01jd3k2m9pqr5tv8wxyz", pool)):
        url, content = url.replace(sample, real), content.replace(sample.encode(), real.encode())
    response = client.request(method, url, headers=headers, content=content)
    assert response.status_code in {success.status for success in operation.successes}, (url, response.text)


def test_every_example_on_the_page_works(memory_client: Fleet) -> None:
    cluster = memory_client.create("first")
    pool = memory_client.create_pool(cluster, "first")
    for resource in (cluster, pool):
        memory_client.report(resource, "dns", "False/JobRunning", observedTime="2025-10-17T11:00:00Z")
    memory_client.clock.pass_time(timedelta(minutes=15))  # there is a past to ask for
    operations = list_operations(memory_client.context)
    destructive = [each for each in operations if each.method == "delete" or each.id.startswith("forceDelete")]
    for operation in (each for each in operations if each not in destructive):
        send_example(memory_client, operation, cluster["id"], pool["id"])
    by_id = {operation.id: operation for operation in destructive}
    del by_id["forceDeleteNodePool"]  # no adapter is required for one here, so DELETE is the end of it
    order = ["retireNodePoolAdapter", "retireClusterAdapter", "deleteNodePool", "deleteCluster", "forceDeleteCluster"]
    order += ["deleteSubscription", "leaveSentinel"]
    assert set(order) == by_id.keys()
    for id_ in order:
        send_example(memory_client, by_id[id_], cluster["id"], pool["id"])


class PageParser(HTMLParser):
    """Gathers what a page would load or run, its links and the places they may lead to."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.places: set[str] = set()
        self.links: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        self.tags.add(tag)
        for name, value in attrs:
            assert name not in ("src", "onclick"), "the page fetches and runs nothing"
            if name == "id":
                self.places.add(f"#{value}")
            if name == "href":
                self.links.add(value or "")


def test_the_page_stands_alone(memory_client: Fleet) -> None:
    answer = memory_client.get(f"{ROOT}/docs")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    page = PageParser()
    page.feed(answer.text)
    assert not page.tags & {"script", "link", "img", "iframe"}
    assert {link for link in page.links if link.startswith("#")} <= page.places
    assert {link for link in page.links if not link.startswith("#")} == {"/openapi.json", "/asyncapi.json", "/problems"}
    for operation in list_operations(memory_client.context):
        assert f"#{operation.id}" in page.places
    assert f"curl --silent --show-error {ROOT}{BASE}/adapters</pre>" in answer.text


def test_what_a_host_header_says_is_only_text(memory_client: Fleet) -> None:
    answer = memory_client.get(f"{ROOT}/docs", headers={"Host": "a<script>alert(1)</script>"})
    assert "<script" not in answer.text


def test_the_catalogue(memory_client: Fleet) -> None:
    entries = memory_client.get(f"{ROOT}/problems").json()["items"]
    assert [entry["code"] for entry in entries] == list(CATALOGUE)
    for entry in entries:
        assert memory_client.get(f"{ROOT}{entry['type']}").json() == entry
        assert entry["title"]
        assert entry["remedy"]
    problem = problem_of(memory_client.get(f"{ROOT}/problems/None"), 404, "NotFound")
    assert memory_client.get(f"{ROOT}{problem['type']}").json()["code"] == "NotFound"


# ── what schemas say and readers do ──────────────────────────────────────────────────────────────────────────────

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("aAé-./_ ", max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("aA-", max_size=3), inner, max_size=2),
    max_leaves=4,
)
LABELS = st.dictionaries(st.text("aZ0-./é", max_size=6), st.text("aZ0-.é", max_size=3) | JSON, max_size=2)
RESOURCE_FIELDS = {
    "name": st.sampled_from(["a", "my-cluster", "-a", "A", "", "a" * 63, "a" * 64]) | JSON,
    "spec": st.just({}) | JSON,
    "labels": LABELS | JSON,
    "type": st.sampled_from(["Cluster", "NodePool", None]),
    "generation": st.integers() | JSON,
    "href": JSON,
    "status": JSON,
    "colour": JSON,
}
RESOURCES = st.fixed_dictionaries({}, optional=RESOURCE_FIELDS)


def accepts(schema: dict[str, Any], value: Any) -> bool:
    return bool(jsonschema.Draft202012Validator(schema).is_valid(value))


@given(RESOURCES)
def test_schemas_of_resources_accept_what_is_read(body: dict[str, Any]) -> None:
    assert accepts(request_schemas.creation(CLUSTER), body) == (not read_creation(body, CLUSTER).errors)
    body.pop("name", None)  # a replacement or patch may only repeat it, which its schema cannot say
    assert accepts(request_schemas.replacement(CLUSTER), body) == (not read_replacement(body, CLUSTER, "cls-1").errors)
    assert accepts(request_schemas.patch(CLUSTER), body) == (not read_merge_patch(body, CLUSTER, "cls-1").errors)


@given(st.fixed_dictionaries({}, optional={"reason": st.text("a \n", max_size=3) | JSON, "other": JSON}))
def test_the_schema_of_a_forced_deletion_accepts_what_is_read(body: dict[str, Any]) -> None:
    assert accepts(request_schemas.FORCE_DELETE, body) == (not read_force_reason(body)[1])


@given(st.fixed_dictionaries({}, optional={"version": st.integers() | st.just(2**53) | JSON, "other": JSON}))
def test_the_schema_of_a_rollback_accepts_what_is_read(body: dict[str, Any]) -> None:
    assert accepts(request_schemas.ROLLBACK, body) == (not read_rollback(body)[1])


CONDITIONS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["Available", "Applied", "Health", "Extra", "a/B", "-", ""]) | JSON,
            "status": st.sampled_from(["True", "False", "Unknown", "true"]),
            "reason": st.sampled_from(["JobRunning", "", "two words", None]),
            "message": st.sampled_from(["a sentence", "", None]) | JSON,
            "lastTransitionTime": JSON,
        },
    ),
    max_size=2,
).map(lambda more: [{"type": type_, "status": "True"} for type_ in ("Available", "Applied", "Health")] + more)
REPORTS = st.fixed_dictionaries(
    {"conditions": CONDITIONS},
    optional={
        "adapter": st.sampled_from(["dns", "-", ""]) | JSON,
        "observedGeneration": st.integers(0, 2) | JSON,
        "data": JSON,
        "metadata": JSON,
        "colour": JSON,
    },
)


def _has_duplicates(report: dict[str, Any]) -> bool:
    types = [condition.get("type") for condition in report["conditions"]]
    return any(types.count(type_) > 1 for type_ in types)


@given(REPORTS, st.booleans())
def test_schemas_of_reports_accept_what_is_read(report: dict[str, Any], is_bundle: bool) -> None:
    if _has_duplicates(report):
        return  # a type may be given once, which only the text says
    body = {"adapterStatuses": [report]} if is_bundle else report
    assert accepts(request_schemas.REPORT_OR_REPORTS, body) == (not read_reports(body, 10, Redactor()).errors)
    report.pop("adapter", None)
    assert accepts(request_schemas.REPORT_OF_NAMED, report) == (not read_report_of(report, "dns", Redactor()).errors)


@given(st.fixed_dictionaries({}, optional={"reports": st.lists(JSON, max_size=4) | JSON, "other": JSON}))
def test_the_schema_of_a_batch_accepts_what_is_read(body: dict[str, Any]) -> None:
    try:
        split_batch(msgspec.json.encode(body), RequestLimits(batch=3))
    except Refused:
        is_read = False
    else:
        is_read = True
    assert accepts(request_schemas.batch(3), body) == is_read


PIECES = {
    "labelSelector": ["a", "!a", "a=b", "a==b", "a!=", "a in (b,c)", "a notin (b)", "x.io/a", "a in ()", "(", "a=é"],
    "conditions": ["Ready", "!Ready", "Ready=True", "Ready!=False", "Ready in (True,Unknown)", "Ready=", "Ready=No"],
    "phase": ["Failed", "!Ready", "Red", "!"],
    "flapping": ["any", "!any", "Ready", "!phase", "x.io/A", "-", "!", "two words"],
    "adapterState": ["dns:Failed", "dns:Failed|Stale", "dns:", "dns", ":Failed", "dns:Red"],
    "blockedBy": ["dns", "-"],
    "reason": ["Broken", "Ready:Broken", "Ready:", ":", "two words", "a::b", "Ready:a:b"],
    "q": ["east", "us-east-1", "---", "é"],
    "updatedSince": ["15m", "1h30m", "0", "yesterday"],  # and times, which few libraries check
    "subject": ["phase", "Ready", "x.io/A", "two words", "-"],
    "since": ["15m", "0", "yesterday"],
    "until": ["1h30m", "1d"],
    "replay": ["7d", "12h", "90m", "0", "12345d", "1.5d", "d", "-1h", "yesterday"],
    "orderBy": ["name", "-name", "name desc", "severity asc", "lastUpdated", "-name desc", "colour"],
    "fields": [
        "id",
        "status.phase",
        'metadata.labels."a.b"',
        '"name"',
        "id..b",
        "id.\x1e",
        '"',
        ".",
        "*",
        "colour",
        "Id",
    ],
    "groupBy": [
        "phase",
        "reason:Ready",
        "condition:Ready",
        "label:x.io/a",
        "adapter:dns",
        "flapping",
        "colour",
        "label:",
    ],
}
LISTS = ("labelSelector", "conditions", "phase", "flapping", "adapterState", "reason", "subject", "fields", "groupBy")
INSTANTS = ("updatedSince", "since", "until")


def is_read(name: str, value: str) -> bool:
    match name:
        case "fields":
            return not read_fields([value], RESOURCE_KEYS).errors
        case "groupBy":
            return not read_group_by(value).errors
        case "replay":
            given = Parameters({name: [value]})
            read_replay(given, START)
            return not given.errors
        case "subject" | "since" | "until":
            return not read_history_query({name: [value]}, "cls-1", EVERYTHING, START).errors
        case _:
            return not read_query({name: [value]}, "Cluster", EVERYTHING, None, START).errors


@pytest.mark.parametrize("name", PIECES)
def test_patterns_of_parameters_match_what_is_read(name: str) -> None:
    (parameter,) = [each for each in (*FILTERS, *PAGES, GROUP_BY, SUBJECT, REPLAY, *SPAN) if each.name == name]
    values = ["", " ", *PIECES[name]]
    if name in LISTS:
        values += [f"{a},{b}" for a in PIECES[name] for b in PIECES[name] if a != b or name != "groupBy"]
    schema = parameter.schema["anyOf"][1] if name in INSTANTS else parameter.schema
    for value in values:
        assert accepts(schema, value) == is_read(name, value), value


def test_every_query_parameter_is_described(memory_client: Fleet) -> None:
    described = {each.name for each in (*FILTERS, *PAGES, *WATCHING) if each.location == "query"}
    (error,) = memory_client.get("/clusters?colour=blue").json()["errors"]
    assert described == set(error["message"].partition("there are ")[2].split(", "))
