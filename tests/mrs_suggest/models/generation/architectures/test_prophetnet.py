"""The corrected ProphetNet sees nothing it should not, searches alike with and without a cache, and fits BERT."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModel, ProphetNetConfig, ProphetNetForConditionalGeneration

from mrs_suggest.models.generation.architectures.prophetnet import corrected, may_cache, most_tokens
from mrs_suggest.models.generation.architectures.prophetnet_start import LAYER, build_prophetnet_from_encoder
from mrs_suggest.models.generation.decoding.beam_search import decode
from mrs_suggest.models.generation.decoding.settings import Decoding
from mrs_suggest.models.generation.generator import Generator, PairCollator
from tests.mrs_suggest.models.generation.test_encoder_decoder import encoder

__all__ = ["encoder"]  # fixture
TEXTS = ["how are you?", "i am fine, thanks!", "hola", "muy bien, gracias.", "nos vemos allí."]


def prophetnet(pad: int = 0, encoder: int = 2, decoder: int = 2, streams: int = 2) -> Any:
    config = ProphetNetConfig(
        vocab_size=50, hidden_size=16, encoder_ffn_dim=32, decoder_ffn_dim=32, num_encoder_layers=encoder,
        num_decoder_layers=decoder, num_encoder_attention_heads=2, num_decoder_attention_heads=2,
        max_position_embeddings=24, pad_token_id=pad, ngram=streams, dropout=0.0, attention_dropout=0.0,
        activation_dropout=0.0, init_std=0.5,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return corrected(ProphetNetForConditionalGeneration(config)).eval()


@pytest.fixture(scope="module")
def ids() -> tuple[torch.Tensor, torch.Tensor]:
    drawn = torch.Generator().manual_seed(1)
    return torch.randint(5, 50, (3, 7), generator=drawn), torch.randint(5, 50, (3, 12), generator=drawn)


@torch.no_grad()
def logits(model: Any, source: torch.Tensor, target: torch.Tensor) -> list[torch.Tensor]:
    """Of both streams, (batch, length, vocabulary) each."""
    found = model(input_ids=source, decoder_input_ids=target, use_cache=False)
    return [found.logits, found.logits_ngram[:, 0]]


def test_logits_depend_on_nothing_but_earlier_tokens(ids: tuple[torch.Tensor, torch.Tensor]) -> None:
    """Neither on the batch, the length nor a cache; the library's own do, and its second stream on later tokens."""
    model, (source, target) = prophetnet(), ids
    whole = logits(model, source, target)
    for stream in (0, 1):
        assert torch.allclose(logits(model, source[1:2], target[1:2])[stream][0], whole[stream][1], atol=1e-4)
        assert torch.allclose(logits(model, source, target[:, :5])[stream], whole[stream][:, :5], atol=1e-4)
        changed = target.clone()
        changed[:, 8] = (changed[:, 8] + 1) % 45 + 5
        later = logits(model, source, changed)[stream]
        first = 8 + stream  # stream 1 predicts from one token less
        assert torch.allclose(later[:, :first], whole[stream][:, :first], atol=1e-4)
        assert not torch.allclose(later[:, first], whole[stream][:, first], atol=1e-2)
    past, steps = None, []
    with torch.no_grad():
        for step in range(target.shape[1]):
            found = model(
                input_ids=source, decoder_input_ids=target[:, step : step + 1], past_key_values=past, use_cache=True
            )
            past = found.past_key_values
            steps.append(found.logits)
    assert torch.allclose(torch.cat(steps, 1), whole[0], atol=1e-3)


@pytest.mark.parametrize(("options", "cached"), [({}, True), ({"pad": 1}, False), ({"decoder": 3}, False)])
def test_every_prophetnet_is_searched(options: dict[str, int], cached: bool) -> None:
    """Where the library's cache fails, without it; and each hypothesis has the score that the model gives it."""
    model = prophetnet(**options)
    assert may_cache(model.config) is cached
    (found,) = decode(model, [[5, 6, 7, 2]], [[9]], Decoding(beams=3, max_tokens=6), 3)
    assert len(found) == 3
    for tokens, score in found:
        target = torch.tensor([[9, *tokens]])
        log_p = logits(model, torch.tensor([[5, 6, 7, 2]]), target)[0][0].log_softmax(-1)
        each = [log_p[place, token].item() for place, token in enumerate([*tokens, 2])]
        assert score == pytest.approx(sum(each) / len(each), abs=1e-3)


def test_an_encoder_s_weights_give_the_same_vectors(encoder: Path, tmp_path: Path) -> None:
    build_prophetnet_from_encoder(str(encoder), None, ["en", "es"], tmp_path, 1)
    generator = Generator.build(str(tmp_path), ["en", "es"], 20, 14, Decoding(max_tokens=12))
    model, original = generator.model.eval(), AutoModel.from_pretrained(encoder).eval()
    assert most_tokens(model.config) == 40
    assert may_cache(model.config)
    messages = generator.coder.messages(TEXTS, "en")
    batch = PairCollator(generator.pad)([{"input_ids": message, "labels": [1], "prompt": [1]} for message in messages])
    inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
    with torch.no_grad():
        ours, theirs = (part(**inputs).last_hidden_state for part in (model.get_encoder(), original))
    counted = inputs["attention_mask"].bool()
    torch.testing.assert_close(ours[counted], theirs[counted], rtol=1e-3, atol=1e-3)
    state, layers = model.state_dict(), (0, 2)
    for number, source in enumerate(layers):
        for part in LAYER:
            if (number, part) != (1, "feed_forward_layer_norm"):  # the last one begins anew, as Bart's
                one, other = (
                    state[f"prophetnet.{side}.layers.{layer}.{part}.weight"]
                    for side, layer in (("encoder", source), ("decoder", number))
                )
                assert torch.equal(one, other)
    assert generator.suggest(["how are you?"], "es", 2)
    generator.save(tmp_path / "saved")
    loaded = Generator.load(tmp_path / "saved")
    assert loaded.suggest(["how are you?"], "es", 2) == generator.suggest(["how are you?"], "es", 2)
