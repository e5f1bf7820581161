"""Statistics behind the XGLUE scores: one row of numbers per example, and the figures from a sum of rows.

The rules are in `mrs_metrics.xglue`, which is the module to call.

*Tags*. Chunks of a sentence follow the rules of CoNLL's `conlleval` as implemented by the package seqeval. Sources:
Tjong Kim Sang and De Meulder 2003, "Introduction to the CoNLL-2003 Shared Task" (precision, recall and F1 of entities,
right only where both ends and the kind are); seqeval in its default mode; all versions from 0.0.12 to 1.2.2 agree on
the tags of NER.

A tag is read as a mark, its first letter, and a kind, what follows its last hyphen. A chunk is a run of words of one
kind. B and S always begin one, E and S end one, words marked O are outside; an I that does not follow a chunk of its
kind begins one, so that IOB1 and IOB2 give the same entities if no two of one kind are adjacent.

UPOS tags have no marks, but the rules are applied to them too: `NOUN` has the mark N and the kind NOUN, so that two
nouns in a row are *one* chunk, right only if both are, while `SCONJ` and `SYM` begin with an S and are chunks of their
own. The precision of these chunks is what XGLUE publishes as POS accuracy. The rules are those of seqeval 0.0.12 (June
2019, the newest when XGLUE appeared); later releases refuse such tags or cut their first letter.

*Answers*. F1 and exact match follow MLQA's official script. Source: Lewis et al. 2020, "MLQA: Evaluating Cross-lingual
Extractive Question Answering" (section 5.2), and `mlqa_evaluation_v1.py` (facebookresearch/MLQA), which XGLUE's
official script calls. An answer is read so:

1. lower case;
2. without punctuation: Unicode's categories P, and the ASCII symbols ``$+<=>^`|~``;
3. articles of the language become a space. The official list for Vietnamese has words that are not articles. Arabic's
   is removed wherever its two letters occur, also inside a word: an anchor in the official pattern is misplaced;
4. tokens are separated by white space; for Chinese, each character from U+4E00 to U+9FA5 is one too.

F1 counts tokens, each as often as both have it; it is 0 if they have none in common, also for two texts that are both
read as empty, which match exactly. Of several right answers the best counts, for each figure separately.

*Pages*. nDCG is what XGLUE's official script takes from scikit-learn. Sources: Järvelin and Kekäläinen 2002, "Cumulated
Gain-Based Evaluation of IR Techniques"; McSherry and Najork 2008, "Computing Information Retrieval Performance Measures
Efficiently in the Presence of Tied Scores"; `ndcg_score` of scikit-learn with its defaults.

The gain of a page is its label, 0 to 4, itself (not 2^label - 1); the discount at rank r is 1 / log2(r + 1); all pages
count. Pages with equal predictions share the mean of their gains, which equals the mean over all orders of the tie:
if predictions are labels, most pages are tied. A query whose pages are all irrelevant scores 0.
"""

import math
import operator
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from mrs_metrics.xglue_tasks import Task, require_label

MAX_ORDER = 4
COLUMNS = {
    "tags": ("right", "tags", "correct", "predicted", "labelled"),
    "label": ("right",),
    "answer": ("f1", "exact"),
    "page": ("ndcg",),
    "text": (
        "tokens",
        "reference_tokens",
        *(f"{name}_{order}" for name in ("matches", "ngrams") for order in range(1, MAX_ORDER + 1)),
    ),
}
Rows = list[tuple[float, ...]]
Counted = tuple[Rows, dict[str, int]]
MLQA_LANGUAGES = ("ar", "de", "en", "es", "hi", "vi", "zh")
_WORDS = {
    "de": "ein eine einen einem eines einer der die das den dem des",
    "en": "a an the",
    "es": "un una unos unas el la los las",
    "vi": "của là cái chiếc những",
}
_ARTICLES = {code: re.compile(rf"\b(?:{'|'.join(words.split())})\b") for code, words in _WORDS.items()}
_ARTICLES["ar"] = re.compile("ال")
_HAN = re.compile("([\u4e00-\u9fa5])")
OUTSIDE = "O"


def count_examples(task: Task, predictions: Sequence[object], references: Sequence[object], language: str) -> Counted:
    """Return the row of each example and counts of anything unusual; for every kind of task but pages.

    Raises:
        ValueError: an entry has the wrong type, or the language has no rules.
        ImportError: texts need sacreBLEU.
    """
    if task.kind == "tags":
        return _tag_rows(task, predictions, references)
    if task.kind == "label":
        return _count_labels(task, predictions, references)
    if task.kind == "answer":
        return _count_answers(predictions, references, language)
    return _count_texts(task, predictions, references)


def count_queries(
    task: Task, predictions: Sequence[object], references: Sequence[object], queries: Sequence[str]
) -> tuple[Rows, list[int], dict[str, int]]:
    """Return the row of each query with two pages or more, the index of its first page, and counts of anything unusual.

    Raises:
        ValueError: a prediction is not a finite number, or a label is not one of the task's.
    """
    predicted = [_number(f"The relevance predicted for page {index}", value) for index, value in enumerate(predictions)]
    gains = [_number(f"Reference {index} of {task.name}", value) for index, value in enumerate(references)]
    for index, gain in enumerate(gains):
        require_label(task, f"{gain:g}", f"Reference {index}")
    rows: Rows = []
    kept = []
    notes = {"single_page": 0, "no_relevant_page": 0}
    starts = query_starts(queries)
    for begin, end in zip(starts, [*starts[1:], len(queries)], strict=True):
        if end - begin < 2:
            notes["single_page"] += 1
            continue
        notes["no_relevant_page"] += not any(gains[begin:end])
        rows.append((ndcg(predicted[begin:end], gains[begin:end]),))
        kept.append(begin)
    return rows, kept, notes


def figures(task: Task, sums: Sequence[float], n: int) -> dict[str, float]:
    """Return the figures of a task by name, 0 to 1, from the sums of its columns over n examples.

    0 / 0 is 0, such as the precision of a tagger that predicts no entity.
    """
    if task.kind == "tags":
        right, tags, correct, predicted, labelled = sums
        precision, recall = _share(correct, predicted), _share(correct, labelled)
        chunk = {"precision": precision, "recall": recall, "f1": _share(2 * correct, predicted + labelled)}
        if task.name == "NER":
            return chunk
        return {"accuracy": _share(right, tags), **{f"chunk_{name}": value for name, value in chunk.items()}}
    if task.kind == "text":
        tokens, reference_tokens, *counts = (int(value) for value in sums)
        score = import_sacrebleu().BLEU.compute_bleu(
            counts[:MAX_ORDER], counts[MAX_ORDER:], tokens, reference_tokens, smooth_method="exp"
        )
        return {"bleu": min(score.score / 100, 1.0), "brevity_penalty": score.bp}  # rounding may pass 1
    names = {"label": ("accuracy",), "answer": ("f1", "exact_match"), "page": ("ndcg",)}[task.kind]
    return {name: value / n for name, value in zip(names, sums, strict=True)}


def import_sacrebleu() -> ModuleType:
    """Return the package sacrebleu; ImportError if it is not installed."""
    try:
        import sacrebleu as package
    except ImportError as error:
        raise ImportError(
            "QG and NTG need the package sacrebleu, which is not installed: run pip install sacrebleu."
        ) from error
    return package


def _tag_rows(task: Task, predictions: Sequence[object], references: Sequence[object]) -> Counted:
    rows: Rows = []
    notes = {"padded": 0, "unknown": 0}
    for index, pair in enumerate(zip(predictions, references, strict=True)):
        ours, theirs = (_tags(index, tags) for tags in pair)
        for tag in theirs:
            require_label(task, tag, f"Each word of reference {index}")
        if len(ours) > len(theirs):
            raise ValueError(f"Sentence {index} has {len(theirs)} words, but {len(ours)} predicted tags.")
        notes["padded"] += len(theirs) - len(ours)
        notes["unknown"] += sum(tag not in task.labels for tag in ours)
        padded = [*ours, *[OUTSIDE] * (len(theirs) - len(ours))]  # as in the official script
        right = sum(map(operator.eq, padded, theirs))
        predicted, labelled = set(chunks(padded)), set(chunks(theirs))
        rows.append((right, len(theirs), len(predicted & labelled), len(predicted), len(labelled)))
    return rows, notes


def _tags(index: int, tags: object) -> Sequence[str]:
    if not _is_texts(tags) or not all(tags):
        raise ValueError(f"The tags of sentence {index} must be a list of non-empty texts, not {tags!r:.80}.")
    return tags


def _count_labels(task: Task, predictions: Sequence[object], references: Sequence[object]) -> Counted:
    rows: Rows = []
    for index, (ours, theirs) in enumerate(zip(predictions, references, strict=True)):
        if not isinstance(ours, str):
            raise ValueError(f"The label predicted for example {index} must be a text, not {ours!r:.80}.")
        require_label(task, theirs, f"Reference {index}")
        rows.append((float(ours == theirs),))
    return rows, {"unknown": sum(label not in task.labels for label in predictions)}


def _count_answers(predictions: Sequence[object], references: Sequence[object], language: str) -> Counted:
    rows: Rows = []
    for index, (ours, theirs) in enumerate(zip(predictions, references, strict=True)):
        if not (ours is None or isinstance(ours, str)):
            raise ValueError(f"The answer to question {index} must be a text, or None, not {ours!r:.80}.")
        if not _is_texts(theirs) or not theirs:
            raise ValueError(f"Question {index} must have a list of one or more right answers, not {theirs!r:.80}.")
        scored = score_answer(ours or "", theirs, language)  # also for None: it checks the language
        rows.append(scored if ours is not None else (0.0, 0.0))
    return rows, {"unanswered": sum(ours is None for ours in predictions)}


def _count_texts(task: Task, predictions: Sequence[object], references: Sequence[object]) -> Counted:
    bleu = import_sacrebleu().BLEU(lowercase=True)
    rows: Rows = []
    for index, (ours, theirs) in enumerate(zip(predictions, references, strict=True)):
        if not isinstance(ours, str) or not isinstance(theirs, str):
            raise ValueError(f"Prediction and reference {index} of {task.name} must be texts.")
        score = bleu.corpus_score([ours], [[theirs]])
        rows.append((score.sys_len, score.ref_len, *score.counts, *score.totals))
    return rows, {"empty": sum(not row[0] for row in rows)}


def _is_texts(value: object) -> TypeGuard[Sequence[str]]:
    """Whether it is a list of texts, and not one text."""
    return isinstance(value, Iterable) and not isinstance(value, str) and all(isinstance(text, str) for text in value)


def _number(what: str, value: object) -> float:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{what} must be a finite number, not {value!r:.80}.")
    return number


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def chunks(tags: Sequence[str]) -> list[tuple[str, int, int]]:
    """Return the chunks of a sentence of non-empty tags: kind, index of the first and of the last word.

    >>> chunks(["B-PER", "I-PER", "O", "I-LOC", "B-LOC"])
    [('PER', 0, 1), ('LOC', 3, 3), ('LOC', 4, 4)]
    >>> chunks(["DET", "NOUN", "NOUN", "SCONJ", "SCONJ"])
    [('DET', 0, 0), ('NOUN', 1, 2), ('SCONJ', 3, 3), ('SCONJ', 4, 4)]
    """
    found = []
    before, kind_before, begin = OUTSIDE, "", 0
    for index, tag in enumerate([*tags, OUTSIDE]):
        mark, kind = tag[0], tag.rsplit("-", 1)[-1]
        changed = kind != kind_before
        # The mark `.` of old parse files is outside, like O.
        if before in "ES" or (before in "BI" and mark in "BSO") or (before not in "O." and changed):
            found.append((kind_before, begin, index - 1))
        if mark in "BS" or (before in "ESO" and mark in "EI") or (mark not in "O." and changed):
            begin = index
        before, kind_before = mark, kind
    return found


def read_answer(text: str, language: str) -> list[str]:
    """Return the tokens of an answer as they are compared.

    Raises:
        ValueError: the language is not one of MLQA's.

    >>> read_answer("The U.S. Army", "en"), read_answer("约 1900年", "zh")
    (['us', 'army'], ['约', '1900', '年'])
    """
    if language not in MLQA_LANGUAGES:
        raise ValueError(f"MLQA has rules for {', '.join(MLQA_LANGUAGES)}, not for {language!r}.")
    bare = "".join(c for c in text.lower() if c not in string.punctuation and unicodedata.category(c)[0] != "P")
    if language in _ARTICLES:
        bare = _ARTICLES[language].sub(" ", bare)
    return (_HAN.sub(r" \1 ", bare) if language == "zh" else bare).split()


def score_answer(prediction: str, answers: Sequence[str], language: str) -> tuple[float, float]:
    """Return the F1 and the exact match (1 or 0) of a predicted answer, each against the right answer that is best.

    Raises:
        ValueError: the language is not one of MLQA's.

    >>> score_answer("in the year 1900", ["1900", "year 1900"], "en")
    (0.8, 0.0)
    """
    ours = read_answer(prediction, language)
    theirs = [read_answer(answer, language) for answer in answers]
    return max(_token_f1(ours, answer) for answer in theirs), float(ours in theirs)


def _token_f1(ours: list[str], theirs: list[str]) -> float:
    common = sum((Counter(ours) & Counter(theirs)).values())
    if not common:
        return 0.0
    precision, recall = common / len(ours), common / len(theirs)
    return 2 * precision * recall / (precision + recall)


def ndcg(predicted: ArrayLike, gains: ArrayLike) -> float:
    """Return the nDCG of the pages of one query, 0 to 1.

    Args:
        predicted: (n,) finite numbers, higher means more relevant.
        gains: (n,) labels, 0 or more.

    >>> ndcg([0.9, 0.1, 0.5], [3, 2, 0])
    0.9385574520455129
    >>> ndcg([1, 1], [4, 0]) == (1 + ndcg([0, 1], [4, 0])) / 2
    True
    """
    gains = np.asarray(gains, dtype=np.float64)
    discount = 1 / np.log2(np.arange(len(gains)) + 2)
    ideal = np.sort(gains)[::-1] @ discount
    if not ideal:
        return 0.0
    _, tie = np.unique(-np.asarray(predicted, dtype=np.float64), return_inverse=True)
    shared = np.bincount(tie, weights=gains) / np.bincount(tie)
    return min(float(shared[np.sort(tie)] @ discount / ideal), 1.0)  # rounding may pass 1


def query_starts(queries: Sequence[str]) -> list[int]:
    """Return the index of the first page of each query; pages of one query are consecutive.

    A query that occurs again after another one is a new query. An empty query includes the pages after it, whatever
    their query, as in the official script.

    >>> query_starts(["a", "a", "b", "a"])
    [0, 2, 3]
    """
    return [i for i in range(len(queries)) if i == 0 or (queries[i] != queries[i - 1] and queries[i - 1] != "")]
