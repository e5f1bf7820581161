"""Systems with what they predicted, scored prompt by prompt, and ranked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mrs_datasets.readers.staple.staple_files import read_staple_predictions
from mrs_metrics.interval import Interval
from mrs_metrics.significance import bootstrap_interval
from mrs_metrics.translations_f1 import Tally, WeightedF1Scores, aggregate
from mrs_suggest.common.errors import InputError, metric_errors
from mrs_suggest.common.io.files import file_sha256
from mrs_suggest.evaluation.scores.metrics import Scored
from mrs_suggest.evaluation.scores.systems import rank_systems
from mrs_suggest.staple.gold import Gold, first_written, read_lists
from mrs_suggest.staple.hypotheses import read_hypotheses

REFERENCE = "reference"  # the row of the given automatic translation, baseline_aws in the paper
MEANS = ("precision", "weighted_recall", "weighted_f1")  # scores of a prompt whose means are reported
_MAGIC = b"PAR1"  # the first bytes of a Parquet file
Predictions = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class System:
    """A system's predictions and their scores.

    Attributes:
        predicted: prompt -> translation, as the rules read it -> as the system wrote it.
        scored: its figures, and after `rank` its rank group.
        intervals: score of a prompt -> 95 % interval of its mean.
        top_found: share of the prompts whose accepted translation with the highest weight was predicted.
    """

    name: str
    predicted: Mapping[str, Mapping[str, str]]
    scores: WeightedF1Scores
    scored: Scored
    intervals: Mapping[str, Interval]
    top_found: float
    source: Mapping[str, Any] = field(default_factory=dict)

    def mean(self, score: str) -> float:
        return float(getattr(self.scores, score).mean())

    @property
    def translations(self) -> int:
        return sum(map(len, self.predicted.values()))

    @property
    def missing(self) -> int:
        return len(self.scores.missing)


def read_predictions(path: Path, gold: Gold) -> tuple[Predictions, dict[str, Any]]:
    """The translations in a file of hypotheses or a prediction file of the task, and what identifies the file."""
    if not path.is_file():
        raise InputError(f"{path}: no such file; expected predictions of the task, or hypotheses.")
    source: dict[str, Any] = {"file": path.name, "sha256": file_sha256(path)}
    with path.open("rb") as file:
        is_hypotheses = file.read(len(_MAGIC)) == _MAGIC or path.suffix == ".parquet"
    if is_hypotheses:
        found = read_hypotheses(path)
        if gold.language and found.language != gold.language:
            raise InputError(f"{path}: hypotheses in {found.language}, but the data are in {gold.language}.")
        split = found.data.get("split")
        if gold.split and split and split != gold.split:
            raise InputError(f"{path}: hypotheses of the {split} split, not of {gold.split}; pass --split {split}.")
        predictions: Predictions = {key: rows["text"].to_pylist() for key, rows in found.by_prompt()}
        source |= {"members": list(found.members), "steps": list(found.steps)}
    else:
        predictions = read_staple_predictions(path)
    known = gold.accepted
    unknown = [key for key in predictions if key not in known]
    if unknown:
        raise InputError(
            f"{path}: {len(unknown):,} of {len(predictions):,} prompts are not in {gold.name} (the first is "
            f"{unknown[0]:.60}); pass predictions for these data."
        )
    if not any(predictions.values()):
        raise InputError(f"{path}: has no translation of any prompt, so there is nothing to report.")
    return predictions, source


def score(gold: Gold, name: str, predictions: Predictions, source: Mapping[str, Any] | None = None) -> System:
    """Score a system; InputError if the official rules refuse the predictions."""
    tally = Tally(gold.rules)
    lists = [list(predictions.get(key, ())) for key in gold.accepted]
    read = read_lists(lists, gold.rules)
    predicted = {key: first_written(*texts) for key, *texts in zip(gold.accepted, read, lists, strict=True)}
    hits = 0
    with metric_errors(name):
        for key, accepted in gold.accepted.items():
            tally.add(key, accepted, set(predicted[key]))
            hits += max(accepted, key=accepted.__getitem__) in predicted[key]
        scores = tally.scores(predictions)
        intervals = {kind: bootstrap_interval(getattr(scores, kind)) for kind in MEANS}
    n, *figures = aggregate(scores).items()
    shown = dict(figures), {"signature": scores.signature}, intervals["weighted_f1"]
    scored = Scored(int(n[1]), *shown, values=scores.weighted_f1.tolist(), examples=scores.ids, system=name)
    return System(name, predicted, scores, scored, intervals, hits / len(scores.ids), source or {})


def score_all(gold: Gold, files: Mapping[str, Path]) -> list[System]:
    """The scores of systems and of the given automatic translation, if the data have it, best first."""
    if REFERENCE in files:
        raise InputError(f"--systems: {REFERENCE!r} is the given automatic translation; choose another name.")
    found = [score(gold, name, *read_predictions(path, gold)) for name, path in files.items()]
    if gold.references:
        found.append(score(gold, REFERENCE, gold.references, {"column": "reference"}))
    if not found:
        raise InputError(f"--systems: pass a file; {gold.name} has no automatic translation to report.")
    scored = [system.scored for system in found]
    rank_systems(scored, "weighted_f1")
    return sorted(found, key=lambda system: [one is system.scored for one in scored].index(True))


def as_json(system: System) -> dict[str, Any]:
    """A system's figures; precision and recall without `mean_` are over all translations, as `mrs score` gives them."""
    means = {f"mean_{kind}": system.mean(kind) for kind in MEANS[:2]}
    return {
        **system.scored.among_others(),
        **means,
        "intervals": {kind: interval.ends for kind, interval in system.intervals.items()},
        "translations": system.translations,
        "top_found": system.top_found,
        "source": dict(system.source),
    }
