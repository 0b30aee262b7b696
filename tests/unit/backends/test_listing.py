"""Ranges of tokens, and what summaries and adapters are merged to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from hyperfleet.backends.listing import Dialect, build_find, end_of_range
from hyperfleet.backends.rows import AdapterRow, from_micros, merge_adapters, to_micros
from hyperfleet.ports import Query, Scope, TokenTerm

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
tricky = st.text(st.sampled_from("a\ud7ff\ue000\U0010ffff"), max_size=4)


@given(texts | tricky, texts | tricky)
def test_a_text_is_in_the_range_of_a_prefix_iff_it_begins_with_it(prefix: str, text: str) -> None:
    end = end_of_range(prefix)
    is_inside = prefix.encode() <= text.encode() and (end is None or text.encode() < end.encode())
    assert is_inside == text.startswith(prefix)


@given(texts | tricky, texts)
def test_what_begins_with_a_prefix_is_in_its_range(prefix: str, rest: str) -> None:
    end = end_of_range(prefix)
    assert end is None or (prefix + rest).encode() < end.encode()


@given(st.datetimes(timezones=st.just(UTC)))
def test_instants_survive_as_microseconds(instant: datetime) -> None:
    assert from_micros(to_micros(instant)) == instant


def test_microseconds_do_not_depend_on_the_zone() -> None:
    instant = datetime(2025, 1, 1, tzinfo=UTC)
    assert to_micros(instant.astimezone(timezone(timedelta(hours=2)))) == to_micros(instant)


@given(texts, texts, texts, st.lists(texts, max_size=3))
def test_no_value_ever_stands_in_a_statement(kind: str, tenant: str, after: str, tokens: list[str]) -> None:
    def build(kind: str, tenant: str, after: str, tokens: list[str]) -> str:
        terms = (TokenTerm(tuple(tokens)), TokenTerm(tuple(tokens), is_negated=True))
        query = Query(kind, Scope(frozenset({tenant})), after, terms, after=(after, after))
        return build_find(query, Dialect("$", to_micros)).sql

    assert build(kind, tenant, after, tokens) == build("k", "t", "a", ["x"] * len(tokens))


def test_of_an_adapter_in_several_tenants_the_latest_speaks() -> None:
    instant = datetime(2025, 1, 1, tzinfo=UTC)
    later = instant + timedelta(seconds=1)
    rows = [
        AdapterRow("dns", later, 5, (1, 0, 0, 0, 0, 0, 0), ""),
        AdapterRow("dns", instant, 9, (2, 0, 0, 0, 0, 0, 3), "earlier"),
    ]
    (record,) = merge_adapters(rows)
    assert (record.last_seen, record.skew, record.last_discard) == (later, timedelta(microseconds=5), "earlier")
    assert (record.counts["aggregated"], record.counts["GenerationAhead"]) == (3, 3)
