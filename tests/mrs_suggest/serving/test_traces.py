"""OpenTelemetry traces and metrics of a real server, received by a real collector on this machine."""

import gzip
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("opentelemetry.exporter.otlp.proto.http")

import httpx
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.utils import floatToGoString

from mrs_suggest.common.errors import InputError
from mrs_suggest.serving.observe import otlp_metrics
from mrs_suggest.serving.observe.metrics import Metrics
from mrs_suggest.serving.observe.otlp_metrics import MetricExport
from tests.mrs_suggest.serving.server_process import ServerProcess
from tests.scoring_server import running

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@dataclass
class Collector:
    """A collector: where it listens, and the spans and the metrics of each export that it has received."""

    url: str
    spans: list[Any] = field(default_factory=list)
    exports: list[Any] = field(default_factory=list)


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        ours: Collector = self.server.ours  # type: ignore[attr-defined]
        if self.path == "/v1/metrics":
            ours.exports += ExportMetricsServiceRequest.FromString(body).resource_metrics
        asked = ExportTraceServiceRequest.FromString(body if self.path == "/v1/traces" else b"")
        ours.spans += [one for some in asked.resource_spans for scope in some.scope_spans for one in scope.spans]
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_a_request_is_a_trace_from_the_queue_to_the_ranking(tmp_path: Path) -> None:
    with running(_Handler, Collector) as collector:
        with ServerProcess(folder=tmp_path, environment={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}) as server:
            server.wait_for_workers()
            asked = {"messages": ["Are you coming to dinner tonight?", "Thanks for the flowers!"], "language": "en"}
            for headers in ({"traceparent": f"00-{TRACE}-{PARENT}-01"}, {}):
                assert httpx.post(f"{server.url}/v1/suggest", json=asked, headers=headers).status_code == 200
            assert server.stop() == 0  # what is left is exported
        by_trace: dict[str, dict[str, Any]] = defaultdict(dict)
        for one in collector.spans:
            by_trace[one.trace_id.hex()][one.name] = one
    assert len(by_trace) == 2
    own = by_trace[TRACE]
    assert set(own) == {"suggest", "queue", "answer", "guard", "encode", "rank"}
    assert own["suggest"].parent_span_id.hex() == PARENT
    parents = {name: one.parent_span_id for name, one in own.items()}
    assert parents["queue"] == parents["answer"] == own["suggest"].span_id
    assert parents["guard"] == parents["rank"] == own["answer"].span_id
    assert parents["encode"] == own["answer"].span_id, "the guard and the ranking use the same vectors"
    for inner, outer in (("queue", "suggest"), ("answer", "suggest"), ("guard", "answer"), ("rank", "answer")):
        assert own[outer].start_time_unix_nano <= own[inner].start_time_unix_nano
        assert own[inner].start_time_unix_nano <= own[inner].end_time_unix_nano <= own[outer].end_time_unix_nano
    assert own["queue"].end_time_unix_nano <= own["guard"].start_time_unix_nano
    assert [one.value.int_value for one in own["answer"].attributes] == [2]
    assert not any(word in str(collector.spans) for word in ("dinner", "flowers"))


def samples_of(exported: Any) -> dict[str, float]:
    """The samples of an export, named as Prometheus names them."""
    found: dict[str, float] = {}
    for metric in exported.scope_metrics[0].metrics:
        kind = metric.WhichOneof("data")
        for point in getattr(metric, kind).data_points:
            labels = {one.key: one.value.string_value for one in point.attributes}
            if kind != "histogram":
                name = f"{metric.name}_total" if kind == "sum" else metric.name
                found[sample_name(name, labels)] = point.as_double
                continue
            assert metric.histogram.aggregation_temporality == 2, "cumulative"
            below = accumulate(point.bucket_counts)
            bounds = [*map(floatToGoString, point.explicit_bounds), "+Inf"]
            for bound, count in zip(bounds, below, strict=True):
                found[sample_name(f"{metric.name}_bucket", {**labels, "le": bound})] = count
            found[sample_name(f"{metric.name}_count", labels)] = point.count
            found[sample_name(f"{metric.name}_sum", labels)] = point.sum
    return found


def sample_name(name: str, labels: dict[str, str]) -> str:
    return f"{name}{sorted(labels.items())}"


@pytest.mark.parametrize("workers", [1, 2])
def test_the_exported_metrics_are_those_of_prometheus(tmp_path: Path, workers: int) -> None:
    with running(_Handler, Collector) as collector:
        environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_METRIC_EXPORT_INTERVAL": "200"}
        with ServerProcess("--workers", str(workers), folder=tmp_path, environment=environment) as server:
            server.wait_for_workers(workers)
            asked = {"messages": ["Are you coming to dinner tonight?", ""], "language": "en"}
            for _ in range(4):
                assert httpx.post(f"{server.url}/v1/suggest", json=asked).status_code == 200
            page = httpx.get(f"{server.url}/metrics").text
            assert server.stop() == 0
    by_worker = {str(one.resource.attributes): one for one in collector.exports}  # the last of each
    assert len(collector.exports) > len(by_worker) == workers
    assert all('"mrs-serve"' in name for name in by_worker)
    together: Counter[str] = Counter()
    for one in by_worker.values():
        together.update(samples_of(one))
    parsed = [sample for family in text_string_to_metric_families(page) for sample in family.samples]
    shown = {sample_name(s.name, s.labels): s.value for s in parsed if not s.name.endswith("_created")}
    after = {name for name in shown if "/metrics" in name or "/health" in name}  # requests that came later, too
    assert {name: together[name] for name in shown if name not in after} == pytest.approx(
        {name: value for name, value in shown.items() if name not in after}
    )
    messages = {name: value for name, value in shown.items() if name.startswith("mrs_messages_total")}
    assert sorted(messages.values()) == [4, 4], messages


def test_metrics_are_left_out_where_the_environment_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    assert MetricExport.configured(Metrics().registry) is None
    monkeypatch.delenv("OTEL_METRICS_EXPORTER")
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "1m")
    with pytest.raises(InputError, match="OTEL_METRIC_EXPORT_INTERVAL=1m: expected a whole number of milliseconds"):
        MetricExport.configured(Metrics().registry)


def test_a_worker_stops_without_its_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(otlp_metrics, "LAST_SECONDS", 0.1)
    export = MetricExport.configured(Metrics().registry)
    assert export is not None
    export.stop()
    export._thread.join(5)
    assert not export._thread.is_alive(), "the exporter no longer tries"
