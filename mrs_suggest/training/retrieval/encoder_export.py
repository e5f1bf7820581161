"""`mrs models export RUN --onnx`: the message encoder for ONNX Runtime, kept only if the answers stay the same."""

from pathlib import Path

import numpy as np

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import writing
from mrs_suggest.models.exports import ONNX, require_packages
from mrs_suggest.models.retrieval.onnx_encoder import OnnxEncoder
from mrs_suggest.models.retrieval.onnx_writer import write_onnx_encoder
from mrs_suggest.models.saved.record import Record, read_record
from mrs_suggest.models.starting_points import GENERATOR
from mrs_suggest.suggest.index.response_index import Array
from mrs_suggest.suggest.retrieval_suggester import RetrievalSuggester, weights_encoder
from mrs_suggest.suggest.suggester import Suggester
from mrs_suggest.training.reply.exporting import (
    agreement,
    keep_export,
    messages_to_compare,
    partial_export,
    require_exportable,
    size_and_versions,
    speeds,
)
from mrs_suggest.training.retrieval import FAMILY as RETRIEVAL

LEAST = 0.98  # of the messages get the same three suggestions; the project's goal for a copy that ships
EXACT = 1e-3  # ours: largest difference of fp32 vectors, relative to the longest; float rounding stays below 1e-5


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
        InputError: it is not a retriever's run, its vectors differ, or fewer answers stay the same.
        MissingExtraError: the extra `onnx` is not installed.
    """
    from mrs_suggest.models.retrieval.dual_encoder import load_dual_encoder

    record = read_record(run)
    if record["trainer"] != RETRIEVAL.name or (run / GENERATOR).is_file():
        raise InputError(f"{run}: is not a retriever, so it has no message encoder to export.")
    require_packages(ONNX)
    require_exportable(run)
    split, messages = messages_to_compare(run, record, data, file)
    texts = [text for some in messages.values() for text in some]
    with partial_export(run, ONNX) as place:
        with writing(run):
            write_onnx_encoder(load_dual_encoder(run).eval(), run, place, int8)
        facts = size_and_versions(place / ONNX, int8, ("torch", "onnx", "onnxscript", "onnxruntime"))
        reference = weights_encoder(run)
        exported = OnnxEncoder.load(run, place)
        assert exported is not None  # the extra is there
        facts |= _difference(run, reference(texts), exported.encode(texts), int8)
        model = Suggester.from_pretrained(run, guard=False).model
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
        facts["milliseconds"] = speeds({"weights": reference, "onnx": exported.encode}, texts)
        with writing(run):
            keep_export(run, record, place / ONNX, facts, RETRIEVAL)
    return facts


def _difference(run: Path, before: Array, after: Array, int8: bool) -> Record:
    lengths, others = (np.linalg.norm(vectors, axis=1) for vectors in (before, after))
    largest, length = float(np.abs(before - after).max()), float(lengths.max())
    cosine = float(((before * after).sum(1) / np.maximum(lengths * others, 1e-12)).min())
    print(f"vectors of {len(before):,} messages: largest difference {largest:.3g}, smallest cosine {cosine:.6f}")
    if not int8 and not largest <= EXACT * length:  # NaN fails too
        raise InputError(
            f"{run}: the export's vectors differ from its own by up to {largest:.3g}; nothing was written."
        )
    return {"largest_difference": largest, "smallest_cosine": cosine}
