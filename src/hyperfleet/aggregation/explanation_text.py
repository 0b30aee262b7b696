"""An explanation as text for a terminal: what, since when, why, who, and what would help, from left to right."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

import msgspec

from hyperfleet.aggregation.explanation import AdapterExplanation, ConditionExplanation, Explanation, Term
from hyperfleet.documents.durations import format_duration
from hyperfleet.model.condition import TRUE

_SHOWN_VALUE: Final = 60  # characters of a value; longer ones are cut, the JSON form has them whole


def render(explanation: Explanation, now: datetime) -> str:
    """Write an explanation; ages count up to `now`."""
    writer = _Writer(now)
    return "\n".join(writer.explanation(explanation)) + "\n"


class _Writer:
    """Writes the parts of an explanation as lines."""

    def __init__(self, now: datetime) -> None:
        self._now = now

    def explanation(self, told: Explanation) -> Iterator[str]:
        age = self._age(told.phase_since)
        yield f"{told.resource_id} is {told.phase} for {age} (generation {told.generation})"
        yield from (f"  because {evidence}" for evidence in told.because)
        if told.next_deadline is not None:
            yield f"  next change by time alone in {format_duration(told.next_deadline - self._now)}"
        for condition in told.conditions:
            yield ""
            yield from self._condition(condition)

    def _condition(self, told: ConditionExplanation) -> Iterator[str]:
        age = f" for {self._age(told.since)}" if told.since else ""
        yield f"{told.type}={told.status}{age}: {told.reason}"
        yield from (f"  {line}" for line in told.message.splitlines())
        if told.raw is not None and told.raw.status != told.status:
            yield f"  damped: the rule has said {told.raw.status} for {self._age(told.raw.since)}"
        if told.terms is not None:
            yield from _term(told.terms, "  ")
        elif told.rule:
            yield f"  {told.rule}"
        for adapter in told.culprits:
            yield f"  ← {self._adapter(adapter)}"
        if told.status != TRUE:
            yield from _remedies(told)

    def _adapter(self, told: AdapterExplanation) -> str:
        if told.last_heard is None:
            silence = "has not reported in time" if told.is_missing else "has not reported yet"
            return f"{told.name} {silence}"
        generation = f"generation {told.observed_generation}"
        if told.observed_generation != told.generation:
            generation += f" of {told.generation}"
        stale = ", stale" if told.is_stale else ""
        words = " ".join(word for word in (told.reason, told.message) if word)
        return (
            f"{told.name} {told.state} ({generation}, heard {self._age(told.last_heard)} ago{stale}) {words}".rstrip()
        )

    def _age(self, instant: datetime) -> str:
        return format_duration(max(self._now - instant, self._now - self._now))


def _remedies(told: ConditionExplanation) -> Iterator[str]:
    if not told.remedies:
        yield "  no adapter report alone makes it True"
    for remedy in told.remedies:
        yield "  True with: " + " and ".join(str(change) for change in remedy)


def _term(term: Term, indent: str) -> Iterator[str]:
    yield f"{indent}{term.text} {_outcome(term)}"
    for part in term.parts:
        yield from _term(part, indent + "  ")


def _outcome(term: Term) -> str:
    if term.is_skipped:
        return "was not needed"
    if term.error:
        return f"failed: {term.error}"
    return f"= {_value(term.value)}"


def _value(value: Any) -> str:
    text = msgspec.json.encode(value, enc_hook=str).decode()
    return text if len(text) <= _SHOWN_VALUE else f"{text[: _SHOWN_VALUE - 1]}…"
