"""Read the body of a report: from decoded JSON to a `Report`, or to all its errors with their places.

Called for every incoming report. Keys are camelCase or snake_case, not both in one body; only our own keys count, so
nothing inside `data` and `metadata` is examined or rewritten.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import Struct, ValidationError, convert

from hyperfleet.model.condition import (
    MAX_MESSAGE,
    MAX_REASON,
    MAX_TYPE,
    REASON_PATTERN,
    STATUSES,
    TYPE_PATTERN,
    Condition,
)
from hyperfleet.model.json_value import name_type
from hyperfleet.model.report import ADAPTER_PATTERN, MAX_ADAPTER_NAME, REQUIRED_CONDITIONS, Report

MAX_CONDITIONS: Final = 100  # a list that people read; Kubernetes allows 32 on a Cluster
MAX_GENERATION: Final = 2**63 - 1

# The guide's examples send times that only the server may set; the contract has other names for them.
_IGNORED_REPORT_KEYS: Final = frozenset({"lastUpdated", "lastReportTime", "createdTime"})
_REPORT_KEYS: Final = frozenset({"adapter", "observedGeneration", "observedTime", "conditions", "data", "metadata"})
_IGNORED_CONDITION_KEYS: Final = frozenset(
    {"lastTransitionTime", "lastUpdatedTime", "createdTime", "observedGeneration"}
)
_CONDITION_KEYS: Final = frozenset({"type", "status", "reason", "message"})

_NEGATIVE_SOUNDING: Final = re.compile(
    r"(^|[a-z])Not[A-Z]|(Failed|Failing|Failure|Failures|Error|Errors|Unhealthy|Unavailable|Degraded|Missing|Stale)$"
)


class BodyProblem(Struct, frozen=True):
    """An error in a body, or a note on something legal but likely unintended, at a JSON pointer."""

    pointer: str
    code: str
    message: str


class ReadReport(Struct, frozen=True):
    """The result of reading a body: a report or errors; notes either way."""

    report: Report | None
    errors: tuple[BodyProblem, ...] = ()
    notes: tuple[BodyProblem, ...] = ()


def read_report(body: object, pointer: str = "") -> ReadReport:
    """Read one adapter's report; `pointer` is its place in a larger body."""
    reader = _Reader()
    unstorable = _find_unstorable(body, pointer)
    if unstorable is not None:
        return ReadReport(None, (unstorable,))
    report = reader.report(body, pointer)
    errors = tuple(reader.errors)
    return ReadReport(None if errors else report, errors, tuple(reader.notes))


def _find_unstorable(body: object, pointer: str) -> BodyProblem | None:
    """Find what JSON allows and no database can store: half a surrogate pair, NUL, or excessive nesting."""
    try:
        encoded = msgspec.json.encode(body)
    except UnicodeEncodeError:
        encoded = b"\\u0000"
    except RecursionError:
        return BodyProblem(pointer, "TooDeep", "the body is nested too deeply")
    if b"\\u0000" not in encoded:
        return None
    found = _pointer_to_unstorable(body, pointer)
    message = "NUL (\\u0000) and half a surrogate pair (\\ud800 to \\udfff) are not text"
    return None if found is None else BodyProblem(found, "BadFormat", message)


def _pointer_to_unstorable(value: object, pointer: str) -> str | None:
    """Return the pointer to the first text that cannot be stored; for a key, that of its object."""
    if isinstance(value, str):
        return pointer if _UNSTORABLE.search(value) else None
    children: Iterable[tuple[object, object]] = ()
    if isinstance(value, dict):
        children = value.items()
    elif isinstance(value, list):
        children = enumerate(value)
    for key, child in children:
        if isinstance(key, str) and _UNSTORABLE.search(key):
            return pointer
        found = _pointer_to_unstorable(child, f"{pointer}/{_escape(str(key))}")
        if found is not None:
            return found
    return None


_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")


@lru_cache(maxsize=4096)  # a fleet has few types
def is_usual_type(type_: str) -> bool:
    """Tell whether a condition type is well-formed and needs no note."""
    return (
        len(type_) <= MAX_TYPE
        and TYPE_PATTERN.fullmatch(type_) is not None
        and _NEGATIVE_SOUNDING.search(type_) is None
    )


class _Reader:
    """Walks one body and collects its errors."""

    def __init__(self) -> None:
        self.errors: list[BodyProblem] = []
        self.notes: list[BodyProblem] = []
        self._spellings: dict[str, tuple[str, str]] = {}  # spelling → (where it was first seen, the key)

    def report(self, body: object, at: str) -> Report | None:
        """Read the report itself, continuing after every error."""
        fields = self._own_fields(body, at, _REPORT_KEYS | _IGNORED_REPORT_KEYS, "a report")
        if fields is None:
            return None
        adapter = self._adapter(fields, at)
        generation = self._generation(fields, at)
        observed = self._time(fields, at)
        conditions = self._conditions(fields, at, generation)
        data = self._object(fields, at, "data")
        metadata = self._object(fields, at, "metadata")
        return Report(adapter, generation, conditions, observed, data, metadata)

    def _conditions(self, fields: _Fields, at: str, generation: int) -> tuple[Condition, ...]:
        value, at = fields.get("conditions", at)
        if value is None:
            self._error(at, "MissingField", "conditions is required: Available, Applied and Health at least")
            return ()
        if not isinstance(value, list):
            self._error(at, "WrongType", f"conditions must be a list, not {name_type(value)}")
            return ()
        if len(value) > MAX_CONDITIONS:
            self._error(at, "TooMany", f"{len(value)} conditions; at most {MAX_CONDITIONS} are allowed")
            return ()
        read = [self._condition(item, f"{at}/{index}", generation) for index, item in enumerate(value)]
        self._check_set(read, at)
        return tuple(condition for condition in read if condition is not None)

    def _check_set(self, conditions: list[Condition | None], at: str) -> None:
        """Report duplicate types and missing required types."""
        seen: dict[str, int] = {}
        for index, condition in enumerate(conditions):
            if condition is None or not condition.type:
                continue
            if condition.type in seen:
                first = f"{at}/{seen[condition.type]}"
                self._error(f"{at}/{index}/type", "DuplicateType", f"{condition.type} is already given at {first}")
            seen.setdefault(condition.type, index)
        for required in REQUIRED_CONDITIONS:
            if required not in seen:
                self._error(at, "MissingCondition", f"the condition {required} is required in every report")

    def _condition(self, item: object, at: str, generation: int) -> Condition | None:
        fields = self._own_fields(item, at, _CONDITION_KEYS | _IGNORED_CONDITION_KEYS, "a condition")
        if fields is None:
            return None
        type_ = self._condition_type(fields, at)
        status = self._required_string(fields, at, "status")
        if status and status not in STATUSES:
            self._error(f"{at}/status", "NotAllowed", f"status must be True, False or Unknown, not {_quote(status)}")
        reason = self._string(fields, at, "reason", MAX_REASON)
        if reason and not REASON_PATTERN.fullmatch(reason):
            self._error(
                f"{at}/reason",
                "BadFormat",
                f"reason {_quote(reason)} must start with a letter, go on with letters, digits or _,: and end with "
                "a letter, a digit or _",
            )
        message = self._string(fields, at, "message", MAX_MESSAGE)
        return Condition(type_, status, reason, message, generation)  # type: ignore[arg-type]  # checked above

    def _condition_type(self, fields: _Fields, at: str) -> str:
        type_ = self._required_string(fields, at, "type")
        if len(type_) > MAX_TYPE:
            self._error(f"{at}/type", "TooLong", f"type has {len(type_)} characters; at most {MAX_TYPE} are allowed")
        elif type_ and not TYPE_PATTERN.fullmatch(type_):
            self._error(
                f"{at}/type",
                "BadFormat",
                f"type {_quote(type_)} must be a name of letters, digits and -_. with an optional DNS prefix and /",
            )
        elif _NEGATIVE_SOUNDING.search(type_):
            self._note(
                f"{at}/type",
                "NegativeType",
                f"{type_} sounds negative; a type that is good when True is easier to read",
            )
        return type_

    def _adapter(self, fields: _Fields, at: str) -> str:
        adapter = self._required_string(fields, at, "adapter")
        if len(adapter) > MAX_ADAPTER_NAME:
            message = f"adapter has {len(adapter)} characters; at most {MAX_ADAPTER_NAME} are allowed"
            self._error(f"{at}/adapter", "TooLong", message)
        elif adapter and not ADAPTER_PATTERN.fullmatch(adapter):
            message = f"adapter {_quote(adapter)} must be a name of letters, digits and -_."
            self._error(f"{at}/adapter", "BadFormat", message)
        return adapter

    def _generation(self, fields: _Fields, at: str) -> int:
        value, at = fields.get("observedGeneration", at)
        key = fields.spell("observedGeneration")
        if value is None:
            self._error(at, "MissingField", f"{key} is required")
        elif isinstance(value, bool) or not (isinstance(value, int) or _is_integral(value)):
            self._error(at, "WrongType", f"{key} must be an integer, not {name_type(value)}")
        elif not 1 <= value <= MAX_GENERATION:
            limit = "at least 1" if value < 1 else f"at most {MAX_GENERATION}"
            self._error(at, "OutOfRange", f"{key} must be {limit}, not {value}")
        else:
            return int(value)
        return 0

    def _time(self, fields: _Fields, at: str) -> datetime | None:
        value, at = fields.get("observedTime", at)
        if value is None:
            return None
        if isinstance(value, str):
            try:
                time = convert(value, datetime)
                if time.tzinfo is not None:
                    return time.astimezone(UTC)
            except (ValidationError, OverflowError):  # OverflowError: the zone moves it out of the range of years
                pass
        rule = "an RFC 3339 time with a zone such as 2025-10-17T12:00:05Z"
        self._error(at, "BadFormat", f"{fields.spell('observedTime')} must be {rule}, not {_quote(value)}")
        return None

    def _object(self, fields: _Fields, at: str, key: str) -> Mapping[str, Any]:
        value, at = fields.get(key, at)
        if value is None:
            return {}
        if not isinstance(value, dict):
            self._error(at, "WrongType", f"{key} must be an object, not {name_type(value)}")
            return {}
        return value

    def _required_string(self, fields: _Fields, at: str, key: str) -> str:
        value, at = fields.get(key, at)
        if value is None or value == "":
            self._error(at, "MissingField", f"{key} is required")
            return ""
        return self._as_string(value, at, key)

    def _string(self, fields: _Fields, at: str, key: str, most: int) -> str:
        value, at = fields.get(key, at)
        text = "" if value is None else self._as_string(value, at, key)
        if len(text) > most:
            self._error(at, "TooLong", f"{key} has {len(text)} characters; at most {most} are allowed")
            return ""
        return text

    def _as_string(self, value: object, at: str, key: str) -> str:
        if isinstance(value, str):
            return value
        self._error(at, "WrongType", f"{key} must be a string, not {name_type(value)}")
        return ""

    def _own_fields(self, value: object, at: str, known: frozenset[str], what: str) -> _Fields | None:
        """Return the fields of an object by their camelCase names."""
        if not isinstance(value, dict):
            self._error(at, "WrongType", f"{what} must be an object, not {name_type(value)}")
            return None
        fields = _Fields()
        for key, item in value.items():
            name = _camel(str(key))
            if name not in known:
                self._note(f"{at}/{_escape(key)}", "UnknownField", f"{_quote(key)} is not a field of {what}; ignored")
                continue
            if name in fields.keys:
                self._error(f"{at}/{key}", "DuplicateField", f"{key} and {fields.keys[name]} are the same field")
            self._note_spelling(key, name, at)
            fields.keys[name] = key
            fields.values[name] = item
        return fields

    def _note_spelling(self, key: str, name: str, at: str) -> None:
        if name == name.lower():
            return  # a single word is the same in both spellings
        spelling = "camelCase" if key == name else "snake_case"
        self._spellings.setdefault(spelling, (at, key))
        if len(self._spellings) == 2:
            other = "snake_case" if spelling == "camelCase" else "camelCase"
            where, first = self._spellings[other]
            self._error(
                f"{at}/{key}",
                "MixedSpelling",
                f"{key} is {spelling} but {first} at {where or 'the top'} is {other}; use one spelling in a body",
            )
            del self._spellings[spelling]  # so that each further mismatch is reported too

    def _error(self, at: str, code: str, message: str) -> None:
        self.errors.append(BodyProblem(at, code, message))

    def _note(self, at: str, code: str, message: str) -> None:
        self.notes.append(BodyProblem(at, code, message))


class _Fields:
    """The fields of one object by their camelCase names, and the key that was used for each."""

    def __init__(self) -> None:
        self.values: dict[str, object] = {}
        self.keys: dict[str, str] = {}

    def get(self, name: str, at: str) -> tuple[Any, str]:
        """Return a field's value and pointer; None when it is absent or null."""
        return self.values.get(name), f"{at}/{self.spell(name)}"

    def spell(self, name: str) -> str:
        """Return the key of a field as used, or in the spelling of the other keys."""
        is_snake = any("_" in key for key in self.keys.values())
        return self.keys.get(name) or (_HUMP.sub(lambda hump: f"_{hump[0].lower()}", name) if is_snake else name)


def _is_integral(value: object) -> bool:
    """Tell whether a number has no fraction: 1.0 is an integer to JSON Schema and to many programs."""
    return isinstance(value, float) and value.is_integer()


def _camel(key: str) -> str:
    """Convert a snake_case key to camelCase; anything else is returned as it is."""
    if not _SNAKE_CASE.fullmatch(key):
        return key
    first, *rest = key.split("_")
    return first + "".join(word.capitalize() for word in rest)


_HUMP: Final = re.compile("[A-Z]")
_SNAKE_CASE: Final = re.compile(r"[a-z]+(_[a-z]+)+")


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _quote(value: object) -> str:
    text = value if isinstance(value, str) else str(value)
    return f'"{text[:60]}…"' if len(text) > 60 else f'"{text}"'
