"""How one kind of thing is shown: its columns, its document, its name. `columns` has the sheets of our kinds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct

from hyperfleet.cli.output.table import Column

T = TypeVar("T")


class Sheet(Struct, Generic[T], frozen=True):
    """How things of a kind are shown."""

    kind: str  # `Cluster`: lists say `ClusterList`
    columns: Sequence[Column]
    cells: Callable[[T], Sequence[str]]  # one for each column
    document: Callable[[T], Any]  # as the server told it
    name: Callable[[T], str]  # `cluster/payments`: what other commands take
