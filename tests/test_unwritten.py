"""A learner who runs all cells before writing anything reads sentences, not tracebacks."""

import nbformat
import pytest
from nbclient import NotebookClient

CELLS = {
    "import": "import hopping, numpy as np",
    "stub": "def settle(x):\n    raise NotImplementedError  # your code instead of this line",
    "begun": "def begun(x):\n    y = x + 1\n    raise NotImplementedError\nbegun(1)",
    "given": "start = 1.0\nfor beta in (1.0, 2.0):\n    runs = settle(beta)\nprint(counts := runs)",
    "figure": "picture = [run for run in runs]\npicture",
    "caption": "print(picture)",
    "deeper": "def gap(x):\n    return settle(x) + 1\nnp.mean([gap(x) for x in (1.0, 2.0)])",
    "typo": "print(strat)",
    "typo within": "def slip(x):\n    return xx\nslip(1)",
    "own words": "raise NotImplementedError('I gave up here')",
    "library": "import asyncio\nasyncio.AbstractEventLoop().stop()",
    "other": "1 / 0",
    "written": "def settle(x):\n    return x",
    "given again": "for beta in (1.0, 2.0):\n    runs = [settle(beta)]",
    "figure again": "picture = [run for run in runs]\npicture",
}


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """Return for each cell what it shows of an error, and what it was."""
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in CELLS.values()]
    )
    folder = {"metadata": {"path": str(tmp_path_factory.mktemp("kernel"))}}
    NotebookClient(notebook, allow_errors=True, resources=folder, kernel_name="python3").execute()
    errors = [
        next((o for o in cell.outputs if o.output_type == "error"), None) for cell in notebook.cells
    ]
    return {
        name: ("\n".join(error.traceback), error.ename) if error else None
        for name, error in zip(CELLS, errors, strict=True)
    }


def test_a_stub_that_is_called_is_named(shown):
    assert shown["given"] == ("not written yet: settle", "NotImplementedError")
    assert shown["deeper"] == ("not written yet: settle", "NotImplementedError")


@pytest.mark.parametrize(("cell", "name"), [("figure", "runs"), ("caption", "picture")])
def test_what_a_stopped_cell_would_have_made_is_awaited(shown, cell, name):
    text, error = shown[cell]
    assert text.startswith(f"not there yet: {name}. ")
    assert "needs settle" in text
    assert error == "NameError", "it stays an error for whoever grades"


@pytest.mark.parametrize("cell", ["typo", "typo within", "own words", "library", "other"])
def test_every_other_error_keeps_its_traceback(shown, cell):
    assert "Traceback" in shown[cell][0]


def test_all_is_well_once_it_is_written(shown):
    assert shown["given again"] is None
    assert shown["figure again"] is None


def test_a_line_that_is_left_over_is_named(shown):
    text, error = shown["begun"]
    assert text.startswith("begun: the line `raise NotImplementedError` is still there")
    assert error == "NotImplementedError"
