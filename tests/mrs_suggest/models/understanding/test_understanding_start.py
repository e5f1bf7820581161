"""Models for understanding tasks: order of the labels, which heads are kept, several heads, adapters, refusals."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModel, BertForSequenceClassification, MarianConfig, pipeline

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.adapters import add_lora, load_adapter, merge_lora, save_adapter
from mrs_suggest.models.understanding.text_rows import (
    ANSWER,
    LABEL,
    PAGE,
    TAGS,
    RowCollator,
    logits_of,
    pair_rows,
    say,
    understanding_loss,
)
from mrs_suggest.models.understanding.understanding_start import (
    Head,
    UnderstandingParts,
    build_understanding,
    has_head,
    load_understanding,
)

XNLI = Head(LABEL, ("neutral", "contradiction", "entailment"))
HEADS = {"XNLI": XNLI, "POS": Head(TAGS, ("NOUN", "VERB")), "MLQA": Head(ANSWER), "WPR": Head(PAGE, tuple("01234"))}
PAIRS = [("a b c", "d"), ("e", "f g h i j k"), ("l m", "n o p")]


def weights(parts: UnderstandingParts) -> dict[str, torch.Tensor]:
    return parts.model.state_dict()


def scores(parts: UnderstandingParts, task: str | None = None) -> list[list[float]]:
    rows = pair_rows(parts.tokenizer, PAIRS, [None] * len(PAIRS), 32)
    parts.model.eval()
    return [one.scores.tolist() for one in say(parts.model, RowCollator(parts.tokenizer, task), rows, 2, LABEL)]


def test_a_head_of_the_same_labels_keeps_its_order(checkpoint: Path, tmp_path: Path) -> None:
    """A checkpoint from elsewhere, whose labels are in another order than the task's."""
    order = {0: "entailment", 1: "neutral", 2: "contradiction"}
    torch.manual_seed(5)
    model: Any = BertForSequenceClassification.from_pretrained(checkpoint, id2label=order)
    build_understanding(str(checkpoint), heads={"XNLI": XNLI}).tokenizer.save_pretrained(tmp_path)
    model.save_pretrained(tmp_path)
    parts = build_understanding(str(tmp_path), heads={"XNLI": XNLI}, seed=9)
    assert parts.heads["XNLI"].labels == tuple(order.values())
    assert torch.equal(weights(parts)["classifier.weight"], model.classifier.weight)
    assert has_head(str(tmp_path), "XNLI", XNLI)
    other = Head(LABEL, ("a", "b", "c"))
    fresh = build_understanding(str(tmp_path), heads={"NC": other}, seed=9)
    assert fresh.heads["NC"] == other
    assert not torch.equal(weights(fresh)["classifier.weight"], model.classifier.weight)
    assert not has_head(str(tmp_path), "NC", other)


def test_a_head_of_another_task_is_not_kept_though_it_has_the_same_shape(checkpoint: Path, tmp_path: Path) -> None:
    two = Head(LABEL, ("0", "1"))
    first = build_understanding(str(checkpoint), heads={"PAWSX": two}, seed=1)
    first.model.classifier.weight.data += 1  # type: ignore[union-attr, operator]
    first.save(tmp_path / "pawsx")
    same = build_understanding(str(tmp_path / "pawsx"), heads={"PAWSX": two}, seed=2)
    assert torch.equal(weights(same)["classifier.weight"], weights(first)["classifier.weight"])
    other = build_understanding(str(tmp_path / "pawsx"), heads={"QAM": two}, seed=2)
    assert float(weights(other)["classifier.weight"].abs().max()) < 0.5
    body = [name for name in weights(first) if name.startswith("bert.")]
    assert all(torch.equal(weights(first)[name], weights(other)[name]) for name in body)
    answer = build_understanding(str(tmp_path / "pawsx"), heads={"MLQA": Head(ANSWER)})
    assert answer.model.qa_outputs.out_features == 2  # type: ignore[union-attr]


def test_several_heads_share_one_body(checkpoint: Path, tmp_path: Path) -> None:
    parts = build_understanding(str(checkpoint), heads=HEADS, shared=True, seed=1)
    parts.save(tmp_path / "model")
    loaded = load_understanding(tmp_path / "model")
    assert loaded.shared
    assert loaded.heads == HEADS
    same = [pytest.approx(row, abs=1e-7) for row in scores(parts, "XNLI")]
    assert scores(loaded, "XNLI") == same
    assert len(scores(loaded, "WPR")[0]) == 5
    assert parts.model.config.dropout == parts.model.config.encoder.hidden_dropout_prob == 0.1
    assert type(AutoModel.from_pretrained(tmp_path / "model")).__name__ == "SharedBodyModel"
    kept = {"XNLI": XNLI, "QAM": Head(LABEL, ("0", "1"))}
    fewer = build_understanding(str(tmp_path / "model"), heads=kept, shared=True, seed=2)
    assert scores(fewer, "XNLI") == same, "the head of the same task is kept"
    assert len(scores(fewer, "QAM")[0]) == 2
    with pytest.raises(InputError, match="has a head for each of MLQA, POS, WPR, XNLI; pass --mode multitask"):
        build_understanding(str(tmp_path / "model"), heads={"XNLI": XNLI})


def test_a_pipeline_of_the_library_gives_the_labels(checkpoint: Path, tmp_path: Path) -> None:
    parts = build_understanding(str(checkpoint), heads={"XNLI": XNLI}, seed=1)
    parts.save(tmp_path)
    found = pipeline("text-classification", str(tmp_path), top_k=None)({"text": "a b c", "text_pair": "d"})
    shares = torch.tensor(scores(parts)[0]).softmax(-1).tolist()
    assert {one["label"]: one["score"] for one in found} == pytest.approx(dict(zip(XNLI.labels, shares, strict=True)))


@pytest.mark.parametrize("shared", [False, True])
def test_adapters_come_back_with_the_head(checkpoint: Path, tmp_path: Path, shared: bool) -> None:
    parts = build_understanding(str(checkpoint), heads={"XNLI": XNLI}, shared=shared, seed=4)
    add_lora(parts.model, rank=2, seed=4)
    for name, parameter in parts.model.named_parameters():
        if parameter.requires_grad:
            assert "lora" in name or name.startswith(("heads.", "classifier.", "bert.pooler."))
            parameter.data += 0.1
    save_adapter(parts.model, tmp_path / "adapter", str(checkpoint), None, 4)
    merge_lora(parts.model)
    loaded: Any = load_adapter(tmp_path / "adapter")
    task = "XNLI" if shared else None
    assert torch.allclose(
        torch.tensor(scores(UnderstandingParts(loaded, parts.tokenizer), task)), torch.tensor(scores(parts, task))
    )
    record = json.loads((tmp_path / "adapter" / "adapter.json").read_text(encoding="utf-8"))
    (tmp_path / "adapter" / "adapter.json").write_text(json.dumps({**record, "heads": {"XNLI": {"kind": "song"}}}))
    with pytest.raises(InputError, match="expected heads with a kind and labels"):
        load_adapter(tmp_path / "adapter")


def test_the_loss_is_a_mean_over_what_is_labelled(checkpoint: Path) -> None:
    logits = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(1))
    labels = torch.tensor([[1, -100, 2], [-100, -100, 3]])
    shares = logits.double().log_softmax(-1)
    expected = -(shares[0, 0, 1] + shares[0, 2, 2] + shares[1, 2, 3]) / 3
    assert float(understanding_loss(logits, labels)) == pytest.approx(float(expected), abs=1e-6)
    assert float(understanding_loss(logits, labels, 6)) == pytest.approx(float(expected) / 2, abs=1e-6)
    ends = {"start_logits": logits[:, 0], "end_logits": logits[:, 1]}
    mask = torch.tensor([[1, 1, 1, 0], [1, 1, 1, 1]])
    both = logits.double()[:, :2, :3].log_softmax(-1)  # the fourth token of the first row is padding
    spans = torch.tensor([[0, 2], [-100, -100]])
    expected = -(both[0, 0, 0] + both[0, 1, 2]) / 2
    assert float(understanding_loss(logits_of(ends, mask), spans)) == pytest.approx(float(expected), abs=1e-6)


def test_starts_that_do_not_fit_are_refused(checkpoint: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--max_tokens: expected 16 to 128, which the encoder reads, found 9"):
        build_understanding(str(checkpoint), heads={"XNLI": XNLI}, max_tokens=9)
    with pytest.raises(InputError, match="not a model for understanding tasks"):
        load_understanding(checkpoint)
    MarianConfig(vocab_size=9).save_pretrained(tmp_path / "marian")
    with pytest.raises(InputError, match=r"is not an encoder \(marian\)"):
        build_understanding(str(tmp_path / "marian"), heads={"XNLI": XNLI})
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.json").write_text('{"model_type": "clip_text_model"}')
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / "other" / name).write_bytes((checkpoint / name).read_bytes())
    with pytest.raises(InputError, match=r"transformers has no head of the kind TokenClassification for clip_text"):
        build_understanding(str(tmp_path / "other"), heads={"POS": HEADS["POS"]})
