"""Documents for programs: JSON and YAML, exactly as the server told it."""

from __future__ import annotations

import io
from typing import Any

import msgspec


def write_json(document: object) -> str:
    """Write a document as JSON, four blanks deep as kubectl does."""
    return msgspec.json.format(msgspec.json.encode(document), indent=4).decode()


def write_yaml(document: object) -> str:
    """Write a document as YAML; keys in the order in which they came."""
    from ruamel.yaml import YAML

    writer = YAML(typ="safe", pure=True)
    writer.default_flow_style = False
    writer.representer.sort_base_mapping_type_on_output = False
    writer.allow_unicode = True
    writer.width = 4096  # a message stays on one line
    stream = io.StringIO()
    writer.dump(to_plain(document), stream)
    return stream.getvalue().rstrip("\n")


def to_plain(value: object) -> Any:
    """Make dicts, lists and texts of whatever can be encoded, as JSON would have it."""
    return msgspec.json.decode(msgspec.json.encode(value))


def write_json_line(document: object) -> str:
    """Write a document as JSON on one line."""
    return msgspec.json.encode(document).decode()
