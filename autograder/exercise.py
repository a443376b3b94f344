"""What an exercise is: one declaration from which checks, exams, hints and tests are derived."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from hopping.cases import Case
from hopping.judge import Tolerance
from hopping.properties import PROPERTIES


@dataclass(frozen=True)
class Group:
    """Hidden cases that are scored together: all of them pass, or the group gives nothing.

    Attributes
    ----------
    name, title : str
        A slug, and the words a learner reads.
    weight : float
        Share of the exercise's points; the weights of an exercise sum to 1.
    cases : tuple of Case
        The calls. Never shown to a learner.
    """

    name: str
    title: str
    weight: float
    cases: tuple[Case, ...]


@dataclass(frozen=True)
class Misconception:
    """A plausible wrong answer: a slug, the hint that helps, and a function that makes it."""

    slug: str
    hint: str
    function: Callable[..., Any]


@dataclass(frozen=True)
class Alternative:
    """A right answer that looks different from the reference and must get full points."""

    name: str
    function: Callable[..., Any]


@dataclass(frozen=True)
class Exercise:
    """One function a learner writes.

    Attributes
    ----------
    name : str
        The function's name, unique in the course.
    lesson : str
        The assignment it belongs to, like ``"01_lse_gradient"``.
    points : float
        What the hidden exam gives at most.
    expects : str
        The promise of a right answer as a property, for messages; it gives no value away.
    reference : callable
        The right answer.
    examples : tuple of Case
        Public calls whose right answers learners may see.
    groups : tuple of Group
        The hidden exam.
    misconceptions : tuple of Misconception
        Known wrong answers.
    alternatives : tuple of Alternative
        Right answers of unusual form.
    properties : tuple of str
        Names of the property checks in `hopping.properties` that a right answer has.
    tolerance : float or tuple of float
        Absolute and relative tolerance of every comparison; for whole numbers absolute only. A
        tuple gives each part of a tuple answer its own.
    """

    name: str
    lesson: str
    points: float
    expects: str
    reference: Callable[..., Any]
    examples: tuple[Case, ...]
    groups: tuple[Group, ...]
    misconceptions: tuple[Misconception, ...]
    alternatives: tuple[Alternative, ...]
    properties: tuple[str, ...] = ()
    tolerance: Tolerance = 1e-9

    def __post_init__(self) -> None:
        """Refuse a declaration whose weights, names, slugs or properties cannot be right."""
        if abs(sum(group.weight for group in self.groups) - 1) > 1e-12:
            raise ValueError(f"{self.name}: the weights of its groups must sum to 1")
        for what, names in (
            ("example", [case.name for case in self.examples]),
            ("group", [group.name for group in self.groups]),
            ("misconception", [wrong.slug for wrong in self.misconceptions]),
            ("alternative", [other.name for other in self.alternatives]),
        ):
            if not names or len(set(names)) != len(names):
                raise ValueError(f"{self.name}: needs one {what} at least, each with its own name")
        for name in self.properties:
            if name not in PROPERTIES:
                near = get_close_matches(name, PROPERTIES, 1, cutoff=0)
                raise ValueError(
                    f"{self.name}: there is no property {name!r}; the nearest is {near[0]!r}"
                )
