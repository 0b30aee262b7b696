"""The reports of one resource, by adapter, of which only those that somebody looks at are decoded.

Stores make them of what they have read. A heartbeat looks at one report of a dozen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, Self

from hyperfleet.model.report import StoredReport

Body = str | bytes  # of a report, as it is stored
Bodies = dict[str, StoredReport | Body]  # by adapter; those that were looked at are reports
Read = Callable[[str, Body], StoredReport]


class Reports(Mapping[str, StoredReport]):
    """Reports, or what they are to be read from."""

    __slots__ = ("_known", "_read")

    def __init__(self, known: Bodies, read: Read) -> None:
        """Hold reports as they are stored; `read` is given the adapter's name and the body."""
        self._known: Final = known
        self._read: Final = read

    def __getitem__(self, adapter: str) -> StoredReport:
        """Return the report of an adapter."""
        found = self._known[adapter]
        if not isinstance(found, StoredReport):
            found = self._known[adapter] = self._read(adapter, found)
        return found

    def __iter__(self) -> Iterator[str]:
        """Go through the adapters."""
        return iter(self._known)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._known)

    def __contains__(self, adapter: object) -> bool:
        """Tell whether an adapter has reported."""
        return adapter in self._known

    def __or__(self, others: Mapping[str, StoredReport]) -> Self:
        """Return these reports with others in their places or beside them."""
        return type(self)({**self._known, **others}, self._read)


def join(reports: Mapping[str, StoredReport], others: Mapping[str, StoredReport]) -> Mapping[str, StoredReport]:
    """Return reports with others in their places or beside them; nothing is decoded for that."""
    return reports | others if isinstance(reports, Reports) else {**reports, **others}


def leave_out(reports: Mapping[str, StoredReport], adapter: str) -> Mapping[str, StoredReport]:
    """Return reports without that of an adapter."""
    return {name: report for name, report in reports.items() if name != adapter}
