"""Verification while servers write: what only seems wrong because it moved is no finding."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from hyperfleet.api.context import RequestLimits
from hyperfleet.backends.memory import MemoryStore
from hyperfleet.ports import EVERYTHING, Record
from hyperfleet.services.verification import Verification
from tests.api.fleet import HandClock, open_fleet


def test_what_moved_meanwhile_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = HandClock()
    with open_fleet(MemoryStore(clock), clock, RequestLimits()) as fleet:
        cluster = fleet.create("payments")
        fleet.report(cluster, "dns", "False/Throttled/too many calls")
        store = fleet.store
        read: Any = store.read_record
        late: list[Record] = []

        async def read_late(*arguments: Any) -> Record | None:
            """Return for once what was there before, as a reader sees it whom a writer overtakes."""
            record: Record | None = await read(*arguments)
            return late.pop() if late else record

        before = fleet.run(read("Cluster", cluster["id"], EVERYTHING))
        fleet.report(cluster, "validation", "True/Done/well")
        broken = replace(before, answer=b"{}")
        late.append(broken)
        monkeypatch.setattr(store, "read_record", read_late)
        assert fleet.run(_run(Verification(store, fleet.policies.rules))) == []


def test_what_stays_wrong_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = HandClock()
    with open_fleet(MemoryStore(clock), clock, RequestLimits()) as fleet:
        cluster = fleet.create("payments")
        store = fleet.store
        read: Any = store.read_record

        async def read_broken(*arguments: Any) -> Record | None:
            record: Record | None = await read(*arguments)
            return record and replace(record, answer=b"{}")

        monkeypatch.setattr(store, "read_record", read_broken)
        (finding,) = fleet.run(_run(Verification(store, fleet.policies.rules)))
        assert finding.startswith(f"{cluster['id']}: AnswerDiffers: ")


async def _run(verification: Verification) -> list[str]:
    return [str(finding) async for finding in verification.run()]
