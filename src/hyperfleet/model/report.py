"""A report: one adapter's view of one resource at one generation. (A *status* is ours, made from all of them.)"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct, field

from hyperfleet.model.condition import UNKNOWN, Condition, find

AVAILABLE: Final = "Available"
APPLIED: Final = "Applied"
HEALTH: Final = "Health"
FINALIZED: Final = "Finalized"
REQUIRED_CONDITIONS: Final = (AVAILABLE, APPLIED, HEALTH)

MAX_ADAPTER_NAME: Final = 253  # a DNS subdomain's length: names stand in paths and labels
ADAPTER_PATTERN: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


class Report(Struct, frozen=True, gc=False):
    """What an adapter said. Times of conditions are ours, not the adapter's: unset until stored."""

    adapter: str
    observed_generation: int
    conditions: tuple[Condition, ...]
    observed_time: datetime | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def condition(self, type_: str) -> Condition | None:
        """Return the condition of a type, if the adapter sent one."""
        return find(self.conditions, type_)

    def status_of(self, type_: str) -> str:
        """Return the status of a condition; one that was not sent is Unknown."""
        for condition in self.conditions:
            if condition.type == type_:
                return condition.status
        return UNKNOWN


class Discard(Struct, frozen=True, gc=False, array_like=True):
    """An `OutOfOrder` discard, remembered to notice a clock that was set back."""

    time: datetime  # when it was received
    skew: timedelta  # how late its observed time was by then


class StoredReport(Struct, frozen=True, gc=False):
    """The last report we accepted of one adapter for one resource, and what we must remember beside it.

    A heartbeat moves `effective_time` and `last_heard` and nothing else.
    """

    report: Report
    effective_time: datetime  # min(observed, received): orders reports, and a fast clock cannot freeze them
    last_heard: datetime  # when the last stored report, heartbeat or replay came in; staleness counts from here
    digest: bytes = b""  # of what the report says, whenever it says it
    is_calm: bool = False  # being heard again changes nothing but the two times above
    discards: tuple[Discard, ...] = ()  # OutOfOrder discards since the last accepted report
    has_verdict: bool = True  # it has said Available=True or False at some time; Unknown is news only before that
    last_unknown: datetime | None = None  # when it last said Available=Unknown, stored or discarded
    id: str = ""  # made when it was accepted; transitions name it as their cause
