"""hopping.draw: what it draws, at the ends of every range, and that everybody can tell it apart."""

import gc
import itertools
import json
import subprocess
import sys
import weakref

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb, to_rgba
from matplotlib.text import Text

from hopping import draw

TOKENS = np.array([[1, 0.5], [-0.5, 1.25], [0.25, -1]])
QUERY = np.array([0.75, -0.5])


def lse(xi, Y, beta):
    u = beta * (Y @ xi)
    return (u.max() + np.log(np.exp(u - u.max()).sum())) / beta


def weights(xi, Y, beta):
    u = beta * (Y @ xi)
    e = np.exp(u - u.max())
    return e / e.sum()


def energy(beta, Y=TOKENS):
    return lambda xi: 0.5 * xi @ xi - lse(xi, Y, beta)


# ---------------------------------------------------------------- images

# Texts are compared by the tests below; pixels are compared without them and with room for
# another processor's rounding.
compare = pytest.mark.mpl_image_compare(
    baseline_dir="baseline",
    tolerance=8,
    remove_text=True,
    style=str(draw.STYLE),
    savefig_kwargs={"dpi": 60},
)


def test_images_are_compared_at_all(pytestconfig):
    assert pytestconfig.getoption("mpl"), "without --mpl pytest-mpl only draws them"


@compare
def test_image_landscape():
    landing = weights(QUERY, TOKENS, 4.0) @ TOKENS
    with draw.figure(words="A hop.") as (picture, (ax,)):
        draw.draw_landscape(ax, energy(4.0))
        draw.draw_tokens(ax, TOKENS)
        draw.draw_hop(ax, QUERY, landing)
        draw.draw_trajectory(ax, [[-1.5, -1], [-1, 0], [-0.5, 1]])
        draw.draw_query(ax, QUERY)
        draw.draw_landing(ax, landing)
    return picture


@compare
def test_image_signed_landscape():
    with draw.figure() as (picture, (ax,)):
        draw.draw_landscape(ax, lambda xi: xi[0] * xi[1], signed=True)
        draw.draw_points(ax, [[1, 1], [0, 0]], "other", hollow=[True])
        draw.draw_path(ax, [[-1, -1], [1, -1], [1, 1]], "ink", closed=True)
    return picture


@compare
def test_image_surface():
    landing = weights(QUERY, TOKENS, 4.0) @ TOKENS
    start, ground = energy(4.0)(QUERY), energy(4.0)(landing)
    half = 0.5 * np.sum((QUERY - landing) ** 2)
    parts = [1, half, start - ground - half]
    with draw.figure(2, projections=["3d", "3d"]) as (picture, (left, right)):
        for ax, given in ((left, ()), (right, parts)):
            draw.draw_surface(ax, energy(4.0), zlim=(-1.2, 2.5), side=21)
            draw.draw_hop_on_surface(
                ax, [*QUERY, start], [*landing, start + 1], ground, parts=given
            )
    return picture


@compare
def test_image_scores_and_weights():
    with draw.figure(2) as (picture, axes):
        draw.draw_scores_and_weights(axes, TOKENS @ QUERY, weights(QUERY, TOKENS, 1.0))
    return picture


@compare
def test_image_lse_band():
    with draw.figure() as (picture, (ax,)):
        betas = np.geomspace(2**-6, 64, 60)
        draw.draw_lse_band(
            ax, betas, lambda beta: lse(QUERY, TOKENS, beta), TOKENS @ QUERY, beta=1.0
        )
        ax.set_ylim(-1, 5)
    return picture


@compare
def test_image_mixture_curvatures_and_gradients():
    x = np.linspace(-3, 3, 120)
    bumps = [np.exp(-2 * (x - 1) ** 2), 0.5 * np.exp(-2 * (x + 1) ** 2)]
    with draw.figure(3) as (picture, axes):
        draw.draw_mixture(axes[0], x, bumps)
        draw.draw_curvatures(axes[1], [-1.9, -0.22, 1.0])
        draw.draw_gradient_comparison(axes[2], [0.49, -0.18], [0.5, -0.2])
    return picture


# ---------------------------------------------------------------- ends of the ranges

ONE = np.array([[0.5, -1.5]])
SAME = np.array([[1.0, 1.0], [1.0, 1.0], [-1.0, 1.0]])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("beta", [1e-6, 2.0**-6, 1.0, 64.0, 1e4])
@pytest.mark.parametrize("tokens", [TOKENS, ONE, SAME], ids=["three", "one", "coinciding"])
def test_every_drawing_at_the_ends_of_its_ranges(beta, tokens):
    given = weights(QUERY, tokens, beta)
    with draw.figure(3, 2, words="Ends.", projections=["3d"]) as (picture, axes):
        draw.draw_surface(axes[0], energy(beta, tokens), side=7)
        draw.draw_landscape(axes[1], energy(beta, tokens), side=15)
        draw.draw_tokens(axes[1], tokens)
        draw.draw_hop(axes[1], tokens[0], tokens[0])  # a hop of length 0
        draw.draw_scores_and_weights(axes[2:4], tokens @ QUERY, given)
        betas = np.geomspace(2**-6, 64, 9)
        draw.draw_lse_band(axes[4], betas, lambda b: lse(QUERY, tokens, b), tokens @ QUERY)
        gradient = given @ tokens
        draw.draw_gradient_comparison(axes[5], gradient, gradient)
    picture.canvas.draw()
    assert all(np.isfinite(ax.get_ylim()).all() for ax in axes)
    assert axes[1].get_xlim() == (-2, 2)
    assert axes[1].get_aspect() == 1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("values", [[0.0], [-3.0, 1.0, 1.0], [1e-12, 1e9]])
def test_curvatures_of_any_size(values):
    with draw.figure() as (picture, (ax,)):
        artists = draw.draw_curvatures(ax, values)
    picture.canvas.draw()
    assert len(artists) == 2 * len(values)
    low, high = ax.get_ylim()
    assert low == -high <= -max(map(abs, values))


def test_a_landscape_with_holes_and_a_flat_one_are_drawn():
    holes = np.add.outer(np.linspace(0, 1, 9), np.linspace(0, 1, 9))
    holes[2:4, 3:5] = np.nan
    with draw.figure(2) as (picture, (left, right)):
        assert len(draw.draw_landscape(left, holes)) == 2
        assert len(draw.draw_landscape(right, np.ones((9, 9)))) == 1  # no contours to label
    picture.canvas.draw()


def test_an_array_is_drawn_like_the_function_it_came_from():
    values = draw.sample(energy(4.0), (-2, 2), (-2, 2), 31)
    assert values[0, -1] == energy(4.0)(np.array([2.0, -2.0]))  # lowest y first
    with draw.figure(2) as (_picture, axes):
        by_function = draw.draw_landscape(axes[0], energy(4.0), side=31)
        by_array = draw.draw_landscape(axes[1], values)
    assert np.array_equal(by_function[0].get_array(), by_array[0].get_array())


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_contour_levels_are_distinct_rounded_and_inside(signed, scale):
    values = scale * (np.linspace(-1, 2, 300) ** 3)
    levels = draw.contour_levels(values, signed)
    assert 4 <= len(levels) <= 9
    assert levels == sorted(set(levels))
    low, high = draw.value_range(values, signed)
    assert low < levels[0] and levels[-1] < high
    assert len({draw.level_text(level) for level in levels}) == len(levels)
    if signed:
        assert low == -high


def test_no_levels_without_a_range():
    assert draw.contour_levels(np.full((3, 3), 2.0)) == []
    assert draw.contour_levels(np.full((3, 3), np.nan)) == []


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.00"),
        (-0.001, "−1.0e−3"),
        (-0.5, "−0.50"),
        (12.34, "12.3"),
        (1000.694, "1000.7"),
        (3e7, "3.0e7"),
        (float("nan"), "nan"),
    ],
)
def test_short_numbers(number, text):
    assert draw.short(number) == text


def test_numbered():
    assert draw.numbered("y", 12)[-1] == "y₁₂"


# ---------------------------------------------------------------- looks


def everything():
    with draw.figure(3, 2, words="All of it.", projections=["3d"]) as (picture, axes):
        draw.draw_surface(axes[0], energy(1.0), side=7)
        draw.draw_landscape(axes[1], energy(1.0), side=15)
        draw.draw_tokens(axes[1], TOKENS)
        draw.draw_query(axes[1], QUERY)
        draw.draw_scores_and_weights(axes[2:4], TOKENS @ QUERY, weights(QUERY, TOKENS, 1.0))
        draw.draw_gradient_comparison(axes[4], [1, 2], [1, 2])
        draw.draw_mixture(axes[5], np.linspace(-1, 1, 5), np.ones((2, 5)))
        axes[5].legend()
    picture.canvas.draw()
    return picture


def test_no_letter_is_smaller_than_12_points():
    small = [
        text.get_text()
        for text in everything().findobj(Text)
        if text.get_text() and text.get_visible() and text.get_fontsize() < 12
    ]
    assert not small


def test_the_paper_is_opaque_and_light():
    picture = everything()
    assert picture.get_facecolor() == to_rgba("white")


def test_every_role_has_its_own_colour_marker_and_line():
    for part in ("color", "marker"):
        assert len({getattr(role, part) for role in draw.ROLES.values()}) == len(draw.ROLES)
    lines = {role.linestyle for name, role in draw.ROLES.items() if name != "ink"}
    assert len(lines) == len(draw.ROLES) - 1  # ink is told apart by being thin
    assert draw.ROLES["query"].color == "#D55E00"
    assert draw.ROLES["token"].color == "#0072B2"
    assert draw.ROLES["landing"].color == "#009E73"
    assert draw.ROLES["other"].color == "#CC79A7"


# Machado, Oliveira and Fernandes (2009), "A physiologically-based model for simulation of color
# vision deficiency", severity 1.0, on linear RGB.
VISION = {
    "trichromat": np.eye(3),
    "protanope": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranope": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanope": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


def linear(color):
    rgb = np.array(to_rgb(color))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    to_xyz = [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
    xyz = np.array(to_xyz) @ np.clip(rgb, 0, 1) / [0.95047, 1.0, 1.08883]
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("vision", VISION)
def test_roles_stay_apart_for_every_kind_of_colour_vision(vision):
    # About 2 is just noticeable; the smallest distance measured is 17 (token and landing to a
    # tritanope), and these two also differ in marker and line.
    seen = [lab(VISION[vision] @ linear(role.color)) for role in draw.ROLES.values()]
    apart = [np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)]
    assert min(apart) > 15


def test_roles_have_contrast_on_the_paper():
    luminance = np.array([0.2126, 0.7152, 0.0722])
    for role in draw.ROLES.values():
        assert 1.05 / (luminance @ linear(role.color) + 0.05) >= 3.0  # WCAG 1.4.11


def test_landscape_colours_rise_in_lightness_and_the_signed_ones_are_lightest_at_0():
    lightness = [lab(linear(c / 255))[0] for c in draw.landscape_colors()]
    assert np.all(np.diff(lightness) > -0.2)
    signed = [lab(linear(c / 255))[0] for c in draw.landscape_colors(signed=True)]
    assert 120 < int(np.argmax(signed)) < 136


# ---------------------------------------------------------------- figures


def test_figures_are_unknown_to_pyplot_and_are_freed():
    before = plt.get_fignums()
    freed = []
    for _ in range(2):
        with draw.figure(words="A bar.") as (picture, (ax,)):
            draw.draw_bars(ax, [1.0])
        draw.picture_bundle(picture, picture.words)
        freed.append(weakref.ref(picture))
        del picture, ax
    gc.collect()
    assert plt.get_fignums() == before
    assert [figure() for figure in freed] == [None, None]


def test_pyplot_is_not_imported():
    code = "import sys, hopping.draw; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_the_style_does_not_stay_behind():
    plt.get_backend()  # it is chosen when first asked for, whoever asks
    before = plt.rcParams.copy()
    with draw.figure() as (_picture, (ax,)):
        draw.draw_bars(ax, [1.0])
    assert plt.rcParams == before


SHOWN = """
import json, sys
from autograder.inside.shell import make_shell
shell = make_shell(sys.argv[1])  # it has IPython's own printers of figures
shell.record.start(1_000_000)
shell.run_cell('''
from hopping import draw
draws = []
with draw.figure(words="Two valleys.") as (picture, axes):
    pass
picture.draw = lambda renderer, draw=picture.draw: (draws.append(1), draw(renderer))
picture
''')
print(json.dumps([shell.record.finish(), len(shell.user_ns["draws"])]))
"""


def test_a_figure_is_drawn_once_and_shows_its_words(tmp_path):
    command = [sys.executable, "-c", SHOWN, str(tmp_path)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    (output,), draws = json.loads(told)
    data, metadata = output["data"], output["metadata"]
    assert draws == 1
    assert data["text/plain"] == "Two valleys."
    assert data["image/png"].startswith("iVBORw0KGgo")
    assert metadata["image/png"]["alt"] == "Two valleys."
