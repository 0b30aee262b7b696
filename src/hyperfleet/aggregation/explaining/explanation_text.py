"""An explanation as text for a terminal: what, since when, why, who, and what would help, from left to right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

import msgspec

from hyperfleet.aggregation.explaining.explanation import (
    AdapterExplanation,
    ConditionExplanation,
    ExplainedTerm,
    FlappingExplanation,
    StatusExplanation,
)
from hyperfleet.aggregation.explaining.remedies import RemedySet
from hyperfleet.aggregation.explaining.trials import Remedy
from hyperfleet.documents.durations import tell_duration

# What is longer is cut here; the explanation itself has all of it.
_SHOWN_VALUE: Final = 60  # characters of a value
_SHOWN_LINE: Final = 200  # characters of a message
_SHOWN: Final = 10  # adapters, lines of a message, pieces of evidence


def render(explanation: StatusExplanation, now: datetime) -> str:
    """Write an explanation; ages count up to `now`."""
    writer = _Writer(now)
    return "\n".join(writer.explanation(explanation)) + "\n"


class _Writer:
    """Writes the parts of an explanation as lines."""

    def __init__(self, now: datetime) -> None:
        self._now = now

    def explanation(self, told: StatusExplanation) -> Iterator[str]:
        age = self._age(told.phase_since)
        yield f"{told.resource_id} is {told.phase} for {age} (generation {told.generation})"
        yield from _first(f"  because {_line(evidence)}" for evidence in told.because)
        if told.phase_flapping is not None:
            yield self._flapping(told.phase_flapping, "it")
        if told.next_deadline is not None:
            yield f"  next change by time alone in {tell_duration(told.next_deadline - self._now)}"
        for condition in told.conditions:
            yield ""
            yield from self._condition(condition)

    def _condition(self, told: ConditionExplanation) -> Iterator[str]:
        age = f" for {self._age(told.since)}" if told.since else ""
        yield f"{told.type}={told.status}{age}: {told.reason}"
        yield from _first(f"  {_line(line)}" for line in told.message.splitlines())
        if told.raw is not None and told.raw.status != told.status:
            yield f"  damped: the rule has said {told.raw.status} for {self._age(told.raw.since)}"
        if told.flapping is not None:
            yield self._flapping(told.flapping, "it" if told.raw is None else "the rule")
        if told.terms is not None:
            yield from _term(told.terms, "  ")
        elif told.rule:
            yield f"  {told.rule}"
        yield from _first(f"  ← {self._adapter(adapter)}" for adapter in told.culprits)
        if told.remedies is not None:
            yield from _remedies(told.remedies)

    def _adapter(self, told: AdapterExplanation) -> str:
        if told.last_heard is None:
            silence = "has not reported in time" if told.is_missing else "has not reported yet"
            return f"{told.name} {silence}"
        generation = f"generation {told.observed_generation}"
        if told.observed_generation != told.generation:
            generation += f" of {told.generation}"
        stale = ", stale" if told.is_stale else ""
        words = _line(" ".join(word for word in (told.reason, told.message) if word))
        heard = f"heard {self._age(told.last_heard)} ago{stale}"
        return f"{told.name} {told.state} ({generation}, {heard}) {words}".rstrip()

    def _flapping(self, told: FlappingExplanation, who: str) -> str:
        """Tell how often something moved and, of the moves that still count, from when to when and where to."""
        first, last = told.recent[0].time, told.recent[-1].time
        lately = "→".join([flip.after for flip in told.recent])
        return (
            f"  flapping for {self._age(told.mark.since)}: {who} has moved {told.mark.transitions} times, "
            f"the last {len(told.recent)} within {tell_duration(last - first)}: {lately}"
        )

    def _age(self, instant: datetime) -> str:
        return tell_duration(max(self._now - instant, self._now - self._now))


def _remedies(told: RemedySet) -> Iterator[str]:
    if not told.sets and told.is_exhaustive:
        yield f"  no state of an adapter found that makes it {told.wanted}; it may depend on other things"
    elif not told.sets:
        yield f"  nothing found that makes it {told.wanted}; there were too many combinations to try them all"
    for remedy in told.sets:
        if remedy:  # none: the rule says so already, and waits out its damping
            yield f"  {told.wanted} with{'' if told.is_minimal else ' (fewer may do)'}: {_remedy(remedy)}"
    if told.sets and not told.is_exhaustive:
        yield "  … and perhaps in other ways"


def _remedy(remedy: Remedy) -> str:
    more = [f"{len(remedy) - _SHOWN} more"] if len(remedy) > _SHOWN else []
    return " and ".join([*map(str, remedy[:_SHOWN]), *more])


def _first(lines: Iterable[str]) -> Iterator[str]:
    """Yield the first lines, and how many more there are."""
    for index, line in enumerate(every := list(lines)):
        if index == _SHOWN:
            yield f"  … and {len(every) - _SHOWN} more"
            return
        yield line


def _line(text: str) -> str:
    """Put a text on one line and cut it where nobody would read on."""
    line = " ".join(text[: 2 * _SHOWN_LINE].split())
    return line if len(text) <= _SHOWN_LINE else f"{line[: _SHOWN_LINE - 1]}…"


def _term(term: ExplainedTerm, indent: str) -> Iterator[str]:
    yield f"{indent}{_line(term.text)} {_outcome(term)}"
    for part in term.parts:
        yield from _term(part, indent + "  ")


def _outcome(term: ExplainedTerm) -> str:
    if term.is_skipped:
        return "was not needed"
    if term.error:
        return f"failed: {_line(term.error)}"
    return f"= {_value(term.value)}"


def _value(value: Any) -> str:
    text = msgspec.json.encode(value, enc_hook=str).decode()
    return text if len(text) <= _SHOWN_VALUE else f"{text[: _SHOWN_VALUE - 1]}…"
