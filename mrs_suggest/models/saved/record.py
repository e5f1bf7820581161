"""The files of a model, by kind, and `run.json`, the record of a trained model, which is read and written as it is.

One list of files, only names that a trainer writes, has three uses: which files of a run are published, which its
record lists with hashes, and which are removed when a new run overwrites an old one. Patterns are those of
`mrs_suggest.common.hub.publication.Publication.allowed`. Weights are safetensors, never a pickle. Vocabulary files are
those that the tokenizers of transformers name in `VOCAB_FILES_NAMES`; the other names are what `save_pretrained` of
transformers, sentence-transformers and peft writes.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.manifest import KEY as FILES
from mrs_suggest.models.exports import CTRANSLATE2_FILES, ONNX_FILES
from mrs_suggest.models.starting_points import (
    ALLOWED,
    DETECTOR,
    EXAMPLES,
    GENERATOR,
    GENERATOR_FOLDER,
    GUARD_FOLDER,
    INDEXES_FOLDER,
    OWN_RANKER,
    RANKER_FOLDER,
    TAGS,
)

Record = dict[str, Any]  # the JSON of `run.json`

WEIGHTS = ("model.safetensors", "model-*-of-*.safetensors", "model.safetensors.index.json")
TOKENIZER = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "chat_template.jinja",
    "vocab.json", "vocab.txt", "merges.txt", "bpe.codes", "dict.txt", "sentencepiece.bpe.model", "sentencepiece.model",
    "spiece.model", "spm.model", "tokenizer.model", "source.spm", "target.spm",
)  # fmt: skip
PART = ("config.json", "sentence_bert_config.json", *WEIGHTS, *TOKENIZER)  # one module of sentence-transformers
CARD, RECORD, CURVES = "README.md", "run.json", "curves.png"
TRACKERS = "trackers"  # folder of a run: what `--report_to` wrote
CURVE_POINTS = "curves.json"  # what the curves are drawn from
BEST = "best"  # folder of a run: the checkpoints that were the best of one language
EVERY_RUN = (CARD, RECORD, CURVES)
INDEXES = tuple(
    f"{INDEXES_FOLDER}/*/{name}" for name in ("replies.json", "vectors.safetensors", TAGS, OWN_RANKER, EXAMPLES)
)
RANKER = tuple(f"{RANKER_FOLDER}/{name}" for name in ("ranker.json", "*.safetensors"))
GUARD = tuple(f"{GUARD_FOLDER}/{name}" for name in ("guard.json", "space.safetensors"))
PEFT = ("adapter_config.json", "adapter_model.safetensors")
# Adapters only, in PEFT's layout: those of replies are in a subfolder, a generator's are next to its tokenizer.
ADAPTER_FILES = (
    CARD, "adapter.json", GENERATOR, ALLOWED, "generation_config.json", *TOKENIZER, *PEFT,
    *(f"document/{name}" for name in PEFT),
)  # fmt: skip
ADAPTER_FOLDER = "adapter"  # of a run with adapters
ADAPTER_OF_RUN = tuple(f"{ADAPTER_FOLDER}/{name}" for name in ADAPTER_FILES if name != CARD)
EXPORTS = (*ONNX_FILES, *CTRANSLATE2_FILES)  # made from the weights, which come first

# The files that each library saves for a model, and those that `mrs_suggest` adds.
TRANSFORMERS = ("config.json", "generation_config.json", *WEIGHTS, *TOKENIZER)
GENERATOR_FILES = (*TRANSFORMERS, GENERATOR, ALLOWED)
RANKER_GENERATOR = tuple(f"{GENERATOR_FOLDER}/{name}" for name in GENERATOR_FILES)
SENTENCE_TRANSFORMERS = (
    "modules.json", "config_sentence_transformers.json", "router_config.json", *PART,
    *(f"{module}/{name}" for module in ("query_*", "document_*", "[0-9]*_*") for name in PART),
)  # fmt: skip
_OURS = (DETECTOR, *INDEXES, *RANKER, *RANKER_GENERATOR, *GUARD, *ADAPTER_OF_RUN, *EXPORTS)
MODEL = tuple(dict.fromkeys((*GENERATOR_FILES, *SENTENCE_TRANSFORMERS, *_OURS)))
TRAINING_ARGUMENTS = "training_args.bin"  # the trainer's, pickled
OF_RUN = (CARD, CURVES, CURVE_POINTS, "predictions*", "checkpoint-*", BEST, TRACKERS, TRAINING_ARGUMENTS, *MODEL)

PICKLE = "a pickle, which can run code where it is loaded"
STAYS = {
    CURVE_POINTS: "the points of curves.png",
    "predictions*": "holds the texts of the test split",
    "checkpoint-*": "a checkpoint, for resuming training",
    BEST: "checkpoints that were the best of one language",
    "resume.json": "identifies the run of the checkpoints",
    **dict.fromkeys((TRAINING_ARGUMENTS, "*.bin", "*.pt", "*.pth", "*.pkl"), PICKLE),
    **dict.fromkeys((TRACKERS, "runs"), "a training log"),
    "wandb": "a training log",
    "*": "not a file that a model of this kind needs",
}


def as_json(record: Record) -> str:
    """The text of a JSON file of the run."""
    return json.dumps(record, indent=2, ensure_ascii=False) + "\n"


def read_record(folder: Path) -> Record:
    """The `run.json` of a finished run; InputError if it is missing, or lacks the trainer's name or figures."""
    path = folder / RECORD
    try:
        if path.exists() and not path.is_file():  # such as a pipe, for which reading would wait
            raise ValueError("no file")
        record = json.loads(path.read_text(encoding="utf-8"))
        record["trainer"], record["metrics"]
    except OSError:
        what = f"no {RECORD}, so not a finished run" if folder.is_dir() else "no such folder"
        raise InputError(f"{folder}: {what}; pass the folder that a training run wrote.") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError(f"{path}: damaged or not written by a trainer; train the model again.") from None
    return dict(record)


def of_adapter(record: Record, others: Sequence[str]) -> Record:
    """A run's record for the repository of its adapters, where they are at the top level.

    Args:
        others: the run's other files that are published there.
    """
    files = record.get(FILES, {})
    above = f"{ADAPTER_FOLDER}/"
    kept = {name.removeprefix(above): entry for name, entry in files.items() if name.startswith(above)}
    own = {key: value for key, value in record.items() if key != "exports"}  # they stay with the merged model
    return {**own, FILES: kept | {name: files[name] for name in others if name in files}}
