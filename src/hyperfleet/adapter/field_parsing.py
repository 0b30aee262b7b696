"""Read the text of a `field` path into steps. `field_paths` follows them."""

from __future__ import annotations

import re
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from hyperfleet.adapter.faults import FaultSignal

MAX_PATH: Final = 2_000  # characters
MAX_FILTERS: Final = 8  # inside each other; reading and following recurse

_NAME: Final = re.compile(r"(?:\\.|[^\s.,\[\]{}()$@'\"\\=!<>&|?*])+")
_STRING: Final = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"", re.DOTALL)
_INTEGER: Final = re.compile(r"-?\d{1,9}")
_NUMBER: Final = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?(?:[eE][+-]?\d{1,3})?(?![\w.])")
_WORD: Final = re.compile(r"true|false|null|nil")
_SLICE: Final = re.compile(r"(-?\d{1,9})?\s*:\s*(-?\d{1,9})?\s*(?::\s*(-?\d{1,9})?)?")
_OPERATOR: Final = re.compile("==|!=|<=|>=|<|>")
_CONSTANTS: Final = {"true": True, "false": False, "null": None, "nil": None}


class ChildStep(Struct, frozen=True):
    """`.name` or `['name']`."""

    name: str

    def __str__(self) -> str:
        """Write the step."""
        return f".{self.name}"


class ItemStep(Struct, frozen=True):
    """`[2]`, or `[-1]` from the end."""

    index: int

    def __str__(self) -> str:
        """Write the step."""
        return f"[{self.index}]"


class SliceStep(Struct, frozen=True):
    """`[1:3]`."""

    start: int | None
    end: int | None
    stride: int | None

    def __str__(self) -> str:
        """Write the step."""
        return "[" + ":".join("" if each is None else str(each) for each in (self.start, self.end)) + "]"


class WildcardStep(Struct, frozen=True):
    """`[*]` or `.*`: every item."""

    def __str__(self) -> str:
        """Write the step."""
        return "[*]"


class DescendStep(Struct, frozen=True):
    """`..`: the value and everything in it."""

    def __str__(self) -> str:
        """Write the step."""
        return ".."


class UnionStep(Struct, frozen=True):
    """`['a','b']` or `[0,2]`."""

    steps: tuple[ChildStep | ItemStep, ...]

    def __str__(self) -> str:
        """Write the step."""
        return "[" + ",".join(map(str, self.steps)) + "]"


class FilterOperand(Struct, frozen=True):
    """A side of a filter: a path from the item (`@`) or the root (`$`), or a literal value."""

    origin: Literal["@", "$", "literal"]
    steps: tuple[FieldStep, ...] = ()
    value: Any = None


class FieldFilter(Struct, frozen=True):
    """A condition on an item; without a right side the left one must be there."""

    left: FilterOperand
    operator: str = ""
    right: FilterOperand | None = None


class FilterStep(Struct, frozen=True):
    """`[?(@.type=='Ready')]`: the items that pass."""

    condition: FieldFilter

    def __str__(self) -> str:
        """Write the step; the condition may be long."""
        return "[?(…)]"


FieldStep: TypeAlias = ChildStep | ItemStep | SliceStep | WildcardStep | DescendStep | UnionStep | FilterStep


def read_path(source: str) -> tuple[FieldStep, ...]:
    """Read a whole path; raises FaultSignal at what is wrong."""
    if len(source) > MAX_PATH:
        raise FaultSignal(0, f"the path has more than {MAX_PATH} characters")
    return _PathReader(source).read()


class _PathReader:
    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0
        self._depth = 0

    def read(self) -> tuple[FieldStep, ...]:
        self._skip_blanks()
        has_braces = self._take("{")
        if has_braces:
            self._skip_blanks()
        steps = self._read_start() + self._read_steps()
        self._skip_blanks()
        if has_braces and not self._take("}"):
            raise self._unexpected("the path is not closed: } is missing")
        self._skip_blanks()
        if self._at < len(self._source):
            raise self._unexpected("unexpected {} after the path")
        if not steps and not re.search("[.$@]", self._source):  # those alone are the whole value
            raise FaultSignal(0, "the path is empty")
        return steps

    def _read_start(self) -> tuple[FieldStep, ...]:
        """Read what a path may begin with: `$`, `@` or a name without a dot."""
        if self._take("$") or self._take("@"):
            return ()
        name = _NAME.match(self._source, self._at)
        return (self._child(name),) if name else ()

    def _read_steps(self) -> tuple[FieldStep, ...]:
        steps: list[FieldStep] = []
        while True:
            if self._take(".."):
                steps.append(DescendStep())
                if not self._source.startswith("[", self._at):
                    steps.append(self._read_child())
            elif self._take("."):
                if not self._is_at_end():
                    steps.append(self._read_child())
            elif self._take("["):
                steps.append(self._read_brackets())
            else:
                return tuple(steps)

    def _is_at_end(self) -> bool:
        """Tell whether a dot was the last: `{.}` is the whole value."""
        return self._source[self._at : self._at + 1] in ("", "}") and self._source[: self._at].strip() in ("{.", ".")

    def _read_child(self) -> FieldStep:
        if self._take("*"):
            return WildcardStep()
        if self._take("["):
            return self._read_brackets()
        name = _NAME.match(self._source, self._at)
        if name is None:
            raise self._unexpected("a name is missing before {}")
        return self._child(name)

    def _child(self, name: re.Match[str]) -> ChildStep:
        self._at = name.end()
        return ChildStep(re.sub(r"\\(.)", r"\1", name[0]))

    def _read_brackets(self) -> FieldStep:
        self._skip_blanks()
        step: FieldStep
        if self._take("?("):
            step = FilterStep(self._read_filter())
        elif self._take("*"):
            step = WildcardStep()
        else:
            step = self._read_slice() or self._read_union()
        self._skip_blanks()
        if not self._take("]"):
            raise self._unexpected("expected ] and not {}")
        return step

    def _read_slice(self) -> SliceStep | None:
        found = _SLICE.match(self._source, self._at)
        if found is None:
            return None
        start, end, stride = (int(each) if each else None for each in found.groups())
        if stride is not None and stride < 1:
            raise FaultSignal(self._at, "the step of a slice must be 1 or more")
        self._at = found.end()
        return SliceStep(start, end, stride)

    def _read_union(self) -> FieldStep:
        steps = [self._read_key()]
        while self._take(","):
            steps.append(self._read_key())
        return steps[0] if len(steps) == 1 else UnionStep(tuple(steps))

    def _read_key(self) -> ChildStep | ItemStep:
        self._skip_blanks()
        text = self._take_string()
        if text is not None:
            key: ChildStep | ItemStep = ChildStep(text)
        elif found := _INTEGER.match(self._source, self._at):
            self._at = found.end()
            key = ItemStep(int(found[0]))
        else:
            raise self._unexpected("expected a position, a name in quotes, * or ?( and not {}")
        self._skip_blanks()
        return key

    def _read_filter(self) -> FieldFilter:
        self._depth += 1
        if self._depth > MAX_FILTERS:
            raise FaultSignal(self._at, f"more than {MAX_FILTERS} filters inside each other")
        left = self._read_operand()
        operator = _OPERATOR.match(self._source, self._at)
        condition = FieldFilter(left)
        if operator:
            self._at = operator.end()
            condition = FieldFilter(left, operator[0], self._read_operand())
        if not self._take(")"):
            raise self._unexpected("expected ==, !=, <, <=, >, >= or ) and not {}; a filter has one comparison")
        self._depth -= 1
        return condition

    def _read_operand(self) -> FilterOperand:
        self._skip_blanks()
        operand = self._read_literal() or self._read_inner_path()
        self._skip_blanks()
        return operand

    def _read_literal(self) -> FilterOperand | None:
        text = self._take_string()
        if text is not None:
            return FilterOperand("literal", (), text)
        for pattern in (_NUMBER, _WORD):
            found = pattern.match(self._source, self._at)
            if found:
                self._at = found.end()
                return FilterOperand("literal", (), _read_constant(found[0]))
        return None

    def _read_inner_path(self) -> FilterOperand:
        if self._take("@"):
            return FilterOperand("@", self._read_steps())
        if self._take("$"):
            return FilterOperand("$", self._read_steps())
        raise self._unexpected("expected @.field or a value and not {}; text is in quotes")

    def _take_string(self) -> str | None:
        found = _STRING.match(self._source, self._at)
        if found is None:
            if self._source.startswith(("'", '"'), self._at):
                raise FaultSignal(self._at, "the string is not closed")
            return None
        self._at = found.end()
        return re.sub(r"\\(.)", r"\1", found[1] if found[1] is not None else found[2], flags=re.DOTALL)

    def _take(self, text: str) -> bool:
        if self._source.startswith(text, self._at):
            self._at += len(text)
            return True
        return False

    def _skip_blanks(self) -> None:
        while self._at < len(self._source) and self._source[self._at].isspace():
            self._at += 1

    def _unexpected(self, message: str) -> FaultSignal:
        found = self._source[self._at : self._at + 1]
        return FaultSignal(self._at, message.replace("{}", found or "the end of the path"))


def _read_constant(text: str) -> object:
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    return float(text) if re.search("[.eE]", text) else int(text)
