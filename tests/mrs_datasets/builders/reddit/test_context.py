"""The column `context`: the turns before each message, by the rules for messages, whatever the order of work."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from mrs_datasets.builders.passes import run_passes
from mrs_datasets.builders.pipeline.work_folder import work_place
from mrs_datasets.builders.reddit import months as months_stage
from mrs_datasets.builders.reddit import write as write_stage
from mrs_datasets.builders.reddit.build import build
from mrs_datasets.builders.reddit.plan import make_settings
from mrs_datasets.builders.toxicity import Rule, ToxicityPass
from mrs_datasets.check.check import check
from mrs_datasets.prepared.prepared import open_prepared
from mrs_datasets.prepared.publishing import prepared_publication
from mrs_suggest.common.text.language_id import LanguageIdentifier
from tests.dumps import parquet_bytes
from tests.mrs_datasets.builders.reddit.test_build import FEW, JANUARY, Backwards, Month, Stub, make, plan_of
from tests.mrs_datasets.builders.test_toxicity import Fake

Thread = list[tuple[str, str, str, dict[str, Any]]]  # id, parent's id, text, other fields
LONG = 12  # comments in the longest thread


@pytest.fixture(autouse=True)
def _stub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LanguageIdentifier, "open", lambda _: Stub())


def chain(name: str, *texts: str, **fields: Any) -> Thread:
    """A comment, the answer to it, the answer to that, and so on."""
    return [(f"{name}{n}", f"{name}{n - 1}" if n else "", text, fields) for n, text in enumerate(texts)]


def dump(path: Path, *threads: Thread) -> Month:
    """A dump of these threads among enough others for all splits."""
    month = Month(path)
    others = [chain(f"o{n}x", *(f"en {n} turn {turn}" for turn in range(2 + n % LONG))) for n in range(40)]
    for number, thread in enumerate([*threads, *others]):
        link = f"t3_{path.stem}{number}"
        for own, parent, body, fields in reversed(thread):  # answers before what they answer
            row = {"id": own, "parent_id": f"t1_{parent}" if parent else link, "link_id": link, "body": body}
            month.lines.append(json.dumps({**row, "score": 1, "created_utc": JANUARY, "author": "a", **fields}))
    return month


def contexts(out: Path) -> dict[tuple[str, str], str]:
    """Message and reply -> context, of all pairs."""
    data = open_prepared(str(out))
    rows = [row for code in data.languages() for split in data.splits(code) for row in data.load(code, split)]
    assert all(list(row) == ["message", "reply", "context"] for row in rows)
    return {(row["message"], row["reply"]): row["context"] for row in rows}


@pytest.mark.parametrize("turns", [1, 2, 5])
@pytest.mark.parametrize("buckets", [1, 4])
def test_the_turns_before_a_message_are_kept_oldest_first(
    tmp_path: Path, model: Path, turns: int, buckets: int
) -> None:
    branches: Thread = [
        *chain("b", "en root", "en left"),
        ("c", "b0", "en right", {}),
        ("d", "c", "en below\nright\r\n!", {}),
        ("e", "d", "en last", {}),
        ("f", "e", "en end", {}),
    ]
    plan = plan_of(tmp_path, dump(tmp_path / "RC_2018-01", branches), buckets=buckets)
    make(tmp_path, model, plan, make_settings("paper", **FEW, context=turns))
    found = contexts(tmp_path / "out")
    for number in range(40):
        texts = [f"en {number} turn {turn}" for turn in range(2 + number % LONG)]
        for place in range(len(texts) - 1):
            before = texts[max(0, place - turns) : place]
            assert found[texts[place], texts[place + 1]] == "\n".join(before)
    assert found["en root", "en left"] == found["en root", "en right"] == ""
    assert found["en right", "en below\nright\r\n!"] == "en root"
    assert found["en last", "en end"].split("\n") == ["en root", "en right", "en below right !"][-turns:]
    assert [finding for finding in check(open_prepared(str(tmp_path / "out"))) if finding.level == "error"] == []
    card = yaml.safe_load((tmp_path / "out" / "README.md").read_text(encoding="utf-8").split("---")[1])
    features = {info["config_name"]: [each["name"] for each in info["features"]] for info in card["dataset_info"]}
    assert features["en"] == ["message", "reply", "context"]
    assert "context" not in features["en-responses"]
    assert prepared_publication(tmp_path / "out", "some/data").files()


def test_what_makes_no_message_ends_the_context_and_texts_are_masked(tmp_path: Path, model: Path) -> None:
    """A voted-down comment, an uncertain language, another language, a comment that was removed."""
    middle = "en see https://example.com/a and ask /u/some_one or me@some.example"
    low = chain("l", "en low 0", "en low 1", "en low 2", "en low 3")
    low[1] = (*low[1][:3], {"score": -1})
    plan = plan_of(
        tmp_path,
        dump(
            tmp_path / "RC_2018-01",
            chain("m", "en first", middle, "en third", "en fourth"),
            low,
            chain("u", "? unclear 0", "en unclear 1", "en unclear 2", "en unclear 3"),
            chain("g", "de eins", "de zwei", "en three", "en four", "en five"),
            chain("r", "en removed 0", "[removed]", "en removed 2", "en removed 3"),
        ),
    )
    make(tmp_path, model, plan, make_settings("paper", **FEW, context=3))
    found = contexts(tmp_path / "out")
    assert found["en third", "en fourth"] == "en first\nen see <url> and ask <user> or <email>"
    assert found["en low 2", "en low 3"] == ""
    assert ("en low 0", "en low 1") not in found
    assert found["en unclear 2", "en unclear 3"] == "en unclear 1"
    assert found["en four", "en five"] == "en three"  # German needs a split and is left out; so it is not here either
    assert found["en removed 2", "en removed 3"] == ""
    assert not [text for text in found.values() if "some" in text or "example" in text or "removed" in text]


def test_cleaned_turns_are_those_of_the_clean_messages(tmp_path: Path, model: Path) -> None:
    thread = [
        *chain("c", "en **bold**", "en [words](https://a.example/b)", "en more", "en end"),
        *chain("d", "en start", "https://a.example en", "en after", "en last"),
    ]
    plan = plan_of(tmp_path, dump(tmp_path / "RC_2018-01", thread))
    make(tmp_path, model, plan, make_settings("clean", **FEW, split_by="example", drop_bots=False, context=4))
    found = contexts(tmp_path / "out")
    assert found["en more", "en end"] == "en bold\nen words"
    assert found["en after", "en last"] == "en start\n<url> en"
    assert all("**" not in text and "https" not in text for text in found.values())


def test_order_of_work_buckets_and_interruptions_do_not_change_a_byte(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = chain("m", *(f"en long {turn}" for turn in range(9)))
    months = [dump(tmp_path / "RC_2018-01", thread), dump(tmp_path / "RC_2018-02")]
    settings = make_settings("clean", **FEW, split_by="example", context=3)
    plan = plan_of(tmp_path, *months)
    make(tmp_path, model, plan, settings)
    expected = parquet_bytes(tmp_path / "out")
    make(tmp_path, model, plan, settings, overwrite=True, engine=Backwards())
    assert parquet_bytes(tmp_path / "out") == expected
    make(tmp_path, model, plan_of(tmp_path, *months, buckets=1), settings, overwrite=True)
    texts = contexts(tmp_path / "out")
    make(tmp_path, model, plan, make_settings("clean", **FEW, split_by="example"), overwrite=True)
    plain = parquet_bytes(tmp_path / "out")
    with monkeypatch.context() as patch:
        patch.setattr(write_stage, "write_data_set", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            make(tmp_path, model, plan, make_settings("clean", **FEW, split_by="example"), overwrite=True)
    before = json.loads((work_place(tmp_path / "out") / "settings.json").read_text(encoding="utf-8"))
    assert "context" not in json.dumps(before)
    monkeypatch.setattr(months_stage, "month_shard", lambda *_: 1 / 0)  # months are not read again
    said: list[str] = []
    shutil.rmtree(tmp_path / "out")
    build(plan, tmp_path / "out", settings, model, resume=True, say=said.append)
    assert said[0].startswith("resuming with different context: dependent stages are rebuilt")
    assert parquet_bytes(tmp_path / "out") == expected != plain
    assert contexts(tmp_path / "out") == texts


def test_a_pair_with_a_toxic_turn_before_it_is_dropped(tmp_path: Path, model: Path) -> None:
    thread = chain("t", "en fine", "en awful", "en so", "en what", "en then")
    make(
        tmp_path,
        model,
        plan_of(tmp_path, dump(tmp_path / "RC_2018-01", thread)),
        make_settings("paper", **FEW, context=1),
    )
    scorer = Fake(gives=lambda text: 0.95 if "awful" in text else 0.1)
    run_passes(str(tmp_path / "out"), [ToxicityPass((Rule(scorer, 0.9),))], tmp_path / "kept")
    before, after = contexts(tmp_path / "out"), contexts(tmp_path / "kept")
    assert {pair: text for pair, text in before.items() if pair not in after} == {
        ("en fine", "en awful"): "", ("en awful", "en so"): "en fine", ("en so", "en what"): "en awful",
    }  # fmt: skip
    assert after["en what", "en then"] == "en so"
    assert "" not in {text for _, text in scorer.asked}
