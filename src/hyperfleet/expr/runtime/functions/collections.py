"""The functions on lists and maps.

Maps have no order in the original; here `keys`, `values` and `toPairs` keep the order of the map.
"""

from __future__ import annotations

from functools import cmp_to_key
from typing import TYPE_CHECKING

from hyperfleet.expr.faults import BudgetExhausted, EvaluationFault
from hyperfleet.expr.runtime import access
from hyperfleet.expr.runtime.budget import allocate, look_up, scan, spend, visit
from hyperfleet.expr.runtime.text import show
from hyperfleet.expr.runtime.values import (
    AnyMap,
    NilSlice,
    StructValue,
    adopt,
    equal,
    is_nil,
    kind_name,
    less,
    type_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hyperfleet.expr.runtime.budget import Budget
    from hyperfleet.expr.runtime.values import Value


def length(_: Budget, value: Value) -> int:
    """Return how many elements, entries or code points a value has."""
    given = adopt(value)
    if isinstance(given, (str, list, bytes, dict)) and not isinstance(given, StructValue):
        return len(given)
    raise EvaluationFault(f"invalid argument for len (type {type_name(given)})")


def first(budget: Budget, items: Value) -> Value:
    """Return the first element, or nil if there is none."""
    return _end(items, 0, budget)


def last(budget: Budget, items: Value) -> Value:
    """Return the last element, or nil if there is none."""
    return _end(items, -1, budget)


def _end(items: Value, place: int, budget: Budget) -> Value:
    try:
        return access.fetch(items, place, budget)
    except BudgetExhausted:
        raise
    except EvaluationFault:
        return None


def take(budget: Budget, items: Value, count: Value) -> Value:
    """Return the first `count` elements, or all if there are fewer."""
    given, wanted = adopt(items), adopt(count)
    if not isinstance(given, (list, bytes)):
        raise EvaluationFault(f"cannot take from {kind_name(given)}")
    if kind_name(wanted) not in ("int", "int64"):
        raise EvaluationFault(f"cannot take {kind_name(wanted)} elements")
    if wanted < 0:
        raise EvaluationFault("reflect.Value.Slice: slice index out of bounds")
    scan(budget, min(len(given), int(wanted)))
    return given[: int(wanted)] if not is_nil(given) else given


def _list(verb: str, value: Value) -> Value:
    """Return an argument that must be a list."""
    given = adopt(value)
    if isinstance(given, (list, bytes)):
        return given
    raise EvaluationFault(f"cannot {verb} {kind_name(given)}")


def _map(verb: str, value: Value, after: str = "") -> dict[Value, Value]:
    """Return an argument that must be a map."""
    if isinstance(value, dict) and not isinstance(value, StructValue):
        return value
    raise EvaluationFault(f"cannot {verb} {kind_name(value)}{after}")


def keys(budget: Budget, mapping: Value) -> list[Value]:
    """Return the keys of a map."""
    given = _map("get keys from", mapping)
    visit(budget, len(given))
    return list(given)


def values(budget: Budget, mapping: Value) -> list[Value]:
    """Return the values of a map."""
    given = _map("get values from", mapping)
    visit(budget, len(given))
    return list(given.values())


def to_pairs(budget: Budget, mapping: Value) -> list[Value]:
    """Return a map as a list of `[key, value]`."""
    given = _map("transform", mapping, " to pairs")
    spend(budget, len(given))
    return [[key, value] for key, value in given.items()]


def from_pairs(budget: Budget, pairs: Value) -> AnyMap:
    """Return a map of what a list of `[key, value]` says."""
    given = adopt(pairs)
    if not isinstance(given, (list, bytes)):
        raise EvaluationFault(f"cannot transform {show(given, budget)} from pairs")
    spend(budget, 2 * len(given))
    result = AnyMap()
    for pair in map(adopt, given):
        if not isinstance(pair, (list, bytes)):
            raise EvaluationFault(f"invalid pair {show(pair, budget)}")
        if len(pair) != 2:
            raise EvaluationFault(f"invalid pair length {show(pair, budget)}")
        look_up(budget, pair[0])
        result[pair[0]] = pair[1]
    return result


def reverse(budget: Budget, items: Value) -> list[Value]:
    """Return a list from its end to its start."""
    given = _list("reverse", items)
    allocate(budget, len(given))
    scan(budget, len(given))
    return list(reversed(given))


def uniq(budget: Budget, items: Value) -> list[Value]:
    """Return a list without the elements that equal an earlier one."""
    given = _list("uniq", items)
    spend(budget, len(given))
    seen: set[Value] = set()
    found: list[Value] = []
    others: list[Value] = []  # what cannot be hashed is compared one by one
    for item in map(adopt, given):
        if type(item) in (int, float, str, bool):
            look_up(budget, item)
            mark = (type(item) is bool, item)
            if mark in seen:
                continue
            seen.add(mark)
        else:
            spend(budget, 2 * len(others) + 1)
            if any(equal(item, other, budget) for other in others):
                continue
            others.append(item)
        found.append(item)
    return found


def concat(budget: Budget, *lists: Value) -> list[Value]:
    """Return the elements of all lists in one."""
    found: list[Value] = NilSlice()
    for items in lists:
        given = _list("concat", items)
        if given and not found:
            found = []
        allocate(budget, len(given))
        scan(budget, len(given))
        found.extend(given)
    return found


def flatten(budget: Budget, items: Value) -> list[Value]:
    """Return the elements of a list and of all lists in it."""
    found: list[Value] = []
    _flatten(budget, _list("flatten", items), found)
    allocate(budget, 0)  # an element is paid for as it comes; this only asks whether the account is empty
    return found


def _flatten(budget: Budget, items: Sequence[Value], found: list[Value]) -> None:
    spend(budget, len(items) + 1)
    for item in map(adopt, items):
        if isinstance(item, (list, bytes)):
            _flatten(budget, item, found)
        else:
            allocate(budget, 1)
            found.append(item)


_ORDERS = {"asc": False, "desc": True}


def sort(budget: Budget, items: Value, order: Value = "asc") -> list[Value]:
    """Return a list in order."""
    given = adopt(items)
    if type(order) is not str:
        raise EvaluationFault(f"sort order argument must be a string (got {type_name(order)})")
    if order not in _ORDERS:
        raise EvaluationFault(f"invalid order {order}, expected asc or desc")
    if not isinstance(given, list):
        return NilSlice()
    allocate(budget, len(given))
    return sort_by(budget, given, given, descending=_ORDERS[order])


def sort_order(order: Value) -> bool:
    """Tell whether the order that `sortBy` is given means: descending."""
    if type(order) is not str:
        raise EvaluationFault("sortBy order argument must be a string")
    if order not in _ORDERS:
        raise EvaluationFault("unknown order, use asc or desc")
    return _ORDERS[order]


def sort_by(budget: Budget, items: Sequence[Value], ranks: Sequence[Value], *, descending: bool) -> list[Value]:
    """Return `items` in the order of their `ranks`; those of equal rank stay in their order."""
    spend(budget, len(items) + 1)
    adopted = [adopt(rank) for rank in ranks]
    comparisons = len(items).bit_length()  # that an element takes part in, about
    scan(budget, comparisons * sum(len(rank) for rank in adopted if type(rank) is str))
    if set(map(type, adopted)) in ({int}, {str}):
        places = sorted(range(len(items)), key=lambda place: adopted[place], reverse=descending)
        return [items[place] for place in places]
    spend(budget, len(items) * comparisons)

    def compare(one: int, other: int) -> int:
        first, second = adopted[one], adopted[other]
        return -1 if (less(second, first) if descending else less(first, second)) else 0

    return [items[place] for place in sorted(range(len(items)), key=cmp_to_key(compare))]


def get(budget: Budget, base: Value, key: Value) -> Value:
    """Return an element, entry or field, or nil where there is none."""
    return access.get(base, key, budget)


FUNCTIONS: dict[str, Callable[..., Value]] = {
    "len": length,
    "first": first,
    "last": last,
    "take": take,
    "keys": keys,
    "values": values,
    "toPairs": to_pairs,
    "fromPairs": from_pairs,
    "reverse": reverse,
    "uniq": uniq,
    "concat": concat,
    "flatten": flatten,
    "sort": sort,
    "get": get,
}
