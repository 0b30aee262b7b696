"""★ The plan of a simulation: everything that happens to a fleet, in the order of time, from a seed.

`plan` is the front door. The same options give the same steps, whoever asks and however fast they are carried out:
there is no clock here, no server and no chance but that of `chance`. The plan believes in a server that requires every
simulated adapter; one that requires fewer lets resources go earlier, which the driver takes in its stride.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from hyperfleet.simulator.actions import ForceDelete, Place, Step
from hyperfleet.simulator.adapters import POOL_ADAPTERS, Adapter, list_adapters
from hyperfleet.simulator.chance import Chance
from hyperfleet.simulator.fleet import Wish, change_wish, wish_for_cluster, wish_for_pools
from hyperfleet.simulator.member import Member
from hyperfleet.simulator.running import Run, Scene
from hyperfleet.simulator.stories import MINUTE, Story, cast, improvise
from hyperfleet.simulator.temper import Faults
from hyperfleet.simulator.timeline import FOREVER, Routine, Timeline

_GAP: Final = 5 * MINUTE  # between the end of a cluster and its successor, typically
_POOL_DELAY: Final = (4.0, 40.0)  # seconds after which somebody adds node pools
_LOST_PATIENCE: Final = "stuck for too long; the cloud account was cleaned by hand"


class Options(Struct, frozen=True):
    """What is simulated."""

    seed: int = 1
    clusters: int = 10
    adapters: int = 4
    faults: Faults = Faults()
    churn: float = 1.0  # how many times as often as usual people create, change and delete
    heartbeat: float = 180.0  # seconds after which a settled adapter looks again
    ramp: float = 5 * MINUTE  # in which the first clusters are asked for
    duration: float = FOREVER
    moment: float = 0.0  # of a show, at which somebody is in every state; 0: none, everything is improvised


def plan(options: Options) -> Iterator[Step]:
    """Yield everything that happens, without end if the duration has none."""
    return _World(options).run()


class _World:
    def __init__(self, options: Options) -> None:
        self._options = options
        self._timeline = Timeline()
        self._adapters = list_adapters(options.adapters)

    def run(self) -> Iterator[Step]:
        for slot in range(self._options.clusters):
            self._timeline.start(self._inhabit(slot))
        return self._timeline.run(self._options.duration)

    def _inhabit(self, slot: int) -> Routine:
        """Let one cluster after the other live in a place of the fleet."""
        options = self._options
        number = slot
        chance = Chance(options.seed, f"cluster-{number}")
        if options.moment:
            story = cast(chance.of("story"), slot, options.moment, options.churn)
        else:
            story = improvise(chance.of("story"), chance.between(0.0, options.ramp), options.churn)
        while True:
            yield from self._live(chance, number, story)
            number += options.clusters
            chance = Chance(options.seed, f"cluster-{number}")
            story = improvise(chance.of("story"), self._timeline.now + chance.about(_GAP), options.churn)

    def _live(self, chance: Chance, number: int, story: Story) -> Routine:
        """Let people create a cluster, change their minds and delete it, and wait until it has gone."""
        wish = wish_for_cluster(chance.of("wish"), number)
        cluster = Member(self._timeline, Place(wish.name), wish, self._adapters)
        yield from self._pass_until(story.born)
        yield cluster.create()
        self._provision(cluster, story, chance)
        yield from self._add_pools(cluster, story, chance)
        for edit in story.edits:
            yield from self._pass_until(edit)
            yield from self._edit(cluster, story, chance)
        yield from self._pass_until(story.deleted)
        yield cluster.delete()
        for member in (cluster, *cluster.children):
            self._finalize(member, story, chance)
        yield from self._await_end(cluster, story.patience)

    def _add_pools(self, cluster: Member, story: Story, chance: Chance) -> Routine:
        for wish in wish_for_pools(chance.of("pools"), cluster.wish):
            yield chance.of("pools", wish.name).between(*_POOL_DELAY)
            pool = self._make_pool(cluster, wish)
            yield pool.create()
            self._provision(pool, story, chance)

    def _make_pool(self, cluster: Member, wish: Wish) -> Member:
        place = Place(cluster.place.cluster, wish.name)
        pool = Member(self._timeline, place, wish, POOL_ADAPTERS)
        pool.parent = cluster
        cluster.children.append(pool)
        return pool

    def _edit(self, cluster: Member, story: Story, chance: Chance) -> Routine:
        """Change the cluster, and sometimes a pool as well."""
        mind = chance.of("edit", str(cluster.generation))
        for member in (cluster, *cluster.children[:1]):
            if member is cluster or mind.happens(0.5):
                yield member.change(change_wish(mind, member.wish))
                self._provision(member, story, chance)

    def _await_end(self, cluster: Member, patience: float) -> Routine:
        end = self._timeline.now + patience
        while not cluster.is_gone and self._timeline.now < end:
            yield min(MINUTE, end - self._timeline.now)
        if not cluster.is_gone:
            yield ForceDelete(cluster.place, _LOST_PATIENCE)
            cluster.remove()

    def _provision(self, member: Member, story: Story, chance: Chance) -> None:
        member.employ(self._run(adapter, member, story, chance).provision() for adapter in member.adapters)

    def _finalize(self, member: Member, story: Story, chance: Chance) -> None:
        member.employ(
            self._run(adapter, member, story, chance).finalize(_dependents(adapter, member))
            for adapter in member.adapters
        )

    def _run(self, adapter: Adapter, member: Member, story: Story, chance: Chance) -> Run:
        usual = self._options.faults.temper_of(adapter.name)
        own = chance.of("at", member.place.pool)
        return Run(adapter, Scene(self._timeline, member, story, own, usual, self._options.heartbeat))

    def _pass_until(self, time: float) -> Routine:
        if time > self._timeline.now:
            yield time - self._timeline.now


def _dependents(adapter: Adapter, member: Member) -> list[str]:
    return [other.name for other in member.adapters if adapter.name in other.needs]
