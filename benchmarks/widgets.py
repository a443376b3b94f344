"""How fast pictures follow the hand: hopping.explore against `interact` with a new figure.

Both show the same landscape of the same scalar `energy`, written as a learner would, in the same
JupyterLab and the same headless Chromium. Events are made inside the page, one a frame, so that
the test driver takes no time. A frame counts when the pixels of the picture differ from those of
the frame before; the time of a key press runs from the event to the first frame with new pixels.
A moved point follows the hand in every frame, before the kernel has answered; so the frames that
show an answer are counted, too. Run it on a machine that does nothing else: what is measured is
a round trip through four processes, each of which would wait its turn.

Run it as `python benchmarks/widgets.py`; it prints a table.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "browser"))
from front_end import Page, chromium, jupyter_server, open_notebook, run_all

WRITTEN = """
import numpy as np, time
import matplotlib.pyplot as plt
from ipywidgets import interact
from hopping import draw, explore

Y = np.array([[1, 0.5], [-0.5, 1.25], [0.25, -1]])
xi = np.array([0.75, -0.5])

def energy(xi, Y, beta):
    u = beta * (Y @ xi)
    m = u.max()
    return 0.5 * xi @ xi - (m + np.log(np.exp(u - m).sum())) / beta

def cccp_step(xi, Y, beta):
    u = beta * (Y @ xi)
    e = np.exp(u - u.max())
    return (e / e.sum()) @ Y

start = time.perf_counter()
for _ in range(2000):
    energy(xi, Y, 1.0)
print(f"{(time.perf_counter() - start) / 2000 * 1e6:.0f}")
"""
VIEW = "explore.landscape(energy, Y, xi, 4.0, cccp_step)"
# As many calls of energy a picture as the view makes at most while something moves.
INTERACT = """
def show(beta):
    figure, ax = plt.subplots(figsize=(4.6, 4.6))
    draw.draw_landscape(ax, lambda at: energy(at, Y, beta), side=29)
    draw.draw_tokens(ax, Y)
    landing = cccp_step(xi, Y, beta)
    draw.draw_hop(ax, xi, landing)
    draw.draw_landing(ax, landing)
    draw.draw_query(ax, xi)
    plt.show()

interact(show, beta=explore.log_slider("β", 0.25, 16, 4.0));
"""

# One function for everything: `act(k)` is done in frame k, for some seconds or some presses.
PAGE = """
const WATCH = {
    view: () => document.querySelector(".hopping-stage > canvas"),
    interact: () => document.querySelector(".widget-interact .jp-OutputArea img"),
};
const copy = document.createElement("canvas");
copy.width = copy.height = 96;
const small = copy.getContext("2d", { willReadFrequently: true });
let last = 0;
window.see = (which) => {
    const source = WATCH[which]();
    // An image that is not decoded yet, or is just being replaced, is no new picture.
    if (!source || (source.tagName === "IMG" && !source.complete)) return last;
    small.drawImage(source, 0, 0, 96, 96);
    const data = new Uint32Array(small.getImageData(0, 0, 96, 96).data.buffer);
    last = data.reduce((hash, pixel) => (Math.imul(hash, 31) + pixel) | 0, 7);
    return last;
};
const frame = () => new Promise(requestAnimationFrame);
const root = { view: ".hopping-view", interact: ".widget-interact" };
const slider = (which) => (which === "view"
    ? document.querySelector(root.view).closest(".widget-vbox")
    : document.querySelector(root.interact)).querySelector(".noUi-handle");
const key = (element, name) => element.dispatchEvent(
    new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));

// Drag the β slider to and fro and count the frames with new pixels.
window.dragSlider = async (which, seconds) => {
    const handle = slider(which);
    const track = handle.closest(".noUi-base").getBoundingClientRect();
    const mouse = (type, on, x) => on.dispatchEvent(new MouseEvent(type, {
        bubbles: true, buttons: 1, clientX: x, clientY: track.top + track.height / 2,
    }));
    const box = handle.getBoundingClientRect();
    mouse("mousedown", handle, box.left + box.width / 2);
    const at = (time) => track.left + track.width * (0.5 - 0.5 * Math.cos(time * 5));
    const count = await counting(
        which, seconds, (time) => mouse("mousemove", document.documentElement, at(time)));
    mouse("mouseup", document.documentElement, 0);
    return count;
};
// Move a point of the view in circles, as fast as frames come.
window.movePoint = async (place, seconds) => {
    const handle = document.querySelectorAll(".hopping-handle")[place];
    const keys = ["ArrowRight", "ArrowUp", "ArrowLeft", "ArrowDown"];
    const answers = () => Number(document.querySelector(root.view).dataset.answers);
    const before = answers();
    let k = 0;
    const count = await counting(
        "view", seconds, () => key(handle, keys[Math.floor(k++ / 25) % 4]));
    return { ...count, answers: (answers() - before) / seconds };
};
async function counting(which, seconds, act) {
    const start = performance.now();
    let [seen, frames, before] = [0, 0, window.see(which)];
    while (performance.now() - start < 1000 * seconds) {
        act((performance.now() - start) / 1000);
        await frame();
        frames += 1;
        const now = window.see(which);
        if (now !== before) seen += 1;
        before = now;
    }
    return { seen: seen / seconds, frames: frames / seconds };
}
// Time from a key press on the slider to new pixels, again and again.
window.pressSlider = async (which, presses) => {
    const handle = slider(which);
    handle.focus();
    const times = [];
    for (let k = 0; k < presses; k++) {
        await new Promise((done) => setTimeout(done, 1500));
        const before = window.see(which);
        const start = performance.now();
        key(handle, k % 2 ? "ArrowLeft" : "ArrowRight");
        while (window.see(which) === before && performance.now() - start < 10000) await frame();
        times.push(performance.now() - start);
    }
    return times.sort((a, b) => a - b)[Math.floor(presses / 2)];
};
"""


def measure(page: Page, seconds: float, presses: int) -> dict[str, float]:
    """Measure everything once, the two kinds of picture in turn."""
    result = {}
    for which in ("view", "interact"):
        page.locator({"view": ".hopping-view", "interact": ".widget-interact"}[which]).first.hover()
        result[f"{which} key"] = page.evaluate(
            "([which, presses]) => pressSlider(which, presses)", [which, presses]
        )
        drag = page.evaluate("([which, s]) => dragSlider(which, s)", [which, seconds])
        result[f"{which} β"] = drag["seen"]
        page.wait_for_timeout(2500)  # let what is still on its way arrive
    for name, place in (("token", 0), ("query", 3)):
        moved = page.evaluate("([place, s]) => movePoint(place, s)", [place, seconds])
        result[f"view {name}"] = moved["seen"]
        result[f"answers {name}"] = moved["answers"]
        page.wait_for_timeout(1500)
    return result


def main() -> None:
    """Start everything, measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0, help="of each drag")
    parser.add_argument("--presses", type=int, default=9, help="of a key")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as scratch,
        jupyter_server(Path(scratch) / "server") as server,
        chromium() as browser,
    ):
        page = browser.new_page(viewport={"width": 1280, "height": 1800})
        open_notebook(page, server, server.write("widgets.ipynb", WRITTEN, VIEW, INTERACT))
        run_all(page)
        page.wait_for_selector(".hopping-view[data-painted]")
        page.wait_for_selector(".widget-interact img")
        page.wait_for_timeout(3000)
        call = page.locator(".jp-OutputArea-output pre").first.inner_text().strip()
        page.add_script_tag(content=PAGE)
        found = measure(page, options.seconds, options.presses)
        version = browser.version
    load = os.getloadavg()[0]
    print(f"Chromium {version} headless, {os.cpu_count()} cores, load {load:.1f} at the end,")
    print(f"energy {call} µs a call, {options.seconds:g} s a drag, median of {options.presses}\n")
    print("| | hopping.explore | interact, new figure | ratio |")
    print("|---|---:|---:|---:|")
    ours, theirs = found["view β"], found["interact β"]
    print(f"| frames/s, dragging β | {ours:.1f} | {theirs:.1f} | {ours / theirs:.1f} |")
    for name, called in (("token", "a token"), ("query", "the query")):
        frames, answers = found[f"view {name}"], found[f"answers {name}"]
        print(f"| frames/s, moving {called} | {frames:.1f} | – | – |")
        print(f"| of these with a new answer of the kernel | {answers:.1f} | – | – |")
    ours, theirs = found["view key"], found["interact key"]
    print(f"| ms from key press to new pixels | {ours:.0f} | {theirs:.0f} | {theirs / ours:.1f} |")


if __name__ == "__main__":
    main()
