"""What the machine has: memory, accelerators, and the programs and files outside of Python packages."""

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

from mrs_suggest.cli.doctor.caches import shown_bytes
from mrs_suggest.cli.doctor.finding import BROKEN, MISSING, NOTE, OK, Finding
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.language_id import MODEL_VARIABLE, check_model_file, default_model_path

JAVA_FOR_SPARK = 17  # setup.cfg, extra `spark`
PATIENCE = 120  # s, for a program that hangs
# torch is looked at in a process of its own: a broken one may take the process with it, and it takes seconds to import.
TORCH = """
import json, torch
cuda = torch.cuda.is_available()
print(json.dumps({
    "version": torch.__version__, "built_for_cuda": torch.version.cuda,
    "cuda": [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())] if cuda else [],
    "mps": torch.backends.mps.is_available(), "bf16": cuda and torch.cuda.is_bf16_supported(),
}))
"""


def check_torch() -> list[Finding]:
    """Whether torch can be imported, and which accelerators it sees."""
    if find_spec("torch") is None:
        return [Finding("machine", "accelerator", MISSING, "torch is not installed; training needs it")]
    done = subprocess.run([sys.executable, "-c", TORCH], capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode:
        reason = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
        return [Finding("machine", "accelerator", BROKEN, f"torch is installed, but does not import ({reason})")]
    facts = json.loads(done.stdout)
    if facts["cuda"]:
        says = f"CUDA {facts['built_for_cuda']}: {', '.join(facts['cuda'])}; bf16 {'yes' if facts['bf16'] else 'no'}"
    else:
        says = "MPS" if facts["mps"] else "none; torch computes on the processor"
    return [Finding("machine", "accelerator", OK, f"{says} (torch {facts['version']})", facts)]


def check_memory() -> list[Finding]:
    """Memory and cores."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    free = None
    with contextlib.suppress(OSError, AttributeError):
        told = re.search(r"^MemAvailable: +(\d+) kB$", Path("/proc/meminfo").read_text(encoding="ascii"), re.MULTILINE)
        free = int(told[1]) * 1024 if told else None
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
    says = f"{shown_bytes(total)}" + (f", {shown_bytes(free)} of it available" if free is not None else "")
    return [
        Finding("machine", "memory", OK, says, {"bytes": total, "available_bytes": free}),
        Finding("machine", "cores", OK, str(cores), {"cores": cores}),
    ]


def check_java() -> list[Finding]:
    """The Java runtime, which only the build on Spark needs."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    needed = f"`mrs data build --engine spark` needs Java {JAVA_FOR_SPARK} or later"
    if program is None or not os.access(program, os.X_OK):
        where = f"JAVA_HOME is {home}, without bin/java" if home else "not found"
        return [Finding("machine", "java", BROKEN if home else MISSING, f"{where}; {needed}")]
    done = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=PATIENCE)
    told = re.search(r'version "(?:1\.)?(\d+)[^"]*"', done.stderr + done.stdout)
    if done.returncode or told is None:
        return [Finding("machine", "java", BROKEN, f"{program} is there, but does not start; {needed}")]
    version = int(told[1])
    facts = {"version": version, "path": program}
    if version < JAVA_FOR_SPARK:
        return [Finding("machine", "java", NOTE, f"{version} ({program}); {needed}", facts)]
    return [Finding("machine", "java", OK, f"{version} ({program})", facts)]


def check_mecab() -> list[Finding]:
    """MeCab with its dictionary, the Japanese tokenizer of the metrics: does it split a sentence?"""
    if find_spec("fugashi") is None or find_spec("unidic_lite") is None:
        return [
            Finding(
                "models", "MeCab", MISSING, "Japanese scores need it: pip install '.[ja]' in a clone (docs/install.md)"
            )
        ]
    try:
        import fugashi

        words = [word.surface for word in fugashi.Tagger()("すもももももももものうち")]
    except Exception as error:  # whatever a broken dictionary or library raises
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        return [Finding("models", "MeCab", BROKEN, f"{reason}; run pip install --force-reinstall fugashi unidic-lite")]
    return [Finding("models", "MeCab", OK, f"with unidic-lite, splits a test sentence into {len(words)} words")]


def check_language_model() -> list[Finding]:
    """fastText's language model: its file, and the library that reads it."""
    named = os.environ.get(MODEL_VARIABLE)
    path = Path(named).expanduser() if named else default_model_path()
    facts = {"path": str(path)}
    if not path.is_file():
        state = BROKEN if named else MISSING
        told = f"{MODEL_VARIABLE} names {path}, which is no file" if named else f"no file {path}"
        return [Finding("models", "fastText", state, f"{told}; `mrs install --language-model` downloads one", facts)]
    try:
        check_model_file(path)
    except InputError as error:
        return [Finding("models", "fastText", BROKEN, str(error), facts)]
    if find_spec("fasttext") is None:
        says = f"{path} is there, but not the library: pip install '.[langid]' in a clone (docs/install.md)"
        return [Finding("models", "fastText", NOTE, says, facts)]
    return [Finding("models", "fastText", OK, str(path), facts)]
