"""Combine all sources of settings: built-in defaults, then a file, the environment and flags; later ones win.

The commands call `resolve`. Each source is a layer; here the layers are merged and checked beyond their types. All
problems of all layers are raised together, as one `SettingsError`.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import fields, replace

from hyperfleet.access.issuer import Issuer
from hyperfleet.documents import DocumentPlace, DocumentProblem, Places
from hyperfleet.documents.pointer import join
from hyperfleet.documents.wording import suggest
from hyperfleet.errors import SettingsError
from hyperfleet.events.webhook_checks import check_webhooks
from hyperfleet.model.kind import Kinds
from hyperfleet.settings.endpoints import (
    parse_address,
    parse_collector,
    parse_database,
    parse_networks,
    parse_rabbit_url,
)
from hyperfleet.settings.layers import Layer, Named, anchor, read_file, read_texts
from hyperfleet.settings.tree import BY_KEY, BY_VARIABLE, PREFIX, SETTINGS, Setting, Settings

CONFIG_VARIABLE: Final = PREFIX + "CONFIG"
_TEST_PREFIX: Final = PREFIX + "TEST_"
# Variables of ours that are not settings: the settings file, and those of the command line and the client.
_OTHER_VARIABLES: Final = frozenset(
    {CONFIG_VARIABLE}
    | {f"{PREFIX}{name}" for name in ("SERVER", "TOKEN", "CONTEXT", "CONFIG_HOME", "ALLOW_INSECURE_TOKEN")}
)
# Kubernetes sets these in every pod of a namespace that has a service called `hyperfleet`.
_SERVICE_LINK: Final = re.compile(r"_SERVICE_HOST$|_SERVICE_PORT(_\w+)?$|_PORT(_[0-9]+_(TCP|UDP|SCTP)(_\w+)?)?$")

S = TypeVar("S", bound=Struct)


class Resolution(Struct, frozen=True):
    """The settings, and where each was given (by key; `default` if it was not)."""

    settings: Settings
    origins: Mapping[str, str]


def resolve(flags: Mapping[str, str | None], environment: Mapping[str, str], config: str | None = None) -> Resolution:
    """Merge all sources; raise `SettingsError` with every problem of all of them.

    `flags` has values by flag name (`--log-level`), None if not given; `config` is the file that a flag names. A
    relative path in the file is relative to the file, any other one to the working directory.
    """
    layers = _read_layers(flags, environment, config or environment.get(CONFIG_VARIABLE))
    settings = anchor(Settings(), Path.cwd())
    for layer in layers:
        settings = _overlay(settings, layer.value, layer.places)
    problems = [problem for layer in layers for problem in sorted([*layer.problems, *_check_values(layer)])]
    problems += _check_together(settings, layers)
    if problems:
        raise SettingsError(problems)
    return Resolution(settings, _find_origins(layers))


def _read_layers(
    flags: Mapping[str, str | None], environment: Mapping[str, str], file: str | None
) -> tuple[Layer, ...]:
    """Read every source, lowest precedence first. An empty variable counts as not given."""
    variables = {setting.key: environment.get(setting.variable, "") for setting in SETTINGS}
    options = {_of_flag(flag).key: text for flag, text in flags.items() if text is not None}
    return (
        *([read_file(file)] if file else []),
        read_texts(
            {key: text for key, text in variables.items() if text}, {each.key: each.variable for each in SETTINGS}
        ),
        read_texts(options, {_of_flag(flag).key: flag for flag in flags}),
    )


# ── merging layers ──────────────────────────────────────────────────────────────────────────────────────


def _overlay(below: S, above: S, places: Places, pointer: str = "") -> S:
    """Return `below` with everything that is given in the layer above it."""
    changes: dict[str, Any] = {}
    for each in fields(below):
        inner, value = join(pointer, each.encode_name), getattr(above, each.name)
        if isinstance(value, Struct):
            changes[each.name] = _overlay(getattr(below, each.name), value, places, inner)
        elif places.is_given(inner):
            changes[each.name] = value
    return replace(below, **changes)


def _find_origins(layers: Sequence[Layer]) -> dict[str, str]:
    return {
        setting.key: next((str(layer.place(setting)) for layer in reversed(layers) if layer.gives(setting)), "default")
        for setting in SETTINGS
    }


# ── checks beyond types ───────────────────────────────────────────────────────────────────────────────────────


def _check_path(path: str | None) -> None:
    if path is not None and "\0" in path:
        raise ValueError("a path cannot contain NUL")


def _check_schemas(schemas: Mapping[str, str]) -> None:
    known = tuple(kind.name for kind in Kinds())
    for name, path in schemas.items():
        _check_path(path)
        if name not in known:
            raise ValueError(f'unknown kind "{name}"{suggest(name, known) or "."} Known are {", ".join(known)}')


def _check_collector(url: str | None) -> None:
    if url is None:
        return
    parse_collector(url)
    try:
        found = importlib.util.find_spec("opentelemetry.exporter.otlp.proto.http")
    except ImportError:  # not even its parent package is installed
        found = None
    if found is None:
        raise ValueError("traces need packages that are not installed. Install them: pip install 'hyperfleet[tracing]'")


def _check_broker(url: str | None) -> None:
    if url is not None:
        parse_rabbit_url(url)


def _check_issuers(issuers: Sequence[Issuer]) -> None:
    names = [issuer.issuer for issuer in issuers]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"the issuer {name} is listed twice: give it all its audiences in one entry")


def _check_positive(duration: timedelta) -> None:
    if not duration:
        raise ValueError("expected more than 0s")


_CHECKS: Final[dict[str, Callable[[Any], object]]] = {
    "listen": parse_address,
    "database": parse_database,
    "policy": _check_path,
    "specSchemas": _check_schemas,
    "auth.tokens": _check_path,
    "auth.issuers": _check_issuers,
    "tls.certificate": _check_path,
    "tls.key": _check_path,
    "tls.clientCa": _check_path,
    "audit.to": _check_path,
    "trustedProxies": parse_networks,
    "limits.requestTimeout": _check_positive,
    "tracing.endpoint": _check_collector,
    "pubsub.url": _check_broker,
    "pubsub.brokerFile": _check_path,
    "pubsub.maxLag": _check_positive,
    "sentinel.config": _check_path,
    **{setting.key: _check_positive for setting in SETTINGS if setting.key.startswith("retention.")},
}


_QUEUE_LIMITS: Final = ("limits.maxBatchReports", "limits.maxQueuedWrites")
_QUEUE_TOO_SHORT: Final = (
    "a request may have {} reports (limits.maxBatchReports), but only {} writes may wait (limits.maxQueuedWrites): "
    "such a request would always be refused. Raise the second or lower the first"
)
_TWO_ADDRESSES: Final = (
    "a broker.yaml has the address of the broker: leave out pubsub.url and pubsub.project, or the file"
)
_RELATED: Final = ("insecureListen", "database", "auth.tokens", "auth.issuers", *_QUEUE_LIMITS)
_EXPOSED: Final = (
    "{} can be reached from other machines, and this server does not authenticate callers: anyone who reaches it can "
    "change the whole fleet. Listen on 127.0.0.1, or configure authentication (auth.tokens, auth.issuers; "
    "docs/security.md), or, if a proxy in front of it authenticates, pass --insecure-listen (insecureListen: true)"
)
_INCOMPLETE_TLS: Final = (
    "a certificate needs its key, a key its certificate, and tls.clientCa both: "
    "set tls.certificate and tls.key together"
)
_TLS: Final = ("tls.certificate", "tls.key", "tls.clientCa")


def _check_values(layer: Layer) -> Iterator[DocumentProblem]:
    """Check each value of a layer on its own."""
    for key, check in _CHECKS.items():
        setting = BY_KEY[key]
        if layer.gives(setting) and not layer.has_problem(setting):
            try:
                check(setting.get(layer.value))
            except ValueError as error:
                yield DocumentProblem(layer.place(setting), str(error), "NotAllowed")
    webhooks = BY_KEY["webhooks"]
    if layer.gives(webhooks) and not layer.has_problem(webhooks):
        for problem in check_webhooks(layer.value.webhooks):
            yield DocumentProblem(layer.place(webhooks, problem.path), problem.message, "NotAllowed")


def _check_together(settings: Settings, layers: Sequence[Layer]) -> Iterator[DocumentProblem]:
    """Check values against each other; skip those that already have a problem."""
    bad = {key for key in _RELATED for layer in layers if layer.has_problem(BY_KEY[key])}
    try:
        address, database = parse_address(settings.listen), parse_database(settings.database)
    except ValueError:
        return
    is_authenticated = settings.auth.is_enabled or not bad.isdisjoint(("auth.tokens", "auth.issuers"))
    if not (address.is_loopback or is_authenticated or settings.insecure_listen or "insecureListen" in bad):
        yield DocumentProblem(_last_place(("listen",), layers), _EXPOSED.format(address), "Exposed")
    tls = settings.tls
    if (tls.certificate is None) != (tls.key is None) or (tls.client_ca and tls.certificate is None):
        yield DocumentProblem(_last_place(_TLS, layers), _INCOMPLETE_TLS, "NotAllowed")
    limits = settings.limits
    if limits.max_batch_reports > limits.max_queued_writes and not bad.intersection(_QUEUE_LIMITS):
        message = _QUEUE_TOO_SHORT.format(limits.max_batch_reports, limits.max_queued_writes)
        yield DocumentProblem(_last_place(_QUEUE_LIMITS, layers), message, "NotAllowed")
    pubsub = settings.pubsub
    if pubsub.broker_file is not None and (pubsub.url is not None or pubsub.project is not None):
        yield DocumentProblem(_last_place(("pubsub.brokerFile",), layers), _TWO_ADDRESSES, "NotAllowed")
    if settings.workers > 1 and database.engine != "postgresql" and "database" not in bad:
        message = f"{settings.workers} workers need PostgreSQL; {database.engine}: allows only one"
        yield DocumentProblem(_last_place(("workers",), layers), message, "NotAllowed")


def _last_place(keys: Sequence[str], layers: Sequence[Layer]) -> DocumentPlace:
    """Return where any of these settings was given last."""
    given = ((layer, BY_KEY[key]) for layer in reversed(layers) for key in keys)
    return next((layer.place(setting) for layer, setting in given if layer.gives(setting)), Named(keys[0], 0, 0))


def find_unknown_variables(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield a warning for each HYPERFLEET_ variable that is not a setting; it may belong to another program."""
    for name in sorted(environment):
        is_known = name in BY_VARIABLE or name in _OTHER_VARIABLES or name.startswith(_TEST_PREFIX)
        if name.startswith(PREFIX) and not is_known and not _SERVICE_LINK.search(name):
            known = [variable.removeprefix(PREFIX) for variable in (*BY_VARIABLE, *_OTHER_VARIABLES)]
            close = get_close_matches(name.removeprefix(PREFIX), known, n=1)
            yield f"{name} is not a setting" + (
                f", did you mean {PREFIX}{close[0]}?" if close else " and has no effect"
            )


# ── names ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _of_flag(name: str) -> Setting:
    """Return the setting of a flag: --log-level is logLevel."""
    return BY_VARIABLE[PREFIX + name.removeprefix("--").replace("-", "_").upper()]
