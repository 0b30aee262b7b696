"""The form of the log: what a line has, that it is one, and what is never in it."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from typing import Any

import pytest

from hyperfleet.api.boundary import REQUEST
from hyperfleet.api.callers import CALLER
from hyperfleet.logs import JsonFormatter, TextFormatter, clean
from hyperfleet.services.callers import Caller
from hyperfleet.services.tracing import CURRENT_SPAN, TracePoint

URL = "postgresql://fleet:{}@db.example.com/fleet"
SECRET = "s3cret-of-the-sea"  # noqa: S105  # opens nothing
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJlLW9mLXRoZS10b2tlbg"


def write(message: str, *arguments: object, error: Exception | None = None, **extra: Any) -> dict[str, Any]:
    """Write a record as JSON, which must be one line, and read it again."""
    line = JsonFormatter().format(record_of(message, *arguments, error=error, **extra))
    assert "\n" not in line
    read: dict[str, Any] = json.loads(line)
    return read


def record_of(message: str, *arguments: object, error: Exception | None = None, **extra: Any) -> logging.LogRecord:
    """Make a record, at a moment that is known."""
    told = (type(error), error, error.__traceback__) if error is not None else None
    record = logging.LogRecord("hyperfleet.api", logging.WARNING, __file__, 1, message, arguments, told)
    record.created, record.process = 1_760_702_400.25, 7
    record.__dict__.update(extra)
    return record


def failure(message: str) -> Exception:
    """Return an error that was raised, so that it has a stack."""
    try:
        raise ValueError(message)
    except ValueError as error:
        return error


def test_a_line_has_what_machines_look_for() -> None:
    assert write("the %s is out", "cat") == {
        "time": "2025-10-17T12:00:00.250Z",
        "level": "warning",
        "logger": "hyperfleet.api",
        "message": "the cat is out",
        "process": 7,
    }


def test_a_line_says_to_which_request_and_trace_it_belongs() -> None:
    scope = {"state": {"request_id": "mine"}, CALLER: Caller("dns")}
    request, here = REQUEST.set(scope), CURRENT_SPAN.set(TracePoint("a" * 32, "b" * 16, is_recorded=True))
    try:
        line = write("x")
    finally:
        REQUEST.reset(request)
        CURRENT_SPAN.reset(here)
    told = {name: line[name] for name in ("request_id", "caller", "trace_id", "span_id")}
    assert told == {"request_id": "mine", "caller": "dns", "trace_id": "a" * 32, "span_id": "b" * 16}


def test_an_error_is_told_with_its_stack_on_the_same_line() -> None:
    exception = write("failed", error=failure("first\nsecond"))["exception"]
    assert (exception["type"], exception["message"]) == ("ValueError", "first\nsecond")
    assert exception["stack"].startswith("Traceback (most recent call last):\n")
    assert "in failure" in exception["stack"]


def test_details_go_along() -> None:
    line = write("x", fields={"status": 200, "url": URL.format(SECRET), "set": {1}})
    assert (line["status"], line["url"], line["set"]) == (200, URL.format("***"), [1])


def test_what_is_no_text_is_told_all_the_same() -> None:
    assert write("\udcff and \x00")["message"] == "\\udcff and \x00"


@pytest.mark.parametrize(
    "text",
    [
        URL.format(SECRET),
        f"no connection to {URL.format(SECRET)}\nnor to {URL.format(SECRET)}",
        f"Authorization: Bearer {SECRET}",
        f"(b'authorization', b'Bearer {SECRET}')",
        f"authorization: Basic {SECRET}",
        f"{{'Authorization': '{SECRET}'}}",
        f"the token {JWT} is not accepted",
    ],
)
def test_secrets_are_nowhere(text: str) -> None:
    record = record_of("%s", text, error=failure(text))
    for form in (JsonFormatter(), TextFormatter("%(message)s")):
        written = form.format(record)
        assert "***" in written
        assert SECRET not in written
        assert JWT.rpartition(".")[2] not in written


@pytest.mark.parametrize(
    "text",
    [
        "Listening on http://127.0.0.1:8000",
        "send a token: `Authorization: Bearer …`",
        "the bearer is unknown",
        "2 workers need PostgreSQL; sqlite: allows only one",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert clean(text) == text


_PROGRAM = """
import asyncio, gc, threading, warnings
from hyperfleet import logs

logs.configure("info", "json")
warnings.warn("old ways")

async def fail():
    raise ValueError("in a task")

async def main():
    task = asyncio.create_task(fail())
    await asyncio.sleep(0)
    del task
    gc.collect()

asyncio.run(main())
thread = threading.Thread(target=lambda: 1 / 0)
thread.start()
thread.join()

class Sticky:
    def __del__(self):
        raise ValueError("at the end")

Sticky()
raise LookupError("nobody caught me")
"""


def test_whatever_a_process_says_has_the_same_form() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=False)  # noqa: S603  # our own
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert "old ways" in lines[0]["message"]
    told = [(line["level"], line["exception"]["message"]) for line in lines[1:]]
    assert told == [
        ("error", "in a task"),
        ("critical", "division by zero"),
        ("critical", "at the end"),
        ("critical", "nobody caught me"),
    ]
    assert done.returncode == 1
