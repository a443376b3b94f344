"""What a worker does: the bytes of one submission come in, plain results go out.

A worker knows no student and no gradebook, and writes nothing. Between two submissions it keeps
only a warm sandbox. It runs in any executor with the interface of `concurrent.futures`.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from multiprocessing import connection, util
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograder.isolated import grade_submission
from autograder.judging_version import judging_version
from autograder.sandbox import Limits, Sandbox
from autograder.submission import NotGradable, choose_file, released
from hopping.verdict import Verdict

SPARE_SECONDS = 120.0  # beyond all that a submission may take, before its worker gives up


@dataclass(frozen=True)
class Request:
    """One submission to be graded.

    Attributes
    ----------
    files : mapping of str to bytes
        What was handed in, by name.
    wanted : str
        The name that the lesson's notebook should have.
    source : bytes
        The lesson's source notebook.
    limits : Limits
        What the submission may use.
    hidden : str
        A folder that student code must not see, "" for none.
    judges : str
        The `judging_version` that must judge.
    """

    files: Mapping[str, bytes] = field(repr=False)
    wanted: str
    source: bytes = field(repr=False)
    limits: Limits
    hidden: str
    judges: str


@dataclass(frozen=True)
class Answer:
    """What became of one submission.

    Attributes
    ----------
    reason : str
        Why it cannot be graded; empty if it is, and then there is the rest.
    notebook : bytes
        The executed notebook.
    scores : dict
        Points by ``grade_id`` of every graded cell, None where a person has to give them.
    unanswered : tuple of str
        The ``grade_id`` of cells left as they were handed out.
    verdicts : tuple of Verdict
        In the order of the notebook.
    notices : tuple of str
        What was found, restored or left out.
    seconds : float
        How long it took.
    """

    reason: str = ""
    notebook: bytes = field(default=b"", repr=False)
    scores: dict[str, float | None] = field(default_factory=dict)
    unanswered: tuple[str, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    notices: tuple[str, ...] = ()
    seconds: float = 0.0


def work(request: Request) -> Answer:
    """Grade one submission.

    Raises
    ------
    Exception
        For anything that is not the submission's fault. The sandbox is given up then.
    """
    if request.judges != (_in_pool_of or judging_version()):
        raise RuntimeError("this worker has another version of the course's programs installed")
    source = _read(request.source)
    with _time_limit(request.limits, source):
        try:
            data, notices = choose_file(request.files, request.wanted, source)
            graded = grade_submission(data, source, _sandbox(request))
        except NotGradable as error:
            return Answer(reason=str(error))
        except BaseException:
            _close_sandbox()
            raise
    unanswered = _unanswered(source, graded.notebook)
    by_hand = {
        name: 0.0 if name in unanswered else None
        for name, marks in _marks(source).items()
        if marks.get("grade") and marks.get("solution")
    }
    return Answer(
        notebook=(nbformat.writes(graded.notebook).rstrip("\n") + "\n").encode(),
        scores=graded.scores | by_hand,
        unanswered=unanswered,
        verdicts=tuple(graded.verdicts.values()),
        notices=(*notices, *graded.notices),
        seconds=graded.seconds,
    )


@lru_cache(maxsize=8)
def _read(source: bytes) -> NotebookNode:
    return nbformat.reads(source.decode("utf-8"), as_version=4)


def _marks(notebook: NotebookNode) -> dict[str, NotebookNode]:
    found = (cell.metadata.get("nbgrader") for cell in notebook.cells)
    return {marks["grade_id"]: marks for marks in found if marks}


def _unanswered(source: NotebookNode, notebook: NotebookNode) -> tuple[str, ...]:
    """Return the answer cells that are as they were handed out, up to blank lines."""
    handed_out = {
        marks["grade_id"]: _bare(released(cell))
        for cell in source.cells
        if (marks := cell.metadata.get("nbgrader")) and marks.get("solution")
    }
    return tuple(
        marks["grade_id"]
        for cell in notebook.cells
        if (marks := cell.metadata.get("nbgrader"))
        and _bare(cell.source) == handed_out.get(marks["grade_id"])
    )


def _bare(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip()]


# --- The sandbox that is kept --------------------------------------------------------------------

_kept = threading.local()  # a sandbox is used by one thread


def _sandbox(request: Request) -> Sandbox:
    """Return this worker's warm sandbox; another course version gets another one."""
    what_for = (request.limits, request.hidden, request.judges)
    if getattr(_kept, "what_for", None) != what_for:
        _close_sandbox()
        hidden = [Path(request.hidden)] if request.hidden else []
        _kept.sandbox = Sandbox(request.limits, hidden, _processor)
        _kept.what_for = what_for
    return _kept.sandbox


def _close_sandbox() -> None:
    sandbox = _kept.__dict__.pop("sandbox", None)
    _kept.__dict__.pop("what_for", None)
    if sandbox is not None:
        sandbox.close()


# --- A process of a pool -------------------------------------------------------------------------

_processor: int | None = None  # where the submissions of this process run, if not anywhere
_in_pool_of = ""  # the judging version of the process that started this one


def start_worker(judges: str, beside_others: bool) -> None:
    """Prepare a process of a pool: it ends with its parent, and leaves nothing behind.

    Where others work beside it, its submissions get one processor of their own: a submission that
    starts as many processes as it may slows down itself.
    """
    global _in_pool_of, _processor
    _in_pool_of = judges
    if beside_others and hasattr(os, "sched_getaffinity"):
        ours = sorted(os.sched_getaffinity(0))
        number = int(multiprocessing.current_process().name.rpartition("-")[2])
        _processor = ours[(number + os.getppid()) % len(ours)]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    signal.signal(signal.SIGTERM, lambda *_: _end())
    util.Finalize(None, _close_sandbox, exitpriority=100)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Wait for the parent's end. Without this a worker would wait for its next task for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)
        threading.Event().wait(20.0)
        os._exit(1)  # the main thread is too busy to listen


def _end() -> None:
    with contextlib.suppress(Exception):
        _close_sandbox()
    os._exit(1)


@contextlib.contextmanager
def _time_limit(limits: Limits, source: NotebookNode):
    """End a process of a pool whose submission keeps it beyond every limit."""
    if not _in_pool_of:
        yield
        return
    exams = sum(name.startswith("exam_") for name in _marks(source))
    most = limits.notebook_seconds + 2 * exams * limits.exam_seconds + SPARE_SECONDS
    timer = threading.Timer(most, os._exit, [1])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
