"""The address of the demo's server, and the command shown for this program."""

from __future__ import annotations

import shlex
import socket
import sys
from pathlib import Path

import pytest

from hyperfleet.cli.demo_server import choose_address, program
from hyperfleet.settings import parse_address


@pytest.mark.parametrize(("wanted", "host"), [("127.0.0.1:0", "127.0.0.1"), ("localhost:0", "127.0.0.1")])
def test_a_host_name_is_resolved(wanted: str, host: str) -> None:
    chosen = choose_address(parse_address(wanted))
    assert chosen.host == host
    assert chosen.port > 0


def test_a_taken_port_is_skipped() -> None:
    with socket.create_server(("127.0.0.1", 0)) as owner:
        taken = owner.getsockname()[1]
        assert taken < choose_address(parse_address(f"127.0.0.1:{taken}")).port <= taken + 50


def test_a_command_can_be_pasted_wherever_the_program_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "my programs"
    home.mkdir()
    monkeypatch.setattr(sys, "executable", str(home / "python"))
    assert shlex.split(program({})) == [str(home / "python"), "-m", "hyperfleet"]
    (home / "hyperfleet").touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    assert shlex.split(program({})) == ["my programs/hyperfleet"]
    assert program({"PATH": str(home)}) == "hyperfleet"
