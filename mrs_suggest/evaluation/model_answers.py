"""A model that answers the messages of prediction files, as one more system to score or compare."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text import predictions
from mrs_suggest.common.text.predictions import SUGGESTIONS, Prediction, predictions_name
from mrs_suggest.evaluation.comparison import POOLED
from mrs_suggest.evaluation.language_data import EVALUATION_SEED
from mrs_suggest.evaluation.results import EvaluationConfig, SystemResult, evaluate_system, milliseconds, summary
from mrs_suggest.evaluation.runs.figures import Run
from mrs_suggest.evaluation.runs.grouping import has_predictions
from mrs_suggest.models.saved.record import RECORD
from mrs_suggest.suggest.answering import MODEL
from mrs_suggest.suggest.suggester import Suggester

TEST_ARGUMENTS = ("data", "data_revision", "max_test_examples")  # of the run whose messages are answered


def answer_predictions(
    suggester: Suggester, sources: Mapping[str, Path], out: Mapping[str, Path], nbest: int = SUGGESTIONS
) -> tuple[dict[str, SystemResult], dict[str, Any]]:
    """Answer the messages of prediction files (language -> file), and write such files of `nbest` suggestions at most.

    Returns:
        Language -> scores; and `milliseconds` for a message, the signature of a `service`, what it has used, and with
        the guard on the share of examples on which it is `silent`.

    Raises:
        InputError: a file is missing or damaged, or the model does not answer.
    """
    system: Any = SimpleNamespace(name=MODEL, suggest=suggester.suggest)
    results, config = dict[str, SystemResult](), EvaluationConfig(ranking=False)
    for code, source in sources.items():
        rows = predictions.read_predictions(source, nbest)
        texts = [row.message for row in rows], [row.reference for row in rows]
        results[code] = evaluate_system(system, code, *texts, [], EVALUATION_SEED, config)
        found = zip(*texts, results[code].suggestions, strict=True)
        lines = (Prediction(message, reply, tuple(three[:nbest]) or ("",)) for message, reply, three in found)
        predictions.write_predictions(out[code], lines)
    facts = {"milliseconds": round(milliseconds([*results.values()]), 3), **suggester.model.usage()}
    if suggester.guard:
        answers = [answer for result in results.values() for answer in result.suggestions]
        facts["silent"] = round(sum(not answer for answer in answers) / max(len(answers), 1), 4)
    return results, facts | ({"service": service} if (service := suggester.model.service) else {})


def answering_run(name: str, runs: Sequence[Run], folder: Path, label: str, **options: Any) -> Run:
    """A model as a run to compare, named `label`: it answers the test messages of the first run.

    The guard is off; `options` are others of `Suggester.from_pretrained`. Errors as above.
    """
    suggester = Suggester.from_pretrained(name, **{"guard": False, **options})
    tested = [(run, code) for run in runs for part, code in run.scopes if has_predictions(run, (part, code))]
    codes = [code for run, code in tested if run is tested[0][0] and code in suggester.languages]
    if not codes or (source := tested[0][0].folder) is None:
        raise InputError(f"{name}: no other run has {predictions_name('LANG')} in a language of the model; name one.")
    folder.mkdir()
    asked, answered = ({code: place / predictions_name(code) for code in codes} for place in (source, folder))
    results, facts = answer_predictions(suggester, asked, answered)
    parts = {POOLED: [*results.values()], **{code: [result] for code, result in results.items()}}
    figures = {scope: summary(part, EVALUATION_SEED) for scope, part in parts.items()}
    signatures = {code: result.signatures for code, result in results.items()}
    tested_on = tested[0][0].record.get("arguments", {})
    record = {
        "trainer": "language_model",
        "arguments": {"model": label, **{key: tested_on.get(key) for key in TEST_ARGUMENTS}},
        "data": tested[0][0].record.get("data", {}),
        "metrics": {"systems": {MODEL: figures}, "signatures": signatures},
        "milliseconds": {MODEL: facts["milliseconds"]},
        "answered": facts,
    }
    (folder / RECORD).write_text(json.dumps(record), encoding="utf-8")  # intervals by another unit read it
    return Run(label, folder, record)
