"""The pictures of lesson 05: the same tokens under two kernels, their corners and their valleys."""

import itertools
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np

from hopping.draw import numbered
from hopping.explore.mixtures import valleys_of
from hopping.explore.pictures import BETA, counted, place
from hopping.explore.scene import (
    Axis,
    Field,
    Mark,
    Panel,
    Path,
    Points,
    Scene,
    ask,
    care,
    name_of,
    quiet,
)
from hopping.explore.search import Stairs, apart, remembered_stairs, valleys_from
from hopping.explore.view import Picture, State, count_slider, log_slider, slider

BETAS = Axis(BETA, 2.0**-4, 2.0**5, log=True)
# Two tokens, the second one turned by the learner.
LENGTHS = 1.0, 1.1
# Fixture A of the course and three more: all signed sums are different places. The fifth token
# costs a valley, so the number of tokens alone does not say how many there are.
SIX_TOKENS = np.array([[1, 0.5], [-0.5, 1.25], [0.25, -1], [-1, -0.25], [0, 0.5], [-0.75, 0.25]])
NEAR = 1e-3  # two searches that end nearer than this, against the longest corner, are one
SHARP = 0.01  # how exactly a change of the count is found, against β


def parallelogram(
    tanh_energy: Callable, tanh_step: Callable, mode_centers: Callable, stable_modes: Callable
) -> Picture:
    """Show two tokens under the softmax and the tanh kernel; the second one can be turned.

    Parameters
    ----------
    tanh_energy, tanh_step : callable
        The learner's, each of (xi, Y, beta).
    mode_centers, stable_modes : callable
        The learner's, each of (Y), with the same order of corners.

    Returns
    -------
    Picture
        Its controls are "beta" and "angle", in degrees; the query can be moved.
    """
    own = tanh_energy, tanh_step, mode_centers, stable_modes
    stairs = remembered_stairs(tanh_valleys, tanh_step, BETAS, SHARP)

    def scene(state: State) -> Scene:
        turn = np.deg2rad(state["angle"])
        Y = np.array([[LENGTHS[0], 0.0], [LENGTHS[1] * np.cos(turn), LENGTHS[1] * np.sin(turn)]])
        product, shorter = abs(Y[0] @ Y[1]), min(LENGTHS) ** 2
        than = "smaller" if product < shorter else "not smaller"
        words = (
            f"y₂ is at {state['angle']:.0f}° from y₁. The size of y₁ · y₂ is {product:.2f}, "
            f"{than} than the smaller square, {shorter:.2f}."
        )
        return _scene(own, stairs, Y, state["query"], state["beta"], 2.5, 2, words)

    return Picture(
        scene,
        points={"query": np.array([1.25, -1.5])},
        controls={
            "beta": log_slider(BETA, BETAS.low, BETAS.high, 4.0),
            "angle": slider("angle of y₂", 0, 180, 63, 1),
        },
    )


def zonogon(
    tanh_energy: Callable,
    tanh_step: Callable,
    mode_centers: Callable,
    stable_modes: Callable,
    *,
    tokens: np.ndarray = SIX_TOKENS,
) -> Picture:
    """Show up to six tokens under the softmax and the tanh kernel; tokens and query can be moved.

    Parameters
    ----------
    tanh_energy, tanh_step : callable
        The learner's, each of (xi, Y, beta).
    mode_centers, stable_modes : callable
        The learner's, each of (Y), with the same order of corners.
    tokens : array, (n, 2)
        The tokens the slider of n chooses from, first ones first.

    Returns
    -------
    Picture
        Its controls are "beta" and "n".
    """
    own = tanh_energy, tanh_step, mode_centers, stable_modes
    stairs = remembered_stairs(tanh_valleys, tanh_step, BETAS, SHARP)

    def scene(state: State) -> Scene:
        Y = state["tokens"][: state["n"]]
        words = f"In the plane at most 2n = {2 * len(Y)} corners can be filled."
        most = len(tokens)
        return _scene(own, stairs, Y, state["query"], state["beta"], 4.5, most, words, "tokens")

    return Picture(
        scene,
        points={"tokens": np.array(tokens, dtype=float), "query": np.array([2.0, 1.5])},
        controls={
            "beta": log_slider(BETA, BETAS.low, BETAS.high, 4.0),
            "n": count_slider("n", 2, len(tokens), 3),
        },
    )


def _scene(
    own: tuple[Callable, ...],
    stairs: Callable[[np.ndarray], Stairs],
    Y: np.ndarray,
    xi: np.ndarray,
    beta: float,
    reach: float,
    most: int,
    more: str,
    handle: str = "",
) -> Scene:
    """Set the two kernels side by side, and beside them the count of valleys over β."""
    tanh_energy, tanh_step, mode_centers, stable_modes = own
    n = len(Y)
    plane = Axis("ξ₁", -reach, reach), Axis("ξ₂", -reach, reach)
    mark = 1 / max(np.linalg.eigvalsh(Y.T @ Y)[-1], 1e-12)

    @cache
    def corners() -> np.ndarray:
        return ask(mode_centers, Y, shape=(2**n, 2))

    @cache
    def stable() -> np.ndarray:
        return ask(stable_modes, Y, shape=(2**n,)) > 0.5

    @cache
    def found() -> np.ndarray:
        return tanh_valleys(tanh_step, Y, beta)

    @cache
    def softmax_found() -> np.ndarray:
        return valleys_of(_posterior, Y, beta)

    def softmax_hop() -> Mark:
        return Path([xi, softmax_landing()], "other", label="hop", arrow=True)

    @cache
    def softmax_landing() -> np.ndarray:
        return _posterior(xi, Y, beta) @ Y

    @cache
    def tanh_landing() -> np.ndarray:
        return ask(tanh_step, xi, Y, beta, shape=(2,))

    def tanh_hop() -> Mark:
        return Path([xi, tanh_landing()], "landing", label="hop", arrow=True)

    def filled_and_hollow() -> Mark:
        label = "corners: filled if stable"
        return Points(corners(), "token", label, hollow=~stable(), wide=True)

    def softmax_triangles() -> Mark:
        at = softmax_found()
        return Points(at, "other", "valleys", hollow=[True] * len(at), wide=True)

    def stars() -> Mark:
        return Points(found(), "landing", label="valleys at this β")

    def counts() -> Iterator[Mark]:
        steps = stairs(Y)
        ends = [*(begin for begin, _ in steps[1:]), BETAS.high]
        flat = [[[a, k], [b, k]] for (a, k), b in zip(steps, ends, strict=True)]
        yield Path(_doublings(np.concatenate(flat)), "landing", "valleys")
        yield Points(_doublings([[beta, len(found())]]), "query", label=f"β = {beta:.3g}")

    def corner_words() -> str:
        kept = int(stable().sum())
        return f"Tanh: {2**n} corners, of which {kept} are stable (filled)."

    def valley_words() -> str:
        return (
            f"At this β the tanh kernel has {counted(len(found()), 'valley')}, the softmax kernel "
            f"{counted(len(softmax_found()), 'valley')}."
        )

    def hop_words() -> str:
        one, other = (place(np.round(to(), 2)) for to in (softmax_landing, tanh_landing))
        return f"From {place(xi)} the softmax hop lands at {one}, the tanh hop at {other}."

    def stair_words() -> str:
        steps = stairs(Y)
        ladder = ", then ".join(f"{count} from β = {begin:.3g}" for begin, count in steps[1:])
        return (
            f"1/λ_max is {mark:.3g}. Going up in β: {steps[0][1]} valley at first, then {ladder}."
        )

    names = numbered("y", n)
    arrows = [Path([[0, 0], y], "token", "" if k else "tokens", True) for k, y in enumerate(Y)]
    left = [
        Field(_softmax_energy, (Y, beta)),
        softmax_triangles,  # before the tokens, which they may surround
        Points(Y, "token", "tokens", names, handle=handle),
        softmax_hop,
        Points(xi, "query", "query", ("ξ",)),
    ]
    middle = [
        Field(tanh_energy, (Y, beta)),
        Path(outline(Y), "ink", closed=True),
        *arrows,
        filled_and_hollow,
        stars,  # on the corners
        tanh_hop,
        Points(xi, "query", "query", ("ξ",), handle="query"),
    ]
    level = np.array([BETAS.low, BETAS.high])
    right = [
        Path(_doublings(np.column_stack([level, [2**n] * 2])), "token", f"2ⁿ = {2**n} components"),
        Path([[mark, 0], [mark, most + 0.5]], "ink", f"1/λ_max = {mark:.3g}"),
    ]
    if n > 2:
        bound = np.column_stack([level, [2 * n] * 2])
        right.append(Path(_doublings(bound), "other", f"bound 2n = {2 * n}"))
    powers = tuple(str(2**k) for k in range(most + 1))
    return Scene(
        [
            Panel("Softmax kernel", *plane, left, equal=True),
            Panel("Tanh kernel", *plane, middle, equal=True),
            Panel(
                "How many valleys (tanh)",
                BETAS,
                Axis("count (log scale)", -0.25, most + 0.5, names=powers),
                [*right, counts],
            ),
        ],
        [
            f"{n} tokens at β = {beta:.3g}.",
            more,
            corner_words,
            valley_words,
            stair_words,
            hop_words,
        ],
    )


def _doublings(points: np.ndarray) -> np.ndarray:
    """Count in doublings: 1, 2, 4, 8 are at 0, 1, 2, 3."""
    at = np.array(points, dtype=float)
    at[:, 1] = np.log2(np.maximum(at[:, 1], 0.5))
    return at


def _softmax_energy(xi: np.ndarray, Y: np.ndarray, beta: float) -> float:
    return 0.5 * (xi @ xi) - np.logaddexp.reduce(beta * (Y @ xi)) / beta


def _posterior(xi: np.ndarray, Y: np.ndarray, beta: float) -> np.ndarray:
    """Return what lesson 02 shows to be the posterior: the attention weights."""
    u = beta * (Y @ xi)
    return np.exp(u - np.logaddexp.reduce(u))


def outline(Y: np.ndarray) -> np.ndarray:
    """Return the outermost signed sums of tokens in the plane, in order around the origin.

    Parameters
    ----------
    Y : array, (n, 2)
        Tokens, one a row.

    Returns
    -------
    ndarray, (2n, 2)
        The corners of the zonogon: a parallelogram for two tokens.
    """
    # A token and its opposite give the same sums: turn all upwards and go around by their slope.
    up = np.where((Y[:, 1] < 0) | ((Y[:, 1] == 0) & (Y[:, 0] < 0)), -1.0, 1.0)[:, None] * Y
    steps = 2 * up[np.argsort(np.arctan2(up[:, 1], up[:, 0]), kind="stable")]
    half = np.cumsum(steps, axis=0) - up.sum(axis=0)
    return np.concatenate([half, -half])


def tanh_valleys(tanh_step: Callable, Y: np.ndarray, beta: float) -> np.ndarray:
    """Search for the valleys of the tanh kernel's energy in the plane.

    The searches start from the outline: when β is large, a hop from any place leads to one of its
    corners, and when it is not, there are fewer valleys still. Valleys come in opposite pairs.

    Parameters
    ----------
    tanh_step : callable
        tanh_step(xi, Y, beta) -> (2,), the learner's; the curvature comes from the formula.
    Y : array, (n, 2)
        Tokens.
    beta : float
        Inverse temperature.

    Returns
    -------
    ndarray, (k, 2)
        The valleys.

    Raises
    ------
    TroubleError
        `tanh_step` raised, or returned something else than a finite place.
    """
    starts = outline(Y)
    size = max(np.linalg.norm(starts, axis=1).max(), 1e-6)

    def land(x: np.ndarray) -> np.ndarray:
        to = np.asarray(tanh_step(x.copy(), Y.copy(), beta))
        if to.shape != x.shape or to.dtype.kind not in "fiu" or not np.isfinite(to).all():
            to = ask(tanh_step, x, Y, beta, shape=x.shape)  # says what is wrong
        return to

    def slopes(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sech_squared = 1 - np.tanh(beta * (Y @ x)) ** 2
        return x - land(x), np.eye(2) - beta * (Y.T * sech_squared) @ Y

    with quiet(), care(name_of(tanh_step)):
        found = valleys_from(slopes, starts[: len(Y)], size)
        pairs = itertools.chain.from_iterable((end, -end) for end in found)
        return np.reshape(apart(pairs, NEAR * size), (-1, 2))
