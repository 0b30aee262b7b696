"""How one kind of item is shown: its columns, its document, its name. `columns` has the sheets of resources."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct

from hyperfleet.cli.output.table import Column

T = TypeVar("T")


class Sheet(Struct, Generic[T], frozen=True):
    """How items of a kind are shown."""

    kind: str  # `Cluster`: lists have the type `ClusterList`
    columns: Sequence[Column]
    cells: Callable[[T], Sequence[str]]  # one per column
    document: Callable[[T], Any]  # as the server sent it
    name: Callable[[T], str]  # `cluster/payments`, as other commands accept it
