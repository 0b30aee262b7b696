"""The scheduler: routines run ordered by time, and among equals in the order they were scheduled."""

from __future__ import annotations

from hyperfleet.simulator.actions import ForceDeleteAction, ResourceRef
from hyperfleet.simulator.timeline import FOREVER, Routine, Timeline, WaitUntil


def do(name: str) -> ForceDeleteAction:
    return ForceDeleteAction(ResourceRef(name), "")


def names(timeline: Timeline, end: float = FOREVER) -> list[tuple[float, str]]:
    return [(step.at, step.action.ref.cluster) for step in timeline.run(end)]


def every(seconds: float, name: str, times: int) -> Routine:
    for _ in range(times):
        yield seconds
        yield do(name)


def test_routines_take_turns() -> None:
    timeline = Timeline()
    timeline.start(every(2.0, "slow", 2))
    timeline.start(every(1.0, "fast", 4))
    assert names(timeline) == [(1, "fast"), (2, "slow"), (2, "fast"), (3, "fast"), (4, "slow"), (4, "fast")]


def test_the_end_is_the_end() -> None:
    timeline = Timeline()
    timeline.start(every(1.0, "on", 1000))
    assert names(timeline, 2.0) == [(1, "on"), (2, "on")]
    assert names(timeline, 3.0) == [(3, "on")], "it can be taken up again"


def test_a_wait_ends_when_it_holds_or_times_out() -> None:
    timeline = Timeline()
    met: set[str] = set()

    def wait() -> Routine:
        yield WaitUntil(lambda: "it" in met, 10.0)
        yield do("first")
        yield WaitUntil(lambda: "that" in met, 10.0)
        yield do("second")
        yield WaitUntil(lambda: "it" in met)
        yield do("at once")

    waiting = timeline.start(wait())

    def help_() -> Routine:
        yield 3.0
        assert not timeline.wake_if_ready(waiting)
        met.add("it")
        assert timeline.wake_if_ready(waiting)
        yield do("help")

    timeline.start(help_())
    assert names(timeline) == [(3, "help"), (3, "first"), (13, "second"), (13, "at once")]


def test_an_ended_routine_never_wakes() -> None:
    timeline = Timeline()
    doomed = timeline.start(every(2.0, "doomed", 5))

    def end_it() -> Routine:
        yield 3.0
        doomed.is_over = True

    timeline.start(end_it())
    assert names(timeline) == [(2, "doomed")]
