"""Places: from a pointer back to the text."""

from __future__ import annotations

import pytest

from hyperfleet.document_problem import DocumentPlace, DocumentProblem, draw_caret, has_errors
from hyperfleet.documents import pointer
from hyperfleet.documents.places import Places
from hyperfleet.documents.reader import read

TEXT = """\
rules:
  - name: first
    expr: a == b
  - name: 'it''s'
    true: "x"
    expr: |
      all(list,
        # == 1)
  - expr: &shared "a + b"
  - expr: *shared
  - expr: >
      a
      b
  - expr: "a\\tb c"
  - expr: one
      two
  - expr: !!str &x # why
      late
  - expr: |2-
        indented
"""


@pytest.fixture
def places() -> Places:
    """Return the places of TEXT."""
    reading = read(TEXT, "f.yaml")
    assert reading.problems == ()
    return Places(reading.documents[0])


@pytest.mark.parametrize(
    ("path", "key", "value"),
    [
        ("", (1, 1), (1, 1)),
        ("/rules", (1, 1), (2, 3)),
        ("/rules/0", (2, 5), (2, 5)),
        ("/rules/0/expr", (3, 5), (3, 11)),
        ("/rules/1/true", (5, 5), (5, 11)),
        ("/rules/3/expr", (10, 5), (9, 11)),
        ("/rules/0/missing", (2, 5), (2, 5)),
        ("/rules/99", (1, 1), (2, 3)),
        ("/rules/x/y", (1, 1), (2, 3)),
        ("/rules/0/expr/deeper", (3, 5), (3, 11)),
    ],
)
def test_keys_and_values(places: Places, path: str, key: tuple[int, int], value: tuple[int, int]) -> None:
    assert places.key(path) == DocumentPlace("f.yaml", *key, path)
    assert places.value(path) == DocumentPlace("f.yaml", *value, path)


@pytest.mark.parametrize(
    ("path", "inside", "expected", "because"),
    [
        ("/rules/0/expr", (1, 3), (3, 13), "plain"),
        ("/rules/0/expr", (1, 7), (3, 17), "right behind the end"),
        ("/rules/0/expr", (1, 8), (3, 11), "outside: the start"),
        ("/rules/0/expr", (2, 1), (3, 11), "no such line: the start"),
        ("/rules/0/expr", (0, 0), (3, 11), "nowhere in particular: the start"),
        ("/rules/1/name", (1, 3), (4, 14), "quoted, at the escape"),
        ("/rules/1/name", (1, 4), (4, 11), "quoted, behind the escape: the start"),
        ("/rules/1/true", (1, 1), (5, 12), "double-quoted"),
        ("/rules/1/expr", (1, 5), (7, 11), "literal, first line"),
        ("/rules/1/expr", (2, 3), (8, 9), "literal, second line, more indented"),
        ("/rules/2/expr", (1, 3), (9, 22), "behind an anchor"),
        ("/rules/3/expr", (1, 3), (9, 22), "an alias: where the text is"),
        ("/rules/4/expr", (1, 1), (11, 11), "folded: the start"),
        ("/rules/5/expr", (1, 4), (14, 11), "behind an escape: the start"),
        ("/rules/6/expr", (1, 3), (15, 13), "a plain scalar of two lines, in the first"),
        ("/rules/6/expr", (1, 5), (15, 11), "a plain scalar of two lines, in the second: the start"),
        ("/rules/7/expr", (1, 2), (18, 8), "tag, anchor and comment before it"),
        ("/rules/8/expr", (1, 3), (20, 9), "indentation indicator"),
        ("/rules", (1, 1), (2, 3), "not a scalar: the start"),
    ],
)
def test_inside(places: Places, path: str, inside: tuple[int, int], expected: tuple[int, int], because: str) -> None:
    assert places.inside(path, *inside) == DocumentPlace("f.yaml", *expected, path), because


def test_windows_line_ends() -> None:
    (document,) = read("a: 1\r\nb: |\r\n  x\r\n  yz\r\n", "f.yaml").documents
    assert Places(document).inside("/b", 2, 2) == DocumentPlace("f.yaml", 4, 4, "/b")


def test_pointers_escape_what_separates_them() -> None:
    assert pointer.join("/a", "b/c", 0, "~") == "/a/b~1c/0/~0"
    assert pointer.split("/a/b~1c/0/~0") == ("a", "b/c", "0", "~")
    assert pointer.split("") == ()


def test_problems_sort_by_place_and_print_as_compilers_do() -> None:
    late = DocumentProblem(DocumentPlace("f.yaml", 12, 5), "too late", code="Late", snippet="    a ==\n        ^")
    early = DocumentProblem(DocumentPlace("f.yaml", 2, 50), "beware", code="Early", level="warning")
    assert sorted([late, early]) == [early, late]
    assert str(late) == "f.yaml:12:5: too late\n    a ==\n        ^"
    assert str(early) == "f.yaml:2:50: warning: beware"
    assert not has_errors((early,))
    assert has_errors((early, late))


def test_the_caret_stays_below_its_character_in_a_long_line() -> None:
    shown, caret = draw_caret("x" * 500 + "!" + "y" * 500, 501).split("\n")
    assert shown[caret.index("^")] == "!"
    assert len(shown) == 100
