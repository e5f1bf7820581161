"""Scores of the eleven XGLUE tasks, by the rules of the paper or of the official script.

The arithmetic of tags, answers and pages is in `mrs_metrics.xglue_statistics`. Sources: Liang et al. 2020, "XGLUE: A
New Benchmark Dataset for Cross-lingual Pre-training, Understanding and Generation", section 2 and Table 4;
`evaluation/xglue_evaluate.py` (microsoft/XGLUE), whose rules are these:

- NER: F1 of entities; POS: precision of chunks, which the paper calls accuracy. Missing tags at the end of a sentence
  count as O.
- NC, XNLI, PAWS-X, QADSM, QAM: accuracy; the predicted label must be exactly the text of the right one.
- MLQA: F1, and exact match. A question without an answer scores 0.
- WPR: nDCG, the mean over queries. A query with a single page is left out.
- QG, NTG: corpus BLEU by sacreBLEU: 13a, lower case, orders 1 to 4, smoothing `exp`.
- A task's score is the mean over its languages, with equal weights; see `average_scores`.

`rules="paper"` (the default) differs for POS alone: its score is the accuracy of tags that the paper names. Compare
published numbers with `rules="official"`; both figures are always given.

All scores are 0 to 1, as the script prints them since it divides BLEU and MLQA's F1 by 100; the paper prints 100 times
that. A predicted label or tag that the task does not have is wrong, and counted in `notes`; as a right label it is an
error, since the test files of the first release have no labels.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrs_metrics.corpus import Corpus, Figure, jackknife_interval
from mrs_metrics.interval import Interval
from mrs_metrics.signature import signature
from mrs_metrics.significance import Units, bootstrap_interval
from mrs_metrics.xglue_statistics import COLUMNS, count_examples, count_queries, figures, import_sacrebleu
from mrs_metrics.xglue_tasks import TASKS, get_task


@dataclass(frozen=True, eq=False)
class XglueScores:
    """Statistics of the n examples of one task in one language, separate from their aggregation.

    Attributes:
        columns: (k,) names of the statistics.
        statistics: (n, k) the counts behind the figures: tags `right`, `tags`, chunks `correct`, `predicted`,
            `labelled` of a sentence; `right` of a label; `f1` and `exact` of an answer; `ndcg` of a query; of a text
            its tokens, those of the reference, matches of the orders 1 to 4, n-grams of the orders 1 to 4.
        kept: (n,) index of the example in the input, of a query its first page.
        notes: counts of anything unusual: tags `padded`, labels or tags `unknown` to the task, questions
            `unanswered`, queries with a `single_page` (left out) or with `no_relevant_page` (score 0), `empty` texts.
        rules: `paper` or `official`.
    """

    task: str
    language: str
    columns: tuple[str, ...]
    statistics: NDArray[np.float64]
    kept: NDArray[np.int64]
    notes: dict[str, int]
    rules: str
    signature: str


def score_task(
    task: str,
    predictions: Sequence[object],
    references: Sequence[object],
    language: str = "en",
    queries: Sequence[str] | None = None,
    rules: str = "paper",
) -> XglueScores:
    """Compare predictions of one task in one language with the right answers.

    Args:
        task: its name, such as `NER` or `PAWS-X`.
        predictions: for each example its tags (NER, POS), its label, its answer or None (MLQA), a number that is higher
            for what is more relevant (WPR), or its text (QG, NTG).
        references: the same, but a list of right answers (MLQA), and a label 0 to 4 (WPR).
        language: code; selects the rules of MLQA, goes into the signature for the others.
        queries: the query of each page; WPR only. Pages of one query follow each other.
        rules: `paper` or `official`, see the module's docstring.

    Raises:
        ValueError: the task, language or rules are unknown, numbers of entries differ, an entry has the wrong type,
            or there is nothing to score.
        ImportError: QG and NTG need sacreBLEU.

    >>> scores = score_task("POS", [["DET", "NOUN", "VERB"]], [["DET", "NOUN", "NOUN"]])
    >>> scores.statistics.tolist(), scores.signature.split("|")[2:6]
    ([[2.0, 3.0, 1.0, 3.0, 2.0]], ['rules:paper', 'score:accuracy', 'lang:en', 'chunks:seqeval-0.0.12'])
    """
    known = get_task(task)
    line = xglue_signature(task, language, rules)
    if isinstance(predictions, str) or isinstance(references, str) or len(predictions) != len(references):
        raise ValueError(
            f"Predictions and references of {known.name} must be lists with one entry for each example, but there are "
            f"{len(predictions)} and {len(references)}."
        )
    if (queries is not None) != (known.kind == "page"):
        raise ValueError("The query of each page is needed for WPR, and for no other task.")
    if queries is not None:
        if len(queries) != len(references):
            raise ValueError(
                f"WPR needs the query of each page, but there are {len(queries)} for {len(references)} pages."
            )
        rows, kept, notes = count_queries(known, predictions, references, queries)
    else:
        rows, notes = count_examples(known, predictions, references, language)
        kept = list(range(len(rows)))
    if not rows:
        raise ValueError(f"There is nothing to score for {known.name} in {language!r}; the notes are {notes}.")
    return XglueScores(
        task=known.name,
        language=language,
        columns=COLUMNS[known.kind],
        statistics=np.array(rows, dtype=np.float64),
        kept=np.array(kept, dtype=np.int64),
        notes=notes,
        rules=rules,
        signature=line,
    )


def aggregate(scores: XglueScores) -> dict[str, float]:
    """Combine the statistics.

    Returns:
        `n` (an int), sentences, labels, questions, queries or texts scored; `score`, the task's main figure by its
        rules; and the figures by name: `f1`, `precision`, `recall` (NER); `accuracy`, `chunk_precision`,
        `chunk_recall`, `chunk_f1` (POS); `accuracy`; `f1`, `exact_match` (MLQA); `ndcg`; `bleu`, `brevity_penalty`.
        All 0 to 1.

    >>> found = aggregate(score_task("POS", [["DET", "NOUN", "VERB"]], [["DET", "NOUN", "NOUN"]]))
    >>> round(found["accuracy"], 4), round(found["chunk_precision"], 4), found["score"] == found["accuracy"]
    (0.6667, 0.3333, True)
    """
    task, n = TASKS[scores.task], len(scores.statistics)
    found = figures(task, scores.statistics.sum(axis=0).tolist(), n)
    return {"n": n, "score": found[task.score_by(scores.rules)], **found}


def score_interval(scores: XglueScores, units: Units = None) -> Interval:
    """Return the interval of the task's score, 0 to 1: exact for a label's accuracy, else by the jackknife.

    Args:
        units: (n,) what each scored example is of, such as its message. None: each is its own.

    >>> [round(end, 4) for end in score_interval(score_task("QAM", ["1", "0"], ["1", "0"]))]
    [0.1581, 1.0]
    """
    task = TASKS[scores.task]
    if task.kind == "label":
        return bootstrap_interval(scores.statistics[:, 0], units=units)
    name = task.score_by(scores.rules)

    def figure(rows: Sequence[Sequence[float]]) -> Figure:
        table = np.asarray(rows)
        return lambda weights: figures(task, (weights @ table).tolist(), int(weights.sum()))[name]

    return jackknife_interval(Corpus(scores.statistics.tolist(), figure), units)


def average_scores(scores: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    """Average scores as Table 4 does: over a task's languages, then over tasks.

    Args:
        scores: task -> language -> score, all on one scale.

    Returns:
        `tasks`: task -> mean over its languages (column AVG); `understanding` (AVG_U) and `generation` (AVG_G): means
        over the tasks of each group; `all`: mean over all tasks, the official script's last line; the three are None
        if none of their tasks is given. `missing`: task -> languages that are not given, all of them if the task is
        not. An average over a task in `missing` is not comparable with published ones.

    Raises:
        ValueError: a task or language is unknown, a score is not finite, or a task has no score.

    >>> averages = average_scores({"QADSM": {"de": 0.5, "en": 0.7, "fr": 0.6}, "NTG": {"en": 0.2}})
    >>> round(averages["understanding"], 4), averages["generation"], averages["missing"]["NTG"]
    (0.6, 0.2, ['de', 'es', 'fr', 'ru'])
    """
    given = {get_task(name): dict(by_language) for name, by_language in scores.items()}
    if len(given) != len(scores):
        raise ValueError(f"Each task may be given only once, but the names are {list(scores)}.")
    for task, by_language in given.items():
        known = set(by_language) <= set(task.languages)
        if not known or not by_language or not all(math.isfinite(score) for score in by_language.values()):
            raise ValueError(
                f"{task.name} needs a finite score for one or more of {', '.join(task.languages)}, not {by_language}."
            )
    means = {task: sum(by_language.values()) / len(by_language) for task, by_language in given.items()}
    absent = {task: [code for code in task.languages if code not in given.get(task, {})] for task in TASKS.values()}
    return {
        "tasks": {task.name: mean for task, mean in means.items()},
        "understanding": _mean([mean for task, mean in means.items() if not task.generation]),
        "generation": _mean([mean for task, mean in means.items() if task.generation]),
        "all": _mean(list(means.values())),
        "missing": {task.name: codes for task, codes in absent.items() if codes},
    }


def xglue_signature(task: str, language: str = "en", rules: str = "paper") -> str:
    """Return the signature of a score; for QG and NTG it includes sacreBLEU's own, joined by commas.

    Raises:
        ValueError: the task or the rules are unknown.
        ImportError: QG and NTG need sacreBLEU.

    >>> xglue_signature("WPR").rsplit("|", 1)[0].split("|lang:en|")[1]
    'gain:label|discount:log2|cut:no|ties:mean|alone:skipped'
    """
    known = get_task(task)
    fields: dict[str, object] = {}
    if known.kind == "tags":
        fields = {"chunks": "conll" if known.name == "NER" else "seqeval-0.0.12", "pad": "O"}
    elif known.kind == "answer":
        fields = {"norm": "mlqa-v1", "unanswered": 0}
    elif known.kind == "page":
        fields = {"gain": "label", "discount": "log2", "cut": False, "ties": "mean", "alone": "skipped"}
    elif known.kind == "text":
        version = import_sacrebleu().__version__
        fields = {"sacrebleu": f"nrefs:1,case:lc,eff:no,tok:13a,smooth:exp,version:{version}"}
    score = known.score_by(rules)
    return signature("xglue_score", task=known.name, rules=rules, score=score, lang=language, **fields)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
