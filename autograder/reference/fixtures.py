"""Small inputs with a job: the landscapes, heads and presets that lessons and tests come back to.

Fixtures and heads are short binary fractions, exact in double precision. All arrays are
read-only: copy them before handing them to code that may write.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike


class Landscape(NamedTuple):
    """A query, its centres and an inverse temperature: the arguments of most functions."""

    xi: np.ndarray
    Y: np.ndarray
    beta: float


class Head(NamedTuple):
    """Tokens and the three weight matrices of one attention head."""

    X: np.ndarray
    W_Q: np.ndarray
    W_K: np.ndarray
    W_V: np.ndarray


def _fixed(values: ArrayLike) -> np.ndarray:
    array = np.array(values, dtype=float)
    array.setflags(write=False)
    return array


def _landscape(xi: ArrayLike, Y: ArrayLike, beta: float) -> Landscape:
    return Landscape(_fixed(xi), _fixed(Y), beta)


def _head(X: ArrayLike, W_Q: ArrayLike, W_K: ArrayLike, W_V: ArrayLike) -> Head:
    return Head(_fixed(X), _fixed(W_Q), _fixed(W_K), _fixed(W_V))


A = _landscape([0.75, -0.5], [[1, 0.5], [-0.5, 1.25], [0.25, -1]], 1.0)
B = _landscape(
    [0.25, 0.5, -0.125], [[1, 0, -0.5], [0.5, 1.5, 0], [-1, 0.25, 0.75], [0, -1, 1]], 4.0
)
C = _landscape([2, 1], [[0.5, -1.5]], 0.5)
D = _landscape([0, 0.5], [[1, 1], [1, 1], [-1, 1]], 16.0)
E = _landscape([25, 35], [[30, 0], [0, 40], [-20, 10]], 64.0)
G = _landscape([0.25], [[1], [-1]], 2.0)
Z = Landscape(A.xi, A.Y, 2.0**-20)

# A and B give ordinary values, C has one token, D a duplicate and an exact tie, E overflows,
# G lives in one dimension, Z is almost infinitely hot.
FIXTURES = {"A": A, "B": B, "C": C, "D": D, "E": E, "G": G, "Z": Z}

H1 = _head(A.Y, [[1, 0.5], [0, 1]], [[0.5, -0.25], [1, 0.75]], [[1, -1], [0.5, 2]])
H2 = _head(
    B.Y,
    [[1, 0], [0.5, -1], [0, 0.5]],
    [[0.5, 1], [-1, 0.25], [0.75, 0]],
    [[1, 0], [0, 1], [-0.5, 0.5]],
)
H3 = _head(A.Y, [[1], [0.5]], [[0.25], [-1]], [[2], [-0.5]])
H4 = _head(
    [[2, -1], [0.5, 0.5], [0, 1], [1, 1]], [[2, 0], [0, 0.5]], [[1, 1], [0, 1]], [[0, 1], [1, 0]]
)
H5 = _head(
    B.Y,
    [[1, 0.5, 0], [0, 1, 0], [0.25, 0, 1]],
    [[0.5, 0, 1], [0, 1, 0], [1, 0, -1]],
    [[1, 0], [0, 1], [1, 1]],
)

# H1, H4 and H5 have as many key dimensions as model dimensions (their M is invertible); H2 has
# one fewer, H3 a single one.
HEADS = {"H1": H1, "H2": H2, "H3": H3, "H4": H4, "H5": H5}

# Landscapes that lessons 02, 05 and 07 show: the beta is the one worth starting from.
PRESETS = {
    "pair": _landscape([0.25, 0.25], [[0.5, 0], [-0.5, 0]], 4.0),
    "far pair": _landscape([3, 0.25], [[3, 0.5], [3, -0.5]], 4.0),
    "unequal pair": _landscape([0.5, 0.5], [[1, 0], [0, 1.25]], 2.75),
    "fold": _landscape([0.75, 0.5], [[1, 0], [0.5, 1.5]], 7.75),
    "shadow": _landscape([1, 0], [[1, 0], [1.5, 0.5]], 16.0),
    "equilateral": _landscape(
        [0.125, 0], [[1, 0], [-0.5, np.sqrt(0.75)], [-0.5, -np.sqrt(0.75)]], 1.9
    ),
    "parallelogram": _landscape([0.25, 0.5], [[1, 0], [0.5, 1]], 4.0),
    "tanh shadow": _landscape([0.25, 0.5], [[1, 0], [1.2, 0.3]], 4.0),
    "P4": _landscape([0.0625, 0.125], [[1, 0], [0, 1], [-1, 0.25], [0.25, -1]], 16.0),
}
