"""The files of a metric's Space: the `evaluate` module, the topic files that it needs, and a page to try it on.

`evaluate` loads `ORG/NAME` by fetching `NAME.py` and the files that it imports by `from .FILE import` at column 0; it
does not follow their imports, nor folders. So a Space is flat, does not need this package, and `NAME.py` names every
topic file, which `module_files` checks.

The topics are copied under another name (`tokenize` -> `topic_tokenize`): the page runs in the Space's folder, which
comes first on the search path, so that a `tokenize.py` would shadow the standard library's.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

from mrs_metrics.signature import package_version

FOLDER = Path(__file__).resolve().parent
PREFIX = "topic_"
# The release that the page was tested with, as in constraints.txt; the hub installs this one.
GRADIO_VERSION = "6.31.0"
PYTHON_VERSION = "3.11"
# What the hub installs into a Space: the requirement of every library that a file of it imports, also lazily. The
# floors are those of setup.cfg; gradio comes with the page's SDK.
REQUIREMENTS = {
    "datasets": "datasets>=4.0",
    "evaluate": "evaluate>=0.4.6",
    "numpy": "numpy>=1.26",
    "fugashi": "fugashi>=1.3",
    "unidic_lite": "unidic-lite>=1.0.8",
    "rjieba": "rjieba>=0.2",
    "pythainlp": "pythainlp>=5.1",
    "sacrebleu": "sacrebleu>=2.4",
    "fasttext": "fasttext>=0.9.3",
}

_IMPORT = re.compile(r"^([ \t]*from )mrs_metrics\.(\w+)(?= import\b)", re.MULTILINE)
_VERSION = re.compile(r'^FALLBACK_VERSION = ".*"$', re.MULTILINE)
_SDK = re.compile(r"^sdk: gradio$", re.MULTILINE)
_TITLE = re.compile(r"^title: (.+)$", re.MULTILINE)


def metric_names() -> list[str]:
    """Return the names of the `evaluate` modules of this package, sorted.

    >>> "mrs_rouge" in metric_names()
    True
    """
    return sorted(path.stem for path in FOLDER.glob("*/*.py") if path.stem == path.parent.name)


def metric_title(name: str) -> str:
    """Return what a metric is called in its README.

    Raises:
        ValueError: there is no such metric.
    """
    _require_metric(name)
    found = _TITLE.search(_read(f"{name}/README.md"))
    return found[1] if found else name


def module_files(name: str) -> dict[str, bytes]:
    """Return `NAME.py` and its topic files by file name: what `evaluate` needs, and nothing of ours besides.

    Raises:
        ValueError: there is no such metric, or it needs a file of this package that would not be copied.
    """
    _require_metric(name)
    return {file: text.encode() for file, text in _module_texts(name).items()}


def space_files(name: str, organization: str = "") -> dict[str, bytes]:
    """Return the files of a metric's Space by file name; the bytes are reproducible.

    Args:
        name: one of `metric_names()`.
        organization: owner of the Space; the README then says `evaluate.load("ORG/NAME")`.

    Raises:
        ValueError: there is no such metric, or it needs a file of this package that would not be copied.
    """
    _require_metric(name)
    texts = _module_texts(name)
    page = _read(f"{name}/app.py")
    for topic in _topics(page):
        texts.setdefault(f"{PREFIX}{topic}.py", _rewritten(_read(f"{topic}.py"), dot="."))
    texts["app.py"] = _rewritten(page, dot="")  # it runs as a script, without relative imports
    _require_complete(name, texts)
    texts["README.md"] = _readme(name, organization)
    texts["requirements.txt"] = "".join(f"{line}\n" for line in _requirements(name, texts))
    return {file: text.encode() for file, text in sorted(texts.items())}


def _require_metric(name: str) -> None:
    if name not in metric_names():
        raise ValueError(f"There is no metric {name!r}; there are {', '.join(metric_names())}.")


def _module_texts(name: str) -> dict[str, str]:
    module = _read(f"{name}/{name}.py")
    texts = {f"{name}.py": _rewritten(module, dot=".")}
    for topic in _topics(module):
        texts[f"{PREFIX}{topic}.py"] = _rewritten(_read(f"{topic}.py"), dot=".")
    _require_complete(name, texts)
    return texts


def _topics(source: str) -> list[str]:
    """The topics that a source imports at column 0, the only place where `evaluate` looks."""
    return [topic for start, topic in _IMPORT.findall(source) if start == "from "]


def _rewritten(source: str, dot: str) -> str:
    source = _IMPORT.sub(rf"\g<1>{dot}{PREFIX}\2", source)
    return _VERSION.sub(f'FALLBACK_VERSION = "{package_version()}"', source)


def _require_complete(name: str, texts: dict[str, str]) -> None:
    for file, text in texts.items():
        for node in ast.walk(ast.parse(text, file)):
            if not isinstance(node, (ast.Import, ast.ImportFrom)):
                continue
            for module in [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]:
                ours = module.split(".")[0] == "mrs_metrics" or module.startswith(PREFIX)
                if ours and f"{module}.py" not in texts:
                    raise ValueError(
                        f"The Space of {name} would lack {module.removeprefix(PREFIX)!r}, which {file} imports in line "
                        f"{node.lineno}: write `from mrs_metrics.TOPIC import` at column 0 of {name}.py for each topic "
                        "file, also for those that the topics import."
                    )


def _requirements(name: str, texts: dict[str, str]) -> list[str]:
    """The third-party packages that a Space's files import, in the order of REQUIREMENTS."""
    imported: set[str] = set()
    for file, text in texts.items():
        if not file.endswith(".py"):
            continue
        for node in ast.walk(ast.parse(text, file)):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported.add((node.module or "").split(".")[0])
    unknown = {
        module
        for module in imported - set(REQUIREMENTS) - set(sys.stdlib_module_names) - {"gradio"}
        if not module.startswith(PREFIX)
    }
    if unknown:
        raise ValueError(f"The Space of {name} imports {sorted(unknown)[0]!r}; add its requirement to REQUIREMENTS.")
    return [line for module, line in REQUIREMENTS.items() if module in imported]


def _readme(name: str, organization: str) -> str:
    text = _read(f"{name}/README.md")
    text = _SDK.sub(f'sdk: gradio\nsdk_version: {GRADIO_VERSION}\npython_version: "{PYTHON_VERSION}"', text, count=1)
    if organization:
        text = text.replace(f'evaluate.load("{name}")', f'evaluate.load("{organization}/{name}")')
    return text


def _read(path: str) -> str:
    return (FOLDER / path).read_text(encoding="utf-8")
