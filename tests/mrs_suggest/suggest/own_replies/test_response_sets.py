"""Response sets of one's own in a trained retriever: the embedded baseline, changed without training."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from mrs_suggest.common.errors import ArgumentError, InputError
from mrs_suggest.common.hub.baselines import read_baselines
from mrs_suggest.common.io.manifest import require_undamaged
from mrs_suggest.models.retrieval.dual_encoder import load_dual_encoder
from mrs_suggest.models.retrieval.encode import encode_replies
from mrs_suggest.models.saved.families import model_card, write_record
from mrs_suggest.models.saved.record import read_record
from mrs_suggest.suggest.own_replies.file import read_response_file
from mrs_suggest.suggest.own_replies.sets import ADDED, BUILT, REMEMBERED, REMOVED, ResponseSets
from mrs_suggest.suggest.own_replies.sets import OWN as OWN_TEXTS
from mrs_suggest.suggest.ranking.own_ranker import WEIGHTS
from mrs_suggest.suggest.ranking.second_stage import SecondStage
from mrs_suggest.suggest.reply_tags import ReplyTags
from mrs_suggest.suggest.retrieval_suggester import RetrievalSuggester
from mrs_suggest.suggest.suggester import Suggester
from mrs_suggest.training.retrieval import FAMILY as RETRIEVAL

KNOWN = """reply
"Yes, see you then."
You're welcome!
Could you send me your order number?
"""
OWN = """reply,weight,tags
"Your order ships today, promise.",40,shipping
Thank you for your patience!,60,polite
I will check that for you.,25,polite formal
Could you send me your order number?,30,
"Yes, see you then!",5,casual
No problem at all.,8,casual
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished run, with a file that is not published."""
    monkeypatch.setattr("mrs_suggest.suggest.own_replies.sets.MOST_FOREIGN", 100)  # for speed
    folder = shutil.copytree(read_baselines()["everyday-retriever"].folder, tmp_path / "run")
    (folder / "checkpoint-3").mkdir()
    (folder / "checkpoint-3" / "optimizer.pt").write_bytes(b"0" * 100)
    return folder


def changed(
    run: Path, text: str, action: str = BUILT, language: str = "en", out: Path | None = None, keep_others: bool = False
) -> dict[str, object]:
    file = run.parent / "own.csv"
    file.write_text(text, encoding="utf-8")
    return ResponseSets(run).change(read_response_file(file), language, action, file, out, keep_others=keep_others)


def ranked(folder: Path) -> RetrievalSuggester:
    model = Suggester.from_pretrained(folder, verify=True).model
    assert isinstance(model, RetrievalSuggester)
    assert model.rankers or model.own
    return model


def test_a_set_of_one_s_own_is_suggested_from(run: Path, tmp_path: Path) -> None:
    before = {path.relative_to(run): path.read_bytes() for path in run.rglob("*") if path.is_file()}
    old = ranked(run).indexes["en"]
    told = changed(run, OWN, out=tmp_path / "out")
    assert (told["replies"], told["new"], told["gone"]) == (6, 4, len(old.replies) - 2)
    assert {path.relative_to(run): path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
    model = ranked(tmp_path / "out")
    index = model.indexes["en"]
    assert index.replies == [
        line.split(",")[0] if line[0] != '"' else line.split('"')[1] for line in OWN.split("\n")[1:-1]
    ]
    vectors = encode_replies(load_dual_encoder(run), index.replies)
    assert np.allclose(index.vectors, vectors, atol=1e-5)
    assert np.allclose(np.exp(index.log_probs), (np.array([40, 60, 25, 30, 5, 8]) + 1) / (168 + 6))
    assert (list(model.own), list(model.rankers), told["ranked"]) == (["en"], [], OWN_TEXTS)
    answers = Suggester.from_pretrained(tmp_path / "out").suggest(["Are you coming to dinner tonight?"], "en")[0]
    assert answers[0].reply == "Yes, see you then!"
    assert {answer.reply for answer in answers} <= set(index.replies)
    assert not (tmp_path / "out" / "checkpoint-3").exists()


def test_where_most_replies_are_known_they_keep_their_memory_and_a_new_one_has_a_share(run: Path) -> None:
    old = ranked(run).rankers["en"]
    assert changed(run, KNOWN)["ranked"] == REMEMBERED
    new = ranked(run).rankers["en"]
    row = new.index.replies.index("Yes, see you then.")
    before = old.index.replies.index("Yes, see you then.")
    message = "Are you coming to dinner tonight?"
    vector = ranked(run)._encode([message])[0]
    names = list(new.settings.names)
    for part in ("direct", "nearest", "votes"):
        column = names.index(part)
        found = (ranker.parts(message, vector)[at, column] for ranker, at in ((new, row), (old, before)))
        assert next(found) == pytest.approx(next(found), abs=2e-2), part  # the stored vectors have 8 bits
    assert new.share[row] == old.share[before] == 1
    fresh = new.index.replies.index("Could you send me your order number?")
    place, cosine = old.nearest_remembered("Could you send me your order number?")
    assert 0 < new.share[fresh] == pytest.approx(cosine)
    begin = new.memory.starts[new.memory.groups[new.remembered[fresh]]]
    before = old.memory.starts[old.memory.groups[place]]
    assert np.array_equal(new.memory.vectors[begin], old.memory.vectors[before])
    assert len(new.memory.vectors) < len(old.memory.vectors)  # what no reply needs is forgotten


def test_replies_are_added_and_removed_again(run: Path) -> None:
    messages = ["Are you coming to dinner tonight?", "Thank you for your help!", "I lost my keys"]
    first = Suggester.from_pretrained(run).suggest(messages, "en", 5)
    old = ranked(run).rankers["en"]
    extra = "Your parcel is on its way.\nI am looking into that refund.\n"
    file = run.parent / "extra.txt"
    file.write_text(extra, encoding="utf-8")
    rows = read_response_file(file)
    assert ResponseSets(run).change(rows, "en", ADDED, file)["new"] == 2
    more = ranked(run).rankers["en"]
    assert more.index.replies == [*old.index.replies, *extra.split("\n")[:-1]]
    assert np.array_equal(more.index.vectors[:-2], old.index.vectors)
    assert more.index.log_probs[-1] == old.index.log_probs.min()
    assert np.array_equal(more.share[:-2], old.share)
    assert (more.share[-2:] < 1).all()
    assert ResponseSets(run).change(rows, "en", REMOVED, file)["gone"] == 2
    again = Suggester.from_pretrained(run).suggest(messages, "en", 5)
    assert [[s.reply for s in row] for row in again] == [[s.reply for s in row] for row in first]
    for row, other in zip(again, first, strict=True):
        assert [s.score for s in row] == pytest.approx([s.score for s in other], rel=1e-4)
    assert [one["change"] for one in ResponseSets(run).record["response_sets"]["en"]] == [ADDED, REMOVED]


def test_added_replies_stand_before_those_that_only_the_memory_has(run: Path) -> None:
    settings = run / "ranker" / "ranker.json"
    facts = {"width": 40, **json.loads(settings.read_text(encoding="utf-8"))}
    settings.write_text(json.dumps({**facts, "own_replies": {"en": 400, "es": 100}}))
    write_record(run, read_record(run), RETRIEVAL)
    old = ranked(run).indexes["en"]
    changed(run, "reply\nYour parcel is on its way.\nI am looking into that refund.\n", ADDED)
    model = ranked(run)
    index = model.indexes["en"]
    assert index.replies[:400] == old.replies[:400]
    assert index.replies[400:402] == ["Your parcel is on its way.", "I am looking into that refund."]
    assert index.replies[402:] == old.replies[400:]
    assert np.array_equal(index.vectors[402:], old.vectors[400:])
    assert np.array_equal(index.log_probs[402:], old.log_probs[400:])
    assert json.loads(settings.read_text(encoding="utf-8")) == {
        **facts, "own_replies": {"en": 402, "es": 100},
    }  # fmt: skip
    assert (model.rankers["en"].source(401), model.rankers["en"].source(402)) == ("set", "memory")
    part = model.restricted("en", np.array([0, 401, 402]))
    assert part is not None
    assert part.rankers["en"].own == 2
    changed(run, KNOWN, keep_others=True)
    stored = {**facts, "own_replies": {"es": 100}}
    assert json.loads(settings.read_text(encoding="utf-8")) == stored
    changed(run, OWN, keep_others=True)
    del stored["weights"]["en"]
    assert json.loads(settings.read_text(encoding="utf-8")) == stored


def test_a_removed_reply_is_never_suggested(run: Path) -> None:
    messages = ["Are you coming to dinner tonight?", "See you at eight?"]
    gone = [s.reply for row in Suggester.from_pretrained(run).suggest(messages, "en") for s in row]
    changed(run, "reply\n" + "".join(f'"{reply.upper()}"\n' for reply in dict.fromkeys(gone)), REMOVED)
    found = [s.reply for row in Suggester.from_pretrained(run).suggest(messages, "en", 50) for s in row]
    assert len(found) == 100
    assert not set(found) & set(gone)


def test_the_run_in_place_keeps_its_files_and_other_languages(run: Path) -> None:
    own = ("response_index/en/", "ranker/en.", "run.json", "README.md")
    files = {path.relative_to(run).as_posix(): path.read_bytes() for path in run.rglob("*") if path.is_file()}
    before = replies_of(run)
    assert changed(run, OWN, keep_others=True)["dropped"] == []
    require_undamaged(run, verify=True)
    others = {name: content for name, content in files.items() if not name.startswith((*own, "ranker/ranker.json"))}
    assert "checkpoint-3/optimizer.pt" in others
    assert {name: (run / name).read_bytes() for name in others} == others
    record = json.loads((run / "run.json").read_text(encoding="utf-8"))
    (told,) = record["response_sets"]["en"]
    assert (told["file"], told["tags"]) == ("own.csv", {"casual": 2, "formal": 1, "polite": 2, "shipping": 1})
    assert "response_index/en/tags.json" in record["files"]
    card = (run / "README.md").read_text(encoding="utf-8")
    assert card == model_card(record)
    assert "own.csv" in card
    assert "response_index/en/tags.json" in RETRIEVAL.publication(run, "org/x", card).files()
    after = replies_of(run)
    assert len(after.pop("en")) == 6
    assert after == {code: replies for code, replies in before.items() if code != "en"}


def test_a_change_that_fails_leaves_the_run_as_it_was(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {path.relative_to(run): path.read_bytes() for path in run.rglob("*") if path.is_file()}
    beside = sorted(run.parent.iterdir())

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ReplyTags, "save", full)
    with pytest.raises(InputError, match="No space left"):
        changed(run, OWN)
    with pytest.raises(InputError, match="no reply would be left in en"):
        replies = [json.dumps(reply, ensure_ascii=False) for reply in ranked(run).indexes["en"].replies]
        changed(run, "\n".join(["reply", *replies]) + "\n", REMOVED)
    assert {path.relative_to(run): path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
    assert [path for path in sorted(run.parent.iterdir()) if path.name != "own.csv"] == beside


def test_a_new_language_is_ranked_by_texts(run: Path) -> None:
    told = changed(run, 'reply\n"Ja, gerne!"\n"Nein, leider nicht."\n', language="de-AT")
    assert told["ranked"] == OWN_TEXTS
    suggester = Suggester.from_pretrained(run)
    (answers,) = suggester.suggest(["Kommst du?"], "de-AT", min_score=0)
    assert {answer.reply for answer in answers} == {"Ja, gerne!", "Nein, leider nicht."}
    assert set(answers[0].parts) == set(WEIGHTS)
    assert (
        suggester.detect("Kommst du heute Abend zum Essen?")[0] == "de"
    )  # the detector does not know the new language


GERMAN = "reply\nDas sehe ich mir gleich an.\nDazu melde ich mich morgen.\n"


def replies_of(folder: Path) -> dict[str, set[str]]:
    model = ranked(folder)
    assert {*model.rankers, *model.own} <= set(model.indexes)
    return {code: set(index.replies) for code, index in model.indexes.items()}


def test_a_set_of_one_s_own_is_answered_from_in_its_language_and_no_other(run: Path) -> None:
    told = changed(run, OWN)
    assert told["dropped"] == ["de", "es", "fr", "it", "ja", "nl", "pt", "ru", "sv"]
    approved = {row.reply for row in read_response_file(run.parent / "own.csv")}
    assert replies_of(run) == {"en": approved}
    assert not list(run.glob("response_index/de/*"))
    assert not list(run.glob("ranker/de.*"))
    suggester = Suggester.from_pretrained(run)
    others = ["Kommst du heute Abend zum Essen?", "¿Quedamos mañana?", "hola", "Danke!"]
    for answers in (suggester.suggest(others), [suggester.suggest([text], "de")[0] for text in others]):
        assert [(list(answer), answer.reason) for answer in answers] == [([], "no_replies")] * 4
    for message in ("Where is my order?", "hi", "ok", "😂", "Thanks!"):
        (answer,) = suggester.suggest([message], k=50, prefer=["de"], min_score=0)
        assert answer.language == "en"
        assert answer
        assert {one.reply for one in answer} <= approved
    with pytest.raises(InputError, match="the model answers en"):
        suggester.suggest(["Tere!"], "et")
    assert "It no longer answers in `de`, `es`" in (run / "README.md").read_text(encoding="utf-8")
    # Sets in several languages come one after another.
    assert changed(run, GERMAN, language="de")["dropped"] == []
    assert {code: len(replies) for code, replies in replies_of(run).items()} == {"en": 6, "de": 2}
    changed(run, "reply\nBien reçu.\n", ADDED, language="fr")
    assert changed(run, OWN)["dropped"] == []
    assert set(replies_of(run)) == {"de", "en", "fr"}


def test_a_generator_writes_no_replies_to_a_set_of_one_s_own(run: Path) -> None:
    file = run.parent / "own.csv"
    file.write_text(KNOWN, encoding="utf-8")
    for generated, kept in ((0, True), (3, False)):
        sets = ResponseSets(run)
        stage = SecondStage(Mock(), Mock(), "en", generated, {"model": "some"})
        sets.rankers._loaded["en"] = replace(sets.rankers["en"], second=stage)  # type: ignore[attr-defined]
        out = run.parent / f"out-{generated}"
        sets.change(read_response_file(file), "en", BUILT, file, out)
        assert ("generator" in json.loads((out / "ranker" / "ranker.json").read_text(encoding="utf-8"))) == kept


DESK = """reply,examples
"I have cancelled it for you.","please don't send it|I changed my mind about the lamp"
The refund takes five working days.,"when do I get my money back
nothing on my card yet"
We deliver to all of Europe.,
"""


def test_examples_of_the_model_s_own_replies_and_damaged_ones_are_refused(run: Path) -> None:
    with pytest.raises(InputError, match="examples only work in a custom set"):
        changed(run, DESK, ADDED)
    changed(run, DESK)
    (run / "response_index/en/examples.json").write_text('{"examples": [[]]}')
    write_record(run, read_record(run), RETRIEVAL)
    with pytest.raises(InputError, match=r"examples\.json: made for another response index"):
        changed(run, "reply\nYes.\n", ADDED)


def test_examples_decide_and_a_least_score_leaves_out_what_fits_worse(run: Path) -> None:
    told = changed(run, DESK)
    assert (told["examples"], told["ranked"]) == (4, OWN_TEXTS)
    suggester, message = Suggester.from_pretrained(run, verify=True, guard=False), "when do I get my money back?"
    everything = suggester(message, "en", min_score=0)
    assert len(everything) == 3
    assert everything[0].score > 0.9 > everything[2].score
    assert suggester(message, "en", min_score=0.9).replies == everything.replies[:1]
    silent = suggester("My grandmother sings in a choir.", "en", min_score=1)
    assert (list(silent), silent.reason) == ([], "no_replies")
    for wrong in (2, -0.5, True, "0.5"):
        with pytest.raises(ArgumentError, match="min_score.*from 0 to 1"):
            suggester(message, "en", min_score=wrong)  # type: ignore[call-overload]
    asked = {"Pls do not send the lamp": "I have cancelled it for you.", "my card shows nothing": "The refund"}
    for message, reply in asked.items():
        assert suggester(message, "en", min_score=0).replies[0].startswith(reply)
    before = suggester.suggest(list(asked), "en", min_score=0)
    changed(run, 'reply,examples\n"It is a known bug.","the app crashes|app is broken"\n', ADDED)
    added = Suggester.from_pretrained(run, guard=False)
    assert added("The app keeps crashing", "en", min_score=0).replies[0] == "It is a known bug."
    assert json.loads((run / "response_index/en/examples.json").read_text())["examples"][2:] == [
        [], ["the app crashes", "app is broken"],
    ]  # fmt: skip
    changed(run, "reply\nIt is a known bug.\n", REMOVED)
    again = Suggester.from_pretrained(run, guard=False).suggest(list(asked), "en", min_score=0)
    assert [row.replies for row in again] == [row.replies for row in before]


def test_a_generator_has_no_response_set(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"trainer": "generation", "metrics": {}}))
    with pytest.raises(InputError, match="a generation model has no response set"):
        ResponseSets(tmp_path)
