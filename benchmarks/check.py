"""How long a learner waits for `check`: every exercise's right answer, against its bare calls.

A bare call is the learner's function on the stored examples, once, which is what somebody would
run who compares by eye. Run it as `python benchmarks/check.py`; it prints the median, the slowest
exercises, and how many times as long the check takes as the calls.
"""

import platform
import statistics
import time
from collections.abc import Callable

from autograder.exercises import load
from hopping.checking import judge_check, load_stored

REPEATS = 5


def main() -> None:
    """Measure and print."""
    rows = []
    for name, exercise in load().items():
        stored = load_stored(name)

        def calls(function=exercise.reference, stored=stored) -> None:
            for example in stored.examples:
                function(*example.inputs.values())

        assert judge_check(stored, exercise.reference).passed, name
        checked = _median(lambda s=stored, f=exercise.reference: judge_check(s, f))
        rows.append((checked, checked / _median(calls), name))
    rows.sort(reverse=True)
    print(f"Python {platform.python_version()}, {len(rows)} exercises, median of {REPEATS}\n")
    print("| check of a right answer | ms | times the bare calls |\n|---|---:|---:|")
    middle = statistics.median(seconds for seconds, _, _ in rows)
    times = statistics.median(ratio for _, ratio, _ in rows)
    print(f"| median of all exercises | {1000 * middle:.1f} | {times:.1f} |")
    for seconds, ratio, name in rows[:3]:
        print(f"| {name} | {1000 * seconds:.1f} | {ratio:.1f} |")


def _median(work: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


if __name__ == "__main__":
    main()
