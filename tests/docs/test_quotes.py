"""Tables of results in the project's pages."""

import json
import sys
from pathlib import Path

import pytest

from mrs_suggest.common.errors import InputError

sys.path.append(str(Path(__file__).resolve().parents[2] / "docs" / "site"))  # the site's own scripts

from quotes import main, quoted

BLOCK = "a\n<!-- results: r.json 3 weighted -->\nold\n<!-- end of results -->\nb\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a file of results."""
    printed = {"3": {"weighted": "| x |\n| --- |\n"}, "figure 2": {"all": "| y |\n"}}
    (tmp_path / "r.json").write_text(json.dumps({"printed": printed}))
    return tmp_path


def test_blocks_are_filled_in_and_stay_as_they_are(folder: Path) -> None:
    filled = quoted(BLOCK + BLOCK.replace("3 weighted", "figure-2 all"), folder)
    assert filled == (
        "a\n<!-- results: r.json 3 weighted -->\n\n| x |\n| --- |\n\n<!-- end of results -->\nb\n"
        "a\n<!-- results: r.json figure-2 all -->\n\n| y |\n\n<!-- end of results -->\nb\n"
    )
    assert quoted(filled, folder) == filled
    assert quoted("no block", folder) == "no block"
    example = BLOCK.replace("<!--", "    <!--")
    assert quoted(example, folder) == example


def test_figures_are_those_of_their_record(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(json.dumps({"1 workers": {"bare ms": 6.14}, "share": [0.05, 0.25], "n": 4000}))
    text = "<!-- figure: r.json/{} -->{}<!-- -->"
    for keys, shown in {
        "1 workers/bare ms .1f": "6.1",
        "share/1 .2f": ".25",
        "share/0 .0%": "5%",
        "n ,": "4,000",
    }.items():
        page = f"takes {text.format(keys, 'old')} and {text.format(keys, 'older')}."
        assert quoted(page, tmp_path) == f"takes {text.format(keys, shown)} and {text.format(keys, shown)}."
    for keys in ("none .1f", "share/2 .1f", "n .1q", "share .1f"):
        with pytest.raises(InputError, match=f"has no figure at {keys.rpartition(' ')[0]} for"):
            quoted(text.format(keys, ""), tmp_path)
    with pytest.raises(InputError, match="the page: .*none.json has no figure"):
        quoted(text.format("n ,", "").replace("r.json", "none.json"), tmp_path)


def test_the_command_writes_pages(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    Path("page.md").write_text(BLOCK)
    assert main(["page.md"]) == 0
    assert "| x |" in Path("page.md").read_text()


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("<!-- end of results -->", "", "the page: .* has no end; write <!-- end of results -->"),
        ("<!-- end of results -->", BLOCK, "has no end"),
        ("r.json", "none.json", "none.json is not a JSON file of `mrs reproduce`"),
        ("r.json 3", "r.json 4", "has no table '4'; expected one of 3, figure 2"),
        ("weighted", "mrr", "table 3 of .*r.json has no 'mrr'; expected weighted"),
    ],
)
def test_a_wrong_block_is_named(folder: Path, old: str, new: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        quoted(BLOCK.replace(old, new), folder)
