"""What a run of the message-reply task sets beside its figures."""

from __future__ import annotations

from mrs_suggest.training.reply.evaluation import published_figures
from mrs_suggest.training.reply.options import ReplyArguments


def test_the_papers_rows_stand_beside_a_setting_alone() -> None:
    rows = published_figures("retrieval", ReplyArguments(setting="monolingual"), ["es"])
    assert [(row["model"], row["table"], row["setting"], row["language"]) for row in rows] == [
        ("mbert", 3, "monolingual", "es"),
        ("xlmr", 5, "monolingual", "es"),
    ]
    assert rows[0]["rouge"] == 0.0187
    assert {row["language"] for row in published_figures("retrieval", ReplyArguments(setting="mt"), ["es", "ja"])} == {
        "es",
        "ja",
    }
    assert published_figures("retrieval", ReplyArguments(), ["es"]) == []
    assert published_figures("retrieval", ReplyArguments(setting="mt", train=["en"]), ["es"]) == [], (
        "other data than the paper's"
    )
    assert {row["model"] for row in published_figures("generation", ReplyArguments(setting="monolingual"), ["es"])} == {
        "xdae"
    }
