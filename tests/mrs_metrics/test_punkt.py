"""Sentence boundaries by Punkt: against NLTK, against the official script's figures, worked cases, and bad folders."""

import json
import pickle
import shutil
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrs_metrics import punkt
from mrs_metrics.distinct import distinct_counts
from mrs_metrics.punkt import PunktParameters, find_parameters, open_punkt, read_parameters
from mrs_metrics.rouge import aggregate, score_examples
from mrs_metrics.spaces import module_files
from mrs_metrics.tokenize import get_tokenizer
from tests.cases import cases
from tests.mrs_metrics.modules import load

# Invented; one of each kind that the decisions look at.
PARAMETERS = {
    "abbrev_types.txt": ". . \nmr\nu.s\ne.g\nvs\nst\n",
    "collocations.tab": "##number##\tmay\nst\tpaul\n",
    "ortho_context.tab": "the\t70\nhe\t34\nbach\t4\nsmith\t36\nmay\t126\nyork\t4\nyes\t18\n",
    "sent_starters.txt": "however\nthe\n",
}
_WORDS = """the The he He bach Bach smith Smith may May york York yes Yes however However paul Paul mr. Mr. MR. u.s.
    U.S. e.g. vs. x-vs. St. st.
    a. A. J. é. É. 5. 5 -5. .5 1,000. §. _. 1_. don't I i 日本. 日本。 ſ. ß. ǅ no. No never"""
_MARKS = "... .. . ! ? !! ?! , ; : ' \" '' ) ( ] [ } { -- - * @ # & ` ."
_SPACES = [" ", " ", " ", " ", "", "\n", "\t", "  ", "\xa0", "\u3000", "\x1c", "\x0b", "\r", "\u2028"]
_texts = st.lists(
    st.tuples(st.sampled_from([*_WORDS.split(), *_WORDS.split(), *_MARKS.split()]), st.sampled_from(_SPACES)),
    max_size=10,
).map(lambda pieces: "".join(word + space for word, space in pieces))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of synthetic parameters."""
    path = tmp_path_factory.mktemp("parameters") / "english"
    path.mkdir()
    for name, text in PARAMETERS.items():
        (path / name).write_text(text, encoding="utf-8")
    return path


def _nltk_splitter(parameters: PunktParameters):
    module = pytest.importorskip("nltk.tokenize.punkt", reason="needs nltk 3.8.1 to compare with")
    theirs = module.PunktParameters()
    theirs.abbrev_types = set(parameters.abbreviations)
    theirs.collocations = set(parameters.collocations)
    theirs.sent_starters = set(parameters.starters)
    theirs.ortho_context = defaultdict(int, parameters.contexts)
    return module.PunktSentenceTokenizer(theirs)


@given(st.one_of(_texts, _texts, _texts, st.text(max_size=30), st.text(".?! \n'\")a.A5-,", max_size=12)))
def test_sentences_equal_nltk_on_any_text(folder, text):
    theirs = _nltk_splitter(read_parameters(folder))
    assert open_punkt(folder).sentences(text) == theirs.tokenize(text)


def test_sentences_equal_nltk_on_real_texts(shared_data):
    ours = open_punkt(shared_data / "punkt" / "english")
    theirs = _nltk_splitter(read_parameters(shared_data / "punkt" / "english"))
    files = [*shared_data.glob("replies/*.tsv"), *shared_data.glob("golden/punkt/*.tsv")]
    texts = {text for file in files for text in file.read_text(encoding="utf-8").replace("\n", "\t").split("\t")}
    assert len(texts) > 3000
    assert [text for text in texts if ours.sentences(text) != theirs.tokenize(text)] == []
    assert [text for text in texts if ours.sentences(text.lower()) != theirs.tokenize(text.lower())] == []


@pytest.mark.parametrize("language", ["en", "es", "de", "pt", "fr", "sv", "it", "nl", "ru"])
def test_scores_equal_the_official_script_with_punkt(shared_data, language):
    golden = shared_data / "golden" / "punkt"
    expected = json.loads((golden / "expected.json").read_text(encoding="utf-8"))[language]
    lines = (golden / f"{language}.tsv").read_text(encoding="utf-8").strip("\n").split("\n")
    rows = [line.strip().split("\t") for line in lines]
    tokenizer = get_tokenizer(language, "punkt", shared_data / "punkt" / "english")
    scores = score_examples([row[2:5] for row in rows], [row[1] for row in rows], language, tokenizer=tokenizer)
    found = aggregate(scores)
    counts = {f"distinct{n}": distinct_counts(scores.chosen_tokens, n).distinct for n in (1, 2)}
    assert {key: found[key] for key in expected if key not in counts} == pytest.approx(
        {key: value for key, value in expected.items() if key not in counts}, abs=1e-9, rel=0
    )
    assert counts == {key: expected[key] for key in counts}
    assert "|sent:punkt-en|" in scores.signature
    whole = score_examples([row[2:5] for row in rows], [row[1] for row in rows], language)
    assert distinct_counts(whole.chosen_tokens, 1).distinct != expected["distinct1"], "the default is another figure"


@pytest.mark.parametrize(("text", "sentences"), cases(__file__, "test_worked_cases"))
def test_worked_cases(folder, text, sentences):
    found = open_punkt(folder).sentences(text)
    assert found == (sentences if sentences is not None else _nltk_splitter(read_parameters(folder)).tokenize(text))


def test_tokens_by_sentence_set_each_final_dot_apart(folder):
    split, whole = get_tokenizer("en", "punkt", folder), get_tokenizer("en")
    text = "i do it. help? see mr. smith. bye."
    assert split(text) == "i do it . help ? see mr. smith . bye .".split()  # noqa: SIM905
    assert split.spaced(text) == " ".join(split(text))
    assert whole(text) == "i do it. help ? see mr. smith. bye .".split()  # noqa: SIM905
    assert pickle.loads(pickle.dumps(split))(text) == split(text), "other processes get the parameters"


def test_the_signature_names_the_parameters(folder, tmp_path):
    name = open_punkt(folder).name
    assert name.startswith("punkt-en-"), "english, but not NLTK's parameters"
    other = shutil.copytree(folder, tmp_path / "own")
    assert open_punkt(other).name == name.replace("-en", "")
    lines = PARAMETERS["abbrev_types.txt"].splitlines(keepends=True)
    (other / "abbrev_types.txt").write_text("".join(reversed(lines)), encoding="utf-8")
    assert open_punkt(other).name == name.replace("-en", ""), "the order of lines does not matter"
    (other / "abbrev_types.txt").write_text("".join(lines[1:]), encoding="utf-8")
    assert open_punkt(other).name != name.replace("-en", "")


def test_an_installed_resource_is_found_without_nltk(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(punkt, "_nltk_folders", lambda: iter([tmp_path / "no", tmp_path / "data"]))
    assert find_parameters() is None
    with pytest.raises(ValueError, match=r"python -m nltk.downloader punkt_tab, or name the folder"):
        open_punkt()
    shutil.copytree(folder, tmp_path / "data" / "tokenizers" / "punkt_tab" / "english")
    assert find_parameters() == tmp_path / "data" / "tokenizers" / "punkt_tab" / "english"
    assert open_punkt().name.startswith("punkt-en-")


def test_nltk_s_own_search_path_is_followed(tmp_path, monkeypatch):
    data = pytest.importorskip("nltk.data", reason="needs nltk to compare with")
    monkeypatch.delenv("NLTK_DATA", raising=False)
    assert [str(path) for path in punkt._nltk_folders()] == data.path
    monkeypatch.setenv("NLTK_DATA", str(tmp_path))
    assert next(punkt._nltk_folders()) == tmp_path


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("collocations.tab", None, r"cannot read the file .* a folder of Punkt's parameters has abbrev_types.txt"),
        ("collocations.tab", b"st paul\n", "collocations.tab, line 1: expected 2 columns"),
        ("ortho_context.tab", b"the\t70\nhe\tx\n", "ortho_context.tab, line 2: expected a type and a whole number"),
        ("abbrev_types.txt", b"mr\n\n", "abbrev_types.txt, line 2: expected 1 column"),
        ("sent_starters.txt", b"\xff\n", "sent_starters.txt: not UTF-8 at byte 0"),
    ],
)
def test_broken_parameters_are_refused_by_file_and_line(folder, tmp_path, name, content, sentence):
    broken = shutil.copytree(folder, tmp_path / "english")
    (broken / name).unlink()
    if content is not None:
        (broken / name).write_bytes(content)
    with pytest.raises(ValueError, match=sentence):
        open_punkt(broken)


def test_options_that_make_no_sense_are_refused(folder):
    with pytest.raises(ValueError, match=r"must be one of \['no', 'punkt'\], not 'nltk'"):
        get_tokenizer("en", "nltk")
    with pytest.raises(ValueError, match="need sentences='punkt'"):
        get_tokenizer("en", punkt=str(folder))


def test_japanese_is_not_split_as_in_the_script(mecab, folder):
    assert get_tokenizer("ja", "punkt", folder).sentences == "no"


@pytest.mark.parametrize("name", ["mrs_rouge", "dist_n", "self_rouge"])
def test_modules_split_sentences(name, folder, monkeypatch):
    options = {"predictions": [["Yes. No.", "Yes. No!"]], "sentences": "punkt", "punkt": str(folder)}
    references = {} if name == "self_rouge" else {"references": ["Yes. No."]}
    found = load(name).compute(**options, **references)
    assert "|sent:punkt-en-" in found["signature"]
    assert "|sent:no|" in load(name).compute(predictions=options["predictions"], **references)["signature"]
    assert "topic_punkt.py" in module_files(name)
    monkeypatch.setattr(punkt, "_nltk_folders", lambda: iter([folder.parent / "nothing"]))
    with pytest.raises(ValueError, match="Sentences cannot be split"):
        load(name).compute(**{**options, "punkt": None}, **references)
