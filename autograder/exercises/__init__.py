"""What each lesson's exercises ask: one module a lesson, one declaration a student function."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from autograder.exercise import Exercise


class DeclarationError(ValueError):
    """A declaration that cannot be used; the message names its file and says why."""


@cache
def load() -> dict[str, Exercise]:
    """Return every exercise of the course by name, in the order of the lessons.

    Raises
    ------
    DeclarationError
        If a module cannot be imported, an exercise stands in the module of another lesson, or
        two share a name.
    """
    exercises: dict[str, Exercise] = {}
    file_of: dict[str, str] = {}
    for module in iter_modules(__path__):
        if module.name.startswith("_"):
            continue
        file = f"autograder/exercises/{module.name}.py"
        for exercise in _declared(module.name, file):
            name = exercise.name
            if exercise.lesson.partition("_")[2] != module.name:
                raise DeclarationError(
                    f"{file}: {name!r} is declared for the lesson {exercise.lesson!r}. Correct its "
                    "lesson, or declare it in that lesson's file."
                )
            if name in exercises:
                also = f"also in {file_of[name]}" if file_of[name] != file else "twice"
                raise DeclarationError(
                    f"{file}: an exercise called {name!r} is declared {also}. Rename one: names "
                    "are unique in the course."
                )
            exercises[name], file_of[name] = exercise, file
    return dict(sorted(exercises.items(), key=lambda item: item[1].lesson))


def _declared(module: str, file: str) -> tuple[Exercise, ...]:
    try:
        return tuple(import_module(f"{__name__}.{module}").EXERCISES)
    except Exception as error:  # the file is an author's program: anything can be wrong with it
        kind = "" if type(error) is ValueError else f"{type(error).__name__}: "
        raise DeclarationError(f"{file}: {kind}{error}. Correct the declaration.") from error
