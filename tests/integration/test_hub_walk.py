"""The whole walk against the loopback hub, each client in a fresh process with a fresh cache.

prepare -> publish the data set -> load it -> train on it, push -> card, suggestions, vectors -> publish the metric ->
the same score as locally. And: a push that fails leaves the run whole, and says how to publish it.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mrs_suggest.common.text.predictions import read_predictions
from tests import warm_python
from tests.command import released
from tests.hub.server import LoopbackHub

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
MRS = (sys.executable, "-m", "mrs_suggest.cli.main")
TRAINER = (sys.executable, ROOT / "trainers" / "retrieval.py")
QUESTIONS = {
    "en": ("How is the {} of your neighbour?", "Did you see the {} last Sunday?", "Tell me about the {} again!"),
    "es": ("¿Qué tal {} de tu vecino?", "¿Has visto {} este domingo?", "¡Cuéntame otra vez lo de {}!"),
}
ANSWERS = {
    "en": ("Very good, thanks!", "No, not yet.", "There is not much to tell."),
    "es": ("¡Muy bien, gracias!", "No, todavía no.", "No hay mucho que contar."),
}
THINGS = (
    "train", "dinner", "dog", "meeting", "sister", "weather", "trip", "match", "phone", "exam", "cake", "bike", "boat",
    "garden", "piano", "jacket", "letter", "window", "kitchen", "bridge",
)  # fmt: skip
MESSAGES = {code: [question.format(t) for question in texts for t in THINGS] for code, texts in QUESTIONS.items()}
STEPS = [
    "--max_steps", 4, "--eval_steps", 2, "--save_steps", 2, "--logging_steps", 1, "--per_device_train_batch_size", 16,
    "--learning_rate", 1e-3, "--vocabulary", 400, "--ranker", "true",
]  # fmt: skip

LOAD = """
import json
from datasets import load_dataset
whole = {split: list(rows) for split, rows in load_dataset("org/mrs", "es").items()}
streamed = {split: list(rows) for split, rows in load_dataset("org/mrs", "es", streaming=True).items()}
print(json.dumps([whole, streamed]))
"""
CARD = """
import json
from huggingface_hub import ModelCard
card = ModelCard.load("org/m")
card.validate()
results = [dict(config=r.dataset_config, split=r.dataset_split, revision=r.dataset_revision, metric=r.metric_type,
                data=r.dataset_type, value=r.metric_value, signature=r.metric_args["signature"])
           for r in card.data.eval_results]
print(json.dumps([results, card.data.datasets, card.data.language, card.data.get("base_model"), card.text]))
"""
VECTORS = """
import json, sys
from sentence_transformers import SentenceTransformer
model = SentenceTransformer(sys.argv[1], device="cpu")
texts = ["¿Qué tal el viaje?", "Did you see it?"]
print(json.dumps([model.encode_query(texts).tolist(), model.encode_document(texts).tolist()]))
"""
SCORE = """
import evaluate, json, sys
predictions, references = json.loads(sys.argv[1])
rouge = evaluate.load("org/mrs_rouge")
print(json.dumps(rouge.compute(predictions=predictions, references=references, language="es")))
"""


class Walk:
    """Runs commands as clients of the hub."""

    def __init__(self, hub: LoopbackHub, folder: Path) -> None:
        self.hub, self.folder, self.count = hub, folder, 0

    def run(self, *command: object, code: int = 0, token: bool = True) -> subprocess.CompletedProcess[str]:
        """One command in a fresh process with an empty cache. No output shows the token or a traceback."""
        self.count += 1
        env = self.hub.env(self.folder / f"home-{self.count}", token=token)
        env |= {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
        done = warm_python.run(command, cwd=self.folder, env=env)
        assert self.hub.token not in done.stdout + done.stderr
        assert done.returncode == code, f"{done.stdout[-2000:]}\n{done.stderr[-5000:]}"
        return done

    def answer(self, source: str, *arguments: object) -> Any:
        """What Python source prints last, as JSON."""
        return json.loads(self.run(sys.executable, "-c", source, *arguments).stdout.splitlines()[-1])


@pytest.fixture
def walk(hub: LoopbackHub, tmp_path: Path) -> Walk:
    """A walk through an empty hub from a folder with `source/`: two languages of sixty messages each."""
    (tmp_path / "source").mkdir()
    for code, messages in MESSAGES.items():
        lines = [f"{text}\t{ANSWERS[code][n % 3]}\n" for n, text in enumerate(messages)]
        (tmp_path / "source" / f"{code}.tsv").write_text("".join(lines), encoding="utf-8")
    return Walk(hub, tmp_path)


def published(hub: LoopbackHub, kind: str, name: str) -> dict[str, bytes]:
    """The files of a repository that has one commit besides the hub's own first."""
    repo = hub.repo(kind, name)
    assert len(repo.commits()) == 2, [commit.title for commit in repo.commits()]
    files = {path: repo.read(path) for path in repo.files()}
    for path, data in files.items():
        assert hub.token.encode() not in data, path
    return files


def test_from_pairs_to_the_same_score(walk: Walk) -> None:
    hub, folder = walk.hub, walk.folder
    walk.run(*MRS, "data", "prepare", "mrs", "--source", folder / "source", "--out", folder / "data", token=False)
    assert "org/mrs" in walk.run(*MRS, "data", "publish", "data", "--repo", "org/mrs").stdout
    revision = hub.repo("dataset", "org/mrs").sha()
    data = published(hub, "dataset", "org/mrs")
    assert not [path for path, content in data.items() if str(folder).encode() in content]

    whole, streamed = walk.answer(LOAD)
    assert whole == streamed
    assert sorted(row["message"] for rows in whole.values() for row in rows) == sorted(MESSAGES["es"])
    assert whole.keys() == {"train", "validation", "test"}

    run = folder / "run"
    push = ["--push_to_hub", "true", "--hub_model_id", "org/m", "--output_dir", run]
    done = walk.run(*TRAINER, "--data", "org/mrs", *STEPS, *push)
    assert "published org/m at " + hub.repo("model", "org/m").sha()[:12] in done.stdout
    model = published(hub, "model", "org/m")
    assert {"README.md", "run.json", "curves.png", "modules.json"} < model.keys()
    assert [path for path in model if path.startswith("response_index/es/")]
    assert not [path for path in model if "checkpoint" in path or "predictions" in path]
    for path, content in model.items():
        leaked = [text for texts in MESSAGES.values() for text in texts if text.encode() in content]
        leaked += [text for texts in MESSAGES.values() for text in texts if json.dumps(text).encode() in content]
        assert leaked == [], f"{path} holds messages"
        assert str(folder).encode() not in content, f"{path} tells where the run lay"
    record = json.loads(model["run.json"])
    assert record["data"]["revision"] == revision

    results, datasets, languages, base, text = walk.answer(CARD)
    assert (datasets, languages, base) == (["org/mrs"], ["en", "es"], None)
    assert 'Suggester.from_pretrained("org/m")' in text
    rouge = {result["config"]: result for result in results if result["metric"] == "mrs_rouge"}
    assert rouge.keys() == {"en", "es"}
    for code, result in rouge.items():
        assert (result["data"], result["split"], result["revision"]) == ("org/mrs", "test", revision)
        assert result["signature"] == record["metrics"]["signatures"][code]["mrs_rouge"]
        assert f"lang:{code}" in result["signature"]
        assert result["value"] == pytest.approx(record["metrics"]["systems"]["Model"][code]["weighted"], abs=1e-6)

    ask = ["--language", "es", "--json", "¿Qué tal el viaje?"]
    answers = [json.loads(walk.run(*MRS, "suggest", "--model", name, *ask).stdout) for name in ("org/m", run)]
    assert len(answers[0]["suggestions"]) == 3
    assert answers[0]["suggestions"] == answers[1]["suggestions"]
    assert walk.answer(VECTORS, "org/m") == walk.answer(VECTORS, run)

    walk.run(*MRS, "metrics", "publish", "org", "mrs_rouge", "dist_n")
    for name in ("mrs_rouge", "dist_n"):
        published(hub, "space", f"org/{name}")
    rows = read_predictions(run / "predictions.es.tsv")
    given = [[list(row.suggestions) for row in rows], [row.reference for row in rows]]
    scored = walk.answer(SCORE, json.dumps(given))
    here = json.loads(
        walk.run(*MRS, "score", run / "predictions.es.tsv", "--language", "es", "--json", token=False).stdout
    )
    assert scored["weighted"] == here["weighted"] == record["metrics"]["systems"]["Model"]["es"]["weighted"]
    assert scored["signature"] == released(here["signature"]).replace("|unit:message", ""), "no units were given"
    assert len(hub.requests("POST", "/commit/")) == 4, "one commit each"


def test_a_push_that_fails_after_training_says_how_to_go_on(walk: Walk) -> None:
    hub, folder = walk.hub, walk.folder
    walk.run(*MRS, "data", "prepare", "mrs", "--source", "source", "--out", "data", token=False)
    hub.faults.add("POST", "/commit/", status=400, times=99)
    push = ["--push_to_hub", "true", "--hub_model_id", "org/m"]
    options = ["--data", folder / "data", "--output_dir", folder / "run", *STEPS]
    done = walk.run(*TRAINER, *options, *push, code=2)
    line = done.stderr.strip().splitlines()[-1]
    assert line.startswith("mrs train retrieval: org/m")
    assert "mrs models publish" in line, "running the same command again would train again"
    assert str(folder / "run") in line
    assert "Traceback" not in done.stderr
    hub.faults.clear()
    local = (folder / "run" / "README.md").read_bytes()
    walk.run(*MRS, "models", "publish", folder / "run", "--repo", "org/m")
    for path, content in published(hub, "model", "org/m").items():
        assert str(folder).encode() not in content, f"{path} tells where the run or the data lay"
    assert b'Suggester.from_pretrained("org/m")' in hub.repo("model", "org/m").read("README.md")
    walk.run(*MRS, "models", "card", folder / "run", token=False)
    assert (folder / "run" / "README.md").read_bytes() == local


def test_what_cannot_be_pushed_is_refused_before_training(walk: Walk) -> None:
    """An unpublishable run is no reason to throw the earlier one away either."""
    run = walk.folder / "run"
    run.mkdir()
    (run / "run.json").write_text("{}")
    (run / "README.md").write_text("kept")
    trainer = [*TRAINER, "--output_dir", run, "--overwrite", "true", *STEPS]
    for options, token, named in (
        ([], True, "--hub_model_id ORG/NAME"),
        (["--hub_model_id", "org/m"], False, "no token"),
    ):
        done = walk.run(*trainer, "--push_to_hub", "true", *options, code=2, token=token)
        assert named in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
        assert (run / "run.json").exists(), f"{options}: the finished run was removed, and nothing was trained"
    assert not walk.hub.requests("POST")


SAVE = """
from mrs_suggest import Suggester
suggester = Suggester.from_pretrained("org/own")
suggester.save_pretrained("saved")
assert Suggester.from_pretrained("saved", verify=True)("Are you coming?") == suggester("Are you coming?")
print(suggester.push_to_hub("org/again"))
"""
PUSH = """
from mrs_suggest import Suggester
suggester = Suggester.from_pretrained("everyday-retriever").set_replies(["On my way!", "Not today, sorry."], "en")
print(suggester.push_to_hub("org/own", commit_message="Own replies"))
"""


def test_a_suggester_is_pushed_and_loaded(hub: LoopbackHub, hub_client: Callable[..., Any]) -> None:
    commit = hub_client(PUSH).stdout.strip()
    files = published(hub, "model", "org/own")
    assert {"README.md", "run.json", "modules.json", "response_index/en/replies.json"} <= set(files)
    assert commit in {one.sha for one in hub.repo("model", "org/own").commits()}
    load = 'from mrs_suggest import Suggester; suggester = Suggester.from_pretrained("org/own"); '
    load += 'print(suggester("Are you coming?", min_score=0).replies)'
    assert sorted(json.loads(hub_client(load, home="other").stdout.replace("'", '"'))) == [
        "Not today, sorry.", "On my way!",
    ]  # fmt: skip
    assert hub_client(SAVE, home="other").stdout
    again = published(hub, "model", "org/again")
    assert {name for name in files if files[name] != again.get(name)} == {"README.md"}, "which names the repository"
    assert again.keys() == files.keys()
