"""Several objectives in one run: which model they share, how often a step is of each, and their batches."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mrs_suggest.common.errors import InputError
from mrs_suggest.training.options import is_given, require_one_of
from mrs_suggest.training.pretraining.mlm import MaskedLanguageModelling, TranslationLanguageModelling
from mrs_suggest.training.pretraining.objective import Objective, Pretrained
from mrs_suggest.training.pretraining.options import PretrainingArguments
from mrs_suggest.training.pretraining.seq2seq import Denoising, FutureNgrams
from mrs_suggest.training.pretraining.texts import Splits, TextData

OBJECTIVES: Mapping[str, Objective] = {
    "mlm": MaskedLanguageModelling(),
    "tlm": TranslationLanguageModelling(),
    "xdae": Denoising(),
    "xfnp": FutureNgrams(),
}
WHICH = "which"  # in a batch: the number of its objective


@dataclass(frozen=True)
class Part:
    """An objective of a run.

    Attributes:
        share: of the steps; those of a run add up to 1.
        parts: the model that all objectives of the run share.
    """

    name: str
    share: float
    objective: Objective
    parts: Pretrained

    def texts(self, data: TextData) -> Splits[Any]:
        """What it reads of the text of a run."""
        return data.pairs if self.objective.reads == "parallel" else data


def require_sound_mixture(options: PretrainingArguments) -> None:
    """Refuse objectives that cannot share a run, impossible shares, and text that no objective reads."""
    names = options.objective
    if not names:
        raise InputError(f"--objective: expected one or more of {', '.join(OBJECTIVES)}, found none.")
    for name in names:
        require_one_of("objective", name, tuple(OBJECTIVES))
    together = f"--objective {' '.join(names)}"
    if len(set(names)) < len(names):
        raise InputError(f"{together}: an objective is given twice; set how often each is trained with --shares.")
    first = names[0]
    for name in names[1:]:
        if OBJECTIVES[name].trains != OBJECTIVES[first].trains:
            raise InputError(
                f"{together}: {first} trains {OBJECTIVES[first].trains}, and {name} {OBJECTIVES[name].trains}; a "
                "run has one model, so choose objectives of one kind."
            )
    if options.shares and len(options.shares) != len(names):
        raise InputError(f"--shares: expected a number for each of {' '.join(names)}, found {len(options.shares)}.")
    for share in options.shares:
        if not 0 < share < float("inf"):  # refuses NaN too
            raise InputError(f"--shares: expected numbers above 0, found {share:g}; leave such an objective out.")
    _require_read(options, {OBJECTIVES[name].reads for name in names})


def _require_read(options: PretrainingArguments, reads: set[str]) -> None:
    """Refuse text that no objective reads, and an objective without text."""
    own = {
        "text": ("text", "validation_text", "test_text", "text_column", "data", "languages"),
        "parallel": ("parallel", "validation_parallel", "test_parallel", "parallel_columns"),
    }
    why = {"text": "only translations (--parallel) are read by", "parallel": "only tlm reads translations, not"}
    for kind, options_of_it in own.items():
        for name in options_of_it if kind not in reads else ():
            if is_given(options, name):
                raise InputError(
                    f"--{name}: has no effect: {why[kind]} --objective {' '.join(options.objective)}; leave it out."
                )
    if "parallel" in reads and not options.parallel:
        raise InputError(
            "--objective tlm: reads translations; pass --parallel LANG-LANG=FILE, such as --parallel en-ht=pairs.tsv."
        )


def mixture(options: PretrainingArguments, parts: Pretrained) -> list[Part]:
    """The objectives of a run, around the model that the first of them built; without --shares, equal ones."""
    shares = options.shares or [1.0] * len(options.objective)
    for name in options.objective:
        OBJECTIVES[name].require_model(parts.model, options.model_name_or_path)
    both = zip(options.objective, shares, strict=True)
    return [Part(name, share / sum(shares), OBJECTIVES[name], parts) for name, share in both]
