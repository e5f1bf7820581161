"""A page names the extras that its commands and its Python need: at its top, or in the section that needs more."""

import ast
import doctest
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mrs_suggest.cli.main import EXTRAS
from mrs_suggest.common.extras import modules_by_extra
from tests.docs.test_pages import PYTHON

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "docs" / "site"))  # the site's own scripts; no name of theirs is a library's

import blocks  # noqa: E402

# Cards are read on the hub, and the blocks of a first contribution run in the environment that `make` makes.
ELSEWHERE = ("dataset_card.md", "model_card.md", "first_contribution.md", "CONTRIBUTING.md")
PAGES = [page for page in blocks.pages(ROOT) if page.name not in ELSEWHERE]
NAMED = re.compile(r"pip install (?:-e )?'\.\[([\w,]+)\]'")
# The first pattern that fits a command gives its extra; the table of `mrs` has those of other verbs. `mrs score`,
# `mrs models index` and `list`, and reports on clicks run in the base installation.
VERBS = {
    r"mrs feedback tune": "score",
    r"mrs (score|feedback|models (index|list)|--version|--help)": "",
    r"mrs demo ": "demo",
    r"mrs data (build|synth|corpus)": "reddit",
    r"mrs data translate .*=dictionary:": "data",
    r"mrs data translate": "translate",
    r"(mrs train|accelerate launch|torchrun|python (examples|benchmarks)/)": "train",
    r"python -m mrs_suggest\.integrations\.mteb": "mteb",
    r"python -m mrs_suggest\.integrations\.samples": "data",
    r"python -m mrs_metrics\.page": "spaces",
}
# Options that need an extra in addition.
OPTIONS = {
    r"--sweep ": "sweep",
    r"--report_to (tensorboard|wandb|trackio|mlflow)": None,  # of the same name
    r"--onnx": "onnx",
    r"--ctranslate2": "ctranslate2",
    r"--engine spark|spark-submit": "spark",
    r"s3://": "s3",
    r"--metric semantic": "torch",
    r"--metric reply_bleu": "bleu",
    r"openai:\S+\.yaml": "data",
}


def needed(command: str) -> set[str]:
    """The extras that a command needs; empty for the base installation and for other programs."""
    command = f"{command} "
    found = {extra or match[1] for pattern, extra in OPTIONS.items() if (match := re.search(pattern, command))}
    for pattern, extra in VERBS.items():
        if re.match(pattern, command):
            return found | ({extra} if extra else set())
    verb = re.match(r"mrs (\w+)", command)
    return found | ({EXTRAS[verb[1]]} if verb and verb[1] in EXTRAS else set())


def named_before(text: str, at: int) -> set[str]:
    """The extras that a page names before the end of the section at this place."""
    end = re.compile(r"^## ", re.MULTILINE).search(text, at)
    return {extra for names in NAMED.findall(text[: end.start() if end else None]) for extra in names.split(",")}


def modules(extras: set[str]) -> set[str]:
    return set().union(*(modules_by_extra()[extra] for extra in extras))


def relative(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_the_extras_of_each_command_are_named(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    lacking = []
    for block in blocks.BLOCK.finditer(text):
        named = named_before(text, block.end())
        for command in blocks.commands_of(block["text"]):
            if absent := [extra for extra in needed(command) if modules({extra}) - modules(named)]:
                lacking.append(f"{command}: {absent}")
    assert lacking == [], "name them: pip install '.[EXTRA]'"


def imports(snippet: str) -> Iterator[str]:
    """The import statements of a snippet, which may be a session."""
    if ">>>" in snippet:
        snippet = "".join(one.source for one in doctest.DocTestParser().get_examples(snippet))
    for node in ast.walk(ast.parse(snippet)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield ast.unparse(node)


# Runs import statements with the packages of some extras only, and prints those that fail.
TRY = """
import json, sys
from tests.lean_process import Hiding, lacking
hidden = lacking(json.loads(sys.argv[2]))
sys.meta_path[:] = [Hiding(finder, hidden) for finder in sys.meta_path]
failed = {}
for line in json.loads(sys.argv[1]):
    try:
        exec(line, {})
    except ImportError as error:
        failed[line] = str(error)
print(json.dumps(failed))
"""


def python_by_extras() -> dict[tuple[str, ...], set[str]]:
    """Extras -> the import statements of the pages' Python below which they are named; none that fewer extras serve."""
    found: dict[tuple[str, ...], set[str]] = {}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for snippet in PYTHON.finditer(text):
            found.setdefault(tuple(sorted(named_before(text, snippet.end()))), set()).update(imports(snippet[1]))
    for extras in sorted(found, key=lambda extras: -len(modules({*extras}))):
        fewer = [lines for other, lines in found.items() if modules({*other}) < modules({*extras})]
        found[extras] = found[extras].difference(*fewer)
    return {extras: lines for extras, lines in found.items() if lines}


BY_EXTRAS = python_by_extras()


@pytest.mark.integration
@pytest.mark.parametrize("extras", BY_EXTRAS, ids=lambda extras: "-".join(extras) or "base")
def test_what_python_imports_is_there(extras: tuple[str, ...]) -> None:
    words = [sys.executable, "-c", TRY, json.dumps(sorted(BY_EXTRAS[extras])), json.dumps(extras)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {}
