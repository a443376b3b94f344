"""The build: what it refuses, that it repeats itself to the byte, and that nothing leaks."""

import errno
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from autograder import built
from autograder.build import BuildError, build
from autograder.course import Course, CourseError
from autograder.exercise import Alternative, Exercise, Group, Misconception
from autograder.leaks import leaks
from autograder.lesson_rules import read_lessons
from autograder.notebooks import STARTUP
from autograder.releasing import register, release_assignment
from hopping.cases import Case

HERE = Path(__file__).parent
ROOT = HERE.parent

# What the fixture's lessons import: enough to see that a kernel gets the new examples.
HOPPING = """
import json
from pathlib import Path


def check(function):
    path = Path(__file__).parent / "examples" / f"{function.__name__}.json"
    assert json.loads(path.read_text())["exercise"] == function.__name__
"""


def exercise(name, lesson, reference, case):
    return Exercise(
        name,
        lesson,
        points=3,
        expects="a number",
        reference=reference,
        examples=(case,),
        groups=(
            Group("ordinary", "ordinary values", 0.6, (case,)),
            Group("edge", "edge shapes", 0.4, (case,)),
        ),
        misconceptions=(Misconception("unchanged", "Do something with x.", lambda x: x),),
        alternatives=(Alternative("same", reference),),
    )


EXERCISES = {
    "double": exercise(
        "double", "01_doubling", lambda x: 2 * x, Case("two", {"x": np.array([2.0, 0.5])})
    ),
    "halve": exercise("halve", "02_halving", lambda x: x / 2, Case("three", {"x": 3.0})),
}


def make_course(root):
    shutil.copytree(HERE / "lessons", root / "course" / "lessons")
    shutil.copy(ROOT / "nbgrader_config.py", root)
    (root / "course" / "hopping").mkdir()
    (root / "course" / "hopping" / "__init__.py").write_text(HOPPING)
    return Course(root)


def edit(path, old, new):
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


def tree(course):
    """Return all files but those of the class, which a build may start."""
    return {
        path.relative_to(course.root).as_posix(): path.read_bytes()
        for path in sorted(course.root.rglob("*"))
        if path.is_file() and "class" not in path.parts and "__pycache__" not in path.parts
    }


def run_build(course, exercises=EXERCISES):
    lines = []
    changed = build(course, exercises, progress=lines.append)
    return changed, "\n".join(lines)


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    course = make_course(tmp_path_factory.mktemp("pristine"))
    run_build(course)
    return course


@pytest.fixture
def course(pristine, tmp_path):
    """Return a copy of the built course, with a gradebook that knows its cells."""
    shutil.copytree(pristine.root, tmp_path / "course")
    return Course(tmp_path / "course")


@pytest.fixture
def texts(tmp_path):
    """Return a course that has only its lessons' texts."""
    return make_course(tmp_path)


def problems_of(course, exercises=EXERCISES):
    return [str(p) for p in read_lessons(course.lessons, exercises, course.root)[1]]


# --- Refusals ----------------------------------------------------------------------------------

HALVE = "02_halving.py"
STUB = '# %% nbgrader={"grade_id": "halve", "solution": true}'

REFUSALS = {
    "syntax error": ("return x * 0.5", "return x * * 0.5", 16, "not Python"),
    "warning": ('"""Return half', '"\\d"\n    """Return half', 14, "not Python"),
    "statement over two cells": ("import check", "import (check", 9, "not Python"),
    "markdown without comment": ("# That was", "That was", 25, "is not a comment"),
    "markdown string not closed": ('number?\n"""', "number?", 2, "not Python"),
    "header squeezed": ('# %% name="imports"', '#%% name="imports"', 8, "nearly a cell's first"),
    "header of another kind": (
        '[markdown] name="end"',
        '[Markdown] name="end"',
        24,
        "this header cannot be read",
    ),
    "header with a title": ("# %%\ncheck", "# %% Try it\ncheck", 21, "cannot be read"),
    "header not JSON": ('"solution": true', '"solution": tru', 12, "cannot be read"),
    "raw cell": ('[markdown] name="end"', '[raw] name="end"', 24, "cannot be read"),
    "text above": ('# %% [markdown] name="ch', 'import os\n\n# %% [markdown] name="ch', 1, "text"),
    "bad name": ('name="imports"', 'name="the imports"', 8, "is no cell name"),
    "no name": (' name="challenge"', "", 1, "has no name"),
    "same name": ('name="end"', 'name="imports"', 24, "'imports' is taken by the cell at line 8"),
    "same grade_id": (
        "# %%\ncheck",
        f"{STUB}\nx = 1\n### BEGIN SOLUTION\nx = 2\n### END SOLUTION\n\n# %%\ncheck",
        21,
        "the grade_id 'halve' is taken by the cell at line 12",
    ),
    "check twice": ("check(halve)", "check(halve)\n\n# %%\ncheck(halve)", 24, "'check_halve' is"),
    "unknown key": ('"solution": true', '"solution": true, "point": 1', 12, "the key 'point'"),
    "filled in": ('"solution": true', '"solution": true, "checksum": "0"', 12, "build fills in"),
    "wrong value": ('"solution": true', '"solution": "yes"', 12, "no value for 'solution'"),
    "negative points": (
        '"solution": true',
        '"solution": true, "grade": true, "points": -1',
        12,
        "no value for 'points'",
    ),
    "points without grade": ('"solution": true', '"solution": true, "points": 1', 12, "not graded"),
    "grade without points": ('"solution": true', '"solution": true, "grade": true', 12, "without"),
    "no grade_id": ('"grade_id": "halve", ', "", 12, "no usable grade_id"),
    "written answer without grade": (
        '[markdown] name="end"',
        '[markdown] nbgrader={"grade_id": "end", "solution": true}',
        24,
        "but not both",
    ),
    "no markers": (
        "    ### BEGIN SOLUTION\n    return x * 0.5  # exact in binary\n    ### END SOLUTION\n",
        "",
        12,
        "a solution cell without markers",
    ),
    "no END": ("    ### END SOLUTION\n", "", 15, "BEGIN SOLUTION without its END"),
    "no BEGIN": ("    ### BEGIN SOLUTION\n", "", 16, "END SOLUTION without its partner"),
    "other END": ("END SOLUTION", "END HIDDEN TESTS", 17, "without its partner"),
    "two pairs": (
        "    raise Not",
        "    ### BEGIN SOLUTION\n    ### END SOLUTION\n    raise Not",
        18,
        "a second pair",
    ),
    "other indent": ("    ### END", "### END", 17, "not indented like"),
    "solution elsewhere": ('"solution": true', '"locked": true', 15, "not meant for them"),
    "tests elsewhere": ("SOLUTION", "HIDDEN TESTS", 15, "not meant for them"),
    "empty solution": (
        "    return x * 0.5  # exact in binary\n    ### END",
        "    ### END",
        15,
        "an empty solution",
    ),
    "no raise": ("    raise NotImplementedError  # replace this line\n", "", 17, "a stub without"),
    "raise too far left": ("    raise Not", "raise Not", 17, "a stub without"),
    "raise NotImplemented": ("NotImplementedError", "NotImplemented", 17, "a stub without"),
    "not whole alone": (
        "    ### BEGIN SOLUTION\n",
        "    if x:\n    ### BEGIN SOLUTION\n        x = 1\n",
        20,
        "not Python",
    ),
    "other exercise": (
        "# %%\ncheck(halve)",
        "# %%\ncheck(halve)\n\n# %%\ncheck(double)",
        25,
        "belongs to 01_doubling",
    ),
    "undeclared": ("check(halve)", "check(halved)", 22, "no exercise of this name is declared"),
    "never checked": ("check(halve)", "halve(2.0)", 12, "'halve' is declared, but never checked"),
    "no stub": ('"grade_id": "halve"', '"grade_id": "half"', 1, "'halve' is declared, but has no"),
    "another function": ("def halve(", "def half(", 12, "does not define the function 'halve'"),
    "check with more": ("check(halve)", "check(halve)\nprint(1)", 22, "among other lines"),
    "reference": ("That was all", "See autograder.reference", 25, "instructor's code"),
    "examine": ("check(halve)", "examine(halve)", 22, "instructor's code"),
    "solution shown": ("That was all.", "Try `return x*0.5 # exact in binary`.", 25, "at course/"),
}
NOT_MARKERS = [
    "### Begin Solution",
    "## BEGIN SOLUTION",
    "###BEGIN SOLUTION",
    "### BEGIN SOLUTION:",
    "### BEGIN SOLUTOIN",
    "### BEGINSOLUTION",
    "### BEGIN_SOLUTION",
    "### START SOLUTION",
    "### SOLUTION",
    "#### BEGIN SOLUTION",
    "# BEGIN HIDDEN TEST",
    "### BEGIN TESTS",
    "# start hidden tests",
    "# --- end hidden tests ---",
    "### BEGIN MARKING SCHEME",
    "x = 1  ### BEGIN SOLUTION",
    "### AUTOTEST x",
]


@pytest.mark.parametrize(("old", "new", "line", "reason"), REFUSALS.values(), ids=REFUSALS.keys())
def test_refuses_with_file_line_and_reason(texts, old, new, line, reason):
    edit(texts.lessons / HALVE, old, new)
    found = problems_of(texts)
    assert any(p.startswith(f"course/lessons/{HALVE}:{line}: ") and reason in p for p in found), (
        found
    )


@pytest.mark.parametrize(
    ("old", "new", "line", "reason"),
    [
        ("### END SOLUTION", "### END SOLUTON", 17, "looks like a marker and is none"),
        ("### BEGIN SOLUTION", "### BEGIN SOLUTON", 15, "looks like a marker and is none"),
        ("SOLUTION", "SOLUTON", 15, "looks like a marker and is none"),
        ('"solution": true', '"soluton": true', 12, "does not know the key 'soluton'"),
        ('"solution": true', '"solution": tru', 12, "this header cannot be read"),
        ('"grade_id": "halve", ', "", 12, "no usable grade_id"),
    ],
)
def test_a_misspelling_is_reported_without_what_follows_from_it(texts, old, new, line, reason):
    edit(texts.lessons / HALVE, old, new)
    found = [p for p in problems_of(texts) if "'### END SOLUTON'" not in p or "END" in old]
    assert len(found) == 1
    assert found[0].startswith(f"course/lessons/{HALVE}:{line}: ")
    assert reason in found[0]


def test_refuses_a_check_before_its_stub(texts):
    edit(texts.lessons / HALVE, "# %%\ncheck(halve)\n\n", "")
    edit(texts.lessons / HALVE, STUB, f"# %%\ncheck(halve)\n\n{STUB}")
    (found,) = problems_of(texts)
    assert "check(halve) comes before its stub" in found


def test_an_exercise_that_is_not_known_may_only_not_be_listed(texts):
    edit(texts.lessons / HALVE, "check(halve)", "check(halve)\n\n# %%\ncheck(third)")
    (found,) = problems_of(texts)
    assert "Declare it in autograder/exercises/halving.py and list it in EXERCISES" in found


@pytest.mark.parametrize("marker", NOT_MARKERS)
def test_refuses_what_looks_like_a_marker(texts, marker):
    edit(texts.lessons / HALVE, "check\n", f"check\n{marker}\n")
    (found,) = problems_of(texts)
    assert found.startswith(f"course/lessons/{HALVE}:10: ")
    assert "looks like a marker" in found


@pytest.mark.parametrize(
    "marker",
    [
        m
        for m in NOT_MARKERS
        if not m.startswith(("### SOLUTION", "### BEGIN TESTS", "# start", "# ---"))
    ],
)
def test_refuses_what_looks_like_a_marker_in_prose(texts, marker):
    edit(texts.lessons / HALVE, "# That was all.", f"# That was all.\n#\n# {marker}")
    (found,) = problems_of(texts)
    assert found.startswith(f"course/lessons/{HALVE}:27: ")


@pytest.mark.parametrize(
    "header",
    [
        *("# %%[markdown]", "#%%[markdown]", "#%%", "#  %% [markdown]", "# %%% [markdown]"),
        *("# %%%", '# %%name="x"', "# %%\t[markdown]", "## %%", "# %%time", "    # %% [markdown]"),
    ],
)
@pytest.mark.parametrize("above", ["def halve(x: float) -> float:", "# That was all."])
def test_refuses_what_is_nearly_a_header_inside_a_cell(texts, header, above):
    edit(texts.lessons / HALVE, above, f"{above}\n{header}")
    line = 14 if above.startswith("def") else 26
    found = [p for p in problems_of(texts) if "nearly a cell's first line" in p]
    assert [p.split(": ")[0] for p in found] == [f"course/lessons/{HALVE}:{line}"]
    assert "Write `# %%` for code or `# %% [markdown]` for text" in found[0]


def test_accepts_headings_and_comments(texts):
    edit(texts.lessons / HALVE, "# That was all.", "# ### The end of the solution\n# In the end.")
    edit(texts.lessons / HALVE, "check\n", "check\n\n# the colour #D55E00\n")
    assert problems_of(texts) == []


def test_refuses_exercises_without_lesson_and_files_with_odd_names(texts):
    (texts.lessons / "halving.py").write_text("")
    (texts.lessons / "03_latin.py").write_bytes(b"# %% name='x'\n# caf\xe9\n")
    declared = EXERCISES | {"third": exercise("third", "03_thirds", abs, Case("one", {"x": 1.0}))}
    assert [re.split(r"\. [A-Z]", p)[0] for p in problems_of(texts, declared)] == [
        "course/lessons/03_latin.py:2: this is not UTF-8 text",
        "course/lessons/03_thirds.py:1: the exercise 'third' is declared for a lesson that does "
        "not exist",
        "course/lessons/halving.py:1: a lesson's file is named like 01_lse_gradient.py",
    ]


def test_a_refused_build_names_every_problem_and_writes_nothing(texts):
    edit(texts.lessons / HALVE, "### END SOLUTION", "### END SOLUTIONS")
    edit(texts.lessons / "01_doubling.py", "check(double)", "check(doubel)")
    before = tree(texts)
    with pytest.raises(BuildError) as refused:
        run_build(texts)
    assert {p.path for p in refused.value.problems} == {
        "course/lessons/01_doubling.py",
        f"course/lessons/{HALVE}",
    }
    assert tree(texts) == before
    assert not (texts.root / "class").exists()


def test_refuses_stray_files(course):
    for name in ("source/01_doubling/answers.py", "source/01_doubling/copy.ipynb"):
        (course.root / name).write_text("{}")
    (course.root / "source" / "03_gone").mkdir()
    (course.examples / "gone.json").write_text("{}")
    with pytest.raises(BuildError) as refused:
        run_build(course)
    named = [problem.split(": ")[0] for problem in refused.value.problems]
    assert named == [
        "source/01_doubling/answers.py",
        "source/01_doubling/copy.ipynb",
        "source/03_gone",
        "course/hopping/examples/gone.json",
    ]
    with pytest.raises(CourseError, match=r"answers\.py: only notebooks"):
        release_assignment(course, "01_doubling")


# --- What is built -----------------------------------------------------------------------------


def cells(path):
    return {cell["id"]: cell for cell in json.loads(path.read_text("utf-8"))["cells"]}


def test_the_notebooks_hold_what_they_should(course):
    source = cells(course.source / "01_doubling" / "doubling.ipynb")
    assert list(source) == [
        f"doubling-{name}"
        for name in (
            *("challenge", "imports", "prediction", "commit_prediction", "commit_prediction-2"),
            *("double", "check_double", "exam_double", "see", "project", "report"),
        )
    ]
    assert source["doubling-check_double"]["metadata"]["nbgrader"]["points"] == 0
    assert source["doubling-exam_double"]["metadata"]["nbgrader"]["points"] == 3
    assert "examine(double)\n" in source["doubling-exam_double"]["source"]

    release = cells(course.release / "01_doubling" / "doubling.ipynb")
    assert list(release) == list(source)
    assert "".join(release["doubling-double"]["source"]).split("\n") == [
        "def double(x: np.ndarray) -> np.ndarray:",
        '    """Return twice a number: 2.0 for 1.0."""',
        "    ",
        "    raise NotImplementedError  # replace this line",
    ]
    assert "".join(release["doubling-exam_double"]["source"]) == (
        "# Nothing to do here: when the course is graded, hidden cases run in this cell.\n"
        "# 3 points: ordinary values 60 %, edge shapes 40 %."
    )

    solved = cells(course.solutions / "01_doubling" / "doubling.ipynb")
    assert set(source) - set(solved) == {"doubling-exam_double"}
    assert not any("nbgrader" in cell["metadata"] for cell in solved.values())
    text = (course.solutions / "01_doubling" / "doubling.ipynb").read_text("utf-8")
    assert "BEGIN" not in text
    assert "NotImplementedError" not in text
    assert "widget-view" not in text
    assert f"{sys.version_info.major}.{sys.version_info.minor}." not in text
    picture, slider, printed, result = solved["doubling-see"]["outputs"]
    assert set(picture["data"]) == {"image/png", "text/plain"}
    assert slider["data"] == {"text/plain": ["IntSlider(value=0, description='x')"]}
    assert printed["text"] == ["one\n", "two\n"]
    assert result["data"]["text/plain"] == ["array([2., 4.])"]


def test_building_again_changes_nothing(course):
    before = tree(course)
    changed, said = run_build(course)
    assert changed == []
    assert "running" not in said
    assert tree(course) == before


def touched(path):
    path.write_bytes(path.read_bytes() + b"\n")


@pytest.mark.parametrize(
    "change",
    [
        lambda course: touched(course.lessons / HALVE),
        lambda course: touched(course.hopping / "__init__.py"),
        lambda course: touched(course.root / "nbgrader_config.py"),
        lambda course: touched(course.examples / "halve.json"),
        lambda course: touched(course.solutions / "02_halving" / "halving.ipynb"),
        lambda course: (course.release / "02_halving" / "halving.ipynb").unlink(),
        lambda course: (course.source / "stray.txt").write_text("notes"),
        lambda course: course.gradebook.unlink(),
    ],
    ids=["text", "package", "config", "example", "solution", "lost", "stray", "gradebook"],
)
def test_a_build_is_remembered_until_anything_changes(course, change):
    assert not built.is_built(course)
    built.remember(course, built.inputs(course))
    assert built.is_built(course)
    change(course)
    assert not built.is_built(course)


def test_a_text_that_was_edited_during_a_build_is_built_again(course):
    built_from = built.inputs(course)
    touched(course.lessons / HALVE)
    built.remember(course, built_from)
    assert not built.is_built(course)


def test_an_unchanged_course_is_known_without_reading_its_lessons(course):
    program = (
        "import sys; from autograder.command_line import main; code = main(['build']); "
        "sys.exit(code or 'nbgrader' in sys.modules or 'numpy' in sys.modules)"
    )
    built.remember(course, built.inputs(course))
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=course.root, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "Everything was up to date.\n"), done.stderr


def test_lost_and_edited_results_are_built_again_to_the_byte(course):
    before = tree(course)
    (course.solutions / "01_doubling" / "doubling.ipynb").unlink()
    edit(course.solutions / "02_halving" / "halving.ipynb", "That was all", "That is all")
    edit(course.release / "02_halving" / "halving.ipynb", "That was all", "That is all")
    edit(course.source / "02_halving" / "halving.ipynb", "That was all", "That is all")
    edit(course.examples / "halve.json", '"right": 1.5', '"right": 1.6')
    changed, _ = run_build(course)
    assert sorted(changed) == [
        "course/hopping/examples/halve.json",
        "release/02_halving/halving.ipynb",
        "solutions/01_doubling/doubling.ipynb",
        "solutions/02_halving/halving.ipynb",
        "source/02_halving/halving.ipynb",
    ]
    assert tree(course) == before


def test_only_what_a_change_touches_runs_again(course):
    edit(course.lessons / HALVE, "That was all.", "That was really all.")
    changed, said = run_build(course)
    assert "02_halving: running" in said
    assert "01_doubling: running" not in said
    assert sorted(changed) == [
        f"{room}/02_halving/halving.ipynb" for room in ("release", "solutions", "source")
    ]


def test_a_last_digit_of_another_processor_does_not_rewrite_the_examples(course):
    path = course.examples / "halve.json"
    edit(path, '"right": 1.5', '"right": 1.5000000000000002')
    content = path.read_bytes()
    run_build(course)
    assert path.read_bytes() == content


def test_what_a_solution_must_not_do_is_refused_with_its_line(course):
    edit(course.lessons / HALVE, "return x * 0.5  # exact in binary", "return x / 0")
    edit(course.lessons / HALVE, "check(halve)", "check(halve)\n\n# %%\nhalve(1)")
    edit(
        course.lessons / HALVE,
        '# %% [markdown] name="end"',
        '# %% name="noise"\nimport warnings\n\nwarnings.warn("careful", stacklevel=1)\n\n'
        '# %% name="address"\nobject()\n\n'
        '# %% name="place"\n"here: " + __import__("os").getcwd()\n\n'
        '# %% [markdown] name="end"',
    )
    text = (course.lessons / HALVE).read_text().split("\n")
    line = {
        label: text.index(f'# %% name="{label}"') + 1 for label in ("noise", "address", "place")
    }
    before = tree(course)
    with pytest.raises(BuildError) as refused:
        run_build(course)
    wrong = {problem.line: problem.reason for problem in refused.value.problems}
    assert "ZeroDivisionError: division by zero" in wrong[text.index("halve(1)")]
    assert "careful" in wrong[line["noise"]]
    assert "differs from run to run" in wrong[line["address"]]
    assert "a path of this machine" in wrong[line["place"]]
    assert tree(course) == before


def test_a_full_disk_leaves_the_course_as_it_was(course, monkeypatch):
    edit(course.release / "02_halving" / "halving.ipynb", "That was all", "That is all")
    edit(course.source / "02_halving" / "halving.ipynb", "That was all", "That is all")
    before = tree(course)
    write, writes = Path.write_bytes, []

    def full(path, content):
        if path.name.startswith("new-"):
            writes.append(path)
            if len(writes) == 2:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(CourseError, match=r"halving\.ipynb: cannot be written: No space left"):
        run_build(course)
    assert tree(course) == before


def test_the_pictures_know_the_setting_that_a_build_changes():
    from hopping.explore import view

    assert "view.STILL" in STARTUP
    assert view.STILL > 0


# --- Leaks -------------------------------------------------------------------------------------


def plant(course, notebook, source):
    path = course.release / "02_halving" / "halving.ipynb"
    data = json.loads(path.read_text("utf-8"))
    data["cells"][-1]["source"] = source
    path.write_text(json.dumps(data))
    return leaks(course, course.release)


def test_what_was_built_does_not_leak(course):
    assert leaks(course, course.release, course.hopping) == []


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("### BEGIN SOLUTION", "the marker"),
        ("text\n    ### END HIDDEN TESTS", "the marker"),
        ("from autograder.reference import x", "instructor's code"),
        ("examine(double)", "instructor's code"),
        ("doubled=np.add( x, np.asarray(x) )", "solution of 'double'"),
        ('prediction = {"q1": "b"}', "solution of 'prediction'"),
    ],
)
def test_planted_leaks_are_found_in_a_release(course, source, reason):
    (found,) = {line for line in plant(course, "halving", source) if reason in line}
    assert "release/02_halving/halving.ipynb" in found


def test_planted_leaks_are_found_in_a_wheel(course, tmp_path):
    reference = (ROOT / "autograder" / "reference" / "lse_gradient.py").read_text("utf-8")
    wheel = tmp_path / "hopping-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("hopping/__init__.py", HOPPING)
    assert leaks(course, wheel) == []
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("hopping/help.py", reference.replace('"', "'").replace("    ", "\t"))
        archive.writestr("autograder/exam.py", "x = 1")
        archive.writestr("hopping/hints.json", '{"hint": "return x * 0.5  # exact in binary"}')
    found = "\n".join(leaks(course, wheel))
    assert "hopping/help.py: it holds the reference 'lse_gradient.softmax'" in found
    assert "hopping/help.py: it holds the reference 'lse_gradient.lse'" in found
    assert "hopping/help.py: it names the reference" in found
    assert "autograder/exam.py: a file of the instructors' package" in found
    assert "hopping/hints.json: it shows part of the solution of 'halve'" in found


def test_a_solution_in_the_learners_package_stops_the_build(course):
    (course.hopping / "hints.py").write_text("def f(x):\n    return x*0.5 # exact in binary\n")
    edit(course.release / "02_halving" / "halving.ipynb", "That was all", "That is all")
    before = tree(course)
    with pytest.raises(BuildError, match=r"hopping/hints\.py: it shows part of the solution"):
        run_build(course)
    assert tree(course) == before


# --- nbgrader ----------------------------------------------------------------------------------


def test_stock_nbgrader_makes_the_same_release(course):
    before = tree(course)
    shutil.rmtree(course.class_folder)
    program = Path(sys.executable).with_name("nbgrader")
    done = subprocess.run(
        [program, "generate_assignment", "--force", "01_doubling"],
        cwd=course.root,
        env={"HOME": os.environ.get("HOME", "/"), "PATH": os.defpath},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert tree(course) == before
    assert (course.class_folder / "gradebook.db").is_file()
    assert register(course, "01_doubling") is False


def test_registering_is_done_when_needed(course):
    assert register(course, "01_doubling") is False
    course.gradebook.unlink()
    assert register(course, "01_doubling") is True
    assert register(course, "01_doubling") is False
    with course.open_gradebook() as gradebook:
        assert gradebook.find_assignment("01_doubling").max_score == 2 + 3 + 6 + 4
    edit(course.source / "01_doubling" / "doubling.ipynb", '"points": 3', '"points": 5')
    assert register(course, "01_doubling") is True
    with course.open_gradebook() as gradebook:
        assert gradebook.find_assignment("01_doubling").max_score == 2 + 5 + 6 + 4


@pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")
def test_grades_are_not_thrown_away(course):
    with course.open_gradebook() as gradebook:
        gradebook.add_student("ada")
        gradebook.add_submission("02_halving", "ada")
    assert register(course, "02_halving") is False
    edit(course.source / "02_halving" / "halving.ipynb", '"exam_halve"', '"exam_half"')
    with pytest.raises(CourseError, match="it holds grades for 02_halving"):
        register(course, "02_halving")


def test_a_class_needs_no_lessons(course, tmp_path):
    folder = tmp_path / "elsewhere"
    shutil.copytree(course.source, folder / "source")
    shutil.copy(course.root / "nbgrader_config.py", folder)
    away = Course.find(folder / "source")
    assert away.root == folder
    assert release_assignment(away, "01_doubling") == ["release/01_doubling/doubling.ipynb"]
    assert release_assignment(away, "01_doubling") == []
    released = (folder / "release" / "01_doubling" / "doubling.ipynb").read_bytes()
    assert released == (course.release / "01_doubling" / "doubling.ipynb").read_bytes()
    assert away.gradebook.is_file()
    assert not list(folder.glob(".build*"))


def test_errors_say_what_to_do(course, tmp_path):
    with pytest.raises(
        CourseError, match=r"03_thirds: no such assignment. This course has: 01_dou"
    ):
        register(course, "03_thirds")
    edit(course.source / "02_halving" / "halving.ipynb", '"cells"', '"cell')
    with pytest.raises(CourseError, match=r"halving\.ipynb: NotJSONError"):
        register(course, "02_halving")
    with pytest.raises(CourseError, match=r"no course here.*nbgrader_config\.py"):
        Course.find(tmp_path)
    with pytest.raises(CourseError, match="as a pattern"):
        Course(tmp_path / "a [b]")


def test_gradebooks_that_cannot_be_used_say_why(course):
    edit(course.root / "nbgrader_config.py", '"60"', '"0.1"')
    with sqlite3.connect(course.gradebook) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(CourseError, match=r"gradebook\.db: another program is writing to it"):
            register(course, "01_doubling")
        other.execute("ROLLBACK")
        other.execute("UPDATE alembic_version SET version_num = 'old'")
    with pytest.raises(CourseError, match=r"made by another version .* nbgrader db upgrade --db"):
        register(course, "01_doubling")
    course.gradebook.write_text("Ada: 12 points\n" * 100)
    with pytest.raises(CourseError, match=r"gradebook\.db: this is not a gradebook"):
        register(course, "01_doubling")
