"""What the answer of the API to a report means, and what the API has of this adapter. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from hyperfleet.adapter.api_calls import ApiAnswer
from hyperfleet.adapter.reasons import NOT_MET
from hyperfleet.adapter.runs import PreviousReport

Verdict: TypeAlias = Literal[
    "accepted",  # stored or aggregated; a discard is also one, as the API knows better already
    "refused",  # 400: the report is wrong, and a repeat does not mend it
    "unauthorized",  # 401, also with a token that was read again
    "forbidden",  # 403: this adapter cannot work until someone changes something
    "gone",  # 404: the resource does not exist; objects are kept, as this may be another server
    "ahead",  # 409: the API has not seen this generation, so what was read is not what is there; read again
    "later",  # 429, 503, or no answer: deliver the event again, after `retry_after` seconds if given
]
_AHEAD: Final = "GenerationAhead"


class ReportAnswer(Struct, frozen=True):
    """What came of a report."""

    verdict: Verdict
    message: str = ""
    retry_after: float | None = None


def judge(answer: ApiAnswer) -> ReportAnswer:
    """Return what an answer to a report means."""
    if answer.is_success:
        return ReportAnswer("accepted")
    return ReportAnswer(_verdict(answer), answer.describe(), answer.retry_after)


def _verdict(answer: ApiAnswer) -> Verdict:
    match answer.status:
        case 401:
            return "unauthorized"
        case 403:
            return "forbidden"
        case 404:
            return "gone" if answer.is_gone else "refused"
        case 409:
            return "ahead" if answer.problem.get("code") == _AHEAD else "later"
        case 408 | 429:
            return "later"
    return "refused" if 400 <= answer.status < 500 else "later"


def read_previous(statuses: Mapping[str, Any], adapter: str) -> PreviousReport:
    """Find the last report of an adapter in the statuses of a resource, as our API or the Go API lists them."""
    listed = statuses.get("adapterStatuses") or statuses.get("items")
    entries = [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
    mine = next((each for each in entries if each.get("adapter") == adapter), None)
    if mine is None:
        return PreviousReport()
    conditions = mine.get("conditions")
    available = next(
        (
            each
            for each in (conditions if isinstance(conditions, list) else ())
            if isinstance(each, Mapping) and each.get("type") == "Available"
        ),
        {},
    )
    was_available = available.get("status") == "True" or available.get("reason") == NOT_MET
    return PreviousReport(exists=True, was_available=was_available)
