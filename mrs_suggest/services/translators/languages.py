"""The languages of translation models, and how each family encodes them.

M2M100, NLLB and mBART-50 have a token for each language (`mrs_suggest.models.generation.language_tokens`). Marian's
checkpoints translate in one direction, or from one language into several, named by a token before the text (Tiedemann
and Thottingal 2020, "OPUS-MT"; `>>de<<`). A generator of this project has its rule in `generator.json`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.languages import KNOWN, find_language
from mrs_suggest.models.generation.language_tokens import END, LANGUAGE, ROWS, START, LanguageTokens
from mrs_suggest.models.generation.reply_writer import read_generator_settings
from mrs_suggest.models.generation.text_coder import Direction, TextCoder
from mrs_suggest.models.starting_points import GENERATOR
from mrs_suggest.services.checkpoints import OPTION

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

MARIAN, MARIAN_TOKENIZER = "marian", "MarianTokenizer"
NLLB = "nllb"
NLLB_LICENCE = "cc-by-nc-4.0"  # NLLB Team 2022, "No Language Left Behind": the model cards of nllb-200
WITH_TOKENS = {"m2m_100": ("m2m100", NLLB), "mbart": ("mbart50",)}  # model type -> rows of `language_tokens`
ALL = ("m2m100", NLLB, "mbart50")
_MARIAN_TOKEN = re.compile(r">>(.+)<<")


class Languages:
    """The directions of one checkpoint.

    Args:
        model_type: of its configuration, such as `marian`; empty if only the tokenizer is known.
    """

    def __init__(self, name: str, folder: Path, tokenizer: PreTrainedTokenizerBase, model_type: str) -> None:
        self._name, self._tokenizer = name, tokenizer
        self._own = read_generator_settings(folder) if (folder / GENERATOR).is_file() else None
        names = list(tokenizer.get_vocab()) if type(tokenizer).__name__ == MARIAN_TOKENIZER else []
        self._marian = {found[1]: name for name in names if (found := _MARIAN_TOKEN.fullmatch(name))}
        self._row: LanguageTokens | None = None
        if self._own is not None:
            self.family = "generator"
        elif model_type == MARIAN or type(tokenizer).__name__ == MARIAN_TOKENIZER:
            self.family = MARIAN
        else:
            rows = [ROWS[row] for row in WITH_TOKENS.get(model_type, () if model_type else ALL)]
            fitting = [row for row in rows if any(self._has(row.tag(code)) for code in KNOWN if row.tag)]
            if not fitting:
                raise InputError(
                    f"{OPTION} {name}: a checkpoint of type {model_type or type(tokenizer).__name__!r} without "
                    "language tokens; pass Marian (OPUS-MT), M2M100, NLLB, mBART-50, or a STAPLE run."
                )
            self._row = fitting[0]
            self.family = self._row.name

    def require(self, source: str, target: str) -> None:
        """Raise InputError, with the known directions, if the checkpoint does not know this one."""
        if self._own is not None:
            direction = self._own.direction
            targets = self._own.languages if direction.target is None else [direction.target]
            ok = direction.source == source and target in targets
            known = f"{direction.source or '?'} to {' '.join(targets)}"
        elif self._row is not None:
            ok = self._code(source) is not None and self._code(target) is not None
            known = " ".join(code for code in KNOWN if self._code(code)) + ", and perhaps others"
        else:
            tokenizer: Any = self._tokenizer
            own, into = (str(getattr(tokenizer, side, None) or "") for side in ("source_lang", "target_lang"))
            ok = _may_be(own, source) and bool(self._marian_token(target) if self._marian else _may_be(into, target))
            known = f"{own or '?'} to {' '.join(sorted(self._marian)) or into or '?'}"
        if not ok:
            raise InputError(
                f"{OPTION} {self._name}: does not translate {source} to {target} (it knows {known}); pass another one, "
                f"such as --translator {target}=MODEL."
            )

    def coder(self, config: Any, source: str, target: str, most: int) -> TextCoder:
        """Texts to ids and back, for one direction; sources are cut after `most` ids."""
        if self._own is not None:
            direction = Direction(source, target, self._own.direction.right_to_left)
            return TextCoder(self._tokenizer, self._own.row, config, most, most, direction)
        if self._row is not None:
            direction = Direction(self._code(source), self._code(target))
            return TextCoder(self._tokenizer, self._row, config, most, most, direction)
        token = self._marian_token(target)
        before = () if token is None else (LANGUAGE,)
        row = LanguageTokens(MARIAN, lambda code: str(token), before, (END,), (START,), (END,))
        return TextCoder(self._tokenizer, row, config, most, most, Direction(target, target))

    def _code(self, code: str) -> str | None:
        """The row's code for a language: `pt` for `pt-BR` unless it has that; None if it is unknown."""
        assert self._row is not None
        assert self._row.tag is not None
        tag = self._row.tag
        return next((name for name in (code, code.partition("-")[0]) if self._has(tag(name))), None)

    def _has(self, token: str) -> bool:
        """Whether the vocabulary has a token; `get_vocab` of M2M100 lacks those of the languages."""
        found: Any = self._tokenizer.convert_tokens_to_ids(token)
        return found is not None and found != self._tokenizer.unk_token_id

    def _marian_token(self, target: str) -> str | None:
        return next((self._marian[name] for name in _names(target) if name in self._marian), None)


def _names(code: str) -> list[str]:
    """Possible names of a language in tokens: `pt`, `por`, or `pt_br` for `pt-BR`."""
    language = find_language(code)
    plain = code.partition("-")[0]
    base = find_language(plain)
    iso3 = base.iso3 if base else ""
    return [
        name for name in (code, code.lower().replace("-", "_"), plain, language.iso3 if language else "", iso3) if name
    ]


def _may_be(named: str, code: str) -> bool:
    """Whether a checkpoint's name of a language may mean `code`; names of groups, such as `ROMANCE`, may."""
    single = {name for language in KNOWN.values() for name in (language.code, language.iso3)}
    return named in _names(code) or named not in single
