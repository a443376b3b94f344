"""Lesson 06: what each exercise asks, the wrong answers it knows, right answers of other forms."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.linalg import eigh, ldl, svdvals
from scipy.optimize import brentq
from scipy.special import softmax

from autograder.exercise import Alternative, Exercise, Group, Misconception
from autograder.exercises._cases import (
    DECIMAL,
    PUBLIC,
    WHOLE,
    CalledObject,
    edge_cases,
    landscape_groups,
    noisy,
    only,
    only_groups,
    ordinary_cases,
    zero_dimensional,
)
from autograder.reference import linear_saddle as ref
from autograder.reference.fixtures import A, C
from hopping.cases import Case

LESSON = "06_linear_saddle"


# --- linear_energy ------------------------------------------------------------------------------


def _bowl(xi):
    return np.sum(xi**2) / 2


def _energy_of(concave):
    """Make an energy whose concave part is half of `concave`, a function of scores and beta."""
    return lambda xi, Y, beta: _bowl(xi) - concave(Y @ xi, beta) / 2


def _to_seven_digits(array):
    return array.astype(np.float32).astype(float)


def _energy_by_loop(xi, Y, beta):
    squares = 0.0
    for row in Y:
        squares += sum(float(a) * float(b) for a, b in zip(row, xi, strict=True)) ** 2
    return math.fsum(float(x) ** 2 for x in xi) / 2 - beta * squares / 2


def _energy_by_form(xi, Y, beta):
    return xi @ (np.eye(len(xi)) - beta * Y.T @ Y) @ xi / 2


def _energy_by_norms(xi, Y, beta):
    return (np.linalg.norm(xi) ** 2 - np.linalg.norm(np.sqrt(beta) * Y @ xi) ** 2) / 2


def _energy_by_einsum(xi, Y, beta):
    return 0.5 * (np.vdot(xi, xi) - beta * np.einsum("td,te,d,e->", Y, Y, xi, xi))


LINEAR_ENERGY = Exercise(
    name="linear_energy",
    lesson=LESSON,
    points=3.0,
    expects="one number, four times as large for a query twice as long",
    reference=ref.linear_energy,
    examples=(*PUBLIC, DECIMAL, WHOLE),
    groups=landscape_groups(6101),
    properties=("is_quadratic",),
    misconceptions=(
        Misconception(
            "plus-sign",
            "The concave part is negative.",
            _energy_of(lambda s, beta: -beta * (s @ s)),
        ),
        Misconception(
            "half-missing",
            "Differentiate and compare with the step.",
            _energy_of(lambda s, beta: 2 * beta * (s @ s)),
        ),
        Misconception(
            "square-of-the-sum",
            "Sum of squares.",
            _energy_of(lambda s, beta: beta * s.sum() ** 2),
        ),
        Misconception(
            "beta-squared",
            "One beta: the scores are squared, beta is not.",
            _energy_of(lambda s, beta: beta**2 * (s @ s)),
        ),
        Misconception(
            "mean-over-tokens", "No averaging.", _energy_of(lambda s, beta: beta * np.mean(s**2))
        ),
        Misconception(
            "divides-by-beta",
            "Small beta: nearly the bare bowl.",
            _energy_of(lambda s, beta: (s @ s) / beta),
        ),
        Misconception(
            "beta-missing",
            "At beta = 0 only the bowl is left: where does beta stand?",
            _energy_of(lambda s, beta: s @ s),
        ),
        Misconception(
            "bowl-not-halved",
            "Both terms have a factor 1/2.",
            lambda xi, Y, beta: ref.linear_energy(xi, Y, beta) + _bowl(xi),
        ),
        Misconception(
            "bowl-missing",
            "Where is the bowl?",
            lambda xi, Y, beta: ref.linear_energy(xi, Y, beta) - _bowl(xi),
        ),
        Misconception(
            "single-precision",
            "float32 keeps seven digits: compute in float64.",
            lambda xi, Y, beta: float(
                ref.linear_energy(_to_seven_digits(xi), _to_seven_digits(Y), beta)
            ),
        ),
    ),
    alternatives=(
        Alternative("loop", _energy_by_loop),
        Alternative("quadratic-form", _energy_by_form),
        Alternative("norms", _energy_by_norms),
        Alternative("einsum", _energy_by_einsum),
        Alternative("callable-object", CalledObject(_energy_by_loop)),
        Alternative("zero-dimensional", zero_dimensional(_energy_by_form)),
        Alternative("prints-and-warns", noisy(_energy_by_norms)),
    ),
)


# --- linear_step --------------------------------------------------------------------------------


def _step_by_loop(xi, Y, beta):
    landing = np.zeros(len(xi))
    for row in Y:
        landing = landing + beta * float(np.dot(row, xi)) * row
    return landing


def _step_cut_off(xi, Y, beta):
    landing = np.zeros_like(xi)
    for row in Y:
        for j, value in enumerate(row):
            landing[j] += beta * (row @ xi) * value
    return landing


def _step_by_gradient(xi, Y, beta):
    """Step against the gradient of the energy, column by column of the form."""
    form = np.eye(len(xi)) - beta * Y.T @ Y
    return xi - sum(x * column for x, column in zip(xi, form.T, strict=True))


LINEAR_STEP = Exercise(
    name="linear_step",
    lesson=LESSON,
    points=3.0,
    expects="an array like xi, twice as long for a query twice as long",
    reference=ref.linear_step,
    examples=(*PUBLIC, DECIMAL, WHOLE),
    groups=landscape_groups(6201),
    properties=("is_linear",),
    misconceptions=(
        Misconception(
            "beta-missing",
            "A token's weight is beta times its score, not the score alone.",
            lambda xi, Y, beta: (Y @ xi) @ Y,
        ),
        Misconception(
            "mean-over-tokens",
            "No softmax, no average.",
            lambda xi, Y, beta: ref.linear_step(xi, Y, beta) / len(Y),
        ),
        Misconception(
            "over-the-sum-of-scores",
            "Unnormalised linear attention.",
            lambda xi, Y, beta: ref.linear_step(xi, Y, beta) / (Y @ xi).sum(),
        ),
        Misconception(
            "token-by-token-map",
            "The map acts on xi: (d, d).",
            lambda xi, Y, beta: beta * (Y @ Y.T) @ xi,
        ),
        Misconception(
            "residual-kept",
            "CCCP replaces xi.",
            lambda xi, Y, beta: xi + ref.linear_step(xi, Y, beta),
        ),
        Misconception(
            "gradient",
            "Landing, not gradient.",
            lambda xi, Y, beta: xi - ref.linear_step(xi, Y, beta),
        ),
        Misconception("absolute-scores", "Signed.", lambda xi, Y, beta: beta * np.abs(Y @ xi) @ Y),
        Misconception(
            "softmax-weights",
            "No exponential in this kernel: the weight is beta times the score.",
            lambda xi, Y, beta: softmax(beta * (Y @ xi)) @ Y,
        ),
        Misconception(
            "halved",
            "The half of the energy is gone: the slope of a square is twice the number.",
            lambda xi, Y, beta: ref.linear_step(xi, Y, beta) / 2,
        ),
        Misconception(
            "single-precision",
            "float32 keeps seven digits: compute in float64.",
            lambda xi, Y, beta: ref.linear_step(xi, Y, beta).astype(np.float32),
        ),
        Misconception(
            "whole-numbers-cut-off",
            "`zeros_like` of whole numbers holds whole numbers: what becomes of 0.75 in it?",
            _step_cut_off,
        ),
    ),
    alternatives=(
        Alternative("loop", _step_by_loop),
        Alternative("gram-matrix", lambda xi, Y, beta: beta * (Y.T @ Y) @ xi),
        Alternative("einsum", lambda xi, Y, beta: np.einsum("td,te,e->d", Y, beta * Y, xi)),
        Alternative("minus-gradient", _step_by_gradient),
        Alternative("callable-object", CalledObject(_step_by_loop)),
        Alternative("prints-and-warns", noisy(_step_by_gradient)),
    ),
)


# --- curvatures ---------------------------------------------------------------------------------


def _form(Y, beta):
    return np.eye(Y.shape[1]) - beta * Y.T @ Y


def _curvatures_by_svd(Y, beta):
    values = np.ones(Y.shape[1])
    sigma = np.linalg.svd(Y, compute_uv=False)
    values[: len(sigma)] -= beta * sigma**2
    return np.sort(values)


def _curvatures_by_tokens(Y, beta):
    """Take the n eigenvalues of the small matrix; what is missing or too many is 0."""
    n, d = Y.shape
    values = np.append(np.linalg.eigvalsh(Y @ Y.T)[::-1], np.zeros(max(0, d - n)))[:d]
    return 1 - beta * values


def _curvatures_without_free_directions(Y, beta):
    return np.sort(1 - beta * np.linalg.svd(Y, compute_uv=False) ** 2)


def _curvatures_by_rotations(Y, beta):
    """Turn pairs of axes until the form is diagonal (Jacobi)."""
    form = _form(Y, beta)
    for _ in range(30):
        for p in range(len(form)):
            for q in range(p + 1, len(form)):
                angle = 0.5 * math.atan2(2 * form[p, q], form[q, q] - form[p, p])
                turn = np.eye(len(form))
                turn[p, p] = turn[q, q] = math.cos(angle)
                turn[p, q], turn[q, p] = math.sin(angle), -math.sin(angle)
                form = turn.T @ form @ turn
    return np.sort(np.diag(form))


_PUBLIC_SHAPES = (
    *only(PUBLIC, "Y", "beta"),
    # Two curvatures of 1, and two axes that no token reaches.
    Case("wide", {"Y": np.array([[0.5, 0.0, 0.0]]), "beta": 1.5}),
)

*_FIRST_GROUPS, _EDGES = only_groups(landscape_groups(6301), "Y", "beta")
_FREE = Case("free directions", {"Y": np.array([[0.0, 1.5, 0.0, 0.0]]), "beta": 0.75})
_CURVATURE_GROUPS = (*_FIRST_GROUPS, replace(_EDGES, cases=(*_EDGES.cases, _FREE)))

CURVATURES = Exercise(
    name="curvatures",
    lesson=LESSON,
    points=3.0,
    expects="an array with one real number per direction of xi, ascending, none above 1",
    reference=ref.curvatures,
    examples=_PUBLIC_SHAPES,
    groups=_CURVATURE_GROUPS,
    properties=("falls_straight_from_one",),
    misconceptions=(
        Misconception(
            "one-per-token",
            "How many directions does xi have?",
            lambda Y, beta: np.linalg.eigvalsh(np.eye(len(Y)) - beta * Y @ Y.T),
        ),
        Misconception(
            "beta-missing", "beta decides the sign.", lambda Y, beta: ref.curvatures(Y, 1.0)
        ),
        Misconception(
            "bowl-missing",
            "Curvature of the whole energy: the bowl counts.",
            lambda Y, beta: beta * np.linalg.eigvalsh(Y.T @ Y),
        ),
        Misconception(
            "singular-values-not-squared",
            "Gram matrix.",
            lambda Y, beta: 1 - beta * np.linalg.svd(Y, compute_uv=False),
        ),
        Misconception(
            "descending",
            "Ascending: the lowest curvature first.",
            lambda Y, beta: ref.curvatures(Y, beta)[::-1].copy(),
        ),
        Misconception(
            "complex-numbers",
            "A symmetric matrix deserves a symmetric solver.",
            lambda Y, beta: np.linalg.eigvals(_form(Y, beta).astype(complex)),
        ),
        Misconception(
            "free-directions-missing",
            "A direction that no token reaches has a curvature, too: that of the bowl.",
            _curvatures_without_free_directions,
        ),
        Misconception(
            "plus-sign",
            "The tokens bend the bowl downwards: can a curvature be above 1?",
            lambda Y, beta: np.linalg.eigvalsh(2 * np.eye(Y.shape[1]) - _form(Y, beta)),
        ),
        Misconception(
            "each-value-once",
            "Two directions can have the same curvature: keep both.",
            lambda Y, beta: np.unique(ref.curvatures(Y, beta).round(9)),
        ),
    ),
    alternatives=(
        Alternative("whole-form", lambda Y, beta: np.linalg.eigvalsh(_form(Y, beta))),
        Alternative("svd", _curvatures_by_svd),
        Alternative("token-by-token", _curvatures_by_tokens),
        Alternative("scipy", lambda Y, beta: eigh(_form(Y, beta), eigvals_only=True)),
        Alternative("sorted", lambda Y, beta: np.sort(np.linalg.eigvals(_form(Y, beta)).real)),
        Alternative("rotations", _curvatures_by_rotations),
        Alternative("callable-object", CalledObject(_curvatures_by_svd)),
        Alternative("prints-and-warns", noisy(_curvatures_by_tokens)),
    ),
)


# --- critical_beta ------------------------------------------------------------------------------


def _tokens(name, Y):
    return Case(name, {"Y": np.array(Y, dtype=float)})


def _eigenvalues(Y):
    return np.linalg.eigvalsh(Y.T @ Y)


def _over(number):
    return np.inf if number == 0 else 1 / number


def _critical_by_bisection(Y):
    if not Y.any():
        return float("inf")

    def lowest(log_beta):
        return np.linalg.eigvalsh(_form(Y, math.exp(log_beta)))[0]

    return math.exp(brentq(lowest, -60, 60, xtol=1e-13, rtol=1e-14))


def _critical_by_power(Y):
    """Repeat the hop at beta = 1: the growth of a query is the largest eigenvalue."""
    x = np.cos(np.arange(1.0, Y.shape[1] + 1))
    for _ in range(400):
        x = (Y @ x) @ Y
        size = np.linalg.norm(x)
        if size == 0:
            return np.inf
        x = x / size
    return 1 / np.sum((Y @ x) ** 2)


def _critical_by_few_powers(Y):
    """Start at (1, 1, ...) and multiply 30 times, whatever the tokens are."""
    x = np.ones(Y.shape[1])
    for _ in range(30):
        x = (Y @ x) @ Y
        x = x / max(np.linalg.norm(x), np.finfo(float).tiny)
    return _over(np.sum((Y @ x) ** 2))


def _critical_of_long_tokens(Y):
    largest = _eigenvalues(Y)[-1]
    return np.inf if np.isclose(largest, 0) else 1 / largest


_ONE_TOKEN = _tokens("one token", [[0, 2]])

CRITICAL_BETA = Exercise(
    name="critical_beta",
    lesson=LESSON,
    points=3.0,
    expects="one number above 0, a quarter for tokens twice as long, infinity if all are zero",
    reference=ref.critical_beta,
    # One token along an axis instead of C: its smallest eigenvalue is 0 on every machine.
    examples=(
        *only(tuple(case for case in PUBLIC if case.name not in "CZ"), "Y"),
        _ONE_TOKEN,
        _tokens("zero", np.zeros((2, 2))),
        # So short that np.isclose takes the eigenvalues for 0, and exact by way of a curvature.
        _tokens("short", [[2.0**-14, 0], [0, 2.0**-15]]),
        # The largest eigenvalue belongs to (1, -1), and the other is half as large.
        _tokens("across", [[2, -2], [1, 1], [1, 1]]),
        _tokens("on an axis", [[0, 1.5], [0, -0.75], [0, 0]]),
    ),
    groups=(
        Group("ordinary", "ordinary tokens", 0.60, only(ordinary_cases(6401), "Y")),
        Group(
            "extreme",
            "very long and very short tokens, and none but zeros",
            0.25,
            (
                _tokens("long", 1e4 * A.Y[:, ::-1]),
                _tokens("short", 1e-3 * A.Y[::-1] + [0.0, 1e-4]),
                _tokens("zeros", np.zeros((3, 4))),
                _tokens("very short", [[0, 2.0**-14], [2.0**-16, 0]]),
                _tokens("close eigenvalues", [[1.5, -1.5, 0], [1.4, 1.4, 0], [0, 0, 1.0]]),
            ),
        ),
        Group(
            "edges",
            "edge shapes",
            0.15,
            (
                *only(edge_cases(6402), "Y"),
                _tokens("C", C.Y),
                _tokens("opposite, on an axis", [[0, 1.5], [0, 0], [0, -1.5]]),
            ),
        ),
    ),
    properties=("scales_like_an_inverse_square",),
    misconceptions=(
        Misconception(
            "over-sigma",
            "Y^T Y has squared singular values.",
            lambda Y: _over(np.linalg.norm(Y, 2)),
        ),
        Misconception(
            "smallest-eigenvalue",
            "Which direction goes first?",
            lambda Y: _over(_eigenvalues(Y)[0]),
        ),
        Misconception("trace", "Largest eigenvalue, not their sum.", lambda Y: _over(np.sum(Y**2))),
        Misconception(
            "longest-token",
            "Tokens cooperate.",
            lambda Y: _over((Y**2).sum(axis=1).max()),
        ),
        Misconception("eigenvalue-itself", "Solve beta*lambda = 1.", lambda Y: _eigenvalues(Y)[-1]),
        Misconception(
            "division-by-zero", "No tokens: never.", lambda Y: 1 / float(_eigenvalues(Y)[-1])
        ),
        Misconception(
            "short-taken-for-zero",
            "Short tokens end the bowl, too, at a large beta: only zeros never do.",
            _critical_of_long_tokens,
        ),
        Misconception(
            "too-few-powers",
            "A start that is orthogonal to the direction never finds it, and close eigenvalues "
            "need many steps: np.linalg.eigvalsh has neither trouble.",
            _critical_by_few_powers,
        ),
        Misconception(
            "zero-for-never",
            "If the bowl never ends, is its end at 0, or farther than any number?",
            lambda Y: ref.critical_beta(Y) if Y.any() else 0.0,
        ),
    ),
    alternatives=(
        Alternative("norm", lambda Y: _over(np.linalg.norm(Y, 2) ** 2)),
        Alternative("numpy-division", lambda Y: 1 / svdvals(Y)[0] ** 2),
        Alternative("token-by-token", lambda Y: _over(np.linalg.eigvalsh(Y @ Y.T).max())),
        Alternative("bisection", _critical_by_bisection),
        Alternative("power-iteration", _critical_by_power),
        Alternative("from-a-curvature", lambda Y: _over(1 - ref.curvatures(Y, 1.0)[0])),
        Alternative("callable-object", CalledObject(_critical_by_power)),
        Alternative("zero-dimensional", zero_dimensional(ref.critical_beta)),
        Alternative("prints-and-warns", noisy(ref.critical_beta)),
    ),
)


# --- classify -----------------------------------------------------------------------------------


def _shape_case(name, Y, beta, **more):
    return Case(name, {"Y": np.array(Y, dtype=float), "beta": float(beta), **more})


def _dome_called_saddle(Y, beta, tol=1e-9):
    shape = ref.classify(Y, beta, tol)
    return "saddle" if shape == "dome" else shape


def _flat_called_bowl(Y, beta, tol=1e-9):
    shape = ref.classify(Y, beta, tol)
    return "bowl" if shape == "trough" else shape


def _flat_called_down(Y, beta, tol=1e-9):
    """Call it a dome when no curvature is above 0, also when one is 0."""
    shape = ref.classify(Y, beta, tol)
    return "dome" if shape == "saddle" and ref.curvatures(Y, beta)[-1] <= tol else shape


def _never_a_trough(Y, beta, tol=1e-9):
    values = ref.curvatures(Y, beta)
    return "bowl" if values[0] > 0 else "dome" if values[-1] < 0 else "saddle"


def _exactly_zero_only(Y, beta, tol=1e-9):
    return ref.classify(Y, beta, 0.0)


def _any_flat_a_trough(Y, beta, tol=1e-9):
    flat = np.abs(ref.curvatures(Y, beta)) <= tol
    return "trough" if flat.any() else ref.classify(Y, beta, tol)


def _tol_ignored(Y, beta, tol=1e-9):
    return ref.classify(Y, beta)


def _tol_too_wide(Y, beta, tol=1e-6):
    return ref.classify(Y, beta, max(tol, 1e-6))


def _shorter_than_tol(Y, beta, tol=1e-9):
    lowest, highest = ref.curvatures(Y, beta)[[0, -1]]
    if abs(lowest) < tol:
        return "trough"
    return "bowl" if lowest > 0 else "dome" if highest < -tol else "saddle"


def _tol_for_an_eigenvalue(Y, beta, tol=1e-9):
    return ref.classify(Y, beta, tol * beta)


def _dome_without_tol(Y, beta, tol=1e-9):
    shape = ref.classify(Y, beta, tol)
    return "dome" if shape == "saddle" and ref.curvatures(Y, beta)[-1] < 0 else shape


def _dome_by_two(Y, beta, tol=1e-9):
    shape = ref.classify(Y, beta, tol)
    return "dome" if shape == "saddle" and (ref.curvatures(Y, beta)[:2] < -tol).all() else shape


def _shape_by_inertia(Y, beta, tol=1e-9):
    """Count signs by an LDL decomposition, without any eigenvalue of the form."""

    def signs(matrix):
        blocks = np.linalg.eigvalsh(ldl(matrix)[1])
        return (blocks > 0).sum(), (blocks < 0).sum()

    form, d = _form(Y, beta), Y.shape[1]
    up, down = signs(form - tol * np.eye(d))[0], signs(form + tol * np.eye(d))[1]
    return "bowl" if up == d else "trough" if down == 0 else "dome" if down == d else "saddle"


def _shape_by_tokens(Y, beta, tol=1e-9):
    return ref.classify(Y.T, beta, tol)


def _shape_without_beta(Y, beta, tol=1e-9):
    return ref.classify(Y, 1.0, tol)


def _shape_by_determinant(Y, beta, tol=1e-9):
    return "bowl" if np.linalg.det(_form(Y, beta)) > 0 else "saddle"


def _shape_by_counts(Y, beta, tol=1e-9):
    values = _curvatures_by_svd(Y, beta)
    down, flat = int((values < -tol).sum()), int((np.abs(values) <= tol).sum())
    if down == 0:
        return "trough" if flat else "bowl"
    return "dome" if down == len(values) else "saddle"


def _shape_by_table(Y, beta, tol=1e-9):
    values = np.linalg.eigvals(_form(Y, beta)).real
    rules = [values.min() > tol, abs(values.min()) <= tol, values.max() < -tol]
    return np.select(rules, ["bowl", "trough", "dome"], "saddle")[()]


def _shape_by_match(Y, beta, tol=1e-9):
    lowest, highest = (int(np.sign(v) * (abs(v) > tol)) for v in _extremes(Y, beta))
    match lowest, highest:
        case 1, _:
            return "bowl"
        case 0, _:
            return "trough"
        case -1, -1:
            return "dome"
    return "saddle"


def _extremes(Y, beta):
    values = eigh(_form(Y, beta), eigvals_only=True)
    return values[0], values[-1]


def _shape_by_cholesky(Y, beta, tol=1e-9):
    """Ask which of four shifted forms have a Cholesky factor."""

    def is_positive(matrix):
        try:
            np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            return False
        return True

    form, slack = _form(Y, beta), tol * np.eye(Y.shape[1])
    if is_positive(form - slack):
        return "bowl"
    if is_positive(form + slack):
        return "trough"
    return "dome" if is_positive(-form - slack) else "saddle"


# Exactly representable: one is flat to 1e-9 but not to the last digit, the other not flat.
_NEARLY, _HARDLY = 2.0**-36, 2.0**-28

CLASSIFY = Exercise(
    name="classify",
    lesson=LESSON,
    points=3.0,
    expects="one of 'bowl', 'trough', 'saddle', 'dome', by the signs of the curvatures",
    reference=ref.classify,
    examples=(
        _shape_case("A1", A.Y, 1.0),
        _shape_case("A.25", A.Y, 0.25),
        _shape_case("A.5", A.Y, 0.5),
        _shape_case("C", C.Y, C.beta),
        _shape_case("I1", np.eye(2), 1.0),
        _shape_case("2I", 2 * np.eye(2), 1.0),
        _shape_case("wide", [[1, 0, 0]], 10.0),
        _shape_case("half", np.diag([1, 0.5]), 1.0),
        _shape_case("nearly above", np.eye(2), 1 + _NEARLY),
        _shape_case("nearly below", np.eye(2), 1 - _NEARLY),
        _shape_case("loose", np.diag([1.0, 0.5]), 0.75, tol=0.5),
        _shape_case("flat at the top", [[2, 0], [0, 1]], 1.0),
        _shape_case("hardly above", np.eye(2), 1 - _HARDLY),
        _shape_case("hardly below", np.eye(2), 1 + _HARDLY),
        _shape_case("two down, one up", np.diag([2.0, 1.5, 0.5]), 1.0),
        _shape_case("loose dome", np.diag([2.0, 1.25]), 1.0, tol=1.0),
        _shape_case("loose and hot", np.diag([2.0, 1.0]), 0.125, tol=0.625),
        # One token on a line: this curvature is 0.25 exactly, by whatever road.
        _shape_case("at tol", [[0.5]], 3.0, tol=0.25),
    ),
    groups=(
        Group(
            "ordinary",
            "bowls, saddles and domes of random tokens",
            0.60,
            tuple(
                _shape_case(f"{case.name} {name}", case.inputs["Y"], beta)
                for case in ordinary_cases(6501)
                for name, beta in (
                    ("hot", 0.75 * ref.critical_beta(case.inputs["Y"])),
                    ("warm", 1.25 * ref.critical_beta(case.inputs["Y"])),
                    ("cold", 1000.0),
                )
            ),
        ),
        Group(
            "extreme",
            "flat directions, exactly and nearly",
            0.25,
            (
                _shape_case("flat line", [[2, 0], [0, 1]], 0.25),
                _shape_case("flat everywhere", 0.5 * np.eye(3), 4.0),
                _shape_case("not quite", [[2, 0], [0, 1]], 0.25 * (1 + _NEARLY)),
                _shape_case("flat in the middle", np.diag([2.0, 1.0, 0.5]), 1.0),
                _shape_case("flat first axis", np.diag([0.5, 1.0]), 4.0),
                _shape_case("loose dome", np.diag([2.0, 1.5]), 1.0, tol=2.0),
                _shape_case("not quite yet", [[2, 0], [0, 1]], 0.25 * (1 - _NEARLY)),
                _shape_case("hardly flat", [[2, 0], [0, 1]], 0.25 * (1 - _HARDLY)),
                _shape_case("hardly a dome", np.diag([2.0, 2.0]), 0.25 * (1 + _HARDLY)),
                _shape_case("loose and hot", np.diag([2.0, 1.0, 0.5]), 0.1875, tol=0.375),
            ),
        ),
        Group(
            "edges",
            "edge shapes",
            0.15,
            (
                _shape_case("one token", [[-0.5, 2.0, 1.0]], 64.0),
                _shape_case("one dimension", [[1.0], [-0.5]], 1.0),
                _shape_case("zeros", np.zeros((2, 3)), 1000.0),
                Case("whole numbers", {"Y": np.array([[1, 2], [2, -1]]), "beta": 1}),
                _shape_case("at tol", [[-1.5]], 0.25, tol=0.4375),
            ),
        ),
    ),
    properties=("is_a_bowl_when_hot",),
    misconceptions=(
        Misconception(
            "dome-called-saddle", "What if every direction curves down?", _dome_called_saddle
        ),
        Misconception(
            "flat-called-down", "One direction is flat: which row of the table?", _flat_called_down
        ),
        Misconception("flat-called-bowl", "Flat is neither.", _flat_called_bowl),
        Misconception(
            "never-a-trough", "Rounding: exactly critical must be a trough.", _never_a_trough
        ),
        Misconception(
            "exactly-zero-only",
            "Rounding: a curvature of 1e-11 is flat, too.",
            _exactly_zero_only,
        ),
        Misconception("token-by-token", "n directions or d directions?", _shape_by_tokens),
        Misconception("beta-missing", "beta.", _shape_without_beta),
        Misconception(
            "determinant", "Two negatives multiply to a positive.", _shape_by_determinant
        ),
        Misconception(
            "any-flat-a-trough",
            "A trough goes down nowhere: look at the lowest curvature first.",
            _any_flat_a_trough,
        ),
        Misconception("tol-ignored", "tol is an argument, here not the usual 1e-9.", _tol_ignored),
        Misconception(
            "tol-too-wide",
            "tol is 1e-9 unless the call says otherwise; np.isclose has a tolerance of its own.",
            _tol_too_wide,
        ),
        Misconception(
            "shorter-than-tol",
            "At most tol counts as flat: and exactly tol?",
            _shorter_than_tol,
        ),
        Misconception(
            "tol-for-an-eigenvalue",
            "tol is for the curvature, 1 - beta*lambda, not for lambda.",
            _tol_for_an_eigenvalue,
        ),
        Misconception(
            "dome-without-tol",
            "Below 0 means below -tol, for the highest curvature, too.",
            _dome_without_tol,
        ),
        Misconception(
            "dome-by-two",
            "In three dimensions there are three curvatures: do all of them point down?",
            _dome_by_two,
        ),
    ),
    alternatives=(
        Alternative("counts", _shape_by_counts),
        Alternative("select", _shape_by_table),
        Alternative("match", _shape_by_match),
        Alternative("cholesky", _shape_by_cholesky),
        Alternative("inertia", _shape_by_inertia),
        Alternative("callable-object", CalledObject(_shape_by_counts)),
        Alternative("prints-and-warns", noisy(_shape_by_match)),
    ),
)


# --- phase_diagram: the part of the mastery project that code can check -------------------------

SHAPES = ("bowl", "trough", "saddle", "dome")


def phase_diagram(Y, ns, betas):
    """Give the number of the shape for each beta (rows) and each count of tokens (columns)."""
    return np.array([[SHAPES.index(ref.classify(Y[:n], beta)) for n in ns] for beta in betas])


def _diagram_by(shape):
    """Make a diagram with another rule for the shape, a function of tokens and beta."""
    return lambda Y, ns, betas: np.array(
        [[SHAPES.index(shape(Y[:n], beta)) for n in ns] for beta in betas]
    )


def _diagram_by_rule(Y, ns, betas):
    """Use the edges of a random landscape's spectrum instead of its eigenvalues."""
    size, d = (Y**2).sum(axis=1).mean(), Y.shape[1]

    def code(n, beta):
        root = np.sqrt(n / d)
        if beta * size * (1 + root) ** 2 < 1:
            return 0
        return 3 if n >= d and beta * size * (1 - root) ** 2 > 1 else 2

    return np.array([[code(n, beta) for n in ns] for beta in betas])


def _diagram_with_tol(tol):
    return _diagram_by(lambda Y, beta: ref.classify(Y, beta, tol))


def _diagram_of_single_tokens(Y, ns, betas):
    return np.array([[SHAPES.index(ref.classify(Y[n - 1 : n], b)) for n in ns] for b in betas])


def _diagram_by_columns(Y, ns, betas):
    """Take the eigenvalues once per column; beta only scales them."""
    codes = np.empty((len(betas), len(ns)), dtype=int)
    for column, n in enumerate(ns):
        values = 1 - np.outer(betas, np.linalg.eigvalsh(Y[:n].T @ Y[:n])[::-1])
        down, flat = values[:, 0] < -1e-9, np.abs(values[:, 0]) <= 1e-9
        codes[:, column] = np.where(values[:, -1] < -1e-9, 3, np.where(down, 2, flat))
    return codes


def _diagram_by_growing(Y, ns, betas):
    """Add one token after another to the Gram matrix."""
    codes = np.zeros((len(betas), len(ns)))
    gram = np.zeros((Y.shape[1],) * 2)
    for n, row in enumerate(Y, start=1):
        gram = gram + np.outer(row, row)
        for i, beta in enumerate(betas):
            values = np.linalg.eigvalsh(np.eye(len(gram)) - beta * gram)
            down, flat = (values < -1e-9).sum(), (np.abs(values) <= 1e-9).any()
            code = 3 if down == len(values) else 2 if down else int(flat)
            codes[i, np.asarray(ns) == n] = code
    return codes


def _diagram_by_all_eigenvalues(Y, ns, betas):
    """Stack all forms in one array of four axes."""
    grams = np.stack([Y[:n].T @ Y[:n] for n in ns])
    forms = np.eye(Y.shape[1]) - np.asarray(betas)[:, None, None, None] * grams
    values = np.linalg.eigvalsh(forms)
    low, high = values[..., 0], values[..., -1]
    return np.select([low > 1e-9, low >= -1e-9, high < -1e-9], [0, 1, 3], 2)


def _diagram_by_singular_values(Y, ns, betas):
    def code(n, beta):
        sigma = svdvals(Y[:n])
        steepest, flattest = beta * sigma[0] ** 2, beta * sigma[-1] ** 2
        if steepest <= 1 + 1e-9:
            return int(steepest >= 1 - 1e-9)
        return 3 if n >= Y.shape[1] and flattest > 1 + 1e-9 else 2

    return np.array([[code(n, beta) for n in ns] for beta in betas], dtype=np.int8)


def _diagram_case(name, Y, ns, betas):
    return Case(
        name,
        {
            "Y": np.array(Y, dtype=float),
            "ns": np.array(ns),
            "betas": np.array(betas, dtype=float),
        },
    )


_RNG = np.random.default_rng(6601)
_EIGHT, _MANY = _RNG.normal(size=(8, 2)), _RNG.normal(size=(96, 24))
_UNIT = _MANY / np.linalg.norm(_MANY, axis=1, keepdims=True)
_STEPS = np.array([[1.0, 0.0], [0.0, 0.5], [2.0, 0.0], [0.0, 2.0]])

PHASES = Exercise(
    name="phase_diagram",
    lesson=LESSON,
    points=3.0,
    expects="a table of 0, 1, 2 and 3 with one row per beta and one column per entry of ns",
    reference=phase_diagram,
    examples=(
        _diagram_case("A", A.Y, [1, 2, 3], [0.25, 0.5, 1.0]),
        # At beta = 4 and n = 2 one direction is flat and the other goes down.
        _diagram_case("steps", _STEPS, [1, 2, 3, 4], [0.125, 0.25, 1.0, 2.0, 4.0, 5.0]),
        _diagram_case("nearly", np.eye(2), [1, 2], [1 - _NEARLY, 1 + _NEARLY, 2.0]),
        _diagram_case("hardly", np.eye(2), [1, 2], [1 - _HARDLY, 1 + _HARDLY]),
        _diagram_case("any order", _STEPS, [4, 2], [5.0, 0.0625, 2.0]),
        _diagram_case("S", PUBLIC[-1].inputs["Y"], [2, 1], [1.5, 0.25]),
    ),
    groups=(
        Group(
            "ordinary",
            "random tokens in two dimensions",
            0.5,
            (
                _diagram_case("eight tokens", _EIGHT, [1, 2, 4, 8], [0.0625, 0.25, 1.0, 4.0]),
                _diagram_case("one column", _EIGHT, [5], [0.125, 0.5, 2.0]),
                _diagram_case("one row", _EIGHT, [8, 3, 1], [0.75]),
                _diagram_case("any order", _EIGHT, [5, 1, 8], [2.0, 0.03125, 0.5]),
            ),
        ),
        Group(
            "large",
            "many tokens in many dimensions",
            0.25,
            (
                _diagram_case("unit", _UNIT, [6, 24, 48, 96], [0.125, 0.5, 2.0, 8.0]),
                _diagram_case("normal", _MANY, [12, 24, 72], [0.01, 0.1, 1.0]),
            ),
        ),
        Group(
            "edges",
            "flat directions and edge shapes",
            0.25,
            (
                _diagram_case("flat", np.diag([2.0, 1.0, 0.5]), [1, 2, 3], [0.25, 1.0, 4.0, 8.0]),
                _diagram_case("one dimension", [[1.0], [-2.0]], [1, 2], [0.125, 0.2, 1.0, 3.0]),
                _diagram_case("zeros", np.zeros((2, 2)), [1, 2], [1.0, 64.0]),
                _diagram_case(
                    "nearly and hardly",
                    0.5 * np.eye(2),
                    [2, 1],
                    [4 * (1 - _HARDLY), 4 * (1 - _NEARLY), 4 * (1 + _NEARLY), 4 * (1 + _HARDLY)],
                ),
            ),
        ),
    ),
    properties=("starts_with_bowls",),
    misconceptions=(
        Misconception(
            "turned-over",
            "Rows are betas, columns are numbers of tokens.",
            lambda Y, ns, betas: phase_diagram(Y, ns, betas).T.copy(),
        ),
        Misconception(
            "all-tokens-in-every-column",
            "How many tokens does each column use?",
            lambda Y, ns, betas: phase_diagram(Y, [len(Y)] * len(ns), betas),
        ),
        Misconception(
            "one-token-per-column",
            "A column for n uses the first n tokens together.",
            _diagram_of_single_tokens,
        ),
        Misconception(
            "rule-instead-of-curvatures",
            "The rule holds for many random tokens: classify by the curvatures you compute.",
            _diagram_by_rule,
        ),
        Misconception(
            "token-by-token", "n directions or d directions?", _diagram_by(_shape_by_tokens)
        ),
        Misconception(
            "never-a-trough",
            "Rounding: exactly critical must be a trough.",
            _diagram_by(_never_a_trough),
        ),
        Misconception(
            "no-domes", "What if every direction curves down?", _diagram_by(_dome_called_saddle)
        ),
        Misconception(
            "any-flat-a-trough",
            "A trough goes down nowhere: look at the lowest curvature first.",
            _diagram_by(_any_flat_a_trough),
        ),
        Misconception(
            "flat-called-down",
            "One direction is flat: which row of the table?",
            _diagram_by(_flat_called_down),
        ),
        Misconception(
            "tol-too-wide",
            "A curvature of 4e-9 is not flat: the tolerance of classify is 1e-9.",
            _diagram_with_tol(1e-6),
        ),
        Misconception(
            "sorted-first",
            "Keep the order in which ns and betas come.",
            lambda Y, ns, betas: phase_diagram(Y, np.sort(ns), np.sort(betas)),
        ),
        Misconception(
            "one-token-less",
            "A column for n uses n tokens: where does a slice end?",
            lambda Y, ns, betas: phase_diagram(Y, [max(n - 1, 1) for n in ns], betas),
        ),
    ),
    alternatives=(
        Alternative("columns", _diagram_by_columns),
        Alternative("growing", _diagram_by_growing),
        Alternative("all-at-once", _diagram_by_all_eigenvalues),
        Alternative("singular-values", _diagram_by_singular_values),
        Alternative("callable-object", CalledObject(_diagram_by_columns)),
        Alternative("prints-and-warns", noisy(_diagram_by_columns)),
    ),
)

EXERCISES = (LINEAR_ENERGY, LINEAR_STEP, CURVATURES, CRITICAL_BETA, CLASSIFY, PHASES)
