"""Which requests made which positions, until their events are published."""

from __future__ import annotations

from hyperfleet.services.traced_commits import TracedCommits
from hyperfleet.services.tracing import TracePoint

ONE, TWO = (TracePoint("a" * 32, each * 16, is_recorded=True) for each in "12")
UNRECORDED = TracePoint("b" * 32, "3" * 16, is_recorded=False)


def test_traces_are_found_by_position_and_forgotten() -> None:
    commits = TracedCommits()
    commits.note(3, [ONE, None, UNRECORDED])
    commits.note(4, [UNRECORDED])
    commits.note(7, [TWO])
    assert commits.between(0, 7) == [ONE, TWO]
    assert commits.between(3, 6) == []
    commits.forget(3)
    assert commits.between(0, 9) == [TWO]


def test_a_replica_that_does_not_publish_remembers_no_more_than_the_last_thousand() -> None:
    commits = TracedCommits()
    for position in range(1, 2_001):
        commits.note(position, [ONE])
    assert len(commits.between(0, 2_000)) == 1_000
