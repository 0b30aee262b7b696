"""Parts that several sections of an adapter file share: names, texts, gates, calls and log lines."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct

MAX_NAME: Final = 63  # characters, as the name of a label

# A hyphen would be a minus in an expression.
Identifier = Annotated[
    str,
    Meta(
        pattern="^[a-z][a-zA-Z0-9_]*$",
        max_length=MAX_NAME,
        extra={"expected": "a name of letters, digits and _ that begins with a small letter, such as dnsJob"},
    ),
]
VariableName = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
TemplateText = Annotated[str, Meta(description="A template: {{ .name }} is replaced by a value")]
CelText = Annotated[str, Meta(description="An expression in CEL")]
# Given or not matters more than null, so checks ask `Places.is_given`.
AnyValue = Annotated[Any, Meta(description="Any value")]
ABSENT: Final[Any] = UNSET


class Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of an adapter file. Keys are spelt as in the Go adapter."""


class HeaderPart(Part, frozen=True, kw_only=True):
    """A header of a request."""

    name: Annotated[str, Meta(min_length=1, max_length=200, pattern="^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")]
    value: TemplateText


class ApiCallPart(Part, frozen=True, kw_only=True):
    """A call of an HTTP API."""

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    url: Annotated[str, Meta(min_length=1, description="A path of the HyperFleet API, or a whole URL; a template")]
    timeout: Annotated[str | None, Meta(description="How long one attempt may take, such as 3s")] = None
    retry_attempts: Annotated[int, Meta(ge=0, le=100, description="Attempts in all; 0: as clients.hyperfleet_api")] = 0
    retry_backoff: Literal["exponential", "linear", "constant"] | None = None
    body: Annotated[str | None, Meta(description="A template; for POST, PUT and PATCH")] = None
    headers: tuple[HeaderPart, ...] = ()


class WhenPart(Part, frozen=True, kw_only=True):
    """A gate."""

    expression: CelText


class LogPart(Part, frozen=True, kw_only=True):
    """A line for the log."""

    message: TemplateText
    level: Literal["debug", "info", "warn", "warning", "error"] = "info"
