"""The text of an example's question: the paper's prompts, or their translations."""

from collections.abc import Mapping

from mrs_datasets.tasks.xcopa_views import PROMPTS as ENGLISH
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.packaged import read_packaged

ENGLISH_PROMPTS, TRANSLATED = "english", "translated"
PROMPTS = (ENGLISH_PROMPTS, TRANSLATED)
TRANSLATIONS: Mapping[str, tuple[str, str]] = read_packaged("mrs_suggest.training.choice", "prompts.yaml")


def prompts_for(language: str, kind: str) -> Mapping[str, str]:
    """`cause` and `effect` -> the prompt.

    Args:
        kind: one of `PROMPTS`.

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
