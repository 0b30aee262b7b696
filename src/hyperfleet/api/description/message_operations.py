"""The operations on events: ask for a reconcile, subscribe, pull, acknowledge."""

from __future__ import annotations

from typing import Any, Final

from hyperfleet.api.description.filters import FILTERS, LIMIT
from hyperfleet.api.description.kind_paths import KindPaths, noun_of
from hyperfleet.api.description.operations import Operation, Parameter, RequestBody, Success
from hyperfleet.api.description.request_schemas import ADAPTER_NAME
from hyperfleet.api.description.resource_operations import IF_NONE_MATCH, NOT_MODIFIED, WRITING
from hyperfleet.api.message_bodies import DEFAULT_DEADLINE, MAX_DEADLINE, MAX_ERROR, MAX_PULL, MAX_RECEIPTS, MAX_WAIT
from hyperfleet.api.message_shapes import (
    AcknowledgedMessages,
    DeadLetterList,
    PubSubAnswer,
    PulledMessages,
    ReconcileRequested,
    ReplayedMessages,
    SubscriptionAnswer,
    SubscriptionList,
)
from hyperfleet.api.wire import BASE
from hyperfleet.messaging import TOPICS

_TAG: Final = "Events"
_NAME: Final = Parameter(
    "name", "path", "The name of a subscription, usually that of an adapter.", ADAPTER_NAME, example="dns"
)
_ONE: Final = f"{BASE}/subscriptions/{{name}}"
_REFUSALS: Final = ("NotFound", "BrokerElsewhere")
_ANYWHERE: Final = ("NotFound", "BrokerUnavailable")  # of what works at every broker
_TOPIC: Final = Parameter(
    "topic",
    "query",
    "The topic of the subscription. RabbitMQ and Google Pub/Sub have a subscription of that name for each topic; "
    f"default there: {TOPICS[0]}.",
    {"type": "string", "enum": list(TOPICS)},
    example=TOPICS[0],
)
_ALL_TENANTS: Final = (
    "At every broker. RabbitMQ and Google Pub/Sub keep the messages of all tenants in one queue: a caller that is "
    "bound to tenants finds none of their subscriptions."
)


def reconcile_operations(paths: KindPaths) -> list[Operation]:
    """Return the operations that ask adapters to look at resources of a kind again."""
    name = paths.kind.name
    return [
        Operation(
            "post",
            f"{paths.item}:reconcile",
            f"reconcile{name}",
            paths.tag,
            f"Ask the adapters of a {paths.noun} to look at it again",
            (Success(202, "The event is in the log, and will be published.", ReconcileRequested),),
            "Adds an event with the reason `Requested`. Nothing of the resource changes but its revision.",
            paths.item_parameters,
            refusals=("NotFound",),
            role="editor",
        ),
        *_reconcile_many(paths),
    ]


def _reconcile_many(paths: KindPaths) -> list[Operation]:
    """Return the operations on all resources of a kind and, if it has a parent, on those below one."""
    name, fleet = paths.kind.name, f"{BASE}/{paths.kind.plural}"
    if paths.parent is None:
        return [_reconcile_matching(fleet, f"{name}s", paths, ())]
    return [
        _reconcile_matching(paths.collection, f"{name}s", paths, paths.collection_parameters),
        _reconcile_matching(fleet, f"All{name}s", paths, ()),
    ]


def _reconcile_matching(path: str, name: str, paths: KindPaths, above: tuple[Parameter, ...]) -> Operation:
    where = f" of a {noun_of(paths.parent)}" if above and paths.parent else ""
    return Operation(
        "post",
        f"{path}:reconcile",
        f"reconcile{name}",
        paths.tag,
        f"Ask the adapters of many {paths.nouns}{where} to look at them again",
        (Success(202, "The events are in the log, and will be published.", ReconcileRequested),),
        "All resources that match the filters; without filters, all that the caller may see.",
        (*above, *FILTERS),
        refusals=("InvalidQuery", *(("NotFound",) if above else ())),
        role="editor",
    )


def message_operations() -> list[Operation]:
    """Return the operations on subscriptions."""
    return [*_subscribing(), *_reading(), *_consuming()]


def _reading() -> list[Operation]:
    return [
        Operation(
            "get",
            f"{BASE}/pubsub",
            "getPubSub",
            _TAG,
            "Read where events go, and how far the relay is",
            (Success(200, "The broker, its topics, and the positions.", PubSubAnswer, ("ETag",)), NOT_MODIFIED),
            "",
            (IF_NONE_MATCH,),
            refusals=("InvalidHeader",),
        ),
        Operation(
            "get",
            f"{BASE}/subscriptions",
            "listSubscriptions",
            _TAG,
            "List the subscriptions of the in-process broker",
            (Success(200, "All that the caller may see.", SubscriptionList, ("ETag",)), NOT_MODIFIED),
            "",
            (IF_NONE_MATCH,),
            refusals=("InvalidHeader", "BrokerElsewhere"),
        ),
        Operation(
            "get",
            _ONE,
            "getSubscription",
            _TAG,
            "Read a subscription",
            (Success(200, "The subscription.", SubscriptionAnswer, ("ETag",)), NOT_MODIFIED),
            _ALL_TENANTS,
            (_NAME, _TOPIC, IF_NONE_MATCH),
            refusals=("InvalidQuery", "InvalidHeader", *_ANYWHERE),
        ),
        Operation(
            "get",
            f"{_ONE}/dead-letters",
            "listDeadLetters",
            _TAG,
            "List the messages of a subscription that were given up",
            (Success(200, "The oldest first.", DeadLetterList, ("ETag",)), NOT_MODIFIED),
            _ALL_TENANTS,
            (_NAME, _TOPIC, LIMIT, IF_NONE_MATCH),
            refusals=("InvalidQuery", "InvalidHeader", *_ANYWHERE),
        ),
    ]


def _subscribing() -> list[Operation]:
    topic = {"type": "string", "enum": list(TOPICS), "default": TOPICS[0]}
    return [
        Operation(
            "put",
            _ONE,
            "putSubscription",
            _TAG,
            "Subscribe: create a queue that gets every message of a topic",
            (
                Success(201, "Created.", SubscriptionAnswer),
                Success(200, "It exists, and stays as it is.", SubscriptionAnswer),
            ),
            "The queue keeps messages from now on, whether they are pulled or not. A caller that is bound to tenants "
            "gets messages of these tenants only.",
            (_NAME,),
            RequestBody(_object(topic=topic), {"topic": "clusterEvents"}),
            refusals=(*WRITING, "NotFound", "SubscriptionExists", "BrokerElsewhere"),
            role="reporter",
        ),
        Operation(
            "delete",
            _ONE,
            "deleteSubscription",
            _TAG,
            "Delete a subscription with everything in its queue",
            (Success(200, "Its last state.", SubscriptionAnswer),),
            "",
            (_NAME,),
            refusals=_REFUSALS,
            role="admin",
        ),
    ]


def _consuming() -> list[Operation]:
    receipts = {"type": "array", "items": {"type": "string", "maxLength": 64}, "minItems": 1, "maxItems": MAX_RECEIPTS}
    pull = _object(
        max=_number(MAX_PULL, 10),
        ackDeadlineSeconds=_number(MAX_DEADLINE, DEFAULT_DEADLINE),
        waitSeconds=_number(MAX_WAIT, 0, 0),
    )
    error = {"type": "string", "maxLength": MAX_ERROR}
    nack = _object(receipts=receipts, error=error, deadLetter={"type": "boolean", "default": False})
    return [
        _verb(
            "pull",
            "Pull",
            "Pull messages",
            PulledMessages,
            RequestBody(pull, {"max": 10, "waitSeconds": 0}),
            "Takes the oldest messages. Those that are not answered within `ackDeadlineSeconds` are delivered again. "
            "With `waitSeconds`, an empty queue is waited for; such a request counts as a watch.",
            ("TooManyWatches",),
        ),
        _verb(
            "ack",
            "Acknowledge",
            "Acknowledge messages that were handled",
            AcknowledgedMessages,
            RequestBody(_object("receipts", receipts=receipts), {"receipts": ["1.1"]}),
            "A late receipt counts nothing: the message was delivered again.",
        ),
        _verb(
            "nack",
            "Reject",
            "Reject messages that were not handled",
            AcknowledgedMessages,
            RequestBody(nack | {"required": ["receipts"]}, {"receipts": ["1.1"], "error": "the API is away"}),
            "They are delivered again after the interval of the retry policy; after the last attempt, or with "
            "`deadLetter`, they become dead letters with the error.",
        ),
        Operation(
            "post",
            f"{_ONE}:replay",
            "replayMessages",
            _TAG,
            "Put dead letters back into the queue",
            (Success(200, "Done.", ReplayedMessages),),
            f"The oldest first. {_ALL_TENANTS}",
            (_NAME, _TOPIC),
            RequestBody(_object(max=_number(MAX_PULL, MAX_PULL)), {"max": 100}),
            refusals=(*WRITING, "InvalidQuery", *_ANYWHERE),
            role="reporter",
        ),
    ]


def _verb(
    verb: str,
    name: str,
    summary: str,
    shape: Any,
    body: RequestBody,
    description: str,
    more_refusals: tuple[str, ...] = (),
) -> Operation:
    return Operation(
        "post",
        f"{_ONE}:{verb}",
        f"{name.lower()}Messages",
        _TAG,
        summary,
        (Success(200, "Done.", shape),),
        description,
        (_NAME,),
        body,
        refusals=(*WRITING, *_REFUSALS, *more_refusals),
        role="reporter",
    )


def _number(most: int, default: int, least: int = 1) -> dict[str, Any]:
    return {"type": "integer", "minimum": least, "maximum": most, "default": default}


def _object(*required: str, **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "additionalProperties": False, "properties": properties}
    return schema | ({"required": list(required)} if required else {})
