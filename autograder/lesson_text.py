"""Read a lesson's text as cells, and find, with file, line and reason, what is wrong with it.

A lesson is a Python file in jupytext's percent format. What a lesson must keep to towards the
course's exercises and the other lessons is in `autograder.lesson_rules`.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import jupytext

FILE_NAME = re.compile(r"\d\d_[a-z][a-z0-9_]*\.py")
HEADER = re.compile(r"# %%( |$)")
# Jupytext takes some of these for a cell and others, like `# %%[markdown]`, for a comment: then a
# section would vanish in the cell above it.
LIKE_HEADER = re.compile(r"\s*#+\s*%%")
LABEL = re.compile(r"[A-Za-z0-9_-]+")
CHECK = re.compile(r"check\((\w+)\)")

NBGRADER_KEYS = {
    "grade_id": str,
    "grade": bool,
    "solution": bool,
    "locked": bool,
    "task": bool,
    "points": (int, float),
}
FILLED_IN = {"schema_version", "cell_type", "checksum"}

MARKERS = {
    f"### {side} {what}": (side, what)
    for what in ("SOLUTION", "HIDDEN TESTS", "MARK SCHEME")
    for side in ("BEGIN", "END")
}
LIKE_MARKER = re.compile(
    r"\b(BEGIN|END|START|STOP)[\W_]*(SOLUTION|HIDDEN[\W_]*TEST|MARK(ING)?[\W_]*SCHEME)"
)
# What nbgrader itself looks for, anywhere in a line and in any kind of cell.
NBGRADER_READS = re.compile(r"(BEGIN|END) (SOLUTION|HIDDEN TESTS|MARK SCHEME)|AUTOTEST")


@dataclass(frozen=True, order=True)
class Problem:
    """One reason not to build: where, why, and what to do."""

    path: str
    line: int
    reason: str
    advice: str

    def __str__(self) -> str:
        """Return ``file:line: reason. What to do.``."""
        return f"{self.path}:{self.line}: {self.reason}. {self.advice}"


@dataclass(frozen=True)
class Region:
    """Lines of a cell between a pair of markers; `begin` and `end` index the marker lines."""

    what: str
    begin: int
    end: int


@dataclass(frozen=True)
class Cell:
    """One cell of a lesson.

    Attributes
    ----------
    kind : str
        ``"code"`` or ``"markdown"``.
    source : str
        What the notebook's cell holds, markers included.
    line, first : int
        Where the header and the first line of `source` stand in the file, counted from 1.
    label : str
        The grade_id, the name, or the last named cell's name with a count: unique in the lesson.
    options : dict
        What the header says under ``nbgrader``.
    tags : list of str
        What the header says under ``tags``.
    region : Region or None
        The solution, hidden tests or mark scheme in it.
    """

    kind: str
    source: str
    line: int
    first: int
    label: str
    options: dict[str, Any] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)
    region: Region | None = None

    @property
    def checks(self) -> str | None:
        """The exercise this cell checks, if it is a check cell."""
        match = CHECK.fullmatch(self.source.strip()) if self.kind == "code" else None
        return match.group(1) if match else None

    @property
    def solution(self) -> bool:
        """Whether the learner writes in this cell."""
        return bool(self.options.get("solution"))

    def hidden(self) -> list[str]:
        """Return the lines between the markers."""
        lines = self.source.split("\n")
        return lines[self.region.begin + 1 : self.region.end] if self.region else []

    def visible(self) -> list[tuple[int, str]]:
        """Return (line number in the file, line) of what a release shows."""
        lines = list(enumerate(self.source.split("\n"), self.first))
        if self.region:
            del lines[self.region.begin : self.region.end + 1]
        return lines


@dataclass(frozen=True)
class Lesson:
    """A lesson as text: where it is, what its assignment and notebook are called, its cells."""

    path: str
    name: str
    cells: tuple[Cell, ...]
    text: str

    @property
    def notebook(self) -> str:
        """The notebook's name: the lesson's without its number."""
        return notebook_name(self.name)


def notebook_name(assignment: str) -> str:
    """Return the notebook's name of an assignment: ``lse_gradient`` of ``01_lse_gradient``."""
    return assignment.partition("_")[2]


def read_lesson(path: Path, shown: str) -> tuple[Lesson | None, list[Problem]]:
    """Read one lesson and find the problems that it has by itself."""
    if not FILE_NAME.fullmatch(path.name):
        return None, [
            Problem(
                shown,
                1,
                "a lesson's file is named like 01_lse_gradient.py",
                "Rename it, or move it out of the lessons' folder.",
            )
        ]
    try:
        text = path.read_text("utf-8").replace("\r\n", "\n")
    except OSError as error:
        return None, [
            Problem(shown, 1, f"cannot be read: {error.strerror}", "Check who owns the file.")
        ]
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        return None, [Problem(shown, line, "this is not UTF-8 text", "Save the file as UTF-8.")]
    problems: list[Problem] = []
    cells = tuple(_cells(text, shown, problems))
    lesson = Lesson(shown, path.stem, cells, text)
    if not cells and not problems:
        problems.append(Problem(shown, 1, "no cell in it", "Begin with a line `# %% [markdown]`."))
    for cell in cells:
        lines = range(cell.line, cell.first + cell.source.count("\n") + 1)
        for check in (_check_keys, _check_options, _check_region):
            # What only follows from a problem of the same cell would bury it.
            if not any(problem.line in lines for problem in problems):
                problems += check(cell, shown)
    problems += _check_names(lesson)
    return lesson, problems


# --- From text to cells ------------------------------------------------------------------------


def _cells(text: str, shown: str, problems: list[Problem]) -> Iterator[Cell]:
    """Yield the cells; add to `problems` what cannot be one."""
    lines = text.split("\n")
    starts = [i for i, line in enumerate(lines) if HEADER.match(line)]
    for i in _head_without_metadata(lines[: starts[0] if starts else len(lines)]):
        problems.append(
            Problem(shown, i + 1, "text before the first cell", "Put a `# %%` line above it.")
        )
        break
    last, count = "", 0
    for i, line in enumerate(lines):
        if LIKE_HEADER.match(line) and not HEADER.match(line):
            problems.append(
                Problem(
                    shown,
                    i + 1,
                    f"{line.strip()[:30]!r} is nearly a cell's first line",
                    "Write `# %%` for code or `# %% [markdown]` for text, at the start of the "
                    "line; only a space may follow. Begin a comment in another way.",
                )
            )
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        chunk = lines[start:end]
        nb = jupytext.reads("\n".join(chunk), fmt="py:percent")
        if len(nb.cells) != 1:  # a header-like line, reported above
            continue
        (read,) = nb.cells
        body = chunk[1:]
        metadata = dict(read.metadata)
        if read.cell_type not in ("code", "markdown"):
            metadata["cell_type"] = read.cell_type
        problems += _check_header(metadata, chunk[0], shown, start + 1)
        options = metadata.get("nbgrader")
        options = options if isinstance(options, dict) else {}
        label = options.get("grade_id") or metadata.get("name")
        check = CHECK.fullmatch(read.source.strip()) if read.cell_type == "code" else None
        if check:
            label = f"check_{check.group(1)}"
        if isinstance(label, str) and label:
            last, count = label, 1
        else:
            if not last:
                problems.append(
                    Problem(
                        shown,
                        start + 1,
                        "the first cell has no name",
                        'Name it in its header: `# %% [markdown] name="challenge"`.',
                    )
                )
            count += 1
            label = f"{last or 'start'}-{count}"
        problems += (
            _check_python("\n".join(body), shown, start + 2, "Correct it.")
            if read.cell_type == "code"
            else _check_markdown(body, shown, start + 2)
        )
        # A cell written as a string has its text one line further down than one of comments.
        quoted = "cell_marker" in metadata and body and len(body[0].strip()) <= 4
        cell = Cell(
            read.cell_type,
            read.source.rstrip("\n"),
            start + 1,
            start + 2 + bool(quoted),
            str(label),
            options,
            metadata.get("tags") or [],
        )
        region, found = _find_region(cell, shown)
        problems += found
        yield Cell(**{**vars(cell), "region": region})


def _head_without_metadata(lines: list[str]) -> Iterator[int]:
    """Yield the indices of what stands above the first cell; jupytext's own header may."""
    in_header = False
    for i, line in enumerate(lines):
        if line.rstrip() == "# ---":
            in_header = not in_header
        elif line.strip() and not (in_header and line.startswith("#")):
            yield i


def _check_header(
    metadata: dict[str, Any], header: str, shown: str, line: int
) -> Iterator[Problem]:
    known = {"name", "nbgrader", "tags", "cell_marker", "lines_to_next_cell"}
    unknown = set(metadata) - known
    if unknown:
        yield Problem(
            shown,
            line,
            f"this header cannot be read: {header[5:]!r}",
            'Write [markdown] or nothing, then name="…", nbgrader={"key": value} or tags=["…"], '
            "in JSON.",
        )
    if "nbgrader" in metadata and not isinstance(metadata["nbgrader"], dict):
        yield Problem(
            shown, line, "nbgrader is not an object", 'Write nbgrader={"grade_id": "…", …}.'
        )
    name = metadata.get("name")
    if name is not None and not (isinstance(name, str) and LABEL.fullmatch(name)):
        yield Problem(
            shown,
            line,
            f"{name!r} is no cell name",
            "Use letters, digits, _ and -.",
        )
    tags = metadata.get("tags", [])
    if not (isinstance(tags, list) and all(isinstance(tag, str) for tag in tags)):
        yield Problem(shown, line, "tags is not a list of texts", 'Write tags=["one", "two"].')


def _check_python(source: str, shown: str, first: int, advice: str) -> Iterator[Problem]:
    """Compile code whose first line is the file's line number `first`."""
    try:
        with warnings.catch_warnings():
            # A learner would see the warning, for example of "\d", each time the cell runs.
            # Python 3.11 calls it a DeprecationWarning.
            warnings.simplefilter("error", SyntaxWarning)
            warnings.simplefilter("error", DeprecationWarning)
            flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
            compile("\n" * (first - 1) + source, "lesson", "exec", flags, dont_inherit=True)
    except SyntaxError as error:
        yield Problem(shown, error.lineno or first, f"not Python: {error.msg}", advice)
    except ValueError as error:
        yield Problem(shown, first, f"not Python: {error}", advice)


def _check_markdown(body: list[str], shown: str, first: int) -> Iterator[Problem]:
    if any(line.startswith(('"""', 'r"""')) for line in body[:1]):
        yield from _check_python("\n".join(body), shown, first, "Close the text as it began.")
        return
    for i, line in enumerate(body):
        if line.strip() and not line.startswith("#"):
            yield Problem(
                shown,
                first + i,
                "a line of a markdown cell that is not a comment",
                "Start it with `# `, or start a code cell above it with `# %%`.",
            )


# --- Names and metadata ------------------------------------------------------------------------


def _check_names(lesson: Lesson) -> Iterator[Problem]:
    labels = [(cell.label, cell) for cell in lesson.cells]
    labels += [(f"exam_{cell.checks}", cell) for cell in lesson.cells if cell.checks]
    seen: dict[str, Cell] = {}
    for label, cell in labels:
        if label in seen:
            what = "grade_id" if "grade_id" in cell.options or cell.checks else "cell name"
            yield Problem(
                lesson.path,
                cell.line,
                f"the {what} {label!r} is taken by the cell at line {seen[label].line}",
                f"Give each cell its own {what}.",
            )
        seen.setdefault(label, cell)
        if len(f"{lesson.notebook}-{label}") > 64:
            yield Problem(lesson.path, cell.line, f"the name {label!r} is too long", "Shorten it.")


def _check_keys(cell: Cell, shown: str) -> Iterator[Problem]:
    """Check the names and the kinds of values of what a header says under nbgrader."""

    def problem(reason: str, advice: str) -> Problem:
        return Problem(shown, cell.line, reason, advice)

    for key, value in cell.options.items():
        if key in FILLED_IN:
            yield problem(f"the build fills in {key!r}", "Take it out.")
        elif key not in NBGRADER_KEYS:
            yield problem(
                f"nbgrader does not know the key {key!r}",
                f"It knows {', '.join(NBGRADER_KEYS)}; keep your own keys outside of it.",
            )
        elif not isinstance(value, NBGRADER_KEYS[key]) or (
            key == "points" and (isinstance(value, bool) or value < 0)
        ):
            yield problem(f"{value!r} is no value for {key!r}", "Correct it.")


def _check_options(cell: Cell, shown: str) -> Iterator[Problem]:
    """Check that what a header says under nbgrader fits together, before nbgrader stumbles."""

    def problem(reason: str, advice: str) -> Problem:
        return Problem(shown, cell.line, reason, advice)

    options = cell.options
    grade_id = options.get("grade_id")
    grade, solution, task = (bool(options.get(key)) for key in ("grade", "solution", "task"))
    if cell.checks and options:
        yield problem("the build fills in a check cell's nbgrader data", "Take it out.")
        return
    if options and not (isinstance(grade_id, str) and LABEL.fullmatch(grade_id)):
        yield problem(
            "no usable grade_id",
            "Add one of letters, digits, _ and -, unique in the lesson.",
        )
    if options and not (grade or solution or task or options.get("locked")):
        yield problem(
            "a grade_id and nothing to do with it",
            "Add grade, solution, task or locked, or drop it.",
        )
    if (grade or task) != ("points" in options):
        yield problem(
            "graded without points" if grade or task else "points but not graded",
            'Give both "points" and "grade" (or "task"), or neither.',
        )
    if task and (grade or solution or cell.kind == "code"):
        yield problem("a task is a markdown cell by itself", "Drop grade and solution.")
    if cell.kind == "markdown" and grade != solution:
        yield problem(
            "a markdown cell that is graded or a solution, but not both",
            'nbgrader wants "grade": true, "solution": true and "points" (0 will do) for a written '
            "answer; text without an answer has none of them.",
        )


# --- Markers -----------------------------------------------------------------------------------


def like_marker(line: str, kind: str) -> bool:
    """Whether a line is, or looks like, a marker of a solution, hidden tests or mark scheme."""
    if NBGRADER_READS.search(line):
        return True
    match = re.match(r"\s*#+(.*)", line)
    if kind == "code":
        comment = re.search(r"#(.*)", line)
        if comment and LIKE_MARKER.search(comment.group(1).upper()):
            return True
        # Three hashes in code are for markers alone, so that no slip in one goes unseen.
        if line.lstrip().startswith("###"):
            return True
    if match is None:
        return False
    words = " ".join(re.findall(r"[A-Z]+", match.group(1).upper()))
    words = re.sub("^START", "BEGIN", re.sub("^STOP", "END", words))
    return any(
        SequenceMatcher(None, words, f"{side} {what}").ratio() >= 0.88
        for side, what in MARKERS.values()
    )


def _find_region(cell: Cell, shown: str) -> tuple[Region | None, list[Problem]]:
    """Return the one marked region of a cell, and what is wrong with its markers."""
    found: list[tuple[int, str, str]] = []
    problems = []
    lines = cell.source.split("\n")
    for i, line in enumerate(lines):
        if line.strip() in MARKERS:
            found.append((i, *MARKERS[line.strip()]))
        elif like_marker(line, cell.kind):
            problems.append(
                Problem(
                    shown,
                    cell.first + i,
                    f"{line.strip()[:40]!r} looks like a marker and is none",
                    f"Markers are exactly {', '.join(MARKERS)}, alone on a line."
                    if cell.kind == "markdown"
                    else f"Markers are exactly {', '.join(MARKERS)}, alone on a line; "
                    "start other comments with one #.",
                )
            )
    if problems:  # the others can only be judged once these are right
        return None, problems
    begin: tuple[int, str] | None = None
    region: Region | None = None
    for i, side, what in found:
        where = cell.first + i
        if region is not None:
            problems.append(
                Problem(
                    shown, where, "a second pair of markers in one cell", "Use one pair a cell."
                )
            )
            break
        if side == "BEGIN" and begin is None:
            begin = (i, what)
        elif side == "END" and begin is not None and begin[1] == what:
            region = Region(what, begin[0], i)
            begin = None
            if indent(lines[i]) != indent(lines[region.begin]):
                problems.append(
                    Problem(
                        shown, where, "END is not indented like its BEGIN", "Indent both alike."
                    )
                )
        else:
            reason = f"### {side} {what} without its partner"
            problems.append(Problem(shown, where, reason, "Write one BEGIN and one END of a kind."))
            break
    else:
        if begin is not None:
            reason = f"### BEGIN {begin[1]} without its END"
            problems.append(
                Problem(shown, cell.first + begin[0], reason, f"Close it with ### END {begin[1]}.")
            )
    return region, problems


def indent(line: str) -> str:
    """Return the white space that a line begins with."""
    return line[: len(line) - len(line.lstrip())]


def after_solution(cell: Cell) -> int | None:
    """Return the index of the line ``raise NotImplementedError`` after a stub's solution."""
    lines = cell.source.split("\n")
    for i in range(cell.region.end + 1, len(lines)):
        if lines[i].strip():
            expected = indent(lines[cell.region.end]) + "raise NotImplementedError"
            return i if re.match(re.escape(expected) + r"\b", lines[i]) else None
    return None


def _check_region(cell: Cell, shown: str) -> Iterator[Problem]:
    """Check that a marked region and its cell are of the same kind, and what is left of a stub."""
    region = cell.region
    where = cell.first + region.begin if region else cell.line
    owner = {
        "SOLUTION": cell.solution,
        "HIDDEN TESTS": bool(cell.options.get("grade")) and not cell.solution,
        "MARK SCHEME": bool(cell.options.get("task")),
    }
    if region and not owner[region.what]:
        header = {
            "SOLUTION": '"solution": true',
            "HIDDEN TESTS": '"grade": true',
            "MARK SCHEME": '"task": true',
        }[region.what]
        yield Problem(
            shown,
            where,
            f"{region.what} markers in a cell that is not meant for them",
            f"Say {header} in the cell's header.",
        )
        return
    if cell.solution and not region:
        if not any(line.strip() in MARKERS for line in cell.source.split("\n")):
            yield Problem(
                shown,
                cell.line,
                "a solution cell without markers",
                "Put the solution between ### BEGIN SOLUTION and ### END SOLUTION.",
            )
        return
    if cell.solution and cell.kind == "code":
        inside_function = bool(indent(cell.source.split("\n")[region.begin]))
        if inside_function and after_solution(cell) is None:
            yield Problem(
                shown,
                cell.first + region.end,
                "a stub without `raise NotImplementedError` after its END SOLUTION",
                "Add it on the next line, indented like the marker.",
            )
        elif not any(line.strip() for line in cell.hidden()):
            yield Problem(shown, where, "an empty solution", "Write it between the markers.")
        else:
            lines = cell.source.split("\n")
            lines[region.begin : region.end + 1] = [""] * (region.end + 1 - region.begin)
            left = re.sub(r"^([%!])", r"# \1", "\n".join(lines), flags=re.MULTILINE)
            advice = "The cell must be whole without its solution, too."
            yield from _check_python(left, shown, cell.first, advice)
