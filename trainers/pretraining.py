"""Pretrain an encoder or a sequence-to-sequence model on text, by one objective or several (XGLUE, Liang et al. 2020,
sections 3 and 4; XCOPA, Ponti et al. 2020, section 4.4).

    accelerate launch trainers/pretraining.py                              # a small model on the embedded sample
    accelerate launch trainers/pretraining.py --config trainers/configs/pretraining/t.yaml
    accelerate launch trainers/pretraining.py --objective mlm --model_name_or_path intfloat/multilingual-e5-small \
        --text ht=ht.txt en=en.txt
    accelerate launch trainers/pretraining.py --objective mlm tlm --model_name_or_path intfloat/multilingual-e5-small \
        --text ht=ht.txt en=en.txt --parallel en-ht=pairs.tsv
    accelerate launch trainers/pretraining.py --objective xdae --text ht=ht.txt en=en.txt

The result is an encoder with its tokenizer and language-model head, or a seq2seq model (xdae, xfnp); other trainers
start from it by its name.
"""

import sys
from collections.abc import Sequence
from functools import partial

from mrs_suggest.common.arguments import make_dataclass_parser, parse_with_config
from mrs_suggest.common.errors import run_with_sentence
from mrs_suggest.training.options import SHOWN
from mrs_suggest.training.pretraining.options import PretrainingArguments, PretrainingTrainingArguments
from mrs_suggest.training.pretraining.run import run

make_parser = partial(
    make_dataclass_parser, (PretrainingArguments, PretrainingTrainingArguments), "pretraining", __doc__ or "", SHOWN
)


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, train; return the exit code."""
    return run_with_sentence("pretraining", lambda: run(*parse_with_config(make_parser(), argv)))


if __name__ == "__main__":
    sys.exit(main())
