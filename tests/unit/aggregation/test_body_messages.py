"""What a bad body is told: the sentences that an author of an adapter reads, word for word."""

from __future__ import annotations

from typing import Any

import pytest

from hyperfleet.aggregation.body import BodyProblem, read_report
from tests.world import body

GOOD = body("dns", "True/Done/All records are there")


def with_condition(**fields: Any) -> dict[str, Any]:
    """Return a good body whose fourth condition has these fields."""
    return {**GOOD, "conditions": [*GOOD["conditions"], {"type": "Extra", "status": "True", **fields}]}


BAD = [
    pytest.param(None, ("", "WrongType", "a report must be an object, not null"), id="null"),
    pytest.param([], ("", "WrongType", "a report must be an object, not a list"), id="a list"),
    pytest.param({**GOOD, "adapter": None}, ("/adapter", "MissingField", "adapter is required"), id="adapter null"),
    pytest.param(
        {**GOOD, "adapter": 7}, ("/adapter", "WrongType", "adapter must be a string, not a number"), id="a number"
    ),
    pytest.param(
        {**GOOD, "adapter": "a b"},
        ("/adapter", "BadFormat", 'adapter "a b" must be a name of letters, digits and -_.'),
        id="a bad name",
    ),
    pytest.param(
        {**GOOD, "adapter": f"{'x' * 60} "},
        ("/adapter", "BadFormat", f'adapter "{"x" * 60}…" must be a name of letters, digits and -_.'),
        id="a long bad name is cut",
    ),
    pytest.param(
        {**GOOD, "adapter": f"{'x' * 59} "},
        ("/adapter", "BadFormat", f'adapter "{"x" * 59} " must be a name of letters, digits and -_.'),
        id="a bad name of sixty characters is not cut",
    ),
    pytest.param(
        {**GOOD, "adapter": "x" * 254},
        ("/adapter", "TooLong", "adapter has 254 characters; at most 253 are allowed"),
        id="a name that is too long",
    ),
    pytest.param(
        {**GOOD, "observedGeneration": None},
        ("/observedGeneration", "MissingField", "observedGeneration is required"),
        id="no generation",
    ),
    pytest.param(
        {**GOOD, "observedGeneration": True},
        ("/observedGeneration", "WrongType", "observedGeneration must be an integer, not a boolean"),
        id="a boolean generation",
    ),
    pytest.param(
        {**GOOD, "observedGeneration": 0},
        ("/observedGeneration", "OutOfRange", "observedGeneration must be at least 1, not 0"),
        id="generation 0",
    ),
    pytest.param(
        {**GOOD, "observedTime": 5},
        (
            "/observedTime",
            "BadFormat",
            'observedTime must be an RFC 3339 time with a zone such as 2025-10-17T12:00:05Z, not "5"',
        ),
        id="a bad time",
    ),
    pytest.param({**GOOD, "data": "x"}, ("/data", "WrongType", "data must be an object, not a string"), id="data"),
    pytest.param(
        {**GOOD, "metadata": 1.5}, ("/metadata", "WrongType", "metadata must be an object, not a number"), id="metadata"
    ),
    pytest.param(
        {**GOOD, "conditions": None},
        ("/conditions", "MissingField", "conditions is required: Available, Applied and Health at least"),
        id="no conditions",
    ),
    pytest.param(
        {**GOOD, "conditions": {}},
        ("/conditions", "WrongType", "conditions must be a list, not an object"),
        id="conditions is an object",
    ),
    pytest.param(
        {**GOOD, "conditions": GOOD["conditions"][:2]},
        ("/conditions", "MissingCondition", "the condition Health is required in every report"),
        id="no Health",
    ),
    pytest.param(
        {**GOOD, "conditions": [*GOOD["conditions"], "x"]},
        ("/conditions/3", "WrongType", "a condition must be an object, not a string"),
        id="a condition is text",
    ),
    pytest.param(
        with_condition(type="Applied"),
        ("/conditions/3/type", "DuplicateType", "Applied is already given at /conditions/1"),
        id="a type twice",
    ),
    pytest.param(with_condition(type=""), ("/conditions/3/type", "MissingField", "type is required"), id="no type"),
    pytest.param(
        with_condition(type="Bad Type"),
        (
            "/conditions/3/type",
            "BadFormat",
            'type "Bad Type" must be a name of letters, digits and -_. with an optional DNS prefix and /',
        ),
        id="a bad type",
    ),
    pytest.param(
        with_condition(type="T" * 317),
        ("/conditions/3/type", "TooLong", "type has 317 characters; at most 316 are allowed"),
        id="a type that is too long",
    ),
    pytest.param(
        with_condition(status="Yes"),
        ("/conditions/3/status", "NotAllowed", 'status must be True, False or Unknown, not "Yes"'),
        id="a bad status",
    ),
    pytest.param(
        with_condition(reason="not ok"),
        (
            "/conditions/3/reason",
            "BadFormat",
            (
                'reason "not ok" must start with a letter, go on with letters, digits or _,: and end with a letter, '
                "a digit or _"
            ),
        ),
        id="a bad reason",
    ),
    pytest.param(
        with_condition(reason="R" * 1025),
        ("/conditions/3/reason", "TooLong", "reason has 1025 characters; at most 1024 are allowed"),
        id="a reason that is too long",
    ),
    pytest.param(
        with_condition(message=["x"]),
        ("/conditions/3/message", "WrongType", "message must be a string, not a list"),
        id="a message that is a list",
    ),
    pytest.param(
        {**GOOD, "observed_time": None},
        (
            "/observed_time",
            "MixedSpelling",
            "observed_time is snake_case but observedGeneration at the top is camelCase; use one spelling in a body",
        ),
        id="snake_case after camelCase",
    ),
    pytest.param(
        {"adapter": "dns", "observed_generation": 1, "conditions": GOOD["conditions"], "observedTime": None},
        (
            "/observedTime",
            "MixedSpelling",
            "observedTime is camelCase but observed_generation at the top is snake_case; use one spelling in a body",
        ),
        id="camelCase after snake_case",
    ),
    pytest.param(
        {**GOOD, "data": {"a": ["ok", "\ud800"]}},
        ("/data/a/1", "BadFormat", "NUL (\\u0000) and half a surrogate pair (\\ud800 to \\udfff) are not text"),
        id="half a pair in a list in data",
    ),
    pytest.param(
        {**GOOD, "data": {"a/b~c": "\udfff"}},
        ("/data/a~1b~0c", "BadFormat", "NUL (\\u0000) and half a surrogate pair (\\ud800 to \\udfff) are not text"),
        id="half a pair below a key that needs escapes",
    ),
    pytest.param(
        {**GOOD, "data": {"a": {"\udc00": 1}}},
        ("/data/a", "BadFormat", "NUL (\\u0000) and half a surrogate pair (\\ud800 to \\udfff) are not text"),
        id="half a pair as a key is told by its object",
    ),
]


@pytest.mark.parametrize(("sent", "expected"), BAD)
def test_what_is_wrong_is_said_in_a_sentence(sent: object, expected: tuple[str, str, str]) -> None:
    assert read_report(sent).errors == (BodyProblem(*expected),)


def test_a_body_may_have_a_hundred_conditions_and_no_more() -> None:
    extra = [{"type": f"Extra{number}", "status": "True"} for number in range(97)]
    assert read_report({**GOOD, "conditions": [*GOOD["conditions"], *extra]}).errors == ()
    too_many = [*GOOD["conditions"], *extra, {"type": "One", "status": "True"}]
    assert read_report({**GOOD, "conditions": too_many}).errors == (
        BodyProblem("/conditions", "TooMany", "101 conditions; at most 100 are allowed"),
    )


def test_a_name_may_have_253_characters_and_a_generation_63_bits() -> None:
    assert read_report({**GOOD, "adapter": "x" * 253, "observedGeneration": 2**63 - 1}).errors == ()


def test_a_body_without_end_is_refused() -> None:
    endless: dict[str, Any] = {}
    endless["data"] = endless
    assert read_report(endless, "/at").errors == (BodyProblem("/at", "TooDeep", "the body is nested too deeply"),)


def test_one_field_in_both_spellings() -> None:
    errors = read_report({**GOOD, "observed_generation": 1}).errors
    same = "observed_generation and observedGeneration are the same field"
    assert BodyProblem("/observed_generation", "DuplicateField", same) in errors


def test_mixed_spelling_says_where_the_first_was_seen() -> None:
    sent = {"adapter": "dns", "conditions": [*GOOD["conditions"][:2]]}
    conditions = [
        {"type": "Available", "status": "True", "lastTransitionTime": "x"},
        {"type": "Applied", "status": "True"},
        {"type": "Health", "status": "True", "last_transition_time": "x"},
    ]
    (error,) = [e for e in read_report({**sent, "conditions": conditions}).errors if e.code == "MixedSpelling"]
    assert error.message == (
        "last_transition_time is snake_case but lastTransitionTime at /conditions/0 is camelCase; "
        "use one spelling in a body"
    )


def test_every_stray_key_is_measured_by_the_first() -> None:
    """The majority is not known while reading; the first spelling counts, and each stray key is named once."""
    sent = {**GOOD, "observed_time": None, "last_report_time": None, "lastUpdated": None}
    assert [(e.pointer, e.code) for e in read_report(sent).errors] == [
        ("/observed_time", "MixedSpelling"),
        ("/last_report_time", "MixedSpelling"),
    ]


def test_notes_are_sentences_too() -> None:
    read = read_report({**with_condition(type="ZoneNotCreated", x=1), "a/b": 1})
    assert read.notes == (
        BodyProblem("/a~1b", "UnknownField", '"a/b" is not a field of a report; ignored'),
        BodyProblem("/conditions/3/x", "UnknownField", '"x" is not a field of a condition; ignored'),
        BodyProblem(
            "/conditions/3/type",
            "NegativeType",
            "ZoneNotCreated sounds negative; a type that is good when True is easier to read",
        ),
    )


def test_a_condition_is_read_at_the_generation_of_its_report() -> None:
    report = read_report({**GOOD, "observedGeneration": 3}).report
    assert report is not None
    assert {condition.observed_generation for condition in report.conditions} == {3}


@pytest.mark.parametrize("key", ["_observedTime", "_observed_time", "ObservedTime", "observed-time"])
def test_a_key_in_another_spelling_is_another_key(key: str) -> None:
    read = read_report({**GOOD, key: "x"})
    assert (read.errors, [note.pointer for note in read.notes]) == ((), [f"/{key}"])
