"""One resource of the simulated fleet: what is desired, which adapters are done, whether it still exists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hyperfleet.simulator.actions import CreateAction, DeleteAction, ResourceRef, UpdateAction
from hyperfleet.simulator.adapters import SimulatedAdapter
from hyperfleet.simulator.fleet import DesiredResource
from hyperfleet.simulator.timeline import Routine, RoutineTask, Timeline


class SimulatedResource:
    """A cluster or a node pool. A deleted one is gone when every adapter has cleaned up and its node pools are gone."""

    def __init__(
        self, timeline: Timeline, ref: ResourceRef, desired: DesiredResource, adapters: Sequence[SimulatedAdapter]
    ) -> None:
        """Begin at the first generation, with nothing done."""
        self._timeline = timeline
        self.ref = ref
        self.desired = desired
        self.adapters = tuple(adapters)
        self.generation = 1
        self.children: list[SimulatedResource] = []
        self.parent: SimulatedResource | None = None
        self.is_deleting = False
        self.is_gone = False
        self._done: set[str] = set()  # adapters that are done with the present generation
        self._tasks: list[RoutineTask] = []  # of its adapters

    def create(self) -> CreateAction:
        """Return the action that creates it."""
        return CreateAction(self.ref, self.desired.spec, self.desired.labels)

    def change(self, desired: DesiredResource) -> UpdateAction:
        """Change it and return the action. The caller starts the adapters again."""
        self.desired = desired
        self._begin_generation()
        return UpdateAction(self.ref, desired.spec, desired.labels, self.generation)

    def delete(self) -> DeleteAction:
        """Delete it with its node pools and return the action."""
        self.is_deleting = True
        self._begin_generation()
        for child in self.children:
            if not child.is_deleting:
                child.delete()
        return DeleteAction(self.ref, self.generation)

    def remove(self) -> None:
        """Mark it and its node pools as gone."""
        for child in self.children:
            if not child.is_gone:
                child.remove()
        self.is_gone = True
        self._end_tasks()
        if self.parent is not None:
            self.parent.remove_if_clean()

    def start_adapters(self, routines: Iterable[Routine]) -> None:
        """Start the routines of its adapters at the present generation."""
        self._tasks = [self._timeline.start(routine) for routine in routines]

    def note_done(self, adapter: str, generation: int) -> None:
        """Record that an adapter is done with a generation; while deleting: that it has cleaned up."""
        if generation == self.generation and not self.is_gone:
            self._done.add(adapter)
            self._wake_tasks()
            self.remove_if_clean()

    def note_undone(self, adapter: str) -> None:
        """Record that something broke after it was done."""
        self._done.discard(adapter)

    def find_undone(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return which of these adapters are not done, ignoring those that are not simulated."""
        own = {adapter.name for adapter in self.adapters}
        return tuple(name for name in names if name in own and name not in self._done)

    def remove_if_clean(self) -> None:
        """Remove it if nothing is left to clean up."""
        is_clean = all(adapter.name in self._done for adapter in self.adapters)
        if self.is_deleting and not self.is_gone and is_clean and all(child.is_gone for child in self.children):
            self.remove()

    def _begin_generation(self) -> None:
        self.generation += 1
        self._done.clear()
        self._end_tasks()

    def _end_tasks(self) -> None:
        for task in self._tasks:
            task.is_over = True

    def _wake_tasks(self) -> None:
        for task in self._tasks:
            self._timeline.wake_if_ready(task)
