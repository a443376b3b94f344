"""Lesson 01: the softmax average is the gradient of a log-sum-exp.

Rows are tokens: `Y` holds one centre a row, `xi` is one query, and the scores are
``s = Y @ xi``. Their log-sum-exp, ``lse = ln(sum(exp(beta * s))) / beta``, has the gradient
``a @ Y`` with ``a = softmax(beta * s)``: the beta of the exponent cancels the 1/beta in front.

References
----------
.. [1] H. Ramsauer et al., "Hopfield Networks is All You Need", ICLR 2021, arXiv:2008.02217.
   They store patterns as columns, so that their ``X softmax(beta X^T xi)`` is our ``a @ Y``.
.. [2] S. Boyd and L. Vandenberghe, "Convex Optimization", Cambridge University Press, 2004,
   section 3.1.5: log-sum-exp is convex.
.. [3] W. Squire and G. Trapp, "Using Complex Variables to Estimate Derivatives of Real
   Functions", SIAM Review 40 (1998), 110-112.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from autograder.reference.validation import as_numbers, validate


def log_sum_exp(u: np.ndarray) -> float:
    """Take the log of a sum of exponentials without overflow.

    Adding c to every entry adds c to the result, so the largest entry may be taken out of
    the sum and put back after the log: the largest exponential is then 1.

    Parameters
    ----------
    u : ndarray, shape (n,)
        Exponents, real or complex; n at least 1.

    Returns
    -------
    float
        ``ln(sum(exp(u)))``.
    """
    # The shift follows the real part only, so that the result stays analytic in u.
    top = u.real.max()
    return top + np.log(np.exp(u - top).sum())


def softmax(u: np.ndarray) -> np.ndarray:
    """Turn exponents into weights without overflow.

    Parameters
    ----------
    u : ndarray, shape (n,)
        Exponents; n at least 1.

    Returns
    -------
    ndarray, shape (n,)
        ``exp(u) / sum(exp(u))``: not negative, sum 1.
    """
    weights = np.exp(u - u.real.max())
    return weights / weights.sum()


def lse(xi: ArrayLike, Y: ArrayLike, beta: float) -> float:
    """Take the log-sum-exp of the scores, in score units.

    Parameters
    ----------
    xi : array_like, shape (d,)
        Query point.
    Y : array_like, shape (n, d)
        Centres, one a row.
    beta : float
        Inverse temperature, above 0, in 1 / score units.

    Returns
    -------
    float
        ``ln(sum(exp(beta * Y @ xi))) / beta``, between ``max(s)`` and ``max(s) + ln(n) / beta``.
        With one token it is that token's score.

    Raises
    ------
    ValueError
        If the arguments do not pass `validate`.
    """
    xi, Y, beta = validate(xi, Y, beta)
    return log_sum_exp(beta * (Y @ xi)) / beta


def attention_weights(xi: ArrayLike, Y: ArrayLike, beta: float) -> np.ndarray:
    """Compute the attention weights of a query.

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
    ndarray, shape (n,)
        ``a = softmax(beta * Y @ xi)``: one weight a token, not negative, sum 1.

    Raises
    ------
    ValueError
        If the arguments do not pass `validate`.
    """
    xi, Y, beta = validate(xi, Y, beta)
    return softmax(beta * (Y @ xi))


def lse_grad(xi: ArrayLike, Y: ArrayLike, beta: float) -> np.ndarray:
    """Differentiate `lse` with respect to the query.

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
        ``a @ Y``, a point in the convex hull of the rows of `Y`.

    Raises
    ------
    ValueError
        If the arguments do not pass `validate`.
    """
    xi, Y, beta = validate(xi, Y, beta)
    return softmax(beta * (Y @ xi)) @ Y


def lse_hessian(xi: ArrayLike, Y: ArrayLike, beta: float) -> np.ndarray:
    """Differentiate `lse` twice: beta times a covariance of the centres.

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
    ndarray, shape (d, d)
        ``beta * sum_t a_t (y_t - m)(y_t - m)`` with ``m = a @ Y`` (outer products): symmetric
        and positive semidefinite, hence `lse` is convex [2]_. Zero for a single token.

    Raises
    ------
    ValueError
        If the arguments do not pass `validate`.
    """
    xi, Y, beta = validate(xi, Y, beta)
    a = softmax(beta * (Y @ xi))
    # Centring first: the difference of two second moments would cancel for distant centres.
    spread = Y - a @ Y
    return beta * (spread.T * a) @ spread


def fd_grad(f: Callable[[np.ndarray], float], xi: ArrayLike, h: float = 1e-5) -> np.ndarray:
    """Estimate a gradient by central differences.

    Parameters
    ----------
    f : callable
        Scalar function of a point of shape (d,); it is called 2 d times.
    xi : array_like, shape (d,)
        Where to differentiate. It is not changed.
    h : float, optional
        Step in each coordinate. Truncation costs about h**2, rounding about 1e-16 / h, so
        1e-5 is near the best for functions and points of size 1.

    Returns
    -------
    ndarray, shape (d,)
        ``(f(xi + h e_j) - f(xi - h e_j)) / (2 h)`` for each coordinate j.

    Raises
    ------
    ValueError
        If `xi` is not one-dimensional.
    """
    xi = as_numbers(xi)
    if xi.ndim != 1:
        raise ValueError(f"xi must have shape (d,); its shape is {xi.shape}")
    steps = h * np.eye(len(xi))
    return np.array([f(xi + step) - f(xi - step) for step in steps]) / (2 * h)


def complex_step_grad(
    f: Callable[[np.ndarray], complex], xi: ArrayLike, h: float = 1e-30
) -> np.ndarray:
    """Differentiate to machine precision with imaginary steps [3]_.

    Nothing is subtracted, so nothing cancels, and h may be as small as one likes.

    Parameters
    ----------
    f : callable
        Scalar function of a complex point of shape (d,), analytic near `xi`. Written with
        ``abs``, a norm or a comparison of complex numbers it would not be; `lse` is.
    xi : array_like, shape (d,)
        Real point. It is not changed.
    h : float, optional
        Length of the imaginary step.

    Returns
    -------
    ndarray, shape (d,)
        ``Im f(xi + i h e_j) / h`` for each coordinate j.

    Raises
    ------
    ValueError
        If `xi` is not one-dimensional.
    """
    xi = as_numbers(xi)
    if xi.ndim != 1:
        raise ValueError(f"xi must have shape (d,); its shape is {xi.shape}")
    return np.array([np.imag(f(xi + step)) for step in 1j * h * np.eye(len(xi))]) / h
