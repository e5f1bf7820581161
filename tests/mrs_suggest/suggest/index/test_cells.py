"""Search in a large response set, and what the index and its files do with one."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from mrs_suggest.common.errors import InputError
from mrs_suggest.suggest.index import cells
from mrs_suggest.suggest.index.response_index import ResponseIndex, ResponseIndexes

THRESHOLD = 50  # stands for the one of thousands


@pytest.fixture(autouse=True)
def _sets_are_large_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "CELLS_FROM", THRESHOLD)


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


def test_replies_that_form_groups_are_found() -> None:
    """2,000 replies near 60 centres, as replies are near their intents; at most one of a hundred answers differs."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(60, 48))
    rows = (centres[rng.integers(0, 60, 2000)] + 0.4 * rng.normal(size=(2000, 48))).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    index = index_of(torch.from_numpy(rows))
    queries = (centres[rng.integers(0, 60, 200)] + 0.4 * rng.normal(size=(200, 48))).astype(np.float32)
    true = np.argsort(-(queries @ rows.T), axis=1)[:, :3]
    found = np.concatenate([index.search(query[None], 3)[0] for query in queries])
    assert np.mean([len(set(a) & set(b)) / 3 for a, b in zip(found, true, strict=True)]) >= 0.99
    assert np.concatenate([index.search(queries[:20], 3)[0]]).tolist() == true[:20].tolist(), "many at a time: exact"


def test_a_saved_index_answers_equally_and_files_without_cells_load(tmp_path: Path) -> None:
    index, queries = index_of(vectors(0, 120, 8)), vectors(1, 5, 8)
    index.save(tmp_path / "response_index" / "es")
    path = tmp_path / "response_index" / "es" / "vectors.safetensors"
    stored = load_file(path)
    expected = index.search(queries, 3)[0].tolist()
    assert ResponseIndexes(tmp_path)["es"].search(queries, 3)[0].tolist() == expected
    plain = {name: stored[name] for name in ("vectors", "log_probs", "clusters")}
    save_file(plain, path)
    assert ResponseIndexes(tmp_path)["es"].search(queries, 3)[0].tolist() == expected
    for name, wrong in [("cells.order", stored["cells.order"][:-1]), ("cells.starts", stored["cells.starts"] + 1)]:
        save_file(stored | {name: wrong.clone()}, path)
        with pytest.raises(InputError, match="cells do not match"):
            ResponseIndexes(tmp_path)["es"]


def test_an_index_that_is_replaced_keeps_answering_who_has_loaded_it(tmp_path: Path) -> None:
    old, queries = index_of(vectors(0, 200, 8)), vectors(1, 4, 8)
    old.save(tmp_path)
    loaded = ResponseIndex.load(tmp_path)
    index_of(vectors(2, 60, 8)).save(tmp_path)  # shorter: a file cut in place would be a bus error
    assert loaded.search(queries, 3)[0].tolist() == old.search(queries, 3)[0].tolist()
    assert len(ResponseIndex.load(tmp_path).replies) == 60
    assert not [path for path in tmp_path.iterdir() if "partial" in path.name]
