"""Make the notebooks of a lesson: the instructor's source and the solved, executed one."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from autograder.built import digest
from autograder.exercise import Exercise
from autograder.lesson_text import Cell, Lesson, after_solution

SCHEMA_VERSION = 3  # of nbgrader's cell metadata
CELL_SECONDS = 300  # what one cell of a solution may take before the build gives up

# Fixed, so that the version of Python that built a notebook does not show in it.
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {
        "codemirror_mode": {"name": "ipython", "version": 3},
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "nbconvert_exporter": "python",
        "pygments_lexer": "ipython3",
    },
}
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"

# Runs in the kernel before the first cell. A picture refines itself for as long as a learner likes
# to wait; here it takes the time it needs, so that its bytes do not depend on the processor.
STARTUP = """
try:
    from hopping.explore import view
    view.STILL = float("inf")
    del view
except ModuleNotFoundError:
    pass
"""

# What differs from run to run: memory addresses, random identifiers.
VARIES = re.compile(
    r"\b0x[0-9a-f]{6,}\b|\b[0-9a-f]{32}\b|\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"
)


def dump(nb: NotebookNode) -> bytes:
    """Return a notebook's file: keys sorted, one line a line of code."""
    nbformat.validate(nb)
    return (nbformat.writes(nb, version=4).rstrip("\n") + "\n").encode()


# --- Source ------------------------------------------------------------------------------------


def source_notebook(lesson: Lesson, exercises: Mapping[str, Exercise]) -> NotebookNode:
    """Return the instructor's notebook: solutions, markers and hidden exams in it.

    Cell ids come from the lesson and the cells' own names, so that they stay when a cell moves.
    """
    cells = []
    for cell in lesson.cells:
        if cell.checks:
            label, options = f"check_{cell.checks}", {"grade": True, "points": 0}
            cells.append(_cell(lesson, cell, cell.source.strip(), {"grade_id": label, **options}))
            cells.append(_exam_cell(lesson, exercises[cell.checks]))
        else:
            cells.append(_cell(lesson, cell, cell.source, cell.options))
    for cell in cells:
        if cell.cell_type == "code":
            # Run All goes on to the end, past what is not written or not right yet.
            cell.metadata["tags"] = [*cell.metadata.get("tags", ()), "raises-exception"]
    return _notebook(cells)


def _notebook(cells: list[NotebookNode]) -> NotebookNode:
    return nbformat.from_dict(
        {"cells": cells, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}
    )


def _cell(lesson: Lesson, cell: Cell, source: str, options: Mapping[str, Any]) -> NotebookNode:
    metadata: dict[str, Any] = {}
    if options:
        metadata["nbgrader"] = _complete(options)
    if cell.tags:
        metadata["tags"] = cell.tags
    node = {
        "cell_type": cell.kind,
        "id": f"{lesson.notebook}-{cell.label}",
        "metadata": metadata,
        "source": source,
    }
    if cell.kind == "code":
        node |= {"execution_count": None, "outputs": []}
    return nbformat.from_dict(node)


def _exam_cell(lesson: Lesson, exercise: Exercise) -> NotebookNode:
    parts = ", ".join(f"{group.title} {100 * group.weight:g} %" for group in exercise.groups)
    points = f"{exercise.points:g} point{'' if exercise.points == 1 else 's'}"
    worth = textwrap.fill(
        f"{points}: {parts}.", width=88, initial_indent="# ", subsequent_indent="# "
    )
    comment = (
        "# Nothing to do here: when the course is graded, hidden cases run in this cell.\n" + worth
    )
    source = (
        f"{comment}\n"
        "### BEGIN HIDDEN TESTS\n"
        "from hopping.exam import examine\n\n"
        f"examine({exercise.name})\n"
        "### END HIDDEN TESTS"
    )
    cell = Cell("code", source, 0, 0, f"exam_{exercise.name}")
    points = int(exercise.points) if float(exercise.points).is_integer() else exercise.points
    options = {"grade_id": cell.label, "grade": True, "points": points}
    return _cell(lesson, cell, source, options)


def _complete(options: Mapping[str, Any]) -> dict[str, Any]:
    """Fill in what nbgrader wants to see in every cell it knows."""
    grade, solution, task = (bool(options.get(key)) for key in ("grade", "solution", "task"))
    # What a learner must not edit is restored when it is graded: tests, tasks, locked cells.
    locked = task or (grade and not solution) or bool(options.get("locked"))
    return {
        **options,
        "schema_version": SCHEMA_VERSION,
        "grade": grade,
        "solution": solution,
        "task": task,
        "locked": locked and not solution,
    }


# --- Solutions ---------------------------------------------------------------------------------


def solved_notebook(lesson: Lesson) -> NotebookNode:
    """Return the notebook as a learner would hand in who got all right, not executed yet.

    Markers, hidden tests, exam cells, the ``raise NotImplementedError`` of solved stubs and
    nbgrader's data are not in it.
    """
    cells = []
    for cell in lesson.cells:
        lines = cell.source.split("\n")
        if cell.region:
            drop = {cell.region.begin, cell.region.end}
            if cell.region.what == "HIDDEN TESTS":
                drop |= set(range(cell.region.begin, cell.region.end))
            elif cell.kind == "code":
                drop.add(after_solution(cell))
            lines = [line for i, line in enumerate(lines) if i not in drop]
        source = "\n".join(lines).strip("\n")
        cells.append(_cell(lesson, cell, source, {}))
    return _notebook(cells)


async def execute(
    nb: NotebookNode, lesson: Lesson, folder: Path, packages: Path
) -> list[tuple[Cell, str]]:
    """Run a solved notebook in a kernel of its own and keep what does not vary.

    Parameters
    ----------
    nb : NotebookNode
        From `solved_notebook`; its outputs are filled in.
    lesson : Lesson
        Where its cells come from, one to one.
    folder : Path
        An empty folder to run in.
    packages : Path
        Where the kernel finds `hopping` first.

    Returns
    -------
    list of (Cell, str)
        What went wrong and in which cell: errors, warnings, and outputs that another run or
        machine would not repeat.
    """
    startup = folder / ".ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "patience.py").write_text(STARTUP)
    started = 0

    def note_start(cell: NotebookNode, cell_index: int) -> None:
        nonlocal started
        started = cell_index

    client = NotebookClient(
        nb,
        kernel_name="python3",
        timeout=CELL_SECONDS,
        allow_errors=True,
        record_timing=False,
        store_widget_state=False,
        coalesce_streams=True,
        on_cell_start=note_start,
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(folder)}},
    )
    try:
        await client.async_execute(env=_environment(folder, packages))
    except CellTimeoutError:
        return [(lesson.cells[started], f"it ran for more than {CELL_SECONDS} s")]
    except DeadKernelError:
        return [(lesson.cells[started], "the kernel died")]
    nb.metadata = nbformat.from_dict(METADATA)
    return [
        (cell, reason)
        for cell, node in zip(lesson.cells, nb.cells, strict=True)
        if node.cell_type == "code"
        for reason in _settle(node, [str(folder), str(packages)])
    ]


def _environment(folder: Path, packages: Path) -> dict[str, str]:
    """Return an environment in which nothing of the author's own set-up shows in an output."""
    matplotlib = find_spec("matplotlib")
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(packages), os.environ.get("PYTHONPATH", "")]),
        "PYTHONHASHSEED": "0",
        "IPYTHONDIR": str(folder / ".ipython"),
        "MATPLOTLIBRC": str(Path(matplotlib.origin).parent / "mpl-data" / "matplotlibrc"),
    }


def _settle(cell: NotebookNode, private: list[str]) -> Iterator[str]:
    """Drop what is random from a cell's outputs; yield what makes them unfit to be kept."""
    cell.metadata.pop("execution", None)
    for output in cell.outputs:
        if output.output_type == "error":
            yield f"{output.ename}: {output.evalue}"
            continue
        if output.output_type == "stream":
            texts = [output.text]
            if output.name == "stderr":
                yield f"it writes to stderr: {output.text.strip().splitlines()[-1]}"
                continue
        else:
            # Its model's id is random. The view's picture and text stay.
            output.data.pop(WIDGET_VIEW, None)
            texts = [
                text
                for kind, text in output.data.items()
                if isinstance(text, str) and (kind.startswith("text/") or kind == "image/svg+xml")
            ]
        for text in texts:
            if match := VARIES.search(text):
                yield f"it shows {match.group()}, which differs from run to run"
            elif any(path in text for path in private):
                yield "it shows a path of this machine"


# --- What a solved notebook was built from ----------------------------------------------------


def sign(nb: NotebookNode, built_from: str) -> None:
    """Note in a notebook what it was built from, and what it holds."""
    nb.metadata["build"] = {"from": built_from, "content": _content(nb)}


def is_current(path: Path, built_from: str) -> bool:
    """Whether a signed notebook was built from this and has not been edited since."""
    try:
        nb = nbformat.v4.reads(path.read_text("utf-8"))
        return nb.metadata.pop("build") == {"from": built_from, "content": _content(nb)}
    except (OSError, ValueError, KeyError, AttributeError, nbformat.ValidationError):
        return False


def _content(nb: NotebookNode) -> str:
    return digest({"notebook": dump(nb)})
