"""Commands of the documentation run as a reader would type them, page by page, with the extras that the page names.

Each page has a folder of its own, in which its commands run one after the other; pages that name the same extras share
a process, which saves the imports. The folder has what the pages name as the reader's own: prediction files, pairs,
replies.
"""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "docs" / "site"))  # the site's own scripts; no name of theirs is a library's

import blocks  # noqa: E402

from tests.docs.test_extras import named_before  # noqa: E402

LEDGER = {
    page: [entry for entry in entries.values() if "run" in entry]
    for page, entries in blocks.read_ledger(ROOT).items()
    if (ROOT / page).is_file()
}
PAGES = [page for page, entries in LEDGER.items() if entries]
PAIRS = [("Jak się masz?", "Dobrze, a ty?"), ("Idziesz na obiad?", "Tak, już idę."), ("Dzięki!", "Nie ma za co.")]
ROW = ("Kommst du?", "Ja, gern!", "Ja, gern!", "Nein, leider nicht.", "Vielleicht.")  # message, reference, suggestions


def filled(folder: Path) -> Path:
    """A new folder where the commands of a page run, with the files that the pages name."""
    folder.mkdir()
    (folder / "trainers").symlink_to(ROOT / "trainers")
    for name, shift in (("A", 0), ("B", 1), ("C", 2)):
        rows = [
            "\t".join((f"{number} {ROW[0]}", ROW[1], *ROW[2 + shift :], *ROW[2 : 2 + shift])) for number in range(12)
        ]
        (folder / f"{name}.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    lines = [f"{n} {message},{reply}" for n in range(10) for message, reply in PAIRS]
    chat = "\n".join(["question,answer", *(f'"{m}","{r}"' for m, r in (line.split(",", 1) for line in lines))])
    (folder / "chat.csv").write_text(chat + "\n", encoding="utf-8")
    (folder / "replies.csv").write_text(
        "reply,tags\nOn its way!,polite\nLet me check.,polite\nNo idea.,\nBuy two!,sales\nTen minutes late.,late\n",
        encoding="utf-8",
    )
    turns = [{"from": "them", "text": "¿Quedamos mañana?"}, {"from": "me", "text": "Vale"}]
    (folder / "chat.json").write_text(json.dumps([*turns, {"from": "them", "text": "ok"}]), encoding="utf-8")
    (folder / "chats").mkdir()
    pairs = [f"{n} Where is my parcel?\tIt is on its way, number {n % 7}." for n in range(120)]
    (folder / "chats" / "en.tsv").write_text("\n".join(pairs) + "\n", encoding="utf-8")
    (folder / "more.txt").write_text("It left today.\n", encoding="utf-8")
    (folder / "old.txt").write_text("No idea.\n", encoding="utf-8")
    (folder / "DIR").symlink_to(ROOT / "mrs_datasets" / "sample")
    return folder


def extras_of(page: str) -> tuple[str, ...]:
    """The extras that a page names up to the section of the last command that runs here."""
    text = (ROOT / page).read_text(encoding="utf-8")
    here = {entry["command"] for entry in LEDGER[page]}
    last = max(one.end() for one in blocks.BLOCK.finditer(text) if here & set(blocks.commands_of(one["text"])))
    return tuple(sorted(named_before(text, last)))


GROUPS: dict[tuple[str, ...], list[str]] = {}
for one in PAGES:
    GROUPS.setdefault(extras_of(one), []).append(one)


@pytest.mark.parametrize("extras", GROUPS, ids=lambda extras: "-".join(extras) or "base")
def test_the_commands_of_pages_run_with_their_extras(extras: tuple[str, ...], tmp_path: Path) -> None:
    commands, expected = [], []
    for number, page in enumerate(GROUPS[extras]):
        runs = [entry["run"] if isinstance(entry["run"], dict) else {} for entry in LEDGER[page]]
        commands += [["cd", str(filled(tmp_path / str(number)))], *map(words_of, LEDGER[page])]
        expected += [0, *(run.get("code", 0) for run in runs)]
    env = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ['PYTHONPATH']}"}
    words = [sys.executable, "-m", "tests.lean_process", json.dumps(commands), *extras]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr[-2000:]
    for one, code in zip(json.loads(done.stdout.splitlines()[-1]), expected, strict=True):
        assert one["code"] == code, f"{one['words']}\n{one['out'][-1500:]}{one['err'][-1500:]}"


def words_of(entry: dict[str, Any]) -> list[str]:
    """The words of a command for `mrs`, with what its entry replaces and adds."""
    other = entry["run"] if isinstance(entry["run"], dict) else {}
    words = [other.get("with", {}).get(word, word) for word in shlex.split(entry["command"])]
    words += shlex.split(other.get("plus", ""))
    if words[:2] == ["accelerate", "launch"]:
        (at,) = [number for number, word in enumerate(words) if word.endswith(".py")]
        words = ["mrs", "train", Path(words[at]).stem, *words[at + 1 :]]
    assert words[0] == "mrs", words
    return words[1:]
