"""`hyperfleet explain`: why something is not ready, who is to blame, and the smallest change that would help."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click
import msgspec

from hyperfleet.cli import exits
from hyperfleet.cli.command import Command, connected
from hyperfleet.cli.options import document_options
from hyperfleet.cli.output.ages import tell_age, tell_length
from hyperfleet.cli.output.colours import colour_of, paint
from hyperfleet.cli.output.formats import Output
from hyperfleet.cli.output.outline import Item, write_outline
from hyperfleet.cli.output.printer import print_document
from hyperfleet.cli.printable import tame
from hyperfleet.cli.resources import find, operations_on, parse_target
from hyperfleet.cli.session import Session, pass_session

if TYPE_CHECKING:
    from hyperfleet.client import ExplainedAdapter, ExplainedCondition, Explanation, Remedies, Term

_VALUE = 60  # characters of a value that are shown


@click.command(
    "explain",
    cls=Command,
    examples=[
        ("why is it not ready?", "hyperfleet explain cluster payments"),
        ("one condition, with every term of its rule", "hyperfleet explain payments --condition AllAdaptersReady"),
        ("also what is as it should be", "hyperfleet explain payments --all"),
    ],
    codes={exits.NOT_FOUND: exits.MEANINGS[exits.NOT_FOUND]},
)
@click.argument("what", nargs=-1, required=True, metavar="KIND NAME | KIND/NAME | NAME")
@click.option("-c", "--cluster", metavar="CLUSTER", help="The cluster of a node pool.")
@click.option("--condition", metavar="TYPE", help="Only this condition, with the terms of its rule.")
@click.option("-a", "--all", "has_all", is_flag=True, help="Also conditions that are good, and the terms of all rules.")
@document_options()
@connected
@pass_session
def explain(
    session: Session, what: tuple[str, ...], cluster: str | None, condition: str | None, has_all: bool, output: Output
) -> None:
    """Say why a cluster or a node pool is as it is.

    From the phase to the conditions that are not good, to the adapters that made them so, to the smallest sets of
    reports that would make them good. It explains the stored status, so it tells the same as `get`.
    """
    target = parse_target(what, cluster)
    with session.open() as fleet:
        resource = find(fleet, target)
        told = operations_on(fleet, target.noun).explain(resource, condition=condition)
    if not output.format.is_table:
        print_document(session, output, told.raw)
        return
    writer = _Writer(session.now(), has_colour=session.has_colour, has_terms=has_all or condition is not None)
    shown = [each for each in told.conditions if has_all or condition or each.remedies or each.flapping]
    shown.sort(key=lambda each: each.type != "Ready")  # what people ask about comes first
    session.write_all(writer.write(f"{target.noun.title} {resource.name}", told, shown))


class _Writer:
    """Writes an explanation; ages count up to one moment."""

    def __init__(self, now: datetime, *, has_colour: bool, has_terms: bool) -> None:
        self._now = now
        self._has_colour = has_colour
        self._has_terms = has_terms

    def write(self, who: str, told: Explanation, conditions: Sequence[ExplainedCondition]) -> Iterator[str]:
        """Yield the lines; of conditions that are bad for the same reasons, these are told once."""
        phase = self._paint(told.phase)
        since = f" for {tell_age(told.phase_since, self._now)}" if told.phase_since else ""
        yield from write_outline(Item(f"{who} is {phase}{since} (generation {told.generation})", self._because(told)))
        for index, condition in enumerate(conditions):
            yield ""
            yield from write_outline(self._condition(condition, _find_same(condition, conditions[:index])))
        if not conditions:
            yield "Everything is as it should be."

    def _because(self, told: Explanation) -> list[Item]:
        items = [Item(f"because {tame(evidence)}") for evidence in told.because]
        if told.phase_flapping is not None:
            items.append(Item(f"flapping: it has moved {told.phase_flapping.transitions} times"))
        if told.next_deadline is not None and told.next_deadline > self._now:
            items.append(Item(f"next change by time alone in {tell_length(told.next_deadline - self._now)}"))
        if not told.current:
            items.append(Item("the policy has changed: this is how it will be when it is computed anew"))
        return items

    def _condition(self, told: ExplainedCondition, before: str | None = None) -> Item:
        since = f" for {tell_age(told.since, self._now)}" if told.since else ""
        items = [Item(tame(line)) for line in told.message.splitlines()]
        if told.undamped is not None:
            items.append(Item(f"damped: the rule has said {told.undamped.status} for {self._age(told.undamped.since)}"))
        if told.flapping is not None:
            items.append(Item(f"flapping: it has moved {told.flapping.transitions} times"))
        if self._has_terms and told.terms is not None:
            items.append(Item("rule", [_term(told.terms)]))
        elif self._has_terms and told.rule:
            items.append(Item(f"rule: {told.rule}"))
        if before is not None:
            items.append(Item(f"culprits and remedies are those of {before}"))
        else:
            items += self._culprits(told.culprits)
            items += _remedies(told.remedies) if told.remedies is not None else []
        return Item(f"{told.type} is {told.status}{since}: {told.reason}", items)

    def _culprits(self, culprits: Sequence[ExplainedAdapter]) -> list[Item]:
        if not culprits:
            return []
        return [Item("culprit" if len(culprits) == 1 else "culprits", [Item(self._adapter(each)) for each in culprits])]

    def _adapter(self, told: ExplainedAdapter) -> str:
        if told.last_heard is None:
            return f"{told.name} {'has not reported in time' if told.missing else 'has not reported yet'}"
        stale = ", stale" if told.stale else ""
        words = tame(": ".join(filter(None, (told.reason, " ".join(told.message.split())))))
        heard = f"generation {told.observed_generation}, heard {self._age(told.last_heard)} ago{stale}"
        return f"{told.name} is {self._paint(told.state)} ({heard}) {words}".rstrip()

    def _age(self, instant: datetime | None) -> str:
        return tell_age(instant, self._now)

    def _paint(self, word: str) -> str:
        return paint(word, colour_of(word) if self._has_colour else None)


def _find_same(condition: ExplainedCondition, before: Iterable[ExplainedCondition]) -> str | None:
    """Return the condition that was told of already and has the same culprits and remedies."""
    if not condition.culprits:
        return None
    grounds = (condition.culprits, condition.remedies)
    return next((each.type for each in before if (each.culprits, each.remedies) == grounds), None)


def _remedies(told: Remedies) -> list[Item]:
    sets = [each for each in told.sets if each]  # an empty one: it waits out its damping
    if not told.sets:
        why = "it may depend on other things" if told.exhaustive else "there were too many combinations to try"
        return [Item(f"no report found that makes it {told.wanted}; {why}")]
    ways = [Item(" and ".join(_change(change) for change in each)) for each in sets]
    if not ways:
        return [Item(f"it becomes {told.wanted} by itself when it has lasted long enough")]
    smallest = "" if told.minimal else " (fewer may do)"
    more = [] if told.exhaustive else [Item("perhaps in other ways, too")]
    return [Item(f"would be {told.wanted} with{smallest}", [*ways, *more])]


def _change(change: Any) -> str:
    further = "".join(f", {type_}={status}" for type_, status in change.conditions.items())
    return f"{change.adapter} {change.state} at generation {change.generation}{further}"


def _term(term: Term) -> Item:
    if term.skipped:
        outcome = "was not needed"
    elif term.error:
        outcome = f"failed: {tame(term.error)}"
    else:
        outcome = f"= {_shorten(msgspec.json.encode(term.value).decode())}"
    return Item(f"{term.text} {outcome}", _terms(term.parts))


def _terms(parts: Iterable[Term]) -> list[Item]:
    return [_term(part) for part in parts]


def _shorten(text: str) -> str:
    return text if len(text) <= _VALUE else f"{text[: _VALUE - 1]}…"
