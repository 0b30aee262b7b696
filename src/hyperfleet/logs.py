"""The log: lines on stderr, as text for people or as JSON for machines. `serving` configures it; all use `logging`.

Uncaught errors, warnings of Python and messages of libraries have the same format. Passwords in URLs and tokens are
redacted everywhere. Structured details are passed as `extra={"fields": {…}}`.
"""

from __future__ import annotations

import logging
import re
import sys
import threading
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, Literal

import msgspec

from hyperfleet.api.boundary import REQUEST
from hyperfleet.api.exchanges import caller_name
from hyperfleet.services.tracing import CURRENT_SPAN
from hyperfleet.settings import conceal

Form = Literal["text", "json"]

_LOG: Final = logging.getLogger(__name__)
_TEXT: Final = "%(asctime)s %(levelname)s %(process)d %(name)s: %(message)s"
# Libraries that log every request they send, with its address.
_VERBOSE_LIBRARIES: Final = ("httpx", "httpcore", "urllib3", "asyncio")
_TOKEN: Final = re.compile(
    r"(\bbearer\s+|\bauthorization\b\W{1,5}(?:\w+\s+)?)[\w.~+/=-]{16,}"  # as in a header
    r"|()\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*",  # a JWT anywhere
    re.IGNORECASE,
)
# A text without any of these contains no secret; the full search takes twenty times as long.
_HINTS: Final = ("://", "password=", "bearer", "authorization", "eyj")


def configure(level: str, form: Form) -> None:
    """Log everything from `level` up to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter(_TEXT))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in _VERBOSE_LIBRARIES:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.captureWarnings(True)
    sys.excepthook = _log_uncaught
    threading.excepthook = lambda values: _log_uncaught(values.exc_type, values.exc_value, values.exc_traceback)
    sys.unraisablehook = lambda values: _log_uncaught(values.exc_type, values.exc_value, values.exc_traceback)


class TextFormatter(logging.Formatter):
    """Formats a record as a line for people, followed by its traceback if it has one."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record, with secrets redacted."""
        return clean(super().format(record))


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record, with secrets redacted."""
        values: dict[str, Any] = {
            "time": _write_time(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": clean(record.getMessage()),
            "process": record.process,
            **_context(),
            **{name: _clean_value(value) for name, value in _fields_of(record).items()},
        }
        if record.exc_info and record.exc_info[0] is not None:
            values["exception"] = _describe_error(*record.exc_info)
        return msgspec.json.encode(values, enc_hook=str).decode()


def clean(text: str) -> str:
    """Replace passwords in URLs and tokens by ***, and escape what is not valid UTF-8."""
    lowered = text.lower()
    if any(hint in lowered for hint in _HINTS):
        text = _TOKEN.sub(lambda match: f"{match[1] or ''}***", conceal(text))
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _context() -> dict[str, str]:
    """Return the request and the trace of the running task, if any."""
    scope, here = REQUEST.get(), CURRENT_SPAN.get()
    values = {
        "request_id": scope["state"]["request_id"] if scope is not None else "",
        "caller": clean(caller_name(scope)) if scope is not None else "",
        "trace_id": here.trace_id if here is not None else "",
        "span_id": here.span_id if here is not None else "",
    }
    return {name: value for name, value in values.items() if value}


def _fields_of(record: logging.LogRecord) -> Mapping[str, Any]:
    fields: Mapping[str, Any] = getattr(record, "fields", {})
    return fields


def _clean_value(value: Any) -> Any:
    return clean(value) if isinstance(value, str) else value


def _describe_error(
    kind: type[BaseException], error: BaseException | None, trace: TracebackType | None
) -> dict[str, str]:
    stack = "".join(traceback.format_exception(kind, error, trace))
    return {"type": kind.__qualname__, "message": clean(str(error)), "stack": clean(stack)}


def _write_time(seconds: float) -> str:
    """Format a time as in RFC 3339, in UTC, with milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _log_uncaught(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
    """Log an uncaught error, except Ctrl-C."""
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error or kind(), trace)
        return
    _LOG.critical("uncaught error", exc_info=(kind, error or kind(), trace))
