"""Whatever state a submission is in, what the student wrote is found and nothing else counts."""

import json
import random
import re
from pathlib import Path

import nbformat
import pytest
import small_lesson as small

from autograder.submission import (
    NotGradable,
    choose_file,
    read_submission,
    rebuild,
    released,
)

SOURCE = nbformat.from_dict(small.source())


def read(notebook):
    data = notebook if isinstance(notebook, bytes) else small.as_bytes(notebook)
    return read_submission(data, SOURCE)


def cells_of(notebook):
    """Return the rebuilt cells by id."""
    rebuilt = rebuild(SOURCE, read(notebook))
    nbformat.validate(rebuilt)
    return {cell.id: cell for cell in rebuilt.cells}


def test_an_untouched_release_gives_no_notice_and_no_solution():
    submission = read(small.release())
    assert submission.notices == ()
    rebuilt = rebuild(SOURCE, submission)
    assert [cell.id for cell in rebuilt.cells] == [cell.id for cell in SOURCE.cells]
    assert "top = u.max()" not in nbformat.writes(rebuilt)
    assert "examine(lse)" in nbformat.writes(rebuilt)


def test_a_solved_notebook_is_the_source_with_the_answers_in_it():
    submission = read(small.solved())
    assert submission.notices == ()
    assert not submission.extra
    cells = cells_of(small.solved())
    assert cells["small-lse"].source == small.SOLUTIONS["lse"]
    assert cells["small-report"].source == "It depends on beta."


def test_released_text_is_that_of_the_release():
    for source, release in zip(SOURCE.cells, small.release()["cells"], strict=True):
        assert released(source).split() == release["source"].split()


def test_own_cells_keep_their_places():
    notebook = small.solved()
    small.insert(notebook, None, "top = 1")
    small.insert(notebook, "lse", "helper = 2")
    small.insert(notebook, "exam_lse", "# My notes", kind="markdown")
    small.insert(notebook, "report", "last = 3")
    rebuilt = rebuild(SOURCE, read(notebook))
    sources = [cell.source for cell in rebuilt.cells]
    assert sources[0] == "top = 1"
    assert sources[sources.index("helper = 2") - 1] == small.SOLUTIONS["lse"]
    assert "examine(lse)" in sources[sources.index("# My notes") - 1]
    assert sources[-1] == "last = 3"
    assert read(notebook).notices == ()


def test_an_edited_cell_of_the_lesson_runs_after_the_original():
    notebook = small.solved()
    small.find(notebook, "imports")["source"] = "import numpy as np\nimport math"
    rebuilt = rebuild(SOURCE, read(notebook))
    assert rebuilt.cells[1].source == SOURCE.cells[1].source
    assert rebuilt.cells[2].source == "import numpy as np\nimport math"
    assert read(notebook).notices == ()


def test_text_without_a_lock_is_the_students():
    notebook = small.solved()
    small.find(notebook, "practice_lse")["source"] = "My own words."
    assert cells_of(notebook)["small-practice_lse"].source == "My own words."


def test_a_report_written_into_the_task_is_kept():
    notebook = small.solved()
    small.find(notebook, "project")["source"] += "\n\nMy report: it is larger."
    cells = cells_of(notebook)
    assert cells["small-project"].source == small.find(small.source(), "project")["source"]
    assert "My report: it is larger." in cells["extra-1"].source


def test_pictures_in_a_report_are_kept():
    notebook = small.solved(report="![p](attachment:p.png)")
    small.find(notebook, "report")["attachments"] = {"p.png": {"image/png": "aGk="}}
    assert cells_of(notebook)["small-report"].attachments == {"p.png": {"image/png": "aGk="}}


def test_outputs_that_were_handed_in_are_not_kept():
    notebook = small.solved()
    fake = {"output_type": "execute_result", "data": {"text/plain": "3.0"}, "metadata": {}}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = [{**fake, "execution_count": 1}]
    assert all(not cell.get("outputs") for cell in cells_of(notebook).values())


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the file is empty"),
        (b"\n  \n", "the file is empty"),
        (b"\0" * 500, "the file is empty"),
        (b"PK\x03\x04rest", "a ZIP archive"),
        (b"%PDF-1.7", "a PDF file"),
        (b"\x1f\x8b\x08", "a compressed file"),
        (b"<!DOCTYPE html><html></html>", "a web page"),
        (b"import numpy as np\n", "line 1 is not JSON"),
        (b"[1, 2]", "data of another kind"),
        (b"{}", "it has no cells"),
        (b'{"cells": 3}', "it has no cells"),
        (b'{"cells": []}', "the notebook is empty"),
        (b'{"cells": [{"cell_type": "code", "source": ["", " "]}]}', "the notebook is empty"),
        (b'{"cells": ' + b"[" * 100_000, "not a notebook"),
        (b'{"cells": [1, null, "x"]}', "the notebook is empty"),
        (b'{"cells": [{"cell_type": "code", "source": "x = 1"}]}', "not of this lesson"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not a notebook"),
    ],
)
def test_a_reason_says_what_is_wrong_with_the_file(data, reason):
    with pytest.raises(NotGradable, match=reason):
        read(data)


def test_a_truncated_file_says_where_it_stops():
    data = small.as_bytes(small.solved())
    with pytest.raises(NotGradable, match=r"stops in the middle, at line \d+"):
        read(data[: len(data) // 2])


def test_merge_markers_are_named_with_their_line():
    lines = small.as_bytes(small.solved()).splitlines()
    lines[30:30] = [b"<<<<<<< HEAD", lines[29], b"=======", lines[29], b">>>>>>> theirs"]
    with pytest.raises(NotGradable, match=r"line 31 .* merging two versions"):
        read(b"\n".join(lines))


def test_another_lesson_is_refused():
    other = small.solved()
    for number, cell in enumerate(other["cells"]):
        cell["id"] = f"other-{number}"
        cell["source"] = f"# {cell['source'][:1]}"
        cell["metadata"] = {}
    with pytest.raises(NotGradable, match="not of this lesson"):
        read(other)


REAL = Path(__file__).parent.parent
LESSONS = ("01_lse_gradient", "02_gmm_polarization")


def real(folder, lesson):
    (path,) = (REAL / folder / lesson).glob("*.ipynb")
    return nbformat.read(path, as_version=4)


def without_ids(notebook):
    for cell in notebook.cells:
        cell.pop("id", None)
    return notebook


def without_marks(notebook):
    for cell in without_ids(notebook).cells:
        cell.metadata = {}
    return notebook


@pytest.mark.parametrize("change", [lambda notebook: notebook, without_ids, without_marks])
@pytest.mark.parametrize(("own", "other"), [LESSONS, LESSONS[::-1]])
def test_another_lesson_of_the_course_is_refused_by_its_name(own, other, change):
    data = json.dumps(change(real("release", other))).encode()
    source = real("source", own)
    reason = (
        f"this is the notebook of {other}, not of {own}; put it into "
        f"class/submitted/<student>/{other}."
    )
    with pytest.raises(NotGradable, match=re.escape(reason)):
        read_submission(data, source)
    with pytest.raises(NotGradable, match=re.escape(reason)):
        choose_file({"mine.ipynb": data}, "x.ipynb", source)
    right = json.dumps(change(real("release", own))).encode()
    files = {"a.ipynb": data, "b.ipynb": right}
    assert choose_file(files, "x.ipynb", source)[0] == right


def test_a_notebook_with_only_what_lessons_share_is_of_the_lesson_it_is_handed_in_for():
    notebook = without_ids(real("release", LESSONS[1]))
    shared = ("prediction", "commit_prediction", "project", "project_report")
    notebook.cells = [
        cell
        for cell in notebook.cells
        if cell.metadata.get("nbgrader", {}).get("grade_id") in shared
    ]
    assert len(notebook.cells) == 4
    found = read_submission(json.dumps(notebook).encode(), real("source", LESSONS[1]))
    assert any("was missing" in notice for notice in found.notices)


def test_answers_to_another_lesson_do_not_make_it_that_lesson():
    notebook = real("release", LESSONS[1])
    notebook.cells += real("release", LESSONS[0]).cells[:20]
    read_submission(json.dumps(notebook).encode(), real("source", LESSONS[1]))


def test_random_damage_is_graded_or_refused_and_never_an_error():
    rng = random.Random(0)
    good = small.as_bytes(small.solved())
    refused = 0
    for _ in range(600):
        data = bytearray(good)
        for _ in range(rng.randrange(1, 6)):
            start = rng.randrange(len(data))
            kind = rng.randrange(4)
            if kind == 0:
                del data[start : start + rng.randrange(200)]
            elif kind == 1:
                data[start : start + 1] = rng.randbytes(rng.randrange(4))
            elif kind == 2:
                data[start:start] = data[:start][-rng.randrange(1, 300) :]
            else:
                data[start : start + 4] = b"null"
        try:
            nbformat.writes(rebuild(SOURCE, read(bytes(data)))).encode()
        except NotGradable:
            refused += 1
    assert 0 < refused < 600


def test_random_data_in_the_place_of_every_field():
    rng = random.Random(1)
    junk = [None, True, 3, 1.5, "x", "\ud800", [], [[]], {}, {"a": {}}, [None, 1], "é" * 50]

    def damage(value):
        if rng.random() < 0.03:
            return rng.choice(junk)
        if isinstance(value, dict):
            return {key: damage(part) for key, part in value.items()}
        return [damage(part) for part in value] if isinstance(value, list) else value

    for _ in range(400):
        data = json.dumps(damage(small.solved())).encode()
        try:
            rebuilt = rebuild(SOURCE, read(data))
        except NotGradable:
            continue
        nbformat.validate(rebuilt)
        nbformat.writes(rebuilt).encode()


# --- Which file ---


def choose(files):
    return choose_file(files, "small.ipynb", SOURCE)


def test_the_file_with_the_right_name_is_taken():
    data = small.as_bytes(small.solved())
    assert choose({"small.ipynb": data, "small-Copy1.ipynb": data}) == (data, ())


@pytest.mark.parametrize("name", ["small (1).ipynb", "SMALL.ipynb", "small.ipynb.txt", "hw1"])
def test_a_renamed_file_is_found(name):
    data = small.as_bytes(small.solved())
    found, notices = choose({name: data, "notes.txt": b"hello", "data.csv": b"1,2"})
    assert found == data
    assert notices == (f"The file small.ipynb was handed in as {name}.",)


def test_two_renamed_files_are_not_guessed_between():
    data = small.as_bytes(small.solved())
    with pytest.raises(NotGradable, match=r"more than one could be it: a.ipynb, b.ipynb"):
        choose({"a.ipynb": data, "b.ipynb": data})


def test_the_only_file_says_what_it_is():
    with pytest.raises(NotGradable, match="a PDF file"):
        choose({"small.pdf": b"%PDF-1.7"})
    with pytest.raises(NotGradable, match=r"no file small.ipynb, only a, b"):
        choose({"a": b"1", "b": b"2"})
    with pytest.raises(NotGradable, match="no file was handed in"):
        choose({})
