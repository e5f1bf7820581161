"""Opens translators by what `--translator` names."""

from __future__ import annotations

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.text_services import Translator
from mrs_suggest.services.translators.checkpoints import OPTION, find_checkpoint
from mrs_suggest.services.translators.seq2seq import Search, Seq2SeqTranslator, say_licence


def open_translator(name: str, search: Search | None = None, quantization: str | None = None) -> Translator:
    """A translator by the folder or hub id of its checkpoint; a licence that restricts its use is told on stderr.

    Args:
        quantization: `int8` or `float32`: convert a checkpoint of transformers for CTranslate2, which is faster.

    Raises:
        InputError: there is none, or it is of no family that is known here.
        MissingExtraError: it needs an extra.
    """
    checkpoint = find_checkpoint(name)
    found: Translator
    if checkpoint.is_converted:
        from mrs_suggest.services.translators.ctranslate2_translator import FolderTranslator

        if quantization is not None:
            raise InputError(
                f"--ctranslate2 {quantization}: {OPTION} {name} is converted already; leave --ctranslate2 out."
            )
        found = FolderTranslator(checkpoint, search)
    elif quantization is not None:
        from mrs_suggest.services.translators.ctranslate2_translator import ConvertedTranslator

        found = ConvertedTranslator(checkpoint, search, quantization)
    else:
        found = Seq2SeqTranslator(checkpoint, search)
    say_licence(found.facts)
    return found
