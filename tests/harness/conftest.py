"""Small data sets with test splits of known texts, and a model; each harness reads all of it from the environment."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mrs_datasets.prepared.prepare import prepare, prepare_mrs
from tests.causal_model import make_causal_model

Harness = Callable[..., "subprocess.CompletedProcess[str]"]
# The model writes these words in some order, one or two on a line, so it hits some of everything.
WORDS = ["pão", "fruta", "arroz", "carne", "peixe", "queijo", "sopa", "bolo", "água", "leite", "café", "sal"]
REPLIES = tuple(f"{first} {second}" for first, second in zip(WORDS[:6], WORDS[6:], strict=True))


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment variable -> a prepared folder; and MODEL."""
    folder = tmp_path_factory.mktemp("harness")
    (folder / "pairs").mkdir()
    pairs = [f"¿mensaje {n} de hoy?\t{REPLIES[(n + k) % 6]}\n" for n in range(60) for k in range(3)]
    (folder / "pairs" / "es.tsv").write_text("".join(pairs), encoding="utf-8")
    prepare_mrs(str(folder / "pairs"), folder / "mrs")
    for split in ("val", "test"):
        path = folder / "xcopa" / "data" / "et" / f"{split}.et.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = [
            {
                "premise": f"{split} sentence {n}.", "choice1": f"{REPLIES[n % 6]}.",
                "choice2": f"{REPLIES[n % 5]} {n}.",
                "question": ("cause", "effect")[n % 2], "label": n % 2, "idx": n, "changed": False,
            }
            for n in range(11)
        ]  # fmt: skip
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    prepare("xcopa", [str(folder / "xcopa")], folder / "xcopa-data")
    (folder / "staple" / "en_pt").mkdir(parents=True)
    for split in ("train", "dev", "test"):
        accepted = ["".join(f"{WORDS[(n + k) % 12]}|0.125\n" for k in range(8)) for n in range(8)]  # most of the words
        prompts = [f"prompt_{n:032x}|{split} {n}\n{words}" for n, words in enumerate(accepted)]
        (folder / "staple" / "en_pt" / f"{split}.en_pt.toy.gold.txt").write_text("\n".join(prompts), encoding="utf-8")
    prepare("staple", [str(folder / "staple")], folder / "staple-data")
    texts = [f"{text}\n" for text in (*REPLIES, *WORDS)]
    return {
        "MRS_DATA": str(folder / "mrs"),
        "XCOPA_DATA": str(folder / "xcopa-data"),
        "STAPLE_DATA": str(folder / "staple-data"),
        "MODEL": str(make_causal_model(folder / "model", texts)),
    }


@pytest.fixture(scope="session")
def harness(repository: Path, places: dict[str, str]) -> Harness:
    """Return a function that runs a harness's own command in its environment; skip the test where that is not built."""

    def run(name: str, *arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
        command = repository / "build" / "harness" / name / "bin" / name
        if not command.exists():
            pytest.skip(f"needs {command} (make test-harnesses)")
        environment = {**os.environ, **places, "OMP_NUM_THREADS": "1", **variables}
        return subprocess.run([command, *arguments], cwd=cwd, env=environment, capture_output=True, text=True)

    return run
