"""`hyperfleet doctor`: check that everything is well between here and the server; each complaint has a remedy."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from hyperfleet.cli import exits
from hyperfleet.cli.command import Command, connected
from hyperfleet.cli.examination import Finding, examine_configuration, examine_fleet, examine_server
from hyperfleet.cli.options import document_options
from hyperfleet.cli.output.colours import colour_of, paint
from hyperfleet.cli.output.documents import to_plain
from hyperfleet.cli.output.formats import Output
from hyperfleet.cli.output.printer import list_document, print_document
from hyperfleet.cli.output.words import count_of
from hyperfleet.cli.printable import tame
from hyperfleet.cli.session import Session, pass_session

if TYPE_CHECKING:
    from hyperfleet.client import Fleet


@click.command(
    "doctor",
    cls=Command,
    examples=[
        ("is everything well?", "hyperfleet doctor"),
        ("with another server", "hyperfleet doctor --context prod"),
    ],
    codes={exits.OK: "nothing failed; there may be warnings", exits.FALSE: "something failed; each has a remedy"},
)
@document_options()
@connected
@pass_session
def doctor(session: Session, output: Output) -> None:
    """Check the configuration of this program, the way to the server, and the server itself.

    Checked are the config file and its permissions, the address and where it comes from, that the server answers and
    how its version and clock compare with ours, that the token is accepted, whether the server is ready, warnings of
    its policy, and adapters that are silent or whose clocks are wrong.
    """
    findings: list[Finding] = []
    for finding in _examine(session):
        findings.append(finding)
        if output.format.is_table:
            session.write_all(_write(finding, has_colour=session.has_colour))
    if not output.format.is_table:
        print_document(session, output, list_document("Finding", map(to_plain, findings)))
    failed = sum(each.verdict == "failed" for each in findings)
    warnings = sum(each.verdict == "warning" for each in findings)
    session.say(f"{count_of(len(findings), 'check')}: {failed} failed, {count_of(warnings, 'warning')}.")
    sys.exit(exits.FALSE if failed else exits.OK)


def _examine(session: Session) -> Iterator[Finding]:
    """Check one thing after the other; what needs something that failed is not tried."""
    for finding in examine_configuration(session):
        yield finding
        if finding.verdict == "failed":
            return
    with session.open() as fleet:
        yield from _examine_remote(session, fleet)


def _examine_remote(session: Session, fleet: Fleet) -> Iterator[Finding]:
    for finding in examine_server(session, fleet):
        yield finding
        if finding.verdict == "failed" and finding.is_fatal:
            return
    yield from examine_fleet(fleet)


def _write(finding: Finding, *, has_colour: bool) -> Iterator[str]:
    verdict = paint(finding.verdict, colour_of(finding.verdict) if has_colour else None)
    yield f"{verdict}{' ' * (9 - len(finding.verdict))}{finding.check + ':':<12}{tame(finding.found)}"
    if finding.remedy:
        yield f"         {'':<12}→ {finding.remedy}"
