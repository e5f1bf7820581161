"""The small copy of a run, made from the embedded baseline with its weights at full precision again."""

import json
import re
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.baselines import read_baselines
from mrs_suggest.common.text.predictions import Prediction, write_predictions
from mrs_suggest.models.saved.families import model_card
from mrs_suggest.suggest.index.response_index import AXES, VECTORS
from mrs_suggest.suggest.retrieval_suggester import RetrievalSuggester
from mrs_suggest.suggest.suggester import Suggester
from mrs_suggest.training.retrieval.shrink import EIGHT_BITS, WHOLE, shrink
from tests.audit_sheets import in_memory


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run in one language, with what stays at home."""
    folder = tmp_path_factory.mktemp("shrink") / "run"
    shutil.copytree(read_baselines()["everyday-retriever"].folder, folder)
    for path in [*folder.glob("response_index/*"), *folder.glob("ranker/*.safetensors")]:
        if path.stem != "es":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    facts = json.loads((folder / "ranker/ranker.json").read_text(encoding="utf-8"))
    facts["weights"] = {"es": facts["weights"]["es"]}
    (folder / "ranker/ranker.json").write_text(json.dumps(facts), encoding="utf-8")
    for path in folder.rglob("*.safetensors"):
        tensors = {k: t.float() if t.is_floating_point() else t for k, t in load_file(path).items()}
        if path.name == VECTORS and AXES in tensors:
            tensors["vectors"] = tensors["vectors"] @ tensors.pop(AXES).T
        save_file(tensors, path, metadata={"format": "pt"})
    record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    record.pop("weights", None)
    record.pop("files", None)  # they are other files now
    record["metrics"]["signatures"] = {"es": record["metrics"]["signatures"]["es"]}
    record["data"]["rows"] = {"es": record["data"]["rows"]["es"]}
    (folder / "run.json").write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / "README.md").write_text(model_card(record), encoding="utf-8")
    texts = ("¿Vienes?", "Gracias", "Hola", "¿Estás ahí?", "¡Buenas noches!")
    write_predictions(folder / "predictions.es.tsv", [Prediction(text, "x", ("y",)) for text in texts])
    (folder / "checkpoint-3").mkdir()
    (folder / "checkpoint-3" / "optimizer.pt").write_bytes(b"0" * 1000)
    (folder / "curves.png").write_bytes(b"png")
    return folder


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("model.safetensors"))


def test_a_small_copy_answers_alike(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from mrs_suggest.cli.main import run_verb

    out = tmp_path / "small"
    out.mkdir()
    for name in ("run.json", "old.txt"):
        (out / name).write_text("of an earlier release")
    shrink(run, out)
    assert re.search("the same three suggestions for [45] of 5 test messages", capsys.readouterr().out)
    assert size(out) < 0.55 * size(run)
    before = {path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file()}
    after = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    left = {"checkpoint-3/optimizer.pt", "curves.png", "predictions.es.tsv"}
    assert before - after == left
    assert after <= before
    for path in out.rglob("*.safetensors"):
        old = load_file(run / path.relative_to(out))
        for name, tensor in load_file(path).items():
            if name not in old or old[name].is_floating_point():
                eight = tensor.ndim == 2 and name.endswith(EIGHT_BITS)
                assert tensor.dtype == (torch.float8_e4m3fn if eight else torch.float16)
            else:
                assert tensor.dtype == (torch.uint16 if name in WHOLE else old[name].dtype)
        assert path.stat().st_mode & 0o777 == 0o644
    ask = (["¿Quedamos mañana?"], "es")
    one, other = (Suggester.from_pretrained(folder).suggest(*ask)[0] for folder in (run, out))
    assert [s.reply for s in one] == [s.reply for s in other]
    # Its card is made again byte for byte, and shows no picture that stayed behind.
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "curves.png" not in card
    assert "fp16" in card
    assert run_verb("models", ["card", str(out)]) == 0
    assert (out / "README.md").read_text(encoding="utf-8") == card


def test_no_finished_run_leaves_the_old_copy(run: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "run.json").write_text("kept")
    with pytest.raises(InputError, match="no such folder"):
        shrink(tmp_path / "none", tmp_path / "out")
    half = tmp_path / "half"
    shutil.copytree(run, half)
    (half / "predictions.es.tsv").unlink()
    with pytest.raises(InputError, match=r"predictions\.es\.tsv"):
        shrink(half, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["run.json"]


def test_the_model_with_which_a_chain_of_runs_began_is_named(run: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    shutil.copytree(run, second)
    record = json.loads((second / "run.json").read_text(encoding="utf-8"))
    record["arguments"]["model_name_or_path"], record["started_from"] = "./build/first", [".../folder"]
    (second / "run.json").write_text(json.dumps(record), encoding="utf-8")
    shrink(second, tmp_path / "small", base="org/encoder", base_license="mit")
    card = (tmp_path / "small" / "README.md").read_text(encoding="utf-8")
    assert "`./build/first` (which started from `org/encoder`)" in card
    assert "base_model: org/encoder" in card
    assert "license: mit" in card
    assert "..." not in card.split("---")[2].split("##")[0]


def test_what_ships_remembers_all_splits(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message that only `unseen` has is answered with its reply, which the response set lacked."""
    message, reply = "Did the zeppelin land on your balcony?", "It did, and the pilot wants tea!"
    model = RetrievalSuggester.load_from(run, str(run))
    parts = {}
    for code, index in model.indexes.items():
        parts[code, "train"] = [(f"{code} {number}", text) for number, text in enumerate(index.replies[:20])]
        parts[code, "unseen"] = [(message, reply)]
    monkeypatch.setattr("mrs_suggest.training.retrieval.shrink.open_prepared", lambda name: in_memory(parts))
    shrink(run, tmp_path / "small", data="mrs-zeppelin")
    small = Suggester.from_pretrained(tmp_path / "small", guard=False)
    before = Suggester.from_pretrained(run, guard=False)
    assert small(message, "es").replies[0] == reply
    assert reply not in before(message, "es", k=50).replies
    assert isinstance(small.model, RetrievalSuggester)
    assert len(small.model.indexes["es"].replies) == len(model.indexes["es"].replies) + 1
    assert small.model.rankers["es"].settings == model.rankers["es"].settings, "weights stay those of the run"
    assert "all splits of mrs-zeppelin" in (tmp_path / "small" / "README.md").read_text(encoding="utf-8")
