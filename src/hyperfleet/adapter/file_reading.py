"""Read adapter files and the files that they name, of bounded size and from their own folder only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hyperfleet.adapter.compiling.objects import ReferencedText
from hyperfleet.adapter.compiling.post import ReferencedTree
from hyperfleet.documents import Places, read
from hyperfleet.documents.nodes import to_plain
from hyperfleet.errors import UnreadableFile

MAX_FILE: Final = 1_048_576  # bytes; an object in Kubernetes has at most as many
_SUFFIXES: Final = (".yaml", ".yml")
_OWN_KEY: Final = "adapter:"


def read_text(file: Path) -> str:
    """Return the text of a file of bounded size."""
    try:
        with file.open("rb") as stream:
            raw = stream.read(MAX_FILE + 1)
        if len(raw) > MAX_FILE:
            raise UnreadableFile(f"{file} has more than {MAX_FILE} bytes")
        return raw.decode("utf-8")
    except OSError as error:
        raise UnreadableFile(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"{file} is not UTF-8 text: {error}") from error


class FileReferences:
    """Reads files that an adapter file names, from its folder only."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read_text(self, name: str) -> ReferencedText:
        """Return the text of a file."""
        path = self._folder / name
        try:
            resolved, root = path.resolve(), self._folder.resolve()
            if not resolved.is_relative_to(root):
                return ReferencedText("", fault=f"{name} is outside of the folder of this file")
            if not resolved.is_file():
                return ReferencedText("", fault=f"there is no file {name} beside this one")
            return ReferencedText(read_text(resolved), str(path))
        except UnreadableFile as error:
            return ReferencedText("", fault=str(error))
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            return ReferencedText("", fault=f"{name!r} is not the name of a file: {error}")

    def read_tree(self, name: str) -> ReferencedTree:
        """Return the map in a YAML file."""
        text, file, fault = self.read_text(name)
        if fault:
            return ReferencedTree({}, fault=fault)
        reading = read(text, file)
        if reading.problems:
            return ReferencedTree({}, fault=f"{reading.problems[0].place}: {reading.problems[0].message}")
        value = to_plain(reading.documents[0].root) if len(reading.documents) == 1 else None
        if not isinstance(value, dict):
            return ReferencedTree({}, fault=f"{name} must hold one document, and that a mapping")
        return ReferencedTree(value, Places(reading.documents[0]))


def find_adapter_files(folder: Path) -> Iterator[Path]:
    """Yield the adapter files; hidden ones are left out, as Kubernetes mounts the same files twice."""
    try:
        for path in (*folder.glob("*"), *folder.glob("*/*")):
            is_hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
            if path.suffix in _SUFFIXES and not is_hidden and path.is_file() and _is_adapter(path):
                yield path
    except OSError as error:
        raise UnreadableFile(f"{folder} cannot be read: {error.strerror}") from error


def _is_adapter(path: Path) -> bool:
    return any(line.startswith(_OWN_KEY) for line in read_text(path).splitlines())
