"""The versions of the policy, the same in every store: who may add one, what is kept of each, and how they are read."""

from __future__ import annotations

import asyncio

import pytest

from hyperfleet.ports import Needs, NewPolicy, PolicyVersion, Store
from tests.contract.stores import look

pytestmark = pytest.mark.anyio

FILE = NewPolicy("d1", "text ü", "/etc/policy.yaml")
APPLIED = NewPolicy("d2", "applied", "", "api", "alice")


class Admission:
    """Admits what it is told to, and remembers what it was asked."""

    def __init__(self, answer: bool) -> None:
        self._answer = answer
        self.asked: list[tuple[int, str]] = []

    def __call__(self, active: PolicyVersion, file_digest: str) -> bool:
        """Answer as told."""
        self.asked.append((active.version, file_digest))
        return self._answer


async def test_a_version_keeps_where_it_came_from(store: Store) -> None:
    first = await store.activate_policy(FILE)
    second = await store.activate_policy(APPLIED)
    third = await store.activate_policy(NewPolicy("d1", "text ü", "", "api", "böb", 1))
    assert first == FILE.numbered(1, first.time)
    assert second == APPLIED.numbered(2, second.time)
    assert (third.source, third.author, third.restores) == ("api", "böb", 1)
    assert await store.active_policy() == third
    assert [await store.read_policy(number) for number in (0, 1, 2, 3, 4)] == [None, first, second, third, None]


async def test_versions_are_listed_in_pages_and_without_their_texts(store: Store) -> None:
    for number in range(1, 6):
        await store.activate_policy(NewPolicy(f"d{number}", "long", "file"))
    newest = await store.policy_versions(None, 3)
    assert [(each.version, each.digest, each.text) for each in newest] == [(5, "d5", ""), (4, "d4", ""), (3, "d3", "")]
    assert [each.version for each in await store.policy_versions(3, 3)] == [2, 1]
    assert await store.policy_versions(1, 3) == ()


async def test_an_empty_store_has_no_versions(store: Store) -> None:
    assert await store.policy_versions(None, 3) == ()
    assert await store.read_policy(1) is None


async def test_what_is_not_admitted_changes_nothing(store: Store) -> None:
    nobody = Admission(False)
    first = await store.activate_policy(FILE, nobody)
    assert nobody.asked == [], "where nothing is in force, nobody is asked"
    assert await store.activate_policy(APPLIED, nobody) == first
    assert nobody.asked == [(1, "d1")]
    assert len(await store.policy_versions(None, 10)) == 1
    assert (await look(store, Needs())).policy_version == 1


async def test_what_an_admission_raises_ends_it(store: Store) -> None:
    def refuse(active: PolicyVersion, file_digest: str) -> bool:
        raise LookupError(active.digest)

    first = await store.activate_policy(FILE)
    with pytest.raises(LookupError, match="d1"):
        await store.activate_policy(APPLIED, refuse)
    assert await store.active_policy() == first
    assert (await store.activate_policy(APPLIED)).version == 2, "the store works on"


async def test_the_last_policy_of_a_file_is_known_whatever_came_since(store: Store) -> None:
    anybody = Admission(True)
    await store.activate_policy(NewPolicy("d0", "", "built in", "built-in"))
    await store.activate_policy(FILE, anybody)
    await store.activate_policy(APPLIED, anybody)
    await store.activate_policy(NewPolicy("d3", "", "", "api"), anybody)
    assert anybody.asked == [(1, ""), (2, "d1"), (3, "d1")]


async def test_that_a_file_has_what_was_applied_is_remembered(store: Store) -> None:
    await store.activate_policy(FILE)
    applied = await store.activate_policy(APPLIED)
    assert await store.activate_policy(NewPolicy("d2", "in the file", "/etc/policy.yaml")) == applied
    seen = Admission(False)
    await store.activate_policy(FILE, seen)
    assert seen.asked == [(2, "d2")]
    assert await store.active_policy() == applied, "who applied it is not forgotten"


async def test_of_many_who_replace_one_version_only_one_does(store: Store) -> None:
    await store.activate_policy(FILE)

    def is_first(active: PolicyVersion, file_digest: str) -> bool:
        return active.version == 1

    policies = [NewPolicy(f"n{number}", "", "", "api") for number in range(8)]
    found = await asyncio.gather(*[store.activate_policy(policy, is_first) for policy in policies])
    assert {each.version for each in found} == {2}
    assert len({each.digest for each in found}) == 1
