"""`hyperfleet demo`: somebody is in every state, what it suggests works, and nothing is left of it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.e2e.server import PATIENCE, ROOT, await_state, command

PHASES: Final = {"Ready", "Provisioning", "Pending", "Failed", "Degraded", "Deleting"}
ENDLESS: Final = ("watch", "wait")  # commands that go on until somebody stops them


class Demo:
    """A demo under way, with all that it said so far."""

    def __init__(self, process: subprocess.Popen[str], directory: Path) -> None:
        assert process.stdout is not None
        self.process = process
        self.directory = directory
        self.lines = list(_read_introduction(process))
        found = re.search(r"listening on (http://\S+) ", "\n".join(self.lines))
        assert found, self.lines
        self.url = found[1]
        self.http = httpx.Client(base_url=f"{self.url}/v1", timeout=PATIENCE)

    @property
    def commands(self) -> list[str]:
        """Return what it suggests, without the first line that sets the server."""
        asked = [line.strip() for line in self.lines if line.startswith("  ") and not line.strip().startswith("#")]
        return [line for line in asked if line.startswith(("curl ", "hyperfleet ", ".", "/"))]

    def clusters(self, **query: str) -> dict[str, Any]:
        items = self.http.get("/clusters", params={"limit": "500", **query}).raise_for_status().json()["items"]
        return {item["name"]: item for item in items}

    def is_listening(self) -> bool:
        try:
            return self.http.get(f"{self.url}/healthz").status_code == 200
        except httpx.TransportError:
            return False


def _read_introduction(process: subprocess.Popen[str]) -> Iterator[str]:
    assert process.stdout is not None
    for line in process.stdout:
        yield line.rstrip("\n")
        if "rules simulate" in line or "policy:simulate" in line:
            return
    raise AssertionError(process.stderr.read() if process.stderr else "it said nothing")


@contextmanager
def showing(directory: Path, *arguments: str) -> Iterator[Demo]:
    """Run a demo whose data is somewhere below a directory."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("HYPERFLEET_")}
    with subprocess.Popen(  # noqa: S603  # our own command
        command("demo", *arguments),
        cwd=ROOT,
        env={**ours, "TMPDIR": str(directory)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            demo = Demo(process, directory)
            with demo.http:
                yield demo
        finally:
            process.terminate()
            process.communicate(timeout=PATIENCE)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with showing(tmp_path_factory.mktemp("demo"), "--listen", "127.0.0.1:0", "--speed", "1") as demo:
        yield demo


def test_somebody_is_in_every_state(demo: Demo) -> None:
    clusters = demo.clusters()
    assert len(clusters) == 40
    assert {item["status"]["phase"] for item in clusters.values()} == PHASES
    assert len({item["generation"] for item in clusters.values()}) > 1
    adapters = [each for item in clusters.values() for each in item["status"]["adapters"]]
    states = {"Completed", "Running", "Pending", "Failed", "Unhealthy"}
    assert states <= {each["state"] for each in adapters}
    assert any(each["stale"] for each in adapters)
    assert demo.clusters(flapping="any")
    assert demo.http.get("/nodepools:summary?groupBy=phase").json()["total"] > 20


def test_who_is_who_is_true(demo: Demo) -> None:
    told = dict(line.split(maxsplit=1) for line in demo.lines if re.match(r"  \S+ {2,}\S", line))
    by_part = {text: demo.clusters()[name] for name, text in told.items()}

    def phase(text: str) -> str:
        return str(by_part[text]["status"]["phase"])

    assert phase("has been in order for an hour") == "Ready"
    assert phase("is being deleted") == phase("cannot be deleted") == "Deleting"
    assert phase("works, but an adapter of it is ill") == "Degraded"
    assert phase("an adapter was not heard of for long") == "Degraded"
    assert phase("one adapter never came") == "Failed"
    assert phase("nobody has begun with it") == "Pending"
    assert "phaseFlapping" in by_part["cannot make up its mind"]["status"]
    assert by_part["gets another release"]["generation"] == 2


def test_the_fleet_has_a_past(demo: Demo) -> None:
    name = next(name for name in demo.clusters() if name.startswith("features"))  # it was mended
    history = demo.http.get(f"/clusters/{demo.clusters()[name]['id']}/history?subject=phase").raise_for_status().json()
    phases = [entry["to"] for entry in reversed(history["items"])]
    assert phases[0] == "Pending"
    assert "Failed" in phases
    assert phases[-1] == "Ready"


def test_every_suggestion_works(demo: Demo) -> None:
    assert f"  export HYPERFLEET_SERVER={demo.url}" in demo.lines
    assert len(demo.commands) == 13
    environment = {**os.environ, "HYPERFLEET_SERVER": demo.url}
    failed = {line: said for line in demo.commands if (said := _try(line, environment))}
    assert not failed, "\n".join(f"{line}\n{said}" for line, said in failed.items())


def _try(line: str, environment: dict[str, str]) -> str:
    """Run a command; return what is wrong with it. One that has no end must still be at it after a while."""
    words = shlex.split(line)
    endless = any(word in ENDLESS for word in words)
    process = subprocess.Popen(  # noqa: S603  # what the demo says
        words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        told, said = process.communicate(timeout=3 if endless else PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return "" if endless else "it does not end"
    expected = 1 if "diff" in words else 0  # as diff(1) says that there is a difference
    return "" if process.returncode == expected and told else f"exit code {process.returncode}: {said or told}"


@pytest.mark.skipif(shutil.which("curl") is None, reason="NOT RUN: there is no curl; install it to try the commands")
def test_with_curl_as_well(tmp_path: Path) -> None:
    with showing(tmp_path, "--listen", "127.0.0.1:0", "--curl", "--clusters", "20", "--seed", "3") as demo:
        assert len(demo.commands) == 13
        codes = {line: _fetch(line) for line in demo.commands}
    assert set(codes.values()) == {"200"}, codes


def _fetch(line: str) -> str:
    """Run a curl command, a watch or a wait only for a while because it may have no end; return the HTTP status."""
    patience = "3" if "watch=true" in line or ":wait" in line else str(PATIENCE)
    more = ["--silent", "--output", os.devnull, "--max-time", patience, "--write-out", "%{http_code}"]
    done = subprocess.run([*shlex.split(line), *more], capture_output=True, check=False, text=True)  # noqa: S603
    return "200" if ":wait" in line and done.stdout == "000" else done.stdout


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left(tmp_path: Path, how: signal.Signals) -> None:
    with showing(tmp_path, "--listen", "127.0.0.1:0", "--clusters", "3") as demo:
        assert [path.name[:16] for path in tmp_path.iterdir()] == ["hyperfleet-demo-"]
        demo.process.send_signal(how)
        assert demo.process.wait(PATIENCE) == 0
        assert list(tmp_path.iterdir()) == []
        assert not demo.is_listening()


@pytest.mark.skipif(sys.platform != "linux", reason="NOT RUN: only Linux ends a process with its parent")
def test_a_demo_that_was_killed_leaves_no_server(tmp_path: Path) -> None:
    with showing(tmp_path, "--listen", "127.0.0.1:0", "--clusters", "3") as demo:
        demo.process.kill()
        await_state(lambda: not demo.is_listening())


def test_a_port_that_is_taken_is_left_to_its_owner(tmp_path: Path) -> None:
    with socket.socket() as owner:
        owner.bind(("127.0.0.1", 0))
        owner.listen()
        port = owner.getsockname()[1]
        with showing(tmp_path, "--listen", f"127.0.0.1:{port}", "--clusters", "2") as demo:
            assert demo.is_listening()
            assert int(demo.url.rpartition(":")[2]) > port


def test_what_is_kept_can_be_served_again(tmp_path: Path) -> None:
    with showing(tmp_path, "--listen", "127.0.0.1:0", "--clusters", "2", "--keep") as demo:
        demo.process.terminate()
        said = demo.process.stderr.read() if demo.process.stderr else ""
    (directory,) = tmp_path.iterdir()
    assert f"hyperfleet serve --database sqlite:{directory}/fleet.db" in said
    assert {"fleet.db", "policy.yaml"} <= {path.name for path in directory.iterdir()}


def test_only_this_machine_may_look(tmp_path: Path) -> None:
    done = subprocess.run(command("demo", "--listen", "0.0.0.0:0"), capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 2
    assert "listens on this machine only" in done.stderr
