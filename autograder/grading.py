"""Grade a class: every student's submission of every lesson, each on its own."""

from __future__ import annotations

import contextlib
import difflib
import os
import shutil
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.exc import SAWarning
from tqdm import tqdm

from autograder.course import Course, CourseError
from autograder.releasing import register
from autograder.results import (
    INTERRUPTED,
    NOT_GRADED,
    Record,
    Result,
    collect,
    course_fingerprint,
    explain_os_error,
    fingerprint,
    known_lessons,
    load,
    missing,
    notebook_path,
    read_scores,
    roster,
    save,
    withdraw,
)
from autograder.stock import grade_one


def grade_class(
    course: Course,
    students: Sequence[str] = (),
    lessons: Sequence[str] = (),
    *,
    force: bool = False,
) -> list[Result]:
    """Grade what was handed in and return the results, with progress on stderr.

    A submission that has not changed since it was graded is not run again. Whatever one
    submission does, the others are graded.

    Parameters
    ----------
    course : Course
        Its ``class/submitted`` holds the submissions.
    students, lessons : sequence of str
        Only these; empty for all.
    force : bool
        Also run what has not changed.

    Returns
    -------
    list of Result
        One for each student and lesson asked for, in that order.

    Raises
    ------
    CourseError
        If nothing can be graded at all: no submissions, an unknown name, a gradebook or a folder
        that cannot be written.
    """
    _check_gradebook(course)
    pairs = _wanted(course, students, lessons)
    with _log(course) as log, warnings.catch_warnings():
        # nbgrader's own use of SQLAlchemy; nobody who grades can do anything about it.
        warnings.simplefilter("ignore", SAWarning)
        refused = _register(course, {lesson for _, lesson in pairs})
        bar = tqdm(pairs, desc="grading", unit=" submissions", file=sys.stderr, dynamic_ncols=True)
        for student, lesson in bar:
            bar.set_postfix_str(_printable(f"{student} {lesson}"), refresh=False)
            started = time.monotonic()
            result, details = _grade(course, student, lesson, force, refused.get(lesson))
            log(result, time.monotonic() - started, details)
    wanted = set(pairs)
    return [r for r in collect(course) if (r.student, r.lesson) in wanted]


def _check_gradebook(course: Course) -> None:
    """Find out whether the gradebook can be written, before anything is touched."""
    told = threading.Timer(
        2.0,
        print,
        [f"{course.gradebook}: another program is writing to it; waiting for it to finish."],
        {"file": sys.stderr},
    )
    told.start()
    try:
        with course.open_gradebook() as gradebook:
            gradebook.db.execute(text("UPDATE course SET id = id"))
            gradebook.db.commit()
    finally:
        told.cancel()


def _wanted(
    course: Course, students: Sequence[str], lessons: Sequence[str]
) -> list[tuple[str, str]]:
    """Return the pairs to grade, and refuse names that nobody has."""
    with course.open_gradebook() as gradebook:
        pairs = roster(course, gradebook)
    if not pairs and not lessons:
        raise CourseError(
            f"{course.submitted}: nothing was handed in. Put each submission in "
            "class/submitted/<student>/<lesson>/<notebook>.ipynb."
        )
    names = {student for student, _ in pairs}
    _refuse_unknown(students, names, f"{course.submitted}: no student is called")
    known = known_lessons(course)
    _refuse_unknown(
        lessons, {*known, *(lesson for _, lesson in pairs)}, f"{course.source}: no lesson is called"
    )
    # Whoever names a lesson wants to see everybody who has not handed it in.
    pairs += [(s, lesson) for s in names for lesson in lessons if lesson in known]
    return sorted(
        {
            (student, lesson)
            for student, lesson in pairs
            if (not students or student in students) and (not lessons or lesson in lessons)
        }
    )


def _refuse_unknown(asked: Iterable[str], known: set[str], sentence: str) -> None:
    for name in asked:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f" Did you mean {close[0]}?" if close else ""
            names = ", ".join(sorted(known)) if len(known) <= 20 else f"{len(known)} others"
            raise CourseError(f"{sentence} {name}. Known: {names or 'none'}.{hint}")


def _register(course: Course, lessons: Iterable[str]) -> dict[str, str]:
    """Let the gradebook know the lessons; return why it could not, by lesson."""
    refused = {}
    for lesson in sorted(set(lessons) & set(known_lessons(course))):
        try:
            register(course, lesson)
        except CourseError as error:
            refused[lesson] = str(error)
    return refused


def _grade(
    course: Course, student: str, lesson: str, force: bool, refused: str | None
) -> tuple[Result, str]:
    """Bring one result up to date and return it, with details for the log."""
    submission, judge = fingerprint(course, student, lesson), course_fingerprint(course, lesson)
    before = load(course, student, lesson)
    if not force and _is_current(course, before, submission, judge):
        return before.result, "unchanged, not run again"
    # What an instructor must know about an earlier grade stays until there is a new one.
    notes = before.result.notices if before and not before.result.graded else ()
    reason = f"{_where(student, lesson)}: {INTERRUPTED}"
    result = Result(student, lesson, NOT_GRADED, reason, notes)
    save(course, Record(result, submission, ""))
    details = ""
    try:
        taken = _forget(course, student, lesson)
        if taken is not None:
            notes = (f"an earlier grading gave {taken:g} points, which were withdrawn",)
        reason = refused or _obstacle(course, student, lesson)
        if not submission:
            result = missing(student, lesson)
        elif reason:
            result = replace(result, reason=reason)
        else:
            result, details = grade_one(course, student, lesson)
    except CourseError as error:
        result = replace(result, reason=str(error))
    except OSError as error:
        result = replace(result, reason=explain_os_error(error))
    except Exception as error:
        reason = f"{_where(student, lesson)}: {type(error).__name__}: {error}. See class/grade.log."
        result, details = replace(result, reason=reason), traceback.format_exc()
    if not result.graded:
        result = replace(result, notices=notes)
        with contextlib.suppress(CourseError, OSError):
            _forget(course, student, lesson)  # what it had earned before it failed
    save(course, Record(result, submission, judge if result.graded else ""))
    return result, details


def _is_current(course: Course, record: Record | None, submission: str, judge: str) -> bool:
    if record is None or not record.result.graded:
        return False
    if (record.submission, record.course) != (submission, judge):
        return False
    with course.open_gradebook() as gradebook:
        return bool(read_scores(course, gradebook, record.result))


def _forget(course: Course, student: str, lesson: str) -> float | None:
    """Remove what an earlier grading left, and return the points it had given."""
    if _strange_name(student):
        return None  # nbgrader never had it
    for folder in (course.autograded, course.feedback):
        if (folder / student / lesson).exists():
            shutil.rmtree(folder / student / lesson)
    return withdraw(course, student, lesson)


def _obstacle(course: Course, student: str, lesson: str) -> str:
    """Return why nbgrader cannot even try, or nothing."""
    folder = course.submitted / student / lesson
    where = _where(student, lesson)
    if strange := _strange_name(student):
        return f"{where}: the student's folder {strange}. Rename it, and grade again."
    if lesson not in known_lessons(course):
        close = difflib.get_close_matches(lesson, known_lessons(course), 1)
        hint = f" Did you mean {close[0]}?" if close else ""
        return f"{where}: the course has no lesson of this name.{hint} Rename the folder."
    path = notebook_path(course, student, lesson)
    if path.is_file():
        return ""
    others = sorted(p.name for p in folder.rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)
    if others:
        return f"{where}: no {path.name}, but {', '.join(others)}. Rename it, and grade again."
    return f"{where}: no {path.name} among the files handed in. Ask for it."


def _strange_name(student: str) -> str:
    """Return what is wrong with a folder's name, or nothing."""
    if student != student.strip():
        return "begins or ends with a space"
    if not student.isprintable():
        return "has characters in its name that cannot be printed"
    return ""


def _where(student: str, lesson: str) -> str:
    return f"class/submitted/{student}/{lesson}"


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)


@contextlib.contextmanager
def _log(course: Course) -> Iterator:
    """Open ``class/grade.log`` and give a function that writes what became of a submission."""
    course.class_folder.mkdir(parents=True, exist_ok=True)
    path: Path = course.class_folder / "grade.log"
    with path.open("a", encoding="utf-8", errors="backslashreplace") as file:
        print(f"\n=== {time.strftime('%Y-%m-%d %H:%M:%S')} autograder grade", file=file)

        def write(result: Result, seconds: float, details: str) -> None:
            head = f"{time.strftime('%H:%M:%S')} {result.student} {result.lesson}"
            print(f"{head}: {result.outcome} ({seconds:.1f} s)", file=file)
            for line in filter(None, (result.reason, *result.notices)):
                print(f"    {line}", file=file)
            for line in details.splitlines():
                print(f"      {line}", file=file)
            file.flush()

        yield write
        os.fsync(file.fileno())
