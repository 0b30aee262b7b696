"""`hyperfleet report`: send reports like an adapter, by hand or from a file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec import Struct

from hyperfleet.cli import exits
from hyperfleet.cli.assignments import parse_fields
from hyperfleet.cli.command import CliCommand, bundle, connected
from hyperfleet.cli.failures import Misuse
from hyperfleet.cli.options import output_options
from hyperfleet.cli.output.ages import parse_time
from hyperfleet.cli.output.formats import Output
from hyperfleet.cli.output.printer import print_item, print_items
from hyperfleet.cli.output.sheet import Sheet
from hyperfleet.cli.output.table import NONE, Column
from hyperfleet.cli.reports import SentReport, name_of, read_reports, send
from hyperfleet.cli.resources import find, parse_target
from hyperfleet.cli.session import CliSession, pass_session

if TYPE_CHECKING:
    from hyperfleet.client import Fleet, Outcome

_FORMATS: Final = ("table", "wide", "json", "yaml", "name", "jsonpath")
_STATUS: Final = click.Choice(["True", "False", "Unknown"], case_sensitive=False)


class ReportOptions(Struct, frozen=True):
    """The fields of a report, from options."""

    adapter: str | None = None
    available: str | None = None
    applied: str = "True"
    health: str = "True"
    finalized: str | None = None
    reason: str = ""
    message: str = ""
    conditions: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    generation: int | None = None
    observed_time: str | None = None

    def as_keywords(self, now: datetime) -> dict[str, Any]:
        """Return the keywords of the client."""
        keywords = {
            "available": self.available,
            "applied": self.applied,
            "health": self.health,
            "finalized": self.finalized,
            "reason": self.reason,
            "message": self.message,
            "conditions": dict(map(_parse_condition, self.conditions)),
            "data": parse_fields(self.data),
            "generation": self.generation,
            "observed_time": _parse_time(self.observed_time) or now,
        }
        return {key: value for key, value in keywords.items() if value not in (None, "", {})}


@click.command(
    "report",
    cls=CliCommand,
    examples=[
        (
            "an adapter has succeeded",
            "hyperfleet report payments --adapter dns --available True --reason RecordsCreated --data records=5",
        ),
        (
            "… or has failed",
            'hyperfleet report payments --adapter dns --available False --reason ZoneNotFound --message "no zone"',
        ),
        ("… is still working", "hyperfleet report payments --adapter dns --available False --reason JobRunning"),
        ("… or has cleaned up", "hyperfleet report payments --adapter dns --available False --finalized True"),
        ("a report in a file", "hyperfleet report cluster payments -f report.json"),
        ("many reports on many resources", "hyperfleet report -f reports.yaml"),
    ],
    codes={
        exits.FALSE: "a report was discarded without effect, because there is a newer one",
        exits.NOT_FOUND: exits.MEANINGS[exits.NOT_FOUND],
        exits.REFUSED: "the server refused a report; the others of a batch were accepted",
    },
)
@click.argument("what", nargs=-1, metavar="[KIND NAME | KIND/NAME | NAME]")
@click.option("-c", "--cluster", metavar="CLUSTER", help="The cluster of a node pool.")
@bundle(
    "options",
    ReportOptions,
    click.option("-a", "--adapter", metavar="NAME", help="The adapter that reports."),
    click.option("--available", type=_STATUS, help="Has the work succeeded?"),
    click.option("--applied", type=_STATUS, default="True", help="Has what it needs been created? [default: True]"),
    click.option("--health", type=_STATUS, default="True", help="Has nothing unexpected happened? [default: True]"),
    click.option("--finalized", type=_STATUS, help="When deleting: has everything been cleaned up?"),
    click.option("--reason", default="", metavar="WORD", help="The reason of Available, in CamelCase."),
    click.option("--message", default="", metavar="TEXT", help="The message of Available, for people."),
    click.option(
        "--condition",
        "conditions",
        multiple=True,
        metavar="TYPE=STATUS",
        help="An additional condition; may be repeated.",
    ),
    click.option("--data", multiple=True, metavar="FIELD=VALUE", help="Data of the report; may be repeated."),
    click.option("--generation", type=int, metavar="N", help="The observed generation; default: the present one."),
    click.option("--observed-time", metavar="TIME", help="The time of the observation; default: now."),
)
@click.option("-f", "--filename", "file", metavar="FILE|-", help="The report, or many of them, in YAML or JSON.")
@output_options(_FORMATS)
@connected
@pass_session
def report(
    session: CliSession,
    what: tuple[str, ...],
    cluster: str | None,
    options: ReportOptions,
    file: str | None,
    output: Output,
) -> None:
    """Send a report on a cluster or a node pool like an adapter, and show its outcome.

    A file has a report in the format of the API (adapter, conditions, …), or many of them: a list, several documents,
    or {"reports": […]}. Each of many names its resource with cluster: NAME or nodePool: CLUSTER/NAME. By default the
    generation is the present one and the time is now.
    """
    target = parse_target(what, cluster) if what else None
    if file is not None:
        if options != ReportOptions():
            raise Misuse("-f cannot be combined with other arguments")
        reports = read_reports(file)
        with session.open() as fleet:
            sent = send(fleet, reports, target, session.now())
    else:
        if target is None:
            raise Misuse("name a resource, such as: report cluster NAME; or give reports with -f")
        with session.open() as fleet:
            sent = [_report(fleet, target, options, session.now())]
    _print(session, output, sent)
    sys.exit(max((each.code for each in sent), default=exits.OK))


def _report(fleet: Fleet, target: Any, options: ReportOptions, now: datetime) -> SentReport:
    if options.adapter is None or options.available is None:
        raise Misuse("a report needs --adapter NAME and --available True|False|Unknown")
    resource = find(fleet, target)
    outcome: Outcome = fleet.report(resource, options.adapter, **options.as_keywords(now))
    name = name_of(fleet, resource)
    notes = tuple(note.message for note in outcome.notes)
    text = outcome.outcome if not outcome.removed else f"{outcome.outcome}, resource removed"
    return SentReport(name, options.adapter, text, outcome.reason or "", outcome.phase, outcome.report_id or "", notes)


def _print(session: CliSession, output: Output, sent: Sequence[SentReport]) -> None:
    if len(sent) == 1:
        print_item(session, output, _SHEET, sent[0])
    else:
        print_items(session, output, _SHEET, sent)
    for each in sent:
        for note in each.notes:
            session.message(f"Note: {each.resource}: {note}")
        if each.problem:
            session.message(f"Error: {each.resource}: {each.adapter}: {each.problem}")


def _cells(each: SentReport) -> Sequence[str]:
    return (each.resource, each.adapter, each.outcome, each.reason or NONE, each.phase or NONE, each.report_id or NONE)


_SHEET: Final[Sheet[SentReport]] = Sheet(
    "Report",
    (
        Column("RESOURCE"),
        Column("ADAPTER"),
        Column("OUTCOME"),
        Column("REASON"),
        Column("PHASE", is_coloured=True),
        Column("REPORT ID", is_wide=True),
    ),
    _cells,
    SentReport.as_document,
    lambda each: each.resource,
)


def _parse_condition(text: str) -> tuple[str, str]:
    type_, equals, status = text.partition("=")
    if not equals or status not in _STATUS.choices:
        raise Misuse(f'expected a condition such as Certified=True, found "{text}"')
    return type_, status


def _parse_time(text: str | None) -> datetime | None:
    if text is None:
        return None
    moment = parse_time(text)
    if moment is None:
        raise Misuse(f'--observed-time: expected a time such as 2025-10-17T12:00:05Z, found "{text}"')
    return moment
