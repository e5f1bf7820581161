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

from mrs_suggest.training.options import trainer_command
from mrs_suggest.training.pretraining.options import PretrainingArguments, PretrainingTrainingArguments
from mrs_suggest.training.pretraining.run import run

make_parser, main = trainer_command("pretraining", __doc__, (PretrainingArguments, PretrainingTrainingArguments), run)

if __name__ == "__main__":
    sys.exit(main())
