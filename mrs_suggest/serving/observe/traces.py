"""OpenTelemetry traces of requests (extra `otel`): how long they wait for the model, and what it does then.

The environment variables of OpenTelemetry configure the export by OTLP over HTTP; without one of `ENDPOINTS`, nothing
is traced. A trace has the spans `suggest` (a request), `queue` (until the model takes its first message), and `answer`
(a batch) with the steps `guard`, `encode` and `rank`. The batch belongs to the trace of its first request, and links to
the others. Texts are never part of a span.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, Self
from uuid import uuid4

from mrs_suggest.common import __version__
from mrs_suggest.common.spans import trace_with

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
SERVICE = "OTEL_SERVICE_NAME"


@cache
def resource() -> Any:
    """The worker in traces and metrics; its own id keeps its counters apart from those of other workers."""
    from opentelemetry.sdk.resources import Resource

    os.environ.setdefault(SERVICE, "mrs-serve")
    return Resource.create({"service.instance.id": str(uuid4())})


class Traces:
    """The tracer of a worker.

    Raises:
        ModuleNotFoundError: the extra `otel` is not installed.
    """

    def __init__(self) -> None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        self._provider = TracerProvider(resource=resource(), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("mrs_suggest", __version__)
        trace_with(self._tracer.start_as_current_span)

    @classmethod
    def configured(cls) -> Self | None:
        """The tracer that the environment asks for; None if it asks for none."""
        return cls() if any(os.environ.get(name) for name in ENDPOINTS) else None

    @contextmanager
    def request(self, headers: Mapping[str, str], messages: int) -> Iterator[tuple[Any, int]]:
        """The span of a request, a child of the caller's (`traceparent`); what its questions need for theirs."""
        from opentelemetry.context import get_current
        from opentelemetry.propagate import extract
        from opentelemetry.trace import SpanKind

        with self._tracer.start_as_current_span(
            "suggest", extract(headers), SpanKind.SERVER, {"mrs.messages": messages}, record_exception=False
        ):
            yield get_current(), time.time_ns()

    def answering(self, traced: Sequence[tuple[Any, int] | None], answer: Callable[[], Any]) -> Any:
        """Answer a batch, whose questions come from these requests."""
        from opentelemetry.trace import Link, get_current_span

        requests = list({id(one[0]): one for one in traced if one is not None}.values())
        for context, asked in requests:
            self._tracer.start_span("queue", context, start_time=asked).end()
        first, *others = [context for context, _ in requests] or [None]
        links = [Link(get_current_span(context).get_span_context()) for context in others]
        with self._tracer.start_as_current_span(
            "answer", first, attributes={"mrs.messages": len(traced)}, links=links, record_exception=False
        ):
            return answer()

    def stop(self) -> None:
        """Export what is left."""
        trace_with(None)
        self._provider.shutdown()
