"""The pictures of lesson 05, and every number that the lesson says in words."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from autograder.reference.tanh_modes import (
    mode_centers,
    sign_patterns,
    stable_modes,
    tanh_energy,
    tanh_step,
)
from hopping.explore import parallelogram, zonogon
from hopping.explore.corners import BETAS, SIX_TOKENS, outline, tanh_valleys
from hopping.explore.scene import Axis, TroubleError
from hopping.explore.search import staircase, valley_below

OWN = (tanh_energy, tanh_step, mode_centers, stable_modes)
A = SIX_TOKENS[:3]


def put(picture, points=None, **controls):
    """Move everything and return the marks of each panel, as the view gets them."""
    for name, value in controls.items():
        picture.controls[name].value = value
    if points:
        picture.move(**points)
    return [panel["marks"] for panel in picture.view.scene["panels"]]


def notes(panels):
    return [mark["text"] for marks in panels for mark in marks if mark["kind"] == "note"]


def one(marks, **wanted):
    """Return the only mark with these properties."""
    (found,) = [m for m in marks if all(m.get(key) == value for key, value in wanted.items())]
    return found


def corners_of(marks):
    """Return (places of the corners, which are filled)."""
    mark = one(marks, kind="points", label="corners: filled if stable")
    return np.array(mark["at"]), ~np.array(mark["hollow"])


def steps_of(marks):
    """Return the counts of the staircase, from small β to large."""
    heights = 2 ** np.array(one(marks, kind="path", label="valleys")["at"])[::2, 1]
    return heights.round().astype(int).tolist()


@pytest.fixture(scope="module")
def pair():
    return parallelogram(*OWN)


@pytest.fixture(scope="module")
def many():
    return zonogon(*OWN)


# ---------------------------------------------------------------- whole at all ends


@pytest.mark.parametrize("beta", [BETAS.low, 4.0, BETAS.high])
@pytest.mark.parametrize("angle", [0, 63, 90, 180])
def test_the_pair_is_whole_at_the_ends_of_its_controls(pair, beta, angle):
    panels = put(pair, {"query": (-2.5, 2.5)}, beta=beta, angle=angle)
    assert len(panels) == 3
    assert notes(panels) == []
    for said in ("2 tokens", f"y₂ is at {angle}°", "4 corners", "1/λ_max is", "tanh hop at"):
        assert said in pair.words


@pytest.mark.parametrize("beta", [BETAS.low, 4.0, BETAS.high])
@pytest.mark.parametrize("n", [2, 3, 6])
def test_more_tokens_are_whole_at_the_ends_of_their_controls(many, beta, n):
    panels = put(many, {"tokens": SIX_TOKENS}, beta=beta, n=n)
    assert notes(panels) == []
    assert f"{2**n} corners" in many.words
    assert f"2n = {2 * n}" in many.words
    assert len(corners_of(panels[1])[0]) == 2**n


def test_controls_have_the_ranges_that_the_lesson_speaks_of(pair, many):
    assert (pair.controls["angle"].min, pair.controls["angle"].max) == (0, 180)
    assert (many.controls["n"].min, many.controls["n"].max) == (2, 6)
    for picture in (pair, many):
        beta = picture.controls["beta"]
        assert 2**beta.min <= 0.1
        assert 2**beta.max >= 30


@pytest.mark.parametrize("tokens", [np.zeros((6, 2)), np.tile([[1.0, 0.5]], (6, 1)), -SIX_TOKENS])
def test_tokens_that_coincide_or_vanish_do_no_harm(tokens):
    panels = put(zonogon(*OWN, tokens=tokens), n=6)
    assert notes(panels) == []


def test_they_draw_their_static_twins(pair, many):
    for picture in (pair, many):
        figure = picture.figure()
        titles = [ax.get_title() for ax in figure.axes]
        assert titles == ["Softmax kernel", "Tanh kernel", "How many valleys (tanh)"]
        assert "stable (filled)" in figure.words


# ---------------------------------------------------------------- what they show is true


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_corners_are_filled_where_stable_and_lie_within_the_outline(many, n):
    _, tanh, _ = put(many, {"tokens": SIX_TOKENS}, n=n, beta=4.0)
    places, filled = corners_of(tanh)
    np.testing.assert_allclose(places, mode_centers(SIX_TOKENS[:n]))
    np.testing.assert_array_equal(filled, stable_modes(SIX_TOKENS[:n]))
    around = np.array(one(tanh, kind="path", closed=True)["at"])
    assert len(around) == 2 * n
    hull = ConvexHull(places)
    assert ConvexHull(around).volume == pytest.approx(hull.volume)
    assert len(hull.vertices) == 2 * n
    assert len(np.unique(places.round(9), axis=0)) == 2**n  # no two corners coincide


def test_what_marks_the_same_place_is_seen_around_what_is_drawn_on_it(many):
    softmax, tanh, _ = put(many, {"tokens": SIX_TOKENS}, n=3, beta=4.0)
    for marks, below, above in (
        (softmax, "valleys", "tokens"),
        (tanh, "corners: filled if stable", "valleys at this β"),
    ):
        points = [mark for mark in marks if mark["kind"] == "points"]
        order = [mark["label"] for mark in points]
        assert order.index(below) < order.index(above)
        assert one(points, label=below)["wide"]
        assert not one(points, label=above)["wide"]


def test_stars_sit_on_the_filled_corners_when_beta_is_large(many):
    _, tanh, count = put(many, {"tokens": SIX_TOKENS}, n=6, beta=32.0)
    stars = np.array(one(tanh, kind="points", label="valleys at this β")["at"])
    places, filled = corners_of(tanh)
    apart = np.linalg.norm(stars[:, None] - places[filled], axis=2)
    assert apart.shape == (8, 8)
    assert apart.min(axis=1).max() < 0.1
    assert steps_of(count)[-1] == 8


def test_the_search_finds_what_hops_from_every_corner_find():
    rng = np.random.default_rng(50)
    for _ in range(12):
        Y, beta = rng.normal(size=(rng.integers(1, 6), 2)), 2 ** rng.uniform(-3, 4)
        x = mode_centers(Y)
        for hop in range(3000):
            x = np.tanh(beta * x @ Y.T) @ Y
            if hop % 100 == 99:
                x = np.unique(x.round(9) + 0.0, axis=0)
        curve = [np.eye(2) - beta * (Y.T * (1 - np.tanh(beta * Y @ p) ** 2)) @ Y for p in x]
        kept = [p for p, H in zip(x, curve, strict=True) if np.linalg.eigvalsh(H)[0] > 1e-6]
        assert len(tanh_valleys(tanh_step, Y, beta)) == len(np.unique(np.round(kept, 4), axis=0))


def test_the_count_changes_at_the_mark(pair, many):
    for picture, key, values in ((pair, "angle", (20, 63, 90, 150)), (many, "n", (2, 3, 4, 5, 6))):
        for value in values:
            _, _, count = put(picture, **{key: value})
            (mark,) = [m for m in count if m.get("label", "").startswith("1/λ_max")]
            stairs = np.array(one(count, kind="path", label="valleys")["at"])
            assert stairs[1, 0] == pytest.approx(mark["at"][0][0], rel=0.01)
            assert steps_of(count)[:2] == [1, 2]


def test_a_staircase_finds_several_changes_between_two_samples():
    edges = [0.1501, 0.1502, 0.9]
    betas = Axis("β", 0.1, 1.0)
    steps = staircase(lambda beta: 1 + sum(beta > edge for edge in edges), betas, "f", 1e-5)
    assert [count for _, count in steps] == [1, 2, 3, 4]
    np.testing.assert_allclose([begin for begin, _ in steps[1:]], edges, rtol=1e-4)


def test_a_walk_to_a_saddle_is_no_valley():
    def slopes(x):  # of x² − y² + y⁴ / 2
        return np.array([2 * x[0], 2 * x[1] ** 3 - 2 * x[1]]), np.diag([2, 6 * x[1] ** 2 - 2])

    assert valley_below(slopes, np.array([1.0, 0.0]), 2.0) is None
    np.testing.assert_allclose(valley_below(slopes, np.array([1.0, 0.1]), 2.0), [0, 1], atol=1e-9)


# ---------------------------------------------------------------- wrong functions


def unwritten(*_):
    raise NotImplementedError


@pytest.mark.parametrize(
    ("place", "function", "said"),
    [
        *[(k, unwritten, "not written yet: unwritten") for k in range(4)],
        (0, lambda xi, Y, beta: None, "returned nothing"),
        (0, lambda xi, Y, beta: xi, "the picture needs one number"),
        (1, lambda xi, Y, beta: np.array([np.nan, 0]), "returned nan"),
        (1, lambda xi, Y, beta: 1 / 0, "ZeroDivisionError"),
        (1, lambda xi, Y, beta: np.tanh(beta * (Y @ xi)), "the picture needs shape (2,)"),
        (1, lambda xi, Y, beta: list(tanh_step(xi, Y, beta)), ""),
        (1, lambda xi, Y, beta: tanh_step(xi, Y, beta) / len(Y), ""),
        (2, lambda Y: np.concatenate([Y, -Y]), "the picture needs shape (8, 2)"),
        (2, lambda Y: mode_centers(Y) / 2, ""),
        (3, lambda Y: int(stable_modes(Y).sum()), "the picture needs shape (8,)"),
        (3, lambda Y: np.ones(2 ** len(Y), dtype=bool), ""),
    ],
)
def test_functions_that_are_wrong_leave_the_rest_of_the_picture(place, function, said):
    own = list(OWN)
    own[place] = function
    picture = zonogon(*own)
    panels = put(picture, beta=BETAS.high)
    assert bool(notes(panels)) == bool(said)
    assert all(said in note for note in notes(panels))
    assert any(mark["kind"] == "grid" for mark in panels[0])
    assert picture.figure().axes


def test_a_hop_that_is_too_slow_to_count_with_is_said_so(monkeypatch):
    monkeypatch.setattr("hopping.explore.search.PATIENCE", 0.0)
    with pytest.raises(TroubleError, match="tanh_step is too slow"):
        staircase(lambda beta: 1, BETAS, "tanh_step", 0.01)


def test_an_outline_of_parallel_tokens_is_a_segment():
    flat = outline(np.array([[1.0, 0.0], [-2.0, 0.0]]))
    assert np.abs(flat).max(axis=0).tolist() == [3, 0]


# ---------------------------------------------------------------- what the lesson says in words

LESSON = Path(__file__).parents[1] / "course" / "lessons" / "05_tanh_modes.py"


def given(hop=tanh_step):
    """Run the cells of the lesson that give helpers."""
    names = {"np": np, "tanh_step": hop}
    for name in ("given", "given_rest"):
        (body,) = re.findall(rf'# %% name="{name}"\n(.*?)\n# %%', LESSON.read_text(), re.DOTALL)
        exec(body, names)
    return names["sign_patterns"], names["rest"]


def test_the_given_helpers_are_right_and_refuse_what_they_cannot_do():
    patterns, rest = given()
    for n in (1, 5, 16):
        np.testing.assert_array_equal(patterns(n), sign_patterns(n))
    for n in (0, 17, 20):
        with pytest.raises(ValueError, match=f"n is {n}"):
            patterns(n)
    start = np.array([0.1, 0.3])
    np.testing.assert_allclose(rest(start, A, 0.3), [0, 0], atol=1e-9)
    for beta in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="beta must be above 0"):
            rest(start, A, beta)
    for Y in (np.ones((0, 2)), np.ones(2), []):
        with pytest.raises(ValueError, match="at least one token"):
            rest(start, Y, 1.0)
    _, endless = given(lambda xi, Y, beta: xi + 1)
    with pytest.raises(RuntimeError, match="still moving after 20000 hops"):
        endless(start, A, 1.0)


def test_the_example_by_hand():
    Y = np.array([[1, 0], [0.5, 1]])
    corners = [[1.5, 1], [0.5, -1], [-0.5, 1], [-1.5, -1]]
    np.testing.assert_allclose(mode_centers(Y), corners)
    np.testing.assert_allclose(Y @ corners[1], [0.5, -0.75])
    assert stable_modes(Y).all()
    longer = np.array([[1, 0], [1.2, 0.3]])
    np.testing.assert_allclose(mode_centers(longer)[1], [-0.2, -0.3])
    assert (longer @ mode_centers(longer)[1])[0] == pytest.approx(-0.2)
    assert stable_modes(longer).tolist() == [True, False, False, True]


def test_what_turning_the_second_token_shows(pair):
    filled = {
        angle: corners_of(put(pair, angle=angle, beta=4.0)[1])[1].tolist()
        for angle in (24, 25, 63, 155, 156)
    }
    assert filled[63] == filled[25] == filled[155] == [True] * 4
    assert filled[24] == [True, False, False, True]  # the difference of the tokens
    assert filled[156] == [False, True, True, False]
    put(pair, angle=24)
    assert "1.00, smaller" not in pair.words
    assert "not smaller than the smaller square, 1.00" in pair.words
    put(pair, angle=63)
    assert "4 from β = 3.5" in pair.words
    assert "1/λ_max is 0.619" in pair.words
    _, tanh, _ = put(pair, {"query": (1.25, 1.5)}, angle=63, beta=4.0)
    landing = np.array(one(tanh, kind="path", label="hop")["at"])[1]
    assert np.linalg.norm(landing) > 1.5  # farther out than both tokens


def test_what_more_tokens_show(many):
    kept = [stable_modes(SIX_TOKENS[:n]).sum() for n in range(2, 7)]
    assert kept == [4, 4, 6, 4, 8]
    put(many, {"tokens": SIX_TOKENS}, n=6, beta=4.0)
    assert "the tanh kernel has 6 valleys" in many.words
    assert "8 from β = 22" in many.words
    moved = SIX_TOKENS.copy()
    moved[0] = 2, -2
    put(many, {"tokens": moved}, n=3, beta=4.0)
    assert "8 corners, of which 2 are stable" in many.words


def test_a_long_token_leaves_one_pattern_and_its_opposite():
    rng = np.random.default_rng(51)
    for n, d in itertools.product((2, 5, 8), (2, 4)):
        Y = rng.normal(size=(n, d))
        Y[0] *= 1e4
        assert stable_modes(Y).sum() == 2


def test_the_broken_mask_of_the_project_misses_about_half():
    rng = np.random.default_rng(6)
    kept = missed = 0
    for _ in range(20):
        Y = rng.normal(size=(6, 2))
        support = sign_patterns(6) * (mode_centers(Y) @ Y.T) - (Y**2).sum(axis=1)
        mask = stable_modes(Y)
        kept, missed = kept + mask.sum(), missed + (mask & ~(support > 0).all(axis=1)).sum()
    assert missed / kept == pytest.approx(0.5, abs=0.1)


def test_the_longest_stable_corner_is_the_deepest():
    rng = np.random.default_rng(52)
    for _ in range(10):
        Y = rng.normal(size=(6, 3))
        corners = mode_centers(Y)[stable_modes(Y)]
        depths = [tanh_energy(z, Y, 1000.0) for z in corners]
        # Without the constant, which is the same for all, half the squared length.
        np.testing.assert_allclose(depths, -(corners**2).sum(axis=1) / 2, atol=6 * np.log(2) / 999)
        assert np.argmin(depths) in np.flatnonzero(
            np.isclose((corners**2).sum(axis=1), (corners**2).sum(axis=1).max())
        )
