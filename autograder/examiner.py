"""Judge a function on an exercise's hidden cases: points by group, misconception, message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from autograder.exercise import Exercise
from autograder.exercises import load
from hopping.checking import name_of
from hopping.judge import Fault, Wrong, find_fault, recognise
from hopping.observe import Outcome, observe_all
from hopping.verdict import Part, Verdict

FAULT_WORDS = {
    "not attempted": "not written yet",
    "raised": "an error was raised",
    "too slow": "a call took too long",
    "type": "not the promised type",
    "shape": "not the promised shape",
    "not finite": "nan or infinity came back",
    "value": "a wrong value",
    "changes its input": "an input was changed by the call",
    "shares memory": "the answer shares memory with an input",
    "not repeatable": "another answer when called again",
}


def examine(name: str, function: Callable[..., Any]) -> Verdict:
    """Judge `function` as an answer to the exercise `name`, in this process.

    Raises
    ------
    ValueError
        If no exercise has this name.
    """
    if name not in load():
        raise ValueError(f"No exercise is called {name!r}. Known: {', '.join(load())}.")
    exercise = load()[name]
    cases = [case for group in exercise.groups for case in group.cases]
    return judge_exam(exercise, observe_all(function, cases))


def examine_bound(function: Callable[..., Any]) -> Verdict:
    """Judge `function` under its own name, or the name it is bound to in the notebook."""
    return examine(name_of(function, set(load())), function)


def judge_exam(exercise: Exercise, outcomes: Sequence[Outcome]) -> Verdict:
    """Turn the outcomes of an exercise's hidden cases, in order, into a verdict.

    A group gives its points when every case in it passes. The message names what failed and one
    hint; it shows no hidden input and no expected value.
    """
    rights, wrongs = _exam_key(exercise.name)
    tolerance = exercise.tolerance
    faults = [find_fault(o, right, tolerance) for o, right in zip(outcomes, rights, strict=True)]
    parts, lines, start = [], [], 0
    for group in exercise.groups:
        found = [fault for fault in faults[start : start + len(group.cases)] if fault]
        start += len(group.cases)
        worth = group.weight * exercise.points
        parts.append(Part(group.title, 0.0 if found else worth, worth))
        lines.append(_group_line(parts[-1], found))
    passed = not any(faults)
    points = exercise.points if passed else round(sum(part.points for part in parts), 6)
    head = f"{exercise.name}: {points:g} of {exercise.points:g} points."
    wrong = None if passed else recognise(outcomes, faults, wrongs, tolerance)
    hint = [f"  hint: {wrong.hint}"] if wrong else []
    return Verdict(
        exercise.name,
        passed,
        "\n".join([head, *lines, *hint]),
        wrong.slug if wrong else None,
        float(points),
        float(exercise.points),
        tuple(parts),
    )


def _group_line(part: Part, found: list[Fault]) -> str:
    line = f"  {part.title}: {part.points:g} of {part.max_points:g}"
    return f"{line} ({FAULT_WORDS[found[0].layer]})" if found else line


@cache
def _exam_key(name: str) -> tuple[tuple[Any, ...], tuple[Wrong, ...]]:
    """Return the right answers to the hidden cases, and what each known wrong answer does."""
    exercise = load()[name]
    cases = [case for group in exercise.groups for case in group.cases]
    rights = tuple(exercise.reference(*case.inputs.values()) for case in cases)
    wrongs = tuple(
        Wrong(wrong.slug, wrong.hint, tuple(observe_all(wrong.function, cases)))
        for wrong in exercise.misconceptions
    )
    return rights, wrongs
