"""Checks at the door: what a query, a set of centres and an inverse temperature must be."""

import numpy as np
from numpy.typing import ArrayLike


def as_numbers(values: ArrayLike) -> np.ndarray:
    """Turn array-like numbers into an array of at least double precision.

    Complex numbers stay complex, because the complex step needs them.

    Parameters
    ----------
    values : array_like
        Numbers of any real or complex type.

    Returns
    -------
    ndarray
        The same numbers as float64, or complex128 when they are complex. Not a copy
        when the type is right already.
    """
    values = np.asarray(values)
    return values.astype(np.result_type(values, np.float64), copy=False)


def validate_rows(rows: ArrayLike, name: str = "Y") -> np.ndarray:
    """Check a set of centres or tokens.

    Parameters
    ----------
    rows : array_like, shape (n, d)
        Centres or tokens, one a row.
    name : str, optional
        What the message calls them.

    Returns
    -------
    ndarray, shape (n, d)
        The rows in double precision.

    Raises
    ------
    ValueError
        If `rows` is not two-dimensional or has no row: with none, lse would be minus infinity.
    """
    rows = as_numbers(rows)
    if rows.ndim != 2:
        raise ValueError(f"{name} must be two-dimensional, one a row; its shape is {rows.shape}")
    if len(rows) == 0:
        raise ValueError(f"{name} must have at least one row")
    return rows


def validate_beta(beta: float) -> float:
    """Check an inverse temperature.

    Parameters
    ----------
    beta : float
        Inverse temperature.

    Returns
    -------
    float
        The same number as a Python float.

    Raises
    ------
    ValueError
        If `beta` is not finite or not above 0.
    """
    if not (np.isfinite(beta) and beta > 0):
        raise ValueError(f"beta must be a finite number above 0; it is {beta}")
    return float(beta)


def validate(xi: ArrayLike, Y: ArrayLike, beta: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Check a query, its centres and the inverse temperature, and convert them.

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
    xi : ndarray, shape (d,)
        The query in double precision (complex if it came complex).
    Y : ndarray, shape (n, d)
        The centres in double precision.
    beta : float
        The inverse temperature.

    Raises
    ------
    ValueError
        If `Y` is not two-dimensional or empty, if `xi` is not one-dimensional with one
        entry a column of `Y`, or if `beta` is not a finite number above 0.
    """
    xi, Y, beta = as_numbers(xi), validate_rows(Y), validate_beta(beta)
    if xi.shape != Y.shape[1:]:
        raise ValueError(f"xi must have shape {Y.shape[1:]} to match Y; its shape is {xi.shape}")
    return xi, Y, beta
