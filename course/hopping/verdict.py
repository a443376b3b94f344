"""What a check or an exam says about one function."""

from __future__ import annotations

import html
import re
import textwrap
from dataclasses import dataclass

WIDTH = 84  # columns that fit a notebook's output, which breaks longer lines within words
# What stands before the words of a line: blanks, and a label with two blanks behind it.
START = re.compile(r" *(?:[a-z]+(?: [a-z]+)*  +)?")


def wrapped(message: str) -> str:
    """Break the long lines of a message between words, each below the words of its line."""
    return "\n".join(
        textwrap.fill(
            line,
            WIDTH,
            subsequent_indent=" " * START.match(line).end(),
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in message.splitlines()
    )


@dataclass(frozen=True)
class Part:
    """One group of hidden cases: its title, the points it gave and the points it could give."""

    title: str
    points: float
    max_points: float


@dataclass(frozen=True)
class Verdict:
    """The judgement on one function; prints as text and shows as HTML in a notebook.

    Attributes
    ----------
    exercise : str
        The exercise's name, which is the function's name.
    passed : bool
        True when nothing was found wrong.
    message : str
        What a learner reads, each sentence on one line however long.
    misconception : str or None
        Slug of the known wrong answer that was recognised.
    points, max_points : float
        Points earned and points possible; both 0 for a learner's check.
    parts : tuple of Part
        The groups of cases behind the points, empty for a learner's check.
    """

    exercise: str
    passed: bool
    message: str
    misconception: str | None = None
    points: float = 0.0
    max_points: float = 0.0
    parts: tuple[Part, ...] = ()

    def __str__(self) -> str:
        return wrapped(self.message)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        colour = "#009E73" if self.passed else "#D55E00"
        return (
            f'<div style="border-left: 4px solid {colour}; padding: 0.3em 0.8em; '
            f'white-space: pre-wrap; font-family: monospace">{html.escape(str(self))}</div>'
        )


class CheckFailed(AssertionError):
    """Something is not as it should be; a notebook shows the message without our own code."""

    def _render_traceback_(self) -> list[str]:
        return wrapped(str(self)).splitlines()
