"""`mrs staple decode`: many translations of each prompt by one or several runs, in a file of hypotheses.

The prompts are a split of prepared data, or the lines of a text."""

import hashlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mrs_datasets.prepared.prepared import PreparedData
from mrs_datasets.readers.staple.staple_files import prompt_id
from mrs_metrics.signature import signature
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import content_hash, file_sha256, require_new_file
from mrs_suggest.common.io.lines import read_lines
from mrs_suggest.common.text.text import is_blank
from mrs_suggest.models.exports import CTRANSLATE2, require_packages
from mrs_suggest.models.generation.decoding.monte_carlo import has_dropout, n_agreed
from mrs_suggest.models.generation.decoding.nbest import fitting_batch, n_best, n_drawn
from mrs_suggest.models.generation.decoding.settings import Decoding, Sampling
from mrs_suggest.models.generation.generator import Generator
from mrs_suggest.models.generation.reply_writer import ReplyWriter
from mrs_suggest.staple.hypotheses import Hypotheses, schema_of, write_hypotheses
from mrs_suggest.staple.members import Run, written_language
from mrs_suggest.staple.parts import PART, Part, make_parts, parts_of, run_parts

BEAM, SAMPLE = SEARCHES = ("beam", "sample")
NBEST = 50  # ours: what is beyond is seldom kept by a filter
SEED = 42  # as the trainers'
AGREEMENT = {  # of Monte Carlo dropout, see `mrs_suggest.models.generation.decoding.monte_carlo.Agreed`
    "dropout_share": "share of the passes with dropout whose n best hold the translation",
    "dropout_log_prob": "log-probability, mean over the passes with dropout",
    "dropout_deviation": "log-probability, standard deviation over the passes with dropout",
}


# Prompts -> of each, its translations: text, log-probability, length, and the features of the search.
Translate = Callable[[Sequence[str]], Sequence[Sequence[tuple[Any, ...]]]]


@dataclass(frozen=True)
class Prompts:
    """The texts to translate, and their source.

    Attributes:
        texts: id -> text, in the order of the source.
        data: `id` and `content_hash` or `revision` of the source, and `split`.
    """

    texts: Mapping[str, str]
    data: Mapping[str, Any]


def prompts_of_split(data: PreparedData, language: str, split: str) -> Prompts:
    """The prompts of a split of a STAPLE data set; InputError if there is no such split, or it is damaged."""
    rows = data.load(language, split)
    if not {"id", "prompt"} <= set(rows.column_names):
        raise InputError(
            f"{data.name}: {language} has the columns {', '.join(rows.column_names)}, expected id and prompt; pass "
            "data that `mrs data prepare staple` or `mrs data prepare synthetic-staple` made."
        )
    ids, texts = rows["id"][:], rows["prompt"][:]
    for row, (key, text) in enumerate(zip(ids, texts, strict=True), 1):
        if not key or not text or is_blank(text):
            raise InputError(f"{data.name}, {language}/{split}, row {row}: found no id or no prompt; prepare again.")
    if len(set(ids)) < len(ids):
        twice = next(key for number, key in enumerate(ids) if key in ids[:number])
        raise InputError(f"{data.name}, {language}/{split}: the prompt {twice} comes twice; prepare the data again.")
    if not ids:
        raise InputError(f"{data.name}: {language}/{split} has no prompts.")
    identity = data.identity([language])
    facts: dict[str, Any] = {key: identity[key] for key in ("id", "content_hash", "revision") if key in identity}
    return Prompts(dict(zip(ids, texts, strict=True)), {**facts, "split": split})


def prompts_of_text(path: Path) -> Prompts:
    """The lines of a text, equal ones once and blank ones left out; a line's id is `prompt_` and its MD5."""
    if not path.is_file():
        raise InputError(f"{path}: no such file; expected a text with a sentence a line.")
    lines = (" ".join(line.split()) for _, line in read_lines(path))
    texts = {prompt_id(line): line for line in lines if not is_blank(line)}
    if not texts:
        raise InputError(f"{path}: has no text; expected a sentence a line.")
    return Prompts(texts, {"id": path.name, "content_hash": file_sha256(path)[:16], "split": None})


def choose_language(asked: str | None, known: Sequence[Sequence[str]], have: Sequence[str] | None) -> str:
    """The language to translate to: the one that was asked for, or the only one that all runs write and the data have.

    Args:
        have: those of the data; None for a plain text.

    Raises:
        InputError: a run or the data lack the language, or the choice is not unique.
    """
    common = [code for code in known[0] if all(code in codes for codes in known)]
    both = [code for code in common if have is None or code in have]
    if asked is None:
        if len(both) == 1:
            return both[0]
        if both:
            raise InputError(f"--language: could be any of {' '.join(both)}; pass the language to translate to.")
        found = f"; the data have {' '.join(have)}" if have is not None else ""
        raise InputError(f"--language: the runs write {' '.join(common) or 'none in common'}{found}; pass other runs.")
    if asked not in common:
        raise InputError(f"--language {asked}: is not known to every run; they write {' '.join(common) or 'none'}.")
    if asked not in both:
        raise InputError(f"--language {asked}: the data have {' '.join(have or [])}.")
    return asked


@dataclass(frozen=True)
class Search:
    """The options of a search, which `mrs staple decode --help` explains; InputError for an impossible value."""

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
        for name, least, most in (("nbest", 1, None), ("seed", 0, None), ("batch_size", 1, PART)):
            value = getattr(self, name)
            if value is not None and not least <= value <= (most or value):
                limits = f"{least} to {most}" if most else f"{least}"
                raise InputError(f"--{name} {value}: expected a whole number from {limits}.")
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
            raise InputError("--ctranslate2: supports plain beam search only; leave it out, or the other search.")
        name = "samples" if self.search == SAMPLE else "beams"
        if self.nbest > self.rows:
            raise InputError(f"--nbest {self.nbest}: a search with --{name} {self.rows} finds fewer; raise --{name}.")
        self.decoding(Decoding())

    @property
    def width(self) -> int:
        """Beams."""
        return self.nbest if self.beams is None else self.beams

    @property
    def sampling(self) -> Sampling:
        given: dict[str, Any] = {"temperature": self.temperature, "top_p": self.top_p}
        samples = self.nbest if self.samples is None else self.samples
        return Sampling(samples, **{name: value for name, value in given.items() if value is not None})

    @property
    def rows(self) -> int:
        """Beams or samples that are decoded together for each prompt."""
        return self.sampling.samples if self.search == SAMPLE else self.width

    @property
    def features(self) -> dict[str, str]:
        """Name -> meaning of what the search measures in addition to log-probability and length."""
        return dict(AGREEMENT) if self.dropout_passes else {}

    def decoding(self, own: Decoding) -> Decoding:
        """The settings of the beam search, or of the rules that samples keep; `own` are those of the run."""
        width = (self.width, self.groups) if self.search == BEAM else (1, 1)
        changes: dict[str, Any] = {"beams": width[0], "groups": width[1], "diversity_penalty": self.diversity_penalty}
        given: dict[str, Any] = {"length_penalty": self.length_penalty, "max_tokens": self.max_tokens}
        return replace(own, **changes, **{name: value for name, value in given.items() if value is not None})

    def facts(self) -> dict[str, Any]:
        """The options that affect the translations and differ from the default."""
        width = {"samples": self.sampling.samples} if self.search == SAMPLE else {"beams": self.width}
        chosen = {"search": self.search, "nbest": self.nbest, **width}
        drawn = {"seed": self.seed} if self.search == SAMPLE or self.dropout_passes else {}
        others = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}
        left_out = (*chosen, "beams", "batch_size", "seed")
        more = {name: value for name, (value, default) in others.items() if name not in left_out and value != default}
        return {**chosen, **more, **drawn}


def decode(
    runs: Sequence[Run], prompts: Prompts, language: str, search: Search, out: Path, overwrite: bool = False
) -> Hypotheses:
    """Translate prompts with each run, and write the hypotheses; a killed call continues where it stopped.

    Equal runs, prompts and options give the same bytes.

    Raises:
        InputError: the file exists, the options do not fit a run, or parts of another call are left.
        MissingExtraError: the extra `ctranslate2` is not installed.
    """
    require_new_file(out, overwrite)
    if search.ctranslate2:
        require_packages(CTRANSLATE2)
    for run in runs if search.dropout_passes and search.dropout_rate is None else ():
        if not has_dropout(run.config):
            raise InputError(
                f"--dropout_passes: {run.given} was trained without dropout; pass --dropout_rate, such as .1."
            )
    written = written_language(runs, language)
    members = {run.name: _member_facts(run, search) for run in runs}
    read = {"language": language, "data": dict(prompts.data), "prompts": len(prompts.texts)}
    identity = {**read, "search": search.facts(), "members": members}
    schema = schema_of(search.features)
    loaded: dict[int, Translate] = {}

    def make(part: Part) -> pa.Table:
        if part.member not in loaded:
            loaded.clear()  # the run before is not needed any more
            loaded[part.member] = translator(runs[part.member], search, language)
        found = loaded[part.member]([prompts.texts[key] for key in part.prompts])
        rows = [
            (key, prompts.texts[key], runs[part.member].name, rank, *translation)
            for key, translations in zip(part.prompts, found, strict=True)
            for rank, translation in enumerate(translations, 1)
        ]
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema.names)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
        return pa.Table.from_arrays(arrays, schema=schema)

    parts = make_parts(len(runs), {key: len(text) for key, text in prompts.texts.items()})
    with parts_of(out, identity, overwrite) as folder:
        table = _in_order(run_parts(folder, parts, schema, make, "decode"), list(prompts.texts), list(members))
        steps = (signature("staple_decode", **search.facts()),)
        made = Hypotheses(table, written, prompts.texts, prompts.data, members, search.features, steps)
        write_hypotheses(made, out, overwrite)
    return made


def _member_facts(run: Run, search: Search) -> dict[str, Any]:
    """The facts that affect a member's translations: the run, its export if that is used, and the search."""
    facts = {**run.facts, **search.facts()}
    if search.ctranslate2:
        files = [path for path in (run.folder / CTRANSLATE2).glob("*") if path.is_file()]
        facts["export"] = content_hash(files) if files else "fp32, made for the call"
    return facts


def _in_order(table: pa.Table, ids: Sequence[str], members: Sequence[str]) -> pa.Table:
    """The rows prompt by prompt, member by member, by rank."""
    columns = {"member": {name: n for n, name in enumerate(members)}, "id": {name: n for n, name in enumerate(ids)}}
    keys = [[place[name] for name in table[column].to_pylist()] for column, place in columns.items()]
    return table.take(np.lexsort((table["rank"].to_numpy(), *keys))).combine_chunks()


def translator(run: Run, search: Search, language: str) -> Translate:
    """Load a run, and return the function that translates prompts with it."""

    def settings(config: Any) -> Decoding:
        plain = search.decoding(run.settings.decoding)
        tokens = max(run.settings.message_tokens, plain.max_tokens)
        return replace(plain, batch_size=search.batch_size or fitting_batch(config, search.rows, tokens))

    if search.ctranslate2:
        writer = _exported(run)
        exported_settings = settings(run.config)
        return lambda texts: n_best(writer, texts, language, search.nbest, exported_settings)
    generator = Generator.load(run.folder)
    own, n = settings(generator.coder.config), search.nbest
    if search.search == SAMPLE:
        return lambda texts: n_drawn(
            generator, texts, language, n, own, search.sampling, [_seed(run, search, text) for text in texts]
        )
    if not search.dropout_passes:
        return lambda texts: n_best(generator, texts, language, n, own)
    passes = [(_seed(run, search, ""), number) for number in range(search.dropout_passes)]

    def agreed(texts: Sequence[str]) -> list[list[tuple[Any, ...]]]:
        rows = n_agreed(generator, texts, language, n, own, passes, search.dropout_rate)
        return [[(*text, *features) for text, *features in row] for row in rows]

    return agreed


def _exported(run: Run) -> ReplyWriter:
    """The CTranslate2 export in a run's folder, or one in fp32 that is made now and lives as long as the process."""
    from mrs_suggest.models.generation.ctranslate2_generator import ExportedGenerator
    from mrs_suggest.models.generation.ctranslate2_writer import write_ctranslate2

    found = ExportedGenerator.load(run.folder)
    if found is not None:
        return found
    with tempfile.TemporaryDirectory() as place:  # its weights are in memory once it is loaded
        write_ctranslate2(Generator.load(run.folder), run.folder, Path(place), int8=False)
        made = ExportedGenerator.load(run.folder, Path(place))
    assert made is not None
    return made


def _seed(run: Run, search: Search, text: str) -> int:
    """The seed of a prompt's draws: it does not depend on the other prompts."""
    digest = hashlib.blake2b(f"{search.seed}\0{run.name}\0{text}".encode(), digest_size=8)
    return int.from_bytes(digest.digest(), "big")
