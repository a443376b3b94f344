"""The run as a whole: one writer, a journal, a lock, workers that die, kill -9 at any moment."""

import contextlib
import copy
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from multiprocessing import forkserver
from pathlib import Path

import nbformat
import numpy as np
import pytest
from classroom import (
    LESSON,
    NOTEBOOK,
    answered,
    cell,
    copy_course,
    hand_in,
    released,
    wrong,
)
from nbgrader.api import Comment, Grade, SubmittedAssignment, SubmittedNotebook
from sqlalchemy import event

from autograder import gradebook, grading, journal, pool, worker
from autograder.command_line import main
from autograder.course import CourseError
from autograder.exercises import load
from autograder.feedback import write_feedback
from autograder.grading import grade_class
from autograder.judging_version import JUDGES, _files, judging_version
from autograder.outcome import GRADED, MISSING, NOT_GRADED, NOTICES
from autograder.report import csv_text
from autograder.results import collect
from autograder.sandbox import Limits

KILLS = int(os.environ.get("KILLS", "3"))


def rows(course):
    """Return what the gradebook says of every submission, without the ids."""
    found = {}
    with course.open_gradebook() as nbgraders:
        for own in nbgraders.db.query(SubmittedNotebook):
            submitted = own.assignment
            key = (submitted.student.id, submitted.name, own.name)
            found[key] = {
                "timestamp": submitted.timestamp,
                "extension": submitted.extension,
                "penalty": own.late_submission_penalty,
                "flagged": own.flagged,
                "grades": {
                    (g.name, type(g.cell).__name__): (
                        g.auto_score,
                        g.manual_score,
                        g.extra_credit,
                        g.needs_manual_grade,
                    )
                    for g in own.grades
                },
                "comments": {
                    (c.name, type(c.cell).__name__): (c.auto_comment, c.manual_comment)
                    for c in own.comments
                },
            }
        counts = [nbgraders.db.query(t).count() for t in (SubmittedAssignment, Grade, Comment)]
    return found, counts


def state(course):
    """Return all that a run leaves for others to read."""
    write_feedback(course, collect(course))
    files = {
        path.relative_to(course.class_folder).as_posix(): path.read_bytes()
        for room in ("results", "autograded", "feedback")
        for path in (course.class_folder / room).rglob("*")
        if path.is_file()
    }
    return {"rows": rows(course), "csv": csv_text(collect(course)), "files": files}


# --- The same rows as stock nbgrader's ----------------------------------------------------------


def test_stock_nbgrader_writes_the_same_rows_and_notebooks(course, tmp_path, warm_worker):
    with (course.root / "nbgrader_config.py").open("a") as config:
        config.write('c.LateSubmissionPlugin.penalty_method = "zero"\n')
    hand_in(course, "ana", answered(course))
    mistakes = {"lse": wrong("lse", "no-max-subtraction")}
    mistakes["attention_weights"] = wrong("attention_weights", "returns-a-list")
    late = hand_in(course, "bob", answered(course, **mistakes))
    (late.parent / "timestamp.txt").write_text("2026-02-03 04:05:06.789 +0200\n")
    hand_in(course, "blank", released(course))
    with course.open_gradebook() as nbgraders:
        nbgraders.update_or_create_assignment(LESSON, duedate="2026-02-01 00:00:00 UTC")
    stock = copy_course(course, tmp_path / "stock")
    environment = {k: v for k, v in os.environ.items() if k != "PYTEST_CURRENT_TEST"}
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", "autograde", LESSON],
        cwd=stock.root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = grade_class(course, executor=warm_worker)
    assert rows(course) == rows(stock)
    assert [r.outcome for r in found] == [GRADED, GRADED, NOTICES]
    assert "nbgrader takes off" in found[-1].remarks[0]
    for student in ("ana", "bob", "blank"):
        ours, theirs = (
            nbformat.read(c.autograded / student / LESSON / NOTEBOOK, as_version=4)
            for c in (course, stock)
        )
        nbformat.validate(ours)
        assert [c.source for c in ours.cells] == [c.source for c in theirs.cells]
        assert [marks(c) for c in ours.cells] == [marks(c) for c in theirs.cells]
    stamp = course.autograded / "bob" / LESSON / "timestamp.txt"
    assert stamp.read_text() == "2026-02-03 04:05:06.789 +0200"
    assert course.api().get_autograded_students(LESSON) == {"ana", "bob", "blank"}


def marks(part):
    return dict(part.metadata.get("nbgrader", {}))


def test_what_a_person_gave_survives_and_is_looked_at_again_as_with_nbgrader(course, warm_worker):
    hand_in(course, "ana", answered(course))
    grade_class(course, executor=warm_worker)
    given = {"report": 3.5, "project": 5.0, "exam_lse": 1.0}
    give(course, given)
    assert collect(course)[0].points == 2 + 3 + sum(given.values())
    assert collect(course)[0].outcome == GRADED

    (again,) = grade_class(course, force=True, executor=warm_worker)
    assert again.points == 2 + 3 + sum(given.values())
    # nbgrader does not touch a task when it grades again.
    assert again.remarks == ("graded by hand before it was last run, look again: lse, report",)

    give(course, given)
    hand_in(course, "ana", answered(course, report="Smooth, and I can say why."))
    (other,) = grade_class(course, executor=warm_worker)
    assert other.points == 2 + 3 + sum(given.values())
    assert other.remarks[0].endswith("look again: lse, project, report")


def give(course, points):
    with course.open_gradebook() as nbgraders:
        for name, score in points.items():
            grade = nbgraders.find_grade(name, "lse_gradient", LESSON, "ana")
            grade.manual_score, grade.needs_manual_grade = score, False
        nbgraders.db.commit()


def test_formgrader_opens_what_was_graded(course, warm_worker):
    hand_in(course, "ana", answered(course))
    hand_in(course, "crash", answered(course, lse="import os\n\nos._exit(1)"))
    hand_in(course, "not-json", "<html>")
    grade_class(course, executor=warm_worker)
    with formgrader(course) as get:
        told = json.loads(get(f"api/submitted_notebooks/{LESSON}/lse_gradient"))
        shown = {each["student"]: each for each in told}
        assert {student: each["score"] for student, each in shown.items()} == {"ana": 8, "crash": 5}
        assert (shown["ana"]["failed_tests"], shown["crash"]["failed_tests"]) == (False, True)
        for each in shown.values():
            page = get(f"submissions/{each['id']}/")
            assert "lse: " in page and "of 3 points" in page  # the verdict
            assert 'id="report"' in page or "report" in page
        assert "No response." not in get(f"submissions/{shown['ana']['id']}/")


SCRIPTS = """
from IPython.display import HTML, Javascript, Markdown, display

display(HTML("<b>bold</b><script>mark(1)</script><img src=x onerror=mark(2)>"))
display(Javascript("mark(3)"))
display(Markdown("**thick** <script>mark(4)</script> $a < b$"))
print("<script>mark(5)</script>")
display({"image/svg+xml": "<svg onload='mark(6)'></svg>"}, raw=True)
display({"text/latex": "<script>mark(7)</script>"}, raw=True)
widget = {"application/vnd.jupyter.widget-view+json": {}, "text/html": "<b>widget</b>"}
display(widget, raw=True)
"""


def test_nothing_of_a_student_runs_in_formgrader(course, warm_worker):
    report = (
        "Mine: *slanted*, $x < y$.\n\n<script>mark(8)</script><a href='javascript:mark(9)'>x</a>"
    )
    hand_in(course, "eve", answered(course, lse=SCRIPTS, report=report))
    grade_class(course, executor=warm_worker)
    with formgrader(course) as get:
        (each,) = json.loads(get(f"api/submitted_notebooks/{LESSON}/lse_gradient"))
        page = get(f"submissions/{each['id']}/")
    for shown in (
        "<b>bold</b>",
        "<b>widget</b>",
        "<strong>thick</strong>",
        "<em>slanted</em>",
        "<math",
    ):
        assert shown in page
    for script in re.findall(r"<script\b.*?</script>", page, re.S):
        assert "mark(" not in script
    assert not re.search(r"<[^>]*mark\(", page)  # in no attribute


@contextlib.contextmanager
def formgrader(course):
    """Run formgrader in a Jupyter server, and give a function that fetches its pages."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = [
        f"--ServerApp.port={port}",
        "--ServerApp.jpserver_extensions={'nbgrader.server_extensions.formgrader': True}",
        "--ServerApp.open_browser=False",
        "--ServerApp.allow_root=True",
        "--IdentityProvider.token=",
        "--ServerApp.disable_check_xsrf=True",
    ]
    with (
        open(os.devnull, "w") as nowhere,
        subprocess.Popen(
            [sys.executable, "-m", "jupyter_server", *options],
            cwd=course.root,
            stdout=nowhere,
            stderr=nowhere,
        ) as server,
    ):

        def get(path):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/formgrader/{path}") as answer:
                return answer.read().decode()

        try:
            deadline = time.monotonic() + 60
            while True:
                try:
                    get("api/status")
                    break
                except OSError:
                    assert time.monotonic() < deadline
                    time.sleep(0.2)
            yield get
        finally:
            server.terminate()


def test_few_statements_enter_a_submission(course, warm_worker):
    hand_in(course, "ana", answered(course))
    grade_class(course, executor=warm_worker)
    statements = []
    with gradebook.connect(course) as book:
        book.cells(LESSON)

        @event.listens_for(book._engine, "before_cursor_execute")
        def note(connection, cursor, statement, *rest):
            statements.append(statement)

        scores = dict.fromkeys(book.cells(LESSON).graded, 1.0)
        book.enter("ana", LESSON, scores, [], None, changed=False)
        again = len(statements)
        book.enter("new", LESSON, scores, [], None, changed=False)
    print(again, "statements for a known student,", len(statements) - again, "for a new one")
    assert again <= 5
    assert len(statements) - again <= 12


# --- The journal -------------------------------------------------------------------------------


@pytest.fixture
def runs(monkeypatch):
    """Count what is run, and remember answers, so that the same work is done once."""
    known, ran = {}, []

    def remember(request):
        key = json.dumps([request.source.decode(), sorted(map(repr, request.files.items()))])
        ran.append(request.wanted)
        if key not in known:
            known[key] = worker.work(request)
        return copy.deepcopy(known[key])

    monkeypatch.setattr(pool, "work", remember)
    return ran


def test_what_has_not_changed_is_not_run_and_what_has_is(course, warm_worker, monkeypatch, runs):
    path = hand_in(course, "ana", answered(course))
    hand_in(course, "bob", "not a notebook")

    def grade(**options):
        runs.clear()
        return grade_class(course, executor=warm_worker, **options), len(runs)

    first, ran = grade()
    assert ran == 2
    os.utime(path, (1, 1))
    assert grade() == (first, 0)
    assert grade(force=True) == (first, 2)

    (path.parent / "notes.txt").write_text("not part of it")
    assert grade() == (first, 0)
    (path.parent / "timestamp.txt").write_text("2026-02-03 04:05:06 UTC")
    assert grade()[1] == 1

    # Another version of the course: points of the old one are shown with a word about it.
    monkeypatch.setattr(journal, "judging_version", lambda: "another")
    ana, bob = collect(course)
    assert (ana.outcome, ana.points, bob.outcome) == (NOTICES, 8, NOT_GRADED)
    assert "another version of the course" in ana.remarks[0]
    assert grade() == (first, 2)

    # A gradebook that lost a grade gets it back.
    with course.open_gradebook() as nbgraders:
        nbgraders.remove_submission(LESSON, "ana")
    assert "lost this grade" in collect(course)[0].reason
    assert grade() == (first, 1)


def test_bounds_are_set_in_the_config_and_part_of_the_version(course):
    config = course.root / "nbgrader_config.py"
    limits = journal.read_limits(course)
    assert (limits.cell_seconds, limits.memory) == (8, Limits().memory)
    source = b"{}"
    versions = {journal.course_version(source, limits), journal.course_version(b"{ }", limits)}
    text = config.read_text()
    config.write_text(text + "c.Limits.memory = 1 << 29\n")
    versions.add(journal.course_version(source, journal.read_limits(course)))
    assert len(versions) == 3
    for line, says in (
        ("c.Limits.seconds = 3", "c.Limits has no seconds. Known: call_seconds"),
        ("c.Limits.memory = '1 GB'", "c.Limits.memory must be a whole number above 0"),
        ("c.Limits.cell_seconds = 0", "c.Limits.cell_seconds must be a number above 0"),
    ):
        config.write_text(f"{text}{line}\n")
        with pytest.raises(CourseError, match=says):
            grade_class(course)


def test_the_version_covers_all_that_a_worker_imports():
    code = "import sys, autograder.worker; print(*(m for m in sys.modules if 'autograder' in m))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    judges = {name.removesuffix(".py") for name in JUDGES}
    names = {name.split(".")[1] for name in done.stdout.split() if "autograder." in name}
    assert names <= judges
    assert all((Path(worker.__file__).parent / name).exists() for name in JUDGES)


def test_the_version_leaves_out_what_only_a_browser_reads():
    names = [name for name, _ in _files()]
    assert "hopping/judge.py" in names and "hopping/hopping.mplstyle" in names
    assert not [name for name in names if name.endswith((".css", ".js"))]


# --- Outcomes that are nobody's fault -----------------------------------------------------------


def test_a_time_that_is_none_is_said(course, warm_worker):
    path = hand_in(course, "ana", answered(course))
    (path.parent / "timestamp.txt").write_text("yesterday")
    (result,) = grade_class(course, executor=warm_worker)
    assert result.notices == ("timestamp.txt holds no time: yesterday.",)


def test_without_isolation_it_is_said_once_and_all_else_goes_on(
    course, warm_worker, monkeypatch, capsys, runs
):
    for student in ("ana", "bob"):
        hand_in(course, student, answered(course))
    words = "Student code runs with the rights of you and can read this disk: a test."
    monkeypatch.setattr(grading, "isolation_warning", lambda: words)
    assert [r.outcome for r in grade_class(course, executor=warm_worker)] == [GRADED] * 2
    assert capsys.readouterr().err.count(words) == 1
    assert (course.class_folder / "grade.log").read_text().count(words) == 1
    grade_class(course, executor=warm_worker)
    assert words not in capsys.readouterr().err  # nothing was run


TOKEN = 0.7391264718236451


def test_a_hidden_case_and_a_reference_are_nowhere_in_the_class(course, warm_worker, monkeypatch):
    spy = (
        "def lse(xi, Y, beta):\n    text = repr([xi.tolist(), Y.tolist(), beta])\n"
        "    print(text)\n    globals().setdefault('seen', []).append(text)\n"
        "    raise ValueError(text)"
    )
    exercise = load()["lse"]
    for case in exercise.groups[0].cases:
        monkeypatch.setitem(case.inputs, "beta", TOKEN)
    nb = answered(course, lse=spy)
    nb.cells.append(nbformat.v4.new_code_cell("print(globals().get('seen'))"))
    hand_in(course, "spy", nb)
    write_feedback(course, grade_class(course, executor=warm_worker))
    (course.class_folder / "grades.csv").write_text(csv_text(collect(course)))
    for path in course.class_folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert str(TOKEN)[:12].encode() not in content, path
            assert b"autograder.reference" not in content, path


# --- Workers that die --------------------------------------------------------------------------


class Deadly(dict):
    """Files that end the process they arrive in."""

    def __reduce__(self):
        return os._exit, (1,)


def test_a_submission_that_ends_its_worker_costs_no_other():
    def request(files):
        source = json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
        return worker.Request(files, NOTEBOOK, source.encode(), Limits(), "", judging_version())

    tasks = [(number, request({NOTEBOOK: b"<html>"})) for number in range(12)]
    tasks[3:3] = [("deadly", request(Deadly()))]
    tasks.append(("last", request(Deadly())))
    found = dict(pool.answers(tasks, 2))
    assert found.keys() == {*range(12), "deadly", "last"}
    for key, outcome in found.items():
        if key in ("deadly", "last"):
            assert isinstance(outcome, pool.BrokenExecutor)
        else:
            assert outcome.reason == "the file is a web page, not a notebook"


def test_a_worker_with_another_version_refuses(course, warm_worker, monkeypatch):
    hand_in(course, "ana", answered(course))
    monkeypatch.setattr(grading, "judging_version", lambda: "another")
    (result,) = grade_class(course, executor=warm_worker)
    assert result.outcome == NOT_GRADED
    assert "another version of the course's programs" in result.reason
    monkeypatch.undo()
    (result,) = grade_class(course, executor=warm_worker)
    assert result.outcome == GRADED


# --- Stopped and started -----------------------------------------------------------------------


@pytest.fixture
def changed_class(course, warm_worker, runs):
    """Return a class that was graded and has changed since, in every way there is."""
    for student in ("ana", "bob", "cara", "dan"):
        hand_in(course, student, answered(course))
    grade_class(course, executor=warm_worker)
    write_feedback(course, collect(course))
    give(course, {"report": 3.0})
    hand_in(course, "ana", "<html>no longer a notebook")
    hand_in(course, "bob", answered(course, lse=wrong("lse", "no-max-subtraction")))
    shutil.rmtree(course.submitted / "cara" / LESSON)
    hand_in(course, "eve", answered(course))
    hand_in(course, "fay", answered(course), "renamed.ipynb")
    return course


class Crash(BaseException):
    """Nobody catches it: what comes after it does not happen, as with kill -9."""


def test_a_run_that_ends_before_any_of_its_writes_is_taken_up_again(
    changed_class, tmp_path, warm_worker
):
    whole = copy_course(changed_class, tmp_path / "whole")
    grade_class(whole, executor=warm_worker)
    expected = state(whole)
    outcomes = {r.student: r.outcome for r in collect(whole)}
    assert outcomes == {
        "ana": NOT_GRADED,
        "bob": GRADED,
        "cara": MISSING,
        "dan": GRADED,
        "eve": GRADED,
        "fay": NOTICES,
    }
    writes = 0
    while True:
        broken = copy_course(changed_class, tmp_path / f"broken-{writes}")
        with pytest.MonkeyPatch.context() as patch:
            if not crashes_at(writes, patch, broken, warm_worker):
                break
        grade_class(broken, executor=warm_worker)
        assert state(broken) == expected, f"ended before write number {writes}"
        writes += 1
        shutil.rmtree(broken.root)
    print("ended before each of", writes, "writes")
    assert writes >= 15


def crashes_at(number, patch, course, executor):
    """Grade until just before a write of this number; say whether there was one."""
    left = [number]

    def guard(function):
        def guarded(*args, **kwargs):
            if left[0] == 0:
                raise Crash
            left[0] -= 1
            return function(*args, **kwargs)

        return guarded

    for place, name in (
        (journal.os, "replace"),
        (grading.shutil, "rmtree"),
        (gradebook.Gradebook, "enter"),
        (gradebook.Gradebook, "withdraw"),
    ):
        patch.setattr(place, name, guard(getattr(place, name)))
    try:
        grade_class(course, executor=executor)
    except Crash:
        return True
    return False


def test_kill_9_at_random_moments_and_two_at_once(course, tmp_path, capsys):
    for student in ("ana", "bob"):
        hand_in(course, student, answered(course, report=f"By {student}."))
    hand_in(course, "crash", answered(course, lse="import os\n\nos._exit(1)"))
    hand_in(course, "not-json", "<html>")
    judging_version()  # one for all that is forked here, whoever edits the course meanwhile
    whole = copy_course(course, tmp_path / "whole")
    seconds = run(whole, seconds=None)
    expected = state(whole)
    seed = random.randrange(10**6)
    print("seed", seed)
    moments = random.Random(seed)
    command = ["grade", "--course", str(tmp_path / "killed")]
    for first in range(0, KILLS, 4):  # what one run left is killed again
        killed = copy_course(course, tmp_path / "killed")
        for _ in range(min(4, KILLS - first)):
            run(killed, moments.uniform(0.0, seconds))
        run(killed, seconds=None, meanwhile=lambda: main(command))
        assert "this class is being graded already (by process" in capsys.readouterr().err
        for part, content in state(killed).items():
            assert content == expected[part]
        shutil.rmtree(killed.root)


def run(course, seconds, meanwhile=None):
    """Grade in a process of its own; kill it after some seconds, with None let it end.

    All that it started must go with it. Returns how long it took.
    """
    started = time.monotonic()
    grader = os.fork()
    if grader == 0:
        with contextlib.suppress(BaseException):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            forkserver._forkserver.__init__()  # its own, not its parent's
            grade_class(course, workers=1)
            os._exit(0)
        os._exit(1)
    lock = course.class_folder / "grading.lock"
    while meanwhile and not (lock.exists() and f"process {grader} " in lock.read_text()):
        time.sleep(0.01)
    assert meanwhile is None or meanwhile() == 2
    if seconds is None:
        family, code = set(), None
        while code is None:
            family |= descendants(grader)
            time.sleep(0.02)
            pid, status = os.waitpid(grader, os.WNOHANG)
            code = status if pid else None
        assert code == 0
    else:
        time.sleep(seconds)
        family = descendants(grader)
        os.kill(grader, signal.SIGKILL)
        os.waitpid(grader, 0)
    took = time.monotonic() - started
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{pid}").exists() for pid in family):
        assert time.monotonic() < deadline, "something is still running"
        time.sleep(0.05)
    return took


def descendants(pid):
    found, rest = set(), [pid]
    while rest:
        try:
            for task in Path(f"/proc/{rest.pop()}/task").iterdir():
                rest += [int(child) for child in (task / "children").read_text().split()]
        except OSError:
            continue
        found |= set(rest)
    return found


def test_a_class_that_is_being_graded_is_left_alone(course, capsys):
    hand_in(course, "ana", answered(course))

    def files():
        return {p: p.read_bytes() for p in course.class_folder.rglob("*") if p.is_file()}

    with grading._only_run(course):
        before = files()
        assert main(["grade", "--course", str(course.root)]) == 2
        assert files() == before
    assert f"by process {os.getpid()} on " in capsys.readouterr().err
    assert cell(released(course), "lse").source  # the course itself can be read


def test_what_a_worker_computes_is_plain(course, warm_worker):
    source = (course.source / LESSON / NOTEBOOK).read_bytes()
    data = json.dumps(answered(course)).encode()
    request = worker.Request({NOTEBOOK: data}, NOTEBOOK, source, Limits(), "", judging_version())
    answer = warm_worker.submit(worker.work, request).result()
    assert {type(score) for score in answer.scores.values()} <= {float, type(None)}
    assert {type(v.points) for v in answer.verdicts} == {float}
    assert not isinstance(answer.verdicts[0].points, np.generic)
