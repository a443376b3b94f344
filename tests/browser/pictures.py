"""How to look at the pictures of an open notebook, move their points, and wait for them."""

import os
import re
from itertools import combinations
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
    """Wait until, for half a second, nothing was painted anew and the kernel was not busy."""
    page.wait_for_function(
        """() => {
            const { session } = window.jupyterapp.shell.currentWidget.sessionContext;
            const now = [...document.querySelectorAll(".hopping-view")]
                .map((view) => view.dataset.painted).join();
            if (window.seen !== now || session?.kernel?.status === "busy") {
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


LISTEN_TO_LABELS = """
    () => {
        const canvas = CanvasRenderingContext2D.prototype;
        const { fillRect, fillText } = canvas;
        if (fillText.listens) return;
        canvas.fillRect = function (x, y, width, height) {
            if (width === this.canvas.width && height === this.canvas.height) {
                this.canvas.labels = [];  // painted anew
            }
            fillRect.call(this, x, y, width, height);
        };
        canvas.fillText = function (text, x, y) {
            fillText.call(this, text, x, y);
            const size = this.measureText(text);
            const { a, b, c, d, e, f } = this.getTransform();
            if (Math.abs(a * b) > 1e-9) return;  // slanted: along a contour
            const [left, right] = [x - size.actualBoundingBoxLeft, x + size.actualBoundingBoxRight];
            const top = y - size.actualBoundingBoxAscent;
            const bottom = y + size.actualBoundingBoxDescent;
            const [x1, x2] = [a * left + c * top + e, a * right + c * bottom + e];
            const [y1, y2] = [b * left + d * top + f, b * right + d * bottom + f];
            const box = [Math.min(x1, x2), Math.min(y1, y2), Math.max(x1, x2), Math.max(y1, y2)];
            this.canvas.labels?.push([text, ...box.map((at) => at / devicePixelRatio)]);
        };
        canvas.fillText.listens = true;
    }
"""
LABELS = """
    (view) => [...view.querySelectorAll(".hopping-panel")].map((panel) => [
        panel.querySelector("figcaption").textContent,
        panel.querySelector(".hopping-stage > canvas").labels,
    ])
"""


def labels_of(page, view):
    """Paint anew; return the title of each panel of a view, and its texts with left, top, …"""
    page.evaluate(LISTEN_TO_LABELS)
    painted = int(view.get_attribute("data-painted"))
    page.evaluate("() => { window.dispatchEvent(new Event('resize')); }")
    page.wait_for_function(
        "([view, painted]) => Number(view.dataset.painted) > painted",
        arg=[view.element_handle(), painted],
    )
    return view.evaluate(LABELS)


def faults_of_labels(page, view):
    """Return which labels on the panels of a view are cut off or lie on each other."""
    found = []
    stages = view.locator(".hopping-stage").all()
    for (title, labels), stage in zip(labels_of(page, view), stages, strict=True):
        width, height = (stage.bounding_box()[side] for side in ("width", "height"))
        for text, left, top, right, bottom in labels:
            if left < -0.5 or top < -0.5 or right > width + 0.5 or bottom > height + 0.5:
                found.append(f"{title}: {text} is cut off")
            if re.fullmatch(r"[−\d./]{8,}", text):
                found.append(f"{title}: {text} is no number to be read at a glance")
        for (one, *a), (two, *b) in combinations(labels, 2):
            across, down = (min(a[k + 2], b[k + 2]) - max(a[k], b[k]) for k in (0, 1))
            if across > 1 and down > 1:
                found.append(f"{title}: {one} and {two} overlap by {across:.0f} × {down:.0f}")
    return found


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
