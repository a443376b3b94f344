"""The picture of lesson 06, its table of kernels, and the numbers that its text says in words."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from autograder.reference.linear_saddle import (
    classify,
    critical_beta,
    curvatures,
    linear_energy,
    linear_step,
)
from hopping import draw
from hopping.explore import shape_and_orbit
from hopping.kernels import FORMS, LANDSCAPES, kernel_table

RIGHT = (linear_energy, linear_step, curvatures, critical_beta, classify)
A_XI = np.array([0.75, -0.5])
A_Y = np.array([[1, 0.5], [-0.5, 1.25], [0.25, -1]])
LOWEST = 2**-4.25


def put(picture, query=None, **controls):
    """Move everything and return the marks of each panel, as the view gets them."""
    for name, value in controls.items():
        picture.controls[name].value = value
    if query is not None:
        picture.move(query=query)
    return [panel["marks"] for panel in picture.view.scene["panels"]]


def notes(panels):
    return [mark["text"] for marks in panels for mark in marks if mark["kind"] == "note"]


def orbit(marks):
    (found,) = [mark for mark in marks if mark["kind"] == "path" and mark["dots"]]
    return np.array(found["at"], dtype=float)


def inside(axis, values):
    return np.all((axis["low"] <= values) & (values <= axis["high"]))


@pytest.fixture(scope="module")
def picture():
    return shape_and_orbit(*RIGHT)


# ---------------------------------------------------------------- the picture


@pytest.mark.parametrize("beta", [LOWEST, 0.5, 2.0])
@pytest.mark.parametrize("n", [1, 4])
@pytest.mark.parametrize("query", [(0.75, -0.5), (2.0, 2.0), (-2.0, 0.001)])
def test_is_whole_at_the_ends_of_its_controls(picture, beta, n, query):
    panels = put(picture, query, beta=beta, n=n)
    assert len(panels) == 6
    assert notes(panels) == []
    assert picture.words.startswith(f"{n} token")
    assert classify(np.array([*A_Y.tolist(), [-1, -0.5]])[:n], beta) in picture.words
    assert "E falls in 10 of 10 hops" in picture.words
    scene = picture.view.scene["panels"]
    for k in (4, 5):
        assert inside(scene[k]["y"], orbit(panels[k])[:, 1])
    assert inside(scene[2]["y"], np.array(panels[2][0]["heights"]))


def test_a_query_at_the_peak_stays_there(picture):
    panels = put(picture, (0.0, 0.0), beta=1.0, n=3)
    assert notes(panels) == []
    assert np.isnan(orbit(panels[4])[:, 1]).all()
    assert "E falls in 0 of 10 hops" in picture.words
    assert picture.figure().axes


def test_the_axes_written_by_hand_say_what_is_drawn(picture):
    panels = put(picture, (0.75, -0.5), beta=1.0, n=3)
    places = [A_XI]
    for _ in range(10):
        places.append(linear_step(places[-1], A_Y, 1.0))
    powers = {"10⁻¹²": -12, "10⁻⁸": -8, "10⁻⁴": -4, "1": 0, "10⁴": 4, "10⁸": 8}
    axis = picture.view.scene["panels"][4]["y"]
    assert axis["names"] == list(powers)
    shown = np.interp(orbit(panels[4])[:, 1], range(6), list(powers.values()))
    np.testing.assert_allclose(10**shown, np.linalg.norm(places, axis=1), rtol=1e-9)
    # Between two names of the energy axis lies a factor of 1000, up to 1 in a few thousand.
    axis = picture.view.scene["panels"][5]["y"]
    assert axis["names"][:2] == ["−10¹⁸", "−10¹⁵"]
    assert axis["names"][6:] == ["−1", "0", "1"]
    shown = -(10 ** (3 * (6 - orbit(panels[5])[:, 1])))
    np.testing.assert_allclose(
        shown, [linear_energy(x, A_Y, 1.0) - 1e-3 for x in places], rtol=1e-2
    )


def test_draws_its_static_twin(picture):
    put(picture, (0.75, -0.5), beta=1.0, n=3)
    figure = picture.figure()
    assert [ax.get_title() for ax in figure.axes] == [
        "Energy from above",
        "Energy as a surface",
        "The curvatures now",
        "The curvatures over β",
        "Distance from 0, hop after hop",
        "Energy, hop after hop",
    ]
    assert "a dome" in figure.words


def test_its_controls_have_the_ranges_that_the_lesson_speaks_of(picture):
    beta, n = picture.controls["beta"], picture.controls["n"]
    assert (2**beta.min, 2**beta.max) == pytest.approx((LOWEST, 2))
    assert (n.min, n.max) == (1, 4)
    shapes = []
    for power in np.arange(beta.min, beta.max + 0.1, beta.step):
        shapes.append(classify(A_Y, 2**power))
    assert [shape for shape, _ in itertools.groupby(shapes)] == ["bowl", "saddle", "dome"]
    assert all(classify(A_Y[:1], 2.0**power) != "dome" for power in range(-4, 12))


def test_a_saddle_first_attracts_a_query_near_its_higher_curvature(picture):
    _, ways = np.linalg.eigh(np.eye(2) - 0.5 * A_Y.T @ A_Y)
    panels = put(picture, 1.5 * ways[:, 1] + 0.01 * ways[:, 0], beta=0.5, n=3)
    moves = np.diff(orbit(panels[4])[:, 1])
    assert moves[0] < 0 < moves[-1]
    assert np.all(np.diff(orbit(panels[5])[:, 1]) < 0)


def unwritten(*_):
    raise NotImplementedError


@pytest.mark.parametrize(
    ("which", "wrong", "said"),
    [
        *((k, unwritten, "not written yet: unwritten") for k in range(5)),
        (0, lambda xi, Y, beta: xi, "shape"),
        (1, lambda xi, Y, beta: None, "returned nothing"),
        (1, lambda xi, Y, beta: np.full(2, np.nan), "returned nan"),
        (2, lambda Y, beta: np.linalg.eigvalsh(Y @ Y.T), "returned shape (3,)"),
        (3, lambda Y: 1 / 0, "ZeroDivisionError"),
        (4, lambda Y, beta: "valley", "'valley', which is no shape"),
        (4, lambda Y, beta: None, "None, which is no shape"),
    ],
)
def test_functions_that_are_wrong_leave_the_rest_of_the_picture(which, wrong, said):
    functions = [*RIGHT[:which], wrong, *RIGHT[which + 1 :]]
    picture = shape_and_orbit(*functions)
    for beta in (LOWEST, 2.0):
        panels = put(picture, (0.75, -0.5), beta=beta, n=3)
        told = notes(panels)
        assert told
        assert all(said in note for note in told)
        assert sum(len(marks) > 1 for marks in panels) >= 2
    assert picture.figure().axes


def test_a_signed_surface_has_the_colours_of_the_plane_below_it():
    with draw.figure(ncols=2, projections=["3d", None]) as (_, (solid, flat)):
        (surface,) = draw.draw_surface(solid, lambda x: x[0] * x[1], signed=True)
        image = draw.draw_landscape(flat, lambda x: x[0] * x[1], signed=True)[0]
    assert surface.get_clim() == pytest.approx(image.get_clim())
    np.testing.assert_array_equal(surface.cmap.colors, image.cmap.colors)


# ---------------------------------------------------------------- the table of kernels

FACTOR = {"softmax": np.exp, "tanh": np.cosh, "linear": lambda u: np.exp(u**2 / 2)}
CONCAVE = {
    "softmax": lambda xi, Y, beta: -logsumexp(beta * Y @ xi) / beta,
    "tanh": lambda xi, Y, beta: -np.log(np.cosh(beta * Y @ xi)).sum() / beta,
    "linear": lambda xi, Y, beta: -beta * np.sum((Y @ xi) ** 2) / 2,
}
LANDING = {
    "softmax": lambda xi, Y, beta: softmax(beta * Y @ xi) @ Y,
    "tanh": lambda xi, Y, beta: np.tanh(beta * Y @ xi) @ Y,
    "linear": linear_step,
}
FORM = dict(zip(FACTOR, FORMS, strict=True))
LANDSCAPE = {"softmax": LANDSCAPES[2], "tanh": LANDSCAPES[2], "linear": LANDSCAPES[4]}
TABLE = {
    "factor": FACTOR, "concave": CONCAVE, "landing": LANDING, "form": FORM, "landscape": LANDSCAPE
}  # fmt: skip


def cell(row, kernel, entry):
    """Return what the machine says to one entry in an otherwise right table."""
    table = kernel_table(**{**TABLE, row: {**TABLE[row], kernel: entry}})
    assert table.right in (14, 15)
    return table.cells[row][list(FACTOR).index(kernel)]


def test_the_right_table_is_right_in_every_cell():
    table = kernel_table(**TABLE)
    assert table.right == 15
    assert "15 of 15 cells are right." in str(table)
    assert "15 of 15 cells are right." in table._repr_html_()


def test_an_empty_table_is_not_written_yet():
    table = kernel_table(
        {}, {"tanh": None}, {}, {"softmax": ""}, dict.fromkeys(("softmax", "tanh", "linear"), "")
    )
    assert set(itertools.chain(*table.cells.values())) == {"not written yet"}
    assert table.right == 0


@pytest.mark.parametrize(
    ("row", "kernel", "entry"),
    [
        ("factor", "tanh", lambda u: 2 * np.cosh(u)),  # a constant moves no hop
        ("factor", "softmax", lambda u: float(np.exp(u))),
        ("concave", "tanh", lambda *a: CONCAVE["tanh"](*a) - 5.0),
        ("concave", "linear", lambda xi, Y, b: linear_energy(xi, Y, b) - xi @ xi / 2),
        ("landing", "linear", lambda xi, Y, b: b * Y.T @ Y @ xi),
    ],
)
def test_other_right_entries_are_right(row, kernel, entry):
    assert cell(row, kernel, entry) == "✓"


@pytest.mark.parametrize(
    ("row", "kernel", "entry", "said"),
    [
        ("factor", "linear", lambda u: u**2 / 2, "leads elsewhere"),
        ("factor", "linear", lambda u: u, "above 0"),
        ("factor", "tanh", lambda u: np.exp(abs(u)), "leads elsewhere"),
        ("concave", "softmax", lambda *a: CONCAVE["softmax"](*a) / a[2], "8 times as far"),
        ("concave", "softmax", lambda *a: -CONCAVE["softmax"](*a), "-1 times as far"),
        ("concave", "tanh", lambda *a: None, "returned nothing"),
        ("concave", "linear", unwritten, "not written yet: unwritten"),
        ("landing", "linear", lambda xi, Y, b: (Y @ xi) @ Y, "8 times as far"),
        ("landing", "tanh", lambda xi, Y, b: np.tanh(Y @ xi) @ Y, "leads elsewhere"),
        ("landing", "softmax", lambda xi, Y, b: softmax(b * Y @ xi), "shape"),
        ("landing", "linear", "u Y", "not callable"),
        ("form", "tanh", "n bumps", "measured: 2^n bumps"),
        ("form", "linear", "dome", "measured: quadratic"),
        ("landscape", "softmax", "n valleys", "3 and 1 places"),
        ("landscape", "tanh", "2^n valleys", "4 and 2 places"),
        ("landscape", "linear", "a saddle", "at beta = 1/8 they end at 0"),
        ("landscape", "linear", "a floor and some valleys", "run away at beta = 32"),
    ],
)
def test_wrong_entries_are_wrong_for_a_measured_reason(row, kernel, entry, said):
    found = cell(row, kernel, entry)
    assert found.startswith("✗")
    assert said in found


# ---------------------------------------------------------------- numbers in words


def test_numbers_that_the_lesson_says_in_words():
    two = np.diag([2.0, 1.0])
    by_hand = {1 / 8: (1 / 2, 7 / 8), 1 / 4: (0, 3 / 4), 1 / 2: (-1, 1 / 2), 5 / 4: (-4, -1 / 4)}
    for beta, pair in by_hand.items():
        assert curvatures(two, beta) == pytest.approx(pair)
    landing = linear_step(np.ones(2), two, 0.5)
    assert landing == pytest.approx([2, 1 / 2])
    before, after = linear_energy(np.ones(2), two, 0.5), linear_energy(landing, two, 0.5)
    assert (before, after) == pytest.approx((-1 / 4, -31 / 16))
    assert before - after == pytest.approx(27 / 16)
    assert linear_energy(A_XI, A_Y, 1.0) == pytest.approx(-0.455, abs=5e-4)


def test_domes_are_far_more_common_than_nine_in_ten():
    rng = np.random.default_rng(61)
    shapes = [classify(rng.normal(size=(8, 2)), 2**-0.5) for _ in range(4000)]
    assert shapes.count("dome") / 4000 == pytest.approx(0.956, abs=0.01)
    assert shapes.count("dome") + shapes.count("saddle") > 3990


def test_the_rule_for_the_end_of_the_bowl():
    unit = np.random.default_rng(0).normal(size=(512, 64))
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    ratios = {n: critical_beta(unit[:n]) * (1 + np.sqrt(n / 64)) ** 2 for n in (16, 64, 128, 512)}
    assert ratios[16] == pytest.approx(1.2, abs=0.05)
    assert all(1 < ratios[n] < 1.1 for n in (64, 128, 512))
    assert classify(unit[:63], 1e6) == "saddle"
    assert classify(unit[:64], 1e6) == "dome"
