"""A run whose ranker has a generator: one model, evaluated as it is served."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mrs_suggest.cli.main import run_verb
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.predictions import read_predictions
from mrs_suggest.models.generation.decoding.settings import Decoding
from mrs_suggest.models.generation.generator import CAUSAL_LM, Generator, load_seq2seq
from mrs_suggest.models.generation.language_tokens import ROWS
from mrs_suggest.models.generation.text_coder import PromptCoder
from mrs_suggest.models.generation.tiny_generator import build_tiny_causal, build_tiny_generator
from mrs_suggest.models.saved.families import publication
from mrs_suggest.models.saved.record import read_record
from mrs_suggest.suggest.retrieval_suggester import RetrievalSuggester
from mrs_suggest.suggest.suggester import Suggester
from tests.integration.conftest import Train

pytestmark = pytest.mark.integration

BOTH = ("--languages", "en", "ja", "--ranker", "true", "--max_test_examples", 20, "--max_validation_examples", 30)


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an untrained generator of English; its replies are noise, so they are none of the response set's."""
    texts = [f"en message {n} en reply {n % 7}" for n in range(80)]
    start = build_tiny_generator(texts, ["en"], tmp_path_factory.mktemp("start"), 1, 200)
    folder = tmp_path_factory.mktemp("out") / "writer"
    decoding = Decoding(beams=2, max_tokens=5, min_tokens=1)
    Generator.build(str(start), ["en"], message_tokens=20, reply_tokens=10, decoding=decoding).save(folder)
    (folder / "predictions.en.tsv").write_text("private\n", encoding="utf-8")
    return folder


def test_a_run_with_a_generator_is_one_model_served_as_it_was_scored(
    train: Train, writer: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = train("ranked", *BOTH, "--generator", writer, "--generated", 2, "--ranker_parts", "log_prob", "direct")
    moved = tmp_path / "elsewhere"
    shutil.copytree(folder, moved, ignore=shutil.ignore_patterns("checkpoint-*"))
    suggester = Suggester.from_pretrained(moved, verify=True, guard=False)
    assert isinstance(suggester.model, RetrievalSuggester)
    assert suggester.model.rankers
    sources = set()
    for language in ("en", "ja"):
        rows = read_predictions(folder / f"predictions.{language}.tsv")
        for begin in (0, 1):  # together, and one by one
            messages = [row.message for row in rows][: 3 if begin else None]
            parts = [messages] if not begin else [[message] for message in messages]
            served = [three for part in parts for three in suggester.suggest(part, language)]
            expected = [row.suggestions for row in rows][: len(served)]
            assert [tuple(s.reply for s in three) for three in served] == expected
            sources |= {(language, s.source) for three in served for s in three}
    assert {("en", "set"), ("ja", "")} <= sources

    record = read_record(folder)
    told = record["metrics"]["ranker"]["generator"]
    assert told["languages"] == ["en"]
    assert told["ranked_without"] == ["ja"]
    assert told["id"] == ".../writer"
    assert len(told["fingerprint"]) == 32
    assert json.loads((folder / "ranker" / "ranker.json").read_text())["generator"] == told
    weights = record["metrics"]["ranker"]["weights"]
    assert "generator" in weights["en"]
    assert "generator" not in weights["ja"]
    copied = {"generator/generator.json", "generator/model.safetensors", "generator/tokenizer.json"}
    assert copied <= set(record["files"])
    assert not [name for name in record["files"] if "predictions" in name]
    assert (folder / "generator" / "model.safetensors").read_bytes() == (writer / "model.safetensors").read_bytes()
    what = publication(folder, record, "org/m", "")
    assert copied <= set(what.files())
    card = (folder / "README.md").read_text()
    assert "the generator `.../writer`" in card
    assert "| `generator` |" in card

    message = read_predictions(folder / "predictions.en.tsv")[0].message
    capsys.readouterr()
    assert (
        run_verb(
            "suggest", ["--model", str(folder), "--language", "en", "--explain", "--json", "--count", "20", message]
        )
        == 0
    )
    shown = json.loads(capsys.readouterr().out)["suggestions"]
    assert set(shown[0]["parts"]) == {"direct", "log_prob", "generator"}
    assert {one["source"] for one in shown} == {"set", "generated"}
    assert run_verb("suggest", ["--model", str(folder), "--language", "en", "--explain", message]) == 0
    assert "; source " in capsys.readouterr().out

    weights_file = moved / "generator" / "model.safetensors"
    weights_file.write_bytes(weights_file.read_bytes()[:-1] + b"!")
    with pytest.raises(InputError, match=r"generator/model\.safetensors: damaged"):
        Suggester.from_pretrained(moved, verify=True)
    shutil.rmtree(moved / "generator")
    with pytest.raises(InputError, match=r"generator/\S+: missing"):
        Suggester.from_pretrained(moved)
    (moved / "run.json").unlink()
    with pytest.raises(InputError, match=r"generator/generator\.json: missing, and the ranker needs it"):
        Suggester.from_pretrained(moved)


def test_a_causal_model_is_a_generator_too(train: Train, tmp_path: Path) -> None:
    texts = [f"en message {n} en reply {n % 7}" for n in range(80)]
    start = build_tiny_causal(texts, ["en"], tmp_path / "start", 1, 200)
    model, tokenizer = load_seq2seq(str(start), None, kind=CAUSAL_LM)
    coder = PromptCoder(tokenizer, ROWS["causal"], model.config, 20, 10, template="[{code}]{message}</s>")
    replies = {"en": ["en reply of en", "reply message en", "en en message"]}
    writer = Generator(model, coder, ["en"], Decoding(beams=3, max_tokens=12), replies=replies)
    writer.save(tmp_path / "writer")
    folder = train("spoken", *BOTH, "--generator", tmp_path / "writer", "--generated", 2, "--ranker_parts", "log_prob")
    rows = read_predictions(folder / "predictions.en.tsv")
    served = Suggester.from_pretrained(folder, guard=False).suggest([row.message for row in rows], "en")
    assert [tuple(answer.replies) for answer in served] == [row.suggestions for row in rows]
    assert read_record(folder)["metrics"]["ranker"]["generator"]["languages"] == ["en"]
    many = Suggester.from_pretrained(folder, guard=False).suggest(rows[0].message, "en", 30)
    assert {*replies["en"]} & {one.reply for one in many if one.source == "generated"}


def test_a_run_over_it_without_a_generator_leaves_none_behind(train: Train, writer: Path) -> None:
    with_one = train("again", *BOTH, "--generator", writer, "--max_steps", 0, "--generated", 0)
    assert (with_one / "generator").is_dir()
    without = train("again", *BOTH, "--max_steps", 0, "--overwrite", "true")
    assert not (without / "generator").exists()
    assert "generator" not in json.loads((without / "ranker" / "ranker.json").read_text())


def test_generators_that_cannot_be_used_are_refused(refused: Callable[..., str], writer: Path, tmp_path: Path) -> None:
    assert "--generator nowhere: no such folder" in refused("--ranker", "true", "--generator", "nowhere")
    told = refused("--ranker", "true", "--generator", tmp_path)
    assert (
        f"--generator {tmp_path}: no trained generator; pass what `mrs train generation` or `mrs train causal`" in told
    )
    assert "pass --ranker true" in refused("--generator", writer)
    assert "--generated: has no effect without --generator" in refused("--ranker", "true", "--generated", "2")
    assert "--generated" in refused("--ranker", "true", "--generator", writer, "--generated", "-1")
    assert "writes en, and the run has ja" in refused("--ranker", "true", "--generator", writer, "--languages", "ja")
    assert "at most 50" in refused("--ranker", "true", "--generator", writer, "--generated", "51")
    inside = tmp_path / "refused" / "generator"
    shutil.copytree(writer, inside)
    (tmp_path / "refused" / "resume.json").write_text("{}")
    sentence = refused("--ranker", "true", "--generator", inside, "--overwrite", "true")
    assert "lies in --output_dir" in sentence
    assert (inside / "generator.json").is_file()
