"""★ The plan of a simulation: everything that happens to a fleet, ordered by time, from a seed.

Call `plan`. The same options give the same steps, at any speed: there is no clock here, no server and no randomness
except from `randomness`. The plan assumes a server that requires every simulated adapter. A server that requires fewer
removes deleted resources earlier; the driver copes with that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from hyperfleet.simulator.actions import ForceDeleteAction, PlanStep, ResourceRef
from hyperfleet.simulator.adapter_run import AdapterRun, RunContext
from hyperfleet.simulator.adapters import POOL_ADAPTERS, SimulatedAdapter, list_adapters
from hyperfleet.simulator.fault_profiles import FaultProfiles
from hyperfleet.simulator.fleet import DesiredResource, desired_cluster, desired_pools, edit_desired
from hyperfleet.simulator.lifecycles import MINUTE, ClusterLifecycle, draw_lifecycle, scripted_lifecycle
from hyperfleet.simulator.randomness import RandomStream
from hyperfleet.simulator.resource import SimulatedResource
from hyperfleet.simulator.timeline import FOREVER, Routine, Timeline

_GAP: Final = 5 * MINUTE  # between the end of a cluster and its successor, typically
_POOL_DELAY: Final = (4.0, 40.0)  # seconds between a cluster and each of its node pools
_FORCE_REASON: Final = "stuck for too long; the cloud account was cleaned by hand"


class PlanOptions(Struct, frozen=True):
    """What is simulated."""

    seed: int = 1
    clusters: int = 10
    adapters: int = 4
    faults: FaultProfiles = FaultProfiles()
    churn: float = 1.0  # factor on how often people create, change and delete
    heartbeat: float = 180.0  # seconds between reports of an adapter with nothing to do
    ramp: float = 5 * MINUTE  # seconds in which the first clusters are created
    duration: float = FOREVER
    showcase_at: float = 0.0  # of the demo's roles; 0: no roles, every lifecycle is random


def plan(options: PlanOptions) -> Iterator[PlanStep]:
    """Yield everything that happens; without a duration there is no end."""
    return _Planner(options).run()


class _Planner:
    def __init__(self, options: PlanOptions) -> None:
        self._options = options
        self._timeline = Timeline()
        self._adapters = list_adapters(options.adapters)

    def run(self) -> Iterator[PlanStep]:
        for slot in range(self._options.clusters):
            self._timeline.start(self._run_slot(slot))
        return self._timeline.run(self._options.duration)

    def _run_slot(self, slot: int) -> Routine:
        """Run one cluster after the other, so that the size of the fleet stays the same."""
        options = self._options
        number = slot
        random = RandomStream(options.seed, f"cluster-{number}")
        if options.showcase_at:
            lifecycle = scripted_lifecycle(random.derive("story"), slot, options.showcase_at, options.churn)
        else:
            lifecycle = draw_lifecycle(random.derive("story"), random.between(0.0, options.ramp), options.churn)
        while True:
            yield from self._run_cluster(random, number, lifecycle)
            number += options.clusters
            random = RandomStream(options.seed, f"cluster-{number}")
            created = self._timeline.now + random.duration_around(_GAP)
            lifecycle = draw_lifecycle(random.derive("story"), created, options.churn)

    def _run_cluster(self, random: RandomStream, number: int, lifecycle: ClusterLifecycle) -> Routine:
        """Create, edit and delete a cluster, and wait until it is gone."""
        desired = desired_cluster(random.derive("wish"), number)
        cluster = SimulatedResource(self._timeline, ResourceRef(desired.name), desired, self._adapters)
        yield from self._sleep_until(lifecycle.created)
        yield cluster.create()
        self._provision(cluster, lifecycle, random)
        yield from self._add_pools(cluster, lifecycle, random)
        for edit in lifecycle.edits:
            yield from self._sleep_until(edit)
            yield from self._edit(cluster, lifecycle, random)
        yield from self._sleep_until(lifecycle.deleted)
        yield cluster.delete()
        for resource in (cluster, *cluster.children):
            self._finalize(resource, lifecycle, random)
        yield from self._await_removal(cluster, lifecycle.force_delete_after)

    def _add_pools(self, cluster: SimulatedResource, lifecycle: ClusterLifecycle, random: RandomStream) -> Routine:
        for desired in desired_pools(random.derive("pools"), cluster.desired):
            yield random.derive("pools", desired.name).between(*_POOL_DELAY)
            pool = self._make_pool(cluster, desired)
            yield pool.create()
            self._provision(pool, lifecycle, random)

    def _make_pool(self, cluster: SimulatedResource, desired: DesiredResource) -> SimulatedResource:
        ref = ResourceRef(cluster.ref.cluster, desired.name)
        pool = SimulatedResource(self._timeline, ref, desired, POOL_ADAPTERS)
        pool.parent = cluster
        cluster.children.append(pool)
        return pool

    def _edit(self, cluster: SimulatedResource, lifecycle: ClusterLifecycle, random: RandomStream) -> Routine:
        """Change the cluster, and sometimes its first pool."""
        draws = random.derive("edit", str(cluster.generation))
        for resource in (cluster, *cluster.children[:1]):
            if resource is cluster or draws.happens(0.5):
                yield resource.change(edit_desired(draws, resource.desired))
                self._provision(resource, lifecycle, random)

    def _await_removal(self, cluster: SimulatedResource, force_delete_after: float) -> Routine:
        end = self._timeline.now + force_delete_after
        while not cluster.is_gone and self._timeline.now < end:
            yield min(MINUTE, end - self._timeline.now)
        if not cluster.is_gone:
            yield ForceDeleteAction(cluster.ref, _FORCE_REASON)
            cluster.remove()

    def _provision(self, resource: SimulatedResource, lifecycle: ClusterLifecycle, random: RandomStream) -> None:
        resource.start_adapters(
            self._run(adapter, resource, lifecycle, random).provision() for adapter in resource.adapters
        )

    def _finalize(self, resource: SimulatedResource, lifecycle: ClusterLifecycle, random: RandomStream) -> None:
        resource.start_adapters(
            self._run(adapter, resource, lifecycle, random).finalize(_dependents(adapter, resource))
            for adapter in resource.adapters
        )

    def _run(
        self, adapter: SimulatedAdapter, resource: SimulatedResource, lifecycle: ClusterLifecycle, random: RandomStream
    ) -> AdapterRun:
        faults = self._options.faults.profile_of(adapter.name)
        own = random.derive("at", resource.ref.pool)
        return AdapterRun(
            adapter, RunContext(self._timeline, resource, lifecycle, own, faults, self._options.heartbeat)
        )

    def _sleep_until(self, time: float) -> Routine:
        if time > self._timeline.now:
            yield time - self._timeline.now


def _dependents(adapter: SimulatedAdapter, resource: SimulatedResource) -> list[str]:
    return [other.name for other in resource.adapters if adapter.name in other.needs]
