"""What `get` and its kin show: reads what was named, or lists what fits, and brings the sheet to show it with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from hyperfleet.cli.exits import NOT_FOUND
from hyperfleet.cli.failures import Failure, Misuse
from hyperfleet.cli.options import Selection
from hyperfleet.cli.output.columns import adapter_sheet, cluster_sheet, node_pool_sheet
from hyperfleet.cli.output.formats import LabelColumns
from hyperfleet.cli.output.sheet import Sheet
from hyperfleet.cli.resources import (
    ADAPTER,
    NODE_POOL,
    Noun,
    Target,
    cluster_names,
    find,
    find_cluster,
    find_in_past,
    operations_on,
)

if TYPE_CHECKING:
    from hyperfleet.client import Fleet

# What the server can sort by itself, so that `--limit` leaves the right ones; and where that stands in a document.
_ORDERS: Final = {
    "name": ".name",
    "createdAt": ".metadata.createdAt",
    "updatedAt": ".status.lastUpdated",
    "severity": None,
}


class Wish(Struct, frozen=True):
    """What to gather, beside the names."""

    selection: Selection
    cluster: str | None = None
    limit: int | None = None
    at: str | None = None
    sort_by: str | None = None


class Gathered(Struct, frozen=True):
    """Things of one kind that were found, and what could not be found."""

    noun: Noun
    items: Sequence[Any]
    absent: Sequence[Failure] = ()
    is_sorted: bool = False  # the server did it

    def order(self, sort_by: str | None) -> str | None:
        """Return the path that is still to be sorted by, with `-` before it to turn it round."""
        if sort_by is None or self.is_sorted:
            return None
        bare = sort_by.removeprefix("-")
        path = _ORDERS.get(bare, bare)
        if path is None:
            raise Misuse(f"--sort-by {bare} is for lists of clusters and node pools")
        return path if bare == sort_by else f"-{path}"


def gather(fleet: Fleet, noun: Noun, targets: Sequence[Target], wish: Wish) -> Gathered:
    """Find what was named, or all that fit."""
    names = [target for target in targets if target.name is not None]
    if noun is ADAPTER:
        return _gather_adapters(fleet, names, wish)
    if not names:
        return Gathered(noun, _list(fleet, noun, wish), is_sorted=order_of(wish.sort_by) is not None)
    if not wish.selection.is_everything():
        raise Misuse("filters are for lists: leave either them or the names out")
    found, absent = [], []
    for target in names:
        try:
            found.append(_read(fleet, target, wish.at))
        except Failure as failure:
            if failure.exit_code != NOT_FOUND:
                raise
            absent.append(failure)
    return Gathered(noun, found, absent)


def sheet_of(
    fleet: Fleet,
    gathered: Gathered,
    now: datetime,
    labels: LabelColumns,
    *,
    has_kind: bool = False,
    clusters: dict[str, str] | None = None,
) -> Sheet[Any]:
    """Return how to show what was found; names of clusters are looked up if they are needed.

    Whoever calls this again and again keeps `clusters`, to which new names are added, so that none is asked for twice.
    """
    if gathered.noun is ADAPTER:
        return adapter_sheet(now, has_kind=has_kind)
    if gathered.noun is NODE_POOL:
        names = {} if clusters is None else clusters
        names.update(cluster_names(fleet, gathered.items, names))
        return node_pool_sheet(now, names, labels, has_kind=has_kind)
    return cluster_sheet(now, labels, has_kind=has_kind)


def order_of(sort_by: str | None) -> str | None:
    """Return the order that the server is to make, if it can."""
    return sort_by if sort_by and sort_by.removeprefix("-") in _ORDERS else None


def group(targets: Iterable[Target]) -> dict[Noun, list[Target]]:
    """Put targets of a kind together, in the order in which the kinds were named."""
    groups: dict[Noun, list[Target]] = {}
    for target in targets:
        groups.setdefault(target.noun, []).append(target)
    return groups


def _list(fleet: Fleet, noun: Noun, wish: Wish) -> Sequence[Any]:
    if wish.at is not None:
        raise Misuse("--at needs names: only single resources can be asked for their past")
    parent = find_cluster(fleet, wish.cluster) if noun is NODE_POOL and wish.cluster else None
    order = order_of(wish.sort_by) or "name"
    filters = wish.selection.as_filters()
    return list(operations_on(fleet, noun).list(parent=parent, limit=wish.limit, order_by=order, **filters))


def _read(fleet: Fleet, target: Target, at: str | None) -> Any:
    if at is None:
        return find(fleet, target)
    subject, parent = find_in_past(fleet, target)
    return operations_on(fleet, target.noun).get(subject, parent=parent, at=at)


def _gather_adapters(fleet: Fleet, names: Sequence[Target], wish: Wish) -> Gathered:
    every = {adapter.name: adapter for adapter in fleet.adapters()}
    if not names:
        return Gathered(ADAPTER, list(every.values())[: wish.limit])
    absent = [unknown_adapter(target.name or "", every) for target in names if target.name not in every]
    return Gathered(ADAPTER, [every[target.name] for target in names if target.name in every], absent)


def unknown_adapter(name: str, known: Iterable[str]) -> Failure:
    """Say that there is no such adapter, and which one may have been meant."""
    from hyperfleet.documents.wording import suggest

    return Failure(f'nobody has heard of an adapter "{name}"{suggest(name, tuple(known))}', NOT_FOUND)
