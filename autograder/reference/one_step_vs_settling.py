"""Lesson 07: one hop is attention, settling is something else.

Settling repeats the hop until nothing moves. Its limits are the fixed points ``xi = a @ Y``; near
one, the error shrinks by the largest eigenvalue of ``beta Cov_a(y)`` at every hop, so that hops
slow down without bound where valleys merge.

References
----------
.. [1] H. Ramsauer et al., "Hopfield Networks is All You Need", ICLR 2021, arXiv:2008.02217
   (one step against convergence; when one step suffices).
.. [2] A. L. Yuille and A. Rangarajan, "The Concave-Convex Procedure", Neural Computation 15
   (2003), 915-936 (convergence).
"""

import warnings

import numpy as np
from numpy.typing import ArrayLike

from autograder.reference.cccp import cccp_step
from autograder.reference.lse_gradient import lse_hessian, softmax
from autograder.reference.validation import as_numbers, validate


def settle(
    xi: ArrayLike, Y: ArrayLike, beta: float, tol: float = 1e-10, max_steps: int = 10_000
) -> tuple[np.ndarray, int, bool]:
    """Repeat the hop until it no longer moves.

    Parameters
    ----------
    xi : array_like, shape (d,)
        Query point to start from.
    Y : array_like, shape (n, d)
        Centres, one a row.
    beta : float
        Inverse temperature, above 0.
    tol : float, optional
        Stop when a hop is at most this long. The distance left to the fixed point is about
        ``rho / (1 - rho)`` times the last hop, rho being `local_rate` there.
    max_steps : int, optional
        Stop after so many hops in any case.

    Returns
    -------
    x : ndarray, shape (d,)
        The newest landing.
    steps : int
        Hops made, the confirming one included.
    converged : bool
        Whether the last hop was short enough; False when `max_steps` ended the search.

    Raises
    ------
    ValueError
        If the arguments do not pass `validate`.

    Notes
    -----
    Hops are watched, not the energy: the energy is flat at the bottom, and a small change of it
    may leave an error the size of its square root. A query on a plane of symmetry stays there
    and settles on a saddle; `local_rate` below 1 tells a valley.
    """
    xi, Y, beta = validate(xi, Y, beta)
    x = xi.copy()
    for step in range(1, max_steps + 1):
        landing = softmax(beta * (Y @ x)) @ Y
        hop = np.linalg.norm(landing - x)
        x = landing
        if hop <= tol:
            return x, step, True
    return x, max_steps, False


def one_step_gap(xi: ArrayLike, Y: ArrayLike, beta: float) -> float:
    """Compare where settling ends with where one hop lands.

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
        ``||settled - landing|| / ||landing||``, without unit: 0 exactly when the landing is a
        fixed point, the origin included.

    Raises
    ------
    ValueError
        If the arguments do not pass `validate`.

    Warns
    -----
    RuntimeWarning
        If settling did not converge: the gap then belongs to the newest landing.
    """
    landing = cccp_step(xi, Y, beta)
    settled, steps, converged = settle(xi, Y, beta)
    if not converged:
        warnings.warn(f"not settled after {steps} hops", RuntimeWarning, stacklevel=2)
    distance = np.linalg.norm(settled - landing)
    return distance / np.linalg.norm(landing) if distance > 0 else 0.0


def local_rate(xi: ArrayLike, Y: ArrayLike, beta: float) -> float:
    """Compute the factor by which a hop stretches the slowest direction.

    Parameters
    ----------
    xi : array_like, shape (d,)
        Point, usually a fixed point.
    Y : array_like, shape (n, d)
        Centres, one a row.
    beta : float
        Inverse temperature, above 0.

    Returns
    -------
    float
        Largest eigenvalue of ``beta Cov_a(y)``, the Jacobian of the hop. A fixed point with a
        rate below 1 is a valley.

    Raises
    ------
    ValueError
        If the arguments do not pass `validate`.
    """
    return np.linalg.eigvalsh(lse_hessian(xi, Y, beta))[-1]


def gap_curve(Q: ArrayLike, Y: ArrayLike, betas: ArrayLike) -> np.ndarray:
    """Average the gap over queries for each inverse temperature.

    Parameters
    ----------
    Q : array_like, shape (k, d)
        Queries, one a row.
    Y : array_like, shape (n, d)
        Centres, one a row.
    betas : array_like, shape (m,)
        Inverse temperatures, above 0.

    Returns
    -------
    ndarray, shape (m,)
        Mean `one_step_gap`, each gap measured from the query itself.

    Raises
    ------
    ValueError
        If a query, the centres or a beta do not pass `validate`.
    """
    return np.array([np.mean([one_step_gap(xi, Y, beta) for xi in Q]) for beta in betas])


def count_minima(Y: ArrayLike, beta: float, starts: ArrayLike, merge: float = 1e-4) -> int:
    """Count the valleys that a set of starting points leads to.

    Parameters
    ----------
    Y : array_like, shape (n, d)
        Centres, one a row.
    beta : float
        Inverse temperature, above 0.
    starts : array_like, shape (k, d)
        Where to settle from, one a row.
    merge : float, optional
        Settled points at most this far apart are the same valley.

    Returns
    -------
    int
        Number of different settled points with a `local_rate` below 1. Starts that do not
        converge and saddles do not count.

    Raises
    ------
    ValueError
        If a start, the centres or `beta` do not pass `validate`.
    """
    valleys: list[np.ndarray] = []
    for start in as_numbers(starts):
        x, _, converged = settle(start, Y, beta)
        known = any(np.linalg.norm(x - valley) <= merge for valley in valleys)
        if converged and not known and local_rate(x, Y, beta) < 1 - 1e-6:
            valleys.append(x)
    return len(valleys)
