"""What a sentinel decided about one resource, and how it is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from hyperfleet.cli.output.sheet import Sheet
from hyperfleet.cli.output.table import Column
from hyperfleet.model.kind import Kind

_COLUMNS: Final = (
    Column("RESOURCE"),
    Column("EVENT"),
    Column("WHY", is_elastic=True),
    Column("ID", is_wide=True),
)


class Finding(Struct, frozen=True):
    """What a sentinel decided about one resource."""

    kind: Kind
    id: str
    name: str
    rule: str | None
    why: str
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Return the resource as other commands accept it."""
        return f"{self.kind.name.lower()}/{self.name or self.id}"


def _document(finding: Finding) -> dict[str, Any]:
    document = {"kind": finding.kind.name, "id": finding.id, "name": finding.name}
    return {**document, "rule": finding.rule, "why": finding.why}


def _cells(finding: Finding) -> Sequence[str]:
    return finding.label, finding.rule or "none", finding.why, finding.id


SHEET: Final[Sheet[Finding]] = Sheet("Decision", _COLUMNS, _cells, _document, lambda finding: finding.label)
