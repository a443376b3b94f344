"""Write a page for each student and lesson: points, hints, comments, and the notebook as it ran."""

from __future__ import annotations

import contextlib
import re
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

import jinja2
import nbformat
from markupsafe import Markup
from nbformat import NotebookNode

from autograder import safe_html
from autograder.course import Course, source_path
from autograder.gradebook import NO_RESPONSE, Gradebook, connect
from autograder.journal import write_whole
from autograder.outcome import MISSING, Result, Score
from autograder.printable import printable
from autograder.report import number
from hopping.observe import TimeIsUp, time_limit
from hopping.verdict import Verdict

HIDDEN = ("HIDDEN TESTS", "MARK SCHEME")  # what stands between BEGIN and END
PAGE_SECONDS = 10.0  # for what a student wrote and showed; some texts take a parser for ever
PLAIN_LIMIT = 100_000  # characters of a text that is shown as it is
HINT = re.compile(r"^  hint: (.*)$", re.MULTILINE)
NOTHING = Markup("")


@dataclass
class Block:
    """One cell of the page, with what was said about it."""

    body: Markup = NOTHING
    outputs: list[Markup] = field(default_factory=list)
    anchor: str = ""
    score: Score | None = None
    verdict: str = ""
    comment: str = ""


def write_feedback(course: Course, results: Iterable[Result]) -> list[Path]:
    """Write ``class/feedback/<student>/<lesson>/<notebook>.html`` for what was handed in.

    The pages need no network and run no script. They show no hidden case. A page of what was
    taken away since is deleted.

    Returns
    -------
    list of Path
        The pages, in the order of the results.
    """
    pages = []
    with connect(course) as gradebook:
        for result in results:
            if result.outcome == MISSING:  # a page of what is no longer there would mislead
                shutil.rmtree(course.feedback / result.student / result.lesson, ignore_errors=True)
                with contextlib.suppress(OSError):  # other lessons' pages are in it
                    (course.feedback / result.student).rmdir()
                continue
            pages.append(_page_path(course, result))
            write_whole(pages[-1], page(course, gradebook, result))
    return pages


def page(course: Course, gradebook: Gradebook, result: Result) -> str:
    """Return one page's HTML."""
    verdicts = {verdict.exercise: verdict for verdict in result.verdicts}
    blocks: list[Block] = []
    comments: Mapping[str, str] = {}
    errors: Mapping[str, NotebookNode] = {}
    if result.graded:
        graded = course.autograded / result.student / result.lesson
        nb = nbformat.read(graded / f"{_page_path(course, result).stem}.ipynb", as_version=4)
        scores = {score.name: score for score in result.scores}
        comments = gradebook.comments(result.student, result.lesson)
        errors = _errors(nb)
        show = _Show(time.monotonic() + PAGE_SECONDS)
        blocks = [_block(cell, scores, verdicts, comments, show) for cell in nb.cells]
    return _template().render(
        student=printable(result.student),
        lesson=result.lesson,
        result=result,
        verdicts=verdicts,
        blocks=blocks,
        number=number,
        remark=_Remark(verdicts, comments, errors),
        code_style=Markup(safe_html.code_style()),
    )


def visible(source: str) -> str:
    """Return a cell's source without hidden tests and mark schemes."""
    kept, inside = [], ""
    for line in source.split("\n"):
        begin = [what for what in HIDDEN if f"BEGIN {what}" in line]
        if begin and not inside:
            inside = begin[0]
        elif inside and f"END {inside}" in line:
            inside = ""
        elif not inside:
            kept.append(line)
    return "\n".join(kept).strip("\n")


def _block(
    cell: NotebookNode,
    scores: Mapping[str, Score],
    verdicts: Mapping[str, Verdict],
    comments: Mapping[str, str],
    show: _Show,
) -> Block:
    grade_id = cell.metadata.get("nbgrader", {}).get("grade_id", "")
    name = grade_id.removeprefix("exam_")
    score = scores.get(name) if cell.metadata.get("nbgrader", {}).get("grade") else None
    if cell.metadata.get("nbgrader", {}).get("task"):
        score = scores.get(name)
    block = Block(anchor=name if score else "", score=score, comment=comments.get(grade_id, ""))
    source = visible(cell.source)
    if cell.cell_type == "markdown":
        text = NotebookNode({**cell, "source": source})
        block.body = show(lambda: safe_html.markdown(text), source)
    elif cell.cell_type == "code":
        hides = source != cell.source.strip("\n")
        if source.strip() and not hides:
            block.body = show(lambda: safe_html.code(source), source)
        if hides:
            # What this cell printed or raised may show the hidden test it ran.
            verdict = verdicts.get(name)
            block.verdict = verdict.message.partition("\n")[2] if verdict else _failure(cell)
        else:
            block.outputs = [
                show(partial(safe_html.output, out), safe_html.plain(out)) for out in cell.outputs
            ]
    else:
        block.body = Markup("<pre>{}</pre>").format(source)
    return block


@dataclass
class _Show:
    """Makes HTML until the time for a page is over.

    One student's text must not keep the others from their pages, whatever a parser makes of it.
    """

    deadline: float

    def __call__(self, make: Callable[[], Markup], text: str) -> Markup:
        """Return what `make` makes, or the text alone if it fails or takes too long."""
        try:
            with time_limit(max(0.001, self.deadline - time.monotonic())):
                return make()
        except (Exception, TimeIsUp):
            return Markup("<pre>{}</pre>").format(text[:PLAIN_LIMIT])


def _failure(cell: NotebookNode) -> str:
    """Say that a hidden test raised an error, and of which kind."""
    names = [out.ename for out in cell.outputs if out.output_type == "error"]
    if not names:
        return ""
    if names[0] == "NameError":
        return "The cell above it did not define what is asked for (NameError)."
    return f"The hidden test did not pass ({names[0]})."


@dataclass(frozen=True)
class _Remark:
    """Says in a few words, beside a score, why it is not full or who gives it."""

    verdicts: Mapping[str, Verdict]
    comments: Mapping[str, str]
    errors: Mapping[str, NotebookNode]

    def __call__(self, score: Score) -> str:
        if score.points is None:
            return "to be graded by hand"
        if score.manual:
            # nbgrader's own words; a person who grades writes other ones, or none.
            unanswered = self.comments.get(score.name) == NO_RESPONSE
            return "left as it was handed out" if unanswered else "graded by hand"
        if score.points >= score.max_points:
            return ""
        error, verdict = self.errors.get(score.name), self.verdicts.get(score.name)
        if verdict is None:  # a prediction: the error is the examiner's
            return _short(error.evalue) if error else ""
        titles = tuple(f"  {part.title}: " for part in verdict.parts)
        groups, others = [], []
        for line in verdict.message.split("\n")[1:]:
            (groups if line.startswith(titles) else others).append(line)
        # The hint says most, then what became of the calls, then of the cell, then of a group.
        if hint := HINT.search(verdict.message):
            return hint.group(1)
        if others:
            return _short(others[0])
        if error and error.ename == "KeyboardInterrupt":
            return "its cell ran too long and was interrupted"
        if error:
            kind = error.ename if re.fullmatch(r"\w{1,40}", error.ename) else "an error"
            return f"its cell raised {kind}"
        fault = re.search(r"\(([^()]*)\)$", "\n".join(groups), re.MULTILINE)
        return fault.group(1) if fault else ""


def _short(text: str) -> str:
    sentence = re.split(r"\.\s|\n", text.strip())[0]
    return sentence if len(sentence) <= 100 else sentence[:97] + "..."


def _errors(nb: NotebookNode) -> dict[str, NotebookNode]:
    """Return the first error that each named cell raised, by ``grade_id``."""
    return {
        cell.metadata.nbgrader.grade_id: output
        for cell in nb.cells
        if cell.cell_type == "code" and "nbgrader" in cell.metadata
        for output in reversed(cell.outputs)
        if output.output_type == "error"
    }


def _page_path(course: Course, result: Result) -> Path:
    folder = course.feedback / result.student / result.lesson
    if (course.source / result.lesson).is_dir():
        return folder / f"{source_path(course, result.lesson).stem}.html"
    return folder / "feedback.html"


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("autograder", "."),
        autoescape=True,
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template("feedback.html")
