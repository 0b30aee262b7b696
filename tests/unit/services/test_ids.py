"""Ids: unlike, and in the order they were made."""

from __future__ import annotations

import re
import time

from hyperfleet.services.ids import new_id


def test_ids_are_unlike_and_sort_by_time() -> None:
    first = new_id("cls")
    time.sleep(0.002)
    later = [new_id("cls") for _ in range(1000)]
    assert re.fullmatch(r"cls-[0-9a-hjkmnp-tv-z]{20}", first)
    assert len(set(later)) == 1000
    assert all(first < each for each in later)
