"""Every error is one clear message on stderr and an exit code; never a traceback."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import click
import httpx
import pytest

from hyperfleet.cli import exits, failures, run
from hyperfleet.cli.session import CliSession
from hyperfleet.cli.table import COMMANDS
from hyperfleet.client import errors as client_errors

SECRET = "geheim-4711"  # noqa: S105  # what must not be seen anywhere


def problem(status: int, code: str, detail: str = "because") -> httpx.Response:
    """Make a problem document."""
    body = {"title": "No", "status": status, "code": code, "detail": detail, "requestId": "req-1"}
    return httpx.Response(status, json=body, headers={"content-type": "application/problem+json"})


def run_before(answer: Any, *arguments: str) -> int:
    """Run a command line before a server that answers like that."""

    def handle(request: httpx.Request) -> httpx.Response:
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, httpx.Response) else answer(request)

    environment = {"HYPERFLEET_SERVER": "http://127.0.0.1:8000", "HYPERFLEET_TOKEN": SECRET}
    now = datetime(2025, 10, 17, tzinfo=UTC)
    return run(arguments, CliSession(environment, lambda: now, httpx.MockTransport(handle)))


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        (problem(401, "Unauthenticated"), exits.DENIED, "No: because (Unauthenticated)"),
        (problem(401, "InvalidToken"), exits.DENIED, "InvalidToken"),
        (problem(403, "Forbidden"), exits.DENIED, "Forbidden"),
        (problem(404, "NotFound"), exits.NOT_FOUND, "NotFound"),
        (problem(409, "Conflict"), exits.REFUSED, "Conflict"),
        (problem(410, "Forgotten"), exits.NOT_FOUND, "Forgotten"),
        (problem(412, "PreconditionFailed"), exits.REFUSED, "PreconditionFailed"),
        (problem(422, "InvalidSpec"), exits.REFUSED, "InvalidSpec"),
        (problem(400, "InvalidQuery"), exits.USAGE, "InvalidQuery"),
        (problem(418, "Teapot"), exits.REFUSED, "Teapot"),
        (problem(500, "InternalError"), exits.UNAVAILABLE, "req-1"),
        (httpx.Response(200, text="<html>hello</html>", headers={"content-type": "text/html"}), 69, "text/html"),
        (httpx.Response(302, headers={"location": "https://login.example.com"}), 69, "login.example.com"),
        (httpx.Response(200, json={"items": [{"id": 7}]}), 69, "not a Cluster"),
        (httpx.ConnectError("[Errno 111] Connection refused"), 69, "cannot connect to http://127.0.0.1:8000"),
        (httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed"), 69, "CERTIFICATE_VERIFY_FAILED"),
        (httpx.ReadTimeout("timed out"), 69, "127.0.0.1:8000"),
    ],
)
def test_errors_of_the_server_are_reported(
    answer: Any, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_before(answer, "get", "clusters") == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Error: ")
    assert said in err
    assert "Traceback" not in err
    assert SECRET not in err


def test_an_internal_error_is_reported_and_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    mistake = ZeroDivisionError("division by zero")
    assert run_before(mistake, "get", "clusters") == exits.INTERNAL
    err = capsys.readouterr().err
    assert "Error: internal error: ZeroDivisionError: division by zero" in err
    assert "Traceback" not in err
    assert run_before(mistake, "get", "clusters", "--debug") == exits.INTERNAL
    assert "Traceback" in capsys.readouterr().err


def test_interruption(capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(_: httpx.Request) -> httpx.Response:
        raise KeyboardInterrupt

    assert run_before(interrupt, "get", "clusters") == exits.INTERRUPTED
    assert capsys.readouterr().err.strip() == ""


def test_every_error_of_the_client_has_a_code_that_was_chosen() -> None:
    known = {name for name, each in vars(client_errors).items() if isinstance(each, type) and name != "HyperFleetError"}
    assert set(failures._OF_CLIENT) <= known, "no name of the table is misspelt"


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = run([name, "--help"], CliSession({}))
    out = capsys.readouterr().out
    assert code == 0
    assert out.startswith(f"Usage: hyperfleet {name}")


@pytest.mark.parametrize(
    "code", sorted(value for name, value in vars(exits).items() if name.isupper() and isinstance(value, int))
)
def test_every_exit_code_is_documented(code: int) -> None:
    assert exits.MEANINGS[code]


def test_global_options_may_come_before_and_after_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    answer = httpx.Response(200, json={"items": []})
    assert run_before(answer, "--request-timeout", "5s", "get", "clusters", "--debug") == 0
    assert "No clusters found." in capsys.readouterr().err


def test_importing_the_command_line_is_cheap() -> None:
    script = (
        "import sys; from hyperfleet.cli import run; from hyperfleet.cli.session import CliSession\n"
        "run(['--help'], CliSession({}))\n"
        "print([name for name in ('msgspec', 'httpx', 'rich', 'ruamel.yaml', 'asyncio', 'hyperfleet.client') "
        "if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stderr == "[]\n"


def test_a_get_imports_neither_yaml_nor_rich() -> None:
    script = (
        "import sys, httpx; from hyperfleet.cli import run; from hyperfleet.cli.session import CliSession\n"
        "answer = httpx.MockTransport(lambda _: httpx.Response(200, json={'items': []}))\n"
        "before = set(sys.modules)\n"
        "run(['get', 'clusters'], CliSession({'HYPERFLEET_SERVER': 'http://127.0.0.1:1'}, transport=answer))\n"
        "print([name for name in ('rich', 'ruamel.yaml', 'jsonschema', 'starlette') "
        "if name in set(sys.modules) - before], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stderr.splitlines()[-1] == "[]"


def test_a_failure_of_click_is_shown_as_click_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["get", "--no-such-option"], CliSession({})) == exits.USAGE
    assert "No such option" in capsys.readouterr().err
    assert issubclass(click.UsageError, click.ClickException)
