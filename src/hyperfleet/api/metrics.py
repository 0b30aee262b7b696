"""`/metrics`: what this server does, and how the fleet is, for Prometheus. Outside the base path.

Who sees everything is told everything. Who is bound to tenants is told of their resources, and nothing of the server.
With `metrics.public`, who is not known is told of the server, and of no resource.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from msgspec import Struct
from prometheus_client.core import Metric
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hyperfleet import __version__
from hyperfleet.api.callers import CALLER, caller_of, require
from hyperfleet.api.context import Context
from hyperfleet.api.exposition import ExpositionFormat, look_at_process, metric_of, metrics_of
from hyperfleet.api.health import find_reasons
from hyperfleet.api.problems import Problem
from hyperfleet.api.resource_metrics import CUT_OFF, STATE_SETS, ResourceMetrics
from hyperfleet.api.responses import answer_in
from hyperfleet.errors import HyperFleetError
from hyperfleet.ports import EVERYTHING, Scope
from hyperfleet.services.fleet_figures import OF_ALL, OF_TENANTS, FleetFigures
from hyperfleet.services.instruments import Family, Values
from hyperfleet.services.measures import Measures
from hyperfleet.services.tallies import Tallies

PATH: Final = "/metrics"

_LOG: Final = logging.getLogger(__name__)
_PATIENCE: Final = 8.0  # seconds for the store; Prometheus gives up after ten

BUILD: Final = Family("hyperfleet_build_info", "gauge", "Which version answers; always 1.", ("version",))
POLICY: Final = Family(
    "hyperfleet_policy_info", "gauge", "Which policy is in force here; always 1.", ("version", "digest")
)
ACTIVATED: Final = Family("hyperfleet_policy_activated_timestamp_seconds", "gauge", "When that policy came into force.")
READINESS: Final = Family(
    "hyperfleet_ready",
    "gauge",
    "1 if nothing stands in the way of reads and writes, as /readyz tells; check is store, queue or policy.",
    ("check",),
)
STORE_UP: Final = Family(
    "hyperfleet_store_up", "gauge", "1 if the store could be written to at the time of this scrape."
)
FLEET_UP: Final = Family(
    "hyperfleet_fleet_figures_up", "gauge", "1 if the figures of the fleet are in this scrape; 0: the store was away."
)

_OF_SERVER: Final = (BUILD, POLICY, ACTIVATED, READINESS, STORE_UP)


def list_families() -> list[Family]:
    """Return everything that a scrape may have but the figures of Python and the system, for the documentation."""
    measures = Measures()
    counted = [*(each.family for each in measures.counters), *(each.family for each in measures.histograms)]
    looked_at = [each.family for each in measures.gauges]
    return [*OF_TENANTS, FLEET_UP, *OF_ALL, *STATE_SETS, CUT_OFF, *counted, *looked_at, *_OF_SERVER]


class _View(Struct, frozen=True):
    """What somebody may see."""

    of_server: bool
    fleet: Scope | None  # None: nothing of it


def routes(context: Context) -> list[Route]:
    """Return the routes of this module; their paths are absolute."""
    options = context.metrics
    tallies = context.tallies or Tallies(context.measures, look_at_process)
    fleet = FleetFigures(context.store, context.policies, context.kinds, options.refresh_interval, options.max_adapters)
    resources = ResourceMetrics(context.store, context.kinds, options.max_resources) if options.per_resource else None

    async def read(request: Request) -> Response:
        """Answer all figures that the caller may see."""
        view = _view_of(request, is_public=options.public)
        form = ExpositionFormat.choose(request.headers.get("accept", ""))
        text = b""
        if view.of_server:
            text += await form.write(await _describe_server(context))
            text += await form.write(metrics_of(tallies.add_up(), context.measures))
        if view.fleet is not None:
            text += await form.write(await _describe_fleet(fleet, view.fleet))
        if resources is None or view.fleet is None:
            return answer_in(request, text + form.end, form.media_type)
        return resources.stream(request, text, form, view.fleet)

    return [Route(PATH, read, methods=["GET"])]


def _view_of(request: Request, *, is_public: bool) -> _View:
    found: object = request.scope[CALLER]
    if is_public and isinstance(found, Problem) and found.code == "Unauthenticated":
        return _View(of_server=True, fleet=None)
    require(request, "reader")
    scope = caller_of(request).scope
    return _View(of_server=scope == EVERYTHING, fleet=scope)


async def _describe_server(context: Context) -> list[Metric]:
    reasons = {reason.check for reason in await find_reasons(context)}
    checks: Values = {(check,): float(check not in reasons) for check in ("store", "queue", "policy")}
    metrics = [
        metric_of(BUILD, {(__version__,): 1}),
        metric_of(READINESS, checks),
        metric_of(STORE_UP, {(): checks["store",]}),
    ]
    if (policy := context.policies.version) is not None:
        metrics.append(metric_of(POLICY, {(str(policy.version), policy.digest): 1}))
        metrics.append(metric_of(ACTIVATED, {(): policy.time.timestamp()}))
    return metrics


async def _describe_fleet(fleet: FleetFigures, scope: Scope) -> list[Metric]:
    """Read how the fleet is; without the store a scrape is still worth something."""
    try:
        async with asyncio.timeout(_PATIENCE):
            figures = await fleet.read(scope)
    except (HyperFleetError, TimeoutError) as error:
        _LOG.warning("metrics without the fleet: %s", error or "the store takes too long")
        return [metric_of(FLEET_UP, {(): 0})]
    return [metric_of(FLEET_UP, {(): 1}), *(metric_of(family, values) for family, values in figures.items())]
