"""A warm process from which every submission is forked.

It has imported what lessons import, and does nothing but fork: it never reads what a student wrote.
Each fork is given namespaces, a scratch folder and limits of its own, and whatever a submission
leaves running ends with it.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import socket
import sys
import traceback
from dataclasses import dataclass, replace

import numpy as np

import hopping

from . import confine
from .candidate import Candidate
from .channel import Channel, ChannelError
from .shell import Shell, make_shell


@dataclass(frozen=True)
class Settings:
    """How a server's forks are confined; the bounds are those of `autograder.sandbox.Limits`."""

    confined: bool
    uid: int
    scratch: str
    over: list[str]
    memory: int
    processes: int
    output: int
    files: int
    file_count: int
    seconds: int
    exam_seconds: int


def main() -> None:
    """Serve on the socket that is standard input until it closes."""
    control = Channel(socket.socket(fileno=os.dup(0)))
    os.set_inheritable(control.sock.fileno(), False)
    settings = Settings(**json.loads(sys.argv[1]))
    confine.die_with_parent()
    shell = _warm_up(settings.scratch)
    private = settings.confined and _can_be_private()
    if not _can_read_as(settings.uid):
        settings = replace(settings, uid=os.geteuid())
    control.send({"private": private, "uid": os.geteuid(), "uid_of_forks": settings.uid})
    with contextlib.suppress(ChannelError):  # the examiner hung up
        while True:
            scratch = control.receive()["scratch"]
            _, descriptors, _, _ = socket.recv_fds(control.sock, 1, 2)
            # The fork in between enters the new namespaces, which take effect for its children.
            pid = os.fork()
            if pid == 0:
                _start(control, descriptors, shell, settings, scratch, private)
            for descriptor in descriptors:
                os.close(descriptor)
            # The next fork may not begin before this one is gone: it would still be counted.
            os.waitpid(pid, 0)
            control.send({"gone": True})
    os._exit(0)


def _warm_up(folder: str) -> Shell:
    """Import what lessons import; draw and format an error once, which loads much more."""
    shell = make_shell(folder)  # before matplotlib, which looks whether there is one
    import ipywidgets
    import matplotlib.pyplot as plt
    import scipy.linalg
    import scipy.optimize
    import scipy.special  # noqa: F401
    from IPython.core.pylabtools import print_figure

    with contextlib.suppress(ImportError):
        from hopping import draw, explore  # noqa: F401
    figure, axes = plt.subplots()
    axes.plot([0.0, 1.0], label=r"$\beta \sum_\tau e^{\beta s_\tau}$")
    axes.legend()
    print_figure(figure, "png")
    plt.close(figure)
    try:
        raise ValueError
    except ValueError:
        shell.InteractiveTB.structured_traceback(*sys.exc_info())
    assert ipywidgets
    gc.collect()
    gc.freeze()  # a collection in a fork would touch, and so copy, all memory it shares
    return shell


def _can_be_private() -> bool:
    """Whether a fork can have namespaces of its own: try it."""
    pid = os.fork()
    if pid == 0:
        try:
            confine.private_namespaces()
            os._exit(0)
        except OSError:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0


def _can_read_as(uid: int) -> bool:
    """Whether another user can read what Python imports: not when it lies in root's own folder."""
    pid = os.fork()
    if pid == 0:
        try:
            confine.become(uid)
            for module in (os, np, hopping):
                open(module.__file__, "rb").close()
            os._exit(0)
        except OSError:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0


def _start(
    control: Channel,
    descriptors: list[int],
    shell: Shell,
    settings: Settings,
    scratch: str,
    private: bool,
) -> None:
    """Become the process between the server and the two that run a submission; never return."""
    status = socket.socket(fileno=descriptors[1])
    try:
        control.close()
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        os.setsid()
        if private:
            confine.private_namespaces()
        first = os.fork()
        if first:
            status.close()
            os.close(descriptors[0])
            os.waitpid(first, 0)
            os._exit(0)
        if private:
            confine.mount_scratch(
                scratch, settings.over, settings.uid, settings.files, settings.file_count
            )
        else:
            confine.adopt_orphans()
        confine.become(settings.uid)
        os.chdir(scratch)
        confine.set_limits(settings.memory, settings.files, settings.processes, settings.seconds)
        child = os.fork()
        if child == 0:
            status.close()
            _run(descriptors[0], shell, settings, scratch)
        os.close(descriptors[0])
        _watch(status, child, private)
    except BaseException:
        with contextlib.suppress(OSError):
            status.send(json.dumps({"failed": traceback.format_exc()}).encode()[-4000:])
    finally:
        os._exit(1)


def _run(descriptor: int, shell: Shell, settings: Settings, scratch: str) -> None:
    """Run a submission; never return."""
    try:
        os.environ.update(HOME=scratch, TMPDIR=scratch, IPYTHONDIR=scratch)
        confine.refuse_system_calls()
        channel = Channel(socket.socket(fileno=descriptor))
        Candidate(channel, shell, settings.output, settings.exam_seconds).serve()
    finally:
        os._exit(0)


def _watch(status: socket.socket, child: int, private: bool) -> None:
    """Do what the examiner says to the candidate, and say how it ended.

    This is the first process of its namespace: when it ends, so does all that a submission started.
    """
    wake, alarm = os.pipe()
    os.set_blocking(alarm, False)
    signal.set_wakeup_fd(alarm)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    alive = True
    while True:
        readable, _, _ = select.select([status, wake], [], [])
        if wake in readable:
            os.read(wake, 4096)
            for pid, code in _reap():
                if pid == child:
                    alive = False
                    report = {"exit": os.waitstatus_to_exitcode(code)}
                    status.send(json.dumps(report).encode())
        if status in readable:
            orders = status.recv(4096)
            if not orders:
                break
            for order, *pids in map(bytes.split, orders.splitlines()):
                if order == b"only" and private:
                    _end_all_but({int(pid) for pid in pids})
                elif alive and order != b"only":
                    os.kill(child, signal.SIGINT if order == b"interrupt" else signal.SIGKILL)
    if not private:
        _end_descendants(child)
    os._exit(0)


def _reap() -> list[tuple[int, int]]:
    ended = []
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, code = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            ended.append((pid, code))
    return ended


def _end_all_but(kept: set[int]) -> None:
    """Kill what runs in this namespace, and let those that are kept go on if they were stopped.

    After some ten thousand processes numbers begin anew, and what has an old one is not found; it
    can only disturb the submission that it belongs to, and ends with it.
    """
    for _ in range(3):  # something may have been started meanwhile
        try:
            newest = os.fork()  # numbers are given in order
            if newest == 0:
                os._exit(0)
            os.waitpid(newest, 0)
        except BlockingIOError:  # as many as are allowed
            newest = 1 << 15  # the last number, unless a machine is set otherwise
        for pid in range(2, newest):
            # Unlike kill, this refuses the number of a thread, which may be that of one kept.
            with contextlib.suppress(OSError):
                process = os.pidfd_open(pid)
                number = signal.SIGCONT if pid in kept else signal.SIGKILL
                signal.pidfd_send_signal(process, number)
                os.close(process)


def _end_descendants(child: int) -> None:
    """Kill what is left; orphans come here, so that killing children reaches everything (Linux)."""
    own = f"/proc/self/task/{os.getpid()}/children"
    for _ in range(1000):
        try:
            with open(own) as file:
                pids = [int(pid) for pid in file.read().split()]
        except OSError:  # no such file: kill what did not leave the candidate's group
            pids = [child]
        for pid in pids:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            break


if __name__ == "__main__":
    main()
