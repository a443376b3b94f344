"""Which exercises pass in which lesson: noted at every check, shown as a table and a picture.

In a notebook every check leaves its outcome in a small file beside the notebook, one a folder.
Nothing ever needs that file, and a check goes on as if nothing were when it cannot be written.
Its name starts with a dot, so that it is never handed in, released or built by mistake: nbgrader's
settings in this course, and the build, leave such files alone. Delete it to start again.
"""

from __future__ import annotations

import html
import itertools
import json
import os
import re
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:  # Matplotlib is not needed to note an outcome
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FILE = ".hopping_progress.json"
NEW = ".hopping_progress.new"  # what becomes FILE; only one kernel at a time can have it
ASIDE = "damaged_hopping_progress"  # in plain sight: somebody should look at it
ABOUT = "Which exercises of the course pass. Made by check(...); delete it to start again."
SIZE_LIMIT = 1 << 20  # bytes; a course takes some thousand
PATIENCE = 1.0  # seconds that a check waits for another kernel
STALE = 10.0  # seconds after which NEW was left by a kernel that was killed


@dataclass(frozen=True)
class Record:
    """What is kept of one exercise.

    Attributes
    ----------
    passed : bool
        The outcome of its latest check.
    checked : datetime
        When that was.
    first_passed : datetime or None
        When it passed for the first time, even if it does not pass now.
    """

    passed: bool
    checked: datetime
    first_passed: datetime | None = None


# What could not be written yet: this kernel shows it all the same, and the next check tries again.
_pending: dict[str, Record] = {}
_trouble: list[str] = []  # why not, at most one reason


# --- Noting -----------------------------------------------------------------------------------


def note_outcome(exercise: str, passed: bool) -> None:
    """Note the outcome of a check, in a notebook only; never fail and never say anything.

    Parameters
    ----------
    exercise : str
        Its name.
    passed : bool
        Whether the check found nothing wrong.
    """
    try:
        if not _in_a_kernel():  # a test, a program, the examiner: no notebook to lie beside
            return
        _trouble.clear()
        now = datetime.now(UTC)
        _pending[exercise] = _joined(
            _pending.get(exercise), Record(passed, now, now if passed else None)
        )
        _write(Path.cwd(), _pending)
        _pending.clear()
    except Exception as error:  # whatever it is, it must not hide what the check has to say
        _trouble.append(getattr(error, "strerror", None) or str(error) or type(error).__name__)


def _in_a_kernel() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return getattr(shell, "kernel", None) is not None


def _joined(earlier: Record | None, later: Record) -> Record:
    """Return the later outcome, with the first of both times at which it passed."""
    passes = [r.first_passed for r in (earlier, later) if r and r.first_passed]
    return Record(later.passed, later.checked, min(passes, default=None))


def _write(folder: Path, records: Mapping[str, Record]) -> None:
    """Put records into a folder's file, whole or not at all, beside those that are there."""
    new = folder / NEW
    file = _open_alone(new)
    try:
        with file:
            kept = _read_or_put_aside(folder)
            for name, record in records.items():
                kept[name] = _joined(kept.get(name), record)
            file.write(_to_text(kept))
        os.replace(new, folder / FILE)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def _open_alone(new: Path) -> TextIO:
    """Open a new file while nobody else has it, so that no kernel overwrites what another noted."""
    end = time.monotonic() + PATIENCE
    while True:
        with suppress(FileExistsError):
            return new.open("x", encoding="utf-8")
        with suppress(FileNotFoundError):  # gone in between
            if abs(time.time() - new.stat().st_mtime) > STALE:
                new.unlink()
        if time.monotonic() > end:
            raise TimeoutError("another kernel holds the file")
        time.sleep(0.01)


def _read_or_put_aside(folder: Path) -> dict[str, Record]:
    try:
        return _read(folder / FILE)
    except FileNotFoundError:
        return {}
    except ValueError:
        names = itertools.chain(
            [f"{ASIDE}.json"], (f"{ASIDE}_{count}.json" for count in itertools.count(2))
        )
        free = next(folder / name for name in names if not (folder / name).exists())
        os.replace(folder / FILE, free)
        return {}


# --- The file ---------------------------------------------------------------------------------


def _to_text(records: Mapping[str, Record]) -> str:
    exercises = {
        name: {
            "passed": record.passed,
            "checked": record.checked.isoformat(),
            "first_passed": record.first_passed and record.first_passed.isoformat(),
        }
        for name, record in sorted(records.items())
    }
    return json.dumps({"about": ABOUT, "exercises": exercises}, indent=1) + "\n"


def _read(path: Path) -> dict[str, Record]:
    """Read a file of records by exercise.

    Raises
    ------
    OSError
        If it cannot be opened; FileNotFoundError if there is none.
    ValueError
        If it holds anything else.
    """
    with path.open("rb") as file:
        content = file.read(SIZE_LIMIT + 1)
    try:
        if len(content) > SIZE_LIMIT:
            raise ValueError("too large")
        exercises = json.loads(content)["exercises"]
        return {name: _record(data) for name, data in exercises.items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path}: not a file of this kind") from error


def _record(data: dict[str, Any]) -> Record:
    first = data["first_passed"]
    if not isinstance(data["passed"], bool):
        raise ValueError("passed is neither true nor false")
    return Record(
        data["passed"], _moment(data["checked"]), None if first is None else _moment(first)
    )


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("a time without a time zone")
    return moment


# --- Showing ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Standing:
    """Where an exercise stands; one that is open may have passed before."""

    exercise: str
    passed: bool
    first_passed: datetime | None = None

    @property
    def slipped(self) -> bool:
        """Whether it passed before and does not pass now."""
        return self.first_passed is not None and not self.passed

    def __str__(self) -> str:
        if self.slipped:
            return f"{self.exercise} (passed on {_day(self.first_passed)}, not now)"
        return self.exercise


@dataclass(frozen=True)
class LessonProgress:
    """A lesson and its exercises, in the order in which they are met.

    Attributes
    ----------
    lesson : str
        The name of its folder.
    standings : tuple of Standing
        One for each exercise.
    title : str
        What its notebook calls it, "" if that is not at hand.
    """

    lesson: str
    standings: tuple[Standing, ...]
    title: str = ""

    @property
    def count(self) -> str:
        """How many pass, in words."""
        return f"{sum(s.passed for s in self.standings)} of {len(self.standings)}"

    @property
    def open_ones(self) -> str:
        """The numbers and names of those that do not pass."""
        numbered = enumerate(self.standings, 1)
        return ", ".join(f"{number} {s}" for number, s in numbered if not s.passed)

    @property
    def newest(self) -> str:
        """The day on which an exercise passed that had not passed before, the last time."""
        moments = [s.first_passed for s in self.standings if s.first_passed]
        return _day(max(moments)) if moments else ""

    @property
    def row(self) -> tuple[str, str, str, str]:
        """The lesson's line in a table."""
        return (self.title or self.lesson, self.count, self.newest, self.open_ones)


@dataclass(frozen=True)
class Progress:
    """What passes in all lessons; shows as a table and a picture, and prints as text.

    Attributes
    ----------
    lessons : tuple of LessonProgress
        In the order of the course.
    notes : tuple of str
        What could not be read or kept, and what to do.
    """

    lessons: tuple[LessonProgress, ...]
    notes: tuple[str, ...] = ()

    @property
    def closing(self) -> str:
        """How many exercises pass and which one is next, in a sentence or two."""
        every = [(s, lesson) for lesson in self.lessons for s in lesson.standings]
        left = [(s.exercise, lesson.lesson) for s, lesson in every if not s.passed]
        if not left:
            return f"All {len(every)} exercises pass."
        exercise, lesson = left[0]
        passed = len(every) - len(left)
        return f"{passed} of {len(every)} exercises pass. Next: {exercise}, in {lesson}."

    @property
    def words(self) -> str:
        """What the picture shows."""
        standings = [s for lesson in self.lessons for s in lesson.standings]
        text = f"{sum(s.passed for s in standings)} of {len(standings)} exercises pass. "
        text += "Filled circles pass, hollow ones are open"
        return text + (
            "; triangles passed before, not now." if any(s.slipped for s in standings) else "."
        )

    def picture(self) -> Figure:
        """Return a figure with one row of marks a lesson."""
        from hopping import draw

        size = (7.5, 1.6 + 0.47 * len(self.lessons))
        with draw.figure(words=self.words, size=size) as (picture, (ax,)):
            draw_progress(ax, self.lessons)
        return picture

    def __str__(self) -> str:
        rows = [HEAD, *(lesson.row for lesson in self.lessons)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        return "\n".join([*lines, "", self.closing, *self.notes])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        # A notebook's own style would align them on the right, and break "5 of 6". The names of
        # what is open, the last column, may take several lines.
        left, whole = "text-align: left", "text-align: left; white-space: nowrap"
        styles = (whole,) * (len(HEAD) - 1) + (left,)
        head = "".join(f'<th scope="col" style="{whole}">{name}</th>' for name in HEAD)
        body = "".join(
            f'<tr><th scope="row" style="{whole}">{html.escape(first)}</th>'
            + "".join(
                f'<td style="{style}">{html.escape(cell)}</td>'
                for cell, style in zip(cells, styles[1:], strict=True)
            )
            + "</tr>"
            for first, *cells in (lesson.row for lesson in self.lessons)
        )
        closing = "".join(f"<p>{html.escape(line)}</p>" for line in (self.closing, *self.notes))
        return f"<table><tr>{head}</tr>{body}</table>{closing}"

    def _repr_mimebundle_(self, **_kwargs: object) -> dict[str, str]:
        from hopping.draw import picture_bundle

        drawn, _ = picture_bundle(self.picture(), self.words)
        return {"text/plain": str(self), "text/html": self._repr_html_() + drawn["text/html"]}


HEAD = ("lesson", "pass", "newest pass", "still open")


def progress() -> Progress:
    """Show which exercises pass in which lesson, by the latest check of each.

    It reads what checks left in the folder of this notebook and in the folders of the other
    lessons beside it.

    Returns
    -------
    Progress
        Name it last in a cell to see it; `Progress.picture` is the picture alone.
    """
    found: list[tuple[str, Record]] = []
    notes: list[str] = []
    order: list[str] = []
    titles: dict[str, str] = {}
    for folder in _folders(notes):
        found += _read_or_tell(folder, notes).items()
        order += _order_in(folder)
        titles[folder.name] = _title_in(folder)
    found.sort(key=lambda item: item[1].checked)
    records: dict[str, Record] = {}
    for name, record in (*found, *_pending.items()):
        records[name] = _joined(records.get(name), record)
    if not records:
        notes.append("No check has been noted here yet. In a notebook, every check(...) is.")
    if _pending:
        notes.append(
            f"Not kept yet: {', '.join(sorted(_pending))} ({', '.join(_trouble)}). It is "
            "forgotten when this kernel ends, unless a later check can write here."
        )
    return Progress(
        tuple(
            LessonProgress(
                lesson,
                tuple(_standing(name, records.get(name)) for name in names),
                titles.get(lesson, ""),
            )
            for lesson, names in _lessons(order).items()
        ),
        tuple(notes),
    )


def _standing(name: str, record: Record | None) -> Standing:
    return Standing(name, record.passed, record.first_passed) if record else Standing(name, False)


def _lessons(order: Sequence[str]) -> dict[str, list[str]]:
    """Return the names of all exercises by lesson, those in `order` first."""
    # Imported here, because that module calls note_outcome.
    from hopping.checking import load_stored, stored_names

    place = {name: place for place, name in reversed(list(enumerate(order)))}
    lessons: dict[str, list[str]] = {}
    for name in sorted(stored_names(), key=lambda name: place.get(name, len(order))):
        lessons.setdefault(load_stored(name).lesson, []).append(name)
    return dict(sorted(lessons.items()))


def _folders(notes: list[str]) -> Iterator[Path]:
    """Yield the folder of this notebook, then those of the lessons beside it and in it."""
    try:
        here = Path.cwd()
    except OSError:
        notes.append("The folder of this notebook is gone. Open the notebook again where it is.")
        return
    seen = set()
    lessons = _lessons(())
    for folder in (here, *(here.parent / name for name in lessons), *map(here.joinpath, lessons)):
        if folder not in seen and os.path.isdir(folder):  # False where one may not look
            seen.add(folder)
            yield folder


def _read_or_tell(folder: Path, notes: list[str]) -> dict[str, Record]:
    aside = sorted(path.name for path in folder.glob(f"{ASIDE}*.json"))
    if aside:
        notes.append(
            f"{folder.name}: {' and '.join(aside)} could not be read and was put aside; what it "
            "held is not counted. Run the checks of this lesson again, then delete it."
        )
    try:
        return _read(folder / FILE)
    except FileNotFoundError:
        pass
    except OSError as error:
        notes.append(
            f"{folder.name}: {FILE} cannot be read ({error.strerror}), so it is not counted. "
            "Make it readable, or delete it and run the checks of this lesson again."
        )
    except ValueError:
        notes.append(
            f"{folder.name}: {FILE} is damaged, so it is not counted. Run the checks of this "
            f"lesson again: they put it aside as {ASIDE}.json and start a new one."
        )
    return {}


def _order_in(folder: Path) -> list[str]:
    """Return the names of the exercises that the notebooks in a folder check, from the top."""
    return [
        name for text in _notebooks_in(folder) for name in re.findall(r'"check\((\w+)\)"', text)
    ]


def _title_in(folder: Path) -> str:
    """Return the numbered heading of the first notebook in a folder that has one, or ""."""
    found = (re.search(r'"# (\d+ · [^"\\]+)', text) for text in _notebooks_in(folder))
    return next((match[1] for match in found if match), "")


def _notebooks_in(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("*.ipynb")):
        with suppress(OSError):
            yield path.read_text("utf-8", "replace")


def _day(moment: datetime) -> str:
    return f"{moment.astimezone():%Y-%m-%d}"


def draw_progress(ax: Axes, lessons: Sequence[LessonProgress]) -> list[Artist]:
    """Draw one row of marks a lesson: filled passes, hollow is open, a triangle passed before.

    Parameters
    ----------
    ax : Axes
        Flat axes; the first lesson is at the top.
    lessons : sequence of LessonProgress
        Mark k of a row is its exercise k, from 1.

    Returns
    -------
    list of Artist
        The filled marks, the hollow ones and the triangles, as far as there are any, then the
        counts beside the rows.
    """
    from hopping.draw import ROLES, draw_points

    marks = [
        ((place, row), standing)
        for row, lesson in enumerate(lessons)
        for place, standing in enumerate(lesson.standings, 1)
    ]
    artists: list[Artist] = []
    plain = [(at, not s.passed) for at, s in marks if not s.slipped]
    if plain:
        at, hollow = zip(*plain, strict=True)
        artists += draw_points(ax, at, "token", hollow=hollow)
        for artist in artists:  # filled ones as large as hollow ones
            artist.set_markeredgecolor(ROLES["token"].color)
    slipped = [at for at, s in marks if s.slipped]
    if slipped:
        artists += draw_points(ax, slipped, "other", hollow=[True] * len(slipped))
    longest = max((len(lesson.standings) for lesson in lessons), default=0)
    artists += [
        ax.text(longest + 0.6, row, lesson.count, va="center", fontsize=12)
        for row, lesson in enumerate(lessons)
    ]
    names = [textwrap.fill(lesson.title or lesson.lesson, 26) for lesson in lessons]
    ax.set_yticks(range(len(lessons)), names)
    ax.set_xticks(range(1, longest + 1))
    ax.set(
        xlim=(0.4, longest + 1.7),
        ylim=(len(lessons) - 0.4, -0.6),
        xlabel="exercise, in the order of the lesson",
    )
    return artists
