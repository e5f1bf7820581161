"""Replies of a generator: the export for CTranslate2, fp32 and int8, against torch fp32.

Workload: one generator with its own settings of the search, English messages of the sample's test split, three
suggestions each; alone (batch 1) and all at once. 30 messages a round, the systems take turns for three rounds, the
best round of each counts, a message. Beside it, on the sample's test split in all languages of the model: weighted
ROUGE of the best of three, the 95 % interval of its difference from torch's, and the share of messages with the same
three suggestions. The rival is `mrs_suggest.models.generation.generator`, which answers where there is no export.

Run: python benchmarks/bench_generator_export.py [RUN]  (default: a tiny generator, trained here on the sample for a
minute, which writes poor replies)
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from timing import best_in_turns, write_result

from mrs_datasets.prepared.prepared import open_prepared
from mrs_suggest.common.text.predictions import SUGGESTIONS
from mrs_suggest.evaluation.language_data import EVALUATION_SEED
from mrs_suggest.evaluation.results import difference
from mrs_suggest.models.exports import CTRANSLATE2
from mrs_suggest.models.generation.ctranslate2_generator import ExportedGenerator
from mrs_suggest.models.generation.ctranslate2_writer import write_ctranslate2
from mrs_suggest.models.generation.generator import Generator
from mrs_suggest.models.generation.reply_writer import ReplyWriter
from mrs_suggest.training.generation.generator_export import evaluated, mean_rouge, same_suggestions

MESSAGES = 30
STEPS = 400  # of the tiny generator


def exported(folder: Path, place: Path, int8: bool) -> tuple[ReplyWriter, int]:
    """The exported generator, and the bytes of its weights."""
    place.mkdir()
    write_ctranslate2(Generator.load(folder), folder, place, int8)
    found = ExportedGenerator.load(folder, place)
    assert found is not None
    return found, sum(path.stat().st_size for path in (place / CTRANSLATE2).iterdir())


def trained(folder: Path) -> Path:
    """The folder of a run of the tiny generator."""
    command = [sys.executable, "-m", "mrs_suggest.cli.main", "train", "generation", "--data", "sample"]
    subprocess.run([*command, "--output_dir", str(folder), "--max_steps", str(STEPS)], check=True)
    return folder


def main() -> None:
    if len(sys.argv) > 1:
        measure(Path(sys.argv[1]))
        return
    with tempfile.TemporaryDirectory() as place:
        measure(trained(Path(place, "tiny")))


def measure(folder: Path) -> None:
    rival = Generator.load(folder)
    sample = open_prepared("sample")
    splits = {code: sample.load(code, "test") for code in rival.languages if code in sample.configs()}
    pairs = {code: (split["message"][:], split["reply"][:]) for code, split in splits.items()}
    language = "en" if "en" in pairs else next(iter(pairs))
    texts = list(dict.fromkeys(pairs[language][0]))[:MESSAGES]
    with tempfile.TemporaryDirectory() as place:
        systems: dict[str, ReplyWriter] = {"torch, fp32": rival}
        sizes = {}
        for kind in ("fp32", "int8"):
            name = f"ctranslate2, {kind}"
            systems[name], sizes[name] = exported(folder, Path(place, kind), kind == "int8")

        def alone(system: ReplyWriter) -> Callable[[], object]:
            return lambda: [system.suggest([text], language, SUGGESTIONS) for text in texts]

        def together(system: ReplyWriter) -> Callable[[], object]:
            return lambda: system.suggest(texts, language, SUGGESTIONS)

        times = {
            way: best_in_turns({name: call(system) for name, system in systems.items()}, len(texts))
            for way, call in (("alone", alone), ("together", together))
        }
        reference = evaluated(rival, pairs)
        figures: dict[str, Any] = {"torch, fp32": {"rouge": round(mean_rouge(reference), 4)}}
        for name, size in sizes.items():
            results = evaluated(systems[name], pairs)
            same, total = same_suggestions(pairs, reference, results)
            figures[name] = {
                **{f"ratio_{way}": round(found["torch, fp32"] / found[name], 2) for way, found in times.items()},
                "rouge": round(mean_rouge(results), 4),
                "difference": [round(end, 4) for end in difference(results, reference, EVALUATION_SEED)["weighted"]],
                "same_suggestions": round(same / total, 4),
                "bytes": size,
            }
            print(
                f"{name}: {1000 * times['alone'][name]:.2f} ms alone, torch fp32 "
                f"{1000 * times['alone']['torch, fp32']:.2f} ms, ratio {figures[name]['ratio_alone']:.2f} (together "
                f"{figures[name]['ratio_together']:.2f}); weighted ROUGE {figures[name]['rouge']:.4f}, torch "
                f"{figures['torch, fp32']['rouge']:.4f}; the same three suggestions for {same:,} of {total:,} messages"
            )
    result = {
        "model": folder.name,
        "messages": len(texts),
        "beams": rival.decoding.beams,
        "seconds": times,
        **figures,
        "threads": torch.get_num_threads(),
    }
    write_result(__file__, __doc__, result, ("torch", "transformers", "ctranslate2"), folder)


if __name__ == "__main__":
    main()
