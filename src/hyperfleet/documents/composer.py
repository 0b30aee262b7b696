"""Parser events to nodes: aliases, merge keys, duplicate keys and limits are handled here.

Only the reader uses this. It works without recursion, so that no text can exhaust the stack.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NoReturn

from msgspec import Struct, field
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from hyperfleet.document_problem import DocumentPlace, DocumentProblem
from hyperfleet.documents import pointer
from hyperfleet.documents.nodes import ListNode, MappingEntry, MappingNode, Node, ScalarNode
from hyperfleet.documents.scalars import resolve_plain, resolve_tagged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hyperfleet.documents.nodes import Plain

# Counted with every alias replaced by its value. The largest text without aliases stays below it.
MAX_VALUES: Final = 200_000
# Policies nest about eight deep; the binder and every walk over nodes may rely on this.
MAX_DEPTH: Final = 64

MERGE_KEY: Final = "<<"
_COLLECTION_TAGS: Final = ("tag:yaml.org,2002:seq", "tag:yaml.org,2002:map", "!")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_HALF: Final = re.compile("[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]")


def _join_surrogates(text: str) -> str:
    """Combine surrogate pairs, as JSON writes them; half a pair becomes the replacement character."""
    if not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class CompositionStopped(Exception):  # noqa: N818 - internal: it carries a problem to the reader
    """The rest of the text cannot be composed."""

    def __init__(self, problem: DocumentProblem) -> None:
        """Carry the problem to the reader."""
        self.problem = problem
        super().__init__(problem.message)


class _Extent(Struct):
    """The number of values and of levels of a node, with aliases replaced."""

    values: int = 1
    levels: int = 1


class _Open(Struct):
    """A collection that is still open; in a mapping `children` are key, value, key, value…"""

    event: MappingStartEvent | SequenceStartEvent
    path: str
    children: list[Node] = field(default_factory=list)
    extent: _Extent = field(default_factory=_Extent)

    @property
    def next_path(self) -> str:
        """Return the pointer of the child that comes next."""
        if isinstance(self.event, SequenceStartEvent):
            return pointer.join(self.path, len(self.children))
        last = self.children[-1] if len(self.children) % 2 else None
        return pointer.join(self.path, last.name) if isinstance(last, ScalarNode) else self.path


class Composer:
    """Builds the roots of all documents from the events of one text."""

    def __init__(self, file: str) -> None:
        """Start with nothing; `file` names the text in problems."""
        self.file = file
        self.roots: list[Node] = []
        self.problems: list[DocumentProblem] = []
        self.position = (1, 1)
        self._values = 0
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Node, _Extent] | None] = {}

    def accept(self, event: Event) -> None:
        """Take the next event of the parser; raise CompositionStopped if the text cannot be used."""
        self.position = (event.start_mark.line + 1, event.start_mark.column + 1)
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            handler(self, event)

    def start_document(self, event: DocumentStartEvent) -> None:
        """Forget the anchors of the document before."""
        self._anchors.clear()

    def add_scalar(self, event: ScalarEvent) -> None:
        """Take a scalar."""
        if event.start_mark.index == event.end_mark.index:
            self._place_at_key()
        line, column = self.position
        text = _join_surrogates(event.value)
        value = self._resolve(event, text)
        node = ScalarNode(line, column, event.start_mark.index, text, value, event.style or "")
        self._spend(_Extent())
        self._finish(node, event.anchor, _Extent())

    def add_alias(self, event: AliasEvent) -> None:
        """Insert the value of an alias."""
        if event.anchor not in self._anchors:
            self._refuse(f"the alias *{event.anchor} has no anchor &{event.anchor} before it", "UnknownAlias")
        target = self._anchors[event.anchor]
        if target is None:
            self._refuse(f"the alias *{event.anchor} stands inside its own anchor", "RecursiveAlias")
        node, extent = target
        self._spend(extent)
        self._finish(node, None, extent)

    def open_collection(self, event: MappingStartEvent | SequenceStartEvent) -> None:
        """Begin a list or a mapping."""
        path = self._path
        if event.ctag is not None and str(event.ctag) not in _COLLECTION_TAGS:
            self._report(f"the tag {event.ctag} is not supported here", "NotAllowed", path)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        self._spend(_Extent())
        self._open.append(_Open(event, path))

    def close_collection(self, event: MappingEndEvent | SequenceEndEvent) -> None:
        """End the innermost list or mapping."""
        done = self._open.pop()
        mark = done.event.start_mark
        line, column = mark.line + 1, mark.column + 1
        node: Node
        if isinstance(done.event, SequenceStartEvent):
            node = ListNode(line, column, tuple(done.children))
        else:
            node = MappingNode(line, column, self._entries(done))
        self._finish(node, done.event.anchor, done.extent)

    @property
    def _path(self) -> str:
        return self._open[-1].next_path if self._open else ""

    def _finish(self, node: Node, anchor: str | None, extent: _Extent) -> None:
        """Give a complete node to its parent and remember it under its anchor."""
        if anchor is not None:
            self._anchors[anchor] = (node, extent)
        if not self._open:
            self.roots.append(node)
            return
        parent = self._open[-1]
        parent.children.append(node)
        parent.extent.values += extent.values
        parent.extent.levels = max(parent.extent.levels, extent.levels + 1)

    def _spend(self, extent: _Extent) -> None:
        """Count what is added, before it costs anything."""
        self._values += extent.values
        if self._values > MAX_VALUES:
            self._refuse(f"with its aliases the text holds more than {MAX_VALUES:,} values", "TooLarge")
        if len(self._open) + extent.levels > MAX_DEPTH:
            self._refuse(f"the text is nested more than {MAX_DEPTH} levels deep", "TooDeep")

    def _place_at_key(self) -> None:
        """Place an empty value at its key; the parser places it at the next token, maybe lines below."""
        parent = self._open[-1] if self._open else None
        if parent and isinstance(parent.event, MappingStartEvent) and len(parent.children) % 2:
            self.position = parent.children[-1].line, parent.children[-1].column

    def _resolve(self, event: ScalarEvent, text: str) -> Plain:
        try:
            if _HALF.search(event.value):
                raise ValueError("half of a surrogate pair is not a character")
            if event.ctag is not None:
                return resolve_tagged(str(event.ctag), text)
            return text if event.style else resolve_plain(text)
        except ValueError as error:
            self._report(str(error), "NotAllowed", self._path)
            return None

    def _entries(self, done: _Open) -> tuple[MappingEntry, ...]:
        """Pair keys and values; add the keys of merged mappings that are not given here."""
        own: dict[str, MappingEntry] = {}
        merged: list[MappingEntry] = []
        for key, value in zip(done.children[::2], done.children[1::2], strict=True):
            if not isinstance(key, ScalarNode):
                self._report("a key must be a single value", "NotAllowed", done.path, at=key)
            elif key.text == MERGE_KEY and not key.style:
                merged += self._merge(value, pointer.join(done.path, MERGE_KEY))
            elif key.name in own:
                first = own[key.name].key.line
                message = f'the key "{key.name}" is here twice, first in line {first}'
                self._report(message, "DuplicateKey", pointer.join(done.path, key.name), at=key)
            else:
                own[key.name] = MappingEntry(key, value)
        return _add_missing(own, merged)

    def _merge(self, value: Node, path: str) -> list[MappingEntry]:
        """Return the entries behind a merge key; the first mapping of a list comes first."""
        sources = value.items if isinstance(value, ListNode) else (value,)
        entries: list[MappingEntry] = []
        for source in sources:
            if isinstance(source, MappingNode):
                entries += source.entries
            else:
                message = "the merge key << needs a mapping or a list of mappings"
                self._report(message, "WrongType", path, at=source)
        return entries

    def _report(self, message: str, code: str, path: str, at: Node | None = None) -> None:
        line, column = (at.line, at.column) if at else self.position
        self.problems.append(DocumentProblem(DocumentPlace(self.file, line, column, path), message, code))

    def _refuse(self, message: str, code: str) -> NoReturn:
        raise CompositionStopped(DocumentProblem(DocumentPlace(self.file, *self.position, self._path), message, code))


def _add_missing(own: dict[str, MappingEntry], merged: Iterable[MappingEntry]) -> tuple[MappingEntry, ...]:
    for entry in merged:
        own.setdefault(entry.key.name, entry)
    return tuple(own.values())


_HANDLERS: Final[dict[type[Event], Callable[[Composer, Any], None]]] = {
    DocumentStartEvent: Composer.start_document,
    ScalarEvent: Composer.add_scalar,
    AliasEvent: Composer.add_alias,
    SequenceStartEvent: Composer.open_collection,
    MappingStartEvent: Composer.open_collection,
    SequenceEndEvent: Composer.close_collection,
    MappingEndEvent: Composer.close_collection,
}
