"""Replays every row of the status core: what the guide, the contract, the ADR and docs/semantics.md say, as data."""

from __future__ import annotations

import re
from datetime import timedelta
from hashlib import sha256
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
GUIDE = ROOT / "../shared/seeds/000_bf2c982dcaadf865.txt"  # not in a clone, which has the digest of what it prints
PRINTED = "0dc5bbb7aa897f3f201b233e921cd2a68e7ef493cdbe0f6a4bbefca7d8a019bc"


@pytest.mark.parametrize("row", rows(*FILES))
def test_row(row: dict[str, Any]) -> None:
    replay(row)


def test_every_row_has_a_name_of_its_own() -> None:
    names = [row.id for row in rows(*FILES)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("row", rows("guide-stages"))
def test_the_guides_stages_hold_between(row: dict[str, Any]) -> None:
    """docs/semantics.md §5: the guide's YAML gives the phase of every stage, and between stages with a heartbeat."""
    replay(row, heartbeat=timedelta(minutes=1))


def test_the_example_policy_is_the_guides() -> None:
    """`examples/policies/guide.yaml` is the YAML that the guide prints, to the last character."""
    assert sha256(POLICY_FILES["guide"].read_bytes()).hexdigest() == PRINTED


if GUIDE.exists():

    def test_the_digest_is_that_of_the_guide() -> None:
        (printed,) = re.findall(r"```yaml\n(# config/aggregation\.yaml\n.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
        assert sha256(printed.encode()).hexdigest() == PRINTED
