"""Messages with the turns before them: the message is never cut for a turn, and the newest turns stay."""

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mrs_suggest.models.retrieval.context import ContextReader
from mrs_suggest.models.retrieval.dual_encoder import build_dual_encoder
from mrs_suggest.models.retrieval.routes import context_reader
from mrs_suggest.suggest.pipeline_config import save_config

TEXTS = st.text("ab c\n日é?", max_size=30)
ENCODERS = ("two", "one", "static")


@pytest.fixture(scope="module", params=[(kind, name) for kind in ENCODERS for name in ("checkpoint", "unigram")])
def reader(request: pytest.FixtureRequest) -> ContextReader:
    kind, name = request.param
    model = build_dual_encoder(
        str(request.getfixturevalue(name)), "mean", 12, 5, encoders=kind, query_prompt="query: ", dimension=8
        if kind == "static" else None,
    )  # fmt: skip
    return context_reader(model, 3)


def size(reader: ContextReader, text: str) -> int:
    return len(reader.tokenizer.encode(reader.prompt + text))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(turns=st.lists(TEXTS, max_size=5), message=TEXTS)
def test_the_message_stays_whole_and_the_oldest_text_goes(
    reader: ContextReader, turns: list[str], message: str
) -> None:
    text = reader.read(turns, message)
    assert text.endswith(message)
    if size(reader, message) >= reader.tokens:
        assert text == message
    assert size(reader, text) <= max(reader.tokens, size(reader, message))
    separator = "".join(reader.tokenizer.encode("").tokens[-1:]) or "\n"
    wanted = [re.sub("\n+", " ", turn) for turn in turns if turn.strip()][-3:]
    whole = separator.join([*wanted, message])
    assert whole.endswith(text)
    if size(reader, whole) <= reader.tokens:
        assert text == whole
    elif text != whole:  # with one more character it would be too long, or begin with a separator
        cut = whole[: len(whole) - len(text)]
        assert size(reader, cut[-1:] + text) > reader.tokens or cut.endswith(separator)


def test_whole_turns_stay_newest_last(checkpoint: Path) -> None:
    model = build_dual_encoder(str(checkpoint), "mean", 12, 12)
    reader = context_reader(model, 2)
    end = reader.tokenizer.encode("").tokens[-1]
    assert reader.read([], "a b") == "a b"
    assert reader.read(["x", "c\r\nd", " ", "e"], "a b") == f"c d{end}e{end}a b"
    # 12 tokens: two ends of the text, one for each separator, and one for each letter
    assert reader.read(["g h i j k", "e f"], "a b c") == f" i j k{end}e f{end}a b c"
    assert reader.read(["x", "y z " * 9], "a b c d e f g h i j k l") == "a b c d e f g h i j k l"


def test_a_saved_reader_reads_the_same(checkpoint: Path, tmp_path: Path) -> None:
    for kind in ENCODERS:
        folder = tmp_path / kind
        model = build_dual_encoder(
            str(checkpoint), None if kind == "static" else "mean", 9, 5, encoders=kind, query_prompt="q "
        )
        model.encode_document(["a b c d e f g"])  # with the other length
        model.save_pretrained(str(folder))
        assert ContextReader.load(folder) is None
        save_config(folder)
        assert ContextReader.load(folder) is None
        reader = context_reader(model, 2)
        save_config(folder, context={"turns": reader.turns, "tokens": reader.tokens})
        loaded = ContextReader.load(folder)
        assert loaded is not None
        for turns in (["a"], ["a b c", "d e f g h i"], ["k"] * 4):
            assert loaded.read(turns, "x y") == reader.read(turns, "x y")
