"""The small model from scratch: reproducible, and at home in scripts without spaces."""

from __future__ import annotations

import unicodedata
from pathlib import Path

from mrs_suggest.models.retrieval.tiny import build_tiny, train_tokenizer

TEXTS = [
    "明日の会議は何時からですか？", "はい、午後三時からです。", "Привет, как дела?", "Всё хорошо, спасибо!",
    "¿Quedamos mañana?", "Größe", "ＦＵＬＬ width", "Thanks 👍",
] * 2  # fmt: skip


def test_equal_seeds_equal_files_other_seeds_other_weights(tmp_path: Path) -> None:
    one, two, other = (build_tiny(TEXTS, tmp_path / str(n), seed, 200) for n, seed in enumerate((1, 1, 2)))
    for name in ("model.safetensors", "tokenizer.json", "tokenizer_config.json", "config.json"):
        assert (one / name).read_bytes() == (two / name).read_bytes()
    assert (one / "model.safetensors").read_bytes() != (other / "model.safetensors").read_bytes()
    assert (one / "tokenizer.json").read_bytes() == (other / "tokenizer.json").read_bytes()


def test_seen_text_survives_without_unknown_pieces() -> None:
    tokenizer = train_tokenizer(TEXTS, 400)
    for text in TEXTS:
        ids = tokenizer(text)["input_ids"]
        assert tokenizer.unk_token_id not in ids
        assert (ids[0], ids[-1]) == (tokenizer.cls_token_id, tokenizer.sep_token_id)
        plain = unicodedata.normalize("NFKC", text).lower()
        assert tokenizer.decode(ids, skip_special_tokens=True).strip() == plain


def test_the_vocabulary_is_bounded_and_case_folded() -> None:
    tokenizer = train_tokenizer(TEXTS, 100)
    assert len(tokenizer) <= 100
    assert tokenizer("THANKS")["input_ids"] == tokenizer("thanks")["input_ids"]
