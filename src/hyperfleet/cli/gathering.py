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
    operations_on,
)

if TYPE_CHECKING:
    from hyperfleet.client import Fleet

# What the server can sort by itself, so that `--limit` leaves the right ones.
_ORDERS: Final = ("name", "createdAt", "updatedAt", "severity")
_ID_PREFIXES: Final = ("cls-", "np-")


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


def gather(fleet: Fleet, noun: Noun, targets: Sequence[Target], wish: Wish) -> Gathered:
    """Find what was named, or all that fit."""
    names = [target for target in targets if target.name is not None]
    if noun is ADAPTER:
        return _gather_adapters(fleet, names, wish)
    if not names:
        return Gathered(noun, _list(fleet, noun, wish))
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
    fleet: Fleet, gathered: Gathered, now: datetime, labels: LabelColumns, *, has_kind: bool = False
) -> Sheet[Any]:
    """Return how to show what was found; names of clusters are looked up if they are needed."""
    if gathered.noun is ADAPTER:
        return adapter_sheet(now, has_kind=has_kind)
    if gathered.noun is NODE_POOL:
        return node_pool_sheet(now, cluster_names(fleet, gathered.items), labels, has_kind=has_kind)
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
    operations = operations_on(fleet, target.noun)
    if target.name is not None and target.name.startswith(_ID_PREFIXES):  # it may be there no longer
        parent = find_cluster(fleet, target.cluster) if target.cluster else None
        return operations.get(target.name, parent=parent, at=at)
    return operations.get(find(fleet, target), at=at)


def _gather_adapters(fleet: Fleet, names: Sequence[Target], wish: Wish) -> Gathered:
    every = {adapter.name: adapter for adapter in fleet.adapters()}
    if not names:
        return Gathered(ADAPTER, list(every.values())[: wish.limit])
    absent = [_unknown(target.name or "", every) for target in names if target.name not in every]
    return Gathered(ADAPTER, [every[target.name] for target in names if target.name in every], absent)


def _unknown(name: str, known: Iterable[str]) -> Failure:
    from hyperfleet.documents.wording import suggest

    return Failure(f'nobody has heard of an adapter "{name}"{suggest(name, tuple(known))}', NOT_FOUND)
