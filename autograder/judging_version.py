"""Which programs judge: a hash of the code and the packages that a grade depends on.

It changes whenever a grade may change, and seldom else: not for a page's layout, a table's columns
or what only a browser reads.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("numpy", "scipy", "matplotlib", "ipython", "ipywidgets", "anywidget", "nbformat")
BROWSER_ONLY = (".css", ".js")  # of the package `hopping`
# Of the package `autograder`; a test compares it with what a worker imports.
JUDGES = (
    "exercises",
    "reference",
    "inside",
    "examiner.py",
    "exercise.py",
    "isolated.py",
    "judging_version.py",
    "printable.py",
    "sandbox.py",
    "submission.py",
    "worker.py",
)


@cache
def judging_version() -> str:
    """Return the hash for the programs of this process."""
    total = hashlib.sha256(platform.python_version().encode())
    for package in PACKAGES:
        total.update(f"\0{package} {version(package)}".encode())
    for name, path in _files():
        total.update(f"\0{name} {hashlib.sha256(path.read_bytes()).hexdigest()}".encode())
    return total.hexdigest()


def _files() -> Iterator[tuple[str, Path]]:
    ours = Path(__file__).parent
    specification = find_spec("hopping")
    assert specification is not None and specification.origin is not None
    hopping = Path(specification.origin).parent
    for root, path in [(ours.parent, ours / name) for name in JUDGES] + [(hopping.parent, hopping)]:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            judges = "__pycache__" not in file.parts and file.suffix not in BROWSER_ONLY
            if judges and file.is_file():
                yield file.relative_to(root).as_posix(), file
