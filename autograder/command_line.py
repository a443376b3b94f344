"""The command `autograder`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from autograder.course import Course, CourseError, declared_exercises
from autograder.printable import printable

# What a command needs is imported when it runs, so that --help is there at once.

DONE, SOME_MISSING, USAGE, STOPPED = 0, 1, 2, 130

ABOUT = """\
Build, hand out and grade a course of Jupyter notebooks.

A course is a folder with nbgrader_config.py. Its running class is in class/:
class/submitted/<student>/<lesson>/<notebook>.ipynb is what students handed in.
"""

EXIT_CODES = """\
exit codes:
  0  done
  1  `grade` and `demo`: done, but something is missing or could not be graded;
     the table says what and why
  2  a wrong argument, a file that must be put right first, or a class that is
     being graded already
"""

EXAMPLES = {
    None: """\
a course from beginning to end:
  autograder build                  after changing a lesson's text
  autograder release --bundle       the zip file to hand out
  autograder grade                  after collecting what was handed in
  autograder feedback               a page for each student
  autograder demo                   all of it, with a sample class
""",
    "build": """\
examples:
  autograder build                  build what is not up to date
""",
    "release": """\
examples:
  autograder release                all lessons
  autograder release --lesson 01_lse_gradient
  autograder release --bundle       also write dist/lessons.zip to hand out
""",
    "grade": """\
examples:
  autograder grade                  all that is new or has changed
  autograder grade --student ana --lesson 01_lse_gradient --force
  autograder grade --json > results.json

Put submissions into class/submitted/<student>/<lesson>/<notebook>.ipynb.
Points go to class/gradebook.db (formgrader shows it), graded notebooks to
class/autograded, the table to class/grades.csv, and what the run did to
class/grade.log. A run that was stopped goes on with the same command. What
one submission may use is set in nbgrader_config.py, like
c.Limits.cell_seconds = 60.
""",
    "feedback": """\
examples:
  autograder feedback               class/feedback/<student>/<lesson>/*.html
  autograder feedback --student ana

Grade first, and give the manual points in formgrader if there are any.
""",
    "export": """\
examples:
  autograder export                 class/grades.csv, with the points of this moment
  autograder export --to grades.csv
""",
    "demo": """\
examples:
  autograder demo                   in a temporary folder, which is named and kept
  autograder demo --into build/sample-class

The class has students who are right, who wrote nothing, who make each known
mistake, who end Python in one answer (which costs that answer alone), who
handed nothing in, and whose file is no notebook. So the exit code is 1: not
everything could be graded.
""",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a name in a strange encoding must not stop a table
            stream.reconfigure(errors="backslashreplace")
    options = _parser().parse_args(arguments)
    if sys.getfilesystemencoding() != "utf-8":  # a student's folder could not be named
        return _fail(
            f"Python reads the names of files here as {sys.getfilesystemencoding()}, not as utf-8, "
            "so that a student's folder may not be found. Set PYTHONUTF8=1 and run this again."
        )
    try:
        return options.run(options)
    except CourseError as error:
        return _fail(str(error))
    except OSError as error:
        from autograder.outcome import explain_os_error

        return _fail(explain_os_error(error))
    except KeyboardInterrupt:
        print("\nautograder: stopped. The same command goes on from here.", file=sys.stderr)
        return STOPPED


def _fail(message: str) -> int:
    for line in message.split("\n"):
        print(f"autograder: {printable(line)}", file=sys.stderr)
    return USAGE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "autograder",
        description=ABOUT,
        epilog=f"{EXAMPLES[None]}\n{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def add(name: str, run: object, summary: str) -> argparse.ArgumentParser:
        command = commands.add_parser(
            name,
            help=summary,
            description=summary[0].upper() + summary[1:] + ".",
            epilog=f"{EXAMPLES[name]}\n{EXIT_CODES}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_argument(
            "--course",
            metavar="FOLDER",
            type=Path,
            help="the course's folder (default: this folder or the first one above it with "
            "nbgrader_config.py)",
        )
        command.set_defaults(run=run)
        return command

    add("build", _build, "build source, release, solutions and examples from the lessons' texts")

    release = add("release", _release, "make release/ from source/ and tell the gradebook")
    _add_lesson(release)
    release.add_argument(
        "--bundle",
        metavar="FILE",
        nargs="?",
        const="",
        help="also write one zip file with all that learners need (default: dist/lessons.zip in "
        "the course)",
    )

    grade = add("grade", _grade, "grade what was handed in")
    _add_lesson(grade)
    _add_student(grade)
    grade.add_argument("--json", action="store_true", help="print JSON instead of the table")
    grade.add_argument(
        "--force", action="store_true", help="run everything again, also what has not changed"
    )
    _add_workers(grade)

    feedback = add("feedback", _feedback, "write a page for each student and lesson")
    _add_lesson(feedback)
    _add_student(feedback)

    export = add("export", _export, "write the results as CSV, one row a student and lesson")
    export.add_argument(
        "--to", metavar="FILE", type=Path, help="where (default: class/grades.csv in the course)"
    )

    demo = add("demo", _demo, "assemble a sample class, grade it and show the result")
    demo.add_argument(
        "--into",
        metavar="FOLDER",
        type=Path,
        help="a new folder, or an earlier sample class to replace (default: a temporary one)",
    )
    _add_workers(demo)
    return parser


def _add_lesson(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--lesson",
        metavar="NAME",
        action="append",
        default=[],
        help="only this lesson, like 01_lse_gradient; may be given several times",
    )


def _add_workers(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--workers",
        metavar="N",
        type=_count,
        help="how many submissions run at the same time (default: as many as there are processors)",
    )


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of workers: 1, 2, ...")
    return int(text)


def _add_student(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--student",
        metavar="NAME",
        action="append",
        default=[],
        help="only this student; may be given several times",
    )


def _course(options: argparse.Namespace) -> Course:
    if options.course is None:
        return Course.find()
    if not (options.course / "nbgrader_config.py").is_file():
        raise CourseError(
            f"{options.course}: no course here, because nbgrader_config.py is missing. "
            "Name the course's folder."
        )
    return Course(options.course)


# --- The commands ------------------------------------------------------------------------------


def _build(options: argparse.Namespace) -> int:
    from autograder.built import inputs, is_built, remember

    course = _course(options)
    changed = []
    if not is_built(course):
        from autograder.build import build

        built_from = inputs(course)  # before, because a text may be edited meanwhile
        changed = build(course, declared_exercises(), progress=_say)
        remember(course, built_from)
    _say("\n".join(f"changed: {name}" for name in changed) or "Everything was up to date.")
    return DONE


def _release(options: argparse.Namespace) -> int:
    from autograder.bundle import write_bundle
    from autograder.course import known_lessons
    from autograder.releasing import release_assignment

    course = _course(options)
    lessons = options.lesson or known_lessons(course)
    if not lessons:
        raise CourseError(f"{course.source}: no lesson in it. Run `autograder build` first.")
    for lesson in lessons:
        changed = release_assignment(course, lesson)
        _say(f"release/{lesson}: {'written' if changed else 'up to date'}")
    if options.bundle is not None:
        path = Path(options.bundle) if options.bundle else course.root / "dist" / "lessons.zip"
        names = write_bundle(course, path)
        _say("\n".join([f"{path} holds", *(f"  {name}" for name in names)]))
    return DONE


def _grade(options: argparse.Namespace) -> int:
    from autograder.grading import grade_class
    from autograder.report import as_json, table
    from autograder.results import stray_notebooks

    course = _course(options)
    results = grade_class(
        course, options.student, options.lesson, force=options.force, workers=options.workers
    )
    print(as_json(results) if options.json else table(results), flush=True)
    for sentence in stray_notebooks(course):
        print(f"autograder: {sentence}", file=sys.stderr)
    return _exit_code(results)


def _feedback(options: argparse.Namespace) -> int:
    from autograder.feedback import write_feedback
    from autograder.report import counted, summary

    course = _course(options)
    results = _chosen(course, options.student, options.lesson)
    pages = write_feedback(course, results)
    _say(f"{counted(len(pages), 'page')} in {course.feedback}")
    _say(summary(results))
    return DONE


def _export(options: argparse.Namespace) -> int:
    from autograder.report import counted, summary, write_csv
    from autograder.results import collect

    course = _course(options)
    results = collect(course)
    path = options.to or course.grades
    write_csv(path, results)
    _say(f"{counted(len(results), 'row')} in {path}")
    _say(summary(results))
    return DONE


def _demo(options: argparse.Namespace) -> int:
    from autograder.course import known_lessons
    from autograder.demo import assemble
    from autograder.feedback import write_feedback
    from autograder.grading import grade_class
    from autograder.releasing import release_assignment
    from autograder.report import table

    course = _course(options)
    folder = options.into or Path(tempfile.mkdtemp(prefix="sample-class-"))
    _say("Assembling a sample class from the exercises' own right and wrong answers ...")
    sample = assemble(course, folder, declared_exercises())
    for lesson in known_lessons(sample):
        release_assignment(sample, lesson)
    results = grade_class(sample, workers=options.workers)
    write_feedback(sample, results)
    print(table(results))
    print(f"\nCSV        {sample.grades}")
    print(f"feedback   {sample.feedback}")
    print(f"log        {sample.class_folder / 'grade.log'}")
    print("\nThe exit code is 1, because some of this class could not be graded or is missing.")
    return _exit_code(results)


def _chosen(course: Course, students: Sequence[str], lessons: Sequence[str]) -> list:
    """Return the results asked for, and refuse names that nobody has."""
    from autograder.course import known_lessons
    from autograder.results import collect

    results = collect(course)
    in_course = set(known_lessons(course))
    for who, asked, known in (
        ("student called {} handed anything in", students, {r.student for r in results}),
        ("lesson called {} was handed in", lessons, {r.lesson for r in results} & in_course),
    ):
        for name in asked:
            if name not in known:
                raise CourseError(
                    f"{course.submitted}: no {who.format(name)}. "
                    f"Known: {', '.join(sorted(known)) or 'none'}."
                )
    return [
        result
        for result in results
        if (not students or result.student in students)
        and (not lessons or result.lesson in lessons)
    ]


def _exit_code(results: Sequence) -> int:
    return DONE if all(result.graded for result in results) else SOME_MISSING


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
