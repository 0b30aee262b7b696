"""Arguments of the form KEY=VALUE: labels, fields of a spec, data of a report.

env=prod            a label; `env-` removes it
nodes.count=3       a field of a spec; the value is YAML, so 3 is a number and "3" a text
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hyperfleet.cli.failures import Misuse
from hyperfleet.documents import read
from hyperfleet.documents.nodes import MappingNode, to_plain
from hyperfleet.documents.pointer import join
from hyperfleet.errors import DocumentError


def parse_labels(texts: Iterable[str], *, may_remove: bool = False) -> dict[str, str | None]:
    """Parse labels; one text may have several, separated by commas. None: remove the label."""
    labels: dict[str, str | None] = {}
    for text in (part.strip() for each in texts for part in each.split(",")):
        key, equals, value = text.partition("=")
        if may_remove and not equals and key.endswith("-") and len(key) > 1:
            key, new = key[:-1], None
        elif equals and key:
            new = value
        else:
            expected = "KEY=VALUE, or KEY- to remove one" if may_remove else "KEY=VALUE"
            raise Misuse(f'expected {expected}, found "{text}"')
        if key in labels:
            raise Misuse(f'the label "{key}" is given twice')
        labels[key] = new
    return labels


def check_labels(labels: Mapping[str, str | None]) -> None:
    """Raise `Misuse` with everything that the server would refuse about labels."""
    from hyperfleet.api.resource_bodies import read_merge_patch
    from hyperfleet.model.kind import CLUSTER

    errors = read_merge_patch({"labels": dict(labels)}, CLUSTER, "").errors
    if errors:
        raise Misuse("; ".join(error.message for error in errors))


def parse_fields(texts: Iterable[str], onto: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Parse fields, nested ones with dots, into a copy of `onto`."""
    fields = dict(onto or {})
    for text in texts:
        path, equals, value = text.partition("=")
        keys = path.split(".")
        if not equals or not all(keys):
            raise Misuse(f'expected FIELD=VALUE, found "{text}"')
        _put(fields, keys, _parse_value(value), path)
    return fields


def read_mapping(file: str) -> dict[str, Any]:
    """Read a file with a mapping: a spec, data."""
    from hyperfleet.cli.manifests import read_text

    reading = read(read_text(file), file)
    if reading.problems:
        raise DocumentError(reading.problems)
    if len(reading.documents) != 1 or not isinstance(reading.documents[0].root, MappingNode):
        raise Misuse(f"{Path(file)}: expected one document that is a mapping")
    value: Any = to_plain(reading.documents[0].root)
    return dict(value)


def _parse_value(text: str) -> object:
    """Parse a value as YAML; what is not YAML is text."""
    reading = read(text, "value")
    if reading.problems or len(reading.documents) != 1:
        return text
    return to_plain(reading.documents[0].root)


def _put(fields: dict[str, Any], keys: list[str], value: object, path: str) -> None:
    inner = fields
    for key in keys[:-1]:
        below = inner.setdefault(key, {})
        if not isinstance(below, dict):
            raise Misuse(f"{path}: {join('', key)} is not a mapping, so it has no fields")
        inner[key] = inner = dict(below)
    inner[keys[-1]] = value
