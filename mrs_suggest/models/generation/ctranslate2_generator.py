"""A generator on CTranslate2, where `mrs models export --ctranslate2` put one into its folder.

It searches as `decoding/beam_search.py`, with three differences. CTranslate2 stops
after a number of finished replies instead of comparing the open ones with them; so it is asked for more than there are
beams, and the best are kept. Where a rule forbids tokens, the search lets the others share their probability. And it
has no diverse groups, which are refused at export. Scores are always those of torch: replies are scored anew where the
search's own would differ.

CTranslate2 quantises the activations of each token by themselves, so an int8 reply does not depend on the other
messages of a batch. It answers no message without tokens.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from mrs_suggest.common.io.manifest import again
from mrs_suggest.models.checkpoint_loading import loading
from mrs_suggest.models.exports import (
    CTRANSLATE2,
    SETTINGS,
    WEIGHTS,
    bounded_threads,
    damaged,
    note_missing,
    read_settings,
)
from mrs_suggest.models.generation.decoding.hypotheses import Hypothesis, by_score
from mrs_suggest.models.generation.decoding.settings import Decoding
from mrs_suggest.models.generation.plain_tokenizer import saved_tokenizer
from mrs_suggest.models.generation.reply_writer import ReplyWriter, read_generator_settings
from mrs_suggest.models.generation.text_coder import TextCoder

if TYPE_CHECKING:
    from ctranslate2 import Translator

# Finished replies before the search stops, in beams. Chosen on 200 validation messages of the sample: torch's three
# suggestions for 119 of them with 1, 194 with 1.5, 197 with 2, 198 with 3 and with 4, which take longer.
PATIENCE = 2.0
UNUSED = -1e9  # sums below are of beams that the search never filled


class ExportedGenerator(ReplyWriter):
    """Writes replies with CTranslate2; build it with `load`. Its tokens are the ids of the generator's, as texts."""

    def __init__(
        self, translator: Translator, coder: TextCoder, languages: Sequence[str], decoding: Decoding, end: int, pad: int
    ) -> None:
        super().__init__(coder, languages, decoding)
        self._translator, self._end, self._pad = translator, str(end), str(pad)

    @classmethod
    def load(cls, folder: Path, export: Path | None = None) -> ExportedGenerator | None:
        """The exported generator of a model's folder; None without an export, or without the extra.

        Args:
            export: the folder with `ctranslate2/`, if it is not the model's own.
        """
        place = folder if export is None else export
        settings = read_settings(place, CTRANSLATE2)
        if settings is None:
            return None
        try:
            from ctranslate2 import Translator
        except ImportError:
            note_missing(CTRANSLATE2, CTRANSLATE2, folder)
            return None
        facts = read_generator_settings(folder)
        try:
            end, pad, decoding = int(settings["end"]), int(settings["pad"]), settings["decoding"]
        except (KeyError, TypeError, ValueError):
            raise damaged(place / CTRANSLATE2 / SETTINGS, folder) from None
        if decoding != as_json(facts.decoding):  # its answers were checked with these
            raise damaged(place / CTRANSLATE2 / SETTINGS, folder, "was made for other settings of the search")
        try:
            threads = bounded_threads() or len(os.sched_getaffinity(0))  # CTranslate2 alone takes at most 4
            translator = Translator(str(place / CTRANSLATE2), device="cpu", intra_threads=threads)
        except (RuntimeError, ValueError) as error:
            raise damaged(place / CTRANSLATE2 / WEIGHTS, folder) from error
        with loading("the configuration", folder, "", again(folder)):
            config = SimpleNamespace(**json.loads((folder / "config.json").read_text(encoding="utf-8")))
        coder = facts.coder(saved_tokenizer(folder), config)
        return cls(translator, coder, facts.languages, facts.decoding, end, pad)

    def log_probs(
        self, messages: Sequence[str], replies: Sequence[str], language: str
    ) -> tuple[np.ndarray, np.ndarray]:
        """Log-likelihood of each reply in nats, and its tokens with the end token: (n,) and (n,).

        As `Generator.losses` with the other sign.
        """
        prompt, targets = self.coder.prompt(language), self.coder.replies(replies)
        found = self._log_probs(self.coder.messages(messages, language), prompt, [ids[:-1] for ids in targets])
        return np.array(found), np.array([len(ids) for ids in targets], dtype=np.int64)

    def _search(
        self, inputs: Sequence[Sequence[int]], prompt: Sequence[int], settings: Decoding, language: str
    ) -> list[list[Hypothesis]]:
        if not inputs:
            return []
        before = len(prompt) - 1  # tokens of the prompt that CTranslate2 counts as part of the reply
        patience = PATIENCE if settings.beams > 1 else 1.0
        forbidden = [[self._pad]] if self._pad != self._end else []
        forbidden += [_names(ids) for ids in self._blocked]
        results = self._translator.translate_batch(
            [_names(ids) for ids in inputs],
            [_names(prompt)] * len(inputs),
            max_batch_size=settings.batch_size,
            beam_size=settings.beams,
            patience=patience,
            num_hypotheses=round(settings.beams * patience),
            length_penalty=1.0,  # any but 0, with which the search would stop early; taken back below
            no_repeat_ngram_size=settings.no_repeat_ngram,
            suppress_sequences=forbidden or None,
            return_end_token=True,
            max_input_length=0,
            max_decoding_length=before + settings.max_tokens,
            min_decoding_length=before + settings.min_tokens,
            return_scores=True,
        )
        rules = settings.no_repeat_ngram or settings.min_tokens or self._blocked
        both = zip(inputs, results, strict=True)
        return [self._hypotheses(ids, prompt, result, settings, bool(rules)) for ids, result in both]

    def _hypotheses(
        self, source: Sequence[int], prompt: Sequence[int], result: Any, settings: Decoding, rescore: bool
    ) -> list[Hypothesis]:
        """Those of one input, best first; what the search cut at the longest reply gets its end."""
        before = len(prompt) - 1
        ended: dict[tuple[int, ...], float] = {}
        rest: list[tuple[int, ...]] = []
        for names, score in zip(result.hypotheses, result.scores, strict=True):
            total = score * len(names)
            names = names[before:]
            is_ended = bool(names) and names[-1] == self._end
            tokens = tuple(int(name) for name in (names[:-1] if is_ended else names))
            if total < UNUSED or int(self._end) in tokens:  # nothing else was left to go on with
                continue
            if is_ended and not rescore:
                ended[tokens] = total
            else:
                rest.append(tokens)
        rest = list(dict.fromkeys(rest))
        ended |= dict(zip(rest, self._log_probs([source] * len(rest), prompt, rest), strict=True))
        power = settings.length_penalty
        found = (Hypothesis(list(tokens), total / (len(tokens) + 1) ** power) for tokens, total in ended.items())
        return by_score(found)[: settings.beams]

    def _log_probs(
        self, sources: Sequence[Sequence[int]], prompt: Sequence[int], replies: Sequence[Sequence[int]]
    ) -> list[float]:
        """Of each reply and its end, in nats."""
        if not sources:
            return []
        results = self._translator.score_batch(
            [_names(ids) for ids in sources],
            [_names([*prompt, *ids]) for ids in replies],
            max_batch_size=self.decoding.batch_size,
            max_input_length=0,
        )
        return [float(sum(result.log_probs[len(prompt) - 1 :])) for result in results]


def as_json(decoding: Decoding) -> dict[str, Any]:
    """The settings as JSON gives them back."""
    return {**asdict(decoding), "blocked": list(decoding.blocked)}


def _names(ids: Sequence[int]) -> list[str]:
    return [str(number) for number in ids]
