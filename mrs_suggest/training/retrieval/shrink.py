"""Makes a small copy of a trained retriever: `python -m mrs_suggest.training.retrieval.shrink RUN OUT`
(`make baseline`).

Matrices are stored as 8-bit floats, other weights as fp16, whole numbers in as few bits as they need, and replies'
vectors along their `DIMENSION` principal axes. With `--remember DATA`, memory and response sets hold all splits.
Curves, exports and unpublished files are left out. Both ways of loading compute in fp32. The command prints for how
many test messages the suggestions stay the same.
"""

import argparse
import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import torch
from datasets import concatenate_datasets
from safetensors.torch import load_file, save_file
from tqdm import tqdm

from mrs_datasets.prepared.prepared import open_prepared
from mrs_metrics.tokenize import get_tokenizer
from mrs_suggest.common.errors import InputError, run_with_sentence
from mrs_suggest.common.io.files import atomic_folder
from mrs_suggest.common.text.text import normalise_reply
from mrs_suggest.models.retrieval.dual_encoder import load_dual_encoder
from mrs_suggest.models.retrieval.encode import encode_messages, encode_replies
from mrs_suggest.models.saved.families import write_record
from mrs_suggest.models.saved.record import CURVES, EXPORTS, read_record
from mrs_suggest.suggest.index.response_index import AXES, VECTORS, ResponseIndex, ResponseIndexes
from mrs_suggest.suggest.ranking.language_ranker import LanguageRanker
from mrs_suggest.suggest.ranking.memory import principal_axes
from mrs_suggest.suggest.ranking.rankers import save_rankers
from mrs_suggest.suggest.ranking.reply_ngrams import ReplyNgrams
from mrs_suggest.suggest.reply_tags import ReplyTags
from mrs_suggest.suggest.retrieval_suggester import RetrievalSuggester
from mrs_suggest.suggest.suggester import Suggester
from mrs_suggest.training.reply.exporting import agreement, predicted_messages
from mrs_suggest.training.retrieval import FAMILY as RETRIEVAL
from mrs_suggest.training.retrieval.ranker_tuning import RankerOptions, remember

DIMENSION = 48  # of replies' vectors
EIGHT_BITS = (".weight", "vectors", "axes")  # ends of the names of the matrices that 8-bit floats store
# Whole numbers that are stored in as few bits as they need.
WHOLE = (
    "clusters", "remembered", "memory.replies", "memory.groups", "memory.starts", "replies.numbers", "replies.starts",
)  # fmt: skip


def remember_all(run: Path, out: Path, data: str) -> None:
    """Write the model of `run` to its copy `out` with the messages of all splits, and the replies that its sets lack.

    Figures need messages that a model does not know; a product does not. Weights, temperatures and trigger stay those
    of the run, and so do its figures. `data` is a prepared folder or the name of a data set.

    Raises:
        InputError: the model has no ranker, or the data lack one of its languages.
    """
    source, model = open_prepared(data), RetrievalSuggester.load_from(run, str(run))
    encoder = load_dual_encoder(run)
    if not model.rankers:
        raise InputError(f"{run}: the model has no ranker that could remember; train it with --ranker true.")
    rankers = {}
    for language, ranker in tqdm(model.rankers.items(), desc="remember", unit=" languages"):
        rows = concatenate_datasets([source.load(language, split) for split in source.splits(language)])
        index = ranker.index
        stances = rows["stance"][:] if "stance" in rows.column_names else [None] * len(rows)
        tags = dict(zip(index.replies, model.tags[language].by_reply(), strict=True))
        known = {normalise_reply(reply) for reply in index.replies}
        new: dict[str, list[str]] = {
            reply: [stance] if stance else []
            for reply, stance in zip(rows["reply"][:], stances, strict=True)
            if normalise_reply(reply) not in known
        }
        longer = ResponseIndex.build(
            lambda texts: encode_replies(encoder, texts).numpy(),
            [*index.replies, *new],
            [*map(str, index.clusters), *map(normalise_reply, new)],
            [*index.log_probs.tolist(), *[None] * len(new)],
            index.alpha,
        )
        options = RankerOptions(ranker.settings.names, dimension=ranker.memory.vectors.shape[1])
        memory = remember(lambda texts: encode_messages(encoder, texts).numpy(), longer, [rows], options, 0)
        assert memory is not None  # the data have the replies of the index
        ngrams = ReplyNgrams.build(longer.replies, get_tokenizer(language))
        built = LanguageRanker.build(longer, memory, ngrams, ranker.settings)
        rankers[language] = replace(built, mixture=ranker.mixture)
        place = out / ResponseIndexes.FOLDER / language
        longer.save(place)
        ReplyTags.of([(tags | new)[reply] for reply in longer.replies]).save(place)
    save_rankers(rankers, out)


def shrink(
    run: Path, out: Path, base: str | None = None, base_license: str | None = None, data: str | None = None
) -> None:
    """Write the small copy of `run` to `out`, replacing it.

    Args:
        base: the hub id of the model with which training began, where it was a folder: record and card name it.
        data: a data set of which the copy remembers all splits (`remember_all`).
    """
    record = read_record(run)
    messages = predicted_messages(run, record["metrics"]["signatures"])
    # An export is a copy of the weights at full precision; the small ones need a new one.
    record.pop("exports", None)
    with atomic_folder(out, overwrite=True, marker="run.json") as partial:
        for name, file in RETRIEVAL.publication(run, run.name, "").files().items():
            if isinstance(file, Path) and name not in (CURVES, *EXPORTS):
                (partial / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(file, partial / name)
        if data is not None:
            remember_all(run, partial, data)
        for path in partial.rglob("*.safetensors"):
            tensors = load_file(path)
            if path.name == VECTORS:
                tensors = {name: tensor for name, tensor in tensors.items() if not name.startswith("cells.")}
                tensors |= _narrowed(tensors)
            save_file({name: _small(name, tensor) for name, tensor in tensors.items()}, path, metadata={"format": "pt"})
            path.chmod(0o644)
        for path in partial.rglob("tokenizer.json"):  # a third of it is white space
            compact = json.dumps(json.loads(path.read_text("utf-8")), ensure_ascii=False, separators=(",", ":"))
            path.write_text(compact, "utf-8")
        record["stored_as"] = "8-bit floats" + ("" if data is None else f"; memory and replies: all splits of {data}")
        if base is not None and (chain := record.get("started_from")):  # the run started from another run
            chain[-1] = base
        elif base is not None:
            record["arguments"]["model_name_or_path"] = base
        if base_license is not None:
            record["base_license"] = base_license
        write_record(partial, record, RETRIEVAL)
        found = ""
        if data is None:  # with more replies, other ones are suggested on purpose
            old, new = (Suggester.from_pretrained(folder).model for folder in (run, partial))
            same, total = agreement(old, new, messages)
            found = f"; the same three suggestions for {same:,} of {total:,} test messages"
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    print(f"wrote {out} ({size:,} bytes){found}")


def _narrowed(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The vectors of replies (N, d), which a small copy stores along axes already, along their principal axes."""
    vectors = tensors["vectors"].float()
    if AXES in tensors:
        vectors = vectors @ tensors[AXES].float().T
    axes = torch.from_numpy(principal_axes(vectors.numpy(), min(DIMENSION, vectors.shape[1])))
    return {"vectors": vectors @ axes, AXES: axes}


def _small(name: str, tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_floating_point():
        eight = tensor.ndim == 2 and name.endswith(EIGHT_BITS)
        return tensor.to(torch.float8_e4m3fn if eight else torch.float16)
    few = name in WHOLE and 0 <= tensor.long().min() <= tensor.long().max() < 1 << 16
    return tensor.to(torch.uint16) if few else tensor


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--base", help="hub id of the model with which training began, if that was a folder")
    parser.add_argument("--base-license", help="its licence, such as mit")
    parser.add_argument("--remember", metavar="DATA", help="a data set of which the copy remembers all splits")
    options = parser.parse_args()
    shrink(options.run, options.out, options.base, options.base_license, options.remember)


if __name__ == "__main__":
    sys.exit(run_with_sentence("shrink", main))
