"""The story of a cluster: when it is asked for, changed and deleted, and which bad times its adapters have.

`improvise` makes one up, as life does. `cast` gives out the parts of a show: at one moment somebody is in every state
that a fleet can have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.simulator.chance import Chance
from hyperfleet.simulator.temper import Temper

MINUTE: Final = 60.0
HOUR: Final = 60 * MINUTE
_FOREVER: Final = 1000 * HOUR

_BETWEEN_EDITS: Final = 3 * HOUR  # of one cluster, on average
_LIFETIME: Final = 12 * HOUR
_PATIENCE: Final = (40 * MINUTE, 3 * HOUR)  # after which somebody deletes by force


class Spell(Struct, frozen=True):
    """A time in which an adapter has another temper."""

    adapter: str
    begin: float
    end: float
    temper: Mapping[str, Any]


class Story(Struct, frozen=True):
    """What happens to a cluster, in seconds of the plan."""

    born: float
    edits: tuple[float, ...] = ()
    deleted: float = _FOREVER
    patience: float = _FOREVER  # how long after its deletion somebody waits until it is taken away by force
    spells: tuple[Spell, ...] = ()

    def temper_at(self, now: float, adapter: str, usual: Temper) -> Temper:
        """Return the temper that an adapter has at a time."""
        for spell in self.spells:
            if spell.adapter == adapter and spell.begin <= now < spell.end:
                usual = replace(usual, **{**spell.temper, **_last_until(spell, now)})
        return usual

    def next_turn(self, now: float, adapter: str) -> float:
        """Return when the temper of an adapter changes next."""
        turns = (turn for spell in self.spells if spell.adapter == adapter for turn in (spell.begin, spell.end))
        return min((turn for turn in turns if turn > now), default=_FOREVER)


def _last_until(spell: Spell, now: float) -> dict[str, float]:
    """Return how long a silence is that ends with its spell."""
    return {"silent": spell.end - now} if "hush" in spell.temper else {}


def improvise(chance: Chance, born: float, churn: float) -> Story:
    """Make up a story; `churn` says how many times as often as usual people change their minds."""
    if not churn:
        return Story(born)
    deleted = born + 20 * MINUTE + chance.next_event(_LIFETIME / churn)
    edits: list[float] = []
    time = born + chance.next_event(_BETWEEN_EDITS / churn)
    while time < deleted and len(edits) < 100:
        edits.append(round(time, 3))
        time += 2 * MINUTE + chance.next_event(_BETWEEN_EDITS / churn)
    return Story(born, tuple(edits), round(deleted, 3), chance.between(*_PATIENCE))


class Part(Struct, frozen=True):
    """A part of the show. Times are minutes before the moment of the show; what follows it is improvised."""

    name: str
    born: float
    edited: float | None = None
    deleted: float | None = None
    spells: tuple[tuple[str, float, float, Mapping[str, Any]], ...] = ()  # adapter, from, to (minutes after), temper
    tells: str = ""


_FAILS: Final = {"fail": 1.0}
_SICK: Final = {"sick": 1.0}
_STUCK: Final = {"stuck": True}
_HUSH: Final = {"hush": 1.0, "silent": HOUR}
_STEADY: Final = Part("steady", 73, tells="has been in order for an hour")

# In the order in which the first clusters get them; the rest of a fleet is in order.
PARTS: Final = (
    _STEADY,
    Part("rolling-out", 70, edited=3, tells="gets another release"),
    Part("failing", 68, edited=38, spells=(("dns", 39, 120, _FAILS),), tells="its DNS records cannot be made"),
    Part("arriving", 9, tells="was asked for minutes ago"),
    _STEADY,
    Part("flapping", 72, spells=(("infrastructure", 26, 240, {"flap": 50.0}),), tells="cannot make up its mind"),
    Part("unwell", 71, spells=(("hypershift", 18, 90, _SICK),), tells="works, but an adapter of it is ill"),
    Part("silent", 69, spells=(("infrastructure", 34, 400, _HUSH),), tells="an adapter was not heard of for long"),
    Part("leaving", 67, deleted=4, tells="is being deleted"),
    Part("stuck", 66, deleted=37, spells=(("infrastructure", 38, 60, _STUCK),), tells="cannot be deleted"),
    _STEADY,
    Part("failing", 65, spells=(("infrastructure", 22, 60, _FAILS),), tells="has lost what it had"),
    Part("unserved", 52, spells=(("hypershift", 60, 300, {"absent": True}),), tells="one adapter never came"),
    Part("mended", 72, spells=(("dns", 50, -30, _FAILS),), tells="was broken half an hour ago"),
    Part("newborn", 0.4, tells="was asked for seconds ago"),
    Part("unstarted", 4, spells=(("validation", 10, 300, {"absent": True}),), tells="nobody has begun with it"),
    Part("failing", 31, spells=(("validation", 40, 45, _FAILS),), tells="asks for more than there is"),
    _STEADY,
    Part("failing", 64, edited=44, spells=(("dns", 45, 150, _FAILS),), tells="one cause has several victims"),
    Part("arriving", 5, tells="was asked for minutes ago"),
    Part("unwell", 63, spells=(("dns", 14, 45, _SICK),), tells="its DNS provider does not answer"),
)
PAST: Final = 75 * MINUTE  # that a show needs before its moment


def cast(chance: Chance, number: int, moment: float, churn: float) -> Story:
    """Give the cluster of a number its part in a show; after the moment of the show its story is improvised."""
    part = PARTS[number] if number < len(PARTS) else _STEADY
    later = improvise(chance, moment, churn)
    deleted = later.deleted if part.deleted is None else moment - part.deleted * MINUTE
    edits = (*_before(moment, part.edited), *later.edits)
    return Story(
        born=max(moment - part.born * MINUTE + (number % 7) * 5.0, 0.0),
        edits=tuple(edit for edit in edits if edit < deleted),
        deleted=deleted,
        patience=max(later.patience, HOUR),
        spells=tuple(
            Spell(adapter, moment - begin * MINUTE, moment + end * MINUTE, temper)
            for adapter, begin, end, temper in part.spells
        ),
    )


def _before(moment: float, minutes: float | None) -> tuple[float, ...]:
    return () if minutes is None else (moment - minutes * MINUTE,)
