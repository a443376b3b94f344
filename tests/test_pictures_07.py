"""The pictures of lesson 07: ends of their controls, functions that are wrong, said numbers."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from autograder.exercises.one_step_vs_settling import relaxation_gap
from autograder.reference.one_step_vs_settling import local_rate, one_step_gap, settle
from hopping.explore import step_and_settling, three_kernels
from hopping.explore.settling import BESIDE_IT, FOUR_PATTERNS, NEAR_NONE, ON_A_TIE, STARTS

PAIR = np.array([[1.0], [-1.0]])
POTENTIAL = {
    "softmax": logsumexp,
    "tanh": lambda u: np.logaddexp(u, -u).sum(),
    "linear": lambda u: u @ u / 2,
}
WEIGHTS = {"softmax": softmax, "tanh": np.tanh, "linear": lambda u: u}


def energy(xi, Y, beta):
    return xi @ xi / 2 - logsumexp(beta * Y @ xi) / beta


def hop(xi, Y, beta):
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


def labelled(marks, label):
    (found,) = [mark for mark in marks if mark.get("label") == label]
    return found


# ---------------------------------------------------------------- step and settling


@pytest.fixture(scope="module")
def picture():
    return step_and_settling(energy, hop, settle, one_step_gap, local_rate)


@pytest.mark.parametrize("beta", [0.25, 16.0, 256.0])
@pytest.mark.parametrize("start", STARTS)
def test_is_whole_at_the_ends_of_its_controls(picture, beta, start):
    for query in ((0.0625, 0.125), (1.5, -1.5), (0.0, 0.0)):
        panels = put(picture, query, beta=beta, start=start)
        assert len(panels) == 4
        assert notes(panels) == []
        assert "4 patterns" in picture.words
        assert "The gap is" in picture.words
        handles = [mark["handle"] for mark in panels[0] if mark["kind"] == "points"]
        assert ("query" in handles) == (start == STARTS[0])


def test_shows_the_gap_of_the_preset_as_bars_point_and_words(picture):
    above, bars, curve, lengths = put(picture, NEAR_NONE, beta=16.0, start=STARTS[0])
    assert "The gap is 0.538." in picture.words
    (heights,) = [mark["heights"] for mark in bars]
    assert heights[1] / heights[0] == pytest.approx(0.538, abs=5e-4)
    (now,) = labelled(curve, "β = 16")["at"]
    assert now == pytest.approx([16, 0.538], abs=5e-4)
    landing, settled = labelled(above, "landing"), labelled(above, "settled")
    assert landing["at"][0] == pytest.approx(hop(NEAR_NONE, FOUR_PATTERNS, 16.0))
    assert settled["at"][0] == pytest.approx([0, 1], abs=1e-4)
    assert settled["hollow"] == [False]
    assert len(labelled(lengths, "length of the hop")["at"]) == 5


def test_marks_the_rays_where_the_two_best_scores_tie(picture):
    above = put(picture)[0]
    rays = [np.array(m["at"]) for m in above if m["kind"] == "path" and m["role"] == "ink"]
    assert len(rays) == 4
    for ray in rays:
        scores = np.sort(FOUR_PATTERNS @ ray[1])
        assert scores[-1] == pytest.approx(scores[-2])
        assert scores[-1] > scores[-3] + 0.1


def test_a_saddle_is_hollow_and_a_hair_beside_it_hops_grow_again(picture):
    above, _, _, lengths = put(picture, beta=32.0, start="on a tie")
    assert labelled(above, "settled")["hollow"] == [True]
    assert "no valley" in picture.words
    assert "The gap is 0.002." in picture.words
    above, _, _, lengths = put(picture, start="a hair beside it")
    assert labelled(above, "settled")["hollow"] == [False]
    assert ": a valley" in picture.words
    moved = np.array(labelled(lengths, "length of the hop")["at"])[:, 1]
    assert moved[1] < 0.01 < 0.5 < moved[3]
    assert np.abs(ON_A_TIE - BESIDE_IT).max() == pytest.approx(1e-5)
    assert one_step_gap(BESIDE_IT, FOUR_PATTERNS, 32.0) > 1


def test_draws_its_static_twin(picture):
    put(picture, NEAR_NONE, beta=0.25, start=STARTS[0])
    figure = picture.figure()
    assert [ax.get_title() for ax in figure.axes] == [
        "Energy from above",
        "Two lengths: gap = second / first",
        "Gap over β",
        "How long each hop is",
    ]
    assert "has settled" in figure.words


def test_a_walk_that_did_not_settle_is_said_to_be_so():
    def impatient(xi, Y, beta):
        return settle(xi, Y, beta, max_steps=3)

    picture = step_and_settling(energy, hop, impatient, one_step_gap, local_rate)
    above = put(picture, beta=2.0)[0]
    assert labelled(above, "not settled")["hollow"] == [True]
    assert "After 3 hops it has not settled" in picture.words


def unwritten(*arguments):
    raise NotImplementedError


def in_place(xi, Y, beta):
    x, steps, converged = settle(xi, Y, beta)
    xi[:] = x
    return xi, steps, converged


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"settle": unwritten}, "not written yet: unwritten"),
        ({"one_step_gap": unwritten}, "not written yet: unwritten"),
        ({"local_rate": unwritten}, "not written yet: unwritten"),
        ({"settle": lambda xi, Y, beta: None}, "three things"),
        ({"settle": lambda xi, Y, beta: settle(xi, Y, beta)[0]}, "three things"),
        ({"settle": lambda xi, Y, beta: (xi[None], 1, True)}, "returned shape (1, 2)"),
        ({"settle": lambda xi, Y, beta: (xi * np.nan, 1, True)}, "returned nan"),
        ({"settle": lambda xi, Y, beta: (xi, "many", True)}, "not numbers"),
        ({"one_step_gap": lambda xi, Y, beta: np.inf}, "returned inf"),
        ({"one_step_gap": lambda xi, Y, beta: 1 / 0}, "ZeroDivisionError"),
        ({"local_rate": lambda xi, Y, beta: np.eye(2)}, "returned shape (2, 2)"),
        ({"settle": in_place}, ""),
        ({"settle": lambda xi, Y, beta: list(settle(xi, Y, beta))}, ""),
        ({"one_step_gap": lambda xi, Y, beta: 0}, ""),
    ],
)
def test_functions_that_are_wrong_leave_the_rest_of_the_picture(given, said):
    right = {"settle": settle, "one_step_gap": one_step_gap, "local_rate": local_rate}
    picture = step_and_settling(energy, hop, *(right | given).values())
    for beta, start in ((0.25, STARTS[0]), (256.0, STARTS[2])):
        panels = put(picture, beta=beta, start=start)
        told = notes(panels)
        assert bool(told) == bool(said)
        assert all(said in note for note in told)
        assert any(mark["kind"] == "grid" for mark in panels[0])
        assert "lands at" in picture.words
    assert picture.figure().axes


def test_a_wrong_settle_is_seen_beside_its_path():
    picture = step_and_settling(
        energy, hop, lambda *given: (FOUR_PATTERNS[0].copy(), 5, True), one_step_gap, local_rate
    )
    above = put(picture, beta=16.0)[0]
    path = next(m for m in above if m["kind"] == "path" and m["dots"])["at"]
    assert labelled(above, "settled")["at"][0] == [1, 0]
    assert path[-1] == pytest.approx([0, 1], abs=1e-4)


# ---------------------------------------------------------------- three kernels


@pytest.fixture(scope="module")
def kernels():
    return three_kernels(POTENTIAL, WEIGHTS, relaxation_gap)


@pytest.mark.parametrize("beta", [1 / 16, 1.0, 8.0])
def test_kernels_are_whole_at_the_ends_of_their_controls(kernels, beta):
    for query in ((0.75, -0.5), (3.0, 3.0), (-3.0, 3.0)):
        panels = put(kernels, query, beta=beta)
        assert len(panels) == 4
        assert notes(panels) == []
        for name in ("Softmax: settles", "Tanh: settles"):
            assert name in kernels.words
        runs_away = "not settled in 100 hops" in [mark.get("label") for mark in panels[2]]
        assert runs_away == (beta > 0.5)
        assert ("Linear: not settled after 100 hops." in kernels.words) == runs_away


def test_no_energy_rises_and_hops_of_softmax_end_inside_the_tokens(kernels):
    for beta, query in itertools.product((1 / 16, 1.0, 8.0), ((0.75, -0.5), (3.0, -3.0))):
        *planes, log = put(kernels, query, beta=beta)
        for kernel in WEIGHTS:
            assert np.all(np.diff(np.array(labelled(log, kernel)["at"])[:, 1]) <= 1e-9)
        landing = np.array(labelled(planes[0], "landing")["at"][0])
        assert np.abs(landing).max() <= 1.25


def test_kernels_draw_their_static_twin(kernels):
    put(kernels, (0.75, -0.5), beta=1.0)
    figure = kernels.figure()
    titles = [ax.get_title() for ax in figure.axes]
    assert titles == ["softmax", "tanh", "linear", "Energy, hop after hop"]
    assert "3 tokens at β = 1" in figure.words


@pytest.mark.parametrize(
    ("potential", "weights", "gap", "said"),
    [
        ({"tanh": None}, {}, relaxation_gap, 'not written yet: potential["tanh"]'),
        ({}, {"linear": None}, relaxation_gap, 'not written yet: weights["linear"]'),
        ({}, {}, unwritten, "not written yet: unwritten"),
        ({"linear": lambda u: u}, {}, relaxation_gap, 'potential["linear"] returned shape (3,)'),
        ({}, {"softmax": lambda u: 1.0}, relaxation_gap, 'weights["softmax"] returned shape ()'),
        ({}, {"tanh": lambda u: 1 / 0}, relaxation_gap, 'weights["tanh"] raised ZeroDivision'),
        ({}, {}, lambda *given: "far", "returned str, not a number"),
        ({"softmax": lambda u: -logsumexp(u)}, {}, relaxation_gap, ""),
    ],
)
def test_kernels_that_are_wrong_leave_the_others(potential, weights, gap, said):
    picture = three_kernels(POTENTIAL | potential, WEIGHTS | weights, gap)
    for beta in (1 / 16, 8.0):
        panels = put(picture, beta=beta)
        told = notes(panels)
        assert bool(told) == bool(said)
        assert all(said in note for note in told)
        assert any(mark["kind"] == "grid" for marks in panels[:3] for mark in marks)
    assert picture.figure().axes


# ---------------------------------------------------------------- numbers said in words


def test_numbers_of_the_example_by_hand():
    assert np.tanh(0.5) == pytest.approx(0.4621, abs=5e-5)
    x, _, _ = settle([0.25], PAIR, 2.0)
    assert x[0] == pytest.approx(0.9575, abs=5e-5)
    assert one_step_gap([0.25], PAIR, 2.0) == pytest.approx(1.072, abs=5e-4)
    assert x[0] ** 2 == pytest.approx(0.9168, abs=5e-5)
    assert local_rate(x, PAIR, 2.0) == pytest.approx(0.166, abs=5e-4)
    assert local_rate(x, PAIR, 2.0) == pytest.approx(1 / 6, abs=1e-3)
    assert local_rate([0.0], PAIR, 2.0) == 2
    assert np.sqrt(3 / (2 * 1e6)) == pytest.approx(1e-3, rel=0.25)


def test_the_bottom_is_as_flat_as_step_3_says():
    x, _, _ = settle([0.5], PAIR, 1.01, tol=1e-14)
    rise = energy(x + 1e-3, PAIR, 1.01) - energy(x, PAIR, 1.01)
    assert rise == pytest.approx((1 - local_rate(x, PAIR, 1.01)) / 2 * 1e-6, rel=0.05)


def test_the_curve_of_the_preset_is_steepest_near_1_7_where_the_middle_valley_splits():
    betas = np.arange(0.5, 4, 0.1)
    gaps = [one_step_gap(NEAR_NONE, FOUR_PATTERNS, beta) for beta in betas]
    steepest = np.argmax(np.diff(np.log(gaps)))
    assert betas[steepest : steepest + 2] == pytest.approx([1.6, 1.7])
    ends = [settle(NEAR_NONE, FOUR_PATTERNS, beta)[0] for beta in (1.6, 1.8)]
    assert ends[0][0] == pytest.approx(ends[0][1], abs=1e-6)
    assert ends[1][1] > ends[1][0] + 0.5


def test_the_potentials_of_the_closing_page_have_the_weights_as_gradients():
    u, steps = np.array([0.7, -1.2, 0.4]), 1e-6 * np.eye(3)
    for kernel, potential in POTENTIAL.items():
        slope = [(potential(u + h) - potential(u - h)) / 2e-6 for h in steps]
        np.testing.assert_allclose(slope, WEIGHTS[kernel](u), atol=1e-8)
