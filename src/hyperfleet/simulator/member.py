"""One resource of the simulated fleet: what is wanted of it, how far its adapters are, whether it is still there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hyperfleet.simulator.actions import Change, Create, Delete, Place
from hyperfleet.simulator.adapters import Adapter
from hyperfleet.simulator.fleet import Wish
from hyperfleet.simulator.timeline import Routine, Thread, Timeline


class Member:
    """A cluster or a node pool. It goes when every adapter has cleaned up and what belongs to it has gone."""

    def __init__(self, timeline: Timeline, place: Place, wish: Wish, adapters: Sequence[Adapter]) -> None:
        """Begin at the first generation, with nothing done."""
        self._timeline = timeline
        self.place = place
        self.wish = wish
        self.adapters = tuple(adapters)
        self.generation = 1
        self.children: list[Member] = []
        self.parent: Member | None = None
        self.is_deleting = False
        self.is_gone = False
        self._done: set[str] = set()  # adapters that are done with the present generation
        self._threads: list[Thread] = []  # what its adapters do about it

    def create(self) -> Create:
        """Return the action that creates it."""
        return Create(self.place, self.wish.spec, self.wish.labels)

    def change(self, wish: Wish) -> Change:
        """Want it otherwise; return the action. The adapters begin anew, which is the caller's to say."""
        self.wish = wish
        self._begin_generation()
        return Change(self.place, wish.spec, wish.labels, self.generation)

    def delete(self) -> Delete:
        """Want it gone, and all that belongs to it; return the action."""
        self.is_deleting = True
        self._begin_generation()
        for child in self.children:
            if not child.is_deleting:
                child.delete()
        return Delete(self.place, self.generation)

    def remove(self) -> None:
        """Let it be gone, and all that belongs to it."""
        for child in self.children:
            if not child.is_gone:
                child.remove()
        self.is_gone = True
        self._end_threads()
        if self.parent is not None:
            self.parent.settle()

    def employ(self, routines: Iterable[Routine]) -> None:
        """Let adapters begin their routines at the present generation."""
        self._threads = [self._timeline.start(routine) for routine in routines]

    def note_done(self, adapter: str, generation: int) -> None:
        """Learn that an adapter is done with a generation; while deleting: that it has cleaned up."""
        if generation == self.generation and not self.is_gone:
            self._done.add(adapter)
            self._tell()
            self.settle()

    def note_undone(self, adapter: str) -> None:
        """Learn that something is broken that was done."""
        self._done.discard(adapter)

    def find_undone(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return which of these adapters are not done, those left out that the fleet does not have."""
        own = {adapter.name for adapter in self.adapters}
        return tuple(name for name in names if name in own and name not in self._done)

    def settle(self) -> None:
        """Go, if nothing is left to clean up."""
        is_clean = all(adapter.name in self._done for adapter in self.adapters)
        if self.is_deleting and not self.is_gone and is_clean and all(child.is_gone for child in self.children):
            self.remove()

    def _begin_generation(self) -> None:
        self.generation += 1
        self._done.clear()
        self._end_threads()

    def _end_threads(self) -> None:
        for thread in self._threads:
            thread.is_over = True

    def _tell(self) -> None:
        for thread in self._threads:
            self._timeline.look(thread)
