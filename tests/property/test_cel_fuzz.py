"""CEL, tried very often: the engine is alpha, and what crashes it ends the process. `test_cel` has the grammar."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.property import test_cel

pytestmark = pytest.mark.long


@given(
    test_cel.expressions,
    test_cel.json_values,
    st.dictionaries(st.text(max_size=2), test_cel.json_values, max_size=3),
)
@settings(max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_expression_crashes(source: str, x: Any, m: dict[str, Any]) -> None:
    test_cel.evaluate_bounded(source, x, m)
