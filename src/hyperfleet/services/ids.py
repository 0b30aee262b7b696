"""Ids that sort by creation time, so that new rows are next to each other in every index."""

from __future__ import annotations

import random
import time
import uuid
from functools import lru_cache
from typing import Final

_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's: without i, l, o, u, which are easily misread
_PAIRS: Final = tuple(first + second for first in _ALPHABET for second in _ALPHABET)


def new_id(prefix: str) -> str:
    """Make an id such as `cls-01jd3k2m9pqr5tv8wxyz`: ten characters of milliseconds, ten random ones."""
    randomness = random.getrandbits(50)  # an id is no secret
    return f"{prefix}-{_encode_time(time.time_ns() // 1_000_000)}{_encode(randomness)}"


def _encode(number: int) -> str:
    """Encode 50 bits as ten characters, two at a time."""
    return (
        f"{_PAIRS[number >> 40]}{_PAIRS[number >> 30 & 1023]}{_PAIRS[number >> 20 & 1023]}"
        f"{_PAIRS[number >> 10 & 1023]}{_PAIRS[number & 1023]}"
    )


_encode_time: Final = lru_cache(maxsize=1)(_encode)  # under load, many ids are made in the same millisecond


def new_uuid7() -> str:
    """Make a UUID of version 7: 48 bits of milliseconds, then random ones."""
    number = time.time_ns() // 1_000_000 << 80 | 7 << 76 | random.getrandbits(12) << 64 | 2 << 62
    return str(uuid.UUID(int=number | random.getrandbits(62)))
