"""A retriever that answers short messages, such as a greeting, only with replies of its set that fit them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mrs_suggest.common.suggest_arguments import require_count, require_messages
from mrs_suggest.common.text.predictions import SUGGESTIONS
from mrs_suggest.suggest.answering import ServedModel, Suggestion
from mrs_suggest.suggest.retrieval_suggester import RetrievalSuggester
from mrs_suggest.suggest.short_messages import all_kinds, fitting_kinds, has_table, kind_of, kinds_answered
from mrs_suggest.suggest.tagged_suggester import TaggedSuggester

LEAST = 0.5  # the share of the kinds to which a set for conversations has replies; ours: the embedded ones have .92


class FittingSuggester(ServedModel):
    """As the model, but a short message gets the fitting replies of the set, in the model's order.

    Where the set has none, a set that is made for conversations (it has replies to most kinds of short messages) has
    nothing to say, so the list is empty; another one, such as five replies of your own, is ranked as for any message.
    So is every set in a language that the table of short messages lacks.
    """

    def __init__(self, model: RetrievalSuggester | TaggedSuggester) -> None:
        self._model = model
        self._parts: dict[str, Mapping[str, ServedModel | None]] = {}

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
            model = self._model if kind is None else self._by_kind(language)[kind]
            if model is None:
                continue
            numbers = [number for number, other in enumerate(kinds) if other == kind]
            rows = model.suggest([texts[number] for number in numbers], language, count)
            for number, row in zip(numbers, rows, strict=True):
                answers[number] = row
        return answers

    def _by_kind(self, language: str) -> Mapping[str, ServedModel | None]:
        """Kind of short message -> the model with the replies that answer it; None: it is left without an answer."""
        if language not in self._parts:
            replies, kinds = self._model.indexes[language].replies, kinds_answered(language)
            rows = {kind: list[int]() for kind in kinds}
            for row in self._model.rows(language):
                for kind in fitting_kinds(replies[row], language):
                    rows[kind].append(int(row))
            found = {kind: self._model.restricted(language, np.array(some)) for kind, some in rows.items() if some}
            rest = None if len(found) >= LEAST * len(kinds) else self._model
            self._parts[language] = {kind: found.get(kind, rest) for kind in all_kinds()}
        return self._parts[language]
