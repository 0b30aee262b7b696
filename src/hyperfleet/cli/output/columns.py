"""The columns of clusters, node pools and adapters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from hyperfleet.cli.output.ages import format_age
from hyperfleet.cli.output.formats import LabelColumns
from hyperfleet.cli.output.sheet import Sheet
from hyperfleet.cli.output.table import NONE, Column
from hyperfleet.cli.output.words import count_of

if TYPE_CHECKING:
    from hyperfleet.client import Adapter, Resource

NO_LABELS: Final = LabelColumns()

_SHARED: Final = (
    Column("NAME"),
    Column("PHASE", is_coloured=True),
    Column("READY", is_coloured=True),
    Column("AVAILABLE", is_coloured=True),
    Column("ADAPTERS"),
    Column("REASON"),
    Column("SINCE"),
    Column("AGE"),
    Column("GENERATION", is_wide=True),
    Column("ID", is_wide=True),
    Column("MESSAGE", is_wide=True, is_elastic=True),
)
_ADAPTERS: Final = (
    Column("NAME"),
    Column("LAST SEEN"),
    Column("SKEW"),
    Column("REPORTS"),
    Column("DISCARDED"),
    Column("REJECTED"),
    Column("BLOCKS"),
    Column("LAST LOSS", is_wide=True, is_elastic=True),
)


def cluster_sheet(now: datetime, labels: LabelColumns = NO_LABELS, *, has_kind: bool = False) -> Sheet[Resource]:
    """Return the sheet of clusters; ages are relative to `now`. `has_kind`: names are `cluster/…`."""

    def name(cluster: Resource) -> str:
        return f"cluster/{cluster.name or cluster.id}"

    def cells(cluster: Resource) -> Sequence[str]:
        shown = name(cluster) if has_kind else cluster.name or cluster.id
        return (shown, *_status_cells(cluster, now), *_label_cells(cluster, labels))

    return Sheet("Cluster", (*_SHARED, *_label_columns(labels)), cells, lambda each: each.raw, name)


def node_pool_sheet(
    now: datetime, clusters: Mapping[str, str], labels: LabelColumns = NO_LABELS, *, has_kind: bool = False
) -> Sheet[Resource]:
    """Return the sheet of node pools; `clusters` are the names of clusters by id."""

    def cluster_of(pool: Resource) -> str:
        id_ = pool.metadata.cluster_id or ""
        return clusters.get(id_, id_)

    def name(pool: Resource) -> str:
        return f"nodepool/{cluster_of(pool)}/{pool.name or pool.id}"

    def cells(pool: Resource) -> Sequence[str]:
        shown = f"nodepool/{pool.name}" if has_kind else pool.name or pool.id
        return (cluster_of(pool) or NONE, shown, *_status_cells(pool, now), *_label_cells(pool, labels))

    columns = (Column("CLUSTER"), *_SHARED, *_label_columns(labels))
    return Sheet("NodePool", columns, cells, lambda each: each.raw, name)


def adapter_sheet(now: datetime, *, has_kind: bool = False) -> Sheet[Adapter]:
    """Return the sheet of adapters."""

    def name(adapter: Adapter) -> str:
        return f"adapter/{adapter.name}"

    def cells(adapter: Adapter) -> Sequence[str]:
        reports = adapter.reports
        return (
            name(adapter) if has_kind else adapter.name,
            format_age(adapter.last_seen, now) if adapter.last_seen else "never",
            format_skew(adapter.clock_skew_seconds),
            str(reports.aggregated + reports.stored + reports.replayed),
            format_counts(adapter.discards),
            format_counts(adapter.rejected),
            format_kinds(adapter.blocks),
            format_last_loss(adapter, now),
        )

    return Sheet("Adapter", _ADAPTERS, cells, lambda each: each.raw, name)


def format_labels(labels: Mapping[str, str]) -> str:
    """Format labels as one line."""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or NONE


def format_skew(seconds: float | None) -> str:
    """Format the skew of a clock; less than a second counts as none."""
    if seconds is None:
        return NONE
    return "0s" if abs(seconds) < 1 else f"{seconds:+.0f}s"


def format_counts(counts: Mapping[str, int]) -> str:
    """Format as `3 (2 StaleGeneration, 1 OutOfOrder)`, or 0."""
    positive = {name: count for name, count in counts.items() if count}
    if not positive:
        return "0"
    parts = ", ".join(
        f"{count} {name}" for name, count in sorted(positive.items(), key=lambda each: (-each[1], each[0]))
    )
    return f"{sum(positive.values())} ({parts})"


def format_kinds(counts: Mapping[str, int]) -> str:
    """Format counts by kind: `2 clusters, 1 node pool`."""
    words = {"Cluster": "cluster", "NodePool": "node pool"}
    parts = [count_of(number, words.get(kind, kind)) for kind, number in counts.items() if number]
    return ", ".join(parts) or "0"


def format_last_loss(adapter: Adapter, now: datetime) -> str:
    """Format the last report that was not stored, why and when."""
    lost = adapter.last_discard or adapter.last_refusal
    return f"{lost.cause} for {lost.resource}, {format_age(lost.time, now)} ago" if lost else NONE


def _status_cells(resource: Resource, now: datetime) -> Sequence[str]:
    status = resource.status
    ready, available = status.condition("Ready"), status.condition("Available")
    is_ready = ready is not None and ready.status == "True"
    flaps = status.phase_flapping is not None or any(each.flapping for each in status.conditions)
    completed = sum(each.state == "Completed" and not each.stale for each in status.adapters)
    return (
        f"{status.phase} (flapping)" if flaps else status.phase or "Unknown",
        ready.status if ready else "Unknown",
        available.status if available else "Unknown",
        f"{completed}/{len(status.adapters)}",
        NONE if is_ready or ready is None else ready.reason or NONE,
        format_age(status.phase_since, now),
        format_age(resource.metadata.created_at, now),
        str(resource.generation),
        resource.id,
        NONE if is_ready or ready is None else ready.message or NONE,
    )


def _label_columns(labels: LabelColumns) -> Sequence[Column]:
    own = [Column(key.rsplit("/", 1)[-1].upper()) for key in labels.keys]
    return (*own, Column("LABELS", is_elastic=True)) if labels.shows_all else own


def _label_cells(resource: Resource, labels: LabelColumns) -> Sequence[str]:
    own = [resource.labels.get(key, NONE) for key in labels.keys]
    return (*own, format_labels(resource.labels)) if labels.shows_all else own
