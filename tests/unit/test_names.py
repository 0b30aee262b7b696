"""One name, one thing: public classes whose name is also the name of another class."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src" / "hyperfleet"

# The share of public top-level classes that have their name in common with another. Lower it, never raise it.
LIMIT = 0.05


def test_few_class_names_are_shared() -> None:
    modules = defaultdict(list)
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules[node.name].append(str(path.relative_to(SOURCES)))
    shared = {name: found for name, found in modules.items() if len(found) > 1}
    share = sum(map(len, shared.values())) / sum(map(len, modules.values()))
    assert share <= LIMIT, f"{share:.1%} of public classes share their name: {shared}"
