"""An untrained generator whose tokens are words, so that each text has one way to be written."""

from pathlib import Path

import torch

from mrs_suggest.models.generation.decoding.settings import Decoding
from mrs_suggest.models.generation.generator import Generator

WORDS = ["sim", "não", "claro", "talvez", "bom", "dia", "ele", "ela", "vai", "come", "água", "pão"]
PROMPTS = ["yes, of course", "no", "maybe", "good day", "he drinks water", "she eats a bread", "thank you"]


def make_run(folder: Path, seed: int, languages: tuple[str, ...] = ("pt",), dropout: float = 0.1) -> Path:
    """Write it to a folder, and return that."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BartConfig, BartForConditionalGeneration, PreTrainedTokenizerFast

    special = ["<s>", "<pad>", "</s>", "<unk>"]
    words = dict.fromkeys([*special, *WORDS, *(word for text in PROMPTS for word in text.replace(",", " ,").split())])
    backend = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<s>", pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )
    shape = dict.fromkeys(("encoder_layers", "decoder_layers"), 1) | dict.fromkeys(
        ("encoder_attention_heads", "decoder_attention_heads"), 2
    )
    config = BartConfig(
        vocab_size=len(tokenizer), d_model=16, encoder_ffn_dim=16, decoder_ffn_dim=16, max_position_embeddings=32,
        init_std=0.5, dropout=dropout, **shape,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = BartForConditionalGeneration(config)
    model.final_logits_bias[0, [0, 1, 3]] = -30.0  # what a text would not show is never written
    start = folder.parent / f"start-{folder.name}"
    model.save_pretrained(start)
    tokenizer.save_pretrained(start)
    generator = Generator.build(
        str(start), languages, message_tokens=12, reply_tokens=10, decoding=Decoding(max_tokens=5)
    )
    folder.mkdir(parents=True)
    generator.save(folder)
    return folder
