"""The pictures of lesson 07: one hop against settling, and three kernels side by side."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial

import ipywidgets
import numpy as np

from hopping.draw import numbered, short
from hopping.explore.pictures import BETA, EIGHT_TOKENS, QUERY, place, walk_of
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
from hopping.explore.view import Picture, State, log_slider

FOUR_PATTERNS = np.array([[1, 0], [0, 1], [-1, 0.25], [0.25, -1]])
NEAR_NONE = np.array([0.0625, 0.125])
# Swapping the coordinates swaps the patterns too, so a walk from here never leaves the diagonal.
ON_A_TIE = np.array([-0.125, -0.125])
BESIDE_IT = np.array([-0.125, -0.12499])
STARTS = ("where I put it", "on pattern y₂", "on a tie", "a hair beside it")

DRAWN = 1000  # hops that are drawn at most
TOL = 1e-10  # hops that count as none
TINY = 1e-12  # in place of 0, where an axis is logarithmic
KERNELS = {"softmax": "token", "tanh": "landing", "linear": "other"}
PATIENCE = 100  # hops after which a kernel is said not to settle
LOGGED = 10  # hops in the energy log
FAR = 1e3  # beyond every panel

Settled = tuple[np.ndarray, int, bool]


def step_and_settling(
    energy: Callable,
    hop: Callable,
    settle: Callable,
    one_step_gap: Callable,
    local_rate: Callable,
    *,
    patterns: np.ndarray = FOUR_PATTERNS,
    query: np.ndarray = NEAR_NONE,
    beta: float = 16.0,
) -> Picture:
    """Show where one hop lands, the hops after it, where they settle, and the gap.

    Parameters
    ----------
    energy : callable
        energy(xi, Y, beta) -> float.
    hop : callable
        hop(xi, Y, beta) -> (2,); landing and path are drawn with it.
    settle, one_step_gap, local_rate : callable
        The learner's, each of (xi, Y, beta). Where the path ends is asked of the first, so a
        wrong one is seen beside its path.
    patterns : array, (n, 2)
        The centres.
    query : array, (2,)
        Where the query starts.
    beta : float
        Where β starts.

    Returns
    -------
    Picture
        Its controls are "beta" and "start", which can put the query on a pattern, on a tie of the
        four patterns, or beside it; otherwise the query can be moved.
    """
    Y = np.array(patterns, dtype=float)
    plane = Axis("ξ₁", -1.5, 1.5), Axis("ξ₂", -1.5, 1.5)
    betas = Axis(BETA, 0.25, 256.0, log=True)
    rays = list(_ties(Y, reach=4.0))

    def scene(state: State) -> Scene:
        beta, start = state["beta"], state["start"]
        places = (state["query"], Y[1], ON_A_TIE, BESIDE_IT)
        xi = places[STARTS.index(start)]

        @cache
        def landing() -> np.ndarray:
            return ask(hop, xi, Y, beta, shape=(2,))

        @cache
        def settled() -> Settled:
            return _asked_to_settle(settle, xi, Y, beta)

        @cache
        def walk() -> np.ndarray:
            count = min(settled()[1], DRAWN)
            return walk_of(lambda at: ask(hop, at, Y, beta, shape=(2,)), xi, count)

        @cache
        def gap() -> float:
            return ask(one_step_gap, xi, Y, beta)

        @cache
        def rate() -> float:
            return ask(local_rate, settled()[0], Y, beta)

        def first_hop() -> Iterator[Mark]:
            yield Path([xi, landing()], "landing", label="one hop", arrow=True)
            yield Points(landing(), "landing", label="landing")

        def later_hops() -> Iterator[Mark]:
            end, _, converged = settled()
            yield Path(walk()[1:], "landing", dots=True)
            yield Path([landing(), end], "other", label="gap")
            name = "settled" if converged else "not settled"
            unstable = not converged or rate() >= 1
            yield Points(end, "other", label=name, hollow=[unstable], wide=True)

        def lengths() -> Mark:
            apart = np.linalg.norm(settled()[0] - landing())
            return Bars([np.linalg.norm(landing()), apart], "landing")

        def gap_now() -> Mark:
            return Points([beta, max(gap(), TINY)], "query", label=f"β = {beta:.3g}")

        def hop_lengths() -> Mark:
            moved = np.linalg.norm(np.diff(walk(), axis=0), axis=1)
            log = np.column_stack([np.arange(1, len(moved) + 1), moved])
            # A logarithmic axis has no place for 0.
            return Path(log[moved > 0], "landing", "length of the hop", dots=True)

        def settle_words() -> str:
            end, hops, converged = settled()
            if not converged:
                return f"After {hops} hops it has not settled; by then it is at {_near(end)}."
            kind = "a valley" if rate() < 1 else "no valley, but a saddle or a peak"
            return f"After {hops} hops it has settled at {_near(end)}: {kind}, rate {rate():.3g}."

        names = numbered("y", len(Y))
        above = [
            Field(energy, (Y, beta)),
            *(Path(ray, "ink", "" if k else "ties") for k, ray in enumerate(rays)),
            later_hops,  # before the patterns, one of which it may end on
            Points(Y, "token", "patterns", names),
            first_hop,
            Points(xi, "query", "query", ("ξ",), handle="query" if start == STARTS[0] else ""),
        ]
        over_beta = [
            Curve(
                _gap_over_beta, (one_step_gap, xi, Y), "other", "gap", name=name_of(one_step_gap)
            ),
            gap_now,
        ]
        hops = Axis("hop", 0.8, float(DRAWN), log=True)
        how_long = Axis("length", 1e-12, 10.0, log=True)
        bars = Axis("", -0.6, 1.6, names=("landing", "landing to settled"))
        panels = [
            Panel("Energy from above", *plane, above, equal=True),
            Panel("Two lengths: gap = second / first", bars, Axis("length", 0.0, 1.75), [lengths]),
            Panel("Gap over β", betas, Axis("gap", 1e-4, 100.0, log=True), over_beta),
            Panel(
                "How long each hop is",
                hops,
                how_long,
                [Path([[hops.low, TOL], [hops.high, TOL]], "ink", "tol"), hop_lengths],
            ),
        ]
        return Scene(
            panels,
            [
                f"{len(Y)} patterns at β = {beta:.3g}.",
                lambda: f"One hop from {place(xi)} lands at {_near(landing())}.",
                settle_words,
                lambda: f"The gap is {gap():.3f}.",
            ],
        )

    return Picture(
        scene,
        points={"query": query},
        controls={
            "beta": log_slider(BETA, betas.low, betas.high, beta),
            "start": ipywidgets.Dropdown(options=STARTS, description="query"),
        },
    )


def three_kernels(
    potential: Mapping[str, Callable | None],
    weights: Mapping[str, Callable | None],
    relaxation_gap: Callable,
    *,
    tokens: np.ndarray = EIGHT_TOKENS[:3],
    query: np.ndarray = QUERY,
    beta: float = 1.0,
) -> Picture:
    """Show the landscapes of three kernels, a hop on each, and whether hops settle.

    With u = beta * Y @ xi, the energy of a kernel is ½‖ξ‖² − potential(u) / β, and its hop leads
    to weights(u) @ Y.

    Parameters
    ----------
    potential, weights : mapping of str to callable
        For "softmax", "tanh" and "linear" the learner's functions of u, shape (n,): the first
        returns a number, the second an array (n,).
    relaxation_gap : callable
        relaxation_gap(step, x, tol, max_steps) -> float, the learner's; nan if unsettled.
    tokens : array, (n, 2)
        The tokens.
    query : array, (2,)
        Where the query starts.
    beta : float
        Where β starts.

    Returns
    -------
    Picture
        Its control is "beta"; the query can be moved.
    """
    Y = np.array(tokens, dtype=float)
    plane = Axis("ξ₁", -3.0, 3.0), Axis("ξ₂", -3.0, 3.0)
    heights = {kernel: _entry(potential, "potential", kernel) for kernel in KERNELS}
    votes = {kernel: _entry(weights, "weights", kernel) for kernel in KERNELS}

    def scene(state: State) -> Scene:
        xi, beta = state["query"], state["beta"]

        def step(kernel: str, at: np.ndarray) -> np.ndarray:
            return ask(votes[kernel], beta * Y @ at, shape=(len(Y),)) @ Y

        @cache
        def walk(kernel: str) -> np.ndarray:
            return walk_of(partial(step, kernel), xi, PATIENCE)

        @cache
        def gap(kernel: str) -> float:
            answer = ask(relaxation_gap, partial(step, kernel), xi, TOL, PATIENCE, shape=None)
            try:
                return float(answer)
            except (TypeError, ValueError):
                name = name_of(relaxation_gap)
                raise TroubleError(
                    f"{name} returned {type(answer).__name__}, not a number"
                ) from None

        def hops(kernel: str) -> Iterator[Mark]:
            places = walk(kernel)
            away = np.abs(places).max(axis=1) > FAR
            if away.any():
                places = places[: np.argmax(away) + 1]
            yield Path(places[:2], "landing", "one hop", arrow=True)
            yield Points(places[1], "landing", label="landing")
            unsettled = np.isnan(gap(kernel))
            label = f"not settled in {PATIENCE} hops" if unsettled else ""
            yield Path(places[1:], "landing", label, dots=True)
            if not unsettled:
                yield Points(places[-1], "other", label="settled")

        def log(kernel: str) -> Mark:
            energies = [
                at @ at / 2 - ask(heights[kernel], beta * Y @ at) / beta
                for at in walk(kernel)[: LOGGED + 1]
            ]
            falls = np.maximum(np.array(energies) - energies[0], -FAR)
            at = np.column_stack([np.arange(LOGGED + 1), falls])
            return Path(at, KERNELS[kernel], kernel, dots=True)

        def words(kernel: str) -> str:
            end = gap(kernel)
            if np.isnan(end):
                return f"{kernel.capitalize()}: not settled after {PATIENCE} hops."
            rest = _near(walk(kernel)[-1])
            return f"{kernel.capitalize()}: settles at {rest}, gap {short(end)}."

        def landscape(kernel: str) -> Field:
            name = heights[kernel].__name__
            return Field(_energy, (heights[kernel], Y, beta), signed=kernel == "linear", name=name)

        panels = [
            Panel(
                kernel,
                *plane,
                [
                    landscape(kernel),
                    Points(Y, "token", "tokens", numbered("y", len(Y))),
                    partial(hops, kernel),
                    Points(xi, "query", "query", ("ξ",), handle="query"),
                ],
                equal=True,
            )
            for kernel in KERNELS
        ]
        log_panel = Panel(
            "Energy, hop after hop",
            Axis("hops", 0.0, float(LOGGED)),
            Axis("E, from its start", -10.0, 0.5),
            [partial(log, kernel) for kernel in KERNELS],
        )
        first = f"{len(Y)} tokens at β = {beta:.3g}, the query at {place(xi)}."
        return Scene([*panels, log_panel], [first, *(partial(words, k) for k in KERNELS)])

    return Picture(
        scene,
        points={"query": query},
        controls={"beta": log_slider(BETA, 2.0**-4, 8.0, beta)},
    )


def _near(at: np.ndarray) -> str:
    """Write a point to four decimals, so that a coordinate that is all but 0 is called 0."""
    return place(np.round(at, 4))


def _asked_to_settle(settle: Callable, xi: np.ndarray, Y: np.ndarray, beta: float) -> Settled:
    """Ask the learner's function for a point, a number of hops, and a flag."""
    name = name_of(settle)
    answer = ask(settle, xi, Y, beta, shape=None)
    if not (isinstance(answer, Sequence) and len(answer) == 3):
        raise TroubleError(f"{name} has to return three things: the point, the hops, converged")
    point = ask(lambda: answer[0], shape=xi.shape)
    hops = ask(lambda: answer[1], shape=())
    return point, int(hops), bool(answer[2])


def _gap_over_beta(beta: float, one_step_gap: Callable, xi: np.ndarray, Y: np.ndarray) -> float:
    return max(float(one_step_gap(xi, Y, beta)), TINY)


def _energy(xi: np.ndarray, potential: Callable, Y: np.ndarray, beta: float) -> float:
    return xi @ xi / 2 - potential(beta * Y @ xi) / beta


def _entry(given: Mapping[str, Callable | None], row: str, kernel: str) -> Callable:
    """Return a learner's entry under the name by which a message can call it."""
    entry = given.get(kernel)

    def named(u: np.ndarray) -> object:
        if entry is None:
            raise TroubleError(f"not written yet: {named.__name__}")
        return entry(u)

    named.__name__ = f'{row}["{kernel}"]'
    return named


def _ties(Y: np.ndarray, reach: float) -> Iterator[np.ndarray]:
    """Yield the rays from 0 on which the two highest scores are equal, each (2, 2)."""
    for one, two in itertools.combinations(Y, 2):
        across = np.array([one[1] - two[1], two[0] - one[0]])
        for way in (across, -across):
            length = np.linalg.norm(way)
            if length > 0 and (Y @ way).max() <= one @ way + 1e-12:
                yield np.array([[0.0, 0.0], reach * way / length])
