"""Train the model that ships further on your own chats: `python examples/train_on_own_chats.py [FOLDER]`.

FOLDER gets the model (default: build/own-chats). Put your chats in the place of `CHATS`: pairs of a message and the
reply to it, some thousands. Needs `pip install '.[all]'`; under a minute on one core with these few steps.
"""

from __future__ import annotations

import sys
from itertools import product

from datasets import Dataset

from mrs_suggest import RetrievalTrainer, TrainingArguments

THINGS = ["parcel", "order", "jacket", "lamp", "book", "phone case", "kettle", "rucksack", "pair of shoes", "desk"]
CHATS = {  # what a shop is asked, and what it answers
    "Where is my {}?": "It is on its way, I will send you the tracking number.",
    "Has the {} been sent yet?": "It leaves our warehouse today.",
    "I would like to return the {}.": "Of course, the label is in your account.",
    "My {} arrived broken.": "I am sorry! We will send you a new one today.",
    "Can I still change the colour of the {}?": "Yes, which colour would you like?",
    "How long is the guarantee for the {}?": "Two years from the day you bought it.",
}


def main(folder: str) -> None:
    pairs = [(question.format(thing), answer) for thing, (question, answer) in product(THINGS, CHATS.items())]
    chats = Dataset.from_dict({"message": [message for message, _ in pairs], "reply": [reply for _, reply in pairs]})
    trainer = RetrievalTrainer(
        "everyday-retriever",
        args=TrainingArguments(
            output_dir=folder, max_steps=8, per_device_train_batch_size=16, learning_rate=2e-4, eval_steps=4,
            save_steps=4, overwrite=True, settings={"ranker": True, "temperature": 0.1, "dropout": 0},
        ),
        train_dataset=chats,
        language="en",
    )  # fmt: skip
    trainer.train()
    for reply in trainer.suggester().suggest("Where is my new umbrella?").replies:
        print(reply)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "build/own-chats")
