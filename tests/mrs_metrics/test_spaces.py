"""The files of a metric's Space and of its copy in `evaluate`'s cache, and `mrs metrics` where it needs no hub."""

import ast
import importlib.util
import os
import re
import shutil
import sys
from importlib import metadata
from pathlib import Path

import pytest
import yaml

from mrs_metrics import spaces
from mrs_metrics.spaces import install_metric, metric_title, module_files, space_files
from mrs_suggest.cli import metrics
from mrs_suggest.common.errors import InputError
from tests.cases import cases
from tests.mrs_metrics.modules import run_script

NAMES = [
    "dist_n", "mrs_rouge", "reply_bleu", "reply_perplexity", "response_ranking", "self_rouge", "simulated_clicks",
    "weighted_f1", "wrong_language", "xglue_score",
]  # fmt: skip
CALLS = cases(__file__, "CALLS")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package's files that a test may change."""
    folder = tmp_path / "mrs_metrics"
    shutil.copytree(spaces.FOLDER, folder, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(spaces, "FOLDER", folder)
    return folder


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_a_space_is_flat_complete_and_imports_only_its_own_files(name: str, repository: Path) -> None:
    files, libraries = space_files(name, "some-org"), {*sys.stdlib_module_names, *metadata.packages_distributions()}
    assert {f"{name}.py", "app.py", "README.md", "requirements.txt", "topic_signature.py", "topic_page.py"} <= {*files}
    assert not [file for file in files if "/" in file]
    siblings: dict[str, set[str]] = {}
    for file, content in files.items():
        assert not re.search(rb"pip install '?(\.|mrs.suggest)\[(?!spaces)", content), file
        assert Path(file).stem not in libraries, "app.py runs in this folder, which is searched first"
        if not file.endswith(".py"):
            continue
        found = siblings[file] = set()
        for node in ast.walk(ast.parse(content)):
            if isinstance(node, ast.ImportFrom):
                # app.py runs as a script, so its imports cannot be relative; those of the others must be
                if node.level or (node.module or "").startswith("topic_"):
                    assert node.level == (0 if file == "app.py" else 1), f"{file}:{node.lineno}"
                    found.add(f"{node.module}.py")
                assert not (node.module or "").startswith(("mrs_", "trainers")), f"{file}:{node.lineno}"
            elif isinstance(node, ast.Import):
                assert not [alias.name for alias in node.names if alias.name.startswith(("mrs_", "topic_"))]
    assert set().union(*siblings.values()) <= set(files)
    # `evaluate` copies what NAME.py itself names, and follows no import of those files.
    reached = siblings[f"{name}.py"]
    assert {file for sibling in reached for file in siblings[sibling]} <= reached
    assert (siblings["app.py"], siblings["topic_page.py"]) == ({"topic_page.py"}, set())
    card = files["README.md"].decode()
    front = yaml.safe_load(card.split("---")[1])
    (pin,) = re.findall(r"^gradio==(.+)$", (repository / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert (front["sdk"], front["sdk_version"], front["app_file"]) == ("gradio", pin, "app.py")
    assert front["python_version"] == spaces.PYTHON_VERSION  # a text: YAML would read 3.10 as 3.1
    assert {"evaluate", "metric"} <= set(front["tags"])
    assert front["title"] == metric_title(name)
    assert f'evaluate.load("some-org/{name}")' in card
    assert f'evaluate.load("{name}")' not in card


@pytest.mark.parametrize("before", ["", "if 1:\n    "])
def test_what_a_topic_imports_is_copied_too(package: Path, before: str) -> None:
    assert "topic_ranking.py" not in module_files("mrs_rouge")
    change(package / "rouge.py", "import math\n", f"import math\n{before}from mrs_metrics.ranking import x\n")
    files = module_files("mrs_rouge")
    assert b"\nfrom .topic_ranking import __name__ as _ranking\n" in files["mrs_rouge.py"]
    assert "topic_ranking.py" in files


def test_an_unknown_metric_is_refused_by_name() -> None:
    for call in (space_files, module_files, metric_title, install_metric):
        with pytest.raises(ValueError, match="Unknown metric 'bleu'; expected one of dist_n, mrs_rouge, reply_bleu"):
            call("bleu")


def test_the_files_of_a_module_are_all_that_evaluate_needs(tmp_path: Path) -> None:
    names = [name for name in NAMES if name != "reply_bleu" or importlib.util.find_spec("sacrebleu")]
    for name in names:
        files, module = space_files(name), module_files(name)
        assert module.items() <= files.items()
        assert set(files) - set(module) == {"README.md", "app.py", "requirements.txt", "topic_page.py", "pages.json"}
        (tmp_path / name).mkdir()
        for file, content in module.items():
            (tmp_path / name / file).write_bytes(content)
    calls = "\n".join(
        f"found.append(evaluate.load({str(tmp_path / name)!r}).compute({CALLS[name]})['signature'])" for name in names
    )
    script = (
        f"import evaluate, json, sys\nfound = []\n{calls}\n"
        "print(json.dumps([found, [module for module in sys.modules if module.startswith('mrs_')]]))"
    )
    signatures, ours = run_script(script, tmp_path, python_path="")
    assert [signature.split("|")[0] for signature in signatures] == names
    assert ours == []


# --- evaluate's cache -----------------------------------------------------------------------------------------------


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of modules."""
    import evaluate.config
    import evaluate.loading

    monkeypatch.setattr(evaluate.config, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    return tmp_path / "modules"


def test_a_module_is_installed_once_for_each_content(modules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = install_metric("mrs_rouge")
    assert folder.is_relative_to(modules)
    assert (folder.parent.name, len(folder.name)) == ("evaluate-metric--mrs_rouge", 64)
    content = module_files("mrs_rouge")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {**content, "__init__.py": b""}
    for package in (folder, folder.parent, folder.parents[1], folder.parents[2]):
        assert (package / "__init__.py").is_file()
    before = {path: path.read_bytes() for path in modules.rglob("*") if path.is_file()}
    os.utime(folder / "mrs_rouge.py", (1, 1))
    assert install_metric("mrs_rouge") == folder
    assert {path: path.read_bytes() for path in modules.rglob("*") if path.is_file()} == before
    assert (folder / "mrs_rouge.py").stat().st_mtime > 1, "`evaluate` takes the newest"
    newer = {**content, "mrs_rouge.py": content["mrs_rouge.py"] + b"\n# newer\n"}
    monkeypatch.setattr(spaces, "module_files", lambda _: newer)
    assert install_metric("mrs_rouge") != folder
    assert folder.is_dir()


# --- mrs metrics ----------------------------------------------------------------------------------------------------


def test_a_dry_run_prints_the_files_and_the_card_of_each_metric(capsys: pytest.CaptureFixture[str]) -> None:
    assert metrics.main(["publish", "some-org", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert [line.split(":")[0] for line in out.splitlines() if line.startswith("space ")] == [
        f"space some-org/{name}" for name in NAMES
    ]
    size = len(space_files("mrs_rouge", "some-org")["topic_rouge.py"])
    assert re.search(rf"^ +{size:,}  topic_rouge\.py$", out, re.MULTILINE)
    assert 'evaluate.load("some-org/mrs_rouge")' in out
    assert "published some-org" not in out


@pytest.mark.parametrize(
    ("arguments", "sentence"), cases(__file__, "test_wrong_arguments_are_refused_before_anything_is_sent")
)
def test_wrong_arguments_are_refused_before_anything_is_sent(
    arguments: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mrs_suggest.common.hub.publishing.publish", lambda *_, **__: pytest.fail("it was sent"))
    with pytest.raises(InputError, match=re.escape(sentence)):
        metrics.main(["publish", *arguments])
