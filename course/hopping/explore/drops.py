"""The pictures of lesson 04: a hop along the normal, bowls of other curvature, large drops."""

from collections.abc import Callable, Iterator
from functools import cache

import ipywidgets
import numpy as np

from hopping.draw import numbered
from hopping.explore.pictures import BETA, EIGHT_TOKENS, height_along, place
from hopping.explore.scene import (
    Axis,
    Band,
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
)
from hopping.explore.view import Picture, State, log_slider, slider

PLANE = Axis("ξ₁", -2.0, 2.0), Axis("ξ₂", -2.0, 2.0)
# From here the hop is long, and all three parts of its drop can be seen.
FAR_QUERY = np.array([-1.75, -0.5])
# From here every bowl has a hop.
NEAR_QUERY = np.array([-0.75, -0.5])
# The looks of the drop's parts, from the top down, as in hopping.draw.draw_hop_on_surface.
PARTS = (("other", "rise: 1"), ("landing", "bowl: ½‖g‖²"), ("token", "bend: D"))
# Sides of the square that a slice is seen in: the smallest that holds the hop. Few, so that it
# stays the same while a control moves a little.
BOXES = (2.5, 4.25, 6.5, 10.0, 16.0, 26.0)
DIMENSIONS = (2, 4, 8, 16, 32, 64)
OTHERS, DRAWS = 32, 10  # tokens a draw, and draws that an average is taken over


def hop_along_normal(
    energy: Callable,
    unit_normal: Callable,
    hop_length: Callable,
    hop_apex: Callable,
    vertical_drop: Callable,
    drop_parts: Callable,
    *,
    tokens: np.ndarray = EIGHT_TOKENS[:3],
    query: np.ndarray = FAR_QUERY,
) -> Picture:
    """Show a hop from above, on the surface in space, and in the upright slice it lies in.

    The slice contains the normal, so a right angle is seen as one. The level of the query, where
    the shade begins, and the parabola that touches the surface there split the drop into its
    parts. Heights are counted from the energy at the origin on the surface, and from the query
    in the slice.

    Parameters
    ----------
    energy, unit_normal, hop_length, hop_apex, vertical_drop, drop_parts : callable
        The learner's, each of (xi, Y, beta). The dotted walk is `hop_length` along `unit_normal`,
        the apex is `hop_apex`, the parts are `drop_parts`.
    tokens : array, (n, 2)
        The centres.
    query : array, (2,)
        Where the query starts.

    Returns
    -------
    Picture
        Its control is "beta"; the query can be moved.
    """
    Y = np.array(tokens, dtype=float)
    upright = Axis("ΔE", -1.25, 4.5)

    def scene(state: State) -> Scene:
        xi, beta = state["query"], state["beta"]
        origin = np.zeros(2)
        box = _box(lambda: ask(vertical_drop, xi, Y, beta) / 0.8)
        across = Axis("distance along the hop", -0.2 * box, 0.8 * box)
        height = Axis("height above the query", 1 - 0.85 * box, 1 + 0.15 * box)

        @cache
        def start() -> np.ndarray:
            return np.append(xi, ask(energy, xi, Y, beta))

        @cache
        def normal() -> np.ndarray:
            return ask(unit_normal, xi, Y, beta, shape=(3,))

        @cache
        def length() -> float:
            return ask(hop_length, xi, Y, beta)

        @cache
        def apex() -> np.ndarray:
            return ask(hop_apex, xi, Y, beta, shape=(3,))

        @cache
        def parts() -> np.ndarray:
            return ask(drop_parts, xi, Y, beta, shape=(3,))

        @cache
        def ahead() -> np.ndarray:
            """Return the direction in the plane that the normal leans to, of length 1."""
            lean = np.linalg.norm(normal()[:2])
            return normal()[:2] / lean if lean > 1e-9 else np.array([1.0, 0.0])

        @cache
        def base() -> float:
            return ask(energy, origin, Y, beta)

        def landscape() -> Field:
            return Field(_above, (energy, Y, beta, base()), name="energy")

        def hop_above() -> Iterator[Mark]:
            yield Path([xi, apex()[:2]], "landing", label="hop", arrow=True)
            yield Points(apex()[:2], "landing", label="landing")

        def in_space(points: list) -> np.ndarray:
            return np.array(points) - [0, 0, base()]

        def in_slice(points: list) -> np.ndarray:
            relative = np.array(points) - start()
            return np.column_stack([relative[:, :2] @ ahead(), relative[:, 2]])

        def walk(view: Callable) -> Iterator[Mark]:
            walked = view([start(), start() + length() * normal()])
            yield Path(walked, "query", label="along the normal")
            yield Points(walked[:1], "query", names=("ξ",))
            yield Points(view([apex()]), "other", names=("apex",))

        def drop(view: Callable) -> Iterator[Mark]:
            heights = apex()[2] - np.append(0.0, np.cumsum(parts()))
            ends = view([np.append(apex()[:2], z) for z in heights])
            for k, (role, label) in enumerate(PARTS):
                yield Path(ends[k : k + 2], role, label=label)

        def curves() -> Iterator[Mark]:
            ends = np.array([across.low, across.high])
            at = np.linspace(*ends, 31)
            slope = np.linalg.norm(normal()[:2]) / normal()[2]
            touching = np.column_stack([at, at**2 / 2 - slope * at])
            along = (energy, xi, ahead(), Y, beta, start()[2])
            yield Band(ends, np.full(2, height.low), np.zeros(2), label="below the query's level")
            yield Curve(height_along, along, "ink", "surface", name="energy")
            yield Path(touching, "ink", label="touching parabola (dots)", dots=True)

        def walk_words() -> str:
            rise = apex()[2] - start()[2]
            return (
                f"A walk of {length():.3f} along the normal gains {rise:.3f} in height and ends "
                f"above {place(apex()[:2])}, the landing."
            )

        def drop_words() -> str:
            pieces = " + ".join(f"{part:.3f}" for part in parts())
            fall = ask(vertical_drop, xi, Y, beta)
            return f"From there the surface is {fall:.3f} below: {pieces} (rise, bowl, bend)."

        above = [
            landscape,
            Points(Y, "token", "tokens", numbered("y", len(Y))),
            hop_above,
            Points(xi, "query", "query", ("ξ",), handle="query"),
        ]
        return Scene(
            [
                Panel("The surface from above", *PLANE, above, equal=True),
                Panel(
                    "The hop on the surface",
                    *PLANE,
                    [landscape, lambda: walk(in_space), lambda: drop(in_space)],
                    z=upright,
                ),
                Panel(
                    "The slice along the hop",
                    across,
                    height,
                    [curves, lambda: drop(in_slice), lambda: walk(in_slice)],
                    equal=True,
                ),
            ],
            [f"The query {place(xi)} at β = {beta:.3g}.", walk_words, drop_words],
        )

    return Picture(
        scene, points={"query": query}, controls={"beta": log_slider(BETA, 0.125, 16.0, 4.0)}
    )


def other_bowls(
    energy: Callable,
    energy_grad: Callable,
    hop_apex: Callable,
    *,
    tokens: np.ndarray = EIGHT_TOKENS[:3],
    query: np.ndarray = NEAR_QUERY,
    beta: float = 1.0,
) -> Picture:
    """Show a hop over a bowl of another curvature c, with a rise that the learner chooses.

    The surface over the bowl c/2 times the squared length is the surface of `energy` for tokens
    Y / c at c times β, drawn c times as tall. So `hop_apex` serves every bowl: with c times the
    rise it ends above the same place.

    Parameters
    ----------
    energy, energy_grad, hop_apex : callable
        Each of (xi, Y, beta), and `hop_apex` of a rise too; the last is the learner's. The
        landing aY / c is drawn from the second, the walk from the third.
    tokens : array, (n, 2)
        The centres.
    query : array, (2,)
        The query.
    beta : float
        Inverse temperature.

    Returns
    -------
    Picture
        Its controls are "c" and "rise".
    """
    Y, xi = np.array(tokens, dtype=float), np.array(query, dtype=float)
    rises = np.linspace(0.0, 4.25, 35)

    def scene(state: State) -> Scene:
        c, rise = state["c"], state["rise"]

        @cache
        def landing() -> np.ndarray:
            return (xi - ask(energy_grad, xi, Y, beta, shape=(2,))) / c

        @cache
        def ahead() -> np.ndarray:
            way = landing() - xi
            size = np.linalg.norm(way)
            return way / size if size > 1e-9 else np.array([1.0, 0.0])

        def reached(gain: float) -> np.ndarray:
            return ask(hop_apex, xi, Y / c, c * beta, c * gain, shape=(3,))[:2]

        def miss(gain: float) -> float:
            return float(np.linalg.norm(reached(gain) - landing()))

        def along(at: np.ndarray) -> float:
            return (at - xi) @ ahead()

        def below(at: np.ndarray) -> float:
            heights = [ask(energy, point, Y / c, c * beta) for point in (at, xi)]
            return c * (heights[0] - heights[1])

        def size() -> float:
            """Return the side of the square that holds landing and apex, and room for a name."""
            wide = max(along(landing()), along(reached(rise))) / 0.58
            return max(wide, rise / 0.45, -below(landing()) / 0.35)

        def surface() -> Iterator[Mark]:
            values = (energy, xi, ahead(), Y / c, c * beta, ask(energy, xi, Y / c, c * beta), c)
            yield Curve(height_along, values, "ink", "surface", name="energy")
            yield Points([0.0, 0.0], "query", names=("ξ",))
            at = [along(landing()), below(landing())]
            yield Points(at, "landing", label="landing aY / c")

        def hop() -> Iterator[Mark]:
            end = reached(rise)
            top = [along(end), rise]
            yield Path([[0, 0], top], "query", label="along the normal")
            if below(end) < rise:
                yield Path([top, [top[0], below(end)]], "other", label="straight down")
            yield Points(top, "other", names=("apex",))

        def misses() -> Iterator[Mark]:
            curve = np.column_stack([rises, [miss(gain) for gain in rises]])
            yield Path(curve, "other", label="miss")
            yield Points([rise, miss(rise)], "query", label="this rise")

        def words() -> str:
            gap = rise - below(reached(rise))
            return (
                f"Bowl of curvature c = {c:.3g}: after a rise of {rise:.3g} the apex is "
                f"{miss(rise):.3f} away from the place above the landing. There the surface is "
                f"{abs(gap):.3f} {'below' if gap >= 0 else 'above'} it."
            )

        box = _box(size)
        across = Axis("distance along the hop", -0.2 * box, 0.8 * box)
        height = Axis("height above the query", -0.4 * box, 0.6 * box)
        return Scene(
            [
                Panel("The slice along the hop", across, height, [surface, hop], equal=True),
                Panel(
                    "How far the apex misses the landing",
                    Axis("rise", 0.0, 4.25),
                    Axis("miss", -0.03 * box, 0.87 * box),
                    [misses],
                ),
            ],
            [words],
        )

    return Picture(
        scene,
        controls={
            "c": log_slider("bowl c", 0.25, 4.0, 2.0),
            "rise": log_slider("rise", 0.25, 4.0, 1.0),
        },
    )


def large_drops(vertical_drop: Callable, drop_parts: Callable) -> Picture:
    """Show how the drop grows with the length of query and tokens, in any of several dimensions.

    Query and tokens have one length and random directions; β is 1 over the root of the dimension.
    Everything is an average over the same draws, so that the parts add up.

    Parameters
    ----------
    vertical_drop, drop_parts : callable
        The learner's, each of (xi, Y, beta).

    Returns
    -------
    Picture
        Its controls are "norm" and "d".
    """
    lengths = np.linspace(1.0, 8.0, 57)

    def scene(state: State) -> Scene:
        norm, d = state["norm"], state["d"]

        @cache
        def parts() -> np.ndarray:
            return np.mean(
                [ask(drop_parts, *hop, shape=(3,)) for hop in _random_hops(d, norm)], axis=0
            )

        @cache
        def drop() -> float:
            return _mean_drop(norm, vertical_drop, d)

        def curves() -> Iterator[Mark]:
            yield Curve(_mean_drop, (vertical_drop, d), "landing", "drop", name="vertical_drop")
            longest = np.column_stack([lengths, 1 + lengths**2 / 2])
            yield Path(longest, "ink", label="1 + ½L²: a hop to 0, no bend")
            yield Points([norm, drop()], "query", label="this length")

        def bars() -> Mark:
            return Bars(parts(), "landing")

        def words() -> str:
            return (
                f"Query and {OTHERS} tokens of length {norm:.3g} in {d} dimensions: on average "
                f"over {DRAWS} draws the drop is {drop():.2f}."
            )

        def part_words() -> str:
            rise, bowl, bend = parts()
            return f"Its parts: rise {rise:.2f}, bowl {bowl:.2f}, bend {bend:.2f}."

        return Scene(
            [
                Panel(
                    "The drop over the length of the tokens",
                    Axis("length of query and tokens", 0.75, 8.25),
                    Axis("drop", 0.0, 36.0),
                    [curves],
                ),
                Panel(
                    "Its three parts",
                    Axis("part", -0.6, 2.6, names=("rise", "bowl", "bend")),
                    Axis("energy units", 0.0, 36.0),
                    [bars],
                ),
            ],
            [words, part_words],
        )

    return Picture(
        scene,
        controls={
            "norm": slider("length", 1.0, 8.0, 8.0, step=0.25),
            "d": ipywidgets.SelectionSlider(options=DIMENSIONS, value=64, description="d"),
        },
    )


def _box(size: Callable[[], float]) -> float:
    """Return the side of the square for a hop; the second smallest when it cannot be measured."""
    try:
        needed = size()
    except TroubleError:
        return BOXES[1]
    return next((box for box in BOXES if needed <= box), BOXES[-1])


@cache
def _directions(d: int) -> np.ndarray:
    """Draw unit vectors (DRAWS, 1 + OTHERS, d): in each draw a query and its tokens."""
    at = np.random.default_rng(d).normal(size=(DRAWS, 1 + OTHERS, d))
    return at / np.linalg.norm(at, axis=2, keepdims=True)


def _random_hops(d: int, norm: float) -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
    for query, *tokens in norm * _directions(d):
        yield query, np.array(tokens), d**-0.5


def _mean_drop(norm: float, vertical_drop: Callable, d: int) -> float:
    return float(np.mean([ask(vertical_drop, *hop) for hop in _random_hops(d, norm)]))


def _above(xi: np.ndarray, energy: Callable, Y: np.ndarray, beta: float, base: float) -> float:
    """Return the energy counted from `base`: without it a surface leaves its box as β falls."""
    return energy(xi, Y, beta) - base
