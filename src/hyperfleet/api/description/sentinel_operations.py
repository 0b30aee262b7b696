"""The operations of sentinels: what is due, what was decided, who shares the work."""

from __future__ import annotations

from typing import Any, Final

from hyperfleet.api.description.filters import LIMIT
from hyperfleet.api.description.kind_paths import KindPaths
from hyperfleet.api.description.operations import Operation, Parameter, RequestBody, Success
from hyperfleet.api.description.request_schemas import ADAPTER_NAME
from hyperfleet.api.description.resource_operations import IF_NONE_MATCH, NOT_MODIFIED, WRITING
from hyperfleet.api.sentinel_bodies import MAX_LOOKS, MAX_RECEIPT
from hyperfleet.api.sentinel_shapes import DueList, LookedAnswer, MemberList, SentinelList
from hyperfleet.api.wire import BASE
from hyperfleet.events.looking import DEFAULT_SENTINEL

_TAG: Final = "Sentinel"
_ONE: Final = f"{BASE}/sentinels/{{name}}/members/{{member}}"
_PATH: Final = (
    Parameter("name", "path", "The name of a sentinel.", ADAPTER_NAME, example=DEFAULT_SENTINEL),
    Parameter("member", "path", "The id of a process that takes part, unique among them.", ADAPTER_NAME, example="a"),
)
_DUE: Final = (
    LIMIT,
    Parameter("sentinel", "query", f"The sentinel of the `member`; default: {DEFAULT_SENTINEL}.", ADAPTER_NAME),
    Parameter("member", "query", "Only the part of this member; without it, everything that is due.", ADAPTER_NAME),
)


def due_operations(paths: KindPaths) -> list[Operation]:
    """Return the operations on what is due of a kind."""
    name, plural = paths.kind.name, paths.kind.plural
    return [
        Operation(
            "get",
            f"{BASE}/{plural}:due",
            f"listDue{name}s",
            paths.tag,
            f"List the {paths.nouns} that a sentinel should look at now",
            (Success(200, "The longest due first.", DueList, ("ETag",)), NOT_MODIFIED),
            "Resources whose time has come, by the rules of the sentinel: each with the rules whose state and `where` "
            "match. Reads only what is due, so it is cheap on a fleet of any size.",
            (*_DUE, IF_NONE_MATCH),
            refusals=("InvalidQuery", "InvalidHeader", "UnknownMember"),
        ),
        Operation(
            "post",
            f"{BASE}/{plural}:look",
            f"look{name}s",
            paths.tag,
            f"Ask adapters to look at {paths.nouns}, as a sentinel decided",
            (Success(200, "Events are published, and the next looks are scheduled.", LookedAnswer),),
            "For each decision with a `rule`, publishes an event with the rule as its reason, then schedules the next "
            "look with a growing pause; `rule: null` only schedules it. With the `receipt` of `:due`, a decision about "
            "a resource that has changed meanwhile is skipped. Nothing of a resource changes.",
            (),
            RequestBody(_looks(), {"looks": [{"id": paths.example_id, "rule": "not-ready"}]}),
            refusals=(*WRITING, "BrokerUnavailable"),
            role="reporter",
        ),
    ]


def sentinel_operations() -> list[Operation]:
    """Return the operations on sentinels."""
    return [
        Operation(
            "get",
            f"{BASE}/sentinels",
            "listSentinels",
            _TAG,
            "List the sentinels, their rules, and how much is due",
            (Success(200, "Those with members that the caller may see.", SentinelList, ("ETag",)), NOT_MODIFIED),
            "",
            (IF_NONE_MATCH,),
            refusals=("InvalidHeader",),
        ),
        Operation(
            "put",
            _ONE,
            "joinSentinel",
            _TAG,
            "Become a member of a sentinel, or stay one",
            (Success(200, "All members.", MemberList),),
            "Members share what is due. A membership lasts 15 seconds; then the others take over the member's part.",
            _PATH,
            refusals=("InvalidRequest", "TooManyMembers"),
            role="reporter",
        ),
        Operation(
            "delete",
            _ONE,
            "leaveSentinel",
            _TAG,
            "Leave a sentinel: the other members take over at once",
            (Success(200, "The other members.", MemberList),),
            "",
            _PATH,
            refusals=("InvalidRequest", "NotFound"),
            role="reporter",
        ),
    ]


def _looks() -> dict[str, Any]:
    look = {
        "type": "object",
        "additionalProperties": False,
        "required": ["id"],
        "properties": {
            "id": {"type": "string", "minLength": 1, "maxLength": 128},
            "rule": {**ADAPTER_NAME, "type": ["string", "null"], "description": "null: no event."},
            "receipt": {"type": "string", "maxLength": MAX_RECEIPT, "description": "Of `:due`."},
            "data": {"type": "object", "description": "More keys for the data of the event."},
        },
    }
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["looks"],
        "properties": {
            "sentinel": {**ADAPTER_NAME, "default": DEFAULT_SENTINEL},
            "looks": {"type": "array", "items": look, "minItems": 1, "maxItems": MAX_LOOKS},
        },
    }
