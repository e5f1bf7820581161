"""The five setups of XCOPA (Ponti et al. 2020, Table 4): their training data, and the data that choose the checkpoint;
and the text of a question, the paper's prompts or their translations.

A setup with SIQA and COPA has two stages, each a run: SI-ZS is the first, and SI+CO-ZS or SI+CO-TLV starts from it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from mrs_datasets.tasks.xcopa_views import PROMPTS as ENGLISH
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.packaged import read_packaged
from mrs_suggest.models.starting_points import checkpoint_file

SOURCE, TARGET = "source", "target"  # languages that choose the checkpoint: that of training, or each tested one
SIQA, COPA = "SIQA", "COPA"
CHOICES = {COPA: 2, SIQA: 3}
ENGLISH_PROMPTS, TRANSLATED = "english", "translated"
PROMPTS = (ENGLISH_PROMPTS, TRANSLATED)
TRANSLATIONS: Mapping[str, tuple[str, str]] = read_packaged("mrs_suggest.training.choice", "prompts.yaml")


@dataclass(frozen=True)
class Setup:
    """One row of Table 4.

    Attributes:
        trains_on: `SIQA` or `COPA`, by the number of choices that each question has.
        validation: `source` (ZS, on English) or `target` (TLV: a checkpoint for each tested language).
        starts_from: the setup of the run to start from; empty for an encoder.
    """

    name: str
    trains_on: str
    validation: str = SOURCE
    starts_from: str = ""

    @property
    def choices(self) -> int:
        """Alternatives of each training question."""
        return CHOICES[self.trains_on]


SETUPS: Mapping[str, Setup] = {
    setup.name: setup
    for setup in (
        Setup("CO-ZS", COPA),
        Setup("CO-TLV", COPA, TARGET),
        Setup("SI-ZS", SIQA),
        Setup("SI+CO-ZS", COPA, starts_from="SI-ZS"),
        Setup("SI+CO-TLV", COPA, TARGET, starts_from="SI-ZS"),
    )
}


def setup_of(name: str | None) -> Setup | None:
    """The setup of that name, None for none; InputError if there is no such setup."""
    if name is None:
        return None
    if name not in SETUPS:
        raise InputError(f"--setup {name}: no such setup; expected one of {', '.join(SETUPS)}.")
    return SETUPS[name]


def require_stage(setup: Setup | None, name: str, revision: str | None) -> None:
    """Refuse a second stage that does not start from the first."""
    if setup is None or not setup.starts_from:
        return
    path = checkpoint_file(name, "run.json", revision)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))["plan"]["setup"] if path else None
    except (OSError, ValueError, LookupError, TypeError):
        found = None
    if found != setup.starts_from:
        raise InputError(
            f"--setup {setup.name}: starts from the folder of a run with --setup {setup.starts_from}, but "
            f"--model_name_or_path {name} is {f'one with --setup {found}' if found else 'not such a folder'}."
        )


def prompts_for(language: str, kind: str) -> Mapping[str, str]:
    """`cause` and `effect` -> the prompt.

    >>> prompts_for("it", "translated")["cause"]
    'Qual è stata la causa?'
    """
    if kind == ENGLISH_PROMPTS:
        return ENGLISH
    if language not in TRANSLATIONS:
        raise InputError(
            f"--prompts {TRANSLATED}: the prompts are not translated to {language}; expected one of "
            f"{', '.join(TRANSLATIONS)}; leave {language} out of --languages, or pass --prompts {ENGLISH_PROMPTS}."
        )
    return dict(zip(ENGLISH, TRANSLATIONS[language], strict=True))
