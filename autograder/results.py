"""The results of a class: what the journal says, with the points of the gradebook.

The gradebook holds points and comments, whoever gave them. It has no place for "could not be
graded, because ...", which is in the journal. Every table, CSV and page is made from what `collect`
returns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType

from autograder.course import Course, CourseError, known_lessons, source_path
from autograder.gradebook import Gradebook, Points, connect
from autograder.journal import course_version, fingerprint, load, read_limits, recorded
from autograder.outcome import (
    CHANGED,
    MISSING,
    NOT_GRADED,
    NOTICES,
    OUTDATED,
    WAITING,
    Result,
    Score,
    explain_os_error,
    missing,
    where,
)
from autograder.printable import printable


def roster(course: Course, gradebook: Gradebook) -> list[tuple[str, str]]:
    """Return every (student, lesson) that has an outcome, or should have one.

    Each folder that is there has one. A lesson is due for all students, who are those who handed
    in anything and those the gradebook knows, once a submission of it that is there was graded:
    until then nobody can have missed it, and a file in the wrong folder makes nothing due. Where
    a folder is gone, that is said until it is settled, and for good if a grade was taken back.
    """
    folders = {
        (student.name, lesson.name)
        for student in _folders(course.submitted)
        for lesson in _folders(student)
    }
    students = {path.name for path in _folders(course.submitted)} | {*gradebook.students()}
    graded, told = set(), set()
    for student, lesson in recorded(course):
        students.add(student)
        record = load(course, student, lesson)
        if record and record.result.graded and (student, lesson) in folders:
            graded.add(lesson)
        if record and (record.result.outcome != MISSING or record.result.remarks):
            told.add((student, lesson))
    due = graded & set(known_lessons(course))
    return sorted(folders | told | {(student, lesson) for student in students for lesson in due})


def stray_notebooks(course: Course) -> list[str]:
    """Return a sentence for each notebook that lies in no lesson's folder: nobody looks at it."""
    places = [(course.submitted, "class/submitted", "<student>/<lesson>/")]
    places += [
        (folder, f"class/submitted/{folder.name}", "<lesson>/")
        for folder in sorted(_folders(course.submitted))
    ]
    return [
        printable(f"Not looked at: {shown}/{path.name}; it belongs in {shown}/{below}")
        for folder, shown, below in places
        if folder.is_dir()
        for path in sorted(folder.iterdir())
        if path.suffix.lower() == ".ipynb" and not path.name.startswith(".") and path.is_file()
    ]


def _folders(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return [path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")]


# --- Results with the points of this moment -----------------------------------------------------


def collect(
    course: Course,
    gradebook: Gradebook | None = None,
    fingerprints: Mapping[tuple[str, str], str] = MappingProxyType({}),
) -> list[Result]:
    """Return the result of every student and lesson, with the points of this moment.

    Parameters
    ----------
    course : Course
        Its journal and files.
    gradebook : Gradebook, optional
        Its gradebook, if that is open already.
    fingerprints : mapping of (student, lesson) to str
        Hashes of submissions as they were when a run read them, so that they are not read once
        more, and what came since is left to the next run.

    Raises
    ------
    CourseError
        If the gradebook cannot be opened.
    """
    if gradebook is None:
        with connect(course) as gradebook:
            return collect(course, gradebook, fingerprints)
    limits = read_limits(course)
    points: dict[tuple[str, str], list[Points]] = {}
    for each in gradebook.points():
        points.setdefault((each.student, each.lesson), []).append(each)

    @cache
    def version(lesson: str) -> str:
        try:
            return course_version(source_path(course, lesson).read_bytes(), limits)
        except (CourseError, OSError):
            return ""

    @cache
    def order(lesson: str) -> dict[str, int]:
        return {name: place for place, name in enumerate(_graded_cells(course, lesson))}

    results = []
    for student, lesson in roster(course, gradebook):
        result, judged_by = _recorded(course, student, lesson, fingerprints)
        if result.graded:
            mine = sorted(
                points.get((student, lesson), ()), key=lambda p: order(lesson).get(p.cell, -1)
            )
            result = _with_points(result, mine)
            if result.graded and judged_by != version(lesson):
                result = _remark(result, OUTDATED)
        results.append(result)
    return results


def _recorded(
    course: Course, student: str, lesson: str, fingerprints: Mapping[tuple[str, str], str]
) -> tuple[Result, str]:
    """Return what the journal says of these very files, and the course version that judged."""
    record = load(course, student, lesson)
    path = where(student, lesson)
    try:
        submission = fingerprints.get((student, lesson))
        if submission is None:
            submission = fingerprint(course, student, lesson)
    except OSError as error:
        return Result(student, lesson, NOT_GRADED, explain_os_error(error)), ""
    if record is not None and submission == record.submission:
        return record.result, record.course
    if not submission:
        return missing(student, lesson), ""
    return Result(student, lesson, NOT_GRADED, f"{path}: {CHANGED if record else WAITING}"), ""


def _with_points(result: Result, points: Sequence[Points]) -> Result:
    if not points:
        reason = "the gradebook has lost this grade. Run `autograder grade`."
        path = where(result.student, result.lesson)
        return replace(result, outcome=NOT_GRADED, reason=f"{path}: {reason}")
    scores = tuple(
        Score(re.sub("^exam_", "", p.cell), p.points, p.max_points, p.manual)
        for p in points
        if p.max_points or p.points  # a check cell gives none: it is there for Validate
    )
    result = replace(result, scores=scores)
    old = [re.sub("^exam_", "", p.cell) for p in points if p.by_hand and p.open]
    if old:
        words = f"graded by hand before it was last run, look again: {', '.join(old)}"
        result = _remark(result, words)
    if points[0].penalty:
        late = (
            f"handed in late: nbgrader takes off {points[0].penalty:g} points, not taken off here"
        )
        result = _remark(result, late)
    return result


def _remark(result: Result, words: str) -> Result:
    return replace(result, outcome=NOTICES, remarks=(*result.remarks, words))


def _graded_cells(course: Course, lesson: str) -> list[str]:
    """Return the grade_ids of a lesson in the order of its source notebook."""
    try:
        cells = json.loads(source_path(course, lesson).read_text("utf-8"))["cells"]
    except (CourseError, ValueError, KeyError):
        return []
    names = (cell["metadata"].get("nbgrader", {}).get("grade_id") for cell in cells)
    return [name for name in names if name is not None]
