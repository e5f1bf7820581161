"""The metrics as Spaces: published to the loopback hub, loaded from there, and their pages in a browser."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mrs_metrics.distinct import distinct_n, distinct_signature
from mrs_metrics.rouge import aggregate, prepare_official, score_examples
from mrs_metrics.spaces import metric_names, space_files
from mrs_metrics.tokenize import get_tokenizer
from tests import warm_python
from tests.browser import SERVED_AT, ask, open_browser, quiet_environment, running
from tests.cases import cases
from tests.command import released
from tests.hub.fixtures import Client
from tests.hub.server import LoopbackHub

pytestmark = pytest.mark.integration

EXAMPLES: dict[str, tuple[list[list[str]], list[str]]] = cases(__file__, "EXAMPLES")
LOAD = """
import evaluate, json, sys
found = {}
for language, (predictions, references) in json.loads(sys.argv[1]).items():
    given = {"predictions": predictions, "references": references, "language": language}
    found[language] = [evaluate.load(f"org/{name}").compute(**given) for name in ("mrs_rouge", "dist_n")]
answer = lambda texts: [("de", 0.9)] * len(texts)
row = {"text": "sim", "weight": 1.0}
others = {
    "self_rouge": dict(predictions=[["Yes, of course", "Yes, of course"]]),
    "reply_bleu": dict(predictions=[["See you tomorrow then"]], references=["See you tomorrow then"]),
    "reply_perplexity": dict(predictions=[[0.0, 0.0]]),
    "response_ranking": dict(predictions=[[0.2, 0.9]], references=[1]),
    "simulated_clicks": dict(predictions=[["Yes, of course"]], references=["yes of course"]),
    "weighted_f1": dict(predictions=[["Sim!"]], references=[[row]]),
    "xglue_score": dict(predictions=[["DET"]], references=[["DET"]], task="POS"),
    "wrong_language": dict(predictions=[["Bis morgen dann!"]], language="de", identify=answer),
}
main = dict(self_rouge="normalised", reply_bleu="bleu", reply_perplexity="perplexity", response_ranking="mrr",
            weighted_f1="weighted_macro_f1", xglue_score="score", wrong_language="wrong", simulated_clicks="clicked")
found["others"] = {name: evaluate.load(f"org/{name}").compute(**given)[main[name]] for name, given in others.items()}
both = evaluate.combine([evaluate.load("org/mrs_rouge"), evaluate.load("org/self_rouge")])
found["combined"] = sorted(both.compute(predictions=[["a", "b"]], references=["a"], language="en"))
print(json.dumps([found, [module for module in sys.modules if module.split(".")[0].startswith("mrs_")]]))
"""


def publish(
    hub: LoopbackHub, folder: Path, *arguments: str, token: bool = True, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `mrs metrics publish` in a process of its own; no output may show the token."""
    command = [sys.executable, "-m", "mrs_suggest.cli.main", "metrics", "publish", *arguments]
    env = {**hub.env(folder / "publisher", token=token), **environment}
    done = warm_python.run(command, cwd=folder, env=env)
    assert env.get("HF_TOKEN", hub.token) not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return done


def test_published_metrics_give_the_local_scores(hub: LoopbackHub, hub_client: Client, tmp_path: Path) -> None:
    done = publish(hub, tmp_path, "org")
    assert done.returncode == 0, done.stderr
    heads = {name: hub.repo("space", f"org/{name}").commits()[0] for name in metric_names()}
    assert done.stdout.splitlines() == [
        f'published org/{name} at {head.sha[:12]}: evaluate.load("org/{name}")' for name, head in heads.items()
    ]
    for name in heads:
        space = hub.repo("space", f"org/{name}")
        files = space_files(name, "org")
        assert {file: space.text(file) for file in files} == {file: text.decode() for file, text in files.items()}
        assert set(space.files()) == {*files, ".gitattributes"}
        assert len(space.commits()) == 2, "the hub's own first commit, and one of ours"
        assert not space.private
    scored, ours = json.loads(hub_client(LOAD, json.dumps(EXAMPLES), token=False).stdout.splitlines()[-1])
    assert ours == [], "the Spaces must do without this package"
    assert scored.pop("others") == {
        "self_rouge": 1.0, "reply_bleu": 100.0, "reply_perplexity": 1.0, "response_ranking": 1.0, "weighted_f1": 1.0,
        "xglue_score": 1.0, "wrong_language": 0.0, "simulated_clicks": 1.0,
    }  # fmt: skip
    assert {"weighted", "self_rouge", "mrs_rouge_signature", "self_rouge_signature"} <= set(scored.pop("combined"))
    for language, (predictions, references) in EXAMPLES.items():
        scores = score_examples(predictions, references, language=language)
        tokenizer = get_tokenizer(language)
        tokens = [prepare_official(text, tokenizer).tokens for texts in predictions for text in texts]
        rouge, dist = scored[language]
        assert rouge == {**aggregate(scores), "skipped": scores.skipped, "signature": released(scores.signature)}
        assert (dist["dist1"], dist["dist2"]) == (distinct_n(tokens, 1), distinct_n(tokens, 2))
        assert dist["signature"] == released(distinct_signature(max(map(len, predictions)), tokenizer, language))
    assert scored["en"][0]["weighted"] > 0.3


def test_publishing_again_changes_nothing_or_makes_one_commit(hub: LoopbackHub, tmp_path: Path) -> None:
    assert publish(hub, tmp_path, "org", "dist_n", "--private").returncode == 0
    space = hub.repo("space", "org/dist_n")
    first = space.commits()[0].sha
    content = {file: space.text(file) for file in space.files()}
    assert space.private
    assert ("space", "org/mrs_rouge") not in hub.repositories
    again = publish(hub, tmp_path, "org", "dist_n")
    assert (again.returncode, first[:12] in again.stdout) == (0, True)
    assert space.commits()[0].sha == first, "nothing was new: no commit"
    space.write("tokenize.py", "an older release left this\n")
    space.write("dist_n.py", "changed by hand\n")
    before = len(space.commits())
    assert publish(hub, tmp_path, "org", "dist_n").returncode == 0
    assert len(space.commits()) == before + 1
    assert {file: space.text(file) for file in space.files()} == content
    assert space.private, "what exists keeps its visibility"


# --- the page -------------------------------------------------------------------------------------------------------


@contextmanager
def served(name: str, folder: Path, proxy: str) -> Iterator[str]:
    """Serve a Space's page as the hub does, `python app.py` in its folder; yield its address."""
    if importlib.util.find_spec("gradio") is None:
        pytest.skip("needs gradio: pip install '.[spaces]'")
    space = folder / "app"  # as on the hub: the folder is not called what the metric is called
    space.mkdir()
    for file, content in space_files(name, "org").items():
        (space / file).write_bytes(content)
    with running([sys.executable, "app.py"], SERVED_AT, cwd=space, env=quiet_environment(folder, proxy)) as url:
        yield url
    assert {path.name for path in space.iterdir()} == set(space_files(name)), "serving must leave nothing behind"


def score_by_api(url: str, *inputs: str) -> tuple[str, Any]:
    """Call the page's function by gradio's API: (complete or error, data)."""
    event = json.loads(ask(f"{url}/gradio_api/call/score", {"data": inputs}))["event_id"]
    lines = [line for line in ask(f"{url}/gradio_api/call/score/{event}").splitlines() if line]
    return lines[-2].removeprefix("event: "), json.loads(lines[-1].removeprefix("data: "))


def test_the_page_of_mrs_rouge_scores_and_explains_errors(tmp_path: Path, outside: tuple[str, list[str]]) -> None:
    """By its API and in a browser. `MRS_SCREENSHOT=docs/space_mrs_rouge.png pytest -k page_of_mrs_rouge` takes the
    picture of docs/metrics.md."""
    suggestions = ["Thanks a lot!", "See you tomorrow!"]
    reply = "Thank you, see you tomorrow!"
    with served("mrs_rouge", tmp_path, outside[0]) as url:
        for inputs, sentence in [
            (("", reply, "en"), "Type at least one suggestion."),
            (("yes", " ", "en"), "Type the real reply"),
            (("yes", "...", "en"), "No examples are left to score"),
        ]:
            event, data = score_by_api(url, *inputs)
            assert (event, sentence in data["error"]) == ("error", True), data
        event, (figures, signature) = score_by_api(url, "\n\n ".join(suggestions), reply, "en")
        scores = score_examples([suggestions], [reply], language="en")
        expected = aggregate(scores)
        del expected["n"]
        assert event == "complete"
        assert figures == {**expected, "best_suggestion": "See you tomorrow!"}
        assert signature == released(scores.signature)
        assert "fonts.googleapis.com" not in ask(url)
        assert outside[1] == [], "the page called somebody"
        with open_browser(tmp_path / "profile") as browser:
            browser.open(url)
            browser.type("#suggestions textarea", "\n".join(suggestions))
            browser.type("#reply textarea", reply)
            browser.click("#score")
            assert browser.wait_for_value("#signature textarea") == signature
            shown = browser.text("#figures")
            picture = browser.screenshot()
            assert browser.called() == [], "the page called somebody"
    found = re.search(r"weighted\W+([\d.]+)", shown)
    assert found, shown
    assert float(found[1]) == expected["weighted"]
    assert "See you tomorrow!" in shown
    assert picture.startswith(b"\x89PNG")
    if target := os.environ.get("MRS_SCREENSHOT"):
        Path(target).write_bytes(picture)
