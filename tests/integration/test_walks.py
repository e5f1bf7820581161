"""Three people with nothing but README.md: each section's commands, as they stand there, end with what each came for.

Every block of a section runs in order, in an empty folder with empty caches: `console` line by line, `python` as a
program, `csv` written to the file that the text names. What a block shows below a command must be in its output. Only
two things differ: the extras are installed already, and the server's port is free, while the page's may be in use.
"""

import csv
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests import warm_python
from tests.mrs_suggest.serving.server_process import ServerProcess

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


class Walk:
    """A section of the README, walked in a folder; `said` has the output of each command, by its beginning."""

    def __init__(self, heading: str, folder: Path) -> None:
        self.folder = folder
        self.environment = warm_python.with_caches_in(folder / "caches")
        self.said: dict[str, str] = {}
        self.server: ServerProcess | None = None
        _, _, section = README.partition(f"\n## {heading}\n")
        section = section.partition("\n## ")[0]
        assert section, f"README.md has no section {heading!r}"
        try:
            for block in BLOCK.finditer(section):
                if block["kind"] == "console":
                    for command, shown in commands(block["text"]):
                        output = self.said[command] = self.run(shlex.split(command, comments=True))
                        assert shown in output, f"{command}: README.md shows another output"
                elif block["kind"] == "python":
                    self.said["python"] = self.python("-c", block["text"])
                else:
                    (name,) = re.findall(r"`([\w.]+)`:\n\n$", section[: block.start()])
                    (folder / name).write_text(block["text"], encoding="utf-8")
        finally:
            if self.server:
                self.server.stop()

    def run(self, words: list[str]) -> str:
        if words[:2] == ["pip", "install"]:  # tests/docs/test_extras.py checks that the page names the extras it needs
            return ""
        if words[:2] == ["mrs", "serve"]:
            self.server = ServerProcess(*words[2:], folder=self.folder, environment=self.environment)
            self.server.wait_for_workers()
            return ""
        if words[0] == "mrs":
            return self.python("-m", "mrs_suggest.cli.main", *words[1:])
        assert words[0] == "curl", words
        assert self.server
        asked = [word.replace("localhost:8000", self.server.url) for word in words]
        done = subprocess.run([*asked, "--silent", "--fail"], capture_output=True, text=True, check=True, timeout=60)
        return done.stdout

    def python(self, *words: str) -> str:
        done = warm_python.run([sys.executable, *words], cwd=self.folder, env=self.environment, timeout=400)
        assert done.returncode == 0, f"{words}:\n{done.stderr[-3000:]}"
        return done.stdout

    def output(self, beginning: str) -> str:
        """The output of the one command that begins so."""
        (found,) = (said for command, said in self.said.items() if command.startswith(beginning))
        return found


def commands(text: str) -> list[tuple[str, str]]:
    """Each command of a console block, with the output that is shown below it."""
    parts = re.split(r"^\$ ", text, flags=re.MULTILINE)
    assert parts[0] == "", "a console block begins with a command"
    return [(command, shown) for command, _, shown in (part.partition("\n") for part in parts[1:])]


def test_a_researcher_gets_a_scored_table_with_signature_and_interval(tmp_path: Path) -> None:
    walk = Walk("Measure and reproduce", tmp_path)
    table = walk.output("mrs score")
    figure, low, high = map(float, re.findall(r"weighted ROUGE +│ ([\d.]+) \[([\d.]+), ([\d.]+)\]", table)[0])
    assert low < figure < high
    assert re.search(r"^mrs_rouge\|rules:mrs\|nbest:3\|.*\|lang:es\|.*version:", table, re.MULTILINE)
    (record,) = tmp_path.rglob("run/run.json")
    trained = json.loads(record.read_text(encoding="utf-8"))
    assert figure == pytest.approx(trained["metrics"]["systems"]["Model"]["es"]["weighted"], abs=5e-5)
    assert "monolingual" in walk.output("mrs reproduce")
    assert "'signature': 'mrs_rouge|" in walk.said["python"]
    assert walk.said["python"].startswith("{'message': '")
    # The example of the same cell finds it finished.
    said = walk.python(str(ROOT / "examples" / "reproduce_a_row.py"))
    assert f"mrs score {record.relative_to(tmp_path).parent}/predictions.es.tsv" in said
    assert json.loads(record.read_text(encoding="utf-8"))["seconds"] == trained["seconds"]


@pytest.mark.skipif(not shutil.which("curl"), reason="README.md asks the server with curl, which is not installed")
def test_an_engineer_gets_suggestions_of_an_own_response_set_over_http(tmp_path: Path) -> None:
    walk = Walk("Serve suggestions", tmp_path)
    (answer,) = json.loads(walk.output("curl"))["answers"]
    replies = [suggestion["reply"] for suggestion in answer["suggestions"]]
    with open(tmp_path / "replies.csv", encoding="utf-8", newline="") as file:
        own = {row["reply"] for row in csv.DictReader(file)}
    assert set(replies) <= own  # those that fit too badly are left out
    assert replies[0] == "Thank you, I'll look at it."
    assert [line.rpartition(" ")[0] for line in walk.said["python"].splitlines()] == replies


def test_a_maintainer_gets_a_data_set_with_a_card(tmp_path: Path) -> None:
    walk = Walk("Build the data set", tmp_path)
    assert "0 errors" in walk.output("mrs data check")
    assert walk.output("mrs data publish").startswith("dataset ORG/mrs: ")
    folder = tmp_path / "build" / "mrs"
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    said = walk.python("-c", "from datasets import load_dataset; print(load_dataset('build/mrs', 'es'))")
    loaded = re.findall(r"(\w+): Dataset\(\{.*?num_rows: (\d+)", said, re.DOTALL)
    assert dict(loaded).keys() == {"train", "validation", "test"}
    assert {name: int(rows) for name, rows in loaded} == {
        name: split["rows"] for name, split in report["configs"]["es"].items()
    }
    card = yaml.safe_load((folder / "README.md").read_text(encoding="utf-8").split("---\n")[1])
    assert {"es", "es-responses"} <= {config["config_name"] for config in card["configs"]}
    assert (folder / "report.html").stat().st_size > 1000
