"""The log: lines on stderr, as text for people or as JSON for machines. `serving` sets it up, everybody uses `logging`.

Whatever is said comes in the same form, be it an uncaught error, a warning of Python or a library's. No password of a
URL and no token is ever in it, wherever it came from. Structured details go along as `extra={"fields": {…}}`.
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

from hyperfleet.api.envelope import REQUEST
from hyperfleet.api.exchanges import caller_name
from hyperfleet.services.tracing import HERE
from hyperfleet.settings import conceal

Form = Literal["text", "json"]

_LOG: Final = logging.getLogger(__name__)
_TEXT: Final = "%(asctime)s %(levelname)s %(process)d %(name)s: %(message)s"
# Libraries that tell every request they send, addresses and all.
_TALKATIVE: Final = ("httpx", "httpcore", "urllib3", "asyncio")
_TOKEN: Final = re.compile(
    r"(\bbearer\s+|\bauthorization\b\W{1,5}(?:\w+\s+)?)[\w.~+/=-]{16,}"  # as it stands in a header
    r"|()\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*",  # a JWT, wherever it stands
    re.IGNORECASE,
)
# Without one of these there is no secret that we would find; to look closer takes twenty times as long.
_SIGNS: Final = ("://", "password=", "bearer", "authorization", "eyj")


def configure(level: str, form: Form) -> None:
    """Send everything that is worth `level` to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter(_TEXT))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.captureWarnings(True)
    sys.excepthook = _tell_uncaught
    threading.excepthook = lambda told: _tell_uncaught(told.exc_type, told.exc_value, told.exc_traceback)
    sys.unraisablehook = lambda told: _tell_uncaught(told.exc_type, told.exc_value, told.exc_traceback)


class TextFormatter(logging.Formatter):
    """Writes a line for people; an error takes as many as it needs."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record without its secrets."""
        return clean(super().format(record))


class JsonFormatter(logging.Formatter):
    """Writes one JSON object on one line, whatever is in it."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record without its secrets."""
        told: dict[str, Any] = {
            "time": _write_time(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": clean(record.getMessage()),
            "process": record.process,
            **_where(),
            **{name: _clean_value(value) for name, value in _fields_of(record).items()},
        }
        if record.exc_info and record.exc_info[0] is not None:
            told["exception"] = _describe_error(*record.exc_info)
        return msgspec.json.encode(told, enc_hook=str).decode()


def clean(text: str) -> str:
    """Put *** for every password of a URL and every token, and make a text of what is none."""
    lowered = text.lower()
    if any(sign in lowered for sign in _SIGNS):
        text = _TOKEN.sub(lambda match: f"{match[1] or ''}***", conceal(text))
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _where() -> dict[str, str]:
    """Tell of which request and trace the task is that runs now, as far as it is of any."""
    scope, here = REQUEST.get(), HERE.get()
    told = {
        "request_id": scope["state"]["request_id"] if scope is not None else "",
        "caller": clean(caller_name(scope)) if scope is not None else "",
        "trace_id": here.trace_id if here is not None else "",
        "span_id": here.span_id if here is not None else "",
    }
    return {name: value for name, value in told.items() if value}


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
    """Write a time as RFC 3339 has it, in UTC, with milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _tell_uncaught(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
    """Tell of an error that nobody expected; Ctrl-C is none."""
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error or kind(), trace)
        return
    _LOG.critical("an error that nobody caught", exc_info=(kind, error or kind(), trace))
