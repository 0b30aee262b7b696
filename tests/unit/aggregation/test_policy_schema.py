"""The JSON Schema of a policy, as editors use it."""

from __future__ import annotations

import jsonschema
import pytest
from ruamel.yaml import YAML

from hyperfleet.aggregation.loading.policy_document import policy_schema
from tests.conformance.timeline import POLICY_FILES

_BOOLEANS = {True: "true", False: "false"}


def test_it_says_what_it_is() -> None:
    schema = policy_schema()
    assert (schema["$id"], schema["title"]) == ("urn:hyperfleet:schema:policy", "HyperFleet aggregation policy")


@pytest.mark.parametrize("name", sorted(POLICY_FILES))
def test_it_takes_the_policies_that_we_ship(name: str) -> None:
    policy = YAML(typ="safe").load(POLICY_FILES[name].read_text())
    # The guide writes the template keys as YAML booleans; JSON has only text for keys.
    for condition in policy["clusterConditions"]:
        templates = condition.get("templates", {})
        condition["templates"] = {_BOOLEANS.get(key, key): template for key, template in templates.items()}
    jsonschema.validate(policy, policy_schema())


def test_it_refuses_a_key_that_we_do_not_know() -> None:
    with pytest.raises(jsonschema.ValidationError, match="requiredAdapter"):
        jsonschema.validate({"requiredAdapter": ["dns"]}, policy_schema())
