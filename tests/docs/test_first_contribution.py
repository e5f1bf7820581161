"""docs/first_contribution.md is carried out: in a copy of the checkout, by the page's own blocks."""

import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import warm_python

pytestmark = pytest.mark.integration
STEP = re.compile(
    r"^\*\*New file\*\* `(?P<new>[^`]+)`:\n\n```\w+\n(?P<content>.*?)```$"
    r"|^\*\*In\*\* `(?P<old>[^`]+)`, \*\*(?P<how>below|instead of)\*\* `(?P<anchor>[^`]+)`:\n\n"
    r"```\w+\n(?P<added>.*?)```$"
    r"|^```console\n(?P<session>.*?)```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Command:
    """A command of the page, and the beginnings of what it prints."""

    words: list[str]
    prints: list[str]


def walks(repository: Path) -> dict[str, str]:
    """Heading -> text of each section of the page that has steps."""
    page = (repository / "docs" / "first_contribution.md").read_text(encoding="utf-8")
    parts = re.split(r"^## (.+)$", page, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def commands(session: str) -> list[Command]:
    found: list[Command] = []
    for line in session.splitlines():
        if line.startswith("$ "):
            found.append(Command(shlex.split(line.removeprefix("$ ")), []))
        else:
            found[-1].prints.append(line)
    return found


@pytest.fixture(scope="module")
def files(repository: Path) -> list[str]:
    """The tracked files that the walks need: code, tests, settings and text, no pictures and results."""
    if not (repository / ".git").exists():
        pytest.skip("needs a checkout, to list the tracked files")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=repository, capture_output=True, check=True).stdout
    names = listed.decode("utf-8").split("\0")
    return [name for name in names if name and not re.match(r"benchmarks/results/|docs/.*\.png", name)]


@pytest.mark.parametrize("walk", ["A metric", "A data set", "A language"])
def test_a_walk_ends_with_the_addition_at_work(repository: Path, files: list[str], tmp_path: Path, walk: str) -> None:
    copy = tmp_path / "copy"
    for name in files:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(repository / name, copy / name)
    ran = 0
    for step in STEP.finditer(walks(repository)[walk]):
        if step["new"]:
            target = copy / step["new"]
            assert not target.exists(), f"{step['new']} is no new file"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(step["content"], encoding="utf-8")
        elif step["old"]:
            insert(copy / step["old"], step["anchor"], step["added"], below=step["how"] == "below")
        else:
            for command in commands(step["session"]):
                run(command, copy)
                ran += 1
    assert ran >= 2


def insert(target: Path, anchor: str, added: str, *, below: bool) -> None:
    """Put a text below a whole line, or in place of a part of one."""
    text = target.read_text(encoding="utf-8")
    old = f"\n{anchor}\n" if below else anchor
    assert text.count(old) == 1, f"{target.name}: {anchor!r} stands there {text.count(old)} times"
    target.write_text(text.replace(old, f"{old}{added}" if below else added.rstrip("\n")), encoding="utf-8")


def run(command: Command, copy: Path) -> None:
    """Run `mrs ...` or `pytest ...` with the code of the copy."""
    program, *words = command.words
    module = {"mrs": ["mrs_suggest.cli.main"], "pytest": ["pytest", "-p", "no:cacheprovider", "-p", "no:xdist"]}[
        program
    ]
    done = warm_python.run([sys.executable, "-m", *module, *words], cwd=copy, timeout=600, merged=True)
    assert done.returncode == 0, f"{shlex.join(command.words)}\n{done.stdout[-4000:]}"
    at = 0
    for line in command.prints:
        at = done.stdout.find(line, at) + len(line)
        assert at >= len(line), f"{shlex.join(command.words)}: {line!r} is not printed:\n{done.stdout[-4000:]}"


def test_the_page_has_no_block_that_is_left_out(repository: Path) -> None:
    """Every fenced block of the walks is a step, so that nothing on the page stands untried."""
    for walk, text in walks(repository).items():
        blocks = len(re.findall(r"^```\w+$", text, re.MULTILINE))
        assert len(list(STEP.finditer(text))) == blocks, walk
    assert {"A metric", "A data set", "A language"} == set(walks(repository))
