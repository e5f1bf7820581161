"""The page of ten random exchanges of mrs-everyday in each language."""

from __future__ import annotations

import random

from mrs_datasets.everyday.situations import TEXTS, read_situations
from mrs_suggest.common.text.languages import LANGUAGES

HEAD = """# mrs-everyday

Everyday messages and short replies in ten languages (Apache-2.0): 370 situations, each with nine messages and eight
replies, and each reply fits each message of its situation. It is in the package, and can be published on the hub as any
[prepared folder](hub.md):

```console
$ mrs install --source mrs-everyday          # then load_dataset("mrs-everyday", "es") works anywhere
$ mrs data stats mrs-everyday
```

A tenth of the situations are held out as a whole: half of them in the split `unseen`, half in `validation`. `stance`
says what a reply does (`yes`, `no`, `ask` ...), `register` how the two people address each other. Below are ten
situations for each language, drawn with the seed {seed}: a message, and three of its replies. How the texts were
written and reviewed is in the card that `mrs data prepare mrs-everyday --source embedded --out build/everyday`
writes.
"""
SEED, SITUATIONS, REPLIES = 42, 10, 3


def everyday_page() -> str:
    """The page as Markdown."""
    parts = [HEAD.format(seed=SEED)]
    for language in LANGUAGES.values():
        rng = random.Random(f"{SEED} {language.code}")
        drawn = rng.sample(read_situations(TEXTS / f"{language.code}.txt"), SITUATIONS)
        rows = [
            f"| {one.topic} | {rng.choice(one.messages)} | "
            f"{'<br>'.join(f'{text} ({stance})' for stance, text in rng.sample(one.replies, REPLIES))} |\n"
            for one in drawn
        ]
        parts.append(f"## {language.name}\n\n| topic | message | replies |\n|---|---|---|\n{''.join(rows)}\n")
    return "".join(parts)
