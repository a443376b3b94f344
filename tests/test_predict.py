"""Lettered questions: picking by measurement, committing, comparing."""

import math

import pytest

from hopping.predict import check_answers, commit, pick, reveal


@pytest.mark.parametrize(
    ("value", "options", "letter"),
    [
        (1.1513, {"a": 0, "b": 1.151, "c": 2.303, "d": 10}, "b"),
        (3e-6, {"a": 1e-2, "b": 1e-5, "c": 1e-8}, "b"),
        (0.0, {"a": 0, "b": 1.0}, "a"),
        (math.inf, {"a": 1e300, "b": math.inf}, "b"),
        ("up", {"a": "down", "b": "up"}, "b"),
    ],
)
def test_pick_takes_the_nearest_option(value, options, letter):
    assert pick(value, **options).choice == letter


def test_pick_refuses_what_no_option_fits():
    with pytest.raises(ValueError, match="not one of"):
        pick("sideways", a="up", b="down")
    with pytest.raises(ValueError, match="as near to"):
        pick(0.0, a=1.0, b=-1.0)


def test_a_measurement_that_fails_leaves_the_others_standing():
    measured = {"q1": lambda: pick(1 / 0, a=0, b=1), "q2": lambda: pick(2, a=1, b=2)}
    comparison = reveal({"q1": "a", "q2": "b"}, measured)
    assert "could not be measured: ZeroDivisionError" in str(comparison)
    assert "You predicted 1 of 1." in comparison.closing


def test_nothing_measured_is_not_a_score():
    def unwritten():
        raise NotImplementedError

    assert "Nothing can be measured yet" in reveal({"q1": "a"}, {"q1": unwritten}).closing


def test_commit_asks_for_every_choice_and_not_for_right_ones():
    assert "2 predictions" in commit({"q1": "d", "q2": " A "}, 2)
    with pytest.raises(AssertionError, match="q2, q3"):
        commit({"q1": "a", "q2": "", "q3": "x"}, 3)
    with pytest.raises(AssertionError, match="q2") as caught:
        commit({"q1": "a", "q2": None}, 2)
    assert " ".join(caught.value._render_traceback_()) == str(caught.value)


def test_check_answers_counts_right_and_open_ones():
    measured = {"w1": lambda: pick(0.5, a=0, b=0.5), "w2": lambda: pick(1, a=1, b=2)}
    text = str(check_answers({"w1": "b", "w2": "b"}, measured))
    assert "1 of 2 right" in text
    assert "✓" in text
    assert "✗" in text
    open_one = check_answers({"w1": "(b)"}, measured)
    assert "1 of 2 right. 1 not answered" in open_one.closing
    assert open_one.rows[1] == ("w2", "", "", "write a, b, c or d")


@pytest.mark.parametrize("answer", ["A", " a ", "(a)", "a.", "A) "])
def test_a_letter_counts_however_it_is_written(answer):
    comparison = check_answers({"w1": answer}, {"w1": lambda: pick(0, a=0, b=1)})
    assert comparison.rows == (("w1", "a", "a", "0"),)
    assert comparison.closing == "1 of 1 right."


@pytest.mark.parametrize("answer", ["inf", "1e-5", "e", "ab", "", None, 3])
def test_what_is_no_letter_is_no_answer(answer):
    comparison = check_answers({"w3": answer}, {"w3": lambda: pick(math.inf, a=math.inf, b=1)})
    ((_, _, letter, value),) = comparison.rows
    assert (letter, value) == ("", "write a, b, c or d")
    assert "✗" not in str(comparison)
    assert "0 of 1 right. 1 not answered yet" in comparison.closing


def test_reveal_leaves_open_what_cannot_be_measured_yet():
    def unwritten():
        raise NotImplementedError

    comparison = reveal({"q1": "a", "q2": "b"}, {"q1": unwritten, "q2": lambda: pick(2, a=1, b=2)})
    assert "not measured yet" in str(comparison)
    assert comparison.rows[1][:3] == ("q2", "b", "b")
    assert "You predicted 1 of 1." in comparison.closing
    assert "1 cannot be measured yet" in comparison.closing
    assert "<table>" in comparison._repr_html_()
