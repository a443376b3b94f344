"""Lesson 05: the tanh kernel and its 2^n centres.

Each token adds ``ln cosh(beta s) / beta`` to the concave part of the energy, so the landing is a
sum with signs, ``sum_t tanh(beta s_t) y_t``, not an average. A product of n hyperbolic cosines is
a sum over all 2^n sign patterns, and polarisation turns that sum into a Gaussian mixture with a
centre at every signed sum of tokens. Few of these corners are valleys.

References
----------
.. [1] D. Krotov and J. J. Hopfield, "Dense Associative Memory for Pattern Recognition",
   NeurIPS 2016, arXiv:1606.01164 (energies that are sums of a function of the scores).
.. [2] T. M. Cover, "Geometrical and Statistical Properties of Systems of Linear Inequalities with
   Applications in Pattern Recognition", IEEE Transactions on Electronic Computers EC-14 (1965),
   326-334 (how many sign patterns a set of vectors can produce).
"""

import numpy as np
from numpy.typing import ArrayLike

from autograder.reference.gmm_polarization import energy_gmm
from autograder.reference.validation import as_numbers, validate, validate_rows

MAX_TOKENS = 16


def log_cosh(u: ArrayLike) -> np.ndarray:
    """Take the log of a hyperbolic cosine without overflow.

    Parameters
    ----------
    u : array_like, any shape
        Arguments, up to 1e300 in size.

    Returns
    -------
    ndarray, same shape
        ``ln cosh(u)``, elementwise: 0 at 0, ``u^2 / 2`` near it, ``|u| - ln 2`` far away.
    """
    size = np.abs(as_numbers(u))
    # cosh overflows above 710, but the far form subtracts ln 2 and loses all digits near 0.
    near = 0.5 * np.log1p(np.sinh(np.minimum(size, 1.0)) ** 2)
    far = size + np.log1p(np.exp(-2 * size)) - np.log(2)
    return np.where(size < 1, near, far)


def tanh_energy(xi: ArrayLike, Y: ArrayLike, beta: float) -> float:
    """Compute the energy of the tanh kernel.

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
        ``||xi||^2 / 2 - sum(ln cosh(beta * Y @ xi)) / beta``, in score units: 0 at the origin
        and even in `xi`.

    Raises
    ------
    ValueError
        If the arguments do not pass `validate`.
    """
    xi, Y, beta = validate(xi, Y, beta)
    return 0.5 * (xi @ xi) - log_cosh(beta * (Y @ xi)).sum() / beta


def tanh_step(xi: ArrayLike, Y: ArrayLike, beta: float) -> np.ndarray:
    """Make one hop on the energy of the tanh kernel.

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
        The landing ``tanh(beta * Y @ xi) @ Y``: a signed sum, not in the hull of the tokens.

    Raises
    ------
    ValueError
        If the arguments do not pass `validate`.
    """
    xi, Y, beta = validate(xi, Y, beta)
    return np.tanh(beta * (Y @ xi)) @ Y


def sign_patterns(n: int) -> np.ndarray:
    """List every way to choose n signs.

    Parameters
    ----------
    n : int
        Number of signs, at most 16.

    Returns
    -------
    ndarray, shape (2**n, n)
        Entries +1 and -1, in the order of ``itertools.product((1, -1), repeat=n)``: all plus
        first, all minus last.

    Raises
    ------
    ValueError
        If `n` is above 16: the table doubles with every token.
    """
    if n > MAX_TOKENS:
        raise ValueError(
            f"2**{n} sign patterns are too many to list; n may be {MAX_TOKENS} at most"
        )
    return 1.0 - 2.0 * np.indices((2,) * n).reshape(n, -1).T


def mode_centers(Y: ArrayLike) -> np.ndarray:
    """List every signed sum of the tokens.

    Parameters
    ----------
    Y : array_like, shape (n, d)
        Tokens, one a row, at most 16.

    Returns
    -------
    ndarray, shape (2**n, d)
        ``z = sum_t eps_t y_t`` in the order of `sign_patterns`; equal sums are all kept.

    Raises
    ------
    ValueError
        If `Y` is not a non-empty (n, d) array or has more than 16 rows.
    """
    Y = validate_rows(Y)
    return sign_patterns(len(Y)) @ Y


def tanh_energy_gmm(xi: ArrayLike, Y: ArrayLike, beta: float) -> float:
    """Compute the same number as `tanh_energy`, by way of the mixture of 2^n bumps.

    Parameters
    ----------
    xi : array_like, shape (d,)
        Query point.
    Y : array_like, shape (n, d)
        Tokens, one a row, at most 16.
    beta : float
        Inverse temperature, above 0.

    Returns
    -------
    float
        ``energy_gmm(xi, mode_centers(Y), beta) + n ln(2) / beta``, in score units. The constant
        is the factor 1/2 of each of the n hyperbolic cosines.

    Raises
    ------
    ValueError
        If the arguments do not pass `validate` or `Y` has more than 16 rows.
    """
    xi, Y, beta = validate(xi, Y, beta)
    return energy_gmm(xi, mode_centers(Y), beta) + len(Y) * np.log(2) / beta


def stable_modes(Y: ArrayLike) -> np.ndarray:
    """Tell which signed sums are valleys when beta grows without bound.

    Parameters
    ----------
    Y : array_like, shape (n, d)
        Tokens, one a row, at most 16.

    Returns
    -------
    ndarray of bool, shape (2**n,)
        True where every token agrees with its own sign, ``eps_t (y_t . z) > 0``, in the order of
        `mode_centers`. At most ``2 * sum_{i < d} C(n - 1, i)`` are True [2]_.

    Raises
    ------
    ValueError
        If `Y` is not a non-empty (n, d) array or has more than 16 rows.
    """
    Y = validate_rows(Y)
    signs = sign_patterns(len(Y))
    return (signs * (mode_centers(Y) @ Y.T) > 0).all(axis=1)
