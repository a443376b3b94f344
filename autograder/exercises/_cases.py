"""Calls that many exercises share: the public fixtures, and hidden cases drawn from a seed."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from autograder.exercise import Group
from autograder.reference.fixtures import FIXTURES, HEADS, Head, Landscape
from hopping.cases import Case

# As many tokens as coordinates: a product taken on the wrong side runs here instead of raising,
# so that it can be recognised by its value.
SQUARE = Landscape(np.array([0.5, -0.25]), np.array([[1.0, 0.5], [-0.75, 0.25]]), 1.5)


def landscape_case(name: str, landscape: Landscape, **more: object) -> Case:
    """Return the call ``f(xi, Y, beta, ...)`` on one landscape."""
    xi, Y, beta = landscape
    return Case(name, {"xi": xi, "Y": Y, "beta": beta, **more})


PUBLIC = tuple(
    landscape_case(name, landscape) for name, landscape in {**FIXTURES, "S": SQUARE}.items()
)


# For functions that take softmax weights. An array of whole numbers that is made like `xi` or `Y`
# cuts its contents off; tenths lose digits as float32, which fixtures do not; small weights count;
# all naive exponentials vanish; and where they overflow, the largest score is not alone.
SOFTMAX_PUBLIC = (
    *PUBLIC,
    landscape_case(
        "whole numbers",
        Landscape(np.array([2, -1]), np.array([[1, 2], [-1, 1], [0, -2]]), 0.75),
    ),
    landscape_case(
        "tenths",
        Landscape(np.array([0.1, 0.7]), np.array([[0.3, -0.2], [0.6, 0.1], [-0.7, 0.9]]), 0.9),
    ),
    landscape_case(
        "faint tokens",
        Landscape(np.array([2.0, 1.0]), np.array([[1.0, -2.0], [-4.0, -9.0], [-5.0, -8.0]]), 1.0),
    ),
    landscape_case(
        "low scores",
        Landscape(np.array([10.0, -20.0]), np.array([[-90.0, 5.0], [-90.0, 5.125]]), 2.0),
    ),
    landscape_case(
        "two large scores",
        Landscape(
            np.array([4.0, 0.0]), np.array([[200.0, 30.0], [200.0, -30.0], [-50.0, 100.0]]), 1.5
        ),
    ),
)


# An array made like `xi` or `Y` holds whole numbers when they do, and cuts everything else off.
WHOLE = landscape_case(
    "whole", Landscape(np.array([1, -2]), np.array([[2, 0], [1, 1], [-1, 1]]), 0.75)
)
# The fixtures are binary fractions: sums and products of them are exact in single precision, too.
DECIMAL = landscape_case(
    "decimal",
    Landscape(np.array([0.3, -0.7]), np.array([[0.9, 0.2], [-0.4, 1.1], [0.6, 0.1]]), 0.7),
)


def random_landscape(
    rng: np.random.Generator, n: int, d: int, beta: float, size: float = 1.0
) -> Landscape:
    """Draw a query and n tokens in d dimensions from a normal distribution of scale `size`."""
    return Landscape(rng.normal(scale=size, size=d), rng.normal(scale=size, size=(n, d)), beta)


def ordinary_cases(seed: int) -> tuple[Case, ...]:
    """Draw hidden cases of everyday size, one of them with as many tokens as coordinates."""
    rng = np.random.default_rng(seed)
    shapes = ((4, 2, 0.7), (3, 5, 1.9), (6, 3, 0.35), (3, 3, 2.6))
    return tuple(
        landscape_case(f"ordinary {i}", random_landscape(rng, n, d, beta))
        for i, (n, d, beta) in enumerate(shapes)
    )


def extreme_cases(seed: int) -> tuple[Case, ...]:
    """Draw hidden cases in which exp overflows, underflows, or hardly acts."""
    rng = np.random.default_rng(seed)
    large = random_landscape(rng, 4, 3, 48.0, size=12.0)
    # Every score is far below zero, so that every naive exponential vanishes.
    low = Landscape(np.array([20.0, -10.0]), np.array([[-40.0, 5.0], [-41.0, 4.0]]), 3.0)
    hot = random_landscape(rng, 5, 2, 2.0**-18)
    return tuple(
        landscape_case(name, landscape)
        for name, landscape in (("large", large), ("low", low), ("hot", hot))
    )


def tied_and_faint_cases() -> tuple[Case, ...]:
    """Return two large scores that are equal, and weights that are small but count.

    The two tokens of equal score have the same length, so that neither outweighs the other.
    """
    tied = Landscape(
        np.array([3.0, 1.0]), np.array([[157.0, 79.0], [173.0, 31.0], [-60.0, -20.0]]), 2.5
    )
    faint = Landscape(np.array([4.0, -2.0]), np.array([[0.5, 1.0], [-3.0, 2.0], [-3.5, 2.5]]), 1.0)
    return landscape_case("tied", tied), landscape_case("faint", faint)


def edge_cases(seed: int) -> tuple[Case, ...]:
    """Draw hidden cases of unusual shape: one token, one dimension, ties, whole numbers."""
    rng = np.random.default_rng(seed)
    one = Landscape(np.array([-1.5, 0.5]), rng.normal(size=(1, 2)), 2.25)
    line = random_landscape(rng, 3, 1, 1.25)
    row = rng.normal(size=3)
    twins = Landscape(rng.normal(size=3), np.array([row, row, -row, row]), 1.75)
    whole = Landscape(np.array([1, -1]), np.array([[1, 0], [2, 1], [-1, 1]]), 0.5)
    columns = random_landscape(rng, 4, 3, 0.8)
    by_columns = columns._replace(Y=np.asfortranarray(columns.Y))
    return tuple(
        landscape_case(name, landscape)
        for name, landscape in (
            ("one token", one),
            ("one dimension", line),
            ("equal tokens", twins),
            ("whole numbers", whole),
            ("stored by columns", by_columns),
        )
    )


def landscape_groups(seed: int) -> tuple[Group, ...]:
    """Return the usual three groups for a function of (xi, Y, beta)."""
    return (
        Group("ordinary", "ordinary values", 0.60, ordinary_cases(seed)),
        Group("extreme", "very large and very small exponents", 0.25, extreme_cases(seed + 1)),
        Group("edges", "edge shapes", 0.15, edge_cases(seed + 2)),
    )


def softmax_groups(seed: int) -> tuple[Group, ...]:
    """Return the usual three groups, with the extremes of a softmax among them."""
    return tuple(
        replace(group, cases=(*group.cases, *tied_and_faint_cases()))
        if group.name == "extreme"
        else group
        for group in landscape_groups(seed)
    )


def only(cases: tuple[Case, ...], *names: str) -> tuple[Case, ...]:
    """Return the same calls with these arguments alone, for functions that need no query."""
    return tuple(Case(case.name, {name: case.inputs[name] for name in names}) for case in cases)


def only_groups(groups: tuple[Group, ...], *names: str) -> tuple[Group, ...]:
    """Return the same groups with these arguments alone."""
    return tuple(replace(group, cases=only(group.cases, *names)) for group in groups)


def head_case(name: str, head: Head, beta: float | None = None) -> Case:
    """Return the call ``f(X, W_Q, W_K, W_V)`` on one head, with ``beta`` last if it is given."""
    given = {} if beta is None else {"beta": beta}
    return Case(name, {**head._asdict(), **given})


PUBLIC_HEADS = (
    *(head_case(name, HEADS[name]) for name in ("H1", "H2", "H3", "H4")),
    *(head_case(f"{name} beta 2", HEADS[name], 2.0) for name in ("H1", "H2", "H3")),
)


def random_head(
    rng: np.random.Generator, n: int, D: int, d_k: int, d_v: int, size: float = 1.0
) -> Head:
    """Draw n tokens of scale `size` and the weights of a Gaussian head, of variance 1/D."""
    weights = (rng.normal(scale=D**-0.5, size=(D, width)) for width in (d_k, d_k, d_v))
    return Head(rng.normal(scale=size, size=(n, D)), *weights)


class CalledObject:
    """A right answer that is an object with a call."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *arguments: Any) -> Any:
        """Answer as the function does."""
        return self.function(*arguments)


def noisy(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a right answer that prints and warns on the way, which costs nothing."""

    def answer(*arguments: Any) -> Any:
        print("called with", arguments)
        warnings.warn("a warning costs nothing", stacklevel=2)
        return function(*arguments)

    return answer


def zero_dimensional(function: Callable[..., float]) -> Callable[..., np.ndarray]:
    """Return a right answer that hands back its number as an array without dimensions."""
    return lambda *arguments: np.array(function(*arguments))
