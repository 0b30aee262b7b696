"""Reading or listing resources for `get` and similar commands, and choosing the sheet to show them with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from hyperfleet.cli.exits import NOT_FOUND
from hyperfleet.cli.failures import CommandFailure, Misuse
from hyperfleet.cli.options import Selection
from hyperfleet.cli.output.columns import adapter_sheet, cluster_sheet, node_pool_sheet
from hyperfleet.cli.output.formats import LabelColumns
from hyperfleet.cli.output.sheet import Sheet
from hyperfleet.cli.resources import (
    ADAPTER,
    NODE_POOL,
    Noun,
    ResourceTarget,
    cluster_names,
    find,
    find_cluster,
    find_in_past,
    operations_on,
)

if TYPE_CHECKING:
    from hyperfleet.client import Fleet

# Orders that the server supports, so that `--limit` is applied after sorting; with the path in a document.
_ORDERS: Final = {
    "name": ".name",
    "createdAt": ".metadata.createdAt",
    "updatedAt": ".status.lastUpdated",
    "severity": None,
}


class ListQuery(Struct, frozen=True):
    """What to list, apart from names."""

    selection: Selection
    cluster: str | None = None
    limit: int | None = None
    at: str | None = None
    sort_by: str | None = None


class FoundResources(Struct, frozen=True):
    """Resources of one kind that were found, and failures for those that were not."""

    noun: Noun
    items: Sequence[Any]
    missing: Sequence[CommandFailure] = ()
    is_sorted: bool = False  # by the server

    def order(self, sort_by: str | None) -> str | None:
        """Return the path to sort by here, with `-` for descending order; None if the server has sorted."""
        if sort_by is None or self.is_sorted:
            return None
        bare = sort_by.removeprefix("-")
        path = _ORDERS.get(bare, bare)
        if path is None:
            raise Misuse(f"--sort-by {bare} is for lists of clusters and node pools")
        return path if bare == sort_by else f"-{path}"


def find_all(fleet: Fleet, noun: Noun, targets: Sequence[ResourceTarget], options: ListQuery) -> FoundResources:
    """Read the named resources, or list all that match."""
    names = [target for target in targets if target.name is not None]
    if noun is ADAPTER:
        return _find_adapters(fleet, names, options)
    if not names:
        return FoundResources(noun, _list(fleet, noun, options), is_sorted=order_of(options.sort_by) is not None)
    if not options.selection.is_everything():
        raise Misuse("filters cannot be combined with names")
    found, missing = [], []
    for target in names:
        try:
            found.append(_read(fleet, target, options.at))
        except CommandFailure as failure:
            if failure.exit_code != NOT_FOUND:
                raise
            missing.append(failure)
    return FoundResources(noun, found, missing)


def sheet_of(
    fleet: Fleet,
    found_resources: FoundResources,
    now: datetime,
    labels: LabelColumns,
    *,
    has_kind: bool = False,
    clusters: dict[str, str] | None = None,
) -> Sheet[Any]:
    """Return the sheet for resources; names of clusters are looked up if they are needed.

    New names are added to `clusters`, so that repeated calls do not look them up again.
    """
    if found_resources.noun is ADAPTER:
        return adapter_sheet(now, has_kind=has_kind)
    if found_resources.noun is NODE_POOL:
        names = {} if clusters is None else clusters
        names.update(cluster_names(fleet, found_resources.items, names))
        return node_pool_sheet(now, names, labels, has_kind=has_kind)
    return cluster_sheet(now, labels, has_kind=has_kind)


def order_of(sort_by: str | None) -> str | None:
    """Return the order for the server, if it supports it."""
    return sort_by if sort_by and sort_by.removeprefix("-") in _ORDERS else None


def group(targets: Iterable[ResourceTarget]) -> dict[Noun, list[ResourceTarget]]:
    """Group targets by kind, in the order in which the kinds were named."""
    groups: dict[Noun, list[ResourceTarget]] = {}
    for target in targets:
        groups.setdefault(target.noun, []).append(target)
    return groups


def _list(fleet: Fleet, noun: Noun, options: ListQuery) -> Sequence[Any]:
    if options.at is not None:
        raise Misuse("--at needs names: the past of lists is not available")
    parent = find_cluster(fleet, options.cluster) if noun is NODE_POOL and options.cluster else None
    order = order_of(options.sort_by) or "name"
    filters = options.selection.as_filters()
    return list(operations_on(fleet, noun).list(parent=parent, limit=options.limit, order_by=order, **filters))


def _read(fleet: Fleet, target: ResourceTarget, at: str | None) -> Any:
    if at is None:
        return find(fleet, target)
    subject, parent = find_in_past(fleet, target)
    return operations_on(fleet, target.noun).get(subject, parent=parent, at=at)


def _find_adapters(fleet: Fleet, names: Sequence[ResourceTarget], options: ListQuery) -> FoundResources:
    every = {adapter.name: adapter for adapter in fleet.adapters()}
    if not names:
        return FoundResources(ADAPTER, list(every.values())[: options.limit])
    missing = [unknown_adapter(target.name or "", every) for target in names if target.name not in every]
    return FoundResources(ADAPTER, [every[target.name] for target in names if target.name in every], missing)


def unknown_adapter(name: str, known: Iterable[str]) -> CommandFailure:
    """Return the failure for an unknown adapter, with a suggestion."""
    from hyperfleet.documents.wording import suggest

    return CommandFailure(f'there is no adapter "{name}"{suggest(name, tuple(known))}', NOT_FOUND)
