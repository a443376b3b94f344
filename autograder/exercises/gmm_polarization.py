"""Lesson 02: what each exercise asks, the wrong answers it knows, right answers of other forms."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import combinations

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.optimize import minimize, root
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from scipy.special import softmax as scipy_softmax

from autograder.exercise import Alternative, Exercise, Group, Misconception
from autograder.exercises._cases import (
    SOFTMAX_PUBLIC,
    CalledObject,
    edge_cases,
    extreme_cases,
    noisy,
    ordinary_cases,
    softmax_groups,
    zero_dimensional,
)
from autograder.reference import gmm_polarization as ref
from autograder.reference import lse_gradient as lesson_1
from autograder.reference import one_step_vs_settling as lesson_7
from autograder.reference.fixtures import PRESETS, B, C, D
from hopping.cases import Case

LESSON = "02_gmm_polarization"


# --- energy -------------------------------------------------------------------------------------


def _half_square(xi):
    return np.sum(xi**2) / 2


def _energy_naive(xi, Y, beta):
    return _half_square(xi) - np.log(np.exp(beta * (Y @ xi)).sum()) / beta


def _energy_or_max(xi, Y, beta):
    naive = np.log(np.exp(beta * (Y @ xi)).sum()) / beta
    return _half_square(xi) - (naive if np.isfinite(naive) else np.max(Y @ xi))


def _energy_by_loop(xi, Y, beta):
    scores = [sum(float(a) * float(b) for a, b in zip(row, xi, strict=True)) for row in Y]
    top = max(scores)
    total = math.fsum(math.exp(beta * (score - top)) for score in scores)
    return math.fsum(float(x) ** 2 for x in xi) / 2 - top - math.log(total) / beta


def _energy_by_pairs(xi, Y, beta):
    lse = np.logaddexp.reduce(beta * np.einsum("td,d->t", Y, xi)) / beta
    return 0.5 * np.linalg.norm(xi) ** 2 - lse


def _energy_in_one_log(xi, Y, beta):
    """Put the bowl into the exponent."""
    return -logsumexp(beta * (Y @ xi) - beta * np.vdot(xi, xi) / 2) / beta


ENERGY = Exercise(
    name="energy",
    lesson=LESSON,
    points=3.0,
    expects="one number, in units of a score",
    reference=ref.energy,
    examples=SOFTMAX_PUBLIC,
    groups=softmax_groups(2101),
    properties=(
        "is_minus_log_n_at_zero",
        "is_half_a_square_on_one_centre",
        "stays_above_the_floor",
        "falls_with_doubled_tokens",
    ),
    misconceptions=(
        Misconception(
            "plus-lse",
            "A query that agrees with a centre should lie low: which sign has lse?",
            lambda xi, Y, beta: _half_square(xi) + lesson_1.lse(xi, Y, beta),
        ),
        Misconception(
            "bowl-without-half",
            "The gradient of the bowl must be xi itself.",
            lambda xi, Y, beta: xi @ xi - lesson_1.lse(xi, Y, beta),
        ),
        Misconception(
            "bowl-missing",
            "What keeps the query from running away?",
            lambda xi, Y, beta: -lesson_1.lse(xi, Y, beta),
        ),
        Misconception(
            "bowl-times-beta",
            "The bowl has the same shape at every beta.",
            lambda xi, Y, beta: beta * _half_square(xi) - lesson_1.lse(xi, Y, beta),
        ),
        Misconception(
            "norm-not-squared",
            "The bowl is half the square of xi's length.",
            lambda xi, Y, beta: np.linalg.norm(xi) / 2 - lesson_1.lse(xi, Y, beta),
        ),
        Misconception(
            "no-1-over-beta",
            "Units: lse is 1/beta times a logarithm.",
            lambda xi, Y, beta: _half_square(xi) - logsumexp(beta * (Y @ xi)),
        ),
        Misconception("overflow", "Large beta gives -inf: which exp overflowed?", _energy_naive),
        Misconception(
            "max-where-exp-fails",
            "The maximum is not what exp could not tell you: two equal large scores give more.",
            _energy_or_max,
        ),
        Misconception(
            "hard-max",
            "lse is more than the largest score: all centres add to it.",
            lambda xi, Y, beta: _half_square(xi) - np.max(Y @ xi),
        ),
        Misconception(
            "beta-ignored",
            "lse has beta in two places. Did you use it?",
            lambda xi, Y, beta: ref.energy(xi, Y, 1.0),
        ),
        Misconception(
            "beta-missing-inside",
            "Where in lse does beta act before the exponential?",
            lambda xi, Y, beta: _half_square(xi) - logsumexp(Y @ xi) / beta,
        ),
        Misconception(
            "both-signs",
            "Far out the bowl wins, and there the energy is high: which sign has each part?",
            lambda xi, Y, beta: -ref.energy(xi, Y, beta),
        ),
    ),
    alternatives=(
        Alternative("loop", _energy_by_loop),
        Alternative("einsum-logaddexp", _energy_by_pairs),
        Alternative("one-log", _energy_in_one_log),
        Alternative("mixture", ref.energy_gmm),
        Alternative("callable-object", CalledObject(_energy_by_pairs)),
        Alternative("zero-dimensional", zero_dimensional(ref.energy)),
        Alternative(
            "long-double",
            lambda xi, Y, beta: np.longdouble(xi @ xi) / 2 - logsumexp(beta * (Y @ xi)) / beta,
        ),
        Alternative("prints-and-warns", noisy(ref.energy)),
    ),
)


# --- log_mixture_weights ------------------------------------------------------------------------


def _without_xi(cases):
    return tuple(Case(case.name, {k: case.inputs[k] for k in ("Y", "beta")}) for case in cases)


def _log_weights_by_loop(Y, beta):
    logs = np.empty(len(Y))
    for place, row in enumerate(Y):
        logs[place] = beta / 2 * sum(float(x) * float(x) for x in row)
    return logs


def _log_weights_in_whole_numbers(Y, beta):
    logs = np.zeros_like(Y[:, 0])
    for place, row in enumerate(Y):
        logs[place] = beta * (row @ row) / 2
    return logs


LOG_WEIGHTS = Exercise(
    name="log_mixture_weights",
    lesson=LESSON,
    points=3.0,
    expects="an array with the natural logarithm of one weight for each centre",
    reference=ref.log_mixture_weights,
    examples=_without_xi(SOFTMAX_PUBLIC),
    groups=(
        Group("ordinary", "ordinary values", 0.60, _without_xi(ordinary_cases(2201))),
        Group(
            "extreme",
            "very large and very small exponents",
            0.25,
            _without_xi(extreme_cases(2202)),
        ),
        Group("edges", "edge shapes", 0.15, _without_xi(edge_cases(2203))),
    ),
    properties=("scales_like_a_square", "gives_each_centre_its_own"),
    misconceptions=(
        Misconception(
            "pi-not-log-pi",
            "These are the weights: return their logarithms. exp overflows above 709.",
            lambda Y, beta: np.exp(ref.log_mixture_weights(Y, beta)),
        ),
        Misconception(
            "half-missing",
            "Which factor has the last square of the polarisation?",
            lambda Y, beta: 2 * ref.log_mixture_weights(Y, beta),
        ),
        Misconception(
            "beta-missing",
            "A bump's weight pi depends on beta.",
            lambda Y, beta: ref.log_mixture_weights(Y, 1.0),
        ),
        Misconception(
            "norm-not-squared",
            "The squared length is asked, without a square root.",
            lambda Y, beta: beta * np.linalg.norm(Y, axis=1) / 2,
        ),
        Misconception(
            "normalised",
            "The identity needs the raw weights: a shift of log pi shifts E.",
            lambda Y, beta: (
                ref.log_mixture_weights(Y, beta) - logsumexp(ref.log_mixture_weights(Y, beta))
            ),
        ),
        Misconception(
            "sum-over-centres",
            "One number for each centre: sum over its coordinates.",
            lambda Y, beta: beta * (Y**2).sum(axis=0) / 2,
        ),
        Misconception(
            "minus-sign",
            "Longer centres weigh more.",
            lambda Y, beta: -ref.log_mixture_weights(Y, beta),
        ),
        Misconception(
            "overflow",
            "The logarithm of exp(x) is x: leave out both, and nothing overflows.",
            lambda Y, beta: np.log(np.exp(ref.log_mixture_weights(Y, beta))),
        ),
        Misconception(
            "cut-to-whole-numbers",
            "Which type has the array that you fill, when Y holds whole numbers?",
            _log_weights_in_whole_numbers,
        ),
        Misconception(
            "divides-by-beta",
            "beta multiplies the squares: compare with the last square of the polarisation.",
            lambda Y, beta: (Y**2).sum(axis=1) / (2 * beta),
        ),
        Misconception(
            "mean-square",
            "A squared length is a sum over the coordinates, not their average.",
            lambda Y, beta: beta * (Y**2).mean(axis=1) / 2,
        ),
    ),
    alternatives=(
        Alternative("loop", _log_weights_by_loop),
        Alternative("einsum", lambda Y, beta: 0.5 * beta * np.einsum("td,td->t", Y, Y)),
        Alternative("norm", lambda Y, beta: beta * np.linalg.norm(Y, axis=1) ** 2 / 2),
        Alternative(
            "long-double", lambda Y, beta: np.longdouble(beta) * np.square(Y).sum(axis=1) / 2
        ),
        Alternative("gram-diagonal", lambda Y, beta: beta / 2 * (Y @ Y.T).diagonal()),
        Alternative("scaled-centres", lambda Y, beta: ((Y * np.sqrt(beta / 2)) ** 2).sum(axis=1)),
        Alternative("callable-object", CalledObject(_log_weights_by_loop)),
        Alternative("prints-and-warns", noisy(ref.log_mixture_weights)),
    ),
)


# --- energy_gmm ---------------------------------------------------------------------------------


def _squares(xi, Y):
    return ((xi - Y) ** 2).sum(axis=1)


def _log_bumps(xi, Y, beta):
    return ref.log_mixture_weights(Y, beta) - beta * _squares(xi, Y) / 2


def _gmm_normalised(xi, Y, beta):
    log_pi = ref.log_mixture_weights(Y, beta)
    return -logsumexp(log_pi - logsumexp(log_pi) - beta * _squares(xi, Y) / 2) / beta


def _gmm_of_variance_beta(xi, Y, beta):
    return -logsumexp(ref.log_mixture_weights(Y, beta) - _squares(xi, Y) / (2 * beta)) / beta


def _gmm_overflowing(xi, Y, beta):
    pi = np.exp(ref.log_mixture_weights(Y, beta))
    return -np.log((pi * np.exp(-beta * _squares(xi, Y) / 2)).sum()) / beta


def _gmm_without_shift(xi, Y, beta):
    return -np.log(np.exp(_log_bumps(xi, Y, beta)).sum()) / beta


def _gmm_or_max(xi, Y, beta):
    logs = _log_bumps(xi, Y, beta)
    naive = np.log(np.exp(logs).sum())
    return -(naive if np.isfinite(naive) else logs.max()) / beta


def _gmm_underflowing(xi, Y, beta):
    bumps = np.exp(-beta * _squares(xi, Y) / 2)
    return -logsumexp(ref.log_mixture_weights(Y, beta) + np.log(bumps)) / beta


def _log_bumps_of_distance(xi, Y, beta):
    """Forget to square the distance."""
    return ref.log_mixture_weights(Y, beta) - beta * np.linalg.norm(xi - Y, axis=1) / 2


def _log_bumps_of_length(xi, Y, beta):
    """Forget to square the centre's length."""
    return beta * (np.linalg.norm(Y, axis=1) - _squares(xi, Y)) / 2


def _gmm_with_normaliser(xi, Y, beta):
    volume = len(xi) / 2 * np.log(beta / (2 * np.pi))
    return -(logsumexp(_log_bumps(xi, Y, beta)) + volume) / beta


def _gmm_by_loop(xi, Y, beta):
    total = -math.inf
    for row in Y:
        log_pi = beta * float(row @ row) / 2
        total = np.logaddexp(total, log_pi - beta * float((xi - row) @ (xi - row)) / 2)
    return -total / beta


def _gmm_by_cdist(xi, Y, beta):
    squares = cdist(xi[None, :], Y, "sqeuclidean")[0]
    return -logsumexp(beta / 2 * (np.einsum("td,td->t", Y, Y) - squares)) / beta


def _gmm_by_hand_shift(xi, Y, beta):
    logs = _log_bumps(xi, Y, beta)
    top = np.argmax(logs)
    return -(logs[top] + np.log1p(np.exp(np.delete(logs, top) - logs[top]).sum())) / beta


ENERGY_GMM = Exercise(
    name="energy_gmm",
    lesson=LESSON,
    points=3.0,
    expects="one number, in units of a score",
    reference=ref.energy_gmm,
    examples=SOFTMAX_PUBLIC,
    groups=softmax_groups(2301),
    properties=(
        "is_minus_log_n_at_zero",
        "is_half_a_square_on_one_centre",
        "stays_above_the_floor",
        "falls_with_doubled_tokens",
    ),
    misconceptions=(
        Misconception(
            "pi-forgotten",
            "Two centres of different length have bumps of different height: where is pi?",
            lambda xi, Y, beta: -logsumexp(-beta * _squares(xi, Y) / 2) / beta,
        ),
        Misconception(
            "pi-normalised",
            "Equal shapes, shifted by a constant: which constant did you add?",
            _gmm_normalised,
        ),
        Misconception("variance-beta", "Large beta means narrow bumps.", _gmm_of_variance_beta),
        Misconception(
            "half-missing-in-the-gaussian",
            "Expand ||xi-y||^2 and look at the cross term.",
            lambda xi, Y, beta: (
                -logsumexp(ref.log_mixture_weights(Y, beta) - beta * _squares(xi, Y)) / beta
            ),
        ),
        Misconception(
            "no-1-over-beta",
            "Energy is -(1/beta) log.",
            lambda xi, Y, beta: -logsumexp(_log_bumps(xi, Y, beta)),
        ),
        Misconception(
            "sign",
            "A probable query lies low.",
            lambda xi, Y, beta: logsumexp(_log_bumps(xi, Y, beta)) / beta,
        ),
        Misconception(
            "pi-exponentiated-first",
            "0*inf: combine exponents before exponentiating.",
            _gmm_overflowing,
        ),
        Misconception(
            "overflow",
            "Which function takes a log-sum-exp without an exp that overflows?",
            _gmm_without_shift,
        ),
        Misconception(
            "underflow",
            "A bump became 0, and the log of 0 is -inf: add the logs before you exponentiate.",
            _gmm_underflowing,
        ),
        Misconception(
            "max-where-exp-fails",
            "The highest bump is not what exp could not tell you: two of one height give more.",
            _gmm_or_max,
        ),
        Misconception(
            "highest-bump-only",
            "Every bump adds to the sum, not the highest one alone.",
            lambda xi, Y, beta: -_log_bumps(xi, Y, beta).max() / beta,
        ),
        Misconception(
            "beta-missing-in-the-kernel",
            "The width depends on beta.",
            lambda xi, Y, beta: (
                -logsumexp(ref.log_mixture_weights(Y, beta) - _squares(xi, Y) / 2) / beta
            ),
        ),
        Misconception(
            "beta-missing-in-pi",
            "A bump's weight pi depends on beta.",
            lambda xi, Y, beta: (
                -logsumexp(ref.log_mixture_weights(Y, 1.0) - beta * _squares(xi, Y) / 2) / beta
            ),
        ),
        Misconception(
            "distance-not-squared",
            "A bump falls with the squared distance, without a square root.",
            lambda xi, Y, beta: -logsumexp(_log_bumps_of_distance(xi, Y, beta)) / beta,
        ),
        Misconception(
            "length-not-squared",
            "ln pi takes the squared length of a centre, without a square root.",
            lambda xi, Y, beta: -logsumexp(_log_bumps_of_length(xi, Y, beta)) / beta,
        ),
        Misconception(
            "gaussian-normaliser",
            "E equals -log density only up to a constant.",
            _gmm_with_normaliser,
        ),
        Misconception(
            "extra-bowl",
            "The bowl has been used up by the square.",
            lambda xi, Y, beta: _half_square(xi) + ref.energy_gmm(xi, Y, beta),
        ),
    ),
    alternatives=(
        Alternative("loop", _gmm_by_loop),
        Alternative("cdist", _gmm_by_cdist),
        Alternative("log1p", _gmm_by_hand_shift),
        Alternative("bowl-minus-lse", ref.energy),
        Alternative("callable-object", CalledObject(_gmm_by_cdist)),
        Alternative("zero-dimensional", zero_dimensional(_gmm_by_cdist)),
        Alternative("prints-and-warns", noisy(_gmm_by_loop)),
    ),
)


# --- posterior ----------------------------------------------------------------------------------


def _posterior_overflowing(xi, Y, beta):
    joint = np.exp(ref.log_mixture_weights(Y, beta)) * np.exp(-beta * _squares(xi, Y) / 2)
    return joint / joint.sum()


def _posterior_without_shift(xi, Y, beta):
    joint = np.exp(_log_bumps(xi, Y, beta))
    return joint / joint.sum()


def _posterior_shifted(logs, shift):
    joint = np.exp(logs - shift)
    return joint / joint.sum()


def _posterior_far_below(xi, Y, beta):
    logs = _log_bumps(xi, Y, beta)
    return _posterior_shifted(logs, np.abs(logs).max())


def _posterior_of_mean_shift(xi, Y, beta):
    logs = _log_bumps(xi, Y, beta)
    return _posterior_shifted(logs, logs.mean())


def _posterior_without_small_ones(xi, Y, beta):
    a = ref.posterior(xi, Y, beta)
    return np.where(a < 1e-6, 0.0, a)


def _posterior_by_loop(xi, Y, beta):
    logs = [beta / 2 * float(y @ y - (xi - y) @ (xi - y)) for y in Y]
    exponentials = [math.exp(log - max(logs)) for log in logs]
    return np.array(exponentials) / sum(exponentials)


def _posterior_by_scipy_stats(xi, Y, beta):
    covariance = np.eye(len(xi)) / beta
    # Imported here: it takes a second, which every kernel that grades would wait for.
    from scipy.stats import multivariate_normal

    log_kernels = [multivariate_normal.logpdf(xi, y, covariance) for y in Y]
    return scipy_softmax(ref.log_mixture_weights(Y, beta) + np.array(log_kernels))


def _posterior_by_odds(xi, Y, beta):
    """One over the sum of all odds against each component."""
    logs = _log_bumps(xi, Y, beta)
    with np.errstate(over="ignore"):
        return 1 / np.exp(logs[None, :] - logs[:, None]).sum(axis=1)


def _posterior_by_removal(xi, Y, beta):
    """Differentiate the energy with respect to log pi: the share of the total."""
    logs = _log_bumps(xi, Y, beta)
    return np.exp(logs + beta * ref.energy(xi, Y, beta))


POSTERIOR = Exercise(
    name="posterior",
    lesson=LESSON,
    points=3.0,
    expects="an array with one probability for each component",
    reference=ref.posterior,
    examples=SOFTMAX_PUBLIC,
    groups=softmax_groups(2401),
    properties=("is_a_distribution", "twins_share_evenly", "has_the_odds_of_pi_halfway"),
    misconceptions=(
        Misconception(
            "pi-forgotten",
            "Nearest is not most probable when lengths differ: where is pi?",
            lambda xi, Y, beta: scipy_softmax(-beta * _squares(xi, Y) / 2),
        ),
        Misconception(
            "not-normalised",
            "Probabilities sum to 1: divide by the sum over all components.",
            lambda xi, Y, beta: np.exp(_log_bumps(xi, Y, beta)),
        ),
        Misconception(
            "beta-missing-in-the-kernel",
            "The width depends on beta.",
            lambda xi, Y, beta: scipy_softmax(
                ref.log_mixture_weights(Y, beta) - _squares(xi, Y) / 2
            ),
        ),
        Misconception("overflow", "Stay in logs until the end.", _posterior_overflowing),
        Misconception(
            "overflow-of-the-sum",
            "inf/inf: which function normalises without an exp that overflows?",
            _posterior_without_shift,
        ),
        Misconception(
            "shift-by-absolute-max",
            "0/0 when all logs are far below 0: which shift makes the largest exponent 0?",
            _posterior_far_below,
        ),
        Misconception(
            "another-shift",
            "nan at large beta: which shift makes the largest exponent 0?",
            _posterior_of_mean_shift,
        ),
        Misconception(
            "small-ones-dropped",
            "A probability of a millionth is small, but not nothing: keep all of them.",
            _posterior_without_small_ones,
        ),
        Misconception(
            "bumps-forgotten",
            "pi does not know the query: where is the bump?",
            lambda xi, Y, beta: scipy_softmax(ref.log_mixture_weights(Y, beta)),
        ),
        Misconception(
            "half-missing-in-the-gaussian",
            "Expand ||xi-y||^2 and look at the cross term.",
            lambda xi, Y, beta: scipy_softmax(
                ref.log_mixture_weights(Y, beta) - beta * _squares(xi, Y)
            ),
        ),
        Misconception(
            "variance-beta",
            "Large beta means narrow bumps.",
            lambda xi, Y, beta: scipy_softmax(
                ref.log_mixture_weights(Y, beta) - _squares(xi, Y) / (2 * beta)
            ),
        ),
        Misconception(
            "rises-with-distance",
            "Is a component near the query more probable, or one far from it?",
            lambda xi, Y, beta: scipy_softmax(
                ref.log_mixture_weights(Y, beta) + beta * _squares(xi, Y) / 2
            ),
        ),
        Misconception(
            "beta-ignored",
            "pi depends on beta, and so does the width.",
            lambda xi, Y, beta: ref.posterior(xi, Y, 1.0),
        ),
        Misconception(
            "distance-not-squared",
            "A bump falls with the squared distance, without a square root.",
            lambda xi, Y, beta: scipy_softmax(_log_bumps_of_distance(xi, Y, beta)),
        ),
        Misconception(
            "length-not-squared",
            "ln pi takes the squared length of a centre, without a square root.",
            lambda xi, Y, beta: scipy_softmax(_log_bumps_of_length(xi, Y, beta)),
        ),
        Misconception(
            "pi-squared",
            "One pi for each component: is it in there twice?",
            lambda xi, Y, beta: scipy_softmax(
                2 * ref.log_mixture_weights(Y, beta) - beta * _squares(xi, Y) / 2
            ),
        ),
        Misconception(
            "log-posterior",
            "Probabilities, not logs.",
            lambda xi, Y, beta: _log_bumps(xi, Y, beta) - logsumexp(_log_bumps(xi, Y, beta)),
        ),
    ),
    alternatives=(
        Alternative("loop", _posterior_by_loop),
        Alternative("scipy-stats", _posterior_by_scipy_stats),
        Alternative("odds", _posterior_by_odds),
        Alternative("over-the-total", _posterior_by_removal),
        Alternative("attention", lesson_1.attention_weights),
        Alternative(
            "long-double",
            lambda xi, Y, beta: scipy_softmax(_log_bumps(xi, Y, np.longdouble(beta))),
        ),
        Alternative("callable-object", CalledObject(_posterior_by_loop)),
        Alternative("prints-and-warns", noisy(_posterior_by_loop)),
    ),
)


# --- log_density --------------------------------------------------------------------------------


def _mass(Y, beta):
    return logsumexp(ref.log_mixture_weights(Y, beta))


def _log_volume(d, beta):
    return d / 2 * np.log(2 * np.pi / beta)


def _density_of_equal_weights(xi, Y, beta):
    bumps = logsumexp(-beta * _squares(xi, Y) / 2)
    return bumps - np.log(len(Y)) - _log_volume(len(xi), beta)


def _density_of_double_pi(xi, Y, beta):
    log_pi = 2 * ref.log_mixture_weights(Y, beta)
    logs = log_pi - beta * _squares(xi, Y) / 2
    return logsumexp(logs) - logsumexp(log_pi) - _log_volume(len(xi), beta)


def _density_of_deviation(xi, Y, beta):
    """Take 1/beta for the standard deviation of a bump."""
    logs = ref.log_mixture_weights(Y, beta) - beta**2 * _squares(xi, Y) / 2
    return logsumexp(logs) - _mass(Y, beta) - _log_volume(len(xi), beta**2)


def _density_of_distance(xi, Y, beta):
    logs = _log_bumps_of_distance(xi, Y, beta)
    return logsumexp(logs) - _mass(Y, beta) - _log_volume(len(xi), beta)


def _density_underflowing(xi, Y, beta):
    shares = scipy_softmax(ref.log_mixture_weights(Y, beta))
    bumps = np.exp(-beta * _squares(xi, Y) / 2)
    return np.log((shares * bumps).sum()) - _log_volume(len(xi), beta)


def _density_overflowing(xi, Y, beta):
    bumps = np.exp(_log_bumps(xi, Y, beta)).sum()
    mass = np.exp(ref.log_mixture_weights(Y, beta)).sum()
    return np.log(bumps) - np.log(mass) - _log_volume(len(xi), beta)


def _density_by_loop(xi, Y, beta):
    total, mass = -math.inf, -math.inf
    for y in Y:
        log_pi = beta * math.fsum(float(v) ** 2 for v in y) / 2
        log_kernel = sum(
            math.log(beta / (2 * math.pi)) / 2 - beta * (float(a) - float(b)) ** 2 / 2
            for a, b in zip(xi, y, strict=True)
        )
        total, mass = np.logaddexp(total, log_pi + log_kernel), np.logaddexp(mass, log_pi)
    return float(total - mass)


def _density_by_scipy_stats(xi, Y, beta):
    covariance = np.eye(len(xi)) / beta
    # Imported here: it takes a second, which every kernel that grades would wait for.
    from scipy.stats import multivariate_normal

    log_kernels = [multivariate_normal.logpdf(xi, y, covariance) for y in Y]
    log_pi = beta * (Y**2).sum(axis=1) / 2
    return logsumexp(log_pi - logsumexp(log_pi) + np.array(log_kernels))


def _density_by_weights(xi, Y, beta):
    """Give `logsumexp` the normalised weights as factors; they are at most 1."""
    shares = scipy_softmax(ref.log_mixture_weights(Y, beta))
    bumps = logsumexp(-beta * _squares(xi, Y) / 2, b=shares)
    return bumps - _log_volume(xi.size, beta)


def _density_by_determinant(xi, Y, beta):
    log_det = np.linalg.slogdet(2 * np.pi * np.eye(len(xi)) / beta)[1]
    return -beta * ref.energy(xi, Y, beta) - _mass(Y, beta) - log_det / 2


LOG_DENSITY = Exercise(
    name="log_density",
    lesson=LESSON,
    points=3.0,
    expects="one number, the natural logarithm of a density",
    reference=ref.log_density,
    examples=SOFTMAX_PUBLIC,
    groups=softmax_groups(2501),
    properties=("falls_around_one_centre", "integrates_to_one"),
    misconceptions=(
        Misconception(
            "pi-not-normalised",
            "A density integrates to 1: divide by the sum of all pi.",
            lambda xi, Y, beta: logsumexp(_log_bumps(xi, Y, beta)) - _log_volume(len(xi), beta),
        ),
        Misconception(
            "gaussian-normaliser-missing",
            "Each bump has volume (2 pi/beta)^(d/2).",
            lambda xi, Y, beta: logsumexp(_log_bumps(xi, Y, beta)) - _mass(Y, beta),
        ),
        Misconception(
            "normaliser-of-one-dimension",
            "One factor per coordinate.",
            lambda xi, Y, beta: (
                logsumexp(_log_bumps(xi, Y, beta)) - _mass(Y, beta) - _log_volume(1, beta)
            ),
        ),
        Misconception(
            "beta-as-variance",
            "A bump is narrow when beta is large: its variance is 1/beta.",
            lambda xi, Y, beta: (
                logsumexp(_log_bumps(xi, Y, beta)) - _mass(Y, beta) - _log_volume(len(xi), 1 / beta)
            ),
        ),
        Misconception(
            "beta-as-deviation",
            "1/beta is the variance of a bump, so its standard deviation is 1/sqrt(beta).",
            _density_of_deviation,
        ),
        Misconception(
            "distance-not-squared",
            "A bump falls with the squared distance, without a square root.",
            _density_of_distance,
        ),
        Misconception(
            "underflow",
            "The bumps became 0, and the log of 0 is -inf: stay in logs until the end.",
            _density_underflowing,
        ),
        Misconception(
            "overflow",
            "Which function takes a log-sum-exp without an exp that overflows?",
            _density_overflowing,
        ),
        Misconception("energy-returned", "log p, not E.", ref.energy),
        Misconception(
            "density-not-log",
            "Return the log.",
            lambda xi, Y, beta: np.exp(ref.log_density(xi, Y, beta)),
        ),
        Misconception("equal-weights", "pi is not uniform.", _density_of_equal_weights),
        Misconception(
            "half-missing-in-pi",
            "Which factor has the last square of the polarisation?",
            _density_of_double_pi,
        ),
        Misconception(
            "beta-ignored",
            "pi, width and volume: all three depend on beta.",
            lambda xi, Y, beta: ref.log_density(xi, Y, 1.0),
        ),
    ),
    alternatives=(
        Alternative("loop", _density_by_loop),
        Alternative("scipy-stats", _density_by_scipy_stats),
        Alternative("weights-as-factors", _density_by_weights),
        Alternative("from-the-energy", _density_by_determinant),
        Alternative("callable-object", CalledObject(_density_by_weights)),
        Alternative("zero-dimensional", zero_dimensional(_density_by_loop)),
        Alternative("prints-and-warns", noisy(ref.log_density)),
    ),
)


# --- valley_census: the part of the mastery project that code can check -------------------------


def _few_starts(Y):
    """Every centre, and their mean."""
    return np.vstack([Y, Y.mean(axis=0)])


def _many_starts(Y):
    """Every centre, and the averages of two and of three centres."""
    chosen = [list(c) for size in (2, 3) for c in combinations(range(len(Y)), size)]
    return np.vstack([_few_starts(Y), *(Y[rows].mean(axis=0) for rows in chosen)])


def _hop_all(points, Y, beta):
    # Written out: SciPy's softmax would take most of the time of hundreds of hops.
    scores = beta * points @ Y.T
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights @ Y / weights.sum(axis=1, keepdims=True)


def _settle_all(starts, Y, beta, hops=20_000):
    # Many known answers walk the same ways, and each of them is asked twice.
    tables = (tuple(map(tuple, np.asarray(table, dtype=float))) for table in (starts, Y))
    return _settled(*tables, float(beta), hops).copy()


@lru_cache(maxsize=256)
def _settled(starts, Y, beta, hops):
    points, Y = np.array(starts), np.array(Y)
    for _ in range(hops):
        before, points = points, _hop_all(points, Y, beta)
        if np.abs(points - before).max() < 1e-9:
            break
    return points


def _is_valley(x, Y, beta):
    return 1 - np.linalg.eigvalsh(lesson_1.lse_hessian(x, Y, beta))[-1] > 1e-6


def _different(points, apart=1e-4):
    kept = []
    for x in points:
        if all(np.linalg.norm(x - other) > apart for other in kept):
            kept.append(x)
    return kept


def _count(points, Y, beta):
    return len(_different([x for x in points if _is_valley(x, Y, beta)]))


def valley_census(Y, betas):
    """Count the valleys of the energy at each beta: different points, flat, curved upwards."""
    return np.array([_count(_settle_all(_many_starts(Y), Y, b), Y, b) for b in betas])


def _census_from(starts):
    return lambda Y, betas: np.array(
        [_count(_settle_all(starts(Y), Y, beta), Y, beta) for beta in betas]
    )


def _census_of_flat_points(Y, betas):
    return np.array([len(_different(_settle_all(_few_starts(Y), Y, beta))) for beta in betas])


def _census_by_curvature(curves_up):
    """Take another rule for what a valley is."""

    def census(Y, betas):
        counts = []
        for beta in betas:
            ends = _different(_settle_all(_many_starts(Y), Y, beta))
            matrices = [np.eye(Y.shape[1]) - lesson_1.lse_hessian(x, Y, beta) for x in ends]
            counts.append(sum(bool(curves_up(matrix)) for matrix in matrices))
        return np.array(counts)

    return census


def _census_of_far_places(Y, betas):
    counts = []
    for beta in betas:
        ends = _settle_all(_many_starts(Y), Y, beta)
        valleys = [x for x in ends if _is_valley(x, Y, beta)]
        counts.append(len(_different(valleys, 0.1)))
    return np.array(counts)


def _census_of_searches(Y, betas):
    return np.array(
        [
            sum(_is_valley(x, Y, beta) for x in _settle_all(_few_starts(Y), Y, beta))
            for beta in betas
        ]
    )


def _census_in_a_hurry(starts, hops):
    return lambda Y, betas: np.array(
        [_count(_settle_all(starts(Y), Y, beta, hops), Y, beta) for beta in betas]
    )


def _census_of_long_steps(Y, betas):
    counts = []
    for beta in betas:
        points, before = _many_starts(Y), np.inf
        while np.abs(points - before).max() > 1e-4:
            before, points = points, _hop_all(points, Y, beta)
        counts.append(_count(points, Y, beta))
    return np.array(counts)


def _census_when_cold(Y, betas):
    """Count the centres that match themselves better than any other centre matches them."""
    gram = Y @ Y.T
    best = [np.all(np.delete(row, i) < row[i]) for i, row in enumerate(gram)]
    return np.full(len(betas), sum(best))


def _census_by_pair_rule(Y, betas):
    """Take 1/r^2 of the two closest centres for all."""
    gaps = cdist(Y, Y)[np.triu_indices(len(Y), 1)]
    critical = 4 / gaps.min() ** 2 if gaps.size and gaps.min() > 0 else np.inf
    return np.where(np.asarray(betas) > critical, len(Y), 1)


def _census_by_minimize(Y, betas):
    counts = []
    for beta in betas:
        ends = [
            minimize(
                lambda x, b=beta: x @ x / 2 - logsumexp(b * Y @ x) / b,
                start,
                jac=lambda x, b=beta: x - scipy_softmax(b * Y @ x) @ Y,
                method="BFGS",
                options={"gtol": 1e-9},
            )
            for start in _many_starts(Y)
        ]
        # A search may give up half-way: the gradient tells.
        flat = [end.x for end in ends if np.abs(end.jac).max() < 1e-6]
        counts.append(len(_different([x for x in flat if _is_valley(x, Y, beta)], 1e-3)))
    return np.array(counts)


def _census_by_random_starts(Y, betas):
    """Throw 300 points among the centres, then let a clustering do the merging."""
    starts = np.random.default_rng(7).dirichlet(np.ones(len(Y)), size=300) @ Y
    counts = np.empty(len(betas), dtype=int)
    for k, beta in enumerate(betas):
        ends = _settle_all(starts + 1e-6, Y, beta)
        ends = np.array([x for x in ends if _is_valley(x, Y, beta)])
        counts[k] = fcluster(linkage(ends), 1e-3, criterion="distance").max()
    return counts


def _census_by_roots(Y, betas):
    """Solve for the flat points, near where 30 hops lead, and keep those curved upwards."""
    counts = []
    for beta in betas:
        near = _different(_settle_all(_many_starts(Y), Y, beta, hops=30), 1e-3)
        roots = [root(lambda x, b=beta: x - _hop_all(x[None], Y, b)[0], x, tol=1e-12) for x in near]
        flat = [r.x for r in roots if np.abs(r.x - _hop_all(r.x[None], Y, beta)[0]).max() < 1e-9]
        counts.append(_count(flat, Y, beta))
    return np.array(counts, dtype=np.int32)


def _census_by_count_minima(Y, betas):
    return np.array([lesson_7.count_minima(Y, b, _many_starts(Y)) for b in betas], dtype=float)


def _census_by_kicks(Y, betas):
    """Call a point a valley when it is found again from all sides, in any direction."""
    counts = np.zeros(len(betas), dtype=int)
    kicks = 1e-3 * np.random.default_rng(3).normal(size=(6, Y.shape[1]))
    for k, beta in enumerate(betas):
        for x in _different(_settle_all(_many_starts(Y), Y, beta)):
            back = _settle_all(x + kicks, Y, beta)
            counts[k] += bool(np.abs(back - x).max() < 1e-5)
    return counts


def _census_case(name, Y, *betas):
    return Case(name, {"Y": np.array(Y, dtype=float), "betas": np.array(betas, dtype=float)})


def _two_triangles(height):
    triangle = PRESETS["equilateral"].Y
    return np.vstack([np.column_stack([triangle, np.full(3, z)]) for z in (height, -height)])


def _turned(Y, degrees):
    angle = np.radians(degrees)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    return Y @ turn


_RNG = np.random.default_rng(2601)
_FIVE, _FOUR, _SIX = (_RNG.normal(size=shape) for shape in ((5, 2), (4, 3), (6, 2)))
_SIMPLEX = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / np.sqrt(3)
_RAISED = np.column_stack([0.75 * _turned(PRESETS["equilateral"].Y, 20), np.full(3, 0.5)])

CENSUS = Exercise(
    name="valley_census",
    lesson=LESSON,
    points=3.0,
    expects="for each beta how many places are flat and curve upwards, counting none twice",
    reference=valley_census,
    examples=(
        _census_case("pair", PRESETS["pair"].Y, 3.25, 5.0),
        _census_case("triangle", PRESETS["equilateral"].Y, 1.9, 3.0),
        _census_case("unequal pair", PRESETS["unequal pair"].Y, 2.5, 3.25),
        _census_case("shadow", PRESETS["shadow"].Y, 1000.0),
        _census_case("B", B.Y, 16.0, 0.5),
        _census_case("two triangles", _two_triangles(1.5), 1.9),
        _census_case("one centre", C.Y, 4.0),
        _census_case("oblique pair", [[0.5, 0.5], [-0.5, -0.5]], 3.0),
        _census_case("close pair", [[0.03, -0.04], [-0.03, 0.04]], 800.0),
        # Close to a change, where walks take thousands of hops.
        _census_case("pair about to split", PRESETS["pair"].Y, 3.98),
        _census_case("triangle about to lose one", PRESETS["equilateral"].Y, 1.98),
    ),
    groups=(
        Group(
            "ordinary",
            "fewer valleys than centres, or as many",
            0.5,
            (
                _census_case("wider pair", 1.5 * PRESETS["pair"].Y, 1.5, 1.77, 2.25),
                _census_case("far pair", PRESETS["far pair"].Y, 3.5, 5.0),
                _census_case("turned pair", _turned(1.5 * PRESETS["pair"].Y, 50), 2.5),
                _census_case("fold", PRESETS["fold"].Y, 7.0, 9.0),
                _census_case("five centres", _FIVE, 0.25, 8.0),
                _census_case("four centres", _FOUR, 0.125, 4.0),
            ),
        ),
        Group(
            "more",
            "more valleys than centres",
            0.2,
            (
                _census_case("raised triangle", _RAISED, 1.9 / 0.75**2, 1.98 / 0.75**2),
                _census_case("simplex", _SIMPLEX, 2.0, 2.7, 3.5),
                _census_case("other two triangles", _two_triangles(2.0), 1.9),
            ),
        ),
        Group(
            "extreme",
            "very cold and very hot",
            0.15,
            (_census_case("six centres", 3 * _SIX, 200.0, 2.0**-20),),
        ),
        Group(
            "edges",
            "edge shapes",
            0.15,
            (
                _census_case("one centre", [[-0.5, 2.0, 1.0]], 0.5, 64.0),
                _census_case("twins", D.Y, 0.5, 4.0),
                _census_case("one dimension", [[-1.0], [1.25], [0.25]], 0.5, 16.0),
                _census_case("close pair", [[0.02, 0.03], [-0.02, -0.03]], 1500.0),
                Case("whole numbers", {"Y": np.array([[2, 0], [-2, 0]]), "betas": np.array([1])}),
            ),
        ),
    ),
    properties=("finds_one_valley_when_hot",),
    misconceptions=(
        Misconception(
            "counts-components",
            "A component is not a valley: how many valleys are left when beta is small?",
            lambda Y, betas: np.full(len(betas), len(Y)),
        ),
        Misconception(
            "cold-limit",
            "That is the limit beta → infinity only: how does the count depend on beta?",
            _census_when_cold,
        ),
        Misconception(
            "pair-rule",
            "1/r^2 is a rule for two centres of equal length, and for nothing else.",
            _census_by_pair_rule,
        ),
        Misconception(
            "starts-at-centres-only",
            "A valley can lie where no centre is: where else do you start to search?",
            _census_from(lambda Y: Y),
        ),
        Misconception(
            "starts-at-centres-and-mean",
            "A valley can lie between a few of the centres: start between any two and any three.",
            _census_from(_few_starts),
        ),
        Misconception(
            "counts-saddles",
            "A flat point can be a saddle: is the curvature positive in every direction?",
            _census_of_flat_points,
        ),
        Misconception(
            "counts-all-flat-points",
            "A flat point can be a saddle: is the curvature positive in every direction?",
            _census_by_curvature(lambda matrix: True),
        ),
        Misconception(
            "curvature-along-the-axes",
            "A direction need not be an axis: are all eigenvalues positive, not the diagonal only?",
            _census_by_curvature(lambda matrix: (np.diag(matrix) > 0).all()),
        ),
        Misconception(
            "determinant",
            "Two negative curvatures have a positive product: look at each eigenvalue.",
            _census_by_curvature(lambda matrix: np.linalg.det(matrix) > 0),
        ),
        Misconception(
            "trace",
            "A large curvature can hide a negative one in the sum: look at each eigenvalue.",
            _census_by_curvature(lambda matrix: np.trace(matrix) > 0),
        ),
        Misconception(
            "merges-too-far",
            "Two valleys can be nearer to each other than that: how far apart do two walks into "
            "one valley end?",
            _census_of_far_places,
        ),
        Misconception(
            "counts-searches",
            "Two searches can end in one valley: count places, not searches.",
            _census_of_searches,
        ),
        Misconception(
            "stops-too-early",
            "How long is the gradient where your searches stop?",
            _census_in_a_hurry(_few_starts, 10),
        ),
        Misconception(
            "unfinished-after-100",
            "Unfinished walks into one valley count twice: how long is a step where yours stop?",
            _census_in_a_hurry(_many_starts, 100),
        ),
        Misconception(
            "unfinished-after-500",
            "Unfinished walks into one valley count twice: how long is a step where yours stop?",
            _census_in_a_hurry(_many_starts, 500),
        ),
        Misconception(
            "stops-at-1e-4",
            "Unfinished walks into one valley count twice: stop when a step is far shorter than "
            "what you take for the same place.",
            _census_of_long_steps,
        ),
        Misconception(
            "one-count",
            "One count per beta.",
            lambda Y, betas: int(valley_census(Y, betas[:1])[0]),
        ),
    ),
    alternatives=(
        Alternative("minimize", _census_by_minimize),
        Alternative("random-starts", _census_by_random_starts),
        Alternative("roots", _census_by_roots),
        Alternative("count-minima", _census_by_count_minima),
        Alternative("kicks", _census_by_kicks),
        Alternative("backwards", lambda Y, betas: valley_census(Y, betas[::-1])[::-1]),
        Alternative("callable-object", CalledObject(valley_census)),
    ),
)

EXERCISES = (ENERGY, LOG_WEIGHTS, ENERGY_GMM, POSTERIOR, LOG_DENSITY, CENSUS)
