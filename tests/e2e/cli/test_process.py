"""The command line as people run it: real processes, pipes, signals and terminals, before a real server."""

from __future__ import annotations

import os
import pty
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.server import PATIENCE, Server, await_state, command, run_command, running
from tests.programs import without_privileges

NOWHERE = "http://127.0.0.1:1"  # nobody listens on the port of tcpmux any more


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Run a server with three hundred clusters, which are more than a pipe holds."""
    with running(tmp_path_factory.mktemp("cli"), "memory:") as started:
        for number in range(300):
            body = {"name": f"cluster-{number:03}", "spec": {}, "labels": {"env": "prod" if number % 2 else "test"}}
            started.http.post("/clusters", json=body).raise_for_status()
        yield started


def environment(**variables: str) -> dict[str, str]:
    """Return our environment with no settings of HyperFleet but these."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("HYPERFLEET_")}
    ours.pop("PYTHONUNBUFFERED", None)  # a write that was cut short would pass for a whole one
    return {**ours, **variables}


def test_a_list_of_all(server: Server) -> None:
    done = run_command("get", "clusters", "--no-headers", server=server.url)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 300


def test_names_can_be_fed_back(server: Server) -> None:
    names = run_command("get", "clusters", "-q", "cluster-00", "-o", "name", server=server.url).stdout.split()
    done = run_command("get", *names, "--no-headers", server=server.url)
    assert [f"cluster/{line.split()[0]}" for line in done.stdout.splitlines()] == names
    assert len(names) == 10


@pytest.mark.parametrize(
    ("arguments", "codes"),
    [
        ("get clusters", (0, 141)),  # it may all fit into the pipe before anybody looks
        ("get clusters -o name", (0, 141)),
        ("get clusters -o json", (141,)),
        ("get clusters -o yaml", (141,)),
        ("events --after 0 -o json", (141,)),
    ],
)
def test_a_closed_pipe_is_silent(server: Server, arguments: str, codes: tuple[int, ...]) -> None:
    line = " ".join(command(*arguments.split()))
    script = f"{line} | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(  # noqa: S603  # our own command
        ["/bin/bash", "-c", script],
        env=environment(HYPERFLEET_SERVER=server.url),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == ""
    assert done.returncode in codes


@pytest.mark.parametrize("arguments", ["--help", "get --help", "--version", "no-such-command"])
def test_nobody_reading_at_all_is_no_answer(arguments: str) -> None:
    end, beginning = os.pipe()
    os.close(end)
    done = subprocess.run(  # noqa: S603  # our own command
        command(*arguments.split()),
        env=environment(),
        stdout=beginning,
        stderr=subprocess.STDOUT,
        timeout=PATIENCE,
        check=False,
    )
    os.close(beginning)
    assert done.returncode == 141


def test_a_disk_that_is_full_is_told(server: Server) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(  # noqa: S603  # our own command
            command("get", "clusters"),
            env=environment(HYPERFLEET_SERVER=server.url),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    assert (done.returncode, done.stderr) == (2, "Error: No space left on device\n")


@pytest.mark.parametrize(
    "arguments", ["get clusters -w", "watch", "events --after 0", "describe cluster cluster-001 -w"]
)
def test_ctrl_c_ends_a_watch_in_silence(server: Server, tmp_path: Path, arguments: str) -> None:
    with (tmp_path / "out").open("wb") as out, (tmp_path / "err").open("wb") as err:
        process = subprocess.Popen(  # noqa: S603  # our own command; tests in the background of a shell ignore Ctrl-C
            ["/usr/bin/env", "--default-signal=INT", *command(*arguments.split())],
            env=environment(HYPERFLEET_SERVER=server.url),
            stdout=out,
            stderr=err,
        )
        try:
            await_state(lambda: (tmp_path / "out").stat().st_size)
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE) == 130
        finally:
            process.kill()
            process.wait()
    assert (tmp_path / "err").read_text().strip() == ""


def test_a_watch_survives_a_restart_of_the_server(tmp_path: Path) -> None:
    with running(tmp_path, f"sqlite:{tmp_path}/fleet.db") as server:
        address = f"127.0.0.1:{server.port}"
        server.http.post("/clusters", json={"name": "first", "spec": {}}).raise_for_status()
        with (tmp_path / "out").open("wb") as out:
            process = subprocess.Popen(  # noqa: S603  # our own command
                command("get", "clusters", "-w", "-o", "name"),
                env=environment(HYPERFLEET_SERVER=server.url),
                stdout=out,
                stderr=subprocess.DEVNULL,
            )
        try:
            await_state(lambda: "cluster/first" in (tmp_path / "out").read_text())
            server.stop()
            second = Server(
                tmp_path, f"sqlite:{tmp_path}/fleet.db", listen=address
            )  # the same place, as services have it
            second.start()
            try:
                second.http.post("/clusters", json={"name": "second", "spec": {}}).raise_for_status()
                await_state(lambda: "cluster/second" in (tmp_path / "out").read_text())
            finally:
                second.kill9()
        finally:
            process.kill()
            process.wait()
    assert (tmp_path / "out").read_text().split() == ["cluster/first", "cluster/second"]


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams_are_no_mistake_of_ours(server: Server, closed: str) -> None:
    done = subprocess.run(  # noqa: S603  # our own command
        ["/bin/bash", "-c", f"{' '.join(command('get', 'clusters', '--limit', '1'))} {closed}"],
        env=environment(HYPERFLEET_SERVER=server.url),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_without_a_command_there_is_help() -> None:
    done = run_command()
    assert done.returncode == 2
    assert "Usage: hyperfleet" in done.stderr


READING = [
    "get clusters",
    "describe x",
    "explain x",
    "problems",
    "top",
    "history x",
    "diff x --from 1h",
    "is-ready x",
    "failed x",
    "progress x",
    "watch",
    "wait x --timeout 1h",
    "events",
    "version",
]


@pytest.mark.parametrize("arguments", READING)
def test_nobody_there_is_told_at_once(arguments: str) -> None:
    done = run_command(*arguments.split(), server=NOWHERE)
    assert done.returncode == 69
    assert re.fullmatch(rf"Error: cannot connect to {NOWHERE}: .*[Cc]onnection refused.*\n", done.stderr)


def test_a_failure_of_the_default_server_has_a_hint(tmp_path: Path) -> None:
    with socket.socket() as holder:
        if holder.connect_ex(("127.0.0.1", 8000)) == 0:
            pytest.skip("somebody listens on port 8000; stop them to run this")
    done = run_command("get", "clusters", config_home=str(tmp_path))
    assert done.returncode == 69
    assert "This is the default server" in done.stderr


def test_a_config_file_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    home = tmp_path / "config"
    home.mkdir(mode=0o500)
    done = subprocess.run(  # noqa: S603  # our own command
        without_privileges(command("config", "set-context", "here", "--server", NOWHERE)),
        env={**os.environ, "HYPERFLEET_CONFIG_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == f"Error: {home / 'config.yaml'} cannot be written: Permission denied\n"


@pytest.mark.parametrize(("address", "code"), [("http://256.1.1.1", 2), ("http://no-such-host.invalid", 69)])
def test_a_server_that_is_none(address: str, code: int) -> None:
    done = run_command("get", "clusters", server=address)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("Error: ")


def test_https_where_there_is_none(server: Server) -> None:
    done = run_command("get", "clusters", server=server.url.replace("http:", "https:"))
    assert done.returncode == 69
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("Error: ")


def test_the_wait_codes_differ(server: Server) -> None:
    assert run_command("wait", "cluster-001", "--timeout", "10ms", server=server.url).returncode == 124
    assert run_command("wait", "cluster-001", "--fail-on", "phase=Pending", server=server.url).returncode == 3
    assert run_command("wait", "cluster-001", "--for", "phase=Pending", server=server.url).returncode == 0
    assert run_command("wait", "no-such-cluster", server=server.url).returncode == 4


# ── terminals ────────────────────────────────────────────────────────────────────────────────────────────────────


def run_in_terminal(server: Server, *arguments: str, **variables: str) -> str:
    """Run a command in a terminal of its own; return all that it showed."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(  # noqa: S603  # our own command
        command(*arguments),
        env=environment(HYPERFLEET_SERVER=server.url, TERM="xterm", COLUMNS="80", **variables),
        stdin=follower,
        stdout=follower,
        stderr=follower,
    )
    os.close(follower)
    shown = b""
    try:
        while piece := _read(leader):
            shown += piece
        process.wait(PATIENCE)
    finally:
        process.kill()
        os.close(leader)
    return shown.decode()


def _read(leader: int) -> bytes:
    try:
        return os.read(leader, 65536)
    except OSError:  # that is how a terminal says that nobody writes to it any more
        return b""


def test_terminals_have_colours_unless_told_otherwise(server: Server) -> None:
    assert "\x1b[33mPending\x1b[0m" in run_in_terminal(server, "get", "cluster", "cluster-001")
    assert "\x1b[" not in run_in_terminal(server, "get", "cluster", "cluster-001", NO_COLOR="1")


def test_waiting_shows_a_bar_on_a_terminal(server: Server) -> None:
    shown = run_in_terminal(server, "wait", "cluster-001", "--for", "phase=Pending")
    assert "cluster/cluster-001 condition met" in shown
    assert "━" in shown


def test_a_terminal_without_our_characters_gets_others(server: Server) -> None:
    done = subprocess.run(  # noqa: S603  # our own command
        command("describe", "cluster-001"),
        env=environment(HYPERFLEET_SERVER=server.url, PYTHONIOENCODING="ascii"),
        capture_output=True,
        timeout=PATIENCE,
        check=True,
    )
    assert b"??Conditions" in done.stdout
