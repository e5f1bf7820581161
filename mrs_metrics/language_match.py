"""Wrong language: the share of suggestions that are not in the language of their message.

Source: Zhang et al. 2021 (MRS), section 5.2: a generation model trained on English alone answers messages of every
language in English. The paper only gives its ROUGE, near 0, which bad replies can have too; the counting rules are
ours.

1. The language of a suggestion is what an identifier finds for it alone, without the message.
2. `too_short`: a text with fewer than 6 letters (Unicode L*) is not identified; digits and emoji are not letters.
   Chosen on replies of the ChatterBot corpus: lid.176.ftz is often wrong about shorter ones (not in Japanese).
3. `undecided`: the identifier's probability is .7 or less, or it says `und`. MRS, section 2, keeps the best label of a
   message and its reply only above .7.
4. All others are decided: `wrong` where the main subtags differ (`pt` and `pt-BR` are the same language), else right.
   Neither the too short nor the undecided ones count as wrong, or as right.

Pass the identifier's own codes: `nb` for Norwegian would make all suggestions wrong if the identifier says `no`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mrs_metrics.interval import Interval
from mrs_metrics.signature import check_suggestions, signature
from mrs_metrics.significance import Units, ratio_interval, unit_sums

# Texts -> for each its language code (`und` for none) and its probability, 0 to 1.
Identify = Callable[[list[str]], Sequence[tuple[str, float]]]

UNDECIDED = "und"
THRESHOLD = 0.7  # MRS, section 2
MIN_LETTERS = 6  # chosen here, see above
_FASTTEXT_MAGIC = (793712314).to_bytes(4, "little")
_MODEL_PAGE = "https://fasttext.cc/docs/en/language-identification.html"


@dataclass(frozen=True, eq=False)
class LanguageScores:
    """Verdicts on the m suggestions of all examples, in their order; statistics stay apart from their aggregation.

    Attributes:
        example: (m,) index of the suggestion's example.
        identified: m language codes, `und` where the suggestion is too short or undecided.
        wrong, undecided, too_short: (m,) flags; at most one of them is true.
        empty: suggestions without a visible character; they are among the too short.
    """

    example: NDArray[np.int64]
    identified: tuple[str, ...]
    wrong: NDArray[np.bool_]
    undecided: NDArray[np.bool_]
    too_short: NDArray[np.bool_]
    empty: int
    signature: str


def score_languages(
    predictions: Sequence[Sequence[str]],
    languages: str | Sequence[str],
    identify: Identify,
    threshold: float = THRESHOLD,
    min_letters: int = MIN_LETTERS,
    identifier: str | None = None,
) -> LanguageScores:
    """Compare the language of each suggestion with that of its message.

    Args:
        predictions: for each example its suggestions.
        languages: BCP-47 code of the messages: one for all, or one for each example.
        identify: texts -> (code, probability) of each. It is called once at most, with distinct texts.
        threshold: probability above which a verdict counts, 0 to below 1.
        min_letters: letters that a text needs to be identified.

    Raises:
        ValueError: an entry has the wrong type, lengths differ, an option is out of range, or the identifier does not
            answer each text with a code and a probability.

    >>> answers = {"See you tomorrow!": ("en", 0.97), "Bis morgen!": ("de", 0.99)}
    >>> scores = score_languages([[*answers, "Ok"]], "de", lambda asked: [answers[t] for t in asked])
    >>> scores.wrong.tolist(), scores.too_short.tolist()
    ([True, False, False], [False, False, True])
    """
    check_suggestions(predictions)
    if not 0 <= threshold < 1:
        raise ValueError(f"The threshold of the probability must be 0 or more and below 1, not {threshold}.")
    expected = _languages(languages, len(predictions))
    texts = [text for suggestions in predictions for text in suggestions]
    example = [index for index, suggestions in enumerate(predictions) for _ in suggestions]
    asked = list(dict.fromkeys(text for text in texts if sum(map(str.isalpha, text)) >= min_letters))
    found = dict(zip(asked, _checked_answers(identify(asked), asked), strict=True)) if asked else {}
    too_short = np.array([text not in found for text in texts], dtype=np.bool_)
    identified = []
    for text in texts:
        code, probability = found.get(text, (UNDECIDED, 0.0))
        identified.append(code if probability > threshold else UNDECIDED)
    undecided = np.array([code == UNDECIDED for code in identified], dtype=np.bool_) & ~too_short
    wrong = [
        code != UNDECIDED and _main(code) != _main(expected[index])
        for code, index in zip(identified, example, strict=True)
    ]
    codes = sorted(set(expected))
    named = (",".join(codes) if len(codes) <= 3 else f"{len(codes)} languages") or None
    counted = {"above": threshold, "letters": min_letters, "of": "decided"}
    return LanguageScores(
        example=np.array(example, dtype=np.int64),
        identified=tuple(identified),
        wrong=np.array(wrong, dtype=np.bool_),
        undecided=undecided,
        too_short=too_short,
        empty=sum(not text.strip() for text in texts),
        signature=signature("wrong_language", lang=named, **counted, identifier=identifier),
    )


def aggregate(scores: LanguageScores) -> dict[str, float]:
    """Count the verdicts.

    Returns:
        `n`, suggestions; `wrong`, their share among the decided ones; `any_wrong`, the share of messages with a wrong
        suggestion among those with a decided one; `undecided` and `too_short`, shares of all suggestions; and as ints
        `decided`, `messages` (with a decided suggestion) and `empty`.

    Raises:
        ValueError: no suggestion's language could be decided.

    >>> scores = score_languages([["Bis morgen dann!", "Gerne!"]], "en", lambda texts: [("de", 0.9)] * len(texts))
    >>> figures = aggregate(scores)
    >>> figures["wrong"], figures["decided"], figures["too_short"]
    (1.0, 1, 0.5)
    """
    wrong, decided = _by_message(scores)
    n = len(scores.wrong)
    return {
        "n": n,
        "wrong": int(wrong.sum()) / int(decided.sum()),
        "any_wrong": float((wrong > 0).mean()),
        "undecided": int(scores.undecided.sum()) / n,
        "too_short": int(scores.too_short.sum()) / n,
        "decided": int(decided.sum()),
        "messages": len(decided),
        "empty": scores.empty,
    }


def language_interval(scores: LanguageScores, units: Units = None) -> Interval:
    """Return the 95 % interval of `wrong`: by the studentised bootstrap, resampling examples with all their
    suggestions, or exact if all suggestions are alike or each example has one.

    Args:
        units: as for `mrs_metrics.significance.bootstrap_interval`, of all examples.

    Raises:
        ValueError: no suggestion's language could be decided.

    >>> scores = score_languages([["Bis morgen dann!"]] * 3, "de", lambda texts: [("de", 0.9)] * len(texts))
    >>> [round(end, 4) for end in language_interval(scores)]
    [0.0, 0.7076]
    """
    wrong, decided = _by_message(scores)
    told = np.unique(scores.example[~(scores.undecided | scores.too_short)])
    own = None if units is None else [units[place] for place in told]
    parts, wholes = (unit_sums(column, own)[1] for column in (wrong, decided))
    return ratio_interval(parts, wholes, shares=True)


def fasttext_identifier(model: str | Path) -> Identify:
    """Return an identifier that uses a fastText model with labels `__label__CODE`, such as lid.176.ftz.

    Only the kind of file is checked, and a truncated one may crash the process. If the whole project is installed,
    pass `identify` of `mrs_suggest.common.text.language_id.LanguageIdentifier`, which checks all of it.

    Raises:
        ValueError: there is no such file, or it is not a fastText model.
        ImportError: fasttext is not installed.

    Source: Joulin et al. 2016, "Bag of Tricks for Efficient Text Classification"; MRS, section 2, uses its models.
    """
    try:
        from fasttext.FastText import _FastText
    except ImportError as error:
        raise ImportError(
            "Identifying languages needs the package fasttext, which is not installed: run pip install fasttext, "
            "or pass a function `identify`."
        ) from error
    path = Path(model)
    if not path.is_file():
        raise ValueError(f"The language model {str(path)!r} does not exist; download lid.176.ftz from {_MODEL_PAGE}.")
    refusal = f"The language model {str(path)!r} is not a fastText classifier; lid.176.ftz is at {_MODEL_PAGE}."
    with path.open("rb") as file:
        if file.read(4) != _FASTTEXT_MAGIC:  # another file may crash the process
            raise ValueError(refusal)
    try:
        predictor = _FastText(model_path=str(path))
        # The answer for an empty line, which it also gives for every text without a known word or n-gram.
        unknown = _best(*(answers[0] for answers in predictor.predict([""])))
    except (ValueError, RuntimeError, MemoryError) as error:
        raise ValueError(refusal) from error

    def identify(texts: list[str]) -> list[tuple[str, float]]:
        # One text per line, without the end-of-line token; UTF-8 cannot encode lone surrogates.
        lines = [text.replace("\n", " ").replace("</s>", " ").encode("utf-8", "replace").decode() for text in texts]
        # Always a list: `predict(str)` fails under numpy 2.
        answers = [_best(*answer) for answer in zip(*predictor.predict(lines), strict=True)]
        return [(UNDECIDED, 0.0) if answer == unknown else answer for answer in answers]

    return identify


def _best(labels: Sequence[str], probabilities: Sequence[float]) -> tuple[str, float]:
    return (labels[0].removeprefix("__label__"), min(1.0, float(probabilities[0]))) if len(labels) else (UNDECIDED, 0.0)


def _languages(languages: str | Sequence[str], n: int) -> list[str]:
    codes = [languages] * n if isinstance(languages, str) else list(languages)
    if len(codes) != n:
        raise ValueError(f"Give one language for all or one for each of the {n} examples, not {len(codes)}.")
    for index, code in enumerate(codes):
        if not isinstance(code, str) or not code.strip() or "|" in code:
            raise ValueError(f"The language of example {index} must be a BCP-47 code such as 'en', not {code!r}.")
    return codes


def _checked_answers(answers: Sequence[tuple[str, float]], asked: list[str]) -> list[tuple[str, float]]:
    listed = list(answers)
    if len(listed) != len(asked):
        raise ValueError(f"The identifier must answer each text, but gave {len(listed)} answers to {len(asked)} texts.")
    for text, answer in zip(asked, listed, strict=True):
        try:
            code, probability = answer
            valid = isinstance(code, str) and 0 <= probability <= 1
        except (TypeError, ValueError):
            valid = False
        if not valid:
            raise ValueError(
                f"The identifier must answer with a code and a probability from 0 to 1, not {answer!r} to {text!r:.60}."
            )
    return [(code or UNDECIDED, float(probability)) for code, probability in listed]


def _by_message(scores: LanguageScores) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numbers of wrong and of decided suggestions of each message that has a decided one."""
    decided = np.bincount(scores.example, weights=~(scores.undecided | scores.too_short)).astype(np.int64)
    wrong = np.bincount(scores.example, weights=scores.wrong).astype(np.int64)
    if not decided.sum():
        raise ValueError(
            f"The language could be decided for none of the {len(scores.wrong)} suggestions: "
            f"{int(scores.too_short.sum())} are too short, {int(scores.undecided.sum())} undecided."
        )
    return wrong[decided > 0], decided[decided > 0]


def _main(code: str) -> str:
    return code.lower().replace("_", "-").split("-")[0]
