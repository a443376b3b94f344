"""The results of a class: what the journal says, with the points of the gradebook.

The gradebook holds points and comments, whoever gave them. It has no place for "could not be
graded, because ...", which is in the journal. Every table, CSV and page is made from what `collect`
returns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from autograder.course import Course, CourseError, known_lessons, source_path
from autograder.gradebook import Gradebook, Points, connect
from autograder.journal import course_version, fingerprint, load, read_limits, recorded
from autograder.outcome import (
    CHANGED,
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


def roster(course: Course, gradebook: Gradebook) -> list[tuple[str, str]]:
    """Return every (student, lesson) that has an outcome, or should have one.

    Students are those who handed in anything and those the gradebook knows. A lesson counts once
    one student handed it in: until then nobody can have missed it.
    """
    folders = {
        (student.name, lesson.name)
        for student in _folders(course.submitted)
        for lesson in _folders(student)
    }
    records = set(recorded(course))
    students = {path.name for path in _folders(course.submitted)}
    students |= {*gradebook.students(), *(student for student, _ in records)}
    handed_out = set(known_lessons(course))
    due = {lesson for _, lesson in folders | records} & handed_out
    pairs = {(student, lesson) for student in students for lesson in due}
    strange = {(student, lesson) for student, lesson in folders if lesson not in handed_out}
    return sorted(pairs | strange)


def _folders(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return [path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")]


# --- Results with the points of this moment -----------------------------------------------------


def collect(course: Course, gradebook: Gradebook | None = None) -> list[Result]:
    """Return the result of every student and lesson, with the points of this moment.

    Raises
    ------
    CourseError
        If the gradebook cannot be opened.
    """
    if gradebook is None:
        with connect(course) as gradebook:
            return collect(course, gradebook)
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
        result, judged_by = _recorded(course, student, lesson)
        if result.graded:
            mine = sorted(
                points.get((student, lesson), ()), key=lambda p: order(lesson).get(p.cell, -1)
            )
            result = _with_points(result, mine)
            if result.graded and judged_by != version(lesson):
                result = _remark(result, OUTDATED)
        results.append(result)
    return results


def _recorded(course: Course, student: str, lesson: str) -> tuple[Result, str]:
    """Return what the journal says of these very files, and the course version that judged."""
    record = load(course, student, lesson)
    path = where(student, lesson)
    try:
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
