"""Compile `adapter` and `clients`: the connections of an adapter, with the environment over the file.

The Go adapter's variables work here too: HYPERFLEET_API_BASE_URL stands over `clients.hyperfleet_api.base_url`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import asdict, replace

from hyperfleet.adapter.api_urls import resolve_url
from hyperfleet.adapter.config import ApiSection, KubernetesSection, SubscriptionSection
from hyperfleet.adapter.documents.clients import AdapterPart, ApiAuthPart, ApiPart, ClientsPart
from hyperfleet.adapter.secrets import is_secret_name
from hyperfleet.document_problem import DocumentPlace, DocumentProblem, Level
from hyperfleet.documents import Places
from hyperfleet.documents.durations import format_duration, parse_duration
from hyperfleet.documents.wording import list_choices
from hyperfleet.services.secret_keys import REDACTED

KNOWN_VERSIONS: Final = ("v1",)
_BACKOFFS: Final = ("exponential", "linear", "constant")
_UNUSED: Final = ("log", "debug_config")


def _choose_backoff(text: str) -> str:
    if text not in _BACKOFFS:
        raise ValueError(f"expected one of {list_choices(_BACKOFFS)}")
    return text


class _Variable(NamedTuple):
    """A variable of the environment that stands over a key of the file."""

    names: tuple[str, ...]
    section: str
    key: str
    read: Callable[[str], Any] = str


_VARIABLES: Final = (
    _Variable(("HYPERFLEET_API_BASE_URL",), "hyperfleet_api", "base_url"),
    _Variable(("HYPERFLEET_API_VERSION",), "hyperfleet_api", "version"),
    _Variable(("HYPERFLEET_API_TIMEOUT",), "hyperfleet_api", "timeout", parse_duration),
    _Variable(("HYPERFLEET_API_RETRY_ATTEMPTS",), "hyperfleet_api", "retry_attempts", int),
    _Variable(("HYPERFLEET_API_RETRY_BACKOFF",), "hyperfleet_api", "retry_backoff", _choose_backoff),
    _Variable(("HYPERFLEET_API_BASE_DELAY",), "hyperfleet_api", "base_delay", parse_duration),
    _Variable(("HYPERFLEET_API_MAX_DELAY",), "hyperfleet_api", "max_delay", parse_duration),
    _Variable(("HYPERFLEET_BROKER_SUBSCRIPTION_ID", "BROKER_SUBSCRIPTION_ID"), "broker", "subscription_id"),
    _Variable(("HYPERFLEET_BROKER_TOPIC", "BROKER_TOPIC"), "broker", "topic"),
    _Variable(("HYPERFLEET_KUBERNETES_KUBE_CONFIG_PATH",), "kubernetes", "kube_config_path"),
    _Variable(("HYPERFLEET_KUBERNETES_QPS",), "kubernetes", "qps", float),
    _Variable(("HYPERFLEET_KUBERNETES_BURST",), "kubernetes", "burst", int),
)
_AUTH_VARIABLES: Final = (
    _Variable(("HYPERFLEET_API_AUTH_TOKEN_PATH",), "auth", "token_path"),
    _Variable(("HYPERFLEET_API_AUTH_TOKEN_CACHE_TTL",), "auth", "token_cache_ttl", parse_duration),
)


class ClientSections(Struct, frozen=True):
    """The sections of a config, `config.*` for templates and expressions, and problems."""

    api: ApiSection
    broker: SubscriptionSection
    kubernetes: KubernetesSection
    settings: Mapping[str, Any]
    problems: tuple[DocumentProblem, ...]


def read_connections(
    adapter: AdapterPart | None, clients: ClientsPart, places: Places, env: Mapping[str, str]
) -> ClientSections:
    """Return the connections of an adapter."""
    problems: list[DocumentProblem] = []
    clients = _override(clients, env, problems)
    api = _api_section(clients.hyperfleet_api)
    problems += _find_problems(clients, places)
    return ClientSections(
        api,
        SubscriptionSection(subscription=clients.broker.subscription_id, topic=clients.broker.topic),
        KubernetesSection(
            config_path=clients.kubernetes.kube_config_path,
            context=clients.kubernetes.context,
            qps=clients.kubernetes.qps or KubernetesSection().qps,
            burst=clients.kubernetes.burst or KubernetesSection().burst,
        ),
        _settings(adapter, clients),
        tuple(problems),
    )


def _override(clients: ClientsPart, env: Mapping[str, str], problems: list[DocumentProblem]) -> ClientsPart:
    sections: dict[str, Any] = {name: getattr(clients, name) for name in ("hyperfleet_api", "broker", "kubernetes")}
    for each in _VARIABLES:
        sections[each.section] = _override_one(sections[each.section], each, env, problems)
    auth = sections["hyperfleet_api"].auth
    if auth is not None or env.get("HYPERFLEET_API_AUTH_TOKEN_PATH"):
        auth = auth or ApiAuthPart()
        for each in _AUTH_VARIABLES:
            auth = _override_one(auth, each, env, problems)
        sections["hyperfleet_api"] = replace(sections["hyperfleet_api"], auth=auth)
    return replace(clients, **sections)


def _override_one(section: Any, variable: _Variable, env: Mapping[str, str], problems: list[DocumentProblem]) -> Any:
    name = next((each for each in variable.names if env.get(each)), None)
    if name is None:
        return section
    try:
        return replace(section, **{variable.key: variable.read(env[name])})
    except ValueError as error:
        place = DocumentPlace(f"${name}", 1, 1)
        problems.append(DocumentProblem(place, f"the value is not valid: {error}", "NotAllowed"))
        return section


def _api_section(part: ApiPart) -> ApiSection:
    auth = part.auth or ApiAuthPart()
    return ApiSection(
        base_url=part.base_url.rstrip("/"),
        version=part.version or KNOWN_VERSIONS[0],
        timeout=part.timeout or ApiSection().timeout,
        attempts=part.retry_attempts or ApiSection().attempts,
        backoff=part.retry_backoff,
        base_delay=part.base_delay,
        max_delay=part.max_delay,
        headers=part.default_headers,
        token_path=auth.token_path,
        token_lifetime=auth.token_cache_ttl,
    )


def _find_problems(clients: ClientsPart, places: Places) -> list[DocumentProblem]:
    def at(pointer: str, message: str, code: str, level: Level = "error") -> DocumentProblem:
        return DocumentProblem(places.key(pointer), message, code, level)

    found, api = [], clients.hyperfleet_api
    if clients.maestro is not None or places.is_given("/clients/maestro"):
        found.append(
            at("/clients/maestro", "clients.maestro is not supported: objects go to Kubernetes", "NotSupported")
        )
    fault = resolve_url(api.base_url, "").fault if api.base_url else ""
    if fault or (api.base_url and "://" not in api.base_url):
        found.append(at("/clients/hyperfleet_api/base_url", "expected a URL such as http://api:8000", "NotAllowed"))
    if api.version and api.version not in KNOWN_VERSIONS:
        found.append(at("/clients/hyperfleet_api/version", unknown_version(api.version), "UnknownApiVersion"))
    if api.auth is not None and not PurePosixPath(api.auth.token_path).is_absolute():
        found.append(at("/clients/hyperfleet_api/auth", "token_path must be an absolute path", "NotAllowed"))
    for key in _UNUSED:
        if places.is_given(f"/{key}"):
            message = f"{key} has no effect here: the log is a setting of the program"
            found.append(at(f"/{key}", message, "NoEffect", "warning"))
    return found


def unknown_version(version: str) -> str:
    """Say that a version of the API is not known."""
    return f'there is no version "{version}" of the API; known: {", ".join(KNOWN_VERSIONS)}'


def _settings(adapter: AdapterPart | None, clients: ClientsPart) -> Mapping[str, Any]:
    """Return `config.*`: the merged sections in the names of the file, without secrets."""
    sections = {name: _plain(getattr(clients, name)) for name in ("hyperfleet_api", "broker", "kubernetes")}
    return {"adapter": _plain(adapter) if adapter else {}, "clients": sections}


def _plain(value: Any, key: str = "") -> Any:
    if isinstance(value, Struct):
        return {name: _plain(item, name) for name, item in asdict(value).items()}
    if isinstance(value, dict):
        return {name: _plain(item, name) for name, item in value.items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, timedelta):
        return format_duration(value)
    return REDACTED if is_secret_name(key) and value else value
