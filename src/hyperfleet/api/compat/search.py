"""The meaning of a `search`: its fields, whether a resource matches, and which part of it the store's index can find.

A search is a tree (`syntax`). `compile_search` checks it once; `holds` checks one resource as it is shown. Index terms
are derived from it: each is necessary, and if `is_exact`, together they are sufficient.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from operator import ge, gt, le, lt
from typing import Any, Final

import msgspec
from msgspec import Struct

from hyperfleet.aggregation.availability import READY
from hyperfleet.api.compat.conditions import RECONCILED, ResourceCondition
from hyperfleet.api.compat.shapes import ResourceShape
from hyperfleet.api.compat.syntax import AllOf, AnyOf, Negation, Node, Operator, Test, Value, fail, parse
from hyperfleet.api.compat.wildcards import matches
from hyperfleet.documents.wording import quote
from hyperfleet.model.condition import STATUSES
from hyperfleet.ports import TokenTerm
from hyperfleet.services.facets import whole_words

Read = Callable[[ResourceShape], Any]

_LABELS: Final = "labels."
_SPEC: Final = "spec."
_CONDITIONS: Final = "status.conditions."
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TYPE: Final = re.compile(r"[A-Z][A-Za-z0-9]*")
_ORDERED: Final[Mapping[Operator, Callable[[Any, Any], bool]]] = {"<": lt, "<=": le, ">": gt, ">=": ge}
_PATTERN_OPERATORS: Final[frozenset[Operator]] = frozenset({"like", "ilike"})


class Search(Struct, frozen=True):
    """A checked search; `is_exact`: the terms alone decide."""

    holds: Callable[[ResourceShape], bool]
    terms: tuple[TokenTerm, ...] = ()
    is_exact: bool = True


EVERYTHING: Final = Search(lambda _: True)


def compile_search(text: str) -> Search:
    """Parse and check a search; an empty one matches everything."""
    if not text.strip():
        return EVERYTHING
    node = parse(text.strip())
    terms, is_exact = _narrow(node)
    return Search(_compile(node), terms, is_exact)


def _compile(node: Node) -> Callable[[ResourceShape], bool]:
    match node:
        case AllOf(parts):
            every = [_compile(part) for part in parts]
            return lambda shape: all(holds(shape) for holds in every)
        case AnyOf(parts):
            some = [_compile(part) for part in parts]
            return lambda shape: any(holds(shape) for holds in some)
        case Negation(part):
            denied = _compile(part)
            return lambda shape: not denied(shape)
        case Test():
            return _compile_test(node)


# ── fields ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _owner(name: str) -> Read:
    return lambda shape: getattr(shape.owner_references, name, None) if shape.owner_references else None


def _own(name: str) -> Read:
    return lambda shape: None if (value := getattr(shape, name)) is msgspec.UNSET else value


COLUMNS: Final[Mapping[str, Read]] = {
    **{name: _own(name) for name in ("id", "kind", "name", "href", "created_by", "updated_by", "deleted_by")},
    **{name: _own(name) for name in ("generation", "created_time", "updated_time", "deleted_time")},
    **{f"owner_{name}": _owner(name) for name in ("id", "kind", "href")},
}


class _Field(Struct, frozen=True):
    """How a field is read and how values are compared with it."""

    read: Read
    convert: Callable[[str, Value], Any]
    fit: Callable[[Any, Any], Any] = lambda found, _: found  # makes the found value comparable
    is_text: bool = True
    is_ordered: bool = True


def _find_field(name: str) -> _Field:
    if name in COLUMNS:
        return _column(name)
    if name.startswith(_LABELS) and name != _LABELS:
        key = name.removeprefix(_LABELS)
        return _Field(lambda shape: shape.labels.get(key) if shape.labels else None, _as_text)
    if name.startswith(_SPEC) and name != _SPEC:
        path = name.removeprefix(_SPEC).split(".")
        return _Field(lambda shape: _descend(shape.spec, path), _as_json, _fit_json)
    if name.startswith(_CONDITIONS):
        return _condition_field(name)
    raise fail(f"there is no field {quote(name[:80])}")


def _column(name: str) -> _Field:
    if name == "generation":
        return _Field(COLUMNS[name], _as_number, is_text=False)
    if name.endswith("_time"):
        return _Field(COLUMNS[name], _as_time, is_text=False)
    return _Field(COLUMNS[name], _as_text)


def _condition_field(name: str) -> _Field:
    type_, _, part = name.removeprefix(_CONDITIONS).partition(".")
    if not _TYPE.fullmatch(type_):
        raise fail(f"{quote(type_[:80])} is not the type of a condition, such as {RECONCILED}")
    if part not in _CONDITION_PARTS:
        raise fail(f"a condition can be searched by its status, {', '.join(filter(None, _CONDITION_PARTS))}")
    attribute, convert = _CONDITION_PARTS[part]
    return _Field(
        lambda shape: getattr(_condition_of(shape, type_), attribute, None),
        convert,
        is_text=False,
        is_ordered=bool(part),
    )


def _condition_of(shape: ResourceShape, type_: str) -> ResourceCondition | None:
    return next((condition for condition in shape.status.conditions if condition.type == type_), None)


def _descend(value: Any, path: list[str]) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _fit_json(found: Any, wanted: Value) -> Any:
    """Convert a JSON value for a comparison: with a number to a number if possible, otherwise to text."""
    if isinstance(wanted, float):
        try:
            return float(found) if not isinstance(found, bool | list | dict) else None
        except ValueError:
            return None
    return found if isinstance(found, str) else msgspec.json.encode(found).decode()


# ── values ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _as_json(_: str, value: Value) -> Value:
    """Keep a number or text; a boolean is compared as text, as in the original."""
    return str(value).lower() if isinstance(value, bool) else value


def _as_text(field: str, value: Value) -> str:
    if not isinstance(value, str):
        raise fail(f"{field} is a text; write its value in quotes")
    return value


def _as_number(field: str, value: Value) -> float:
    if not isinstance(value, float):
        raise fail(f"{field} is a number; write its value without quotes")
    return value


def _as_instant(field: str, value: Value) -> datetime:
    try:
        instant = msgspec.convert(value, datetime)
        if instant.tzinfo is not None:
            return instant.astimezone(UTC)
    except (msgspec.ValidationError, OverflowError):  # OverflowError: a zone moves it before year 1 or after 9999
        pass
    raise fail(f"{field} is a time; write it as '2026-01-31T12:00:00Z'")


def _as_time(field: str, value: Value) -> datetime:
    """Read a time, or a day, which means its start."""
    if isinstance(value, str) and _DAY.fullmatch(value):
        return _as_instant(field, f"{value}T00:00:00Z")
    return _as_instant(field, value)


def _as_status(field: str, value: Value) -> str:
    if value not in STATUSES:
        raise fail(f"{field} is one of {', '.join(STATUSES)}, in quotes")
    return str(value)


_CONDITION_PARTS: Final[Mapping[str, tuple[str, Callable[[str, Value], Any]]]] = {
    "": ("status", _as_status),
    "last_updated_time": ("last_updated_time", _as_instant),
    "last_transition_time": ("last_transition_time", _as_instant),
    "observed_generation": ("observed_generation", _as_number),
}


# ── one test ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _compile_test(test: Test) -> Callable[[ResourceShape], bool]:
    field, operator = _find_field(test.field), test.operator
    if operator in _PATTERN_OPERATORS and not field.is_text:
        raise fail(f"{test.field} is not a text, so {operator} does not apply")
    if operator in _PATTERN_OPERATORS and not isinstance(test.values[0], str):
        raise fail(f"{operator} takes a pattern in quotes")
    if not field.is_ordered and operator not in ("=", "in", "null"):
        raise fail(f"{test.field} supports only =, !=, in and null")
    values = tuple(field.convert(test.field, value) for value in test.values)

    def holds(shape: ResourceShape) -> bool:
        found = field.read(shape)
        if found is None or operator == "null":
            return found is None and operator == "null"
        fitted = [field.fit(found, value) for value in values]
        return _compare(operator, fitted, values)

    return holds


def _compare(operator: Operator, found: list[Any], values: tuple[Any, ...]) -> bool:
    """Compare the found value, converted for each value, with the values; None: not comparable."""
    if operator in ("=", "in"):
        return any(each == value for each, value in zip(found, values, strict=True))
    if None in found:
        return False
    match operator:
        case "like" | "ilike":
            return matches(found[0], values[0], ignores_case=operator == "ilike")
        case "between":
            return bool(values[0] <= found[0] and found[1] <= values[1])
        case "<" | "<=" | ">" | ">=":
            return _ORDERED[operator](found[0], values[0])
    return False


# ── index terms ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _narrow(node: Node) -> tuple[tuple[TokenTerm, ...], bool]:
    """Return terms that every matching resource fulfils, and whether they are sufficient."""
    match node:
        case AllOf(parts):
            narrowed = [_narrow(part) for part in parts]
            return tuple(term for terms, _ in narrowed for term in terms), all(exact for _, exact in narrowed)
        case AnyOf(parts):
            return _narrow_alternatives([_narrow(part) for part in parts])
        case Negation(part):
            terms, is_exact = _narrow(part)
            if is_exact and len(terms) == 1:
                (term,) = terms
                return (TokenTerm(term.tokens, not term.is_negated, term.is_prefix),), True
            return (), False
        case Test():
            return _narrow_test(node)


def _narrow_alternatives(narrowed: list[tuple[tuple[TokenTerm, ...], bool]]) -> tuple[tuple[TokenTerm, ...], bool]:
    """Merge alternatives into one term, if each is a single term that requires a token."""
    terms = [term for terms, _ in narrowed for term in terms]
    if any(len(each) != 1 for each, _ in narrowed) or any(term.is_negated or term.is_prefix for term in terms):
        return (), False
    tokens = dict.fromkeys(token for term in terms for token in term.tokens)
    return (TokenTerm(tuple(tokens)),), all(exact for _, exact in narrowed)


def _narrow_test(test: Test) -> tuple[tuple[TokenTerm, ...], bool]:
    field, operator = test.field, test.operator
    texts = [value for value in test.values if isinstance(value, str)]
    if field.startswith(_LABELS):
        prefix = f"l:{field.removeprefix(_LABELS)}="
        if operator == "null":
            return (TokenTerm((prefix,), is_negated=True, is_prefix=True),), True
        if operator in ("=", "in"):
            return (TokenTerm(tuple(dict.fromkeys(prefix + text for text in texts))),), True
        return (TokenTerm((prefix,), is_prefix=True),), False
    if field == "deleted_time" and operator == "null":
        return (TokenTerm(("p:Deleting",), is_negated=True),), True
    if operator in ("=", "in"):
        return _narrow_equality(field, texts), False
    return (), False


def _narrow_equality(field: str, texts: list[str]) -> tuple[TokenTerm, ...]:
    """Return the terms of a field that has one of these values."""
    if field in ("name", "id"):
        words = [whole_words(text) for text in texts]
        is_findable = all(len(each) == 1 for each in words)  # other texts are not names; `holds` decides
        return (TokenTerm(tuple(dict.fromkeys(f"w:{word}" for (word,) in words))),) if is_findable else ()
    if field == f"{_CONDITIONS}{RECONCILED}" and texts == ["True"]:
        return (TokenTerm((f"c:{READY}=True", f"r:{READY}=AdaptersStale")),)
    if field == f"{_CONDITIONS}{RECONCILED}" and texts == ["False"]:
        return (TokenTerm((f"c:{READY}=True",), is_negated=True),)
    return ()
