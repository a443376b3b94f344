"""What became of one submission: an outcome, points, and what was said about it."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from pathlib import Path

from hopping.verdict import Verdict

GRADED = "graded"
NOTICES = "graded with notices"
NOT_GRADED = "not graded"
MISSING = "missing"

INTERRUPTED = "grading was interrupted. Run `autograder grade` again."
CHANGED = "handed in again since it was graded. Run `autograder grade`."
WAITING = "handed in, but not graded yet. Run `autograder grade`."
OUTDATED = "graded with another version of the course; `autograder grade` grades it with this one"


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
    """

    name: str
    points: float | None
    max_points: float
    manual: bool = False


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
        What was found in a submission, such as cells that were restored.
    remarks : tuple of str
        What is for the instructor alone, such as points that were withdrawn.
    verdicts : tuple of Verdict
        What was said about each exercise.
    scores : tuple of Score
        Points by graded cell, in the order of the notebook; empty without a grade.
    """

    student: str
    lesson: str
    outcome: str
    reason: str = ""
    notices: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
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
        return tidy(sum(given)) if self.graded else None

    @property
    def max_points(self) -> float | None:
        """What the lesson gives at most, or None without a grade."""
        return tidy(sum(score.max_points for score in self.scores)) if self.graded else None

    @property
    def pending(self) -> float:
        """How many points are still to be given by hand."""
        return tidy(sum(s.max_points for s in self.scores if s.points is None))


def tidy(points: float) -> float:
    """Take away what adding decimal fractions leaves behind."""
    return round(points, 6)


def missing(student: str, lesson: str) -> Result:
    """Return the result of a submission that is not there."""
    return Result(student, lesson, MISSING, f"{where(student, lesson)}: nothing was handed in.")


def where(student: str, lesson: str) -> str:
    """Return the folder of a submission, as a person is told."""
    return f"class/submitted/{student}/{lesson}"


def explain_os_error(error: OSError, path: Path | str = "") -> str:
    """Say in one line what went wrong with a file or its disk, and what to do."""
    place = error.filename or path or "a file"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{place}: there is no space left on its disk. Make room and run the command again."
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return (
            f"{place}: {(error.strerror or 'not allowed').lower()}. Check who owns it and whether "
            "its folder may be written to."
        )
    return f"{place}: {error.strerror or error}."
