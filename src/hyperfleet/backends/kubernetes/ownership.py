"""Server-side apply for the dry run: who owns which field, what an apply changes, and what conflicts. Pure.

An approximation of Kubernetes, which knows the schema of each kind. Here a field is a path of keys. A list is one
field, except those that Kubernetes merges item by item in most kinds (`_KEYS`). Defaults of kinds are not filled in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

Path = tuple[str, ...]
Owners = Mapping[str, frozenset[Path]]  # the fields of each manager

# Which key tells the items of a list apart; empty: they are texts.
_KEYS: Final[Mapping[str, str]] = {
    "conditions": "type",
    "containers": "name",
    "env": "name",
    "finalizers": "",
    "initContainers": "name",
    "ownerReferences": "uid",
    "volumes": "name",
}


class KeyedList(dict[str, Any]):
    """A list whose items have owners of their own, by key."""


class Merged(Struct, frozen=True):
    """What an apply leads to. With conflicts nothing may change."""

    fields: dict[str, Any]
    owners: dict[str, frozenset[Path]]
    conflicts: Mapping[str, str]  # the other manager of each field


def merge(live: Mapping[str, Any], owners: Owners, manager: str, applied: Mapping[str, Any], force: bool) -> Merged:
    """Give the fields of a manager their new values; remove those that it no longer applies and that only it owned."""
    fields, wanted = split_lists(live), dict(_leaves(split_lists(applied)))
    changed = {path for path, value in wanted.items() if not _has(fields, path, value)}
    conflicts = {
        ".".join(path): other
        for other, paths in owners.items()
        for path in paths
        if other != manager and path in changed
    }
    if conflicts and not force:
        return Merged(dict(live), dict(owners), conflicts)
    kept = {other: paths - changed for other, paths in owners.items() if other != manager}
    for path in owners.get(manager, frozenset()) - wanted.keys():
        if not any(path in paths for paths in kept.values()):
            _remove(fields, path)
    for path, value in wanted.items():
        _put(fields, path, value)
    return Merged(join_lists(fields), {**kept, manager: frozenset(wanted)}, {})


def _leaves(fields: Mapping[str, Any], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    for key, value in fields.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*path, *_steps(key, value)))
        else:
            yield (*path, key), value


def _steps(key: str, value: dict[str, Any]) -> Path:
    """Mark the step into a keyed list, so that it is one again when it is put back."""
    return (f"{key}[]",) if isinstance(value, KeyedList) else (key,)


def _has(fields: dict[str, Any], path: Path, value: Any) -> bool:
    """Tell whether a field has a value; an empty mapping is in every mapping."""
    for step in path[:-1]:
        found = fields.get(step.removesuffix("[]"))
        if not isinstance(found, dict):
            return False
        fields = found
    found = fields.get(path[-1])
    return isinstance(found, dict) if value == {} else path[-1] in fields and found == value


def _put(fields: dict[str, Any], path: Path, value: Any) -> None:
    for step in path[:-1]:
        key = step.removesuffix("[]")
        if not isinstance(fields.get(key), dict):
            fields[key] = KeyedList() if step.endswith("[]") else {}
        fields = fields[key]
    if not _has(fields, path[-1:], value):
        fields[path[-1]] = value


def _remove(fields: dict[str, Any], path: Path) -> None:
    """Remove a field, and the mappings that are empty without it."""
    key = path[0].removesuffix("[]") if len(path) > 1 else path[0]
    inner = fields.get(key)
    if len(path) > 1 and isinstance(inner, dict):
        _remove(inner, path[1:])
    if inner == {} or (len(path) == 1 and not isinstance(inner, dict)):  # a mapping may have fields of others
        fields.pop(key, None)


# ── lists with keys ──────────────────────────────────────────────────────────────────────────────────────────────


def split_lists(value: Any, name: str = "") -> Any:
    """Copy a value, with keyed lists as mappings."""
    if isinstance(value, Mapping):
        return {key: split_lists(each, key) for key, each in value.items()}
    if not isinstance(value, list):
        return value
    keys = [_key_of(item, _KEYS[name]) for item in value] if name in _KEYS else [None]
    if not value or None in keys or len(set(keys)) < len(keys):
        return [split_lists(item) for item in value]
    return KeyedList(zip(map(str, keys), map(split_lists, value), strict=True))


def _key_of(item: Any, name: str) -> str | None:
    key = item.get(name) if name and isinstance(item, dict) else item
    return key if isinstance(key, str) else None


def join_lists(value: Any) -> Any:
    """Copy a value, with mappings made of keyed lists as lists again."""
    if isinstance(value, KeyedList):
        return [join_lists(item) for item in value.values()]
    if isinstance(value, dict):
        return {key: join_lists(item) for key, item in value.items()}
    return [join_lists(item) for item in value] if isinstance(value, list) else value
