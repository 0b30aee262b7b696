"""The audit log: every write and every refused one, by whichever way, and nothing that was only read."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hyperfleet.api.context import RequestLimits
from hyperfleet.api.rate_limits import RateLimiter
from hyperfleet.backends.journal import FileJournal, LogJournal
from hyperfleet.backends.memory import MemoryStore
from hyperfleet.errors import StoreUnavailable
from hyperfleet.ports import Needs, Scope, Store, Work
from hyperfleet.services.callers import Caller, Rejection
from tests.api.compat_client import COMPAT, report_body
from tests.api.fleet import Fleet, HandClock, open_fleet
from tests.world import body

CALLERS = {
    b"ann": Caller("ann"),
    b"rose": Caller("rose", Scope(frozenset({"red"})), "red", frozenset({"editor"})),
    b"dns": Caller("dns", roles=frozenset({"reporter"}), adapters=frozenset({"dns"})),
    b"guest": Caller("guest", roles=frozenset({"reader"})),
}


class Keys:
    """An authenticator whose tokens are names."""

    def recognize(self, token: bytes) -> Caller | None:
        """Know everybody at once."""
        return CALLERS.get(token)

    async def identify(self, token: bytes) -> Caller | Rejection:
        """Know nobody else."""
        return Rejection("nobody has this token")


class Pad:
    """A journal that can be read."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []

    def write(self, lines: Sequence[bytes]) -> None:
        """Keep records."""
        assert all(b"\n" not in line for line in lines)
        self.records += [msgspec.json.decode(line) for line in lines]

    def reopen(self) -> None:
        """Do nothing."""

    def take(self) -> list[dict[str, Any]]:
        """Return what is new."""
        taken, self.records = self.records, []
        return taken


@pytest.fixture
def pad() -> Pad:
    return Pad()


@pytest.fixture
def fleet(store: Store, clock: HandClock, pad: Pad) -> Iterator[Fleet]:
    with open_fleet(store, clock, RequestLimits(), journal=pad, authenticator=Keys()) as fleet:
        yield fleet


def ask(fleet: Fleet, name: str, method: str, path: str, json: Any = None, **headers: str) -> Any:
    """Ask as somebody."""
    more = {} if json is None else {"json": json}
    return fleet.request(method, path, headers={"Authorization": f"Bearer {name}", **headers}, **more)


def make(fleet: Fleet, pad: Pad, name: str = "ann") -> dict[str, Any]:
    """Create a cluster, and forget that it was recorded."""
    made = ask(fleet, name, "POST", "/clusters", {"name": "one", "spec": {}}).json()
    pad.take()
    return dict(made)


def test_a_record_says_who_what_whence_and_what_became_of_it(fleet: Fleet, pad: Pad) -> None:
    response = ask(fleet, "rose", "POST", "/clusters", {"name": "one", "spec": {"a": 1}}, **{"X-Request-Id": "r-1"})
    made = response.json()
    (record,) = pad.take()
    assert record.pop("time")
    assert record == {
        "requestId": "r-1",
        "caller": {"name": "rose", "roles": ["editor"], "tenants": ["red"]},
        "remote": "127.0.0.1",
        "method": "POST",
        "route": "/api/hyperfleet/v1/clusters",
        "path": "/api/hyperfleet/v1/clusters",
        "status": 201,
        "outcome": "done",
        "target": {"kind": "Cluster", "id": made["id"], "name": "one", "tenant": "red"},
        "generation": 1,
        "revision": int(response.headers["etag"].strip('"')),
    }


def test_every_write_is_recorded(fleet: Fleet, pad: Pad) -> None:
    id_ = make(fleet, pad)["id"]
    path = f"/clusters/{id_}"
    for name, method, where, json, status in (
        ("ann", "PUT", path, {"spec": {"a": 1}}, 200),
        ("ann", "PATCH", path, {"spec": {"b": 1}}, 200),
        ("ann", "POST", f"{path}/nodepools", {"name": "workers", "spec": {}}, 201),
        ("dns", "POST", f"{path}/statuses", body("dns", "True", generation=3), 200),
        ("dns", "PUT", f"{path}/statuses/adapters/dns", body("dns", "True", generation=3), 200),
        ("ann", "DELETE", f"{path}/statuses/adapters/dns", None, 204),
        ("ann", "DELETE", path, None, 202),
        ("ann", "POST", f"{path}/force-delete", {"reason": "hangs"}, 204),
        ("ann", "POST", "/policy:reload", None, 200),
    ):
        response = ask(fleet, name, method, where, json)
        assert response.status_code == status, response.text
        (record,) = pad.take()
        assert (record["method"], record["status"], record["outcome"]) == (method, status, "done")
        assert record["caller"]["name"] == name
        assert record["requestId"] == response.headers["x-request-id"]
        assert record["path"].endswith(where)
        assert where == "/policy:reload" or record["target"]["kind"] in ("Cluster", "NodePool")


def test_reports_tell_what_became_of_each(fleet: Fleet, pad: Pad) -> None:
    id_ = make(fleet, pad)["id"]
    ask(fleet, "ann", "POST", f"/clusters/{id_}/statuses", body("dns", "True"))
    (record,) = pad.take()
    assert record["route"] == "/api/hyperfleet/v1/clusters/{clusterId}/statuses"
    assert record["reports"] == [{"adapter": "dns", "outcome": "aggregated"}]
    assert record["target"]["id"] == id_
    ask(fleet, "ann", "POST", f"/clusters/{id_}/statuses", body("dns", "Unknown"))
    (record,) = pad.take()
    assert record["reports"][0]["outcome"] == "discarded"
    assert record["reports"][0]["reason"]
    ask(fleet, "ann", "POST", f"/clusters/{id_}/statuses", {"adapterStatuses": [body("a", "True"), body("b", "True")]})
    (record,) = pad.take()
    assert [each["adapter"] for each in record["reports"]] == ["a", "b"]


def test_of_a_batch_each_report_is_recorded(fleet: Fleet, pad: Pad) -> None:
    id_ = make(fleet, pad)["id"]
    reports = [
        {"clusterId": id_, **body("dns", "True")},
        {"clusterId": "nowhere", **body("dns", "True")},
        {"clusterId": id_, "adapter": "dns"},
        {"clusterId": id_, **body("validation", "True")},
    ]
    ask(fleet, "dns", "POST", "/statuses:batch", {"reports": reports})
    records = sorted(pad.take(), key=lambda record: (record["target"]["id"], record.get("code", "")))
    assert [(each["target"]["id"], each["outcome"], each.get("code")) for each in records] == [
        (id_, "done", None),
        (id_, "refused", "InvalidBody"),
        (id_, "refused", "NotYourAdapter"),
        ("nowhere", "refused", "NotFound"),
    ]
    assert len({each["requestId"] for each in records}) == 1


@pytest.mark.parametrize(
    ("name", "method", "path", "json", "status", "code"),
    [
        ("nobody", "POST", "/clusters", {"name": "two", "spec": {}}, 401, "InvalidToken"),
        ("guest", "POST", "/clusters", {"name": "two", "spec": {}}, 403, "Forbidden"),
        ("guest", "DELETE", "/clusters/{id}", None, 403, "Forbidden"),
        ("rose", "POST", "/clusters/{id}/statuses", body("dns", "True"), 403, "Forbidden"),
        ("dns", "POST", "/clusters/{id}/statuses", body("other", "True"), 403, "NotYourAdapter"),
        ("dns", "PUT", "/clusters/{id}/statuses/adapters/other", body("other", "True"), 403, "NotYourAdapter"),
        ("ann", "POST", "/clusters", {"name": "one", "spec": {}}, 409, "NameTaken"),
        ("ann", "POST", "/clusters", {"name": "?"}, 400, "InvalidBody"),
        ("ann", "PATCH", "/clusters/nowhere", {"spec": {}}, 404, "NotFound"),
        ("ann", "POST", "/clusters/{id}/statuses", body("dns", "True", generation=9), 409, "GenerationAhead"),
        ("nobody", "PUT", f"{COMPAT}/clusters/{{id}}/statuses", report_body("dns"), 401, "HYPERFLEET-AUT-002"),
        ("guest", "PUT", f"{COMPAT}/clusters/{{id}}/statuses", report_body("dns"), 403, "HYPERFLEET-AUZ-001"),
    ],
)
def test_a_refused_write_is_recorded(  # noqa: PLR0917  # a table has columns
    fleet: Fleet, pad: Pad, name: str, method: str, path: str, json: Any, status: int, code: str
) -> None:
    id_ = make(fleet, pad)["id"]
    response = ask(fleet, name, method, path.format(id=id_), json)
    assert response.status_code == status, response.text
    (record,) = pad.take()
    assert (record["status"], record["outcome"], record["code"]) == (status, "refused", code)
    assert record["caller"] is None if name == "nobody" else record["caller"]["name"] == name
    assert record["requestId"] == response.headers["x-request-id"]
    assert record["remote"] == "127.0.0.1"
    assert record["target"]["kind"] == "Cluster"
    assert record["target"].get("id", "") in path.format(id=id_)
    assert record.get("adapter", "") == ("other" if "/adapters/" in path else "")


def test_the_go_clients_are_recorded_too(fleet: Fleet, pad: Pad) -> None:
    made = ask(fleet, "ann", "POST", f"{COMPAT}/clusters", {"kind": "Cluster", "name": "go", "spec": {}}).json()
    (record,) = pad.take()
    assert (record["target"]["id"], record["route"]) == (made["id"], "/compat/api/hyperfleet/v1/clusters")
    ask(fleet, "dns", "PUT", f"{COMPAT}/clusters/{made['id']}/statuses", report_body("dns"))
    (record,) = pad.take()
    assert record["reports"] == [{"adapter": "dns", "outcome": "aggregated"}]


def test_what_only_reads_is_not_recorded(fleet: Fleet, pad: Pad) -> None:
    id_ = make(fleet, pad)["id"]
    for path in ("/clusters", f"/clusters/{id_}", "/problems", f"/clusters/{id_}:explain"):
        ask(fleet, "ann", "GET", path)
    assert ask(fleet, "ann", "GET", f"{COMPAT}/clusters").status_code == 200
    assert fleet.get("/clusters").status_code == 401
    response = fleet.request(
        "POST",
        "/policy:simulate",
        content=fleet.policy,
        headers={"Authorization": "Bearer ann", "Content-Type": "application/yaml"},
    )
    assert response.status_code == 200, response.text
    assert ask(fleet, "ann", "POST", "/nowhere").status_code == 404
    assert pad.take() == []


def test_who_changed_the_policy_is_recorded(fleet: Fleet, pad: Pad) -> None:
    def put(name: str, adapter: str, query: str = "", **headers: str) -> dict[str, Any]:
        ask(fleet, name, "PUT", f"/policy{query}", {"requiredAdapters": [adapter]}, **headers)
        (record,) = pad.take()
        shown = ("status", "outcome", "code", "target", "dryRun")
        return {key: record[key] for key in shown if key in record} | {"by": record["caller"]["name"]}

    current = {"If-Match": '"1"'}
    tried = put("ann", "dns", "?dryRun=true", **current)
    assert tried == {"status": 200, "outcome": "done", "dryRun": True, "by": "ann"}
    done = {"status": 200, "outcome": "done", "target": {"kind": "Policy", "id": "2"}, "by": "ann"}
    assert put("ann", "dns", **current) == done
    refused = {"status": 412, "outcome": "refused", "code": "PreconditionFailed", "by": "ann"}
    assert put("ann", "mail", **current) == refused
    assert put("ann", "mail", "?dryRun=true", **current) == refused
    assert put("guest", "mail", **current)["code"] == "Forbidden"
    ask(fleet, "ann", "POST", "/policy:rollback", {"version": 1}, **{"If-Match": "*"})
    ask(fleet, "ann", "POST", "/policy:reload")
    assert [record["target"]["id"] for record in pad.take()] == ["3", "3"]


def test_bodies_are_never_in_it(fleet: Fleet, pad: Pad) -> None:
    made = ask(fleet, "ann", "POST", "/clusters", {"name": "one", "spec": {"a": "hunter2"}, "labels": {"b": "hunter3"}})
    path = f"/clusters/{made.json()['id']}/statuses"
    ask(fleet, "ann", "POST", path, body("dns", "True/Good/hunter4", data={"c": "hunter5"}))
    ask(fleet, "ann", "POST", path, body("dns", "hunter6"))
    assert "hunter" not in str(pad.take())


def test_reports_that_were_taken_can_be_left_out(store: Store, clock: HandClock, pad: Pad) -> None:
    more: dict[str, Any] = {"journal": pad, "authenticator": Keys(), "journals_reports": False}
    with open_fleet(store, clock, RequestLimits(), **more) as fleet:
        path = f"/clusters/{make(fleet, pad)['id']}/statuses"
        ask(fleet, "dns", "POST", path, body("dns", "True"))
        assert pad.take() == []
        ask(fleet, "dns", "POST", path, body("other", "True"))
        assert [record["code"] for record in pad.take()] == ["NotYourAdapter"], "a refusal is no flood"


def test_whoever_is_too_fast_cannot_fill_the_disk(clock: HandClock, pad: Pad) -> None:
    pace = RateLimiter(1, 1, lambda: 0.0)
    with open_fleet(
        MemoryStore(clock), clock, RequestLimits(), journal=pad, authenticator=Keys(), rate_limiter=pace
    ) as fleet:
        statuses = [ask(fleet, "nobody", "POST", "/clusters", {}).status_code for _ in range(5)]
    assert statuses == [401, 429, 429, 429, 429]
    assert [record["status"] for record in pad.take()] == [401]


class Slow(MemoryStore):
    """A store that keeps writes waiting while it is shut, or has gone away."""

    is_away = False
    _opening: asyncio.Event | None = None

    async def transact(self, needs: Needs, work: Work) -> int:
        """Wait, then write."""
        if self.is_away:
            raise StoreUnavailable("the database is away")
        if self._opening is not None:
            await self._opening.wait()
        return await super().transact(needs, work)

    @contextmanager
    def shut(self) -> Iterator[None]:
        """Keep writes waiting for the length of a block."""
        self._opening = asyncio.Event()
        try:
            yield
        finally:
            self._opening.set()


@pytest.mark.parametrize("headers", [{}, {"Prefer": "return=representation"}], ids=["lane", "route"])
def test_what_took_too_long_may_have_been_done(clock: HandClock, pad: Pad, headers: dict[str, str]) -> None:
    store, limits = Slow(clock), RequestLimits(time=timedelta(milliseconds=50))
    with open_fleet(store, clock, limits, journal=pad, authenticator=Keys()) as fleet:
        id_ = make(fleet, pad)["id"]
        with store.shut():
            late = ask(fleet, "ann", "POST", f"/clusters/{id_}/statuses", body("dns", "True"), **headers)
            assert late.status_code == 503
            (record,) = pad.take()
            assert (record["outcome"], record["status"], record["code"]) == ("unanswered", 503, "Timeout")
            assert record["target"]["id"] == id_
            reports = [{"clusterId": id_, **body(adapter, "True")} for adapter in ("a", "b")]
            assert ask(fleet, "ann", "POST", "/statuses:batch", {"reports": reports}).status_code == 503
            assert [(each["target"]["id"], each["outcome"]) for each in pad.take()] == [(id_, "unanswered")] * 2
        fleet.run(fleet.committer.close())
        assert ask(fleet, "ann", "GET", f"/clusters/{id_}/statuses/adapters/dns").status_code == 200, "it was done"


def test_an_entry_of_a_batch_that_failed_was_not_refused(clock: HandClock, pad: Pad) -> None:
    store = Slow(clock)
    with open_fleet(store, clock, RequestLimits(), journal=pad, authenticator=Keys()) as fleet:
        id_ = make(fleet, pad)["id"]
        store.is_away = True
        ask(fleet, "ann", "POST", "/statuses:batch", {"reports": [{"clusterId": id_, **body("dns", "True")}]})
        assert [(each["outcome"], each["code"]) for each in pad.take()] == [("failed", "StoreUnavailable")]


def test_without_a_journal_nothing_is_around(memory_client: Fleet) -> None:
    assert type(memory_client.app).__name__ != "Audit"


# ── where it is kept ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_file_is_appended_to_and_can_be_moved_away(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_bytes(b"before\n")
    journal = FileJournal(str(path))
    journal.write([b"{1}", b"{2}"])
    path.rename(tmp_path / "audit.1")
    journal.write([b"{3}"])
    journal.reopen()
    journal.write([b"{4}"])
    journal.close()
    assert (tmp_path / "audit.1").read_bytes() == b"before\n{1}\n{2}\n{3}\n"
    assert path.read_bytes() == b"{4}\n"
    assert path.stat().st_mode & 0o007 == 0, "it is not for everybody"


def test_a_directory_that_is_gone_does_not_stop_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a").mkdir()
    journal = FileJournal(str(tmp_path / "a" / "audit.log"))
    (tmp_path / "a").rename(tmp_path / "b")
    journal.reopen()
    journal.write([b"{1}"])
    journal.close()
    assert (tmp_path / "b" / "audit.log").read_bytes() == b"{1}\n"
    assert "cannot be opened" in caplog.text


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full, which every Linux has")
def test_a_full_disk_is_told_loudly_and_the_record_is_not_lost(caplog: pytest.LogCaptureFixture) -> None:
    journal = FileJournal("/dev/full")
    journal.write([b'{"requestId":"r-1"}'])
    journal.close()
    assert "No space left on device" in caplog.text
    assert '{"requestId":"r-1"}' in caplog.text
    assert all(record.levelno == logging.ERROR for record in caplog.records)


def test_a_write_goes_through_although_the_disk_is_full(clock: HandClock, caplog: pytest.LogCaptureFixture) -> None:
    journal = FileJournal("/dev/full")
    with open_fleet(MemoryStore(clock), clock, RequestLimits(), journal=journal) as fleet:
        made = fleet.create()
    journal.close()
    assert made["id"] in caplog.text


def test_the_log_has_it_whatever_its_level(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("hyperfleet.audit").setLevel(logging.NOTSET)
    caplog.handler.setLevel(logging.NOTSET)
    LogJournal().write([b"{1}"])
    assert caplog.messages == ["{1}"]
