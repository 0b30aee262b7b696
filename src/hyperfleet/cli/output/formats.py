"""The formats of `-o`, and the output settings of a command. `options` makes command line options of these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, get_args

from msgspec import Struct

from hyperfleet.cli.output.jsonpath import compile_path, compile_template

FormatName = Literal["table", "wide", "json", "yaml", "name", "jsonpath", "custom-columns"]
FORMATS: Final[tuple[FormatName, ...]] = get_args(FormatName)
_WITH_ARGUMENT: Final = ("jsonpath", "custom-columns")
_EXAMPLES: Final = {
    "jsonpath": "-o jsonpath='{.items[*].name}'",
    "custom-columns": "-o custom-columns=NAME:.name,PHASE:.status.phase",
}

PickedColumns = Sequence[tuple[str, Callable[[Any], list[Any]]]]


class OutputFormat(Struct, frozen=True):
    """A format, with its argument if it takes one."""

    name: FormatName = "table"
    template: Callable[[Any], str] | None = None  # of jsonpath
    columns: PickedColumns = ()  # of custom-columns

    @property
    def is_table(self) -> bool:
        """Return whether it is for people."""
        return self.name in ("table", "wide")


class Output(Struct, frozen=True):
    """How a command writes its results."""

    format: OutputFormat = OutputFormat()
    has_headers: bool = True
    sort_by: str | None = None


def parse_format(text: str, names: Sequence[str] = FORMATS) -> OutputFormat:
    """Parse a format such as `json` or `jsonpath={.name}`; raise ValueError with a message if it is invalid."""
    word, has_argument, argument = text.partition("=")
    name = next((each for each in FORMATS if each == word and each in names), None)
    if name is None:
        from hyperfleet.documents.wording import suggest

        guess = suggest(word, tuple(names)) or f"; there are {', '.join(names)}"
        raise ValueError(f'there is no format "{word}"{guess}')
    if name not in _WITH_ARGUMENT:
        if has_argument:
            raise ValueError(f"{name} takes no argument")
        return OutputFormat(name)
    if not argument:
        raise ValueError(f"{name} needs an argument, such as {_EXAMPLES[name]}")
    if name == "jsonpath":
        return OutputFormat(name, template=compile_template(argument))
    return OutputFormat(name, columns=_parse_columns(argument))


class LabelColumns(Struct, frozen=True):
    """Which labels tables show."""

    shows_all: bool = False
    keys: tuple[str, ...] = ()


def _parse_columns(text: str) -> PickedColumns:
    columns = []
    for part in _split_columns(text):
        heading, colon, path = part.partition(":")
        if not colon or not heading or not path:
            raise ValueError(f'"{part}" is not a column; expected HEADING:PATH, such as NAME:.name')
        columns.append((heading.strip(), compile_path(path)))
    return tuple(columns)


def _split_columns(text: str) -> list[str]:
    """Split at commas, but not inside brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += {"[": 1, "]": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts
