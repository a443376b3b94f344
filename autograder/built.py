"""Remembers what the last build read and wrote, so that an unchanged course is not built again."""

from __future__ import annotations

import hashlib
import platform
import sysconfig
from collections.abc import Mapping
from importlib.metadata import distributions
from pathlib import Path

from autograder.course import CONFIG, Course


def digest(parts: Mapping[str, bytes]) -> str:
    """Return one hash of named contents, whatever their order."""
    total = hashlib.sha256()
    for name in sorted(parts):
        for piece in (name.encode(), parts[name]):
            total.update(len(piece).to_bytes(8, "big"))
            total.update(piece)
    return total.hexdigest()


def inputs(course: Course) -> str:
    """Return a hash of all files and packages that a build depends on."""
    # Of this environment only: what is imported may add folders with more to sys.path.
    installed = distributions(path=[sysconfig.get_path("purelib")])
    packages = sorted(f"{found.name} {found.version}" for found in installed)
    parts = _contents(course.lessons, course.hopping, Path(__file__).parent)
    parts |= _contents(course.root / CONFIG, course.root / "requirements.lock")
    return digest(parts | {"": "\n".join([platform.python_version(), *packages]).encode()})


def is_built(course: Course) -> bool:
    """Whether everything is as the last build of this course left it."""
    try:
        return _note(course).read_text("utf-8") == f"{inputs(course)}\n{_outputs(course)}\n"
    except (OSError, ValueError):
        return False


def remember(course: Course, built_from: str) -> None:
    """Note that a build that read these `inputs` has written what there is now."""
    from autograder.journal import write_whole  # it imports much that `is_built` does without

    note = _note(course)
    try:
        write_whole(note, f"{built_from}\n{_outputs(course)}\n")
    except OSError:
        note.unlink(missing_ok=True)  # then the next build looks at everything again


def _note(course: Course) -> Path:
    # Beside the gradebook, which learns the cells in a build: both come and go together.
    return course.class_folder / ".built"


def _outputs(course: Course) -> str:
    made = _contents(course.source, course.release, course.solutions, course.examples)
    return digest(made | {"": str(course.gradebook.exists()).encode()})


def _contents(*places: Path) -> dict[str, bytes]:
    files = [file for place in places for file in (place, *place.rglob("*")) if file.is_file()]
    return {str(file): file.read_bytes() for file in files if "__pycache__" not in file.parts}
