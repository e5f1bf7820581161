"""MRS in MTEB: the tasks have the examples and pools of a run, and give its figures to the last digit."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from mrs_datasets.prepared.prepared import PreparedData, open_prepared
from mrs_metrics.significance import bootstrap_interval
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.baselines import read_baselines
from mrs_suggest.common.text.text import normalise_reply
from mrs_suggest.evaluation.language_data import EVALUATION_SEED, load_language
from mrs_suggest.evaluation.results import EvaluationConfig, evaluate_system, reply_pools, summary
from mrs_suggest.integrations.mteb.tasks import reranking_questions, retrieval_questions
from tests import warm_python

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

SAMPLE = "everyday-retriever"


def run_figures(model: SentenceTransformer, data: PreparedData, language: str) -> tuple[dict[str, Any], str]:
    """What the evaluation of a training run finds, and its signature."""
    from mrs_suggest.models.retrieval.encode import encode_replies
    from mrs_suggest.suggest.index.response_index import ResponseIndex
    from mrs_suggest.suggest.retrieval_suggester import Retriever

    part = load_language(data, language, {}, EVALUATION_SEED)
    replies = part.responses.replies
    index = ResponseIndex.build(lambda texts: encode_replies(model, texts), replies)
    rows = (list(part.test["message"]), list(part.test["reply"]))
    system = Retriever(model, {language: index})
    result = evaluate_system(system, language, *rows, replies, EVALUATION_SEED, EvaluationConfig())
    return summary([result], EVALUATION_SEED, intervals=False), result.signatures["response_ranking"]


# --- the examples


def test_reranking_has_the_pools_of_a_run_and_hides_where_the_reply_is() -> None:
    data = open_prepared("sample")
    questions = reranking_questions(data, "nl", "test", seed=7)
    references = list(data.load("nl", "test")["reply"])
    candidates, targets, pools = reply_pools(references, list(data.load("nl-responses", "train")["reply"]), 7)
    assert questions.replies == candidates
    assert questions.messages == list(data.load("nl", "test")["message"])
    assert questions.pools is not None
    assert questions.pools.shape == (len(references), 100)
    assert [set(row) for row in questions.pools.tolist()] == [set(row) for row in pools.tolist()]
    assert (np.diff(questions.pools, axis=1) > 0).all()
    assert [normalise_reply(candidates[n]) for n in targets] == [normalise_reply(reply) for reply in references]


def prepared_folder(folder: Path, test: list[tuple[str, str]], responses: list[str]) -> PreparedData:
    """The files of a prepared folder that the tasks read."""
    from datasets import Dataset, Features, Value

    for config, split, columns in (
        ("en", "test", {"message": [m for m, _ in test], "reply": [r for _, r in test]}),
        ("en-responses", "train", {"reply": responses, "cluster": [str(n) for n in range(len(responses))]}),
    ):
        (folder / "data" / config).mkdir(parents=True, exist_ok=True)
        features = Features({name: Value("string") for name in columns})
        Dataset.from_dict(columns, features).to_parquet(folder / "data" / config / f"{split}-00000-of-00001.parquet")
    return open_prepared(str(folder))


def test_retrieval_leaves_out_what_the_set_lacks_and_has_each_form_once(tmp_path: Path) -> None:
    test = [("Coming?", "yes"), ("Coming?", "No!"), ("Lunch?", "Noon."), ("Really?", "Yes.")]
    data = prepared_folder(tmp_path, test, ["Yes!", "Maybe", "yes", "no"])
    questions = retrieval_questions(data, "en", "test")
    assert questions.replies == ["Yes!", "Maybe", "no"]
    assert questions.messages == ["Coming?", "Coming?", "Really?"]
    assert questions.targets.tolist() == [0, 2, 0]
    assert questions.pools is None


def test_a_split_without_a_reply_of_the_set_is_refused(tmp_path: Path) -> None:
    data = prepared_folder(tmp_path, [("Coming?", "yes")], ["Maybe"])
    with pytest.raises(InputError, match="no reply of the test split of en is in the response set"):
        retrieval_questions(data, "en", "test")
    empty = prepared_folder(tmp_path / "empty", [], ["Maybe"])
    with pytest.raises(InputError, match="the test split of en is empty; leave en out"):
        reranking_questions(empty, "en", "test", 0)


def test_a_missing_extra_is_named(tmp_path: Path) -> None:
    script = """
import sys
sys.modules["mteb"] = sys.modules["torchmetrics"] = None
for use in ("mteb.tasks", "mteb.retrievers", "torchmetrics_adapter"):
    try:
        __import__(f"mrs_suggest.integrations.{use}")
    except Exception as error:
        print(type(error).__name__, error)
"""
    done = warm_python.run([sys.executable, "-c", script], cwd=tmp_path, merged=True)
    assert [re.findall(r"MissingExtraError|\.\[\w+\]", line) for line in done.stdout.splitlines()] == [
        ["MissingExtraError", ".[mteb]"],
        ["MissingExtraError", ".[mteb]"],
        ["MissingExtraError", ".[torchmetrics]"],
    ]


# --- in MTEB


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a plain sentence-transformers model, untrained, whose vectors have length 1.

    Its vocabulary tells the texts apart: those that are equal to it would be ranked by rounding, which depends on batch
    and processor.
    """
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

    from mrs_suggest.models.retrieval.tiny import build_tiny

    folder = tmp_path_factory.mktemp("mteb")
    rows = [row for code in ("sv", "nl") for row in open_prepared("sample").load(code, "test")]
    texts = [text for row in rows for text in (row["message"], row["reply"])]
    module = Transformer(str(build_tiny(texts, folder / "bert", seed=2, vocabulary=4000)))
    model = SentenceTransformer(
        modules=[module, Pooling(module.get_embedding_dimension(), "mean"), Normalize()], device="cpu"
    )
    model.save_pretrained(str(folder / "model"), create_model_card=False)
    return folder / "model"


def test_both_tasks_on_a_tiny_model_give_the_figures_of_a_run(tiny: Path) -> None:
    mteb = pytest.importorskip("mteb")
    from mrs_suggest.integrations.mteb.retrievers import load_retriever
    from mrs_suggest.integrations.mteb.tasks import mrs_tasks

    model, data = load_retriever(str(tiny)), open_prepared("sample")
    found = mteb.evaluate(model, mrs_tasks("sample", ["sv", "nl"]), cache=None, show_progress_bar=False)
    scores = {
        (result.task_name, part["hf_subset"]): part for result in found.task_results for part in result.scores["test"]
    }
    assert len(scores) == 4
    for language in ("sv", "nl"):
        figures, signature = run_figures(model.model, data, language)
        reranking = scores["MrsReplyReranking", language]
        assert reranking["main_score"] == reranking["mrs_mrr"] == figures["mrr"]
        assert reranking["mrs_p_at_1"] == figures["p@1"]
        assert reranking["mrs_macro_mrr"] == figures["macro_mrr"]
        assert float(reranking["mrs_exact"]["mrr"]) == figures["mrr"]
        assert reranking["mrs_signature"] == signature
        assert reranking["mrr_at_1000"] == pytest.approx(figures["mrr"], abs=1e-12)  # MTEB's own, without ties
        retrieval = scores["MrsReplyRetrieval", language]
        assert retrieval["main_score"] == pytest.approx(retrieval["mrr_at_1000"], abs=1e-12)
        assert "absent:skip" in retrieval["mrs_signature"]


def test_equal_scores_count_against_the_model_and_unfound_replies_as_zero() -> None:
    pytest.importorskip("mteb")
    from mrs_suggest.integrations.mteb.tasks import mrs_tasks

    retrieval, reranking = mrs_tasks("sample", ["es"])
    right = {"a": {"reply-2": 1}, "b": {"reply-0": 1}, "c": {"reply-5": 1}}
    results = {
        "a": {"reply-1": 0.5, "reply-2": 0.5, "reply-0": 0.5, "reply-3": 0.1},  # third of three equal ones
        "b": {"reply-1": 0.5, "reply-0": 0.75},
        "c": {"reply-1": 0.5, "reply-2": 0.5},
    }
    messages = {"id": ["a", "b", "c"], "text": ["hi", "hi", "bye"]}
    for task in (retrieval, reranking):
        task.dataset = {"es": {"test": {"queries": messages}}}
    figures = retrieval.task_specific_scores({}, right, results, "test", "es")
    assert figures["mrs_mrr"] == (1 / 3 + 1 + 0) / 3
    assert (figures["mrs_n"], figures["mrs_p_at_1"]) == (3, 1 / 3)
    assert figures["mrs_interval"] == bootstrap_interval([1 / 3, 1, 0], units=messages["text"]).ends
    assert "|unit:message|" in figures["mrs_signature"]
    pooled = reranking.task_specific_scores({}, right, results, "test", "es")
    assert "pool:4|of:references|seed:42" in pooled["mrs_signature"]


def test_wrong_data_and_models_get_a_sentence(tmp_path: Path) -> None:
    pytest.importorskip("mteb")
    from mrs_suggest.integrations.mteb.retrievers import load_retriever
    from mrs_suggest.integrations.mteb.tasks import mrs_tasks

    with pytest.raises(InputError, match="no such folder; pass a prepared folder"):
        mrs_tasks(str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="sample: no pairs in xx zz; the data have en es"):
        mrs_tasks("sample", ["en", "xx", "zz"])
    with pytest.raises(InputError, match="split 'train': expected one of test validation"):
        mrs_tasks("sample", split="train")
    with pytest.raises(InputError, match=r"no sentence-transformers model \(no modules.json\)"):
        load_retriever(str(tmp_path))


@pytest.mark.integration
def test_the_command_of_mteb_runs_the_shipped_retriever(tmp_path: Path, repository: Path) -> None:
    pytest.importorskip("mteb")
    from mrs_suggest.models.retrieval.dual_encoder import load_dual_encoder

    page = (repository / "docs" / "integrations.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^\$ python (-m mrs_suggest.integrations\.mteb run .*)$", page, re.MULTILINE)
    done = warm_python.run([sys.executable, *shlex.split(shown)], cwd=tmp_path, merged=True, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:]
    (written,) = tmp_path.glob("build/mteb/results/local__everyday-retriever/*/MrsReplyReranking.json")
    (scores,) = json.loads(written.read_text(encoding="utf-8"))["scores"]["test"]
    model = load_dual_encoder(read_baselines()[SAMPLE].folder)
    figures, signature = run_figures(model, open_prepared("sample"), "es")
    assert (scores["hf_subset"], scores["main_score"]) == ("es", round(figures["mrr"], 6))  # as MTEB writes all scores
    exact = {name: float(text) for name, text in scores["mrs_exact"].items()}
    assert exact == {name: figures[name] for name in ("mrr", "p@1", "macro_mrr")}
    assert scores["mrs_signature"] == signature

    for words, told in (
        (("--data", "nowhere", "-m", SAMPLE), "nowhere: no such folder"),
        (("-m", "nowhere"), "nowhere: no such folder, and no baseline of that name"),
        (("-m", "org/nowhere"), "org/nowhere: cannot load: the hub cannot be reached"),
    ):
        command = [sys.executable, "-m", "mrs_suggest.integrations.mteb", "run", *words]
        wrong = warm_python.run(command, cwd=tmp_path, merged=True)
        assert wrong.returncode == 2
        assert wrong.stdout.startswith(f"mrs_suggest.integrations.mteb: {told}")
