"""The card of a retriever: from the record alone, the same bytes every time, valid, and telling no tales."""

import copy
import getpass
import json
import re
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from huggingface_hub import ModelCard
from huggingface_hub.repocard_data import model_index_to_eval_results
from safetensors.numpy import save_file
from transformers import TrainerState
from transformers.trainer_utils import SchedulerType

from mrs_suggest.cli.main import run_verb
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.baselines import read_baselines
from mrs_suggest.common.text.predictions import Prediction, write_predictions
from mrs_suggest.evaluation.scores.systems import score_file
from mrs_suggest.models.saved.families import model_card
from mrs_suggest.training.record import base_license, run_record, started_from
from mrs_suggest.training.reply.card import TEXTS
from tests.cases import cases
from tests.hub.store import card_errors

Record = dict[str, Any]


@pytest.fixture
def record() -> Record:
    """The record of the run that made the embedded baseline, as if it had been trained from scratch."""
    folder = read_baselines()["everyday-retriever"].folder
    found = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    found.pop("weights", None)
    found["data"]["reader"] = "sample"
    for name in ("guard", "started_from", "base_license", "exports"):
        found.pop(name, None)
    found["arguments"] |= {"model_name_or_path": "tiny", "encoders": "two", "teacher": None}
    found["metrics"].pop("start", None)
    for scopes in found["metrics"]["systems"].values():
        for figures in scopes.values():
            figures.pop("self_rouge", None)
    return found


def changed(record: Record, part: str, **values: Any) -> Record:
    record = copy.deepcopy(record)
    record[part].update(values)
    return record


def front(card: str) -> Record:
    return yaml.safe_load(card.split("---\n")[1])


def test_every_placeholder_is_filled(record: Record) -> None:
    card = model_card(record)
    body = card.split("---\n", 2)[2]
    assert "$" not in body
    assert "None" not in body
    assert "nan" not in body.lower().split()
    assert "](curves.png)" in model_card({key: value for key, value in record.items() if key != "stored_as"})
    assert "](curves.png)" not in body  # the record is that of the small copy that ships
    # Also in a card of a made-up language.
    metrics = record["metrics"]
    first = next(iter(metrics["signatures"]))
    metrics["signatures"] = {"qaa": metrics["signatures"][first]}
    for scopes in metrics["systems"].values():
        scopes["qaa"] = scopes[first]
    card = model_card(record)
    assert "qaa (`qaa`)" in card
    assert TEXTS["examples"]["en"][0] in card


def test_how_alike_suggestions_are_is_in_the_table_where_it_was_measured(record: Record) -> None:
    assert "Self-ROUGE" not in model_card(record)
    measured = copy.deepcopy(record)
    for number, scopes in enumerate(measured["metrics"]["systems"].values()):
        scopes["pooled"]["self_rouge"] = number / 8
    card = model_card(measured)
    tables = [line.strip("| ").split(" | ") for line in card.splitlines() if line.startswith("|")]
    column = next(row for row in tables if row[0] == "system").index("Self-ROUGE")
    assert next(row for row in tables if row[0] == "Random")[column].startswith("0.")
    assert next(row for row in tables if row[0] == "**Model**")[column] == "0.000"
    assert "similarity of the three suggestions" in card


def from_the_hub(record: Record) -> Record:
    """The record of a run on a data set of the hub."""
    data = {key: value for key, value in record["data"].items() if key != "content_hash"}
    return {**record, "data": {**data, "id": "org/mrs", "revision": "c0ffee"}}


def test_the_metadata_are_what_the_hub_takes(record: Record) -> None:
    assert card_errors(model_card(record), "model") == ([], [])
    record = from_the_hub(record)
    for repo_id in (None, "org/m"):
        text = model_card(record, repo_id)
        assert card_errors(text, "model") == ([], [])
        card = ModelCard(text)
        results = card.data.eval_results
        assert len(results) == 2 * len(record["metrics"]["signatures"])
        for result in results:
            own = record["metrics"]["systems"]["Model"][result.dataset_config]
            key = {"mrs_rouge": "weighted", "mrr": "mrr"}[result.metric_type]
            assert result.metric_value == round(own[key], 6)
            assert result.dataset_split == "test"
            assert (result.dataset_type, result.dataset_revision) == ("org/mrs", "c0ffee")
            assert f"lang:{result.dataset_config}" in result.metric_args["signature"]
        assert card.data.language == list(record["metrics"]["signatures"])
        name, again = model_index_to_eval_results(front(text)["model-index"])
        assert (name == "m") is (repo_id == "org/m")
        assert again == results


def of_generation(record: Record, row: str = "unicoder") -> Record:
    """The record as that of a generator whose languages are told by the tokens of `row`."""
    found = changed(record, "metrics", language_tokens=row)
    found["metrics"]["systems"]["Model"]["pooled"].update(perplexity=9.0)
    return changed({**found, "trainer": "generation"}, "arguments", message_tokens=70, model_revision=None)


@pytest.mark.parametrize(("row", "tokenizer", "start"), cases(__file__, "test_plain_transformers_is_told_the_language"))
def test_plain_transformers_is_told_the_language(record: Record, row: str, tokenizer: str, start: str) -> None:
    card = model_card(of_generation(record, row), "org/m")
    assert f'AutoTokenizer.from_pretrained("org/m"{tokenizer})\n' in card
    assert f"model.generate(**inputs{start})\n" in card


ADAPTERS = {
    "two": 'model.load_adapter("org/m", "document", subfolder="document")',
    "one": "One adapter serves messages and replies",
}


@pytest.mark.parametrize("encoders", ADAPTERS)
def test_the_card_of_adapters(record: Record, encoders: str) -> None:
    of_base = changed(record, "arguments", model_name_or_path="org/base", model_revision="abc", encoders=encoders)
    card = model_card({**of_base, "base_license": "mit"}, "org/m", adapter=True)
    data = front(card)
    assert card_errors(card, "model") == ([], [])
    assert (data["library_name"], data["base_model"], data["base_model_relation"]) == ("peft", "org/base", "adapter")
    assert data["license"] == "mit"
    assert 'PeftModel.from_pretrained(AutoModel.from_pretrained("org/base", revision="abc"), "org/m")' in card
    assert [text for text in ADAPTERS.values() if text in card] == [ADAPTERS[encoders]]


@pytest.mark.parametrize(("stated", "listed"), [("mit", "mit"), ("other", None), ("unknown", None), (None, None)])
def test_the_licence_is_the_base_models_where_its_card_states_one(
    record: Record, stated: str | None, listed: str | None
) -> None:
    of_base = changed(record, "arguments", model_name_or_path="org/base")
    card = model_card({**of_base, "base_license": stated})
    assert front(card).get("license") == listed
    said = f"The card of `org/base` states `{stated}`" if stated else "Not stated: no licence was found in a card of"
    assert said in card.replace("\n", " ")


def test_the_licence_in_a_base_models_card(tmp_path: Path) -> None:
    assert base_license(str(tmp_path)) is None
    for text, found in (
        ("---\nlicense: mit\n---\n# x\n", "mit"), ("# x\n", None), ("---\nlicense: [\n---\n", None),
        ("---\nlicense: [mit, x]\n---\n", None), ("---\nlicense: ''\n---\n", None),
    ):  # fmt: skip
        (tmp_path / "README.md").write_text(text, encoding="utf-8")
        assert base_license(str(tmp_path)) == found, text
    (tmp_path / "README.md").write_bytes(b"\xff")
    assert base_license(str(tmp_path)) is None


@pytest.mark.parametrize("base", ["bert-base-multilingual-cased", "org/base"])
def test_a_base_model_of_the_hub_is_named(record: Record, base: str) -> None:
    card = model_card(changed(record, "arguments", model_name_or_path=base, model_revision="abc123"))
    assert front(card)["base_model"] == base
    assert f"`{base}` at revision `abc123`" in card
    assert "license" not in front(card), "whose licence the base model has is not ours to say"
    for local in ("tiny", "./base", ".../base", "../x/base"):
        assert "base_model" not in front(model_card(changed(record, "arguments", model_name_or_path=local)))


def test_only_a_data_set_of_the_hub_is_linked_with_its_revision(record: Record) -> None:
    data = {"id": "org/mrs", "title": "mrs", "revision": "0" * 40, "reader": "official", "rows": record["data"]["rows"]}
    card = model_card({**record, "data": data})
    assert front(card)["datasets"] == ["org/mrs"]
    assert f"https://huggingface.co/datasets/org/mrs) at revision `{'0' * 40}`" in card
    assert {r.dataset_revision for r in ModelCard(card).data.eval_results} == {"0" * 40}
    assert {r.dataset_type for r in ModelCard(card).data.eval_results} == {"org/mrs"}
    assert "Reddit" in card
    own = ModelCard(model_card(record)).data
    assert own.datasets is None
    assert {result.dataset_type for result in own.eval_results} == {"mrs-everyday"}


def test_a_chain_of_base_models(record: Record, tmp_path: Path) -> None:
    """A run from the folder of a run: the card names both bases, and the hub's is the one in its YAML."""
    assert started_from(str(tmp_path)) == []
    first = {"arguments": {"model_name_or_path": "org/base", "model_revision": "v1"}}
    second = {"arguments": {"model_name_or_path": "./build/stage1"}, "started_from": ["org/base@v1"]}
    for text, found in (
        (json.dumps(first), ["org/base@v1"]), (json.dumps(second), ["./build/stage1", "org/base@v1"]), ("{", []),
        ('{"arguments": {}}', []), ("[]", []),
    ):  # fmt: skip
        (tmp_path / "run.json").write_text(text)
        assert started_from(str(tmp_path)) == found
    of_base = changed(record, "arguments", model_name_or_path="./build/stage2")
    card = model_card({**of_base, "started_from": ["./build/stage1", "org/base@v1"]})
    assert "Started from: `./build/stage2` (which started from `./build/stage1`, and that from `org/base@v1`)." in card
    assert front(card)["base_model"] == "org/base"
    assert "base_model" not in front(model_card({**of_base, "started_from": ["tiny"]}))


def test_what_a_model_was_trained_and_chosen_on(record: Record) -> None:
    plan = {"setting": None, "train": ["en", "mt-es"], "sampling_alpha": 0.3, "validation": ["de"], "test": ["es"]}
    card = model_card({**record, "plan": plan})
    assert "sources `en mt-es`, drawn by size to the power of 0.3; not a setting of the paper" in card
    assert "on validation (de)" in card
    single = {**plan, "setting": "mt", "train": ["mt-es"]}
    assert "sources `mt-es`; mt setting (section 3.2)" in model_card({**record, "plan": single})
    assert "the paper's" not in model_card(changed(record, "metrics", paper=[]))
    row = {"table": 3, "model": "mbert", "language": "es", "rouge": 0.0187, "dist1": 0.0157, "dist2": 0.0353}
    card = model_card(changed(record, "metrics", paper=[row]))
    assert "| Table 3 | mbert | es | 0.0187 | 0.0157 | 0.0353 |" in card


# --- what the record holds


@dataclass
class Options:
    model_name_or_path: str
    model_revision: str | None = None


@dataclass
class Training:
    seed: int = 1
    lr_scheduler_type: SchedulerType = SchedulerType.LINEAR


def recorded_base(base: str) -> str:
    record = run_record(
        trainer="retrieval", options=Options(base), training=Training(), facts={},  # type: ignore[arg-type]
        state=TrainerState(), figures={}, milliseconds={}, seconds=1,
    )  # fmt: skip
    return record["arguments"]["model_name_or_path"]


def test_a_local_base_model_is_recorded_as_local(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record: Record
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "build" / "base").mkdir(parents=True)
    for base in ("build/base", str(tmp_path / "build" / "base")):
        card = model_card(changed(record, "arguments", model_name_or_path=recorded_base(base)))
        assert "base_model" not in front(card)
        assert "base" in card
        assert str(tmp_path) not in card
    assert recorded_base("org/base") == "org/base"


def test_the_shipped_record_and_card_name_nobody() -> None:
    folder = read_baselines()["everyday-retriever"].folder
    for name in ("run.json", "README.md"):
        text = (folder / name).read_text(encoding="utf-8")
        assert str(Path.home()) + "/" not in text
        assert socket.gethostname() not in text
        assert "SchedulerType" not in text
        assert not re.search(r'[\s"](/[\w.-]+){2}', text), "a path of the machine that it was made on"
        assert len(getpass.getuser()) < 5 or getpass.getuser() not in text


# --- `mrs models card`


@pytest.fixture
def run(record: Record, tmp_path: Path) -> Path:
    """A run in one language with predictions that give its figures."""
    rows = [
        Prediction("¿Vienes?", "Sí, claro.", ("Sí, claro.", "No", "Vale")),
        Prediction("Hola", "¡Hola!", ("No", "Ya")),
    ]
    folder = tmp_path / "run"
    folder.mkdir()
    write_predictions(folder / "predictions.es.tsv", rows)
    figures = record["metrics"]
    figures["signatures"] = {"es": figures["signatures"]["es"]}
    record["data"]["rows"] = {"es": record["data"]["rows"]["es"]}
    record.pop("files")  # of the model, which is not here
    figures["systems"]["Model"]["es"]["weighted"] = score_file(folder / "predictions.es.tsv", "es")["weighted"]
    (folder / "run.json").write_text(json.dumps(record), encoding="utf-8")
    (folder / "README.md").write_text(model_card(record), encoding="utf-8")
    return folder


def test_a_card_is_made_again_byte_for_byte(run: Path) -> None:
    before = (run / "README.md").read_bytes()
    (run / "README.md").unlink()
    assert run_verb("models", ["card", str(run)]) == 0
    assert (run / "README.md").read_bytes() == before
    assert sorted(path.name for path in run.iterdir()) == ["README.md", "predictions.es.tsv", "run.json"]


@pytest.mark.parametrize("command", ["card", "publish"])
def test_predictions_of_another_run_are_refused(run: Path, command: str) -> None:
    before = (run / "README.md").read_bytes()
    path = run / "predictions.es.tsv"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("Sí, claro.\tNo", "Sí.\tNo"), encoding="utf-8")
    assert path.read_text(encoding="utf-8") != text
    with pytest.raises(InputError, match="they belong to different runs"):
        run_verb("models", [command, str(run), *(["--repo", "org/m", "--dry-run"] if command == "publish" else [])])
    assert (run / "README.md").read_bytes() == before


def test_a_damaged_record_is_named(run: Path) -> None:
    for text, named in (("{", "damaged"), ("[]", "damaged"), ('{"metrics": {}}', "damaged"), (None, "no run.json")):
        (run / "run.json").unlink()
        if text is not None:
            (run / "run.json").write_text(text)
        with pytest.raises(InputError, match=named):
            run_verb("models", ["card", str(run)])
        (run / "run.json").touch()


def test_a_record_of_an_older_release_is_named(run: Path) -> None:
    record = json.loads((run / "run.json").read_text(encoding="utf-8"))
    for gone in ("data", "arguments", "hardware", "plan"):
        (run / "run.json").write_text(json.dumps({k: v for k, v in record.items() if k != gone}), encoding="utf-8")
        with pytest.raises(InputError, match=f"'{gone}' is missing"):
            run_verb("models", ["card", str(run)])


def test_a_dry_run_prints_files_and_card(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run / "checkpoint-2").mkdir()
    (run / "checkpoint-2" / "x.bin").touch()
    save_file({"weight": np.zeros(1, np.float32)}, run / "model.safetensors")
    assert run_verb("models", ["publish", str(run), "--repo", "org/m", "--dry-run"]) == 0
    listed, _, card = capsys.readouterr().out.partition("\nREADME.md:\n\n")
    assert [line.split()[-1] for line in listed.partition("\n\nstays")[0].strip().splitlines()[1:]] == [
        "README.md",
        "model.safetensors",
        "run.json",
    ]
    assert 'Suggester.from_pretrained("org/m")' in card
