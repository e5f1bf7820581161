"""The character model against modified Kneser-Ney smoothing in plain Python, and its file."""

import json
import math
from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import save_file

from mrs_datasets.corpus.ngrams import FALLBACK, CharacterModel, model_text
from mrs_suggest.common.errors import InputError

TEXTS = st.lists(st.text("abé1B 猫", min_size=0, max_size=9), min_size=1, max_size=8)


class Plain:
    """Chen and Goodman 1999, section 3, with one dictionary of counts per order."""

    def __init__(self, texts: list[str], order: int) -> None:
        rows = [["<s>", *model_text(text), "</s>"] for text in texts]
        self.order = order
        raw = [
            Counter(tuple(row[at : at + n]) for row in rows for at in range(len(row) - n + 1))
            for n in range(1, order + 1)
        ]
        self.counts: list[dict[tuple[str, ...], int]] = []
        for n, found in enumerate(raw, start=1):
            before: dict[tuple[str, ...], set[str]] = defaultdict(set)
            for longer in raw[n] if n < order else ():
                before[longer[1:]].add(longer[0])
            self.counts.append(
                {
                    gram: count if n == order or gram[0] == "<s>" else len(before[gram])
                    for gram, count in found.items()
                    if gram != ("<s>",)
                }
            )
        self.width = len({gram[0] for gram in self.counts[0]} | {"</s>"}) + 1  # and the unknown character
        self.rates = [self.discounts(counts) for counts in self.counts]

    @staticmethod
    def discounts(counts: dict[tuple[str, ...], int]) -> tuple[float, float, float]:
        t = [sum(count == n for count in counts.values()) for n in (1, 2, 3, 4)]
        if all(t[:3]):
            y = Fraction(t[0], t[0] + 2 * t[1])
            found = [n - (n + 1) * y * Fraction(t[n], t[n - 1]) for n in (1, 2, 3)]
            if all(0 < rate <= n for n, rate in enumerate(found, start=1)):
                return float(found[0]), float(found[1]), float(found[2])
        return FALLBACK

    def p(self, character: str, context: tuple[str, ...]) -> float:
        counts, rates = self.counts[len(context)], self.rates[len(context)]
        after = [count for gram, count in counts.items() if gram[:-1] == context]
        lower = self.p(character, context[1:]) if context else 1 / self.width
        if not after:
            return lower
        own = counts.get((*context, character), 0)
        taken = rates[min(own, 3) - 1] if own else 0
        weight = sum(rates[min(count, 3) - 1] for count in after) / sum(after)
        return (own - taken) / sum(after) + weight * lower

    def log_probabilities(self, text: str) -> list[float]:
        row = ["<s>", *model_text(text), "</s>"]
        return [math.log(self.p(row[at], tuple(row[max(0, at - self.order + 1) : at]))) for at in range(1, len(row))]


@settings(max_examples=60)
@given(TEXTS, TEXTS, st.integers(1, 4))
def test_the_model_is_modified_kneser_ney(texts: list[str], others: list[str], order: int) -> None:
    model, plain = CharacterModel.train(texts, order), Plain(texts, order)
    asked = [*others, "zé\U0001f600a", ""]  # with characters that the model has not seen
    found, numbers = model.log_probabilities(asked)
    expected = [plain.log_probabilities(text) for text in asked]
    assert [int((numbers == n).sum()) for n in range(len(asked))] == [len(row) for row in expected]
    np.testing.assert_allclose(found, np.concatenate(expected), rtol=1e-5, atol=1e-6)
    means = [math.exp(-sum(row) / len(row)) for row in expected]
    np.testing.assert_allclose(model.perplexities(asked), means, rtol=1e-5)


@given(TEXTS, TEXTS)
def test_a_text_s_perplexity_depends_on_it_alone(texts: list[str], others: list[str]) -> None:
    model = CharacterModel.train(texts, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mrs_datasets.corpus.ngrams.BATCH_CHARACTERS", 20)
        together = model.perplexities(others)
    assert together.tolist() == [float(model.perplexities([text])[0]) for text in others]


def test_case_and_digits_do_not_count_and_disorder_does() -> None:
    model = CharacterModel.train(["the cat sat on the mat at 7", "the dog sat on the cat at 9"])
    plain, shouted, shuffled = model.perplexities(["the cat sat at 3", "THE CAT sat at 8", "at sat eht 3 tac"])
    assert plain == shouted < shuffled


def test_the_file_gives_the_same_model_and_equal_bytes(tmp_path: Path) -> None:
    texts = ["un texto corto", "otro texto, más largo"]
    for name in ("a", "b"):
        CharacterModel.train(texts, 4).save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    model = CharacterModel.load(tmp_path / "a")
    assert (model.order, model.facts["texts"], model.facts["characters"]) == (4, 2, sum(map(len, texts)))
    asked = [*texts, "xyz"]
    assert model.perplexities(asked).tolist() == CharacterModel.train(texts, 4).perplexities(asked).tolist()


def damage(path: Path, name: str) -> None:
    with safe_open(path, "numpy") as file:
        metadata, tensors = file.metadata(), {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    if name == "cut":
        path.write_bytes(path.read_bytes()[:-7])
    elif name == "other format":
        save_file(tensors, path, {"config": json.dumps({**json.loads(metadata["config"]), "format": "x"})})
    elif name == "no settings":
        save_file(tensors, path)
    elif name == "too few levels":
        del tensors["3.keys"]
        save_file(tensors, path, metadata)
    else:
        changed = tensors[name].copy()
        changed[0] = {"2.keys": 10**9, "2.log_p": np.nan, "1.keys": 5, "alphabet": 2**31}[name]
        save_file({**tensors, name: changed}, path, metadata)


@pytest.mark.parametrize(
    "name", ["cut", "other format", "no settings", "too few levels", "2.keys", "2.log_p", "1.keys", "alphabet"]
)
def test_damaged_files_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "de.safetensors"
    CharacterModel.train(["ein kurzer Text", "noch einer"], 3).save(path)
    damage(path, name)
    with pytest.raises(InputError, match=r"de\.safetensors: not a model that .* --reference\.$"):
        CharacterModel.load(path)
    with pytest.raises(InputError, match="no such file"):
        CharacterModel.load(tmp_path / "none")
