"""The eleven tasks of XGLUE: languages, labels, and which figure is a task's score.

Source: Liang et al. 2020, "XGLUE: A New Benchmark Dataset for Cross-lingual Pre-training, Understanding and
Generation", section 2 and Tables 2 and 3; the labels are those of the official evaluation's README, the order of the
languages is that of its script (microsoft/XGLUE, `evaluation/`).

`rules="paper"` takes the figure that the paper names; `rules="official"` the one that the official script prints and
that was published. They differ for POS alone: token accuracy and chunk precision (see
`mrs_metrics.xglue_statistics`).
"""

from dataclasses import dataclass

RULES = ("paper", "official")
# UD marks a token of several words, which has no part of speech itself, by an underscore.
NO_TAG = "_"


@dataclass(frozen=True)
class Task:
    """One task.

    Attributes:
        name: its folder's name, so PAWS-X is `PAWSX`.
        kind: what is predicted: `tags` of each word, a `label`, an `answer`, the relevance of a `page`, a `text`.
        languages: codes of its test languages.
        labels: the labels or tags, as in the files; empty for answers and texts.
        score: name of the figure that the paper reports.
        official_score: name of the figure that the official script prints, if it differs.
    """

    name: str
    kind: str
    languages: tuple[str, ...]
    labels: tuple[str, ...]
    score: str
    official_score: str = ""

    @property
    def generation(self) -> bool:
        """Whether it is one of the two generation tasks, not one of the nine understanding tasks."""
        return self.kind == "text"

    def score_by(self, rules: str) -> str:
        """Return the name of the figure that is the task's score; ValueError if the rules are unknown."""
        if rules not in RULES:
            raise ValueError(f"The rules of an XGLUE score must be one of {list(RULES)}, not {rules!r}.")
        return self.official_score if rules == "official" and self.official_score else self.score


_NER = "B-LOC B-MISC B-ORG B-PER I-LOC I-MISC I-ORG I-PER O"
_POS = "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X"
_NC = "foodanddrink sports news entertainment health video finance travel lifestyle autos"
# name, kind, languages, labels, score, official score
_TABLE = (
    ("NER", "tags", "de en es nl", _NER, "f1", ""),
    ("POS", "tags", "pl ar ru bg de el en es fr hi it nl pt th tr ur vi zh", _POS, "accuracy", "chunk_precision"),
    ("NC", "label", "de en es fr ru", _NC, "accuracy", ""),
    ("MLQA", "answer", "ar de en es hi vi zh", "", "f1", ""),
    (
        "XNLI", "label", "ar bg de el en es fr hi ru sw th tr ur vi zh",
        "neutral contradiction entailment", "accuracy", "",
    ),
    ("PAWSX", "label", "de en es fr", "0 1", "accuracy", ""),
    ("QADSM", "label", "de en fr", "Good Bad", "accuracy", ""),
    ("WPR", "page", "de en es fr it pt zh", "0 1 2 3 4", "ndcg", ""),
    ("QAM", "label", "de en fr", "0 1", "accuracy", ""),
    ("QG", "text", "de en es fr it pt", "", "bleu", ""),
    ("NTG", "text", "de en es fr ru", "", "bleu", ""),
)  # fmt: skip
TASKS: dict[str, Task] = {
    name: Task(name, kind, tuple(languages.split()), tuple(labels.split()), score, official_score)
    for name, kind, languages, labels, score, official_score in _TABLE
}


def get_task(name: str) -> Task:
    """Return a task by its name; case and a hyphen do not matter.

    Raises:
        ValueError: there is no such task.

    >>> get_task("paws-x").name, get_task("POS").score_by("official")
    ('PAWSX', 'chunk_precision')
    """
    found = TASKS.get(name.upper().replace("-", "")) if isinstance(name, str) else None
    if found is None:
        raise ValueError(f"XGLUE has no task {name!r}; its tasks are {', '.join(TASKS)}.")
    return found


def require_label(task: Task, label: object, where: str) -> None:
    """Refuse a reference label or tag that the task does not have.

    Args:
        where: "Reference 3", or a file and line: how the sentence begins.

    Raises:
        ValueError: the task has labels, and this is not one of them.
    """
    if task.labels and label not in task.labels and not (task.name == "POS" and label == NO_TAG):
        raise ValueError(
            f"{where} must be labelled with one of {', '.join(task.labels)} for {task.name}, not {label!r:.80}; "
            "the test files of XGLUE's first release have no labels."
        )
