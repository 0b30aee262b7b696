"""Templates in a structure: manifests, payloads and selectors that are written as maps and lists.

Every text is a template of its own, keys too, and each is rendered by itself: the result of a leaf is always a string,
whatever is in it. So a value can never break or alter the structure around it, which it can in the Go adapter: that
dumps the map to YAML, renders the whole and parses it again. A number is therefore written as a number, or in a text
manifest (`block: |` or a file), where the template is rendered first and then read as YAML.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from msgspec import Struct

from hyperfleet.adapter.faults import SourceFault, make_fault, place_source_faults
from hyperfleet.adapter.templates.template import OPENING, TextTemplate, parse_text, variables_of
from hyperfleet.adapter.templates.values import Value
from hyperfleet.adapter.templates.variables import VariableUse
from hyperfleet.documents import DocumentProblem, Places, read
from hyperfleet.documents.nodes import MappingNode, to_plain
from hyperfleet.documents.pointer import join

MAX_LEVELS: Final = 64  # of a manifest; rendering recurses


class TreeFault(NamedTuple):
    """A fault of a template and the JSON pointer of the text it is in; `is_key` if that text is the last name."""

    pointer: str
    fault: SourceFault
    is_key: bool = False


class TreeVariable(NamedTuple):
    """A variable that a tree reads, with the pointer and the source of the text that does."""

    pointer: str
    use: VariableUse
    source: str


class RenderedTree(NamedTuple):
    """A structure without templates, or why there is none."""

    value: Any
    fault: TreeFault | None = None


class TemplateTree(Struct, frozen=True):
    """A structure whose texts are templates. Make it with `parse_tree`."""

    _root: Any

    def render(self, variables: Mapping[str, Value], now: datetime) -> RenderedTree:
        """Render every text; the first fault ends it."""
        try:
            return RenderedTree(_Renderer(variables, now).render(self._root, ""))
        except _TreeSignal as signal:
            return RenderedTree(None, signal.fault)

    def variables(self) -> Iterator[TreeVariable]:
        """Yield the variables that the texts read."""
        return _variables(self._root, "")


class ParsedTree(NamedTuple):
    """A tree, or everything that is wrong with its texts."""

    tree: TemplateTree | None
    faults: tuple[TreeFault, ...] = ()


class _TreeMap(Struct, frozen=True):
    """A map with at least one key that is a template."""

    entries: tuple[tuple[Any, str, Any], ...]  # key or template, the key as written, value


class _TreeSignal(Exception):  # noqa: N818 - an internal signal
    def __init__(self, fault: TreeFault) -> None:
        self.fault = fault
        super().__init__(fault.fault.message)


def parse_tree(structure: object) -> ParsedTree:
    """Parse every text of a structure of maps, lists and scalars."""
    parser = _Parser()
    root = parser.parse(structure, "")
    return ParsedTree(None, tuple(parser.faults)) if parser.faults else ParsedTree(TemplateTree(root))


def render_tree(structure: object, variables: Mapping[str, Value], now: datetime) -> RenderedTree:
    """Parse and render a structure at once; for one that is rendered often, keep the tree of `parse_tree`."""
    tree, faults = parse_tree(structure)
    return tree.render(variables, now) if tree else RenderedTree(None, faults[0])


def place_tree_faults(faults: Iterable[TreeFault], places: Places, pointer: str) -> list[DocumentProblem]:
    """Turn the faults of a tree that is written at a pointer of a document into problems of that document."""
    problems: list[DocumentProblem] = []
    for inner, fault, is_key in faults:
        whole = pointer + inner
        if is_key:
            place = places.key(whole)
            problems.append(DocumentProblem(place, fault.message, "Template", snippet=fault.snippet))
        else:
            problems += place_source_faults([fault], places, whole, "Template")
    return problems


class _Parser:
    def __init__(self) -> None:
        self.faults: list[TreeFault] = []

    def parse(self, value: object, pointer: str, level: int = 0) -> Any:
        """Replace the texts with templates in them; a part without any stays the same object."""
        if level > MAX_LEVELS:
            self.faults.append(TreeFault(pointer, make_fault("", 0, f"more than {MAX_LEVELS} levels")))
        elif isinstance(value, str):
            return self._parse_text(value, pointer)
        elif isinstance(value, Mapping):
            return self._parse_map(value, pointer, level)
        elif isinstance(value, list):
            return [self.parse(each, join(pointer, str(index)), level + 1) for index, each in enumerate(value)]
        return value

    def _parse_text(self, text: str, pointer: str, *, is_key: bool = False) -> Any:
        if OPENING not in text:
            return text
        template, faults = parse_text(text)
        self.faults += [TreeFault(pointer, fault, is_key) for fault in faults]
        return template

    def _parse_map(self, value: Mapping[str, object], pointer: str, level: int) -> Any:
        entries = []
        for key, item in value.items():
            inner = join(pointer, str(key))
            entries.append((self._parse_text(key, inner, is_key=True), str(key), self.parse(item, inner, level + 1)))
        if any(isinstance(key, TextTemplate) for key, _, _ in entries):
            return _TreeMap(tuple(entries))
        return {key: item for key, _, item in entries}


class _Renderer:
    def __init__(self, variables: Mapping[str, Value], now: datetime) -> None:
        self._variables = variables
        self._now = now

    def render(self, value: Any, pointer: str) -> Any:
        match value:
            case TextTemplate():
                return self._render_text(value, pointer)
            case _TreeMap():
                return self._render_map(value, pointer)
            case dict():
                return {key: self.render(item, join(pointer, str(key))) for key, item in value.items()}
            case list():
                return [self.render(item, join(pointer, str(index))) for index, item in enumerate(value)]
        return value

    def _render_text(self, template: TextTemplate, pointer: str, *, is_key: bool = False) -> str:
        text, fault = template.render(self._variables, self._now)
        if fault:
            raise _TreeSignal(TreeFault(pointer, fault, is_key))
        return text

    def _render_map(self, value: _TreeMap, pointer: str) -> dict[str, Any]:
        rendered: dict[str, Any] = {}
        for key, written, item in value.entries:
            inner = join(pointer, written)
            name = self._render_text(key, inner, is_key=True) if isinstance(key, TextTemplate) else key
            if name in rendered:
                fault = make_fault(written, 0, "this key gets the same name as one before it")
                raise _TreeSignal(TreeFault(inner, fault, is_key=True))
            rendered[name] = self.render(item, inner)
        return rendered


def _variables(value: Any, pointer: str) -> Iterator[TreeVariable]:
    match value:
        case TextTemplate():
            yield from (TreeVariable(pointer, use, value.source) for use in variables_of(value))
        case _TreeMap():
            for key, written, item in value.entries:
                yield from _variables(key, join(pointer, written))
                yield from _variables(item, join(pointer, written))
        case dict():
            for key, item in value.items():
                yield from _variables(item, join(pointer, str(key)))
        case list():
            for index, item in enumerate(value):
                yield from _variables(item, join(pointer, str(index)))


def render_yaml(template: TextTemplate, variables: Mapping[str, Value], now: datetime) -> RenderedTree:
    """Render a text manifest and read the result as YAML: one object that is not empty."""
    text, fault = template.render(variables, now)
    if fault:
        return RenderedTree(None, TreeFault("", fault))
    documents, problems = _read(text)
    if problems:
        return _refuse_yaml(template, problems[0])
    if len(documents) != 1:
        return _refuse_yaml(template, f"it holds {len(documents)} documents; one is wanted")
    if not isinstance(documents[0], dict) or not documents[0]:
        return _refuse_yaml(template, "it is no object with fields")
    return RenderedTree(documents[0])


def _read(text: str) -> tuple[list[object], list[str]]:
    """Return the documents of a text, and what is wrong; no snippet, as the text may hold a secret."""
    reading = read(text, "")
    problems = [
        f"line {each.place.line}, column {each.place.column}: {each.message}"
        for each in reading.problems
        if each.level == "error"
    ]
    roots = [each.root for each in reading.documents]
    return [to_plain(root) for root in roots if isinstance(root, MappingNode) or to_plain(root) is not None], problems


def _refuse_yaml(template: TextTemplate, message: str) -> RenderedTree:
    fault = make_fault(template.source, 0, f"the rendered text is not a manifest: {message}")
    return RenderedTree(None, TreeFault("", fault))
