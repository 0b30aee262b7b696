"""What a role may do: every operation with every role, and that a reporter reports as nobody else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from hyperfleet.api.description.operations import Operation
from hyperfleet.api.description.table import list_operations
from hyperfleet.backends.memory import MemoryStore
from hyperfleet.ports import Store
from hyperfleet.services.callers import Role
from tests.api.compat_client import COMPAT, report_body
from tests.api.fleet import ROOT, SPEC, HandClock, problem_of
from tests.api.guarding import NOW, GuardedFleet, bearer, known, open_guarded
from tests.issuing import claims, sign
from tests.world import body

# What operations need; those not named here are read with GET and need a reader. A new one that writes must be added by
# somebody who has thought about it.
NEEDS: Final[Mapping[Role | None, frozenset[str]]] = {
    None: frozenset(
        {
            "getLiveness",
            "getReadiness",
            "getDescription",
            "getEventDescription",
            "getDocs",
            "listProblems",
            "getProblem",
        }
    ),
    "reader": frozenset({"simulatePolicy"}),  # it writes nothing
    "reporter": frozenset(
        {
            *(f"{verb}{kind}Status" for verb in ("report", "patch") for kind in ("Cluster", "NodePool")),
            *(f"put{kind}AdapterStatus" for kind in ("Cluster", "NodePool")),
            *(f"retire{kind}Adapter" for kind in ("Cluster", "NodePool")),
            "reportBatch",
            *("putSubscription", "pullMessages", "acknowledgeMessages", "rejectMessages", "replayMessages"),
            *("lookClusters", "lookNodePools", "joinSentinel", "leaveSentinel"),
        }
    ),
    "editor": frozenset(
        [
            *(f"{verb}{kind}" for verb in ("create", "replace", "patch", "delete") for kind in ("Cluster", "NodePool")),
            *(f"reconcile{kind}" for kind in ("Cluster", "Clusters", "NodePool", "NodePools", "AllNodePools")),
        ]
    ),
    "admin": frozenset(
        {
            *("forceDeleteCluster", "forceDeleteNodePool", "putPolicy", "rollBackPolicy", "reloadPolicy"),
            "deleteSubscription",
            *("listWebhooks", "getWebhook", "testWebhook", "enableWebhook"),
        }
    ),
}
# Who may do what needs a role.
MAY: Final[Mapping[Role, frozenset[str]]] = {
    "reader": frozenset({"reader", "reporter", "editor", "admin"}),
    "reporter": frozenset({"reporter", "admin"}),
    "editor": frozenset({"editor", "admin"}),
    "admin": frozenset({"admin"}),
}
CALLERS: Final = ("reader", "reporter", "editor", "admin")


@pytest.fixture
def guarded(store: Store, clock: HandClock, tmp_path: Path) -> Iterator[GuardedFleet]:
    """Give a server that asks, on every store."""
    with open_guarded(store, clock, tmp_path) as guarded:
        yield guarded


@pytest.fixture
def memory_guarded(clock: HandClock, tmp_path: Path) -> Iterator[GuardedFleet]:
    """Give a server that asks, for what no store has a part in."""
    with open_guarded(MemoryStore(clock), clock, tmp_path) as guarded:
        yield guarded


def role_of(operation: Operation) -> Role | None:
    """Return the role that the table above has for an operation."""
    found = [role for role, ids in NEEDS.items() if operation.id in ids]
    assert found or operation.method == "get", f"{operation.id} is not in the table"
    return found[0] if found else "reader"


def address_of(operation: Operation) -> str:
    """Return the path of an operation with its examples in it."""
    path = operation.path
    for parameter in operation.parameters:
        if parameter.location == "path":
            path = path.replace(f"{{{parameter.name}}}", str(parameter.example))
    return ROOT + path


class Untouchable:
    """A body that nobody may read."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Refuse to be read."""
        raise AssertionError("the body was read before the caller was refused")


def ask(guarded: GuardedFleet, operation: Operation, headers: dict[str, Any], *, is_refused: bool) -> Any:
    """Send the example of an operation; whoever is refused has not sent a body yet."""
    more: dict[str, Any] = {}
    if operation.body is not None:
        headers = {**headers, "Content-Type": operation.body.content_types[0]}
        encoded = msgspec.json.encode(operation.body.example)
        more["content"] = Untouchable() if is_refused else encoded
        headers["Content-Length"] = str(len(encoded))
    return guarded.send(operation.method.upper(), address_of(operation), headers, **more)


def test_the_table_has_every_operation(memory_guarded: GuardedFleet) -> None:
    operations = list_operations(memory_guarded.fleet.context)
    assert {each.id: each.role for each in operations} == {each.id: role_of(each) for each in operations}
    assert frozenset[str]().union(*NEEDS.values()) <= {each.id for each in operations}, "nothing that is gone"


def test_every_operation_with_every_role(guarded: GuardedFleet) -> None:
    without_roles = bearer(sign(claims(NOW, roles=None)))
    for operation in list_operations(guarded.fleet.context):
        role = role_of(operation)
        for name in CALLERS:
            may = role is None or name in MAY[role]
            answer = ask(guarded, operation, known(name), is_refused=not may)
            assert (answer.status_code not in (401, 403)) is may, (operation.id, name, answer.text)
            if not may:
                problem = problem_of(answer, 403, "Forbidden")
                assert problem["detail"] == f"this needs the role {role}; {name} has {name}"
                expected = f'Bearer realm="hyperfleet", error="insufficient_scope", scope="{role}"'
                assert answer.headers["www-authenticate"] == expected
        answer = ask(guarded, operation, without_roles, is_refused=role is not None)
        assert (answer.status_code == 403) is (role is not None), (operation.id, "a caller without any role")
        answer = ask(guarded, operation, {}, is_refused=role is not None)
        assert (answer.status_code == 401) is (role is not None), (operation.id, "a caller without a token")


def test_the_other_dialect_knows_the_same_roles(memory_guarded: GuardedFleet) -> None:
    paths = memory_guarded.fleet.get(f"{COMPAT}/openapi").json()["paths"]
    tried = 0
    for path, verbs in paths.items():
        for verb in verbs:
            role = compat_role_of(verb, path)
            address = f"{ROOT}/compat{path}".replace("{id}", "x").replace("{parent_id}", "y")
            for name in CALLERS:
                answer = memory_guarded.send(verb.upper(), address, known(name), content=b"{}")
                assert (answer.status_code != 403) is (name in MAY[role]), (verb, path, name, answer.text)
                if answer.status_code == 403:
                    assert answer.json()["code"] == "HYPERFLEET-AUZ-001"
            tried += 1
    assert tried >= 16


def compat_role_of(verb: str, path: str) -> Role:
    match verb, path.rpartition("/")[2]:
        case "get", _:
            return "reader"
        case "put", "statuses":
            return "reporter"
        case "post", "force-delete":
            return "admin"
    return "editor"


def test_the_policy_is_everybodys(memory_guarded: GuardedFleet) -> None:
    for method, path in (("POST", "/policy:reload"), ("PUT", "/policy"), ("POST", "/policy:rollback")):
        problem = problem_of(memory_guarded.act(method, path, name="red-admin"), 403, "Forbidden")
        assert "red-admin sees only some tenants" in problem["detail"]
    assert memory_guarded.act("POST", "/policy:reload").status_code == 200


def test_foreign_things_are_not_there(guarded: GuardedFleet) -> None:
    cluster = guarded.act("POST", "/clusters", {"name": "payments", "spec": SPEC}).json()
    for name in ("nobody", "red-admin"):
        problem_of(guarded.act("GET", f"/clusters/{cluster['id']}", name=name), 404, "NotFound")
    sees_nothing = bearer(sign(claims(NOW, tenants=None)))
    problem_of(guarded.send("GET", f"/clusters/{cluster['id']}", sees_nothing), 404, "NotFound")
    assert guarded.send("GET", "/clusters", sees_nothing).json()["items"] == []


# ── adapters ─────────────────────────────────────────────────────────────────────────────────────────────────────


def ways_to_report(id_: str, adapter: str) -> list[tuple[str, str, Any]]:
    """Return every way to report as an adapter, the fast lane among them."""
    report, own = body(adapter, "True"), body("dns", "True")
    return [
        ("POST", f"/clusters/{id_}/statuses", report),
        ("PUT", f"/clusters/{id_}/statuses/adapters/{adapter}", report),
        ("PATCH", f"/clusters/{id_}/statuses/status-{id_}-gen1", report),
        ("POST", f"/clusters/{id_}/statuses", {"adapterStatuses": [own, report]}),
        ("PUT", f"{COMPAT}/clusters/{id_}/statuses", report_body(adapter, "True")),
        ("DELETE", f"/clusters/{id_}/statuses/adapters/{adapter}", None),
    ]


def test_an_adapter_reports_as_nobody_else(guarded: GuardedFleet) -> None:
    cluster = guarded.act("POST", "/clusters", {"name": "payments", "spec": SPEC}).json()
    place = f"/clusters/{cluster['id']}"
    assert guarded.act("POST", f"{place}/statuses", body("validation", "True")).status_code == 200
    before = [guarded.act("GET", path).json() for path in (place, f"{place}/statuses", f"{place}/history")]
    for method, path, json in ways_to_report(cluster["id"], "validation"):
        for headers in (
            known("dns"),
            {**known("dns"), "Prefer": "return=representation"},  # this one takes the ordinary way
            bearer(sign(claims(NOW, sub="dns", roles=["reporter"], adapters=["dns"]))),
            bearer(sign(claims(NOW, sub="dns", roles=["reporter"]))),
        ):
            answer = guarded.send(method, path, headers, **({} if json is None else {"json": json}))
            assert answer.status_code == 403, (method, path, answer.text)
            code = "HYPERFLEET-AUZ-001" if "/compat/" in path else "NotYourAdapter"
            assert answer.json()["code"] == code, (method, path)
    assert [guarded.act("GET", path).json() for path in (place, f"{place}/statuses", f"{place}/history")] == before


def test_one_foreign_report_of_a_batch_is_refused_alone(guarded: GuardedFleet) -> None:
    cluster = guarded.act("POST", "/clusters", {"name": "payments", "spec": SPEC}).json()
    reports = [{"clusterId": cluster["id"], **body(adapter, "True")} for adapter in ("dns", "validation")]
    answer = guarded.act("POST", "/statuses:batch", {"reports": reports}, name="dns")
    assert answer.status_code == 200
    taken, refused = answer.json()["results"]
    assert "NotYourAdapter" in str(refused)
    assert "NotYourAdapter" not in str(taken)
    statuses = guarded.act("GET", f"/clusters/{cluster['id']}/statuses").json()
    assert "validation" not in str(statuses["adapterStatuses"])


def test_an_adapter_reports_as_itself(guarded: GuardedFleet) -> None:
    cluster = guarded.act("POST", "/clusters", {"name": "payments", "spec": SPEC}).json()
    place = f"/clusters/{cluster['id']}/statuses"
    assert guarded.act("POST", place, body("dns", "True"), name="dns").status_code == 200
    assert guarded.act("PUT", f"{place}/adapters/dns", body("dns", "False"), name="dns").status_code == 200
    assert guarded.act("DELETE", f"{place}/adapters/dns", name="dns").status_code in (200, 204)
