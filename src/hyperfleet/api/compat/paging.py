"""`page` and `size` of lists in the compat API; errors of both are reported together."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct
from starlette.requests import Request

from hyperfleet.api.compat.problems import INVALID, CompatRefused, FieldError

# The limits of the original, except MAX_PAGE: it keeps offsets within what databases skip in seconds.
DEFAULT_SIZE: Final = 20
MAX_SIZE: Final = 100
MAX_PAGE: Final = 100_000

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,10}")


class PageRequest(Struct, frozen=True):
    """The requested page of a list."""

    number: int
    size: int

    @property
    def offset(self) -> int:
        """Return the number of items before it."""
        return (self.number - 1) * self.size


def read_page(request: Request) -> PageRequest:
    """Read the requested page."""
    asked = [("page", 1, MAX_PAGE), ("size", DEFAULT_SIZE, MAX_SIZE)]
    read = [_read(request, *each) for each in asked]
    errors = sorted(
        [each for each in read if isinstance(each, FieldError)], key=lambda error: error.constraint != "format"
    )
    if errors:
        raise CompatRefused(INVALID, "Invalid query parameters", tuple(errors))
    number, size = [each for each in read if isinstance(each, int)]
    return PageRequest(number, size)


def _read(request: Request, name: str, default: int, most: int) -> int | FieldError:
    text = request.query_params.get(name, "").strip()
    if not text:
        return default
    if not _INTEGER.fullmatch(text):
        return FieldError(name, "must be a valid integer", "format", text[:80])
    value = int(text)
    if value < 1:
        return FieldError(name, f"{name} must be at least 1", "min", value)
    if value > most:
        return FieldError(name, f"{name} must be at most {most}", "max", value)
    return value
