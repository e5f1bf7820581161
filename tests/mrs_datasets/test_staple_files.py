"""Files of the STAPLE task: read at once as line by line, with the figures of their rows and the same refusals."""

import gzip
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mrs_datasets.prepared.report import Report
from mrs_datasets.readers.staple import staple_files
from mrs_datasets.readers.staple.staple import read_staple
from mrs_datasets.readers.staple.staple_files import read_staple_predictions, read_task_file
from mrs_metrics.translations_f1 import WeightedF1Scores, aggregate, score_translations
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io import lines as lines_module
from mrs_suggest.evaluation.scores.score_staple import score_files

NAME = "dev.en_pt.made.gold.txt"
GOLD = "prompt_a|one\num|0.5\nUm!|0.25\ndois|0.25\n\nprompt_b|yes\nSim.|1.0\n"
ARRAYS = ("counts", "weights", "precision", "recall", "weighted_recall", "f1", "weighted_f1", "in_micro")
# lines that make sense together, and lines that break a file
line = st.sampled_from(
    [
        *("prompt_a|x", "prompt_b|y", "prompt_c| z|z", "prompt_d|"),
        *("um|0.5", "Um!|0.25", " dois  |1e-3", "x|y|0.5", "é|1", "e\u0301|.5", "ΑΣ|0.5", "|", "um", "0.3", "1|2|3"),
        *("x|nan", "x|-1", "x|inf", "x|1_0", " |1", "x| 2 ", "a\rb|1", "\u2028|1", "um|0.5\u00a0"),
        *("\u200b|1", "\u200bx|1", "a\0b|1", "prompt_e|\u2800"),
        *("", "", "", " ", "\t", "\u00a0"),
    ]
)


def rows_of(path: Path) -> list[dict]:
    """The rows that the data set's reader gives of a gold file; it takes a folder."""
    return [row for _, _, table in read_staple([path.parent], Report("staple")) for row in table.to_pylist()]


def written(folder: Path, content: bytes | str, name: str = NAME) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def assert_equal(one: WeightedF1Scores, other: WeightedF1Scores) -> None:
    for name in ARRAYS:
        assert getattr(one, name).tolist() == getattr(other, name).tolist(), name
    for name in ("ids", "missing", "extra", "signature"):
        assert getattr(one, name) == getattr(other, name), name


def outcome(read: Callable[[], object]) -> object:
    """What a reader gives, or the sentence with which it refuses."""
    try:
        return read()
    except (ValueError, InputError) as error:
        return str(error)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(line, max_size=14), st.sampled_from(["\n", "\r\n"]), st.booleans(), st.booleans())
def test_any_lines_are_read_or_refused_alike(
    tmp_path: Path, lines: list[str], end: str, ended: bool, weighted: bool
) -> None:
    path = written(tmp_path / "data", end.join(["prompt_z|z", "z|1", "", *lines]) + (end if ended else ""))
    at_once = outcome(lambda: read_task_file(path, weighted))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(staple_files, "MAX_AT_ONCE", 10)
        assert outcome(lambda: read_task_file(path, weighted)) == at_once


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.lists(line.filter(lambda text: text.strip()), min_size=1, max_size=5), max_size=4),
    st.lists(st.lists(line.filter(lambda text: text.strip()), max_size=5), max_size=4),
    st.sampled_from(["paper", "official"]),
)
def test_files_score_as_their_rows_do(
    tmp_path: Path, accepted: list[list[str]], predicted: list[list[str]], rules: str
) -> None:
    def blocks(found: list[list[str]]) -> str:
        return "\n\n".join("\n".join([f"prompt_{n}|x", *texts]) for n, texts in enumerate([["um|1"], *found]))

    gold = written(tmp_path / "data", blocks(accepted))
    pred = written(tmp_path, blocks(predicted), "pred.txt")
    expected = outcome(lambda: score_translations(rows_of(gold), read_staple_predictions(pred), rules))
    found = outcome(lambda: score_files(gold, pred, rules, warn=lambda _: None))
    if isinstance(expected, WeightedF1Scores) and isinstance(found, WeightedF1Scores):
        assert_equal(found, expected)
    elif rules == "paper":
        assert found == expected
    else:  # the scorer takes more; only a carriage return inside a line, which it takes for a line end, may stop it
        assert not isinstance(expected, WeightedF1Scores) or b"\r" in gold.read_bytes()


TWO = "prompt_a|one\num|0.5\ndois|0.5\n\nprompt_b|yes\nsim|1.0\n"
TOLD = "prompt_a|one\num\n\nprompt_b|yes\nsim\n"
THIRD = pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("gold", "pred", "expected", "line", "told"),
    [
        (TWO, TOLD.replace("prompt_a", "PROMPT_A"), [THIRD, 1], 1, "an id is read in lower case: 'PROMPT_A'"),
        (TWO, TOLD.replace("prompt_b", " prompt_b"), [THIRD, 1], 4, "the space before an id is trimmed"),
        (TWO.replace("\n", "\r\n", 2), TOLD, [THIRD, 1], 3, "line ends of several kinds"),
        (TWO, TOLD.replace("um\n", "um\rdois\n"), [1, 1], 2, "line ends of several kinds"),
        # the byte-order mark hides prompt_b, which scores what prompt_a did
        (TWO, "\ufeffprompt_b|yes\nsim\n\nprompt_a|one\num\n", [THIRD, THIRD], 1, "the byte-order mark"),
        (TWO.replace("0.5", "nan", 1), TOLD, [None, 1], 2, "a weight that is not finite or below 0 is accepted: 'nan'"),
        (TWO.replace("dois|0.5", "dois|-0.25"), TOLD, [pytest.approx(4 / 3), 1], 3, "not finite or below 0"),
        (TWO.replace("dois|0.5", "dois|0.2_5"), TOLD, [0.8, 1], 3, "unusual form is accepted: '0.2_5'"),
        (TWO.replace("dois|0.5", "dois|٥"), TOLD, [pytest.approx(2 / 12), 1], 3, "unusual form"),
        (TWO, TOLD + "\nprompt_a|one\ndois\num\n", [1, 1], 7, "the last of several blocks of a prompt"),
        (TWO + "\nPrompt_b|yes\nnao|1\n", TOLD, [THIRD, 0], 8, "the last of several blocks"),
        (TWO.replace("prompt_b", "b"), TOLD.replace("prompt_b", "b"), [THIRD, 1], 5, "without prompt_ is accepted"),
        (TWO, TOLD.replace("|yes", "|"), [THIRD, 1], 4, "an id without a prompt"),
        (TWO.replace("dois|", " |"), TOLD, [THIRD, 1], 3, "a translation without text"),
        (TWO + "\nprompt_c|no\n", TOLD, [THIRD, 1], 8, "a prompt without translations does not count: 'prompt_c'"),
    ],
)  # fmt: skip
def test_what_the_official_scorer_scores_is_scored_with_a_warning(
    tmp_path: Path, gold: str, pred: str, expected: list[float], line: int, told: str
) -> None:
    paths = written(tmp_path, gold), written(tmp_path, pred, "pred.txt")
    warnings: list[str] = []
    scores = score_files(*paths, "official", warn=warnings.append)
    found = [None if score != score else score for score in scores.weighted_f1.tolist()]
    assert found == expected
    odd = paths[0] if gold != TWO else paths[1]
    (warning,) = [text for text in warnings if told in text and text.startswith(str(odd))]
    assert warning.startswith(f"{odd}, line {line}")


def test_ordinary_files_get_no_warning_and_a_library_user_gets_pythons(tmp_path: Path, recwarn) -> None:
    gold = written(tmp_path, TWO.replace("\n", "\r\n"))
    for text in (TOLD, TOLD.rstrip("\n"), f"\n\n{TOLD}\n"):
        assert score_files(gold, written(tmp_path, text, "pred.txt"), "official").weighted_f1.tolist() == [THIRD, 1]
    assert not recwarn.list
    pred = written(tmp_path, TOLD.upper(), "pred.txt")
    with pytest.warns(UserWarning, match=r"pred\.txt, line 1 and 1 more: an id is read in lower case: 'PROMPT_A'"):
        score_files(gold, pred, "official")


@pytest.mark.parametrize(
    ("gold", "pred", "told"),
    [
        ("um\n" + TWO, TOLD, "line 1: expected id|prompt, found 'um'"),
        (TWO + "tres\n", TOLD, r"line 7: expected text\|weight, found 'tres'"),
        (TWO.replace("1.0", "one"), TOLD, "line 6: expected a number"),
        (TWO, "\ufeff" + TOLD, "the official scorer fails there"),
        ("prompt_a|x\n", TOLD, "has no prompt with a translation"),
    ],
)
def test_where_the_official_scorer_fails_so_does_ours(tmp_path: Path, gold: str, pred: str, told: str) -> None:
    paths = written(tmp_path, gold), written(tmp_path, pred, "pred.txt")
    with pytest.raises(InputError, match=told.replace("|p", r"\|p")):
        score_files(*paths, "official", warn=lambda _: None)


def test_refusals_of_the_scorer(tmp_path: Path) -> None:
    gold = written(tmp_path, GOLD)
    pred = written(tmp_path, "prompt_b|yes\nsim\n", "pred.txt")
    with pytest.raises(InputError, match="first prompt, 'prompt_a', has no prediction"):
        score_files(gold, pred, "official")
    with pytest.raises(InputError, match="must be one of"):
        score_files(tmp_path / "absent", pred, "ours")
    with pytest.raises(InputError, match=r"pred\.txt, line 2: expected text\|weight"):
        score_files(pred, gold)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("content", [GOLD, GOLD + "\num|0.5\n"])
def test_a_pipe_is_read_once(tmp_path: Path, content: str) -> None:
    """As in `--gold <(zcat FILE)`: what is wrong must be found in what was read."""
    expected = outcome(lambda: read_task_file(written(tmp_path, content, "file"), weighted=True))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(content,))
    writer.start()
    found = outcome(lambda: read_task_file(pipe, weighted=True))
    writer.join()
    assert str(found).replace(str(pipe), str(tmp_path / "file")) == str(expected)


def test_a_line_without_end_does_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (lines_module, staple_files):
        monkeypatch.setattr(module, "BLOCK", 64)
        monkeypatch.setattr(module, "MAX_LINE", 1000)
    path = written(tmp_path, gzip.compress(GOLD.encode() + b"\n" + b"x" * 100_000), NAME + ".gz")
    with pytest.raises(InputError, match=r"line 9: no line end within"):
        read_task_file(path, weighted=True)


@pytest.mark.parametrize("rules", ["paper", "official"])
def test_real_files(shared_data: Path, rules: str, tmp_path: Path) -> None:
    golden = json.loads((shared_data / "golden" / "staple.json").read_text(encoding="utf-8"))
    gold, pred = shared_data / golden["gold"], shared_data / golden["pred"]
    scores = score_files(gold, pred, rules)
    if rules == "official":
        figures, printed = aggregate(scores), golden["aws_baseline"]
        assert {name: round(figures[name], 4) for name in printed} == printed
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / NAME).symlink_to(gold)
    rows = rows_of(tmp_path / "data" / NAME)
    assert_equal(scores, score_translations(rows, read_staple_predictions(pred), rules))
