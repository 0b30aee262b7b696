"""A tenant cannot find out, reach or change anything of another's, by whatever route and with whatever parameters.

The requests are made from the description of the API, so that an operation or a parameter that is added must be tried
here, too. Each is sent twice: with what belongs to another tenant, and with what never existed. Both answers must be
the same but for what the request itself said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import product
from typing import Any
from urllib.parse import urlencode

import httpx
import msgspec
import pytest
from msgspec import Struct

from hyperfleet.api.description.operations import Operation
from hyperfleet.api.description.table import list_operations
from hyperfleet.api.wire import ALIASES, BASE
from hyperfleet.services.search import ORDERS
from tests.api.attempts import body_of, fill, list_dialect, needed_by, places_of
from tests.api.compat_client import COMPAT
from tests.api.fleet import ROOT
from tests.api.listening import Connection
from tests.api.tenants import LABEL, RED, Estate, Voice, World, estate_as_told, settle
from tests.world import body

# What is tried as the value of each query parameter; in braces, what belongs to the other tenant.
VALUES: dict[str, tuple[str, ...]] = {
    "labelSelector": (f"{LABEL}={{label}}", "{key}", f"{LABEL} in ({{label}},x)", f"{LABEL}!={{label}}", "!{key}"),
    "conditions": ("Ready!=True", "AllDone=False", "!Nothing"),
    "phase": ("Failed,Degraded,Pending,Provisioning,Ready", "Deleting", "!Ready"),
    "flapping": ("any", "!any"),
    "adapterState": ("{adapter}:Completed|Failed|Running", "dns:Failed", "{adapter}:Unreported"),
    "blockedBy": ("dns", "{adapter}"),
    "reason": ("AdaptersFailed", "Ready:{reason}"),
    "q": ("{name}", "{mark}", "{reason}", "words"),
    "updatedSince": ("24h",),
    "orderBy": (*ORDERS, "-severity"),
    "limit": ("1", "500"),
    "continue": ("{token}",),
    "page": ("1", "2"),
    "size": ("1", "100"),
    "fields": ("id,name,spec,metadata,status",),
    "watch": ("false",),  # true: below
    "after": ("0",),
    "at": ("1s", "24h"),
    "for": ("condition=Ready=False", "deleted", "adapter={adapter}", "generation=2"),
    "failOn": ("phase=Failed",),
    "timeout": ("1ms",),
    "observed": ("any",),
    "generation": ("1", "2", "3"),
    "condition": ("Ready", "Available"),
    "subject": ("phase,Ready",),
    "since": ("24h",),
    "until": ("1s",),
    "from": ("24h", "1s"),
    "to": ("1s",),
    "against": ("{cluster}", "{doomed}", "{gone}", "{pool}"),
    "times": ("true",),
    "replay": ("7d",),
    "trend": ("24h",),
    "step": ("12h",),
    "groupBy": (
        *("phase", "reason", "blockedBy", "flapping", "condition:Ready"),
        *(f"label:{LABEL}", "label:{key}", "adapter:{adapter}", "adapter:dns"),
    ),
    # the dialect of the Go clients
    "search": (
        *("name = '{name}'", f"labels.{LABEL} = '{{label}}'", "id in ('{cluster}', '{pool}')", "name like '%'"),
        *("name = 'x' or name != 'x'", "name = 'x') or ('1' = '1'", "not (name = 'x')", "tenancy.tenant = 'red'"),
    ),
    "order": ("name desc", "created_time asc", "asc", "desc"),
    "movedFrom": ("Pending",),
    "movedTo": ("Failed,False",),
    "cause": ("report,created",),
    "kind": ("Cluster", "NodePool"),
    "dryRun": ("true", "false"),
    "topic": ("clusterEvents", "statusUpdates"),
    "sentinel": ("default",),
    "member": ("server",),
}
HEADERS: dict[str, tuple[str, ...]] = {
    "If-Match": ('"1"', "*"),
    "If-None-Match": ('"1"', "*"),
    "Last-Event-ID": ("0",),
    "Idempotency-Key": ("{idempotency}",),
    "Prefer": ("return=representation",),
}
# What a watch of a list does not take, and what it takes but not as a filter.
NO_FILTERS = {"limit", "continue", "page", "size", "orderBy", "updatedSince", "at", "fields", "watch", "after"}
# Who creates something of their own changes what they see: a test of its own, below.
# These write for every caller; test_subscriptions.py, test_reconciling.py and test_sentinels.py have their tenants.
CREATING = {"createCluster", "reconcileClusters", "reconcileAllNodePools", "putSubscription", "joinSentinel"}
# The id of the request, and what depends on when it is asked by a clock that we do not move.
VARYING = re.compile(rb'"(requestId|trace_id)":"[^"]*"|\d{4}-\d\d-\d\dT[0-9:.]+Z|\d+\.\d+')


# ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────


class Probe(Struct, frozen=True):
    """A request, with places to be filled in."""

    operation: str
    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    body: Any = None

    def send(self, voice: Voice, values: dict[str, str]) -> httpx.Response:
        """Fill in and send it."""
        path, query, headers, body = (fill(part, values) for part in (self.path, self.query, self.headers, self.body))
        more: dict[str, Any] = {} if body is None else {"json": body}
        return voice.request(self.method, ROOT + path, params=query, headers=dict(headers), **more)

    def __str__(self) -> str:
        """Say what is asked."""
        return f"{self.operation}: {self.method} {self.path} {self.query} {self.headers}"


def probes_of(operation: Operation) -> Iterator[Probe]:
    """Yield requests of an operation: at every place, with every parameter and every header.

    Every value of a parameter is tried at the first place, which is another's, and at the last, which may be one's own.
    """
    parameters = [each.name for each in operation.parameters if each.location == "query"]
    headers = [each.name for each in operation.parameters if each.location == "header"]
    places = places_of(operation.path, with_own=operation.method == "get")
    for path in places:
        is_main = path in (places[0], places[-1])
        content = body_of(operation, path)
        needed = needed_by(path)
        base = Probe(operation.id, operation.method.upper(), path, tuple(needed.items()), body=content)
        yield base
        if operation.method == "get":
            yield msgspec.structs.replace(base, method="HEAD")
            for accept in ("text/plain", "text/event-stream"):
                yield msgspec.structs.replace(base, headers=(("Accept", accept),))
        for name in parameters:
            without = {key: value for key, value in needed.items() if name not in ("against", key)}
            for value in VALUES[name] if is_main else VALUES[name][:1]:
                yield msgspec.structs.replace(base, query=((name, value), *without.items()))
        for name in headers:
            for value in HEADERS[name]:
                yield msgspec.structs.replace(base, headers=((name, value),))


# ── checking ─────────────────────────────────────────────────────────────────────────────────────────────────────


def check(world: World, probe: Probe) -> httpx.Response:
    """Send a request as blue, with what is red's and with what nobody has, and compare the answers."""
    told, void = (probe.send(world.voice("blue"), values) for values in (world.values, world.nothing))
    assert told.status_code == void.status_code, (str(probe), told.text, void.text)
    assert told.status_code < 500 or told.status_code == 504, (str(probe), told.text)
    expected = void.content
    for key, value in world.nothing.items():
        expected = expected.replace(value.encode(), world.values[key].encode())
    assert VARYING.sub(b"", told.content) == VARYING.sub(b"", expected), str(probe)
    assert list(told.headers) == list(void.headers), str(probe)
    sent = str(fill((probe.path, probe.query, probe.headers, probe.body), world.values))
    assert_nothing_of(world.red, told, sent, str(probe))
    return told


def assert_nothing_of(estate: Estate, response: httpx.Response, sent: str, what: str) -> None:
    """Make sure that nothing of a tenant is in an answer but what the request itself said."""
    text = f"{response.headers} {response.text}"
    for each in sorted({estate.mark.lower(), *estate.ids, *estate.values.values()}, key=len, reverse=True):
        if each in sent:
            text = text.replace(each, "")
    assert estate.mark not in text.lower(), (what, response.text)
    for id_ in estate.ids:
        assert id_ not in text, (what, response.text)


def estates(world: World) -> list[tuple[str, Estate]]:
    """Return the tenants and what they have."""
    return [("red", world.red), ("blue", world.blue)]


def try_everything(world: World, operations: list[Operation]) -> None:
    """Try operations in every way there is; nothing may be told, nothing may change."""
    before = {token: estate_as_told(world.voice(token), estate) for token, estate in estates(world)}
    position = world.fleet.run(world.fleet.store.position())
    for operation in operations:
        for probe in probes_of(operation):
            answer = check(world, probe)
            if any(f"{{{part}}}" in probe.path for part in ("cluster", "doomed", "gone", "pool")):
                assert answer.status_code in (404, 400), str(probe)
    assert world.fleet.run(world.fleet.store.position()) == position, "nothing was written"
    assert before == {token: estate_as_told(world.voice(token), estate) for token, estate in estates(world)}


# ── everything that is described ─────────────────────────────────────────────────────────────────────────────────


def test_every_operation_with_every_parameter(world: World) -> None:
    operations = list_operations(world.fleet.context)
    try_everything(world, [each for each in operations if each.id not in CREATING])


def test_every_operation_of_the_dialect(world: World) -> None:
    operations = list_dialect(world.fleet)
    try_everything(world, [each for each in operations if not (each.method == "post" and "{" not in each.path)])


def test_the_owner_is_told_what_others_are_not(world: World) -> None:
    """The attempts above would find something, if it were not for who makes them."""
    kinds = [*list_operations(world.fleet.context), *list_dialect(world.fleet)]
    silent = {
        *("getPolicy", "getAdapter", "getLiveness", "getReadiness", "getDescription", "getDocs", "listProblems"),
        "getEventDescription",
        *("getProblem", "listPolicyVersions", "getPolicyVersion"),  # the policy is everybody's
        *("getPubSub", "listSubscriptions", "getSubscription", "listDeadLetters"),  # test_subscriptions.py tries them
        *("listSentinels", "listDueClusters", "listDueNodePools"),  # test_sentinels.py tries them
        *("listWebhooks", "getWebhook"),  # test_webhooks.py tries them
    }
    for operation in [each for each in kinds if each.method == "get" and each.id not in silent]:
        path = places_of(operation.path, with_own=False)[0].replace("/nodepools/{cluster}", "/nodepools/{pool}")
        query = {"groupBy": f"label:{LABEL}"} if path.endswith(":summary") else needed_by(path)
        probe = Probe(operation.id, "GET", path, tuple(query.items()))
        for token in ("red", "both", "all"):
            answer = probe.send(world.voice(token), world.values)
            assert answer.status_code in (200, 504), (str(probe), answer.text)
            assert world.red.mark in answer.text.lower() or world.red.cluster in answer.text, (str(probe), answer.text)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("labelSelector", f"{LABEL}={{label}}"),
        ("q", "{name}"),
        ("blockedBy", "dns"),
        ("adapterState", "{adapter}:Completed"),
        ("flapping", "any"),
        ("reason", "AdaptersFailed"),
        ("conditions", "Ready=False"),
    ],
)
def test_filters_find_what_is_there_for_those_who_may_see_it(world: World, name: str, value: str) -> None:
    query = {name: fill(value, world.values)}
    found = {
        token: [each["id"] for each in world.voice(token).must(200, "GET", "/clusters", params=query)["items"]]
        for token in ("red", "blue", "all")
    }
    assert world.red.cluster in found["red"]
    assert world.red.cluster in found["all"]
    assert not set(world.red.ids) & set(found["blue"])


@pytest.mark.parametrize("base", [BASE, *ALIASES])
def test_the_fast_lanes_know_whose_it_is(world: World, base: str) -> None:
    red, blue = world.voice("red"), world.voice("blue")
    path = f"{ROOT}{base}/clusters/{world.red.cluster}"
    assert red.request("GET", path).status_code == 200
    before = red.request("GET", path).content
    assert blue.request("GET", path).status_code == 404
    assert blue.request("POST", f"{path}/statuses", json=body("dns", "True", generation=2)).status_code == 404
    assert blue.request("PUT", f"{path}/statuses/adapters/dns", json=body("dns", "True")).status_code == 404
    assert red.request("GET", path).content == before


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_names_and_idempotency_keys_are_each_tenants_own(own_world: World) -> None:
    red, blue = own_world.voice("red"), own_world.voice("blue")
    new = {"name": f"{RED}-cluster", "spec": {"note": f"{RED}-spec"}, "labels": {}}
    headers = {"Idempotency-Key": own_world.red.values["idempotency"]}
    made = blue.request("POST", "/clusters", json=new, headers=headers)
    assert made.status_code == 201, made.text
    assert "idempotency-replayed" not in made.headers
    assert made.json()["metadata"]["tenant"] == "blue"
    again = blue.request("POST", "/clusters", json=new, headers=headers)
    assert (again.headers["idempotency-replayed"], again.json()["id"]) == ("true", made.json()["id"])
    taken = blue.request("POST", "/clusters", json=new)
    assert taken.status_code == 409
    assert made.json()["id"] in taken.text
    assert_nothing_of(own_world.red, taken, f"{RED}-cluster", "a name that is taken")
    assert own_world.red.cluster in red.request("POST", "/clusters", json=new).text
    go = {"kind": "Cluster", "name": f"{RED}-doomed", "spec": {}}
    for path in ("clusters", "resources"):
        made = blue.request("POST", f"{COMPAT}/{path}", json={**go, "name": f"{RED}-{path}"})
        assert made.status_code == 201, made.text


def test_a_batch_is_refused_piece_by_piece(own_world: World) -> None:
    places = (own_world.red.cluster, own_world.blue.cluster, own_world.nothing["cluster"])
    reports = [{"clusterId": id_, **body("dns", "True", generation=2)} for id_ in places]
    answer = own_world.voice("blue").must(200, "POST", "/statuses:batch", json={"reports": reports})
    assert [each["status"] for each in answer["results"]] == [404, 200, 404]
    foreign, _, absent = (msgspec.json.encode(each).decode() for each in answer["results"])
    absent = absent.replace(own_world.nothing["cluster"], own_world.red.cluster)
    assert foreign.replace('"index":0', "") == absent.replace('"index":2', "")


@pytest.mark.parametrize("replay", ["", "7d"])
@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_a_policy_is_tried_on_ones_own(world: World, replay: str, accept: str) -> None:
    policy = "requiredAdapters: [validation, crane]"
    counts = {}
    for token, other in (("blue", world.red), ("red", world.blue)):
        answer = world.voice(token).request(
            "POST",
            "/policy:simulate",
            params={"replay": replay} if replay else {},
            headers={"Accept": accept, "Content-Type": "application/yaml"},
            content=policy,
        )
        assert answer.status_code == 200, answer.text
        counts[token] = int(re.findall(r'"examined":(\d+)', answer.text)[-1])
        assert_nothing_of(other, answer, "", "a simulation")
    assert counts == {"blue": 3, "red": 3}, "clusters and node pools that are there"


# ── watching ─────────────────────────────────────────────────────────────────────────────────────────────────────


def watch_paths(world: World, *places: str) -> list[str]:
    """Return what can be watched, below the base path, with the ids of some places filled in."""
    operations = list_operations(world.fleet.context)
    watched = [each for each in operations if any(parameter.name == "watch" for parameter in each.parameters)]
    paths = [path for each in watched for path in places_of(each.path, with_own=True)]
    chosen = [path for path in paths if all(place in places for place in re.findall(r"\{\w+\}", path))]
    return [fill(path.removeprefix(BASE), world.values) for path in dict.fromkeys(chosen)]


RESUMPTIONS: tuple[tuple[str, dict[str, str]], ...] = (("", {}), ("&after=0", {}), ("", {"Last-Event-ID": "0"}))


def test_watches_tell_of_ones_own(own_world: World) -> None:
    blue = own_world.voice("blue")
    paths = [each for each in watch_paths(own_world, "{own_cluster}", "{own_pool}") if each != "/adapters"]
    assert len(paths) == 6
    for number, (query, headers) in enumerate(RESUMPTIONS):
        asked = {**headers, **blue.authorization}
        with ExitStack() as open_ones:
            watches = {path: Connection(own_world.fleet, f"{path}?watch=true{query}", asked) for path in paths}
            for path, watch in watches.items():
                assert open_ones.enter_context(watch).status == 200, path
            stir(own_world, "red", own_world.red, f"r{number}")
            stir(own_world, "blue", own_world.blue, f"end{number}")
            texts = {path: read_until(watch, f"end{number}") for path, watch in watches.items()}
        for path, text in texts.items():
            assert own_world.blue.mark in text
            assert own_world.red.mark not in text.lower(), path
            assert not [id_ for id_ in own_world.red.ids if id_ in text], path


def test_filters_of_a_watch_find_ones_own(own_world: World) -> None:
    """Blue gets the very things that red has, so that every filter that names red's finds something, but not red's."""
    twin = settle(own_world.fleet, "blue", RED)
    blue, own = own_world.voice("blue"), {*own_world.blue.ids, *twin.ids}
    found: set[str] = set()
    for path, (name, value) in product(("/clusters", "/nodepools"), filters(own_world)):
        query = {name: fill(value, own_world.values)}
        listed = {each["id"] for each in blue.must(200, "GET", path, params=query)["items"]}
        with Connection(own_world.fleet, f"{path}?watch=true&{urlencode(query)}", blue.authorization) as watch:
            assert {each.data["id"] for each in watch.take_list()[:-1]} == listed, query
        again = f"{path}?watch=true&after=0&{urlencode(query)}"
        with Connection(own_world.fleet, again, blue.authorization) as watch:
            assert read_all_of(watch, listed) <= own, query
        found |= listed
    assert {twin.cluster, twin.doomed, twin.pool} <= found


@pytest.mark.parametrize("query", [f"labelSelector={LABEL}%3D{{label}}", "q={name}"])
def test_a_filtered_watch_goes_on_to_tell_of_ones_own(own_world: World, query: str) -> None:
    twin, blue = settle(own_world.fleet, "blue", RED), own_world.voice("blue")
    path = fill(f"/clusters?watch=true&{query}", own_world.values)
    with Connection(own_world.fleet, path, blue.authorization) as watch:
        watch.take_list()
        stir(own_world, "red", own_world.red, "foreign")
        stir(own_world, "blue", twin, "end")
        text = read_until(watch, "end")
    assert twin.cluster in text
    assert "foreign" not in text
    assert not [id_ for id_ in own_world.red.ids if id_ in text]


def filters(world: World) -> list[tuple[str, str]]:
    """Return the filters that a watch takes, with all values that are tried."""
    (operation,) = [each for each in list_operations(world.fleet.context) if each.id == "listClusters"]
    names = {each.name for each in operation.parameters if each.location == "query"} - NO_FILTERS
    assert len(names) >= 8
    return [(name, value) for name in sorted(names) for value in VALUES[name]]


def read_all_of(connection: Connection, ids: set[str]) -> set[str]:
    """Read until a stream has told of some resources; return of which it told."""
    connection.wait_for(lambda: ids <= {each.data["id"] for each in connection.heard if each.event == "added"})
    return {each.data["id"] for each in connection.heard if each.event}


def read_until(connection: Connection, end: str) -> str:
    """Return all that a stream has said when something is said."""
    connection.wait_for(lambda: end.encode() in connection.body)
    return connection.body.decode()


def stir(world: World, token: str, estate: Estate, what: str) -> None:
    """Let things happen to a tenant: something new, a report, an edit of each resource, a removal."""
    voice, cluster = world.voice(token), f"/clusters/{estate.cluster}"
    made = voice.must(201, "POST", "/clusters", json={"name": f"{estate.mark}-{what}", "spec": {}})["id"]
    voice.must(202, "DELETE", f"/clusters/{made}")
    voice.must(200, "POST", f"{cluster}/statuses", json=body("dns", f"False/X/{estate.mark} {what}", generation=2))
    for path in (cluster, f"{cluster}/nodepools/{estate.pool}"):
        voice.must(200, "PATCH", path, json={"spec": {"stirred": f"{estate.mark}-{what}"}})


@pytest.mark.parametrize(("query", "headers"), RESUMPTIONS)
def test_what_is_anothers_cannot_be_watched(world: World, query: str, headers: dict[str, str]) -> None:
    foreign = ("{cluster}", "{pool}", "{doomed}", "{gone}", "{own_cluster}", "{own_pool}")
    own = watch_paths(world, "{own_cluster}", "{own_pool}")
    paths = [path for path in watch_paths(world, *foreign) if path not in own]
    assert len(paths) > 8
    for path in paths:
        asked = {**headers, **world.voice("blue").authorization}
        with Connection(world.fleet, f"{path}?watch=true{query}", asked) as connection:
            connection.wait_for(lambda: connection.is_over or connection.status == 200)
            assert connection.status == 404, path


def test_adapters_are_watched_for_ones_own_resources(own_world: World) -> None:
    blue = own_world.voice("blue")
    with Connection(own_world.fleet, "/adapters?watch=true", blue.authorization) as connection:
        names = [each.data["name"] for each in connection.take_list() if each.event == "added"]
        assert names == ["dns", "turquoise-crane", "validation"]
        stir(own_world, "red", own_world.red, "r")
        stir(own_world, "blue", own_world.blue, "b")
        (moved,) = connection.take(1)
        assert (moved.event, moved.data["name"]) == ("modified", "dns")
        text = connection.body.decode()
    assert own_world.red.mark not in text
    assert not [id_ for id_ in own_world.red.ids if id_ in text]


def test_adapters_count_what_is_ones_own(world: World) -> None:
    own = {token: world.voice(token).must(200, "GET", "/adapters/dns") for token in ("red", "blue", "all")}
    assert own["red"]["reports"] == own["blue"]["reports"]
    assert own["all"]["reports"]["aggregated"] == 2 * own["red"]["reports"]["aggregated"]
    assert own["blue"]["lastDiscard"]["resource"] in world.blue.ids
    assert {each["id"] for each in own["blue"]["blocked"]} <= set(world.blue.ids)


@pytest.mark.parametrize(
    ("path", "key", "own"),
    [
        ("/clusters?page=1", "total", 2),
        ("/nodepools?page=1", "total", 1),
        ("/clusters:summary", "total", 2),
        ("/problems", "examined", 2),
        (f"{COMPAT}/clusters", "total", 2),
        (f"{COMPAT}/resources?search=name+like+'%25'", "total", 3),
    ],
)
def test_what_is_counted_is_ones_own(world: World, path: str, key: str, own: int) -> None:
    counts = {token: world.voice(token).must(200, "GET", path)[key] for token in ("red", "blue", "both", "all", "none")}
    assert counts == {"red": own, "blue": own, "both": 2 * own, "all": 2 * own, "none": 0}


# ── figures ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_metrics_are_of_ones_own(world: World) -> None:
    answers = {token: world.voice(token).request("GET", f"{ROOT}/metrics") for token in ("red", "blue", "all")}
    assert {answer.status_code for answer in answers.values()} == {200}
    assert world.red.mark in answers["red"].text
    assert world.red.mark in answers["all"].text
    assert_nothing_of(world.red, answers["blue"], "", "/metrics")


def test_who_belongs_to_nobody_sees_nothing(world: World) -> None:
    nemo = world.voice("none")
    for path in ("/clusters", "/nodepools", "/problems", "/adapters", "/clusters:summary"):
        answer = nemo.request("GET", path)
        assert answer.status_code == 200
        for estate in (world.red, world.blue):
            assert_nothing_of(estate, answer, "", path)
    assert nemo.request("POST", "/clusters", json={"name": "mine", "spec": {}}).status_code == 403
