"""The folder and the record of a run, and its curves."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import BertConfig, BertModel, TrainerState

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.retrieval.dual_encoder import build_dual_encoder, load_dual_encoder
from mrs_suggest.models.retrieval.routes import ROUTES, encoders
from mrs_suggest.models.retrieval.tiny import train_tokenizer
from mrs_suggest.models.saved.families import adapter_publication, publication
from mrs_suggest.training.record import RunFolder, last_checkpoint, require_best_weights, run_record
from mrs_suggest.training.reply.options import Source, TrainingPlan
from tests.cases import cases


def checkpoint(folder: Path, step: int, complete: bool = True) -> Path:
    """A checkpoint as the trainer leaves it; `trainer_state.json` is what it writes last."""
    path = folder / f"checkpoint-{step}"
    path.mkdir(parents=True)
    (path / "modules.json").write_text("[]")
    if complete:
        (path / "trainer_state.json").write_text("{}")
    return path


def test_a_new_folder_is_accepted_and_a_foreign_one_is_refused(tmp_path: Path) -> None:
    RunFolder(tmp_path / "new", False, None)
    (tmp_path / "note.txt").write_text("mine")
    for overwrite in (False, True):
        with pytest.raises(InputError, match="is not empty and does not hold a run"):
            RunFolder(tmp_path, overwrite, None)
    assert (tmp_path / "note.txt").read_text() == "mine"


def test_another_run_s_checkpoints_are_not_gone_on_with(tmp_path: Path) -> None:
    RunFolder(tmp_path, False, None).begin({"train": ["es"], "seed": 1})
    checkpoint(tmp_path, 5)
    run = RunFolder(tmp_path, False, "last")
    run.require_same({"train": ["es"], "seed": 1})
    with pytest.raises(InputError, match=r"started differently \(train \['es'\] before, \['de'\] now\)"):
        run.require_same({"train": ["de"], "seed": 1})


def test_a_run_that_was_cut_off_is_not_replaced_unasked(tmp_path: Path) -> None:
    checkpoint(tmp_path, 5)
    with pytest.raises(InputError, match=r"last to continue it, or --overwrite to start again\."):
        RunFolder(tmp_path, False, None)
    RunFolder(tmp_path, False, "last")
    RunFolder(tmp_path, True, "last")
    assert (tmp_path / "checkpoint-5").is_dir()


def test_a_finished_run_is_replaced_only_if_asked_and_then_as_a_whole(tmp_path: Path) -> None:
    """The new run may have fewer languages: an index of the old model would answer with the new model's vectors."""
    checkpoint(tmp_path, 5)
    (tmp_path / "run.json").write_text("{}")
    (tmp_path / "response_index" / "en").mkdir(parents=True)
    (tmp_path / "response_index" / "en" / "replies.json").write_text("{}")
    (tmp_path / "adapter").mkdir()
    (tmp_path / "predictions.en.tsv").write_text("m\tr\ts\n")
    (tmp_path / "tokenizer_config.json").write_text("{}")  # a configuration and a part of the tokenizer
    with pytest.raises(InputError, match=r"holds a finished run; choose another folder or pass --overwrite\."):
        RunFolder(tmp_path, False, None)
    assert (tmp_path / "run.json").exists()
    RunFolder(tmp_path, True, None).begin({})
    gone = ("run.json", "tokenizer_config.json", "adapter", "response_index", "predictions.en.tsv", "checkpoint-5")
    assert [name for name in gone if (tmp_path / name).exists()] == []


def test_the_last_checkpoint_has_the_highest_number(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no complete checkpoint; start again with --overwrite true\."):
        last_checkpoint(tmp_path, "last")
    for step in (5, 100, 20):
        checkpoint(tmp_path, step)
    assert last_checkpoint(tmp_path, "last") == str(tmp_path / "checkpoint-100")
    assert last_checkpoint(tmp_path, str(tmp_path / "checkpoint-20")) == str(tmp_path / "checkpoint-20")
    assert last_checkpoint(tmp_path, None) is None
    checkpoint(tmp_path, 200, complete=False)  # a kill while it was written
    assert last_checkpoint(tmp_path, "last") == str(tmp_path / "checkpoint-100")
    with pytest.raises(InputError, match=r"no such folder\."):
        last_checkpoint(tmp_path, str(tmp_path / "checkpoint-7"))


@pytest.mark.parametrize("side", [0, 1])
def test_other_weights_than_the_best_checkpoints_are_an_error(tmp_path: Path, side: int) -> None:
    tokenizer = train_tokenizer(["a b c d e f g h"] * 3, 40)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    BertModel(config).save_pretrained(tmp_path / "base")
    tokenizer.save_pretrained(tmp_path / "base")
    model = build_dual_encoder(str(tmp_path / "base"), "mean")
    model.save_pretrained(str(tmp_path / "checkpoint-3"))
    best = tmp_path / "checkpoint-3"
    require_best_weights(model.state_dict(), load_dual_encoder(best).state_dict(), str(best))
    with torch.no_grad():
        encoders(model)[side].embeddings.word_embeddings.weight[3, 2] += 1e-4
    with pytest.raises(RuntimeError, match=f"of the best checkpoint .*checkpoint-3 .*{ROUTES[side]}.*word_emb"):
        require_best_weights(model.state_dict(), load_dual_encoder(best).state_dict(), str(best))


@dataclass
class Options:
    """What our options hold."""

    text: list[str] = field(default_factory=list)
    data: str = "sample"
    model_name_or_path: str = "tiny"
    model_revision: str | None = None
    message_tokens: int = 70
    languages: tuple[str, ...] = ("es",)


@dataclass
class Training:
    """What the library's arguments hold, secrets too."""

    seed: int = 7
    output: Path = Path("build/x")
    hub_token: str = "hf_secret"
    push_to_hub_token: str | None = "hf_secret"


def recorded(options: Options | None = None, state: TrainerState | None = None) -> dict[str, Any]:
    facts = {"data": {"id": "x"}, "plan": PLAN.facts()}
    return run_record(
        trainer="retrieval", options=options or Options(), training=Training(), facts=facts,  # type: ignore[arg-type]
        state=state or TrainerState(), figures={"a": 1}, milliseconds={"Model": 0.5}, seconds=1.26,
    )  # fmt: skip


PLAN = TrainingPlan("mt", (Source("es", True), Source("en")), 0.3, ("es",), ("es", "en"))


def test_the_record_is_json_without_secrets_and_folders_of_this_machine(tmp_path: Path) -> None:
    state = TrainerState(best_model_checkpoint=str(tmp_path / "checkpoint-40"), best_metric=0.25)
    state.global_step, state.epoch = 60, 1.5
    record = recorded(state=state)
    text = json.dumps(record)
    assert "hf_secret" not in text
    assert record["best_step"] == 40
    assert record["arguments"]["message_tokens"] == 70, "not a secret: without it the run cannot be repeated"
    assert (record["steps"], record["epochs"], record["best_metric"]) == (60, 1.5, 0.25)
    assert record["seconds"] == 1.3
    assert (record["seed"], record["data"], record["metrics"]) == (7, {"id": "x"}, {"a": 1})
    assert record["milliseconds"] == {"Model": 0.5}
    assert record["plan"] == {
        "setting": "mt", "train": ["mt-es", "en"], "sampling_alpha": 0.3, "validation": ["es"], "test": ["es", "en"],
    }  # fmt: skip
    assert {"python", "torch", "transformers", "sentence-transformers"} <= record["versions"].keys()
    assert record["hardware"]["cores"] >= 1
    assert "commit" in record
    places = ["ht=/home/me/ht.txt", "en=org/en:a:b", "/home/me/x", "de=https://me:secret@h/de.txt?token=secret"]
    found = recorded(Options(places, "/home/me/data"))["arguments"]
    assert found["text"] == ["ht=.../ht.txt", "en=org/en:a:b", ".../x", "de=https://***@h/de.txt?***"]
    assert found["data"] == ".../data"
    assert recorded(Options([], "build/data"))["arguments"]["data"] == "build/data", "relative: as it was typed"


# --- what of a run is published

RETRIEVER = cases(__file__, "RETRIEVER")
GENERATOR = cases(__file__, "GENERATOR")
LANGUAGE_MODEL = (*GENERATOR, "replies.json", "chat_template.jinja")
ADAPTER = cases(__file__, "ADAPTER")
PRIVATE = cases(__file__, "PRIVATE")


def make_files(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


@pytest.mark.parametrize(
    ("trainer", "names"), [("retrieval", RETRIEVER), ("generation", GENERATOR), ("causal", LANGUAGE_MODEL)]
)
def test_only_the_model_s_own_files_are_published(tmp_path: Path, trainer: str, names: tuple[str, ...]) -> None:
    own = (*names, *(f"adapter/{name}" for name in ("adapter.json", *ADAPTER)))
    make_files(tmp_path, *own, *PRIVATE)
    what = publication(tmp_path, {"trainer": trainer}, "org/m", "# Card")
    assert set(what.files()) == set(own)
    stays = what.left_behind()
    assert stays["predictions.es.tsv"] == "holds the texts of the test split"
    assert stays["wandb/"] == "a training log"
    assert "pickle" in stays["training_args.bin"]
    assert {"secrets.json", "checkpoint-5/", "adapter/optimizer.pt"} <= stays.keys()


def test_what_is_no_model_is_not_published(tmp_path: Path) -> None:
    make_files(tmp_path, "run.json", "modules.json", "response_index/es/vectors.safetensors")
    with pytest.raises(InputError, match="has no weights"):
        publication(tmp_path, {"trainer": "retrieval"}, "org/m", "# Card")
    families = ("causal", "generation", "multiple_choice", "pretraining", "retrieval", "staple_generation")
    known = ", ".join((*families, "text_generation", "understanding"))
    with pytest.raises(InputError, match=f"expected the trainer to be one of {known}, found 'x'"):
        publication(tmp_path, {"trainer": "x"}, "org/m", "# Card")


def test_only_the_adapters_own_files_are_published(tmp_path: Path) -> None:
    make_files(tmp_path, *RETRIEVER, *PRIVATE, *(f"adapter/{name}" for name in ADAPTER))
    record = {"version": 2, "family": "retrieval", "base": "org/base", "revision": None, "fingerprint": "0"}
    shape = {"pooling": "mean", "message_tokens": 4, "reply_tokens": 4, "encoders": "two"}
    shape |= {"query_prompt": "", "reply_prompt": "", "normalize": False, "layers": None, "seed": 0}
    (tmp_path / "adapter" / "adapter.json").write_text(json.dumps({**record, **shape}))
    metrics = {"systems": {"Model": {"pooled": {}}}, "signatures": {}}
    (tmp_path / "run.json").write_text(json.dumps({"trainer": "retrieval", "metrics": metrics}))
    what = adapter_publication(tmp_path, "org/m", "# Card")
    indexes = {name for name in RETRIEVER if name.startswith(("response_index/", "languages"))}
    assert set(what.files()) == {"README.md", "adapter.json", "run.json", "curves.png", *ADAPTER, *indexes}
