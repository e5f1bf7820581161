"""Print the lines of product code by package, and fail above the limit (`make quality`).

Tests, benchmarks, documentation and examples do not count.
"""

import sys
from collections.abc import Iterable
from pathlib import Path

LIMIT = 76_225
ROOT = Path(__file__).resolve().parents[1]


PACKAGES = ("mrs_datasets", "mrs_metrics", "trainers", "model_cards", ".ci")


def main() -> int:
    folders = [path for path in sorted((ROOT / "mrs_suggest").iterdir()) if path.is_dir() and path.name[0] != "_"]
    lines = {"mrs_suggest/*.py": count((ROOT / "mrs_suggest").glob("*.py"))}
    for folder in [*folders, *(ROOT / name for name in PACKAGES)]:
        lines[folder.relative_to(ROOT).as_posix()] = count(folder.rglob("*.py"))
    for place, number in lines.items():
        print(f"{place:<26}{number:>7,}")
    total = sum(lines.values())
    print(f"{'product code':<26}{total:>7,} of at most {LIMIT:,} lines")
    if total > LIMIT:
        print(f"{total - LIMIT:,} lines too many: remove something before you add more.", file=sys.stderr)
    return int(total > LIMIT)


def count(paths: Iterable[Path]) -> int:
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


if __name__ == "__main__":
    sys.exit(main())
