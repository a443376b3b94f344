"""A small course and a class in it, for tests that grade for real.

Its one lesson has two of lesson 01's functions, a prediction, a task and a written answer. It
imports little, so that a kernel is through with it quickly.
"""

import json
import shutil
from pathlib import Path

import nbformat

from autograder.course import Course
from autograder.exercises import load
from autograder.lesson_text import read_lesson
from autograder.notebooks import dump, source_notebook
from autograder.releasing import release_assignment
from autograder.standalone import standalone

ROOT = Path(__file__).parent.parent
LESSON = "01_lse_gradient"
NOTEBOOK = "lse_gradient.ipynb"
EXERCISES = {name: load()[name] for name in ("lse", "attention_weights")}

SETTINGS = """
c.Limits.cell_seconds = 8
c.Limits.call_seconds = 4
c.Execute.timeout = 10
"""

TEXT = '''\
# %% [markdown] name="challenge"
# # A small lesson
#
# Is $\\frac1\\beta \\ln \\sum_t e^{\\beta y_t \\cdot \\xi}$ smooth?

# %% name="imports"
import numpy as np

from hopping import check, commit

# %% nbgrader={"grade_id": "prediction", "solution": true}
prediction = {"q1": ""}
### BEGIN SOLUTION
prediction = {"q1": "b"}
### END SOLUTION

# %% nbgrader={"grade_id": "commit_prediction", "grade": true, "points": 2}
commit(prediction, questions=1)


# %% nbgrader={"grade_id": "lse", "solution": true}
def lse(xi, Y, beta):
    """Return the log-sum-exp of the scores."""
    ### BEGIN SOLUTION
    scores = beta * (Y @ xi)
    return np.logaddexp.reduce(scores) / beta
    ### END SOLUTION
    raise NotImplementedError  # replace this line


# %%
check(lse)


# %% nbgrader={"grade_id": "attention_weights", "solution": true}
def attention_weights(xi, Y, beta):
    """Return one weight a token."""
    ### BEGIN SOLUTION
    scores = beta * (Y @ xi)
    return np.exp(scores - np.logaddexp.reduce(scores))
    ### END SOLUTION
    raise NotImplementedError  # replace this line


# %%
check(attention_weights)

# %% [markdown] nbgrader={"grade_id": "project", "task": true, "points": 6}
# Find a landscape with three valleys.
#
# ### BEGIN MARK SCHEME
# Two points for each valley.
# ### END MARK SCHEME

# %% [markdown] nbgrader={"grade_id": "report", "grade": true, "solution": true, "points": 4}
# What did you see?
#
# ### BEGIN SOLUTION
# It is as smooth as an exponential.
# ### END SOLUTION
'''


def make_course(root: Path) -> Course:
    """Build the course in a folder; its gradebook waits a second for others, its cells have eight.

    Stock nbgrader's cells have ten.
    """
    root.mkdir(parents=True)
    config = (ROOT / "nbgrader_config.py").read_text("utf-8").replace('"60"', '"1"')
    (root / "nbgrader_config.py").write_text(f"{config}\n{SETTINGS}", "utf-8")
    course = Course(root)
    path = root / "course" / "lessons" / f"{LESSON}.py"
    path.parent.mkdir(parents=True)
    path.write_text(TEXT, "utf-8")
    lesson, problems = read_lesson(path, path.name)
    assert not problems
    (course.source / LESSON).mkdir(parents=True)
    (course.source / LESSON / NOTEBOOK).write_bytes(dump(source_notebook(lesson, EXERCISES)))
    release_assignment(course, LESSON)
    return course


def copy_course(course: Course, root: Path) -> Course:
    """Return the same course, with its class, in another folder."""
    shutil.copytree(course.root, root)
    return Course(root)


def released(course: Course) -> nbformat.NotebookNode:
    """Return the notebook as a learner gets it."""
    return nbformat.read(course.release / LESSON / NOTEBOOK, as_version=4)


def cell(nb: nbformat.NotebookNode, grade_id: str) -> nbformat.NotebookNode:
    """Return the cell of this name."""
    return next(c for c in nb.cells if c.metadata.get("nbgrader", {}).get("grade_id") == grade_id)


def answered(course: Course, **answers: str) -> nbformat.NotebookNode:
    """Return a notebook that is right, except for what is named."""
    nb = released(course)
    right = {name: standalone(e.reference, name) for name, e in EXERCISES.items()}
    texts = {"prediction": 'prediction = {"q1": "a"}', "report": "It is smooth.", **right}
    for name, text in {**texts, **answers}.items():
        cell(nb, name).source = text
    return nb


def wrong(exercise: str, slug: str) -> str:
    """Return the code of a known wrong answer."""
    found = next(m for m in EXERCISES[exercise].misconceptions if m.slug == slug)
    return standalone(found.function, exercise)


def hand_in(course: Course, student: str, content, name: str = NOTEBOOK) -> Path:
    """Put a notebook, or any text, where a student's submission belongs."""
    path = course.submitted / student / LESSON / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return path
