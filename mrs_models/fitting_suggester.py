"""A retriever that answers short messages, such as a greeting, only with replies of its set that fit them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mrs_core.predictions import SUGGESTIONS
from mrs_models.answering import ServedModel, Suggestion
from mrs_models.retrieval_suggester import RetrievalSuggester
from mrs_models.short_messages import fits_kind, has_table, kind_of
from mrs_models.suggest_arguments import require_count, require_messages
from mrs_models.tagged_suggester import TaggedSuggester


class FittingSuggester(ServedModel):
    """As the model, but a short message gets the fitting replies in the model's order, or an empty list.

    In a language that the table of short messages lacks, the model answers all messages.
    """

    def __init__(self, model: RetrievalSuggester | TaggedSuggester) -> None:
        self._model = model
        self._parts: dict[tuple[str, str], ServedModel | None] = {}

    @property
    def languages(self) -> list[str]:
        return self._model.languages

    def most(self, k: int) -> int:
        return self._model.most(k)

    def suggest(self, messages: Sequence[str], language: str, k: int = SUGGESTIONS) -> list[list[Suggestion]]:
        texts, count = require_messages(messages), require_count(k)
        kinds = [kind_of(text, language) if has_table(language) else None for text in texts]
        answers: list[list[Suggestion]] = [[] for _ in texts]
        for kind in dict.fromkeys(kinds):
            model = self._model if kind is None else self._part(language, kind)
            if model is None:
                continue
            numbers = [number for number, other in enumerate(kinds) if other == kind]
            rows = model.suggest([texts[number] for number in numbers], language, count)
            for number, row in zip(numbers, rows, strict=True):
                answers[number] = row
        return answers

    def _part(self, language: str, kind: str) -> ServedModel | None:
        """The model with the replies that fit the kind; None: there are none."""
        if (language, kind) not in self._parts:
            replies = self._model.indexes[language].replies
            rows = [row for row in self._model.rows(language) if fits_kind(replies[row], kind, language)]
            self._parts[language, kind] = self._model.restricted(language, np.array(rows)) if rows else None
        return self._parts[language, kind]
