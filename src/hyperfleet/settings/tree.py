"""Everything that can be set: one tree of values, and the same as a flat table.

The descriptions are read by people: `hyperfleet serve --help`, docs/settings.md and the JSON Schema are made of them.
Every field has a default, so that `hyperfleet serve` works with no settings at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Annotated, Any, Final, Literal

from msgspec import NODEFAULT, Meta, Struct, field, inspect

from hyperfleet.access.issuer import Issuer
from hyperfleet.documents.durations import Duration, format_duration
from hyperfleet.documents.pointer import join
from hyperfleet.documents.schema import describe_schema
from hyperfleet.settings.endpoints import conceal

SCHEMA_ID: Final = "urn:hyperfleet:schema:settings"
PREFIX: Final = "HYPERFLEET_"

KIB: Final = 1024
MIB: Final = 1024 * KIB

AUDIT_WORDS: Final = (None, "log", "none")  # any other place for the audit log is a file

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
    max_watches_per_caller: Annotated[
        int, Meta(ge=1, le=100_000, description="Of these, how many one caller may have; more get 429")
    ] = 100
    max_requests_per_second: Annotated[
        Annotated[int, Meta(ge=1, le=1_000_000)] | None,
        Meta(description="Requests of one caller that one worker answers; more get 429. Without it any number"),
    ] = None
    max_burst: Annotated[
        Annotated[int, Meta(ge=1, le=10_000_000)] | None,
        Meta(description="Requests that may come at once after a quiet time; without it, those of two seconds"),
    ] = None
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
    max_reader_lag: Annotated[
        Duration,
        Meta(description="How long events and transitions are kept for a named reader that has not read them"),
    ] = timedelta(hours=72)
    idempotency_keys: Annotated[
        Duration, Meta(description="How long a repeated request with the same key gets the first answer")
    ] = timedelta(days=1)


class Tenancy(_Group, frozen=True, kw_only=True):
    """Whose the resources are."""

    label: Annotated[
        Annotated[
            str,
            Meta(
                pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$",
                max_length=253 + 1 + 63,
                extra={"expected": "the key of a label, such as team or example.com/team"},
            ),
        ]
        | None,
        Meta(description="The label that names the tenant of a new resource; without one, a resource is its creator's"),
    ] = None


class Redaction(_Group, frozen=True, kw_only=True):
    """Secrets in reports: they are taken out on the way in, so that nobody ever sees or stores them."""

    enabled: Annotated[bool, Meta(description="Put [redacted] for what looks like a secret in a report")] = True
    keys: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=100, extra={"expected": "a key such as pin"})], ...],
        Meta(description="Keys of secrets beside the usual ones (in the environment: KEY,KEY)"),
    ] = ()


class Audit(_Group, frozen=True, kw_only=True):
    """Who wrote what, from where, and who was refused: a JSON object on one line for each."""

    to: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(description="log, none, or a file to append to; without it the log, if callers are asked who they are"),
    ] = None
    reports: Annotated[bool, Meta(description="Record also reports that are taken: nearly all writes are")] = True


class Tracing(_Group, frozen=True, kw_only=True):
    """Traces of requests and writes, for OpenTelemetry. Needs `pip install 'hyperfleet[tracing]'`."""

    endpoint: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(description="Where traces are sent, by OTLP over HTTP: http://HOST:4318; without it there are none"),
    ] = None
    sample_ratio: Annotated[
        float, Meta(ge=0, le=1, description="The share of requests that are traced; who traces already decides")
    ] = 0.1
    service_name: Annotated[str, Meta(min_length=1, description="What this server is called in traces")] = "hyperfleet"


FilePath = Annotated[str, Meta(min_length=1)]


class Auth(_Group, frozen=True, kw_only=True):
    """Who is let in, and how they are known. With neither tokens nor issuers nobody is asked who they are."""

    tokens: Annotated[
        FilePath | None, Meta(description="The file with tokens, whose they are and what they may do")
    ] = None
    issuers: Annotated[
        tuple[Issuer, ...], Meta(description="Whose JWTs are taken (in the environment: a list in YAML or JSON)")
    ] = ()

    @property
    def is_asking(self) -> bool:
        """Tell whether callers are asked who they are."""
        return self.tokens is not None or bool(self.issuers)


class Tls(_Group, frozen=True, kw_only=True):
    """Encryption of what goes over the network. Changed files are read at the next start."""

    certificate: Annotated[
        FilePath | None, Meta(description="The file with the certificate of this server, and those above it (PEM)")
    ] = None
    key: Annotated[FilePath | None, Meta(description="The file with the key of that certificate (PEM)")] = None
    client_ca: Annotated[
        FilePath | None, Meta(description="A file with certificates (PEM): only clients that have one of theirs get in")
    ] = None
    min_version: Annotated[
        Literal["tls1.2", "tls1.3"], Meta(description="The oldest version of TLS that is spoken")
    ] = "tls1.3"


class Metrics(_Group, frozen=True, kw_only=True):
    """What `/metrics` tells, and whom."""

    public: Annotated[
        bool,
        Meta(description="Let scrapers without a token see the figures of the server, and none of the fleet"),
    ] = False
    per_resource: Annotated[
        bool, Meta(description="Tell the conditions of every single resource, 18 lines or more for each cluster")
    ] = False
    max_resources: Annotated[
        int, Meta(ge=1, le=1_000_000, description="Resources of a kind that are told one by one; the others are not")
    ] = 10_000
    max_adapters: Annotated[
        int, Meta(ge=1, le=10_000, description="Adapters that are told apart; the others are counted as other")
    ] = 100
    refresh_interval: Annotated[
        Duration, Meta(description="How old the figures of the fleet may be; scrapes in between cost the store nothing")
    ] = timedelta(seconds=5)


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
    log_format: Annotated[
        Literal["text", "json"], Meta(description="Lines for people, or a JSON object on each line for machines")
    ] = "text"
    access_log: Annotated[bool, Meta(description="Log every request: route, status, duration, caller")] = False
    trusted_proxies: Annotated[
        tuple[
            Annotated[str, Meta(min_length=2, extra={"expected": "an address or a network such as 10.0.0.0/8"})], ...
        ],
        Meta(description="Proxies whose X-Forwarded-For is believed: addresses or networks (in the environment: A,B)"),
    ] = ()
    drain_timeout: Annotated[
        Duration, Meta(description="How long a stopping server waits for the requests it is serving")
    ] = timedelta(seconds=20)
    auth: Auth = Auth()
    tls: Tls = Tls()
    limits: Limits = Limits()
    retention: Retention = Retention()
    metrics: Metrics = Metrics()
    redaction: Redaction = Redaction()
    audit: Audit = Audit()
    tracing: Tracing = Tracing()
    tenancy: Tenancy = Tenancy()

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
        case Issuer():
            return value.issuer
        case tuple():
            return "[" + ", ".join(map(write_value, value)) + "]"
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
