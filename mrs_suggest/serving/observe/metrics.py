"""Prometheus metrics, shared by several workers through the folder `PROMETHEUS_MULTIPROC_DIR`."""

import os
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, multiprocess

SHARED = "PROMETHEUS_MULTIPROC_DIR"
# Seconds: from a tenth of a small model's answer to the default time limit.
BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)


class Metrics:
    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        counter = partial(Counter, registry=registry)
        seconds = partial(Histogram, buckets=BUCKETS, registry=registry)
        self.requests = counter("mrs_requests", "Requests by route and status.", ["route", "status"])
        self.seconds = seconds("mrs_request_seconds", "From a request's head to its answer.", ["route"])
        self.messages = counter(
            "mrs_messages", "Messages by model, language and outcome: answered, nothing, or the code of the error.",
            ["model", "version", "language", "outcome"],
        )  # fmt: skip
        self.shadows = counter(
            "mrs_shadow_answers", "Answers of shadow models: same, different, failed, or dropped for others' sake.",
            ["model", "version", "outcome"],
        )  # fmt: skip
        self.feedback = counter("mrs_feedback", "Answers with feedback: chosen, or not.", ["outcome"])
        self.batch_messages = Histogram(
            "mrs_batch_messages", "Messages of a batch.", buckets=(1, 2, 4, 8, 16, 32, 64, 128), registry=registry
        )
        self.batch_seconds = seconds("mrs_batch_seconds", "Seconds of the model for a batch.")
        self.wait_seconds = seconds("mrs_wait_seconds", "Wait of the oldest message of a batch.")
        self.waiting = Gauge(
            "mrs_waiting_messages", "Messages that wait for the model.", registry=registry,
            multiprocess_mode="livesum",
        )  # fmt: skip
        self.reloads = counter("mrs_reloads", "Loads of a new model by outcome: done, failed.", ["outcome"])
        for outcome in ("done", "failed"):  # from 0 on: `increase` does not count the value that a series starts with
            self.reloads.labels(outcome)

    def page(self) -> bytes:
        if SHARED not in os.environ:
            return generate_latest(self.registry)
        together = CollectorRegistry()
        multiprocess.MultiProcessCollector(together)
        return generate_latest(together)
