"""The pictures of lesson 02: an energy as a mixture of bumps, and how many valleys it has."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

import numpy as np

from hopping import draw
from hopping.explore.pictures import BETA, counted, place
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
    care,
    name_of,
    quiet,
)
from hopping.explore.search import Stairs, apart, remembered_stairs, valleys_from
from hopping.explore.view import Picture, State, log_slider, slider

APART = 0.01  # two searches that end nearer than this, against the cloud of centres, are one
SHARP = 2e-5  # how exactly a change of the count is found, against β


def two_centres(
    energy: Callable, log_mixture_weights: Callable, posterior: Callable, *, beta: float = 0.5
) -> Picture:
    """Show two centres on a line: the energy as bowl minus lse, its bumps, and its valleys.

    The centres are c − r and c + r. Heights are measured from ξ = 0, where bowl and scores vanish.
    The bumps are divided by the sum of all π, so that they fit at every β.

    Parameters
    ----------
    energy : callable
        energy(xi, Y, beta) -> float, the learner's.
    log_mixture_weights : callable
        log_mixture_weights(Y, beta) -> (n,), the learner's.
    posterior : callable
        posterior(xi, Y, beta) -> (n,), the learner's; the valleys are found with it.
    beta : float
        Where β starts.

    Returns
    -------
    Picture
        Its controls are "beta", "r" and "c".
    """
    x = Axis("ξ", -2.75, 2.75)
    betas = Axis(BETA, 2.0**-3.375, 2.0**4.375, log=True)

    def centres(c: float, r: float) -> np.ndarray:
        return np.array([[c - r], [c + r]])

    @lru_cache(maxsize=2048)  # three curves ask for the same heights
    def height(at: float, c: float, r: float, beta: float) -> float:
        return ask(energy, np.array([at]), centres(c, r), beta)

    def total(at: float, c: float, r: float, beta: float) -> float:
        return height(at, c, r, beta) - height(0.0, c, r, beta)

    def minus_lse(at: float, c: float, r: float, beta: float) -> float:
        return total(at, c, r, beta) - at**2 / 2

    def mixture(at: float, c: float, r: float, beta: float, log_mass: float) -> float:
        return np.exp(-beta * height(at, c, r, beta) - log_mass)

    stairs = remembered_stairs(valleys_of, posterior, betas, SHARP)

    def scene(state: State) -> Scene:
        c, r, beta = state["c"], state["r"], state["beta"]
        Y = centres(c, r)
        xs = np.linspace(x.low, x.high, 221)

        def log_pi() -> np.ndarray:
            return ask(log_mixture_weights, Y, beta, shape=(2,))

        def shares() -> np.ndarray:
            log_shares = log_pi()
            return np.exp(log_shares - np.logaddexp.reduce(log_shares))

        def bumps() -> Iterator[Mark]:
            for share, y, label in zip(shares(), Y[:, 0], ("components", ""), strict=True):
                bump = share * np.exp(-beta * (xs - y) ** 2 / 2)
                yield Band(xs, np.zeros_like(xs), bump, "token")
                yield Path(np.column_stack([xs, bump]), "token", label)

        def their_sum() -> Mark:
            log_mass = float(np.logaddexp.reduce(log_pi()))
            return Curve(mixture, (c, r, beta, log_mass), label="exp(−βE) / Σπ", name="energy")

        def found() -> np.ndarray:
            return valleys_of(posterior, Y, beta)[:, 0]

        def stars() -> Mark:
            at = [[v, total(v, c, r, beta)] for v in found()]
            return Points(np.reshape(at, (-1, 2)), "landing", label="valleys")

        def valley_words() -> str:
            return f"{_valleys_at([draw.short(v) for v in np.round(np.sort(found()), 2)])}."

        def share_words() -> str:
            both = " and ".join(f"{100 * share:.3g} %" for share in shares())
            return f"Of the sum of all π the two components have {both}."

        names = draw.numbered("y", 2)
        parts = [
            Path(np.column_stack([xs, xs**2 / 2]), "ink", "bowl"),
            Curve(minus_lse, (c, r, beta), "other", "−lse", name="energy"),
            Curve(total, (c, r, beta), "landing", "their sum E", name="energy"),
            stars,
        ]
        on_axis = Points(np.column_stack([Y[:, 0], [0, 0]]), "token", names=names)
        panels = [
            Panel("Bowl and −lse, from their value at 0", x, Axis("height", -3.25, 1.75), parts),
            Panel(
                "Bumps scaled by π / Σπ", x, Axis("height", 0.0, 1.1), [bumps, their_sum, on_axis]
            ),
            _count_panel(betas, Y, beta, stairs, found),
        ]
        where = " and ".join(draw.short(y) for y in Y[:, 0])
        words = [f"Two centres at {where}, β = {beta:.3g}.", valley_words, share_words]
        words.append(lambda: _passed_words(stairs(Y), betas, beta))
        return Scene(panels, words)

    return Picture(
        scene,
        controls={
            "beta": log_slider(BETA, betas.low, betas.high, beta),
            "r": slider("r", 0.25, 2.0, 1.0, 0.05),
            "c": slider("c", 0.0, 0.6, 0.0, 0.05),
        },
    )


def valleys(
    energy: Callable,
    posterior: Callable,
    tokens: np.ndarray,
    beta: float,
    *,
    beta_range: tuple[float, float],
    heights: tuple[float, float],
    limits: tuple[float, float] = (-1.5, 1.5),
    step: float | None = None,
    push: float | None = None,
) -> Picture:
    """Show where the valleys of a few centres lie in the plane, and how many there were up to β.

    For two centres the pair rule 1/r² is marked, and the β at which the valley really splits. What
    lies beyond the present β is not shown: it is for the learner to predict.

    Parameters
    ----------
    energy : callable
        energy(xi, Y, beta) -> float, the learner's.
    posterior : callable
        posterior(xi, Y, beta) -> (n,), the learner's; the valleys are found with it.
    tokens : array, (n, 2)
        Where the centres start; they can be moved.
    beta : float
        Where β starts.
    beta_range : (float, float)
        Ends of the slider.
    heights : (float, float)
        Ends of the height axis of the section, measured from the mean of the centres. The axis
        shows a thousand times these heights.
    limits : (float, float)
        Ends of both axes of the plane.
    step : float, optional
        Even steps of β; without it β goes by powers of two in eighths.
    push : float, optional
        Adds a control that moves the first centre away from the mean of all, or towards it, by at
        most this length, in steps finer than a pixel.

    Returns
    -------
    Picture
        Its controls are "beta" and perhaps "push", its points are "tokens".
    """
    tokens = np.array(tokens, dtype=float)
    names = draw.numbered("y", len(tokens))
    x, y = Axis("ξ₁", *limits), Axis("ξ₂", *limits)
    betas = Axis(BETA, *beta_range, log=step is None)
    stairs = remembered_stairs(valleys_of, posterior, betas, SHARP)

    def section(at: float, Y: np.ndarray, beta: float) -> float:
        mean = Y.mean(axis=0)
        rise = energy(mean + at * (Y[0] - mean), Y, beta) - energy(mean, Y, beta)
        return 1000 * rise  # ridges are low, and short numbers fit beside the axis

    def scene(state: State) -> Scene:
        Y, beta = _pushed(state["tokens"], state.get("push", 0.0)), state["beta"]

        def found() -> np.ndarray:
            return valleys_of(posterior, Y, beta)

        def stars() -> Mark:
            return Points(found(), "landing", label="valleys")

        def section_stars() -> Mark:
            places = _on_section(found(), Y)
            return Points(
                np.reshape([[t, ask(section, t, Y, beta)] for t in places], (-1, 2)),
                "landing",
                label="valleys on this line",
            )

        def valley_words() -> str:
            return f"{_valleys_at([place(v) for v in np.round(found(), 2)])}."

        panels = [
            Panel(
                "Energy from above",
                x,
                y,
                [
                    Field(energy, (Y, beta)),
                    Points(Y, "token", "centres", names, handle="tokens"),
                    stars,
                ],
                equal=True,
            ),
            Panel(
                "Energy from the mean (0) to y₁ (1)",
                Axis("share of the way", -1.25, 1.25),
                Axis("1000 × height", 1000 * heights[0], 1000 * heights[1]),
                [Curve(section, (Y, beta), label="E", name="energy"), section_stars],
            ),
            _count_panel(betas, Y, beta, stairs, found),
        ]
        words = [f"{_placed(names, Y)}; β = {beta:.4g}.", valley_words]
        if len(Y) == 2:
            words.append(_score_words(names, Y))
        return Scene(panels, [*words, lambda: _passed_words(stairs(Y), betas, beta)])

    if step is None:
        controls = {"beta": log_slider(BETA, *beta_range, beta)}
    else:
        controls = {"beta": slider(BETA, *beta_range, beta, step)}
        controls["beta"].readout_format = ".3f"
    if push is not None:
        controls["push"] = slider("push y₁", -push, push, 0.0, push / 40)
        controls["push"].readout_format = ".4f"
    return Picture(scene, points={"tokens": tokens}, controls=controls)


def valleys_of(posterior: Callable, Y: np.ndarray, beta: float) -> np.ndarray:
    """Search for the valleys of the energy from every centre, and from between them.

    A search takes steps of Newton's kind, or else replaces the point by the average of the centres
    under its posterior, which is a step of −∇E. Flat points that are no valleys are left out. With
    more than a few centres a valley far from all starts may be missed.

    Parameters
    ----------
    posterior : callable
        posterior(xi, Y, beta) -> (n,), the learner's.
    Y : array, (n, d)
        Centres.
    beta : float
        Inverse temperature.

    Returns
    -------
    ndarray, (k, d)
        The valleys.

    Raises
    ------
    TroubleError
        The posterior raised, or returned something else than n probabilities.
    """
    size = max(np.ptp(Y, axis=0).max(), 1e-6)
    between = [(one + two) / 2 for one, two in itertools.combinations(Y, 2)]

    def slopes(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return _slopes(posterior, x, Y, beta)

    with quiet(), care(name_of(posterior)):
        found = valleys_from(slopes, [*Y, *between, Y.mean(axis=0)], size)
        return np.reshape(apart(found, APART * size), (-1, Y.shape[1]))


def _slopes(
    posterior: Callable, x: np.ndarray, Y: np.ndarray, beta: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return gradient and Hessian of the energy: x − aY, and I − β Cov_a."""
    a = np.asarray(posterior(x.copy(), Y.copy(), beta))
    if a.shape != (len(Y),) or a.dtype.kind not in "fiu":
        a = ask(posterior, x, Y, beta, shape=(len(Y),))  # says what is wrong
    if not abs(a.sum() - 1) < 1e-6:
        raise TroubleError(f"{name_of(posterior)} does not sum to 1, so no valleys can be found")
    mean = a @ Y
    centred = Y - mean
    return x - mean, np.eye(len(x)) - beta * (centred.T * a) @ centred


def _count_panel(
    betas: Axis,
    Y: np.ndarray,
    beta: float,
    stairs: Callable[[np.ndarray], Stairs],
    found: Callable[[], np.ndarray],
) -> Panel:
    """Make the panel of valleys up to β, for a pair with the marks of rule and split passed."""
    most = len(Y) + 2

    def marks() -> Iterator[Mark]:
        steps = _passed(stairs(Y), beta)
        if len(Y) == 2:
            rule = 4 / max(np.sum((Y[0] - Y[1]) ** 2), 1e-12)
            if betas.low < rule <= beta:
                yield Path([[rule, 0], [rule, most]], "ink", f"1/r² = {rule:.4g}")
            for split, _ in steps[1:]:
                yield Path([[split, 0], [split, most]], "other", f"split at {split:.4g}")
        ends = [*(begin for begin, _ in steps[1:]), beta]
        flat = [[[a, k], [b, k]] for (a, k), b in zip(steps, ends, strict=True)]
        yield Path(np.concatenate(flat), "landing", "valleys")
        yield Points([beta, len(found())], "query", label=f"β = {beta:.4g}")

    names = tuple(str(count) for count in range(most + 1))
    return Panel(
        "How many valleys, up to β", betas, Axis("valleys", 0.0, most, names=names), [marks]
    )


def _passed(steps: Stairs, beta: float) -> Stairs:
    """Return the steps of a staircase that have begun at β."""
    return [steps[0], *(step for step in steps[1:] if step[0] <= beta)]


def _passed_words(steps: Stairs, betas: Axis, beta: float) -> str:
    """Say where the number of valleys has changed below β; the rest is for learners to find."""
    changes = [f"at {begin:.4g} to {count}" for begin, count in _passed(steps, beta)[1:]]
    what = f"changed {', '.join(changes)}" if changes else "did not change"
    words = f"From β = {draw.short(betas.low)} up to here the number {what}."
    if beta > 0.999 * betas.high:
        words += f" What happens beyond β = {betas.high:.4g} is not shown."
    return words


def _pushed(tokens: np.ndarray, push: float) -> np.ndarray:
    """Return the centres with the first one moved away from the mean of all by a length."""
    way = tokens[0] - tokens.mean(axis=0)
    moved = tokens.copy()
    moved[0] += push * way / max(np.linalg.norm(way), 1e-12)
    return moved


def _placed(names: Sequence[str], Y: np.ndarray) -> str:
    """Say where the centres are, with the digits of a small move."""
    return ", ".join(
        f"{name} at ({_exact(row[0])}, {_exact(row[1])})"
        for name, row in zip(names, Y, strict=True)
    )


def _score_words(names: Sequence[str], Y: np.ndarray) -> str:
    """Say what decides which of two centres lies in the other's shadow."""
    one, two = names
    scores = Y @ Y.T
    return (
        f"Scores: {one}·{one} = {_exact(scores[0, 0])}, {one}·{two} = {_exact(scores[0, 1])}, "
        f"{two}·{two} = {_exact(scores[1, 1])}."
    )


def _exact(number: float) -> str:
    return f"{round(number, 4) + 0.0:.5g}".replace("-", draw.MINUS)


def _on_section(found: np.ndarray, Y: np.ndarray) -> list[float]:
    """Return where valleys lie on the line from the mean (0) to the first centre (1)."""
    mean = Y.mean(axis=0)
    way = Y[0] - mean
    if not way.any():
        return []
    shares = (found - mean) @ way / (way @ way)
    off = np.linalg.norm(found - mean - np.outer(shares, way), axis=1)
    return [float(share) for share, far in zip(shares, off, strict=True) if far < 1e-3]


def _valleys_at(places: Sequence[str]) -> str:
    """Say how many valleys there are, and where."""
    if not places:
        return "No valley was found"
    return f"{counted(len(places), 'valley')}, at {', '.join(places)}"
