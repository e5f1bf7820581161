"""`mrs doctor` and `mrs --version`: what they print, their exit codes, and what they must not import."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mrs_suggest.cli import doctor, main
from mrs_suggest.cli.doctor.checks import BROKEN, MISSING, OK, Finding

HEAVY = ("torch", "transformers", "datasets", "evaluate", "pandas", "scipy", "sklearn", "accelerate", "pyarrow")


@pytest.mark.parametrize(("state", "code", "last"), [(BROKEN, 1, "1 broken: a\n"), (MISSING, 0, "is broken.\n")])
def test_the_exit_code_says_whether_something_is_broken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], state: str, code: int, last: str
) -> None:
    monkeypatch.setattr(doctor, "examine", lambda: [Finding("hub", "a", state, "so"), Finding("hub", "b", OK, "\x1b")])
    assert main.main(["doctor"]) == code
    out = capsys.readouterr().out
    assert out.endswith(last)
    assert f"  {state:<8}a" in out
    assert "\x1b" not in out
    assert main.main(["doctor", "--json"]) == code
    record = json.loads(capsys.readouterr().out)
    assert record["broken"] == code
    assert record["findings"][0] == {"area": "hub", "name": "a", "state": state, "says": "so"}


def test_this_installation_is_well_and_nothing_large_is_imported(tmp_path: Path) -> None:
    """Everything but torch, which is imported in a separate process."""
    code = f"""
import sys
from mrs_suggest.cli import doctor, main
del doctor.CHECKS[doctor.checks.accelerator]
code = main.main(["doctor", "--json"])
print(*sorted(set({HEAVY}) & set(sys.modules)))
sys.exit(code)"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    answer, loaded = done.stdout.splitlines()
    assert loaded == ""
    found = {finding["name"]: finding for finding in json.loads(answer)["findings"]}
    assert sys.executable in found["python"]["says"]
    assert found["sample-retriever"]["state"] == OK


def test_a_check_that_fails_is_a_finding_of_its_own() -> None:
    def some_check() -> list[Finding]:
        raise RuntimeError("no such thing\nmore")

    (found,) = doctor.examine({some_check: "machine"})
    says = "cannot be examined (RuntimeError: no such thing)"
    assert found == Finding("machine", "some check", BROKEN, says)


def test_the_version_for_people_and_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    from mrs_suggest.common import __version__

    assert main.main(["--version"]) == 0
    assert capsys.readouterr().out == f"mrs-suggest {__version__}\n"
    assert main.main(["--version", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert [*record] == ["version", "python", "platform", "commit", "libraries"]
    assert record["version"] == __version__
    assert record["libraries"]["numpy"]


@pytest.mark.parametrize(
    ("words", "says"), [([], "arguments are required: verb"), (["--json", "data"], "--json goes with")]
)
def test_no_verb_and_a_lost_option_are_refused(capsys: pytest.CaptureFixture[str], words: list[str], says: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        main.main(words)
    assert says in capsys.readouterr().err
