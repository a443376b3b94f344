"""Assemble a sample class from the exercises' own right and wrong answers."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograder.course import CONFIG, Course, CourseError, known_lessons
from autograder.exercise import Exercise
from autograder.standalone import standalone
from hopping.judge import find_fault
from hopping.observe import observe_all

MARK = ".sample-class"

# The layers of a check, as parts of a student's name.
KINDS = {
    "raised": "error",
    "too slow": "error",
    "type": "type",
    "shape": "shape",
    "not finite": "not-finite",
    "value": "value",
    "changes its input": "mutates",
    "shares memory": "mutates",
    "not repeatable": "mutates",
}

Answers = dict[str, str]  # code by exercise


def assemble(course: Course, folder: Path, exercises: Mapping[str, Exercise]) -> Course:
    """Make a course of its own in `folder`, with a class that has handed in everything.

    Parameters
    ----------
    course : Course
        Where the built notebooks come from.
    folder : Path
        New, empty, or an earlier sample class, which is replaced.
    exercises : mapping of str to Exercise
        By name; those of the course's lessons are answered.

    Returns
    -------
    Course
        With ``class/submitted`` filled: one student who is right, one who is right in unusual
        ways, one who wrote nothing, students for the known wrong answers, by kind (all of them if
        the course has one lesson, else one of a kind), one who handed nothing in, one who ends
        Python in one answer a lesson and one whose file is no notebook.

    Raises
    ------
    CourseError
        If the course is not built, or `folder` holds something else.
    """
    lessons = known_lessons(course)
    if not lessons:
        raise CourseError(f"{course.source}: no lesson in it. Run `autograder build` first.")
    _make_room(folder)
    sample = Course(folder)
    shutil.copy(course.root / CONFIG, folder / CONFIG)
    for room in ("source", "release"):
        shutil.copytree(course.root / room, folder / room)
    class_ = students(
        {name: e for name, e in exercises.items() if e.lesson in lessons},
        most=None if len(lessons) == 1 else 1,
    )
    for lesson in lessons:
        mine = {name: e for name, e in exercises.items() if e.lesson == lesson}
        _hand_in(sample, lesson, mine, class_)
    return sample


def students(exercises: Mapping[str, Exercise], most: int | None) -> dict[str, Answers]:
    """Return what each student who can program hands in, by name.

    A student's wrong answers are all of one kind, one an exercise; where an exercise has no more
    of that kind, the student's answer is right. With several lessons a class would become large,
    so `most` says how many students there are of a kind; None gives a place to every known wrong
    answer.
    """
    right = {name: standalone(e.reference, name) for name, e in exercises.items()}
    unusual = {
        name: standalone(e.alternatives[i % len(e.alternatives)].function, name)
        for i, (name, e) in enumerate(exercises.items())
    }
    found: dict[str, Answers] = {"right": right, "right-unusual": unusual}
    for name, exercise in exercises.items():
        counts: dict[str, int] = {}
        for kind, code in _wrong_answers(exercise):
            counts[kind] = counts.get(kind, 0) + 1
            if most and counts[kind] > most:
                continue
            found.setdefault(f"wrong-{kind}-{counts[kind]}", dict(right))[name] = code
    return {name: found[name] for name in sorted(found)}


def _wrong_answers(exercise: Exercise) -> list[tuple[str, str]]:
    """Return the kind and the code of every known wrong answer."""
    cases = [case for group in exercise.groups for case in group.cases]
    rights = [exercise.reference(*case.inputs.values()) for case in cases]
    answers = []
    for wrong in exercise.misconceptions:
        outcomes = observe_all(wrong.function, cases)
        faults = (
            find_fault(outcome, right, exercise.tolerance)
            for outcome, right in zip(outcomes, rights, strict=True)
        )
        layer = next(fault.layer for fault in faults if fault)
        answers.append((KINDS[layer], standalone(wrong.function, exercise.name)))
    return answers


def _make_room(folder: Path) -> None:
    if folder.exists() and any(folder.iterdir()):
        if not (folder / MARK).is_file():
            raise CourseError(
                f"{folder}: there is something else in it. Name a new or an empty folder."
            )
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).write_text("`autograder demo` made this folder and may replace it.\n")


def _hand_in(
    sample: Course, lesson: str, exercises: Mapping[str, Exercise], class_: Mapping[str, Answers]
) -> None:
    """Fill ``class/submitted`` with one lesson."""
    (source,) = (sample.source / lesson).glob("*.ipynb")
    handed_out = nbformat.read(sample.release / lesson / source.name, as_version=4)
    texts = _texts(nbformat.read(source, as_version=4))
    for student, answers in class_.items():
        mine = {name: answers[name] for name in exercises}
        _write(sample, student, lesson, source.name, _typed(handed_out, {**texts, **mine}))
    _write(sample, "blank", lesson, source.name, nbformat.writes(handed_out))
    crash = dict.fromkeys(list(exercises)[:1], "import os\n\nos._exit(1)")
    right = {name: class_["right"][name] for name in exercises}
    dead = _typed(handed_out, {**texts, **right, **crash})
    _write(sample, "dead-kernel", lesson, source.name, dead)
    _write(sample, "not-json", lesson, source.name, "<html>Please log in to continue</html>\n")
    (sample.submitted / "absent").mkdir(exist_ok=True)


def _write(sample: Course, student: str, lesson: str, name: str, text: str) -> None:
    folder = sample.submitted / student / lesson
    folder.mkdir(parents=True)
    (folder / name).write_text(text, "utf-8")


def _typed(handed_out: NotebookNode, texts: Mapping[str, str]) -> str:
    """Return a released notebook with answers typed into its cells."""
    nb = nbformat.from_dict(handed_out)
    for cell in nb.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if name in texts:
            cell.source = texts[name]
    return nbformat.writes(nb)


def _texts(source: NotebookNode) -> dict[str, str]:
    """Return the solution of every cell that a learner fills in."""
    return {
        cell.metadata.nbgrader.grade_id: _solved(cell.source)
        for cell in source.cells
        if cell.metadata.get("nbgrader", {}).get("solution")
    }


def _solved(text: str) -> str:
    """Take the markers away, and the line that stands for an answer not given."""
    lines = text.split("\n")
    kept = [
        line
        for before, line in zip(["", *lines], lines, strict=False)
        if "### BEGIN SOLUTION" not in line
        and "### END SOLUTION" not in line
        and not (
            "### END SOLUTION" in before and line.strip().startswith("raise NotImplementedError")
        )
    ]
    return "\n".join(kept).strip("\n")
