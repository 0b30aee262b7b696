"""docs/operations.md is executed: backups restore, commands are answered, what is named exists."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from docs import generate
from hyperfleet.settings import SETTINGS
from tests.deploy.chart import CHART, ROOT, read_defaults, read_yaml
from tests.e2e.server import Server, run_command, running
from tests.servers import PostgresServer
from tests.world import body

GUIDE = (ROOT / "docs/operations.md").read_text("utf-8")
ALERTS = [
    name for path in (ROOT / "deploy").rglob("*.y*ml") for name in re.findall(r"- alert: (\w+)", path.read_text())
]
DATA = "/var/lib/hyperfleet/"


def create_cluster(server: Server, name: str = "payments") -> str:
    """Create a cluster; return its id."""
    answer = server.http.post("/clusters", json={"name": name, "spec": {"cloud": "aws"}})
    assert answer.status_code == 201
    return str(answer.json()["id"])


def read_cluster(server: Server, cluster: str) -> str:
    """Return a cluster as it is answered."""
    answer = server.http.get(f"/clusters/{cluster}")
    assert answer.status_code == 200
    return answer.text


def test_a_backup_of_a_running_sqlite_server_restores(tmp_path: Path) -> None:
    (line,) = re.findall(r"^\$ hyperfleet (db backup .*)$", GUIDE, re.MULTILINE)
    backup = shlex.split(line.replace(DATA, f"{tmp_path}/"))
    restore = ["db", "restore", f"{tmp_path}/backup.db", "--yes"]
    with running(tmp_path, f"sqlite:{tmp_path}/hyperfleet.db") as server:
        cluster = create_cluster(server)
        before = read_cluster(server, cluster)
        assert run_command(*backup).returncode == 0
        server.http.patch(f"/clusters/{cluster}", json={"labels": {"later": "yes"}})
        after = read_cluster(server, cluster)
        assert after != before
        refused = run_command(*restore, database=f"sqlite:{tmp_path}/hyperfleet.db")
        assert refused.returncode == 69
        assert "is in use: stop the server" in refused.stderr
        assert read_cluster(server, cluster) == after, "it goes on as if nothing had been"
        assert server.stop() == 0
    done = run_command(*restore, database=f"sqlite:{tmp_path}/hyperfleet.db")
    assert done.returncode == 0, done.stderr
    for database, answer in {"hyperfleet.db": before, "hyperfleet.db-replaced": after}.items():
        with running(tmp_path, f"sqlite:{tmp_path}/{database}") as server:
            assert read_cluster(server, cluster) == answer


def test_our_own_command_does_it_with_postgresql_s_tools(
    tmp_path: Path, postgres_server: PostgresServer, postgres_binaries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{postgres_binaries}:{os.environ['PATH']}")
    database, empty, file = postgres_server.url(), postgres_server.url("again"), str(tmp_path / "fleet.dump")
    assert run_command("db", "migrate", database=database).returncode == 0
    with running(tmp_path, database) as server:
        cluster = create_cluster(server)
        before = read_cluster(server, cluster)
        done = run_command("db", "backup", file, database=database)
        assert (done.returncode, done.stdout) == (0, f"{file}\n"), done.stderr
    created = subprocess.run(  # noqa: S603 - PostgreSQL's own
        [str(postgres_binaries / "psql"), "--quiet", "--command=create database again", database],
        capture_output=True,
        check=False,
    )
    assert created.returncode == 0, created.stderr
    done = run_command("db", "restore", file, database=empty)
    assert done.returncode == 0, done.stderr
    with running(tmp_path, empty) as server:
        assert read_cluster(server, cluster) == before
    assert run_command("db", "verify", database=empty).returncode == 0
    again = run_command("db", "restore", file, database=empty)
    assert again.returncode == 69, "what is there is not overwritten"
    assert "already exists" in again.stderr


def test_a_dump_of_a_running_postgres_server_restores(
    tmp_path: Path, postgres_server: PostgresServer, postgres_binaries: Path
) -> None:
    environment = {
        "PATH": f"{postgres_binaries}:{os.environ['PATH']}",
        "DATABASE": postgres_server.url(),
        "EMPTY_DATABASE": postgres_server.url("restored"),
    }

    def run(line: str) -> None:
        done = subprocess.run(line, shell=True, env=environment, cwd=tmp_path, capture_output=True, check=False)  # noqa: S602 - our own documentation
        assert done.returncode == 0, done.stderr

    dump, restore = re.findall(r"^\$ (pg_(?:dump|restore) .*)$", GUIDE, re.MULTILINE)
    assert run_command("db", "migrate", database=postgres_server.url()).returncode == 0
    with running(tmp_path, postgres_server.url()) as server:
        cluster = create_cluster(server)
        before = read_cluster(server, cluster)
        run(dump)
    run(f'psql --quiet --command="create database restored" {shlex.quote(postgres_server.url())}')
    run(restore)
    with running(tmp_path, postgres_server.url("restored")) as server:
        assert read_cluster(server, cluster) == before


def test_what_is_asked_of_a_server_is_answered(tmp_path: Path) -> None:
    curls = re.findall(r"`curl -s '?localhost:8000(/[^`']*?)'?`", GUIDE)
    section = GUIDE[GUIDE.index("## What to watch") : GUIDE.index("## Logs and traces")]
    looks = re.findall(r"^\| `(?:GET )?(/[^`]+)` \|", section, re.MULTILINE)
    assert len(curls) >= 5
    assert len(looks) >= 5
    policy = tmp_path / "policy.yaml"
    policy.write_text("requiredAdapters: [dns]\n")
    with running(tmp_path, "memory:", policy=str(policy)) as server:
        cluster = make_trouble(server)
        for path in {*curls, *looks}:
            answer = server.http.get(server.url + path.replace("{id}", cluster))
            assert answer.status_code == 200, (path, answer.text)
            assert answer.headers["content-type"] != "application/json" or is_telling(answer.json()), path


def make_trouble(server: Server) -> str:
    """Make a fleet with every trouble that a runbook looks for; return the id of a cluster that fails and flaps."""
    leaving = create_cluster(server, "leaving")
    server.http.post(f"/clusters/{leaving}/statuses", json=body("dns", "True"))
    assert server.http.delete(f"/clusters/{leaving}").status_code == 202
    failing = create_cluster(server, "failing")
    for status in ("True", "False") * 4:
        answer = server.http.post(f"/clusters/{failing}/statuses", json=body("dns", status, health=status))
        assert answer.json()["outcome"] == "aggregated"
    return failing


def is_telling(answer: dict[str, Any]) -> bool:
    """Tell whether an answer says something: whatever it lists, there is some of it."""
    lists = [answer[key] for key in ("items", "groups") if key in answer]
    return all(lists)


def test_the_table_of_metrics_is_current() -> None:
    assert generate.operations_guide_text() == GUIDE, "run `make docs`"


def test_every_runbook_but_these_has_its_alert() -> None:
    # Told by other systems: the disk by whoever has it, the migrations job by Kubernetes.
    assert set(re.findall(r"^### (\w+)$", GUIDE, re.MULTILINE)) - set(ALERTS) == {
        "HyperFleetDiskFilling",
        "HyperFleetMigrationFailed",
    }


def test_settings_that_matter_are_settings() -> None:
    section = GUIDE[GUIDE.index("## Settings that matter") : GUIDE.index("## Policy")]
    named = [key for row in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE) for key in re.findall(r"`(\S+?)`", row)]
    assert len(named) >= 8
    assert set(named) <= {setting.key for setting in SETTINGS}


@pytest.mark.parametrize("page", ["docs/operations.md", "docs/quickstart.md"])
def test_values_that_are_set_are_values(page: str) -> None:
    for path in re.findall(r"--set(?:-file)? ([\w.]+)=", (ROOT / page).read_text("utf-8")):
        value: object = read_defaults()
        for key in path.split("."):
            assert isinstance(value, dict), path
            assert key in value, path
            value = value[key]


def test_every_alert_has_its_runbook() -> None:
    runbooks = set(re.findall(r"^### (\w+)$", GUIDE, re.MULTILINE))
    assert len(runbooks) >= 10
    assert set(ALERTS) <= runbooks


def test_what_a_runbook_sends_you_to_exists() -> None:
    runbooks = set(re.findall(r"^### (\w+)$", GUIDE, re.MULTILINE))
    assert set(re.findall(r"\bHyperFleet[A-Z]\w+", GUIDE)) == runbooks


def test_the_version_is_that_of_the_chart() -> None:
    (chart,) = read_yaml((CHART / "Chart.yaml").read_text("utf-8"))
    assert set(re.findall(r"/hyperfleet:([\d.]+)\b", GUIDE)) == {chart["appVersion"]}
