"""The pieces of a template to a tree: blocks are matched, and the commands of every action are read.

The second stage. Every fault is collected: an action with a fault still opens or closes its block, so that one fault
does not cause others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec import Struct

from hyperfleet.adapter.faults import FaultSignal, SourceFault, make_fault
from hyperfleet.adapter.templates.commands import CommandReader
from hyperfleet.adapter.templates.lexer import MAX_FAULTS, ActionPiece, TextPiece, cut
from hyperfleet.adapter.templates.nodes import (
    Block,
    BreakAction,
    ContinueAction,
    IfAction,
    LiteralText,
    Pipeline,
    PipelineAction,
    RangeAction,
    TemplateNode,
    WithAction,
)
from hyperfleet.adapter.templates.scopes import ScopedNames

MAX_SOURCE: Final = 1_048_576  # characters; an object in Kubernetes has at most as many bytes
MAX_BLOCKS: Final = 64  # blocks inside each other, `else if` included; rendering recurses

_REFUSED: Final = frozenset({"define", "template", "block"})
_BLOCKS: Final[Mapping[str, type[IfAction | WithAction | RangeAction]]] = {
    "if": IfAction,
    "with": WithAction,
    "range": RangeAction,
}
_BAD_PIPELINE: Final = Pipeline(0, ())  # stands where a fault is; such a tree is never used


class ParsedSource(NamedTuple):
    """The tree of a template, and everything that is wrong with it; with a fault the tree is of no use."""

    body: Block
    faults: tuple[SourceFault, ...]


class _OpenBlock(Struct):
    """A block whose `end` has not come yet."""

    keyword: str
    offset: int
    pipeline: Pipeline
    scope: int  # how many variables to keep when it ends
    body_scope: int  # … when its `else` begins
    is_chained: bool = False  # an `else if`, which ends with the block around it
    body: list[TemplateNode] = []
    otherwise: list[TemplateNode] | None = None

    def close(self) -> TemplateNode:
        """Make the node."""
        kind = _BLOCKS[self.keyword]
        return kind(self.offset, self.pipeline, tuple(self.body), tuple(self.otherwise or ()))


def parse_source(source: str) -> ParsedSource:
    """Parse a template; every fault is collected."""
    if len(source) > MAX_SOURCE:
        return ParsedSource((), (make_fault(source, 0, f"the template has more than {MAX_SOURCE} characters"),))
    parser = _Parser()
    for piece in cut(source):
        parser.accept(piece)
        if parser.has_given_up:
            break
    else:
        parser.finish()
    faults = sorted(parser.faults, key=lambda fault: fault.offset)[:MAX_FAULTS]
    return ParsedSource(tuple(parser.root), tuple(make_fault(source, each.offset, each.message) for each in faults))


class _Parser:
    """Keeps the open blocks while the pieces come in."""

    def __init__(self) -> None:
        self.root: list[TemplateNode] = []
        self.faults: list[FaultSignal] = []
        self._open: list[_OpenBlock] = []
        self._scope: ScopedNames[None] = ScopedNames(None)

    @property
    def has_given_up(self) -> bool:
        """Tell whether more faults would not help, or the blocks are too deep to go on."""
        return len(self.faults) >= MAX_FAULTS or len(self._open) > MAX_BLOCKS

    def accept(self, piece: TextPiece | ActionPiece) -> None:
        """Take the next piece."""
        if isinstance(piece, TextPiece):
            self._add(LiteralText(piece.offset, piece.text))
            return
        if piece.fault:
            self.faults.append(piece.fault)
        reader = CommandReader(piece, self._scope)
        try:
            self._accept_action(piece, reader)
        except FaultSignal as fault:
            self._report(piece, fault)

    def finish(self) -> None:
        """Report the blocks that never end."""
        for block in self._open:
            if not block.is_chained:
                self.faults.append(FaultSignal(block.offset, f"{block.keyword} has no {{{{ end }}}}"))

    def _accept_action(self, piece: ActionPiece, reader: CommandReader) -> None:
        keyword = reader.take_keyword()
        if keyword in _BLOCKS:
            self._open_block(keyword, piece, reader)
        elif keyword == "else":
            self._begin_else(piece, reader)
        elif keyword == "end":
            self._end_block(piece, reader)
        elif keyword in ("break", "continue"):
            self._leave_range(keyword, piece, reader)
        elif keyword in _REFUSED:
            message = f"{keyword} is not supported: write the text where it is used"
            raise FaultSignal(reader.keyword_offset, message)
        else:
            self._add(PipelineAction(piece.offset, reader.read_pipeline("action")))

    def _report(self, piece: ActionPiece, fault: FaultSignal) -> None:
        if not piece.fault:  # the tokens before that fault may look wrong because of it
            self.faults.append(fault)

    def _add(self, node: TemplateNode) -> None:
        if not self._open:
            self.root.append(node)
        elif self._open[-1].otherwise is None:
            self._open[-1].body.append(node)
        else:
            self._open[-1].otherwise.append(node)

    def _open_block(self, keyword: str, piece: ActionPiece, reader: CommandReader, *, is_chained: bool = False) -> None:
        scope, pipeline = self._scope.mark(), _BAD_PIPELINE
        try:
            pipeline = reader.read_pipeline(keyword)
        except FaultSignal as fault:
            self._report(piece, fault)
        block = _OpenBlock(keyword, piece.offset, pipeline, scope, self._scope.mark(), is_chained, [])
        self._open.append(block)
        if len(self._open) > MAX_BLOCKS:
            self.faults.append(FaultSignal(piece.offset, f"more than {MAX_BLOCKS} blocks inside each other"))

    def _begin_else(self, piece: ActionPiece, reader: CommandReader) -> None:
        if not self._open:
            raise FaultSignal(piece.offset, "else without if, with or range")
        block = self._open[-1]
        if block.otherwise is not None:
            self._report(piece, FaultSignal(piece.offset, f"{block.keyword} has two else"))
        block.otherwise = block.otherwise or []
        self._scope.reset(block.body_scope)
        keyword = reader.take_keyword()
        if keyword and keyword == block.keyword and keyword != "range":
            self._open_block(keyword, piece, reader, is_chained=True)
        else:
            reader.expect_end("else")

    def _end_block(self, piece: ActionPiece, reader: CommandReader) -> None:
        if not self._open:
            raise FaultSignal(piece.offset, "end without if, with or range")
        is_chained = True
        while is_chained:
            block = self._open.pop()
            is_chained = block.is_chained
            self._scope.reset(block.scope)
            self._add(block.close())
        reader.expect_end("end")

    def _leave_range(self, keyword: str, piece: ActionPiece, reader: CommandReader) -> None:
        if not any(block.keyword == "range" and block.otherwise is None for block in self._open):
            raise FaultSignal(piece.offset, f"{keyword} outside of range")
        self._add(BreakAction(piece.offset) if keyword == "break" else ContinueAction(piece.offset))
        reader.expect_end(keyword)
