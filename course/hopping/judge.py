"""Compare what a function did with what was right, and say the first thing that is wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hopping.cases import show, show_call
from hopping.observe import Outcome
from hopping.unwritten import LEFT_OVER

Tolerance = float | tuple[float, ...]


NEARLY = (
    "nearly right. Did something stop too early (a loop, a series, a tolerance), "
    "or were digits lost (a difference of large numbers, a step h)?"
)


@dataclass(frozen=True)
class Wrong:
    """A known wrong answer: its slug, its hint, and what it does on each example."""

    slug: str
    hint: str
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True)
class Example:
    """One call with its right answer."""

    name: str
    inputs: dict[str, Any]
    right: Any


@dataclass(frozen=True)
class Fault:
    """The first thing wrong with one call: which layer found it, and in words what came back."""

    layer: str
    words: str


def find_fault(outcome: Outcome, right: Any, tolerance: Tolerance) -> Fault | None:
    """Return the first fault of one call, or None.

    The layers, in order: not attempted (in which function), too slow, raised, type, shape, not
    finite, value, side effects.

    Parameters
    ----------
    outcome : Outcome
        What the call did.
    right : float, bool, str, ndarray or tuple of these
        The right answer; its type and shape are what the exercise promises.
    tolerance : float or tuple of float
        Used as both absolute and relative tolerance, for whole numbers as an absolute one. Of a
        tuple each part of the answer has its own.
    """
    if outcome.raised == "NotImplementedError":
        return Fault("not attempted", outcome.raised_in)
    if outcome.raised == "TimeIsUp":
        return Fault("too slow", f"{outcome.detail}: does a loop never end?")
    if outcome.raised:
        return Fault("raised", f"{outcome.raised}: {outcome.detail}".rstrip(": "))
    fault = _value_fault(outcome.value, outcome.kind, right, tolerance)
    return fault or _side_effect(outcome)


def same(outcome: Outcome, other: Outcome, tolerance: Tolerance) -> bool:
    """Whether two outcomes are alike to the tolerance: nan matches nan, an error its like."""
    return (
        (outcome.raised, outcome.changed) == (other.raised, other.changed)
        and outcome.repeats == other.repeats
        and _container(outcome) == _container(other)
        and _alike(outcome.value, other.value, tolerance)
    )


def recognise(
    outcomes: Sequence[Outcome],
    faults: Sequence[Fault | None],
    wrongs: Sequence[Wrong],
    tolerance: Tolerance,
) -> Wrong | None:
    """Return the known wrong answer that behaves as these outcomes do, or None.

    It must agree wherever the function returned finite numbers, and explain the first fault, which
    is the one that a message shows. Of several, the one that agrees most often wins; then the one
    listed first. Python's own numbers raise an error where NumPy's become inf or nan: that counts
    as not finite.
    """
    best, most = None, 0
    first = next((i for i, fault in enumerate(faults) if fault), None)
    if first is None:
        return None
    for wrong in wrongs:
        pairs = zip(outcomes, wrong.outcomes, strict=True)
        agree = [same(o, w, tolerance) for o, w in pairs]
        excused = [
            fault is not None and (fault.layer == "not finite" or _has_no_number(outcome))
            for fault, outcome in zip(faults, outcomes, strict=True)
        ]
        if not all(a or e for a, e in zip(agree, excused, strict=True)):
            continue
        explained = agree[first] or (excused[first] and _not_finite(wrong.outcomes[first].value))
        if explained and sum(agree) > most:
            best, most = wrong, sum(agree)
    return best


def _has_no_number(outcome: Outcome) -> bool:
    """Whether a call raised what the module `math` raises for an infinite or undefined answer."""
    return outcome.raised in ("OverflowError", "ZeroDivisionError") or (
        outcome.raised == "ValueError" and outcome.detail.startswith("math domain error")
    )


def _not_finite(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(map(_not_finite, value))
    given = np.asarray(value)
    return given.dtype.kind in "fc" and not np.all(np.isfinite(given))


LABELS = {
    "raised": "it raised",
    "too slow": "but",
    "changes its input": "but",
    "shares memory": "but",
    "not repeatable": "but",
}


def describe(
    name: str,
    calls: Sequence[tuple[dict[str, Any], Fault]],
    expected: str,
    hint: str | None = None,
) -> str:
    """Return the message for a fault: the call, what came back, the promise, one hint.

    Parameters
    ----------
    name : str
        The exercise.
    calls : sequence of (dict, Fault)
        The inputs of one call, or of two that are compared, with what came of each.
    expected : str
        What was expected of the last call.
    hint : str, optional
        What may help.
    """
    rows = []
    for inputs, fault in calls:
        if rows:
            rows.append(("then with", _show_change(calls[0][0], inputs)))
        else:
            rows.append(("called with", show_call(inputs)))
        rows.append((LABELS.get(fault.layer, "came back"), fault.words))
    inputs, fault = calls[-1]
    shapes = [f"{k} {v.shape}" for k, v in inputs.items() if isinstance(v, np.ndarray)]
    if fault.layer == "raised" and shapes:
        rows.append(("shapes", ", ".join(shapes)))
    rows.append(("expected", expected))
    if hint:
        rows.append(("hint", hint))
    lines = [f"  {label:11}  {words}".replace("\n", "\n" + " " * 15) for label, words in rows]
    return "\n".join([f"{name}: not right yet.", *lines])


def _show_change(first: dict[str, Any], inputs: dict[str, Any]) -> str:
    """Return the inputs of a call that differ from those of the first one."""
    changed = {k: v for k, v in inputs.items() if k not in first or not equal(v, first[k])}
    rest = [k for k in inputs if k not in changed]
    return show_call(changed) + (f"; {' and '.join(rest)} as before" if rest else "")


def equal(left: Any, right: Any) -> bool:
    """Whether two inputs are the same."""
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        return np.array_equal(left, right)
    return left == right


def not_written(name: str, stub: str, started: bool) -> str:
    """Return the message for a function that ended in ``raise NotImplementedError``.

    Parameters
    ----------
    name : str
        The exercise.
    stub : str
        The function whose line that is, "" if unknown.
    started : bool
        Whether it holds more than that line.
    """
    if stub in ("", name):
        if started:
            return f"{name}: {LEFT_OVER}"
        return f"{name}: not written yet. Replace `raise NotImplementedError` by your own code."
    if started:
        return f"{name}: it calls {stub}. In {stub}, {LEFT_OVER}"
    return f"{name}: it calls {stub}, which is not written yet. Write that first."


def find_misfit(value: Any, kind: str, right: Any) -> Fault | None:
    """Return the fault of an answer of another form than right answers to other calls have.

    Parameters
    ----------
    value : float, bool, str, ndarray, tuple or None
        The answer.
    kind : str
        The name of its type.
    right : float, bool, str, ndarray or tuple of these
        The right answer to another call: same type, as many axes, but of another size maybe.
    """
    if isinstance(right, tuple) and isinstance(value, tuple) and len(right) == len(value):
        parts = zip(value, right, strict=True)
        return next(filter(None, (find_misfit(v, type(v).__name__, r) for v, r in parts)), None)
    fault = _value_fault(value, kind, right, 0.0)
    if fault and fault.layer == "type":
        return Fault("type", re.sub(r" of shape \(.*\)", "", fault.words))
    if np.ndim(value) != np.ndim(right):
        axes = ("a single number", "an array with one axis", "an array with two axes")
        return Fault("shape", f"{show(value)}; promised is {axes[np.ndim(right)]}")
    return None


def _container(outcome: Outcome) -> str:
    """Return which container came back; numbers and arrays of any type count as one kind."""
    return outcome.kind if outcome.kind in ("list", "tuple", "NoneType") else ""


def _value_fault(value: Any, kind: str, right: Any, tolerance: Tolerance) -> Fault | None:
    if isinstance(right, tuple):
        if not isinstance(value, tuple) or len(value) != len(right):
            return Fault("type", f"{_named(kind)}; promised is a tuple of {len(right)} values")
        parts = zip(value, right, _for_each_part(tolerance, len(right)), strict=True)
        for number, (v, r, t) in enumerate(parts, start=1):
            fault = _value_fault(v, type(v).__name__, r, t)
            if fault:
                return Fault(fault.layer, f"{fault.words} (value {number} of {show(value)})")
        return None
    wanted = _promise(right)
    if value is None or isinstance(value, list | tuple):
        what = "an array of objects" if kind == "ndarray" else _named(kind)
        return Fault("type", f"{what}; promised is {wanted}")
    given = np.asarray(value)
    if isinstance(right, str | bool | int):
        return _exact_fault(given, right, wanted, kind, tolerance)
    target = np.asarray(right)
    if target.dtype.kind == "b":
        if given.dtype.kind != "b":
            return Fault("type", f"values of type {given.dtype}; promised is {wanted}")
    elif given.dtype.kind not in "iuf":
        extra = ": take real numbers all the way" if given.dtype.kind == "c" else ""
        return Fault("type", f"values of type {given.dtype}; promised is {wanted}{extra}")
    if isinstance(right, np.ndarray) and not isinstance(value, np.ndarray):
        return Fault("shape", f"the single number {show(value)}; promised is {wanted}")
    if given.shape != target.shape:
        return Fault("shape", f"an array of shape {given.shape}; promised is {wanted}")
    if not np.all(np.isfinite(given)) and np.all(np.isfinite(target)):
        return Fault("not finite", show(value))
    if not _close(given, target, tolerance):
        words = _near_miss(given, target)
        if given.dtype in (np.float16, np.float32):
            words += f" as {given.dtype}, which keeps too few digits: compute in float64"
        elif given.dtype.kind in "iu" and target.dtype.kind == "f":
            words += f" as whole numbers ({given.dtype}): was something rounded or cut off?"
        return Fault("value", words)
    return None


def _near_miss(given: np.ndarray, target: np.ndarray) -> str:
    """Show what came back; when it is nearly right, with enough digits and how far it is off."""
    size = np.nan_to_num(np.abs(target)).max(initial=0)
    near = 1e-3 * min(size, 1) + 1e-6 if size else 1e-3  # 1e-3 is not near to 1e-6
    if given.dtype.kind == "f" and np.allclose(given, target, rtol=1e-3, atol=near):
        return f"{show(given, 12)}, off by {np.abs(given - target).max():.0e}: {NEARLY}"
    return show(given)


def _exact_fault(
    given: np.ndarray, right: Any, wanted: str, kind: str, tolerance: float
) -> Fault | None:
    kinds = {str: "U", bool: "b", int: "iu"}[type(right)]
    if given.dtype.kind not in kinds or given.shape != ():
        return Fault("type", f"{_named(kind)}; promised is {wanted}")
    off = abs(given.item() - right) > tolerance if kinds == "iu" else given.item() != right
    return Fault("value", show(given.item())) if off else None


def _side_effect(outcome: Outcome) -> Fault | None:
    if outcome.changed:
        words = f"{' and '.join(outcome.changed)} changed during the call: work on a copy"
        return Fault("changes its input", words)
    if outcome.shares:
        words = f"the answer shares memory with {outcome.shares}: return a new array"
        return Fault("shares memory", words)
    if not outcome.repeats:
        return Fault("not repeatable", "the same call gave another answer when it was made again")
    return None


def _promise(right: Any) -> str:
    if isinstance(right, str):
        return "a string"
    if isinstance(right, bool):
        return "True or False"
    if isinstance(right, int):
        return "a whole number"
    if isinstance(right, np.ndarray):
        values = "True and False" if right.dtype.kind == "b" else "numbers"
        return f"a NumPy array of {values} of shape {right.shape}"
    return "a single number"


def _named(kind: str) -> str:
    if kind == "NoneType":
        return "nothing (None): is a `return` missing?"
    return f"an {kind}" if kind.startswith((*"aeiou", "nd")) else f"a {kind}"


def _close(given: np.ndarray, target: np.ndarray, tolerance: float) -> bool:
    if target.dtype.kind == "b":
        return bool(np.array_equal(given, target))
    return bool(np.allclose(given, target, rtol=tolerance, atol=tolerance, equal_nan=True))


def _for_each_part(tolerance: Tolerance, parts: int) -> tuple[float, ...]:
    """Return one tolerance a part; an answer in other parts than promised gets the first."""
    if isinstance(tolerance, tuple):
        return tolerance if len(tolerance) == parts else tolerance[:1] * parts
    return (tolerance,) * parts


def _alike(left: Any, right: Any, tolerance: Tolerance) -> bool:
    if isinstance(left, list | tuple) or isinstance(right, list | tuple):
        return (
            type(left) is type(right)
            and len(left) == len(right)
            and all(map(_alike, left, right, _for_each_part(tolerance, len(left))))
        )
    (tolerance,) = _for_each_part(tolerance, 1)
    if left is None or right is None or isinstance(left, str) or isinstance(right, str):
        # A string is asked first what the other is: NumPy compares it with an array by element.
        return left is right or (isinstance(left, str) and isinstance(right, str) and left == right)
    left, right = np.asarray(left), np.asarray(right)
    if left.shape != right.shape or left.dtype.kind == "U" or right.dtype.kind == "U":
        return False
    if left.dtype.kind in "iu" and right.dtype.kind in "iu":
        return bool(np.allclose(left, right, rtol=0, atol=tolerance))
    return bool(np.allclose(left, right, rtol=tolerance, atol=tolerance, equal_nan=True))
