"""Damaged and hostile model folders: each gets one sentence and exit code 2, within the time-out of a subprocess."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from mrs_suggest.common.errors import InputError
from mrs_suggest.models import model_folder
from mrs_suggest.models.model_folder import open_model_folder
from mrs_suggest.suggest.suggester import Suggester
from tests.command import refused
from tests.conftest import Mrs
from tests.untrained import untrained_retriever
from tests.word_generator import make_run

SHIPPED = Path(model_folder.__file__).parents[1] / "suggest" / "embedded" / "everyday-retriever"
ENCODER, POOLING = "query_0_Transformer", "query_1_Pooling/config.json"
WEIGHTS, TOKENIZER = f"{ENCODER}/model.safetensors", f"{ENCODER}/tokenizer.json"
REPLIES, VECTORS = "response_index/en/replies.json", "response_index/en/vectors.safetensors"
RANKER, PROMPTS = "ranker/ranker.json", "config_sentence_transformers.json"
BIAS, WORDS = "encoder.layer.1.output.dense.bias", "embeddings.word_embeddings.weight"
RANKER_EN, NAN = "ranker/en.safetensors", float("nan")
Damage = Callable[[Path], object]


def linked(source: Path, target: Path) -> Path:
    """A copy of a model whose files are links, as in the hub's cache, without other languages and without hashes."""
    for path in source.rglob("*"):
        place = path.relative_to(source)
        other = len(place.parts) > 1 and place.parts[0] in ("response_index", "ranker") and place.parts[1][:2].isalpha()
        if (
            path.is_file()
            and path.name != "run.json"
            and not (other and place.parts[1][:3] not in ("en", "en.", "ran"))
        ):
            (target / place).parent.mkdir(parents=True, exist_ok=True)
            (target / place).symlink_to(path.resolve())
    facts = json.loads((source / RANKER).read_text(encoding="utf-8")) if (source / RANKER).is_file() else None
    if facts:
        replaced(target / RANKER, json.dumps({**facts, "weights": {"en": facts["weights"]["en"]}}))
    return target


def replaced(path: Path, content: str | bytes) -> None:
    path.unlink()
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def json_with(name: str, *keys: Any, value: Any) -> Damage:
    def damage(model: Path) -> None:
        content = json.loads((model / name).read_text(encoding="utf-8"))
        place = content
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = value
        replaced(model / name, json.dumps(content))

    return damage


def tensor_with(name: str, tensor: str, value: float) -> Damage:
    def damage(model: Path) -> None:
        arrays = dict(load_file(model / name))
        arrays[tensor] = arrays[tensor].float()
        arrays[tensor].reshape(-1)[-1] = value
        (model / name).unlink()
        save_file(arrays, model / name)

    return damage


def tensor_cut(name: str, tensor: str, rows: int = 4) -> Damage:
    def damage(model: Path) -> None:
        arrays = dict(load_file(model / name))
        arrays[tensor] = arrays[tensor][:rows].clone()
        (model / name).unlink()
        save_file(arrays, model / name)

    return damage


def with_content(name: str, content: str | bytes) -> Damage:
    return lambda model: replaced(model / name, content)


def as_pipe(name: str) -> Damage:
    return lambda model: ((model / name).unlink(), os.mkfifo(model / name))


def as_link(name: str, to: str) -> Damage:
    return lambda model: ((model / name).unlink(), (model / name).symlink_to(to))


def pattern(text: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"Regex": text}, "content": "x"}


CONFIG = f"{ENCODER}/config.json"
# damage -> parts of the sentence: the file, and what is wrong
TABLE: dict[str, tuple[Damage, tuple[str, ...]]] = {
    "weights NaN": (tensor_with(WEIGHTS, BIAS, np.nan), (WEIGHTS, BIAS)),
    "vectors NaN": (tensor_with(VECTORS, "vectors", np.nan), (VECTORS, "vectors")),
    "memory NaN": (tensor_with(RANKER_EN, "memory.vectors", np.nan), ("en.safetensors", "memory.vectors")),
    "guard NaN": (tensor_with("guard/space.safetensors", "weights", np.nan), ("space.safetensors", "weights")),
    "alpha NaN": (json_with(REPLIES, "alpha", value=NAN), (REPLIES, "alpha")),
    "alpha too large": (json_with(REPLIES, "alpha", value=1e38), (REPLIES.rpartition("/")[0], "alpha")),
    "reply no text": (json_with(REPLIES, "replies", 3, value=7), ("replies", "texts")),
    "replies nested": (with_content(REPLIES, "[" * 100_000), (REPLIES, "damaged")),
    "places beyond the memory": (tensor_with(RANKER_EN, "remembered", 99_999), ("en.safetensors",)),
    "axes of another width": (tensor_cut(RANKER_EN, "memory.axes"), ("en.safetensors", "another width")),
    "fewer vectors than tokens": (tensor_cut(WEIGHTS, WORDS), ("tokens, but vectors of 4",)),
    "guard of fewer columns": (tensor_cut("guard/space.safetensors", "bias"), ("guard", "damaged")),
    "guard of another encoder": (tensor_cut("guard/space.safetensors", "weights", 16_500), ("another encoder",)),
    "temperature NaN": (json_with(RANKER, "temperature", value=NAN), (RANKER, "temperature")),
    "temperature 0": (json_with(RANKER, "temperature", value=0), (RANKER, "temperature 0")),
    "ranker weight text": (json_with(RANKER, "weights", "en", "direct", value="much"), (RANKER, "much")),
    "ranker weight beyond float": (json_with(RANKER, "weights", "en", "direct", value=10**400), (RANKER, "weights.en")),
    "trigger infinite": (json_with(RANKER, "trigger", "bias", value=float("-inf")), (RANKER, "trigger.bias")),
    "10^9 layers": (json_with(CONFIG, "num_hidden_layers", value=10**9), (CONFIG, "layers is 1,000,000,000,")),
    "10^12 wide": (json_with(CONFIG, "hidden_size", value=10**12), (CONFIG, "hidden_size", "1,000,000,000,000")),
    "large pooling": (json_with(POOLING, "embedding_dimension", value=10**12), (POOLING, "embedding_dimension")),
    "prompt of 50 MB": (json_with(PROMPTS, "prompts", "query", value="a " * 25_000_000), (PROMPTS, "expected at most")),
    "tokenizer of 50 MB": (json_with(TOKENIZER, "added", value="a " * 25_000_000), (TOKENIZER, "expected at most")),
    "catastrophic normalizer": (json_with(TOKENIZER, "normalizer", value=pattern(r"(\w+\s?)+$")), (TOKENIZER, "retry")),
    "catastrophic split": (
        json_with(
            TOKENIZER, "pre_tokenizer",
            value={"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False},
        ),
        (TOKENIZER, "retry"),
    ),
    "no expression": (json_with(TOKENIZER, "normalizer", value=pattern("(")), (TOKENIZER, "damaged")),
    "tokenizer a pipe": (as_pipe(TOKENIZER), (TOKENIZER, "regular file")),
    "weights endless": (as_link(WEIGHTS, "/dev/zero"), (WEIGHTS, "regular file")),
    "record endless": (lambda model: (model / "run.json").symlink_to("/dev/zero"), ("run.json", "regular file")),
    "record nested": (lambda model: (model / "run.json").write_text("[" * 100_000), ("run.json", "damaged")),
    "a link to nothing": (as_link(VECTORS, "nowhere"), (VECTORS, "No such file")),
    "weights cut": (with_content(WEIGHTS, (SHIPPED / WEIGHTS).read_bytes()[:9999]), (WEIGHTS, "damaged")),
    "configuration nested": (with_content(CONFIG, "[" * 100_000), (CONFIG, "damaged")),
    "configuration a list": (with_content(POOLING, "[]"), (POOLING, "expected a JSON object")),
}  # fmt: skip


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return linked(SHIPPED, tmp_path_factory.mktemp("sound") / "model")


@pytest.fixture
def model(sound: Path, tmp_path: Path) -> Path:
    return shutil.copytree(sound, tmp_path / "model", symlinks=True)


def test_a_sound_copy_of_links_answers(model: Path, mrs: Mrs) -> None:
    done = mrs("suggest", "--model", model, "--language", "en", "Are you coming to dinner tonight?", cwd=model)
    assert (done.returncode, done.stdout.count("\n")) == (0, 4)


@pytest.mark.parametrize("name", TABLE)
def test_a_damaged_model_gets_one_sentence(name: str, model: Path, mrs: Mrs) -> None:
    """In a process of its own where a fault could hang or abort it."""
    damage, parts = TABLE[name]
    damage(model)
    message = "Are you coming to dinner tonight?"
    if "regular file" in parts or "retry" in parts:
        done = mrs("suggest", "--model", model, "--language", "en", message, cwd=model)
        sentence = refused((done.returncode, done.stdout, done.stderr))
    else:
        with pytest.raises(InputError) as caught:
            Suggester.from_pretrained(model).suggest([message], "en")
        sentence = str(caught.value)
    assert all(part in sentence for part in parts), sentence
    assert len(sentence) < 500
    assert "\n" not in sentence


@pytest.mark.parametrize(
    "arguments",
    [("serve", "--port", 0, "--model"), ("models", "index", "--check"), ("models", "card"), ("models", "guard")],
    ids=lambda words: " ".join(map(str, words)),
)
def test_every_command_that_opens_a_model_refuses_a_pipe(arguments: tuple[object, ...], model: Path, mrs: Mrs) -> None:
    os.mkfifo(model / "run.json")
    done = mrs(*arguments, model, cwd=model)
    assert done.returncode in (2, 3), "3 is that of a server that cannot start"
    assert "Traceback" not in done.stderr
    assert "run.json" in done.stderr


# --- models that load through transformers


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained retriever that the library computes, and an untrained generator."""
    folder = tmp_path_factory.mktemp("others")
    retriever = untrained_retriever(folder, ["yes", "no", "maybe", "see you"], ["en"])
    (part,) = (
        path.parent for path in retriever.glob("query*/config.json") if (path.parent / "tokenizer.json").exists()
    )
    json_with("config.json", "hidden_act", value="gelu_new")(part)
    retriever.rename(folder / "retriever")
    make_run(folder / "generator", 1, ("en",))
    return folder


@pytest.mark.parametrize("kind", ["retriever", "generator"])
@pytest.mark.parametrize(
    ("damage", "part"),
    [
        (json_with("config.json", "vocab_size", value=10**10), "vocab_size"),
        ("layers", "10,000,000,000"),
        (lambda place: _last_tensor_with_nan(place), "NaN"),
        (json_with("tokenizer.json", "normalizer", value=pattern("(a+)+$")), "tokenizer"),
        (as_pipe("tokenizer.json"), "regular file"),
    ],
    ids=["vocabulary", "layers", "NaN", "expression", "pipe"],
)
def test_models_of_transformers_are_refused_too(
    kind: str, damage: Damage | str, part: str, others: Path, tmp_path: Path, mrs: Mrs
) -> None:
    model = shutil.copytree(others / kind, tmp_path / "model")
    place = next(path.parent for path in sorted(model.rglob("tokenizer.json")))
    if damage == "layers":
        layers = "num_hidden_layers" if kind == "retriever" else "encoder_layers"
        damage = json_with("config.json", layers, value=10**10)
    assert callable(damage)
    damage(place)
    if part in ("tokenizer", "regular file"):  # which could hang or abort
        done = mrs("suggest", "--model", model, "--language", "en", "see you", cwd=model)
        assert part in refused((done.returncode, done.stdout, done.stderr))
    else:
        with pytest.raises(InputError, match=part):
            Suggester.from_pretrained(model)


def test_a_search_that_would_fill_the_memory_is_refused(others: Path, tmp_path: Path) -> None:
    model = shutil.copytree(others / "generator", tmp_path / "model")
    json_with("generator.json", "decoding", "beams", value=10**9)(model)
    with pytest.raises(InputError, match=r"generator\.json: beams is 1,000,000,000, expected at most 1,000"):
        Suggester.from_pretrained(model)


@pytest.mark.parametrize("kind", ["retriever", "generator"])
def test_sound_models_of_transformers_answer(kind: str, others: Path) -> None:
    assert Suggester.from_pretrained(others / kind, guard=False).suggest(["see you"], "en")[0]


def _last_tensor_with_nan(place: Path) -> None:
    tensor = sorted(load_file(place / "model.safetensors"))[-1]
    tensor_with("model.safetensors", tensor, np.nan)(place)


# --- the border itself


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_of_every_type_are_examined(kind: str, value: float, tmp_path: Path) -> None:
    numbers = torch.full((1_100_000,), 3e4, dtype=getattr(torch, kind))  # more than are looked at together
    save_file({"sound": numbers, "names": torch.full((9,), 255, dtype=torch.uint8)}, tmp_path / "a.safetensors")
    open_model_folder(tmp_path)
    numbers[-1] = value
    save_file({"last": numbers}, tmp_path / "b.safetensors")
    with pytest.raises(InputError, match=r"b\.safetensors: the tensor last has NaN or infinite numbers"):
        open_model_folder(tmp_path)


def test_only_files_of_the_model_are_looked_at_and_very_many_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "checkpoint-9").mkdir()
    os.mkfifo(tmp_path / "checkpoint-9" / "pipe")
    (tmp_path / "curves.json").write_text('{"loss": NaN}')
    open_model_folder(tmp_path)
    monkeypatch.setattr(model_folder, "MOST_FILES", 3)
    for number in range(4):
        (tmp_path / f"{number}.txt").touch()
    with pytest.raises(InputError, match="more than 3 files"):
        open_model_folder(tmp_path)


def test_scores_that_overflow_are_refused(model: Path, mrs: Mrs) -> None:
    """Each number is finite, and their products are not."""
    replaced(model / RANKER, json.dumps({"names": ["direct"], "choice": "top", "weights": {}}))
    arrays = dict(load_file(model / VECTORS))
    signs = np.random.default_rng(0).choice([-3e38, 3e38], arrays["vectors"].shape)
    arrays["vectors"] = torch.from_numpy(signs.astype(np.float32))
    (model / VECTORS).unlink()
    save_file(arrays, model / VECTORS)
    done = mrs("suggest", "--model", model, "--language", "en", "Are you coming to dinner tonight?", cwd=model)
    assert "not finite" in refused((done.returncode, done.stdout, done.stderr))
