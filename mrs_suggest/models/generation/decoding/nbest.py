"""Lists of the n best texts of a generator, each with its log-probability, for systems that give many answers (STAPLE,
Mayhew et al. 2020, section 4.2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.text import is_blank
from mrs_suggest.models.generation.decoding.hypotheses import Hypothesis, by_score
from mrs_suggest.models.generation.decoding.settings import Decoding, Sampling

if TYPE_CHECKING:
    from mrs_suggest.models.generation.generator import Generator
    from mrs_suggest.models.generation.reply_writer import ReplyWriter
    from mrs_suggest.models.generation.text_coder import TextCoder

# Ours: 256 MiB of float32 for the scores of a step, of which a search holds about four tensors, and 1 GiB for the
# states of the tokens so far, which it copies when it reorders its beams.
SCORES = 1 << 26
STATES = 1 << 28
MOST_TOGETHER = 32  # as `Decoding.batch_size`


class Written(NamedTuple):
    """A text that a generator wrote.

    Attributes:
        log_prob: natural logarithm of the probability of its tokens and the end token.
    """

    text: str
    log_prob: float
    length: int


def n_best(writer: ReplyWriter, texts: Sequence[str], language: str, n: int, settings: Decoding) -> list[list[Written]]:
    """Up to n texts for each source, as the search ranks them, each once (see `merged`)."""
    if not 1 <= n <= settings.beams:
        raise InputError(f"--nbest {n}: a search with --beams {settings.beams} finds fewer; raise --beams.")
    found = writer.hypotheses(texts, language, settings)
    return [merged(written(row, writer.coder, settings))[:n] for row in found]


def n_drawn(
    generator: Generator, texts: Sequence[str], language: str, n: int, settings: Decoding, sampling: Sampling,
    seeds: Sequence[int],
) -> list[list[Written]]:  # fmt: skip
    """Up to n different texts for each source of those that are drawn, the best first by the settings' score."""
    found = generator.sample(texts, language, settings, sampling, seeds)
    return [merged(written(by_score(row), generator.coder, settings))[:n] for row in found]


def written(hypotheses: Iterable[Hypothesis], coder: TextCoder, settings: Decoding) -> list[Written]:
    """Hypotheses as texts, with their scores as log-probabilities."""
    power = settings.length_penalty
    lines = ((" ".join(coder.text(ids).splitlines()).strip(), score, len(ids) + 1) for ids, score in hypotheses)
    return [Written(text, score * length**power, length) for text, score, length in lines]


def merged(texts: Iterable[Written]) -> list[Written]:
    """Each text once, at the place of its first, without blank ones.

    A text can be written in several sequences of tokens, and the most probable one counts: the sum over those that a
    search happens to find would grow with the search, and could not be compared with a text that is scored by itself.

    >>> merged([Written("sim", -1.0, 2), Written(" ", -1.5, 1), Written("sim", -0.5, 3), Written("não", -2.0, 2)])
    [Written(text='sim', log_prob=-0.5, length=3), Written(text='não', log_prob=-2.0, length=2)]
    """
    found: dict[str, Written] = {}
    for text, log_prob, length in texts:
        if not is_blank(text) and (text not in found or found[text].log_prob < log_prob):
            found[text] = Written(text, log_prob, length)
    return list(found.values())


def fitting_batch(config: Any, beams: int, tokens: int) -> int:
    """Texts to decode together so that a step's scores and the decoder's states fit into memory: 1 to 32.

    Args:
        beams: rows that each text takes.
        tokens: of the longest text, and of the longest source.
    """

    def first(*names: str) -> int:
        return next((int(value) for name in names if (value := getattr(config, name, None))), 1)

    states = 4 * first("decoder_layers", "num_decoder_layers", "num_layers") * first("d_model", "hidden_size") * tokens
    return max(1, min(MOST_TOGETHER, int(1 / (beams * max(config.vocab_size / SCORES, states / STATES)))))
