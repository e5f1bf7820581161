"""`mrs install`: put a data set and the metrics into the caches, so that these calls work from any folder.

load_dataset("mrs", "es")    load_dataset("xcopa", "qu")    evaluate.load("mrs_rouge")

A data set replaces an earlier install of the same one, and leaves the others where they are.
"""

import argparse

from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.common.text.text import visible


def make_parser() -> argparse.ArgumentParser:
    parser = CommandParser(
        prog="mrs install", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--source", default="sample", help="a prepared folder, or `sample` (default) or `mrs-everyday` of the package"
    )
    parser.add_argument("--remove", action="store_true", help="remove exactly what earlier installs put there")
    parser.add_argument(
        "--language-model",
        action="store_true",
        help="instead, download fastText's lid.176.ftz (0.9 MB, CC BY-SA 3.0), which identifies languages",
    )
    parser.set_defaults(run=_run)
    return parser


def _run(options: argparse.Namespace) -> None:
    if options.language_model:
        from mrs_suggest.common.text.language_id import default_model_path, download_language_model

        target = download_language_model(default_model_path())
        print(f"the language model is {target}; `mrs install --remove` leaves it there.")
        return
    if options.remove:
        from mrs_suggest.common.hub.installed import uninstall

        removed = uninstall()
        for folder in removed:
            print(f"removed {visible(folder)}")
        print(f"{len(removed)} folders removed" if removed else "nothing is installed")
        return
    import datasets

    from mrs_datasets.prepared.install import install

    datasets.disable_progress_bars()
    done = install(options.source)
    report = done.report
    first = next(iter(report["configs"]))
    title, where = visible(report["name"]), visible(done.cache)
    print(f'load_dataset("{done.name}", "{visible(first)}"): {title}, {len(done.configs)} configs below {where}')
    if report["reader"] == "sample":
        print(
            "  This is the embedded sample, not the MRS data set: it is for trying things out. For the data set, run\n"
            "  `mrs data prepare mrs --source mrs.tgz --out DIR` and `mrs install --source DIR`."
        )
    for metric, folder in done.metrics.items():
        print(f'evaluate.load("{metric}"): {visible(folder)}')
    if done.removed:
        print(f"removed {len(done.removed)} folders of an earlier install")
    print("`mrs install --remove` removes all of this. Set HF_EVALUATE_OFFLINE=1 to keep evaluate from asking the hub.")
