"""Field masks: `fields=id,status.phase,metadata.labels."app.kubernetes.io/name"` keeps these parts of an answer.

The API parses a mask once per request and applies it to each answer. The first key of a path must be a known field; a
path below it that an answer lacks is ignored, because specs and labels may contain anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import Struct

from hyperfleet.aggregation import BodyProblem
from hyperfleet.documents.wording import quote, suggest
from hyperfleet.services.parameters import Parameters

FIELDS: Final = "fields"
MAX_PATHS: Final = 100  # more paths than answers have fields
MAX_DEPTH: Final = 32  # the depth of JSON that requests may send by default
_MAX_GUESS: Final = 64  # characters of a key that are compared for a suggestion

# Blanks are listed, because languages differ in what `\s` matches.
_KEY: Final = re.compile(r'[ \t]*(?:"([^"]+)"|([^ \t".,]+))[ \t]*')

Path = tuple[str, ...]
Tree = dict[str, "Tree | None"]  # what to keep below each key; None: everything

_ABSENT: Final = object()


class FieldMask(Struct, frozen=True):
    """The paths to keep, or the errors; neither: no mask was given."""

    paths: tuple[Path, ...] = ()
    errors: tuple[BodyProblem, ...] = ()


def read_fields(values: Sequence[str], known: Sequence[str]) -> FieldMask:
    """Parse dotted paths separated by commas, which begin with one of `known`; keys with dots are quoted."""
    parameters = Parameters({FIELDS: values} if values else {})
    parameters.refuse_unknown((FIELDS,))
    placed = [each for text in parameters.all(FIELDS) for each in _read_paths(text, parameters)]
    for at, (first, *_) in placed:
        if first not in known:
            guess = suggest(first[:_MAX_GUESS], tuple(known)) or f"; there are {', '.join(known)}"
            parameters.refuse(FIELDS, "UnknownField", f"there is no field {quote(first)}{guess}", at)
    paths = [path for _, path in placed]
    if len(paths) > MAX_PATHS or any(len(path) > MAX_DEPTH for path in paths):
        parameters.refuse(FIELDS, "TooMany", f"at most {MAX_PATHS} paths of {MAX_DEPTH} keys each are allowed")
    errors = tuple(parameters.errors)
    return FieldMask((), errors) if errors else FieldMask(tuple(dict.fromkeys(paths)))


def _read_paths(text: str, parameters: Parameters) -> Iterator[tuple[int, Path]]:
    """Yield each path with its first character, to the end or to the first error.

    After an unclosed quotation mark nothing can be parsed.
    """
    keys: list[str] = []
    at = start = 0
    while True:
        match = _KEY.match(text, at)
        if match is None:
            parameters.refuse(FIELDS, "BadFormat", _expected(text[at:], 'a key such as phase or "a.key"'), at + 1)
            return
        keys.append(match[1] or match[2])
        at = match.end()
        if text[at : at + 1] != ".":
            yield start + 1, tuple(keys)
            keys, start = [], at + 1
        if at == len(text):
            return
        if text[at] not in ".,":
            parameters.refuse(FIELDS, "BadFormat", _expected(text[at:], "a dot or a comma"), at + 1)
            return
        at += 1


def _expected(rest: str, expected: str) -> str:
    return f"{f'found {quote(rest)}' if rest else 'the list ends here'}, expected {expected}"


def mask_answer(answer: bytes, mask: FieldMask) -> bytes:
    """Apply a mask to a stored answer; without paths, return it unchanged."""
    return msgspec.json.encode(apply_mask(msgspec.json.decode(answer), mask.paths)) if mask.paths else answer


def apply_mask(document: dict[str, Any], paths: tuple[Path, ...]) -> dict[str, Any]:
    """Return the parts of a document that the paths name, and its id; a path applies to every item of a list."""
    masked: dict[str, Any] = _keep(document, _tree_of(paths))
    return masked


@lru_cache(maxsize=32)  # a page applies the same mask up to a thousand times
def _tree_of(paths: tuple[Path, ...]) -> Tree:
    """Merge paths into a tree; a path keeps everything below its end."""
    tree: Tree = {"id": None}
    for *above, last in paths:
        branch: Tree | None = tree
        for key in above:
            branch = branch.setdefault(key, {}) if branch is not None else None
        if branch is not None:
            branch[last] = None
    return tree


def _keep(value: Any, tree: Tree | None) -> Any:
    if tree is None:
        return value
    if isinstance(value, list):
        return [kept for item in value if (kept := _keep(item, tree)) is not _ABSENT]
    if not isinstance(value, dict):
        return _ABSENT
    kept_fields = {key: _keep(item, tree[key]) for key, item in value.items() if key in tree}
    return {key: kept for key, kept in kept_fields.items() if kept is not _ABSENT}
