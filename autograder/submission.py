"""Read what a student handed in, whatever state it is in, and put it into the lesson's notebook.

A submission is never repaired. What the student wrote is taken out of it and put into the source
notebook, so that a copied, deleted, moved or edited cell needs no treatment of its own.
"""

from __future__ import annotations

import ast
import codecs
import copy
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograder.exercises import load
from autograder.printable import printable

SIZE_LIMIT = 25 << 20
CODE_LIMIT = 1 << 20
CELL_LIMIT = 2000
KINDS = ("code", "markdown", "raw")
SOLUTION = re.compile(r"^[^\n]*### BEGIN SOLUTION.*?### END SOLUTION[^\n]*\n?", re.M | re.S)
HIDDEN = re.compile(
    r"^[^\n]*### BEGIN (HIDDEN TESTS|MARK SCHEME).*?### END \1[^\n]*\n?", re.M | re.S
)
WRITE_HERE = "*Write your answer here.*"
MARKS = ("points", "grade", "solution", "locked", "task")

# What else is handed in as a notebook by mistake, by its first bytes.
OTHER_FILES = (
    (b"PK\x03\x04", "a ZIP archive"),
    (b"%PDF", "a PDF file"),
    (b"\x1f\x8b", "a compressed file"),
    (b"Rar!", "a RAR archive"),
    (b"<!doctype html", "a web page"),
    (b"<html", "a web page"),
)


class NotGradable(Exception):
    """A submission that cannot be graded; the message says why, in plain words.

    One that ends with a full stop also says what to do; otherwise another file is needed.
    """


@dataclass(frozen=True)
class Extra:
    """A cell that the lesson does not have: the student's own.

    Attributes
    ----------
    after : int
        Index of the lesson's cell that it follows, -1 at the top.
    kind : str
        "code", "markdown" or "raw".
    source : str
        Its text.
    attachments : dict
        Pictures pasted into a text cell.
    """

    after: int
    kind: str
    source: str
    attachments: dict[str, Any]


@dataclass(frozen=True)
class Submission:
    """What a student wrote in one lesson.

    Attributes
    ----------
    answers : dict
        By index of the lesson's cell: what the student has there instead.
    missing : tuple of int
        Indices of the lesson's answer cells that are not in the submission.
    extra : tuple of Extra
        The student's own cells, in order.
    attachments : dict
        By index: pictures pasted into an answer.
    notices : tuple of str
        What was found and restored, in plain words.
    """

    answers: dict[int, str]
    missing: tuple[int, ...]
    extra: tuple[Extra, ...]
    attachments: dict[int, dict[str, Any]]
    notices: tuple[str, ...]


@dataclass(eq=False)  # two cells with the same text are still two
class _Cell:
    kind: str
    source: str
    grade_id: str | None
    cell_id: str | None
    marks: dict[str, Any]
    attachments: dict[str, Any]
    slot: int | None = None
    _bare_of: tuple[str, str] = ("", "")

    @property
    def bare(self) -> str:
        """Its text as it is compared; made once, because it is compared with every slot."""
        if self._bare_of[0] is not self.source:
            self._bare_of = (self.source, _bare(self.source))
        return self._bare_of[1]


def choose_file(
    files: Mapping[str, bytes], wanted: str, source: NotebookNode
) -> tuple[bytes, tuple[str, ...]]:
    """Return the file that holds this lesson, and a notice if it has another name.

    Parameters
    ----------
    files : mapping of str to bytes
        The files that were handed in, by name.
    wanted : str
        The name that the file should have.
    source : NotebookNode
        The lesson's source notebook.

    Raises
    ------
    NotGradable
        If none of them can only be this lesson.
    """
    if wanted in files:
        return files[wanted], ()
    if not files:
        raise NotGradable("no file was handed in")
    fitting = [name for name, data in sorted(files.items()) if _is_of_lesson(data, source)]
    if len(fitting) == 1:
        notice = f"The file {wanted} was handed in as {_names(fitting[0])}."
        return files[fitting[0]], (notice,)
    if fitting:
        raise NotGradable(
            f"there is no file {wanted}, and more than one could be it: "
            f"{_names(', '.join(fitting))}"
        )
    if len(files) == 1:
        # The reason why the only file is no notebook of this lesson says more than its name.
        read_submission(*files.values(), source)
    raise NotGradable(f"there is no file {wanted}, only {_names(', '.join(sorted(files)))}")


def _names(text: str) -> str:
    """Return a file's name, or several, as they fit into a sentence."""
    shown = printable(text)
    return shown if len(shown) <= 300 else shown[:297] + "..."


def _is_of_lesson(data: bytes, source: NotebookNode) -> bool:
    try:
        read_submission(data, source)
    except NotGradable:
        return False
    return True


def read_submission(data: bytes, source: NotebookNode) -> Submission:
    """Read a submission.

    Parameters
    ----------
    data : bytes
        The file, in any state.
    source : NotebookNode
        The lesson's source notebook.

    Raises
    ------
    NotGradable
        If there is nothing of this lesson in it.
    """
    notices: list[str] = []
    content = _parse(_decode(data, notices))
    cells = _cells(content, notices)
    return _match(cells, source, notices)


def rebuild(source: NotebookNode, submission: Submission) -> NotebookNode:
    """Return the source notebook with what the student wrote put in; nothing is executed yet."""
    written = "\n".join(
        [*submission.answers.values(), *(e.source for e in submission.extra if e.kind == "code")]
    )
    extras: dict[int, list[NotebookNode]] = {}
    for number, extra in enumerate(submission.extra, 1):
        extras.setdefault(extra.after, []).append(_new_cell(extra, f"extra-{number}"))
    cells = extras.get(-1, [])
    for index, original in enumerate(source.cells):
        cell = copy.deepcopy(original)
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        if index in submission.answers:
            cell.source = submission.answers[index]
        elif index in submission.missing:
            cell.source = _replacement(original, written)
        if index in submission.attachments:
            cell["attachments"] = submission.attachments[index]
        cells += [cell, *extras.get(index, [])]
    return nbformat.from_dict({**copy.deepcopy(dict(source)), "cells": cells})


def released(cell: NotebookNode) -> str:
    """Return a source cell's text as a student gets it."""
    written = cell.cell_type == "markdown" and _mark(cell, "solution")
    return _released(cell.source, WRITE_HERE + "\n" if written else "")


@lru_cache(maxsize=512)
def _released(source: str, instead: str) -> str:
    return SOLUTION.sub(instead, HIDDEN.sub("", source))


def label(cell: NotebookNode) -> str:
    """Return the name by which a notice speaks of one of the lesson's cells."""
    own = cell.metadata.get("nbgrader", {}).get("grade_id")
    return own or str(cell.get("id", "")).rpartition("-")[2] or "without a name"


# --- Bytes to cells -------------------------------------------------------------------------------


def _decode(data: bytes, notices: list[str]) -> str:
    if not data.strip(b" \t\r\n\0"):
        raise NotGradable("the file is empty")
    if len(data) > SIZE_LIMIT:
        raise NotGradable(f"the file is larger than {SIZE_LIMIT >> 20} MB")
    for start, what in OTHER_FILES:
        if data[:64].lstrip().lower().startswith(start.lower()):
            raise NotGradable(f"the file is {what}, not a notebook")
    encoding = json.detect_encoding(data)
    if data.startswith(codecs.BOM_UTF8):
        notices.append("The file began with a byte-order mark, which was left out.")
    elif not encoding.startswith("utf-8"):
        notices.append(f"The file was written as {encoding.upper()}, not as UTF-8.")
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        pass
    text = data.decode("utf-8", errors="replace")
    # Most bytes above 127 in a file of another encoding are no UTF-8; in a damaged one few are.
    if 2 * text.count("\ufffd") <= sum(character > "\x7f" for character in text):
        notices.append("Some characters of the file were damaged and are shown as \ufffd.")
        return text
    notices.append("The file was written as Latin-1, not as UTF-8; accents may be wrong.")
    return data.decode("cp1252", errors="replace")


def _parse(text: str) -> dict[str, Any]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith(("<<<<<<< ", ">>>>>>> ")):
            raise NotGradable(
                f"line {number} of the file is left over from merging two versions; "
                "it is no notebook until someone chooses between them"
            )
    try:
        # A file system that was cut off from power fills a file up with zeros.
        content = json.loads(text.lstrip("\ufeff").rstrip("\0"), parse_int=_whole)
    except json.JSONDecodeError as error:
        rest = text[error.pos :].strip()
        if not rest or error.msg.startswith("Unterminated string"):
            raise NotGradable(
                f"the file stops in the middle, at line {error.lineno}: it was cut off when it "
                "was saved or sent"
            ) from None
        raise NotGradable(
            f"the file is not a notebook: line {error.lineno} is not JSON ({error.msg})"
        ) from None
    except (RecursionError, ValueError) as error:
        raise NotGradable(f"the file is not a notebook ({type(error).__name__})") from None
    if type(content) is not dict:
        raise NotGradable("the file is not a notebook: it holds data of another kind")
    return content


def _whole(digits: str) -> int | float:
    """Return a whole number of a notebook's file; none that Python refuses to read matters."""
    return int(digits) if len(digits) < 1000 else float(digits)


def _cells(content: dict[str, Any], notices: list[str]) -> list[_Cell]:
    """Return the cells of a notebook of any version of the format."""
    version = content.get("nbformat")
    raw = content.get("cells")
    if type(raw) is not list:
        sheets = content.get("worksheets")
        if type(sheets) is not list:
            raise NotGradable("the file is not a notebook: it has no cells")
        raw = [
            cell
            for sheet in sheets
            if type(sheet) is dict and type(sheet.get("cells")) is list
            for cell in sheet["cells"]
        ]
        notices.append("The notebook was in an older format and has been converted.")
    elif version != 4:
        said = printable(str(version)[:20])
        notices.append(f"The notebook says it is of format {said}; it was read as 4.")
    cells = [_cell(cell) for cell in raw[:CELL_LIMIT] if type(cell) is dict]
    if len(raw) > CELL_LIMIT:
        notices.append(f"Only the first {CELL_LIMIT} of {len(raw)} cells were read.")
    elif len(cells) < len(raw):
        notices.append("Something that was no cell stood among the cells and was left out.")
    for cell in cells:
        if cell.kind == "code":
            cell.source = _limited(cell.source, notices)
    if not any(cell.source.strip() for cell in cells):
        raise NotGradable("the notebook is empty: all its cells are")
    return cells


def _limited(code: str, notices: list[str]) -> str:
    """Return code that is short enough to be run, or nothing."""
    if len(code) <= CODE_LIMIT:
        return code
    notices.append(f"A cell with more than {CODE_LIMIT >> 20} MB of code was left out.")
    return ""


def _cell(raw: dict[str, Any]) -> _Cell:
    kind = raw.get("cell_type")
    source = _text(raw.get("source", raw.get("input", "")))
    if kind == "heading":  # of format 3
        level = raw.get("level")
        depth = level if type(level) is int and 1 <= level <= 6 else 1
        kind, source = "markdown", f"{'#' * depth} {source}"
    metadata = _dict(raw.get("metadata"))
    marks = _dict(metadata.get("nbgrader"))
    grade_id, cell_id = marks.get("grade_id"), raw.get("id")
    attachments = {
        _text(name): {_text(kind): _text(part) for kind, part in bundle.items()}
        for name, bundle in _dict(raw.get("attachments")).items()
        if type(bundle) is dict and all(type(part) is str for part in bundle.values())
    }
    return _Cell(
        kind if kind in KINDS else "raw",
        source,
        grade_id if type(grade_id) is str else None,
        cell_id if type(cell_id) is str else None,
        marks,
        attachments if kind == "markdown" else {},
    )


def _text(source: Any) -> str:
    if type(source) is list:
        source = "".join(part for part in source if type(part) is str)
    if type(source) is not str:
        return ""
    # A lone surrogate cannot be written to a file.
    return source.encode("utf-8", "replace").decode().replace("\r\n", "\n")


def _dict(value: Any) -> dict[str, Any]:
    return value if type(value) is dict else {}


# --- Cells to a submission ------------------------------------------------------------------------


def _match(cells: list[_Cell], source: NotebookNode, notices: list[str]) -> Submission:
    """Find for each of the lesson's cells the one that the student has for it."""
    slots = list(source.cells)
    by_slot: dict[int, list[_Cell]] = {index: [] for index in range(len(slots))}
    _match_by_name(cells, slots, by_slot)
    _match_by_text(cells, slots, by_slot)
    _match_by_definition(cells, slots, by_slot, notices)
    chosen = {
        index: _choose(index, slots, found, cells, notices)
        for index, found in by_slot.items()
        if found
    }
    if not any(_is_telling(slots[index]) for index in chosen):
        raise NotGradable("the notebook is not of this lesson: none of the lesson's cells is in it")
    _refuse_other_lesson(cells, slots)
    answers, attachments, extra = {}, {}, []
    for index, cell in chosen.items():
        _compare(cell, slots[index], notices)
        if _is_answer(slots[index]):
            code = slots[index].cell_type == "code"  # whatever the student's cell says it is
            answers[index] = _limited(cell.source, notices) if code else cell.source
            if cell.attachments and slots[index].cell_type == "markdown":
                attachments[index] = cell.attachments
    order = [index for cell in cells for index, one in chosen.items() if one is cell]
    if order != sorted(order):
        notices.append("Cells had been moved; they are back in the lesson's order.")
    taken = {id(cell): index for index, cell in chosen.items()}
    after, copies = -1, []
    for cell in cells:
        if id(cell) in taken:
            after = taken[id(cell)]
            kept = _kept_beside(cell, slots[after])
        else:
            kept = not _is_copy_of_fixed(cell, slots)
            if not kept:
                copies.append(cell)
        if kept and cell.source.strip():
            extra.append(Extra(after, cell.kind, cell.source, cell.attachments))
    notices += _on_copies(copies, cells, taken, slots)
    missing = tuple(
        index for index, slot in enumerate(slots) if index not in chosen and _is_answer(slot)
    )
    _tell_missing(slots, chosen, notices)
    return Submission(answers, missing, tuple(extra), attachments, tuple(dict.fromkeys(notices)))


def _refuse_other_lesson(cells: list[_Cell], slots: list[NotebookNode]) -> None:
    """Refuse a notebook with more cells that only another lesson has than cells of this one.

    Lessons share names, such as ``prediction``. What tells them apart is what a cell is for: an
    exercise, which one lesson alone has, or else the cell's id, which begins with the notebook's
    name. A notebook without any such cell counts as of the lesson that it was handed in for, and
    one with answers to earlier lessons in it is still of its own.
    """
    ours = _lessons_of(
        (slot.metadata.get("nbgrader", {}).get("grade_id"), slot.get("id"), slot.source)
        for slot in slots
    )
    theirs = _lessons_of((cell.grade_id, cell.cell_id, cell.source) for cell in cells)
    if not ours or not theirs:
        return
    (own, _), (found, count) = ours.most_common(1)[0], theirs.most_common(1)[0]
    if found != own and count > theirs[own]:
        raise NotGradable(
            f"this is the notebook of {found}, not of {own}; put it into "
            f"class/submitted/<student>/{found}."
        )


def _lessons_of(cells: Iterable[tuple[str | None, str | None, str]]) -> Counter[str]:
    """Count for each lesson the cells, given as grade_id, id and text, that only it has."""
    lesson_of = {name: exercise.lesson for name, exercise in load().items()}
    by_notebook = {lesson.partition("_")[2]: lesson for lesson in lesson_of.values()}
    counts: Counter[str] = Counter()
    for grade_id, cell_id, source in cells:
        name = re.sub("^(check|exam)_", "", grade_id or "")
        lesson = lesson_of.get(name) or by_notebook.get((cell_id or "").partition("-")[0])
        if lesson is None:  # a cell without its names; what it defines may still be known
            defined = re.findall(r"^def (\w+)", source, re.M)
            lesson = next((lesson_of[name] for name in defined if name in lesson_of), None)
        if lesson is not None:
            counts[lesson] += 1
    return counts


def _match_by_name(
    cells: list[_Cell], slots: list[NotebookNode], by_slot: dict[int, list[_Cell]]
) -> None:
    """Match cells that carry the name the lesson gave them."""
    grade_ids = {
        slot.metadata["nbgrader"]["grade_id"]: index
        for index, slot in enumerate(slots)
        if "nbgrader" in slot.metadata
    }
    ids = {slot["id"]: index for index, slot in enumerate(slots) if "id" in slot}
    for cell in cells:
        if cell.grade_id in grade_ids:
            _take(cell, grade_ids[cell.grade_id], by_slot)
    for cell in cells:
        if cell.grade_id is None and cell.cell_id in ids:
            index = ids[cell.cell_id]
            if cell.kind == slots[index].cell_type and not by_slot[index]:
                _take(cell, index, by_slot)


def _match_by_text(
    cells: list[_Cell], slots: list[NotebookNode], by_slot: dict[int, list[_Cell]]
) -> None:
    """Match cells that lost their names and still have their text."""
    texts: dict[str, list[int]] = {}
    for index, slot in enumerate(slots):
        if not by_slot[index] and not _is_stub(slot):
            texts.setdefault(_bare(released(slot)), []).append(index)
    for cell in cells:
        same = texts.get(cell.bare) if cell.slot is None else None
        if same:
            _take(cell, same.pop(0), by_slot)


def _match_by_definition(
    cells: list[_Cell],
    slots: list[NotebookNode],
    by_slot: dict[int, list[_Cell]],
    notices: list[str],
) -> None:
    """Match code that defines what an answer cell must define."""
    for index, slot in enumerate(slots):
        names = _defined(slot) if not by_slot[index] and _is_code_answer(slot) else []
        if not names:
            continue
        for cell in cells:
            free = cell.slot is None and cell.kind == "code"
            if free and all(_defines(cell.source, name) for name in names):
                _take(cell, index, by_slot)
        if by_slot[index]:
            notices.append(f"The answer {label(slot)} stood in a cell without its name.")


def _take(cell: _Cell, index: int, by_slot: dict[int, list[_Cell]]) -> None:
    cell.slot = index
    by_slot[index].append(cell)


def _choose(
    index: int,
    slots: list[NotebookNode],
    found: list[_Cell],
    cells: list[_Cell],
    notices: list[str],
) -> _Cell:
    """Return which of several copies of a cell is the answer; the others stay the student's own."""
    slot = slots[index]
    if _is_code_answer(slot) and len(found) == 1:
        rest = cells[cells.index(found[0]) + 1 :][:1]
        found = found + [cell for cell in rest if cell.slot is None and cell.kind == "code"]
        return _join_halves(found, cells, slot, notices) or found[0]
    if len(found) == 1:
        return found[0]
    if not _is_answer(slot):
        return next((cell for cell in found if not _differs(cell, slot)), found[0])
    stub = _bare(released(slot))
    written = [cell for cell in found if cell.bare not in (stub, "")] or found[:1]
    for cell in found:
        if cell not in written:
            cell.source = ""  # a copy of the empty stub would undo the answer
    if slot.cell_type == "markdown":
        first = written[0]
        for cell in written[1:]:
            first.source += "\n\n" + cell.source
            cell.source = ""
        return first
    joined = _join_halves(written, cells, slot, notices)
    if joined is not None:
        return joined
    if len(written) > 1:
        notices.append(
            f"The cell {label(slot)} was there {len(written)} times; all were run, in their order."
        )
    ends = [
        place
        for place, cell in enumerate(cells)
        if cell.slot in (index + 1, index + 2) and not _is_answer(slots[cell.slot])
    ]
    place_of = {id(cell): place for place, cell in enumerate(cells)}
    before = [cell for cell in written if not ends or place_of[id(cell)] < ends[0]]
    return (before or written)[-1]


def _join_halves(
    written: list[_Cell], cells: list[_Cell], slot: NotebookNode, notices: list[str]
) -> _Cell | None:
    """Put together two cells of which the second begins in the middle of a function.

    What a student wrote is never parsed here: that could exhaust the examiner.
    """
    if len(written) != 2 or cells.index(written[1]) - cells.index(written[0]) != 1:
        return None
    first, second = written
    if not re.match(r"(?:[ \t]*\n)*[ \t]+\S", second.source):
        return None
    first.source, second.source = f"{first.source.rstrip(chr(10))}\n{second.source}", ""
    notices.append(f"The answer {label(slot)} had been split in two; it was put together.")
    return first


def _compare(cell: _Cell, slot: NotebookNode, notices: list[str]) -> None:
    """Say what of a cell has been edited that is not the student's to edit."""
    name = label(slot)
    if "nbgrader" in slot.metadata:
        if cell.kind != slot.cell_type:
            kinds = {"code": "code", "markdown": "text", "raw": "raw text"}
            notices.append(
                f"The cell {name} had been changed to {kinds[cell.kind]}; "
                f"it is {kinds[slot.cell_type]} again."
            )
        if cell.grade_id is not None and any(
            key in cell.marks and cell.marks[key] != _mark(slot, key) for key in MARKS
        ):
            notices.append(f"The marks of the cell {name} had been edited; the lesson's count.")
    if _is_fixed(slot) and _differs(cell, slot):
        notices.append(f"The cell {name} had been edited; the original is back.")


def _kept_beside(cell: _Cell, slot: NotebookNode) -> bool:
    """Whether a student's version of one of the lesson's cells is kept after the original."""
    if "nbgrader" in slot.metadata:
        # A task is the lesson's, but some write their report into it.
        return bool(_mark(slot, "task")) and _differs(cell, slot)
    return slot.cell_type == "code" and _differs(cell, slot)


def _is_copy_of_fixed(cell: _Cell, slots: list[NotebookNode]) -> bool:
    """Whether a cell repeats one of the lesson's that is not to be edited."""
    return any(
        _is_fixed(slot) and not _differs(cell, slot)
        for slot in slots
        if cell.slot is None or slots[cell.slot] is slot
    )


def _on_copies(
    copies: list[_Cell],
    cells: list[_Cell],
    taken: dict[int, int],
    slots: list[NotebookNode],
) -> list[str]:
    notices = []
    for cell in cells:
        if id(cell) in taken or cell.slot is None or not _is_fixed(slots[cell.slot]):
            continue
        fate = "left out" if cell in copies else "run as an ordinary cell; it gives no points"
        notices.append(f"A copy of the cell {label(slots[cell.slot])} was {fate}.")
    known = {slot.metadata["nbgrader"]["grade_id"] for slot in slots if "nbgrader" in slot.metadata}
    for cell in cells:
        if cell.grade_id is not None and cell.grade_id not in known and cell.slot is None:
            notices.append(
                f"A cell named {cell.grade_id[:60]!r} is not of this lesson; it gives no points."
            )
    return notices


def _tell_missing(slots: list[NotebookNode], chosen: dict[int, _Cell], notices: list[str]) -> None:
    for index, slot in enumerate(slots):
        if index in chosen or (slot.cell_type != "code" and "nbgrader" not in slot.metadata):
            continue
        if _is_answer(slot):
            notices.append(f"The cell {label(slot)} was missing.")
        else:
            notices.append(f"The cell {label(slot)} was missing and has been put back.")


# --- What a cell is -------------------------------------------------------------------------------


def _mark(slot: NotebookNode, key: str) -> Any:
    return slot.metadata.get("nbgrader", {}).get(key)


def _is_code_answer(slot: NotebookNode) -> bool:
    return slot.cell_type == "code" and bool(_mark(slot, "solution"))


def _is_answer(slot: NotebookNode) -> bool:
    """Whether a cell's text is the student's: an answer, or a text without a lock."""
    if "nbgrader" in slot.metadata:
        return bool(_mark(slot, "solution"))
    return slot.cell_type != "code"


def _is_fixed(slot: NotebookNode) -> bool:
    return "nbgrader" in slot.metadata and not _mark(slot, "solution")


def _is_stub(slot: NotebookNode) -> bool:
    return "nbgrader" in slot.metadata and bool(_mark(slot, "solution"))


def _is_telling(slot: NotebookNode) -> bool:
    """Whether having this cell shows that a notebook is of this lesson."""
    return "nbgrader" in slot.metadata or len(_bare(released(slot))) > 40


def _differs(cell: _Cell, slot: NotebookNode) -> bool:
    return cell.bare not in (_bare_slot(released(slot)), _bare_slot(slot.source))


def _bare(text: str) -> str:
    """Return a text without blank lines and without spaces at the ends of lines."""
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip())


_bare_slot = lru_cache(maxsize=1024)(_bare)  # of the lesson's texts, which are compared often


def _defined(slot: NotebookNode) -> list[str]:
    """Return the names that an answer cell of the lesson defines, functions first."""
    try:
        body = ast.parse(released(slot)).body
    except SyntaxError:
        return []
    functions = [node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    variables = [
        name.id
        for node in body
        if isinstance(node, ast.Assign)
        for target in node.targets
        for name in ast.walk(target)
        if isinstance(name, ast.Name)
    ]
    return functions + variables


def _defines(code: str, name: str) -> bool:
    """Whether code, Python or nearly so, defines a name at its top level."""
    name = re.escape(name)
    pattern = rf"^(?:(?:async\s+)?def\s+{name}\b|class\s+{name}\b|{name}\s*(?::[^=\n]+)?=(?!=))"
    return re.search(pattern, code, re.M) is not None


def _replacement(slot: NotebookNode, written: str) -> str:
    """Return what stands in for an answer cell that is missing."""
    names = _defined(slot) if slot.cell_type == "code" else []
    if names and any(_defines(written, name) for name in names):
        # Two cells were made one: the empty stub would undo what stands in the other.
        return "# This cell was missing. Another cell defines what it asks for."
    return released(slot)


def _new_cell(extra: Extra, cell_id: str) -> NotebookNode:
    cell: dict[str, Any] = {
        "cell_type": extra.kind,
        "id": cell_id,
        "metadata": {},
        "source": extra.source,
    }
    if extra.kind == "code":
        cell |= {"execution_count": None, "outputs": []}
    if extra.attachments:
        cell["attachments"] = extra.attachments
    return nbformat.from_dict(cell)
