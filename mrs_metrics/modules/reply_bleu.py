"""BLEU of reply suggestions, by sacreBLEU: corpus BLEU of each example's best suggestion, or of its first, and the mean
sentence BLEU of the same.
"""

import evaluate

from mrs_metrics.bleu import aggregate, bleu_corpus, score_suggestions
from mrs_metrics.corpus import jackknife_interval
from mrs_metrics.significance import interval_entries
from mrs_metrics.module import SuggestionsAndReferences

_CITATION = """\
@inproceedings{post-2018-call, title = "A Call for Clarity in Reporting {BLEU} Scores", author = "Post, Matt",
booktitle = "Proceedings of the Third Conference on Machine Translation: Research Papers", year = "2018"}
"""


class ReplyBleu(SuggestionsAndReferences, evaluate.Metric):
    """
    Args:
        predictions: for each example the list of its suggestions, best first.
        references: for each example the real reply, or a list of several.
        language: BCP-47 code, selects the tokenizer; default `en`.
        chosen: `best` (default) by sentence BLEU, `best_rouge` by weighted ROUGE as MRS chooses, or `first`.
        tokenize: one of sacreBLEU's tokenizers, in place of the language's own.
        lowercase: compare lower-cased texts; default False.
        interval: also return the 95 % interval (jackknife) of `bleu`; default False.
        per_example: also return the scores of each example; default False.
    Returns:
        n: examples scored.
        bleu: corpus BLEU, 0 to 100.
        sentence_bleu: mean of the sentence scores, 0 to 100.
        brevity_penalty, length_ratio: of the corpus.
        empty: chosen suggestions without a token.
        skipped: examples left out, by reason.
        signature: how the score was computed, with sacreBLEU's own signature inside; to be printed with it.
        per_example: on request, lists of one entry per scored example: `sentence_bleu`, `chosen` (index of the chosen
            suggestion, -1 for none) and `kept` (index of the example).
    Examples:
        >>> metric = evaluate.load("reply_bleu")
        >>> metric.compute(predictions=[["No.", "See you at eight then"]], references=["See you at eight then"])["bleu"]
        100.0
    """

    citation = _CITATION
    urls = ("https://aclanthology.org/W18-6319", "https://github.com/mjpost/sacrebleu")

    def _compute(
        self,
        predictions: list[list[str]],
        references: list[list[str]],
        language: str = "en",
        chosen: str = "best",
        tokenize: str | None = None,
        lowercase: bool = False,
        interval: bool = False,
        units: list[object] | None = None,
        per_example: bool = False,
    ) -> dict[str, object]:
        scores = score_suggestions(predictions, references, language, chosen, tokenize, lowercase)
        result: dict[str, object] = {**aggregate(scores), "skipped": scores.skipped, "signature": scores.signature}
        if interval:
            result |= interval_entries(jackknife_interval, bleu_corpus(scores), scores, units, len(predictions))
        if per_example:
            columns = {"sentence_bleu": scores.sentence, "chosen": scores.chosen, "kept": scores.kept}
            result["per_example"] = {name: column.tolist() for name, column in columns.items()}
        return result
