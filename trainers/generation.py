"""Train a seq2seq generator: on message-reply pairs (Zhang et al. 2021, section 4.2), on a task of XGLUE, or on STAPLE,
whose task is to write all translations of a prompt that learners would (Mayhew et al. 2020).

    accelerate launch trainers/generation.py                                    # a small model on the embedded sample
    accelerate launch trainers/generation.py --config trainers/configs/generation/unicoder/mt_es.yaml --data DIR
    accelerate launch trainers/generation.py --config trainers/configs/generation/xglue/xdae.yaml --data XGLUE
    accelerate launch trainers/generation.py --config trainers/configs/generation/staple/pt.yaml --data STAPLE
    accelerate launch trainers/generation.py --task staple --data build/staple --languages qaa --draw weighted

The defaults train a small model from scratch in minutes on two CPU cores; the paper's settings are in the YAML files.
"""

import sys

from mrs_suggest.training.generation.options import REPLY, GenerationArguments, GenerationTrainingArguments
from mrs_suggest.training.generation.run import run
from mrs_suggest.training.options import trainer_command
from mrs_suggest.training.staple.options import STAPLE
from mrs_suggest.training.staple.run import run as run_staple
from mrs_suggest.training.text_generation.run import run as run_text


def train(options: GenerationArguments, training: GenerationTrainingArguments) -> object:
    """Run the trainer of the task that the options name."""
    return {REPLY: run, STAPLE: run_staple}.get(options.task, run_text)(options, training)


make_parser, main = trainer_command("generation", __doc__, (GenerationArguments, GenerationTrainingArguments), train)

if __name__ == "__main__":
    sys.exit(main())
