"""The picture of lesson 03: a hop, the majoriser whose minimum it is, and steps of other sizes."""

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np

from hopping.draw import numbered
from hopping.explore.pictures import BETA, EIGHT_TOKENS, height_along, place, walk_of
from hopping.explore.scene import (
    Axis,
    Band,
    Curve,
    Field,
    Mark,
    Panel,
    Path,
    Points,
    Scene,
    TroubleError,
    ask,
)
from hopping.explore.view import Picture, State, log_slider, slider

STEPS = 10  # how many the energy log holds
LONGEST = 3.0  # step sizes on the slider and along the arrow
LOWEST, HIGHEST = -4.0, 3.0  # heights shown, in units of half the squared hop
# From here a hop is long, and falls visibly below its majoriser, at every temperature.
FAR_QUERY = np.array([-1.0, -0.25])


def hop_and_majoriser(
    energy: Callable,
    energy_grad: Callable,
    cccp_step: Callable,
    *,
    tokens: np.ndarray = EIGHT_TOKENS[:3],
    query: np.ndarray = FAR_QUERY,
) -> Picture:
    """Show a hop from above, the energy under its majoriser along it, and the log of many steps.

    Heights along the arrow and in the log are counted from the energy at the query, in units of
    half the squared length of the hop. In them the majoriser is the same parabola everywhere, so
    that small hops are seen as well as large ones.

    Parameters
    ----------
    energy : callable
        energy(xi, Y, beta) -> float.
    energy_grad, cccp_step : callable
        The learner's, each of (xi, Y, beta) and returning an array (2,). The majoriser is drawn
        from the first, the hop from the second.
    tokens : array, (n, 2)
        The centres.
    query : array, (2,)
        Where the query starts.

    Returns
    -------
    Picture
        Its controls are "beta" and "eta", the step size; the query can be moved.
    """
    Y = np.array(tokens, dtype=float)
    plane = Axis("ξ₁", -2.0, 2.0), Axis("ξ₂", -2.0, 2.0)
    heights = Axis("height above the start, in ½‖g‖²", LOWEST, HIGHEST)

    def scene(state: State) -> Scene:
        xi, beta, eta = state["query"], state["beta"], state["eta"]

        def height(at: np.ndarray) -> float:
            return ask(energy, at, Y, beta)

        @cache
        def start() -> float:
            return height(xi)

        @cache
        def landing() -> np.ndarray:
            return ask(cccp_step, xi, Y, beta, shape=xi.shape)

        @cache
        def hop() -> np.ndarray:
            arrow = landing() - xi
            if not np.linalg.norm(arrow) > 1e-6:
                raise TroubleError("the query is at rest: it hops nowhere. Move it")
            return arrow

        def in_units(at: np.ndarray) -> float:
            return (height(at) - start()) / half(hop())

        @cache
        def steps() -> np.ndarray:
            def step(at: np.ndarray) -> np.ndarray:
                return at - eta * ask(energy_grad, at, Y, beta, shape=at.shape)

            return walk_of(step, xi, STEPS)

        def hops() -> np.ndarray:
            return walk_of(lambda at: ask(cccp_step, at, Y, beta, shape=at.shape), xi, STEPS)

        def arrow_above() -> Iterator[Mark]:
            yield Path([xi, landing()], "landing", label="hop", arrow=True)
            yield Points(landing(), "landing", label="landing")

        def steps_above() -> Iterator[Mark]:
            places = steps()
            rises = height(places[1]) > start()
            yield Path(places, "query", label=f"{STEPS} steps of size η", dots=True)
            said = "one step: E rises" if rises else "one step"
            yield Points(places[1], "query", label=said, hollow=[True])

        def majoriser() -> Iterator[Mark]:
            arrow = hop()
            slope = ask(energy_grad, xi, Y, beta, shape=xi.shape) @ arrow / half(arrow)
            at = np.linspace(0.0, LONGEST, 61)
            curve = np.column_stack([at, slope * at + at**2])
            yield Path(curve, "other", label="majoriser Q")
            yield Points([-slope / 2, -(slope**2) / 4], "other", label="lowest point of Q")

        def energy_along() -> Iterator[Mark]:
            arrow = hop()
            values = (energy, xi, arrow, Y, beta, start(), 1 / half(arrow))
            yield Curve(height_along, values, "landing", "energy E", name="energy")
            yield Points([eta, in_units(xi + eta * arrow)], "query", "one step", hollow=[True])
            yield Points([1.0, in_units(xi + arrow)], "landing", "landing")

        def log_of_hops() -> Iterator[Mark]:
            log = [in_units(at) for at in hops()]
            yield Path(np.column_stack([range(STEPS + 1), log]), "landing", "hops", dots=True)

        def log_of_steps() -> Iterator[Mark]:
            log = np.column_stack([range(STEPS + 1), [in_units(at) for at in steps()]])
            yield Path(log, "query", "steps of size η", dots=True)
            yield Points(log[1], "query", "one step", hollow=[True])

        def hop_words() -> str:
            return (
                f"The hop from {place(xi)} lands at {place(landing())} and "
                f"{_said(height(landing()) - start())}; the fall that Q promises, half the "
                f"squared length of the hop, is {half(hop()):.3f}."
            )

        def step_words() -> str:
            bound = ", and above 2 Q promises nothing" if eta > 2 else ""
            return f"A step of size η = {eta:.2f} {_said(height(steps()[1]) - start())}{bound}."

        edge = np.array([2.0, LONGEST])
        unsafe = Band(edge, *np.outer([LOWEST, HIGHEST], [1, 1]), "query", "η > 2: no promise")
        above = [
            Field(energy, (Y, beta)),
            Points(Y, "token", "centres", numbered("y", len(Y))),
            steps_above,
            arrow_above,
            Points(xi, "query", names=("ξ",), handle="query"),
        ]
        along = [
            unsafe,
            Path([[0.0, 0.0], [LONGEST, 0.0]], "ink"),
            Path([[0.0, -1.0], [LONGEST, -1.0]], "ink"),
            majoriser,
            energy_along,
            Points([0.0, 0.0], "query", names=("ξ",)),
        ]
        panels = [
            Panel("Energy from above", *plane, above, equal=True),
            Panel("Along the arrow: E and Q", Axis("step size η", 0.0, LONGEST), heights, along),
            Panel(
                "Energy log",
                Axis("steps taken", 0.0, float(STEPS)),
                heights,
                [Path([[0.0, 0.0], [STEPS, 0.0]], "ink"), log_of_hops, log_of_steps],
            ),
        ]
        return Scene(panels, [f"{len(Y)} centres at β = {beta:.3g}.", hop_words, step_words])

    return Picture(
        scene,
        points={"query": query},
        controls={
            "beta": log_slider(BETA, 0.25, 16.0, 4.0),
            "eta": slider("step size η", 0.0, LONGEST, 1.0, 0.05),
        },
    )


def half(arrow: np.ndarray) -> float:
    """Return half the squared length."""
    return float(arrow @ arrow) / 2


def _said(change: float) -> str:
    """Say what a step does to the energy."""
    if change == 0:
        return "leaves E as it is"
    return f"{'raises' if change > 0 else 'lowers'} E by {abs(change):.3f}"
