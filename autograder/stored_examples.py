"""Derive an exercise's public examples, with what each known wrong answer does on them."""

from __future__ import annotations

import math
from typing import Any

from autograder.exercise import Exercise
from hopping.cases import encode
from hopping.checking import right
from hopping.judge import Example, same
from hopping.observe import Outcome, observe_all


def stored_examples(exercise: Exercise, previous: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the JSON content of ``hopping/examples/<name>.json``.

    Parameters
    ----------
    exercise : Exercise
        The declaration.
    previous : dict, optional
        What is stored now. Numbers that agree with it to 1e-12 are kept as they stand, because
        another processor may compute another last digit and must not rewrite the file.
    """
    examples = [
        Example(case.name, case.inputs, exercise.reference(*case.inputs.values()))
        for case in exercise.examples
    ]
    wrongs = []
    for wrong in exercise.misconceptions:
        outcomes = observe_all(wrong.function, exercise.examples)
        wrongs.append(
            {
                "slug": wrong.slug,
                "hint": wrong.hint,
                "outcomes": {
                    example.name: _as_json(outcome)
                    for example, outcome in zip(examples, outcomes, strict=True)
                    if not same(outcome, right(example), exercise.tolerance)
                },
            }
        )
    content = {
        "exercise": exercise.name,
        "lesson": exercise.lesson,
        "expects": exercise.expects,
        "tolerance": exercise.tolerance,
        "properties": list(exercise.properties),
        "examples": [
            {
                "name": example.name,
                "inputs": {name: encode(value) for name, value in example.inputs.items()},
                "right": encode(example.right),
            }
            for example in examples
        ],
        "wrongs": wrongs,
    }
    return _keep_close_numbers(content, previous)


def _as_json(outcome: Outcome) -> dict[str, Any]:
    """Return the fields that differ from their defaults; messages and noise are not kept."""
    data: dict[str, Any] = {}
    if outcome.value is not None:
        data["value"] = encode(outcome.value)
    if outcome.kind != "NoneType":
        data["kind"] = outcome.kind
    if outcome.raised:
        data["raised"] = outcome.raised
    if outcome.changed:
        data["changed"] = list(outcome.changed)
    if outcome.shares:
        data["shares"] = outcome.shares
    if not outcome.repeats:
        data["repeats"] = False
    return data


def _keep_close_numbers(new: Any, old: Any) -> Any:
    if isinstance(new, dict) and isinstance(old, dict):
        return {key: _keep_close_numbers(value, old.get(key)) for key, value in new.items()}
    if isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        return [_keep_close_numbers(a, b) for a, b in zip(new, old, strict=True)]
    both_numbers = isinstance(new, float) and isinstance(old, float)
    return old if both_numbers and math.isclose(new, old, rel_tol=1e-12, abs_tol=1e-12) else new
