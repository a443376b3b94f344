"""Run one submission through nbgrader's own autograder."""

from __future__ import annotations

import json
import logging
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import nbformat
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from nbgrader.converters import Autograde
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.nbgraderformat import SchemaTooNewError, SchemaTooOldError
from nbgrader.preprocessors.execute import UnresponsiveKernelError
from nbgrader.utils import is_grade, is_locked, is_task
from sqlalchemy.exc import DatabaseError

from autograder.course import Course, explain_database_error
from autograder.results import (
    GRADED,
    NOT_GRADED,
    NOTICES,
    Result,
    explain_os_error,
    notebook_path,
    read_scores,
)
from hopping.verdict import Part, Verdict

POINTS = r"([\d.e+-]+) of ([\d.e+-]+)"
HEAD = re.compile(rf"^(\w+): {POINTS} points\.$", re.MULTILINE)
GROUP = re.compile(rf"^  (.+): {POINTS}(?: \(.*\))?$", re.MULTILINE)


class NotGradable(Exception):
    """A submission that has no grade; the message says why and what to do."""


def grade_one(course: Course, student: str, lesson: str) -> tuple[Result, str]:
    """Grade one submission and enter its points in the gradebook.

    Everything about how a submission is run is behind this function. It expects that the
    gradebook knows the lesson, and that an earlier grade of the same student has been withdrawn.

    Parameters
    ----------
    course : Course
        Where everything is.
    student : str
        The name of a folder in ``class/submitted``.
    lesson : str
        An assignment of the course, which is a folder in the student's.

    Returns
    -------
    Result
        Graded, with its scores, or not graded, with the reason.
    str
        What nbgrader logged meanwhile.
    """
    path = notebook_path(course, student, lesson)
    with _captured_log() as lines:
        try:
            submitted = read_submission(path, path.relative_to(course.root))
            notices = list(_changes(course, lesson, path.name, submitted))
            _run(course, student, lesson, path)
            result = _read_result(course, student, lesson, path, notices)
        except NotGradable as reason:
            result = Result(student, lesson, NOT_GRADED, str(reason))
    return result, "\n".join(lines)


# --- Reading -----------------------------------------------------------------------------------


def read_submission(path: Path, shown: Path) -> NotebookNode:
    """Read a submitted notebook, or say what is wrong with its file.

    Raises
    ------
    NotGradable
        If it is not a notebook that nbgrader can grade.
    """
    ask = "It must be handed in again."
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotGradable(
            f"{shown}: not a notebook: byte {error.start} is no text. {ask}"
        ) from None
    except OSError as error:
        raise NotGradable(f"{shown}: cannot be read: {error.strerror}.") from None
    try:
        data = json.loads(text)
    except RecursionError:
        raise NotGradable(f"{shown}: not a notebook: nested too deeply. {ask}") from None
    except ValueError as error:
        what = str(error) if text.strip() else "the file is empty"
        raise NotGradable(f"{shown}: not a notebook: not JSON ({what}). {ask}") from None
    if not isinstance(data, dict) or not isinstance(data.get("nbformat"), int):
        raise NotGradable(f"{shown}: JSON, but not a notebook: no `nbformat` in it. {ask}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of cell ids, which nothing here depends on
            nb = nbformat.reads(text, as_version=4)
            nbformat.validate(nb)
    except Exception as error:  # nbformat raises of many kinds, KeyError and TypeError among them
        line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise NotGradable(f"{shown}: a damaged notebook: {line} {ask}") from None
    counts = Counter(_grade_id(cell) for cell in nb.cells)
    twice = sorted(name for name, count in counts.items() if name and count > 1)
    if twice:
        raise NotGradable(
            f"{shown}: the cell {twice[0]!r} is there {counts[twice[0]]} times, as if it had been "
            "copied. Delete all but the one with the answer, and grade again."
        )
    return nb


def _grade_id(cell: NotebookNode) -> str:
    mark = cell.metadata.get("nbgrader")
    return str(mark.get("grade_id", "")) if isinstance(mark, dict) else ""


def _changes(course: Course, lesson: str, name: str, submitted: NotebookNode) -> Iterator[str]:
    """Yield what is different in cells that a learner must not change; nbgrader restores them."""
    path = course.release / lesson / name
    if not path.is_file():
        return
    handed_out = nbformat.read(path, as_version=4).cells
    cells = {_grade_id(cell): cell for cell in submitted.cells}
    fixed = [cell for cell in handed_out if is_locked(cell) or is_grade(cell) or is_task(cell)]
    deleted = [_grade_id(cell) for cell in fixed if _grade_id(cell) not in cells]
    if deleted:
        yield f"put back, because it had been deleted: {', '.join(deleted)}"
    edited = [
        _grade_id(cell)
        for cell in fixed
        if _grade_id(cell) in cells
        and is_locked(cell)
        and cells[_grade_id(cell)].source.strip() != cell.source.strip()
    ]
    if edited:
        yield f"restored, because it had been edited: {', '.join(edited)}"


# --- Running -----------------------------------------------------------------------------------


class _Autograde(Autograde):
    """nbgrader's autograder for one notebook; it remembers why it failed."""

    path: Path
    failure: Exception | None = None

    def init_notebooks(self) -> None:
        # nbgrader would look for files by pattern, and take a bracket in a name for one.
        self.assignments = {str(self.path.parent): [str(self.path)]}

    def init_assignment(self, assignment_id: str, student_id: str) -> None:
        with self._remembered():
            super().init_assignment(assignment_id, student_id)

    def convert_single_notebook(self, notebook_filename: str) -> None:
        with self._remembered():
            super().convert_single_notebook(notebook_filename)

    @contextmanager
    def _remembered(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self.failure = error
            raise


def _run(course: Course, student: str, lesson: str, path: Path) -> None:
    config = course.config()
    # A deleted test is put back instead of leaving its points open.
    config.OverwriteCells.add_missing_cells = True
    # nbgrader takes any text on stderr in a test for a failure, and a warning costs nothing here.
    config.IgnorePattern.enabled = True
    config.IgnorePattern.pattern = r"[\s\S]"
    # A busy machine may be late with a cell's output; a class is not graded any faster for it.
    config.Execute.setdefault("iopub_timeout", 60)
    config.Execute.extra_arguments = ["--log-level=CRITICAL"]
    config.CourseDirectory.assignment_id = lesson
    config.CourseDirectory.student_id = student
    tool = _Autograde(coursedir=CourseDirectory(config=config), config=config, force=True)
    tool.path = path
    try:
        tool.start()
    except NbGraderException as error:
        failure = tool.failure or error
        raise NotGradable(_explain(course, path.relative_to(course.root), failure)) from failure


def _explain(course: Course, shown: Path, error: Exception) -> str:
    """Say in one line why a submission could not be run, and what to do."""
    if isinstance(error, DeadKernelError):
        return (
            f"{shown}: Python ended while a cell ran: the cell called an exit, crashed, or used "
            "too much memory. Run it from top to bottom to find the cell, then hand it in again."
        )
    if isinstance(error, UnresponsiveKernelError | CellTimeoutError):
        return f"{shown}: a cell ran on and could not be stopped. Correct it, and grade again."
    if isinstance(error, SchemaTooOldError | SchemaTooNewError):
        return (
            f"{shown}: its cells are marked by another version of nbgrader. Copy the answers into "
            "the notebook as it was handed out, and grade again."
        )
    if isinstance(error, DatabaseError):
        return explain_database_error(course.directory().db_url, str(error.orig))
    if isinstance(error, OSError):
        return explain_os_error(error, shown)
    if isinstance(error, KeyError):
        return (
            f"{shown}: cells that grading needs are gone, {error} among them. Copy the answers "
            "into the notebook as it was handed out, and grade again."
        )
    line = (str(error).strip().splitlines() or [""])[0]
    return f"{shown}: nbgrader could not grade it ({type(error).__name__}: {line}). See the log."


@contextmanager
def _captured_log() -> Iterator[list[str]]:
    """Collect what nbgrader says instead of printing it."""
    lines: list[str] = []

    class Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(f"[{record.levelname}] {record.getMessage()}")

    logger = logging.getLogger("traitlets")
    handler, level, propagate = Collect(), logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield lines
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagate


# --- Reading the result ------------------------------------------------------------------------


def _read_result(
    course: Course, student: str, lesson: str, path: Path, notices: list[str]
) -> Result:
    nb = nbformat.read(course.autograded / student / lesson / path.name, as_version=4)
    shown = path.relative_to(course.root)
    stopped = [_name(cell) for cell in nb.cells if _was_stopped(cell)]
    exams = [name for name in stopped if name.startswith("exam_")]
    if exams:
        # Calls of the learner's function are timed on their own, so this says nothing about it.
        raise NotGradable(
            f"{shown}: {', '.join(exams)} ran out of time. Grade again when the machine has less "
            "to do, or allow more in nbgrader_config.py (c.Execute.timeout)."
        )
    if stopped:
        notices.append(f"stopped, because it ran too long: {', '.join(stopped)}")
    others = sorted(p.name for p in path.parent.glob("*.ipynb") if p != path)
    if others:
        notices.append(f"not looked at: {', '.join(others)}")
    verdicts = tuple(v for cell in nb.cells if (v := read_verdict(cell)))
    result = Result(student, lesson, NOTICES if notices else GRADED, "", tuple(notices), verdicts)
    with course.open_gradebook() as gradebook:
        scores = read_scores(course, gradebook, result)
    lost = [score.name for score in scores if score.points is None and not score.manual]
    if lost or not scores:
        raise NotGradable(
            f"{shown}: nbgrader gave no points for {', '.join(lost) or 'anything'}. Copy the "
            "answers into the notebook as it was handed out, and grade again."
        )
    return replace(result, scores=scores)


def _was_stopped(cell: NotebookNode) -> bool:
    return any(output.get("ename") == "CellTimeoutError" for output in cell.get("outputs", ()))


def _name(cell: NotebookNode) -> str:
    return _grade_id(cell) or cell.get("id", "a cell")


def read_verdict(cell: NotebookNode) -> Verdict | None:
    """Return the verdict that an exam cell printed, or None."""
    if not _grade_id(cell).startswith("exam_"):
        return None
    text = "".join(out.text for out in cell.outputs if out.get("name") == "stdout")
    head = HEAD.search(text)
    if head is None:
        return None
    message = text[head.start() :].rstrip()
    parts = tuple(Part(title, float(a), float(b)) for title, a, b in GROUP.findall(message))
    exercise, points, most = head.groups()
    return Verdict(
        exercise, float(points) == float(most), message, None, float(points), float(most), parts
    )
