"""The operations on the policy: reading it and its versions, changing it, and trying another one."""

from __future__ import annotations

from typing import Final

from hyperfleet.api.description import request_schemas
from hyperfleet.api.description.examples import POLICY
from hyperfleet.api.description.filters import CONTINUE, FILTERS, LIMIT, REPLAY
from hyperfleet.api.description.operations import TEXT, Operation, Parameter, RequestBody, Success
from hyperfleet.api.description.resource_operations import IF_NONE_MATCH, NOT_MODIFIED
from hyperfleet.api.policy import MEDIA_TYPES
from hyperfleet.api.shapes import PolicyCheckBody, PolicyInForce, PolicyVersionAnswer, PolicyVersionList
from hyperfleet.api.simulation_wire import SimulationAnswer
from hyperfleet.api.streams import EVENT_STREAM
from hyperfleet.api.wire import BASE

_FLEET: Final = "Fleet"
_POLICY_IF_MATCH: Final = Parameter(
    "If-Match",
    "header",
    'Which version it replaces: the ETag of `GET /policy`, or the version alone, as in `"3"`; `*` for any.',
    request_schemas.ENTITY_TAGS,
    "*",
    is_required=True,
)
_DRY_RUN: Final = Parameter(
    "dryRun",
    "query",
    "With `true`, only check the policy: every error, and what the lint warns of. Nothing is changed.",
    {"type": "string", "enum": ["true", "false"]},
)
_VERSION: Final = Parameter("version", "path", "The number of a version.", {"type": "integer", "minimum": 1}, 1)
_CHANGING: Final = (
    *("InvalidBody", "InvalidHeader", "RequestTimeout", "BodyTooLarge", "UnsupportedMediaType"),
    *("InvalidPolicy", "PreconditionRequired", "PreconditionFailed"),
)
_RECOMPUTED: Final = "It is in force; resources are computed again meanwhile."


def policy_operations() -> list[Operation]:
    """Return the operations on the policy."""
    return [*_reading(), *_changing(), _simulating()]


def _reading() -> list[Operation]:
    return [
        Operation(
            "get",
            f"{BASE}/policy",
            "getPolicy",
            _FLEET,
            "Read the policy in force",
            (Success(200, "The policy.", PolicyInForce, ("ETag",)), NOT_MODIFIED),
            "Its ETag begins with the version; send it as `If-Match` to replace the policy.",
            (IF_NONE_MATCH,),
            refusals=("InvalidHeader", "NotFound"),
        ),
        Operation(
            "get",
            f"{BASE}/policy/versions",
            "listPolicyVersions",
            _FLEET,
            "List the versions of the policy",
            (Success(200, "One page, the newest first.", PolicyVersionList, ("ETag",)), NOT_MODIFIED),
            "Every policy that was ever in force, without its text: when it was put in force, by whom, and how.",
            (LIMIT, CONTINUE, IF_NONE_MATCH),
            refusals=("InvalidHeader",),
        ),
        Operation(
            "get",
            f"{BASE}/policy/versions/{{version}}",
            "getPolicyVersion",
            _FLEET,
            "Read one version of the policy",
            (Success(200, "The version.", PolicyVersionAnswer, ("ETag",), other_types=(TEXT,)), NOT_MODIFIED),
            "With `Accept: text/plain`, only its text, as it was given.",
            (_VERSION, IF_NONE_MATCH),
            refusals=("InvalidHeader", "NotFound"),
        ),
    ]


def _changing() -> list[Operation]:
    return [
        Operation(
            "put",
            f"{BASE}/policy",
            "putPolicy",
            _FLEET,
            "Put another policy in force",
            (Success(200, _RECOMPUTED, (PolicyInForce, PolicyCheckBody), ("ETag?",)),),
            "The policy gets the checks of a policy file. One with errors changes nothing; each error is told with its "
            "line and column. A policy that says what the one in force says makes no new version. It stays in force "
            "over restarts until somebody replaces it, or changes a policy file that a server is started with.",
            (_POLICY_IF_MATCH, _DRY_RUN),
            RequestBody(request_schemas.POLICY, POLICY, MEDIA_TYPES),
            refusals=_CHANGING,
            role="admin",
        ),
        Operation(
            "post",
            f"{BASE}/policy:rollback",
            "rollBackPolicy",
            _FLEET,
            "Go back to an earlier version of the policy",
            (Success(200, _RECOMPUTED, PolicyInForce, ("ETag",)),),
            "Makes a new version with the text of an old one, after the same checks: a version that this server can no "
            "longer compile is refused with its errors.",
            (_POLICY_IF_MATCH,),
            RequestBody(request_schemas.ROLLBACK, {"version": 1}),
            refusals=("NotFound", *_CHANGING),
            role="admin",
        ),
        Operation(
            "post",
            f"{BASE}/policy:reload",
            "reloadPolicy",
            _FLEET,
            "Put the policy file of the server in force",
            (Success(200, _RECOMPUTED, PolicyInForce, ("ETag",)),),
            "Reads the file again and puts it in force, whether or not it changed. A file with problems changes "
            "nothing; each problem is told with its line and column. What is only likely to be wrong is in `warnings`. "
            "A server that was started without a policy file goes on with the policy in force.",
            refusals=("InvalidPolicy",),
            role="admin",
        ),
    ]


def _simulating() -> Operation:
    return Operation(
        "post",
        f"{BASE}/policy:simulate",
        "simulatePolicy",
        _FLEET,
        "Ask what another policy would change",
        (Success(200, "What would change.", SimulationAnswer, other_types=(EVENT_STREAM,)),),
        "The policy in the body is tried on all resources, or on those that the filters leave; nothing is written. "
        "What is predicted is what would be stored once the policy was in force and every resource computed anew. "
        "With `replay`, recorded reports are lived again under the policy in force and under the one that is "
        "tried. With `Accept: text/event-stream` the answer comes as events: `progress` several times a second, "
        "then `result`, or `failed` with a problem document; the limit of time for requests does not hold then.",
        (*FILTERS, LIMIT, REPLAY),
        RequestBody(request_schemas.POLICY, POLICY, MEDIA_TYPES),
        refusals=("InvalidBody", "RequestTimeout", "InvalidPolicy", "BodyTooLarge", "UnsupportedMediaType"),
    )
