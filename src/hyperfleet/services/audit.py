"""What becomes of writes, noted where they are committed, for the audit log. Who asked for them is the API's to add.

Every command goes through the committer, so noting them there misses none, whichever way a request came in. Commands of
our own loops are nobody's request and are not noted.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, Final, Protocol, TypeVar

from msgspec import UNSET, Struct, UnsetType

from hyperfleet.ports import Record
from hyperfleet.services.commands import Command, Placeable
from hyperfleet.services.committer import Committer
from hyperfleet.services.resources import Create
from hyperfleet.services.results import Refusal, Reported, Target, Written

R = TypeVar("R", bound=Placeable)


class Journal(Protocol):
    """Where audit records are kept."""

    def write(self, lines: Sequence[bytes]) -> None:
        """Keep records, each JSON on one line, before anybody is answered; never raise, whatever happens."""
        ...

    def reopen(self) -> None:
        """Begin anew where the records are to be now: somebody may have moved the file away."""
        ...


class Object(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a write was about."""

    kind: str
    id: str = ""
    parent_id: str | None = None
    name: str = ""
    tenant: str = ""


class Outcome(Struct, frozen=True, omit_defaults=True):
    """What became of one report."""

    adapter: str
    outcome: str = ""
    reason: str = ""


class Act(Struct, frozen=True):
    """One write that a request asked for, and what became of it; with a code it was refused or has failed."""

    target: Object | UnsetType = UNSET
    code: str = ""
    generation: int | UnsetType = UNSET
    revision: int | UnsetType = UNSET
    reports: tuple[Outcome, ...] = ()
    is_open: bool = False  # nobody waited for what became of it: it may yet be done
    is_dry_run: bool = False  # it was only tried


# What the request that is under way has done so far; None: nobody keeps a record of it.
ACTS: Final[ContextVar[list[Act] | None]] = ContextVar("acts", default=None)


class WitnessedCommitter(Committer):
    """A committer that tells the audit log what became of each command."""

    async def submit(self, command: Command[R]) -> R:
        """Write a command, note what became of it, and return its result."""
        try:
            result = await super().submit(command)
        except CancelledError:
            _note_left([command])
            raise
        _note(command, result)
        return result

    async def submit_all(self, commands: Sequence[Command[R]]) -> list[R | BaseException]:
        """Write several commands and note what became of each."""
        try:
            results = await super().submit_all(commands)
        except CancelledError:
            _note_left(commands)
            raise
        for command, result in zip(commands, results, strict=True):
            _note(command, result)
        return results


def note_refusal(target: Target | None, code: str) -> None:
    """Note what never became a command: one entry of many in a request."""
    acts = ACTS.get()
    if acts is not None:
        acts.append(Act(UNSET if target is None else _describe_target(target), code))


def note_policy(version: int) -> None:
    """Note that a version of the policy was put in force, or that it is in force already."""
    acts = ACTS.get()
    if acts is not None:
        acts.append(Act(Object("Policy", str(version))))


def note_dry_run() -> None:
    """Note that a request has only tried something."""
    acts = ACTS.get()
    if acts is not None:
        acts.append(Act(is_dry_run=True))


def _note_left(commands: Sequence[Command[Any]]) -> None:
    """Note commands that nobody waits for any more."""
    acts = ACTS.get()
    if acts is not None:
        acts.extend([Act(_aim_of(command), is_open=True) for command in commands])


def _note(command: Command[Any], result: object) -> None:
    acts = ACTS.get()
    if acts is not None:
        acts.append(_describe(command, result))


def _describe(command: Command[Any], result: object) -> Act:
    match result:
        case Reported(verdicts=verdicts):
            outcomes = tuple([Outcome(each.adapter, each.outcome, each.cause) for each in verdicts])
            return _describe_reported(command, result, outcomes)
        case Written(record=record):
            return _describe_written(record, ())
        case Refusal(code=code):
            return Act(_aim_of(command), code)
        case _:
            return Act(_aim_of(command), getattr(result, "code", "InternalError"))  # an error of ours, or any other


def _describe_reported(command: Command[Any], reported: Reported, outcomes: tuple[Outcome, ...]) -> Act:
    target, heard = getattr(command, "target", None), reported.heard
    if reported.record is not None:
        return _describe_written(reported.record, outcomes)
    if heard is None or not isinstance(target, Target):
        return Act(_aim_of(command), reports=outcomes)
    described = Object(target.kind.name, target.id, heard.parent_id, heard.name, heard.tenant)
    return Act(described, revision=heard.revision, reports=outcomes)


def _describe_written(record: Record, outcomes: tuple[Outcome, ...]) -> Act:
    resource = record.resource
    target = Object(resource.kind, resource.id, resource.parent_id, resource.name, resource.tenant)
    return Act(target, "", resource.generation, record.revision, outcomes)


def _aim_of(command: Command[Any]) -> Object | UnsetType:
    """Return what a command was meant for; what was not created has no id."""
    if isinstance(command, Create):
        return Object(command.kind.name, "", command.parent_id, command.name)
    target: Target | None = getattr(command, "target", None)
    return UNSET if target is None else _describe_target(target)


def _describe_target(target: Target) -> Object:
    return Object(target.kind.name, target.id, target.parent_id)
