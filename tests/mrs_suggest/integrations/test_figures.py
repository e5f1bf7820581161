"""Figures from records are those of `mrs score`, of weighted F1 and of accuracy, whatever the records' order."""

import json
import random
from pathlib import Path

import pytest

from mrs_metrics.translations_f1 import aggregate, score_translations
from mrs_suggest.common.errors import InputError
from mrs_suggest.evaluation.scores.systems import score_file
from mrs_suggest.integrations.figures import Chosen, Suggested, Translated, choice_accuracy, suggestion_figures
from mrs_suggest.integrations.figures import translation_figures as translated
from mrs_suggest.integrations.samples import main, write_suggestions

WORDS = ["yes", "no", "maybe", "later", "thanks", "of", "course", "not", "now", "see", "you", "there"]


def suggested(n: int) -> list[Suggested]:
    draw = random.Random(5)

    def text() -> str:
        return " ".join(draw.choices(WORDS, k=draw.randint(1, 6)))

    return [
        Suggested(
            index=number, language="en", message=text(), reference=text(),
            suggestions=[text() for _ in range(draw.randint(1, 3))] if number % 9 else [""],
        )
        for number in range(n)
    ]  # fmt: skip


def test_suggestions_from_logged_samples_score_the_same_to_the_last_digit(tmp_path: Path) -> None:
    records = suggested(97)
    shuffled = random.Random(1).sample(records, len(records))
    samples = tmp_path / "samples_mrs_en.jsonl"
    lines = [json.dumps({"doc": {"index": 7}, "replies": 2.0, "weighted_rouge": record}) for record in shuffled]
    samples.write_text("\n".join(lines), encoding="utf-8")
    assert main([str(samples), "--out", str(tmp_path / "predictions.en.tsv")]) == 0
    figures, ours = suggestion_figures(shuffled), score_file(tmp_path / "predictions.en.tsv", "en")
    assert [figures[name] for name in ("weighted_rouge", "dist1", "dist2")] == [
        ours[name] for name in ("weighted", "dist1", "dist2")
    ]
    assert figures["weighted_rouge"] > 0.01
    assert figures == suggestion_figures(records)
    assert figures["replies"] == sum(len([t for t in row["suggestions"] if t]) for row in records) / len(records)
    records = suggested(2)
    records[0]["language"] = "es"
    with pytest.raises(ValueError, match="Figures are of one language, not of en es"):
        suggestion_figures(records)


def test_translations_and_answers() -> None:
    accepted = [{"text": "sim", "weight": 0.75}, {"text": "claro", "weight": 0.25}]
    records = [
        Translated(index=1, id="b", translations=accepted, predicted=["não"]),  # type: ignore[typeddict-item]
        Translated(index=0, id="a", translations=accepted, predicted=["Sim!", "não"]),  # type: ignore[typeddict-item]
    ]
    ours = aggregate(score_translations(records, {"a": ["Sim!", "não"], "b": ["não"]}))["weighted_macro_f1"]
    assert translated(records) == {"weighted_f1": ours, "predicted": 1.5}
    assert ours == pytest.approx(0.3)
    answers = [Chosen(index=n, gold=n % 2, accuracy=0, accuracy_bytes=int(n > 0)) for n in range(3)]
    assert choice_accuracy(answers) == 2 / 3
    assert choice_accuracy(answers, "accuracy_bytes") == 2 / 3
    assert choice_accuracy(answers[:1], "accuracy_bytes") == 1.0


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("not JSON", "cannot be read as the samples"), ('{"doc": {"index": 1}}', "cannot be read as the samples"),
     ('{"accuracy": {"index": 0, "gold": 1}}', "no suggestions in it"), ("", "no suggestions in it")],
)  # fmt: skip
def test_a_file_of_something_else_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "samples.jsonl").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=sentence):
        write_suggestions(tmp_path / "samples.jsonl", tmp_path / "out.tsv")
    assert not (tmp_path / "out.tsv").exists()
