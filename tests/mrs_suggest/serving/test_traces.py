"""OpenTelemetry traces of a real server, received by a real collector on this machine."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("opentelemetry.exporter.otlp.proto.http")

import httpx
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from mrs_suggest.common.spans import span
from tests.mrs_suggest.serving.server_process import ServerProcess

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@contextmanager
def collector() -> Iterator[tuple[str, list[Any]]]:
    """The URL of a collector, and the spans that it has received."""
    spans: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            import gzip

            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            asked = ExportTraceServiceRequest.FromString(body)
            spans.extend(one for some in asked.resource_spans for scope in some.scope_spans for one in scope.spans)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", spans
        server.shutdown()


def test_a_request_is_a_trace_from_the_queue_to_the_ranking(tmp_path: Path) -> None:
    with collector() as (url, spans):
        with ServerProcess(folder=tmp_path, environment={"OTEL_EXPORTER_OTLP_ENDPOINT": url}) as server:
            server.wait_for_workers()
            asked = {"messages": ["Are you coming to dinner tonight?", "Thanks for the flowers!"], "language": "en"}
            for headers in ({"traceparent": f"00-{TRACE}-{PARENT}-01"}, {}):
                assert httpx.post(f"{server.url}/v1/suggest", json=asked, headers=headers).status_code == 200
            assert server.stop() == 0  # what is left is exported
        by_trace: dict[str, dict[str, Any]] = defaultdict(dict)
        for one in spans:
            by_trace[one.trace_id.hex()][one.name] = one
    assert len(by_trace) == 2
    own = by_trace[TRACE]
    assert set(own) == {"suggest", "queue", "answer", "guard", "encode", "rank"}
    assert own["suggest"].parent_span_id.hex() == PARENT
    parents = {name: one.parent_span_id for name, one in own.items()}
    assert parents["queue"] == parents["answer"] == own["suggest"].span_id
    assert parents["guard"] == parents["rank"] == own["answer"].span_id
    assert parents["encode"] == own["guard"].span_id, "the ranking uses the guard's vectors"
    for inner, outer in (("queue", "suggest"), ("answer", "suggest"), ("guard", "answer"), ("rank", "answer")):
        assert own[outer].start_time_unix_nano <= own[inner].start_time_unix_nano
        assert own[inner].start_time_unix_nano <= own[inner].end_time_unix_nano <= own[outer].end_time_unix_nano
    assert own["queue"].end_time_unix_nano <= own["guard"].start_time_unix_nano
    assert [one.value.int_value for one in own["answer"].attributes] == [2]
    assert not any(word in str(spans) for word in ("dinner", "flowers"))


def test_without_a_tracer_steps_do_nothing() -> None:
    with span("rank") as nothing:
        assert nothing is None
