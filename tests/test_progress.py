"""Progress: what checks note beside a notebook, in every state of the disk, and how it is shown."""

import base64
import contextlib
import io
import itertools
import json
import os
import re
import resource
import shutil
import signal
import stat
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import IPython
import nbformat
import numpy as np
import pytest
from classroom import LESSON, NOTEBOOK, copy_course, hand_in, make_course, released
from IPython.core.interactiveshell import InteractiveShell
from matplotlib.colors import to_rgb
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook
from PIL import Image
from scipy.special import logsumexp, softmax

from autograder.handed_in import read_handed_in
from autograder.releasing import stray_files
from autograder.submission import choose_file
from hopping import check, draw
from hopping import progress as module
from hopping.progress import (
    ASIDE,
    FILE,
    NEW,
    LessonProgress,
    Progress,
    Standing,
    draw_progress,
    note_outcome,
    progress,
)
from hopping.verdict import CheckFailed

ROOT = Path(__file__).parent.parent


def lse(xi, Y, beta):
    return logsumexp(beta * (Y @ xi)) / beta


def attention_weights(xi, Y, beta):
    return softmax(beta * (Y @ xi))


def wrong(name):
    """Return a function of that name that answers nothing."""

    def function(*_inputs):
        return None

    function.__name__ = name
    return function


def refused(name):
    with pytest.raises(CheckFailed):
        check(wrong(name))


@pytest.fixture(autouse=True)
def nothing_pending():
    yield
    module._pending.clear()
    module._trouble.clear()


@pytest.fixture
def work(tmp_path, monkeypatch):
    """Give a learner's copy of two lessons, and go to the first as its kernel would."""
    for lesson in ("01_lse_gradient", "02_gmm_polarization"):
        shutil.copytree(ROOT / "release" / lesson, tmp_path / lesson)
    monkeypatch.setattr(IPython, "get_ipython", lambda: SimpleNamespace(kernel=object()))
    monkeypatch.chdir(tmp_path / "01_lse_gradient")
    return tmp_path


def kept(folder):
    return json.loads((folder / FILE).read_text("utf-8"))["exercises"]


def lesson_of(shown, name):
    return next(lesson for lesson in shown.lessons if lesson.lesson == name)


def standing(shown, exercise):
    return next(s for lesson in shown.lessons for s in lesson.standings if s.exercise == exercise)


# ---------------------------------------------------------------- what is noted


def test_a_check_outside_a_notebook_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert check(lse).passed
    InteractiveShell.instance()  # what the examiner's candidate has
    try:
        assert check(lse).passed
    finally:
        InteractiveShell.clear_instance()
    assert list(tmp_path.iterdir()) == []


def test_checks_in_a_notebook_are_kept_and_shown(work):
    assert check(lse).passed
    refused("lse_grad")
    shown = progress()
    assert standing(shown, "lse").passed
    assert not standing(shown, "lse_grad").passed
    assert lesson_of(shown, "01_lse_gradient").count == "1 of 6"
    assert lesson_of(shown, "02_gmm_polarization").count == "0 of 6"
    assert shown.notes == ()
    assert sorted(p.name for p in (work / "01_lse_gradient").iterdir()) == [FILE, NOTEBOOK]


def test_what_no_exercise_is_is_not_noted(work):
    with pytest.raises(ValueError, match="No exercise"):
        check(wrong("softmx"))
    assert not (work / "01_lse_gradient" / FILE).exists()


def test_the_latest_outcome_counts_and_the_first_pass_stays(work):
    refused("lse")
    assert kept(work / "01_lse_gradient")["lse"]["first_passed"] is None
    check(lse)
    first = kept(work / "01_lse_gradient")["lse"]["first_passed"]
    assert datetime.fromisoformat(first).tzinfo
    check(lse)
    refused("lse")
    assert kept(work / "01_lse_gradient")["lse"]["first_passed"] == first
    shown = progress()
    today = f"{datetime.fromisoformat(first).astimezone():%Y-%m-%d}"
    assert lesson_of(shown, "01_lse_gradient").newest == today
    assert f"lse (passed on {today}, not now)" in str(shown)
    check(lse)
    assert standing(progress(), "lse").passed


def test_the_latest_outcome_counts_when_the_clock_is_set_back(work):
    check(lse)
    path = work / "01_lse_gradient" / FILE
    path.write_text(path.read_text("utf-8").replace('"20', '"30'), "utf-8")  # a thousand years on
    refused("lse")
    assert not standing(progress(), "lse").passed


def test_where_nothing_was_checked_it_says_so(work):
    assert "No check has been noted here yet" in progress().notes[0]


def test_every_lesson_is_seen_from_every_other_and_from_above(work, monkeypatch):
    check(lse)
    monkeypatch.chdir(work / "02_gmm_polarization")
    note_outcome("posterior", True)
    assert set(kept(work / "02_gmm_polarization")) == {"posterior"}
    (work / "scratch").mkdir()
    for place in ("01_lse_gradient", "02_gmm_polarization", "scratch", "."):
        monkeypatch.chdir(work / place)
        shown = progress()
        assert standing(shown, "lse").passed, place
        assert standing(shown, "posterior").passed, place
        assert shown.closing.startswith("2 of "), place


def test_of_two_files_the_later_outcome_counts(work, monkeypatch):
    check(lse)
    monkeypatch.chdir(work / "02_gmm_polarization")
    refused("lse")
    for lesson in ("01_lse_gradient", "02_gmm_polarization"):
        monkeypatch.chdir(work / lesson)
        assert standing(progress(), "lse").slipped


def test_exercises_come_in_the_order_of_the_lesson(work):
    def names(shown):
        return [s.exercise for s in lesson_of(shown, "01_lse_gradient").standings]

    in_order = names(progress())
    assert in_order == [
        "lse",
        "fd_grad",
        "attention_weights",
        "lse_grad",
        "lse_hessian",
        "gradcheck",
    ]
    assert "Next: lse, in 01_lse_gradient." in progress().closing
    titles = [lesson.row[0] for lesson in progress().lessons]
    assert titles[0] == "1 · The softmax average is a gradient"
    assert titles[2] == "03_cccp", "its notebook is not here"
    (work / "01_lse_gradient" / NOTEBOOK).write_bytes(b"\xff not a notebook")
    assert sorted(names(progress())) == sorted(in_order), "without it they are all there still"


# ---------------------------------------------------------------- when the disk is in the way

DAMAGED = {
    "nothing": b"",
    "half": b'{"exercises": {"lse": {"passed": tr',
    "no text": b"\xff\xfe\x00",
    "a list": b"[1, 2]",
    "another file": b'{"exercises": ["lse"]}',
    "other values": b'{"exercises": {"lse": {"passed": "yes", "checked": "", "first_passed": 0}}}',
    "a time without zone": b'{"exercises": {"lse": {"passed": true, "first_passed": null,'
    b' "checked": "2026-01-01T00:00:00"}}}',
    "deep": b"[" * 100_000,
    "large": b" " * (module.SIZE_LIMIT + 1),
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_put_aside_and_never_lost(work, content):
    folder = work / "01_lse_gradient"
    (folder / FILE).write_bytes(content)
    note = progress().notes[0]
    assert "01_lse_gradient" in note
    assert "damaged" in note
    assert (folder / FILE).read_bytes() == content, "showing changes nothing"

    assert check(lse).passed
    assert (folder / f"{ASIDE}.json").read_bytes() == content
    assert set(kept(folder)) == {"lse"}
    (note,) = progress().notes
    assert f"{ASIDE}.json could not be read and was put aside" in note

    (folder / FILE).write_bytes(b"damaged again")
    refused("lse")
    assert (folder / f"{ASIDE}.json").read_bytes() == content
    assert (folder / f"{ASIDE}_2.json").read_bytes() == b"damaged again"


def test_an_exercise_of_another_version_of_the_course_is_kept_and_not_shown(work):
    note_outcome("of_a_later_lesson", True)
    check(lse)
    assert set(kept(work / "01_lse_gradient")) == {"lse", "of_a_later_lesson"}
    assert "of_a_later_lesson" not in str(progress())


@contextlib.contextmanager
def full_disk(_folder):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@contextlib.contextmanager
def read_only(folder):
    mode = stat.S_IMODE(folder.stat().st_mode)
    user = os.geteuid()
    folder.chmod(0o555)
    if user == 0:
        os.seteuid(65534)  # root may write everywhere
    try:
        yield
    finally:
        os.seteuid(user)
        folder.chmod(mode)


@contextlib.contextmanager
def held_by_another_kernel(folder):
    (folder / NEW).touch()
    try:
        yield
    finally:
        (folder / NEW).unlink()


@contextlib.contextmanager
def a_folder_in_its_place(folder):
    (folder / FILE).rename(folder / "away")
    (folder / FILE).mkdir()
    try:
        yield
    finally:
        (folder / FILE).rmdir()
        (folder / "away").rename(folder / FILE)


@pytest.mark.parametrize(
    "trouble", [full_disk, read_only, held_by_another_kernel, a_folder_in_its_place]
)
def test_what_cannot_be_written_is_said_and_written_later(work, monkeypatch, trouble):
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    folder = work / "01_lse_gradient"
    check(lse)
    before = (folder / FILE).read_bytes()
    progress()  # everything that is read once has been read
    with trouble(folder):
        assert check(attention_weights).passed
        refused("lse")
        shown = progress()
    assert standing(shown, "attention_weights").passed
    assert not standing(shown, "lse").passed
    assert shown.notes[-1].startswith("Not kept yet: attention_weights, lse (")
    assert (folder / FILE).read_bytes() == before, "whole as it was"
    assert sorted(p.name for p in folder.iterdir()) == [FILE, NOTEBOOK]

    refused("lse_grad")
    assert set(kept(folder)) == {"attention_weights", "lse", "lse_grad"}
    assert standing(progress(), "lse").slipped
    assert progress().notes == ()


def test_an_unreadable_file_is_said(work):
    check(lse)
    with a_folder_in_its_place(work / "01_lse_gradient"):
        note = progress().notes[0]
    assert "01_lse_gradient" in note
    assert "cannot be read" in note


def test_a_folder_that_is_gone_is_no_reason_to_fail(work, monkeypatch):
    gone = work / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert check(lse).passed
    shown = progress()
    assert standing(shown, "lse").passed
    assert "is gone" in shown.notes[0]
    assert "Not kept yet: lse" in shown.notes[1]


def test_whatever_happens_a_check_says_what_it_has_to_say(work, monkeypatch):
    def broken(*_):
        raise RuntimeError("odd")

    monkeypatch.setattr(module, "_write", broken)
    assert check(lse).passed
    refused("lse")
    assert "(odd)" in progress().notes[0]


def test_what_a_killed_kernel_left_holds_nobody_up(work):
    left = work / "01_lse_gradient" / NEW
    left.write_text('{"exercises"')
    os.utime(left, (time.time() - 60, time.time() - 60))
    started = time.monotonic()
    check(lse)
    assert time.monotonic() - started < module.PATIENCE
    assert set(kept(left.parent)) == {"lse"}
    assert not left.exists()


WRITER = """
import sys, types, IPython
from hopping import progress
IPython.get_ipython = lambda: types.SimpleNamespace(kernel=1)
for number in range(60):
    progress.note_outcome(f"{sys.argv[1]}_{number}", number % 2 == 0)
print(len(progress._pending))
"""


def test_two_kernels_at_once_lose_nothing_and_never_leave_a_half(work):
    folder = work / "01_lse_gradient"
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, name], cwd=folder, stdout=subprocess.PIPE, text=True
        )
        for name in ("one", "two")
    ]
    reads = 0
    while any(writer.poll() is None for writer in writers):
        with contextlib.suppress(FileNotFoundError):
            module._read(folder / FILE)  # a half would raise
            reads += 1
    assert [writer.communicate()[0].strip() for writer in writers] == ["0", "0"]
    assert len(kept(folder)) == 120
    assert reads > 0
    assert sorted(p.name for p in folder.iterdir()) == [FILE, NOTEBOOK]


# ---------------------------------------------------------------- where it must not turn up


def test_the_files_are_never_built_released_committed_or_graded(tmp_path):
    course = copy_course(make_course(tmp_path / "template"), tmp_path / "course")
    hand_in(course, "ada", released(course))
    folder = course.submitted / "ada" / LESSON
    source = nbformat.read(course.source / LESSON / NOTEBOOK, as_version=4)
    alone = read_handed_in(folder, NOTEBOOK)
    for name in (FILE, NEW, f"{ASIDE}.json"):
        (folder / name).write_text("{}")
    assert read_handed_in(folder, NOTEBOOK) == alone
    (folder / NOTEBOOK).rename(folder / "mine.ipynb")
    renamed = read_handed_in(folder, NOTEBOOK)
    _, notices = choose_file(renamed.files, NOTEBOOK, source)
    assert len(notices) == 1, "that of the name, as without them"

    for name in (FILE, NEW):
        (course.source / LESSON / name).write_text("{}")
    assert stray_files(course.source / LESSON) == []
    ignored = shutil.ignore_patterns(*course.config().CourseDirectory.ignore)
    assert ignored("", [FILE, NEW, NOTEBOOK]) == {FILE, NEW}


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")
def test_git_ignores_them():
    names = [FILE, NEW, f"{ASIDE}.json", f"{ASIDE}_2.json"]
    paths = [f"release/{LESSON}/{name}" for name in names]
    found = subprocess.run(
        ["git", "check-ignore", *paths], cwd=ROOT, capture_output=True, text=True
    ).stdout
    assert found.split() == paths


def test_the_file_holds_names_outcomes_and_times_alone(work):
    check(lse)
    refused("attention_weights")
    assert all(
        set(entry) == {"passed", "checked", "first_passed"}
        for entry in kept(work / "01_lse_gradient").values()
    )
    assert str(work) not in (work / "01_lse_gradient" / FILE).read_text("utf-8")


# ---------------------------------------------------------------- how it is shown

DAY = datetime(2026, 3, 1, 12, tzinfo=UTC)


def shown(*rows):
    """Return progress from one string a lesson: x passes, o is open, t passed before."""
    return Progress(
        tuple(
            LessonProgress(
                f"0{row}_<lesson>",
                tuple(
                    Standing(f"f{place}", mark == "x", None if mark == "o" else DAY)
                    for place, mark in enumerate(marks)
                ),
            )
            for row, marks in enumerate(rows, 1)
        )
    )


def test_the_table_says_it_in_words():
    text = str(shown("xo", "oot"))
    assert "01_<lesson>  1 of 2" in text
    assert "1 f0, 2 f1, 3 f2 (passed on 2026-03-01, not now)" in text
    assert "newest pass" in text.splitlines()[0]
    assert text.endswith("1 of 5 exercises pass. Next: f1, in 01_<lesson>.")
    assert str(shown("xx", "x")).endswith("All 3 exercises pass.")


def test_the_page_has_headings_escapes_names_and_describes_its_picture():
    data = shown("xo", "oo")._repr_mimebundle_()
    page = data["text/html"]
    assert "<lesson>" not in page
    assert page.count('scope="col"') == 4
    assert page.count('scope="row"') == 2
    cells = re.findall(r'<t[hd][^>]* style="([^"]+)"', page)
    assert len(cells) == 12
    assert all("text-align: left" in style for style in cells)
    assert sum("nowrap" not in style for style in cells) == 2, "the names of what is open"
    (alt,) = re.findall(r'<img alt="([^"]+)"', page)
    assert alt == "1 of 4 exercises pass. Filled circles pass, hollow ones are open."
    assert data["text/plain"] == str(shown("xo", "oo"))
    assert "triangles passed before" in shown("xt").words
    open_one = Progress((LessonProgress("a lesson", (Standing("<f>", False),)),), ("<note>",))
    assert not {"<f>", "<note>"} & set(re.findall(r"<\w+>", open_one._repr_html_()))


def image(some):
    png = re.search(r"base64,([^\"]+)", some._repr_mimebundle_()["text/html"])[1]
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB"), dtype=float)


def near(picture, color):
    return np.abs(picture - 255 * np.array(to_rgb(color))).max(axis=2) < 12


def test_the_picture_at_its_ends_and_between():
    blue = draw.ROLES["token"].color
    amounts = [near(image(shown(*rows)), blue).sum() for rows in (("oooo",), ("xxoo",), ("xxxx",))]
    assert 0 < amounts[0] < amounts[1] < amounts[2]
    assert amounts[2] > 1.5 * amounts[0], "filled marks are fuller without their colour, too"
    assert not near(image(shown("xo")), draw.ROLES["other"].color).any()
    assert near(image(shown("xt")), draw.ROLES["other"].color).any()


@pytest.mark.parametrize("rows", [("xxxxxxx",), ("o",), ("xo", "ttttttt", "ox"), ("t",), ()])
def test_every_mark_and_count_is_inside(rows):
    some = shown(*rows)
    picture = some.picture()
    picture.draw_without_rendering()
    (ax,) = picture.axes
    marks = [tuple(point) for line in ax.lines for point in line.get_xydata()]
    assert sorted(marks) == sorted(
        (place, row) for row, r in enumerate(rows) for place in range(1, len(r) + 1)
    )
    assert all(ax.get_xlim()[0] < x < ax.get_xlim()[1] for x, _ in marks)
    assert all(min(ax.get_ylim()) < y < max(ax.get_ylim()) for _, y in marks)
    assert [text.get_text() for text in ax.texts] == [lesson.count for lesson in some.lessons]
    room = picture.bbox
    for text in (*ax.texts, *ax.get_yticklabels(), *picture.texts):
        box = text.get_window_extent()
        assert room.x0 <= box.x0 and box.x1 <= room.x1 and room.y0 <= box.y0, text


def test_the_titles_of_lessons_fit_beside_the_marks(work):
    picture = progress().picture()
    picture.draw_without_rendering()
    (ax,) = picture.axes
    labels = ax.get_yticklabels()
    assert labels[0].get_text().replace("\n", " ") == "1 · The softmax average is a gradient"
    boxes = [label.get_window_extent() for label in labels]
    assert all(box.x0 >= picture.bbox.x0 for box in boxes)
    assert all(above.y0 > below.y1 for above, below in itertools.pairwise(boxes))


def test_drawing_is_pure():
    lessons = shown("xo").lessons
    with draw.figure() as (_, (ax,)):
        assert len(draw_progress(ax, lessons)) == 3


def test_a_check_brings_no_matplotlib():
    code = "import sys, hopping; print('matplotlib' in sys.modules, 'IPython' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False False"


def test_what_the_readme_says_works_in_a_kernel(tmp_path):
    text = (ROOT / "README.md").read_text("utf-8")
    (cell,) = re.findall(r"```python\n(from hopping\.progress.*?)```", text, re.S)
    folder = tmp_path / "01_lse_gradient"
    folder.mkdir()
    answer = (
        "from scipy.special import logsumexp\nfrom hopping import check\n\n"
        "def lse(xi, Y, beta):\n    return logsumexp(beta * (Y @ xi)) / beta\n\ncheck(lse)"
    )
    notebook = new_notebook(cells=[new_code_cell(answer), new_code_cell(cell)])
    NotebookClient(
        notebook, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()
    assert set(kept(folder)) == {"lse"}
    assert FILE in text
    (output,) = notebook.cells[1].outputs
    assert "01_lse_gradient          1 of 6" in output.data["text/plain"]
    assert "<table>" in output.data["text/html"]
    assert "<img alt=" in output.data["text/html"]
