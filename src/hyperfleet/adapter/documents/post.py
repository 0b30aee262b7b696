"""`post`: the status payload and what is done with it, as the Go adapter and as the contract write it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, field

from hyperfleet.adapter.documents.parts import (
    ABSENT,
    AnyValue,
    ApiCallPart,
    HeaderPart,
    Identifier,
    LogPart,
    Part,
    TemplateText,
    VariableName,
    WhenPart,
)


class PayloadPart(Part, frozen=True, kw_only=True):
    """A JSON document: a tree of templates and values, inline or in a file."""

    name: VariableName
    build: Any = None
    build_ref: str | None = None
    when: WhenPart | None = None


class PostActionPart(Part, frozen=True, kw_only=True):
    """A log line, an API call, or both."""

    name: Identifier
    when: WhenPart | None = None
    log: LogPart | None = None
    api_call: ApiCallPart | None = None


class ValuePart(Part, frozen=True, kw_only=True):
    """A value that an expression of the contract computes."""

    expression: Annotated[str, Meta(min_length=1, description="An expression of the contract")]
    default: AnyValue = ABSENT
    description: str = ""


class StatusConditionPart(Part, frozen=True, kw_only=True):
    """One condition: its status is a boolean expression."""

    status: ValuePart
    reason: Annotated[ValuePart | str | None, Meta(description="A text is used as it is")] = None
    message: ValuePart | str | None = None


class StatusBuildPart(Part, frozen=True, kw_only=True):
    """The contract's status payload."""

    conditions: Annotated[
        dict[str, StatusConditionPart], Meta(description="applied, available and health; others may be added")
    ]
    data: Annotated[dict[str, Any], Meta(description="Values by name, nested as you like")] = field(
        default_factory=dict
    )
    metadata: Annotated[dict[str, Any], Meta(description="Added to the metadata of the framework")] = field(
        default_factory=dict
    )


class StatusParameterPart(Part, frozen=True, kw_only=True):
    """A named status payload."""

    name: VariableName
    build: StatusBuildPart


class ContractActionPart(Part, frozen=True, kw_only=True):
    """An API call, as the contract writes it."""

    name: Identifier | None = None
    type: Literal["api_call"] = "api_call"
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    endpoint: Annotated[str, Meta(min_length=1, description="A URL; a template")]
    headers: tuple[HeaderPart, ...] = ()
    body: TemplateText | None = None


class PostPart(Part, frozen=True, kw_only=True, rename={"contract_actions": "postActions"}):
    """What is reported. `payloads` and `post_actions` are the Go adapter's, the others the contract's."""

    payloads: tuple[PayloadPart, ...] = ()
    post_actions: tuple[PostActionPart, ...] = ()
    parameters: tuple[StatusParameterPart, ...] = ()
    contract_actions: tuple[ContractActionPart, ...] = ()
