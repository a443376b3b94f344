"""Properties that right answers have, measured by calling the learner's function; no reference.

Each takes a function and the inputs of one call and returns a sentence that says what was expected
and what was measured, or None when the property holds. The sentence is about the last call; one
that is compared with it is the first. A message shows these two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from hopping.cases import Function, show

Inputs = dict[str, Any]
SLACK = 1e-9
# Raised scores overflow a naive exponential, lowered ones make all of them vanish.
SHIFTS = ((1000.0, "raised"), (-1000.0, "lowered"))


def _take(inputs: Inputs, *names: str) -> list[Any]:
    """Return some of the inputs by their names."""
    return [inputs[name] for name in names]


def _off(left: Any, right: Any, slack: float = SLACK) -> bool:
    return not np.allclose(left, right, rtol=slack, atol=slack)


def _with_raised_scores(inputs: Inputs, shift: float) -> Inputs:
    """Give query and tokens one more coordinate so that every score rises by `shift`."""
    xi, Y, beta = _take(inputs, "xi", "Y", "beta")
    more = np.column_stack([Y, np.full(len(Y), float(shift))])
    return {"xi": np.append(xi, 1.0), "Y": more, "beta": beta}


def _shifted(function: Callable, inputs: Inputs) -> Iterator[tuple[float, str, Any, Any]]:
    """Yield each shift of all scores, in words too, and the answers without and with it."""
    before = function(*inputs.values())
    for shift, words in SHIFTS:
        yield shift, words, before, function(*_with_raised_scores(inputs, shift).values())


def between_max_and_log_n(function: Callable, inputs: Inputs) -> str | None:
    """Check max s <= lse <= max s + ln(n)/beta."""
    xi, Y, beta = _take(inputs, "xi", "Y", "beta")
    value, low = float(function(xi, Y, beta)), float(np.max(Y @ xi))
    high = low + np.log(len(Y)) / beta
    if low - SLACK * max(1, abs(low)) <= value <= high + SLACK * max(1, abs(high)):
        return None
    return (
        f"a value from the largest score, {show(low)}, up to that score + ln(n)/beta, {show(high)}"
    )


def rises_with_the_scores(function: Callable, inputs: Inputs) -> str | None:
    """Check that adding c to every score adds c."""
    for shift, words, before, after in _shifted(function, inputs):
        if _off(after, before + shift):
            return (
                f"1000 {'more' if shift > 0 else 'less'} when every score is {words} by 1000; "
                f"{show(before)} became {show(after)}"
            )
    return None


def gains_log_2_from_doubling(function: Callable, inputs: Inputs) -> str | None:
    """Check that a log-sum-exp rises by ln(2)/beta when every token is there twice."""
    xi, Y, beta = _take(inputs, "xi", "Y", "beta")
    before = function(xi, Y, beta)
    gain = function(xi, np.concatenate([Y, Y]), beta) - before
    if _off(gain, np.log(2) / beta, 1e-7):
        return (
            f"ln(2)/beta = {show(np.log(2) / beta)} more when every token is there twice; "
            f"it rose by {show(gain)}"
        )
    return None


def has_exponential_ratios(function: Callable, inputs: Inputs) -> str | None:
    """Check that two weights are in the ratio of the exponentials of their scores."""
    xi, Y, beta = _take(inputs, "xi", "Y", "beta")
    if len(Y) < 2:
        return None
    weights, gap = function(xi, Y, beta), beta * float((Y[0] - Y[1]) @ xi)
    if abs(gap) < 30 and _off(weights[0], weights[1] * np.exp(gap)):
        return (
            f"weights with a[0]/a[1] = exp(beta*(s[0]-s[1])) = {show(np.exp(gap))}; "
            f"it is {show(float(np.divide(weights[0], weights[1])))}"
        )
    return None


def is_plain_covariance_at_zero(function: Callable, inputs: Inputs) -> str | None:
    """Check that at xi = 0, where all weights are equal, the curvature is beta times np.cov."""
    xi, Y, beta = _take(inputs, "xi", "Y", "beta")
    matrix = function(np.zeros(len(xi)), Y, beta)
    plain = beta * np.atleast_2d(np.cov(Y.T, ddof=0))
    if np.shape(matrix) != plain.shape or _off(matrix, plain, 1e-7):
        return "at xi = 0, where all weights are 1/n, beta times the plain covariance of the tokens"
    return None


def ignores_a_common_shift(function: Callable, inputs: Inputs) -> str | None:
    """Check that adding c to every score changes no weight."""
    for _, words, before, after in _shifted(function, inputs):
        if _off(after, before):
            return (
                f"no change when every score is {words} by 1000; "
                f"{show(before)} became {show(after)}"
            )
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


def is_the_token_when_alone(function: Callable, inputs: Inputs) -> str | None:
    """Check that an average over one token is that token."""
    xi, Y, beta = _take(inputs, "xi", "Y", "beta")
    point = function(xi, Y[:1].copy(), beta)
    if np.shape(point) != Y[0].shape or _off(point, Y[0]):
        return (
            f"the token itself, {show(Y[0])}, when the first token is the only one; "
            f"{show(point)} came back"
        )
    return None


def trades_beta_for_the_query(function: Callable, inputs: Inputs) -> str | None:
    """Check that beta enters by its product with the scores alone."""
    xi, Y, beta = _take(inputs, "xi", "Y", "beta")
    colder, longer = function(xi, Y, 2 * beta), function(2 * xi, Y, beta)
    if _off(colder, longer):
        return (
            "for twice the beta the same as for twice the query: both double beta times the "
            f"scores; here {show(colder)} and {show(longer)}"
        )
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
    gradient = function(Function("line"), xi)
    if np.shape(gradient) != slopes.shape or _off(gradient, slopes, 1e-8):
        return f"{show(slopes)}, the slopes of this line"
    return None


def _doubled(inputs: Inputs) -> Inputs:
    """List every token twice."""
    name = "Y" if "Y" in inputs else "X"
    return {**inputs, name: np.concatenate([inputs[name], inputs[name]])}


def falls_with_doubled_tokens(function: Callable, inputs: Inputs) -> str | None:
    """Check that listing every token twice lowers an energy by ln(2)/beta."""
    before = function(*inputs.values())
    after = function(*_doubled(inputs).values())
    if _off(after, before - np.log(2) / inputs["beta"]):
        return (
            f"ln(2)/beta = {show(np.log(2) / inputs['beta'])} less when every centre is there "
            f"twice; it fell by {show(before - after)}"
        )
    return None


def is_minus_log_n_at_zero(function: Callable, inputs: Inputs) -> str | None:
    """Check an energy where all scores are 0, which its mixture must give back too."""
    xi, Y, beta = _take(inputs, "xi", "Y", "beta")
    value, right = function(np.zeros(len(xi)), Y, beta), -np.log(len(Y)) / beta + 0.0
    if _off(value, right, 1e-7):
        return (
            f"-ln(n)/beta = {show(right)} for the query xi = 0, where every score is 0; "
            f"with these Y and beta it gave {show(value)}"
        )
    return None


def is_half_a_square_on_one_centre(function: Callable, inputs: Inputs) -> str | None:
    """Check an energy on a centre that is the only one: half its square minus its square."""
    alone, beta = inputs["Y"][:1], inputs["beta"]
    value, right = function(alone[0], alone, beta), -float((alone**2).sum()) / 2
    if _off(value, right, 1e-7):
        return (
            f"-||y||^2/2 = {show(right)} for the query xi = y, when the first centre y is the only "
            f"one; with this beta it gave {show(value)}"
        )
    return None


def stays_above_the_floor(function: Callable, inputs: Inputs) -> str | None:
    """Check that an energy is at least -R^2/2 - ln(n)/beta, with R the longest centre's length."""
    xi, Y, beta = _take(inputs, "xi", "Y", "beta")
    value = float(function(xi, Y, beta))
    floor = -float((Y**2).sum(axis=1).max()) / 2 - np.log(len(Y)) / beta
    if value < floor - SLACK * max(1, abs(floor)):
        return (
            "a value that is nowhere below -R^2/2 - ln(n)/beta, with R the length of the longest "
            f"centre; here that is {show(floor)}, and {show(value)} came back"
        )
    return None


def scales_like_a_square(function: Callable, inputs: Inputs) -> str | None:
    """Check that turning centres round changes nothing, and doubling them multiplies by 4."""
    Y, beta = _take(inputs, "Y", "beta")
    logs = function(Y, beta)
    turned = Y * np.where(np.arange(Y.shape[1]) == 0, -1, 1)
    if _off(function(turned, beta), logs):
        return "the same numbers when the first coordinate of every centre changes its sign"
    if _off(function(2 * Y, beta), 4 * np.asarray(logs)):
        return "four times as much when every centre is twice as long"
    if _off(function(Y, 2 * beta), 2 * np.asarray(logs)):
        return "twice as much when beta is twice as large"
    return None


def gives_each_centre_its_own(function: Callable, inputs: Inputs) -> str | None:
    """Check that the number of a centre does not depend on the other centres."""
    Y, beta = _take(inputs, "Y", "beta")
    together, alone = function(Y, beta), function(Y[:1].copy(), beta)
    if np.shape(alone) != (1,) or _off(alone[0], together[0]):
        return (
            "for the first centre the same number with the others as without them; "
            f"{show(together[0])} and {show(alone)} came back"
        )
    return None


def twins_share_evenly(function: Callable, inputs: Inputs) -> str | None:
    """Check that a centre that is there twice shares its probability with its twin."""
    before = function(*inputs.values())
    after = function(*_doubled(inputs).values())
    if _off(after, np.concatenate([before, before]) / 2):
        return "half of each probability when every centre is there twice"
    return None


def has_the_odds_of_pi_halfway(function: Callable, inputs: Inputs) -> str | None:
    """Check that halfway between two centres, where the bumps fell alike, the weights decide."""
    Y, beta = _take(inputs, "Y", "beta")
    if len(Y) < 2:
        return None
    a, gap = function((Y[0] + Y[1]) / 2, Y, beta), beta * float(Y[0] @ Y[0] - Y[1] @ Y[1]) / 2
    if abs(gap) < 30 and _off(a[0], a[1] * np.exp(gap), 1e-7):
        return (
            f"for xi halfway between the first two centres P[0]/P[1] = pi[0]/pi[1] = "
            f"{show(np.exp(gap))}; it is {show(float(np.divide(a[0], a[1])))}"
        )
    return None


def falls_around_one_centre(function: Callable, inputs: Inputs) -> str | None:
    """Check the width of a single bump: the log of its density falls by 2*beta at distance 2."""
    beta, alone = inputs["beta"], inputs["Y"][:1]
    aside = alone[0] + 2.0 * (np.arange(alone.shape[1]) == 0)
    fall = function(alone[0], alone, beta) - function(aside, alone, beta)
    if _off(fall, 2 * beta, 1e-7):
        return (
            f"a fall by 2*beta = {show(2 * beta)} at distance 2 from the first centre, when that "
            f"is the only one: its variance is 1/beta; it fell by {show(fall)}"
        )
    return None


def integrates_to_one(function: Callable, inputs: Inputs) -> str | None:
    """Check on a line, the first coordinate of every centre, that a density has mass 1."""
    beta = inputs["beta"]
    Y = inputs["Y"][:, :1]
    # With steps below a bump's width the error of this sum is far below the slack.
    width = 1 / np.sqrt(beta)
    step = 0.75 * width
    grid = np.arange(Y.min() - 7 * width, Y.max() + 7 * width, step)
    if len(grid) > 50:
        return None
    mass = step * sum(np.exp(float(function(np.array([x]), Y, beta))) for x in grid)
    if _off(mass, 1.0, 1e-6):
        return (
            "the log of a density: summed over a line (d = 1, the first coordinate of each "
            f"centre), its mass is 1; measured {show(float(mass))}"
        )
    return None


def finds_one_valley_when_hot(function: Callable, inputs: Inputs) -> str | None:
    """Check that there is one valley when beta times the largest squared length is below 1."""
    Y = inputs["Y"]
    beta = 0.5 / max(1.0, float((Y**2).sum(axis=1).max()))
    counts = function(Y, np.array([beta]))
    if np.shape(counts) != (1,) or counts[0] != 1:
        return (
            f"one valley where beta is small: the same Y with betas = [{show(beta)}] should give "
            f"[1], and gave {show(counts)}"
        )
    return None


def leads_to_a_point_among_the_tokens(function: Callable, inputs: Inputs) -> str | None:
    """Check that a full step against the gradient ends in the box around the tokens."""
    gradient = function(*inputs.values())
    if lies_in_the_hull(lambda xi, Y, beta: xi - gradient, inputs):
        return (
            "a gradient that leads from xi, by one full step downhill, to a point among the tokens"
        )
    return None


def leads_to_the_token_when_alone(function: Callable, inputs: Inputs) -> str | None:
    """Check that a full step against the gradient ends on the only token that there is."""
    xi, Y, beta = _take(inputs, "xi", "Y", "beta")
    end = xi - function(xi, Y[:1].copy(), beta)
    if np.shape(end) != Y[0].shape or _off(end, Y[0]):
        return (
            f"a gradient that leads from xi to the token {show(Y[0])}, by one full step downhill, "
            f"when the first token is the only one; it leads to {show(end)}"
        )
    return None


def is_the_value_when_alone(function: Callable, inputs: Inputs) -> str | None:
    """Check that the output of a head that sees one token is the value of that token."""
    alone = inputs["X"][-1:].copy()
    output, value = function(*{**inputs, "X": alone}.values()), (alone @ inputs["W_V"])[0]
    if np.shape(output) != value.shape or _off(output, value, 1e-7):
        return (
            f"X[-1] @ W_V, {show(value)}, when the last token is the only one; "
            f"{show(output)} came back"
        )
    return None


def ignores_doubled_tokens(function: Callable, inputs: Inputs) -> str | None:
    """Check that listing every token twice changes nothing."""
    before = function(*inputs.values())
    if _off(function(*_doubled(inputs).values()), before, 1e-7):
        return "the same answer when every token is there twice"
    return None


def ignores_the_order_of_the_past(function: Callable, inputs: Inputs) -> str | None:
    """Check that the order of the tokens before the last one does not matter."""
    X = inputs["X"]
    shuffled = {**inputs, "X": np.concatenate([X[-2::-1], X[-1:]])}
    before = function(*inputs.values())
    if _off(function(*shuffled.values()), before, 1e-7):
        return "the same answer when the tokens before the last one come in another order"
    return None


def treats_each_token_alone(function: Callable, inputs: Inputs) -> str | None:
    """Check that the centre of a token does not depend on the other tokens."""
    X, W_Q, W_K = _take(inputs, "X", "W_Q", "W_K")
    together = function(X, W_Q, W_K)
    alone = function(X[-1:].copy(), W_Q, W_K)
    if np.shape(alone) != (1, X.shape[1]) or _off(alone[0], together[-1]):
        return "for the last token alone the last row of the answer for all"
    return None


def looks_only_back(function: Callable, inputs: Inputs) -> str | None:
    """Check that another last token changes nothing at the positions before it."""
    changed = inputs["X"].copy()
    changed[-1] += 1
    for before, after in zip(
        function(*inputs.values()),
        function(*{**inputs, "X": changed}.values()),
        strict=True,
    ):
        if _off(before[:-1], after[:-1]):
            return "no change at earlier positions when the last token is another one"
    return None


def never_raises_the_energy(function: Callable, inputs: Inputs) -> str | None:
    """Check that no hop of an energy log goes up."""
    _, energies = function(*inputs.values())
    rises = energies[:, 1] - energies[:, 0]
    if np.any(rises > SLACK * np.maximum(1, np.abs(energies[:, 0]))):
        return f"energies that never rise from before to after; one rose by {show(rises.max())}"
    return None


def is_a_unit_vector_pointing_up(function: Callable, inputs: Inputs) -> str | None:
    """Check that a normal has the length 1 and a positive height."""
    normal = function(*inputs.values())
    length = float(np.linalg.norm(normal))
    if _off(length, 1.0) or normal[-1] <= 0:
        return (
            "a vector of length 1 with a positive last component; "
            f"the length is {show(length)}, the last component {show(normal[-1])}"
        )
    return None


def leans_to_the_token_when_alone(function: Callable, inputs: Inputs) -> str | None:
    """Check that a normal over a place leans to the only token by its distance."""
    xi, Y, beta = _take(inputs, "xi", "Y", "beta")
    normal = np.asarray(function(xi, Y[:1].copy(), beta))
    if _off(normal[:-1], normal[-1] * (Y[0] - xi), 1e-7):
        return (
            "horizontal components (y - xi) times the last one, when the first token y is the only "
            f"one; {show(normal)} came back"
        )
    return None


def is_the_hypotenuse_when_alone(function: Callable, inputs: Inputs) -> str | None:
    """Check the walk over a place whose slope is the distance from the only token."""
    xi, Y, beta = _take(inputs, "xi", "Y", "beta")
    length, walk = np.hypot(1, np.linalg.norm(xi - Y[0])), function(xi, Y[:1].copy(), beta, 1.0)
    if _off(walk, length, 1e-7):
        return (
            f"sqrt(1 + ||xi - y||^2) = {show(length)} with rise = 1, when the first token y is the "
            f"only one; {show(walk)} came back"
        )
    return None


def ends_over_the_token_when_alone(function: Callable, inputs: Inputs) -> str | None:
    """Check that the apex stands over the only token, 1 above the start."""
    xi, Y, beta = _take(inputs, "xi", "Y", "beta")
    apex = np.asarray(function(xi, Y[:1].copy(), beta, 1.0))
    height = float(xi @ xi / 2 - Y[0] @ xi) + 1
    if _off(apex[:-1], Y[0], 1e-7) or _off(apex[-1], height, 1e-7):
        return (
            f"the place y and the height E(xi) + 1 = ||xi||^2/2 - xi . y + 1 = {show(height)} with "
            f"rise = 1, when the first token y is the only one; {show(apex)} came back"
        )
    return None


def drops_by_the_bowl_when_alone(function: Callable, inputs: Inputs) -> str | None:
    """Check that over a single token, where nothing bends, a drop is the rise and the bowl's part.

    Whether one number or its parts come back: both add up to the drop.
    """
    xi, Y, beta = _take(inputs, "xi", "Y", "beta")
    drop, half = function(xi, Y[:1].copy(), beta), float((xi - Y[0]) @ (xi - Y[0])) / 2
    if _off(np.sum(drop), 1 + half, 1e-7):
        return (
            f"1 + ||xi - y||^2/2 = {show(1 + half)} in all, when token y = Y[0] is the only one; "
            f"{show(drop)} came back"
        )
    if np.ndim(drop) and _off(drop, [1, half, 0], 1e-7):
        return f"{show(np.array([1, half, 0]))}, when the first token is the only one"
    return None


def is_proportional_to_the_rise(function: Callable, inputs: Inputs) -> str | None:
    """Check that a walk is no shorter than its rise, and twice as long for twice the rise."""
    xi, Y, beta = _take(inputs, "xi", "Y", "beta")
    walk = float(function(xi, Y, beta, 1.0))
    if walk < 1 - SLACK:
        return f"a walk at least 1 long when called with rise = 1; {show(walk)} came back"
    further = float(function(xi, Y, beta, 2.0))
    if _off(further, 2 * walk):
        return (
            f"with rise = 2 twice the walk that rise = 1 gives; it is {show(further)} with "
            f"rise = 2 and {show(walk)} with rise = 1"
        )
    return None


def rises_as_asked(function: Callable, inputs: Inputs) -> str | None:
    """Check that an apex starts at the query without a rise, and gains height as told."""
    xi, Y, beta = _take(inputs, "xi", "Y", "beta")
    start = function(xi, Y, beta, 0.0)
    if _off(start[:-1], xi):
        return f"the query's own position when called with rise = 0; {show(start[:-1])} came back"
    apex = function(xi, Y, beta, 3.0)
    if _off(apex[-1], start[-1] + 3.0):
        return (
            "with rise = 3 a height 3 above that with rise = 0; it is "
            f"{show(apex[-1])} with rise = 3 and {show(start[-1])} with rise = 0"
        )
    return None


def is_at_least_one(function: Callable, inputs: Inputs) -> str | None:
    """Check that a drop is no smaller than the rise before it."""
    drop = float(function(*inputs.values()))
    if drop < 1 - 1e-8:
        return f"a drop of at least 1; {show(drop)} came back"
    return None


def has_no_negative_part(function: Callable, inputs: Inputs) -> str | None:
    """Check that no part of the drop is negative, up to rounding."""
    parts = function(*inputs.values())
    if np.any(parts < -1e-8):
        return f"parts that are not negative; the smallest is {show(np.min(parts))}"
    return None


def drops_from_apex_to_ground(function: Callable, inputs: Inputs) -> str | None:
    """Check that the drop of a hop is the apex height minus the ground height."""
    _, apex, ground, drop, _ = function(*inputs.values())
    if _off(drop, apex - ground):
        return (
            "a drop that leads from the apex to the ground: "
            f"{show(apex - ground)} by the heights, {show(drop)} by the drop"
        )
    return None


def is_even_and_below_the_size(function: Callable, inputs: Inputs) -> str | None:
    """Check that a function of numbers is 0 at 0, even, and from 0 up to the number's size."""
    u = inputs["u"]
    value = np.asarray(function(u))
    if _off(function(np.zeros(3)), 0.0):
        return "0 where u is 0"
    if _off(function(-u), value):
        return "the same numbers for -u as for u"
    if np.any(value < -SLACK) or np.any(value > np.abs(u) * (1 + SLACK) + SLACK):
        return "numbers from 0 up to the size of u"
    return None


def is_even_around_zero(function: Callable, inputs: Inputs) -> str | None:
    """Check that an energy is 0 at the origin and the same on both sides of it."""
    xi, Y, beta = _take(inputs, "xi", "Y", "beta")
    before = function(xi, Y, beta)
    middle = function(np.zeros(len(xi)), Y, beta)
    if _off(middle, 0.0, 1e-7):
        return f"0 at the origin; {show(middle)} came back"
    if _off(function(-xi, Y, beta), before, 1e-7):
        return "the same energy at -xi as at xi"
    return None


def ignores_turned_tokens(function: Callable, inputs: Inputs) -> str | None:
    """Check that a token may be replaced by its opposite."""
    xi, Y, beta = _take(inputs, "xi", "Y", "beta")
    turned = np.concatenate([-Y[:1], Y[1:]])
    before = function(xi, Y, beta)
    if _off(function(xi, turned, beta), before, 1e-7):
        return "the same answer when the first token y is replaced by -y"
    return None


def is_odd(function: Callable, inputs: Inputs) -> str | None:
    """Check that the opposite query gets the opposite answer."""
    xi, Y, beta = _take(inputs, "xi", "Y", "beta")
    before = np.asarray(function(xi, Y, beta))
    if _off(function(-xi, Y, beta), -before):
        return "for -xi the opposite of the answer for xi"
    return None


def is_linear(function: Callable, inputs: Inputs) -> str | None:
    """Check that a query of minus twice the length gets minus twice the answer."""
    xi, Y, beta = _take(inputs, "xi", "Y", "beta")
    before = np.asarray(function(xi, Y, beta))
    if _off(function(-2 * xi, Y, beta), -2 * before):
        return "for -2*xi minus twice the answer for xi"
    return None


def is_quadratic(function: Callable, inputs: Inputs) -> str | None:
    """Check that a query of minus twice the length gets four times the answer."""
    xi, Y, beta = _take(inputs, "xi", "Y", "beta")
    before = np.asarray(function(xi, Y, beta))
    if _off(function(-2 * xi, Y, beta), 4 * before):
        return "for -2*xi four times the answer for xi"
    return None


def comes_in_opposite_pairs(function: Callable, inputs: Inputs) -> str | None:
    """Check that centres balance and double with the tokens, and those of powers of two."""
    Y = inputs["Y"]
    centres = np.asarray(function(Y))
    reach = 1 + float(np.abs(centres).max())
    if _off(centres.sum(axis=0) / reach, 0.0):
        return "rows that add up to the origin: with every row its opposite"
    if _off(np.sum(function(2 * Y) ** 2), 4 * np.sum(centres**2)):
        return "rows twice as long when every token is twice as long"
    powers = function(2.0 ** np.arange(8, -1, -1)[:, None])
    if np.shape(powers) != (512, 1) or _off(powers[:, 0], np.arange(511.0, -512.0, -2.0)):
        return (
            "the rows 511, 509, 507, ..., -511 for the nine tokens 256, 128, 64, ..., 1 on a line"
        )
    return None


def treats_opposite_corners_alike(function: Callable, inputs: Inputs) -> str | None:
    """Check that a mask over corners has True in it, and the same for opposite corners."""
    Y = inputs["Y"]
    mask = function(Y)
    if not np.any(mask):
        return "at least one True: the longest signed sum is a valley"
    if np.any(mask != mask[::-1]):
        return "the same for opposite corners: first and last, second and last but one, and so on"
    for factor, words in ((3, "three times as long"), (1 / 16, "a sixteenth as long")):
        if np.any(function(factor * Y) != mask):
            return f"the same mask when every token is {words}"
    return None


def finds_no_more_valleys_than_places(function: Callable, inputs: Inputs) -> str | None:
    """Check the order of the two counts, and that there is one valley when beta is small."""
    Y = inputs["Y"]
    places, valleys = function(*inputs.values())
    if not 1 <= valleys <= places <= 2 ** len(Y):
        return f"1 <= valleys <= places <= 2**n; {show((places, valleys))} came back"
    beta = 0.5 / max(1.0, float((Y**2).sum()))
    valleys = function(Y, beta)[1]
    if valleys != 1:
        return (
            f"one valley at beta = {show(beta)}, where the bowl holds everything; "
            f"{show(valleys)} came back"
        )
    return None


def falls_straight_from_one(function: Callable, inputs: Inputs) -> str | None:
    """Check that curvatures ascend, start from 1 at beta = 0, and fall in proportion to it."""
    Y, beta = _take(inputs, "Y", "beta")
    values = np.asarray(function(Y, beta))
    size = 1 + float(np.abs(values).max())
    if np.any(np.diff(values) < -SLACK * size):
        return "curvatures in ascending order"
    if _off(1 - np.asarray(function(Y, 2 * beta)), 2 * (1 - values), SLACK * size):
        return "curvatures that are 1 at beta = 0 and fall in proportion to beta"
    return None


def scales_like_an_inverse_square(function: Callable, inputs: Inputs) -> str | None:
    """Check that a beta is positive, and a quarter for tokens of twice the length."""
    Y = inputs["Y"]
    beta = function(Y)
    if not beta > 0:
        return f"a number above 0; {show(beta)} came back"
    if _off(function(2 * Y), beta / 4):
        return "a quarter when every token is twice as long"
    return None


def is_a_bowl_when_hot(function: Callable, inputs: Inputs) -> str | None:
    """Check that the shape is one of four words, and a bowl when beta is small."""
    Y = inputs["Y"]
    words = ("bowl", "trough", "saddle", "dome")
    shape = function(*inputs.values())
    if shape not in words:
        return f"one of the words {', '.join(map(repr, words))}"
    beta = 0.5 / max(1.0, float((Y**2).sum()))
    if function(Y, beta) != "bowl":
        return f"'bowl' at beta = {show(beta)}, which is small enough for these tokens"
    return None


def starts_with_bowls(function: Callable, inputs: Inputs) -> str | None:
    """Check the shape of a table over betas and numbers of tokens, and its hot rows."""
    Y, ns, betas = _take(inputs, "Y", "ns", "betas")
    codes = np.asarray(function(Y, ns, betas))
    if not np.all(np.isin(codes, (0, 1, 2, 3))):
        return "a table of the numbers 0, 1, 2 and 3"
    small = 0.5 / max(1.0, float((Y**2).sum())) * np.ones(2)
    if np.any(np.asarray(function(Y, ns, small)) != 0):
        return f"bowls (0) in all columns at beta = {show(float(small[0]))}"
    return None


def stays_where_it_settled(function: Callable, inputs: Inputs) -> str | None:
    """Check that a search from a settled point ends at once, at that point."""
    x, _, converged = function(*inputs.values())
    if not converged:
        return None
    again, steps, _ = function(*{**inputs, "xi": np.array(x)}.values())
    if _off(again, x, max(1e-7, inputs.get("tol", 0.0))):
        return (
            "a point that stays when the search starts from it; "
            f"it moved by {show(float(np.abs(again - x).max()))}"
        )
    if steps > 2:
        return f"a hop or two when the search starts from a settled point; it took {show(steps)}"
    return None


def vanishes_for_one_token(function: Callable, inputs: Inputs) -> str | None:
    """Check that a number is not negative, and 0 when there is one token only."""
    xi, Y, beta = _take(inputs, "xi", "Y", "beta")
    value = function(xi, Y, beta)
    if value < -SLACK:
        return f"a number that is not negative; {show(value)} came back"
    alone = function(xi, Y[:1].copy(), beta)
    if _off(alone, 0.0):
        return f"0 when the first token is the only one; {show(alone)} came back"
    return None


def ignores_doubled_queries(function: Callable, inputs: Inputs) -> str | None:
    """Check that an average over queries is the same when every query is there twice."""
    Q, Y, betas = _take(inputs, "Q", "Y", "betas")
    values = function(Q, Y, betas)
    if _off(function(np.concatenate([Q, Q]), Y, betas), values, 1e-6):
        return "the same answer when every query is there twice"
    if _off(function(Q, Y, betas[::-1].copy()), values[::-1], 1e-6):
        return "the same numbers in the opposite order for betas in the opposite order"
    return None


def counts_one_valley_when_hot(function: Callable, inputs: Inputs) -> str | None:
    """Check that a count is 1 when beta is small, and never above the number of starts."""
    Y, starts = inputs["Y"], inputs["starts"]
    count = function(*inputs.values())
    if not 0 <= count <= len(starts):
        return f"at most {len(starts)}, the number of starts; {show(count)} came back"
    beta = 0.25 / max(1.0, float((Y**2).sum(axis=1).max()))
    count = function(Y, beta, starts)
    if count != 1:
        return f"1 at beta = {show(beta)}, where there is one valley; {show(count)} came back"
    return None


def vanishes_for_a_constant_step(function: Callable, inputs: Inputs) -> str | None:
    """Check that a step that leads everywhere to one point leaves no gap."""
    x = inputs["x"]
    gap = function(Function("one place"), x)
    if not abs(gap) <= SLACK:
        return f"0 for a step that leads to one place from anywhere; {show(gap)} came back"
    return None


def finds_no_rest_in_running_away(function: Callable, inputs: Inputs) -> str | None:
    """Check that a walk that grows until its numbers end has no gap, and is no error."""
    gap = function(Function("growing"), np.ones_like(inputs["x"]), 1e-10, 200)
    if np.isnan(gap):
        return None
    return (
        "nan for step(x) = 1000*x from x = 1, max_steps = 200, which runs away to inf; "
        f"{show(gap)} came back"
    )


def tells_gradients_at_a_fresh_place(function: Callable, inputs: Inputs) -> str | None:
    """Check what is said of right and wrong gradients at a place that no example has."""
    xi = _fresh_place(inputs)
    for f, grad in (("bowl", "bowl"), ("bowl", "sines"), ("exponential", "exponential")):
        if function(Function(f), Function(f"{grad}_gradient"), xi) != (f == grad):
            return f"{f == grad}: this is {'' if f == grad else 'not '}the gradient of this f"
    return None


def knows_the_bowl_at_a_fresh_place(function: Callable, inputs: Inputs) -> str | None:
    """Check the numbers of a hop over the bowl at a place that no example has."""
    xi = _fresh_place(inputs)
    numbers = function(Function("bowl"), Function("bowl_gradient"), xi)
    height = float(xi @ xi) / 2
    right = np.array([np.sqrt(1 + 2 * height), height + 1, 0, height + 1, 0])
    if np.shape(numbers) != (5,) or _off(numbers, right):
        return f"{show(right)}: the gradient is xi, so the ground is at the origin"
    return None


def _fresh_place(inputs: Inputs) -> np.ndarray:
    return np.random.default_rng(11).normal(size=len(inputs["xi"]))


PROPERTIES: dict[str, Callable[[Callable, Inputs], str | None]] = {
    rule.__name__: rule
    for rule in (
        between_max_and_log_n,
        rises_with_the_scores,
        gains_log_2_from_doubling,
        has_exponential_ratios,
        is_plain_covariance_at_zero,
        ignores_a_common_shift,
        is_a_distribution,
        lies_in_the_hull,
        is_the_token_when_alone,
        trades_beta_for_the_query,
        is_a_covariance,
        differentiates_a_line,
        falls_with_doubled_tokens,
        is_minus_log_n_at_zero,
        is_half_a_square_on_one_centre,
        stays_above_the_floor,
        scales_like_a_square,
        gives_each_centre_its_own,
        twins_share_evenly,
        has_the_odds_of_pi_halfway,
        falls_around_one_centre,
        integrates_to_one,
        finds_one_valley_when_hot,
        leads_to_a_point_among_the_tokens,
        leads_to_the_token_when_alone,
        is_the_value_when_alone,
        ignores_doubled_tokens,
        ignores_the_order_of_the_past,
        treats_each_token_alone,
        looks_only_back,
        never_raises_the_energy,
        is_a_unit_vector_pointing_up,
        leans_to_the_token_when_alone,
        is_the_hypotenuse_when_alone,
        ends_over_the_token_when_alone,
        drops_by_the_bowl_when_alone,
        is_proportional_to_the_rise,
        rises_as_asked,
        is_at_least_one,
        has_no_negative_part,
        drops_from_apex_to_ground,
        is_even_and_below_the_size,
        is_even_around_zero,
        ignores_turned_tokens,
        is_odd,
        is_linear,
        is_quadratic,
        comes_in_opposite_pairs,
        treats_opposite_corners_alike,
        finds_no_more_valleys_than_places,
        falls_straight_from_one,
        scales_like_an_inverse_square,
        is_a_bowl_when_hot,
        starts_with_bowls,
        stays_where_it_settled,
        vanishes_for_one_token,
        ignores_doubled_queries,
        counts_one_valley_when_hot,
        vanishes_for_a_constant_step,
        finds_no_rest_in_running_away,
        tells_gradients_at_a_fresh_place,
        knows_the_bowl_at_a_fresh_place,
    )
}
