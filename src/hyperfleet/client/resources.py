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
from hyperfleet.client.answers.resource import Applied, Page, PageAnswer, R, ReconcileRequested, WatchEvent
from hyperfleet.client.effects import ApiRequest, Feed, Flow, Query, Reply
from hyperfleet.client.errors import Ambiguous, ApiError, Conflict, NotFound, PreconditionFailed
from hyperfleet.client.exchange import JSON, decode, decode_part, exchange, failure_of, fetch
from hyperfleet.client.operation import AsyncFace, Face, SyncFace, feed, operation
from hyperfleet.client.paging import PAGE, turn_pages
from hyperfleet.client.paths import ResourceLike, ResourceType, not_found, quote_segment
from hyperfleet.client.query import Filters, ListOptions, Moment, TextList, query_of
from hyperfleet.client.transport import AsyncLink, Link
from hyperfleet.client.waiting import VersionCallback, WaitOptions
from hyperfleet.client.watching import Watch

_MERGE_PATCH: Final = {"Content-Type": "application/merge-patch+json"}

Object = Mapping[str, Any]


class ResourceOperations(Face, Generic[R]):
    """The operations on resources of one kind.

    A resource is given as an object, an id or an address. `parent` is the cluster of a node pool: without it, a node
    pool given only by id is looked up first, and lists are those of the whole fleet.
    """

    _type: ResourceType[R]

    # ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────

    @operation
    def get(
        self,
        subject: ResourceLike,
        *,
        parent: ResourceLike | None = None,
        at: Moment | None = None,
        fields: TextList | None = None,
    ) -> Flow[R]:
        """Read a resource; with `at`, as it was then; with `fields`, only parts of it."""
        path = yield from self._locate(subject, parent)
        return (yield from self._read(path, query_of({"at": at, "fields": fields})))

    @operation
    def find(self, name: str, *, parent: ResourceLike | None = None) -> Flow[R]:
        """Read the resource with this name or id; raise `NotFound`, or `Ambiguous` if several have the name."""
        found = yield from self._find(name, parent)
        if not found:
            raise NotFound(not_found(f"there is no {self._type.noun} with the name or id {name}"))
        if len(found) > 1:
            ids = tuple(each.id for each in found)
            raise Ambiguous(f"{len(found)} {self._type.noun}s are called {name}: {', '.join(ids)}; give the id", ids)
        return found[0]

    @feed
    def list(
        self,
        *,
        parent: ResourceLike | None = None,
        limit: int | None = None,
        page_size: int = PAGE,
        **listing: Unpack[ListOptions],
    ) -> Feed[R]:
        """Yield all matching resources, page by page; at most `limit`."""
        yield from self._turn_pages(self._type.shape, self._above(parent), listing, limit, page_size)

    @operation
    def page(
        self,
        *,
        parent: ResourceLike | None = None,
        continue_: str | None = None,
        limit: int | None = None,
        page: int | None = None,
        size: int | None = None,
        **listing: Unpack[ListOptions],
    ) -> Flow[Page[R]]:
        """Read one page: by `continue_` of the previous one, or by number, with the total."""
        keywords = {**listing, "continue": continue_, "limit": limit, "page": page, "size": size}
        return (yield from self._page(parent, keywords))

    @operation
    def summary(
        self,
        group_by: TextList = "phase",
        *,
        parent: ResourceLike | None = None,
        at: Moment | None = None,
        trend: str | timedelta | None = None,
        step: str | timedelta | None = None,
        **filters: Unpack[Filters],
    ) -> Flow[Summary]:
        """Count them by what they have in common: now, or `at` a time in the past.

        With `trend`, also how it was for so long before, at a point every `step`.
        """
        query = query_of({"group_by": group_by, "at": at, "trend": trend, "step": step, **filters})
        return (yield from fetch(Summary, ApiRequest("GET", f"{self._above(parent)}:summary", query), self._retry))

    @operation
    def statuses(
        self,
        subject: ResourceLike,
        *,
        parent: ResourceLike | None = None,
        generation: int | None = None,
        at: Moment | None = None,
    ) -> Flow[Reports]:
        """Read the last report of every adapter, at a generation or at a time in the past; empty before the first."""
        path = yield from self._locate(subject, parent)
        request = ApiRequest("GET", f"{path}/statuses", query_of({"generation": generation, "at": at}), answers=(404,))
        reply = yield from exchange(request, self._retry)
        if reply.is_success:
            return decode(Reports, reply)
        yield from self._read(path, query_of({"fields": "id", "at": at}))  # raises if the resource itself is missing
        return Reports()

    @operation
    def adapter_status(
        self, subject: ResourceLike, adapter: str, *, parent: ResourceLike | None = None
    ) -> Flow[AdapterReport]:
        """Read the last report of one adapter."""
        path = yield from self._locate(subject, parent)
        return (
            yield from fetch(
                AdapterReport, ApiRequest("GET", f"{path}/statuses/adapters/{quote_segment(adapter)}"), self._retry
            )
        )

    @feed
    def history(
        self,
        subject: ResourceLike,
        *,
        parent: ResourceLike | None = None,
        subjects: TextList | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        limit: int | None = None,
    ) -> Feed[HistoryEntry]:
        """Yield every transition of the phase and of conditions, newest first."""
        path = yield from self._locate(subject, parent)
        given = {"subject": subjects, "since": since, "until": until}
        yield from self._turn_pages(HistoryEntry, f"{path}/history", given, limit)

    @operation
    def explain(
        self, subject: ResourceLike, *, parent: ResourceLike | None = None, condition: str | None = None
    ) -> Flow[Explanation]:
        """Explain the status: the culprits, and the smallest changes that would fix it."""
        path = yield from self._locate(subject, parent)
        query = query_of({"condition": condition})
        return (yield from fetch(Explanation, ApiRequest("GET", f"{path}:explain", query), self._retry))

    @operation
    def diff(
        self,
        subject: ResourceLike,
        *,
        parent: ResourceLike | None = None,
        from_: Moment | None = None,
        to: Moment | None = None,
        against: str | None = None,
        times: bool | None = None,
    ) -> Flow[Diff]:
        """Return the differences: since `from_`, or from the resource with the id `against`."""
        path = yield from self._locate(subject, parent)
        query = query_of({"from": from_, "to": to, "against": against, "times": times})
        return (yield from fetch(Diff, ApiRequest("GET", f"{path}:diff", query), self._retry))

    # ── watching and waiting ─────────────────────────────────────────────────────────────────────────────────────

    @feed
    def watch(
        self,
        subject: ResourceLike | None = None,
        *,
        parent: ResourceLike | None = None,
        after: int | None = None,
        fields: TextList | None = None,
        **filters: Unpack[Filters],
    ) -> Feed[WatchEvent[R]]:
        """Follow all matching resources, or one, through lost connections and restarts of the server.

        Starts with a list, or after the position `after`. Ends only when a single followed resource is removed.
        """
        path = self._above(parent) if subject is None else (yield from self._locate(subject, parent))
        request = ApiRequest("GET", path, query_of({**filters, "fields": fields}))
        watch = Watch(request, self._type.shape, self._retry, after=after)
        yield from watch.follow(is_single=subject is not None)

    @operation
    def wait(
        self,
        subject: ResourceLike,
        *,
        parent: ResourceLike | None = None,
        on_version: VersionCallback[R] | None = None,
        **options: Unpack[WaitOptions],
    ) -> Flow[R | None]:
        """Wait for a state; return the resource at that time, or None if it is gone and the wait was for that.

        Raises `WaitFailed`, `WaitTimeout` or `Gone`. `on_version` is called with every version until then.
        """
        path = yield from self._locate(subject, parent)
        return (yield from waiting.wait(path, options, self._type.shape, self._retry, on_version))

    # ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────

    @operation
    def create(
        self,
        name: str,
        spec: Object,
        *,
        labels: Mapping[str, str] | None = None,
        parent: ResourceLike | None = None,
        key: str | None = None,
    ) -> Flow[R]:
        """Create a resource. Safe to retry: every creation has an idempotency key, by default a random one."""
        return (yield from self._create(name, spec, labels, parent, key))

    @operation
    def apply(
        self,
        name: str,
        spec: Object,
        *,
        labels: Mapping[str, str] | None = None,
        parent: ResourceLike | None = None,
        dry_run: bool = False,
    ) -> Flow[Applied[R]]:
        """Create a resource, or update the one with this name; with `labels` None it keeps its labels."""
        wanted = applying.DesiredState(name, spec, labels)
        return (yield from applying.apply(_ApplySteps(self, parent), wanted, dry_run=dry_run))

    @operation
    def replace(
        self,
        subject: ResourceLike,
        spec: Object,
        *,
        labels: Mapping[str, str] | None = None,
        parent: ResourceLike | None = None,
        generation: int | None = None,
        etag: str | None = None,
    ) -> Flow[R]:
        """Replace spec and labels (None: no labels), only if generation or ETag are still those given."""
        path = yield from self._locate(subject, parent)
        return (yield from self._replace(path, spec, labels or {}, generation, etag))

    @operation
    def patch(
        self,
        subject: ResourceLike,
        changes: Object,
        *,
        parent: ResourceLike | None = None,
        etag: str | None = None,
    ) -> Flow[R]:
        """Merge changes into a resource (RFC 7396): `{"spec": {"region": None}, "labels": {"env": "prod"}}`.

        With `generation` among the changes, only if that is still its generation. Not retried once it was sent.
        """
        path = yield from self._locate(subject, parent)
        headers = {**_MERGE_PATCH, **({"If-Match": etag} if etag else {})}
        request = ApiRequest("PATCH", path, (), headers, msgspec.json.encode(changes), is_repeatable=False)
        return (yield from fetch(self._type.shape, request, self._retry))

    @operation
    def label(
        self,
        subject: ResourceLike,
        labels: Mapping[str, str | None],
        *,
        parent: ResourceLike | None = None,
        overwrite: bool = True,
    ) -> Flow[R]:
        """Set labels; None removes one. Without `overwrite`, a label with another value is a `Conflict`."""
        path = yield from self._locate(subject, parent)
        return (yield from applying.label(_ApplySteps(self, parent), path, labels, overwrite=overwrite))

    @operation
    def delete(
        self,
        subject: ResourceLike,
        *,
        parent: ResourceLike | None = None,
        etag: str | None = None,
        wait: bool = False,
        timeout: float = 600.0,
    ) -> Flow[R | None]:
        """Delete a resource; return it as it is now, or None if it is gone. With `wait`, return when it is gone."""
        path = yield from self._locate(subject, parent)
        marked = yield from self._mark(path, etag)
        if not wait or marked is None:
            return marked
        options: WaitOptions = {"for_": "deleted", "timeout": timeout}
        return (yield from waiting.wait(path, options, self._type.shape, self._retry))

    @operation
    def force_delete(self, subject: ResourceLike, reason: str, *, parent: ResourceLike | None = None) -> Flow[None]:
        """Remove a resource that is being deleted, without waiting for adapters; history keeps the reason."""
        path = yield from self._locate(subject, parent)
        body = msgspec.json.encode({"reason": reason})
        yield from self._remove(ApiRequest("POST", f"{path}/force-delete", (), JSON, body))

    @operation
    def reconcile(self, subject: ResourceLike, *, parent: ResourceLike | None = None) -> Flow[ReconcileRequested]:
        """Ask the adapters of a resource to look at it again; returns when the event is in the log."""
        path = yield from self._locate(subject, parent)
        request = ApiRequest("POST", f"{path}:reconcile")
        return (yield from fetch(ReconcileRequested, request, self._retry))

    @operation
    def reconcile_all(
        self, *, parent: ResourceLike | None = None, **filters: Unpack[Filters]
    ) -> Flow[ReconcileRequested]:
        """Ask the adapters of all matching resources to look at them again, with one request."""
        request = ApiRequest("POST", f"{self._above(parent)}:reconcile", query_of(filters))
        return (yield from fetch(ReconcileRequested, request, self._retry))

    @operation
    def retire_adapter(self, subject: ResourceLike, adapter: str, *, parent: ResourceLike | None = None) -> Flow[None]:
        """Remove the report of an adapter that will not report again."""
        path = yield from self._locate(subject, parent)
        yield from self._remove(ApiRequest("DELETE", f"{path}/statuses/adapters/{quote_segment(adapter)}"))

    # ── the steps they share ─────────────────────────────────────────────────────────────────────────────────────

    def _above(self, parent: ResourceLike | None) -> str:
        return self._type.collection(parent)

    def _locate(self, subject: ResourceLike, parent: ResourceLike | None) -> Flow[str]:
        return self._type.locate(subject, self._retry, parent)

    def _read(self, path: str, query: Query = ()) -> Flow[R]:
        return fetch(self._type.shape, ApiRequest("GET", path, query), self._retry)

    def _turn_pages(
        self, shape: type[D], path: str, keywords: Mapping[str, object], limit: int | None, page_size: int = PAGE
    ) -> Feed[D]:
        """Yield what is on the pages of a list, one after the other; at most `limit`."""
        return turn_pages(shape, path, keywords, limit, self._retry, page_size=page_size)

    def _page(self, parent: ResourceLike | None, keywords: Mapping[str, object]) -> Flow[Page[R]]:
        answer = yield from fetch(PageAnswer, ApiRequest("GET", self._above(parent), query_of(keywords)), self._retry)
        items = tuple([decode_part(self._type.shape, raw) for raw in answer.items])
        return Page(items, answer.continue_, answer.total)

    def _find(self, name: str, parent: ResourceLike | None) -> Flow[tuple[R, ...]]:
        """Return the resources with a name or an id; those being deleted only if there are no others."""
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
        self, name: str, spec: Object, labels: Mapping[str, str] | None, parent: ResourceLike | None, key: str | None
    ) -> Flow[R]:
        if self._type.parent is not None and parent is None:
            raise ValueError(f"a {self._type.noun} needs a parent: the {self._type.parent.name.lower()} it is in")
        body = {"name": name, "spec": spec, **({} if labels is None else {"labels": labels})}
        headers = {**JSON, "Idempotency-Key": key or self._retry.runtime.make_key()}
        request = ApiRequest("POST", self._above(parent), (), headers, msgspec.json.encode(body))
        return (yield from fetch(self._type.shape, request, self._retry))

    def _replace(
        self, path: str, spec: Object, labels: Mapping[str, str], generation: int | None, etag: str | None = None
    ) -> Flow[R]:
        body: dict[str, Any] = {"spec": spec, "labels": labels}
        if generation is not None:
            body["generation"] = generation
        headers = {**JSON, **({"If-Match": etag} if etag else {})}
        request = ApiRequest("PUT", path, (), headers, msgspec.json.encode(body))
        try:
            return (yield from fetch(self._type.shape, request, self._retry))
        except (Conflict, PreconditionFailed) as error:
            if error.attempts == 1:
                raise
            return (
                yield from self._excuse(
                    path, lambda present: applying.matches(present, spec, labels) and not present.is_deleting, error
                )
            )

    def _mark(self, path: str, etag: str | None) -> Flow[R | None]:
        """Delete a resource; return None if it is gone."""
        request = ApiRequest("DELETE", path, (), {"If-Match": etag} if etag else {})
        try:
            reply = yield from self._remove(request)
        except PreconditionFailed as error:
            if error.attempts == 1:
                raise
            return (yield from self._excuse(path, lambda present: present.is_deleting, error))
        return decode(self._type.shape, reply) if reply.is_success else None

    def _remove(self, request: ApiRequest) -> Flow[Reply]:
        """Delete something; NotFound counts as success if an earlier attempt may have deleted it."""
        reply = yield from exchange(msgspec.structs.replace(request, answers=(404,)), self._retry)
        if reply.status == 404 and reply.attempts == 1:
            raise failure_of(reply)
        return reply

    def _excuse(self, path: str, is_ours: Callable[[R], bool], error: ApiError) -> Flow[R]:
        """Return the present resource if it is as wanted: the response to an earlier attempt may have been lost.

        Then it is we who were in our own way.
        """
        try:
            present = yield from self._read(path)
        except ApiError:
            raise error from None
        if is_ours(present):
            return present
        raise error


class _ApplySteps(Generic[R]):
    """The requests that `applying` needs, for resources below one parent."""

    def __init__(self, operations: ResourceOperations[R], parent: ResourceLike | None) -> None:
        self._operations = operations
        self._parent = parent

    def find(self, name: str) -> Flow[tuple[R, ...]]:
        """Return the resources with a name."""
        return self._operations._find(name, self._parent)

    def read(self, path: str) -> Flow[R]:
        """Read a resource."""
        return self._operations._read(path)

    def create(self, wanted: applying.DesiredState) -> Flow[R]:
        """Create a resource."""
        return self._operations._create(wanted.name, wanted.spec, wanted.labels, self._parent, None)

    def replace(self, present: R, spec: Object, labels: Mapping[str, str]) -> Flow[R]:
        """Replace a resource if it has not changed."""
        return self._operations._replace(present.href, spec, labels, present.generation)


class Resources(ResourceOperations[R], SyncFace):
    """Resources of a kind, synchronously."""

    def __init__(self, link: Link, place: ResourceType[R]) -> None:
        """Bind the operations to a connection and a type of resource."""
        self._link = link
        self._type = place


class AsyncResources(ResourceOperations[R], AsyncFace):
    """Resources of a kind, asynchronously."""

    def __init__(self, link: AsyncLink, place: ResourceType[R]) -> None:
        """Bind the operations to a connection and a type of resource."""
        self._link = link
        self._type = place
