"""What became of each submission: its outcome in a small file, its points in the gradebook.

The gradebook holds points and comments, whoever gave them. It has no place for "could not be
graded, because ...", so that is kept in ``class/results/<student>/<lesson>.json``, together with
what was judged and a fingerprint of the files that were. `collect` joins the two; every table,
CSV and page is made from what it returns.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hopping
from autograder.course import Course, CourseError
from hopping.verdict import Part, Verdict

if TYPE_CHECKING:
    from nbgrader.api import Gradebook, SubmittedAssignment

GRADED = "graded"
NOTICES = "graded with notices"
NOT_GRADED = "not graded"
MISSING = "missing"

INTERRUPTED = "grading was interrupted. Run `autograder grade` again."
CHANGED = "handed in again since it was graded. Run `autograder grade`."
WAITING = "handed in, but not graded yet. Run `autograder grade`."


@dataclass(frozen=True)
class Score:
    """The points of one graded cell.

    Attributes
    ----------
    name : str
        The exercise, or the cell's grade_id.
    points : float or None
        None while nobody has graded it.
    max_points : float
        What it gives at most.
    manual : bool
        Whether a person grades it.
    review : bool
        Whether a person graded it before it was last run.
    """

    name: str
    points: float | None
    max_points: float
    manual: bool = False
    review: bool = False


@dataclass(frozen=True)
class Result:
    """What became of one student's submission of one lesson.

    Attributes
    ----------
    student, lesson : str
        Whose submission, of which assignment.
    outcome : str
        ``"graded"``, ``"graded with notices"``, ``"not graded"`` or ``"missing"``.
    reason : str
        Why there is no grade, and what to do; empty for a grade.
    notices : tuple of str
        What a person should know about a submission, such as cells that were restored.
    verdicts : tuple of Verdict
        What was said about each exercise, as far as it ran.
    scores : tuple of Score
        Points by graded cell, in the order of the notebook; empty without a grade.
    """

    student: str
    lesson: str
    outcome: str
    reason: str = ""
    notices: tuple[str, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    scores: tuple[Score, ...] = ()

    @property
    def graded(self) -> bool:
        """Whether there is a grade."""
        return self.outcome in (GRADED, NOTICES)

    @property
    def points(self) -> float | None:
        """The points given so far, or None without a grade."""
        given = [score.points for score in self.scores if score.points is not None]
        return _tidy(sum(given)) if self.graded else None

    @property
    def max_points(self) -> float | None:
        """What the lesson gives at most, or None without a grade."""
        return _tidy(sum(score.max_points for score in self.scores)) if self.graded else None

    @property
    def pending(self) -> float:
        """How many points are still to be given by hand."""
        return _tidy(sum(s.max_points for s in self.scores if s.points is None))


def _tidy(points: float) -> float:
    """Take away what adding decimal fractions leaves behind."""
    return round(points, 6)


# --- Who handed in what ------------------------------------------------------------------------


def known_lessons(course: Course) -> list[str]:
    """Return the names of the course's assignments."""
    return sorted(path.name for path in course.source.glob("[!.]*") if path.is_dir())


def notebook_path(course: Course, student: str, lesson: str) -> Path:
    """Return where a submission's notebook must be."""
    names = [path.name for path in sorted((course.source / lesson).glob("[!.]*.ipynb"))]
    if len(names) != 1:
        raise CourseError(
            f"{course.source / lesson}: this lesson needs one notebook and has {len(names)}. "
            "Run `autograder build`."
        )
    return course.submitted / student / lesson / names[0]


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
    records = {(path.parent.name, path.stem) for path in _results(course).glob("*/*.json")}
    students = {path.name for path in _folders(course.submitted)}
    students |= {student.id for student in gradebook.students} | {s for s, _ in records}
    handed_out = set(known_lessons(course))
    due = {lesson for _, lesson in folders | records} & handed_out
    pairs = {(student, lesson) for student in students for lesson in due}
    strange = {(student, lesson) for student, lesson in folders if lesson not in handed_out}
    return sorted(pairs | strange)


def _folders(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return [path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")]


# --- Fingerprints ------------------------------------------------------------------------------


def fingerprint(course: Course, student: str, lesson: str) -> str:
    """Return a hash of all that a student handed in for a lesson, empty for nothing."""
    folder = course.submitted / student / lesson
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return _hash((path.relative_to(folder).as_posix(), path) for path in files) if files else ""


def course_fingerprint(course: Course, lesson: str) -> str:
    """Return a hash of all on our side that a grade depends on."""
    files = [*sorted((course.source / lesson).glob("*")), course.root / "nbgrader_config.py"]
    return _program() + _hash((path.name, path) for path in files if path.is_file())


@cache
def _program() -> str:
    """Return a hash of the code that judges, and of the public examples."""
    roots = [Path(__file__).parent, Path(hopping.__file__).parent]
    return _hash(
        (f"{root.name}/{path.relative_to(root).as_posix()}", path)
        for root in roots
        for path in sorted(root.rglob("*"))
        if path.suffix in (".py", ".json")
    )


def _hash(files: Iterator[tuple[str, Path]]) -> str:
    total = hashlib.sha256()
    for name, path in files:
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{name}\0{content}\n".encode("utf-8", "surrogateescape"))
    return total.hexdigest()


# --- Records -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Record:
    """A result without its points, and the fingerprints of what it was made from."""

    result: Result
    submission: str
    course: str


def save(course: Course, record: Record) -> None:
    """Write a record, whole or not at all."""
    data = asdict(replace(record.result, scores=()))
    del data["scores"]
    data |= {"submission": record.submission, "course": record.course}
    text = json.dumps(data, ensure_ascii=False, indent=1) + "\n"
    write_whole(_record_path(course, record.result.student, record.result.lesson), text)


def load(course: Course, student: str, lesson: str) -> Record | None:
    """Read a record; one that cannot be read counts as none."""
    try:
        text = _record_path(course, student, lesson).read_text("utf-8", "surrogateescape")
        data: dict[str, Any] = json.loads(text)
        verdicts = tuple(
            Verdict(**{**verdict, "parts": tuple(Part(**part) for part in verdict["parts"])})
            for verdict in data.pop("verdicts")
        )
        submission, course_hash = data.pop("submission"), data.pop("course")
        notices = tuple(data.pop("notices"))
        result = Result(**data, notices=notices, verdicts=verdicts)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return Record(result, submission, course_hash)


def write_whole(path: Path, text: str) -> None:
    """Write a text file so that a reader, or a crash, never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with scratch.open("w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


def explain_os_error(error: OSError, path: Path | str = "") -> str:
    """Say in one line what went wrong with a file or its disk, and what to do."""
    where = error.filename or path or "a file"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{where}: there is no space left on its disk. Make room and run the command again."
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return (
            f"{where}: {(error.strerror or 'not allowed').lower()}. Check who owns it and whether "
            "its folder may be written to."
        )
    return f"{where}: {error.strerror or error}."


def _results(course: Course) -> Path:
    return course.class_folder / "results"


def _record_path(course: Course, student: str, lesson: str) -> Path:
    return _results(course) / student / f"{lesson}.json"


# --- The gradebook -----------------------------------------------------------------------------


def find_submission(gradebook: Gradebook, student: str, lesson: str) -> SubmittedAssignment | None:
    """Return the gradebook's entry for a submission, or None."""
    from nbgrader.api import MissingEntry

    try:
        return gradebook.find_submission(lesson, student)
    except MissingEntry:
        return None


def read_scores(course: Course, gradebook: Gradebook, result: Result) -> tuple[Score, ...]:
    """Return the points of a submission as the gradebook has them now."""
    submission = find_submission(gradebook, result.student, result.lesson)
    if submission is None:
        return ()
    scores = {}
    for notebook in submission.notebooks:
        written = {cell.name for cell in notebook.notebook.solution_cells}
        for grade in notebook.grades:
            if grade.max_score == 0 and not grade.score:
                continue  # a check cell: it is there for Validate
            by_hand = grade.manual_score is not None
            scores[grade.name] = Score(
                re.sub("^exam_", "", grade.name),
                float(grade.score) if by_hand or grade.auto_score is not None else None,
                float(grade.max_score),
                type(grade.cell).__name__ == "TaskCell" or grade.name in written,
                by_hand and grade.needs_manual_grade,
            )
    order = graded_cells(course, result.lesson)
    return tuple(
        scores[name] for name in sorted(scores, key=lambda n: order.index(n) if n in order else -1)
    )


def graded_cells(course: Course, lesson: str) -> list[str]:
    """Return the grade_ids of a lesson in the order of its source notebook."""
    names = []
    for path in sorted((course.source / lesson).glob("[!.]*.ipynb")):
        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            name = cell["metadata"].get("nbgrader", {}).get("grade_id")
            if name is not None:
                names.append(name)
    return names


def withdraw(course: Course, student: str, lesson: str) -> float | None:
    """Take back what an earlier submission earned, and return those points.

    What a person gave, points and comments, stays and is marked to be looked at again.

    Returns
    -------
    float or None
        The automatic points taken back; None if there were none.
    """
    taken = []
    with course.open_gradebook() as gradebook:
        submission = find_submission(gradebook, student, lesson)
        for notebook in submission.notebooks if submission else []:
            for grade in notebook.grades:
                if grade.auto_score is not None:
                    taken.append(grade.auto_score)
                    grade.auto_score = None
                grade.needs_manual_grade = True
        gradebook.db.commit()
    return _tidy(sum(taken)) if taken else None


# --- Both together -----------------------------------------------------------------------------


def collect(course: Course) -> list[Result]:
    """Return the result of every student and lesson, with the points of this moment.

    Raises
    ------
    CourseError
        If the gradebook cannot be opened.
    """
    with course.open_gradebook() as gradebook:
        return [
            _result(course, gradebook, student, lesson)
            for student, lesson in roster(course, gradebook)
        ]


def _result(course: Course, gradebook: Gradebook, student: str, lesson: str) -> Result:
    record = load(course, student, lesson)
    submission = fingerprint(course, student, lesson)
    if record is None:
        return (
            Result(student, lesson, NOT_GRADED, f"{_where(student, lesson)}: {WAITING}")
            if submission
            else missing(student, lesson)
        )
    result = record.result
    if submission != record.submission:
        if not submission:
            return missing(student, lesson)
        return Result(student, lesson, NOT_GRADED, f"{_where(student, lesson)}: {CHANGED}")
    if not result.graded:
        return result
    scores = read_scores(course, gradebook, result)
    if not scores:
        reason = f"{course.gradebook.name}: it has lost this grade. Run `autograder grade --force`."
        return replace(result, outcome=NOT_GRADED, reason=reason)
    old = [score.name for score in scores if score.review]
    if old:
        note = f"graded by hand before it was last run, look again: {', '.join(old)}"
        result = replace(result, outcome=NOTICES, notices=(*result.notices, note))
    return replace(result, scores=scores)


def missing(student: str, lesson: str) -> Result:
    """Return the result of a submission that is not there."""
    return Result(student, lesson, MISSING, f"{_where(student, lesson)}: nothing was handed in.")


def _where(student: str, lesson: str) -> str:
    return f"class/submitted/{student}/{lesson}"
