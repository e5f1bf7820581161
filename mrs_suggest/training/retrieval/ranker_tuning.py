"""Builds the rankers of a trained retriever: memory from the training pairs, weights and temperatures on validation."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from datasets import Dataset
from numpy.typing import ArrayLike, NDArray
from tqdm import tqdm

from mrs_metrics.rouge import WEIGHTS, Prepared, f1_by_order, prepare_official
from mrs_metrics.tokenize import Tokenizer, get_tokenizer
from mrs_suggest.common.text.predictions import SUGGESTIONS
from mrs_suggest.common.text.text import normalise_reply
from mrs_suggest.evaluation.language_data import EVALUATION_SEED, LanguageData, sample_rows
from mrs_suggest.suggest.index.response_index import ResponseIndex
from mrs_suggest.suggest.ranking.language_ranker import DENSE, LEXICAL, PARTS, LanguageRanker, RankerSettings, kinds_of
from mrs_suggest.suggest.ranking.memory import PROTOTYPES, MessageMemory
from mrs_suggest.suggest.ranking.mixture import ABSENT, Examples, Mixture, best_of_top, standardised, tune
from mrs_suggest.suggest.ranking.reply_ngrams import ReplyNgrams
from mrs_suggest.suggest.ranking.reranking import rerank
from mrs_suggest.suggest.ranking.trigger import USED, Trigger, as_features, risk_coverage
from mrs_suggest.suggest.reply_tags import ReplyTags

# Replies among which three are chosen, and of each part those that weights are fitted on. Ours: on left-out validation
# messages of coffee orders, 100 gain a hundredth over 40, and 160 nothing over 100.
WIDTH = 100
MOST_REMEMBERED = 200_000  # messages per language, unless more are asked for: encoding them takes the time of training
TUNED_ON = 1_000  # validation examples per language; the sample has up to 381
VOTE_TEMPERATURES = (0.01, 0.02, 0.05, 0.1)  # of cosines; ours, as the grids below
TFIDF_TEMPERATURES = (0.02, 0.05, 0.1, 0.2)
# Of mixed scores, whose deviation is about 1.
SET_TEMPERATURES = (0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0)
EncodeMessages = Callable[[list[str]], NDArray[np.float32]]
FEWEST = 50  # examples, and at least a tenth of these on either side; ours: fewer give no table to speak of
FOLDS = 5  # ours


@dataclass(frozen=True)
class RankerOptions:
    """Settings of the memory and the mixture.

    Attributes:
        weights: of the parts, in their order, for all languages; None: validation chooses them and the temperatures.
        choice: see `mrs_suggest.suggest.ranking.choice.CHOICES`.
        dimension: of remembered vectors; None: the encoder's.
        messages: of a language, at most.
    """

    parts: tuple[str, ...] = tuple(PARTS)
    choice: str = "expected"
    dimension: int | None = None
    prototypes: int = PROTOTYPES
    messages: int = MOST_REMEMBERED
    weights: tuple[float, ...] | None = None


@dataclass
class Asked:
    """Messages of a language, those of validation, with their vectors and prepared references."""

    messages: list[str]
    vectors: NDArray[np.float32]
    references: list[Prepared]
    tokenizer: Tokenizer
    read: dict[str, Prepared] = field(default_factory=dict)

    def rows(self) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """Each message with its vector."""
        return zip(self.messages, self.vectors, strict=True)

    def gains(self, ranker: LanguageRanker, number: int, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """(r,) weighted ROUGE of replies of the index against a reference."""
        return self.rouge([ranker.index.replies[row] for row in rows], number)

    def rouge(self, replies: Sequence[str], number: int) -> NDArray[np.float32]:
        """(r,) weighted ROUGE of replies against a reference."""
        reference = self.references[number]
        if reference.empty:
            return np.zeros(len(replies), np.float32)
        return np.array([self._rouge(reply, reference) for reply in replies], np.float32)

    def _rouge(self, reply: str, reference: Prepared) -> float:
        if reply not in self.read:
            self.read[reply] = prepare_official(reply, self.tokenizer)
        orders = f1_by_order(self.read[reply], reference)
        return sum(weight * f1 for weight, f1 in zip(WEIGHTS, orders, strict=True))


def build_rankers(
    encode: EncodeMessages,
    indexes: Mapping[str, ResponseIndex],
    pairs: Mapping[str, Sequence[Dataset]],
    validation: Sequence[LanguageData],
    options: RankerOptions,
    seed: int = 0,
    own: Mapping[str, int] | None = None,
    tags: Mapping[str, ReplyTags] | None = None,
) -> tuple[dict[str, LanguageRanker], dict[str, Asked]]:
    """A ranker for each language that has an index and training pairs whose replies stand in it, and the validation
    messages that tuned them.

    Args:
        encode: messages -> (n, d) vectors.
        pairs: language -> data sets of pairs that the model was trained on; at most `options.messages` are remembered,
            the same share of each data set.
        validation: languages on which weights and temperatures are chosen; the others take those that are best for all.
        own: language -> how many replies of its index are the response set's, where it has others.
        tags: language -> those of the replies of its index, if they have any.
    """
    rankers = {}
    for language, index in tqdm(indexes.items(), desc="memory", unit=" languages", disable=len(indexes) == 1):
        memory = remember(encode, index, pairs.get(language, ()), options, seed)
        if memory is not None:
            ngrams = ReplyNgrams.build(index.replies, get_tokenizer(language))
            settings = RankerSettings(options.parts, choice=options.choice)
            ranker = LanguageRanker.build(index, memory, ngrams, settings)
            kinds = kinds_of((tags or {}).get(language))
            rankers[language] = replace(ranker, own=(own or {}).get(language), kinds=kinds)
    asked = ask(encode, {part.language: part.validation for part in validation if part.language in rankers})
    if options.weights is not None:
        given = Mixture(dict(zip(options.parts, options.weights, strict=True)))
        settings = RankerSettings(options.parts, choice=options.choice, width=WIDTH)
        return {code: replace(one, mixture=given, settings=settings) for code, one in rankers.items()}, asked
    return tune_rankers(rankers, asked) if asked else rankers, asked


def remember(
    encode: EncodeMessages, index: ResponseIndex, sources: Sequence[Dataset], options: RankerOptions, seed: int
) -> MessageMemory | None:
    """The messages of pairs whose replies are in an index; None without such pairs."""
    rows = {normalise_reply(reply): row for row, reply in enumerate(index.replies)}
    total = sum(len(source) for source in sources)
    messages: list[str] = []
    replies: list[int] = []
    for source in sources:
        limit = max(1, options.messages * len(source) // max(total, 1))
        for batch in sample_rows(source, limit, seed).iter(batch_size=10_000):
            found = [rows.get(normalise_reply(reply)) for reply in batch["reply"]]
            messages += [text for text, row in zip(batch["message"], found, strict=True) if row is not None]
            replies += [row for row in found if row is not None]
    if not messages:
        return None
    different = {text: number for number, text in enumerate(dict.fromkeys(messages))}
    vectors = encode(list(different))[[different[text] for text in messages]]
    with_ngrams = any(name in options.parts for name in LEXICAL)
    return MessageMemory.build(messages, vectors, replies, options.prototypes, options.dimension, with_ngrams)


def ask(encode: EncodeMessages, splits: Mapping[str, Dataset]) -> dict[str, Asked]:
    """The messages and references of a sample of each language's examples."""
    found = {}
    for language, split in splits.items():
        rows, tokenizer = sample_rows(split, TUNED_ON, EVALUATION_SEED), get_tokenizer(language)
        references = [prepare_official(reply, tokenizer) for reply in rows["reply"][:]]
        found[language] = Asked(rows["message"][:], encode(rows["message"][:]), references, tokenizer)
    return found


def tune_rankers(rankers: Mapping[str, LanguageRanker], asked: Mapping[str, Asked]) -> dict[str, LanguageRanker]:
    """The rankers with the temperatures, weights and choice that validation prefers, in this order."""
    settings = next(iter(rankers.values())).settings
    settings = replace(
        settings,
        width=WIDTH,
        vote_temperature=_best_temperature(rankers, asked, DENSE[1], "vote_temperature", VOTE_TEMPERATURES),
        tfidf_temperature=_best_temperature(rankers, asked, LEXICAL[1], "tfidf_temperature", TFIDF_TEMPERATURES),
    )
    tuned = {language: replace(ranker, settings=settings) for language, ranker in rankers.items()}
    none = Examples(np.zeros((0, 1, len(settings.names)), np.float32), np.zeros((0, 1), np.float32))
    examples = {
        lang: _examples(tuned[lang], asked[lang]) if lang in asked else none
        for lang in tqdm(tuned, desc="weights", unit=" languages", disable=len(tuned) == 1)
    }
    mixtures = tune(examples, settings.names)
    tuned = {language: replace(ranker, mixture=mixtures[language]) for language, ranker in tuned.items()}
    if settings.choice == "expected":
        scores = {lang: [tuned[lang].rank(*row) for row in of.rows()] for lang, of in asked.items()}

        def gain(temperature: float) -> float:
            """The mean gain of three replies that are chosen with a temperature."""
            gains: list[float] = []
            for language, of in asked.items():
                ranker = replace(tuned[language], settings=replace(settings, temperature=temperature))
                for number, row in enumerate(scores[language]):
                    gains.append(float(of.gains(ranker, number, ranker.choose(row, SUGGESTIONS)[0]).max()))
            return float(np.mean(gains))

        settings = replace(settings, temperature=max(SET_TEMPERATURES, key=gain))
    return {language: replace(ranker, settings=settings) for language, ranker in tuned.items()}


def _best_temperature(
    rankers: Mapping[str, LanguageRanker], asked: Mapping[str, Asked], name: str, option: str, grid: Sequence[float]
) -> float:
    """The temperature with which the part alone suggests best; the settings' own where the part is not mixed."""
    settings = next(iter(rankers.values())).settings
    if name not in settings.names:
        return float(getattr(settings, option))

    def gain(value: float) -> float:
        changed: dict[str, Any] = {"names": (name,), option: value}
        alone = replace(settings, **changed)
        found = [_examples(replace(rankers[lang], settings=alone), of, SUGGESTIONS) for lang, of in asked.items()]
        return float(np.concatenate([best_of_top(one.parts[..., 0], one.gains) for one in found]).mean())

    return max(grid, key=gain)


def _examples(ranker: LanguageRanker, asked: Asked, width: int = WIDTH) -> Examples:
    """The `width` best replies of each part for each message, with their parts and gains."""
    total = len(ranker.index.replies)
    width = min(width, total)
    columns = min(width * len(ranker.settings.names), total)
    parts = np.full((len(asked.messages), columns, len(ranker.settings.names)), ABSENT, np.float32)
    gains = np.zeros((len(asked.messages), columns), np.float32)
    most = 0
    for number, (message, vector) in enumerate(asked.rows()):
        found = standardised(ranker.parts(message, vector))
        rows = np.unique(np.argpartition(-found, width - 1, axis=0)[:width])
        parts[number, : len(rows)] = found[rows]
        gains[number, : len(rows)] = asked.gains(ranker, number, rows)
        most = max(most, len(rows))
    return Examples(parts[:, :most], gains[:, :most])


def add_trigger(
    rankers: Mapping[str, LanguageRanker], asked: Mapping[str, Asked], seed: int = 0
) -> dict[str, LanguageRanker]:
    """The rankers, at least one, with one trigger for all languages; without one if validation has too few examples."""
    features, hits = _outcomes(rankers, asked, USED)
    trigger = fit_trigger(features, hits, seed)
    return {
        language: replace(one, settings=replace(one.settings, trigger=trigger)) for language, one in rankers.items()
    }


def coverage(rankers: Mapping[str, LanguageRanker], asked: Mapping[str, Asked]) -> list[tuple[float, float, float]]:
    """The risk/coverage curve of rankers with a trigger on other messages, such as those of the test split; see
    `mrs_suggest.suggest.ranking.trigger.risk_coverage`. Empty without a trigger."""
    trigger = next(iter(rankers.values())).settings.trigger
    if trigger is None:
        return []
    features, hits = _outcomes(rankers, asked, trigger.used)
    return risk_coverage(trigger.probability(features), hits)


def _outcomes(
    rankers: Mapping[str, LanguageRanker], asked: Mapping[str, Asked], used: float
) -> tuple[NDArray[np.float64], list[bool]]:
    """(n, 3) features of all messages, and whether one of three suggestions is as near to the reply as `used`."""
    features, hits = [], []
    for language, of in asked.items():
        ranker = rankers[language]
        for number, (message, vector) in enumerate(of.rows()):
            features.append(ranker.certainty(message, vector))
            if ranker.second is None:
                suggested = ranker.suggest(message, vector, SUGGESTIONS)
            else:
                (suggested,) = rerank(ranker, [message], vector[None], SUGGESTIONS)
            hits.append(bool(of.rouge([one.reply for one in suggested], number).max(initial=0.0) >= used))
    return as_features(features), hits


def fit_trigger(features: NDArray[np.float64], used: ArrayLike, seed: int = 0) -> Trigger | None:
    """A logistic model, and an isotonic table of what it says of examples that it was not fitted on.

    Args:
        features: (n, 3), see `mrs_suggest.suggest.ranking.trigger.FEATURES`.
        used: (n,) whether one of the suggestions was, by `USED`.

    Returns:
        None where there are too few examples, or too few of either outcome.
    """
    from sklearn.isotonic import IsotonicRegression
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold

    hits = np.asarray(used, bool)
    if len(hits) < FEWEST or min(hits.sum(), (~hits).sum()) < FEWEST // 10:
        return None
    centre, scale = features.mean(0), features.std(0)
    scaled = (features - centre) / np.where(scale > 0, scale, 1)
    left_out = np.zeros(len(hits))
    for fitted, tested in StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(scaled, hits):
        left_out[tested] = LogisticRegression().fit(scaled[fitted], hits[fitted]).decision_function(scaled[tested])
    whole = LogisticRegression().fit(scaled, hits)
    least = 1 / (len(hits) + 2)  # Laplace's rule: nothing is certain
    table = IsotonicRegression(y_min=least, y_max=1 - least, out_of_bounds="clip").fit(left_out, hits)
    weights = whole.coef_[0] / np.where(scale > 0, scale, 1)
    return Trigger(
        tuple(map(float, weights)),
        float(whole.intercept_[0] - weights @ centre),
        tuple(map(float, table.X_thresholds_)),
        tuple(map(float, table.y_thresholds_)),
        USED,
        tuple(risk_coverage(table.predict(left_out), hits)),
    )
