"""Reading report bodies: every error with its pointer, both spellings, Kubernetes' limits.

See docs/semantics.md §2 row 1 and docs/semantics.md §8.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hyperfleet.aggregation.acceptance import decide
from hyperfleet.aggregation.body import ReadReport, read_report
from hyperfleet.model.resource import Resource
from tests.world import START, body

GOOD = body("dns", "True/Done/All records are there")


def errors_of(read: ReadReport) -> list[tuple[str, str]]:
    """Return pointer and code of every error, sorted: their order is no promise."""
    return sorted((error.pointer, error.code) for error in read.errors)


def notes_of(read: ReadReport) -> list[tuple[str, str]]:
    """Return pointer and code of every note."""
    return sorted((note.pointer, note.code) for note in read.notes)


def with_conditions(*extra: Any) -> dict[str, Any]:
    """Return a good body with further conditions; the first of them is number 3."""
    return {**GOOD, "conditions": [*GOOD["conditions"], *extra]}


def with_condition(**fields: Any) -> dict[str, Any]:
    """Return a good body whose fourth condition has these fields."""
    return with_conditions({"type": "Extra", "status": "True", **fields})


class TestGoodBodies:
    def test_a_report_is_read_whole(self) -> None:
        read = read_report({**GOOD, "observedTime": "2025-10-17T12:00:05Z", "data": {"a": 1}, "metadata": {"b": "c"}})
        assert read.errors == ()
        assert read.report is not None
        assert read.report.adapter == "dns"
        assert read.report.observed_generation == 1
        assert read.report.observed_time == datetime(2025, 10, 17, 12, 0, 5, tzinfo=UTC)
        assert [(c.type, c.status, c.reason, c.message) for c in read.report.conditions] == [
            ("Available", "True", "Done", "All records are there"),
            ("Applied", "True", "", ""),
            ("Health", "True", "", ""),
        ]
        assert (read.report.data, read.report.metadata) == ({"a": 1}, {"b": "c"})

    def test_time_data_and_metadata_may_be_missing(self) -> None:
        report = read_report(GOOD).report
        assert report is not None
        assert (report.observed_time, report.data, report.metadata) == (None, {}, {})

    def test_both_spellings_mean_the_same(self) -> None:
        camel = {**GOOD, "observedTime": "2025-10-17T12:00:05Z"}
        snake = {
            "adapter": "dns",
            "observed_generation": 1,
            "observed_time": "2025-10-17T12:00:05Z",
            "conditions": GOOD["conditions"],
        }
        assert read_report(snake).report == read_report(camel).report is not None

    @pytest.mark.parametrize("type_", ["Available", "Applied", "Health"])
    @pytest.mark.parametrize("status", ["True", "False", "Unknown"])
    def test_each_status_of_each_required_condition(self, type_: str, status: str) -> None:
        conditions = [
            {"type": t, "status": status if t == type_ else "True"} for t in ("Health", "Applied", "Available")
        ]
        assert read_report({**GOOD, "conditions": conditions}).errors == ()

    def test_a_time_in_another_zone_is_the_same_instant(self) -> None:
        report = read_report({**GOOD, "observedTime": "2025-10-17T14:00:05+02:00"}).report
        assert report is not None
        assert report.observed_time == START + timedelta(seconds=5)

    def test_times_that_only_the_server_sets_are_ignored(self) -> None:
        sent = {
            **GOOD,
            "lastUpdated": "1999-01-01T00:00:00Z",
            "conditions": [{**c, "lastTransitionTime": "not even a time"} for c in GOOD["conditions"]],
        }
        read = read_report(sent)
        assert read.errors == ()
        assert read.report == read_report(GOOD).report

    def test_the_server_times_of_the_contract_are_ignored_too(self) -> None:
        conditions = [{**c, "last_transition_time": "2025-10-17T12:00:05Z"} for c in GOOD["conditions"]]
        sent = {
            "adapter": "dns",
            "observed_generation": 1,
            "created_time": "2025-10-17T12:00:05Z",
            "last_report_time": "2025-10-17T12:00:05Z",
            "conditions": conditions,
        }
        assert read_report(sent).report == read_report(GOOD).report is not None

    def test_nothing_inside_data_and_metadata_is_examined(self) -> None:
        wild = {"observedGeneration": -1, "observed_generation": "x", "conditions": 3, "a/b~c": [None, {"x_y": 1.5}]}
        read = read_report({**GOOD, "data": wild, "metadata": wild})
        assert (read.errors, read.notes) == ((), ())
        assert read.report is not None
        assert read.report.data == read.report.metadata == wild

    def test_the_contracts_additional_condition_types_are_welcome(self) -> None:
        read = read_report(with_conditions({"type": "example.com/Records.Created-v1_x", "status": "Unknown"}))
        assert (read.errors, read.notes) == ((), ())


BAD = [
    pytest.param(None, [("", "WrongType")], id="null"),
    pytest.param([GOOD], [("", "WrongType")], id="a list"),
    pytest.param("dns", [("", "WrongType")], id="a string"),
    pytest.param(
        {},
        [("/adapter", "MissingField"), ("/conditions", "MissingField"), ("/observedGeneration", "MissingField")],
        id="nothing in it",
    ),
    pytest.param({**GOOD, "adapter": ""}, [("/adapter", "MissingField")], id="no adapter name"),
    pytest.param({**GOOD, "adapter": 7}, [("/adapter", "WrongType")], id="adapter is a number"),
    pytest.param({**GOOD, "adapter": "a/b"}, [("/adapter", "BadFormat")], id="adapter with a slash"),
    pytest.param({**GOOD, "adapter": "dns\n"}, [("/adapter", "BadFormat")], id="adapter with a line break"),
    pytest.param({**GOOD, "observedGeneration": 0}, [("/observedGeneration", "OutOfRange")], id="generation 0"),
    pytest.param({**GOOD, "observedGeneration": -1}, [("/observedGeneration", "OutOfRange")], id="generation -1"),
    pytest.param({**GOOD, "observedGeneration": 2**63}, [("/observedGeneration", "OutOfRange")], id="generation 2^63"),
    pytest.param({**GOOD, "observedGeneration": "1"}, [("/observedGeneration", "WrongType")], id="generation as text"),
    pytest.param({**GOOD, "observedGeneration": True}, [("/observedGeneration", "WrongType")], id="generation true"),
    pytest.param({**GOOD, "observedGeneration": 1.5}, [("/observedGeneration", "WrongType")], id="generation 1.5"),
    pytest.param({**GOOD, "observedTime": "yesterday"}, [("/observedTime", "BadFormat")], id="time in words"),
    pytest.param({**GOOD, "observedTime": "2025-10-17T12:00:05"}, [("/observedTime", "BadFormat")], id="no zone"),
    pytest.param({**GOOD, "observedTime": 1760702405}, [("/observedTime", "BadFormat")], id="time as a number"),
    pytest.param({**GOOD, "data": []}, [("/data", "WrongType")], id="data is a list"),
    pytest.param({**GOOD, "metadata": "x"}, [("/metadata", "WrongType")], id="metadata is text"),
    pytest.param({**GOOD, "conditions": {}}, [("/conditions", "WrongType")], id="conditions is an object"),
    pytest.param({**GOOD, "conditions": []}, [("/conditions", "MissingCondition")] * 3, id="no conditions"),
    pytest.param({**GOOD, "conditions": GOOD["conditions"][:2]}, [("/conditions", "MissingCondition")], id="no Health"),
    pytest.param(with_conditions("x"), [("/conditions/3", "WrongType")], id="a condition is text"),
    pytest.param(
        with_conditions({}),
        [("/conditions/3/status", "MissingField"), ("/conditions/3/type", "MissingField")],
        id="an empty condition",
    ),
    pytest.param(
        with_conditions({"type": "Health", "status": "True"}),
        [("/conditions/3/type", "DuplicateType")],
        id="a required type twice",
    ),
    pytest.param(
        with_conditions({"type": "Extra", "status": "True"}, {"type": "Extra", "status": "True"}),
        [("/conditions/4/type", "DuplicateType")],
        id="an additional type twice",
    ),
    pytest.param(with_condition(status="true"), [("/conditions/3/status", "NotAllowed")], id="status true"),
    pytest.param(with_condition(status=True), [("/conditions/3/status", "WrongType")], id="status is a boolean"),
    pytest.param(with_condition(type="Bad Type"), [("/conditions/3/type", "BadFormat")], id="type with a space"),
    pytest.param(with_condition(type="-Extra"), [("/conditions/3/type", "BadFormat")], id="type starts with -"),
    pytest.param(with_condition(type="Example.com/Extra"), [("/conditions/3/type", "BadFormat")], id="bad prefix"),
    pytest.param(with_condition(type="a/b/c"), [("/conditions/3/type", "BadFormat")], id="two slashes in a type"),
    pytest.param(with_condition(reason="not ok"), [("/conditions/3/reason", "BadFormat")], id="reason with a space"),
    pytest.param(with_condition(reason="1st"), [("/conditions/3/reason", "BadFormat")], id="reason starts with 1"),
    pytest.param(with_condition(reason="Bad:"), [("/conditions/3/reason", "BadFormat")], id="reason ends with :"),
    pytest.param(with_condition(reason="Ok\n"), [("/conditions/3/reason", "BadFormat")], id="reason, a line break"),
    pytest.param(with_condition(reason=5), [("/conditions/3/reason", "WrongType")], id="reason is a number"),
    pytest.param(with_condition(message=["x"]), [("/conditions/3/message", "WrongType")], id="message is a list"),
]


@pytest.mark.parametrize(("sent", "expected"), BAD)
def test_bad_bodies(sent: object, expected: list[tuple[str, str]]) -> None:
    read = read_report(sent)
    assert errors_of(read) == expected
    assert read.report is None
    assert all(error.message for error in read.errors)


def test_every_error_is_found_at_once() -> None:
    sent = {
        "adapter": "a b",
        "observedGeneration": 0,
        "observedTime": "now",
        "conditions": [
            {"type": "Available", "status": "Yes", "reason": "not ok"},
            {"type": "Available", "status": "True"},
            {"type": "?", "status": "True", "message": 1},
            None,
        ],
        "data": 1,
        "metadata": 2,
    }
    assert errors_of(read_report(sent)) == [
        ("/adapter", "BadFormat"),
        ("/conditions", "MissingCondition"),
        ("/conditions", "MissingCondition"),
        ("/conditions/0/reason", "BadFormat"),
        ("/conditions/0/status", "NotAllowed"),
        ("/conditions/1/type", "DuplicateType"),
        ("/conditions/2/message", "WrongType"),
        ("/conditions/2/type", "BadFormat"),
        ("/conditions/3", "WrongType"),
        ("/data", "WrongType"),
        ("/metadata", "WrongType"),
        ("/observedGeneration", "OutOfRange"),
        ("/observedTime", "BadFormat"),
    ]


def test_pointers_name_the_key_as_it_was_spelt() -> None:
    sent = {"adapter": "dns", "observed_generation": 0, "observed_time": "x", "conditions": GOOD["conditions"]}
    assert errors_of(read_report(sent)) == [("/observed_generation", "OutOfRange"), ("/observed_time", "BadFormat")]


def test_pointers_start_where_the_report_stands() -> None:
    """A body with several reports (`adapterStatuses`) reads each at its own pointer."""
    read = read_report({**GOOD, "adapter": 1, "conditions": [None]}, "/adapterStatuses/2")
    assert errors_of(read) == [
        ("/adapterStatuses/2/adapter", "WrongType"),
        *[("/adapterStatuses/2/conditions", "MissingCondition")] * 3,
        ("/adapterStatuses/2/conditions/0", "WrongType"),
    ]
    assert errors_of(read_report(None, "/adapterStatuses/0")) == [("/adapterStatuses/0", "WrongType")]


class TestLimits:
    """The limits of the Kubernetes API: type 316, reason 1024, message 32768 characters."""

    @pytest.mark.parametrize(
        ("field", "most", "value"),
        [("type", 316, "T"), ("reason", 1024, "R"), ("message", 32768, "ü")],
    )
    def test_a_field_may_be_as_long_as_its_limit_and_no_longer(self, field: str, most: int, value: str) -> None:
        assert read_report(with_condition(**{field: value * most})).errors == ()
        too_long = read_report(with_condition(**{field: value * (most + 1)}))
        assert errors_of(too_long) == [(f"/conditions/3/{field}", "TooLong")]

    @pytest.mark.parametrize("type_", ["A", "a", "0", "A.b_c-D", "example.com/A", "a.b-c.d/Ready", "sub.example.com/x"])
    def test_types_that_kubernetes_takes(self, type_: str) -> None:
        assert read_report(with_condition(type=type_)).errors == ()

    @pytest.mark.parametrize("reason", ["", "A", "JobSucceeded", "a_b", "A1,B2:C3", "Trailing_", "X,y:z0"])
    def test_reasons_that_kubernetes_takes(self, reason: str) -> None:
        assert read_report(with_condition(reason=reason)).errors == ()


class TestSpelling:
    def test_mixing_on_the_top_level(self) -> None:
        sent = {**GOOD, "observed_time": "2025-10-17T12:00:05Z"}
        assert errors_of(read_report(sent)) == [("/observed_time", "MixedSpelling")]

    def test_mixing_between_report_and_condition(self) -> None:
        read = read_report(with_condition(last_transition_time="2025-10-17T12:00:05Z"))
        assert errors_of(read) == [("/conditions/3/last_transition_time", "MixedSpelling")]

    def test_every_stray_key_is_named(self) -> None:
        sent = {**GOOD, "observed_time": "2025-10-17T12:00:05Z", "last_report_time": "x", "created_time": "y"}
        assert len(read_report(sent).errors) == 3
        assert {code for _, code in errors_of(read_report(sent))} == {"MixedSpelling"}

    def test_the_same_field_in_both_spellings(self) -> None:
        codes = {code for _, code in errors_of(read_report({**GOOD, "observed_generation": 1}))}
        assert "MixedSpelling" in codes

    def test_keys_of_one_word_fit_both(self) -> None:
        read = read_report({"adapter": "dns", "observed_generation": 1, "conditions": GOOD["conditions"], "data": {}})
        assert read.errors == ()


class TestNotes:
    @pytest.mark.parametrize("type_", ["DNSRecordsNotCreated", "DNSRecordsFailed", "ValidationFailed", "NotReady"])
    def test_types_that_sound_negative_are_accepted_with_a_note(self, type_: str) -> None:
        """The guide's examples of types not to use."""
        read = read_report(with_condition(type=type_))
        assert read.report is not None
        assert notes_of(read) == [("/conditions/3/type", "NegativeType")]

    @pytest.mark.parametrize(
        "type_", ["DNSRecordsCreated", "ValidationComplete", "Notified", "NotesWritten", "Notable"]
    )
    def test_types_that_sound_positive_get_none(self, type_: str) -> None:
        assert read_report(with_condition(type=type_)).notes == ()

    def test_unknown_keys_are_ignored_with_a_note(self) -> None:
        read = read_report({**GOOD, "generation": 1, "a/b~c": 2})
        assert read.report == read_report(GOOD).report
        assert notes_of(read) == [("/a~1b~0c", "UnknownField"), ("/generation", "UnknownField")]

    def test_notes_do_not_depend_on_errors(self) -> None:
        read = read_report({**with_condition(type="NotReady"), "adapter": ""})
        assert errors_of(read) == [("/adapter", "MissingField")]
        assert notes_of(read) == [("/conditions/3/type", "NegativeType")]


HALF = "\ud800"  # half a surrogate pair: JSON may escape it, UTF-8 cannot carry it
ANY_TEXT = st.text(max_size=12) | st.just(HALF)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=12,
)
KEYS = ("adapter", "observedGeneration", "observed_generation", "observedTime", "conditions", "data", "metadata")
CONDITIONS = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["Available", "Applied", "Health", "Extra"]) | JSON, "status": st.just("True") | JSON},
        optional={"reason": ANY_TEXT | JSON, "message": ANY_TEXT | JSON, "lastTransitionTime": JSON},
    )
    | JSON,
    max_size=5,
)
REPORT_LIKE = st.fixed_dictionaries({}, optional=dict.fromkeys(KEYS, JSON) | {"conditions": CONDITIONS | JSON})


@given(JSON | REPORT_LIKE)
def test_no_body_makes_reading_fail(sent: object) -> None:
    read = read_report(sent)
    assert (read.report is None) == bool(read.errors)
    assert all(error.pointer == "" or error.pointer.startswith("/") for error in read.errors)


@given(JSON | REPORT_LIKE)
@example({**GOOD, "adapter": HALF, HALF: 1})
@example(with_condition(status=HALF))
@example(with_condition(reason=HALF))
@example(with_condition(type=HALF))
@example({**GOOD, "observedTime": HALF})
def test_errors_of_a_body_are_values_that_can_be_sent(sent: object) -> None:
    """A problem document is JSON in UTF-8, so what it quotes of a body must be too."""
    read = read_report(sent)
    said = [*((e.pointer, e.message) for e in read.errors), *((n.pointer, n.message) for n in read.notes)]
    json.dumps(said, ensure_ascii=False).encode()


@given(
    data=st.dictionaries(ANY_TEXT, JSON, max_size=3),
    metadata=st.dictionaries(ANY_TEXT, JSON, max_size=3),
    message=ANY_TEXT,
)
@example(data={}, metadata={}, message=HALF)
@example(data={"n": 10**30, "x": float("nan")}, metadata={}, message="")
def test_what_is_read_can_be_decided_on(data: dict[str, Any], metadata: dict[str, Any], message: str) -> None:
    """A body is refused when it is read, or it can be stored: nothing in between may fail."""
    conditions = [{"type": type_, "status": "True", "message": message} for type_ in ("Available", "Applied", "Health")]
    read = read_report({**GOOD, "conditions": conditions, "data": data, "metadata": metadata})
    if read.report is not None:
        resource = Resource("cls-1", "Cluster", "one", 1, START, START)
        assert decide(read.report, resource, None, START).outcome == "aggregated"
