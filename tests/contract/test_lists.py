"""The store port: lists, counts and summaries are what one finds by looking at every resource."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import product
from random import Random
from typing import get_args

import pytest
from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.backends.rows import to_micros
from hyperfleet.model.phase import PHASE_TRAITS, PHASES
from hyperfleet.ports import EVERYTHING, GroupCount, OrderField, Query, Record, Scope, Store, StoredAnswer, TokenTerm
from tests.contract.stores import (
    START,
    changed,
    created,
    ids_of,
    make_pool,
    make_record,
    make_resource,
    must_read,
    write,
)

pytestmark = pytest.mark.anyio

ORDERS: tuple[OrderField, ...] = get_args(OrderField)
# Bytewise order, whatever the locale; characters that mean something in patterns, and both ends of what text can hold.
NAMES = ["B", "a", "a-b", "ab", "ä", "z", "%", "_", "'", "\U0010ffff", "\ud7ff", "\ue000", "😀"]
TOKENS = ["p:Ready", "p:Failed", "l:a=1", "l:a=2", "l:a", "l:ab=1", "l:%=1", "l:a=\U0010ffff", "w:x\ud7ff", "w:x\ue000"]
PREFIXES = ["p:", "l:a=", "l:a", "l:%", "l:a=\U0010ffff", "w:x\ud7ff", "", "\U0010ffff", "zz"]
RARE = "rare"


class Known(Struct, frozen=True):
    """A resource as it was written: what a query should see of it."""

    record: Record
    tokens: frozenset[str]
    updated: int  # minutes after the start

    def key(self, order: OrderField) -> tuple[str | int, str]:
        resource = self.record.resource
        keys: dict[OrderField, str | int] = {
            "name": resource.name,
            "createdAt": to_micros(resource.created_time),
            "updatedAt": self.record.revision,
            "severity": PHASE_TRAITS[self.record.status.phase].severity,
        }
        return keys[order], resource.id

    def has(self, term: TokenTerm) -> bool:
        found = (
            any(map(token.startswith, term.tokens)) if term.is_prefix else token in term.tokens for token in self.tokens
        )
        return any(found) is not term.is_negated

    def matches(self, query: Query) -> bool:
        resource = self.record.resource
        return (
            resource.kind == query.kind
            and (query.scope.tenants is None or resource.tenant in query.scope.tenants)
            and (query.parent_id is None or resource.parent_id == query.parent_id)
            and (query.updated_since is None or START + timedelta(minutes=self.updated) >= query.updated_since)
            and all(map(self.has, query.terms))
        )


async def settle_fleet(store: Store, random: Random, size: int = 150) -> list[Known]:
    """Write resources of every sort; some of them twice, so that positions and ids disagree."""
    known = {}
    for number in range(size):
        id_ = f"id-{random.choice('aBä')}{number}"
        draft = {
            "name": f"{random.choice(NAMES)}{number // 3}",
            "tenant": f"{random.choice(['acme', 'b', ''])}",
            "created_time": START + timedelta(microseconds=random.randrange(20)),
        }
        is_pool = random.random() < 0.3
        resource = make_pool(id_, random.choice(["p1", "p2"]), **draft) if is_pool else make_resource(id_, **draft)
        resource = replace(resource, name=f"{resource.name}{random.choice(['', '!'])}", deletion_time=START)
        tokens = frozenset(random.sample(TOKENS, random.randrange(len(TOKENS) + 1))) | (
            {RARE} if number == 70 else set()
        )
        known[id_] = Known(make_record(resource, random.choice(PHASES)), tokens, random.randrange(10))
    drafts = list(known.values())
    tokens_of = {id_: each.tokens for id_, each in known.items()}
    await write(store, created(*(each.record for each in drafts), tokens=tokens_of))
    for minute in random.sample(range(10), 10):
        some = [each.record for each in random.sample(drafts, size) if each.updated == minute]
        await write(store, changed(*some, time=START + timedelta(minutes=minute)))
    stored = {id_: await must_read(store, id_, each.record.resource.kind) for id_, each in known.items()}
    return [replace(each, record=stored[id_]) for id_, each in known.items()]


def some_queries(random: Random, number: int) -> Iterator[Query]:
    for _ in range(number):
        prefixed = random.random() < 0.4
        yield Query(
            random.choice(["Cluster", "Cluster", "NodePool"]),
            scope=Scope(random.choice([None, None, frozenset({"acme"}), frozenset({"acme", ""}), frozenset({"?"})])),
            parent_id=random.choice([None, None, None, "p1"]),
            terms=tuple(some_term(random) for _ in range(random.choice([0, 1, 1, 2, 3])))
            + ((TokenTerm(("l:a",), is_prefix=True),) if prefixed else ()),
            updated_since=random.choice([None, None, START + timedelta(minutes=random.randrange(11))]),
            order=random.choice(ORDERS),
            is_descending=random.random() < 0.5,
        )


def some_term(random: Random) -> TokenTerm:
    is_prefix = random.random() < 0.4
    tokens = random.sample(PREFIXES if is_prefix else [*TOKENS, RARE, "none"], random.choice([0, 1, 1, 2, 3]))
    return TokenTerm(tuple(tokens), is_negated=random.random() < 0.4, is_prefix=is_prefix)


def expected(fleet: Sequence[Known], query: Query) -> list[StoredAnswer]:
    found = sorted((each for each in fleet if each.matches(query)), key=lambda each: each.key(query.order))
    records = [(each.record, each.key(query.order)[0]) for each in found]
    answers = [StoredAnswer(record.resource.id, record.answer, record.revision, key) for record, key in records]
    return answers[::-1] if query.is_descending else answers


async def test_lists_and_counts_are_what_looking_at_every_resource_gives(store: Store) -> None:
    random = Random(7)
    fleet = await settle_fleet(store, random)
    for query in some_queries(random, 150):
        answers = expected(fleet, query)
        assert list(await store.find(query)) == answers[:100], query
        assert await store.count(query) == len(answers), query
        offset, limit = random.randrange(5), random.randrange(1, 9)
        assert list(await store.find(replace(query, offset=offset, limit=limit))) == answers[offset : offset + limit]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("is_descending", [False, True])
async def test_pages_that_follow_each_other_are_the_whole_list(
    store: Store, order: OrderField, is_descending: bool
) -> None:
    fleet = await settle_fleet(store, Random(8), 40)
    for terms in ((), (TokenTerm((RARE, "p:Ready")),)):
        query = Query("Cluster", EVERYTHING, terms=terms, order=order, is_descending=is_descending, limit=4)
        seen: list[StoredAnswer] = []
        while page := await store.find(query):
            seen += page
            query = replace(query, after=(page[-1].key, page[-1].id))
        assert seen == expected(fleet, replace(query, after=None))


async def test_summaries_count_by_what_follows_a_prefix(store: Store) -> None:
    random = Random(9)
    fleet = await settle_fleet(store, random, 60)
    for query in some_queries(random, 30):
        prefixes = tuple(random.sample(PREFIXES, random.randrange(4)))
        counts: Counter[tuple[str | None, ...]] = Counter()
        for each in fleet:
            if each.matches(query):
                counts.update(product(*(values_of(each.tokens, prefix) for prefix in prefixes)))
        groups = await store.summarize(query, prefixes)
        assert {group.values: group.count for group in groups if group.count} == counts
        sizes = [group.count for group in groups]
        assert sizes == sorted(sizes, reverse=True)


def values_of(tokens: frozenset[str], prefix: str) -> list[str | None]:
    return [token.removeprefix(prefix) for token in tokens if token.startswith(prefix)] or [None]


async def test_groups_of_one_size_come_in_the_order_of_their_values(store: Store) -> None:
    tokens = {"cls-1": ["p:b"], "cls-2": ["p:a"], "cls-3": ["p:c"], "cls-4": ["p:c"], "cls-5": []}
    await write(store, created(*map(make_record, tokens), tokens=tokens))
    groups = await store.summarize(Query("Cluster", EVERYTHING), ("p:",))
    assert groups == (GroupCount(("c",), 2), GroupCount(("a",), 1), GroupCount(("b",), 1), GroupCount((None,), 1))


async def test_a_token_that_is_given_twice_or_taken_twice_is_there_or_not(store: Store) -> None:
    await write(store, created(make_record("cls-1"), tokens={"cls-1": ["t"]}))
    asked = Query("Cluster", EVERYTHING, terms=(TokenTerm(("t",)),))
    record = make_record("cls-1")
    await write(store, changed(record, facets_added=[("cls-1", "t")]))
    assert ids_of(await store.find(asked)) == ["cls-1"]
    for _ in range(2):
        await write(store, changed(record, facets_removed=[("cls-1", "t")]))
        assert await store.find(asked) == ()


async def test_no_tenant_sees_nothing(store: Store) -> None:
    await write(store, created(make_record("cls-1"), tokens={"cls-1": ["p:x"]}))
    nobody = Query("Cluster", scope=Scope(frozenset()))
    assert await store.find(nobody) == ()
    assert await store.count(nobody) == 0
    assert await store.summarize(nobody, ("p:",)) == ()
