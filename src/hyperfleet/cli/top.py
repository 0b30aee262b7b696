"""`hyperfleet top`: adapters, their last reports, lost reports, and what they block."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from hyperfleet.cli import exits
from hyperfleet.cli.command import CliCommand, connected
from hyperfleet.cli.listing import unknown_adapter
from hyperfleet.cli.live import Frames
from hyperfleet.cli.options import output_options
from hyperfleet.cli.output.ages import format_age
from hyperfleet.cli.output.columns import format_counts, format_kinds, format_last_loss, format_skew
from hyperfleet.cli.output.formats import Output
from hyperfleet.cli.output.printer import look_of, print_items, separator_of, write_items
from hyperfleet.cli.output.sheet import Sheet
from hyperfleet.cli.output.table import Column
from hyperfleet.cli.resources import ADAPTER
from hyperfleet.cli.session import CliSession, pass_session

if TYPE_CHECKING:
    from hyperfleet.client import Adapter, Fleet

_COLUMNS = (
    Column("ADAPTER"),
    Column("LAST SEEN"),
    Column("BLOCKS"),
    Column("FAILED"),
    Column("STALE"),
    Column("RUNNING"),
    Column("COMPLETED"),
    Column("SKEW"),
    Column("REPORTS"),
    Column("DISCARDED"),
    Column("REJECTED", is_wide=True),
    Column("LAST LOSS", is_wide=True, is_elastic=True),
)
_FAILED = ("Failed", "Unhealthy")
_RUNNING = ("Running", "Pending", "Outdated")


class AdapterTopRow(Struct, frozen=True):
    """An adapter, and the number of resources in each of its states."""

    adapter: Adapter
    states: dict[str, int]
    stale: int = 0

    def count(self, *states: str) -> str:
        """Return the number of resources in one of these states."""
        return str(sum(self.states.get(state, 0) for state in states))


@click.command(
    "top",
    cls=CliCommand,
    examples=[
        ("all adapters, those that block most first", "hyperfleet top"),
        ("some of them, with the last lost report", "hyperfleet top dns validation -o wide"),
        ("live", "hyperfleet top --watch"),
    ],
    codes={exits.NOT_FOUND: "there is no such adapter"},
)
@click.argument("adapters", nargs=-1, metavar="[ADAPTER...]")
@click.option("-w", "--watch", "watches", is_flag=True, help="Show it again with every change, until Ctrl-C.")
@output_options()
@connected
@pass_session
def top(session: CliSession, adapters: tuple[str, ...], watches: bool, output: Output) -> None:
    """Show adapters: their last reports, what they block, and lost reports.

    BLOCKS is the number of resources that wait for the adapter; FAILED, STALE, RUNNING and COMPLETED are the numbers of
    resources in that state; SKEW is how far its clock is ahead; DISCARDED is the number of reports without effect.
    """
    names = [name for name in adapters if name not in ADAPTER.words]
    with session.open() as fleet:
        if not watches:
            print_items(session, output, _sheet(session.now()), _gather(fleet, names))
            return
        fleet.health()
    with session.open(is_persistent=True) as fleet, Frames(session, separator_of(output.format)) as frames:
        for event in fleet.watch_adapters():
            if event.kind in ("synced", "modified"):
                sheet, rows = _sheet(session.now()), _gather(fleet, names)
                frames.show(write_items(output, sheet, rows, look_of(session, output)))


def _gather(fleet: Fleet, names: Sequence[str]) -> list[AdapterTopRow]:
    """Return the adapters, those that block most first."""
    found = {adapter.name: adapter for adapter in fleet.adapters()}
    for name in names:
        if name not in found:
            raise unknown_adapter(name, found)
    chosen = [found[name] for name in names] or list(found.values())
    rows = [_count(fleet, adapter) for adapter in chosen]
    return sorted(rows, key=lambda row: (-sum(row.adapter.blocks.values()), row.adapter.name))


def _count(fleet: Fleet, adapter: Adapter) -> AdapterTopRow:
    """Count the resources in each state of an adapter; an adapter may be stale in any state."""
    states: dict[str, int] = {}
    stale = 0
    key = f"adapter:{adapter.name}"
    for resources in (fleet.clusters, fleet.node_pools):
        for group in resources.summary(group_by=key).groups:
            state, number = group.get(key), group.get("count")
            if isinstance(state, str) and isinstance(number, int):
                states[state] = states.get(state, 0) + number
        stale += resources.page(adapter_state=f"{adapter.name}:Stale", page=1, size=1, fields="id").total or 0
    return AdapterTopRow(adapter, states, stale)


def _sheet(now: datetime) -> Sheet[AdapterTopRow]:
    def cells(row: AdapterTopRow) -> Sequence[str]:
        adapter, reports = row.adapter, row.adapter.reports
        return (
            adapter.name,
            format_age(adapter.last_seen, now) if adapter.last_seen else "never",
            format_kinds(adapter.blocks),
            row.count(*_FAILED),
            str(row.stale),
            row.count(*_RUNNING),
            row.count("Completed"),
            format_skew(adapter.clock_skew_seconds),
            str(reports.aggregated + reports.stored + reports.replayed),
            format_counts(adapter.discards),
            format_counts(adapter.rejected),
            format_last_loss(adapter, now),
        )

    def document(row: AdapterTopRow) -> dict[str, object]:
        return {**row.adapter.raw, "states": row.states, "stale": row.stale}

    return Sheet("Adapter", _COLUMNS, cells, document, lambda row: f"adapter/{row.adapter.name}")
