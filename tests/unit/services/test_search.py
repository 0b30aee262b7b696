"""Query parameters: what each of them asks for, every mistake with its place, and tokens of the next page."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from hyperfleet.model.status import ADAPTER_STATES
from hyperfleet.ports import EVERYTHING, Query, Scope, StoredAnswer, TokenTerm
from hyperfleet.services.search import (
    PARAMETERS,
    READ_ELSEWHERE,
    SearchResult,
    encode_continue,
    read_group_by,
    read_query,
)
from tests.world import START as NOW


def search(
    parameters: Mapping[str, str | Sequence[str]],
    *,
    kind: str = "Cluster",
    scope: Scope = EVERYTHING,
    parent_id: str | None = None,
    now: datetime = NOW,
    read_elsewhere: frozenset[str] = READ_ELSEWHERE,
) -> SearchResult:
    """Read parameters of a list; a plain text is a parameter given once."""
    values = {name: [value] if isinstance(value, str) else value for name, value in parameters.items()}
    return read_query(values, kind, scope, parent_id, now, read_elsewhere=read_elsewhere)


def query_of(**parameters: str | Sequence[str]) -> Query:
    """Read parameters that must be good."""
    result = search(parameters)
    assert result.errors == ()
    assert result.query is not None
    return result.query


def errors_of(**parameters: str | Sequence[str]) -> list[tuple[str, str, str]]:
    """Read parameters that must be bad."""
    result = search(parameters)
    assert result.query is None
    return [(error.pointer, error.code, error.message) for error in result.errors]


def one_of(*tokens: str) -> TokenTerm:
    return TokenTerm(tokens)


def none_of(*tokens: str) -> TokenTerm:
    return TokenTerm(tokens, is_negated=True)


def begins(token: str) -> TokenTerm:
    return TokenTerm((token,), is_prefix=True)


class TestFilters:
    @pytest.mark.parametrize(
        ("parameter", "value", "terms"),
        [
            ("labelSelector", "env=prod", [one_of("l:env=prod")]),
            ("labelSelector", "env == prod", [one_of("l:env=prod")]),
            ("labelSelector", "env!=prod", [none_of("l:env=prod")]),
            ("labelSelector", "env in (a, b,a)", [one_of("l:env=a", "l:env=b")]),
            ("labelSelector", "env notin (a)", [none_of("l:env=a")]),
            ("labelSelector", "env", [begins("l:env=")]),
            ("labelSelector", "! env", [replace(begins("l:env="), is_negated=True)]),
            ("labelSelector", "env=", [one_of("l:env=")]),
            ("labelSelector", "a.io/b=c , in in (in)", [one_of("l:a.io/b=c"), one_of("l:in=in")]),
            ("labelSelector", ["a=b", "c"], [one_of("l:a=b"), begins("l:c=")]),
            ("conditions", "Ready", [one_of("c:Ready=True")]),
            ("conditions", "!Ready", [one_of("c:Ready=False", "c:Ready=Unknown")]),
            (
                "conditions",
                "Ready!=True,Available=False",
                [one_of("c:Ready=False", "c:Ready=Unknown"), one_of("c:Available=False")],
            ),
            ("conditions", "Dns!=True", [none_of("c:Dns=True")]),
            ("conditions", "Ready in (True,Unknown)", [one_of("c:Ready=True", "c:Ready=Unknown")]),
            ("conditions", "Ready notin (True,Unknown)", [one_of("c:Ready=False")]),
            ("phase", "Failed", [one_of("p:Failed")]),
            ("phase", ["Failed, Degraded", "Failed"], [one_of("p:Failed", "p:Degraded")]),
            ("phase", "!Ready,!Pending", [one_of("p:Deleting", "p:Degraded", "p:Failed", "p:Provisioning")]),
            ("flapping", "Ready, phase", [one_of("f:Ready", "f:phase")]),
            ("flapping", "any", [begins("f:")]),
            ("flapping", "Ready,any", [begins("f:")]),
            ("flapping", "! any", [TokenTerm(("f:",), is_negated=True, is_prefix=True)]),
            ("flapping", "phase,!x.io/A", [one_of("f:phase"), none_of("f:x.io/A")]),
            ("adapterState", "dns:Failed", [one_of("a:dns=Failed")]),
            (
                "adapterState",
                "dns:Failed | Running,net:Stale",
                [one_of("a:dns=Failed", "a:dns=Running"), one_of("s:net")],
            ),
            ("blockedBy", "dns", [one_of("b:dns")]),
            ("reason", "AdaptersFailed", [one_of("r:Ready=AdaptersFailed")]),
            ("reason", "Available:X,Available:Y,Z", [one_of("r:Available=X", "r:Available=Y"), one_of("r:Ready=Z")]),
            ("reason", "Ready:a:b", [one_of("r:Ready=a:b")]),
            ("q", "EU-West  prod", [begins("w:eu-west"), begins("w:prod")]),
            ("q", ["a,b", "a"], [begins("w:a"), begins("w:b")]),
            ("adapterState", "dns:Unreported", [none_of(*(f"a:dns={state}" for state in ADAPTER_STATES[1:]))]),
            ("adapterState", "dns:Unreported|Failed", [none_of(*(f"a:dns={state}" for state in ADAPTER_STATES[1:-1]))]),
            ("labelSelector", "  ", []),
        ],
    )
    def test_what_is_asked_for(self, parameter: str, value: str | list[str], terms: list[TokenTerm]) -> None:
        assert list(query_of(**{parameter: value}).terms) == terms

    def test_all_filters_must_hold(self) -> None:
        assert query_of(phase="Failed", q="eu", labelSelector="a=b").terms == (
            one_of("l:a=b"),
            one_of("p:Failed"),
            begins("w:eu"),
        )

    @pytest.mark.parametrize(
        ("parameter", "value", "code", "message"),
        [
            ("labelSelector", "env=a b", "BadFormat", 'at character 7: found "b", expected a comma'),
            ("labelSelector", "env b", "BadFormat", "expected =, ==, !=, in, notin or a comma"),
            ("labelSelector", "env>3", "BadFormat", 'at character 4: found ">", expected =, ==, !=, in, notin'),
            ("labelSelector", "a,", "BadFormat", "at character 3: the selector ends here, expected a key"),
            ("labelSelector", "a in x", "BadFormat", 'at character 6: found "x", expected ( and a list of values'),
            ("labelSelector", "a in ()", "BadFormat", 'at character 7: found ")", expected a value'),
            ("labelSelector", "a in (x", "BadFormat", "at character 8: the selector ends here, expected a comma or )"),
            ("labelSelector", "a=é", "BadFormat", 'at character 3: found "é", expected a value of at most 63 letters'),
            ("labelSelector", "/a=b", "BadFormat", 'at character 1: found "/a", expected a key of letters'),
            ("labelSelector", "a=" + "x" * 64, "BadFormat", "expected a value of at most 63 letters"),
            ("labelSelector", " a=b,!", "BadFormat", "at character 7: the selector ends here, expected a key after !"),
            ("labelSelector", f"a in ({','.join('x' * 101)})", "BadFormat", "at most 100 values are allowed"),
            ("conditions", "Ready=true", "NotAllowed", 'expected one of True, False, Unknown, did you mean "True"?'),
            ("conditions", "Ready=", "NotAllowed", "at character 7: found"),
            ("conditions", "-=True", "BadFormat", 'at character 1: found "-", expected a condition type'),
            (
                "phase",
                "Ready,!faild",
                "NotAllowed",
                'at character 8: found "faild", expected one of Deleting, Degraded',
            ),
            ("phase", "Ready,", "NotAllowed", 'at character 7: found "", expected one of'),
            ("phase", ",".join(["Ready"] * 101), "TooMany", "phase has 101 items; at most 100 are allowed"),
            (
                "flapping",
                "Ready,!-",
                "BadFormat",
                'at character 8: found "-", expected a condition type such as Ready, phase or any',
            ),
            ("flapping", "!", "BadFormat", "at character 2: there is nothing here, expected a condition type"),
            ("adapterState", "dns", "BadFormat", "expected an adapter, a colon and a state, such as dns:Failed"),
            (
                "adapterState",
                "dns:Failed|Gone",
                "NotAllowed",
                'at character 12: found "Gone", expected one of Unreported',
            ),
            ("adapterState", "dns:Stale|Unreported", "Exclusive", "Unreported and Stale cannot be alternatives"),
            ("phase", "", "Empty", "phase has no value; give it one or leave it out"),
            ("q", ["a", " "], "Empty", "q has no value; give it one or leave it out"),
            ("blockedBy", "a,b", "BadFormat", "expected the name of an adapter"),
            ("blockedBy", ["a", "b"], "Repeated", "blockedBy is given 2 times; it can have one value only"),
            ("reason", "Ready:", "BadFormat", "at character 7: there is nothing here, expected a reason"),
            ("reason", ":Gone", "BadFormat", "at character 1: there is nothing here, expected a condition type"),
            ("q", "--", "BadFormat", '"--" has no letter or digit to search for'),
            ("q", "\x00", "BadFormat", "NUL and half a surrogate pair are not text"),
            ("q", "x" * 4097, "TooLong", "has 4097 characters; at most 4096 are allowed"),
            ("q", ["x" * 4000, "y" * 97], "TooLong", "has 4097 characters; at most 4096 are allowed"),
            ("q", " ".join(f"w{n}" for n in range(51)), "TooMany", "q makes 51 filters in all; at most 50 are allowed"),
        ],
    )
    def test_what_is_wrong(self, parameter: str, value: str | list[str], code: str, message: str) -> None:
        ((pointer, found, text),) = errors_of(**{parameter: value})
        assert (pointer, found) == (parameter, code)
        assert message in text

    def test_every_mistake_is_told_at_once(self) -> None:
        found = errors_of(
            labelSelector="a in (,b=c~,d=e f", phase="Faild", limit="0", page="x", lable="y", conditions="A=x,B=y"
        )
        assert [(pointer, code) for pointer, code, _ in found] == [
            ("lable", "UnknownParameter"),
            ("labelSelector", "BadFormat"),
            ("conditions", "NotAllowed"),
            ("conditions", "NotAllowed"),
            ("phase", "NotAllowed"),
            ("page", "BadFormat"),
            ("limit", "OutOfRange"),
            ("page", "Exclusive"),
        ]

    def test_a_selector_is_read_on_behind_a_fault(self) -> None:
        found = errors_of(labelSelector="a in (x y, z), b=c d, ok, =")
        assert [message.split(":")[0] for _, _, message in found] == [f"at character {at}" for at in (9, 20, 27)]

    def test_there_is_an_end_to_telling(self) -> None:
        assert len(errors_of(labelSelector="," * 4000)) == 50


class TestParameters:
    def test_an_unknown_one_is_told_with_the_likely_one(self) -> None:
        assert errors_of(labelselector="a") == [
            (
                "labelselector",
                "UnknownParameter",
                'there is no parameter "labelselector", did you mean "labelSelector"?',
            )
        ]
        ((_, _, message),) = errors_of(zzz="a")
        assert all(name in message for name in (*PARAMETERS, "fields"))

    def test_what_others_read_is_left_alone(self) -> None:
        assert query_of(fields="a,,b") == query_of()
        assert errors_of(groupBy="phase")[0][1] == "UnknownParameter"
        assert search({"groupBy": "phase"}, read_elsewhere=READ_ELSEWHERE | {"groupBy"}).errors == ()

    def test_nothing_given(self) -> None:
        assert query_of() == Query("Cluster", EVERYTHING)
        assert not search({}).is_paged

    def test_whose_and_where_is_kept(self) -> None:
        scope = Scope(frozenset({"a"}))
        query = search({}, kind="NodePool", scope=scope, parent_id="cls-1").query
        assert query == Query("NodePool", scope, "cls-1")


class TestOrder:
    @pytest.mark.parametrize(
        ("text", "order", "is_descending"),
        [
            ("name", "name", False),
            ("-name", "name", True),
            ("createdAt desc", "createdAt", True),
            ("updatedAt  asc", "updatedAt", False),
            ("-severity", "severity", True),
            ("-lastUpdated", "updatedAt", True),
        ],
    )
    def test_what_is_asked_for(self, text: str, order: str, is_descending: bool) -> None:
        query = query_of(orderBy=text)
        assert (query.order, query.is_descending) == (order, is_descending)

    @pytest.mark.parametrize("text", ["age", "name,createdAt", "-name desc", "--name", "Name", "name down"])
    def test_what_is_wrong(self, text: str) -> None:
        ((pointer, code, message),) = errors_of(orderBy=text)
        assert (pointer, code) == ("orderBy", "NotAllowed")
        assert "name, createdAt, updatedAt, severity" in message


class TestSince:
    @pytest.mark.parametrize(
        ("text", "since"),
        [
            ("2025-10-17T11:00:00Z", NOW - timedelta(hours=1)),
            ("2025-10-17T13:00:00.5+02:00", NOW - timedelta(hours=1) + timedelta(milliseconds=500)),
            ("15m", NOW - timedelta(minutes=15)),
            ("1h30m", NOW - timedelta(minutes=90)),
        ],
    )
    def test_what_is_asked_for(self, text: str, since: datetime) -> None:
        assert query_of(updatedSince=text).updated_since == since

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("2025-10-17T11:00:00", '"2025-10-17T11:00:00" is no time; updatedSince is an RFC 3339 time with a zone'),
            ("2025-10-17T11:00:00 02:00", "(a + is written %2B)"),
            ("0001-01-01T00:00:00+10:00", "is no time"),
            ("2d", "a duration has no unit for days: write 48h"),
            ("-5m", "a duration must not be negative"),
            ("yesterday", "expected a duration such as 10m"),
        ],
    )
    def test_what_is_wrong(self, text: str, message: str) -> None:
        ((pointer, code, found),) = errors_of(updatedSince=text)
        assert (pointer, code) == ("updatedSince", "BadFormat")
        assert message in found


class TestPages:
    def test_by_limit(self) -> None:
        query = query_of(limit="1000")
        assert (query.offset, query.limit) == (0, 1000)

    def test_by_number(self) -> None:
        result = search({"page": "3", "size": "20"})
        assert result.query is not None
        assert (result.query.offset, result.query.limit, result.is_paged) == (40, 20, True)

    def test_one_of_page_and_size_is_enough(self) -> None:
        assert (query_of(page="2").offset, query_of(page="2").limit) == (100, 100)
        assert (query_of(size="7").offset, query_of(size="7").limit) == (0, 7)
        assert search({"size": "7"}).is_paged

    @pytest.mark.parametrize("name", ["limit", "size"])
    @pytest.mark.parametrize("value", ["0", "1001", "-1", "1.5", "٣", "9" * 40, "1e3", "ten"])
    def test_what_is_wrong(self, name: str, value: str) -> None:
        ((pointer, _, message),) = errors_of(**{name: value})
        assert pointer == name
        assert "from 1 to 1000" in message

    def test_the_two_ways_exclude_each_other(self) -> None:
        assert [(pointer, code) for pointer, code, _ in errors_of(page="1", limit="5")] == [("page", "Exclusive")]


def continued(last: StoredAnswer, **parameters: str) -> SearchResult:
    """Ask for the page behind `last` with the parameters that the first page was asked with."""
    return search({**parameters, "continue": encode_continue(query_of(**parameters), last)})


LAST = StoredAnswer("cls-9", b"", 5, "zoo")


class TestContinue:
    def test_it_goes_on_behind_the_last_one(self) -> None:
        result = continued(LAST, phase="Failed", limit="5")
        assert result.query == replace(query_of(phase="Failed", limit="5"), after=("zoo", "cls-9"))

    def test_keys_of_orders_by_number(self) -> None:
        result = continued(StoredAnswer("cls-9", b"", 5, 1760702400000000), orderBy="-createdAt")
        assert result.query is not None
        assert result.query.after == (1760702400000000, "cls-9")

    def test_the_limit_may_change(self) -> None:
        token = encode_continue(query_of(limit="5"), LAST)
        assert query_of(limit="7", **{"continue": token}).after == ("zoo", "cls-9")

    @pytest.mark.parametrize("other", [{"phase": "Ready"}, {"orderBy": "-name"}, {"updatedSince": "5m"}, {"q": "a"}])
    def test_another_query_refuses_it(self, other: dict[str, str]) -> None:
        token = encode_continue(query_of(phase="Failed"), LAST)
        assert errors_of(**{"continue": token, **other}) == [
            ("continue", "ContinueMismatch", "this continue token belongs to another query")
        ]

    def test_so_do_another_scope_kind_and_parent(self) -> None:
        token = {"continue": encode_continue(query_of(), LAST)}
        others = (
            search(token, scope=Scope(frozenset({"a"}))),
            search(token, kind="NodePool"),
            search(token, parent_id="cls-1"),
        )
        for other in others:
            assert [error.code for error in other.errors] == ["ContinueMismatch"]

    def test_the_order_of_tenants_does_not_matter(self) -> None:
        names = [f"tenant-{number}" for number in range(20)]
        first = search({}, scope=Scope(frozenset(names))).query
        assert first is not None
        token = encode_continue(first, LAST)
        assert search({"continue": token}, scope=Scope(frozenset(reversed(names)))).errors == ()

    def test_a_duration_counts_from_the_first_page(self) -> None:
        token = encode_continue(query_of(updatedSince="15m"), LAST)
        result = search({"updatedSince": "15m", "continue": token}, now=NOW + timedelta(minutes=2))
        assert result.query is not None
        assert result.query.updated_since == NOW - timedelta(minutes=15)

    def test_a_time_must_be_the_same_moment(self) -> None:
        token = encode_continue(query_of(updatedSince="2025-10-17T11:00:00Z"), LAST)
        assert query_of(updatedSince="2025-10-17T13:00:00+02:00", **{"continue": token}).after is not None
        assert errors_of(updatedSince="2025-10-17T11:00:01Z", **{"continue": token})[0][1] == "ContinueMismatch"

    def test_a_mismatch_is_not_guessed_at_when_the_query_is_wrong(self) -> None:
        token = encode_continue(query_of(), LAST)
        assert [code for _, code, _ in errors_of(phase="Faild", **{"continue": token})] == ["NotAllowed"]

    @pytest.mark.parametrize("part", range(5))
    @pytest.mark.parametrize("forged", [None, True, -1, 2**70, "x", "\x00", [], {}, 1.5, "2025-10-17T11:00:00"])
    @pytest.mark.parametrize("order", ["name", "severity"])
    def test_a_forged_one_is_an_error_or_a_place(self, part: int, forged: object, order: str) -> None:
        good = encode_continue(query_of(orderBy=order), replace(LAST, key="zoo" if order == "name" else 1))
        content = json.loads(base64.urlsafe_b64decode(good + "=="))
        content[part] = forged
        token = base64.urlsafe_b64encode(json.dumps(content).encode()).decode()
        result = search({"orderBy": order, "continue": token})
        if result.query is not None:
            assert result.query.after is not None
            key, id_ = result.query.after
            assert isinstance(key, str if order == "name" else int)
            assert not isinstance(key, bool)
            assert "\x00" not in f"{key}{id_}"
            assert isinstance(key, str) or abs(key) < 2**63

    @given(st.text(max_size=40) | st.binary(max_size=40).map(lambda raw: base64.urlsafe_b64encode(raw).decode()))
    @example("W10")
    @example("=")
    @example("W1tbW1tbW1tbW1s")
    def test_garbage_is_an_error(self, text: str) -> None:
        result = search({"continue": text})
        assert (result.query is None) == bool(text.strip())


class TestGroups:
    def test_what_is_asked_for(self) -> None:
        groups = read_group_by("phase, reason,condition:Ready,label:a.io/b")
        assert groups.names == ("phase", "reason", "condition:Ready", "label:a.io/b")
        assert groups.prefixes == ("p:", "r:Ready=", "c:Ready=", "l:a.io/b=")
        more = read_group_by("reason:Available,adapter:dns,blockedBy,flapping")
        assert more.prefixes == ("r:Available=", "a:dns=", "b:", "f:")

    def test_nothing_asked_for(self) -> None:
        groups = read_group_by()
        assert (groups.names, groups.prefixes, groups.errors) == ((), (), ())

    @pytest.mark.parametrize(
        ("value", "code", "message"),
        [
            (
                "phase,colour",
                "NotAllowed",
                'at character 7: found "colour", expected one of phase, reason, reason:Type',
            ),
            ("blockedby", "NotAllowed", 'label:key, adapter:name, blockedBy, flapping, did you mean "blockedBy"?'),
            ("label:", "BadFormat", 'found "label:", expected label: and a key of letters'),
            ("label", "BadFormat", 'found "label", expected label: and a key of letters'),
            ("phase:x", "NotAllowed", 'found "phase:x", expected one of phase'),
            (
                "adapter:a b",
                "BadFormat",
                'found "adapter:a b", expected adapter: and the name of an adapter such as dns',
            ),
            ("reason,reason:Ready", "Repeated", '"reason:Ready" counts by the same as "reason" before it'),
            (" ", "Empty", "groupBy has no value; give it one or leave it out"),
            ("phase,reason,blockedBy,label:a,label:b", "TooMany", "groupBy has 5 names; at most 4 are allowed"),
        ],
    )
    def test_what_is_wrong(self, value: str, code: str, message: str) -> None:
        groups = read_group_by(value)
        assert groups.names == groups.prefixes == ()
        assert [(error.pointer, error.code) for error in groups.errors] == [("groupBy", code)]
        assert message in groups.errors[0].message

    @given(st.text(alphabet="phase:,label\ud800\x00 ", max_size=30) | st.text(max_size=30))
    def test_any_text_is_read(self, value: str) -> None:
        groups = read_group_by(value)
        assert len(groups.names) == len(groups.prefixes) <= 4


SELECTOR_LIKE = st.text(alphabet="ab=!,() \t<>|:-inot\ud800\x00é", max_size=40)


@given(
    st.dictionaries(st.sampled_from(PARAMETERS) | st.text(max_size=10), st.lists(SELECTOR_LIKE | st.text(), max_size=3))
)
@example({"\ud800": ["x"]})
@example({"updatedSince": ["0001-01-01T00:00:00+01:00"]})
@example({"updatedSince": ["2562047h"]})
def test_any_parameters_are_read(parameters: dict[str, list[str]]) -> None:
    result = search(parameters, now=datetime(2025, 1, 1, tzinfo=timezone(timedelta(hours=3))).astimezone(UTC))
    assert (result.query is None) == bool(result.errors)
    for error in result.errors:
        json.dumps([error.pointer, error.message], ensure_ascii=False).encode()  # can be told
