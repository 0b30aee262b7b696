"""Consumers that pull events through the API and remember every delivery, and the audit of what they got.

What must be delivered follows from the log alone: `messages_of` is pure, so the audit computes every message of every
committed change and compares.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import msgspec
from msgspec import Struct

from hyperfleet.api.wire import href_of
from hyperfleet.bootstrap import open_store
from hyperfleet.events.making import Origin, messages_of
from hyperfleet.messaging import Topic
from hyperfleet.model.kind import Kinds
from hyperfleet.ports import ChangeQuery
from tests.e2e.lanes import BASE, Channel, LostError

# Settings of servers whose events must all come from the log: a sentinel would add its own.
QUIET: Final = {"sentinel_enabled": "false"}
_PAUSE: Final = 0.02  # seconds after a failure
_DEADLINE: Final = 2  # seconds: what a killed server took from the queue without an answer is there again after it
_PAGE: Final = 1_000


class Delivered(Struct, frozen=True):
    """One delivery. The sequence names the copy in the queue: a message that was published twice has two."""

    sequence: int
    attempt: int
    event: dict[str, Any]

    @property
    def id(self) -> str:
        """Return the id of the message."""
        return str(self.event["id"])


class Puller:
    """Pulls from one subscription and acknowledges, from any server that listens at the port, one request at a time."""

    def __init__(self, name: str, port: Callable[[], int]) -> None:
        """Pull from the subscription `name`, which must exist."""
        self._path = f"{BASE}/subscriptions/{name}"
        self._channel = Channel(port)
        self._task: asyncio.Task[None] | None = None
        self._is_stopping = False
        self._gone: set[int] = set()  # copies whose ack was answered
        self.deliveries: list[Delivered] = []
        self.newest = 0  # the highest position of a change that was delivered
        self.late: list[Delivered] = []  # deliveries of a copy after its ack was answered

    def start(self) -> None:
        """Pull until `stop`."""
        self._is_stopping = False
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Finish the pull that is under way."""
        self._is_stopping = True
        if self._task is not None:
            await self._task
        self._channel.close()

    async def _run(self) -> None:
        while not self._is_stopping:
            body = {"max": 100, "ackDeadlineSeconds": _DEADLINE, "waitSeconds": 1}
            pulled = await self._ask("pull", body)
            messages = pulled["messages"] if pulled else []
            if messages:
                self._remember(messages)
                await self._ack(messages)

    def _remember(self, messages: Sequence[Mapping[str, Any]]) -> None:
        for each in messages:
            delivered = Delivered(_sequence_of(each), each["attempt"], each["event"])
            self.deliveries.append(delivered)
            self.newest = max(self.newest, position_of(delivered.id))
            if delivered.sequence in self._gone:
                self.late.append(delivered)

    async def _ack(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Acknowledge until there is an answer. Nobody else pulls, so a receipt that has expired is still valid."""
        while await self._ask("ack", {"receipts": [each["receipt"] for each in messages]}) is None:
            pass
        self._gone.update(map(_sequence_of, messages))

    async def _ask(self, verb: str, body: object) -> Any:
        """Return the answer; None: there was none, or the store was away."""
        try:
            status, answer = await self._channel.request("POST", f"{self._path}:{verb}", body)
        except LostError:
            await asyncio.sleep(_PAUSE)
            return None
        if status == 200:
            return answer
        assert status == 503, answer
        await asyncio.sleep(_PAUSE)
        return None


def _sequence_of(pulled: Mapping[str, Any]) -> int:
    return int(pulled["receipt"].partition(".")[0])


async def expected_messages(database: str, topic: Topic) -> dict[str, Any]:
    """Return the data of every message that the log of a database makes on a topic, by id."""
    store = open_store(database)
    await store.open()
    try:
        origin, after = _origin(await store.store_id()), 0
        expected: dict[str, Any] = {}
        while (page := await store.read_changes(ChangeQuery(after=after, limit=_PAGE))).upto > after:
            after = page.upto
            made = (message for change in page.changes for message in messages_of(change, origin))
            expected |= {each.id: msgspec.json.decode(each.data) for each in made if each.topic == topic}
        return expected
    finally:
        await store.close()


def _origin(store_id: str) -> Origin:
    kinds = {kind.name: kind for kind in Kinds()}
    return Origin(
        store_id,
        lambda kind, id_, parent_id: href_of(kinds[kind], id_, parent_id),
        lambda kind: kinds[kind].parent,
    )


def find_faults(puller: Puller, expected: Mapping[str, Any], *, may_forget: bool = False) -> Iterator[str]:
    """Yield everything that is wrong with what was delivered, given what the log makes.

    A database that is killed may forget the last acks and publications, and number other messages with the same
    sequences: then only what was delivered counts, not how often and in which order.
    """
    found = {each.id: each.event for each in puller.deliveries}
    if lost := expected.keys() - found.keys():
        yield f"{len(lost)} messages were never delivered: {_some(lost)}"
    if invented := found.keys() - expected.keys():
        yield f"{len(invented)} messages are of no committed change: {_some(invented)}"
    if altered := {id_ for id_, event in found.items() if id_ in expected and event["data"] != expected[id_]}:
        yield f"{len(altered)} messages differ from what the log makes: {_some(altered)}"
    if may_forget:
        return
    if puller.late:
        yield f"{len(puller.late)} copies were delivered after their ack was answered: {puller.late[:3]}"
    yield from _find_disorder(puller.deliveries)


def _find_disorder(deliveries: Sequence[Delivered]) -> Iterator[str]:
    """Look for messages that were first published before one of an earlier position."""
    first: dict[str, int] = {}
    for each in deliveries:
        first[each.id] = min(each.sequence, first.get(each.id, each.sequence))
    positions = [position_of(id_) for id_ in sorted(first, key=first.__getitem__)]
    wrong = [pair for pair in pairwise(positions) if pair[0] > pair[1]]
    if wrong:
        yield f"first published in the wrong order: {wrong[:5]}"


def repeated(deliveries: Sequence[Delivered]) -> set[int]:
    """Return the positions of messages that were published more than once: several copies were in the queue."""
    copies: dict[str, set[int]] = {}
    for each in deliveries:
        copies.setdefault(each.id, set()).add(each.sequence)
    return {position_of(id_) for id_, sequences in copies.items() if len(sequences) > 1}


def position_of(id_: str) -> int:
    """Return the position of the change that made a message."""
    return int(id_.partition("-")[0])


def _some(ids: Collection[str]) -> str:
    return ", ".join(sorted(ids, key=position_of)[:10])
