"""Candidates for shell completion: names of resources, adapters and contexts, phases, labels.

Only `completion` calls this. The server has a second to answer; without an answer there are no candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from hyperfleet.cli.contexts import locate, read_config
from hyperfleet.cli.failures import Misuse
from hyperfleet.cli.resources import (
    ADAPTER,
    NODE_POOL,
    NOUNS,
    RESOURCES,
    Noun,
    cluster_names,
    operations_on,
    parse_noun,
)

if TYPE_CHECKING:
    from hyperfleet.cli.session import CliSession
    from hyperfleet.client import Fleet

_MAX_NAMES: Final = 200  # more are of no use in a terminal
_WITH_ADAPTERS: Final = ("get", "describe", "watch")
_CONDITIONS: Final = ("Ready", "Available")


def find_candidates(
    session: CliSession, context: click.Context, place: click.Parameter, prefix: str
) -> list[str] | None:
    """Return the candidates that begin with a prefix; None: use click's own completion."""
    if isinstance(place, click.Argument):
        find = _ARGUMENTS.get((context.info_name or "", place.name or "")) or _ARGUMENTS.get(("", place.name or ""))
    else:
        find = _OPTIONS.get(place.name or "")
    if find is None or isinstance(place.type, click.Choice):
        return None
    return sorted({each for each in find(session, context, prefix) if each.startswith(prefix)})


def _complete_resources(session: CliSession, context: click.Context, prefix: str) -> Iterable[str]:
    """Offer kinds first, then names of that kind; `kind/name` if the prefix has a slash."""
    typed: Sequence[str] = context.params.get("what") or context.params.get("words") or ()
    nouns = NOUNS if context.info_name in _WITH_ADAPTERS else RESOURCES
    word, slash, rest = prefix.partition("/")
    if slash and (noun := _noun(word, nouns)) is not None:
        return [f"{word}/{name}" for name in _names(session, noun, rest, context)]
    if typed and "/" not in typed[0] and (noun := _noun(typed[0], nouns)) is not None:
        return [name for name in _names(session, noun, prefix, context) if name not in typed[1:]]
    if typed:
        return [f"{typed[0].partition('/')[0]}/"] if "/" in typed[0] else []
    return [spelling for noun in nouns for spelling in (noun.name, noun.plural)]


def _noun(word: str, allowed: Sequence[Noun]) -> Noun | None:
    try:
        return parse_noun(word, allowed)
    except Misuse:
        return None


def _names(session: CliSession, noun: Noun, prefix: str, context: click.Context) -> list[str]:
    with session.open_for_completion() as fleet:
        if noun is ADAPTER:
            return [adapter.name for adapter in fleet.adapters()]
        if noun is NODE_POOL and not context.params.get("cluster"):
            return _name_pools(fleet, prefix)
        parent = fleet.clusters.find(context.params["cluster"]) if noun is NODE_POOL else None
        operations: Any = operations_on(fleet, noun)
        return [each.name for each in operations.list(parent=parent, **_filters(prefix, "name"))]


def _name_pools(fleet: Fleet, prefix: str) -> list[str]:
    """Return names of node pools with their clusters."""
    cluster, slash, pool = prefix.partition("/")
    parent = fleet.clusters.find(cluster) if slash else None
    pools = list(fleet.node_pools.list(parent=parent, **_filters(pool, "name,metadata.clusterId")))
    names = cluster_names(fleet, pools)
    return [f"{names.get(each.cluster_id, each.cluster_id)}/{each.name}" for each in pools]


def _filters(prefix: str, fields: str) -> dict[str, Any]:
    return {"fields": fields, "limit": _MAX_NAMES, **({"q": prefix} if prefix else {})}


def _complete_clusters(session: CliSession, context: click.Context, prefix: str) -> Iterable[str]:
    with session.open_for_completion() as fleet:
        return [each.name for each in fleet.clusters.list(**_filters(prefix, "name"))]


def _complete_adapters(session: CliSession, context: click.Context, prefix: str) -> Iterable[str]:
    with session.open_for_completion() as fleet:
        return [adapter.name for adapter in fleet.adapters()]


def _complete_contexts(session: CliSession, context: click.Context, prefix: str) -> Iterable[str]:
    return read_config(locate(session.environment)).contexts


def _complete_subscriptions(session: CliSession, context: click.Context, prefix: str) -> Iterable[str]:
    with session.open_for_completion() as fleet:
        return [each.name for each in fleet.subscriptions()]


def _complete_phases(session: CliSession, context: click.Context, prefix: str) -> Iterable[str]:
    from hyperfleet.model.phase import PHASES

    return [*PHASES, *(f"!{phase}" for phase in PHASES)] if prefix.startswith("!") else PHASES


def _complete_conditions(session: CliSession, context: click.Context, prefix: str) -> Iterable[str]:
    return [f"{type_}{sign}{status}" for type_ in _CONDITIONS for sign in ("=", "!=") for status in ("True", "False")]


def _complete_labels(session: CliSession, context: click.Context, prefix: str) -> Iterable[str]:
    """Offer the labels of clusters, after those that are already typed."""
    before, comma, _ = prefix.rpartition(",")
    with session.open_for_completion() as fleet:
        found = fleet.clusters.list(fields="metadata.labels", limit=_MAX_NAMES)
        return {f"{before}{comma}{key}={value}" for each in found for key, value in each.labels.items()}


_Find = Callable[["CliSession", click.Context, str], Iterable[str]]
_ARGUMENTS: Final[Mapping[tuple[str, str], _Find]] = {
    ("", "what"): _complete_resources,
    ("label", "words"): _complete_resources,
    ("reconcile", "what"): _complete_resources,
    ("top", "adapters"): _complete_adapters,
    ("dead-letters", "name"): _complete_subscriptions,
    ("replay", "name"): _complete_subscriptions,
    ("unsubscribe", "name"): _complete_subscriptions,
    ("use-context", "name"): _complete_contexts,
    ("set-context", "name"): _complete_contexts,
    ("set-token", "name"): _complete_contexts,
    ("delete-context", "name"): _complete_contexts,
}
_OPTIONS: Final[Mapping[str, _Find]] = {
    "context": _complete_contexts,
    "cluster": _complete_clusters,
    "against": _complete_clusters,
    "adapter": _complete_adapters,
    "blocked_by": _complete_adapters,
    "phase": _complete_phases,
    "where": _complete_conditions,
    "selector": _complete_labels,
    "take": _complete_subscriptions,
}
