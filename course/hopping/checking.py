"""The learner's instant check: stored examples, known wrong answers, and properties."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from hopping.cases import Case, decode, show
from hopping.judge import (
    NEARLY,
    Example,
    Fault,
    Tolerance,
    Wrong,
    describe,
    equal,
    find_fault,
    find_misfit,
    not_written,
    recognise,
    same,
)
from hopping.observe import (
    CALL_SECONDS,
    Outcome,
    copy_inputs,
    failed_by,
    observe_all,
    plain,
    quiet,
    time_limit,
)
from hopping.progress import note_outcome
from hopping.properties import PROPERTIES
from hopping.unwritten import is_started
from hopping.verdict import CheckFailed, Verdict

OVERFLOW = "A number became too large: exp can take 709 at most."
NOT_FINITE = (
    "inf and nan come from an exp that overflows, a log of 0, or 0/0: which one is it here?"
)


@dataclass(frozen=True)
class Stored:
    """What the package knows of one exercise: examples and known wrong answers, no reference."""

    name: str
    lesson: str
    expects: str
    tolerance: Tolerance
    properties: tuple[str, ...]
    examples: tuple[Example, ...]
    wrongs: tuple[Wrong, ...]


def check(function: Callable[..., Any]) -> Verdict:
    """Check one exercise's function on the stored examples and say what is wrong first.

    In a notebook the outcome is noted, for `hopping.progress`.

    Parameters
    ----------
    function : callable
        The function, under the exercise's name.

    Returns
    -------
    Verdict
        When everything holds.

    Raises
    ------
    CheckFailed
        An AssertionError whose message says what was called, what came back, what was expected,
        and one hint.
    ValueError
        If no exercise has this function's name.
    """
    stored = load_stored(name_of(function, set(stored_names())))
    verdict = judge_check(stored, function)
    note_outcome(stored.name, verdict.passed)
    if not verdict.passed:
        helpers = _unfinished_help(function)
        if helpers:
            note = f"\n  first look at {helpers}, which this calls and which fails its own check"
            verdict = replace(verdict, message=verdict.message + note)
        raise CheckFailed(verdict.message)
    return verdict


def name_of(function: Callable[..., Any], known: set[str]) -> str:
    """Return the exercise that `function` answers: its own name, or the name it is bound to.

    Raises
    ------
    TypeError
        If it cannot be called.
    ValueError
        If neither name is an exercise.
    """
    if not callable(function):
        raise TypeError(
            f"Give the function itself, like check(lse), not {type(function).__name__} {function!r}"
        )
    name = getattr(function, "__name__", type(function).__name__)
    if name in known:
        return name
    # A callable object, a partial or a lambda has another name: look for the one it is bound to
    # where check or examine was called.
    frame = inspect.currentframe()
    while frame is not None:
        for bound, value in frame.f_globals.items():
            if value is function and bound in known:
                return bound
        frame = frame.f_back
    raise ValueError(
        f"No exercise is called {name!r}. The exercises are: {', '.join(sorted(known))}."
    )


@cache
def stored_names() -> tuple[str, ...]:
    """Return the names of all exercises, sorted."""
    folder = files("hopping") / "examples"
    return tuple(sorted(p.name[:-5] for p in folder.iterdir() if p.name.endswith(".json")))


@cache
def load_stored(name: str) -> Stored:
    """Read the stored examples of one exercise."""
    data = json.loads((files("hopping") / "examples" / f"{name}.json").read_text("utf-8"))
    return from_json(data)


def from_json(data: dict[str, Any]) -> Stored:
    """Return stored examples from their JSON form.

    A wrong answer lists only the examples on which it differs from the right one.
    """
    examples = tuple(
        Example(e["name"], {k: decode(v) for k, v in e["inputs"].items()}, decode(e["right"]))
        for e in data["examples"]
    )
    wrongs = tuple(
        Wrong(
            wrong["slug"],
            wrong["hint"],
            tuple(
                _outcome(wrong["outcomes"][e.name]) if e.name in wrong["outcomes"] else right(e)
                for e in examples
            ),
        )
        for wrong in data["wrongs"]
    )
    tolerance = data["tolerance"]
    return Stored(
        data["exercise"],
        data["lesson"],
        data["expects"],
        tuple(tolerance) if isinstance(tolerance, list) else tolerance,
        tuple(data["properties"]),
        examples,
        wrongs,
    )


def right(example: Example) -> Outcome:
    """Return the outcome of a right answer to `example`."""
    kind = "tuple" if isinstance(example.right, tuple) else type(example.right).__name__
    return Outcome(value=example.right, kind=kind)


def _outcome(data: dict[str, Any]) -> Outcome:
    fields = {**data, "changed": tuple(data.get("changed", ()))}
    return Outcome(**{**fields, "value": decode(data.get("value"))})


def judge_check(stored: Stored, function: Callable[..., Any]) -> Verdict:
    """Judge a function by stored examples, known wrong answers and properties."""
    cases = [Case(e.name, e.inputs) for e in stored.examples]
    outcomes = observe_all(function, cases)
    rights = [e.right for e in stored.examples]
    faults = [find_fault(o, r, stored.tolerance) for o, r in zip(outcomes, rights, strict=True)]
    first = next((i for i, fault in enumerate(faults) if fault), None)
    if first is None:
        broken = _broken_property(stored, function, (*stored.examples, *_draws(stored)))
        if broken is None:
            return Verdict(stored.name, True, _praise(stored, outcomes))
        message = describe(stored.name, broken.shown, broken.expected)
        return Verdict(stored.name, False, message)
    example, fault = stored.examples[first], faults[first]
    if fault.layer == "not attempted":
        started = is_started(_code_of(fault.words, function, stored.name))
        return Verdict(stored.name, False, not_written(stored.name, fault.words, started))
    wrong = recognise(outcomes, faults, stored.wrongs, stored.tolerance)
    calls, expected, hint = [(example.inputs, fault)], stored.expects, wrong.hint if wrong else None
    if fault.layer == "not finite" and wrong is None:
        hint = NOT_FINITE
    if outcomes[first].raised == "OverflowError" and wrong is None:
        hint = OVERFLOW
    if fault.layer == "value" and wrong is None:
        expected = f"{expected}.\nThat may hold, but the value is off"
        # What is right to five digits is not told apart by a sentence that shows six.
        nearly = same(outcomes[first], right(example), 1e-5)
        broken = None if nearly else _broken_property(stored, function, [example])
        # How near a call came is not said of another call.
        if broken and (broken.starts_with(example) or NEARLY not in fault.words):
            calls, expected = broken.shown, broken.expected
            if broken.starts_with(example):
                calls[0] = (example.inputs, fault)
    message = describe(stored.name, calls, expected, hint)
    return Verdict(stored.name, False, message, wrong.slug if wrong else None)


def _code_of(stub: str, function: Callable[..., Any], name: str) -> Any:
    """Return the code of the function `stub`, which is `function` or one that it calls."""
    if stub not in ("", name):
        function = getattr(function, "__globals__", {}).get(stub)
    return getattr(function, "__code__", None)


def _unfinished_help(function: Callable[..., Any]) -> str:
    """Name the exercises that `function` calls and that do not pass their own check."""
    code, bound = getattr(function, "__code__", None), getattr(function, "__globals__", {})
    called = [name for name in getattr(code, "co_names", ()) if name in stored_names()]
    return " and ".join(
        name
        for name in called
        if callable(bound.get(name)) and not judge_check(load_stored(name), bound[name]).passed
    )


class _Refused(Exception):
    """The learner's function did not come back with an answer that a property can use."""


@dataclass
class _Watched:
    """The learner's function, as a property calls it: every call is kept, with what came of it."""

    function: Callable[..., Any]
    names: Sequence[str]
    rights: Sequence[Any]  # of the examples, one of each form that an answer may have
    calls: list[tuple[dict[str, Any], Fault]] = field(default_factory=list)

    def __call__(self, *args: Any) -> Any:
        inputs = {
            self.names[place] if place < len(self.names) else f"argument {place + 1}": value
            for place, value in enumerate(args)
        }
        try:
            with time_limit(CALL_SECONDS):
                value = self.function(*copy_inputs(inputs).values())
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            fault = find_fault(failed_by(error), None, 0.0)
            if fault.layer == "not attempted":  # in some branch: the examples have answers
                fault = Fault("raised", "NotImplementedError")
            self.calls.append((inputs, fault))
            raise _Refused from error
        answer = plain(value)
        misfit = None
        for right in reversed(self.rights):  # so that the first has the last word
            misfit = find_misfit(answer, type(value).__name__, right)
            if misfit is None:
                break
        self.calls.append((inputs, misfit or Fault("value", show(answer))))
        if misfit:
            raise _Refused
        return answer


@dataclass(frozen=True)
class _Broken:
    """A property that does not hold: the calls that it made, and what it expected of the last."""

    calls: list[tuple[dict[str, Any], Fault]]
    expected: str

    @property
    def shown(self) -> list[tuple[dict[str, Any], Fault]]:
        """The call to compare with and the call that the expectation is about, if they are two."""
        first, last = self.calls[0], self.calls[-1]
        return [last] if _same_inputs(first[0], last[0]) else [first, last]

    def starts_with(self, example: Example) -> bool:
        """Whether the first call is that of an example."""
        return _same_inputs(self.calls[0][0], example.inputs)


def _same_inputs(left: dict[str, Any], right: dict[str, Any]) -> bool:
    return left.keys() == right.keys() and all(equal(left[name], right[name]) for name in left)


def _form(right: Any) -> tuple:
    """Return what answers of one form have in common: types and numbers of axes."""
    if isinstance(right, tuple):
        return tuple(map(_form, right))
    return type(right), np.ndim(right)


def _broken_property(
    stored: Stored, function: Callable[..., Any], examples: Sequence[Example]
) -> _Broken | None:
    """Return the first property that fails on some inputs, or None.

    An error of the property itself is none of the learner's: it is raised. But an answer of a
    size or with values that the property cannot reckon with is.
    """
    names = max((list(e.inputs) for e in stored.examples), key=len)
    rights = list({_form(e.right): e.right for e in reversed(stored.examples)}.values())
    rights.reverse()
    rules = [PROPERTIES[name] for name in stored.properties]
    for example in examples:
        for rule in rules:
            watched = _Watched(function, names, rights)
            expected = stored.expects
            try:
                with quiet():
                    expected = rule(watched, copy_inputs(example.inputs))
            except (_Refused, ValueError, IndexError):
                if not watched.calls:
                    raise
            if expected:
                return _Broken(watched.calls, expected)
    return None


def _draws(stored: Stored) -> list[Example]:
    """Return random calls, so that an answer that only knows the examples is found out."""
    if list(stored.examples[0].inputs) != ["xi", "Y", "beta"]:
        return []
    rng = np.random.default_rng(0)
    shapes = ((5, 3), (2, 1), (7, 2))
    return [
        Example(
            "random",
            {
                "xi": rng.normal(size=d),
                "Y": rng.normal(size=(n, d)),
                "beta": float(rng.uniform(0.5, 4)),
            },
            None,
        )
        for n, d in shapes
    ]


def _praise(stored: Stored, outcomes: list[Outcome]) -> str:
    message = f"{stored.name}: all {len(outcomes)} examples pass."
    if any(outcome.noisy for outcome in outcomes):
        message += " (It printed or warned on the way, which costs nothing.)"
    return message
