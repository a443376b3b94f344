"""Grade one submission: its bytes go in; verdicts, notices and the executed notebook come out."""

from __future__ import annotations

import ast
import contextlib
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograder.examiner import judge_exam
from autograder.exercise import Exercise
from autograder.exercises import load
from autograder.printable import printable
from autograder.sandbox import Candidate, Ended, Limits, Sandbox
from autograder.submission import label, read_submission, rebuild
from hopping import predict
from hopping.observe import Outcome, observe_each
from hopping.verdict import Verdict

# Graded cells that are no exam call one of these, with variables of the notebook and constants.
JUDGES: Mapping[str, Callable[..., Any]] = {"commit": predict.commit}

LETHAL = 2  # so many cells that end the process and name the same answer show what ends it
COLOUR = re.compile(r"\x1b\[[0-9;]*m")  # in a traceback
OUTPUTS = 500  # of one cell
JSON_DATA = re.compile(r"application/(.*\+)?json")  # of nbformat's kinds of data
NOT_REACHED = "the notebook came to its end before this cell"


@dataclass(frozen=True)
class Graded:
    """What grading one submission gave.

    Attributes
    ----------
    notebook : NotebookNode
        The rebuilt notebook with its outputs; the outputs of graded cells are the examiner's.
    scores : dict
        Points by ``grade_id`` of every cell that is graded by machine.
    verdicts : dict
        Verdicts by name of exercise.
    notices : tuple of str
        What was found, restored or left out, in plain words.
    seconds : float
        How long it took.
    """

    notebook: NotebookNode
    scores: dict[str, float]
    verdicts: dict[str, Verdict]
    notices: tuple[str, ...]
    seconds: float


@dataclass(frozen=True)
class Judged:
    """A graded cell that is one call: which function, and what it is called with."""

    judge: str
    names: tuple[str, ...]
    source: ast.Call = field(repr=False)


def grade_submission(data: bytes, source: NotebookNode, sandbox: Sandbox) -> Graded:
    """Grade one submission.

    The result depends on the bytes and the course alone, and what the notebook's cells print,
    raise or change has no part in the scores.

    Parameters
    ----------
    data : bytes
        The file that was handed in.
    source : NotebookNode
        The lesson's source notebook.
    sandbox : Sandbox
        Where it runs; it can be used again afterwards.

    Raises
    ------
    NotGradable
        If there is nothing of this lesson in the file; the message says why.
    ValueError
        If the source has a graded cell that cannot be judged from outside.
    """
    started = time.monotonic()
    submission = read_submission(data, source)
    notebook = rebuild(source, submission)
    run = _Grading(notebook, sandbox, list(submission.notices))
    run.grade()
    seconds = time.monotonic() - started
    notices = tuple(dict.fromkeys(run.notices))
    return Graded(notebook, run.scores, run.verdicts, notices, seconds)


class _CellEnded(Exception):
    """A cell ended the process."""

    def __init__(self, index: int, how: str, in_company: bool) -> None:
        super().__init__(how)
        self.index, self.how = index, how
        self.in_company = in_company  # of what an earlier cell left running


class _Grading:
    """The state of grading one submission."""

    def __init__(self, notebook: NotebookNode, sandbox: Sandbox, notices: list[str]) -> None:
        self.cells: list[NotebookNode] = notebook.cells
        self.sandbox = sandbox
        self.limits: Limits = sandbox.limits
        self.notices = notices
        self.scores: dict[str, float] = {}
        self.verdicts: dict[str, Verdict] = {}
        self.exams: dict[int, Exercise] = {}
        self.judged: dict[int, Judged] = {}
        for index, cell in enumerate(self.cells):
            self._sort(index, cell)
        self.answers = {
            cell.metadata["nbgrader"]["grade_id"]
            for cell in self.cells
            if cell.metadata.get("nbgrader", {}).get("solution")
        }
        self.ended: dict[int, str] = {}
        self.endless: set[str] = set()  # answers in which a cell of the lesson was interrupted
        self.deadline = 0.0
        # How long a cell that leaves something running is watched; at first none is.
        self.watch_seconds = 0.0
        self.copies = True  # whether the process can be copied for the exams

    def _sort(self, index: int, cell: NotebookNode) -> None:
        marks = cell.metadata.get("nbgrader", {})
        if cell.cell_type != "code" or not marks.get("grade") or marks.get("solution"):
            return
        grade_id = marks["grade_id"]
        name = grade_id.removeprefix("exam_")
        self.scores[grade_id] = 0.0
        if name != grade_id:
            if name not in load():
                raise ValueError(f"{grade_id}: there is no exercise {name}")
            self.exams[index] = load()[name]
        elif marks.get("points", 0) > 0:
            self.judged[index] = _judged(grade_id, cell.source)

    # --- Running -----------------------------------------------------------------------------

    def grade(self) -> None:
        """Run the cells, then examine, and run again without a cell that ended the process."""
        while True:
            with self.sandbox.candidate() as candidate:
                started = time.monotonic()  # the sandbox's own start is not the notebook's
                self.deadline = self.deadline or started + self.limits.notebook_seconds
                run = _Run(self, candidate)
                try:
                    run.cells()
                except _CellEnded as end:
                    if end.in_company and not self.watch_seconds:
                        self.watch_seconds = time.monotonic() - started + 0.5
                        run.hang_up()
                        continue
                    if end.index in self.exams and self.copies:  # it runs nothing of its own
                        self.copies = False
                        run.hang_up()
                        continue
                    self._leave_out(end)
                    if len(self.ended) <= self.limits.reruns and not self._time_is_up():
                        run.hang_up()
                        continue
                    self.notices.append(
                        "Too many cells ended the Python process; the cells after "
                        f"{self._name(end.index)} were not run."
                    )
                self.notices += run.notices
                run.put_down()
                waiting, outcomes = dict(run.kept), {}
                for index, exercise in self.exams.items():
                    # What the cells or the exam before left running is no part of this one.
                    candidate.end_all_but(waiting.values())
                    outcomes[index] = self._examine(exercise, waiting.pop(index, None))
            break
        disturbed = False
        for index, exercise in self.exams.items():
            raised = {outcome.raised for outcome in outcomes[index]}
            # An exercise before it may have stopped or slowed it: their processes are neighbours.
            # Or it waits for a thread that its copy did not get, or there could be no copy.
            copy = run.kept.get(index)
            doubtful = disturbed or (copy is not None and copy.without_threads)
            if (
                "ProcessEnded" in raised
                or ("TimeIsUp" in raised and doubtful)
                or (copy is None and index in run.counts)
            ):
                outcomes[index] = self._examine_alone(index, exercise) or outcomes[index]
            disturbed = disturbed or bool(raised & {"ProcessEnded", "TimeIsUp"})
            self._give(index, exercise, outcomes[index])
        for index, judged in self.judged.items():
            self._judge(index, judged, run.values.get(index, {}))

    def _leave_out(self, end: _CellEnded) -> None:
        self.ended[end.index] = end.how
        self.notices.append(
            f"The cell {self._name(end.index)} {end.how}. It was left out, and the notebook was "
            "run again without it."
        )

    def left_out(self, index: int) -> str:
        """Return why a cell is not run, if it is not: what it did, or what its answers do."""
        if index in self.ended:
            return self.ended[index]
        counts = Counter(name for ended in self.ended for name in self._mentions(ended))
        lethal = {name for name, count in counts.items() if count >= LETHAL}
        if found := lethal & self._mentions(index):
            return f"uses {' and '.join(sorted(found))}, which ends the Python process"
        if found := self.endless & self._mentions(index):
            return f"uses {' and '.join(sorted(found))}, for which another cell waited in vain"
        return ""

    def blame(self, index: int, outputs: list[NotebookNode]) -> str:
        """Return the learner's answer that an interrupted cell of the lesson waited for, if any.

        Other cells that use this answer would each take as long; so none of them is run from here
        on, nor when the notebook is run again. An answer that it called in turn may be innocent.
        """
        if not self._mentions(index) or self._is_extra(index):
            return ""
        told = (line for output in outputs for line in output.get("traceback", []))
        called = re.findall(r"\bin (\w+)\(", COLOUR.sub("", "\n".join(told)))
        answers = [name for name in called if name in self.answers]
        self.endless.update(answers[:1])
        return answers[0] if answers else ""

    def _mentions(self, index: int) -> set[str]:
        """Return the answers that a cell names, unless it is an answer itself or an exam."""
        cell = self.cells[index]
        marks = cell.metadata.get("nbgrader", {})
        if marks.get("solution") or index in self.exams or index in self.judged:
            return set()
        return self.answers & set(re.findall(r"\w+", cell.source))

    def _time_is_up(self) -> bool:
        return time.monotonic() >= self.deadline

    def _name(self, index: int) -> str:
        if not self._is_extra(index):
            return label(self.cells[index])
        before = [c for i, c in enumerate(self.cells[:index]) if not self._is_extra(i)]
        return f"of one's own after {label(before[-1])}" if before else "of one's own at the top"

    def _is_extra(self, index: int) -> bool:
        return self.cells[index].get("id", "").startswith("extra-")

    # --- Judging -----------------------------------------------------------------------------

    def _examine(self, exercise: Exercise, kept: Candidate | None) -> list[Outcome]:
        """Return what the function does on the hidden cases."""
        cases = [case for group in exercise.groups for case in group.cases]
        if kept is None:
            missing = Outcome(raised="NotImplementedError", detail=NOT_REACHED)
            return [missing] * len(cases)
        deadline = time.monotonic() + self.limits.exam_seconds

        def observe_one(case: Any) -> Outcome:
            left = deadline - time.monotonic()
            if left <= 0:
                return Outcome(raised="TimeIsUp", detail="the exam took too long")
            seconds = min(self.limits.call_seconds, left)
            return kept.call(exercise.name, case.inputs, seconds)

        try:
            return observe_each(observe_one, cases)
        finally:
            kept.hang_up()

    def _examine_alone(self, index: int, exercise: Exercise) -> list[Outcome]:
        """Examine once more where no other exercise is, and no copy; nothing if that fails."""
        with self.sandbox.candidate() as candidate:
            run = _Run(self, candidate, until=index)
            with contextlib.suppress(_CellEnded):
                run.cells()
            return self._examine(exercise, candidate) if index in run.counts else []

    def _give(self, index: int, exercise: Exercise, outcomes: list[Outcome]) -> None:
        """Record a verdict and show it in the exam's cell."""
        verdict = judge_exam(exercise, outcomes)
        lines = [verdict.message]
        for raised, words in (
            ("ProcessEnded", "a call ended the Python process"),
            ("TimeIsUp", "a call did not come to an end in time"),
        ):
            if any(outcome.raised == raised for outcome in outcomes):
                lines.append(f"  {words}; it is not called again after that")
        if outcomes[0].detail == NOT_REACHED:
            lines.append(f"  {NOT_REACHED}")
        for ended, how in self.ended.items():
            if self.cells[ended].metadata.get("nbgrader", {}).get("grade_id") == exercise.name:
                lines.append(f"  its cell {how}, so it was left out")
        verdict = replace(verdict, message="\n".join(lines))
        cell = self.cells[index]
        points = min(verdict.points, float(cell.metadata["nbgrader"]["points"]))
        self.verdicts[exercise.name] = verdict
        self.scores[cell.metadata["nbgrader"]["grade_id"]] = points
        _show(cell, verdict.message + "\n", repr(points))

    def _judge(self, index: int, judged: Judged, values: dict[str, Any]) -> None:
        """Call a graded cell's function here, with the notebook's values as plain data."""
        cell = self.cells[index]
        arguments = [_argument(node, values) for node in judged.source.args]
        named = {k.arg: _argument(k.value, values) for k in judged.source.keywords}
        try:
            said = JUDGES[judged.judge](*arguments, **named)
        except AssertionError as error:
            cell.outputs = [_error("AssertionError", str(error))]
        except Exception as error:  # a value of the wrong kind
            words = f"{', '.join(judged.names)} cannot be read ({type(error).__name__})"
            cell.outputs = [_error("ValueError", words)]
        else:
            marks = cell.metadata["nbgrader"]
            self.scores[marks["grade_id"]] = float(marks["points"])
            _show(cell, "", repr(said))


class _Run:
    """One pass over the cells in one candidate."""

    def __init__(self, grading: _Grading, candidate: Candidate, until: int | None = None) -> None:
        self.grading = grading
        self.candidate = candidate
        self.until = until
        self.kept: dict[int, Candidate] = {}
        self.values: dict[int, dict[str, Any]] = {}
        self.notices: list[str] = []
        self.outputs: dict[int, list[NotebookNode]] = {}
        self.counts: dict[int, int] = {}
        self.displays: dict[str, list[NotebookNode]] = {}
        self.room = grading.limits.notebook_output
        self.tasks = candidate.tasks()
        self.in_company = False

    def cells(self) -> None:
        """Run the cells in order; copies are kept where exams stand.

        Raises
        ------
        _CellEnded
            If one ended the process.
        """
        grading = self.grading
        for index, cell in enumerate(grading.cells):
            if cell.cell_type != "code" or not cell.source.strip():
                continue
            if how := grading.left_out(index):
                self.outputs[index] = [_error("LeftOut", f"This cell {how}. It was left out.")]
                continue
            left = grading.deadline - time.monotonic()
            if left <= 0:
                self.notices.append(
                    f"The notebook took longer than {grading.limits.notebook_seconds:g} s; from "
                    f"the cell {grading._name(index)} on it was not run."
                )
                return
            self.counts[index] = len(self.counts) + 1
            try:
                self._cell(index, cell, min(grading.limits.cell_seconds, left))
            except Ended as end:
                raise _CellEnded(index, str(end), self.in_company) from None
            if index == self.until:
                return

    def hang_up(self) -> None:
        """Give up the copies that are kept."""
        for kept in self.kept.values():
            kept.hang_up()
        self.kept.clear()

    def put_down(self) -> None:
        """Write outputs and counts into the notebook."""
        for index, cell in enumerate(self.grading.cells):
            if cell.cell_type == "code":
                cell.outputs = self.outputs.get(index, [])
                cell.execution_count = self.counts.get(index)

    def _cell(self, index: int, cell: NotebookNode, seconds: float) -> None:
        if index in self.grading.exams:
            if self.until is None and self.grading.copies:
                self.kept[index] = self.candidate.keep()
        elif index in self.grading.judged:
            names = self.grading.judged[index].names
            self.values[index] = self.candidate.values(names)
        else:
            answer = self.candidate.run_cell(cell.source, seconds)
            name = self.grading._name(index)
            outputs, all_kept = self._outputs(answer, self.counts[index])
            self.outputs[index] = outputs
            if answer.get("interrupted"):
                words = f"The cell {name} ran for more than {seconds:g} s and was interrupted"
                blamed = self.grading.blame(index, outputs)
                if blamed:
                    self.grading.notices.append(
                        f"{words} in the answer {blamed}; other cells that use it were left out."
                    )
                else:
                    self.notices.append(f"{words}.")
            if answer.get("cut") or not all_kept:
                self.notices.append(f"The cell {name} printed or showed too much; some is lost.")
            if "failed" in answer:
                self.notices.append(
                    f"The cell {name} could not be run or shown as usual: what it shows is too "
                    "large, or something that every cell needs had been changed."
                )
            for output in outputs if cell.metadata.get("nbgrader", {}).get("solution") else []:
                if output.get("ename") == "ModuleNotFoundError":
                    why = printable(output.evalue[:100])
                    self.notices.append(
                        f"The answer {name} stopped at a package that is missing here ({why})."
                    )
            self._look_behind(index)

    def _look_behind(self, index: int) -> None:
        """See whether a cell left something running, and watch it if that may be what ends cells.

        A cell that runs when a thread or a process of an earlier one ends everything is not to
        blame for it.
        """
        tasks = self.candidate.tasks() - len(self.kept)
        if tasks > self.tasks:
            self.in_company = True
            if self.grading.watch_seconds:
                self.candidate.end_all_but([self.candidate, *self.kept.values()])
                try:
                    left = max(0.0, self.grading.deadline - time.monotonic())
                    self.candidate.outlast(min(self.grading.watch_seconds, left))
                except Ended as end:
                    raise _CellEnded(index, f"left something running that {end}", True) from None
                tasks = self.candidate.tasks() - len(self.kept)  # without what was ended
        self.tasks = tasks

    def _outputs(self, answer: dict[str, Any], count: int) -> tuple[list[NotebookNode], bool]:
        """Return outputs made anew from what the candidate tells, and whether all fitted."""
        outputs = []
        told = answer.get("outputs")
        for raw in told[:OUTPUTS] if type(told) is list else []:
            output = _output(raw, count)
            if output is None:
                continue
            self.room -= len(json.dumps(output))
            if self.room < 0:
                return outputs, False
            outputs.append(output)
            name = raw.get("display_id")
            if type(name) is str:
                self.displays.setdefault(name, []).append(output)
        updates = answer.get("updates")
        for raw in updates[:OUTPUTS] if type(updates) is list else []:
            shown = _output({**_dict(raw), "output_type": "display_data"}, 0)
            name, size = _dict(raw).get("display_id"), len(json.dumps(shown))
            for output in self.displays.get(name, []) if type(name) is str else []:
                if size > self.room:
                    return outputs, False
                self.room -= size
                output.data, output.metadata = shown.data, shown.metadata
        return outputs, True


def _judged(grade_id: str, source: str) -> Judged:
    """Read a graded cell that is a call of one of `JUDGES`."""
    try:
        (statement,) = ast.parse(source).body
        call = statement.value
        arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
        known = call.func.id in JUDGES and all(
            isinstance(node, ast.Name | ast.Constant) for node in arguments
        )
    except (SyntaxError, ValueError, AttributeError):
        known = False
    if not known:
        raise ValueError(
            f"{grade_id}: a graded cell must be an exam or one call of {', '.join(JUDGES)} with "
            "variables and constants, so that it can be judged from outside"
        )
    names = tuple(node.id for node in arguments if isinstance(node, ast.Name))
    return Judged(call.func.id, names, call)


def _argument(node: ast.expr, values: dict[str, Any]) -> Any:
    return node.value if isinstance(node, ast.Constant) else values.get(node.id)


def _output(raw: Any, count: int) -> NotebookNode | None:
    raw = _dict(raw)
    kind = raw.get("output_type")
    if kind == "stream" and raw.get("name") in ("stdout", "stderr"):
        return _node("stream", name=raw["name"], text=_string(raw.get("text")))
    if kind == "error":
        told = raw.get("traceback")
        return _node(
            "error",
            ename=_string(raw.get("ename")),
            evalue=_string(raw.get("evalue")),
            traceback=[_string(line) for line in told] if type(told) is list else [],
        )
    if kind not in ("display_data", "execute_result"):
        return None
    data = {
        name: part if type(part) is str else _as_json(part)
        for name, part in _dict(raw.get("data")).items()
        if type(part) is str or JSON_DATA.fullmatch(name)
    }
    metadata = _as_json(_dict(raw.get("metadata")))
    if kind == "execute_result":
        return _node(kind, data=data, metadata=metadata, execution_count=count)
    return _node(kind, data=data, metadata=metadata)


def _node(kind: str, **fields: Any) -> NotebookNode:
    """Return an output; nbformat's own function validates each, which takes longer than a cell."""
    if kind in ("display_data", "execute_result"):
        fields.setdefault("metadata", {})
    return nbformat.from_dict({"output_type": kind, **fields})


def _dict(value: Any) -> dict[str, Any]:
    return value if type(value) is dict else {}


def _as_json(value: Any) -> Any:
    """Return what of plain data a notebook's file can hold; nan is not among it."""
    return json.loads(json.dumps(value, default=lambda _: None), parse_constant=str)


def _string(value: Any) -> str:
    return value if type(value) is str else ""


def _show(cell: NotebookNode, printed: str, value: str) -> None:
    """Give a graded cell the outputs that nbgrader reads points from."""
    cell.outputs = []
    if printed:
        cell.outputs.append(_node("stream", name="stdout", text=printed))
    cell.outputs.append(
        _node(
            "execute_result",
            data={"text/plain": value},
            execution_count=cell.execution_count,
        )
    )


def _error(kind: str, words: str) -> NotebookNode:
    return _node("error", ename=kind, evalue=words, traceback=[f"{kind}: {words}"])
