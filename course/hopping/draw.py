"""Pictures of the course: pure functions that draw plain data on Matplotlib axes.

Every function takes axes first, then arrays (or a function of one point), and returns the list
of artists it made. Nothing here keeps state and nothing is registered with pyplot: `figure`
makes a figure in the style of the course that is forgotten when the last name for it is.

Roles have the same colour, marker and line everywhere (Okabe and Ito's palette, which stays
apart for the common colour blindnesses): the query, the tokens (or centres), the landing (and
any trajectory), and whatever these are compared with. `ink` is the neutral colour of bounds and
marks that play no role.
"""

import base64
import html
import io
import itertools
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path

import matplotlib
import numpy as np
from IPython.display import display
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import ListedColormap, Normalize, PowerNorm
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from PIL import Image

STYLE = Path(__file__).with_name("hopping.mplstyle")
INK = "#222222"
PAPER = "#FFFFFF"
# Read once: matplotlib.style would read its whole library, and this file again for each artist.
_LOOK = matplotlib.rc_params_from_file(STYLE, use_default_template=False)
MINUS = "−"

Energy = Callable[[np.ndarray], float]


@dataclass(frozen=True)
class Role:
    """How one role looks: colour, marker, line style and marker size (points)."""

    color: str
    marker: str
    linestyle: str
    size: float


ROLES = {
    "query": Role("#D55E00", "D", ":", 9.0),
    "token": Role("#0072B2", "o", "--", 9.0),
    "landing": Role("#009E73", "*", "-", 15.0),
    "other": Role("#CC79A7", "^", "-.", 10.0),
    "ink": Role(INK, "s", "-", 5.0),
}

WIDE = 1.8  # times the size of a role's marker
# White outlines keep marks and labels readable on every colour of a landscape.
_HALO = [withStroke(linewidth=3, foreground=PAPER)]


class _Picture(Figure):
    """A figure that shows itself in a notebook without pyplot, with a sentence as its text."""

    words = ""

    def _ipython_display_(self) -> None:
        # A mere MIME bundle would be drawn once more, by IPython's own printer of figures.
        data, metadata = picture_bundle(self, self.words)
        display(data, metadata=metadata, raw=True)


def picture_bundle(figure: Figure, words: str) -> tuple[dict, dict]:
    """Return a figure as a MIME bundle: the picture, and the words as its text alternative.

    The HTML holds the same PNG with the words as alternative text, because nbconvert's pages
    drop the alternative text of a plain PNG. 256 colours make it a quarter of the size.

    Parameters
    ----------
    figure : Figure
        What is shown.
    words : str
        One or two sentences that say what the figure shows.

    Returns
    -------
    tuple of (dict, dict)
        Data and metadata as IPython's display protocol wants them.
    """
    # Figure.savefig would lay the figure out and draw it twice, and this would read its PNG again.
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    image = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    small = io.BytesIO()
    image.quantize(255, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(small, "png")
    png = base64.b64encode(small.getvalue()).decode()
    page = f'<img alt="{html.escape(words)}" src="data:image/png;base64,{png}">'
    return (
        {"image/png": png, "text/html": page, "text/plain": words},
        {"image/png": {"alt": words}},
    )


@contextmanager
def figure(
    ncols: int = 1,
    nrows: int = 1,
    *,
    words: str = "",
    size: tuple[float, float] | None = None,
    projections: Sequence[str | None] = (),
) -> Iterator[tuple[Figure, np.ndarray]]:
    """Make a figure in the style of the course, and draw in that style inside the `with` block.

    Parameters
    ----------
    ncols, nrows : int
        How many axes beside and below each other.
    words : str
        What the figure shows, in a sentence. It is written below the picture and is its text
        alternative.
    size : (float, float), optional
        Width and height in inches; 4.6 by 4 for each axes by default.
    projections : sequence of str or None
        Matplotlib's projection of each axes, row by row; missing ones are flat, "3d" is a
        surface.

    Yields
    ------
    figure : Figure
        It is unknown to pyplot, so it cannot leak. Name it last in a cell to show it.
    axes : ndarray of Axes, (nrows * ncols,)
        Row by row.

    Examples
    --------
    >>> with figure(words="The tokens.") as (picture, (ax,)):
    ...     _ = draw_tokens(ax, [[1, 0.5], [-0.5, 1.25]])
    >>> picture.axes[0] is ax
    True
    """
    count = nrows * ncols
    kinds = [*projections, *[None] * (count - len(projections))]
    with matplotlib.rc_context(_LOOK):
        size = size or (4.6 * ncols, 4.0 * nrows)
        picture = _Picture(figsize=size)
        picture.words = words
        axes = [
            picture.add_subplot(nrows, ncols, place + 1, projection=kind)
            for place, kind in enumerate(kinds)
        ]
        if words:
            letters = int(11 * size[0])  # of 12 pt DejaVu Sans to the inch, digits among them
            picture.supxlabel("\n".join(textwrap.wrap(words, letters)), fontsize=12)
        yield picture, np.array(axes, dtype=object)


def _styled(draw: Callable) -> Callable:
    """Draw in the style of the course, whoever made the axes."""

    @wraps(draw)
    def styled(*arguments: object, **options: object) -> list[Artist]:
        with matplotlib.rc_context(_LOOK):
            return draw(*arguments, **options)

    return styled


# ---------------------------------------------------------------- landscapes


def landscape_colors(signed: bool = False) -> np.ndarray:
    """Return the colour table of a landscape as (256, 3) bytes, lowest value first.

    Viridis, or for signed quantities a diverging map that is white at 0, both mixed with white
    so that points, arrows and labels on it stay readable.
    """
    table = matplotlib.colormaps["PuOr" if signed else "viridis"](np.arange(256))[:, :3]
    return np.round(255 * (0.62 * table + 0.38)).astype(np.uint8)


def contour_levels(values: np.ndarray, signed: bool = False, count: int = 9) -> list[float]:
    """Choose the heights of contour lines so that shallow valleys are seen beside steep walls.

    A landscape in a bowl rises like a square, so the levels do too: they are as far apart as
    rings in a bowl. Signed quantities get even levels around 0.

    Parameters
    ----------
    values : array of floats
        The sampled landscape; nan and infinite values are left out.
    signed : bool
        Whether 0 is the middle.
    count : int
        How many levels at most.

    Returns
    -------
    list of float
        Ascending, rounded to as many decimals as tell them apart; empty for a flat landscape.
    """
    low, high = value_range(values, signed)
    if not high > low:
        return []
    steps = np.arange(1, count + 1) / (count + 1)
    heights = low + (high - low) * (steps if signed else steps**2)
    gap = float(np.min(np.diff(heights)))
    decimals = int(np.clip(np.ceil(-np.log10(gap)), 0, 12)) if gap > 0 else 12
    rounded = np.round(heights, decimals)
    return sorted({float(level) for level in rounded if low < level < high})


def level_text(level: float) -> str:
    """Write the height of a contour line in all its digits, with a real minus sign."""
    plain = level == 0 or abs(level) >= 1e-4
    level += 0.0  # a negative zero is written without its sign
    text = np.format_float_positional(level, trim="-") if plain else f"{level:g}"
    return text.replace("-", MINUS)


def value_range(values: np.ndarray, signed: bool = False) -> tuple[float, float]:
    """Return the lowest and highest finite value; symmetric around 0 for signed quantities."""
    finite = np.asarray(values)[np.isfinite(values)]
    if finite.size == 0:
        return 0.0, 0.0
    if signed:
        reach = float(np.abs(finite).max())
        return -reach, reach
    return float(finite.min()), float(finite.max())


def sample(energy: Energy, xlim: tuple[float, float], ylim: tuple[float, float], side: int = 61):
    """Call a function of one point on a square grid.

    Parameters
    ----------
    energy : callable
        Takes a point (2,), returns a number.
    xlim, ylim : (float, float)
        First and last grid point in each direction.
    side : int
        Grid points in each direction.

    Returns
    -------
    ndarray, (side, side)
        Row 0 is the lowest y.
    """
    xs, ys = np.linspace(*xlim, side), np.linspace(*ylim, side)
    return np.array([[float(energy(np.array([x, y]))) for x in xs] for y in ys])


@_styled
def draw_landscape(
    ax: Axes,
    energy: Energy | np.ndarray,
    xlim: tuple[float, float] = (-2.0, 2.0),
    ylim: tuple[float, float] = (-2.0, 2.0),
    *,
    side: int = 61,
    signed: bool = False,
    levels: Sequence[float] | None = None,
) -> list[Artist]:
    """Draw a landscape over the plane: colour for height, and labelled contours.

    Parameters
    ----------
    ax : Axes
        Flat axes; they get equal aspect and these limits.
    energy : callable or ndarray, (rows, columns)
        A function of a point (2,), or its values on an even grid with the lowest y first.
    xlim, ylim : (float, float)
        What part of the plane.
    side : int
        Grid points in each direction when `energy` is a function.
    signed : bool
        The quantity has a sign: diverging colours, white at 0.
    levels : sequence of float, optional
        Heights of the contours; see `contour_levels`.

    Returns
    -------
    list of Artist
        The image, then the contour lines when the landscape has any.
    """
    values = sample(energy, xlim, ylim, side) if callable(energy) else np.asarray(energy)
    low, high = value_range(values, signed)
    levels = contour_levels(values, signed) if levels is None else list(levels)
    # The square root spreads the colours over the bottom of a bowl, like the levels.
    norm = Normalize(low, high) if signed else PowerNorm(0.5, low, high)
    masked = np.ma.masked_invalid(values)
    image = ax.imshow(
        masked,
        extent=(*xlim, *ylim),
        origin="lower",
        interpolation="bicubic",
        cmap=ListedColormap(landscape_colors(signed) / 255),
        norm=norm,
        zorder=0,
    )
    artists: list[Artist] = [image]
    if levels and min(values.shape) > 1:
        xs = np.linspace(*xlim, values.shape[1])
        ys = np.linspace(*ylim, values.shape[0])
        lines = ax.contour(
            xs, ys, masked, levels, colors=INK, linewidths=0.8, linestyles="-", alpha=0.6
        )
        # Gaps in the lines would stay where a height is taken away, and the halo makes its own.
        labels = ax.clabel(lines, fontsize=12, fmt=level_text, inline=False)
        for label in labels:
            label.set(path_effects=_HALO, alpha=1)
        artists.append(lines)
    ax.set(xlim=xlim, ylim=ylim, aspect="equal")
    return artists


@_styled
def draw_surface(
    ax: Axes,
    energy: Energy | np.ndarray,
    xlim: tuple[float, float] = (-2.0, 2.0),
    ylim: tuple[float, float] = (-2.0, 2.0),
    *,
    zlim: tuple[float, float] | None = None,
    side: int = 41,
    signed: bool = False,
) -> list[Artist]:
    """Draw a landscape as a surface in space.

    Parameters
    ----------
    ax : Axes3D
        Axes with projection "3d".
    energy : callable or ndarray, (rows, columns)
        As for `draw_landscape`.
    xlim, ylim : (float, float)
        What part of the plane.
    zlim : (float, float), optional
        Heights shown; what lies above is left out, so that the bottom can be seen.
    side : int
        Grid points in each direction when `energy` is a function.
    signed : bool
        The quantity has a sign: diverging colours, white at 0.

    Returns
    -------
    list of Artist
        The surface.
    """
    values = sample(energy, xlim, ylim, side) if callable(energy) else np.asarray(energy)
    low, high = value_range(values, signed)
    high = high if high > low else low + 1
    zlim = zlim or (low, high)
    grid = np.meshgrid(np.linspace(*xlim, values.shape[1]), np.linspace(*ylim, values.shape[0]))
    inside = np.clip(values, *zlim)
    ax.computed_zorder = False  # a hop is drawn over the surface, never hidden by it
    surface = ax.plot_surface(
        *grid,
        inside,
        cmap=ListedColormap(landscape_colors(signed) / 255),
        norm=Normalize(low, high) if signed else PowerNorm(0.5, low, high),
        rstride=max(1, values.shape[0] // 40),
        cstride=max(1, values.shape[1] // 40),
        linewidth=0.2,
        edgecolor=(0, 0, 0, 0.25),
        alpha=0.75,
    )
    ax.set(xlim=xlim, ylim=ylim, zlim=zlim)
    return [surface]


# ---------------------------------------------------------------- points, paths, bars


@_styled
def draw_points(
    ax: Axes,
    at: np.ndarray,
    role: str = "token",
    *,
    label: str = "",
    names: Sequence[str] = (),
    hollow: Sequence[bool] = (),
    wide: bool = False,
) -> list[Artist]:
    """Draw points with the marker of their role.

    Parameters
    ----------
    ax : Axes
        Flat axes for points (n, 2), axes with projection "3d" for (n, 3).
    at : array, (n, 2) or (n, 3)
        Where.
    role : str
        A key of `ROLES`.
    label : str
        What the legend calls them.
    names : sequence of str
        Written beside the first points.
    hollow : sequence of bool
        Points to be drawn as an outline only.
    wide : bool
        Draw them so large that the points drawn on them later do not hide them.

    Returns
    -------
    list of Artist
        One line of markers for the filled points, one for the hollow ones, then the names.
    """
    at, look = np.atleast_2d(np.asarray(at, dtype=float)), ROLES[role]
    empty = np.zeros(len(at), dtype=bool)
    empty[: len(hollow)] = np.asarray(hollow, dtype=bool)[: len(at)]
    artists: list[Artist] = []
    for which, face, edge in ((~empty, look.color, PAPER), (empty, PAPER, look.color)):
        if which.any():
            artists += ax.plot(
                *at[which].T,
                linestyle="none",
                marker=look.marker,
                markersize=look.size * (WIDE if wide else 1),
                markerfacecolor=face,
                markeredgecolor=edge,
                markeredgewidth=1.5,
                label=label or None,
                zorder=5,
            )
            label = ""  # one entry in the legend, even when some are hollow
    for point, name in zip(at, names, strict=False):
        options = {"color": INK, "path_effects": _HALO, "zorder": 6, "clip_on": True}
        if at.shape[1] == 2:
            options |= {"xytext": (7, 6), "textcoords": "offset points", "annotation_clip": True}
            artists.append(ax.annotate(name, point, **options))
        else:
            artists.append(ax.text(*point, f" {name}", **options))
    return artists


@_styled
def draw_path(
    ax: Axes,
    at: np.ndarray,
    role: str = "landing",
    *,
    label: str = "",
    arrow: bool = False,
    closed: bool = False,
    dots: bool = False,
) -> list[Artist]:
    """Draw a line through points, in the colour and line style of its role.

    Parameters
    ----------
    ax : Axes
        Flat axes for points (n, 2), axes with projection "3d" for (n, 3).
    at : array, (n, 2) or (n, 3)
        The corners in order; nan makes a gap.
    role : str
        A key of `ROLES`.
    label : str
        What the legend calls it.
    arrow : bool
        Draw an arrow head at the end (flat axes).
    closed : bool
        Return to the first corner.
    dots : bool
        Draw a dot at every corner.

    Returns
    -------
    list of Artist
        The line, then the arrow head.
    """
    at, look = np.atleast_2d(np.asarray(at, dtype=float)), ROLES[role]
    if closed:
        at = np.vstack([at, at[:1]])
    artists: list[Artist] = ax.plot(
        *at.T,
        color=look.color,
        linestyle=look.linestyle,
        linewidth=1.2 if role == "ink" else 2.2,
        marker="." if dots else "",
        label=label or None,
        zorder=4,
    )
    if arrow and len(at) > 1 and at.shape[1] == 2 and np.any(at[-1] != at[-2]):
        head = {"arrowstyle": "-|>,head_width=.35,head_length=.7", "color": look.color, "lw": 2.2}
        artists.append(ax.annotate("", at[-1], at[-2], arrowprops=head | {"shrinkB": 0}, zorder=4))
    return artists


@_styled
def draw_bars(
    ax: Axes,
    heights: Sequence[float],
    role: str = "token",
    *,
    label: str = "",
    names: Sequence[str] = (),
    base: float = 0.0,
    slot: tuple[int, int] = (0, 1),
) -> list[Artist]:
    """Draw one bar a number, with the number written at its end.

    Parameters
    ----------
    ax : Axes
        Flat axes.
    heights : sequence of float
        Bar k stands at k.
    role : str
        A key of `ROLES`.
    label : str
        What the legend calls them.
    names : sequence of str
        Written below the bars.
    base : float
        Where the bars start.
    slot : (int, int)
        Which of how many bars side by side: (0, 2) and (1, 2) are two halves.

    Returns
    -------
    list of Artist
        The bars, then their numbers.
    """
    heights, look = np.asarray(heights, dtype=float), ROLES[role]
    width = 0.8 / slot[1]
    places = np.arange(len(heights)) + (slot[0] - (slot[1] - 1) / 2) * width
    bars = ax.bar(
        places,
        heights - base,
        0.92 * width,
        bottom=base,
        color=look.color,
        edgecolor=INK,
        linewidth=0.8,
        linestyle=look.linestyle,
        hatch="" if slot[0] == 0 else "//",
        label=label or None,
    )
    texts = ax.bar_label(bars, [short(height) for height in heights], padding=2, fontsize=12)
    for text in texts:
        text.set(path_effects=_HALO, clip_on=True)
    ax.axhline(base, color=INK, linewidth=1)
    if len(names):
        ax.set_xticks(range(len(names)), names)
    return [*bars, *texts]


@_styled
def draw_band(
    ax: Axes,
    x: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    role: str = "ink",
    *,
    label: str = "",
) -> list[Artist]:
    """Shade what lies between two curves over the same x.

    Parameters
    ----------
    ax : Axes
        Flat axes.
    x, low, high : array, (n,)
        The curves.
    role : str
        A key of `ROLES`.
    label : str
        What the legend calls it.

    Returns
    -------
    list of Artist
        The shade.
    """
    shade = ax.fill_between(
        x, low, high, color=ROLES[role].color, alpha=0.13, linewidth=0, label=label or None
    )
    return [shade]


def short(number: float) -> str:
    """Write a number in a few figures, as it stands beside a bar or a point."""
    if not np.isfinite(number):
        return str(number)
    if number != 0 and not 1e-2 <= abs(number) < 1e4:
        digits, power = f"{number:.1e}".split("e")
        return f"{digits}e{int(power)}".replace("-", MINUS)
    digits = 1 if abs(number) >= 10 else 2
    text = f"{number:.{digits}f}"
    return (text.lstrip("-") if float(text) == 0 else text).replace("-", MINUS)


# ---------------------------------------------------------------- what the lessons show


def draw_tokens(ax: Axes, tokens: np.ndarray, *, label: str = "tokens") -> list[Artist]:
    """Draw tokens (or centres), the rows of `tokens` (n, 2), numbered y₁ to yₙ."""
    tokens = np.atleast_2d(tokens)
    return draw_points(ax, tokens, "token", label=label, names=numbered("y", len(tokens)))


def numbered(letter: str, count: int) -> tuple[str, ...]:
    """Return the names of `count` things: y₁, y₂, … for the letter y."""
    digits = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
    return tuple(letter + str(place + 1).translate(digits) for place in range(count))


def draw_query(ax: Axes, xi: np.ndarray, *, label: str = "query") -> list[Artist]:
    """Draw the query (2,)."""
    return draw_points(ax, xi, "query", label=label, names=("ξ",))


def draw_landing(ax: Axes, xi: np.ndarray, *, label: str = "landing") -> list[Artist]:
    """Draw a landing point (2,)."""
    return draw_points(ax, xi, "landing", label=label)


def draw_hop(ax: Axes, xi: np.ndarray, landing: np.ndarray, *, label: str = "hop") -> list[Artist]:
    """Draw a hop as an arrow from the query (2,) to its landing (2,)."""
    return draw_path(ax, [xi, landing], "landing", label=label, arrow=True)


def draw_trajectory(ax: Axes, points: np.ndarray, *, label: str = "trajectory") -> list[Artist]:
    """Draw hop after hop: a line with dots through `points` (k, 2)."""
    return draw_path(ax, points, "landing", label=label, dots=True)


@_styled
def draw_mixture(
    ax: Axes, x: np.ndarray, bumps: np.ndarray, *, total: np.ndarray | None = None
) -> list[Artist]:
    """Draw a mixture in one dimension: its bumps, and their sum.

    Parameters
    ----------
    ax : Axes
        Flat axes.
    x : array, (m,)
        Where the bumps are known.
    bumps : array, (n, m)
        One row a component, already scaled by its weight.
    total : array, (m,), optional
        The sum of the bumps; computed when it is not given.

    Returns
    -------
    list of Artist
        A line and a shade for each bump, then the line of the sum.
    """
    x, bumps = np.asarray(x, dtype=float), np.atleast_2d(np.asarray(bumps, dtype=float))
    total = bumps.sum(axis=0) if total is None else np.asarray(total)
    artists: list[Artist] = []
    for place, bump in enumerate(bumps):
        label = "components" if place == 0 else ""
        artists += draw_path(ax, np.column_stack([x, bump]), "token", label=label)
        artists += draw_band(ax, x, np.zeros_like(x), bump, "token")
    artists += draw_path(ax, np.column_stack([x, total]), "landing", label="mixture")
    ax.set(xlim=(x[0], x[-1]), ylim=(0, None), xlabel="ξ")
    return artists


@_styled
def draw_curvatures(ax: Axes, curvatures: Sequence[float]) -> list[Artist]:
    """Draw the curvatures of a landscape as bars: above 0 it curves up, below 0 down.

    Parameters
    ----------
    ax : Axes
        Flat axes.
    curvatures : sequence of float
        One a direction.

    Returns
    -------
    list of Artist
        The bars and their numbers.
    """
    curvatures = np.asarray(curvatures, dtype=float)
    names = numbered("λ", len(curvatures))
    artists = draw_bars(ax, curvatures, "landing", names=names)
    for bar, value in zip(artists, curvatures, strict=False):
        if value < 0:
            bar.set(facecolor=ROLES["other"].color, hatch="//")
    reach = 1.25 * max(1.0, np.abs(curvatures).max(initial=0))
    ax.set(ylim=(-reach, reach), ylabel="curvature")
    return artists


@_styled
def draw_scores_and_weights(
    axes: Sequence[Axes], scores: Sequence[float], weights: Sequence[float]
) -> list[Artist]:
    """Draw the scores of the tokens as bars, and beside them the weights they become.

    Parameters
    ----------
    axes : two Axes
        For the scores and for the weights.
    scores, weights : sequence of float, (n,)
        One a token.

    Returns
    -------
    list of Artist
        The bars and numbers of both.
    """
    scores, weights = np.asarray(scores, dtype=float), np.asarray(weights, dtype=float)
    names = numbered("y", len(scores))
    artists = draw_bars(axes[0], scores, "token", names=names)
    artists += draw_bars(axes[1], weights, "landing", names=names)
    low, high = min(0.0, scores.min()), max(0.0, scores.max())
    room = 0.15 * (high - low or 1.0)
    axes[0].set(ylim=(low - room * (low < 0), high + room), ylabel="score")
    axes[1].set(ylim=(0, 1.1), ylabel="weight")
    return artists


@_styled
def draw_lse_band(
    ax: Axes,
    betas: np.ndarray,
    lse: np.ndarray | Callable[[float], float],
    scores: Sequence[float],
    *,
    beta: float | None = None,
) -> list[Artist]:
    """Draw lse over β inside its band, between max s and max s + ln(n)/β.

    Parameters
    ----------
    ax : Axes
        Flat axes; β is drawn on a logarithmic axis.
    betas : array, (m,)
        Inverse temperatures, ascending and positive.
    lse : array, (m,) or callable
        lse at every β, or a function of β.
    scores : sequence of float, (n,)
        The scores whose lse it is.
    beta : float, optional
        Mark this β.

    Returns
    -------
    list of Artist
        The shade, its two edges, the curve, and the mark.
    """
    betas, scores = np.asarray(betas, dtype=float), np.asarray(scores, dtype=float)
    curve = np.array([lse(b) for b in betas]) if callable(lse) else np.asarray(lse)
    low = np.full_like(betas, scores.max())
    high = low + np.log(len(scores)) / betas
    artists = draw_band(ax, betas, low, high, label="where lse can be")
    artists += draw_path(ax, np.column_stack([betas, high]), "ink", label="max + ln n / β")
    artists += draw_path(ax, np.column_stack([betas, low]), "ink", label="max")
    artists += draw_path(ax, np.column_stack([betas, curve]), "landing", label="lse")
    if beta is not None:
        artists.append(ax.axvline(beta, color=ROLES["query"].color, linestyle=":"))
    ax.set(xscale="log", xlim=(betas[0], betas[-1]), xlabel="β", ylabel="score units")
    return artists


@_styled
def draw_gradient_comparison(
    ax: Axes, formula: Sequence[float], differences: Sequence[float]
) -> list[Artist]:
    """Draw a gradient by formula and by finite differences as pairs of bars.

    Parameters
    ----------
    ax : Axes
        Flat axes; the title says how far apart the two are.
    formula, differences : sequence of float, (d,)
        The two gradients.

    Returns
    -------
    list of Artist
        The bars and their numbers.
    """
    formula, differences = np.asarray(formula, float), np.asarray(differences, float)
    names = numbered("∂", len(formula))
    artists = draw_bars(ax, formula, "landing", label="formula", names=names, slot=(0, 2))
    artists += draw_bars(ax, differences, "other", label="finite differences", slot=(1, 2))
    ax.set_title(f"largest difference {np.abs(formula - differences).max():.1e}")
    ax.margins(y=0.2)
    return artists


@_styled
def draw_hop_on_surface(
    ax: Axes,
    start: np.ndarray,
    apex: np.ndarray,
    ground: float,
    *,
    parts: Sequence[float] = (),
) -> list[Artist]:
    """Draw a hop in space: along the normal to the apex, then straight down to the surface.

    Parameters
    ----------
    ax : Axes3D
        Axes with projection "3d".
    start : array, (3,)
        Query and its energy.
    apex : array, (3,)
        Where the walk along the normal ends.
    ground : float
        Height of the surface below the apex.
    parts : sequence of float, optional
        Lengths that add up to the drop, from the top down, each drawn in its own look.

    Returns
    -------
    list of Artist
        Normal, drop (in parts), then the points: query, apex, landing.
    """
    start, apex = np.asarray(start, dtype=float), np.asarray(apex, dtype=float)
    artists = draw_path(ax, [start, apex], "query", label="normal")
    if len(parts):
        heights = apex[2] - np.concatenate([[0.0], np.cumsum(parts)])
        looks = itertools.cycle([("other", "rise"), ("landing", "½‖g‖²"), ("token", "bend")])
        for (top, bottom), (role, name) in zip(itertools.pairwise(heights), looks, strict=False):
            (line,) = draw_path(ax, [[*apex[:2], top], [*apex[:2], bottom]], role, label=name)
            line.set(linewidth=4, solid_capstyle="butt", dash_capstyle="butt")
            artists.append(line)
    else:
        artists += draw_path(ax, [apex, [*apex[:2], ground]], "landing", label="drop")
    artists += draw_points(ax, start, "query", names=("ξ",))
    artists += draw_points(ax, apex, "other", names=("apex",))
    landing = draw_points(ax, [*apex[:2], ground], "landing", names=("landing",))
    if len(parts):
        landing[0].set(markersize=12, zorder=3)  # a short last part stays in sight before it
    return artists + landing
