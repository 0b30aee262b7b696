"""`hyperfleet rules apply` and `rollback`: put another policy in force, after a look at what that changes."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from hyperfleet.cli import exits
from hyperfleet.cli.command import CliCommand, bundle, connected
from hyperfleet.cli.comparison import compare_texts
from hyperfleet.cli.confirmation import confirm
from hyperfleet.cli.manifests import name_file, read_text
from hyperfleet.cli.output.words import count_of
from hyperfleet.cli.rules_simulate import place_faults, show_progress, sum_up
from hyperfleet.cli.sanitizing import sanitize
from hyperfleet.cli.session import CliSession, pass_session
from hyperfleet.cli.ticker import Ticker

if TYPE_CHECKING:
    from hyperfleet.client import Fleet, Policy, PolicyCheck

_CODES = {
    exits.FALSE: "the question was not answered with yes; nothing was changed",
    exits.USAGE: "the policy is wrong or cannot be read; nothing was changed",
    exits.REFUSED: "somebody else changed the policy meanwhile; nothing was changed",
    exits.DENIED: "only an admin who sees every tenant may do this",
}


class Manner(Struct, frozen=True):
    """How to go about it."""

    is_dry_run: bool = False
    skips_simulation: bool = False
    yes: bool = False


_manner = bundle(
    "manner",
    Manner,
    click.option("--dry-run", "is_dry_run", is_flag=True, help="Change nothing; show what would be different."),
    click.option("--no-simulate", "skips_simulation", is_flag=True, help="Do not count what it would change."),
    click.option("-y", "--yes", is_flag=True, help="Ask nothing."),
)


@click.command(
    "apply",
    cls=CliCommand,
    examples=[
        ("put a policy in force, after a question", "hyperfleet rules apply -f policy.yaml"),
        ("see first what it would change", "hyperfleet rules apply -f policy.yaml --dry-run"),
        ("from a pipeline, without a question", "hyperfleet rules apply -f policy.yaml --yes"),
        (
            "change what is in force: write it to a file, edit that, apply it",
            "hyperfleet rules versions 3 > policy.yaml; hyperfleet rules apply -f policy.yaml",
        ),
    ],
    codes=_CODES,
)
@click.option("-f", "--filename", "file", required=True, metavar="FILE|-", help="The policy; - for standard input.")
@_manner
@connected
@pass_session
def apply(session: CliSession, file: str, manner: Manner) -> None:
    """Put a policy in force: check it, show what is different, ask, and replace the policy of the server.

    The server checks it as it checks a policy file. Every status is then computed again, a few at a time. The policy
    stays in force when servers restart. One that is started with a policy file that changed since it was last read puts
    that file in force, so keep the file and what you apply the same.
    """
    text = read_text(file)
    with session.open() as fleet:
        proposal = _Proposal(session, fleet, text, name_file(file), manner)
        if proposal.is_accepted():
            _report(session, fleet.put_policy(text, replaces=proposal.present.version))


@click.command(
    "rollback",
    cls=CliCommand,
    examples=[
        ("go back to a version that `rules versions` lists", "hyperfleet rules rollback 3"),
        ("see first what that would change", "hyperfleet rules rollback 3 --dry-run"),
        ("… without a question", "hyperfleet rules rollback 3 --yes"),
    ],
    codes={**_CODES, exits.NOT_FOUND: "there is no such version"},
)
@click.argument("version", type=click.IntRange(min=1), metavar="N")
@_manner
@connected
@pass_session
def rollback(session: CliSession, version: int, manner: Manner) -> None:
    """Go back to an earlier version of the policy.

    Its text becomes a new version, so nothing is lost and a rollback can be rolled back. A version that the server can
    no longer compile is refused with its errors.
    """
    with session.open() as fleet:
        text = fleet.policy_version(version).text
        proposal = _Proposal(session, fleet, text, f"version {version}", manner)
        if proposal.is_accepted():
            _report(session, fleet.rollback_policy(version, replaces=proposal.present.version))


class _Proposal:
    """A policy that may replace the one in force."""

    def __init__(self, session: CliSession, fleet: Fleet, text: str, name: str, manner: Manner) -> None:
        self._session = session
        self._fleet = fleet
        self._text = text
        self._name = name
        self._manner = manner
        self.present: Policy = fleet.policy()

    def is_accepted(self) -> bool:
        """Check the policy, show what it changes and ask; end the program if somebody says no."""
        check, session = self._check(), self._session
        for warning in check.warnings:
            session.message(f"Warning: {self._name}:{warning}")
        if not check.changes:
            session.message(f"Nothing to change: version {self.present.version}, which is in force, says the same.")
            return False
        self._show_difference()
        if not self._manner.skips_simulation:
            session.message(self._simulate())
        if self._manner.is_dry_run:
            session.message("Dry run: nothing was changed.")
            return False
        if not self._manner.yes and not confirm(session, f"Replace version {self.present.version} of the policy?"):
            session.message("Nothing was changed.")
            sys.exit(exits.FALSE)
        return True

    def _check(self) -> PolicyCheck:
        from hyperfleet.client.errors import Invalid

        try:
            return self._fleet.check_policy(self._text, replaces=self.present.version)
        except Invalid as error:
            if error.code != "InvalidPolicy":
                raise
            raise place_faults(self._name, error) from error

    def _show_difference(self) -> None:
        before, after = ([sanitize(line) for line in text.splitlines()] for text in (self.present.text, self._text))
        lines = compare_texts("\n".join(before), "\n".join(after), has_colour=self._session.has_colour)
        self._session.write_all(lines)

    def _simulate(self) -> str:
        """Say how many resources it would change; that the server has no time for this stops nobody."""
        from hyperfleet.client.errors import Unavailable

        try:
            with Ticker() as ticker:
                return sum_up(self._fleet.simulate(self._text, on_progress=partial(show_progress, ticker), limit=1))
        except Unavailable as error:
            return f"What it would change is not known: {error}"


def _report(session: CliSession, policy: Policy) -> None:
    session.write(f"policy version {policy.version} is in force")
    remaining = policy.recomputation.remaining
    if remaining:
        session.message(f"To be computed again: {count_of(remaining, 'resource')}.")
