"""A small lesson in the form of the built ones, for tests that hand in many versions of it."""

import copy
import json

from autograder.exercises import load

SOLUTIONS = {
    "lse": '''def lse(xi, Y, beta):
    """Return the log-sum-exp of the scores."""
    u = beta * (Y @ xi)
    top = u.max()
    return (top + np.log(np.exp(u - top).sum())) / beta
''',
    "attention_weights": '''def attention_weights(xi, Y, beta):
    """Return the softmax of beta times the scores."""
    u = beta * (Y @ xi)
    e = np.exp(u - u.max())
    return e / e.sum()
''',
    "fd_grad": '''def fd_grad(f, xi, h=1e-5):
    """Return the gradient of f at xi by central differences."""
    steps = h * np.eye(len(xi))
    return np.array([(f(xi + e) - f(xi - e)) / (2 * h) for e in steps])
''',
}
POINTS = {f"exam_{name}": load()[name].points for name in SOLUTIONS} | {"commit_prediction": 2.0}
PREDICTION = 'prediction = {"q1": "a", "q2": "B"}'


def _cell(kind, name, source, **marks):
    cell = {"cell_type": kind, "id": f"small-{name}", "metadata": {}, "source": source}
    if kind == "code":
        cell |= {"execution_count": None, "outputs": []}
    if marks:
        usual = {"grade": False, "solution": False, "task": False, "schema_version": 3}
        marks = {**usual, **marks, "grade_id": name}
        marks["locked"] = not marks["solution"]
        cell["metadata"]["nbgrader"] = marks
    return cell


def _lesson(stub, hidden):
    cells = [
        _cell(
            "markdown", "title", "# A small lesson\n\nIt has three functions, all of them short."
        ),
        _cell("code", "imports", "import numpy as np\nfrom hopping import check, commit, reveal"),
        _cell("code", "prediction", stub("prediction"), solution=True),
        _cell("code", "commit_prediction", "commit(prediction, questions=2)", grade=True, points=2),
    ]
    for name in SOLUTIONS:
        cells += [
            _cell("markdown", f"practice_{name}", f"## Write `{name}`, and think of large scores."),
            _cell("code", name, stub(name), solution=True),
            _cell("code", f"check_{name}", f"check({name})", grade=True, points=0),
            _cell("code", f"exam_{name}", hidden(name), grade=True, points=load()[name].points),
        ]
    cells += [
        _cell("code", "show", "print(lse(np.array([1.0, 0.0]), np.eye(2), 1.0))"),
        _cell("markdown", "project", "## Project\n\nCompare two scores.", task=True, points=3),
        _cell("markdown", "report", stub("report"), solution=True, grade=True, points=4),
    ]
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def _source_text(name):
    if name == "report":
        return "*Your report.*\n\n### BEGIN SOLUTION\nIt depends.\n### END SOLUTION"
    if name == "prediction":
        return (
            'prediction = {"q1": "", "q2": ""}\n'
            f"### BEGIN SOLUTION\n{PREDICTION}\n### END SOLUTION"
        )
    head, _, body = SOLUTIONS[name].partition('"""\n')
    return (
        f'{head}"""\n    ### BEGIN SOLUTION\n{body}    ### END SOLUTION\n'
        "    raise NotImplementedError  # your code instead of this line"
    )


def _released_text(name):
    if name == "report":
        return "*Your report.*\n\n*Write your answer here.*"
    if name == "prediction":
        return 'prediction = {"q1": "", "q2": ""}\n'
    head, _, _ = SOLUTIONS[name].partition('"""\n')
    return f'{head}"""\n    \n    raise NotImplementedError  # your code instead of this line'


def source():
    """Return the instructor's notebook."""
    call = "# Nothing to do here.\n### BEGIN HIDDEN TESTS\nfrom hopping.exam import examine\n\n"
    return _lesson(_source_text, lambda name: f"{call}examine({name})\n### END HIDDEN TESTS")


def release():
    """Return the notebook that a student gets."""
    return _lesson(_released_text, lambda name: "# Nothing to do here.\n")


def solved(**answers):
    """Return what a good student hands in, with other text in the cells that are named."""
    notebook = release()
    answers = {**SOLUTIONS, "prediction": PREDICTION, "report": "It depends on beta.", **answers}
    for name, text in answers.items():
        find(notebook, name)["source"] = text
    return notebook


def find(notebook, name):
    """Return a cell by its name."""
    return next(cell for cell in notebook["cells"] if cell["id"] == f"small-{name}")


def place(notebook, name):
    """Return the index of a cell by its name."""
    return notebook["cells"].index(find(notebook, name))


def insert(notebook, after, *cells, kind="code"):
    """Put new cells, given as texts or cells, after a cell."""
    new = [
        cell if isinstance(cell, dict) else _cell(kind, f"new-{number}", cell)
        for number, cell in enumerate(cells)
    ]
    for number, cell in enumerate(new):
        cell["id"] = f"n{len(notebook['cells'])}-{number}"
    index = 0 if after is None else place(notebook, after) + 1
    notebook["cells"][index:index] = new
    return notebook


def copied(notebook, name):
    """Return a copy of a cell, with another id as Jupyter gives it."""
    return copy.deepcopy(find(notebook, name))


def as_bytes(notebook):
    """Return the file of a notebook."""
    return json.dumps(notebook, indent=1).encode()
