"""Questions with lettered options: commit to a choice first, measure the answer later."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hopping.cases import show
from hopping.verdict import CheckFailed

Option = float | str
LETTERS = ("a", "b", "c", "d")


@dataclass(frozen=True)
class Measured:
    """A measured answer: the letter of the option it picks, and the measured value."""

    choice: str
    value: Option


@dataclass(frozen=True)
class Comparison:
    """Choices beside measured answers, one row a question; shows as a table.

    Attributes
    ----------
    rows : tuple of (question, choice, measured letter, measured value as text)
        The measured entries are empty strings where nothing could be measured yet.
    closing : str
        One sentence below the table.
    """

    rows: tuple[tuple[str, str, str, str], ...]
    closing: str

    def __str__(self) -> str:
        lines = [f"{'question':10}{'you':6}{'measured':10}value"]
        for row in self.rows:
            question, choice, letter, value = row
            lines.append(f"{question:10}{choice or '–':6}{letter or '–':10}{value}  {_mark(row)}")
        return "\n".join([*lines, "", self.closing])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in ("question", "you", "measured", "value", ""))
        body = "".join(
            "<tr>"
            + "".join(f"<td>{html.escape(cell)}</td>" for cell in (*row, _mark(row)))
            + "</tr>"
            for row in self.rows
        )
        return f"<table><tr>{head}</tr>{body}</table><p>{html.escape(self.closing)}</p>"


def _mark(row: tuple[str, str, str, str]) -> str:
    _, choice, letter, _ = row
    return "" if not letter else "✓" if choice == letter else "✗"


def pick(value: Option, **options: Option) -> Measured:
    """Return the option that a measurement picks.

    Parameters
    ----------
    value : float or str
        The measured number, or the measured answer as one of the options' words.
    **options : float or str
        The options by letter, like ``a=0.0, b=1.151``.

    Returns
    -------
    Measured
        For a number the option with the smallest relative difference, for a word the equal one.

    Raises
    ------
    ValueError
        If a word is none of the options, or no option is nearer than all others.
    """
    if isinstance(value, str):
        letters = [letter for letter, option in options.items() if option == value]
        if len(letters) != 1:
            raise ValueError(f"measured {value!r}, which is not one of {list(options.values())}")
        return Measured(letters[0], value)
    number = float(value)
    distances = {letter: _apart(number, float(option)) for letter, option in options.items()}
    ranked = sorted(distances, key=distances.__getitem__)
    if len(ranked) > 1 and distances[ranked[0]] == distances[ranked[1]]:
        raise ValueError(f"measured {number:g}, which is as near to {ranked[0]} as to {ranked[1]}")
    return Measured(ranked[0], number)


def commit(prediction: Mapping[str, str], questions: int) -> str:
    """Accept a prediction once every question has a choice; being right is not asked.

    Parameters
    ----------
    prediction : mapping of str to str
        ``{"q1": "b", ...}``.
    questions : int
        How many questions there are: q1, q2, ...

    Raises
    ------
    CheckFailed
        An AssertionError naming the questions without a choice of a, b, c or d.
    """
    open_ones = [
        name
        for name in (f"q{i}" for i in range(1, questions + 1))
        if _letter(prediction.get(name)) not in LETTERS
    ]
    if open_ones:
        raise CheckFailed(
            f"Choose a, b, c or d for {', '.join(open_ones)}, then run the prediction cell and "
            "this one again. A wrong guess costs nothing."
        )
    return f"{questions} predictions committed. You will meet them again at the end."


def check_answers(
    answers: Mapping[str, str], measured: Mapping[str, Callable[[], Measured]]
) -> Comparison:
    """Check warm-up answers at once, each against a measurement made now.

    An answer that is none of the letters gets no measurement to see: it is no answer yet.
    """
    rows = tuple(
        row if row[1] in LETTERS else (*row[:2], "", "write a, b, c or d")
        for row in _rows(answers, measured)
    )
    right = sum(choice == letter for _, choice, letter, _ in rows if choice in LETTERS)
    missing = sum(choice not in LETTERS for _, choice, _, _ in rows)
    closing = f"{right} of {len(rows)} right."
    if missing:
        closing += f" {missing} not answered yet: write a letter and run the cell again."
    elif right < len(rows):
        closing += " Compare the measured value with your reason, then go on."
    return Comparison(rows, closing)


def reveal(
    prediction: Mapping[str, str], measured: Mapping[str, Callable[[], Measured]]
) -> Comparison:
    """Set a prediction beside what is measured now.

    Parameters
    ----------
    prediction : mapping of str to str
        The committed choices.
    measured : mapping of str to callable
        For each question a function without arguments that measures and picks. One that needs a
        function which is not written yet leaves its row open.
    """
    rows = _rows(prediction, measured)
    known = [(choice, letter) for _, choice, letter, _ in rows if letter]
    right = sum(choice == letter for choice, letter in known)
    closing = f"You predicted {right} of {len(known)}. A wrong prediction marks what to remember."
    if 0 < len(known) < len(rows):
        closing += f" {len(rows) - len(known)} cannot be measured yet."
    if not known:
        closing = "Nothing can be measured yet: write your functions, then run this cell again."
    return Comparison(rows, closing)


def _rows(
    choices: Mapping[str, str], measured: Mapping[str, Callable[[], Measured]]
) -> tuple[tuple[str, str, str, str], ...]:
    rows = []
    for question, measure in measured.items():
        choice = _letter(choices.get(question))
        try:
            answer = measure()
            letter, value = answer.choice, _words(answer.value)
        except NotImplementedError:
            letter, value = "", "not measured yet: a function it needs is not written"
        except Exception as error:  # a wrong function of the learner's must not hide the others
            letter, value = "", f"could not be measured: {type(error).__name__}: {error}"
        rows.append((question, choice, letter, value))
    return tuple(rows)


def _letter(choice: object) -> str:
    return choice.strip(" ().").lower() if isinstance(choice, str) else ""


def _words(value: Option) -> str:
    return value if isinstance(value, str) else show(float(value))


def _apart(left: float, right: float) -> float:
    """Return the relative difference of two numbers, 0 for equal ones and 1 at most of one sign."""
    if left == right:
        return 0.0
    if not (math.isfinite(left) and math.isfinite(right)):
        return math.inf
    return abs(left - right) / max(abs(left), abs(right))
