"""A real cluster: the port `ObjectClient` over the HTTP API of an API server (ADR 28)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

import httpx
import msgspec

from hyperfleet.backends.kubernetes.access import ClusterAccess
from hyperfleet.backends.kubernetes.answers import Status, clean, make_error, read_error, read_json
from hyperfleet.backends.kubernetes.connection import connect
from hyperfleet.backends.kubernetes.paths import collection_path, group_path, object_path, read_served
from hyperfleet.errors import KindUnknown, KubernetesUnreachable, ObjectConflict, ObjectInvalid, VersionExpired
from hyperfleet.kubernetes.port import (
    WATCH_SECONDS,
    EventType,
    KubernetesObject,
    ObjectKind,
    ObjectList,
    ObjectRef,
    Propagation,
    Selection,
    ServedKind,
    WatchEvent,
)

_JSON: Final = "application/json"
_APPLY: Final = "application/apply-patch+yaml"  # JSON is YAML
_PAGE: Final = 500  # objects in one answer, as kubectl
_MAX_BYTES: Final = 256 * 1024 * 1024  # of one answer: 500 objects of 500 kB; more must not fill the memory
_MAX_LINE: Final = 16 * 1024 * 1024  # bytes of one event; the largest object has some 3 MB
_TYPES: Final[Mapping[str, EventType]] = {
    "ADDED": "added",
    "MODIFIED": "modified",
    "DELETED": "deleted",
    "BOOKMARK": "bookmark",
}


class ApiServerClient:
    """Reads and writes the objects of the cluster of one API server."""

    def __init__(self, access: ClusterAccess, *, timeout: float = 30.0, page: int = _PAGE) -> None:
        """Make a client; nothing is sent yet. `timeout` is for each whole call, in seconds."""
        self._http: Final = connect(access)
        self._server: Final = access.server
        self._extensions: Final = {"sni_hostname": access.server_name} if access.server_name else {}
        self._timeout: Final = timeout
        self._page: Final = page
        self._kinds: Final[dict[ObjectKind, ServedKind]] = {}

    async def discover(self, kind: ObjectKind) -> ServedKind:
        """Return how a kind is served; one that is not known yet is asked for again every time."""
        if kind not in self._kinds:
            found = read_served(kind, read_json(await self._call("GET", group_path(kind.api_version))))
            self._kinds.update({served.kind: served for served in found.values()})
        if kind not in self._kinds:
            raise KindUnknown(f"the API server does not serve {kind}", status=404)
        return self._kinds[kind]

    async def get(self, ref: ObjectRef) -> KubernetesObject:
        """Return an object."""
        async with self._serving(ref.kind) as served:
            return clean(read_json(await self._call("GET", object_path(served, ref))), ref.kind)

    async def list(self, selection: Selection) -> ObjectList:
        """Return all selected objects, fetched in pages."""
        try:
            return await self._list_pages(selection, self._page)
        except VersionExpired:  # paging took longer than the server keeps versions: ask for everything at once
            return await self._list_pages(selection, 0)

    async def apply(self, manifest: KubernetesObject, *, manager: str, force: bool = False) -> KubernetesObject:
        """Apply an object on the server."""
        return await self._apply(manifest, "", manager, force)

    async def apply_status(self, manifest: KubernetesObject, *, manager: str, force: bool = False) -> KubernetesObject:
        """Apply the status of an object on the server."""
        return await self._apply(manifest, "/status", manager, force)

    async def delete(self, ref: ObjectRef, *, propagation: Propagation = "Background", uid: str | None = None) -> None:
        """Ask to delete an object."""
        options = {"propagationPolicy": propagation, **({"preconditions": {"uid": uid}} if uid else {})}
        async with self._serving(ref.kind) as served:
            await self._call("DELETE", object_path(served, ref), body=options)

    @asynccontextmanager
    async def watch(
        self, selection: Selection, version: str, *, seconds: int = WATCH_SECONDS
    ) -> AsyncGenerator[AsyncIterator[WatchEvent], None]:
        """Yield the changes since a version, as the server sends them."""
        parameters = {
            "watch": "1",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
            **_selector(selection),
        }
        async with self._serving(selection.kind) as served:
            path = collection_path(served, selection.namespace)
            # The server ends the stream; the limit is for one that forgets to.
            timeout = httpx.Timeout(self._timeout, read=seconds + self._timeout)
            request = self._http.build_request(
                "GET", path, params=parameters, timeout=timeout, extensions=self._extensions
            )
            response = await self._send(request)
            try:
                yield self._read_events(response, selection.kind)
            finally:
                await response.aclose()

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    # ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def _apply(self, manifest: KubernetesObject, part: str, manager: str, force: bool) -> KubernetesObject:
        ref = ObjectRef.of(manifest)
        parameters = {"fieldManager": manager, "force": str(force).lower()}
        async with self._serving(ref.kind) as served:
            path = object_path(served, ref) + part
            try:
                answer = await self._call("PATCH", path, parameters=parameters, body=manifest, media_type=_APPLY)
            except ObjectInvalid as error:
                if "metadata.uid" in str(
                    error
                ):  # the object has another one; if there is none, it is a conflict anyway
                    raise ObjectConflict(str(error), status=error.status) from error
                raise
            return clean(read_json(answer), ref.kind)

    async def _list_pages(self, selection: Selection, limit: int) -> ObjectList:
        items: list[KubernetesObject] = []
        parameters = {**_selector(selection), **({"limit": str(limit)} if limit else {})}
        async with self._serving(selection.kind) as served:
            path = collection_path(served, selection.namespace)
            while True:
                page = read_json(await self._call("GET", path, parameters=parameters))
                items += [clean(each, selection.kind) for each in page.get("items") or ()]
                metadata = page.get("metadata") or {}
                if not metadata.get("continue"):
                    return ObjectList(items, str(metadata.get("resourceVersion", "")))
                parameters["continue"] = metadata["continue"]

    @asynccontextmanager
    async def _serving(self, kind: ObjectKind) -> AsyncGenerator[ServedKind, None]:
        """Give how a kind is served; forget it when the server serves it no more."""
        served = await self.discover(kind)
        try:
            yield served
        except KindUnknown:
            self._kinds.pop(kind, None)
            raise

    async def _call(
        self,
        method: str,
        path: str,
        *,
        parameters: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        media_type: str = _JSON,
    ) -> bytes:
        """Send a request, and return the body of the answer, all in a bounded time."""
        request = self._http.build_request(
            method,
            path,
            params=parameters,
            content=None if body is None else msgspec.json.encode(body),
            headers={"Accept": _JSON, "Content-Type": media_type},
            timeout=self._timeout,
            extensions=self._extensions,
        )
        with self._translating():
            async with asyncio.timeout(self._timeout):
                response = await self._send(request)
                try:
                    return await _read_all(response)
                finally:
                    await response.aclose()

    async def _send(self, request: httpx.Request) -> httpx.Response:
        """Send a request, and return the answer to it when its body begins; an error of the server is raised."""
        with self._translating():
            async with asyncio.timeout(self._timeout):
                try:
                    response = await self._http.send(request, stream=True)
                except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
                    # The server closed a connection that was idle. Every request of ours can be repeated.
                    response = await self._http.send(request, stream=True)
                if response.is_success:
                    return response
                try:
                    raise read_error(response.status_code, await _read_all(response), response.headers)
                finally:
                    await response.aclose()

    @contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            yield
        except TimeoutError as error:
            raise KubernetesUnreachable(f"{self._server} did not answer within {self._timeout:g} s") from error
        except httpx.HTTPError as error:
            raise KubernetesUnreachable(f"{self._server} cannot be reached: {error or type(error).__name__}") from error

    async def _read_events(self, response: httpx.Response, kind: ObjectKind) -> AsyncGenerator[WatchEvent, None]:
        with self._translating():
            async for line in _read_lines(response):
                yield _read_event(line, kind)


def _selector(selection: Selection) -> dict[str, str]:
    return {"labelSelector": selection.labels} if selection.labels else {}


async def _read_all(response: httpx.Response) -> bytes:
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > _MAX_BYTES:
            raise KubernetesUnreachable(f"an answer has more than {_MAX_BYTES} bytes", status=response.status_code)
    return bytes(body)


async def _read_lines(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    rest = bytearray()
    async for piece in response.aiter_bytes():
        rest += piece
        if b"\n" in piece:
            *lines, rest_of_line = rest.split(b"\n")
            for line in lines:
                yield bytes(line)
            rest = bytearray(rest_of_line)
        if len(rest) > _MAX_LINE:
            raise KubernetesUnreachable(f"an event of a watch has more than {_MAX_LINE} bytes")


def _read_event(line: bytes, kind: ObjectKind) -> WatchEvent:
    event = read_json(line)
    found = event.get("object") or {}
    if event.get("type") == "ERROR":
        status = msgspec.convert(found, Status)
        raise make_error(status.code, status)
    if event.get("type") not in _TYPES:
        raise KubernetesUnreachable("a watch sent an event of an unknown type")
    version = str((found.get("metadata") or {}).get("resourceVersion", ""))
    return WatchEvent(_TYPES[event["type"]], clean(found, kind), version)
