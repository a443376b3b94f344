"""Tests of the tests: every known wrong answer is refused by name, every right one accepted."""

from functools import cache

import pytest

from autograder.examiner import examine
from autograder.exercises import load
from autograder.stored_examples import stored_examples
from hopping import checking

EXERCISES = load()
WRONG = [(e, wrong) for e in EXERCISES.values() for wrong in e.misconceptions]
RIGHT = [(e, other) for e in EXERCISES.values() for other in e.alternatives]


@cache
def stored(name):
    """Return freshly derived examples."""
    return checking.from_json(stored_examples(EXERCISES[name]))


def check(exercise, function):
    """Return the verdict that a learner would get."""
    return checking.judge_check(stored(exercise.name), function)


def names(pairs):
    return [f"{e.name}-{getattr(x, 'slug', getattr(x, 'name', ''))}" for e, x in pairs]


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=list(EXERCISES))
def test_the_reference_passes(exercise):
    assert check(exercise, exercise.reference).passed
    verdict = examine(exercise.name, exercise.reference)
    assert verdict.passed
    assert verdict.points == exercise.points


@pytest.mark.parametrize(("exercise", "wrong"), WRONG, ids=names(WRONG))
def test_a_wrong_answer_is_refused_with_its_own_hint(exercise, wrong):
    by_check = check(exercise, wrong.function)
    by_exam = examine(exercise.name, wrong.function)
    assert not by_exam.passed
    assert by_exam.points < exercise.points
    told = by_exam if by_check.passed else by_check
    assert wrong.hint in told.message
    assert told.misconception == wrong.slug


@pytest.mark.parametrize(("exercise", "other"), RIGHT, ids=names(RIGHT))
def test_an_unusual_right_answer_gets_full_points(exercise, other):
    assert check(exercise, other.function).passed, check(exercise, other.function).message
    verdict = examine(exercise.name, other.function)
    assert verdict.points == exercise.points, verdict.message


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=list(EXERCISES))
def test_a_stub_is_not_attempted_and_not_wrong(exercise):
    def stub(*args):
        raise NotImplementedError

    verdict = check(exercise, stub)
    assert not verdict.passed
    assert "not written yet" in verdict.message
    assert "not right" not in verdict.message
    assert examine(exercise.name, stub).points == 0.0


def test_how_many():
    counts = {
        lesson: (
            sum(e.lesson == lesson for e in EXERCISES.values()),
            sum(e.lesson == lesson for e, _ in WRONG),
            sum(e.lesson == lesson for e, _ in RIGHT),
        )
        for lesson in sorted({e.lesson for e in EXERCISES.values()})
    }
    for lesson, (exercises, wrong, right) in counts.items():
        print(f"{lesson}: {exercises} functions, {wrong} wrong answers, {right} unusual right ones")
    assert all(len(e.alternatives) >= 4 for e in EXERCISES.values())
    assert len(WRONG) >= 39
