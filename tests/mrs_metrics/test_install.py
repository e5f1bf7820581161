"""A metric module in the cache of `evaluate`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from mrs_metrics.install import install_metric
from mrs_metrics.spaces import metric_names, module_files
from tests import warm_python


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of modules."""
    import evaluate.config
    import evaluate.loading

    monkeypatch.setattr(evaluate.config, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    return tmp_path / "modules"


@pytest.mark.parametrize("name", metric_names())
def test_the_files_of_a_module(name: str, modules: Path) -> None:
    folder = install_metric(name)
    assert folder.is_relative_to(modules)
    assert (folder.parent.name, len(folder.name)) == (f"evaluate-metric--{name}", 64)
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert files == {**module_files(name), "__init__.py": b""}
    for package in (folder, folder.parent, folder.parents[1], folder.parents[2]):
        assert (package / "__init__.py").is_file()


def test_installing_twice_changes_nothing_but_the_time(modules: Path) -> None:
    folder = install_metric("mrs_rouge")
    before = {path: path.read_bytes() for path in modules.rglob("*") if path.is_file()}
    os.utime(folder / "mrs_rouge.py", (1, 1))
    assert install_metric("mrs_rouge") == folder
    assert {path: path.read_bytes() for path in modules.rglob("*") if path.is_file()} == before
    assert (folder / "mrs_rouge.py").stat().st_mtime > 1, "`evaluate` takes the newest"


def test_other_contents_get_another_folder(modules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mrs_metrics import install

    first = install_metric("dist_n")
    files = module_files("dist_n")
    monkeypatch.setattr(install, "module_files", lambda _: {**files, "dist_n.py": files["dist_n.py"] + b"\n# newer\n"})
    second = install_metric("dist_n")
    assert first != second
    assert first.is_dir()


def test_no_such_metric(modules: Path) -> None:
    with pytest.raises(ValueError, match="bleu"):
        install_metric("bleu")
    assert not list(modules.rglob("*bleu*"))


@pytest.mark.integration
def test_the_newest_of_two_answers(tmp_path: Path) -> None:
    """In a process of its own, from an empty folder, without our package: the literal call."""
    home = tmp_path / "home"
    env = warm_python.with_caches_in(home)
    source = "from mrs_metrics.install import install_metric\nprint(install_metric('mrs_rouge'))"
    done = warm_python.run([sys.executable, "-c", source], cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    folder = Path(done.stdout.strip())
    older = folder.with_name("0" * 64)
    older.mkdir()
    (older / "__init__.py").touch()
    (older / "mrs_rouge.py").write_text("raise RuntimeError('the older one')\n")
    os.utime(older / "mrs_rouge.py", (1, 1))
    (tmp_path / "empty").mkdir()
    source = (
        "import evaluate, sys\n"
        "r = evaluate.load('mrs_rouge').compute(predictions=[['Yes, I will.']], references=['Yes, I will.'],"
        " language='en')\n"
        "assert r['weighted'] > 0.99, r\n"
        "assert not [m for m in sys.modules if m.split('.')[0] == 'mrs_metrics'], 'the module needs our package'\n"
    )
    done = warm_python.run([sys.executable, "-c", source], cwd=tmp_path / "empty", env=env)
    assert done.returncode == 0, done.stderr
