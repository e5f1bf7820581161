"""The text of an example's question: the paper's prompts, or their translations."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mrs_datasets.tasks.xcopa_views import PROMPTS as ENGLISH
from mrs_suggest.common.errors import InputError

ENGLISH_PROMPTS, TRANSLATED = "english", "translated"
PROMPTS = (ENGLISH_PROMPTS, TRANSLATED)
# cause, effect. Ours: neither the paper nor its repository has translations, and no native speaker has checked these.
# There is none in Quechua, for which we could not vouch.
TRANSLATIONS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "en": (ENGLISH["cause"], ENGLISH["effect"]),
        "et": ("Mis oli põhjus?", "Mis selle tagajärjel juhtus?"),
        "ht": ("Ki sa ki te lakòz sa?", "Ki sa ki te rive kòm rezilta?"),
        "id": ("Apa penyebabnya?", "Apa yang terjadi sebagai akibatnya?"),
        "it": ("Qual è stata la causa?", "Che cosa è successo di conseguenza?"),
        "sw": ("Sababu ilikuwa nini?", "Nini kilitokea kama matokeo?"),
        "ta": ("காரணம் என்ன?", "இதன் விளைவாக என்ன நடந்தது?"),
        "th": ("สาเหตุคืออะไร", "ผลที่เกิดขึ้นคืออะไร"),
        "tr": ("Sebebi neydi?", "Sonuç olarak ne oldu?"),
        "vi": ("Nguyên nhân là gì?", "Kết quả là điều gì đã xảy ra?"),
        "zh": ("原因是什么？", "结果发生了什么？"),
    }
)


def prompts_for(language: str, kind: str) -> Mapping[str, str]:
    """`cause` and `effect` -> the prompt.

    Args:
        language: of the text next to it.
        kind: one of `PROMPTS`.

    Raises:
        InputError: the translation is missing.

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
