"""The view in a real JupyterLab and a real browser: mouse, keyboard, themes, and bad input."""

import math
import re
from itertools import product

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
    drag,
    faults_of_access,
    handle,
    is_at,
    keep_screenshot,
    labels_of,
    pixels,
    says,
    wait_for_change,
    wait_until_painted,
)
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

# What a learner would have written by then.
WRITTEN = """
import numpy as np
from hopping import explore

Y = np.array([[1, 0.5], [-0.5, 1.25], [0.25, -1]])
xi = np.array([0.75, -0.5])

def lse(xi, Y, beta):
    u = beta * (Y @ xi)
    return (u.max() + np.log(np.exp(u - u.max()).sum())) / beta

def attention_weights(xi, Y, beta):
    u = beta * (Y @ xi)
    e = np.exp(u - u.max())
    return e / e.sum()

def lse_grad(xi, Y, beta):
    return attention_weights(xi, Y, beta) @ Y

def fd_grad(f, xi, h=1e-5):
    return np.array([(f(xi + s) - f(xi - s)) / (2 * h) for s in h * np.eye(len(xi))])

def energy(xi, Y, beta):
    return 0.5 * xi @ xi - lse(xi, Y, beta)

def unwritten(xi, Y, beta):
    raise NotImplementedError
"""
LANDSCAPE = "explore.landscape(energy, Y, xi, 4.0, lse_grad, heights=(-1.2, 2.5))"
LESSON_01 = "explore.scores_and_weights(lse, attention_weights, lse_grad, fd_grad)"


@pytest.fixture
def show(page, lab, request):
    """Open a notebook with these cells after WRITTEN, run it, and wait for the first picture."""
    name = re.sub(r"\W", "_", request.node.name)

    opened = []

    def _show(*cells, page=page):
        opened.append(page)
        open_notebook(page, lab, lab.write(f"{name}.ipynb", WRITTEN, *cells))
        page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
        run_all(page)
        wait_until_painted(page)
        return page

    yield _show
    for used in opened:
        keep_screenshot(used, name)
        close_notebook(used)


def test_dragging_a_token_moves_the_landscape(show):
    page = show(LANDSCAPE)
    before, said = pixels(page), handle(page, "y₁").get_attribute("aria-valuetext")
    assert said == "ξ₁ 1.00, ξ₂ 0.50"
    drag(page, "y₁", -60, 40)
    wait_for_change(page, before)
    assert handle(page, "y₁").get_attribute("aria-valuetext") != said
    assert "The query at (0.75, −0.50)" in page.locator(".hopping-words").inner_text()


def test_dragging_the_query_moves_the_hop_and_what_is_said(show):
    page = show(LANDSCAPE)
    flat, solid = pixels(page, 0), pixels(page, 1)
    drag(page, "query", -80, -60)
    wait_for_change(page, flat, 0)
    wait_for_change(page, solid, 1)
    expect(page.locator(".hopping-words")).not_to_contain_text("The query at (0.75, −0.50)")


def test_a_point_cannot_leave_its_panel(show):
    page = show(LANDSCAPE)
    drag(page, "query", 2000, -100)
    expect(handle(page, "query")).to_have_attribute("aria-valuenow", "2")


def test_a_key_between_an_answer_and_its_painting_moves_a_point_from_where_it_is(show):
    page = show(LANDSCAPE)
    handle(page, "query").focus()
    page.evaluate(
        """() => {
            window.usualFrame = window.requestAnimationFrame;
            window.requestAnimationFrame = (paint) => setTimeout(() => usualFrame(paint), 1000);
        }"""
    )
    page.keyboard.press("ArrowRight")
    page.wait_for_timeout(500)  # the answer is here, but not seen yet
    page.keyboard.press("Shift+ArrowUp")
    page.evaluate("() => { window.requestAnimationFrame = window.usualFrame; }")
    is_at(page, "query", "ξ₁ 0.79, ξ₂ −0.30")


def test_everything_is_reached_and_moved_from_the_keyboard(show):
    page = show(LANDSCAPE)
    cell = "() => window.jupyterapp.shell.currentWidget.content.activeCellIndex"
    page.locator(".noUi-handle").focus()
    active = page.evaluate(cell)
    reached = []
    for _ in range(8):
        reached.append(page.evaluate("() => document.activeElement.getAttribute('aria-label')"))
        page.keyboard.press("Tab")
    names = [name.split(":")[0] for name in reached if name]
    assert names[0] == "β"
    assert [n for n in names if n in ("y₁", "y₂", "y₃", "query ξ")] == ["y₁", "y₂", "y₃", "query ξ"]
    assert "Direction of view" in names

    handle(page, "query").focus()
    before = pixels(page)
    page.keyboard.press("ArrowRight")
    is_at(page, "query", "ξ₁ 0.79, ξ₂ −0.50")
    page.keyboard.press("Shift+ArrowUp")
    is_at(page, "query", "ξ₁ 0.79, ξ₂ −0.30")
    wait_for_change(page, before)
    says(page, "The query at (0.79, −0.30)")
    assert page.evaluate("() => document.activeElement.className") == "hopping-handle"
    ring = "() => getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(ring) == "solid"

    page.locator(".noUi-handle").focus()
    before = pixels(page)
    for _ in range(8):
        page.keyboard.press("ArrowRight")
    wait_for_change(page, before)
    says(page, "at β = 8.")
    expect(page.locator(".noUi-handle")).to_have_attribute("aria-valuetext", "8.000")
    page.keyboard.press("ArrowRight")
    said = page.locator(".noUi-handle").get_attribute("aria-valuetext")
    assert said == page.locator(".widget-readout").inner_text() != "8.00"  # at once
    assert page.evaluate(cell) == active  # the arrows did not walk through the notebook


def test_the_surface_turns_by_mouse_and_keyboard(show):
    page = show(LANDSCAPE)
    turner = page.locator(".hopping-turner")
    before = pixels(page, 1)
    turner.focus()
    page.keyboard.press("ArrowLeft")
    turned = wait_for_change(page, before, 1)
    box = turner.bounding_box()
    page.mouse.move(box["x"] + 60, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 160, box["y"] + 90, steps=4)
    page.mouse.up()
    wait_for_change(page, turned, 1)
    assert "°, from" in turner.get_attribute("aria-valuetext")


def test_without_webgl_nothing_changes(own_page, show):
    page = own_page
    page.add_init_script(
        """const get = HTMLCanvasElement.prototype.getContext;
        HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
            return kind.includes("webgl") ? null : get.call(this, kind, ...rest);
        };"""
    )
    show(LANDSCAPE, page=page)
    colors = """(canvas) => {
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        return new Set(new Uint32Array(data.buffer)).size;
    }"""
    for panel in (0, 1):
        canvas = page.locator(".hopping-stage > canvas").nth(panel)
        assert canvas.evaluate(colors) > 200


def test_a_function_that_raises_says_so_in_the_picture_and_recovers(show):
    page = show(
        "def fragile(xi, Y, beta):\n"
        "    print('noise')\n"
        "    if beta > 4: raise ValueError('beta is hot')\n"
        "    return energy(xi, Y, beta)\n"
        "explore.landscape(fragile, Y, xi, 4.0, lse_grad)"
    )
    note = page.locator(".hopping-note")
    assert note.inner_text() == ""
    page.locator(".noUi-handle").focus()
    page.keyboard.press("ArrowRight")
    expect(note).to_have_text("fragile raised ValueError: beta is hot")
    assert note.is_visible()
    says(page, "Fragile raised ValueError: beta is hot.")
    page.keyboard.press("ArrowLeft")
    expect(note).to_have_text("")
    drag(page, "query", 30, 30)
    expect(page.locator(".hopping-words")).not_to_contain_text("The query at (0.75, −0.50)")
    assert "noise" not in page.locator(".jp-OutputArea").last.inner_text()
    assert "Traceback" not in page.locator(".jp-Notebook").inner_text()


def test_a_function_that_is_not_written_yet_then_is(show):
    page = show("explore.landscape(unwritten, Y, xi, 4.0, unwritten)")
    assert page.locator(".hopping-note").inner_text() == "not written yet: unwritten"
    assert "Traceback" not in page.locator(".jp-Notebook").inner_text()
    drag(page, "query", 30, 30)
    says(page, "Not written yet")
    set_cell(page, 1, "explore.landscape(energy, Y, xi, 4.0, lse_grad)")
    run_cell(page, 1)
    page.wait_for_function("() => document.querySelector('.hopping-note')?.textContent === ''")


def test_a_slow_function_never_makes_a_queue(show):
    page = show(
        "import time\n"
        "asked = []\n"
        "def slow(xi, Y, beta):\n"
        "    time.sleep(0.15)\n"
        "    asked.append(xi)\n"
        "    return lse_grad(xi, Y, beta)\n"
        "explore.landscape(energy, Y, xi, 4.0, slow)",
        "print(len(asked))",
    )
    run_cell(page, 2)
    printed = page.locator(".jp-OutputArea-output pre")
    before = int(printed.inner_text())
    drag(page, "query", -60, -60, steps=60)
    at_rest(page)
    last = handle(page, "query").get_attribute("aria-valuetext")
    place = ", ".join(re.findall(r"−?\d\.\d\d", last))
    page.wait_for_function(
        "(text) => document.querySelector('.hopping-words').textContent.includes(text)",
        arg=f"The query at ({place})",
    )
    page.wait_for_timeout(1000)
    run_cell(page, 2)
    expect(printed).not_to_have_text(str(before))
    assert int(printed.inner_text()) - before < 40  # of 60 moves, each answered by two calls


def test_two_views_of_one_picture_follow_each_other(show):
    page = show(f"picture = {LANDSCAPE}\npicture", "picture")
    page.wait_for_function("() => document.querySelectorAll('.hopping-view').length === 2")
    at_rest(page)
    assert pixels(page, 0, view=0) == pixels(page, 0, view=1)
    before = pixels(page, 0, view=1)
    drag(page, "query", -60, 10)
    wait_for_change(page, before, view=1)
    said = page.locator(".hopping-words")
    expect(said.nth(1)).not_to_contain_text("The query at (0.75, −0.50)")
    expect(said.nth(1)).to_have_text(said.nth(0).inner_text())


def test_a_kernel_that_restarts_or_ends_under_a_view(show):
    page = show(LANDSCAPE)
    before = pixels(page)
    page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()"
    )
    page.wait_for_function(
        """() => document.querySelector(".hopping-status").textContent.startsWith(
            "The kernel has restarted")"""
    )
    assert pixels(page) == before  # what was seen stays
    drag(page, "query", 20, 20)
    run_cell(page, 0)
    run_cell(page, 1)
    page.wait_for_function(
        """() => document.querySelector(".hopping-status").textContent === "" &&
            document.querySelector(".hopping-view").dataset.painted"""
    )
    before = pixels(page)
    drag(page, "query", -40, -40)
    before = wait_for_change(page, before)

    page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    drag(page, "query", 20, 20)
    expect(page.locator(".hopping-status")).to_contain_text("Run this cell again")
    assert page.locator(".hopping-status").is_visible()
    assert page.locator(".hopping-words").inner_text()


def test_the_ends_of_everything(show):
    page = show(LANDSCAPE)
    for tokens, beta in product(("Y[:1]", "np.ones((3, 2))"), ("1e-6", "1e4")):
        landscape = f"explore.landscape(energy, {tokens}, xi, {beta}, lse_grad"
        set_cell(page, 1, f"{landscape}, beta_range=(1e-6, 1e4), heights=(-2, 2))")
        run_cell(page, 1)
        wait_until_painted(page)
        assert page.locator(".hopping-note").all_inner_texts() == ["", ""]
        before = pixels(page)
        drag(page, "y", -40, -60)
        wait_for_change(page, before)
        drag(page, "query", -3000, 3000)
        says(page, "The query at (−2.00, −2.00)")


def test_lesson_01_the_button_changes_no_weight(show):
    page = show(LESSON_01)
    scores, weights = pixels(page, 1), pixels(page, 2)
    button = page.get_by_role("button", name="+1000 to every score")
    button.focus()
    page.keyboard.press("Space")
    wait_for_change(page, scores, 1)
    says(page, "1000 added to every score")
    assert pixels(page, 2) == weights
    for name, key, said in (
        ("n", "End", "8 tokens"),
        ("β", "End", "β = 64"),
        ("β", "Home", "0.015"),
    ):
        page.locator(f'.noUi-handle[aria-label="{name}"]').focus()
        page.keyboard.press(key)
        says(page, said)
    assert page.locator(".hopping-note").all_inner_texts() == [""] * 5


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_axe_finds_no_serious_fault(show, theme):
    page = show(LANDSCAPE, LESSON_01, "explore.landscape(unwritten, Y)")
    change_theme(page, theme)
    try:
        at_rest(page)
        page.wait_for_timeout(600)  # the controls get their names
        assert faults_of_access(page) == []
        paper = page.locator(".hopping-panel").first
        assert paper.evaluate("(e) => getComputedStyle(e).backgroundColor") == "rgb(255, 255, 255)"
    finally:
        change_theme(page, "JupyterLab Light")


def test_every_width_and_zoom(show):
    page = show(LANDSCAPE)
    view = page.locator(".hopping-view")
    for width, zoom in ((1280, 1), (640, 2), (330, 1)):
        with resized(page, width, zoom):
            before = pixels(page)
            drag(page, "query", -30, -30)
            wait_for_change(page, before)
            assert view.evaluate("(e) => e.scrollWidth <= e.clientWidth + 1")
            for panel in page.locator(".hopping-panel").all():
                assert panel.bounding_box()["width"] <= view.bounding_box()["width"] + 1
            canvas = page.locator(".hopping-stage > canvas").first
            sharp = canvas.evaluate("(e) => e.width / e.getBoundingClientRect().width")
            assert abs(sharp - zoom) < 0.02


def test_a_narrow_axis_still_tells_its_scale(page, show):
    with resized(page, 330):
        show(LESSON_01)
        for title, labels in labels_of(page, page.locator(".hopping-view")):
            beside = [text for text, _, _, right, _ in labels if right < 60 and text[-1].isdigit()]
            assert len(beside) >= 2, f"{title}: {beside}"


def test_the_ring_around_a_point_does_not_cover_its_name(show):
    page = show(LANDSCAPE)
    handle(page, "y₁").focus()
    _, labels = labels_of(page, page.locator(".hopping-view"))[0]
    [[_, left, _, _, bottom]] = [label for label in labels if label[0] == "y₁"]
    ring = handle(page, "y₁").bounding_box()
    paper = page.locator(".hopping-stage > canvas").first.bounding_box()
    x = left + paper["x"] - (ring["x"] + ring["width"] / 2)
    y = bottom + paper["y"] - (ring["y"] + ring["height"] / 2)
    assert math.hypot(x, y) > ring["width"] / 2 + 3  # its outline


def test_the_classic_notebook_shows_it_too(own_page, classic):
    page = own_page
    open_notebook(page, classic, classic.write("classic.ipynb", WRITTEN, LANDSCAPE))
    run_all(page)
    wait_until_painted(page)
    before = pixels(page)
    drag(page, "query", -60, -30)
    wait_for_change(page, before)
    close_notebook(page)
