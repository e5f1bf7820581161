"""Message and language in, three suggestions out."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mrs_suggest.common.errors import ArgumentError, InputError
from mrs_suggest.common.hub.baselines import resolve_model
from mrs_suggest.common.io.manifest import again
from mrs_suggest.common.suggest_arguments import require_count, require_messages
from mrs_suggest.common.text.predictions import SUGGESTIONS
from mrs_suggest.models.model_folder import open_model_folder
from mrs_suggest.models.starting_points import ADAPTER_RECORD, GENERATOR, RANKER_FOLDER
from mrs_suggest.suggest.answering import Answer, ServedModel
from mrs_suggest.suggest.guard import BLANK, NO_REPLIES, UNCLEAR, UNLIKELY
from mrs_suggest.suggest.guard.guard import Guard
from mrs_suggest.suggest.guard.lists import GuardData
from mrs_suggest.suggest.ranking.trigger import choose_threshold
from mrs_suggest.suggest.short_messages import fitting_languages, has_table, kind_of, preferred_language

if TYPE_CHECKING:
    from mrs_suggest.suggest.language_detector import LanguageDetector

MOST_TAGGED = 16  # kinds of requests, by their tags, whose part of the index is kept; ours: a product has a few


class Suggester:
    """Answers messages with a trained model of any family; `load` finds the family.

    Attributes:
        model: what answers; by itself, it answers every message.
        folder: where it comes from, with its language detector; None if it has none.
        guard: what keeps silent; None: nothing does.

    Args:
        guard: True: with the package's lists; a folder: with lists of one's own; False: without a guard, as published
            figures are measured.
        precision: nothing is suggested where fewer than this share of the answers would be used, as far as validation
            tells (Kannan et al. 2016, section 5); None, as for published figures: every message is answered.

    Raises:
        InputError: the precision is no share, or the model was not calibrated.

    Example:
        >>> suggester = Suggester.load("build/retriever")           # doctest: +SKIP
        >>> [s.reply for s in suggester.suggest(["¿Quedamos mañana?"], "es")[0]]  # doctest: +SKIP
        ['Sí, perfecto.', 'Vale, ¿a qué hora?', 'Mañana no puedo, lo siento.']
    """

    def __init__(
        self,
        model: ServedModel,
        folder: Path | None = None,
        guard: bool | Path = True,
        precision: float | None = None,
    ) -> None:
        self.model, self.folder, self._precision = model, folder, precision
        try:
            self._least = choose_threshold(model.trigger, precision) if precision is not None else 0.0
        except ValueError as error:
            raise InputError(f"--precision {precision:g}: {error}.") from None
        self.guard = Guard(GuardData(None if guard is True else guard), model, folder) if guard else None
        self._kept: dict[object, ServedModel] = {}
        self._fits: dict[ServedModel, ServedModel] = {}  # of the model and its parts in `_kept`

    @staticmethod
    def load(
        folder: str | Path,
        revision: str | None = None,
        verify: bool = False,
        guard: bool | Path = True,
        precision: float | None = None,
    ) -> Suggester:
        """Load a trained model: the folder of a run, a baseline, `ORG/NAME`, or `ORG/NAME@REVISION`.

        Args:
            revision: of a model on the hub: a branch, a tag or a commit.
            verify: compare the SHA-256 of large files, too (`mrs_suggest.common.io.manifest` has the rule).
            guard, precision: as for the class.

        Raises:
            InputError: no such model, or its files are damaged or do not fit each other; or the guard's folder is.
        """
        path = resolve_model(str(folder), revision)
        open_model_folder(path, verify)
        if (path / GENERATOR).is_file():
            from mrs_suggest.suggest.generation_suggester import GenerationSuggester

            return Suggester(GenerationSuggester.load_from(path), path, guard, precision)
        if (path / RANKER_FOLDER).is_dir():
            from mrs_suggest.suggest.ranked_suggester import RankedSuggester

            return Suggester(RankedSuggester.load_from(path, str(folder)), path, guard, precision)
        from mrs_suggest.suggest.retrieval_suggester import RetrievalSuggester

        return Suggester(RetrievalSuggester.load_from(path, str(folder)), path, guard, precision)

    @property
    def languages(self) -> list[str]:
        """The languages that can be answered."""
        return self.model.languages

    @property
    def silent_languages(self) -> list[str]:
        """Those that the model's detector knows and its response sets do not have: it says nothing in them."""
        return [code for code in self._detector.languages if not self._answers(code)] if self._may_detect else []

    def require_language(self, language: str) -> None:
        """Raise ArgumentError if the model neither answers in the language nor knows to say nothing in it."""
        if language not in self.silent_languages:
            self.model.require_language(language)

    def detect(self, message: str) -> tuple[str, float]:
        """The most probable language of a message among `languages`, and its probability; see `rank_languages`."""
        return self.rank_languages(message)[0]

    def rank_languages(self, message: str) -> list[tuple[str, float]]:
        """The languages of the model, and its silent ones, with their probabilities for a message, the best first.

        Of a short message, such as a greeting, only the languages that it fits have any.

        Raises:
            ArgumentError: the message is no text, or the model has several languages and no detector.
            InputError: the detector's file is damaged or of another model.
        """
        (text,) = require_messages([message])
        if len(self.languages) == 1 and not self._may_detect:
            return [(self.languages[0], 1.0)]
        ranked = self._detector.rank(text)
        fits = fitting_languages(text, self._detector.languages)
        if not fits:
            return ranked
        total = sum(probability for code, probability in ranked if code in fits)
        shares = [(code, probability / total if code in fits else 0.0) for code, probability in ranked]
        return sorted(shares, key=lambda share: -share[1])

    def sure_language(self, message: str, prefer: Sequence[str] | None = None) -> str | None:
        """The language of a message, or None where it is not clear; errors as `detect`, arguments as `suggest`."""
        return self._find_language(message, prefer)[0]

    def _find_language(self, message: str, prefer: Sequence[str] | None = None) -> tuple[str | None, list[str]]:
        """As `sure_language`, with the languages that fit a short message equally, where there are several."""
        from mrs_suggest.suggest.language_detector import SURE

        ranked = self.rank_languages(message)
        fits = fitting_languages(message, [code for code, _ in ranked])
        if fits:
            among = [own for code in fits if (own := self._answers(code))] or fits
            return preferred_language(among, prefer), (among if len(among) > 1 else [])
        best, probability = ranked[0]
        silent = sum(p for code, p in ranked if not self._answers(code))
        if probability >= SURE or (silent >= SURE and not self._answers(best) and probability > ranked[-1][1]):
            return self._answers(best) or best, []
        return (self.languages[0] if len(self.languages) == 1 else None), []

    def _answers(self, code: str) -> str | None:
        """The language of the model in which a detected one is answered: the same, or one of its regions (`de-AT`)."""
        regions = [own for own in self.languages if own.partition("-")[0] == code.partition("-")[0]]
        return code if code in self.languages else next(iter(regions), None)

    @cached_property
    def _detector(self) -> LanguageDetector:
        from mrs_suggest.suggest.language_detector import DETECTOR, LanguageDetector

        path = self.folder / DETECTOR if self.folder else Path(DETECTOR)
        if self.folder and not path.is_file() and (self.folder / ADAPTER_RECORD).is_file():
            path = self.folder.parent / DETECTOR  # the adapter's folder within that of its run
        known = " ".join(self.languages)
        if not self.folder or not path.is_file():
            raise ArgumentError(
                "language", f"the model has no {DETECTOR} to detect it; it answers {known}, pass one of these."
            )
        return LanguageDetector.load(path)

    @property
    def tags(self) -> dict[str, list[str]]:
        """Language -> the tags of its replies, of the languages whose response set has tags."""
        from mrs_suggest.suggest.retrieval_suggester import RetrievalSuggester

        return self.model.tags.names if isinstance(self.model, RetrievalSuggester) else {}

    def require_tags(self, allow: Collection[str], deny: Collection[str]) -> None:
        """Raise ArgumentError if no reply of the model has one of the tags."""
        self._tagged(allow, deny)

    def suggest(
        self,
        messages: Sequence[str],
        language: str | None = None,
        k: int = SUGGESTIONS,
        allow: Collection[str] = (),
        deny: Collection[str] = (),
        prefer: Sequence[str] | None = None,
    ) -> list[Answer]:
        """Up to k suggestions per message, in the order of `Answer`, without duplicates.

        A greeting, thanks, an emoji and the like get the replies of the set that fit one
        (`mrs_suggest.suggest.short_messages`); with `guard=False` the model ranks all of its replies for them, too.

        Args:
            messages: a list of texts. A blank one (nothing but white space) gets an empty list: there is nothing to
                answer.
            language: one of `languages`; None: the one that `sure_language` finds for each message. One whose language
                is not sure gets an empty list, too.
            k: how many, from 1.
            allow: suggest only replies with one of these tags; empty: all replies.
            deny: suggest no reply with one of these tags, not even an allowed one.
            prefer: languages that the caller reads, the first best: they decide where a short message, such as "ok",
                fits several; None: the locale decides. English comes next.

        Returns:
            A list for each message, in their order. Its `reason` tells why it is empty: `blank`, `language_unclear`,
            `unlikely`, `no_replies` (none in the language, or none that fits a short message), or what the guard found.
            The next best replies take the places of those that the guard leaves
            out.

        Raises:
            ArgumentError: an InputError and a ValueError: the model does not answer in the language, or cannot detect
                it, the messages are not a list of texts, one of them holds a lone surrogate, k is not a whole number
                from 1, or no reply of the model has one of the tags.
        """
        model = self._tagged(allow, deny)
        if language is not None:
            self.require_language(language)
        texts, count = require_messages(messages), require_count(k)
        looked_up = [
            (language, list[str]()) if language or not text.strip() else self._find_language(text, prefer)
            for text in texts
        ]
        found = [code if text.strip() else None for (code, _), text in zip(looked_up, texts, strict=True)]
        answers = [Answer(reason=UNCLEAR if text.strip() else BLANK) for text in texts]
        for code in dict.fromkeys(code for code in found if code) or ([language] if language else []):
            numbers = [number for number, other in enumerate(found) if other == code]
            rows = self._answer(model, [texts[number] for number in numbers], code, count, given=language is not None)
            for number, row in zip(numbers, rows, strict=True):
                answers[number] = row
        for answer, (own, among) in zip(answers, looked_up, strict=True):
            answer.language, answer.among = own, among
        return answers

    def _answer(self, model: ServedModel, messages: list[str], language: str, count: int, given: bool) -> list[Answer]:
        if language not in self.model.languages:
            return [Answer(reason=NO_REPLIES) for _ in messages]
        with np.errstate(over="ignore", invalid="ignore"):  # what comes of it is refused below
            if self.guard is None:
                answers = [Answer(row) for row in model.suggest(messages, language, count)]
            else:
                others = [self._other_language(message, language) for message in messages] if given else []
                answers = self.guard.answer(messages, language, count, self._fitting(model), others)
                for message, answer in zip(messages, answers, strict=True):
                    if not answer and answer.reason is None and kind_of(message, language) and has_table(language):
                        answer.reason = NO_REPLIES
        if not all(math.isfinite(suggestion.score) for answer in answers for suggestion in answer):
            where = self.folder or Path(".")
            raise InputError(f"{self.folder or 'the model'}: its scores are not finite; {again(where)}.")
        chances = self.model.used(messages, language) if self._precision is not None else None
        return answers if chances is None else list(map(self._likely, answers, chances))

    def _fitting(self, model: ServedModel) -> ServedModel:
        """The model with only fitting replies to short messages; a generator has no set to choose from."""
        from mrs_suggest.suggest.fitting_suggester import FittingSuggester
        from mrs_suggest.suggest.retrieval_suggester import RetrievalSuggester
        from mrs_suggest.suggest.tagged_suggester import TaggedSuggester

        if not isinstance(model, RetrievalSuggester | TaggedSuggester):
            return model
        found = self._fits.get(model)
        if found is None:
            found, kept = FittingSuggester(model), {self.model, *self._kept.values()}
            self._fits = {one: fits for one, fits in self._fits.items() if one in kept} | {model: found}
        return found

    def _other_language(self, message: str, language: str) -> str | None:
        """The language that a message is surely in, if it is not the one that the caller gave."""
        if self._may_detect:
            found = self.sure_language(message)
            return found if found != language else None
        return None

    @cached_property
    def _may_detect(self) -> bool:
        try:
            return bool(self._detector)
        except InputError:  # none, or a damaged one: who names the language needs none
            return False

    def _likely(self, answer: Answer, chance: float) -> Answer:
        """The answer, or none where it is not likely enough that one of its suggestions is used."""
        if answer.reason is not None:
            return answer
        if self._least is None or chance < self._least:
            return Answer(reason=UNLIKELY, used=chance)
        return Answer(answer, used=chance)

    def _tagged(self, allow: Collection[str], deny: Collection[str]) -> ServedModel:
        """The model for a request with tags; those of the last `MOST_TAGGED` kinds of requests are kept."""
        if not isinstance(allow, str) and not isinstance(deny, str) and not allow and not deny:
            return self.model
        from mrs_suggest.suggest.tagged_suggester import tagged

        model = tagged(self.model, allow, deny)
        kept = self._kept.pop(model.key, model)
        self._kept[model.key] = kept
        while len(self._kept) > MOST_TAGGED:
            self._kept.pop(next(iter(self._kept)), None)
        return kept
