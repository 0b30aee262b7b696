"""Two tenants on one server, each with everything a tenant can have, and a third caller who sees both.

What belongs to one of them says so: its mark is in every name, label, spec, reason, message and datum.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import httpx
from msgspec import Struct

from hyperfleet.ports import Scope
from hyperfleet.services.callers import Caller, Rejection
from tests.api.fleet import Fleet
from tests.api.lives import pass_time
from tests.world import body

SECOND = timedelta(seconds=1)
LABEL = "team"
RED, BLUE, NOBODY = "vermilion", "turquoise", "nonentity"  # what is theirs has this in it
CALLERS = {
    b"red": Caller("rose", Scope(frozenset({"red"})), "red"),
    b"blue": Caller("bob", Scope(frozenset({"blue"})), "blue"),
    b"both": Caller("beth", Scope(frozenset({"red", "blue"}))),
    b"none": Caller("nemo", Scope(frozenset())),
    b"all": Caller("ann"),
}


class Keys:
    """An authenticator whose tokens are names of colours. All callers are admins, so that no role hides a leak."""

    def recognize(self, token: bytes) -> Caller | None:
        """Know everybody at once."""
        return CALLERS.get(token)

    async def identify(self, token: bytes) -> Caller | Rejection:
        """Know nobody else."""
        return Rejection("nobody has this token")


class Voice:
    """Somebody who asks a server."""

    def __init__(self, fleet: Fleet, token: str) -> None:
        self.fleet = fleet
        self.authorization = {"Authorization": f"Bearer {token}"}

    def request(self, method: str, path: str, *, headers: dict[str, str] | None = None, **more: Any) -> httpx.Response:
        """Send a request and return the response."""
        return self.fleet.request(method, path, headers={**self.authorization, **(headers or {})}, **more)

    def must(self, status: int, method: str, path: str, **more: Any) -> Any:
        """Send a request that must be answered with a status, and return what it says."""
        response = self.request(method, path, **more)
        assert response.status_code == status, response.text
        return response.json() if response.content else None


class Estate(Struct, frozen=True):
    """What a tenant has; all texts have its mark in them, but for the ids."""

    mark: str
    cluster: str
    doomed: str  # is being deleted
    gone: str  # was removed
    pool: str
    token: str  # of a page that is to come

    @property
    def ids(self) -> list[str]:
        """Return the ids of all its resources."""
        return [self.cluster, self.doomed, self.gone, self.pool]

    @property
    def values(self) -> dict[str, str]:
        """Return what somebody would have to guess or overhear to ask for it."""
        texts = texts_of(self.mark)
        ids = {"cluster": self.cluster, "doomed": self.doomed, "gone": self.gone, "pool": self.pool}
        return {**texts, **ids, "token": self.token}


def texts_of(mark: str) -> dict[str, str]:
    """Return the texts that a tenant's things are made of."""
    return {
        "mark": mark,
        "name": f"{mark}-cluster",
        "label": f"{mark}-team",
        "key": f"{mark}.example.com/key",
        "reason": f"{mark.title()}Broke",
        "adapter": f"{mark}-crane",
        "idempotency": f"{mark}-key",
    }


def settle(fleet: Fleet, token: str, mark: str) -> Estate:
    """Let a tenant have clusters, a node pool, reports, a history, problems, lost reports, deletions and flapping."""
    voice, texts = Voice(fleet, token), texts_of(mark)
    labels = {LABEL: texts["label"], texts["key"]: mark}
    ids = {}
    for part in ("cluster", "doomed", "gone"):
        new = {"name": f"{mark}-{part}", "spec": {"note": f"{mark}-spec"}, "labels": labels}
        headers = {"Idempotency-Key": texts["idempotency"]} if part == "cluster" else {}
        ids[part] = voice.must(201, "POST", "/clusters", json=new, headers=headers)["id"]
        _report(voice, f"/clusters/{ids[part]}", "validation", f"True/{texts['reason']}/{mark} validated")
    cluster = f"/clusters/{ids['cluster']}"
    new = {"name": f"{mark}-pool", "spec": {"note": f"{mark}-spec"}, "labels": labels}
    ids["pool"] = voice.must(201, "POST", f"{cluster}/nodepools", json=new)["id"]
    for path in (cluster, f"{cluster}/nodepools/{ids['pool']}"):
        _trouble(voice, path, texts)
    for part in ("doomed", "gone"):
        voice.must(202, "DELETE", f"/clusters/{ids[part]}")
    voice.must(204, "POST", f"/clusters/{ids['gone']}/force-delete", json={"reason": f"{mark} must go"})
    pass_time(fleet, SECOND)
    token = voice.must(200, "GET", "/clusters", params={"limit": "1"})["continue"]
    return Estate(mark, **ids, token=token)


def _trouble(voice: Voice, path: str, texts: dict[str, str]) -> None:
    """Let adapters go up and down and end in failure, after an edit; and lose reports."""
    failure = f"False/{texts['reason']}/{texts['mark']} words in a message"
    data: dict[str, Any] = {"data": {"datum": f"{texts['mark']}-data"}, "metadata": {"job": f"{texts['mark']}-job"}}
    for adapter in ("validation", "dns", texts["adapter"]):
        _report(voice, path, adapter, "True", **data)
    voice.must(200, "PATCH", path, json={"spec": {"note": f"{texts['mark']}-other"}})
    for adapter in ("validation", texts["adapter"]):
        _report(voice, path, adapter, "True", generation=2, **data)
    for turn in range(6):
        available = failure if turn % 2 else "True"
        _report(voice, path, "dns", available, generation=2, health=available, **data)
    _report(voice, path, "dns", "True", generation=1)  # comes too late
    voice.must(409, "POST", f"{path}/statuses", json=body("validation", "True", generation=9))


def _report(voice: Voice, path: str, adapter: str, available: str, **more: Any) -> None:
    pass_time(voice.fleet, 10 * SECOND)
    voice.must(200, "POST", f"{path}/statuses", json=body(adapter, available, **more))


def estate_as_told(voice: Voice, estate: Estate) -> dict[str, bytes]:
    """Return all that a tenant is told of what it has."""
    cluster = f"/clusters/{estate.cluster}"
    paths = ["/clusters", "/nodepools", "/adapters", "/problems", f"/clusters/{estate.gone}/history"]
    for path in (cluster, f"/clusters/{estate.doomed}", f"{cluster}/nodepools/{estate.pool}"):
        paths += [path, f"{path}/statuses", f"{path}/history"]
    answers = {path: voice.request("GET", path) for path in paths}
    assert {answer.status_code for answer in answers.values()} == {200}, answers
    return {path: answer.content + answer.headers.get("etag", "").encode() for path, answer in answers.items()}


class World(Struct, frozen=True):
    """A server with two tenants; `values` are red's, `nothing` looks like them and never was."""

    fleet: Fleet
    red: Estate
    blue: Estate

    @property
    def values(self) -> dict[str, str]:
        """Return what belongs to red, and what is blue's own."""
        return {**self.red.values, "own_cluster": self.blue.cluster, "own_pool": self.blue.pool}

    @property
    def nothing(self) -> dict[str, str]:
        """Return the same with names and ids that nobody has."""
        ids = {part: f"{self.red.values[part][:-5]}zzzzz" for part in ("cluster", "doomed", "gone", "pool")}
        return {**self.values, **texts_of(NOBODY), **ids}

    def voice(self, token: str) -> Voice:
        """Return somebody to ask."""
        return Voice(self.fleet, token)


def open_world(fleet: Fleet) -> World:
    """Settle both tenants."""
    return World(fleet, settle(fleet, "red", RED), settle(fleet, "blue", BLUE))
