"""The queue of a worker: one work per resource at a time, and each item in the first work after its arrival."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from hyperfleet.events.coalescing import Work, WorkQueue

KEYS = ("a", "b", "c")


def test_items_of_a_resource_that_wait_are_handled_together() -> None:
    queue: WorkQueue[int] = WorkQueue()
    for item, key in enumerate("aabab"):
        queue.add(key, item)
    assert [queue.take(), queue.take(), queue.take()] == [Work("a", (0, 1, 3)), Work("b", (2, 4)), None]


def test_what_arrives_during_a_work_waits_for_the_next() -> None:
    queue: WorkQueue[int] = WorkQueue()
    queue.add("a", 1)
    first = queue.take()
    assert first == Work("a", (1,))
    queue.add("a", 2)
    assert queue.take() is None
    assert queue.running == 1
    queue.finish(first)
    assert queue.take() == Work("a", (2,))


def test_a_busy_resource_does_not_keep_others_waiting() -> None:
    queue: WorkQueue[int] = WorkQueue()
    queue.add("busy", 1)
    work = queue.take()
    assert work is not None
    queue.add("busy", 2)
    queue.add("other", 3)
    queue.finish(work)
    assert queue.take() == Work("other", (3,))


def test_without_coalescing_items_are_handled_one_by_one_in_order() -> None:
    queue: WorkQueue[int] = WorkQueue(coalesces=False)
    for item in (1, 2, 3):
        queue.add("a", item)
    handled = []
    while (work := queue.take()) is not None:
        handled.append(work.items)
        assert queue.take() is None, "one at a time"
        queue.finish(work)
    assert handled == [(1,), (2,), (3,)]


@given(st.lists(st.sampled_from(KEYS)), st.booleans())
def test_draining_returns_what_was_not_begun(keys: list[str], coalesces: bool) -> None:
    queue: WorkQueue[int] = WorkQueue(coalesces=coalesces)
    for item, key in enumerate(keys):
        queue.add(key, item)
    work = queue.take()
    begun = set(work.items) if work else set()
    assert sorted(queue.drain()) == sorted(set(range(len(keys))) - begun)
    assert queue.take() is None
    if work:
        queue.finish(work)
    assert queue.take() is None


class QueueMachine(RuleBasedStateMachine):
    """Adds items and does work in any order; compares with what every single item must see."""

    coalesces = True

    def __init__(self) -> None:
        super().__init__()
        self.queue: WorkQueue[int] = WorkQueue(coalesces=self.coalesces)
        self.arrived: dict[int, str] = {}
        self.running: list[Work[int]] = []
        self.answered: list[int] = []

    @rule(key=st.sampled_from(KEYS))
    def add(self, key: str) -> None:
        """Let an item arrive."""
        item = len(self.arrived)
        self.arrived[item] = key
        self.queue.add(key, item)

    @rule()
    def take(self) -> None:
        """Begin work, if there is any."""
        pending = set(self.arrived) - set(self.answered) - {item for work in self.running for item in work.items}
        free = {self.arrived[item] for item in pending} - {work.key for work in self.running}
        work = self.queue.take()
        assert (work is None) == (not free), "there is work exactly if a resource waits that is not worked on"
        if work is not None:
            assert work.key in free
            waiting = sorted(item for item in pending if self.arrived[item] == work.key)
            assert list(work.items) == (waiting if self.coalesces else waiting[:1]), "in the order of arrival"
            self.running.append(work)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        """End one of the works: only now its items are answered."""
        work = self.running.pop(data.draw(st.integers(0, len(self.running) - 1)))
        self.answered += work.items
        self.queue.finish(work)

    @invariant()
    def one_work_per_resource(self) -> None:
        """Check that no resource is worked on twice at once."""
        keys = [work.key for work in self.running]
        assert len(keys) == len(set(keys)) == self.queue.running

    @invariant()
    def nothing_is_answered_twice(self) -> None:
        """Check that each item belongs to one work."""
        assert len(self.answered) == len(set(self.answered))

    def teardown(self) -> None:
        """Do all work that is left: then every item was answered."""
        while (work := self.running.pop() if self.running else self.queue.take()) is not None:
            self.answered += work.items
            self.queue.finish(work)
        assert sorted(self.answered) == sorted(self.arrived), "nothing is lost"


class PlainQueueMachine(QueueMachine):
    """The same without coalescing."""

    coalesces = False


TestCoalescing = QueueMachine.TestCase
TestOneByOne = PlainQueueMachine.TestCase
TestCoalescing.settings = TestOneByOne.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
