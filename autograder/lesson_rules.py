"""Hold all lessons against what is declared, and against what learners may see.

Every stub and check cell belongs to a declared exercise of its lesson, every declared exercise has
both, and nothing that a release shows gives away the instructor's code or a solution.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from autograder.exercise import Exercise
from autograder.lesson_text import Cell, Lesson, Problem, indent, read_lesson

# Code that belongs to the instructor and has no place in what a learner reads.
INSTRUCTORS_CODE = re.compile(
    r"autograder\.reference|\b(?:from|import)\s+autograder\b|hopping\.exam\b|\bexamine\("
)

# From this many characters on (white space not counted) a line of a solution says so much that
# it may stand nowhere in a release. Shorter ones, like `return beta * z`, occur by chance.
TELLING = 20


def read_lessons(
    folder: Path, exercises: Mapping[str, Exercise], shown: Path
) -> tuple[list[Lesson], list[Problem]]:
    """Read all lessons of a folder and find all problems in them.

    Parameters
    ----------
    folder : Path
        Where the texts are.
    exercises : mapping of str to Exercise
        What is declared.
    shown : Path
        Problems name files relative to this folder.

    Returns
    -------
    tuple of list of Lesson and list of Problem
        A lesson with problems of its own is not held against the rest before these are solved:
        what follows from them would bury them.
    """
    lessons, sound, problems = [], [], []
    paths = sorted(p for p in folder.glob("*.py") if not p.name.startswith("."))
    for path in paths:
        lesson, found = read_lesson(path, path.relative_to(shown).as_posix())
        problems += found
        if lesson:
            lessons.append(lesson)
            if not found:
                sound.append(lesson)
    by_name = {lesson.name for lesson in lessons} | {path.stem for path in paths}
    for exercise in exercises.values():
        if exercise.lesson not in by_name:
            where = (folder / f"{exercise.lesson}.py").relative_to(shown).as_posix()
            problems.append(
                Problem(
                    where,
                    1,
                    f"the exercise {exercise.name!r} is declared for a lesson that does not exist",
                    "Write the lesson or take the declaration out of autograder/exercises.",
                )
            )
    for lesson in sound:
        problems += _check_exercises(lesson, exercises)
    problems += _check_visible(sound, exercises)
    return lessons, sorted(set(problems))


def _check_exercises(lesson: Lesson, exercises: Mapping[str, Exercise]) -> Iterator[Problem]:
    """Hold a lesson's stubs and check cells against what is declared for it."""

    def problem(line: int, reason: str, advice: str) -> Problem:
        return Problem(lesson.path, line, reason, advice)

    stubs = {cell.label: i for i, cell in enumerate(lesson.cells) if cell.solution}
    checked = set()
    for i, cell in enumerate(lesson.cells):
        name = cell.checks
        if name is None:
            if cell.kind == "code":
                yield from _check_stray_checks(cell, lesson)
            continue
        checked.add(name)
        exercise = exercises.get(name)
        if exercise is None:
            yield problem(
                cell.line + 1,
                f"check({name}): no exercise of this name is declared",
                f"Declare it in autograder/exercises/{lesson.notebook}.py and list it in EXERCISES "
                "there, or correct the name.",
            )
        elif exercise.lesson != lesson.name:
            yield problem(
                cell.line + 1,
                f"check({name}): this exercise belongs to {exercise.lesson}",
                "Check it there; later lessons use SciPy or hopping instead.",
            )
        elif stubs.get(name, i) > i:
            yield problem(
                cell.line + 1, f"check({name}) comes before its stub", "Put it after the stub."
            )
    for exercise in exercises.values():
        if exercise.lesson != lesson.name:
            continue
        if exercise.name not in stubs:
            yield problem(
                1,
                f"the exercise {exercise.name!r} is declared, but has no stub here",
                f'Write one with nbgrader={{"grade_id": "{exercise.name}", "solution": true}}, '
                "or take the declaration out of autograder/exercises.",
            )
        elif not _is_stub(lesson.cells[stubs[exercise.name]], exercise.name):
            yield problem(
                lesson.cells[stubs[exercise.name]].line,
                f"this cell does not define the function {exercise.name!r} around its solution",
                f"Write `def {exercise.name}(…):`, and the markers inside it.",
            )
        if exercise.name not in checked:
            yield problem(
                lesson.cells[stubs[exercise.name]].line if exercise.name in stubs else 1,
                f"the exercise {exercise.name!r} is declared, but never checked here",
                f"Add a cell that holds only check({exercise.name}).",
            )


def _check_stray_checks(cell: Cell, lesson: Lesson) -> Iterator[Problem]:
    for i, line in enumerate(cell.source.split("\n")):
        if re.match(r"(\w+\.)?check\(", line):
            yield Problem(
                lesson.path,
                cell.first + i,
                "a check among other lines makes no check cell",
                "Put it in a cell of its own that holds nothing else, like check(lse).",
            )


def _is_stub(cell: Cell, name: str) -> bool:
    """Whether the cell defines the function `name` and has its solution inside it."""
    if cell.region is None or cell.kind != "code":
        return True  # reported elsewhere
    lines = cell.source.split("\n")
    above = [line for line in lines[: cell.region.begin] if re.match(r"(async )?def ", line)]
    return bool(
        above
        and re.match(rf"def {re.escape(name)}\(", above[-1])
        and indent(lines[cell.region.end])
    )


def compact(text: str) -> str:
    """Return text without white space, so that another layout is still found."""
    return "".join(text.split())


def fragments(hidden: Iterable[str], *, stub: bool) -> list[str]:
    """Return what of a solution may stand nowhere else, without white space.

    Parameters
    ----------
    hidden : iterable of str
        The lines between the markers.
    stub : bool
        Whether it solves an exercise. Then each telling line counts; of other solutions (a plot,
        a choice) only all lines together, because single ones occur elsewhere with good reason.
    """
    lines = [line.strip() for line in hidden]
    code = [line for line in lines if line and not line.startswith(("#", "import ", "from "))]
    whole = compact("".join(code))
    telling = [compact(line) for line in code] if stub else []
    return [part for part in dict.fromkeys([*telling, whole]) if len(part) >= TELLING]


def _check_visible(lessons: list[Lesson], exercises: Mapping[str, Exercise]) -> Iterator[Problem]:
    """Look in all that a release shows for the instructor's code and for solutions."""
    secrets = [
        (part, f"{lesson.path}:{cell.first + cell.region.begin + 1}")
        for lesson in lessons
        for cell in lesson.cells
        if cell.solution and cell.region
        for part in fragments(cell.hidden(), stub=cell.label in exercises)
    ]
    for lesson in lessons:
        for cell in lesson.cells:
            visible = cell.visible()
            for line, text in visible:
                if INSTRUCTORS_CODE.search(text):
                    yield Problem(
                        lesson.path,
                        line,
                        "this would put the instructor's code into the release",
                        "Take it out; the build writes the hidden exam by itself.",
                    )
            whole = compact("\n".join(text for _, text in visible))
            for part, where in secrets:
                if part not in whole:
                    continue
                line = next((n for n, text in visible if part in compact(text)), cell.line)
                yield Problem(
                    lesson.path,
                    line,
                    f"this shows part of the solution at {where}",
                    "Show it differently, or leave it out.",
                )
