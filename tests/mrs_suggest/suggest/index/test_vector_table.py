"""Search in two steps equals one full product: in tables, in the response index, in the memory and in the ranker."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from mrs_metrics.tokenize import get_tokenizer
from mrs_suggest.common.errors import InputError
from mrs_suggest.suggest.index import vector_table
from mrs_suggest.suggest.index.response_index import ResponseIndex, ResponseIndexes
from mrs_suggest.suggest.index.vector_table import Codes, VectorTable
from mrs_suggest.suggest.ranking.language_ranker import LanguageRanker, RankerSettings
from mrs_suggest.suggest.ranking.memory import MessageMemory
from mrs_suggest.suggest.ranking.mixture import Mixture
from mrs_suggest.suggest.ranking.rankers import Rankers, save_rankers
from mrs_suggest.suggest.ranking.reply_ngrams import ReplyNgrams

THRESHOLD = 50  # stands for the one of thousands
WEIGHTS = {"direct": 0.3, "nearest": 0.4, "votes": 0.3}


@pytest.fixture(autouse=True)
def _tables_are_coded_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_table, "CODED_FROM", THRESHOLD)


def vectors(seed: int, rows: int, dimension: int, kind: str = "random") -> torch.Tensor:
    """Rows of several kinds; `shared`: most of each row is the same, as in pretrained encoders."""
    generator = torch.Generator().manual_seed(seed)
    found = torch.randn(rows, dimension, generator=generator)
    if kind == "shared":
        found = 0.1 * found + 3 * torch.randn(dimension, generator=generator)
    elif kind == "duplicates":
        found = found[torch.randint(0, max(1, rows // 5), (rows,), generator=generator)]
    elif kind == "zeros":
        found[::2] = 0
    elif kind == "spikes":
        found[::3, 0] = 1000
    return found


def index_of(rows: torch.Tensor, clusters: list[str] | None = None, log_probs: list[float | None] | None = None,
             alpha: float = 0.0) -> ResponseIndex:  # fmt: skip
    return ResponseIndex.build(lambda _: rows, [f"reply {n}" for n in range(len(rows))], clusters, log_probs, alpha)


kinds = st.sampled_from(["random", "shared", "duplicates", "zeros", "spikes"])
sizes = st.sampled_from([1, THRESHOLD - 1, THRESHOLD, THRESHOLD + 1, 400])


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), sizes, st.sampled_from([1, 3, 64]), kinds, st.sampled_from([0.0, 1e-3, 1.0, 1e3]))
def test_estimates_are_wrong_by_their_slack_at_most(seed: int, n: int, dimension: int, kind: str, norm: float) -> None:
    table = VectorTable.build(vectors(seed, n, dimension, kind))
    query = norm * vectors(seed + 1, 1, dimension)[0]
    true = table.rows.astype(np.float64) @ query.double().numpy()
    slack = table.slack(query.numpy())
    assert (table.codes is not None) == (n >= THRESHOLD)
    rounding = 1e-6 * float(np.abs(true).max()) * dimension
    assert np.abs(table.estimates(query.numpy()) - true).max() <= slack + (0 if table.codes else rounding)
    some = np.arange(0, n, 3)
    np.testing.assert_allclose(table.products_of(some, query.numpy()), true[some], rtol=1e-6)
    np.testing.assert_allclose(table.products(query[None])[0], true, rtol=1e-4, atol=1e-4 * (1e-6 + np.abs(true).max()))


@settings(max_examples=40)
@given(
    st.integers(0, 2**32 - 1), sizes, st.sampled_from([1, 2, 48]), kinds, st.sampled_from([0.0, 0.5, 20.0]),
    st.booleans(), st.integers(1, 5),
)  # fmt: skip
def test_an_index_finds_what_a_loop_finds(
    seed: int, n: int, dimension: int, kind: str, alpha: float, grouped: bool, k: int
) -> None:
    rng = np.random.default_rng(seed)
    clusters = [str(name) for name in rng.integers(0, 7, n)] if grouped else [str(row) for row in range(n)]
    log_probs = (-9 * rng.random(n)).tolist()
    index = index_of(vectors(seed, n, dimension, kind), clusters, log_probs, alpha)
    queries = vectors(seed + 1, 3, dimension)
    numbers, scores = index.search(queries, k)
    bonus = alpha * index.log_probs if alpha else 0.0
    for query, row, values in zip(queries, numbers, scores, strict=True):
        true = np.asarray(index.vectors.astype(np.float64) @ query.double().numpy() + bonus, np.float32)
        first: dict[str, int] = {}
        for number in np.argsort(-true, kind="stable"):
            first.setdefault(clusters[number], int(number))
        expected = list(first.values())[:k]
        tolerance = 1e-5 * max(1.0, float(np.abs(true).max()))
        assert values == pytest.approx(true[row], abs=tolerance)
        assert values == pytest.approx(true[expected], abs=tolerance)  # near ties may be swapped by rounding alone
        assert len({clusters[number] for number in row}) == len(row)
        if np.diff(np.sort(true[list(first.values())])).min(initial=1) > 10 * tolerance:
            assert row.tolist() == expected


def test_what_float16_cannot_hold_stays_float32() -> None:
    table = VectorTable.build(vectors(0, THRESHOLD, 8) * 1e6)
    assert table.rows.dtype == np.float32
    assert VectorTable.build(vectors(0, THRESHOLD, 8)).rows.dtype == np.float16


@pytest.fixture(params=["without torch", "saturating"])
def _no_products_by_torch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Without torch, or on a processor whose 8-bit products saturate; a conversion of all rows is an error."""
    vector_table._codes_work.cache_clear()
    if request.param == "saturating":
        monkeypatch.setattr(torch, "_int_mm", lambda a, b: (a.int() @ b.int()).clamp(-32768, 32767))
    else:
        monkeypatch.setitem(sys.modules, "torch", None)

    def all_rows(table: VectorTable, queries: np.ndarray) -> np.ndarray:
        raise AssertionError("all rows were converted to float32")

    monkeypatch.setattr(VectorTable, "products", all_rows)
    yield
    vector_table._codes_work.cache_clear()


@pytest.mark.usefixtures("_no_products_by_torch")
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 3, 64, 700]), kinds, st.sampled_from([8, 1000, 1 << 18]))
def test_without_torch_codes_are_multiplied_in_blocks(seed: int, dimension: int, kind: str, block: int) -> None:
    table = VectorTable.build(vectors(seed, 300, dimension, kind).numpy())
    query = vectors(seed + 1, 1, dimension)[0].numpy()
    true = table.rows.astype(np.float64) @ query.astype(np.float64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_table, "_BLOCK", block)
        assert np.abs(table.estimates(query) - true).max() <= table.slack(query)


@pytest.mark.usefixtures("_no_products_by_torch")
def test_without_torch_answers_are_exact_and_no_row_is_converted() -> None:
    index, queries = index_of(vectors(0, 300, 8)), vectors(1, 3, 8).numpy()
    true = queries.astype(np.float64) @ index.vectors.astype(np.float64).T
    numbers, scores = index.search(queries, 3)
    assert numbers.tolist() == np.argsort(-true, axis=1)[:, :3].tolist()
    np.testing.assert_allclose(scores, np.take_along_axis(true, numbers, 1), rtol=1e-6)


def test_a_saved_index_answers_equally_and_files_without_codes_load(tmp_path: Path) -> None:
    index, queries = index_of(vectors(0, 120, 8)), vectors(1, 5, 8)
    index.save(tmp_path / "response_index" / "es")
    index_of(vectors(5, 120, 8)).save(tmp_path / "response_index" / "en")
    stored = load_file(tmp_path / "response_index" / "es" / "vectors.safetensors")
    assert stored["vectors"].dtype == torch.float16
    assert stored["codes"].dtype == torch.int8
    indexes = ResponseIndexes(tmp_path)
    expected = index.search(queries, 3)[0].tolist()
    assert indexes["es"].search(queries, 3)[0].tolist() == expected
    assert indexes["en"].search(queries, 3)[0].tolist() != expected
    plain = {name: stored[name].float() for name in ("vectors", "log_probs")} | {"clusters": stored["clusters"]}
    save_file(plain, tmp_path / "response_index" / "es" / "vectors.safetensors")
    assert ResponseIndexes(tmp_path)["es"].search(queries, 3)[0].tolist() == expected  # as older versions wrote it
    halved = {name: tensor.half() if tensor.is_floating_point() else tensor for name, tensor in stored.items()}
    save_file(halved, tmp_path / "response_index" / "es" / "vectors.safetensors")
    assert ResponseIndexes(tmp_path)["es"].search(queries, 3)[0].tolist() == expected
    wrong = stored | {"scales": stored["scales"][:-1].clone()}
    save_file(wrong, tmp_path / "response_index" / "es" / "vectors.safetensors")
    with pytest.raises(InputError, match="codes do not match"):
        ResponseIndexes(tmp_path)["es"]


def test_an_index_that_is_replaced_keeps_answering_who_has_loaded_it(tmp_path: Path) -> None:
    old, queries = index_of(vectors(0, 200, 8)), vectors(1, 4, 8)
    old.save(tmp_path)
    loaded = ResponseIndex.load(tmp_path)
    index_of(vectors(2, 60, 8)).save(tmp_path)  # shorter: a file cut in place would be a bus error
    assert loaded.search(queries, 3)[0].tolist() == old.search(queries, 3)[0].tolist()
    assert len(ResponseIndex.load(tmp_path).replies) == 60
    assert not [path for path in tmp_path.iterdir() if "partial" in path.name]


def ranker_of(seed: int, replies: int, messages: int, dimension: int | None = None) -> LanguageRanker:
    rng = np.random.default_rng(seed)
    index = index_of(vectors(seed, replies, 24, "shared"), [str(n // 2) for n in range(replies)])
    of = rng.integers(0, replies, messages)
    memory = MessageMemory.build(
        [""] * messages,
        vectors(seed + 1, messages, 24, "shared").numpy(),
        of,
        limit=5,
        dimension=dimension,
        ngrams=False,
    )
    ngrams = ReplyNgrams.build(index.replies, get_tokenizer("en"))
    ranker = LanguageRanker.build(index, memory, ngrams, RankerSettings(tuple(WEIGHTS)))
    return replace(ranker, mixture=Mixture(WEIGHTS))


@settings(max_examples=15)
@given(st.integers(0, 2**31), st.sampled_from([60, 300]), st.sampled_from([40, 900]), st.sampled_from([None, 12]))
def test_a_ranker_chooses_as_with_full_products(seed: int, replies: int, messages: int, dimension: int | None) -> None:
    ranker = ranker_of(seed, replies, messages, dimension)
    full = replace(
        ranker,
        index=replace(ranker.index, table=VectorTable(ranker.index.vectors.astype(np.float32))),
        memory=replace(ranker.memory, table=VectorTable(ranker.memory.table.rows.astype(np.float32))),
    )
    query = vectors(seed + 2, 1, 24, "shared")[0].numpy()
    found, true = ranker.rank("?", query), full.rank("?", query)
    rows = full.best(true, 40)
    np.testing.assert_allclose(found[rows], true[rows], atol=0.02)  # mean, deviation and floor are of the estimates
    assert np.abs(found - true).max() < 0.1
    np.testing.assert_allclose(np.sort(true[ranker.best(found, 40)]), np.sort(true[rows]), atol=0.02)
    known = ranker.known(ranker.index.replies[:9])
    direct = ranker.index.table.products_of(known.rows, query)
    np.testing.assert_allclose(ranker.score_pool("?", query, known, np.arange(9), direct), true[known.rows], atol=0.03)


def test_a_large_ranker_comes_back_with_its_codes(tmp_path: Path) -> None:
    one, other = ranker_of(1, 200, 900), ranker_of(2, 200, 900)
    save_rankers({"en": one, "nl": other}, tmp_path)
    stored = load_file(tmp_path / "ranker" / "en.safetensors")
    assert stored["memory.vectors"].dtype == torch.float16
    assert stored["memory.codes"].shape == stored["memory.vectors"].shape
    loaded = Rankers(tmp_path, {"en": one.index, "nl": other.index})
    for language, ranker in (("en", one), ("nl", other)):
        query = vectors(7, 1, 24)[0].numpy()
        assert loaded[language].suggest("?", query, 3) == ranker.suggest("?", query, 3)


def test_codes_leave_out_what_rows_share() -> None:
    """A pretrained encoder's vectors share most of their length; codes of whole rows would err by .17 of the rest."""
    rows = vectors(3, 100, 64, "shared")
    rest = (rows - rows.mean(0)).norm(dim=1)
    assert Codes.of(rows.numpy()).errors.max() < 0.02 * rest.max()
