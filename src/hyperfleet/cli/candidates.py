"""What may stand where somebody is typing: names of resources, adapters and contexts, phases, labels.

Only `completion` calls this. The server has a second; what it does not say by then is not offered.
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
    from hyperfleet.cli.session import Session
    from hyperfleet.client import Fleet

_MOST: Final = 200  # names; nobody looks at more
_WITH_ADAPTERS: Final = ("get", "describe", "watch")
_CONDITIONS: Final = ("Ready", "Available")


def find_candidates(session: Session, context: click.Context, place: click.Parameter, begun: str) -> list[str] | None:
    """Return what fits what was begun; None: click knows better."""
    if isinstance(place, click.Argument):
        find = _ARGUMENTS.get((context.info_name or "", place.name or "")) or _ARGUMENTS.get(("", place.name or ""))
    else:
        find = _OPTIONS.get(place.name or "")
    if find is None or isinstance(place.type, click.Choice):
        return None
    return sorted({each for each in find(session, context, begun) if each.startswith(begun)})


def _complete_resources(session: Session, context: click.Context, begun: str) -> Iterable[str]:
    """Offer kinds first, then names of that kind; `kind/name` if it was begun so."""
    typed: Sequence[str] = context.params.get("what") or context.params.get("words") or ()
    nouns = NOUNS if context.info_name in _WITH_ADAPTERS else RESOURCES
    word, slash, rest = begun.partition("/")
    if slash and (noun := _noun(word, nouns)) is not None:
        return [f"{word}/{name}" for name in _names(session, noun, rest, context)]
    if typed and "/" not in typed[0] and (noun := _noun(typed[0], nouns)) is not None:
        return [name for name in _names(session, noun, begun, context) if name not in typed[1:]]
    if typed:
        return [f"{typed[0].partition('/')[0]}/"] if "/" in typed[0] else []
    return [spelling for noun in nouns for spelling in (noun.name, noun.plural)]


def _noun(word: str, allowed: Sequence[Noun]) -> Noun | None:
    try:
        return parse_noun(word, allowed)
    except Misuse:
        return None


def _names(session: Session, noun: Noun, begun: str, context: click.Context) -> list[str]:
    with session.open_hasty() as fleet:
        if noun is ADAPTER:
            return [adapter.name for adapter in fleet.adapters()]
        if noun is NODE_POOL and not context.params.get("cluster"):
            return _name_pools(fleet, begun)
        parent = fleet.clusters.find(context.params["cluster"]) if noun is NODE_POOL else None
        operations: Any = operations_on(fleet, noun)
        return [each.name for each in operations.list(parent=parent, **_filters(begun, "name"))]


def _name_pools(fleet: Fleet, begun: str) -> list[str]:
    """Name node pools with their clusters."""
    cluster, slash, pool = begun.partition("/")
    parent = fleet.clusters.find(cluster) if slash else None
    pools = list(fleet.node_pools.list(parent=parent, **_filters(pool, "name,metadata.clusterId")))
    names = cluster_names(fleet, pools)
    return [f"{names.get(each.cluster_id, each.cluster_id)}/{each.name}" for each in pools]


def _filters(begun: str, fields: str) -> dict[str, Any]:
    return {"fields": fields, "limit": _MOST, **({"q": begun} if begun else {})}


def _complete_clusters(session: Session, context: click.Context, begun: str) -> Iterable[str]:
    with session.open_hasty() as fleet:
        return [each.name for each in fleet.clusters.list(**_filters(begun, "name"))]


def _complete_adapters(session: Session, context: click.Context, begun: str) -> Iterable[str]:
    with session.open_hasty() as fleet:
        return [adapter.name for adapter in fleet.adapters()]


def _complete_contexts(session: Session, context: click.Context, begun: str) -> Iterable[str]:
    return read_config(locate(session.environment)).contexts


def _complete_phases(session: Session, context: click.Context, begun: str) -> Iterable[str]:
    from hyperfleet.model.phase import PHASES

    return [*PHASES, *(f"!{phase}" for phase in PHASES)] if begun.startswith("!") else PHASES


def _complete_conditions(session: Session, context: click.Context, begun: str) -> Iterable[str]:
    return [f"{type_}{sign}{status}" for type_ in _CONDITIONS for sign in ("=", "!=") for status in ("True", "False")]


def _complete_labels(session: Session, context: click.Context, begun: str) -> Iterable[str]:
    """Offer the labels that clusters have, behind those that are typed already."""
    before, comma, _ = begun.rpartition(",")
    with session.open_hasty() as fleet:
        found = fleet.clusters.list(fields="metadata.labels", limit=_MOST)
        return {f"{before}{comma}{key}={value}" for each in found for key, value in each.labels.items()}


_Find = Callable[["Session", click.Context, str], Iterable[str]]
_ARGUMENTS: Final[Mapping[tuple[str, str], _Find]] = {
    ("", "what"): _complete_resources,
    ("label", "words"): _complete_resources,
    ("top", "adapters"): _complete_adapters,
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
}
