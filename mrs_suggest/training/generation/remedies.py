"""The options against forgetting: a generator that is trained on some languages alone writes these to all others.

Zhang et al. 2021 (MRS), section 5.2, find it; each option here is a known remedy, off by default, and names its source.
`docs/training.md` lists them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.languages import find_language
from mrs_suggest.training.options import RunArguments, added_options, is_given, option, require_least, trains_lora


@dataclass
class RemedyArguments(RunArguments):
    """What keeps a generator from forgetting languages that it is not trained on."""

    advanced: ClassVar[tuple[str, ...]] = (
        "freeze_decoder_layers",
        "interpolate_start",
        "wrong_language_limit",
        "watch_languages",
    )
    force_language_token: bool | None = option(
        None,
        "true: the decoder starts with the token of the language to write (mBART, 2.2), which is added "
        "where the checkpoint has none; false: never; default: as the checkpoint was trained",
    )
    freeze_decoder_layers: int = option(
        0, "freeze so many of the decoder's layers, the lowest first (after ZmBART, Maurya et al. 2021)"
    )
    denoising_share: float = option(0.0, "of the steps, that are denoising (xDAE; XGLUE, 4.1) of --denoising_text")
    denoising_text: list[str] = option(
        [], "LANG=SOURCE ...: text in the languages to keep, as --text of `mrs train pretraining`"
    )
    interpolate_start: list[float] = option(
        [],
        "after training: the share of the trained weights beside those at the start (Wortsman et al. "
        "2022); of several, the best on validation is kept",
    )
    wrong_language_limit: float | None = option(
        None,
        "stop when more than this share of the replies to --watch_languages is in another language, and "
        "keep a checkpoint from before; needs --language_model",
    )
    watch_languages: list[str] = option(
        [], "of --wrong_language_limit: their validation messages are answered; no replies are needed"
    )


OF_REPLIES = ("denoising_share", "denoising_text", "interpolate_start", "wrong_language_limit", "watch_languages")
RESUME_KEYS = tuple(name for name in added_options(RemedyArguments) if name != "interpolate_start")


def require_sound_remedies(options: RemedyArguments, language_model: str | None) -> None:
    """Refuse values out of their ranges, and options without their counterparts.

    Raises:
        InputError: it names the option.
    """
    require_least(options, "freeze_decoder_layers", 0)
    if trains_lora(options):
        for name in ("freeze_decoder_layers", "interpolate_start"):
            if is_given(options, name):
                raise InputError(f"--{name}: adapters leave the start weights as they are; leave --peft lora out.")
    if not 0 <= options.denoising_share < 1:  # refuses NaN too
        raise InputError(
            f"--denoising_share {options.denoising_share:g}: expected 0 or more and less than 1, a share of the steps."
        )
    if bool(options.denoising_share) != bool(options.denoising_text):
        raise InputError(
            "--denoising_share and --denoising_text: need each other; pass the share of the steps, such as .2, and "
            "LANG=SOURCE."
        )
    for share in options.interpolate_start:
        if not 0 <= share <= 1:
            raise InputError(f"--interpolate_start {share:g}: expected shares of the trained weights from 0 to 1.")
    _require_sound_limit(options, language_model)


def _require_sound_limit(options: RemedyArguments, language_model: str | None) -> None:
    limit = options.wrong_language_limit
    if (limit is None) != (not options.watch_languages):
        raise InputError(
            "--wrong_language_limit and --watch_languages: need each other; pass the share, such as .1, and the "
            "languages to watch."
        )
    if limit is None:
        return
    if not 0 <= limit < 1:
        raise InputError(f"--wrong_language_limit {limit:g}: expected 0 or more and less than 1.")
    if language_model is None:
        raise InputError(
            "--wrong_language_limit: replies are identified by a fastText model; pass --language_model FILE."
        )
    for code in options.watch_languages:
        if find_language(code) is None:
            raise InputError(f"--watch_languages {code}: not the code of a language, such as de.")
