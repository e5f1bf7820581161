"""`mrs score` for several systems, other metrics, other forms, and `--compare`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mrs_cli.main import main

pytestmark = pytest.mark.integration

REPLIES = ["Yes, I will be there at eight", "No, thank you very much", "See you tomorrow then, my friend"] * 8


def predictions(path: Path, suggestions: list[tuple[str, ...]]) -> Path:
    lines = ["\t".join(("How are you?", reply, *texts)) for reply, texts in zip(REPLIES, suggestions, strict=True)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def systems(tmp_path: Path) -> list[str]:
    """A good system, one that is as good but for the order, and a bad one."""
    good = [(reply, "Maybe") for reply in REPLIES]
    files = {"good.tsv": good, "same.tsv": [texts[::-1] for texts in good], "bad_1.tsv": [("Hm", "What")] * 24}
    return [str(predictions(tmp_path / name, texts)) for name, texts in files.items()]


def out_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["score", *arguments]) == 0
    return capsys.readouterr().out


def test_systems_are_ordered_and_the_best_group_is_marked(
    systems: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    records = json.loads(out_of(capsys, *reversed(systems), "--lang", "en", "--json"))
    assert [(record["system"], record["rank"]) for record in records] == [
        ("same.tsv", 1), ("good.tsv", 1), ("bad_1.tsv", 2),
    ]  # fmt: skip
    assert all({"n", "weighted", "interval", "signature"} <= record.keys() for record in records)
    printed = out_of(capsys, *systems, "--lang", "en")
    assert [line.count("]*") for line in printed.splitlines() if ".tsv" in line] == [1, 1, 0]
    assert "mrs_rouge|rules:official" in printed


def test_markdown_and_latex_carry_the_same_figures(systems: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    record = json.loads(out_of(capsys, systems[2], "--lang", "en", "--json"))
    markdown = out_of(capsys, *systems, "--lang", "en", "--markdown")
    latex = out_of(capsys, *systems, "--lang", "en", "--latex")
    for text in (markdown, latex):
        assert f"{record['rouge1']:.4f}" in text
        assert record["signature"] in text
    assert "bad\\_1.tsv & 24 &" in latex
    assert latex.count("\\\\\n") == 4
    assert markdown.splitlines()[0].startswith("| system | n |")


@pytest.mark.parametrize(
    ("metric", "key"), [("reply_bleu", "bleu"), ("self_rouge", "self_rouge"), ("mrs_rouge", "weighted")]
)
def test_other_metrics_of_the_same_file(
    systems: list[str], metric: str, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if metric == "reply_bleu":
        pytest.importorskip("sacrebleu")
    record = json.loads(out_of(capsys, systems[0], "--lang", "en", "--metric", metric, "--json"))
    assert record["interval"][0] - 1e-9 <= record[key] <= record["interval"][1] + 1e-9
    assert record["signature"].startswith(metric)
    assert f"{record[key]:.2f}" in out_of(capsys, systems[0], "--lang", "en", "--metric", metric)


def test_dist_n_of_all_suggestions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.tsv").write_text("hi\tyes\ti do\ti do not\n")
    record = json.loads(out_of(capsys, str(tmp_path / "p.tsv"), "--lang", "en", "--metric", "dist_n", "--json"))
    assert (record["dist1"], record["dist2"], record["dist2_ngrams"]) == (0.6, 0.4, 2 / 3)
    assert record["signature"].startswith("dist_n|")


def test_perplexity_of_losses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "losses.tsv").write_text("2.0794415416798357\t1\n1.3862943611198906\t2\n")  # log 8; log 2 + log 2
    record = json.loads(out_of(capsys, str(tmp_path / "losses.tsv"), "--metric", "reply_perplexity", "--json"))
    assert record["perplexity"] == pytest.approx(32 ** (1 / 3))
    assert record["tokens"] == 3


def test_xglue_by_task_and_language(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, lines in (
        ("pred/POS/en.prediction", "DET\nNOUN\n\nVERB\n"),
        ("data/POS/en.test", "a DET\nb NOUN\n\nc AUX\n"),
    ):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(lines)
    arguments = [str(tmp_path / "pred"), "--metric", "xglue_score", "--gold", str(tmp_path / "data"), "--lang", "en"]
    record = json.loads(out_of(capsys, *arguments, "--json"))
    assert record["POS"] == record["all"] == pytest.approx(2 / 3)
    assert record["languages"]["POS"]["en"]["chunk_precision"] == pytest.approx(2 / 3)
    assert "0.6667" in out_of(capsys, *arguments)
    assert main(["score", str(tmp_path / "pred"), "--metric", "xglue_score"]) == 2
    assert main(["score", *arguments[:-1], "fr"]) == 2
    assert "--gold" in capsys.readouterr().err


def test_weighted_f1_has_the_keys_of_the_task_s_scorer(
    shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    golden = json.loads((shared_data / "golden" / "staple.json").read_text(encoding="utf-8"))
    named = ["--gold", str(shared_data / golden["gold"]), "--pred", str(shared_data / golden["pred"])]
    record = json.loads(out_of(capsys, "--metric", "weighted_f1", *named, "--rules", "official", "--json"))
    for key, value in golden["aws_baseline"].items():
        assert round(record[key], 4) == value
    assert "rules:paper" in out_of(capsys, "--metric", "weighted_f1", *named)


def test_ranking_of_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.tsv").write_text("yes\t0\t-.5\t-2\t-.5\nno\t2\t1\t2\t3\n")  # a tie counts against us
    record = json.loads(out_of(capsys, str(tmp_path / "s.tsv"), "--metric", "response_ranking", "--json"))
    assert (record["mrr"], record["p@1"]) == (0.75, 0.5)
    assert "ties:pessimistic" in record["signature"]
    (tmp_path / "s.tsv").write_text("yes\t3\t.5\t.2\n")
    assert main(["score", str(tmp_path / "s.tsv"), "--metric", "response_ranking"]) == 2
    assert "line 1: there is no candidate 3 among 2 scores" in capsys.readouterr().err


def test_comparing_tests_neighbours_also_from_saved_scores(
    systems: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = str(tmp_path / "good.json")
    out_of(capsys, systems[0], "--lang", "en", "--save-scores", saved)
    content = json.loads(out_of(capsys, "--compare", systems[2], saved, "--lang", "en", "--json"))
    (test,) = content["tests"]
    assert (test["a"], test["b"]) == ("good.json", "bad_1.tsv")
    assert test["p"] < 0.001
    assert test["interval"][0] <= test["difference"] <= test["interval"][1]
    assert content["systems"][0]["weighted"] - content["systems"][1]["weighted"] == pytest.approx(test["difference"])
    same = json.loads(out_of(capsys, "--compare", *systems, "--lang", "en", "--holm", "--json"))["tests"]
    assert [test["p"] < 0.05 for test in same] == [False, True]
    assert same[1]["p_holm"] == pytest.approx(2 * same[1]["p"])
    assert "permutation test" in out_of(capsys, "--compare", *systems, "--lang", "en")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--lang", "en"], "name the prediction file"),
        (["{0}"], "--lang"),
        (["--compare", "{0}", "--lang", "en"], "two files or more"),
        (["--compare", "{0}", "{short}", "--lang", "en"], "different examples (good.tsv 24, short.tsv 23)"),
        (["--compare", "{0}", "{junk}", "--lang", "en"], "not scores that"),
        (["{0}", "--compare", "{0}", "{2}", "--lang", "en"], "takes all the files itself"),
        (["{0}", "--metric", "reply_perplexity"], "line 1: expected sum of token losses in nats, tokens"),
        (["{0}", "{2}", "--lang", "en", "--save-scores", "x.json"], "takes one system"),
    ],
)
def test_what_cannot_be_scored_is_one_sentence(
    systems: list[str], tmp_path: Path, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    short, junk = tmp_path / "short.tsv", tmp_path / "junk.json"
    short.write_text("".join(Path(systems[0]).read_text(encoding="utf-8").splitlines(keepends=True)[1:]))
    junk.write_text("{}")
    named = [argument.format(*systems, short=short, junk=junk) for argument in arguments]
    assert main(["score", *named]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert words in err
    assert not Path("x.json").exists()


def test_scores_computed_by_other_rules_are_not_compared(
    systems: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "good.json"
    out_of(capsys, systems[0], "--lang", "en", "--save-scores", str(saved))
    assert main(["score", "--compare", str(saved), systems[2], "--lang", "es"]) == 2
    assert "not computed alike" in capsys.readouterr().err
