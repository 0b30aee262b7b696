"""The binder: every kind of type, every kind of problem, with its exact place and text."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal, TypeVar

import pytest
from msgspec import Meta, Struct, field

from hyperfleet.documents import bind, load, read
from hyperfleet.documents.durations import Duration

T = TypeVar("T")


class Level(enum.Enum):
    """An enumeration."""

    LOW = "low"
    HIGH = "high"


class Template(Struct, frozen=True, rename={"true_": "true", "false_": "false"}, forbid_unknown_fields=True):
    """A struct whose keys YAML takes for booleans."""

    true_: str = ""
    false_: str = ""


class Grace(Struct, frozen=True, tag="grace", tag_field="kind", forbid_unknown_fields=True):
    """One alternative."""

    wait: Duration


class Limit(Struct, frozen=True, tag="limit", tag_field="kind", forbid_unknown_fields=True):
    """Another alternative."""

    most: int


class Window(Struct, frozen=True, forbid_unknown_fields=True):
    """A struct with a rule of its own."""

    first: int
    last: int

    def __post_init__(self) -> None:
        if self.first > self.last:
            raise ValueError("first is after last")


class Sample(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A little of everything."""

    name: Annotated[str, Meta(pattern="^[a-z]+$", max_length=8, extra={"expected": "a name such as dns"})]
    stale_threshold: Duration = timedelta(minutes=10)
    timeout: Duration | None = None
    note: str | None = None
    replicas: Annotated[int, Meta(ge=1, le=9)] = 1
    even: Annotated[int, Meta(multiple_of=2)] = 0
    ratio: Annotated[float, Meta(gt=0, lt=1)] = 0.5
    enabled: bool = True
    status: Literal["True", "False", "Unknown"] = "True"
    level: Level = Level.LOW
    number: Literal[1, 2] = 1
    tags: Annotated[tuple[str, ...], Meta(max_length=2)] = ()
    items: Annotated[list[int], Meta(min_length=1)] = field(default_factory=list)
    unique: frozenset[str] = frozenset()
    pair: tuple[str, int] = ("", 0)
    labels: Mapping[str, str] = field(default_factory=dict)
    small: Annotated[dict[str, int], Meta(max_length=1)] = field(default_factory=dict)
    template: Template = Template()
    action: Grace | Limit | None = None
    window: Window | None = None
    either: int | str | tuple[str, ...] = 0
    flag: bool | int = False
    nothing: None = None
    anything: Any = None


def bound(text: str, type_: type[T]) -> T:
    """Load a value without problems."""
    loaded = load(text, type_, file="f.yaml")
    assert loaded.problems == ()
    assert loaded.value is not None
    return loaded.value


def problems(text: str, type_: type[object] = Sample) -> list[str]:
    """Return every problem as a line."""
    loaded = load(text, type_, file="f.yaml")
    assert loaded.value is None
    return [f"{problem} [{problem.code} {problem.place.path}]" for problem in loaded.problems]


@pytest.mark.parametrize(
    ("yaml", "attribute", "value"),
    [
        ("staleThreshold: 1h30m", "stale_threshold", timedelta(minutes=90)),
        ("timeout: 5s", "timeout", timedelta(seconds=5)),
        ("timeout:", "timeout", None),
        ("note: ''", "note", ""),
        ("replicas: 3", "replicas", 3),
        ("replicas: 3.0", "replicas", 3),
        ("ratio: 1e-1", "ratio", 0.1),
        ("enabled: False", "enabled", False),
        ("status: Unknown", "status", "Unknown"),
        ("status: 'True'", "status", "True"),
        ("level: high", "level", Level.HIGH),
        ("number: 2", "number", 2),
        ("tags: [a, b]", "tags", ("a", "b")),
        ("items: [1]", "items", [1]),
        ("unique: [a, b]", "unique", frozenset("ab")),
        ("pair: [a, 1]", "pair", ("a", 1)),
        ("labels: {a: b, 'true': c}", "labels", {"a": "b", "true": "c"}),
        ("template: {true: yes, 'false': no}", "template", Template(true_="yes", false_="no")),
        ("template: {True: yes}", "template", Template(true_="yes")),
        ("action: {kind: grace, wait: 5m}", "action", Grace(wait=timedelta(minutes=5))),
        ("action: {kind: limit, most: 5}", "action", Limit(most=5)),
        ("action:", "action", None),
        ("window: {first: 1, last: 2}", "window", Window(first=1, last=2)),
        ("either: 5", "either", 5),
        ("either: x", "either", "x"),
        ("either: [x]", "either", ("x",)),
        ("flag: true", "flag", True),
        ("flag: 2", "flag", 2),
        ("nothing: ~", "nothing", None),
        ("anything: {a: [1, {2: ~}]}", "anything", {"a": [1, {"2": None}]}),
    ],
)
def test_values(yaml: str, attribute: str, value: object) -> None:
    found = getattr(bound(f"name: dns\n{yaml}\n", Sample), attribute)
    assert found == value
    assert type(found) is type(value)


def test_defaults() -> None:
    assert bound("name: dns", Sample) == Sample(name="dns")


# Each line stands alone below a valid `name:`, so its problem is in line 2.
@pytest.mark.parametrize(
    ("yaml", "problem"),
    [
        (
            "replica: 1",
            (
                '1: unknown key "replica", did you mean "replicas"? Allowed here: name, staleThreshold, timeout, note,'
                " replicas, even, ratio, enabled, status, level, number, tags, items, unique, pair, labels, small,"
                " template, action, window, either, flag, nothing, anything [UnknownKey /replica]"
            ),
        ),
        (
            "template: {zzz: 1}",
            '12: unknown key "zzz". Allowed here: true, false [UnknownKey /template/zzz]',
        ),
        (
            "template: {True: x, 'true': y}",
            '21: the key "true" is here twice, first in line 2 [DuplicateKey /template/true]',
        ),
        (
            "staleThreshold: [1]",
            "17: expected a duration such as 10m, found a list [WrongType /staleThreshold]",
        ),
        (
            "staleThreshold: 90",
            (
                "17: expected a duration such as 10m, found the number 90: add a unit, such as 90s"
                " [WrongType /staleThreshold]"
            ),
        ),
        (
            "staleThreshold: 1d",
            '17: a duration has no unit for days: write 24h for "1d" [NotAllowed /staleThreshold]',
        ),
        ("staleThreshold:", "1: expected a duration such as 10m, found nothing [WrongType /staleThreshold]"),
        ("note: 5", '7: expected text, found the number 5: put it in quotes, "5" [WrongType /note]'),
        ("note: true", '7: expected text, found the boolean true: put it in quotes, "true" [WrongType /note]'),
        ("note: {a: b}", "7: expected text, found a mapping [WrongType /note]"),
        ("replicas: 0", "11: expected at least 1, found 0 [OutOfRange /replicas]"),
        ("replicas: 10", "11: expected at most 9, found 10 [OutOfRange /replicas]"),
        ("replicas: 1.5", "11: expected a whole number, found the number 1.5 [WrongType /replicas]"),
        ("replicas: true", "11: expected a whole number, found the boolean true [WrongType /replicas]"),
        ("replicas: '1'", '11: expected a whole number, found the text "1" [WrongType /replicas]'),
        ("even: 3", "7: expected a multiple of 2, found 3 [OutOfRange /even]"),
        ("ratio: 0", "8: expected more than 0, found 0 [OutOfRange /ratio]"),
        ("ratio: 1.0", "8: expected less than 1, found 1.0 [OutOfRange /ratio]"),
        ("ratio: .inf", "8: expected a number, found the number .inf [WrongType /ratio]"),
        (
            "enabled: 'true'",
            '10: expected true or false, found the text "true": leave out the quotes [WrongType /enabled]',
        ),
        ("enabled: yes", '10: expected true or false, found the text "yes" [WrongType /enabled]'),
        (
            "status: True",
            (
                '9: expected one of "False", "True", "Unknown", found the boolean True: put it in quotes, "True"'
                " [WrongType /status]"
            ),
        ),
        (
            "status: unknwn",
            (
                '9: expected one of "False", "True", "Unknown", found the text "unknwn", did you mean "Unknown"?'
                " [NotAllowed /status]"
            ),
        ),
        ("level: mid", '8: expected one of "low", "high", found the text "mid" [NotAllowed /level]'),
        ("number: true", "9: expected one of 1, 2, found the boolean true [NotAllowed /number]"),
        ("number: [1]", "9: expected one of 1, 2, found a list [WrongType /number]"),
        ("tags: [a, b, c]", "7: expected at most 2 items, found 3 [TooLong /tags]"),
        ("tags: a", '7: expected a list, found the text "a" [WrongType /tags]'),
        ("tags:\n  # why\n", "1: expected a list, found nothing [WrongType /tags]"),
        ("tags: [a, [b]]", "11: expected text, found a list [WrongType /tags/1]"),
        ("items: []", "8: expected at least 1 item, found 0 [TooShort /items]"),
        ("unique: [a, b, a]", '16: the text "a" is in this list twice [DuplicateItem /unique/2]'),
        ("pair: [a]", "7: expected a list of 2 items, found a list [WrongType /pair]"),
        ("pair: [a, b]", '11: expected a whole number, found the text "b" [WrongType /pair/1]'),
        (
            "labels: {true: x}",
            '10: expected text, found the boolean true: put it in quotes, "true" [WrongType /labels/true]',
        ),
        ("labels: {a: ~}", "13: expected text, found nothing [WrongType /labels/a]"),
        ("labels: [a]", "9: expected a mapping, found a list [WrongType /labels]"),
        ("small: {a: 1, b: 2}", "8: expected at most 1 key, found 2 [TooLong /small]"),
        ("template: x", '11: expected a mapping, found the text "x" [WrongType /template]'),
        ("action: {kind: grace}", '9: the key "wait" is missing [MissingKey /action/wait]'),
        (
            "action: {wait: 5m}",
            '9: the key "kind" is missing, expected one of "grace", "limit" [MissingKey /action/kind]',
        ),
        (
            "action: {kind: other}",
            '16: expected one of "grace", "limit", found the text "other" [NotAllowed /action/kind]',
        ),
        ("action: 5", "9: expected a mapping or nothing, found the number 5 [WrongType /action]"),
        ("window: {first: 2, last: 1}", "9: first is after last [NotAllowed /window]"),
        (
            "either: {a: b}",
            "9: expected a whole number or text or a list, found a mapping [WrongType /either]",
        ),
        ("either:", "1: expected a whole number or text or a list, found nothing [WrongType /either]"),
        ("nothing: 1", "10: expected nothing, found the number 1 [WrongType /nothing]"),
    ],
)
def test_problems(yaml: str, problem: str) -> None:
    assert problems(f"name: dns\n{yaml}\n") == [f"f.yaml:2:{problem}"]


def test_everything_is_reported_at_once_in_the_order_of_the_text() -> None:
    text = """\
replicas: 100
name: NOT A NAME!
tags: [1, 2, 3]
window:
  last: x
  frist: 1
"""
    assert problems(text) == [
        "f.yaml:1:11: expected at most 9, found 100 [OutOfRange /replicas]",
        'f.yaml:2:7: expected a name such as dns (pattern ^[a-z]+$), found the text "NOT A NAME!" [NotAllowed /name]',
        "f.yaml:2:7: expected at most 8 characters, found 11 [TooLong /name]",
        "f.yaml:3:7: expected at most 2 items, found 3 [TooLong /tags]",
        'f.yaml:3:8: expected text, found the number 1: put it in quotes, "1" [WrongType /tags/0]',
        'f.yaml:3:11: expected text, found the number 2: put it in quotes, "2" [WrongType /tags/1]',
        'f.yaml:3:14: expected text, found the number 3: put it in quotes, "3" [WrongType /tags/2]',
        'f.yaml:5:3: the key "first" is missing [MissingKey /window/first]',
        'f.yaml:5:9: expected a whole number, found the text "x" [WrongType /window/last]',
        'f.yaml:6:3: unknown key "frist", did you mean "first"? Allowed here: first, last [UnknownKey /window/frist]',
    ]


def test_a_missing_key() -> None:
    assert problems("note: x\n") == ['f.yaml:1:1: the key "name" is missing [MissingKey /name]']


def test_a_problem_behind_aliases_is_told_once_where_it_is_written() -> None:
    text = "- &a {first: x, last: 1}\n- *a\n- *a\n"
    assert problems(text, tuple[Window, ...]) == [
        'f.yaml:1:14: expected a whole number, found the text "x" [WrongType /0/first]'
    ]


def test_one_tagged_struct_needs_its_tag() -> None:
    assert problems("most: 1", Limit) == ['f.yaml:1:1: the key "kind" is missing [MissingKey /kind]']
    assert problems("{kind: x, most: 1}", Limit) == [
        'f.yaml:1:8: expected "limit", found the text "x" [NotAllowed /kind]'
    ]


class Open(Struct, frozen=True):
    """A struct that allows unknown keys."""

    a: int = 0


class Closed(Struct, frozen=True, forbid_unknown_fields=True):
    """A struct without keys."""


def test_unknown_keys_are_for_the_struct_to_forbid() -> None:
    assert bound("{a: 1, b: 2}", Open) == Open(a=1)
    assert problems("b: 2", Closed) == ['f.yaml:1:1: unknown key "b". No key is allowed here [UnknownKey /b]']


def test_a_type_that_documents_cannot_hold_is_a_mistake_of_the_program() -> None:
    with pytest.raises(TypeError, match="documents cannot hold"):
        load("x", bytes, file="f.yaml")


def test_long_text_is_cut_in_messages() -> None:
    (problem,) = problems(f"name: dns\nreplicas: {'x' * 60}\n")
    assert f'found the text "{"x" * 39}…"' in problem


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["f.yaml:1:1: the document is empty [Empty ]"]),
        ("---\n", ["f.yaml:2:1: expected a mapping, found nothing [WrongType ]"]),
        (
            "name: a\n---\nname: b\n",
            ["f.yaml:3:1: expected one document, here a second one begins [TooManyDocuments ]"],
        ),
        (
            "name: a\nname: b\nreplicas: x\n",
            [
                'f.yaml:2:1: the key "name" is here twice, first in line 1 [DuplicateKey /name]',
                'f.yaml:3:11: expected a whole number, found the text "x" [WrongType /replicas]',
            ],
        ),
    ],
)
def test_problems_of_the_document_as_a_whole(text: str, expected: list[str]) -> None:
    assert problems(text) == expected


def test_several_documents_are_bound_one_by_one() -> None:
    reading = read("{first: 1, last: 2}\n---\n{first: 1}\n", "f.yaml")
    good, bad = (bind(document, Window) for document in reading.documents)
    assert good == (Window(first=1, last=2), ())
    assert bad.value is None
    assert [str(problem) for problem in bad.problems] == ['f.yaml:3:1: the key "last" is missing']


def test_places_of_a_loaded_value() -> None:
    loaded = load("name: dns\ntags:\n  - a\n  - b c\n", Sample, file="f.yaml")
    assert str(loaded.places.inside("/tags/1", 1, 3)) == "f.yaml:4:7"
    assert str(load("", Sample, file="f.yaml").places.value("/name")) == "f.yaml:1:1"
