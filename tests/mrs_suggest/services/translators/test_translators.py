"""Translators by transformers and CTranslate2: what they write, which directions they know, what they refuse."""

import json
import pickle
import random
import shutil
from pathlib import Path

import pytest
import torch

from mrs_suggest.common.errors import InputError, MissingExtraError
from mrs_suggest.models.generation.text_coder import Direction
from mrs_suggest.services.checkpoints import find_translator
from mrs_suggest.services.translators import seq2seq
from mrs_suggest.services.translators.opening import open_translator
from mrs_suggest.services.translators.seq2seq import Search, Seq2SeqTranslator
from tests.translation_models import WORDS, cipher, marian, sentence, write_m2m100

pytest.importorskip("sentencepiece")

__all__ = ["marian"]  # fixture
SEARCH = Search(beams=2, max_tokens=20, batch_tokens=200)
TEXTS = [sentence(random.Random(number)) for number in range(60)]
TOO_LONG = " ".join(["the"] * 40)


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "user-cache"))


@pytest.fixture(scope="module")
def m2m100(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_m2m100(tmp_path_factory.mktemp("m2m") / "m2m100-tiny")


@pytest.fixture(scope="module")
def converted(marian: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `ct2-transformers-converter --copy_files` writes."""
    converters = pytest.importorskip("ctranslate2.converters")
    folder = tmp_path_factory.mktemp("converted") / "opus-tiny-ct2"
    copied = ["tokenizer_config.json", "source.spm", "target.spm", "vocab.json"]
    converters.TransformersConverter(str(marian), copy_files=copied).convert(str(folder))
    return folder


def test_marian_translates_in_one_direction_and_tells_what_does_not_fit(marian: Path) -> None:
    translator = open_translator(str(marian), SEARCH)
    texts = [*TEXTS[:20], TOO_LONG, *TEXTS[20:]]
    found = translator.translate(texts, "en", "de")
    assert found == [cipher(text) if text != TOO_LONG else "" for text in texts]
    assert translator.fits(texts, "en", "de") == [text != TOO_LONG for text in texts]
    assert translator.facts.kind == "marian"
    assert translator.settings == {"beams": 2, "max_tokens": 20, "runtime": "torch"}
    for source, target in (("en", "fr"), ("fr", "de"), ("de", "en")):
        with pytest.raises(InputError, match=rf"does not translate {source} to {target} \(it knows en to de\)"):
            translator.require(source, target)


def test_the_answer_is_that_of_generate(marian: Path) -> None:
    from transformers import AutoTokenizer, MarianMTModel

    model, tokenizer = MarianMTModel.from_pretrained(str(marian)), AutoTokenizer.from_pretrained(str(marian))
    translator = open_translator(str(marian), SEARCH)
    for text in TEXTS[:8]:
        with torch.inference_mode():
            ids = model.generate(**tokenizer([text], return_tensors="pt"), num_beams=2, max_new_tokens=20)
        assert translator.translate([text], "en", "de") == tokenizer.batch_decode(ids, skip_special_tokens=True)
    found = open_translator(str(marian), Search(2, 3)).translate(["the cat", "the cat sees the dog"], "en", "de")
    assert found == [cipher("the cat"), ""]


@pytest.mark.parametrize("quantization", ["int8", "float32"])
def test_ctranslate2_answers_as_torch_and_converts_once(
    marian: Path, quantization: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ctranslate2")
    texts = [*TEXTS, TOO_LONG]
    first = open_translator(str(marian), SEARCH, quantization)
    assert first.translate(texts, "en", "de") == [*map(cipher, TEXTS), ""]
    assert first.settings["runtime"] == f"ctranslate2 {quantization}"
    monkeypatch.setattr("mrs_suggest.services.translators.ctranslate2_translator.load_weights", None)
    again = pickle.loads(pickle.dumps(open_translator(str(marian), SEARCH, quantization)))
    assert again.translate(TEXTS[:3], "en", "de") == list(map(cipher, TEXTS[:3]))


def test_a_converted_folder_without_tokenizer_is_refused(converted: Path, tmp_path: Path) -> None:
    shutil.copytree(converted, tmp_path / "ct2")
    (tmp_path / "ct2/tokenizer_config.json").unlink()
    with pytest.raises(InputError, match="--copy_files"):
        open_translator(str(tmp_path / "ct2"))


def test_a_marian_that_does_not_start_from_zeros_is_not_converted(marian: Path, tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2")
    from transformers import MarianMTModel

    shutil.copytree(marian, tmp_path / "other")
    model = MarianMTModel.from_pretrained(str(marian))
    with torch.no_grad():
        model.model.shared.weight[-1] = 1.0
    model.save_pretrained(str(tmp_path / "other"))
    with pytest.raises(InputError, match="does not start from zeros"):
        open_translator(str(tmp_path / "other"), SEARCH, "int8").translate(["the"], "en", "de")


def test_m2m100_reads_and_writes_with_the_tokens_of_the_languages(m2m100: Path) -> None:
    from transformers import AutoTokenizer

    translator = Seq2SeqTranslator(find_translator(str(m2m100)), SEARCH)
    assert translator.facts.kind == "m2m100"
    tokenizer = AutoTokenizer.from_pretrained(str(m2m100), src_lang="en")
    for source, target in (("en", "de"), ("fr", "pt-BR"), ("ja", "ru")):
        translator.require(source, target)
        tokenizer.src_lang = source
        coder = translator._coder(source, target)
        assert coder.messages(TEXTS[:9], target) == tokenizer(TEXTS[:9])["input_ids"]
        assert coder.prompt(target) == [tokenizer.eos_token_id, tokenizer.get_lang_id(target.partition("-")[0])]


def test_m2m100_on_ctranslate2_searches_as_torch(m2m100: Path) -> None:
    pytest.importorskip("ctranslate2")
    torch_one = Seq2SeqTranslator(find_translator(str(m2m100)), Search(1, 8))
    other = open_translator(str(m2m100), Search(1, 8), "float32")
    coder = torch_one._coder("en", "de")
    inputs = coder.messages(TEXTS[:20], "de")
    assert other._write(inputs, coder, coder.prompt("de")) == torch_one._write(inputs, coder, coder.prompt("de"))  # type: ignore[attr-defined]


def test_marian_into_several_languages_names_the_target_in_the_source(marian: Path, tmp_path: Path) -> None:
    """As opus-mt-en-ROMANCE, whose vocabulary has `>>fr<<`, `>>pt_br<<`."""
    shutil.copytree(marian, tmp_path / "romance")
    settings = json.loads((marian / "tokenizer_config.json").read_text())
    settings["target_lang"] = "ROMANCE"
    (tmp_path / "romance/tokenizer_config.json").write_text(json.dumps(settings))
    words = json.loads((marian / "vocab.json").read_text())
    renamed = {">>fra<<": words.pop("▁old"), ">>pt_br<<": words.pop("▁new")}
    (tmp_path / "romance/vocab.json").write_text(json.dumps({**words, **renamed}))
    translator = Seq2SeqTranslator(find_translator(str(tmp_path / "romance")), SEARCH)
    for target, token in (("fr", ">>fra<<"), ("pt-BR", ">>pt_br<<")):
        translator.require("en", target)
        ids = translator._coder("en", target).messages(["the cat"], target)
        assert ids == [[renamed[token], words["▁the"], words["▁cat"], words["</s>"]]]
    with pytest.raises(InputError, match=r"does not translate en to de \(it knows en to fra pt_br\)"):
        translator.require("en", "de")


def test_the_licence_is_read_and_a_restriction_told(
    m2m100: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(m2m100, tmp_path / "free")
    (tmp_path / "free/README.md").write_text("---\nlanguage: en\nlicense: apache-2.0\n---\n# A model\n")
    assert open_translator(str(tmp_path / "free")).facts.licence == "apache-2.0"
    assert capsys.readouterr().err == ""
    (tmp_path / "free/README.md").write_text("no front matter\n---\nlicense: mit\n---\n")
    assert open_translator(str(tmp_path / "free")).facts.licence == ""
    monkeypatch.setattr(seq2seq, "NLLB", "m2m100")  # the family says it where no file does
    assert open_translator(str(tmp_path / "free")).facts.licence == "cc-by-nc-4.0"
    told = capsys.readouterr().err
    assert told.startswith("note: free has the licence cc-by-nc-4.0: no commercial use")


def test_the_version_is_that_of_the_files(marian: Path, tmp_path: Path) -> None:
    shutil.copytree(marian, tmp_path / "copy")
    before = find_translator(str(tmp_path / "copy")).version
    assert before == find_translator(str(marian)).version
    (tmp_path / "copy/README.md").write_text("other")
    assert find_translator(str(tmp_path / "copy")).version == before
    with (tmp_path / "copy/config.json").open("a") as file:
        file.write(" ")
    assert find_translator(str(tmp_path / "copy")).version != before


def test_what_is_no_checkpoint_to_translate_with_is_one_sentence(marian: Path, tmp_path: Path) -> None:
    from mrs_suggest.models.retrieval.tiny import build_tiny

    shutil.copytree(marian, tmp_path / "old")
    (tmp_path / "old/model.safetensors").rename(tmp_path / "old/pytorch_model.bin")
    with pytest.raises(InputError, match="its weights are not safetensors"):
        open_translator(str(tmp_path / "old"))
    with pytest.raises(InputError, match="no such folder; pass the folder of a translation model"):
        open_translator("no-such-model")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"has no config\.json"):
        open_translator(str(tmp_path / "empty"))
    # An encoder is no translator.
    build_tiny(list(WORDS) * 2, tmp_path / "tiny", seed=1, vocabulary=60)
    with pytest.raises(InputError, match="without language tokens; pass Marian"):
        open_translator(str(tmp_path / "tiny"))
    shutil.copytree(marian, tmp_path / "damaged")
    (tmp_path / "damaged/model.safetensors").write_bytes(b"no weights")
    with pytest.raises(InputError, match="damaged: cannot load the seq2seq model"):
        open_translator(str(tmp_path / "damaged")).translate(["the"], "en", "de")
    (tmp_path / "damaged/vocab.json").unlink()
    with pytest.raises(InputError, match="damaged: cannot load the tokenizer"):
        open_translator(str(tmp_path / "damaged"))


def test_without_the_extra_its_name_is_told(marian: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sentencepiece", None)
    with pytest.raises(MissingExtraError, match=r"\.\[translate\]"):
        open_translator(str(marian))


def test_a_run_of_this_project_that_translates(tmp_path: Path) -> None:
    """As STAPLE's, from English to a language: the same search as the generator's own."""
    from mrs_suggest.models.generation.decoding.settings import Decoding
    from mrs_suggest.models.generation.generator import Generator
    from mrs_suggest.models.generation.tiny_generator import build_tiny_generator

    tiny = build_tiny_generator([*WORDS] * 3, ["en", "es"], tmp_path / "tiny", 3, 200)
    decoding = Decoding(beams=2, max_tokens=6)
    generator = Generator.build(str(tiny), ["es"], 24, 12, decoding, direction=Direction(source="en"))
    (tmp_path / "run").mkdir()
    generator.save(tmp_path / "run")
    translator = Seq2SeqTranslator(find_translator(str(tmp_path / "run")), Search(2, 6))
    translator.require("en", "es")
    assert translator.facts.kind == "generator"
    coder = translator._coder("en", "es")
    found = translator._write(coder.messages(TEXTS[:9], "es"), coder, coder.prompt("es"))
    assert found == [row[0].tokens for row in generator.hypotheses(TEXTS[:9], "es", decoding)]
    for source, target in (("es", "en"), ("en", "de")):
        with pytest.raises(InputError, match=r"\(it knows en to es\)"):
            translator.require(source, target)
