"""The picture of lesson 03, at the ends of its controls and with functions that are wrong."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from hopping import draw
from hopping.explore import hop_and_majoriser

CENTRES = np.array([[1, 0.5], [-0.5, 1.25], [0.25, -1]])
FIRST_PLACES = [(-1.0, -0.25), (2.0, -2.0), (0.75, -0.5)]


def energy(xi, Y, beta):
    return xi @ xi / 2 - logsumexp(beta * Y @ xi) / beta


def energy_grad(xi, Y, beta):
    return xi - softmax(beta * Y @ xi) @ Y


def cccp_step(xi, Y, beta):
    return softmax(beta * Y @ xi) @ Y


def put(picture, query=None, **controls):
    """Move everything and return the marks of each panel, as the view gets them."""
    for name, value in controls.items():
        picture.controls[name].value = value
    if query is not None:
        picture.move(query=query)
    return [panel["marks"] for panel in picture.view.scene["panels"]]


def notes(panels):
    return [mark["text"] for marks in panels for mark in marks if mark["kind"] == "note"]


def line(marks, label):
    """Return the path of this label, (m, 2)."""
    (found,) = [m for m in marks if m["kind"] == "path" and m["label"] == label]
    return np.array(found["at"])


def labels(marks):
    return [mark.get("label") for mark in marks]


@pytest.fixture(scope="module")
def picture():
    return hop_and_majoriser(energy, energy_grad, cccp_step)


@pytest.mark.parametrize("beta", [0.25, 4.0, 16.0])
@pytest.mark.parametrize("eta", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("query", FIRST_PLACES)
def test_is_whole_at_the_ends_of_its_controls(picture, beta, eta, query):
    panels = put(picture, query, beta=beta, eta=eta)
    assert len(panels) == 3
    assert notes(panels) == []
    assert "3 centres" in picture.words
    assert f"η = {eta:.2f}" in picture.words


def test_draws_its_static_twin(picture):
    put(picture, FIRST_PLACES[0], beta=4.0, eta=2.5)
    figure = picture.figure()
    assert [ax.get_title() for ax in figure.axes] == [
        "Energy from above",
        "Along the arrow: E and Q",
        "Energy log",
    ]
    assert "lowers E" in figure.words


def test_its_controls_have_the_ranges_that_the_lesson_speaks_of(picture):
    beta, eta = picture.controls["beta"], picture.controls["eta"]
    assert (2**beta.min, 2**beta.max) == (0.25, 16)
    assert (eta.min, eta.max) == (0, 3)


@pytest.mark.parametrize("beta", [0.25, 1.0, 4.0, 16.0])
@pytest.mark.parametrize("query", FIRST_PLACES)
def test_the_landing_is_the_lowest_point_of_a_majoriser(picture, beta, query):
    _, along, _ = put(picture, query, beta=beta, eta=1.0)
    Q = line(along, "majoriser Q")
    xi, Y = np.array(query), CENTRES
    g = energy_grad(xi, Y, beta)
    start, unit = energy(xi, Y, beta), g @ g / 2
    heights = [(energy(xi - eta * g, Y, beta) - start) / unit for eta in Q[:, 0]]
    assert np.all(Q[:, 1] >= np.array(heights) - 1e-9)
    assert Q[0, 1] == pytest.approx(0)
    assert Q[np.argmin(Q[:, 1])] == pytest.approx([1, -1])
    (lowest,) = [mark for mark in along if mark.get("label") == "lowest point of Q"]
    assert lowest["at"][0] == pytest.approx([1, -1])
    (landing,) = [m for m in along if m["kind"] == "points" and m["role"] == "landing"]
    assert landing["at"][0][1] <= -1 + 1e-9


def test_the_log_of_hops_never_rises(picture):
    for beta, query in itertools.product((0.25, 1.0, 2.0, 16.0), FIRST_PLACES):
        log = line(put(picture, query, beta=beta, eta=3.0)[2], "hops")
        assert len(log) == 11
        assert np.all(np.diff(log[:, 1]) <= 1e-9)


def test_steps_go_wrong_above_two_only_and_the_zone_is_marked(picture):
    raised = {}
    for eta, beta, query in itertools.product((0.5, 2.0, 2.5, 3.0), (0.25, 4, 16), FIRST_PLACES):
        above, along, _ = put(picture, query, beta=beta, eta=eta)
        raised.setdefault(eta, []).append("one step: E rises" in labels(above))
        assert ("one step" in labels(above)) != raised[eta][-1]
        assert ("raises E" in picture.words) == raised[eta][-1]
        assert ("promises nothing" in picture.words) == (eta > 2)
        (zone,) = [mark for mark in along if mark["kind"] == "band"]
        assert zone["x"] == [2, 3]
    assert not any(raised[0.5] + raised[2.0])
    assert any(raised[2.5])
    assert not all(raised[2.5])
    assert any(raised[3.0])


def test_a_query_at_rest_is_told_so(picture):
    valley = np.array([0.0, 0.0])
    for _ in range(500):
        valley = cccp_step(valley, CENTRES, 4.0)
    panels = put(picture, valley, beta=4.0, eta=1.0)
    assert any("at rest" in note for note in notes(panels))
    assert picture.figure().words


def test_every_hollow_point_is_named(picture):
    for panel in put(picture, FIRST_PLACES[0], beta=4.0, eta=0.5):
        (step,) = [mark for mark in panel if mark["kind"] == "points" and any(mark["hollow"])]
        assert step["label"] == "one step"


def settled(start, beta):
    """Return where hops among the three centres of the lesson end."""
    for _ in range(2000):
        start = cccp_step(start, CENTRES, beta)
    return start


@pytest.mark.parametrize(("beta", "valleys"), [(1.0, 1), (2.0, 2), (4.0, 3)])
def test_valleys_that_the_lesson_counts(beta, valleys):
    ends = [settled(centre, beta) for centre in CENTRES]
    assert len(np.unique(np.round(ends, 3), axis=0)) == valleys


def test_the_shallow_valley_has_no_contour_of_its_own(picture):
    low = settled(CENTRES[2], 2.0)
    np.testing.assert_allclose(low, [0.37, -0.69], atol=5e-3)
    np.testing.assert_allclose(settled(CENTRES[0], 2.0), settled(CENTRES[1], 2.0), atol=1e-6)
    # Past a rim this low the way leads down to the other valley, and no contour is between them.
    way = np.linspace(low, settled(CENTRES[1], 2.0), 400)
    heights = [energy(at, CENTRES, 2.0) for at in way]
    grid = np.linspace(-2, 2, 41)
    levels = draw.contour_levels(
        np.array([[energy(np.array([x, y]), CENTRES, 2.0) for x in grid] for y in grid])
    )
    assert not any(heights[0] < level < max(heights) for level in levels)


def test_falls_that_the_lesson_says():
    def units(*query):
        g = energy_grad(np.array(query), CENTRES, 4.0)
        fall = energy(np.array(query), CENTRES, 4.0) - energy(query - g, CENTRES, 4.0)
        return fall / (g @ g / 2)

    assert units(0.6, -0.3) == pytest.approx(3.7, abs=0.05)
    for corner in itertools.product((-2.0, 2.0), (-2.0, 2.0)):
        assert units(*corner) == pytest.approx(1, abs=2e-3)


def unwritten(xi, Y, beta):
    raise NotImplementedError


def in_place(xi, Y, beta):
    xi -= softmax(beta * Y @ xi) @ Y
    return xi


@pytest.mark.parametrize(
    ("gradient", "step", "said"),
    [
        (unwritten, cccp_step, "not written yet: unwritten"),
        (energy_grad, unwritten, "not written yet: unwritten"),
        (lambda xi, Y, beta: None, cccp_step, "returned nothing"),
        (energy_grad, lambda xi, Y, beta: np.array([np.nan, 0]), "returned nan"),
        (energy_grad, lambda xi, Y, beta: xi[None], "returned shape (1, 2)"),
        (lambda xi, Y, beta: 1 / 0, cccp_step, "ZeroDivisionError"),
        (in_place, cccp_step, ""),
        (lambda xi, Y, beta: -energy_grad(xi, Y, beta), cccp_step, ""),
        (energy_grad, lambda xi, Y, beta: xi + energy_grad(xi, Y, beta), ""),
        (energy_grad, lambda xi, Y, beta: list(cccp_step(xi, Y, beta)), ""),
    ],
)
def test_functions_that_are_wrong_leave_the_rest_of_the_picture(gradient, step, said):
    picture = hop_and_majoriser(energy, gradient, step)
    for eta in (0.0, 3.0):
        panels = put(picture, (-1.0, -0.25), beta=16.0, eta=eta)
        told = notes(panels)
        assert bool(told) == bool(said)
        assert all(said in note for note in told)
        assert any(mark["kind"] == "grid" for mark in panels[0])
    assert picture.figure().axes


def test_a_wrong_gradient_is_seen_as_a_curve_that_is_no_majoriser():
    picture = hop_and_majoriser(energy, lambda *a: 2 * energy_grad(*a), cccp_step)
    Q = line(put(picture, (-1.0, -0.25), beta=4.0, eta=1.0)[1], "majoriser Q")
    (landing,) = [
        m
        for m in put(picture)[1]
        if m["kind"] == "points" and m["role"] == "landing" and m["at"][0][0] == 1
    ]
    assert np.interp(1, *Q.T) < landing["at"][0][1]


def test_numbers_that_the_lesson_says_in_words():
    start, end = np.array([np.log(3), 0.0]), np.array([0.75, 0.25])
    np.testing.assert_allclose(cccp_step(start, np.eye(2), 1.0), end)
    g = energy_grad(start, np.eye(2), 1.0)
    np.testing.assert_allclose(g, [0.349, -0.25], atol=5e-4)
    assert g @ g / 2 == pytest.approx(0.092, abs=5e-4)
    assert np.linalg.norm([10, -20]) == pytest.approx(22, abs=0.5)
