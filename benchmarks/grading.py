"""How fast a class is graded: `autograder grade` against stock `nbgrader autograde`.

One class of the course's own lessons, with right, unusual, wrong and empty answers, is graded by
both on this machine, one after the other, and the points must be equal. Two more figures say what
the rest of the time is for: the floor, which is the same cells in a bare fork of a warm Python,
without isolation, judging apart or anything written; and where a submission's time goes.

Run it as `python benchmarks/grading.py`. Stock nbgrader takes long, so by default it grades a few
students and its time for the class is worked out from that, which the output says; `--full` lets it
grade everybody. Processor time is given beside the clock, because a busy machine bends the clock.
`--flat` measures instead whether a submission costs the same, in time and memory, in a large class.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import nbformat

from autograder.course import Course, known_lessons, source_path
from autograder.demo import assemble
from autograder.exercises import load
from autograder.gradebook import connect
from autograder.journal import read_limits
from autograder.pool import cores
from autograder.releasing import release_assignment
from autograder.sandbox import Candidate, Sandbox, isolation_warning
from autograder.submission import read_submission, rebuild

ROOT = Path(__file__).parents[1]
NOT_FOR_STOCK = ("absent", "dead-kernel", "not-json")  # of the sample class: stock has no grade
Submissions = list[tuple[str, str]]  # student and lesson


@dataclass
class Cost:
    """What something took: seconds by the clock and of processors, megabytes at most.

    The memory is that of all processes, of the one that was started, and of the largest worker.
    """

    seconds: float
    processor: float
    memory: float
    writer: float = 0.0
    worker: float = 0.0


def main() -> None:
    """Measure and print."""
    options = _options()
    print(
        f"Python {platform.python_version()}, nbgrader {version('nbgrader')}, "
        f"{cores()} processors, {options.workers} workers, load {os.getloadavg()[0]:.1f} before"
    )
    print(isolation_warning() or "Student code is shut off by bubblewrap.")
    with tempfile.TemporaryDirectory(prefix="grading-") as folder:
        if options.flat:
            flat(Path(folder), options)
        else:
            compare(Path(folder), options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--students", type=int, default=12, help="in the class (default 12)")
    parser.add_argument(
        "--lessons",
        nargs="+",
        default=["01_lse_gradient"],
        metavar="NAME",
        help="of the course, or 'small': two functions and no picture",
    )
    parser.add_argument("--workers", type=int, default=cores())
    parser.add_argument("--stock", type=int, default=3, help="students for stock (default 3)")
    parser.add_argument("--full", action="store_true", help="stock nbgrader grades everybody")
    parser.add_argument("--flat", action="store_true", help="measure small and large classes")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 50, 200])
    return parser.parse_args()


# --- One class, graded by both -------------------------------------------------------------------


def compare(folder: Path, options: argparse.Namespace) -> None:
    """Grade one class in every way, and print what it took."""
    course, lessons = make_class(folder / "course", options.students, options.lessons)
    students = sorted(path.name for path in course.submitted.iterdir())
    everything = [(s, lesson) for s in students for lesson in lessons]
    few = students if options.full else students[: options.stock]
    some = [(s, lesson) for s in few for lesson in lessons]
    print(f"{len(students)} students, {len(lessons)} lessons\n")

    for_stock = part_of(course, folder / "stock", few)
    stock = _stock(for_stock, lessons)
    command = [sys.executable, "-m", "autograder.command_line", "grade"]
    command += ["--workers", str(options.workers)]
    ours = measure(command, course)
    steady = one_more(course, options.workers)
    again = measure(command, course)
    bottom, floor_points = floor(course, everything, options.workers)
    lines = [
        ("stock nbgrader", stock, len(some), one_more(for_stock, 1)),
        ("autograder grade", ours, len(everything), steady),
        ("the floor", bottom, len(everything), bottom.seconds / len(everything)),
    ]
    _table(lines)
    if len(some) < len(everything):
        whole = stock.seconds / len(some) * len(everything)
        print(
            f"\nStock nbgrader graded {len(some)} of {len(everything)} submissions; "
            f"all of them would take it about {whole:.0f} s (worked out, not measured)."
        )
    (_, _, few_, slow), (_, _, many, fast), (_, _, _, least) = lines
    ratio = (stock.seconds / few_) / (ours.seconds / many)
    print(
        f"\nThroughput of autograder grade against stock nbgrader, starting included: {ratio:.1f}"
    )
    if slow and fast:
        print(f"without what it takes to start, as in a large class: {slow / fast:.1f}")
        print(f"Time against the floor, without what it takes to start: {fast / least:.2f}")
    print(f"The same class again, when nothing has changed: {again.seconds:.1f} s")
    _compare_points(points(for_stock), points(course), floor_points, some)
    where_it_goes(course, everything)


def _stock(course: Course, lessons: list[str]) -> Cost:
    costs = [measure([sys.executable, "-m", "nbgrader", "autograde", x], course) for x in lessons]
    return Cost(
        sum(cost.seconds for cost in costs),
        sum(cost.processor for cost in costs),
        max(cost.memory for cost in costs),
    )


def one_more(course: Course, first: int) -> float | None:
    """Return the seconds from one submission to the next, once the first ones are done."""
    times = sorted(path.stat().st_mtime for path in course.autograded.glob("*/*/*.ipynb"))
    return (times[-1] - times[first - 1]) / (len(times) - first) if len(times) > first else None


def make_class(root: Path, count: int, lessons: list[str]) -> tuple[Course, list[str]]:
    """Return a course with a class of a size, made of copies of a sample class."""
    if lessons == ["small"]:
        course = _small_class(root)
        lessons = known_lessons(course)
    else:
        course = assemble(Course(ROOT), root, load())
    for lesson in known_lessons(course):
        if lesson in lessons:
            release_assignment(course, lesson)
        else:
            shutil.rmtree(course.source / lesson)
    for name in NOT_FOR_STOCK:
        shutil.rmtree(course.submitted / name, ignore_errors=True)
    samples = sorted(course.submitted.iterdir())
    for number in range(count):
        kind = samples[number % len(samples)]
        for lesson in lessons:
            target = course.submitted / f"s{number:04}-{kind.name}" / lesson
            shutil.copytree(kind / lesson, target)
    for kind in samples:
        shutil.rmtree(kind)
    return course, lessons


def _small_class(root: Path) -> Course:
    course = _classroom().make_course(root)
    wrong = {"lse": _classroom().wrong("lse", "no-max-subtraction")}
    for student, answers in (("right", {}), ("wrong", wrong)):
        _classroom().hand_in(course, student, _classroom().answered(course, **answers))
    _classroom().hand_in(course, "blank", _classroom().released(course))
    return course


def _classroom() -> ModuleType:
    sys.path.insert(0, str(ROOT / "tests"))
    return importlib.import_module("classroom")


def part_of(course: Course, root: Path, students: list[str]) -> Course:
    """Return a copy of a course with only some of its students."""
    part = Course(shutil.copytree(course.root, root))
    for student in part.submitted.iterdir():
        if student.name not in students:
            shutil.rmtree(student)
    return part


def points(course: Course) -> dict[tuple[str, str, str], float | None]:
    """Return the points given by machine, by student, lesson and cell."""
    with connect(course) as gradebook:
        return {(p.student, p.lesson, p.cell): p.earned for p in gradebook.points()}


def _compare_points(stock: dict, ours: dict, bottom: dict, some: Submissions) -> None:
    mine = {key: value for key, value in ours.items() if key[:2] in some}
    assert mine == stock, {k: (v, stock.get(k)) for k, v in mine.items() if v != stock.get(k)}
    for key, value in bottom.items():
        assert value == ours[key], (key, value, ours[key])
    print(f"Points are equal: {len(stock)} cells with stock, {len(bottom)} exams with the floor.")


def _table(lines: list[tuple[str, Cost, int, float | None]]) -> None:
    heads = ("submissions", "seconds", "s each", "one more", "CPU s each", "MB at most")
    print(f"{'':18}" + "".join(f"{head:>12}" for head in heads))
    for name, cost, count, more in lines:
        print(
            f"{name:18}{count:12d}{cost.seconds:12.1f}{cost.seconds / count:12.2f}"
            + (f"{more:12.2f}" if more else f"{'–':>12}")
            + f"{cost.processor / count:12.2f}{cost.memory:12.0f}"
        )


# --- The floor -----------------------------------------------------------------------------------


def floor(
    course: Course, submissions: Submissions, workers: int
) -> tuple[Cost, dict[tuple[str, str, str], float | None]]:
    """Run the same cells in forks of a warm shell, and return the points that exams gave."""
    jobs = []
    for student, lesson in submissions:
        path = source_path(course, lesson)
        source = nbformat.read(path, as_version=4)
        data = (course.submitted / student / lesson / path.name).read_bytes()
        notebook = rebuild(source, read_submission(data, source))
        jobs.append((student, lesson, [c for c in notebook.cells if c.cell_type == "code"]))
    with tempfile.TemporaryDirectory() as folder:
        parts = [Path(folder, f"{worker}.json") for worker in range(workers)]
        program = [sys.executable, __file__, "--floor", folder]
        Path(folder, "jobs.json").write_text(json.dumps([jobs[i::workers] for i in range(workers)]))
        cost = measure([*program, str(workers)], course)
        told = [json.loads(part.read_text()) for part in parts]
    # The warm-up is not part of the floor.
    seconds = max(part["seconds"] for part in told)
    found = {tuple(key): value for part in told for key, value in part["points"]}
    return Cost(seconds, sum(part["processor"] for part in told), cost.memory), found


def _floor_program(folder: str, workers: int) -> None:
    """Be the processes that the floor is measured in."""
    os.chdir(folder)
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from autograder.inside.server import _warm_up

    shell = _warm_up(folder)
    for name in load():
        with contextlib.suppress(ValueError):
            from autograder.examiner import _exam_key

            _exam_key(name)
    children = []
    for worker, jobs in enumerate(json.loads(Path("jobs.json").read_text())):
        pid = os.fork()
        if pid == 0:
            _floor_worker(shell, worker, jobs)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)


def _floor_worker(shell: object, worker: int, jobs: list) -> None:
    started, found = time.monotonic(), []
    for student, lesson, cells in jobs:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            answers = _run_cells(shell, cells)
            os.write(writer, json.dumps(answers).encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as pipe:
            found += [((student, lesson, name), score) for name, score in json.load(pipe)]
        os.waitpid(pid, 0)
    times = os.times()
    told = {
        "points": found,
        "seconds": time.monotonic() - started,
        "processor": times.user + times.system + times.children_user + times.children_system,
    }
    Path(f"{worker}.json").write_text(json.dumps(told))
    os._exit(0)


def _run_cells(shell: object, cells: list) -> list[tuple[str, float]]:
    """Run all cells, and return what the exams said."""
    from autograder.inside.shell import Stream

    sys.stdout = Stream(shell.record, "stdout", 1)
    sys.stderr = Stream(shell.record, "stderr", 2)
    found = []
    for cell in cells:
        shell.record.start(2_000_000)
        shell.run_cell(cell["source"], store_history=True)
        outputs = shell.record.finish()
        name = cell["metadata"].get("nbgrader", {}).get("grade_id", "")
        if name.startswith("exam_"):
            results = [o for o in outputs if o["output_type"] == "execute_result"]
            found.append((name, float(results[0]["data"]["text/plain"]) if results else 0.0))
    return found


# --- Where the time goes -------------------------------------------------------------------------


def where_it_goes(course: Course, submissions: Submissions, most: int = 8) -> None:
    """Grade some submissions in this process, with a clock on every step, and print a table."""
    from autograder import isolated, worker
    from autograder.judging_version import judging_version

    spent: dict[str, float] = {}
    inside: list[str] = []

    def clocked(place: object, name: str, words: str) -> None:
        function = getattr(place, name)

        def timed(*args, **kwargs):
            if words in inside:
                return function(*args, **kwargs)
            inside.append(words)
            started = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                took = time.perf_counter() - started
                inside.pop()
                spent[words] = spent.get(words, 0.0) + took
                if inside:
                    spent[inside[-1]] = spent.get(inside[-1], 0.0) - took

        setattr(place, name, timed)

    clocked(worker, "choose_file", "reading the submission")
    clocked(isolated, "read_submission", "reading the submission")
    clocked(isolated, "rebuild", "reading the submission")
    clocked(Candidate, "run_cell", "running the cells")
    clocked(Candidate, "keep", "keeping a copy for each exam")
    clocked(Candidate, "call", "calling functions on hidden cases")
    clocked(isolated, "judge_exam", "comparing and recognising")
    clocked(nbformat, "writes", "writing the notebook")
    clocked(worker, "grade_submission", "the rest: forking, ending, talking")
    limits = read_limits(course)
    with Sandbox(limits) as sandbox:
        sandbox.warm_up()
        worker._kept.sandbox, worker._kept.what_for = sandbox, (limits, "", judging_version())
        chosen = submissions[:most]
        started = None
        for student, lesson in [chosen[0], *chosen]:  # the first one is a warm-up
            path = source_path(course, lesson)
            data = (course.submitted / student / lesson / path.name).read_bytes()
            request = worker.Request(
                {path.name: data}, path.name, path.read_bytes(), limits, "", judging_version()
            )
            if student == chosen[0][0] and started is None:
                worker.work(request)
                spent.clear()
                started = time.perf_counter()
                continue
            worker.work(request)
        total = (time.perf_counter() - started) / len(chosen)
    print(
        f"\nWhere a submission's time goes ({total:.2f} s each, {len(chosen)} of them, one by one)"
    )
    for words, seconds in sorted(spent.items(), key=lambda item: -item[1]):
        print(f"  {words:40}{1000 * seconds / len(chosen):8.0f} ms")


# --- Large classes -------------------------------------------------------------------------------


def flat(folder: Path, options: argparse.Namespace) -> None:
    """Print what a submission costs in classes of several sizes: copies of a small lesson."""
    template = _classroom().make_course(folder / "template")
    content = _classroom().answered(template)
    print("Copies of one small lesson\n")
    heads = ("submissions", "seconds", "s each", "MB, writer", "MB, a worker")
    print("".join(f"{head:>13}" for head in heads))
    for size in options.sizes:
        course = _classroom().copy_course(template, folder / f"class-{size}")
        for number in range(size):
            _classroom().hand_in(course, f"student-{number:05}", content)
        command = [sys.executable, "-m", "autograder.command_line", "grade"]
        cost = measure([*command, "--workers", str(options.workers)], course)
        print(
            f"{size:13d}{cost.seconds:13.1f}{cost.seconds / size:13.3f}"
            f"{cost.writer:13.0f}{cost.worker:13.0f}"
        )
        shutil.rmtree(course.root)


# --- Measuring -----------------------------------------------------------------------------------


def measure(command: list[str], course: Course) -> Cost:
    """Run a program in a course and return what it and all that it started took."""
    started = time.monotonic()
    process = subprocess.Popen(
        command, cwd=course.root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    cost = Cost(0.0, 0.0, 0.0)
    done = threading.Event()

    def look() -> None:
        while not done.wait(0.2):
            seen = _family(process.pid)
            cost.processor = max(cost.processor, sum(seconds for _, seconds, _ in seen))
            cost.memory = max(cost.memory, sum(memory for _, _, memory in seen))
            if seen:
                cost.writer = max(cost.writer, seen[0][2])
            for name, _, memory in seen[1:]:
                if "forkserver" in name:
                    cost.worker = max(cost.worker, memory)

    looking = threading.Thread(target=look)
    looking.start()
    output, _ = process.communicate()
    done.set()
    looking.join()
    cost.seconds = time.monotonic() - started
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{output[-4000:]}")
    return cost


def _family(pid: int) -> list[tuple[str, float, float]]:
    """Return command, processor seconds and megabytes of a process and all its descendants."""
    tick, found, rest = os.sysconf("SC_CLK_TCK"), [], [pid]
    while rest:
        folder = Path(f"/proc/{rest.pop(0)}")
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            name = (folder / "cmdline").read_text().replace("\0", " ")
            used = sum(int(field) for field in fields[11:15]) / tick
            memory = _own_memory(folder)
            for task in (folder / "task").iterdir():
                rest += [int(child) for child in (task / "children").read_text().split()]
            found.append((name, used, memory))
    return found


def _own_memory(folder: Path) -> float:
    """Return megabytes of a process, what it shares with others divided among them."""
    for line in (folder / "smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--floor"]:
        _floor_program(sys.argv[2], int(sys.argv[3]))
    else:
        main()
