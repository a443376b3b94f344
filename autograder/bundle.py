"""Pack what a learner needs into one zip file, and nothing else."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

from autograder.course import Course, CourseError, known_lessons
from autograder.leaks import leaks

ENVIRONMENT = "environment.yml"
START = "START.txt"
LOCAL_PACKAGE = "./course"  # how environment.yml names the package in the repository
EPOCH = (2020, 1, 1, 0, 0, 0)  # in every entry, so that the same content is the same file

GUIDE = """\
START HERE
==========

1. Install (once)

   With conda or mamba, in this folder:

       conda env create -f environment.yml
       conda activate {name}

   Without them, with Python 3.11 or newer:

       python3 -m venv lessons-env
       source lessons-env/bin/activate        (Windows: lessons-env\\Scripts\\activate)
       python -m pip install "./{wheel}[lab]"

2. Open

       jupyter lab

   Open the folder `lessons`, then the first lesson:

{lessons}

   Run each cell with Shift + Enter, from top to bottom. Where a cell says
   `raise NotImplementedError`, your own code goes. `check(...)` tells you at once
   whether it is right. Everything works without a network.

3. Hand in

   Save the notebook (Ctrl + S) and hand in the .ipynb file, the way your
   instructor told you. Keep its name. Do not delete or copy the cells it came
   with; you may add your own. If you like, choose Kernel > Restart Kernel and
   Run All Cells first, to see what your instructor will see.
"""


def write_bundle(course: Course, path: Path) -> list[str]:
    """Write the zip file to hand out.

    It holds the released notebooks, the learners' package as a wheel, the environment and a
    one-page guide. The same course gives the same bytes.

    Parameters
    ----------
    course : Course
        Built; with ``course/`` and ``environment.yml`` in its root.
    path : Path
        The zip file, replaced if it exists.

    Returns
    -------
    list of str
        The names of what is in it.

    Raises
    ------
    CourseError
        If something is missing, the wheel cannot be built, or a solution would be handed out.
    """
    with TemporaryDirectory() as scratch:
        wheel = build_wheel(course, Path(scratch))
        found = leaks(course, course.release, wheel)
        if found:
            raise CourseError(f"{found[0]}. Run `autograder build` before handing anything out.")
        content = _content(course, wheel)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(content):
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # the permissions below are those of Unix, wherever we are
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content[name])
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch_file = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        scratch_file.write_bytes(buffer.getvalue())
        os.replace(scratch_file, path)
    except BaseException:
        scratch_file.unlink(missing_ok=True)
        raise
    return sorted(content)


def build_wheel(course: Course, folder: Path) -> Path:
    """Build the learners' wheel from ``course/`` with what is installed, without a network.

    Raises
    ------
    CourseError
        If it cannot be built.
    """
    package = course.root / "course"
    if not (package / "pyproject.toml").is_file():
        raise CourseError(
            f"{package}: no pyproject.toml. The wheel can only be made in the course's repository."
        )
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=package, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        raise CourseError(f"{package}: its wheel cannot be built: {last}")
    return wheels[0]


def _content(course: Course, wheel: Path) -> dict[str, bytes]:
    lessons = {
        f"lessons/{path.parent.name}/{path.name}": path.read_bytes()
        for lesson in known_lessons(course)
        for path in sorted((course.release / lesson).glob("[!.]*.ipynb"))
    }
    if not lessons:
        raise CourseError(f"{course.release}: nothing in it. Run `autograder build` first.")
    environment = (course.root / ENVIRONMENT).read_text("utf-8")
    if f"- {LOCAL_PACKAGE}\n" not in environment:
        raise CourseError(f"{course.root / ENVIRONMENT}: it does not install {LOCAL_PACKAGE}.")
    guide = GUIDE.format(
        name=environment.split("name:", 1)[1].split()[0],
        wheel=wheel.name,
        lessons="\n".join(f"       {name}" for name in sorted(lessons)),
    )
    here = environment.replace(f"- {LOCAL_PACKAGE}\n", f"- ./{wheel.name}\n")
    return lessons | {
        wheel.name: wheel.read_bytes(),
        ENVIRONMENT: here.encode(),
        START: guide.encode(),
    }
