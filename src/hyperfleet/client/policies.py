"""Reading and changing the policy: the flows behind the operations of `fleet`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from hyperfleet.client.answers.fleet import Policy, PolicyCheck, PolicyVersion
from hyperfleet.client.answers.resource import PageAnswer
from hyperfleet.client.effects import ApiRequest, Feed, FeedItem, Flow
from hyperfleet.client.errors import ApiError, PreconditionFailed
from hyperfleet.client.exchange import JSON, RetryPolicy, decode_part, fetch
from hyperfleet.client.paths import BASE
from hyperfleet.client.query import query_of

YAML: Final = {"Content-Type": "application/yaml"}
_PATH: Final = f"{BASE}/policy"
_PAGE: Final = 100  # versions in one request


def read_policy(retry: RetryPolicy) -> Flow[Policy]:
    """Read the policy in force."""
    return fetch(Policy, ApiRequest("GET", _PATH), retry)


def put_policy(policy: str, replaces: int, retry: RetryPolicy) -> Flow[Policy]:
    """Put a policy in force."""
    request = ApiRequest("PUT", _PATH, (), {**YAML, **_match(replaces)}, policy.encode())
    return _replace(request, lambda present: present.text == policy, retry)


def check_policy(policy: str, replaces: int, retry: RetryPolicy) -> Flow[PolicyCheck]:
    """Check a policy without putting it in force."""
    request = ApiRequest("PUT", _PATH, query_of({"dryRun": "true"}), {**YAML, **_match(replaces)}, policy.encode())
    return fetch(PolicyCheck, request, retry)


def roll_back(version: int, replaces: int, retry: RetryPolicy) -> Flow[Policy]:
    """Put the text of an earlier version in force again."""
    body = msgspec.json.encode({"version": version})
    request = ApiRequest("POST", f"{_PATH}:rollback", (), {**JSON, **_match(replaces)}, body)
    return _replace(request, lambda present: present.restores == version, retry)


def list_versions(limit: int | None, retry: RetryPolicy) -> Feed[PolicyVersion]:
    """Yield versions, the newest first; at most `limit`."""
    continue_, left = None, limit
    while left is None or left > 0:
        size = _PAGE if left is None else min(_PAGE, left)
        query = query_of({"limit": size, "continue": continue_})
        page = yield from fetch(PageAnswer, ApiRequest("GET", f"{_PATH}/versions", query), retry)
        for raw in page.items:
            yield FeedItem(decode_part(PolicyVersion, raw))
        continue_, left = page.continue_, None if left is None else left - len(page.items)
        if continue_ is None:
            return


def read_version(version: int, retry: RetryPolicy) -> Flow[PolicyVersion]:
    """Read one version with its text."""
    return fetch(PolicyVersion, ApiRequest("GET", f"{_PATH}/versions/{version}"), retry)


def _match(version: int) -> dict[str, str]:
    return {"If-Match": f'"{version}"'}


def _replace(request: ApiRequest, is_ours: Callable[[Policy], bool], retry: RetryPolicy) -> Flow[Policy]:
    """Send a change; if an earlier attempt got through and only its answer was lost, it is we who were in the way."""
    try:
        return (yield from fetch(Policy, request, retry))
    except PreconditionFailed as error:
        if error.attempts == 1:
            raise
        try:
            present = yield from read_policy(retry)
        except ApiError:
            raise error from None
        if is_ours(present):
            return present
        raise
