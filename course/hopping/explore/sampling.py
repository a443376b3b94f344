"""A learner's function on a grid that gets finer as time allows.

The function takes one point at a time and may be slow or wrong. While something is dragged a
coarse grid is all there is time for; at rest the grid is refined. Each grid holds every point of
the coarser one, so nothing is computed twice.
"""

import itertools
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from hopping import draw
from hopping.explore.scene import (
    Axis,
    Curve,
    Field,
    Grid,
    Mark,
    MarkMaker,
    Note,
    Panel,
    Scene,
    TroubleError,
    care,
    name_of,
    quiet,
)

COARSEST = 7  # steps from edge to edge of the first grid; doubled for each finer one
FINEST = {1: 225, 2: 113}  # points a side of the finest grid, by dimension
PATIENCE = 1.0  # seconds for the coarsest grid, after which the function is too slow to draw
_serials = itertools.count(1)


class Sampling:
    """Values of one function over the limits of a panel, refined by `advance`.

    Parameters
    ----------
    function : callable
        Called as function(xi, *arguments) with xi (2,) on two axes, or a float on one.
    arguments : sequence
        Handed over as copies, one set for each call of `advance`.
    axes : sequence of Axis
        One for a curve, two for a landscape; a logarithmic one is sampled evenly in the log.
    name : str
        What messages call the function.

    Attributes
    ----------
    values : ndarray or None
        The finest complete grid, (side,) or (side, side) with the lowest y first.
    trouble : str
        Why there are no values, in a sentence.
    finished : bool
        Nothing finer will come.
    """

    def __init__(
        self, function: Callable, arguments: Sequence, axes: Sequence[Axis], name: str
    ) -> None:
        self.serial = next(_serials)
        self.values: np.ndarray | None = None
        self.trouble = ""
        self.finished = False
        self._function, self._arguments, self._axes, self._name = function, arguments, axes, name
        self._spent, self._calls = 0.0, 0
        self._level = -1
        self._next_level()

    def _next_level(self) -> None:
        """Start the next finer grid, with the values of the last one in every second place."""
        self._level += 1
        side = COARSEST * 2**self._level + 1
        if side > FINEST[len(self._axes)]:
            self.finished = True
            return
        self._grid = np.full((side,) * len(self._axes), np.nan)
        known = np.zeros(self._grid.shape, dtype=bool)
        if self.values is not None:
            every_second = (slice(None, None, 2),) * len(self._axes)
            self._grid[every_second] = self.values
            known[every_second] = True
        self._places = np.argwhere(~known)
        self._done = 0
        ticks = [
            np.geomspace(axis.low, axis.high, side)
            if axis.log
            else np.linspace(axis.low, axis.high, side)
            for axis in self._axes
        ]
        # Rows of a grid go up the y axis, so its last index is x.
        self._points = np.stack(
            [ticks[k][self._places[:, -1 - k]] for k in range(len(ticks))], axis=1
        )

    def advance(self, seconds: float, *, whole: bool, sides: Mapping[int, int] = FINEST) -> None:
        """Go on for about so many seconds.

        Parameters
        ----------
        seconds : float
            When to stop. The coarsest grid is always completed, within `PATIENCE`.
        whole : bool
            Start a finer grid only when it can be expected to be completed in time.
        sides : mapping of int to int
            How many points a side are enough, by dimension.
        """
        enough = sides[len(self._axes)]
        stop = time.perf_counter() + seconds
        while not self.finished and (self.values is None or len(self.values) < enough):
            left = len(self._places) - self._done
            pace = self._spent / max(self._calls, 1)
            now = time.perf_counter()
            if self.values is not None and (now >= stop or (whole and now + left * pace > stop)):
                return
            try:
                self._run(stop if self.values is not None else now + PATIENCE)
            except TroubleError as trouble:
                self.trouble, self.finished, self.values = str(trouble), True, None
                return
            if self._done == len(self._places):
                self.values = self._grid
                self._next_level()
            elif self.values is None:
                seconds = self._spent / max(self._calls, 1)
                self.trouble = f"{self._name} takes {seconds:.2g} s a call: too slow to draw"
                self.finished = True
            else:
                return

    def _run(self, stop: float) -> None:
        """Call the function at the places left, until they are done or time is over."""
        function, grid, flat = self._function, self._grid, len(self._axes) == 1
        given = [a.copy() if isinstance(a, np.ndarray) else a for a in self._arguments]
        start, first = time.perf_counter(), self._done
        with quiet(), care(self._name):
            for place, point in zip(
                self._places[first:].tolist(), self._points[first:], strict=True
            ):
                value = function(float(point[0]) if flat else point.copy(), *given)
                grid[tuple(place)] = value if isinstance(value, float) else self._number(value)
                self._done += 1
                if time.perf_counter() > stop:
                    break
        self._spent += time.perf_counter() - start
        self._calls += self._done - first
        for now, before in zip(given, self._arguments, strict=True):
            if isinstance(before, np.ndarray) and not np.array_equal(now, before):
                raise TroubleError(f"{self._name} changed its argument: work on a copy")
        if self._done == len(self._places) and not np.isfinite(grid).any():
            raise TroubleError(f"{self._name} returned {'nan' if np.isnan(grid).any() else 'inf'}")

    def _number(self, value: object) -> float:
        if value is None:
            raise TroubleError(f"{self._name} returned nothing: is the return missing?")
        array = np.asarray(value)
        if array.shape != ():
            raise TroubleError(
                f"{self._name} returned shape {array.shape}, the picture needs one number"
            )
        if array.dtype.kind not in "fiub":
            raise TroubleError(f"{self._name} returned {type(value).__name__}, not a number")
        return float(array)


class Samplings:
    """The samplings of one picture, kept for as long as their function and arguments return."""

    def __init__(self, keep: int = 16) -> None:
        self._kept: OrderedDict[tuple, Sampling] = OrderedDict()
        self._keep = keep

    def of(self, mark: Field | Curve, panel: Panel) -> Sampling:
        """Return the sampling of a mark on a panel, a new one when anything about it is new."""
        axes = (panel.x, panel.y) if isinstance(mark, Field) else (panel.x,)
        key = (mark.function, *map(_identity, mark.arguments), *map(_limits, axes))
        if key not in self._kept:
            name = mark.name or name_of(mark.function)
            self._kept[key] = Sampling(mark.function, mark.arguments, axes, name)
            while len(self._kept) > self._keep:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]


def _identity(argument: object) -> object:
    if isinstance(argument, np.ndarray):
        return argument.shape, argument.dtype.str, argument.tobytes()
    return argument


def _limits(axis: Axis) -> tuple:
    return axis.low, axis.high, axis.log


def make_marks(scene: Scene) -> Scene:
    """Run the makers of a scene, for its marks and its words; trouble becomes a note."""
    panels = [replace(panel, marks=_made(panel.marks)) for panel in scene.panels]
    words = [scene.words] if isinstance(scene.words, str) else scene.words
    return Scene(panels, [text for sentence in words for text in _sentence(sentence)])


def resolve(
    scene: Scene,
    samplings: Samplings,
    seconds: float,
    *,
    whole: bool,
    sides: Mapping[int, int] = FINEST,
) -> tuple[Scene, bool]:
    """Sample the fields and curves of a scene, so that every mark is plain data.

    Parameters
    ----------
    scene : Scene
        From `make_marks`.
    samplings : Samplings
        What is known already; it is carried on.
    seconds : float
        Time for sampling, shared by whatever is not finished.
    whole : bool
        Whether to start only what can be completed in time; see `Sampling.advance`.
    sides : mapping of int to int
        How many points a side are enough, by dimension.

    Returns
    -------
    scene : Scene
        With no fields or curves left.
    finished : bool
        Nothing would be gained by more time.
    """
    sampled = {
        id(mark): samplings.of(mark, panel)
        for panel in scene.panels
        for mark in panel.marks
        if isinstance(mark, Field | Curve)
    }
    waiting = {one.serial: one for one in sampled.values() if not one.finished}.values()
    for one in waiting:
        one.advance(seconds / len(waiting), whole=whole, sides=sides)
    panels = [
        replace(
            panel,
            marks=[
                new
                for mark in panel.marks
                for new in (_grids(mark, sampled[id(mark)]) if id(mark) in sampled else [mark])
            ],
        )
        for panel in scene.panels
    ]
    finished = all(one.finished for one in sampled.values())
    return Scene(panels, _words(scene.words, panels)), finished


def _made(marks: Sequence[Mark | MarkMaker]) -> list[Mark]:
    """Run the makers among the marks; trouble becomes a note."""
    plain: list[Mark] = []
    for mark in marks:
        if not callable(mark):
            plain.append(mark)
            continue
        try:
            with care(name_of(mark)):
                made = mark()
                plain += [made] if isinstance(made, Mark) else list(made)
        except TroubleError as trouble:
            plain.append(Note(str(trouble)))
    return plain


def _grids(mark: Field | Curve, sampling: Sampling) -> list[Mark]:
    if sampling.values is None:
        return [Note(sampling.trouble)]
    if isinstance(mark, Field):
        grid = Grid(sampling.serial, sampling.values, signed=mark.signed)
    else:
        grid = Grid(sampling.serial, sampling.values, role=mark.role, label=mark.label)
    if np.isfinite(sampling.values).all():
        return [grid]
    name = mark.name or name_of(mark.function)
    return [grid, Note(f"{name} returned nan or inf at some of the points")]


def _sentence(sentence: str | Callable[[], str]) -> list[str]:
    with suppress(TroubleError), care("the description"):
        return [sentence() if callable(sentence) else sentence]
    return []


def _words(sentences: Sequence[str], panels: Sequence[Panel]) -> str:
    """Say what is shown, and what could not be."""
    notes = [mark.text for panel in panels for mark in panel.marks if isinstance(mark, Note)]
    told = [note[0].upper() + note[1:] + "." for note in dict.fromkeys(notes)]
    text = " ".join(sentence for sentence in [*sentences, *told] if sentence)
    return re.sub(r"(?<![\w)-])-(?=\d)", draw.MINUS, text)  # not in 7.6e-12
