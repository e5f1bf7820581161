"""Dist-n, the diversity of reply suggestions: distinct n-grams over the number of tokens, 0 to 1. Texts are lower-
cased, tokenized and cut as in MRS's weighted ROUGE; n-grams do not cross from one suggestion to the next. Options
correct for the length of the text: expectation-adjusted distinct, and samples of equal size.
"""

from collections.abc import Iterable, Sized
from types import SimpleNamespace

import evaluate

from mrs_metrics.distinct import SAMPLES, SEED, distinct_corpus, distinct_counts, distinct_n, distinct_signature
from mrs_metrics.distinct import (
    expectation_adjusted_distinct,
    require_corpus_level,
    sampled_distinct_n,
    vocabulary_size,
)
from mrs_metrics.corpus import jackknife_interval
from mrs_metrics.significance import interval_entries
from mrs_metrics.rouge import EMPTY, prepare_official, score_examples
from mrs_metrics.module import SuggestionsAndReferences
from mrs_metrics.tokenize import AUTO, found_tokenizer

_CITATION = """\
@inproceedings{li-etal-2016-diversity, author = "Li, Jiwei and Galley, Michel and Brockett, Chris and Gao, Jianfeng and
Dolan, Bill", title = "A Diversity-Promoting Objective Function for Neural Conversation Models", booktitle =
"Proceedings of NAACL-HLT 2016", year = "2016"}
@inproceedings{liu-etal-2022-rethinking, author = "Liu, Siyang and Sabour, Sahand and Zheng, Yinhe and Ke, Pei and Zhu,
Xiaoyan and Huang, Minlie", title = "Rethinking and Refining the Distinct Metric", booktitle = "Proceedings of ACL 2022
(short papers)", year = "2022"}
"""


class DistN(SuggestionsAndReferences, evaluate.Metric):
    """
    Args:
        predictions: for each example the list of its suggestions, best first.
        references: for each example the real reply, or a list of several; only for `chosen="best"`.
        language: BCP-47 code, selects the tokenizer; default `en`.
        n: orders to report; default (1, 2).
        chosen: `all` suggestions (default), or the `best` one of each example by weighted ROUGE, as MRS counts them;
            examples whose reference that metric skips are left out then.
        denominator: `tokens` (default) or `ngrams`.
        level: `corpus` (default), all suggestions together, or `response`, the mean of the suggestions' own Dist-n.
        vocabulary: size of a vocabulary, or the vocabulary; adds `ead`. Only at corpus level, like the next ones.
        sample_size: suggestions in a sample; adds `dist1_sampled`, `dist2_sampled`, ...
        samples: number of samples; default 100.
        seed: of the samples; default 12345.
        sentences: `punkt`: split texts into sentences, as MRS's script does; `auto` (default): if Punkt is found.
        punkt: folder of Punkt's parameters, in the layout of NLTK's punkt_tab; default: NLTK's, if installed.
        interval: also return the 95 % interval (jackknife) of the first order's Dist-n; default False.
    Returns:
        dist1, dist2, ...: one for each n, 0 to 1.
        counts: for each of them the distinct n-grams, all n-grams and all tokens.
        ead: if requested, expectation-adjusted distinct (tokens only).
        dist1_sampled, ...: on request, means over the samples, 0 to 1.
        empty_suggestions: counted suggestions without a token, or with nothing but dots; they count as `<empty>`.
        skipped: with `chosen="best"`, examples left out, by reason.
        signature: how the figures were computed, to be printed with them.
    Examples:
        >>> metric = evaluate.load("dist_n")
        >>> metric.compute(predictions=[["i do"], ["i do not"]])["dist1"]
        0.6
    """

    citation = _CITATION
    compares = False
    urls = ("https://arxiv.org/abs/1510.03055", "https://arxiv.org/abs/2202.13587")

    def _compute(
        self, predictions: list[list[str]], references: list[list[str]], language: str = "en",
        n: int | tuple[int, ...] = (1, 2), chosen: str = "all", denominator: str = "tokens", level: str = "corpus",
        vocabulary: int | Sized | None = None, sample_size: int | None = None, samples: int = SAMPLES, seed: int = SEED,
        sentences: str = AUTO, punkt: str | None = None, interval: bool = False, units: list[object] | None = None,
    ) -> dict[str, object]:  # fmt: skip
        orders = tuple(n) if isinstance(n, Iterable) else (n,)
        require_corpus_level(level, vocabulary, sample_size)
        tokenizer = found_tokenizer(language, sentences, punkt)
        result: dict[str, object] = {}
        if chosen == "all":
            examples = [[prepare_official(text, tokenizer).tokens for text in texts] for texts in predictions]
            kept = None
        elif chosen == "best":
            if not any(map(any, references)):
                raise ValueError("Dist-n of the best suggestions needs references to choose the best by.")
            scores = score_examples(predictions, references, language, tokenizer=tokenizer)
            examples, kept = [[tokens] for tokens in scores.chosen_tokens], scores.kept
            result["skipped"] = scores.skipped
        else:
            raise ValueError(f"The suggestions chosen for Dist-n must be 'all' or 'best', not {chosen!r}.")
        token_lists = [tokens for texts in examples for tokens in texts]
        counts = {order: distinct_counts(token_lists, order) for order in orders}
        for order in orders:
            result[f"dist{order}"] = distinct_n(token_lists, order, denominator, level)
        if vocabulary is not None:
            result["ead"] = expectation_adjusted_distinct(token_lists, vocabulary)
        if sample_size is not None:
            for order in orders:
                sampled = sampled_distinct_n(token_lists, order, sample_size, samples, seed, denominator)
                result[f"dist{order}_sampled"] = float(sampled.mean())
        nbest, size = max(map(len, predictions), default=0), None if vocabulary is None else vocabulary_size(vocabulary)
        sampling = None if sample_size is None else (sample_size, samples, seed)
        line = distinct_signature(nbest, tokenizer, language, chosen, denominator, level, size, sampling)
        result |= {
            "counts": {f"dist{order}": dict(vars(count)) for order, count in counts.items()},
            "empty_suggestions": sum(tokens == [EMPTY] for tokens in token_lists),
            "signature": line,
        }
        if interval:
            corpus = distinct_corpus(examples, orders[0], denominator, level)
            about = SimpleNamespace(signature=line, kept=kept)
            result |= interval_entries(jackknife_interval, corpus, about, units, len(predictions))
        return result
