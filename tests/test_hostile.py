"""A table of odd and hostile submissions: what each scores, what is said, and that it ends there.

After each of them a good submission is graded on the same server and must come out as always.
"""

import contextlib
import copy
import csv
import io
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import nbformat
import pytest
import small_lesson as small
from classroom import LESSON, NOTEBOOK, answered, hand_in, make_course

from autograder import feedback, pool
from autograder.grading import grade_class
from autograder.isolated import grade_submission
from autograder.outcome import GRADED, MISSING, NOT_GRADED, NOTICES
from autograder.report import csv_text, table
from autograder.sandbox import Ended, Limits, Sandbox, why_not_confined
from autograder.submission import SIZE_LIMIT, NotGradable

SOURCE = nbformat.from_dict(small.source())
LIMITS = Limits(
    call_seconds=0.6,
    exam_seconds=4.0,
    cell_seconds=1.2,
    notebook_seconds=25.0,
    memory=1 << 30,
    processes=24,
    output=100_000,
    notebook_output=2_000_000,
    files=8 << 20,
    file_count=200,
)
LSE, WEIGHTS, FD, COMMIT = "exam_lse", "exam_attention_weights", "exam_fd_grad", "commit_prediction"
GOOD = small.SOLUTIONS["lse"]
confined = pytest.mark.skipif(
    why_not_confined() is not None, reason=f"no isolation here: {why_not_confined()}"
)


@dataclass
class Case:
    """One submission and what becomes of it.

    Attributes
    ----------
    name : str
        What is odd about it.
    make : callable
        Returns the notebook, or its bytes.
    lost : dict
        What the graded cells score that do not give all their points.
    notices : tuple of str
        A pattern for each notice there must be.
    perhaps : str
        A pattern for notices that depend on how busy the machine is.
    reason : str
        Why it is not graded, "" if it is.
    isolated : bool
        True when the point is that the system is out of reach, which takes isolation.
    """

    name: str
    make: Callable[[], dict | bytes]
    lost: dict = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    perhaps: str = "$."
    reason: str = ""
    isolated: bool = False


CASES: list[Case] = []


def case(name, lost=(), notices=(), perhaps="$.", reason="", isolated=False):
    """Enter a submission, made by the decorated function, in the table."""
    if not isinstance(lost, dict):
        lost = dict.fromkeys(lost, 0.0)

    def enter(make):
        CASES.append(Case(name, make, lost, tuple(notices), perhaps, reason, isolated))
        return make

    return enter


def answers(name, lost=(), notices=(), perhaps="$.", isolated=False, **texts):
    """Enter a submission with other answers than a good one's."""
    case(name, lost, notices, perhaps, isolated=isolated)(lambda: small.solved(**texts))


def cells(name, *sources, after="exam_fd_grad", lost=(), notices=(), perhaps="$.", isolated=False):
    """Enter a good submission with cells of the student's own in it."""
    case(name, lost, notices, perhaps, isolated=isolated)(
        lambda: small.insert(small.solved(), after, *sources)
    )


def in_lse(body):
    """Return an answer to lse that does something else first, and then answers rightly."""
    lines = "\n".join("    " + line for line in body.splitlines())
    head, body = GOOD.split('"""\n', 1)
    return f'{head}"""\n{lines}\n{body.removeprefix(head)}'


# --- Structure ------------------------------------------------------------------------------------


@case("a copied check cell", notices=["A copy of the cell check_lse was left out"])
def _():
    notebook = small.solved()
    return small.insert(notebook, "exam_lse", small.copied(notebook, "check_lse"))


@case("a copied exam cell", notices=["A copy of the cell exam_lse was left out"])
def _():
    notebook = small.solved()
    return small.insert(notebook, "exam_lse", small.copied(notebook, "exam_lse"))


@case("a copy of the empty stub after the answer")
def _():
    notebook = small.solved()
    return small.insert(notebook, "lse", small.copied(small.release(), "lse"))


@case("an older attempt in a copy before", notices=["The cell lse was there 2 times"])
def _():
    notebook = small.solved()
    old = {**small.copied(notebook, "lse"), "source": "def lse(xi, Y, beta):\n    return 0.0"}
    return small.insert(notebook, "practice_lse", old)


@case("a worse copy at the end", notices=["The cell lse was there 2 times"])
def _():
    notebook = small.solved()
    bad = {**small.copied(notebook, "lse"), "source": "def lse(xi, Y, beta):\n    return 0.0"}
    return small.insert(notebook, "report", bad)


@case("an edited copy of a check", notices=["A copy of the cell check_lse was run as an ordinary"])
def _():
    notebook = small.solved()
    copy_ = {**small.copied(notebook, "check_lse"), "source": "print('mine')"}
    return small.insert(notebook, "check_lse", copy_)


@case("deleted check and exam", notices=["check_lse was missing", "exam_lse was missing"])
def _():
    notebook = small.solved()
    for name in ("check_lse", "exam_lse"):
        del notebook["cells"][small.place(notebook, name)]
    return notebook


@case("a deleted answer", [LSE], ["The cell lse was missing"])
def _():
    notebook = small.solved()
    del notebook["cells"][small.place(notebook, "lse")]
    return notebook


@case("an answer made a text cell", notices=["lse had been changed to text; it is code again"])
def _():
    notebook = small.solved()
    small.find(notebook, "lse")["cell_type"] = "markdown"
    return notebook


@case("an answer made raw text", notices=["lse had been changed to raw text"])
def _():
    notebook = small.solved()
    small.find(notebook, "lse")["cell_type"] = "raw"
    return notebook


@case("a check made a text cell", notices=["check_lse had been changed to text"])
def _():
    notebook = small.solved()
    small.find(notebook, "check_lse")["cell_type"] = "markdown"
    return notebook


@case("an answer split between functions", notices=["The cell lse was there 2 times"])
def _():
    notebook = small.solved()
    helper = {**small.copied(notebook, "lse"), "source": "def helper(u):\n    return u.max()"}
    small.insert(notebook, "practice_lse", helper)
    small.find(notebook, "lse")["source"] = GOOD.replace("u.max()", "helper(u)")
    return notebook


@case("an answer split within its function", notices=["lse had been split in two"])
def _():
    notebook = small.solved()
    head, tail = GOOD.split("    top", 1)
    small.find(notebook, "lse")["source"] = head
    rest = {**small.copied(notebook, "lse"), "source": "    top" + tail}
    return small.insert(notebook, "lse", rest)


@case("a split that kept no name", notices=["lse had been split in two"])
def _():
    notebook = small.solved()
    head, tail = GOOD.split("    top", 1)
    small.find(notebook, "lse")["source"] = head
    return small.insert(notebook, "lse", "    top" + tail)


@case("two answers in one cell", notices=["The cell attention_weights was missing"])
def _():
    notebook = small.solved()
    small.find(notebook, "lse")["source"] += "\n\n" + small.SOLUTIONS["attention_weights"]
    del notebook["cells"][small.place(notebook, "attention_weights")]
    return notebook


@case("cells in reverse order", notices=["Cells had been moved"])
def _():
    notebook = small.solved()
    notebook["cells"].reverse()
    return notebook


@case("an edited check", notices=["The cell check_lse had been edited; the original is back"])
def _():
    notebook = small.solved()
    small.find(notebook, "check_lse")["source"] = "pass"
    return notebook


@case("an exam that gives itself points", [LSE], ["The cell exam_lse had been edited"])
def _():
    notebook = small.solved(lse="def lse(xi, Y, beta):\n    return 0.0")
    small.find(notebook, "exam_lse")["source"] = "3.0"
    return notebook


@case("a thousand points", notices=["The marks of the cell exam_lse had been edited"])
def _():
    notebook = small.solved()
    small.find(notebook, "exam_lse")["metadata"]["nbgrader"]["points"] = 1000
    return notebook


@case("no grading, no lock", notices=["check_lse had been edited", "exam_lse had been edited"])
def _():
    notebook = small.solved()
    for name in ("check_lse", "exam_lse"):
        marks = small.find(notebook, name)["metadata"]["nbgrader"]
        marks |= {"grade": False, "locked": False, "solution": True}
    return notebook


@case("an answer under another name", notices=["The answer lse stood in a cell without its name"])
def _():
    notebook = small.solved()
    small.find(notebook, "lse")["metadata"]["nbgrader"]["grade_id"] = "lse2"
    del small.find(notebook, "lse")["id"]
    return notebook


@case("an invented exam", notices=["A cell named 'exam_bonus' is not of this lesson"])
def _():
    notebook = small.solved()
    bonus = small.copied(notebook, "exam_lse")
    bonus["metadata"]["nbgrader"] |= {"grade_id": "exam_bonus", "points": 100}
    return small.insert(notebook, "exam_lse", {**bonus, "source": "100.0"})


@case("all of nbgrader's data lost")
def _():
    notebook = small.solved()
    for cell in notebook["cells"]:
        cell["metadata"] = {}
    return notebook


@case(
    "names and ids lost",
    notices=[
        *(f"The answer {name} stood in" for name in ("prediction", *small.SOLUTIONS)),
        "The cell report was missing",
    ],
)
def _():
    notebook = small.solved()
    for cell in notebook["cells"]:
        cell["metadata"] = {}
        del cell["id"]
    return notebook


@case("nbgrader's data of the wrong types")
def _():
    notebook = small.solved()
    small.find(notebook, "lse")["metadata"] = "none"
    small.find(notebook, "check_lse")["metadata"] = {"nbgrader": ["grade"]}
    small.find(notebook, "exam_lse")["metadata"] = {"nbgrader": {"grade_id": 7}}
    return notebook


@case("format 3", notices=["older format"])
def _():
    notebook = small.solved()
    old = []
    for cell in notebook["cells"]:
        cell = {k: v for k, v in cell.items() if k != "id"}
        if cell["cell_type"] == "code":
            cell["input"] = cell.pop("source").splitlines(keepends=True)
        old.append(cell)
    return {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": old}]}


@case("a byte-order mark", notices=["byte-order mark"])
def _():
    return b"\xef\xbb\xbf" + small.as_bytes(small.solved())


@case("UTF-16", notices=["UTF-16"])
def _():
    return json.dumps(small.solved()).encode("utf-16")


@case("Latin-1", notices=["Latin-1"])
def _():
    text = json.dumps(small.solved(report="Très intéressant, déjà vu"), ensure_ascii=False)
    return text.encode("latin-1")


@case("one damaged letter", notices=["Some characters of the file were damaged"])
def _():
    text = json.dumps(small.solved(report="é" * 50), ensure_ascii=False).encode()
    return text.replace("é".encode(), b"\xc3", 1)


@case("lines as on Windows")
def _():
    notebook = small.solved()
    for cell in notebook["cells"]:
        cell["source"] = cell["source"].replace("\n", "\r\n")
    return small.as_bytes(notebook).replace(b"\n", b"\r\n")


@case("cut off", reason="stops in the middle")
def _():
    return small.as_bytes(small.solved())[:3000]


@case("left over from a merge", reason="merging two versions")
def _():
    return small.as_bytes(small.solved()).replace(b'\n "cells"', b'\n<<<<<<< HEAD\n "cells"')


@case("an empty file", reason="the file is empty")
def _():
    return b""


@case("another lesson", reason="not of this lesson")
def _():
    notebook = small.solved()
    notebook["cells"] = [{"cell_type": "code", "source": "x = 1", "metadata": {}}] * 3
    return notebook


@case("five thousand cells", notices=["Only the first 2000 of"])
def _():
    return small.insert(small.solved(), "report", *["one more"] * 5000, kind="markdown")


@case("a NUL and half a surrogate in an answer", [LSE])
def _():
    return small.solved(lse=GOOD + "\0", report="half \ud83d of a smiley")


@case("outputs that claim points", [LSE])
def _():
    notebook = small.solved(lse="def lse(xi, Y, beta):\n    return 0.0")
    small.find(notebook, "exam_lse")["outputs"] = [
        {
            "output_type": "execute_result",
            "data": {"text/plain": "3.0"},
            "metadata": {},
            "execution_count": 1,
        }
    ]
    return notebook


# --- Predictions ----------------------------------------------------------------------------------

answers("no prediction", [COMMIT], prediction='prediction = {"q1": "", "q2": ""}')
answers("a prediction of the wrong kind", [COMMIT], prediction='prediction = ["a", "b"]')
answers("no such variable", [COMMIT], prediction="pass")
answers(
    "a dictionary that says yes to everything",
    [COMMIT],
    prediction='class Yes(dict):\n    def get(self, *a):\n        return "a"\nprediction = Yes()',
)
answers(
    "a letter that is equal to everything",
    [COMMIT],
    prediction=(
        "class Any(str):\n    def __eq__(self, other):\n        return True\n"
        "    __hash__ = str.__hash__\n    def strip(self):\n        return 'a'\n"
        'prediction = {"q1": Any(""), "q2": Any("zz")}'
    ),
)
cells(
    "commit replaced",
    "def commit(*args, **kwargs):\n    return 100.0",
    "prediction = {}",
    after="prediction",
    lost=[COMMIT],
)


# --- Runaway code ---------------------------------------------------------------------------------

SLOW = "The cell (check_lse|show) .*(interrupted|left out)"
OWN = "of one's own after exam_fd_grad "
OVERDUE = OWN + "(ran for more than 1.2 s|did not end within 1.2 s)"
TOO_MUCH = OWN + "printed or showed too much"

answers(
    "an endless loop in a call",
    [LSE],
    perhaps=SLOW,
    lse="def lse(xi, Y, beta):\n    while True:\n        pass",
)
answers(
    "a loop that swallows every interruption",
    [LSE],
    ["check_lse did not end"],
    perhaps=SLOW,
    lse=(
        "def lse(xi, Y, beta):\n    import time\n    while True:\n        try:\n"
        "            while True:\n                time.sleep(0.01)\n"
        "        except BaseException:\n            pass"
    ),
)
answers("a call that sleeps", [LSE], perhaps=SLOW, lse="import time\n" + in_lse("time.sleep(60)"))
answers(
    "a call that hides from the clock",
    [LSE],
    ["check_lse did not end"],
    perhaps=SLOW,
    lse="import signal, time\n"
    + in_lse(
        "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))\nwhile True:\n    time.sleep(1)"
    ),
)
cells("an endless loop in a cell", "while True:\n    pass", notices=["ran for more than 1.2 s"])
cells(
    "a cell that ignores interruptions",
    "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\ntime.sleep(100)",
    notices=["could not be interrupted. It was left out"],
)
cells(
    "one call of C that takes for ever",
    "import re\nre.match(r'(a+)+$', 'a' * 40 + 'b')",
    notices=[OVERDUE],
)
cells("waiting for input", "input('name? ')")
cells(
    "waiting for a lock",
    "import threading\na = threading.Lock()\na.acquire()\na.acquire()",
    notices=[OVERDUE],
)
cells("an endless coroutine", "import asyncio\nawait asyncio.sleep(1000)", notices=[OVERDUE])
answers(
    "endless recursion",
    [LSE],
    perhaps=SLOW,
    lse="def lse(xi, Y, beta):\n    return lse(xi, Y, beta)",
)
answers(
    "recursion without a limit",
    [LSE],
    ["check_lse ended the Python process by a segmentation fault|check_lse did not end"],
    perhaps="show",
    lse=(
        "import sys\nsys.setrecursionlimit(10**8)\n"
        "def lse(xi, Y, beta):\n    return max([xi], key=lambda _: lse(xi, Y, beta))"
    ),
)
answers(
    "a list that grows",
    [LSE],
    perhaps=SLOW,
    lse=in_lse("a = []\nwhile True:\n    a.append(bytes(1 << 20))"),
)
answers("a huge array", [LSE], perhaps=SLOW, lse=in_lse("np.ones(10**11)"))
answers(
    "a huge answer", [LSE], perhaps=SLOW, lse="def lse(xi, Y, beta):\n    return np.ones(10**7)"
)
answers(
    "an answer without end",
    [LSE],
    lse=(
        "class Endless(list):\n    def __iter__(self):\n        while True:\n"
        "            yield 1.0\n"
        "def lse(xi, Y, beta):\n    return Endless()"
    ),
)
answers(
    "an answer that contains itself",
    [LSE],
    lse="def lse(xi, Y, beta):\n    a = []\n    a.append(a)\n    return a",
)
cells(
    "memory in many processes",
    "import os, time\nfor _ in range(6):\n    if os.fork() == 0:\n"
    "        hold = bytearray(b'x' * (400 << 20))\n        time.sleep(60)\n        os._exit(0)\n"
    "time.sleep(60)",
    notices=[OWN + "(used more memory than allowed|did not end|ran for)"],
)
cells(
    "shared memory that no limit counts",
    "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
    "found = libc.shmget(0, 1 << 30, 0o1600), libc.memfd_create(b'x', 0)\n"
    "os._exit(0) if found != (-1, -1) else None",
    isolated=True,
)
cells(
    "processes that make processes",
    "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass",
    notices=[OWN + "(ran for|did not end|broke off|ended)"],
)
cells(
    "threads without end",
    "import threading, time\ntry:\n    while True:\n"
    "        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    "except RuntimeError:\n    print('stopped')",
)
cells(
    "printing without end",
    "while True:\n    print('y' * 1000)",
    notices=[OVERDUE, TOO_MUCH],
)
cells(
    "printing past Python without end",
    "import os\nwhile True:\n    os.write(1, b'z' * 65536)",
    notices=[TOO_MUCH],
)
cells("one huge line", "print('x' * 10**8)", notices=[TOO_MUCH])
cells("a huge value", "'x' * 10**7", notices=[TOO_MUCH])
cells("too many displays", "for i in range(600):\n    display(i)", notices=[TOO_MUCH])
cells(
    "a file without end",
    "with open('big', 'wb') as f:\n    while True:\n        f.write(bytes(1 << 20))",
)
cells(
    "files without end",
    "for i in range(10**4):\n    open(f'file{i}', 'w').close()",
    perhaps=OVERDUE,
    isolated=True,
)
answers(
    "printing in a call",
    notices=["The cell show printed or showed too much"],
    lse=in_lse("print('y' * 10**6)"),
)
cells(
    "a child that outlives its parent",
    "import subprocess\np = subprocess.Popen(['sleep', '300'], start_new_session=True)",
    "import os\nif os.fork() == 0:\n    os.setsid()\n    if os.fork():\n        os._exit(0)\n"
    "    import time\n    time.sleep(300)\n    os._exit(0)",
)
cells("an exit handler that never ends", "import atexit, time\natexit.register(time.sleep, 1e9)")
cells(
    "an object that does not die",
    "class Immortal:\n    def __del__(self):\n        while True:\n            pass\n"
    "a = Immortal()\ndel a",
    notices=[OVERDUE],
)


# --- Exits ----------------------------------------------------------------------------------------

cells("sys.exit in a cell", "import sys\nsys.exit(1)")
cells("quit in a cell", "quit()")
cells("os._exit in a cell", "import os\nos._exit(0)", notices=["exit code 0"])
answers("sys.exit in a call", [LSE], lse=in_lse("raise SystemExit"))
answers("a keyboard interrupt in a call", [LSE], lse=in_lse("raise KeyboardInterrupt"))
answers("a generator's exit in a call", [LSE], lse=in_lse("raise GeneratorExit"))
answers(
    "os._exit in a call",
    [LSE],
    ["check_lse ended", "show ended"],
    lse="import os\n" + in_lse("os._exit(1)"),
)
answers(
    "os._exit where the answer is",
    [LSE],
    ["The cell lse ended the Python process .exit code 3."],
    lse=f"import os\nos._exit(3)\n{GOOD}",
)
answers(
    "a segmentation fault in a call",
    [LSE],
    ["check_lse ended the Python process by a segmentation fault", "show ended"],
    lse="import ctypes\n" + in_lse("ctypes.string_at(0)"),
)
answers(
    "dead at the second call",
    [LSE],
    ["check_lse ended"],
    perhaps="show",
    lse="import os\ncalls = []\n" + in_lse("calls.append(1)\nif len(calls) > 1:\n    os._exit(1)"),
)
cells("an abort", "import os\nos.abort()", notices=["by an abort"])
cells("a kill", "import os\nos.kill(os.getpid(), 9)", notices=["by a kill signal"])
cells("a stop", "import os\nos.kill(os.getpid(), 19)", notices=["could not be interrupted"])
cells(
    "killing the parents",
    "import os\nfor pid in (os.getppid(), 1, 2, 3):\n    for number in (9, 15, 19):\n"
    "        try:\n            if pid != os.getpid():\n                os.kill(pid, number)\n"
    "        except OSError:\n            pass\nprint('alive')",
    isolated=True,
)
cells("killing everybody", "import os\nos.kill(-1, 9)\nprint('alive')", isolated=True)
answers(
    "killing everybody in an exam",
    lse="import os\n" + in_lse("try:\n    os.kill(-1, 9)\nexcept OSError:\n    pass"),
    isolated=True,
)
cells("closing everything", "import os\nos.closerange(0, 4096)", notices=["broke off|ended"])
answers(
    "closing everything in a call",
    [LSE],
    ["check_lse|show"],
    lse="import os\n" + in_lse("os.closerange(3, 4096)"),
)
cells("becoming another program", "import os\nos.execv('/bin/true', ['true'])", notices=["code 0"])


# --- Cheating -------------------------------------------------------------------------------------

answers(
    "an object equal to everything",
    [LSE],
    lse=(
        "class Yes:\n    __eq__ = __le__ = __ge__ = lambda *a: True\n"
        "    __float__ = lambda self: 1.0\n    __array__ = lambda self, *a, **k: np.array(1.0)\n"
        "    __sub__ = __rsub__ = __abs__ = lambda *a: 0.0\n"
        "def lse(xi, Y, beta):\n    return Yes()"
    ),
)
answers(
    "a float equal to everything",
    [LSE],
    lse=(
        "class Yes(float):\n    __eq__ = lambda *a: True\n    __ne__ = lambda *a: False\n"
        "    __sub__ = __rsub__ = __abs__ = lambda *a: 0.0\n"
        "def lse(xi, Y, beta):\n    return Yes(7.0)"
    ),
)
answers(
    "an array equal to everything",
    [WEIGHTS],
    attention_weights=(
        "class Yes(np.ndarray):\n    def __eq__(self, other):\n        return True\n"
        "    def __array_function__(self, *a):\n        return True\n"
        "    def __array_ufunc__(self, *a, **k):\n        return 0.0\n"
        "def attention_weights(xi, Y, beta):\n    return np.ones(len(Y)).view(Yes)"
    ),
)
answers(
    "a generator",
    [WEIGHTS],
    attention_weights="def attention_weights(xi, Y, beta):\n    yield from np.ones(len(Y))",
)
answers(
    "a patched comparison",
    [LSE],
    lse=(
        "np.allclose = np.isclose = np.array_equal = lambda *a, **k: True\n"
        "np.testing.assert_allclose = lambda *a, **k: None\n"
        "def lse(xi, Y, beta):\n    return 0.0"
    ),
)
answers(
    "patched builtins",
    [LSE],
    lse=(
        "import builtins\nbuiltins.abs = lambda x: 0.0\nbuiltins.all = lambda x: True\n"
        "builtins.any = lambda x: False\n"
        "def lse(xi, Y, beta):\n    return 0.0"
    ),
)
answers(
    "a patched checker",
    [LSE],
    lse=(
        "import hopping.judge, hopping.checking, hopping.exam, hopping.verdict, sys, types\n"
        "hopping.judge.find_fault = lambda *a: None\n"
        "hopping.exam.examine = lambda f: 3.0\n"
        "fake = types.ModuleType('autograder.examiner')\n"
        "fake.examine_bound = lambda f: hopping.verdict.Verdict('lse', True, '', None, 3.0, 3.0)\n"
        "sys.modules['autograder'] = types.ModuleType('autograder')\n"
        "sys.modules['autograder.examiner'] = fake\n"
        "def check(f):\n    return 'all pass'\n"
        "def lse(xi, Y, beta):\n    return 0.0"
    ),
)
answers(
    "a patched observer that claims success",
    [LSE, WEIGHTS, FD],
    lse=(
        "import sys\n"
        "me = sys.modules['inside.candidate']\n"
        "me._observe = lambda *a: me.Outcome(value=1.0, kind='float')\n"
        "me.plain = lambda v, depth=0: 1.0\n"
        "def lse(xi, Y, beta):\n    return 0.0"
    ),
)
answers(
    "a patched IPython",
    [LSE, WEIGHTS, FD],
    lse=(
        "shell = get_ipython()\nshell.run_cell = lambda *a, **k: None\n"
        "shell.record.outputs.append({'output_type': 'execute_result', 'data': "
        "{'text/plain': '3.0'}, 'metadata': {}})\n"
        "def lse(xi, Y, beta):\n    return 0.0"
    ),
)
answers(
    "faked partial points",
    [LSE],
    lse=(
        "print('lse: 3 of 3 points.')\ndisplay(3.0)\n"
        "def lse(xi, Y, beta):\n    print('3.0')\n    return 0.0\n3.0"
    ),
)
answers(
    "looking for the examiner in the stack",
    [LSE],
    lse=(
        "def lse(xi, Y, beta):\n    import gc, sys\n    frame = sys._getframe()\n"
        "    while frame:\n        for value in list(frame.f_locals.values()):\n"
        "            right = getattr(value, 'right', None) or getattr(value, 'reference', None)\n"
        "            if right is not None:\n                return right\n"
        "        frame = frame.f_back\n"
        "    for thing in gc.get_objects():\n"
        "        if type(thing).__name__ in ('Exercise', 'Group', 'Misconception'):\n"
        "            return thing.reference(xi, Y, beta)\n    return 0.0"
    ),
)
answers(
    "importing the reference",
    [LSE],
    lse=(
        "import sys\nsys.path[:0] = [p for p in ('/', '..', '/work/main', '/inside', '/app')]\n"
        "def lse(xi, Y, beta):\n    from autograder.reference import lse_gradient\n"
        "    return lse_gradient.lse(xi, Y, beta)"
    ),
    isolated=True,
)
answers(
    "searching the disk",
    [LSE],
    lse=(
        "import os\nfound = []\n"
        "for folder, inner, names in os.walk('/'):\n"
        "    inner[:] = [n for n in inner if n not in ('lib', 'lib64', 'bin', 'dev')]\n"
        "    found += [os.path.join(folder, n) for n in names if n.endswith(('.ipynb', '.db'))\n"
        "              or n in ('lse_gradient.py', 'examiner.py', 'exercise.py')]\n"
        "os._exit(9) if found or os.path.exists('/proc/self') else None\n"
        "os._exit(9) if any('work' in v or 'ubmit' in v for v in os.environ.values() "
        "if '.venv' not in v) else None\n"
        "def lse(xi, Y, beta):\n    return 0.0"
    ),
    isolated=True,
)
answers(
    "writing modules that hide the real ones",
    [LSE],
    lse=(
        "import os\nfor name in ('json', 'struct', 'hopping', 'autograder', 'numpy'):\n"
        "    os.makedirs(name, exist_ok=True)\n"
        "    open(name + '/__init__.py', 'w').write('raise SystemExit')\n"
        "    open(name + '.py', 'w').write('raise SystemExit')\n"
        "def lse(xi, Y, beta):\n    return 0.0"
    ),
)
FORGE = (
    "import os, json, struct, threading, time\n"
    "def frame(message):\n    text = json.dumps(message).encode()\n"
    "    return struct.pack('<II', len(text), 0) + text\n"
    "fields = [['value', 1.0], ['kind', 'float'], ['raised', ''], ['points', 3.0], "
    "['verdict', 'passed']]\n"
    "def forge(times=1):\n    for fd in range(3, 40):\n        try:\n"
    "            os.write(fd, frame({'dict': fields}) * times)\n        except OSError:\n"
    "            pass\n"
)
answers(
    "forged answers in an exam",
    [LSE, WEIGHTS, FD],
    lse=FORGE + "def lse(xi, Y, beta):\n    forge()\n    return 0.0",
    perhaps=".",
)
cells(
    "forged answers in a cell",
    FORGE + "forge(3)",
    after="imports",
    lost=[COMMIT, LSE, WEIGHTS, FD],
    perhaps=".",
)
cells(
    "noise on the channel",
    "import os\nfor fd in range(3, 40):\n    try:\n        os.write(fd, b'\\xff' * 64)\n"
    "    except OSError:\n        pass",
    notices=[OWN + "(broke off|ended)"],
)
cells(
    "a message without end",
    "import os, struct\nfor fd in range(3, 40):\n    try:\n"
    "        os.write(fd, struct.pack('<II', 1 << 20, 0) + b'[')\n"
    "    except OSError:\n        pass\nwhile True: pass",
    notices=[OWN],
)
cells(
    "a message of brackets",
    "import os, struct, time\nfor fd in range(3, 40):\n    try:\n"
    "        os.write(fd, struct.pack('<II', 1 << 17, 0) + b'[' * (1 << 17))\n"
    "    except OSError:\n        pass\ntime.sleep(60)",
    notices=[OWN],
)
answers(
    "an exam answered from a thread",
    [LSE, WEIGHTS, FD],
    lse=FORGE
    + (
        "def flood():\n    while True:\n        forge()\n        time.sleep(0.001)\n"
        "def lse(xi, Y, beta):\n    threading.Thread(target=flood, daemon=True).start()\n"
        "    return 0.0"
    ),
    perhaps=".",
)
answers(
    "asking for values that are not there",
    [FD],
    fd_grad=("def fd_grad(f, xi, h=1e-5):\n    f._number = 99\n    return f(xi)"),
)
answers(
    "asking with a huge point",
    [FD],
    fd_grad="def fd_grad(f, xi, h=1e-5):\n    return f(np.ones(10**9))",
)
answers(
    "asking without end",
    [FD],
    perhaps="check_fd_grad",
    fd_grad="def fd_grad(f, xi, h=1e-5):\n    while True:\n        f(xi)",
)
answers(
    "the function itself as the answer",
    [FD],
    fd_grad="def fd_grad(f, xi, h=1e-5):\n    return f",
)
answers(
    "looking into the function",
    [FD],
    fd_grad=(
        "def fd_grad(f, xi, h=1e-5):\n    import gc, inspect\n    try:\n"
        "        return inspect.getsource(f)\n    except Exception:\n"
        "        return str([vars(f), gc.get_referents(f)])"
    ),
)
cells(
    "a namespace of one's own",
    "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
    "results = [libc.unshare(flag) for flag in (0x10000000, 0x20000, 0x20000000)]\n"
    "results += [libc.ptrace(16, 1, 0, 0), libc.mount(b'x', b'/tmp', b'tmpfs', 0, None)]\n"
    "assert results == [-1] * 5, results",
    isolated=True,
)
cells(
    "the network",
    "import socket\nfor family in (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK, 40):\n"
    "    try:\n        socket.socket(family, socket.SOCK_STREAM)\n    except OSError:\n"
    "        pass\n    else:\n        raise AssertionError(family)",
    isolated=True,
)
cells(
    "writing where others read",
    "import os\nfor place in ('/', '/usr', '/dev', '/inside', '/tmp/..', os.__file__,\n"
    "              np.__file__):\n    try:\n        path = os.path.join(place, 'x') "
    "if os.path.isdir(place) else place\n        open(path, 'a').close()\n"
    "    except OSError:\n        pass\n    else:\n        raise AssertionError(place)",
    isolated=True,
)


# --- Innocent -------------------------------------------------------------------------------------

answers(
    "warnings, prints and errors on the way",
    lse=in_lse(
        "import sys, warnings\nwarnings.warn('careful')\nprint('working')\n"
        "print('oh', file=sys.stderr)\nnp.log(np.zeros(1))"
    ),
)
answers(
    "NumPy made to raise, warnings made errors, a seed, printing options",
    lse=(
        "import warnings, random\nnp.seterr(all='raise')\nwarnings.simplefilter('error')\n"
        "np.random.seed(3)\nrandom.seed(1)\nnp.set_printoptions(precision=1)\n" + GOOD
    ),
)
cells("names used again afterwards", "np = 3\nlse = sum = list = [1]\ncheck = commit = None")
cells("names of Python used again", "list = [1]\nsum = 0\ntype = 'x'\nmax = 3", after="imports")
cells("an own helper", "def largest(u):\n    return u.max()", after="practice_lse")
cells("a wrong version after the exam", "def lse(xi, Y, beta):\n    return 0.0", after="exam_lse")
cells(
    "magics",
    "%time lse(np.ones(2), np.eye(2), 1.0)",
    "%%capture out\nprint('hidden')",
    "!echo hello",
    "files = !ls",
    "%matplotlib inline",
    "%whos",
    "%no_such_magic",
    "%%writefile helper.py\nx = 1",
    "import helper; helper.x",
)
cells("await", "import asyncio\nawait asyncio.sleep(0.01)\nprint('done')")
cells("a changed folder", "import os\nos.mkdir('sub')\nos.chdir('sub')", after="imports")
cells("everything wiped at the end", "%reset -f", after="exam_fd_grad")
cells("a replaced stdout", "import io, sys\nsys.stdout = io.StringIO()\nprint('lost')")
cells("figures left open", "import matplotlib.pyplot as plt\nfor i in range(3):\n    plt.figure()")
cells(
    "an error in a cell",
    "1 / 0",
    "def broken(:",
    "raise ValueError('mine')",
    after="imports",
)
answers(
    "a number from Python",
    lse=GOOD.replace("def lse", "def number")
    + "def lse(xi, Y, beta):\n    return float(number(xi, Y, beta))",
)
answers(
    "an array without dimensions",
    lse=GOOD.replace("def lse", "def number")
    + "def lse(xi, Y, beta):\n    return np.array(number(xi, Y, beta))",
)
answers("a lambda", lse="lse = lambda xi, Y, beta: np.logaddexp.reduce(beta * (Y @ xi)) / beta")
answers(
    "an object with a call",
    lse="class LSE:\n    def __call__(self, xi, Y, beta):\n"
    "        return np.logaddexp.reduce(beta * (Y @ xi)) / beta\nlse = LSE()",
)
answers(
    "threads in a call",
    lse="from concurrent.futures import ThreadPoolExecutor\n"
    + GOOD.replace("def lse", "def slow")
    + "\ndef lse(xi, Y, beta):\n    with ThreadPoolExecutor(2) as pool:\n"
    "        return pool.submit(slow, xi, Y, beta).result()",
)
answers(
    "counting its calls",
    lse="calls = 0\n" + in_lse("global calls\ncalls += 1"),
)
answers(
    "a stand-in called in many ways",
    fd_grad=(
        "def fd_grad(f, xi, h=1e-5):\n    f(xi.copy()), f(np.array(xi, dtype='f4'))\n"
        "    try:\n        f(object())\n    except TypeError:\n        pass\n"
        "    try:\n        f(np.ones(99))\n    except Exception:\n        pass\n"
        "    steps = h * np.eye(len(xi))\n"
        "    return np.array([(f(xi + e) - f(xi - e)) / (2 * h) for e in steps])"
    ),
)
answers("nothing done", [LSE, WEIGHTS, FD, COMMIT], **{
    name: small.find(small.release(), name)["source"]
    for name in (*small.SOLUTIONS, "prediction")
})  # fmt: skip


# --- A second round -------------------------------------------------------------------------------

cells(
    "changed in place after its exam", "lse.__code__ = (lambda *a: 0.0).__code__", after="exam_lse"
)
answers("an asynchronous function", [LSE], lse="async " + GOOD)
answers(
    "two processes that answer one exam",
    lse="import os\ncalls = []\n" + in_lse("calls.append(1)\nif len(calls) == 1:\n    os.fork()"),
)
cells(
    "code that rewrites all later code",
    "get_ipython().input_transformers_post.append(lambda lines: ['lse = attention_weights = 3'])",
    after="imports",
    lost=[LSE, WEIGHTS, FD, COMMIT],
)
cells(
    "a namespace that lies",
    "class Lie(dict):\n    def get(self, *a):\n        return lambda *a: 1.0\n"
    "shell = get_ipython()\nshell.user_ns = Lie(shell.user_ns)",
    after="imports",
    lost=[LSE, WEIGHTS, FD, COMMIT],
)
cells("no more files", "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))")
cells(
    "no more files before an exam",
    "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))",
    after="practice_fd_grad",
    perhaps="of one's own|check_fd_grad|fd_grad|show",
)
cells("the folder removed", "import os, shutil\nshutil.rmtree(os.getcwd(), ignore_errors=True)")
cells("a trace function that raises", "import sys\nsys.settrace(lambda *a: 1 / 0)")
cells("a debugger", "breakpoint()", "import pdb\npdb.set_trace()", "%debug", perhaps=OVERDUE)
cells("a clock of one's own", "import signal\nsignal.signal(14, lambda *a: 1 / 0)\nsignal.alarm(1)")
cells("a long command", "!sleep 50", notices=[OVERDUE])
cells(
    "commands that kill and flood",
    "!kill -9 $PPID",
    notices=[OWN + "ended the Python process by a kill"],
)
cells("a command without end", "import subprocess\nsubprocess.run(['yes']);", perhaps=".")
cells(
    "representations that hang, lie and are huge",
    "class A:\n    def __repr__(self):\n        return 3\n"
    "    def _repr_html_(self):\n        return b'x'\nA()",
    "class B:\n    def _repr_mimebundle_(self, **k):\n"
    "        return {('a', 1): 2, 3: object(), 'text/plain': 'b', 'x/json': {1: {2}}}\nB()",
    "class C:\n    def _repr_json_(self):\n        a = []\n        a.append(a)\n"
    "        return a\nC()",
    "display({'text/plain': 3, 'image/png': b'x'}, raw=True)",
    "class D:\n    def __repr__(self):\n        return '\\ud800'\nD()",
)
cells(
    "outputs that no file can hold",
    "r = get_ipython().record\nr.outputs += [{'output_type': 'display_data', 'data': "
    "{'application/json': np.ones(3), 'text/plain': 1j, 'a/json': (1, [np.ones(1)])}, "
    "'metadata': {'a': np.ones(2)}}, {'output_type': 'stream', 'name': 'other', 'text': ['x']}, "
    "{'output_type': 'error', 'traceback': [1, None]}]",
    "get_ipython().record.outputs.append(3)",
    notices=["could not be run or shown as usual"],
)
cells("stdout closed", "import sys\nsys.stdout.close()\nsys.stderr.close()\nprint('x')")
cells(
    "programs that change the user",
    "import subprocess\nfor program in ('su', 'mount', 'passwd', 'newgrp'):\n"
    "    try:\n        done = subprocess.run([program], capture_output=True, timeout=1,\n"
    "                              stdin=subprocess.DEVNULL)\n"
    "    except (OSError, subprocess.TimeoutExpired):\n        pass\n"
    "import os\nos._exit(9) if os.getuid() == 0 else None",
    isolated=True,
    perhaps=OVERDUE,
)
cells(
    "a file from /dev/zero",
    "np.fromfile('/dev/zero')",
    "open('/dev/full', 'w').write('x')",
    perhaps=OVERDUE,
)
cells("a file with a hole", "with open('hole', 'wb') as f:\n    f.truncate(1 << 45)")
answers(
    "a prediction as deep as a well",
    [COMMIT],
    prediction=(
        "prediction = {'q1': 'a'}\nfor i in range(10**5):\n    prediction = {'q1': prediction}"
    ),
)
answers(
    "a prediction that contains itself and is huge",
    [COMMIT],
    perhaps="commit_prediction",
    prediction="prediction = {'q1': 'a' * 10**8}\nprediction['q2'] = prediction",
)
answers(
    "a mapping as prediction",
    [COMMIT],
    prediction=("from collections import UserDict\nprediction = UserDict(q1='a', q2='b')"),
)
answers(
    "an answer that depends on who calls",
    [LSE],
    lse=in_lse(
        "import sys\nif 'checking' not in str(sys._getframe(2).f_code.co_filename):\n    return 0.0"
    ),
)
answers(
    "inputs kept and changed later",
    lse="kept = []\n" + in_lse("for old in kept:\n    old *= 0\nkept.append(Y.copy())"),
)
answers("inputs changed", [LSE], lse=in_lse("xi *= 2.0\nxi /= 2.0\nY += 1e-3"))
answers(
    "an exam copy that hunts the other copies",
    lse="import os\n"
    + in_lse(
        "for pid in range(2, 400):\n    if pid not in (os.getpid(), os.getppid()):\n"
        "        try:\n            os.kill(pid, 9)\n        except OSError:\n            pass"
    ),
    isolated=True,
)
cells(
    "an extension and a script", "%load_ext autoreload\n%autoreload 2", "%%bash\necho hi", "%run x"
)
cells("%%javascript and %%html", "%%javascript\nalert(1)", "%%html\n<script>1</script>")


@case("an answer of two megabytes", [LSE], ["more than 1 MB of code"])
def _():
    return small.solved(lse=GOOD + "# " + "x" * (2 << 20))


@case("deeply nested code", perhaps=OWN)
def _():
    return small.insert(small.solved(), "exam_fd_grad", "(" * 10**5, "x = " + "-" * 10**5 + "1")


@case("a field that never ends", reason="not a notebook")
def _():
    return b'{"cells": [' + b'{"metadata": ' * 10**5


@case("lists of lists", reason="not a notebook|none of the lesson|empty")
def _():
    return b'{"cells": [' + b"[]," * 10**6 + b"[]]}"


# --- A third round, by somebody who had not seen the first two ------------------------------------

CHANNEL = (
    "import json, os, struct, sys\n"
    "def channel():\n    frame = sys._getframe()\n"
    "    while type(frame.f_locals.get('self')).__name__ != 'Candidate':\n"
    "        frame = frame.f_back\n"
    "    return frame.f_locals['self'].channel.sock\n"
    "sock = channel()\n"
    "def send(text):\n    sock.sendall(struct.pack('<II', len(text), 0) + text)\n"
)
answers(
    "a point that is no array",
    [FD],
    fd_grad="def fd_grad(f, xi, h=1e-5):\n    return f([xi, h])",
)
answers(
    "a point of a million numbers",
    [FD],
    perhaps="check_fd_grad",
    fd_grad="def fd_grad(f, xi, h=1e-5):\n    return f(np.ones((2, 500_000), dtype='f4'))",
)
cells(
    "one display in many places, and made large",
    "for i in range(300):\n    display(i, display_id='a')",
    "from IPython.display import update_display\nupdate_display('x' * 60_000, display_id='a')",
    notices=[TOO_MUCH],
)
cells(
    "a short text that stands for gigabytes",
    CHANNEL
    + "send(json.dumps({'strings': ['a' * 20_000] + [''] * 20_000, 'shape': [-1]}).encode())",
    notices=[OWN + "(broke off|ended)"],
)
cells(
    "a short text that stands for millions of objects",
    CHANNEL + "send(b'[' + b'[],' * 10**6 + b'0]')",
    notices=[OWN + "(broke off|ended|did not end)"],
)
cells(
    "another file in the channel's place",
    CHANNEL + "os.dup2(1, sock.fileno())",
    notices=[OWN + "(broke off|ended)"],
)
cells(
    "half of the notebook in a large array",
    "big = np.ones(40_000_000)",
    after="imports",
)
answers(
    "an exam that stops all others",
    [LSE],
    perhaps=SLOW,
    lse="import os, signal, sys\n"
    + in_lse(
        "if 'checking' not in str(sys._getframe(2).f_code.co_filename):\n"
        "    os.kill(-1, signal.SIGSTOP)\n    signal.pause()"
    ),
    isolated=True,
)
answers(
    "an exam that fills the scratch folder",
    perhaps=SLOW,
    lse=in_lse(
        "try:\n    for i in range(10):\n        open(f'f{i}', 'wb').write(bytes(1 << 20))\n"
        "except OSError:\n    pass"
    ),
)
answers(
    "hidden inputs left for another exam",
    [WEIGHTS],
    lse=in_lse("open('seen', 'a').write(repr(xi))"),
    attention_weights=(
        "def attention_weights(xi, Y, beta):\n    import os\n"
        "    raise ValueError(open('seen').read())"
    ),
)
answers(
    "arrays of records, dates and objects",
    [LSE, WEIGHTS, FD],
    lse="def lse(xi, Y, beta):\n    return np.array(1.0, dtype=object)",
    attention_weights=(
        "def attention_weights(xi, Y, beta):\n    return np.zeros(len(Y), dtype=[('a', 'f8')])"
    ),
    fd_grad="def fd_grad(f, xi, h=1e-5):\n    return np.zeros(len(xi), dtype='M8[s]')",
)
answers(
    "a type and an error that do not say what they are",
    [LSE, WEIGHTS],
    lse=(
        "class M(type):\n    __name__ = property(lambda self: 1 / 0)\n"
        "class A(metaclass=M):\n    pass\n"
        "def lse(xi, Y, beta):\n    return A()"
    ),
    attention_weights=(
        "def attention_weights(xi, Y, beta):\n"
        "    raise type('E' * 5000, (Exception,), {'__str__': lambda self: 3})"
    ),
)
answers(
    "an error with the name of an outcome",
    [LSE],
    lse="class ProcessEnded(Exception):\n    pass\n" + in_lse("raise ProcessEnded"),
)
cells(
    "outputs that JSON does not know",
    "display({'application/json': [float('nan'), float('-inf')]}, raw=True, "
    "metadata={'x': float('inf')})",
)
cells("no stdout", "import sys\nsys.stdout = sys.stderr = None", after="imports")
cells(
    "the files behind stdout closed",
    "import os, stat\nfor fd in range(3, 256):\n    try:\n"
    "        os.close(fd) if stat.S_ISREG(os.fstat(fd).st_mode) else None\n"
    "    except OSError:\n        pass",
    notices=["could not be run or shown as usual"],
)
cells("exit in a cell", "exit()", "exit", "print('on')", after="imports")
cells(
    "an error that cannot say what it is",
    "class E(Exception):\n    def __str__(self):\n        raise ValueError\nraise E",
)
cells(
    "a hook that leaves",
    "def leave(*a):\n    raise SystemExit\nget_ipython().events.register('post_run_cell', leave)",
    notices=[OWN + "ended the Python process"],
)
cells(
    "no forks",
    "import sys\ndef hook(event, _):\n    if event == 'os.fork':\n        raise RuntimeError\n"
    "sys.addaudithook(hook)",
    after="practice_fd_grad",
)
cells("a fork of which both go on", "import os\nos.fork()\nprint('here')", after="imports")
cells(
    "a thread that goes on in the background",
    "import threading, time\ndef work():\n    while True:\n        np.ones(9).sum()\n"
    "        time.sleep(0.001)\n"
    "for _ in range(3):\n    threading.Thread(target=work, daemon=True).start()",
    after="imports",
)
cells("IPython's own names deleted", "del In, Out, get_ipython, exit, quit", after="imports")
cells("a return and a yield outside", "return 3", "yield 3", "await = 3", after="imports")
answers(
    "tabs, Greek and a cached helper",
    lse=(
        "import functools\n@functools.lru_cache\ndef identity(β):\n\treturn β\n\n"
        "def lse(ξ, Υ, β):\n\tu = identity(β) * (Υ @ ξ)\n"
        "\treturn np.logaddexp.reduce(u) / β"
    ),
)
answers(
    "a partial function",
    lse="import functools\n"
    + GOOD.replace("def lse(xi,", "def general(scale, xi,")
    + "\nlse = functools.partial(general, 1.0)",
)


@case("lines as on an old Mac")
def _():
    return small.solved(lse=GOOD.replace("\n", "\r"))


@case("headings of every depth", notices=["older format"])
def _():
    levels = (1, 1.0, True, [1], 10**9, -1, None, "2", float("nan"))
    cells = [{"cell_type": "heading", "level": level, "source": "x"} for level in levels]
    cells += small.solved()["cells"]
    return {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": cells}]}


@case("a text that speaks of a merge")
def _():
    text = json.dumps(small.solved(report="see\u2028<<<<<<< HEAD"), ensure_ascii=False)
    return text.encode()


@case("a million short lines", perhaps=".")
def _():
    return small.insert(small.solved(), "report", "a\n" * 1_000_000, kind="markdown")


# --- A fourth round: what is left running, what cannot be copied, what is nearly a notebook -------

SLOWLY = "import time\ntime.sleep(0.6)\n" + small.SOLUTIONS["attention_weights"]
answers(
    "a child that kills the process in a later cell",
    lse="import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(0.4)\n"
    f"    os.kill(-1, 9)\n    os._exit(0)\n{GOOD}",
    attention_weights=SLOWLY,
    perhaps="attention_weights|fd_grad|show",
    isolated=True,
)
answers(
    "a child that stops the process in a later cell",
    lse="import os, time\nif os.fork() == 0:\n    time.sleep(0.4)\n"
    f"    os.kill(os.getppid(), 19)\n    os._exit(0)\n{GOOD}",
    attention_weights=SLOWLY,
    isolated=True,
)
answers(
    "a thread that ends the process in a later cell",
    [LSE],
    ["The cell lse left something running that ended the Python process .exit code 3."],
    lse=f"import os, threading\nthreading.Timer(0.4, os._exit, [3]).start()\n{GOOD}",
    attention_weights=SLOWLY,
    isolated=True,
)
answers(
    "a thread that ends the process in a later cell, after a process that does nothing",
    [WEIGHTS],
    ["The cell attention_weights left something running that ended the Python process"],
    lse="import os, time\nif os.fork() == 0:\n    if os.fork() == 0:\n        time.sleep(60)\n"
    f"    os._exit(0)\nos.wait()\n{GOOD}",
    attention_weights="import os, threading\nthreading.Timer(0.4, os._exit, [3]).start()\n"
    + small.SOLUTIONS["attention_weights"],
    fd_grad="import time\ntime.sleep(0.6)\n" + small.SOLUTIONS["fd_grad"],
    isolated=True,
)
answers(
    "clocks that go off in a later cell",
    lse="import resource, signal, time\nsignal.setitimer(signal.ITIMER_PROF, 0.3)\n"
    "signal.setitimer(signal.ITIMER_REAL, 0.3)\n"
    "most = resource.getrlimit(resource.RLIMIT_CPU)[1]\n"
    f"resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + 1, most))\n{GOOD}",
    attention_weights="import time\nstart = time.process_time()\n"
    "while time.process_time() - start < 0.5:\n    pass\n" + small.SOLUTIONS["attention_weights"],
    perhaps="attention_weights",
)
NOT_IN_CHECK = "import traceback\nif not any('checking' in f.filename for f in {}):\n".format(
    "traceback.extract_stack()"
)
answers(
    "an exam that takes all processes",
    lse="import os, time\n"
    + in_lse(
        NOT_IN_CHECK + "    try:\n        for _ in range(40):\n            if os.fork() == 0:\n"
        "                time.sleep(60)\n                os._exit(0)\n"
        "    except OSError:\n        pass"
    ),
    attention_weights="from concurrent.futures import ThreadPoolExecutor\n"
    + small.SOLUTIONS["attention_weights"].replace(
        "    u =",
        "    with ThreadPoolExecutor(1) as pool:\n        pool.submit(int).result()\n    u =",
    ),
    perhaps=SLOW,
    isolated=True,
)
answers(
    "an exam that takes the others' memory and rank",
    lse="import os, resource\n"
    + in_lse(
        NOT_IN_CHECK + "    for pid in range(2, 60):\n        if pid != os.getpid():\n"
        "            try:\n                os.setpriority(os.PRIO_PROCESS, pid, 19)\n"
        "                resource.prlimit(pid, resource.RLIMIT_AS, (1, 1))\n"
        "            except OSError:\n                pass"
    ),
    isolated=True,
)
answers(
    "no more processes",
    lse=f"{GOOD}\nimport resource\nresource.setrlimit(resource.RLIMIT_NPROC, (0, 0))",
    perhaps="show",
)
answers("a fork that leaves at once", lse=f"import os\n{GOOD}\nos.register_at_fork("
    "after_in_child=lambda: os._exit(3))")  # fmt: skip
cells(
    "another processor",
    "import os\ntry:\n    os.sched_setaffinity(0, {0})\nexcept PermissionError:\n    pass\n"
    "else:\n    os._exit(9)",
    isolated=True,
)
answers(
    "threads that wait for a call",
    lse="from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(2)\n"
    + GOOD.replace("def lse", "def slow")
    + "\ndef lse(xi, Y, beta):\n    return pool.submit(slow, xi, Y, beta).result()",
)
answers(
    "processes that wait for a call",
    lse="import multiprocessing\n"
    + GOOD.replace("def lse", "def slow")
    + "\npool = multiprocessing.Pool(2)\n"
    "def lse(xi, Y, beta):\n    return pool.apply(slow, (xi, Y, beta))",
    perhaps=SLOW,
)
answers(
    "an event loop in a thread",
    lse="import asyncio, threading\nloop = asyncio.new_event_loop()\n"
    "threading.Thread(target=loop.run_forever, daemon=True).start()\n"
    + GOOD.replace("def lse", "async def slow")
    + "\ndef lse(xi, Y, beta):\n"
    "    return asyncio.run_coroutine_threadsafe(slow(xi, Y, beta), loop).result()",
)
answers(
    "a package that is not there",
    [LSE],
    ["The answer lse stopped at a package that is missing here .No module named 'pandas_2'"],
    lse=f"import pandas_2 as pd\n{GOOD}",
)
answers(
    "an answer of very many parts",
    [LSE],
    perhaps=SLOW + "|show printed",
    lse="def lse(xi, Y, beta):\n    return [0.0] * 400_000",
)
cells(
    "a display of many levels and one of many parts",
    "from IPython.display import JSON\ndata = {}\nfor _ in range(60):\n    data = {'a': data}\n"
    "JSON(data)",
    "JSON({'x': [0] * 320_000})",
    notices=["could not be run or shown as usual|" + TOO_MUCH],
)
answers(
    "poison of every kind for what comes next",
    lse="import codecs, decimal, gc, matplotlib, signal, sys\n"
    "np.seterrcall(lambda *a: 1 / 0)\nnp.seterr(all='call')\n"
    "sys.setprofile(lambda *a: None)\nsys.excepthook = sys.unraisablehook = None\n"
    "gc.callbacks.append(lambda *a: 1 / 0)\ndecimal.getcontext().prec = 1\n"
    "class Finder:\n    def find_spec(self, *a):\n        raise ImportError\n"
    "sys.meta_path.insert(0, Finder())\ncodecs.register_error('strict', lambda e: ('x', e.end))\n"
    "matplotlib.rcParams['figure.dpi'] = 5000\n"
    f"signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\n{GOOD}",
    perhaps=SLOW,
)
answers(
    "a memory that lies about zero",
    lse=f"import ctypes\nctypes.c_double.from_address(id(0.0) + 16).value = 1.0\n{GOOD}",
)
answers(
    "arrays that are larger than they are",
    [WEIGHTS],
    attention_weights="def attention_weights(xi, Y, beta):\n"
    "    return np.broadcast_to(1.0, (10**10,)) if len(Y) > 2 else np.zeros((0, 10**18))",
)


@case("seventeen megabytes of code in a text cell", [LSE], ["more than 1 MB of code", "to text"])
def _():
    notebook = small.solved(lse=GOOD + "#" + "x" * (17 << 20))
    small.find(notebook, "lse")["cell_type"] = "markdown"
    return notebook


@case("two halves that are a million smileys each", [LSE], ["more than 1 MB of code", "in two"])
def _():
    notebook = small.solved(lse=GOOD + "#" + "\U0001f600" * (1 << 19))
    second = {
        **small.copied(notebook, "lse"),
        "source": "    #" + "\U0001f600" * (1 << 19) + "\n    0",
    }
    return small.insert(notebook, "lse", second)


@case("zeros after the end")
def _():
    return small.as_bytes(small.solved()) + bytes(4096)


@case("a format that moves the cursor", notices=[r"of format 4\?\[2J\?graded; it was read as 4"])
def _():
    return {**small.solved(), "nbformat": "4\x1b[2J\ngraded"}


@case("numbers that no number holds", notices=["it says it is of format inf|of format inf"])
def _():
    text = small.as_bytes(small.solved()).replace(b'"nbformat": 4', b'"nbformat": ' + b"9" * 5000)
    return text.replace(b'"nbformat_minor": 5', b'"nbformat_minor": 1e999')


@case("every cell with one name", perhaps=".")
def _():
    notebook = small.solved()
    for cell in notebook["cells"]:
        cell["metadata"] = {"nbgrader": {"grade_id": "lse"}}
    return notebook


@case("keys that stand there twice")
def _():
    return b'{"cells": [], ' + small.as_bytes(small.solved()).lstrip()[1:]


@case("attachments with strange names")
def _():
    notebook = small.solved(report="![a](attachment:../../x.png)")
    small.find(notebook, "report")["attachments"] = {
        "../../x.png": {"image/png": "AAAA"},
        "\ud800": {"text/html\n<script>": "<script>alert(1)</script>"},
        "a": {"x": 3},
    }
    return notebook


# --- The tests ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sandbox():
    patch = pytest.MonkeyPatch()
    patch.setattr("autograder.sandbox.GRACE_SECONDS", 0.7)
    with Sandbox(LIMITS) as sandbox:
        sandbox.warm_up()
        yield sandbox
    patch.undo()


def essence(graded):
    """Return everything of a result but the time it took."""
    return graded.scores, graded.verdicts, graded.notices, nbformat.writes(graded.notebook)


def points(graded):
    return {name: graded.scores[name] for name in small.POINTS}


def grade(submission, sandbox):
    data = submission if isinstance(submission, bytes) else small.as_bytes(submission)
    return grade_submission(data, copy.deepcopy(SOURCE), sandbox)


@pytest.fixture(scope="module")
def neighbour(sandbox):
    graded = grade(small.solved(), sandbox)
    assert points(graded) == small.POINTS
    assert graded.notices == ()
    return essence(graded)


@pytest.fixture(scope="module")
def patient():
    """Return a sandbox that gives an innocent submission the time it needs on any machine."""
    generous = replace(
        LIMITS, call_seconds=10.0, exam_seconds=60.0, cell_seconds=30.0, notebook_seconds=120.0
    )
    with Sandbox(generous) as sandbox:
        yield sandbox


@pytest.mark.parametrize("odd", CASES, ids=[c.name.replace(" ", "-") for c in CASES])
def test_a_submission_gets_what_it_earns_and_its_neighbour_is_untouched(
    odd, sandbox, patient, neighbour
):
    if odd.isolated and why_not_confined():
        pytest.skip(why_not_confined())
    started = time.monotonic()
    if odd.reason:
        with pytest.raises(NotGradable, match=odd.reason):
            grade(odd.make(), sandbox)
    else:
        expected = {**small.POINTS, **odd.lost}
        graded = grade(odd.make(), sandbox)
        if points(graded) != expected:  # on a busy machine an innocent call may be too late, too
            graded = grade(odd.make(), patient)
        print(graded.notices)
        assert points(graded) == expected
        for pattern in odd.notices:
            assert any(re.search(pattern, notice) for notice in graded.notices), pattern
        for notice in graded.notices:
            assert any(re.search(p, notice) for p in (*odd.notices, odd.perhaps)), notice
        nbformat.validate(graded.notebook)
        written = nbformat.writes(graded.notebook)
        json.loads(written.encode(), parse_constant=pytest.fail)  # NaN is no JSON
        assert len(written) < SIZE_LIMIT
    assert time.monotonic() - started < LIMITS.notebook_seconds + 20
    if essence(grade(small.solved(), sandbox)) != neighbour:  # too late, or what was left behind?
        assert essence(grade(small.solved(), sandbox)) == neighbour


def test_the_table_is_long_enough():
    print(len(CASES), "submissions")
    assert len(CASES) >= 60


@pytest.mark.parametrize(
    "code",
    [
        # Python's default for memory without a file is shared memory.
        "import mmap, os, time\nfor _ in range(5):\n    if os.fork() == 0:\n"
        "        m = mmap.mmap(-1, 300 << 20)\n        m.write(bytes(300 << 20))\n"
        "        time.sleep(60)\n        os._exit(0)\ntime.sleep(60)",
        CHANNEL + "import time\nfor _ in range(5):\n    if os.fork() == 0:\n"
        "        hold = bytearray(b'x' * (300 << 20))\n        time.sleep(60)\n"
        "        os._exit(0)\n"
        "sock.sendall(struct.pack('<II', 10**6, 0))\nwhile True:\n"
        "    sock.send(b' ')\n    time.sleep(0.05)",
    ],
    ids=["shared", "while-talking"],
)
def test_no_memory_escapes_the_limit(code, sandbox):
    with sandbox.candidate() as candidate, pytest.raises(Ended, match="more memory than allowed"):
        candidate.run_cell(code, 30)


def test_memory_that_copies_share_is_counted_once(sandbox):
    with sandbox.candidate() as candidate:
        candidate.run_cell("big = b'x' * (300 << 20)", 20)
        kept = [candidate.keep() for _ in range(4)]
        answer = candidate.run_cell("import time\ntime.sleep(0.5)\nprint('on')", 20)
        assert answer["outputs"][0]["text"] == "on\n"
        for each in kept:
            each.hang_up()


def test_a_long_recursion_is_shown_at_once_and_in_part(sandbox):
    with sandbox.candidate() as candidate:
        code = (
            "def f(n):\n    return n * f(n - 1)\ntry:\n    f(3)\nexcept RecursionError:\n    f(3)"
        )
        started = time.monotonic()
        (error,) = candidate.run_cell(code, 60)["outputs"]
        assert error["ename"] == "RecursionError"
        assert len(error["traceback"]) < 300
        assert time.monotonic() - started < 15  # all of it takes half a minute and more


def test_pip_does_not_wait_for_a_network(sandbox):
    with sandbox.candidate() as candidate:
        answer = candidate.run_cell("%pip install no-such-package", 60)
        assert "No matching distribution" in str(answer["outputs"])
        assert "Retrying" not in str(answer["outputs"])


# --- In a class -----------------------------------------------------------------------------------


def test_links_names_stamps_and_pages_cost_only_their_own(tmp_path, warm_worker, monkeypatch):
    course = make_course(tmp_path / "course")

    def folder(student):
        path = course.submitted / student / LESSON
        path.mkdir(parents=True)
        return path

    def shows(student, source, **texts):
        nb = answered(course, **texts)
        nb.cells.append(nbformat.v4.new_code_cell(source))
        hand_in(course, student, nb)

    expected = dict.fromkeys(("ana", "zoe"), GRADED)
    for student in expected:
        hand_in(course, student, answered(course))
    os.symlink(NOTEBOOK, folder("circle") / NOTEBOOK)
    os.symlink("b", folder("circles") / "a")
    os.symlink("a", course.submitted / "circles" / LESSON / "b")
    (course.submitted / "itself").mkdir()
    os.symlink(LESSON, course.submitted / "itself" / LESSON)
    os.symlink("/dev/zero", folder("endless") / NOTEBOOK)
    os.mkfifo(folder("pipe") / NOTEBOOK)
    (folder("folder") / NOTEBOOK).mkdir()
    expected |= dict.fromkeys(("circle", "itself", "endless"), NOT_GRADED)
    expected |= dict.fromkeys(("circles", "pipe", "folder"), MISSING)
    hand_in(course, "lines", answered(course), "x\n12:00:00 eve: graded\x1b[2J.ipynb")
    with open(os.fsencode(folder("bytes")) + b"/x\xff.ipynb", "w") as file:
        json.dump(answered(course), file)
    stamp = "99:99" + "1" * 85 + "Z12h"  # not only a ValueError
    (hand_in(course, "stamp", answered(course)).parent / "timestamp.txt").write_text(stamp)
    expected |= dict.fromkeys(("lines", "bytes", "stamp"), NOTICES)
    shows("colours", "print('\\x1b[38;5m in colours')")
    shows("deep", "from IPython.display import HTML\nHTML('<div>' * 30_000 + 'at the bottom')")
    shows("bold", "pass", report="".join(f"<b class={i}>" for i in range(3000)) + "<p>" * 3000)
    shows("formula", "pass", report="\\begin{a}" * 20_000)
    expected |= dict.fromkeys(("colours", "deep", "bold", "formula"), GRADED)

    found = {r.student: r for r in grade_class(course, executor=warm_worker)}
    assert {student: r.outcome for student, r in found.items()} == expected
    assert {r.points for r in found.values() if r.graded} == {8}
    for line in (course.class_folder / "grade.log").read_text("utf-8").split("\n"):
        assert line.isprintable()
        assert not line.startswith("12:00:00 eve")

    monkeypatch.setattr(feedback, "PAGE_SECONDS", 1.0)
    pages = {}
    for student, result in found.items():
        started = time.monotonic()
        for path in feedback.write_feedback(course, [result]):
            pages[student] = path.read_text("utf-8", "replace")
        assert time.monotonic() - started < 10, student
    assert set(pages) == {s for s, outcome in expected.items() if outcome != MISSING}
    assert " in colours" in pages["colours"]
    assert "<pre>&lt;b class=0&gt;" in pages["bold"]
    assert "8 of 18 points" in pages["formula"]


def test_names_are_no_formulas_and_move_no_cursor(course, warm_worker):
    names = ("=1+2", "@sum", "an\x1b[2Ja", "b\n12:00:00 eve 01_lse_gradient: graded", "c\u202ed")
    for name in names:
        hand_in(course, name, "")
    (course.submitted / "ana" / "les\x1b[31mson").mkdir(parents=True)
    (course.submitted / "ana" / "les\x1b[31mson" / "x.ipynb").write_text("{}")
    hand_in(course, "zoe", answered(course))
    results = grade_class(course, executor=warm_worker)
    assert {r.outcome for r in results} == {GRADED, NOT_GRADED, MISSING}
    for text in (table(results), (course.class_folder / "grade.log").read_text("utf-8")):
        for line in text.split("\n"):
            assert line.isprintable()
            assert not line.startswith("12:00:00 eve")
    rows = list(csv.DictReader(io.StringIO(csv_text(results))))
    assert {"'=1+2", "'@sum"} < {row["student"] for row in rows}


def test_a_gradebook_that_lost_rows_gets_them_again(course, warm_worker):
    hand_in(course, "ana", answered(course))
    grade_class(course, executor=warm_worker)
    with contextlib.closing(sqlite3.connect(course.class_folder / "gradebook.db")) as database:
        database.executescript("DELETE FROM grade; DELETE FROM comment;")
    (again,) = grade_class(course, executor=warm_worker)
    assert (again.outcome, again.points) == (GRADED, 8)


def test_no_time_is_billed_for_the_start_of_the_sandbox():
    limits = replace(LIMITS, cell_seconds=10.0, call_seconds=5.0, notebook_seconds=12.0)
    patch = pytest.MonkeyPatch()
    with Sandbox(limits) as sandbox, patch.context() as during:
        start = sandbox._running
        during.setattr(sandbox, "_running", lambda: time.sleep(13) or start())
        assert points(grade(small.solved(), sandbox)) == small.POINTS


@confined
def test_two_sandboxes_share_no_limit(sandbox):
    """Not even those of one process: processes are counted by user, terminals by system."""
    take_all = (
        "import os, time\ntry:\n    while os.fork():\n        pass\n    held = []\n"
        "    while True:\n        held.append(os.open('/dev/ptmx', os.O_RDWR))\n"
        "except OSError:\n    pass\nif os.getpid() != 2:\n    time.sleep(60)\n    os._exit(0)"
    )
    with Sandbox() as other, other.candidate() as neighbour, sandbox.candidate() as greedy:
        before = Path("/proc/sys/kernel/pty/nr").read_text()
        greedy.run_cell(take_all, 20)
        answer = neighbour.run_cell("!echo hello", 20)
        assert answer["outputs"][0]["text"] == "hello\r\n"
        assert int(Path("/proc/sys/kernel/pty/nr").read_text()) < int(before) + 100


@confined
@pytest.mark.skipif(len(getattr(os, "sched_getaffinity", set)(0)) < 2, reason="one processor")
def test_a_neighbour_loses_no_processor():
    mine = min(os.sched_getaffinity(0))
    with Sandbox(processor=mine) as sandbox, sandbox.candidate() as candidate:
        code = (
            "import os\ntry:\n    os.sched_setaffinity(0, range(64))\nexcept OSError:\n    pass\n"
        )
        answer = candidate.run_cell(code + "print(os.sched_getaffinity(0))", 20)
        assert answer["outputs"][0]["text"] == f"{{{mine}}}\n"
    assert len(os.sched_getaffinity(0)) > 1


def test_the_pool_starts_from_a_folder_with_a_long_name(tmp_path, monkeypatch):
    folder = tmp_path / ("x" * 150)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    with pool.process_pool(1) as executor:
        assert executor.submit(len, "abc").result(120) == 3


def test_a_language_in_which_files_have_no_names_is_refused(course):
    done = subprocess.run(
        [sys.executable, "-m", "autograder.command_line", "grade"],
        cwd=course.root,
        env=os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "Set PYTHONUTF8=1" in done.stderr


BOUNDS = """
c.Limits.call_seconds = 0.5
c.Limits.exam_seconds = 2
c.Limits.cell_seconds = 1.5
c.Limits.notebook_seconds = 6
c.Limits.reruns = 1
c.Limits.memory = 700 << 20
c.Limits.processes = 12
c.Limits.output = 5000
c.Limits.notebook_output = 30_000
c.Limits.files = 1 << 20
c.Limits.file_count = 30
"""


def test_every_bound_is_that_of_the_config(tmp_path, warm_worker):
    course = make_course(tmp_path / "course")
    with (course.root / "nbgrader_config.py").open("a") as config:
        config.write(BOUNDS)
    slow = "def lse(xi, Y, beta):\n    import time\n    time.sleep({})\n    return 0.0"
    hand_in(course, "call", answered(course, lse=slow.format("3 if len(Y) != 1 else 0")))
    hand_in(course, "exam", answered(course, lse=slow.format(0.4)))
    for student, sources in {
        "cell": ["import time\ntime.sleep(3)"],
        "notebook": ["import time\ntime.sleep(1.3)"] * 6,
        "reruns": ["import os\nos._exit(1)"] * 2,
        "memory": ["try:\n    bytes(900 << 20)\nexcept MemoryError:\n    print('too much')"],
        "processes": [
            "import os, time\nn = 0\ntry:\n    while os.fork():\n        n += 1\n"
            "    time.sleep(60)\nexcept OSError:\n    print(n < 12)"
        ],
        "output": ["print('x' * 6000)"],
        "all-output": ["print('x' * 4000)"] * 12,
        "files": [
            "try:\n    open('f', 'wb').write(bytes(3 << 20))\nexcept OSError:\n"
            "    print('too much')"
        ],
        "file-count": [
            "try:\n    for i in range(60):\n        open(f'f{i}', 'w').close()\n"
            "except OSError:\n    print('too many')"
        ],
    }.items():
        nb = answered(course)
        nb.cells += [nbformat.v4.new_code_cell(source) for source in sources]
        hand_in(course, student, nb)
    found = {r.student: r for r in grade_class(course, executor=warm_worker)}
    said = {student: str(r.notices) for student, r in found.items()}
    verdict = {v.exercise: v.message for v in found["call"].verdicts}["lse"]
    assert "a call did not come to an end in time" in verdict
    verdict = {v.exercise: v.message for v in found["exam"].verdicts}["lse"]
    assert "a call did not come to an end in time" in verdict
    assert {s: r.points for s, r in found.items()} == {
        **dict.fromkeys(found, 8), "call": 5, "exam": 5
    }  # fmt: skip
    assert "ran for more than 1.5 s" in said["cell"]
    assert "The notebook took longer than 6 s" in said["notebook"]
    assert "Too many cells ended the Python process" in said["reruns"]
    assert "printed or showed too much" in said["output"]
    assert "printed or showed too much" in said["all-output"]

    def shown(student):
        path = course.autograded / student / LESSON / NOTEBOOK
        return "".join(
            out.get("text", "") for out in nbformat.read(path, as_version=4).cells[-1].outputs
        )

    assert shown("memory") == "too much\n"
    if not why_not_confined():
        assert "True\n" in shown("processes")
        assert (shown("files"), shown("file-count")) == ("too much\n", "too many\n")
