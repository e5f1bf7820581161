"""Train the model that ships further on chats of your own: `python examples/train_on_own_chats.py [FOLDER]`.

FOLDER gets everything (default: build/own-chats). Put your chats in the place of `CHATS`: pairs of a message and the
reply to it, some thousands. Needs `pip install '.[all]'`; under a minute of one core with these few steps.
"""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path

from mrs_trainers import retrieval

from mrs_datasets import prepare_mrs
from mrs_suggest import Suggester

THINGS = ["parcel", "order", "jacket", "lamp", "book", "phone case", "kettle", "rucksack", "pair of shoes", "desk"]
CHATS = {  # what a shop is asked, and what it answers
    "Where is my {}?": "It is on its way, I will send you the tracking number.",
    "Has the {} been sent yet?": "It leaves our warehouse today.",
    "I would like to return the {}.": "Of course, the label is in your account.",
    "My {} arrived broken.": "I am sorry! We will send you a new one at once.",
    "Can I still change the colour of the {}?": "Yes, which colour would you like?",
    "How long is the guarantee for the {}?": "Two years from the day you bought it.",
}


def main(folder: Path) -> None:
    source = folder / "chats"
    source.mkdir(parents=True, exist_ok=True)
    pairs = [(question.format(thing), answer) for thing, (question, answer) in product(THINGS, CHATS.items())]
    (source / "en.tsv").write_text("".join(f"{message}\t{reply}\n" for message, reply in pairs), encoding="utf-8")

    # Parquet files, a card and a response set; the same as `mrs data prepare mrs --source ... --out ...`.
    prepare_mrs(str(source), folder / "data", overwrite=True)

    # The same as `mrs train retrieval ...`. For chats of yours take trainers/configs/retrieval/quickstart.yaml instead.
    options = {
        "data": folder / "data", "output_dir": folder / "model", "overwrite": "true",
        "model_name_or_path": "sample-retriever", "max_steps": 8, "per_device_train_batch_size": 16, "dropout": 0,
        "learning_rate": 2e-4, "temperature": 0.1, "eval_steps": 4, "save_steps": 4, "ranker": "true",
    }  # fmt: skip
    code = retrieval.main([word for key, value in options.items() for word in (f"--{key}", str(value))])
    if code:
        sys.exit(code)

    suggester = Suggester.load(str(folder / "model"))
    for suggestion in suggester.suggest(["Where is my new umbrella?"], "en")[0]:
        print(suggestion.reply)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/own-chats"))
