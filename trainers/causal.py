"""Train a causal language model to reply in the language that its prompt names.

    accelerate launch trainers/causal.py --config trainers/configs/causal/tiny.yaml   # on the embedded sample
    accelerate launch trainers/causal.py --model_name_or_path Qwen/Qwen2.5-0.5B-Instruct --peft lora --data DIR

With `--constrained true`, it only suggests replies of the data's response sets.
"""

import sys
from collections.abc import Sequence
from functools import partial

from mrs_suggest.common.arguments import make_dataclass_parser, parse_with_config
from mrs_suggest.common.errors import run_with_sentence
from mrs_suggest.training.causal.options import CausalArguments, CausalTrainingArguments
from mrs_suggest.training.causal.run import run
from mrs_suggest.training.options import SHOWN

make_parser = partial(make_dataclass_parser, (CausalArguments, CausalTrainingArguments), "causal", __doc__ or "", SHOWN)


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, train; return the exit code."""
    return run_with_sentence("causal", lambda: run(*parse_with_config(make_parser(), argv)))


if __name__ == "__main__":
    sys.exit(main())
