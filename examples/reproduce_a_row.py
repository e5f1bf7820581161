"""Run a cell of the paper's Table 3 in miniature, and compare the figures: `python examples/reproduce_a_row.py`.

The same as `mrs reproduce mrs --table 3 --scale tiny --only retrieval-monolingual-es`: a retriever from scratch, 150
steps on the Spanish pairs of the embedded sample, half a minute of one core. The figures show that the cell runs and
mean nothing beyond that; `--scale full --data mrs=FOLDER` is the paper's run. Needs `pip install '.[all]'`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from mrs_suggest.cli.main import main as mrs

CELL = "retrieval-monolingual-es"


def main(folder: Path) -> None:
    # A finished cell is skipped: running this again only rewrites the page.
    code = mrs(["reproduce", "mrs", "--table", "3", "--scale", "tiny", "--only", CELL, "--output", str(folder)])
    if code:
        sys.exit(code)
    run = next(folder.rglob(f"{CELL}-42/run/run.json"))
    record = json.loads(run.read_text(encoding="utf-8"))
    print(f"{CELL}: {record['steps']} steps, seed {record['seed']}, version {record['versions']['mrs-suggest']}")
    print(f"score it again: mrs score {run.parent / 'predictions.es.tsv'} --language es")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/reproduce/mrs"))
