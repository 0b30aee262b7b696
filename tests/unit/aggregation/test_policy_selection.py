"""Which policy is for which resource: per kind, per tenant, per label; the one that restricts most wins."""

from __future__ import annotations

import pytest

from hyperfleet.aggregation.aggregate import aggregate
from hyperfleet.aggregation.loading.policy_loader import load_policies
from hyperfleet.aggregation.policy import PolicySet
from hyperfleet.model.resource import Resource
from tests.world import START

POLICIES = """
name: clusters
requiredAdapters: [dns]
---
name: node-pools
appliesTo: {kind: NodePool}
requiredAdapters: [nodes]
---
name: production
appliesTo: {labels: {environment: production}}
requiredAdapters: [dns, audit]
---
name: production-gpu
appliesTo: {labels: {environment: production, gpu: "yes"}}
requiredAdapters: [dns, audit, gpu]
---
name: acme
appliesTo: {tenants: [acme, acme-labs]}
requiredAdapters: [acme-dns]
---
name: acme-production
appliesTo: {tenants: [acme], labels: {environment: production}}
requiredAdapters: [acme-dns, audit]
"""


def resource(kind: str = "Cluster", tenant: str = "", **labels: str) -> Resource:
    return Resource("id-1", kind, "one", 1, START, START, labels=labels, tenant=tenant)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        pytest.param(resource(), "clusters", id="nothing special"),
        pytest.param(resource("NodePool"), "node-pools", id="per kind"),
        pytest.param(resource("NodePool", "acme", environment="production"), "node-pools", id="a policy is per kind"),
        pytest.param(resource(environment="production"), "production", id="per label"),
        pytest.param(resource(environment="staging"), "clusters", id="another value of the label"),
        pytest.param(resource(environment="production", team="a"), "production", id="further labels do not matter"),
        pytest.param(resource(environment="production", gpu="yes"), "production-gpu", id="more labels win"),
        pytest.param(resource(gpu="yes"), "clusters", id="all of the labels are needed"),
        pytest.param(resource(tenant="acme"), "acme", id="per tenant"),
        pytest.param(resource(tenant="acme-labs"), "acme", id="one of several tenants"),
        pytest.param(resource(tenant="other"), "clusters", id="another tenant"),
        pytest.param(resource(tenant="acme", environment="production"), "acme-production", id="tenant and label"),
        pytest.param(
            resource(tenant="acme-labs", environment="production", gpu="yes"), "acme", id="a tenant before labels"
        ),
    ],
)
def test_the_policy_that_restricts_most_wins(given: Resource, name: str) -> None:
    assert load_policies(POLICIES).select(given).name == name


def test_the_order_of_the_documents_does_not_matter() -> None:
    turned = PolicySet(tuple(reversed(load_policies(POLICIES).policies)))
    assert turned.select(resource(environment="production", gpu="yes")).name == "production-gpu"
    assert turned.select(resource()).name == "clusters"


def test_among_equals_the_first_wins() -> None:
    policies = load_policies(
        "name: a\nappliesTo: {labels: {x: '1'}}\n---\nname: b\nappliesTo: {labels: {y: '1'}}\n", "two.yaml"
    )
    assert policies.select(resource(x="1", y="1")).name == "a"


def test_without_a_policy_nothing_is_required() -> None:
    """docs/semantics.md §4: with no required adapters both are True (NoRequiredAdapters) and the phase is Ready."""
    other = resource("Database")
    policy = load_policies(POLICIES).select(other)
    status = aggregate(other, {}, policy, None, START)
    assert (policy.required, status.phase) == ((), "Ready")
    assert (policy.name, policy.digest, policy.selector.kind) == ("(none for Database)", "none", "Database")
    assert {(c.type, c.status, c.reason) for c in status.conditions} == {
        ("Available", "True", "NoRequiredAdapters"),
        ("Ready", "True", "NoRequiredAdapters"),
    }


def test_the_digest_names_what_decides_a_status() -> None:
    """The status stores it, and a resource with another one is computed anew: names and events decide nothing."""

    def digest(text: str) -> str:
        return load_policies(text).policies[0].digest

    base = digest("requiredAdapters: [dns]\n")
    assert digest("# a comment\nrequiredAdapters:\n  - dns\n") == base
    assert digest("name: other\nrequiredAdapters: [dns]\n") == base
    assert digest("requiredAdapters: [dns]\npubsub: {provider: rabbitmq}\n") == base
    assert digest("requiredAdapters: [dns]\npolicies: {maxRetries: 9, retryInterval: 5s}\n") == base
    others = {
        digest("requiredAdapters: [dns, validation]\n"),
        digest("requiredAdapters: [dns]\noptionalAdapters: [logging]\n"),
        digest("requiredAdapters: [dns]\npolicies: {staleThreshold: 10m}\n"),
        digest("requiredAdapters: [dns]\npolicies: {waitingReasons: [Queued]}\n"),
        digest("requiredAdapters: [dns]\ndefaultBehavior: {timeout: 10m}\n"),
        digest("requiredAdapters: [dns]\nphases: {pending: {description: Wait}}\n"),
        digest("requiredAdapters: [dns]\nclusterConditions: [{type: A, evaluate: {expr: 'true'}}]\n"),
    }
    assert len(others) == 7
    assert base not in others


def test_the_digest_is_the_same_whatever_the_order_of_keys() -> None:
    one, two = (
        load_policies(f"appliesTo: {{labels: {{{labels}}}}}\n").policies[0].digest
        for labels in ("a: '1', b: '2'", "b: '2', a: '1'")
    )
    assert one == two
    assert len(one) == 16
