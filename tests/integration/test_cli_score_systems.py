"""`mrs score` for several systems, other metrics, other forms, and `--compare`."""

import json
import math
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cases import cases
from tests.command import refused

pytestmark = pytest.mark.integration

Ask = Callable[..., Any]
REPLIES = ["Yes, I will be there at eight", "No, thank you very much", "See you tomorrow then, my friend"] * 8


def predictions(path: Path, suggestions: list[tuple[str, ...]]) -> Path:
    rows = enumerate(zip(REPLIES, suggestions, strict=True))
    lines = ["\t".join((f"How are you {n}?", reply, *texts)) for n, (reply, texts) in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def systems(tmp_path: Path) -> list[str]:
    """A good system, one that is as good but for the order, and a bad one."""
    good = [(reply, "Maybe") for reply in REPLIES]
    good[0] = ("Hm", "Maybe")
    files = {"good.tsv": good, "same.tsv": [texts[::-1] for texts in good], "bad_1.tsv": [("Hm", "What")] * 24}
    return [str(predictions(tmp_path / name, texts)) for name, texts in files.items()]


def test_systems_are_ordered_and_the_best_group_is_marked(systems: list[str], shown: Ask, score: Ask) -> None:
    records = score(*reversed(systems), "--language", "en")
    assert [(record["system"], record["rank"]) for record in records] == [
        ("same.tsv", 1), ("good.tsv", 1), ("bad_1.tsv", 2),
    ]  # fmt: skip
    assert all({"n", "weighted", "interval", "signature"} <= record.keys() for record in records)
    printed = shown(*systems, "--language", "en")
    assert [line.count("]*") for line in printed.splitlines() if ".tsv" in line] == [1, 1, 0]
    assert "mrs_rouge|rules:mrs" in printed


def test_markdown_and_latex_carry_the_same_figures(systems: list[str], shown: Ask, score: Ask) -> None:
    record = score(systems[2], "--language", "en")
    markdown = shown(*systems, "--language", "en", "--markdown")
    latex = shown(*systems, "--language", "en", "--latex")
    for text in (markdown, latex):
        assert f"{record['rouge1']:.4f}" in text
        assert record["signature"] in text
    assert "bad\\_1.tsv & 24 &" in latex
    assert latex.count("\\\\\n") == 4
    assert markdown.splitlines()[0].startswith("| system | n |")


@pytest.mark.parametrize(
    ("metric", "key"), [("reply_bleu", "bleu"), ("self_rouge", "self_rouge"), ("mrs_rouge", "weighted")]
)
def test_other_metrics_of_the_same_file(systems: list[str], metric: str, key: str, shown: Ask, score: Ask) -> None:
    if metric == "reply_bleu":
        pytest.importorskip("sacrebleu")
    record = score(systems[0], "--language", "en", "--metric", metric)
    assert record["interval"][0] - 1e-9 <= record[key] <= record["interval"][1] + 1e-9
    assert record["signature"].startswith(metric)
    assert f"{record[key]:.{2 if metric == 'reply_bleu' else 4}f}" in shown(
        systems[0], "--language", "en", "--metric", metric
    )


def test_perplexity_of_losses(tmp_path: Path, score: Ask) -> None:
    (tmp_path / "losses.tsv").write_text("2.0794415416798357\t1\n1.3862943611198906\t2\n")  # log 8; log 2 + log 2
    record = score(tmp_path / "losses.tsv", "--metric", "reply_perplexity")
    assert record["perplexity"] == pytest.approx(32 ** (1 / 3))
    assert record["tokens"] == 3
    (tmp_path / "losses.tsv").write_text("5000\t1\n")
    record = score(tmp_path / "losses.tsv", "--metric", "reply_perplexity")
    assert (record["perplexity"], record["loss"]) == (None, 5000.0), "beyond floats it is null in JSON"


def test_xglue_by_task_and_language(tmp_path: Path, shown: Ask, score: Ask, unscored: Ask) -> None:
    for name, lines in (
        ("pred/POS/en.prediction", "DET\nNOUN\n\nVERB\n"),
        ("data/POS/en.test", "a DET\nb NOUN\n\nc AUX\n"),
    ):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(lines)
    arguments = [
        str(tmp_path / "pred"), "--metric", "xglue_score", "--gold", str(tmp_path / "data"), "--language", "en",
    ]  # fmt: skip
    record = score(*arguments)
    assert record["POS"] == record["all"] == pytest.approx(2 / 3)
    assert record["languages"]["POS"]["en"]["chunk_precision"] == pytest.approx(2 / 3)
    assert "0.6667" in shown(*arguments)
    assert "--gold" in unscored(tmp_path / "pred", "--metric", "xglue_score")
    assert unscored(*arguments[:-1], "fr")


def test_weighted_f1_has_the_keys_of_the_task_s_scorer(
    shared_data: Path, tmp_path: Path, shown: Ask, score: Ask
) -> None:
    golden = json.loads((shared_data / "golden" / "staple.json").read_text(encoding="utf-8"))
    named = ["--gold", str(shared_data / golden["gold"]), "--pred", str(shared_data / golden["pred"])]
    record = score("--metric", "weighted_f1", *named, "--rules", "official")
    for key, value in golden["aws_baseline"].items():
        assert round(record[key], 4) == value
    saved = [str(tmp_path / name) for name in ("a.json", "b.json")]
    for path in saved:
        assert "rules:paper" in shown("--metric", "weighted_f1", *named, "--save-scores", path)
    (test,) = score("--metric", "weighted_f1", "--compare", *saved)["tests"]
    assert (test["difference"], test["p"]) == (0.0, 1.0), "saved scores need no gold"


def test_ranking_of_scores(tmp_path: Path, score: Ask, unscored: Ask) -> None:
    (tmp_path / "s.tsv").write_text("yes\t0\t-.5\t-2\t-.5\nno\t2\t1\t2\t3\n")  # a tie counts against us
    record = score(tmp_path / "s.tsv", "--metric", "response_ranking")
    assert (record["mrr"], record["p@1"]) == (0.75, 0.5)
    assert "ties:pessimistic" in record["signature"]
    (tmp_path / "s.tsv").write_text("yes\t3\t.5\t.2\n")
    problem = "line 1: candidate 3 is not among the 2 scores"
    assert problem in unscored(tmp_path / "s.tsv", "--metric", "response_ranking")


def test_comparing_tests_neighbours_also_from_saved_scores(
    systems: list[str], tmp_path: Path, shown: Ask, score: Ask
) -> None:
    saved = str(tmp_path / "good.json")
    shown(systems[0], "--language", "en", "--save-scores", saved)
    content = score("--compare", systems[2], saved, "--language", "en")
    (test,) = content["tests"]
    assert (test["a"], test["b"]) == ("good.json", "bad_1.tsv")
    assert test["p"] < 0.001
    assert test["interval"][0] <= test["difference"] <= test["interval"][1]
    assert content["systems"][0]["weighted"] - content["systems"][1]["weighted"] == pytest.approx(test["difference"])
    same = score("--compare", *systems, "--language", "en", "--holm")["tests"]
    assert [test["p"] < 0.05 for test in same] == [False, True]
    assert same[1]["p_holm"] == pytest.approx(2 * same[1]["p"])
    assert "permutation test" in shown("--compare", *systems, "--language", "en")


def test_power_by_the_paired_differences(systems: list[str], shown: Ask, score: Ask) -> None:
    half = predictions(
        Path(systems[0]).parent / "half.tsv",
        [(reply, "Maybe") if n % 2 else ("Hm", "What") for n, reply in enumerate(REPLIES)],
    )
    arguments = ["--compare", *systems[:2], str(half), "--language", "en"]
    alike, apart = score(*arguments, "--power", ".01")["tests"]
    assert "detectable_difference" not in alike, "two systems with equal scores say nothing about power"
    assert apart["units_needed"] == pytest.approx(24 * (apart["detectable_difference"] / 0.01) ** 2, abs=1)
    assert "units_needed" not in score(*arguments)["tests"][1]
    printed = shown(*arguments, "--power", ".01")
    assert f"{apart['detectable_difference']:.4f}" in printed
    assert f"{apart['units_needed']:,}" in printed
    assert "n for 0.01" in printed
    assert "80 % power" in shown(*arguments)


def test_power_of_one_system_counts_messages_and_assumes_independence(tmp_path: Path, shown: Ask, score: Ask) -> None:
    texts = [(reply,) if n % 3 else ("Hm",) for n, reply in enumerate(REPLIES)]
    single = str(predictions(tmp_path / "a.tsv", texts))
    (tmp_path / "b.tsv").write_text(Path(single).read_text() * 2)  # every message twice
    record = score(single, "--language", "en", "--power", ".01")
    scores = [float(n % 3 > 0) for n in range(len(REPLIES))]
    assert record["weighted"] == pytest.approx(2 / 3)
    assert record["units_needed"] == math.ceil((2.8016 / 0.01) ** 2 * 2 * statistics.variance(scores))
    assert record["power_method"].startswith("80 % power, two-sided alpha .05, for two independent systems")
    assert score(tmp_path / "b.tsv", "--language", "en", "--power", ".01")["units_needed"] == record["units_needed"]
    assert f"n = {record['units_needed']:,} detects" in shown(single, "--language", "en", "--power", ".01")


@pytest.mark.parametrize(("arguments", "words"), cases(__file__, "test_what_cannot_be_scored_is_one_sentence"))
def test_what_cannot_be_scored_is_one_sentence(
    systems: list[str], tmp_path: Path, arguments: list[str], words: str, unscored: Ask
) -> None:
    short, junk = tmp_path / "short.tsv", tmp_path / "junk.json"
    short.write_text("".join(Path(systems[0]).read_text(encoding="utf-8").splitlines(keepends=True)[1:]))
    junk.write_text("{}")
    one = predictions(tmp_path / "one.tsv", [("Maybe",)] * len(REPLIES))
    named = [argument.format(*systems, short=short, junk=junk, one=one) for argument in arguments]
    assert words in unscored(*named)
    assert not Path("x.json").exists()


def test_systems_of_other_examples_are_neither_ordered_nor_tested(
    systems: list[str], tmp_path: Path, shown: Ask, score: Ask, unscored: Ask
) -> None:
    """The same number of lines does not make them the same lines."""
    lines = Path(systems[0]).read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "shuffled.tsv").write_text("".join([*lines[1:], lines[0]]), encoding="utf-8")
    files = [systems[2], systems[0], str(tmp_path / "shuffled.tsv")]
    records = score(*files, "--language", "en")
    assert [record["system"] for record in records] == ["bad_1.tsv", "good.tsv", "shuffled.tsv"]
    assert not any("rank" in record for record in records)
    assert "not ordered: shuffled.tsv has other examples" in shown(*files, "--language", "en")
    saved = str(tmp_path / "good.json")
    shown(systems[0], "--language", "en", "--save-scores", saved)
    assert "other examples" in unscored("--compare", saved, files[2], "--language", "en")


def test_systems_that_skip_examples_are_ordered_by_those_of_all(tmp_path: Path, shown: Ask, score: Ask) -> None:
    """Alike is better on the half that both have, worse on the half that the other skips."""
    far, near = ("Yes", "No way at all"), ("See you there then", "See you there then")
    half = [("Yes", "Yes I will"), ("Yes",)] * 12
    files = [predictions(tmp_path / "half.tsv", half), predictions(tmp_path / "all.tsv", [far, near] * 12)]
    arguments = [*map(str, files), "--language", "en", "--metric", "self_rouge"]
    best, other = score(*arguments)
    assert (best["system"], best["rank"], other["rank"]) == ("all.tsv", 1, 2)
    assert best["self_rouge"] > other["self_rouge"]
    assert best["common"] == {"n": 12, "self_rouge": 0.0}
    assert "ordered by the 12 examples that every system has" in shown(*arguments)


def test_holm_s_correction_reaches_the_groups(tmp_path: Path, shown: Ask) -> None:
    """Two tests with p = 2 / 2^6 each: .03 alone, .06 together."""
    good, middle, bad = ("Yes, I will be there at eight",), ("Yes, I will",), ("Hm",)
    files = [
        predictions(tmp_path / f"{number}.tsv", [best, ("Hm",), ("Hm",)] * 6 + [("Hm",)] * 6)
        for number, best in enumerate((good, middle, bad))
    ]
    arguments = [*map(str, files), "--language", "en", "--json"]
    assert [record["rank"] for record in json.loads(shown(*arguments))] == [1, 2, 3]
    assert [record["rank"] for record in json.loads(shown(*arguments, "--holm"))] == [1, 1, 1]


def test_names_are_no_markup_and_tables_are_whole_in_a_pipe(systems: list[str], tmp_path: Path, shown: Ask) -> None:
    names = ["gen[beam=5].tsv", "gen[sample].tsv", "r[/x]/a.tsv", "a.tsv", f"{'long' * 40}.tsv"]
    (tmp_path / "r[").mkdir()
    (tmp_path / "r[" / "x]").mkdir()
    for name in names:
        (tmp_path / name).write_bytes(Path(systems[0]).read_bytes())
    printed = shown(*(str(tmp_path / name) for name in names), "--language", "en")
    assert all(str(tmp_path / name) in printed for name in names)  # two are called a.tsv
    assert "…" not in printed


def test_what_was_counted_is_shown(tmp_path: Path, shown: Ask) -> None:
    file = str(predictions(tmp_path / "dots.tsv", [("...", "Yes")] * len(REPLIES)))
    for metric in ("mrs_rouge", "self_rouge", "dist_n"):
        assert "dots.tsv: 24 empty suggestions" in shown(file, "--language", "en", "--metric", metric)
    assert "bootstrap" not in shown(file, "--language", "en", "--metric", "dist_n")


def test_dist_n_that_corrects_for_length(tmp_path: Path, score: Ask, unscored: Ask) -> None:
    file = str(predictions(tmp_path / "p.tsv", [("i do", "i do not")] * len(REPLIES)))
    metric = [file, "--language", "en", "--metric", "dist_n"]
    record = score(*metric, "--vocabulary", "10", "--sample-size", "4", "--seed", "1")
    assert record["ead"] == pytest.approx(3 / (10 * (1 - 0.9**120)))
    assert record["dist1_sampled"] > record["dist1"] == 3 / 120
    assert "vocab:10" in record["signature"]
    assert "size:4|samples:100|seed:1" in record["signature"]
    assert score(*metric, "--level", "response")["dist1"] == 1.0
    assert unscored(*metric, "--level", "response", "--vocabulary", "10")


@pytest.mark.parametrize(
    ("line", "words"),
    [("1.5\tinf", "a whole number of tokens"), ("3.0\t2.7", "a whole number"), ("nan\t1", "finite loss"),
     ("1\t1e30", "whole number"), ("1_0\t1", "separated by tabs"), ("1", "separated by tabs")],
)  # fmt: skip
def test_losses_that_are_none(tmp_path: Path, line: str, words: str, unscored: Ask) -> None:
    (tmp_path / "l.tsv").write_text(f"1.5\t2\n{line}\n")
    sentence = unscored(tmp_path / "l.tsv", "--metric", "reply_perplexity")
    assert "l.tsv, line 2: " in sentence
    assert words in sentence


def test_ranking_in_pools_and_of_odd_replies(tmp_path: Path, shown: Ask) -> None:
    (tmp_path / "s.tsv").write_text("a\u2028b\t0\t3\t1\t2\nno\t-1\t1\t2\t3\n", encoding="utf-8")
    ranking = [tmp_path / "s.tsv", "--metric", "response_ranking", "--json"]
    record = json.loads(shown(*ranking, "--pool", "2", "--seed", "7"))
    assert (record["n"], record["mrr"], record["skipped"]) == (1, 1.0, {"reply_absent": 1})
    assert "pool:2|of:candidates|seed:7" in record["signature"]
    assert json.loads(shown(*ranking, "--missing-reference", "zero"))["mrr"] == 0.5


def test_prompts_without_predictions_are_shown(tmp_path: Path, shown: Ask) -> None:
    gold, pred = tmp_path / "gold.txt", tmp_path / "pred.txt"
    gold.write_text("prompt_a|one\num|1.0\n\nprompt_b|yes\nsim|1.0\n", encoding="utf-8")
    pred.write_text("prompt_a|one\num\n", encoding="utf-8")
    printed = shown(pred, "--metric", "weighted_f1", "--gold", gold, "--markdown")
    assert "| pred.txt | 2 | 1.0000 | 0.5000 |" in printed
    assert "| 1 | 0 |\n" in printed  # missing, extra


def test_xglue_says_what_averages_lack(tmp_path: Path, shown: Ask) -> None:
    for name, lines in (
        ("pred/QADSM/{}.prediction", "\ufeffGood\nOdd\n"),
        ("data/QADSM/xglue.qadsm.{}.test", "q\tt\td\tGood\nq\tt\td\tBad\n"),
    ):
        for code in ("en", "de", "fr"):
            path = tmp_path / name.format(code)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(lines, encoding="utf-8")
    printed = shown(str(tmp_path / "pred"), "--metric", "xglue_score", "--gold", str(tmp_path / "data"))
    assert "0.5000" in printed  # the byte-order mark is not part of the label
    assert "QADSM de: 1 unknown" in printed
    assert "pred: averages lack NER (de en es nl)" in printed
    assert "lang:de+en+fr" in printed


def test_official_staple_rules_warn_on_stderr_and_score(tmp_path: Path, mrs_here: Ask) -> None:
    gold, pred = tmp_path / "gold.txt", tmp_path / "pred.txt"
    gold.write_text("prompt_a|one\num|0.5\ndois|nan\n\nprompt_b|yes\nsim|1.0\n", encoding="utf-8")
    pred.write_text("PROMPT_A|one\num\n\nprompt_b|yes\nsim\n", encoding="utf-8")
    arguments = ["score", pred, "--metric", "weighted_f1", "--gold", gold]
    code, out, err = mrs_here(*arguments, "--rules", "official", "--json")
    assert code == 0
    record = json.loads(out)
    assert record["macro_f1"] == pytest.approx((2 / 3 + 1) / 2)
    assert record["weighted_macro_f1"] is None
    assert (record["interval"], record["interval_method"]) == (None, "no interval: a weight is nan")
    first, second = err.splitlines()
    assert first.startswith(f"{gold}, line 3: ")
    assert second.startswith(f"{pred}, line 1: ")
    assert "line 3: expected a finite weight" in refused(mrs_here(*arguments))


def test_equal_scores_have_no_interval_and_the_output_says_why(tmp_path: Path, shown: Ask, score: Ask) -> None:
    path, same = tmp_path / "equal.tsv", tmp_path / "same.tsv"
    for file in (path, same):
        file.write_text("".join(f"How are you {n}?\tYes please\tYes please\tMaybe\n" for n in range(12)))
    record = score(path, "--language", "en")
    assert 0 < record["weighted"] < 1
    assert (record["interval"], record["interval_method"]) == (None, "no interval: all 12 scores are equal")
    printed = shown(path, "--language", "en")
    assert "(no interval: all 12 scores are equal)" in " ".join(printed.split())
    assert "in brackets" not in printed
    (test,) = score("--compare", path, same, "--language", "en")["tests"]
    assert (test["interval"], test["interval_method"]) == (None, "no interval: all 12 differences are equal")
    compared = shown("--compare", path, same, "--language", "en")
    assert "no interval: all 12 differences are equal" in " ".join(compared.split())


def test_rows_of_one_message_count_as_one(systems: list[str], tmp_path: Path, score: Ask, shown: Ask) -> None:
    """Each message three times: the intervals stay as they are, and so does the test of two systems."""
    repeated = []
    for path in systems:
        text = Path(tmp_path, path).read_text(encoding="utf-8")
        Path(tmp_path, "three_" + Path(path).name).write_text(3 * text, encoding="utf-8")
        repeated.append(str(tmp_path / ("three_" + Path(path).name)))
    once, thrice = score(systems[2], "--language", "en"), score(repeated[2], "--language", "en")
    assert (once["n"], thrice["n"]) == (24, 72)
    assert thrice["interval"] == pytest.approx(once["interval"], abs=0.01)
    assert thrice["interval_method"] == "Clopper-Pearson, by message"
    assert score(repeated[0], "--language", "en")["interval_method"] == "studentised bootstrap, by message"
    saved = str(tmp_path / "saved.json")
    printed = " ".join(shown(repeated[0], "--language", "en", "--save-scores", saved).split())
    assert "in brackets: 95 % interval of weighted ROUGE: studentised bootstrap, by message" in printed
    one = score("--compare", systems[0], systems[2], "--language", "en")["tests"][0]
    three = score("--compare", saved, repeated[2], "--language", "en")["tests"][0]
    assert three["p"] == pytest.approx(one["p"], abs=0.002)
    assert three["interval"] == pytest.approx(one["interval"], abs=0.05)


def test_the_official_rules_without_sentences_warn_where_they_differ(tmp_path: Path, mrs_here: Ask) -> None:
    one, several = tmp_path / "one.tsv", tmp_path / "several.tsv"
    one.write_text("Are you in?\tNo!\tYes. \tNo\n", encoding="utf-8")
    several.write_text("Are you in?\tNo. Not today.\tYes\tNo. Never\n", encoding="utf-8")
    for path, rules, wanted in ((one, "official", 0), (several, "official", 1), (several, "paper", 0)):
        code, out, err = mrs_here("score", path, "--language", "en", "--rules", rules)
        assert code == 0
        assert " ".join(out.split()).count("for its scores, pass --sentences punkt") == wanted, err
    code, out, err = mrs_here("score", several, several, "--language", "en", "--json")
    assert "sent:no" in json.loads(out)[0]["signature"]
    assert err.count("warning: rules:mrs: texts with a dot inside") == 1
