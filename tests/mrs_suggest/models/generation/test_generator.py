"""The generator: batches, likelihoods, suggestions, and its folder."""

import dataclasses
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import (
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    BartForConditionalGeneration,
    ByT5Tokenizer,
    GenerationConfig,
    M2M100Config,
    M2M100ForConditionalGeneration,
    T5Config,
    T5ForConditionalGeneration,
)

from mrs_suggest.common.errors import ArgumentError, InputError
from mrs_suggest.models.generation import generator as module
from mrs_suggest.models.generation.decoding.hypotheses import Hypothesis
from mrs_suggest.models.generation.decoding.settings import Decoding
from mrs_suggest.models.generation.generator import Generator, PairCollator
from mrs_suggest.models.generation.padding import IGNORED
from mrs_suggest.models.generation.text_coder import Direction
from mrs_suggest.models.generation.tiny_generator import build_tiny_generator
from mrs_suggest.models.retrieval.tiny import train_tokenizer
from mrs_suggest.models.starting_points import GENERATOR
from mrs_suggest.suggest.generation_suggester import GenerationSuggester, Writer
from tests.cases import cases

PAIRS = {
    "en": [("How are you?", "I am fine, thanks!"), ("Are you coming tonight?", "Yes, see you there.")],
    "es": [("¿Qué tal?", "Muy bien, gracias."), ("¿Vienes esta noche?", "Sí, nos vemos allí.")],
}
TEXTS = [text for pairs in PAIRS.values() for pair in pairs for text in pair] * 3
ODD = ["", " ", "\0", "👍🏽", "x" * 20_000, "how are you? " * 500, "\u202eمرحبا", "?!", "[es] [EOS] </s>"]
SMALL = {
    "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "max_position_embeddings": 64,
}  # fmt: skip


def build(folder: Path, decoding: Decoding | None = None, **lengths: int) -> Generator:
    lengths = {"message_tokens": 20, "reply_tokens": 12, **lengths}
    return Generator.build(str(folder), ["en", "es"], decoding=decoding or Decoding(max_tokens=10), **lengths)


def learn(generator: Generator, steps: int = 60) -> None:
    """Learn the pairs by heart."""
    collate = PairCollator(generator.pad)
    optimizer = torch.optim.Adam(generator.model.parameters(), lr=3e-3)
    batch = collate(
        [example for code, pairs in PAIRS.items() for pair in pairs for example in [encode(generator, code, pair)]]
    )
    generator.model.train()
    for _ in range(steps):
        optimizer.zero_grad()
        generator.model(**batch).loss.backward()
        optimizer.step()
    generator.model.eval()


def encode(generator: Generator, code: str, pair: tuple[str, str]) -> dict[str, list[int]]:
    coder = generator.coder
    (source,), (target,) = coder.messages([pair[0]], code), coder.replies([pair[1]])
    return {"input_ids": source, "labels": target, "prompt": coder.prompt(code)}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Generator:
    """A small twin of Unicoder-xDAE that knows four pairs."""
    torch.set_num_threads(1)
    folder = build_tiny_generator(TEXTS, ["en", "es"], tmp_path_factory.mktemp("tiny"), 3, 200)
    generator = build(folder)
    learn(generator)
    return generator


@pytest.fixture(scope="module")
def folder(trained: Generator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("generator")
    trained.save(target)
    return target


@pytest.fixture(scope="module")
def families(trained: Generator, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Generator]:
    """One generator for each shape of the prompt, with other weights than zero everywhere."""
    found = {"tag": trained}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        m2m100 = tmp_path_factory.mktemp("m2m100")
        tokenizer = train_tokenizer(TEXTS, 150)
        tags = ["__en__", "__es__"]
        tokenizer.add_special_tokens({"eos_token": "</s>", "additional_special_tokens": tags})
        tokenizer.save_pretrained(m2m100)
        end, pad = tokenizer.eos_token_id, tokenizer.pad_token_id
        config = M2M100Config(
            vocab_size=len(tokenizer), init_std=0.3, pad_token_id=pad, eos_token_id=end, decoder_start_token_id=end,
            **SMALL,
        )  # fmt: skip
        M2M100ForConditionalGeneration(config).save_pretrained(m2m100)
        found["start and tag"] = build(m2m100)
        byt5 = tmp_path_factory.mktemp("byt5")
        ByT5Tokenizer().save_pretrained(byt5)
        shape = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}
        T5ForConditionalGeneration(T5Config(vocab_size=384, decoder_start_token_id=0, **shape)).save_pretrained(byt5)
        found["start"] = build(byt5)
    for generator in found.values():
        generator.model.eval()
    return found


FAMILIES = ("tag", "start and tag", "start")


# --- batches


@given(
    st.lists(
        st.tuples(st.lists(st.integers(5, 9), min_size=1), st.lists(st.integers(5, 9), min_size=1)),
        min_size=1, max_size=5,
    ),
    st.integers(1, 3),
)  # fmt: skip
def test_batches_hold_prompt_and_reply_side_by_side(pairs: list[tuple[list[int], list[int]]], prompt: int) -> None:
    start = [2, 3, 4][:prompt]
    batch = PairCollator(1)([{"input_ids": one, "labels": two, "prompt": start} for one, two in pairs])
    longest = prompt + max(len(two) for _, two in pairs) - 1
    assert batch["input_ids"].shape == batch["attention_mask"].shape == (len(pairs), max(len(one) for one, _ in pairs))
    assert batch["decoder_input_ids"].shape == batch["labels"].shape == (len(pairs), longest)
    for row, (source, target) in enumerate(pairs):
        assert batch["input_ids"][row][batch["attention_mask"][row].bool()].tolist() == source
        counted = batch["labels"][row] != IGNORED
        assert batch["labels"][row][counted].tolist() == target
        read = batch["decoder_input_ids"][row]
        assert read[:prompt].tolist() == start
        # Where a token counts, the decoder has read the one before it: the first one comes after the whole prompt.
        assert read[counted].tolist() == [start[-1], *target[:-1]]
    assert (batch["input_ids"][batch["attention_mask"] == 0] == 1).all()


# --- likelihoods


@pytest.mark.parametrize("family", FAMILIES)
def test_losses_are_those_of_each_pair_alone(families: dict[str, Generator], family: str) -> None:
    generator = families[family]
    messages, replies = zip(*PAIRS["es"], *PAIRS["en"], ("", "gracias"), strict=True)
    losses, tokens = generator.losses(messages, replies, "es")
    for number, pair in enumerate(zip(messages, replies, strict=True)):
        example = encode(generator, "es", pair)
        prompt, target = example["prompt"], example["labels"]
        with torch.no_grad():
            logits = generator.model(
                input_ids=torch.tensor([example["input_ids"]]), decoder_input_ids=torch.tensor([[*prompt, *target]])
            ).logits[0]
        logs = logits.log_softmax(-1)
        expected = -sum(float(logs[len(prompt) - 1 + step, token]) for step, token in enumerate(target))
        assert losses[number] == pytest.approx(expected, rel=1e-4)
        assert tokens[number] == len(target), "the end token is one of them"


# --- suggestions


def test_beams_that_say_the_same_make_room_for_others(trained: Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    said = ["I am fine", "i am fine!", "", "I AM FINE.", "thanks"]
    hypotheses = [Hypothesis(trained.coder.replies([text])[0], -float(n)) for n, text in enumerate(said)]
    monkeypatch.setattr(module, "decode", lambda model, inputs, *_: [hypotheses] * len(inputs))
    assert trained.suggest(["?"], "en", 3) == [[("i am fine", 0.0), ("thanks", -4.0)]]
    assert trained.suggest(["?"], "en", 1) == [[("i am fine", 0.0)]]


@pytest.mark.parametrize("family", FAMILIES)
def test_odd_messages_are_answered(families: dict[str, Generator], family: str) -> None:
    answers = families[family].suggest(ODD, "es", 3)
    assert len(answers) == len(ODD)
    if family == "tag":
        assert all(answers)
    sources = families[family].coder.messages(ODD, "es")
    assert all(0 < len(source) <= 20 for source in sources)


@pytest.mark.parametrize(
    ("arguments", "sentence"), cases(__file__, "test_what_cannot_be_answered_is_refused_in_a_sentence")
)
def test_what_cannot_be_answered_is_refused_in_a_sentence(
    trained: Generator, arguments: tuple[Any, ...], sentence: str
) -> None:
    with pytest.raises(ArgumentError) as caught:
        GenerationSuggester(trained).suggest(*arguments)
    assert re.fullmatch(sentence.replace("[", r"\["), str(caught.value))
    messages, language, k = arguments
    if language == "en":
        with pytest.raises(ArgumentError):
            Writer(trained).suggest(messages, language, k)


def test_a_blank_message_gets_no_reply(trained: Generator) -> None:
    suggester = GenerationSuggester(trained)
    (expected,) = suggester.suggest(["hi"], "en")
    assert suggester.suggest(["", "hi", " \n"], "en") == [[], expected, []]
    assert suggester.suggest(["", " "], "en") == [[], []]


# --- folders


@pytest.mark.parametrize("family", FAMILIES)
def test_saved_and_loaded_it_answers_the_same(families: dict[str, Generator], family: str, tmp_path: Path) -> None:
    generator = families[family]
    generator.save(tmp_path)
    loaded = Generator.load(tmp_path)
    assert loaded.decoding == generator.decoding
    assert loaded.languages == generator.languages
    assert loaded.coder.row is generator.coder.row
    assert not loaded.model.training
    assert loaded.suggest(ODD[:5], "es", 3) == generator.suggest(ODD[:5], "es", 3)
    messages, replies = zip(*PAIRS["es"], strict=True)
    np.testing.assert_array_equal(
        loaded.losses(messages, replies, "es")[0], generator.losses(messages, replies, "es")[0]
    )
    # The files say how a message ends and a reply begins.
    config, prompt = GenerationConfig.from_pretrained(tmp_path), generator.coder.prompt("en")
    assert [config.decoder_start_token_id, *([config.forced_bos_token_id] * (len(prompt) - 1))] == prompt
    assert json.loads((tmp_path / "config.json").read_text())["decoder_start_token_id"] == prompt[0]
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    if family != "start and tag":  # the library's own tokenizers put the language there
        assert tokenizer("how are you?")["input_ids"] == generator.coder.messages(["how are you?"], "en")[0]
        assert tokenizer("x").keys() == {"input_ids", "attention_mask"}, "generate takes no others"


def test_plain_transformers_answers_alike(trained: Generator, folder: Path) -> None:
    """Without our package: the tokenizer ends the message, the configuration starts the reply, in English by itself."""
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForSeq2SeqLM.from_pretrained(folder)
    for message, language, tag in (("how are you?", "en", ""), ("¿Qué tal?", "es", "[es]"), ("are you?", "en", "[en]")):
        start = {"decoder_start_token_id": tokenizer.convert_tokens_to_ids(tag)} if tag else {}
        found = model.generate(**tokenizer(message, return_tensors="pt"), **start)
        said = [text.strip() for text in tokenizer.batch_decode(found, skip_special_tokens=True)]
        assert said[0] == trained.suggest([message], language, 3)[0][0][0], message
        assert len(said) == 3


# --- directions


@pytest.fixture(scope="module")
def backward(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a generator that has learnt the four pairs from right to left."""
    tiny = build_tiny_generator(TEXTS, ["en", "es"], tmp_path_factory.mktemp("backward"), 3, 200)
    order = Direction(right_to_left=True)
    generator = Generator.build(str(tiny), ["en", "es"], 20, 12, Decoding(max_tokens=10), direction=order)
    learn(generator)
    generator.save(tiny)
    return tiny


def test_what_is_written_from_right_to_left_reads_in_order(trained: Generator, backward: Path) -> None:
    loaded = Generator.load(backward)
    first, usual = loaded.coder.replies(["I am fine, thanks!"])[0], trained.coder.replies(["I am fine, thanks!"])[0]
    ends = len(trained.coder.replies([""])[0])
    assert first == [*reversed(usual[:-ends]), *usual[-ends:]]
    for code, pairs in PAIRS.items():
        for message, reply in pairs:
            assert loaded.suggest([message], code, 1)[0][0][0].lower() == reply.lower()
    # A blocked phrase is not written, either.
    blocked = Generator(
        loaded.model, loaded.coder, loaded.languages, dataclasses.replace(loaded.decoding, blocked=("see you",))
    )
    usual = [ids[::-1] for ids in blocked._blocked]
    assert "see you" in {loaded.coder.tokenizer.decode(ids).strip() for ids in usual}
    assert not any("see you" in text.lower() for text, _ in blocked.suggest(["Are you coming tonight?"], "en", 3)[0])


def test_losses_from_right_to_left_are_those_of_reversed_tokens(trained: Generator) -> None:
    coder = dataclasses.replace(trained.coder, direction=Direction(right_to_left=True))
    backward = Generator(trained.model, coder, trained.languages, trained.decoding)
    (message, reply), prompt = PAIRS["en"][0], trained.coder.prompt("en")
    *tokens, separator, end = trained.coder.replies([reply])[0]
    example = {"input_ids": trained.coder.messages([message], "en")[0], "prompt": prompt}
    batch = PairCollator(trained.pad)([{**example, "labels": [*reversed(tokens), separator, end]}])
    with torch.inference_mode():
        mean = float(trained.model(**batch).loss)
    losses, counts = backward.losses([message], [reply], "en")
    assert losses[0] / counts[0] == pytest.approx(mean, rel=1e-5)
    assert backward.log_probs(message, [reply], "en")[0] == pytest.approx(-mean, rel=1e-5)
    assert losses[0] > 2 * trained.losses([message], [reply], "en")[0][0], "it has learnt the other order"


def change(**facts: Any) -> Callable[[Path], object]:
    def damage(path: Path) -> None:
        path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **facts}), encoding="utf-8")

    return damage


DAMAGES: dict[str, Callable[[Path], object]] = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_text(""),
    "no object": lambda path: path.write_text("[]"),
    "no UTF-8": lambda path: path.write_bytes(b"\xff\xfe{}"),
    "unknown row": change(language_tokens="prophetnet"),
    "no number": change(message_tokens="many"),
    "impossible setting": change(decoding={"beams": 0}),
    "no languages": change(languages=None),
    "unknown direction": change(direction={"upwards": True}),
}


@pytest.mark.parametrize("case", DAMAGES)
def test_damaged_settings_are_refused_in_one_sentence(case: str, folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    path = tmp_path / "copy" / GENERATOR
    DAMAGES[case](path)
    with pytest.raises(InputError) as refused:
        Generator.load(tmp_path / "copy")
    sentence = str(refused.value)
    assert sentence.startswith(f"{path}: no usable settings of a generator (")
    assert sentence.endswith("copy it again from an intact copy, or train it again.")
    assert "\n" not in sentence


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
@pytest.mark.parametrize("how", ["missing", "cut off"])
def test_other_damaged_files_are_refused_in_one_sentence(name: str, how: str, folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    path = tmp_path / "copy" / name
    if how == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InputError) as refused:
        Generator.load(tmp_path / "copy")
    assert str(tmp_path / "copy") in str(refused.value)
    assert "\n" not in str(refused.value)


# --- checkpoints to train


def test_a_checkpoint_in_half_precision_trains_in_float32(folder: Path, tmp_path: Path) -> None:
    model = BartForConditionalGeneration.from_pretrained(folder, dtype=torch.float16)
    shutil.copytree(folder, tmp_path / "half")
    model.save_pretrained(tmp_path / "half")
    assert {p.dtype for p in build(tmp_path / "half").model.parameters()} == {torch.float32}


def test_what_cannot_be_trained_is_refused_in_one_sentence(tmp_path: Path, checkpoint: Path, folder: Path) -> None:
    for place, told in ((checkpoint, "cannot load the seq2seq model ("), (tmp_path / "nothing", "no such folder; ")):
        with pytest.raises(InputError) as refused:
            build(place)
        assert str(refused.value).startswith(f"--model_name_or_path {place}: {told}")
        assert "\n" not in str(refused.value)
    with pytest.raises(InputError, match=r"no token \[ja\] for the language ja"):
        Generator.build(str(folder), ["en", "ja"], 20, 12, Decoding())
