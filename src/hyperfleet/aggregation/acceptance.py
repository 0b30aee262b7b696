"""Deciding the outcome of a report: rejected, discarded, stored, or stored and aggregated.

The caller has read the body (`body.read_report`) and found the resource; it writes what the decision says in one
transaction. A discard is a value with a cause, never an error and never silent.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from typing import Final, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.model.condition import TRUE, UNKNOWN, Condition
from hyperfleet.model.report import AVAILABLE, FINALIZED, Discard, Report, StoredReport
from hyperfleet.model.resource import Resource

Outcome = Literal["aggregated", "stored", "discarded", "rejected"]
Cause = Literal["", "GenerationAhead", "StaleGeneration", "OutOfOrder", "UnknownAfterFirst"]

# A clock that was set back: this many discards of about the same skew, over this long. A burst of redelivered old
# bodies is over sooner, so it never rolls an adapter back.
DISCARDS_NEEDED: Final = 3
DISCARD_SPAN: Final = timedelta(seconds=30)
SKEW_TOLERANCE: Final = timedelta(seconds=2)
_MOST_DISCARDS: Final = 16  # remembered; of more of the same skew, the first two and the last say all

_NO_SKEW: Final = timedelta()

_encode_in_order: Final = msgspec.json.Encoder(order="deterministic").encode


class Decision(Struct, frozen=True, gc=False):
    """What to do with a report, and what to keep of it."""

    outcome: Outcome
    cause: Cause
    stored: StoredReport | None  # what is kept from now on; None: nothing was kept and nothing is
    is_replay: bool = False
    is_heartbeat: bool = False
    skew: timedelta = _NO_SKEW  # how far the adapter's clock runs ahead of ours; negative: late or behind
    moves_clock: bool = False  # a discarded Unknown of an adapter of which nothing but Unknown is stored

    @property
    def is_news(self) -> bool:
        """Tell whether the report was accepted and says something new."""
        return self.outcome in ("aggregated", "stored") and not (self.is_replay or self.is_heartbeat)

    @property
    def needs_aggregation(self) -> bool:
        """Tell whether the status must be computed again.

        Also when the report itself is not aggregated: an adapter that says Unknown is not missing, so the clock of
        missing adapters moves, whether the report is stored (row 7) or discarded.
        """
        return self.outcome in ("aggregated", "stored") or self.moves_clock


def decide(
    report: Report,
    resource: Resource,
    stored: StoredReport | None,
    now: datetime,
    id_: str = "",
    digest: bytes | None = None,
) -> Decision:
    """Apply the decision table of docs/semantics.md §2; the first row that matches decides.

    `now` is the one of the write, which the caller keeps from ever going back; `id_` names the report from now on if it
    is accepted and says something new; `digest` is `digest_of(report)`, for a caller that has it.
    """
    effective = effective_time_of(report, now)
    skew = report.observed_time - now if report.observed_time else _NO_SKEW
    if report.observed_generation > resource.generation:  # row 3
        return Decision("rejected", "GenerationAhead", stored, skew=skew)
    is_unknown = report.status_of(AVAILABLE) == UNKNOWN
    is_undecided = is_unknown and not finalizes(report, resource)
    digest = digest or digest_of(report)
    outcome: Outcome = "stored" if is_undecided else "aggregated"  # rows 7 and 8, if none before them matches
    if stored is not None:
        is_same = digest == stored.digest and report.observed_generation == stored.report.observed_generation
        if is_same and effective == stored.effective_time:
            return Decision(outcome, "", _hear_again(stored, stored.effective_time, is_unknown, now), True, skew=skew)
        cause = _discard_cause(report, stored, effective, now, is_undecided)
        if cause:
            kept = _remember_discard(stored, cause, skew, is_unknown, now)
            moves_clock = is_unknown and stored.report.status_of(AVAILABLE) == UNKNOWN
            return Decision("discarded", cause, kept, skew=skew, moves_clock=moves_clock)
        if is_same:
            kept = _hear_again(stored, effective, is_unknown, now)
            return Decision(outcome, "", kept, is_heartbeat=True, skew=skew)
    kept = StoredReport(
        report=replace(report, conditions=_with_transition_times(report, stored, now)),
        effective_time=effective,
        last_heard=now,
        digest=digest,
        is_calm=stored is not None and stored.is_calm,  # until the status is computed, if it must be
        last_unknown=now if is_unknown else None,
        has_verdict=not is_unknown or (stored is not None and stored.has_verdict),
        id=id_,
    )
    return Decision(outcome, "", kept, skew=skew)


def effective_time_of(report: Report, now: datetime) -> datetime:
    """Return the time that orders a report: when it was observed, but never later than it was received."""
    return min(report.observed_time, now) if report.observed_time else now


def finalizes(report: Report, resource: Resource) -> bool:
    """Tell whether the report says that the adapter has cleaned up after the deletion of the resource."""
    return (
        resource.is_deleting
        and report.observed_generation == resource.generation
        and report.status_of(FINALIZED) == TRUE
    )


def digest_of(report: Report) -> bytes:
    """Return a digest of what a report says, whenever it says it.

    The order of keys and of conditions is not part of that; neither is the generation, which is compared beside it.
    """
    conditions = [(each.type, each.status, each.reason, each.message) for each in report.conditions]
    said = (sorted(conditions), report.data, report.metadata)
    return hashlib.blake2b(_encode_in_order(said), digest_size=16).digest()


def _discard_cause(
    report: Report, stored: StoredReport, effective: datetime, now: datetime, is_undecided: bool
) -> Cause:
    """Look for a reason not to accept a report; `is_undecided`: Available is Unknown, and nothing is finalized."""
    if report.observed_generation < stored.report.observed_generation:  # row 4
        return "StaleGeneration"
    if (  # row 5
        effective < stored.effective_time
        and report.observed_generation == stored.report.observed_generation
        and stored.report.status_of(AVAILABLE) != UNKNOWN
        and not _was_set_back(stored.discards, now - effective)
    ):
        return "OutOfOrder"
    if is_undecided and stored.has_verdict:  # row 6
        return "UnknownAfterFirst"
    return ""


def _was_set_back(discards: tuple[Discard, ...], skew: timedelta) -> bool:
    """Tell whether earlier discards show that the adapter's clock was set back, rather than old bodies redelivered."""
    times = [each.time for each in discards if abs(each.skew - skew) <= SKEW_TOLERANCE]
    return len(times) >= DISCARDS_NEEDED and max(times) - min(times) >= DISCARD_SPAN


def _hear_again(stored: StoredReport, effective: datetime, is_unknown: bool, now: datetime) -> StoredReport:
    last_unknown = now if is_unknown else stored.last_unknown
    return replace(stored, effective_time=effective, last_heard=now, last_unknown=last_unknown, discards=())


def _remember_discard(
    stored: StoredReport, cause: Cause, skew: timedelta, is_unknown: bool, now: datetime
) -> StoredReport:
    if cause == "OutOfOrder":
        stored = replace(stored, discards=_add_discard(stored.discards, Discard(now, -skew)), is_calm=False)
    return replace(stored, last_unknown=now) if is_unknown else stored


def _add_discard(discards: tuple[Discard, ...], new: Discard) -> tuple[Discard, ...]:
    """Remember one more discard; when there are too many, drop the one that says least."""
    if len(discards) < _MOST_DISCARDS:
        return (*discards, new)
    alike = [each for each in discards if abs(each.skew - new.skew) <= SKEW_TOLERANCE]
    dropped = alike[2] if len(alike) > 2 else discards[0]
    return (*[each for each in discards if each is not dropped], new)


def _with_transition_times(report: Report, stored: StoredReport | None, now: datetime) -> tuple[Condition, ...]:
    """Keep a condition's transition time while its status stays; otherwise it is now."""
    before = {condition.type: condition for condition in stored.report.conditions} if stored else {}
    return tuple([_stamp(condition, before.get(condition.type), now) for condition in report.conditions])


def _stamp(condition: Condition, before: Condition | None, now: datetime) -> Condition:
    stays = before is not None and before.status == condition.status
    return replace(condition, last_transition_time=before.last_transition_time if before and stays else now)
