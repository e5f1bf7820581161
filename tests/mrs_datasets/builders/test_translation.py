"""Translated training pairs and response sets: written, dropped and counted, and nothing is done twice."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from mrs_datasets.builders import passes as running
from mrs_datasets.builders import translation as module
from mrs_datasets.builders.passes import Rows, run_passes
from mrs_datasets.builders.translation import CODE, DUPLICATE, KEPT, REASONS, Translation, TranslationPass, is_copy
from mrs_datasets.check.check import check
from mrs_datasets.prepared.prepared import open_prepared
from mrs_datasets.readers.sample import SAMPLE
from mrs_datasets.texts.dictionary_texts import DictionaryTranslator
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.text_cache import TextCache
from mrs_suggest.common.text.text_services import ServiceFacts
from tests.cases import cases
from tests.dumps import all_bytes

LOG: list[str] = []


def say(text: str, target: str) -> str:
    """The answer of the translator below: letters and case are those of the text, so nothing becomes equal."""
    return f"{target}: {text[::-1]}"


@dataclass(frozen=True)
class Backwards:
    """Says texts backwards, after the target."""

    answers: Callable[[str, str], str] = say
    fails_after: int | None = None
    longest: int = 1000
    settings: Mapping[str, object] = field(default_factory=dict)

    @property
    def facts(self) -> ServiceFacts:
        return ServiceFacts("test", "backwards", "1", "cc0-1.0")

    def require(self, source: str, target: str) -> None:
        if target == "ja":
            raise InputError("backwards: does not know ja.")

    def translate(self, texts: Sequence[str], source: str, target: str) -> list[str]:
        if self.fails_after is not None and len(LOG) >= self.fails_after:
            raise KeyboardInterrupt
        LOG.extend(f"{target}: {text}" for text in texts)
        return [self.answers(text, target) if len(text) <= self.longest else "" for text in texts]

    def fits(self, texts: Sequence[str], source: str, target: str) -> list[bool]:
        return [len(text) <= self.longest for text in texts]


class Letters:
    """Takes texts with a `z` for Swedish."""

    def identify(self, texts: Sequence[str]) -> list[tuple[str, float]]:
        return [("sv", 0.9) if "z" in text else ("de", 0.5) for text in texts]

    def knows(self, code: str) -> bool:
        return code == "de"


@pytest.fixture
def source() -> Path:
    return SAMPLE


@pytest.fixture(autouse=True)
def small_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "ROWS", 1000)
    monkeypatch.setattr(module, "BLOCK", 64)
    LOG.clear()


def rows(folder: Path, config: str) -> list[dict[str, str]]:
    tables = [pq.read_table(path) for path in open_prepared(str(folder)).files(config, "train")]
    return list(pa.concat_tables(tables).to_pylist()) if tables else []


def test_pairs_are_translated_in_their_order_and_each_text_once(source: Path, tmp_path: Path) -> None:
    report = run_passes(str(source), [TranslationPass({"es": Backwards(), "de": Backwards()})], tmp_path / "out")
    english = rows(source, "en")
    for target in ("es", "de"):
        wanted = [{name: say(text, target) for name, text in row.items()} for row in english]
        assert rows(tmp_path / "out", f"mt-{target}") == wanted
    assert [text for text, count in Counter(LOG).items() if count > 1] == []
    texts = {text for row in english for text in row.values()} | {row["reply"] for row in rows(source, "en-responses")}
    assert len(LOG) == 2 * len(texts)
    entry = report["passes"][0]
    responses = len(rows(source, "en-responses"))
    assert (entry["in"], entry["out"], entry["dropped"]) == (2 * (len(english) + responses),) * 2 + ({},)
    assert entry["about"]["counts"]["mt-de"] == {"in": len(english), "kept": len(english)}
    assert entry["about"]["models"][0]["for"] == "es"
    assert entry["about"]["models"][0]["licence"] == "cc0-1.0"
    card = (tmp_path / "out/README.md").read_text(encoding="utf-8")
    assert "mt-de" in card
    assert "- The language of translations was not checked: no language model." in card
    assert [found for found in check(open_prepared(str(tmp_path / "out"))) if found.level == "error"] == []


def test_translated_replies_follow_those_of_the_language_without_doubles(source: Path, tmp_path: Path) -> None:
    first = rows(source, "es-responses")[0]["reply"]
    english = rows(source, "en-responses")

    def one_is_there(text: str, target: str) -> str:
        return first if text == english[1]["reply"] else say(text.casefold(), target)

    report = run_passes(str(source), [TranslationPass({"es": Backwards(one_is_there)})], tmp_path / "out")
    own, found = rows(source, "es-responses"), rows(tmp_path / "out", "es-responses")
    assert found[: len(own)] == own
    added = found[len(own) :]
    assert {row["source"] for row in added} == {"translated"}
    assert {row["count"] for row in added} == {None}
    texts = [row["reply"] for row in added]
    assert texts == list(dict.fromkeys(say(row["reply"].casefold(), "es") for row in english if row != english[1]))
    pairs = open_prepared(str(source)).report()["configs"]["es"]["train"]["rows"]
    distinct = len({row["reply"] for row in rows(source, "es")})
    assert added[0]["log_prob"] == pytest.approx(-math.log(pairs + distinct))  # type: ignore[comparison-overlap]
    counts = report["passes"][0]["about"]["counts"]["es-responses"]
    assert counts == {"in": len(english), "kept": len(added), DUPLICATE: len(english) - len(added)}


def test_what_is_no_translation_is_dropped_and_counted_by_reason(source: Path, tmp_path: Path) -> None:
    def answer(text: str, target: str) -> str:
        if "?" in text:
            return " "
        return text.upper() if "thank" in text else say(text, target)

    translator = Backwards(answer, longest=60)
    found = TranslationPass({"de": translator}, identifier=Letters())
    report = run_passes(str(source), [found], tmp_path / "out")
    wanted = []
    dropped: Counter[str] = Counter()
    for row in rows(source, "en"):
        reasons = []
        for text in row.values():
            said = answer(text, "de") if len(text) <= 60 else ""
            if len(text) > 60:
                reasons.append("too long for the model")
            elif not said.strip():
                reasons.append("no translation")
            elif is_copy(text, said):
                reasons.append("copy of the source")
            elif "z" in said:
                reasons.append("other language")
        if reasons:
            dropped[reasons[0]] += 1
        else:
            wanted.append({name: answer(text, "de") for name, text in row.items()})
    assert sorted(dropped) == sorted(REASONS.values())
    assert rows(tmp_path / "out", "mt-de") == wanted
    counts = report["passes"][0]["about"]["counts"]["mt-de"]
    assert counts == {"in": len(rows(source, "en")), "kept": len(wanted), **dropped}


def test_an_interrupted_run_continues_with_the_same_files_and_translates_no_text_twice(
    source: Path, tmp_path: Path
) -> None:
    whole = TranslationPass({"es": Backwards(), "de": Backwards()})
    run_passes(str(source), [whole], tmp_path / "whole")
    texts = sorted(LOG)
    LOG.clear()
    for after in (0, 200, 700, 1100):
        with pytest.raises(KeyboardInterrupt):
            stopped = Backwards(fails_after=after)
            run_passes(
                str(source), [TranslationPass({"es": stopped, "de": stopped})], tmp_path / "out", resume=after > 0
            )
    run_passes(str(source), [whole], tmp_path / "out", resume=True)
    assert all_bytes(tmp_path / "out") == all_bytes(tmp_path / "whole")
    assert sorted(LOG) == texts


def test_pairs_that_are_there_are_replaced_only_on_request(source: Path, tmp_path: Path) -> None:
    run_passes(str(source), [TranslationPass({"de": Backwards()})], tmp_path / "one")
    again = TranslationPass({"de": Backwards(lambda text, target: text.swapcase() + "x")})
    with pytest.raises(InputError, match="has mt-de already; pass --replace"):
        run_passes(str(tmp_path / "one"), [again], tmp_path / "two")
    run_passes(str(tmp_path / "one"), [replace(again, replace=True)], tmp_path / "two")
    run_passes(str(source), [again], tmp_path / "wanted")
    for config in ("mt-de", "de-responses"):
        assert rows(tmp_path / "two", config) == rows(tmp_path / "wanted", config)


@pytest.mark.parametrize(("targets", "given", "sentence"), cases(__file__, "test_bad_directions_are_refused"))
def test_bad_directions_are_refused(
    source: Path, tmp_path: Path, targets: list[str], given: dict[str, str], sentence: str
) -> None:
    with pytest.raises(InputError) as caught:
        run_passes(str(source), [TranslationPass({code: Backwards() for code in targets}, **given)], tmp_path / "out")  # type: ignore[arg-type]
    assert str(caught.value).startswith(sentence)
    assert list(tmp_path.iterdir()) == []


def test_a_translator_of_which_nothing_is_left_is_refused(source: Path, tmp_path: Path) -> None:
    nothing = TranslationPass({"de": Backwards(lambda text, target: "")})
    with pytest.raises(InputError, match=r"mt-de: none of [\d,]+ pairs is left \(no translation [\d,]+\)"):
        run_passes(str(source), [nothing], tmp_path / "out")
    assert not (tmp_path / "out").exists()


TEXTS = st.text(st.sampled_from("ab qz!?.é日\n<>"), max_size=12)


@examples(max_examples=25)
@given(pairs=st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=40), known=st.lists(TEXTS, max_size=5))
def test_no_pair_is_lost_or_doubled(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]], known: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("pairs")
    LOG.clear()

    def answer(text: str, target: str) -> str:
        return "" if "q" in text else text[::-1]

    translator = Backwards(answer, longest=10)
    with TextCache[str](folder / "cache", translator.facts, "en-de {}") as cache:
        cache.add({text: f"known {text}".strip() for text in known})
    columns = {"message": [message for message, _ in pairs], "reply": [reply for _, reply in pairs]}
    pq.write_table(pa.table(columns, pa.schema([("message", pa.string()), ("reply", pa.string())])), folder / "pairs")
    read = Rows("en", "train", 0, folder / "pairs", 0, len(pairs))
    work = Translation(
        read, ("message", "reply"), "en", "de", translator, Letters(), folder / "shard", folder / "cache"
    )
    moved: list[int] = []
    counts = work(moved.append)
    table = work.read()
    codes = table[CODE].to_pylist()
    assert len(codes) == len(pairs) == sum(moved) == counts["rows"]
    assert Counter(REASONS[code] for code in codes if code != KEPT) == Counter(
        {reason: count for reason, count in counts.items() if reason != "rows"}  # type: ignore[misc]
    )
    for (message, reply), row, code in zip(pairs, table.to_pylist(), codes, strict=True):
        for text, said in ((message, row["message"]), (reply, row["reply"])):
            wanted = f"known {text}" if text in known else answer(text, "de") if len(text) <= 10 else ""
            assert said == wanted.strip()
            if code == KEPT:
                assert said.strip()
                assert "z" not in said
    assert sorted(LOG) == sorted({f"de: {text}" for pair in pairs for text in pair if text not in known})


@pytest.mark.parametrize(("text", "translation", "copied"), cases(__file__, "test_copies"))
def test_copies(text: str, translation: str, copied: bool) -> None:
    assert is_copy(text, translation) is copied


def test_a_dictionary_translates_word_by_word(tmp_path: Path) -> None:
    (tmp_path / "d.tsv").write_text("yes\tja\nof course\tnatürlich\n", encoding="utf-8")
    found = DictionaryTranslator(tmp_path / "d.tsv")
    assert found.translate(["Yes, of course!", "no"], "en", "de") == ["Ja, natürlich!", ""]
    assert found.fits(["no"], "en", "de") == [True]
    assert found.translate(["Yes, yes, yes, maybe.", "Yes, yes, maybe."], "en", "de") == ["Ja, ja, ja, maybe.", ""]
    assert found.translate(["Yes <url> <user> 10!", "Of course it's 10."], "en", "de") == ["Ja <url> <user> 10!", ""]
    assert found.facts.version == type(found)(tmp_path / "d.tsv").facts.version
    with pytest.raises(InputError, match="no such file"):
        DictionaryTranslator(tmp_path / "none.tsv")
