"""How to look at the pictures of an open notebook, move their points, and wait for them."""

import os
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

expect.set_options(timeout=30_000)


def wait_until_painted(page):
    page.evaluate("() => { window.seen = undefined; }")  # an earlier notebook's
    page.wait_for_function(
        """() => {
            const views = [...document.querySelectorAll(".hopping-view")];
            return views.length > 0 && views.every((view) => view.dataset.painted);
        }"""
    )
    at_rest(page)


def at_rest(page):
    """Wait until the picture has not been painted anew for half a second."""
    page.wait_for_function(
        """() => {
            const now = [...document.querySelectorAll(".hopping-view")]
                .map((view) => view.dataset.painted).join();
            if (window.seen !== now) {
                window.seen = now;
                window.since = performance.now();
            }
            return performance.now() - window.since > 500;
        }""",
        polling=50,
    )


CANVAS = """
    ([view, panel]) => document.querySelectorAll(".hopping-view")[view]
        .querySelectorAll(".hopping-stage > canvas")[panel].toDataURL()
"""


def pixels(page, panel=0, view=0):
    at_rest(page)
    return page.evaluate(CANVAS, [view, panel])


def wait_for_change(page, before, panel=0, view=0):
    """Wait until the pixels of a panel are others, and return them when it rests."""
    page.wait_for_function(
        f"([view, panel, before]) => ({CANVAS})([view, panel]) !== before",
        arg=[view, panel, before],
        timeout=30_000,
    )
    return pixels(page, panel, view)


PICTURES = """
    (view) => [...view.querySelectorAll(".hopping-stage > canvas")].map((canvas) => {
        const text = canvas.toDataURL();
        let sum = 0;
        for (let k = 0; k < text.length; k++) sum = (31 * sum + text.charCodeAt(k)) | 0;
        return sum;
    }).join()
"""


def pictures(view):
    """Return what the pixels of all panels of a view, given as a locator, add up to."""
    at_rest(view.page)
    return view.evaluate(PICTURES)


def wait_for_other_pictures(view, before):
    """Wait until a panel of a view shows other pixels than it did."""
    view.page.wait_for_function(
        f"([view, before]) => ({PICTURES})(view) !== before",
        arg=[view.element_handle(), before],
        polling=50,
        timeout=30_000,
    )


def says(page, text, view=0):
    """Wait until the words of a view hold a text."""
    expect(page.locator(".hopping-words").nth(view)).to_contain_text(text)


def is_at(page, name, text):
    """Wait until a movable point tells its place so."""
    expect(handle(page, name)).to_have_attribute("aria-valuetext", text)


def handle(page, name):
    return page.locator(f'.hopping-handle[aria-label^="{name}"]').first


def drag(page, name, dx, dy, steps=8):
    target = handle(page, name)
    target.scroll_into_view_if_needed()
    box = target.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + dx, y + dy, steps=steps)
    page.mouse.up()


def faults_of_access(page):
    found = Axe().run(page, context=".jp-OutputArea").response["violations"]
    return [
        (fault["id"], [node["html"][:120] for node in fault["nodes"]])
        for fault in found
        if fault["impact"] in ("serious", "critical")
    ]


def keep_screenshot(shown, name):
    """Keep a picture of a page or a part of it, to be looked at, where $SCREENSHOTS says."""
    folder = os.environ.get("SCREENSHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        shown.screenshot(path=Path(folder) / f"{name}.png")
