"""The view: controls, a pure scene function, and a canvas that paints what it returns.

The browser sends where a point is dragged to, always the newest place and never a queue; the
kernel asks the learner's functions and answers with the newest scene, its grids as binary float32.
While something moves the grids are coarse; at rest they are refined, a slice of time at a time, so
that the next message never waits long.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path as FilePath

import anywidget
import ipywidgets
import numpy as np
import traitlets
from matplotlib.figure import Figure

from hopping import draw
from hopping.explore.sampling import FINEST, Samplings, make_marks, resolve
from hopping.explore.scene import Axis, Grid, Mark, Note, Panel, Points, Scene, TroubleError, care
from hopping.explore.twin import draw_scene

MOVING = 0.012  # seconds of sampling for a picture that moves
SLICE = 0.015  # seconds of refinement at a time, after which messages are looked at
REST = 0.12  # seconds without a change before refinement begins
REFINING = 0.8  # seconds of refinement altogether
STILL = 5.0  # seconds of sampling for the static picture at most
SIDES = {1: 113, 2: 57}  # its points a side, by dimension

State = dict[str, object]


class View(anywidget.AnyWidget):
    """The canvas: it paints `scene` and reports where points are moved to."""

    _esm = FilePath(__file__).with_name("view.js")
    _css = FilePath(__file__).with_name("view.css")
    scene = traitlets.Dict().tag(sync=True)
    grids = traitlets.Dict().tag(sync=True)
    look = traitlets.Dict().tag(sync=True)
    answer = traitlets.Dict().tag(sync=True)


class Picture(ipywidgets.VBox):
    """An interactive picture: native controls above a view.

    Parameters
    ----------
    scene : callable
        A pure function from the state to a `Scene`. The state is a dict of the values of all
        controls and the places of all points, by name.
    points : mapping of str to array, (d,) or (n, d)
        Places that can be dragged, or moved from the keyboard, where a `Points` mark names them
        as its handle.
    controls : mapping of str to widget
        Any ipywidgets with a value.

    Attributes
    ----------
    view : View
        The canvas.
    controls : dict
        As given, to be set from code too: `picture.controls["beta"].value = 4`.
    """

    def __init__(
        self,
        scene: Callable[[State], Scene],
        *,
        points: Mapping[str, np.ndarray] | None = None,
        controls: Mapping[str, ipywidgets.Widget] | None = None,
    ) -> None:
        self._make = scene
        self._points = {name: np.array(at, dtype=float) for name, at in (points or {}).items()}
        self.controls = dict(controls or {})
        # Messages arrive in a thread of their own when JupyterLab and the kernel can do that.
        self._lock = threading.RLock()
        self._samplings = Samplings()
        self._scene = self._resolved = Scene([])
        self._refined = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.view = View(look=_look())
        row = ipywidgets.Box(
            list(self.controls.values()),
            layout=ipywidgets.Layout(flex_flow="row wrap", display="flex"),
        )
        super().__init__([row, self.view] if self.controls else [self.view])
        for control in self.controls.values():
            control.observe(lambda _change: self._show(), "value")
        self.view.on_msg(self._moved)
        self._show()

    @property
    def state(self) -> State:
        """Values of the controls and copies of the places, by name."""
        with self._lock:
            places = {name: at.copy() for name, at in self._points.items()}
        return places | {name: control.value for name, control in self.controls.items()}

    @property
    def words(self) -> str:
        """What the picture shows now, in a sentence or two."""
        return self._resolved.words

    def move(self, **points: np.ndarray) -> None:
        """Put points elsewhere, as dragging them would: `picture.move(query=[0, 1])`."""
        with self._lock:
            for name, at in points.items():
                self._points[name] = np.array(at, dtype=float).reshape(self._points[name].shape)
            self._show()

    def figure(self) -> Figure:
        """Draw what the picture shows now with Matplotlib.

        The grids have the same size whatever the time of day, so that a lesson built twice shows
        the same picture.
        """
        with self._lock:
            self._sample(STILL, whole=False, sides=SIDES)
            self._send()
            return draw_scene(_thinned(self._resolved))

    def _repr_mimebundle_(self, **options: object) -> tuple[dict, dict]:
        live = super()._repr_mimebundle_(**options) or {}
        still, metadata = draw.picture_bundle(self.figure(), self.words)
        return live | still, metadata

    def _moved(self, _view: View, message: dict, _buffers: list) -> None:
        """Answer the message of a view that a point was moved."""
        answer = {"view": message["view"], "done": message["number"], "spent": 0.0}
        start = time.perf_counter()
        try:
            place = self._points[message["name"]]
            target = place if message["index"] is None else place[message["index"]]
            target[:] = np.asarray(message["at"], dtype=float)[: len(target)]
            with self._lock, self.view.hold_sync():  # scene and answer are one message
                self._show()
                answer["spent"] = 1000 * (time.perf_counter() - start)
                self.view.answer = answer
        finally:  # whatever happened: the view waits for this before it sends again
            self.view.answer = answer

    def _show(self) -> None:
        """Compute the scene of the newest state, send it, and refine it when nothing follows."""
        with self._lock:
            if self._timer:
                self._timer.cancel()
            self._compute()
            finished = self._sample(MOVING, whole=True)
            self._send()
            self._refined = 0.0
            self._timer = None if finished else _later(REST, self._refine)

    def _refine(self) -> None:
        with self._lock:
            before = self._resolved
            finished = self._sample(SLICE, whole=False)
            self._refined += SLICE
            if _sizes(before) != _sizes(self._resolved):
                self._send()
            more = not finished and self._refined < REFINING
            self._timer = _later(0.0, self._refine) if more else None

    def _compute(self) -> None:
        """Ask the learner's functions for everything but the grids."""
        try:
            with care("the picture"):
                scene = self._make(self.state)
        except TroubleError as trouble:
            empty = Axis("", 0.0, 1.0)
            scene = Scene([Panel("", empty, empty, [Note(str(trouble))])])
        self._scene = make_marks(scene)

    def _sample(self, seconds: float, *, whole: bool, sides: Mapping[int, int] = FINEST) -> bool:
        """Go on with the grids, and return whether nothing finer will come."""
        self._resolved, finished = resolve(
            self._scene, self._samplings, seconds, whole=whole, sides=sides
        )
        return finished

    def _send(self) -> None:
        """Hand the scene to the view; what did not change is not sent again."""
        with self.view.hold_sync():
            self.view.grids = {str(g.serial): _grid_data(g) for g in _grids(self._resolved)}
            self.view.scene = {
                "panels": [self._panel_data(panel) for panel in self._resolved.panels],
                "words": self._resolved.words,
            }

    def _panel_data(self, panel: Panel) -> dict:
        axes = {
            name: axis and vars(axis) | {"names": list(axis.names)}
            for name, axis in (("x", panel.x), ("y", panel.y), ("z", panel.z))
        }
        marks = [self._mark_data(mark) for mark in panel.marks]
        return axes | {"title": panel.title, "equal": panel.equal, "marks": marks}

    def _mark_data(self, mark: Mark) -> dict:
        data = {"kind": type(mark).__name__.lower()}
        if isinstance(mark, Grid):
            return data | {"serial": str(mark.serial), "role": mark.role, "label": mark.label}
        data |= {field.name: _plain(getattr(mark, field.name)) for field in fields(mark)}
        if isinstance(mark, Points):
            data["at"] = _plain(np.atleast_2d(mark.at))
            if mark.handle:
                place = self._points[mark.handle]
                data |= {"single": place.ndim == 1, "free": place.shape[-1]}
        return data


def _plain(value: object) -> object:
    """Turn arrays into lists that JSON can hold: values that are not finite become None."""
    if isinstance(value, str | bool):
        return value
    array = np.asarray(value)
    if array.dtype.kind not in "fiu":
        return array.tolist()
    finite = np.isfinite(array)
    return array.tolist() if finite.all() else np.where(finite, array, None).tolist()


def _grid_data(grid: Grid) -> dict:
    """Describe a grid for the view: binary values, the colours' range and the contours.

    Values, levels and range are counted from `base`, the lowest value (0 for signed quantities):
    a landscape far from 0, as at small β, would lose its shape in single precision.
    """
    low, high = draw.value_range(grid.values, grid.signed)
    base = 0.0 if grid.signed else low
    levels = draw.contour_levels(grid.values, grid.signed) if grid.values.ndim == 2 else []
    return {
        "side": len(grid.values),
        "values": np.clip(grid.values - base, -1e30, 1e30).astype("<f4").tobytes(),
        "base": base,
        "low": low - base,
        "high": high - base,
        "signed": grid.signed,
        "levels": [level - base for level in levels],
        "texts": [draw.level_text(level) for level in levels],
    }


def _look() -> dict:
    """Return the colours and markers of hopping.draw for the view, so that both look alike."""
    return {
        "roles": {name: vars(role) for name, role in draw.ROLES.items()},
        "sequential": draw.landscape_colors().tobytes(),
        "signed": draw.landscape_colors(signed=True).tobytes(),
        "ink": draw.INK,
        "paper": draw.PAPER,
        "wide": draw.WIDE,
    }


def _grids(scene: Scene) -> list[Grid]:
    return [mark for panel in scene.panels for mark in panel.marks if isinstance(mark, Grid)]


def _sizes(scene: Scene) -> list[int]:
    """Return the sizes of the grids: they change when a finer one is ready."""
    return [grid.values.size for grid in _grids(scene)]


def _thinned(scene: Scene) -> Scene:
    """Take every second point of grids that are finer than a static picture needs."""

    def thin(mark: Mark) -> Mark:
        if not isinstance(mark, Grid):
            return mark
        step = max(1, (len(mark.values) - 1) // (SIDES[mark.values.ndim] - 1))
        return replace(mark, values=mark.values[(slice(None, None, step),) * mark.values.ndim])

    panels = [replace(panel, marks=[thin(mark) for mark in panel.marks]) for panel in scene.panels]
    return Scene(panels, scene.words)


def _later(seconds: float, call: Callable[[], None]) -> asyncio.TimerHandle | None:
    """Call soon, in the kernel's own loop; without a loop (a script) there is nothing to do."""
    try:
        return asyncio.get_running_loop().call_later(seconds, call)
    except RuntimeError:
        return None


def slider(
    label: str, low: float, high: float, value: float, step: float = 0.01
) -> ipywidgets.FloatSlider:
    """Return a labelled slider of a real number."""
    return ipywidgets.FloatSlider(value, min=low, max=high, step=step, description=label)


def count_slider(label: str, low: int, high: int, value: int) -> ipywidgets.IntSlider:
    """Return a labelled slider of a whole number."""
    return ipywidgets.IntSlider(value, min=low, max=high, description=label)


def log_slider(label: str, low: float, high: float, value: float) -> ipywidgets.FloatLogSlider:
    """Return a labelled slider of a positive number, by powers of two in eighths.

    Parameters
    ----------
    label : str
        What the learner reads.
    low, high : float
        Its ends.
    value : float
        Where it starts.
    """
    return ipywidgets.FloatLogSlider(
        value,
        base=2,
        min=float(np.log2(low)),
        max=float(np.log2(high)),
        step=0.125,
        description=label,
        readout_format=".4r",
    )
