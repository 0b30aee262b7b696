"""Parsing arguments that name resources: kinds with their short forms, resources by name or id.

clusters                 all of a kind
cluster payments shop    some of them
cluster/payments         the same, as `-o name` writes it
nodepool/payments/blue   a node pool with its cluster: pools of different clusters may have the same name
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec import Struct

from hyperfleet.cli.exits import NOT_FOUND
from hyperfleet.cli.failures import CommandFailure, Misuse

if TYPE_CHECKING:
    from hyperfleet.client import Cluster, Fleet, NodePool, Resource

_ID_PREFIXES: Final = ("cls-", "np-")
_FEW: Final = 8  # clusters that are read one by one; for more, all are listed
_MAX_SIMILAR: Final = 200  # names to search for a suggestion


class Noun(Struct, frozen=True):
    """A kind of resource, and the words for it."""

    name: str
    plural: str
    short: str
    title: str  # in a sentence

    @property
    def words(self) -> tuple[str, ...]:
        """Return every word for it."""
        return (self.name, self.plural, self.short)


CLUSTER: Final = Noun("cluster", "clusters", "cl", "cluster")
NODE_POOL: Final = Noun("nodepool", "nodepools", "np", "node pool")
ADAPTER: Final = Noun("adapter", "adapters", "ad", "adapter")
ALL: Final = Noun("all", "all", "all", "everything")
NOUNS: Final = (CLUSTER, NODE_POOL, ADAPTER)
RESOURCES: Final = (CLUSTER, NODE_POOL)
_BY_WORD: Final = {word: noun for noun in (*NOUNS, ALL) for word in noun.words}


class ResourceTarget(Struct, frozen=True):
    """A named resource; without a name, all of its kind."""

    noun: Noun
    name: str | None = None
    cluster: str | None = None  # of a node pool

    def __str__(self) -> str:
        """Format it as an argument."""
        return "/".join(part for part in (self.noun.name, self.cluster, self.name) if part)


def parse_noun(word: str, allowed: Sequence[Noun] = NOUNS) -> Noun:
    """Return the kind for a word."""
    noun = _BY_WORD.get(word.lower())
    if noun in allowed and noun is not None:
        return noun
    from hyperfleet.documents.wording import suggest

    guess = suggest(word, tuple(spelt for each in allowed for spelt in each.words)) or "."
    there_are = ", ".join(f"{each.plural} ({each.short})" if each.short != each.name else each.name for each in allowed)
    raise Misuse(f'"{word}" is not a kind of resource here{guess} There are: {there_are}.')


def parse_targets(
    arguments: Sequence[str], cluster: str | None = None, allowed: Sequence[Noun] = NOUNS
) -> list[ResourceTarget]:
    """Parse `KIND NAME…` or `KIND/NAME …`; a kind alone is all of that kind, `a,b` several kinds."""
    if not arguments:
        raise Misuse(f"name a kind: {', '.join(each.plural for each in allowed)}")
    if "/" in arguments[0]:
        return [_parse_address(argument, cluster, allowed) for argument in arguments]
    nouns = [parse_noun(word, allowed) for word in arguments[0].split(",")]
    names = arguments[1:]
    if not names:
        return [ResourceTarget(noun, None, cluster) for noun in nouns]
    if len(nouns) > 1:
        raise Misuse("names can be given for one kind only; or write KIND/NAME for each")
    return [_parse_name(nouns[0], name, cluster) for name in names]


def parse_named(arguments: Sequence[str], cluster: str | None = None) -> list[ResourceTarget]:
    """Parse the clusters or node pools of a command; a name alone is a cluster."""
    if len(arguments) == 1 and "/" not in arguments[0] and arguments[0].lower() not in _BY_WORD:
        return [guess_target(arguments[0], cluster)]
    targets = parse_targets(arguments, cluster, RESOURCES)
    for target in targets:
        if target.name is None:
            raise Misuse(f"name a {target.noun.title}, by name or id")
    return targets


def parse_target(arguments: Sequence[str], cluster: str | None = None) -> ResourceTarget:
    """Parse the one cluster or node pool of a command."""
    target, *more = parse_named(arguments, cluster)
    if more:
        raise Misuse(f"only one is allowed: {target} and {len(more)} more were named")
    return target


def guess_target(name: str, cluster: str | None = None) -> ResourceTarget:
    """Guess the kind of a resource by the look of its name or id."""
    is_pool = cluster is not None or name.startswith(_ID_PREFIXES[1])
    return ResourceTarget(NODE_POOL if is_pool else CLUSTER, name, cluster)


def find(fleet: Fleet, target: ResourceTarget) -> Resource:
    """Read a resource; fail with suggestions if there is none, or with the candidates if there are several."""
    from hyperfleet.client.errors import Ambiguous, NotFound

    if not target.name:
        raise Misuse(f"name a {target.noun.title}, by name or id")
    operations: Any = operations_on(fleet, target.noun)
    parent = find_cluster(fleet, target.cluster) if target.noun is NODE_POOL and target.cluster else None
    try:
        found: Resource = operations.find(target.name, parent=parent)
    except NotFound:
        raise _not_found(operations, target) from None
    except Ambiguous as error:
        raise _ambiguous(fleet, target, error.candidates) from None
    return found


def find_in_past(fleet: Fleet, target: ResourceTarget) -> tuple[Resource | str, Cluster | None]:
    """Return a resource that may no longer exist, and its parent: an id is not looked up."""
    if target.name is None or not target.name.startswith(_ID_PREFIXES):
        return find(fleet, target), None
    return target.name, find_cluster(fleet, target.cluster) if target.cluster else None


def find_cluster(fleet: Fleet, name: str) -> Cluster:
    """Read a cluster by name or id."""
    return cast("Cluster", find(fleet, ResourceTarget(CLUSTER, name)))


def operations_on(fleet: Fleet, noun: Noun) -> Any:
    """Return the client's operations on resources of a kind."""
    return fleet.node_pools if noun is NODE_POOL else fleet.clusters


def cluster_names(
    fleet: Fleet, pools: Iterable[NodePool | Resource], known: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the names of the clusters of node pools, by id; `known` ones are not looked up."""
    from hyperfleet.client.errors import NotFound

    names = dict(known or {})
    ids = {each.metadata.cluster_id for each in pools if each.metadata.cluster_id} - names.keys()
    if len(ids) > _FEW:
        return names | {each.id: each.name for each in fleet.clusters.list(fields="name") if each.id in ids}
    for id_ in ids:
        try:
            names[id_] = fleet.clusters.get(id_, fields="name").name
        except NotFound:  # deleted meanwhile
            names[id_] = id_
    return names


def _parse_address(text: str, cluster: str | None, allowed: Sequence[Noun]) -> ResourceTarget:
    word, slash, name = text.partition("/")
    if not slash or not name:
        raise Misuse(f'expected KIND/NAME like the others, found "{text}"')
    return _parse_name(parse_noun(word, allowed), name, cluster)


def _parse_name(noun: Noun, name: str, cluster: str | None) -> ResourceTarget:
    if noun is NODE_POOL and "/" in name:
        cluster, _, name = name.partition("/")
    return ResourceTarget(noun, name, cluster if noun is NODE_POOL else None)


def _not_found(operations: Any, target: ResourceTarget) -> CommandFailure:
    """Return the failure for a missing resource, with suggestions."""
    from difflib import get_close_matches

    name = target.name or ""
    names = {each.name for each in operations.list(q=name[:2], fields="name", limit=_MAX_SIMILAR)} if name else set()
    close = get_close_matches(name, names, n=3)
    guess = f"; did you mean {' or '.join(close)}?" if close else ""
    where = f" in cluster {target.cluster}" if target.cluster else ""
    return CommandFailure(f'there is no {target.noun.title} with the name or id "{name}"{where}{guess}', NOT_FOUND)


def _ambiguous(fleet: Fleet, target: ResourceTarget, ids: Sequence[str]) -> Misuse:
    if target.noun is not NODE_POOL:
        return Misuse(f"{target.name} is the name of {len(ids)} clusters: {', '.join(ids)}; give the id")
    pools = [fleet.node_pools.get(id_) for id_ in ids]
    names = cluster_names(fleet, pools)
    which = ", ".join(f"{names[pool.cluster_id]}/{pool.name} ({pool.id})" for pool in pools)
    return Misuse(f"{target.name} is the name of {len(ids)} node pools: {which}; give the cluster or the id")
