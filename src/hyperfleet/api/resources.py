"""Create, read, change and delete resources of every kind; paths of children include their parent."""

from __future__ import annotations

from typing import Final

from msgspec import UNSET, Struct
from msgspec.structs import replace
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hyperfleet.aggregation import BodyProblem
from hyperfleet.api.callers import caller_of
from hyperfleet.api.context import Context
from hyperfleet.api.past import answer_past
from hyperfleet.api.problems import Refused, from_body, from_query, from_refusal
from hyperfleet.api.requests import (
    MERGE_PATCH,
    digest_of,
    idempotency_key_of,
    parent_of,
    preconditions_of,
    read_json,
    refuse_parameters,
    target_of,
)
from hyperfleet.api.resource_bodies import (
    ChangedResource,
    read_creation,
    read_force_reason,
    read_merge_patch,
    read_replacement,
)
from hyperfleet.api.responses import answer_stored, answer_written
from hyperfleet.api.watch import PARAMETERS as WATCHING
from hyperfleet.api.watch import is_watch, watch_one
from hyperfleet.api.wire import RESOURCE_KEYS, href_of, path_of
from hyperfleet.model.kind import Kind
from hyperfleet.services.callers import Caller
from hyperfleet.services.field_masks import FIELDS, FieldMask, mask_answer, read_fields
from hyperfleet.services.past import AT
from hyperfleet.services.resources import Create, Delete, Edit, ForceDelete
from hyperfleet.services.results import Refusal, ResourceEdit, Target, Written, not_found


class _PlainId(Convertor[str]):
    """A path segment without a colon: `/{id}:explain` is another path."""

    regex = "[^/:]+"

    def convert(self, value: str) -> str:
        """Return it unchanged."""
        return value

    def to_string(self, value: str) -> str:
        """Return it unchanged."""
        return value


register_url_convertor("plain", _PlainId())
_ONE: Final = "/{id:plain}"


def routes(context: Context) -> list[Route]:
    """Return the routes of this module, below the base path."""
    found = []
    for kind in context.kinds:
        handlers = _Resources(context, kind)
        path = path_of(kind, context.kinds)
        found += [
            Route(path, handlers.create, methods=["POST"]),
            Route(path + _ONE, handlers.read, methods=["GET"]),
            Route(path + _ONE, handlers.replace, methods=["PUT"]),
            Route(path + _ONE, handlers.patch, methods=["PATCH"]),
            Route(path + _ONE, handlers.delete, methods=["DELETE"]),
            Route(path + _ONE + "/force-delete", handlers.force_delete, methods=["POST"]),
        ]
    return found


class _Resources(Struct, frozen=True):
    """The handlers of one kind."""

    context: Context
    kind: Kind

    async def create(self, request: Request) -> Response:
        """Create a resource."""
        caller = caller_of(request)
        key = idempotency_key_of(request, caller)
        body = await read_json(request, self.context.limits)
        read = read_creation(body, self.kind)
        _check(read.errors)
        command = Create(
            kind=self.kind,
            id=self.context.new_id(self.kind.id_prefix),
            name=read.name,
            spec=read.spec,
            labels=read.labels,
            caller=caller,
            check_spec=self.context.check_spec,
            parent_id=parent_of(request, self.context.kinds, self.kind),
            key=key,
            digest=digest_of(body) if key else "",
            tenancy=self.context.tenancy,
        )
        written = _done(await self.context.committer.submit(command))
        href = href_of(self.kind, written.record.resource.id, command.parent_id, self.context.kinds)
        headers = {"Location": href} | ({"Idempotency-Replayed": "true"} if written.is_repeated else {})
        return answer_written(request, 201, written.record.answer, written.record.revision, headers)

    async def read(self, request: Request) -> Response:
        """Answer a resource: the stored answer, that of a past time, or a watch."""
        target, caller, mask = target_of(request, self.kind), caller_of(request), _mask_of(request)
        if is_watch(request, without=(AT,)):
            return await watch_one(request, self.context, target, caller.scope, mask)
        if AT in request.query_params:
            return await answer_past(request, self.context, target, mask)
        answer = await self.context.store.read_answer(self.kind.name, target.id, caller.scope, target.parent_id)
        if answer is None:
            raise Refused(from_refusal(not_found(target)))
        return answer_stored(request, mask_answer(answer.body, mask), answer.revision)

    async def replace(self, request: Request) -> Response:
        """Replace the spec and the labels of a resource."""
        target = target_of(request, self.kind)
        body = await read_json(request, self.context.limits)
        return await self._edit(request, target, read_replacement(body, self.kind, target.id), is_merge=False)

    async def patch(self, request: Request) -> Response:
        """Merge changes into the spec and the labels of a resource (RFC 7396)."""
        target = target_of(request, self.kind)
        body = await read_json(request, self.context.limits, MERGE_PATCH)
        return await self._edit(request, target, read_merge_patch(body, self.kind, target.id), is_merge=True)

    async def delete(self, request: Request) -> Response:
        """Request the deletion of a resource; it is removed when every adapter has cleaned up."""
        command = Delete(target_of(request, self.kind), caller_of(request), preconditions_of(request))
        written = _done(await self.context.committer.submit(command))
        revision = 0 if written.is_gone else written.record.revision
        return answer_written(request, 202, written.record.answer, revision)

    async def force_delete(self, request: Request) -> Response:
        """Remove a resource that is being deleted, without waiting for adapters."""
        target = target_of(request, self.kind)
        reason, errors = read_force_reason(await read_json(request, self.context.limits))
        _check(errors)
        _done(await self.context.committer.submit(ForceDelete(target, reason, caller_of(request))))
        return Response(status_code=204)

    async def _edit(self, request: Request, target: Target, read: ChangedResource, *, is_merge: bool) -> Response:
        caller = caller_of(request)
        wanted = preconditions_of(request)
        _check(read.errors)
        await self._check_name(target, caller, read)
        generation = None if read.generation is UNSET else read.generation
        command = Edit(
            target,
            ResourceEdit(read.spec, read.labels, is_merge),
            caller,
            self.context.check_spec,
            replace(wanted, generation=generation),
            self.context.tenancy,
        )
        record = _done(await self.context.committer.submit(command)).record
        return answer_written(request, 200, record.answer, record.revision)

    async def _check_name(self, target: Target, caller: Caller, read: ChangedResource) -> None:
        """Refuse another name. Names never change, so checking before the write is safe."""
        if read.name is UNSET:
            return
        record = await self.context.store.read_record(self.kind.name, target.id, caller.scope, target.parent_id)
        if record is None:
            raise Refused(from_refusal(not_found(target)))
        if record.resource.name != read.name:
            message = f"the name is {record.resource.name} and cannot be changed"
            raise Refused(from_body((BodyProblem("/name", "Immutable", message),)))


def _mask_of(request: Request) -> FieldMask:
    """Read the field mask."""
    refuse_parameters(request, (FIELDS, AT, *WATCHING))
    mask = read_fields(request.query_params.getlist(FIELDS), RESOURCE_KEYS)
    if mask.errors:
        raise Refused(from_query(mask.errors))
    return mask


def _check(errors: tuple[BodyProblem, ...]) -> None:
    """Refuse a body with errors."""
    if errors:
        raise Refused(from_body(errors))


def _done(result: Written | Refusal) -> Written:
    """Return the result of a write, or refuse the request."""
    if isinstance(result, Refusal):
        raise Refused(from_refusal(result))
    return result
