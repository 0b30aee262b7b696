"""Query parameters as bounded texts, lists, numbers and times; collects every error with its position.

`search`, `field_masks`, `history_query` and others parse their parameters with this. It knows the names of two
parameters only: those that may be empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from hyperfleet.aggregation import BodyProblem
from hyperfleet.documents.durations import parse_duration
from hyperfleet.documents.wording import count, quote, suggest

MAX_CHARACTERS: Final = 4096  # of one parameter with its repetitions: half of what most proxies allow for a URL
# Empty means everything, as in Kubernetes, and the first page. Any other empty parameter is an error: a script with an
# empty variable must not get everything.
MAY_BE_EMPTY: Final = frozenset({"labelSelector", "continue"})
MAX_ERRORS: Final = 50  # of one request; more would not be read
_MAX_NAME: Final = 64  # characters of a name that are compared for a suggestion
_MAX_NUMBER: Final = 1_000_000_000  # a page number times a page size must fit into 64 bits

_UNSENDABLE: Final = re.compile("[\x00\ud800-\udfff]")
_NUMBER: Final = re.compile(r"[0-9]{1,10}")
_INSTANT_RULE: Final = (
    "an RFC 3339 time with a zone such as 2025-10-17T12:00:05Z (a + is written %2B) or a duration such as 15m"
)


class Parameters:
    """The given values, and the errors found so far."""

    def __init__(self, given: Mapping[str, Sequence[str]]) -> None:
        """Take the given values; one that is not valid text is an error."""
        self.errors: list[BodyProblem] = []
        self._values: dict[str, list[str]] = {}
        for name, values in given.items():
            if self._check(name, values):
                self._values[name] = list(values)

    def refuse_unknown(self, known: Sequence[str]) -> None:
        """Refuse parameters that are not in `known`, with a suggestion, and those without a value."""
        others = f"; there are {', '.join(known)}" if known else "; there are none here"
        for name in self._values:
            if name not in known:
                guess = suggest(name[:_MAX_NAME], tuple(known)) or others
                self.refuse(name, "UnknownParameter", f"there is no parameter {quote(name)}{guess}")
        self.refuse_empty([name for name in known if name not in MAY_BE_EMPTY])

    def refuse_empty(self, names: Sequence[str]) -> None:
        """Refuse parameters without a value."""
        for name, values in self._values.items():
            if name in names and not all(map(str.strip, values)):
                self.refuse(name, "Empty", f"{name} has no value; give it one or leave it out")

    def all(self, name: str) -> list[str]:
        """Return every value of a repeatable parameter."""
        return [value for value in self._values.get(name, []) if value.strip()]

    def one(self, name: str) -> str | None:
        """Return the value of a parameter that must not be repeated."""
        values = self.all(name)
        if len(values) > 1:
            self.refuse(name, "Repeated", f"{name} is given {len(values)} times; it can have one value only")
        return values[0].strip() if values else None

    def number(self, name: str, most: int = _MAX_NUMBER) -> int | None:
        """Return a whole number from 1 to `most`."""
        text = self.one(name)
        if text is None:
            return None
        if not _NUMBER.fullmatch(text):
            self.refuse(name, "BadFormat", f"{name} must be a whole number from 1 to {most}, not {quote(text)}")
        elif not 1 <= int(text) <= most:
            self.refuse(name, "OutOfRange", f"{name} must be from 1 to {most}, not {text}")
        else:
            return int(text)
        return None

    def instant(self, name: str, now: datetime) -> datetime | None:
        """Return a time; a duration counts back from now."""
        text = self.one(name)
        if text is None:
            return None
        try:
            return _read_time(text) if _is_time(text) else now - parse_duration(text)
        except (ValueError, OverflowError, msgspec.ValidationError) as error:  # overflow: before the first year
            cause = f"{quote(text)} is no time" if _is_time(text) else str(error)
            self.refuse(name, "BadFormat", f"{cause}; {name} is {_INSTANT_RULE}")
            return None

    def is_relative(self, name: str) -> bool:
        """Tell whether a time was given as a duration, so that it moves with the clock."""
        return any(not _is_time(text.strip()) for text in self.all(name))

    def refuse(self, name: str, code: str, message: str, at: int = 0) -> None:
        """Add an error of a parameter; `at` is the character of its position, from 1."""
        if len(self.errors) < MAX_ERRORS:
            self.errors.append(BodyProblem(name, code, f"at character {at}: {message}" if at else message))

    def _check(self, name: str, texts: Sequence[str]) -> bool:
        length = sum(map(len, texts))
        if not all(map(is_storable, (name, *texts))):
            message = "NUL and half a surrogate pair are not text"
            self.refuse(_UNSENDABLE.sub("\N{REPLACEMENT CHARACTER}", name), "BadFormat", message)
        elif length > MAX_CHARACTERS:
            message = f"{quote(name)} has {count(length, 'character')}; at most {MAX_CHARACTERS} are allowed"
            self.refuse(name, "TooLong", message)
        else:
            return True
        return False


def _is_time(text: str) -> bool:
    """Tell whether a text is a time, not a duration: it begins with a year and a dash."""
    return text[4:5] == "-"


def _read_time(text: str) -> datetime:
    time = msgspec.convert(text, datetime)
    if time.tzinfo is None:
        raise ValueError("no zone")
    return time.astimezone(UTC)


def is_storable(text: str) -> bool:
    """Tell whether a database can store a text, and an answer can contain it."""
    return _UNSENDABLE.search(text) is None


def split_list(text: str, start: int = 1) -> Iterator[tuple[int, str]]:
    """Split a text at its commas; yield each piece with its first character, counting from `start`."""
    for piece in text.split(","):
        yield start + len(piece) - len(piece.lstrip()), piece.strip()
        start += len(piece) + 1
