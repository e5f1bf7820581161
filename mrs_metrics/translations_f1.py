"""Weighted F1 of sets of translations: precision counts translations, recall learners' use of them.

Source: Mayhew et al. 2020, "Simultaneous Translation and Paraphrase for Language Education", section 2.3. Per prompt,
precision is unweighted, recall is the share of the accepted translations' weight, and the score is their harmonic mean;
the (macro) weighted F1 is its mean over all prompts of the data.

`rules="paper"`: differences in case, punctuation (Unicode category P) and repeated white space are ignored; texts are
compared in NFC. Accepted translations that become equal are one, with the sum of their weights. A prompt without
predictions scores 0, and its translations count as missed in the micro averages.

`rules="official"` gives what the task's official scorer prints:

1. It trims and lower-cases a line, then drops punctuation: inner white space stays, also when only a mark followed it
   at the end of the text; so does white space before an accepted translation's weight. No NFC.
2. If accepted translations become equal, only the weight of the last counts.
3. A prompt missing from the predictions, or with none, scores in the macro averages what the prompt before it scored
   (the scorer keeps that prompt's counts), and does not count in the micro averages. If it is the first prompt, the
   official scorer fails, and so do we.

Predictions for prompts that are not in the data are never scored; they are listed in `extra`.
"""

import math
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from mrs_metrics.signature import signature

TABLE_7_KS = (1, 5, 10)


class Translation(TypedDict):
    """One accepted translation, with the share of learners who gave it."""

    text: str
    weight: float


class Row(TypedDict):
    """A prompt with its accepted translations, as a row of the data set."""

    id: str
    translations: Sequence[Translation]


_MARKS = re.compile(r"[^\w\s]|_")  # all punctuation, and more
_CHUNK_TEXTS = 4096  # chosen: large enough for cheap passes, small enough for the processor's cache
_UNKNOWN, _NOT_ALONE, _DROPPED = -3, -2, -1  # what `read_texts` notes for a character instead of another one


@dataclass(frozen=True, eq=False)
class WeightedF1Scores:
    """Scores of the n prompts, one entry each; statistics stay apart from their aggregation.

    Attributes:
        ids: of the prompts, in the order of the data.
        counts: (n, 3) translations in both, only predicted, only accepted.
        weights: (n, 2) weight of the accepted translations that were predicted, and of those that were missed.
        precision, recall, weighted_recall, f1, weighted_f1: (n,) each 0 to 1.
        in_micro: (n,) whether the prompt is in the micro averages; false only for missing ones by the official rules.
        missing: ids of prompts without predictions.
        extra: ids of predictions for prompts that are not in the data, sorted.
    """

    ids: tuple[str, ...]
    counts: NDArray[np.int64]
    weights: NDArray[np.float64]
    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    weighted_recall: NDArray[np.float64]
    f1: NDArray[np.float64]
    weighted_f1: NDArray[np.float64]
    in_micro: NDArray[np.bool_]
    missing: tuple[str, ...]
    extra: tuple[str, ...]
    signature: str


def score_translations(
    rows: Iterable[Row], predictions: Mapping[str, Sequence[str]], rules: str = "paper"
) -> WeightedF1Scores:
    """Score the predicted translations of each prompt against the accepted ones.

    Args:
        rows: rows of the data: `id` and `translations`, a list of {text, weight}.
        predictions: id -> translations, in any order.
        rules: `paper` or `official`, see the module's docstring.

    Raises:
        ValueError: the rules are unknown, an id comes twice, a prompt has no accepted translation or an invalid weight,
            a prediction is not a list of texts, no prompt is given, or (official) the first one has no prediction.

    >>> accepted = [{"text": "Sim, claro.", "weight": 0.75}, {"text": "Sim!", "weight": 0.25}]
    >>> rows = [{"id": "a", "translations": accepted}]
    >>> scores = score_translations(rows, {"a": ["sim claro", "Claro"], "b": ["x"]})
    >>> scores.precision.tolist(), scores.weighted_recall.tolist(), scores.weighted_f1.tolist(), scores.extra
    ([0.5], [0.75], [0.6], ('b',))
    """
    read = _reader(rules)
    tally = Tally(rules)
    for row in rows:
        tally.add(row["id"], _accepted(row, rules), set(map(read, _predicted(predictions, row["id"]))))
    return tally.scores(predictions)


def aggregate(scores: WeightedF1Scores) -> dict[str, float]:
    """Average the scores: `precision`, `recall` and `weighted_recall` over all translations, and from these
    `micro_f1` and `weighted_micro_f1`; `macro_f1` and `weighted_macro_f1`, the task's main score, over the prompts.

    Returns:
        those seven, each 0 to 1, as the official scorer prints them, and three counts: `n`, the prompts, `missing`,
        those of them without predictions, and `extra`, the predicted prompts that are not in the data.

    >>> rows = [{"id": "a", "translations": [{"text": "sim", "weight": 1.0}]}]
    >>> aggregate(score_translations(rows, {"a": ["Sim."]}))["weighted_macro_f1"]
    1.0
    """
    both, predicted, accepted = scores.counts[scores.in_micro].sum(axis=0).tolist()
    found, missed = (_sum(column.tolist()) for column in scores.weights[scores.in_micro].T)
    precision, recall = _share(both, predicted), _share(both, accepted)
    weighted_recall = _share(found, missed)
    return {
        "n": len(scores.ids),
        "missing": len(scores.missing),
        "extra": len(scores.extra),
        "precision": precision,
        "recall": recall,
        "weighted_recall": weighted_recall,
        "micro_f1": _harmonic(precision, recall),
        "macro_f1": _sum(scores.f1) / len(scores.ids),
        "weighted_micro_f1": _harmonic(precision, weighted_recall),
        "weighted_macro_f1": _sum(scores.weighted_f1) / len(scores.ids),
    }


def oracle_top_k(rows: Iterable[Row], k: int | None) -> dict[str, list[str]]:
    """The predictions of an oracle: the k accepted translations of each prompt with the highest weights.

    Equal weights keep the order of the data; None takes all.

    Raises:
        ValueError: k is below 1.

    >>> oracle_top_k([{"id": "a", "translations": [{"text": "x", "weight": 0.4}, {"text": "y", "weight": 0.6}]}], 1)
    {'a': ['y']}
    """
    return {row["id"]: _top(row["translations"], k) for row in rows}


def oracle_curve(
    rows: Iterable[Row], ks: Sequence[int | None] = TABLE_7_KS, rules: str = "paper"
) -> dict[int | None, float]:
    """Weighted macro F1 of `oracle_top_k` for every k, as in Table 7; reads the rows once.

    Raises:
        ValueError: see `score_translations` and `oracle_top_k`.

    >>> rows = [{"id": "a", "translations": [{"text": "x", "weight": 0.5}, {"text": "y", "weight": 0.5}]}]
    >>> {k: round(score, 4) for k, score in oracle_curve(rows, (1, 2)).items()}
    {1: 0.6667, 2: 1.0}
    """
    read = _reader(rules)
    tallies = {k: Tally(rules) for k in ks}
    for row in rows:
        accepted = _accepted(row, rules)
        for k, tally in tallies.items():
            tally.add(row["id"], accepted, set(map(read, _top(row["translations"], k))))
    return {k: aggregate(tally.scores(()))["weighted_macro_f1"] for k, tally in tallies.items()}


def read_paper(text: str) -> str:
    """A text as the paper's rules compare it.

    >>> read_paper(" Está  clara, a explicac\u0327a\u0303o ? ")
    'está clara a explicação'
    """
    return " ".join(_without_punctuation(unicodedata.normalize("NFC", text.lower())).split())


def read_official(text: str, accepted: bool = False) -> str:
    """A text as the official scorer compares it.

    Args:
        accepted: it is an accepted translation, before a weight, so that its end is not trimmed.

    >>> read_official(" Está  clara? "), read_official("Clara ?"), read_official(" clara ", accepted=True)
    ('está  clara', 'clara ', 'clara ')
    """
    return _without_punctuation((text.lstrip() if accepted else text.strip()).lower())


def read_texts(texts: Sequence[str], rules: str = "paper", accepted: bool = False) -> list[str]:
    """The texts as `read_paper` or `read_official` return them, thousands together, which is many times faster.

    >>> read_texts([" Está  clara? ", "Oi!"])
    ['está clara', 'oi']
    """
    read = _reader(rules, accepted)
    paper = rules == "paper"
    table = np.full(sys.maxunicode + 1, _UNKNOWN, dtype=np.int32)
    found: list[str] = []
    for start in range(0, len(texts), _CHUNK_TEXTS):
        chunk = texts[start : start + _CHUNK_TEXTS]
        trimmed = chunk if paper else map(str.lstrip if accepted else str.strip, chunk)
        whole = _read_whole("\n".join(trimmed), len(chunk), table, paper)
        if whole is None:
            found += map(read, chunk)
        elif paper:
            while "  " in whole:
                whole = whole.replace("  ", " ")
            found += map(str.strip, whole.split("\n"))
        else:
            found += whole.split("\n")
    return found


def _read_whole(text: str, n_lines: int, table: NDArray[np.int32], paper: bool) -> str | None:
    """The lines, read character by character; None if that is not possible, or a line contains another line end.

    Args:
        table: character -> its replacement; filled in here as characters occur.
    """
    if text.count("\n") != n_lines - 1:
        return None
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    read = table[codes]
    if read.min(initial=0) == _UNKNOWN:
        seen = np.zeros(len(table), dtype=np.bool_)
        seen[codes] = True
        for code in np.flatnonzero(seen & (table == _UNKNOWN)).tolist():
            table[code] = _read_character(chr(code), paper)
        read = table[codes]
    if read.min(initial=0) == _NOT_ALONE:
        return None
    kept: bytes = read[read != _DROPPED].astype("<u4").tobytes()
    return kept.decode("utf-32-le", "surrogatepass")


def _read_character(character: str, paper: bool) -> int:
    """The code of a character's replacement, if that does not depend on its neighbours; else a value below 0."""
    lower = character.lower()
    if character == "Σ" or len(lower) > 1:  # a sigma's lower case depends on what follows
        return _NOT_ALONE
    category = unicodedata.category(lower)
    if paper and (
        category.startswith("M")
        or "\u1100" <= lower <= "\u11ff"
        or lower > "\uffff"
        or not unicodedata.is_normalized("NFC", lower)
    ):  # in NFC it may combine with the character before it, or change
        return _NOT_ALONE
    if category.startswith("P"):
        return _DROPPED
    return ord(" ") if paper and lower.isspace() and lower != "\n" else ord(lower)


def weighted_f1_signature(rules: str = "paper") -> str:
    """Return the signature of a weighted F1.

    `equal` says how the weights of equal translations are combined, `missing` how a prompt without predictions scores.

    >>> weighted_f1_signature().rsplit("|", 1)[0]
    'weighted_f1|rules:paper|case:lower|punct:no|norm:nfc|space:one|equal:sum|missing:0'
    """
    paper = {"norm": "nfc", "space": "one", "equal": "sum", "missing": "0"}
    official = {"norm": "none", "space": "kept", "equal": "last", "missing": "previous"}
    _reader(rules)
    return signature("weighted_f1", rules=rules, case="lower", punct=False, **(paper if rules == "paper" else official))


class Tally:
    """Counts, prompt by prompt: no text is kept, so that rows can be streamed. Raises as `score_translations`.

    Sums are exact (`math.fsum`), so that the order of the translations does not change a score.
    """

    def __init__(self, rules: str) -> None:
        self.rules = rules
        self.ids: dict[str, None] = {}
        self.counts: list[tuple[int, int, int]] = []
        self.weights: list[tuple[float, float]] = []
        self.in_micro: list[bool] = []
        self.missing: list[str] = []

    def add(self, prompt_id: str, accepted: dict[str, float], predicted: set[str]) -> None:
        """Count one prompt; the texts are as the rules read them."""
        if prompt_id in self.ids:
            raise ValueError(f"Each prompt id must occur only once, but {prompt_id!r} occurs again.")
        self.ids[prompt_id] = None
        if not predicted:
            self.missing.append(prompt_id)
        reused = self.rules == "official" and not predicted
        if reused and not self.counts:
            raise ValueError(f"The first prompt, {prompt_id!r}, has no prediction: the official scorer fails there.")
        self.in_micro.append(not reused)
        if reused:
            self.counts.append(self.counts[-1])
            self.weights.append(self.weights[-1])
            return
        found, missed = accepted.keys() & predicted, accepted.keys() - predicted
        self.counts.append((len(found), len(predicted) - len(found), len(missed)))
        self.weights.append((_sum(accepted[text] for text in found), _sum(accepted[text] for text in missed)))

    def scores(self, predicted_ids: Iterable[str]) -> WeightedF1Scores:
        """The scores of the prompts so far; `predicted_ids` are all ids with predictions, to find extra ones."""
        if not self.ids:
            raise ValueError("No prompts to score; update the scores with at least one.")
        precision = np.array([_share(both, only) for both, only, _ in self.counts])
        recall = np.array([_share(both, missed) for both, _, missed in self.counts])
        weighted_recall = np.array([_share(found, missed) for found, missed in self.weights])
        return WeightedF1Scores(
            ids=tuple(self.ids),
            counts=np.array(self.counts, dtype=np.int64),
            weights=np.array(self.weights, dtype=np.float64),
            precision=precision,
            recall=recall,
            weighted_recall=weighted_recall,
            f1=np.array([_harmonic(p, r) for p, r in zip(precision, recall, strict=True)]),
            weighted_f1=np.array([_harmonic(p, r) for p, r in zip(precision, weighted_recall, strict=True)]),
            in_micro=np.array(self.in_micro, dtype=np.bool_),
            missing=tuple(self.missing),
            extra=tuple(sorted(set(predicted_ids) - self.ids.keys())),
            signature=weighted_f1_signature(self.rules),
        )


def merge_equal(texts: Sequence[str], weights: Sequence[float], rules: str) -> dict[str, float]:
    """Accepted translations, read by the rules, with their weights; the rules combine the weights of equal ones."""
    accepted = dict(zip(texts, weights, strict=True))  # the last one's weight
    if rules == "paper" and len(accepted) < len(texts):
        parts: dict[str, list[float]] = {}
        for text, weight in zip(texts, weights, strict=True):
            parts.setdefault(text, []).append(weight)
        accepted = {text: math.fsum(several) for text, several in parts.items()}
    return accepted


def _accepted(row: Row, rules: str) -> dict[str, float]:
    read = _reader(rules, accepted=True)
    texts, weights = [], []
    for entry in row["translations"]:
        text, weight = entry["text"], entry["weight"]
        if not isinstance(text, str):
            raise ValueError(f"A translation must be a text, but prompt {row['id']!r} has {text!r:.80}.")
        if not isinstance(weight, (int, float, np.number)) or not 0 <= weight < float("inf"):
            raise ValueError(f"A weight must be finite and 0 or more, but prompt {row['id']!r} has {weight!r}.")
        texts.append(read(text))
        weights.append(float(weight))
    if not texts:
        raise ValueError(f"Prompt {row['id']!r} has no accepted translation; blind data cannot be scored.")
    return merge_equal(texts, weights, rules)


def _predicted(predictions: Mapping[str, Sequence[str]], prompt_id: str) -> Sequence[str]:
    texts = predictions.get(prompt_id, ())
    listed = isinstance(texts, Iterable) and not isinstance(texts, str)
    if not listed or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"The predictions of prompt {prompt_id!r} must be a list of texts, not {texts!r:.80}.")
    return texts


def _top(translations: Iterable[Translation], k: int | None) -> list[str]:
    if k is not None and k < 1:
        raise ValueError(f"The k of an oracle must be 1 or more, not {k}.")
    return [entry["text"] for entry in sorted(translations, key=lambda entry: -entry["weight"])[:k]]


_RULES: dict[str, Callable[[str], str]] = {"paper": read_paper, "official": read_official}


def _reader(rules: str, accepted: bool = False) -> Callable[[str], str]:
    """The rules' function that reads a text; ValueError if the rules are unknown."""
    if rules not in _RULES:
        raise ValueError(f"The rules of the metric must be one of {sorted(_RULES)}, not {rules!r}.")
    return partial(read_official, accepted=True) if accepted and rules == "official" else _RULES[rules]


def _without_punctuation(text: str) -> str:
    return _MARKS.sub(lambda mark: "" if unicodedata.category(mark[0]).startswith("P") else mark[0], text)


def _sum(numbers: Iterable[float]) -> float:
    """The exact sum, or the plain one if that fails (inf - inf, overflow)."""
    kept = list(numbers)
    try:
        return math.fsum(kept)
    except (ValueError, OverflowError):
        return float(sum(kept))


def _share(part: float, rest: float) -> float:
    return part / (part + rest) if part + rest else 0.0


def _harmonic(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
