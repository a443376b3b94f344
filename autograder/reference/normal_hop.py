"""Lesson 04: the hop goes along the normal of the energy surface.

The graph of the energy is a surface in d + 1 dimensions, heights last. Walk from a point along
the upward normal until the height has risen by exactly 1, then drop straight down: the shadow of
the walk is the hop. The rise does not depend on the slope, because a normal leans by the gradient
for each unit of height.
"""

import numpy as np
from numpy.typing import ArrayLike

from autograder.reference.cccp import cccp_step, energy_grad
from autograder.reference.gmm_polarization import energy
from autograder.reference.lse_gradient import lse
from autograder.reference.validation import as_numbers


def unit_normal(xi: ArrayLike, Y: ArrayLike, beta: float) -> np.ndarray:
    """Compute the upward unit normal of the energy surface.

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
    ndarray, shape (d + 1,)
        ``(-g, 1) / sqrt(1 + ||g||^2)`` with g the energy gradient; the last entry, the height
        component, is positive.

    Raises
    ------
    ValueError
        If the arguments do not pass `validate`.
    """
    normal = np.append(-energy_grad(xi, Y, beta), 1.0)
    return normal / np.linalg.norm(normal)


def hop_length(xi: ArrayLike, Y: ArrayLike, beta: float, rise: float = 1.0) -> float:
    """Compute how far to walk along the normal to gain a given height.

    Parameters
    ----------
    xi : array_like, shape (d,)
        Query point.
    Y : array_like, shape (n, d)
        Centres, one a row.
    beta : float
        Inverse temperature, above 0.
    rise : float, optional
        Height to gain, in energy units.

    Returns
    -------
    float
        ``rise * sqrt(1 + ||g||^2)``, at least `rise`.

    Raises
    ------
    ValueError
        If the arguments do not pass `validate`.
    """
    g = energy_grad(xi, Y, beta)
    return rise * np.sqrt(1 + g @ g)


def hop_apex(xi: ArrayLike, Y: ArrayLike, beta: float, rise: float = 1.0) -> np.ndarray:
    """Compute the point reached by walking along the normal.

    Parameters
    ----------
    xi : array_like, shape (d,)
        Query point.
    Y : array_like, shape (n, d)
        Centres, one a row.
    beta : float
        Inverse temperature, above 0.
    rise : float, optional
        Height to gain, in energy units.

    Returns
    -------
    ndarray, shape (d + 1,)
        Position, then height: ``(xi - rise * g, E(xi) + rise)``. With a rise of 1 the position
        is the landing of the hop.

    Raises
    ------
    ValueError
        If the arguments do not pass `validate`.
    """
    start = np.append(as_numbers(xi), energy(xi, Y, beta))
    return start + hop_length(xi, Y, beta, rise) * unit_normal(xi, Y, beta)


def vertical_drop(xi: ArrayLike, Y: ArrayLike, beta: float) -> float:
    """Compute the height of the apex of a rise of 1 above the surface below it.

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
        ``E(xi) + 1 - E(a @ Y)``, in energy units: at least 1, and 1 only at a fixed point.

    Raises
    ------
    ValueError
        If the arguments do not pass `validate`.
    """
    return energy(xi, Y, beta) + 1 - energy(cccp_step(xi, Y, beta), Y, beta)


def drop_parts(xi: ArrayLike, Y: ArrayLike, beta: float) -> np.ndarray:
    """Split the vertical drop into its three parts.

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
    ndarray, shape (3,)
        The rise, 1; the bowl's part, ``||g||^2 / 2``; and the Bregman divergence of lse from the
        query to the landing, how far lse lies above its tangent. The sum is `vertical_drop`.
        The divergence is a small difference of large numbers, so that rounding may leave it
        slightly negative; it is not clipped.

    Raises
    ------
    ValueError
        If the arguments do not pass `validate`.
    """
    g = energy_grad(xi, Y, beta)
    landing = cccp_step(xi, Y, beta)
    # The tangent of lse at xi has the slope `landing`, and the hop moves by -g.
    bregman = lse(landing, Y, beta) - lse(xi, Y, beta) + landing @ g
    return np.array([1.0, 0.5 * (g @ g), bregman])
