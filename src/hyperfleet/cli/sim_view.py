"""The progress of a running simulation: a live panel on a terminal, a line now and then elsewhere.

`sim` and `demo` show a `SimulationSnapshot`; both views format it as plain text and differ only in how they draw it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct, field

from hyperfleet.cli.output.colours import colour_of, paint
from hyperfleet.cli.session import CliSession, wants_colour
from hyperfleet.documents.durations import short_duration
from hyperfleet.model.phase import WORST_FIRST

if TYPE_CHECKING:
    from rich.live import Live


_BAR: Final = 48  # characters: fits a narrow terminal
_MAX_CAUSES: Final = 3  # causes that are shown
_PLAIN_PAUSE: Final = 10.0  # seconds between lines
_LIVE_PAUSE: Final = 1.0


class SimulationSnapshot(Struct, frozen=True):
    """The state of a simulation at one moment."""

    title: str
    virtual: float  # simulated seconds
    seconds: float  # real seconds
    reports: int
    rate: float
    p50: float  # seconds
    p99: float
    outcomes: Mapping[str, int] = field(default_factory=dict)
    discards: Mapping[str, int] = field(default_factory=dict)
    errors: Mapping[str, int] = field(default_factory=dict)
    phases: Mapping[str, int] = field(default_factory=dict)
    causes: Sequence[str] = ()  # the most frequent causes, worst first
    is_away: bool = False  # the server does not answer


class SnapshotView(Protocol):
    """Where snapshots are shown."""

    pause: float  # seconds between two snapshots

    def show(self, snapshot: SimulationSnapshot) -> None:
        """Show a snapshot."""
        ...


class PlainView:
    """Writes a line per snapshot."""

    pause = _PLAIN_PAUSE

    def __init__(self, session: CliSession) -> None:
        """Write to stderr."""
        self._session = session

    def show(self, snapshot: SimulationSnapshot) -> None:
        """Write a line."""
        self._session.message(write_line(snapshot))


class LiveView:
    """Redraws a panel in place."""

    pause = _LIVE_PAUSE

    def __init__(self, live: Live, *, has_colour: bool) -> None:
        """Draw on a rich display; the caller opens and closes it."""
        self._live = live
        self._has_colour = has_colour

    def show(self, snapshot: SimulationSnapshot) -> None:
        """Draw the panel."""
        from rich.text import Text

        lines = write_panel(snapshot, has_colour=self._has_colour)
        self._live.update(Text.from_ansi("\n".join(lines), no_wrap=True), refresh=True)


@contextmanager
def open_view(session: CliSession, *, is_terminal: bool) -> Iterator[SnapshotView]:
    """Open the view for this terminal, on stderr because it is for people."""
    if not is_terminal or session.environment.get("TERM") == "dumb":
        yield PlainView(session)
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), auto_refresh=False, transient=True) as live:
        yield LiveView(live, has_colour=wants_colour(is_terminal, session.environment))


def write_line(snapshot: SimulationSnapshot) -> str:
    """Format a snapshot as one line."""
    parts = [
        short_duration(timedelta(seconds=snapshot.virtual)),
        f"{snapshot.reports} reports ({snapshot.rate:.0f}/s)",
        f"p50 {_milliseconds(snapshot.p50)}, p99 {_milliseconds(snapshot.p99)}",
        write_counts(dict(_in_order(snapshot.phases))) or "no clusters yet",
    ]
    if snapshot.errors:
        parts.append(f"errors: {write_counts(snapshot.errors)}")
    if snapshot.is_away:
        parts.append("the server does not answer")
    return "  ".join(parts)


def write_panel(snapshot: SimulationSnapshot, *, has_colour: bool) -> list[str]:
    """Format a snapshot as the lines of a panel."""
    speed = f"p50 {_milliseconds(snapshot.p50)}, p99 {_milliseconds(snapshot.p99)}"
    rows = [
        ("fleet", draw_bar(snapshot.phases, has_colour=has_colour)),
        ("", write_counts(dict(_in_order(snapshot.phases))) or "no clusters yet"),
        ("reports", f"{snapshot.reports} in all, {snapshot.rate:.0f} a second; {speed}"),
        ("outcomes", write_counts(snapshot.outcomes) or "none yet"),
        ("discards", write_counts(snapshot.discards)),
        ("errors", write_counts(snapshot.errors)),
        *(("" if number else "broken", cause) for number, cause in enumerate(snapshot.causes[:_MAX_CAUSES])),
    ]
    simulated, took = (short_duration(timedelta(seconds=round(each))) for each in (snapshot.virtual, snapshot.seconds))
    lines = [f"{snapshot.title}: {simulated} simulated in {took}"]
    lines += [f"  {name:<9} {text}" for name, text in rows if text]
    if snapshot.is_away:
        lines.append("  the server does not answer; waiting for it")
    return lines


def draw_bar(phases: Mapping[str, int], *, has_colour: bool) -> str:
    """Draw the share of each phase; every phase in use gets at least one character."""
    total = sum(phases.values())
    if not total:
        return "·" * _BAR
    widths = {phase: max(round(count / total * _BAR), 1) for phase, count in _in_order(phases)}
    letters = {phase: "█" if has_colour else phase[:1] for phase in widths}
    drawn = ((letters[phase] * width, phase) for phase, width in widths.items())
    return "".join(paint(text, colour_of(phase)) if has_colour else text for text, phase in drawn)


def _in_order(phases: Mapping[str, int]) -> list[tuple[str, int]]:
    """List phases from the best to the worst."""
    known = [(phase, phases[phase]) for phase in reversed(WORST_FIRST) if phases.get(phase)]
    return known + [(phase, count) for phase, count in phases.items() if phase not in WORST_FIRST]


def write_counts(counts: Mapping[str, int]) -> str:
    """Format counts by name."""
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.1f}ms" if seconds < 0.1 else f"{1000 * seconds:.0f}ms"
