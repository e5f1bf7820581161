"""Makes a small copy of a trained retriever: `python -m mrs_suggest.training.retrieval.shrink RUN OUT`
(`make baseline`).

Weights and response vectors are stored as fp16, half their size; curves, exports and unpublished files are
left out. Both ways of loading compute in fp32. The command prints for how many test messages the suggestions stay the
same.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from mrs_suggest.common.errors import run_with_sentence
from mrs_suggest.common.io.files import atomic_folder
from mrs_suggest.models.saved.allowlist import CURVES, EXPORTS
from mrs_suggest.models.saved.families import write_record
from mrs_suggest.models.saved.record import Record, read_record
from mrs_suggest.suggest.suggester import Suggester
from mrs_suggest.training.reply.exporting import agreement, predicted_messages
from mrs_suggest.training.retrieval import FAMILY as RETRIEVAL


def shrink(run: Path, out: Path, base: str | None = None, base_license: str | None = None) -> None:
    """Write the small copy of `run` to `out`, replacing it.

    Args:
        base: the hub id of the model with which training began, where it was a folder: record and card name it.
        base_license: its licence, as the hub names it.

    Raises:
        InputError: `run` holds no finished run.
    """
    record = read_record(run)
    messages = predicted_messages(run, record["metrics"]["signatures"])
    # An export is a copy of the weights at full precision: of the small ones, it is made anew.
    record.pop("exports", None)
    with atomic_folder(out, overwrite=True, marker="run.json") as partial:
        for name, file in RETRIEVAL.publication(run, run.name, "").files().items():
            if isinstance(file, Path) and name not in (CURVES, *EXPORTS):
                (partial / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(file, partial / name)
        for path in partial.rglob("*.safetensors"):
            tensors = load_file(path)
            if any(tensor.dtype == torch.float32 for tensor in tensors.values()):
                halved = {name: _half(tensor) for name, tensor in tensors.items()}
                save_file(halved, path, metadata={"format": "pt"})
            path.chmod(0o644)
        record["stored_as"] = "fp16"
        if base is not None:
            _name_root(record, base)
        if base_license is not None:
            record["base_license"] = base_license
        write_record(partial, record, RETRIEVAL)
        old, new = (Suggester.from_pretrained(folder).model for folder in (run, partial))
        same, total = agreement(old, new, messages)
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    print(f"wrote {out} ({size:,} bytes); the same three suggestions for {same:,} of {total:,} test messages")


def _name_root(record: Record, base: str) -> None:
    """Name the model with which the chain of runs began; the run itself may have started from another run."""
    if chain := record.get("started_from"):
        chain[-1] = base
    else:
        record["arguments"]["model_name_or_path"] = base


def _half(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.half() if tensor.is_floating_point() else tensor


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--base", help="hub id of the model with which training began, where that was a folder")
    parser.add_argument("--base-license", help="its licence, such as mit")
    options = parser.parse_args()
    shrink(options.run, options.out, options.base, options.base_license)


if __name__ == "__main__":
    sys.exit(run_with_sentence("shrink", main))
