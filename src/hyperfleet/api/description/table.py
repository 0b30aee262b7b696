"""Every operation of the API, in the order of the document."""

from __future__ import annotations

from hyperfleet.api.context import Context
from hyperfleet.api.description import (
    fleet_operations,
    history_operations,
    message_operations,
    resource_operations,
    sentinel_operations,
    status_operations,
    watch_operations,
    webhook_operations,
)
from hyperfleet.api.description.kind_paths import KindPaths
from hyperfleet.api.description.operations import Operation


def list_operations(context: Context) -> list[Operation]:
    """Return the operations of every kind, then those of the fleet and of the server."""
    operations: list[Operation] = []
    for kind in context.kinds:
        paths = KindPaths(kind, context.kinds)
        operations += fleet_operations.lists_of(paths)
        operations += resource_operations.operations_on(paths)
        operations += watch_operations.operations_on(paths)
        operations += status_operations.operations_on(paths)
        operations += history_operations.operations_on(paths)
        operations += message_operations.reconcile_operations(paths)
        operations += sentinel_operations.due_operations(paths)
    return [
        *operations,
        status_operations.batch_operation(context.limits.batch),
        history_operations.transitions_operation(),
        *fleet_operations.fleet_operations(),
        *message_operations.message_operations(),
        *sentinel_operations.sentinel_operations(),
        *webhook_operations.webhook_operations(),
        *fleet_operations.server_operations(),
    ]
