"""Format an explanation as text for a terminal."""

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
from hyperfleet.documents.durations import short_duration

# Longer texts are cut here; the explanation itself is complete.
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

    def explanation(self, explained: StatusExplanation) -> Iterator[str]:
        age = self._age(explained.phase_since)
        yield f"{explained.resource_id} is {explained.phase} for {age} (generation {explained.generation})"
        yield from _first(f"  because {_line(evidence)}" for evidence in explained.because)
        if explained.phase_flapping is not None:
            yield self._flapping(explained.phase_flapping, "it")
        if explained.next_deadline is not None:
            yield f"  next change by time alone in {short_duration(explained.next_deadline - self._now)}"
        for condition in explained.conditions:
            yield ""
            yield from self._condition(condition)

    def _condition(self, explained: ConditionExplanation) -> Iterator[str]:
        age = f" for {self._age(explained.since)}" if explained.since else ""
        yield f"{explained.type}={explained.status}{age}: {explained.reason}"
        yield from _first(f"  {_line(line)}" for line in explained.message.splitlines())
        if explained.raw is not None and explained.raw.status != explained.status:
            yield f"  damped: the rule has said {explained.raw.status} for {self._age(explained.raw.since)}"
        if explained.flapping is not None:
            yield self._flapping(explained.flapping, "it" if explained.raw is None else "the rule")
        if explained.terms is not None:
            yield from _term(explained.terms, "  ")
        elif explained.rule:
            yield f"  {explained.rule}"
        yield from _first(f"  ← {self._adapter(adapter)}" for adapter in explained.culprits)
        if explained.remedies is not None:
            yield from _remedies(explained.remedies)

    def _adapter(self, explained: AdapterExplanation) -> str:
        if explained.last_heard is None:
            silence = "has not reported in time" if explained.is_missing else "has not reported yet"
            return f"{explained.name} {silence}"
        generation = f"generation {explained.observed_generation}"
        if explained.observed_generation != explained.generation:
            generation += f" of {explained.generation}"
        stale = ", stale" if explained.is_stale else ""
        words = _line(" ".join(word for word in (explained.reason, explained.message) if word))
        heard = f"heard {self._age(explained.last_heard)} ago{stale}"
        return f"{explained.name} {explained.state} ({generation}, {heard}) {words}".rstrip()

    def _flapping(self, explained: FlappingExplanation, who: str) -> str:
        """Describe how often a subject moved, and the moves that still count."""
        first, last = explained.recent[0].time, explained.recent[-1].time
        lately = "→".join([flip.after for flip in explained.recent])
        return (
            f"  flapping for {self._age(explained.mark.since)}: {who} has moved {explained.mark.transitions} times, "
            f"the last {len(explained.recent)} within {short_duration(last - first)}: {lately}"
        )

    def _age(self, instant: datetime) -> str:
        return short_duration(max(self._now - instant, self._now - self._now))


def _remedies(explained: RemedySet) -> Iterator[str]:
    if not explained.sets and explained.is_exhaustive:
        yield f"  no state of an adapter found that makes it {explained.wanted}; it may depend on other things"
    elif not explained.sets:
        yield f"  nothing found that makes it {explained.wanted}; there were too many combinations to try them all"
    for remedy in explained.sets:
        if remedy:  # empty: the rule is already there and waits for its damping
            yield f"  {explained.wanted} with{'' if explained.is_minimal else ' (fewer may do)'}: {_remedy(remedy)}"
    if explained.sets and not explained.is_exhaustive:
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
    """Put a text on one line and cut it to a readable length."""
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
