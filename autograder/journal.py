"""The journal of a class: for each submission what became of it, and what that depended on.

One small file a submission, ``class/results/<student>/<lesson>.json``, written last and whole. So
where there is one, the gradebook and the graded notebook say the same; where grading was killed,
the next run does what is not in the journal. What it depended on is the content of the files that
were handed in, and the course version.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from autograder.course import CONFIG, Course, CourseError, source_path
from autograder.handed_in import read_handed_in
from autograder.judging_version import judging_version
from autograder.outcome import Result
from autograder.sandbox import Limits
from hopping.verdict import Part, Verdict


@dataclass(frozen=True)
class Record:
    """A result without its points, and what it was made from.

    Attributes
    ----------
    result : Result
        Its scores are in the gradebook.
    submission : str
        The fingerprint of the files that were handed in, "" if there were none.
    course : str
        The course version, "" if the result does not stand yet and is to be made again.
    """

    result: Result
    submission: str
    course: str


def save(course: Course, record: Record) -> None:
    """Write a record, whole or not at all."""
    data = asdict(replace(record.result, scores=()))
    del data["scores"]
    data |= {"submission": record.submission, "course": record.course}
    text = json.dumps(data, ensure_ascii=False, indent=1) + "\n"
    write_whole(_path(course, record.result.student, record.result.lesson), text)


def load(course: Course, student: str, lesson: str) -> Record | None:
    """Read a record; one that cannot be read counts as none."""
    try:
        text = _path(course, student, lesson).read_text("utf-8", "surrogateescape")
        data: dict[str, Any] = json.loads(text)
        verdicts = tuple(
            Verdict(**{**verdict, "parts": tuple(Part(**part) for part in verdict["parts"])})
            for verdict in data.pop("verdicts")
        )
        submission, version = data.pop("submission"), data.pop("course")
        notices, remarks = tuple(data.pop("notices")), tuple(data.pop("remarks"))
        result = Result(**data, notices=notices, remarks=remarks, verdicts=verdicts)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return Record(result, submission, version)


def recorded(course: Course) -> Iterator[tuple[str, str]]:
    """Yield the student and the lesson of every record."""
    for path in (course.class_folder / "results").glob("*/*.json"):
        yield path.parent.name, path.stem


def _path(course: Course, student: str, lesson: str) -> Path:
    return course.class_folder / "results" / student / f"{lesson}.json"


# --- What a result depends on -------------------------------------------------------------------


def fingerprint(course: Course, student: str, lesson: str) -> str:
    """Return a hash of what a student handed in for a lesson, empty for nothing.

    Raises
    ------
    OSError
        If it cannot be read.
    """
    try:
        wanted = source_path(course, lesson).name
    except CourseError:
        wanted = ""
    handed_in = read_handed_in(course.submitted / student / lesson, wanted)
    return handed_in.fingerprint if handed_in else ""


def course_version(source: bytes, limits: Limits) -> str:
    """Return a hash of all on our side that a grade depends on.

    Parameters
    ----------
    source : bytes
        The lesson's source notebook.
    limits : Limits
        What a submission may use.
    """
    parts = (judging_version(), hashlib.sha256(source).hexdigest(), repr(limits))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def read_limits(course: Course) -> Limits:
    """Return the bounds on a submission: the defaults, or what the course's config file says.

    A line like ``c.Limits.cell_seconds = 60`` in nbgrader_config.py sets one.

    Raises
    ------
    CourseError
        If a name or a value is wrong.
    """
    given = dict(course.config().get("Limits", {}))
    known = {each.name: each.default for each in fields(Limits)}
    for name, value in given.items():
        if name not in known:
            raise CourseError(
                f"{course.root / CONFIG}: c.Limits has no {name}. Known: {', '.join(known)}."
            )
        whole = isinstance(known[name], int)
        if type(value) not in ((int,) if whole else (int, float)) or not value > 0:
            kind = "a whole number" if whole else "a number"
            raise CourseError(
                f"{course.root / CONFIG}: c.Limits.{name} must be {kind} above 0, not {value!r}."
            )
    return Limits(**given)


# --- Files -------------------------------------------------------------------------------------


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that a reader, or a crash, never sees half of it."""
    if isinstance(content, str):
        content = content.encode("utf-8", "surrogateescape")
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with scratch.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
