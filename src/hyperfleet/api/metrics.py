"""`/metrics`: metrics of this server and of the fleet, for Prometheus. Outside the base path.

Callers who see the whole fleet get everything. Callers bound to tenants get metrics of their own resources and none of
the server. With `metrics.public`, unauthenticated callers get metrics of the server and none of resources.
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
from hyperfleet.api.exposition import ExpositionFormat, metric_of, metrics_of, read_process
from hyperfleet.api.health import find_reasons
from hyperfleet.api.problems import Problem
from hyperfleet.api.resource_metrics import CUT_OFF, STATE_SETS, ResourceMetrics
from hyperfleet.api.responses import answer_in
from hyperfleet.errors import HyperFleetError
from hyperfleet.ports import EVERYTHING, Scope
from hyperfleet.services.fleet_figures import OF_ALL, OF_TENANTS, FleetFigures
from hyperfleet.services.instruments import MetricFamily, Values
from hyperfleet.services.measures import Measures
from hyperfleet.services.worker_totals import WorkerTotals

PATH: Final = "/metrics"

_LOG: Final = logging.getLogger(__name__)
_STORE_TIMEOUT: Final = 8.0  # seconds; Prometheus gives up on a scrape after ten

BUILD: Final = MetricFamily("hyperfleet_build_info", "gauge", "The version of this server; always 1.", ("version",))
POLICY: Final = MetricFamily(
    "hyperfleet_policy_info", "gauge", "The policy in force here; always 1.", ("version", "digest")
)
ACTIVATED: Final = MetricFamily(
    "hyperfleet_policy_activated_timestamp_seconds", "gauge", "When that policy came into force."
)
READINESS: Final = MetricFamily(
    "hyperfleet_ready",
    "gauge",
    "1 if the server can take reads and writes, as in /readyz; check is store, queue or policy.",
    ("check",),
)
STORE_UP: Final = MetricFamily(
    "hyperfleet_store_up", "gauge", "1 if the store was writable at the time of this scrape."
)
FLEET_UP: Final = MetricFamily(
    "hyperfleet_fleet_figures_up",
    "gauge",
    "1 if this scrape has the metrics of the fleet; 0 if the store was unavailable.",
)

WEBHOOK_LAG: Final = MetricFamily(
    "hyperfleet_webhook_lag_seconds", "gauge", "For how long the oldest change has waited to be sent.", ("webhook",)
)
WEBHOOK_DISABLED: Final = MetricFamily(
    "hyperfleet_webhook_disabled", "gauge", "1 if a webhook sends nothing until it is enabled again.", ("webhook",)
)

_OF_SERVER: Final = (BUILD, POLICY, ACTIVATED, READINESS, STORE_UP, WEBHOOK_LAG, WEBHOOK_DISABLED)


def list_families() -> list[MetricFamily]:
    """Return every family of a scrape except those of Python and the process, for the documentation."""
    measures = Measures()
    counted = [*(each.family for each in measures.counters), *(each.family for each in measures.histograms)]
    gauges = [each.family for each in measures.gauges]
    return [*OF_TENANTS, FLEET_UP, *OF_ALL, *STATE_SETS, CUT_OFF, *counted, *gauges, *_OF_SERVER]


class _View(Struct, frozen=True):
    """What a caller may see."""

    of_server: bool
    fleet: Scope | None  # None: nothing


def routes(context: Context) -> list[Route]:
    """Return the routes of this module; their paths are absolute."""
    options = context.metrics
    totals = context.totals or WorkerTotals(context.measures, read_process)
    fleet = FleetFigures(context.store, context.policies, context.kinds, options.refresh_interval, options.max_adapters)
    resources = ResourceMetrics(context.store, context.kinds, options.max_resources) if options.per_resource else None

    async def read(request: Request) -> Response:
        """Answer all metrics that the caller may see."""
        view = _view_of(request, is_public=options.public)
        form = ExpositionFormat.choose(request.headers.get("accept", ""))
        text = b""
        if view.of_server:
            text += await form.write(await _describe_server(context))
            text += await form.write(metrics_of(totals.total(), context.measures))
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
    return [*metrics, *await _describe_webhooks(context)]


async def _describe_webhooks(context: Context) -> list[Metric]:
    """Read how webhooks are doing, at whichever replica they are sent from; nothing without the store."""
    if context.events.webhooks is None:
        return []
    try:
        async with asyncio.timeout(_STORE_TIMEOUT):
            found = await context.events.webhooks.statuses()
    except (HyperFleetError, TimeoutError) as error:
        _LOG.warning("metrics without webhooks: %s", error or "the store did not answer in time")
        return []
    now = context.clock.now()
    lags: Values = {(each.webhook.name,): each.lag_seconds(now) for each in found}
    disabled: Values = {(each.webhook.name,): float(each.state.disabled_time is not None) for each in found}
    return [metric_of(WEBHOOK_LAG, lags), metric_of(WEBHOOK_DISABLED, disabled)]


async def _describe_fleet(fleet: FleetFigures, scope: Scope) -> list[Metric]:
    """Read the metrics of the fleet; without the store, the scrape still has those of the server."""
    try:
        async with asyncio.timeout(_STORE_TIMEOUT):
            figures = await fleet.read(scope)
    except (HyperFleetError, TimeoutError) as error:
        _LOG.warning("metrics without the fleet: %s", error or "the store did not answer in time")
        return [metric_of(FLEET_UP, {(): 0})]
    return [metric_of(FLEET_UP, {(): 1}), *(metric_of(family, values) for family, values in figures.items())]
