"""Where things are in a course, and nbgrader set up for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nbgrader.api import Gradebook
    from nbgrader.apps import NbGraderAPI
    from nbgrader.coursedir import CourseDirectory
    from traitlets.config import Config

    from autograder.exercise import Exercise

# nbgrader takes a second to import, so the functions that need it import it themselves and a
# command's --help stays quick.

CONFIG = "nbgrader_config.py"


class CourseError(Exception):
    """Something a person can put right; the message names the file and says what to do."""


@dataclass(frozen=True)
class Course:
    """A folder with ``nbgrader_config.py``, ``source/`` and ``release/``.

    Attributes
    ----------
    root : Path
        The folder, absolute. It need not hold the lessons' texts: a class can be graded from
        the built notebooks alone.
    """

    root: Path

    def __post_init__(self) -> None:
        """Make the root absolute and refuse what nbgrader cannot work in."""
        object.__setattr__(self, "root", Path(self.root).absolute())
        if any(character in str(self.root) for character in "[]*?"):
            raise CourseError(
                f"{self.root}: nbgrader reads [ ] * ? in a path as a pattern. "
                "Move the course to a folder without them."
            )

    @classmethod
    def find(cls, start: Path | str = ".") -> Course:
        """Return the course that `start` is in: the first folder upwards with the config file.

        Raises
        ------
        CourseError
            If there is none.
        """
        start = Path(start).absolute()
        for folder in (start, *start.parents):
            if (folder / CONFIG).is_file():
                return cls(folder)
        raise CourseError(
            f"{start}: no course here. Neither this folder nor one above it has a file {CONFIG}. "
            "Change to the course's folder first."
        )

    @property
    def lessons(self) -> Path:
        """The lessons' texts, one file a lesson."""
        return self.root / "course" / "lessons"

    @property
    def hopping(self) -> Path:
        """The package that the lessons import."""
        return self.root / "course" / "hopping"

    @property
    def examples(self) -> Path:
        """The stored examples, one JSON file an exercise."""
        return self.hopping / "examples"

    @property
    def source(self) -> Path:
        """The instructor's notebooks, built."""
        return self.root / "source"

    @property
    def release(self) -> Path:
        """The learners' notebooks, built."""
        return self.root / "release"

    @property
    def solutions(self) -> Path:
        """The solved and executed notebooks, built."""
        return self.root / "solutions"

    @property
    def class_folder(self) -> Path:
        """Everything of the running class."""
        return self.root / "class"

    @property
    def submitted(self) -> Path:
        """What students handed in: ``<student>/<assignment>/<notebook>.ipynb``."""
        return self.class_folder / "submitted"

    @property
    def autograded(self) -> Path:
        """Graded notebooks."""
        return self.class_folder / "autograded"

    @property
    def feedback(self) -> Path:
        """Pages for students."""
        return self.class_folder / "feedback"

    @property
    def grades(self) -> Path:
        """The results as a table."""
        return self.class_folder / "grades.csv"

    @property
    def gradebook(self) -> Path:
        """The gradebook's file, unless the config names another database."""
        return self.class_folder / "gradebook.db"

    def config(self) -> Config:
        """Return nbgrader's settings, read anew from this course's config file."""
        from traitlets.config.loader import PyFileConfigLoader

        try:
            return PyFileConfigLoader(CONFIG, path=str(self.root)).load_config()
        except FileNotFoundError:
            raise CourseError(
                f"{self.root}: no {CONFIG} here. Copy it from the course's repository."
            ) from None
        except Exception as error:
            raise CourseError(
                f"{self.root / CONFIG}: {type(error).__name__}: {error}. Correct it."
            ) from error

    def directory(self) -> CourseDirectory:
        """Return nbgrader's own idea of this course."""
        from nbgrader.coursedir import CourseDirectory

        return CourseDirectory(config=self.config())

    def api(self) -> NbGraderAPI:
        """Return nbgrader's Python interface to this course."""
        from nbgrader.apps import NbGraderAPI

        return NbGraderAPI(config=self.config())

    @contextmanager
    def open_gradebook(self) -> Iterator[Gradebook]:
        """Open nbgrader's gradebook, made if there is none, and close it at the end.

        Raises
        ------
        CourseError
            If it is locked, cannot be written, is no gradebook, or was made by another version
            of nbgrader.
        """
        from nbgrader.api import Gradebook
        from sqlalchemy.exc import DatabaseError

        directory = self.directory()
        try:
            prepare_database(directory.db_url)
            with Gradebook(directory.db_url, directory.course_id) as gradebook:
                yield gradebook
        except DatabaseError as error:
            raise CourseError(explain_database_error(directory.db_url, str(error.orig))) from error


def declared_exercises() -> dict[str, Exercise]:
    """Return every exercise by name.

    Raises
    ------
    CourseError
        If a declaration cannot be used.
    """
    from autograder.exercises import DeclarationError, load

    try:
        return load()
    except DeclarationError as error:
        raise CourseError(str(error)) from error


def known_lessons(course: Course) -> list[str]:
    """Return the names of the course's assignments."""
    return sorted(path.name for path in course.source.glob("[!.]*") if path.is_dir())


def source_path(course: Course, lesson: str) -> Path:
    """Return a lesson's source notebook; submissions have its name.

    Raises
    ------
    CourseError
        If the lesson has none, or more than one.
    """
    paths = sorted((course.source / lesson).glob("[!.]*.ipynb"))
    if len(paths) != 1:
        raise CourseError(
            f"{course.source / lesson}: this lesson needs one notebook and has {len(paths)}. "
            "Run `autograder build`."
        )
    return paths[0]


def explain_database_error(db_url: str, message: str) -> str:
    """Say in one line what a database error means and what to do about it."""
    message = " ".join(message.split())
    for part, advice in (
        (
            "locked",
            "another program is writing to it. Close formgrader or wait for the other grading "
            "run, then try again",
        ),
        ("unable to open", "it cannot be opened. Check that its folder exists and is yours"),
        ("readonly", "it cannot be written. Check who owns the file"),
        ("disk is full", "there is no space left on its disk. Make room and try again"),
        ("not a database", "this is not a gradebook. Move the file away and try again"),
    ):
        if part in message:
            return f"{_shown(db_url)}: {advice}."
    return f"{_shown(db_url)}: {message}. Restore a backup, or move it away to start a new one."


def prepare_database(db_url: str) -> None:
    """Make a new gradebook's tables, and refuse those of another nbgrader before a write.

    nbgrader makes the tables, too, but starts another program to learn their version, which
    takes seconds; and it adds its new tables to an old gradebook, which then cannot be upgraded.
    """
    import nbgrader
    from alembic.config import Config
    from alembic.script import ScriptDirectory
    from nbgrader.api import Base
    from sqlalchemy import create_engine, inspect, text

    scripts = Config()
    scripts.set_main_option("script_location", str(Path(nbgrader.__file__).parent / "alembic"))
    head = ScriptDirectory.from_config(scripts).get_current_head()
    engine = create_engine(db_url)
    try:
        with engine.begin() as connection:
            tables = set(inspect(connection).get_table_names())
            if not tables:
                Base.metadata.create_all(connection)
                connection.execute(
                    text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
                )
                connection.execute(text("INSERT INTO alembic_version VALUES (:v)"), {"v": head})
                return
            version = None
            if "alembic_version" in tables:
                version = connection.execute(
                    text("SELECT version_num FROM alembic_version")
                ).scalar()
    finally:
        engine.dispose()
    if version != head:
        # The address without its time-out: nbgrader's command takes all of it for a file name.
        raise CourseError(
            f"{_shown(db_url)}: made by another version of nbgrader ({nbgrader.__version__} is "
            "installed). Copy it to a safe place, then run: "
            f"nbgrader db upgrade --db {db_url.split('?')[0]}"
        )


def _shown(db_url: str) -> str:
    """Return a file's path, or a server's address without its password."""
    from sqlalchemy import make_url

    url = make_url(db_url)
    return str(url.database) if url.drivername.startswith("sqlite") else str(url)
