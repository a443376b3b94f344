"""Give requests to workers and pass on their answers, whatever becomes of a worker."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from collections.abc import Hashable, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import contextmanager

from autograder.judging_version import judging_version
from autograder.worker import Answer, Request, start_worker, work

Task = tuple[Hashable, Request]


def cores() -> int:
    """Return how many processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        return os.cpu_count() or 1


def answers(
    tasks: Iterable[Task], workers: int, executor: Executor | None = None
) -> Iterator[tuple[Hashable, Answer | BaseException]]:
    """Yield every task's key with its answer, or with what prevented one, as they come.

    Only twice as many tasks as there are workers are held at a time. When a process of the pool
    ends, the tasks that were in its hands, or in a neighbour's, are each tried again alone: so one
    submission that ends its worker costs no other.

    Parameters
    ----------
    tasks : iterable of (key, Request)
        Taken from as workers become free.
    workers : int
        How many work at the same time.
    executor : Executor, optional
        Anything with the interface of `concurrent.futures`; a pool of processes by default.
    """
    tasks = iter(tasks)
    if executor is not None:
        for (key, _), outcome in _run(executor, tasks, 2 * workers):
            yield key, outcome
        for key, _ in tasks:  # it broke down
            yield key, BrokenExecutor("the executor does not take any more tasks")
        return
    lost: list[Task] | None = None
    while lost is None or lost:
        lost = []
        with process_pool(workers) as pool:
            for task, outcome in _run(pool, tasks, 2 * workers):
                if isinstance(outcome, BrokenExecutor):
                    lost.append(task)
                else:
                    yield task[0], outcome
        for task in lost:
            with process_pool(1) as pool:
                for (key, _), outcome in _run(pool, iter([task]), 1):
                    yield key, outcome


def _run(
    executor: Executor, tasks: Iterator[Task], most: int
) -> Iterator[tuple[Task, Answer | BaseException]]:
    """Run tasks until there are none left, or the executor is broken."""
    running: dict[Future, Task] = {}
    broken = False
    while True:
        while not broken and len(running) < most and (task := next(tasks, None)) is not None:
            try:
                running[executor.submit(work, task[1])] = task
            except BrokenExecutor as error:
                broken = True
                yield task, error
        if not running:
            return
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            outcome = future.exception() or future.result()
            broken = broken or isinstance(outcome, BrokenExecutor)
            yield running.pop(future), outcome


@contextmanager
def process_pool(workers: int) -> Iterator[Executor]:
    """Give a pool of worker processes, ended at once when something is raised."""
    # A fork server's socket lies in the temporary folder; its path may have about 100 characters.
    short = len(os.fsencode(tempfile.gettempdir())) < 70
    forks = short and "forkserver" in multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if forks else "spawn")
    if forks:
        context.set_forkserver_preload(["autograder.worker"])  # imported once, not by each
    pool = ProcessPoolExecutor(
        workers, context, initializer=start_worker, initargs=(judging_version(), workers > 1)
    )
    try:
        yield pool
    except BaseException:
        for process in list((pool._processes or {}).values()):
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
