"""The options of `--task staple`: which translations are drawn, parallel text, direction, and the n-best list."""

from dataclasses import dataclass
from typing import ClassVar

from mrs_suggest.training.options import option

STAPLE = "staple"
WEIGHTED, UNIFORM, TOP, COPIES, ALL_PAIRS = DRAWS = ("weighted", "uniform", "top", "copies", "all")
FROM_ENGLISH, TO_ENGLISH = DIRECTIONS = ("from_english", "to_english")
MIXED, FIRST = PARALLEL_MODES = ("mixed", "first")
NBEST = 10  # baseline_fairseq (section 3.1)


@dataclass
class StapleArguments:
    """The options that this task alone has."""

    advanced: ClassVar[tuple[str, ...]] = (
        "top_k", "copies", "right_to_left", "parallel_columns", "parallel_mode", "parallel_share",
    )  # fmt: skip
    least: ClassVar[dict[str, int]] = {"top_k": 1, "copies": 2, "nbest": 1}
    draw: str = option(
        WEIGHTED,
        "staple: accepted translations to train on. One row per prompt, its target drawn anew at each use: "
        f"{WEIGHTED}, by learner weight (sweagraw and rakchada in section 4.2; the default, since weights helped, "
        f"Table 6), {UNIFORM}, equally. One row per translation: {TOP}, the --top_k heaviest (nickeilf), {COPIES}, "
        f"all, and the heaviest --copies times (jbrem), {ALL_PAIRS}, each once (baseline_fairseq)",
    )
    top_k: int | None = option(None, f"translations of each prompt with --draw {TOP}")
    copies: int | None = option(None, f"copies of the heaviest translation in an epoch with --draw {COPIES}")
    direction: str = option(
        FROM_ENGLISH,
        f"staple: {FROM_ENGLISH} writes translations, {TO_ENGLISH} prompts, for round-trip scores and back-translation",
    )
    right_to_left: bool = option(False, "staple: write the last token first (masahiro in section 3.2)")
    parallel: list[str] = option(
        [],
        "staple: LANG-LANG=SOURCE ..., general translations added to the task's, such as en-pt=pairs.tsv "
        "(two columns) or en-pt=tatoeba.en,tatoeba.pt (line by line); also a Parquet file, a folder or a data set",
    )
    parallel_columns: list[str] = option(
        [], "columns of both sides of --parallel in tables (default: named as the languages, or `translation`)"
    )
    parallel_mode: str = option(
        MIXED,
        f"use --parallel {MIXED}, in the same run (section 4.2: train combined), or {FIRST}, on its own, so "
        "that a second run can start from this one's folder with --model_name_or_path (pre-train, then fine-tune)",
    )
    parallel_share: float = option(
        0.5, f"share of general text in the steps of --parallel_mode {MIXED} (ours: as many as others)"
    )
    nbest: int = option(NBEST, f"staple: translations to score per prompt ({NBEST}: baseline_fairseq, section 3.1)")
