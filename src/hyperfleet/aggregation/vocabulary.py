"""The names that the expressions of a policy may use, with their types.

Rules are type-checked against `SCHEMA` when a policy is loaded; `environment` has their values.
"""

from __future__ import annotations

from typing import Final

from hyperfleet.expr.types import ANY, BOOL, INT, STRING, TIME, Array, Func, Map, Schema, Struct

CONDITION: Final = Struct(
    "Condition",
    {"type": STRING, "status": STRING, "reason": STRING, "message": STRING, "lastTransitionTime": TIME},
)
ADAPTER: Final = Struct(
    "AdapterStatus",
    {
        "adapter": STRING,
        "available": STRING,
        "applied": STRING,
        "health": STRING,
        "observedGeneration": INT,
        "lastUpdated": TIME,
        "reason": STRING,
        "message": STRING,
        "conditions": Map(STRING, CONDITION),
        "data": Map(STRING, ANY),
        "reported": BOOL,
        "current": BOOL,
        "stale": BOOL,
        "state": STRING,
    },
)
ADAPTER_LISTS: Final = ("requiredAdapters", "optionalAdapters", "allAdapters")
ADAPTERS_BY_NAME: Final = "adapters"
OLDER_THAN: Final = "olderThan"

SCHEMA: Final[Schema] = {
    **{name: Array(ADAPTER) for name in ADAPTER_LISTS},
    ADAPTERS_BY_NAME: Map(STRING, ADAPTER, total=True),
    "currentGeneration": INT,
    OLDER_THAN: Func((ADAPTER, STRING), BOOL),
}
