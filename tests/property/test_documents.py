"""Laws of documents: reading never fails, binder and schema agree, durations survive being written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal

from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from msgspec import Meta, Struct, field

from hyperfleet.documents import pointer
from hyperfleet.documents.durations import MAX_DURATION, Duration, format_duration, parse_duration
from hyperfleet.documents.loader import load
from hyperfleet.documents.nodes import to_plain
from hyperfleet.documents.reader import read
from hyperfleet.documents.schema import describe_schema


class Template(Struct, frozen=True, rename={"true_": "true", "false_": "false"}, forbid_unknown_fields=True):
    """A struct whose keys YAML takes for booleans."""

    true_: Annotated[str, Meta(max_length=3)]
    false_: str | None = None


class Wait(Struct, frozen=True, tag="wait", tag_field="kind", forbid_unknown_fields=True):
    """One alternative."""

    time: Duration


class Count(Struct, frozen=True, tag="count", tag_field="kind"):
    """Another alternative, open for unknown keys."""

    most: Annotated[int, Meta(ge=1, lt=4)]


class Sample(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A little of everything."""

    name: Annotated[str, Meta(pattern="^[a-c]*$", min_length=1)]
    stale_after: Duration = timedelta(minutes=10)
    ratio: Annotated[float, Meta(gt=0, le=2)] = 1
    status: Literal["True", "False"] | None = None
    tags: Annotated[tuple[str, ...], Meta(max_length=2)] = ()
    unique: frozenset[str] = frozenset()
    pair: tuple[str, bool] = ("", False)
    labels: Mapping[str, int] = field(default_factory=dict)
    template: Template | None = None
    action: Wait | Count | None = None
    children: tuple[Sample, ...] = ()


VALIDATOR = Draft202012Validator(describe_schema(Sample, id_="https://example.com/sample.json"))

texts = st.sampled_from(["", "a", "abc", "abcd", "True", "wait", "count", "10m", "1.5h", "5", "-1s", "1d"])
scalars = st.none() | st.booleans() | st.integers(-1, 5) | st.sampled_from([0.5, 2.5]) | texts
names = st.sampled_from(["true", "false", "kind", "time", "most", "name", "tags", "other"])
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=5,
)


def mostly(good: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return mostly what fits, now and then anything."""
    return st.integers(0, 9).flatmap(lambda dice: anything if dice == 0 else good)


actions: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"kind": mostly(st.sampled_from(["wait", "count"]))},
    optional={"time": mostly(st.just("1h")), "most": mostly(st.integers(0, 4)), "other": anything},
)
documents: st.SearchStrategy[dict[str, Any]] = st.deferred(
    lambda: st.fixed_dictionaries(
        {"name": mostly(st.sampled_from(["a", "abc"]))},
        optional={
            "staleAfter": mostly(st.sampled_from(["10m", "1h30m", "0", "1.5h"])),
            "ratio": mostly(st.sampled_from([1, 2, 0.5, 0, 3])),
            "status": mostly(st.sampled_from(["True", "False", None])),
            "tags": mostly(st.lists(texts, max_size=3)),
            "unique": mostly(st.lists(texts, max_size=3)),
            "pair": mostly(st.tuples(texts, st.booleans()).map(list)),
            "labels": mostly(st.dictionaries(names, st.integers(), max_size=3)),
            "template": mostly(st.fixed_dictionaries({"true": texts}, optional={"false": texts})),
            "action": mostly(actions),
            "children": mostly(st.lists(documents, max_size=1)),
            "nmae": st.just("a"),
        },
    )
)


@given(document=mostly(documents))
def test_binder_and_schema_accept_the_same_documents(document: object) -> None:
    loaded = load(json.dumps(document), Sample, file="f.yaml")
    assert (loaded.value is not None) == VALIDATOR.is_valid(document), loaded.problems
    assert (loaded.value is None) == bool(loaded.problems)


@given(document=documents)
def test_every_problem_is_placed_inside_the_text(document: object) -> None:
    text = json.dumps(document, indent=1)
    lines = text.split("\n")
    problems = load(text, Sample, file="f.yaml").problems
    assert list(problems) == sorted(problems)
    for problem in problems:
        assert 1 <= problem.place.column <= len(lines[problem.place.line - 1])


@given(
    text=st.text(st.sampled_from("ab01.:-?![]{}&*<|>'\"\\#%,~@ \t\n\r\ufeff\u2028é"), max_size=40)
    | st.text(max_size=40)
)
@example(text='"\\U00110000"')
@example(text="%YAML 1.21\n---\n")
def test_no_text_makes_reading_fail(text: str) -> None:
    for problem in read(text, "f.yaml").problems:
        assert 1 <= problem.place.line <= len(text.splitlines()) + 1


@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text("aé'\"\\ :#\n", max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab/~<", max_size=3), inner, max_size=3),
    )
)
def test_json_is_read_as_json(value: object) -> None:
    text = json.dumps(value, ensure_ascii=False).replace("Infinity", ".inf")
    reading = read(text, "f.yaml")
    assert reading.problems == ()
    assert to_plain(reading.documents[0].root) == value


TEMPLATES = [
    ("k: 'X'", "/k"),
    ('k: "X"', "/k"),
    ("k: |\n   X", "/k"),
    ("k: [z, &a 'X']", "/k/1"),
    ("k:\n  - |-\n   X", "/k/0"),
]


@given(text=st.text("ab c=", min_size=1).map(str.strip).filter(bool), data=st.data())
def test_inside_points_at_the_same_character(text: str, data: st.DataObject) -> None:
    template, path = data.draw(st.sampled_from(TEMPLATES))
    source = template.replace("X", text)
    column = data.draw(st.integers(1, len(text)))
    place = load(source, dict[str, Any], file="f.yaml").places.inside(path, 1, column)
    assert source.split("\n")[place.line - 1][place.column - 1] == text[column - 1]


@given(tokens=st.lists(st.text("a/~01")))
def test_pointers_can_be_split_again(tokens: list[str]) -> None:
    assert pointer.split(pointer.join("", *tokens)) == tuple(tokens)


@given(duration=st.timedeltas(-MAX_DURATION, MAX_DURATION))
def test_durations_survive_being_written(duration: timedelta) -> None:
    assert parse_duration(format_duration(duration), allow_negative=True) == duration


@given(text=st.text(".019+-nuµmshd", max_size=12))
def test_what_is_no_duration_raises_only_what_is_promised(text: str) -> None:
    try:
        duration = parse_duration(text)
    except ValueError as error:
        assert "duration" in str(error)  # noqa: PT017 - both outcomes are right, each has its law
    else:
        assert duration >= timedelta()
