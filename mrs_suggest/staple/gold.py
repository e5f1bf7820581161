"""The gold data of systems: the prompts of a split with their accepted translations."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from mrs_datasets.prepared.prepared import PreparedData, open_prepared
from mrs_datasets.readers.staple.staple_files import read_gold
from mrs_metrics.translations_f1 import merge_equal, read_texts, weighted_f1_signature
from mrs_suggest.common.errors import InputError, metric_errors
from mrs_suggest.common.io.files import file_sha256

_TRACK = re.compile(r"(?:^|[._])en_(hu|ja|ko|pt|vi)[._]")  # in the name of the task's files
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Gold:
    """Prompts with their accepted translations.

    Attributes:
        rows: `id`, `prompt`, `reference` (an automatic translation or None) and `translations`, a list of
            {text, weight}, as `mrs_metrics.translations_f1` takes them.
        language: the target language; "" if unknown.
        split: train, validation or test; "" if unknown.
        rules: `paper` or `official`, by which texts are compared.
        seed: of generated data; None of others.
    """

    name: str
    rows: Rows
    language: str
    split: str
    rules: str
    source: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None

    @cached_property
    def accepted(self) -> dict[str, dict[str, float]]:
        """Prompt -> accepted translation, as the rules read it -> weight."""
        found = {}
        for row, texts in zip(self.rows, self._read, strict=True):
            weights = [float(entry["weight"]) for entry in row["translations"]]
            found[str(row["id"])] = merge_equal(texts, weights, self.rules)
        return found

    @cached_property
    def written(self) -> dict[str, dict[str, str]]:
        """Prompt -> accepted translation, as the rules read it -> as the data write it."""
        return {
            str(row["id"]): first_written(texts, [entry["text"] for entry in row["translations"]])
            for row, texts in zip(self.rows, self._read, strict=True)
        }

    @cached_property
    def _read(self) -> list[list[str]]:
        texts = [[entry["text"] for entry in row["translations"]] for row in self.rows]
        return read_lists(texts, self.rules, accepted=True)

    @cached_property
    def prompts(self) -> dict[str, str]:
        return {str(row["id"]): str(row["prompt"]) for row in self.rows}

    @property
    def references(self) -> dict[str, list[str]]:
        """The given automatic translations as a system's predictions; prompts without one are left out."""
        return {str(row["id"]): [row["reference"]] for row in self.rows if row.get("reference")}

    @property
    def translations(self) -> int:
        """How many accepted translations there are."""
        return sum(len(row["translations"]) for row in self.rows)


def read_lists(lists: Sequence[Sequence[str]], rules: str, accepted: bool = False) -> list[list[str]]:
    """Lists of texts as the rules read them; reading all together is many times faster than list by list."""
    bounds = list(accumulate(map(len, lists), initial=0))
    read = read_texts([text for texts in lists for text in texts], rules, accepted)
    return [read[start:end] for start, end in pairwise(bounds)]


def first_written(read: Sequence[str], written: Sequence[str]) -> dict[str, str]:
    """Text as the rules read it -> the first of those that are written so, in their order."""
    found: dict[str, str] = {}
    for one, text in zip(read, written, strict=True):
        found.setdefault(one, text)
    return found


def read_gold_split(data: str, split: str, language: str | None, rules: str = "paper") -> Gold:
    """A split of prepared data.

    Args:
        language: None: the only one that has the split.

    Raises:
        InputError: no such data, language or split, several languages to choose from, or a split without accepted
            translations.
    """
    prepared = open_prepared(data)
    kind, record = prepared.data_set(), prepared.record()
    # Not those of parallel text.
    configs = [config for config in prepared.configs() if "translations" in record.kind_of(config).columns]
    if not configs:
        raise InputError(f"{data}: a data set of the kind {kind}; expected prompts with translations, such as staple.")
    config = language or _only_config(prepared, configs, split)
    seed = prepared.report().get("settings", {}).get("seed")
    rows = prepared.load(config, split).to_list()
    source = {**prepared.identity([config]), "split": split}
    name, seed = f"{prepared.title()}, {config}, {split}", seed if isinstance(seed, int) else None
    gold = Gold(name, rows, config, split, rules, source, seed)
    return _sound(gold, f"{data}: the {split} split of {config}")


def read_gold_file(path: Path, language: str | None, rules: str = "paper") -> Gold:
    """A gold file of the task.

    Args:
        language: None: the one in the file's name, as the task names its files.
    """
    track = _TRACK.search(path.name)
    rows = []
    for block, texts, weights in read_gold(path):
        accepted = [{"text": text, "weight": weight} for text, weight in zip(texts, weights, strict=True)]
        rows.append({"id": block.id, "prompt": block.prompt, "reference": None, "translations": accepted})
    known = language or (track[1] if track else "")
    source = {"id": path.name, "sha256": file_sha256(path)}
    gold = Gold(path.name, rows, known, "", rules, source)
    return _sound(gold, str(path))


def _only_config(prepared: PreparedData, configs: Sequence[str], split: str) -> str:
    having = [config for config in configs if split in prepared.splits(config)]
    if len(having) == 1:
        return having[0]
    if not having:
        found = "; ".join(f"{config} has {' '.join(prepared.splits(config))}" for config in configs)
        raise InputError(f"{prepared.name}: no {split} split; {found or 'it has no rows'}.")
    raise InputError(f"{prepared.name}: pass --language, one of {' '.join(having)}.")


def _sound(gold: Gold, where: str) -> Gold:
    """The gold, if systems can be scored on it."""
    if not gold.rows:
        raise InputError(f"{where} has no prompts.")
    blind = sum(not row["translations"] for row in gold.rows)
    if blind:
        some = "is blind: no prompt has" if blind == len(gold.rows) else f"has {blind:,} prompts without"
        raise InputError(f"{where} {some} accepted translations; systems are scored on a split that has them.")
    if len(gold.prompts) < len(gold.rows):
        twice = Counter(str(row["id"]) for row in gold.rows).most_common(1)[0][0]
        raise InputError(f"{where} has the prompt {twice} twice; prepare the data again.")
    with metric_errors(where):
        weighted_f1_signature(gold.rules)
    return gold
