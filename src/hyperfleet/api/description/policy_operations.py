"""The operations on the policy: read it and its versions, change it, simulate another one."""

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
    'The version that it replaces: the ETag of `GET /policy`, or the version alone, as in `"3"`; `*` for any.',
    request_schemas.ENTITY_TAGS,
    "*",
    is_required=True,
)
_DRY_RUN: Final = Parameter(
    "dryRun",
    "query",
    "With `true`, only check the policy: all errors and lint warnings. Nothing is changed.",
    {"type": "string", "enum": ["true", "false"]},
)
_VERSION: Final = Parameter("version", "path", "The number of a version.", {"type": "integer", "minimum": 1}, 1)
_CHANGING: Final = (
    *("InvalidBody", "InvalidHeader", "RequestTimeout", "BodyTooLarge", "UnsupportedMediaType"),
    *("InvalidPolicy", "RestartRequired", "PreconditionRequired", "PreconditionFailed"),
)
_RECOMPUTED: Final = "The policy is in force; resources are being recomputed."


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
            "Every policy that was in force, without its text: when, by whom and how it was put in force.",
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
            "With `Accept: text/plain`, only its text as given.",
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
            "The policy is checked like a policy file. One with errors changes nothing; each error has its line and "
            "column. "
            "A policy equal to the one in force makes no new version. It stays in force across restarts until it is "
            "replaced, or a server is started with a changed policy file.",
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
            "Roll back to an earlier version of the policy",
            (Success(200, _RECOMPUTED, PolicyInForce, ("ETag",)),),
            "Makes a new version with the text of an old one, after the same checks: a version that the server can no "
            "longer "
            "compile is refused with its errors.",
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
            "Reload the policy file",
            (Success(200, _RECOMPUTED, PolicyInForce, ("ETag",)),),
            "Reads the policy file of the server again and puts it in force, whether or not it changed. A file with "
            "errors "
            "changes nothing; each error has its line and column. Lint warnings are in `warnings`. Without a policy "
            "file, "
            "the policy in force stays.",
            refusals=("InvalidPolicy", "RestartRequired"),
            role="admin",
        ),
    ]


def _simulating() -> Operation:
    return Operation(
        "post",
        f"{BASE}/policy:simulate",
        "simulatePolicy",
        _FLEET,
        "Simulate another policy",
        (Success(200, "What would change.", SimulationAnswer, other_types=(EVENT_STREAM,)),),
        "Simulates the policy in the body on all resources, or on those that match the filters; nothing is written. "
        "The "
        "result is what would be stored after the policy was put in force and every resource recomputed. With "
        "`replay`, "
        "recorded reports are replayed under the policy in force and under the candidate. With "
        "`Accept: text/event-stream` the answer is a stream: `progress` several times a second, then `result`, or "
        "`failed` with a problem document; the time limit of requests does not apply then.",
        (*FILTERS, LIMIT, REPLAY),
        RequestBody(request_schemas.POLICY, POLICY, MEDIA_TYPES),
        refusals=("InvalidBody", "RequestTimeout", "InvalidPolicy", "BodyTooLarge", "UnsupportedMediaType"),
    )
