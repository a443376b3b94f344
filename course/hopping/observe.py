"""Call a learner's function and reduce what happened to plain data."""

from __future__ import annotations

import contextlib
import io
import linecache
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
        raise TimeIsUp

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
    """Swallow prints and warnings in the body; the yielded function says whether there were any."""
    out = io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(out),
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
    except TimeIsUp:
        return Outcome(raised="TimeIsUp", detail=f"no answer within {seconds:g} s")
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return Outcome(raised=type(error).__name__, detail=_where(error), noisy=noisy)
    changed = tuple(name for name in inputs if not _identical(given[name], inputs[name]))
    shares = next((name for name, value in given.items() if _overlap(result, value)), "")
    return Outcome(
        value=_plain(result),
        kind=type(result).__name__,
        changed=changed,
        shares=shares,
        noisy=noisy,
    )


def observe_all(
    function: Callable[..., Any], cases: Sequence[Case], seconds: float = CALL_SECONDS
) -> list[Outcome]:
    """Observe every case, then again in reverse order to see whether answers depend on order."""
    outcomes = []
    for case in cases:
        outcome = observe(function, case.inputs, seconds)
        if outcome.raised in ("TimeIsUp", "NotImplementedError"):
            # Every further call would most likely end the same way: do not make the learner wait.
            return outcomes + [outcome] * (len(cases) - len(outcomes))
        outcomes.append(outcome)
    for index in reversed(range(len(cases))):
        again = observe(function, cases[index].inputs, seconds)
        if (again.raised, again.kind) != (outcomes[index].raised, outcomes[index].kind) or (
            not _identical(again.value, outcomes[index].value)
        ):
            outcomes[index] = replace(outcomes[index], repeats=False)
    return outcomes


def _identical(left: Any, right: Any) -> bool:
    """Whether two plain values are the same to the bit (nan equals nan)."""
    if isinstance(left, tuple) and isinstance(right, tuple):
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


def _plain(result: Any) -> Any:
    """Return numbers, text, arrays and tuples of them as plain data, anything else as None."""
    if isinstance(result, np.float16 | np.float32):
        return np.asarray(result)  # keeps its precision, which the judge names
    if isinstance(result, np.floating):
        return float(result)
    if isinstance(result, np.generic):
        return result.item()
    if isinstance(result, bool | int | float | complex | str):
        return result
    if isinstance(result, np.ndarray) and result.dtype.kind in "biufcU":
        return np.array(result, subok=False)
    if isinstance(result, tuple | list):
        parts = [_plain(part) for part in result]
        if any(part is None for part in parts):
            return None
        return tuple(parts) if isinstance(result, tuple) else parts
    return None


def _where(error: BaseException) -> str:
    """Return the exception's message and the last line of the learner's own code behind it."""
    lines = []
    message = str(error)
    if message:
        lines.append(message)
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename != __file__ and "site-packages" not in frame.filename:
            code = linecache.getline(frame.filename, frame.lineno or 0).strip()
            lines.append(f"line {frame.lineno} of {frame.name}: {code}")
            break
    return "\n".join(lines)
