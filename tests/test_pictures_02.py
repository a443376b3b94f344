"""Pictures of lesson 02: right at both ends of every control, and helpful with wrong functions."""

import re

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from autograder.exercises.gmm_polarization import valley_census
from autograder.reference.fixtures import PRESETS
from hopping.explore import Note, Path, Points, two_centres, valleys
from hopping.explore.mixtures import valleys_of

TRIANGLE, UNEQUAL = PRESETS["equilateral"].Y, PRESETS["unequal pair"].Y
SHADOW = PRESETS["shadow"].Y


def energy(xi, Y, beta):
    return xi @ xi / 2 - np.logaddexp.reduce(beta * (Y @ xi)) / beta


def log_mixture_weights(Y, beta):
    return beta * (Y**2).sum(axis=1) / 2


def posterior(xi, Y, beta):
    return softmax(log_mixture_weights(Y, beta) - beta * ((xi - Y) ** 2).sum(axis=1) / 2)


def unwritten(*_arguments):
    raise NotImplementedError


def triangle(energy=energy, posterior=posterior):
    return valleys(
        energy,
        posterior,
        TRIANGLE,
        1.75,
        beta_range=(1.7, 2.1),
        step=0.005,
        heights=(-0.003, 0.003),
        push=0.02,
    )


def unequal():
    return valleys(energy, posterior, UNEQUAL, 1.0, beta_range=(0.5, 16), heights=(-0.2, 0.2))


def shadow():
    return valleys(
        energy, posterior, SHADOW, 16, beta_range=(0.5, 1024), heights=(-0.2, 0.4), limits=(-0.5, 2)
    )


def pair():
    return two_centres(energy, log_mixture_weights, posterior)


def notes(picture):
    marks = [mark for panel in picture._resolved.panels for mark in panel.marks]
    return [mark.text for mark in marks if isinstance(mark, Note)]


def stars(picture):
    """Return how many valleys are marked in each panel."""
    return [
        sum(
            len(np.atleast_2d(m.at))
            for m in panel.marks
            if isinstance(m, Points) and m.role == "landing" and np.size(m.at)
        )
        for panel in picture._resolved.panels
    ]


def labels(picture, panel):
    return [m.label for m in picture._resolved.panels[panel].marks if isinstance(m, Path)]


# ---------------------------------------------------------------- counting valleys


@pytest.mark.parametrize(
    ("Y", "betas"),
    [
        (TRIANGLE, (1.7, 1.83, 1.8306, 1.9, 1.99, 2.01, 2.1, 40)),
        (UNEQUAL, (0.5, 2.8, 2.815, 16)),
        (SHADOW, (0.5, 8, 1024)),
        (PRESETS["pair"].Y, (3.96, 4.04)),
        (PRESETS["far pair"].Y, (3.96, 4.04)),
        (PRESETS["fold"].Y, (7.77, 7.92)),
        (PRESETS["pair"].Y[:, :1], (1, 100)),
        (np.ones((2, 2)), (1, 100)),
    ],
)
def test_counts_the_valleys_that_are_there(Y, betas):
    counts = [len(valleys_of(posterior, Y, beta)) for beta in betas]
    assert counts == valley_census(Y, betas).tolist()


def test_counts_the_valleys_of_random_centres():
    rng = np.random.default_rng(1)
    for _ in range(40):
        Y, beta = rng.normal(size=(rng.integers(1, 4), 2)), 2 ** rng.uniform(-2, 6)
        found = valleys_of(posterior, Y, beta)
        assert len(found) == valley_census(Y, [beta])[0]
        for x in found:
            assert np.abs(x - posterior(x, Y, beta) @ Y).max() < 1e-9


def test_a_split_that_happens_right_now_is_one_valley():
    # There the middle has no curvature at all, but the ground still rises on both sides.
    assert len(valleys_of(posterior, np.array([[1.0], [-1.0]]), 1.0)) == 1
    # The middle of the triangle falls on one side: no valley any more.
    assert len(valleys_of(posterior, TRIANGLE, 2.0)) == 3


# ---------------------------------------------------------------- two centres on a line


@pytest.mark.parametrize("beta", ["min", "max"])
@pytest.mark.parametrize("r", [0.25, 2.0])
@pytest.mark.parametrize("c", [0.0, 0.6])
def test_two_centres_at_the_ends_of_all_controls(beta, r, c):
    picture = pair()
    picture.controls["r"].value, picture.controls["c"].value = r, c
    picture.controls["beta"].value = 2.0 ** getattr(picture.controls["beta"], beta)
    assert notes(picture) == []
    beta = picture.controls["beta"].value
    count = valley_census(np.array([[c - r], [c + r]]), [beta])[0]
    assert f"{count} valley" in picture.words
    assert stars(picture)[0] == count
    for panel in picture._resolved.panels[1].marks:
        if hasattr(panel, "values"):
            assert panel.values.max() <= 1.1  # the sum of the bumps fits


@pytest.mark.parametrize(("r", "split"), [(0.25, "16"), (0.5, "4"), (1.0, "1"), (2.0, "0.25")])
def test_equal_centres_split_at_the_mark(r, split):
    picture = pair()
    picture.controls["r"].value = r
    picture.controls["beta"].value = 1.05 * float(split)
    assert f"1/r² = {split}" in labels(picture, 2)
    assert f"split at {split}" in labels(picture, 2)
    assert f"the number changed at {split} to 2." in picture.words


def test_moving_two_centres_aside_delays_their_split():
    picture = pair()
    picture.controls["r"].value, splits = 0.5, []
    picture.controls["beta"].value = 2.0 ** picture.controls["beta"].max
    for c in (0.0, 0.1, 0.2, 0.3):
        picture.controls["c"].value = c
        splits.append(float(re.search(r"changed at ([\d.]+) to 2", picture.words)[1]))
    assert splits == sorted(set(splits))
    # The split of c = 0.35 lies beyond the picture, which must not call that never.
    picture.controls["c"].value = 0.35
    assert valley_census(np.array([[-0.15], [0.85]]), [28.5, 29.2]).tolist() == [1, 2]
    assert "did not change" in picture.words
    assert "beyond β = 20.75 is not shown" in picture.words


@pytest.mark.parametrize("make", ["pair", "triangle", "unequal", "shadow"])
def test_what_lies_beyond_the_present_beta_is_left_to_predict(make):
    picture = {"pair": pair, "triangle": triangle, "unequal": unequal, "shadow": shadow}[make]()
    beta = picture.controls["beta"].value
    panel = picture._resolved.panels[2]
    for mark in panel.marks:
        if isinstance(mark, Path):
            assert np.max(np.atleast_2d(mark.at)[:, 0]) <= beta * (1 + 1e-9)
    assert "changed" not in picture.words
    assert not any(label.startswith("split") for label in labels(picture, 2))


def test_a_place_that_is_0_is_called_0():
    picture = pair()
    picture.controls["beta"].value = 1.0  # flat, so the search ends a little aside
    assert "1 valley, at 0.00." in picture.words


def test_bumps_add_up_to_the_exponential_of_the_energy():
    picture = pair()
    picture.controls["r"].value, picture.controls["c"].value = 1.5, 0.3
    bumps = [m.at for m in picture._resolved.panels[1].marks if isinstance(m, Path)]
    grid = next(m.values for m in picture._resolved.panels[1].marks if hasattr(m, "values"))
    x = np.linspace(-2.75, 2.75, len(grid))
    total = sum(np.interp(x, *bump.T) for bump in bumps)
    np.testing.assert_allclose(grid, total, atol=2e-3)


# ---------------------------------------------------------------- centres in the plane


def test_a_triangle_shows_one_four_and_three_valleys():
    picture, counts = triangle(), []
    for beta in (1.7, 1.85, 1.9, 1.995, 2.1):
        picture.controls["beta"].value = beta
        counts.append(stars(picture)[0])
    assert counts == [1, 4, 4, 4, 3]
    assert "the number changed at 1.83 to 4, at 2 to 3." in picture.words
    assert notes(picture) == []


def test_the_ridge_around_the_middle_fits_the_cut():
    picture = triangle()
    picture.controls["beta"].value = 1.85
    grid = next(m.values for m in picture._resolved.panels[1].marks if hasattr(m, "values"))
    assert stars(picture)[1] == 2
    between = grid[len(grid) // 2 : int(0.7 * len(grid))]
    assert 0.3 < between.max() < 3  # thousandths


def test_the_fourth_valley_is_lost_within_a_small_push():
    picture = triangle()
    picture.controls["beta"].value = 1.9
    push = picture.controls["push"]
    counts = {}
    for steps in (7, 8, -33, -34):
        push.value = steps * push.step
        counts[steps] = stars(picture)[0]
    assert push.step == 0.0005
    assert counts == {7: 4, 8: 3, -33: 4, -34: 2}
    push.value = 0.0035
    assert "y₁ at (1.0035, 0)" in picture.words


def test_unequal_centres_split_at_the_second_mark():
    picture = unequal()
    picture.controls["beta"].value = 3.0
    assert {"1/r² = 1.561", "split at 2.809"} <= set(labels(picture, 2))
    for beta, count in ((0.5, 1), (2.0, 1), (4.0, 2), (16.0, 2)):
        picture.controls["beta"].value = beta
        assert stars(picture)[0] == count
        assert f"{count} valley" in picture.words


def test_a_centre_leaves_the_shadow_when_it_is_moved():
    picture = shadow()
    for beta in (0.5, 1024):
        picture.controls["beta"].value = beta
        assert stars(picture)[0] == 1
    assert "From β = 0.50 up to here the number did not change." in picture.words
    assert "y₁·y₁ = 1, y₁·y₂ = 1.5" in picture.words
    picture.move(tokens=[[1.0, -0.75], [1.5, 0.5]])
    assert stars(picture)[0] == 2
    assert "y₁ at (1, −0.75)" in picture.words
    assert "y₁·y₁ = 1.5625, y₁·y₂ = 1.125" in picture.words
    picture.move(tokens=[[1.5, 0.5], [1.5, 0.5]])  # one on the other
    assert stars(picture)[0] == 1
    assert notes(picture) == []


@pytest.mark.parametrize("make", [pair, triangle, unequal, shadow])
def test_every_picture_has_a_static_twin_with_words(make):
    picture = make()
    assert len(picture.figure().axes) == 3
    data, _ = picture._repr_mimebundle_()
    assert data["image/png"]
    assert len(data["text/plain"].split()) >= 8


# ---------------------------------------------------------------- wrong functions


WRONG = {
    "unwritten": (unwritten, "not written yet: unwritten"),
    "nothing": (lambda *_: None, "returned nothing"),
    "list": (lambda *_: ["a", "b"], "not numbers"),
    "shape": (lambda *_: np.ones(7), "returned shape (7,)"),
    "nan": (lambda xi, Y, beta: np.full(len(Y), np.nan), "sum to 1"),
    "not normalised": (lambda xi, Y, beta: np.full(len(Y), 2.0), "sum to 1"),
    "raises": (lambda *_: 1 / 0, "ZeroDivisionError"),
}


@pytest.mark.parametrize(("wrong", "said"), WRONG.values(), ids=WRONG.keys())
@pytest.mark.parametrize("make", ["line", "plane"])
def test_a_wrong_posterior_is_named_and_the_rest_is_drawn(make, wrong, said):
    if make == "line":
        picture = two_centres(energy, log_mixture_weights, wrong)
    else:
        picture = triangle(posterior=wrong)
    assert said in " ".join(notes(picture))
    assert any(hasattr(mark, "values") for mark in picture._resolved.panels[0].marks)
    assert len(picture.figure().axes) == 3


@pytest.mark.parametrize("wrong", [unwritten, lambda *_: None, lambda *_: np.nan, lambda *_: 1 / 0])
def test_a_wrong_energy_leaves_the_count(wrong):
    for picture in (two_centres(wrong, log_mixture_weights, posterior), triangle(energy=wrong)):
        assert notes(picture)
        assert "valley" in picture.words
        assert len(picture.figure().axes) == 3


@pytest.mark.parametrize("wrong", [unwritten, lambda *_: None, lambda *_: np.ones(3)])
def test_wrong_weights_leave_the_energy(wrong):
    picture = two_centres(energy, wrong, posterior)
    assert notes(picture)
    assert stars(picture)[0] == 1
    assert len(picture.figure().axes) == 3


def test_a_posterior_without_weights_puts_the_valleys_elsewhere():
    def equal(xi, Y, beta):
        return softmax(-beta * ((xi - Y) ** 2).sum(axis=1) / 2)

    right = valleys_of(posterior, UNEQUAL, 2.0)
    assert len(valleys_of(equal, UNEQUAL, 2.0)) == 2 != len(right)


def test_functions_that_change_their_arguments_change_nothing():
    def spoils(xi, Y, beta):
        a = posterior(xi, Y, beta)
        Y *= 0
        return a

    Y = UNEQUAL.copy()
    assert len(valleys_of(spoils, Y, 4.0)) == 2
    assert np.array_equal(Y, UNEQUAL)


# ---------------------------------------------------------------- numbers in the lesson's prose


def test_numbers_by_hand():
    beta, Y = 2 * np.log(3), np.array([[1.0], [0.0]])
    np.testing.assert_allclose(np.exp(log_mixture_weights(Y, beta)), [3, 1])
    assert energy(np.array([0.0]), Y, beta) == pytest.approx(-np.log(2) / beta)
    np.testing.assert_allclose(posterior(np.array([0.5]), Y, beta), [0.75, 0.25])
    assert len(valleys_of(posterior, Y, beta)) == 1


def test_numbers_of_the_claim():
    scores = np.random.default_rng(0).normal(size=(200, 32, 2))
    kept = np.mean([np.diag(y @ y.T) == (y @ y.T).max(axis=1) for y in scores])
    assert kept == pytest.approx(0.163, abs=0.01)
    angles = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    circle = 0.1 * np.column_stack([np.cos(angles), np.sin(angles)])
    middle = energy(np.zeros(2), TRIANGLE, 1.9)
    assert min(energy(x, TRIANGLE, 1.9) for x in circle) > middle
    assert energy(0.6 * TRIANGLE[0], TRIANGLE, 1.9) < middle


def test_lse_grows_at_most_like_the_longest_centre():
    rng = np.random.default_rng(4)
    for _ in range(200):
        xi, Y, beta = 5 * rng.normal(size=3), rng.normal(size=(6, 3)), 2 ** rng.uniform(-4, 4)
        radius = np.linalg.norm(Y, axis=1).max()
        most = radius * np.linalg.norm(xi) + np.log(6) / beta
        assert logsumexp(beta * Y @ xi) / beta <= most + 1e-9
