"""Ids that sort by the time they were made, so that new rows stand together in every index."""

from __future__ import annotations

import random
import time
from functools import lru_cache
from typing import Final

_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's: no i, l, o, u to be misread
_PAIRS: Final = tuple(first + second for first in _ALPHABET for second in _ALPHABET)


def new_id(prefix: str) -> str:
    """Make an id such as `cls-01jd3k2m9pqr5tv8wxyz`: ten characters of milliseconds, ten of chance."""
    chance = random.getrandbits(50)  # an id is no secret
    return f"{prefix}-{_spell_time(time.time_ns() // 1_000_000)}{_spell(chance)}"


def _spell(number: int) -> str:
    """Write 50 bits as ten characters, two at a time."""
    return (
        f"{_PAIRS[number >> 40]}{_PAIRS[number >> 30 & 1023]}{_PAIRS[number >> 20 & 1023]}"
        f"{_PAIRS[number >> 10 & 1023]}{_PAIRS[number & 1023]}"
    )


_spell_time: Final = lru_cache(maxsize=1)(_spell)  # under load, many ids are made in the same millisecond
