"""Show results: a table for people, JSON for machines, a CSV for both."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from autograder.journal import write_whole
from autograder.outcome import GRADED, MISSING, NOT_GRADED, NOTICES, Result
from autograder.printable import printable

COLUMNS = (
    "student",
    "lesson",
    "outcome",
    "points",
    "max_points",
    "manual_points",
    "manual_pending",
    "points_by_exercise",
    "notices",
    "reason",
)

TEXTS = ("student", "lesson", "notices", "reason")


def number(value: float) -> str:
    """Return points as a person writes them: 3, 1.8, 0.75."""
    return f"{value:.6f}".rstrip("0").rstrip(".")


def points_text(result: Result) -> str:
    """Return points in a few characters: ``12/15``, or ``12/25 + manual 10`` while some are open.

    Without a grade it is the outcome: there is no number that would be true.
    """
    if not result.graded:
        return result.outcome
    text = f"{number(result.points)}/{number(result.max_points)}"
    return f"{text} + manual {number(result.pending)}" if result.pending else text


# --- CSV ---------------------------------------------------------------------------------------


def write_csv(path: Path, results: Sequence[Result]) -> None:
    """Write one row for each student and lesson, the whole file or nothing."""
    write_whole(path, csv_text(results))


def csv_text(results: Sequence[Result]) -> str:
    """Return the CSV's text; a cell without a true number is empty, never 0."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, COLUMNS)
    writer.writeheader()
    for result in results:
        writer.writerow(_row(result))
    return buffer.getvalue()


def _row(result: Result) -> dict[str, str]:
    row = {"student": result.student, "lesson": result.lesson, "outcome": result.outcome}
    if result.graded:
        given = [s.points for s in result.scores if s.manual and s.points is not None]
        row |= {
            "points": number(result.points),
            "max_points": number(result.max_points),
            "manual_points": number(sum(given)) if given else "",
            "manual_pending": number(result.pending),
            "points_by_exercise": "; ".join(
                f"{s.name} {'open' if s.points is None else number(s.points)}/"
                f"{number(s.max_points)}"
                for s in result.scores
            ),
        }
    notices = (*result.notices, *result.remarks)
    row |= {"notices": "; ".join(notices), "reason": result.reason}
    return {name: _text(value) if name in TEXTS else value for name, value in row.items()}


def _text(value: str) -> str:
    """Return a text that no spreadsheet takes for a formula and runs."""
    return f"'{value}" if value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


# --- JSON --------------------------------------------------------------------------------------


def as_json(results: Sequence[Result]) -> str:
    """Return all there is to know about the results, as a JSON list."""
    return json.dumps([_plain(result) for result in results], indent=1)


def _plain(result: Result) -> dict[str, Any]:
    return {
        "student": result.student,
        "lesson": result.lesson,
        "outcome": result.outcome,
        "points": result.points,
        "max_points": result.max_points,
        "manual_pending": result.pending if result.graded else None,
        "scores": [
            {"name": s.name, "points": s.points, "max_points": s.max_points, "manual": s.manual}
            for s in result.scores
        ],
        "misconceptions": {
            verdict.exercise: verdict.misconception
            for verdict in result.verdicts
            if verdict.misconception
        },
        "groups": {
            verdict.exercise: [
                {"group": part.title, "points": part.points, "max_points": part.max_points}
                for part in verdict.parts
            ]
            for verdict in result.verdicts
        },
        "notices": list(result.notices),
        "remarks": list(result.remarks),
        "reason": result.reason,
    }


# --- Table -------------------------------------------------------------------------------------


def table(results: Sequence[Result]) -> str:
    """Return one line a student, then what is not graded and why, then the notices."""
    lessons = sorted({result.lesson for result in results})
    by_student: dict[str, dict[str, Result]] = {}
    for result in results:
        by_student.setdefault(result.student, {})[result.lesson] = result
    rows = [["student", *map(printable, lessons), "total", "outcome"]]
    for student, mine in by_student.items():
        shown = [points_text(mine[name]) if name in mine else "" for name in lessons]
        rows.append([printable(student), *shown, _total(mine.values()), _outcome(mine.values())])
    lines = _columns(rows)
    lines.insert(1, "-" * max(map(len, lines)))
    reasons = [r for r in results if r.outcome == NOT_GRADED]
    lines += _list("Not graded:", [(r, r.reason) for r in reasons])
    notices = [(r, words) for r in results for words in (*r.notices, *r.remarks)]
    lines += _list("Notices:", notices)
    return "\n".join([*lines, "", summary(results)])


def summary(results: Sequence[Result]) -> str:
    """Count the outcomes in one line."""
    counts = [
        f"{sum(r.outcome == outcome for r in results)} {outcome}"
        for outcome in (GRADED, NOTICES, NOT_GRADED, MISSING)
    ]
    return f"{counted(len(results), 'submission')}: {', '.join(counts)}."


def counted(count: int, thing: str) -> str:
    """Return "1 page", "2 pages"."""
    return f"{count} {thing}{'' if count == 1 else 's'}"


def _total(results: Sequence[Result]) -> str:
    graded = [r for r in results if r.graded]
    if not graded:
        return "–"
    text = number(sum(r.points for r in graded))
    pending = sum(r.pending for r in graded)
    return f"{text} + manual {number(pending)}" if pending else text


def _outcome(results: Sequence[Result]) -> str:
    """Return a student's worst outcome, and how many notices there are."""
    outcomes = {r.outcome for r in results}
    worst = next(o for o in (NOT_GRADED, MISSING, NOTICES, GRADED) if o in outcomes)
    notices = sum(len(r.notices) + len(r.remarks) for r in results)
    if worst == NOTICES:
        return f"{worst} ({notices})"
    return f"{worst}, {counted(notices, 'notice')}" if notices else worst


def _columns(rows: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _line(text: str) -> str:
    return printable(text.replace("\n", " "))


def _list(title: str, items: list[tuple[Result, str]]) -> list[str]:
    if not items:
        return []
    width = max(len(printable(f"{r.student}  {r.lesson}")) for r, _ in items)
    return [
        "",
        title,
        *(
            f"  {printable(f'{r.student}  {r.lesson}').ljust(width)}  {_line(text)}"
            for r, text in items
        ),
    ]
