"""A search that may only find the replies of a set never finds anything else, by beams or by samples."""

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, AutoTokenizer

from mrs_suggest.common.text.text import normalise_reply
from mrs_suggest.models.generation.decoding.settings import Decoding, Sampling
from mrs_suggest.models.generation.generator import Generator
from mrs_suggest.models.generation.language_tokens import ROWS
from mrs_suggest.models.generation.text_coder import PromptCoder
from tests.causal_model import make_causal_model

TEXTS = ["Are you coming tonight?", "Yes, see you there!", "No, sorry.", "What time does it start?", "Thanks a lot!"]
WORDS = [*" ".join(TEXTS).split(), "!", "</s>", "42", "día", "👍"]
REPLIES = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join), min_size=1, max_size=12)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return make_causal_model(tmp_path_factory.mktemp("causal"), TEXTS)


def writer(
    folder: Path, replies: dict[str, list[str]] | None, decoding: Decoding, sampling: Sampling | None = None
) -> Generator:
    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    coder = PromptCoder(tokenizer, ROWS["causal"], model.config, 20, 20, template="{code}: {message} =>")
    return Generator(model, coder, ["en"], decoding, sampling, replies)


@given(REPLIES, st.text(min_size=1, max_size=20), st.sampled_from([(5, 1, 0), (1, 1, 0), (6, 3, 0), (5, 1, 8)]))
@settings(max_examples=40)
def test_no_suggestion_is_outside_of_the_set(
    folder: Path, replies: list[str], message: str, how: tuple[int, int, int]
) -> None:
    beams, groups, samples = how
    decoding = Decoding(beams=beams, groups=groups, diversity_penalty=0.5 if groups > 1 else 0.0, max_tokens=60)
    generator = writer(folder, {"en": replies}, decoding, Sampling(samples) if samples else None)
    for asked, found in zip([message, "ok"], generator.suggest([message, "ok"], "en", 3), strict=True):
        texts = [text for text, _ in found]
        assert {*texts} <= {*replies}
        assert len(texts) == len({*map(normalise_reply, texts)}) >= 1
        if groups == 1:  # else a score has penalties
            own = generator.log_probs(asked, texts, "en")
            assert [score for _, score in found] == pytest.approx(own.tolist(), abs=1e-3)


def test_a_set_smaller_than_the_beams_is_found_whole_but_for_blocked_words(folder: Path) -> None:
    found = writer(folder, {"en": TEXTS}, Decoding(beams=8, max_tokens=60)).suggest(["Hi!"], "en", 8)[0]
    assert sorted(text for text, _ in found) == sorted(TEXTS)
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
    generator = writer(folder, {"en": TEXTS}, Decoding(beams=8, max_tokens=60, blocked=("you",)))
    assert not [text for text, _ in generator.suggest(["Hi!"], "en", 8)[0] if "you" in text.split()]
