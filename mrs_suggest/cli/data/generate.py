"""`mrs data generate` and `review`: pairs that a language model writes for a product, and people review; and
`mrs data synth`: synthetic Reddit dumps, to try out and test a build."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.common.text.text import visible

if TYPE_CHECKING:
    from mrs_datasets.generated.generate import Question, Teacher
    from mrs_datasets.prepared.report import PreparedReport

TOKENS, SECONDS = 4000, 300.0  # at least, for an answer: a list is longer than three replies


def add_generate(verbs: argparse._SubParsersAction[CommandParser]) -> None:
    generate = verbs.add_parser("generate", help="let a language model write pairs for a product, once")
    generate.add_argument("--task", required=True, type=Path, metavar="FILE", help="YAML that describes the product")
    generate.add_argument(
        "--teacher",
        required=True,
        metavar="MODEL",
        help="openai:URL#MODEL, openai:FILE.yaml or the folder of a causal model",
    )
    generate.add_argument("--languages", nargs="+", default=[], metavar="CODE", help="default: those of the task file")
    generate.add_argument("--licence", default="unknown", help="of the teacher's answers, such as apache-2.0")
    generate.add_argument("--out", required=True, type=Path, metavar="FOLDER", help="the folder to write or continue")
    generate.set_defaults(run=_generate)
    review = verbs.add_parser("review", help="open a page to accept, edit or drop generated texts")
    review.add_argument("folder", type=Path, help="a folder that `mrs data generate` wrote")
    review.set_defaults(run=_review)


def _generate(options: argparse.Namespace) -> None:
    from tqdm import tqdm

    from mrs_datasets.generated.generate import generate, read_task
    from mrs_suggest.suggest.language_model.chat import Chat, read_endpoint

    task = read_task(options.task, options.languages)
    if (folder := Path(options.teacher)).is_dir():
        teacher = _teacher(folder.resolve().name, options.licence)._replace(ask=_local(folder))
    else:
        endpoint = read_endpoint(options.teacher)
        tokens = endpoint.max_tokens and max(TOKENS, endpoint.max_tokens)
        chat = Chat(replace(endpoint, max_tokens=tokens, timeout=max(SECONDS, endpoint.timeout)))
        teacher = _teacher(endpoint.model, options.licence)._replace(map=chat.map)
        teacher = teacher._replace(ask=lambda asked: chat.complete(*asked.key, asked.user["step"]))
    bar = partial(tqdm, desc="generate", unit=" answers", disable=None)
    _print(generate(task, teacher, options.out, bar), options.out)


def _review(options: argparse.Namespace) -> None:
    from mrs_datasets.generated.generate import write_generated
    from mrs_datasets.generated.review import open_generated, review_server

    task, teacher = open_generated(options.folder, _teacher)
    server, address = review_server(options.folder, task, teacher)
    print(f"{address} (Ctrl-C applies the decisions and ends)", flush=True)
    with server, suppress(KeyboardInterrupt):
        server.serve_forever()
    _print(write_generated(options.folder, task, teacher), options.folder)


def _print(report: PreparedReport, folder: Path) -> None:
    for part, reasons in report["dropped"].items():
        print(f"{part}: dropped {', '.join(f'{count:,} ({reason})' for reason, count in reasons.items())}")
    print(visible("\n".join([*report["notes"], f"wrote {folder}"]), "\n"))


def _local(folder: Path) -> Callable[[Question], str]:
    """A causal language model in a folder: it writes the likeliest tokens, after its chat template if it has one."""
    from mrs_suggest.models.generation.generator import CAUSAL_LM, load_seq2seq

    loaded: tuple[Any, Any] = load_seq2seq(str(folder), None, kind=CAUSAL_LM)
    model, tokenizer = loaded

    def ask(question: Question) -> str:
        text = "\n\n".join(question.key)
        if templated := bool(tokenizer.chat_template):
            turns = [{"role": "user", "content": text}]  # some templates refuse a system turn
            text = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        read = tokenizer(text, return_tensors="pt", return_token_type_ids=False, add_special_tokens=not templated)
        length = read["input_ids"].shape[1]
        most = getattr(model.config, "max_position_embeddings", None) or length + TOKENS
        written = model.generate(**read, max_new_tokens=max(1, min(TOKENS, most - length)), do_sample=False)
        return str(tokenizer.decode(written[0, length:], skip_special_tokens=True))

    return ask


def _teacher(name: str, licence: str) -> Teacher:
    """A teacher whose answers can be read, with the shipped language detector and the guard's lists."""
    from mrs_datasets.generated.generate import MESSAGES, Teacher
    from mrs_suggest.common.hub.baselines import SHIPPED, resolve_model
    from mrs_suggest.models.starting_points import DETECTOR
    from mrs_suggest.suggest.guard.guard import DATE, PLACE, unfit
    from mrs_suggest.suggest.guard.lists import GuardData
    from mrs_suggest.suggest.language_detector import LanguageDetector
    from mrs_suggest.suggest.language_model import in_other_language
    from mrs_suggest.suggest.language_model.chat import read_replies

    detector, lists = LanguageDetector.load(resolve_model(SHIPPED) / DETECTOR), GuardData()

    def fault(text: str, language: str, step: str) -> str:
        if in_other_language(text, language, detector):
            return "in another language"
        reason = unfit(text, "", lists[language])
        if step == MESSAGES:  # which may name dates and places
            reason = lists[language].sensitive(text) if reason in (None, DATE, PLACE) else reason
        return reason or ""

    return Teacher(name, licence, read_replies, fault, lambda question: "")


def add_synth(verbs: argparse._SubParsersAction[CommandParser]) -> None:
    parser = verbs.add_parser("synth", help="write synthetic Reddit dumps, with the irregularities of real ones")
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="the folder to write")
    parser.add_argument(
        "--months",
        required=True,
        nargs="+",
        metavar="YYYY-MM",
        help="one dump each, in the form of its year: about 1 KB per line until 2019, then 2 to 4 KB",
    )
    parser.add_argument("--comments", required=True, type=int, metavar="N", help="lines per month")
    parser.add_argument(
        "--long-thread", type=int, default=0, metavar="N", help="put the first N comments in one thread"
    )
    parser.add_argument("--seed", type=int, default=0, help="the same seed writes the same lines (default 0)")
    parser.add_argument(
        "--window", type=int, default=31, metavar="LOG", help="log2 of the zstd window (default 31, as published)"
    )
    parser.add_argument(
        "--language-model", type=Path, metavar="FILE", help="also write a small fastText model for these languages"
    )
    parser.add_argument(
        "--toxic-words", type=Path, metavar="DIR", help="also write word lists for --toxicity words:DIR"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace dumps that this command wrote to --out")
    parser.set_defaults(run=_synth)


def _synth(options: argparse.Namespace) -> None:
    from tqdm import tqdm

    from mrs_datasets.synthetic.dumps import MANIFEST, write_dumps, write_toxic_words

    total = len(options.months) * max(options.comments, 0)
    with tqdm(total=total, unit=" lines", unit_scale=True, desc="synth", disable=None) as bar:
        manifest = write_dumps(
            options.out, options.months, options.comments, options.seed, window_log=options.window,
            long_thread=options.long_thread, overwrite=options.overwrite, progress=bar.update,
        )  # fmt: skip
    for name, facts in manifest["files"].items():
        print(f"{name}  {facts['lines']:,} lines, {facts['bytes']:,} bytes, {facts['compressed']:,} packed")
    for name, facts in manifest["profiles"].items():
        print(f"{name}: {facts['kept']:,} comments stay, {facts['pairs']:,} pairs")
    if options.language_model:
        from mrs_datasets.synthetic.language_models import write_language_model

        write_language_model(options.language_model, options.seed)
        print(f"wrote {visible(options.language_model)}")
    if options.toxic_words:
        write_toxic_words(options.toxic_words)
        print(f"wrote {visible(options.toxic_words)}")
    print(f"wrote {visible(options.out)} ({MANIFEST} has the expected counts)")
