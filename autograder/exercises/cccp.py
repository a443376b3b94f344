"""Lesson 03: what each exercise asks, the wrong answers it knows, right answers of other forms."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lu_factor, lu_solve
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.special import softmax as scipy_softmax

from autograder.exercise import Alternative, Exercise, Group, Misconception
from autograder.exercises._cases import (
    PUBLIC_HEADS,
    SOFTMAX_PUBLIC,
    CalledObject,
    head_case,
    noisy,
    random_head,
    softmax_groups,
)
from autograder.reference import cccp as ref
from autograder.reference import gmm_polarization as lesson_2
from autograder.reference import lse_gradient as lesson_1
from autograder.reference import one_step_vs_settling as lesson_7
from autograder.reference.fixtures import H1, H3, H4, H5, Head
from hopping.cases import Case

LESSON = "03_cccp"
ONE_HOP = "One hop, wherever it lands. Repeated hops settle in a valley, which is another question."


# --- energy_grad --------------------------------------------------------------------------------


def _unit(vector):
    return vector / np.linalg.norm(vector)


def _overflowing_softmax(u):
    return np.exp(u) / np.exp(u).sum()


def _gradient_at_beta_1(xi, Y, beta):
    return ref.energy_grad(xi, Y, 1.0)


def _gradient_overflowing(xi, Y, beta):
    return xi - _overflowing_softmax(beta * (Y @ xi)) @ Y


def _gradient_in_place(xi, Y, beta):
    xi -= lesson_1.lse_grad(xi, Y, beta)
    return xi


def _gradient_in_whole_numbers(xi, Y, beta):
    gradient = np.zeros_like(xi)
    gradient[:] = ref.energy_grad(xi, Y, beta)
    return gradient


def _gradient_by_loop(xi, Y, beta):
    gradient = np.array(xi, dtype=float)
    for weight, token in zip(scipy_softmax(beta * (Y @ xi)), Y, strict=True):
        gradient = gradient - weight * token
    return gradient


def _gradient_by_components(xi, Y, beta):
    """Average the gradients of the bumps: each pulls the query to its own centre."""
    return np.einsum("t,td->d", lesson_2.posterior(xi, Y, beta), xi - Y)


def _gradient_by_complex_step(xi, Y, beta):
    return lesson_1.complex_step_grad(lambda x: lesson_2.energy(x, Y, beta), xi)


ENERGY_GRAD = Exercise(
    name="energy_grad",
    lesson=LESSON,
    points=3.0,
    expects="a new array like xi that points uphill; xi minus it lies among the centres",
    reference=ref.energy_grad,
    examples=SOFTMAX_PUBLIC,
    groups=softmax_groups(3101),
    properties=(
        "leads_to_a_point_among_the_tokens",
        "leads_to_the_token_when_alone",
        "ignores_doubled_tokens",
    ),
    misconceptions=(
        Misconception(
            "sign-of-attention",
            "E = bowl minus lse.",
            lambda xi, Y, beta: xi + lesson_1.lse_grad(xi, Y, beta),
        ),
        Misconception(
            "bowl-missing",
            "Differentiate ||xi||^2/2.",
            lambda xi, Y, beta: -lesson_1.lse_grad(xi, Y, beta),
        ),
        Misconception(
            "two-xi",
            "Half the squared norm.",
            lambda xi, Y, beta: 2 * xi - lesson_1.lse_grad(xi, Y, beta),
        ),
        Misconception(
            "beta-times-attention",
            "beta cancels.",
            lambda xi, Y, beta: xi - beta * lesson_1.lse_grad(xi, Y, beta),
        ),
        Misconception(
            "beta-forgotten",
            "The weights become sharper when beta grows: which numbers does it multiply?",
            _gradient_at_beta_1,
        ),
        Misconception(
            "overflow", "nan at large beta: which exp overflowed?", _gradient_overflowing
        ),
        Misconception(
            "downhill",
            "Gradient points uphill.",
            lambda xi, Y, beta: -ref.energy_grad(xi, Y, beta),
        ),
        Misconception(
            "normalised",
            "Length matters: the step is exactly 1 gradient.",
            lambda xi, Y, beta: _unit(ref.energy_grad(xi, Y, beta)),
        ),
        Misconception("mutates-xi", "x -= ... changes the caller.", _gradient_in_place),
        Misconception(
            "cut-to-whole-numbers",
            "Which type has the array that you fill, when xi holds whole numbers?",
            _gradient_in_whole_numbers,
        ),
        Misconception(
            "times-beta",
            "beta cancels.",
            lambda xi, Y, beta: beta * ref.energy_grad(xi, Y, beta),
        ),
        Misconception(
            "plain-mean", "Which centres count more?", lambda xi, Y, beta: xi - Y.mean(axis=0)
        ),
        Misconception(
            "largest-score",
            "The best centre gets the largest weight, but not all of it.",
            lambda xi, Y, beta: xi - Y[np.argmax(Y @ xi)],
        ),
    ),
    alternatives=(
        Alternative("loop", _gradient_by_loop),
        Alternative("components", _gradient_by_components),
        Alternative(
            "long-double",
            lambda xi, Y, beta: xi - scipy_softmax(np.longdouble(beta) * (Y @ xi)) @ Y,
        ),
        Alternative("complex-step", _gradient_by_complex_step),
        Alternative(
            "average",
            lambda xi, Y, beta: xi - np.average(Y, axis=0, weights=scipy_softmax(beta * Y @ xi)),
        ),
        Alternative("callable-object", CalledObject(_gradient_by_components)),
        Alternative("prints-and-warns", noisy(_gradient_by_loop)),
    ),
)


# --- cccp_step ----------------------------------------------------------------------------------


def _step_of(size):
    return lambda xi, Y, beta: xi - size * ref.energy_grad(xi, Y, beta)


def _step_at_beta_1(xi, Y, beta):
    return ref.cccp_step(xi, Y, 1.0)


def _step_overflowing(xi, Y, beta):
    return _overflowing_softmax(beta * (Y @ xi)) @ Y


def _step_to_the_best(xi, Y, beta):
    return Y[np.argmax(Y @ xi)].copy()


def _fifty_steps(xi, Y, beta):
    return ref.cccp_path(xi, Y, beta, 50)[-1]


def _settled_step(xi, Y, beta):
    return lesson_7.settle(xi, Y, beta, tol=1e-13)[0]


def _step_in_place(xi, Y, beta):
    xi[:] = lesson_1.lse_grad(xi, Y, beta)
    return xi


def _step_by_loop(xi, Y, beta):
    scores = [float(np.dot(token, xi)) for token in Y]
    factors = [np.exp(beta * (score - max(scores))) for score in scores]
    landing = np.zeros(len(xi))
    for factor, token in zip(factors, Y, strict=True):
        landing += factor / sum(factors) * token
    return landing


def _step_down_the_majoriser(xi, Y, beta):
    """Minimise bowl plus tangent, which is quadratic: exact for a Newton step."""
    slope = lesson_1.lse_grad(xi, Y, beta)
    result = minimize(
        lambda z: z @ z / 2 - slope @ (z - xi),
        np.zeros(len(xi)),
        jac=lambda z: z - slope,
        hess=lambda z: np.eye(len(xi)),
        method="trust-exact",
        options={"gtol": 1e-14, "max_trust_radius": 1e6, "initial_trust_radius": 1e5},
    )
    return result.x


def _step_from_logs(xi, Y, beta):
    u = beta * np.einsum("td,d->t", Y, xi)
    return np.exp(u - logsumexp(u)) @ Y


CCCP_STEP = Exercise(
    name="cccp_step",
    lesson=LESSON,
    points=3.0,
    expects="a new array like xi: a point among the centres, where the energy is not higher",
    reference=ref.cccp_step,
    examples=SOFTMAX_PUBLIC,
    groups=softmax_groups(3201),
    properties=(
        "lies_in_the_hull",
        "is_the_token_when_alone",
        "trades_beta_for_the_query",
        "ignores_doubled_tokens",
    ),
    misconceptions=(
        Misconception(
            "step-size-beta",
            "Which step size makes xi disappear?",
            lambda xi, Y, beta: xi - beta * ref.energy_grad(xi, Y, beta),
        ),
        Misconception("small-step", "CCCP is the full step.", _step_of(0.1)),
        Misconception("half-step", "Half the way is not the lowest point of Q.", _step_of(0.5)),
        Misconception("ascends", "Did the energy fall?", _step_of(-1.0)),
        Misconception(
            "adds-the-residual",
            "The hop lands on the average itself: nothing is added to it.",
            lambda xi, Y, beta: xi + lesson_1.lse_grad(xi, Y, beta),
        ),
        Misconception(
            "nearest-centre",
            "Soft, and by score.",
            lambda xi, Y, beta: Y[np.argmin(((Y - xi) ** 2).sum(axis=1))].copy(),
        ),
        Misconception(
            "two-steps",
            "Attention is one hop.",
            lambda xi, Y, beta: ref.cccp_step(ref.cccp_step(xi, Y, beta), Y, beta),
        ),
        Misconception(
            "three-steps", ONE_HOP, lambda xi, Y, beta: ref.cccp_path(xi, Y, beta, 3)[-1]
        ),
        Misconception("ten-steps", ONE_HOP, lambda xi, Y, beta: ref.cccp_path(xi, Y, beta, 10)[-1]),
        Misconception("fifty-steps", ONE_HOP, _fifty_steps),
        Misconception(
            "plain-mean", "Which centres count more?", lambda xi, Y, beta: Y.mean(axis=0)
        ),
        Misconception(
            "stays", "That is where the hop starts: where does it lead?", lambda xi, Y, beta: +xi
        ),
        Misconception(
            "gradient-returned", "That is the way. Where does it lead from xi?", ref.energy_grad
        ),
        Misconception("settles", ONE_HOP, _settled_step),
        Misconception(
            "largest-score",
            "The best centre gets the largest weight, but not all of it.",
            _step_to_the_best,
        ),
        Misconception(
            "beta-forgotten",
            "The weights become sharper when beta grows: which numbers does it multiply?",
            _step_at_beta_1,
        ),
        Misconception("overflow", "nan at large beta: which exp overflowed?", _step_overflowing),
        Misconception("mutates-xi", "Return a new array.", _step_in_place),
    ),
    alternatives=(
        Alternative("loop", _step_by_loop),
        Alternative("gradient-step", lambda xi, Y, beta: xi - ref.energy_grad(xi, Y, beta)),
        Alternative("minimise-the-majoriser", _step_down_the_majoriser),
        Alternative("logs", _step_from_logs),
        Alternative("callable-object", CalledObject(_step_from_logs)),
        Alternative("prints-and-warns", noisy(_step_by_loop)),
    ),
)


# --- token_centers ------------------------------------------------------------------------------


def _weights_case(name, head):
    return Case(name, {key: getattr(head, key) for key in ("X", "W_Q", "W_K")})


def _centres_in_whole_numbers(X, W_Q, W_K):
    centres = np.zeros_like(X)
    centres[:] = ref.token_centers(X, W_Q, W_K)
    return centres


def _centres_by_loop(X, W_Q, W_K):
    centres = np.zeros((len(X), W_Q.shape[0]))
    for t, token in enumerate(X):
        for j in range(W_Q.shape[0]):
            centres[t, j] = sum(
                float(k) * float(q) for k, q in zip(token @ W_K, W_Q[j], strict=True)
            )
    return centres


def _centres_by_probing(X, W_Q, W_K):
    """Read the centres off the scores of the unit queries."""
    keys = X @ W_K
    return np.column_stack([keys @ (unit @ W_Q) for unit in np.eye(len(W_Q))])


_HEAD_RNG = np.random.default_rng(3301)
_WIDE = random_head(_HEAD_RNG, 3, 5, 2, 4)
_TALL = random_head(_HEAD_RNG, 7, 3, 2, 2)
_MORE_KEYS = random_head(_HEAD_RNG, 4, 2, 3, 1)
# As many tokens as dimensions everywhere: a product on the wrong side runs, and has a value.
_CUBE = random_head(_HEAD_RNG, 3, 3, 3, 3)
_LARGE = random_head(_HEAD_RNG, 5, 3, 3, 2, size=40.0)
_SINGLE = random_head(_HEAD_RNG, 1, 3, 2, 2)
_THIN = Head(np.array([[0.5], [-2.0], [1.5]]), *(np.array([[x]]) for x in (2.0, -0.75, 3.0)))
_TWINS = Head(H1.X[[0, 1, 0, 0]], *H1[1:])
# Shapes and sizes that tell wrong answers apart which agree on H1 to H5.
_MORE_VALUES = H1._replace(W_V=np.array([[1.0, -1.0, 0.5], [0.5, 2.0, -0.25]]))
_LONG_TOKENS = H5._replace(X=20 * H5.X)
_LARGE_SCORES = H1._replace(X=64 * H1.X)
_WHOLE = Head(
    *(np.array(rows) for rows in ([[1, 2], [0, -1]], [[1, 1], [0, 2]], [[2, 1], [1, 1]])),
    np.array([[1, 0], [-1, 3]]),
)
# Whole tokens under other weights: an array of whole numbers that is made like X cuts off.
_WHOLE_TOKENS = H1._replace(X=np.array([[1, 0], [-1, 2], [2, 1]]))
_OTHER_WHOLE_TOKENS = H1._replace(X=np.array([[0, 1], [3, -1], [1, 1], [-1, -2]]))
# Tenths lose digits as float32, which the binary fractions of the fixtures do not.
_TENTHS = Head(
    *(
        np.array(rows)
        for rows in (
            [[0.1, 0.7], [-0.3, 0.2], [0.6, -0.4]],
            [[0.3, 0.9], [-0.2, 0.7]],
            [[0.7, -0.1], [0.4, 0.6]],
            [[0.9, -0.6], [0.2, 0.3]],
        )
    )
)
_BY_COLUMNS = Head(*(np.asfortranarray(part) for part in H5))
_SQUARE = Head(H1.X[:2], *H1[1:])

CENTERS = Exercise(
    name="token_centers",
    lesson=LESSON,
    points=3.0,
    expects="an array with one row per token, each of as many numbers as a token has",
    reference=ref.token_centers,
    examples=(
        *(_weights_case(case.name, Head(*case.inputs.values())) for case in PUBLIC_HEADS[:4]),
        _weights_case("square", _SQUARE),
        _weights_case("whole tokens", _WHOLE_TOKENS),
        _weights_case("tenths", _TENTHS),
    ),
    groups=(
        Group(
            "ordinary",
            "ordinary values",
            0.60,
            (
                _weights_case("wide", _WIDE),
                _weights_case("tall", _TALL),
                _weights_case("square", _CUBE),
                _weights_case("H5", H5),
            ),
        ),
        Group("extreme", "large tokens", 0.15, (_weights_case("large", _LARGE),)),
        Group(
            "edges",
            "edge shapes",
            0.25,
            (
                _weights_case("one token", _SINGLE),
                _weights_case("one dimension", _THIN),
                _weights_case("more keys than dimensions", _MORE_KEYS),
                _weights_case("whole numbers", _WHOLE),
                _weights_case("whole tokens", _OTHER_WHOLE_TOKENS),
                _weights_case("stored by columns", _BY_COLUMNS),
            ),
        ),
    ),
    properties=("treats_each_token_alone",),
    misconceptions=(
        Misconception(
            "M-not-transposed",
            "Centres are keys seen by the query: start from scores = xi . y.",
            lambda X, W_Q, W_K: (X @ W_Q) @ W_K.T,
        ),
        Misconception(
            "keys-only",
            "A centre is a place for the query: it has as many numbers as a token, a key need not.",
            lambda X, W_Q, W_K: X @ W_K,
        ),
        Misconception(
            "elementwise", "M is a matrix product.", lambda X, W_Q, W_K: X @ (W_Q * W_K).T
        ),
        Misconception(
            "transposes-the-wrong-factor",
            "Shapes: (D, d_k) times (d_k, D).",
            lambda X, W_Q, W_K: X @ (W_Q.T @ W_K),
        ),
        Misconception(
            "beta-folded-in",
            "beta stays outside.",
            lambda X, W_Q, W_K: ref.token_centers(X, W_Q, W_K) / np.sqrt(W_K.shape[1]),
        ),
        Misconception(
            "tokens-as-columns",
            "One row per token.",
            lambda X, W_Q, W_K: W_Q @ W_K.T @ X.T,
        ),
        Misconception(
            "tokens-transposed",
            "One row per token.",
            lambda X, W_Q, W_K: X.T @ W_K @ W_Q.T,
        ),
        Misconception(
            "queries-only",
            "The token that answers meets the keys. Which matrix does the query meet?",
            lambda X, W_Q, W_K: X @ W_Q,
        ),
        Misconception(
            "queries-twice",
            "M has one matrix for each of its two places: which of them did you use twice?",
            lambda X, W_Q, W_K: X @ W_Q @ W_Q.T,
        ),
        Misconception(
            "keys-twice",
            "M has one matrix for each of its two places: which of them did you use twice?",
            lambda X, W_Q, W_K: X @ W_K @ W_K.T,
        ),
        Misconception(
            "cut-to-whole-numbers",
            "Which type has the array that you fill, when X holds whole numbers?",
            _centres_in_whole_numbers,
        ),
    ),
    alternatives=(
        Alternative("loop", _centres_by_loop),
        Alternative("long-double", lambda X, W_Q, W_K: X.astype(np.longdouble) @ W_K @ W_Q.T),
        Alternative("forms-M", lambda X, W_Q, W_K: X @ (W_Q @ W_K.T).T),
        Alternative("einsum", lambda X, W_Q, W_K: np.einsum("td,dk,ek->te", X, W_K, W_Q)),
        Alternative("probing", _centres_by_probing),
        Alternative("transposed-twice", lambda X, W_Q, W_K: (W_Q @ (X @ W_K).T).T),
        Alternative("callable-object", CalledObject(_centres_by_probing)),
        Alternative("prints-and-warns", noisy(_centres_by_loop)),
    ),
)


# --- attention_output ---------------------------------------------------------------------------


def _default(beta, width):
    return 1 / np.sqrt(width) if beta is None else beta


def _with_scale(head, scale):
    """Return the head with another rule for beta: scale(beta or None, d_k, d_v)."""

    def scaled(X, W_Q, W_K, W_V, beta=None):
        return head(X, W_Q, W_K, W_V, scale(beta, W_K.shape[1], W_V.shape[1]))

    return scaled


def _wrong_scales(head):
    """Return what goes wrong with the default and the given beta, in any form of the head."""
    return (
        Misconception(
            "times-root-d_k",
            "Should a larger d_k make the softmax sharper or softer?",
            _with_scale(head, lambda beta, d_k, d_v: d_k**0.5 if beta is None else beta),
        ),
        Misconception(
            "one-over-d_k",
            "The default is one over a root: of what?",
            _with_scale(head, lambda beta, d_k, d_v: 1 / d_k if beta is None else beta),
        ),
        Misconception(
            "precedence",
            "Python reads d_k ** -1 / 2 as (d_k ** -1) / 2.",
            _with_scale(head, lambda beta, d_k, d_v: d_k**-1 / 2 if beta is None else beta),
        ),
        Misconception(
            "divides-by-beta",
            "Is large beta hot or cold?",
            _with_scale(head, lambda beta, d_k, d_v: d_k**-0.5 if beta is None else 1 / beta),
        ),
        Misconception(
            "root-d_v",
            "Scores know nothing of the values: which width do query and key share?",
            _with_scale(head, lambda beta, d_k, d_v: _default(beta, d_v)),
        ),
        Misconception(
            "default-of-1",
            "No beta given does not mean 1: what is the default?",
            _with_scale(head, lambda beta, d_k, d_v: 1.0 if beta is None else beta),
        ),
        Misconception(
            "scaled-twice",
            "A beta that is given is used as it is: the root belongs to the default alone.",
            _with_scale(head, lambda beta, d_k, d_v: (1.0 if beta is None else beta) / d_k**0.5),
        ),
        Misconception(
            "beta-ignored",
            "None means default; a number must be used.",
            _with_scale(head, lambda beta, d_k, d_v: d_k**-0.5),
        ),
    )


def _head_of_d_model(X, W_Q, W_K, W_V, beta=None):
    return ref.attention_output(X, W_Q, W_K, W_V, _default(beta, X.shape[1]))


def _head_overflowing(X, W_Q, W_K, W_V, beta=None):
    u = _default(beta, W_K.shape[1]) * (X @ W_K @ (X[-1] @ W_Q))
    return _overflowing_softmax(u) @ X @ W_V


def _head_of_first_token(X, W_Q, W_K, W_V, beta=None):
    return ref.attention_output(np.vstack([X[1:], X[:1]]), W_Q, W_K, W_V, beta)


def _head_swapped(X, W_Q, W_K, W_V, beta=None):
    return ref.attention_output(X, W_K, W_Q, W_V, beta)


def _weights(X, W_Q, W_K, beta):
    return scipy_softmax(_default(beta, W_K.shape[1]) * (X @ W_K @ (X[-1] @ W_Q)))


def _head_with_residual(X, W_Q, W_K, W_V, beta=None):
    return X[-1] @ W_V + ref.attention_output(X, W_Q, W_K, W_V, beta)


def _head_of_the_best(X, W_Q, W_K, W_V, beta=None):
    return X[np.argmax(X @ W_K @ (X[-1] @ W_Q))] @ W_V


def _head_averaged(X, W_Q, W_K, W_V, beta=None):
    u = _default(beta, W_K.shape[1]) * (X @ W_Q) @ (X @ W_K).T
    return (scipy_softmax(u, axis=1) @ X @ W_V).mean(axis=0)


def _head_without_values(X, W_Q, W_K, W_V, beta=None):
    return _weights(X, W_Q, W_K, beta) @ X


def _head_without_itself(X, W_Q, W_K, W_V, beta=None):
    u = _default(beta, W_K.shape[1]) * (X[:-1] @ W_K @ (X[-1] @ W_Q))
    return scipy_softmax(u) @ X[:-1] @ W_V


def _head_over_queries(X, W_Q, W_K, W_V, beta=None):
    u = _default(beta, W_K.shape[1]) * (X @ W_Q) @ (X @ W_K).T
    return (scipy_softmax(u, axis=0) @ X @ W_V)[-1]


def _head_without_axis(X, W_Q, W_K, W_V, beta=None):
    u = _default(beta, W_K.shape[1]) * (X @ W_Q) @ (X @ W_K).T
    return (scipy_softmax(u) @ X @ W_V)[-1]


def _head_by_loop(X, W_Q, W_K, W_V, beta=None):
    query = X[-1] @ W_Q
    scores = [float(query @ (token @ W_K)) for token in X]
    beta = W_K.shape[1] ** -0.5 if beta is None else beta
    factors = [np.exp(beta * (score - max(scores))) for score in scores]
    output = np.zeros(W_V.shape[1])
    for factor, token in zip(factors, X, strict=True):
        output += factor * (token @ W_V)
    return output / sum(factors)


def _head_of_all_positions(X, W_Q, W_K, W_V, beta=None):
    """Compute every position under a causal mask, and take the last."""
    beta = W_K.shape[1] ** -0.5 if beta is None else beta
    u = beta * (X @ W_Q) @ (X @ W_K).T
    u = np.where(np.tri(len(X), dtype=bool), u, -np.inf)
    return scipy_softmax(u, axis=1)[-1] @ (X @ W_V)


def _head_running(X, W_Q, W_K, W_V, beta=None):
    """See one token after another, and rescale what is kept when a larger score comes."""
    beta = W_K.shape[1] ** -0.5 if beta is None else beta
    top, total, kept = -np.inf, 0.0, np.zeros(W_V.shape[1])
    for token in X:
        score = beta * float(token @ W_K @ (X[-1] @ W_Q))
        higher = max(top, score)
        shrink, weight = np.exp(top - higher), np.exp(score - higher)
        total, kept, top = total * shrink + weight, kept * shrink + weight * (token @ W_V), higher
    return kept / total


def _head_by_einsum(X, W_Q, W_K, W_V, beta=None):
    beta = W_K.shape[1] ** -0.5 if beta is None else beta
    u = beta * np.einsum("i,ik,jk,tj->t", X[-1], W_Q, W_K, X)
    return np.einsum("t,td,dv->v", np.exp(u - logsumexp(u)), X, W_V)


def _head_by_hop(X, W_Q, W_K, W_V, beta=None):
    """Differentiate lse over keys paired with values: the values are its slopes."""
    beta = W_K.shape[1] ** -0.5 if beta is None else beta
    pairs = np.hstack([X @ W_K, X @ W_V])
    query = np.concatenate([X[-1] @ W_Q, np.zeros(W_V.shape[1])])
    return ref.cccp_step(query, pairs, beta)[W_K.shape[1] :]


OUTPUT = Exercise(
    name="attention_output",
    lesson=LESSON,
    points=3.0,
    expects="an array of d_v numbers, an average of the values X W_V that the last token asks for",
    reference=ref.attention_output,
    examples=(
        *PUBLIC_HEADS,
        head_case("more values than keys", _MORE_VALUES),
        head_case("large scores", _LARGE_SCORES),
        head_case("H1 beta 0.5", H1, 0.5),
        head_case("whole tokens", _WHOLE_TOKENS),
        head_case("tenths", _TENTHS),
    ),
    groups=(
        Group(
            "ordinary",
            "ordinary values",
            0.60,
            (
                head_case("wide", _WIDE),
                head_case("tall", _TALL),
                head_case("square", _CUBE),
                head_case("H5", H5),
                head_case("wide, beta given", _WIDE, 1.75),
            ),
        ),
        Group(
            "extreme",
            "very large and very small exponents",
            0.25,
            (
                # Every naive exponential vanishes in the first, and one overflows in the second.
                head_case("low", _LARGE, 16.0),
                head_case("long tokens", _LONG_TOKENS, 8.0),
                head_case("large, default beta", _LARGE),
                head_case("hot", H3, 2.0**-18),
            ),
        ),
        Group(
            "edges",
            "edge shapes",
            0.15,
            (
                head_case("one token", _SINGLE),
                head_case("one dimension", _THIN),
                head_case("more keys than dimensions", _MORE_KEYS),
                head_case("equal tokens", _TWINS, 1.5),
                head_case("whole numbers", _WHOLE, 0.5),
                head_case("whole tokens", _OTHER_WHOLE_TOKENS, 0.75),
                head_case("stored by columns", _BY_COLUMNS),
            ),
        ),
    ),
    properties=(
        "is_the_value_when_alone",
        "ignores_the_order_of_the_past",
        "ignores_doubled_tokens",
    ),
    misconceptions=(
        Misconception(
            "root-d-model",
            "Over how many terms does the inner product of query and key sum?",
            _head_of_d_model,
        ),
        Misconception("first-token-asks", "Which row of X asks?", _head_of_first_token),
        Misconception(
            "Q-and-K-swapped",
            "Asking and answering are two parts: which matrix does the token that asks meet?",
            _head_swapped,
        ),
        Misconception(
            "no-value-matrix",
            "What is read out, and by which matrix?",
            _head_without_values,
        ),
        Misconception(
            "current-token-excluded",
            "The token that asks answers, too: all rows of X have a weight.",
            _head_without_itself,
        ),
        *_wrong_scales(ref.attention_output),
        Misconception("softmax-over-queries", "Each row of weights sums to 1.", _head_over_queries),
        Misconception(
            "softmax-without-axis",
            "The weights of one query must sum to 1: over which numbers does your softmax sum?",
            _head_without_axis,
        ),
        Misconception("overflow", "nan at large scores: which exp overflowed?", _head_overflowing),
        Misconception(
            "adds-its-own-value",
            "The output is an average of values: nothing is added to it.",
            _head_with_residual,
        ),
        Misconception(
            "largest-score",
            "The best token gets the largest weight, but not all of it.",
            _head_of_the_best,
        ),
        Misconception(
            "average-of-all-positions",
            "One token asks, the last one: which row of the outputs is its?",
            _head_averaged,
        ),
    ),
    alternatives=(
        Alternative("loop", _head_by_loop),
        Alternative("all-positions", _head_of_all_positions),
        Alternative("running", _head_running),
        Alternative("einsum", _head_by_einsum),
        Alternative("one-hop-over-pairs", _head_by_hop),
        Alternative("callable-object", CalledObject(_head_by_einsum)),
        Alternative("prints-and-warns", noisy(_head_by_loop)),
    ),
)


# --- hop_then_read ------------------------------------------------------------------------------


def _land(X, W_Q, W_K, beta):
    return ref.cccp_step(X[-1], ref.token_centers(X, W_Q, W_K), _default(beta, W_K.shape[1]))


def _read_by_M(X, W_Q, W_K, W_V, beta=None):
    return _land(X, W_Q, W_K, beta) @ np.linalg.inv(W_Q @ W_K.T) @ W_V


def _read_forgotten(X, W_Q, W_K, W_V, beta=None):
    return _land(X, W_Q, W_K, beta) @ W_V


def _read_twice(X, W_Q, W_K, W_V, beta=None):
    return _land(X, W_Q, W_K, beta) @ (W_Q @ W_K.T).T @ W_V


def _read_without_values(X, W_Q, W_K, W_V, beta=None):
    return np.linalg.solve(W_Q @ W_K.T, _land(X, W_Q, W_K, beta))


def _read_first_token(X, W_Q, W_K, W_V, beta=None):
    return ref.hop_then_read(np.vstack([X[1:], X[:1]]), W_Q, W_K, W_V, beta)


def _read_overflowing(X, W_Q, W_K, W_V, beta=None):
    centres = ref.token_centers(X, W_Q, W_K)
    landing = _step_overflowing(X[-1], centres, _default(beta, W_K.shape[1]))
    return np.linalg.solve(W_Q @ W_K.T, landing) @ W_V


def _read_settled(X, W_Q, W_K, W_V, beta=None):
    centres = ref.token_centers(X, W_Q, W_K)
    settled = lesson_7.settle(X[-1], centres, _default(beta, W_K.shape[1]))[0]
    return np.linalg.solve(W_Q @ W_K.T, settled) @ W_V


def _read_without_keys_undone(X, W_Q, W_K, W_V, beta=None):
    return np.linalg.solve(W_Q, _land(X, W_Q, W_K, beta)) @ W_V


def _read_without_queries_undone(X, W_Q, W_K, W_V, beta=None):
    return np.linalg.solve(W_K.T, _land(X, W_Q, W_K, beta)) @ W_V


def _read_after_hop_among_tokens(X, W_Q, W_K, W_V, beta=None):
    landing = ref.cccp_step(X[-1], X, _default(beta, W_K.shape[1]))
    return np.linalg.solve(W_Q @ W_K.T, landing) @ W_V


def _read_after_two_hops(X, W_Q, W_K, W_V, beta=None):
    centres = ref.token_centers(X, W_Q, W_K)
    place = ref.cccp_path(X[-1], centres, _default(beta, W_K.shape[1]), 2)[-1]
    return np.linalg.solve(W_Q @ W_K.T, place) @ W_V


def _read_with_ridge(X, W_Q, W_K, W_V, beta=None):
    M = W_Q @ W_K.T
    return np.linalg.solve(M + 1e-6 * np.eye(len(M)), _land(X, W_Q, W_K, beta)) @ W_V


def _read_refusing(X, W_Q, W_K, W_V, beta=None):
    if np.linalg.cond(W_Q @ W_K.T) > 1e3:
        raise ValueError("M cannot be undone")
    return ref.hop_then_read(X, W_Q, W_K, W_V, beta)


def _read_in_key_space(X, W_Q, W_K, W_V, beta=None):
    landing = ref.cccp_step(X[-1] @ W_Q, X @ W_K, _default(beta, W_K.shape[1]))
    return np.linalg.solve(W_K.T, landing) @ W_V


def _read_by_inverse(X, W_Q, W_K, W_V, beta=None):
    return _land(X, W_Q, W_K, beta) @ np.linalg.inv((W_Q @ W_K.T).T) @ W_V


def _read_by_two_solves(X, W_Q, W_K, W_V, beta=None):
    """Undo the query weights and the key weights one after the other."""
    keys = np.linalg.solve(W_Q, _land(X, W_Q, W_K, beta))
    return np.linalg.solve(W_K.T, keys) @ W_V


def _read_by_lstsq(X, W_Q, W_K, W_V, beta=None):
    return np.linalg.lstsq(W_Q @ W_K.T, _land(X, W_Q, W_K, beta), rcond=None)[0] @ W_V


def _read_by_lu(X, W_Q, W_K, W_V, beta=None):
    factors = lu_factor((W_Q @ W_K.T).T)
    return _land(X, W_Q, W_K, beta) @ lu_solve(factors, W_V)


_SQUARE_RNG = np.random.default_rng(3501)
_DEEP = random_head(_SQUARE_RNG, 6, 4, 4, 3)
_PLANE = random_head(_SQUARE_RNG, 5, 2, 2, 5)
_BLOCK = random_head(_SQUARE_RNG, 16, 8, 8, 8)
# Hard to undo, and far from the 1e10 that is to be refused: of 16 digits five are lost.
_HARD = H1._replace(W_Q=np.array([[1.0, 1.0], [1.0, 1.0 + 2.0**-14]]))
_OTHER_HARD = H4._replace(W_K=np.array([[1.0, -2.0], [-0.5, 1.0 + 2.0**-15]]))
_SINGLE_SQUARE = Head(H4.X[:1], *H4[1:])

HOP_THEN_READ = Exercise(
    name="hop_then_read",
    lesson=LESSON,
    points=3.0,
    expects="an array of d_v numbers, the same as attention_output gives",
    reference=ref.hop_then_read,
    examples=(
        head_case("H1", H1),
        head_case("H4", H4),
        head_case("H1 beta 2", H1, 2.0),
        head_case("square", _SQUARE, 0.5),
        head_case("more values than keys", _MORE_VALUES),
        head_case("large scores", _LARGE_SCORES),
        head_case("whole tokens", _WHOLE_TOKENS),
        head_case("tenths", _TENTHS),
        head_case("hard to undo", _HARD),
    ),
    groups=(
        Group(
            "ordinary",
            "ordinary values",
            0.60,
            (
                head_case("H5", H5),
                head_case("deep", _DEEP),
                head_case("plane", _PLANE, 1.5),
                head_case("deep, beta given", _DEEP, 3.0),
            ),
        ),
        Group(
            "extreme",
            "very large and very small exponents",
            0.25,
            (
                head_case("long tokens", _LONG_TOKENS, 8.0),
                head_case("hot", H4, 2.0**-18),
                head_case("hard to undo", _OTHER_HARD, 0.5),
            ),
        ),
        Group(
            "edges",
            "edge shapes",
            0.15,
            (
                head_case("one token", _SINGLE_SQUARE),
                head_case("one dimension", _THIN),
                head_case("equal tokens", _TWINS, 1.5),
                head_case("whole numbers", _WHOLE, 0.5),
                head_case("whole tokens", _OTHER_WHOLE_TOKENS, 0.75),
                head_case("stored by columns", _BY_COLUMNS),
            ),
        ),
    ),
    properties=(
        "is_the_value_when_alone",
        "ignores_the_order_of_the_past",
        "ignores_doubled_tokens",
    ),
    misconceptions=(
        Misconception(
            "inverse-of-M",
            "Undo exactly what token_centers did, on the same side.",
            _read_by_M,
        ),
        Misconception(
            "readout-forgotten",
            "The landing is an average of the centres y, not of the tokens x.",
            _read_forgotten,
        ),
        Misconception("multiplies-again", "Undo, do not repeat.", _read_twice),
        Misconception("values-forgotten", "Two matrices in the readout.", _read_without_values),
        Misconception("first-token-hops", "Which token hops?", _read_first_token),
        *_wrong_scales(ref.hop_then_read),
        Misconception("settles-first", "How many hops does a head make?", _read_settled),
        Misconception("overflow", "nan at large scores: which exp overflowed?", _read_overflowing),
        Misconception(
            "keys-not-undone",
            "M is a product of two matrices: did you undo both?",
            _read_without_keys_undone,
        ),
        Misconception(
            "queries-not-undone",
            "M is a product of two matrices: did you undo both?",
            _read_without_queries_undone,
        ),
        Misconception(
            "hops-among-tokens",
            "The query hops among the centres, which token_centers makes of the tokens.",
            _read_after_hop_among_tokens,
        ),
        Misconception("two-hops", "How many hops does a head make?", _read_after_two_hops),
        Misconception(
            "ridge",
            "Undo M itself: what you add to its diagonal stays in the answer.",
            _read_with_ridge,
        ),
        Misconception(
            "refuses-too-much",
            "A condition number of 1e5 costs five digits of sixteen: where do you draw the line?",
            _read_refusing,
        ),
    ),
    alternatives=(
        Alternative("attention", ref.attention_output),
        Alternative("inverse", _read_by_inverse),
        Alternative("two-solves", _read_by_two_solves),
        Alternative("key-space", _read_in_key_space),
        Alternative("least-squares", _read_by_lstsq),
        Alternative("lu", _read_by_lu),
        Alternative("callable-object", CalledObject(_read_by_two_solves)),
        Alternative("prints-and-warns", noisy(_read_by_lu)),
    ),
)


# --- hop_block: the part of the mastery project that code can check -----------------------------


def hop_block(X, W_Q, W_K, W_V, beta=None):
    """Replace a causal head by one hop and one readout at each position, and log the energies.

    Returns the outputs, shape (n, d_v), and the energies before and after each hop, shape (n, 2).
    """
    centres, beta = ref.token_centers(X, W_Q, W_K), _default(beta, W_K.shape[1])
    outputs, energies = np.empty((len(X), W_V.shape[1])), np.empty((len(X), 2))
    for t, token in enumerate(X):
        seen = centres[: t + 1]
        landing = ref.cccp_step(token, seen, beta)
        outputs[t] = np.linalg.solve(W_Q @ W_K.T, landing) @ W_V
        energies[t] = lesson_2.energy(token, seen, beta), lesson_2.energy(landing, seen, beta)
    return outputs, energies


def _block_with_future(X, W_Q, W_K, W_V, beta=None):
    centres, beta = ref.token_centers(X, W_Q, W_K), _default(beta, W_K.shape[1])
    landings = np.array([ref.cccp_step(x, centres, beta) for x in X])
    return (
        np.linalg.solve(W_Q @ W_K.T, landings.T).T @ W_V,
        np.array(
            [
                [lesson_2.energy(p, centres, beta) for p in pair]
                for pair in zip(X, landings, strict=True)
            ]
        ),
    )


def _block_unread(X, W_Q, W_K, W_V, beta=None):
    centres, beta = ref.token_centers(X, W_Q, W_K), _default(beta, W_K.shape[1])
    landings = [ref.cccp_step(x, centres[: t + 1], beta) for t, x in enumerate(X)]
    return np.array(landings) @ W_V, hop_block(X, W_Q, W_K, W_V, beta)[1]


def _block_changed(outputs_of):
    """Return a block whose outputs are made of landings in another way."""

    def block(X, W_Q, W_K, W_V, beta=None):
        landings = np.array([_land(X[: t + 1], W_Q, W_K, beta) for t in range(len(X))])
        return outputs_of(landings, W_Q, W_K, W_V), hop_block(X, W_Q, W_K, W_V, beta)[1]

    return block


def _block_in_whole_numbers(X, W_Q, W_K, W_V, beta=None):
    outputs, energies = hop_block(X, W_Q, W_K, W_V, beta)
    filled = np.zeros(outputs.shape, dtype=X.dtype)
    filled[:] = outputs
    return filled, energies


def _block_swapped(X, W_Q, W_K, W_V, beta=None):
    outputs, energies = hop_block(X, W_Q, W_K, W_V, beta)
    return energies, outputs


def _block_of_the_strict_past(X, W_Q, W_K, W_V, beta=None):
    outputs, energies = hop_block(X, W_Q, W_K, W_V, beta)
    centres, number = ref.token_centers(X, W_Q, W_K), _default(beta, W_K.shape[1])
    for t in range(1, len(X)):
        landing = ref.cccp_step(X[t], centres[:t], number)
        outputs[t] = np.linalg.solve(W_Q @ W_K.T, landing) @ W_V
        energies[t] = [lesson_2.energy(p, centres[:t], number) for p in (X[t], landing)]
    return outputs, energies


def _block_overwriting(X, W_Q, W_K, W_V, beta=None):
    """Let later positions read the outputs of earlier ones."""
    X, outputs, energies = np.array(X, dtype=float), [], []
    for t in range(len(X)):
        block = hop_block(X[: t + 1], W_Q, W_K, W_V, beta)
        outputs.append(block[0][-1])
        energies.append(block[1][-1])
        X[t] = outputs[-1]
    return np.array(outputs), np.array(energies)


def _block_backwards(X, W_Q, W_K, W_V, beta=None):
    outputs, energies = hop_block(X, W_Q, W_K, W_V, beta)
    return outputs, energies[:, ::-1].copy()


def _block_in_full_landscape(X, W_Q, W_K, W_V, beta=None):
    centres, beta = ref.token_centers(X, W_Q, W_K), _default(beta, W_K.shape[1])
    outputs, energies = hop_block(X, W_Q, W_K, W_V, beta)
    for t, token in enumerate(X):
        landing = ref.cccp_step(token, centres[: t + 1], beta)
        energies[t] = [lesson_2.energy(p, centres, beta) for p in (token, landing)]
    return outputs, energies


def _block_measured_at_outputs(X, W_Q, W_K, W_V, beta=None):
    centres, width = ref.token_centers(X, W_Q, W_K), W_K.shape[1]
    outputs, energies = hop_block(X, W_Q, W_K, W_V, beta)
    for t, output in enumerate(outputs):
        energies[t, 1] = lesson_2.energy(output, centres[: t + 1], _default(beta, width))
    return outputs, energies


def _block_logged_at(number):
    """Return a block whose energies are those of another beta than the hops'."""

    def block(X, W_Q, W_K, W_V, beta=None):
        outputs, energies = hop_block(X, W_Q, W_K, W_V, beta)
        centres, hot = ref.token_centers(X, W_Q, W_K), _default(beta, W_K.shape[1])
        for t, token in enumerate(X):
            seen = centres[: t + 1]
            pair = token, ref.cccp_step(token, seen, hot)
            energies[t] = [lesson_2.energy(p, seen, _default(number, len(W_K.T))) for p in pair]
        return outputs, energies

    return block


def _block_overflowing(X, W_Q, W_K, W_V, beta=None):
    outputs, energies = hop_block(X, W_Q, W_K, W_V, beta)
    centres, beta = ref.token_centers(X, W_Q, W_K), _default(beta, W_K.shape[1])
    landings = [_step_overflowing(x, centres[: t + 1], beta) for t, x in enumerate(X)]
    outputs = np.linalg.solve(W_Q @ W_K.T, np.transpose(landings)).T @ W_V
    energies[:, 1] = [
        lesson_2.energy(p, centres[: t + 1], beta) if np.isfinite(p).all() else np.nan
        for t, p in enumerate(landings)
    ]
    return outputs, energies


def _block_by_mask(X, W_Q, W_K, W_V, beta=None):
    """All positions at once, under a causal mask."""
    beta = W_K.shape[1] ** -0.5 if beta is None else beta
    centres, mask = (X @ W_K) @ W_Q.T, np.where(np.tri(len(X)), 0.0, -np.inf)
    start = beta * X @ centres.T + mask
    landings = scipy_softmax(start, axis=1) @ centres
    energies = [
        (points**2).sum(axis=1) / 2 - logsumexp(beta * points @ centres.T + mask, axis=1) / beta
        for points in (X, landings)
    ]
    return np.linalg.solve(W_Q @ W_K.T, landings.T).T @ W_V, np.stack(energies, axis=1)


def _block_from_heads(X, W_Q, W_K, W_V, beta=None):
    """Take the outputs from the head itself, from the last position to the first."""
    centres = ref.token_centers(X, W_Q, W_K)
    number = 1 / np.sqrt(W_K.shape[1]) if beta is None else beta
    outputs, log = [], []
    for t in reversed(range(len(X))):
        outputs.append(ref.attention_output(X[: t + 1], W_Q, W_K, W_V, beta))
        g = ref.energy_grad(X[t], centres[: t + 1], number)
        log.append([lesson_2.energy_gmm(x, centres[: t + 1], number) for x in (X[t], X[t] - g)])
    return np.array(outputs[::-1]), np.array(log[::-1])


def _block_with_inverse(X, W_Q, W_K, W_V, beta=None):
    readout = np.linalg.inv((W_Q @ W_K.T).T) @ W_V
    landings = [_land(X[: t + 1], W_Q, W_K, beta) for t in range(len(X))]
    return np.asfortranarray(np.array(landings) @ readout), _block_by_mask(X, W_Q, W_K, W_V, beta)[
        1
    ]


def _block_grown(X, W_Q, W_K, W_V, beta=None):
    """Start with one token and add a row for each further one."""
    outputs, energies = _block_by_mask(X[:1], W_Q, W_K, W_V, beta)
    for t in range(2, len(X) + 1):
        more = _block_by_mask(X[:t], W_Q, W_K, W_V, beta)
        outputs = np.vstack([outputs, more[0][-1:]])
        energies = np.vstack([energies, more[1][-1:]])
    return outputs, energies


HOP_BLOCK = Exercise(
    name="hop_block",
    lesson=LESSON,
    points=3.0,
    expects="outputs with a row per position, and an energy log that never rises in a row",
    reference=hop_block,
    examples=(
        head_case("H1", H1),
        head_case("H4", H4),
        head_case("H1 beta 2", H1, 2.0),
        head_case("H5", H5, 0.5),
        head_case("more values than keys", _MORE_VALUES),
        head_case("large scores", _LARGE_SCORES),
        head_case("whole tokens", _WHOLE_TOKENS),
        head_case("tenths", _TENTHS),
    ),
    groups=(
        Group(
            "ordinary",
            "ordinary values",
            0.60,
            (
                head_case("deep", _DEEP),
                head_case("plane", _PLANE, 1.5),
                head_case("square", _CUBE, 0.75),
                head_case("sixteen tokens", _BLOCK),
            ),
        ),
        Group(
            "extreme",
            "very large and very small exponents",
            0.25,
            (
                head_case("long tokens", _LONG_TOKENS, 8.0),
                head_case("hot", H4, 2.0**-18),
            ),
        ),
        Group(
            "edges",
            "edge shapes",
            0.15,
            (
                head_case("one token", _SINGLE_SQUARE),
                head_case("one dimension", _THIN),
                head_case("equal tokens", _TWINS, 1.5),
                head_case("whole numbers", _WHOLE, 0.5),
                head_case("whole tokens", _OTHER_WHOLE_TOKENS, 0.75),
            ),
        ),
    ),
    properties=("looks_only_back", "never_raises_the_energy"),
    misconceptions=(
        Misconception(
            "sees-the-future", "Position t sees the tokens x_1 to x_t only.", _block_with_future
        ),
        Misconception(
            "readout-forgotten",
            "The landing is an average of centres. Which linear system makes it one of tokens?",
            _block_unread,
        ),
        Misconception(
            "overwrites-tokens",
            "Does a later position read rows that an earlier hop has replaced?",
            _block_overwriting,
        ),
        Misconception(
            "energies-backwards", "Before the hop first, then after it.", _block_backwards
        ),
        Misconception(
            "energies-of-all-tokens",
            "Every position has its own landscape: whose centres are in it?",
            _block_in_full_landscape,
        ),
        Misconception(
            "energy-at-the-output",
            "The energy is measured where the query lands, before anything is read out.",
            _block_measured_at_outputs,
        ),
        Misconception("swapped", "The outputs first, then the energies.", _block_swapped),
        Misconception(
            "landings-returned",
            "A landing is an average of centres: undo M^T, then multiply by W_V.",
            _block_changed(lambda landings, W_Q, W_K, W_V: landings),
        ),
        Misconception(
            "values-forgotten",
            "Two matrices in the readout.",
            _block_changed(
                lambda landings, W_Q, W_K, W_V: np.linalg.solve(W_Q @ W_K.T, landings.T).T
            ),
        ),
        Misconception(
            "inverse-of-M",
            "Undo exactly what token_centers did, on the same side.",
            _block_changed(
                lambda landings, W_Q, W_K, W_V: np.linalg.solve(W_K @ W_Q.T, landings.T).T @ W_V
            ),
        ),
        Misconception(
            "strict-past",
            "Position t sees the tokens x_1 to x_t: the last of them is itself.",
            _block_of_the_strict_past,
        ),
        Misconception(
            "cut-to-whole-numbers",
            "Which type has the array that you fill, when X holds whole numbers?",
            _block_in_whole_numbers,
        ),
        *_wrong_scales(hop_block),
        Misconception(
            "logs-at-beta-1", "In which landscape did this token hop?", _block_logged_at(1.0)
        ),
        Misconception(
            "logs-at-the-default",
            "In which landscape did this token hop, when a beta was given?",
            _block_logged_at(None),
        ),
        Misconception("overflow", "nan at large scores: which exp overflowed?", _block_overflowing),
    ),
    alternatives=(
        Alternative("mask", _block_by_mask),
        Alternative("heads", _block_from_heads),
        Alternative("inverse", _block_with_inverse),
        Alternative("grown", _block_grown),
        Alternative("callable-object", CalledObject(_block_by_mask)),
        Alternative("prints-and-warns", noisy(_block_from_heads)),
    ),
)

EXERCISES = (ENERGY_GRAD, CCCP_STEP, CENTERS, OUTPUT, HOP_THEN_READ, HOP_BLOCK)
