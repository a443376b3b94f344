"""Lesson 02: the bowl turns the log-sum-exp into a Gaussian mixture.

Polarisation, ``xi . y = ||xi||^2 / 2 - ||xi - y||^2 / 2 + ||y||^2 / 2``, makes the energy
``E = ||xi||^2 / 2 - lse`` minus the log of a sum of Gaussian bumps of covariance I / beta, one on
each centre, with the weights ``pi = exp(beta ||y||^2 / 2)``. A bump is a component, not a valley:
there can be fewer valleys than bumps, or more.

References
----------
.. [1] H. Ramsauer et al., "Hopfield Networks is All You Need", ICLR 2021, arXiv:2008.02217
   (the energy, up to constants).
.. [2] M. A. Carreira-Perpinan and C. K. I. Williams, "On the Number of Modes of a Gaussian
   Mixture", Scale Space Methods in Computer Vision 2003, LNCS 2695, 625-640 (more modes than
   components).
"""

import numpy as np
from numpy.typing import ArrayLike

from autograder.reference.lse_gradient import log_sum_exp, lse, softmax
from autograder.reference.validation import as_numbers, validate, validate_beta, validate_rows


def energy(xi: ArrayLike, Y: ArrayLike, beta: float) -> float:
    """Compute the energy of a query: bowl minus log-sum-exp.

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
    float
        ``||xi||^2 / 2 - lse(xi)``, in score units. At least ``-R^2 / 2 - ln(n) / beta`` with R
        the largest norm of a centre.

    Raises
    ------
    ValueError
        If the arguments do not pass `validate`.
    """
    xi = as_numbers(xi)
    return 0.5 * (xi**2).sum() - lse(xi, Y, beta)


def log_mixture_weights(Y: ArrayLike, beta: float) -> np.ndarray:
    """Compute the log weight of each mixture component.

    Parameters
    ----------
    Y : array_like, shape (n, d)
        Centres, one a row.
    beta : float
        Inverse temperature, above 0.

    Returns
    -------
    ndarray, shape (n,)
        ``log pi = beta * ||y||^2 / 2``, natural log, not normalised. The weights themselves
        overflow for norms above ``sqrt(1419.6 / beta)``, so they are kept as logs.

    Raises
    ------
    ValueError
        If `Y` is not a non-empty (n, d) array or `beta` is not a finite number above 0.
    """
    Y, beta = validate_rows(Y), validate_beta(beta)
    return 0.5 * beta * (Y**2).sum(axis=1)


def _log_bumps(xi: ArrayLike, Y: ArrayLike, beta: float) -> np.ndarray:
    """Log of each weighted bump at the query, without the Gaussian normaliser: shape (n,)."""
    xi, Y, beta = validate(xi, Y, beta)
    return log_mixture_weights(Y, beta) - 0.5 * beta * ((xi - Y) ** 2).sum(axis=1)


def energy_gmm(xi: ArrayLike, Y: ArrayLike, beta: float) -> float:
    """Compute the same number as `energy`, by way of the mixture.

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
    float
        ``-ln(sum(pi * exp(-beta ||xi - y||^2 / 2))) / beta``, in score units. The two squares
        cancel when ``||y||^2`` is far above ``|y . xi|``: explain with this form, compute with
        `energy`.

    Raises
    ------
    ValueError
        If the arguments do not pass `validate`.
    """
    return -log_sum_exp(_log_bumps(xi, Y, beta)) / beta


def posterior(xi: ArrayLike, Y: ArrayLike, beta: float) -> np.ndarray:
    """Compute the responsibility of each mixture component for the query.

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
        Probability of each component given the query; it equals the attention weight.

    Raises
    ------
    ValueError
        If the arguments do not pass `validate`.
    """
    return softmax(_log_bumps(xi, Y, beta))


def log_density(xi: ArrayLike, Y: ArrayLike, beta: float) -> float:
    """Compute the log of the normalised mixture density.

    Parameters
    ----------
    xi : array_like, shape (d,)
        Query point.
    Y : array_like, shape (n, d)
        Centres, one a row.
    beta : float
        Inverse temperature, above 0: the precision of every bump.

    Returns
    -------
    float
        ``log p(xi)`` for the mixture with weights ``pi / sum(pi)`` and covariance I / beta,
        which integrates to 1. It equals ``-beta * energy`` up to a constant.

    Raises
    ------
    ValueError
        If the arguments do not pass `validate`.
    """
    bumps = log_sum_exp(_log_bumps(xi, Y, beta))
    mass = log_sum_exp(log_mixture_weights(Y, beta))
    return bumps - mass + 0.5 * np.size(xi) * np.log(beta / (2 * np.pi))
