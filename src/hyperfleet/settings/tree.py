"""All settings: one tree of values, and the same as a flat table.

`hyperfleet serve --help`, docs/settings.md and the JSON Schema are generated from the descriptions.
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
from hyperfleet.events.webhook_target import Webhook
from hyperfleet.settings.endpoints import conceal

SCHEMA_ID: Final = "urn:hyperfleet:schema:settings"
PREFIX: Final = "HYPERFLEET_"

KIB: Final = 1024
MIB: Final = 1024 * KIB

AUDIT_WORDS: Final = (None, "log", "none")  # anything else is the path of a file

SchemaFile = Annotated[
    str, Meta(min_length=1, extra={"expected": "the path of a JSON Schema (in the environment: Cluster=PATH)"})
]


class _Group(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A part of the tree."""


class LimitSettings(_Group, frozen=True, kw_only=True):
    """Limits of the load. A request beyond them is refused at once, so that the others stay fast."""

    max_body_bytes: Annotated[
        int, Meta(ge=KIB, le=256 * MIB, description="Size of a request body, counted after decompression")
    ] = MIB
    max_batch_bytes: Annotated[
        int, Meta(ge=KIB, le=256 * MIB, description="Size of the body of a request with many reports")
    ] = 8 * MIB
    max_depth: Annotated[int, Meta(ge=8, le=256, description="Most levels of nesting in the JSON of a body")] = 32
    max_values: Annotated[
        int, Meta(ge=1_000, le=10_000_000, description="Values in the JSON of one report or resource, keys aside")
    ] = 20_000
    max_batch_values: Annotated[
        int, Meta(ge=1_000, le=10_000_000, description="Values in the JSON of a request with many reports")
    ] = 200_000
    max_batch_reports: Annotated[int, Meta(ge=1, le=100_000, description="Reports in one request")] = 1_000
    max_queued_writes: Annotated[
        int, Meta(ge=1, le=1_000_000, description="Writes that wait for a transaction; the next one is answered 503")
    ] = 2_000
    max_writes_per_transaction: Annotated[
        int, Meta(ge=1, le=10_000, description="Most writes committed in one transaction")
    ] = 256
    max_connections: Annotated[
        int, Meta(ge=1, le=1_000_000, description="Requests that one worker serves at once; more wait")
    ] = 1_024
    max_watches: Annotated[
        int,
        Meta(
            ge=1,
            le=100_000,
            description="Watches and waits that one worker serves besides; more get 503",
        ),
    ] = 1_000
    max_watches_per_caller: Annotated[
        int, Meta(ge=1, le=100_000, description="Watches and waits of one caller per worker; more get 429")
    ] = 100
    max_requests_per_second: Annotated[
        Annotated[int, Meta(ge=1, le=1_000_000)] | None,
        Meta(description="Requests of one caller that one worker answers; more get 429. Unlimited if not set"),
    ] = None
    max_burst: Annotated[
        Annotated[int, Meta(ge=1, le=10_000_000)] | None,
        Meta(description="Requests that one caller may send at once; two seconds' worth if not set"),
    ] = None
    request_timeout: Annotated[
        Duration, Meta(description="A request that takes longer is answered 503, or 408 if its body has not arrived")
    ] = timedelta(seconds=30)


class RetentionSettings(_Group, frozen=True, kw_only=True):
    """How long history is kept. The current state is never deleted."""

    events: Annotated[Duration, Meta(description="Events that watchers can resume from")] = timedelta(days=7)
    transitions: Annotated[Duration, Meta(description="When and why phases and conditions changed")] = timedelta(
        days=90
    )
    reports: Annotated[Duration, Meta(description="Reports that newer ones have replaced")] = timedelta(days=30)
    idempotency_keys: Annotated[
        Duration, Meta(description="How long a repeated request with the same key gets the first answer")
    ] = timedelta(days=1)


class TenancySettings(_Group, frozen=True, kw_only=True):
    """Which tenant a resource belongs to."""

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
        Meta(description="The label that names the tenant of a new resource; if not set, the creator's tenant"),
    ] = None


class RedactionSettings(_Group, frozen=True, kw_only=True):
    """Secrets in reports are removed before they are stored or shown."""

    enabled: Annotated[bool, Meta(description="Replace what looks like a secret in a report by [redacted]")] = True
    keys: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=100, extra={"expected": "a key such as pin"})], ...],
        Meta(description="Further keys of secrets, in addition to the built-in ones (in the environment: KEY,KEY)"),
    ] = ()


class AuditSettings(_Group, frozen=True, kw_only=True):
    """The audit log: who wrote what from where, and who was refused. One JSON object per line."""

    to: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(description="log, none, or a file to append to; if not set, the log when callers are authenticated"),
    ] = None
    reports: Annotated[bool, Meta(description="Also record accepted reports, which are nearly all writes")] = True


class TracingSettings(_Group, frozen=True, kw_only=True):
    """OpenTelemetry traces of requests and writes. Needs `pip install 'hyperfleet[tracing]'`."""

    endpoint: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(description="Where to send traces, by OTLP over HTTP: http://HOST:4318; no traces if not set"),
    ] = None
    sample_ratio: Annotated[
        float, Meta(ge=0, le=1, description="The share of requests that are traced, unless the caller has decided")
    ] = 0.1
    service_name: Annotated[str, Meta(min_length=1, description="The name of this server in traces")] = "hyperfleet"


FilePath = Annotated[str, Meta(min_length=1)]


class AuthSettings(_Group, frozen=True, kw_only=True):
    """How callers are authenticated. With neither tokens nor issuers, they are not."""

    tokens: Annotated[FilePath | None, Meta(description="The file with tokens, their callers and roles")] = None
    issuers: Annotated[
        tuple[Issuer, ...],
        Meta(description="Issuers of accepted JWTs (in the environment: a list in YAML or JSON)"),
    ] = ()

    @property
    def is_enabled(self) -> bool:
        """Tell whether callers are authenticated."""
        return self.tokens is not None or bool(self.issuers)


class TlsSettings(_Group, frozen=True, kw_only=True):
    """Encryption of connections. Changed files are read at the next start."""

    certificate: Annotated[
        FilePath | None, Meta(description="The file with the certificate of this server and its chain (PEM)")
    ] = None
    key: Annotated[FilePath | None, Meta(description="The file with the key of that certificate (PEM)")] = None
    client_ca: Annotated[
        FilePath | None,
        Meta(description="A file with CA certificates (PEM); clients must have a certificate of one of them"),
    ] = None
    min_version: Annotated[Literal["tls1.2", "tls1.3"], Meta(description="The oldest accepted version of TLS")] = (
        "tls1.3"
    )


class MetricsSettings(_Group, frozen=True, kw_only=True):
    """What `/metrics` shows, and to whom."""

    public: Annotated[
        bool,
        Meta(description="Show metrics of the server, not of the fleet, to scrapers without a token"),
    ] = False
    per_resource: Annotated[
        bool, Meta(description="Show the conditions of every resource, 18 lines or more for each cluster")
    ] = False
    max_resources: Annotated[
        int, Meta(ge=1, le=1_000_000, description="Most resources of a kind that are shown one by one")
    ] = 10_000
    max_adapters: Annotated[
        int, Meta(ge=1, le=10_000, description="Most adapters that are shown by name; the rest are counted as other")
    ] = 100
    refresh_interval: Annotated[
        Duration, Meta(description="How old metrics of the fleet may be; scrapes in between do not query the store")
    ] = timedelta(seconds=5)


class PubSubSettings(_Group, frozen=True, kw_only=True):
    """How to reach the broker. Which one, and its topics, is in the block `pubsub` of the policy file."""

    url: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(description="RabbitMQ: amqp://USER:PASSWORD@HOST/VHOST, or amqps:// for TLS"),
    ] = None
    project: Annotated[
        Annotated[str, Meta(min_length=1)] | None, Meta(description="The Google Cloud project with the topics")
    ] = None
    broker_file: Annotated[
        FilePath | None, Meta(description="A broker.yaml of the Go programs, in place of url and project")
    ] = None
    max_lag: Annotated[
        Duration,
        Meta(description="How long changes are kept for the relay, or a webhook, that cannot publish them"),
    ] = timedelta(hours=72)


class SentinelSettings(_Group, frozen=True, kw_only=True):
    """The sentinel asks adapters to look again at resources that nobody has looked at for long."""

    enabled: Annotated[bool, Meta(description="Run a sentinel in this server")] = True
    config: Annotated[FilePath | None, Meta(description="The file with its rules; the built-in ones if not set")] = None


class Settings(_Group, frozen=True, kw_only=True):
    """Settings of a HyperFleet server."""

    listen: Annotated[str, Meta(description="Where to listen, HOST:PORT or [::1]:PORT; port 0 takes any free port")] = (
        "127.0.0.1:8000"
    )
    insecure_listen: Annotated[bool, Meta(description="Allow listening on a public address without authentication")] = (
        False
    )
    database: Annotated[
        str,
        Meta(description="sqlite:PATH, postgresql://USER:PASSWORD@HOST/NAME, or memory:, which is lost at exit"),
    ] = "sqlite:hyperfleet.db"
    pool_size: Annotated[
        int, Meta(ge=2, le=1_000, description="PostgreSQL connections of each worker; SQLite needs none")
    ] = 10
    workers: Annotated[
        int, Meta(ge=1, le=256, description="Processes that serve requests; more than one needs PostgreSQL")
    ] = 1
    policy: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(
            description="The policy file, activated when it changed; if not set, the one in force or the built-in one"
        ),
    ] = None
    spec_schemas: Annotated[
        dict[str, SchemaFile], Meta(description="For each kind, the file with the JSON Schema of its specs")
    ] = field(default_factory=dict)
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], Meta(description="The lowest level that is logged")
    ] = "info"
    log_format: Annotated[Literal["text", "json"], Meta(description="Plain text, or one JSON object per line")] = "text"
    access_log: Annotated[bool, Meta(description="Log every request: route, status, duration, caller")] = False
    trusted_proxies: Annotated[
        tuple[
            Annotated[str, Meta(min_length=2, extra={"expected": "an address or a network such as 10.0.0.0/8"})], ...
        ],
        Meta(description="Proxies whose X-Forwarded-For is trusted: addresses or networks (in the environment: A,B)"),
    ] = ()
    allowed_hosts: Annotated[
        tuple[Annotated[str, Meta(min_length=1, extra={"expected": "a name such as fleet.example.com"})], ...],
        Meta(
            description="Further names in the header Host that a server on a loopback address without authentication "
            "answers to, besides localhost (in the environment: A,B)"
        ),
    ] = ()
    drain_timeout: Annotated[
        Duration, Meta(description="How long a stopping server waits for the requests it is serving")
    ] = timedelta(seconds=20)
    auth: AuthSettings = AuthSettings()
    tls: TlsSettings = TlsSettings()
    limits: LimitSettings = LimitSettings()
    retention: RetentionSettings = RetentionSettings()
    metrics: MetricsSettings = MetricsSettings()
    redaction: RedactionSettings = RedactionSettings()
    audit: AuditSettings = AuditSettings()
    tracing: TracingSettings = TracingSettings()
    tenancy: TenancySettings = TenancySettings()
    pubsub: PubSubSettings = PubSubSettings()
    sentinel: SentinelSettings = SentinelSettings()
    webhooks: Annotated[
        tuple[Webhook, ...],
        Meta(description="Receivers of status changes over HTTP (in the environment: a list in YAML or JSON)"),
    ] = ()

    def __repr__(self) -> str:
        """Show every setting but no password: this may end up in a log."""
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
        """Return the value of this setting."""
        value: Any = settings
        for attribute in self.attributes:
            value = getattr(value, attribute)
        return value

    def write_default(self) -> str:
        """Write the default as in a file."""
        return write_value(self.default)

    def show(self, settings: Settings) -> str:
        """Write the value of this setting, without passwords."""
        return write_value(self.get(settings))


def write_value(value: object) -> str:
    """Write a value as in a file; passwords become ***."""
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
        case Webhook():
            return value.name
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
    """Yield the leaves of the tree in the order of their declaration."""
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
