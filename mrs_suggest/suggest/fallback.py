"""Models by name, and a second model for those messages of which the first is unsure (`--fallback`)."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.baselines import ENDPOINT, resolve_model
from mrs_suggest.common.text.predictions import PASSED_ON, SUGGESTIONS
from mrs_suggest.models.model_folder import open_model_folder
from mrs_suggest.models.starting_points import ADAPTER_RECORD, GENERATOR
from mrs_suggest.suggest.answering import ServedModel, Suggestion, Tags
from mrs_suggest.suggest.conversation import Conversation, read_conversations
from mrs_suggest.suggest.remembering import read_texts

FALLBACK = "fallback"  # the source of suggestions


def load_model(name: str, revision: str | None = None, verify: bool = False) -> tuple[ServedModel, Path | None]:
    """The model of any family with this name and its folder, None for a service; errors as `from_pretrained`."""
    if name.startswith(ENDPOINT):
        from mrs_suggest.suggest.language_model import LanguageModelSuggester
        from mrs_suggest.suggest.language_model.chat import read_endpoint

        return LanguageModelSuggester(read_endpoint(name, revision)), None
    path = resolve_model(name, revision)
    if any((path / one).is_file() for one in ("run.json", "modules.json", ADAPTER_RECORD, GENERATOR)):
        open_model_folder(path, verify)  # another folder's files are not looked at: it is refused below
    if (path / GENERATOR).is_file():
        from mrs_suggest.suggest.generation_suggester import GenerationSuggester

        return GenerationSuggester.load_from(path), path
    from mrs_suggest.suggest.retrieval_suggester import RetrievalSuggester

    return RetrievalSuggester.load_from(path, name), path


class WithFallback:
    """A `ServedModel`: the first model, whose trigger passes a message on if a suggestion is unlikely to be used.

    Short messages, requests for tags and languages that the second model lacks stay with the first, as do messages to
    which the second has no reply.

    Args:
        second: None: nothing is passed on.
        threshold: the chance of a use below which a message is passed on.
        counts: messages that were `asked`, and `passed` on.
    """

    def __init__(
        self, first: ServedModel, second: ServedModel | None, threshold: float, service: str, counts: Counter[str]
    ) -> None:
        self.first, self.second, self.threshold, self.service, self._counts = first, second, threshold, service, counts
        # Language, number of suggestions, and those of what was passed on, if the guard asks for more of them.
        self._last: tuple[str, int, list[tuple[Conversation, list[Suggestion]]]] = "", 0, []

    @classmethod
    def load(cls, first: ServedModel, name: str, share: float = PASSED_ON) -> WithFallback:
        """Pass on this share of the messages at most, on the validation examples of the first model.

        Raises:
            InputError: the first model is not calibrated, the share is not one, or there is no second model.
        """
        if not 0 < share < 1:
            raise InputError(f"--fallback-share {share:g}: expected a share of more than 0 and less than 1.")
        if first.trigger is None or not (curve := first.trigger.curve):
            raise InputError("--fallback: the first model has no calibration; train a retriever with --ranker true.")
        threshold = max((at for at, answered, _ in curve if answered >= 1 - share - 1e-9), default=0.0)
        second = load_model(name)[0]
        service = f"fallback:{share:g}|threshold:{threshold:.4f}|{second.service or name}"
        return cls(first, second, threshold, service, Counter())

    def __getattr__(self, name: str) -> Any:
        if name == "first":  # not set yet, as in a copy
            raise AttributeError(name)
        return getattr(self.first, name)

    def suggest(self, messages: Sequence[Any], language: str, k: int = SUGGESTIONS) -> list[list[Suggestion]]:
        asked, unsure = read_conversations(messages), list[int]()
        *same, last = self._last
        known = [row for one in asked for other, row in last if one is other] if same == [language, k] else []
        if asked and len(known) == len(asked):
            return known
        answers = self.first.suggest(read_texts(self.first, asked), language, k)
        if self.second and language in self.second.languages and self.first.min_score(language) is None:
            chances = self.used(asked, language) or []
            unsure = [n for n, chance in enumerate(chances) if chance < self.threshold and asked[n].message.strip()]
        self._counts.update(asked=len(asked), passed=len(unsure))
        if self.second and unsure:
            try:
                rows = self.second.suggest(read_texts(self.second, [asked[n] for n in unsure]), language, k)
            except InputError as error:  # such as a server that is down: the first model's answers stay
                logging.getLogger(__name__).warning("the fallback did not answer: %s", error)
                rows = [[] for _ in unsure]
            for number, row in zip(unsure, rows, strict=True):
                answers[number] = [replace(one, source=FALLBACK) for one in row] or answers[number]
        self._last = language, k, [(asked[number], answers[number]) for number in unsure]
        return answers

    def usage(self) -> dict[str, float]:
        """That of the second model; the price is of all messages, and `passed_on` the share that it was asked."""
        share, found = self._counts["passed"] / max(self._counts["asked"], 1), dict[str, float]()
        if self.second and "price_per_1000" in (found := self.second.usage()):
            found["price_per_1000"] *= share
        return {"passed_on": round(share, 4), **found}

    def part(self, language: str, allow: Tags, deny: Tags, kind: str | None) -> WithFallback | None:
        part = self.first.part(language, allow, deny, kind)
        if part is None or part is self.first:
            return None if part is None else self
        return WithFallback(part, None, 0.0, self.service, self._counts)

    def used(self, messages: Sequence[Any], language: str) -> list[float] | None:
        return self.first.used(read_texts(self.first, read_conversations(messages)), language)
