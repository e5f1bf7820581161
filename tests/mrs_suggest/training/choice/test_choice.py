"""Questions from rows, the setups, figures, and the best checkpoint of each language."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from datasets import Dataset
from transformers import TrainerControl, TrainerState

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.understanding.choice_inputs import Question
from mrs_suggest.training.choice.card import choice_card
from mrs_suggest.training.choice.data import Part, read_questions
from mrs_suggest.training.choice.figures import cross_entropy, figures_of, right_answers, write_answers
from mrs_suggest.training.choice.run import BestOfEachLanguage
from mrs_suggest.training.choice.setups import SETUPS, TRANSLATIONS, require_stage
from mrs_suggest.training.trainer import Patience
from tests.cases import cases

XCOPA: dict[str, list[Any]] = {
    "premise": ["It rained.", "He fell."], "choice1": ["A.", "C."], "choice2": ["B.", "D."],
    "question": ["effect", "cause"], "label": [1, 0], "idx": [4, 7], "changed": [False, True],
}  # fmt: skip
SIQA: dict[str, list[Any]] = {
    "context": ["Ann left."], "question": ["Why?"], "answerA": ["a"], "answerB": ["b"], "answerC": ["c"], "label": [2],
}  # fmt: skip


def part(config: str = "et") -> Part:
    kept = {name: XCOPA[name] for name in ("idx", "label", "changed")}
    return Part(config, Dataset.from_dict(kept), read_questions(XCOPA, "et", "english", "files", "here"))


def test_rows_become_questions_with_the_papers_prompts() -> None:
    assert part().questions == [
        Question("It rained.", "What happened as a result?", ("A.", "B."), 1),
        Question("He fell.", "What was the cause?", ("C.", "D."), 0),
    ]
    assert part().questions[1].context == "He fell. What was the cause?"
    italian = read_questions(XCOPA, "it", "translated", "files", "here")
    assert italian[1].prompt == TRANSLATIONS["it"][0]
    assert read_questions(SIQA, "en", "translated", "files", "here") == [
        Question("Ann left.", "Why?", ("a", "b", "c"), 2)
    ]


def test_corrected_questions_have_their_column() -> None:
    rows = {**XCOPA, "question_corrected": ["cause", "cause"]}
    assert [one.prompt for one in read_questions(rows, "et", "english", "corrected", "x")] == [
        "What was the cause?"
    ] * 2
    with pytest.raises(
        InputError, match="--questions corrected: x has no column question_corrected; prepare the folder"
    ):
        read_questions(XCOPA, "et", "english", "corrected", "x")


@pytest.mark.parametrize(
    ("view", "context"),
    [("full", "He fell. What was the cause?"), ("nop", "What was the cause?"), ("noq", "He fell."), ("nopq", "")],
)
def test_a_view_hides_what_it_says(view: str, context: str) -> None:
    assert part().viewed(view)[1].context == context


@pytest.mark.parametrize(("changes", "told"), cases(__file__, "test_a_broken_row_is_named"))
def test_a_broken_row_is_named(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        read_questions({**XCOPA, **changes}, "et", "english", "files", "x")


def test_the_second_stage_starts_from_the_first(tmp_path: Path) -> None:
    second = SETUPS["SI+CO-ZS"]
    with pytest.raises(InputError, match=r"--setup SI\+CO-ZS: starts from the folder of a run with --setup SI-ZS, but"):
        require_stage(second, str(tmp_path), None)
    for found, allowed in (("CO-ZS", False), ("SI-ZS", True)):
        (tmp_path / "run.json").write_text(json.dumps({"plan": {"setup": found}}), encoding="utf-8")
        if allowed:
            require_stage(second, str(tmp_path), None)
        else:
            with pytest.raises(InputError, match="is one with --setup CO-ZS"):
                require_stage(second, str(tmp_path), None)


def test_figures_count_right_answers_and_split_them_by_changed() -> None:
    scores = [[0.0, 1.0], [0.0, 2.0]]  # right, wrong
    assert right_answers(scores, [1, 0]) == [True, False]
    assert cross_entropy([[0.0, 0.0], [1000.0, 0.0]], [0, 1]) == pytest.approx([0.6931472, 1000.0])
    found = figures_of({"et": scores, "ht": [[0.0, 1.0], [3.0, 2.0]]}, {"et": part(), "ht": part("ht")})
    assert (found["et"]["accuracy"], found["et"]["correct"], found["et"]["n"]) == (0.5, 1, 2)
    assert (found["et"]["changed"]["accuracy"], found["et"]["unchanged"]["accuracy"]) == (0.0, 1.0)
    low, high = found["et"]["interval"]  # Wilson 1927, for 1 of 2
    assert (low, high) == pytest.approx((0.0945312, 0.9054688), abs=1e-6)
    assert found["macro"] == {"accuracy": 0.75, "languages": 2}


def test_predictions_hold_what_an_analysis_needs(tmp_path: Path) -> None:
    write_answers(tmp_path / "predictions.et.tsv", part(), [[0.25, 1.0], [-1.0, 2.0]])
    assert (tmp_path / "predictions.et.tsv").read_text(encoding="utf-8") == (
        "idx\tgold\tpredicted\tchanged\tscore1\tscore2\n4\t1\t1\t0\t0.25\t1\n7\t0\t1\t1\t-1\t2\n"
    )


# --- when a run ends, and what it keeps


class Saved:
    """Stands for a model: notes at which steps it was saved."""

    def __init__(self) -> None:
        self.model, self.tokenizer = SimpleNamespace(named_parameters=list), None


@pytest.fixture
def followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function: accuracies by language, one per evaluation -> the callback, and the step at which it ended."""
    monkeypatch.setattr(
        "mrs_suggest.training.choice.run.ChoiceParts.save", lambda self, place: place.mkdir(parents=True)
    )

    def follow(patience: int, resumed_at: int = 0, **accuracies: list[float]) -> tuple[BestOfEachLanguage, int]:
        callback = BestOfEachLanguage(tmp_path, list(accuracies), patience, Saved())  # type: ignore[arg-type]
        state, control = TrainerState(stateful_callbacks=[]), TrainerControl()
        for step in range(1, len(next(iter(accuracies.values()))) + 1):
            if step == resumed_at:
                stored = {"BestOfEachLanguage": json.loads(json.dumps(callback.state()))}
                callback = BestOfEachLanguage(tmp_path, list(accuracies), patience, Saved())  # type: ignore[arg-type]
                state = TrainerState(stateful_callbacks=[])
                state.stateful_callbacks = stored
                callback.on_train_begin(None, state, control)  # type: ignore[arg-type]
            state.global_step = step
            metrics = {f"eval_accuracy_{code}": values[step - 1] for code, values in accuracies.items()}
            callback.on_evaluate(None, state, control, metrics=metrics)  # type: ignore[arg-type]
            if control.should_training_stop:
                return callback, step
        return callback, 0

    return follow


@pytest.mark.parametrize("resumed_at", [0, 3])
def test_each_language_keeps_what_its_own_run_would_keep(followed: Any, tmp_path: Path, resumed_at: int) -> None:
    """`et` runs out of patience at step 3, so that its better accuracy at step 4 does not count."""
    et, ht = [0.6, 0.5, 0.6, 0.9, 0.9, 0.9], [0.4, 0.5, 0.5, 0.7, 0.6, 0.7]
    both, stopped = followed(2, resumed_at, et=et, ht=ht)
    assert stopped == 6
    assert both.facts() == {"et": {"step": 1, "accuracy": 0.6}, "ht": {"step": 4, "accuracy": 0.7}}
    assert {path.name for path in (tmp_path / "best").iterdir()} == {"1", "4"}, "others are removed"
    assert both.folders() == {tmp_path / "best" / "1": ["et"], tmp_path / "best" / "4": ["ht"]}
    for code, values in (("et", et), ("ht", ht)):
        assert followed(2, **{code: values})[0].facts()[code] == both.facts()[code]


def test_patience_goes_on_where_a_resumed_run_left_off() -> None:
    before = Patience(3)
    before.early_stopping_patience_counter = 2
    state = TrainerState(stateful_callbacks=[])
    state.stateful_callbacks = {"Patience": json.loads(json.dumps(before.state()))}
    after = Patience(3)
    args = SimpleNamespace(load_best_model_at_end=True, metric_for_best_model="accuracy", eval_strategy="steps")
    after.on_train_begin(args, state, TrainerControl())  # type: ignore[arg-type]
    assert after.early_stopping_patience_counter == 2


def test_the_card_says_what_is_wrong_with_the_questions_and_which_checkpoint_was_tested() -> None:
    figures = figures_of({"et": [[0.0, 1.0], [0.0, 2.0]]}, {"et": part()})
    record = {
        "trainer": "multiple_choice", "arguments": {"model_name_or_path": "tiny", "metric_for_best_model": "accuracy"},
        "data": {"id": "xcopa", "title": "XCOPA", "content_hash": "1", "rows": {"en": {"train": 2}},
                 "test": {"id": "xcopa", "title": "XCOPA", "content_hash": "2", "reader": "xcopa"}},
        "plan": {"setup": "CO-TLV", "train": ["en"], "choices": 2, "validation": ["et"], "validation_by": "target",
                 "view": "full", "questions": "files", "prompts": "english"},
        "metrics": {"systems": {"full": figures}, "best_of_each_language": {"et": {"step": 20, "accuracy": 0.61}}},
        "steps": 30, "epochs": 1.0, "seconds": 3.0, "best_step": 30, "best_metric": 0.5, "files": {}, "versions": {},
        "hardware": {"machine": "x", "cores": 2, "gpus": []}, "commit": "abc", "started_from": [],
    }  # fmt: skip
    card = choice_card(record)
    assert "| et | 50.0 (9.5 to 90.5) | 1 | 2 | 0.0 of 1 | 100.0 of 1 |" in card
    assert "the questions as the files have them" in card
    assert "et 20 (61 %)" in card
    assert "$" not in card
    assert "load_adapter(folder)" in choice_card(record, "org/model", adapter=True)
    record["data"]["test"]["reader"] = "synthetic-copa"  # type: ignore[index]
    assert "call some causes effects" not in choice_card(record), "which is said of XCOPA's files alone"
