"""The static twin: the scene of a picture drawn once by Matplotlib."""

import textwrap

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.contour import ContourSet
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox, ScaledTranslation

from hopping import draw
from hopping.explore.scene import Axis, Band, Bars, Grid, Mark, Note, Panel, Path, Points, Scene

NOTE_PAD = 6  # points between a message and its frame
POINTED = {role.marker for role in draw.ROLES.values()}  # other lines may have dots


def draw_scene(scene: Scene) -> Figure:
    """Draw a resolved scene as a figure, with its words below.

    Parameters
    ----------
    scene : Scene
        Without makers, fields or curves; see `hopping.explore.sampling.resolve`.

    Returns
    -------
    Figure
        Unknown to pyplot.
    """
    count = len(scene.panels)
    columns = 2 if count == 4 else min(count, 3)
    rows = -(-count // columns)
    # The last row may be short: its axes are still needed to keep the grid.
    kinds = ["3d" if panel.z else None for panel in scene.panels]
    with draw.figure(
        columns, rows, words=scene.words, size=(4.8 * columns, 5.2 * rows), projections=kinds
    ) as (figure, axes):
        for ax, panel in zip(axes, scene.panels, strict=False):
            draw_panel(ax, panel)
        for ax in axes[count:]:
            ax.remove()
        FigureCanvasAgg(figure)  # knows how large texts are
        figure.get_layout_engine().execute(figure)  # now the panels have their sizes
        figure.set_layout_engine("none")  # once is enough: it takes as long as the drawing
        for ax in axes[:count]:
            _thin_labels(ax)
    return figure


def draw_panel(ax: Axes, panel: Panel) -> None:
    """Draw one panel with its marks, limits, labels and legend on `ax`."""
    for mark in panel.marks:
        draw_mark(ax, panel, mark)
    ax.set(title=panel.title, xlabel=panel.x.label, ylabel=panel.y.label)
    _limit(ax.set_xlim, ax.set_xscale, panel.x)
    _limit(ax.set_ylim, ax.set_yscale, panel.y)
    if panel.equal or panel.z:
        ax.locator_params(nbins=5)  # these panels are narrow
    if panel.x.names:
        ax.set_xticks(range(len(panel.x.names)), panel.x.names)
    if panel.y.names:
        ax.set_yticks(range(len(panel.y.names)), panel.y.names)
    if panel.z:
        ax.set(zlim=(panel.z.low, panel.z.high), zlabel=panel.z.label)
    if panel.equal:
        ax.set_aspect("equal")
    if panel.z is None and ax.get_legend_handles_labels()[0]:
        # A distance in inches clears the label of x however low the panel becomes.
        below = ax.transAxes + ScaledTranslation(0, -0.57, ax.figure.dpi_scale_trans)
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, 0), "bbox_transform": below}
        ax.legend(ncols=2, borderaxespad=0, **place)
    notes = [mark.text for mark in panel.marks if isinstance(mark, Note)]
    if notes:
        text = "\n".join(textwrap.fill(note, 34) for note in dict.fromkeys(notes))
        _write_note(ax, text, above=len(notes) < len(panel.marks))


def _write_note(ax: Axes, text: str, *, above: bool) -> None:
    """Write a message in the middle of empty axes, or above those on which something is drawn."""
    box = {"facecolor": draw.PAPER, "edgecolor": draw.ROLES["query"].color, "pad": NOTE_PAD}
    style = {"ha": "center", "bbox": box, "zorder": 9, "linespacing": 1.2}
    if hasattr(ax, "text2D"):  # around a surface there is room within the axes
        x_y, align = (0.5, 0.95) if above else (0.5, 0.5), "top" if above else "center"
        ax.text2D(*x_y, text, transform=ax.transAxes, va=align, **style)
    elif not above:
        ax.text(0.5, 0.5, text, transform=ax.transAxes, va="center", **style)
    else:
        gap = ScaledTranslation(0, (NOTE_PAD + 4) / 72, ax.figure.dpi_scale_trans)
        note = ax.text(0.5, 1, text, transform=ax.transAxes + gap, va="bottom", **style)
        height = note.get_fontsize() * 1.2 * (1 + text.count("\n")) + 2 * NOTE_PAD
        ax.set_title(ax.get_title(), pad=height + 8)


def _thin_labels(ax: Axes) -> None:
    """Take away the heights of contour lines that cover something, or each other."""
    contours = [lines for lines in ax.collections if isinstance(lines, ContourSet)]
    heights = [text for lines in contours for text in lines.labelTexts]
    taken = []
    for line in ax.lines:
        if line.get_marker() in POINTED:
            reach = line.get_markersize() * ax.figure.dpi / 72 / 2 + 2
            for at in ax.transData.transform(line.get_xydata()):
                taken.append(Bbox([at - reach, at + reach]))
    names = [text for text in ax.texts if text.get_text() and text not in heights]
    taken += [name.get_window_extent() for name in names]
    for height in heights:
        box = height.get_window_extent().padded(2)
        inside = ax.bbox.contains(*box.min) and ax.bbox.contains(*box.max)
        if inside and not box.count_overlaps(taken):
            taken.append(box)
        else:
            height.remove()


def draw_mark(ax: Axes, panel: Panel, mark: Mark) -> None:
    """Draw one mark with the drawing function of its kind."""
    match mark:
        case Grid() if mark.values.ndim == 1:
            xs = _ticks(panel.x, len(mark.values))
            draw.draw_path(ax, np.column_stack([xs, mark.values]), mark.role, label=mark.label)
        case Grid() if panel.z:
            limits = [(axis.low, axis.high) for axis in (panel.x, panel.y, panel.z)]
            draw.draw_surface(ax, mark.values, *limits[:2], zlim=limits[2], signed=mark.signed)
        case Grid():
            limits = [(axis.low, axis.high) for axis in (panel.x, panel.y)]
            draw.draw_landscape(ax, mark.values, *limits, signed=mark.signed)
        case Points(at=at, role=role, label=label, names=names, hollow=hollow, wide=wide):
            draw.draw_points(ax, at, role, label=label, names=names, hollow=hollow, wide=wide)
        case Path(at=at, role=role, label=label, arrow=arrow, closed=closed, dots=dots):
            draw.draw_path(ax, at, role, label=label, arrow=arrow, closed=closed, dots=dots)
        case Bars(heights=heights, role=role, label=label, base=base, slot=slot):
            draw.draw_bars(ax, heights, role, label=label, base=base, slot=slot)
        case Band(x=x, low=low, high=high, role=role, label=label):
            draw.draw_band(ax, x, low, high, role, label=label)


def _limit(set_limits: object, set_scale: object, axis: Axis) -> None:
    if axis.log:
        set_scale("log")
    set_limits(axis.low, axis.high)


def _ticks(axis: Axis, count: int) -> np.ndarray:
    spread = np.geomspace if axis.log else np.linspace
    return spread(axis.low, axis.high, count)
