"""Make a release with nbgrader's own tool, and let the gradebook know an assignment's cells."""

from __future__ import annotations

import copy
import json
import logging
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbformat import NotebookNode
from nbgrader.api import MissingEntry
from nbgrader.converters import GenerateAssignment
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import ClearSolutions, ComputeChecksums
from nbgrader.utils import capture_log, is_grade, is_locked, is_solution, is_task

from autograder.course import Course, CourseError, explain_database_error


def release_assignment(course: Course, name: str) -> list[str]:
    """Write ``release/<name>`` from ``source/<name>`` and let the gradebook know its cells.

    Returns
    -------
    list of str
        The files that changed, relative to the course. Empty when all was fresh.

    Raises
    ------
    CourseError
        If there is no such assignment, other files lie in its folder, its notebook cannot be
        read, or the gradebook cannot take it.
    """
    notebooks = read_source(course, name)
    with staging(course) as folder:
        released = generate(course, name, notebooks, folder)
        return install(course, folder, {course.release / name / k: v for k, v in released.items()})


def register(course: Course, name: str) -> bool:
    """Make sure that the gradebook knows an assignment's cells as they are in ``source/<name>``.

    Returns
    -------
    bool
        Whether the gradebook had to be changed. When it knows the cells, this takes a few
        hundredths of a second.

    Raises
    ------
    CourseError
        As `release_assignment`.
    """
    notebooks = read_source(course, name)
    if knows_cells(course, name, notebooks):
        return False
    with staging(course) as folder:
        generate(course, name, notebooks, folder)
    return True


def read_source(course: Course, name: str) -> dict[str, bytes]:
    """Return the notebooks of ``source/<name>`` by file name.

    Raises
    ------
    CourseError
        If there is none, or another file lies there: nbgrader would hand that out.
    """
    folder = course.source / name
    if not folder.is_dir():
        known = sorted(p.name for p in course.source.glob("[!.]*") if p.is_dir())
        raise CourseError(
            f"{folder}: no such assignment. This course has: {', '.join(known) or 'none'}."
        )
    stray = stray_files(folder)
    if stray:
        raise CourseError(
            f"{stray[0]}: only notebooks may lie in {folder}, because nbgrader releases every "
            "file there. Move it elsewhere."
        )
    notebooks = {path.name: path.read_bytes() for path in sorted(folder.glob("[!.]*.ipynb"))}
    if not notebooks:
        raise CourseError(f"{folder}: no notebook in it. Run `autograder build`.")
    return notebooks


def stray_files(folder: Path) -> list[Path]:
    """Return the files of an assignment's folder that are no notebooks in plain sight."""
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
        and (path.suffix != ".ipynb" or path.parent != folder)
    ]


def knows_cells(course: Course, name: str, notebooks: Mapping[str, bytes]) -> bool:
    """Whether the gradebook knows the cells of these notebooks just as they are.

    Raises
    ------
    CourseError
        If cells or notebooks came or went since work was graded: nbgrader keeps grades by cell
        and cannot take that.
    """
    expected = {Path(k).stem: _cells(_read(course, name, k, v)) for k, v in notebooks.items()}
    with course.open_gradebook() as gradebook:
        try:
            assignment = gradebook.find_assignment(name)
        except MissingEntry:
            return False
        known = {notebook.name: _stored_cells(notebook) for notebook in assignment.notebooks}
        graded = bool(assignment.submissions)
    if graded and _names(known) != _names(expected):
        raise CourseError(
            f"{course.gradebook}: it holds grades for {name}, whose graded cells have since been "
            "added or removed. Finish that class first, or move class/ away and start a new one."
        )
    return known == expected


def _names(notebooks: dict[str, dict[str, dict]]) -> dict[str, dict[str, set[str]]]:
    """Return the cells' names alone; these are what nbgrader cannot change under a grade."""
    return {
        name: {kind: set(cells) for kind, cells in kinds.items() if kind != "kernelspec"}
        for name, kinds in notebooks.items()
    }


def _cells(nb: NotebookNode) -> dict[str, dict]:
    """Return what nbgrader's SaveCells would record of a released notebook."""
    cells = [cell for cell in nb.cells if "nbgrader" in cell.metadata]
    named = {cell.metadata.nbgrader.grade_id: cell for cell in cells}

    def scores(wanted: dict[str, NotebookNode]) -> dict[str, tuple[float, str]]:
        return {
            name: (float(cell.metadata.nbgrader.points), cell.cell_type)
            for name, cell in wanted.items()
        }

    return {
        "kernelspec": {"": json.dumps(nb.metadata.get("kernelspec", {}))},
        "grade": scores({name: cell for name, cell in named.items() if is_grade(cell)}),
        "task": scores({name: cell for name, cell in named.items() if is_task(cell)}),
        "solution": {name: None for name, cell in named.items() if is_solution(cell)},
        "source": {
            name: (
                cell.source,
                cell.cell_type,
                is_locked(cell),
                cell.metadata.nbgrader.get("checksum"),
            )
            for name, cell in named.items()
            if is_grade(cell) or is_solution(cell) or is_locked(cell) or is_task(cell)
        },
    }


def _stored_cells(notebook: object) -> dict[str, dict]:
    """Return the same of a notebook in the gradebook."""
    return {
        "kernelspec": {"": notebook.kernelspec},
        "grade": {c.name: (c.max_score, c.cell_type) for c in notebook.grade_cells},
        "task": {c.name: (c.max_score, c.cell_type) for c in notebook.task_cells},
        "solution": {c.name: None for c in notebook.solution_cells},
        "source": {
            c.name: (c.source, c.cell_type, c.locked, c.checksum) for c in notebook.source_cells
        },
    }


def _read(course: Course, name: str, file: str, content: bytes) -> NotebookNode:
    """Return a notebook as nbgrader records it: solutions cleared, checksums set."""
    try:
        nb = nbformat.reads(content.decode("utf-8"), as_version=4)
        config = course.config()
        nb, _ = ClearSolutions(config=config).preprocess(nb, {})
        nb, _ = ComputeChecksums(config=config).preprocess(nb, {})
        return nb
    except Exception as error:
        raise CourseError(
            f"{course.source / name / file}: {type(error).__name__}: {error}. "
            "It is not to be edited by hand; restore it, or run `autograder build`."
        ) from error


def generate(
    course: Course, name: str, notebooks: Mapping[str, bytes], folder: Path
) -> dict[str, bytes]:
    """Let nbgrader make the release of an assignment, outside the course's tree.

    Parameters
    ----------
    course : Course
        Its settings apply, and its gradebook learns the cells if it does not know them.
    name : str
        The assignment.
    notebooks : mapping of str to bytes
        The source notebooks by file name. Nothing else can come into the release.
    folder : Path
        A scratch folder.

    Returns
    -------
    dict of str to bytes
        The released files by name: the same that ``nbgrader generate_assignment`` writes.

    Raises
    ------
    CourseError
        If nbgrader or the gradebook refuses.
    """
    known = knows_cells(course, name, notebooks)
    config = copy.deepcopy(course.config())
    config.CourseDirectory.root = str(folder)
    config.CourseDirectory.assignment_id = name
    config.SaveCells.enabled = not known
    directory = CourseDirectory(config=config)
    source = Path(directory.format_path(directory.source_directory, ".", name))
    source.mkdir(parents=True, exist_ok=True)
    for file, content in notebooks.items():
        (source / file).write_bytes(content)
    tool = GenerateAssignment(coursedir=directory, config=config, no_database=known, force=True)
    level = tool.log.level
    tool.log.setLevel(logging.ERROR)
    try:
        result = capture_log(tool)
    finally:
        tool.log.setLevel(level)
    if not result["success"]:
        if result["error"].rstrip().endswith("KeyboardInterrupt"):  # capture_log swallows it
            raise KeyboardInterrupt
        raise CourseError(_explain(directory.db_url, name, result))
    release = Path(directory.format_path(directory.release_directory, ".", name))
    return {
        path.relative_to(release).as_posix(): path.read_bytes()
        for path in sorted(release.rglob("*"))
        if path.is_file()
    }


def _explain(db_url: str, name: str, result: dict[str, str]) -> str:
    """Find the one line that matters in what nbgrader logged."""
    text = result.get("log", "") + result["error"]
    errors = re.findall(r"^([\w.]+(?:Error|Exception|Interrupt)): (.*)$", text, re.MULTILINE)
    kind, message = errors[0] if errors else ("error", text.strip().splitlines()[-1])
    if kind.startswith(("sqlite3.", "sqlalchemy.", "psycopg")):
        return explain_database_error(db_url, message)
    return f"source/{name}: nbgrader cannot release it: {message} ({kind})."


# --- Writing -----------------------------------------------------------------------------------


@contextmanager
def staging(course: Course) -> Iterator[Path]:
    """Give a scratch folder on the course's own disk, gone at the end."""
    try:
        scratch = TemporaryDirectory(dir=course.root, prefix=".build-")
    except OSError as error:
        raise CourseError(
            f"{course.root}: cannot write here: {error.strerror}. "
            "Check who owns the folder and that its disk has room."
        ) from error
    with scratch as folder:
        yield Path(folder)


def install(course: Course, scratch: Path, files: Mapping[Path, bytes]) -> list[str]:
    """Write files whose content differs, each one whole or not at all.

    All are written beside the course first, so that a full disk is met before anything changed.

    Returns
    -------
    list of str
        The files that changed, relative to the course's root.
    """
    changed = [path for path, content in files.items() if not _holds(path, content)]
    path = scratch
    try:
        for i, path in enumerate(changed):
            path.parent.mkdir(parents=True, exist_ok=True)
            (scratch / f"new-{i}").write_bytes(files[path])
        for i, path in enumerate(changed):
            os.replace(scratch / f"new-{i}", path)
    except OSError as error:
        raise CourseError(
            f"{path}: cannot be written: {error.strerror}. "
            "Check who owns the folder and that its disk has room, then run the command again."
        ) from error
    return [path.relative_to(course.root).as_posix() for path in changed]


def _holds(path: Path, content: bytes) -> bool:
    return path.is_file() and path.read_bytes() == content
