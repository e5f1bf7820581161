"""Translation with sequence-to-sequence checkpoints of transformers: Marian, M2M100, NLLB, mBART-50, our own runs."""

from __future__ import annotations

import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mrs_suggest.common.batches import by_length
from mrs_suggest.common.errors import extra_needed, require_least
from mrs_suggest.common.text.text import visible
from mrs_suggest.common.text.text_services import ServiceFacts
from mrs_suggest.models.checkpoint_loading import from_pretrained
from mrs_suggest.models.generation.architectures.prophetnet import corrected, most_tokens
from mrs_suggest.models.generation.decoding.beam_search import decode
from mrs_suggest.models.generation.decoding.settings import Decoding
from mrs_suggest.models.generation.text_coder import TextCoder
from mrs_suggest.services.checkpoints import OPTION, Checkpoint
from mrs_suggest.services.translators.languages import NLLB, NLLB_LICENCE, Languages

if TYPE_CHECKING:
    from transformers import PreTrainedModel

MOST = 512  # tokens of a source if the checkpoint has no limit; Marian's limit


@dataclass(frozen=True)
class Search:
    """The search for translations.

    Attributes:
        beams: as M2M100 is evaluated (Fan et al. 2020), and fairseq's default; NLLB uses 4, CTranslate2 by default 2.
        max_tokens: of a translation, by default CTranslate2's; a translation that does not end in time is empty.
        batch_tokens: of a batch, padding included; only affects speed and memory (chosen with
            `benchmarks/bench_translate.py`).
    """

    beams: int = 5
    max_tokens: int = 256
    batch_tokens: int = 4096

    def __post_init__(self) -> None:
        require_least(self, 1, "beams", "max-tokens", "batch-tokens")


class CheckpointTranslator(ABC):
    """The common part of translators on torch and on CTranslate2: languages, lengths, batches.

    Args:
        tokenizer, config: of the checkpoint; `config` may lack attributes that only transformers has.
    """

    def __init__(
        self, checkpoint: Checkpoint, search: Search, tokenizer: Any, config: Any, model_type: str, runtime: str
    ) -> None:
        self._checkpoint, self._tokenizer, self._config = checkpoint, tokenizer, config
        self._languages = Languages(checkpoint.name, checkpoint.folder, tokenizer, model_type)
        own = most_tokens(config) or getattr(tokenizer, "model_max_length", None) or MOST
        self._most = positions = own if own < 1 << 20 else MOST
        self._search = replace(search, max_tokens=min(search.max_tokens, positions - 2))
        licence = checkpoint.licence
        if self._languages.family == NLLB and not licence:
            licence = NLLB_LICENCE
        self.facts = ServiceFacts(self._languages.family, checkpoint.name, checkpoint.version, licence)
        self.settings = {"beams": self._search.beams, "max_tokens": self._search.max_tokens, "runtime": runtime}

    def __reduce__(self) -> tuple[type[CheckpointTranslator], tuple[Any, ...]]:
        return type(self), (self._checkpoint, self._search)

    def require(self, source: str, target: str) -> None:
        """See `mrs_suggest.common.text.text_services.Translator`."""
        self._languages.require(source, target)

    def fits(self, texts: Sequence[str], source: str, target: str) -> list[bool]:
        """See `mrs_suggest.common.text.text_services.Translator`."""
        return [len(ids) <= self._most for ids in self._coder(source, target).messages(list(texts), target)]

    def translate(self, texts: Sequence[str], source: str, target: str) -> list[str]:
        """See `mrs_suggest.common.text.text_services.Translator`."""
        coder = self._coder(source, target)
        inputs = coder.messages(list(texts), target)
        found = [""] * len(texts)
        fitting = [number for number, ids in enumerate(inputs) if len(ids) <= self._most]
        for numbers in by_length([inputs[number] for number in fitting], len(fitting), self._search.batch_tokens):
            places = [fitting[number] for number in numbers]
            answers = self._write([inputs[place] for place in places], coder, coder.prompt(target))
            for place, ids in zip(places, answers, strict=True):
                if len(ids) < self._search.max_tokens:  # a longer one was cut
                    found[place] = coder.text(ids)
        return found

    @abstractmethod
    def _write(self, inputs: Sequence[Sequence[int]], coder: TextCoder, prompt: Sequence[int]) -> list[list[int]]:
        """The best translation of each source, as ids without prompt and end."""

    def _coder(self, source: str, target: str) -> TextCoder:
        return self._languages.coder(self._config, source, target, self._most + 1)  # one more: it does not fit


class Seq2SeqTranslator(CheckpointTranslator):
    """Translates with a checkpoint of transformers on torch; the weights are loaded for the first text.

    Raises:
        InputError: it cannot be loaded, or its family is unknown.
        MissingExtraError: its tokenizer needs the extra `translate`.
    """

    def __init__(self, checkpoint: Checkpoint, search: Search) -> None:
        import mrs_suggest.models.generation.architectures.convolutional  # noqa: F401  (registers its type)

        config = config_of(checkpoint)
        super().__init__(checkpoint, search, tokenizer_of(checkpoint), config, config.model_type, "torch")

    @cached_property
    def model(self) -> PreTrainedModel:
        return load_weights(self._checkpoint)

    def _write(self, inputs: Sequence[Sequence[int]], coder: TextCoder, prompt: Sequence[int]) -> list[list[int]]:
        settings = Decoding(beams=self._search.beams, max_tokens=self._search.max_tokens, batch_size=len(inputs))
        found = decode(self.model, inputs, [prompt] * len(inputs), settings, n=1)
        return [row[0].tokens if row else [] for row in found]


def config_of(checkpoint: Checkpoint) -> Any:
    """The configuration of a checkpoint; InputError if it cannot be loaded."""
    return from_pretrained("AutoConfig", checkpoint.folder, option=OPTION, shown=checkpoint.name)


def tokenizer_of(checkpoint: Checkpoint) -> Any:
    pieces = any(checkpoint.folder.glob("*.spm")) or any(checkpoint.folder.glob("sentencepiece*.model"))
    if pieces and not (checkpoint.folder / "tokenizer.json").is_file():
        with extra_needed("sentencepiece", "translate", f"the tokenizer of {checkpoint.name}"):
            import sentencepiece  # noqa: F401
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Marian's recommends a package that is not used here
        return from_pretrained("AutoTokenizer", checkpoint.folder, option=OPTION, shown=checkpoint.name)


def load_weights(checkpoint: Checkpoint) -> PreTrainedModel:
    """The model of a checkpoint in float32, in evaluation mode; InputError if it cannot be loaded."""
    model: PreTrainedModel = from_pretrained(
        "AutoModelForSeq2SeqLM", checkpoint.folder, option=OPTION, shown=checkpoint.name
    )
    return corrected(model).eval()


def say_licence(facts: ServiceFacts) -> None:
    """Print a note about a licence that restricts the use of translations."""
    if "nc" in facts.licence.lower().split("-"):
        print(
            f"note: {visible(facts.name)} has the licence {visible(facts.licence)}: no commercial use; the report and "
            "the card of the data say so.",
            file=sys.stderr,
        )
