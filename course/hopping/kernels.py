"""Check a table of the three kernels, cell by cell, against what their hops do.

A kernel is given by its weights: a hop leads to ``weights(beta * Y @ xi) @ Y``. Everything else a
table says about it is measured: the slope of its concave part, what its factors add up to, where
hops end.
"""

from __future__ import annotations

import html
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import softmax

from hopping.cases import show
from hopping.explore.scene import TroubleError, ask

WEIGHTS = {"softmax": partial(softmax, axis=-1), "tanh": np.tanh, "linear": lambda u: u}
FORMS = ("n bumps", "2^n bumps", "quadratic")
LANDSCAPES = (
    "n valleys",
    "2^n valleys",
    "a floor and some valleys",
    "a saddle",
    "bowl, trough, saddle or dome",
)
# Tokens in general position, and two of which the second outscores the first with itself.
GENERAL = np.array([[1, 0.5], [-0.5, 1.25], [0.25, -1]])
OUTSCORED = np.array([[1, 0], [2, 0.5]])
BETAS = (1 / 8, 1.0, 8.0)

Word = Mapping[str, str]
Functions = Mapping[str, Callable | None]


@dataclass(frozen=True)
class KernelTable:
    """What is right in a table of the kernels, one row an aspect, one column a kernel.

    Attributes
    ----------
    cells : dict of str to tuple of str
        For each row "✓", "✗ and why", or "not written yet", in the order of the kernels.
    """

    cells: dict[str, tuple[str, ...]]

    @property
    def right(self) -> int:
        """How many cells are right."""
        return sum(text == "✓" for row in self.cells.values() for text in row)

    @property
    def closing(self) -> str:
        """How many cells are right, in a sentence."""
        return f"{self.right} of {sum(map(len, self.cells.values()))} cells are right."

    def __str__(self) -> str:
        lines = [
            f"{row:10}  {kernel:8}  {text}"
            for row, texts in self.cells.items()
            for kernel, text in zip(WEIGHTS, texts, strict=True)
        ]
        return "\n".join([*lines, "", self.closing])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in ("", *WEIGHTS))
        body = "".join(
            f"<tr><th>{row}</th>" + "".join(f"<td>{html.escape(text)}</td>" for text in texts)
            for row, texts in self.cells.items()
        )
        return f"<table><tr>{head}</tr>{body}</table><p>{self.closing}</p>"


def kernel_table(
    factor: Functions, concave: Functions, landing: Functions, form: Word, landscape: Word
) -> KernelTable:
    """Check every cell of a table of the three kernels.

    Parameters
    ----------
    factor : mapping of str to callable
        For "softmax", "tanh" and "linear" what one token puts in, a function of u = beta times
        its score. Softmax adds these over the tokens, the others multiply them; minus the
        logarithm of the result, over beta, has to be the concave part, up to a constant.
    concave : mapping of str to callable
        The concave part of the energy, a function of (xi, Y, beta).
    landing : mapping of str to callable
        Where a hop leads, a function of (xi, Y, beta).
    form : mapping of str to str
        One of `FORMS`: of what the energy is made.
    landscape : mapping of str to str
        One of `LANDSCAPES`.

    Returns
    -------
    KernelTable
    """
    rows = {
        "factor": (factor, _check_factor),
        "concave": (concave, _check_concave),
        "landing": (landing, _check_landing),
        "form": (form, _check_form),
        "landscape": (landscape, _check_landscape),
    }
    return KernelTable(
        {
            row: tuple(_cell(entries.get(kernel), judge, kernel) for kernel in WEIGHTS)
            for row, (entries, judge) in rows.items()
        }
    )


def _cell(entry: object, judge: Callable[[object, str], str], kernel: str) -> str:
    if entry is None or entry == "":
        return "not written yet"
    try:
        fault = judge(entry, kernel)
    except TroubleError as trouble:
        fault = str(trouble)
    return f"✗ {fault}" if fault else "✓"


# ---------------------------------------------------------------- rows of functions


def _hop(kernel: str, xi: np.ndarray, Y: np.ndarray, beta: float) -> np.ndarray:
    return WEIGHTS[kernel](beta * xi @ Y.T) @ Y


def _draws() -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
    rng = np.random.default_rng(6)
    for beta, n, d in itertools.product(BETAS, (3, 1), (2, 3)):
        yield rng.normal(size=d), rng.normal(size=(n, d)) / np.sqrt(beta), beta


def _check_landing(landing: Callable, kernel: str) -> str:
    for xi, Y, beta in _draws():
        found = ask(landing, xi, Y, beta, shape=xi.shape)
        fault = _compared(found, _hop(kernel, xi, Y, beta), beta, 1e-9)
        if fault:
            return f"it {fault}"
    return ""


def _check_concave(concave: Callable, kernel: str) -> str:
    for xi, Y, beta in _draws():
        found = _downhill(lambda x, Y=Y, beta=beta: ask(concave, x, Y, beta), xi)
        fault = _compared(found, _hop(kernel, xi, Y, beta), beta, 1e-5)
        if fault:
            return f"its downhill slope {fault}"
    return ""


def _check_factor(factor: Callable, kernel: str) -> str:
    def log_total(x: np.ndarray, Y: np.ndarray, beta: float) -> float:
        factors = np.array([ask(factor, float(u)) for u in beta * Y @ x])
        if not (factors > 0).all():
            raise TroubleError("a factor has to be above 0, to have a logarithm")
        return np.log(factors.sum()) if kernel == "softmax" else np.log(factors).sum()

    for xi, Y, beta in _draws():
        found = _downhill(lambda x, Y=Y, beta=beta: -log_total(x, Y, beta) / beta, xi)
        fault = _compared(found, _hop(kernel, xi, Y, beta), beta, 1e-5)
        if fault:
            return f"the concave part made of it {fault}"
    return ""


def _downhill(function: Callable[[np.ndarray], float], xi: np.ndarray) -> np.ndarray:
    """Return minus the gradient, by central differences."""
    steps = 1e-5 * np.eye(len(xi))
    return np.array([function(xi - step) - function(xi + step) for step in steps]) / 2e-5


def _compared(found: np.ndarray, wanted: np.ndarray, beta: float, slack: float) -> str:
    """Say how a place differs from where the hop leads; nothing when it does not."""
    size = slack * (1 + np.abs(wanted).max())
    if np.allclose(found, wanted, rtol=0, atol=size):
        return ""
    ratio = float(found @ wanted / (wanted @ wanted))
    if np.allclose(found, ratio * wanted, rtol=0, atol=max(1, abs(ratio)) * size):
        return f"leads {show(ratio, 4)} times as far as the hop, at beta = {show(beta)}"
    return f"leads elsewhere than the hop, at beta = {show(beta)}"


# ---------------------------------------------------------------- rows of words


def _signed_sums(Y: np.ndarray) -> np.ndarray:
    return np.stack(np.meshgrid(*[[1.0, -1.0]] * len(Y)), axis=-1).reshape(-1, len(Y)) @ Y


def _check_form(word: str, kernel: str) -> str:
    """Compare the hop with the hop among bumps, on the tokens and on their signed sums."""
    ways = {
        "n bumps": lambda xi, Y, beta: _hop("softmax", xi, Y, beta),
        "2^n bumps": lambda xi, Y, beta: _hop("softmax", xi, _signed_sums(Y), beta),
        "quadratic": lambda xi, Y, beta: _hop(kernel, 2 * xi, Y, beta) / 2,
    }
    fits = [
        name
        for name, way in ways.items()
        if all(np.allclose(_hop(kernel, *draw), way(*draw)) for draw in _draws())
    ]
    return "" if [word] == fits else f"measured: {', '.join(fits)}"


def _ends(kernel: str, Y: np.ndarray, beta: float) -> np.ndarray:
    """Return the different places at which 40 walks are after 400 hops, none that ran away."""
    at = np.random.default_rng(6).normal(size=(40, Y.shape[1]))
    for _ in range(400):
        at = np.clip(_hop(kernel, at, Y, beta), -1e9, 1e9)
    return np.unique(np.round(at[np.abs(at).max(axis=1) < 1e6], 2) + 0.0, axis=0)


def _check_landscape(word: str, kernel: str) -> str:
    general, outscored = (_ends(kernel, Y, 32.0) for Y in (GENERAL, OUTSCORED))
    hot = _ends(kernel, GENERAL, 1 / 8)
    valleys = "2^n valleys" if kernel == "tanh" else "n valleys"
    if len(general) == 0:  # every walk runs away when it is cold
        right = "a saddle" if len(hot) == 0 else "bowl, trough, saddle or dome"
        fact = "walks run away at beta = 32, and at beta = 1/8 they end at 0"
    else:
        many = [2 ** len(Y) if kernel == "tanh" else len(Y) for Y in (GENERAL, OUTSCORED)]
        counts = [len(general), len(outscored)]
        right = valleys if counts == many else "a floor and some valleys"
        fact = f"for 3 and 2 tokens at beta = 32, walks end at {counts[0]} and {counts[1]} places"
    return "" if word == right else f"measured: {fact}"
