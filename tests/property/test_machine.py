"""A resource lives through anything that can happen to it; what must always be so is looked at after each step."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from hyperfleet.aggregation.aggregate import aggregate
from hyperfleet.aggregation.transitions import transitions_between
from hyperfleet.model.condition import FALSE, REASON_PATTERN, TRUE, TYPE_PATTERN
from hyperfleet.model.status import Status
from tests.property.worlds import adapters, durations, kinds, policies, required_adapters, send
from tests.world import World


class Life(RuleBasedStateMachine):
    """Reports, edits, deletion and the passing of time, in any order."""

    @initialize(policy=policies)
    def create(self, policy):  # type: ignore[no-untyped-def]
        self.world = World(policy)

    @rule(adapter=adapters, kind=kinds, lag=st.integers(0, 1), skew=st.none() | st.integers(-900, 900))
    def report(self, adapter, kind, lag, skew):  # type: ignore[no-untyped-def]
        before = self.world.status
        more = {} if skew is None else {"observedTime": (self.world.now + timedelta(seconds=skew)).isoformat()}
        decision = send(self.world, adapter, kind, generation=max(1, self.world.resource.generation - lag), **more)
        if decision.outcome == "discarded":
            assert self.world.status == before
        self._note(before)

    @rule(adapter=required_adapters)
    def report_unknown(self, adapter):  # type: ignore[no-untyped-def]
        before = self.world.status
        send(self.world, adapter, "Running", available="Unknown/NotChecked")
        assert self.world.status.condition("Ready") == before.condition("Ready")
        self._note(before)

    @precondition(lambda self: not self.world.resource.is_deleting)
    @rule()
    def edit(self) -> None:
        before = self.world.status
        self.world.edit()
        self._note(before)

    @precondition(lambda self: not self.world.resource.is_deleting)
    @rule()
    def delete(self) -> None:
        before = self.world.status
        self.world.delete()
        self._note(before)

    @rule(duration=durations)
    def pass_time(self, duration):  # type: ignore[no-untyped-def]
        self.world.pass_time(duration)

    @rule(policy=policies)
    def change_policy(self, policy):  # type: ignore[no-untyped-def]
        self.world.use_policy(policy)

    @rule(adapter=adapters)
    def retire(self, adapter):  # type: ignore[no-untyped-def]
        self.world.reports.pop(adapter, None)
        self.world.write()

    @rule()
    def heartbeat(self) -> None:
        before = self.world.status
        self.world.heartbeat()
        self._note(before)

    def _note(self, before: Status) -> None:
        moved = {t.subject for t in transitions_between(before, self.world.status)}
        for condition in self.world.status.conditions:
            earlier = before.condition(condition.type)
            assert earlier is not None
            has_moved = condition.last_transition_time != earlier.last_transition_time
            assert not has_moved or condition.type in moved, f"{condition.type}: moved without a new status"

    @invariant()
    def ready_tells_the_truth(self) -> None:
        world = self.world
        ready = world.status.condition("Ready")
        assert ready is not None
        if ready.status != TRUE:
            return
        assert not world.resource.is_deleting
        threshold = world.policy.stale_after
        assert threshold is not None
        for name in world.policy.required:
            stored = world.reports[name]
            assert stored.report.observed_generation == world.resource.generation
            assert stored.report.status_of("Available") == TRUE
            heard = max(stored.last_heard, world.resource.generation_time)
            assert world.status.memory.written_time < heard + threshold

    @invariant()
    def phases_hide_and_forge_nothing(self) -> None:
        world, phase = self.world, self.world.status.phase
        assert (phase == "Deleting") == world.resource.is_deleting
        unhealthy = any(
            name in world.reports
            and world.reports[name].report.status_of("Available") in (TRUE, FALSE)
            and world.reports[name].report.status_of("Health") == FALSE
            for name in world.policy.required
        )
        assert not unhealthy or phase in ("Deleting", "Degraded")
        ready = world.status.condition("Ready")
        assert ready is not None
        assert phase != "Ready" or ready.status == TRUE

    @invariant()
    def a_second_look_sees_the_same(self) -> None:
        world, now = self.world, self.world.status.memory.written_time
        assert aggregate(world.resource, world.reports, world.policy, world.status, now) == world.status

    @invariant()
    def what_is_published_is_what_kubernetes_takes(self) -> None:
        for condition in self.world.status.conditions:
            assert TYPE_PATTERN.fullmatch(condition.type)
            assert REASON_PATTERN.fullmatch(condition.reason), condition.reason
            assert condition.last_transition_time is not None

    @invariant()
    def a_deadline_lies_ahead(self) -> None:
        deadline = self.world.status.next_deadline
        assert deadline is None or deadline > self.world.status.memory.written_time


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
