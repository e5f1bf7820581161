"""Fine-tune an encoder on XGLUE's understanding tasks (Liang et al. 2020, section 6), and test it in all languages.

    accelerate launch trainers/understanding.py --task xnli --data DIR               # a small model from scratch
    accelerate launch trainers/understanding.py --config trainers/configs/understanding/xnli.yaml --data DIR
    accelerate launch trainers/understanding.py --mode multitask --tasks xnli pawsx --data DIR

DIR is a folder that `mrs data prepare xglue` wrote. The defaults are the paper's for sentence classification; the YAML
files have those of each task.
"""

import sys
from collections.abc import Sequence
from functools import partial

from mrs_suggest.common.arguments import make_dataclass_parser, parse_with_config
from mrs_suggest.common.errors import run_with_sentence
from mrs_suggest.training.options import SHOWN
from mrs_suggest.training.understanding.options import UnderstandingArguments, UnderstandingTrainingArguments
from mrs_suggest.training.understanding.run import run

make_parser = partial(
    make_dataclass_parser,
    (UnderstandingArguments, UnderstandingTrainingArguments),
    "understanding",
    __doc__ or "",
    SHOWN,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, train; return the exit code."""
    return run_with_sentence("understanding", lambda: run(*parse_with_config(make_parser(), argv)))


if __name__ == "__main__":
    sys.exit(main())
