"""The collections of the compat API: each kind at `/nodepools`, children also below their parent, all at `/resources`.

The handlers of `resources` and `statuses` ask here which resource a path names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from hyperfleet.api.callers import caller_of
from hyperfleet.api.compat.problems import CompatRefused, not_found
from hyperfleet.api.compat.shapes import kind_of
from hyperfleet.api.context import Context
from hyperfleet.api.problems import Refused, from_refusal
from hyperfleet.api.requests import is_id
from hyperfleet.model.kind import Kind
from hyperfleet.ports import Record
from hyperfleet.services.results import Refusal, Target

PREFIX: Final = "/compat"  # where the compat API is mounted
HEADERS: Final = {"Vary": "Authorization"}


class ResourceCollection(Struct, frozen=True):
    """A collection of resources: of a kind, of a kind below a parent, or (without a kind) of all kinds."""

    context: Context
    kind: Kind | None = None
    parent: Kind | None = None

    @property
    def path(self) -> str:
        """Return its path, below the base path."""
        above = f"/{self.parent.plural}/{{parent_id}}" if self.parent else ""
        return f"{above}/{self.kind.plural if self.kind else 'resources'}"

    @property
    def what(self) -> str:
        """Return the name of its items, for people."""
        return self.kind.name if self.kind else "Resource"

    async def find(self, request: Request) -> Record:
        """Return the resource that a path names; a parent in the path must exist."""
        id_, parent_id = str(request.path_params["id"]), await self.find_parent(request)
        record = await self._read(id_, parent_id, request) if is_id(id_) else None
        if record is None:
            raise not_found(self.what, id_)
        return record

    async def find_reported(self, request: Request) -> Target:
        """Return the target of a report; the resource is read only if the path has no kind."""
        if self.kind is None:
            return await self.find_target(request)
        id_, parent_id = str(request.path_params["id"]), request.path_params.get("parent_id")
        if not is_id(id_) or not (parent_id is None or is_id(parent_id)):
            await self.find(request)
        return Target(self.kind, id_, parent_id)

    async def find_target(self, request: Request) -> Target:
        """Return the target of a write."""
        record = await self.find(request)
        return Target(kind_of(record, self.context.kinds), record.resource.id, record.resource.parent_id)

    async def find_parent(self, request: Request) -> str | None:
        """Return the id of the parent that a path names."""
        if self.parent is None:
            return None
        id_, scope = str(request.path_params["parent_id"]), caller_of(request).scope
        if not is_id(id_) or await self.context.store.read_answer(self.parent.name, id_, scope) is None:
            raise not_found(self.parent.name, id_)
        return id_

    def refuse(self, refusal: Refusal, id_: str) -> CompatRefused | Refused:
        """Translate a refusal."""
        return not_found(self.what, id_) if refusal.code == "NotFound" else Refused(from_refusal(refusal))

    async def _read(self, id_: str, parent_id: str | None, request: Request) -> Record | None:
        store, scope = self.context.store, caller_of(request).scope
        if self.kind is not None:
            return await store.read_record(self.kind.name, id_, scope, parent_id)
        return next(iter(await store.read_records([id_], scope)), None)


def list_collections(context: Context) -> Iterator[ResourceCollection]:
    """Yield every collection."""
    for kind in context.kinds:
        yield ResourceCollection(context, kind)
        above = context.kinds.get(kind.parent) if kind.parent else None
        if above is not None:
            yield ResourceCollection(context, kind, above)
    yield ResourceCollection(context)


def answer(shape: object, status: int = 200) -> Response:
    """Answer with JSON."""
    return Response(msgspec.json.encode(shape), status, HEADERS, "application/json")
