"""JSONPath as in kubectl: a template of text and `{…}`, in which paths pick values from a document.

    {.status.phase}                                     one value
    {.items[*].name}                                    several, with blanks between them
    {range .items[*]}{.name}{"\\t"}{.status.phase}{"\\n"}{end}
    {.status.conditions[?(@.type=="Ready")].status}     those for which something holds
    {.metadata.labels.app\\.kubernetes\\.io/name}       a key with dots

What is not there is nothing, not an error. `formats` (custom-columns) and `printer` (--sort-by) read single paths with
`compile_path`; these may be written without braces and without the first dot.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

Values = list[Any]
Step = Callable[[Values], Values]
Piece = Callable[[Any], str]

_NAME: Final = re.compile(r"(?:\\.|[^\\\s.\[\]{}()'\"=<>!|&*,])+")
_LITERAL: Final = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|-?[0-9]+(?:\.[0-9]+)?|true|false|null""")
_SLICE: Final = re.compile(r"(-?[0-9]*):(-?[0-9]*)(?::(-?[0-9]+))?")
_INTEGERS: Final = re.compile(r"-?[0-9]+(?:\s*,\s*-?[0-9]+)*")
_OPERATOR: Final = re.compile(r"\s*(==|!=|<=|>=|<|>)\s*")
_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class PathError(ValueError):
    """A path or a template is invalid; the message says where."""


def compile_path(text: str) -> Callable[[Any], Values]:
    """Compile a path, with or without braces and first dot, to a function that finds its values in a document."""
    inner = text.strip()
    if inner.startswith("{") and inner.endswith("}"):
        inner = inner[1:-1].strip()
    if inner and inner[0] not in ".[$@":
        inner = "." + inner
    reader = _Reader(inner)
    steps = reader.path()
    reader.expect_end()
    return lambda document: _follow(steps, [document])


def compile_template(text: str) -> Piece:
    """Compile a template to a function that fills in the values of a document."""
    tokens = _split(text if "{" in text else "{" + text + "}")
    pieces = _read_pieces(tokens, is_nested=False)
    return lambda document: "".join(piece(document) for piece in pieces)


def show(value: object) -> str:
    """Format a value: texts as they are, everything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


# ── templates ────────────────────────────────────────────────────────────────────────────────────────────────────


class _Block(Struct, frozen=True):
    """The content of one pair of braces."""

    text: str


def _split(text: str) -> list[_Block | str]:
    """Split a template into text and braces; braces in quotes do not count."""
    tokens: list[_Block | str] = []
    position = 0
    while position < len(text):
        start = text.find("{", position)
        if start < 0:
            tokens.append(text[position:])
            break
        if start > position:
            tokens.append(text[position:start])
        end = _find_end(text, start)
        tokens.append(_Block(text[start + 1 : end].strip()))
        position = end + 1
    tokens.reverse()  # so that the next one is at the end
    return tokens


def _find_end(text: str, start: int) -> int:
    quote = ""
    position = start + 1
    while position < len(text):
        character = text[position]
        if character == "\\":
            position += 1
        elif quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "}":
            return position
        position += 1
    raise PathError(f'the brace at {start + 1} of "{text}" is not closed')


def _read_pieces(tokens: list[_Block | str], *, is_nested: bool) -> list[Piece]:
    pieces: list[Piece] = []
    while tokens:
        token = tokens.pop()
        if isinstance(token, str):
            pieces.append(_constant(token))
        elif token.text == "end":
            if not is_nested:
                raise PathError("{end} without {range …}")
            return pieces
        elif re.match(r"range\b", token.text):
            pieces.append(_loop(compile_path(token.text[len("range") :]), _read_pieces(tokens, is_nested=True)))
        elif _LITERAL.fullmatch(token.text) and token.text[0] in "'\"":
            pieces.append(_constant(_unquote(token.text)))
        else:
            pieces.append(_picked(compile_path(token.text)))
    if is_nested:
        raise PathError("{range …} without {end}")
    return pieces


def _constant(text: str) -> Piece:
    return lambda _: text


def _picked(path: Callable[[Any], Values]) -> Piece:
    return lambda document: " ".join(map(show, path(document)))


def _loop(path: Callable[[Any], Values], pieces: Sequence[Piece]) -> Piece:
    return lambda document: "".join(piece(item) for item in path(document) for piece in pieces)


# ── paths ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _follow(steps: Iterable[Step], values: Values) -> Values:
    for step in steps:
        values = step(values)
    return values


class _Reader:
    """Parses the steps of one path, from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0

    def path(self) -> list[Step]:
        """Parse all steps."""
        self._take("$") or self._take("@")
        steps: list[Step] = []
        while True:
            if self._take(".."):
                steps.append(_everything_below)
                steps.append(self._step_below())
            elif self._take("."):
                if not self._is_at_end() and self._text[self._position] not in "[ )=!<>":
                    steps.append(self._step_below())
            elif self._take("["):
                steps.append(self._bracket())
            else:
                return steps

    def expect_end(self) -> None:
        """Raise if something is left."""
        if not self._is_at_end():
            raise self._wrong(f'"{self._text[self._position :]}" is not understood')

    def _step_below(self) -> Step:
        if self._take("*"):
            return _all_of
        if self._take("["):
            return self._bracket()
        return _key(_unescape(self._match(_NAME, "a name was expected")[0]))

    def _bracket(self) -> Step:
        if self._take("*"):
            return self._closed(_all_of)
        if self._take("?("):
            return self._filter()
        if found := _SLICE.match(self._text, self._position):
            self._position = found.end()
            start, stop, step = (int(part) if part else None for part in found.groups())
            return self._closed(_slice(slice(start, stop, step)))
        if found := _INTEGERS.match(self._text, self._position):
            self._position = found.end()
            return self._closed(_items([int(part) for part in found[0].split(",")]))
        return self._closed(self._keys())

    def _keys(self) -> Step:
        wanted = "a number, a name in quotes, * or ?(…) was expected"
        keys = [self._text_literal(wanted)]
        while self._take(","):
            self._skip_blanks()
            keys.append(self._text_literal(wanted))
        steps = [_key(key) for key in keys]
        return lambda values: [found for value in values for step in steps for found in step([value])]

    def _filter(self) -> Step:
        self._skip_blanks()
        left = self._operand()
        found = _OPERATOR.match(self._text, self._position)
        if found is None:
            self._skip_blanks()
            self._expect(")")
            return self._closed(_those(lambda item: bool(left(item))))
        self._position = found.end()
        right, compare = self._operand(), _COMPARE[found[1]]
        self._skip_blanks()
        self._expect(")")
        return self._closed(_those(lambda item: _holds(compare, left(item), right(item))))

    def _operand(self) -> Callable[[Any], Values]:
        if self._text.startswith("@", self._position):
            steps = self.path()
            return lambda item: _follow(steps, [item])
        literal = self._match(_LITERAL, "a value such as 'text', 3 or @.name was expected")[0]
        value = _unquote(literal) if literal[0] in "'\"" else msgspec.json.decode(literal)
        return lambda _: [value]

    def _text_literal(self, wanted: str) -> str:
        literal = self._match(_LITERAL, wanted)[0]
        if literal[0] not in "'\"":
            raise self._wrong(wanted)
        return _unquote(literal)

    def _closed(self, step: Step) -> Step:
        self._skip_blanks()
        self._expect("]")
        return step

    def _match(self, pattern: re.Pattern[str], wanted: str) -> re.Match[str]:
        found = pattern.match(self._text, self._position)
        if found is None:
            raise self._wrong(wanted)
        self._position = found.end()
        return found

    def _take(self, text: str) -> bool:
        if not self._text.startswith(text, self._position):
            return False
        self._position += len(text)
        return True

    def _expect(self, text: str) -> None:
        if not self._take(text):
            raise self._wrong(f'"{text}" was expected')

    def _skip_blanks(self) -> None:
        while self._take(" "):
            pass

    def _is_at_end(self) -> bool:
        return self._position >= len(self._text)

    def _wrong(self, message: str) -> PathError:
        return PathError(f'{message}, at {self._position + 1} of "{self._text}"')


def _key(name: str) -> Step:
    return lambda values: [value[name] for value in values if isinstance(value, dict) and name in value]


def _items(indexes: Sequence[int]) -> Step:
    return lambda values: [
        value[index]
        for value in values
        if isinstance(value, list)
        for index in indexes
        if -len(value) <= index < len(value)
    ]


def _slice(which: slice) -> Step:
    return lambda values: [item for value in values if isinstance(value, list) for item in value[which]]


def _those(holds: Callable[[Any], bool]) -> Step:
    return lambda values: [item for item in _all_of(values) if holds(item)]


def _all_of(values: Values) -> Values:
    found: Values = []
    for value in values:
        if isinstance(value, dict):
            found.extend(value.values())
        elif isinstance(value, list):
            found.extend(value)
    return found


def _everything_below(values: Values) -> Values:
    """Return the values and everything inside them, at any depth."""
    found: Values = []
    for value in values:
        found.append(value)
        found.extend(_everything_below(_all_of([value])))
    return found


def _holds(compare: Callable[[Any, Any], bool], left: Values, right: Values) -> bool:
    """Compare the first values; values that cannot be compared are different."""
    if not left or not right:
        return False
    try:
        return compare(left[0], right[0])
    except TypeError:
        return False


def _unescape(name: str) -> str:
    return re.sub(r"\\(.)", r"\1", name)


def _unquote(literal: str) -> str:
    escapes = {"n": "\n", "t": "\t", "r": "\r"}
    return re.sub(r"\\(.)", lambda found: escapes.get(found[1], found[1]), literal[1:-1], flags=re.DOTALL)
