"""The files of a metric's Space, and `mrs metrics` where it needs no hub."""

from __future__ import annotations

import ast
import configparser
import re
import shutil
import sys
from importlib import metadata
from pathlib import Path

import pytest
import yaml

from mrs_metrics import page, spaces
from mrs_metrics.spaces import metric_names, metric_title, module_files, space_files
from mrs_suggest.cli import metrics
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.languages import LANGUAGES

NAMES = [
    "dist_n", "mrs_rouge", "reply_bleu", "reply_perplexity", "response_ranking", "self_rouge", "weighted_f1",
    "wrong_language", "xglue_score",
]  # fmt: skip
SPLITTING = ["dist_n", "mrs_rouge", "self_rouge"]  # those whose pages offer to split texts into sentences
JAPANESE = ["dist_n", "mrs_rouge", "reply_bleu", "self_rouge"]  # those that split Japanese into words


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package's files that a test may spoil."""
    folder = tmp_path / "mrs_metrics"
    shutil.copytree(spaces.FOLDER, folder, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(spaces, "FOLDER", folder)
    return folder


def spoil(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_every_module_of_the_package_is_found() -> None:
    assert metric_names() == NAMES
    assert metric_title("mrs_rouge") == "Weighted ROUGE for reply suggestion (MRS)"


@pytest.mark.parametrize("name", NAMES)
def test_a_space_is_flat_complete_and_imports_only_what_it_holds(name: str) -> None:
    files = space_files(name)
    assert {f"{name}.py", "app.py", "README.md", "requirements.txt", "topic_signature.py", "topic_page.py"} <= set(
        files
    )
    assert not [file for file in files if "/" in file]
    siblings: dict[str, set[str]] = {}
    for file, content in files.items():
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
    assert siblings["app.py"] == {"topic_page.py"} | ({"topic_punkt.py"} if name in SPLITTING else set())
    assert siblings["topic_page.py"] == set()


@pytest.mark.parametrize("name", NAMES)
def test_no_file_of_a_space_stands_in_for_a_library(name: str) -> None:
    """app.py runs in the Space's folder, which is searched before the standard library (it has a `tokenize`)."""
    libraries = set(sys.stdlib_module_names) | set(metadata.packages_distributions())
    assert {"tokenize", "evaluate", "numpy"} <= libraries
    assert not {Path(file).stem for file in space_files(name)} & libraries


@pytest.mark.parametrize("name", NAMES)
def test_the_card_is_what_the_hub_asks_of_a_space(name: str, repository: Path) -> None:
    files = space_files(name, "some-org")
    card = files["README.md"].decode()
    front = yaml.safe_load(card.split("---")[1])
    (pin,) = re.findall(r"^gradio==(.+)$", (repository / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert (front["sdk"], front["sdk_version"], front["app_file"]) == ("gradio", pin, "app.py")
    assert front["python_version"] == spaces.PYTHON_VERSION  # a text: YAML would read 3.10 as 3.1
    assert {"evaluate", "metric"} <= set(front["tags"])
    assert front["title"] == metric_title(name)
    assert front["app_file"] in files
    assert f'evaluate.load("some-org/{name}")' in card
    assert f'evaluate.load("{name}")' not in card


@pytest.mark.parametrize("name", NAMES)
def test_nothing_in_a_space_asks_for_our_package(name: str) -> None:
    for file, content in space_files(name).items():
        assert not re.search(rb"pip install '?(\.|mrs.suggest)\[(?!spaces)", content), file


@pytest.mark.parametrize("name", sorted(set(JAPANESE) - {"reply_bleu"}))  # which brings sacreBLEU's own
def test_a_space_says_what_japanese_needs(name: str) -> None:
    assert b"pip install fugashi unidic-lite" in space_files(name)["README.md"]
    assert b"pip install fugashi unidic-lite" in space_files(name)["topic_tokenize.py"]


@pytest.mark.parametrize("name", NAMES)
def test_the_requirements_are_the_distribution_s_own(name: str, repository: Path) -> None:
    setup = configparser.ConfigParser()
    setup.read(repository / "setup.cfg", encoding="utf-8")
    extras = setup["options.extras_require"]
    ours = {*setup["options"]["install_requires"].split()}
    own = ("data", "score", "train", "ja", "zh", "th", "bleu", "langid")
    ours |= {line for extra in own for line in extras[extra].split("\n")}
    required = space_files(name)["requirements.txt"].decode().split()
    assert set(required) <= ours
    packages = {re.split("[>=]", line)[0] for line in required}
    assert packages >= {"datasets", "evaluate", "numpy"}
    assert ({"fugashi", "unidic-lite", "rjieba", "pythainlp"} <= packages) == (name in JAPANESE)
    assert ("sacrebleu" in packages) == (name in ("reply_bleu", "xglue_score"))
    assert ("fasttext" in packages) == (name == "wrong_language")


def test_a_library_without_a_known_requirement_is_refused(package: Path) -> None:
    spoil(package / "ngrams.py", "    if n < 1:\n", "    import pandas\n    if n < 1:\n")
    with pytest.raises(ValueError, match="The Space of mrs_rouge imports 'pandas'"):
        space_files("mrs_rouge")


def test_a_copy_says_which_version_it_was_made_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spaces, "package_version", lambda: "9.8.7")
    assert b'\nFALLBACK_VERSION = "9.8.7"\n' in space_files("mrs_rouge")["topic_signature.py"]


def test_the_module_s_files_are_the_space_s_without_the_page() -> None:
    files, module = space_files("dist_n"), module_files("dist_n")
    assert module.items() <= files.items()
    assert set(files) - set(module) == {"README.md", "app.py", "requirements.txt", "topic_page.py"}


@pytest.mark.parametrize(
    ("file", "old", "new", "lacks"),
    [
        ("mrs_rouge/mrs_rouge.py", "from mrs_metrics.ngrams import ngram_sets\n", "", "ngrams"),
        ("rouge.py", "import numpy as np\n", "import numpy as np\nfrom mrs_metrics.ranking import mrr\n", "ranking"),
        ("ngrams.py", "    if n < 1:\n", "    from mrs_metrics.ranking import mrr\n    if n < 1:\n", "ranking"),
        ("tokenize.py", "import re\n", "import re\nimport mrs_metrics.rouge\n", "mrs_metrics.rouge"),
        ("mrs_rouge/app.py", "from pathlib", "from mrs_metrics import spaces\nfrom pathlib", "mrs_metrics"),
    ],
)
def test_a_space_that_would_lack_a_file_is_refused(package: Path, file: str, old: str, new: str, lacks: str) -> None:
    space_files("mrs_rouge")
    spoil(package / file, old, new)
    with pytest.raises(ValueError, match=f"The Space of mrs_rouge would lack '{lacks}'"):
        space_files("mrs_rouge")


def test_an_unknown_metric_is_refused_by_name() -> None:
    for call in (space_files, module_files, metric_title):
        with pytest.raises(ValueError, match="no metric 'bleu'; there are dist_n, mrs_rouge, reply_bleu"):
            call("bleu")


def test_the_page_offers_the_languages_of_mrs() -> None:
    assert list(page.LANGUAGES) == [(language.name, language.code) for language in LANGUAGES.values()]


# --- mrs metrics ----------------------------------------------------------------------------------------------------


def test_list_prints_names_and_titles(capsys: pytest.CaptureFixture[str]) -> None:
    assert metrics.main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == NAMES
    assert "mrs_rouge         Weighted ROUGE for reply suggestion (MRS)" in lines


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


@pytest.mark.parametrize("order", [["--dry-run", "mrs_rouge"], ["mrs_rouge", "--dry-run"], ["mrs_rouge"] * 2])
def test_names_may_stand_before_and_behind_options(capsys: pytest.CaptureFixture[str], order: list[str]) -> None:
    assert metrics.main(["publish", "some-org", *order, "--private", "--dry-run"]) == 0
    assert capsys.readouterr().out.count("space some-org/") == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["org", "bleu"], "no metric is called 'bleu'; there are dist_n, mrs_rouge, reply_bleu,"),
        (["org", "mrs_rouge", "bleu"], "'bleu'"),
        (["org/metrics"], "'org/metrics/dist_n': not a repository name"),
        (["my org", "--dry-run"], "'my org/dist_n': not a repository name"),
        ([""], "'/dist_n': not a repository name"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_sent(
    arguments: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mrs_suggest.common.hub.publishing.publish", lambda *_, **__: pytest.fail("it was sent"))
    with pytest.raises(InputError, match=re.escape(sentence)):
        metrics.main(["publish", *arguments])


@pytest.mark.parametrize("arguments", [["publish", "org", "--publc"], ["list", "mrs_rouge"], ["publish"], []])
def test_unknown_options_end_with_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        metrics.main(arguments)
    assert "usage: mrs metrics" in capsys.readouterr().err
