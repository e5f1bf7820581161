"""Checkpoints for text classification as scorers."""

import json
import math
import shutil
from pathlib import Path

import pytest
import torch

from mrs_suggest.common.errors import InputError
from mrs_suggest.services.scorers.classifier import ClassifierScorer
from mrs_suggest.services.scorers.opening import open_scorer
from tests.cases import cases
from tests.classifiers import write_classifier

TEXTS = [
    f"{word} number {number} of {number % 7} {'and on ' * number}" for number in range(40) for word in ("one", "two")
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_classifier(tmp_path_factory.mktemp("models") / "tiny", TEXTS)


def copied(folder: Path, target: Path, **changes: object) -> Path:
    """A copy with other values in its config."""
    shutil.copytree(folder, target)
    config = json.loads((target / "config.json").read_text())
    (target / "config.json").write_text(json.dumps({**config, **changes}))
    return target


def logits(folder: Path, text: str) -> list[float]:
    """Of one text alone, by transformers itself."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.no_grad():
        return model(**tokenizer([text], truncation=True, max_length=32, return_tensors="pt")).logits[0].tolist()


def test_softmax_of_the_toxic_label(folder: Path) -> None:
    scorer = ClassifierScorer(str(folder), batch_size=3)
    found = scorer.score(TEXTS, "es")
    assert max(found) > 0.8
    assert min(found) < 0.2
    for text, score in list(zip(TEXTS, found, strict=True))[::9]:
        clean, toxic = logits(folder, text)
        assert score == pytest.approx(math.exp(toxic) / (math.exp(clean) + math.exp(toxic)), abs=1e-5)
    assert scorer.score([], "es") == []
    assert scorer.languages() is None
    assert scorer.at_once == 96


def test_sigmoid_where_a_text_has_several_labels(folder: Path, tmp_path: Path) -> None:
    names = {"0": "obscene", "1": "Toxic"}
    model = copied(folder, tmp_path / "m", problem_type="multi_label_classification", id2label=names)
    found = ClassifierScorer(str(model)).score(TEXTS[:5], "en")
    for text, score in zip(TEXTS[:5], found, strict=True):
        assert score == pytest.approx(1 / (1 + math.exp(-logits(folder, text)[1])), abs=1e-5)
    other = ClassifierScorer(str(model), label="obscene").score(TEXTS[:1], "en")
    assert other == pytest.approx([1 / (1 + math.exp(-logits(folder, TEXTS[0])[0]))], abs=1e-5)


def test_without_a_problem_type_several_labels_are_softmax_and_one_is_sigmoid(folder: Path, tmp_path: Path) -> None:
    plain = copied(folder, tmp_path / "two", problem_type=None)
    assert ClassifierScorer(str(plain)).score(TEXTS[:3], "en") == ClassifierScorer(str(folder)).score(TEXTS[:3], "en")
    one = write_classifier(tmp_path / "one", TEXTS, labels=["toxicity"], problem_type=None)
    (score,) = ClassifierScorer(str(one)).score(TEXTS[:1], "en")
    assert score == pytest.approx(1 / (1 + math.exp(-logits(one, TEXTS[0])[0])), abs=1e-5)


def test_the_version_is_that_of_the_files_and_the_label(folder: Path, tmp_path: Path) -> None:
    facts = ClassifierScorer(str(folder)).facts
    copy = copied(folder, tmp_path / "tiny")
    (copy / "config.json").write_bytes((folder / "config.json").read_bytes())
    (copy / "README.md").write_text("---\nlicense: mit\n---\n# Tiny\n")
    again = ClassifierScorer(str(copy)).facts
    assert (again.name, again.version, again.licence) == ("tiny", facts.version, "mit")
    assert ClassifierScorer(str(copy), label="neutral").facts.version != facts.version
    changed = write_classifier(tmp_path / "other", TEXTS, seed=3)
    assert ClassifierScorer(str(changed)).facts.version != facts.version


BAD = cases(__file__, "BAD")


@pytest.mark.parametrize(("changes", "problem"), BAD.values(), ids=BAD)
def test_bad_checkpoints_are_one_sentence(folder: Path, tmp_path: Path, changes: dict, problem: str) -> None:
    model = copied(folder, tmp_path / "m", **changes)
    with pytest.raises(InputError, match=problem) as caught:
        open_scorer(str(model))
    assert str(caught.value).startswith(f"--toxicity {model}: ")


def test_a_missing_label_or_head_and_pickled_weights_are_refused(folder: Path, tmp_path: Path) -> None:
    from mrs_suggest.models.retrieval.tiny import build_tiny

    encoder = build_tiny([*TEXTS, *TEXTS], tmp_path / "encoder", seed=1, vocabulary=200)
    config = json.loads((encoder / "config.json").read_text())
    (encoder / "config.json").write_text(json.dumps({**config, "id2label": {"0": "ok", "1": "toxic"}}))
    with pytest.raises(InputError, match=r"lacks the weights classifier\.bias, so it is not a trained classifier"):
        open_scorer(str(encoder), option="--toxicity-english")
    pickled = copied(folder, tmp_path / "pickled")
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    with pytest.raises(InputError, match="only safetensors are loaded"):
        open_scorer(str(pickled))
    with pytest.raises(InputError, match="has no label 'LABEL_1'; its labels are 'neutral', 'toxic'"):
        open_scorer(str(folder), label="LABEL_1")


@pytest.mark.parametrize("name", ["nowhere", "toxic-bert", "words-", "./a/b"])
def test_unknown_scorers(name: str) -> None:
    with pytest.raises(InputError, match=rf"--toxicity {name}: unknown scorer; pass `words`"):
        open_scorer(name)


def test_positions_that_begin_after_the_padding(tmp_path: Path) -> None:
    """As in XLM-R: of 34 positions, two are not for tokens, and texts are cut at 32."""
    from transformers import XLMRobertaConfig, XLMRobertaForSequenceClassification

    from mrs_suggest.models.retrieval.tiny import train_tokenizer, write_checkpoint

    tokenizer = train_tokenizer([*TEXTS, *TEXTS], 200)
    config = XLMRobertaConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=34, pad_token_id=1, id2label={0: "ok", 1: "hate"},
    )  # fmt: skip
    model = write_checkpoint(XLMRobertaForSequenceClassification(config), tokenizer, tmp_path / "m")
    long, longer = ClassifierScorer(str(model)).score(["one " * 60, "one " * 90], "en")
    assert long == longer


LOAD = """
import sys
from mrs_suggest.services.scorers.opening import open_scorer
scorer = open_scorer(sys.argv[1])
print(scorer.facts.name, scorer.facts.version, scorer.facts.licence, *scorer.score(["one number"], "en"))
"""


def test_from_the_hub_by_its_commit(folder: Path, hub, hub_client, tmp_path: Path) -> None:
    source = copied(folder, tmp_path / "source")
    (source / "README.md").write_text("---\nlicense: mit\n---\n# Tiny\n")
    (source / "pytorch_model.bin").write_bytes(b"not to be loaded")
    hub_client(
        "import sys; from huggingface_hub import HfApi; HfApi().create_repo('org/tiny'); "
        "HfApi().upload_folder(repo_id='org/tiny', folder_path=sys.argv[1])",
        source,
    )
    commit = hub.repo("model", "org/tiny").sha()
    name, version, _, label, licence, score = hub_client(LOAD, "org/tiny@main", home="other").stdout.split()
    assert (name, version, label, licence) == ("org/tiny", f"{commit},", "toxic", "mit")
    assert float(score) == pytest.approx(ClassifierScorer(str(folder)).score(["one number"], "en")[0], abs=1e-5)
    assert not list((tmp_path / "other").rglob("pytorch_model.bin"))
