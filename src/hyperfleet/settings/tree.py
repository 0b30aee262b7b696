"""Everything that can be set: one tree of values, and the same as a flat table.

The descriptions are read by people: `hyperfleet serve --help`, docs/settings.md and the JSON Schema are made of them.
Every field has a default, so that `hyperfleet serve` works with no settings at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Annotated, Any, Final, Literal

from msgspec import NODEFAULT, Meta, Struct, field, inspect

from hyperfleet.documents.durations import Duration, format_duration
from hyperfleet.documents.pointer import join
from hyperfleet.documents.schema import describe_schema
from hyperfleet.settings.endpoints import conceal

SCHEMA_ID: Final = "urn:hyperfleet:schema:settings"
PREFIX: Final = "HYPERFLEET_"

KIB: Final = 1024
MIB: Final = 1024 * KIB

SchemaFile = Annotated[
    str, Meta(min_length=1, extra={"expected": "the path of a JSON Schema (in the environment: Cluster=PATH)"})
]


class _Group(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A part of the tree."""


class Limits(_Group, frozen=True, kw_only=True):
    """How much the server takes on; beyond it a request is refused at once instead of everything becoming slow."""

    max_body_bytes: Annotated[
        int, Meta(ge=KIB, le=256 * MIB, description="Size of a request body, counted after decompression")
    ] = MIB
    max_batch_bytes: Annotated[
        int, Meta(ge=KIB, le=256 * MIB, description="Size of the body of a request with many reports")
    ] = 8 * MIB
    max_depth: Annotated[int, Meta(ge=8, le=256, description="How deep the JSON of a body may be nested")] = 32
    max_batch_reports: Annotated[int, Meta(ge=1, le=100_000, description="Reports in one request")] = 1_000
    max_queued_writes: Annotated[
        int, Meta(ge=1, le=1_000_000, description="Writes that wait for a transaction; the next one is answered 503")
    ] = 2_000
    max_writes_per_transaction: Annotated[
        int, Meta(ge=1, le=10_000, description="Writes committed together at most")
    ] = 256
    max_connections: Annotated[
        int, Meta(ge=1, le=1_000_000, description="Requests that one worker serves at once; more wait")
    ] = 1_024
    max_watches: Annotated[
        int, Meta(ge=1, le=100_000, description="Watches and waits that one worker serves beside; more get 503")
    ] = 1_000
    request_timeout: Annotated[
        Duration, Meta(description="After this long a request is answered 503, or 408 if its body is still awaited")
    ] = timedelta(seconds=30)


class Retention(_Group, frozen=True, kw_only=True):
    """How long history is kept. What the present state needs is never deleted."""

    events: Annotated[Duration, Meta(description="Events that watchers can resume from")] = timedelta(days=7)
    transitions: Annotated[Duration, Meta(description="When and why phases and conditions changed")] = timedelta(
        days=90
    )
    reports: Annotated[Duration, Meta(description="Reports that newer ones have replaced")] = timedelta(days=30)
    idempotency_keys: Annotated[
        Duration, Meta(description="How long a repeated request with the same key gets the first answer")
    ] = timedelta(days=1)


class Settings(_Group, frozen=True, kw_only=True):
    """Settings of a HyperFleet server."""

    listen: Annotated[
        str, Meta(description="Where to listen, HOST:PORT or [::1]:PORT; port 0 takes any that is free")
    ] = "127.0.0.1:8000"
    insecure_listen: Annotated[
        bool, Meta(description="Listen on an address that others can reach, although nobody is asked who they are")
    ] = False
    database: Annotated[
        str,
        Meta(description="sqlite:PATH, postgresql://USER:PASSWORD@HOST/NAME, or memory: to forget all at the end"),
    ] = "sqlite:hyperfleet.db"
    pool_size: Annotated[
        int, Meta(ge=2, le=1_000, description="PostgreSQL connections of each worker; SQLite needs none")
    ] = 10
    workers: Annotated[
        int, Meta(ge=1, le=256, description="Processes that serve requests; more than one needs PostgreSQL")
    ] = 1
    policy: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(description="The file with the aggregation policy; without one, what is in force or else built in"),
    ] = None
    spec_schemas: Annotated[
        dict[str, SchemaFile], Meta(description="For a kind, the file with the JSON Schema that its specs must fit")
    ] = field(default_factory=dict)
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], Meta(description="The least that is worth a line in the log")
    ] = "info"
    drain_timeout: Annotated[
        Duration, Meta(description="How long a stopping server waits for the requests it is serving")
    ] = timedelta(seconds=20)
    limits: Limits = Limits()
    retention: Retention = Retention()

    def __repr__(self) -> str:
        """Show every setting but no password, for this may end up in a log."""
        shown = (f"{setting.key}={setting.show(self)}" for setting in SETTINGS)
        return f"Settings({', '.join(shown)})"


class Setting(Struct, frozen=True):
    """One leaf of the tree: `limits.maxDepth` in a file is `HYPERFLEET_LIMITS_MAX_DEPTH` in the environment."""

    key: str
    attributes: tuple[str, ...]
    type: inspect.Type
    default: Any
    description: str

    @property
    def pointer(self) -> str:
        """Return the JSON pointer of this setting in a file."""
        return join("", *self.key.split("."))

    @property
    def variable(self) -> str:
        """Return the environment variable of this setting."""
        return PREFIX + "_".join(self.attributes).upper()

    def get(self, settings: Settings) -> Any:
        """Return the value that this setting has."""
        value: Any = settings
        for attribute in self.attributes:
            value = getattr(value, attribute)
        return value

    def write_default(self) -> str:
        """Write the default as it would stand in a file."""
        return write_value(self.default)

    def show(self, settings: Settings) -> str:
        """Write the value that this setting has, without a password."""
        return write_value(self.get(settings))


def write_value(value: object) -> str:
    """Write a value as it is written in a file; passwords become ***."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case timedelta():
            return format_duration(value)
        case Mapping():
            return "{" + ", ".join(f"{key}: {item}" for key, item in value.items()) + "}"
        case _:
            return conceal(str(value))


def settings_schema() -> dict[str, Any]:
    """Return the JSON Schema of a settings file, for editors."""
    return describe_schema(Settings, id_=SCHEMA_ID, title="HyperFleet settings")


def _list_settings(
    group: type[Struct], attributes: tuple[str, ...] = (), keys: tuple[str, ...] = ()
) -> Iterator[Setting]:
    """Yield the leaves of the tree in the order in which they are declared."""
    info = inspect.type_info(group)
    for each in info.fields if isinstance(info, inspect.StructType) else ():
        type_, text = _unwrap(each.type)
        path, names = (*attributes, each.name), (*keys, each.encode_name)
        if isinstance(type_, inspect.StructType):
            yield from _list_settings(type_.cls, path, names)
        else:
            default = each.default if each.default_factory is NODEFAULT else each.default_factory()
            yield Setting(".".join(names), path, type_, default, text)


def _unwrap(info: inspect.Type) -> tuple[inspect.Type, str]:
    """Return a type without its annotations, and its description."""
    if not isinstance(info, inspect.Metadata):
        return info, ""
    return info.type, str((info.extra_json_schema or {}).get("description", ""))


SETTINGS: Final = tuple(_list_settings(Settings))
BY_KEY: Final = {setting.key: setting for setting in SETTINGS}
BY_VARIABLE: Final = {setting.variable: setting for setting in SETTINGS}
