"""Field masks: which parts of an answer are kept, and what is said of a mask that is none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hyperfleet.services.field_masks import MAX_DEPTH, MAX_PATHS, apply_mask, mask_answer, read_fields

DOCUMENT: dict[str, Any] = {
    "id": "cls-1",
    "name": "one",
    "metadata": {"labels": {"env": "prod", "app.kubernetes.io/name": "shop", "a,b": "c"}, "createdBy": "me"},
    "status": {
        "phase": "Ready",
        "conditions": [{"type": "Ready", "status": "True"}, {"type": "Available", "status": "True"}, "stray"],
    },
}


KNOWN = tuple(DOCUMENT)


def masked(*fields: str) -> dict[str, Any]:
    """Apply a mask that must be good."""
    mask = read_fields(fields, KNOWN)
    assert mask.errors == ()
    return apply_mask(DOCUMENT, mask.paths)


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        ("name", {"id": "cls-1", "name": "one"}),
        ("id", {"id": "cls-1"}),
        (" name , status . phase ", {"id": "cls-1", "name": "one", "status": {"phase": "Ready"}}),
        ("status.conditions.type", {"status": {"conditions": [{"type": "Ready"}, {"type": "Available"}]}}),
        ("status,status.phase", {"status": DOCUMENT["status"]}),
        ("status.phase,status", {"status": DOCUMENT["status"]}),
        ("metadata.labels.env", {"metadata": {"labels": {"env": "prod"}}}),
        ('metadata.labels."app.kubernetes.io/name"', {"metadata": {"labels": {"app.kubernetes.io/name": "shop"}}}),
        ('metadata.labels."a,b",name', {"name": "one", "metadata": {"labels": {"a,b": "c"}}}),
        ("status.nowhere,name.deeper", {"status": {}}),
    ],
)
def test_what_is_kept(fields: str, kept: dict[str, Any]) -> None:
    assert masked(fields) == {"id": "cls-1", **kept}


def test_fields_keep_the_order_of_the_document() -> None:
    assert list(masked("status,name")) == ["id", "name", "status"]


def test_the_document_stays_as_it_was() -> None:
    before = repr(DOCUMENT)
    masked("status.conditions.type")
    assert repr(DOCUMENT) == before


def test_a_mask_given_twice_is_one() -> None:
    assert masked("name", "status.phase") == masked("name,status.phase")


def test_nothing_asked_for_is_no_mask() -> None:
    mask = read_fields([], KNOWN)
    assert (mask.paths, mask.errors) == ((), ())
    assert mask_answer(b'{"id": 1, "a": 2}', mask) == b'{"id": 1, "a": 2}'


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("name,", 'at character 6: the list ends here, expected a key such as phase or "a.key"'),
        (".name", 'at character 1: found ".name", expected a key such as phase or "a.key"'),
        ("id..b", 'at character 4: found ".b", expected a key such as phase or "a.key"'),
        ("id b", 'at character 4: found "b", expected a dot or a comma'),
        ('id."b', 'at character 4: found ""b", expected a key such as phase or "a.key"'),
        (",".join(f"id.k{n}" for n in range(MAX_PATHS + 1)), "at most 100 paths of 32 keys each are allowed"),
        ("id." + ".".join("k" * MAX_DEPTH), "at most 100 paths of 32 keys each are allowed"),
        ("  ", "fields has no value; give it one or leave it out"),
        ("*", 'at character 1: there is no field "*"; there are id, name, metadata, status'),
        ("id,Name.x", 'at character 4: there is no field "Name", did you mean "name"?'),
    ],
)
def test_what_is_wrong(fields: str, message: str) -> None:
    mask = read_fields([fields], KNOWN)
    assert mask.paths == ()
    assert [(error.pointer, error.message) for error in mask.errors] == [("fields", message)]


@given(st.text(alphabet='ab.," \x00\ud800é', max_size=30) | st.text(max_size=30))
@example("x" * 5000)
@example('"' * 50)
def test_any_text_is_read(fields: str) -> None:
    mask = read_fields([fields], KNOWN)
    assert bool(mask.paths) != bool(mask.errors)
    assert apply_mask(DOCUMENT, mask.paths)["id"] == "cls-1"
