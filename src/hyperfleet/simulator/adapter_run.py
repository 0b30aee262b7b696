"""What one adapter does for one generation of a resource: wait for others, work, fail, retry, report, clean up.

These are routines of a `Timeline`. The adapter's fault profile says how often something goes wrong; the conditions are
in `reports`, their texts in `adapters`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from hyperfleet.simulator import reports
from hyperfleet.simulator.actions import ReportAction
from hyperfleet.simulator.adapters import SimulatedAdapter, StatusText
from hyperfleet.simulator.fault_profiles import FaultProfile
from hyperfleet.simulator.fleet import ZONE
from hyperfleet.simulator.lifecycles import MINUTE, ClusterLifecycle
from hyperfleet.simulator.randomness import RandomStream
from hyperfleet.simulator.resource import SimulatedResource
from hyperfleet.simulator.timeline import Routine, Timeline, WaitUntil

_PICK_UP: Final = 8.0  # seconds until an adapter notices a generation, typically
_RETRY: Final = 7 * MINUTE  # between a failure and the next try
_UNHEALTHY: Final = 6 * MINUTE
_ROLL_OUT: Final = 0.35  # share of the work of the first generation
_CLEAN_UP: Final = 0.5  # likewise
_DELAY: Final = (5.0, 90.0)  # seconds, of a report that comes late or twice
_BREAKS: Final = 20  # finished work breaks this many times less often than a run fails
_DRIFT: Final = 0.8  # seconds that the clocks of a fleet differ without any fault


class RunContext(Struct, frozen=True):
    """What an adapter run depends on."""

    timeline: Timeline
    resource: SimulatedResource
    lifecycle: ClusterLifecycle
    random: RandomStream
    faults: FaultProfile  # outside of the lifecycle's fault periods
    heartbeat: float  # seconds between reports when there is nothing to do


class AdapterRun:
    """An adapter at work. Each generation has a new run."""

    def __init__(self, adapter: SimulatedAdapter, context: RunContext) -> None:
        """Begin at the resource's present generation."""
        self._adapter = adapter
        self._timeline = context.timeline
        self._resource = context.resource
        self._context = context
        self._generation = context.resource.generation
        self._random = context.random.derive(adapter.name, str(self._generation))
        self._delivery = self._random.derive(
            "post"
        )  # a stream of its own: lost reports change nothing in what the adapter does
        self._drift = context.random.derive(adapter.name).between(-_DRIFT, _DRIFT)
        self._attempts = 0
        desired = context.resource.desired
        names = {
            "cluster": context.resource.ref.cluster,
            "region": str(desired.spec.get("region", "us-east-1")),
            "zone": ZONE,
        }
        self._done, self._unhealthy = (reports.fill(text, names) for text in (adapter.done, adapter.unhealthy))
        self._steps = [step.format_map(names) for step in adapter.steps]
        # One cluster fails for one cause: it is drawn once for all generations.
        self._failure = reports.fill(context.random.derive(adapter.name, "failure").pick(adapter.failures), names)

    @property
    def _profile(self) -> FaultProfile:
        """Return the fault profile of the adapter at this time."""
        return self._context.lifecycle.profile_at(self._timeline.now, self._adapter.name, self._context.faults)

    def provision(self) -> Routine:
        """Make the resource what it shall be, then wake_if_ready after it until something else is wanted."""
        if self._profile.absent:
            return
        yield self._random.duration_around(_PICK_UP)
        yield from self._await(self._adapter.needs, "complete")
        yield from self._work_until_done()
        yield from self._keep_reporting()

    def finalize(self, dependents: Iterable[str]) -> Routine:
        """Clean up after the adapters that depend on this one; keep reporting it, because a report may be lost."""
        yield self._random.duration_around(_PICK_UP)
        yield from self._await(tuple(dependents), "clean up")
        yield from self._work([f"Deleting {self._adapter.name} objects"], _CLEAN_UP)
        while self._profile.stuck or self._profile.absent:
            yield from self._send(reports.failed(reports.BLOCKED))
            yield self._next_pause()
        while True:
            yield from self._send(reports.cleaned_up())
            yield self._next_pause()

    def _await(self, names: tuple[str, ...], what: str) -> Routine:
        while undone := self._resource.find_undone(names):
            yield from self._send(reports.waiting(undone, what))
            yield WaitUntil(lambda: not self._resource.find_undone(names), self._next_pause())

    def _work_until_done(self) -> Routine:
        share = 1.0 if self._generation == 1 else _ROLL_OUT
        while True:
            self._attempts += 1
            yield from self._work(self._steps, share)
            if not self._random.happens(self._profile.fail):
                break
            yield from self._send(self._failed(self._failure), {"attempts": self._attempts})
            yield self._random.duration_around(_RETRY)
            share = 0.1  # most of it is there already
        self._resource.note_done(self._adapter.name, self._generation)
        yield from self._send_done()

    def _work(self, steps: list[str], share: float) -> Routine:
        """Go through the steps of the work and report each."""
        for number, step in enumerate(steps, 1):
            left = self._random.duration_around(self._adapter.takes) * share * self._profile.slow / len(steps)
            while left > 0:
                pause = min(left, self._next_pause())
                yield from self._send(reports.running(step), {"step": number, "of": len(steps)})
                yield pause
                left -= pause

    def _keep_reporting(self) -> Routine:
        """Check and report periodically."""
        is_failing = False
        while True:
            profile = self._profile
            yield self._random.duration_around(profile.flap) if profile.flap else self._next_pause()
            profile = self._profile
            if profile.silent and self._random.happens(profile.silence_probability):
                yield profile.silent
            if profile.flap:
                is_failing = not is_failing
                yield from self._send(self._failed(reports.PROBE_FAILED)) if is_failing else self._send_done()
            elif self._random.happens(profile.sick):
                yield from self._be_unhealthy()
            elif profile.fail >= 1 or self._random.happens(profile.fail / _BREAKS):
                yield from self._break()
            else:
                yield from self._send_done()

    def _be_unhealthy(self) -> Routine:
        end = self._timeline.now + self._random.duration_around(_UNHEALTHY)
        while self._timeline.now < end:
            yield from self._send(reports.unhealthy(self._done, self._unhealthy))
            yield min(self._next_pause(), max(end - self._timeline.now, 1.0))

    def _break(self) -> Routine:
        self._resource.note_undone(self._adapter.name)
        yield from self._send(self._failed(self._failure), {"attempts": self._attempts})
        yield self._random.duration_around(_RETRY)
        yield from self._work_until_done()

    def _send_done(self) -> Routine:
        return self._send(reports.done(self._done, self._adapter.details), {"attempts": self._attempts})

    def _failed(self, text: StatusText) -> reports.Conditions:
        return reports.failed(text, self._adapter.details)

    def _next_pause(self) -> float:
        """Return the time until the next report: a heartbeat, or earlier if a fault period begins or ends."""
        beat = self._context.heartbeat * self._random.between(0.85, 1.0)
        change = self._context.lifecycle.next_profile_change(self._timeline.now, self._adapter.name)
        return min(beat, change - self._timeline.now)

    def _send(self, conditions: reports.Conditions, data: Mapping[str, Any] | None = None) -> Routine:
        """Send a report, which may be lost, late or duplicated."""
        profile = self._profile
        skew = round(self._drift + profile.skew, 3)
        now = self._timeline.now
        ref, name = self._resource.ref, self._adapter.name
        report = ReportAction(ref, name, self._generation, conditions, data or {}, now, skew)
        is_lost, is_late, is_twice = map(self._delivery.happens, (profile.lost, profile.late, profile.twice))
        delay = self._delivery.between(*_DELAY)
        if is_lost:
            return
        if not is_late:
            yield from self._deliver(report)
        if is_late or is_twice:
            self._timeline.start(self._deliver(report), delay)

    def _deliver(self, report: ReportAction) -> Routine:
        """Deliver a report unless the resource is gone; only now do others see that this adapter has cleaned up."""
        if self._resource.is_gone:
            return
        yield report
        if reports.is_final(report.conditions):
            self._resource.note_done(self._adapter.name, self._generation)
