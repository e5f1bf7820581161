"""The scripts and notebooks of examples/ run, and print what their pages show.

`reproduce_a_row.py` is run by the researcher's walk (`test_walks.py`), which has made the run that it looks for, and
`scripted_teacher.py` by `test_cli_generate.py`.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests import warm_python
from tests.command import released

pytestmark = pytest.mark.integration

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
WALKED = {"reproduce_a_row", "scripted_teacher"}
LINES = {  # a line that each script prints
    "suggest": r"^  nothing: hardship$",
    "score_a_system": r"^keyword_rule +weighted ROUGE 0\.\d{4} \[0\.\d{4}, 0\.\d{4}\]$",
    "serve": r"^I have sent you the report\. \[\"Thank you, I'll look at it\.\", .*\]$",
    "train_on_own_chats": r"^It is on its way, I will send you the tracking number\.$",
}


@pytest.mark.parametrize("name", LINES)
def test_a_script_does_what_it_says(name: str, tmp_path: Path) -> None:
    done = warm_python.run([sys.executable, EXAMPLES / f"{name}.py"], cwd=tmp_path, timeout=400)
    assert done.returncode == 0, done.stderr[-3000:]
    assert re.search(LINES[name], done.stdout, re.MULTILINE), done.stdout


def test_every_script_is_run_and_listed() -> None:
    ours = {path.stem for path in EXAMPLES.glob("*.py")} - {"word_dictionary"}  # which takes a pretrained encoder
    assert ours == {*LINES, *WALKED}
    listed = re.findall(r"\]\((\w+\.(?:py|ipynb))\)", (EXAMPLES / "README.md").read_text(encoding="utf-8"))
    assert sorted(listed) == sorted(path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".ipynb"))


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_prints_what_it_holds(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    kept, run = (nbformat.read(path, as_version=4) for _ in range(2))
    NotebookClient(run, timeout=400, kernel_name="python3").execute()
    code = [cell for cell in kept.cells if cell.cell_type == "code"]
    assert all(cell.execution_count == number for number, cell in enumerate(code, 1)), "run the notebook from its start"
    assert list(shown(run)) == list(shown(kept))
    assert "stderr" not in str(kept), "clear the warnings"


def shown(notebook: Any) -> Iterator[tuple[int, str, bool]]:
    """Of each cell with output: its place, what it printed, and whether it drew a picture."""
    for place, cell in enumerate(notebook.cells):
        outputs = [output for output in cell.get("outputs", []) if output.get("name") != "stderr"]
        if outputs:
            text = released("".join(output.get("text", "") for output in outputs))
            yield place, text, any("image/png" in output.get("data", {}) for output in outputs)
