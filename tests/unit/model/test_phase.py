"""The table of phases, and that nothing in the project has a list of phases of its own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from hyperfleet.aggregation.loading.policy_document import PhasesDocument
from hyperfleet.aggregation.policy import Policy
from hyperfleet.cli.output.colours import colour_of
from hyperfleet.cli.sim_view import draw_bar
from hyperfleet.model.phase import PHASE_TABLE, PHASES, TIMED_PHASES, TROUBLED_PHASES, WORST_FIRST, Phase

ROOT = Path(__file__).parents[3]
SOURCES = ROOT / "src" / "hyperfleet"

# The table itself, and the rule of each phase.
LISTING_PHASES = {"model/phase.py", "aggregation/phase.py"}


def test_the_table_has_every_phase_once() -> None:
    assert sorted(PHASES) == sorted(get_args(Phase))
    assert sorted(row.severity for row in PHASE_TABLE) == list(range(len(PHASE_TABLE)))


def test_severity_is_the_order_that_the_api_documents() -> None:
    """Stores keep the numbers, so they must not change without a migration."""
    assert WORST_FIRST == ("Failed", "Degraded", "Provisioning", "Pending", "Deleting", "Ready")
    assert " > ".join(WORST_FIRST) in (ROOT / "docs" / "api.md").read_text()


def test_trouble_comes_before_everything_else() -> None:
    assert set(WORST_FIRST[: len(TROUBLED_PHASES)]) == set(TROUBLED_PHASES)


@pytest.mark.parametrize("phase", PHASES)
def test_no_phase_is_missing(phase: Phase) -> None:
    assert phase.lower() in PhasesDocument.__struct_fields__, "a policy can describe it"
    assert Policy("p", "digest").description_of(phase)
    assert colour_of(phase) is not None
    assert set(draw_bar({phase: 1}, has_colour=False)) == {phase[0]}
    assert f"| {phase} |" in (ROOT / "docs" / "policy.md").read_text()
    assert phase in (ROOT / "docs" / "glossary.md").read_text()


def test_docs_tell_the_priority() -> None:
    assert f"**{' > '.join(PHASES)}**" in (ROOT / "docs" / "policy.md").read_text()


@pytest.mark.parametrize("name", ["prometheus/alerts.yaml", "prometheus/recording.yaml", "grafana/hyperfleet.json"])
def test_alerts_and_dashboards_look_at_the_troubled_phases(name: str) -> None:
    text = (ROOT / "deploy" / name).read_text()
    chosen = {frozenset(names.split("|")) for names in re.findall(r'(?:phase|to)=~\\?"([A-Za-z|]+)\\?"', text)}
    assert chosen == {frozenset(TROUBLED_PHASES)}


def test_every_phase_whose_age_alerts_use_is_timed() -> None:
    text = (ROOT / "deploy" / "prometheus" / "alerts.yaml").read_text()
    used = re.findall(r'oldest_phase_timestamp_seconds\{phase=~?"([A-Za-z|]+)"', text)
    assert {phase for names in used for phase in names.split("|")} == set(TIMED_PHASES)


def test_only_the_table_lists_phases() -> None:
    """Three phases or more in one literal are a list of phases; two of them may be an example."""
    found = {
        str(path.relative_to(SOURCES))
        for path in SOURCES.rglob("*.py")
        for names in _literals(ast.parse(path.read_text()))
        if len(names & set(PHASES)) > 2 and names & {"Degraded", "Provisioning", "Deleting"}
    }
    assert found <= LISTING_PHASES


def _literals(tree: ast.AST) -> Iterator[set[str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
                yield {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)}
            case ast.Dict(keys=keys):
                yield {key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}
