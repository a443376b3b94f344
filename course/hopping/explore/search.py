"""Find the valleys below given places, and the β at which their number changes."""

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

import numpy as np

from hopping.explore.scene import Axis, TroubleError, name_of

STEPS = 300  # of one search; near a split they are short
# Lengths, against the size of the landscape.
STRIDE = 0.1  # the longest step
FLAT = 1e-10  # a gradient that counts as none
LEVEL = 1e-6  # a curvature that counts as none
COUNTED = 17  # values of β at which valleys are counted before the changes are looked for
PATIENCE = 5.0  # seconds for all counts

Slopes = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
Stairs = list[tuple[float, int]]


def valley_below(slopes: Slopes, x: np.ndarray, size: float) -> np.ndarray | None:
    """Walk down to the valley below a place, by steps of Newton's kind or else of −gradient.

    Parameters
    ----------
    slopes : callable
        Takes a place (d,), returns the gradient (d,) and the Hessian (d, d) there.
    x : array, (d,)
        Where the walk starts.
    size : float
        The size of the landscape, which all lengths are compared with.

    Returns
    -------
    ndarray, (d,), or None
        The valley; None where the walk ends on a saddle, or does not end.
    """
    gradient, hessian = slopes(x)
    for _ in range(STEPS):
        length = np.linalg.norm(gradient)
        curvatures, ways = np.linalg.eigh(hessian)
        if length <= FLAT * size:
            return x if _curves_up(slopes, x, curvatures, ways, size) else None
        # Newton's step, downhill also where the energy curves down.
        step = -ways @ (ways.T @ gradient / np.maximum(np.abs(curvatures), 1e-12))
        step *= min(1.0, STRIDE * size / np.linalg.norm(step))
        there = slopes(x + step)
        if there[0] @ step > 0 and np.linalg.norm(there[0]) > length / 2:
            step = -gradient  # it went past a valley; this one is a hop, and never climbs
            there = slopes(x + step)
        x, (gradient, hessian) = x + step, there
    return None


def valleys_from(slopes: Slopes, starts: Iterable[np.ndarray], size: float) -> Iterator[np.ndarray]:
    """Yield the valleys that walks down from several places end in; see `valley_below`."""
    for start in starts:
        end = valley_below(slopes, np.array(start), size)
        if end is not None:
            yield end


def apart(places: Iterable[np.ndarray], near: float) -> list[np.ndarray]:
    """Return the places without those that lie nearer than `near` to an earlier one."""
    kept: list[np.ndarray] = []
    for place in places:
        if all(np.abs(place - other).max() > near for other in kept):
            kept.append(place)
    return kept


def _curves_up(
    slopes: Slopes, x: np.ndarray, curvatures: np.ndarray, ways: np.ndarray, size: float
) -> bool:
    """Say whether a flat point is a valley; without curvature, whether the ground rises around."""
    if abs(curvatures[0]) > LEVEL:
        return curvatures[0] > 0
    aside = [sign * STRIDE * size * way for way in ways.T for sign in (1, -1)]
    return all(slopes(x + step)[0] @ step > 0 for step in aside)


def staircase(count: Callable[[float], int], betas: Axis, name: str, sharp: float) -> Stairs:
    """Count valleys over β, and find where the count changes by halving.

    Parameters
    ----------
    count : callable
        Takes β, returns the number of valleys.
    betas : Axis
        From where to where; a logarithmic one is looked through evenly in the log.
    name : str
        Which of the learner's functions it asks, for the message when that is slow.
    sharp : float
        How exactly a change is found, against β.

    Returns
    -------
    list of (float, int)
        Where a count begins, and the count.

    Raises
    ------
    TroubleError
        Counting takes too long.
    """
    start = time.perf_counter()

    def patient(beta: float) -> int:
        if time.perf_counter() > start + PATIENCE:
            raise TroubleError(f"{name} is too slow to count valleys at every β")
        return count(beta)

    spread = np.geomspace if betas.log else np.linspace
    at = spread(betas.low, betas.high, COUNTED).tolist()
    counts = [patient(beta) for beta in at]
    steps = [(at[0], counts[0])]
    for (low, before), (high, after) in itertools.pairwise(zip(at, counts, strict=True)):
        while before != after:
            # Several changes may lie between: each pass finds the lowest one that halving meets.
            left, right, there = low, high, after
            while right > (1 + sharp) * left:
                middle = (left + right) / 2
                now = patient(middle)
                left, right, there = (
                    (middle, right, there) if now == before else (left, middle, now)
                )
            steps.append(((left + right) / 2, there))
            low, before = right, there
    return steps


def remembered_stairs(
    find: Callable, function: Callable, betas: Axis, sharp: float
) -> Callable[[np.ndarray], Stairs]:
    """Return a function of the tokens that counts valleys over β, and not twice for the same.

    Parameters
    ----------
    find : callable
        find(function, Y, beta) -> array (k, d), the valleys.
    function : callable
        The learner's, which the search asks.
    betas, sharp
        As for `staircase`.
    """

    @lru_cache(maxsize=8)
    def of(flat: tuple[float, ...], d: int) -> Stairs:
        Y = np.reshape(flat, (-1, d))
        name = name_of(function)
        return staircase(lambda beta: len(find(function, Y, beta)), betas, name, sharp)

    return lambda Y: of(tuple(Y.flat), Y.shape[1])
