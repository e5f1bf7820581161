"""Message and language in, three suggestions out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mrs_core.baselines import resolve_model
from mrs_core.manifest import require_undamaged
from mrs_core.predictions import SUGGESTIONS
from mrs_models.answering import ServedModel, Suggestion
from mrs_models.starting_points import GENERATOR, RANKER_FOLDER


class Suggester:
    """Answers messages with a trained model of any family; `load` finds the family.

    Attributes:
        model: what answers.

    Example:
        >>> suggester = Suggester.load("build/retriever")           # doctest: +SKIP
        >>> [s.reply for s in suggester.suggest(["¿Quedamos mañana?"], "es")[0]]  # doctest: +SKIP
        ['Sí, perfecto.', 'Vale, ¿a qué hora?', 'Mañana no puedo, lo siento.']
    """

    def __init__(self, model: ServedModel) -> None:
        self.model = model

    @staticmethod
    def load(folder: str | Path, revision: str | None = None, verify: bool = False) -> Suggester:
        """Load a trained model: the folder of a run, a baseline, `ORG/NAME`, or `ORG/NAME@REVISION`.

        Args:
            revision: of a model on the hub: a branch, a tag or a commit.
            verify: compare the SHA-256 of large files, too (`mrs_core.manifest` has the rule).

        Raises:
            InputError: no such model, or its files are damaged or do not fit each other.
        """
        path = resolve_model(str(folder), revision)
        require_undamaged(path, verify)
        if (path / GENERATOR).is_file():
            from mrs_models.generation_suggester import GenerationSuggester

            return Suggester(GenerationSuggester.load_from(path))
        if (path / RANKER_FOLDER).is_dir():
            from mrs_models.ranked_suggester import RankedSuggester

            return Suggester(RankedSuggester.load_from(path, str(folder)))
        from mrs_models.retrieval_suggester import RetrievalSuggester

        return Suggester(RetrievalSuggester.load_from(path, str(folder)))

    @property
    def languages(self) -> list[str]:
        """The languages that can be answered."""
        return self.model.languages

    def require_language(self, language: str) -> None:
        """Raise ArgumentError if the model does not answer in the language."""
        self.model.require_language(language)

    def suggest(self, messages: Sequence[str], language: str, k: int = SUGGESTIONS) -> list[list[Suggestion]]:
        """Up to k suggestions per message, best first, without duplicates.

        Args:
            messages: a list of texts. A blank one (nothing but white space) gets an empty list: there is nothing to
                answer.
            language: one of `languages`.
            k: how many, from 1.

        Returns:
            A list for each message, in their order.

        Raises:
            ArgumentError: an InputError and a ValueError: the model does not answer in the language, the messages are
                not a list of texts, one of them holds a lone surrogate, or k is not a whole number from 1.
        """
        return self.model.suggest(messages, language, k)
