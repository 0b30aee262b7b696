"""An adapter that is ready to run: everything its file says, checked and compiled. Immutable.

`loading.load_adapter` makes it; the steps of an event read it. A *resource* is what a person asked for, and what events
are about. An *object* is what the adapter applies to Kubernetes; the key `resources` of the file means objects.

Texts are templates; gates and computed values are expressions, in CEL or in the contract's dialect. All of them have
been parsed and type-checked, and name only variables that exist at their place.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Literal, TypeAlias

from msgspec import UNSET, Struct, UnsetType

from hyperfleet.adapter.expressions import Expression
from hyperfleet.adapter.field_paths import FieldPath
from hyperfleet.adapter.templates import TemplateTree, TextTemplate
from hyperfleet.cel import CelEnvironment

Conversion: TypeAlias = Literal["string", "int", "float", "bool"]
Backoff: TypeAlias = Literal["exponential", "linear", "constant"]
Method: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]
PropagationPolicy: TypeAlias = Literal["Background", "Foreground", "Orphan"]

# ── calls and log lines ──────────────────────────────────────────────────────────────────────────────────────────────


class ApiCall(Struct, frozen=True, kw_only=True):
    """A call of an HTTP API, with templates. `api_calls.prepare` renders it."""

    method: Method
    url: TextTemplate
    body: TextTemplate | None = None
    headers: tuple[tuple[str, TextTemplate], ...] = ()
    timeout: timedelta | None = None  # None, 0: as the section `api` says
    attempts: int = 0
    backoff: Backoff | None = None


class LogLine(Struct, frozen=True):
    """A line for the log."""

    message: TextTemplate
    level: LogLevel = "info"


# ── params ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class PathSource(Struct, frozen=True):
    """A path into the event, the config, or an earlier param. The first name is of a variable."""

    path: tuple[str, ...]


class EnvironmentSource(Struct, frozen=True):
    """A variable of the process."""

    name: str


class CallSource(Struct, frozen=True):
    """The JSON object that a call answers with."""

    call: ApiCall


class ExpressionSource(Struct, frozen=True):
    """An expression over the params before it."""

    expression: Expression


class FileSource(Struct, frozen=True):
    """A file, read for every event."""

    path: str
    trim: bool = True


class EntrySource(Struct, frozen=True):
    """An entry of a Secret or a ConfigMap. What a Secret holds never reaches logs, traces or dry-runs."""

    kind: Literal["Secret", "ConfigMap"]
    namespace: TextTemplate
    name: TextTemplate
    key: str


Source: TypeAlias = PathSource | EnvironmentSource | CallSource | ExpressionSource | FileSource | EntrySource


class Param(Struct, frozen=True, kw_only=True):
    """A named value."""

    name: str
    source: Source
    conversion: Conversion | None = None
    default: Any | UnsetType = UNSET
    is_required: bool = False
    is_secret: bool = False  # by its source or its name: the value is redacted wherever it would be shown


# ── preconditions ────────────────────────────────────────────────────────────────────────────────────────────────────


class Capture(Struct, frozen=True, kw_only=True):
    """A value of an answer."""

    name: str
    expression: Expression
    environment: CelEnvironment  # of its own: it sees the answer, whatever keys that has, and nothing else
    default: Any | UnsetType = UNSET


class Comparison(Struct, frozen=True):
    """A comparison of one variable, by a path."""

    path: FieldPath
    operator: str  # one of `operators.OPERATORS`
    value: Any = None


class Precondition(Struct, frozen=True, kw_only=True):
    """A check before objects are applied. Without conditions and expression it is met."""

    name: str
    log: LogLine | None = None
    call: ApiCall | None = None
    captures: tuple[Capture, ...] = ()
    conditions: tuple[Comparison, ...] = ()
    expression: Expression | None = None


# ── objects ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Discovery(Struct, frozen=True, kw_only=True):
    """How to find objects: by a name, or by labels (keys and values are templates)."""

    namespace: TextTemplate | None = None  # None: the kind has no namespace
    name: TextTemplate | None = None
    labels: TemplateTree | None = None  # exactly one of `name` and `labels` is given


class MapManifest(Struct, frozen=True):
    """A manifest written as a map: each text is rendered by itself."""

    tree: TemplateTree


class TextManifest(Struct, frozen=True):
    """A manifest written as a block or in a file: rendered as a whole, then read as YAML (`templates.render_yaml`)."""

    template: TextTemplate
    file: str = ""  # empty: a block in the adapter file


class NestedDiscovery(Struct, frozen=True):
    """An object inside the `spec.workload.manifests` of a found one; it becomes `resources.<name>`."""

    name: str
    discovery: Discovery


class ManagedObject(Struct, frozen=True, kw_only=True):
    """An object that the adapter applies. In expressions it is `resources.<name>`."""

    name: str
    api_version: str
    kind: str
    manifest: MapManifest | TextManifest
    discovery: Discovery
    nested: tuple[NestedDiscovery, ...] = ()
    recreate_on_change: bool = False
    create_when: Expression | None = None
    delete_when: Expression | None = None
    propagation: PropagationPolicy = "Background"
    context: TextTemplate | None = None  # of the kubeconfig; None: as the section `kubernetes` says


class TrackedObject(Struct, frozen=True, kw_only=True):
    """An object that others write: watched, never written or deleted."""

    name: str
    api_version: str
    kind: str
    discovery: Discovery


# ── post ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


class ComputedValue(Struct, frozen=True):
    """A value that an expression computes. If it fails: the default, or null."""

    expression: Expression
    default: Any = None


class BuildMap(Struct, frozen=True):
    """A map of a payload; keys are templates."""

    entries: tuple[tuple[TextTemplate, BuildNode], ...]


class BuildList(Struct, frozen=True):
    """A list of a payload."""

    items: tuple[BuildNode, ...]


class BuildConstant(Struct, frozen=True):
    """A number, boolean or null of a payload."""

    value: Any


BuildNode: TypeAlias = BuildMap | BuildList | BuildConstant | ComputedValue | TextTemplate


class StatusCondition(Struct, frozen=True, kw_only=True):
    """One condition of the contract's block. `reason` and `message` may be missing: the framework then has its own."""

    type: str  # Applied, Available, Health, …
    status: Expression
    reason: ComputedValue | TextTemplate | None = None
    message: ComputedValue | TextTemplate | None = None


class StatusBuild(Struct, frozen=True, kw_only=True):
    """The contract's block: the framework adds adapter, observed_generation, observed_time and metadata."""

    conditions: tuple[StatusCondition, ...]
    data: BuildNode | None = None
    metadata: BuildNode | None = None


class Payload(Struct, frozen=True, kw_only=True):
    """A JSON document, stored as a text under its name for the templates of actions."""

    name: str
    build: BuildNode | StatusBuild
    when: Expression | None = None


class PostAction(Struct, frozen=True, kw_only=True):
    """A log line, an API call, or both."""

    name: str
    when: Expression | None = None
    log: LogLine | None = None
    call: ApiCall | None = None
    payloads: frozenset[str] = frozenset()  # those that its body names; without one of them it is skipped
    is_report: bool = False  # it sends a payload to a path that ends with /statuses


# ── connections ──────────────────────────────────────────────────────────────────────────────────────────────────────


class ApiSection(Struct, frozen=True, kw_only=True):
    """The HyperFleet API."""

    base_url: str = ""  # empty: given by a param or at the start
    version: str = "v1"
    timeout: timedelta = timedelta(seconds=10)
    attempts: int = 3
    backoff: Backoff = "exponential"
    base_delay: timedelta = timedelta(seconds=1)
    max_delay: timedelta = timedelta(seconds=30)
    headers: Mapping[str, str] = {}
    token_path: str = ""
    token_lifetime: timedelta = timedelta()  # how long the token is kept; 0: it is read for every request


class SubscriptionSection(Struct, frozen=True, kw_only=True):
    """Where events come from."""

    subscription: str = ""  # empty: the name of the adapter
    topic: str = ""  # empty: the topic of cluster events


class KubernetesSection(Struct, frozen=True, kw_only=True):
    """The Kubernetes cluster."""

    config_path: str = ""  # empty: inside the cluster
    context: str = ""
    qps: float = 100.0
    burst: int = 200


class AdapterConfig(Struct, frozen=True, kw_only=True):
    """An adapter."""

    name: str
    version: str = ""
    kinds: tuple[str, ...] = ()  # none: all
    file: str = ""  # where it was written, for messages
    environment: CelEnvironment  # of all CEL expressions in it: one activation serves them all
    allowed_env: frozenset[str] = frozenset()  # the variables of the process that are `env.*`
    secret_env: frozenset[str] = frozenset()  # those of them whose values are never shown
    settings: Mapping[str, Any] = {}  # `config.*`: the file's sections adapter and clients, without secrets
    params: tuple[Param, ...] = ()
    preconditions: tuple[Precondition, ...] = ()
    resources: tuple[ManagedObject, ...] = ()
    tracked: tuple[TrackedObject, ...] = ()
    payloads: tuple[Payload, ...] = ()
    actions: tuple[PostAction, ...] = ()
    api: ApiSection = ApiSection()
    broker: SubscriptionSection = SubscriptionSection()
    kubernetes: KubernetesSection = KubernetesSection()
    unknown_at_first: bool = False  # while preconditions are not met, the first report says Unknown
    concurrency: int = 8
    recheck: timedelta = timedelta(minutes=5)
