"""The pictures that lessons call by name, built on `Picture` and `Scene`."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

import ipywidgets
import numpy as np

from hopping import draw
from hopping.explore.scene import (
    Axis,
    Band,
    Bars,
    Curve,
    Field,
    Mark,
    MarkMaker,
    Note,
    Panel,
    Path,
    Points,
    Scene,
    TroubleError,
    ask,
    care,
    name_of,
)
from hopping.explore.view import Picture, State, count_slider, log_slider

BETA = "β"
# Fixture A of the course and five more, so that n can grow.
EIGHT_TOKENS = np.array(
    [[1, 0.5], [-0.5, 1.25], [0.25, -1], [-1, -0.5], [1.5, -0.75], [0, 0.5], [-1.25, 0.5], [0.5, 1]]
)
QUERY = np.array([0.75, -0.5])


def landscape(
    energy: Callable,
    tokens: np.ndarray,
    query: np.ndarray | None = None,
    beta: float = 1.0,
    landing: Callable | None = None,
    *,
    beta_range: tuple[float, float] = (0.25, 16.0),
    limits: tuple[float, float] = (-2.0, 2.0),
    heights: tuple[float, float] | None = None,
    apex: Callable | None = None,
    controls: Mapping[str, ipywidgets.Widget] | None = None,
    layers: Sequence[Callable[[State], object]] = (),
) -> Picture:
    """Show the landscape of an energy: drag a token, the query or β and see it move.

    Parameters
    ----------
    energy : callable
        energy(xi, Y, beta) -> float, the learner's.
    tokens : array, (n, 2)
        Where the tokens (or centres) start.
    query : array, (2,), optional
        Where the query starts; without it there is none.
    beta : float
        Where β starts.
    landing : callable, optional
        landing(xi, Y, beta) -> (2,), the learner's; the hop is drawn as an arrow to it.
    beta_range : (float, float)
        Ends of the slider.
    limits : (float, float)
        Ends of both axes.
    heights : (float, float), optional
        Ends of the height axis. With them the landscape is shown as a surface too, and the hop
        on it: along the normal to the apex, then straight down.
    apex : callable, optional
        apex(xi, Y, beta) -> (3,), the learner's; one above the query's energy over the landing
        when there is none.
    controls : mapping of str to widget, optional
        Further controls; their values are in the state by these names.
    layers : sequence of callables
        Each takes the state and returns what to add: a mark or several on the landscape, or a
        `Panel` or several beside it. The state has "tokens", "query", "beta" and the controls.

    Returns
    -------
    Picture

    Examples
    --------
    >>> landscape(energy, Y, xi, 4.0, cccp_step)                        # doctest: +SKIP
    >>> landscape(energy, Y, xi, 4.0, cccp_step, heights=(-1.5, 3.0))   # doctest: +SKIP
    >>> def path(state):                                                # doctest: +SKIP
    ...     return Path(cccp_path(state["query"], state["tokens"], state["beta"]), dots=True)
    >>> landscape(energy, Y, xi, 4.0, cccp_step, layers=[path])         # doctest: +SKIP
    """
    tokens = np.array(tokens, dtype=float)
    names = draw.numbered("y", len(tokens))
    x, y = Axis("ξ₁", *limits), Axis("ξ₂", *limits)

    def scene(state: State) -> Scene:
        Y, beta = state["tokens"], state["beta"]
        xi = state.get("query")
        field = Field(energy, (Y, beta))

        def hop() -> Iterator[Mark]:
            to = ask(landing, xi, Y, beta, shape=xi.shape)
            yield Path([xi, to], "landing", label="hop", arrow=True)
            yield Points(to, "landing", label="landing")

        flat: list[Mark | MarkMaker] = [field, Points(Y, "token", "tokens", names, handle="tokens")]
        flat += [hop] if landing and xi is not None else []
        panels = []
        for layer in layers:
            added, beside = _layer(layer, state)
            flat += added
            panels += beside
        if xi is not None:
            flat.append(Points(xi, "query", "query", ("ξ",), handle="query"))
        panels.insert(0, Panel("Energy from above", x, y, flat, equal=True))
        if heights:
            solid = [field]
            if landing and xi is not None:
                solid.append(lambda: _hop_in_space(energy, landing, apex, xi, Y, beta))
            z = Axis("E", *heights)
            panels.insert(1, Panel("Energy as a surface", x, y, solid, z=z))

        def query_words() -> str:
            return f"The query at {place(xi)} has energy {ask(energy, xi, Y, beta):.3f}."

        def hop_words() -> str:
            to = ask(landing, xi, Y, beta, shape=xi.shape)
            return f"Its hop lands at {place(to)}, energy {ask(energy, to, Y, beta):.3f}."

        words = [f"Energy of {counted(len(Y), 'token')} at β = {beta:.3g}."]
        if xi is not None:
            words += [query_words, hop_words] if landing else [query_words]
        return Scene(panels, words)

    points = {"tokens": tokens} | ({} if query is None else {"query": query})
    sliders = {"beta": log_slider(BETA, *beta_range, beta)} | dict(controls or {})
    return Picture(scene, points=points, controls=sliders)


def _layer(layer: Callable, state: State) -> tuple[list, list[Panel]]:
    """Ask a layer what it adds: marks on the landscape, and panels beside it."""
    try:
        with care(name_of(layer)):
            added = layer(state)
            items = list(added) if isinstance(added, Sequence | Iterator) else [added]
    except TroubleError as trouble:
        return [Note(str(trouble))], []
    panels = [item for item in items if isinstance(item, Panel)]
    return [item for item in items if not isinstance(item, Panel)], panels


def _hop_in_space(
    energy: Callable,
    landing: Callable,
    apex: Callable | None,
    xi: np.ndarray,
    Y: np.ndarray,
    beta: float,
) -> Iterator[Mark]:
    to = ask(landing, xi, Y, beta, shape=(2,))
    start = ask(energy, xi, Y, beta)
    top = ask(apex, xi, Y, beta, shape=(3,)) if apex else np.array([*to, start + 1])
    ground = ask(energy, to, Y, beta)
    yield Path([[*xi, start], top], "query", label="normal")
    yield Path([top, [*to, ground]], "landing", label="drop")
    yield Points([[*xi, start]], "query", label="query")
    yield Points([top], "other", label="apex")
    yield Points([[*to, ground]], "landing", label="landing")


def scores_and_weights(
    lse: Callable,
    attention_weights: Callable,
    lse_grad: Callable,
    fd_grad: Callable,
    *,
    tokens: np.ndarray = EIGHT_TOKENS,
    query: np.ndarray = QUERY,
) -> Picture:
    """Show how scores become weights, lse in its band, and its gradient found in two ways.

    The button adds 1000 to every score: each token gets a third coordinate of 1000 and the query
    a third coordinate of 1, so the learner's functions see nothing unusual.

    Parameters
    ----------
    lse, attention_weights, lse_grad : callable
        The learner's, each of (xi, Y, beta).
    fd_grad : callable
        fd_grad(f, xi), the learner's.
    tokens : array, (n, 2)
        The tokens the slider of n chooses from, first ones first.
    query : array, (2,)
        Where the query starts.

    Returns
    -------
    Picture
        Its controls are "beta", "n" and "shift".
    """
    tokens = np.array(tokens, dtype=float)
    x, y = Axis("ξ₁", -2.0, 2.0), Axis("ξ₂", -2.0, 2.0)
    betas = np.geomspace(2.0**-6, 64.0, 97)
    places = Axis("token", -0.6, len(tokens) - 0.4, names=draw.numbered("y", len(tokens)))

    def scene(state: State) -> Scene:
        Y, xi, beta = state["tokens"][: state["n"]], state["query"], state["beta"]
        shift = 1000.0 if state["shift"] else 0.0
        up_xi, up_Y = _lifted(xi, Y, shift)
        scores = up_Y @ up_xi
        top = scores.max()
        n = len(Y)

        def gradient() -> Iterator[Mark]:
            to = ask(lse_grad, up_xi, up_Y, beta, shape=(3,))[:2]
            yield Path([[0, 0], to], "landing", label="∇lse", arrow=True)
            yield Points(to, "landing", label="weighted average")

        def weights() -> Iterator[Mark]:
            yield Bars(ask(attention_weights, up_xi, up_Y, beta, shape=(n,)), "landing")

        def now() -> Iterator[Mark]:
            at = [beta, ask(lse, up_xi, up_Y, beta)]
            yield Points(at, "query", label=f"β = {beta:.3g}")

        def both() -> Iterator[Mark]:
            formula, differences = two_gradients()
            yield Bars(formula, "landing", "formula", slot=(0, 2))
            yield Bars(differences, "other", "finite differences", slot=(1, 2))

        def two_gradients() -> tuple[np.ndarray, np.ndarray]:
            def height(at: np.ndarray) -> float:
                return lse(*_lifted(at, Y, shift), beta)

            formula = ask(lse_grad, up_xi, up_Y, beta, shape=(3,))[:2]
            return formula, ask(fd_grad, height, xi, shape=(2,))

        def weight_words() -> str:
            given = ask(attention_weights, up_xi, up_Y, beta, shape=(n,))
            best = int(np.argmax(given))
            return f"The largest weight, {given[best]:.3f}, is that of {places.names[best]}."

        def lse_words() -> str:
            above = ask(lse, up_xi, up_Y, beta) - top
            room = np.log(n) / beta
            return f"lse is {above:.3g} above the largest score; the band allows {room:.3g}."

        def gradient_words() -> str:
            formula, differences = two_gradients()
            apart = np.abs(formula - differences).max()
            return f"Formula and finite differences differ by {apart:.1e}."

        added = ", 1000 added to every score" if shift else ""
        first = f"{counted(n, 'token')} at β = {beta:.3g}{added}."
        words = [first, weight_words, lse_words, gradient_words]
        names = places.names[:n]
        plane = Panel(
            "Tokens and query, contours of lse",
            x,
            y,
            [
                Field(_lse_at, (lse, Y, beta, shift), name="lse"),
                Points(Y, "token", "tokens", names, handle="tokens"),
                gradient,
                Points(xi, "query", "query", ("ξ",), handle="query"),
            ],
            equal=True,
        )
        bars = Axis("score", shift - 4.0, shift + 4.0)
        panels = [
            plane,
            Panel("Scores", places, bars, [Bars(scores, "token", base=shift)]),
            Panel("Weights", places, Axis("weight", 0.0, 1.1), [weights]),
            Panel(
                "lse between its bounds",
                Axis("β", 2.0**-6, 64.0, log=True),
                Axis("score", shift - 2.0, shift + 6.0),
                [
                    Band(betas, np.full(97, top), top + np.log(n) / betas, label="allowed"),
                    Path(np.column_stack([betas, np.full(97, top)]), "token", "largest score"),
                    Path(
                        np.column_stack([betas, top + np.log(n) / betas]),
                        "other",
                        "largest score + ln n / β",
                    ),
                    Curve(_lse_over_beta, (lse, up_xi, up_Y), "landing", "lse", name="lse"),
                    now,
                ],
            ),
            Panel(
                "Gradient of lse in two ways",
                Axis("coordinate", -0.6, 1.6, names=("ξ₁", "ξ₂")),
                Axis("∂lse/∂ξ", -2.0, 2.0),
                [both],
            ),
        ]
        return Scene(panels, words)

    return Picture(
        scene,
        points={"tokens": tokens, "query": query},
        controls={
            "beta": log_slider(BETA, 2.0**-6, 64.0, 1.0),
            "n": count_slider("n", 1, len(tokens), min(3, len(tokens))),
            "shift": ipywidgets.ToggleButton(
                False,
                description="+1000 to every score",
                layout=ipywidgets.Layout(width="max-content"),
            ),
        },
    )


def _lifted(xi: np.ndarray, Y: np.ndarray, shift: float) -> tuple[np.ndarray, np.ndarray]:
    """Add `shift` to every score: a third coordinate, 1 in the query and `shift` in each token."""
    return np.append(xi, 1.0), np.column_stack([Y, np.full(len(Y), shift)])


def _lse_at(xi: np.ndarray, lse: Callable, Y: np.ndarray, beta: float, shift: float) -> float:
    return lse(*_lifted(xi, Y, shift), beta)


def _lse_over_beta(beta: float, lse: Callable, xi: np.ndarray, Y: np.ndarray) -> float:
    return lse(xi, Y, beta)


def place(at: np.ndarray) -> str:
    """Write a point as words do: (0.75, −0.50)."""
    return "(" + ", ".join(draw.short(number) for number in at) + ")"


def counted(number: int, thing: str) -> str:
    """Write a number of things as words do: 1 valley, 2 valleys."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def walk_of(step: Callable[[np.ndarray], np.ndarray], start: np.ndarray, steps: int) -> np.ndarray:
    """Return the start and where each step leads, (steps + 1, d)."""
    places = itertools.accumulate(range(steps), lambda at, _: step(at), initial=start)
    return np.array(list(places))


def height_along(
    distance: float,
    energy: Callable,
    xi: np.ndarray,
    way: np.ndarray,
    Y: np.ndarray,
    beta: float,
    base: float,
    tall: float = 1.0,
) -> float:
    """Return `tall` times the height above `base`, at `distance` times `way` from the query."""
    return tall * (energy(xi + distance * way, Y, beta) - base)
