"""Build a course's notebooks and stored examples from its lessons' texts.

Everything is made and checked in a scratch folder first. The course's files change only when all
is well, and only those whose content differs.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

from autograder import lesson_text, notebooks
from autograder.built import digest
from autograder.course import Course, CourseError
from autograder.exercise import Exercise
from autograder.leaks import leaks_in, solution_secrets
from autograder.lesson_rules import read_lessons
from autograder.lesson_text import Cell, Lesson, Problem
from autograder.notebooks import dump, execute, is_current, sign
from autograder.releasing import generate, install, staging, stray_files
from autograder.stored_examples import stored_examples

AT_ONCE = 2  # solutions that run at the same time
LINE = 96  # characters up to which a part of a stored example stays on one line


class BuildError(CourseError):
    """A build that was refused; nothing was written.

    Attributes
    ----------
    problems : list of Problem or str
        All that has to be put right, one a line when printed.
    """

    def __init__(self, problems: list[Problem] | list[str]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


def build(
    course: Course, exercises: Mapping[str, Exercise], *, progress: Callable[[str], None]
) -> list[str]:
    """Build source/, release/, solutions/ and the stored examples of all lessons.

    Parameters
    ----------
    course : Course
        Where the lessons are and where the results go.
    exercises : mapping of str to Exercise
        All exercises of the course, by name.
    progress : callable
        Called with one line for each thing that takes its time.

    Returns
    -------
    list of str
        The files that changed, relative to the course's root.

    Raises
    ------
    BuildError
        If a lesson is refused, a solution fails, or something would leak. It names them all.
    CourseError
        If the gradebook or the disk does not allow it.
    """
    lessons, problems = read_lessons(course.lessons, exercises, course.root)
    problems += _orphans(course, lessons, exercises)
    if not lessons and not problems:
        problems = [f"{course.lessons}: no lesson here. Add a text named like 01_lse_gradient.py."]
    if problems:
        raise BuildError(problems)
    progress(f"{len(lessons)} lesson{'s' * (len(lessons) > 1)} read, no problem found.")

    examples = {name: _examples(course, exercise) for name, exercise in exercises.items()}
    files = {course.examples / f"{name}.json": content for name, content in examples.items()}
    sources = {
        lesson.name: dump(notebooks.source_notebook(lesson, exercises)) for lesson in lessons
    }
    for lesson in lessons:
        files[course.source / lesson.name / f"{lesson.notebook}.ipynb"] = sources[lesson.name]
    secrets = solution_secrets(sources.values())
    package = {path: path.read_bytes() for path in sorted(course.hopping.rglob("*.py"))}
    _refuse_leaks(course, files | package, secrets)
    with staging(course) as scratch:
        files |= _solutions(course, lessons, exercises, examples, scratch, progress)
        for lesson in lessons:
            source = {f"{lesson.notebook}.ipynb": sources[lesson.name]}
            for name, content in generate(course, lesson.name, source, scratch).items():
                files[course.release / lesson.name / name] = content
        _refuse_leaks(course, files, secrets)
        return install(course, scratch, files)


def _solutions(
    course: Course,
    lessons: list[Lesson],
    exercises: Mapping[str, Exercise],
    examples: Mapping[str, bytes],
    scratch: Path,
    progress: Callable[[str], None],
) -> dict[Path, bytes]:
    """Run the solutions that are not current, two at a time, and return their files."""
    packages = _packages(course, scratch / "packages", examples)
    files: dict[Path, bytes] = {}
    problems: list[Problem] = []
    stale: list[tuple[Lesson, Path, str]] = []
    for lesson in lessons:
        path = course.solutions / lesson.name / f"{lesson.notebook}.ipynb"
        mine = {n: c for n, c in examples.items() if exercises[n].lesson == lesson.name}
        built_from = _inputs(course, lesson, mine)
        if not is_current(path, built_from):
            stale.append((lesson, path, built_from))

    async def run_all() -> list[tuple[NotebookNode, list[tuple[Cell, str]]]]:
        free = asyncio.Semaphore(AT_ONCE)

        async def run(lesson: Lesson) -> tuple[NotebookNode, list[tuple[Cell, str]]]:
            nb = notebooks.solved_notebook(lesson)
            folder = scratch / "runs" / lesson.name
            folder.mkdir(parents=True)
            async with free:
                progress(f"{lesson.name}: running its solutions")
                return nb, await execute(nb, lesson, folder, packages)

        return await asyncio.gather(*(run(lesson) for lesson, _, _ in stale))

    runs = asyncio.run(run_all())
    for (lesson, path, built_from), (nb, found) in zip(stale, runs, strict=True):
        problems += [
            Problem(
                lesson.path,
                cell.line,
                f"the solved cell {cell.label!r} fails: {reason.rstrip('.')}",
                "Correct it; the build runs every cell from top to bottom.",
            )
            for cell, reason in found
        ]
        if not found:
            sign(nb, built_from)
            files[path] = dump(nb)
    if problems:
        raise BuildError(problems)
    return files


def _refuse_leaks(course: Course, files: Mapping[Path, bytes], secrets: Mapping[str, str]) -> None:
    """Look at those of some files that learners will get, as they will be."""
    found = [
        f"{line}. Take it out: learners get this file."
        for path, content in files.items()
        if path.is_relative_to(course.release) or path.is_relative_to(course.hopping)
        for line in leaks_in(path.relative_to(course.root).as_posix(), content, secrets)
    ]
    if found:
        raise BuildError(found)


def _orphans(course: Course, lessons: list[Lesson], exercises: Mapping[str, Exercise]) -> list[str]:
    """Find files in the built folders that no lesson and no exercise makes."""
    names = {lesson.name for lesson in lessons} | {p.stem for p in course.lessons.glob("*.py")}
    found = []
    for room in (course.source, course.release, course.solutions):
        for folder in sorted(room.glob("[!.]*")):
            where = folder.relative_to(course.root).as_posix()
            if folder.is_dir() and folder.name not in names:
                if room == course.source or re.match(r"\d\d_", folder.name):
                    found.append(f"{where}: no lesson makes this folder. Delete it.")
            elif room == course.source:
                notebook = folder / f"{lesson_text.notebook_name(folder.name)}.ipynb"
                others = {p for p in folder.glob("[!.]*.ipynb") if p != notebook}
                strays = [*stray_files(folder), *sorted(others)] if folder.is_dir() else [folder]
                found += [
                    f"{path.relative_to(course.root).as_posix()}: only the built notebook may lie "
                    "here, because nbgrader releases every file. Move it elsewhere."
                    for path in strays
                ]
    for path in sorted(course.examples.glob("*.json")):
        if path.stem not in exercises:
            where = path.relative_to(course.root).as_posix()
            found.append(f"{where}: no exercise has this name. Delete it.")
    return found


def _examples(course: Course, exercise: Exercise) -> bytes:
    """Return the file of an exercise's stored examples."""
    path = course.examples / f"{exercise.name}.json"
    try:
        previous = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        previous = None  # none yet, or not readable: it is made anew
    try:
        content = stored_examples(exercise, previous)
    except Exception as error:
        where = f"autograder/exercises/{lesson_text.notebook_name(exercise.lesson)}.py"
        raise BuildError(
            [
                f"{where}: the examples of {exercise.name!r} cannot be made: "
                f"{type(error).__name__}: {error}. Correct the declaration or its reference."
            ]
        ) from error
    return (_layout(content) + "\n").encode()


def _layout(data: Any, indent: str = "") -> str:
    """Return JSON with one line for what fits on one: short to read, and to compare.

    Keys keep their order, because an example's inputs are in the order of the arguments.
    """
    line = json.dumps(data, ensure_ascii=False)
    if len(indent + line) <= LINE or not isinstance(data, dict | list) or not data:
        return line
    inner = indent + " "
    if isinstance(data, dict):
        parts = [f"{json.dumps(k)}: {_layout(v, inner)}" for k, v in data.items()]
    else:
        parts = [_layout(value, inner) for value in data]
    opening, closing = "{}" if isinstance(data, dict) else "[]"
    return f"{opening}\n{inner}" + f",\n{inner}".join(parts) + f"\n{indent}{closing}"


def _packages(course: Course, folder: Path, examples: Mapping[str, bytes]) -> Path:
    """Make a copy of `hopping` with the new examples, for the solutions to import."""
    folder.mkdir(parents=True)
    if course.hopping.is_dir():
        shutil.copytree(
            course.hopping,
            folder / "hopping",
            ignore=shutil.ignore_patterns("__pycache__", "examples"),
        )
    (folder / "hopping" / "examples").mkdir(parents=True, exist_ok=True)
    for name, content in examples.items():
        (folder / "hopping" / "examples" / f"{name}.json").write_bytes(content)
    return folder


def _inputs(course: Course, lesson: Lesson, examples: Mapping[str, bytes]) -> str:
    """Return a hash of all that a solved notebook depends on."""
    parts = {"lesson": lesson.text.encode()} | {f"example {k}": v for k, v in examples.items()}
    package = [
        path
        for path in course.hopping.rglob("*")
        if path.is_file() and path.parent != course.examples and "__pycache__" not in path.parts
    ]
    modules = [Path(module.__file__) for module in (lesson_text, notebooks)]
    for path in (*package, *modules, course.root / "requirements.lock"):
        if path.is_file():
            parts[path.name if path in modules else path.relative_to(course.root).as_posix()] = (
                path.read_bytes()
            )
    return digest(parts)
