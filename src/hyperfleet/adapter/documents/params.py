"""`params`: named values, resolved in their order before anything else."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from hyperfleet.adapter.documents.parts import ABSENT, AnyValue, ApiCallPart, CelText, Part, VariableName

ConversionName = Literal["string", "int", "int64", "float", "float64", "bool"]


class FilePart(Part, frozen=True, kw_only=True):
    """A file, read for every event."""

    path: Annotated[str, Meta(min_length=1, description="An absolute path")]
    trim: Annotated[bool, Meta(description="Cut off blanks and line breaks at both ends")] = True


class EntryPart(Part, frozen=True, kw_only=True):
    """One entry of a Secret or ConfigMap. `namespace` and `name` are templates."""

    namespace: Annotated[str, Meta(min_length=1)]
    name: Annotated[str, Meta(min_length=1)]
    key: Annotated[str, Meta(min_length=1, max_length=253)]


class SourcePart(Part, frozen=True, kw_only=True):
    """Where a value comes from; exactly one of these."""

    api_call: Annotated[ApiCallPart | None, Meta(description="The JSON object that a call answers with")] = None
    expression: CelText | None = None
    file: FilePart | None = None
    secret: Annotated[EntryPart | None, Meta(description="An entry of a Secret; never shown anywhere")] = None
    config_map: EntryPart | None = None


class ParamPart(Part, frozen=True, kw_only=True):
    """A named value: `.name` in templates, `name` in expressions."""

    name: VariableName
    source: Annotated[
        str | SourcePart,
        Meta(description="event.x, env.X, config.x, the name of an earlier param with a path, or a mapping"),
    ]
    type: Annotated[ConversionName | None, Meta(description="Convert the value to this type")] = None
    default: AnyValue = ABSENT
    required: Annotated[bool, Meta(description="Without a value the event fails")] = False
    description: str = ""
