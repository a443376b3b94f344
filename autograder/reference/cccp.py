"""Lesson 03: one step of the concave-convex procedure is attention.

The energy is a convex bowl plus the concave ``-lse``. The procedure replaces the concave part by
its tangent and jumps to the minimum of what is left: ``xi -> a @ Y``, the landing, which is also
one gradient step of size exactly 1. The energy falls by at least half the squared gradient norm.
With centres ``Y = X M^T``, ``M = W_Q W_K^T``, a fixed linear readout turns the landing into the
output of an attention head.

References
----------
.. [1] A. L. Yuille and A. Rangarajan, "The Concave-Convex Procedure", Neural Computation 15
   (2003), 915-936.
.. [2] H. Ramsauer et al., "Hopfield Networks is All You Need", ICLR 2021, arXiv:2008.02217.
.. [3] A. Vaswani et al., "Attention Is All You Need", NeurIPS 2017, arXiv:1706.03762.
"""

import numpy as np
from numpy.typing import ArrayLike

from autograder.reference.lse_gradient import lse_grad, softmax
from autograder.reference.validation import as_numbers, validate_beta, validate_rows

MAX_CONDITION = 1e10


def energy_grad(xi: ArrayLike, Y: ArrayLike, beta: float) -> np.ndarray:
    """Differentiate the energy; the result points uphill.

    Parameters
    ----------
    xi : array_like, shape (d,)
        Query point.
    Y : array_like, shape (n, d)
        Centres, one a row.
    beta : float
        Inverse temperature, above 0.

    Returns
    -------
    ndarray, shape (d,)
        ``g = xi - a @ Y``.

    Raises
    ------
    ValueError
        If the arguments do not pass `validate`.
    """
    return as_numbers(xi) - lse_grad(xi, Y, beta)


def cccp_step(xi: ArrayLike, Y: ArrayLike, beta: float) -> np.ndarray:
    """Make one hop: one step of the concave-convex procedure [1]_.

    Parameters
    ----------
    xi : array_like, shape (d,)
        Query point.
    Y : array_like, shape (n, d)
        Centres, one a row.
    beta : float
        Inverse temperature, above 0.

    Returns
    -------
    ndarray, shape (d,)
        The landing ``a @ Y = xi - g``, in the convex hull of the centres whatever `xi` was. The
        energy there is lower by at least ``||g||^2 / 2``.

    Raises
    ------
    ValueError
        If the arguments do not pass `validate`.
    """
    return lse_grad(xi, Y, beta)


def cccp_path(xi: ArrayLike, Y: ArrayLike, beta: float, steps: int) -> np.ndarray:
    """Record a number of hops.

    Parameters
    ----------
    xi : array_like, shape (d,)
        Query point.
    Y : array_like, shape (n, d)
        Centres, one a row.
    beta : float
        Inverse temperature, above 0.
    steps : int
        How many hops, 0 or more.

    Returns
    -------
    ndarray, shape (steps + 1, d)
        The query first, then each landing.

    Raises
    ------
    ValueError
        If the arguments do not pass `validate`.
    """
    path = [as_numbers(xi)]
    for _ in range(steps):
        path.append(cccp_step(path[-1], Y, beta))
    return np.array(path)


def token_centers(X: ArrayLike, W_Q: ArrayLike, W_K: ArrayLike) -> np.ndarray:
    """Turn tokens into the centres that a query sees.

    Parameters
    ----------
    X : array_like, shape (n, D)
        Tokens, one a row.
    W_Q, W_K : array_like, shape (D, d_k)
        Query and key weights; they act on rows from the right.

    Returns
    -------
    ndarray, shape (n, D)
        ``Y = X M^T`` with ``M = W_Q W_K^T``, so that the scores are ``Y @ xi``. The (D, D) matrix
        M is never formed: two thin products cost O(n D d_k).

    Raises
    ------
    ValueError
        If `X` is not two-dimensional or empty.
    """
    W_Q, W_K = map(as_numbers, (W_Q, W_K))
    return (validate_rows(X, "X") @ W_K) @ W_Q.T


def _beta_or_default(beta: float | None, W_K: np.ndarray) -> float:
    return 1 / np.sqrt(W_K.shape[1]) if beta is None else validate_beta(beta)


def attention_output(
    X: ArrayLike, W_Q: ArrayLike, W_K: ArrayLike, W_V: ArrayLike, beta: float | None = None
) -> np.ndarray:
    """Compute the output of one attention head [3]_ at the last position.

    Parameters
    ----------
    X : array_like, shape (n, D)
        Tokens, one a row. The last one asks; all of them, itself included, answer.
    W_Q, W_K : array_like, shape (D, d_k)
        Query and key weights.
    W_V : array_like, shape (D, d_v)
        Value weights.
    beta : float, optional
        Inverse temperature, above 0; ``1 / sqrt(d_k)`` when it is None.

    Returns
    -------
    ndarray, shape (d_v,)
        ``softmax(beta x W_Q (X W_K)^T) X W_V`` for the last row x of `X`.

    Raises
    ------
    ValueError
        If `X` is not two-dimensional or empty, or if `beta` is not a finite number above 0.
    """
    X = validate_rows(X, "X")
    W_Q, W_K, W_V = map(as_numbers, (W_Q, W_K, W_V))
    query, keys, values = X[-1] @ W_Q, X @ W_K, X @ W_V
    return softmax(_beta_or_default(beta, W_K) * (keys @ query)) @ values


def hop_then_read(
    X: ArrayLike, W_Q: ArrayLike, W_K: ArrayLike, W_V: ArrayLike, beta: float | None = None
) -> np.ndarray:
    """Compute the same output as `attention_output`: one hop, then a linear readout.

    Parameters
    ----------
    X : array_like, shape (n, D)
        Tokens, one a row; the last one hops.
    W_Q, W_K : array_like, shape (D, D)
        Query and key weights with as many key dimensions as model dimensions.
    W_V : array_like, shape (D, d_v)
        Value weights.
    beta : float, optional
        Inverse temperature, above 0; ``1 / sqrt(d_k)`` when it is None.

    Returns
    -------
    ndarray, shape (d_v,)
        ``m W_V`` where ``m M^T`` is the landing: m is the average of the tokens that the landing
        is of the centres. The error grows with the condition number of M.

    Raises
    ------
    ValueError
        If `X` is not two-dimensional or empty, if `beta` is not a finite number above 0, or if
        the condition number of M is above 1e10.
    """
    X = validate_rows(X, "X")
    W_Q, W_K, W_V = map(as_numbers, (W_Q, W_K, W_V))
    M = W_Q @ W_K.T
    refuse_ill_conditioned(M)
    landing = cccp_step(X[-1], token_centers(X, W_Q, W_K), _beta_or_default(beta, W_K))
    # The row equation m M^T = landing, transposed, is a linear system with the matrix M.
    return np.linalg.solve(M, landing) @ W_V


def refuse_ill_conditioned(M: np.ndarray) -> None:
    """Refuse a readout that would amplify rounding errors beyond use.

    Parameters
    ----------
    M : ndarray, shape (D, D)
        The score matrix ``W_Q W_K^T``. With fewer key dimensions than D it is singular.

    Raises
    ------
    ValueError
        If the condition number of `M` is above 1e10. NumPy alone raises only for an exactly
        singular matrix.
    """
    condition = np.linalg.cond(M)
    if not condition <= MAX_CONDITION:
        raise ValueError(
            f"M = W_Q W_K^T has the condition number {condition:.1e}; "
            f"the readout needs an invertible M, below {MAX_CONDITION:.0e}"
        )
