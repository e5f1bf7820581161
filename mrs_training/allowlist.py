"""What of a run's folder is published, by kind: names that its trainer writes, and nothing else.

Patterns are those of `mrs_core.publication.Publication.allowed`. Weights are safetensors alone, never a pickle.
Vocabulary files are those that the tokenizers of transformers name in `VOCAB_FILES_NAMES`; the other names are what
`save_pretrained` of transformers, sentence-transformers and peft writes.
"""

from __future__ import annotations

from types import MappingProxyType

WEIGHTS = ("model.safetensors", "model-*-of-*.safetensors", "model.safetensors.index.json")
TOKENIZER = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "chat_template.jinja",
    "vocab.json", "vocab.txt", "merges.txt", "bpe.codes", "dict.txt", "sentencepiece.bpe.model", "sentencepiece.model",
    "spiece.model", "spm.model", "tokenizer.model", "source.spm", "target.spm",
)  # fmt: skip
PART = ("config.json", "sentence_bert_config.json", *WEIGHTS, *TOKENIZER)  # one module of sentence-transformers
EVERY_RUN = ("README.md", "run.json", "curves.png")
INDEXES = ("response_index/*/replies.json", "response_index/*/vectors.safetensors")
PEFT = ("adapter_config.json", "adapter_model.safetensors")
# Adapters alone, in PEFT's own layout: those of replies are in a folder, a generator's have its tokenizer beside them.
ADAPTER = (
    "README.md", "adapter.json", "generator.json", "generation_config.json", *TOKENIZER, *PEFT,
    *(f"document/{name}" for name in PEFT),
)  # fmt: skip
_ADAPTER_OF_RUN = tuple(f"adapter/{name}" for name in ADAPTER if name != "README.md")

RETRIEVER = (
    *EVERY_RUN, "modules.json", "config_sentence_transformers.json", "router_config.json", *PART,
    *(f"{module}/{name}" for module in ("query_*", "document_*", "[0-9]*_*") for name in PART),
    *INDEXES, *_ADAPTER_OF_RUN,
)  # fmt: skip
GENERATOR = (
    *EVERY_RUN, "config.json", "generation_config.json", "generator.json", *WEIGHTS, *TOKENIZER, *_ADAPTER_OF_RUN,
)  # fmt: skip
FAMILIES = MappingProxyType({"retrieval": RETRIEVER, "generation": GENERATOR})  # by `trainer` of run.json

STAYS = MappingProxyType(
    {
        "predictions*.tsv": "holds the texts of the test split",
        "checkpoint-*": "a checkpoint, to go on training with",
        "resume.json": "what the checkpoints are of",
        "training_args.bin": "a pickle, which can run code where it is loaded",
        "*.bin": "a pickle, which can run code where it is loaded",
        "*.pt": "a pickle, which can run code where it is loaded",
        "*.pth": "a pickle, which can run code where it is loaded",
        "*.pkl": "a pickle, which can run code where it is loaded",
        "runs": "a log of the training",
        "wandb": "a log of the training",
        "*": "no file that a model of this kind needs",
    }
)
