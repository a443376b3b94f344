"""The process that runs one submission: answers the examiner's requests, one after the other."""

from __future__ import annotations

import builtins
import contextlib
import os
import random
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hopping.observe import Outcome, observe, plain

from .channel import Channel, ChannelError, TooLarge
from .shell import Descriptors, Shell, Stream, no_input

DEPTH = 8


@dataclass
class Candidate:
    """A forked shell at the other end of a channel.

    Attributes
    ----------
    channel : Channel
        To the examiner.
    shell : Shell
        Where the cells run.
    output : int
        How many bytes of output a cell may have.
    exam_seconds : int
        How much processor time a copy that is kept for an exam may use.
    """

    channel: Channel
    shell: Shell
    output: int
    exam_seconds: int

    def __post_init__(self) -> None:
        self.examined: dict[str, Any] = {}

    def serve(self) -> None:
        """Answer requests until the examiner hangs up."""
        self._prepare()
        self.channel.send({"ready": self.pid})
        while True:
            try:
                request = self.channel.receive(lambda number: StandIn(self.channel, number))
                answer = getattr(self, f"do_{request.pop('do')}")(**request)
            except ChannelError:
                return
            except Exception as error:  # something that this relies on was changed
                answer = {"failed": type(error).__name__}
            if os.getpid() != self.pid:  # a fork of the student's own that came back
                return
            try:
                self.channel.send(answer)
            except (TooLarge, TypeError) as error:
                self.channel.send({"failed": str(error)})

    def _prepare(self) -> None:
        """Set up what a notebook finds; random numbers start the same in every run."""
        self.pid = os.getpid()
        self.descriptors = Descriptors(os.getcwd())
        sys.stdout = sys.stderr = None
        self._set_streams()
        builtins.input = no_input
        random.seed(0)
        np.random.seed(0)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _set_streams(self) -> None:
        """Set the streams of cells, again where a cell has left something that takes no text."""
        for name, descriptor in (("stdout", 1), ("stderr", 2)):
            if not callable(getattr(getattr(sys, name), "write", None)):
                setattr(sys, name, Stream(self.shell.record, name, descriptor))

    def do_cell(self, source: str) -> dict[str, Any]:
        """Run a cell and return what it printed and showed."""
        record = self.shell.record
        record.start(self.output)
        self._set_streams()
        try:
            # Only now, because between two cells nothing would catch an interruption.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self.shell.run_cell(source, store_history=True)
        except KeyboardInterrupt:
            pass
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            self._stop_clocks()
        self.descriptors.collect(record, self.output)
        return {"outputs": record.finish(), "updates": record.updates, "cut": record.cut}

    def _stop_clocks(self) -> None:
        """Stop what a cell set to go off later: it would end a cell that did nothing."""
        for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
            signal.setitimer(timer, 0)
        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (most, most))

    def do_values(self, names: list[str]) -> dict[str, Any]:
        """Return variables as plain data, where a cell stands that is judged from outside."""
        self.shell.execution_count += 1
        return {
            "values": {name: _with_dictionaries(self.shell.user_ns.get(name)) for name in names}
        }

    def do_keep(self) -> dict[str, Any]:
        """Fork a copy that stays as things are now and waits on a channel of its own.

        The cells that follow run without having seen a hidden input, because the copy is only
        examined when all of them are done.
        """
        self.shell.execution_count += 1
        _, descriptors, _, _ = socket.recv_fds(self.channel.sock, 1, 1)
        sock = socket.socket(fileno=descriptors[0])
        threads = threading.active_count()
        try:
            copy = os.fork()
        except BlockingIOError:  # as many as are allowed: those that have ended still count
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            copy = os.fork()
        if copy:
            sock.close()
            return {"kept": True}
        self.pid = os.getpid()
        self.channel.close()
        self.channel = Channel(sock)
        most = resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (min(self.exam_seconds, most), most))
        return {"kept": self.pid, "without_threads": threads > 1}

    def do_call(self, name: str, inputs: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Call a function once and return what happened."""
        function = self.examined.setdefault(name, self.shell.user_ns.get(name))
        try:
            outcome = _observe(function, name, inputs, seconds)
            return _as_message(outcome)
        except Exception as error:  # an answer that cannot even be looked at
            return _as_message(Outcome(raised=type(error).__name__))


class StandIn:
    """A function whose values come from the examiner."""

    def __init__(self, channel: Channel, number: int) -> None:
        self._channel, self._number = channel, number
        self.__name__ = self.__qualname__ = "f"

    def __call__(self, x: Any) -> Any:
        """Return the value at `x`."""
        point = plain(x)
        if point is None:
            raise TypeError(f"a function of a point was called with {type(x).__name__}")
        # An interruption between question and answer would leave the answer for the next question.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
        try:
            self._channel.send({"ask": self._number, "x": point})
            answer = self._channel.receive()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if "raised" in answer:
            raise getattr(builtins, answer["raised"], ValueError)(answer["detail"])
        return answer["value"]


def _observe(
    function: Callable[..., Any], name: str, inputs: dict[str, Any], seconds: float
) -> Outcome:
    if function is None:
        return Outcome(raised="NotImplementedError", detail=f"there is no function {name}")
    if not callable(function):
        kind = type(function).__name__
        return Outcome(raised="TypeError", detail=f"{name} is not a function, it is a {kind}")
    return observe(function, inputs, seconds)


def _as_message(outcome: Outcome) -> dict[str, Any]:
    return {
        "value": outcome.value,
        "kind": outcome.kind,
        "raised": outcome.raised,
        "detail": outcome.detail[:2000],
        "changed": list(outcome.changed),
        "shares": outcome.shares,
        "noisy": outcome.noisy,
    }


def _with_dictionaries(value: Any, depth: int = 0) -> Any:
    """Return plain data, dictionaries with strings for keys among it; None for anything else."""
    if issubclass(type(value), dict) and depth < DEPTH:
        return {
            plain(key): _with_dictionaries(part, depth + 1)
            for key, part in dict.items(value)
            if type(plain(key)) is str
        }
    return plain(value)
