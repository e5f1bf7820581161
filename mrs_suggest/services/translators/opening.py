"""Opens translators by the value of `--translator`."""

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.text_services import Translator
from mrs_suggest.services.checkpoints import OPTION, find_translator
from mrs_suggest.services.translators.seq2seq import Search, Seq2SeqTranslator, say_licence


def open_translator(name: str, search: Search | None = None, quantization: str | None = None) -> Translator:
    """Open a translator by the folder or hub id of its checkpoint; a note is printed about a restrictive licence.

    Args:
        quantization: `int8` or `float32`: convert a checkpoint of transformers for CTranslate2, which is faster.

    Raises:
        InputError: it is missing or damaged, or its family is unknown.
        MissingExtraError: it needs an extra.
    """
    checkpoint, search = find_translator(name), search or Search()
    found: Translator
    if checkpoint.is_converted:
        from mrs_suggest.services.translators.ctranslate2_translator import FolderTranslator

        if quantization is not None:
            raise InputError(
                f"--ctranslate2 {quantization}: {OPTION} {name} is converted already; leave out --ctranslate2."
            )
        found = FolderTranslator(checkpoint, search)
    elif quantization is not None:
        from mrs_suggest.services.translators.ctranslate2_translator import ConvertedTranslator

        found = ConvertedTranslator(checkpoint, search, quantization)
    else:
        found = Seq2SeqTranslator(checkpoint, search)
    say_licence(found.facts)
    return found
