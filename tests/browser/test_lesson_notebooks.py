"""A released lesson in a real JupyterLab: solved, wrong on purpose, moved, validated."""

import os
import re
import shutil
from pathlib import Path

import nbformat
import pytest
from jupyter import close_notebook, open_notebook, run_all, run_cell, set_cell
from playwright.sync_api import expect

from autograder.exercises import load

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
ROOT = Path(__file__).parents[2]
LESSONS = ["01_lse_gradient"]  # the lesson whose whole run in a browser has been gone through
VIEW = ".hopping-view"


def notebook(room, lesson):
    return nbformat.read(next((ROOT / room / lesson).glob("*.ipynb")), as_version=4)


def solve(page, lesson):
    """Type the solution of every cell that a learner writes; return the places of all cells."""
    solved = {cell.id: cell.source for cell in notebook("solutions", lesson).cells}
    places = {}
    for place, cell in enumerate(notebook("release", lesson).cells):
        places[cell.metadata.get("nbgrader", {}).get("grade_id", cell.id)] = place
        if cell.metadata.get("nbgrader", {}).get("solution") and cell.id in solved:
            set_cell(page, place, solved[cell.id])
    return places


def keep_screenshot(page, name):
    folder = os.environ.get("SCREENSHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(folder) / f"{name}.png")


@pytest.fixture(params=LESSONS)
def lesson(request):
    return request.param


@pytest.fixture
def opened(page, lab, lesson):
    """Open a fresh copy of the released lesson in JupyterLab."""
    source = next((ROOT / "release" / lesson).glob("*.ipynb"))
    shutil.copy(source, lab.folder / source.name)
    open_notebook(page, lab, source.name)
    yield page
    close_notebook(page)


def outputs(page, place):
    return page.locator(".jp-Notebook .jp-Cell").nth(place).locator(".jp-OutputArea-output")


def wait_until_painted(page):
    page.wait_for_selector(f"{VIEW}[data-painted]")
    page.wait_for_timeout(1000)


def test_solved_it_runs_from_top_to_bottom_moves_and_validates(opened, lesson):
    page = opened
    places = solve(page, lesson)
    run_all(page)
    wait_until_painted(page)
    assert page.locator(".jp-OutputArea-output[data-mime-type*='stderr']").count() == 0
    for name in (e.name for e in load().values() if e.lesson == lesson):
        expect(outputs(page, places[f"check_{name}"]).first).to_contain_text("pass")

    view = page.locator(VIEW).first
    view.scroll_into_view_if_needed()
    keep_screenshot(page, f"{lesson}_solved")
    before = view.screenshot()
    knob = page.locator(".widget-slider [role='slider'], .jp-OutputArea [role='slider']").first
    for key in ("End", "Home"):
        knob.focus()
        knob.press(key)
        page.wait_for_timeout(1500)
        keep_screenshot(page, f"{lesson}_{key}")
        after = view.screenshot()
        assert after != before, f"{key} changed nothing"
        before = after

    page.get_by_role("button", name=re.compile("Validate")).first.click()
    expect(page.get_by_text("passes all the tests")).to_be_visible(timeout=120_000)
    keep_screenshot(page, f"{lesson}_validated")
    page.locator(".jp-Dialog button").click()


def test_wrong_on_purpose_it_says_what_is_wrong(opened, lesson):
    page = opened
    first = next(e for e in load().values() if e.lesson == lesson)
    places = solve(page, lesson)
    cells = notebook("release", lesson).cells
    right = next(
        cell.source
        for cell in notebook("solutions", lesson).cells
        if cell.id == cells[places[first.name]].id
    )
    wrong = re.sub(r"return (.*)", r"return 2 * (\1)", right)
    assert wrong != right
    set_cell(page, places[first.name], wrong)
    for place in range(places[f"check_{first.name}"] + 1):
        if cells[place].cell_type == "code":
            run_cell(page, place)
    told = outputs(page, places[f"check_{first.name}"]).first
    expect(told).to_contain_text(f"{first.name}: not right yet")
    expect(told).to_contain_text("called with")
    expect(told).not_to_contain_text("Traceback")
    told.scroll_into_view_if_needed()
    keep_screenshot(page, f"{lesson}_wrong")
