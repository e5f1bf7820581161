"""xProphetNet's checkpoints, in fairseq's layout and in that of transformers 4, compute what the authors' code does.

`golden/xprophetnet.json` has the logits; its `about` says what computed them.
"""

import argparse
import json
import math
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.generation.architectures.fairseq import read_fairseq
from mrs_suggest.models.generation.architectures.xprophetnet import (
    TABLE,
    TIED,
    convert_state,
    convert_xprophetnet,
    make_tokenizer,
)
from mrs_suggest.models.generation.decoding.settings import Decoding
from mrs_suggest.models.generation.generator import Generator, PairCollator
from mrs_suggest.models.old_checkpoints import convert_transformers
from tests.cases import cases

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parent / "golden" / "xprophetnet.json").read_text())
SOURCE, TARGET = torch.tensor(GOLDEN["source"]), torch.tensor(GOLDEN["target"])
ARGUMENTS = {"arch": "ngram_transformer_prophet_large", "encoder_attention_heads": 2, "decoder_attention_heads": 2}
# The hub's config.json (microsoft/xprophetnet-large-wiki100-cased), with small sizes.
OLD_CONFIG = cases(__file__, "OLD_CONFIG")
TEXTS = ["hola, que tal?", "te veo alla.", "el hotel", "vale, bella", "¿que te vale? hola hola", "tal vez ﬁel"]


def drawn(name: str, shape: list[int]) -> Tensor:
    """Weights that depend on nothing but their name and shape, and are large enough to move the logits."""
    numbers = torch.arange(math.prod(shape), dtype=torch.float64) * 1.7 + crc32(name.encode()) % 997
    values = torch.sin(numbers * numbers % 1013) * 0.5 + name.endswith("norm.weight")
    return values.float().view(shape)


def fairseq_state() -> dict[str, Tensor]:
    shared = {"decoder.embed_tokens.weight": "encoder.embed_tokens.weight"}
    state = {name: drawn(shared.get(name, name), shape) for name, shape in GOLDEN["shapes"].items()}
    return {**state, "encoder.version": torch.tensor([3.0])}


def train_pieces(folder: Path) -> Path:
    """A sentencepiece model with 28 pieces, for 40 tokens."""
    import sentencepiece

    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS * 20), model_prefix=str(folder / "m"), vocab_size=28, minloglevel=2,
        normalization_rule_name="nmt_nfkc",
    )  # fmt: skip
    return folder / "m.model"


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_pieces(tmp_path_factory.mktemp("pieces"))


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    content = {"args": argparse.Namespace(**ARGUMENTS), "model": fairseq_state(), "extra_state": {"epoch": 1}}
    torch.save(content, tmp_path / "checkpoint.pt")
    return tmp_path / "checkpoint.pt"


def old_folder(folder: Path, pieces: Path, weights: str = "safetensors", kept: str = TABLE) -> Path:
    """What transformers 4 saved; `kept` is the name that the tied table has in a file of safetensors."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(OLD_CONFIG))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "XLMProphetNetTokenizer"}))
    (folder / "prophetnet.tokenizer").write_bytes(pieces.read_bytes())
    _, state = convert_state(fairseq_state(), ARGUMENTS)
    if weights == "safetensors":
        state[kept] = state.pop(TABLE)
        save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    else:
        torch.save({**state, **dict.fromkeys(TIED, state[TABLE])}, folder / "pytorch_model.bin")
    return folder


def build(folder: Path) -> Generator:
    generator = Generator.build(str(folder), ["en", "es"], 20, 12, Decoding(beams=3, max_tokens=8))
    generator.model.eval()
    return generator


@torch.no_grad()
def require_golden(generator: Generator) -> None:
    read = {"input_ids": SOURCE, "attention_mask": SOURCE.ne(0).long()}
    found = generator.model(**read, decoder_input_ids=TARGET, use_cache=False)
    authors = torch.tensor(GOLDEN["authors"])
    assert float(authors.std()) > 0.5
    torch.testing.assert_close(found.logits, authors[0], atol=1e-5, rtol=0)
    torch.testing.assert_close(found.logits_ngram[:, 0], authors[1], atol=1e-5, rtol=0)
    past, steps = None, []
    for step in range(TARGET.shape[1]):
        one = TARGET[:, step : step + 1]
        found = generator.model(**read, decoder_input_ids=one, past_key_values=past, use_cache=True)
        past = found.past_key_values
        steps.append(found.logits)
    torch.testing.assert_close(torch.cat(steps, 1), torch.tensor(GOLDEN["transformers"]), atol=1e-5, rtol=0)


@pytest.mark.parametrize("layout", ["fairseq", "bin", TABLE, TIED[1], TIED[2]])
def test_logits_are_those_of_the_authors_code(tmp_path: Path, checkpoint: Path, pieces: Path, layout: str) -> None:
    folder = tmp_path / "model"
    if layout == "fairseq":
        convert_xprophetnet(checkpoint, folder, pieces)
    elif layout == "bin":
        convert_transformers(str(old_folder(tmp_path / "old", pieces, "bin")), folder)
        assert not any(folder.glob("*.bin"))
        assert set(TIED) & set(load_file(folder / "model.safetensors")) == set()
    else:
        old_folder(folder, pieces, kept=layout)
    require_golden(build(folder))


def test_it_writes_learns_and_is_saved_for_transformers_alone(tmp_path: Path, pieces: Path) -> None:
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    generator = build(old_folder(tmp_path / "old", pieces))
    assert generator.coder.messages(["hola"], "es")[0][-1] == generator.end == 2
    assert generator.coder.prompt("es") == [2]
    before = generator.losses(["hola", "que tal?"], ["te veo alla.", "vale"], "en")[0]
    optimizer = torch.optim.Adam(generator.model.parameters(), lr=0.01)
    features = [
        {"input_ids": source, "labels": target, "prompt": [2]}
        for source, target in zip(
            generator.coder.messages(["hola", "que tal?"], "en"), generator.coder.replies(["te veo alla.", "vale"]),
            strict=True,
        )
    ]  # fmt: skip
    for _ in range(40):
        optimizer.zero_grad()
        generator.model(**PairCollator(generator.pad)(features)).loss.backward()
        optimizer.step()
    assert (generator.losses(["hola", "que tal?"], ["te veo alla.", "vale"], "en")[0] < before / 2).all()
    generator.save(tmp_path / "saved")
    answers = generator.suggest(["hola"], "es", 2)
    assert Generator.load(tmp_path / "saved").suggest(["hola"], "es", 2) == answers
    alone, tokenizer = (kind.from_pretrained(tmp_path / "saved") for kind in (AutoModelForSeq2SeqLM, AutoTokenizer))
    assert alone.config.model_type == "prophetnet"
    assert tokenizer("hola, que tal?")["input_ids"] == generator.coder.messages(["hola, que tal?"], "es")[0]


def test_the_tokenizer_gives_the_ids_of_the_published_dictionary(pieces: Path) -> None:
    """As sentencepiece cuts a text; its number of a piece, and 12, is the number of the piece in `dict.txt`."""
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_file=str(pieces))
    tokenizer = make_tokenizer(pieces, 24)
    assert len(tokenizer) == 12 + processor.get_piece_size() == 40
    assert (tokenizer.model_max_length, tokenizer.pad_token_id, tokenizer.cls_token_id) == (24, 0, 1)
    for text in (*TEXTS, "", "  ", " two  spaces ", "½ ﬁ Q!", "una\tlínea\nnueva", "ａｂｃ"):
        expected = [12 + number if number else 3 for number in processor.encode(text)]
        assert tokenizer(text)["input_ids"] == [*expected, 2], text
    kept = "hola, que tal?"
    assert tokenizer.decode(tokenizer(kept)["input_ids"], skip_special_tokens=True) == kept


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: s.pop("decoder.layers.1.fc1.bias"), "decoder.layers.1.feed_forward.intermediate.bias is missing"),
        (lambda s: s.pop("decoder.ngram_input_embed.weight"), "ngram_embeddings.weight is missing"),
        (lambda s: s.update({"encoder.layer_norm.weight": torch.ones(16)}), "encoder.layer_norm.weight is not one of"),
        (lambda s: s.update({"decoder.embed_tokens.weight": torch.ones(40, 16)}), "differs from prophetnet.word_emb"),
        (lambda s: s["encoder.layers.0.fc1.weight"].fill_(math.nan), "has values that are not finite"),
    ],
)
def test_weights_of_another_model_are_refused(change: Any, words: str) -> None:
    state = fairseq_state()
    change(state)
    with pytest.raises(InputError, match=words):
        convert_state(state, ARGUMENTS)


def test_files_that_do_not_belong_together_are_refused(tmp_path: Path, checkpoint: Path, pieces: Path) -> None:
    cut = tmp_path / "cut.model"
    for content in (b"", b"\x0a\x05hello", pieces.read_bytes()[:300], b"plain text"):
        cut.write_bytes(content)
        with pytest.raises(InputError, match=r"cut\.model: (expected the sentencepiece model|gives \d+ tokens)"):
            convert_xprophetnet(checkpoint, tmp_path / "out", cut)
    with pytest.raises(InputError, match="(?i)no such file"):
        convert_xprophetnet(checkpoint, tmp_path / "out", tmp_path / "missing.model")
    with pytest.raises(InputError, match=r"no such file; pass the checkpoint\.pt of xProphetNet"):
        read_fairseq(tmp_path / "missing.pt", "xProphetNet")
    assert not (tmp_path / "out").exists()
    # A folder with pytorch_model.bin alone is refused with the remedy.
    with pytest.raises(InputError, match=r"weights must be safetensors \(see `mrs convert`\)"):
        build(old_folder(tmp_path / "old", pieces, "bin"))
