"""Record what the product puts out on small, fixed input, and compare two such records.

    python benchmarks/golden.py record before.json
    python benchmarks/golden.py compare before.json after.json

Recorded are the suggestions of the bundled model for every message of the embedded sample, the figures of every metric
module, of metric functions and of `mrs score --json`, the hash of every file of a small `mrs data build`, and run.json
and README.md of a short run of each trainer. Times, paths, versions, commits and hardware are masked. Only commands,
`Suggester` and the functions of `mrs_metrics` are used, so that the same script runs before and after a refactoring.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import importlib
import json
import os
import pkgutil
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
INPUTS = ROOT / "tests" / "mrs_metrics" / "golden"
BUNDLED = "everyday-retriever"
Record = dict[str, Any]  # dotted name -> a figure, a hash or a list of lines

SHORT = "--max_steps 4 --eval_steps 2 --save_steps 2 --logging_steps 1 --overwrite true --use_cpu true"
FEW = "--max_train_examples 200 --max_validation_examples 20 --max_test_examples 20"
LEARN = "--learning_rate 1e-3"
# name of the run: trainer, its options
RUNS = {
    "retrieval": ("retrieval", f"--data mrs --languages en es {FEW}"),
    "generation": ("generation", f"--data mrs --languages en es {FEW} --vocabulary 300 --max_tokens 8"),
    "staple": ("generation", "--task staple --data synthetic-staple --languages qaa --nbest 2 --beams 2 --max_tokens 8 "
               "--max_validation_examples 10 --max_test_examples 10"),
    "choice": ("multiple_choice", "--data synthetic-copa --setup CO-ZS --train qaa --languages qaa qab "
               f"--vocabulary 200 {FEW} {LEARN}"),
    "mlm": ("pretraining", f"--objective mlm --text en=en.txt es=es.txt --held_out 20 {LEARN}"),
    "xdae": ("pretraining", f"--objective xdae --text en=en.txt es=es.txt --held_out 20 {LEARN}"),
    "understanding": ("understanding", f"--task ner --data synthetic-xglue --vocabulary 300 {FEW} {LEARN}"),
}  # fmt: skip
DATA_SETS = {
    "mrs": "sample",
    "synthetic-staple": "synthetic",
    "synthetic-copa": "synthetic",
    "synthetic-xglue": "synthetic",
}
SYNTH = (
    "data synth --out dumps --months 2018-01 --comments 4000 --language-model languages.bin --toxic-words toxic_words"
)
BUILD = (
    "data build --dumps dumps/RC_2018-01.zst --out built --buckets 4 --language-model languages.bin --min-examples 20 "
    "--min-reply-count 2 --toxicity words:toxic_words --translate-to es "
    f"--translator dictionary:{ROOT}/examples/words.en-es.tsv"
)

RIGHT = [1, 0, 1, 1, 0, 1, 1, 1, 0, 1]
ALSO = [1, 1, 1, 0, 0, 1, 0, 1, 0, 0]
SHARES = [0.1, 0.4, 0.35, 0.9, 0.0, 0.75, 0.6, 0.2, 0.5, 0.3]
OTHERS = [0.2, 0.1, 0.45, 0.5, 0.1, 0.7, 0.2, 0.3, 0.4, 0.0]
# functions of mrs_metrics, wherever in the package they are, and their arguments
CALLS: dict[str, list[Any]] = {
    "wilson_interval": [7, 10],
    "weighted_wilson_interval": [[7, 2], [10, 8], [0.75, 0.25]],
    "chance_test": [8, 10],
    "macro_average": [{"et": RIGHT, "ht": ALSO}],
    "macro_difference_test": [{"et": RIGHT, "ht": ALSO}, {"et": ALSO, "ht": ALSO}],
    "cohens_kappa": [RIGHT, ALSO, 2],
    "fleiss_kappa": [[[3, 0], [1, 2], [2, 1]]],
    "bootstrap_interval": [SHARES],
    "paired_bootstrap_interval": [SHARES, OTHERS],
    "permutation_test": [SHARES, OTHERS],
    "rank_groups": [{"a": SHARES, "b": OTHERS, "c": sorted(SHARES)}],
    "holm": [[0.01, 0.04, 0.03]],
    "seeds_interval": [[SHARES, OTHERS]],
    "ranks": [[[0.3, 0.1, 0.5], [0.2, 0.2, 0.1]], [0, 1]],
    "reciprocal_ranks": [[1, 2, 4]],
    "mean_reciprocal_rank": [[1, 2, 4], [0, 0, 1]],
    "precision_at_k": [[1, 2, 4], 2],
    "treebank_tokens": ["I can't, \"really\" (3.5%)... you'll see!"],
    "read_paper": ["Até   logo, MEU amigo!"],
    "read_official": ["Até   logo, MEU amigo!"],
}

UNSTABLE = {"commit", "versions", "hardware", "seconds", "milliseconds"}  # keys of run.json
TIME = re.compile(r"\b\d[\d.,]*( ms|(?: s|-second| seconds| minutes)\b)")
MACHINE = re.compile(r"\b\d+ cores \(\w+\)")


def main(argv: Sequence[str] | None = None) -> int:
    """Record or compare; the exit code is 1 where a command failed or something differs."""
    parser = argparse.ArgumentParser(allow_abbrev=False, description=(__doc__ or "").splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    recording = verbs.add_parser("record", help="run everything and write the record")
    recording.add_argument("out", type=Path)
    recording.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="record these parts only")
    comparing = verbs.add_parser("compare", help="print what differs between two records")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    comparing.add_argument("--skip", metavar="REGEX", help="ignore values whose name matches, such as run.arguments")
    options = parser.parse_args(argv)
    if options.verb == "record":
        return record(options.out, options.only)
    before, after = (json.loads(path.read_text(encoding="utf-8")) for path in (options.before, options.after))
    if options.skip:
        before, after = ({k: v for k, v in r.items() if not re.search(options.skip, k)} for r in (before, after))
    lines = differences(before, after)
    print("\n".join(lines) or f"no difference in {len(before):,} values")
    return int(bool(lines))


def record(out: Path, parts: Sequence[str]) -> int:
    """Write the record of these parts; return 1 if anything failed."""
    os.environ.update(
        {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "HF_EVALUATE_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    )
    sys.path.insert(0, str(ROOT))
    found: Record = {}
    with tempfile.TemporaryDirectory(prefix="golden-") as folder:
        os.environ["HF_HOME"] = f"{folder}/hub"
        for part in parts:
            begin = time.perf_counter()
            for name, value in PARTS[part](Path(folder)):
                found |= flat(f"{part}.{name}", value)
            print(f"{part}: {time.perf_counter() - begin:.0f} s", flush=True)
    out.write_text(json.dumps(found, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
    failed = [f"{name}: {value}" for name, value in found.items() if name.endswith(".failed")]
    print("\n".join(failed) or f"wrote {len(found):,} values to {out}")
    return int(bool(failed))


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """One line for each value that only one record has or that differs, and for each line of a text that does."""
    lines = []
    for name in dict.fromkeys([*before, *after]):
        old, new = before.get(name, "<absent>"), after.get(name, "<absent>")
        if old == new:
            continue
        if isinstance(old, list) and isinstance(new, list):
            changed = difflib.unified_diff(old, new, lineterm="", n=0)
            lines += [f"{name}: {line}" for line in changed if line[:2] not in ("--", "++", "@@")]
        else:
            lines.append(f"{name}: {old} -> {new}")
    return lines


def flat(name: str, value: object) -> Record:
    """Nested mappings as dotted names; lists of numbers as text, since order and length belong to the value."""
    if isinstance(value, Mapping):
        parts = {key: part for key, part in value.items() if key not in UNSTABLE}
        return (
            {name: {}}
            if not value
            else {k: v for key, part in parts.items() for k, v in flat(f"{name}.{key}", part).items()}
        )
    return {
        name: value
        if isinstance(value, str | int | float | None) or _is_text(value)
        else json.dumps(value, default=str)
    }


def _is_text(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(line, str) for line in value)


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8"
    )


def mrs(folder: Path, words: str | Sequence[str]) -> Iterator[tuple[str, object]]:
    """Run a command; yields an entry only where it fails."""
    words = words.split() if isinstance(words, str) else words
    done = command(folder, "-m", "mrs_suggest.cli.main", *words)
    if done.returncode:
        yield f"{' '.join(words[:3])}.failed", (done.stderr.strip().splitlines() or ["?"])[-1]


def sha256(text: str | bytes) -> str:
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def readme_lines(text: str, run: Mapping[str, Any]) -> list[str]:
    """The lines of a card without what changes from machine to machine and from commit to commit."""
    text = MACHINE.sub("<machine>", TIME.sub(r"<time>\1", text)).replace(str(run["commit"]), "<commit>")
    for package, version in run["versions"].items():
        text = text.replace(f"{package} {version}", f"{package} <version>")
    return text.splitlines()


def suggestions(folder: Path) -> Iterator[tuple[str, object]]:
    """Hashes of replies and of scores for all messages of the sample, by language."""
    import pyarrow.parquet as pq

    from mrs_suggest import Suggester

    yield from mrs(folder, "data prepare mrs --source sample --out mrs --overwrite")
    suggester = Suggester.from_pretrained(BUNDLED)
    for path in sorted((folder / "mrs" / "data").iterdir()):
        language = path.name
        if language.endswith("-responses"):
            continue
        rows = [
            message for file in sorted(path.glob("*.parquet")) for message in pq.read_table(file)["message"].to_pylist()
        ]
        messages = list(dict.fromkeys(rows))
        answers = suggester.suggest(messages, language)
        replies = [[[s.reply for s in answer], answer.reason] for answer in answers]
        yield f"{language}.messages", len(messages)
        yield f"{language}.replies", sha256(json.dumps(replies))
        yield f"{language}.scores", sha256(json.dumps([[float(s.score) for s in answer] for answer in answers]))
        yield (
            f"{language}.detected",
            sha256(json.dumps([answer.language for answer in suggester.suggest(messages[:200])])),
        )


def scores(folder: Path) -> Iterator[tuple[str, object]]:
    """What `mrs score --json` prints for hypothesis files made of the cases that test ROUGE."""
    cases = yaml.safe_load((INPUTS / "mrs_rouge.yaml").read_text(encoding="utf-8"))["official"]
    by_language: dict[str, list[str]] = {}
    for case in cases:
        line = "\t".join(["?", case["reference"], *case["suggestions"]])
        by_language.setdefault(case["language"], []).append(f"{line}\n")
    for language, lines in by_language.items():
        path = folder / f"scored.{language}.tsv"
        path.write_text("".join(lines), encoding="utf-8")
        metrics = ("mrs_rouge", "dist_n", "self_rouge", "reply_bleu") if language == "en" else ("mrs_rouge",)
        for metric in metrics:
            words = ["score", path.name, "--language", language, "--metric", metric, "--json"]
            done = command(folder, "-m", "mrs_suggest.cli.main", *words)
            yield f"{language}.{metric}", json.loads(done.stdout) if not done.returncode else {"failed": done.stderr}


def modules(folder: Path) -> Iterator[tuple[str, object]]:
    """The figures of the `evaluate` modules."""
    import evaluate

    cases = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in INPUTS.glob("*.yaml")}
    rouge = [case for case in cases["mrs_rouge"]["official"] if case["language"] == "en"]
    texts = {
        "predictions": [case["suggestions"] for case in rouge],
        "references": [case["reference"] for case in rouge],
    }
    ranking = next(case for case in cases["response_ranking"] if isinstance(case, dict) and "targets" in case)
    wrong = cases["wrong_language"]
    weighted = next(case for case in cases["weighted_f1"] if case.get("rules") == "official")
    accepted = [[{"text": t, "weight": w} for t, w in pairs] for pairs in weighted["accepted"].values()]
    calls: dict[str, tuple[str, Record]] = {
        **{name: (name, {**texts, "language": "en"}) for name in ("mrs_rouge", "dist_n", "reply_bleu")},
        "mrs_rouge of the paper": ("mrs_rouge", {**texts, "rules": "paper", "per_example": True}),
        "dist_n of responses": ("dist_n", {**texts, "n": [1, 2, 3], "denominator": "ngrams", "level": "response"}),
        "self_rouge": ("self_rouge", {"predictions": texts["predictions"], "interval": True}),
        "reply_perplexity": ("reply_perplexity", {"predictions": [[0.5, 2.0], [1.25]], "interval": True}),
        "response_ranking": (
            "response_ranking",
            {"predictions": ranking["scores"], "references": ranking["targets"], "k": [1, 3], "interval": True},
        ),
        "weighted_f1": (
            "weighted_f1",
            {
                "predictions": [weighted["predicted"].get(key, []) for key in weighted["accepted"]],
                "references": accepted, "rules": "official", "interval": True, "per_prompt": True,
            },
        ),
        "wrong_language": (
            "wrong_language",
            {
                "predictions": wrong["cases"][0]["predictions"], "language": "de",
                "identify": lambda texts: [tuple(wrong["answers"][text]) for text in texts], "interval": True,
            },
        ),
        **{
            f"xglue_score {task}": (
                "xglue_score", {"predictions": predictions, "references": references, "task": task, "interval": True}
            )
            for task, predictions, references in (
                ("NER", [["B-PER", "I-PER", "O"], ["O", "B-ORG"]], [["B-PER", "I-PER", "O"], ["B-LOC", "I-LOC"]]),
                ("NTG", ["See you tomorrow at eight", "A book"], ["See you tomorrow at nine", "A book"]),
            )
        },
    }  # fmt: skip
    for name, (module, inputs) in calls.items():
        try:
            script = ROOT / "mrs_metrics" / "modules" / f"{module}.py"
            yield name, evaluate.load(str(script)).compute(**inputs)
        except Exception as error:  # recorded, so that one module does not hide the others
            yield f"{name}.failed", f"{type(error).__name__}: {error}"


def functions(folder: Path) -> Iterator[tuple[str, object]]:
    """The results of the functions in `CALLS`."""
    import mrs_metrics

    files = [
        importlib.import_module(f"mrs_metrics.{module.name}")
        for module in pkgutil.iter_modules(mrs_metrics.__path__)
        if not module.ispkg
    ]
    for name, arguments in CALLS.items():
        function = next((getattr(file, name) for file in files if hasattr(file, name)), None)
        result = "<absent>" if function is None else function(*arguments)
        yield name, json.dumps(result.tolist() if hasattr(result, "tolist") else result, default=float)


def build(folder: Path) -> Iterator[tuple[str, object]]:
    """SHA-256 of every Parquet file of a build of synthetic dumps."""
    yield from mrs(folder, f"{SYNTH} --overwrite")
    yield from mrs(folder, f"{BUILD} --overwrite")
    for path in sorted((folder / "built").rglob("*.parquet")):
        yield str(path.relative_to(folder / "built")), sha256(path.read_bytes())


def run_of(name: str) -> Callable[[Path], Iterator[tuple[str, object]]]:
    """The part that trains with the options of this name in `RUNS`."""
    trainer, words = RUNS[name]

    def train(folder: Path) -> Iterator[tuple[str, object]]:
        for data, source in DATA_SETS.items():
            if f"--data {data} " in words and not (folder / data).exists():
                yield from mrs(folder, f"data prepare {data} --source {source} --out {data}")
        for language, text in {"en": "the old dog sees a {} train", "es": "el perro viejo ve un tren {}"}.items():
            lines = [text.format(chr(97 + n % 26) * (1 + n % 7)) + "\n" for n in range(300)]
            (folder / f"{language}.txt").write_text("".join(lines), encoding="utf-8")
        options = [*words.split(), *SHORT.split(), "--output_dir", f"run-{name}"]
        done = command(folder, str(ROOT / "trainers" / f"{trainer}.py"), *options)
        if done.returncode:
            yield "failed", (done.stderr.strip().splitlines() or ["?"])[-1]
            return
        run, readme = (
            (folder / f"run-{name}" / file).read_text(encoding="utf-8") for file in ("run.json", "README.md")
        )
        yield "run", json.loads(run)
        yield "README", readme_lines(readme, json.loads(run))

    return train


PARTS: dict[str, Callable[[Path], Iterator[tuple[str, object]]]] = {
    "suggestions": suggestions, "functions": functions, "modules": modules, "scores": scores, "build": build,
    **{name: run_of(name) for name in RUNS},
}  # fmt: skip

if __name__ == "__main__":
    sys.exit(main())
