"""The classes of torchmetrics have the figures of the `evaluate` modules, to the last digit, on any number of ranks."""

import json
import pickle
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import warm_python

pytest.importorskip("torchmetrics")

import torch
from torchmetrics import MetricCollection

from mrs_metrics.modules.dist_n import DistN as EvaluateDistN
from mrs_metrics.modules.mrs_rouge import MrsRouge as EvaluateMrsRouge
from mrs_metrics.modules.response_ranking import ResponseRanking as EvaluateRanking
from mrs_metrics.modules.self_rouge import SelfRouge as EvaluateSelfRouge
from mrs_metrics.modules.simulated_clicks import SimulatedClicks as EvaluateClicks
from mrs_metrics.modules.weighted_f1 import WeightedF1 as EvaluateWeightedF1
from mrs_suggest.integrations.torchmetrics_adapter import (
    DistN,
    ExamplesMetric,
    MrsRouge,
    ResponseRanking,
    SelfRouge,
    SimulatedClicks,
    WeightedF1,
)

WORDS = ["yes", "no", "thanks", "see", "you", "later", "maybe", "at", "eight", ".", "!", "ok", "sorry", "I", "can"]
N = 23


def _text(draw: random.Random) -> str:
    return " ".join(draw.choices(WORDS, k=draw.randint(0, 7)))


def _data(name: str) -> tuple[list[Any], list[Any]]:
    """N examples of a metric, with ties, empty texts and replies that are not there."""
    draw = random.Random(7)
    if name == "ranking":
        return [[float(draw.randint(0, 9)) for _ in range(12)] for _ in range(N)], [
            draw.randint(-1, 11) for _ in range(N)
        ]
    texts = [[_text(draw) for _ in range(draw.randint(0, 3))] for _ in range(N)]
    if name == "f1":
        accepted = [[{"text": _text(draw) + str(n), "weight": draw.random()} for n in range(3)] for _ in range(N)]
        guesses = [[entry["text"] for entry in entries if draw.random() < 0.5] for entries in accepted]
        return [[*guess, *more] for guess, more in zip(guesses, texts, strict=True)], [*accepted[:-1], []]
    return texts, [_text(draw) for _ in range(N)]


REPLIES = [f"reply {n % 5}" for n in range(N)]
# name of the data, the class here, the evaluate module, options of both, what both get with the examples
CASES: dict[str, tuple[str, type[ExamplesMetric], Any, dict[str, Any], dict[str, Any]]] = {
    "rouge": ("rouge", MrsRouge, EvaluateMrsRouge, {"language": "es"}, {}),
    "rouge, paper": ("rouge", MrsRouge, EvaluateMrsRouge, {"rules": "paper"}, {}),
    "dist, all": ("rouge", DistN, EvaluateDistN, {"n": (1, 2, 3), "denominator": "ngrams"}, {}),
    "dist, best": ("rouge", DistN, EvaluateDistN, {"chosen": "best", "level": "response"}, {}),
    "self": ("rouge", SelfRouge, EvaluateSelfRouge, {"language": "de"}, {}),
    "clicks": ("rouge", SimulatedClicks, EvaluateClicks, {"edits": 0.8}, {}),
    "ranking": ("ranking", ResponseRanking, EvaluateRanking, {"k": (1, 3), "language": "ja"}, {"replies": REPLIES}),
    "pools": ("ranking", ResponseRanking, EvaluateRanking, {"pool": 5, "seed": 3, "missing_reference": "zero"}, {}),
    "f1": ("f1", WeightedF1, EvaluateWeightedF1, {}, {}),
}  # fmt: skip


def expected(case: str) -> dict[str, Any]:
    """What the evaluate module computes."""
    name, _, module, options, more = CASES[case]
    predictions, references = _data(name)
    return module().compute(predictions=predictions, references=references, **options, **more)


def updated(case: str, parts: list[list[int]], given: bool = False) -> ExamplesMetric:
    """The metric after an update with each part, given with its indices or not."""
    name, metric_class, _, options, more = CASES[case]
    predictions, references = _data(name)
    metric = metric_class(**options)
    for part in parts:
        chosen = {key: [values[n] for n in part] for key, values in more.items()}
        indices = {"indices": part} if given else {}
        metric.update([predictions[n] for n in part], [references[n] for n in part], **chosen, **indices)
    return metric


def assert_same(metric: ExamplesMetric, figures: dict[str, Any]) -> None:
    found = {name: value.item() for name, value in metric.compute().items()}
    shared = found.keys() & figures.keys()
    assert len(shared) >= 2
    assert {name: found[name] for name in shared} == {name: figures[name] for name in shared}
    assert found.keys() - {"n"} <= figures.keys()
    assert metric.signature == figures["signature"]
    assert metric.skipped == figures.get("skipped", {})


@pytest.mark.parametrize("case", CASES)
def test_the_figures_are_those_of_the_evaluate_module(case: str) -> None:
    """Indices restore the order, and leave repeated examples out."""
    figures, parts = expected(case), [list(range(1, N, 2)), list(range(0, N, 2)), [0]]
    assert_same(updated(case, [list(range(10)), list(range(10, N))]), figures)
    assert_same(updated(case, parts, given=True), figures)


def test_reset_forgets_and_forward_gives_the_batch() -> None:
    texts, replies = _data("rouge")
    metric = MrsRouge()
    batch = metric(texts[:5], replies[:5])
    assert batch["n"].item() == 5 - sum(metric.skipped.values())
    metric(texts[5:], replies[5:])
    assert_same(metric, EvaluateMrsRouge().compute(predictions=texts, references=replies))
    metric.reset()
    with pytest.raises(ValueError, match="MrsRouge has no example to score"):
        metric.compute()


def test_tensors_are_taken_and_a_metric_can_be_pickled_and_collected() -> None:
    scores, targets = _data("ranking")
    figures = EvaluateRanking().compute(predictions=scores, references=targets)
    metric = pickle.loads(pickle.dumps(ResponseRanking()))
    metric.update(torch.tensor(scores, dtype=torch.float64), torch.tensor(targets), indices=torch.arange(N))
    assert_same(metric, figures)
    texts, replies = _data("rouge")
    both = pickle.loads(pickle.dumps(MetricCollection({"rouge": MrsRouge(), "dist": DistN()})))
    both.update(texts, replies)
    assert {"rouge_weighted", "dist_dist1"} <= both.compute().keys()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MrsRouge(rules="mine"), "rules of the metric must be one of"),
        (lambda: DistN(chosen="first"), "must be 'all' or 'best', not 'first'"),
        (lambda: DistN(denominator="words"), "denominator of Dist-n must be one of"),
        (lambda: ResponseRanking(pool=0), "A pool must hold 1 candidate or more"),
        (lambda: ResponseRanking(k=0), "k of precision at k must be 1 or more"),
        (lambda: WeightedF1(rules="mine"), "rules of the metric must be one of"),
        (lambda: MrsRouge().update([["a"]], ["a", "b"]), "1 predictions and 2 references"),
        (lambda: MrsRouge().update(["a"], ["a"]), "predictions of example 0 must be a list of texts"),
        (lambda: MrsRouge().update([["a"]], ["a"], [0, 1]), "one index for each example, but there are 2 for 1"),
        (lambda: MrsRouge().update([["a"]], ["a"], [-1]), "number in the data set, from 0, not -1"),
        (lambda: WeightedF1().update([["a"]], []), "1 predictions and 0 references"),
    ],
)
def test_wrong_input_is_refused_at_once_in_a_sentence(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_inputs_and_indices_must_come_with_each_update() -> None:
    metric = ResponseRanking()
    metric.update([[1.0]], [0], replies=["yes"])
    metric.update([[1.0]], [0])
    with pytest.raises(ValueError, match="Inputs such as replies must come with each update"):
        metric.compute()
    metric = MrsRouge()
    metric.update([["a"]], ["a"], [0])
    metric.update([["a"]], ["a"])
    with pytest.raises(ValueError, match="1 of 2 examples came without indices"):
        metric.compute()


RANKS = """
import json, os, sys
import torch
sys.path.insert(0, sys.argv[1])
from tests.mrs_suggest.integrations import test_torchmetrics_adapter as cases

children = []
for rank in range(2):
    if child := os.fork():
        children.append(child)
        continue
    torch.distributed.init_process_group("gloo", init_method=f"file://{sys.argv[2]}", rank=rank, world_size=2)
    own = list(range(rank, cases.N, 2)) + ([0] if rank else [])  # DistributedSampler fills up with the first
    for case in cases.CASES:
        metric = cases.updated(case, [own[:4], own[4:]], given=True)
        cases.assert_same(metric, cases.expected(case))
        local = len(metric.records)
        cases.assert_same(metric, cases.expected(case))
        assert len(metric.records) == local == 2, "after compute, the examples are the rank's own again"
        idle = cases.updated(case, [] if rank else [list(range(cases.N))], given=True)
        cases.assert_same(idle, cases.expected(case))
    print(json.dumps({"rank": rank, "cases": len(cases.CASES)}), flush=True)
    torch.distributed.destroy_process_group()
    os._exit(0)
sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""


@pytest.mark.integration
def test_two_ranks_give_the_figures_of_one(tmp_path: Path, repository: Path) -> None:
    script = tmp_path / "ranks.py"
    script.write_text(RANKS, encoding="utf-8")
    done = warm_python.run(
        [sys.executable, script, repository, tmp_path / "meeting"], cwd=tmp_path, merged=True, timeout=300
    )
    assert done.returncode == 0, done.stdout[-3000:]
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert sorted(line["rank"] for line in told) == [0, 1]
