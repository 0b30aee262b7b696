"""Grouping of failures by cause: complete, without repetition, whatever the order."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hyperfleet.model.resource import Resource
from hyperfleet.services.failures import CauseGroup, Failure, group_failures
from hyperfleet.services.message_folding import fold_message
from tests.world import START

NOW = START + timedelta(days=3)


@st.composite
def fleets(draw: st.DrawFn) -> list[Failure]:
    """Draw failing adapters: each of a resource at most once."""
    failures = []
    labels = st.dictionaries(st.sampled_from(["region", "tier"]), st.sampled_from(["a", "b"]), max_size=2)
    for number in range(draw(st.integers(0, 12))):
        kind = draw(st.sampled_from(["Cluster", "NodePool"]))
        resource = Resource(f"id-{number}", kind, f"name-{number}", 1, START, START, labels=draw(labels))
        for adapter in draw(st.sets(st.sampled_from(["dns", "network"]))):
            message = draw(st.sampled_from(["timeout after {}s", "no zone {}", "quota"])).format(
                draw(st.integers(0, 99))
            )
            since = START + timedelta(hours=draw(st.integers(0, 72)))
            failures.append(Failure(resource, adapter, draw(st.sampled_from(["Broken", "Throttled"])), message, since))
    return failures


def identity(failure: Failure) -> tuple[str, str]:
    return failure.resource.id, failure.adapter


@given(fleets(), st.randoms(use_true_random=False))
def test_the_order_does_not_matter(failures: list[Failure], random: Any) -> None:
    shuffled = list(failures)
    random.shuffle(shuffled)
    assert group_failures(shuffled, NOW) == group_failures(failures, NOW)


@given(fleets())
def test_every_failure_is_in_exactly_one_group(failures: list[Failure]) -> None:
    grouped = [failure for group in group_failures(failures, NOW) for failure in group.failures]
    assert sorted(map(identity, grouped)) == sorted(map(identity, failures))


@given(fleets())
def test_a_group_is_what_has_the_same_cause(failures: list[Failure]) -> None:
    groups = group_failures(failures, NOW)
    keys = [(group.adapter, group.reason, group.message) for group in groups]
    assert len(keys) == len(set(keys))
    for group in groups:
        for failure in group.failures:
            assert (failure.adapter, failure.reason, fold_message(failure.message)) == (
                group.adapter,
                group.reason,
                group.message,
            )
        ids = [failure.resource.id for failure in group.failures]
        assert len(ids) == len(set(ids)), "a resource counts once"
    sizes = [len(group.failures) for group in groups]
    assert sizes == sorted(sizes, reverse=True)


@given(fleets())
def test_what_is_told_of_a_group(failures: list[Failure]) -> None:
    for group in group_failures(failures, NOW):
        check_times(group)
        check_labels(group)
        assert sum(group.kinds.values()) == len(group.failures)


def check_times(group: CauseGroup) -> None:
    times = [failure.since for failure in group.failures]
    assert times == sorted(times)
    assert group.growth.last_hour == sum(time >= NOW - timedelta(hours=1) for time in times)
    assert group.growth.last_day == sum(time >= NOW - timedelta(hours=24) for time in times)


def check_labels(group: CauseGroup) -> None:
    told = {(label.key, label.value): label.share for label in group.labels}
    assert len({key for key, _ in told}) == len(told), "no two values of one label are most of all"
    for key in ("region", "tier"):
        for value in ("a", "b"):
            number = sum(failure.resource.labels.get(key) == value for failure in group.failures)
            share = number / len(group.failures)
            assert told.get((key, value)) == (share if share > 0.5 else None)
