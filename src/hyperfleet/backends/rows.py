"""Converts values to columns and back: what both SQL stores share.

Structures are stored as JSON text; what a query filters by has its own column. Nothing here runs SQL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
from msgspec.structs import replace

from hyperfleet.model.event import Transition
from hyperfleet.model.phase import PHASE_TRAITS, WORST_FIRST, Phase
from hyperfleet.model.report import StoredReport
from hyperfleet.model.resource import Resource
from hyperfleet.model.status import Status
from hyperfleet.ports import AdapterRecord, CauseKind, RecordedTransition, StatusCause
from hyperfleet.sentinel.schedule import NO_LOOKS, LookHistory

# The counters of an adapter: their names in `AdapterCounts`, and their columns in `adapters`.
COUNTERS: Final[Mapping[str, str]] = {
    "aggregated": "aggregated",
    "stored": "stored",
    "replayed": "replayed",
    "StaleGeneration": "stale_generation",
    "OutOfOrder": "out_of_order",
    "UnknownAfterFirst": "unknown_after_first",
    "GenerationAhead": "generation_ahead",
}

encode: Final = msgspec.json.Encoder().encode
decode_resource: Final = msgspec.json.Decoder(Resource).decode
decode_status: Final = msgspec.json.Decoder(Status).decode
_decode_looks: Final = msgspec.json.Decoder(LookHistory).decode
_decode_report: Final = msgspec.json.Decoder(StoredReport).decode

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
FIRST_INSTANT: Final = _EPOCH  # before anything that is stored


def to_micros(instant: datetime) -> int:
    """Return an instant as microseconds since 1970, exactly."""
    return (instant - _EPOCH) // _MICROSECOND


def in_micros(duration: timedelta) -> int:
    """Return a duration as whole microseconds."""
    return duration // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """Return the instant of a number of microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=micros)


def decode_report(
    body: str | bytes, effective_time: datetime, last_heard: datetime, digest: bytes = b"", is_calm: bool = False
) -> StoredReport:
    """Decode a report from its body and from the columns that heartbeats update or compare."""
    return replace(
        _decode_report(body), effective_time=effective_time, last_heard=last_heard, digest=digest, is_calm=is_calm
    )


def encode_looks(history: LookHistory) -> str | None:
    """Encode what is remembered of looks; None: nothing."""
    return None if history == NO_LOOKS else encode(history).decode()


def decode_looks(text: str | None) -> LookHistory:
    """Decode what is remembered of looks."""
    return NO_LOOKS if text is None else _decode_looks(text)


def phase_of(severity: int) -> Phase:
    """Return the phase of a severity."""
    return WORST_FIRST[severity]


def severity_of(status: Status) -> int:
    """Return the rank of a status, the worst first."""
    return PHASE_TRAITS[status.phase].severity


def counts_in_order(counts: Mapping[str, int]) -> list[int]:
    """Return counts in the order of `COUNTERS`."""
    return [counts.get(name, 0) for name in COUNTERS]


class AdapterRow(msgspec.Struct, frozen=True):
    """One adapter of one tenant, as stored; `counts` in the order of `COUNTERS`."""

    name: str
    last_seen: datetime
    skew_us: int
    counts: tuple[int, ...]
    last_discard: str


def merge_adapters(rows: Iterable[AdapterRow]) -> tuple[AdapterRecord, ...]:
    """Merge the rows of each adapter over all tenants: counters add up, other columns are of the latest row."""
    merged: dict[str, AdapterRecord] = {}
    for row in sorted(rows, key=lambda row: (row.name, row.last_seen)):
        before = merged.get(row.name)
        counts = dict(zip(COUNTERS, row.counts, strict=True))
        if before is not None:
            counts = {name: count + before.counts[name] for name, count in counts.items()}
        discard = row.last_discard or (before.last_discard if before else "")
        skew = timedelta(microseconds=row.skew_us)
        merged[row.name] = AdapterRecord(row.name, row.last_seen, skew, counts, discard)
    return tuple(merged.values())


# A position and an ordinal greater than any, so that one form of the statement suffices, with an index.
BEYOND_ALL: Final = (2**63 - 1, 2**31 - 1)


class TransitionRow(msgspec.Struct, frozen=True):
    """A row of `transitions`, with the columns in the order that statements select them."""

    position: int
    subject: str
    before: str | None
    after: str | None
    time: datetime
    since: datetime | None  # when the state before it began
    reason: str
    message: str
    cause: CauseKind
    ref: str
    policy: str
    ordinal: int

    def recorded(self) -> RecordedTransition:
        """Return the transition."""
        transition = Transition(self.subject, self.before, self.after, self.time, self.reason, self.message)
        cause = StatusCause(self.cause, self.ref)
        return RecordedTransition(self.position, transition, cause, self.policy, self.ordinal, self.since)
