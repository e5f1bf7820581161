"""Train a causal language model to reply in the language that its prompt names.

    accelerate launch trainers/causal.py --config trainers/configs/causal/tiny.yaml   # on the embedded sample
    accelerate launch trainers/causal.py --model_name_or_path Qwen/Qwen2.5-0.5B-Instruct --peft lora --data DIR

With `--constrained true`, it only suggests replies of the data's response sets.
"""

import sys

from mrs_suggest.training.causal.options import CausalArguments, CausalTrainingArguments
from mrs_suggest.training.causal.run import run
from mrs_suggest.training.options import trainer_command

make_parser, main = trainer_command("causal", __doc__, (CausalArguments, CausalTrainingArguments), run)

if __name__ == "__main__":
    sys.exit(main())
