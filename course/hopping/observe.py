"""Call a learner's function and reduce what happened to plain data."""

from __future__ import annotations

import contextlib
import io
import linecache
import math
import os
import signal
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hopping.cases import Case

CALL_SECONDS = 5.0
OURS = os.path.dirname(__file__)
DEPTH = 8  # of tuples within tuples that are looked into
# After these no further call is made. A process can only end where it is not the learner's own.
FINAL = ("TimeIsUp", "NotImplementedError", "ProcessEnded")


@dataclass(frozen=True)
class Outcome:
    """What one call did.

    Attributes
    ----------
    value : float, bool, str, ndarray, tuple or None
        The answer as plain data; None where nothing usable came back.
    kind : str
        The name of the answer's type as Python gave it ("ndarray", "list", "NoneType", ...).
    raised : str
        Name of the exception's class, "" if none was raised.
    detail : str
        The exception's message and the learner's line that raised it.
    raised_in : str
        The learner's function whose line raised it.
    changed : tuple of str
        Names of the inputs that were not bit-identical after the call.
    shares : str
        Name of an input whose memory the answer shares, "" if none.
    repeats : bool
        False when the same call gave another answer later.
    noisy : bool
        True when the call printed or warned.
    """

    value: Any = None
    kind: str = "NoneType"
    raised: str = ""
    detail: str = ""
    raised_in: str = ""
    changed: tuple[str, ...] = ()
    shares: str = ""
    repeats: bool = True
    noisy: bool = False


class TimeIsUp(BaseException):
    """A call took longer than it may; not an Exception, so that a bare retry loop ends too."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `TimeIsUp` in the body after `seconds`, where the platform allows it.

    Only the main thread of a POSIX process can be interrupted; elsewhere the body runs unbounded.
    """
    if not hasattr(signal, "setitimer") or (
        threading.current_thread() is not threading.main_thread()
    ):
        yield
        return

    def expire(signum: int, frame: object) -> None:
        raise TimeIsUp(f"no answer within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, expire)
    # The timer repeats: a learner's `except:` may swallow the first interruption.
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.2)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def quiet() -> Iterator[Callable[[], bool]]:
    """Swallow prints and warnings in the body; the yielded function says whether there were any.

    A notebook that made NumPy raise where it only warns is not judged by that.
    """
    out = io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(out),
        np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"),  # as NumPy starts
        warnings.catch_warnings(record=True) as warned,
    ):
        warnings.simplefilter("always")
        yield lambda: bool(out.getvalue() or warned)


def copy_inputs(inputs: dict[str, Any]) -> dict[str, Any]:
    """Return the inputs with arrays copied, each in its own memory order."""
    return {
        name: value.copy(order="K") if isinstance(value, np.ndarray) else value
        for name, value in inputs.items()
    }


def observe(
    function: Callable[..., Any], inputs: dict[str, Any], seconds: float = CALL_SECONDS
) -> Outcome:
    """Call ``function(*inputs.values())`` once on copies of the inputs.

    Prints and warnings are swallowed: they never count.
    """
    given = copy_inputs(inputs)
    noisy = False
    try:
        with quiet() as was_noisy, time_limit(seconds):
            try:
                result = function(*given.values())
            finally:
                noisy = was_noisy()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return replace(failed_by(error), noisy=noisy)
    changed = tuple(name for name in inputs if not _identical(given[name], inputs[name]))
    shares = next((name for name, value in given.items() if _overlap(result, value)), "")
    return Outcome(
        value=plain(result),
        kind=type(result).__name__,
        changed=changed,
        shares=shares,
        noisy=noisy,
    )


def failed_by(error: BaseException) -> Outcome:
    """Return the outcome of a call that `error` ended."""
    if isinstance(error, TimeIsUp):
        return Outcome(raised="TimeIsUp", detail=str(error))
    detail, raised_in = _where(error)
    return Outcome(raised=type(error).__name__, detail=detail, raised_in=raised_in)


def observe_all(
    function: Callable[..., Any], cases: Sequence[Case], seconds: float = CALL_SECONDS
) -> list[Outcome]:
    """Observe every case, then again in reverse order to see whether answers depend on order."""
    return observe_each(lambda case: observe(function, case.inputs, seconds), cases)


def observe_each(observe_one: Callable[[Case], Outcome], cases: Sequence[Case]) -> list[Outcome]:
    """Observe every case, then again in reverse order, wherever the calls are made.

    Parameters
    ----------
    observe_one : callable
        Makes the call of one case.
    cases : sequence of Case
        The calls.
    """
    outcomes = []
    for case in cases:
        outcome = observe_one(case)
        if outcome.raised in FINAL:
            # Every further call would most likely end the same way: do not make the learner wait.
            return outcomes + [outcome] * (len(cases) - len(outcomes))
        outcomes.append(outcome)
    for index in reversed(range(len(cases))):
        again = observe_one(cases[index])
        if (again.raised, again.kind) != (outcomes[index].raised, outcomes[index].kind) or (
            not _identical(again.value, outcomes[index].value)
        ):
            outcomes[index] = replace(outcomes[index], repeats=False)
    return outcomes


def _identical(left: Any, right: Any) -> bool:
    """Whether two plain values are the same to the bit (nan equals nan)."""
    if isinstance(left, tuple | list) and type(left) is type(right):
        return len(left) == len(right) and all(map(_identical, left, right))
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        return (
            left.dtype == right.dtype
            and left.shape == right.shape
            and left.tobytes() == right.tobytes()
        )
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (left != left and right != right)
    return left is right or (type(left) is type(right) and bool(left == right))


def _overlap(result: Any, value: Any) -> bool:
    return (
        isinstance(result, np.ndarray)
        and isinstance(value, np.ndarray)
        and np.shares_memory(result, value)
    )


def plain(result: Any, depth: int = 0) -> Any:
    """Return numbers, text, arrays and tuples of them as plain data, anything else as None.

    What comes back has exactly Python's and NumPy's own types: an object that overrides how it
    compares or converts is taken for what it holds.
    """
    kind = type(result)  # unlike isinstance, this cannot be told otherwise
    if issubclass(kind, np.float16 | np.float32):
        return np.array(result)  # keeps its precision, which the judge names
    if issubclass(kind, np.floating):
        return np.floating.__float__(result)
    if issubclass(kind, np.generic):
        result = np.generic.item(result)
        kind = type(result)
    if issubclass(kind, bool):
        return result
    if issubclass(kind, int):
        return _bounded(int.__pos__(result))
    for exact in (float, complex):
        if issubclass(kind, exact):
            return exact.__pos__(result)
    if issubclass(kind, str):
        return str.__str__(result)
    if issubclass(kind, np.ndarray):
        array = np.array(result, subok=False)
        if array.dtype == np.longdouble:
            # Its padding bytes are arbitrary: the same numbers would not compare as the same.
            array = array.astype(float)
        return array if array.dtype.kind in "biufcU" else None
    for container in (tuple, list):
        if issubclass(kind, container) and depth < DEPTH:
            parts = [plain(part, depth + 1) for part in container.__iter__(result)]
            return None if any(part is None for part in parts) else container(parts)
    return None


def _bounded(number: int) -> int | float:
    """Return a whole number that NumPy can hold, or the nearest float."""
    if -(2**63) <= number < 2**63:
        return number
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _where(error: BaseException) -> tuple[str, str]:
    """Return the message with the learner's line behind it, and the function it is in."""
    try:
        message = str(error)
    except Exception:  # an exception of the learner's own can fail to say what it is
        message = ""
    lines = [message] if message else []
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith(OURS) and "site-packages" not in frame.filename:
            code = linecache.getline(frame.filename, frame.lineno or 0).strip()
            return "\n".join([*lines, f"line {frame.lineno} of {frame.name}: {code}"]), frame.name
    return "\n".join(lines), ""
