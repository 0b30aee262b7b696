"""Flapping as stored data: small while it is there, nothing while it is not, and old data stays readable.

When something is marked is told by the rows of `tests/conformance/flapping.yaml`.
"""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from hyperfleet.aggregation.loading.policy_loader import load_policies
from hyperfleet.aggregation.policy import FlappingLimit, Policy
from hyperfleet.model.status import Flapping, Flip, Status
from tests.conformance.timeline import load_policy
from tests.property.worlds import send
from tests.world import START, World

POLICY = load_policy('requiredAdapters: [dns]\nphases: {ready: {requiredConditions: [{type: Ready, status: "True"}]}}')
SECOND = timedelta(seconds=1)

# A status as it was stored before there was any flapping.
OLD = b"""{
  "phase": "Ready", "phase_description": "All done", "phase_since": "2025-10-17T12:00:00Z",
  "conditions": [{"type": "Ready", "status": "True", "reason": "Done", "message": "", "observed_generation": 1,
                  "last_transition_time": "2025-10-17T12:00:00Z"}],
  "adapters": [], "last_updated": "2025-10-17T12:00:00Z", "policy": "0123", "raw": {}, "next_deadline": null,
  "memory": {"written_time": "2025-10-17T12:00:00Z", "last_state_change": "2025-10-17T12:00:00Z",
             "required_since": {"dns": "2025-10-17T12:00:00Z"}}
}"""


def flap(world: World, times: int) -> None:
    for turn in range(times):
        world.now += SECOND
        send(world, "dns", "Failed" if turn % 2 else "Completed")


def test_a_status_that_was_stored_before_is_read() -> None:
    status = msgspec.json.decode(OLD, type=Status)
    assert (status.flapping, status.memory.flips) == ({}, {})
    assert msgspec.json.decode(msgspec.json.encode(status)) == msgspec.json.decode(OLD), "and written as it was"


def test_counting_goes_on_from_there() -> None:
    world = World(POLICY)
    world.status = msgspec.json.decode(OLD, type=Status)
    for turn in range(4):
        world.now += SECOND
        send(world, "dns", "Completed" if turn % 2 else "Failed")
    assert len(world.status.memory.flips["Ready"]) == 4
    assert world.status.flapping == {}


def test_what_flaps_is_stored_with_no_more_moves_than_decide() -> None:
    world = World(POLICY)
    flap(world, 1_000)
    status = msgspec.json.decode(msgspec.json.encode(world.status), type=Status)
    assert status == world.status
    assert status.flapping["Ready"] == Flapping(START + 5 * SECOND, 1_000, timedelta(minutes=10))
    assert status.memory.flips["Ready"] == tuple(
        Flip(START + (996 + turn) * SECOND, "True" if turn % 2 else "False") for turn in range(5)
    )


def test_what_has_settled_is_stored_as_if_it_had_never_moved() -> None:
    world = World(POLICY)
    flap(world, 7)
    world.pass_time(timedelta(minutes=10))
    world.heartbeat()
    assert world.status.flapping == {}
    assert msgspec.to_builtins(world.status).keys() == msgspec.json.decode(OLD).keys()
    assert msgspec.to_builtins(world.status.memory).keys() == msgspec.json.decode(OLD)["memory"].keys()


def rule_limits(policy: Policy) -> list[FlappingLimit | None]:
    return [rule.flapping for rule in policy.rules]


def test_what_a_policy_leaves_out_is_as_shipped_and_what_a_rule_leaves_out_as_in_the_policy() -> None:
    (policy,) = load_policies("""
requiredAdapters: [dns]
flapping: {window: 1h}
clusterConditions:
  - {type: A, mirror: {adapter: dns}}
  - {type: B, mirror: {adapter: dns}, flapping: {transitions: 3}}
  - {type: C, mirror: {adapter: dns}, flapping: {window: 2m}}
""").policies
    assert POLICY.flapping == FlappingLimit(timedelta(minutes=10), 5)
    assert policy.flapping == FlappingLimit(timedelta(hours=1), 5)
    assert rule_limits(policy) == [
        None,
        FlappingLimit(timedelta(hours=1), 3),
        FlappingLimit(timedelta(minutes=2), 5),
    ]


@pytest.mark.parametrize(("transitions", "left"), [(2, 1), (3, 2), (4, 2), (5, 3), (50, 25)])
def test_half_as_many_rounded_up_keep_a_mark(transitions: int, left: int) -> None:
    assert FlappingLimit(transitions=transitions).calm_below == left


def test_another_limit_is_another_policy() -> None:
    with_limit = load_policy("requiredAdapters: [dns]\nflapping: {transitions: 4}")
    without = load_policy("requiredAdapters: [dns]")
    assert with_limit.digest != without.digest, "so that every status is computed anew"
