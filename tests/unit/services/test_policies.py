"""The policy in force: who may put which one in force, who is told, and what is likely wrong with it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from hyperfleet.api.wire import present
from hyperfleet.backends.memory import MemoryStore
from hyperfleet.errors import PolicyError
from hyperfleet.model.kind import Kinds
from hyperfleet.ports import NewPolicy, PolicyVersion
from hyperfleet.services.policies import PolicyRegistry, PolicyText, digest_of
from hyperfleet.services.results import Refusal
from tests.unit.services.desk import HandClock, open_desk

BUILT_IN = PolicyText("requiredAdapters: [dns]", "built in", is_built_in=True)
NEWER_BUILT_IN = PolicyText("requiredAdapters: [dns, validation]", "built in", is_built_in=True)
OURS = PolicyText("requiredAdapters: [billing]", "/etc/fleet/policy.yaml")
THEIRS = PolicyText("requiredAdapters: [mail]", "/srv/policy.yaml")
BROKEN = PolicyText("requiredAdapters: 5", "/etc/fleet/policy.yaml")
DOUBTFUL = PolicyText(
    """
requiredAdapters: [dns]
clusterConditions: [{type: A, evaluate: {expr: 'adapters["ghost"].state == "Failed"'}}]
""",
    "doubtful.yaml",
)


def with_store(test: Callable[[MemoryStore], Awaitable[None]]) -> None:
    """Run a test on an empty store."""

    async def run() -> None:
        store = MemoryStore(HandClock())
        await store.open()
        await test(store)
        await store.close()

    asyncio.run(run())


def book_of(store: MemoryStore, text: PolicyText) -> PolicyRegistry:
    """Return what a process that was started with a policy has."""
    return PolicyRegistry(store, Kinds(), present, lambda: text)


async def in_force(store: MemoryStore) -> PolicyVersion:
    """Return the policy in force."""
    version = await store.active_policy()
    assert version is not None
    return version


@pytest.mark.parametrize(
    ("first", "second", "winner"),
    [
        (OURS, BUILT_IN, OURS),
        (BUILT_IN, OURS, OURS),
        (OURS, THEIRS, THEIRS),
        (BUILT_IN, NEWER_BUILT_IN, NEWER_BUILT_IN),
    ],
)
def test_who_starts_second_prevails_only_with_a_file(first: PolicyText, second: PolicyText, winner: PolicyText) -> None:
    async def start_both(store: MemoryStore) -> None:
        await book_of(store, first).activate()
        book = book_of(store, second)
        await book.activate()
        await book.activate()  # a reload is no other matter
        assert (await in_force(store)).text == winner.text
        assert book.version == await in_force(store)
        assert book.rules.policy_version == (await in_force(store)).version

    with_store(start_both)


APPLIED = "requiredAdapters: [applied]"
COMMENTED = PolicyText(f"# said otherwise\n{OURS.text}", OURS.file)
AS_APPLIED = PolicyText(APPLIED, OURS.file)


async def put(book: PolicyRegistry, text: str, replaced: frozenset[int] | None = None) -> PolicyVersion | Refusal:
    """Apply a policy as the API does."""
    policies = await book.compile(text, "the body")
    return await book.put(NewPolicy(digest_of(policies), text, "", "api", "alice"), policies, replaced)


@pytest.mark.parametrize(
    ("files", "winner", "because"),
    [
        ([OURS, APPLIED, OURS], APPLIED, "a restart with an unchanged file undoes nothing"),
        ([OURS, APPLIED, COMMENTED], APPLIED, "a comment is no change"),
        ([OURS, APPLIED, THEIRS], THEIRS.text, "somebody changed the file"),
        ([OURS, APPLIED, THEIRS, OURS], OURS.text, "somebody changed it back"),
        ([OURS, THEIRS, APPLIED, OURS], OURS.text, "the last file counts, not any that ever was"),
        ([OURS, APPLIED, BUILT_IN, OURS], APPLIED, "a start without a file is no change of the file"),
        ([BUILT_IN, APPLIED, NEWER_BUILT_IN], APPLIED, "what is built in replaces nothing that was applied"),
        ([BUILT_IN, APPLIED, OURS], OURS.text, "a file that is new to us is a changed one"),
        ([OURS, APPLIED, AS_APPLIED, THEIRS.text, AS_APPLIED], THEIRS.text, "the file had it when we last looked"),
        ([OURS, APPLIED, AS_APPLIED, THEIRS.text, OURS], OURS.text, "… so what it had before is a change"),
    ],
)
def test_a_file_wins_when_it_changed(
    files: list[PolicyText | str], winner: str, because: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(store: MemoryStore) -> None:
        book = book_of(store, OURS)
        for each in files:
            if isinstance(each, str):
                await put(book, each)
            else:
                book = book_of(store, each)
                await book.activate()
            assert book.version == await in_force(store)
        assert (await in_force(store)).text == winner, because
        assert book.rules.policy_version == (await in_force(store)).version

    with_store(story)


def test_that_a_file_is_not_in_force_is_told_with_what_to_do(caplog: pytest.LogCaptureFixture) -> None:
    async def story(store: MemoryStore) -> None:
        await put(book_of(store, OURS), APPLIED)
        await book_of(store, OURS).activate()
        assert caplog.records == [], "nothing came before the file: it is news"
        await put(book_of(store, OURS), APPLIED)
        await book_of(store, OURS).activate()

    with_store(story)
    (record,) = [each for each in caplog.records if each.levelno == logging.WARNING]
    told = record.getMessage()
    assert told.startswith("the policy in /etc/fleet/policy.yaml is not in force: it has not changed since a server")
    assert ", applied by alice) came after it" in told
    assert "hyperfleet rules apply -f /etc/fleet/policy.yaml" in told
    assert "`hyperfleet rules versions 3`" in told


def test_a_reload_that_somebody_asks_for_puts_the_file_in_force_in_any_case() -> None:
    async def story(store: MemoryStore) -> None:
        book = book_of(store, OURS)
        await book.activate()
        await put(book, APPLIED)
        version = await book.reload("bob")
        assert (version.text, version.source, version.author) == (OURS.text, "file", "bob")
        await put(book, APPLIED)
        assert (await book_of(store, BUILT_IN).reload("bob")).text == APPLIED, "there is no file to be put in force"

    with_store(story)


def test_only_the_version_that_was_named_is_replaced() -> None:
    async def story(store: MemoryStore) -> None:
        book, told = book_of(store, OURS), []
        await book.activate()
        book.on_change = lambda: told.append(book.rules.policy_version)
        assert isinstance(await put(book, APPLIED, frozenset({1, 7})), PolicyVersion)
        assert told == [2], "the recomputation is woken at once"
        refused = await put(book, THEIRS.text, frozenset({1}))
        assert refused == Refusal("PreconditionFailed", "version 2 of the policy is in force")
        assert (await in_force(store)).text == APPLIED
        assert told == [2]

    with_store(story)


def test_that_the_built_in_policy_yields_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async def start_both(store: MemoryStore) -> None:
        await book_of(store, OURS).activate()
        with caplog.at_level(logging.INFO):
            await book_of(store, BUILT_IN).activate()

    with_store(start_both)
    assert "no policy file is configured: the policy from /etc/fleet/policy.yaml stays in force" in caplog.messages


def test_one_that_adopts_does_not_look_at_its_file() -> None:
    async def adopt(store: MemoryStore) -> None:
        await book_of(store, OURS).activate()
        for text in (THEIRS, BROKEN):
            assert await book_of(store, text).adopt() == await in_force(store)
        assert (await in_force(store)).version == 1

    with_store(adopt)


def test_one_that_adopts_has_to_read_it_if_nothing_is_in_force() -> None:
    async def adopt(store: MemoryStore) -> None:
        assert (await book_of(store, OURS).adopt()).text == OURS.text

    with_store(adopt)


def test_every_replica_tells_of_a_change_once(caplog: pytest.LogCaptureFixture) -> None:
    async def change() -> None:
        async with open_desk() as desk:
            await desk.create("a")
            replica = book_of(desk.store, OURS)
            await replica.adopt()
            desk.policy = THEIRS.text
            with caplog.at_level(logging.INFO):
                for _ in range(2):
                    await desk.policies.activate()
                    await replica.refresh()

    asyncio.run(change())
    told = [message for message in caplog.messages if "is in force instead of" in message]
    assert len(told) == 2
    assert len(set(told)) == 1
    assert told[0].startswith("policy version 2 (digest ")
    assert "policy.yaml) is in force instead of policy version 1 (digest " in told[0]
    assert told[0].endswith("to be recomputed: 1")


def test_a_policy_with_problems_changes_nothing() -> None:
    async def reload(store: MemoryStore) -> None:
        await book_of(store, OURS).activate()
        with pytest.raises(PolicyError):
            await book_of(store, BROKEN).activate()
        assert (await in_force(store)).text == OURS.text

    with_store(reload)


def test_what_is_likely_wrong_is_found_and_told(caplog: pytest.LogCaptureFixture) -> None:
    async def lint(store: MemoryStore) -> None:
        book = book_of(store, DOUBTFUL)
        found = await book.find_warnings(await book.activate())
        assert found is not None
        assert "UnconfiguredAdapter" in [warning.code for warning in found]
        assert await book.find_warnings(await in_force(store)) is found

    with_store(lint)
    assert any("doubtful.yaml:3:" in message and "names the adapter ghost" in message for message in caplog.messages)
