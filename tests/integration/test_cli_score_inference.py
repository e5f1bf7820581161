"""`mrs score`: the unit of inference, tests of figures that are not means, effect sizes, and power from a paper."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mrs_metrics.power import FACTOR
from tests import command
from tests.command import Result

pytestmark = pytest.mark.integration

Ask = Callable[..., Any]
WORDS = ["yes", "no", "we", "are", "going", "home", "at", "eight", "or", "nine", "and", "then", "to", "town", "all"]


@pytest.fixture
def threads(tmp_path: Path) -> Path:
    """Thirty examples of ten threads, with other messages, under a header line."""
    lines = ["message\treference\tthread\ts1\ts2"]
    for n in range(30):
        reply = " ".join(WORDS[n % 10 : n % 10 + 6])
        good = reply if (n // 3) % 2 else "hm"
        lines.append(f"Message {n}?\t{reply}\tt{n // 3}\t{good}\tmaybe")
    path = tmp_path / "threads.tsv"
    path.write_text("\n".join(lines) + "\n")
    return path


def two_systems(folder: Path) -> list[str]:
    files = []
    for name in ("varied", "dull"):
        rows = []
        for n in range(40):
            reply = " ".join(WORDS[n % 8 : n % 8 + 6])
            rows.append(f"Message {n}?\t{reply}\t{reply if name == 'varied' or n % 4 == 0 else 'qqqq qqqq qqqq qqqq'}")
        (folder / f"{name}.tsv").write_text("\n".join(rows) + "\n")
        files.append(str(folder / f"{name}.tsv"))
    return files


def test_a_column_of_the_file_is_the_unit(threads: Path, score: Ask, shown: Ask, unscored: Ask) -> None:
    by_thread = score(threads, "--language", "en", "--unit", "thread")
    assert "|unit:thread|version:" in by_thread["signature"]
    assert by_thread["interval_method"].endswith(", by thread")
    plain = threads.with_name("plain.tsv")
    rows = [line.split("\t") for line in threads.read_text().splitlines()[1:]]
    plain.write_text("".join("\t".join([*row[:2], *row[3:]]) + "\n" for row in rows))
    by_message = score(plain, "--language", "en")
    assert "|unit:message|version:" in by_message["signature"]
    assert by_message["weighted"] == by_thread["weighted"]
    widths = [one["interval"][1] - one["interval"][0] for one in (by_thread, by_message)]
    assert widths[0] > 1.4 * widths[1], "three rows of a thread are alike"
    assert by_thread["dist1_interval"][0] < by_thread["dist1"] < by_thread["dist1_interval"][1]
    assert "by thread" in shown(threads, "--language", "en", "--unit", "thread", "--metric", "reply_bleu")
    assert "a column 'person' (--unit), found" in unscored(threads, "--language", "en", "--unit", "person")


def test_numbers_have_units_too(tmp_path: Path, score: Ask) -> None:
    lines = [f"t{n // 4}\t{1 + n // 4}\t2" for n in range(24)]
    (tmp_path / "losses.tsv").write_text("\n".join(["thread\tloss\ttokens", *lines]) + "\n")
    (tmp_path / "plain.tsv").write_text("\n".join(line.partition("\t")[2] for line in lines) + "\n")
    by_thread = score(tmp_path / "losses.tsv", "--metric", "reply_perplexity", "--unit", "thread")
    by_row = score(tmp_path / "plain.tsv", "--metric", "reply_perplexity")
    assert by_thread["perplexity"] == by_row["perplexity"]
    assert by_thread["interval"][1] - by_thread["interval"][0] > by_row["interval"][1] - by_row["interval"][0]
    assert ["|unit:thread|" in by_thread["signature"], "|unit:example|" in by_row["signature"]] == [True, True]


@pytest.mark.parametrize(("metric", "figures"), [("reply_bleu", ["bleu"]), ("dist_n", ["dist1", "dist2"])])
def test_figures_that_are_not_means_are_compared(
    metric: str, figures: list[str], tmp_path: Path, score: Ask, shown: Ask
) -> None:
    if metric == "reply_bleu":
        pytest.importorskip("sacrebleu", reason="needs sacrebleu")
    files = two_systems(tmp_path)
    content = score("--compare", *files, "--language", "en", "--metric", metric)
    assert [test["figure"] for test in content["tests"]] == figures
    whole = {Path(file).name: score(file, "--language", "en", "--metric", metric) for file in files}
    for test in content["tests"]:
        expected = whole[test["a"]][test["figure"]] - whole[test["b"]][test["figure"]]
        assert test["difference"] == pytest.approx(expected)
        assert test["interval"][0] < test["difference"] < test["interval"][1]
        assert "jackknife" in test["interval_method"]
        assert 0 < test["p"] < (0.05 if metric == "reply_bleu" else 1)
    test = content["tests"][0]
    assert f"{test['a']} - {test['b']}" in shown("--compare", *files, "--language", "en", "--metric", metric)


def test_a_ranking_has_intervals_and_tests_of_all_its_figures(tmp_path: Path, score: Ask) -> None:
    good = [f"reply {n % 5}\t0\t{2 if n % 3 else 0}\t1\t.5\t.2" for n in range(30)]
    bad = [f"reply {n % 5}\t0\t{2 if n % 6 == 1 else 0}\t1\t.5\t.2" for n in range(30)]
    for name, lines in (("good.tsv", good), ("bad.tsv", bad)):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    content = score("--compare", tmp_path / "good.tsv", tmp_path / "bad.tsv", "--metric", "response_ranking")
    tests = {test["figure"]: test for test in content["tests"]}
    assert list(tests) == ["mrr", "macro_mrr", "p@1", "p@3"]
    assert all(test["p"] < 0.01 for test in tests.values())
    one = score(tmp_path / "good.tsv", "--metric", "response_ranking")
    for name in ("macro_mrr", "p@1", "p@3"):
        low, high = one[f"{name}_interval"]
        assert low < one[name] < high <= (1 / 3 if name == "p@3" else 1)


def test_the_effect_size_counts_deviations_of_the_difference(tmp_path: Path, score: Ask) -> None:
    files = two_systems(tmp_path)
    (test,) = score("--compare", *files, "--language", "en", "--metric", "simulated_clicks")["tests"]
    differences = [float(n % 4 > 0) for n in range(40)]
    deviation = math.sqrt(sum((one - 0.75) ** 2 for one in differences) / 39)
    assert test["effect_size"] == pytest.approx(0.75 / deviation)
    assert test["cohens_h"] == pytest.approx(math.pi - 2 * math.asin(math.sqrt(0.25)))


def test_power_from_the_deviation_of_a_paper(shown: Ask, score: Ask, unscored: Ask, threads: Path) -> None:
    needed = math.ceil(2 * (FACTOR * 0.3 / 0.01) ** 2)
    assert score("--power", ".01", "--power-sd", ".3")["units_needed"] == needed
    assert f"n = {needed:,} detects a difference of 0.01" in shown("--power", ".01", "--power-sd", ".3")
    for arguments in (["--power-sd", ".3"], ["--power", ".1", "--power-sd", "0"], [threads, "--power-sd", "1"]):
        assert "--power-sd: expected a deviation above 0 with --power D, and no file" in unscored(*arguments)


def test_decomposed_text_scores_as_composed_text(tmp_path: Path, score: Ask) -> None:
    for name, text in (("nfc.tsv", "café à huit heures"), ("nfd.tsv", "cafe\u0301 a\u0300 huit heures")):
        (tmp_path / name).write_text(f"Salut ?\tcafé à huit heures\t{text}\nOui ?\tNon\tOui\n", encoding="utf-8")
    both = [score(tmp_path / name, "--language", "fr") for name in ("nfc.tsv", "nfd.tsv")]
    assert both[0] == both[1]
    assert both[0]["weighted"] == pytest.approx(0.5)


def test_rules_are_official_only_with_punkt(tmp_path: Path, mrs_here: Callable[..., Result]) -> None:
    (tmp_path / "a.tsv").write_text("Hi\tYes. Sure.\tYes. No.\nHi\tNo\tNo\n")
    printed = command.shown(mrs_here("score", tmp_path / "a.tsv", "--language", "en"))
    assert "mrs_rouge|rules:mrs|" in printed
    assert printed.count("warning: ") == 1
