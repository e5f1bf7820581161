"""Interfaces of the models that score or translate the texts of a build.

Implementations are in `mrs_suggest.services`. Their identity goes into reports, and keys the cache of finished answers
(`mrs_suggest.common.io.text_cache`), so that no text is processed twice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Protocol


@dataclass(frozen=True)
class ServiceFacts:
    """The identity of a model, for reports and as the key of cached answers: equal facts promise equal answers.

    Attributes:
        kind: of implementation, such as `classifier`, `words` or `http`.
        name: a hub id, the name of a folder, or an address without secrets.
        version: a commit, or a hash of the files or settings.
        licence: of the weights or lists, where it is known; else empty.
    """

    kind: str
    name: str
    version: str
    licence: str = ""

    def as_dict(self) -> dict[str, str]:
        """For JSON, without what is unknown."""
        return {key: value for key, value in asdict(self).items() if value}


class Scorer(Protocol):
    """Says how likely it is that texts have a property, such as being toxic."""

    @property
    def facts(self) -> ServiceFacts:
        """Of this scorer."""

    @property
    def at_once(self) -> int | None:
        """The best number of texts per call, after which scores are cached; None: any number, and scores are too cheap
        to cache."""

    def languages(self) -> frozenset[str] | None:
        """The languages that it knows; None: any."""

    def score(self, texts: Sequence[str], language: str) -> list[float]:
        """n texts of one language -> n scores in [0, 1], in their order.

        Raises:
            InputError: a service cannot be reached or refuses, or the model does not answer with numbers in [0, 1].
        """


class Translator(Protocol):
    @property
    def facts(self) -> ServiceFacts:
        """Of this translator."""

    @property
    def settings(self) -> Mapping[str, object]:
        """Plain JSON of other settings that change its answers, such as the number of beams, for reports and the key of
        cached answers."""

    def require(self, source: str, target: str) -> None:
        """Refuse a direction that it does not know; the InputError names those that it knows."""

    def translate(self, texts: Sequence[str], source: str, target: str) -> list[str]:
        """n texts -> n translations, in their order; an empty one if the model gives none, or it does not fit."""

    def fits(self, texts: Sequence[str], source: str, target: str) -> list[bool]:
        """Whether the model can read each text whole; one that it cannot is not translated."""
