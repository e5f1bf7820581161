"""An export is kept only if answers stay the same; it is recorded, published, and left out of a small copy."""

import json
import shutil
from inspect import getclosurevars
from pathlib import Path
from typing import Any

import pytest

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.baselines import read_baselines
from mrs_suggest.common.io.manifest import require_undamaged
from mrs_suggest.common.text.predictions import Prediction, write_predictions
from mrs_suggest.models.exports import GRAPH, ONNX, ONNX_FILES
from mrs_suggest.models.retrieval.onnx_encoder import OnnxEncoder
from mrs_suggest.models.saved.families import publication
from mrs_suggest.models.saved.record import read_record
from mrs_suggest.suggest.suggester import Suggester
from mrs_suggest.training.reply.exporting import agreement, messages_to_compare

MESSAGES = {"en": ["Are you there?", "Thanks!", "See you tomorrow?"], "es": ["¿Vienes?", "Gracias"]}


@pytest.fixture(scope="module")
def messages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of messages to compare."""
    path = tmp_path_factory.mktemp("messages") / "messages.tsv"
    path.write_text("".join(f"{code}\t{text}\n" for code, texts in MESSAGES.items() for text in texts), "utf-8")
    return path


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run without an export."""
    folder = tmp_path_factory.mktemp("export") / "plain"
    shutil.copytree(read_baselines()["everyday-retriever"].folder, folder)
    return folder


@pytest.fixture(scope="module")
def run(plain: Path, messages: Path) -> Path:
    """A finished run with an export."""
    for package in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(package)
    from mrs_suggest.training.retrieval.encoder_export import export_encoder

    folder = plain.with_name("run")
    shutil.copytree(plain, folder)
    export_encoder(folder, file=messages)
    return folder


def encoder_of(suggester: Suggester) -> object:
    """What computes the vectors, below the functions that keep the last ones."""
    encode: Any = suggester.model._encode  # type: ignore[attr-defined]
    while not hasattr(encode, "__self__"):
        inner = getclosurevars(encode).nonlocals
        encode = inner.get("encode") or inner["raw"]
    return encode.__self__


def test_an_export_is_recorded_listed_told_and_published(plain: Path, run: Path) -> None:
    record = read_record(run)
    facts = record["exports"][ONNX]
    assert (facts["same"], facts["messages"], facts["split"]) == (5, 5, "given")
    assert facts["largest_difference"] < 1e-4
    assert set(facts["milliseconds"]) == {"weights", "onnx"}
    assert set(ONNX_FILES) <= set(record["files"])
    assert require_undamaged(run, verify=True) == len(record["files"])
    card = (run / "README.md").read_text(encoding="utf-8")
    assert "message encoder for ONNX Runtime (fp32, " in card
    assert "the same three suggestions for 100.00% of 5 given messages" in card
    assert set(ONNX_FILES) <= set(publication(run, record, "org/model", card).files())
    before, after = Suggester.from_pretrained(plain), Suggester.from_pretrained(run)
    assert isinstance(encoder_of(after), OnnxEncoder)
    assert agreement(before.model, after.model, MESSAGES) == (5, 5)
    assert not list(run.glob(".onnx*"))


def test_fewer_equal_answers_are_refused_and_nothing_changes(
    run: Path, messages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mrs_suggest.training.retrieval import encoder_export

    def write(model: object, folder: Path, target: Path, int8: bool) -> None:
        shutil.copytree(run / ONNX, target / ONNX)

    monkeypatch.setattr(encoder_export, "write_onnx_encoder", write)
    monkeypatch.setattr(encoder_export, "agreement", lambda *_: (97, 100))
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(InputError, match=r"97\.00% of the messages, below 98\.00%; nothing was written"):
        encoder_export.export_encoder(folder, file=messages)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    facts = encoder_export.export_encoder(folder, file=messages, least=0.97)
    assert facts["agreement"] == 0.97
    assert require_undamaged(folder, verify=True)


def test_neither_a_small_copy_nor_new_weights_keep_the_export(run: Path, tmp_path: Path) -> None:
    from mrs_suggest.training.record import RunFolder
    from mrs_suggest.training.retrieval.shrink import shrink

    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    for code in read_record(folder)["metrics"]["signatures"]:
        write_predictions(folder / f"predictions.{code}.tsv", [Prediction("Hi", "x", ("y",))])
    shrink(folder, tmp_path / "small")
    assert not (tmp_path / "small" / ONNX).exists()
    assert "exports" not in read_record(tmp_path / "small")
    assert "ONNX" not in (tmp_path / "small" / "README.md").read_text(encoding="utf-8")
    RunFolder(folder, overwrite=False, resume="last").begin({})
    assert not (folder / ONNX / GRAPH).exists()
    assert (folder / "modules.json").is_file()


def test_a_damaged_model_is_refused_before_its_hashes_are_written_anew(
    plain: Path, messages: Path, tmp_path: Path
) -> None:
    pytest.importorskip("onnxscript")
    from mrs_suggest.training.retrieval.encoder_export import export_encoder

    folder = tmp_path / "run"
    shutil.copytree(plain, folder)
    path = folder / "languages.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(InputError, match=r"languages\.safetensors: damaged"):
        export_encoder(folder, file=messages)


def test_the_command_refuses_a_generator_and_a_share_that_is_none(
    plain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from mrs_suggest.cli.main import main

    (tmp_path / "run.json").write_text(json.dumps({"trainer": "generation", "metrics": {}}), encoding="utf-8")
    assert main(["models", "export", str(tmp_path), "--onnx"]) == 2
    assert "is not a retriever" in capsys.readouterr().err
    assert main(["models", "export", str(plain), "--onnx", "--least-agreement", "98"]) == 2
    assert "expected a share from 0 to 1" in capsys.readouterr().err


def test_messages_come_from_the_file_the_validation_split_or_the_predictions(plain: Path, tmp_path: Path) -> None:
    record = read_record(plain)
    split, found = messages_to_compare(plain, record, None, None)
    assert split == "validation"
    assert list(found) == list(record["metrics"]["signatures"])
    assert all(texts and len(texts) == len(set(texts)) for texts in found.values())
    record["data"] = {**record["data"], "id": str(tmp_path / "gone")}
    with pytest.raises(InputError, match=r"neither its data \(.*gone\) nor its predictions are here"):
        messages_to_compare(plain, record, None, None)
    for code in record["metrics"]["signatures"]:
        write_predictions(tmp_path / f"predictions.{code}.tsv", [Prediction(code, "x", ("y",))] * 2)
    assert messages_to_compare(tmp_path, record, None, None) == ("test", {code: [code] for code in found})
    with pytest.raises(InputError, match="lacks all of the model's languages, xx"):
        messages_to_compare(plain, {**record, "metrics": {"signatures": {"xx": {}}}}, "sample", None)
    file = tmp_path / "messages.tsv"
    for content in ("xx\tHi\n", "en Hi\n", "en\t \n"):
        file.write_text("en\tHi\n" + content, encoding="utf-8")
        with pytest.raises(InputError, match=r"messages\.tsv, line 2: expected one of .*, a tab and a message"):
            messages_to_compare(plain, record, None, file)
