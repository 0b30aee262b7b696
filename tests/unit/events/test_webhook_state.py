"""What a webhook remembers: a batch may be observed twice, the number of members is bounded, and nothing is lost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hyperfleet.events import webhook_state
from hyperfleet.events.webhook_state import (
    MAX_MEMBERS,
    Sighting,
    WebhookState,
    WebhookTiming,
    due_problems,
    mark_told,
    observe,
)
from hyperfleet.model.resource import Resource
from hyperfleet.services.failures import Failure

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TIMING = WebhookTiming()


def sighting(id_: str, *messages: str) -> Sighting:
    """See a resource with adapters that fail for these causes."""
    resource = Resource(id_, "Cluster", f"name-{id_}", 1, NOW, NOW)
    return Sighting(id_, tuple(Failure(resource, "dns", "Broken", message, NOW) for message in messages))


def see(state: WebhookState, now: datetime, *sightings: Sighting, tells_each: bool = False) -> WebhookState:
    return observe(state, sightings, now, TIMING, tells_each=tells_each)


def tell(state: WebhookState, now: datetime) -> tuple[WebhookState, int]:
    """Send everything that is due; return the number of messages."""
    due = tuple(due_problems(state, now, None))
    for id_ in due:
        state = mark_told(state, id_, now, tells_each=False)
    return state, len(due)


def test_a_problem_that_is_over_before_it_was_sent_is_never_sent() -> None:
    state = see(WebhookState(), NOW, sighting("a", "x"))
    state = see(state, NOW + timedelta(seconds=1), sighting("a"))
    assert state == WebhookState()


def test_a_member_that_is_back_before_the_problem_was_resolved_is_not_sent_again() -> None:
    state, count = tell(see(WebhookState(), NOW, sighting("a", "x")), NOW + TIMING.gather)
    assert count == 1
    later = NOW + timedelta(hours=1)
    gone = see(state, later, sighting("a"))
    back = see(gone, later + timedelta(seconds=1), sighting("a", "x"))
    assert tell(back, later + timedelta(hours=1))[1] == 0
    resolved, count = tell(gone, later + TIMING.gather)
    assert (count, resolved.problems) == (1, {})
    assert tell(see(resolved, later, sighting("a", "x")), later + timedelta(hours=1))[1] == 1


def test_a_state_survives_the_store() -> None:
    state = see(WebhookState(last_error="x"), NOW, sighting("a", "x", "y"), sighting("b", "x"))
    assert WebhookState.decode(state.encode()) == state
    assert WebhookState.decode(b"") == WebhookState()


def test_members_are_bounded_and_the_rest_is_looked_up_later() -> None:
    many = [sighting(f"c{number}", "x") for number in range(MAX_MEMBERS + 10)]
    state = see(WebhookState(), NOW, *many)
    assert len(state.member_ids) == MAX_MEMBERS
    assert (state.is_full, state.must_survey) == (True, False)
    state = see(state, NOW, *(sighting(f"c{number}") for number in range(MAX_MEMBERS // 2 + 1)))
    assert (state.is_full, state.must_survey) == (False, True)


def test_those_that_left_are_bounded() -> None:
    members = [sighting(f"c{number}", "x") for number in range(1_500)]
    state, _ = tell(see(WebhookState(), NOW, *members), NOW + TIMING.gather)
    state = see(state, NOW, *(sighting(f"c{number}") for number in range(1_499)))
    (problem,) = state.problems.values()
    assert len(problem.left) == webhook_state._MAX_LEFT
    assert problem.recovered == 1_499


causes = st.sets(st.sampled_from("xyz"))
batches = st.lists(st.lists(st.tuples(st.sampled_from("abcd"), causes), max_size=5), max_size=12)


@given(batches, st.booleans())
def test_whatever_happens_all_is_told_at_the_end(batches: list[list[tuple[str, set[str]]]], tells_each: bool) -> None:
    state, now = WebhookState(), NOW
    truth: dict[str, set[str]] = {}
    for batch in batches:
        now += timedelta(seconds=1)
        seen = [sighting(id_, *sorted(found)) for id_, found in batch]
        truth |= dict(batch)
        state = see(state, now, *seen, tells_each=tells_each)
        assert see(state, now, *(sighting(id_, *truth[id_]) for id_, _ in batch), tells_each=tells_each) == state
        now += timedelta(minutes=5)
        for id_ in tuple(due_problems(state, now, None)):
            state = mark_told(state, id_, now, tells_each=tells_each)
        open_now = {cause for found in truth.values() for cause in found}
        assert {problem.message for problem in state.problems.values()} == open_now
        members = {(id_, problem.message) for problem in state.problems.values() for id_ in problem.members}
        assert members == {(id_, cause) for id_, found in truth.items() for cause in found}
        assert all(member.is_told for problem in state.problems.values() for member in problem.members.values())
        assert not tuple(due_problems(state, now, None)), "everything was told"
    assert replace(state, problems={}) == WebhookState()
