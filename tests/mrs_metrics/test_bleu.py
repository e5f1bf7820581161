"""BLEU of suggestions: values from elsewhere, agreement with sacreBLEU itself, the choice, and properties."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sacrebleu = pytest.importorskip("sacrebleu", reason="needs sacrebleu")

from mrs_metrics.bleu import (  # noqa: E402
    CHOICES,
    aggregate,
    bleu_corpus,
    default_tokenizer,
    score_suggestions,
)
from mrs_metrics.corpus import jackknife_interval  # noqa: E402
from tests.cases import cases  # noqa: E402
from tests.mrs_metrics.modules import golden  # noqa: E402

GOLDEN: dict[str, Any] = golden("reply_bleu")
PREDICTIONS, REFERENCES = GOLDEN["corpora"]["predictions"], GOLDEN["corpora"]["references"]

text = st.one_of(
    st.lists(st.sampled_from(["yes", "no", "Yes", "see", "you", ".", "!", ""]), max_size=7).map(" ".join),
    st.text(max_size=30),
)
example = st.tuples(st.lists(text, max_size=3), text)


@pytest.mark.parametrize("case", GOLDEN["sentences"], ids=lambda case: f"{case['origin']}: {case['suggestion']}")
def test_a_sentence(case: dict[str, Any]) -> None:
    scores = score_suggestions([[case["suggestion"]]], [case["reference"]])
    assert scores.sentence.tolist() == pytest.approx([case["bleu"]], abs=1e-9)


@pytest.mark.parametrize("case", GOLDEN["corpora"]["cases"], ids=lambda case: case["chosen"])
def test_a_corpus(case: dict[str, Any]) -> None:
    scores = score_suggestions(PREDICTIONS, REFERENCES, chosen=case["chosen"])
    assert scores.chosen.tolist() == case["indices"]
    assert aggregate(scores)["bleu"] == pytest.approx(case["bleu"], abs=1e-9)


@pytest.mark.parametrize("language", ["en", "es", "de", "fr", "ru"])
def test_the_corpus_score_is_sacrebleu_s_on_real_replies(shared_data: Path, language: str) -> None:
    lines = (shared_data / "golden" / "rouge" / f"{language}.tsv").read_text(encoding="utf-8").strip("\n").split("\n")
    rows = [row for row in (line.split("\t") for line in lines) if len(row) == 5 and row[1].strip()]
    predictions, references = [row[2:] for row in rows], [row[1] for row in rows]
    for chosen in CHOICES:
        scores = score_suggestions(predictions, references, language, chosen)
        hypotheses = [predictions[i][j] for i, j in zip(scores.kept, scores.chosen, strict=True)]
        official = sacrebleu.corpus_bleu(hypotheses, [[references[i] for i in scores.kept]])
        found = aggregate(scores)
        assert found["bleu"] == pytest.approx(official.score)
        assert (found["brevity_penalty"], found["length_ratio"]) == pytest.approx((official.bp, official.ratio))
        assert found["n"] + sum(scores.skipped.values()) == len(rows)
    best, first = (score_suggestions(predictions, references, language, chosen) for chosen in ("best", "first"))
    assert np.all(best.sentence >= first.sentence)
    assert aggregate(best)["sentence_bleu"] > aggregate(first)["sentence_bleu"]


def test_best_rouge_is_the_one_that_mrs_would_take() -> None:
    # Weighted ROUGE lower-cases, BLEU does not: the first is ROUGE's choice, the second BLEU's.
    predictions, references = [["NO I DO NOT KNOW", "no i do"], ["x"]], ["no i do not know", "..."]
    by_bleu = score_suggestions(predictions, references)
    by_rouge = score_suggestions(predictions, references, chosen="best_rouge")
    assert (by_bleu.chosen.tolist(), by_rouge.chosen.tolist()) == ([1, 0], [0])
    assert by_rouge.skipped == {"reference_empty": 1, "reference_too_long": 0}
    assert by_rouge.kept.tolist() == [0]
    assert by_rouge.sentence.tolist() == [0]


def test_empty_suggestions_and_references_are_counted() -> None:
    scores = score_suggestions([["", "  "], [], ["yes"], ["yes"], ["yes"]], ["yes", "yes", "", " \n", "yes"])
    assert scores.kept.tolist() == [0, 1, 4]
    assert scores.chosen.tolist() == [0, -1, 0]
    assert scores.skipped == {"reference_empty": 2}
    assert (scores.empty, aggregate(scores)["empty"]) == (2, 2)
    # They make the corpus shorter than its references: 1 token to 3.
    assert aggregate(scores)["brevity_penalty"] == pytest.approx(np.exp(1 - 3))


def test_the_signature_holds_sacrebleu_s_own() -> None:
    scores = score_suggestions(PREDICTIONS, REFERENCES, "fr", "first", lowercase=True)
    metric = sacrebleu.BLEU(lowercase=True)
    metric.corpus_score(["a"], [["a"]])
    own = str(metric.get_signature()).replace("|", ",")
    head = "reply_bleu|chosen:first|nbest:3|lang:fr|sentence:eff:yes,smooth:exp"
    assert scores.signature.startswith(f"{head}|sacrebleu:{own}|version:")


def test_lowercase_and_tokenizer_are_used() -> None:
    assert score_suggestions([["YES"]], ["yes"], lowercase=True).sentence.tolist() == [100]
    scores = score_suggestions([["はいはい"]], ["はい"], "ja", tokenize="char")
    assert scores.statistics[0].tolist() == [4, 2, 2, 1, 0, 0, 4, 3, 2, 1]
    assert ",tok:char," in scores.signature


@pytest.mark.parametrize(
    ("language", "name"), [("en", "13a"), ("pt-BR", "13a"), ("ja", "ja-mecab"), ("ZH-Hant", "zh"), ("th", "char")]
)
def test_the_language_picks_the_tokenizer(language: str, name: str) -> None:
    assert default_tokenizer(language) == name


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from sacrebleu.tokenizers import tokenizer_ja_mecab

    monkeypatch.setattr(tokenizer_ja_mecab, "MeCab", None)
    with pytest.raises(ImportError, match=r"pip install 'sacrebleu\[ja\]', or use the tokenizer 'char'"):
        score_suggestions([["はい"]], ["はい"], "ja")
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics.bleu", None)
    with pytest.raises(ImportError, match="run pip install sacrebleu"):
        score_suggestions([["a"]], ["a"])


def test_japanese_by_mecab() -> None:
    pytest.importorskip("ipadic", reason="needs sacrebleu[ja]")
    scores = score_suggestions([["ありがとうございます"]], ["ありがとうございます。"], "ja")
    assert scores.statistics[0, :2].tolist() == [3, 4]  # ありがとう / ござい / ます, and the full stop
    assert ",tok:ja-mecab-" in scores.signature
    whole = score_suggestions([["ありがとう\0ございます"]], ["ありがとう\ud800ございます。"], "ja")
    assert whole.statistics[0, :2].tolist() == [3, 5]  # MeCab ends a text at NUL, and refuses lone surrogates


@pytest.mark.parametrize(
    ("predictions", "references", "options", "sentence"),
    cases(__file__, "test_bad_arguments_are_refused_with_one_sentence"),
)
def test_bad_arguments_are_refused_with_one_sentence(
    predictions: Any, references: Any, options: dict[str, str], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence) as caught:
        score_suggestions(predictions, references, **options)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def test_nothing_left_to_score() -> None:
    scores = score_suggestions([["a"]], [""])
    assert scores.statistics.shape == (0, 10)
    for call in (aggregate, bleu_corpus):
        with pytest.raises(ValueError, match=r"No examples are left to score; skipped: \{'reference_empty': 1\}"):
            call(scores)


def test_the_interval_holds_the_score_and_narrows_with_the_examples() -> None:
    generator = np.random.default_rng(0)
    words = np.array(["yes", "no", "see", "you", "at", "eight"])
    references = [" ".join(generator.choice(words, 8)) for _ in range(200)]
    predictions = [[" ".join(np.where(generator.random(8) < 0.7, row.split(), "x"))] for row in references]
    scores = score_suggestions(predictions, references)
    few = score_suggestions(predictions[:20], references[:20])
    low, high = jackknife_interval(bleu_corpus(scores))
    assert low < aggregate(scores)["bleu"] == bleu_corpus(scores).value < high
    narrow, wide = high - low, np.ptp(jackknife_interval(bleu_corpus(few)))
    assert wide > narrow


@settings(max_examples=150)
@given(st.lists(example, max_size=4), st.sampled_from(CHOICES))
def test_any_text_scores_between_0_and_100(examples: list[tuple[list[str], str]], chosen: str) -> None:
    predictions, references = [row[0] for row in examples], [row[1] for row in examples]
    scores = score_suggestions(predictions, references, chosen=chosen)
    assert len(scores.kept) + sum(scores.skipped.values()) == len(examples)
    assert np.all((scores.sentence >= 0) & (scores.sentence <= 100))
    found = aggregate(scores) if len(scores.kept) else {"bleu": 0.0, "sentence_bleu": 0.0}
    assert all(0 <= found[name] <= 100 for name in ("bleu", "sentence_bleu"))
