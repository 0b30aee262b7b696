"""When a value of ours is the one that was recorded, tagged with its Go type."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from hyperfleet.expr.runtime.budget import open_budget
from hyperfleet.expr.runtime.text import show
from hyperfleet.expr.runtime.values import Function, NilMap, NilSlice, type_name
from hyperfleet.expr.temporal.durations import Duration
from hyperfleet.expr.temporal.times import Month, Time, Weekday
from hyperfleet.expr.temporal.zones import Zone
from tests.conformance.expr_worlds import decode


def same(tagged: Any, found: Any) -> bool:
    """Tell whether a value is the one that a tag says. Sizes of numbers are not ours to tell apart."""
    if isinstance(tagged, str):
        return isinstance(found, str) and found.translate(_NO_TEXT) == tagged
    if tagged is None or isinstance(tagged, bool):
        return found is tagged
    comparer = _COMPARERS.get(tagged["k"])
    if comparer is not None:
        return comparer(tagged, found)
    if tagged["k"].startswith("float"):
        return type(found) is float and _same_float(float(tagged["v"]), found)
    return type(found) is int and found == int(tagged["v"])


# Bytes that are no text were recorded as replacement characters.
_NO_TEXT = dict.fromkeys(range(56448, 56576), "�")


def _same_float(wanted: float, found: float) -> bool:
    return wanted == found or (wanted != wanted and found != found)  # noqa: PLR0124 - NaN


def _same_list(tagged: Any, found: Any) -> bool:
    if not isinstance(found, (list, bytes)) or len(found) != len(tagged["v"]):
        return False
    return all(same(wanted, item) for wanted, item in zip(tagged["v"], found, strict=True))


def _same_map(tagged: Any, found: Any) -> bool:
    if not isinstance(found, dict) or len(found) != len(tagged["v"]):
        return False
    left = list(found.items())
    for key, value in tagged["v"]:
        place = next((i for i, (k, v) in enumerate(left) if same(key, k) and same(value, v)), None)
        if place is None:
            return False
        del left[place]
    return True


def _same_struct(tagged: Any, found: Any) -> bool:
    if not isinstance(found, dict) or found.keys() != tagged["v"].keys():
        return False
    return all(same(value, found[name]) for name, value in tagged["v"].items())


def _same_time(tagged: Any, found: Any) -> bool:
    """Compare the instant and, where it was recorded, the name of the zone."""
    if not isinstance(found, Time) or found != decode(tagged):
        return False
    return bool(found.zone.name == tagged.get("z", found.zone.name))


def _as_bytes(found: Any) -> bytes | None:
    """Return the bytes of a string that is no text; Python keeps them as surrogates."""
    return found.encode(errors="surrogateescape") if isinstance(found, str) else None


_COMPARERS: dict[str, Callable[[Any, Any], bool]] = {
    "list": _same_list,
    "map": _same_map,
    "struct": _same_struct,
    "nilslice": lambda _, found: isinstance(found, NilSlice),
    "func": lambda _, found: isinstance(found, Function),
    "time": _same_time,
    "nilmap": lambda _, found: isinstance(found, NilMap),
    "zone": lambda tagged, found: isinstance(found, Zone) and found.name == tagged["v"],
    "time.Month": lambda tagged, found: isinstance(found, Month) and int(found) == tagged["v"],
    "time.Weekday": lambda tagged, found: isinstance(found, Weekday) and int(found) == tagged["v"],
    "bytes": lambda tagged, found: _as_bytes(found) == base64.b64decode(tagged["v"]),
    "duration": lambda tagged, found: isinstance(found, Duration) and int(found) == int(tagged["v"]),
}


def describe(value: Any) -> str:
    """Return a value for people."""
    return f"{type_name(value)} {show(value, open_budget())}"
