"""Write nbgrader's gradebook, and read points from it: one engine, few statements.

The rows are those that ``nbgrader autograde`` writes, so formgrader and every other tool of
nbgrader's works on them. What a person gave, points and comments, is never changed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from sys import stderr
from typing import NamedTuple

from nbgrader.api import (
    Assignment,
    BaseCell,
    Comment,
    GradeCell,
    Notebook,
    SourceCell,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
    TaskCell,
    new_uuid,
)
from nbgrader.api import (
    Course as CourseRow,
)
from nbgrader.api import (
    Grade as GradeRow,
)
from nbgrader.preprocessors import AssignLatePenalties
from sqlalchemy import (
    Connection,
    Engine,
    Float,
    Update,
    and_,
    bindparam,
    case,
    create_engine,
    func,
    insert,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.exc import DatabaseError, IntegrityError
from traitlets.config import Config

from autograder.course import Course, CourseError, explain_database_error, prepare_database

# Tables without nbgrader's object mapping: its objects load their relatives one by one.
ASSIGNMENT, NOTEBOOK, STUDENT = Assignment.__table__, Notebook.__table__, Student.__table__
SUBMITTED, OWN = SubmittedAssignment.__table__, SubmittedNotebook.__table__
CELL, SOURCE = BaseCell.__table__, SourceCell.__table__
GRADE_CELL, TASK_CELL = GradeCell.__table__, TaskCell.__table__
GRADE, COMMENT = GradeRow.__table__, Comment.__table__

NO_RESPONSE = "No response."  # nbgrader's words
WAIT_SECONDS = 2.0  # before somebody is told that another program is writing

MINE = and_(GRADE.c.notebook_id == bindparam("own"), GRADE.c.cell_id == bindparam("cell"))
SET_POINTS = (
    update(GRADE)
    .where(MINE)
    .values(
        auto_score=bindparam("points", type_=Float),
        # A person's points stand, and are to be looked at again.
        needs_manual_grade=case(
            (GRADE.c.manual_score.is_not(None), true()), else_=bindparam("open")
        ),
    )
)
SET_COMMENT = (
    update(COMMENT)
    .where(COMMENT.c.notebook_id == bindparam("own"), COMMENT.c.cell_id == bindparam("cell"))
    .values(auto_comment=bindparam("words"))
)


class Points(NamedTuple):
    """The points of one graded cell of one submission.

    Attributes
    ----------
    student, lesson, cell : str
        Whose, of which assignment, which grade_id.
    points : float or None
        What counts: given by a person or else earned; None while there are none.
    earned : float or None
        What was given by machine.
    max_points : float
        What the cell gives at most.
    by_hand : bool
        Whether a person has given points.
    open : bool
        Whether a person has to look at it.
    manual : bool
        Whether it is a task or a written answer.
    penalty : float
        What nbgrader takes off the whole notebook for being late.
    """

    student: str
    lesson: str
    cell: str
    points: float | None
    earned: float | None
    max_points: float
    by_hand: bool
    open: bool
    manual: bool
    penalty: float


@dataclass(frozen=True)
class Cells:
    """An assignment as the gradebook knows it: ids of the cells by ``grade_id``."""

    assignment: str
    notebook: str
    graded: Mapping[str, str]
    tasks: Mapping[str, str]
    commented: Mapping[str, str]
    marks: Mapping[str, dict[str, str]]


class Gradebook:
    """nbgrader's gradebook, opened once.

    Parameters
    ----------
    engine : Engine
        Of any database that SQLAlchemy knows.
    config : Config
        The course's, for the penalty on late submissions.
    """

    def __init__(self, engine: Engine, config: Config) -> None:
        self._engine = engine
        self._config = config
        self._cells: dict[str, Cells] = {}

    # --- Reading ---------------------------------------------------------------------------------

    def students(self) -> list[str]:
        """Return the names of all students."""
        with self._engine.connect() as connection:
            return list(connection.scalars(select(STUDENT.c.id)))

    def cells(self, lesson: str) -> Cells:
        """Return an assignment's cells; the gradebook must know it."""
        if lesson not in self._cells:
            self._cells[lesson] = self._read_cells(lesson)
        return self._cells[lesson]

    def _read_cells(self, lesson: str) -> Cells:
        of_lesson = select(NOTEBOOK.c.assignment_id, NOTEBOOK.c.id).join(ASSIGNMENT)
        with self._engine.connect() as connection:
            assignment, notebook = connection.execute(
                of_lesson.where(ASSIGNMENT.c.name == lesson)
            ).one()
            cells = connection.execute(
                select(CELL.c.name, CELL.c.type, CELL.c.id).where(CELL.c.notebook_id == notebook)
            ).all()
            sources = connection.execute(
                select(SOURCE.c.name, SOURCE.c.checksum, SOURCE.c.cell_type).where(
                    SOURCE.c.notebook_id == notebook
                )
            ).all()

        def of(*kinds: str) -> dict[str, str]:
            return {name: cell for name, kind, cell in cells if kind in kinds}

        marks = {name: {"checksum": sum_, "cell_type": kind} for name, sum_, kind in sources}
        graded, tasks = of("GradeCell"), of("TaskCell")
        commented = of("SolutionCell") | tasks
        return Cells(assignment, notebook, graded, tasks, commented, marks)

    def points(self, student: str | None = None, lesson: str | None = None) -> list[Points]:
        """Return the points of all submissions as they are now, or of one student and lesson."""
        with self._engine.connect() as connection:
            return _read_points(connection, student=student, lesson=lesson)

    def comments(self, student: str, lesson: str) -> dict[str, str]:
        """Return what is said about a submission's cells, by ``grade_id``."""
        statement = (
            select(CELL.c.name, func.coalesce(COMMENT.c.manual_comment, COMMENT.c.auto_comment))
            .select_from(COMMENT)
            .join(OWN, COMMENT.c.notebook_id == OWN.c.id)
            .join(SUBMITTED, OWN.c.assignment_id == SUBMITTED.c.id)
            .join(ASSIGNMENT, SUBMITTED.c.assignment_id == ASSIGNMENT.c.id)
            .join(CELL, COMMENT.c.cell_id == CELL.c.id)
            .where(SUBMITTED.c.student_id == student, ASSIGNMENT.c.name == lesson)
        )
        with self._engine.connect() as connection:
            return {name: words for name, words in connection.execute(statement) if words}

    # --- Writing ---------------------------------------------------------------------------------

    def check_writable(self) -> None:
        """Find out whether the gradebook can be written, before anything is touched."""
        told = threading.Timer(
            WAIT_SECONDS,
            print,
            [f"{self._engine.url.database}: another program is writing to it; waiting."],
            {"file": stderr},
        )
        told.start()
        try:
            with self._engine.begin() as connection:
                connection.execute(update(CourseRow.__table__).values(id=CourseRow.__table__.c.id))
        finally:
            told.cancel()

    def enter(
        self,
        student: str,
        lesson: str,
        scores: Mapping[str, float | None],
        unanswered: Iterable[str],
        timestamp: datetime | None,
        *,
        changed: bool,
    ) -> None:
        """Enter what one submission earned, all of it or nothing.

        Parameters
        ----------
        student, lesson : str
            A student who is new is added; the assignment must be known.
        scores : mapping of str to float or None
            Points by ``grade_id``, None where a person has to give them.
        unanswered : iterable of str
            The cells that are as they were handed out.
        timestamp : datetime or None
            When it was handed in, in UTC.
        changed : bool
            Whether it is another submission than the one that was graded last: then the points
            given by hand for a task are to be looked at again, too.
        """
        cells, unanswered = self.cells(lesson), set(unanswered)
        points = [
            {"cell": cells.graded[name], "points": score, "open": score is None}
            for name, score in scores.items()
        ]
        comments = [
            {"cell": cell, "words": NO_RESPONSE if name in unanswered else None}
            for name, cell in cells.commented.items()
        ]
        for last in (False, True):
            try:
                with self._engine.begin() as connection:
                    own = _own_notebook(connection, student, cells, timestamp)
                    for statement, rows in ((SET_POINTS, points), (SET_COMMENT, comments)):
                        if rows:
                            connection.execute(statement, [{"own": own, **row} for row in rows])
                    if changed and cells.tasks:
                        connection.execute(_look_again(own, cells.tasks.values()))
                    self._set_penalty(connection, own, student)
                return
            except IntegrityError:  # somebody else entered the same student meanwhile
                if last:
                    raise

    def withdraw(self, student: str, lesson: str) -> None:
        """Take back what was earned; a person's points stay and are to be looked at again."""
        own = (
            select(OWN.c.id)
            .join(SUBMITTED, OWN.c.assignment_id == SUBMITTED.c.id)
            .join(ASSIGNMENT, SUBMITTED.c.assignment_id == ASSIGNMENT.c.id)
            .where(SUBMITTED.c.student_id == student, ASSIGNMENT.c.name == lesson)
        )
        with self._engine.begin() as connection:
            connection.execute(
                update(GRADE)
                .where(GRADE.c.notebook_id.in_(own))
                .values(auto_score=None, needs_manual_grade=True)
            )
            connection.execute(
                update(OWN).where(OWN.c.id.in_(own)).values(late_submission_penalty=None)
            )

    def _set_penalty(self, connection: Connection, own: str, student: str) -> None:
        """Set the penalty for being late as nbgrader's plugin has it."""
        timestamp, due, extension, before = connection.execute(
            select(
                SUBMITTED.c.timestamp,
                ASSIGNMENT.c.duedate,
                SUBMITTED.c.extension,
                OWN.c.late_submission_penalty,
            )
            .select_from(OWN)
            .join(SUBMITTED, OWN.c.assignment_id == SUBMITTED.c.id)
            .join(ASSIGNMENT, SUBMITTED.c.assignment_id == ASSIGNMENT.c.id)
            .where(OWN.c.id == own)
        ).one()
        penalty = None
        if timestamp and due:
            late = (timestamp - due - (extension or timedelta())).total_seconds()
            if late > 0:
                score = sum(each.points or 0.0 for each in _read_points(connection, own))
                tool = AssignLatePenalties(config=self._config)
                tool.init_plugin()
                penalty = tool.plugin_inst.late_submission_penalty(student, score, late)
                penalty = None if penalty is None else min(max(penalty, 0.0), score)
        if penalty != before:
            connection.execute(
                update(OWN).where(OWN.c.id == own).values(late_submission_penalty=penalty)
            )


@contextmanager
def connect(course: Course) -> Iterator[Gradebook]:
    """Open the gradebook of a course, made if there is none, and close it at the end.

    Raises
    ------
    CourseError
        If it is locked, cannot be written, is no gradebook, or was made by another version of
        nbgrader. What the database raises inside the ``with`` statement becomes one, too.
    """
    directory = course.directory()
    try:
        prepare_database(directory.db_url)
        engine = create_engine(directory.db_url)
        try:
            yield Gradebook(engine, directory.config)
        finally:
            engine.dispose()
    except DatabaseError as error:
        raise CourseError(explain_database_error(directory.db_url, str(error.orig))) from error


def _own_notebook(
    connection: Connection, student: str, cells: Cells, timestamp: datetime | None
) -> str:
    """Return the id of a student's notebook; what is not there yet is made as nbgrader does."""
    rows = [
        select(func.count()).where(table.c.notebook_id == OWN.c.id).scalar_subquery()
        for table in (GRADE, COMMENT)
    ]
    found = connection.execute(
        select(SUBMITTED.c.id, SUBMITTED.c.timestamp, OWN.c.id, *rows)
        .join(OWN, OWN.c.assignment_id == SUBMITTED.c.id)
        .where(SUBMITTED.c.student_id == student, SUBMITTED.c.assignment_id == cells.assignment)
    ).first()
    if found is not None:
        submitted, before, own, *there = found
        if before != timestamp:
            connection.execute(
                update(SUBMITTED).where(SUBMITTED.c.id == submitted).values(timestamp=timestamp)
            )
        if there != [len(cells.graded | cells.tasks), len(cells.commented)]:
            _add_rows(connection, own, cells)  # a damaged gradebook has lost some
        return own
    if connection.scalar(select(STUDENT.c.id).where(STUDENT.c.id == student)) is None:
        connection.execute(insert(STUDENT).values(id=student))
    submitted, own = new_uuid(), new_uuid()
    connection.execute(
        insert(SUBMITTED).values(
            id=submitted,
            assignment_id=cells.assignment,
            student_id=student,
            timestamp=timestamp,
        )
    )
    connection.execute(
        insert(OWN).values(id=own, assignment_id=submitted, notebook_id=cells.notebook)
    )
    _add_rows(connection, own, cells)
    return own


def _add_rows(connection: Connection, own: str, cells: Cells) -> None:
    """Make a row for each cell that has none yet."""
    for table, of in ((GRADE, cells.graded | cells.tasks), (COMMENT, cells.commented)):
        there = set(connection.scalars(select(table.c.cell_id).where(table.c.notebook_id == own)))
        rows = [
            {"id": new_uuid(), "notebook_id": own, "cell_id": cell}
            for cell in of.values()
            if cell not in there
        ]
        if rows:
            connection.execute(insert(table), rows)


def _look_again(own: str, tasks: Iterable[str]) -> Update:
    return (
        update(GRADE)
        .where(GRADE.c.notebook_id == own, GRADE.c.cell_id.in_(list(tasks)))
        .where(GRADE.c.manual_score.is_not(None))
        .values(needs_manual_grade=True)
    )


def _read_points(
    connection: Connection,
    own: str | None = None,
    *,
    student: str | None = None,
    lesson: str | None = None,
) -> list[Points]:
    written = (
        select(CELL.c.name, CELL.c.notebook_id).where(CELL.c.type == "SolutionCell").subquery()
    )
    extra = func.coalesce(GRADE.c.extra_credit, 0.0)
    statement = (
        select(
            SUBMITTED.c.student_id,
            ASSIGNMENT.c.name,
            CELL.c.name,
            func.coalesce(GRADE.c.manual_score, GRADE.c.auto_score) + extra,
            GRADE.c.auto_score,
            func.coalesce(GRADE_CELL.c.max_score, TASK_CELL.c.max_score),
            GRADE.c.manual_score.is_not(None),
            GRADE.c.needs_manual_grade,
            or_(CELL.c.type == "TaskCell", written.c.name.is_not(None)),
            func.coalesce(OWN.c.late_submission_penalty, 0.0),
        )
        .select_from(GRADE)
        .join(OWN, GRADE.c.notebook_id == OWN.c.id)
        .join(SUBMITTED, OWN.c.assignment_id == SUBMITTED.c.id)
        .join(ASSIGNMENT, SUBMITTED.c.assignment_id == ASSIGNMENT.c.id)
        .join(CELL, GRADE.c.cell_id == CELL.c.id)
        .outerjoin(GRADE_CELL, CELL.c.id == GRADE_CELL.c.id)
        .outerjoin(TASK_CELL, CELL.c.id == TASK_CELL.c.id)
        .outerjoin(
            written,
            and_(CELL.c.name == written.c.name, CELL.c.notebook_id == written.c.notebook_id),
        )
    )
    for column, value in (
        (OWN.c.id, own),
        (SUBMITTED.c.student_id, student),
        (ASSIGNMENT.c.name, lesson),
    ):
        if value is not None:
            statement = statement.where(column == value)
    return [Points(*row) for row in connection.execute(statement)]
