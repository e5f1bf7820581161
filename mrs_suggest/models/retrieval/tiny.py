"""A small BERT, untrained, with a tokenizer trained on the training text: for machines without a GPU, and for tests."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.checkpoint_loading import drawn
from mrs_suggest.models.starting_points import TINY

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

# Chosen on the validation split of the embedded sample for a run of minutes on two CPU cores.
VOCABULARY = 6000
HIDDEN, LAYERS, HEADS = 128, 1, 2
DROPOUT = 0.0
POSITIONS = 128


@contextmanager
def start_folder(
    name: str, texts: Callable[[], Iterable[str]], seed: int, vocabulary: int, mask: str | None = None
) -> Iterator[str]:
    """Where to load a start from: its name; of `tiny`, a folder that `build_tiny` wrote, and that goes afterwards."""
    if name != TINY:
        yield name
        return
    with tempfile.TemporaryDirectory() as folder:
        yield str(build_tiny(texts(), Path(folder), seed, vocabulary, mask))


def build_tiny(
    texts: Iterable[str], folder: Path, seed: int, vocabulary: int = VOCABULARY, mask: str | None = None
) -> Path:
    """Write a small BERT to `folder` and return it."""
    from transformers import BertConfig, BertModel

    tokenizer = train_tokenizer(texts, vocabulary)
    if mask:
        tokenizer.add_special_tokens({"mask_token": mask})
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        intermediate_size=4 * HIDDEN, max_position_embeddings=POSITIONS, hidden_dropout_prob=DROPOUT,
        attention_probs_dropout_prob=DROPOUT, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    return write_untrained(lambda: BertModel(config), tokenizer, folder, seed)


def write_untrained(
    make: Callable[[], PreTrainedModel],
    tokenizer: PreTrainedTokenizerFast,
    folder: Path,
    seed: int,
    tied: tuple[str, ...] = (),
) -> Path:
    """Write the checkpoint of a model whose weights `make` draws; `tied` as for `write_checkpoint`."""
    with drawn(seed):
        model = make()
    return write_checkpoint(model, tokenizer, folder, tied)


def write_checkpoint(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, folder: Path, tied: tuple[str, ...] = ()
) -> Path:
    """Write config, weights and tokenizer to `folder` and return it.

    Not the model's own save_pretrained: it writes on the first rank only, and every rank builds its own.

    Args:
        tied: beginnings of the names of weights that are stored once, under another name.
    """
    from safetensors.torch import save_file

    model.config.architectures = [type(model).__name__]
    model.config.save_pretrained(folder)
    kept = {name: value.contiguous() for name, value in model.state_dict().items() if not name.startswith(tied)}
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    tokenizer.save_pretrained(folder)
    return folder


def train_tokenizer(texts: Iterable[str], vocabulary: int) -> PreTrainedTokenizerFast:
    """A lower-casing byte-pair tokenizer over whitespace-marked pieces, which needs no spaces between words."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    backend = Tokenizer(models.BPE(unk_token="[UNK]"))
    backend.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    backend.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Metaspace(), pre_tokenizers.Punctuation()])
    backend.decoder = decoders.Metaspace()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=list(special.values()), show_progress=False, min_frequency=2
    )
    backend.train_from_iterator(texts, trainer)
    if backend.get_vocab_size() <= len(special):
        raise InputError("model `tiny`: no training text to make a tokenizer from; check --data and --languages.")
    cls, sep = (backend.token_to_id(special[name]) for name in ("cls_token", "sep_token"))
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", cls), ("[SEP]", sep)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=backend, model_max_length=POSITIONS, **special)
