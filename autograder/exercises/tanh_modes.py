"""Lesson 05: what each exercise asks, the wrong answers it knows, right answers of other forms."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.optimize import root
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from scipy.special import softmax as scipy_softmax

from autograder.exercise import Alternative, Exercise, Group, Misconception
from autograder.exercises._cases import (
    DECIMAL,
    PUBLIC,
    WHOLE,
    CalledObject,
    edge_cases,
    landscape_case,
    landscape_groups,
    noisy,
    only,
    ordinary_cases,
    zero_dimensional,
)
from autograder.reference import tanh_modes as ref
from autograder.reference.fixtures import PRESETS, A, B, D, E, G, Landscape
from autograder.reference.gmm_polarization import energy_gmm
from hopping.cases import Case

LESSON = "05_tanh_modes"

# Every score fits in cosh, but the product of the three does not.
_E_HALF = landscape_case("E half", E._replace(beta=0.5))
_BETWEEN = landscape_case(
    "between", Landscape(np.array([1.0, 0.5]), np.array([[2.5, 1.0], [-3.0, 0.5]]), 2.0)
)
_ENERGY_CASES = (*PUBLIC, landscape_case("E1", E._replace(beta=1.0)), _E_HALF, _BETWEEN, WHOLE)


# --- log_cosh -----------------------------------------------------------------------------------


def _numbers(name, values):
    return Case(name, {"u": np.array(values, dtype=float)})


def _log_cosh_by_math(u):
    answer = np.empty(u.shape)
    for index, value in np.ndenumerate(u):
        size = abs(value)
        answer[index] = size + math.log1p(math.exp(-2 * size)) - math.log(2)
    return answer


def _log_cosh_by_stack(u):
    return logsumexp(np.stack([u, -u]), axis=0) - np.log(2)


def _log_cosh_by_sinh(u):
    return np.where(
        np.abs(u) < 300,
        np.log1p(np.sinh(np.clip(u, -300, 300)) ** 2) / 2,
        np.abs(u) - np.log(2),
    )


def _log_cosh_by_pieces(u):
    size = np.abs(u)
    return np.piecewise(size, [size < 20], [lambda v: np.log(np.cosh(v)), lambda v: v - np.log(2)])


def _log_cosh_cut_off(u):
    answer = np.zeros_like(u)
    for index, value in np.ndenumerate(_log_cosh_by_math(u)):
        answer[index] = value
    return answer


def _log_cosh_over_one_maximum(u):
    largest = np.max(np.abs(u), initial=0)
    return largest + np.log((np.exp(u - largest) + np.exp(-1.0 * u - largest)) / 2)


def _log_cosh_patched(near, far):
    """Make log cosh from its definition up to a size, and from `far` of the size above it."""

    def answer(u):
        size = np.abs(u)
        return np.where(size < near, np.log(np.cosh(np.minimum(size, near))), far(size))

    return answer


def _log_cosh_by_root(u):
    size = np.sqrt(np.square(u))
    return size + np.log1p(np.exp(-2 * size)) - np.log(2)


LOG_COSH = Exercise(
    name="log_cosh",
    lesson=LESSON,
    points=3.0,
    expects="an array like u: 0 at 0, the same for u and -u, never above the size of u",
    reference=ref.log_cosh,
    examples=(
        _numbers("0", [0.0]),
        _numbers("small", [1e-3, -2e-3]),
        _numbers("mid", [0.5, -2.0, 20.0]),
        _numbers("big", [1000.0, -1e5]),
        _numbers("matrix", [[0.25, -0.5], [1.0, -3.0]]),
        # Where the smaller exponential has become small, and still counts.
        _numbers("between", [6.0, -9.0]),
        _numbers("huge", [-1e300]),
        Case("whole", {"u": np.array([1, -4, 0])}),
    ),
    groups=(
        Group(
            "ordinary",
            "ordinary values",
            0.60,
            (
                _numbers("line", np.linspace(-6, 6, 25)),
                _numbers("others", [-0.75, 1.5, 9.125, -8.5, 36.0]),
            ),
        ),
        Group(
            "extreme",
            "very large and very small numbers",
            0.25,
            (
                _numbers("huge", [1e300, -1e300, 711.0, -711.0, 20.0]),
                _numbers("tiny", [1e-300, -1e-9, 0.0, 1e-5]),
            ),
        ),
        Group(
            "edges",
            "edge shapes",
            0.15,
            (
                _numbers("one row", [[1.25, -2.5, 0.0]]),
                _numbers("three axes", np.arange(-6.0, 6.0).reshape(2, 3, 2)),
                _numbers("none", []),
                Case("whole numbers", {"u": np.array([2, -3, 0])}),
            ),
        ),
    ),
    properties=("is_even_and_below_the_size",),
    misconceptions=(
        Misconception("naive-cosh", "cosh overflows near 710.", lambda u: np.log(np.cosh(u))),
        Misconception(
            "log-2-missing", "At 0 the answer is 0.", lambda u: ref.log_cosh(u) + np.log(2)
        ),
        Misconception("asymptote-only", "At 0 the answer is 0.", lambda u: np.abs(u) - np.log(2)),
        Misconception(
            "no-absolute-value",
            "Try u = -1000.",
            lambda u: u + np.log1p(np.exp(-2.0 * u)) - np.log(2),
        ),
        Misconception(
            "half-outside-the-log",
            "The half is inside the log.",
            lambda u: np.log(np.exp(u) + np.exp(-1.0 * u)) / 2,
        ),
        Misconception("parabola", "Only near 0.", lambda u: np.square(u) / 2),
        Misconception("tanh", "Primitive, not derivative.", np.tanh),
        Misconception(
            "one-maximum-for-all",
            "Each number has its own larger exponential; the largest of all is not good for all.",
            _log_cosh_over_one_maximum,
        ),
        Misconception(
            "clipped",
            "A number that was clipped has lost its size.",
            lambda u: np.log(np.cosh(np.clip(u, -700, 700))),
        ),
        Misconception(
            "log-2-missing-far-out",
            "Far out one exponential vanishes. The 1/2 in front of both does not.",
            _log_cosh_patched(700.0, lambda size: size),
        ),
        Misconception(
            "far-form-too-early",
            "At u = 6 the smaller exponential still counts: exp(-12) is above 1e-9.",
            _log_cosh_patched(5.0, lambda size: size - np.log(2)),
        ),
        Misconception(
            "root-of-the-square",
            "A square overflows, too: how else does a number lose its sign?",
            _log_cosh_by_root,
        ),
        Misconception(
            "whole-numbers-cut-off",
            "`zeros_like` of whole numbers holds whole numbers: what becomes of 0.43 in it?",
            _log_cosh_cut_off,
        ),
    ),
    alternatives=(
        Alternative("loop", _log_cosh_by_math),
        Alternative("logaddexp", lambda u: np.logaddexp(u, -u) - np.log(2)),
        Alternative("logsumexp", _log_cosh_by_stack),
        Alternative("sinh", _log_cosh_by_sinh),
        Alternative("piecewise", lambda u: _log_cosh_by_pieces(u.astype(float))),
        Alternative("far-form-from-12", _log_cosh_patched(12.0, lambda size: size - np.log(2))),
        Alternative("callable-object", CalledObject(_log_cosh_by_math)),
        Alternative("prints-and-warns", noisy(_log_cosh_by_stack)),
    ),
)


# --- tanh_energy --------------------------------------------------------------------------------


def _bowl(xi):
    return np.sum(xi**2) / 2


def _energy_of(term):
    """Make the energy whose concave part is minus `term` of beta times the scores, over beta."""
    return lambda xi, Y, beta: _bowl(xi) - term(beta * (Y @ xi)) / beta


def _energy_beta_missing_inside(xi, Y, beta):
    return _bowl(xi) - ref.log_cosh(Y @ xi).sum() / beta


def _energy_by_loop(xi, Y, beta):
    total = 0.0
    for row in Y:
        u = beta * abs(sum(float(a) * float(b) for a, b in zip(row, xi, strict=True)))
        total += u + math.log1p(math.exp(-2 * u)) - math.log(2)
    return math.fsum(float(x) ** 2 for x in xi) / 2 - total / beta


def _energy_by_pairs(xi, Y, beta):
    u = beta * np.einsum("td,d->t", Y, xi)
    return np.linalg.norm(xi) ** 2 / 2 - (np.logaddexp(u, -u) - np.log(2)).sum() / beta


def _energy_from_halves(xi, Y, beta):
    """Take the scores' sizes first: what is left under the log lies between 1 and 2."""
    size = np.abs(Y @ xi)
    rest = np.log((1 + np.exp(-2 * beta * size)) / 2).sum()
    return 0.5 * np.vdot(xi, xi) - size.sum() - rest / beta


TANH_ENERGY = Exercise(
    name="tanh_energy",
    lesson=LESSON,
    points=3.0,
    expects="one number in score units: 0 at the origin, and the same for xi and -xi",
    reference=ref.tanh_energy,
    examples=_ENERGY_CASES,
    groups=landscape_groups(5101),
    properties=("is_even_around_zero", "ignores_turned_tokens"),
    misconceptions=(
        Misconception(
            "no-1-over-beta",
            "Gradient must have no stray beta.",
            lambda xi, Y, beta: _bowl(xi) - ref.log_cosh(beta * (Y @ xi)).sum(),
        ),
        Misconception(
            "plus-sign",
            "Far along a token the energy falls: which part of it has the minus sign?",
            lambda xi, Y, beta: _bowl(xi) + ref.log_cosh(beta * (Y @ xi)).sum() / beta,
        ),
        Misconception(
            "bowl-not-halved",
            "The slope of the bowl is xi itself: which factor is in front of the square?",
            lambda xi, Y, beta: ref.tanh_energy(xi, Y, beta) + _bowl(xi),
        ),
        Misconception(
            "beta-missing-inside",
            "The argument of cosh is beta times the score.",
            _energy_beta_missing_inside,
        ),
        Misconception(
            "mean-over-tokens",
            "Tokens add up; nothing is normalised here.",
            _energy_of(lambda u: ref.log_cosh(u).mean()),
        ),
        Misconception(
            "log-2-left-in", "E(0) = 0.", _energy_of(lambda u: (ref.log_cosh(u) + np.log(2)).sum())
        ),
        Misconception(
            "naive-cosh", "inf at large scores.", _energy_of(lambda u: np.log(np.cosh(u)).sum())
        ),
        Misconception(
            "product-of-cosh",
            "Products overflow before sums do.",
            _energy_of(lambda u: np.log(np.prod(np.cosh(u)))),
        ),
        Misconception(
            "bowl-missing", "Bowl.", lambda xi, Y, beta: -ref.log_cosh(beta * (Y @ xi)).sum() / beta
        ),
        Misconception(
            "cosh-of-the-sum",
            "One factor per token.",
            _energy_of(lambda u: float(ref.log_cosh(u.sum()))),
        ),
        Misconception(
            "far-form-too-early",
            "At u = 6 the smaller exponential still counts: exp(-12) is above 1e-9.",
            _energy_of(lambda u: _log_cosh_patched(5.0, lambda size: size - np.log(2))(u).sum()),
        ),
    ),
    alternatives=(
        Alternative("loop", _energy_by_loop),
        Alternative("einsum-logaddexp", _energy_by_pairs),
        Alternative("sizes-first", _energy_from_halves),
        Alternative("mixture", ref.tanh_energy_gmm),
        Alternative("callable-object", CalledObject(_energy_by_pairs)),
        Alternative("zero-dimensional", zero_dimensional(_energy_by_loop)),
        Alternative("prints-and-warns", noisy(ref.tanh_energy)),
    ),
    # Where beta is tiny, 1/beta makes the last digit of n ln 2 a visible error.
    tolerance=1e-8,
)


# --- mode_centers -------------------------------------------------------------------------------


def _tokens(name, Y):
    return Case(name, {"Y": np.array(Y, dtype=float)})


_PAR = _tokens("par", PRESETS["parallelogram"].Y)
_SHADOW = _tokens("shadow", [[1, 0], [2, 0.5]])


def _corner_groups(seed, extreme):
    rng = np.random.default_rng(seed)
    return (
        Group(
            "ordinary",
            "ordinary tokens",
            0.60,
            (
                *only(ordinary_cases(seed), "Y"),
                _tokens("five tokens", rng.normal(size=(5, 2))),
            ),
        ),
        extreme,
        Group("edges", "edge shapes", 0.15, only(edge_cases(seed + 1), "Y")),
    )


def _many(seed, n, d, size=1.0):
    return _tokens(f"{n} tokens", np.random.default_rng(seed).normal(scale=size, size=(n, d)))


def _sums_without_duplicates(Y):
    return np.unique(ref.mode_centers(Y), axis=0)


def _sums_of_two(Y):
    first, second = Y[0], Y[1]
    return np.array([first + second, first - second, second - first, -first - second])


def _plus_and_minus(Y):
    return np.concatenate([Y, -Y])


def _sums_by_product(Y):
    return np.array([np.array(signs) @ Y for signs in product((1, -1), repeat=len(Y))])


def _sums_by_doubling(Y):
    centres = np.zeros((1, Y.shape[1]))
    for row in Y[::-1]:
        centres = np.concatenate([centres + row, centres - row])
    return centres


def _sums_by_gray_code(Y):
    """Turn one sign from each sum to the next, and put the sum in its row."""
    signs, centres = np.ones(len(Y)), np.empty((2 ** len(Y), Y.shape[1]))
    centres[0] = signs @ Y
    for step in range(1, 2 ** len(Y)):
        signs[-(step & -step).bit_length()] *= -1
        centres[step ^ step >> 1] = signs @ Y
    return centres


def _sums_by_bits(Y):
    bits = np.arange(2 ** len(Y))[:, None] >> np.arange(len(Y))[::-1] & 1
    return np.einsum("et,td->ed", 1 - 2 * bits, Y)


def _sums_by_meshgrid(Y):
    grids = np.meshgrid(*[(1.0, -1.0)] * len(Y), indexing="ij")
    return np.stack([grid.ravel() for grid in grids], axis=1) @ Y


def _sums_by_kronecker(Y):
    """Add token after token, each with its column of signs."""
    centres = np.zeros((2 ** len(Y), Y.shape[1]))
    for t, row in enumerate(Y):
        signs = np.tile(np.repeat([1.0, -1.0], 2 ** (len(Y) - 1 - t)), 2**t)
        centres += np.outer(signs, row)
    return centres


MODE_CENTERS = Exercise(
    name="mode_centers",
    lesson=LESSON,
    points=3.0,
    expects="an array with one signed sum of all the tokens per row, in the order of sign_patterns",
    reference=ref.mode_centers,
    examples=(*only((*PUBLIC[:-2], DECIMAL), "Y"), _PAR, _SHADOW),
    groups=_corner_groups(
        5201,
        Group(
            "extreme",
            "many tokens, and very long ones",
            0.25,
            (_many(5203, 12, 2), _many(5204, 6, 3, 1e6)),
        ),
    ),
    properties=("comes_in_opposite_pairs",),
    misconceptions=(
        Misconception(
            "plus-and-minus-each-token", "Every token chooses independently.", _plus_and_minus
        ),
        Misconception("tokens-themselves", "2^n.", lambda Y: Y.copy()),
        Misconception("all-plus-missing", "Count them.", lambda Y: ref.mode_centers(Y)[1:]),
        Misconception(
            "subsets", "exp(-u) is not 1.", lambda Y: (ref.sign_patterns(len(Y)) + 1) / 2 @ Y
        ),
        Misconception(
            "half-size",
            "The 1/2 of cosh is a weight, not a length.",
            lambda Y: ref.mode_centers(Y) / 2,
        ),
        Misconception("mean", "Sum of exponents.", lambda Y: ref.mode_centers(Y) / len(Y)),
        Misconception("two-tokens-only", "Other n?", _sums_of_two),
        Misconception(
            "duplicates-removed", "Coinciding corners still count twice.", _sums_without_duplicates
        ),
        Misconception(
            "first-token-fastest",
            "Is row k the sum with sign pattern k?",
            lambda Y: ref.sign_patterns(len(Y))[:, ::-1] @ Y,
        ),
        Misconception(
            "minus-first",
            "Is row k the sum with sign pattern k? The first pattern is all plus.",
            lambda Y: ref.mode_centers(Y)[::-1].copy(),
        ),
    ),
    alternatives=(
        Alternative("product", _sums_by_product),
        Alternative("doubling", _sums_by_doubling),
        Alternative("gray-code", _sums_by_gray_code),
        Alternative("bits-einsum", _sums_by_bits),
        Alternative("meshgrid", _sums_by_meshgrid),
        Alternative("sums-and-signs-of-powers", _sums_by_kronecker),
        Alternative("callable-object", CalledObject(_sums_by_doubling)),
        Alternative("prints-and-warns", noisy(_sums_by_product)),
    ),
)


# --- tanh_energy_gmm ----------------------------------------------------------------------------


def _gmm(centres, constant):
    """Make a mixture energy of other centres, or with another constant."""
    return lambda xi, Y, beta: energy_gmm(xi, centres(Y), beta) + constant(len(Y), beta)


def _true_constant(n, beta):
    return n * np.log(2) / beta


def _other_constant(constant):
    return _gmm(ref.mode_centers, constant)


def _squares(xi, Y):
    return ((xi - ref.mode_centers(Y)) ** 2).sum(axis=1)


def _gmm_without_weights(xi, Y, beta):
    return -logsumexp(-beta * _squares(xi, Y) / 2) / beta + _true_constant(len(Y), beta)


def _gmm_weighted_by_tokens(xi, Y, beta):
    logs = beta * (np.sum(Y**2) - _squares(xi, Y)) / 2
    return -logsumexp(logs) / beta + _true_constant(len(Y), beta)


def _gmm_by_loop(xi, Y, beta):
    total = -math.inf
    for signs in product((1, -1), repeat=len(Y)):
        z = sum(sign * row for sign, row in zip(signs, Y, strict=True))
        total = np.logaddexp(total, beta * float(z @ z - (xi - z) @ (xi - z)) / 2)
    return len(Y) * math.log(2) / beta - total / beta


def _gmm_by_cdist(xi, Y, beta):
    centres = _sums_by_doubling(Y)
    logs = beta * ((centres**2).sum(axis=1) - cdist(xi[None], centres, "sqeuclidean")[0]) / 2
    # The mean over the patterns instead of their sum: the n halves are in it.
    return -(logsumexp(logs) - np.log(len(centres))) / beta


def _gmm_by_scores(xi, Y, beta):
    """Polarise back: bowl minus the log-mean-exp of the signed sums of scores."""
    totals = np.zeros(1)
    for score in Y @ xi:
        totals = np.concatenate([totals + score, totals - score])
    halves = np.full(len(totals), 0.5 ** len(Y))
    return _bowl(xi) - logsumexp(beta * totals, b=halves) / beta


TANH_ENERGY_GMM = Exercise(
    name="tanh_energy_gmm",
    lesson=LESSON,
    points=3.0,
    expects="one number, the same as tanh_energy gives at this query",
    reference=ref.tanh_energy_gmm,
    examples=PUBLIC,
    groups=landscape_groups(5301),
    properties=("is_even_around_zero", "ignores_turned_tokens"),
    misconceptions=(
        Misconception(
            "constant-missing", "Compare at xi = 0.", _other_constant(lambda n, beta: 0.0)
        ),
        Misconception(
            "constant-of-the-wrong-sign",
            "Compare at xi = 0.",
            _other_constant(lambda n, beta: -_true_constant(n, beta)),
        ),
        Misconception(
            "log-2-once",
            "One half per token.",
            _other_constant(lambda n, beta: _true_constant(1, beta)),
        ),
        Misconception(
            "constant-not-over-beta",
            "Units of energy.",
            _other_constant(lambda n, beta: _true_constant(n, 1.0)),
        ),
        Misconception("weights-missing", "Longer z weighs more.", _gmm_without_weights),
        Misconception(
            "weights-of-the-tokens", "pi belongs to z, not to y.", _gmm_weighted_by_tokens
        ),
        Misconception(
            "plus-and-minus-each-token",
            "How many configurations?",
            _gmm(_plus_and_minus, _true_constant),
        ),
        Misconception(
            "constant-of-all-patterns",
            "n factors of 1/2.",
            _other_constant(lambda n, beta: _true_constant(2**n, beta)),
        ),
    ),
    alternatives=(
        Alternative("loop", _gmm_by_loop),
        Alternative("cdist-mean", _gmm_by_cdist),
        Alternative("signed-scores", _gmm_by_scores),
        Alternative("direct", _energy_by_pairs),
        Alternative("callable-object", CalledObject(_gmm_by_cdist)),
        Alternative("zero-dimensional", zero_dimensional(_gmm_by_loop)),
        Alternative("prints-and-warns", noisy(_gmm_by_scores)),
    ),
    tolerance=1e-8,
)


# --- tanh_step ----------------------------------------------------------------------------------


def _step_of(weights):
    """Make a landing with other weights of the tokens."""
    return lambda xi, Y, beta: weights(Y @ xi, beta) @ Y


def _sech_squared(s, beta):
    return 1 - np.tanh(beta * s) ** 2


def _step_by_loop(xi, Y, beta):
    landing = [0.0] * len(xi)
    for row in Y:
        weight = math.tanh(beta * sum(float(a) * float(b) for a, b in zip(row, xi, strict=True)))
        for j, value in enumerate(row):
            landing[j] += weight * float(value)
    return np.array(landing)


def _step_cut_off(xi, Y, beta):
    landing = np.zeros_like(xi)
    for row in Y:
        for j, value in enumerate(row):
            landing[j] += np.tanh(beta * (row @ xi)) * value
    return landing


def _step_by_halves(xi, Y, beta):
    """Give each token a softmax of its own, over the token and its opposite."""
    u = beta * (Y @ xi)
    plus, minus = scipy_softmax(np.stack([u, -u]), axis=0)
    return plus @ Y - minus @ Y


def _step_by_mixture(xi, Y, beta):
    """Average all signed sums with the responsibilities of the mixture."""
    centres = ref.mode_centers(Y)
    return scipy_softmax(beta * centres @ xi) @ centres


TANH_STEP = Exercise(
    name="tanh_step",
    lesson=LESSON,
    points=3.0,
    expects="an array like xi: a sum of the tokens, each with a weight between -1 and 1",
    reference=ref.tanh_step,
    examples=(*PUBLIC, WHOLE),
    groups=landscape_groups(5401),
    properties=("is_odd", "ignores_turned_tokens"),
    misconceptions=(
        Misconception(
            "beta-outside-only",
            "The argument of tanh is beta times the score.",
            _step_of(lambda s, beta: beta * np.tanh(s)),
        ),
        Misconception(
            "mean-over-tokens",
            "No averaging in this kernel.",
            _step_of(lambda s, beta: np.tanh(beta * s) / len(s)),
        ),
        Misconception("derivative-as-weight", "First derivative.", _step_of(_sech_squared)),
        Misconception(
            "beta-left-over",
            "1/beta in the energy cancels it.",
            _step_of(lambda s, beta: beta * np.tanh(beta * s)),
        ),
        Misconception(
            "softmax-of-tanh",
            "Signed weights, not probabilities.",
            _step_of(lambda s, beta: scipy_softmax(np.tanh(beta * s))),
        ),
        Misconception(
            "absolute-value", "Signs matter.", _step_of(lambda s, beta: np.abs(np.tanh(beta * s)))
        ),
        Misconception(
            "tanh-of-the-sum",
            "Nonlinearity acts per token.",
            lambda xi, Y, beta: np.tanh(beta * ((Y @ xi) @ Y)),
        ),
        Misconception(
            "gradient",
            "The landing is asked for, not the gradient that leads there.",
            lambda xi, Y, beta: xi - ref.tanh_step(xi, Y, beta),
        ),
        Misconception(
            "residual-kept",
            "A hop replaces xi: nothing of it is added.",
            lambda xi, Y, beta: xi + ref.tanh_step(xi, Y, beta),
        ),
        Misconception(
            "softmax-weights",
            "Here every token votes by itself, for or against. That is not the softmax kernel.",
            _step_of(lambda s, beta: scipy_softmax(beta * s)),
        ),
        Misconception(
            "no-tanh",
            "A vote is never above 1: what limits it?",
            _step_of(lambda s, beta: beta * s),
        ),
        Misconception(
            "quotient-of-exponentials",
            "inf / inf is nan: np.tanh needs no exponentials of yours.",
            _step_of(lambda s, beta: np.sinh(beta * s) / np.cosh(beta * s)),
        ),
        Misconception(
            "whole-numbers-cut-off",
            "`zeros_like` of whole numbers holds whole numbers: what becomes of 0.9 in it?",
            _step_cut_off,
        ),
    ),
    alternatives=(
        Alternative("loop", _step_by_loop),
        Alternative("einsum", lambda xi, Y, beta: np.einsum("t,td", np.tanh(beta * Y @ xi), Y)),
        Alternative("two-way-softmax", _step_by_halves),
        Alternative("mixture-average", _step_by_mixture),
        Alternative("callable-object", CalledObject(_step_by_loop)),
        Alternative("prints-and-warns", noisy(_step_by_halves)),
    ),
)


# --- stable_modes -------------------------------------------------------------------------------


def _support(Y):
    """Return signs and, for each corner and token, the token's sign times its score."""
    signs = ref.sign_patterns(len(Y))
    return signs, signs * (signs @ Y @ Y.T)


def _stable_without_diagonal(Y):
    return (_support(Y)[1] - (Y**2).sum(axis=1) > 0).all(axis=1)


def _stable_by_norm(Y):
    lengths = np.linalg.norm(ref.mode_centers(Y), axis=1)
    return lengths >= lengths.mean()


def _stable_first_token_fastest(Y):
    signs = ref.sign_patterns(len(Y))[:, ::-1]
    return (signs * (signs @ Y @ Y.T) > 0).all(axis=1)


def _stable_by_loop(Y):
    mask = []
    for signs in product((1, -1), repeat=len(Y)):
        z = sum(sign * row for sign, row in zip(signs, Y, strict=True))
        mask.append(all(sign * float(row @ z) > 0 for sign, row in zip(signs, Y, strict=True)))
    return np.array(mask)


def _stable_by_signs(Y):
    signs = np.array(list(product((1, -1), repeat=len(Y))))
    return np.equal(np.sign(signs @ (Y @ Y.T)), signs).all(axis=1)


def _stable_by_turning(Y):
    """Turn each sign: a stable corner never gets longer by more than a free step of 2y would."""
    signs = ref.sign_patterns(len(Y))
    mask = np.ones(len(signs), dtype=bool)
    for t, row in enumerate(Y):
        z = signs @ Y
        other = z - 2 * signs[:, t, None] * row
        mask &= (other**2).sum(axis=1) < (z**2).sum(axis=1) + 4 * (row @ row)
    return mask


def _stable_by_hops(Y):
    """Hop once, very cold, from both sides of each corner, and see whether that leads to it."""
    kick = 1e-6 * np.random.default_rng(4).normal(size=Y.shape[1])
    return np.array(
        [
            all(np.allclose(ref.tanh_step(z + k, Y, 1e12), z, atol=1e-9) for k in (kick, -kick))
            for z in ref.mode_centers(Y)
        ]
    )


def _unit(seed, n, d):
    Y = np.random.default_rng(seed).normal(size=(n, d))
    return _tokens(f"unit {n} {d}", Y / np.linalg.norm(Y, axis=1, keepdims=True))


STABLE_MODES = Exercise(
    name="stable_modes",
    lesson=LESSON,
    points=2.0,
    expects="an array of True and False, one per signed sum, in the order of mode_centers",
    reference=ref.stable_modes,
    examples=(*only(PUBLIC[:-2], "Y"), _PAR, _SHADOW, _tokens("short", A.Y / 64)),
    groups=_corner_groups(
        5501,
        Group(
            "extreme",
            "many tokens, orthogonal, equal and short ones",
            0.25,
            (
                _unit(5503, 10, 8),
                _tokens("orthogonal", np.diag([1.0, 2.0, 0.25, 3.0])),
                _tokens("five copies", np.ones((5, 1))),
                _tokens("short", B.Y[:, ::-1] / 64),
            ),
        ),
    ),
    properties=("treats_opposite_corners_alike",),
    misconceptions=(
        Misconception(
            "all-stable",
            "Is every corner a valley? Test with a short and a long token.",
            lambda Y: np.ones(2 ** len(Y), dtype=bool),
        ),
        Misconception(
            "diagonal-dropped", "A token supports its own sign.", _stable_without_diagonal
        ),
        Misconception(
            "any-token", "Every token must agree.", lambda Y: (_support(Y)[1] > 0).any(axis=1)
        ),
        Misconception("by-length", "Check the sign condition.", _stable_by_norm),
        Misconception(
            "pattern-times-z",
            "Project z on the tokens.",
            lambda Y: (ref.sign_patterns(len(Y)) * ref.mode_centers(Y) > 0).all(axis=1),
        ),
        Misconception("count", "A mask.", lambda Y: int(ref.stable_modes(Y).sum())),
        Misconception(
            "more-than-a-little",
            "A short token has a small score, and its sign holds all the same: compare with 0.",
            lambda Y: (_support(Y)[1] > 1e-3).all(axis=1),
        ),
        Misconception(
            "zero-counts-as-agreement",
            "A score of exactly 0 holds no sign.",
            lambda Y: (_support(Y)[1] >= 0).all(axis=1),
        ),
        Misconception(
            "first-token-fastest",
            "The order of mode_centers: from row to row, which token's sign changes first?",
            _stable_first_token_fastest,
        ),
    ),
    alternatives=(
        Alternative("loop", _stable_by_loop),
        Alternative("signs", _stable_by_signs),
        Alternative("turning", _stable_by_turning),
        Alternative("hops", _stable_by_hops),
        Alternative("callable-object", CalledObject(_stable_by_loop)),
        Alternative("prints-and-warns", noisy(_stable_by_signs)),
    ),
)


# --- corner_census: the part of the mastery project that code can check -------------------------


def _hop_all(points, Y, beta):
    return np.tanh(beta * points @ Y.T) @ Y


def _settle_all(points, Y, beta, hops=20_000):
    for _ in range(hops):
        before, points = points, _hop_all(points, Y, beta)
        if np.abs(points - before).max() < 1e-11:
            break
    return points


def _places(points, digits):
    return np.unique(np.round(points, digits) + 0.0, axis=0)


def _different(points, apart=1e-4):
    kept = []
    for x in points:
        if all(np.linalg.norm(x - other) > apart for other in kept):
            kept.append(x)
    return kept


def _is_valley(x, Y, beta):
    curvature = np.eye(len(x)) - beta * (Y.T * _sech_squared(Y @ x, beta)) @ Y
    return np.linalg.eigvalsh(curvature)[0] > 1e-6


def _valleys(ends, Y, beta):
    return [x for x in _different(_places(ends, 6)) if _is_valley(x, Y, beta)]


def corner_census(Y, beta):
    """Count the different places of the 2^n corners, and the valleys that hops from them reach."""
    corners = ref.mode_centers(Y)
    return len(_places(corners, 9)), len(_valleys(_settle_all(corners, Y, beta), Y, beta))


def _census_with(valleys):
    """Make a census that counts its valleys in another way."""
    return lambda Y, beta: (len(_places(ref.mode_centers(Y), 9)), valleys(Y, beta))


def _settled_places(Y, beta):
    return len(_different(_places(_settle_all(ref.mode_centers(Y), Y, beta), 6)))


def _valleys_from_tokens(Y, beta):
    return len(_valleys(_settle_all(_plus_and_minus(Y), Y, beta), Y, beta))


def _searches(Y, beta):
    ends = _settle_all(ref.mode_centers(Y), Y, beta)
    valleys = np.array(_valleys(ends, Y, beta))
    return int((cdist(ends, valleys).min(axis=1) < 1e-4).sum())


def _valleys_of_softmax(Y, beta):
    points = ref.mode_centers(Y)
    for _ in range(100):
        points = _places(scipy_softmax(beta * points @ Y.T, axis=1) @ Y, 9)
    return len(_different(points))


def _valleys_after_100_hops(Y, beta):
    return len(_valleys(_settle_all(ref.mode_centers(Y), Y, beta, hops=100), Y, beta))


def _valleys_by_largest_curvature(Y, beta):
    def curvature(x):
        return np.eye(len(x)) - beta * (Y.T * _sech_squared(Y @ x, beta)) @ Y

    ends = _different(_places(_settle_all(ref.mode_centers(Y), Y, beta), 6))
    return sum(np.linalg.eigvalsh(curvature(x))[-1] > 1e-6 for x in ends)


def _census_rounded(Y, beta):
    ends = _settle_all(ref.mode_centers(Y), Y, beta)
    valleys = [x for x in ends if _is_valley(x, Y, beta)]
    return len(_places(ref.mode_centers(Y), 2)), len(_places(valleys, 2))


def _census_by_loop(Y, beta):
    valleys = []
    for corner in _places(_sums_by_doubling(Y), 8):
        x, hop = corner, 1.0
        while hop > 1e-12:
            landing = np.tanh(beta * (Y @ x)) @ Y
            x, hop = landing, math.dist(landing, x)
        if _is_valley(x, Y, beta) and all(math.dist(x, v) > 1e-5 for v in valleys):
            valleys.append(x)
    return len(_places(_sums_by_doubling(Y), 8)), len(valleys)


def _census_by_text(Y, beta):
    """Tell places apart by how their coordinates print."""

    def name(x):
        return " ".join(f"{value + 0.0:.5f}".replace("-0.00000", "0.00000") for value in x)

    corners = ref.mode_centers(Y)
    ends = _settle_all(corners, Y, beta)
    named = {name(x): x for x in ends if _is_valley(x, Y, beta)}
    return len(set(map(name, corners))), len(named)


def _census_by_clusters(Y, beta):
    corners = _sums_by_bits(Y)
    places = corners[np.unique(np.round(corners / 1e-7) * 1e-7, axis=0, return_index=True)[1]]
    ends = np.array([x for x in _settle_all(places, Y, beta) if _is_valley(x, Y, beta)])
    if len(ends) == 1:
        return len(places), 1
    return len(places), int(fcluster(linkage(ends), 1e-4, criterion="distance").max())


def _census_by_kicks(Y, beta):
    """Call an end a valley when it is found again from all sides."""
    corners = ref.mode_centers(Y)
    kicks = 1e-3 * np.random.default_rng(5).normal(size=(8, Y.shape[1]))
    ends = _different(_places(_settle_all(corners, Y, beta), 6))
    held = [np.abs(_settle_all(x + kicks, Y, beta) - x).max() < 1e-4 for x in ends]
    return np.int64(len(_places(corners, 7))), int(sum(held))


def _census_by_roots(Y, beta):
    """Hop 40 times, then solve for the flat point that is near."""
    corners = ref.mode_centers(Y)
    near = _different(_settle_all(corners, Y, beta, hops=40), 1e-3)
    flat = [root(lambda x: x - _hop_all(x, Y, beta), x, tol=1e-12).x for x in near]
    valleys = _different([x for x in flat if _is_valley(x, Y, beta)])
    return len(_places(corners, 9)), len(valleys)


def _census_case(name, Y, beta):
    return Case(name, {"Y": np.array(Y, dtype=float), "beta": float(beta)})


_RNG = np.random.default_rng(5601)
_FIVE, _FOUR, _TWELVE = (_RNG.normal(size=shape) for shape in ((5, 2), (4, 3), (12, 2)))

CENSUS = Exercise(
    name="corner_census",
    lesson=LESSON,
    points=3.0,
    expects="two whole numbers (places, valleys) with 1 <= valleys <= places <= 2**n",
    reference=corner_census,
    examples=(
        _census_case("A hot", A.Y, 0.25),
        _census_case("A", A.Y, 1.0),
        _census_case("A cold", A.Y, 4.0),
        _census_case("par", PRESETS["parallelogram"].Y, 4.0),
        _census_case("shadow", [[1, 0], [2, 0.5]], 1000.0),
        _census_case("five copies", np.ones((5, 1)), 2.0),
        _census_case("pair", G.Y, 4.0),
        _census_case("orthogonal", np.diag([1.0, 1.5, 2.0]), 4.0),
        _census_case("B", B.Y, 4.0),
        # 0.1 + 0.2 - 0.3 is not 0 in floating point, but the place is the same.
        _census_case("tenths", [[0.1], [0.2], [0.3]], 16.0),
        _census_case("near the split", A.Y, 0.32),
        # Every walk between the twins ends on a saddle that curves up along the third token.
        _census_case("twins and a longer one", [[1, 0], [1, 0], [0, 2]], 0.625),
        _census_case("close places", [[1.0], [2.0**-10]], 4.0),
        _census_case("short", [[2.0**-8]], 2.0**18),
    ),
    groups=(
        Group(
            "ordinary",
            "random tokens, from hot to cold",
            0.5,
            (
                _census_case("five tokens, hot", _FIVE, 0.0625),
                _census_case("five tokens", _FIVE, 0.75),
                _census_case("five tokens, cold", _FIVE, 1000.0),
                _census_case("four tokens", _FOUR, 2.0),
                _census_case("four tokens, cold", _FOUR, 1000.0),
                _census_case(
                    "four tokens, near the split", _FOUR, 0.93 / np.linalg.norm(_FOUR, 2) ** 2
                ),
            ),
        ),
        Group(
            "coinciding",
            "corners that coincide",
            0.15,
            (
                _census_case("four copies", np.full((4, 1), -0.5), 3.0),
                _census_case("twins", D.Y, 16.0),
                _census_case("a line", [[1, 2], [-2, -4], [0.5, 1]], 1.0),
                _census_case("decimals", [[0.7, 0], [0.6, 0], [0.1, 0], [0, 0.3]], 32.0),
                _census_case("twins across", [[0, 1.0], [2.5, 0], [0, -1.0]], 0.6),
                _census_case("close places", [[0, 2.0], [0, 2.0**-9]], 1.0),
            ),
        ),
        Group(
            "edges",
            "edge shapes",
            0.15,
            (
                _census_case("one token", [[-0.5, 2.0, 1.0]], 0.5),
                _census_case("one token, hot", [[0.5, -0.25]], 1.0),
                _census_case("orthogonal", np.diag([2.0, 1.0, 1.5, 1.25]), 8.0),
                Case("whole numbers", {"Y": np.array([[2, 0], [1, 1]]), "beta": 2}),
            ),
        ),
        # Last, because no call is made any more after one that takes too long.
        Group(
            "many",
            "twelve tokens",
            0.2,
            (_census_case("twelve tokens, cold", _TWELVE, 1000.0),),
        ),
    ),
    properties=("finds_no_more_valleys_than_places",),
    misconceptions=(
        Misconception(
            "coinciding-corners-counted-twice",
            "List the signed sums of two equal tokens: how many different places are there?",
            lambda Y, beta: (2 ** len(Y), corner_census(Y, beta)[1]),
        ),
        Misconception(
            "every-place-a-valley",
            "A component is not a valley: how many valleys are left when beta is small?",
            lambda Y, beta: (len(_places(ref.mode_centers(Y), 9)),) * 2,
        ),
        Misconception(
            "cold-limit",
            "The sign condition is the limit beta → infinity: how does the count depend on beta?",
            _census_with(lambda Y, beta: int(ref.stable_modes(Y).sum())),
        ),
        Misconception(
            "saddles-counted",
            "A search can stay where opposite tokens balance: is the curvature positive there?",
            _census_with(_settled_places),
        ),
        Misconception(
            "searches-counted",
            "Many corners lead to one valley: count places, not searches.",
            _census_with(_searches),
        ),
        Misconception(
            "starts-at-tokens",
            "Where do you start: at the tokens, or at every signed sum of them?",
            _census_with(_valleys_from_tokens),
        ),
        Misconception(
            "softmax-hops",
            "Which kernel's hop do you repeat? This one's landing is not an average.",
            _census_with(_valleys_of_softmax),
        ),
        Misconception(
            "equal-to-the-last-digit",
            "0.1 + 0.2 - 0.3 is not 0 in floating point: when are two places the same?",
            lambda Y, beta: (
                len({tuple(z) for z in ref.mode_centers(Y)}),
                corner_census(Y, beta)[1],
            ),
        ),
        Misconception(
            "rounded-too-much",
            "How near can two different places be? Your rounding makes one of them.",
            _census_rounded,
        ),
        Misconception(
            "hundred-hops",
            "Near a split hops become short: stop when nothing moves, not after a fixed number.",
            _census_with(_valleys_after_100_hops),
        ),
        Misconception(
            "largest-curvature",
            "On a saddle some directions curve up: which of the curvatures decides?",
            _census_with(_valleys_by_largest_curvature),
        ),
        Misconception(
            "one-hop-only",
            "One hop is not yet settled: repeat until nothing moves.",
            _census_with(
                lambda Y, beta: len(_different(_places(_hop_all(ref.mode_centers(Y), Y, beta), 6)))
            ),
        ),
    ),
    alternatives=(
        Alternative("loop", _census_by_loop),
        Alternative("printed-coordinates", _census_by_text),
        Alternative("clusters", _census_by_clusters),
        Alternative("kicks", _census_by_kicks),
        Alternative("roots", _census_by_roots),
        Alternative("callable-object", CalledObject(corner_census)),
        Alternative("prints-and-warns", noisy(corner_census)),
    ),
)

EXERCISES = (
    LOG_COSH,
    TANH_ENERGY,
    MODE_CENTERS,
    TANH_ENERGY_GMM,
    TANH_STEP,
    STABLE_MODES,
    CENSUS,
)
