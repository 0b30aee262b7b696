"""Functions that expressions may call: those of the Go adapter, and of cel-go's list extension.

`sortBy` is missing: it is a macro, and the engine takes functions only. An argument arrives as a plain Python value. A
function that raises makes the expression fail with that text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
from msgspec import Struct

from hyperfleet.cel.program import CURRENT_SCOPE
from hyperfleet.cel.values import MAX_DEPTH
from hyperfleet.documents.durations import format_duration

MAX_ITEMS: Final = 10_000  # of a list that a function makes; the engine allows as many iterations

_to_json: Final = msgspec.json.Encoder(order="sorted").encode


class CelFunction(Struct, frozen=True):
    """A function, or one overload of it. The types are those of `CelType`; `any` is one overload for each type."""

    name: str
    parameters: tuple[str, ...]
    result: str
    implementation: Callable[..., Any]
    is_member: bool = False  # called as `first.name(others)`


# ── of the Go adapter ────────────────────────────────────────────────────────────────────────────────────────────────


def _now() -> datetime:
    now = CURRENT_SCOPE.get().now
    if now is None:
        raise ValueError("there is no current time here")
    return now


def _now_text() -> str:
    return _now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _json_text(value: object) -> str:
    return _to_json(_json_value(value)).decode()


def _json_value(value: Any) -> Any:
    """Return a value as cel-go writes it in JSON: keys are texts, times and durations too."""
    if isinstance(value, dict):
        return {_key_text(key): _json_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_json_value(item) for item in value]
    if isinstance(value, timedelta):
        return format_duration(value)
    return bytes(value) if isinstance(value, bytearray) else value


def _key_text(key: object) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _dig(value: Any, path: str) -> Any:
    """Return what is at a path such as `a.b.0.c`; null where there is nothing."""
    for step in path.split("."):
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isascii() and step.isdigit() and int(step[:9]) < len(value):
            value = value[int(step[:9])]
        else:
            return None
    return value


def _find_condition(conditions: list[Any], type_: str) -> dict[str, Any] | None:
    return next((each for each in conditions if isinstance(each, dict) and each.get("type") == type_), None)


def _condition_status(conditions: list[Any], type_: str) -> str:
    found = _find_condition(conditions, type_)
    return str(found.get("status", "Unknown")) if found else "Unknown"


def _condition_age(conditions: list[Any], type_: str) -> int:
    """Return the whole seconds since a condition moved; -1 if it is absent or has no time."""
    found = _find_condition(conditions, type_) or {}
    # Kubernetes objects spell it the second way; the Go adapter knows the first one only.
    text = found.get("last_transition_time") or found.get("lastTransitionTime")
    try:
        moved = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        moved = None
    if moved is None:
        return -1
    return int((_now() - (moved if moved.tzinfo else moved.replace(tzinfo=UTC))).total_seconds())


def _stable_for(conditions: list[Any], type_: str, seconds: int) -> bool:
    return _condition_status(conditions, type_) == "True" and _condition_age(conditions, type_) >= seconds


def _feedback_value(feedback: dict[str, Any], name: str) -> str:
    values = feedback.get("values")
    for each in values if isinstance(values, list) else ():
        if isinstance(each, dict) and each.get("name") == name:
            field = each.get("fieldValue")
            return str(field.get("string", "")) if isinstance(field, dict) else ""
    return ""


def _tri_state(is_true: bool, is_false: bool) -> str:
    return "True" if is_true else "False" if is_false else "Unknown"


HELPERS: Final[tuple[CelFunction, ...]] = (
    CelFunction("now", (), "string", _now_text),
    CelFunction("toJson", ("any",), "string", _json_text),
    CelFunction("dig", ("any", "string"), "any", _dig),
    CelFunction("conditionStatus", ("list", "string"), "string", _condition_status),
    CelFunction("conditionAge", ("list", "string"), "int", _condition_age),
    CelFunction("stableFor", ("list", "string", "int"), "bool", _stable_for),
    CelFunction("statusFeedbackValue", ("map", "string"), "string", _feedback_value),
    CelFunction("triState", ("bool", "bool"), "string", _tri_state),
)


# ── lists ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _range(count: int) -> list[int]:
    if count > MAX_ITEMS:
        raise ValueError(f"lists.range makes at most {MAX_ITEMS} items")
    return list(range(max(0, count)))


def _distinct(items: list[Any]) -> list[Any]:
    return list({_identity(item): item for item in reversed(items)}.values())[::-1]


def _identity(value: Any) -> Any:
    """Return a key that is equal for equal values of CEL: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, bool):
        return "bool", value
    if isinstance(value, list):
        return "list", tuple([_identity(item) for item in value])
    if isinstance(value, dict):
        return "map", frozenset([(_identity(key), _identity(item)) for key, item in value.items()])
    return bytes(value) if isinstance(value, bytearray) else value


def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    if not 0 <= start <= end <= len(items):
        raise ValueError(f"slice({start}, {end}) of a list of {len(items)}")
    return items[start:end]


def _sort(items: list[Any]) -> list[Any]:
    kinds = {_order_kind(item) for item in items}
    if len(kinds) > 1 or None in kinds:
        raise ValueError("sort() needs items of one type that has an order")
    return sorted(items)


def _order_kind(value: Any) -> str | None:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    return "string" if isinstance(value, str) else None


def _flatten(items: list[Any]) -> list[Any]:
    return _flatten_to(items, 1)


def _flatten_to(items: list[Any], depth: int) -> list[Any]:
    flat: list[Any] = []
    for item in _leaves(items, min(depth, MAX_DEPTH)):
        flat.append(item)
        if len(flat) > MAX_ITEMS:
            raise ValueError(f"flatten() makes at most {MAX_ITEMS} items")
    return flat


def _leaves(items: list[Any], depth: int) -> Iterator[Any]:
    for item in items:
        if isinstance(item, list) and depth > 0:
            yield from _leaves(item, depth - 1)
        else:
            yield item


LISTS: Final[tuple[CelFunction, ...]] = (
    CelFunction("lists.range", ("int",), "list", _range),
    CelFunction("distinct", ("list",), "list", _distinct, is_member=True),
    CelFunction("slice", ("list", "int", "int"), "list", _slice, is_member=True),
    CelFunction("sort", ("list",), "list", _sort, is_member=True),
    CelFunction("flatten", ("list",), "list", _flatten, is_member=True),
    CelFunction("flatten", ("list", "int"), "list", _flatten_to, is_member=True),
)
