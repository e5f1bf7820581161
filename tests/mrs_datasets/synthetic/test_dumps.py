"""The synthetic dumps: what their manifest says is what the stages find."""

import json
import statistics
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from mrs_datasets.builders.reddit.read import ReadCounts, read_comments
from mrs_datasets.synthetic.dumps import write_dumps
from mrs_suggest.common.errors import InputError
from tests.cases import cases


def test_the_same_seed_gives_the_same_bytes_and_another_one_others(tmp_path: Path) -> None:
    files = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_dumps(tmp_path / name, ["2018-02", "2018-01"], 300, seed, window_log=20)
        files.append([(tmp_path / name / f"RC_{m}.zst").read_bytes() for m in ("2018-01", "2018-02")])
    assert files[0] == files[1]
    assert files[0][0] != files[2][0]
    assert files[0][0] != files[0][1]


def test_a_long_thread_and_lines_of_their_year(tmp_path: Path) -> None:
    write_dumps(tmp_path / "out", ["2019-12", "2020-01"], 1500, window_log=20, long_thread=1000)
    threads: Counter[str] = Counter()
    lengths = []
    for path in sorted((tmp_path / "out").glob("RC_*")):
        counts = ReadCounts()
        for batch in read_comments(path, counts):
            threads.update(batch["link_id"].to_pylist())
        lines = zstandard.ZstdDecompressor().stream_reader(path.read_bytes()).read().splitlines()
        lengths.append(statistics.median(map(len, lines)))
        newest = json.loads(lines[-1])
        assert (
            counts.comments == json.loads((tmp_path / "out/manifest.json").read_text())["files"][path.name]["comments"]
        )
    assert 990 <= threads.most_common(1)[0][1] <= 1000
    assert threads.most_common(2)[1][1] < 500
    assert lengths[0] < 1200 < 2000 < lengths[1] < 4000
    assert {"body_html", "all_awardings", "treatment_tags"} <= newest.keys()


@pytest.mark.parametrize(("change", "option"), cases(__file__, "test_options_that_cannot_be_are_one_sentence"))
def test_options_that_cannot_be_are_one_sentence(tmp_path: Path, change: dict[str, Any], option: str) -> None:
    with pytest.raises(InputError, match=f"^{option}: expected ") as caught:
        write_dumps(tmp_path / "out", **({"months": ["2018-01"], "comments": 10} | change))
    assert "\n" not in str(caught.value)
    assert not any(tmp_path.iterdir())


def test_the_command_writes_the_folder_and_says_what_is_in_it(tmp_path: Path, mrs_here: Callable[..., Any]) -> None:
    line = f"--out {tmp_path}/out --months 2018-02 2018-01 --comments 200 --seed 4 --window 20"
    code, printed, _ = mrs_here("data", "synth", *line.split())
    assert code == 0
    assert "RC_2018-01.zst  200 lines" in printed
    assert "paper: " in printed
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert (manifest["seed"], manifest["comments"], manifest["window_log"]) == (4, 200, 20)
