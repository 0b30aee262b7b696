"""Every expression of the contract's status block, with present, partial and absent status."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from hyperfleet.adapter.dialect import choose_language, is_dialect, parse_dialect

TABLE: dict[str, Any] = YAML(typ="safe").load(Path(__file__).with_name("contract-block.yaml").read_text("utf-8"))
EXPRESSIONS: dict[str, str] = TABLE["expressions"]


@pytest.mark.parametrize("row", TABLE["rows"], ids=lambda row: row["name"])
def test_a_row_of_the_contract(row: dict[str, Any]) -> None:
    assert row["because"]
    outcomes = {}
    for name, expression in EXPRESSIONS.items():
        program = parse_dialect(expression).program
        assert program, name
        outcomes[name] = program.evaluate({"resources": row["resources"]})
    assert {name: outcome.fault for name, outcome in outcomes.items() if outcome.fault} == {}
    expected = TABLE["usual"] | row.get("values", {})
    assert {name: outcome.value for name, outcome in outcomes.items()} == expected
    assert sorted(name for name, outcome in outcomes.items() if outcome.is_fallback) == sorted(row["fallbacks"])


def test_every_expression_of_the_block_is_dialect_also_those_without_a_sign_of_it() -> None:
    assert {choose_language(each, is_contract_block=True) for each in EXPRESSIONS.values()} == {"dialect"}
    assert [name for name, each in EXPRESSIONS.items() if not is_dialect(each)] == ["available.status"]
