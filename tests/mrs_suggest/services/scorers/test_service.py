"""Scorers behind HTTP, against a server on this machine that fails in every way that services fail."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from mrs_suggest.common.errors import InputError
from mrs_suggest.services.scorers.opening import open_scorer
from mrs_suggest.services.scorers.service import HttpScorer, PerspectiveScorer, Poster
from tests.cases import cases
from tests.scoring_server import Failure, ScoringServer, hashed, scoring_server

Opened = Callable[..., HttpScorer]
KEY = "a-secret-key-1234"
TEXTS = [f"text {number}" for number in range(10)]


class Time:
    """A clock that moves when somebody sleeps."""

    def __init__(self) -> None:
        self.now, self.slept = 1000.0, list[float]()

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def clock(self) -> float:
        return self.now


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScoringServer]:
    monkeypatch.delenv("MRS_TOXICITY_KEY", raising=False)
    with scoring_server() as running:
        yield running


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def opened(server: ScoringServer, time: Time) -> Opened:
    def make(batch_size: int = 4, **options: float) -> HttpScorer:
        return HttpScorer(Poster(server.url, sleep=time.sleep, clock=time.clock, **options), batch_size)  # type: ignore[arg-type]

    return make


def test_scores_come_in_order_and_in_batches(server: ScoringServer, opened: Opened) -> None:
    server.more = {"name": "small", "languages": ["es", "en"], "licence": "mit"}
    scorer = opened()
    assert scorer.score(TEXTS, "es") == [hashed(text) for text in TEXTS]
    assert scorer.score([], "es") == []
    assert [len(asked["texts"]) for asked in server.requests] == [0, 4, 4, 2]
    assert {asked["language"] for asked in server.requests[1:]} == {"es"}
    assert scorer.languages() == {"en", "es"}
    assert scorer.facts.as_dict() == {
        "kind": "http",
        "name": f"small at {server.url}",
        "version": "1",
        "licence": "mit",
    }
    assert scorer.at_once == 4


@pytest.mark.parametrize("failure", [Failure(429), Failure(500), Failure(503), Failure(408), Failure(body=None)])
def test_failures_that_pass_are_waited_for(server: ScoringServer, time: Time, opened: Opened, failure: Failure) -> None:
    scorer = opened()
    server.planned = [failure, failure, None]
    assert scorer.score(TEXTS[:4], "es") == [hashed(text) for text in TEXTS[:4]]
    assert time.slept == [1, 2]
    assert server.answered == Counter(("es", text) for text in TEXTS[:4])


def test_the_service_says_how_long_to_wait(server: ScoringServer, time: Time, opened: Opened) -> None:
    scorer = opened()
    then = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    server.planned = [Failure(429, headers={"Retry-After": said}) for said in ("17", then, "soon")]
    scorer.score(TEXTS[:1], "es")
    assert time.slept[0] == 17
    assert 90 < time.slept[1] <= 100
    assert time.slept[2] == 4
    server.planned = [Failure(503, headers={"Retry-After": str(int(Poster.longest_wait) + 1)})]
    with pytest.raises(InputError, match=r"asks to wait 601 seconds; .* --resume later\."):
        scorer.score(TEXTS[:1], "es")


def test_it_gives_up_in_the_end(server: ScoringServer, time: Time, opened: Opened) -> None:
    scorer = opened()
    server.planned = [Failure(500)] * Poster.tries
    with pytest.raises(InputError, match=rf"{server.url}: failed with HTTP 500 \(try 6 of 6\); .*--resume"):
        scorer.score(TEXTS[:1], "es")
    assert time.slept == [1, 2, 4, 8, 16]
    with pytest.raises(InputError, match=r"http://127.0.0.1:9/: failed with .*refused.* \(try 2 of 2\)"):
        HttpScorer(Poster("http://127.0.0.1:9/", sleep=time.sleep, clock=time.clock))


def test_requests_are_not_faster_than_asked_for(server: ScoringServer, time: Time, opened: Opened) -> None:
    scorer = opened(batch_size=1, per_second=2)
    server.planned = [None, Failure(500), None]
    scorer.score(TEXTS[:4], "es")
    assert time.now - 1000 == pytest.approx(0.5 * 4 + 1)  # after the failure, 1 s instead of .5
    assert len(server.requests) == 1 + 4 + 1


def test_the_key_is_sent_by_https_only_and_never_told(
    server: ScoringServer, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.key = KEY
    with pytest.raises(InputError, match=r"requests without a key; set MRS_TOXICITY_KEY \(HTTP 401\)\."):
        opened()
    monkeypatch.setenv("MRS_TOXICITY_KEY", KEY)
    scorer = opened()
    assert server.keys[-1] == f"Bearer {KEY}"
    server.key = "another"
    for status in (401, 403):
        server.planned = [Failure(status, KEY.encode())]
        with pytest.raises(InputError, match=rf"the key in MRS_TOXICITY_KEY \(expired\?\).*HTTP {status}") as caught:
            scorer.score(TEXTS[:1], "es")
        assert KEY not in str(caught.value)
    monkeypatch.setenv("MRS_TOXICITY_KEY", f"{KEY}\r\nX-Other: 1")
    with pytest.raises(InputError, match="without spaces and line breaks") as caught:
        opened()
    assert KEY not in str(caught.value)
    monkeypatch.setenv("MRS_TOXICITY_KEY", KEY)
    with pytest.raises(InputError, match="by https only"):
        Poster("http://example.org/score")


def test_a_redirection_is_not_followed(server: ScoringServer, opened: Opened) -> None:
    server.planned = [Failure(302, headers={"Location": "http://127.0.0.1:9/"})]
    with pytest.raises(InputError, match=r"refuses the request \(HTTP 302\)"):
        opened()


RUBBISH = {**cases(__file__, "RUBBISH"), "deep": ("[" * 100_000, "it is not JSON")}


@pytest.mark.parametrize(("body", "problem"), RUBBISH.values(), ids=RUBBISH)
def test_rubbish_is_one_sentence(server: ScoringServer, opened: Opened, body: str, problem: str) -> None:
    scorer = opened()
    server.planned = [Failure(200, body.encode())]
    with pytest.raises(InputError, match=problem) as caught:
        scorer.score(["text"], "es")
    assert str(caught.value).count(". ") == 0


def test_another_version_is_not_mixed_in(server: ScoringServer, opened: Opened) -> None:
    scorer = opened()
    server.version = "2"
    with pytest.raises(InputError, match="changed from '1' to '2'"):
        scorer.score(TEXTS, "es")


@pytest.mark.parametrize(
    "url", ["http://", "https://host:port/", "http://user:secret@127.0.0.1/", "http://127.0.0.1/a b", "ftp://host/"]
)
def test_addresses_that_cannot_be_used(url: str) -> None:
    with pytest.raises(InputError, match="expected an address") as caught:
        Poster(url)
    assert "secret" not in str(caught.value)


def test_perspective(server: ScoringServer, time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MRS_TOXICITY_ENGLISH_KEY", KEY)
    said = {"attributeScores": {"TOXICITY": {"summaryScore": {"value": 0.25, "type": "PROBABILITY"}}}}
    server.planned = [Failure(200, json.dumps(said).encode())] * 2 + [Failure(200, b'{"attributeScores": {}}')]
    scorer = PerspectiveScorer(
        Poster(server.url, "MRS_TOXICITY_ENGLISH_KEY", ("x-goog-api-key", ""), 1.0, sleep=time.sleep, clock=time.clock)
    )
    assert scorer.score(["one", "é" * 20_000], "en") == [0.25, 0.25]
    assert time.slept == [1]
    first, second = server.requests
    assert first["comment"] == {"text": "one"}
    assert (first["languages"], first["requestedAttributes"], first["doNotStore"]) == (["en"], {"TOXICITY": {}}, True)
    assert second["comment"]["text"] == "é" * 10_240
    with pytest.raises(InputError, match="it has no 'TOXICITY'"):
        scorer.score(["three"], "en")
    server.planned = [Failure(400, b'{"error": {"details": [{"reason": "API_KEY_INVALID"}]}}')]
    with pytest.raises(InputError, match=r"the key in MRS_TOXICITY_ENGLISH_KEY \(expired\?\)"):
        scorer.score(["four"], "en")
    assert "en" in scorer.languages()
    assert open_scorer(server.url, batch_size=7).at_once == 7
    assert isinstance(open_scorer(f"perspective:{server.url}"), PerspectiveScorer)
