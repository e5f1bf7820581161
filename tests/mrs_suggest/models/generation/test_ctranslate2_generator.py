"""An exported generator gives torch's likelihoods and replies, and refuses what CTranslate2 cannot do."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    AutoTokenizer,
    BartForConditionalGeneration,
    MBart50Tokenizer,
    MBartConfig,
    MBartForConditionalGeneration,
    MT5Config,
    MT5ForConditionalGeneration,
    NllbTokenizer,
    T5Tokenizer,
    UMT5Config,
    UMT5ForConditionalGeneration,
)

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.extras import lacking
from mrs_suggest.models.exports import CTRANSLATE2, SETTINGS, WEIGHTS, note_missing
from mrs_suggest.models.generation.ctranslate2_generator import ExportedGenerator
from mrs_suggest.models.generation.ctranslate2_writer import write_ctranslate2
from mrs_suggest.models.generation.decoding.settings import Decoding
from mrs_suggest.models.generation.generator import Generator
from mrs_suggest.models.generation.plain_tokenizer import saved_tokenizer
from mrs_suggest.models.generation.tiny_generator import build_tiny_generator
from mrs_suggest.models.retrieval.tiny import train_tokenizer
from mrs_suggest.suggest.generation_suggester import GenerationSuggester
from mrs_suggest.suggest.suggester import Suggester
from tests.mrs_suggest.models.generation.test_generator import (
    FAMILIES,
    ODD,
    PAIRS,
    SMALL,
    TEXTS,
    build,
    families,
    trained,
)

ctranslate2 = pytest.importorskip("ctranslate2")
__all__ = ["families", "trained"]  # fixtures
MESSAGES = ["How are you?", "¿Vienes esta noche?", "", "x", "Are you there? " * 20, "👍"]
STARTS = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
Export = Callable[..., ExportedGenerator]


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Export:
    """A function that saves a generator, exports it, and loads the export."""

    def made(generator: Generator, int8: bool = False) -> ExportedGenerator:
        folder = tmp_path_factory.mktemp("exported")
        generator.save(folder)
        write_ctranslate2(Generator.load(folder), folder, folder, int8)
        found = ExportedGenerator.load(folder)
        assert found is not None
        return found

    return made


@pytest.fixture(scope="module")
def folder(trained: Generator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved generator with its export in fp32."""
    target = tmp_path_factory.mktemp("generator")
    trained.save(target)
    write_ctranslate2(Generator.load(target), target, target, int8=False)
    return target


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Generator]:
    """Random models of architectures that `families` lacks."""
    t5: dict[str, Any] = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 2, "num_heads": 2}
    t5["decoder_start_token_id"] = 0
    found = {}
    settings: Any
    model: Any
    for name, settings, model, more in (
        ("mbart", MBartConfig, MBartForConditionalGeneration, {**SMALL, "init_std": 0.3}),
        ("mt5", MT5Config, MT5ForConditionalGeneration, t5),
        ("umt5", UMT5Config, UMT5ForConditionalGeneration, t5),
    ):
        folder = tmp_path_factory.mktemp(name)
        tokenizer = train_tokenizer(TEXTS, 150)
        tags = {"additional_special_tokens": ["en_XX", "es_XX"]} if name == "mbart" else {}
        tokenizer.add_special_tokens({"eos_token": "</s>", **tags})
        tokenizer.save_pretrained(folder)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            end, pad = tokenizer.eos_token_id, tokenizer.pad_token_id
            model(settings(vocab_size=len(tokenizer), pad_token_id=pad, eos_token_id=end, **more)).save_pretrained(
                folder
            )
        found[name] = build(folder)
        found[name].model.eval()
    return found


@pytest.mark.parametrize("family", [*FAMILIES, "mbart", "mt5", "umt5"])
def test_likelihoods_and_scores_are_those_of_torch(
    families: dict[str, Generator], others: dict[str, Generator], export: Export, family: str
) -> None:
    generator = {**families, **others}[family]
    exported = export(generator)
    for code, pairs in PAIRS.items():
        assert exported.coder.messages([*MESSAGES, *ODD], code) == generator.coder.messages([*MESSAGES, *ODD], code)
        assert exported.coder.replies(MESSAGES) == generator.coder.replies(MESSAGES)
        assert exported.coder.prompt(code) == generator.coder.prompt(code)
        messages, replies = zip(*pairs, ("", "gracias"), strict=True)
        losses, tokens = generator.losses(messages, replies, code)
        found, counts = exported.log_probs(messages, replies, code)
        np.testing.assert_allclose(found, -losses, rtol=1e-4, atol=1e-4)
        assert counts.tolist() == tokens.tolist()
        inputs, prompt = generator.coder.messages(MESSAGES, code), generator.coder.prompt(code)
        searched = (system._search(inputs, prompt, generator.decoding, code) for system in (exported, generator))
        for ids, mine, theirs in zip(inputs, *searched, strict=True):
            if ids == generator.coder.messages([""], code)[0]:  # CTranslate2 answers no message without tokens
                continue
            scores = {tuple(hypothesis.tokens): hypothesis.score for hypothesis in theirs}
            common = [hypothesis for hypothesis in mine if tuple(hypothesis.tokens) in scores]
            assert len(common) > 3, "of five; the searches stop at different steps"
            for hypothesis in common:
                assert hypothesis.score == pytest.approx(scores[tuple(hypothesis.tokens)], rel=1e-3, abs=1e-3)


RULES: list[dict[str, Any]] = [  # four tokens cut a reply, so that its end is scored by itself
    {}, {"max_tokens": 4}, {"length_penalty": 0.0}, {"no_repeat_ngram": 2}, {"min_tokens": 3},
    {"blocked": ("gracias", "thanks")}, {"beams": 1},
]  # fmt: skip


@pytest.mark.parametrize("rules", RULES, ids=lambda rules: " ".join(rules) or "plain")
def test_the_best_reply_is_that_of_torch_under_every_rule(
    trained: Generator, export: Export, rules: dict[str, Any]
) -> None:
    decoding = replace(trained.decoding, **rules)
    generator = Generator(trained.model, trained.coder, trained.languages, decoding)
    exported = export(generator)
    for code, pairs in PAIRS.items():
        messages = [message for message, _ in pairs]
        found, expected = (system.suggest(messages, code, 1) for system in (exported, generator))
        assert [row[0][0] for row in found] == [row[0][0] for row in expected]
        np.testing.assert_allclose([row[0][1] for row in found], [row[0][1] for row in expected], rtol=1e-3, atol=1e-3)
    more = exported.suggest(["¿Qué tal?"], "es", 9)[0]  # more than there are beams
    assert 3 < len(more) <= 9
    assert [score for _, score in more] == sorted((score for _, score in more), reverse=True)
    assert exported.suggest([], "en", 3) == []


@pytest.mark.parametrize("int8", [False, True])
def test_a_reply_does_not_depend_on_the_other_messages_of_its_batch(
    trained: Generator, export: Export, int8: bool
) -> None:
    exported = export(trained, int8)
    together = exported.suggest(MESSAGES, "en", 3)
    for message, row in zip(MESSAGES, together, strict=True):
        (alone,) = exported.suggest([message], "en", 3)
        assert [text for text, _ in alone] == [text for text, _ in row], message
        np.testing.assert_allclose([score for _, score in alone], [score for _, score in row], rtol=1e-4, atol=1e-5)
    learnt = [message for message, _ in PAIRS["en"]]
    assert [row[0][0] for row in exported.suggest(learnt, "en", 1)] == [reply.lower() for _, reply in PAIRS["en"]]


def test_the_export_in_the_folder_answers_without_the_weights_of_torch(
    folder: Path, trained: Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Generator, "load", lambda _: pytest.fail("torch's weights are read"))
    suggester = Suggester.from_pretrained(folder)
    assert isinstance(suggester.model, GenerationSuggester)
    assert isinstance(suggester.model.generator, ExportedGenerator)
    found = suggester.suggest(["How are you?", " "], "en")
    assert found[0][0].reply == trained.suggest(["How are you?"], "en", 3)[0][0][0]
    assert found[1] == []


ALONE = """
import json, sys
sys.modules["torch"] = sys.modules["transformers"] = sys.modules["sentence_transformers"] = None
from pathlib import Path
from mrs_suggest.suggest.generation_suggester import GenerationSuggester
found = GenerationSuggester.load_from(Path(sys.argv[1])).generator.suggest(sys.argv[2:], "es", 3)
print(json.dumps(found))
"""


def test_the_export_answers_alike_where_torch_is_not_installed(folder: Path) -> None:
    asked = ["¿Qué tal?", "x", "[es] </s> gracias", "Are you there? " * 20]
    done = subprocess.run([sys.executable, "-c", ALONE, folder, *asked], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    exported = ExportedGenerator.load(folder)
    assert exported is not None
    assert json.loads(done.stdout) == [[list(reply) for reply in row] for row in exported.suggest(asked, "es", 3)]


def test_a_tokenizer_that_only_transformers_has_asks_for_the_extra(
    families: dict[str, Generator], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    families["start"].save(tmp_path)
    assert type(saved_tokenizer(tmp_path)).__name__ == "ByT5Tokenizer"
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ModuleNotFoundError) as raised:
        saved_tokenizer(tmp_path)
    assert lacking(raised.value) == ("transformers", "torch")
    (tmp_path / "tokenizer.json").write_text("{", encoding="utf-8")
    with pytest.raises(InputError, match=rf"^{re.escape(str(tmp_path))}: cannot load the tokenizer "):
        saved_tokenizer(tmp_path)


@pytest.mark.parametrize("cleaned", [False, True])
@pytest.mark.parametrize(
    ("name", "built"),
    [
        ("t5", lambda pieces: T5Tokenizer(vocab=[("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *pieces], extra_ids=3)),
        ("mbart50", lambda pieces: MBart50Tokenizer(vocab=[*STARTS, *pieces], src_lang="en_XX", tgt_lang="es_XX")),
        ("nllb", lambda pieces: NllbTokenizer(vocab={text: n for n, (text, _) in enumerate([*STARTS, *pieces])})),
    ],
)
def test_ids_and_texts_are_those_of_transformers(
    tmp_path: Path, name: str, built: Callable[[list[tuple[str, float]]], Any], cleaned: bool
) -> None:
    pieces = [(text, -float(len(text))) for text in dict.fromkeys("▁" + "".join(TEXTS).replace(" ", ""))]
    built(pieces).save_pretrained(tmp_path)
    config = tmp_path / "tokenizer_config.json"
    settings = json.loads(config.read_text(encoding="utf-8")) | {"clean_up_tokenization_spaces": cleaned}
    config.write_text(json.dumps(settings), encoding="utf-8")
    plain: Any = saved_tokenizer(tmp_path)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    assert (type(plain).__name__, name) == ("PlainTokenizer", name)
    assert theirs.clean_up_tokenization_spaces == cleaned
    texts = [*MESSAGES, *ODD, "x . is it n't ?", *(f"a {token} b" for token in theirs.all_special_tokens)]
    for most in (5, 1000):
        given = {"add_special_tokens": False, "split_special_tokens": True, "truncation": True, "max_length": most}
        assert plain(texts, **given)["input_ids"] == theirs(texts, **given)["input_ids"]
    for text in texts:
        ids = theirs(text)["input_ids"]
        assert plain.decode(ids, skip_special_tokens=True) == theirs.decode(ids, skip_special_tokens=True)
        assert plain(text, add_special_tokens=False) == {
            "input_ids": theirs(text, add_special_tokens=False)["input_ids"]
        }
    for token in ("eos", "cls", "sep", "unk"):
        assert getattr(plain, f"{token}_token_id") == getattr(theirs, f"{token}_token_id")


def test_without_the_extra_torch_answers_and_one_note_tells_why(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    note_missing.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, "ctranslate2", None)
    for _ in range(2):
        assert isinstance(GenerationSuggester.load_from(folder).generator, Generator)
    (line,) = capsys.readouterr().err.splitlines()
    assert "pip install '.[ctranslate2]'" in line


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        (WEIGHTS, b"no model", "damaged"),
        (SETTINGS, b"{", "damaged"),
        (SETTINGS, b'{"end": 1, "pad": 0}', "damaged"),
        (SETTINGS, b'{"end": 1, "pad": 0, "decoding": {}}', "was made for other settings of the search"),
    ],
)
def test_an_export_that_cannot_be_used_is_named(
    folder: Path, tmp_path: Path, name: str, content: bytes, problem: str
) -> None:
    copy = tmp_path / "model"
    shutil.copytree(folder, copy)
    (copy / CTRANSLATE2 / name).write_bytes(content)
    with pytest.raises(InputError, match=rf"{CTRANSLATE2}/{name}: {problem}; .* mrs models export .* --remove"):
        GenerationSuggester.load_from(copy)


def test_what_ctranslate2_cannot_do_is_refused_in_a_sentence(trained: Generator, tmp_path: Path) -> None:
    groups = Generator(trained.model, trained.coder, trained.languages, Decoding(4, 2, 1.0, max_tokens=10))
    with pytest.raises(InputError, match=r"searches in 2 diverse groups, .* it keeps answering with torch"):
        write_ctranslate2(groups, tmp_path, tmp_path, int8=False)
    tiny = build(build_tiny_generator(TEXTS, ["en", "es"], tmp_path / "tiny", 3, 200))
    model: Any = tiny.model
    model.generation_config.eos_token_id = [5, 6]
    with pytest.raises(InputError, match="end with any of 2 tokens"):
        write_ctranslate2(tiny, tmp_path, tmp_path, int8=False)
    assert isinstance(model, BartForConditionalGeneration)
    model.config.model_type = "prophetnet"
    with pytest.raises(InputError, match=r"of type 'prophetnet', and CTranslate2 converts Bart, .*; it keeps"):
        write_ctranslate2(tiny, tmp_path, tmp_path, int8=False)
    assert not (tmp_path / CTRANSLATE2).exists()
