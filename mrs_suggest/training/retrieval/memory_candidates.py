"""Training replies that the response set lacks, as further candidates of a ranker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from datasets import Dataset

from mrs_suggest.common.text.text import is_blank, normalise_reply
from mrs_suggest.evaluation.language_data import LanguageData, ResponseSet
from mrs_suggest.suggest.index.response_index import ResponseIndex
from mrs_suggest.suggest.index.vector_table import VectorTable
from mrs_suggest.suggest.ranking.language_ranker import LanguageRanker
from mrs_suggest.training.retrieval.ranker_tuning import MOST_REMEMBERED


def with_memory_candidates(
    parts: Sequence[LanguageData], pairs: Mapping[str, Sequence[Dataset]]
) -> tuple[list[LanguageData], dict[str, int]]:
    """The languages with longer response sets, and how many replies of each are the set's own.

    A response set of frequent replies (`--min-reply-count`, or that of MRS) leaves most training replies out, and the
    memory then forgets their messages. Here they follow the set's own, the most frequent first, without a
    log-probability; none twice by its normalised form. A set that has every training reply stays as it is.

    Args:
        pairs: language -> data sets of pairs that the model was trained on.
    """
    found, own = [], {}
    for part in parts:
        responses = part.responses
        known = {normalise_reply(reply) for reply in responses.replies if reply.strip()}
        texts: dict[str, str] = {}
        counts: Counter[str] = Counter()
        for source in pairs.get(part.language, ()):
            for batch in source.select_columns(["reply"]).iter(batch_size=10_000):
                for reply in batch["reply"]:
                    form = normalise_reply(reply)
                    if form not in known and not is_blank(reply):
                        texts.setdefault(form, reply)
                        counts[form] += 1
        more = [form for form, _ in counts.most_common(max(0, MOST_REMEMBERED - len(known)))]
        if more:
            own[part.language] = len(known)
            longer = ResponseSet(
                [*responses.replies, *(texts[form] for form in more)],
                [*responses.clusters, *more],
                [*responses.log_probs, *([None] * len(more))],
            )
            part = replace(part, responses=longer)
        found.append(part)
    return found, own


def response_sets(
    indexes: Mapping[str, ResponseIndex], rankers: Mapping[str, LanguageRanker]
) -> dict[str, ResponseIndex]:
    """The indexes without the replies that only the memory has: what direct scores choose from, as in the paper."""
    found = dict(indexes)
    for language, ranker in rankers.items():
        if (own := ranker.own) is not None:
            index = indexes[language]
            found[language] = replace(
                index,
                replies=index.replies[:own],
                table=VectorTable.build(index.vectors[:own]),
                clusters=index.clusters[:own],
                log_probs=index.log_probs[:own],
            )
    return found
