"""Lesson 06: the linear kernel is a bowl, a trough, a saddle or a dome.

Without softmax the energy is a quadratic form, ``E = xi (I - beta Y^T Y) xi / 2``, and its d
curvatures say everything: every hop lowers the energy, but above a critical beta the energy has
no bottom and the hops run away. It is the second-order part of the tanh energy.

References
----------
.. [1] A. Katharopoulos et al., "Transformers are RNNs: Fast Autoregressive Transformers with
   Linear Attention", ICML 2020, arXiv:2006.16236 (attention without softmax).
.. [2] V. A. Marchenko and L. A. Pastur, "Distribution of Eigenvalues for Some Sets of Random
   Matrices", Mathematics of the USSR-Sbornik 1 (1967), 457-483 (where a random landscape turns).
"""

import numpy as np
from numpy.typing import ArrayLike

from autograder.reference.validation import validate, validate_beta, validate_rows


def linear_energy(xi: ArrayLike, Y: ArrayLike, beta: float) -> float:
    """Compute the energy of the linear kernel.

    Parameters
    ----------
    xi : array_like, shape (d,)
        Query point.
    Y : array_like, shape (n, d)
        Tokens as centres, one a row.
    beta : float
        Inverse temperature, above 0.

    Returns
    -------
    float
        ``||xi||^2 / 2 - beta * sum((Y @ xi)^2) / 2``.

    Raises
    ------
    ValueError
        If the arguments do not pass `validate`.
    """
    xi, Y, beta = validate(xi, Y, beta)
    scores = Y @ xi
    return 0.5 * (xi @ xi) - 0.5 * beta * (scores @ scores)


def linear_step(xi: ArrayLike, Y: ArrayLike, beta: float) -> np.ndarray:
    """Make one hop on the energy of the linear kernel: unnormalised linear attention [1]_.

    Parameters
    ----------
    xi : array_like, shape (d,)
        Query point.
    Y : array_like, shape (n, d)
        Tokens as centres, one a row.
    beta : float
        Inverse temperature, above 0.

    Returns
    -------
    ndarray, shape (d,)
        ``beta * Y^T (Y @ xi)``. The Gram matrix is not formed, so that a hop costs O(n d).

    Raises
    ------
    ValueError
        If the arguments do not pass `validate`.
    """
    xi, Y, beta = validate(xi, Y, beta)
    return beta * ((Y @ xi) @ Y)


def _gram_eigenvalues(Y: np.ndarray) -> np.ndarray:
    """Eigenvalues of the (d, d) Gram matrix ``Y^T Y``, ascending: shape (d,)."""
    return np.linalg.eigvalsh(Y.T @ Y)


def curvatures(Y: ArrayLike, beta: float) -> np.ndarray:
    """Compute the curvatures of the linear energy.

    Parameters
    ----------
    Y : array_like, shape (n, d)
        Tokens as centres, one a row.
    beta : float
        Inverse temperature, above 0.

    Returns
    -------
    ndarray, shape (d,)
        Eigenvalues of ``I - beta * Y^T Y``, ascending. With fewer tokens than dimensions,
        d - n of them are 1.

    Raises
    ------
    ValueError
        If `Y` is not a non-empty (n, d) array or `beta` is not a finite number above 0.
    """
    Y, beta = validate_rows(Y), validate_beta(beta)
    return 1 - beta * _gram_eigenvalues(Y)[::-1]


def critical_beta(Y: ArrayLike) -> float:
    """Compute the beta at which the bowl of the linear energy turns over.

    Parameters
    ----------
    Y : array_like, shape (n, d)
        Tokens as centres, one a row.

    Returns
    -------
    float
        1 over the largest eigenvalue of ``Y^T Y``; infinity when all tokens are zero.

    Raises
    ------
    ValueError
        If `Y` is not a non-empty (n, d) array.
    """
    top = _gram_eigenvalues(validate_rows(Y))[-1]
    return 1 / top if top > 0 else np.inf


def classify(Y: ArrayLike, beta: float, tol: float = 1e-9) -> str:
    """Name the shape of the linear energy.

    Parameters
    ----------
    Y : array_like, shape (n, d)
        Tokens as centres, one a row.
    beta : float
        Inverse temperature, above 0.
    tol : float, optional
        A curvature of at most this size counts as flat.

    Returns
    -------
    str
        'bowl' when every curvature is positive, 'trough' when the smallest is flat, 'dome' when
        every one is negative, 'saddle' otherwise.

    Raises
    ------
    ValueError
        If `Y` is not a non-empty (n, d) array or `beta` is not a finite number above 0.
    """
    values = curvatures(Y, beta)
    lowest, highest = values[0], values[-1]
    if lowest > tol:
        return "bowl"
    if lowest >= -tol:
        return "trough"
    return "dome" if highest < -tol else "saddle"
