"""An operator with kopf that keeps the conditions of `Site` objects, with `hyperfleet.conditions`.

A Site stands for the Deployments with the label `example.com/site: <its name>`. The operator aggregates their
`Available` conditions into `DeploymentsAvailable`, and summarizes the Site in `Ready`.

    pip install hyperfleet kopf
    kubectl apply -f examples/kopf_operator.yaml
    kopf run --all-namespaces examples/kopf_operator.py

`next_status` decides and can be tested without a cluster; the functions below it connect it to kopf.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import kopf

from hyperfleet.conditions import (
    Aggregation,
    Condition,
    Source,
    SummaryOptions,
    aggregate,
    read_conditions,
    read_source,
    set_condition,
    summarize,
    write_conditions,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SITE_LABEL = "example.com/site"


def next_status(site: Mapping[str, Any], deployments: Iterable[Mapping[str, Any]], now: datetime) -> dict[str, Any]:
    """Return the body of a merge patch of the Site's status; empty when nothing changed."""
    before = read_conditions(site).all()  # raises if one cannot be read: a patch replaces the whole list
    generation = site["metadata"].get("generation", 0)
    after = before
    for decide in (paused, deployments_available, ready):
        view = Source(kind="Site", name=site["metadata"]["name"], conditions=after)
        condition = decide(site, deployments, view)
        after = set_condition(after, condition, now=now, generation=generation)
    return {} if after == before else {"conditions": write_conditions(after)}


def paused(site: Mapping[str, Any], _deployments: object, _view: Source) -> Condition:
    """Decide `Paused`."""
    if site.get("spec", {}).get("paused") is True:
        return Condition("Paused", "True", "Paused", "Site spec.paused is set to true")
    return Condition("Paused", "False", "NotPaused")


def deployments_available(_site: object, deployments: Iterable[Mapping[str, Any]], _view: Source) -> Condition:
    """Decide `DeploymentsAvailable`."""
    sources = [read_source({"kind": "Deployment", **deployment}) for deployment in deployments]
    if not sources:
        message = f"No Deployment has the label {SITE_LABEL}"
        return Condition("DeploymentsAvailable", "False", "NoDeployments", message)
    return aggregate(sources, Aggregation(source_type="Available", target="DeploymentsAvailable"))


def ready(_site: object, _deployments: object, view: Source) -> Condition:
    """Decide `Ready` from the conditions decided before it."""
    types = ("Paused", "DeploymentsAvailable")
    return summarize(view, SummaryOptions(target="Ready", types=types, negative=("Paused",)))


@kopf.index("apps", "v1", "deployments", labels={SITE_LABEL: kopf.PRESENT})
def deployments_by_site(body: kopf.Body, **_: Any) -> dict[tuple[str | None, str], dict[str, Any]]:
    """Remember the Deployments of each Site."""
    return {(body.metadata.namespace, body.metadata.labels[SITE_LABEL]): dict(body)}


@kopf.timer("example.com", "v1", "sites", interval=5.0)
def keep_status(body: kopf.Body, patch: kopf.Patch, **given: Any) -> None:
    """Bring the status of a Site up to date every few seconds; kopf sends the patch if it is not empty."""
    index = given["deployments_by_site"]  # what the function above returned, collected by key
    deployments = index.get((body.metadata.namespace, body.metadata.name), ())
    patch.status.update(next_status(body, list(deployments), datetime.now(UTC)))
