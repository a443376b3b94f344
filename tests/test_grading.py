"""A class graded for real: every outcome, every number, and what happens when things go wrong."""

import csv
import errno
import html
import io
import json
import os
import re
import shutil
import sqlite3
import time
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest
import small_lesson as small
from classroom import (
    EXERCISES,
    LESSON,
    NOTEBOOK,
    answered,
    cell,
    copy_course,
    hand_in,
    released,
    wrong,
)

from autograder import feedback, grading, journal, pool, safe_html
from autograder.command_line import main
from autograder.course import CourseError
from autograder.examiner import examine
from autograder.exercises import load
from autograder.feedback import visible, write_feedback
from autograder.grading import grade_class
from autograder.handed_in import read_handed_in
from autograder.isolated import grade_submission
from autograder.outcome import GRADED, MISSING, NOT_GRADED, NOTICES, Result, Score
from autograder.releasing import release_assignment
from autograder.report import as_json, csv_text, points_text, table
from autograder.results import collect
from autograder.sandbox import Limits, Sandbox
from autograder.standalone import standalone
from hopping.verdict import Part, Verdict

pytestmark = pytest.mark.usefixtures("no_pool")

ODD = "o'Brien, Zoë [2]"
HOSTILE = """\
<script>alert(1)</script> <img src="http://evil.example/x.png" onerror="alert(1)">
<iframe src="http://evil.example"></iframe> <a href="javascript:alert(1)">me</a>
<svg onload="alert(1)"></svg> <div style="background:url(http://evil.example)">x</div>
![mine](http://evil.example/y.png) $\\text{<script>alert(2)</script>}$ and ${$
"""


@pytest.fixture(scope="session")
def graded(template, tmp_path_factory, warm_worker):
    """Grade a class with every kind of submission once; tests only look at it."""
    course = copy_course(template, tmp_path_factory.mktemp("graded") / "course")
    hand_in(course, "ana", answered(course))
    hand_in(
        course,
        "bob",
        answered(
            course,
            lse=wrong("lse", "no-max-subtraction"),
            attention_weights=wrong("attention_weights", "returns-a-list"),
        ),
    )
    hand_in(course, "blank", released(course))
    hand_in(course, "crash", answered(course, attention_weights="import os\n\nos._exit(1)"))
    hand_in(course, "loop", answered(course, lse="while True:\n    pass", report=HOSTILE))
    noisy = 'import os\n\n\ndef lse(xi, Y, beta):\n    os.write(2, b"warning")\n    return LSE'
    hand_in(course, "noisy", answered(course, lse=noisy.replace("LSE", _lse_expression())))
    edited = answered(course)
    cell(edited, "exam_lse").source = "3.0"
    edited.cells.remove(cell(edited, "check_lse"))
    edited.cells.remove(cell(edited, "exam_attention_weights"))
    hand_in(course, ODD, edited)
    hand_in(course, "not-json", "<html>Please log in</html>")
    hand_in(course, "no-notebook", "x = 1", "answers.py")
    hand_in(course, "renamed", answered(course), "lse_gradient (1).ipynb")
    hand_in(course, " space", answered(course))
    twice = answered(course)
    twice.cells.append(cell(twice, "lse"))
    hand_in(course, "twice", twice)
    (course.submitted / "wrong-folder" / "01_lse_gradent").mkdir(parents=True)
    shutil.copy(
        hand_in(course, "ana", answered(course)),
        course.submitted / "wrong-folder" / "01_lse_gradent",
    )
    (course.submitted / "absent").mkdir()
    found = grade_class(course, executor=warm_worker)
    return course, {(r.student, r.lesson): r for r in found}


def _lse_expression():
    return "float(np.log(np.exp((s := beta * (Y @ xi)) - s.max()).sum()) + s.max()) / beta"


def one(graded, student):
    return graded[1][student, LESSON]


# --- Outcomes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("student", "outcome", "says"),
    [
        ("ana", GRADED, ""),
        ("bob", GRADED, ""),
        ("blank", GRADED, ""),
        ("noisy", GRADED, ""),
        (ODD, NOTICES, ""),
        ("loop", NOTICES, ""),
        ("crash", NOTICES, ""),
        ("renamed", NOTICES, ""),
        ("twice", NOTICES, ""),
        ("not-json", NOT_GRADED, f"not-json/{LESSON}/{NOTEBOOK}: the file is a web page, not a"),
        ("no-notebook", NOT_GRADED, f"no-notebook/{LESSON}: the file is not a notebook: line 1"),
        (" space", NOT_GRADED, "begins or ends with a space. Rename it"),
        ("absent", MISSING, f"class/submitted/absent/{LESSON}: nothing was handed in"),
        ("wrong-folder", MISSING, "nothing was handed in"),
    ],
)
def test_every_submission_has_its_outcome_and_reason(graded, student, outcome, says):
    result = one(graded, student)
    assert result.outcome == outcome, result.reason
    assert says in result.reason
    assert bool(result.reason) == (not result.graded)
    assert (result.points is None) == (not result.graded)


def test_a_folder_that_is_no_lesson_is_named_with_what_it_may_have_meant(graded):
    result = graded[1]["wrong-folder", "01_lse_gradent"]
    assert result.outcome == NOT_GRADED
    assert f"Did you mean {LESSON}?" in result.reason


def test_points_are_what_the_examiner_gives(graded):
    assert points_text(one(graded, "ana")) == "8/18 + manual 10"
    assert points_text(one(graded, "noisy")) == "8/18 + manual 10"
    for exercise, slug in (
        ("lse", "no-max-subtraction"),
        ("attention_weights", "returns-a-list"),
    ):
        found = next(m for m in EXERCISES[exercise].misconceptions if m.slug == slug)
        expected = examine(exercise, found.function)
        verdict = next(v for v in one(graded, "bob").verdicts if v.exercise == exercise)
        score = next(s for s in one(graded, "bob").scores if s.name == exercise)
        for mine, theirs in zip(verdict.parts, expected.parts, strict=True):
            assert mine.title == theirs.title
            assert mine.points == pytest.approx(theirs.points)
            assert mine.max_points == pytest.approx(theirs.max_points)
        assert score.points == expected.points < score.max_points
        assert found.hint in verdict.message


def test_a_blank_notebook_is_a_true_zero_and_its_task_is_open(graded):
    result = one(graded, "blank")
    assert points_text(result) == "0/18 + manual 6"
    assert [s.name for s in result.scores if s.points is None] == ["project"]


@pytest.mark.parametrize(
    ("student", "notice"),
    [
        (ODD, "The cell exam_lse had been edited; the original is back."),
        (ODD, "The cell check_lse was missing and has been put back."),
        (ODD, "The cell exam_attention_weights was missing and has been put back."),
        ("renamed", f"The file {NOTEBOOK} was handed in as lse_gradient (1).ipynb."),
        ("twice", "The cell lse was there 2 times; all were run, in their order."),
    ],
)
def test_damage_costs_nothing_and_is_said(graded, student, notice):
    assert notice in one(graded, student).notices
    assert one(graded, student).scores == one(graded, "ana").scores


@pytest.mark.parametrize(
    ("student", "lost", "notice"),
    [
        ("loop", "lse", "The cell lse ran for more than 8 s and was interrupted."),
        ("crash", "attention_weights", "The cell attention_weights ended the Python process"),
    ],
)
def test_a_loop_or_a_crash_costs_its_own_exercise_alone(graded, student, lost, notice):
    points = {s.name: s.points for s in one(graded, student).scores}
    right = {s.name: s.points for s in one(graded, "ana").scores}
    assert points == {**right, lost: 0.0}
    assert any(notice in words for words in one(graded, student).notices)


def test_an_answer_that_never_ends_is_waited_for_once_and_named():
    """A cell of the lesson waits for it; the others that use it are left out, in reruns too."""
    cells = (
        "print(lse(np.zeros(2), np.eye(2), 1.0))",
        "print('third', lse, attention_weights(np.zeros(2), np.eye(2), 1.0))",
        "print('alone', attention_weights(np.zeros(2), np.eye(2), 1.0).sum())",
    )
    loop = "def lse(xi, Y, beta):\n    while True:\n        pass"
    end = "import os\n\nos._exit(3)"
    source, submission = (
        small.insert(notebook, "exam_fd_grad", *cells)
        for notebook in (small.source(), small.solved(lse=loop))
    )
    small.insert(submission, "show", end)
    limits = Limits(cell_seconds=3.0, call_seconds=1.0)
    with Sandbox(limits) as sandbox:
        graded = grade_submission(small.as_bytes(submission), nbformat.from_dict(source), sandbox)
    assert graded.scores == {**dict.fromkeys(graded.scores, 0.0), **small.POINTS, "exam_lse": 0.0}
    named = [words for words in graded.notices if "in the answer lse" in words]
    assert [words.partition(" in the")[0] for words in named] == [
        "The cell check_lse ran for more than 3 s and was interrupted"
    ]
    assert not [words for words in graded.notices if "interrupted" in words and words not in named]
    shown = [str(cell.get("outputs")) for cell in graded.notebook.cells]
    assert sum("for which another cell waited in vain" in each for each in shown) == 4
    assert sum("alone 1" in each for each in shown) == 1


# --- One result, shown in many ways ------------------------------------------------------------


def test_the_csv_agrees_with_the_results_and_has_no_number_without_a_grade(graded):
    course, found = graded
    rows = list(csv.DictReader(io.StringIO(csv_text(collect(course)))))
    assert [(row["student"], row["lesson"]) for row in rows] == sorted(found)
    for row in rows:
        result = found[row["student"], row["lesson"]]
        assert (row["outcome"], row["reason"]) == (result.outcome, result.reason)
        if result.graded:
            assert float(row["points"]) == result.points
            assert float(row["max_points"]) == result.max_points == 18
            assert float(row["manual_pending"]) == result.pending
            assert "lse " in row["points_by_exercise"]
        else:
            assert row["points"] == row["max_points"] == row["points_by_exercise"] == ""


def test_the_table_has_one_line_a_student_and_a_reason_for_each_that_is_not_graded(graded):
    lines = table(collect(graded[0])).splitlines()
    for (student, lesson), result in graded[1].items():
        if lesson == LESSON:
            (line,) = (x for x in lines[2:17] if x.startswith(student + "  "))
            assert points_text(result) in line
        if result.outcome == NOT_GRADED:
            assert any(result.reason in line for line in lines)
    assert lines[-1] == (
        "15 submissions: 4 graded, 5 graded with notices, 4 not graded, 2 missing."
    )


def test_the_gradebook_agrees_and_opens_in_nbgraders_own_interface(graded):
    course, found = graded
    submissions = {s["student"]: s for s in course.api().get_submissions(LESSON)}
    for (student, lesson), result in found.items():
        if lesson == LESSON and result.graded:
            assert submissions[student]["autograded"]
            assert submissions[student]["score"] == pytest.approx(result.points)
            assert submissions[student]["needs_manual_grade"]
    assert not submissions["not-json"]["autograded"]
    assert submissions["not-json"]["score"] == 0


def test_json_tells_all(graded):
    course, found = graded
    told = {
        (each["student"], each["lesson"]): each for each in json.loads(as_json(collect(course)))
    }
    assert told.keys() == found.keys()
    for key, result in found.items():
        assert told[key]["outcome"] == result.outcome
        assert told[key]["points"] == result.points
        assert told[key]["notices"] == list(result.notices)
    wrongs = {"lse": "no-max-subtraction", "attention_weights": "returns-a-list"}
    assert told["bob", LESSON]["misconceptions"] == wrongs


def test_grading_again_runs_nothing_and_changes_nothing(graded, monkeypatch):
    course, found = graded

    def fail(tasks, workers, executor):
        assert list(tasks) == []
        return iter(())

    monkeypatch.setattr(grading, "answers", lambda *args: (x for x in fail(*args)))
    before = {path: path.read_bytes() for path in course.class_folder.rglob("*.json")}
    again = grade_class(course)
    assert {(r.student, r.lesson): r for r in again} == found
    assert {path: path.read_bytes() for path in course.class_folder.rglob("*.json")} == before


def test_the_log_can_be_read(graded):
    log = (graded[0].class_folder / "grade.log").read_text("utf-8")
    assert "autograder grade" in log
    for (student, lesson), result in graded[1].items():
        assert f"{student} {lesson}: {result.outcome}" in log
        assert result.reason in log


# --- Feedback ----------------------------------------------------------------------------------


class Loads(HTMLParser):
    """Collects what a page would fetch or run."""

    def __init__(self):
        super().__init__()
        self.loads, self.tags, self.events = [], set(), []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        for name, value in attrs:
            value = value or ""
            if name in ("src", "srcset", "data", "poster", "background") or (
                name == "href" and tag != "a"
            ):
                self.loads += [] if value.startswith("data:image/") else [value]
            if tag == "a" and name == "href" and not value.startswith(("#", "http", "mailto:")):
                self.loads.append(value)
            if name.startswith("on") or "url(" in value:
                self.events.append((tag, name, value))


@pytest.fixture(scope="session")
def pages(graded):
    course, found = graded
    written = write_feedback(course, found.values())
    return {path.parent.parent.name: path.read_text("utf-8") for path in written}


def test_everybody_who_handed_in_gets_a_page(graded, pages):
    assert set(pages) == {s for (s, _), r in graded[1].items() if r.outcome != MISSING}
    assert (graded[0].feedback / "ana" / LESSON / "lse_gradient.html").is_file()


def test_pages_fetch_and_run_nothing_even_when_the_submission_is_hostile(pages):
    for page in pages.values():
        loads = Loads()
        loads.feed(page)
        assert loads.loads == []
        assert loads.events == []
        assert not loads.tags & {"script", "iframe", "link", "object", "embed", "form", "svg"}
        assert "@import" not in page
        assert "default-src 'none'" in page


def test_pages_show_formulas_points_groups_and_hints(graded, pages):
    page = pages["bob"]
    assert "<mfrac>" in page
    assert "$" not in page.partition("</style>")[2].replace("${$", "")
    for verdict in one(graded, "bob").verdicts:
        for part in verdict.parts:
            assert part.title in page
        assert verdict.message.splitlines()[-1].strip().removeprefix("hint: ") in page
    assert "very large and very small exponents: 0 of 0.75" in page
    assert "could not be graded" in pages["not-json"]
    assert "the file is a web page, not a notebook" in pages["not-json"]
    assert "ended the Python process" in pages["crash"]


def remark(page, name):
    """Return what the table of points says beside a score."""
    row = re.search(rf'<tr><td><a href="#{name}">.*?</tr>', page, re.S).group()
    return html.unescape(re.findall(r"<td>(.*?)</td>", row, re.S)[-1])


def test_pages_say_beside_each_score_why_it_is_not_full(pages):
    assert remark(pages["loop"], "lse") == "its cell ran too long and was interrupted"
    assert "ended the Python process" in remark(pages["crash"], "attention_weights")
    assert remark(pages["blank"], "lse") == "not written yet"
    assert remark(pages["blank"], "commit_prediction").startswith("Choose a, b, c or d for q1")
    assert remark(pages["blank"], "report") == "left as it was handed out"
    assert remark(pages["ana"], "report") == "to be graded by hand"
    assert remark(pages["ana"], "lse") == remark(pages["ana"], "commit_prediction") == ""


@pytest.mark.parametrize(
    ("lines", "ename", "says"),
    [
        ("  one: 0 of 2 (a wrong value)\n  hint: Think.\n  a call ended", "E", "Think."),
        ("  one: 0 of 2 (too slow)\n  a call did not end", "E", "a call did not end"),
        ("  one: 0 of 2 (not written yet)", "SyntaxError", "its cell raised SyntaxError"),
        ("  one: 0 of 2 (not written yet)", "<b>", "its cell raised an error"),
        ("  one: 2 of 2\n  two: 0 of 1 (a wrong value)", "", "a wrong value"),
    ],
)
def test_a_remark_is_the_hint_or_the_first_fault(lines, ename, says):
    parts = (Part("one", 0.0, 2.0), Part("two", 0.0, 1.0))
    verdict = Verdict("lse", False, f"lse: 0 of 3 points.\n{lines}", None, 0.0, 3.0, parts)
    error = nbformat.v4.new_output("error", ename=ename, evalue="", traceback=[])
    remark_on = feedback._Remark({"lse": verdict}, {}, {"lse": error} if ename else {})
    assert remark_on(Score("lse", 0.0, 3.0)) == says


def test_pages_never_show_a_hidden_test_or_a_mark_scheme(pages):
    for page in pages.values():
        for secret in ("HIDDEN TESTS", "MARK SCHEME", "examine", "hopping.exam", "each valley"):
            assert secret not in page
        assert "autograder/" not in page


@pytest.mark.parametrize(
    "source",
    [
        "a\n### BEGIN HIDDEN TESTS\nsecret\n### END HIDDEN TESTS\nb",
        "a\n  # BEGIN HIDDEN TESTS\nsecret\n\nsecret\n  # END HIDDEN TESTS\nb",
        "a\nb\n### BEGIN HIDDEN TESTS\nsecret",
        "a\n### BEGIN MARK SCHEME\nsecret\n### END MARK SCHEME\nb",
    ],
)
def test_hidden_parts_are_taken_out(source):
    assert visible(source) == "a\nb"


def test_a_comment_and_points_given_by_hand_are_on_the_page_and_in_the_csv(graded, tmp_path):
    course = copy_course(graded[0], tmp_path / "course")
    with course.open_gradebook() as gradebook:
        grade = gradebook.find_grade("report", "lse_gradient", LESSON, "ana")
        grade.manual_score, grade.needs_manual_grade = 3.5, False
        comment = gradebook.find_comment("report", "lse_gradient", LESSON, "ana")
        comment.manual_comment = "Smooth <b>where</b>?"
        gradebook.db.commit()
    result = next(r for r in collect(course) if r.student == "ana")
    assert points_text(result) == "11.5/18 + manual 6"
    assert "ana,01_lse_gradient,graded,11.5,18,3.5,6," in csv_text([result])
    (path,) = write_feedback(course, [result])
    page = path.read_text("utf-8")
    assert "Smooth &lt;b&gt;where&lt;/b&gt;?" in page
    assert "11.5 of 18 points" in page


@pytest.mark.parametrize("lesson", sorted(p.name for p in (Path("release")).glob("0*")))
def test_every_formula_of_the_lessons_becomes_mathml(lesson):
    for path in (Path("release") / lesson).glob("*.ipynb"):
        for part in nbformat.read(path, as_version=4).cells:
            if part.cell_type == "markdown":
                renderer = safe_html._Renderer({})
                safe_html.MarkdownWithMath(renderer=renderer).render(part.source)
                for token, formula in renderer.formulas.items():
                    assert formula.startswith("<math"), renderer.latex[token]
                    assert "\\" not in formula, renderer.latex[token]


# --- Handing in again --------------------------------------------------------------------------


def test_a_resubmission_that_cannot_be_graded_loses_its_score_but_not_what_a_person_gave(
    graded, tmp_path
):
    course = copy_course(graded[0], tmp_path / "course")
    with course.open_gradebook() as gradebook:
        grade = gradebook.find_grade("report", "lse_gradient", LESSON, "ana")
        grade.manual_score, grade.needs_manual_grade = 4.0, False
        gradebook.db.commit()
    write_feedback(course, [r for r in collect(course) if r.student == "ana"])
    hand_in(course, "ana", "not a notebook")
    (waiting,) = (r for r in collect(course) if r.student == "ana")
    assert (waiting.outcome, waiting.points) == (NOT_GRADED, None)
    assert "handed in again" in waiting.reason

    (result,) = grade_class(course, ["ana"])
    assert (result.outcome, result.points) == (NOT_GRADED, None)
    assert result.remarks == ("an earlier grading gave 8 points, which were withdrawn",)
    (again,) = grade_class(course, ["ana"])
    assert again == result
    with course.open_gradebook() as gradebook:
        submission = gradebook.find_submission(LESSON, "ana")
        grades = {g.name: g for g in submission.notebooks[0].grades}
        assert grades["exam_lse"].auto_score is None
        assert grades["report"].manual_score == 4.0
        assert all(g.needs_manual_grade for g in grades.values())
    assert not (course.autograded / "ana" / LESSON).exists()
    assert not (course.feedback / "ana" / LESSON).exists()

    hand_in(course, "ana", answered(course))
    (result,) = grade_class(course, ["ana"])
    assert (result.outcome, result.points) == (NOTICES, 12.0)
    assert result.notices == ()
    assert result.remarks == ("graded by hand before it was last run, look again: report",)
    (path,) = write_feedback(course, [result])
    assert "look again" not in path.read_text("utf-8")


def test_a_submission_that_is_taken_away_is_missing(graded, tmp_path):
    course = copy_course(graded[0], tmp_path / "course")
    shutil.rmtree(course.submitted / "ana")
    (result,) = grade_class(course, ["ana"])
    assert (result.outcome, result.points) == (MISSING, None)
    assert result.remarks == ("an earlier grading gave 8 points, which were withdrawn",)


def test_a_misfiled_notebook_makes_nothing_due_and_is_forgotten_with_its_folder(graded, tmp_path):
    course = copy_course(graded[0], tmp_path / "course")
    source = course.source / "02_gmm_polarization"
    shutil.copytree(Path("source") / source.name, source)
    release_assignment(course, source.name)
    wrong_place = course.submitted / "bob" / source.name
    wrong_place.mkdir()
    shutil.copy(
        course.submitted / "bob" / LESSON / NOTEBOOK, wrong_place / "gmm_polarization.ipynb"
    )
    (result,) = grade_class(course, ["bob"], [source.name])
    assert result.outcome == NOT_GRADED
    assert f"this is the notebook of {LESSON}, not of {source.name}; put it into" in result.reason
    assert "handed in again" not in result.reason
    write_feedback(course, collect(course))
    page = course.feedback / "bob" / source.name
    assert page.is_dir()
    assert [r.student for r in collect(course) if r.lesson == source.name] == ["bob"]

    shutil.rmtree(wrong_place)
    (result,) = grade_class(course, ["bob"], [source.name])
    assert result.outcome == MISSING
    assert not [r for r in collect(course) if r.lesson == source.name]
    assert not page.exists()
    # Whoever names a lesson sees everybody.
    named = grade_class(course, [], [source.name])
    assert {r.outcome for r in named} == {MISSING}
    assert len(named) == len({r.student for r in collect(course)})


def test_feedback_deletes_the_page_of_what_was_taken_away(graded, tmp_path):
    course = copy_course(graded[0], tmp_path / "course")
    write_feedback(course, collect(course))
    shutil.rmtree(course.submitted / "ana")
    write_feedback(course, collect(course))
    assert not (course.feedback / "ana").exists()
    assert (course.feedback / "bob" / LESSON).is_dir()


def test_missing_hides_no_notices():
    results = [
        Result("ana", "01_a", NOTICES, notices=("one", "two")),
        Result("ana", "02_b", MISSING, "nothing was handed in"),
        Result("bob", "01_a", MISSING, "nothing was handed in"),
    ]
    ana, bob = table(results).splitlines()[2:4]
    assert ana.endswith("missing, 2 notices")
    assert bob.endswith("missing")


def test_a_class_that_has_not_changed_is_read_once(graded, tmp_path, monkeypatch):
    course = copy_course(graded[0], tmp_path / "course")
    read = []

    def count(folder, wanted):
        read.append(folder)
        return read_handed_in(folder, wanted)

    monkeypatch.setattr(grading, "read_handed_in", count)
    monkeypatch.setattr(journal, "read_handed_in", count)
    assert command(course, "grade") == 1
    assert len(read) == len(set(read)) == len(collect(graded[0]))


def test_a_bug_of_ours_stops_nobody_else(course, monkeypatch):
    hand_in(course, "ana", answered(course))
    hand_in(course, "bob", answered(course, report="surprise"))

    def fail_for_bob(request):
        if b"surprise" in request.files[NOTEBOOK]:
            raise RuntimeError("surprise")
        return work(request)

    work = pool.work
    monkeypatch.setattr(pool, "work", fail_for_bob)
    ana, bob = grade_class(course)
    assert (ana.outcome, bob.outcome) == (GRADED, NOT_GRADED)
    assert "RuntimeError: surprise" in bob.reason
    assert "Traceback" in (course.class_folder / "grade.log").read_text("utf-8")
    monkeypatch.undo()


# --- Bad input ---------------------------------------------------------------------------------


def test_marks_of_another_nbgrader_and_lost_marks_cost_nothing(graded, course):
    old = answered(course)
    for part in old.cells:
        if "nbgrader" in part.metadata:
            part.metadata.nbgrader.schema_version = 99
    hand_in(course, "future", old)
    bare = answered(course)
    for part in bare.cells:
        part.metadata.pop("nbgrader", None)
    hand_in(course, "bare", bare)
    for result in grade_class(course):
        assert result.points == one(graded, "ana").points, result


def command(course, *arguments):
    return main([*arguments, "--course", str(course.root)])


def last_error(capsys):
    return capsys.readouterr().err.rstrip().splitlines()[-1]


def test_a_locked_gradebook_is_one_line_and_touches_nothing(graded, tmp_path, capsys):
    course = copy_course(graded[0], tmp_path / "course")
    before = csv_text(collect(course))
    with sqlite3.connect(course.gradebook) as other:
        other.execute("BEGIN IMMEDIATE")
        assert command(course, "grade", "--force") == 2
        other.rollback()
    error = last_error(capsys)
    assert error.startswith(f"autograder: {course.gradebook}: another program is writing")
    assert csv_text(collect(course)) == before


def test_a_gradebook_from_another_nbgrader_is_one_line(course, capsys):
    hand_in(course, "ana", answered(course))
    with sqlite3.connect(course.gradebook) as gradebook:
        gradebook.execute("UPDATE alembic_version SET version_num = '50a4d84c131a'")
    assert command(course, "grade") == 2
    assert "made by another version of nbgrader" in last_error(capsys)


def test_a_file_that_is_no_gradebook_is_one_line(course, capsys):
    hand_in(course, "ana", answered(course))
    course.gradebook.write_text("this is no database, " * 100)
    assert command(course, "grade") == 2
    assert "not a gradebook" in last_error(capsys)


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (errno.EROFS, "read-only file system. Check who owns it"),
        (errno.EACCES, "permission denied. Check who owns it"),
        (errno.ENOSPC, "there is no space left on its disk. Make room"),
    ],
)
def test_a_disk_that_refuses_is_one_line(course, capsys, monkeypatch, number, says):
    path = hand_in(course, "ana", answered(course))

    def refuse(source, target):
        raise OSError(number, os.strerror(number), str(target))

    monkeypatch.setattr(journal.os, "replace", refuse)
    assert command(course, "grade") == 2
    error = last_error(capsys)
    assert error.startswith(f"autograder: {course.class_folder}")
    assert says in error
    assert list(course.class_folder.rglob("*.json")) == []
    assert list(course.class_folder.rglob("*.ipynb")) == [path]


def test_a_folder_that_cannot_be_written_is_that_ones_reason(course):
    hand_in(course, "ana", answered(course))
    hand_in(course, "bob", answered(course))
    course.autograded.mkdir()
    (course.autograded / "ana").write_text("in the way")
    ana, bob = grade_class(course)
    assert (ana.outcome, bob.outcome) == (NOT_GRADED, GRADED)
    assert str(course.autograded / "ana") in ana.reason


def test_a_link_to_a_file_elsewhere_is_not_followed(course):
    path = hand_in(course, "ana", answered(course))
    path.unlink()
    path.symlink_to(course.source / LESSON / NOTEBOOK)
    (result,) = grade_class(course)
    assert result.outcome == NOT_GRADED
    assert "a link to a file elsewhere" in result.reason


def test_a_lesson_whose_source_is_damaged_is_refused_and_says_so(course):
    hand_in(course, "ana", answered(course))
    (course.source / LESSON / NOTEBOOK).write_text("{")
    (result,) = grade_class(course)
    assert result.outcome == NOT_GRADED
    assert f"source/{LESSON}/{NOTEBOOK}" in result.reason


def test_nothing_handed_in_and_unknown_names_are_refused(course, capsys):
    assert command(course, "grade") == 2
    assert "nothing was handed in" in last_error(capsys)
    hand_in(course, "ana", answered(course))
    with pytest.raises(CourseError, match=r"no student is called anna.*Did you mean ana"):
        grade_class(course, ["anna"])
    with pytest.raises(CourseError, match="no lesson is called 02_x"):
        grade_class(course, [], ["02_x"])


def test_a_name_that_is_no_text_is_reported_without_a_crash(course, capsys):
    folder = os.fsencode(course.submitted) + b"/caf\xe9/" + LESSON.encode()
    os.makedirs(folder)
    with open(folder + b"/" + NOTEBOOK.encode(), "w") as file:
        json.dump(answered(course), file)
    assert command(course, "grade") == 1
    assert "cannot be printed" in capsys.readouterr().out


# --- Answers as notebooks ----------------------------------------------------------------------


@pytest.mark.parametrize("name", load())
def test_every_answer_can_be_written_into_a_notebook(name):
    exercise = load()[name]
    others = (*exercise.misconceptions, *exercise.alternatives)
    for function in (exercise.reference, *(other.function for other in others)):
        code = standalone(function, name)
        assert "autograder" not in code
        namespace = {}
        exec(compile(code, name, "exec"), namespace)
        assert callable(namespace[name])
    if name in EXERCISES:
        for wrong_one in exercise.misconceptions:
            namespace = {}
            exec(compile(standalone(wrong_one.function, name), name, "exec"), namespace)
            copy, original = examine(name, namespace[name]), examine(name, wrong_one.function)
            assert (copy.parts, copy.misconception) == (original.parts, original.misconception)


def test_a_second_grading_of_a_class_takes_no_time(graded):
    started = time.monotonic()
    grade_class(graded[0], ["ana", "bob", "blank"])
    assert time.monotonic() - started < 2
