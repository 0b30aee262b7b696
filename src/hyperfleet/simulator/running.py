"""What one adapter does about one resource at one generation: wait for others, work, fail, mend, look again, clean up.

Routines of a `Timeline`. How often something goes wrong is the adapter's temper at that time; what is said stands in
`wording` and `adapters`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from hyperfleet.simulator import wording
from hyperfleet.simulator.actions import Say
from hyperfleet.simulator.adapters import Adapter, Word
from hyperfleet.simulator.chance import Chance
from hyperfleet.simulator.fleet import ZONE
from hyperfleet.simulator.member import Member
from hyperfleet.simulator.stories import MINUTE, Story
from hyperfleet.simulator.temper import Temper
from hyperfleet.simulator.timeline import Routine, Timeline, Until

_PICK_UP: Final = 8.0  # seconds until an adapter learns of a generation, typically
_RETRY: Final = 7 * MINUTE  # between a failure and the next try
_ILLNESS: Final = 6 * MINUTE
_ROLL_OUT: Final = 0.35  # of the work of the first generation
_CLEAN_UP: Final = 0.5
_DELAY: Final = (5.0, 90.0)  # of a report that comes late, or again
_BREAKS: Final = 20  # what is done breaks so many times less often than it fails to be made
_DRIFT: Final = 0.8  # seconds that the clocks of a fleet differ anyhow


class Scene(Struct, frozen=True):
    """Where and how an adapter works."""

    timeline: Timeline
    member: Member
    story: Story
    chance: Chance
    usual: Temper
    heartbeat: float  # seconds after which it looks again


class Run:
    """An adapter at work. A new generation is a new run."""

    def __init__(self, adapter: Adapter, scene: Scene) -> None:
        """Begin at the resource's present generation."""
        self._adapter = adapter
        self._timeline = scene.timeline
        self._member = scene.member
        self._scene = scene
        self._generation = scene.member.generation
        self._chance = scene.chance.of(adapter.name, str(self._generation))
        self._post = self._chance.of("post")  # its luck changes nothing in what the adapter does
        self._drift = scene.chance.of(adapter.name).between(-_DRIFT, _DRIFT)
        self._attempts = 0
        wish = scene.member.wish
        names = {
            "cluster": scene.member.place.cluster,
            "region": str(wish.spec.get("region", "us-east-1")),
            "zone": ZONE,
        }
        self._done, self._illness = (wording.fill(word, names) for word in (adapter.done, adapter.illness))
        self._steps = [step.format_map(names) for step in adapter.steps]
        # One cluster fails for one cause: it is drawn once for all generations.
        self._failure = wording.fill(scene.chance.of(adapter.name, "failure").pick(adapter.failures), names)

    @property
    def _temper(self) -> Temper:
        """Return the temper that the adapter has now."""
        return self._scene.story.temper_at(self._timeline.now, self._adapter.name, self._scene.usual)

    def provision(self) -> Routine:
        """Make the resource what it shall be, then look after it until something else is wanted."""
        if self._temper.absent:
            return
        yield self._chance.about(_PICK_UP)
        yield from self._await(self._adapter.needs, "complete")
        yield from self._work_until_done()
        yield from self._look_after()

    def finalize(self, dependents: Iterable[str]) -> Routine:
        """Clean up after those that depend on us; go on saying so, for a report may be lost."""
        yield self._chance.about(_PICK_UP)
        yield from self._await(tuple(dependents), "clean up")
        yield from self._work([f"Deleting {self._adapter.name} objects"], _CLEAN_UP)
        while self._temper.stuck or self._temper.absent:
            yield from self._say(wording.say_failed(wording.BLOCKED))
            yield self._beat()
        while True:
            yield from self._say(wording.say_cleaned_up())
            yield self._beat()

    def _await(self, names: tuple[str, ...], what: str) -> Routine:
        while undone := self._member.find_undone(names):
            yield from self._say(wording.say_waiting(undone, what))
            yield Until(lambda: not self._member.find_undone(names), self._beat())

    def _work_until_done(self) -> Routine:
        share = 1.0 if self._generation == 1 else _ROLL_OUT
        while True:
            self._attempts += 1
            yield from self._work(self._steps, share)
            if not self._chance.happens(self._temper.fail):
                break
            yield from self._say(self._failed(self._failure), {"attempts": self._attempts})
            yield self._chance.about(_RETRY)
            share = 0.1  # most of it is there already
        self._member.note_done(self._adapter.name, self._generation)
        yield from self._say_done()

    def _work(self, steps: list[str], share: float) -> Routine:
        """Go through the steps of the work and tell of each."""
        for number, step in enumerate(steps, 1):
            left = self._chance.about(self._adapter.takes) * share * self._temper.slow / len(steps)
            while left > 0:
                pause = min(left, self._beat())
                yield from self._say(wording.say_running(step), {"step": number, "of": len(steps)})
                yield pause
                left -= pause

    def _look_after(self) -> Routine:
        """Look again and again, and tell how it is."""
        is_shaky = False
        while True:
            temper = self._temper
            yield self._chance.about(temper.flap) if temper.flap else self._beat()
            temper = self._temper
            if temper.silent and self._chance.happens(temper.hush):
                yield temper.silent
            if temper.flap:
                is_shaky = not is_shaky
                yield from self._say(self._failed(wording.SHAKY)) if is_shaky else self._say_done()
            elif self._chance.happens(temper.sick):
                yield from self._be_sick()
            elif temper.fail >= 1 or self._chance.happens(temper.fail / _BREAKS):
                yield from self._break()
            else:
                yield from self._say_done()

    def _be_sick(self) -> Routine:
        end = self._timeline.now + self._chance.about(_ILLNESS)
        while self._timeline.now < end:
            yield from self._say(wording.say_sick(self._done, self._illness))
            yield min(self._beat(), max(end - self._timeline.now, 1.0))

    def _break(self) -> Routine:
        self._member.note_undone(self._adapter.name)
        yield from self._say(self._failed(self._failure), {"attempts": self._attempts})
        yield self._chance.about(_RETRY)
        yield from self._work_until_done()

    def _say_done(self) -> Routine:
        return self._say(wording.say_done(self._done, self._adapter.details), {"attempts": self._attempts})

    def _failed(self, word: Word) -> wording.Conditions:
        return wording.say_failed(word, self._adapter.details)

    def _beat(self) -> float:
        """Return how long it does nothing: until it is time to look again, or until a spell begins or ends."""
        beat = self._scene.heartbeat * self._chance.between(0.85, 1.0)
        turn = self._scene.story.next_turn(self._timeline.now, self._adapter.name)
        return min(beat, turn - self._timeline.now)

    def _say(self, conditions: wording.Conditions, data: Mapping[str, Any] | None = None) -> Routine:
        """Send a report; whether it arrives, once, and in time is another matter."""
        temper = self._temper
        skew = round(self._drift + temper.skew, 3)
        now = self._timeline.now
        say = Say(self._member.place, self._adapter.name, self._generation, conditions, data or {}, now, skew)
        is_lost, is_late, is_twice = map(self._post.happens, (temper.lost, temper.late, temper.twice))
        delay = self._post.between(*_DELAY)
        if is_lost:
            return
        if not is_late:
            yield from self._deliver(say)
        if is_late or is_twice:
            self._timeline.start(self._deliver(say), delay)

    def _deliver(self, say: Say) -> Routine:
        """Let a report arrive, if there is still somebody to hear it; only now the others know that all is clean."""
        if self._member.is_gone:
            return
        yield say
        if wording.is_final(say.conditions):
            self._member.note_done(self._adapter.name, self._generation)
