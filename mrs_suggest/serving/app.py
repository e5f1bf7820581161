"""The routes of the server."""

import asyncio
import json
import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response, Security
from fastapi.security import APIKeyHeader, HTTPBearer
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import FileResponse

from mrs_suggest.common import __version__
from mrs_suggest.common.errors import MrsError
from mrs_suggest.common.suggest_arguments import MOST_SUGGESTIONS
from mrs_suggest.serving.batcher import Batcher, QueueFullError
from mrs_suggest.serving.clicks import ClickError, ClickStore
from mrs_suggest.serving.gate import MAX_FIELDS, MAX_HEAD, Gate, GoneError, Refusal, error_json
from mrs_suggest.serving.observe.logs import LOGGER, log
from mrs_suggest.serving.observe.metrics import Metrics
from mrs_suggest.serving.observe.otlp_metrics import MetricExport
from mrs_suggest.serving.observe.traces import Traces
from mrs_suggest.serving.reading import accepted_languages, read_body, read_question
from mrs_suggest.serving.schema import (
    ErrorResponse,
    FeedbackRequest,
    Health,
    ModelsResponse,
    ReloadResponse,
    SuggestRequest,
    SuggestResponse,
    request_schema,
)
from mrs_suggest.serving.served import Item, Question, ServedModels, Traced
from mrs_suggest.serving.settings import ADMIN_KEYS, API_KEYS, Keys, Settings
from mrs_suggest.suggest.conversation import read_conversations

# Keys in the schema; `Gate` checks them. Either header is accepted.
KEYS = [
    Security(HTTPBearer(description="an API key; `/v1/reload` needs an admin key", auto_error=False)),
    Security(APIKeyHeader(name="X-API-Key", description="the same keys, in a header", auto_error=False)),
]
BATCH_SECONDS = 0.05  # a batch grows no further if it should take longer, or longer than twice its fixed cost; ours
ALONE = 0.5  # seconds between two checks that the supervisor is alive
JSON = "application/json"
WEB = Path(__file__).parent / "web"  # a page for trying it, and the chips for other pages


class Worker:
    """One process of the server: its models, its queue, its metrics, and where it keeps clicks."""

    def __init__(self, settings: Settings, served: ServedModels) -> None:
        self.settings, self.served, self.metrics = settings, served, Metrics()
        self.clicks = ClickStore(settings.feedback) if settings.feedback else None
        self.traces, self.exported = Traces.configured(), MetricExport.configured(self.metrics.registry)
        self.batcher = Batcher(self._answer, settings.max_batch, BATCH_SECONDS, settings.max_waiting, self._observe)
        self.stopping = False
        self.ahead = False  # has loaded the new model before the supervisor notifies all workers
        self._reloading = asyncio.Lock()
        self.tasks = set[asyncio.Task[None]]()  # questions to shadow models

    def _answer(self, questions: Sequence[Question]) -> list[Item]:
        """The items of a batch, from the current models."""
        if self.traces is None:
            return self.served.answer(questions)
        return self.traces.answering([one.traced for one in questions], lambda: self.served.answer(questions))

    def _observe(self, size: int, seconds: float, waited: float) -> None:
        self.metrics.batch_messages.observe(size)
        self.metrics.batch_seconds.observe(seconds)
        self.metrics.wait_seconds.observe(waited)
        self.metrics.waiting.set(self.batcher.waiting)

    async def suggest(
        self, asked: SuggestRequest, prefer: tuple[str, ...] | None = None, traced: Traced | None = None
    ) -> list[Item]:
        """The items of a request; Refusal if the queue is full, or the answer takes too long."""
        if asked.model is not None and asked.model not in self.served.by_name:
            names = " ".join(self.served.by_name)
            raise Refusal(422, "unknown_model", f"the server has no such model; pass one of {names}.")
        model = asked.model or self.served.draw(asked.session)
        tags = tuple(asked.allow), tuple(asked.deny)
        explain = asked.explain or self.clicks is not None  # parts are kept for `mrs feedback tune`
        rest = asked.language, asked.k, explain, *tags, prefer, asked.min_score, model, traced
        turns = [[turn.model_dump(by_alias=True) for turn in turns] for turns in asked.conversations]
        questions = [Question(one, *rest) for one in read_conversations([*asked.messages, *turns])]
        items = [self.served.by_name[question.model].refusal(question) for question in questions]
        open_ones = [number for number, item in enumerate(items) if item is None]
        try:
            futures = self.batcher.submit([questions[number] for number in open_ones])
        except QueueFullError as error:
            raise Refusal(429, "too_many_waiting", str(error), retry_after=str(error.seconds)) from None
        try:
            async with asyncio.timeout(self.settings.answer_seconds):
                found = await asyncio.gather(*futures)
        except TimeoutError:
            sentence = (
                f"no answer within {self.settings.answer_seconds:g} s; try again, or send fewer messages at a time."
            )
            raise Refusal(503, "timeout", sentence, retry_after="1") from None
        finally:
            for future in futures:
                future.cancel()
        for number, item in zip(open_ones, found, strict=True):
            items[number] = item
        answers = [item for item in items if item is not None]
        self._count(model, answers)
        if asked.model is None and self.settings.shadows:
            some = [questions[number] for number in open_ones], [answers[number] for number in open_ones]
            self.tasks.add(task := asyncio.create_task(self._ask_shadows(*some)))
            task.add_done_callback(self.tasks.discard)
        if self.clicks is not None:
            kept = [item for item in answers if "error" not in item]
            try:
                await asyncio.to_thread(self.clicks.keep, kept, asked.session)
            except ClickError as error:  # a full disk must not keep people from their answers
                log(logging.ERROR, "answers were not kept for feedback", reason=str(error))
            for suggestion in (one for item in answers for one in item["suggestions"]):
                for name in ("tags",) if asked.explain else ("tags", "parts", "source"):
                    suggestion.pop(name, None)
        return answers

    def _count(self, model: str, answers: Sequence[Item]) -> None:
        known = self.served.languages
        for item in answers:
            language = item["language"] if item["language"] in known else ""  # invented ones would become labels
            outcome = item["error"]["code"] if "error" in item else "answered" if item["suggestions"] else "nothing"
            self.metrics.messages.labels(model, item.get("version", ""), language, outcome).inc()

    async def _ask_shadows(self, questions: list[Question], shown: list[Item]) -> None:
        """Ask each shadow model the same, unless others wait for the model; only the metrics keep what it says."""
        for name in self.settings.shadows:
            outcomes = partial(self.metrics.shadows.labels, name, self.served.by_name[name].version)
            if self.batcher.waiting:
                outcomes("dropped").inc(len(questions))
                continue
            futures = self.batcher.submit([replace(one, model=name, traced=None) for one in questions])
            found = await asyncio.gather(*futures, return_exceptions=True)
            self._count(name, [item for item in found if not isinstance(item, BaseException)])
            for item, own in zip(found, shown, strict=True):
                told = None if isinstance(item, BaseException) else _replies(item) == _replies(own)
                outcomes({None: "failed", True: "same", False: "different"}[told]).inc()

    async def reload(self) -> None:
        """Load the model again while the old one answers; if that fails, raise MrsError and keep the old one."""
        async with self._reloading:
            try:
                self.served = await asyncio.to_thread(ServedModels.load, self.settings)
            except Exception as error:
                self.metrics.reloads.labels("failed").inc()
                reason = str(error) if isinstance(error, MrsError) else "a bug"
                LOGGER.exception("reload failed", extra={"fields": {"reason": reason}})
                raise
            self.metrics.reloads.labels("done").inc()
            log(logging.INFO, "reloaded", models=self.versions())

    def versions(self) -> dict[str, str]:
        return {name: model.version for name, model in self.served.by_name.items()}

    def trouble(self) -> str | None:
        """The reason why this worker should not get requests: `stopping`, `stuck` or `full`; None if it may."""
        if self.stopping:
            return "stopping"
        if self.batcher.at_work > self.settings.answer_seconds:
            return "stuck"
        return "full" if self.batcher.waiting >= self.settings.max_waiting else None


def _replies(item: Item) -> list[str]:
    return [suggestion["reply"] for suggestion in item["suggestions"]]


@asynccontextmanager
async def _alive(worker: Worker) -> AsyncIterator[None]:
    """Watch signals and the supervisor while the worker serves; at the end, answer all accepted requests."""
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()

    def hang_up() -> None:
        if worker.ahead:
            worker.ahead = False
            return
        task = loop.create_task(reload())
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async def reload() -> None:
        with suppress(Exception):  # it is in the log
            await worker.reload()

    async def watch(parent: int | None) -> None:
        while os.getppid() == parent:
            await asyncio.sleep(ALONE)
        log(logging.ERROR, "the supervisor is gone, stopping")
        signal.raise_signal(signal.SIGTERM)

    if threading.current_thread() is threading.main_thread():  # signals only arrive there, not in a test client
        loop.add_signal_handler(signal.SIGHUP, hang_up)
    if supervisor := multiprocessing.parent_process():
        tasks.add(loop.create_task(watch(supervisor.pid)))
    log(logging.INFO, "loaded", models=worker.versions(), languages=sorted(worker.served.languages))
    try:
        yield
    finally:
        worker.stopping = True
        for task in tasks:
            task.cancel()
        await worker.batcher.stop()
        if worker.clicks is not None:
            worker.clicks.close()
        for sender in (worker.traces, worker.exported):
            if sender is not None:
                await asyncio.to_thread(sender.stop)
        log(logging.INFO, "stopped")


def create_app(settings: Settings, served: ServedModels | None = None) -> FastAPI:
    """The ASGI application.

    Args:
        served: loaded models; default: load them now.

    Raises:
        InputError: the model or a file of keys cannot be used.
    """
    keys = Keys.read(settings.api_keys, API_KEYS)
    admins = Keys.read(settings.admin_keys, ADMIN_KEYS)
    worker = Worker(settings, served or ServedModels.load(settings))
    app = FastAPI(
        title="mrs-suggest",
        version=__version__,
        summary="Short replies to messages.",
        lifespan=lambda _: _alive(worker),
        redoc_url=None,
        redirect_slashes=False,  # a redirect would repeat the request's `Host`, which may be forged
    )
    app.state.worker = worker
    app.add_exception_handler(HTTPException, _http_error)
    app.add_middleware(Gate, settings=settings, keys=keys, admins=admins, metrics=worker.metrics)
    if settings.cors:
        app.add_middleware(
            CORSMiddleware, allow_origins=settings.cors, allow_methods=["GET", "POST"], allow_headers=["*"],
            expose_headers=["Retry-After", "X-Request-ID"],
        )  # fmt: skip
    _add_suggest(app, worker, KEYS if keys else [])
    _add_models(app, worker, KEYS if keys else [])
    if worker.clicks is not None:
        _add_feedback(app, worker, worker.clicks, KEYS if keys else [])
    _add_health(app, worker)
    for route, name in (("/chat", "chat.html"), ("/widget.js", "widget.js")):
        app.add_route(route, partial(_file, name), include_in_schema=False)
    return app


async def _file(name: str, request: Request) -> Response:
    return FileResponse(WEB / name)


def _add_suggest(app: FastAPI, worker: Worker, keys: list[Any]) -> None:
    settings = worker.settings
    refusals = {
        400: "broken JSON", 401: "no valid key", 408: "the body came too slowly",
        413: f"the body has more than {settings.max_body} bytes", 422: "wrong types, or more than the limits",
        429: "too many messages wait; see Retry-After",
        431: f"the head has more than {MAX_HEAD} bytes or {MAX_FIELDS} fields",
        503: "no answer in time, or too many connections",
    }  # fmt: skip
    responses = _described(refusals)
    responses[200] = {"model": SuggestResponse}
    schema = request_schema(settings.max_messages, settings.max_characters, MOST_SUGGESTIONS)
    size = {"description": f"At most {settings.max_body} bytes.", "x-max-bytes": settings.max_body}
    extra = {"requestBody": {"required": True, "content": {JSON: {"schema": schema}}, **size}}

    @app.post("/v1/suggest", responses=responses, openapi_extra=extra, dependencies=keys, summary="Suggest replies")
    async def suggest(request: Request) -> Response:
        """Up to `k` replies to each message or conversation. One that cannot be answered has an `error`."""
        asked = read_question(await request.body(), settings)
        languages = accepted_languages(request.headers.get("accept-language", ""))
        count = len(asked.messages) + len(asked.conversations)
        with worker.traces.request(request.headers, count) if worker.traces else nullcontext() as traced:
            answers = await _unless_gone(request, worker.suggest(asked, languages, traced))
        errors = sum("error" in answer for answer in answers)
        request.scope["log_fields"].update(
            messages=len(answers), errors=errors, model=answers[0]["model"], version=answers[0].get("version", "")
        )  # fmt: skip
        return Response(json.dumps({"answers": answers}, ensure_ascii=False).encode(), media_type=JSON)


def _described(refusals: dict[int, str]) -> dict[int | str, dict[str, Any]]:
    """Statuses of refusals with their reasons, for the OpenAPI page."""
    return {status: {"model": ErrorResponse, "description": text} for status, text in refusals.items()}


async def _unless_gone(request: Request, answering: Coroutine[Any, Any, list[Item]]) -> list[Item]:
    """The answers; if the client disconnects first, remove its messages from the queue and raise GoneError."""

    async def left() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    answers, gone = asyncio.ensure_future(answering), asyncio.ensure_future(left())
    try:
        await asyncio.wait((answers, gone), return_when=asyncio.FIRST_COMPLETED)
        if not answers.done():
            raise GoneError
        return answers.result()
    finally:
        answers.cancel()
        gone.cancel()


def _add_feedback(app: FastAPI, worker: Worker, clicks: ClickStore, keys: list[Any]) -> None:
    refusals = {400: "broken JSON", 401: "no valid key", 404: "no such answer", 422: "wrong types, no such suggestion"}
    refusals[503] = "the feedback could not be kept"
    responses = _described(refusals)
    schema = {"requestBody": {"required": True, "content": {JSON: {"schema": FeedbackRequest.model_json_schema()}}}}

    @app.post(
        "/v1/feedback", status_code=204, responses=responses, openapi_extra=schema, dependencies=keys,
        summary="Report what a person did with an answer",
    )  # fmt: skip
    async def feedback(request: Request) -> Response:
        """Of several reports on an answer, the last one counts."""
        told = read_body(FeedbackRequest, await request.body())
        try:
            await asyncio.to_thread(record, told)
        except ClickError:
            raise Refusal(503, "not_kept", "the feedback could not be kept; try again.", retry_after="1") from None
        worker.metrics.feedback.labels("chosen" if told.chosen else "not").inc()
        return Response(status_code=204)

    def record(told: FeedbackRequest) -> None:
        count = clicks.suggestions(told.id)
        if count is None:
            raise Refusal(404, "unknown_id", "no answer has this id; pass the id of an answer of this server.")
        for name, place in [("chosen", told.chosen or 0), ("shown", max(told.shown or [0]))]:
            if place > count:
                raise Refusal(422, "invalid_request", f"{name}={place}: the answer had {count} suggestions.")
        text = told.text if worker.settings.feedback_texts else None
        clicks.record(told.id, told.shown, told.chosen, told.edited, told.typed, text)


def _add_models(app: FastAPI, worker: Worker, keys: list[Any]) -> None:
    settings = worker.settings
    refusals: dict[int | str, dict[str, Any]] = {status: {"model": ErrorResponse} for status in (401, 403, 409)}

    @app.get(
        "/v1/models", response_model=ModelsResponse, responses={401: refusals[401]}, dependencies=keys,
        summary="What answers, and the limits",
    )  # fmt: skip
    async def models() -> dict[str, Any]:
        limits = {
            "max_body": settings.max_body,
            "max_messages": settings.max_messages,
            "max_characters": settings.max_characters,
            "max_k": MOST_SUGGESTIONS,
        }
        return {"models": worker.served.described(), "limits": limits}

    @app.post(
        "/v1/reload", response_model=ReloadResponse, responses=refusals, dependencies=KEYS,
        summary="Load the models anew",
    )  # fmt: skip
    async def reload() -> dict[str, Any]:
        """With an admin key. The old models answer until all new ones are there, and stay if one cannot be loaded."""
        try:
            await worker.reload()
        except MrsError as error:
            raise Refusal(409, "reload_failed", f"{error} The old models stay.") from None
        if settings.workers > 1:
            worker.ahead = True
            os.kill(os.getppid(), signal.SIGHUP)  # the supervisor notifies all workers
        return {"models": worker.served.described(), "workers": settings.workers}


def _add_health(app: FastAPI, worker: Worker) -> None:
    @app.get("/health/live", response_model=Health, summary="Whether the process answers")
    async def live() -> dict[str, str]:
        return {"status": "live"}

    @app.get(
        "/health/ready", response_model=Health, responses={503: {"model": Health}}, summary="Whether to send requests"
    )
    async def ready() -> Response:
        trouble = worker.trouble()
        body = json.dumps({"status": trouble or "ready"})
        return Response(body, 503 if trouble else 200, media_type=JSON)

    @app.get("/metrics", summary="Figures for Prometheus", response_class=Response)
    async def metrics() -> Response:
        worker.metrics.waiting.set(worker.batcher.waiting)
        page = await asyncio.to_thread(worker.metrics.page)
        return Response(page, media_type="text/plain; version=0.0.4")


async def _http_error(request: Request, error: Exception) -> Response:
    """The usual error format for unknown paths and methods."""
    assert isinstance(error, HTTPException)
    codes = {404: "not_found", 405: "method_not_allowed"}
    body = error_json(codes.get(error.status_code, "invalid_request"), f"{error.detail}; /openapi.json has the routes.")
    return Response(body, error.status_code, error.headers, JSON)
