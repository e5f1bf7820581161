"""Which translations are trained on: how often each is drawn, what a draw depends on, and pairs that are fixed."""

from collections import Counter

import pytest
from datasets import Dataset

from mrs_suggest.training.sampling import CountedSampler, PairLoader, PairSampler
from mrs_suggest.training.staple.draws import DrawnPairs, Pairs, pairs_of

WEIGHTS = {"a": 0.1, "b": 0.6, "c": 0.3, "d": 0.0}
PROMPTS = Dataset.from_list(
    [
        {"prompt": "yes", "translations": [{"text": t, "weight": w} for t, w in WEIGHTS.items()]},
        {"prompt": "no", "translations": [{"text": "e", "weight": 1.0}]},
        {"prompt": "maybe", "translations": [{"text": t, "weight": 0.5} for t in "fg"]},
    ]
)


def drawing(pairs: Pairs, seed: int = 3) -> DrawnPairs:
    return DrawnPairs(pairs.pairs, pairs.sizes, pairs.weights, seed)


def texts(pairs: Pairs) -> list[str]:
    columns = (pairs.pairs[name][:] for name in ("message", "reply"))
    return [f"{message}-{reply}" for message, reply in zip(*columns, strict=True)]


@pytest.mark.parametrize(("draw", "shares"), [("weighted", (0.1, 0.6, 0.3, 0.0)), ("uniform", (0.25,) * 4)])
def test_translations_are_drawn_as_often_as_they_should(draw: str, shares: tuple[float, ...]) -> None:
    rows = drawing(pairs_of(PROMPTS, draw, None, "from_english"))
    assert len(rows) == 3, "a row for each prompt"
    found: Counter[str] = Counter()
    for epoch in range(2000):
        rows.set_epoch(epoch)
        found[rows[0]["reply"]] += 1
        assert rows[1]["reply"] == "e"
    for text, share in zip("abcd", shares, strict=True):  # 4.5 standard deviations of 2,000 draws
        assert found[text] / 2000 == pytest.approx(share, abs=4.5 * (share * (1 - share) / 2000) ** 0.5)


def test_a_draw_depends_on_seed_epoch_row_and_use_alone() -> None:
    pairs = pairs_of(PROMPTS, "uniform", None, "from_english")

    def drawn(seed: int, epoch: int, uses: int) -> list[str]:
        rows = drawing(pairs, seed)
        rows.set_epoch(epoch)
        return [rows[0 + 3 * use]["reply"] for use in range(uses)]

    assert drawn(3, 1, 40) == drawn(3, 1, 40)
    assert set(drawn(3, 1, 40)) == set("abcd"), "each use of a prompt in an epoch draws anew"
    others = {tuple(drawn(seed, epoch, 40)) for seed in (3, 4) for epoch in (1, 2)}
    assert len(others) == 4


def test_ranks_and_workers_draw_alike() -> None:
    """Two ranks of one row see what one rank of two rows does, with and without workers, which outlive an epoch."""

    def epochs(world: int, workers: int) -> list[list[str]]:
        rows, found = drawing(pairs_of(PROMPTS, "uniform", None, "from_english")), []
        loaders = []
        for rank in range(world):
            sampler = CountedSampler(PairSampler([3], 4 // world, world_size=world, rank=rank, seed=1), 3)
            sampler.told.append(rows.set_epoch)
            loaders.append(
                PairLoader(
                    rows, batch_sampler=sampler, collate_fn=list, num_workers=workers, persistent_workers=workers > 0
                )
            )
        for epoch in range(4):
            for loader in loaders:
                loader.set_epoch(epoch)
            batches = zip(*(list(loader) for loader in loaders), strict=True)
            found.append([row["message"] + row["reply"] for together in batches for batch in together for row in batch])
        return found

    one = epochs(1, 0)
    assert epochs(2, 0) == one
    assert epochs(1, 1) == one
    assert len({tuple(epoch) for epoch in one}) > 1


def test_pairs_of_each_draw() -> None:
    def of(draw: str, number: int | None = None, direction: str = "from_english") -> list[str]:
        pairs = pairs_of(PROMPTS, draw, number, direction)
        assert (pairs.sizes == 1).all()
        return texts(pairs)

    assert of("all") == ["yes-a", "yes-b", "yes-c", "yes-d", "no-e", "maybe-f", "maybe-g"]
    assert of("top", 1) == ["yes-b", "no-e", "maybe-f"], "of equal weights the first"
    assert of("top", 2) == ["yes-b", "yes-c", "no-e", "maybe-f", "maybe-g"]
    assert of("copies", 3) == [
        "yes-a", "yes-b", "yes-b", "yes-b", "yes-c", "yes-d", "no-e", "no-e", "no-e", "maybe-f", "maybe-f", "maybe-f",
        "maybe-g",
    ]  # fmt: skip
    assert of("top", 1, "to_english") == ["b-yes", "e-no", "f-maybe"]
