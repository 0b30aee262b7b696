"""The lifecycle of a cluster: when it is created, edited and deleted, and when its adapters have faults.

`draw_lifecycle` draws one at random. `scripted_lifecycle` follows the roles of the demo, so that at one time, the
showcase, some cluster is in every state that a fleet can have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from hyperfleet.simulator.fault_profiles import FaultProfile
from hyperfleet.simulator.randomness import RandomStream

MINUTE: Final = 60.0
HOUR: Final = 60 * MINUTE
_FOREVER: Final = 1000 * HOUR

_BETWEEN_EDITS: Final = 3 * HOUR  # of one cluster, on average
_LIFETIME: Final = 12 * HOUR
_FORCE_DELETE_AFTER: Final = (40 * MINUTE, 3 * HOUR)  # the range it is drawn from


class FaultPeriod(Struct, frozen=True):
    """A time in which fields of an adapter's fault profile are different."""

    adapter: str
    begin: float
    end: float
    fields: Mapping[str, Any]


class ClusterLifecycle(Struct, frozen=True):
    """What happens to a cluster, in seconds of the plan."""

    created: float
    edits: tuple[float, ...] = ()
    deleted: float = _FOREVER
    force_delete_after: float = _FOREVER  # seconds between the deletion and a forced one
    fault_periods: tuple[FaultPeriod, ...] = ()

    def profile_at(self, now: float, adapter: str, default: FaultProfile) -> FaultProfile:
        """Return the fault profile of an adapter at a time."""
        for period in self.fault_periods:
            if period.adapter == adapter and period.begin <= now < period.end:
                default = replace(default, **{**period.fields, **_remaining_silence(period, now)})
        return default

    def next_profile_change(self, now: float, adapter: str) -> float:
        """Return when the profile of an adapter changes next."""
        own = (period for period in self.fault_periods if period.adapter == adapter)
        changes = (time for period in own for time in (period.begin, period.end))
        return min((time for time in changes if time > now), default=_FOREVER)


def _remaining_silence(period: FaultPeriod, now: float) -> dict[str, float]:
    """Let a silence end with its period."""
    return {"silent": period.end - now} if "silence_probability" in period.fields else {}


def draw_lifecycle(random: RandomStream, created: float, churn: float) -> ClusterLifecycle:
    """Draw a lifecycle; `churn` is a factor on how often people edit and delete."""
    if not churn:
        return ClusterLifecycle(created)
    deleted = created + 20 * MINUTE + random.next_event(_LIFETIME / churn)
    edits: list[float] = []
    time = created + random.next_event(_BETWEEN_EDITS / churn)
    while time < deleted and len(edits) < 100:
        edits.append(round(time, 3))
        time += 2 * MINUTE + random.next_event(_BETWEEN_EDITS / churn)
    return ClusterLifecycle(created, tuple(edits), round(deleted, 3), random.between(*_FORCE_DELETE_AFTER))


class DemoRole(Struct, frozen=True):
    """The script of one cluster of the demo. Times are minutes before the showcase; what follows it is random."""

    name: str
    created: float
    edited: float | None = None
    deleted: float | None = None
    faults: tuple[tuple[str, float, float, Mapping[str, Any]], ...] = ()  # adapter, begin, end (minutes after), fields
    summary: str = ""


_FAILS: Final = {"fail": 1.0}
_SICK: Final = {"sick": 1.0}
_STUCK: Final = {"stuck": True}
_ABSENT: Final = {"absent": True}
_FLAPS: Final = {"flap": 50.0}
_SILENT: Final = {"silence_probability": 1.0, "silent": HOUR}
_READY: Final = DemoRole("ready", 73, summary="has been ready for an hour")

# The first clusters get these roles, in this order; all others are ready.
DEMO_ROLES: Final = (
    _READY,
    DemoRole("rolling-out", 70, edited=3, summary="is rolling out another release"),
    DemoRole("failing", 68, edited=38, faults=(("dns", 39, 120, _FAILS),), summary="its DNS records cannot be created"),
    DemoRole("provisioning", 9, summary="was created minutes ago"),
    _READY,
    DemoRole("flapping", 72, faults=(("infrastructure", 26, 240, _FLAPS),), summary="is flapping"),
    DemoRole("unhealthy", 71, faults=(("hypershift", 18, 90, _SICK),), summary="works, but an adapter is unhealthy"),
    DemoRole(
        "silent", 69, faults=(("infrastructure", 34, 400, _SILENT),), summary="an adapter has not reported for long"
    ),
    DemoRole("deleting", 67, deleted=4, summary="is being deleted"),
    DemoRole("stuck", 66, deleted=37, faults=(("infrastructure", 38, 60, _STUCK),), summary="its deletion is stuck"),
    _READY,
    DemoRole("failing", 65, faults=(("infrastructure", 22, 60, _FAILS),), summary="was ready and has failed"),
    DemoRole("adapter-missing", 52, faults=(("hypershift", 60, 300, _ABSENT),), summary="one adapter never reported"),
    DemoRole("recovered", 72, faults=(("dns", 50, -30, _FAILS),), summary="was broken half an hour ago"),
    DemoRole("new", 0.4, summary="was created seconds ago"),
    DemoRole("not-started", 4, faults=(("validation", 10, 300, _ABSENT),), summary="no adapter has started on it"),
    DemoRole("failing", 31, faults=(("validation", 40, 45, _FAILS),), summary="failed validation"),
    _READY,
    DemoRole(
        "failing", 64, edited=44, faults=(("dns", 45, 150, _FAILS),), summary="shares its cause with another cluster"
    ),
    DemoRole("provisioning", 5, summary="was created minutes ago"),
    DemoRole("unhealthy", 63, faults=(("dns", 14, 45, _SICK),), summary="its DNS provider does not answer"),
)
DEMO_PAST: Final = 75 * MINUTE  # what the roles need before the showcase


def scripted_lifecycle(random: RandomStream, number: int, showcase_at: float, churn: float) -> ClusterLifecycle:
    """Return the lifecycle of a cluster's role in the demo; after the showcase it is random."""
    role = DEMO_ROLES[number] if number < len(DEMO_ROLES) else _READY
    later = draw_lifecycle(random, showcase_at, churn)
    deleted = later.deleted if role.deleted is None else showcase_at - role.deleted * MINUTE
    edits = (*_before(showcase_at, role.edited), *later.edits)
    return ClusterLifecycle(
        created=max(showcase_at - role.created * MINUTE + (number % 7) * 5.0, 0.0),
        edits=tuple(edit for edit in edits if edit < deleted),
        deleted=deleted,
        force_delete_after=max(later.force_delete_after, HOUR),
        fault_periods=tuple(
            FaultPeriod(adapter, showcase_at - begin * MINUTE, showcase_at + end * MINUTE, fields)
            for adapter, begin, end, fields in role.faults
        ),
    )


def _before(showcase_at: float, minutes: float | None) -> tuple[float, ...]:
    return () if minutes is None else (showcase_at - minutes * MINUTE,)
