"""The checks of `mrs doctor`: packages, models, caches, the hub, accelerators, Java and memory."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mrs_suggest.common.errors import InputError, first_line
from mrs_suggest.common.extras import PROJECT, installed_asked
from mrs_suggest.common.hub.baselines import read_baselines
from mrs_suggest.common.hub.installed import DATA_SET, METRIC, Cache
from mrs_suggest.common.text.language_id import MODEL_VARIABLE, check_model_file, default_model_path
from mrs_suggest.models.model_folder import open_model_folder

if TYPE_CHECKING:
    from packaging.requirements import Requirement

OK = "ok"
NOTE = "note"  # works; something to know
MISSING = "missing"  # optional, and not installed
BROKEN = "broken"  # installed, and does not work
INSTALL = "in a clone (docs/install.md)"
MOST_FILES = 20_000  # that are counted: a hub cache of some hundred models; more would take seconds
LITTLE_SPACE = 5 << 30  # bytes: a multilingual encoder, its run and a data set
SECONDS = 3.0  # of waiting for the hub
JAVA_FOR_SPARK = 17  # setup.cfg, extra `spark`
PATIENCE = 120  # s, for a program that hangs
# torch is imported in a separate process: a broken one may crash it, and the import takes seconds.
TORCH = """
import json, torch
cuda = torch.cuda.is_available()
print(json.dumps({
    "version": torch.__version__, "built_for_cuda": torch.version.cuda,
    "cuda": [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())] if cuda else [],
    "mps": torch.backends.mps.is_available(), "bf16": cuda and torch.cuda.is_bf16_supported(),
}))
"""


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Attributes:
        name: the thing that was checked, such as `torch`.
        state: OK, NOTE, MISSING or BROKEN.
        says: a version, a path, or the problem and its remedy.
    """

    name: str
    state: str
    says: str


def base() -> list[Finding]:
    """Python and every package of the base installation."""
    from packaging.specifiers import SpecifierSet

    asked, here = installed_asked(), platform.python_version()
    fits = here in SpecifierSet(asked.python)
    says = f"{here} ({sys.executable})" if fits else f"{here}, but mrs-suggest needs {asked.python}; use a newer one"
    found = [Finding(PROJECT, OK, metadata.version(PROJECT)), Finding("python", OK if fits else BROKEN, says)]
    for one in asked.base:
        problem = _problem(one)
        says = f"{problem}; run `pip install '{one}'`" if problem else str(_version(one))
        found.append(Finding(one.name, BROKEN if problem else OK, says))
    return found


def extras() -> list[Finding]:
    """Every extra: its versions, or the packages that it lacks and how to install them."""
    return [_extra(name, asked) for name, asked in sorted(installed_asked().extras.items())]


def _extra(name: str, asked: list[Requirement]) -> Finding:
    install = f"pip install '.[{name}]'"
    if lacking := ", ".join(one.name for one in asked if _version(one) is None):
        return Finding(name, MISSING, f"needs {lacking}: {install} {INSTALL}")
    if problems := "; ".join(filter(None, map(_problem, asked))):
        return Finding(name, BROKEN, f"{problems}; run `{install}` {INSTALL}")
    return Finding(name, OK, ", ".join(f"{one.name} {_version(one)}" for one in asked))


def _problem(requirement: Requirement) -> str | None:
    version = _version(requirement)
    if version is None:
        return f"{requirement.name} is not installed"
    if not requirement.specifier.contains(version, prereleases=True):
        return f"{requirement.name} {version} is installed, but mrs-suggest needs {requirement.specifier}"
    return None


def _version(requirement: Requirement) -> str | None:
    try:
        return metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return None


def default_caches() -> list[Cache]:
    """The caches of `mrs_suggest.common.hub.installed.caches`, without importing the libraries that own them."""
    from huggingface_hub.constants import HF_HOME

    data = os.environ.get("HF_DATASETS_CACHE") or Path(HF_HOME) / "datasets"
    modules = os.environ.get("HF_MODULES_CACHE") or Path(HF_HOME) / "modules"
    return [Cache(Path(data).expanduser(), DATA_SET), Cache(Path(modules).expanduser(), METRIC)]


def caches() -> list[Finding]:
    """The caches of the hub, of data sets and of metrics, with their sizes, and the space on the disk."""
    from huggingface_hub.constants import HF_HUB_CACHE

    data, modules = default_caches()
    hub = Path(HF_HUB_CACHE)
    free = shutil.disk_usage(next(path for path in (hub, *hub.parents) if path.exists())).free
    return [
        _place("models and data of the hub", hub),
        _place("data sets", data.root),
        _place("metrics", modules.root),
        _installed("data sets of `mrs install`", data),
        _installed("metrics of `mrs install`", modules),
        Finding("disk", OK if free > LITTLE_SPACE else NOTE, f"{shown_bytes(free)} free for {hub}"),
    ]


def shipped_models() -> list[Finding]:
    """The models that are part of the package, by the hashes of their files."""
    found = []
    for name, baseline in read_baselines().items():
        if baseline.embedded:
            try:
                open_model_folder(baseline.folder, verify=True)
                found.append(Finding(name, OK, "part of the package; the hashes of its files match"))
            except InputError as error:
                found.append(Finding(name, BROKEN, f"{error} Install mrs-suggest again."))
    return found


def shown_bytes(size: int) -> str:
    """A size for people.

    >>> shown_bytes(0), shown_bytes(2_500_000), shown_bytes(3 << 30)
    ('0 MB', '3 MB', '3.2 GB')
    """
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{-(-size // 1_000_000)} MB"


def _place(name: str, folder: Path) -> Finding:
    if not folder.exists():
        return Finding(name, OK, f"{folder} (does not exist yet)")
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return Finding(name, BROKEN, f"{folder} is not writable; change its permissions, or set HF_HOME")
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    sizes = [path.lstat().st_size for path in islice(files, MOST_FILES)]
    more = "at least " if len(sizes) == MOST_FILES else ""
    return Finding(name, OK, f"{folder}, {more}{shown_bytes(sum(sizes))}")


def _installed(name: str, cache: Cache) -> Finding:
    try:
        listed = cache.listed()
    except InputError as error:
        return Finding(name, BROKEN, str(error))
    gone = [folder for folder in listed if not folder.exists()]
    if gone:
        return Finding(name, BROKEN, f"{gone[0]} does not exist any more; run `mrs install` again")
    return Finding(name, OK, f"{len(listed)} folders" if listed else "none")


def hub() -> list[Finding]:
    """Whether the hub (`HF_ENDPOINT`) answers, and whether there is a token, which is never shown."""
    from huggingface_hub import constants, get_token

    token = "present" if get_token() else "none; `hf auth login` sets one, for private repositories and for publishing"
    parts = urlsplit(constants.ENDPOINT)
    address = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
    if constants.HF_HUB_OFFLINE:
        state, says = NOTE, f"HF_HUB_OFFLINE is set: no requests to {address}"
    else:
        state, says = _reached(constants.ENDPOINT, address)
    return [Finding("connection", state, says), Finding("token", OK, token)]


def _reached(url: str, address: str) -> tuple[str, str]:
    started = time.monotonic()
    try:
        request = urllib.request.Request(url, method="HEAD", headers={"User-Agent": "mrs-suggest"})
        with urllib.request.urlopen(request, timeout=SECONDS):
            pass
    except urllib.error.HTTPError as error:  # it answers; an endpoint's first page may need a login
        error.close()
        if error.code >= 500:
            return NOTE, f"{address} answers with error {error.code}; try later"
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or type(error).__name__
        advice = "cached files still work, and HF_HUB_OFFLINE=1 avoids the wait"
        return NOTE, f"{address} cannot be reached ({reason}); {advice}"
    return OK, f"{address} answers in {time.monotonic() - started:.1f} s"


def accelerator() -> list[Finding]:
    """Whether torch can be imported, and which accelerators it finds."""
    if find_spec("torch") is None:
        return [Finding("accelerator", MISSING, "torch is not installed; training needs it")]
    done = subprocess.run([sys.executable, "-c", TORCH], capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode:
        reason = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
        return [Finding("accelerator", BROKEN, f"torch is installed, but cannot be imported ({reason})")]
    facts = json.loads(done.stdout)
    if facts["cuda"]:
        says = f"CUDA {facts['built_for_cuda']}: {', '.join(facts['cuda'])}; bf16 {'yes' if facts['bf16'] else 'no'}"
    else:
        says = "MPS" if facts["mps"] else "none; torch uses the processor"
    return [Finding("accelerator", OK, f"{says} (torch {facts['version']})")]


def memory() -> list[Finding]:
    """Memory and cores."""
    says = shown_bytes(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with contextlib.suppress(OSError):
        meminfo = Path("/proc/meminfo").read_text(encoding="ascii")
        if available := re.search(r"^MemAvailable: +(\d+) kB$", meminfo, re.MULTILINE):
            says += f", {shown_bytes(int(available[1]) * 1024)} of it available"
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
    return [Finding("memory", OK, says), Finding("cores", OK, str(cores))]


def java() -> list[Finding]:
    """The Java runtime, which only the build on Spark needs."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    needed = f"`mrs data build --engine spark` needs Java {JAVA_FOR_SPARK} or later"
    if program is None or not os.access(program, os.X_OK):
        where = f"JAVA_HOME is {home}, without bin/java" if home else "not found"
        return [Finding("java", BROKEN if home else MISSING, f"{where}; {needed}")]
    done = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=PATIENCE)
    version = re.search(r'version "(?:1\.)?(\d+)[^"]*"', done.stderr + done.stdout)
    if done.returncode or version is None:
        return [Finding("java", BROKEN, f"{program} does not start; {needed}")]
    if int(version[1]) < JAVA_FOR_SPARK:
        return [Finding("java", NOTE, f"{version[1]} ({program}); {needed}")]
    return [Finding("java", OK, f"{version[1]} ({program})")]


def mecab() -> list[Finding]:
    """MeCab with its dictionary, the Japanese tokenizer of the metrics: can it split a sentence?"""
    if find_spec("fugashi") is None or find_spec("unidic_lite") is None:
        return [Finding("MeCab", MISSING, f"Japanese scores need it: pip install '.[ja]' {INSTALL}")]
    try:
        import fugashi

        words = [word.surface for word in fugashi.Tagger()("すもももももももものうち")]
    except Exception as error:  # any error of a broken dictionary or library
        says = f"{first_line(error)}; run pip install --force-reinstall fugashi unidic-lite"
        return [Finding("MeCab", BROKEN, says)]
    return [Finding("MeCab", OK, f"with unidic-lite, splits a test sentence into {len(words)} words")]


def language_model() -> list[Finding]:
    """fastText's language model: its file, and the library that reads it."""
    named = os.environ.get(MODEL_VARIABLE)
    path = Path(named).expanduser() if named else default_model_path()
    if not path.is_file():
        says = f"{MODEL_VARIABLE} names {path}, which is not a file" if named else f"{path} does not exist"
        says += "; `mrs install --language-model` downloads one"
        return [Finding("fastText", BROKEN if named else MISSING, says)]
    try:
        check_model_file(path)
    except InputError as error:
        return [Finding("fastText", BROKEN, str(error))]
    if find_spec("fasttext") is None:
        says = f"{path} exists, but the library is missing: pip install '.[langid]' {INSTALL}"
        return [Finding("fastText", NOTE, says)]
    return [Finding("fastText", OK, str(path))]
