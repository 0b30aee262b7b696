"""The passes of `hyperfleet sentinel`: over what is due, or over the whole fleet with rules of a file.

A pass over what is due follows the rules of the server and costs what is due. One with rules of its own reads every
resource, and remembers in this process when it asked adapters to look at which.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

from hyperfleet.cli.output.printer import print_items
from hyperfleet.cli.sentinel_findings import SHEET, Finding
from hyperfleet.client.errors import ApiError
from hyperfleet.documents import DocumentProblem
from hyperfleet.errors import DocumentError
from hyperfleet.model.kind import Kind, Kinds
from hyperfleet.sentinel.decision import Decision, Trigger, decide
from hyperfleet.sentinel.go_files import is_go_file, load_go_sentinel
from hyperfleet.sentinel.membership import rendezvous
from hyperfleet.sentinel.rule_file import load_rules
from hyperfleet.sentinel.scan import BATCH, DuePage, DueResource, LookResult, LookVerdict, Scan, decode_answer
from hyperfleet.services.ids import new_id
from hyperfleet.services.look_planning import find_problems

if TYPE_CHECKING:
    from hyperfleet.cli.output.formats import Output
    from hyperfleet.cli.session import CliSession
    from hyperfleet.client import Fleet


class Pass(Protocol):
    """Work that is done again and again."""

    @property
    def summary(self) -> str:
        """Return what was done so far."""
        ...

    def preview(self, output: Output) -> None:
        """Show what one pass would do."""
        ...

    async def turn(self) -> float:
        """Make one pass; return the seconds to the next one."""
        ...

    def leave(self) -> None:
        """End the membership."""
        ...


def make_pass(session: CliSession, fleet: Fleet, name: str, file: str | None) -> Pass:
    """Return the work that the options ask for; raises `DocumentError` with every problem of a file."""
    if file is None:
        return DuePass(session, fleet, name)
    from hyperfleet.cli.sentinel_files import GoRules, OwnRules

    text = _read_text(file)
    if is_go_file(text):
        go = load_go_sentinel(text, file)
        _report(session, go.problems)
        if go.sentinel is None:
            raise DocumentError(go.problems)
        return FullPass(session, fleet, name, GoRules(fleet, go.sentinel))
    loaded = load_rules(text, file, find_problems)
    if loaded.rules is None:
        raise DocumentError(loaded.problems)
    return FullPass(session, fleet, name, OwnRules(fleet, loaded.rules, session.now))


# ── what is due ──────────────────────────────────────────────────────────────────────────────────────────────────


class DuePass:
    """Follows the rules of the server."""

    def __init__(self, session: CliSession, fleet: Fleet, name: str) -> None:
        """Take part in the sentinel of that name."""
        self._session = session
        self._fleet = fleet
        self._remote = _RemoteFleet(fleet, name)
        self._kinds = {kind.name: kind for kind in Kinds()}
        self._scan = Scan(self._remote, [kind.plural for kind in Kinds()], _decide)
        self._scan.on_decision = self._report
        self._published = self._looked = 0

    @property
    def summary(self) -> str:
        """Return what was done so far."""
        return f"looked at {self._looked}, asked for {self._published}"

    def preview(self, output: Output) -> None:
        """Show what one pass would do."""
        findings = [
            _finding(kind, due, _decide(due, page.now))
            for kind in Kinds()
            for page in [_page_of(self._fleet.due(kind.plural, limit=500))]
            for due in page.items
        ]
        _print(self._session, output, findings)

    async def turn(self) -> float:
        """Make one pass."""
        return await self._scan.turn()

    def leave(self) -> None:
        """End the membership."""
        self._remote.leave()

    def _report(self, due: DueResource, decision: Decision) -> None:
        self._looked += 1
        if decision.rule is not None:
            self._published += 1
            document = decode_answer(due.answer)
            label = f"{str(document.get('type', '')).lower()}/{document.get('name', due.id)}"
            self._session.write(f"{label} {decision.rule}: {decision.why}")


class _RemoteFleet:
    """The part of the fleet that a member looks at, through the API. One request at a time."""

    def __init__(self, fleet: Fleet, name: str) -> None:
        self._fleet = fleet
        self._name = name
        self._member = member_id()

    async def join(self) -> Sequence[str]:
        return self._fleet.join_sentinel(self._name, self._member).members

    async def due(self, kind: str, limit: int) -> DuePage:
        try:
            return self._ask(kind, limit)
        except ApiError as error:
            if error.code != "UnknownMember":  # frozen for longer than a membership lasts
                raise
        await self.join()
        return self._ask(kind, limit)

    async def look(self, kind: str, verdicts: Sequence[LookVerdict]) -> LookResult:
        looks = [{"id": each.id, "rule": each.rule, "receipt": each.receipt} for each in verdicts]
        done = self._fleet.look(kind, looks, sentinel=self._name)
        return LookResult(done.published, done.skipped)

    def leave(self) -> None:
        leave_quietly(self._fleet, self._name, self._member)

    def _ask(self, kind: str, limit: int) -> DuePage:
        return _page_of(self._fleet.due(kind, limit=limit, sentinel=self._name, member=self._member))


# ── everything ───────────────────────────────────────────────────────────────────────────────────────────────────


class FleetRules(Protocol):
    """Rules that are evaluated on the whole fleet."""

    interval: timedelta

    def findings(self) -> Iterator[Finding]:
        """Yield a decision for each resource, in one pass."""
        ...

    def note(self, finding: Finding) -> None:
        """Remember that adapters were asked to look at a resource."""
        ...


class FullPass:
    """Reads the whole fleet in each pass. Members of the same name share the events."""

    def __init__(self, session: CliSession, fleet: Fleet, name: str, rules: FleetRules) -> None:
        """Take part in the sentinel of that name."""
        self._session = session
        self._fleet = fleet
        self._name = name
        self._rules = rules
        self._member = member_id()
        self._published = self._looked = 0

    @property
    def summary(self) -> str:
        """Return what was done so far."""
        return f"looked at {self._looked}, asked for {self._published}"

    def preview(self, output: Output) -> None:
        """Show what one pass would do."""
        _print(self._session, output, self._rules.findings())

    async def turn(self) -> float:
        """Make one pass."""
        members: Sequence[str] = self._fleet.join_sentinel(self._name, self._member).members
        batch: list[Finding] = []
        for finding in self._rules.findings():
            self._looked += 1
            if finding.rule is not None and rendezvous(finding.id, members or [self._member]) == self._member:
                batch.append(finding)
            if len(batch) >= BATCH:
                members = self._send(batch)
                batch = []
        if batch:
            self._send(batch)
        return self._rules.interval.total_seconds()

    def leave(self) -> None:
        """End the membership."""
        leave_quietly(self._fleet, self._name, self._member)

    def _send(self, batch: Sequence[Finding]) -> Sequence[str]:
        for kind in Kinds():
            own = [each for each in batch if each.kind.name == kind.name]
            if own:
                looks = [{"id": each.id, "rule": each.rule, "data": each.data} for each in own]
                self._published += self._fleet.look(kind.plural, looks, sentinel=self._name).published
            for each in own:
                self._rules.note(each)
                self._session.write(f"{each.label} {each.rule}: {each.why}")
        return self._fleet.join_sentinel(self._name, self._member).members


# ── steps ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _print(session: CliSession, output: Output, findings: Iterable[Finding]) -> None:
    if not print_items(session, output, SHEET, findings):
        session.message("Nothing is due.")


def member_id() -> str:
    """Return a name for this process."""
    host = "".join(each if each.isalnum() else "-" for each in socket.gethostname()).strip("-")[:30]
    return new_id(host or "member")


def leave_quietly(fleet: Fleet, name: str, member: str) -> None:
    """End a membership; if the server is away, it expires by itself."""
    from hyperfleet.client.errors import FleetError

    try:
        fleet.leave_sentinel(name, member)
    except FleetError:
        return


def _decide(due: DueResource, now: datetime) -> Decision:
    return decide(decode_answer(due.answer), due.triggers, now)


def _page_of(page: Any) -> DuePage:
    items = tuple([_due_of(each) for each in page.items])
    return DuePage(items, page.time, page.next)


def _due_of(item: Any) -> DueResource:
    answer = bytes(item.resource)
    triggers = [
        Trigger(each.name, each.state, timedelta(seconds=each.age_seconds), each.attempts, each.when)
        for each in item.rules
    ]
    return DueResource(str(decode_answer(answer)["id"]), answer, item.receipt, item.due_since, tuple(triggers))


def _finding(kind: Kind, due: DueResource, decision: Decision) -> Finding:
    name = str(decode_answer(due.answer).get("name", ""))
    return Finding(kind, due.id, name, decision.rule, decision.why)


def _read_text(file: str) -> str:
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return raw.decode("utf-8")
    except OSError as error:
        raise click.UsageError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise click.UsageError(f"{file} is not UTF-8 text: {error}") from error


def _report(session: CliSession, problems: Sequence[DocumentProblem]) -> None:
    for problem in problems:
        if problem.level == "warning":
            session.message(str(problem))
