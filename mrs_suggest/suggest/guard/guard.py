"""What keeps a suggester silent where a suggestion would hurt: before the model answers, and after it has."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from mrs_suggest.common.text.text import visible
from mrs_suggest.suggest.answering import Answer, ServedModel, Suggestion
from mrs_suggest.suggest.guard.guard_space import GuardSpace, Vectors, fingerprint
from mrs_suggest.suggest.guard.lists import GuardData
from mrs_suggest.suggest.guard.replies import unfit
from mrs_suggest.suggest.short_messages import kind_of


class Guard:
    """Answers through a model, but for sensitive messages, and without unfit replies.

    Args:
        data: word lists and example messages.
        model: what answers.
        folder: of the model, with its `guard/`; None if it has none.
    """

    def __init__(self, data: GuardData, model: ServedModel, folder: Path | None) -> None:
        self.data, self._model, self._folder = data, model, folder

    def answer(
        self,
        messages: Sequence[str],
        language: str,
        count: int,
        model: ServedModel | None = None,
        others: Sequence[str | None] = (),
    ) -> list[Answer]:
        """As `Suggester.suggest`, for one language.

        Args:
            model: what answers in place of the guard's own, such as a part of its response set.
            others: as for `reasons`.
        """
        model = model or self._model
        reasons = self.reasons(messages, language, others)
        asked = [message for message, reason in zip(messages, reasons, strict=True) if reason is None]
        rows = iter(model.suggest(asked, language, count))
        return [
            self._fit(message, next(rows), language, count, model) if reason is None else self._silent(reason, language)
            for message, reason in zip(messages, reasons, strict=True)
        ]

    def reasons(self, messages: Sequence[str], language: str, others: Sequence[str | None] = ()) -> list[str | None]:
        """The reason not to answer each message, one of `mrs_suggest.suggest.guard.REASONS`; None where there is none.

        Args:
            others: the language that each message seems to be in, if it is not `language`: a caller may be wrong, so
                that the lists of both count. Empty: those of `language` alone.
        """
        found = [
            self._listed(message, language) or (self._listed(message, other) if other else None)
            for message, other in zip(messages, others or [None] * len(messages), strict=True)
        ]
        # Greetings and the like are harmless unless a list says otherwise; the space knows little about so few letters.
        vague = [
            reason is None and kind_of(text, language) is None for text, reason in zip(messages, found, strict=True)
        ]
        open_ones = [message for message, asked in zip(messages, vague, strict=True) if asked]
        if not open_ones or self.space is None:
            return found
        vectors = self._model.message_vectors(open_ones)
        assert vectors is not None, "a model with a space has vectors"
        self.space.require_width(vectors.shape[1], self._folder)
        near = iter(self.space.reasons(open_ones, vectors))
        return [next(near) if asked else reason for asked, reason in zip(vague, found, strict=True)]

    def _listed(self, message: str, language: str) -> str | None:
        lists = self.data.get(language)
        return lists.sensitive(message) if lists else None

    @cached_property
    def space(self) -> GuardSpace | None:
        """What the encoder makes of the example messages, from the model's folder; None where the lists alone decide.

        With examples of one's own that the stored one was not made from, it is fitted now, which takes as long as
        answering them.

        Raises:
            InputError: it is damaged.
        """
        stored = GuardSpace.load(self._folder) if self._folder else None
        if stored is not None and not self.data.own_examples:
            return stored
        examples = self.data.prototypes_for(self._model.languages) if self.data.own_examples else {}
        if stored is not None and stored.examples == fingerprint(examples):
            return stored
        if self._model.message_vectors(["?"]) is None:  # a generator
            return None
        if examples:
            return GuardSpace.fit(self._vectors, examples)
        if self._folder is not None:
            where = visible(self._folder)
            print(
                f"note: {where} has no guard of this version, so word lists alone tell sensitive messages; "
                f"`mrs models guard {where}` adds it.",
                file=sys.stderr,
            )
        return None

    def _vectors(self, texts: list[str]) -> Vectors:
        vectors = self._model.message_vectors(texts)
        assert vectors is not None
        return vectors

    def _silent(self, reason: str, language: str) -> Answer:
        lists = self.data.get(language)
        neutral = lists.neutral.get(reason, []) if lists else []
        return Answer([Suggestion(reply, 0.0) for reply in neutral], reason)

    def _fit(self, message: str, found: Sequence[Suggestion], language: str, count: int, model: ServedModel) -> Answer:
        """The fit ones among a model's suggestions; it is asked for more while too few are left."""
        lists, wide = self.data.get(language), count
        while True:
            fit = [suggestion for suggestion in found if unfit(suggestion.reply, message, lists) is None]
            if len(fit) >= count or len(found) < wide:  # enough, or the model has no more
                return Answer(fit[:count])
            wide = model.most(4 * wide)
            if wide <= len(found):
                return Answer(fit[:count])
            (found,) = model.suggest([message], language, wide)
