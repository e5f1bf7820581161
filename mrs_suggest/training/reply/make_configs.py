"""Writes a YAML for each training run behind the paper's tables:
`python -m mrs_suggest.training.reply.make_configs [--check]`.

The values are those of section 4.3 of Zhang et al. 2021 and of their official scripts; each carries its source. The
files are part of the checkout: `--check` says which of them differ from what this module writes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mrs_suggest.common.errors import InputError, run_with_sentence
from mrs_suggest.common.io.files import atomic_write
from mrs_suggest.evaluation.paper_results import PaperRow, paper_rows
from mrs_suggest.training.reply.options import ALL_LANGUAGES, ENGLISH

CONFIGS = Path(__file__).resolve().parents[3] / "trainers" / "configs"
PER_LANGUAGE = ("monolingual", "mt")  # one model for each language; the other settings train one for all
FOLDERS = {"mbert": "mbert", "xlmr": "xlmr", "xdae": "unicoder"}
TITLES = {"mbert": "mBERT", "xlmr": "XLM-R", "xdae": "Unicoder-xDAE"}
COLUMN = 34  # where a comment starts, if the value leaves room
WIDTH = 118
Option = tuple[str, str, str]  # name, value as YAML, source

ENCODERS = {
    "mbert": ("google-bert/bert-base-multilingual-cased", "paper 4.1: both encoders start from mBERT"),
    "xlmr": ("FacebookAI/xlm-roberta-base", "paper 4.1, appendix A: XLM-R, the base version"),
}
RETRIEVAL_MODEL: list[Option] = [
    ("pooling", "pooler", "official code: BERT's pooler output"),
    ("message_tokens", "70", "official train.sh: --max_msg_len 70"),
    ("reply_tokens", "30", "official train.sh: --max_rsp_len 30"),
    ("loss", "eq4", "paper 4.1, eq. 4 (official train.sh: SMLoss, here `sm`)"),
    ("mask_duplicates", "true", "ours: an equal reply elsewhere in the batch is not a negative"),
    ("freeze_embeddings", "true", "paper 4.3; official train.sh: --freeze_layers embedding#transformer_0_1"),
    ("freeze_layers", "2", "the same"),
    ("alpha", "0.0", "paper 4.1: no language-model score (official training script sweeps around 0.5)"),
    (
        "per_device_train_batch_size",
        "256",
        "paper 4.3: batch 256; on several devices divide it: their replies are gathered",
    ),
    ("mini_batch_size", "64", "ours: memory only, the loss does not change (GradCache)"),
]
RETRIEVAL_TRAINING: list[Option] = [
    ("learning_rate", "1e-6", "paper 4.3; official train.sh --learning_rate 0.000001"),
    ("optim", "adamw_torch", "paper 4.3: Adam; with weight_decay 0 AdamW is Adam"),
    ("weight_decay", "0.0", "paper 4.3: Adam, no decay named"),
    ("adam_beta1", "0.9", "paper 4.3: default betas"),
    ("adam_beta2", "0.999", "the same"),
    ("warmup_steps", "0.01", "paper 4.3: the first 1 % of the steps"),
    (
        "lr_scheduler_type",
        "constant_with_warmup",
        "official train.sh: --decay_rate 0.999 every 5000 steps, nearly constant",
    ),
    ("fp16", "true", "official train.sh: --fp16 (a GPU is needed; on a CPU pass --fp16 false)"),
    ("max_grad_norm", "1.0", "official matching/model_params.py: clip_grad_norm = 1"),
    ("metric_for_best_model", "weighted_rouge", "paper 3.3: the main metric; no source names what picks a checkpoint"),
    ("eval_strategy", "steps", "official train.sh: --save_freq 5000"),
    ("save_strategy", "steps", "the same"),
    ("eval_steps", "5000", "the same"),
    ("save_steps", "5000", "the same"),
    ("max_validation_examples", "12800", "official train.sh: 50 validation batches of 256"),
]
GENERATION_MODEL: list[Option] = [
    (
        "model_name_or_path",
        "build/unicoder",
        "paper 4.2; `mrs convert unicoder CHECKPOINT.pt --out build/unicoder` writes it",
    ),
    ("message_tokens", "70", "ours: as the retrieval script; no source names a length for generation"),
    ("reply_tokens", "30", "the same"),
    ("freeze_embeddings", "true", "paper 4.3"),
    ("per_device_train_batch_size", "32", "paper 4.3: batch 1024 = 8 devices x 32 x 4 accumulated"),
    ("gradient_accumulation_steps", "4", "the same; on one device 32, on two 16"),
]
GENERATION_TRAINING: list[Option] = [
    ("learning_rate", "1e-5", "paper 4.3"),
    ("optim", "adamw_torch", "paper 4.3: Adam; fairseq's Adam decays weights as AdamW does"),
    ("weight_decay", "0.01", "official script"),
    ("adam_beta1", "0.9", "official script; paper 4.3: default betas"),
    ("adam_beta2", "0.98", 'official script; paper 4.3 says "default", which is .999 for Adam'),
    ("adam_epsilon", "1e-6", "official script"),
    ("warmup_steps", "0.2", "paper 4.3: the first 20 % of the steps"),
    ("lr_scheduler_type", "inverse_sqrt", "official script"),
    ("label_smoothing_factor", "0.2", "official script"),
    ("fp16", "true", "official script: --fp16 (a GPU is needed; on a CPU pass --fp16 false)"),
    ("max_grad_norm", "1.0", "the library's default; neither source names one"),
    ("eval_strategy", "steps", "ours: no source names when to evaluate"),
    ("save_strategy", "steps", "the same"),
    ("eval_steps", "0.1", "ours: ten evaluations per run"),
    ("save_steps", "0.1", "the same"),
    ("beams", "5", "official script"),
]


@dataclass(frozen=True)
class Run:
    """One training run. `language` is None where one model serves every language; `rows` are its cells."""

    family: str
    model: str
    setting: str
    language: str | None
    rows: tuple[PaperRow, ...]

    @property
    def name(self) -> str:
        """`monolingual_es`, `zero_shot` ..."""
        return self.setting if self.language is None else f"{self.setting}_{self.language}"

    @property
    def path(self) -> str:
        """The file below the folder of configurations: `retrieval/mbert/monolingual_es.yaml`."""
        return f"{self.family}/{FOLDERS[self.model]}/{self.name}.yaml"


def paper_runs() -> Iterator[Run]:
    """Every run that a cell of Tables 3 to 5 needs, and the zero-shot generation run that section 5.2 describes."""
    cells: dict[tuple[str, str, str, str | None], list[PaperRow]] = {}
    for row in paper_rows():
        language = row.language if row.setting in PER_LANGUAGE else None
        cells.setdefault((row.family, row.model, row.setting, language), []).append(row)
    cells["generation", "xdae", "zero_shot", None] = []
    return (Run(*key, tuple(rows)) for key, rows in cells.items())


def render(run: Run) -> str:
    """The YAML of a run: a header that names its cells and its command, then one option per line with its source."""
    plan = [
        ("setting", run.setting, "paper 3.2"),
        ("languages", f"[{run.language or ALL_LANGUAGES}]", _about_languages(run)),
    ]
    if run.setting == "multilingual":
        plan += [
            ("sampling_alpha", "0.0", "paper 3.2: the others are oversampled to the size of English"),
            ("batches", "language", "official code: one language per batch"),
        ]
    if run.family == "retrieval":
        model, training = [("model_name_or_path", *ENCODERS[run.model]), *RETRIEVAL_MODEL], RETRIEVAL_TRAINING
    else:
        model, training = GENERATION_MODEL, GENERATION_TRAINING
    place = ("output_dir", f"build/{FOLDERS[run.model]}_{run.name}", "ours")
    options = [*plan, *model, _length(run), *training, place]
    return "".join(f"{line}\n" for line in [*_head(run), *map(_line, options)])


def _head(run: Run) -> list[str]:
    """The comment above the options: what the run is for, the paper's figures, the command, the sources."""
    language = f" {run.language}" if run.language else ""
    launch = "accelerate launch"
    source = "Official code: retrieval_rs/train.sh of microsoft/MRS. Where they differ, the paper wins."
    if run.family == "generation":
        launch += " --config_file trainers/configs/accelerate/gpus_8.yaml"
        source = "Official code: the generation script of microsoft/MRS. Where they differ, the line says so."
    script = f"trainers/{run.family}.py --config trainers/configs/{run.path} --data DIR"
    command = f"  {launch} {script}"
    lines = [
        f"The paper's {run.family} baseline from {TITLES[run.model]}, {run.setting.replace('_', '-')}{language}",
        f"({_printed(run)}).",
        *_figures(run),
        *([command] if len(command) < WIDTH else [f"  {launch} \\", f"    {script}"]),
        f"Paper: Zhang et al. 2021. {source}",
        "Written by `python -m mrs_suggest.training.reply.make_configs`.",
    ]
    return [f"# {line}" for line in lines]


def _printed(run: Run) -> str:
    if not run.rows:
        return "Zhang et al. 2021, section 5.2; no table has it, since the model answers everything in English"
    row = f"row {run.language}" if run.language else "every row"
    return f"Zhang et al. 2021, Table {run.rows[0].table}, columns {run.setting.replace('_', '-')}, {row}"


def _figures(run: Run) -> list[str]:
    """The ROUGE of the run's cells, as printed."""
    figures = ", ".join(f"{row.language} {row.rouge:.4f}".replace(" 0.", " .") for row in run.rows)
    return [f"ROUGE there: {figures}."] if figures else []


def _about_languages(run: Run) -> str:
    trains = {
        "monolingual": "trained, validated and tested on",
        "mt": "trained on English pairs translated to it; validated and tested on it",
        "zero_shot": "tested on; trained and validated on English",
        "multilingual": "tested on; trained and validated on en es de pt fr",
    }
    return f"paper 3.2: {trains[run.setting]}"


def _length(run: Run) -> Option:
    """The training length of a run (section 4.3)."""
    english = run.setting == "zero_shot" or run.language == ENGLISH
    if run.family == "retrieval":
        if run.setting in ("mt", "multilingual"):
            return "num_train_epochs", "10", "paper 4.3: ten for MT and multilingual"
        if english:
            return "num_train_epochs", "20", "paper 4.3: twenty for English"
        return "num_train_epochs", "50", "paper 4.3: fifty for languages other than English"
    if run.setting == "mt":
        return "num_train_epochs", "1", "paper 4.3: one for MT"
    if run.setting == "multilingual":
        return "max_steps", "40000", "paper 4.3: 40,000 for multilingual"
    if english:
        return "num_train_epochs", "4", "paper 4.3: four for English"
    return "max_steps", "5000", "paper 4.3: 5000 for languages other than English"


def _line(option: Option) -> str:
    name, value, source = option
    return f"{f'{name}: {value}  ':<{COLUMN}}# {source}"


def main(argv: Sequence[str] | None = None) -> int:
    """Write the files, or with `--check` compare them; return the exit code."""
    parser = argparse.ArgumentParser(allow_abbrev=False, prog="make_configs", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a file differs")
    check = parser.parse_args(argv).check
    if not CONFIGS.is_dir():
        raise InputError(f"{CONFIGS}: no such folder; run this in a checkout of the project.")
    files = {CONFIGS / run.path: render(run) for run in paper_runs()}
    if check:
        return _compare(files)
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, text)
    print(f"wrote {len(files)} files below {CONFIGS}")
    return 0


def _compare(files: dict[Path, str]) -> int:
    """Name the files that are missing, differ, or should not be there."""
    wrong = 0
    present = {path for folder in {path.parent for path in files} for path in folder.glob("*")}
    for path in sorted(present | set(files)):
        if path not in files:
            problem = "is not one of the generated files: delete or move it"
        elif not path.is_file():
            problem = "is missing: run `python -m mrs_suggest.training.reply.make_configs`"
        elif path.read_text(encoding="utf-8") != files[path]:
            problem = "differs: run `python -m mrs_suggest.training.reply.make_configs`"
        else:
            continue
        print(f"{path} {problem}")
        wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(run_with_sentence("make_configs", main))
