"""Documents for programs: JSON and YAML, exactly as the server sent them."""

from __future__ import annotations

import io
import re
from typing import Any, Final

import msgspec

_BREAKS: Final = re.compile("[\x85\u2028\u2029]")


def write_json(document: object) -> str:
    """Format a document as JSON, indented by four blanks like kubectl."""
    return msgspec.json.format(msgspec.json.encode(document), indent=4).decode()


def write_yaml(document: object) -> str:
    """Format a document as YAML; keys keep their order."""
    from ruamel.yaml import YAML

    writer = YAML(typ="safe", pure=True)
    writer.default_flow_style = False
    writer.representer.sort_base_mapping_type_on_output = False
    # On this writer only: the library's own method would change all writers.
    writer.representer.yaml_representers = {**writer.representer.yaml_representers, str: _represent_text}
    writer.allow_unicode = True
    writer.width = 4096  # a message stays on one line
    stream = io.StringIO()
    writer.dump(to_plain(document), stream)
    return stream.getvalue().rstrip("\n")


def _represent_text(representer: Any, text: str) -> Any:
    """Quote and escape texts with characters that YAML would read as line breaks."""
    style = '"' if _BREAKS.search(text) else None
    return representer.represent_scalar("tag:yaml.org,2002:str", text, style)


def to_plain(value: object) -> Any:
    """Convert a value to dicts, lists and texts, as in JSON."""
    return msgspec.json.decode(msgspec.json.encode(value))


def write_json_line(document: object) -> str:
    """Format a document as JSON on one line."""
    return msgspec.json.encode(document).decode()
