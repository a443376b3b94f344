"""Grade a class: every student's submission of every lesson, each on its own.

Workers run submissions; this process alone writes. For each answer it writes the graded notebook,
then the gradebook, then the journal, so that a run that is killed at any moment is taken up again
by the same command.
"""

from __future__ import annotations

import contextlib
import difflib
import fcntl
import json
import os
import platform
import shutil
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import TextIO

from nbgrader.utils import parse_utc
from sqlalchemy.exc import DataError
from tqdm import tqdm

from autograder.course import (
    Course,
    CourseError,
    declared_exercises,
    known_lessons,
    source_path,
)
from autograder.gradebook import Gradebook, connect
from autograder.handed_in import TIMESTAMP, HandedIn, read_handed_in
from autograder.journal import Record, course_version, load, read_limits, save, write_whole
from autograder.judging_version import PACKAGES, judging_version
from autograder.outcome import (
    GRADED,
    INTERRUPTED,
    MISSING,
    NOT_GRADED,
    NOTICES,
    Result,
    explain_os_error,
    missing,
    where,
)
from autograder.pool import answers, cores
from autograder.printable import printable
from autograder.releasing import register
from autograder.report import write_csv
from autograder.results import collect, roster, stray_notebooks
from autograder.sandbox import Limits, isolation_warning
from autograder.worker import Answer, Request

BAR = "{l_bar}{bar}| {n_fmt}/{total_fmt} submissions [{elapsed}<{remaining}{postfix}]"
NAME_LIMIT = 128  # characters of a student's name in nbgrader's gradebook


def grade_class(
    course: Course,
    students: Sequence[str] = (),
    lessons: Sequence[str] = (),
    *,
    force: bool = False,
    workers: int | None = None,
    executor: Executor | None = None,
) -> list[Result]:
    """Grade what was handed in and return the results, with progress on stderr.

    A submission that has not changed since it was graded is not run again, unless the course has
    changed. Whatever one submission does, the others are graded. The results of the whole class
    are written to ``class/grades.csv``.

    Parameters
    ----------
    course : Course
        Its ``class/submitted`` holds the submissions.
    students, lessons : sequence of str
        Only these; empty for all.
    force : bool
        Also run what has not changed.
    workers : int, optional
        How many submissions run at the same time; as many as there are processors by default.
    executor : Executor, optional
        Where they run: anything with the interface of `concurrent.futures`, such as a cluster's.
        By default a pool of processes on this machine.

    Returns
    -------
    list of Result
        One for each student and lesson asked for, in that order.

    Raises
    ------
    CourseError
        If nothing can be graded at all: no submissions, an unknown name, a gradebook or a folder
        that cannot be written, another run on the same class.
    """
    limits = read_limits(course)
    with _only_run(course), connect(course) as gradebook:
        gradebook.check_writable()
        pairs = _wanted(course, gradebook, students, lessons)
        with _open_log(course) as log:
            known = _lessons(course, gradebook, pairs, limits)
            run = _Run(course, gradebook, log, known, limits)
            later = []
            if run.grade(pairs, force, workers or cores(), executor):
                # What has just been graded may be due for others now.
                before = set(pairs)
                wanted = _wanted(course, gradebook, students, lessons)
                later = [pair for pair in wanted if pair not in before and pair[1] in known]
            run.settle_missing(later)
        results = collect(course, gradebook, run.fingerprints)
    write_csv(course.grades, results)
    found = {(result.student, result.lesson): result for result in results}
    return [found.get(pair) or missing(*pair) for pair in sorted([*pairs, *later])]


# --- Before anything is touched ------------------------------------------------------------------


@contextlib.contextmanager
def _only_run(course: Course) -> Iterator[None]:
    """Make sure that nobody else grades this class; a process that ends gives the lock back."""
    course.class_folder.mkdir(parents=True, exist_ok=True)
    path = course.class_folder / "grading.lock"
    with path.open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise CourseError(
                f"{course.class_folder}: this class is being graded already "
                f"({file.read().strip() or 'by another process'}). Wait until that is done. "
                "Nothing was changed here."
            ) from None
        file.truncate(0)
        since = time.strftime("%Y-%m-%d %H:%M:%S")
        file.write(f"by process {os.getpid()} on {platform.node()} since {since}\n")
        file.flush()
        yield


def _wanted(
    course: Course, gradebook: Gradebook, students: Sequence[str], lessons: Sequence[str]
) -> list[tuple[str, str]]:
    """Return the pairs to grade, and refuse names that nobody has."""
    pairs = roster(course, gradebook)
    if not pairs and not lessons:
        words = (
            f"{course.submitted}: nothing was handed in. Put each submission in "
            "class/submitted/<student>/<lesson>/<notebook>.ipynb."
        )
        raise CourseError("\n".join([words, *stray_notebooks(course)]))
    names = {student for student, _ in pairs}
    _refuse_unknown(students, names, f"{course.submitted}: no student is called")
    known = known_lessons(course)
    _refuse_unknown(lessons, {*known}, f"{course.source}: no lesson is called")
    # Whoever names a lesson wants to see everybody who has not handed it in.
    pairs += [(student, lesson) for student in names for lesson in lessons]
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


@dataclass(frozen=True)
class _Lesson:
    """A lesson that submissions are graded against, or why none can be."""

    wanted: str = ""
    source: bytes = b""
    version: str = ""
    refused: str = ""


def _lessons(
    course: Course, gradebook: Gradebook, pairs: Iterable[tuple[str, str]], limits: Limits
) -> dict[str, _Lesson]:
    """Read the lessons, and let the gradebook know their cells."""
    found = {}
    known = known_lessons(course)
    for lesson in sorted({lesson for _, lesson in pairs}):
        if lesson not in known:
            close = difflib.get_close_matches(lesson, known, 1)
            hint = f" Did you mean {close[0]}?" if close else ""
            words = f"the course has no lesson of this name.{hint} Rename the folder."
            found[lesson] = _Lesson(refused=words)
            continue
        name = ""
        try:
            path = source_path(course, lesson)
            name = path.name
            register(course, lesson)
            source = path.read_bytes()
            marked = _marked(source, gradebook.cells(lesson).marks)
            found[lesson] = _Lesson(name, marked, course_version(source, limits))
        except CourseError as error:
            found[lesson] = _Lesson(name, refused=str(error))
    return found


def _marked(source: bytes, marks: dict[str, dict[str, str]]) -> bytes:
    """Return a source notebook with what nbgrader notes in the cells of a graded one."""
    notebook = json.loads(source)
    for cell in notebook["cells"]:
        if own := cell["metadata"].get("nbgrader"):
            own.update(marks.get(own["grade_id"], {}))
    return json.dumps(notebook).encode()


# --- The run -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Task:
    """A submission in the hands of a worker."""

    student: str
    lesson: str
    submission: str
    name: str
    others: tuple[str, ...]
    timestamp: str


@dataclass
class _Run:
    """Brings the results of a class up to date."""

    course: Course
    gradebook: Gradebook
    log: _Log
    lessons: dict[str, _Lesson]
    limits: Limits
    # Hashes of what was read, by student and lesson. The files themselves could fill the memory.
    fingerprints: dict[tuple[str, str], str] = field(default_factory=dict)

    def grade(
        self,
        pairs: Sequence[tuple[str, str]],
        force: bool,
        workers: int,
        executor: Executor | None,
    ) -> bool:
        """Settle what cannot be run or is up to date, run the rest, and record every answer.

        Returns whether anything was run.
        """
        known = {(each.student, each.lesson) for each in self.gradebook.points()}
        to_run = [pair for pair in pairs if self._has_to_run(*pair, force, pair in known)]
        if to_run:
            declared_exercises()  # what is wrong there is no submission's fault
        workers = max(1, min(workers, len(to_run)))
        warning = isolation_warning() if to_run else None
        if warning:
            print(f"autograder: {warning}", file=sys.stderr)
        self.log.start(len(pairs), len(to_run), workers, warning)
        bar = tqdm(
            desc="grading",
            total=len(pairs),
            initial=len(pairs) - len(to_run),
            bar_format=BAR,
            file=sys.stderr,
            dynamic_ncols=True,
        )
        work = answers(self._tasks(to_run), workers, executor)
        with bar, contextlib.closing(work):
            for task, answer in work:
                self._finish(task, answer)
                bar.set_postfix_str(printable(f"{task.student} {task.lesson}"), refresh=False)
                bar.update()
        return bool(to_run)

    def settle_missing(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Settle what was not handed in; what has arrived meanwhile is for the next run."""
        for student, lesson in pairs:
            handed_in, reason = self._look(student, lesson)
            if handed_in is None:
                self._settle(student, lesson, reason, "")

    def _has_to_run(self, student: str, lesson: str, force: bool, in_gradebook: bool) -> bool:
        """Whether a submission has to be run; if it cannot be, that is recorded."""
        handed_in, reason = self._look(student, lesson)
        if handed_in is None or reason:
            self._settle(student, lesson, reason, handed_in.fingerprint if handed_in else "")
            return False
        record = load(self.course, student, lesson)
        return (
            force
            or record is None
            or record.submission != handed_in.fingerprint
            or record.course != self.lessons[lesson].version
            or (record.result.graded and not in_gradebook)
        )

    def _look(self, student: str, lesson: str) -> tuple[HandedIn | None, str]:
        """Return what was handed in, and why it cannot be run, if it cannot."""
        folder = self.course.submitted / student / lesson
        self.fingerprints.pop((student, lesson), None)
        try:
            handed_in = read_handed_in(folder, self.lessons[lesson].wanted)
        except OSError as error:
            return None, explain_os_error(error)
        self.fingerprints[student, lesson] = handed_in.fingerprint if handed_in else ""
        if handed_in is None:
            return None, ""
        if strange := _strange_name(student):
            return handed_in, f"the student's folder {strange}. Rename it, and grade again."
        return handed_in, self.lessons[lesson].refused

    def _tasks(self, to_run: Iterable[tuple[str, str]]) -> Iterator[tuple[_Task, Request]]:
        """Read the submissions, each when a worker is free for it."""
        for student, lesson in to_run:
            handed_in, reason = self._look(student, lesson)
            if handed_in is None:  # it was taken away a moment ago
                self._settle(student, lesson, reason, "")
                continue
            target = self.lessons[lesson]
            yield (
                _Task(
                    student,
                    lesson,
                    handed_in.fingerprint,
                    target.wanted if target.wanted in handed_in.files else "",
                    handed_in.others,
                    handed_in.timestamp,
                ),
                Request(
                    handed_in.files,
                    target.wanted,
                    target.source,
                    self.limits,
                    self._hidden(),
                    judging_version(),
                ),
            )

    def _hidden(self) -> str:
        """Return the course's folder where student code could see it: among Python's own."""
        own = (sys.prefix, sys.base_prefix, "/usr")
        inside = any(self.course.root.is_relative_to(folder) for folder in own)
        return str(self.course.root) if inside else ""

    def _finish(self, task: _Task, answer: Answer | BaseException) -> None:
        """Record an answer; whatever is wrong with it is this submission's reason."""
        details = ""
        if isinstance(answer, Answer) and not answer.reason:
            try:
                self._enter(task, answer)
                return
            except OSError as error:
                reason = explain_os_error(error)
            except DataError as error:
                reason = f"the gradebook does not take it: {error.orig}."
            final = False
        elif isinstance(answer, Answer):
            reason, final = answer.reason, True
            if not reason.endswith("."):
                reason += ". It must be handed in again."
            if task.name:
                reason = f"{where(task.student, task.lesson)}/{task.name}: {reason}"
        else:
            final = False
            details = "".join(traceback.format_exception(answer))
            reason = f"{type(answer).__name__}: {answer}. See class/grade.log."
            if isinstance(answer, OSError):
                reason = explain_os_error(answer)
            if isinstance(answer, BrokenExecutor):
                reason = (
                    "the process that graded it ended, perhaps for want of memory. Grade again, "
                    "and look at the file if that does not help."
                )
        version = self.lessons[task.lesson].version if final else ""
        self._settle(task.student, task.lesson, reason, task.submission, version, details)

    def _enter(self, task: _Task, answer: Answer) -> None:
        """Write what a submission earned: notebook, gradebook, journal, in this order."""
        notices = answer.notices
        if task.others:
            notices += (f"Not looked at: {', '.join(map(printable, task.others))}.",)
        try:
            timestamp = parse_utc(task.timestamp) if task.timestamp else None
        except Exception:  # of many kinds: anybody can write anything into this file
            timestamp = None
            notices += (f"{TIMESTAMP} holds no time: {printable(task.timestamp)}.",)
        student, lesson = task.student, task.lesson
        folder = self.course.autograded / student / lesson
        write_whole(folder / self.lessons[lesson].wanted, answer.notebook)
        if task.timestamp:
            write_whole(folder / TIMESTAMP, task.timestamp)
        else:
            (folder / TIMESTAMP).unlink(missing_ok=True)
        self._remove(self.course.feedback, student, lesson)
        before = load(self.course, student, lesson)
        self.gradebook.enter(
            student,
            lesson,
            answer.scores,
            answer.unanswered,
            timestamp,
            changed=before is not None and before.submission != task.submission,
        )
        outcome = NOTICES if notices else GRADED
        result = Result(student, lesson, outcome, notices=notices, verdicts=answer.verdicts)
        save(self.course, Record(result, task.submission, self.lessons[lesson].version))
        earned = sum(score or 0.0 for score in answer.scores.values())
        self.log.result(result, f"{earned:g} points by machine, {answer.seconds:.2f} s")

    def _settle(
        self,
        student: str,
        lesson: str,
        reason: str,
        submission: str,
        version: str = "",
        details: str = "",
    ) -> None:
        """Record that there is no grade and why, and take back what an earlier one gave."""
        result = missing(student, lesson)
        if submission or reason:
            path = where(student, lesson)
            named = reason.startswith((path, str(self.course.root)))
            words = reason if named else f"{path}: {reason}"
            result = Result(student, lesson, NOT_GRADED, words)
        before = load(self.course, student, lesson)
        if before and not before.result.graded:
            result = replace(result, remarks=before.result.remarks)
        # A strange name is never in the gradebook, and no database could look for some of them.
        entered = [] if _strange_name(student) else self.gradebook.points(student, lesson)
        earned = [each.earned for each in entered if each.earned is not None]
        if earned:
            words = f"an earlier grading gave {sum(earned):g} points, which were withdrawn"
            result = replace(result, remarks=(words,))
            # First the remark, so that it is not lost if this is the end.
            pending = replace(result, reason=f"{where(student, lesson)}: {INTERRUPTED}")
            save(self.course, Record(pending, submission, ""))
            self.gradebook.withdraw(student, lesson)
        for room in (self.course.autograded, self.course.feedback):
            self._remove(room, student, lesson)
            with contextlib.suppress(OSError):  # other lessons are in it, or it is not there
                (room / student).rmdir()
        record = Record(result, submission, version)
        if before != record and (result.outcome != MISSING or before or result.remarks):
            save(self.course, record)
        self.log.result(result, details)

    @staticmethod
    def _remove(room: Path, student: str, lesson: str) -> None:
        if (room / student / lesson).exists():
            shutil.rmtree(room / student / lesson)


def _strange_name(student: str) -> str:
    """Return what is wrong with a folder's name, or nothing."""
    if student != student.strip():
        return "begins or ends with a space"
    if not student.isprintable():
        return "has characters in its name that cannot be printed"
    if len(student) > NAME_LIMIT:
        return f"has a name of more than {NAME_LIMIT} characters"
    return ""


# --- The log -------------------------------------------------------------------------------------


@dataclass
class _Log:
    """``class/grade.log``: what a run did, for whoever asks later."""

    file: TextIO

    def start(self, total: int, to_run: int, workers: int, warning: str | None) -> None:
        """Write what is going to be done, and with what."""
        now = time.strftime("%Y-%m-%d %H:%M:%S")
        self._write("")
        self._write(f"=== {now} autograder grade: {to_run} of {total} submissions to be run")
        if to_run:
            packages = ", ".join(f"{name} {version(name)}" for name in ("autograder", *PACKAGES))
            self._write(f"    {workers} workers; Python {platform.python_version()}, {packages}")
            self._write(f"    {warning or 'Student code is shut off by bubblewrap.'}")

    def result(self, result: Result, details: str) -> None:
        """Write what became of one submission."""
        head = f"{time.strftime('%H:%M:%S')} {result.student} {result.lesson}: {result.outcome}"
        first, *rest = details.splitlines() or [""]
        self._write(f"{head} ({first})" if first and not rest else head)
        for line in filter(None, (result.reason, *result.notices, *result.remarks)):
            self._write(f"    {line}")
        for line in [first, *rest] if rest else []:
            self._write(f"      {line}")

    def _write(self, line: str) -> None:
        print(printable(line.replace("\n", " ")), file=self.file, flush=True)


@contextlib.contextmanager
def _open_log(course: Course) -> Iterator[_Log]:
    path = course.class_folder / "grade.log"
    with path.open("a", encoding="utf-8", errors="backslashreplace") as file:
        yield _Log(file)
        os.fsync(file.fileno())
