"""YAML text to documents: parse, compose nodes, and collect what is wrong with the text itself.

The loader calls `read`. It never raises for the content of the text and never takes long: size, depth and the
number of values after expanding aliases are bounded. The binder checks the values.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.reader import ReaderError

from hyperfleet.document_problem import DocumentPlace, DocumentProblem, draw_caret
from hyperfleet.documents.composer import Composer, CompositionStopped
from hyperfleet.documents.nodes import YamlDocument

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruamel.yaml.events import Event

# About two seconds of parsing. A large policy has 20,000 characters.
MAX_CHARACTERS: Final = 256 * 1024

# Every line break of YAML; places would be wrong if we counted fewer.
LINE_BREAK: Final = re.compile("\r\n|[\n\r\x85\u2028\u2029]")

# In some messages the library writes a token as a Python tuple.
_TOKEN_TUPLE: Final = re.compile(r"\(('.*?'),\)")

# Messages of the parser, and what usually causes them.
_HINTS: Final = (
    ("'\\t'", "indent with spaces, not with tabs"),
    ("mapping values are not allowed", 'a value that contains ": " must be in quotes'),
    ("'%' that cannot start", "a value that begins with % must be in quotes"),
    ("'@' that cannot start", "a value that begins with @ must be in quotes"),
    ("'`' that cannot start", "a value that begins with ` must be in quotes"),
    ("unexpected end of stream", "a quote is not closed"),
)


class YamlReading(Struct, frozen=True):
    """The documents that could be read to their end, and what is wrong with the text."""

    documents: tuple[YamlDocument, ...]
    problems: tuple[DocumentProblem, ...]


def read(text: str, file: str, most: int = MAX_CHARACTERS) -> YamlReading:
    """Read every document in `text`; `file` is only the name that problems carry."""
    source = text.removeprefix("\ufeff")
    if len(source) > most:
        return YamlReading((), (_too_long(file, len(source), most),))
    composer = Composer(file)
    stop = _feed(composer, source, file)
    documents = tuple(YamlDocument(file, source, root) for root in composer.roots)
    return YamlReading(documents, tuple(sorted([*composer.problems, *stop])))


def locate(source: str, offset: int) -> tuple[int, int]:
    """Return line and column (both from 1) of an offset into the source."""
    line, start = 1, 0
    for match in LINE_BREAK.finditer(source, 0, offset):
        line, start = line + 1, match.end()
    return line, offset - start + 1


def _feed(composer: Composer, source: str, file: str) -> list[DocumentProblem]:
    """Pass all events to the composer; return the problem that stopped it, if any."""
    try:
        for event in _parse(source):
            composer.accept(event)
    except CompositionStopped as refusal:
        return [refusal.problem]
    except MarkedYAMLError as error:
        return [_from_parser(error, source, file)]
    except ReaderError as error:
        return [_unprintable(source, error.position, file)]
    except (YAMLError, ValueError, AssertionError) as error:
        # Python errors that the library does not catch, for example for "\U00110000" and for "%YAML 1.21".
        place = DocumentPlace(file, *composer.position)
        return [DocumentProblem(place, f"this is not valid YAML after here: {error}", code="Syntax")]
    return []


def _parse(source: str) -> Iterator[Event]:
    """Yield parser events lazily, so that stopping early keeps hostile text cheap."""
    events: Iterator[Event] = YAML(typ="safe", pure=True).parse(source)
    return events


def _from_parser(error: MarkedYAMLError, source: str, file: str) -> DocumentProblem:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    text = ", ".join(str(part) for part in (error.context, error.problem) if part)
    text = _TOKEN_TUPLE.sub(r"\1", text)
    hint = next((f" ({hint})" for sign, hint in _HINTS if sign in text), "")
    return _syntax(f"this is not valid YAML: {text}{hint}", DocumentPlace(file, line, column), source)


def _unprintable(source: str, offset: int, file: str) -> DocumentProblem:
    message = f"the character U+{ord(source[offset]):04X} is not allowed in YAML"
    return _syntax(message, DocumentPlace(file, *locate(source, offset)), source)


def _syntax(message: str, place: DocumentPlace, source: str) -> DocumentProblem:
    lines = LINE_BREAK.split(source)
    line = lines[place.line - 1] if place.line <= len(lines) else ""
    return DocumentProblem(place, message, code="Syntax", snippet=draw_caret(line, place.column))


def _too_long(file: str, length: int, most: int) -> DocumentProblem:
    message = f"the file has {length:,} characters, more than the {most:,} allowed"
    return DocumentProblem(DocumentPlace(file, 1, 1), message, code="TooLarge")
