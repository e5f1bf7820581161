"""Decoding: exact against enumeration, the same in any company, and every promise of the settings kept."""

import dataclasses
import itertools
import math
import random
import warnings
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    GenerationConfig,
    M2M100Config,
    M2M100ForConditionalGeneration,
    MT5Config,
    MT5ForConditionalGeneration,
    PreTrainedTokenizerFast,
)

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.generation.decoding.beam_search import decode
from mrs_suggest.models.generation.decoding.hypotheses import Hypothesis, blocked_token_ids, suggestions
from mrs_suggest.models.generation.decoding.settings import Decoding
from mrs_suggest.models.retrieval.tiny import train_tokenizer
from tests.cases import cases

PAD, END, VOCABULARY = 1, 2, 50
PLAIN = Decoding(beams=4, max_tokens=6)
DIVERSE = Decoding(beams=4, groups=2, diversity_penalty=1.0, max_tokens=6)
GREEDY_GROUPS = Decoding(beams=3, groups=3, diversity_penalty=1.0, max_tokens=6)
SHAPE = {
    "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "max_position_embeddings": 32,
}  # fmt: skip


def build(family: str, vocabulary: int = VOCABULARY, seed: int = 0) -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: Any
        if family == "mt5":
            shape = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}
            model = MT5ForConditionalGeneration(
                MT5Config(vocab_size=vocabulary, pad_token_id=PAD, eos_token_id=END, decoder_start_token_id=0, **shape)
            )
            for parameter in model.parameters():
                torch.nn.init.normal_(parameter, std=0.5)
        elif family == "m2m100":
            model = M2M100ForConditionalGeneration(M2M100Config(vocab_size=vocabulary, init_std=0.5, **SHAPE))
        else:
            model = BartForConditionalGeneration(BartConfig(vocab_size=vocabulary, init_std=0.5, **SHAPE))
    # An end that comes neither at once nor never makes lengths differ.
    bias = torch.zeros(vocabulary)
    bias[END] = 2.0 if family == "mt5" else 4.0
    head = model.get_output_embeddings()
    head.bias = torch.nn.Parameter(bias)
    return model.eval()


BART, SMALL = build("bart"), build("bart", vocabulary=12)


def texts(number: int, seed: int = 1, vocabulary: int = VOCABULARY) -> list[list[int]]:
    """Inputs of mixed lengths."""
    draw = random.Random(seed)
    return [[0, *draw.choices(range(3, vocabulary), k=draw.randint(1, 9)), END] for _ in range(number)]


def tagged(number: int) -> list[list[int]]:
    """Prompts of a start token, which is the end token as in Bart, and a tag."""
    return [[END, 3 + i % 3] for i in range(number)]


def log_probability(model: Any, source: list[int], prompt: list[int], reply: list[int]) -> float:
    with torch.inference_mode():
        decoder = torch.tensor([[*prompt, *reply]])
        logs = model(input_ids=torch.tensor([source]), decoder_input_ids=decoder).logits[0].log_softmax(-1)
    targets = [*reply, END]
    return sum(float(logs[len(prompt) - 1 + step, token]) for step, token in enumerate(targets))


def same(one: list[list[Hypothesis]], two: list[list[Hypothesis]]) -> bool:
    """Equal tokens in equal order; scores up to the rounding of other matrix shapes."""
    for left, right in zip(one, two, strict=True):
        if [h.tokens for h in left] != [h.tokens for h in right]:
            return False
        if any(not math.isclose(a.score, b.score, rel_tol=1e-4) for a, b in zip(left, right, strict=True)):
            return False
    return True


@pytest.mark.parametrize("family", ["bart", "m2m100", "mt5"])
@pytest.mark.parametrize("length_penalty", [0.0, 1.0, 2.0])
def test_wide_beams_equal_exhaustive_search(family: str, length_penalty: float) -> None:
    model = build(family, vocabulary=5)
    sources, prompts = [[0, 3, 4, END], [0, 4, END]], [[0, 3], [4, 4]]  # other starts than the config's
    replies = [list(r) for length in range(4) for r in itertools.product([0, 3, 4], repeat=length)]
    wide = Decoding(beams=len(replies), max_tokens=3, length_penalty=length_penalty)
    found = decode(model, sources, prompts, wide, n=len(replies))
    for source, prompt, hypotheses in zip(sources, prompts, found, strict=True):
        scores = {
            tuple(reply): log_probability(model, source, prompt, reply) / (len(reply) + 1) ** length_penalty
            for reply in replies
        }
        assert {tuple(h.tokens): pytest.approx(h.score, abs=1e-4) for h in hypotheses} == scores
        assert len(hypotheses) == len(replies)
        assert [h.score for h in hypotheses] == sorted((h.score for h in hypotheses), reverse=True)


@pytest.mark.parametrize("family", ["bart", "m2m100", "mt5"])
@pytest.mark.parametrize("how", [PLAIN, DIVERSE, GREEDY_GROUPS, Decoding(beams=1, max_tokens=6)])
def test_neither_batch_nor_order_matters(family: str, how: Decoding) -> None:
    model = build(family)
    sources, prompts, n = texts(11), tagged(11), min(3, how.beams)
    alone = decode(model, sources, prompts, dataclasses.replace(how, batch_size=1), n)
    assert [len(hypotheses) for hypotheses in alone] == [n] * len(sources)
    assert len({len(h.tokens) for hypotheses in alone for h in hypotheses}) > 1  # else nothing waits for anything
    for batch_size in (4, 32):
        assert same(decode(model, sources, prompts, dataclasses.replace(how, batch_size=batch_size), n), alone)
    order = random.Random(2).sample(range(11), 11)
    shuffled = decode(model, [sources[i] for i in order], [prompts[i] for i in order], how, n)
    assert same(shuffled, [alone[i] for i in order])


@pytest.mark.parametrize("length_penalty", [0.0, 1.0, 2.0])
def test_one_group_equals_the_plain_beam_of_generate(length_penalty: float) -> None:
    def limits(input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        allowed = torch.full_like(scores, -torch.inf)
        tokens = [END] if input_ids.shape[1] == 8 else [i for i in range(VOCABULARY) if i != PAD]
        allowed[:, tokens] = scores[:, tokens]
        return allowed

    model, sources, prompts = build("bart"), texts(8), tagged(8)
    found = decode(model, sources, prompts, dataclasses.replace(PLAIN, length_penalty=length_penalty), 4)
    model.generation_config = GenerationConfig()  # Bart's own forces the end at no cost
    for source, prompt, hypotheses in zip(sources, prompts, found, strict=True):
        expected = model.generate(
            input_ids=torch.tensor([source]),
            decoder_input_ids=torch.tensor([prompt]),
            generation_config=GenerationConfig(
                num_beams=4, num_return_sequences=4, max_new_tokens=7, decoder_start_token_id=END, eos_token_id=END,
                pad_token_id=PAD, return_dict_in_generate=True, output_scores=True,
                length_penalty=length_penalty,
            ),
            logits_processor=[limits],
        )  # fmt: skip
        rows = [row[2:] for row in expected.sequences.tolist()]
        assert [h.tokens for h in hypotheses] == [row[: row.index(END)] for row in rows]
        assert [h.score for h in hypotheses] == pytest.approx(expected.sequences_scores.tolist(), abs=1e-5)


@given(penalty=st.floats(0.01, 20.0), source=st.integers(0, 50))
@settings(max_examples=15, deadline=None)
def test_groups_of_one_beam_are_greedy_with_hamming_penalties(penalty: float, source: int) -> None:
    text, prompt = texts(1, source, vocabulary=12)[0], [END, 4]
    replies: list[list[int]] = [[], [], []]
    totals = [0.0, 0.0, 0.0]
    going = [True] * 3
    for step in range(7):
        chosen: list[int] = []
        for group in (group for group in range(3) if going[group]):
            decoder = torch.tensor([[*prompt, *replies[group]]])
            with torch.inference_mode():
                logs = SMALL(input_ids=torch.tensor([text]), decoder_input_ids=decoder).logits[0, -1].log_softmax(-1)
            logs = logs.clone()
            logs[PAD] = -torch.inf
            for token in chosen:
                logs[token] -= penalty
            token = END if step == 6 else int(logs.argmax())
            totals[group] += float(logs[token])
            if token == END:
                going[group] = False
            else:
                replies[group].append(token)
                chosen.append(token)
    expected = sorted(
        (Hypothesis(r, t / (len(r) + 1)) for r, t in zip(replies, totals, strict=True)), key=lambda h: -h.score
    )
    how = Decoding(beams=3, groups=3, diversity_penalty=penalty, max_tokens=6)
    found = decode(SMALL, [text], [prompt], how)[0]
    assert [h.score for h in found] == pytest.approx([h.score for h in expected], abs=1e-4)
    assert sorted(h.tokens for h in found) == sorted(h.tokens for h in expected)


@given(
    beams=st.sampled_from([(1, 1), (4, 1), (4, 2), (3, 3)]),
    no_repeat=st.integers(0, 3),
    bounds=st.tuples(st.integers(0, 5), st.integers(1, 5)).filter(lambda bounds: bounds[0] <= bounds[1]),
    words=st.lists(st.lists(st.integers(3, 11), min_size=1, max_size=3), max_size=12),
)
@settings(max_examples=40, deadline=None)
def test_every_hypothesis_keeps_the_rules(
    beams: tuple[int, int], no_repeat: int, bounds: tuple[int, int], words: list[list[int]]
) -> None:
    how = Decoding(
        beams=beams[0], groups=beams[1], diversity_penalty=1.0 if beams[1] > 1 else 0.0, no_repeat_ngram=no_repeat,
        min_tokens=bounds[0], max_tokens=bounds[1],
    )  # fmt: skip
    found = decode(SMALL, texts(3, vocabulary=12), tagged(3), how, beams[0], words)
    for hypotheses in found:
        assert len(hypotheses) <= beams[0]
        for tokens, score in hypotheses:
            assert bounds[0] <= len(tokens) <= bounds[1]
            assert math.isfinite(score)
            assert not {PAD, END} & set(tokens)
            assert not any(has(tokens, word) for word in words)
            grams = [tokens[i : i + no_repeat] for i in range(len(tokens) - no_repeat + 1)] if no_repeat else []
            assert len({tuple(gram) for gram in grams}) == len(grams)
        if beams[1] == 1:
            assert len({tuple(h.tokens) for h in hypotheses}) == len(hypotheses)


def has(tokens: list[int], word: list[int]) -> bool:
    return any(tokens[i : i + len(word)] == word for i in range(len(tokens) - len(word) + 1))


@pytest.mark.parametrize("beams", [1, 3])
def test_where_the_rules_leave_less_less_comes_back(beams: int) -> None:
    sources, prompts = texts(2, vocabulary=12), tagged(2)
    words = [[token] for token in (0, *range(3, 12))]

    def replies(words: list[list[int]], least: int) -> list[list[list[int]]]:
        how = Decoding(beams=beams, min_tokens=least, max_tokens=4)
        found = decode(SMALL, sources, prompts, how, beams, words)
        return [sorted(h.tokens for h in hypotheses) for hypotheses in found]

    assert replies(words, 0) == [[[]], [[]]]
    assert replies(words, 1) == [[], []]
    words = [word for word in words if word != [5]] + [[5, 5]]
    assert replies(words, 1) == [[[5]], [[5]]]
    if beams > 1:
        assert replies(words, 0) == [[[], [5]], [[], [5]]]
    assert decode(SMALL, [], [], PLAIN) == []


@pytest.mark.parametrize("how", [PLAIN, DIVERSE, GREEDY_GROUPS])
def test_a_checkpoints_generation_config_does_not_leak_in(how: Decoding, capfd: pytest.CaptureFixture[str]) -> None:
    model, sources, prompts = build("bart"), texts(5), tagged(5)
    expected = decode(model, sources, prompts, how)
    own = GenerationConfig(
        forced_bos_token_id=7, forced_eos_token_id=9, max_length=3, min_length=2, num_beams=7, early_stopping=True,
        no_repeat_ngram_size=1, bad_words_ids=[[5], [6], [8]], suppress_tokens=[10, 11], repetition_penalty=9.0,
        length_penalty=3.0, eos_token_id=END, pad_token_id=PAD, decoder_start_token_id=8, renormalize_logits=True,
    )  # fmt: skip
    model.generation_config = own
    capfd.readouterr()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert decode(model, sources, prompts, how) == expected
    assert capfd.readouterr() == ("", "")
    assert model.generation_config is own


@pytest.mark.parametrize(("values", "words"), cases(__file__, "test_impossible_settings_get_a_sentence"))
def test_impossible_settings_get_a_sentence(values: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(InputError) as error:
        Decoding(**values)
    message = str(error.value)
    assert all(word in message for word in words), message
    assert message.endswith(".")


def test_what_the_model_cannot_do_gets_a_sentence() -> None:
    with pytest.raises(InputError, match=r"--beams 4: .*5 are asked for"):
        decode(BART, texts(1), tagged(1), PLAIN, n=5)
    with pytest.raises(InputError, match="message has 33 tokens, and the model reads at most 32"):
        decode(BART, [[5] * 33], tagged(1), PLAIN)
    with pytest.raises(InputError, match="--max_tokens 31: the model writes at most 30"):
        decode(BART, texts(1), tagged(1), Decoding(max_tokens=31))
    assert decode(BART, [[5] * 32], tagged(1), Decoding(max_tokens=30, min_tokens=30))[0]
    endless = build("bart")
    endless.generation_config.eos_token_id = endless.config.eos_token_id = None
    with pytest.raises(InputError, match="eos_token_id"):
        decode(endless, texts(1), tagged(1), PLAIN)


def byte_level() -> PreTrainedTokenizerFast:
    backend = Tokenizer(models.BPE(unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=["<unk>"], initial_alphabet=alphabet)
    backend.train_from_iterator(["Damn it, damn it. Shut up, shut up"] * 9, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>")


@pytest.mark.parametrize(
    "text", ["damn", "Damn that", "oh damn", "He said damn it", "Damn", "please shut up now", "Shut up"]
)
def test_blocked_words_are_found_where_a_tokenizer_writes_them(text: str) -> None:
    tokenizer = byte_level()
    blocked = blocked_token_ids(tokenizer, ["DAMN", "shut up"])
    ids = tokenizer(text)["input_ids"]
    assert any(has(ids, word) for word in blocked)
    assert not any(has(tokenizer("Fine, thanks")["input_ids"], word) for word in blocked)


def test_words_within_scripts_without_spaces_and_unknown_words() -> None:
    tokenizer = train_tokenizer(["馬鹿 です", "私は 馬鹿", "(馬鹿", "お馬鹿さん", "a crass class"] * 9, 200)
    blocked = blocked_token_ids(tokenizer, ["馬鹿", "ass"])
    for text in ("馬鹿です", "お馬鹿"):
        assert any(has(tokenizer(text, add_special_tokens=False)["input_ids"], word) for word in blocked), text
    assert not any(has(tokenizer("class", add_special_tokens=False)["input_ids"], word) for word in blocked)
    assert blocked_token_ids(tokenizer, ["🦄"]) == []  # blocking the unknown token would block every unknown word
    assert blocked_token_ids(tokenizer, []) == []


@pytest.mark.parametrize(("blocked", "hit", "missed"), cases(__file__, "test_no_text_holds_a_blocked_word"))
def test_no_text_holds_a_blocked_word(blocked: str, hit: list[str], missed: list[str]) -> None:
    given_texts = [(text, 0.0) for text in [*hit, *missed]]
    assert [text for text, _ in suggestions(given_texts, 9, [blocked])] == missed
