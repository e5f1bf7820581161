"""The special tokens by which multilingual seq2seq models know the language: one row for each kind of checkpoint.

The text itself is tokenized without special tokens; a row says which tokens surround a message and which ones a reply
starts with. So nothing depends on the state of a tokenizer (`src_lang`), and batches may mix languages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.languages import KNOWN, LANGUAGES
from mrs_suggest.models.checkpoint_loading import drawn

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

# Places for a row's tokens.
LANGUAGE, BEGIN, END, SEPARATOR, START = "<language>", "<begin>", "<end>", "<separator>", "<start>"
OF_ROW = -1  # in a `TokenFrame`, the token that depends on the language
ADDED_SEED = 42  # of the added tokens' vectors: equal for equal checkpoints, whatever a run's seed
UNTOLD = "-untold"  # ends the name of a row whose decoder does not start with the language's token
_MBART_REGIONS = {"de": "DE", "it": "IT", "sv": "SE", "ru": "RU"}  # the others of MRS's ten carry XX


@dataclass(frozen=True)
class LanguageTokens:
    """One row.

    Attributes:
        tag: language code -> its token; None for a model that must learn the language from the message.
        before, after: tokens around a message.
        prompt: the decoder's first tokens.
        end: tokens after a reply.
    """

    name: str
    tag: Callable[[str], str] | None
    before: tuple[str, ...]
    after: tuple[str, ...]
    prompt: tuple[str, ...]
    end: tuple[str, ...]


def _mbart(code: str) -> str:
    return f"{code}_{_MBART_REGIONS.get(code, 'XX')}"


def _nllb(code: str) -> str:
    language = KNOWN.get(code)
    return f"{language.iso3}_{language.script}" if language else code


ROWS = {
    row.name: row
    for row in (
        # Unicoder-xDAE (generation_rs of microsoft/MRS): `text </s> [EOS]`; the decoder starts with `[en]`.
        LanguageTokens("unicoder", lambda code: f"[{code}]", (), (SEPARATOR, END), (LANGUAGE,), (SEPARATOR, END)),
        # mBART-50 (Tang et al. 2020): `en_XX text </s>`; the decoder starts with `</s> en_XX`.
        LanguageTokens("mbart50", _mbart, (LANGUAGE,), (END,), (END, LANGUAGE), (END,)),
        # M2M100 (Fan et al. 2020): `__en__ text </s>`; the decoder starts with `</s> __en__`.
        LanguageTokens("m2m100", lambda code: f"__{code}__", (LANGUAGE,), (END,), (END, LANGUAGE), (END,)),
        # NLLB-200 (NLLB Team 2022): `eng_Latn text </s>`; the decoder starts with `</s> eng_Latn`.
        LanguageTokens("nllb", _nllb, (LANGUAGE,), (END,), (END, LANGUAGE), (END,)),
        # An encoder with a new decoder (`encoder_decoder.py`): `[CLS] text [SEP]`, as the encoder was trained; the
        # decoder starts with `<2en>`, a token as in Johnson et al. 2017.
        LanguageTokens("encoder", lambda code: f"<2{code}>", (BEGIN,), (END,), (LANGUAGE,), (END,)),
        # mT5 (Xue et al. 2021) and ByT5 (Xue et al. 2022): no language token; the decoder starts with padding.
        LanguageTokens("plain", None, (), (END,), (START,), (END,)),
        # A checkpoint of the row `plain` with an added token for each language (`with_forced_token`), which the
        # decoder reads first, as mBART's (Liu et al. 2020, section 2.2).
        LanguageTokens("told", lambda code: f"<to:{code}>", (), (END,), (START, LANGUAGE), (END,)),
        # A language model: what surrounds a message is its prompt (`causal.py`), which names the language.
        LanguageTokens("causal", None, (), (), (), (END,)),
    )
}
ENCODER_TYPES = ("bert", "camembert", "roberta", "xlm-roberta")  # of which a generator can be made
# Have no token of a language unless the vocabulary shows one.
PLAIN_TYPES = ("t5", "mt5", "umt5", "byt5", "bart", "prophetnet")


def untold(row: LanguageTokens) -> LanguageTokens:
    """The row with a decoder that starts with an end token, as fairseq's, whatever the language.

    >>> untold(ROWS["mbart50"]).prompt, untold(ROWS["plain"]).name
    (('<end>',), 'plain')
    """
    if LANGUAGE not in row.prompt:
        return row
    return replace(row, name=f"{row.name}{UNTOLD}", prompt=(END,))


def with_forced_token(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    row: LanguageTokens,
    languages: Sequence[str],
    forced: bool,
) -> LanguageTokens:
    """The row whose decoder starts with the language's token, or with an end token whatever the language.

    mBART gives the decoder the language's token first (Liu et al. 2020, section 2.2), and so do the other checkpoints
    with such tokens. A model that is trained on English can then be asked for another language; zero-shot training
    decides whether it obeys.

    If the checkpoint lacks such tokens (T5's families) and one is to be forced, they are added to the tokenizer, and
    their vectors to the model, in place; they are drawn like the checkpoint's own, and learn only from pairs and text
    in their language.
    """
    if not forced:
        return untold(row)
    told = ROWS["told"]
    if LANGUAGE in row.prompt and row != told:
        return row
    assert told.tag is not None
    tokenizer.add_special_tokens(
        {"additional_special_tokens": [told.tag(code) for code in dict.fromkeys(languages)]},
        replace_extra_special_tokens=False,
    )
    table: Any = model.get_input_embeddings()
    if len(tokenizer) > table.num_embeddings:  # mT5's table has rows to spare
        with drawn(ADDED_SEED):
            model.resize_token_embeddings(len(tokenizer))
    return told


def row_named(name: str) -> LanguageTokens:
    """The row that `generator.json` names; KeyError, TypeError or AttributeError if the name is damaged."""
    return untold(ROWS[name.removesuffix(UNTOLD)]) if name.endswith(UNTOLD) else ROWS[name]


def row_of(config: PretrainedConfig, tokenizer: PreTrainedTokenizerBase) -> LanguageTokens:
    """The row of a checkpoint: the one whose token for a language of MRS its vocabulary has."""
    vocabulary = tokenizer.get_vocab()
    # The older mBART of 25 languages has mBART-50's tokens, but puts them behind the text.
    known = () if type(tokenizer).__name__.startswith("MBartTokenizer") else ROWS.values()
    for row in known:
        if row.tag is not None and any(row.tag(code) in vocabulary for code in LANGUAGES):
            return row
    if config.model_type in PLAIN_TYPES:
        return ROWS["plain"]
    raise InputError(
        f"--model_name_or_path: a checkpoint of type {config.model_type!r} without a known language token; "
        "use mBART-50, M2M100, NLLB, mT5, ByT5, xProphetNet, a converted Unicoder-xDAE, or an encoder such as BERT."
    )


def token_ids(
    row: LanguageTokens, language: str, places: tuple[str, ...], config: Any, tokenizer: PreTrainedTokenizerBase
) -> list[int]:
    """The ids of `row.before`, `row.after`, `row.prompt` or `row.end` for a language."""
    named = {
        END: ("eos_token in its tokenizer", tokenizer.eos_token_id),
        BEGIN: ("cls_token in its tokenizer", tokenizer.cls_token_id),
        SEPARATOR: ("sep_token in its tokenizer", tokenizer.sep_token_id),
        # A T5 configuration may lack the field.
        START: ("decoder_start_token_id in its config.json", getattr(config, "decoder_start_token_id", None)),
    }
    ids = []
    for place in places:
        if place == LANGUAGE:
            token = row.tag(language) if row.tag else ""
            found: Any = tokenizer.convert_tokens_to_ids(token)  # get_vocab takes half a second for 250,000 tokens
            if found is None or found == tokenizer.unk_token_id:
                raise InputError(f"the model has no token {token} for the language {language}; use another checkpoint.")
        else:
            name, found = named[place]
            if found is None:
                raise InputError(f"the model has no {name}; add it, or use another checkpoint.")
        ids.append(int(found))
    return ids


@dataclass(frozen=True)
class TokenFrame:
    """The special tokens around the texts of a checkpoint; only the language's own token differs between languages.

    Attributes:
        before, prompt, end: of the source, the decoder and both texts' ends; `OF_ROW` stands for the language's token,
            or for the start token of a checkpoint without such tokens.
    """

    before: tuple[int, ...]
    prompt: tuple[int, ...]
    end: tuple[int, ...]

    @staticmethod
    def of(
        row: LanguageTokens, language: str, config: PretrainedConfig, tokenizer: PreTrainedTokenizerBase
    ) -> tuple[TokenFrame, int]:
        """The frame of a checkpoint, and the id that `OF_ROW` stands for in a language."""
        varies = LANGUAGE if row.tag else START
        own = token_ids(row, language, (varies,), config, tokenizer)[0]

        def of_row(places: tuple[str, ...]) -> tuple[int, ...]:
            ids = token_ids(row, language, places, config, tokenizer)
            return tuple(OF_ROW if place == varies else number for place, number in zip(places, ids, strict=True))

        return TokenFrame(of_row(row.before), of_row(row.prompt), of_row(row.end)), own

    def room(self, most: int) -> int:
        """Tokens of a text for which source and target have at most `most`."""
        return most - len(self.end) - max(len(self.before), len(self.prompt) - 1)

    def begin(self, own: int) -> list[int]:
        """The tokens before the source of a language."""
        return [own if number == OF_ROW else number for number in self.before]

    def start(self, own: int) -> list[int]:
        """The decoder's first tokens in a language."""
        return [own if number == OF_ROW else number for number in self.prompt]
