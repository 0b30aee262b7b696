"""Read the texts of params: files, and entries of Secrets and ConfigMaps.

How an object is read is given by the caller, who knows the cluster: the client of Kubernetes, or a dry run.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from hyperfleet.adapter.params import ReadText

MAX_TEXT: Final = 1_048_576  # bytes, as in the Go adapter and as much as a Secret holds

EntryKind: TypeAlias = Literal["Secret", "ConfigMap"]
# Takes kind, namespace and name; returns None if there is no such object, or a text that says why it cannot be read.
GetObject: TypeAlias = Callable[[EntryKind, str, str], Awaitable[Mapping[str, Any] | str | None]]


class LocalTexts:
    """Reads files of this machine, and entries through a function."""

    def __init__(self, get_object: GetObject | None = None) -> None:
        """Without a function, entries cannot be read."""
        self._get_object = get_object

    async def read_file(self, path: str) -> ReadText:
        """Return the text of a file."""
        return await asyncio.to_thread(_read_file, Path(path))

    async def read_entry(self, kind: EntryKind, namespace: str, name: str, key: str) -> ReadText:
        """Return one entry of a Secret or ConfigMap."""
        if self._get_object is None:
            return ReadText("", f"{kind} {namespace}/{name} cannot be read: there is no Kubernetes cluster here")
        found = await self._get_object(kind, namespace, name)
        if isinstance(found, str):
            return ReadText("", f"{kind} {namespace}/{name} cannot be read: {found}")
        if found is None:
            return ReadText("", f"there is no {kind} {namespace}/{name}")
        return entry_of(found, kind, key)


def entry_of(holder: Mapping[str, Any], kind: EntryKind, key: str) -> ReadText:
    """Return the text of one entry; that of a Secret is decoded. Faults never show the content."""
    name = (holder.get("metadata") or {}).get("name", "")
    data = holder.get("data") or {}
    value = data.get(key) if isinstance(data, Mapping) else None
    if not isinstance(value, str):
        return ReadText("", f"{kind} {name} has no entry {key}")
    if kind == "ConfigMap":
        return ReadText(value)
    try:
        return ReadText(base64.b64decode(value, validate=True).decode("utf-8"))
    except (binascii.Error, UnicodeDecodeError):
        return ReadText("", f"the entry {key} of Secret {name} is no text")


def _read_file(path: Path) -> ReadText:
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_TEXT + 1)
        if len(raw) > MAX_TEXT:
            return ReadText("", f"the file {path} has more than {MAX_TEXT} bytes")
        return ReadText(raw.decode("utf-8"))
    except OSError as error:
        return ReadText("", f"the file {path} cannot be read: {error.strerror}")
    except (UnicodeDecodeError, ValueError):
        return ReadText("", f"the file {path} is not UTF-8 text")
