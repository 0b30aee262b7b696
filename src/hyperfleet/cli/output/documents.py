"""Documents for programs: JSON and YAML, exactly as the server told it."""

from __future__ import annotations

import io
import re
from typing import Any, Final

import msgspec

_BREAKS: Final = re.compile("[\x85\u2028\u2029]")


def write_json(document: object) -> str:
    """Write a document as JSON, four blanks deep as kubectl does."""
    return msgspec.json.format(msgspec.json.encode(document), indent=4).decode()


def write_yaml(document: object) -> str:
    """Write a document as YAML; keys in the order in which they came."""
    from ruamel.yaml import YAML

    writer = YAML(typ="safe", pure=True)
    writer.default_flow_style = False
    writer.representer.sort_base_mapping_type_on_output = False
    # Of this writer alone: the library's own way to add one would change all of the program's.
    writer.representer.yaml_representers = {**writer.representer.yaml_representers, str: _represent_text}
    writer.allow_unicode = True
    writer.width = 4096  # a message stays on one line
    stream = io.StringIO()
    writer.dump(to_plain(document), stream)
    return stream.getvalue().rstrip("\n")


def _represent_text(representer: Any, text: str) -> Any:
    """Put texts in quotes, with escapes, of which YAML would otherwise take a part for the end of a line."""
    style = '"' if _BREAKS.search(text) else None
    return representer.represent_scalar("tag:yaml.org,2002:str", text, style)


def to_plain(value: object) -> Any:
    """Make dicts, lists and texts of whatever can be encoded, as JSON would have it."""
    return msgspec.json.decode(msgspec.json.encode(value))


def write_json_line(document: object) -> str:
    """Write a document as JSON on one line."""
    return msgspec.json.encode(document).decode()
