"""`mrs models index` and the tags of `mrs suggest`, on the model that ships."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mrs_suggest.cli.main import main
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.baselines import read_baselines
from mrs_suggest.suggest.index.response_index import ResponseIndexes
from mrs_suggest.suggest.suggester import Suggester
from mrs_suggest.training.retrieval.click_tuning import tune
from tests.cases import cases
from tests.command import Result, refused

pytestmark = pytest.mark.integration

SAMPLE = "everyday-retriever"
MIXED = (
    "Let me look into it.\n\nLet me look into it!\nSee https://example.com\nMuchas gracias por todo, amigo mío\nOK\n"
)
Run = Callable[..., Result]


@pytest.fixture
def index(mrs_here: Run) -> Run:
    return lambda *arguments: mrs_here("models", "index", *arguments)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mixed.txt"
    path.write_text(MIXED, encoding="utf-8")
    return path


def test_check_prints_the_findings_with_their_rows(index: Run, file: Path, tmp_path: Path) -> None:
    code, out, err = index(SAMPLE, "--check", "--language", "en", "--responses", file)
    assert (code, err) == (1, "")
    cells = [[cell.strip() for cell in line.strip("│").split("│")] for line in out.splitlines() if "│" in line]
    assert [row[:2] for row in cells] == [["2", "empty"], ["3", "duplicate"], ["4", "link"], ["5", "wrong language"]]
    assert out.splitlines()[-1] == f"{file}, en: 6 rows, 4 findings"
    code, out, _ = index(SAMPLE, "--check", "--language", "en", "--responses", file, "--json")
    found = json.loads(out)
    assert (code, found["rows"], [one["row"] for one in found["findings"]]) == (1, 6, [2, 3, 4, 5])
    file.write_text("Let me look into it.\n", encoding="utf-8")
    assert index(SAMPLE, "--check", "--language", "en", "--responses", file)[0] == 0
    code, out, _ = index(SAMPLE, "--check", "--language", "sv")
    told = f"{SAMPLE}, sv: 2,752 rows, 2 findings"  # "Hahaha, underbart!", "Natti natti!"
    assert (code, out.splitlines()[-1]) == (1, told)


def test_toxic_replies_are_found_by_the_guard_s_lists_or_by_one_s_own(index: Run, tmp_path: Path) -> None:
    file = tmp_path / "toxic.txt"
    file.write_text("Sure thing.\nShut up, you idiot.\nYou muppet!\n", encoding="utf-8")
    rows = [SAMPLE, "--check", "--language", "en", "--responses", file, "--json"]

    def toxic(*options: object) -> list[tuple[int, str]]:
        found = json.loads(index(*rows, *options)[1])["findings"]
        return [(one["row"], one["told"]) for one in found if one["kind"] == "toxic"]

    assert toxic() == [(2, "idiot")]
    (tmp_path / "own" / "lists").mkdir(parents=True)
    (tmp_path / "own" / "lists" / "en.yaml").write_text("slurs: [muppet]\n", encoding="utf-8")
    assert toxic("--guard-lists", tmp_path / "own") == [(3, "muppet")]
    code, _, err = index(*rows, "--guard-lists", tmp_path / "missing")
    assert (code, err.count("\n")) == (2, 1)
    assert "missing" in err


def test_replies_that_the_guard_holds_back_are_named(index: Run, mrs_here: Run, tmp_path: Path) -> None:
    file, out = tmp_path / "dates.txt", tmp_path / "out"
    file.write_text("See you at 8 pm.\nMonday at noon works.\nI am in Berlin.\n", encoding="utf-8")
    held = "held back by the guard unless the message has the same date, time or place: 3 replies ('See you at 8 pm.', "
    code, printed, _ = index(SAMPLE, "--check", "--language", "en", "--responses", file)
    assert (code, held in printed) == (0, True), "not a problem of the reply: some messages name its time"
    code, printed, _ = index(SAMPLE, "--language", "en", "--responses", file, "--out", out)
    (answered,) = re.findall(r"en: (\d+) of 200 everyday messages", printed)
    assert (code, held in printed, int(answered) < 20) == (0, True, True)
    _, shown, _ = mrs_here("suggest", "--model", out, "How are you?", "See you at 8 pm?")
    assert "a date, time or place that the message lacks; --guard off shows them)" in shown
    assert "1. See you at 8 pm." in shown
    with pytest.raises(InputError, match="it has no ranker.* own replies replaced it"):
        tune(out, "v1", [], tmp_path / "tuned", overwrite=False)


def test_findings_stop_a_change_or_are_left_out(index: Run, file: Path, tmp_path: Path) -> None:
    run, out = tmp_path / "run", tmp_path / "out"
    shutil.copytree(read_baselines()[SAMPLE].folder, run)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    code, printed, err = index(run, "--language", "en", "--responses", file)
    assert (code, printed) == (2, "")
    assert "4 findings in 6 rows; correct them, or pass --on-finding skip" in err
    assert "wrong language" in err
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
    for action, kept in (("skip", ["Let me look into it.", "OK"]), ("keep", None)):
        where = ("--out", out, "--overwrite", "--keep-other-languages")
        code, printed, err = index(run, "--language", "en", "--responses", file, "--on-finding", action, *where)
        assert (code, err) == (0, "")
        own = [line for line in dict.fromkeys(MIXED.splitlines()) if line and line != "Let me look into it!"]
        assert ResponseIndexes(out)["en"].replies == (kept or own)
        assert printed.splitlines()[-1] == f"wrote {out}"
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(("arguments", "sentence"), cases(__file__, "REFUSED"))
def test_what_cannot_be_done_is_refused_in_one_sentence(
    index: Run, file: Path, tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    places = {"FILE": str(file), "OUT": str(tmp_path / "out"), "NONE": str(tmp_path / "none.csv")}
    assert sentence in refused(index(*(places.get(part, part) for part in arguments)))
    assert not (tmp_path / "out").exists()


def test_tags_allow_and_deny_suggestions(index: Run, mrs_here: Run, tmp_path: Path) -> None:
    file, out = tmp_path / "own.csv", tmp_path / "out"
    file.write_text(
        "reply,tags\nSure thing!,casual\nGladly.,formal\nBuy now!,formal sales\nLater.,\n", encoding="utf-8"
    )
    assert index(SAMPLE, "--language", "en", "--responses", file, "--out", out)[0] == 0

    def asked(*options: str) -> Result:
        common = "--model", out, "--json", "--language", "en", "--min-score", "0"
        return mrs_here("suggest", *common, *options, "Can you help me?")

    for options, expected in [
        (["--allow-tag", "formal"], ["Buy now!", "Gladly."]),
        (["--allow-tag", "formal", "--allow-tag", "casual", "--deny-tag", "sales"], ["Gladly.", "Sure thing!"]),
        (["--allow-tag", "sales", "--deny-tag", "formal"], []),
    ]:
        code, shown, _ = asked(*options)
        assert code == 0
        assert sorted(suggestion["reply"] for suggestion in json.loads(shown)["suggestions"]) == expected
    assert "--deny-tag sale: no reply has this tag; the tags are casual formal sales." in refused(
        asked("--deny-tag", "sale")
    )


def test_replies_set_from_python_are_those_of_the_command(tmp_path: Path) -> None:
    rows = [{"reply": "Yes, I will be there.", "tags": ["yes"]}, {"reply": "Sorry, I cannot come.", "tags": ["no"]}]
    (tmp_path / "own.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    command = ["models", "index", "everyday-retriever", "--language", "en", "--responses", str(tmp_path / "own.jsonl")]
    assert main([*command, "--out", str(tmp_path / "made")]) == 0
    suggester = Suggester.from_pretrained("everyday-retriever")
    assert suggester.set_replies(rows, "en") is suggester
    made, message = Suggester.from_pretrained(tmp_path / "made"), "Are you coming to the party?"
    assert suggester(message) == made(message) == Suggester.from_pretrained("everyday-retriever").set_replies(
        tmp_path / "own.jsonl", "en"
    )(message)  # fmt: skip
    assert (suggester.languages, suggester.tags) == (["en"], {"en": ["no", "yes"]})
    suggester.save_pretrained(tmp_path / "saved")
    assert Suggester.from_pretrained(tmp_path / "saved", verify=True)(message) == made(message)
    with pytest.raises(InputError, match="saved"):
        suggester.save_pretrained(tmp_path / "saved")
    for wrong, told in ((["Yes.", "Yes."], "row 2, 'Yes.': duplicate"), ([" "], "empty"), ([], "has no reply")):
        with pytest.raises(InputError, match=told):
            suggester.set_replies(wrong, "en")
    assert suggester(message) == made(message)
