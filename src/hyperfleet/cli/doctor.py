"""`hyperfleet doctor`: check configuration, connection and server; each problem comes with a remedy."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from hyperfleet.cli import exits
from hyperfleet.cli.checks import CheckResult, check_configuration, check_fleet, check_server
from hyperfleet.cli.command import CliCommand, connected
from hyperfleet.cli.options import document_options
from hyperfleet.cli.output.colours import colour_of, paint
from hyperfleet.cli.output.documents import to_plain
from hyperfleet.cli.output.formats import Output
from hyperfleet.cli.output.printer import list_document, print_document
from hyperfleet.cli.output.words import count_of
from hyperfleet.cli.sanitizing import sanitize
from hyperfleet.cli.session import CliSession, pass_session

if TYPE_CHECKING:
    from hyperfleet.client import Fleet


@click.command(
    "doctor",
    cls=CliCommand,
    examples=[
        ("is everything all right?", "hyperfleet doctor"),
        ("with another server", "hyperfleet doctor --context prod"),
    ],
    codes={exits.OK: "nothing failed; there may be warnings", exits.FALSE: "something failed; each has a remedy"},
)
@document_options()
@connected
@pass_session
def doctor(session: CliSession, output: Output) -> None:
    """Check the configuration of this program, the connection to the server, and the server itself.

    It checks the config file and its permissions, the address and where it comes from, whether the server answers, its
    version and clock compared with those here, whether it accepts the token and is ready, warnings of its policy, and
    adapters that never reported or whose clocks are wrong.
    """
    results: list[CheckResult] = []
    for result in _run_checks(session):
        results.append(result)
        if output.format.is_table:
            session.write_all(_write(result, has_colour=session.has_colour))
    if not output.format.is_table:
        print_document(session, output, list_document("Finding", map(to_plain, results)))
    failed = sum(each.verdict == "failed" for each in results)
    warnings = sum(each.verdict == "warning" for each in results)
    session.message(f"{count_of(len(results), 'check')}: {failed} failed, {count_of(warnings, 'warning')}.")
    sys.exit(exits.FALSE if failed else exits.OK)


def _run_checks(session: CliSession) -> Iterator[CheckResult]:
    """Run the checks in order; skip those that depend on a failed one."""
    for result in check_configuration(session):
        yield result
        if result.verdict == "failed":
            return
    with session.open() as fleet:
        yield from _run_remote_checks(session, fleet)


def _run_remote_checks(session: CliSession, fleet: Fleet) -> Iterator[CheckResult]:
    for result in check_server(session, fleet):
        yield result
        if result.verdict == "failed" and result.is_fatal:
            return
    yield from check_fleet(fleet)


def _write(result: CheckResult, *, has_colour: bool) -> Iterator[str]:
    verdict = paint(result.verdict, colour_of(result.verdict) if has_colour else None)
    yield f"{verdict}{' ' * (9 - len(result.verdict))}{result.check + ':':<12}{sanitize(result.found)}"
    if result.remedy:
        yield f"         {'':<12}→ {result.remedy}"
