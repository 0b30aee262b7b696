"""The security guide tells the truth: its settings load, its token file is good, its table of roles is the code's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hyperfleet.access.token_file import read_tokens
from hyperfleet.api.context import RequestLimits
from hyperfleet.api.description.fleet_operations import fleet_operations
from hyperfleet.api.description.kind_paths import KindPaths
from hyperfleet.api.description.operations import Operation
from hyperfleet.api.description.resource_operations import operations_on as resource_operations
from hyperfleet.api.description.status_operations import batch_operation
from hyperfleet.api.description.status_operations import operations_on as status_operations
from hyperfleet.model.kind import CLUSTER, Kinds
from hyperfleet.settings import resolve

GUIDE = (Path(__file__).parents[2] / "docs/security.md").read_text()
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)


def test_the_token_file_is_good() -> None:
    (text,) = [block for block in BLOCKS if block.startswith("- name:")]
    assert read_tokens(text, "tokens.yaml", 0.0).problems == ()


@pytest.mark.parametrize("text", [block for block in BLOCKS if not block.startswith("- name:")])
def test_the_settings_are_good(text: str, tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(text)
    assert resolve({}, {}, str(file))


def _operations() -> list[Operation]:
    """Return the operations that change something, of the fleet and of clusters."""
    place = KindPaths(CLUSTER, Kinds())
    found = [
        *resource_operations(place),
        *status_operations(place),
        batch_operation(RequestLimits().batch),
        *fleet_operations(),
    ]
    return [each for each in found if each.method != "get"]


@pytest.mark.parametrize("role", ["reader", "reporter", "editor", "admin"])
def test_the_roles_are_those_of_the_code(role: str) -> None:
    row = re.search(rf"^\| `{role}` \|[^|]*\|(.*)\|$", GUIDE, re.MULTILINE)
    assert row
    assert set(re.findall(r"`(\w+)`", row[1])) == {each.id for each in _operations() if each.role == role}
