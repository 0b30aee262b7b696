"""What a person sees while a simulation runs: a panel that keeps changing on a terminal, a line now and then elsewhere.

`sim` and `demo` show a `Glance`; everything but how it is put on the screen is plain text and the same for both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct, field

from hyperfleet.cli.output.colours import colour_of, paint
from hyperfleet.cli.session import Session, wants_colour
from hyperfleet.documents.durations import short_duration
from hyperfleet.model.phase import WORST_FIRST

if TYPE_CHECKING:
    from rich.live import Live


_BAR: Final = 48  # characters: fits beside nothing else on a narrow terminal
_WORST: Final = 3  # causes that are named
_PLAIN_PAUSE: Final = 10.0  # seconds between lines that stay
_LIVE_PAUSE: Final = 1.0


class Glance(Struct, frozen=True):
    """How a simulation is going at one moment."""

    title: str
    virtual: float  # seconds of the plan
    seconds: float  # seconds of the world
    reports: int
    rate: float
    p50: float  # seconds
    p99: float
    outcomes: Mapping[str, int] = field(default_factory=dict)
    discards: Mapping[str, int] = field(default_factory=dict)
    errors: Mapping[str, int] = field(default_factory=dict)
    phases: Mapping[str, int] = field(default_factory=dict)
    causes: Sequence[str] = ()  # what is broken most, the worst first
    is_away: bool = False  # the server does not answer


class View(Protocol):
    """Where glances are shown."""

    pause: float  # seconds between two of them

    def show(self, glance: Glance) -> None:
        """Show how it is going."""
        ...


class PlainView:
    """A line for every glance."""

    pause = _PLAIN_PAUSE

    def __init__(self, session: Session) -> None:
        """Say it on stderr."""
        self._session = session

    def show(self, glance: Glance) -> None:
        """Write a line."""
        self._session.say(write_line(glance))


class LiveView:
    """A panel that is drawn anew over itself."""

    pause = _LIVE_PAUSE

    def __init__(self, live: Live, *, has_colour: bool) -> None:
        """Draw with a display of rich that somebody else opens and closes."""
        self._live = live
        self._has_colour = has_colour

    def show(self, glance: Glance) -> None:
        """Draw the panel."""
        from rich.text import Text

        lines = write_panel(glance, has_colour=self._has_colour)
        self._live.update(Text.from_ansi("\n".join(lines), no_wrap=True), refresh=True)


@contextmanager
def open_view(session: Session, *, is_terminal: bool) -> Iterator[View]:
    """Open the view that fits where we run. It is for people, so it is on stderr."""
    if not is_terminal or session.environment.get("TERM") == "dumb":
        yield PlainView(session)
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), auto_refresh=False, transient=True) as live:
        yield LiveView(live, has_colour=wants_colour(is_terminal, session.environment))


def write_line(glance: Glance) -> str:
    """Write a glance on one line."""
    parts = [
        short_duration(timedelta(seconds=glance.virtual)),
        f"{glance.reports} reports ({glance.rate:.0f}/s)",
        f"p50 {_milliseconds(glance.p50)}, p99 {_milliseconds(glance.p99)}",
        write_counts(dict(_in_order(glance.phases))) or "no clusters yet",
    ]
    if glance.errors:
        parts.append(f"errors: {write_counts(glance.errors)}")
    if glance.is_away:
        parts.append("the server does not answer")
    return "  ".join(parts)


def write_panel(glance: Glance, *, has_colour: bool) -> list[str]:
    """Write a glance as the lines of a panel."""
    speed = f"p50 {_milliseconds(glance.p50)}, p99 {_milliseconds(glance.p99)}"
    rows = [
        ("fleet", draw_bar(glance.phases, has_colour=has_colour)),
        ("", write_counts(dict(_in_order(glance.phases))) or "no clusters yet"),
        ("reports", f"{glance.reports} in all, {glance.rate:.0f} a second; {speed}"),
        ("outcomes", write_counts(glance.outcomes) or "none yet"),
        ("discards", write_counts(glance.discards)),
        ("errors", write_counts(glance.errors)),
        *(("" if number else "broken", cause) for number, cause in enumerate(glance.causes[:_WORST])),
    ]
    lived, took = (short_duration(timedelta(seconds=round(each))) for each in (glance.virtual, glance.seconds))
    lines = [f"{glance.title}: {lived} of the fleet in {took}"]
    lines += [f"  {name:<9} {text}" for name, text in rows if text]
    if glance.is_away:
        lines.append("  the server does not answer; waiting for it")
    return lines


def draw_bar(phases: Mapping[str, int], *, has_colour: bool) -> str:
    """Draw how many are in which phase; every phase that somebody is in can be seen."""
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
    """Write how many there are of each."""
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.1f}ms" if seconds < 0.1 else f"{1000 * seconds:.0f}ms"
