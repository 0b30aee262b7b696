"""The whole documents: one file of ours, and the two of the Go adapter."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import Meta

from hyperfleet.adapter.documents.clients import AdapterPart, ClientsPart, LogSection
from hyperfleet.adapter.documents.objects import ResourcePart, TrackPart
from hyperfleet.adapter.documents.params import ParamPart
from hyperfleet.adapter.documents.parts import Part
from hyperfleet.adapter.documents.post import PostPart
from hyperfleet.adapter.documents.preconditions import PreconditionPart
from hyperfleet.documents.schema import describe_schema

SCHEMA_ID: Final = "urn:hyperfleet:schema:adapter"


class TaskDocument(Part, frozen=True, kw_only=True):
    """The Go adapter's task config: what it does."""

    params: Annotated[tuple[ParamPart, ...], Meta(description="Values, resolved in this order")] = ()
    preconditions: Annotated[
        tuple[PreconditionPart, ...], Meta(description="Checked in this order before objects are applied")
    ] = ()
    resources: Annotated[
        tuple[ResourcePart, ...], Meta(description="Objects, applied in this order and deleted in reverse")
    ] = ()
    track: Annotated[TrackPart, Meta(description="Objects of others to watch")] = TrackPart()
    post: Annotated[PostPart, Meta(description="What is reported")] = PostPart()


class DeploymentDocument(Part, frozen=True, kw_only=True):
    """The Go adapter's deployment config: where it runs."""

    adapter: AdapterPart
    debug_config: Annotated[bool, Meta(description="No effect here")] = False
    log: Annotated[LogSection, Meta(description="No effect here")] = LogSection()
    clients: ClientsPart = ClientsPart()


class AdapterDocument(Part, frozen=True, kw_only=True):
    """A HyperFleet adapter."""

    adapter: AdapterPart
    debug_config: Annotated[bool, Meta(description="No effect here")] = False
    log: Annotated[LogSection, Meta(description="No effect here")] = LogSection()
    clients: ClientsPart = ClientsPart()
    params: Annotated[tuple[ParamPart, ...], Meta(description="Values, resolved in this order")] = ()
    preconditions: Annotated[
        tuple[PreconditionPart, ...], Meta(description="Checked in this order before objects are applied")
    ] = ()
    resources: Annotated[
        tuple[ResourcePart, ...], Meta(description="Objects, applied in this order and deleted in reverse")
    ] = ()
    track: Annotated[TrackPart, Meta(description="Objects of others to watch")] = TrackPart()
    post: Annotated[PostPart, Meta(description="What is reported")] = PostPart()


def adapter_schema() -> dict[str, Any]:
    """Return the JSON Schema of an adapter file."""
    return describe_schema(AdapterDocument, id_=SCHEMA_ID, title="HyperFleet adapter")
