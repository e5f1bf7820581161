"""The rows of MTEB's tasks: which replies each test message is searched in, and which of them is right.

- *Reranking*: the 1-of-100 pools that every table of this project ranks in
(`mrs_suggest.evaluation.results.reply_pools`), one
  for each test example; so the figures are those of a run's `run.json`.
- *Retrieval*: a message is searched in the response set of its language, whose replies count once in each normalised
  form. Examples whose real reply is not in the set are left out, as in the paper's second ranking (section 3.3): no
  system could find it.

One reply is right for each example, the one that was given: a message that was answered twice is two examples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mrs_datasets.prepared.prepared import PreparedData
from mrs_datasets.prepared.schema import responses_config
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.text import normalise_reply
from mrs_suggest.evaluation.results import reply_pools


@dataclass(frozen=True)
class Questions:
    """The n examples of one language.

    Attributes:
        messages: n messages.
        replies: m candidates, each normalised form once.
        targets: (n,) the number of each message's real reply among them.
        pools: (n, p) the numbers of the replies that it is ranked among, ascending; None: all of them.
    """

    messages: list[str]
    replies: list[str]
    targets: NDArray[np.int64]
    pools: NDArray[np.int64] | None = None


def reranking_questions(data: PreparedData, language: str, split: str, seed: int) -> Questions:
    """All examples of a split with their 1-of-100 pools.

    Raises:
        InputError: the source lacks the split, or it is empty.
    """
    messages, references = _examples(data, language, split)
    candidates, targets, pools = reply_pools(references, _response_set(data, language), seed)
    # The real reply is in column 0: in their order, nothing tells where it is.
    return Questions(messages, candidates, targets, np.sort(pools, axis=1))


def retrieval_questions(data: PreparedData, language: str, split: str) -> Questions:
    """The examples of a split whose reply is in the response set.

    Raises:
        InputError: the source lacks the split or the response set, or no reply of the split is in the set.
    """
    messages, references = _examples(data, language, split)
    by_form: dict[str, str] = {}
    for reply in _response_set(data, language):
        by_form.setdefault(normalise_reply(reply), reply)
    numbers = {form: number for number, form in enumerate(by_form)}
    found = [numbers.get(normalise_reply(reference)) for reference in references]
    kept = [(message, target) for message, target in zip(messages, found, strict=True) if target is not None]
    if not kept:
        raise InputError(
            f"{data.name}: no reply of the {split} split of {language} is in the response set, so there is nothing to "
            f"retrieve; leave {language} out, or make the response set of the same data (`mrs data responses`)."
        )
    return Questions([message for message, _ in kept], list(by_form.values()), np.array([target for _, target in kept]))


def _examples(data: PreparedData, language: str, split: str) -> tuple[list[str], list[str]]:
    rows = data.load(language, split)
    if not len(rows):
        raise InputError(f"{data.name}: the {split} split of {language} is empty; leave {language} out.")
    return list(rows["message"]), list(rows["reply"])


def _response_set(data: PreparedData, language: str) -> list[str]:
    return list(data.load(responses_config(language), "train")["reply"])
