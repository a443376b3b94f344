"""Lesson 07: what each exercise asks, the wrong answers it knows, right answers of other forms."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from itertools import accumulate, islice, pairwise, repeat
from typing import NamedTuple

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.linalg import eigh
from scipy.special import logsumexp
from scipy.special import softmax as scipy_softmax

from autograder.exercise import Alternative, Exercise, Group, Misconception
from autograder.exercises._cases import (
    PUBLIC,
    WHOLE,
    CalledObject,
    edge_cases,
    extreme_cases,
    landscape_case,
    landscape_groups,
    noisy,
    ordinary_cases,
    zero_dimensional,
)
from autograder.reference import one_step_vs_settling as ref
from autograder.reference.cccp import cccp_step, energy_grad
from autograder.reference.fixtures import PRESETS, A, B, C, D, G, Landscape
from autograder.reference.gmm_polarization import energy
from autograder.reference.lse_gradient import attention_weights, lse_hessian
from hopping.cases import Case, Function

LESSON = "07_one_step_vs_settling"

TOL, MAX_STEPS = 1e-10, 10_000
_SLOW = Landscape(np.array([0.5]), G.Y, 1.01)
_SLOW_CASE = landscape_case("slow", _SLOW)
_P4 = PRESETS["P4"]


def _hop(x, Y, beta):
    """Hop without the checks at the door, which would cost more than the hop."""
    scores = Y @ x
    weights = np.exp(beta * (scores - scores.max()))
    return weights @ Y / weights.sum()


# --- settle -------------------------------------------------------------------------------------


def _settle_one_step(xi, Y, beta, tol=TOL, max_steps=MAX_STEPS):
    return cccp_step(xi, Y, beta), 1, True


def _settle_50_steps(xi, Y, beta, tol=TOL, max_steps=MAX_STEPS):
    x = xi
    for _ in range(50):
        x = _hop(x, Y, beta)
    return x, 50, True


def _settle_on_energy(xi, Y, beta, tol=TOL, max_steps=MAX_STEPS):
    x, before = xi, energy(xi, Y, beta)
    for step in range(1, max_steps + 1):
        x = _hop(x, Y, beta)
        after = energy(x, Y, beta)
        if abs(after - before) <= tol:
            return x, step, True
        before = after
    return x, max_steps, False


def _settle_by_small_steps(xi, Y, beta, tol=TOL, max_steps=MAX_STEPS):
    x = xi
    for step in range(1, max_steps + 1):
        move = 0.1 * (_hop(x, Y, beta) - x)
        x = x + move
        if np.linalg.norm(move) <= tol:
            return x, step, True
    return x, max_steps, False


def _settle_loosely(xi, Y, beta, tol=TOL, max_steps=MAX_STEPS):
    return ref.settle(xi, Y, beta, 1e-3, max_steps)


def _settle_to_ten_digits(xi, Y, beta, tol=TOL, max_steps=MAX_STEPS):
    return ref.settle(xi, Y, beta, TOL, max_steps)


def _settle_place_before(xi, Y, beta, tol=TOL, max_steps=MAX_STEPS):
    """Make the last hop, and return where it began; at the limit, where it ended."""
    x = xi.copy()
    for step in range(1, max_steps + 1):
        landing = _hop(x, Y, beta)
        if np.linalg.norm(landing - x) <= tol:
            return x, step, True
        x = landing
    return x, max_steps, False


def _settle_place_before_always(xi, Y, beta, tol=TOL, max_steps=MAX_STEPS):
    before, x = xi, xi.copy()
    for step in range(1, max_steps + 1):
        before, x = x, _hop(x, Y, beta)
        if np.linalg.norm(x - before) <= tol:
            return before, step, True
    return before, max_steps, False


def _settle_past_the_limit(xi, Y, beta, tol=TOL, max_steps=MAX_STEPS):
    return ref.settle(xi, Y, beta, tol, max_steps + 1)


def _settle_by_coordinates(xi, Y, beta, tol=TOL, max_steps=MAX_STEPS):
    x = xi.copy()
    for step in range(1, max_steps + 1):
        before, x = x, _hop(x, Y, beta)
        if np.abs(x - before).max() <= tol:
            return x, step, True
    return x, max_steps, False


def _settle_on_a_centre(xi, Y, beta, tol=TOL, max_steps=MAX_STEPS):
    x, steps, converged = ref.settle(xi, Y, beta, tol, max_steps)
    return Y[np.argmax(Y @ x)].copy(), steps, converged


def _settle_in_place(xi, Y, beta, tol=TOL, max_steps=MAX_STEPS):
    x, steps, converged = ref.settle(xi, Y, beta, tol, max_steps)
    xi[:] = x
    return xi, steps, converged


def _settle_always_converged(xi, Y, beta, tol=TOL, max_steps=MAX_STEPS):
    x, steps, _ = ref.settle(xi, Y, beta, tol, max_steps)
    return x, steps, True


def _settle_flag_by_count(xi, Y, beta, tol=TOL, max_steps=MAX_STEPS):
    x, steps, _ = ref.settle(xi, Y, beta, tol, max_steps)
    return x, steps, steps < max_steps


def _settle_shorter_than_tol(xi, Y, beta, tol=TOL, max_steps=MAX_STEPS):
    return ref.settle(xi, Y, beta, np.nextafter(tol, 0), max_steps)


def _settle_cut_off(xi, Y, beta, tol=TOL, max_steps=MAX_STEPS):
    x = xi.copy()
    for step in range(1, max_steps + 1):
        landing = _hop(x, Y, beta)
        moved = np.linalg.norm(landing - x)
        x[:] = landing
        if moved <= tol:
            return x, step, True
    return x, max_steps, False


def _settle_by_recursion(xi, Y, beta, tol=TOL, max_steps=MAX_STEPS):
    """Make half of the hops, then the other half if it takes them."""
    if max_steps == 1:
        x = _hop(xi, Y, beta)
        return x, 1, bool(np.linalg.norm(x - xi) <= tol)
    x, steps, converged = _settle_by_recursion(xi, Y, beta, tol, max_steps // 2)
    if converged:
        return x, steps, True
    x, more, converged = _settle_by_recursion(x, Y, beta, tol, max_steps - max_steps // 2)
    return x, steps + more, converged


class _Walk(NamedTuple):
    x: np.ndarray
    steps: int
    converged: bool


def _settle_one_more(xi, Y, beta, tol=TOL, max_steps=MAX_STEPS):
    """Count the hops from 0, so that the confirming one is not counted."""
    x, count = np.array(xi, dtype=float), 0
    while count < max_steps:
        u = beta * np.inner(Y, x)
        new = np.exp(u - logsumexp(u)) @ Y
        moved = math.dist(new, x)
        x = new
        if moved <= tol:
            return x, count, True
        count += 1
    return x, count, False


def _settle_by_history(xi, Y, beta, tol=TOL, max_steps=MAX_STEPS):
    path = [np.asarray(xi, dtype=float)]
    lengths = [np.inf]
    while lengths[-1] > tol and len(path) <= max_steps:
        path.append(np.einsum("t,td->d", scipy_softmax(beta * (Y @ path[-1])), Y))
        lengths.append(np.sqrt(((path[-1] - path[-2]) ** 2).sum()))
    return path[-1], np.int64(len(path) - 1), np.bool_(lengths[-1] <= tol)


def _settle_by_gradient(xi, Y, beta, tol=TOL, max_steps=MAX_STEPS):
    """Take full steps against the gradient, until it is short."""
    x, steps, length = xi, 0, np.inf
    while length > tol and steps < max_steps:
        g = energy_grad(x, Y, beta)
        x, steps, length = x - g, steps + 1, np.linalg.norm(g)
    return x, steps, bool(length <= tol)


def _settle_by_iterators(xi, Y, beta, tol=TOL, max_steps=MAX_STEPS):
    path = accumulate(repeat(None, max_steps), lambda x, _: _hop(x, Y, beta), initial=xi)
    for steps, (before, x) in enumerate(pairwise(path), start=1):
        if np.linalg.norm(x - before) <= tol:
            return x, steps, True
    return x, steps, False


def _limited(name, landscape, tol=TOL, max_steps=MAX_STEPS):
    return landscape_case(name, landscape, tol=tol, max_steps=max_steps)


_RNG = np.random.default_rng(7101)

SETTLE = Exercise(
    name="settle",
    lesson=LESSON,
    points=3.0,
    expects="(point, hops, converged): a point that the next hop leaves where it is, if converged",
    reference=ref.settle,
    examples=(
        *PUBLIC,
        _SLOW_CASE,
        _limited("flag", Landscape(np.array([0.5]), G.Y, 1.0), max_steps=100),
        _limited("at rest", Landscape(np.zeros(1), G.Y, 2.0), max_steps=1),
        # The last hop is long enough to tell where it began from where it ended, and the longest
        # coordinate is short enough two hops before the length is.
        _limited("loose", A._replace(beta=1.1), tol=1e-4),
        landscape_case("A4", A._replace(beta=4.0)),
        landscape_case("G8", G._replace(beta=8.0)),
        # With one token the hop is 0.5 long exactly, by whatever road.
        _limited("at tol", Landscape(np.array([0.5]), np.array([[1.0]]), 2.0), 0.5, 1),
        WHOLE,
    ),
    groups=(
        Group(
            "ordinary",
            "ordinary values",
            0.50,
            (*ordinary_cases(7102), landscape_case("four patterns", _P4)),
        ),
        Group(
            "slow",
            "slow settling, other tolerances, the hop limit",
            0.25,
            (
                landscape_case("below", Landscape(np.array([-0.75]), G.Y, 0.99)),
                landscape_case("above", Landscape(np.array([-0.75]), G.Y, 1.025)),
                _limited("loose", A, tol=1e-4),
                _limited("limit", A._replace(beta=1.25), max_steps=20),
                _limited("one hop", B, max_steps=1),
            ),
        ),
        Group("extreme", "very large and very small exponents", 0.10, extreme_cases(7103)),
        Group(
            "edges",
            "edge shapes, and a query that stays on a saddle",
            0.15,
            (
                *edge_cases(7104),
                landscape_case("saddle", Landscape(np.zeros(1), G.Y, 4.0)),
                _limited("at rest", Landscape(np.zeros(1), G.Y, 4.0), max_steps=1),
                _limited("at tol", Landscape(np.array([1.0]), np.array([[-1.0]]), 0.5), 2.0, 1),
            ),
        ),
    ),
    properties=("stays_where_it_settled",),
    misconceptions=(
        Misconception(
            "one-step",
            "This is one hop; settling goes on. If you have a loop, look at what it compares: "
            "after `before = x`, writing into x changes both.",
            _settle_one_step,
        ),
        Misconception("fifty-steps", "Near a merger 50 steps are far too few.", _settle_50_steps),
        Misconception(
            "stops-on-energy",
            "Energy is flat at the bottom: error goes like its square root.",
            _settle_on_energy,
        ),
        Misconception("small-steps", "Full steps.", _settle_by_small_steps),
        Misconception("tolerance-hard-coded", "tol is an argument.", _settle_loosely),
        Misconception("tolerance-never-used", "tol is an argument.", _settle_to_ten_digits),
        Misconception(
            "place-before-the-last-hop", "Where does the last hop lead?", _settle_place_before
        ),
        Misconception(
            "largest-coordinate",
            "The length of a hop is Euclidean: it does not depend on the choice of axes.",
            _settle_by_coordinates,
        ),
        Misconception(
            "one-hop-too-many", "max_steps hops in all, not one more.", _settle_past_the_limit
        ),
        Misconception(
            "one-hop-behind",
            "Return the newest place, also when the limit is hit.",
            _settle_place_before_always,
        ),
        Misconception("best-centre", "Minima are only near centres.", _settle_on_a_centre),
        Misconception("mutates-xi", "Copy first.", _settle_in_place),
        Misconception(
            "always-converged",
            "converged must be False when the limit is hit.",
            _settle_always_converged,
        ),
        Misconception(
            "flag-by-the-count",
            "A walk may settle at its last allowed hop: ask how long that hop was, not how many "
            "there were.",
            _settle_flag_by_count,
        ),
        Misconception(
            "shorter-than-tol",
            "A hop of at most tol is short enough: and one of exactly tol?",
            _settle_shorter_than_tol,
        ),
        Misconception(
            "limit-hard-coded",
            "max_steps is an argument.",
            lambda xi, Y, beta, tol=TOL, max_steps=MAX_STEPS: ref.settle(xi, Y, beta, tol, 1000),
        ),
        Misconception(
            "whole-numbers-cut-off",
            "A copy of whole numbers holds whole numbers: what becomes of 0.75 in it?",
            _settle_cut_off,
        ),
    ),
    alternatives=(
        Alternative("counts-from-zero", _settle_one_more),
        Alternative("history", _settle_by_history),
        Alternative("full-gradient-steps", _settle_by_gradient),
        Alternative("recursion", _settle_by_recursion),
        Alternative("named-tuple", lambda *arguments: _Walk(*ref.settle(*arguments))),
        Alternative("iterators", _settle_by_iterators),
        Alternative("callable-object", CalledObject(_settle_by_history)),
        Alternative("prints-and-warns", noisy(ref.settle)),
    ),
    # The newest point, one hop more or less when counting, and the flag.
    tolerance=(2e-8, 1, 0),
)


# --- one_step_gap -------------------------------------------------------------------------------


def _settled(xi, Y, beta):
    return ref.settle(xi, Y, beta)[0]


def _gap_of(compare):
    """Make a gap from the settled point, the landing and the query."""
    return lambda xi, Y, beta: compare(_settled(xi, Y, beta), cccp_step(xi, Y, beta), xi)


def _length(x):
    return float(np.linalg.norm(x))


def _ratio(distance, yardstick):
    return distance / yardstick if distance > 0 else 0.0


def _biggest(x):
    return float(np.abs(x).max())


def _gap_to_second_step(xi, Y, beta):
    landing = cccp_step(xi, Y, beta)
    return _ratio(_length(cccp_step(landing, Y, beta) - landing), _length(landing))


def _gap_after(hops, xi, Y, beta):
    settled, landing = ref.settle(xi, Y, beta, TOL, hops)[0], cccp_step(xi, Y, beta)
    return _ratio(_length(settled - landing), _length(landing))


def _gap_without_origin(xi, Y, beta):
    landing = cccp_step(xi, Y, beta)
    with np.errstate(invalid="ignore"):
        return np.linalg.norm(_settled(xi, Y, beta) - landing) / np.linalg.norm(landing)


def _gap_by_loop(xi, Y, beta):
    landing = x = cccp_step(xi, Y, beta)
    moved = 1.0
    while moved > 1e-12:
        new = _hop(x, Y, beta)
        x, moved = new, math.dist(new, x)
    return 0.0 if math.dist(x, landing) == 0 else math.dist(x, landing) / math.hypot(*landing)


def _gap_by_newton(xi, Y, beta):
    """Settle roughly, then solve for the fixed point with the Jacobian of the hop."""
    x = ref.settle(xi, Y, beta, tol=1e-7)[0]
    for _ in range(6):
        step = np.eye(len(x)) - lse_hessian(x, Y, beta)
        x = x - np.linalg.solve(step, x - cccp_step(x, Y, beta))
    landing = cccp_step(xi, Y, beta)
    return _ratio(np.linalg.norm(x - landing), np.linalg.norm(landing))


def _gap_by_squares(xi, Y, beta):
    landing = scipy_softmax(beta * (Y @ xi)) @ Y
    apart = _settled(landing, Y, beta) - landing
    return np.sqrt(np.einsum("d,d", apart, apart) / max(np.einsum("d,d", landing, landing), 1e-300))


def _gap_by_total(xi, Y, beta):
    """Add up the hops after the first."""
    x = landing = _hop(xi, Y, beta)
    total = np.zeros(len(xi))
    for _ in range(20_000):
        hop = _hop(x, Y, beta) - x
        x, total = x + hop, total + hop
        if np.abs(hop).max() < 1e-12:
            break
    return np.linalg.norm(total) / np.linalg.norm(landing) if landing.any() else 0.0


def _with_slow_and_symmetric(groups):
    """Add to the edges a landing at the origin that stays there, in 2-D, and a long walk."""
    *others, edges = groups
    cross = Landscape(
        np.zeros(2), np.array([[1.5, 0.5], [-0.5, 1.5], [-1.5, -0.5], [0.5, -1.5]]), 2
    )
    more = (
        landscape_case("symmetric", cross),
        landscape_case("slow", Landscape(np.array([-0.75]), G.Y, 1.01)),
    )
    return (*others, replace(edges, cases=(*edges.cases, *more)))


_ORIGIN = landscape_case("origin", G._replace(xi=np.zeros(1)))

ONE_STEP_GAP = Exercise(
    name="one_step_gap",
    lesson=LESSON,
    points=3.0,
    expects="one number without a unit, not negative; 0 where the landing stays where it is",
    reference=ref.one_step_gap,
    examples=(*PUBLIC, _SLOW_CASE, _ORIGIN),
    groups=_with_slow_and_symmetric(landscape_groups(7201)),
    properties=("vanishes_for_one_token", "ignores_doubled_tokens"),
    misconceptions=(
        Misconception(
            "not-relative",
            "Relative to the length of the answer.",
            _gap_of(lambda settled, landing, xi: _length(settled - landing)),
        ),
        Misconception(
            "relative-to-the-settled",
            "Which answer is attention's?",
            _gap_of(
                lambda settled, landing, xi: _ratio(_length(settled - landing), _length(settled))
            ),
        ),
        Misconception(
            "relative-to-the-query",
            "Attention's answer is the yardstick.",
            _gap_of(lambda settled, landing, xi: _ratio(_length(settled - landing), _length(xi))),
        ),
        Misconception(
            "distance-from-the-query",
            "Compare the two answers with each other.",
            _gap_of(lambda settled, landing, xi: _ratio(_length(settled - xi), _length(landing))),
        ),
        Misconception("second-step", "Two steps are not the minimum.", _gap_to_second_step),
        Misconception(
            "squared",
            "Check the scaling: double the gap, what should double?",
            _gap_of(
                lambda settled, landing, xi: (
                    _ratio(_length(settled - landing), _length(landing)) ** 2
                )
            ),
        ),
        Misconception(
            "largest-coordinate",
            "Should the answer depend on the choice of axes?",
            _gap_of(
                lambda settled, landing, xi: _ratio(_biggest(settled - landing), _biggest(landing))
            ),
        ),
        Misconception(
            "nothing-over-nothing",
            "Landing and settled point are both 0 here: how far apart are they?",
            _gap_without_origin,
        ),
        Misconception(
            "hundred-hops",
            "Near a split 100 hops are far too few: repeat until nothing moves, or call settle.",
            lambda xi, Y, beta: _gap_after(100, xi, Y, beta),
        ),
        Misconception(
            "lengths-compared",
            "How far apart the two answers are is not how much longer one is.",
            _gap_of(
                lambda settled, landing, xi: _ratio(
                    abs(_length(settled) - _length(landing)), _length(landing)
                )
            ),
        ),
    ),
    alternatives=(
        Alternative("loop", _gap_by_loop),
        Alternative("newton", _gap_by_newton),
        Alternative("einsum", _gap_by_squares),
        Alternative("sum-of-hops", _gap_by_total),
        Alternative("callable-object", CalledObject(_gap_by_loop)),
        Alternative("zero-dimensional", zero_dimensional(_gap_by_loop)),
        Alternative("prints-and-warns", noisy(ref.one_step_gap)),
    ),
    tolerance=1e-6,
)


# --- local_rate ---------------------------------------------------------------------------------


def _rate_of(number):
    """Make a rate from the Jacobian of the hop."""
    return lambda xi, Y, beta: number(lse_hessian(xi, Y, beta))


def _rate_uncentred(xi, Y, beta):
    weights = attention_weights(xi, Y, beta)
    return np.linalg.eigvalsh(beta * (Y.T * weights) @ Y)[-1]


def _rate_by_loop(xi, Y, beta):
    weights = attention_weights(xi, Y, beta)
    mean = weights @ Y
    jacobian = np.zeros((len(xi),) * 2)
    for weight, row in zip(weights, Y, strict=True):
        jacobian += beta * weight * np.outer(row - mean, row - mean)
    return float(np.linalg.eigvalsh(jacobian).max())


def _rate_by_singular_values(xi, Y, beta):
    weights = scipy_softmax(beta * (Y @ xi))
    scaled = np.sqrt(beta * weights)[:, None] * (Y - weights @ Y)
    return np.linalg.svd(scaled, compute_uv=False)[0] ** 2


def _rate_by_tokens(xi, Y, beta):
    """Take the (n, n) matrix that has the same eigenvalues, apart from zeros."""
    weights = attention_weights(xi, Y, beta)
    centred = np.sqrt(weights)[:, None] * (Y - np.average(Y, axis=0, weights=weights))
    return beta * eigh(centred @ centred.T, eigvals_only=True)[-1]


def _rate_by_scipy(xi, Y, beta):
    d = len(xi)
    jacobian = beta * np.atleast_2d(np.cov(Y.T, aweights=attention_weights(xi, Y, beta), ddof=0))
    return eigh(jacobian, eigvals_only=True, subset_by_index=[d - 1, d - 1])[0]


LOCAL_RATE = Exercise(
    name="local_rate",
    lesson=LESSON,
    points=3.0,
    expects="one number, not negative; 0 where there is only one token",
    reference=ref.local_rate,
    examples=PUBLIC,
    groups=landscape_groups(7301),
    properties=("vanishes_for_one_token", "ignores_doubled_tokens"),
    misconceptions=(
        Misconception(
            "curvature",
            "Rate of the map, not curvature of the energy.",
            _rate_of(lambda jacobian: 1 - np.linalg.eigvalsh(jacobian)[-1]),
        ),
        Misconception("trace", "Which single direction is slowest?", _rate_of(np.trace)),
        Misconception(
            "beta-missing",
            "Jacobian of aY.",
            lambda xi, Y, beta: ref.local_rate(xi, Y, beta) / beta,
        ),
        Misconception(
            "smallest-eigenvalue",
            "Slowest direction.",
            _rate_of(lambda jacobian: np.linalg.eigvalsh(jacobian)[0]),
        ),
        Misconception(
            "frobenius-norm",
            "A rate belongs to one direction, not to all together.",
            _rate_of(np.linalg.norm),
        ),
        Misconception("uncentred", "Covariance.", _rate_uncentred),
    ),
    alternatives=(
        Alternative("loop", _rate_by_loop),
        Alternative("singular-values", _rate_by_singular_values),
        Alternative("token-by-token", _rate_by_tokens),
        Alternative("scipy", _rate_by_scipy),
        Alternative("spectral-norm", _rate_of(lambda jacobian: np.linalg.norm(jacobian, 2))),
        Alternative("callable-object", CalledObject(_rate_by_singular_values)),
        Alternative("zero-dimensional", zero_dimensional(_rate_by_loop)),
        Alternative("prints-and-warns", noisy(_rate_by_tokens)),
    ),
)


# --- gap_curve ----------------------------------------------------------------------------------


def _curve_of(average):
    """Make a curve with another average of the gaps at one beta."""
    return lambda Q, Y, betas: np.array(
        [average([ref.one_step_gap(xi, Y, beta) for xi in Q]) for beta in betas]
    )


def _curve_with(gap):
    """Make a curve of the means of another gap."""
    return lambda Q, Y, betas: np.array([np.mean([gap(xi, Y, beta) for xi in Q]) for beta in betas])


def _curve_of_means(Q, Y, betas):
    ratios = []
    for beta in betas:
        landings = np.array([cccp_step(xi, Y, beta) for xi in Q])
        settled = np.array([_settled(xi, Y, beta) for xi in Q])
        apart = np.linalg.norm(settled - landings, axis=1)
        ratios.append(apart.mean() / np.linalg.norm(landings, axis=1).mean())
    return np.array(ratios)


def _curve_warm(Q, Y, betas):
    queries, means = list(Q), []
    for beta in betas:
        means.append(np.mean([ref.one_step_gap(xi, Y, beta) for xi in queries]))
        queries = [_settled(xi, Y, beta) for xi in queries]
    return np.array(means)


def _curve_by_loop(Q, Y, betas):
    curve = np.zeros(len(betas))
    for i, beta in enumerate(betas):
        for xi in Q:
            curve[i] += _gap_by_loop(xi, Y, beta) / len(Q)
    return curve


def _hop_rows(points, Y, beta):
    return scipy_softmax(beta * points @ Y.T, axis=1) @ Y


def _curve_by_batch(Q, Y, betas):
    """Move all queries together, until the slowest has settled."""
    curve = []
    for beta in betas:
        points = landings = _hop_rows(Q, Y, beta)
        for _ in range(20_000):
            before, points = points, _hop_rows(points, Y, beta)
            if np.abs(points - before).max() < 1e-12:
                break
        apart = np.linalg.norm(points - landings, axis=1)
        curve.append((apart / np.linalg.norm(landings, axis=1)).mean())
    return np.array(curve)


def _curve_by_table(Q, Y, betas):
    """Make the whole table of gaps, queries by betas, and average it over its first axis."""
    return np.vectorize(lambda i, k: ref.one_step_gap(Q[int(i)], Y, betas[int(k)]), otypes=[float])(
        *np.indices((len(Q), len(betas)))
    ).mean(axis=0)


def _curve_case(name, Q, Y, betas):
    given = {"Q": Q, "Y": Y, "betas": betas}
    return Case(name, {key: np.array(value, dtype=float) for key, value in given.items()})


def _unit(rng, n, d):
    rows = rng.normal(size=(n, d))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


_PATTERNS, _QUERIES = _unit(_RNG, 4, 16), _unit(_RNG, 6, 16)

GAP_CURVE = Exercise(
    name="gap_curve",
    lesson=LESSON,
    points=3.0,
    expects="an array with one mean gap per beta, in the order of betas",
    reference=ref.gap_curve,
    examples=(
        _curve_case("C", [C.xi], C.Y, [0.5, 2]),
        _curve_case("A", [A.xi, (-0.25, 0.125)], A.Y, [0.5, 4]),
        _curve_case("G", [[0.25], [-0.5]], G.Y, [0.5, 2, 8]),
        # The median of two numbers is their mean: only a third query tells them apart.
        _curve_case("three", [A.xi, (-0.25, 0.125), (1.0, 2.0)], A.Y, [8, 2]),
        _curve_case("near the split", [[0.5]], G.Y, [1.05]),
    ),
    groups=(
        Group(
            "ordinary",
            "ordinary values",
            0.60,
            (
                _curve_case(
                    "four patterns",
                    [_P4.xi, (-0.5, 0.25), (0.75, -0.125), (-0.125, -1.0)],
                    _P4.Y,
                    [1, 4, 16],
                ),
                _curve_case("16 dimensions", _QUERIES, _PATTERNS, [0.5, 2, 8]),
            ),
        ),
        Group(
            "extreme",
            "very cold and very hot",
            0.25,
            (
                _curve_case("cold", _QUERIES[:3], _PATTERNS, [256, 4096]),
                _curve_case("hot", _QUERIES[3:], _PATTERNS, [2.0**-10, 0.125]),
            ),
        ),
        Group(
            "edges",
            "edge shapes",
            0.15,
            (
                _curve_case("one query, one beta", [B.xi], B.Y, [4]),
                _curve_case("one token", [[0.5, -1], [3, 2]], [[-1, 0.25]], [8, 0.5]),
                _curve_case("one dimension", [[0.5], [1.25], [-2]], [[-1], [1.5], [0.5]], [3, 0.5]),
                _curve_case("falling betas", [D.xi, (0.5, 0.75), (-2, 1)], D.Y, [16, 1, 0.25]),
                _curve_case("near the split", [[0.5], [-0.75]], G.Y, [2, 1.02]),
            ),
        ),
    ),
    properties=("ignores_doubled_queries",),
    misconceptions=(
        Misconception("median", "Which average does the docstring name?", _curve_of(np.median)),
        Misconception(
            "first-query-only", "Average over all queries.", _curve_of(lambda gaps: gaps[0])
        ),
        Misconception("ratio-of-means", "Mean of ratios.", _curve_of_means),
        Misconception(
            "one-beta-for-all",
            "One value per beta.",
            lambda Q, Y, betas: ref.gap_curve(Q, Y, np.full(len(betas), betas[0])),
        ),
        Misconception("warm-start", "Each beta starts from the original query.", _curve_warm),
        Misconception(
            "sum", "Would the curve change if every query were listed twice?", _curve_of(np.sum)
        ),
        Misconception("percent", "A ratio.", lambda Q, Y, betas: 100 * ref.gap_curve(Q, Y, betas)),
        Misconception(
            "hundred-hops",
            "Near a split 100 hops are far too few: one_step_gap knows when to stop.",
            _curve_with(lambda xi, Y, beta: _gap_after(100, xi, Y, beta)),
        ),
        Misconception(
            "mean-query",
            "The gap of the mean query is not the mean of the gaps.",
            lambda Q, Y, betas: ref.gap_curve(Q.mean(axis=0, keepdims=True), Y, betas),
        ),
    ),
    alternatives=(
        Alternative("loop", _curve_by_loop),
        Alternative("batch", _curve_by_batch),
        Alternative("table", _curve_by_table),
        Alternative(
            "map",
            lambda Q, Y, betas: np.fromiter(
                (sum(_gap_by_squares(xi, Y, b) for xi in Q) / len(Q) for b in betas), dtype=float
            ),
        ),
        Alternative("callable-object", CalledObject(_curve_by_batch)),
        Alternative("prints-and-warns", noisy(ref.gap_curve)),
    ),
    tolerance=1e-6,
)


# --- count_minima -------------------------------------------------------------------------------


def _valleys_reached(Y, beta, starts):
    """Return, for each start that leads to a valley, where it ends."""
    ends = [ref.settle(start, Y, beta) for start in starts]
    return [x for x, _, converged in ends if converged and ref.local_rate(x, Y, beta) < 1 - 1e-6]


def _different(points, apart):
    kept = []
    for x in points:
        if all(np.linalg.norm(x - other) > apart for other in kept):
            kept.append(x)
    return kept


def _is_calm(x, Y, beta):
    return ref.local_rate(x, Y, beta) < 1 - 1e-6


def _is_calm_somewhere(x, Y, beta):
    return np.linalg.eigvalsh(lse_hessian(x, Y, beta))[0] < 1 - 1e-6


def _count_with(keeps=_is_calm, distance=_length):
    """Make a count with another rule for what is a valley, or another distance."""

    def count(Y, beta, starts, merge=1e-4):
        kept = []
        for start in starts:
            x, _, converged = ref.settle(start, Y, beta)
            if converged and keeps(x, Y, beta) and all(distance(x - v) > merge for v in kept):
                kept.append(x)
        return len(kept)

    return count


def _count_by_the_rate_of_the_start(Y, beta, starts, merge=1e-4):
    calm = [start for start in starts if _is_calm(start, Y, beta)]
    return len(_different(_valleys_reached(Y, beta, calm), merge))


def _count_unlike_the_first(Y, beta, starts, merge=1e-4):
    ends = _valleys_reached(Y, beta, starts)
    return len(ends[:1]) + sum(np.linalg.norm(x - ends[0]) > merge for x in ends[1:])


def _count_after_100_hops(Y, beta, starts, merge=1e-4):
    ends = [ref.settle(start, Y, beta, TOL, 100)[0] for start in starts]
    return len(_different([x for x in ends if _is_calm(x, Y, beta)], merge))


def _count_unsettled_too(Y, beta, starts, merge=1e-4):
    ends = [_settled(start, Y, beta) for start in starts]
    return len(_different([x for x in ends if _is_calm(x, Y, beta)], merge))


def _count_flat_points(Y, beta, starts, merge=1e-4):
    return len(_different([_settled(start, Y, beta) for start in starts], merge))


def _count_after_one_step(Y, beta, starts, merge=1e-4):
    landings = [cccp_step(start, Y, beta) for start in starts]
    valleys = [x for x in landings if ref.local_rate(x, Y, beta) < 1 - 1e-6]
    return len(_different(valleys, merge))


def _count_by_batch(Y, beta, starts, merge=1e-4):
    points = np.array(starts, dtype=float)
    for _ in range(10_000):
        before, points = points, _hop_rows(points, Y, beta)
        if np.abs(points - before).max() < 1e-11:
            break
    weights = scipy_softmax(beta * points @ Y.T, axis=1)
    spread = Y - points[:, None, :]
    curvature = np.eye(Y.shape[1]) - beta * np.einsum("kt,kti,ktj->kij", weights, spread, spread)
    settled = np.linalg.norm(points - before, axis=1) <= TOL
    valleys = points[settled & (np.linalg.eigvalsh(curvature)[:, 0] > 1e-6)]
    return len(_different(valleys, merge))


def _count_by_clusters(Y, beta, starts, merge=1e-4):
    ends = np.array(_valleys_reached(Y, beta, starts))
    if len(ends) < 2:
        return len(ends)
    return int(fcluster(linkage(ends), merge, criterion="distance").max())


def _count_by_graph(Y, beta, starts, merge=1e-4):
    """Count a valley where no earlier end is near."""
    ends = np.array(_valleys_reached(Y, beta, starts)).reshape(-1, Y.shape[1])
    near = np.linalg.norm(ends[:, None] - ends[None], axis=2) <= merge
    return np.int64(sum(not near[i, :i].any() for i in range(len(ends))))


def _count_by_kicks(Y, beta, starts, merge=1e-4):
    """Call an end a valley when it is found again from all sides."""
    kicks = 1e-3 * np.random.default_rng(6).normal(size=(6, Y.shape[1]))
    count = 0
    for x in _different([_settled(start, Y, beta) for start in starts], merge):
        back = [_settled(x + kick, Y, beta) for kick in kicks]
        count += all(np.linalg.norm(end - x) < 1e-4 for end in back)
    return count


def _count_case(name, Y, beta, starts=None, **more):
    Y = np.array(Y, dtype=float)
    starts = np.vstack([Y, Y.mean(axis=0) + 1e-3]) if starts is None else np.array(starts, float)
    return Case(name, {"Y": Y, "beta": float(beta), "starts": starts, **more})


_TRIANGLE = PRESETS["equilateral"].Y
_FIVE, _FOUR = _RNG.normal(size=(5, 2)), _RNG.normal(size=(4, 3))
_SIDES = [[0.0], [1.0], [-1.0]]
_DIAGONAL = [[1, 1], [-1, -1]]
_TWO_HIGH = [[3, 0.5], [3, -0.5]]

COUNT_MINIMA = Exercise(
    name="count_minima",
    lesson=LESSON,
    points=3.0,
    expects="a whole number, at most the number of starts, and 1 where beta is small",
    reference=ref.count_minima,
    examples=(
        _count_case("A1", A.Y, 1),
        _count_case("A2", A.Y, 2),
        _count_case("A4", A.Y, 4),
        _count_case("G.5", G.Y, 0.5),
        _count_case("G2 saddle", G.Y, 2, _SIDES),
        _count_case("tri1.9", _TRIANGLE, 1.9),
        _count_case("dup", D.Y, D.beta),
        # No start leads to a saddle here: which comes first, merging or curvature, is left open.
        _count_case("merged", G.Y, 2, _SIDES[1:], merge=3.0),
        _count_case("start on a peak", G.Y, 2, [[0.25]]),
        _count_case("each start twice", A.Y, 4, np.vstack([A.Y, A.Y])),
        # The valleys are 2.8 apart, and 2 in each coordinate.
        _count_case("diagonal", _DIAGONAL, 2, _DIAGONAL, merge=2.4),
        _count_case("diagonal, wide", _DIAGONAL, 2, _DIAGONAL, merge=3.4),
        # Errors grow along one axis only.
        _count_case("saddle in the plane", _TWO_HIGH, 6, [[3, 0], [3, 0.5]]),
        _count_case("saddle alone", G.Y, 4, [[0.0]]),
        _count_case("short", 0.25 * G.Y, 32, 0.25 * G.Y, merge=0.4),
        _count_case("slow", G.Y, 0.95, [[0.5], [-0.5]]),
    ),
    groups=(
        Group(
            "ordinary",
            "ordinary values",
            0.60,
            (
                _count_case("five tokens, hot", _FIVE, 0.25),
                _count_case("five tokens", _FIVE, 4),
                _count_case("four tokens", _FOUR, 8),
                _count_case("four patterns", _P4.Y, 16, np.vstack([_P4.Y, _P4.xi, -_P4.xi])),
            ),
        ),
        Group(
            "extreme",
            "saddles, close valleys, other radii",
            0.25,
            (
                _count_case("on the line", _TWO_HIGH, 7, [[3, 0], [3, 0.5], [2, -1]]),
                _count_case("saddle only", G.Y, 4, [[0.0]]),
                _count_case("wider triangle", 1.5 * _TRIANGLE, 1.9 / 1.5**2),
                _count_case("all in one", A.Y, 4, merge=10.0),
                _count_case("askew", [[1, -1], [-1, 1]], 3, [[2, 0], [0, 2]], merge=2.5),
                _count_case("askew, wide", [[1, -1], [-1, 1]], 3, [[2, 0], [0, 2]], merge=3.5),
                _count_case("slow", G.Y, 0.96, [[0.75], [-0.5]]),
                _count_case("short", 0.5 * G.Y, 9, [[0.25], [-0.125]], merge=0.875),
            ),
        ),
        Group(
            "edges",
            "edge shapes, and a walk that does not settle",
            0.15,
            (
                # At the split itself, and so slow: ten thousand hops are too long for the check.
                _count_case("unsettled", G.Y, 1.0, [[0.5]]),
                _count_case("one token", [[-0.5, 2.0, 1.0]], 64),
                _count_case("one start", A.Y, 4, [A.xi]),
                _count_case("one dimension", [[-1], [1.25], [0.25]], 16),
                _count_case("the same start twice", A.Y, 4, [A.xi, A.xi, -A.xi]),
            ),
        ),
    ),
    properties=("counts_one_valley_when_hot",),
    misconceptions=(
        Misconception(
            "number-of-tokens",
            "Count valleys, not tokens.",
            lambda Y, beta, starts, merge=1e-4: len(Y),
        ),
        Misconception(
            "not-merged",
            "Two starts may end in the same valley.",
            lambda Y, beta, starts, merge=1e-4: len(_valleys_reached(Y, beta, starts)),
        ),
        Misconception(
            "merged-if-equal",
            "Floats: use a distance.",
            lambda Y, beta, starts, merge=1e-4: len(
                {tuple(x) for x in _valleys_reached(Y, beta, starts)}
            ),
        ),
        Misconception(
            "saddles-counted",
            "A fixed point is not yet a minimum: curvature.",
            _count_flat_points,
        ),
        Misconception(
            "merge-radius-1",
            "Neighbouring valleys can be close.",
            lambda Y, beta, starts, merge=1e-4: ref.count_minima(Y, beta, starts, 1.0),
        ),
        Misconception("one-step", "Settle.", _count_after_one_step),
        Misconception(
            "best-tokens",
            "The centre valley has no token of its own.",
            lambda Y, beta, starts, merge=1e-4: len(
                {int(np.argmax(Y @ x)) for x in _valleys_reached(Y, beta, starts)}
            ),
        ),
        Misconception(
            "radius-hard-coded",
            "merge is an argument.",
            lambda Y, beta, starts, merge=1e-4: ref.count_minima(Y, beta, starts),
        ),
        Misconception(
            "rate-of-the-start",
            "The rate of which place: where the walk starts, or where it ends?",
            _count_by_the_rate_of_the_start,
        ),
        Misconception(
            "unlike-the-first",
            "An end is new when it is far from all valleys found so far, not from one of them.",
            _count_unlike_the_first,
        ),
        Misconception(
            "distance-by-coordinates",
            "Two ends are apart by a Euclidean distance.",
            _count_with(distance=_biggest),
        ),
        Misconception(
            "sum-of-coordinates",
            "Two ends are apart by a Euclidean distance: no sum of coordinates.",
            _count_with(distance=lambda apart: np.abs(apart).sum()),
        ),
        Misconception(
            "distance-squared",
            "Compare a distance with merge, not its square.",
            _count_with(distance=lambda apart: apart @ apart),
        ),
        Misconception(
            "smallest-rate",
            "One growing direction is enough to leave a place: which eigenvalue decides?",
            _count_with(keeps=_is_calm_somewhere),
        ),
        Misconception(
            "hundred-hops",
            "Near a split 100 hops are far too few: did your walks settle?",
            _count_after_100_hops,
        ),
        Misconception(
            "unsettled-counted",
            "Keep an end only if its walk converged: what does settle return besides the place?",
            _count_unsettled_too,
        ),
    ),
    alternatives=(
        Alternative("batch", _count_by_batch),
        Alternative("clusters", _count_by_clusters),
        Alternative("graph", _count_by_graph),
        Alternative("kicks", _count_by_kicks),
        Alternative("callable-object", CalledObject(_count_by_batch)),
        Alternative("prints-and-warns", noisy(ref.count_minima)),
    ),
)


# --- relaxation_gap: the part of the mastery project that code can check ------------------------


def relaxation_gap(step, x, tol=TOL, max_steps=MAX_STEPS):
    """Compare where repeating any step ends with where one step lands; nan if it never ends."""
    landing = step(x)
    before, point, hops = x, landing, 1
    with np.errstate(over="ignore", invalid="ignore"):
        while not np.linalg.norm(point - before) <= tol:  # nan is not short
            if hops == max_steps:
                return float("nan")
            before, point, hops = point, step(point), hops + 1
    distance = _length(point - landing)
    return distance / _length(landing) if distance > 0 else 0.0


def _relaxed(step, x, tol, max_steps):
    """Return landing, newest point and whether the last step was short enough."""
    landing = step(x)
    before, point = x, landing
    for _ in range(max_steps - 1):
        if np.linalg.norm(point - before) <= tol:
            break
        before, point = point, step(point)
    return landing, point, bool(np.linalg.norm(point - before) <= tol)


def _relaxation_of(compare):
    """Make a gap from the settled point, the landing and the start."""

    def gap(step, x, tol=TOL, max_steps=MAX_STEPS):
        landing, point, converged = _relaxed(step, x, tol, max_steps)
        if not converged:
            return float("nan")
        return 0.0 if np.array_equal(point, landing) else compare(point, landing, x)

    return gap


def _relaxation_takes_nan_for_rest(step, x, tol=TOL, max_steps=MAX_STEPS):
    before, point, hops = x, step(x), 1
    landing = point
    while np.linalg.norm(point - before) > tol:
        if hops == max_steps:
            return float("nan")
        before, point, hops = point, step(point), hops + 1
    return _ratio(_length(point - landing), _length(landing))


def _relaxation_unflagged(step, x, tol=TOL, max_steps=MAX_STEPS):
    landing, point, _ = _relaxed(step, x, tol, max_steps)
    return _length(point - landing) / _length(landing) if _length(point - landing) else 0.0


def _relaxation_without_origin(step, x, tol=TOL, max_steps=MAX_STEPS):
    landing, point, converged = _relaxed(step, x, tol, max_steps)
    with np.errstate(invalid="ignore"):
        gap = np.linalg.norm(point - landing) / np.linalg.norm(landing)
    return gap if converged else float("nan")


def _relaxation_to_second_step(step, x, tol=TOL, max_steps=MAX_STEPS):
    landing = step(x)
    distance = _length(step(landing) - landing)
    return distance / _length(landing) if distance > 0 else 0.0


def _same(number):
    return number


def _relaxation_with(size=_length, limit=_same, never="nan"):
    """Make a gap with another size of a step, another limit, or another answer at the limit."""

    def gap(step, x, tol=TOL, max_steps=MAX_STEPS):
        landing = point = step(x)
        before, made = x, 1
        while not size(point - before) <= tol:
            if made >= limit(max_steps):
                return float(never)
            before, point, made = point, step(point), made + 1
        return _ratio(_length(point - landing), _length(landing))

    return gap


def _relaxation_by_for_else(step, x, tol=TOL, max_steps=MAX_STEPS):
    point = np.array(x, dtype=float)
    for hop in range(max_steps):
        new = np.asarray(step(point))
        if hop == 0:
            landing = new
        moved = math.dist(new, point)
        point = new
        if moved <= tol:
            break
    else:
        return math.nan
    apart = math.dist(point, landing)
    return apart / math.hypot(*landing) if apart else 0.0


def _relaxation_by_history(step, x, tol=TOL, max_steps=MAX_STEPS):
    path = [x, step(x)]
    while len(path) <= max_steps and not np.linalg.norm(path[-1] - path[-2]) <= tol:
        path.append(step(path[-1]))
    if not np.linalg.norm(path[-1] - path[-2]) <= tol:
        return np.nan
    apart = np.linalg.norm(path[-1] - path[1])
    return np.divide(apart, np.linalg.norm(path[1]), out=np.zeros(()), where=apart > 0)


def _relaxation_by_iterators(step, x, tol=TOL, max_steps=MAX_STEPS):
    path = islice(accumulate(repeat(None), lambda point, _: step(point), initial=x), max_steps + 1)
    landing = None
    for before, point in pairwise(path):
        landing = point if landing is None else landing
        if np.sqrt(np.sum((point - before) ** 2)) <= tol:
            apart = np.sqrt(np.sum((point - landing) ** 2))
            return 0.0 if apart == 0 else apart / np.sqrt(np.sum(landing**2))
    return float("nan")


class _Relaxation:
    """A right answer that is an object which keeps its newest point."""

    def __call__(self, step, x, tol=TOL, max_steps=MAX_STEPS):
        self.point, self.moved = x, np.inf
        self._move(step)
        landing = self.point
        for _ in range(1, max_steps):
            if self.moved <= tol:
                break
            self._move(step)
        if not self.moved <= tol:
            return np.nan
        apart = np.linalg.norm(self.point - landing)
        return apart / np.linalg.norm(landing) if apart > 0 else 0.0

    def _move(self, step):
        before, self.point = self.point, step(self.point)
        self.moved = np.linalg.norm(self.point - before)


def _step_case(name, step, x, **more):
    return Case(name, {"step": step, "x": np.array(x, dtype=float), **more})


def _lse_step(landscape):
    return partial(cccp_step, Y=landscape.Y, beta=landscape.beta)


_RIDGE = np.array([[1.5, 0.25], [0.25, 0.75]])
_DATA = np.array([[0.0, 0.0], [1.0, 0.25], [3.0, 3.0], [3.5, 2.75], [3.25, 3.5]])


def _ridge_step(x):
    return x - 0.5 * (_RIDGE @ x - np.array([1.0, -0.5]))


def _mean_shift_step(x):
    weights = np.exp(-((_DATA - x) ** 2).sum(axis=1) / 2)
    return weights @ _DATA / weights.sum()


def _k_means_step(x):
    """Move two means, one after the other in x, to the means of the data nearest to each."""
    means = x.reshape(2, 2)
    nearest = ((_DATA[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    return np.concatenate([_DATA[nearest == k].mean(axis=0) for k in (0, 1)])


def _doubling_step(x):
    return 2 * x


def _turn_step(x):
    return np.array([-x[1], x[0]])


RELAXATION_GAP = Exercise(
    name="relaxation_gap",
    lesson=LESSON,
    points=3.0,
    expects="one number, not negative; 0 where the first landing stays; nan if nothing settles",
    reference=relaxation_gap,
    examples=(
        _step_case("halfway", Function("halfway"), [4.0, 0.0]),
        _step_case("cosine", Function("cosine"), [0.25, -2.0, 1.0]),
        _step_case("shrinking", Function("shrinking"), [3.0, -4.0]),
        _step_case("origin", Function("shrinking"), [0.0, 0.0]),
        _step_case("turning", Function("turning"), [1.0, 0.5], tol=1e-10, max_steps=100),
        _step_case("creeping", Function("creeping"), [0.5], tol=1e-10, max_steps=100),
        _step_case("loose", Function("halfway"), [4.0, 4.0, 4.0, 4.0], tol=0.5, max_steps=100),
        # The third step is 0.25 long exactly.
        _step_case("just in time", Function("halfway"), [4.0], tol=0.25, max_steps=3),
        _step_case("one too few", Function("halfway"), [4.0], tol=0.25, max_steps=2),
        _step_case("ten steps", Function("halfway"), [4.0], tol=1e-10, max_steps=10),
        _step_case("creeping to rest", Function("creeping"), [0.5], tol=1e-4),
        # From 6e111 to inf in one step: no square of a length overflows on the way, and warns.
        _step_case("running away", Function("creeping"), [3.0], tol=1e-10, max_steps=100),
    ),
    groups=(
        Group(
            "ordinary",
            "steps of four kinds",
            0.5,
            (
                _step_case("attention", _lse_step(_P4), _P4.xi),
                _step_case("attention B", _lse_step(B), B.xi),
                _step_case("ridge", _ridge_step, [2.0, 3.0]),
                _step_case("mean shift", _mean_shift_step, [1.75, 1.5]),
                _step_case("k-means", _k_means_step, [0.0, 0.0, 1.5, 0.5]),
            ),
        ),
        Group(
            "limits",
            "steps that do not settle, and limits",
            0.25,
            (
                _step_case("round and round", _turn_step, [1.0, 0.0], tol=1e-10, max_steps=50),
                _step_case("too few", Function("halfway"), [0.5], tol=1e-10, max_steps=20),
                _step_case("creeping", Function("creeping"), [0.75, 0.25], tol=1e-4, max_steps=60),
                _step_case("loose", _mean_shift_step, [1.75, 1.5], tol=1e-3, max_steps=500),
                _step_case("doubling", _doubling_step, [0.5, -1], tol=1e-10, max_steps=2000),
                _step_case("in time", Function("halfway"), [6.0], tol=0.25, max_steps=4),
                _step_case("late", Function("halfway"), [6.0], tol=0.25, max_steps=3),
                _step_case("three coordinates", Function("halfway"), [5, -3, 8], tol=0.5),
                _step_case("slow", Function("creeping"), [0.5, -0.25], tol=1e-5),
            ),
        ),
        Group(
            "edges",
            "starts that are settled already, and edge shapes",
            0.25,
            (
                _step_case("one token", _lse_step(C), C.xi),
                _step_case("settled", Function("halfway"), [2.0, 2.0]),
                _step_case("origin", _lse_step(G), [0.0]),
                _step_case("to the origin", Function("shrinking"), [0.0625]),
                _step_case("many coordinates", Function("cosine"), np.arange(12.0)),
                _step_case("from afar", Function("halfway"), [-1e6, 4000.0]),
            ),
        ),
    ),
    properties=("vanishes_for_a_constant_step", "finds_no_rest_in_running_away"),
    misconceptions=(
        Misconception(
            "not-relative",
            "Relative to the length of the answer.",
            _relaxation_of(lambda point, landing, x: _length(point - landing)),
        ),
        Misconception(
            "relative-to-the-settled",
            "Which of the two answers is the one step's? It is the yardstick.",
            _relaxation_of(
                lambda point, landing, x: (
                    _length(point - landing) / max(_length(point), np.finfo(float).tiny)
                )
            ),
        ),
        Misconception(
            "distance-from-the-start",
            "Compare the two answers with each other.",
            _relaxation_of(lambda point, landing, x: _length(point - x) / _length(landing)),
        ),
        Misconception("second-step", "Two steps are not yet the end.", _relaxation_to_second_step),
        Misconception(
            "limit-ignored",
            "A search that stops at the limit has no settled point to compare with.",
            _relaxation_unflagged,
        ),
        Misconception(
            "tolerance-hard-coded",
            "tol is an argument.",
            lambda step, x, tol=TOL, max_steps=MAX_STEPS: relaxation_gap(
                step, x, max_steps=max_steps
            ),
        ),
        Misconception(
            "limit-hard-coded",
            "max_steps is an argument.",
            _relaxation_with(limit=lambda steps: 1000),
        ),
        Misconception(
            "one-step-too-many",
            "The first step, to the landing, is one of the max_steps.",
            _relaxation_with(limit=lambda steps: steps + 1),
        ),
        Misconception(
            "one-step-too-few",
            "max_steps steps are allowed. Does your loop count them, or the places between them?",
            _relaxation_with(limit=lambda steps: steps - 1),
        ),
        Misconception(
            "shorter-than-tol",
            "A step is too long if it is longer than tol: and one of exactly tol?",
            lambda step, x, tol=TOL, max_steps=MAX_STEPS: relaxation_gap(
                step, x, np.nextafter(tol, 0), max_steps
            ),
        ),
        Misconception(
            "largest-coordinate",
            "The length of a step is Euclidean: it does not depend on the choice of axes.",
            _relaxation_with(size=lambda moved: np.abs(moved).max()),
        ),
        Misconception(
            "sum-of-coordinates",
            "The length of a step is Euclidean, no sum of coordinates.",
            _relaxation_with(size=lambda moved: np.abs(moved).sum()),
        ),
        Misconception(
            "zero-for-never",
            "0 says that one step is as good as settling. What if nothing settles?",
            _relaxation_with(never="0"),
        ),
        Misconception(
            "inf-for-never",
            "There is no settled point and so no distance: nan is promised, not inf.",
            _relaxation_with(never="inf"),
        ),
        Misconception(
            "nan-taken-for-rest",
            "Once a number is nan, a comparison such as `length > tol` is False. "
            "What does your loop do then?",
            _relaxation_takes_nan_for_rest,
        ),
        Misconception(
            "nothing-over-nothing",
            "Start at a fixed point at the origin: how far apart are the two answers?",
            _relaxation_without_origin,
        ),
    ),
    alternatives=(
        Alternative("for-else", _relaxation_by_for_else),
        Alternative("history", _relaxation_by_history),
        Alternative("iterators", _relaxation_by_iterators),
        Alternative("callable-object", _Relaxation()),
        Alternative("prints-and-warns", noisy(relaxation_gap)),
    ),
    tolerance=1e-6,
)

EXERCISES = (SETTLE, ONE_STEP_GAP, LOCAL_RATE, GAP_CURVE, COUNT_MINIMA, RELAXATION_GAP)
