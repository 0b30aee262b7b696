"""Whatever text stands in a query parameter, a path or a header: it is a value that is looked for, and never more.

The parameters come from the description of the API. No text may break anything, find what the filters beside it rule
out or what is another tenant's, or write something.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from hyperfleet.api.description.operations import Operation
from hyperfleet.api.description.table import list_operations
from hyperfleet.model.report import ADAPTER_PATTERN
from tests.api.attempts import body_of, fill, list_dialect, needed_by, places_of
from tests.api.fleet import ROOT
from tests.api.tenants import LABEL, RED, Voice, World, estate_as_told

pytestmark = pytest.mark.long

TEXTS: dict[str, str] = {
    "always true": "' or '1'='1",
    "a second statement": "'; drop table resources; --",
    "a union": "x' union select answer, id, 1, 1 from resources --",
    "a comment": "x'/**/or/**/1=1#",
    "a parenthesis": "')) or ((tenant = 'red",
    "a parameter of SQLite": "?1",
    "a parameter of PostgreSQL": "$1",
    "a dollar quote": "$$;select 1;$$",
    "a backslash": "\\' or 1=1 --",
    "TSL": "name = 'x' or name != 'x'",
    "TSL, scope": "tenancy.tenant = 'red' or not (name = 'x')",
    "an expression": 'true || any(allAdapters, {true}) || env["PATH"]',
    "a template": "{{.Resource}} ${jndi:ldap://x/y} %{x} {0.__class__}",
    "JSON": '{"$ne": null}',
    "NUL": "a\0b",
    "a wide text": "\u202ename\ufeff\U0001f4a9é\u0130",
    "overlong": "a" * 3_000,
    "overlong, nested": "(" * 1_500,
    "any text": "%",
    "any character": "_" * 9,
    "any of them": "*",
    "a regular expression": "(a+)+$",
    "a quote": "'",
    "a double quote": '"',
    "a place above": "../../etc/passwd",
    "a second line": "x\r\nSet-Cookie: a=b\r\n\r\n<html>",
    "a number": "-1",
    "a large number": "9" * 30,
    "not a number": "NaN",
    "nothing": "",
}
# What turns a text into a part of a query, where it is no value. These are tried wherever a text can stand; all the
# others once for each parameter, part of a path and header, in each dialect.
DANGEROUS = ("always true", "a union", "a parenthesis", "TSL", "any text", "JSON", "a quote", "NUL")
HEADERS = (
    *("If-Match", "If-None-Match", "Idempotency-Key", "X-Request-Id", "Last-Event-ID", "Prefer", "Accept"),
    *("Content-Type", "Accept-Encoding", "Traceparent", "Range"),
)


READING_SQL = ("sqlite", pytest.param("postgres", marks=pytest.mark.postgres))
on_sql = pytest.mark.parametrize("world", READING_SQL, indirect=True, scope="module")


class Choice:
    """Chooses texts: all of them where something is met for the first time, from then on the dangerous ones."""

    def __init__(self) -> None:
        self._met: set[tuple[str, ...]] = set()

    def texts(self, *what: str) -> Iterator[tuple[str, str]]:
        """Yield texts to be tried, each with what it is."""
        is_new = what not in self._met
        self._met.add(what)
        yield from ((name, text) for name, text in TEXTS.items() if is_new or name in DANGEROUS)


class Guard:
    """Sends requests as blue; what they answer is blue's, and nothing breaks."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._voice = Voice(world.fleet, "blue")
        self._position = world.fleet.run(world.fleet.store.position())
        self._before = self._look()
        self.accepted = 0

    def send(self, what: str, method: str, path: str, **more: Any) -> httpx.Response:
        """Send a request and look at the answer."""
        answer = self._voice.request(method, ROOT + path, **more)
        assert answer.status_code < 500 or answer.status_code == 504, (what, method, path, more, answer.text)
        shown = answer.text.lower()
        assert RED not in shown, (what, path, more)
        assert not [id_ for id_ in self._world.red.ids if id_ in shown], (what, path, more)
        assert "set-cookie" not in answer.headers, (what, path)
        self.accepted += answer.status_code < 300
        return answer

    def conclude(self) -> None:
        """Make sure that nothing was written, and that everything is still there."""
        assert self._world.fleet.run(self._world.fleet.store.position()) == self._position, "nothing was written"
        assert self._look() == self._before

    def _look(self) -> list[dict[str, bytes]]:
        world = self._world
        return [
            estate_as_told(Voice(world.fleet, token), each)
            for token, each in (("red", world.red), ("blue", world.blue))
        ]


def reading_operations(world: World) -> list[Operation]:
    """Return what only reads, of the API and of the dialect of the Go clients."""
    described = [*list_operations(world.fleet.context), *list_dialect(world.fleet)]
    return [each for each in described if each.method == "get" or each.id == "simulatePolicy"]


def dialect_of(operation: Operation) -> str:
    """Return where the paths of an operation's dialect begin."""
    return operation.path.split("/")[1]


def own_place(world: World, operation: Operation) -> str:
    """Return the path of an operation on blue's own resources."""
    path = places_of(operation.path, with_own=True)[-1].replace("/nodepools/{own_cluster}", "/nodepools/{own_pool}")
    return str(fill(path.replace("{adapter}", "dns").replace("{name}", "dns"), world.values))


@on_sql
def test_every_query_parameter(world: World) -> None:
    guard, choice = Guard(world), Choice()
    for operation in reading_operations(world):
        path = own_place(world, operation)
        more: dict[str, Any] = {"json": body_of(operation, path)} if operation.method == "post" else {}
        for name in [each.name for each in operation.parameters if each.location == "query"]:
            needed = {key: value for key, value in needed_by(path).items() if key != name}
            for what, text in choice.texts(dialect_of(operation), name):
                query = {name: text, **needed}
                guard.send(f"{operation.id} {what}", operation.method.upper(), path, params=query, **more)
    assert guard.accepted > 50, "some of it is a value like any other"
    guard.conclude()


@on_sql
def test_no_text_widens_what_other_filters_allow(world: World) -> None:
    guard = Guard(world)
    narrow = {"labelSelector": f"{LABEL}=nobody-has-this"}
    for operation in reading_operations(world):
        names = [each.name for each in operation.parameters if each.location == "query"]
        if not operation.id.startswith("list") or "labelSelector" not in names:
            continue
        for name in [each for each in names if each != "labelSelector"]:
            for what in (*DANGEROUS, "any of them"):
                path = own_place(world, operation)
                answer = guard.send(f"{operation.id} {what}", "GET", path, params={**narrow, name: TEXTS[what]})
                assert answer.status_code != 200 or answer.json()["items"] == [], (operation.id, name, what)


@on_sql
@pytest.mark.parametrize("name", ["q", "labelSelector", "blockedBy", "reason", "search"])
def test_a_wildcard_is_a_text(world: World, name: str) -> None:
    """What means "anything" elsewhere finds what has it in it: nothing."""
    guard = Guard(world)
    path = "/compat/api/hyperfleet/v1/clusters" if name == "search" else "/api/hyperfleet/v1/clusters"
    for text in ("%", "_", "*", "%uoise", "*uoise", "' or '1'='1"):
        query = {name: f"name = '{text}'" if name == "search" else text}
        answer = guard.send(text, "GET", path, params=query)
        assert answer.status_code == 400 or answer.json()["items"] == [], (name, text)


@on_sql
def test_every_part_of_a_path(world: World) -> None:
    guard, choice = Guard(world), Choice()
    for operation in [*list_operations(world.fleet.context), *list_dialect(world.fleet)]:
        own = own_place(world, operation)
        for part in ("{adapter}", "{clusterId}", "{nodePoolId}", "{id}", "{parent_id}", "{statusId}", "{code}"):
            if part not in operation.path:
                continue
            place = operation.path.replace(part, "{hole}")
            where = own_place(world, Operation(operation.method, place, operation.id, "", "", ()))
            more: dict[str, Any] = {"json": body_of(operation, own)} if operation.body is not None else {}
            for what, text in choice.texts(dialect_of(operation), operation.method, part):
                if part == "{adapter}" and ADAPTER_PATTERN.fullmatch(text):
                    continue  # an adapter may be called so
                path = where.replace("{hole}", quote(text, safe=""))
                answer = guard.send(f"{operation.id} {what}", operation.method.upper(), path, **more)
                assert answer.status_code >= 400 or operation.method == "get", (operation.id, what, answer.text)
    guard.conclude()


@on_sql
def test_every_header(world: World) -> None:
    guard, choice = Guard(world), Choice()
    paths = (
        *("/clusters/{own_cluster}", "/clusters", "/clusters/{own_cluster}/statuses"),
        "/adapters",
        "/clusters:summary",
    )
    for name, path in product(HEADERS, paths):
        where = fill(f"/api/hyperfleet/v1{path}", world.values)
        for what, text in choice.texts(name):
            header = {name: text.encode("utf-8").replace(b"\0", b"").replace(b"\r\n", b" ")}
            guard.send(f"{name} {what}", "GET", where, headers=header)
            guard.send(f"{name} {what}", "PATCH", f"{where}/nothing", headers=header, json={"spec": {}})
            guard.send(f"{name} {what}", "GET", where.replace("/api/", "/compat/api/"), headers=header)
    guard.conclude()


@pytest.mark.parametrize("store", READING_SQL, indirect=True)
def test_every_idempotency_key_is_another(own_world: World) -> None:
    blue, made = Voice(own_world.fleet, "blue"), {}
    texts = [text.replace(" ", "/") for text in TEXTS.values()]
    keys = [text for text in texts if text.isascii() and text.isprintable() and 0 < len(text) <= 255]
    for number, key in enumerate(keys):
        new = {"json": {"name": f"new-{number}", "spec": {}}, "headers": {"Idempotency-Key": key}}
        made[key] = blue.must(201, "POST", "/clusters", **new)["id"]
        assert blue.must(201, "POST", "/clusters", **new)["id"] == made[key]
    assert len(set(made.values())) == len(keys) > 20
