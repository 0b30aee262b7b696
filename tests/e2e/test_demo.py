"""`hyperfleet demo`: some cluster is in every state, its suggestions work, and it leaves nothing behind."""

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
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from hyperfleet.model.phase import PHASES
from tests.e2e.server import PATIENCE, ROOT, await_state, command, run_command

ENDLESS: Final = re.compile(r"\b(watch|wait|listen)\b")  # commands that go on until somebody stops them


class Demo:
    """A running demo, with its output so far."""

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
    with showing(tmp_path_factory.mktemp("a demo"), "--listen", "127.0.0.1:0", "--speed", "1") as demo:
        yield demo


def test_some_cluster_is_in_every_state(demo: Demo) -> None:
    clusters = demo.clusters()
    assert len(clusters) == 40
    assert {item["status"]["phase"] for item in clusters.values()} == set(PHASES)
    assert len({item["generation"] for item in clusters.values()}) > 1
    adapters = [each for item in clusters.values() for each in item["status"]["adapters"]]
    states = {"Completed", "Running", "Pending", "Failed", "Unhealthy"}
    assert states <= {each["state"] for each in adapters}
    assert any(each["stale"] for each in adapters)
    assert demo.clusters(flapping="any")
    assert demo.http.get("/nodepools:summary?groupBy=phase").json()["total"] > 20


def test_the_descriptions_of_clusters_are_true(demo: Demo) -> None:
    summaries = dict(line.split(maxsplit=1) for line in demo.lines if re.match(r"  \S+ {2,}\S", line))
    by_role = {text: demo.clusters()[name] for name, text in summaries.items()}

    def phase(text: str) -> str:
        return str(by_role[text]["status"]["phase"])

    assert phase("has been ready for an hour") == "Ready"
    assert phase("is being deleted") == phase("its deletion is stuck") == "Deleting"
    assert phase("works, but an adapter is unhealthy") == "Degraded"
    assert phase("an adapter has not reported for long") == "Degraded"
    assert phase("one adapter never reported") == "Failed"
    assert phase("no adapter has started on it") == "Pending"
    assert "phaseFlapping" in by_role["is flapping"]["status"]
    assert by_role["is rolling out another release"]["generation"] == 2


def test_the_fleet_has_a_past(demo: Demo) -> None:
    name = next(name for name in demo.clusters() if name.startswith("features"))  # it has recovered
    history = demo.http.get(f"/clusters/{demo.clusters()[name]['id']}/history?subject=phase").raise_for_status().json()
    phases = [entry["to"] for entry in reversed(history["items"])]
    assert phases[0] == "Pending"
    assert "Failed" in phases
    assert phases[-1] == "Ready"


def test_another_policy_would_change_something(demo: Demo) -> None:
    (directory,) = demo.directory.iterdir()
    policy = (directory / "without-hypershift.yaml").read_text()
    answer = demo.http.post("/policy:simulate", content=policy, headers={"Content-Type": "application/yaml"})
    assert answer.raise_for_status().json()["changed"] > 0


def test_the_commands_of_the_readme_are_suggested(demo: Demo) -> None:
    """They name a cluster of the demo, and what is suggested is run below."""
    asked = re.findall(r"^\$ \.venv/bin/(hyperfleet .*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert len(asked) == 3
    assert set(asked) <= {line[line.index("hyperfleet ") :] for line in demo.commands}


def test_every_suggestion_works(demo: Demo) -> None:
    assert f"  export HYPERFLEET_SERVER={demo.url}" in demo.lines
    assert len(demo.commands) == 14
    assert try_all(demo.commands, {**os.environ, "HYPERFLEET_SERVER": demo.url}) == {}


@pytest.mark.skipif(shutil.which("curl") is None, reason="Server missing: no curl; to enable: apt-get install curl")
def test_every_curl_suggestion_works(tmp_path: Path) -> None:
    with showing(tmp_path, "--listen", "127.0.0.1:0", "--curl", "--clusters", "20", "--seed", "3") as demo:
        assert len(demo.commands) == 14
        assert try_all([f"{line} --silent --fail" for line in demo.commands], dict(os.environ)) == {}
        assert_nothing_is_left(demo, signal.SIGINT)


def try_all(lines: list[str], environment: dict[str, str]) -> dict[str, str]:
    """Run commands, beside those that have no end; return what is wrong, by command."""
    with ExitStack() as stack:
        endless = {line: stack.enter_context(running(line, environment)) for line in lines if ENDLESS.search(line)}
        said = {line: run_to_its_end(line, environment) for line in lines if line not in endless}
        said |= {line: "it has ended" for line, process in endless.items() if process.poll() is not None}
    return {line: wrong for line, wrong in said.items() if wrong}


@contextmanager
def running(line: str, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(shlex.split(line), cwd=ROOT, env=environment, stdout=subprocess.DEVNULL) as process:  # noqa: S603  # what the demo says
        try:
            yield process
        finally:
            process.kill()


def run_to_its_end(line: str, environment: dict[str, str]) -> str:
    """Run a command; return what is wrong with it."""
    words = shlex.split(line)
    done = subprocess.run(  # noqa: S603  # likewise
        words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    expected = 1 if words[1] == "diff" else 0  # as diff(1) says that there is a difference
    if done.returncode == expected and done.stdout:
        return ""
    return f"exit code {done.returncode}: {done.stderr or done.stdout}"


def assert_nothing_is_left(demo: Demo, how: signal.Signals) -> None:
    """Stop a demo in some way, and see that it cleans up."""
    assert [path.name[:16] for path in demo.directory.iterdir()] == ["hyperfleet-demo-"]
    demo.process.send_signal(how)
    assert demo.process.wait(PATIENCE) == 0
    assert list(demo.directory.iterdir()) == []
    assert not demo.is_listening()


def test_nothing_is_left_when_its_terminal_is_closed(tmp_path: Path) -> None:
    with showing(tmp_path, "--listen", "127.0.0.1:0", "--clusters", "2") as demo:
        assert_nothing_is_left(demo, signal.SIGHUP)


@pytest.mark.skipif(sys.platform != "linux", reason="NOT RUN: only Linux ends a process with its parent")
def test_a_demo_that_was_killed_leaves_no_server(tmp_path: Path) -> None:
    with showing(tmp_path, "--listen", "127.0.0.1:0", "--clusters", "3") as demo:
        demo.process.kill()
        await_state(lambda: not demo.is_listening())


def test_a_taken_port_is_not_used(tmp_path: Path) -> None:
    with socket.socket() as owner:
        owner.bind(("127.0.0.1", 0))
        owner.listen()
        port = owner.getsockname()[1]
        with showing(tmp_path, "--listen", f"127.0.0.1:{port}", "--clusters", "2") as demo:
            assert demo.is_listening()
            assert int(demo.url.rpartition(":")[2]) > port
            assert_nothing_is_left(demo, signal.SIGTERM)


def test_what_is_kept_can_be_served_again(tmp_path: Path) -> None:
    arguments = ("--listen", "127.0.0.1:0", "--clusters", "2", "--keep", "--duration", "0")
    done = run(tmp_path, *arguments)
    assert done.returncode == 0, done.stderr
    told, _, line = done.stderr.rpartition("\n  ")
    (directory,) = tmp_path.iterdir()
    assert f"The data is in {directory}" in told
    assert {"fleet.db", "policy.yaml", "without-hypershift.yaml"} <= {path.name for path in directory.iterdir()}
    words = shlex.split(line)
    assert run_command(*words[words.index("serve") :], "--check").returncode == 0


def test_it_listens_on_loopback_only(tmp_path: Path) -> None:
    done = run(tmp_path, "--listen", "0.0.0.0:0")
    assert done.returncode == 2
    assert "listens on a loopback address only" in done.stderr


def run(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a demo to its end."""
    return subprocess.run(  # noqa: S603  # our own command
        command("demo", *arguments),
        env={**os.environ, "TMPDIR": str(directory)},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )


def test_make_run_is_the_demo() -> None:
    """In the environment that the tests run in, which is taken as it is: nothing is installed by a test."""
    make = shutil.which("make")
    if make is None:
        pytest.skip("Server missing: make was not found; to enable: apt-get install make")
    quiet = "--no-print-directory"  # make run by make tells where it is
    line = [make, quiet, f"VENV={sys.prefix}", f"--old-file={sys.prefix}/.ready", "run", "ARGS=--help"]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603  # our own Makefile
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Usage: hyperfleet demo ")
