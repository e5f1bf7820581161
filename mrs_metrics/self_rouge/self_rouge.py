"""Self-ROUGE of the suggestions of a message as an `evaluate` module; the arithmetic is in `mrs_metrics.similarity`."""

from __future__ import annotations


import datasets
import evaluate

# A Space gets a copy of each file imported here, at column 0 and without a comment after it (evaluate would read that
# as the file's address); their own imports are listed too.
from mrs_metrics.similarity import aggregate, score_similarity
from mrs_metrics.ngrams import ngram_sets
from mrs_metrics.punkt import open_punkt
from mrs_metrics.rouge import prepare_official
from mrs_metrics.resampling import studentised_interval
from mrs_metrics.signature import signature
from mrs_metrics.significance import bootstrap_interval
from mrs_metrics.suggestions import Suggestions
from mrs_metrics.tokenize import get_tokenizer

# Imported only so that their files are copied, see above.
_BUNDLED = (ngram_sets, open_punkt, prepare_official, studentised_interval, signature)

_DESCRIPTION = """\
Self-ROUGE, how similar the suggestions of one message are: weighted ROUGE of each pair, averaged over the pairs, then
over the messages. Low is diverse.
"""

_INPUTS = """
Args:
    predictions: for each example the list of its suggestions.
    language: BCP-47 code, selects the tokenizer; default `en`.
    interval: also return the 95 % interval (studentised bootstrap) of `normalised`; default False.
    per_example: also return the scores of each example; default False.
    sentences: `no` (default), or `punkt`: split texts into sentences first, as MRS's official script does.
    punkt: folder of Punkt's parameters, in the layout of NLTK's punkt_tab; default: NLTK's, if installed.
Returns:
    n: examples with two or more suggestions.
    self_rouge: mean weighted ROUGE, 0 to 1, where equal texts of one token reach 1/6, of two tokens 1/2.
    normalised: the same relative to what equal texts reach, 0 (nothing in common) to 1 (the same n-grams).
    empty: suggestions without a token, or of dots only.
    skipped: examples left out, by reason.
    signature: how the figures were computed, to be printed with them.
    interval: on request, its low and high end.
    per_example: on request, lists of one entry per scored example: `self_rouge`, `normalised` and `kept` (index of the
        example).
Examples:
    >>> metric = evaluate.load("self_rouge")
    >>> round(metric.compute(predictions=[["Thanks!", "thanks!", "Thanks!"]])["normalised"], 4)
    1.0
"""

_CITATION = """\
@inproceedings{zhang-etal-2021-dataset,
    title = "A Dataset and Baselines for Multilingual Reply Suggestion",
    author = "Zhang, Mozhi and Wang, Wei and Deb, Budhaditya and Zheng, Guoqing and Shokouhi, Milad and
      Awadallah, Ahmed Hassan",
    booktitle = "Proceedings of ACL-IJCNLP 2021",
    year = "2021",
}
"""


class SelfRouge(Suggestions, evaluate.Metric):
    """Adapter of `mrs_metrics.similarity` to `evaluate`."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=datasets.Features({"predictions": datasets.Sequence(datasets.Value("string"))}),
            reference_urls=["https://arxiv.org/abs/2106.02017", "https://arxiv.org/abs/1802.01886"],
        )

    def _compute(
        self,
        predictions: list[list[str]],
        language: str = "en",
        interval: bool = False,
        per_example: bool = False,
        sentences: str = "no",
        punkt: str | None = None,
    ) -> dict[str, object]:
        scores = score_similarity(predictions, language, get_tokenizer(language, sentences, punkt))
        result: dict[str, object] = {**aggregate(scores), "skipped": scores.skipped, "signature": scores.signature}
        if interval:
            result["interval"] = list(bootstrap_interval(scores.normalised))
        if per_example:
            result["per_example"] = {
                "self_rouge": scores.weighted.tolist(),
                "normalised": scores.normalised.tolist(),
                "kept": scores.kept.tolist(),
            }
        return result
