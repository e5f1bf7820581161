"""A tiny causal language model, untrained, with a tokenizer of its own: it writes the words of known texts."""

from collections.abc import Sequence
from pathlib import Path

import torch

VOCABULARY = 600
WIDTH, LAYERS, HEADS, POSITIONS = 32, 1, 2, 1024
LINE_END = 8.0  # added to the logit of a line end, so that an answer has several lines
SPREAD = 0.5  # of the random weights: large, so that different prompts get different answers


KINDS = ("Llama", "Qwen2", "Gemma")


def make_causal_model(folder: Path, texts: Sequence[str], seed: int = 0, kind: str = KINDS[0]) -> Path:
    """Write a checkpoint of transformers and return its folder.

    It never writes a piece of a word, and no pair of pieces twice: else an untrained model repeats a single one.

    Args:
        texts: what the tokenizer is trained on, and whose words are written.
        kind: of `KINDS`.
    """
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer, backend.decoder = byte_level, decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=["<s>", "</s>"], initial_alphabet=byte_level.alphabet(),
        show_progress=False,
    )  # fmt: skip
    backend.train_from_iterator(texts, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<s>", eos_token="</s>", pad_token="</s>", model_max_length=POSITIONS
    )
    own = {"head_dim": WIDTH // HEADS} if kind == "Gemma" else {}
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=len(tokenizer), hidden_size=WIDTH, intermediate_size=2 * WIDTH, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, num_key_value_heads=HEADS, max_position_embeddings=POSITIONS,
        initializer_range=SPREAD, bos_token_id=0, eos_token_id=1, pad_token_id=1, **own,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = getattr(transformers, f"{kind}ForCausalLM")(config)
    words = {*" ".join(texts).split(), "\n"}
    written = {number for number in range(len(tokenizer)) if tokenizer.decode([number]).strip(" ") in words}
    model.generation_config.update(
        bos_token_id=0, eos_token_id=1, pad_token_id=1, do_sample=True, no_repeat_ngram_size=2,
        suppress_tokens=sorted(set(range(2, len(tokenizer))) - written),
        sequence_bias=[[tokenizer("\n")["input_ids"], LINE_END]],
    )  # fmt: skip
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
