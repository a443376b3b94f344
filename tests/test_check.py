"""The learner's check: layered messages, each kind of fault with its own sentence."""

import contextlib
import math
import time
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.special import logsumexp

from autograder.exercises import load
from autograder.stored_examples import stored_examples
from hopping import checking
from hopping.cases import Case, Function, decode, encode, show
from hopping.judge import Fault, find_fault, same
from hopping.observe import observe, observe_all
from hopping.verdict import WIDTH, CheckFailed, Verdict, wrapped


@pytest.fixture(scope="module")
def stored():
    """Return freshly derived examples, whatever is stored in the package."""
    return {name: checking.from_json(stored_examples(load()[name])) for name in NAMES}


@pytest.fixture(autouse=True)
def fresh_examples(monkeypatch, stored):
    """Check against those examples."""
    monkeypatch.setattr(checking, "stored_names", lambda: tuple(sorted(stored)))
    monkeypatch.setattr(checking, "load_stored", stored.__getitem__)


NAMES = (
    "lse",
    "attention_weights",
    "lse_grad",
    "fd_grad",
    "lse_hessian",
    "gradcheck",
    "hop_numbers",
)


def named(name, function):
    """Give `function` the exercise's name, as if a learner had written it under that name."""

    def call(*args):
        return function(*args)

    call.__name__ = name
    return call


def message(name, function):
    """Return what a learner reads when the check refuses."""
    with pytest.raises(AssertionError) as caught:
        checking.check(named(name, function))
    return str(caught.value)


def right(xi, Y, beta):
    return logsumexp(beta * (Y @ xi)) / beta


def weights(xi, Y, beta):
    u = beta * (Y @ xi)
    return np.exp(u - logsumexp(u))


def test_a_right_answer_returns_a_verdict_that_says_so():
    verdict = checking.check(named("lse", right))
    assert isinstance(verdict, Verdict)
    assert verdict.passed
    assert "pass" in str(verdict)
    assert "pass" in verdict._repr_html_()


def returns_nothing(xi, Y, beta):
    right(xi, Y, beta)


def changes_input(xi, Y, beta):
    value = right(xi, Y, beta)
    xi += 1
    return value


def keeps_state():
    calls = []

    def function(xi, Y, beta):
        calls.append(1)
        return right(xi, Y, beta) + (len(calls) > 8)

    return function


def divides_by_zero(xi, Y, beta):
    return 1 // 0


@pytest.mark.parametrize(
    ("name", "function", "words"),
    [
        ("lse", returns_nothing, "nothing (None): is a `return` missing?"),
        ("lse", lambda xi, Y, beta: "2.1", "a single number"),
        ("lse", lambda xi, Y, beta: complex(right(xi, Y, beta)), "take real numbers all the way"),
        ("lse", lambda xi, Y, beta: np.array([right(xi, Y, beta)]), "an array of shape (1,)"),
        ("lse", lambda xi, Y, beta: np.nan, "nan"),
        ("lse", lambda xi, Y, beta: np.float32(right(xi, Y, beta)), "too few digits"),
        ("lse", changes_input, "xi changed during the call"),
        ("lse", keeps_state(), "another answer when it was made again"),
        ("lse", divides_by_zero, "ZeroDivisionError"),
        ("lse", divides_by_zero, "return 1 // 0"),
        ("lse", lambda xi, Y: 0.0, "TypeError"),
        ("lse", lambda xi, Y, beta: (n for n in xi), "a generator"),
        ("lse", lambda xi, Y, beta: Y @ Y, "xi (2,), Y (3, 2)"),
        ("lse", lambda xi, Y, beta: {1}, "a set"),
        ("attention_weights", lambda xi, Y, beta: list(weights(xi, Y, beta)), "a list"),
        ("attention_weights", lambda xi, Y, beta: 1.0, "the single number 1"),
        ("attention_weights", lambda xi, Y, beta: weights(xi, Y, beta)[:, None], "(3, 1)"),
        ("attention_weights", lambda xi, Y, beta: weights(xi, Y, beta).astype(int), "whole"),
    ],
)
def test_each_fault_has_its_own_sentence(name, function, words):
    assert words in message(name, function)


def test_a_view_on_an_input_is_refused():
    xi = np.array([1.0, 2.0])
    outcome = observe(lambda xi: xi[:], {"xi": xi})
    assert "shares memory with xi" in find_fault(outcome, xi, 1e-9).words


def faults(value, right, tolerance):
    return find_fault(observe(lambda: value, {}), right, tolerance)


def test_each_part_of_an_answer_has_its_own_tolerance():
    right, tolerance = (np.array([1.0, 50.0]), 81, True), (2e-8, 1, 0)
    assert not faults((right[0] * (1 + 1e-8), 82, True), right, tolerance)
    assert not faults((right[0], np.int64(80), np.True_), right, tolerance)
    for wrong in ((right[0] * (1 + 1e-7), 81, True), (right[0], 79, True), (right[0], 81, False)):
        assert faults(wrong, right, tolerance).layer == "value"
        left, other = (observe(lambda answer=a: answer, {}) for a in (right, wrong))
        assert not same(left, other, tolerance)
    assert faults(80, 81, 1e-9).layer == "value"


def test_not_written_is_not_called_wrong():
    def stub(xi, Y, beta):
        raise NotImplementedError

    text = message("lse", stub)
    assert "not written yet" in text
    assert "not right" not in text


def unwritten(xi, Y, beta):
    raise NotImplementedError


def test_a_function_that_calls_an_unwritten_one_is_not_blamed():
    text = message("lse_grad", lambda xi, Y, beta: unwritten(xi, Y, beta) @ Y)
    assert "lse_grad: it calls unwritten, which is not written yet" in text


def test_a_wrong_function_that_is_called_is_pointed_at():
    namespace = {"np": np}
    code = "def attention_weights(xi, Y, beta): return np.ones(len(Y))\n"
    code += "def lse_grad(xi, Y, beta): return attention_weights(xi, Y, beta) @ Y\n"
    exec(code, namespace)
    with pytest.raises(AssertionError, match="first look at attention_weights"):
        checking.check(namespace["lse_grad"])


def test_what_was_expected_belongs_to_the_call_that_is_shown():
    text = message("lse", lambda xi, Y, beta: right(xi, Y, beta) ** 2)
    call = next(line for line in text.splitlines() if "called with" in line)
    expected = next(line for line in text.splitlines() if "expected" in line)
    assert "xi = [0.75, -0.5]" in call
    assert "0.6875" in expected, "the largest score of this very call"


def test_an_expectation_that_holds_is_not_held_against_the_learner():
    text = message("lse", lambda xi, Y, beta: right(xi, Y, beta) - 1e-4)
    assert "off by 1e-04" in text


def test_an_endless_loop_is_given_up():
    def endless(xi, Y, beta):
        while True:
            with contextlib.suppress(Exception):
                time.sleep(0.01)

    case = Case("A", {"xi": np.ones(2), "Y": np.ones((2, 2)), "beta": 1.0})
    started = time.monotonic()
    outcomes = observe_all(endless, [case] * 5, seconds=0.3)
    assert {outcome.raised for outcome in outcomes} == {"TimeIsUp"}
    assert time.monotonic() - started < 3


def test_prints_and_warnings_cost_nothing_and_are_mentioned(capfd):
    def noisy(xi, Y, beta):
        print("noise")
        warnings.warn("noise", stacklevel=1)
        return right(xi, Y, beta)

    verdict = checking.check(named("lse", noisy))
    assert verdict.passed
    assert "costs nothing" in verdict.message
    assert capfd.readouterr() == ("", "")


def test_a_property_speaks_when_no_wrong_answer_is_recognised():
    text = message("lse", lambda xi, Y, beta: right(xi, Y, beta) + 7)
    assert "largest score" in text
    assert "hint" not in text
    assert "ignores" not in text


def test_an_answer_that_only_knows_the_examples_is_found_out():
    stored = checking.load_stored("lse")

    def parrot(xi, Y, beta):
        for e in stored.examples:
            if np.array_equal(e.inputs["Y"], Y) and e.inputs["beta"] == beta:
                return e.right
        return 0.0

    assert "not right yet" in message("lse", parrot)


@pytest.mark.parametrize("name", ["gradcheck", "hop_numbers"])
def test_a_table_of_the_examples_is_no_answer_where_functions_are_given(name):
    examples = checking.load_stored(name).examples

    def parrot(f, grad, xi):
        for e in examples:
            if all(map(np.array_equal, e.inputs.values(), (f, grad, xi))):
                return e.right
        return examples[0].right

    text = message(name, parrot)
    assert "= x" in text
    assert "not right yet" in text


def test_a_near_miss_shows_how_near():
    text = message("lse", lambda xi, Y, beta: right(xi, Y, beta) + 1e-6)
    assert "off by 1e-06" in text


def test_a_near_miss_asks_for_what_stopped_and_what_was_lost():
    text = message("lse", lambda xi, Y, beta: right(xi, Y, beta) + 1e-6)
    assert "stop too early" in text
    assert "digits lost" in text


def test_an_array_in_place_of_a_tuple_is_called_what_it_is():
    fault = faults(np.ones(2), (np.ones(2), 81, True), 1e-9)
    assert fault.words == "an ndarray; promised is a tuple of 3 values"


def test_a_message_shows_no_expected_value_and_no_stack():
    text = message("lse", lambda xi, Y, beta: right(xi, Y, beta) * 1.5)
    assert "1.387" not in text
    assert "Traceback" not in text
    with pytest.raises(CheckFailed) as caught:
        checking.check(named("lse", lambda xi, Y, beta: 0.0))
    assert caught.value._render_traceback_() == wrapped(str(caught.value)).splitlines()


class Calls:
    def __call__(self, xi, Y, beta):
        return right(xi, Y, beta)


@pytest.mark.parametrize(
    "function", [Calls(), partial(right), lambda xi, Y, beta: right(xi, Y, beta)]
)
def test_the_name_may_come_from_the_notebook(function):
    lse = function
    globals()["lse"] = lse
    try:
        assert checking.check(lse).passed
    finally:
        del globals()["lse"]


def test_an_unknown_name_lists_the_exercises():
    with pytest.raises(ValueError, match="lse_grad"):
        checking.check(named("softmx", right))
    with pytest.raises(TypeError, match="the function itself"):
        checking.check(3.0)


@pytest.mark.parametrize(
    "value",
    [
        1.5,
        True,
        "dome",
        None,
        np.array([[1.0, -0.0], [np.inf, 2.5]]),
        np.array([True, False]),
        np.array([1, 2]),
        np.array([1.5, 2.0 - 1.0j]),
        (np.array([1.0]), 3, True),
        [1.0, 2.0],
        Function("product"),
    ],
)
def test_plain_data_comes_back_as_it_went(value):
    back = decode(encode(value))
    assert type(back) is type(value)
    if isinstance(value, np.ndarray):
        assert back.dtype == value.dtype
    np.testing.assert_equal(back, value) if not isinstance(value, Function) else None
    assert show(back) == show(value)


def test_inputs_keep_their_memory_order():
    Y = np.asfortranarray(np.arange(6.0).reshape(3, 2))
    seen = []
    observe(lambda array: seen.append(array.flags.f_contiguous), {"Y": Y})
    assert seen == [True]


def test_a_property_that_never_ends_is_given_up(monkeypatch):
    def stuck_off_the_examples(xi, Y, beta):
        while len(Y) == 5:
            pass
        return right(xi, Y, beta)

    monkeypatch.setattr(checking, "CALL_SECONDS", 0.3)
    assert "no answer within 0.3 s" in message("lse", stuck_off_the_examples)


# ---------------------------------------------------------------- how long its lines are


def test_long_lines_break_between_words_below_the_words_above():
    text = message("lse", lambda xi, Y, beta: (Y.T @ Y.T).sum())
    assert max(map(len, text.splitlines())) > WIDTH
    lines = wrapped(text).splitlines()
    assert max(map(len, lines)) <= WIDTH
    raised = next(i for i, line in enumerate(lines) if "it raised" in line)
    assert lines[raised + 1].startswith(" " * 15 + lines[raised + 1].strip())
    assert "".join(wrapped(text).split()) == "".join(text.split())


@pytest.mark.parametrize("text", ["word " * 40, "  hint         " + "word " * 40, "x" * 200, ""])
def test_no_word_is_broken_and_wrapping_again_changes_nothing(text):
    once = wrapped(text)
    assert once.split() == text.split()
    assert wrapped(once) == once


def test_a_verdict_fits_as_text_and_as_a_page():
    verdict = Verdict("lse", False, "lse: not right yet.\n  hint         " + "a < b " * 60)
    assert max(map(len, str(verdict).splitlines())) <= WIDTH
    assert all(len(line) < 2 * WIDTH for line in verdict._repr_html_().splitlines())
    assert "a &lt; b" in verdict._repr_html_()


# ---------------------------------------------------------------- which call it speaks of


def lines(text, label):
    return [line.split(label)[1].strip() for line in text.splitlines() if f"  {label}  " in line]


def test_what_was_expected_stands_below_the_call_of_which_it_was():
    text = message("fd_grad", lambda f, xi, h=1e-5: np.array([5.0, 6.0])[: len(xi)])
    assert lines(text, "called with")[-1].startswith("f(x) = 1*x[0] + 2*x[1] + ...")
    assert lines(text, "came back") == ["[5, 6]"]
    assert lines(text, "expected")[0].startswith("[1, 2]")


def hessian(xi, Y, beta):
    p = weights(xi, Y, beta)
    return beta * ((Y.T * p) @ Y - np.outer(Y.T @ p, Y.T @ p))


def test_a_property_at_another_place_shows_that_place():
    text = message("lse_hessian", lambda xi, Y, beta: hessian(xi, Y, beta) * 1.25)
    assert "xi = [0, 0]" in lines(text, "called with")[0]
    assert "at xi = 0" in lines(text, "expected")[0]


def test_a_comparison_shows_both_calls():
    text = message("lse", lambda xi, Y, beta: right(xi, Y, beta) * (2 if len(Y) == 6 else 1))
    (call,), (then,) = lines(text, "called with"), lines(text, "then with")
    assert "xi = " in call
    assert then.startswith("Y = [[")
    assert then.endswith("xi and beta as before")
    assert len(lines(text, "came back")) == 2
    assert "every token is there twice" in lines(text, "expected")[0]


def test_an_error_away_from_the_examples_is_told_as_one():
    def fails(xi, Y, beta):
        if len(Y) == 7:
            raise KeyError("seven")
        return right(xi, Y, beta)

    text = message("lse", fails)
    assert lines(text, "it raised") == ["KeyError: 'seven'"]
    assert "TypeError" not in text
    assert lines(text, "came back") == []


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "nothing (None): is a `return` missing?; promised is a single number"),
        (np.ones(3), "[1, 1, 1]; promised is a single number"),
        ("2", "values of type <U1; promised is a single number"),
    ],
)
def test_another_kind_of_answer_away_from_the_examples_is_no_error_of_ours(value, words):
    text = message("lse", lambda xi, Y, beta: value if len(Y) == 7 else right(xi, Y, beta))
    assert lines(text, "came back")[-1] == words


def test_an_answer_of_another_size_away_from_the_examples_is_refused():
    def cut(xi, Y, beta):
        return weights(xi, Y, beta)[: 5 if len(Y) == 7 else None]

    assert "not right yet" in message("attention_weights", cut)


@pytest.mark.parametrize("error", [KeyError, NameError, TypeError])
def test_an_error_of_a_property_itself_is_not_the_learners(monkeypatch, stored, error):
    def broken(function, inputs):
        function(*inputs.values())
        raise error("ours")

    monkeypatch.setitem(checking.PROPERTIES, "between_max_and_log_n", broken)
    with pytest.raises(error, match="ours"):
        checking.check(named("lse", right))
    monkeypatch.delitem(checking.PROPERTIES, "between_max_and_log_n")
    with pytest.raises(KeyError, match="between_max_and_log_n"):
        checking.check(named("lse", right))


def test_an_unknown_property_is_refused_where_it_is_declared():
    with pytest.raises(ValueError, match=r"lse: .*'is_od'.*is_odd"):
        replace(load()["lse"], properties=("is_od",))
    with pytest.raises(ValueError, match="'qqq'"):
        replace(load()["lse"], properties=("qqq",))


# ---------------------------------------------------------------- a stub that was begun


def begun(xi, Y, beta):
    """Say something."""
    scores = beta * (Y @ xi)
    scores.sum()
    raise NotImplementedError


def barely(xi, Y, beta):
    """Say something."""
    pass
    raise NotImplementedError("later")


def left_on_top(xi, Y, beta):
    raise NotImplementedError
    return right(xi, Y, beta)


@pytest.mark.parametrize("function", [begun, left_on_top])
def test_a_line_that_is_left_over_is_named(monkeypatch, function):
    monkeypatch.setattr(function, "__name__", "lse")
    monkeypatch.setattr(function, "__code__", function.__code__.replace(co_name="lse"))
    with pytest.raises(CheckFailed) as caught:
        checking.check(function)
    assert "the line `raise NotImplementedError` is still there" in str(caught.value)
    assert "not written yet" not in str(caught.value)


def test_a_docstring_is_no_beginning(monkeypatch):
    monkeypatch.setattr(barely, "__name__", "lse")
    monkeypatch.setattr(barely, "__code__", barely.__code__.replace(co_name="lse"))
    with pytest.raises(CheckFailed, match="not written yet"):
        checking.check(barely)


def test_a_function_that_calls_a_begun_one_hears_of_its_line():
    text = message("lse_grad", lambda xi, Y, beta: begun(xi, Y, beta) @ Y)
    assert "lse_grad: it calls begun" in text
    assert "still there" in text


# ---------------------------------------------------------------- Python's own numbers


def test_python_numbers_that_overflow_are_recognised():
    def by_loop(xi, Y, beta):
        return (
            math.log(
                sum(math.exp(beta * sum(y * x for y, x in zip(row, xi, strict=True))) for row in Y)
            )
            / beta
        )

    with pytest.raises(CheckFailed) as caught:
        checking.check(named("lse", by_loop))
    assert lines(str(caught.value), "it raised")[0].startswith("OverflowError")
    verdict = checking.judge_check(checking.load_stored("lse"), by_loop)
    assert verdict.misconception == "no-max-subtraction"
    assert lines(verdict.message, "hint")


def test_a_slow_right_answer_has_the_time_of_a_call_for_each_call_of_a_property(monkeypatch):
    monkeypatch.setattr(checking, "CALL_SECONDS", 0.5)

    def slow(xi, Y, beta):
        time.sleep(0.2)
        return load()["lse"].reference(xi, Y, beta)

    assert checking.judge_check(checking.load_stored("lse"), slow).passed


def test_a_call_that_is_made_twice_is_shown_once():
    inputs, wrong = {"xi": np.zeros(2)}, Fault("value", "0.3")
    twice = checking._Broken([(inputs, wrong), ({"xi": np.zeros(2)}, wrong)], "0")
    assert len(twice.shown) == 1
