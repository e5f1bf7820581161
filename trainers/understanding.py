"""Fine-tune an encoder on XGLUE's understanding tasks (Liang et al. 2020, section 6), and test it in all languages.

    accelerate launch trainers/understanding.py --task xnli --data DIR               # a small model from scratch
    accelerate launch trainers/understanding.py --config trainers/configs/understanding/xnli.yaml --data DIR
    accelerate launch trainers/understanding.py --mode multitask --tasks xnli pawsx --data DIR

DIR is a folder that `mrs data prepare xglue` wrote. The defaults are the paper's for sentence classification; the YAML
files have those of each task.
"""

import sys

from mrs_suggest.training.options import trainer_command
from mrs_suggest.training.understanding.options import UnderstandingArguments, UnderstandingTrainingArguments
from mrs_suggest.training.understanding.run import run

make_parser, main = trainer_command(
    "understanding", __doc__, (UnderstandingArguments, UnderstandingTrainingArguments), run
)

if __name__ == "__main__":
    sys.exit(main())
