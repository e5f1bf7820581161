"""Train a multiple-choice model (Ponti et al. 2020, section 4) on COPA or SIQA, and test it on XCOPA's languages.

    accelerate launch trainers/multiple_choice.py --setup CO-ZS --data DIR         # a small model from scratch
    accelerate launch trainers/multiple_choice.py --config trainers/configs/multiple_choice/co_tlv.yaml --data DIR

DIR is a folder that `mrs data prepare xcopa` wrote from XCOPA and COPA. The defaults are the paper's; its five setups
are in the YAML files.
"""

import sys

from mrs_suggest.training.choice.options import ChoiceArguments, ChoiceTrainingArguments
from mrs_suggest.training.choice.run import run
from mrs_suggest.training.options import trainer_command

make_parser, main = trainer_command("multiple_choice", __doc__, (ChoiceArguments, ChoiceTrainingArguments), run)

if __name__ == "__main__":
    sys.exit(main())
