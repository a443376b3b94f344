"""What each lesson's exercises ask: one module a lesson, one declaration a student function."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from autograder.exercise import Exercise


@cache
def load() -> dict[str, Exercise]:
    """Return every exercise of the course by name, in the order of the lessons.

    Raises
    ------
    ValueError
        If two exercises share a name.
    """
    declared = [
        exercise
        for module in iter_modules(__path__)
        if not module.name.startswith("_")
        for exercise in import_module(f"{__name__}.{module.name}").EXERCISES
    ]
    exercises: dict[str, Exercise] = {}
    for exercise in sorted(declared, key=lambda e: e.lesson):
        if exercise.name in exercises:
            raise ValueError(f"two exercises are called {exercise.name!r}: names must be unique")
        exercises[exercise.name] = exercise
    return exercises
