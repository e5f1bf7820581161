"""A retriever for requests that allow or deny replies by their tags."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mrs_suggest.common.errors import ArgumentError
from mrs_suggest.common.suggest_arguments import require_count, require_messages
from mrs_suggest.common.text.predictions import SUGGESTIONS
from mrs_suggest.suggest.answering import ServedModel, Suggestion
from mrs_suggest.suggest.index.response_index import ResponseIndex
from mrs_suggest.suggest.reply_tags import require_tags
from mrs_suggest.suggest.retrieval_suggester import RetrievalSuggester


class TaggedSuggester(ServedModel):
    """Suggests only replies with one of the tags `allow` (empty: all) and with none of the tags `deny`.

    Only replies of the response set that are chosen in this way are ranked, as if the set had no others. The part of an
    index that is asked for is kept for the next request.

    Raises:
        ArgumentError: no reply of the model, in any language, has one of the tags.
    """

    def __init__(self, model: RetrievalSuggester, allow: Collection[str], deny: Collection[str]) -> None:
        known = {tag for tags in model.tags.names.values() for tag in tags}
        self._allow, self._deny = (require_tags(*asked, known) for asked in (("allow", allow), ("deny", deny)))
        self._model = model
        self.key = self._allow, self._deny
        self._parts: dict[str, ServedModel | None] = {}

    @property
    def languages(self) -> list[str]:
        return self._model.languages

    def suggest(self, messages: Sequence[str], language: str, k: int = SUGGESTIONS) -> list[list[Suggestion]]:
        """As `Suggester.suggest`; an empty list for each message where no reply of the language may be suggested."""
        self._model.require_language(language)
        if language not in self._parts:
            self._parts[language] = self._part(language)
        model = self._parts[language]
        if model is not None:
            return model.suggest(messages, language, k)
        texts, _ = require_messages(messages), require_count(k)
        return [[] for _ in texts]

    @property
    def indexes(self) -> Mapping[str, ResponseIndex]:
        return self._model.indexes

    def rows(self, language: str) -> NDArray[np.int64]:
        """Numbers of the replies that may be suggested, ascending."""
        return self._model.tags[language].chosen(self._allow, self._deny)

    def restricted(self, language: str, rows: NDArray[np.int64]) -> RetrievalSuggester:
        """As `RetrievalSuggester.restricted`."""
        return self._model.restricted(language, rows)

    def _part(self, language: str) -> ServedModel | None:
        rows = self.rows(language)
        if len(rows) == self._model.tags[language].size:
            return self._model
        return self._model.restricted(language, rows) if len(rows) else None


def tagged(model: ServedModel, allow: Collection[str], deny: Collection[str]) -> TaggedSuggester:
    """The model for such requests.

    Raises:
        ArgumentError: as `TaggedSuggester`, or the model writes its replies.
    """
    if not isinstance(model, RetrievalSuggester):
        name = "allow" if allow else "deny"
        raise ArgumentError(name, "the model writes its replies, which have no tags; pass no tags, or a retriever.")
    return TaggedSuggester(model, allow, deny)
