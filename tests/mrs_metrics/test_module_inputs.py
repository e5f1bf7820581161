"""What reaches the `evaluate` modules: several references, and what is no list of them."""

import pytest

from mrs_metrics.bleu import aggregate, score_suggestions
from mrs_metrics.spaces import metric_names
from tests.mrs_metrics.modules import load

PREDICTIONS = [["No.", "See you tomorrow then!"], ["I will not be there"]]
LONE = "Hallo \ud800!"
REFERENCES = [["Never.", "See you tomorrow then!"], ["I will be there", "I will not come", "No"]]


def test_mrs_rouge_takes_the_best_of_several_references() -> None:
    found = load("mrs_rouge").compute(predictions=PREDICTIONS, references=REFERENCES, per_example=True)
    assert found["per_example"]["weighted"][0] == pytest.approx(1)
    assert found["per_example"]["chosen"] == [1, 0]
    assert "|nbest:2|nrefs:var|multi:best|" in found["signature"]
    mixed = load("mrs_rouge").compute(predictions=PREDICTIONS, references=["No.", REFERENCES[1]])
    assert mixed["n"] == 2


def test_reply_bleu_is_sacrebleu_s_own_with_several_references() -> None:
    sacrebleu = pytest.importorskip("sacrebleu", reason="needs the extra [bleu]")
    chosen = [texts[-1] for texts in PREDICTIONS]
    streams = [["Never.", "I will be there"], ["See you tomorrow then!", "I will not come"], [None, "No"]]
    found = load("reply_bleu").compute(predictions=[[text] for text in chosen], references=REFERENCES)
    assert found["bleu"] == pytest.approx(sacrebleu.corpus_bleu(chosen, streams).score)
    assert "sacrebleu:nrefs:var," in found["signature"]
    padded = score_suggestions([["I will be there"]], [["", "I will be there"]])
    assert aggregate(padded)["bleu"] == pytest.approx(100)
    assert "nrefs:2," in padded.signature


def test_dist_n_chooses_by_several_references() -> None:
    found = load("dist_n").compute(predictions=PREDICTIONS[:1], references=REFERENCES[:1], chosen="best")
    assert found["counts"]["dist1"]["tokens"] == 5


def test_examples_are_added_one_by_one() -> None:
    metric = load("mrs_rouge")
    metric.add(prediction=["yes"], reference="yes")
    metric.add(prediction=["yes"], reference=["no", "yes"])
    with pytest.raises(ValueError, match="reference of example 0 must be a text or a list of texts, not None"):
        metric.add(prediction=["yes"], reference=None)
    with pytest.raises(ValueError, match="^The references of example 0 contain a lone surrogate"):
        metric.add(prediction=["ja"], reference=LONE)
    assert metric.compute()["n"] == 2


@pytest.mark.parametrize("name", metric_names())
def test_a_generator_of_predictions_is_refused_with_a_sentence(name: str) -> None:
    with pytest.raises(ValueError, match=r"The predictions must be a list .* can be read only once") as caught:
        load(name).compute(predictions=(row for row in PREDICTIONS), references=REFERENCES)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name", sorted({*metric_names()} - {"dist_n", "self_rouge", "wrong_language", "reply_perplexity"})
)
def test_missing_references_are_refused_with_a_sentence(name: str) -> None:
    with pytest.raises(ValueError, match=r"^The references are missing; [^\n]*\.$"):
        load(name).compute(predictions=PREDICTIONS, references=None)


def test_a_ranking_refuses_several_references() -> None:
    with pytest.raises(ValueError, match="a ranking cannot have several references"):
        load("response_ranking").compute(predictions=[[0.1, 0.2]], references=[[0, 1]])


ACCEPTED = [{"text": "ja", "weight": 1.0}]
BROKEN = {
    "mrs_rouge": {"predictions": [["ja"], [LONE]], "references": ["ja", "ja"]},
    "reply_bleu": {"predictions": [["ja"], ["ja"]], "references": ["ja", ["ja", LONE]]},
    "dist_n": {"predictions": [["ja"], [LONE]]},
    "self_rouge": {"predictions": [["ja"], ["ja", LONE]]},
    "simulated_clicks": {"predictions": [["ja"], ["ja"]], "references": ["ja", LONE]},
    "wrong_language": {"predictions": [["ja"], [LONE]]},
    "weighted_f1": {"predictions": [["ja"], ["ja"]], "references": [ACCEPTED, [{"text": LONE, "weight": 1.0}]]},
    "xglue_score": {"predictions": ["ja", LONE], "references": ["ja", "ja"], "task": "NTG"},
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_lone_surrogate_is_refused_with_its_example(name: str) -> None:
    sentence = r"^The (predictions|references) of example 1 contain a lone surrogate, .* text 'Hallo \\ud800!'\.$"
    with pytest.raises(ValueError, match=sentence):
        load(name).compute(**BROKEN[name])
