"""What of a folder goes to the hub, what stays, and what is refused."""

import os
from pathlib import Path

import pytest

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.publication import Publication, describe

ALLOWED = ("R.md", "run.json", "index/*/replies.json", "part_*/model.safetensors")
NAMES = (
    "R.md", "run.json", "index/es/replies.json", "index/es/predictions.tsv", "index/replies.json", "part_0/secret.txt",
    "part_0/model.safetensors", "checkpoint-1/run.json", "checkpoint-1/model.safetensors", ".git/config",
    "index/.x/replies.json", "wandb/deep/log",
)  # fmt: skip


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in NAMES:
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path / "tree"


def publication(tree: Path, **named: object) -> Publication:
    return Publication("model", "org/m", tree, ALLOWED, {"checkpoint-*": "a checkpoint", "*": "unknown"}, **named)


def test_only_what_is_named_goes_and_the_reason_is_told(tree: Path) -> None:
    (tree / "wandb" / "latest").symlink_to("/etc")
    (tree / "passwd").symlink_to("/etc/passwd")
    what = publication(tree, instead={"R.md": b"other", "new/n.txt": b"n"})
    files = what.files()
    assert list(files) == ["R.md", "index/es/replies.json", "new/n.txt", "part_0/model.safetensors", "run.json"]
    assert (files["R.md"], files["run.json"]) == (b"other", tree / "run.json")
    assert what.sizes()["R.md"] == 5
    assert publication(tree).left_behind() == {
        ".git/": "hidden",
        "checkpoint-1/": "a checkpoint (2 files)",
        "index/.x/": "hidden",
        "index/es/predictions.tsv": "unknown",
        "index/replies.json": "unknown",
        "part_0/secret.txt": "unknown",
        "passwd": "a link",
        "wandb/": "a link; unknown",
    }


def test_a_description_lists_files_what_stays_and_the_card(tree: Path) -> None:
    (tree / "evil\x1b[2J\nname").write_text("")
    text = describe(publication(tree, instead={"README.md": "# ¡Hola!\x1b[31m\n".encode()}))
    assert text.startswith("model org/m: 5 files, ")
    assert "  checkpoint-1/: a checkpoint (2 files)\n" in text
    assert "  evil\\x1b[2J\\nname: unknown\n" in text
    assert text.endswith("\n\nREADME.md:\n\n# ¡Hola!\\x1b[31m\n")


@pytest.mark.parametrize(
    "name", ["run.json", "R.md", "index", "index/es", "index/es/replies.json", "part_0", "part_0/model.safetensors"]
)
@pytest.mark.parametrize("inside", [False, True], ids=["to another place", "within the folder"])
def test_a_link_is_never_followed(tree: Path, name: str, inside: bool) -> None:
    target = tree / "checkpoint-1" if inside else tree.parent / "private"
    (tree / name).rename(target / "moved" if inside else target)
    (tree / name).symlink_to(target / "moved" if inside else target)
    with pytest.raises(InputError, match=r"is a link, and would be published; put the file itself there"):
        publication(tree, instead={"R.md": b"card"}).files()


def test_what_is_no_regular_file_is_refused(tree: Path) -> None:
    (tree / "run.json").unlink()
    os.mkfifo(tree / "run.json")  # reading it would wait for ever
    with pytest.raises(InputError, match=r"run\.json: is not a regular file"):
        publication(tree).files()
