"""The theory of lessons 01 to 07: golden values, identities, and the numbers the lessons quote."""

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq, minimize

from autograder.reference import (
    cccp,
    gmm_polarization,
    linear_saddle,
    lse_gradient,
    normal_hop,
    one_step_vs_settling,
    tanh_modes,
)
from autograder.reference.cccp import (
    attention_output,
    cccp_path,
    cccp_step,
    energy_grad,
    hop_then_read,
    token_centers,
)
from autograder.reference.fixtures import FIXTURES, HEADS, PRESETS, A, B, C, G
from autograder.reference.gmm_polarization import (
    energy,
    energy_gmm,
    log_density,
    log_mixture_weights,
    posterior,
)
from autograder.reference.linear_saddle import (
    classify,
    critical_beta,
    curvatures,
    linear_energy,
    linear_step,
)
from autograder.reference.lse_gradient import (
    attention_weights,
    complex_step_grad,
    fd_grad,
    log_sum_exp,
    lse,
    lse_grad,
    lse_hessian,
)
from autograder.reference.normal_hop import (
    drop_parts,
    hop_apex,
    hop_length,
    unit_normal,
    vertical_drop,
)
from autograder.reference.one_step_vs_settling import (
    count_minima,
    gap_curve,
    local_rate,
    one_step_gap,
    settle,
)
from autograder.reference.tanh_modes import (
    log_cosh,
    mode_centers,
    sign_patterns,
    stable_modes,
    tanh_energy,
    tanh_energy_gmm,
    tanh_step,
)
from autograder.reference.validation import validate

# --------------------------------------------------------------------- golden values

LESSONS = {
    lse_gradient: "lse attention_weights lse_grad fd_grad lse_hessian",
    gmm_polarization: "energy log_mixture_weights energy_gmm posterior log_density",
    cccp: "energy_grad cccp_step token_centers attention_output hop_then_read",
    normal_hop: "unit_normal hop_length hop_apex vertical_drop drop_parts",
    tanh_modes: "log_cosh tanh_energy mode_centers tanh_energy_gmm tanh_step stable_modes",
    linear_saddle: "linear_energy linear_step curvatures critical_beta classify",
    one_step_vs_settling: "settle one_step_gap local_rate gap_curve count_minima",
}
REFERENCE = {
    name: getattr(module, name) for module, names in LESSONS.items() for name in names.split()
}
GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text())["cases"]
GOLDEN_CASES = [
    pytest.param(name, case["in"], case["out"], id=f"{name}-{case['case']}")
    for name, cases in GOLDEN.items()
    for case in cases
]

# Most functions are algebra and agree to rounding; these stop early or divide differences.
TOLERANCE = {"fd_grad": 1e-8, "settle": 2e-8, "one_step_gap": 1e-6, "gap_curve": 1e-6}

DIFFERENTIATED = {
    "x^2 + 3xy": lambda xi: xi[0] ** 2 + 3 * xi[0] * xi[1],
    "lse": lse,
    "energy": energy,
}


def call(name, inputs):
    """Call a reference function with the inputs of a golden case."""
    if name == "fd_grad":
        f, xi, *rest = inputs.values()
        return fd_grad(lambda x: DIFFERENTIATED[f](x, *rest), xi)
    return REFERENCE[name](**inputs)


def test_every_function_has_golden_values():
    assert set(GOLDEN) == set(REFERENCE)
    assert all(GOLDEN.values())


@pytest.mark.parametrize(("name", "inputs", "expected"), GOLDEN_CASES)
def test_golden(name, inputs, expected):
    got = call(name, inputs)
    if name == "settle":
        got, _, converged = got
        assert converged
    if isinstance(expected, str):
        assert got == expected
        return
    tolerance = TOLERANCE.get(name, 1e-9)
    assert np.shape(got) == np.shape(expected)
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("name", "inputs", "expected"), GOLDEN_CASES)
def test_inputs_are_left_alone(name, inputs, expected):
    arrays = {key: np.array(x) for key, x in inputs.items() if isinstance(x, list)}
    before = {key: array.copy() for key, array in arrays.items()}
    result = call(name, {**inputs, **arrays})
    for key, array in arrays.items():
        np.testing.assert_array_equal(array, before[key])
        for part in result if isinstance(result, tuple) else (result,):
            assert not np.shares_memory(np.asarray(part), array)


LANDSCAPE_FUNCTIONS = [f for name, f in REFERENCE.items() if "xi" in GOLDEN[name][0]["in"]]
LANDSCAPE_FUNCTIONS.remove(fd_grad)


def test_fixtures_are_the_inputs_of_the_golden_values():
    for case in GOLDEN["lse"]:
        fixture = FIXTURES[case["case"]]
        for key, value in case["in"].items():
            np.testing.assert_array_equal(getattr(fixture, key), value)
    for case in GOLDEN["attention_output"]:
        head = HEADS[case["case"].split()[0]]
        for key, value in zip(head._fields, head, strict=True):
            np.testing.assert_array_equal(case["in"][key], value)


@pytest.mark.parametrize("name", FIXTURES)
def test_every_fixture_gives_finite_numbers(name):
    for f in LANDSCAPE_FUNCTIONS:
        result = f(*FIXTURES[name])
        assert np.isfinite(result[0] if f is settle else result).all(), f.__name__


# --------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("xi", "Y", "beta"),
    [
        ([1.0], [1.0], 1.0),
        ([], np.empty((0, 0)), 1.0),
        ([1.0, 2.0], np.empty((0, 2)), 1.0),
        ([1.0], [[1.0, 2.0]], 1.0),
        ([[1.0, 2.0]], [[1.0, 2.0]], 1.0),
        ([1.0], [[1.0]], 0.0),
        ([1.0], [[1.0]], -1.0),
        ([1.0], [[1.0]], np.inf),
        ([1.0], [[1.0]], np.nan),
    ],
)
def test_bad_landscapes_are_refused(xi, Y, beta):
    for f in [validate, *LANDSCAPE_FUNCTIONS]:
        with pytest.raises(ValueError):
            f(xi, Y, beta)


def test_lists_and_small_types_are_converted():
    xi, Y, beta = validate([1, 2], np.ones((3, 2), dtype=np.float32), 1)
    assert xi.dtype == Y.dtype == np.float64
    assert isinstance(beta, float)


def test_bad_sets_of_rows_are_refused():
    for f in (mode_centers, stable_modes, critical_beta):
        for Y in ([1.0, 2.0], np.empty((0, 2))):
            with pytest.raises(ValueError):
                f(Y)
    with pytest.raises(ValueError):
        attention_output(np.empty((0, 2)), *HEADS["H1"][1:])


def test_enumeration_stops_at_16_tokens():
    for f in (mode_centers, stable_modes):
        assert len(f(np.ones((16, 1)))) == 2**16
        with pytest.raises(ValueError, match="16"):
            f(np.ones((17, 1)))


def test_readout_refuses_a_nearly_singular_M():
    almost = np.array([[1.0, 1.0], [1.0, 1.0 + 1e-11]])
    X, eye = A.Y, np.eye(2)
    for W_Q, W_K in ((almost, eye), (eye, almost), HEADS["H3"][1:3]):
        with pytest.raises(ValueError, match="condition"):
            hop_then_read(X, W_Q, W_K, eye)


# --------------------------------------------------------------------- random inputs


def landscapes(count, seed, betas=(0.01, 100.0), most=11):
    """Yield random (xi, Y, beta): up to `most` centres, up to 7 dimensions, log-uniform beta."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        n, d = rng.integers(1, most + 1), rng.integers(1, 8)
        beta = math.exp(rng.uniform(*np.log(betas)))
        yield rng.normal(size=d), rng.normal(size=(n, d)), beta


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def scale(*numbers):
    """Tell how large a rounding error may count as 1."""
    return 1 + sum(abs(number) for number in numbers)


def on_circle(degrees):
    return np.array([[math.cos(t), math.sin(t)] for t in np.radians(degrees)])


def census(Y, beta):
    """Count valleys from every centre and from a point next to their mean."""
    Y = np.asarray(Y, dtype=float)
    return count_minima(Y, beta, np.vstack([Y, Y.mean(axis=0) + 1e-3]))


# --------------------------------------------------------------------- lesson 01


def test_lse_lies_between_the_maximum_and_the_maximum_plus_log_n():
    for xi, Y, beta in landscapes(2000, seed=11):
        top, value = (Y @ xi).max(), lse(xi, Y, beta)
        assert top - 1e-12 <= value <= top + math.log(len(Y)) / beta + 1e-12
    equal = np.ones((5, 2))
    assert lse([2, 3], equal, 0.5) == pytest.approx(5 + math.log(5) / 0.5, abs=1e-12)


@pytest.mark.parametrize("beta", [0.1, 1, 16, 256])
@pytest.mark.parametrize("fixture", [A, B])
def test_softmax_average_is_the_gradient_of_lse(fixture, beta):
    xi, Y, _ = fixture
    gradient = complex_step_grad(lambda x: lse(x, Y, beta), xi)
    np.testing.assert_allclose(lse_grad(xi, Y, beta), gradient, rtol=0, atol=1e-15)


def test_hessian_is_a_covariance_and_bounded_by_the_enclosing_ball():
    for xi, Y, beta in landscapes(100, seed=12):
        hessian = lse_hessian(xi, Y, beta)
        columns = [
            complex_step_grad(lambda x, j=j, Y=Y, beta=beta: lse_grad(x, Y, beta)[j], xi)
            for j in range(len(xi))
        ]
        np.testing.assert_allclose(hessian, columns, rtol=0, atol=1e-12 * scale(beta))
        curvature = np.linalg.eigvalsh(hessian)
        assert curvature[0] >= -1e-12 * scale(beta)
        # Walking towards the farthest centre finds the ball; every ball on the way encloses.
        middle = Y.mean(axis=0)
        for k in range(1, 200):
            middle += (Y[np.argmax(((Y - middle) ** 2).sum(axis=1))] - middle) / (k + 1)
        radius = np.linalg.norm(Y - middle, axis=1).max()
        assert curvature[-1] <= beta * radius**2 + 1e-12 * scale(beta)
    # Two centres with a tie between them reach the bound.
    assert local_rate([0, 0.3], [[0.5, 0], [-0.5, 0]], 8.0) == pytest.approx(8 * 0.5**2)


def test_adding_a_constant_to_every_score_changes_no_weight():
    for xi, Y, beta in (A, B):
        shifted_xi = np.append(xi, 1.0)
        shifted_Y = np.column_stack([Y, np.full(len(Y), 1000.0)])
        rise = lse(shifted_xi, shifted_Y, beta) - lse(xi, Y, beta)
        assert rise == pytest.approx(1000, abs=1e-12)
        change = attention_weights(shifted_xi, shifted_Y, beta) - attention_weights(xi, Y, beta)
        assert np.abs(change).max() == 0


def test_lse_is_the_best_trade_of_mean_score_and_entropy():
    rng = np.random.default_rng(13)

    def entropy(p):
        p = p[p > 0]
        return -(p * np.log(p)).sum()

    for xi, Y, beta in landscapes(300, seed=14):
        a, scores, value = attention_weights(xi, Y, beta), Y @ xi, lse(xi, Y, beta)
        slack = 1e-11 * scale(value, 1 / beta)
        assert a @ scores + entropy(a) / beta == pytest.approx(value, abs=slack)
        other = rng.dirichlet(np.ones(len(Y)))
        assert other @ scores + entropy(other) / beta <= value + slack
        slope = (lse(xi, Y, beta * 1.0001) - lse(xi, Y, beta / 1.0001)) / (beta * 2.0000e-4)
        assert slope == pytest.approx(-entropy(a) / beta**2, rel=1e-3, abs=1e-7 / beta)


def test_duplicates_and_a_single_token():
    for xi, Y, beta in landscapes(200, seed=15):
        twice = np.vstack([Y, Y])
        np.testing.assert_allclose(cccp_step(xi, twice, beta), cccp_step(xi, Y, beta), atol=1e-12)
        fall = energy(xi, Y, beta) - energy(xi, twice, beta)
        assert fall == pytest.approx(math.log(2) / beta, abs=1e-11 * scale(1 / beta))
    xi, Y, beta = C
    assert attention_weights(*C) == [1]
    assert lse(*C) == Y[0] @ xi
    assert not lse_hessian(*C).any()
    np.testing.assert_array_equal(lse_grad(*C), Y[0])


def test_hot_and_cold_limits():
    xi, Y, _ = A
    mean, scores = Y.mean(axis=0), Y @ xi
    assert lse(xi, Y, 1e-3) - math.log(3) / 1e-3 == pytest.approx(0.0628, abs=5e-5)
    assert scores.mean() == 0.0625
    covariance = (Y - mean).T @ (Y - mean) / 3
    residual = lse_grad(xi, Y, 0.01) - mean - 0.01 * covariance @ xi
    assert np.abs(residual).max() == pytest.approx(1.2e-5, abs=1e-6)
    excess = [lse(xi, Y, beta) - scores.max() for beta in (10, 100, 1000)]
    np.testing.assert_allclose(excess, [0.0143, 7e-11, 0], rtol=0.05, atol=1e-15)


def test_predictions_of_lesson_01():
    assert lse([1], np.zeros((10, 1)), 2.0) == pytest.approx(1.151, abs=5e-4)
    # Share of the best token, one score ahead of 1 rival or of 999.
    for rivals, beta, shown in ((1, math.log(99), 4.60), (999, math.log(99 * 999), 11.50)):
        a = attention_weights([1], [[1]] + [[0]] * rivals, beta)
        assert a[0] == pytest.approx(0.99, abs=1e-12)
        assert beta == pytest.approx(shown, abs=0.005)
    assert lse([1], [[3], [2], [1], [0]], 0.01) == pytest.approx(140.1, abs=0.05)


@pytest.mark.parametrize(("beta", "low", "high"), [(1.0, 1.75, 2.15), (0.125, 78, 84)])
def test_effective_number_of_tokens(beta, low, high):
    rng = np.random.default_rng(16)
    counts = []
    for _ in range(400):
        a = attention_weights(rng.normal(size=64), rng.normal(size=(128, 64)), beta)
        counts.append(math.exp(-(a * np.log(a)).sum()))
    assert low < np.median(counts) < high


def test_finite_differences_have_a_best_step():
    xi, Y, exact = B.xi, B.Y, lse_grad(B.xi, B.Y, 1.0)
    error = {
        h: np.abs(fd_grad(lambda x: lse(x, Y, 1.0), xi, h) - exact).max()
        for h in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
    }
    assert min(error, key=error.get) == 1e-5
    assert error[1e-5] < 2e-11
    for h, shown in ((1e-2, 5.2e-6), (1e-3, 5.2e-8), (1e-4, 5.2e-10)):
        assert error[h] == pytest.approx(shown, rel=0.02)
    assert 1e-9 < error[1e-8] < 1e-7
    steps = 1e-5 * np.eye(3)
    forward = np.array([lse(xi + e, Y, 1.0) - lse(xi, Y, 1.0) for e in steps]) / 1e-5
    assert np.abs(forward - exact).max() == pytest.approx(3.8e-6, rel=0.02)


def test_finite_differences_fail_near_a_tie_at_large_beta():
    xi, Y = np.array([0.5, 0.499]), np.eye(2)  # two scores 0.001 apart

    def error(beta):
        return np.abs(fd_grad(lambda x: lse(x, Y, beta), xi) - lse_grad(xi, Y, beta)).max()

    assert error(1) < 3e-11
    assert error(16) < 3e-11
    assert error(256) == pytest.approx(3.4e-8, rel=0.03)
    assert error(4096) == pytest.approx(4.4e-6, rel=0.03)


# --------------------------------------------------------------------- lesson 02


def test_energy_is_minus_the_log_of_a_gaussian_mixture():
    for xi, Y, beta in landscapes(1000, seed=21):
        value = energy(xi, Y, beta)
        assert energy_gmm(xi, Y, beta) == pytest.approx(value, abs=1e-13 * scale(value, 1 / beta))
        a = attention_weights(xi, Y, beta)
        np.testing.assert_allclose(posterior(xi, Y, beta), a, rtol=0, atol=1e-12)


@pytest.mark.parametrize("beta", [0.5, 1, 4])
def test_density_integrates_to_one_and_differs_from_the_energy_by_a_constant(beta):
    axis = np.linspace(-12, 12, 81)
    grid = [np.array(point) for point in itertools.product(axis, axis)]
    mass = sum(math.exp(log_density(xi, A.Y, beta)) for xi in grid) * (axis[1] - axis[0]) ** 2
    assert mass == pytest.approx(1, abs=1e-12)
    total = log_sum_exp(log_mixture_weights(A.Y, beta)) + math.log(2 * math.pi / beta)
    for xi in grid[::300]:
        gap = energy(xi, A.Y, beta) + log_density(xi, A.Y, beta) / beta
        assert gap == pytest.approx(-total / beta, abs=1e-11)


def test_curvature_is_at_most_one_and_the_energy_is_bounded_below():
    for xi, Y, beta in landscapes(1000, seed=22):
        assert np.linalg.eigvalsh(np.eye(len(xi)) - lse_hessian(xi, Y, beta))[-1] <= 1 + 1e-12
        radius = np.linalg.norm(Y, axis=1).max()
        assert energy(xi, Y, beta) >= -(radius**2) / 2 - math.log(len(Y)) / beta - 1e-12


def test_small_clouds_have_one_valley():
    rng = np.random.default_rng(23)
    for _ in range(20):
        n, d = rng.integers(2, 9), rng.integers(1, 6)
        Y = rng.normal(size=(n, d))
        beta = 0.99 / np.linalg.norm(Y - Y.mean(axis=0), axis=1).max() ** 2
        assert census(Y, beta) == 1
    for n, d in ((2, 2), (3, 2), (8, 2), (5, 4), (11, 16), (8, 64)):
        assert census(unit(rng.normal(size=(n, d))), d**-0.5) == 1


@pytest.mark.parametrize(
    ("Y", "critical"),
    [
        (PRESETS["pair"].Y, 4.0),
        ([[1, 0], [-1, 0]], 1.0),
        ([[2, 0], [-2, 0]], 0.25),
        (PRESETS["far pair"].Y, 4.0),
        (PRESETS["unequal pair"].Y, 2.8092),
        (PRESETS["fold"].Y, 7.8445),
    ],
)
def test_two_centres_make_two_valleys_above_a_critical_beta(Y, critical):
    assert census(Y, 0.99 * critical) == 1
    assert census(Y, 1.01 * critical) == 2


def fold_beta(y1, y2):
    """Solve the fold condition for two centres of unequal length."""
    r = np.linalg.norm(np.subtract(y1, y2)) / 2
    mu = abs(np.dot(y1, y1) - np.dot(y2, y2)) / (4 * r)

    def margin(beta):
        t = math.sqrt(1 - 1 / (beta * r**2))
        return r * t - math.atanh(t) / (beta * r) - mu

    return brentq(margin, (1 + 1e-9) / r**2, 1e3)


def test_fold_condition_gives_the_critical_beta_of_unequal_pairs():
    assert fold_beta(*PRESETS["unequal pair"].Y) == pytest.approx(2.80920066872, rel=1e-9)
    assert fold_beta(*PRESETS["fold"].Y) == pytest.approx(7.84453878306, rel=1e-9)


def test_a_shadowed_centre_never_has_a_valley():
    shadow = PRESETS["shadow"].Y
    assert (shadow[0] @ shadow[0]) <= shadow[0] @ shadow[1]
    assert [census(shadow, beta) for beta in (1, 30, 1000)] == [1, 1, 1]


def test_a_triangle_has_more_valleys_than_centres():
    Y = PRESETS["equilateral"].Y
    counts = {beta: census(Y, beta) for beta in (1.8, 1.8302, 1.8306, 1.9, 1.99, 2.01, 3)}
    assert list(counts.values()) == [1, 1, 4, 4, 4, 3, 3]


def test_eight_centres_on_a_circle_split_long_before_the_pair_rule():
    Y = on_circle(range(0, 360, 45))
    assert census(Y, 2.1) == 8
    assert 4 / ((Y[0] - Y[1]) @ (Y[0] - Y[1])) == pytest.approx(6.83, abs=0.005)
    for beta, shown in ((2.1, 4.6e-9), (3, 2.8e-5), (6.83, 4.4e-3), (16, 3.1e-2)):
        valley, _, _ = settle(Y[0], Y, beta, tol=1e-13)
        # Between two centres symmetry leads to the saddle.
        saddle, _, _ = settle(on_circle([22.5])[0], Y, beta, tol=1e-13)
        barrier = energy(saddle, Y, beta) - energy(valley, Y, beta)
        assert barrier == pytest.approx(shown, rel=0.02)


@pytest.mark.parametrize(
    ("d", "n", "shown"),
    [(2, 8, 0.461), (2, 32, 0.163), (2, 128, 0.051), (8, 32, 0.788), (16, 32, 0.985), (64, 32, 1)],
)
def test_share_of_gaussian_tokens_that_are_valleys_in_the_cold(d, n, shown):
    Y = np.random.default_rng(24).normal(size=(400, n, d))
    scores = Y @ Y.transpose(0, 2, 1)
    own = np.diagonal(scores, axis1=1, axis2=2)
    share = (own == scores.max(axis=2)).mean()
    assert share == pytest.approx(shown, abs=0.025)


def test_long_tokens_have_valleys_of_their_own_only_in_many_dimensions():
    rng = np.random.default_rng(25)

    def mean_count(d):
        return np.mean(
            [census(math.sqrt(d) * unit(rng.normal(size=(8, d))), d**-0.5) for _ in range(6)]
        )

    assert mean_count(2) < 1.3
    assert 1.2 < mean_count(16) < 2.5
    assert mean_count(64) == 8


def test_mixture_form_loses_digits_that_the_lse_form_keeps():
    rng = np.random.default_rng(26)

    def worst(size):
        pairs = ((rng.normal(size=3) / size, rng.normal(size=(4, 3)) * size) for _ in range(50))
        return max(abs(energy_gmm(xi, Y, 1.0) - energy(xi, Y, 1.0)) for xi, Y in pairs)

    assert worst(1) < 1e-14
    assert 1e-9 < worst(1e4) < 1e-6
    assert worst(1e8) > 0.1


def test_predictions_of_lesson_02():
    assert [census(PRESETS["pair"].Y, beta) for beta in (1, 2, 3.9, 4.1)] == [1, 1, 1, 2]
    log_pi = log_mixture_weights([[8.8], [8]], 1.0)
    assert math.exp(log_pi[0] - log_pi[1]) == pytest.approx(829, abs=0.5)
    # Largest norm whose weight is still a float.
    largest = math.log(np.finfo(float).max)
    for beta, shown in ((1 / 8, 106.6), (2**-0.5, 44.8), (1, 37.7), (16, 9.42)):
        assert math.sqrt(2 * largest / beta) == pytest.approx(shown, abs=0.05)
    # Without the weights pi the valley of fixture A moves.
    valley, _, _ = settle(*A)
    bumps = minimize(lambda x: -log_sum_exp(-0.5 * ((x - A.Y) ** 2).sum(axis=1)), valley)
    assert np.linalg.norm(bumps.x - valley) == pytest.approx(0.49, abs=0.005)


# --------------------------------------------------------------------- lesson 03


def test_a_hop_is_a_gradient_step_of_size_one():
    for xi, Y, beta in landscapes(500, seed=31):
        hop = xi - energy_grad(xi, Y, beta)
        np.testing.assert_allclose(cccp_step(xi, Y, beta), hop, rtol=0, atol=1e-14)
        gradient = complex_step_grad(lambda x, Y=Y, beta=beta: energy(x, Y, beta), xi)
        np.testing.assert_allclose(energy_grad(xi, Y, beta), gradient, rtol=0, atol=1e-12)


def test_a_hop_lowers_the_energy_by_at_least_half_the_squared_gradient():
    ratios = []
    for xi, Y, beta in landscapes(2000, seed=32):
        g = energy_grad(xi, Y, beta)
        fall = energy(xi, Y, beta) - energy(cccp_step(xi, Y, beta), Y, beta)
        half = g @ g / 2
        assert fall >= half - 1e-12 * scale(half, 1 / beta)
        ratios.append(fall / half)
        if len(Y) == 1:
            assert fall == pytest.approx(half, abs=1e-12 * scale(half))
    assert np.min(ratios) == pytest.approx(1, abs=1e-6)


def test_the_tangent_majorises_the_energy():
    rng = np.random.default_rng(33)
    for xi, Y, beta in landscapes(500, seed=34):
        zeta = rng.normal(size=len(xi))
        tangent = lse(xi, Y, beta) + lse_grad(xi, Y, beta) @ (zeta - xi)
        assert zeta @ zeta / 2 - tangent >= energy(zeta, Y, beta) - 1e-12 * scale(1 / beta)


def test_steps_up_to_two_never_raise_the_energy():
    # How often a longer step does depends on the landscapes drawn: here on beta 0.1 to 32.
    raised = {eta: [] for eta in (0.1, 1.0, 2.0, 2.1, 2.5, 4.0)}
    for xi, Y, beta in landscapes(1000, seed=35, betas=(0.1, 32)):
        g, start = energy_grad(xi, Y, beta), energy(xi, Y, beta)
        for eta, record in raised.items():
            record.append(energy(xi - eta * g, Y, beta) > start + 1e-12 * scale(start))
    share = {eta: np.mean(record) for eta, record in raised.items()}
    assert share[0.1] == share[1.0] == share[2.0] == 0
    assert 0.3 < share[2.1] < 0.6
    assert share[2.1] < share[2.5] < share[4.0]
    assert share[4.0] > 0.9


@pytest.mark.parametrize(("d", "slack"), [(2, 1e-11), (8, 1e-11), (64, 1e-9)])
def test_one_hop_and_a_readout_are_an_attention_head(d, slack):
    rng = np.random.default_rng(36)
    worst = 0
    for _ in range(20):
        X, W = rng.normal(size=(16, d)), rng.normal(size=(3, d, d)) / math.sqrt(d)
        direct = attention_output(X, *W)
        error = np.abs(hop_then_read(X, *W) - direct).max() / np.abs(direct).max()
        worst = max(worst, error)
    assert 1e-16 < worst < slack


@pytest.mark.parametrize("name", HEADS)
def test_scores_of_a_head_are_scores_of_its_centres(name):
    X, W_Q, W_K, W_V = HEADS[name]
    Y, beta = token_centers(X, W_Q, W_K), W_K.shape[1] ** -0.5
    np.testing.assert_allclose(Y @ X[-1], (X @ W_K) @ (X[-1] @ W_Q), atol=1e-14)
    a = attention_weights(X[-1], Y, beta)
    np.testing.assert_allclose(attention_output(*HEADS[name]), a @ X @ W_V, atol=1e-14)


def test_another_bowl_needs_an_inverse():
    rng = np.random.default_rng(37)
    for xi, Y, beta in landscapes(300, seed=38):
        root = rng.normal(size=(len(xi), len(xi)))
        bowl = root @ root.T + 0.5 * np.eye(len(xi))
        landing = np.linalg.solve(bowl, lse_grad(xi, Y, beta))

        def height(x, bowl=bowl, Y=Y, beta=beta):
            return x @ bowl @ x / 2 - lse(x, Y, beta)

        start = height(xi)
        assert height(landing) <= start + 1e-12 * scale(start, 1 / beta)


def test_predictions_of_lesson_03():
    far = np.array([10.0, -20.0])
    landing = cccp_step(far, A.Y, 1.0)
    assert np.linalg.norm(landing) == pytest.approx(1.03, abs=0.005)
    assert energy(far, A.Y, 1.0) == pytest.approx(227.5, abs=1e-6)
    assert energy(landing, A.Y, 1.0) == pytest.approx(-0.836, abs=5e-4)
    X, W_Q, W_K, W_V = HEADS["H1"]
    for beta in (0.1, 1.0, 50.0):
        output = hop_then_read(X[:1], W_Q, W_K, W_V, beta)
        np.testing.assert_allclose(output, X[0] @ W_V, atol=1e-14)
    assert settle(A.xi, A.Y, 1.0)[1] == 81
    assert settle(A.xi, A.Y, 16.0)[1] == 4
    assert [census(A.Y, beta) for beta in (0.25, 1, 2, 4, 16)] == [1, 1, 2, 3, 3]


def test_path_records_every_hop():
    path = cccp_path(*A, steps=4)
    assert path.shape == (5, 2)
    np.testing.assert_array_equal(path[0], A.xi)
    np.testing.assert_array_equal(path[4], cccp_step(path[3], A.Y, A.beta))
    heights = [energy(x, A.Y, A.beta) for x in path]
    assert heights == sorted(heights, reverse=True)
    assert cccp_path(*A, steps=0).shape == (1, 2)


# --------------------------------------------------------------------- lesson 04


def test_the_hop_rises_by_exactly_one_along_the_normal():
    for xi, Y, beta in landscapes(600, seed=41):
        normal, g = unit_normal(xi, Y, beta), energy_grad(xi, Y, beta)
        assert np.linalg.norm(normal) == pytest.approx(1, abs=1e-15)
        tangents = np.column_stack([np.eye(len(xi)), g])
        np.testing.assert_allclose(tangents @ normal, 0, atol=1e-14)
        apex, height = hop_apex(xi, Y, beta), energy(xi, Y, beta)
        assert apex[-1] - height == pytest.approx(1, abs=1e-13 * scale(height))
        np.testing.assert_allclose(apex[:-1], cccp_step(xi, Y, beta), rtol=0, atol=1e-13)
        walked = np.linalg.norm(apex - np.append(xi, height))
        assert walked == pytest.approx(hop_length(xi, Y, beta), abs=1e-13 * scale(height))
    half = hop_apex(*A, rise=0.5)
    np.testing.assert_allclose(half[:-1], A.xi - energy_grad(*A) / 2, atol=1e-15)
    assert hop_length(*A, rise=0.5) == hop_length(*A) / 2


def test_the_drop_is_one_plus_half_the_squared_gradient_plus_a_divergence():
    for xi, Y, beta in landscapes(600, seed=42):
        drop, parts, g = (f(xi, Y, beta) for f in (vertical_drop, drop_parts, energy_grad))
        slack = 1e-12 * scale(energy(xi, Y, beta), 1 / beta)
        assert parts.sum() == pytest.approx(drop, abs=slack)
        assert parts[0] == 1
        assert parts[1] == g @ g / 2
        radius = np.linalg.norm(Y - Y.mean(axis=0), axis=1).max()
        assert -slack <= parts[2] <= beta * radius**2 * (g @ g) / 2 + slack
        assert drop >= 1 - slack
    settled, _, _ = settle(*A)
    assert vertical_drop(settled, A.Y, A.beta) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(("c", "miss"), [(0.5, 0.137), (2, 0.652), (4, 2.33)])
def test_a_steeper_bowl_needs_a_smaller_rise(c, miss):
    average = lse_grad(*A)
    g = c * A.xi - average
    np.testing.assert_allclose(A.xi - g / c, average / c, atol=1e-15)
    assert np.linalg.norm(A.xi - g - average / c) == pytest.approx(miss, rel=0.005)


def test_an_uneven_bowl_has_no_right_rise():
    bowl, average = np.diag([1.0, 4.0]), lse_grad(*A)
    g, hop = bowl @ A.xi - average, np.linalg.solve(bowl, average) - A.xi
    cosine = -(g @ hop) / (np.linalg.norm(g) * np.linalg.norm(hop))
    assert 0 < cosine < 0.99


def test_drops_are_large_when_tokens_are_long():
    rng = np.random.default_rng(43)

    def median(d, n, beta, norm, count):
        drops = [
            vertical_drop(
                norm * unit(rng.normal(size=d)), norm * unit(rng.normal(size=(n, d))), beta
            )
            for _ in range(count)
        ]
        return np.median(drops)

    assert median(2, 4, 2**-0.5, 1, 1000) == pytest.approx(1.40, abs=0.05)
    assert median(16, 4, 16, 1, 300) == pytest.approx(1.68, abs=0.05)
    assert median(16, 32, 0.25, 4, 300) == pytest.approx(7.05, abs=0.3)
    assert median(64, 32, 0.125, 8, 200) == pytest.approx(29.6, abs=0.6)


def test_predictions_of_lesson_04():
    steep = (np.array([3.0, 1.0]), np.array([[0.0, 1.0]]), 1.0)
    assert np.linalg.norm(energy_grad(*steep)) == 3
    assert hop_length(*steep) == pytest.approx(3.162, abs=5e-4)
    # Walking a length of 1 instead completes this share of the step.
    assert np.linalg.norm(unit_normal(*steep)[:-1]) / 3 == pytest.approx(0.316, abs=5e-4)
    assert vertical_drop([60, 80], A.Y, 1.0) == pytest.approx(4902, abs=0.5)
    far = np.array([6e7, 8e7])
    assert hop_apex(far, A.Y, 1.0)[-1] - energy(far, A.Y, 1.0) == 1


# --------------------------------------------------------------------- lesson 05


def test_log_cosh_has_all_its_digits_everywhere():
    u = np.array([0.0, 1e-9, 1e-3, 0.5, 0.999, 1.0, 1.001, 20, 700])
    with np.errstate(under="ignore"):
        exact = np.where(u < 0.01, u**2 / 2 - u**4 / 12, np.log(np.cosh(u)))
    np.testing.assert_allclose(log_cosh(u), exact, rtol=1e-12)
    np.testing.assert_array_equal(log_cosh(-u), log_cosh(u))
    np.testing.assert_allclose(log_cosh([[1e300, -1e300]]), [[1e300, 1e300]])
    with np.errstate(over="ignore"):
        assert np.log(np.cosh(711.0)) == np.inf
    assert log_cosh(711.0) == pytest.approx(711 - math.log(2))


def test_tanh_energy_is_a_mixture_over_sign_patterns():
    for xi, Y, beta in landscapes(300, seed=51, most=9):
        value = tanh_energy(xi, Y, beta)
        size = scale(value, 1 / beta, np.abs(Y).sum() ** 2)
        assert tanh_energy_gmm(xi, Y, beta) == pytest.approx(value, abs=1e-13 * size)
        assert tanh_energy(-xi, Y, beta) == pytest.approx(value, abs=1e-13 * scale(value))
        assert tanh_energy(0 * xi, Y, beta) == 0


def test_product_of_cosines_is_a_mean_over_sign_patterns():
    rng = np.random.default_rng(52)
    for n in range(1, 10):
        u = rng.normal(size=n)
        assert np.exp(sign_patterns(n) @ u).mean() == pytest.approx(np.cosh(u).prod(), rel=1e-13)
        order = list(itertools.product((1, -1), repeat=n))
        np.testing.assert_array_equal(sign_patterns(n), order)


def test_tanh_hop_is_a_gradient_step_that_descends():
    for xi, Y, beta in landscapes(150, seed=53, betas=(0.1, 16)):
        gradient = fd_grad(lambda x, Y=Y, beta=beta: tanh_energy(x, Y, beta), xi)
        np.testing.assert_allclose(xi - gradient, tanh_step(xi, Y, beta), rtol=0, atol=1e-6)
    for xi, Y, beta in landscapes(800, seed=54):
        landing = tanh_step(xi, Y, beta)
        fall = tanh_energy(xi, Y, beta) - tanh_energy(landing, Y, beta)
        half = (xi - landing) @ (xi - landing) / 2
        assert fall >= half - 1e-12 * scale(half, 1 / beta)


def corner_bound(n, d):
    return 2 * sum(math.comb(n - 1, i) for i in range(d))


def test_stable_corners_are_those_a_cold_hop_leaves_in_place():
    rng = np.random.default_rng(55)
    for _ in range(20):
        n, d = rng.integers(1, 8), rng.integers(1, 5)
        Y = rng.normal(size=(n, d))
        corners, mask = mode_centers(Y), stable_modes(Y)
        moved = [np.linalg.norm(tanh_step(z, Y, 1e6) - z) > 1e-6 for z in corners]
        np.testing.assert_array_equal(mask, np.logical_not(moved))
        assert mask.sum() <= corner_bound(n, d)


def test_two_tokens_have_four_corners_unless_one_shadows_the_other():
    rng = np.random.default_rng(56)
    for _ in range(100):
        Y = rng.normal(size=(2, 3))
        four = abs(Y[0] @ Y[1]) < (Y**2).sum(axis=1).min()
        assert stable_modes(Y).sum() == (4 if four else 2)


@pytest.mark.parametrize(
    ("n", "d", "shown", "slack"),
    [(4, 2, 3.72, 0.5), (8, 2, 5.42, 0.6), (10, 2, 6.28, 0.6), (10, 3, 12.9, 1.5), (8, 8, 54.9, 8)],
)
def test_mean_number_of_stable_corners(n, d, shown, slack):
    rng = np.random.default_rng(57)
    counts = [stable_modes(rng.normal(size=(n, d))).sum() for _ in range(150)]
    assert np.mean(counts) == pytest.approx(shown, abs=slack)
    assert max(counts) <= corner_bound(n, d)


def tanh_census(Y, beta, starts):
    valleys = []
    for x in starts:
        for _ in range(1000):
            x = tanh_step(x, Y, beta)
        curvature = np.eye(Y.shape[1]) - beta * (Y.T * (1 - np.tanh(beta * (Y @ x)) ** 2)) @ Y
        if np.linalg.eigvalsh(curvature)[0] > 1e-6:
            valleys.append(x)
    return len(np.unique(np.round(valleys, 4) + 0.0, axis=0))


def test_tanh_valleys_appear_at_the_critical_beta_of_the_linear_kernel():
    starts = np.vstack([mode_centers(A.Y), [[0.3, -0.2]]])
    counts = [tanh_census(A.Y, beta, starts) for beta in (0.34, 0.35, 1, 2, 8)]
    assert counts == [1, 2, 2, 4, 4]
    patterns = sign_patterns(3)[stable_modes(A.Y)]
    np.testing.assert_array_equal(patterns, [[1, 1, -1], [1, -1, 1], [-1, 1, -1], [-1, -1, 1]])


def test_predictions_of_lesson_05():
    assert corner_bound(10, 2) == 20
    assert stable_modes(np.eye(4)).sum() == 16
    assert stable_modes(PRESETS["parallelogram"].Y).sum() == 4
    assert stable_modes(PRESETS["tanh shadow"].Y).sum() == 2
    five = np.ones((5, 1))
    assert len(np.unique(mode_centers(five))) == 6
    assert stable_modes(five).sum() == 2
    below, above = 0.99 * critical_beta(B.Y), 1.01 * critical_beta(B.Y)
    assert [tanh_census(B.Y, beta, [B.xi, -B.xi, 0.01 * B.xi]) for beta in (below, above)] == [1, 2]


# --------------------------------------------------------------------- lesson 06


def test_linear_energy_is_a_quadratic_form():
    for xi, Y, beta in landscapes(500, seed=61):
        form = np.eye(len(xi)) - beta * Y.T @ Y
        size = scale(beta * ((Y @ xi) ** 2).sum())
        value = linear_energy(xi, Y, beta)
        assert value == pytest.approx(xi @ form @ xi / 2, abs=1e-13 * size)
        np.testing.assert_allclose(curvatures(Y, beta), np.linalg.eigvalsh(form), atol=1e-10 * size)
        landing = linear_step(xi, Y, beta)
        np.testing.assert_allclose(xi - landing, form @ xi, rtol=0, atol=1e-12 * size)
        twice = linear_step(landing, Y, beta)
        power = np.linalg.matrix_power(np.eye(len(xi)) - form, 2) @ xi
        np.testing.assert_allclose(twice, power, rtol=0, atol=1e-11 * size**2)


def test_a_linear_hop_lowers_the_energy_by_a_known_amount():
    for xi, Y, beta in landscapes(1000, seed=62):
        landing = linear_step(xi, Y, beta)
        g = xi - landing
        fall = linear_energy(xi, Y, beta) - linear_energy(landing, Y, beta)
        expected = g @ g / 2 + beta * ((Y @ g) ** 2).sum() / 2
        assert fall == pytest.approx(expected, rel=1e-11, abs=1e-11)
        assert fall >= 0


def test_linear_energy_is_the_start_of_the_tanh_energy():
    for size in (0.1, 0.01, 0.001):
        xi = size * unit(A.xi)
        quartic = ((A.Y @ xi) ** 4).sum() / 12
        gap = tanh_energy(xi, A.Y, 1.0) - linear_energy(xi, A.Y, 1.0)
        assert gap == pytest.approx(quartic, rel=0.02)
        assert 0.5e-1 < gap / size**4 < 5e-1


def test_shapes_of_the_linear_energy():
    lowest, highest = 1 / np.linalg.eigvalsh(A.Y.T @ A.Y)[::-1]
    assert (lowest, highest) == pytest.approx((0.344705692145, 0.817), abs=5e-4)
    shapes = {beta: classify(A.Y, beta) for beta in (0.3, 0.34, lowest, 0.35, 0.8, 0.83)}
    assert list(shapes.values()) == ["bowl", "bowl", "trough", "saddle", "saddle", "dome"]
    nearly = {
        error: classify(np.diag([1, 0.5]), 1 + error) for error in (-2e-9, -5e-10, 5e-10, 2e-9)
    }
    assert list(nearly.values()) == ["bowl", "trough", "trough", "saddle"]
    assert classify([[1, 0, 0]], 10.0) == "saddle"
    assert classify(np.zeros((2, 2)), 1e6) == "bowl"
    assert critical_beta(np.zeros((2, 2))) == np.inf
    assert critical_beta(A.Y) == pytest.approx(1 / np.linalg.norm(A.Y, 2) ** 2, rel=1e-14)


def test_few_tokens_leave_curvatures_of_one():
    values = curvatures(np.random.default_rng(63).normal(size=(3, 8)), 1.0)
    np.testing.assert_allclose(values[3:], np.ones(5), rtol=0, atol=1e-13)
    assert (values[:3] < 1 - 1e-6).all()


def test_shapes_of_random_landscapes():
    rng = np.random.default_rng(64)

    def share(shape, draw, beta, count):
        return np.mean([classify(draw(), beta) == shape for _ in range(count)])

    assert share("dome", lambda: rng.normal(size=(8, 2)), 2**-0.5, 2000) == pytest.approx(
        0.956, abs=0.015
    )
    assert share("saddle", lambda: rng.normal(size=(8, 16)), 0.25, 50) == 1
    assert share("dome", lambda: rng.normal(size=(64, 16)), 0.25, 50) == 1
    bowl = [
        share("bowl", lambda n=n: unit(rng.normal(size=(n, 64))), 0.125, 25)
        for n in (200, 232, 260)
    ]
    assert bowl[0] == 1
    assert 0.2 < bowl[1] < 0.7
    assert bowl[2] < 0.05


def test_predictions_of_lesson_06():
    assert critical_beta(A.Y) == pytest.approx(0.3447, abs=5e-5)
    x, norms, heights = A.xi, [], []
    for _ in range(11):
        norms.append(np.linalg.norm(x))
        heights.append(linear_energy(x, A.Y, 1.0))
        x = linear_step(x, A.Y, 1.0)
    assert norms[0] == pytest.approx(0.90, abs=0.005)
    assert norms[10] == pytest.approx(2.78e4, rel=0.002)
    assert heights[0] == pytest.approx(-0.455, abs=5e-4)
    assert heights[10] == pytest.approx(-7.36e8, rel=0.002)
    assert norms[10] / norms[9] == pytest.approx(2.901, abs=5e-4)
    assert heights == sorted(heights, reverse=True)


# --------------------------------------------------------------------- lesson 07

PAIR = np.array([[1.0], [-1.0]])


def test_settling_ends_on_a_fixed_point_and_says_so():
    for (xi, Y, beta), shown in ((A, 81), (B, 6), (C, 2), (G, 16)):
        x, steps, converged = settle(xi, Y, beta)
        assert converged
        assert abs(steps - shown) <= 1
        assert np.linalg.norm(x - cccp_step(x, Y, beta)) < 1e-10
    assert settle(A.xi, A.Y, 4.0)[2]
    assert settle(G.xi, G.Y, 8.0)[1] < 50


def test_settling_never_hides_that_it_gave_up():
    x, steps, converged = settle([0.5], PAIR, 1.0, max_steps=100)
    assert (steps, converged) == (100, False)
    np.testing.assert_array_equal(x, cccp_path([0.5], PAIR, 1.0, steps=100)[-1])
    start = np.array([0.5])
    x, steps, converged = settle(start, PAIR, 1.0, max_steps=0)
    assert (x[0], steps, converged) == (0.5, 0, False)
    assert not np.shares_memory(x, start)
    with pytest.warns(RuntimeWarning, match="10000 hops"):
        one_step_gap([0.5], PAIR, 1.0)


def test_hops_slow_down_where_two_valleys_merge():
    hops = [settle([0.5], PAIR, beta)[1] for beta in (0.5, 0.9, 0.99, 1.01, 1.1, 2, 4, 8)]
    np.testing.assert_allclose(hops, [33, 189, 1655, 829, 80, 15, 6, 4], rtol=0, atol=1)
    x, _, converged = settle([0.5], PAIR, 1.0)
    assert not converged
    assert x[0] == pytest.approx(0.012243, abs=5e-7)
    assert math.sqrt(3 / 2e4) == pytest.approx(0.012247, abs=5e-7)


def test_the_rate_bounds_the_error_and_the_energy_does_not():
    beta = 1.01
    valley = brentq(lambda x: math.tanh(beta * x) - x, 0.1, 0.9, xtol=1e-15)
    rate = local_rate([valley], PAIR, beta)
    assert rate == pytest.approx(0.980, abs=5e-4)
    x, steps, _ = settle([0.5], PAIR, beta)
    path = cccp_path([0.5], PAIR, beta, steps)[:, 0]
    error, last_hop = abs(x[0] - valley), abs(path[-1] - path[-2])
    assert error == pytest.approx(4.9e-9, rel=0.02)
    assert error <= 1.01 * rate / (1 - rate) * last_hop
    heights = [energy([point], PAIR, beta) for point in path]
    still = next(k for k in range(1, steps) if abs(heights[k] - heights[k - 1]) < 1e-10)
    assert still == 252
    assert abs(path[still] - valley) == pytest.approx(4.9e-4, rel=0.02)


def test_gap_is_zero_exactly_at_landings_that_are_fixed():
    assert one_step_gap(*C) == 0
    for beta in (0.5, 2.0, 8.0):
        fixed, _, _ = settle(B.xi, B.Y, beta, tol=1e-13)
        assert one_step_gap(fixed, B.Y, beta) < 1e-9
    assert one_step_gap([0.0], PAIR, 4.0) == 0
    # Where the only valley is the origin, settling loses the whole landing.
    assert one_step_gap([0.25], PAIR, 0.5) == pytest.approx(1, abs=1e-9)


def test_a_query_on_a_plane_of_symmetry_settles_on_a_saddle():
    x, steps, converged = settle([0.0], PAIR, 4.0)
    assert (x[0], steps, converged) == (0, 1, True)
    assert local_rate(x, PAIR, 4.0) > 1
    assert settle([1e-12], PAIR, 4.0)[1] == 1
    assert settle([1e-3], PAIR, 4.0)[0][0] == pytest.approx(1, abs=1e-3)
    assert count_minima(PAIR, 2.0, [[0.0], [1.0], [-1.0]]) == 2
    _, Y, _ = PRESETS["P4"]
    tie = np.array([-0.125, -0.125])
    assert one_step_gap(tie, Y, 32.0) == pytest.approx(0.0021, abs=5e-5)
    assert local_rate(settle(tie, Y, 32.0)[0], Y, 32.0) > 1


def test_count_minima_ignores_starts_that_do_not_settle():
    assert count_minima(PAIR, 1.0, [[0.5]]) == 0
    assert count_minima(FIXTURES["D"].Y, 16.0, FIXTURES["D"].Y) == 2


def test_gaps_of_the_four_pattern_preset():
    xi, Y, beta = PRESETS["P4"]
    betas = [1, 2, 4, 8, 16, 32, 64]
    shown = [0.198, 2.430, 2.247, 1.198, 0.538, 0.190, 0.026]
    np.testing.assert_allclose(gap_curve([xi], Y, betas), shown, rtol=0, atol=6e-4)
    np.testing.assert_allclose(cccp_step(xi, Y, beta), [0.1979, 0.6766], rtol=0, atol=6e-5)
    np.testing.assert_allclose(settle(xi, Y, beta)[0], [0, 1], rtol=0, atol=1e-4)


def test_the_gap_is_a_hump_over_beta():
    rng = np.random.default_rng(71)
    sets = [(unit(rng.normal(size=(4, 16))), unit(rng.normal(size=16))) for _ in range(150)]

    def mean_gap(beta, on_pattern=False):
        return np.mean([one_step_gap(Y[0] if on_pattern else xi, Y, beta) for Y, xi in sets])

    gaps = {beta: mean_gap(beta) for beta in (0.125, 1, 4, 16, 64, 256)}
    assert max(gaps, key=gaps.get) == 4
    shown = {0.125: 0.028, 1: 0.230, 4: 0.792, 16: 0.322, 64: 0.090, 256: 0.023}
    assert gaps == pytest.approx(shown, abs=0.07)
    assert mean_gap(1, on_pattern=True) == pytest.approx(0.482, abs=0.05)
    assert mean_gap(4, on_pattern=True) == pytest.approx(0.139, abs=0.03)
    assert mean_gap(16, on_pattern=True) < 5e-5


def test_settling_does_not_find_the_nearest_token():
    rng = np.random.default_rng(72)

    def share(d, n, beta, count):
        nearest = best = 0
        for _ in range(count):
            xi, Y = rng.normal(size=d), rng.normal(size=(n, d))
            x, _, _ = settle(xi, Y, beta)
            chosen = np.argmin(((Y - x) ** 2).sum(axis=1))
            nearest += chosen == np.argmin(((Y - xi) ** 2).sum(axis=1))
            best += chosen == np.argmax(Y @ xi)
        return nearest / count, best / count

    assert share(2, 8, 8.0, 300)[0] == pytest.approx(0.25, abs=0.06)
    nearest, best = share(64, 16, 1.0, 100)
    assert nearest == pytest.approx(0.395, abs=0.15)
    assert best > 0.93
