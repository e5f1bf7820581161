"""`mrs models export RUN --onnx`: the message encoder for ONNX Runtime, kept only if the answers stay the same."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from mrs_core.errors import InputError
from mrs_core.files import atomic_write, writing
from mrs_core.manifest import has_hashes, require_undamaged
from mrs_models.exports import ONNX
from mrs_models.onnx_encoder import OnnxEncoder
from mrs_models.onnx_writer import require_onnx, write_onnx_encoder
from mrs_models.retrieval_suggester import RetrievalSuggester, torch_encoder
from mrs_models.starting_points import ADAPTER_RECORD, GENERATOR
from mrs_models.suggester import Suggester
from mrs_training.allowlist import EXPORTS, RECORD
from mrs_training.card import Record
from mrs_training.reply.agreement import agreement, messages_to_compare
from mrs_training.reply.families import RETRIEVAL
from mrs_training.run import as_json, read_record, write_record

LEAST = 0.98  # of the messages get the same three suggestions; the project's goal for a copy that ships
EXACT = 1e-3  # ours: largest difference of fp32 vectors, relative to the longest; float rounding stays below 1e-5
TIMED = 100  # messages


def export_encoder(
    run: Path, int8: bool = False, data: str | None = None, file: Path | None = None, least: float = LEAST
) -> Record:
    """Put the message encoder of a retriever's run into its `onnx/`, print how it compares, and record it.

    Args:
        data, file: where messages to compare come from, see `messages_to_compare`.
        least: share of messages that must get the same three suggestions.

    Returns:
        What `run.json` has of it, under `exports`.

    Raises:
        InputError: it is no retriever's run, its vectors differ, or fewer answers stay the same.
        MissingExtraError: the extra `onnx` is not installed.
    """
    record = read_record(run)
    if record["trainer"] != RETRIEVAL.name or (run / GENERATOR).is_file():
        raise InputError(f"{run}: is no retriever, so it has no message encoder to export.")
    if (run / ADAPTER_RECORD).is_file():
        raise InputError(f"{run}: holds adapters only; pass the folder of their run, where they are merged.")
    require_onnx()
    require_undamaged(run, verify=has_hashes(run))  # the record gets the hashes of all files anew
    split, messages = messages_to_compare(run, record, data, file)
    texts = [text for some in messages.values() for text in some]
    with writing(run):
        folder = tempfile.TemporaryDirectory(prefix=f".{ONNX}.partial-", dir=run)
    with folder as place:
        with writing(run):
            facts = _write(run, Path(place), int8)
        reference = torch_encoder(run)
        exported = OnnxEncoder.load(run, Path(place))
        assert exported is not None  # the extra is there
        facts |= _difference(run, reference(texts), exported.encode(texts), int8)
        model = Suggester.load(run, guard=False).model
        assert isinstance(model, RetrievalSuggester)
        systems = (model.with_encoder(reference), model.with_encoder(exported.encode))
        same, total = agreement(*systems, messages)
        facts |= {"agreement": same / total, "same": same, "messages": total, "split": split}
        print(f"the same three suggestions for {same:,} of {total:,} {split} messages ({same / total:.2%})")
        if same < least * total:
            raise InputError(
                f"{run}: the export gives the same three suggestions for {same / total:.2%} of the messages, below "
                f"{least:.2%}; nothing was written. Export {'without --int8' if int8 else 'another model'}, or accept "
                "it with --least-agreement."
            )
        facts["milliseconds"] = _speeds({"torch": reference, "onnx": exported.encode}, texts[:TIMED])
        with writing(run):
            _keep(run, Path(place) / ONNX, facts)
    return facts


def _write(run: Path, place: Path, int8: bool) -> Record:
    from importlib import metadata

    from mrs_models.dual_encoder import load_dual_encoder

    write_onnx_encoder(load_dual_encoder(run).eval(), run, place, int8)
    size = sum(path.stat().st_size for path in (place / ONNX).iterdir())
    versions = {name: metadata.version(name) for name in ("torch", "onnx", "onnxscript", "onnxruntime")}
    return {"int8": int8, "bytes": size, "versions": versions}


def _difference(run: Path, before: Tensor, after: Tensor, int8: bool) -> Record:
    largest, length = float((before - after).abs().max()), float(before.norm(dim=1).max())
    cosine = float(torch.nn.functional.cosine_similarity(before, after).min())
    print(f"vectors of {len(before):,} messages: largest difference {largest:.3g}, smallest cosine {cosine:.6f}")
    if not int8 and not largest <= EXACT * length:  # NaN fails too
        raise InputError(
            f"{run}: the export's vectors differ from torch's by up to {largest:.3g}; nothing was written."
        )
    return {"largest_difference": largest, "smallest_cosine": cosine}


def _speeds(encoders: dict[str, Callable[[list[str]], Tensor]], texts: Sequence[str]) -> dict[str, float]:
    """Median milliseconds to encode one message alone; the encoders take turns, so that a busy machine hits both."""
    times: dict[str, list[float]] = {name: [] for name in encoders}
    for text in texts:
        for name, encode in encoders.items():
            begin = time.perf_counter()
            encode([text])
            times[name].append(1000 * (time.perf_counter() - begin))
    found = {name: round(statistics.median(some), 3) for name, some in times.items()}
    print("one message: " + ", ".join(f"{name} {value:.2f} ms" for name, value in found.items()))
    return found


def _keep(run: Path, made: Path, facts: Record) -> None:
    """Move an export into the run's folder, and list it in the record with its hashes.

    An older one goes first, from the record, too: an interrupted export leaves a folder that loads.
    """
    record = read_record(run)
    if record.pop("exports", None):
        record["files"] = {name: entry for name, entry in record["files"].items() if name not in EXPORTS}
        atomic_write(run / RECORD, as_json(record))
    shutil.rmtree(run / ONNX, ignore_errors=True)
    made.rename(run / ONNX)
    write_record(run, {**record, "exports": {ONNX: facts}}, RETRIEVAL)
