"""Properties that right answers have, measured by calling the learner's function; no reference.

Each takes a function and the inputs of one call and returns a sentence that says what was expected
and what was measured, or None when the property holds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hopping.cases import show

Inputs = dict[str, Any]
SLACK = 1e-9


def _off(left: Any, right: Any, slack: float = SLACK) -> bool:
    return not np.allclose(left, right, rtol=slack, atol=slack)


def _with_raised_scores(inputs: Inputs, shift: float) -> Inputs:
    """Give query and tokens one more coordinate so that every score rises by `shift`."""
    xi, Y, beta = inputs.values()
    more = np.column_stack([Y, np.full(len(Y), float(shift))])
    return {"xi": np.append(xi, 1.0), "Y": more, "beta": beta}


def between_max_and_log_n(function: Callable, inputs: Inputs) -> str | None:
    """Check max s <= lse <= max s + ln(n)/beta."""
    xi, Y, beta = inputs.values()
    value, low = float(function(xi, Y, beta)), float(np.max(Y @ xi))
    high = low + np.log(len(Y)) / beta
    if low - SLACK * max(1, abs(low)) <= value <= high + SLACK * max(1, abs(high)):
        return None
    return (
        f"a value from the largest score, {show(low)}, up to that score + ln(n)/beta, {show(high)}"
    )


def rises_with_the_scores(function: Callable, inputs: Inputs) -> str | None:
    """Check that adding c to every score adds c."""
    before = function(*inputs.values())
    after = function(*_with_raised_scores(inputs, 1000.0).values())
    if _off(after, before + 1000.0):
        return f"1000 more when every score is raised by 1000; it rose by {show(after - before)}"
    return None


def ignores_a_common_shift(function: Callable, inputs: Inputs) -> str | None:
    """Check that adding c to every score changes no weight."""
    before = function(*inputs.values())
    after = function(*_with_raised_scores(inputs, 1000.0).values())
    if _off(after, before):
        return "no change when every score is raised by 1000; the weights changed"
    return None


def is_a_distribution(function: Callable, inputs: Inputs) -> str | None:
    """Check that weights are not negative and sum to 1."""
    weights = function(*inputs.values())
    if np.any(weights < 0) or _off(np.sum(weights), 1.0):
        return (
            "weights that are not negative and add up to 1; "
            f"the smallest is {show(np.min(weights))}, the sum is {show(np.sum(weights))}"
        )
    return None


def lies_in_the_hull(function: Callable, inputs: Inputs) -> str | None:
    """Check that an average of tokens lies in the smallest box around them."""
    Y = inputs["Y"]
    point = function(*inputs.values())
    if np.any(point < Y.min(axis=0) - 1e-9) or np.any(point > Y.max(axis=0) + 1e-9):
        return "a point among the tokens, in no coordinate below or above all of them"
    return None


def is_a_covariance(function: Callable, inputs: Inputs) -> str | None:
    """Check that a covariance matrix is symmetric and has no negative eigenvalue."""
    matrix = function(*inputs.values())
    if _off(matrix, matrix.T):
        return "a symmetric matrix"
    lowest = np.linalg.eigvalsh(matrix)[0]
    if lowest < -1e-9 * max(1.0, float(np.abs(matrix).max())):
        return f"a matrix without negative eigenvalues; the lowest is {show(lowest)}"
    return None


def differentiates_a_line(function: Callable, inputs: Inputs) -> str | None:
    """Check that the gradient of a linear function is its vector of slopes."""
    xi = inputs["xi"]
    slopes = np.arange(1.0, len(xi) + 1.0)
    gradient = function(lambda x: float(slopes @ x), xi)
    if np.shape(gradient) != slopes.shape or _off(gradient, slopes, 1e-7):
        return f"{show(slopes)} as the gradient of f(x) = 1*x[0] + 2*x[1] + ..."
    return None


PROPERTIES: dict[str, Callable[[Callable, Inputs], str | None]] = {
    rule.__name__: rule
    for rule in (
        between_max_and_log_n,
        rises_with_the_scores,
        ignores_a_common_shift,
        is_a_distribution,
        lies_in_the_hull,
        is_a_covariance,
        differentiates_a_line,
    )
}
