"""The picture of lesson 06: the shape of a quadratic energy, and where repeated hops lead."""

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np

from hopping.draw import numbered, short
from hopping.explore.pictures import BETA, EIGHT_TOKENS, QUERY, counted, place, walk_of
from hopping.explore.scene import (
    Axis,
    Bars,
    Curve,
    Field,
    Mark,
    Panel,
    Path,
    Points,
    Scene,
    TroubleError,
    ask,
    name_of,
)
from hopping.explore.view import Picture, State, count_slider, log_slider

HOPS = 10
SHAPES = ("bowl", "trough", "saddle", "dome")
BOTH = ("lower", "higher")
# Both axes are logarithmic and written by hand: one reaches over 22 powers of ten, the other
# has both signs. A name stands at 0, 1, 2, …; they leave no room for a label, the title is one.
DISTANCE = Axis("", -0.2, 5.2, names=("10⁻¹²", "10⁻⁸", "10⁻⁴", "1", "10⁴", "10⁸"))
ENERGY = Axis(
    "", -0.3, 8.5,
    names=("−10¹⁸", "−10¹⁵", "−10¹²", "−10⁹", "−10⁶", "−1000", "−1", "0", "1"),
)  # fmt: skip


def shape_and_orbit(
    linear_energy: Callable,
    linear_step: Callable,
    curvatures: Callable,
    critical_beta: Callable,
    classify: Callable,
    *,
    tokens: np.ndarray = EIGHT_TOKENS[:4],
    query: np.ndarray = QUERY,
) -> Picture:
    """Show the linear kernel's energy, its curvatures, and the orbit of a query hop after hop.

    Parameters
    ----------
    linear_energy, linear_step : callable
        The learner's, of (xi, Y, beta).
    curvatures, classify : callable
        The learner's, of (Y, beta).
    critical_beta : callable
        The learner's, of (Y).
    tokens : array, (n, 2)
        The tokens the slider of n chooses from, first ones first.
    query : array, (2,)
        Where the query starts.

    Returns
    -------
    Picture
        Its controls are "beta" and "n"; the query can be moved.
    """
    tokens = np.array(tokens, dtype=float)
    plane = Axis("ξ₁", -2.0, 2.0), Axis("ξ₂", -2.0, 2.0)
    betas = Axis(BETA, 0.0, 2.125)
    curvature = Axis("curvature", -5.75, 1.5)
    count = Axis("hops", -0.3, HOPS + 0.3)

    def scene(state: State) -> Scene:
        Y, xi, beta = tokens[: state["n"]], state["query"], state["beta"]

        @cache
        def orbit() -> np.ndarray:
            return walk_of(lambda at: ask(linear_step, at, Y, beta, shape=(2,)), xi, HOPS)

        @cache
        def heights() -> np.ndarray:
            return np.array([ask(linear_energy, at, Y, beta) for at in orbit()])

        @cache
        def bends() -> np.ndarray:
            return ask(curvatures, Y, beta, shape=(2,))

        @cache
        def shape() -> str:
            found = ask(classify, Y, beta, shape=None)
            if not (isinstance(found, str) and found in SHAPES):
                raise TroubleError(f"{name_of(classify)} returned {found!r}, which is no shape")
            return str(found)

        def hops_above() -> Iterator[Mark]:
            yield Path(orbit(), "landing", "hops", dots=True)
            yield Points(orbit()[1], "landing", "first landing")

        def bars() -> Mark:
            return Bars(bends(), "query")

        def lines() -> Iterator[Mark]:
            for which, role in ((0, "other"), (1, "landing")):
                given = (curvatures, Y, which)
                yield Curve(_one_curvature, given, role, BOTH[which], name="curvatures")

        def now() -> Mark:
            return Points([[beta, bend] for bend in bends()], "query", f"now a {shape()}")

        def critical() -> Mark:
            at = ask(critical_beta, Y)
            return Path([[at, curvature.low], [at, curvature.high]], "ink", f"critical β {at:.4f}")

        def distances() -> Mark:
            sizes = np.linalg.norm(orbit(), axis=1)
            return _over_hops(np.log10(np.where(sizes > 0, sizes, np.nan)) / 4 + 3)

        def energies() -> Mark:
            logs = np.log10(1 + 1000 * np.abs(heights())) / 3
            return _over_hops(7 + np.sign(heights()) * logs)

        def shape_words() -> str:
            low, high = bends()
            return f"The curvatures are {low:.3f} and {high:.3f}: a {shape()}."

        def orbit_words() -> str:
            start, end = np.linalg.norm(orbit()[[0, -1]], axis=1)
            falls = int((np.diff(heights()) < 0).sum())
            return (
                f"From {place(xi)}, {HOPS} hops change the distance from 0 from {short(start)} to "
                f"{short(end)}, and E from {short(heights()[0])} to {short(heights()[-1])}. "
                f"E falls in {falls} of {HOPS} hops."
            )

        field = Field(linear_energy, (Y, beta), signed=True)
        above = [
            field,
            Points(Y, "token", "tokens", numbered("y", len(Y))),
            hops_above,
            Points(xi, "query", "query", ("ξ",), handle="query"),
        ]
        zero = Path([[betas.low, 0], [betas.high, 0]], "ink")
        each = Axis("", -0.6, 1.6, names=BOTH)
        return Scene(
            [
                Panel("Energy from above", *plane, above, equal=True),
                Panel("Energy as a surface", *plane, [field], z=Axis("E", -4.0, 4.0)),
                Panel("The curvatures now", each, curvature, [bars]),
                Panel("The curvatures over β", betas, curvature, [zero, lines, critical, now]),
                Panel("Distance from 0, hop after hop", count, DISTANCE, [distances]),
                Panel("Energy, hop after hop", count, ENERGY, [energies]),
            ],
            [f"{counted(len(Y), 'token')} at β = {beta:.3g}.", shape_words, orbit_words],
        )

    return Picture(
        scene,
        points={"query": query},
        controls={
            "beta": log_slider(BETA, 2.0**-4.25, 2.0, 1.0),
            "n": count_slider("n", 1, len(tokens), min(3, len(tokens))),
        },
    )


def _one_curvature(beta: float, curvatures: Callable, Y: np.ndarray, which: int) -> float:
    return 1.0 if beta == 0 else curvatures(Y, beta)[which]


def _over_hops(values: np.ndarray) -> Path:
    return Path(np.column_stack([np.arange(len(values)), values]), "landing", dots=True)
