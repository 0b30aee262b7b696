"""The audit log and redaction with a real server: files, signals, proxies, and what is on the disk afterwards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.e2e.server import await_state, run_command, running
from tests.world import body

SECRET = "hunter2-zq9"  # noqa: S105  # it is to be found nowhere


def read(file: Path) -> list[dict[str, Any]]:
    """Return the records of a file."""
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_the_file_has_every_write_before_it_is_answered(tmp_path: Path) -> None:
    file = tmp_path / "audit.log"
    proxy = {"X-Forwarded-For": "203.0.113.9"}
    with running(tmp_path, "memory:", audit_to=str(file), trusted_proxies="127.0.0.0/8") as server:
        made = server.http.post("/clusters", json={"name": "one", "spec": {}}, headers=proxy).json()
        (record,) = read(file)
        assert (record["target"]["id"], record["remote"], record["status"]) == (made["id"], "203.0.113.9", 201)
        assert record["caller"]["name"] == "anonymous"
        for number in range(20):
            server.http.post(f"/clusters/{made['id']}/statuses", json=body(f"a{number}", "True"))
            assert len(read(file)) == 2 + number
        server.http.post("/clusters", json={"name": "one", "spec": {}})
        assert read(file)[-1]["code"] == "NameTaken"
        moved = file.rename(tmp_path / "audit.1")
        server.reload()
        await_state(lambda: file.exists() and read(file))
        assert [(each["event"], each["outcome"]) for each in read(file)] == [("reload", "done")]
        server.http.delete(f"/clusters/{made['id']}")
        assert [each.get("method") for each in read(file)] == [None, "DELETE"]
        assert len(read(moved)) == 22


def test_without_authentication_there_is_none_unless_wanted(tmp_path: Path) -> None:
    for settings, expected in (({}, 0), ({"audit_to": "log", "log_level": "error"}, 1), ({"audit_to": "none"}, 0)):
        with running(tmp_path, "memory:", **settings) as server:
            assert server.http.post("/clusters", json={"name": "one", "spec": {}}).status_code == 201
            assert server.log.count('"route":"/api/hyperfleet/v1/clusters"') == expected


def test_a_place_that_cannot_be_written_is_told_at_the_start(tmp_path: Path) -> None:
    place = tmp_path / "nowhere" / "audit.log"
    result = run_command("serve", audit_to=str(place), database="memory:", listen="127.0.0.1:0")
    assert result.returncode != 0
    assert "audit.to: No such file or directory" in result.stderr
    assert "Traceback" not in result.stderr


def test_no_secret_is_in_the_log_or_on_the_disk(tmp_path: Path) -> None:
    settings = {"log_level": "debug", "audit_to": "log", "access_log": "true"}
    with running(tmp_path, f"sqlite:{tmp_path / 'fleet.db'}", **settings) as server:
        made = server.http.post("/clusters", json={"name": "one", "spec": {}}).json()
        data = {"zone": "seen-zone-7", "password": SECRET, "url": f"https://u:{SECRET}@h"}
        path = f"/clusters/{made['id']}/statuses"
        for report in (
            body("dns", "True", data=data),
            body("dns", f"False/Failed/token={SECRET} was refused", data=data),
            body("dns", "Maybe", data=data),
            {"adapterStatuses": [body("a", "True", data=data), body("b", "True", data={"x": [data]})]},
        ):
            assert SECRET not in server.http.post(path, json=report).text
        server.stop()
        stored = b"".join(each.read_bytes() for each in tmp_path.glob("fleet.db*"))
        assert b"seen-zone-7" in stored
        assert SECRET.encode() not in stored
        assert SECRET not in server.log
