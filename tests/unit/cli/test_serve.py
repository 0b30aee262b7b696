"""`hyperfleet serve` as a process: its output, its exit code."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from hyperfleet.cli.serve import FLAGS
from hyperfleet.settings import SETTINGS

COMMAND = Path(sys.executable).parent / "hyperfleet"
SECRET = "hunter2"  # noqa: S105 - what must not be seen anywhere
ENOUGH = 60  # seconds after which something hangs; nothing is measured by it


def environment(variables: dict[str, str]) -> dict[str, str]:
    """Return our own environment without settings, and these variables."""
    ours = {name: text for name, text in os.environ.items() if not name.startswith("HYPERFLEET_")}
    return ours | variables


def run(directory: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own command
        [str(COMMAND), "serve", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=directory,
        env=environment(variables),
        timeout=ENOUGH,
    )


@contextmanager
def running(directory: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """Start a server and yield it with the lines that it wrote until it listens."""
    process = subprocess.Popen(  # noqa: S603 - our own command
        [str(COMMAND), "serve", *arguments], stderr=subprocess.PIPE, text=True, cwd=directory, env=environment({})
    )
    assert process.stderr is not None
    lines = []
    try:
        for line in process.stderr:
            lines.append(line.rstrip("\n"))
            if line.startswith("Listening"):
                break
        yield process, lines
    finally:
        process.terminate()
        process.communicate(timeout=ENOUGH)


def test_help_has_settings() -> None:
    text = run(Path.cwd(), "--help").stdout
    assert "hyperfleet serve --config hyperfleet.yaml --check" in text
    assert "HYPERFLEET_LOG_LEVEL=debug" in text
    shown = [*FLAGS, *(setting.key for setting in SETTINGS if setting.key not in FLAGS.values())]
    assert [name for name in shown if name not in text] == []


def test_check_shows_what_is_in_effect_and_where_it_was_set(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("limits:\n  maxDepth: 64\n")
    url = f"postgresql://u:{SECRET}@h/d"
    done = run(tmp_path, "--check", "--config", "s.yaml", "--log-level", "debug", HYPERFLEET_DATABASE=url)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [tuple(part.strip() for part in line.split(" # ")) for line in done.stdout.splitlines()]
    assert lines[0] == ("listen: 127.0.0.1:8000", "default")
    assert ("database: postgresql://u:***@h/d", "HYPERFLEET_DATABASE") in lines
    assert ("logLevel: debug", "--log-level") in lines
    assert ("limits.maxDepth: 64", "s.yaml:2:13") in lines
    assert len(lines) == len(SETTINGS)


def test_check_reports_all_errors(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("limits: {maxDept: 64}\n")
    done = run(tmp_path, "--check", "--config", "s.yaml", "--workers", "x", HYPERFLEET_LISTEN="8000")
    assert (done.returncode, done.stderr) == (1, "")
    places = [line.split(": ")[0] for line in done.stdout.splitlines()]
    assert places == ["s.yaml:1:10", "HYPERFLEET_LISTEN", "--workers"]


def test_check_reads_the_policy_and_the_schemas(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text("requiredAdapter: [dns]\n")
    done = run(tmp_path, "--check", "--policy", "policy.yaml")
    assert done.returncode == 1
    assert f'{tmp_path}/policy.yaml:1:1: unknown key "requiredAdapter"' in done.stdout
    (tmp_path / "schema.json").write_text('{"type": "objekt"}')
    for file in ("schema.json", "none.json"):
        done = run(tmp_path, "--check", HYPERFLEET_SPEC_SCHEMAS=f"Cluster={file}")
        assert (done.returncode, done.stderr) == (1, "")
        assert f"{tmp_path}/{file}" in done.stdout
    assert run(tmp_path, "--check", "--policy", "none.yaml").returncode == 1


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--listen", "0.0.0.0:0"), 2, "--insecure-listen"),
        (("--config", "none.yaml"), 2, "none.yaml: cannot be read: No such file or directory"),
        (("--policy", "none.yaml", "--listen", "127.0.0.1:0"), 2, "none.yaml: policy: No such file or directory"),
        (("--database", f"mysql://u:{SECRET}@h/d"), 2, "--database: expected sqlite:PATH"),
        (("--database", "sqlite:none/fleet.db", "--listen", "127.0.0.1:0"), 69, "none does not exist"),
        (("--database", "sqlite:/proc/fleet.db", "--listen", "127.0.0.1:0"), 69, "writable in the directory /proc"),
        (("--listen", "192.0.2.1:0", "--insecure-listen"), 69, "192.0.2.1:0 is not an address of this machine"),
        (("--listen", "name.invalid:0", "--insecure-listen"), 69, "unknown host"),
    ],
)
def test_user_errors_are_reported(tmp_path: Path, arguments: tuple[str, ...], code: int, message: str) -> None:
    done = run(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert SECRET not in done.stderr


@pytest.mark.parametrize("is_shared", [False, True])
def test_an_address_in_use_is_reported(tmp_path: Path, is_shared: bool) -> None:
    with socket.create_server(("127.0.0.1", 0), reuse_port=is_shared) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = run(tmp_path, "--listen", address, "--database", "sqlite:fleet.db")
    assert done.returncode == 69
    assert f"Error: {address} is in use by another program" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_is_not_a_database_is_reported(tmp_path: Path) -> None:
    (tmp_path / "fleet.db").write_text("this is no database " * 100)
    done = run(tmp_path, "--listen", "127.0.0.1:0", "--database", "sqlite:fleet.db")
    assert done.returncode == 69
    assert "fleet.db" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_variable_is_reported_even_with_other_errors(tmp_path: Path) -> None:
    done = run(tmp_path, "--workers", "x", HYPERFLEET_DATABSE="memory:", HYPERFLEET_TEST_X="1")
    assert done.returncode == 2
    assert done.stderr.count("Warning: ") == 1
    assert "Warning: HYPERFLEET_DATABSE is not a setting, did you mean HYPERFLEET_DATABASE?" in done.stderr


def test_without_settings_it_serves_and_prints_where_the_data_is(tmp_path: Path) -> None:
    with running(tmp_path, "--listen", "127.0.0.1:0") as (process, lines):
        assert lines[:2] == [
            f"Data: sqlite:{tmp_path}/hyperfleet.db",
            "Policy: the stored one, or else the built-in one",
        ]
        assert lines[-1].startswith("Listening on http://127.0.0.1:")
        url = lines[-1].removeprefix("Listening on ")
        with httpx.Client(transport=httpx.HTTPTransport(retries=5)) as client:
            assert client.get(f"{url}/healthz").status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(ENOUGH) == 0
        assert process.stderr is not None
        log = process.stderr.read()
        assert "INFO" in log
        assert "stopping: " in log
        assert "stopped: " in log
    assert (tmp_path / "hyperfleet.db").exists()


def test_two_servers_do_not_share_an_address(tmp_path: Path) -> None:
    with running(tmp_path, "--listen", "127.0.0.1:0", "--database", "memory:") as (_, lines):
        address = lines[-1].removeprefix("Listening on http://")
        assert any("policy version 1 " in line and "built in" in line for line in lines)
        assert any(f"accepts requests on {address}" in line for line in lines)
        done = run(tmp_path, "--listen", address, "--database", "memory:")
    assert done.returncode == 69
    assert f"Error: {address} is in use by another program" in done.stderr
