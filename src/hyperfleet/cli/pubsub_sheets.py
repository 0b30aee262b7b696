"""The columns of subscriptions and dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from hyperfleet.cli.output.ages import format_age
from hyperfleet.cli.output.sheet import Sheet
from hyperfleet.cli.output.table import NONE, Column

if TYPE_CHECKING:
    from hyperfleet.client import DeadLetter, Subscription

_SUBSCRIPTIONS: Final = (
    Column("NAME"),
    Column("TOPIC"),
    Column("WAITING"),
    Column("IN FLIGHT"),
    Column("DEAD LETTERS"),
    Column("OLDEST"),
    Column("TENANTS", is_elastic=True),
)
_DEAD_LETTERS: Final = (
    Column("EVENT"),
    Column("ABOUT"),
    Column("REASON"),
    Column("ATTEMPTS"),
    Column("GIVEN UP"),
    Column("TENANT", is_wide=True),
    Column("KEY", is_wide=True),
    Column("ERROR", is_elastic=True),
)


def subscription_sheet(now: datetime) -> Sheet[Subscription]:
    """Return the sheet of subscriptions."""

    def cells(each: Subscription) -> Sequence[str]:
        return (
            each.name,
            each.topic,
            *(NONE if count is None else str(count) for count in (each.waiting, each.in_flight, each.dead_letters)),
            format_age(each.oldest, now) if each.oldest else NONE,
            "all" if each.tenants is None else ", ".join(each.tenants) or NONE,
        )

    return Sheet("Subscription", _SUBSCRIPTIONS, cells, lambda each: each.raw, lambda each: f"subscription/{each.name}")


def dead_letter_sheet(now: datetime) -> Sheet[DeadLetter]:
    """Return the sheet of dead letters."""

    def cells(each: DeadLetter) -> Sequence[str]:
        event = each.event
        return (
            event.id,
            event.subject or NONE,
            event.reason or NONE,
            str(each.attempts),
            f"{format_age(each.time, now)} ago" if each.time else NONE,
            event.tenant or NONE,
            each.key,
            each.error or NONE,
        )

    return Sheet("DeadLetter", _DEAD_LETTERS, cells, lambda each: each.raw, lambda each: f"event/{each.event.id}")
