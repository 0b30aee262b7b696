"""`hyperfleet rules simulate`: what another policy would change, computed by the server."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

import click
from msgspec import Struct

from hyperfleet.cli import exits
from hyperfleet.cli.command import DURATION, CliCommand, bundle, connected
from hyperfleet.cli.failures import CommandFailure
from hyperfleet.cli.manifests import name_file, read_text
from hyperfleet.cli.options import Selection, document_options, selection_options
from hyperfleet.cli.output.formats import Output
from hyperfleet.cli.output.printer import default_look, print_document
from hyperfleet.cli.output.table import NONE, Column, Look, write_table
from hyperfleet.cli.output.words import count_of
from hyperfleet.cli.session import CliSession, pass_session
from hyperfleet.cli.ticker import Ticker

if TYPE_CHECKING:
    from hyperfleet.client import Simulation
    from hyperfleet.client.answers.simulation import ReplayedResource, ReplayResult, SimulatedChange, SimulationProgress
    from hyperfleet.client.errors import Invalid

_CHANGES: Final = (
    Column("RESOURCE"),
    Column("SUBJECT"),
    Column("NOW", is_coloured=True),
    Column("THEN", is_coloured=True),
    Column("REASON"),
    Column("WHY", is_elastic=True),
)
_TOTALS: Final = (Column("SUBJECT"), Column("TRANSITIONS"), Column("TRANSITIONS THEN"))
_TIMELINES: Final = (Column("RESOURCE"), Column("SUBJECT"), Column("WAS → WOULD HAVE BEEN", is_elastic=True))


class SimulateOptions(Struct, frozen=True):
    """The options of `hyperfleet rules simulate`."""

    replay: timedelta | None = None
    limit: int | None = None
    fails_on_change: bool = False


@click.command(
    "simulate",
    cls=CliCommand,
    examples=[
        ("what would this policy change?", "hyperfleet rules simulate -f policy.yaml"),
        ("… in production only", "hyperfleet rules simulate -f policy.yaml -l env=prod"),
        ("… and what would it have changed in the last week?", "hyperfleet rules simulate -f policy.yaml --replay 7d"),
        ("a gate in a pipeline", "hyperfleet rules simulate -f policy.yaml --fail-on-change"),
    ],
    codes={
        exits.FALSE: "with --fail-on-change: something would change",
        exits.USAGE: "the policy is wrong or cannot be read",
    },
)
@click.option("-f", "--filename", "file", required=True, metavar="FILE|-", help="The policy; - for standard input.")
@selection_options()
@bundle(
    "options",
    SimulateOptions,
    click.option(
        "--replay", type=DURATION, metavar="DURATION", help="Also replay the reports of this time under it: 7d."
    ),
    click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Show at most N resources."),
    click.option("--fail-on-change", "fails_on_change", is_flag=True, help="Exit with 1 if something would change."),
)
@document_options()
@connected
@pass_session
def simulate(session: CliSession, file: str, selection: Selection, options: SimulateOptions, output: Output) -> None:
    """Show what another policy would change: the phase and conditions of which resources, and why.

    Nothing is changed. The server computes every resource under the policy, and with --replay also aggregates the
    recorded reports again; on a terminal stderr shows the progress. -o json includes resources of which only a message
    would change.
    """
    found = _simulate(session, file, selection, options)
    if output.format.is_table:
        session.write_all(_write(found, default_look(session)))
        session.message(sum_up(found))
    else:
        print_document(session, output, found.raw)
    for warning in found.warnings:
        session.message(f"Warning: {name_file(file)}:{warning}")
    sys.exit(exits.FALSE if options.fails_on_change and found.changed else exits.OK)


def _simulate(session: CliSession, file: str, selection: Selection, options: SimulateOptions) -> Simulation:
    from hyperfleet.client.errors import Invalid

    text = read_text(file)
    replay = f"{round(options.replay.total_seconds())}s" if options.replay else None
    try:
        with session.open() as fleet, Ticker() as ticker:
            return fleet.simulate(
                text,
                on_progress=partial(show_progress, ticker),
                replay=replay,
                limit=options.limit,
                **selection.as_filters(),
            )
    except Invalid as error:
        if error.code in ("InvalidQuery", "TooLarge") or not error.errors:
            raise
        raise place_faults(name_file(file), error) from error


def place_faults(name: str, error: Invalid) -> CommandFailure:
    """Return the failure for an invalid policy, with positions in the file of that name."""
    lines = [f"{name}:{fault}" if fault.line else f"{name}: {fault}" for fault in error.errors]
    return CommandFailure("\nError: ".join(lines), exits.USAGE)


def show_progress(ticker: Ticker, progress: SimulationProgress) -> None:
    """Show the progress of a simulation."""
    ticker.show(f"{progress.examined} of {progress.total} examined, {progress.changed} would change")


# ── for people ───────────────────────────────────────────────────────────────────────────────────────────────────


def _write(found: Simulation, look: Look) -> Iterator[str]:
    rows = [
        (_resource(each), move.subject, move.from_ or NONE, move.to or NONE, move.reason, move.why or move.message)
        for each in found.changes
        for move in each.transitions
        if move.from_ != move.to  # otherwise only its message differs
    ]
    if rows:
        yield from write_table(_CHANGES, rows, look)
    if found.truncated:
        yield f"… and {count_of(found.changed - len(found.changes), 'more resource')}; --limit shows more"
    if found.replay is not None:
        yield ""
        yield from _write_replay(found.replay, look)


def _write_replay(replay: ReplayResult, look: Look) -> Iterator[str]:
    began = replay.from_.isoformat().replace("+00:00", "Z") if replay.from_ else "the beginning"
    yield f"Since {began}: {count_of(replay.reports, 'report')} on {count_of(replay.resources, 'resource')}" + (
        "" if replay.complete else "; part of the history is no longer kept"
    )
    yield from (f"Not exact: {each}" for each in replay.inexact)
    totals = [
        (each.subject, str(each.present.transitions), str(each.candidate.transitions)) for each in replay.subjects
    ]
    if totals:
        yield from write_table(_TOTALS, totals, look)
    timelines = [
        (_resource(resource), timeline.subject, timeline.gist)
        for resource in replay.lives
        for timeline in resource.subjects
    ]
    if timelines:
        yield ""
        yield from write_table(_TIMELINES, timelines, look)


def _resource(each: SimulatedChange | ReplayedResource) -> str:
    """Format a resource as other commands accept it: `nodepool/blue`."""
    return f"{each.kind.lower()}/{each.name or each.id}"


def sum_up(found: Simulation) -> str:
    """Say in one sentence how many resources a policy would change."""
    would = f"{found.changed} would change, {found.reworded} would change only in messages"
    return f"{count_of(found.examined, 'resource')} examined: {would}, {found.unchanged} would not change."
