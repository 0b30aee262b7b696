"""The values behind the names of a policy's expressions, for one resource at one instant.

`values_for` returns exactly what `vocabulary.SCHEMA` declares.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from hyperfleet.aggregation.adapters import Adapters, AdapterView, entry_of
from hyperfleet.aggregation.vocabulary import ADAPTERS_BY_NAME, OLDER_THAN
from hyperfleet.documents.durations import parse_duration


class AdaptersByName(dict[str, dict[str, Any]]):
    """The map `adapters`: an unknown name reads as an adapter that has not reported."""

    def __missing__(self, name: str) -> dict[str, Any]:
        """Return the entry of an adapter that has not reported."""
        return entry_of(AdapterView(name))


class RuleClock:
    """Time in rules: helpers that record the instants at which their results change."""

    __slots__ = ("_now", "_views", "elapsed", "instants")

    def __init__(self, views: Mapping[str, AdapterView], now: datetime) -> None:
        """Evaluate for `views` at `now`."""
        self._views = views
        self._now = now
        self.instants: list[datetime] = []
        self.elapsed: set[str] = set()  # adapters that `older_than` was true of

    def older_than(self, entry: Mapping[str, Any], duration: str) -> bool:
        """Tell whether an adapter has not been heard from for a while; an unreported one is never too old."""
        view = self._views.get(entry["adapter"])
        if view is None or not view.is_reported:
            return False
        instant = view.last_heard + constant_duration(duration)
        self.instants.append(instant)
        if instant > self._now:
            return False
        self.elapsed.add(view.adapter)
        return True


@lru_cache(maxsize=1024)
def constant_duration(text: str) -> timedelta:
    """Parse a duration of a rule; the loader has checked it."""
    return parse_duration(text)


def values_for(
    adapters: Adapters, generation: int, clock: RuleClock, *, with_conditions: bool = True
) -> dict[str, object]:
    """Return the values of `SCHEMA` for one resource at one instant.

    The conditions of adapters are the most expensive part; leave them out if no rule reads them.
    """
    required = [entry_of(view, with_conditions) for view in adapters.required]
    optional = [entry_of(view, with_conditions) for view in adapters.optional]
    unlisted = [entry_of(view, with_conditions) for view in adapters.unlisted]
    fresh = [entry for entry in unlisted if not entry["stale"]]
    return {
        "requiredAdapters": required,
        "optionalAdapters": optional,
        "allAdapters": [*required, *optional, *fresh],
        ADAPTERS_BY_NAME: AdaptersByName([(entry["adapter"], entry) for entry in (*required, *optional, *unlisted)]),
        "currentGeneration": generation,
        OLDER_THAN: clock.older_than,
    }
