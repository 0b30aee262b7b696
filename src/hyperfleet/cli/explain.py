"""`hyperfleet explain`: why something is not ready, which adapters cause it, and what would fix it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click
import msgspec

from hyperfleet.cli import exits
from hyperfleet.cli.command import CliCommand, connected
from hyperfleet.cli.options import document_options
from hyperfleet.cli.output.ages import format_age, format_length
from hyperfleet.cli.output.colours import colour_of, paint
from hyperfleet.cli.output.formats import Output
from hyperfleet.cli.output.outline import OutlineItem, write_outline
from hyperfleet.cli.output.printer import print_document
from hyperfleet.cli.resources import find, operations_on, parse_target
from hyperfleet.cli.sanitizing import sanitize
from hyperfleet.cli.session import CliSession, pass_session

if TYPE_CHECKING:
    from hyperfleet.client import ExplainedAdapter, ExplainedCondition, Explanation, Remedies, Term

_VALUE = 60  # characters of a value that are shown


@click.command(
    "explain",
    cls=CliCommand,
    examples=[
        ("why is it not ready?", "hyperfleet explain cluster payments"),
        ("one condition, with every term of its rule", "hyperfleet explain payments --condition AllAdaptersReady"),
        ("also conditions that are as they should be", "hyperfleet explain payments --all"),
    ],
    codes={exits.NOT_FOUND: exits.MEANINGS[exits.NOT_FOUND]},
)
@click.argument("what", nargs=-1, required=True, metavar="KIND NAME | KIND/NAME | NAME")
@click.option("-c", "--cluster", metavar="CLUSTER", help="The cluster of a node pool.")
@click.option("--condition", metavar="TYPE", help="Only this condition, with the terms of its rule.")
@click.option(
    "-a",
    "--all",
    "has_all",
    is_flag=True,
    help="Also conditions that are as they should be, and the terms of all rules.",
)
@document_options()
@connected
@pass_session
def explain(
    session: CliSession,
    what: tuple[str, ...],
    cluster: str | None,
    condition: str | None,
    has_all: bool,
    output: Output,
) -> None:
    """Explain the status of a cluster or a node pool.

    Shows the phase, the conditions that are not as they should be, the adapters that cause them, and the smallest sets
    of reports that would fix them. It explains the stored status, so it agrees with `get`.
    """
    target = parse_target(what, cluster)
    with session.open() as fleet:
        resource = find(fleet, target)
        explained = operations_on(fleet, target.noun).explain(resource, condition=condition)
    if not output.format.is_table:
        print_document(session, output, explained.raw)
        return
    writer = _Writer(session.now(), has_colour=session.has_colour, has_terms=has_all or condition is not None)
    shown = [each for each in explained.conditions if has_all or condition or each.remedies or each.flapping]
    shown.sort(key=lambda each: each.type != "Ready")  # the one people ask about comes first
    session.write_all(writer.write(f"{target.noun.title} {resource.name}", explained, shown))


class _Writer:
    """Writes an explanation; ages are relative to one time."""

    def __init__(self, now: datetime, *, has_colour: bool, has_terms: bool) -> None:
        self._now = now
        self._has_colour = has_colour
        self._has_terms = has_terms

    def write(self, who: str, explained: Explanation, conditions: Sequence[ExplainedCondition]) -> Iterator[str]:
        """Yield the lines; culprits and remedies that several conditions share are written once."""
        phase = self._paint(explained.phase)
        since = f" for {format_age(explained.phase_since, self._now)}" if explained.phase_since else ""
        yield from write_outline(
            OutlineItem(f"{who} is {phase}{since} (generation {explained.generation})", self._because(explained))
        )
        for index, condition in enumerate(conditions):
            yield ""
            yield from write_outline(self._condition(condition, _find_same(condition, conditions[:index])))
        if not conditions:
            yield "Everything is as it should be."

    def _because(self, explained: Explanation) -> list[OutlineItem]:
        items = [OutlineItem(f"because {sanitize(evidence)}") for evidence in explained.because]
        if explained.phase_flapping is not None:
            items.append(OutlineItem(f"flapping: {explained.phase_flapping.transitions} transitions"))
        if explained.next_deadline is not None and explained.next_deadline > self._now:
            items.append(OutlineItem(f"next deadline in {format_length(explained.next_deadline - self._now)}"))
        if not explained.current:
            items.append(OutlineItem("the policy has changed: this is the status after the recomputation"))
        return items

    def _condition(self, explained: ExplainedCondition, before: str | None = None) -> OutlineItem:
        since = f" for {format_age(explained.since, self._now)}" if explained.since else ""
        items = [OutlineItem(sanitize(line)) for line in explained.message.splitlines()]
        if explained.undamped is not None:
            items.append(
                OutlineItem(
                    f"damped: the rule has been {explained.undamped.status} for {self._age(explained.undamped.since)}"
                )
            )
        if explained.flapping is not None:
            items.append(OutlineItem(f"flapping: {explained.flapping.transitions} transitions"))
        if self._has_terms and explained.terms is not None:
            items.append(OutlineItem("rule", [_term(explained.terms)]))
        elif self._has_terms and explained.rule:
            items.append(OutlineItem(f"rule: {explained.rule}"))
        if before is not None:
            items.append(OutlineItem(f"culprits and remedies: see {before}"))
        else:
            items += self._culprits(explained.culprits)
            items += _remedies(explained.remedies) if explained.remedies is not None else []
        return OutlineItem(f"{explained.type} is {explained.status}{since}: {explained.reason}", items)

    def _culprits(self, culprits: Sequence[ExplainedAdapter]) -> list[OutlineItem]:
        if not culprits:
            return []
        return [
            OutlineItem(
                "culprit" if len(culprits) == 1 else "culprits", [OutlineItem(self._adapter(each)) for each in culprits]
            )
        ]

    def _adapter(self, explained: ExplainedAdapter) -> str:
        if explained.last_heard is None:
            return f"{explained.name} {'has not reported in time' if explained.missing else 'has not reported yet'}"
        stale = ", stale" if explained.stale else ""
        text = sanitize(": ".join(filter(None, (explained.reason, " ".join(explained.message.split())))))
        seen = f"generation {explained.observed_generation}, last report {self._age(explained.last_heard)} ago{stale}"
        return f"{explained.name} is {self._paint(explained.state)} ({seen}) {text}".rstrip()

    def _age(self, instant: datetime | None) -> str:
        return format_age(instant, self._now)

    def _paint(self, word: str) -> str:
        return paint(word, colour_of(word) if self._has_colour else None)


def _find_same(condition: ExplainedCondition, before: Iterable[ExplainedCondition]) -> str | None:
    """Return an earlier condition with the same culprits and remedies."""
    if not condition.culprits:
        return None
    grounds = (condition.culprits, condition.remedies)
    return next((each.type for each in before if (each.culprits, each.remedies) == grounds), None)


def _remedies(explained: Remedies) -> list[OutlineItem]:
    sets = [each for each in explained.sets if each]  # an empty one: only damping delays it
    if not explained.sets:
        why = "it may depend on something else" if explained.exhaustive else "there were too many combinations to try"
        return [OutlineItem(f"found no report that would make it {explained.wanted}; {why}")]
    ways = [OutlineItem(" and ".join(_change(change) for change in each)) for each in sets]
    if not ways:
        return [OutlineItem(f"it becomes {explained.wanted} by itself when the damping time is over")]
    smallest = "" if explained.minimal else " (fewer may suffice)"
    more = [] if explained.exhaustive else [OutlineItem("there may be other ways")]
    return [OutlineItem(f"would be {explained.wanted} with{smallest}", [*ways, *more])]


def _change(change: Any) -> str:
    further = "".join(f", {type_}={status}" for type_, status in change.conditions.items())
    return f"{change.adapter} {change.state} at generation {change.generation}{further}"


def _term(term: Term) -> OutlineItem:
    if term.skipped:
        outcome = "was not evaluated"
    elif term.error:
        outcome = f"failed: {sanitize(term.error)}"
    else:
        outcome = f"= {_shorten(msgspec.json.encode(term.value).decode())}"
    return OutlineItem(f"{term.text} {outcome}", _terms(term.parts))


def _terms(parts: Iterable[Term]) -> list[OutlineItem]:
    return [_term(part) for part in parts]


def _shorten(text: str) -> str:
    return text if len(text) <= _VALUE else f"{text[: _VALUE - 1]}…"
