"""`preconditions`: what must be true before objects are applied."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from hyperfleet.adapter.documents.parts import (
    ABSENT,
    AnyValue,
    ApiCallPart,
    CelText,
    Identifier,
    LogPart,
    Part,
    VariableName,
)

OperatorName = Literal[
    "equals",
    "notEquals",
    "in",
    "notIn",
    "contains",
    "greaterThan",
    "greaterThanOrEqual",
    "lessThan",
    "lessThanOrEqual",
    "exists",
    "notExists",
]


class CapturePart(Part, frozen=True, kw_only=True):
    """A value of the answer, by a field path or an expression."""

    name: VariableName
    field: str | None = None
    expression: CelText | None = None
    default: Annotated[AnyValue, Meta(description="If the field is not there")] = ABSENT


class ConditionPart(Part, frozen=True, kw_only=True):
    """A comparison of one field."""

    field: Annotated[str, Meta(min_length=1)]
    operator: OperatorName
    value: AnyValue = ABSENT
    values: AnyValue = ABSENT


class PreconditionPart(Part, frozen=True, kw_only=True):
    """A named check: all of its conditions, or its expression."""

    name: Identifier
    api_call: Annotated[ApiCallPart | None, Meta(description="Deprecated: use a param with api_call")] = None
    capture: tuple[CapturePart, ...] = ()
    conditions: tuple[ConditionPart, ...] = ()
    expression: CelText | None = None
    log: LogPart | None = None
    description: str = ""
