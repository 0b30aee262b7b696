"""Which resources a changing command is about: those that were named, or all that fit a selector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from hyperfleet.cli.failures import Misuse
from hyperfleet.cli.resources import (
    NODE_POOL,
    RESOURCES,
    Target,
    cluster_names,
    find_cluster,
    operations_on,
    parse_named,
    parse_targets,
)

if TYPE_CHECKING:
    from hyperfleet.client import Fleet


class Chosen(Struct, frozen=True):
    """What was chosen: names, or of these kinds all that have some labels."""

    targets: Sequence[Target]
    selector: str | None = None
    is_by_name: bool = True


def parse_chosen(what: Sequence[str], cluster: str | None, selector: str | None, *, is_all: bool) -> Chosen:
    """Read what was typed; more than what was named is only meant with a selector or `--all`."""
    if not selector and not is_all:
        return Chosen(parse_named(what, cluster))
    if selector and is_all:
        raise Misuse("--all and -l do not go together")
    targets = parse_targets(what, cluster, RESOURCES)
    if any(target.name for target in targets):
        raise Misuse(f"{'-l' if selector else '--all'} and names do not go together")
    return Chosen(targets, selector, is_by_name=False)


def select(fleet: Fleet, chosen: Chosen) -> list[Target]:
    """Return each resource that is meant; what was named need not be there."""
    if chosen.is_by_name:
        return list(chosen.targets)
    return [each for target in chosen.targets for each in _list(fleet, target, chosen.selector)]


def _list(fleet: Fleet, target: Target, selector: str | None) -> list[Target]:
    is_pool = target.noun is NODE_POOL
    parent = find_cluster(fleet, target.cluster) if is_pool and target.cluster else None
    operations: Any = operations_on(fleet, target.noun)
    found = list(operations.list(parent=parent, labels=selector, order_by="name", fields="id,name,metadata"))
    names = cluster_names(fleet, found) if is_pool else {}
    return [Target(target.noun, each.name, names.get(each.metadata.cluster_id or "")) for each in found]
