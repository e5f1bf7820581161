"""Train a multiple-choice model (Ponti et al. 2020, section 4) on COPA or SIQA, and test it on XCOPA's languages.

    accelerate launch trainers/multiple_choice.py --setup CO-ZS --data DIR         # a small model from scratch
    accelerate launch trainers/multiple_choice.py --config trainers/configs/multiple_choice/co_tlv.yaml --data DIR

DIR is a folder that `mrs data prepare xcopa` wrote from XCOPA and COPA. The defaults are the paper's; its five setups
are in the YAML files.
"""

import sys
from collections.abc import Sequence
from functools import partial

from mrs_suggest.common.arguments import make_dataclass_parser, parse_with_config
from mrs_suggest.common.errors import run_with_sentence
from mrs_suggest.training.choice.options import ChoiceArguments, ChoiceTrainingArguments
from mrs_suggest.training.choice.run import run
from mrs_suggest.training.options import SHOWN

make_parser = partial(
    make_dataclass_parser, (ChoiceArguments, ChoiceTrainingArguments), "multiple_choice", __doc__ or "", SHOWN
)


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, train; return the exit code."""
    return run_with_sentence("multiple_choice", lambda: run(*parse_with_config(make_parser(), argv)))


if __name__ == "__main__":
    sys.exit(main())
