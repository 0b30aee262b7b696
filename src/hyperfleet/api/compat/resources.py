"""Resources in the compat API: create, read, change and delete them in every collection."""

from __future__ import annotations

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hyperfleet.api.callers import caller_of
from hyperfleet.api.compat.bodies import read_kind, read_new, read_object, read_patch, read_reason
from hyperfleet.api.compat.listing import find_page, read_listing
from hyperfleet.api.compat.problems import CONFLICT, EXISTS, INVALID, CompatRefused, FieldError, not_found, spell_field
from hyperfleet.api.compat.projection import project, read_projection
from hyperfleet.api.compat.resource_collections import ResourceCollection, answer, list_collections
from hyperfleet.api.compat.shapes import CompatPage, shape_resource
from hyperfleet.api.context import Context
from hyperfleet.api.problems import Refused, from_refusal
from hyperfleet.model.kind import Kind
from hyperfleet.services.resources import Create, Delete, Edit, ForceDelete
from hyperfleet.services.results import Refusal, Target


def routes(context: Context) -> list[Route]:
    """Return the routes of this module, below the base path."""
    found = []
    for collection in list_collections(context):
        handlers, one = _Resources(collection), f"{collection.path}/{{id}}"
        found += [
            Route(collection.path, handlers.list, methods=["GET"]),
            Route(collection.path, handlers.create, methods=["POST"]),
            Route(one, handlers.read, methods=["GET"]),
            Route(one, handlers.patch, methods=["PATCH"]),
            Route(one, handlers.delete, methods=["DELETE"]),
            Route(f"{one}/force-delete", handlers.force_delete, methods=["POST"]),
        ]
    return found


class _Resources(Struct, frozen=True):
    """The handlers of one collection."""

    collection: ResourceCollection

    @property
    def context(self) -> Context:
        """Return the services behind the API."""
        return self.collection.context

    async def list(self, request: Request) -> Response:
        """Answer one page of resources."""
        projection = read_projection(request)
        listing = read_listing(request, self.collection)
        parent_id = await self.collection.find_parent(request)
        found = await find_page(listing, self.collection, parent_id, caller_of(request).scope)
        items = [project(shape_resource(record, self.context.kinds), projection) for record in found.records]
        return answer(CompatPage(items, listing.page.number, len(items), found.total))

    async def create(self, request: Request) -> Response:
        """Create a resource."""
        body = await read_object(request, self.context.limits)
        kind = self.collection.kind or self._kind_of(body)
        read = read_new(body, kind)
        if kind.parent is not None and self.collection.parent is None:
            message = f"a {kind.name} is created below its {kind.parent}"
            raise CompatRefused(INVALID, message, (FieldError("kind", message),), status=422)
        parent_id = await self.collection.find_parent(request)
        command = Create(
            kind=kind,
            id=self.context.new_id(kind.id_prefix),
            name=read.name,
            spec=read.spec,
            labels=read.labels,
            caller=caller_of(request),
            check_spec=self.context.check_spec,
            parent_id=parent_id,
            tenancy=self.context.tenancy,
        )
        result = await self.context.committer.submit(command)
        if isinstance(result, Refusal):
            raise _refuse_creation(result, kind, parent_id)
        return answer(shape_resource(result.record, self.context.kinds), 201)

    async def read(self, request: Request) -> Response:
        """Answer a resource; also one that is being deleted."""
        projection = read_projection(request)
        record = await self.collection.find(request)
        return answer(project(shape_resource(record, self.context.kinds), projection))

    async def patch(self, request: Request) -> Response:
        """Replace the spec, the labels, or both."""
        body = await read_object(request, self.context.limits)
        target = await self.collection.find_target(request)
        context, change = self.context, read_patch(body, target.kind)
        command = Edit(target, change, caller_of(request), context.check_spec, tenancy=context.tenancy)
        result = await self.context.committer.submit(command)
        if isinstance(result, Refusal):
            raise self._refuse(result, target)
        if result.record.resource.is_deleting:  # nothing changed: any other edit is refused
            raise _being_deleted(target.kind.name, target.id)
        return answer(shape_resource(result.record, self.context.kinds))

    async def delete(self, request: Request) -> Response:
        """Request the deletion of a resource."""
        target = await self.collection.find_target(request)
        result = await self.context.committer.submit(Delete(target, caller_of(request)))
        if isinstance(result, Refusal):
            raise self._refuse(result, target)
        return answer(shape_resource(result.record, self.context.kinds), 202)

    async def force_delete(self, request: Request) -> Response:
        """Remove a resource that is being deleted, and its children, without waiting for adapters."""
        reason = read_reason(await read_object(request, self.context.limits))
        target = await self.collection.find_target(request)
        result = await self.context.committer.submit(ForceDelete(target, reason, caller_of(request)))
        if isinstance(result, Refusal):
            raise self._refuse(result, target)
        return Response(status_code=204)

    # steps

    def _kind_of(self, body: dict[str, object]) -> Kind:
        name = read_kind(body)
        kind = self.context.kinds.get(name)
        if kind is None:
            message = f"unknown kind '{name[:80]}'"
            raise CompatRefused(INVALID, message, (FieldError("kind", message, "enum"),))
        return kind

    def _refuse(self, refusal: Refusal, target: Target) -> CompatRefused | Refused:
        match refusal.code:
            case "BeingDeleted":
                return _being_deleted(target.kind.name, target.id)
            case "NotBeingDeleted":
                return CompatRefused(CONFLICT, f"{target.kind.name} '{target.id}' is not marked for deletion")
            case "InvalidSpec":
                return _invalid_spec(refusal, target.kind)
        return self.collection.refuse(refusal, target.id)


def _refuse_creation(refusal: Refusal, kind: Kind, parent_id: str | None) -> CompatRefused | Refused:
    match refusal.code:
        case "NameTaken":
            return CompatRefused(EXISTS, f"This {kind.name} already exists")
        case "ParentBeingDeleted":
            return _being_deleted(kind.parent or "", parent_id or "")
        case "NotFound":
            return not_found(kind.parent or "", parent_id or "")
        case "InvalidSpec":
            return _invalid_spec(refusal, kind)
    return Refused(from_refusal(refusal))


def _being_deleted(kind: str, id_: str) -> CompatRefused:
    return CompatRefused(CONFLICT, f"{kind} '{id_}' is marked for deletion")


def _invalid_spec(refusal: Refusal, kind: Kind) -> CompatRefused:
    errors = tuple([FieldError(spell_field(each.pointer), each.message) for each in refusal.errors])
    return CompatRefused(INVALID, f"Invalid {kind.name}Spec", errors)
