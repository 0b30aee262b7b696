"""Ids that sort by the time they were made, so that new rows stand together in every index."""

from __future__ import annotations

import random
import time
from typing import Final

_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's: no i, l, o, u to be misread
_PAIRS: Final = tuple(first + second for first in _ALPHABET for second in _ALPHABET)


def new_id(prefix: str) -> str:
    """Make an id such as `cls-01jd3k2m9pqr5tv8wxyz`: ten characters of milliseconds, ten of chance."""
    number = (time.time_ns() // 1_000_000) << 50 | random.getrandbits(50)  # an id is no secret
    pairs = [_PAIRS[number >> shift & 1023] for shift in range(90, -1, -10)]
    return f"{prefix}-{''.join(pairs)}"
