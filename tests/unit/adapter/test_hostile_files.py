"""No file makes loading fail: whatever stands at any place of a file, the result is a list of problems."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from ruamel.yaml import YAML

from hyperfleet.adapter.documents.files import AdapterDocument, DeploymentDocument, TaskDocument
from hyperfleet.adapter.loading import LoadOptions, load_adapter, load_pair
from hyperfleet.adapter.starts import start_text

DATA = Path(__file__).parents[2] / "data/adapters"
GO = DATA / "go"
ODD: list[Any] = [None, [], {}, 3, "", "{{ .x", "{{ .nope }}", "a ?? b", "nope.x + 1", [None], {"": None}, True, "\0é𝄞"]
SAMPLES = {
    "contract": YAML(typ="safe").load((DATA / "contract/adapter.yaml").read_text()),
    "start": YAML(typ="safe").load(start_text("dns")),
    "go": {
        **YAML(typ="safe").load((GO / "adapter-config.yaml").read_text()),
        **YAML(typ="safe").load((GO / "task.yaml").read_text()),
    },
}


def places_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value in a document."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places_of(item, (*path, key))


def put(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return a document with another value at a path."""
    if not path:
        return value
    changed = copy.deepcopy(document)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return changed


def load_any(document: Any, folder: Path) -> None:
    """Load a document as every kind of file."""
    file = folder / "adapter.yaml"
    file.write_text(msgspec.json.encode(document).decode())
    loaded = load_adapter(file, LoadOptions())
    assert loaded.config is not None or loaded.problems


@pytest.mark.parametrize("name", SAMPLES)
def test_odd_values_anywhere(name: str, tmp_path: Path) -> None:
    """Every third place gets one odd value, so that all of them come up; the long test tries everything."""
    for index, path in enumerate(list(places_of(SAMPLES[name]))[::3]):
        load_any(put(SAMPLES[name], path, ODD[index * 5 % len(ODD)]), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_every_odd_value_everywhere(name: str, odd: Any, tmp_path: Path) -> None:
    for path in places_of(SAMPLES[name]):
        load_any(put(SAMPLES[name], path, odd), tmp_path)


def test_the_two_files_of_the_go_adapter_with_odd_values(tmp_path: Path) -> None:
    for name in ("adapter-config.yaml", "task.yaml"):
        good = YAML(typ="safe").load((GO / name).read_text())
        for key in good:
            files = {each: GO / each for each in ("adapter-config.yaml", "task.yaml")}
            files[name] = tmp_path / name
            for odd in ODD[:4]:
                files[name].write_text(msgspec.json.encode(put(good, (key,), odd)).decode())
                loaded = load_pair(files["adapter-config.yaml"], files["task.yaml"], LoadOptions())
                assert loaded.config is not None or loaded.problems


def test_the_file_of_ours_has_the_sections_of_both_files_of_go() -> None:
    fields = {each.name for each in msgspec.structs.fields(AdapterDocument)}
    parts = (DeploymentDocument, TaskDocument)
    assert fields == {each.name for part in parts for each in msgspec.structs.fields(part)}
