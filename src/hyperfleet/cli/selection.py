"""Which resources a changing command applies to: the named ones, or all that match a selector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from hyperfleet.cli.failures import Misuse
from hyperfleet.cli.resources import (
    NODE_POOL,
    RESOURCES,
    ResourceTarget,
    cluster_names,
    find_cluster,
    operations_on,
    parse_named,
    parse_targets,
)

if TYPE_CHECKING:
    from hyperfleet.client import Fleet


class ResourceSelection(Struct, frozen=True):
    """Named resources, or all of these kinds with some labels."""

    targets: Sequence[ResourceTarget]
    selector: str | None = None
    is_by_name: bool = True


def parse_selection(
    what: Sequence[str], cluster: str | None, selector: str | None, *, is_all: bool
) -> ResourceSelection:
    """Parse arguments; names are required without a selector or `--all`."""
    if not selector and not is_all:
        return ResourceSelection(parse_named(what, cluster))
    if selector and is_all:
        raise Misuse("--all and -l cannot be combined")
    targets = parse_targets(what, cluster, RESOURCES)
    if any(target.name for target in targets):
        raise Misuse(f"{'-l' if selector else '--all'} and names cannot be combined")
    return ResourceSelection(targets, selector, is_by_name=False)


def select(fleet: Fleet, chosen: ResourceSelection) -> list[ResourceTarget]:
    """Return each selected resource; named ones need not exist."""
    if chosen.is_by_name:
        return list(chosen.targets)
    return [each for target in chosen.targets for each in _list(fleet, target, chosen.selector)]


def _list(fleet: Fleet, target: ResourceTarget, selector: str | None) -> list[ResourceTarget]:
    is_pool = target.noun is NODE_POOL
    parent = find_cluster(fleet, target.cluster) if is_pool and target.cluster else None
    operations: Any = operations_on(fleet, target.noun)
    found = list(operations.list(parent=parent, labels=selector, order_by="name", fields="id,name,metadata"))
    names = cluster_names(fleet, found) if is_pool else {}
    return [ResourceTarget(target.noun, each.name, names.get(each.metadata.cluster_id or "")) for each in found]
