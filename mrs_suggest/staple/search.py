"""How a member's translations are found: the options of the search, and the search itself."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from mrs_metrics.signature import signature
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import content_hash
from mrs_suggest.models.exports import CTRANSLATE2
from mrs_suggest.models.generation.decoding.monte_carlo import has_dropout, n_agreed
from mrs_suggest.models.generation.decoding.nbest import Written, fitting_batch, n_best, n_drawn
from mrs_suggest.models.generation.decoding.sampling import Sampling
from mrs_suggest.models.generation.decoding.settings import Decoding
from mrs_suggest.models.generation.generator import Generator, ReplyWriter
from mrs_suggest.staple.members import Run
from mrs_suggest.staple.parts import PART

BEAM, SAMPLE = SEARCHES = ("beam", "sample")
NBEST = 50  # ours: what is beyond is seldom kept by a filter
SEED = 42  # as the trainers'
AGREEMENT = {  # of Monte Carlo dropout, see `mrs_suggest.models.generation.decoding.monte_carlo.Agreed`
    "dropout_share": "share of the passes with dropout whose n best hold the translation",
    "dropout_log_prob": "log-probability, mean over the passes with dropout",
    "dropout_deviation": "log-probability, standard deviation over the passes with dropout",
}


class Found(NamedTuple):
    """A translation, and the values of what its search measures beside."""

    text: Written
    features: tuple[float, ...] = ()


Translate = Callable[[Sequence[str]], list[list[Found]]]


@dataclass(frozen=True)
class Search:
    """The options of a search; every default names its source.

    Args:
        search: `beam` or `sample`.
        nbest: the most translations of a prompt (ours); with dropout, of each pass.
        beams: hypotheses that are kept at each step; None: `nbest`.
        groups, diversity_penalty: of a diverse beam search (Vijayakumar et al. 2018); 1 is plain beam search.
        samples, temperature, top_p: of sampling, see `mrs_suggest.models.generation.decoding.sampling.Sampling`; None:
        `nbest` samples of the model
            as it is.
        dropout_passes: beam searches with Monte Carlo dropout (Li et al. 2020, in the task); 0 for none.
        dropout_rate: of them; None: the one that the model was trained with.
        length_penalty: exponent of the length in the score that ranks; None: the run's own.
        max_tokens: of a translation; None: the run's own.
        seed: of samples and dropout (42, as the trainers').
        batch_size: prompts decoded together; None: as many as fit. It changes speed and memory, not results.
        ctranslate2: search with CTranslate2; None or False: with torch.

    Raises:
        InputError: an impossible value; the sentence names the option.
    """

    search: str = BEAM
    nbest: int = NBEST
    beams: int | None = None
    groups: int = 1
    diversity_penalty: float = 0.0
    samples: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    dropout_passes: int = 0
    dropout_rate: float | None = None
    length_penalty: float | None = None
    max_tokens: int | None = None
    seed: int = SEED
    batch_size: int | None = None
    ctranslate2: bool = False

    def __post_init__(self) -> None:
        if self.search not in SEARCHES:
            raise InputError(f"--search {self.search}: expected {' or '.join(SEARCHES)}.")
        if self.nbest < 1:
            raise InputError(f"--nbest {self.nbest}: expected a whole number from 1.")
        if self.batch_size is not None and not 1 <= self.batch_size <= PART:
            raise InputError(f"--batch_size {self.batch_size}: expected a whole number from 1 to {PART}.")
        if self.seed < 0:
            raise InputError(f"--seed {self.seed}: expected a whole number from 0.")
        self._require_fitting()
        name, rows = ("samples", self.sampling.samples) if self.search == SAMPLE else ("beams", self.width)
        if self.nbest > rows:
            raise InputError(f"--nbest {self.nbest}: a search with --{name} {rows} finds fewer; raise --{name}.")
        self.decoding(Decoding())

    def _require_fitting(self) -> None:
        """Refuse options that have no effect, or cannot go together."""
        if self.dropout_passes < 0 or self.dropout_passes == 1:
            raise InputError(f"--dropout_passes {self.dropout_passes}: expected 2 or more, or 0 for none.")
        if self.dropout_rate is not None and not 0 < self.dropout_rate < 1:
            raise InputError(f"--dropout_rate {self.dropout_rate:g}: expected a share between 0 and 1.")
        if self.dropout_rate is not None and not self.dropout_passes:
            raise InputError("--dropout_rate: has no effect without --dropout_passes; pass that too, or leave it out.")
        others = {"beam": ("samples", "temperature", "top_p"), "sample": ("beams", "groups", "dropout_passes")}
        for name in others[self.search]:
            if getattr(self, name) not in (None, 0) and (name != "groups" or self.groups != 1):
                raise InputError(f"--{name}: has no effect with --search {self.search}; leave it out.")
        if self.ctranslate2 and (self.search == SAMPLE or self.dropout_passes or self.groups > 1):
            raise InputError("--ctranslate2: has plain beam search alone; leave it out, or the other search.")

    @property
    def width(self) -> int:
        """Beams."""
        return self.nbest if self.beams is None else self.beams

    @property
    def sampling(self) -> Sampling:
        """How samples are drawn."""
        given: dict[str, Any] = {"temperature": self.temperature, "top_p": self.top_p}
        samples = self.nbest if self.samples is None else self.samples
        return Sampling(samples, **{name: value for name, value in given.items() if value is not None})

    @property
    def rows(self) -> int:
        """What is decoded for each prompt at once."""
        return self.sampling.samples if self.search == SAMPLE else self.width

    @property
    def features(self) -> dict[str, str]:
        """What the search measures beside log-probability and length: name -> meaning."""
        return dict(AGREEMENT) if self.dropout_passes else {}

    def decoding(self, own: Decoding) -> Decoding:
        """The settings of the beam search, or of the rules that samples keep.

        Args:
            own: those of the run.

        Raises:
            InputError: they cannot be.
        """
        width = (self.width, self.groups) if self.search == BEAM else (1, 1)
        changes: dict[str, Any] = {"beams": width[0], "groups": width[1], "diversity_penalty": self.diversity_penalty}
        given: dict[str, Any] = {"length_penalty": self.length_penalty, "max_tokens": self.max_tokens}
        return replace(own, **changes, **{name: value for name, value in given.items() if value is not None})

    def facts(self) -> dict[str, Any]:
        """What decides the translations, where it is not the default."""
        width = {"samples": self.sampling.samples} if self.search == SAMPLE else {"beams": self.width}
        chosen = {"search": self.search, "nbest": self.nbest, **width}
        drawn = {"seed": self.seed} if self.search == SAMPLE or self.dropout_passes else {}
        others = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}
        left_out = (*chosen, "beams", "batch_size", "seed")
        more = {name: value for name, (value, default) in others.items() if name not in left_out and value != default}
        return {**chosen, **more, **drawn}

    def signature(self) -> str:
        """Of the step, for the file of hypotheses."""
        return signature("staple_decode", **self.facts())


def member_facts(run: Run, search: Search) -> dict[str, Any]:
    """What decides a member's translations: the run, its export where that is used, and the search."""
    facts = {**run.facts, **search.facts()}
    if search.ctranslate2:
        files = [path for path in (run.folder / CTRANSLATE2).glob("*") if path.is_file()]
        facts["export"] = content_hash(files) if files else "fp32, made for the call"
    return facts


def require_able(runs: Sequence[Run], search: Search) -> None:
    """Refuse a search that a run cannot do, before the first is loaded.

    Raises:
        InputError: a run was trained without dropout, and passes without a rate were asked for.
        MissingExtraError: the extra `ctranslate2` is not installed.
    """
    if search.ctranslate2:
        from mrs_suggest.models.generation.ctranslate2_writer import require_ctranslate2

        require_ctranslate2()
    for run in runs if search.dropout_passes and search.dropout_rate is None else ():
        if not has_dropout(run.config):
            raise InputError(
                f"--dropout_passes: {run.given} was trained without dropout; pass --dropout_rate, such as .1."
            )


def translator(run: Run, search: Search, language: str) -> Translate:
    """Load a run, and return the function that translates prompts with it.

    Raises:
        InputError: it is damaged, or cannot search like this.
        MissingExtraError: the extra `ctranslate2` is not installed.
    """
    if search.ctranslate2:
        writer: ReplyWriter = exported(run)
        decoding = _settings(run, search, writer.coder.config)
        return lambda texts: _plain(n_best(writer, texts, language, search.nbest, decoding))
    generator = Generator.load(run.folder)
    settings, n = _settings(run, search, generator.coder.config), search.nbest
    if search.search == SAMPLE:
        return lambda texts: _plain(
            n_drawn(generator, texts, language, n, settings, search.sampling, _seeds(run, search, texts))
        )
    if not search.dropout_passes:
        return lambda texts: _plain(n_best(generator, texts, language, n, settings))
    passes = [(_seed(run, search, ""), number) for number in range(search.dropout_passes)]

    def agreed(texts: Sequence[str]) -> list[list[Found]]:
        rows = n_agreed(generator, texts, language, n, settings, passes, search.dropout_rate)
        return [[Found(text, tuple(features)) for text, *features in row] for row in rows]

    return agreed


def exported(run: Run) -> ReplyWriter:
    """A run on CTranslate2: the export in its folder, or one in fp32 that is made now and lives as long as the process.

    Raises:
        MissingExtraError: the extra `ctranslate2` is not installed.
        InputError: CTranslate2 cannot convert the model.
    """
    from mrs_suggest.models.generation.ctranslate2_generator import ExportedGenerator
    from mrs_suggest.models.generation.ctranslate2_writer import require_ctranslate2, write_ctranslate2

    require_ctranslate2()
    found = ExportedGenerator.load(run.folder)
    if found is not None:
        return found
    with tempfile.TemporaryDirectory() as place:  # its weights are in memory once it is loaded
        write_ctranslate2(Generator.load(run.folder), run.folder, Path(place), int8=False)
        made = ExportedGenerator.load(run.folder, Path(place))
    assert made is not None
    return made


def _settings(run: Run, search: Search, config: Any) -> Decoding:
    """How a run searches, with a batch that fits into memory."""
    facts = run.settings
    plain = search.decoding(facts.decoding)
    tokens = max(facts.message_tokens, plain.max_tokens)
    return replace(plain, batch_size=search.batch_size or fitting_batch(config, search.rows, tokens))


def _plain(rows: Sequence[Sequence[Written]]) -> list[list[Found]]:
    return [[Found(text) for text in row] for row in rows]


def _seeds(run: Run, search: Search, texts: Sequence[str]) -> list[int]:
    """The seed of each prompt's draws: it does not depend on the other prompts."""
    return [_seed(run, search, text) for text in texts]


def _seed(run: Run, search: Search, text: str) -> int:
    digest = hashlib.blake2b(f"{search.seed}\0{run.name}\0{text}".encode(), digest_size=8)
    return int.from_bytes(digest.digest(), "big")
