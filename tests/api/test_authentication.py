"""Who is let in: every bad token at every kind of route, what callers are told, and what stays open to everybody."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from hyperfleet.access.authenticator import TokenAuthenticator
from hyperfleet.api import streams
from hyperfleet.api.context import RequestLimits
from hyperfleet.backends.memory import MemoryStore
from hyperfleet.ports import Store
from hyperfleet.services.callers import Caller, Rejection
from tests.api.compat_client import COMPAT, report_body
from tests.api.fleet import ROOT, SPEC, HandClock, open_fleet, problem_of
from tests.api.guarding import NOW, GuardedFleet, bearer, known, open_guarded
from tests.api.listening import Connection
from tests.issuing import BAD, CURVE, claims, sign
from tests.world import body

OPEN = ("/healthz", "/readyz", "/openapi.json", "/asyncapi.json", "/docs", "/problems", "/problems/InvalidToken")
CHALLENGE = 'Bearer realm="hyperfleet"'


@pytest.fixture
def guarded(store: Store, clock: HandClock, tmp_path: Path) -> Iterator[GuardedFleet]:
    """Give a server that asks, on every store."""
    with open_guarded(store, clock, tmp_path) as guarded:
        yield guarded


@pytest.fixture
def memory_guarded(clock: HandClock, tmp_path: Path) -> Iterator[GuardedFleet]:
    """Give a server that asks, for what no store has a part in."""
    with open_guarded(MemoryStore(clock), clock, tmp_path) as guarded:
        yield guarded


def routes_to(id_: str) -> list[tuple[str, str, Any]]:
    """Return a request of every kind: the fast lanes, the ordinary way, streams, waits, and the other dialect."""
    new = {"name": "intruder", "spec": SPEC}
    return [
        ("GET", f"/clusters/{id_}", None),
        ("GET", f"/clusters/{id_}?fields=id", None),
        ("GET", "/clusters", None),
        ("GET", "/clusters?watch=true", None),
        ("GET", f"/clusters/{id_}:wait?for=phase%3DReady", None),
        ("GET", "/policy", None),
        ("POST", f"/clusters/{id_}/statuses", body("dns", "True")),
        ("GET", f"/clusters/{id_}/statuses", None),
        ("PUT", f"/clusters/{id_}/statuses/adapters/dns", body("dns", "True")),
        ("POST", "/clusters", new),
        ("PATCH", f"/clusters/{id_}", {"labels": {"a": "b"}}),
        ("DELETE", f"/clusters/{id_}", None),
        ("POST", "/policy:reload", None),
        ("GET", f"{COMPAT}/clusters", None),
        ("GET", f"{COMPAT}/clusters/{id_}", None),
        ("POST", f"{COMPAT}/clusters", {"kind": "Cluster", **new}),
        ("PUT", f"{COMPAT}/clusters/{id_}/statuses", report_body("dns", "True")),
        ("POST", f"{COMPAT}/clusters/{id_}/force-delete", {"reason": "because"}),
    ]


def settle(guarded: GuardedFleet) -> str:
    return str(guarded.act("POST", "/clusters", {"name": "payments", "spec": SPEC}).json()["id"])


def state_of(guarded: GuardedFleet) -> Any:
    """Return everything that a write could change."""
    lists = ("/clusters", "/adapters", "/policy")
    return [guarded.act("GET", path).json() for path in lists]


def test_no_bad_token_gets_in_anywhere(guarded: GuardedFleet, caplog: pytest.LogCaptureFixture) -> None:
    id_ = settle(guarded)
    before = state_of(guarded)
    tokens = {name: make(NOW) for name, make in BAD.items()}
    with caplog.at_level(logging.DEBUG, "hyperfleet"):
        for name, token in tokens.items():
            for method, path, json in routes_to(id_):
                more = {} if json is None else {"json": json}
                answer = guarded.send(method, path, bearer(token), **more)
                assert answer.status_code == 401, (name, method, path, answer.text)
                assert answer.headers["www-authenticate"].startswith(f'{CHALLENGE}, error="invalid_token", error_desc')
                code = answer.json()["code"]
                compat = "HYPERFLEET-AUT-003" if name == "expired" else "HYPERFLEET-AUT-002"
                assert code == (compat if "/compat/" in path else "InvalidToken")
                assert len(token) < 10 or token not in answer.text
    assert state_of(guarded) == before
    assert not any(token in caplog.text for token in tokens.values() if len(token) > 10), "no token is in the log"


def test_no_token_gets_nobody_in(memory_guarded: GuardedFleet) -> None:
    id_ = settle(memory_guarded)
    for method, path, json in routes_to(id_):
        answer = memory_guarded.send(method, path, {}, **({} if json is None else {"json": json}))
        assert answer.status_code == 401, (method, path)
        assert answer.headers["www-authenticate"] == CHALLENGE, "who shows nothing is told of no error"
        assert answer.json()["code"] == ("HYPERFLEET-AUT-001" if "/compat/" in path else "Unauthenticated")


def test_a_good_token_gets_in_everywhere(guarded: GuardedFleet) -> None:
    id_ = settle(guarded)
    for headers in (known("admin"), bearer(sign(claims(NOW))), bearer(sign(claims(NOW), CURVE, "ES256"))):
        for method, path, json in routes_to(id_):
            if "watch=true" in path or ":wait" in path or method == "DELETE" or "force" in path:
                continue  # they have no end, or leave nothing for the next one
            answer = guarded.send(method, path, headers, **({} if json is None else {"json": json}))
            assert answer.status_code in (200, 201, 204, 409), (method, path, answer.text)


@pytest.mark.parametrize(
    ("before", "after", "is_over"),
    [
        ("", "", False),
        ("name: reader,", "name: another,", True),
        ("token: reader-0123456789abcdef", "token: another-0123456789abcdef", True),
        ("roles: [reader], tenants: ['*']", "roles: [reader], tenants: [red]", True),
    ],
)
def test_a_watch_lasts_as_long_as_its_token(
    memory_guarded: GuardedFleet,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    before: str,
    after: str,
    is_over: bool,
) -> None:
    monkeypatch.setattr(streams, "RECHECK", 0.0)
    authenticator = memory_guarded.fleet.context.authenticator
    assert isinstance(authenticator, TokenAuthenticator)
    settle(memory_guarded)
    header = known("reader")["Authorization"].decode()
    with Connection(memory_guarded.fleet, "/clusters?watch=true", {"authorization": header}) as stream:
        assert [heard.event for heard in stream.take_list()] == ["added", "synced"]
        file = tmp_path / "tokens.yaml"
        file.write_text(file.read_text().replace('"', "'").replace(before, after) + "# changed\n")
        memory_guarded.fleet.run(authenticator._refresh_tokens())
        memory_guarded.act("POST", "/clusters", {"name": "news", "spec": SPEC})
        stream.wait_for(lambda: stream.is_over or len(stream.heard) > 0)
        assert (stream.is_over, [heard.event for heard in stream.heard]) == (is_over, [] if is_over else ["added"])


class Unsure:
    """An authenticator who takes tokens for names, and may come to be unable to tell whose one of them is."""

    unsure_of = b""

    def recognize(self, _: bytes) -> Caller | None:
        """Know nobody."""
        return None

    async def identify(self, token: bytes) -> Caller | Rejection:
        """Believe."""
        return Rejection("ask later", is_temporary=True) if token == self.unsure_of else Caller(token.decode())


def test_a_watch_goes_on_while_nobody_can_tell(clock: HandClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "RECHECK", 0.0)
    authenticator = Unsure()
    with open_fleet(MemoryStore(clock), clock, RequestLimits(), authenticator=authenticator) as fleet:
        guarded = GuardedFleet(fleet)
        with Connection(fleet, "/clusters?watch=true", {"authorization": "Bearer alice"}) as stream:
            stream.take_list()
            authenticator.unsure_of = b"alice"
            assert guarded.send("GET", "/clusters", bearer("alice")).status_code == 503
            guarded.send("POST", "/clusters", bearer("bob"), json={"name": "news", "spec": SPEC})
            assert [heard.event for heard in stream.take(1)] == ["added"]


@pytest.mark.parametrize(
    ("headers", "status", "code", "challenge"),
    [
        ([("Authorization", "Basic YTpi")], 401, "Unauthenticated", CHALLENGE),
        ([("Authorization", "")], 401, "Unauthenticated", CHALLENGE),
        ([("Authorization", "Bearer")], 400, "InvalidRequest", f'{CHALLENGE}, error="invalid_request"'),
        ([("Authorization", "Bearer   ")], 400, "InvalidRequest", f'{CHALLENGE}, error="invalid_request"'),
        (
            [("Authorization", "Bearer reader-0123456789abcdef"), ("Authorization", "Bearer admin-0123456789abcdef")],
            400,
            "InvalidRequest",
            f'{CHALLENGE}, error="invalid_request"',
        ),
        (
            [("Authorization", "Bearer nonsense")],
            401,
            "InvalidToken",
            f'{CHALLENGE}, error="invalid_token", error_description="the token is not known"',
        ),
        ([("Authorization", "BearerX reader-0123456789abcdef")], 401, "Unauthenticated", CHALLENGE),
    ],
)
def test_what_is_no_token(
    memory_guarded: GuardedFleet, headers: list[tuple[str, str]], status: int, code: str, challenge: str
) -> None:
    for path in ("/clusters", "/clusters/cls-00000000000000000000"):
        answer = memory_guarded.fleet.get(path, headers=headers)
        problem_of(answer, status, code)
        assert answer.headers["www-authenticate"] == challenge


@pytest.mark.parametrize(
    ("header", "status", "code"),
    [
        ("", 401, "AUT-001"),
        ("Basic YTpi", 401, "AUT-002"),
        ("Bearer nonsense", 401, "AUT-002"),
        ("Bearer", 400, "VAL-005"),
    ],
)
def test_what_the_other_dialect_calls_it(memory_guarded: GuardedFleet, header: str, status: int, code: str) -> None:
    answer = memory_guarded.fleet.get(f"{COMPAT}/clusters", headers={"Authorization": header})
    assert (answer.status_code, answer.json()["code"]) == (status, f"HYPERFLEET-{code}")


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "Bearer "])
def test_the_scheme_is_spelt_as_one_likes(memory_guarded: GuardedFleet, scheme: str) -> None:
    header = {"Authorization": f"{scheme} reader-0123456789abcdef"}
    assert memory_guarded.fleet.get("/clusters", headers=header).status_code == 200


def test_a_token_in_the_address_is_refused(memory_guarded: GuardedFleet) -> None:
    answer = memory_guarded.fleet.get("/clusters?access_token=reader-0123456789abcdef")
    problem_of(answer, 401, "Unauthenticated")


@pytest.mark.parametrize("path", OPEN)
def test_what_everybody_may_ask(memory_guarded: GuardedFleet, path: str) -> None:
    for headers in ({}, bearer("nonsense"), {"Authorization": "Basic YTpi"}):
        for method in ("GET", "HEAD"):
            assert memory_guarded.send(method, ROOT + path, headers).status_code in (200, 503), (method, path)


# ── what is told of it ───────────────────────────────────────────────────────────────────────────────────────────


def test_the_document_tells_who_is_let_in(memory_guarded: GuardedFleet) -> None:
    document = memory_guarded.fleet.get(f"{ROOT}/openapi.json").json()
    assert document["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"
    for path, item in document["paths"].items():
        for verb, operation in item.items():
            is_guarded = operation.get("x-required-role") is not None
            assert (operation.get("security") == [{"bearer": []}]) is is_guarded, (verb, path)
            assert ("401" in operation["responses"]) is is_guarded, (verb, path)
            assert ("403" in operation["responses"]) is is_guarded, (verb, path)
    page = memory_guarded.fleet.get(f"{ROOT}/docs").text
    assert "Needs a token with the role admin." in page
    assert page.count("<pre>curl --oauth2-bearer &quot;$TOKEN&quot; ") == page.count("Needs a token")
    compat = memory_guarded.fleet.get(f"{COMPAT}/openapi").json()
    assert compat["security"] == [{"bearer": []}]


def test_refusals_fit_the_document(memory_guarded: GuardedFleet) -> None:
    document = memory_guarded.fleet.get(f"{ROOT}/openapi.json").json()
    listing = document["paths"]["/api/hyperfleet/v1/clusters"]["get"]["responses"]
    schema = {**document["components"]["schemas"]["ProblemDocument"], "components": document["components"]}
    for headers, status in (({}, 401), (bearer("x"), 401), ({"Authorization": "Bearer"}, 400)):
        answer = memory_guarded.send("GET", "/clusters", headers)
        assert answer.status_code == status
        jsonschema.Draft202012Validator(schema).validate(answer.json())
        needed = [name for name, header in listing[str(status)]["headers"].items() if header["required"]]
        assert all(name in answer.headers for name in needed)
