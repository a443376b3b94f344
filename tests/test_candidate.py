"""The candidate is like a kernel, shut off, and bounded; its channel carries plain data."""

import json
import os
import re
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import nbformat
import numpy as np
import pytest
import small_lesson as small
from nbclient import NotebookClient

from autograder import examiner
from autograder import sandbox as sandboxes
from autograder.examiner import examine, judge_exam
from autograder.exercises import load
from autograder.inside.channel import ARRAY_LIMIT, HEAD, Channel, ChannelError, TooLarge
from autograder.isolated import grade_submission
from autograder.sandbox import Ended, Limits, Sandbox, outcome_of, why_not_confined
from hopping.observe import Outcome, plain

SOURCE = nbformat.from_dict(small.source())
confined = pytest.mark.skipif(why_not_confined() is not None, reason=str(why_not_confined()))


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(Limits(cell_seconds=20.0)) as sandbox:
        sandbox.warm_up()
        yield sandbox


@pytest.fixture
def candidate(sandbox):
    with sandbox.candidate() as candidate:
        yield candidate


def text(answer):
    return "".join(o["text"] for o in answer["outputs"] if o["output_type"] == "stream")


# --- Channel ---


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Channel(ours), Channel(theirs)


VALUES = [
    None,
    True,
    3,
    -(2**70),
    0.1,
    float("inf"),
    1 + 2j,
    "ü\n",
    (1.0, ("a", None)),
    [1, [2.5]],
    {"a": {"b": np.ones(2)}},
    np.arange(6.0).reshape(2, 3),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.zeros((0, 3)),
    np.array(2.5),
    np.float32(1.5),
    np.float64(-0.0),
    np.array([1, 2], dtype="i2"),
    np.array([1.0, 2.0], dtype=">f8"),
    np.array([True, False]),
    np.array([1j]),
    np.array([["a", "bc"]]),
    np.array([np.nan, np.inf]),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_arrives_as_it_was_sent(ends, value):
    ours, theirs = ends
    ours.send(value)
    got = theirs.receive()
    assert type(got) is type(value)
    if isinstance(value, np.ndarray):
        value = value.astype(value.dtype.newbyteorder("="))
        assert got.dtype == value.dtype
        assert got.flags.f_contiguous == value.flags.f_contiguous
        assert got.flags.writeable
    assert repr(got) == repr(value)


@pytest.mark.parametrize("value", [object(), {1: 2}, {"a": len}, np.array([object()]), b"x"])
def test_what_is_not_plain_is_not_sent(ends, value):
    with pytest.raises(TypeError):
        ends[0].send(value)


def test_what_is_too_large_is_not_sent(ends):
    with pytest.raises(TooLarge):
        ends[0].send(np.zeros(ARRAY_LIMIT // 8 + 1))
    with pytest.raises(TooLarge):
        ends[0].send("x" * (17 << 20))


@pytest.mark.parametrize(
    ("message", "data"),
    [
        ({"array": "float64", "shape": [10**18]}, b""),
        ({"array": "float64", "shape": [2]}, b"12345678"),
        ({"array": "float64", "shape": [-1]}, b""),
        ({"array": "float64", "shape": [True]}, b"12345678"),
        ({"array": "float64", "shape": ["1"]}, b"12345678"),
        ({"array": "float64", "shape": [1] * 40}, b"12345678"),
        ({"array": "float64", "shape": [0, 10**30]}, b""),
        ({"array": "object", "shape": [1]}, b"12345678"),
        ({"array": "O", "shape": [1]}, b"12345678"),
        ({"array": "f8,O", "shape": [1]}, b"1" * 16),
        ({"array": ["float64"], "shape": [1]}, b"12345678"),
        ({"strings": ["a"], "shape": [3]}, b""),
        ({"strings": [1], "shape": [1]}, b""),
        ({"scalar": 3}, b""),
        ({"dict": {"a": 1}}, b""),
        ({"dict": [["a"]]}, b""),
        ({"dict": [[1, 2]]}, b""),
        ({"tuple": 3}, b""),
        ({"complex": [1, "2"]}, b""),
        ({"function": 0}, b""),
        ({"pickle": "x"}, b""),
        ({}, b""),
    ],
    ids=repr,
)
def test_a_malformed_message_is_an_error_and_nothing_else(ends, message, data):
    send_raw(ends[0], json.dumps(message).encode(), data)
    with pytest.raises(ChannelError):
        ends[1].receive()


@pytest.mark.parametrize(
    "raw", [b"[" * 100_000, b'{"a":' * 10_000, b"", b"\xff\xfe", b"9" * 5000, b"nul", b"[1,]"]
)
def test_a_text_that_is_no_json_is_an_error(ends, raw):
    send_raw(ends[0], raw, b"")
    with pytest.raises(ChannelError):
        ends[1].receive()


def test_a_length_is_checked_before_anything_is_read(ends):
    ends[0].sock.sendall(HEAD.pack(2**32 - 1, 0))
    with pytest.raises(ChannelError, match="too long"):
        ends[1].receive()


def test_half_a_surrogate_does_not_arrive(ends):
    ends[0].send({"\udc80a": "x\ud800y"})
    assert ends[1].receive() == {"?a": "x?y"}


def test_random_bytes_are_an_error_or_plain_data():
    rng = np.random.default_rng(0)
    good = json.dumps({"dict": [["a", {"array": "float64", "shape": [2]}], ["b", [1, 2.5]]]})
    for _ in range(500):
        raw = bytearray(good.encode())
        for _ in range(rng.integers(1, 4)):
            raw[rng.integers(len(raw))] = rng.integers(256)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            send_raw(Channel(ours), bytes(raw), bytes(16))
            try:
                Channel(theirs).receive()
            except ChannelError:
                continue


def send_raw(channel, text, data):
    channel.sock.sendall(struct.pack("<II", len(text), len(data)) + text + data)


# --- Outcomes from outside are judged, whatever they are ---


def test_any_outcome_is_judged():
    rng = np.random.default_rng(3)
    values = [
        *VALUES,
        10**400,
        "x" * 10_000,
        [[[]]],
        (),
        [np.ones(3), "a"],
        np.array(["a", "b"]),
        np.ones((1,) * 20),
        {"a": 1},
        np.full(3, np.nan),
        np.float32(3),
        np.array([], dtype=bool),
    ]
    for exercise in load().values():
        cases = [case for group in exercise.groups for case in group.cases]
        for _ in range(8):
            outcomes = [
                outcome_of(
                    {
                        "value": values[rng.integers(len(values))],
                        "kind": rng.choice(["float", "list", "ndarray", "tuple", "NoneType", "z"]),
                        "raised": str(rng.choice(["", "", "ValueError", "ProcessEnded"])),
                        "changed": [["xi"], 3, None][rng.integers(3)],
                    }
                )
                for _ in cases
            ]
            verdict = judge_exam(exercise, outcomes)
            assert 0 <= verdict.points <= exercise.points


def test_an_outcome_has_the_types_it_must_have():
    lies = {"kind": 3, "raised": ["x"], "changed": [1, None], "shares": {}, "noisy": "yes"}
    assert outcome_of(lies) == Outcome(kind="", changed=("1", "None"))
    assert outcome_of({"raised": "E" * 10_000}).raised == "E" * 2000


class Lying(float):
    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0

    def __float__(self):
        return 1.0


class Endless(list):
    def __iter__(self):
        while True:
            yield 0.0


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Lying(3), 3.0),
        (Endless([1.0]), [1.0]),
        (np.ones(2).view(type("Mine", (np.ndarray,), {})), np.ones(2)),
        (np.longdouble(2), 2.0),
        (10**400, np.inf),
        (object(), None),
        (np.array([None]), None),
        (iter([1]), None),
    ],
    # No address in a name: two processes that share the tests must call them alike.
    ids=lambda value: re.sub(r" at 0x\w+", "", repr(value)),
)
def test_an_answer_is_reduced_to_exactly_plain_data(value, expected):
    got = plain(value)
    assert type(got) is type(expected)
    assert repr(got) == repr(expected)


# --- Like a kernel ---

CELLS = [
    "import numpy as np\nimport matplotlib.pyplot as plt\nfrom IPython.display import *",
    "print('a')\nprint('b', end='')\nimport sys\nprint('err', file=sys.stderr)\nprint('c')",
    "1 + 1",
    "1 + 1;",
    "_, Out[3], In[3]",
    "x = np.arange(3)\nx",
    "1 / 0",
    "def f(:",
    "raise SystemExit",
    "import warnings\nwarnings.warn('careful')\nlen('ab')",
    "display(HTML('<b>x</b>'), {'a': 1})\nMath('x')",
    "h = display('first', display_id='here')\nprint('between')",
    "update_display('second', display_id='here')",
    "print('gone')\nclear_output()\nprint('stays')",
    "print('gone')\nclear_output(wait=True)\nprint('stays too')",
    "plt.plot([1, 2])",
    "fig, ax = plt.subplots()\nax.set_title(r'$\\beta$');",
    "fig",
    "import ipywidgets\nipywidgets.IntSlider(3)",
    "class A:\n    def _repr_html_(self):\n        return '<i>a</i>'\nA()",
    "class B:\n    def __repr__(self):\n        raise ValueError('no repr')\nB()",
    "import subprocess\nsubprocess.run(['echo', 'past Python']);",
    "!echo shell",
    "%no_such_magic",
    "import asyncio\nawait asyncio.sleep(0)\n'awaited'",
    "input('name?')",
    "None",
    "'a\\nb'",
    "%time 3",
    "from hopping import check\n\ndef lse(xi, Y, beta):\n    return 1.0\n\ncheck(lse)",
]
VARIES = [
    (re.compile(r"\x1b\[[0-9;]*m"), ""),
    (re.compile(r"0x[0-9a-f]+"), "0x"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "ID"),
    (re.compile(r"(?:/tmp/ipykernel(?:_\d+)?/)?\b\d+\.py"), "CELL"),
    (re.compile(r"[\d.e+]+ [mµμn]?s\b"), "TIME"),
]


def normal(output):
    """Return an output without what differs from run to run."""

    def clean(value):
        if isinstance(value, dict):
            return {k: v if k.startswith("image/") else clean(v) for k, v in value.items()}
        if isinstance(value, list):
            return [clean(part) for part in value]
        if isinstance(value, str):
            for pattern, instead in VARIES:
                value = pattern.sub(instead, value)
            value = value.replace("\r\n", "\n")
        return value

    output = clean(json.loads(json.dumps(output)))
    # Frames of the machinery that runs a cell differ, the student's own do not.
    if output["output_type"] == "error":
        machinery = ("site-packages", "/inside/")
        output["traceback"] = [
            part for part in output["traceback"] if not any(m in part for m in machinery)
        ]
    return output


def by_stream(outputs):
    """Return outputs with the text of each stream together, as the two may interleave."""
    streams, rest = {}, []
    for output in map(normal, outputs):
        if output["output_type"] == "stream":
            streams[output["name"]] = streams.get(output["name"], "") + output["text"]
        else:
            rest.append(output)
    return streams, rest


@pytest.fixture(scope="module")
def both(sandbox, tmp_path_factory):
    """Run the cells in a kernel and in a candidate."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in CELLS])
    NotebookClient(
        notebook,
        allow_errors=True,
        record_timing=False,
        kernel_name="python3",
        # Beside a notebook its checks leave a file.
        resources={"metadata": {"path": str(tmp_path_factory.mktemp("kernel"))}},
    ).execute(
        # In a test a kernel does not listen to what is written past Python.
        env={k: v for k, v in os.environ.items() if k != "PYTEST_CURRENT_TEST"}
    )
    lesson = nbformat.from_dict(small.source())
    handed_in = small.insert(small.solved(), None, *CELLS)
    graded = grade_submission(small.as_bytes(handed_in), lesson, sandbox)
    return dict(zip(CELLS, zip(notebook.cells, graded.notebook.cells, strict=False), strict=True))


@pytest.mark.parametrize("source", CELLS)
def test_a_cell_shows_what_it_shows_in_a_kernel(both, source):
    kernel, ours = both[source]
    assert ours.source == source
    assert by_stream(ours.outputs) == by_stream(kernel.outputs)
    assert ours.execution_count == kernel.execution_count


SOLUTIONS = sorted((Path(__file__).parents[1] / "solutions").glob("*/*.ipynb"))
TELL_TIMES = {"tanh_modes-race", "tanh_modes-race_picture", "one_step_vs_settling-hump"}


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.parent.name)
def test_a_solved_lesson_shows_what_a_kernel_showed(path):
    """A kernel made the stored outputs when the course was built, perhaps on another processor.

    So numbers, and pictures made of them, count as such and not to their last digit.
    """
    with Sandbox() as sandbox, sandbox.candidate() as candidate:
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "code":
                shown = candidate.run_cell(cell.source, 120)["outputs"]
                if cell.id not in TELL_TIMES and "twelve tokens" not in str(cell.outputs):
                    assert [_reduced(o) for o in shown] == [_reduced(o) for o in cell.outputs]


def _reduced(output):
    if output["output_type"] == "error":
        return output["ename"], output["evalue"]
    if output["output_type"] == "stream":
        return output["name"], _without_numbers(output["text"])
    data = {k: v for k, v in output["data"].items() if "widget-view" not in k}  # a random id
    return output["output_type"], {
        kind: kind if kind.startswith("image/") else _without_numbers(str(content))
        for kind, content in data.items()
    }


def _without_numbers(text):
    text = re.sub(r"base64,[\w+/=]+", "base64", text)
    return " ".join(re.sub(r"[-−+]?\d[\d.]*(e[-−+]?\d+)?", "#", text).split())


# --- Shut off ---


@confined
def test_nothing_of_the_course_can_be_read(candidate):
    root = Path(sandboxes.__file__).parents[1]
    code = f"""
import glob, importlib.util, os, sys
print([p for p in {[str(root / p) for p in ("source", "autograder", "tests", "class")]!r}
       if os.path.exists(p)])
print(os.path.exists('/proc/1'), os.path.exists('/etc/passwd'), os.path.exists('/home'))
print([importlib.util.find_spec(n) for n in ('autograder', 'autograder.reference')
       if n == 'autograder'])
print(sorted(os.environ))
"""
    lines = text(candidate.run_cell(code, 20)).splitlines()
    assert lines[:3] == ["[]", "False False False", "[None]"]
    assert not re.search("JPY|TOKEN|SECRET|SSH|PYTEST", lines[3])


@confined
def test_two_candidates_share_no_place_to_write(sandbox):
    write = """
import os, ctypes
written = []
for place in ('/', '/tmp', '/dev', '/dev/shm', '/scratch', '/usr', '/inside', '/etc', '/var/tmp'):
    try:
        open(os.path.join(place, 'left'), 'w').close()
        written.append(place)
    except OSError:
        pass
print(written)
"""
    look = write.replace(
        "open(os.path.join(place, 'left'), 'w').close()", "os.stat(place + '/left')"
    )
    with sandbox.candidate() as first:
        assert "/scratch" in text(first.run_cell(write, 20))
    with sandbox.candidate() as second:
        assert text(second.run_cell(look, 20)) == "[]\n", "something of the first is there"


@confined
def test_nothing_is_left_running(sandbox):
    start = "import subprocess\nfor _ in range(5):\n    subprocess.Popen(['sleep', '77777'])"
    daemon = (
        "import os\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
        "        os.execv('/usr/bin/sleep', ['sleep', '77777'])\n    os._exit(0)"
    )
    with sandbox.candidate() as candidate:
        candidate.run_cell(start, 20)
        candidate.run_cell(daemon, 20)
        wait_until(lambda: running("77777") >= 6)
    with sandbox.candidate():  # the next begins when the last is gone
        assert running("77777") == 0


def wait_until(holds, seconds=20):
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert holds()


def running(word):
    count = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            count += word in Path(f"/proc/{pid}/cmdline").read_text()
        except OSError:
            continue
    return count


TOKEN = 0.8273645546372819


def test_a_hidden_input_is_seen_by_the_function_and_by_nobody_else(sandbox, monkeypatch, tmp_path):
    spy = """
import os, sys
seen = []
def lse(xi, Y, beta):
    text = repr([xi.tolist(), Y.tolist(), beta])
    seen.append(text)
    print(text)
    sys.stderr.write(text)
    os.write(1, text.encode())
    open('seen', 'a').write(text)
    os.environ['SEEN'] = text
    sys.exc = text
    raise ValueError(text)
"""
    later = "import os\nprint(seen, os.path.exists('seen') and open('seen').read(), os.environ)"
    exercise = load()["lse"]
    case = exercise.groups[0].cases[0]
    hidden = {**case.inputs, "xi": np.full(2, TOKEN), "Y": np.full((3, 2), TOKEN)}
    monkeypatch.setitem(case.inputs, "xi", hidden["xi"])
    monkeypatch.setitem(case.inputs, "Y", hidden["Y"])
    notebook = small.insert(small.solved(lse=spy), "exam_fd_grad", later)
    graded = grade_submission(small.as_bytes(notebook), SOURCE, sandbox)
    assert graded.scores["exam_lse"] == 0
    everything = nbformat.writes(graded.notebook) + repr(graded.verdicts) + repr(graded.notices)
    assert str(TOKEN)[:10] not in everything
    assert "[]" in everything or "seen" in everything


HUNT = """
import ctypes, gc, os, sys
def hunt():
    # What is looked for is known in halves, so that the search does not find itself.
    found = set()
    def search(data, place):
        for head, tail in HALVES:
            at = data.find(head)
            while at >= 0:
                if data.startswith(tail, at + len(head)):
                    found.add(place)
                at = data.find(head, at + 1)
    gc.unfreeze()
    arenas = {id(thing) >> 20 for thing in gc.get_objects()}
    libc, (end, start) = ctypes.CDLL(None), os.pipe()
    for page in (arena << 20 | page << 14 for arena in arenas for page in range(64)):
        # A system call says of memory that is not there that it is not; reading it would crash.
        size = libc.write(start, ctypes.c_void_p(page), ctypes.c_size_t(1 << 14))
        if size > 0:
            search(os.read(end, size), "memory")
    frame = sys._getframe()
    while frame:
        search(repr(list(frame.f_locals)).encode(), "frames")
        frame = frame.f_back
    for folder, inner, names in os.walk("/"):
        inner[:] = [n for n in inner if n not in ("lib", "lib64", "bin", "sbin", "dev")]
        for name in names:
            try:
                search(open(os.path.join(folder, name), "rb").read(1 << 20), "disk")
            except OSError:
                pass
    os.close(end)
    os.close(start)
    return sorted(found)
"""


@confined
def test_a_hidden_case_and_a_reference_are_not_in_memory_nor_on_disk(
    sandbox, monkeypatch, tmp_path
):
    number, secret = 0.6180255318739125, b"this is how the theory is written"
    exercise = load()["lse"]

    def reference(xi, Y, beta, known=(number, secret), right=exercise.reference):
        return right(xi, Y, beta)

    monkeypatch.setattr(examiner, "_exam_key", examiner._exam_key.__wrapped__)
    monkeypatch.setattr(type(exercise), "__setattr__", object.__setattr__)
    monkeypatch.setattr(exercise, "reference", reference)
    for case in exercise.groups[0].cases:
        monkeypatch.setitem(case.inputs, "beta", number)
    (tmp_path / "reference.py").write_bytes(secret)
    wanted = (struct.pack("<d", number), secret, str(number).encode())
    hunt = f"HALVES = {[(w[:5], w[5:]) for w in wanted]}\n{HUNT}"
    # The search finds what is there.
    with sandbox.candidate() as candidate:
        candidate.run_cell(hunt, 20)
        candidate.run_cell("import struct\nkept = [struct.unpack('<d', b''.join(HALVES[0]))]", 20)
        candidate.run_cell("open('file', 'wb').write(b''.join(HALVES[1]))", 20)
        assert text(candidate.run_cell("print(hunt())", 60)) == "['disk', 'memory']\n"
    # Another exercise, which is examined after the one that the secrets are of, searches as well.
    answer = small.SOLUTIONS["attention_weights"].replace(
        "    u = beta", "    if not found:\n        found.append(hunt())\n"
        "    assert found == [[]]\n    u = beta"
    )  # fmt: skip
    notebook = small.solved(attention_weights=f"found = []\n{hunt}\n{answer}")
    small.insert(notebook, "exam_fd_grad", "print('found', hunt())")
    graded = grade_submission(small.as_bytes(notebook), SOURCE, sandbox)
    everything = nbformat.writes(graded.notebook) + repr(graded.verdicts) + repr(graded.notices)
    assert "found []" in everything
    assert graded.scores["exam_attention_weights"] == small.POINTS["exam_attention_weights"]
    assert secret.decode() not in everything and str(number)[:12] not in everything


def test_an_error_in_a_function_of_the_examiner_does_not_quote_it(sandbox):
    def secret(x):
        raise ValueError("the secret is 42")

    with sandbox.candidate() as candidate:
        candidate.run_cell("def g(f):\n    try:\n        f(1.0)\n    except ValueError as e:\n"
                           "        return str(e)", 20)  # fmt: skip
        outcome = candidate.keep().call("g", {"f": secret}, 5)
    assert "secret" not in outcome.value


# --- Bounded ---


def test_an_interrupted_cell_keeps_what_was_there(candidate):
    candidate.run_cell("x = 3", 20)
    answer = candidate.run_cell("while True:\n    pass", 0.5)
    assert answer["interrupted"]
    assert answer["outputs"][-1]["ename"] == "KeyboardInterrupt"
    assert text(candidate.run_cell("print(x)", 20)) == "3\n"


def test_memory_is_bounded(candidate):
    answer = candidate.run_cell("x = bytes(5 << 30)", 20)
    assert answer["outputs"][-1]["ename"] == "MemoryError"


def test_a_process_that_ends_says_how(sandbox):
    for code, how in (("os._exit(3)", "exit code 3"), ("os.kill(os.getpid(), 11)", "segment")):
        with sandbox.candidate() as candidate, pytest.raises(Ended, match=how):
            candidate.run_cell(f"import os\n{code}", 20)


def test_the_server_comes_back_when_it_was_killed(sandbox):
    with sandbox.candidate() as candidate:
        candidate.run_cell("1", 20)
    sandbox._server._process.kill()
    sandbox._server._process.wait()
    with sandbox.candidate() as candidate:
        assert text(candidate.run_cell("print(2)", 20)) == "2\n"


def test_the_server_goes_when_its_user_is_killed(tmp_path):
    code = (
        "import sys, time\nfrom autograder.sandbox import Sandbox\nbox = Sandbox()\n"
        "box.warm_up()\nprint(box._server._process.pid, flush=True)\ntime.sleep(600)"
    )
    user = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    server = int(user.stdout.readline())
    user.kill()
    user.wait()
    wait_until(lambda: not _is_running(server))


def _is_running(pid):
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


# --- Without isolation, the rest still holds ---


@pytest.fixture(scope="module")
def plain_sandbox():
    patch = pytest.MonkeyPatch()
    patch.setattr(sandboxes, "why_not_confined", lambda: "this is a test")
    with Sandbox(Limits(call_seconds=2.0, cell_seconds=5.0)) as sandbox:
        yield sandbox
    patch.undo()


def test_grading_without_bubblewrap_gives_the_same(plain_sandbox, sandbox):
    for notebook in (small.solved(), small.solved(lse="import os\nos._exit(1)")):
        data = small.as_bytes(notebook)
        with_it = grade_submission(data, SOURCE, sandbox)
        without = grade_submission(data, SOURCE, plain_sandbox)
        assert without.scores == with_it.scores
        assert without.notices == with_it.notices


def test_children_are_ended_without_bubblewrap(plain_sandbox):
    with plain_sandbox.candidate() as candidate:
        candidate.run_cell(
            "import os, subprocess\nsubprocess.Popen(['sleep', '66666'], start_new_session=True)\n"
            "if os.fork() == 0:\n    os.setsid()\n"
            "    os.execv('/usr/bin/sleep', ['sleep', '66666'])",
            20,
        )
        wait_until(lambda: running("66666") >= 2)
    assert running("66666") == 0


# --- Equal to judging in the process ---

WAYS = [
    (exercise, way)
    for exercise in load().values()
    if exercise.name in small.SOLUTIONS
    for way in (
        "    return 0.0",
        "    return None",
        "    raise ValueError('no')",
        "    return float('nan')",
    )
]


@pytest.mark.parametrize(("exercise", "body"), WAYS, ids=lambda v: getattr(v, "name", repr(v)))
def test_verdicts_equal_those_in_the_process(sandbox, exercise, body):
    head = small.SOLUTIONS[exercise.name].split("\n")[0]
    namespace = {"np": np}
    exec(f"{head}\n{body}", namespace)
    expected = examine(exercise.name, namespace[exercise.name])
    data = small.as_bytes(small.solved(**{exercise.name: f"{head}\n{body}"}))
    verdict = grade_submission(data, SOURCE, sandbox).verdicts[exercise.name]
    assert verdict == expected


def test_two_sandboxes_work_side_by_side():
    data = small.as_bytes(small.solved())
    results = []

    def work():
        with Sandbox() as box:
            results.extend(grade_submission(data, SOURCE, box).scores for _ in range(3))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 6
    assert all(result == results[0] for result in results)
