"""Adds all of a data set to the memory and the response sets of a trained retriever, for a model to be shipped.

Figures need messages that a model does not know; a product does not. Weights, temperatures and trigger stay those of
the run, and so do its figures.
"""

from dataclasses import replace
from pathlib import Path

from datasets import concatenate_datasets
from tqdm import tqdm

from mrs_datasets.prepared.prepared import open_prepared
from mrs_metrics.tokenize import get_tokenizer
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.text import normalise_reply
from mrs_suggest.models.retrieval.dual_encoder import load_dual_encoder
from mrs_suggest.models.retrieval.encode import encode_messages, encode_replies
from mrs_suggest.suggest.index.response_index import ResponseIndex, ResponseIndexes
from mrs_suggest.suggest.ranking.language_ranker import LanguageRanker
from mrs_suggest.suggest.ranking.rankers import save_rankers
from mrs_suggest.suggest.ranking.reply_ngrams import ReplyNgrams
from mrs_suggest.suggest.reply_tags import ReplyTags
from mrs_suggest.suggest.retrieval_suggester import RetrievalSuggester
from mrs_suggest.training.retrieval.ranker_tuning import RankerOptions, remember


def remember_all(run: Path, out: Path, data: str) -> None:
    """Write the model of `run` to its copy `out` with the messages of all splits, and the replies that its sets lack.

    Args:
        data: a prepared folder or the name of a data set.

    Raises:
        InputError: the model has no ranker, or the data lack one of its languages.
    """
    source, model = open_prepared(data), RetrievalSuggester.load_from(run, str(run))
    encoder = load_dual_encoder(run)
    if not model.rankers:
        raise InputError(f"{run}: the model has no ranker that could remember; train it with --ranker true.")
    rankers = {}
    for language, ranker in tqdm(model.rankers.items(), desc="remember", unit=" languages"):
        rows = concatenate_datasets([source.load(language, split) for split in source.splits(language)])
        index, stances = ranker.index, [None] * len(rows)
        if "stance" in rows.column_names:
            stances = rows["stance"][:]
        tags = dict(zip(index.replies, model.tags[language].by_reply(), strict=True))
        known = {normalise_reply(reply) for reply in index.replies}
        new: dict[str, list[str]] = {
            reply: [stance] if stance else []
            for reply, stance in zip(rows["reply"][:], stances, strict=True)
            if normalise_reply(reply) not in known
        }
        longer = ResponseIndex.build(
            lambda texts: encode_replies(encoder, texts).numpy(),
            [*index.replies, *new],
            [*map(str, index.clusters), *map(normalise_reply, new)],
            [*index.log_probs.tolist(), *[None] * len(new)],
            index.alpha,
        )
        options = RankerOptions(ranker.settings.names, dimension=ranker.memory.vectors.shape[1])
        memory = remember(lambda texts: encode_messages(encoder, texts).numpy(), longer, [rows], options, 0)
        assert memory is not None  # the data have the replies of the index
        ngrams = ReplyNgrams.build(longer.replies, get_tokenizer(language))
        built = LanguageRanker.build(longer, memory, ngrams, ranker.settings)
        rankers[language] = replace(built, mixture=ranker.mixture)
        place = out / ResponseIndexes.FOLDER / language
        longer.save(place)
        ReplyTags.of([(tags | new)[reply] for reply in longer.replies]).save(place)
    save_rankers(rankers, out)
