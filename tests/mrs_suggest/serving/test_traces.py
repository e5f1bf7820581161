"""OpenTelemetry traces of a real server, received by a real collector on this machine."""

from __future__ import annotations

import gzip
from collections import defaultdict
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("opentelemetry.exporter.otlp.proto.http")

import httpx
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.mrs_suggest.serving.server_process import ServerProcess
from tests.scoring_server import running

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@dataclass
class Collector:
    """A collector: where it listens, and the spans that it has received."""

    url: str
    spans: list[Any] = field(default_factory=list)


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        asked = ExportTraceServiceRequest.FromString(body)
        ours: Collector = self.server.ours  # type: ignore[attr-defined]
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
