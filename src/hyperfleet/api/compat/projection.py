"""`fields` in the compat API: the requested parts of a resource, and always its id."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from starlette.requests import Request

from hyperfleet.api.compat.conditions import ResourceCondition
from hyperfleet.api.compat.problems import INVALID, CompatRefused
from hyperfleet.api.compat.shapes import OwnerReference, ResourceShape
from hyperfleet.services.field_masks import Path, apply_mask

_SCALARS: Final = tuple([each.name for each in msgspec.structs.fields(ResourceShape) if each.name != "status"])
_CONDITION: Final = tuple([each.name for each in msgspec.structs.fields(ResourceCondition)])
_OWNER: Final = tuple([each.name for each in msgspec.structs.fields(OwnerReference)])
_STATUS: Final = ("status", "conditions")

# Every allowed field and the path it keeps. Maps are kept whole: their keys cannot be selected.
_KNOWN: Final[dict[str, Path]] = {
    **{name: (name,) for name in (*_SCALARS, "references")},
    "status.*": _STATUS,
    "status.conditions": _STATUS,
    "status.conditions.*": _STATUS,
    **{f"status.conditions.{name}": (*_STATUS, name) for name in _CONDITION},
    "owner_references.*": ("owner_references",),
    **{f"owner_references.{name}": ("owner_references", name) for name in _OWNER},
}


def read_projection(request: Request) -> tuple[Path, ...]:
    """Read the requested fields; none: all."""
    texts = [name.strip() for value in request.query_params.getlist("fields") for name in value.split(",")]
    names = [name for name in texts if name]
    for name in names:
        if name not in _KNOWN:
            raise CompatRefused(INVALID, f"there is no field '{name[:80]}' to select")
    return tuple(dict.fromkeys(_KNOWN[name] for name in names))


def project(shape: ResourceShape, paths: tuple[Path, ...]) -> ResourceShape | dict[str, Any]:
    """Return the requested parts of a resource."""
    return apply_mask(msgspec.json.decode(msgspec.json.encode(shape)), paths) if paths else shape
