"""Read what a student handed in for a lesson, without trusting names, sizes or links."""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from autograder.submission import SIZE_LIMIT

FILE_LIMIT = 50
TIMESTAMP = "timestamp.txt"  # nbgrader writes it when it collects a submission


@dataclass(frozen=True)
class HandedIn:
    """The files of one submission.

    Attributes
    ----------
    files : dict
        Contents by name: the lesson's notebook, or all there is if it is not there.
    others : tuple of str
        Names of notebooks that are not looked at.
    timestamp : str
        What nbgrader noted about the time, "" if nothing.
    """

    files: dict[str, bytes] = field(repr=False)
    others: tuple[str, ...] = ()
    timestamp: str = ""

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all of it."""
        total = hashlib.sha256()
        for name, content in sorted(self.files.items()):
            total.update(f"{name}\0{hashlib.sha256(content).hexdigest()}\n".encode(*LOSSLESS))
        total.update("\0".join(("", *self.others, self.timestamp)).encode(*LOSSLESS))
        return total.hexdigest()


LOSSLESS = ("utf-8", "surrogateescape")  # for names that are no text


def read_handed_in(folder: Path, wanted: str) -> HandedIn | None:
    """Return what lies in a folder, or None if nothing does.

    Parameters
    ----------
    folder : Path
        ``class/submitted/<student>/<lesson>``.
    wanted : str
        The name of the lesson's notebook.

    Raises
    ------
    OSError
        If a file cannot be read, or the notebook is a link to a file elsewhere: that could be
        anybody's.
    """
    if _leads_away(folder / wanted, folder):
        words = "a link to a file elsewhere. Put the file itself there, and grade again"
        raise OSError(errno.EXDEV, words, str(folder / wanted))
    names = {path.relative_to(folder).as_posix(): path for path in _files(folder)}
    if not names:
        return None
    notebooks = tuple(name for name in names if name.endswith(".ipynb") and name != wanted)
    stamp = names.get(TIMESTAMP)
    timestamp = _head(stamp, 100).decode("utf-8", "replace").strip() if stamp else ""
    if wanted in names:
        return HandedIn({wanted: _head(names[wanted], SIZE_LIMIT + 1)}, notebooks, timestamp)
    files, room = {}, 2 * SIZE_LIMIT
    for name, path in list(names.items())[:FILE_LIMIT]:
        if name != TIMESTAMP:
            files[name] = _head(path, min(SIZE_LIMIT + 1, room))
            room -= len(files[name])
    return HandedIn(files, (), timestamp) if files else None


def _files(folder: Path) -> Iterator[Path]:
    """Yield a folder's files in order of their names."""
    for path in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if not hidden and path.is_file() and not _leads_away(path, folder):
            yield path


def _leads_away(path: Path, folder: Path) -> bool:
    try:
        return not path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # links that lead in a circle
        return True


def _head(path: Path, most: int) -> bytes:
    with path.open("rb") as file:
        return file.read(most)
