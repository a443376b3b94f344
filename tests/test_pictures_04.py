"""Lesson 04's pictures at the ends of their controls, and the numbers that its text quotes."""

import json

import numpy as np
import pytest
from scipy.special import logsumexp

from autograder.exercises.normal_hop import hop_numbers
from autograder.reference.cccp import energy_grad
from autograder.reference.gmm_polarization import energy
from autograder.reference.linear_saddle import linear_energy, linear_step
from autograder.reference.normal_hop import (
    drop_parts,
    hop_apex,
    hop_length,
    unit_normal,
    vertical_drop,
)
from autograder.reference.tanh_modes import tanh_energy, tanh_step
from hopping import draw, explore
from hopping.explore import Band, Note, Path, Points
from hopping.explore.drops import DIMENSIONS, NEAR_QUERY
from hopping.explore.pictures import EIGHT_TOKENS
from hopping.properties import PROPERTIES

TOKENS = EIGHT_TOKENS[:3]
RIGHT = {
    "energy": energy,
    "energy_grad": energy_grad,
    "unit_normal": unit_normal,
    "hop_length": hop_length,
    "hop_apex": hop_apex,
    "vertical_drop": vertical_drop,
    "drop_parts": drop_parts,
}
USES = {
    explore.hop_along_normal: (
        "energy",
        "unit_normal",
        "hop_length",
        "hop_apex",
        "vertical_drop",
        "drop_parts",
    ),
    explore.other_bowls: ("energy", "energy_grad", "hop_apex"),
    explore.large_drops: ("vertical_drop", "drop_parts"),
}
ENDS = {
    explore.hop_along_normal: {"beta": (0.125, 16.0)},
    explore.other_bowls: {"c": (0.25, 4.0), "rise": (0.25, 4.0)},
    explore.large_drops: {"norm": (1.0, 8.0), "d": (DIMENSIONS[0], DIMENSIONS[-1])},
}


@pytest.fixture(autouse=True)
def coarse(monkeypatch):
    """Sample no longer than a moving picture does: what is tested does not depend on it."""
    monkeypatch.setattr("hopping.explore.view.STILL", 0.012)


def make(maker, **instead):
    return maker(*((RIGHT | instead)[name] for name in USES[maker]))


def panel(picture, title):
    return next(p for p in picture._resolved.panels if title in p.title)


def notes(picture):
    marks = [mark for p in picture._resolved.panels for mark in p.marks]
    return [mark.text for mark in marks if isinstance(mark, Note)]


def paths(picture, title):
    return {m.label: np.array(m.at) for m in panel(picture, title).marks if isinstance(m, Path)}


def draw_twin(picture):
    """Draw the static twin and return whether its words fit between the edges."""
    figure = picture.figure()
    figure.canvas.draw()
    box = figure._supxlabel.get_window_extent()
    return box.x0 >= 0 and box.x1 <= figure.bbox.x1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("maker", USES, ids=lambda maker: maker.__name__)
def test_controls_at_their_ends(maker):
    picture = make(maker)
    assert draw_twin(picture)
    for name, ends in ENDS[maker].items():
        for end in ends:
            picture.controls[name].value = end
            assert picture.controls[name].value == pytest.approx(end)
            assert notes(picture) == []
            json.dumps(picture.view.scene, allow_nan=False)
            assert draw_twin(picture)


def unwritten(xi, Y, beta, rise=1.0):
    raise NotImplementedError


WRONG = {
    "unwritten": unwritten,
    "nothing": lambda xi, Y, beta, rise=1.0: None,
    "nan": lambda xi, Y, beta, rise=1.0: np.nan,
    "one row": lambda xi, Y, beta, rise=1.0: np.ones((1, len(xi) + 1)),
    "raises": lambda xi, Y, beta, rise=1.0: 1 / 0,
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("maker", USES, ids=lambda maker: maker.__name__)
def test_a_function_that_does_not_work_is_named_and_the_controls_stay(maker, wrong):
    for name in USES[maker]:
        picture = make(maker, **{name: WRONG[wrong]})
        # One that only the words ask for leaves them out, and the picture is complete.
        assert notes(picture) or name in ("vertical_drop", "energy_grad")
        control = next(iter(ENDS[maker]))
        picture.controls[control].value = ENDS[maker][control][0]
    picture.figure()


def test_what_is_not_written_leaves_the_rest_of_the_hop():
    picture = make(explore.hop_along_normal, drop_parts=unwritten)
    assert notes(picture) == ["not written yet: unwritten"] * 2
    assert "along the normal" in paths(picture, "slice")
    assert "bend: D" not in paths(picture, "slice")
    assert "gains 1.000 in height" in picture.words


# ---------------------------------------------------------------- the hop along the normal


@pytest.mark.parametrize("beta", [0.125, 1.0, 16.0])
@pytest.mark.parametrize("query", [(-1.75, -0.5), (2.0, -2.0), (0.0, 0.0)])
def test_the_slice_shows_a_right_angle_and_parts_that_reach_the_surface(beta, query):
    picture = make(explore.hop_along_normal)
    picture.controls["beta"].value = beta
    picture.move(query=query)
    seen, xi = paths(picture, "slice"), np.array(query)
    walk = seen["along the normal"]
    slope = np.linalg.norm(energy_grad(xi, TOKENS, beta))
    assert walk[0] == pytest.approx([0, 0])
    assert walk[1] == pytest.approx([slope, 1])
    assert (walk[1] - walk[0]) @ [1, -slope] == pytest.approx(0, abs=1e-12)
    ends = [seen[label][:, 1] for label in ("rise: 1", "bowl: ½‖g‖²", "bend: D")]
    assert ends[0] == pytest.approx([1, 0])
    assert ends[1] == pytest.approx([0, -(slope**2) / 2])
    landing = xi - energy_grad(xi, TOKENS, beta)
    fall = energy(landing, TOKENS, beta) - energy(xi, TOKENS, beta)
    assert ends[2] == pytest.approx([-(slope**2) / 2, fall])


def test_the_slice_follows_whatever_the_functions_say():
    def uphill(xi, Y, beta):
        return unit_normal(xi, Y, beta) * [-1, -1, 1]

    picture = make(explore.hop_along_normal, unit_normal=uphill)
    apex = panel(picture, "slice").marks[-1].at
    assert apex[0, 0] < 0  # the right apex lies behind one who walks uphill
    assert notes(picture) == []


def test_at_rest_only_the_rise_is_left():
    picture = make(explore.hop_along_normal)
    still = np.array([-0.5, 1.25])
    for _ in range(200):
        still = still - energy_grad(still, TOKENS, 4.0)
    picture.move(query=still)
    assert "A walk of 1.000 along the normal" in picture.words
    assert "1.000 below: 1.000 + 0.000 + 0.000" in picture.words
    assert draw_twin(picture)


def test_every_place_of_the_plane_keeps_its_hop_in_the_slice():
    picture = make(explore.hop_along_normal)
    for beta in (0.125, 1.0, 4.0, 16.0):
        picture.controls["beta"].value = beta
        for xi in np.array(np.meshgrid([-2.0, 0, 2], [-2.0, 0, 2])).reshape(2, -1).T:
            picture.move(query=xi)
            slice_of = panel(picture, "slice")
            length, drop = hop_length(xi, TOKENS, beta), vertical_drop(xi, TOKENS, beta)
            assert np.sqrt(length**2 - 1) < slice_of.x.high
            assert slice_of.y.low < 1 - drop < 1 < slice_of.y.high


def test_no_two_things_of_the_slice_look_alike():
    picture = make(explore.hop_along_normal)
    marks = [m for m in panel(picture, "slice").marks if m.label]
    looks = [(type(m), m.role, getattr(m, "dots", False)) for m in marks]
    assert len(looks) == len(set(looks)) == 7
    (shade,) = (m for m in marks if isinstance(m, Band))
    assert np.all(shade.high == 0)  # it ends at the level of the query


def test_the_parabola_touches_the_surface_and_has_its_bottom_at_the_landing():
    picture = make(explore.hop_along_normal)
    at, height = paths(picture, "slice")["touching parabola (dots)"].T
    xi, beta = np.array([-1.75, -0.5]), 4.0
    g = energy_grad(xi, TOKENS, beta)
    steps = xi - np.outer(at, g / np.linalg.norm(g))
    surface = [energy(step, TOKENS, beta) - energy(xi, TOKENS, beta) for step in steps]
    assert np.all(height >= np.array(surface) - 1e-12)
    assert height == pytest.approx((at - np.linalg.norm(g)) ** 2 / 2 - g @ g / 2)


# ---------------------------------------------------------------- other bowls


@pytest.mark.parametrize("c", [0.25, 1.0, 4.0])
def test_a_surface_over_another_bowl_is_the_ordinary_one_stretched(c):
    rng = np.random.default_rng(4)
    for xi in rng.normal(size=(20, 2)):
        lse = logsumexp(0.7 * TOKENS @ xi) / 0.7
        other = c / 2 * xi @ xi - lse
        assert c * energy(xi, TOKENS / c, 0.7 * c) == pytest.approx(other, abs=1e-12)


@pytest.mark.parametrize(("c", "rise"), [(0.25, 4.0), (0.5, 2.0), (1.0, 1.0), (4.0, 0.25)])
def test_a_rise_of_one_over_the_curvature_hits(c, rise):
    picture = make(explore.other_bowls)
    picture.controls["c"].value, picture.controls["rise"].value = c, rise
    assert "the apex is 0.000 away" in picture.words
    walk, fall = (paths(picture, "slice")[k] for k in ("along the normal", "straight down"))
    landing = (NEAR_QUERY - energy_grad(NEAR_QUERY, TOKENS, 1.0)) / c
    assert walk[1] == pytest.approx([np.linalg.norm(landing - NEAR_QUERY), rise])
    star = panel(picture, "slice").marks[2].at  # after the surface and the query
    assert fall[1] == pytest.approx(star)
    limits = panel(picture, "slice")
    assert limits.x.low < star[0] < limits.x.high
    assert limits.y.low < star[1] < limits.y.high


@pytest.mark.parametrize("c", [0.25, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("rise", [0.25, 1.0, 2.0, 4.0])
def test_apex_and_landing_stay_in_the_slice_and_nothing_falls_upwards(c, rise):
    picture = make(explore.other_bowls)
    picture.controls["c"].value, picture.controls["rise"].value = c, rise
    slice_of, misses = panel(picture, "slice"), panel(picture, "misses")
    for x, y in np.vstack([m.at for m in slice_of.marks if isinstance(m, Points)]):
        # A name of about a sixth of the width stands to the right of its point.
        assert slice_of.x.low < x < slice_of.x.high - (slice_of.x.high - slice_of.x.low) / 6
        assert slice_of.y.low < y < slice_of.y.high
    seen = paths(picture, "slice")
    if "straight down" in seen:
        top, bottom = seen["straight down"][:, 1]
        assert bottom < top
        assert "below it" in picture.words
    else:
        assert c > 1
        assert "above it" in picture.words
    assert np.array(misses.marks[-1].at)[..., 1] < misses.y.high


def test_a_rise_of_one_misses_over_other_bowls_in_two_straight_lines():
    picture = make(explore.other_bowls)
    picture.controls["c"].value = 4.0
    assert "the apex is 0.000 away" not in picture.words
    rises, misses = paths(picture, "misses")["miss"].T
    gradient = 4 * NEAR_QUERY - (NEAR_QUERY - energy_grad(NEAR_QUERY, TOKENS, 1.0))
    assert misses == pytest.approx(np.abs(rises - 1 / 4) * np.linalg.norm(gradient))


# ---------------------------------------------------------------- large drops


def test_the_drop_grows_with_the_length_of_the_hop_and_not_with_that_of_the_tokens_alone():
    picture = make(explore.large_drops)

    def parts(d, norm):
        picture.controls["d"].value, picture.controls["norm"].value = d, norm
        return panel(picture, "parts").marks[0].heights

    short, long, flat = parts(64, 1.0), parts(64, 8.0), parts(2, 8.0)
    assert short.sum() == pytest.approx(1.5, abs=0.1)
    assert long.sum() == pytest.approx(29.5, abs=2)
    assert long[1] > 0.85 * long.sum()  # it is the bowl's part that grows
    assert flat.sum() < 2
    for heights in (short, long, flat):
        assert heights[0] == 1
    # The thin curve leaves out the bend: what lies above it at length 2.
    heights = parts(64, 2.0)
    assert heights[1] < 2**2 / 2 < heights[1] + heights[2]


def test_the_parts_add_up_to_the_drop_that_is_said():
    picture = make(explore.large_drops)
    heights = panel(picture, "parts").marks[0].heights
    assert f"the drop is {heights.sum():.2f}" in picture.words


# ---------------------------------------------------------------- what the checks say


def test_a_property_names_the_calls_that_it_compares():
    inputs = {"xi": np.array([0.5, 1.0]), "Y": TOKENS, "beta": 1.0, "rise": 0.5}

    def far(xi, Y, beta, rise=1.0):
        return hop_apex(xi, Y, beta, rise**2)

    said = PROPERTIES["rises_as_asked"](far, inputs)
    assert "with rise = 3 and" in said
    assert "with rise = 0" in said

    def added(xi, Y, beta, rise=1.0):
        return hop_length(xi, Y, beta) + rise

    said = PROPERTIES["is_proportional_to_the_rise"](added, inputs)
    assert "with rise = 2 and" in said
    assert "with rise = 1" in said


# ---------------------------------------------------------------- numbers of the text


def test_a_short_bend_is_seen_in_front_of_the_star():
    with draw.figure(projections=["3d"], words="A hop.") as (_, (ax,)):
        start, apex = [-1.9, -1.0, 0.5], [-0.5, -0.5, 1.5]
        artists = draw.draw_hop_on_surface(ax, start, apex, -1.0, parts=[1, 1.3, 0.2])
    bend = next(line for line in artists if line.get_label() == "bend")
    star = next(line for line in artists if getattr(line, "get_marker", str)() == "*")
    assert star.get_zorder() < bend.get_zorder()


def test_the_project_has_a_bend_to_show():
    xi, b = np.array([-1.9, -1.0]), 0.25
    Y = np.array([[1.0, 0.5], [-0.5, 1.25], [0.25, -1.0]])
    for height, slope in (
        (lambda x: energy(x, Y, b), lambda x: energy_grad(x, Y, b)),
        (lambda x: tanh_energy(x, Y, b), lambda x: x - tanh_step(x, Y, b)),
        (lambda x: linear_energy(x, Y, b), lambda x: x - linear_step(x, Y, b)),
    ):
        assert 0.19 < hop_numbers(height, slope, xi)[4] < 0.34


def test_the_example_by_hand():
    xi, Y = np.array([1.0]), np.array([[0.25]])
    assert energy(xi, Y, 3.0) == pytest.approx(1 / 4)
    assert unit_normal(xi, Y, 3.0) == pytest.approx([-3 / 5, 4 / 5])
    assert hop_length(xi, Y, 3.0) == pytest.approx(5 / 4)
    assert hop_apex(xi, Y, 3.0) == pytest.approx([1 / 4, 5 / 4])
    assert vertical_drop(xi, Y, 3.0) == pytest.approx(41 / 32)
    assert drop_parts(xi, Y, 3.0) == pytest.approx([1, 9 / 32, 0], abs=1e-12)


def test_the_report_has_a_drop_below_1():
    _, apex, ground, drop, bend = hop_numbers(lambda x: 2 * x @ x, lambda x: 4 * x, np.array([1.0]))
    assert (apex, ground, drop, bend) == (3, 18, -15, -24)


def test_large_numbers_lose_a_rise_of_1():
    assert np.spacing(2.0**53) == 2
    assert 2.0**53 + 1 == 2.0**53
