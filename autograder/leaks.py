"""Find what belongs to the instructor in what a learner gets: a release, a package, a wheel."""

from __future__ import annotations

import ast
import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import nbformat

from autograder.course import Course
from autograder.lesson_rules import INSTRUCTORS_CODE, compact, fragments
from autograder.lesson_text import MARKERS

REFERENCE = Path(__file__).parent / "reference"
# A body this short (white space not counted) may well be written twice by chance.
TELLING_BODY = 30


def leaks(course: Course, *paths: Path | str) -> list[str]:
    """Return what of solutions, references and hidden tests is found in files for learners.

    Parameters
    ----------
    course : Course
        The solutions looked for are those in its ``source/``.
    *paths : Path or str
        Files, folders, wheels or other zip files.

    Returns
    -------
    list of str
        ``file: reason`` for each find; empty when nothing leaks.
    """
    notebooks = [path.read_bytes() for path in sorted(course.source.glob("[!.]*/[!.]*.ipynb"))]
    secrets = solution_secrets(notebooks)
    return [
        found
        for path in paths
        for name, content in _files(Path(path))
        for found in leaks_in(name, content, secrets)
    ]


def solution_secrets(notebooks: Iterable[bytes]) -> dict[str, str]:
    """Return the telling parts of all solutions, without white space, and whose they are."""
    secrets = {}
    for content in notebooks:
        nb = nbformat.v4.reads(content.decode("utf-8"))
        for cell in nb.cells:
            lines = [line.strip() for line in cell.source.split("\n")]
            if "### BEGIN SOLUTION" not in lines:
                continue
            begin, end = lines.index("### BEGIN SOLUTION"), lines.index("### END SOLUTION")
            stub = lines[end + 1 : end + 2] != [] and lines[end + 1].startswith("raise Not")
            for part in fragments(lines[begin + 1 : end], stub=stub):
                secrets[part] = cell.metadata.nbgrader.grade_id
    return secrets


def leaks_in(name: str, content: bytes, secrets: Mapping[str, str]) -> Iterator[str]:
    """Yield ``name: reason`` for what one file gives away.

    Parameters
    ----------
    name : str
        How to call the file.
    content : bytes
        What is in it. Files that are no text hold nothing that is looked for.
    secrets : mapping of str to str
        From `solution_secrets`.
    """
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return
    if name.endswith(".ipynb"):
        cells = nbformat.v4.reads(text).cells
        text = "\n".join(cell.source for cell in cells)
        if any(cell.get("outputs") for cell in cells):
            yield f"{name}: it holds outputs"
        if match := INSTRUCTORS_CODE.search(text):
            yield f"{name}: it holds the instructor's code, {match.group()!r}"
    elif name.endswith(".json"):
        text = " ".join(_strings(json.loads(text)))
    if "autograder/" in name:
        yield f"{name}: a file of the instructors' package"
    if "autograder.reference" in text:
        yield f"{name}: it names the reference"
    for line in text.split("\n"):
        if line.strip().lstrip("# ") in {marker.lstrip("# ") for marker in MARKERS}:
            yield f"{name}: it holds the marker {line.strip()!r}"
    bare = compact(text)
    for part, owner in secrets.items():
        if part in bare:
            yield f"{name}: it shows part of the solution of {owner!r}"
    if name.endswith(".py"):
        code = _normal(text)
        for function, body in _references():
            if body in code:
                yield f"{name}: it holds the reference {function!r}"


def _files(path: Path) -> Iterator[tuple[str, bytes]]:
    if path.is_dir():
        for inner in sorted(path.rglob("*")):
            if inner.is_file() and "__pycache__" not in inner.parts:
                yield inner.as_posix(), inner.read_bytes()
    elif zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                yield f"{path}/{name}", archive.read(name)
    else:
        yield path.as_posix(), path.read_bytes()


def _strings(data: object) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict | list):
        for value in data.values() if isinstance(data, dict) else data:
            yield from _strings(value)


@cache
def _references() -> tuple[tuple[str, str], ...]:
    """Return the name and the body of every public function of the reference."""
    return tuple(_bodies())


def _bodies() -> Iterator[tuple[str, str]]:
    for path in sorted(REFERENCE.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
                continue
            body = node.body[1:] if ast.get_docstring(node) else node.body
            written = compact("\n".join(ast.unparse(statement) for statement in body))
            if len(written) >= TELLING_BODY:
                yield f"{path.stem}.{node.name}", written


def _normal(text: str) -> str:
    """Return code without comments, white space and differences of quoting."""
    try:
        return compact(ast.unparse(ast.parse(text)))
    except SyntaxError:
        return compact(text)
