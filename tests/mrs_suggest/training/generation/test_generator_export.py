"""A generator's export is kept only if its replies stay as good; it is recorded, published, and can be removed."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.baselines import read_baselines
from mrs_suggest.common.io.manifest import require_undamaged
from mrs_suggest.common.text.predictions import Prediction, write_predictions
from mrs_suggest.models.exports import CTRANSLATE2, CTRANSLATE2_FILES
from mrs_suggest.models.generation.ctranslate2_generator import ExportedGenerator
from mrs_suggest.models.generation.ctranslate2_writer import write_ctranslate2
from mrs_suggest.models.generation.generator import Generator
from mrs_suggest.models.generation.tiny_generator import build_tiny_generator
from mrs_suggest.models.saved.families import publication, write_record
from mrs_suggest.models.saved.record import read_record
from mrs_suggest.suggest.generation_suggester import GenerationSuggester
from mrs_suggest.suggest.suggester import Suggester
from mrs_suggest.training.generation import FAMILY as GENERATION
from mrs_suggest.training.generation import generator_export
from mrs_suggest.training.generation.generator_export import export_generator
from mrs_suggest.training.reply.exporting import pairs_to_compare, remove_export
from tests.mrs_suggest.models.generation.test_generator import PAIRS, TEXTS, build, learn

pytest.importorskip("ctranslate2")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of a generator that knows four pairs, which are its test split; its data are gone."""
    folder = tmp_path_factory.mktemp("runs") / "plain"
    generator = build(build_tiny_generator(TEXTS, ["en", "es"], tmp_path_factory.mktemp("tiny"), 3, 200))
    learn(generator)
    generator.save(folder)
    for code, pairs in PAIRS.items():
        rows = [Prediction(message, reply, ("",)) for message, reply in pairs]
        write_predictions(folder / f"predictions.{code}.tsv", rows)
    record = json.loads((read_baselines()["everyday-retriever"].folder / "run.json").read_text(encoding="utf-8"))
    for name in ("weights", "guard", "started_from", "base_license", "exports"):
        record.pop(name, None)
    record["trainer"], record["data"]["id"] = "generation", "gone"
    record["arguments"] |= {"model_name_or_path": "tiny", "message_tokens": 70, "model_revision": None}
    metrics = record["metrics"]
    metrics["language_tokens"] = "unicoder"
    metrics["signatures"] = {code: metrics["signatures"][code] for code in PAIRS}
    write_record(folder, record, GENERATION)
    return folder


@pytest.fixture(scope="module")
def run(plain: Path) -> Path:
    """The same run with an export in int8."""
    folder = plain.with_name("run")
    shutil.copytree(plain, folder)
    export_generator(folder, int8=True)
    return folder


def contents(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_export_is_recorded_listed_told_and_published(run: Path) -> None:
    record = read_record(run)
    facts = record["exports"][CTRANSLATE2]
    assert (facts["split"], facts["messages"], facts["examples"], facts["int8"]) == ("test", 4, 4, True)
    assert facts["rouge"]["torch"] > 0.2, "it knows the replies"
    ends = facts["rouge"]["difference"]
    assert ends is None or ends[0] >= -0.01
    assert 0 < facts["largest_difference"] < 0.5
    assert set(facts["milliseconds"]) == {"torch", CTRANSLATE2}
    assert set(CTRANSLATE2_FILES) <= set(record["files"])
    assert require_undamaged(run, verify=True) == len(record["files"])
    card = (run / "README.md").read_text(encoding="utf-8")
    assert "`ctranslate2/` holds the generator for CTranslate2 (int8, " in card
    assert ("(95 % interval of the difference [" if ends else "(no interval: all values are equal)") in card
    assert set(CTRANSLATE2_FILES) <= set(publication(run, record, "org/model", card).files())
    model = Suggester.from_pretrained(run).model
    assert isinstance(model, GenerationSuggester)
    assert isinstance(model.generator, ExportedGenerator)
    assert not list(run.glob(".ctranslate2*"))


def test_worse_replies_are_refused_and_nothing_changes(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generator_export, "difference", lambda *_: {"weighted": [-0.02, 0.01]})
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    before = contents(folder)
    with pytest.raises(InputError, match=r"may be 0\.0200 below torch's, and 0\.01 is allowed; nothing was written"):
        export_generator(folder)
    assert contents(folder) == before
    assert export_generator(folder, largest_loss=0.03)["int8"] is False
    assert require_undamaged(folder, verify=True)


def test_an_export_of_other_weights_is_refused(plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(_: Generator, folder: Path, target: Path, int8: bool) -> None:
        other = Generator.load(folder)
        other.model.model.shared.weight.data.mul_(0.3)  # type: ignore[operator, union-attr]
        write_ctranslate2(other, folder, target, int8)

    monkeypatch.setattr(generator_export, "write_ctranslate2", write)
    folder = tmp_path / "run"
    shutil.copytree(plain, folder)
    with pytest.raises(InputError, match=r"likelihoods differ from torch's by up to .* nothing was written"):
        export_generator(folder)
    assert contents(folder) == contents(plain)


def test_a_removed_export_leaves_the_run_as_it_was(run: Path, plain: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    (folder / CTRANSLATE2 / "model.bin").write_bytes(b"damaged")
    remove_export(folder)
    assert contents(folder) == contents(plain)
    with pytest.raises(InputError, match="has no export"):
        remove_export(folder)


def test_pairs_come_from_the_validation_split_or_the_predictions(plain: Path, prepared: Any) -> None:
    record = read_record(plain)
    split, pairs = pairs_to_compare(plain, record, None)
    assert (split, list(pairs)) == ("test", ["en", "es"])
    assert list(zip(*pairs["es"], strict=True)) == PAIRS["es"]
    split, pairs = pairs_to_compare(plain, record, str(prepared.folder))
    assert (split, list(pairs)) == ("validation", ["en"])
    messages, replies = pairs["en"]
    assert messages[0].startswith("en message")
    assert replies[0].startswith("en reply")


def test_what_does_not_fit_is_one_sentence(plain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from mrs_suggest.cli.main import main

    retriever = str(read_baselines()["everyday-retriever"].folder)
    for arguments, sentence in (
        ([retriever, "--ctranslate2"], "is not a generator; its message encoder is exported with --onnx"),
        ([str(plain), "--ctranslate2", "--messages", "x"], "--messages: a generator's replies are compared with real"),
        ([str(plain), "--ctranslate2", "--least-agreement", "1"], "a generator's limit is --largest-loss"),
        ([str(plain), "--ctranslate2", "--largest-loss", "2"], "expected a difference from 0 to 1"),
        ([retriever, "--onnx", "--largest-loss", "0"], "a retriever's limit is --least-agreement"),
        ([str(plain), "--remove"], "has no export"),
        ([str(plain), "--remove", "--int8"], "--remove: cannot be combined"),
    ):
        assert main(["models", "export", *arguments]) == 2
        assert sentence in capsys.readouterr().err
