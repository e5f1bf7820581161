"""Processes that begin warm are as others are: own environment, folder, output and end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import warm_python

SEEN = """
import json, os, sys
from pathlib import Path
from huggingface_hub.constants import HF_HUB_CACHE
(Path(HF_HUB_CACHE).parent / "mark").touch()
print("aside", file=sys.stderr)
ours = [name for name in sys.modules if name.startswith("mrs_")]
print(json.dumps([sys.argv, os.getcwd(), dict(os.environ), sys.path[0], ours]))
sys.exit(3)
"""


def test_each_has_its_own_environment_folder_and_end(tmp_path: Path) -> None:
    for name in ("one", "other"):
        env = {**warm_python.with_caches_in(tmp_path / name), "MINE": name}
        done = warm_python.run([sys.executable, "-c", SEEN, name], cwd=tmp_path, env=env)
        argv, folder, environment, first, ours = json.loads(done.stdout)
        assert (done.returncode, done.stderr) == (3, "aside\n")
        assert (argv, folder, environment) == (["-c", name], str(tmp_path), env)
        assert (first, ours) == ("", [])
        assert (tmp_path / name / "mark").exists()


def test_scripts_and_modules_run_as_programs(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "beside.py").write_text("import sys\nif __name__ == '__main__': print(sys.argv[1:])\n")
    (tmp_path / "sub" / "script.py").write_text("import beside\nif __name__ == '__main__': raise SystemExit('told')\n")
    done = warm_python.run([sys.executable, "sub/script.py"], cwd=tmp_path, merged=True)
    assert (done.returncode, done.stdout, done.stderr) == (1, "told\n", "")
    done = warm_python.run([sys.executable, "-m", "beside", 1], cwd=tmp_path / "sub")
    assert (done.returncode, done.stdout) == (0, "['1']\n")


def test_one_that_hangs_is_ended(tmp_path: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        warm_python.run([sys.executable, "-c", "import time; time.sleep(99)"], cwd=tmp_path, timeout=0.1)
    assert warm_python.run([sys.executable, "-c", "print(1)"], cwd=tmp_path).stdout == "1\n"
