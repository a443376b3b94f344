"""Lesson 01: what each exercise asks, the wrong answers it knows, right answers of other forms."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.special import logsumexp
from scipy.special import softmax as scipy_softmax

from autograder.exercise import Alternative, Exercise, Group, Misconception
from autograder.exercises._cases import (
    SOFTMAX_PUBLIC,
    landscape_case,
    random_landscape,
    softmax_groups,
)
from autograder.reference import lse_gradient as ref
from autograder.reference.fixtures import FIXTURES, A, B, C, G, Landscape
from hopping.cases import Case, Function

LESSON = "01_lse_gradient"


def _naive_exp(xi, Y, beta):
    return np.exp(beta * (Y @ xi))


# --- lse ----------------------------------------------------------------------------------------


def _lse_shift_forgotten(xi, Y, beta):
    u = beta * (Y @ xi)
    return np.log(np.exp(u - u.max()).sum()) / beta


def _lse_shift_in_other_units(xi, Y, beta):
    u = beta * (Y @ xi)
    return u.max() + np.log(np.exp(u - u.max()).sum()) / beta


def _lse_absolute_shift(xi, Y, beta):
    u = beta * (Y @ xi)
    return (abs(u.max()) + np.log(np.exp(u - u.max()).sum())) / beta


def _lse_far_below(xi, Y, beta):
    u = beta * (Y @ xi)
    top = np.abs(u).max()
    return (top + np.log(np.exp(u - top).sum())) / beta


def _lse_of_mean_shift(xi, Y, beta):
    u = beta * (Y @ xi)
    return (u.mean() + np.log(np.exp(u - u.mean()).sum())) / beta


def _lse_max_taken_off(xi, Y, beta):
    u = beta * (Y @ xi)
    return (np.log(np.exp(u - u.max()).sum()) - u.max()) / beta


def _lse_or_max(xi, Y, beta):
    naive = np.log(_naive_exp(xi, Y, beta).sum()) / beta
    return naive if np.isfinite(naive) else np.max(Y @ xi)


def _lse_of_heavy_tokens(xi, Y, beta):
    u = beta * (Y @ xi)
    kept = u[u > u.max() - 14]
    return logsumexp(kept) / beta


def _lse_by_loop(xi, Y, beta):
    scores = [sum(float(a) * float(b) for a, b in zip(row, xi, strict=True)) for row in Y]
    top = max(scores)
    total = 0.0
    for score in scores:
        total += np.exp(beta * (score - top))
    return float(top + np.log(total) / beta)


def _lse_by_pairs(xi, Y, beta):
    return np.logaddexp.reduce(beta * np.einsum("td,d->t", Y, xi)) / beta


def _lse_by_entropy(xi, Y, beta):
    """Take the value of the maximum over weights that lse is: average score plus entropy."""
    a = scipy_softmax(beta * (Y @ xi))
    a = a[a > 0]
    return scipy_softmax(beta * (Y @ xi)) @ (Y @ xi) - (a * np.log(a)).sum() / beta


class _LseObject:
    """A right answer that is an object with a call."""

    def __call__(self, xi, Y, beta):
        return logsumexp(beta * (Y @ xi)) / beta


def _lse_zero_dimensional(xi, Y, beta):
    return np.array(ref.lse(xi, Y, beta))


def _lse_noisy(xi, Y, beta):
    print("scores", Y @ xi)
    warnings.warn("a warning costs nothing", stacklevel=1)
    return float(ref.lse(xi, Y, beta))


LSE = Exercise(
    name="lse",
    lesson=LESSON,
    points=3.0,
    expects="one number in score units, from the largest score up to that score + ln(n)/beta",
    reference=ref.lse,
    examples=SOFTMAX_PUBLIC,
    groups=softmax_groups(101),
    properties=("between_max_and_log_n", "rises_with_the_scores", "gains_log_2_from_doubling"),
    misconceptions=(
        Misconception(
            "no-1-over-beta",
            "Check the units: at one token the answer must be its score, whatever beta is.",
            lambda xi, Y, beta: logsumexp(beta * (Y @ xi)),
        ),
        Misconception(
            "beta-missing-inside",
            "Where does the inverse temperature act before the exponential?",
            lambda xi, Y, beta: logsumexp(Y @ xi) / beta,
        ),
        Misconception(
            "no-max-subtraction",
            "Try scores near 1000: what does exp do?",
            lambda xi, Y, beta: np.log(_naive_exp(xi, Y, beta).sum()) / beta,
        ),
        Misconception(
            "max-not-added-back",
            "What you take out of the sum has to come back after the log.",
            _lse_shift_forgotten,
        ),
        Misconception(
            "max-in-other-units",
            "Which units does the shift have, score or beta*score?",
            _lse_shift_in_other_units,
        ),
        Misconception(
            "mean-instead-of-sum",
            "Two equal tokens: is the answer their score, or more?",
            lambda xi, Y, beta: (logsumexp(beta * (Y @ xi)) - np.log(len(Y))) / beta,
        ),
        Misconception(
            "hard-max",
            "That is the limit beta → infinity only.",
            lambda xi, Y, beta: np.max(Y @ xi),
        ),
        Misconception(
            "absolute-max",
            "Test with one token of negative score.",
            _lse_absolute_shift,
        ),
        Misconception(
            "shift-by-absolute-max",
            "log(0) when all scores are far below 0: which shift makes the largest exponent 0?",
            _lse_far_below,
        ),
        Misconception(
            "another-shift",
            "Try scores near 1000 of which one is 500 more: which shift makes the largest "
            "exponent 0?",
            _lse_of_mean_shift,
        ),
        Misconception(
            "max-taken-off-twice",
            "What you take out of the sum has to come back after the log: with which sign?",
            _lse_max_taken_off,
        ),
        Misconception(
            "max-where-exp-fails",
            "The maximum is not what exp could not tell you: two equal large scores give more.",
            _lse_or_max,
        ),
        Misconception(
            "beta-ignored",
            "beta enters twice, before the exponential and after the log. Did you use it?",
            lambda xi, Y, beta: logsumexp(Y @ xi),
        ),
        Misconception(
            "temperature",
            "Large beta is cold: does it multiply the scores or divide them?",
            lambda xi, Y, beta: beta * logsumexp(Y @ xi / beta),
        ),
        Misconception(
            "small-terms-dropped",
            "A term of a millionth of the largest is small, but not nothing: keep all terms.",
            _lse_of_heavy_tokens,
        ),
    ),
    alternatives=(
        Alternative("entropy", _lse_by_entropy),
        Alternative(
            "long-double",
            lambda xi, Y, beta: logsumexp(np.longdouble(beta) * (Y @ xi)) / np.longdouble(beta),
        ),
        Alternative("loop", _lse_by_loop),
        Alternative("einsum-logaddexp", _lse_by_pairs),
        Alternative("callable-object", _LseObject()),
        Alternative("zero-dimensional", _lse_zero_dimensional),
        Alternative("prints-and-warns", _lse_noisy),
    ),
)


# --- attention_weights --------------------------------------------------------------------------


def _weights_naive(xi, Y, beta):
    e = _naive_exp(xi, Y, beta)
    return e / e.sum()


def _weights_far_below(xi, Y, beta):
    u = beta * (Y @ xi)
    e = np.exp(u - np.abs(u).max())
    return e / e.sum()


def _weights_of_mean_shift(xi, Y, beta):
    u = beta * (Y @ xi)
    e = np.exp(u - u.mean())
    return e / e.sum()


def _weights_without_small_ones(xi, Y, beta):
    a = scipy_softmax(beta * (Y @ xi))
    return np.where(a < 1e-6, 0.0, a)


def _best_alone(xi, Y, beta):
    return (np.arange(len(Y)) == np.argmax(Y @ xi)).astype(float)


def _weights_over_max(xi, Y, beta):
    u = beta * (Y @ xi)
    return np.exp(u - u.max())


def _weights_over_coordinates(xi, Y, beta):
    return scipy_softmax(beta * (Y * xi).sum(axis=0))


def _weights_mutating(xi, Y, beta):
    Y *= beta
    return scipy_softmax(Y @ xi)


def _weights_by_distance(xi, Y, beta):
    return scipy_softmax(-beta * ((Y - xi) ** 2).sum(axis=1) / 2)


def _weights_by_loop(xi, Y, beta):
    scores = [float(np.dot(row, xi)) for row in Y]
    exponentials = [np.exp(beta * (score - max(scores))) for score in scores]
    return np.array([e / sum(exponentials) for e in exponentials])


def _weights_from_lse(xi, Y, beta):
    u = beta * np.einsum("td,d->t", Y, xi)
    return np.exp(u - logsumexp(u))


def _weights_by_ratio(xi, Y, beta):
    s = Y @ xi
    with np.errstate(over="ignore"):
        return 1 / np.exp(beta * (s[None, :] - s[:, None])).sum(axis=1)


WEIGHTS = Exercise(
    name="attention_weights",
    lesson=LESSON,
    points=3.0,
    expects="an array with one weight per token, none negative, together 1",
    reference=ref.attention_weights,
    examples=SOFTMAX_PUBLIC,
    groups=softmax_groups(201),
    properties=(
        "is_a_distribution",
        "ignores_a_common_shift",
        "has_exponential_ratios",
        "trades_beta_for_the_query",
    ),
    misconceptions=(
        Misconception("no-max-subtraction", "nan at large beta: what overflows?", _weights_naive),
        Misconception(
            "beta-forgotten",
            "Sharpen: what should happen to the weights when beta grows?",
            lambda xi, Y, beta: scipy_softmax(Y @ xi),
        ),
        Misconception(
            "divides-by-beta",
            "Is large beta hot or cold?",
            lambda xi, Y, beta: scipy_softmax(Y @ xi / beta),
        ),
        Misconception("normalised-by-max", "What must the weights add up to?", _weights_over_max),
        Misconception(
            "root-d-hard-coded",
            "beta is an argument.",
            lambda xi, Y, beta: scipy_softmax(Y @ xi / np.sqrt(len(xi))),
        ),
        Misconception(
            "softmax-over-coordinates",
            "How many weights should there be: one per token or one per coordinate?",
            _weights_over_coordinates,
        ),
        Misconception("mutates-Y", "Compare Y before and after the call.", _weights_mutating),
        Misconception(
            "distance-scores",
            "Scores are inner products; tokens differ in length.",
            _weights_by_distance,
        ),
        Misconception(
            "returns-a-list",
            "Which type and shape does the docstring promise?",
            lambda xi, Y, beta: scipy_softmax(beta * (Y @ xi)).tolist(),
        ),
        Misconception(
            "shift-by-absolute-max",
            "0/0 when all scores are far below 0: which shift makes the largest exponent 0?",
            _weights_far_below,
        ),
        Misconception(
            "another-shift",
            "nan at large beta: which shift makes the largest exponent 0?",
            _weights_of_mean_shift,
        ),
        Misconception("best-token-only", "That is the limit beta → infinity only.", _best_alone),
        Misconception(
            "small-weights-dropped",
            "A weight of a millionth is small, but not nothing: keep all weights.",
            _weights_without_small_ones,
        ),
    ),
    alternatives=(
        Alternative(
            "long-double",
            lambda xi, Y, beta: scipy_softmax(np.longdouble(beta) * (Y @ xi)),
        ),
        Alternative("masked", lambda xi, Y, beta: np.ma.array(scipy_softmax(beta * (Y @ xi)))),
        Alternative("loop", _weights_by_loop),
        Alternative("scipy", lambda xi, Y, beta: scipy_softmax(beta * np.inner(Y, xi))),
        Alternative("from-lse", _weights_from_lse),
        Alternative("one-over-sum-of-ratios", _weights_by_ratio),
    ),
)


# --- lse_grad -----------------------------------------------------------------------------------


def _grad_unnormalised(xi, Y, beta):
    return _weights_over_max(xi, Y, beta) @ Y


def _grad_overflowing(xi, Y, beta):
    e = _naive_exp(xi, Y, beta)
    return e @ Y / e.sum()


def _grad_in_whole_numbers(xi, Y, beta):
    gradient = np.zeros_like(Y[0])
    gradient[:] = ref.lse_grad(xi, Y, beta)
    return gradient


def _grad_by_loop(xi, Y, beta):
    gradient = np.zeros(Y.shape[1])
    for weight, token in zip(ref.attention_weights(xi, Y, beta), Y, strict=True):
        gradient = gradient + weight * token
    return gradient


def _grad_by_complex_step(xi, Y, beta):
    # The complex step is exact to rounding; finite differences would not be.
    return ref.complex_step_grad(lambda x: ref.lse(x, Y, beta), xi)


GRAD = Exercise(
    name="lse_grad",
    lesson=LESSON,
    points=3.0,
    expects="an array like xi: a point among the tokens, each pulling with its weight",
    reference=ref.lse_grad,
    examples=SOFTMAX_PUBLIC,
    groups=softmax_groups(301),
    properties=(
        "lies_in_the_hull",
        "is_the_token_when_alone",
        "trades_beta_for_the_query",
        "ignores_doubled_tokens",
    ),
    misconceptions=(
        Misconception(
            "beta-left-over",
            "beta enters twice; follow both.",
            lambda xi, Y, beta: beta * ref.lse_grad(xi, Y, beta),
        ),
        Misconception(
            "divides-by-beta",
            "beta enters twice; follow both.",
            lambda xi, Y, beta: ref.lse_grad(xi, Y, beta) / beta,
        ),
        Misconception(
            "unweighted-mean", "Which tokens count more?", lambda xi, Y, beta: Y.mean(axis=0)
        ),
        Misconception(
            "unnormalised-weights",
            "Where must the result lie relative to the tokens?",
            _grad_unnormalised,
        ),
        Misconception(
            "best-token-only",
            "That is the limit, not the gradient.",
            lambda xi, Y, beta: Y[np.argmax(Y @ xi)].copy(),
        ),
        Misconception(
            "weighted-sum-of-xi",
            "Differentiate with respect to xi: which factor remains?",
            lambda xi, Y, beta: ref.attention_weights(xi, Y, beta).sum() * xi,
        ),
        Misconception(
            "weights-on-the-wrong-side",
            "Rows are tokens: which side do the weights go?",
            lambda xi, Y, beta: Y @ ref.attention_weights(xi, Y, beta),
        ),
        Misconception(
            "shape-1-d",
            "A query is a 1-D array, and so is its gradient.",
            lambda xi, Y, beta: ref.lse_grad(xi, Y, beta)[None, :],
        ),
        Misconception("overflow", "nan at large beta: which exp overflowed?", _grad_overflowing),
        Misconception(
            "beta-forgotten",
            "The weights become sharper when beta grows: which numbers does it multiply?",
            lambda xi, Y, beta: ref.lse_grad(xi, Y, 1.0),
        ),
        Misconception(
            "cut-to-whole-numbers",
            "Which type has the array that you fill, when Y holds whole numbers?",
            _grad_in_whole_numbers,
        ),
        Misconception(
            "energy-gradient",
            "xi itself is no part of it: which terms of lse depend on the query?",
            lambda xi, Y, beta: xi - ref.lse_grad(xi, Y, beta),
        ),
    ),
    alternatives=(
        Alternative("loop", _grad_by_loop),
        Alternative(
            "einsum",
            lambda xi, Y, beta: np.einsum("t,td->d", ref.attention_weights(xi, Y, beta), Y),
        ),
        Alternative(
            "average",
            lambda xi, Y, beta: np.average(Y, axis=0, weights=_weights_by_loop(xi, Y, beta)),
        ),
        Alternative("complex-step", _grad_by_complex_step),
        Alternative(
            "long-double",
            lambda xi, Y, beta: scipy_softmax(np.longdouble(beta) * (Y @ xi)) @ Y,
        ),
    ),
)


# --- fd_grad ------------------------------------------------------------------------------------


def _steps(xi, h):
    return h * np.eye(len(xi))


def _fd_forward(f, xi, h=1e-5):
    return np.array([(f(xi + e) - f(xi)) / h for e in _steps(xi, h)])


def _fd_undivided(f, xi, h=1e-5):
    return np.array([(f(xi + e) - f(xi - e)) / h for e in _steps(xi, h)])


def _fd_all_at_once(f, xi, h=1e-5):
    return np.full(len(xi), (f(xi + h) - f(xi - h)) / (2 * h))


def _fd_accumulating(f, xi, h=1e-5):
    gradient = np.zeros(len(xi))
    for j in range(len(xi)):
        xi[j] += h
        above = f(xi)
        xi[j] -= 2 * h
        gradient[j] = (above - f(xi)) / (2 * h)
    return gradient


def _fd_of_precedence(f, xi, h=1e-5):
    return np.array([(f(xi + e) - f(xi - e)) / 2 * h for e in _steps(xi, h)])


def _fd_backward(f, xi, h=1e-5):
    return np.array([(f(xi) - f(xi - e)) / h for e in _steps(xi, h)])


def _fd_of_half_steps(f, xi, h=1e-5):
    return np.array([(f(xi + e / 2) - f(xi - e / 2)) / h for e in _steps(xi, h)])


def _fd_of_relative_steps(f, xi, h=1e-5):
    return np.array([(f(xi + e) - f(xi - e)) / (2 * e.sum()) for e in h * np.diag(xi)])


def _fd_dividing_by_another_h(f, xi, h=1e-5):
    return np.array([(f(xi + e) - f(xi - e)) / 2e-5 for e in _steps(xi, h)])


def _fd_stepping_by_another_h(f, xi, h=1e-5):
    return np.array([(f(xi + e) - f(xi - e)) / (2 * h) for e in _steps(xi, 1e-5)])


def _fd_accumulating_in_a_copy(f, xi, h=1e-5):
    return _fd_accumulating(f, np.array(xi, dtype=float), h)


def _fd_step_not_reset(f, xi, h=1e-5):
    gradient, step = np.zeros(len(xi)), np.zeros(len(xi))
    for j in range(len(xi)):
        step[j] = h
        gradient[j] = (f(xi + step) - f(xi - step)) / (2 * h)
    return gradient


def _fd_two_names(f, xi, h=1e-5):
    gradient = np.zeros(len(xi))
    for j in range(len(xi)):
        right = left = xi
        right[j] = right[j] + h
        left[j] = left[j] - h
        gradient[j] = (f(right) - f(left)) / (2 * h)
    return gradient


def _fd_all_points_at_once(f, xi, h=1e-5):
    return (f(xi + _steps(xi, h)) - f(xi - _steps(xi, h))) / (2 * h)


def _fd_moving_in_whole_numbers(f, xi, h=1e-5):
    gradient = np.zeros(len(xi))
    for j in range(len(xi)):
        right, left = xi.copy(), xi.copy()
        right[j] += h
        left[j] -= h
        gradient[j] = (f(right) - f(left)) / (2 * h)
    return gradient


def _fd_stepping_in_whole_numbers(f, xi, h=1e-5):
    gradient = np.zeros(len(xi))
    for j in range(len(xi)):
        step = np.zeros_like(xi)
        step[j] = h
        gradient[j] = (f(xi + step) - f(xi - step)) / (2 * h)
    return gradient


def _fd_in_place(f, xi, h=1e-5):
    x = np.array(xi, dtype=float)
    gradient = np.empty_like(x)
    for j, middle in enumerate(x):
        x[j] = middle + h
        above = f(x)
        x[j] = middle - h
        gradient[j] = (above - f(x)) / (2 * h)
        x[j] = middle
    return gradient


def _fd_all_points_first(f, xi, h=1e-5):
    points = np.concatenate([xi + _steps(xi, h), xi - _steps(xi, h)])
    above, below = np.split(np.array([f(point) for point in points]), 2)
    return (above - below) / (2 * h)


def _fd_with_real_width(f, xi, h=1e-5):
    columns = []
    for e in _steps(xi, h):
        right, left = xi + e, xi - e
        columns.append((f(right) - f(left)) / (right - left).sum())
    return np.array(columns)


def _at(landscape, function=ref.lse):
    return partial(function, Y=landscape.Y, beta=landscape.beta)


def _energy(xi, Y, beta):
    return xi @ xi / 2 - ref.lse(xi, Y, beta)


def _fd_case(name, f, xi, **h):
    return Case(name, {"f": f, "xi": np.array(xi), **h})


def _fd_forgetting_its_argument(f, xi, h=1e-5):
    return ref.fd_grad(f, xi, 1e-5)


def _fd_in_whole_numbers(f, xi, h=1e-5):
    gradient = np.zeros_like(xi)
    for j, e in enumerate(_steps(xi, h)):
        gradient[j] = (f(xi + e) - f(xi - e)) / (2 * h)
    return gradient


_RNG = np.random.default_rng(401)
_FAR = random_landscape(_RNG, 5, 4, 1.3)

FD_GRAD = Exercise(
    name="fd_grad",
    lesson=LESSON,
    points=3.0,
    expects="an array like xi: the difference quotient, with the h that was given, for each entry",
    reference=ref.fd_grad,
    examples=(
        _fd_case("product", Function("product"), [1.0, 2.0]),
        _fd_case("sines", Function("sines"), [0.25, -0.75, 0.5]),
        _fd_case("exponential", Function("exponential"), [0.5, 0.25]),
        _fd_case("larger values", Function("product"), [30.0, 2.0]),
        _fd_case("long step", Function("sines"), [0.5, 0.25], h=0.5),
        _fd_case("whole numbers", Function("sines"), [1, -2]),
    ),
    groups=(
        Group(
            "ordinary",
            "ordinary functions",
            0.6,
            (
                _fd_case("lse A", _at(A), A.xi),
                _fd_case("lse far", _at(_FAR), _FAR.xi),
                _fd_case("sines", Function("sines"), [0.5, -0.25]),
            ),
        ),
        Group(
            "energy",
            "an energy with a bowl",
            0.25,
            (_fd_case("energy B", _at(B, _energy), B.xi),),
        ),
        Group(
            "edges",
            "edge shapes",
            0.15,
            (
                _fd_case("one dimension", _at(G), G.xi),
                _fd_case("a line", _at(C), C.xi),
                _fd_case("many coordinates", lambda x: float(np.cos(x).sum()), np.arange(6) / 4),
                _fd_case("long step", Function("sines"), [0.75, -0.5], h=0.25),
                _fd_case("whole numbers", _at(A), [1, 2]),
            ),
        ),
    ),
    properties=("differentiates_a_line",),
    misconceptions=(
        Misconception(
            "forward-difference", "Error shrinks only linearly with h: use both sides.", _fd_forward
        ),
        Misconception("divides-by-h", "How far apart are the two points?", _fd_undivided),
        Misconception("all-coordinates-at-once", "One coordinate at a time.", _fd_all_at_once),
        Misconception(
            "sign-flipped",
            "f(x+h) minus f(x-h), in that order.",
            lambda f, xi, h=1e-5: -ref.fd_grad(f, xi, h),
        ),
        Misconception(
            "perturbation-accumulates",
            "Is x restored after each coordinate? Work on a copy.",
            _fd_accumulating,
        ),
        Misconception(
            "h-too-small",
            "Rounding error grows like 1/h.",
            lambda f, xi, h=1e-12: ref.fd_grad(f, xi, h),
        ),
        Misconception(
            "h-a-little-too-small",
            "Rounding error grows like 1/h.",
            lambda f, xi, h=1e-8: ref.fd_grad(f, xi, h),
        ),
        Misconception(
            "h-too-large",
            "Truncation error grows like h squared.",
            lambda f, xi, h=1e-2: ref.fd_grad(f, xi, h),
        ),
        Misconception("ignores-h", "h is an argument.", _fd_forgetting_its_argument),
        Misconception(
            "cut-to-whole-numbers",
            "Which type has the array that you fill, when xi holds whole numbers?",
            _fd_in_whole_numbers,
        ),
        Misconception(
            "moves-in-whole-numbers",
            "An array of whole numbers cannot move by h: copy xi as floats.",
            _fd_moving_in_whole_numbers,
        ),
        Misconception(
            "steps-in-whole-numbers",
            "A step in an array of whole numbers is 0: which type has zeros_like, when xi has it?",
            _fd_stepping_in_whole_numbers,
        ),
        Misconception("precedence", "Python reads a / 2 * h as (a / 2) * h.", _fd_of_precedence),
        Misconception(
            "backward-difference",
            "Error shrinks only linearly with h: use both sides.",
            _fd_backward,
        ),
        Misconception(
            "half-steps",
            "How far is each of the two points from xi: h, or half of it?",
            _fd_of_half_steps,
        ),
        Misconception(
            "relative-steps",
            "h is the step itself, not a share of the coordinate, which may be 0.",
            _fd_of_relative_steps,
        ),
        Misconception(
            "divides-by-another-h",
            "h stands in the formula twice: as the step, and below the line.",
            _fd_dividing_by_another_h,
        ),
        Misconception(
            "steps-by-another-h",
            "h stands in the formula twice: as the step, and below the line.",
            _fd_stepping_by_another_h,
        ),
        Misconception(
            "perturbation-accumulates-in-a-copy",
            "Is your copy back at xi before the next coordinate moves?",
            _fd_accumulating_in_a_copy,
        ),
        Misconception(
            "step-not-reset",
            "One coordinate at a time: is the step of the coordinate before still there?",
            _fd_step_not_reset,
        ),
        Misconception(
            "two-names",
            "x = xi is a second name for the same array: what moves up also moves down. Copy it.",
            _fd_two_names,
        ),
        Misconception(
            "all-points-at-once",
            "f takes one point of shape (d,): call it once for each point.",
            _fd_all_points_at_once,
        ),
    ),
    alternatives=(
        Alternative("in-place-and-restored", _fd_in_place),
        Alternative("all-points-first", _fd_all_points_first),
        Alternative("real-width", _fd_with_real_width),
        Alternative(
            "comprehension",
            lambda f, xi, h=1e-5: np.array(
                [f(xi + e) / (2 * h) - f(xi - e) / (2 * h) for e in _steps(xi, h)]
            ),
        ),
    ),
    tolerance=1e-8,
)


# --- lse_hessian --------------------------------------------------------------------------------


def _covariance(xi, Y, beta, centre):
    spread = Y - centre
    return (spread.T * ref.attention_weights(xi, Y, beta)) @ spread


def _hessian_by_loop(xi, Y, beta):
    a = ref.attention_weights(xi, Y, beta)
    mean = a @ Y
    return beta * sum(
        weight * np.outer(token - mean, token - mean) for weight, token in zip(a, Y, strict=True)
    )


def _hessian_by_cov(xi, Y, beta):
    a = ref.attention_weights(xi, Y, beta)
    return beta * np.atleast_2d(np.cov(Y.T, aweights=a, ddof=0))


def _hessian_by_softmax_jacobian(xi, Y, beta):
    a = ref.attention_weights(xi, Y, beta)
    centred = Y - a @ Y
    return beta * centred.T @ (np.diag(a) - np.outer(a, a)) @ centred


def _hessian_by_einsum(xi, Y, beta):
    a = ref.attention_weights(xi, Y, beta)
    spread = Y - a @ Y
    return beta * np.einsum("t,ti,tj->ij", a, spread, spread)


def _token_by_token(xi, Y, beta):
    a = ref.attention_weights(xi, Y, beta)
    return beta * (np.diag(a) - np.outer(a, a))


def _far_tokens(distance):
    Y = np.array([[1.0, 0.5], [-0.5, 1.25], [0.25, -1.0]]) + distance
    return Landscape(np.array([0.5, -0.5]), Y, 1.0)


_HESSIAN_GROUPS = tuple(
    replace(group, cases=(*group.cases, landscape_case("far away", _far_tokens(4e5))))
    if group.name == "extreme"
    else group
    for group in softmax_groups(501)
)


def _hessian_overflowing(xi, Y, beta):
    e = _naive_exp(xi, Y, beta)
    spread = Y - e @ Y / e.sum()
    return beta * (spread.T * (e / e.sum())) @ spread


def _hessian_of_plain_average(xi, Y, beta):
    spread = Y - ref.lse_grad(xi, Y, beta)
    return beta * spread.T @ spread / len(Y)


def _hessian_by_pairs(xi, Y, beta):
    a, gaps = ref.attention_weights(xi, Y, beta), Y[:, None] - Y[None]
    return beta / 2 * np.einsum("s,t,sti,stj->ij", a, a, gaps, gaps)


def _hessian_from_the_first_token(xi, Y, beta):
    """Take moments about one of the tokens, where nothing cancels."""
    a, near = ref.attention_weights(xi, Y, beta), Y - Y[0]
    mean = a @ near
    return beta * ((near.T * a) @ near - np.outer(mean, mean))


HESSIAN = Exercise(
    name="lse_hessian",
    lesson=LESSON,
    points=3.0,
    expects="a symmetric (d, d) array without negative eigenvalues; 0 where one token is alone",
    reference=ref.lse_hessian,
    examples=(*SOFTMAX_PUBLIC, landscape_case("far away", _far_tokens(3e5))),
    groups=_HESSIAN_GROUPS,
    properties=("is_a_covariance", "is_plain_covariance_at_zero"),
    misconceptions=(
        Misconception(
            "beta-missing",
            "How sharply does the softmax turn when beta doubles?",
            lambda xi, Y, beta: ref.lse_hessian(xi, Y, beta) / beta,
        ),
        Misconception(
            "beta-squared",
            "lse carries a 1/beta.",
            lambda xi, Y, beta: beta * ref.lse_hessian(xi, Y, beta),
        ),
        Misconception(
            "uncentred",
            "One token alone gives a straight line: its curvature is 0.",
            lambda xi, Y, beta: beta * _covariance(xi, Y, beta, 0.0),
        ),
        Misconception(
            "centred-at-xi",
            "Covariance is taken about the weighted mean.",
            lambda xi, Y, beta: beta * _covariance(xi, Y, beta, xi),
        ),
        Misconception(
            "centred-at-the-plain-mean",
            "Which mean belongs to these weights?",
            lambda xi, Y, beta: beta * _covariance(xi, Y, beta, Y.mean(axis=0)),
        ),
        Misconception(
            "negative", "lse is convex.", lambda xi, Y, beta: -ref.lse_hessian(xi, Y, beta)
        ),
        Misconception("token-by-token", "The Hessian lives in xi-space: (d, d).", _token_by_token),
        Misconception("overflow", "nan at large beta: which exp overflowed?", _hessian_overflowing),
        Misconception(
            "beta-forgotten-in-the-weights",
            "beta enters twice: in front, and in the weights.",
            lambda xi, Y, beta: beta * ref.lse_hessian(xi, Y, 1.0),
        ),
        Misconception(
            "beta-ignored",
            "beta enters twice: in front, and in the weights.",
            lambda xi, Y, beta: ref.lse_hessian(xi, Y, 1.0),
        ),
        Misconception(
            "plain-average",
            "The squares are averaged with the weights of their tokens, not evenly.",
            _hessian_of_plain_average,
        ),
        Misconception(
            "plain-covariance",
            "That is right at xi = 0 only: where is the query?",
            lambda xi, Y, beta: beta * np.atleast_2d(np.cov(Y.T, ddof=0)),
        ),
        Misconception(
            "sample-covariance",
            "np.cov corrects for a sample, and this is none: which ddof takes the weights as "
            "they are?",
            lambda xi, Y, beta: (
                beta * np.atleast_2d(np.cov(Y.T, aweights=ref.attention_weights(xi, Y, beta)))
            ),
        ),
        Misconception(
            "variances-only",
            "Off the diagonal stand products of two different coordinates.",
            lambda xi, Y, beta: np.diag(np.diag(ref.lse_hessian(xi, Y, beta))),
        ),
    ),
    alternatives=(
        Alternative("loop", _hessian_by_loop),
        Alternative("np-cov", _hessian_by_cov),
        Alternative("softmax-jacobian", _hessian_by_softmax_jacobian),
        Alternative("einsum", _hessian_by_einsum),
        Alternative("pairs", _hessian_by_pairs),
        Alternative("from-the-first-token", _hessian_from_the_first_token),
    ),
)


# --- gradcheck (the checked part of the mastery project) ----------------------------------------


def _errors(f, grad, xi, steps):
    return [np.abs(ref.fd_grad(f, xi, h) - grad(xi)).max() for h in steps]


_SWEEP = 10.0 ** -np.arange(2, 9)


def _scale(grad, xi):
    return 1 + float(np.abs(grad(xi)).max())


def gradcheck(f, grad, xi):
    """Return whether `grad` is the gradient of `f` at `xi`, by a sweep of step sizes."""
    return bool(min(_errors(f, grad, xi, _SWEEP)) <= 1e-6 * _scale(grad, xi))


def _gradcheck_of_lengths(f, grad, xi):
    lengths = [np.linalg.norm(ref.fd_grad(f, xi, h)) for h in _SWEEP]
    return bool(
        np.abs(np.array(lengths) - np.linalg.norm(grad(xi))).min() < 1e-6 * _scale(grad, xi)
    )


def _gradcheck_purely_relative(f, grad, xi):
    with np.errstate(all="ignore"):
        errors = np.array(_errors(f, grad, xi, _SWEEP)) / np.abs(grad(xi)).max()
    return bool(errors.min() <= 1e-6)


def _close(f, grad, xi):
    return np.isclose(ref.fd_grad(f, xi), grad(xi), rtol=1e-5, atol=1e-6)


def _gradcheck_of_direction(f, grad, xi):
    estimate, claimed = ref.fd_grad(f, xi), grad(xi)
    lengths = np.linalg.norm(estimate) * np.linalg.norm(claimed)
    return bool(estimate @ claimed >= (1 - 1e-6) * lengths)


def _gradcheck_skipping_zeros(f, grad, xi):
    estimate, claimed = ref.fd_grad(f, xi), grad(xi)
    there = claimed != 0
    return bool(np.all(np.abs(estimate[there] / claimed[there] - 1) < 1e-5))


def _gradcheck_signed(f, grad, xi):
    return bool((ref.fd_grad(f, xi) - grad(xi)).max() <= 1e-5 * _scale(grad, xi))


def _gradcheck_of_sums(f, grad, xi):
    return bool(abs((ref.fd_grad(f, xi) - grad(xi)).sum()) <= 1e-5 * _scale(grad, xi))


def _by_complex_step(f, grad, xi):
    # Where f takes complex points this is exact; elsewhere fall back on the sweep.
    try:
        exact = ref.complex_step_grad(f, xi)
    except (TypeError, ValueError):
        return gradcheck(f, grad, xi)
    if not np.any(exact):
        return gradcheck(f, grad, xi)
    return bool(np.allclose(exact, grad(xi), rtol=1e-6, atol=1e-6))


def _by_scipy(f, grad, xi):
    from scipy.optimize import check_grad

    return bool(check_grad(f, grad, xi, epsilon=1e-7) <= 1e-4 * _scale(grad, xi))


def _project_case(name, f, grad, xi):
    return Case(name, {"f": f, "grad": grad, "xi": np.array(xi, dtype=float)})


def _lse_pair(landscape, grad=ref.lse_grad):
    return _at(landscape), _at(landscape, grad)


def _energy_grad(xi, Y, beta):
    return xi - ref.lse_grad(xi, Y, beta)


def _at_beta(landscape, beta):
    return landscape._replace(beta=beta)


def _mutant_case(slug):
    wrong = next(w for w in GRAD.misconceptions if w.slug == slug)
    return _project_case(slug, *_lse_pair(B, wrong.function), B.xi)


def _sign_case():
    return _project_case("sign", _at(A), lambda x: -ref.lse_grad(x, A.Y, A.beta), A.xi)


def _one_coordinate_case():
    def grad(x):
        return ref.lse_grad(x, B.Y, B.beta) + np.array([0.0, 0.0, 1e-3])

    return _project_case("last coordinate", _at(B), grad, B.xi)


def _wrong_in_one(name, change):
    return _project_case(name, _at(B), lambda x: change(ref.lse_grad(x, B.Y, B.beta)), B.xi)


# Each is right in most coordinates, or in its sum and length.
_PARTLY_WRONG = (
    _wrong_in_one("a thousandth off", lambda g: g + np.array([0, 1e-3, 0])),
    _wrong_in_one("first missing", lambda g: g * [0, 1, 1]),
    _wrong_in_one("first too large", lambda g: g + np.array([0.75, 0, 0])),
    _wrong_in_one("reversed", lambda g: g[::-1].copy()),
)

_TRUE_GRADIENTS = tuple(
    _project_case(f"{name} beta {beta}", f, grad, A.xi)
    for beta in (0.1, 1.0, 16.0)
    for name, f, grad in (
        ("lse", *_lse_pair(_at_beta(A, beta))),
        ("energy", _at(_at_beta(A, beta), _energy), _at(_at_beta(A, beta), _energy_grad)),
    )
)

_E = FIXTURES["E"]
_FLAT = _project_case("bottom", lambda x: float(x @ x) / 2, np.copy, np.zeros(3))
_BOWL = _project_case("bowl", lambda x: float(x @ x) / 2, np.copy, [12345.678, -23456.789])

GRADCHECK = Exercise(
    name="gradcheck",
    lesson=LESSON,
    points=3.0,
    expects="True for a gradient that is right in every coordinate, False otherwise",
    reference=gradcheck,
    examples=(
        _project_case("right", Function("sines"), Function("sines_gradient"), [0.25, -0.75, 0.5]),
        _project_case("doubled", Function("sines"), Function("sines_doubled"), [0.25, -0.75, 0.5]),
        _project_case("last", Function("sines"), Function("sines_last_wrong"), [0.25, -0.75, 0.5]),
        _project_case("negated", Function("sines"), Function("sines_negated"), [0.25, -0.75, 0.5]),
        _project_case("slightly off", Function("sines"), Function("sines_off"), [0.25, -0.75, 0.5]),
        _project_case("flat", Function("product"), Function("flat"), [0.0, 0.0]),
        _project_case(
            "large", Function("exponential"), Function("exponential_gradient"), [24.0, 30.0]
        ),
        _project_case(
            "first", Function("sines"), Function("sines_first_wrong"), [0.25, -0.75, 0.5]
        ),
        _project_case(
            "first missing", Function("sines"), Function("sines_first_missing"), [0.25, -0.75, 0.5]
        ),
        _project_case(
            "reversed", Function("sines"), Function("sines_reversed"), [0.25, -0.75, 0.5]
        ),
    ),
    groups=(
        Group("right", "passes right gradients", 0.4, (*_TRUE_GRADIENTS, _FLAT)),
        Group(
            "mutants",
            "fails wrong gradients",
            0.4,
            (
                _mutant_case("beta-left-over"),
                _mutant_case("unweighted-mean"),
                _sign_case(),
                _one_coordinate_case(),
                *_PARTLY_WRONG,
            ),
        ),
        Group(
            "extreme",
            "large values",
            0.2,
            (_project_case("lse E", *_lse_pair(_E), _E.xi), _BOWL),
        ),
    ),
    properties=("tells_gradients_at_a_fresh_place",),
    misconceptions=(
        Misconception(
            "always-passes", "Which gradient would your check refuse?", lambda f, grad, xi: True
        ),
        Misconception(
            "always-fails", "Which gradient would your check accept?", lambda f, grad, xi: False
        ),
        Misconception(
            "first-coordinate-only",
            "A gradient can be right in one coordinate and wrong in another.",
            lambda f, grad, xi: bool(abs(ref.fd_grad(f, xi)[0] - grad(xi)[0]) < 1e-6),
        ),
        Misconception(
            "last-coordinate-only",
            "A gradient can be right in one coordinate and wrong in another.",
            lambda f, grad, xi: bool(_close(f, grad, xi)[-1]),
        ),
        Misconception(
            "any-coordinate",
            "Must one coordinate agree, or every one?",
            lambda f, grad, xi: bool(_close(f, grad, xi).any()),
        ),
        Misconception(
            "inverted",
            "True says that the gradient is right: which way does your comparison point?",
            lambda f, grad, xi: not _close(f, grad, xi).all(),
        ),
        Misconception(
            "signed-errors",
            "An error can be negative, too: look at its size.",
            _gradcheck_signed,
        ),
        Misconception(
            "sum-of-errors",
            "Errors of opposite sign add up to nothing: look at each coordinate's size.",
            _gradcheck_of_sums,
        ),
        Misconception(
            "skips-zeros",
            "A claimed 0 can be wrong, too: what becomes of coordinates that you cannot divide by?",
            _gradcheck_skipping_zeros,
        ),
        Misconception(
            "compares-directions",
            "A gradient twice as long points the same way: is it right?",
            _gradcheck_of_direction,
        ),
        Misconception(
            "too-strict",
            "Even a right gradient differs a little from its estimate: print by how much.",
            lambda f, grad, xi: bool(np.all(ref.fd_grad(f, xi) == grad(xi))),
        ),
        Misconception(
            "compares-lengths",
            "Two vectors of one length can point in opposite directions.",
            _gradcheck_of_lengths,
        ),
        Misconception(
            "too-forgiving",
            "An error of a thousandth is no rounding error.",
            lambda f, grad, xi: bool(min(_errors(f, grad, xi, _SWEEP)) <= 1e-2 * _scale(grad, xi)),
        ),
        Misconception(
            "nothing-for-zero",
            "What do you divide by where the gradient is 0?",
            _gradcheck_purely_relative,
        ),
        Misconception(
            "absolute-tolerance-only",
            "Large values carry larger rounding errors: compare relative to the gradient.",
            lambda f, grad, xi: bool(min(_errors(f, grad, xi, _SWEEP)) < 1e-9),
        ),
    ),
    alternatives=(
        Alternative("complex-step", _by_complex_step),
        Alternative("scipy", _by_scipy),
        Alternative(
            "allclose",
            lambda f, grad, xi: np.allclose(_fd_in_place(f, xi), grad(xi), rtol=1e-5, atol=1e-6),
        ),
        Alternative(
            "numpy-bool",
            lambda f, grad, xi: np.bool_(gradcheck(f, grad, xi)),
        ),
    ),
)

EXERCISES = (LSE, WEIGHTS, GRAD, FD_GRAD, HESSIAN, GRADCHECK)
