"""The files of a metric's Space, and of its copy in the cache of `evaluate`.

`evaluate` loads `ORG/NAME` by fetching `NAME.py` and the files that it imports by `from .FILE import` at column 0; it
does not follow their imports, nor folders. So a Space is flat, does not need this package, and `NAME.py` imports every
topic file that any of them needs.

The topics are copied under another name (`tokenize` -> `topic_tokenize`): the page runs in the Space's folder, which
comes first on the search path, so that a `tokenize.py` would shadow the standard library's.
"""

import ast
import hashlib
import importlib
import os
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
_APP = '''"""The page of this Space; `python app.py` serves it."""

from pathlib import Path

from topic_page import serve

if __name__ == "__main__":
    serve(Path(__file__).resolve().with_name("{name}.py"))
'''
_IMPORT = re.compile(r"^([ \t]*from )mrs_metrics\.(\w+)(?= import\b)", re.MULTILINE)
_VERSION = re.compile(r'^FALLBACK_VERSION = ".*"$', re.MULTILINE)
_SDK = re.compile(r"^sdk: gradio$", re.MULTILINE)
_TITLE = re.compile(r"^title: (.+)$", re.MULTILINE)


def metric_names() -> list[str]:
    """Return the names of the `evaluate` modules of this package, sorted.

    >>> "mrs_rouge" in metric_names()
    True
    """
    return sorted(path.stem for path in FOLDER.glob("modules/*.md"))


def metric_title(name: str) -> str:
    """Return the title of a metric in its README.

    Raises:
        ValueError: there is no such metric.
    """
    found = _TITLE.search(_read_module(name, "md"))
    return found[1] if found else name


def module_files(name: str) -> dict[str, bytes]:
    """Return `NAME.py` and its topic files by file name: what `evaluate` needs; ValueError for an unknown metric."""
    return {file: text.encode() for file, text in _module_texts(name).items()}


def space_files(name: str, organization: str = "") -> dict[str, bytes]:
    """Return the files of a metric's Space by file name; the bytes are reproducible.

    Args:
        name: one of `metric_names()`.
        organization: owner of the Space; the README then says `evaluate.load("ORG/NAME")`.

    Raises:
        ValueError: there is no such metric, or it imports a library that `REQUIREMENTS` lacks.
    """
    texts = _module_texts(name) | {f"{PREFIX}page.py": _rewritten(_read("page.py")), "app.py": _APP.format(name=name)}
    sdk = f'sdk: gradio\nsdk_version: {GRADIO_VERSION}\npython_version: "{PYTHON_VERSION}"'
    readme = _SDK.sub(sdk, _read_module(name, "md"), count=1)
    if organization:
        readme = readme.replace(f'evaluate.load("{name}")', f'evaluate.load("{organization}/{name}")')
    texts |= {"requirements.txt": _requirements(name, texts), "README.md": readme, "pages.json": _read("pages.json")}
    return {file: text.encode() for file, text in sorted(texts.items())}


def install_metric(name: str) -> Path:
    """Write a module and its topic files to where `evaluate` caches loaded metrics, so that `evaluate.load(NAME)` works
    in any folder; return the folder.

    Raises:
        ValueError: there is no such metric.
    """
    from evaluate.loading import init_dynamic_modules

    files = module_files(name)
    digest = hashlib.sha256(b"\0".join(part for item in sorted(files.items()) for part in (item[0].encode(), item[1])))
    kind = Path(init_dynamic_modules()) / "metrics"
    folder = kind / f"evaluate-metric--{name}" / digest.hexdigest()
    folder.mkdir(parents=True, exist_ok=True)
    for package in (kind, folder.parent, folder):
        (package / "__init__.py").touch()
    for file, content in files.items():
        if file != f"{name}.py":
            (folder / file).write_bytes(content)
    partial = folder / f".{name}.partial"
    partial.write_bytes(files[f"{name}.py"])
    partial.rename(folder / f"{name}.py")  # last: `evaluate` finds the folder by this file, and takes the newest
    os.utime(folder / f"{name}.py")
    importlib.invalidate_caches()
    return folder


def _module_texts(name: str) -> dict[str, str]:
    """`NAME.py`, with an import of every topic that it or a topic needs, and these topics."""
    source = _read_module(name, "py")
    named = [topic for _, topic in _IMPORT.findall(source)]
    topics, todo = set(named), list(named)
    while todo:
        more = {topic for _, topic in _IMPORT.findall(_read(f"{todo.pop()}.py"))} - topics
        topics |= more
        todo += more
    first = _IMPORT.search(source)
    start = first.start() if first else len(source)
    unnamed = "".join(f"from mrs_metrics.{topic} import __name__ as _{topic}\n" for topic in sorted(topics - {*named}))
    texts = {f"{name}.py": _rewritten(source[:start] + unnamed + source[start:])}
    return texts | {f"{PREFIX}{topic}.py": _rewritten(_read(f"{topic}.py")) for topic in sorted(topics)}


def _rewritten(source: str) -> str:
    source = _IMPORT.sub(rf"\g<1>.{PREFIX}\2", source)
    return _VERSION.sub(f'FALLBACK_VERSION = "{package_version()}"', source)


def _requirements(name: str, texts: dict[str, str]) -> str:
    """A line for each third-party package that a Space's files import, in the order of REQUIREMENTS."""
    imported: set[str] = set()
    for file, text in texts.items():
        for node in ast.walk(ast.parse(text, file)):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported.add((node.module or "").split(".")[0])
    unknown = imported - {*REQUIREMENTS, *sys.stdlib_module_names, "gradio", f"{PREFIX}page"}
    if unknown:
        raise ValueError(f"The Space of {name} imports {sorted(unknown)[0]!r}; add its requirement to REQUIREMENTS.")
    return "".join(f"{line}\n" for module, line in REQUIREMENTS.items() if module in imported)


def _read_module(name: str, kind: str) -> str:
    if name not in metric_names():
        raise ValueError(f"Unknown metric {name!r}; expected one of {', '.join(metric_names())}.")
    return _read(f"modules/{name}.{kind}")


def _read(path: str) -> str:
    return (FOLDER / path).read_text(encoding="utf-8")
