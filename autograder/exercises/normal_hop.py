"""Lesson 04: what each exercise asks, the wrong answers it knows, right answers of other forms."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from scipy.integrate import quad_vec
from scipy.linalg import null_space
from scipy.special import logsumexp
from scipy.special import softmax as scipy_softmax

from autograder.exercise import Alternative, Exercise, Group, Misconception
from autograder.exercises._cases import (
    SOFTMAX_PUBLIC,
    CalledObject,
    edge_cases,
    extreme_cases,
    landscape_case,
    noisy,
    ordinary_cases,
    random_landscape,
    softmax_groups,
    tied_and_faint_cases,
    zero_dimensional,
)
from autograder.reference import cccp as lesson_3
from autograder.reference import gmm_polarization as lesson_2
from autograder.reference import linear_saddle as lesson_6
from autograder.reference import lse_gradient as lesson_1
from autograder.reference import normal_hop as ref
from autograder.reference import one_step_vs_settling as lesson_7
from autograder.reference import tanh_modes as lesson_5
from autograder.reference.fixtures import A, B, C, E, G
from hopping.cases import Case, Function

LESSON = "04_normal_hop"


def _squared_slope(xi, Y, beta):
    g = lesson_3.energy_grad(xi, Y, beta)
    return g @ g


def _landing(xi, Y, beta):
    return lesson_3.cccp_step(xi, Y, beta)


def _plain_gradient(xi, Y, beta):
    return xi - scipy_softmax(beta * (Y @ xi)) @ Y


GRADIENT = "g is the gradient of E, which has a part of the bowl's too: it is not the landing aY."
BETA = "beta is an argument: everything that you call needs it."


# --- unit_normal --------------------------------------------------------------------------------


def _leaning(xi, Y, beta):
    """Return (-g, 1), which is not yet of length 1."""
    return np.append(-lesson_3.energy_grad(xi, Y, beta), 1.0)


def _normal_height_first(xi, Y, beta):
    return np.roll(ref.unit_normal(xi, Y, beta), 1)


def _normal_by_landing(xi, Y, beta):
    leaning = np.append(-_landing(xi, Y, beta), 1.0)
    return leaning / np.linalg.norm(leaning)


def _normal_in_whole_numbers(xi, Y, beta):
    leaning = np.zeros(len(xi) + 1, dtype=xi.dtype)
    leaning[:] = _leaning(xi, Y, beta)
    return leaning / np.linalg.norm(leaning)


def _normal_along_the_surface(xi, Y, beta):
    g = lesson_3.energy_grad(xi, Y, beta)
    uphill = np.append(g, g @ g)
    return uphill / np.linalg.norm(uphill)


def _normal_over_the_square(xi, Y, beta):
    return _leaning(xi, Y, beta) / (1 + _squared_slope(xi, Y, beta))


def _normal_by_loop(xi, Y, beta):
    g = [float(slope) for slope in _plain_gradient(xi, Y, beta)]
    length = math.hypot(1.0, *g)
    normal = np.zeros(len(g) + 1)
    for j, slope in enumerate(g):
        normal[j] = -slope / length
    normal[-1] = 1 / length
    return normal


def _normal_from_tangents(xi, Y, beta):
    """Take the direction that is perpendicular to every tangent (e_j, dE/dxi_j)."""
    g = _plain_gradient(xi, Y, beta)
    normal = null_space(np.column_stack([np.eye(len(g)), g]))[:, 0]
    return normal * np.sign(normal[-1])


def _normal_from_angle(xi, Y, beta):
    """Tilt the vertical by the angle of the slope."""
    g = _plain_gradient(xi, Y, beta)
    cosine = np.cos(np.arctan(np.linalg.norm(g)))
    return np.concatenate([-g * cosine, [cosine]])


UNIT_NORMAL = Exercise(
    name="unit_normal",
    lesson=LESSON,
    points=3.0,
    expects="an array of d + 1 numbers, height last and positive, of length 1",
    reference=ref.unit_normal,
    examples=SOFTMAX_PUBLIC,
    groups=softmax_groups(4101),
    properties=(
        "is_a_unit_vector_pointing_up",
        "leans_to_the_token_when_alone",
        "ignores_doubled_tokens",
    ),
    misconceptions=(
        Misconception("not-normalised", "Unit length?", _leaning),
        Misconception(
            "downward",
            "Upward: last component positive.",
            lambda xi, Y, beta: -ref.unit_normal(xi, Y, beta),
        ),
        Misconception(
            "plus-gradient",
            "Perpendicular to the surface: dot with a tangent (e_j, dE/dxi_j).",
            lambda xi, Y, beta: ref.unit_normal(xi, Y, beta) * np.append(-np.ones(len(xi)), 1),
        ),
        Misconception(
            "divides-by-the-slope",
            "Include the vertical component.",
            lambda xi, Y, beta: _leaning(xi, Y, beta) / np.sqrt(_squared_slope(xi, Y, beta)),
        ),
        Misconception(
            "height-missing",
            "The surface lives in d+1 dimensions.",
            lambda xi, Y, beta: (
                -lesson_3.energy_grad(xi, Y, beta) / np.sqrt(_squared_slope(xi, Y, beta))
            ),
        ),
        Misconception(
            "slope-not-squared",
            "Pythagoras.",
            lambda xi, Y, beta: (
                _leaning(xi, Y, beta) / np.sqrt(1 + np.sqrt(_squared_slope(xi, Y, beta)))
            ),
        ),
        Misconception("height-first", "Order: horizontal, then height.", _normal_height_first),
        Misconception("landing-for-g", GRADIENT, _normal_by_landing),
        Misconception("beta-ignored", BETA, lambda xi, Y, beta: ref.unit_normal(xi, Y, 1.0)),
        Misconception(
            "cut-to-whole-numbers",
            "Which type has the array that you fill, when xi holds whole numbers?",
            _normal_in_whole_numbers,
        ),
        Misconception(
            "along-the-surface",
            "That is a tangent, straight uphill. The normal is at a right angle to it.",
            _normal_along_the_surface,
        ),
        Misconception(
            "root-forgotten",
            "A length is the root of a sum of squares.",
            _normal_over_the_square,
        ),
    ),
    alternatives=(
        Alternative("loop", _normal_by_loop),
        Alternative("tangents", _normal_from_tangents),
        Alternative(
            "long-double", lambda xi, Y, beta: ref.unit_normal(xi, Y, beta).astype(np.longdouble)
        ),
        Alternative("angle", _normal_from_angle),
        Alternative(
            "hstack",
            lambda xi, Y, beta: (
                np.hstack([Y.T @ scipy_softmax(beta * Y @ xi) - xi, 1])
                / np.sqrt(1 + _squared_slope(xi, Y, beta))
            ),
        ),
        Alternative("callable-object", CalledObject(_normal_by_loop)),
        Alternative("prints-and-warns", noisy(_normal_from_tangents)),
    ),
)


# --- hop_length ---------------------------------------------------------------------------------


def _with_rises(seed):
    """Draw hidden cases with a rise that is not 1."""
    rng = np.random.default_rng(seed)
    rises = (0.25, 3.0, 1e-3, 0.0)
    return tuple(
        landscape_case(f"rise {rise}", random_landscape(rng, 4, 3, 1.25), rise=rise)
        for rise in rises
    )


def _groups_with_rise(seed):
    return (
        Group("ordinary", "ordinary values, rise 1", 0.40, ordinary_cases(seed)),
        Group("rise", "other rises", 0.20, _with_rises(seed + 1)),
        Group(
            "extreme",
            "very large and very small exponents",
            0.25,
            (*extreme_cases(seed + 2), *tied_and_faint_cases()),
        ),
        Group("edges", "edge shapes", 0.15, edge_cases(seed + 3)),
    )


PUBLIC_RISES = (
    *SOFTMAX_PUBLIC,
    landscape_case("A rise 0.5", A, rise=0.5),
    landscape_case("A rise 0", A, rise=0.0),
)


def _length_by_hypot(xi, Y, beta, rise=1.0):
    return rise * math.hypot(1.0, *(float(slope) for slope in _plain_gradient(xi, Y, beta)))


def _length_over_cosine(xi, Y, beta, rise=1.0):
    return rise / ref.unit_normal(xi, Y, beta)[-1]


def _length_between_points(xi, Y, beta, rise=1.0):
    """Measure the straight way from the start to the apex."""
    start = np.append(xi, 0.0)
    apex = np.append(xi - rise * _plain_gradient(xi, Y, beta), rise)
    return np.linalg.norm(apex - start)


HOP_LENGTH = Exercise(
    name="hop_length",
    lesson=LESSON,
    points=3.0,
    expects="one number, at least the rise, and the longer the steeper the place is",
    reference=ref.hop_length,
    examples=PUBLIC_RISES,
    groups=_groups_with_rise(4201),
    properties=(
        "is_proportional_to_the_rise",
        "is_the_hypotenuse_when_alone",
        "ignores_doubled_tokens",
    ),
    misconceptions=(
        Misconception(
            "always-1",
            "Walking distance versus gain in height.",
            lambda xi, Y, beta, rise=1.0: 1.0,
        ),
        Misconception(
            "always-the-rise",
            "Walking distance versus gain in height.",
            lambda xi, Y, beta, rise=1.0: float(rise),
        ),
        Misconception(
            "the-slope",
            "Hypotenuse.",
            lambda xi, Y, beta, rise=1.0: rise * np.sqrt(_squared_slope(xi, Y, beta)),
        ),
        Misconception(
            "one-over-the-root",
            "Steeper means further.",
            lambda xi, Y, beta, rise=1.0: rise / np.sqrt(1 + _squared_slope(xi, Y, beta)),
        ),
        Misconception(
            "rise-ignored",
            "Scale with the rise.",
            lambda xi, Y, beta, rise=1.0: ref.hop_length(xi, Y, beta),
        ),
        Misconception(
            "squared",
            "Compare with a 3-4-5 triangle.",
            lambda xi, Y, beta, rise=1.0: rise * (1 + _squared_slope(xi, Y, beta)),
        ),
        Misconception(
            "rise-under-the-root",
            "Similar triangles.",
            lambda xi, Y, beta, rise=1.0: np.sqrt(rise**2 + _squared_slope(xi, Y, beta)),
        ),
        Misconception(
            "rise-squared",
            "Twice the rise takes twice the walk, not four times.",
            lambda xi, Y, beta, rise=1.0: rise * ref.hop_length(xi, Y, beta, rise),
        ),
        Misconception(
            "divided-by-the-rise",
            "Does a higher apex need a longer or a shorter walk?",
            lambda xi, Y, beta, rise=1.0: ref.hop_length(xi, Y, beta) / rise if rise else np.inf,
        ),
        Misconception(
            "slope-not-squared",
            "Pythagoras.",
            lambda xi, Y, beta, rise=1.0: rise * np.sqrt(1 + np.sqrt(_squared_slope(xi, Y, beta))),
        ),
        Misconception(
            "legs-added",
            "Pythagoras: the way along the slanting side is shorter than along both legs.",
            lambda xi, Y, beta, rise=1.0: rise * (1 + np.sqrt(_squared_slope(xi, Y, beta))),
        ),
        Misconception(
            "rise-added",
            "Similar triangles.",
            lambda xi, Y, beta, rise=1.0: ref.hop_length(xi, Y, beta) + rise - 1,
        ),
        Misconception(
            "landing-for-g",
            GRADIENT,
            lambda xi, Y, beta, rise=1.0: rise / _normal_by_landing(xi, Y, beta)[-1],
        ),
        Misconception(
            "beta-ignored", BETA, lambda xi, Y, beta, rise=1.0: ref.hop_length(xi, Y, 1.0, rise)
        ),
    ),
    alternatives=(
        Alternative("hypot", _length_by_hypot),
        Alternative("over-the-cosine", _length_over_cosine),
        Alternative("between-points", _length_between_points),
        Alternative("callable-object", CalledObject(_length_by_hypot)),
        Alternative("zero-dimensional", zero_dimensional(_length_between_points)),
        Alternative("prints-and-warns", noisy(_length_by_hypot)),
    ),
)


# --- hop_apex -----------------------------------------------------------------------------------


def _start(xi, Y, beta):
    return np.append(np.asarray(xi, dtype=float), lesson_2.energy(xi, Y, beta))


def _apex_after_distance_1(xi, Y, beta, rise=1.0):
    return _start(xi, Y, beta) + rise * ref.unit_normal(xi, Y, beta)


def _apex_from_height_0(xi, Y, beta, rise=1.0):
    apex = ref.hop_apex(xi, Y, beta, rise)
    apex[-1] = rise
    return apex


def _apex_straight_up(xi, Y, beta, rise=1.0):
    return np.append(np.asarray(xi, dtype=float), lesson_2.energy(xi, Y, beta) + rise)


def _apex_by_root_twice(xi, Y, beta, rise=1.0):
    return _start(xi, Y, beta) + ref.hop_length(xi, Y, beta, rise) * _leaning(xi, Y, beta)


def _apex_dropped(xi, Y, beta, rise=1.0):
    below = ref.hop_apex(xi, Y, beta, rise)[:-1]
    return np.append(below, lesson_2.energy(below, Y, beta))


def _apex_uphill(xi, Y, beta, rise=1.0):
    g = lesson_3.energy_grad(xi, Y, beta)
    return _start(xi, Y, beta) + rise * np.append(g, 1.0)


def _apex_by_landing(xi, Y, beta, rise=1.0):
    return _start(xi, Y, beta) + rise * np.append(-_landing(xi, Y, beta), 1.0)


def _apex_in_whole_numbers(xi, Y, beta, rise=1.0):
    apex = np.zeros(len(xi) + 1, dtype=xi.dtype)
    apex[:] = ref.hop_apex(xi, Y, beta, rise)
    return apex


def _apex_or_1(xi, Y, beta, rise=None):
    return ref.hop_apex(xi, Y, beta, rise or 1.0)


def _apex_downward(xi, Y, beta, rise=1.0):
    return _start(xi, Y, beta) - rise * _leaning(xi, Y, beta)


def _apex_above_the_landing(xi, Y, beta, rise=1.0):
    below = ref.hop_apex(xi, Y, beta, rise)[:-1]
    return np.append(below, lesson_2.energy(below, Y, beta) + rise)


def _apex_by_loop(xi, Y, beta, rise=1.0):
    apex = [
        float(x) - rise * float(slope)
        for x, slope in zip(xi, _plain_gradient(xi, Y, beta), strict=True)
    ]
    apex.append(sum(float(x) ** 2 for x in xi) / 2 - logsumexp(beta * Y @ xi) / beta + rise)
    return np.array(apex)


def _apex_by_mixing(xi, Y, beta, rise=1.0):
    """Mix start and landing: a rise of r goes the share r of the way."""
    position = (1 - rise) * xi + rise * (scipy_softmax(beta * Y @ xi) @ Y)
    return np.concatenate([position, [lesson_2.energy_gmm(xi, Y, beta) + rise]])


def _apex_by_small_steps(xi, Y, beta, rise=1.0):
    """Walk in eight equal pieces along one and the same normal."""
    point = _start(xi, Y, beta)
    for _ in range(8):
        point = point + ref.hop_length(xi, Y, beta, rise / 8) * ref.unit_normal(xi, Y, beta)
    return point


HOP_APEX = Exercise(
    name="hop_apex",
    lesson=LESSON,
    points=3.0,
    expects="an array of d + 1 numbers: the position, then a height that is `rise` above E(xi)",
    reference=ref.hop_apex,
    examples=PUBLIC_RISES,
    groups=_groups_with_rise(4301),
    properties=("rises_as_asked", "ends_over_the_token_when_alone"),
    misconceptions=(
        Misconception(
            "walks-distance-1", "Height, not path length, must be 1.", _apex_after_distance_1
        ),
        Misconception("starts-at-height-0", "Start on the surface.", _apex_from_height_0),
        Misconception("straight-up", "Along the normal.", _apex_straight_up),
        Misconception(
            "root-twice",
            "One of the two factors already contains the root.",
            _apex_by_root_twice,
        ),
        Misconception(
            "landing-only",
            "d+1 numbers.",
            lambda xi, Y, beta, rise=1.0: ref.hop_apex(xi, Y, beta, rise)[:-1],
        ),
        Misconception("dropped-already", "Apex first, drop later.", _apex_dropped),
        Misconception(
            "rise-ignored",
            "rise is an argument.",
            lambda xi, Y, beta, rise=1.0: ref.hop_apex(xi, Y, beta),
        ),
        Misconception("uphill", "Which way does the normal lean?", _apex_uphill),
        Misconception(
            "height-first",
            "Order: the place, then the height.",
            lambda xi, Y, beta, rise=1.0: np.roll(ref.hop_apex(xi, Y, beta, rise), 1),
        ),
        Misconception("landing-for-g", GRADIENT, _apex_by_landing),
        Misconception(
            "beta-ignored", BETA, lambda xi, Y, beta, rise=1.0: ref.hop_apex(xi, Y, 1.0, rise)
        ),
        Misconception(
            "cut-to-whole-numbers",
            "Which type has the array that you fill, when xi holds whole numbers?",
            _apex_in_whole_numbers,
        ),
        Misconception(
            "nothing-for-0",
            "A rise of 0 is a number, too: `or` takes it for nothing.",
            _apex_or_1,
        ),
        Misconception("downward", "Does the walk gain height or lose it?", _apex_downward),
        Misconception(
            "rises-from-the-landing",
            "The height counts from the place where the walk begins.",
            _apex_above_the_landing,
        ),
        Misconception(
            "place-ignores-rise",
            "Half the rise goes half of the way.",
            lambda xi, Y, beta, rise=1.0: np.append(
                _landing(xi, Y, beta), lesson_2.energy(xi, Y, beta) + rise
            ),
        ),
        Misconception(
            "displacement-only",
            "That is the walk. Where does it begin?",
            lambda xi, Y, beta, rise=1.0: rise * _leaning(xi, Y, beta),
        ),
    ),
    alternatives=(
        Alternative("loop", _apex_by_loop),
        Alternative("mixing", _apex_by_mixing),
        Alternative(
            "long-double",
            lambda xi, Y, beta, rise=1.0: (
                _start(xi, Y, beta) + np.longdouble(rise) * _leaning(xi, Y, beta)
            ),
        ),
        Alternative("small-steps", _apex_by_small_steps),
        Alternative("callable-object", CalledObject(_apex_by_mixing)),
        Alternative("prints-and-warns", noisy(_apex_by_loop)),
    ),
)


# --- vertical_drop ------------------------------------------------------------------------------


def _height(xi, Y, beta):
    return lesson_2.energy(xi, Y, beta)


def _drop_to_the_valley(xi, Y, beta):
    settled = lesson_7.settle(xi, Y, beta)[0]
    return lesson_2.energy(xi, Y, beta) + 1 - lesson_2.energy(settled, Y, beta)


def _drop_overflowing(xi, Y, beta):
    def height(point):
        return point @ point / 2 - np.log(np.exp(beta * (Y @ point)).sum()) / beta

    return 1 + height(xi) - height(_landing(xi, Y, beta))


def _drop_by_loop(xi, Y, beta):
    def height(point):
        scores = [float(token @ point) for token in Y]
        top = max(scores)
        tail = math.fsum(math.exp(beta * (score - top)) for score in scores)
        return math.fsum(float(x) ** 2 for x in point) / 2 - top - math.log(tail) / beta

    landing = scipy_softmax(beta * Y @ xi) @ Y
    return height(xi) - height(landing) + 1


def _drop_from_parts(xi, Y, beta):
    return ref.drop_parts(xi, Y, beta).sum()


def _drop_from_apex(xi, Y, beta):
    *position, height = ref.hop_apex(xi, Y, beta)
    return height - lesson_2.energy_gmm(np.array(position), Y, beta)


def _drop_by_integration(xi, Y, beta):
    """Add up the slope of the energy along the straight way to the landing."""
    way = _plain_gradient(xi, Y, beta)
    fall, _ = quad_vec(
        lambda t: way @ _plain_gradient(xi - t * way, Y, beta),
        0,
        1,
        epsabs=1e-12,
        epsrel=1e-12,
        limit=2000,
    )
    return 1 + fall


# Where beta is tiny, energies are of size ln(n)/beta, near a million: their difference keeps
# about nine digits after the point, so that these two functions are compared to eight.
DROP_TOLERANCE = 1e-8

VERTICAL_DROP = Exercise(
    name="vertical_drop",
    lesson=LESSON,
    points=3.0,
    expects="one number, never below 1, and 1 only where the query stays put",
    reference=ref.vertical_drop,
    examples=SOFTMAX_PUBLIC,
    groups=softmax_groups(4401),
    properties=("is_at_least_one", "drops_by_the_bowl_when_alone", "ignores_doubled_tokens"),
    misconceptions=(
        Misconception(
            "rise-forgotten",
            "The drop starts at the apex.",
            lambda xi, Y, beta: ref.vertical_drop(xi, Y, beta) - 1,
        ),
        Misconception(
            "always-1", "Up and down are different: 1 is the rise.", lambda xi, Y, beta: 1.0
        ),
        Misconception(
            "sign", "A drop is positive.", lambda xi, Y, beta: -ref.vertical_drop(xi, Y, beta)
        ),
        Misconception("to-the-valley", "Vertical: same horizontal position.", _drop_to_the_valley),
        Misconception(
            "quadratic-part-only",
            "The concave part bends the surface further down.",
            lambda xi, Y, beta: 1 + _squared_slope(xi, Y, beta) / 2,
        ),
        Misconception(
            "full-square",
            "Half of the first-order estimate is lost to the bowl.",
            lambda xi, Y, beta: 1 + _squared_slope(xi, Y, beta),
        ),
        Misconception(
            "along-the-normal",
            "Vertical: this is the length of the walk. The drop goes straight down from its end.",
            ref.hop_length,
        ),
        Misconception(
            "apex-from-height-0",
            "The apex starts from E(xi), not from 0.",
            lambda xi, Y, beta: 1 - _height(_landing(xi, Y, beta), Y, beta),
        ),
        Misconception(
            "ground-at-the-origin",
            "The ground is below the apex, not at the origin.",
            lambda xi, Y, beta: 1 + _height(xi, Y, beta) - _height(np.zeros(len(xi)), Y, beta),
        ),
        Misconception(
            "slope-not-squared",
            "The bowl's part is half of the squared length of g, and the bend comes on top.",
            lambda xi, Y, beta: 1 + np.sqrt(_squared_slope(xi, Y, beta)) / 2,
        ),
        Misconception(
            "landing-for-g",
            GRADIENT,
            lambda xi, Y, beta: (
                1 + _height(xi, Y, beta) - _height(xi - _landing(xi, Y, beta), Y, beta)
            ),
        ),
        Misconception("beta-ignored", BETA, lambda xi, Y, beta: ref.vertical_drop(xi, Y, 1.0)),
        Misconception(
            "overflow",
            "nan at large beta: which exp overflowed?",
            _drop_overflowing,
        ),
        Misconception(
            "uphill",
            "Which way does the normal lean?",
            lambda xi, Y, beta: (
                1
                + _height(xi, Y, beta)
                - _height(2 * np.asarray(xi) - _landing(xi, Y, beta), Y, beta)
            ),
        ),
        Misconception(
            "bend-only",
            "The bowl has a part in the drop, too.",
            lambda xi, Y, beta: 1 + ref.drop_parts(xi, Y, beta)[2],
        ),
        Misconception(
            "bend-subtracted",
            "Does the bend make the drop longer or shorter?",
            lambda xi, Y, beta: ref.drop_parts(xi, Y, beta) @ [1, 1, -1],
        ),
        Misconception(
            "rise-twice",
            "The height of the apex has the rise in it.",
            lambda xi, Y, beta: ref.vertical_drop(xi, Y, beta) + 1,
        ),
    ),
    alternatives=(
        Alternative("loop", _drop_by_loop),
        Alternative("sum-of-parts", _drop_from_parts),
        Alternative("from-the-apex", _drop_from_apex),
        Alternative("integral", _drop_by_integration),
        Alternative("callable-object", CalledObject(_drop_by_loop)),
        Alternative("zero-dimensional", zero_dimensional(_drop_from_apex)),
        Alternative("prints-and-warns", noisy(_drop_by_loop)),
    ),
    tolerance=DROP_TOLERANCE,
)


# --- drop_parts ---------------------------------------------------------------------------------


def _bregman_swapped(xi, Y, beta):
    landing = _landing(xi, Y, beta)
    above = lesson_1.lse(xi, Y, beta) - lesson_1.lse(landing, Y, beta)
    return above - _landing(landing, Y, beta) @ (xi - landing)


def _parts_swapped(xi, Y, beta):
    return np.array([1.0, _squared_slope(xi, Y, beta) / 2, _bregman_swapped(xi, Y, beta)])


def _parts_untilted(xi, Y, beta):
    rise = lesson_1.lse(_landing(xi, Y, beta), Y, beta) - lesson_1.lse(xi, Y, beta)
    return np.array([1.0, _squared_slope(xi, Y, beta) / 2, rise])


def _parts_not_squared(xi, Y, beta):
    _, half, bend = ref.drop_parts(xi, Y, beta)
    return np.array([1.0, np.sqrt(half / 2), bend])


def _parts_of_landing(xi, Y, beta):
    landing = _landing(xi, Y, beta)
    return np.array([1.0, landing @ landing / 2, ref.drop_parts(xi, Y, beta)[2]])


def _parts_by_landing(xi, Y, beta):
    """Take the landing for g, and still land there."""
    landing = _landing(xi, Y, beta)
    bend = lesson_1.lse(landing, Y, beta) - lesson_1.lse(xi, Y, beta) + landing @ landing
    return np.array([1.0, landing @ landing / 2, bend])


def _parts_with(bend):
    """Return the parts with another third one: bend(g, landing, rise of lse)."""

    def parts(xi, Y, beta):
        g, landing = lesson_3.energy_grad(xi, Y, beta), _landing(xi, Y, beta)
        gain = lesson_1.lse(landing, Y, beta) - lesson_1.lse(xi, Y, beta)
        return np.array([1.0, g @ g / 2, bend(g, landing, gain)])

    return parts


def _parts_to_second_order(xi, Y, beta):
    g = lesson_3.energy_grad(xi, Y, beta)
    return np.array([1.0, g @ g / 2, g @ lesson_1.lse_hessian(xi, Y, beta) @ g / 2])


def _parts_of_two_halves(xi, Y, beta):
    landing = _landing(xi, Y, beta)
    bowl = (xi @ xi - landing @ landing) / 2
    return np.array([1.0, bowl, ref.vertical_drop(xi, Y, beta) - 1 - bowl])


def _parts_by_remainder(xi, Y, beta):
    half = _squared_slope(xi, Y, beta) / 2
    return np.array([1.0, half, ref.vertical_drop(xi, Y, beta) - 1 - half])


def _parts_by_one_log(xi, Y, beta):
    """Write D as the log of an average of exponentials, which nothing cancels in."""
    a = scipy_softmax(beta * Y @ xi)
    landing = a @ Y
    way = landing - xi
    spread = beta * (Y - landing) @ way
    # Only the exponents above the mean move are left: the tangent is taken out token by token.
    return np.array([1.0, way @ way / 2, logsumexp(spread, b=a) / beta])


def _parts_by_loop(xi, Y, beta):
    a = scipy_softmax(beta * Y @ xi)
    landing = sum(weight * token for weight, token in zip(a, Y, strict=True))
    half = sum((float(x) - float(z)) ** 2 for x, z in zip(xi, landing, strict=True)) / 2
    tangent = sum(float(z) * (float(z) - float(x)) for x, z in zip(xi, landing, strict=True))
    convex = [logsumexp([beta * float(y @ point) for y in Y]) / beta for point in (xi, landing)]
    return np.array([1.0, half, convex[1] - convex[0] - tangent])


def _parts_by_integration(xi, Y, beta):
    """Integrate how much the landing's slope grows along the way."""
    g = _plain_gradient(xi, Y, beta)
    landing = xi - g
    bend, _ = quad_vec(
        lambda t: (_landing(xi - t * g, Y, beta) - landing) @ -g,
        0,
        1,
        epsabs=1e-12,
        epsrel=1e-12,
        limit=2000,
    )
    return np.array([1.0, g @ g / 2, bend])


DROP_PARTS = Exercise(
    name="drop_parts",
    lesson=LESSON,
    points=3.0,
    expects="an array of three numbers, none negative: the rise, the bowl's part, the concave part",
    reference=ref.drop_parts,
    examples=SOFTMAX_PUBLIC,
    groups=softmax_groups(4501),
    properties=(
        "has_no_negative_part",
        "drops_by_the_bowl_when_alone",
        "ignores_doubled_tokens",
    ),
    misconceptions=(
        Misconception(
            "tangent-at-the-landing",
            "The tangent is drawn at the start, not at the landing.",
            _parts_swapped,
        ),
        Misconception(
            "bregman-sign",
            "A convex function lies above its tangent.",
            lambda xi, Y, beta: ref.drop_parts(xi, Y, beta) * [1, 1, -1],
        ),
        Misconception(
            "full-square",
            "Do the parts add up to the drop?",
            lambda xi, Y, beta: ref.drop_parts(xi, Y, beta) * [1, 2, 1],
        ),
        Misconception(
            "sum-returned",
            "Three numbers.",
            lambda xi, Y, beta: ref.drop_parts(xi, Y, beta).sum(),
        ),
        Misconception(
            "without-the-1",
            "The rise is a part.",
            lambda xi, Y, beta: ref.drop_parts(xi, Y, beta)[1:],
        ),
        Misconception(
            "linear-term-missing",
            "Subtract the tangent, not just the value.",
            _parts_untilted,
        ),
        Misconception(
            "swapped",
            "The three numbers are right, their order is not: rise, bowl's part, bend.",
            lambda xi, Y, beta: ref.drop_parts(xi, Y, beta)[[0, 2, 1]],
        ),
        Misconception(
            "slope-not-squared",
            "The bowl's part is half of the squared length of g.",
            _parts_not_squared,
        ),
        Misconception(
            "tangent-falls",
            "Going by -g along the slope aY: does the tangent rise or fall?",
            _parts_with(lambda g, landing, gain: gain - landing @ g),
        ),
        Misconception(
            "tangent-of-slope-g",
            "lse has the slope aY at the start. Which slope has your tangent?",
            _parts_with(lambda g, landing, gain: gain + g @ g),
        ),
        Misconception(
            "bowl-part-left-in",
            "The third part is what is left of the drop without the rise and the bowl's part.",
            _parts_with(lambda g, landing, gain: gain + landing @ g + g @ g / 2),
        ),
        Misconception(
            "no-bend",
            "lse is convex, not straight: it lies above its tangent by the bend.",
            _parts_with(lambda g, landing, gain: 0.0),
        ),
        Misconception(
            "second-order",
            "That is the bend of a parabola. D is exact: compare lse with its tangent.",
            _parts_to_second_order,
        ),
        Misconception(
            "bowl-and-lse",
            "That splits E into its two halves. Here the tangent of lse goes with the bowl.",
            _parts_of_two_halves,
        ),
        Misconception(
            "running-sum",
            "The parts themselves, not how far they add up.",
            lambda xi, Y, beta: np.cumsum(ref.drop_parts(xi, Y, beta)),
        ),
        Misconception("landing-for-g", GRADIENT, _parts_by_landing),
        Misconception("half-the-squared-landing", GRADIENT, _parts_of_landing),
        Misconception("beta-ignored", BETA, lambda xi, Y, beta: ref.drop_parts(xi, Y, 1.0)),
    ),
    alternatives=(
        Alternative("remainder", _parts_by_remainder),
        Alternative("clipped", lambda xi, Y, beta: np.maximum(ref.drop_parts(xi, Y, beta), 0.0)),
        Alternative("one-log", _parts_by_one_log),
        Alternative("loop", _parts_by_loop),
        Alternative("integral", _parts_by_integration),
        Alternative("callable-object", CalledObject(_parts_by_one_log)),
        Alternative("prints-and-warns", noisy(_parts_by_loop)),
    ),
    tolerance=DROP_TOLERANCE,
)


# --- hop_numbers: the part of the mastery project that code can check ---------------------------


def hop_numbers(energy, gradient, xi):
    """Return what the figure of a hop over any energy says.

    The five numbers: the length of the walk for a rise of 1, the height of the apex, the height
    of the surface below it, the drop between the two, and what the drop has beyond
    ``1 + ||g||^2 / 2``.
    """
    g = np.asarray(gradient(xi))
    apex, ground = energy(xi) + 1, energy(xi - g)
    drop = apex - ground
    return np.array([np.sqrt(1 + g @ g), apex, ground, drop, drop - 1 - g @ g / 2])


def _numbers(energy, gradient, xi, point=None, **wrong):
    """Return the five numbers with the ground at `point` and some of them replaced."""
    g = gradient(xi)
    apex = energy(xi) + 1
    ground = energy(xi - g if point is None else point)
    drop = wrong.get("drop", apex - ground)
    bend = wrong.get("bend", drop - 1 - g @ g / 2)
    return np.array([wrong.get("length", np.sqrt(1 + g @ g)), apex, ground, drop, bend])


def _numbers_at_the_start(energy, gradient, xi):
    return _numbers(energy, gradient, xi, point=xi)


def _numbers_uphill(energy, gradient, xi):
    return _numbers(energy, gradient, xi, point=xi + gradient(xi))


def _numbers_after_distance_1(energy, gradient, xi):
    g = gradient(xi)
    length = np.sqrt(1 + g @ g)
    apex, ground = energy(xi) + 1 / length, energy(xi - g / length)
    drop = apex - ground
    return np.array([1.0, apex, ground, drop, drop - 1 - g @ g / 2])


def _numbers_of_length_1(energy, gradient, xi):
    return _numbers(energy, gradient, xi, length=1.0)


def _numbers_without_rise(energy, gradient, xi):
    g = gradient(xi)
    return _numbers(energy, gradient, xi, drop=energy(xi) - energy(xi - g))


def _numbers_of_full_square(energy, gradient, xi):
    right = hop_numbers(energy, gradient, xi)
    return _numbers(energy, gradient, xi, bend=right[3] - right[0] ** 2)


def _numbers_without_bowl(energy, gradient, xi):
    return _numbers(energy, gradient, xi, bend=hop_numbers(energy, gradient, xi)[3] - 1)


def _numbers_with_start(energy, gradient, xi):
    right = hop_numbers(energy, gradient, xi)
    right[1] -= 1
    return right


def _numbers_changed(place, change):
    """Return the five numbers with the one at `place` changed."""

    def numbers(energy, gradient, xi):
        answer = hop_numbers(energy, gradient, xi)
        answer[place] = change(answer[place])
        return answer

    return numbers


def _numbers_from_the_origin(energy, gradient, xi):
    answer = hop_numbers(energy, gradient, xi)
    answer[1:3] -= energy(np.zeros(len(xi)))
    return answer


def _numbers_in_space(energy, gradient, xi):
    """Do it with vectors of d + 1 components, as the figure does."""
    leaning = np.append(-gradient(xi), 1.0)
    normal = leaning / np.linalg.norm(leaning)
    start = np.append(xi, energy(xi))
    length = 1 / normal[-1]
    apex = start + length * normal
    foot = np.append(apex[:-1], energy(apex[:-1]))
    drop = np.linalg.norm(apex - foot) * np.sign(apex[-1] - foot[-1])
    horizontal = np.linalg.norm(apex[:-1] - start[:-1])
    return np.array([length, apex[-1], foot[-1], drop, drop - 1 - horizontal**2 / 2])


def _numbers_by_loop(energy, gradient, xi):
    slopes = [float(slope) for slope in gradient(xi)]
    below = np.array([float(x) - slope for x, slope in zip(xi, slopes, strict=True)])
    half = sum(slope**2 for slope in slopes) / 2
    fall = energy(xi) - energy(below)
    answer = np.zeros(5)
    answer[:] = math.hypot(1.0, *slopes), energy(xi) + 1, energy(below), fall + 1, fall - half
    return answer


def _numbers_above_the_tangent(energy, gradient, xi):
    """Get the fifth number as how far the surface falls below its parabola."""
    g = gradient(xi)
    parabola = energy(xi) - g @ g + g @ g / 2
    ground = energy(xi - g)
    drop = 1 + energy(xi) - ground
    return np.stack([np.linalg.norm([*g, 1]), 1 + energy(xi), ground, drop, parabola - ground])


def _hop_case(name, energy, gradient, xi):
    return Case(name, {"energy": energy, "gradient": gradient, "xi": np.array(xi, dtype=float)})


def _known_case(name, formula, xi):
    return _hop_case(name, Function(formula), Function(f"{formula}_gradient"), xi)


def _kernel_case(name, landscape, energy, step):
    xi, Y, beta = landscape
    height, land = partial(energy, Y=Y, beta=beta), partial(step, Y=Y, beta=beta)
    return _hop_case(name, height, lambda x: x - land(x), xi)


def _softmax_case(name, landscape):
    return _kernel_case(name, landscape, lesson_2.energy, lesson_3.cccp_step)


def _tanh_case(name, landscape):
    return _kernel_case(name, landscape, lesson_5.tanh_energy, lesson_5.tanh_step)


def _linear_case(name, landscape):
    return _kernel_case(name, landscape, lesson_6.linear_energy, lesson_6.linear_step)


_RNG = np.random.default_rng(4601)
_DEEP = random_landscape(_RNG, 6, 4, 1.5)

HOP_NUMBERS = Exercise(
    name="hop_numbers",
    lesson=LESSON,
    points=3.0,
    expects="an array of five numbers: length, apex height, ground height, drop, bend",
    reference=hop_numbers,
    # The bowl first: what comes back for the sines gives away that a drop can be below 1.
    examples=(
        _known_case("bowl", "bowl", [0.5, -1.25]),
        _known_case("exponential", "exponential", [0.5, 0.25]),
        _known_case("steep", "exponential", [3.0, 2.0]),
        _known_case("sines", "sines", [0.25, -0.75]),
        _known_case("trough", "sines", [-0.40625, -0.4375]),
        _known_case("one dimension", "sines", [0.1]),
    ),
    groups=(
        Group(
            "softmax",
            "the softmax kernel",
            0.4,
            (_softmax_case("A", A), _softmax_case("B", B), _softmax_case("deep", _DEEP)),
        ),
        Group(
            "others",
            "the other two kernels",
            0.35,
            (
                _tanh_case("tanh", A),
                _tanh_case("tanh deep", _DEEP),
                _linear_case("linear", B),
                _linear_case("linear deep", _DEEP),
            ),
        ),
        Group(
            "edges",
            "large energies, one token, one dimension, another surface",
            0.25,
            (
                _softmax_case("large", E),
                _softmax_case("one token", C),
                _tanh_case("one dimension", G),
                # Steeper than the bowl of the lesson: a hop goes too far, and up.
                _hop_case("steep bowl", lambda x: 2 * float(x @ x), lambda x: 4 * x, [0.75, -0.5]),
            ),
        ),
    ),
    properties=("drops_from_apex_to_ground", "knows_the_bowl_at_a_fresh_place"),
    misconceptions=(
        Misconception(
            "ground-below-the-start",
            "Where does the figure drop: below the start or below the apex?",
            _numbers_at_the_start,
        ),
        Misconception("uphill", "Which way does the normal lean?", _numbers_uphill),
        Misconception(
            "walks-distance-1",
            "Height, not path length, must be 1.",
            _numbers_after_distance_1,
        ),
        Misconception("length-1", "Walking distance versus gain in height.", _numbers_of_length_1),
        Misconception("rise-forgotten", "The drop starts at the apex.", _numbers_without_rise),
        Misconception(
            "apex-not-raised", "How high is the apex above the start?", _numbers_with_start
        ),
        Misconception(
            "full-square",
            "Half of the first-order estimate is lost to the bowl.",
            _numbers_of_full_square,
        ),
        Misconception(
            "bowl-part-left-in",
            "The bend is what is left of the drop without the rise and the bowl's part.",
            _numbers_without_bowl,
        ),
        Misconception(
            "bend-clipped",
            "What keeps a bend from being negative does not hold on every surface.",
            _numbers_changed(4, lambda bend: max(bend, 0.0)),
        ),
        Misconception(
            "size-of-the-bend",
            "A bend can be negative on other surfaces: leave its sign.",
            _numbers_changed(4, abs),
        ),
        Misconception(
            "drop-clipped",
            "What keeps a drop from being below 1 does not hold on every surface.",
            _numbers_changed(3, lambda drop: max(drop, 1.0)),
        ),
        Misconception(
            "size-of-the-drop",
            "A drop can be negative on other surfaces: leave its sign.",
            _numbers_changed(3, abs),
        ),
        Misconception(
            "length-squared",
            "Compare with a 3-4-5 triangle.",
            _numbers_changed(0, lambda length: length**2),
        ),
        Misconception(
            "the-slope",
            "Hypotenuse.",
            _numbers_changed(0, lambda length: np.sqrt(max(length**2 - 1, 0.0))),
        ),
        Misconception(
            "heights-from-the-origin",
            "These heights are energies: count them from 0, not from E(0).",
            _numbers_from_the_origin,
        ),
    ),
    alternatives=(
        Alternative("in-space", _numbers_in_space),
        Alternative("loop", _numbers_by_loop),
        Alternative("below-the-parabola", _numbers_above_the_tangent),
        Alternative("long-double", lambda *given: hop_numbers(*given).astype(np.longdouble)),
        Alternative("callable-object", CalledObject(_numbers_by_loop)),
        Alternative("prints-and-warns", noisy(_numbers_in_space)),
    ),
)

EXERCISES = (UNIT_NORMAL, HOP_LENGTH, HOP_APEX, VERTICAL_DROP, DROP_PARTS, HOP_NUMBERS)
