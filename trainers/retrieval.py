"""Train the paper's dual encoder (Zhang et al. 2021, section 4.1) on message-reply pairs.

    accelerate launch trainers/retrieval.py         # the baseline that ships, further, on the embedded sample
    accelerate launch trainers/retrieval.py --data DIR                          # a small model from scratch
    accelerate launch trainers/retrieval.py --config trainers/configs/retrieval/mbert/monolingual_es.yaml --data DIR

Without any option, `configs/retrieval/quickstart.yaml` is taken. The defaults train a small model from scratch in
minutes on two CPU cores; the paper's settings are in the YAML files.
"""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from mrs_suggest.common.arguments import make_dataclass_parser, parse_with_config
from mrs_suggest.common.errors import run_with_sentence
from mrs_suggest.training.options import SHOWN
from mrs_suggest.training.retrieval.options import RetrievalArguments, RetrievalTrainingArguments
from mrs_suggest.training.retrieval.run import run

QUICKSTART = Path(__file__).parent / "configs" / "retrieval" / "quickstart.yaml"  # what a bare command trains

make_parser = partial(
    make_dataclass_parser, (RetrievalArguments, RetrievalTrainingArguments), "retrieval", __doc__ or "", SHOWN
)


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, train; return the exit code."""
    given = list(sys.argv[1:] if argv is None else argv) or ["--config", str(QUICKSTART)]
    return run_with_sentence("retrieval", lambda: run(*parse_with_config(make_parser(), given)))


if __name__ == "__main__":
    sys.exit(main())
