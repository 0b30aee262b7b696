"""Helm for the tests that render the chart, or a skip that says how to get it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.deploy.chart import HELM, Helm, find_helm


@pytest.fixture
def helm(tmp_path: Path) -> Helm:
    """Give helm, or skip: what the chart renders to is then not looked at."""
    program = find_helm()
    if program is None:
        # The words at both ends are those by which `tests/conftest.py` repeats it at the end of a run.
        pytest.skip(f"Server missing: helm was not found; to enable: .ci/servers, or name its program in {HELM}")
    return Helm(program, tmp_path)
