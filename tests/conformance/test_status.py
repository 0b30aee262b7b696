"""Replays every row of the status core: what the guide, the contract, the ADR and the semantics say, as data."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from tests.conformance.timeline import POLICY_FILES, ROOT, replay, rows

FILES = (
    "guide-stages",
    "patterns",
    "lifecycle",
    "rules",
    "culprits",
    "acceptance",
    "available",
    "phases",
    "time",
    "flapping",
    "deletion",
)


@pytest.mark.parametrize("row", rows(*FILES))
def test_row(row: dict[str, Any]) -> None:
    replay(row)


def test_every_row_has_a_name_of_its_own() -> None:
    names = [row.id for row in rows(*FILES)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("row", rows("guide-stages"))
def test_the_guides_stages_hold_between(row: dict[str, Any]) -> None:
    """Semantics §5: the guide's YAML gives the phase of every stage, and of the moments between with a heartbeat."""
    replay(row, heartbeat=timedelta(minutes=1))


def test_the_example_policy_is_the_guides() -> None:
    """`examples/policies/guide.yaml` is the YAML that the guide prints, to the last character."""
    guides = sorted((ROOT / "../shared/seeds").glob("000_*.txt"))
    if not guides:
        pytest.skip("the guide is not here: put the project's shared folder beside the checkout, as ../shared")
    (printed,) = re.findall(r"```yaml\n(# config/aggregation\.yaml\n.*?)```", guides[0].read_text(), re.DOTALL)
    assert POLICY_FILES["guide"].read_text() == printed
