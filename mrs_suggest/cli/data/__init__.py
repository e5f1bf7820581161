"""`mrs data`: list the catalogue, prepare or build a data set, add response sets, check, describe and publish it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrs_datasets.catalogue import catalogued, read_record
from mrs_datasets.prepared.report import DROPPED, FindingEntry, PreparedReport
from mrs_datasets.prepared.responses import MAX_RESPONSES, PAPER_MIN_REPLY_COUNT
from mrs_datasets.prepared.schema import RESPONSES_SUFFIX
from mrs_datasets.readers import Chunk, Chunks
from mrs_suggest.cli.data.audit import add_audit
from mrs_suggest.cli.data.build import add_build
from mrs_suggest.cli.data.check import add_check
from mrs_suggest.cli.data.corpus import add_corpus
from mrs_suggest.cli.data.dictionary import add_dictionary_texts
from mrs_suggest.cli.data.generate import add_generate, add_synth
from mrs_suggest.cli.data.passes import add_passes
from mrs_suggest.cli.data.responses import add_responses
from mrs_suggest.cli.data.stats import add_stats
from mrs_suggest.cli.options import add_publish_options, change_of, publish_or_print
from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.common.errors import InputError, require_least
from mrs_suggest.common.text.text import visible

if TYPE_CHECKING:
    from mrs_datasets.readers.pairs.own_pairs import PairOptions

COUNTED = ("min_reply_count", "max_responses")
PAIRS = ("message_column", "reply_column", "language", "on_error", "language_model")


# Verbs with their own modules, which another verb does not need.
ADDED = {
    ("responses",): add_responses, ("stats", "view", "diversity"): add_stats, ("check",): add_check,
    ("build",): add_build, ("synth",): add_synth, ("toxicity", "translate"): add_passes, ("audit",): add_audit,
    ("quasi-sentences", "replace-terms"): add_dictionary_texts, ("corpus",): add_corpus,
    ("generate", "review"): add_generate,
}  # fmt: skip


def make_parser(verb: str = "") -> argparse.ArgumentParser:
    """The parser of all verbs; of `verb` alone if it is one of `ADDED`."""
    parser = CommandParser(prog="mrs data", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for add in (add for names, add in ADDED.items() if verb in names):
        add(verbs)
        return parser
    listing = verbs.add_parser("list", help="print the catalogue")
    listing.add_argument("--json", action="store_true", help="print every field of every record")
    listing.set_defaults(run=_list)
    _add_prepare(verbs)
    publish = verbs.add_parser("publish", help="publish a prepared folder on the hub, in one commit")
    publish.add_argument("folder", type=Path, help="a prepared folder")
    publish.add_argument("--repo", required=True, metavar="ORG/NAME")
    publish.add_argument(
        "--i-have-the-right-to-publish",
        action="store_true",
        help="needed for staple and xglue, whose terms restrict redistribution",
    )
    add_publish_options(publish)
    publish.set_defaults(run=_publish)
    layout = verbs.add_parser("write-xglue", help="write prepared tasks of XGLUE as the files of its archive")
    layout.add_argument("data", help="a prepared folder or a hub id of xglue or synthetic-xglue")
    layout.add_argument("--config", nargs="+", default=None, help="only these configs, such as ner-de (default all)")
    layout.add_argument("--out", required=True, type=Path, help="the folder to write, such as for mrs score --gold")
    layout.set_defaults(run=_write_xglue)
    for add in ADDED.values():
        add(verbs)
    return parser


def _add_prepare(verbs: argparse._SubParsersAction[CommandParser]) -> None:
    prepare = verbs.add_parser("prepare", help="write a prepared folder: card, Parquet, report")
    prepare.add_argument("name", choices=catalogued(), help="the data set")
    prepare.add_argument(
        "--source",
        default=[],
        action="append",
        metavar="PATH",
        help="a folder, an archive or (mrs) a file or hub id; may be repeated (`mrs data list` shows the details)",
    )
    prepare.add_argument(
        "--views",
        nargs="+",
        default=[],
        metavar="VIEW",
        help="also write these views (xcopa, synthetic-copa: nop noq nopq pairs joined; siqa: nop noq nopq)",
    )
    prepare.add_argument("--out", required=True, type=Path, help="the folder to write")
    prepare.add_argument("--overwrite", action="store_true", help="replace --out if it exists")
    prepare.add_argument(
        "--min-reply-count",
        type=int,
        help="mrs: leave rarer replies out of counted response sets (default 1; the paper uses "
        f"{PAPER_MIN_REPLY_COUNT} for Reddit)",
    )
    prepare.add_argument(
        "--max-responses", type=int, help=f"mrs: largest counted response set (default {MAX_RESPONSES})"
    )
    own = prepare.add_argument_group("mrs, from your own pairs")
    own.add_argument("--message-column", metavar="NAME", help="column of the messages (default message; TSV: first)")
    own.add_argument("--reply-column", metavar="NAME", help="column of the replies (default reply; TSV: second)")
    own.add_argument("--language", metavar="CODE", help="language of a file or data set that is not named after it")
    own.add_argument(
        "--on-error", choices=("stop", "skip"), help="on an invalid row: stop (default), or skip and count it"
    )
    own.add_argument(
        "--language-model",
        metavar="FILE",
        help="fastText's lid.176, to count rows in another language (default: the installed one)",
    )
    prepare.set_defaults(run=_prepare)


def _list(options: argparse.Namespace) -> None:
    if options.json:
        print(json.dumps({name: asdict(read_record(name)) for name in catalogued()}, indent=2, ensure_ascii=False))
        return
    for name in catalogued():
        record = read_record(name)
        about = record.paper if record.paper.startswith("ours") else f"{record.homepage}; {record.paper}"
        print(f"{name}  ({about})")
        shown = {kind: one.licence.replace("unknown", "see the card") for kind, one in record.variants.items()}
        print(f"  licence: {', '.join(f'{one} ({kind})' for kind, one in shown.items())}")
        print(f"  --source: {record.source}")
        for kind_name, kind in record.kinds.items():
            codes = " ".join(kind.languages or record.languages)
            rows = [f"{split} {kind.rows[split]:,}" if split in kind.rows else split for split in kind.splits]
            demand = f" (--views {kind_name})" if kind.on_demand else ""
            print(f"  {kind.shown}{demand}: {kind.about}")
            print(f"    splits {', '.join(rows)}; columns {', '.join(kind.columns)}; {codes}")


def _prepare(options: argparse.Namespace) -> None:
    from mrs_datasets.prepared.prepare import prepare, prepare_mrs

    for name in (*COUNTED, *PAIRS):
        if options.name != "mrs" and getattr(options, name) is not None:
            raise InputError(f"--{name.replace('_', '-')}: applies only to mrs.")
    counted = {name: getattr(options, name) for name in COUNTED if getattr(options, name) is not None}
    require_least(options, 1, *(name.replace("_", "-") for name in counted))
    more: dict[str, Any] = {"overwrite": options.overwrite, "progress": _progress}
    if options.name != "mrs":
        report = prepare(options.name, options.source, options.out, views=options.views, **more)
    elif len(options.source) != 1 or options.views:
        found = "--views" if options.views else f"{len(options.source)} --source"
        raise InputError(f"mrs: expected one --source, found {found}; `mrs data list` shows what it accepts.")
    else:
        report = prepare_mrs(options.source[0], options.out, pairs=_pair_options(options), **counted, **more)
    _print_report(report)
    print(f"wrote {visible(options.out)} ({visible(report['name'])})")


def _pair_options(options: argparse.Namespace) -> PairOptions:
    from mrs_datasets.readers.pairs.own_pairs import PairOptions
    from mrs_datasets.readers.pairs.pair_files import MESSAGE, REPLY, STOP, Columns
    from mrs_suggest.common.text.language_id import open_identifier

    columns = Columns(options.message_column or MESSAGE, options.reply_column or REPLY)
    if columns.message == columns.reply:
        raise InputError(f"--reply-column {columns.reply}: the messages are in that column; name another one.")
    found = PairOptions(columns, options.on_error or STOP, options.language)
    identifier = open_identifier(options.language_model)
    return replace(found, identify=identifier.identify, known_languages=identifier.languages) if identifier else found


def _print_report(report: PreparedReport) -> None:
    """Rows per config, a response set on the line of its language; then dropped rows, findings and notes."""
    configs = report["configs"]
    for config, splits in configs.items():
        language = config.removesuffix(RESPONSES_SUFFIX)
        if config != language and language in configs:
            continue
        rows = ", ".join(f"{split} {facts['rows']:,}" for split, facts in splits.items())
        responses = configs.get(config + RESPONSES_SUFFIX, {}).get("train")
        print(f"{config}  {rows}" + (f"; responses {responses['rows']:,}" if responses else ""))
    examples = {(found["part"], found["finding"]): _examples(found) for found in report.get("findings", [])}
    for part, reasons in report["dropped"].items():
        for reason, count in reasons.items():
            places = examples.get((part, DROPPED + reason))
            where = f": {visible(places)}" if places else ""
            print(f"{visible(part)}: {count:,} rows dropped ({visible(reason)}){where}")
    for found in report.get("findings", []):
        if not found["finding"].startswith(DROPPED):
            what = visible(f"{found['part']}: {found['finding']}")
            print(f"{what}: {found['count']:,} ({visible(_examples(found))})")
    for note in report["notes"]:
        print(f"note: {visible(note)}")


def _examples(found: FindingEntry) -> str:
    """The places of the first rows of a finding."""
    return ", ".join(found["examples"]) + (" ..." if found["count"] > len(found["examples"]) else "")


def _publish(options: argparse.Namespace) -> None:
    from tqdm import tqdm

    from mrs_datasets.prepared.publishing import prepared_publication
    from mrs_suggest.common.hub import hub

    hub.require_repo_id(options.repo)
    change_of(options, options.repo)
    shown = partial(tqdm, desc="compare with report.json", unit=" splits", disable=None)
    what = prepared_publication(options.folder, options.repo, options.i_have_the_right_to_publish, shown)
    publish_or_print(what, options, f'load_dataset("{options.repo}", CONFIG)')


def _write_xglue(options: argparse.Namespace) -> None:
    from mrs_datasets.prepared.prepared import open_prepared
    from mrs_datasets.tasks.xglue_layout import write_layout

    paths = write_layout(open_prepared(options.data), options.out, options.config)
    print(f"wrote {len(paths)} files to {visible(options.out)}")


def _progress(chunks: Chunks) -> Iterator[Chunk]:
    from tqdm import tqdm

    with tqdm(unit=" rows", unit_scale=True, desc="prepare", disable=None) as bar:
        for config, split, table in chunks:
            bar.set_postfix_str(f"{config}/{split}", refresh=False)
            yield config, split, table
            bar.update(table.num_rows)
