"""hopping.explore without a browser: asking, sampling, scenes, pictures and their static twin."""

import base64
import gc
import io
import itertools
import json
import re
import subprocess
import sys
import threading
import time
import weakref
import zipfile
from pathlib import Path as FilePath

import ipywidgets
import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from nbconvert import HTMLExporter

import hopping
from hopping import explore
from hopping.explore import (
    Axis,
    Bars,
    Curve,
    Field,
    Note,
    Panel,
    Path,
    Picture,
    Points,
    Scene,
    TroubleError,
    ask,
)
from hopping.explore.sampling import COARSEST, Sampling, Samplings, make_marks, resolve
from hopping.explore.scene import Grid, _Switch
from hopping.explore.twin import draw_scene
from hopping.explore.view import _grids

TOKENS = np.array([[1, 0.5], [-0.5, 1.25], [0.25, -1]])
QUERY = np.array([0.75, -0.5])
SQUARE = (Axis("x", -2, 2), Axis("y", -1, 3))


def lse(xi, Y, beta):
    u = beta * (Y @ xi)
    return (u.max() + np.log(np.exp(u - u.max()).sum())) / beta


def attention_weights(xi, Y, beta):
    u = beta * (Y @ xi)
    e = np.exp(u - u.max())
    return e / e.sum()


def lse_grad(xi, Y, beta):
    return attention_weights(xi, Y, beta) @ Y


def fd_grad(f, xi, h=1e-5):
    steps = h * np.eye(len(xi))
    return np.array([(f(xi + step) - f(xi - step)) / (2 * h) for step in steps])


def energy(xi, Y, beta):
    return 0.5 * xi @ xi - lse(xi, Y, beta)


def unwritten(xi, Y, beta):
    raise NotImplementedError


def notes(picture):
    marks = [mark for panel in picture._resolved.panels for mark in panel.marks]
    return [mark.text for mark in marks if isinstance(mark, Note)]


# ---------------------------------------------------------------- asking


def raises(*_):
    raise ValueError("two\nlines, and a long tail " + 300 * "x")


def leaves(*_):
    sys.exit("bye")


def deep(*_):
    return unwritten(None, None, None)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (unwritten, "not written yet: unwritten"),
        (deep, "not written yet: unwritten"),
        (raises, "raises raised ValueError: two lines, and a long tail"),
        (leaves, "leaves raised SystemExit: bye"),
        (lambda *_: None, "returned nothing"),
        (lambda *_: "1", "returned str, not numbers"),
        (lambda *_: [[1], [1, 2]], "returned list, not numbers"),
        (lambda *_: np.ones(3), "returned shape (3,), the picture needs one number"),
        (lambda *_: np.nan, "returned nan"),
        (lambda *_: np.inf, "returned inf"),
    ],
)
def test_what_a_function_did_wrong_is_said_in_one_line(function, message):
    with pytest.raises(TroubleError) as trouble:
        ask(function, QUERY, TOKENS, 1.0)
    assert message in str(trouble.value)
    assert "\n" not in str(trouble.value)
    assert len(str(trouble.value)) < 250


def test_an_interrupted_kernel_is_said_too():
    def endless(*_):
        raise KeyboardInterrupt

    with pytest.raises(TroubleError, match="endless was interrupted"):
        ask(endless)


def test_a_vector_of_another_shape_is_refused():
    with pytest.raises(TroubleError, match=r"shape \(1, 2\), the picture needs shape \(2,\)"):
        ask(lambda: np.ones((1, 2)), shape=(2,))


@pytest.mark.parametrize("value", [1, 1.5, np.float32(1.5), np.array(2.0), True])
def test_any_kind_of_number_is_accepted(value):
    assert ask(lambda: value) == float(value)


def test_a_function_gets_copies_and_its_prints_and_warnings_are_swallowed(capsys, recwarn):
    def noisy(xi):
        print("hello")
        print("hello", file=sys.stderr)
        xi += 1
        return np.log(-xi[0])

    given = np.array([1.0, 2.0])
    with pytest.raises(TroubleError, match="nan"):
        ask(noisy, given)
    assert given.tolist() == [1.0, 2.0]
    assert capsys.readouterr() == ("", "")
    assert not recwarn


def test_what_another_thread_prints_meanwhile_is_kept(capsys):
    inside, done = threading.Event(), threading.Event()

    def printing():
        print("swallowed")
        inside.set()
        done.wait(5)
        return 1.0

    asking = threading.Thread(target=ask, args=(printing,))
    asking.start()
    inside.wait(5)
    print("a cell's own")
    done.set()
    asking.join()
    print("and later")
    assert capsys.readouterr().out == "a cell's own\nand later\n"
    assert not isinstance(sys.stdout, _Switch)


# ---------------------------------------------------------------- sampling


def test_a_finer_grid_keeps_every_value_of_the_coarser_one():
    calls = []

    def slope(xi, factor):
        calls.append(tuple(xi))
        return factor * xi[0] + xi[1]

    sampling = Sampling(slope, (10.0,), SQUARE, "slope")
    sampling.advance(0.0, whole=True)
    first = sampling.values
    assert first.shape == (COARSEST + 1, COARSEST + 1)
    assert first[0, 0] == 10 * -2 - 1  # lowest y and lowest x first
    assert first[0, -1] == 10 * 2 - 1
    while not sampling.finished:
        sampling.advance(0.02, whole=False)
    last = sampling.values
    assert last.shape == (113, 113)
    assert np.array_equal(last[::16, ::16], first)
    assert len(calls) == len(set(calls)) == last.size  # nothing was asked twice
    assert np.allclose(last, np.add.outer(np.linspace(-1, 3, 113), 10 * np.linspace(-2, 2, 113)))


def test_a_curve_over_a_logarithmic_axis():
    sampling = Sampling(lambda x: x, (), (Axis("β", 0.25, 64, log=True),), "x")
    sampling.advance(5.0, whole=False)
    assert np.allclose(sampling.values, np.geomspace(0.25, 64, 225))


def test_a_moving_picture_starts_only_what_it_can_complete():
    def slow(xi):
        time.sleep(0.002)
        return xi[0]

    sampling = Sampling(slow, (), SQUARE, "slow")
    start = time.perf_counter()
    sampling.advance(0.012, whole=True)
    assert time.perf_counter() - start < 0.6  # 64 calls, not 225
    assert sampling.values.shape == (8, 8)
    assert not sampling.finished


def test_a_function_too_slow_to_draw_is_given_up_soon():
    def glacial(xi):
        time.sleep(0.2)
        return 0.0

    sampling = Sampling(glacial, (), SQUARE, "glacial")
    start = time.perf_counter()
    sampling.advance(0.012, whole=True)
    assert time.perf_counter() - start < 2.0
    assert sampling.finished
    assert re.fullmatch(r"glacial takes [0-9.]+ s a call: too slow to draw", sampling.trouble)


def changes(xi, Y):
    Y += 1
    return 0.0


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda xi, Y: np.nan, "f returned nan"),
        (lambda xi, Y: np.inf, "f returned inf"),
        (lambda xi, Y: None, "f returned nothing: is the return missing?"),
        (lambda xi, Y: xi, "f returned shape (2,), the picture needs one number"),
        (lambda xi, Y: "x", "f returned str, not a number"),
        (lambda xi, Y: 1 / 0, "f raised ZeroDivisionError: division by zero"),
        (changes, "f changed its argument: work on a copy"),
        (lambda xi, Y: unwritten(xi, Y, 1), "not written yet: unwritten"),
    ],
)
def test_a_field_that_cannot_be_sampled_says_why(function, message):
    sampling = Sampling(function, (TOKENS,), SQUARE, "f")
    sampling.advance(0.1, whole=True)
    assert sampling.trouble == message
    assert sampling.values is None and sampling.finished


def test_a_message_does_not_hide_what_is_drawn():
    x, y = Axis("x", -1, 1), Axis("y", -1, 1)
    messages = [Note("not written yet: a"), Note("not written yet: b")]
    marks = [Points([[0, 0]]), *messages]
    figure = draw_scene(Scene([Panel("drawn", x, y, marks), Panel("empty", x, y, messages)]))
    FigureCanvasAgg(figure).draw()
    drawn, empty = figure.axes
    message, title = drawn.texts[-1].get_window_extent(), drawn.title.get_window_extent()
    assert drawn.bbox.y1 < message.y0 < message.y1 < title.y0 < title.y1 <= figure.bbox.y1
    message = empty.texts[-1].get_window_extent()
    assert empty.bbox.contains(*message.min)
    assert empty.bbox.contains(*message.max)


def test_heights_of_contours_cover_neither_points_nor_names_nor_each_other():
    twelve = np.array([[x, y] for x in (-1.5, -0.5, 0.5, 1.5) for y in (-0.5, 1.0, 2.5)])
    values = np.add.outer(np.linspace(-1, 3, 57) ** 2, np.linspace(-2, 2, 57) ** 2)
    marks = [Grid(1, values), Points(twelve, names=[f"y{k}" for k in range(12)])]
    figure = draw_scene(Scene([Panel("", *SQUARE, marks, equal=True)]))
    figure.canvas.draw()
    (ax,) = figure.axes
    boxes = [text.get_window_extent() for text in ax.texts]
    assert len(boxes) > 12  # some heights are left
    for one, other in itertools.combinations(boxes, 2):
        assert not one.overlaps(other)
    places = ax.transData.transform(twelve)
    assert not any(box.contains(*place) for box in boxes for place in places)


def test_a_field_with_holes_is_drawn_with_a_note():
    panel = Panel("", *SQUARE, [Field(lambda xi: np.log(xi[0]), name="log")])
    scene, _ = resolve(Scene([panel]), Samplings(), 0.0, whole=True)
    grid, note = scene.panels[0].marks
    assert isinstance(grid, Grid)
    assert note.text == "log returned nan or inf at some of the points"
    assert scene.words == "Log returned nan or inf at some of the points."
    draw_scene(scene).canvas.draw()


def test_makers_fail_alone():
    def fails():
        yield Points([[0, 0]])
        raise ValueError("half way")

    marks = [fails, lambda: Path([[0, 0], [1, 1]]), lambda: [Bars([1.0]), Note("said")]]
    words = ["First.", lambda: ask(unwritten, 1, 2, 3), lambda: "Third, at -0.5 (7.6e-12)."]
    scene = make_marks(Scene([Panel("", *SQUARE, marks)], words))
    scene, finished = resolve(scene, Samplings(), 0.0, whole=True)
    kinds = [type(mark).__name__ for mark in scene.panels[0].marks]
    assert kinds == ["Note", "Path", "Bars", "Note"]
    assert (
        scene.words == "First. Third, at −0.5 (7.6e-12). Fails raised ValueError: half way. Said."
    )
    assert finished


# ---------------------------------------------------------------- pictures


def test_the_landscape_says_and_shows_the_learners_numbers():
    picture = explore.landscape(energy, TOKENS, QUERY, 1.0, lse_grad)
    assert picture.words == (
        "Energy of 3 tokens at β = 1. The query at (0.75, −0.50) has energy −0.981. "
        "Its hop lands at (0.49, −0.18), energy −1.109."
    )
    picture.controls["beta"].value = 4.0
    assert picture.words.startswith("Energy of 3 tokens at β = 4.")
    picture.move(query=[0.0, 0.0], tokens=TOKENS + 0.5)
    assert "The query at (0.00, 0.00)" in picture.words
    assert np.array_equal(picture.state["tokens"], TOKENS + 0.5)


def test_the_state_cannot_be_changed_from_outside():
    picture = explore.landscape(energy, TOKENS, QUERY)
    picture.state["query"][:] = 9
    assert picture.state["query"].tolist() == QUERY.tolist()


def test_moving_the_query_does_not_ask_for_the_landscape_again():
    calls = []

    def counted(xi, Y, beta):
        calls.append(1)
        return energy(xi, Y, beta)

    picture = explore.landscape(counted, TOKENS, QUERY)
    while not picture._sample(0.05, whole=False):
        pass
    calls.clear()
    picture.move(query=[0.5, 0.5])
    assert len(calls) == 1  # for the words
    picture.move(tokens=TOKENS + 0.25)
    assert len(calls) > 64


def test_messages_move_points_and_are_always_answered():
    picture = explore.landscape(energy, TOKENS, QUERY)
    move = {"view": "a", "number": 7, "name": "tokens", "index": 1, "at": [0.5, -0.5]}
    picture._moved(picture.view, move, [])
    assert picture.state["tokens"][1].tolist() == [0.5, -0.5]
    assert (picture.view.answer["view"], picture.view.answer["done"]) == ("a", 7)
    assert 0 < picture.view.answer["spent"] < 5000
    with pytest.raises(KeyError):
        picture._moved(picture.view, move | {"name": "nothing", "number": 8}, [])
    assert picture.view.answer["done"] == 8


def test_what_the_view_gets_is_json_and_float32():
    picture = explore.landscape(energy, TOKENS, QUERY, 4.0, lse_grad, heights=(-1, 2))
    json.dumps(picture.view.scene, allow_nan=False)
    ((serial, grid),) = picture.view.grids.items()  # both panels show the same sampling
    values = np.frombuffer(grid["values"], "<f4").reshape(grid["side"], grid["side"])
    corner = energy(np.array([-2.0, -2.0]), TOKENS, 4.0)
    assert np.isclose(grid["base"] + values[0, 0], corner)
    assert values.min() == 0.0  # so that single precision is enough far from 0, too
    kinds = [[mark["kind"] for mark in panel["marks"]] for panel in picture.view.scene["panels"]]
    assert kinds[0] == ["grid", "points", "path", "points", "points"]
    assert picture.view.scene["panels"][1]["z"]["low"] == -1
    assert picture.view.scene["panels"][0]["marks"][0]["serial"] == serial


def test_values_that_are_not_finite_reach_the_view_as_null():
    def scene(state):
        return Scene([Panel("", *SQUARE, [Path([[0, np.nan], [1, np.inf]]), Bars([np.nan])])])

    picture = Picture(scene)
    path, bars = picture.view.scene["panels"][0]["marks"]
    assert path["at"] == [[0.0, None], [1.0, None]]
    assert bars["heights"] == [None]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("beta", [1e-6, 1e4])
@pytest.mark.parametrize(
    "tokens", [TOKENS[:1], np.ones((3, 2)), TOKENS], ids=["one", "coinciding", "three"]
)
def test_controls_at_their_ends(beta, tokens):
    picture = explore.landscape(
        energy, tokens, tokens[0], beta, lse_grad, beta_range=(1e-6, 1e4), heights=(-2, 2)
    )
    assert notes(picture) == []
    json.dumps(picture.view.scene, allow_nan=False)
    picture.figure().canvas.draw()


def test_a_landscape_of_functions_that_are_not_written_yet():
    picture = explore.landscape(unwritten, TOKENS, QUERY, 1.0, unwritten, heights=(-1, 1))
    assert set(notes(picture)) == {"not written yet: unwritten"}
    assert picture.words == "Energy of 3 tokens at β = 1. Not written yet: unwritten."
    picture.controls["beta"].value = 2.0  # the controls are alive
    assert "β = 2" in picture.words
    picture.figure().canvas.draw()


def test_layers_add_marks_and_panels_and_fail_alone():
    def path(state):
        yield Path([state["query"], [0, 0]], dots=True)
        yield Panel("beside", *SQUARE, [Curve(lambda x: x * x)])

    def broken(state):
        raise ValueError("no")

    picture = explore.landscape(
        energy,
        TOKENS,
        QUERY,
        controls={"eta": explore.slider("η", 0, 3, 1)},
        layers=[path, broken, lambda state: Points([[state["eta"], 0]], "other")],
    )
    first, second = picture._resolved.panels
    assert second.title == "beside"
    assert isinstance(second.marks[0], Grid) and second.marks[0].values.ndim == 1
    assert notes(picture) == ["broken raised ValueError: no"]
    assert [m.at for m in first.marks if isinstance(m, Points) and m.role == "other"] == [[[1, 0]]]


def test_a_scene_function_that_fails_is_said_and_the_controls_stay():
    def scene(state):
        if state["n"] > 1:
            raise RuntimeError("too many")
        return Scene([Panel("fine", *SQUARE)], "Fine.")

    picture = Picture(scene, controls={"n": explore.count_slider("n", 1, 3, 1)})
    picture.controls["n"].value = 3
    assert picture.words == "The picture raised RuntimeError: too many."
    picture.controls["n"].value = 1
    assert picture.words == "Fine."


# ---------------------------------------------------------------- lesson 01


def weights_of(picture):
    return next(p for p in picture._resolved.panels if p.title == "Weights").marks[0].heights


def scores_and_weights(**instead):
    functions = {
        "lse": lse,
        "attention_weights": attention_weights,
        "lse_grad": lse_grad,
        "fd_grad": fd_grad,
    }
    return explore.scores_and_weights(**(functions | instead))


def test_adding_1000_to_every_score_changes_no_weight():
    picture = scores_and_weights()
    before = weights_of(picture)
    assert np.allclose(before, [0.411630977463, 0.0918472859233, 0.496521736614])
    picture.controls["shift"].value = True
    assert np.array_equal(weights_of(picture), before)
    assert "1000 added to every score" in picture.words
    scores = picture._resolved.panels[1]
    assert (scores.y.low, scores.y.high) == (996, 1004)


def test_without_max_subtraction_the_button_shows_the_overflow():
    def naive(xi, Y, beta):
        e = np.exp(beta * (Y @ xi))
        return e / e.sum()

    picture = scores_and_weights(attention_weights=naive)
    assert notes(picture) == []
    picture.controls["shift"].value = True
    assert notes(picture) == ["naive returned nan"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("beta", [2.0**-6, 64.0])
@pytest.mark.parametrize("n", [1, 8])
@pytest.mark.parametrize("shift", [False, True])
def test_lesson_01_at_the_ends_of_its_controls(beta, n, shift):
    picture = scores_and_weights()
    limits = [(p.x, p.y) for p in picture._resolved.panels]
    picture.controls["beta"].value = beta
    picture.controls["n"].value = n
    # Limits do not move with a slider; the button moves only the score axes, by 1000.
    assert [(p.x, p.y) for p in picture._resolved.panels] == limits
    picture.controls["shift"].value = shift
    assert notes(picture) == []
    assert picture.words.startswith("1 token at" if n == 1 else "8 tokens at")
    picture.figure().canvas.draw()


@pytest.mark.parametrize("missing", ["lse", "attention_weights", "lse_grad", "fd_grad"])
def test_lesson_01_shows_what_is_written_already(missing):
    def stub(*_):
        raise NotImplementedError

    picture = scores_and_weights(**{missing: stub})
    assert set(notes(picture)) == {"not written yet: stub"}
    panels = {panel.title: panel for panel in picture._resolved.panels}
    assert isinstance(panels["Scores"].marks[0], Bars)
    assert isinstance(panels["Weights"].marks[0], Bars) == (missing != "attention_weights")


# ---------------------------------------------------------------- the static twin


def test_the_picture_carries_its_static_twin():
    picture = explore.landscape(energy, TOKENS, QUERY, 4.0, lse_grad)
    data, metadata = picture._repr_mimebundle_()
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == picture.model_id
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
    assert data["text/plain"] == metadata["image/png"]["alt"] == picture.words


@pytest.mark.parametrize("refined", [False, True])
def test_the_static_twin_has_the_same_grids_however_far_the_view_is(monkeypatch, refined):
    drawn = []
    monkeypatch.setattr("hopping.explore.view.draw_scene", drawn.append)
    picture = scores_and_weights()
    while refined and not picture._sample(0.1, whole=False):
        pass
    picture.figure()
    shapes = [mark.values.shape for mark in _grids(drawn[0])]
    assert shapes == [(57, 57), (113,)]
    field, curve = picture.view.grids.values()  # they were sent, too
    assert (field["side"], curve["side"]) >= (57, 113)


def test_drawing_again_leaks_no_figure():
    picture = scores_and_weights()
    before = plt.get_fignums()
    figures = []
    for _ in range(4):
        figure = picture.figure()
        figures.append(weakref.ref(figure))
        picture._repr_mimebundle_()
        del figure
    gc.collect()
    assert plt.get_fignums() == before
    # Matplotlib may remember the last figure it laid out with a logarithmic axis, but no more.
    assert sum(figure() is not None for figure in figures) <= 1


def test_an_exported_page_shows_the_picture():
    data, metadata = explore.landscape(energy, TOKENS, QUERY)._repr_mimebundle_()
    cell = nbformat.v4.new_code_cell("picture")
    cell.outputs = [nbformat.v4.new_output("display_data", data, metadata=metadata)]
    page, _ = HTMLExporter().from_notebook_node(nbformat.v4.new_notebook(cells=[cell]))
    assert page.count('src="data:image/png;base64,') == 1
    assert '<img alt="Energy of 3 tokens at β = 1. The query at (0.75, −0.50) has' in page


# ---------------------------------------------------------------- the package


def test_importing_brings_in_nothing_slow():
    """SciPy and pyplot cost most of a second, which a learner would wait for in every lesson."""
    code = "import sys, hopping.explore; print({'scipy', 'matplotlib.pyplot'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


def test_the_package_is_small():
    folder = FilePath(hopping.__file__).parent
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as wheel:
        for file in folder.rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                wheel.write(file, file.relative_to(folder))
    assert len(packed.getvalue()) < 300_000


def test_the_view_asks_for_nothing_from_a_network():
    folder = FilePath(explore.__file__).parent
    for name in ("view.js", "view.css"):
        text = (folder / name).read_text()
        assert "http:" not in text and "https:" not in text and "import " not in text


def test_controls_are_native_and_labelled():
    picture = scores_and_weights()
    for control in picture.controls.values():
        assert isinstance(control, ipywidgets.Widget)
        assert control.description
