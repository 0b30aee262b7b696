"""Records the result of each write for the audit log, where it is committed. The API adds the caller.

Every command goes through the committer, so none is missed, whichever route a request takes. Commands of our own loops
belong to no request and are not recorded.
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
        """Keep records, each JSON on one line, before the request is answered. Never raises."""
        ...

    def reopen(self) -> None:
        """Open the file again: it may have been rotated."""
        ...


class AuditTarget(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a write was about."""

    kind: str
    id: str = ""
    parent_id: str | None = None
    name: str = ""
    tenant: str = ""


class AuditedReport(Struct, frozen=True, omit_defaults=True):
    """The outcome of one report."""

    adapter: str
    outcome: str = ""
    reason: str = ""


class AuditedWrite(Struct, frozen=True):
    """One write of a request and its result; with a `code` it was refused or failed."""

    target: AuditTarget | UnsetType = UNSET
    code: str = ""
    generation: int | UnsetType = UNSET
    revision: int | UnsetType = UNSET
    reports: tuple[AuditedReport, ...] = ()
    is_open: bool = False  # the caller left before the result: it may yet be done
    is_dry_run: bool = False


# What the current request has written so far; None: it is not audited.
AUDITED_WRITES: Final[ContextVar[list[AuditedWrite] | None]] = ContextVar("audited_writes", default=None)


class AuditedCommitter(Committer):
    """A committer that records the result of each command for the audit log."""

    async def submit(self, command: Command[R]) -> R:
        """Write a command, record and return its result."""
        try:
            result = await super().submit(command)
        except CancelledError:
            _note_abandoned([command])
            raise
        _note(command, result)
        return result

    async def submit_all(self, commands: Sequence[Command[R]]) -> list[R | BaseException]:
        """Write several commands and record the result of each."""
        try:
            results = await super().submit_all(commands)
        except CancelledError:
            _note_abandoned(commands)
            raise
        for command, result in zip(commands, results, strict=True):
            _note(command, result)
        return results


def note_refusal(target: Target | None, code: str) -> None:
    """Record an entry of a batch request that was refused before it became a command."""
    writes = AUDITED_WRITES.get()
    if writes is not None:
        writes.append(AuditedWrite(UNSET if target is None else _describe_target(target), code))


def note_policy(version: int) -> None:
    """Record that a version of the policy was put in force, or was in force already."""
    writes = AUDITED_WRITES.get()
    if writes is not None:
        writes.append(AuditedWrite(AuditTarget("Policy", str(version))))


def note_dry_run() -> None:
    """Record that a request was a dry run."""
    writes = AUDITED_WRITES.get()
    if writes is not None:
        writes.append(AuditedWrite(is_dry_run=True))


def _note_abandoned(commands: Sequence[Command[Any]]) -> None:
    """Record commands whose caller has left."""
    writes = AUDITED_WRITES.get()
    if writes is not None:
        writes.extend([AuditedWrite(_target_of(command), is_open=True) for command in commands])


def _note(command: Command[Any], result: object) -> None:
    writes = AUDITED_WRITES.get()
    if writes is not None:
        writes.append(_describe(command, result))


def _describe(command: Command[Any], result: object) -> AuditedWrite:
    match result:
        case Reported(results=results):
            outcomes = tuple([AuditedReport(each.adapter, each.outcome, each.cause) for each in results])
            return _describe_reported(command, result, outcomes)
        case Written(record=record):
            return _describe_written(record, ())
        case Refusal(code=code):
            return AuditedWrite(_target_of(command), code)
        case _:
            return AuditedWrite(_target_of(command), getattr(result, "code", "InternalError"))


def _describe_reported(command: Command[Any], reported: Reported, outcomes: tuple[AuditedReport, ...]) -> AuditedWrite:
    target, heartbeat = getattr(command, "target", None), reported.heartbeat
    if reported.record is not None:
        return _describe_written(reported.record, outcomes)
    if heartbeat is None or not isinstance(target, Target):
        return AuditedWrite(_target_of(command), reports=outcomes)
    described = AuditTarget(target.kind.name, target.id, heartbeat.parent_id, heartbeat.name, heartbeat.tenant)
    return AuditedWrite(described, revision=heartbeat.revision, reports=outcomes)


def _describe_written(record: Record, outcomes: tuple[AuditedReport, ...]) -> AuditedWrite:
    resource = record.resource
    target = AuditTarget(resource.kind, resource.id, resource.parent_id, resource.name, resource.tenant)
    return AuditedWrite(target, "", resource.generation, record.revision, outcomes)


def _target_of(command: Command[Any]) -> AuditTarget | UnsetType:
    """Return the target of a command; a resource that was not created has no id."""
    if isinstance(command, Create):
        return AuditTarget(command.kind.name, "", command.parent_id, command.name)
    target: Target | None = getattr(command, "target", None)
    return UNSET if target is None else _describe_target(target)


def _describe_target(target: Target) -> AuditTarget:
    return AuditTarget(target.kind.name, target.id, target.parent_id)
