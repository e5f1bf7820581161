"""BLEU of reply suggestions, by sacreBLEU, for each example's best or first suggestion.

Source: Papineni et al. 2002, "BLEU: a Method for Automatic Evaluation of Machine Translation", as sacreBLEU (Post 2018,
"A Call for Clarity in Reporting BLEU Scores") computes it; Zhang et al. 2021 (MRS), section 3.3, names it.

1. One suggestion of each example counts (`chosen`):
   `best` has the highest sentence BLEU against the reference, the first of several;
   `best_rouge` has the highest weighted ROUGE (`mrs_metrics.rouge`): what section 3.3 does for its final metrics;
   `first` is the system's own first choice. Choosing by the reference raises the score: compare equal signatures only.
2. Corpus BLEU is taken over the chosen suggestions: n-gram matches and lengths are summed over the examples, then
   combined. Orders 1 to 4, smoothing `exp`, mixed case: sacreBLEU's defaults.
3. Sentence BLEU has effective order, so that texts of fewer than four tokens can score; corpus BLEU has not.
4. A reference without a token is skipped and counted. An empty suggestion stays and matches nothing; an example
   without suggestions counts as an empty one.
5. An example may have several references, as sacreBLEU counts them: an n-gram matches as often as in the reference
   that has it most often, and the penalty for brevity looks at the reference closest in length. Empty ones among them
   are left out. `nrefs` in sacreBLEU's part of the signature is their number, or `var` where it varies.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mrs_metrics.corpus import Corpus, Figure
from mrs_metrics.rouge import score_examples as score_rouge
from mrs_metrics.signature import Reference, as_lists, check_suggestions, count_references, signature

if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEU, BLEUScore

MAX_ORDER = 4
CHOICES = ("best", "best_rouge", "first")
DEFAULT_TOKENIZER = "13a"
# sacreBLEU's own choices (zh, ja, ko); chosen here for the others, which do not put spaces between words either.
TOKENIZERS = {"zh": "zh", "ja": "ja-mecab", "ko": "ko-mecab", "th": "char", "lo": "char", "km": "char", "my": "char"}
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[a-z0-9]+)*", re.IGNORECASE)
_MECAB_EXTRAS = {"ja-mecab": "ja", "ko-mecab": "ko"}


@dataclass(frozen=True, eq=False)
class BleuScores:
    """Scores of the n examples that were kept, one row each; statistics stay apart from their aggregation.

    Attributes:
        sentence: (n,) sentence BLEU of the chosen suggestion, 0 to 100.
        statistics: (n, 10) what corpus BLEU sums up: tokens of the suggestion and of the reference, matched n-grams of
            the orders 1 to 4, n-grams of the suggestion of the orders 1 to 4.
        chosen: (n,) index of the chosen suggestion among the example's, -1 without suggestions.
        kept: (n,) index of the example in the input.
        skipped: examples left out, by reason: `reference_empty`, with `best_rouge` also `reference_too_long`.
        empty: chosen suggestions without a token, the missing ones included.
    """

    sentence: NDArray[np.float64]
    statistics: NDArray[np.int64]
    chosen: NDArray[np.int64]
    kept: NDArray[np.int64]
    skipped: dict[str, int]
    empty: int
    signature: str


def score_suggestions(
    predictions: Sequence[Sequence[str]],
    references: Sequence[Reference],
    language: str = "en",
    chosen: str = "best",
    tokenize: str | None = None,
    lowercase: bool = False,
) -> BleuScores:
    """Choose a suggestion of each example and count its n-grams against the reference.

    Args:
        predictions: for each example its suggestions, best first; any number, three in MRS.
        references: for each example the reply that was really given, or a list of several.
        language: BCP-47 code; selects the tokenizer.
        chosen: `best`, `best_rouge` or `first`, see the module's docstring.
        tokenize: one of sacreBLEU's tokenizers, in place of the language's own. `flores101`, `flores200` and `spm`
            download a model when first used.
        lowercase: compare lower-cased texts.

    Raises:
        ValueError: the two differ in length, an entry has the wrong type, the choice or tokenizer is unknown, or the
            language is not a code.
        ImportError: sacreBLEU, or what the tokenizer needs, is not installed.

    >>> scores = score_suggestions([["No.", "Yes, at eight!"], ["Bye!"]], ["Yes, at nine!", ""])
    >>> scores.chosen.tolist(), scores.kept.tolist(), scores.skipped, scores.sentence.round(2).tolist()
    ([1], [0], {'reference_empty': 1}, [42.73])
    """
    if chosen not in CHOICES:
        raise ValueError(f"The suggestion chosen for BLEU must be one of {list(CHOICES)}, not {chosen!r}.")
    check_suggestions(predictions, references, required=True)
    own = default_tokenizer(language)  # checks the code, too
    metric = _metric(tokenize or own, lowercase)
    preset: dict[int, int] | None = None
    skipped = {"reference_empty": 0}
    if chosen == "best_rouge":
        rouge = score_rouge(predictions, references, language)
        preset = dict(zip(rouge.kept.tolist(), rouge.chosen.tolist(), strict=True))
        skipped |= rouge.skipped
    suggested, named_of = [list(texts) for texts in predictions], as_lists(references)
    if (tokenize or own) in _MECAB_EXTRAS:
        suggested, named_of = _for_mecab(suggested), _for_mecab(named_of)
    rows: list[tuple[int, int, BLEUScore]] = []
    for index, (texts, named) in enumerate(zip(suggested, named_of, strict=True)):
        if preset is not None and index not in preset:
            continue  # ROUGE skipped and counted it
        positions = range(min(1, len(texts)) if chosen == "first" else len(texts))
        if preset is not None:
            positions = range(max(0, preset[index]), preset[index] + 1)
        position, score = _best(metric, [(position, texts[position]) for position in positions], named)
        if score.ref_len == 0:
            skipped["reference_empty"] += 1
            continue
        rows.append((index, position, score))
    statistics = [[score.sys_len, score.ref_len, *score.counts, *score.totals] for *_, score in rows]
    return BleuScores(
        sentence=np.array([min(score.score, 100.0) for *_, score in rows], dtype=np.float64),
        statistics=np.array(statistics, dtype=np.int64).reshape(-1, 2 + 2 * MAX_ORDER),
        chosen=np.array([position for _, position, _ in rows], dtype=np.int64),
        kept=np.array([index for index, _, _ in rows], dtype=np.int64),
        skipped=skipped,
        empty=sum(score.sys_len == 0 for *_, score in rows),
        signature=_signature(
            metric, max(map(len, predictions), default=0), count_references(references), language, chosen
        ),
    )


def aggregate(scores: BleuScores) -> dict[str, float]:
    """Combine the counts of all examples.

    Returns:
        `n` (an int); `bleu`, the corpus BLEU, and `sentence_bleu`, the mean of the sentence scores, both 0 to 100 as
        sacreBLEU prints them; `brevity_penalty`, 0 to 1; `length_ratio`, tokens of the suggestions over those of the
        references; `empty` (an int), chosen suggestions without a token.

    Raises:
        ValueError: every example was skipped.

    >>> figures = aggregate(score_suggestions([["See you tomorrow then!"]], ["See you tomorrow then!"]))
    >>> figures["bleu"], figures["brevity_penalty"]
    (100.0, 1.0)
    """
    _require_examples(scores)
    suggested, referred = scores.statistics[:, :2].sum(axis=0).tolist()
    penalty = 1.0 if suggested >= referred else math.exp(1 - referred / suggested) if suggested else 0.0
    return {
        "n": len(scores.kept),
        "bleu": _corpus_bleu(scores.statistics.sum(axis=0)),
        "sentence_bleu": float(scores.sentence.mean()),
        "brevity_penalty": penalty,
        "length_ratio": suggested / referred,
        "empty": scores.empty,
    }


def bleu_corpus(scores: BleuScores) -> Corpus:
    """Return corpus BLEU for intervals and tests; ValueError if every example was skipped."""
    _require_examples(scores)
    return Corpus([tuple(row) for row in scores.statistics.tolist()], _bleu_figure, 100.0)


def _bleu_figure(rows: Sequence[tuple[int, ...]]) -> Figure:
    table = np.array(rows, dtype=np.float64)
    return lambda weights: _corpus_bleu(weights @ table)


def default_tokenizer(language: str) -> str:
    """Return the name of sacreBLEU's tokenizer for a language: `13a` unless words are written without spaces.

    Raises:
        ValueError: the code does not have the form of a language code.

    >>> default_tokenizer("pt-BR"), default_tokenizer("ja")
    ('13a', 'ja-mecab')
    """
    if not isinstance(language, str) or not _LANGUAGE.fullmatch(language):
        raise ValueError(f"The language must be a BCP-47 code such as 'en' or 'ja', not {language!r}.")
    return TOKENIZERS.get(language.lower().split("-")[0], DEFAULT_TOKENIZER)


def _metric(tokenize: str, lowercase: bool) -> BLEU:
    try:
        from sacrebleu.metrics.bleu import BLEU
    except ImportError as error:
        raise ImportError(
            "BLEU needs the package sacrebleu, which is not installed: run pip install sacrebleu."
        ) from error
    if tokenize not in BLEU.TOKENIZERS:
        raise ValueError(f"The tokenizer for BLEU must be one of {sorted(BLEU.TOKENIZERS)}, not {tokenize!r}.")
    try:
        return BLEU(tokenize=tokenize, lowercase=lowercase, effective_order=True)
    except (ImportError, RuntimeError) as error:  # its MeCab tokenizers raise RuntimeError
        extra = _MECAB_EXTRAS.get(tokenize)
        needed = f"'sacrebleu[{extra}]'" if extra else "sentencepiece"
        raise ImportError(
            f"What the tokenizer {tokenize!r} of BLEU needs is not installed: run pip install {needed}, "
            "or use the tokenizer 'char', which counts characters and needs nothing."
        ) from error
    except OSError as error:
        raise ValueError(f"The model of the tokenizer {tokenize!r} of BLEU could not be fetched: {error}.") from error


def _for_mecab(examples: list[list[str]]) -> list[list[str]]:
    """Without NUL, where MeCab would end the text, and without lone surrogates, which it refuses."""
    return [
        [text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8") for text in texts] for texts in examples
    ]


def _best(metric: BLEU, candidates: list[tuple[int, str]], references: list[str]) -> tuple[int, BLEUScore]:
    """The position and score of the first best candidate; -1 and an empty text's score without candidates."""
    texts = [text for text in references if text.strip()] or references[:1]
    scored = [(position, metric.sentence_score(text, texts)) for position, text in candidates or [(-1, "")]]
    return max(scored, key=lambda item: item[1].score)


def _corpus_bleu(sums: NDArray[np.int64] | NDArray[np.float64]) -> float:
    from sacrebleu.metrics.bleu import BLEU

    suggested, referred, *counts = sums.astype(np.int64).tolist()
    score = BLEU.compute_bleu(counts[:MAX_ORDER], counts[MAX_ORDER:], suggested, referred, smooth_method="exp")
    return min(score.score, 100.0)  # rounding lifts a perfect match slightly above 100


def _signature(metric: BLEU, nbest: int, nrefs: int | str, language: str, chosen: str) -> str:
    """Includes sacreBLEU's own signature of the corpus score, joined by commas; `sentence` describes sentence BLEU."""
    from sacrebleu import __version__

    case = "lc" if metric.lowercase else "mixed"
    inner = f"nrefs:{nrefs},case:{case},eff:no,tok:{metric.tokenizer_signature},smooth:exp,version:{__version__}"
    return signature(
        "reply_bleu", chosen=chosen, nbest=nbest, lang=language, sentence="eff:yes,smooth:exp", sacrebleu=inner
    )


def _require_examples(scores: BleuScores) -> None:
    if not len(scores.kept):
        raise ValueError(f"No examples are left to score; skipped: {scores.skipped}.")
