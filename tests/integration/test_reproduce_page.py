"""The page of `mrs reproduce` in a browser: nothing is loaded or cut off, on a desktop and a phone, light and dark."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from mrs_suggest.reproduce import runner
from mrs_suggest.reproduce.cells import Setup, all_cells, place_of, run_of
from mrs_suggest.reproduce.report import write_report
from mrs_suggest.reproduce.table import at_scale, only_tables, read_table
from tests.browser import Browser, open_browser

pytestmark = pytest.mark.integration

CONFIGS = Path(__file__).resolve().parents[2] / "trainers" / "configs"
LANGUAGES = ("en", "es", "fr")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with open_browser(tmp_path_factory.mktemp("browser") / "profile", 1280, 900) as opened:
        yield opened


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of the paper's Table 3 at the small scale, with runs in three languages."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "mrs" / "data").mkdir(parents=True)
    table = only_tables(at_scale(read_table(CONFIGS / "reproduce", "mrs"), "small"), ["3"])
    setup = Setup(table, folder / "out", CONFIGS, "small", data={"mrs": None})
    for name, cell in all_cells(table).items():
        language = cell.id.rpartition("-")[2]
        tested = [language] if language in LANGUAGES else list(LANGUAGES)
        if "-mt-" in name or ("monolingual" in name and language not in LANGUAGES):
            continue
        run = run_of(name, setup)
        run.mkdir(parents=True)
        right = 20 + cell.seed % 5 - 6 * ("zero" in name) + len(language)
        figures = {"weighted": right / 40, "dist1": right / 80, "dist2": right / 60}
        metrics = {"systems": {"Model": dict.fromkeys(tested, figures)}, "signatures": {code: {} for code in tested}}
        record = {"trainer": "retrieval", "seed": cell.seed, "commit": "c0ffee", "metrics": metrics, "seconds": 61.5}
        record |= {"plan": {"train": tested[:1]}, "hardware": {"machine": "x86_64", "cores": 2}, "steps": 60}
        (run / "run.json").write_text(json.dumps(record))
        points = {"best_step": 60, "loss": [[30, 4.5], [60, 4.4]], "validation": {"ROUGE": [[30, 0.04], [60, 0.05]]}}
        (run / "curves.json").write_text(json.dumps(points))
        for code in tested:
            rows = (f"m{n}\tyes it is\t{'yes it is' if n < right else 'no'}\ta\tb\n" for n in range(40))
            (run / f"predictions.{code}.tsv").write_text("".join(rows))
        note = {"command": f"mrs train retrieval --config {CONFIGS} --output_dir {run}"}
        (place_of(name, setup) / runner.STATE).write_text(json.dumps(note))
    return write_report(setup, {})[0]


@pytest.mark.parametrize(("width", "mobile"), [(1280, False), (390, True)])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_the_screen(browser: Browser, page: Path, width: int, mobile: bool, scheme: str) -> None:
    browser.resize(width, 900, mobile)
    browser.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.open(page.as_uri())
    assert browser.called() == []
    wide, high, drawn, colours = browser.script(
        """const page = document.documentElement, style = getComputedStyle(document.body);
        return [page.scrollWidth, page.scrollHeight, [...document.images].map((one) => one.naturalWidth),
            [style.color, style.backgroundColor].map((one) => Number(one.match(/[0-9]+/)[0]))];"""
    )
    assert wide == width, "the page itself does not scroll sideways"
    assert high > 2000
    assert len(drawn) == 2
    assert min(drawn) > 600
    assert colours[0] < 60 < 200 < colours[1] if scheme == "light" else colours[1] < 60 < 200 < colours[0]
    stays = """const box = document.querySelector('.wide'), first = box.querySelector('td');
        box.scrollLeft = 200;
        return [box.scrollLeft, Math.round(first.getBoundingClientRect().left - box.getBoundingClientRect().left)];"""
    scrolled, left = browser.script(stays)
    assert left == 0, "the names of the rows stay"
    assert scrolled > 0 or not mobile


def test_what_it_says(browser: Browser, page: Path) -> None:
    browser.resize(1280, 900)
    browser.open(page.as_uri())
    assert browser.text("h1") == "Multilingual reply suggestion (MRS), test splits"
    cell = "table:first-of-type tbody tr:nth-child(2) td:nth-child(3)"
    assert browser.text(cell).split("\n")[1:] == ["± .0250", ".0156"]
    browser.click("nav a:last-of-type")
    assert browser.script("return location.hash").startswith("#part-")
    browser.click("details:last-of-type summary")
    assert browser.text("details:last-of-type td a") == "retrieval-monolingual-es/42"
    link = browser.script("return document.querySelector('details:last-of-type td a').href")
    assert link == (page.parent / "cells" / "retrieval-monolingual-es-42" / "run" / "run.json").as_uri()
    assert str(page.parent) not in page.read_text(encoding="utf-8")
