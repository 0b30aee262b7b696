"""A working start for adapters of your own: `hyperfleet adapter init` writes it."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

_PLACEHOLDER: Final = "NAME"


def start_text(name: str) -> str:
    """Return the file of a new adapter."""
    text = files(__name__).joinpath("adapter.yaml").read_text(encoding="utf-8")
    return text.replace(_PLACEHOLDER, name)
