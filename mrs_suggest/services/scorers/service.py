"""Scorers behind HTTP: a small JSON protocol of this project, and that of Perspective.

A service with this project's protocol answers one kind of request, at one address:

    POST {"texts": ["...", ...], "language": "es"}
    200  {"scores": [0.02, ...], "version": "..."}          one score in [0, 1] for each text, in their order

`version` is of the model: equal versions promise equal scores. The answer may also have `name`, `licence` and
`languages` (codes), which the first request, without texts, asks for. A key is sent as `Authorization: Bearer KEY`.
429 and 503 may have `Retry-After`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from mrs_suggest.common.batches import in_batches
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io import posting
from mrs_suggest.common.io.remote_errors import masked
from mrs_suggest.common.text.text_services import ServiceFacts

BATCH = 64  # ours: texts in a request
FIRST_TRIES = 2  # of the first request, so that a wrong address fails early
PERSPECTIVE_URL = "https://commentanalyzer.googleapis.com/v1alpha1/comments:analyze"
PERSPECTIVE_PER_SECOND = 1.0  # Zhang et al. 2021, section 2.2: free access was one request per second
PERSPECTIVE_BYTES = 20_480  # of a text
PERSPECTIVE_LANGUAGES = frozenset(
    {"ar", "zh", "cs", "nl", "en", "fr", "de", "hi", "id", "it", "ja", "ko", "pl", "pt", "ru", "es", "sv"}
)


class Poster(posting.Poster):
    kind, protocol = "a scorer", "docs/pipeline.md has the protocol"
    later = "finished scores are kept: run the same command again with --resume later"
    option, key_variable = "--toxicity", "MRS_TOXICITY_KEY"

    def checked(self, score: object) -> float:
        """A score of the answer; InputError if it is not a number in [0, 1]."""
        if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
            raise self.wrong(f"{str(score)[:40]!r} is not a number from 0 to 1")
        return float(score)


class HttpScorer:
    """A service with this project's protocol.

    Raises:
        InputError: it cannot be reached, refuses, or does not follow the protocol.
    """

    def __init__(self, poster: Poster, batch_size: int | None = None) -> None:
        self._poster, self.at_once = poster, batch_size or BATCH
        about = self._ask([], "en", FIRST_TRIES)
        languages = about.get("languages")
        if not (languages is None or (isinstance(languages, list) and all(isinstance(one, str) for one in languages))):
            raise self._poster.wrong("`languages` is not a list of codes")
        self._languages = None if languages is None else frozenset(languages)
        name = f"{about['name']} at {masked(poster.url)}" if about.get("name") else masked(poster.url)
        self.facts = ServiceFacts("http", name, about["version"], str(about.get("licence") or ""))

    def languages(self) -> frozenset[str] | None:
        return self._languages

    def score(self, texts: Sequence[str], language: str) -> list[float]:
        """n texts -> n scores; InputError as for the class, or if its version has changed."""
        scores: list[float] = []
        for some in in_batches(texts, self.at_once):
            found = self._ask(some, language)
            if found["version"] != self.facts.version:
                raise InputError(
                    f"{masked(self._poster.url)}: its version changed from {self.facts.version!r} to "
                    f"{found['version']!r}, and their scores must not be mixed; start again with the new one."
                )
            scores += found["scores"]
        return scores

    def _ask(self, texts: list[str], language: str, tries: int | None = None) -> dict[str, Any]:
        answer = self._poster.post({"texts": texts, "language": language}, tries)
        if not isinstance(answer.get("version"), str) or not answer["version"]:
            raise self._poster.wrong("it has no `version`")
        if not isinstance(answer.get("scores"), list) or len(answer["scores"]) != len(texts):
            raise self._poster.wrong(f"it does not have {len(texts)} `scores`")
        return {**answer, "scores": [self._poster.checked(score) for score in answer["scores"]]}


class PerspectiveScorer:
    """The attribute TOXICITY of Perspective, one text per request; the service ends after 2026.

    Args:
        poster: sends requests to its address, with the key in `x-goog-api-key`.
    """

    at_once = 1

    def __init__(self, poster: Poster) -> None:
        self._poster = poster
        self.facts = ServiceFacts("http", f"Perspective at {masked(poster.url)}", "v1alpha1, TOXICITY")

    def languages(self) -> frozenset[str]:
        return PERSPECTIVE_LANGUAGES

    def score(self, texts: Sequence[str], language: str) -> list[float]:
        """n texts -> n scores; a text is cut at 20,480 bytes, the limit of the service."""
        return [self._score(text, language) for text in texts]

    def _score(self, text: str, language: str) -> float:
        cut = text.encode("utf-8", "replace")[:PERSPECTIVE_BYTES].decode("utf-8", "ignore")
        asked = {
            "comment": {"text": cut},
            "languages": [language],
            "requestedAttributes": {"TOXICITY": {}},
            "doNotStore": True,
        }
        found: Any = self._poster.post(asked)
        for key in ("attributeScores", "TOXICITY", "summaryScore", "value"):
            if not isinstance(found, Mapping) or key not in found:
                raise self._poster.wrong(f"it has no {key!r}")
            found = found[key]
        return self._poster.checked(found)
