"""The exposition format: metrics as Prometheus reads them, in its text format or as OpenMetrics.

`metrics` decides who sees what. Whole families go through prometheus_client, which knows both formats. The lines of
single resources, of which there may be hundreds of thousands, are written here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from prometheus_client import GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector, CollectorRegistry
from prometheus_client.samples import Sample

from hyperfleet.services.instruments import MetricFamily, Values
from hyperfleet.services.measures import Measures
from hyperfleet.services.time_slices import TimeSlices
from hyperfleet.services.worker_totals import MetricTotals, ProcessFigure

_OPEN_METRICS: Final = "application/openmetrics-text"
_END: Final = b"# EOF\n"  # of OpenMetrics
_TOTAL: Final = "_total"


class ExpositionFormat(Struct, frozen=True):
    """A format that a scraper may ask for."""

    encode: Callable[[Collector], bytes]
    media_type: str

    @classmethod
    def choose(cls, accept: str) -> ExpositionFormat:
        """Return the format that a scraper prefers."""
        return cls(*choose_encoder(accept))

    @property
    def end(self) -> bytes:
        """Return what ends the text."""
        return _END if self.media_type.startswith(_OPEN_METRICS) else b""

    async def write(self, metrics: Iterable[Metric]) -> bytes:
        """Write metrics, without the end; yield to other tasks in between."""
        slices, pieces = TimeSlices(), []
        for metric in metrics:
            pieces.append(self.encode(_Once(metric)).removesuffix(self.end))
            await slices.yield_if_due()
        return b"".join(pieces)


class _Once(Collector):
    """A collector of one metric, which is what prometheus_client encodes."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> Iterable[Metric]:
        return (self._metric,)


def metric_of(family: MetricFamily, values: Values) -> Metric:
    """Convert a counter or a gauge."""
    metric = Metric(family.name.removesuffix(_TOTAL), family.help, family.kind)
    metric.samples = [
        Sample(family.name, dict(zip(family.labels, labels, strict=True)), value)
        for labels, value in sorted(values.items())
    ]
    return metric


def metrics_of(total: MetricTotals, measures: Measures) -> Iterator[Metric]:
    """Convert everything that the processes have counted."""
    for counter in measures.counters:
        yield metric_of(counter.family, total.counters.get(counter.family.name, {}))
    for histogram in measures.histograms:
        yield _histogram_of(histogram.family, total.histograms.get(histogram.family.name, {}))
    for gauge in measures.gauges:
        yield metric_of(gauge.family, {(): total.gauges.get(gauge.family.name, 0.0)})
    yield from _process_metrics(total.process)


def _histogram_of(family: MetricFamily, series: Mapping[tuple[str, ...], Sequence[float]]) -> Metric:
    metric = HistogramMetricFamily(family.name, family.help, labels=family.labels)
    ends = [*(f"{bound:g}" for bound in family.bounds), "+Inf"]
    for labels, (*counts, total) in sorted(series.items()):
        upto, buckets = 0.0, []
        for end, count in zip(ends, counts, strict=True):
            upto += count
            buckets.append((end, upto))
        metric.add_metric(labels, buckets, total)
    return metric


# ── process metrics ──────────────────────────────────────────────────────────────────────────────────────────────────

_UNUSED: Final = CollectorRegistry()  # the collectors require one
_COLLECTORS: Final = (ProcessCollector(registry=_UNUSED), PlatformCollector(registry=_UNUSED), GCCollector(_UNUSED))


def read_process() -> list[ProcessFigure]:
    """Return what the operating system and Python know of this process."""
    return [
        ProcessFigure(metric.name, metric.type, metric.documentation, [(s.labels, s.value) for s in metric.samples])
        for collector in _COLLECTORS
        for metric in collector.collect()
    ]


def _process_metrics(figures: Iterable[tuple[str, ProcessFigure]]) -> list[Metric]:
    """Convert the metrics of processes; several processes differ in the label `worker`."""
    metrics: dict[str, Metric] = {}
    for worker, figure in figures:
        metric = metrics.setdefault(figure.name, Metric(figure.name, figure.help, figure.kind))
        name = figure.name + (_TOTAL if figure.kind == "counter" else "")
        extra = {"worker": worker} if worker else {}
        metric.samples += [Sample(name, {**labels, **extra}, value) for labels, value in figure.rows]
    return list(metrics.values())


# ── single resources ─────────────────────────────────────────────────────────────────────────────────────────────────


def head_of(family: MetricFamily) -> bytes:
    """Write the HELP and TYPE lines of a family."""
    return f"# HELP {family.name} {family.help}\n# TYPE {family.name} {family.kind}\n".encode()


def escape(value: str) -> str:
    """Escape the value of a label."""
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
