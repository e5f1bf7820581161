"""Adapters on the hub: base, merged model and adapters are three repositories, and the last two answer alike."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from mrs_datasets.prepared.prepare import prepare_mrs
from mrs_suggest.common.text.predictions import read_predictions
from mrs_suggest.models.generation.tiny_generator import build_tiny_causal, build_tiny_generator
from mrs_suggest.models.retrieval.tiny import build_tiny
from tests.hub.server import LoopbackHub
from tests.hub.store import card_errors
from tests.integration.test_hub_walk import MRS, ROOT, Walk, published

pytestmark = pytest.mark.integration

THINGS = ("train", "dinner", "dog", "meeting", "sister", "weather", "trip", "match", "phone", "exam")
PAIRS = {
    "en": [(f"How is the {thing}?", f"The {thing} is fine.") for thing in THINGS],
    "es": [(f"¿Qué tal {thing}?", f"Muy bien el {thing}.") for thing in THINGS],
}
UPLOAD = """
import sys
from huggingface_hub import HfApi
HfApi().create_repo("org/base", exist_ok=True)
HfApi().upload_folder(repo_id="org/base", folder_path=sys.argv[1], commit_message="base")
"""
FAMILIES: dict[str, dict[str, Any]] = {
    "retrieval": {"options": ["--pooling", "mean"], "encoders": {"", "document/"}, "own": "response_index/"},
    "generation": {"options": ["--max_tokens", 8], "encoders": {""}, "own": "generator.json"},
    "causal": {"options": ["--max_tokens", 8], "encoders": {""}, "own": "generator.json"},
}
# As where this package is not installed.
WITHOUT_US = """
import sys
for name in "core metrics datasets models evaluation training cli trainers".split():
    sys.modules[f"mrs_{name}"] = None
"""
BASE_CARD = "---\nlicense: mit\n---\n# A base\n"
CLIENTS = {"retrieval": "sentence-transformers", "generation": "transformers", "causal": "transformers"}


@pytest.fixture
def walk(hub: LoopbackHub, tmp_path: Path) -> Walk:
    """A walk through an empty hub from a folder with prepared `data/`."""
    prepare_pairs(tmp_path)
    return Walk(hub, tmp_path)


def prepare_pairs(folder: Path) -> None:
    (folder / "source").mkdir()
    for code, pairs in PAIRS.items():
        lines = [f"{message}\t{reply}\n" for message, reply in pairs * 2]
        (folder / "source" / f"{code}.tsv").write_text("".join(lines), encoding="utf-8")
    prepare_mrs(str(folder / "source"), folder / "data")


def build_base(name: str, folder: Path, seed: int) -> Path:
    """A small checkpoint of the family, as if somebody had trained it."""
    texts = [text for pairs in PAIRS.values() for pair in pairs for text in pair] * 2
    if name == "retrieval":
        return build_tiny(texts, folder, seed, 300)
    build = build_tiny_causal if name == "causal" else build_tiny_generator
    return build(texts, ["en", "es"], folder, seed, 300)


def snippet(card: bytes) -> str:
    """The code of a card that needs the libraries alone."""
    blocks = re.findall(r"```python\n(.*?)```", card.decode(), re.DOTALL)
    (found,) = (code for code in blocks if "mrs_suggest" not in code)
    return WITHOUT_US + found


def check_card(walk: Walk, files: dict[str, bytes], relation: str, library: str) -> str:
    """What its snippet prints in a fresh process without our packages; its metadata are looked at."""
    text = files["README.md"].decode()
    assert card_errors(text, "model") == ([], [])
    data = yaml.safe_load(text.split("---\n")[1])
    assert (data["base_model"], data["base_model_relation"], data["license"]) == ("org/base", relation, "mit")
    assert data["library_name"] == library
    assert "datasets" not in data, "the data are on no hub"
    said = walk.run(sys.executable, "-c", snippet(files["README.md"])).stdout.strip()
    assert said
    return said


@pytest.mark.parametrize("name", FAMILIES)
def test_merged_model_and_adapters_answer_alike(name: str, walk: Walk) -> None:
    hub, family = walk.hub, FAMILIES[name]
    base = build_base(name, walk.folder / "base-1", 1)
    (base / "README.md").write_text(BASE_CARD, encoding="utf-8")
    walk.run(sys.executable, "-c", UPLOAD, base)
    run = walk.folder / "run"
    trainer = ROOT / "trainers" / f"{name}.py"
    walk.run(
        sys.executable, trainer, "--data", "data", "--output_dir", run, *family["options"],
        "--model_name_or_path", "org/base", "--peft", "lora", "--lora_rank", 4, "--learning_rate", 0.02,
        "--max_steps", 4, "--eval_steps", 2, "--save_steps", 2, "--per_device_train_batch_size", 8,
        "--push_to_hub", "true", "--hub_model_id", "org/merged",
    )  # fmt: skip
    walk.run(*MRS, "models", "publish", run, "--repo", "org/adapter", "--adapter")

    merged, adapter = published(hub, "model", "org/merged"), published(hub, "model", "org/adapter")
    assert json.loads(adapter["adapter.json"])["base"] == "org/base"
    assert {"README.md", "run.json", "adapter.json"} <= adapter.keys()
    assert [path for path in adapter if path.startswith(family["own"])]
    others = ("response_index/", "languages.safetensors", "guard/")
    weights = {path for path in adapter if path.endswith(".safetensors") and not path.startswith(others)}
    assert ("languages.safetensors" in adapter) == (name == "retrieval")
    assert weights == {f"{encoder}adapter_model.safetensors" for encoder in family["encoders"]}
    sizes = [sum(len(files[path]) for path in files if path.endswith("safetensors")) for files in (adapter, merged)]
    assert sizes[0] < sizes[1] / 4
    for files in (merged, adapter):
        assert not [path for path, content in files.items() if str(walk.folder).encode() in content]
    assert b'Suggester.from_pretrained("org/adapter")' in adapter["README.md"]
    for path in ("adapter/adapter.json", *(f"adapter/{encoder}adapter_config.json" for encoder in family["encoders"])):
        assert path in merged, "the merged model's repository has them, too"
    for files in (merged, adapter):
        listed = json.loads(files["run.json"])["files"]
        assert set(listed) <= set(files)
        assert all(path in listed for path in files if path.endswith((".safetensors", "config.json", "replies.json")))
    said = [
        check_card(walk, merged, relation="finetune", library=CLIENTS[name]),
        check_card(walk, adapter, relation="adapter", library="peft"),
    ]
    if name != "retrieval":
        assert said[0] == said[1], "base and adapter by peft write what the merged model does"

    rows = read_predictions(run / "predictions.es.tsv")
    ask = ["--language", "es", "--json", *(row.message for row in rows)]
    expected = [list(row.suggestions) for row in rows]
    assert expected
    scores = []
    for model in ("org/merged", "org/adapter"):
        done = walk.run(*MRS, "suggest", "--model", model, *ask, token=False)
        answers = [json.loads(line)["suggestions"] for line in done.stdout.splitlines()]
        assert [[found["reply"] for found in answer] for answer in answers] == expected, model
        scores.append([found["score"] for answer in answers for found in answer])
        assert "Traceback" not in done.stderr
    assert scores[1] == pytest.approx(scores[0], abs=1e-4)
    if name == "retrieval":
        # Other weights under the same name.
        walk.run(sys.executable, "-c", UPLOAD, build_base(name, walk.folder / "base-2", 2))
        done = walk.run(*MRS, "suggest", "--model", "org/adapter", *ask, code=2, token=False)
        assert "org/base has other weights than the base that the adapters were trained on" in done.stderr
    else:
        # As after a run from a local base: nobody else could load these adapters.
        path = run / "adapter" / "adapter.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "base": "./base-1"}))
        done = walk.run(*MRS, "models", "publish", run, "--repo", "org/other", "--adapter", code=2)
        assert "is a local folder; publish it, and train with its hub id." in done.stderr
    assert len([line for line in done.stderr.splitlines() if line.startswith("mrs ")]) == 1
