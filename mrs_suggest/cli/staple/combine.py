"""`mrs staple combine`: members pooled into one list per prompt, with features for the filters."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from mrs_suggest.common.io.files import require_new_file
from mrs_suggest.common.text.text import visible


def add_combine(verbs: Any) -> None:
    """Add the verb."""
    combine = verbs.add_parser(
        "combine", help="pool the hypotheses of several members and add features",
        description="Pools files about the same prompts: each translation once per prompt, as the metric compares it, "
        "with votes, ranks and scores of the members.",
    )  # fmt: skip
    combine.add_argument("hypotheses", type=Path, nargs="+", metavar="HYPOTHESES", help="files of hypotheses")
    combine.add_argument(
        "--encoder", metavar="MODEL",
        help="add the cosine of prompt and translation by this sentence encoder: a folder or ORG/NAME[@REVISION]",
    )  # fmt: skip
    combine.add_argument("--out", required=True, type=Path, metavar="FILE", help="the file of hypotheses to write")
    combine.add_argument("--overwrite", action="store_true", help="replace --out if it exists")
    combine.set_defaults(run=_combine)


def _combine(options: argparse.Namespace) -> None:
    from mrs_suggest.staple.filters.features import add_features
    from mrs_suggest.staple.hypotheses import read_hypotheses, write_hypotheses
    from mrs_suggest.staple.pooling import POOL, pool

    require_new_file(options.out, options.overwrite)
    pooled = pool([(path, read_hypotheses(path)) for path in options.hypotheses])
    encode = None
    if options.encoder is not None:
        from mrs_suggest.staple.encoder import load_encoder

        encode = load_encoder(options.encoder)
    pooled = add_features(pooled, encode, options.encoder or "")
    write_hypotheses(pooled, options.out, options.overwrite)
    members = len(pooled.members[POOL]["members"])
    print(
        f"wrote {visible(options.out)}: {len(pooled.table):,} translations of {len(pooled.prompts):,} prompts, pooled "
        f"from {members:,} member{'s' * (members != 1)}; {len(pooled.features)} features"
    )
