"""The operations on resources of one kind: `fleet.clusters` and `fleet.node_pools`. Each is a flow, written once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final, Generic, Unpack

import msgspec

from hyperfleet.client import applying, waiting
from hyperfleet.client.answers.document import D
from hyperfleet.client.answers.explanation import Explanation
from hyperfleet.client.answers.fleet import Summary
from hyperfleet.client.answers.past import Diff, HistoryEntry
from hyperfleet.client.answers.report import AdapterReport, Reports
from hyperfleet.client.answers.resource import Applied, Page, PageAnswer, R, WatchEvent
from hyperfleet.client.effects import Feed, Flow, Query, Reply, Request
from hyperfleet.client.errors import Ambiguous, ApiError, Conflict, NotFound, PreconditionFailed
from hyperfleet.client.exchange import JSON, decode, decode_part, exchange, failure_of, fetch
from hyperfleet.client.operation import AsyncFace, Face, SyncFace, feed, operation
from hyperfleet.client.paging import PAGE, turn_pages
from hyperfleet.client.performing import AsyncLink, Link
from hyperfleet.client.places import Place, Subject, absent, quoted
from hyperfleet.client.query import Filters, Listing, Moment, Words, query_of
from hyperfleet.client.waiting import Seen, Wishes
from hyperfleet.client.watching import Watch

_MERGE_PATCH: Final = {"Content-Type": "application/merge-patch+json"}

Object = Mapping[str, Any]


class ResourceOperations(Face, Generic[R]):
    """What can be done with resources of a kind.

    Where one is wanted, give the object, its id or its address. `parent` is the cluster of a node pool: without it, a
    node pool that is given by its id alone is looked up first, and lists are those of the whole fleet.
    """

    _place: Place[R]

    # ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────

    @operation
    def get(
        self,
        subject: Subject,
        *,
        parent: Subject | None = None,
        at: Moment | None = None,
        fields: Words | None = None,
    ) -> Flow[R]:
        """Read one; with `at`, as it was then; with `fields`, only parts of it."""
        path = yield from self._locate(subject, parent)
        return (yield from self._read(path, query_of({"at": at, "fields": fields})))

    @operation
    def find(self, name: str, *, parent: Subject | None = None) -> Flow[R]:
        """Read the one that has this name or this id; raise `NotFound`, or `Ambiguous` if several have the name."""
        found = yield from self._find(name, parent)
        if not found:
            raise NotFound(absent(f"there is no {self._place.noun} with the name or id {name}"))
        if len(found) > 1:
            ids = tuple(each.id for each in found)
            raise Ambiguous(f"{len(found)} {self._place.noun}s are called {name}: {', '.join(ids)}; give the id", ids)
        return found[0]

    @feed
    def list(
        self,
        *,
        parent: Subject | None = None,
        limit: int | None = None,
        page_size: int = PAGE,
        **listing: Unpack[Listing],
    ) -> Feed[R]:
        """Go through all that fit, page by page; at most `limit` of them."""
        yield from self._turn_pages(self._place.shape, self._above(parent), listing, limit, page_size)

    @operation
    def page(
        self,
        *,
        parent: Subject | None = None,
        continue_: str | None = None,
        limit: int | None = None,
        page: int | None = None,
        size: int | None = None,
        **listing: Unpack[Listing],
    ) -> Flow[Page[R]]:
        """Read one page: by `continue_` of the one before it, or by number, with the total."""
        keywords = {**listing, "continue": continue_, "limit": limit, "page": page, "size": size}
        return (yield from self._page(parent, keywords))

    @operation
    def summary(
        self,
        group_by: Words = "phase",
        *,
        parent: Subject | None = None,
        at: Moment | None = None,
        trend: str | timedelta | None = None,
        step: str | timedelta | None = None,
        **filters: Unpack[Filters],
    ) -> Flow[Summary]:
        """Count them by what they have in common: now, or `at` a time in the past.

        With `trend`, also how it was for so long before, at a point every `step`.
        """
        query = query_of({"group_by": group_by, "at": at, "trend": trend, "step": step, **filters})
        return (yield from fetch(Summary, Request("GET", f"{self._above(parent)}:summary", query), self._patience))

    @operation
    def statuses(
        self,
        subject: Subject,
        *,
        parent: Subject | None = None,
        generation: int | None = None,
        at: Moment | None = None,
    ) -> Flow[Reports]:
        """Read what every adapter last reported, at one generation or at a time in the past; empty: nobody has yet."""
        path = yield from self._locate(subject, parent)
        request = Request("GET", f"{path}/statuses", query_of({"generation": generation, "at": at}), answers=(404,))
        reply = yield from exchange(request, self._patience)
        if reply.is_success:
            return decode(Reports, reply)
        yield from self._read(path, query_of({"fields": "id", "at": at}))  # is it the reports or the resource?
        return Reports()

    @operation
    def adapter_status(self, subject: Subject, adapter: str, *, parent: Subject | None = None) -> Flow[AdapterReport]:
        """Read what one adapter last reported."""
        path = yield from self._locate(subject, parent)
        return (
            yield from fetch(
                AdapterReport, Request("GET", f"{path}/statuses/adapters/{quoted(adapter)}"), self._patience
            )
        )

    @feed
    def history(
        self,
        subject: Subject,
        *,
        parent: Subject | None = None,
        subjects: Words | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        limit: int | None = None,
    ) -> Feed[HistoryEntry]:
        """Go through every move of the phase and of conditions, the newest first."""
        path = yield from self._locate(subject, parent)
        given = {"subject": subjects, "since": since, "until": until}
        yield from self._turn_pages(HistoryEntry, f"{path}/history", given, limit)

    @operation
    def explain(
        self, subject: Subject, *, parent: Subject | None = None, condition: str | None = None
    ) -> Flow[Explanation]:
        """Ask why it is as it is: the culprits, and the smallest changes that would make it good."""
        path = yield from self._locate(subject, parent)
        query = query_of({"condition": condition})
        return (yield from fetch(Explanation, Request("GET", f"{path}:explain", query), self._patience))

    @operation
    def diff(
        self,
        subject: Subject,
        *,
        parent: Subject | None = None,
        from_: Moment | None = None,
        to: Moment | None = None,
        against: str | None = None,
        times: bool | None = None,
    ) -> Flow[Diff]:
        """Ask what is different: since `from_`, or to the resource with the id `against`."""
        path = yield from self._locate(subject, parent)
        query = query_of({"from": from_, "to": to, "against": against, "times": times})
        return (yield from fetch(Diff, Request("GET", f"{path}:diff", query), self._patience))

    # ── watching and waiting ─────────────────────────────────────────────────────────────────────────────────────

    @feed
    def watch(
        self,
        subject: Subject | None = None,
        *,
        parent: Subject | None = None,
        after: int | None = None,
        fields: Words | None = None,
        **filters: Unpack[Filters],
    ) -> Feed[WatchEvent[R]]:
        """Follow all that fit, or one, as it changes: through lost connections and restarts of the server.

        Begins with a list, or after the position `after`. Ends only when the one that is followed was removed.
        """
        path = self._above(parent) if subject is None else (yield from self._locate(subject, parent))
        request = Request("GET", path, query_of({**filters, "fields": fields}))
        watch = Watch(request, self._place.shape, self._patience, after=after)
        yield from watch.follow(is_single=subject is not None)

    @operation
    def wait(
        self,
        subject: Subject,
        *,
        parent: Subject | None = None,
        on_version: Seen[R] | None = None,
        **wishes: Unpack[Wishes],
    ) -> Flow[R | None]:
        """Wait until it is as wanted; return it as it was then, or None if it is gone and that was wanted.

        Raises `WaitFailed`, `WaitTimeout` or `Gone`. `on_version` is called with every version that comes by.
        """
        path = yield from self._locate(subject, parent)
        return (yield from waiting.wait(path, wishes, self._place.shape, self._patience, on_version))

    # ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────

    @operation
    def create(
        self,
        name: str,
        spec: Object,
        *,
        labels: Mapping[str, str] | None = None,
        parent: Subject | None = None,
        key: str | None = None,
    ) -> Flow[R]:
        """Create one. Safe to be tried again: every creation has an idempotency key, by default one of its own."""
        return (yield from self._create(name, spec, labels, parent, key))

    @operation
    def apply(
        self,
        name: str,
        spec: Object,
        *,
        labels: Mapping[str, str] | None = None,
        parent: Subject | None = None,
        dry_run: bool = False,
    ) -> Flow[Applied[R]]:
        """Create it, or make the one with this name so; without `labels`, it keeps those that it has."""
        wanted = applying.Wanted(name, spec, labels)
        return (yield from applying.apply(_Desk(self, parent), wanted, dry_run=dry_run))

    @operation
    def replace(
        self,
        subject: Subject,
        spec: Object,
        *,
        labels: Mapping[str, str] | None = None,
        parent: Subject | None = None,
        generation: int | None = None,
        etag: str | None = None,
    ) -> Flow[R]:
        """Replace spec and labels (None: it shall have none), only if generation or ETag are still those given."""
        path = yield from self._locate(subject, parent)
        return (yield from self._replace(path, spec, labels or {}, generation, etag))

    @operation
    def patch(
        self,
        subject: Subject,
        changes: Object,
        *,
        parent: Subject | None = None,
        etag: str | None = None,
    ) -> Flow[R]:
        """Merge changes into it (RFC 7396): `{"spec": {"region": None}, "labels": {"env": "prod"}}`.

        With `generation` among the changes, only if that is still its generation. Not tried again once it was sent.
        """
        path = yield from self._locate(subject, parent)
        headers = {**_MERGE_PATCH, **({"If-Match": etag} if etag else {})}
        request = Request("PATCH", path, (), headers, msgspec.json.encode(changes), is_repeatable=False)
        return (yield from fetch(self._place.shape, request, self._patience))

    @operation
    def label(
        self,
        subject: Subject,
        labels: Mapping[str, str | None],
        *,
        parent: Subject | None = None,
        overwrite: bool = True,
    ) -> Flow[R]:
        """Set labels; None takes one away. Without `overwrite`, a label that has another value is a `Conflict`."""
        path = yield from self._locate(subject, parent)
        return (yield from applying.label(_Desk(self, parent), path, labels, overwrite=overwrite))

    @operation
    def delete(
        self,
        subject: Subject,
        *,
        parent: Subject | None = None,
        etag: str | None = None,
        wait: bool = False,
        timeout: float = 600.0,
    ) -> Flow[R | None]:
        """Ask for it to go; return it as it is now, or None if it is gone. With `wait`, return when it is."""
        path = yield from self._locate(subject, parent)
        marked = yield from self._mark(path, etag)
        if not wait or marked is None:
            return marked
        wishes: Wishes = {"for_": "deleted", "timeout": timeout}
        return (yield from waiting.wait(path, wishes, self._place.shape, self._patience))

    @operation
    def force_delete(self, subject: Subject, reason: str, *, parent: Subject | None = None) -> Flow[None]:
        """Remove one that is being deleted, without waiting for adapters; history keeps the reason."""
        path = yield from self._locate(subject, parent)
        body = msgspec.json.encode({"reason": reason})
        yield from self._remove(Request("POST", f"{path}/force-delete", (), JSON, body))

    @operation
    def retire_adapter(self, subject: Subject, adapter: str, *, parent: Subject | None = None) -> Flow[None]:
        """Forget what an adapter reported that will report no more."""
        path = yield from self._locate(subject, parent)
        yield from self._remove(Request("DELETE", f"{path}/statuses/adapters/{quoted(adapter)}"))

    # ── the steps they share ─────────────────────────────────────────────────────────────────────────────────────

    def _above(self, parent: Subject | None) -> str:
        return self._place.collection(parent)

    def _locate(self, subject: Subject, parent: Subject | None) -> Flow[str]:
        return self._place.locate(subject, self._patience, parent)

    def _read(self, path: str, query: Query = ()) -> Flow[R]:
        return fetch(self._place.shape, Request("GET", path, query), self._patience)

    def _turn_pages(
        self, shape: type[D], path: str, keywords: Mapping[str, object], limit: int | None, page_size: int = PAGE
    ) -> Feed[D]:
        """Yield what is on the pages of a list, one after the other; at most `limit`."""
        return turn_pages(shape, path, keywords, limit, self._patience, page_size=page_size)

    def _page(self, parent: Subject | None, keywords: Mapping[str, object]) -> Flow[Page[R]]:
        answer = yield from fetch(PageAnswer, Request("GET", self._above(parent), query_of(keywords)), self._patience)
        items = tuple([decode_part(self._place.shape, raw) for raw in answer.items])
        return Page(items, answer.continue_, answer.total)

    def _find(self, name: str, parent: Subject | None) -> Flow[tuple[R, ...]]:
        """Return those with a name or an id; of those with the name, the ones that stay come before all others."""
        found: list[R] = []
        continue_: str | None = None
        while True:
            page = yield from self._page(parent, {"q": name, "limit": PAGE, "continue": continue_})
            found += [each for each in page.items if name in (each.name, each.id)]
            continue_ = page.continue_
            if continue_ is None:
                break
        by_id = [each for each in found if each.id == name]
        staying = [each for each in found if not each.is_deleting]
        return tuple(by_id or staying or found)

    def _create(
        self, name: str, spec: Object, labels: Mapping[str, str] | None, parent: Subject | None, key: str | None
    ) -> Flow[R]:
        if self._place.parent is not None and parent is None:
            raise ValueError(f"a {self._place.noun} needs a parent: the {self._place.parent.name.lower()} it is in")
        body = {"name": name, "spec": spec, **({} if labels is None else {"labels": labels})}
        headers = {**JSON, "Idempotency-Key": key or self._patience.surroundings.make_key()}
        request = Request("POST", self._above(parent), (), headers, msgspec.json.encode(body))
        return (yield from fetch(self._place.shape, request, self._patience))

    def _replace(
        self, path: str, spec: Object, labels: Mapping[str, str], generation: int | None, etag: str | None = None
    ) -> Flow[R]:
        body: dict[str, Any] = {"spec": spec, "labels": labels}
        if generation is not None:
            body["generation"] = generation
        headers = {**JSON, **({"If-Match": etag} if etag else {})}
        request = Request("PUT", path, (), headers, msgspec.json.encode(body))
        try:
            return (yield from fetch(self._place.shape, request, self._patience))
        except (Conflict, PreconditionFailed) as error:
            if error.attempts == 1:
                raise
            return (
                yield from self._excuse(
                    path, lambda present: applying.is_so(present, spec, labels) and not present.is_deleting, error
                )
            )

    def _mark(self, path: str, etag: str | None) -> Flow[R | None]:
        """Ask for a resource to go; return None if it is gone."""
        request = Request("DELETE", path, (), {"If-Match": etag} if etag else {})
        try:
            reply = yield from self._remove(request)
        except PreconditionFailed as error:
            if error.attempts == 1:
                raise
            return (yield from self._excuse(path, lambda present: present.is_deleting, error))
        return decode(self._place.shape, reply) if reply.is_success else None

    def _remove(self, request: Request) -> Flow[Reply]:
        """Take something away; that it is not there is as well, if it may have been we who did it."""
        reply = yield from exchange(msgspec.structs.replace(request, answers=(404,)), self._patience)
        if reply.status == 404 and reply.attempts == 1:
            raise failure_of(reply)
        return reply

    def _excuse(self, path: str, is_ours: Callable[[R], bool], error: ApiError) -> Flow[R]:
        """Return what is there if it is what we wanted: the answer to an earlier attempt may have been lost.

        Then it is we who were in our own way.
        """
        try:
            present = yield from self._read(path)
        except ApiError:
            raise error from None
        if is_ours(present):
            return present
        raise error


class _Desk(Generic[R]):
    """The steps that `applying` needs, for resources below one parent."""

    def __init__(self, operations: ResourceOperations[R], parent: Subject | None) -> None:
        self._operations = operations
        self._parent = parent

    def find(self, name: str) -> Flow[tuple[R, ...]]:
        """Return those with a name."""
        return self._operations._find(name, self._parent)

    def read(self, path: str) -> Flow[R]:
        """Read one."""
        return self._operations._read(path)

    def create(self, wanted: applying.Wanted) -> Flow[R]:
        """Create one."""
        return self._operations._create(wanted.name, wanted.spec, wanted.labels, self._parent, None)

    def replace(self, present: R, spec: Object, labels: Mapping[str, str]) -> Flow[R]:
        """Replace one that is still what we know."""
        return self._operations._replace(present.href, spec, labels, present.generation)


class Resources(ResourceOperations[R], SyncFace):
    """Resources of a kind, for plain code."""

    def __init__(self, link: Link, place: Place[R]) -> None:
        """Reach those of a place."""
        self._link = link
        self._place = place


class AsyncResources(ResourceOperations[R], AsyncFace):
    """Resources of a kind, for code in an event loop."""

    def __init__(self, link: AsyncLink, place: Place[R]) -> None:
        """Reach those of a place."""
        self._link = link
        self._place = place
