"""Message vectors: the exported encoder on ONNX Runtime, fp32 and int8, against the weights themselves.

Workload: the message encoder of one retriever, English messages of the sample's test split, one at a time (batch 1);
200 messages a round, the encoders take turns for three rounds, the best round of each counts, a message. Agreement:
the share of the sample's test messages, in all languages of the model, that get the same three suggestions as by the
weights, and the smallest cosine of a vector with theirs. The rival is `mrs_suggest.models.retrieval.message_encoder` on
NumPy, which answers where there is no export (sentence-transformers for anything but BERT).

Run: python benchmarks/bench_export.py [RUN]  (default: the retriever that ships, which is tiny)
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from timing import best_in_turns, write_result

from mrs_datasets.prepared.prepared import open_prepared
from mrs_suggest.common.hub.baselines import resolve_model
from mrs_suggest.models.retrieval.onnx_encoder import OnnxEncoder
from mrs_suggest.models.retrieval.onnx_writer import write_onnx_encoder
from mrs_suggest.suggest.retrieval_suggester import weights_encoder
from mrs_suggest.suggest.suggester import Suggester
from mrs_suggest.training.reply.exporting import agreement

MESSAGES = 200
Encode = Callable[[list[str]], np.ndarray]


def exported(folder: Path, place: Path, int8: bool) -> tuple[Encode, int]:
    """The exported encoder, and the bytes of its graph."""
    from mrs_suggest.models.retrieval.dual_encoder import load_dual_encoder

    place.mkdir()
    write_onnx_encoder(load_dual_encoder(folder).eval(), folder, place, int8)
    encoder = OnnxEncoder.load(folder, place)
    assert encoder is not None
    return encoder.encode, sum(path.stat().st_size for path in place.rglob("*.onnx"))


def one_by_one(encode: Encode, messages: list[str]) -> Callable[[], object]:
    return lambda: [encode([message]) for message in messages]


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else "everyday-retriever"
    folder = resolve_model(name)
    model: Any = Suggester.from_pretrained(folder).model
    sample = open_prepared("sample")
    messages = {code: list(dict.fromkeys(sample.load(code, "test")["message"])) for code in model.languages}
    texts = [text for some in messages.values() for text in some]
    encoders: dict[str, Encode] = {"weights, fp32": weights_encoder(folder)}
    sizes = {}
    with tempfile.TemporaryDirectory() as place:
        for kind in ("fp32", "int8"):
            encoders[f"onnx, {kind}"], sizes[f"onnx, {kind}"] = exported(folder, Path(place, kind), kind == "int8")
        some = messages["en" if "en" in messages else model.languages[0]][:MESSAGES]
        times = best_in_turns({name: one_by_one(encode, some) for name, encode in encoders.items()}, len(some))
        reference = encoders["weights, fp32"]
        vectors, figures = reference(texts), {}
        for system in sizes:
            same, total = agreement(model.with_encoder(reference), model.with_encoder(encoders[system]), messages)
            exported_vectors = encoders[system](texts)
            lengths = np.linalg.norm(exported_vectors, axis=1) * np.linalg.norm(vectors, axis=1)
            cosine = ((exported_vectors * vectors).sum(1) / lengths).min()
            figures[system] = {
                "ratio": round(times["weights, fp32"] / times[system], 2),
                "same_suggestions": round(same / total, 4),
                "smallest_cosine": round(float(cosine), 5),
                "bytes": sizes[system],
            }
            print(
                f"{system}: {1000 * times[system]:.2f} ms, weights fp32 {1000 * times['weights, fp32']:.2f} ms, ratio "
                f"{figures[system]['ratio']:.2f}; the same three suggestions for {same:,} of {total:,} messages"
            )
    result = {
        "model": Path(name).name,
        "messages": len(texts),
        "seconds": times,
        **figures,
        "threads": os.environ.get("OMP_NUM_THREADS", "all"),
    }
    write_result(__file__, __doc__, result, ("numpy", "onnx", "onnxruntime"), folder)


if __name__ == "__main__":
    main()
