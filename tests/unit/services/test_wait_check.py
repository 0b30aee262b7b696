"""What a wait is for: read as it is described, and compared with one version at a time."""

from __future__ import annotations

from itertools import product
from typing import Any

import jsonschema
import msgspec
import pytest

from hyperfleet.api.description.kind_paths import KindPaths
from hyperfleet.api.description.watch_operations import operations_on
from hyperfleet.model.kind import CLUSTER, Kinds
from hyperfleet.services.wait_check import check_version
from hyperfleet.services.wait_query import read_wait_query

SUBJECTS = ("condition", "phase", "adapter", "generation", "deleted", "colour", "")
NAMES = ("", "=", "=Ready", "=dns", "=3", "=-", "=x.io/Y", "=Failed", "=٣")
VALUES = ("", "=", "=True", "=Failed", "=Yes", "=Completed")


def answer(
    phase: str = "Provisioning",
    generation: int = 2,
    ready: tuple[str, int] = ("False", 2),
    dns: tuple[str, int] = ("Running", 2),
) -> bytes:
    condition = {"type": "Ready", "status": ready[0], "reason": "R", "message": "m", "observedGeneration": ready[1]}
    adapter = {"name": "dns", "state": dns[0], "observedGeneration": dns[1]}
    status = {"phase": phase, "phaseDescription": "d", "conditions": [condition], "adapters": [adapter]}
    return msgspec.json.encode({"id": "cls-1", "generation": generation, "status": status})


@pytest.mark.parametrize("name", ["for", "failOn"])
def test_what_is_described_is_what_is_read(name: str) -> None:
    (operation,) = operations_on(KindPaths(CLUSTER, Kinds()))
    (parameter,) = [each for each in operation.parameters if each.name == name]
    validator = jsonschema.Draft202012Validator(parameter.schema)
    for pieces in product(SUBJECTS, NAMES, VALUES):
        text = "".join(pieces)
        assert validator.is_valid([text]) == (not read_wait_query({name: [text]}).errors), text


@pytest.mark.parametrize(
    ("version", "wish", "holds"),
    [
        (answer(ready=("True", 2)), "condition=Ready", True),
        (answer(ready=("True", 1)), "condition=Ready", False),
        (answer(ready=("False", 2)), "condition=Ready", False),
        (answer(ready=("False", 2)), "condition=Ready=False", True),
        (answer(), "condition=Else=False", False),
        (answer("Ready"), "phase=Ready", True),
        (answer("Failed"), "phase=Ready", False),
        (answer(dns=("Completed", 2)), "adapter=dns", True),
        (answer(dns=("Running", 2)), "adapter=dns", False),
        (answer(dns=("Running", 2)), "adapter=dns=Running", True),
        (answer(dns=("Unhealthy", 1)), "adapter=dns=Unhealthy", False),
        (answer(dns=("Outdated", 1)), "adapter=dns=Outdated", True),
        (answer(), "adapter=pull=Unreported", True),
        (answer(), "adapter=pull", False),
        (answer(), "generation=2", True),
        (answer(dns=("Outdated", 1)), "generation=2", False),
        (answer(), "generation=3", False),
        (answer(), "deleted", False),
        (None, "deleted", True),
        (None, "phase=Ready", False),
    ],
)
def test_one_wish(version: bytes | None, wish: str, holds: bool) -> None:
    finding = check_version(read_wait_query({"for": [wish]}), version)
    assert finding.is_met is holds
    assert [each.condition.text for each in finding.missing] == ([] if holds else [wish])
    failing = check_version(read_wait_query({"for": ["generation=1"], "failOn": [wish]}), version)
    assert (failing.failure is not None) is holds


def test_any_generation_will_do_if_told() -> None:
    parameters: dict[str, Any] = {"for": ["condition=Ready", "adapter=dns=Unhealthy"], "observed": ["any"]}
    version = answer(ready=("True", 1), dns=("Unhealthy", 1))
    assert check_version(read_wait_query(parameters), version).is_met
    assert not check_version(read_wait_query({**parameters, "observed": ["current"]}), version).is_met


def test_failure_comes_first() -> None:
    finding = check_version(
        read_wait_query({"for": ["phase=Ready"], "failOn": ["adapter=dns=Failed"]}), answer("Ready", dns=("Failed", 2))
    )
    assert not finding.is_met
    assert finding.failure is not None
    assert finding.failure.why == "dns is Failed at generation 2; Ready is False: R, m"
