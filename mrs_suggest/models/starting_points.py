"""Starting points of training: the kind of a checkpoint, its prompts, and clear errors for unsuitable ones.

Otherwise the libraries report that the tokenizer of such a folder has no backend, or silently load a part of the model.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub import hub
from mrs_suggest.common.hub.baselines import FAMILIES, starting_point

RETRIEVAL, GENERATION = FAMILIES
MULTIPLE_CHOICE, UNDERSTANDING, PRETRAINING = "multiple_choice", "understanding", "pretraining"
CAUSAL = "causal"
GENERATOR = "generator.json"  # marks the folder of a generator
ALLOWED = "replies.json"  # there too, if a generator suggests certain replies only
RETRIEVER, STATIC, ENCODER = "retriever", "static", "encoder"  # kinds of checkpoints for a retriever
ROUTER = "router_config.json"  # marks the folder of a retriever: a route for messages, and one for replies
RANKER_FOLDER = "ranker"  # in the folder of a retriever: memory, weights and settings of its ranker
GENERATOR_FOLDER = "generator"  # in the folder of a retriever: the generator of its ranker
INDEXES_FOLDER = "response_index"  # in the folder of a retriever: a folder for each language
TAGS = "tags.json"  # in the folder of a response index
OWN_RANKER, EXAMPLES = "own.safetensors", "examples.json"  # there too, if the replies are a user's own
DETECTOR = "languages.safetensors"  # in the folder of a model: its language detector
GUARD_FOLDER = "guard"  # in the folder of a retriever: the detector of sensitive messages
TINY = "tiny"
CONVOLUTIONAL = "convolutional"
FROM_SCRATCH = (TINY, CONVOLUTIONAL)  # names of models that are built here; all trainers have `tiny`
ADAPTER_RECORD = "adapter.json"  # marks the folder of adapters, whose base model is elsewhere
# Of adapters: our record, peft's settings, and a checkpoint's weights.
ADAPTERS = (ADAPTER_RECORD, "adapter_config.json", "adapter_state.safetensors")
# The names of prompts, by what they stand before, as `encode_query` and `encode_document` look for them.
PROMPTS = (("query",), ("document", "passage", "corpus"))
CONFIG = "config_sentence_transformers.json"
FROM = {
    RETRIEVAL: "a retriever starts from an encoder, such as google-bert/bert-base-multilingual-cased",
    GENERATION: "a generator starts from a sequence-to-sequence model, such as mBART-50 or mT5",
    CAUSAL: "a language model starts from a decoder-only model, such as Qwen/Qwen2.5-0.5B-Instruct",
    MULTIPLE_CHOICE: "a multiple-choice model starts from an encoder, such as FacebookAI/xlm-roberta-base",
    UNDERSTANDING: "an understanding model starts from an encoder, such as FacebookAI/xlm-roberta-base",
    PRETRAINING: "masked language modelling starts from an encoder, such as FacebookAI/xlm-roberta-base",
}


def require_start(name: str, family: str, revision: str | None = None) -> None:
    """Refuse what is not a model, a model of another family, and adapters without their base.

    Args:
        name: a folder or a hub id; a hub id that does not exist passes, and fails when it is loaded.
        family: of the model to train, a key of `FROM`.
    """
    if problem := _problem(name, family, revision):
        raise InputError(f"--model_name_or_path {name}: {problem}.")


def start_kind(name: str, revision: str | None = None) -> str:
    """The kind of a retriever's checkpoint, by its files: RETRIEVER (a route for messages and one for replies), STATIC
    (a sentence-transformers model whose first module is a table of token vectors), or ENCODER, anything else."""
    if checkpoint_file(name, ROUTER, revision) is not None:
        return RETRIEVER
    path = checkpoint_file(name, "modules.json", revision)
    try:
        first = str(json.loads(path.read_text(encoding="utf-8"))[0]["type"]) if path else ""
    except (OSError, ValueError, LookupError, TypeError):
        first = ""  # a damaged file fails when the model is loaded
    return STATIC if first.endswith(".StaticEmbedding") else ENCODER


def is_transformers(name: str, revision: str | None = None) -> bool:
    """Whether a checkpoint has no files of sentence-transformers."""
    return checkpoint_file(name, "modules.json", revision) is None


def checkpoint_prompts(name: str, revision: str | None = None) -> tuple[str, str]:
    """The prompts of a sentence-transformers checkpoint for messages and replies; empty if it does not name them."""
    path = checkpoint_file(name, CONFIG, revision)
    prompts = _json(path).get("prompts") if path else None
    return prompts_in(prompts if isinstance(prompts, dict) else {})


def prompts_in(prompts: Mapping[str, Any]) -> tuple[str, str]:
    """The prompts for messages and replies among those of a sentence-transformers model.

    >>> prompts_in({"query": "query: ", "document": "", "passage": "passage: "})
    ('query: ', 'passage: ')
    """
    found = (next((text for name in names if (text := prompts.get(name))), "") for names in PROMPTS)
    query, reply = (text if isinstance(text, str) else "" for text in found)
    return query, reply


def _problem(name: str, family: str, revision: str | None) -> str | None:
    place = Path(name)
    if not place.is_dir() and starting_point(name) == name and (not hub.is_repo_id(name) or place.parent.is_dir()):
        return "no such folder; pass a folder, or a hub id ORG/NAME"
    adapters = next((path for marker in ADAPTERS if (path := checkpoint_file(name, marker, revision))), None)
    if adapters is not None:
        return (
            "holds adapters (LoRA), which are not a model by themselves; pass the base that they were trained "
            f"on{_base(adapters)}, or the folder of their run, where they are merged into it"
        )
    if place.is_dir() and not any((place / file).is_file() for file in ("config.json", "modules.json", GENERATOR)):
        return f"no model in this folder (no config.json, modules.json or {GENERATOR}); pass another one"
    if family not in (GENERATION, CAUSAL) and checkpoint_file(name, GENERATOR, revision) is not None:
        return f"is a trained generator; {FROM[family]}"
    if family in (GENERATION, CAUSAL) and checkpoint_file(name, ROUTER, revision) is not None:
        return f"is a trained retriever; {FROM[family]}"
    if family in (MULTIPLE_CHOICE, UNDERSTANDING, PRETRAINING):
        kind = start_kind(name, revision)
        if kind == STATIC:
            return f"has a table of token vectors and no encoder; {FROM[family]}"
        if kind == RETRIEVER and family != MULTIPLE_CHOICE:
            return f"is a trained retriever; pass the folder of one of its encoders, such as {name}/query_0_Transformer"
    return None


def checkpoint_file(name: str, file: str, revision: str | None = None) -> Path | None:
    """A file of a checkpoint by its path there; None if it does not exist.

    Args:
        name: a folder, a baseline, or a hub id, whose file is downloaded unless it is cached.
    """
    if not Path(name).is_dir():
        name = starting_point(name)
    if Path(name).is_dir():
        return path if (path := Path(name) / file).is_file() else None
    return hub.cached_file("model", name, file, revision)


def _base(adapters: Path) -> str:
    if adapters.suffix != ".json":
        return ""
    facts = _json(adapters)
    base = facts.get("base") or facts.get("base_model_name_or_path")
    return f" ({base})" if isinstance(base, str) else ""


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
