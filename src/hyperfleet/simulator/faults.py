"""The syntax of `--faults`: `dns=fail:0.1+slow:3x,*=lost:0.01,skew:dns=+90s`.

`parse_faults` does not raise: it returns everything that is wrong with a text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Struct

from hyperfleet.documents.durations import parse_duration
from hyperfleet.documents.wording import quote, suggest
from hyperfleet.simulator.fault_profiles import ALL, NO_FAULTS, TYPICAL_FAULTS, FaultProfiles

_NONE: Final = "none"
_PLUS: Final = re.compile(r"\+(?=[a-z\s])")  # separates faults; the + of +90s does not


class ParsedFaults(Struct, frozen=True):
    """The faults of a text, and everything that is wrong with it."""

    faults: FaultProfiles
    problems: tuple[str, ...] = ()


class FaultKind(Struct, frozen=True):
    """One kind of fault: its name, how its value is read, and the default value."""

    name: str  # also of its field in `FaultProfile`
    read: Callable[[str], Any]
    example: str
    meaning: str
    default: Any = None  # None: a value is required


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
    FaultKind("fail", _read_probability, "fail:0.1", "a run fails with this probability and is retried", 0.1),
    FaultKind("slow", _read_factor, "slow:3x", "work takes this many times as long", 3.0),
    FaultKind("sick", _read_probability, "sick:5%", "each check finds it unhealthy with this probability", 0.05),
    FaultKind("flap", _read_time, "flap:90s", "it alternates between available and not at this interval", 90.0),
    FaultKind("silent", _read_time, "silent:10m", "now and then it stops reporting for this long", 900.0),
    FaultKind("skew", _read_skew, "skew:+90s", "its clock is ahead, or behind, by this much"),
    FaultKind("lost", _read_probability, "lost:0.05", "a report does not arrive", 0.05),
    FaultKind("twice", _read_probability, "twice:0.05", "a report arrives twice", 0.05),
    FaultKind("late", _read_probability, "late:0.05", "a report arrives after a later one", 0.05),
    FaultKind("stuck", _read_nothing, "stuck", "it never cleans up after a deletion", True),
    FaultKind("absent", _read_nothing, "absent", "it never reports", True),
)
_BY_NAME: Final = {fault.name: fault for fault in FAULTS}


def parse_faults(text: str, adapters: Sequence[str]) -> ParsedFaults:
    """Parse a text; `adapters` are the names it may use."""
    terms = [term.strip() for term in text.split(",")] if text.strip() else []
    overrides: dict[str, dict[str, Any]] = {}
    problems: list[str] = []
    for term in terms:
        if term == _NONE:
            continue
        adapter, faults = _split(term)
        problems += _check_adapter(term, adapter, adapters)
        for fault in faults:
            try:
                overrides.setdefault(adapter, {}).update(_read_fault(fault))
            except ValueError as error:
                problems.append(f"{quote(term)}: {error}")
    return ParsedFaults(FaultProfiles(NO_FAULTS if _NONE in terms else TYPICAL_FAULTS, overrides), tuple(problems))


def _split(term: str) -> tuple[str, list[str]]:
    """Split ADAPTER=FAULT+FAULT, or FAULT:ADAPTER=VALUE, another notation for one fault."""
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
    """Parse FAULT or FAULT:VALUE."""
    name, colon, value = text.partition(":")
    fault = _BY_NAME.get(name)
    if fault is None:
        hint = suggest(name, tuple(_BY_NAME)) or f"; there are {', '.join(_BY_NAME)}"
        raise ValueError(f"{quote(name)} is not a fault{hint}")
    if colon:
        return {fault.name: fault.read(value)}
    if fault.default is None:
        raise ValueError(f"{name} needs a value, as in {fault.example}")
    return {fault.name: fault.default}
