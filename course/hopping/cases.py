"""Plain data for calls: how a case's inputs and a function's answers are written as JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


def _last_off(x: np.ndarray) -> np.ndarray:
    slopes = 3 * np.cos(3 * x)
    slopes[-1] += 0.5
    return slopes


FORMULAS: dict[str, tuple[str, Callable[[np.ndarray], Any]]] = {
    "product": ("f(x) = x[0]**2 + 3*x[0]*x[1]", lambda x: x[0] ** 2 + 3 * x[0] * x[1]),
    "sines": ("f(x) = sum(sin(3*x))", lambda x: np.sum(np.sin(3 * x))),
    "sines_gradient": ("grad(x) = 3*cos(3*x)", lambda x: 3 * np.cos(3 * x)),
    "sines_doubled": ("grad(x) = 6*cos(3*x)", lambda x: 6 * np.cos(3 * x)),
    "sines_negated": ("grad(x) = -3*cos(3*x)", lambda x: -3 * np.cos(3 * x)),
    "sines_off": ("grad(x) = 3*cos(3*x) + 0.001", lambda x: 3 * np.cos(3 * x) + 1e-3),
    "flat": ("grad(x) = 0 in every coordinate", np.zeros_like),
    "sines_reversed": (
        "grad(x) = 3*cos(3*x), in the opposite order",
        lambda x: 3 * np.cos(3 * x)[::-1],
    ),
    "sines_first_wrong": (
        "grad(x) = 3*cos(3*x), 0.5 more in the first coordinate",
        lambda x: 3 * np.cos(3 * x) + 0.5 * (np.arange(len(x)) == 0),
    ),
    "sines_first_missing": (
        "grad(x) = 3*cos(3*x), but 0 in the first coordinate",
        lambda x: 3 * np.cos(3 * x) * (np.arange(len(x)) > 0),
    ),
    "sines_last_wrong": ("grad(x) = 3*cos(3*x), 0.5 more in the last coordinate", _last_off),
    "bowl": ("f(x) = sum(x**2)/2", lambda x: np.sum(x**2) / 2),
    "bowl_gradient": ("grad(x) = x", np.copy),
    "exponential": ("f(x) = exp(sum(x)/2)", lambda x: np.exp(np.sum(x) / 2)),
    "exponential_gradient": (
        "grad(x) = exp(sum(x)/2)/2 in every coordinate",
        lambda x: np.full(len(x), np.exp(np.sum(x) / 2) / 2),
    ),
    "line": (
        "f(x) = 1*x[0] + 2*x[1] + ...",
        lambda x: np.arange(1.0, len(x) + 1.0) @ x,
    ),
    "one place": ("step(x) = [1, 2, ...]", lambda x: np.arange(1.0, len(x) + 1.0)),
    "growing": ("step(x) = 1000*x", lambda x: 1000 * x),
    "halfway": ("step(x) = x/2 + 1", lambda x: x / 2 + 1),
    "shrinking": ("step(x) = x/2", lambda x: x / 2),
    "cosine": ("step(x) = cos(x)", np.cos),
    "turning": ("step(x) = 3 - x", lambda x: 3 - x),
    "creeping": ("step(x) = x - x**3", lambda x: x - x**3),
}


@dataclass(frozen=True)
class Function:
    """A function of one point that is handed to an exercise, named so that it fits in JSON.

    Parameters
    ----------
    name : str
        One of `FORMULAS`.
    """

    name: str

    def __call__(self, x: np.ndarray) -> float | np.ndarray:
        """Return the value, or the array of slopes, at the point `x`, shape (d,)."""
        with np.errstate(all="ignore"):  # a point that runs away is no noise of the learner's
            value = FORMULAS[self.name][1](np.asarray(x, dtype=float))
        return value if isinstance(value, np.ndarray) else float(value)

    def __str__(self) -> str:
        return FORMULAS[self.name][0]


@dataclass(frozen=True)
class Case:
    """One call: a short name and the keyword arguments in the order of the signature."""

    name: str
    inputs: dict[str, Any] = field(default_factory=dict)


def encode(value: Any) -> Any:
    """Return `value` as JSON data; arrays, tuples and functions carry a tag.

    Raises
    ------
    TypeError
        If the value is not plain data.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        tagged = {"array": value.tolist()}
        if value.dtype.kind == "c":
            return {"array": value.real.tolist(), "imaginary": value.imag.tolist()}
        return tagged if value.dtype == np.float64 else {**tagged, "dtype": value.dtype.name}
    if isinstance(value, tuple | list):
        return {type(value).__name__: [encode(part) for part in value]}
    if isinstance(value, Function):
        return {"function": value.name}
    raise TypeError(f"{type(value).__name__} is not plain data")


def decode(data: Any) -> Any:
    """Return the value that `encode` wrote."""
    if not isinstance(data, dict):
        return data
    if "imaginary" in data:
        return np.array(data["array"]) + 1j * np.array(data["imaginary"])
    if "array" in data:
        return np.array(data["array"], dtype=data.get("dtype", "float64"))
    if "tuple" in data:
        return tuple(decode(part) for part in data["tuple"])
    if "list" in data:
        return [decode(part) for part in data["list"]]
    return Function(data["function"])


def show(value: Any, digits: int = 6) -> str:
    """Return `value` as a learner would type it, short enough for one line of a message."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    if isinstance(value, np.ndarray):
        number = {"float_kind": lambda x: f"{x:.{digits}g}"}
        text = np.array2string(
            value, separator=", ", threshold=24, max_line_width=9999, formatter=number
        )
        return " ".join(text.split())
    if isinstance(value, tuple):
        return "(" + ", ".join(show(part, digits) for part in value) + ")"
    text = str(value) if isinstance(value, Function) else repr(value)
    return text if len(text) <= 200 else text[:197] + "..."


def show_call(inputs: dict[str, Any]) -> str:
    """Return the inputs of a call as ``name = value`` pairs."""
    return ", ".join(
        show(value) if isinstance(value, Function) else f"{name} = {show(value)}"
        for name, value in inputs.items()
    )
