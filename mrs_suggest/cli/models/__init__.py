"""`mrs models`: baselines, cards, response sets, the guard, exports, and publishing."""

from __future__ import annotations

import argparse
from pathlib import Path

from mrs_suggest.cli.models.index import add_index
from mrs_suggest.cli.options import add_publish_options, change_of, publish_or_print
from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.text import visible
from mrs_suggest.models.exports import CTRANSLATE2, ONNX

RUN = "the folder that a training run wrote"
REVISION = "revision of the repository: a branch, a tag or a commit (default main)"


def make_parser() -> argparse.ArgumentParser:
    parser = CommandParser(prog="mrs models", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("list", help="print the pretrained baselines").set_defaults(run=_list)
    download = verbs.add_parser("download", help="download a model, verify its hashes, print its folder")
    download.add_argument("name", help="a baseline's name, ORG/NAME, or ORG/NAME@REVISION")
    download.add_argument("--revision", help=REVISION)
    download.add_argument("--force", action="store_true", help="download again even if present")
    download.set_defaults(run=_download)
    card = verbs.add_parser("card", help="render README.md of a run from its run.json, after checking its predictions")
    card.add_argument("run_folder", metavar="RUN", help=f"{RUN}; for ORG/NAME[@REVISION], the card is printed")
    card.add_argument("--revision", help=REVISION)
    card.set_defaults(run=_card)
    guard = verbs.add_parser("guard", help="rebuild a run's guard, and measure it on a sheet of hard messages")
    guard.add_argument("run_folder", type=Path, metavar="RUN", help=RUN)
    guard.add_argument("--lists", type=Path, metavar="FOLDER", help="custom lists/ or prototypes/ (docs/guard.md)")
    guard.add_argument(
        "--text", nargs="+", default=(), metavar="LANG=SOURCE",
        help="everyday sentences that it learns from, too: text files with one a line, folders of them, Parquet files",
    )  # fmt: skip
    guard.add_argument(
        "--sheet", type=Path, metavar="FILE", help="write its recall and false alarms to run.json and card"
    )
    guard.add_argument(
        "--half", choices=("held_out", "build", "earlier"), default="held_out", help="of the sheet (default held_out)"
    )
    guard.set_defaults(run=_guard)
    add_index(verbs)
    _add_export(verbs)
    publish = verbs.add_parser("publish", help="publish a trained model on the hub, in one commit")
    publish.add_argument("folder", type=Path, help=RUN)
    publish.add_argument("--repo", required=True, metavar="ORG/NAME")
    publish.add_argument("--adapter", action="store_true", help="publish only adapters, for a base model on the hub")
    add_publish_options(publish)
    publish.set_defaults(run=_publish)
    return parser


def _add_export(verbs: argparse._SubParsersAction[CommandParser]) -> None:
    export = verbs.add_parser("export", help="add a faster copy of a model, if its answers stay the same")
    export.add_argument("run_folder", type=Path, metavar="RUN", help=RUN)
    runtime = export.add_mutually_exclusive_group(required=True)
    runtime.add_argument("--onnx", action="store_true", help="the message encoder of a retriever, for ONNX Runtime")
    runtime.add_argument("--ctranslate2", action="store_true", help="a generator, for CTranslate2")
    runtime.add_argument("--remove", action="store_true", help="remove the export, so that the weights answer again")
    export.add_argument("--int8", action="store_true", help="8-bit weights and activations (default: fp32)")
    export.add_argument("--data", help="prepared data whose validation split is answered (default: that of the run)")
    help_of = {
        "--messages": "retrievers: messages to answer instead, one per line: language, tab, message",
        "--least-agreement": "retrievers: share of messages that must get the same three suggestions (default .98)",
        "--largest-loss": "generators: largest loss of weighted ROUGE, with 95 %% confidence (default .01)",
    }
    export.add_argument("--messages", type=Path, metavar="FILE", help=help_of["--messages"])
    for option in ("--least-agreement", "--largest-loss"):
        export.add_argument(option, type=float, help=help_of[option])
    export.set_defaults(run=_export)


def _list(options: argparse.Namespace) -> None:
    from mrs_suggest.common.hub.baselines import read_baselines

    for baseline in read_baselines().values():
        where = "in the package; " if baseline.embedded else ""
        figures = ", ".join(f"{name} {value:.4f}" for name, value in baseline.metrics.items())
        print(f"{baseline.name}  ({where}hub: {baseline.repo_id}, revision {baseline.revision})")
        print(f"  {baseline.family}, {baseline.setting}: {' '.join(baseline.languages)}")
        print(f"  trained on {baseline.data}; test, pooled: {figures}")


def _download(options: argparse.Namespace) -> None:
    from mrs_suggest.common.hub.baselines import resolve_model
    from mrs_suggest.common.io.manifest import has_hashes
    from mrs_suggest.models.model_folder import open_model_folder

    folder = resolve_model(options.name, options.revision, force=options.force, verify=True)
    open_model_folder(folder, verify=has_hashes(folder))
    print(folder)


def _card(options: argparse.Namespace) -> None:
    from mrs_suggest.common.hub.baselines import require_no_revision
    from mrs_suggest.common.hub.hub import download, is_repo_id, split_revision
    from mrs_suggest.common.io.files import atomic_write
    from mrs_suggest.training.checked_card import checked_card

    folder = Path(options.run_folder)
    name = options.run_folder
    if is_repo_id(name) and not folder.exists():  # from its record alone: predictions are not published
        repo_id, revision = split_revision(name, options.revision)
        print(visible(checked_card(download(repo_id, revision, ["run.json"]), repo_id), "\n\t"))
        return
    require_no_revision(name, options.revision, "is a folder")
    path = folder / "README.md"
    atomic_write(path, checked_card(folder, None))
    print(f"wrote {visible(path)}")


def _guard(options: argparse.Namespace) -> None:
    from mrs_suggest.training.reply.guarding import update_guard

    figures = update_guard(options.run_folder, options.lists, options.sheet, options.half, options.text)
    for language, found in figures.items():
        print(
            f"{language}  {found.vetoed} of {found.sensitive} sensitive messages not answered, {found.named} with the "
            f"expected reason; false alarms: {found.lookalike_alarms} of {found.lookalikes} that only sound grave, "
            f"{found.alarms} of {found.everyday:,} everyday ones"
        )
    print(f"wrote {visible(options.run_folder)}")


def _export(options: argparse.Namespace) -> None:
    if options.remove:
        from mrs_suggest.training.reply.exporting import remove_export

        given = (options.data, options.messages, options.least_agreement, options.largest_loss)
        if options.int8 or any(value is not None for value in given):
            raise InputError("--remove: cannot be combined with other options.")
        remove_export(options.run_folder)
        print(f"wrote {visible(options.run_folder)}")
        return
    for option, what in (("least_agreement", "share"), ("largest_loss", "difference")):
        limit = getattr(options, option)
        if limit is not None and not 0 <= limit <= 1:
            raise InputError(f"--{option.replace('_', '-')} {limit:g}: expected a {what} from 0 to 1.")
    if options.ctranslate2:
        from mrs_suggest.training.generation.generator_export import LARGEST_LOSS, export_generator

        if options.messages is not None:
            raise InputError("--messages: a generator's replies are compared with real ones; pass --data instead.")
        if options.least_agreement is not None:
            raise InputError("--least-agreement: applies to retrievers; a generator's limit is --largest-loss.")
        loss = LARGEST_LOSS if options.largest_loss is None else options.largest_loss
        facts = export_generator(options.run_folder, options.int8, options.data, loss)
    else:
        from mrs_suggest.training.retrieval.encoder_export import LEAST, export_encoder

        if options.largest_loss is not None:
            raise InputError("--largest-loss: applies to generators; a retriever's limit is --least-agreement.")
        least = LEAST if options.least_agreement is None else options.least_agreement
        facts = export_encoder(options.run_folder, options.int8, options.data, options.messages, least)
    kind = CTRANSLATE2 if options.ctranslate2 else ONNX
    print(f"wrote {visible(options.run_folder / kind)} ({facts['bytes']:,} bytes)")


def _publish(options: argparse.Namespace) -> None:
    from mrs_suggest.common.hub import hub
    from mrs_suggest.common.io.manifest import has_hashes
    from mrs_suggest.models.model_folder import open_model_folder
    from mrs_suggest.models.saved.families import adapter_publication, publication
    from mrs_suggest.models.saved.record import read_record
    from mrs_suggest.training.checked_card import checked_card

    hub.require_repo_id(options.repo)
    change_of(options, options.repo)
    card = checked_card(options.folder, options.repo, options.adapter)
    if options.adapter:
        what = adapter_publication(options.folder, options.repo, card)
    else:
        what = publication(options.folder, read_record(options.folder), options.repo, card)
    open_model_folder(options.folder, verify=has_hashes(options.folder))
    publish_or_print(what, options, f"mrs suggest --model {options.repo}")
