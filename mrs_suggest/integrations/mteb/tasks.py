"""MRS as a retrieval task and a reranking task of MTEB.

The main score, `mrs_mrr`, comes from `mrs_metrics.ranking`, which gets the scores that MTEB got from the model; MTEB's
own figures are reported next to it. They differ in two ways:

- *Ties.* MTEB puts the higher document id first, so the names of documents decide; here the real reply comes last among
  equal scores, so that a model that scores all replies alike gains nothing.
- *Rounding.* MTEB rounds nDCG, MAP, recall, precision and hit rate to five digits, and all that it writes to a file to
  six; `mrs_exact` has every digit there, too, as texts.

Retrieval asks for the best 1,000 replies, as MTEB's tasks do: a real reply below them has the reciprocal rank 0.

One reply is right for each example, the one that was given: a message that was answered twice is two examples.

- *Reranking* uses the 1-of-100 pools that every table of this project ranks in (`reply_pools`), one for each test
  example; so the figures are those of a run's `run.json`.
- *Retrieval* searches a message in the response set of its language, whose replies count once in each normalised form.
  Examples whose real reply is not in the set are left out, as in the paper's second ranking (section 3.3).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from datasets import Dataset
from numpy.typing import NDArray

from mrs_datasets.prepared.prepared import PreparedData, open_prepared
from mrs_datasets.prepared.schema import responses_config
from mrs_metrics.ranking import aggregate, ranking_signature, score_rankings
from mrs_metrics.signature import with_unit
from mrs_metrics.significance import bootstrap_interval
from mrs_suggest.common.errors import InputError, extra_needed
from mrs_suggest.common.io.packaged import read_packaged
from mrs_suggest.common.text.predictions import MESSAGE
from mrs_suggest.common.text.text import normalise_reply
from mrs_suggest.evaluation.language_data import EVALUATION_SEED
from mrs_suggest.evaluation.results import reply_pools

with extra_needed("mteb", "mteb", "a task of MTEB"):
    from mteb.abstasks.retrieval import AbsTaskRetrieval
    from mteb.abstasks.task_metadata import TaskMetadata

if TYPE_CHECKING:
    from mteb.abstasks.retrieval_dataset_loaders import RetrievalSplitData

MAIN_SCORE = "mrs_mrr"
SPLITS = ("test", "validation")
METADATA: dict[str, Any] = read_packaged("mrs_suggest.integrations.mteb", "metadata.yaml")


@dataclass(frozen=True)
class Questions:
    """The n examples of one language.

    Attributes:
        replies: m candidates, each normalised form once.
        targets: (n,) the number of each message's real reply among them.
        pools: (n, p) the numbers of the replies that it is ranked among, ascending; None: all of them.
    """

    messages: list[str]
    replies: list[str]
    targets: NDArray[np.int64]
    pools: NDArray[np.int64] | None = None


def reranking_questions(data: PreparedData, language: str, split: str, seed: int) -> Questions:
    """All examples of a split with their 1-of-100 pools; InputError if the source has none of that split."""
    messages, references = _examples(data, language, split)
    candidates, targets, pools = reply_pools(references, _response_set(data, language), seed)
    # The real reply is in column 0; sorting by number hides its place.
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


class MrsTask(AbsTaskRetrieval, ABC):
    """Base of both tasks; `mrs_tasks` makes their classes for some data.

    Attributes:
        data_loaded: whether `dataset` has the examples.
    """

    data: ClassVar[PreparedData]
    of: ClassVar[str]
    data_loaded: bool = False

    @abstractmethod
    def questions(self, language: str, split: str) -> Questions:
        """The examples of a language."""

    def load_data(self, num_proc: int | None = None, **kwargs: Any) -> None:
        if not self.data_loaded:
            self.dataset = {
                language: {split: _as_mteb_has_it(self.questions(language, split)) for split in self.eval_splits}
                for language in self.hf_subsets
            }
            self.data_loaded = True

    def task_specific_scores(
        self,
        scores: Mapping[str, Mapping[str, float]],
        qrels: Mapping[str, Mapping[str, int]],
        results: Mapping[str, Mapping[str, float]],
        hf_split: str,
        hf_subset: str,
    ) -> dict[str, Any]:
        """This project's figures, from the scores that the model gave.

        Args:
            qrels: query -> its one right document.
            results: query -> document -> score.

        Returns:
            `mrs_n`, `mrs_mrr` and its `mrs_interval` by message, `mrs_p_at_1`, `mrs_macro_mrr`, `mrs_exact` (these as
            texts) and `mrs_signature`.
        """
        queries = self.dataset[hf_subset][hf_split]["queries"]
        messages = dict(zip(queries["id"], queries["text"], strict=True))
        units = [messages[name] for name in results]
        rows, targets, replies = [], [], []
        for query, found in results.items():
            (right,) = qrels[query]
            documents = list(found)
            rows.append(list(found.values()))
            targets.append(documents.index(right) if right in found else -1)
            replies.append(right)
        ranked = score_rankings(rows, targets, replies, missing_reference="zero", of=self.of, language=hf_subset)
        figures = aggregate(ranked)
        return {
            "mrs_n": figures["n"],
            MAIN_SCORE: figures["mrr"],
            "mrs_interval": bootstrap_interval(ranked.reciprocal_ranks, units=units).ends,
            "mrs_p_at_1": figures["p@1"],
            "mrs_macro_mrr": figures["macro_mrr"],
            "mrs_exact": {name: repr(figures[name]) for name in ("mrr", "p@1", "macro_mrr")},
            "mrs_signature": with_unit(self.signature(int(ranked.pool_sizes.max()), hf_subset), MESSAGE),
        }

    @abstractmethod
    def signature(self, pool: int, language: str) -> str:
        """How the ranks were computed, among `pool` candidates."""


class MrsReplyReranking(MrsTask):
    """The real reply among 99 others, drawn with a seed."""

    of = "references"

    def questions(self, language: str, split: str) -> Questions:
        """The examples of a language, with their pools."""
        return reranking_questions(self.data, language, split, EVALUATION_SEED)

    def signature(self, pool: int, language: str) -> str:
        """As in a run's `run.json`."""
        return ranking_signature(pool, self.of, EVALUATION_SEED, language=language)


class MrsReplyRetrieval(MrsTask):
    """The real reply in the response set."""

    of = "response_set"

    def questions(self, language: str, split: str) -> Questions:
        """The examples of a language whose reply is in the response set."""
        return retrieval_questions(self.data, language, split)

    def signature(self, pool: int, language: str) -> str:
        """Of a ranking of the whole set, without the examples whose reply is not in it."""
        return ranking_signature(of=self.of, absent="skip", language=language)


def task_classes(data: str = "sample", revision: str | None = None) -> list[type[MrsTask]]:
    """The classes of both tasks for some data, as MTEB's registry has classes; arguments as in `mrs_tasks`."""
    opened = open_prepared(data, revision)
    about = _about(opened)
    found = []
    for base in (MrsReplyRetrieval, MrsReplyReranking):  # MTEB makes a task from its class alone, so that has the data
        own = {"metadata": _metadata(base, about, opened), "data": opened, "__doc__": base.__doc__}
        found.append(type(base.__name__, (base,), own))
    return found


def mrs_tasks(
    data: str = "sample", languages: Sequence[str] | None = None, revision: str | None = None, split: str = "test"
) -> list[MrsTask]:
    """The tasks `MrsReplyRetrieval` and `MrsReplyReranking`, for `mteb.evaluate`.

    Args:
        data: a prepared folder, a hub id, or `sample`, the embedded sample.
        languages: some of the data's, such as `en`; default: all.
        split: `test` or `validation`.

    Raises:
        InputError: no such data, language or split, or MTEB does not know a language of the data.
        MissingExtraError: MTEB is not installed.

    Example:
        >>> mteb.evaluate(SentenceTransformer("ORG/NAME"), mrs_tasks("build/mrs", ["en"]))  # doctest: +SKIP
    """
    if split not in SPLITS:
        raise InputError(f"split {split!r}: expected one of {' '.join(SPLITS)}.")
    classes = task_classes(data, revision)
    have = classes[0].data.languages()
    unknown = [code for code in languages or () if code not in have]
    if unknown:
        raise InputError(f"{data}: no pairs in {' '.join(unknown)}; the data have {' '.join(have)}.")
    tasks = [task_class() for task_class in classes]
    for task in tasks:
        task.hf_subsets = list(languages or have)
        task.filter_eval_splits([split])
    return tasks


def _as_mteb_has_it(questions: Questions) -> RetrievalSplitData:
    queries = [f"query-{number:06d}" for number in range(len(questions.messages))]
    documents = [f"reply-{number:06d}" for number in range(len(questions.replies))]
    right = zip(queries, questions.targets.tolist(), strict=True)
    ranked = None
    if questions.pools is not None:
        pools = zip(queries, questions.pools.tolist(), strict=True)
        ranked = {query: [documents[number] for number in pool] for query, pool in pools}
    return {
        "queries": Dataset.from_dict({"id": queries, "text": questions.messages}),
        "corpus": Dataset.from_dict({"id": documents, "text": questions.replies}),
        "relevant_docs": {query: {documents[target]: 1} for query, target in right},
        "top_ranked": ranked,
    }


def _about(data: PreparedData) -> dict[str, Any]:
    """The metadata that both tasks have."""
    from mteb.languages import check_language_code

    report, record = data.report(), data.record()
    reader = str(report.get("reader", "official"))
    variant = record.variants.get(reader)
    codes = {}
    for code in data.languages():
        language = record.languages[code]
        codes[code] = [f"{language.iso3}-{language.script}"]
        try:
            check_language_code(codes[code][0])
        except ValueError as error:
            raise InputError(f"{data.name}: MTEB does not know the language {code} ({error}); leave it out.") from None
    licence = variant.licence if variant else "unknown"
    identity = data.identity(data.languages())
    return {
        "dataset": {"path": data.name, "revision": str(identity.get("content_hash") or identity.get("revision"))},
        "eval_splits": [SPLITS[0]],
        "eval_langs": codes,
        "main_score": MAIN_SCORE,
        "license": "not specified" if licence == "unknown" else licence,
        "bibtex_citation": record.citation,
        **METADATA["all"],
        **METADATA["origins"].get(reader, {}),
    }


def _metadata(base: type[MrsTask], about: dict[str, Any], data: PreparedData) -> TaskMetadata:
    reranking = issubclass(base, MrsReplyReranking)
    how = (
        "rank the real reply of each message among 99 other replies of the split, drawn with a seed (1-of-100)"
        if reranking
        else "find the real reply of each message in the response set of its language, where the set has it"
    )
    return TaskMetadata(
        name=base.__name__,
        type="Reranking" if reranking else "Retrieval",
        description=f"{data.title()}, multilingual reply suggestion: {how}.",
        **cast(Any, about),
    )
