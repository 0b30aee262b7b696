"""Deciding what becomes of a report: rejected, discarded, stored, or stored and aggregated.

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
from hyperfleet.model.json_value import is_same
from hyperfleet.model.report import AVAILABLE, FINALIZED, Report, StoredReport
from hyperfleet.model.resource import Resource

Outcome = Literal["aggregated", "stored", "discarded", "rejected"]
Cause = Literal["", "GenerationAhead", "StaleGeneration", "OutOfOrder", "UnknownAfterFirst"]

# After this many reports in a row that seem too old, the adapter's clock was set back: arrival order wins.
OUT_OF_ORDER_LIMIT: Final = 3
# Bodies of one generation remembered, so that a broker's late redelivery is known for what it is.
_REMEMBERED_BODIES: Final = 16

_NO_SKEW: Final = timedelta()

_encode_in_order: Final = msgspec.json.Encoder(order="deterministic").encode


class Decision(Struct, frozen=True, gc=False):
    """What to do with a report, and what to keep of it."""

    outcome: Outcome
    cause: Cause
    stored: StoredReport | None  # what is kept from now on; None: nothing was kept and nothing is
    is_replay: bool = False
    skew: timedelta = _NO_SKEW  # how far the adapter's clock runs ahead of ours; negative: late or behind
    moves_clock: bool = False  # a discarded Unknown of an adapter of which nothing but Unknown is stored

    @property
    def is_news(self) -> bool:
        """Tell whether the report was accepted, and not for the second time."""
        return self.outcome in ("aggregated", "stored") and not self.is_replay

    @property
    def needs_aggregation(self) -> bool:
        """Tell whether the status must be computed anew.

        Also when the report itself is not aggregated: an adapter that says Unknown is not missing, so the clock of
        missing adapters moves, be the report stored (row 7) or discarded.
        """
        return self.outcome in ("aggregated", "stored") or self.moves_clock


def decide(report: Report, resource: Resource, stored: StoredReport | None, now: datetime, id_: str = "") -> Decision:
    """Apply the decision table of docs/semantics.md §2; the first row that matches decides.

    `now` is the one of the write, which the caller keeps from ever going back; `id_` is what the report is called from
    now on if it is accepted, and not for the second time.
    """
    observed = report.observed_time
    effective = min(observed, now) if observed else now
    skew = observed - now if observed else _NO_SKEW
    if report.observed_generation > resource.generation:  # row 3
        return Decision("rejected", "GenerationAhead", stored, skew=skew)
    is_unknown = report.status_of(AVAILABLE) == UNKNOWN
    is_undecided = is_unknown and not finalizes(report, resource)
    digest = _digest(report, effective) if observed else ""
    outcome: Outcome = "stored" if is_undecided else "aggregated"  # rows 7 and 8, if none before them matches
    if stored is not None:
        if _is_replay(report, stored, effective, digest):
            return Decision(outcome, "", _hear_again(stored, is_unknown, now), True, skew)
        cause = _discard_cause(report, stored, effective, is_undecided)
        if cause:
            kept = _remember_discard(stored, cause, is_unknown, now)
            moves_clock = is_unknown and stored.report.status_of(AVAILABLE) == UNKNOWN
            return Decision("discarded", cause, kept, skew=skew, moves_clock=moves_clock)
    return Decision(outcome, "", _keep(report, stored, effective, now, digest, is_unknown, id_), skew=skew)


def finalizes(report: Report, resource: Resource) -> bool:
    """Tell whether the report says that the adapter has cleaned up after the deletion of the resource."""
    return (
        resource.is_deleting
        and report.observed_generation == resource.generation
        and report.status_of(FINALIZED) == TRUE
    )


def _is_replay(report: Report, stored: StoredReport, effective: datetime, digest: str) -> bool:
    """Tell whether this very body was already accepted at this effective time, be it the last one or not.

    A body that does not say when it was observed is so only if it comes twice in one write: its time is ours.
    """
    if report.observed_time is None:
        return effective == stored.effective_time and _is_same_body(report, stored.report)
    return digest in stored.accepted


def _discard_cause(report: Report, stored: StoredReport, effective: datetime, is_undecided: bool) -> Cause:
    """Look for a reason not to take a report in; `is_undecided`: Available is Unknown, and nothing is finalized."""
    if report.observed_generation < stored.report.observed_generation:  # row 4
        return "StaleGeneration"
    if (  # row 5
        effective < stored.effective_time
        and report.observed_generation == stored.report.observed_generation
        and stored.out_of_order < OUT_OF_ORDER_LIMIT
        and stored.report.status_of(AVAILABLE) != UNKNOWN
    ):
        return "OutOfOrder"
    if is_undecided and stored.has_verdict:  # row 6
        return "UnknownAfterFirst"
    return ""


def _keep(
    report: Report,
    stored: StoredReport | None,
    effective: datetime,
    now: datetime,
    digest: str,
    is_unknown: bool,
    id_: str,
) -> StoredReport:
    """Return what is stored of an accepted report; its conditions get their transition times here."""
    same_generation = stored is not None and stored.report.observed_generation == report.observed_generation
    earlier = stored.accepted if stored and same_generation else ()
    return StoredReport(
        report=replace(report, conditions=_with_transition_times(report, stored, now)),
        effective_time=effective,
        last_heard=now,
        accepted=(*earlier, digest)[-_REMEMBERED_BODIES:] if digest else earlier,
        last_unknown=now if is_unknown else None,
        has_verdict=not is_unknown or (stored is not None and stored.has_verdict),
        id=id_,
    )


def _hear_again(stored: StoredReport, is_unknown: bool, now: datetime) -> StoredReport:
    last_unknown = now if is_unknown else stored.last_unknown
    return replace(stored, last_heard=now, last_unknown=last_unknown, out_of_order=0)


def _remember_discard(stored: StoredReport, cause: Cause, is_unknown: bool, now: datetime) -> StoredReport:
    return replace(
        stored,
        out_of_order=stored.out_of_order + (cause == "OutOfOrder"),
        last_unknown=now if is_unknown else stored.last_unknown,
    )


def _with_transition_times(report: Report, stored: StoredReport | None, now: datetime) -> tuple[Condition, ...]:
    """Keep a condition's transition time while its status stays; otherwise it is now."""
    conditions, known = report.conditions, stored.report.conditions if stored else ()
    if len(conditions) == len(known) and all(map(_is_said_again, conditions, known)):
        return known  # a heartbeat: nothing needs to be stamped
    before = {condition.type: condition for condition in known}
    return tuple([_stamp(condition, before.get(condition.type), now) for condition in conditions])


def _is_said_again(condition: Condition, before: Condition) -> bool:
    return (
        condition.type == before.type
        and condition.status == before.status
        and condition.reason == before.reason
        and condition.message == before.message
        and condition.observed_generation == before.observed_generation
    )


def _stamp(condition: Condition, before: Condition | None, now: datetime) -> Condition:
    stays = before is not None and before.status == condition.status
    return replace(condition, last_transition_time=before.last_transition_time if before and stays else now)


def _is_same_body(report: Report, stored: Report) -> bool:
    """Tell whether a report says what a stored one says, whose conditions have their times already."""
    unstamped = tuple([replace(condition, last_transition_time=None) for condition in stored.conditions])
    return is_same(report, replace(stored, conditions=unstamped))


def _digest(report: Report, effective: datetime) -> str:
    """Name a body at an effective time by its content, whatever the order of its keys."""
    return hashlib.blake2b(_encode_in_order((effective, report)), digest_size=12).hexdigest()
