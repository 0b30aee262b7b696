"""Comparing documents: what is found is all there is, and nothing else."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from hyperfleet.model.json_value import is_same
from hyperfleet.services.difference import DocumentDifference, Names, compare_documents

NAMES: Names = {("list",): "name"}


def found(before: Any, after: Any) -> dict[str, tuple[str, Any, Any]]:
    """Return the differences by path, with their kinds."""
    return {
        "/".join(each.path): (each.kind, each.before, each.after) for each in compare_documents(before, after, NAMES)
    }


@pytest.mark.parametrize(
    ("before", "after", "expected", "because"),
    [
        ({}, {}, {}, "there is nothing"),
        ({"a": 1}, {"a": 1}, {}, "the same"),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, {}, "objects have no order"),
        ({"a": 1}, {"a": 1.0}, {"a": ("changed", 1, 1.0)}, "JSON spells them differently"),
        ({"a": 1}, {"a": True}, {"a": ("changed", 1, True)}, "only Python takes them for equal"),
        ({"a": None}, {}, {"a": ("removed", None, UNSET)}, "null is a value"),
        ({}, {"a": None}, {"a": ("added", UNSET, None)}, "null is a value"),
        ({"a": {}}, {"a": []}, {"a": ("changed", {}, [])}, "both are empty, but not alike"),
        ({"a": {"b": 1}}, {"a": 1}, {"a": ("changed", {"b": 1}, 1)}, "nothing inside to compare"),
        ({"a": [1, 2]}, {"a": [1, 3, 4]}, {"a/1": ("changed", 2, 3), "a/2": ("added", UNSET, 4)}, "place by place"),
        (
            {"list": [{"name": "x", "v": 1}, {"name": "y"}]},
            {"list": [{"name": "z"}, {"name": "x", "v": 2}]},
            {
                "list/x/v": ("changed", 1, 2),
                "list/y": ("removed", {"name": "y"}, UNSET),
                "list/z": ("added", UNSET, {"name": "z"}),
            },
            "items with names keep them wherever they stand",
        ),
    ],
)
def test_what_is_different(before: Any, after: Any, expected: Any, because: str) -> None:
    assert found(before, after) == expected, because


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([1.0, 0.5, "", "a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
DOCUMENTS = st.dictionaries(st.sampled_from("abc"), JSON, max_size=3)


@given(DOCUMENTS, DOCUMENTS)
def test_differences_make_the_second_of_the_first(before: dict[str, Any], after: dict[str, Any]) -> None:
    made = deepcopy(before)
    differences = list(compare_documents(before, after, {}))
    removed = [each for each in differences if each.kind == "removed"]
    for difference in reversed(removed):  # from the end of lists, so that places stay what they are
        apply(made, difference)
    for difference in differences:
        if difference.kind != "removed":
            apply(made, difference)
    assert is_same(made, after)
    assert len({each.path for each in differences}) == len(differences)


@given(DOCUMENTS)
def test_nothing_differs_from_itself(document: dict[str, Any]) -> None:
    assert list(compare_documents(document, deepcopy(document), {})) == []


def apply(document: Any, difference: DocumentDifference) -> None:
    """Do to a document what a difference says."""
    *above, last = difference.path
    for key in above:
        document = document[int(key)] if isinstance(document, list) else document[key]
    place: Any = int(last) if isinstance(document, list) else last
    match difference.kind:
        case "removed":
            del document[place]
        case "added" if isinstance(document, list):
            document.append(difference.after)
        case _:
            document[place] = difference.after
