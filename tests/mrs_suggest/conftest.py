"""The smallest encoders that are still real: BERT with three layers of 16, a tokenizer of a few hundred pieces."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

TEXTS = [
    "How are you?",
    "I am fine, thanks!",
    "明日は元気ですか？",
    "はい、元気です。",
    "Как дела?",
    "Спасибо, хорошо.",
]
UNIGRAM_TEXTS = [
    "Are you coming tonight?",
    "¿Vienes esta noche?",
    "今晩来ますか？",
    "coming tonight",
    "Вечером придёшь?",
]
LETTERS = list("abcdefghijklmnopqrstuvwxyz")


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """On a busy machine, tiny models on two threads spend their time waiting for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a transformers checkpoint whose tokenizer makes one piece of every single letter between spaces."""
    from transformers import BertConfig, BertModel

    from mrs_suggest.models.retrieval.tiny import train_tokenizer

    folder = tmp_path_factory.mktemp("checkpoint")
    tokenizer = train_tokenizer([" ".join(LETTERS), *TEXTS] * 4, 300)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=3, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=128, pad_token_id=tokenizer.pad_token_id, initializer_range=0.3,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def unigram(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT with SentencePiece-like pieces, and a mask token beyond its vocabulary, as e5 has it."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    from mrs_suggest.models.retrieval.tiny import write_checkpoint

    special = ["<s>", "<pad>", "</s>", "<unk>"]
    backend = Tokenizer(models.Unigram())
    backend.pre_tokenizer, backend.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    more = [
        f"{word} {other}"
        for word in ["abc", "query:", "message", "words", "nobody", "here", "uses"]
        for other in UNIGRAM_TEXTS
    ]
    trainer = trainers.UnigramTrainer(vocab_size=300, special_tokens=special, unk_token="<unk>", show_progress=False)
    backend.train_from_iterator([*UNIGRAM_TEXTS, *more] * 3, trainer)
    backend.add_special_tokens(["<mask>"])
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="<unk>", pad_token="<pad>", cls_token="<s>", sep_token="</s>",
        mask_token="<mask>", model_max_length=64,
    )  # fmt: skip
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=128, pad_token_id=1, initializer_range=0.3,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return write_checkpoint(BertModel(config), tokenizer, tmp_path_factory.mktemp("unigram"))
