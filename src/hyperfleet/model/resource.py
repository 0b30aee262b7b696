"""A resource: what a person asked for. (What an adapter applies to make it real is an *object*.)"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct, field


class Resource(Struct, frozen=True, gc=False):
    """A cluster, a node pool or another kind of thing with a spec that adapters make real."""

    id: str
    kind: str
    name: str
    generation: int  # rises with every change of spec or labels, and with deletion
    generation_time: datetime  # when this generation was set
    created_time: datetime
    spec: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    tenant: str = ""
    parent_id: str | None = None
    deletion_time: datetime | None = None
    updated_time: datetime | None = None  # of the last edit; None: never edited
    created_by: str = ""

    @property
    def is_deleting(self) -> bool:
        """Tell whether deletion of this resource was requested."""
        return self.deletion_time is not None
