"""Replays the rows of `tests/conformance/*.yaml`: each is a timeline of what happens and what must then be so.

A row has `name`, `because`, a `policy` (a file of `examples/policies`, or YAML in place) and a `timeline` of steps.
Times count from the creation of the resource. Steps: `report` (in short form), `body` (as sent), `badBody` (one that
must be refused), `edit`, `delete`, `retire` (forget an adapter), `policy`, `heartbeat`, `children`, `clock` (set it,
also back), `expect`; a step may have `at`. Before each step deadlines that are due run, as they would in a server.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from hyperfleet.aggregation.acceptance import Decision
from hyperfleet.aggregation.body import BodyProblem, read_report
from hyperfleet.aggregation.loading.policy_loader import load_policies
from hyperfleet.aggregation.policy import Policy
from hyperfleet.aggregation.situation import Child
from hyperfleet.documents.durations import parse_duration
from hyperfleet.model.condition import Condition
from tests.world import START, World, body, condition_body

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
POLICY_FILES = {
    "guide": ROOT / "examples/policies/guide.yaml",
    "default": ROOT / "src/hyperfleet/policies/default.yaml",
}


def rows(*names: str) -> list[Any]:
    """Return the rows of some files as test parameters."""
    return [
        pytest.param(row, id=f"{name}: {row['name']}")
        for name in names
        for row in YAML(typ="safe").load((HERE / f"{name}.yaml").read_text())
    ]


def load_policy(text: str) -> Policy:
    """Load the one policy that a row names or contains."""
    file = POLICY_FILES.get(text)
    policies = load_policies(file.read_text() if file else text, f"{text}.yaml" if file else "row.yaml")
    return policies.policies[0]


def replay(row: dict[str, Any], heartbeat: timedelta | None = None) -> None:
    """Run a row from its first step to its last.

    With a `heartbeat`, all adapters repeat themselves that often between the steps, and the phase must not move there.
    """
    assert row["because"], "every row says why"
    world = World(load_policy(row["policy"]))
    expectations = 0
    player = _Player(world)
    for index, step in enumerate(row["timeline"]):
        if "at" in step:
            _run_until(world, START + parse_duration(step["at"]), heartbeat)
        for key, value in step.items():
            if key != "at":
                player.steps[key](value, f"step {index}")
        expectations += "expect" in step
    assert expectations, "a row that expects nothing proves nothing"


def _run_until(world: World, instant: datetime, heartbeat: timedelta | None) -> None:
    phase = world.status.phase
    while heartbeat is not None and world.now + heartbeat < instant:
        world.pass_time(heartbeat)
        world.heartbeat()
        assert world.status.phase == phase, f"{world.now - START} after the start"
    world.run_until(instant)


class _Player:
    """Knows what each kind of step means."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.decision: Decision | None = None
        self.errors: tuple[BodyProblem, ...] = ()
        self.steps: dict[str, Callable[[Any, str], None]] = {
            "report": self._report,
            "body": self._body,
            "badBody": self._bad_body,
            "edit": lambda _, __: self.world.edit(),
            "delete": lambda _, __: self.world.delete(),
            "retire": lambda name, _: self.world.retire(name),
            "clock": lambda text, _: self.world.set_clock(START + parse_duration(text)),
            "heartbeat": lambda _, __: self.world.heartbeat(),
            "policy": lambda text, _: self.world.use_policy(load_policy(text)),
            "children": self._children,
            "expect": self._expect,
        }

    def _report(self, given: dict[str, Any], _: str) -> None:
        if "observedAt" in given:
            given = {**given, "observedTime": _instant(given["observedAt"])}
            del given["observedAt"]
        self.decision = self.world.report_body(body(**given))

    def _body(self, given: dict[str, Any], _: str) -> None:
        self.decision = self.world.report_body(given)

    def _bad_body(self, given: object, where: str) -> None:
        read = read_report(given)
        assert read.report is None, f"{where}: the body was to be refused"
        self.errors = read.errors

    def _children(self, given: dict[str, Any], _: str) -> None:
        self.world.children = tuple(
            Child("NodePool", name, tuple(_condition(type_, text) for type_, text in conditions.items()))
            for name, conditions in given.items()
        )
        self.world.write()

    def _expect(self, expected: dict[str, Any], where: str) -> None:
        for key, value in expected.items():
            assert _ACTUAL[key](self, value) == value, f"{where}: {key}"


def _condition(type_: str, text: str) -> Condition:
    return Condition(**condition_body(type_, text))  # type: ignore[arg-type]  # the rows are checked by the test


def _offset(text: str) -> timedelta:
    return parse_duration(text, allow_negative=True)


def _instant(text: str) -> str:
    return (START + _offset(text)).isoformat()


def _since_start(instant: Any) -> timedelta | None:
    return None if instant is None else instant - START


def _same_duration(player: _Player, actual: Any, text: str | None) -> str | None:
    """Return the expected text when it means the actual instant, for a readable difference otherwise."""
    offset = _since_start(actual)
    if offset is None:
        return None
    return text if text is not None and parse_duration(text) == offset else str(offset)


def _conditions(player: _Player, expected: dict[str, Any]) -> dict[str, Any]:
    """Show of each expected condition as much as the row mentions: status, then reason, then message."""
    found: dict[str, Any] = {}
    for type_, parts in expected.items():
        condition = player.world.status.condition(type_)
        if condition is None:
            found[type_] = None
        elif isinstance(parts, str):
            found[type_] = condition.status
        else:
            found[type_] = [condition.status, condition.reason, condition.message][: len(parts)]
    return found


def _adapters(player: _Player, expected: dict[str, Any]) -> dict[str, Any]:
    return {
        summary.name: [summary.available, summary.observed_generation, summary.state, summary.stale][: len(parts)]
        for summary in player.world.status.adapters
        for parts in [expected.get(summary.name, [0, 0, 0])]
    }


def _transition_times(player: _Player, expected: dict[str, str]) -> dict[str, str | None]:
    found = {}
    for type_, text in expected.items():
        condition = player.world.status.condition(type_)
        found[type_] = _same_duration(player, condition.last_transition_time, text) if condition else "absent"
    return found


def _adapter_transition_times(player: _Player, expected: dict[str, dict[str, str]]) -> dict[str, dict[str, str | None]]:
    found: dict[str, dict[str, str | None]] = {}
    for name, texts in expected.items():
        report = player.world.reports[name].report
        conditions = {type_: report.condition(type_) for type_ in texts}
        found[name] = {
            type_: _same_duration(player, condition.last_transition_time, texts[type_]) if condition else "absent"
            for type_, condition in conditions.items()
        }
    return found


def _message_parts(player: _Player, expected: dict[str, str]) -> dict[str, str]:
    """Show of each expected message the expected part, or all of it when the part is not in it."""
    found = {}
    for type_, part in expected.items():
        condition = player.world.status.condition(type_)
        message = condition.message if condition else "absent"
        found[type_] = part if part in message else message
    return found


def _outcome(player: _Player, _: Any) -> list[str]:
    assert player.decision is not None
    return [part for part in (player.decision.outcome, player.decision.cause) if part]


def _observed(player: _Player, expected: dict[str, int]) -> dict[str, int | None]:
    found = {type_: player.world.status.condition(type_) for type_ in expected}
    return {type_: condition.observed_generation if condition else None for type_, condition in found.items()}


def _flapping(player: _Player, expected: dict[str, Any]) -> dict[str, Any]:
    """Show every mark: how many moves and, where the row says since when, that."""
    found: dict[str, Any] = {}
    for subject, mark in player.world.status.flapping.items():
        parts = expected.get(subject, [0])
        since = [_same_duration(player, mark.since, text) for text in parts[1:]]
        found[subject] = [mark.transitions, *since]
    return found


_ACTUAL: dict[str, Callable[[_Player, Any], Any]] = {
    "phase": lambda player, _: player.world.status.phase,
    "description": lambda player, _: player.world.status.phase_description,
    "phaseSince": lambda player, text: _same_duration(player, player.world.status.phase_since, text),
    "conditions": _conditions,
    "types": lambda player, _: [condition.type for condition in player.world.status.conditions],
    "adapters": _adapters,
    "since": _transition_times,
    "outcome": _outcome,
    "deadline": lambda player, text: _same_duration(player, player.world.status.next_deadline, text),
    "adapterSince": _adapter_transition_times,
    "messageHas": _message_parts,
    "updated": lambda player, texts: {
        name: _same_duration(player, player.world.reports[name].effective_time, text) for name, text in texts.items()
    },
    "lastUpdated": lambda player, text: _same_duration(player, player.world.status.last_updated, text),
    "isReplay": lambda player, _: player.decision is not None and player.decision.is_replay,
    "skew": lambda player, text: text if player.decision and player.decision.skew == _offset(text) else player.decision,
    "errors": lambda player, _: sorted([error.pointer, error.code] for error in player.errors),
    "rawSince": lambda player, texts: {
        type_: _same_duration(player, player.world.status.raw[type_].since, text) for type_, text in texts.items()
    },
    "raw": lambda player, expected: {
        type_: player.world.status.raw[type_].status if type_ in player.world.status.raw else None for type_ in expected
    },
    "flapping": _flapping,
    "flips": lambda player, _: {s: len(flips) for s, flips in player.world.status.memory.flips.items()},
    "observedGenerations": _observed,
    "removable": lambda player, _: player.world.is_removable,
}
