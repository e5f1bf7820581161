"""Train the paper's dual encoder (Zhang et al. 2021, section 4.1) on message-reply pairs.

    accelerate launch trainers/retrieval.py         # the baseline that ships, further, on the embedded sample
    accelerate launch trainers/retrieval.py --data DIR                          # a small model from scratch
    accelerate launch trainers/retrieval.py --config trainers/configs/retrieval/mbert/monolingual_es.yaml --data DIR

Without any option, `configs/retrieval/quickstart.yaml` is taken. The defaults train a small model from scratch in
minutes on two CPU cores; the paper's settings are in the YAML files.
"""

import sys
from pathlib import Path

from mrs_suggest.training.options import trainer_command
from mrs_suggest.training.retrieval.options import RetrievalArguments, RetrievalTrainingArguments
from mrs_suggest.training.retrieval.run import run

QUICKSTART = Path(__file__).parent / "configs" / "retrieval" / "quickstart.yaml"  # what a bare command trains

make_parser, main = trainer_command(
    "retrieval", __doc__, (RetrievalArguments, RetrievalTrainingArguments), run, ["--config", str(QUICKSTART)]
)

if __name__ == "__main__":
    sys.exit(main())
