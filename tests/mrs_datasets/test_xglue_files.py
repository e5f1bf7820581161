"""XGLUE's files: submissions and data in their official layout, and what is said of broken ones."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrs_datasets.readers.xglue_files import predictions_path, references_path
from mrs_metrics.xglue import aggregate, average_scores
from mrs_metrics.xglue_tasks import TASKS
from mrs_suggest.common.errors import InputError
from mrs_suggest.evaluation.scores.score_xglue import score_files, score_folder
from tests.cases import cases

# The data of each task in one language, as they are released; predictions; the score that they have.
CASES: dict[str, tuple[str, str, float]] = cases(__file__, "CASES")


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def both(folder: Path, task: str, right: str | None = None, ours: str | None = None) -> tuple[Path, Path]:
    """The two files of a case, or of others."""
    data, predictions, _ = CASES[task]
    return (
        write(predictions_path(folder / "mine", task, "de"), predictions if ours is None else ours),
        write(references_path(folder / "data", task, "de", "dev"), data if right is None else right),
    )


@pytest.mark.parametrize("task", TASKS)
def test_each_task_is_read_and_scored(tmp_path: Path, task: str) -> None:
    if TASKS[task].generation:
        pytest.importorskip("sacrebleu", reason="needs sacrebleu")
    scores = score_files(*both(tmp_path, task), task, "de")
    found = aggregate(scores)
    if task == "QG":  # the empty line stays: precision is perfect, half of the tokens are missing
        assert (found["n"], scores.notes) == (2, {"empty": 1})
        assert found["brevity_penalty"] < 1
        assert found["bleu"] == pytest.approx(found["brevity_penalty"])
    else:
        assert found["score"] == pytest.approx(CASES[task][2])


def test_a_folder_of_predictions(tmp_path: Path) -> None:
    for task in ("QAM", "PAWSX"):
        for language in TASKS[task].languages:
            data, ours, _ = CASES[task]
            write(references_path(tmp_path / "data", task, language), data)
            write(predictions_path(tmp_path / "mine", task, language), ours)
    found = score_folder(tmp_path / "mine", tmp_path / "data", ["QAM", "paws-x", "qam"])
    assert {task: list(scores) for task, scores in found.items()} == {
        "QAM": ["de", "en", "fr"],
        "PAWSX": ["de", "en", "es", "fr"],
    }
    averages = average_scores(
        {task: {code: aggregate(s)["score"] for code, s in by.items()} for task, by in found.items()}
    )
    assert averages["all"] == 0.5
    assert not {"QAM", "PAWSX"} & set(averages["missing"])
    some = score_folder(tmp_path / "mine", tmp_path / "data", ["QAM", "PAWSX"], languages=["es"])
    assert {task: list(scores) for task, scores in some.items()} == {"PAWSX": ["es"]}
    for options, sentence in (
        ({"languages": ["es", "sv"]}, "None of the tasks PAWSX, QAM is tested in sv"),
        ({"languages": []}, "no task, or no language"),
        ({"split": "train"}, r"splits \['dev', 'test'\], not on 'train'"),
        ({"split": "dev"}, "dev_2k.tsv: cannot read the file \\(No such file"),
    ):
        with pytest.raises(InputError, match=sentence):
            score_folder(tmp_path / "mine", tmp_path / "data", ["PAWSX", "QAM"], **options)  # type: ignore[arg-type]
    predictions_path(tmp_path / "mine", "QAM", "fr").unlink()
    with pytest.raises(InputError, match=r"fr\.prediction: cannot read the file \(No such file"):
        score_folder(tmp_path / "mine", tmp_path / "data", ["QAM"])


@pytest.mark.parametrize(
    ("task", "right", "ours", "sentence"), cases(__file__, "test_a_broken_file_is_named_with_its_line")
)
def test_a_broken_file_is_named_with_its_line(
    tmp_path: Path, task: str, right: str | None, ours: str | None, sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        score_files(*both(tmp_path, task, right, ours), task, "de")
    assert "\n" not in str(caught.value)


tag = st.sampled_from(["O", "B-PER", "I-PER", "B-LOC"])


@given(st.lists(st.lists(tag, min_size=1, max_size=5), min_size=1, max_size=5), st.integers(1, 3), st.booleans())
def test_sentences_are_what_blank_lines_separate(
    tmp_path_factory: Any, sentences: list[list[str]], blanks: int, documents: bool
) -> None:
    folder = tmp_path_factory.mktemp("xglue")
    between = "\n" * blanks + ("-DOCSTART- O\n\n" if documents else "")
    right = between.join("".join(f"word {tag}\n" for tag in sentence) for sentence in sentences)
    ours = ("\n" * blanks).join("".join(f"{tag}\n" for tag in sentence) for sentence in sentences)
    scores = score_files(*both(folder, "NER", right, ours), "NER", "de")
    assert scores.statistics[:, 1].tolist() == [len(sentence) for sentence in sentences]
    assert (scores.statistics[:, 0] == scores.statistics[:, 1]).all()
