"""The little language of `--faults`: `dns=fail:0.1+slow:3x,*=lost:0.01,skew:dns=+90s`.

Nothing here raises: what is wrong with a text is returned, all of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Struct

from hyperfleet.documents.durations import parse_duration
from hyperfleet.documents.wording import quote, suggest
from hyperfleet.simulator.temper import ALL, CALM, EVERYDAY, Faults

_NONE: Final = "none"
_PLUS: Final = re.compile(r"\+(?=[a-z\s])")  # between faults; that of +90s is none


class Reading(Struct, frozen=True):
    """What a text means, and everything that is wrong with it."""

    faults: Faults
    problems: tuple[str, ...] = ()


class Fault(Struct, frozen=True):
    """One thing that can go wrong: its name, how its value is read, and what is meant when there is none."""

    name: str  # also of its field of a temper
    read: Callable[[str], Any]
    example: str
    meaning: str
    usual: Any = None  # None: a value must be given


def _read_probability(text: str) -> float:
    match = re.fullmatch(r"([0-9]*\.?[0-9]+)(%?)", text)
    value = float(match[1]) / (100 if match[2] else 1) if match else -1.0
    if not 0 <= value <= 1:
        raise ValueError(f"expected a probability such as 0.1 or 10%, found {quote(text)}")
    return value


def _read_factor(text: str) -> float:
    match = re.fullmatch(r"([0-9]*\.?[0-9]+)x?", text)
    if match is None or not 0.01 <= float(match[1]) <= 1000:
        raise ValueError(f"expected a factor from 0.01x to 1000x, found {quote(text)}")
    return float(match[1])


def _read_time(text: str) -> float:
    seconds = parse_duration(text).total_seconds()
    if seconds < 1:
        raise ValueError(f"expected at least 1s, found {quote(text)}")
    return seconds


def _read_skew(text: str) -> float:
    return parse_duration(text, allow_negative=True).total_seconds()


def _read_nothing(text: str) -> bool:
    raise ValueError(f"it takes no value, found {quote(text)}")


FAULTS: Final = (
    Fault("fail", _read_probability, "fail:0.1", "a run fails with this probability and is repeated", 0.1),
    Fault("slow", _read_factor, "slow:3x", "work takes so many times as long", 3.0),
    Fault("sick", _read_probability, "sick:5%", "each look finds it unhealthy with this probability", 0.05),
    Fault("flap", _read_time, "flap:90s", "it changes its mind so often", 90.0),
    Fault("silent", _read_time, "silent:10m", "now and then it is not heard of for so long", 900.0),
    Fault("skew", _read_skew, "skew:+90s", "its clock is so far ahead, or behind"),
    Fault("lost", _read_probability, "lost:0.05", "a report does not arrive", 0.05),
    Fault("twice", _read_probability, "twice:0.05", "a report arrives twice", 0.05),
    Fault("late", _read_probability, "late:0.05", "a report arrives after a later one", 0.05),
    Fault("stuck", _read_nothing, "stuck", "it never cleans up after a deletion", True),
    Fault("absent", _read_nothing, "absent", "it never reports", True),
)
_BY_NAME: Final = {fault.name: fault for fault in FAULTS}


def read_faults(text: str, adapters: Sequence[str]) -> Reading:
    """Read a text; `adapters` are the names that may stand in it."""
    terms = [term.strip() for term in text.split(",")] if text.strip() else []
    special: dict[str, dict[str, Any]] = {}
    problems: list[str] = []
    for term in terms:
        if term == _NONE:
            continue
        adapter, faults = _split(term)
        problems += _check_adapter(term, adapter, adapters)
        for fault in faults:
            try:
                special.setdefault(adapter, {}).update(_read_fault(fault))
            except ValueError as error:
                problems.append(f"{quote(term)}: {error}")
    return Reading(Faults(CALM if _NONE in terms else EVERYDAY, special), tuple(problems))


def _split(term: str) -> tuple[str, list[str]]:
    """Take ADAPTER=FAULT+FAULT apart, or FAULT:ADAPTER=VALUE, which says the same of one fault."""
    left, equals, right = term.partition("=")
    fault, colon, adapter = left.partition(":")
    if colon:
        return adapter.strip(), [f"{fault.strip()}:{right.strip()}"]
    return left.strip(), [part.strip() for part in _PLUS.split(right)] if equals else []


def _check_adapter(term: str, adapter: str, adapters: Sequence[str]) -> list[str]:
    if "=" not in term:
        return [f'{quote(term)}: expected ADAPTER=FAULT such as dns=fail:0.1, or "none"']
    if adapter in (ALL, *adapters):
        return []
    hint = suggest(adapter, tuple(adapters)) or f"; there are {', '.join(adapters)}, and * for all"
    return [f"{quote(term)}: no adapter {quote(adapter)} is simulated{hint}"]


def _read_fault(text: str) -> dict[str, Any]:
    """Read FAULT or FAULT:VALUE."""
    name, colon, value = text.partition(":")
    fault = _BY_NAME.get(name)
    if fault is None:
        hint = suggest(name, tuple(_BY_NAME)) or f"; there are {', '.join(_BY_NAME)}"
        raise ValueError(f"{quote(name)} is no fault{hint}")
    if colon:
        return {fault.name: fault.read(value)}
    if fault.usual is None:
        raise ValueError(f"{name} needs a value, as in {fault.example}")
    return {fault.name: fault.usual}
