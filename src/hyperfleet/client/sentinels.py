"""The operations of a sentinel: ask what is due, send decisions, take part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from hyperfleet.client.answers.sentinel import CompatListAnswer, DueListing, Looked, SentinelMembers, Sentinels
from hyperfleet.client.effects import ApiRequest, Flow
from hyperfleet.client.exchange import fetch
from hyperfleet.client.operation import Face, operation
from hyperfleet.client.paths import BASE, quote_segment

_COMPAT: Final = "/compat/api/hyperfleet/v1"
_JSON: Final = {"Content-Type": "application/json"}


class SentinelOperations(Face):
    """What `hyperfleet sentinel` needs. Kinds are plurals: `clusters`."""

    @operation
    def due(
        self, plural: str, *, limit: int = 100, sentinel: str | None = None, member: str | None = None
    ) -> Flow[DueListing]:
        """List what a sentinel should look at now; with `member`, its part."""
        given = (("limit", str(limit)), ("sentinel", sentinel), ("member", member))
        query = tuple([(name, value) for name, value in given if value is not None])
        return (yield from fetch(DueListing, ApiRequest("GET", f"{BASE}/{plural}:due", query), self._retry))

    @operation
    def look(self, plural: str, looks: Sequence[Mapping[str, Any]], *, sentinel: str = "default") -> Flow[Looked]:
        """Publish the events that a sentinel decided on, and schedule the next looks."""
        body = msgspec.json.encode({"sentinel": sentinel, "looks": looks})
        return (yield from fetch(Looked, ApiRequest("POST", f"{BASE}/{plural}:look", (), _JSON, body), self._retry))

    @operation
    def join_sentinel(self, name: str, member: str) -> Flow[SentinelMembers]:
        """Become a member of a sentinel, or stay one for 15 seconds."""
        return (yield from fetch(SentinelMembers, ApiRequest("PUT", _member(name, member)), self._retry))

    @operation
    def leave_sentinel(self, name: str, member: str) -> Flow[SentinelMembers]:
        """Leave a sentinel: the other members take over at once."""
        return (yield from fetch(SentinelMembers, ApiRequest("DELETE", _member(name, member)), self._retry))

    @operation
    def sentinels(self) -> Flow[Sentinels]:
        """List the sentinels, and how much is due."""
        return (yield from fetch(Sentinels, ApiRequest("GET", f"{BASE}/sentinels"), self._retry))

    @operation
    def compat_page(self, plural: str, *, page: int, size: int, search: str = "") -> Flow[CompatListAnswer]:
        """Read a page of a list in the form that the Go programs read."""
        query = (("page", str(page)), ("size", str(size)), *((("search", search),) if search else ()))
        return (yield from fetch(CompatListAnswer, ApiRequest("GET", f"{_COMPAT}/{plural}", query), self._retry))


def _member(name: str, member: str) -> str:
    return f"{BASE}/sentinels/{quote_segment(name)}/members/{quote_segment(member)}"
