"""Lesson 02's given cells with wrong and unwritten functions, and the words of its checks."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from autograder.exercises import gmm_polarization as exercises
from autograder.exercises import load
from autograder.stored_examples import stored_examples
from hopping import check_answers, pick, reveal
from hopping.checking import from_json, judge_check
from hopping.properties import PROPERTIES

LESSON = Path(__file__).parents[1] / "course" / "lessons" / f"{exercises.LESSON}.py"
TRIANGLE = np.array([[1.0, 0.0], [-0.5, np.sqrt(0.75)], [-0.5, -np.sqrt(0.75)]])


def energy(xi, Y, beta):
    return xi @ xi / 2 - np.logaddexp.reduce(beta * (Y @ xi)) / beta


def log_mixture_weights(Y, beta):
    return beta * (Y**2).sum(axis=1) / 2


def log_bumps(xi, Y, beta):
    return log_mixture_weights(Y, beta) - beta * ((xi - Y) ** 2).sum(axis=1) / 2


def energy_gmm(xi, Y, beta):
    return -logsumexp(log_bumps(xi, Y, beta)) / beta


def posterior(xi, Y, beta):
    return softmax(log_bumps(xi, Y, beta))


def log_density(xi, Y, beta):
    norm = logsumexp(log_mixture_weights(Y, beta)) + len(xi) / 2 * np.log(2 * np.pi / beta)
    return logsumexp(log_bumps(xi, Y, beta)) - norm


def unwritten(*_arguments):
    raise NotImplementedError


RIGHT = {
    "energy": energy,
    "log_mixture_weights": log_mixture_weights,
    "energy_gmm": energy_gmm,
    "posterior": posterior,
    "log_density": log_density,
}


def run(*names, **given):
    """Run cells of the lesson, by name, among right functions and what is given instead."""
    headers = re.split(r"^# %%(.*)$", LESSON.read_text("utf-8"), flags=re.MULTILINE)[1:]
    cells = {header: body for header, body in zip(headers[::2], headers[1::2], strict=True)}
    shown = []
    bound = {"np": np, "pick": pick, "softmax": softmax, "triangle": TRIANGLE, "prediction": {}}
    bound |= {"check_answers": check_answers, "kept": 0.163, "rise": 1e-6, "verdict": ""}
    bound |= RIGHT | {"reveal": lambda *tables: shown.append(reveal(*tables))} | given
    for name in names:
        exec(next(body for header, body in cells.items() if f'name="{name}"' in header), bound)
    return shown


def reveal_rows(**given):
    (table,) = run("measure", "measure_with_care", "reveal", **given)
    return [letter for _, _, letter, _ in table.rows]


# ---------------------------------------------------------------- the cells that are given


def test_the_answers_to_the_predictions_are_measured():
    assert reveal_rows() == ["c", "d", "d", "b", "b"]


@pytest.mark.parametrize(
    "wrong",
    [
        unwritten,
        lambda *_: None,
        lambda *_: np.nan,
        lambda *_: np.ones(7),
        lambda *_: 1 / 0,
    ],
)
@pytest.mark.parametrize("name", ["energy", "log_mixture_weights", "posterior"])
def test_a_wrong_function_costs_no_other_prediction(name, wrong):
    needs = {"energy": [0], "log_mixture_weights": [1], "posterior": [2, 3]}[name]
    rows = reveal_rows(**{name: wrong})
    right = ["c", "d", "d", "b", "b"]
    assert [rows[i] for i in range(5) if i not in needs] == [
        right[i] for i in range(5) if i not in needs
    ]


@pytest.mark.parametrize("kept", [None, 0.0, 1.0, 15.7, -1.0, np.ones(3), np.nan])
def test_a_share_that_is_none_leaves_its_row_open(kept, capsys):
    assert reveal_rows(kept=kept) == ["c", "d", "d", "b", ""]
    run("claim_check", kept=kept)
    said = capsys.readouterr().out
    assert ("Measure `kept`" if kept is None else "outside (0, 1)") in said
    assert "%" not in said


def test_the_claim_is_settled_by_what_is_measured(capsys):
    run("claim_check")
    said = capsys.readouterr().out
    assert "16 % keep a valley" in said
    assert "Measured: neither. Your verdict: not written yet." in said


def test_one_road_taken_twice_is_no_comparison(capsys):
    run("two_roads_measured", "posterior_is_attention")
    assert "one road twice" not in capsys.readouterr().out
    run("two_roads_measured", energy_gmm=lambda xi, Y, b: xi @ xi / 2 - logsumexp(b * Y @ xi) / b)
    assert "one road twice" in capsys.readouterr().out
    xi, Y = np.array([0.5, 0.25]), TRIANGLE
    run("posterior_is_attention", xi=xi, Y=Y, posterior=lambda xi, Y, b: softmax(b * (Y @ xi)))
    assert "one road twice" in capsys.readouterr().out


# ---------------------------------------------------------------- what the checks say


def told(name, function):
    verdict = judge_check(from_json(stored_examples(load()[name])), function)
    assert not verdict.passed
    return verdict.message


@pytest.mark.parametrize("hops", [50, 100, 200, 500])
@pytest.mark.parametrize("digits", [3, 4, 6])
def test_a_census_that_counts_unfinished_walks_is_refused(hops, digits):
    def census(Y, betas):
        counts = []
        for beta in betas:
            ends = exercises._settle_all(exercises._many_starts(Y), Y, beta, hops)
            ends = [x for x in ends if exercises._is_valley(x, Y, beta)]
            counts.append(len(np.unique(np.round(ends, digits) + 0.0, axis=0)))
        return np.array(counts)

    assert "valley_census: not right yet" in told("valley_census", census)


def test_a_message_names_the_call_that_it_compares():
    said = told("valley_census", lambda Y, betas: np.full(len(betas), 2))
    assert "the same Y with betas = [0.5] should give [1], and gave [2]" in said
    said = told("energy", lambda xi, Y, beta: energy(xi, Y, beta) + 0.1)
    assert "for the query xi = 0" in said
    said = told(
        "energy_gmm",
        lambda xi, Y, beta: (
            -logsumexp(beta * (np.linalg.norm(Y, axis=1) - np.linalg.norm(xi - Y, axis=1)) / 2)
            / beta
        ),
    )
    assert "-||y||^2/2 = -0.625 for the query xi = y" in said
    assert "it gave -0.559017" in said


def test_every_word_of_the_checks_is_one_of_the_lesson():
    words = []
    for exercise in load().values():
        if exercise.lesson == exercises.LESSON:
            words += [exercise.expects, *(wrong.hint for wrong in exercise.misconceptions)]
            words += [group.title for group in exercise.groups]
            words += [
                constant
                for rule in exercise.properties
                for constant in PROPERTIES[rule].__code__.co_consts[1:]
                if isinstance(constant, str)
            ]
    for word in ("token", "precision", "responsib", "hessian", "wells", "see lse"):
        assert not [text for text in words if word in text.lower()], word
