"""Memory, accelerators, and the programs and files outside of Python packages."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from mrs_suggest.cli.doctor.finding import BROKEN, INSTALL, MISSING, NOTE, OK, Finding
from mrs_suggest.cli.doctor.places import shown_bytes
from mrs_suggest.common.errors import InputError, first_line
from mrs_suggest.common.text.language_id import MODEL_VARIABLE, check_model_file, default_model_path

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


def accelerator() -> list[Finding]:
    """Whether torch can be imported, and which accelerators it finds."""
    if find_spec("torch") is None:
        return [Finding("machine", "accelerator", MISSING, "torch is not installed; training needs it")]
    done = subprocess.run([sys.executable, "-c", TORCH], capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode:
        reason = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
        return [Finding("machine", "accelerator", BROKEN, f"torch is installed, but cannot be imported ({reason})")]
    facts = json.loads(done.stdout)
    if facts["cuda"]:
        says = f"CUDA {facts['built_for_cuda']}: {', '.join(facts['cuda'])}; bf16 {'yes' if facts['bf16'] else 'no'}"
    else:
        says = "MPS" if facts["mps"] else "none; torch uses the processor"
    return [Finding("machine", "accelerator", OK, f"{says} (torch {facts['version']})")]


def memory() -> list[Finding]:
    """Memory and cores."""
    says = shown_bytes(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with contextlib.suppress(OSError):
        meminfo = Path("/proc/meminfo").read_text(encoding="ascii")
        if available := re.search(r"^MemAvailable: +(\d+) kB$", meminfo, re.MULTILINE):
            says += f", {shown_bytes(int(available[1]) * 1024)} of it available"
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
    return [Finding("machine", "memory", OK, says), Finding("machine", "cores", OK, str(cores))]


def java() -> list[Finding]:
    """The Java runtime, which only the build on Spark needs."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    needed = f"`mrs data build --engine spark` needs Java {JAVA_FOR_SPARK} or later"
    if program is None or not os.access(program, os.X_OK):
        where = f"JAVA_HOME is {home}, without bin/java" if home else "not found"
        return [Finding("machine", "java", BROKEN if home else MISSING, f"{where}; {needed}")]
    done = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=PATIENCE)
    version = re.search(r'version "(?:1\.)?(\d+)[^"]*"', done.stderr + done.stdout)
    if done.returncode or version is None:
        return [Finding("machine", "java", BROKEN, f"{program} does not start; {needed}")]
    if int(version[1]) < JAVA_FOR_SPARK:
        return [Finding("machine", "java", NOTE, f"{version[1]} ({program}); {needed}")]
    return [Finding("machine", "java", OK, f"{version[1]} ({program})")]


def mecab() -> list[Finding]:
    """MeCab with its dictionary, the Japanese tokenizer of the metrics: can it split a sentence?"""
    if find_spec("fugashi") is None or find_spec("unidic_lite") is None:
        return [Finding("models", "MeCab", MISSING, f"Japanese scores need it: pip install '.[ja]' {INSTALL}")]
    try:
        import fugashi

        words = [word.surface for word in fugashi.Tagger()("すもももももももものうち")]
    except Exception as error:  # any error of a broken dictionary or library
        says = f"{first_line(error)}; run pip install --force-reinstall fugashi unidic-lite"
        return [Finding("models", "MeCab", BROKEN, says)]
    return [Finding("models", "MeCab", OK, f"with unidic-lite, splits a test sentence into {len(words)} words")]


def language_model() -> list[Finding]:
    """fastText's language model: its file, and the library that reads it."""
    named = os.environ.get(MODEL_VARIABLE)
    path = Path(named).expanduser() if named else default_model_path()
    if not path.is_file():
        says = f"{MODEL_VARIABLE} names {path}, which is not a file" if named else f"{path} does not exist"
        says += "; `mrs install --language-model` downloads one"
        return [Finding("models", "fastText", BROKEN if named else MISSING, says)]
    try:
        check_model_file(path)
    except InputError as error:
        return [Finding("models", "fastText", BROKEN, str(error))]
    if find_spec("fasttext") is None:
        says = f"{path} exists, but the library is missing: pip install '.[langid]' {INSTALL}"
        return [Finding("models", "fastText", NOTE, says)]
    return [Finding("models", "fastText", OK, str(path))]
