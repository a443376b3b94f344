"""What a picture shows, as plain data, and how a learner's functions are asked for it.

A picture is a pure function from its state (values of the controls, places of the movable
points) to a `Scene`. The same scene is painted in the browser by view.js and on Matplotlib axes
by `hopping.explore.twin`; neither computes anything.

Marks that need a learner's function may be given as a function that makes them. It is called
with care: what goes wrong in it becomes a `Note` in the picture, and the rest is still drawn.
"""

import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO

import numpy as np


class TroubleError(Exception):
    """A learner's function could not be used; the message is what the picture says instead."""


@dataclass(frozen=True)
class Axis:
    """One direction of a panel: its label and its fixed limits.

    `names` are written at 0, 1, 2, … in place of numbers, for bars.
    """

    label: str
    low: float
    high: float
    log: bool = False
    names: Sequence[str] = ()


@dataclass(frozen=True)
class Field:
    """A landscape: `function(xi, *arguments)` over the plane, sampled by the view.

    On a panel with a z axis it is drawn as a surface. Values are kept for as long as function
    and arguments stay the same, so hand over a function that lives outside the scene function.
    """

    function: Callable
    arguments: Sequence = ()
    signed: bool = False
    name: str = ""


@dataclass(frozen=True)
class Curve:
    """A curve: `function(x, *arguments)` of one number over the x axis, sampled by the view."""

    function: Callable
    arguments: Sequence = ()
    role: str = "landing"
    label: str = ""
    name: str = ""


@dataclass(frozen=True)
class Points:
    """Points (n, 2), or (n, 3) on a surface. `handle` names the state they move when dragged.

    Where two marks may meet, `wide` makes the lower one large enough to be seen around the upper.
    """

    at: np.ndarray
    role: str = "token"
    label: str = ""
    names: Sequence[str] = ()
    hollow: Sequence[bool] = ()
    handle: str = ""
    wide: bool = False


@dataclass(frozen=True)
class Path:
    """A line through points (n, 2) or (n, 3)."""

    at: np.ndarray
    role: str = "landing"
    label: str = ""
    arrow: bool = False
    closed: bool = False
    dots: bool = False


@dataclass(frozen=True)
class Bars:
    """One bar a number, at 0, 1, 2, …; `slot` (i, k) is the i-th of k bars side by side."""

    heights: Sequence[float]
    role: str = "token"
    label: str = ""
    base: float = 0.0
    slot: tuple[int, int] = (0, 1)


@dataclass(frozen=True)
class Band:
    """What lies between two curves over the same x."""

    x: np.ndarray
    low: np.ndarray
    high: np.ndarray
    role: str = "ink"
    label: str = ""


@dataclass(frozen=True)
class Note:
    """A message in the picture's place."""

    text: str


@dataclass(frozen=True)
class Grid:
    """A sampled `Field` or `Curve`: values at even steps from edge to edge of the panel.

    `serial` tells one sampling from another, so that values are sent only when they changed.
    """

    serial: int
    values: np.ndarray
    signed: bool = False
    role: str = ""
    label: str = ""


Mark = Field | Curve | Points | Path | Bars | Band | Note | Grid
MarkMaker = Callable[[], Mark | Sequence[Mark]]


@dataclass(frozen=True)
class Panel:
    """One set of axes. `equal` gives both directions the same scale; `z` makes it a surface."""

    title: str
    x: Axis
    y: Axis
    marks: Sequence[Mark | MarkMaker] = ()
    z: Axis | None = None
    equal: bool = False


@dataclass(frozen=True)
class Scene:
    """Panels side by side, and the sentences that say what they show.

    A sentence may be a function that makes it, asked with the same care as the marks: when it
    fails it is left out, and the note of the mark that failed likewise says why.
    """

    panels: Sequence[Panel]
    words: str | Sequence[str | Callable[[], str]] = ""


# ---------------------------------------------------------------- asking a learner's function


class _Switch:
    """Stands in for a stream: drops what silenced threads write, hands on everything else.

    JupyterLab lets pictures move in a thread of their own while a cell runs in another, whose
    prints must not be lost; so neither `redirect_stdout` nor `catch_warnings` would do.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        return len(text) if threading.get_ident() in _silenced else self.stream.write(text)

    def __getattr__(self, name: str) -> object:
        return getattr(self.stream, name)


_silenced: Counter[int] = Counter()  # threads, and how many `quiet` blocks they are in
_switching = threading.Lock()


@contextmanager
def quiet() -> Iterator[None]:
    """Swallow what this thread prints or warns, thirty times a second, in a learner's function."""
    me = threading.get_ident()
    with _switching:
        if not _silenced:
            sys.stdout, sys.stderr = _Switch(sys.stdout), _Switch(sys.stderr)
        _silenced[me] += 1
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        with _switching:
            _silenced[me] -= 1
            if not _silenced[me]:
                del _silenced[me]
            if not _silenced:
                sys.stdout, sys.stderr = (
                    stream.stream if isinstance(stream, _Switch) else stream
                    for stream in (sys.stdout, sys.stderr)
                )


@contextmanager
def care(name: str) -> Iterator[None]:
    """Turn whatever a function raises into a `TroubleError` that says so in one sentence.

    An interrupted kernel counts too: a picture whose function never ends can be stopped, and
    its controls stay alive.
    """
    try:
        yield
    except TroubleError:
        raise
    except NotImplementedError as error:
        # The stub that raised may lie deeper than the function that was asked.
        frames = traceback.extract_tb(error.__traceback__)
        stub = frames[-1].name if frames and frames[-1].name.isidentifier() else name
        raise TroubleError(f"not written yet: {stub}") from None
    except KeyboardInterrupt:
        raise TroubleError(f"{name} was interrupted") from None
    except (Exception, SystemExit) as error:
        reason = " ".join(str(error).split())
        reason = reason if len(reason) <= 160 else reason[:159] + "…"
        raise TroubleError(f"{name} raised {type(error).__name__}: {reason}".rstrip(": ")) from None


def name_of(function: Callable) -> str:
    """Return what a learner calls a function."""
    return getattr(function, "__name__", type(function).__name__)


def ask(function: Callable, *arguments: object, shape: tuple | None = ()) -> object:
    """Call a learner's function with copies and hand back what it promised, or say what is wrong.

    Parameters
    ----------
    function : callable
        The learner's function.
    *arguments
        Handed over; arrays as copies.
    shape : tuple or None
        The promised shape: () is one number, None is anything (returned as it is).

    Returns
    -------
    float, ndarray of float, or whatever the function returned when `shape` is None

    Raises
    ------
    TroubleError
        It raised, is not written yet, or returned another shape or values that are not finite.
    """
    name = name_of(function)
    copies = [item.copy() if isinstance(item, np.ndarray) else item for item in arguments]
    with quiet(), care(name):
        value = function(*copies)
        return value if shape is None else _promised(value, shape, name)


def _promised(value: object, shape: tuple, name: str) -> float | np.ndarray:
    if value is None:
        raise TroubleError(f"{name} returned nothing: is the return missing?")
    try:
        array = np.asarray(value)
        numeric = array.dtype.kind in "fiub"
    except ValueError:
        numeric = False
    if not numeric:
        raise TroubleError(f"{name} returned {type(value).__name__}, not numbers")
    if array.shape != shape:
        wanted = "one number" if shape == () else f"shape {shape}"
        raise TroubleError(f"{name} returned shape {array.shape}, the picture needs {wanted}")
    if not np.isfinite(array).all():
        raise TroubleError(f"{name} returned {'nan' if np.isnan(array).any() else 'inf'}")
    return float(array) if shape == () else array.astype(float)
