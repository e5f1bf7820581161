"""The files of the demo page's Space: the page, the source of our packages that it imports, and models that are not on
the hub. The Space does not need a release of this package.
"""

from collections.abc import Mapping
from pathlib import Path

import yaml

from mrs_metrics.spaces import GRADIO_VERSION, PYTHON_VERSION
from mrs_suggest.common import __version__
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.extras import installed_asked
from mrs_suggest.common.hub.hub import require_repo_id, split_revision

# The packages that the page imports.
FOLDERS = ("mrs_metrics", *(f"mrs_suggest/{name}" for name in ("common", "models", "suggest", "serving/page")))
TOP = Path(__file__).resolve().parents[3]
KINDS = (".py", ".yaml", ".typed")
MODELS = "models"  # folder of the models that come with the Space
CPU_WHEELS = "--extra-index-url https://download.pytorch.org/whl/cpu\n"  # a free Space has no GPU
APP = '''"""The demo page of this Space."""

from mrs_suggest.serving.page.page import load_models, make_page, serve_page

if __name__ == "__main__":
    serve_page(make_page(load_models({names})))
'''
README = """# {title}

A chat page that shows reply suggestions as a person sees them: type a message, click one of three replies. Made by
`mrs demo publish` of mrs-suggest {version} (Apache 2.0), with {models}.
"""


def space_files(repo_id: str, models: Mapping[str, Mapping[str, bytes | Path] | None]) -> dict[str, bytes | Path]:
    """Path in the Space -> contents or file.

    Args:
        repo_id: `ORG/NAME` of the Space.
        models: name of a model -> its files by path, to be published with the page; None: the Space loads it from the
            hub, by its name `ORG/NAME` or `ORG/NAME@REVISION`.

    Raises:
        InputError: a name is neither a folder nor a repository, or two models have the same name.
    """
    files: dict[str, bytes | Path] = dict(_sources())
    files["mrs_suggest/__init__.py"] = TOP / "mrs_suggest" / "__init__.py"
    files["mrs_suggest/serving/__init__.py"] = b""  # the package's own names the server's modules
    names, on_hub = [], []
    for name, own in models.items():
        if own is None:
            found, _ = split_revision(name, None)
            require_repo_id(found)
            names.append(name)
            on_hub.append(found)
            continue
        place = f"{MODELS}/{Path(name).resolve().name if Path(name).is_dir() else name}"
        if place in names:
            raise InputError(f"--model {name}: another model has the same name; rename its folder.")
        names.append(place)
        files |= {f"{place}/{path}": content for path, content in own.items()}
    files["requirements.txt"] = (CPU_WHEELS + "".join(f"{line}\n" for line in requirements())).encode()
    files["app.py"] = APP.format(names=repr(names)).encode()
    files["README.md"] = _readme(repo_id, names, on_hub).encode()
    return dict(sorted(files.items()))


def requirements() -> list[str]:
    """The requirements of the base installation and of the extra `torch`, which answer messages, sorted."""
    asked = installed_asked()
    return sorted(str(one).partition(";")[0].strip() for one in [*asked.base, *asked.extras["torch"]])


def _sources() -> dict[str, Path]:
    """Path in the Space -> file of the packages; the embedded models are left out."""
    paths = (path for folder in FOLDERS for path in sorted((TOP / folder).rglob("*")))
    found = {path.relative_to(TOP).as_posix(): path for path in paths if path.suffix in KINDS}
    return {name: path for name, path in found.items() if "embedded" not in name.split("/")}


def _readme(repo_id: str, names: list[str], on_hub: list[str]) -> str:
    front = {
        "title": repo_id.rpartition("/")[2],
        "sdk": "gradio",
        "sdk_version": GRADIO_VERSION,
        "python_version": PYTHON_VERSION,
        "app_file": "app.py",
        "pinned": False,
        "license": "apache-2.0",
        "tags": ["reply-suggestion", "mrs"],
        **({"models": on_hub} if on_hub else {}),
    }
    models = ", ".join(f"`{name}`" for name in names)
    text = README.format(title=front["title"], version=__version__, models=models)
    return f"---\n{yaml.safe_dump(front, sort_keys=False, allow_unicode=True)}---\n\n{text}"
