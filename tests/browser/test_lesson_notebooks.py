"""Every released lesson in a real JupyterLab: solved, moved, seen, validated, wrong on purpose."""

import re
import shutil
from pathlib import Path

import nbformat
import pytest
from front_end import (
    change_theme,
    close_notebook,
    open_notebook,
    resized,
    run_all,
    run_cell,
    set_cell,
)
from pictures import (
    at_rest,
    faults_of_access,
    faults_of_labels,
    keep_screenshot,
    pictures,
    wait_for_other_pictures,
    wait_until_painted,
)
from playwright.sync_api import expect

from autograder.exercises import load

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
ROOT = Path(__file__).parents[2]
LESSONS = sorted(folder.name for folder in (ROOT / "release").iterdir() if folder.is_dir())
STOPS = "select, button, .noUi-handle, .hopping-handle, .hopping-turner"
READOUT = ".widget-readout"
WHICH = "(e, these) => [...e.querySelectorAll(these)].indexOf(document.activeElement)"
SAMPLE = LESSONS[0]  # for what does not depend on the lesson


def notebook(room, lesson):
    return nbformat.read(next((ROOT / room / lesson).glob("*.ipynb")), as_version=4)


def exercises(lesson):
    return [exercise.name for exercise in load().values() if exercise.lesson == lesson]


def places_of(lesson):
    """Return the place of every cell by its grade_id, or its id when it has none."""
    cells = notebook("release", lesson).cells
    names = [cell.metadata.get("nbgrader", {}).get("grade_id", cell.id) for cell in cells]
    return {name: place for place, name in enumerate(names)}


def solutions(lesson):
    """Return what a learner would write, by the place of the cell."""
    solved = {cell.id: cell.source for cell in notebook("solutions", lesson).cells}
    return {
        place: solved[cell.id]
        for place, cell in enumerate(notebook("release", lesson).cells)
        if cell.metadata.get("nbgrader", {}).get("solution") and cell.id in solved
    }


def open_solved(page, server, lesson):
    """Open a fresh copy of the released lesson, type the solutions, and run it."""
    source = next((ROOT / "release" / lesson).glob("*.ipynb"))
    shutil.copy(source, server.folder / source.name)
    open_notebook(page, server, source.name)
    page.evaluate("() => window.jupyterapp.shell.collapseLeft?.()")  # Notebook 7 has no such side
    for place, text in solutions(lesson).items():
        set_cell(page, place, text)
    run_all(page)
    wait_until_painted(page)


@pytest.fixture(scope="module", params=LESSONS)
def lesson(request):
    return request.param


@pytest.fixture(scope="module")
def solved(page, lab, lesson):
    """Return a page that shows the lesson in JupyterLab, solved and run."""
    open_solved(page, lab, lesson)
    yield page
    close_notebook(page)


def outputs(page, place):
    return page.locator(".jp-Notebook .jp-Cell").nth(place).locator(".jp-OutputArea-output")


def views(page):
    """Return every picture with its controls."""
    return page.locator(".widget-vbox:has(.hopping-view)").all()


def test_solved_it_runs_from_top_to_bottom(solved, lesson):
    assert solved.locator(".jp-OutputArea-output[data-mime-type*='stderr']").count() == 0
    places = places_of(lesson)
    for name in exercises(lesson):
        expect(outputs(solved, places[f"check_{name}"]).first).to_contain_text("pass")


def test_every_control_and_point_of_every_view_moves_it(solved, lesson):
    assert views(solved)
    all_words = solved.locator(".hopping-words")
    for number, view in enumerate(views(solved)):
        others = all_words.all_inner_texts()[number + 1 :]
        view.scroll_into_view_if_needed()
        for slider in view.locator(".noUi-handle").all():
            slides(view, slider, f"{lesson}_{number}_{slider.get_attribute('aria-label')}")
        for menu in view.locator("select").all():
            for key in ("End", "Home"):
                changes(view, menu, key)
        for button in view.locator("button").all():
            for _ in ("on", "off"):
                changes(view, button, "Space")
        at_rest(solved)
        for point in view.locator(".hopping-handle, .hopping-turner").all():
            changes(view, point, "ArrowLeft")
        said = " ".join(view.locator(".hopping-note").all_inner_texts())
        assert "raised" not in said and "not written" not in said
        assert all_words.all_inner_texts()[number + 1 :] == others  # each has a state of its own
    assert not "".join(solved.locator(".hopping-status").all_inner_texts())


def test_tab_reaches_every_control_and_point_in_order(solved, lesson):
    for view in views(solved):
        stops = view.locator(STOPS)
        stops.first.focus()
        reached = []
        while len(reached) < stops.count() and (not reached or reached[-1] >= 0):
            reached.append(view.evaluate(WHICH, STOPS))
            solved.keyboard.press("Tab")
            if view.evaluate(WHICH, READOUT) >= 0:  # a slider's number, to be written
                solved.keyboard.press("Tab")
        assert reached == list(range(stops.count()))


def slides(view, slider, name):
    """Move a slider to both ends from the keyboard, then back by writing its number."""
    readout = slider.locator("xpath=ancestor::*[contains(@class, 'widget-slider')]")
    readout = readout.locator(".widget-readout")
    read = [readout.inner_text()]
    for key in ("Home", "End"):
        before = pictures(view)
        slider.focus()
        slider.press(key)
        read.append(readout.inner_text())
        if read[-1] != read[-2]:  # it was not there already
            wait_for_other_pictures(view, before)
        keep_screenshot(view, f"{name}_{key}")
    start, low, high = read
    assert low != high
    if high != start:
        before = pictures(view)
        readout.fill(start)
        readout.press("Enter")
        wait_for_other_pictures(view, before)


def changes(view, control, key):
    """Press a key on a control, and wait until the picture is another."""
    before = pictures(view)
    control.focus()
    control.press(key)
    wait_for_other_pictures(view, before)


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_axe_finds_no_serious_fault(solved, lesson, theme):
    change_theme(solved, theme)
    try:
        at_rest(solved)
        for number, view in enumerate(views(solved)):
            keep_screenshot(view, f"{lesson}_{number}_{theme[11:]}")
        assert faults_of_access(solved) == []
    finally:
        change_theme(solved, "JupyterLab Light")


@pytest.mark.parametrize(
    ("width", "zoom"), [(1280, 1), (640, 2), (400, 1)], ids=["wide", "zoomed", "narrow"]
)
def test_nothing_is_cut_off_or_covered(solved, lesson, width, zoom):
    found = []
    with resized(solved, width, zoom):
        at_rest(solved)
        for number, view in enumerate(views(solved)):
            found += faults_of_labels(solved, view.locator(".hopping-view"))
            keep_screenshot(view, f"{lesson}_{number}_{width}")
            assert view.evaluate("(e) => e.scrollWidth <= e.clientWidth + 1")
    assert found == []


def test_wrong_on_purpose_it_says_what_is_wrong(solved, lesson):
    first = exercises(lesson)[0]
    places = places_of(lesson)
    right = solutions(lesson)[places[first]]
    wrong = re.sub(r"return (.*)", r"return 2 * (\1)", right)
    assert wrong != right
    told = outputs(solved, places[f"check_{first}"]).first
    for written, saying in ((wrong, f"{first}: not right yet"), (right, "pass")):
        set_cell(solved, places[first], written)
        run_cell(solved, places[first])
        run_cell(solved, places[f"check_{first}"])
        expect(told).to_contain_text(saying)
        expect(told).not_to_contain_text("Traceback")
        if written == wrong:
            expect(told).to_contain_text("called with")
            keep_screenshot(told, f"{lesson}_wrong")


def test_validate_passes_what_is_solved(page, lab):
    open_solved(page, lab, SAMPLE)
    page.get_by_role("button", name=re.compile("Validate")).first.click()
    expect(page.get_by_text("passes all the tests")).to_be_visible(timeout=180_000)
    page.locator(".jp-Dialog button").click()
    close_notebook(page)


def test_a_lesson_runs_in_the_classic_notebook(own_page, classic):
    open_solved(own_page, classic, SAMPLE)
    assert own_page.locator(".jp-OutputArea-output[data-mime-type*='stderr']").count() == 0
    view = views(own_page)[0]
    changes(view, view.locator(".noUi-handle").first, "End")
    assert faults_of_access(own_page) == []
    close_notebook(own_page)
