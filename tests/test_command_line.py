"""The command as a stranger meets it: help, errors, exit codes, the bundle, the sample class."""

import csv
import dataclasses
import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml
from classroom import EXERCISES, LESSON, NOTEBOOK, answered, hand_in

import autograder.exercises
from autograder.bundle import write_bundle
from autograder.command_line import main
from autograder.course import Course, CourseError
from autograder.demo import students
from autograder.examiner import examine
from autograder.leaks import leaks
from autograder.results import collect

pytestmark = pytest.mark.usefixtures("no_pool")

ROOT = Path(__file__).parent.parent
COMMANDS = ("build", "release", "grade", "feedback", "export", "demo")


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "autograder.command_line", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


# --- Help and usage ----------------------------------------------------------------------------


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_help_says_what_it_does_with_examples_and_exit_codes(command, capsys):
    with pytest.raises(SystemExit) as left:
        main(["--help"] if command is None else [command, "--help"])
    assert left.value.code == 0
    text = capsys.readouterr().out
    assert "exit codes:" in text
    assert f"autograder {command or 'grade'} " in text
    if command is None:
        assert all(f"    {name} " in text for name in COMMANDS)
    else:
        assert "--course" in text


def test_help_is_there_at_once():
    code = "import sys, autograder.command_line; print('nbgrader' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["polish"],
        ["grade", "--fast"],
        ["grade", "ana"],
        ["grade", "--workers", "0"],
        ["grade", "--workers", "many"],
    ],
)
def test_a_wrong_argument_is_exit_code_2(arguments, capsys):
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    assert "usage: autograder" in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_outside_a_course_one_line_says_so(command, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main([command]) == 2
    assert main([command, "--course", str(tmp_path / "nowhere")]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(f"autograder: {tmp_path}: no course here.")
    assert second.startswith(f"autograder: {tmp_path / 'nowhere'}: no course here")


def test_the_course_is_found_from_a_folder_inside_it(course, monkeypatch, capsys):
    monkeypatch.chdir(course.source / LESSON)
    assert main(["release"]) == 0
    assert capsys.readouterr().out == f"release/{LESSON}: up to date\n"


def test_an_error_has_no_traceback_and_its_own_exit_code(course):
    done = run("grade", "--course", str(course.root))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"autograder: {course.submitted}: nothing was handed in.")


def test_a_missing_lesson_is_named(course, capsys):
    assert main(["release", "--lesson", "09_x", "--course", str(course.root)]) == 2
    assert "09_x: no such assignment" in capsys.readouterr().err


def test_ctrl_c_says_that_the_command_can_go_on(course, monkeypatch, capsys):
    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("autograder.results.collect", stop)
    assert main(["export", "--course", str(course.root)]) == 130
    assert capsys.readouterr().err == "\nautograder: stopped. The same command goes on from here.\n"


DECLARATION = """
from dataclasses import replace

from autograder.exercises.lse_gradient import LSE

EXERCISES = ({})
"""
GROUP = 'replace(LSE, groups=(replace(LSE.groups[0], weight=0.9),), name="new", lesson="09_odd"),'


@pytest.mark.parametrize(
    ("exercises", "says"),
    [
        (GROUP, "new: the weights of its groups must sum to 1. Correct the declaration."),
        ('replace(LSE, lesson="09_odd"),', "'lse' is declared also in autograder/exercises/lse_gr"),
        ('replace(LSE, name="new"),', "'new' is declared for the lesson '01_lse_gradient'."),
        ('replace(LSE, lesson="09_odd", name="new"),' * 2, "'new' is declared twice."),
        ("LSE", "TypeError: 'Exercise' object is not iterable. Correct the declaration."),
        ("LSE,,", "SyntaxError: "),
    ],
)
def test_a_wrong_declaration_is_one_line_with_its_file(
    exercises, says, course, tmp_path, monkeypatch, capsys
):
    (tmp_path / "odd.py").write_text(DECLARATION.format(exercises))
    package = autograder.exercises
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, "autograder.exercises.odd", raising=False)
    package.load.cache_clear()
    hand_in(course, "ana", answered(course))
    try:
        for command in ("build", "grade", "demo"):
            assert main([command, "--course", str(course.root)]) == 2
            (line,) = [
                line for line in capsys.readouterr().err.splitlines() if "grading:" not in line
            ]
            assert line.startswith("autograder: autograder/exercises/odd.py: ")
            assert says in line
    finally:
        package.load.cache_clear()


# --- Grading commands --------------------------------------------------------------------------


def test_grade_export_and_feedback_follow_each_other(course, capsys):
    hand_in(course, "ana", answered(course))
    where = ["--course", str(course.root)]
    assert main(["export", *where]) == 0
    assert "handed in, but not graded yet" in (course.class_folder / "grades.csv").read_text()
    capsys.readouterr()

    assert main(["grade", "--json", *where]) == 0
    (shown,) = json.loads(capsys.readouterr().out)
    assert (shown["student"], shown["outcome"], shown["points"]) == ("ana", "graded", 8.0)
    assert shown["manual_pending"] == 10.0
    assert {g["group"] for g in shown["groups"]["lse"]} == {
        group.title for group in EXERCISES["lse"].groups
    }
    written = (course.class_folder / "grades.csv").read_text("utf-8")
    assert "ana,01_lse_gradient,graded,8,18,,10," in written

    other = course.root / "elsewhere.csv"
    assert main(["export", "--to", str(other), *where]) == 0
    assert other.read_text("utf-8") == written
    assert main(["feedback", "--student", "ana", *where]) == 0
    assert (course.feedback / "ana" / LESSON / "lse_gradient.html").is_file()
    capsys.readouterr()

    assert main(["feedback", "--student", "anna", *where]) == 2
    assert "no student called anna" in capsys.readouterr().err
    (course.submitted / "bob").mkdir()
    assert main(["grade", *where]) == 1
    out = capsys.readouterr().out
    assert "ana" in out
    assert out.endswith(
        "2 submissions: 1 graded, 0 graded with notices, 0 not graded, 1 missing.\n"
    )
    # These do their own work whatever is missing.
    assert main(["feedback", *where]) == main(["export", *where]) == 0
    assert "bob,01_lse_gradient,missing" in (course.class_folder / "grades.csv").read_text("utf-8")


def test_help_says_whose_exit_code_1_is(capsys):
    for command in ("feedback", "grade"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        assert "1  `grade` and `demo`: done, but something is missing" in capsys.readouterr().out


def test_notebooks_in_the_wrong_place_are_named_once(course, capsys):
    hand_in(course, "ana", answered(course))
    where = ["--course", str(course.root)]
    (course.submitted / "lea").mkdir()
    for path in ("kim\n.ipynb", "lea/lse_gradient.ipynb", "lea/notes.txt", ".hidden.ipynb"):
        (course.submitted / path).write_text("{}")
    assert main(["grade", "--json", *where]) == 1
    shown = capsys.readouterr()
    assert [r["outcome"] for r in json.loads(shown.out)] == ["graded", "missing"]
    assert [line for line in shown.err.splitlines() if "Not looked at" in line] == [
        "autograder: Not looked at: class/submitted/kim?.ipynb; it belongs in "
        "class/submitted/<student>/<lesson>/",
        "autograder: Not looked at: class/submitted/lea/lse_gradient.ipynb; it belongs in "
        "class/submitted/lea/<lesson>/",
    ]


def test_a_class_with_nothing_but_a_stray_notebook_says_where_it_belongs(course, capsys):
    course.submitted.mkdir(parents=True)
    (course.submitted / "kim.ipynb").write_text("{}")
    assert main(["grade", "--course", str(course.root)]) == 2
    told = capsys.readouterr().err
    assert "nothing was handed in" in told
    assert "Not looked at: class/submitted/kim.ipynb" in told


def test_a_folder_that_is_no_lesson_is_not_offered_as_one(course, capsys):
    path = hand_in(course, "ana", answered(course))
    path.parent.rename(path.parent.parent / "1_lse_gradient")
    where = ["--course", str(course.root)]
    for command in ("grade", "feedback"):
        assert main([command, "--lesson", "02_x", *where]) == 2
        assert "1_lse_gradient" not in capsys.readouterr().err.replace(LESSON, "")
    assert main(["grade", "--lesson", "1_lse_gradient", *where]) == 2
    assert f"Did you mean {LESSON}?" in capsys.readouterr().err


# --- The bundle --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    path = tmp_path_factory.mktemp("bundle") / "lessons.zip"
    return path, write_bundle(Course(ROOT), path)


def test_the_bundle_holds_what_a_learner_needs_and_nothing_else(bundle):
    path, names = bundle
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist() == names
        wheel = next(name for name in names if name.endswith(".whl"))
        lessons = [name for name in names if name.startswith("lessons/")]
        assert set(names) == {"START.txt", "environment.yml", wheel, *lessons}
        released = sorted((ROOT / "release").glob("[!.]*/*.ipynb"))
        assert lessons == [f"lessons/{p.parent.name}/{p.name}" for p in released]
        for name, source in zip(lessons, released, strict=True):
            assert archive.read(name) == source.read_bytes()
        environment = yaml.safe_load(archive.read("environment.yml"))
        assert environment["dependencies"][-1] == {"pip": [f"./{wheel}"]}
        guide = archive.read("START.txt").decode()
        assert all(name in guide for name in [wheel, "environment.yml", *lessons])
        assert len(guide.splitlines()) < 60
        inside = zipfile.ZipFile(io.BytesIO(archive.read(wheel))).namelist()
    assert {name.split("/")[0] for name in inside} == {"hopping", "hopping-0.1.0.dist-info"}


def test_the_bundle_gives_nothing_away(bundle, tmp_path):
    path, _ = bundle
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path)
    assert leaks(Course(ROOT), path, *tmp_path.glob("*.whl")) == []


def test_the_same_course_gives_the_same_bundle(bundle, tmp_path):
    write_bundle(Course(ROOT), tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == bundle[0].read_bytes()


def test_a_bundle_that_would_leak_is_not_written(course, tmp_path, monkeypatch):
    monkeypatch.setattr("autograder.bundle.leaks", lambda *args: ["x.ipynb: it shows an answer"])
    monkeypatch.setattr("autograder.bundle.build_wheel", lambda *args: tmp_path)
    with pytest.raises(CourseError, match="it shows an answer"):
        write_bundle(course, tmp_path / "lessons.zip")
    assert list(tmp_path.glob("*.zip")) == []


def test_a_bundle_needs_the_repository(course, capsys):
    assert main(["release", "--bundle", "--course", str(course.root)]) == 2
    assert "The wheel can only be made in the course's repository." in capsys.readouterr().err
    assert not (course.root / "dist").exists()


# --- The sample class --------------------------------------------------------------------------

# One wrong answer of each kind; `autograder demo` on the real course takes them all.
KINDS = {
    "wrong-value-1": "beta-forgotten",
    "wrong-not-finite-1": "no-max-subtraction",
    "wrong-shape-1": "softmax-over-coordinates",
    "wrong-type-1": "returns-a-list",
    "wrong-mutates-1": "mutates-Y",
}


def test_the_sample_class_shows_every_outcome_and_each_loses_what_it_should(
    course, tmp_path, monkeypatch, capsys
):
    weights = EXERCISES["attention_weights"]
    some = tuple(m for m in weights.misconceptions if m.slug in KINDS.values())
    # Only one of the two exercises is answered wrongly, so that each student has one thing wrong.
    exercises = EXERCISES | {"attention_weights": dataclasses.replace(weights, misconceptions=some)}
    monkeypatch.setattr("autograder.demo._wrong_answers", _only("attention_weights"))
    monkeypatch.setattr(autograder.exercises, "load", lambda: exercises)
    folder = tmp_path / "sample"
    assert main(["demo", "--into", str(folder), "--course", str(course.root)]) == 1
    out = capsys.readouterr().out
    sample = Course(folder)
    found = {result.student: result for result in collect(sample)}

    assert found["right"].points == found["right-unusual"].points == 8
    assert found["blank"].points == 0
    # Ending Python costs the answer that does it, and no other.
    assert found["dead-kernel"].outcome == "graded with notices"
    assert [score.points for score in found["dead-kernel"].scores[:3]] == [2, 0, 3]
    assert any("lse ended the Python process" in n for n in found["dead-kernel"].notices)
    assert found["not-json"].outcome == "not graded"
    assert f"class/submitted/not-json/{LESSON}/{NOTEBOOK}: " in found["not-json"].reason
    assert found["not-json"].reason in out
    assert found["absent"].outcome == "missing"
    for student, slug in KINDS.items():
        wrong = next(m for m in weights.misconceptions if m.slug == slug)
        expected = examine("attention_weights", wrong.function)
        verdict = next(v for v in found[student].verdicts if v.exercise == "attention_weights")
        lost = [part.title for part in expected.parts if part.points == 0]
        assert [part.title for part in verdict.parts if part.points == 0] == lost != []
        assert found[student].points == pytest.approx(5 + expected.points)
        page = (sample.feedback / student / LESSON / "lse_gradient.html").read_text("utf-8")
        assert wrong.hint.replace("'", "&#39;") in page
    rows = list(csv.DictReader((sample.class_folder / "grades.csv").open(encoding="utf-8")))
    assert {row["student"] for row in rows} == set(found)
    assert len(found) == 6 + len(KINDS)

    assert main(["demo", "--into", str(tmp_path), "--course", str(course.root)]) == 2
    assert "there is something else in it" in capsys.readouterr().err


def test_with_many_lessons_one_student_of_a_kind_has_an_answer_of_each_exercise():
    class_ = students(EXERCISES, most=1)
    assert set(class_) == {"right", "right-unusual", *KINDS}
    for name in EXERCISES:
        assert class_["wrong-value-1"][name] != class_["right"][name]
        assert class_["right-unusual"][name] != class_["right"][name]


def _only(name):
    from autograder.demo import _wrong_answers

    return lambda exercise: _wrong_answers(exercise) if exercise.name == name else []


def test_a_sample_class_needs_built_lessons(tmp_path, capsys):
    (tmp_path / "nbgrader_config.py").write_text("")
    assert main(["demo", "--course", str(tmp_path)]) == 2
    assert "Run `autograder build` first." in capsys.readouterr().err
