"""The data of CloudEvents that only webhooks send."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct


class CauseOfProblem(Struct, frozen=True, kw_only=True):
    """Why adapters fail: the same adapter, reason and message."""

    id: Annotated[str, Meta(description="The same for the same cause, at any time")]
    adapter: str
    reason: str
    message: Annotated[str, Meta(description="With placeholders for numbers, names and addresses")]


class MemberData(Struct, frozen=True, kw_only=True):
    """A resource that has, or had, the cause."""

    id: str
    kind: str
    name: str
    tenant: str
    href: str
    since: datetime


class ProblemData(Struct, frozen=True, kw_only=True):
    """A problem was opened, has grown, or is over."""

    cause: CauseOfProblem
    example: Annotated[str, Meta(description="The message of one resource, as its adapter gave it")]
    members: Annotated[
        tuple[MemberData, ...],
        Meta(description="The first 20 resources that are new or, when it is over, that have recovered"),
    ]
    new: Annotated[int, Meta(description="How many resources are new since the last message", ge=0)]
    count: Annotated[int, Meta(description="How many have the cause now or, when it is over, had it", ge=0)]
    since: Annotated[datetime, Meta(description="When the first of them began to fail")]


class ProbeData(Struct, frozen=True, kw_only=True):
    """An administrator asked for a message."""

    webhook: str
