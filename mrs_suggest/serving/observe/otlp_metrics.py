"""The metrics of a worker by OTLP over HTTP (extra `otel`), as OpenTelemetry's environment variables configure it.

They are read from the registry for Prometheus, which has the only definition of each.
"""

import os
import threading
import time
from collections import defaultdict
from itertools import pairwise
from typing import Any, Self

from prometheus_client import CollectorRegistry

from mrs_suggest.common.errors import InputError
from mrs_suggest.serving.observe.traces import resource

ENDPOINTS = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
EXPORTER = "OTEL_METRICS_EXPORTER"  # `none`: no metrics, for a collector that only takes traces
INTERVAL = "OTEL_METRIC_EXPORT_INTERVAL"  # milliseconds
LAST_SECONDS = 5  # for the last export, so that a worker can stop without its collector


class MetricExport:
    """Exports a registry at intervals and at the end; InputError if the environment's interval is no number."""

    def __init__(self, registry: CollectorRegistry) -> None:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

        given = os.environ.get(INTERVAL, "60000")
        if not given.isdecimal() or int(given) == 0:
            raise InputError(f"{INTERVAL}={given}: expected a whole number of milliseconds from 1.")
        self._registry, self._exporter, self._resource = registry, OTLPMetricExporter(), resource()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, args=[int(given) / 1000], daemon=True)
        self._thread.start()

    @classmethod
    def configured(cls, registry: CollectorRegistry) -> Self | None:
        """The export that the environment asks for; None if it asks for none."""
        asked = any(os.environ.get(name) for name in ENDPOINTS) and os.environ.get(EXPORTER) != "none"
        return cls(registry) if asked else None

    def stop(self) -> None:
        """Export what is left."""
        self._stopped.set()
        self._thread.join(LAST_SECONDS)
        self._exporter.shutdown()

    def _run(self, seconds: float) -> None:
        from opentelemetry.sdk.metrics.export import MetricsData, ResourceMetrics, ScopeMetrics
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope

        scope, started, stopped = InstrumentationScope("mrs_suggest"), time.time_ns(), False
        while not stopped:
            stopped = self._stopped.wait(seconds)
            metrics = [_metric(family, started) for family in self._registry.collect() if family.samples]
            rows = [ResourceMetrics(self._resource, [ScopeMetrics(scope, metrics, "")], "")]
            self._exporter.export(MetricsData(rows))


def _metric(family: Any, started: int) -> Any:
    """A metric of Prometheus for OTLP."""
    from opentelemetry.sdk.metrics import export

    points: Any = defaultdict(lambda: defaultdict(list))  # labels -> end of the samples' name -> values
    for sample in family.samples:
        labels = tuple(label for label in sample.labels.items() if label[0] != "le")
        points[labels][sample.name.removeprefix(family.name)].append(sample.value)
    bounds = sorted({float(sample.labels["le"]) for sample in family.samples if "le" in sample.labels})[:-1]
    rows: list[Any] = []
    for labels, ends in points.items():
        given: Any = [dict(labels), started, time.time_ns()]
        if bounds:
            counts = [int(b - a) for a, b in pairwise([0, *ends["_bucket"]])]
            given += [sum(counts), ends["_sum"][0], counts, bounds, None, None]  # without extremes
        else:
            given += ends["_total"] or ends[""]
        rows.append((export.HistogramDataPoint if bounds else export.NumberDataPoint)(*given))
    whole = export.AggregationTemporality.CUMULATIVE
    data: Any = export.Histogram(rows, whole) if bounds else export.Sum(rows, whole, is_monotonic=True)
    if family.type == "gauge":
        data = export.Gauge(rows)
    return export.Metric(family.name, family.documentation, "s" if family.name.endswith("_seconds") else "", data)
