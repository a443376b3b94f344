"""Make this folder an nbgrader course, for nbgrader's own commands as for `autograder`.

source/ and release/ are part of the course. Everything that belongs to a running class
(submissions, grades, feedback, the gradebook) stays together in class/, outside version control.
"""

import contextlib
import os
import sys

from sqlalchemy import URL

c = get_config()  # noqa: F821 -- nbgrader supplies it

root = os.path.dirname(os.path.abspath(__file__))
with contextlib.suppress(OSError):  # in a read-only folder the gradebook says it better
    os.makedirs(os.path.join(root, "class"), exist_ok=True)

# nbgrader runs `alembic` by name when it makes a gradebook. It is installed beside Python, which
# is not on the PATH when nbgrader is called by its full name.
programs = os.path.dirname(sys.executable)
if programs not in os.environ.get("PATH", "").split(os.pathsep):
    os.environ["PATH"] = os.pathsep.join([programs, os.environ.get("PATH", os.defpath)])

c.CourseDirectory.root = root
c.CourseDirectory.submitted_directory = os.path.join("class", "submitted")
c.CourseDirectory.autograded_directory = os.path.join("class", "autograded")
c.CourseDirectory.feedback_directory = os.path.join("class", "feedback")
# The time-out is how many seconds a writer waits for another one; by default it is 5.
c.CourseDirectory.db_url = URL.create(
    "sqlite", database=os.path.join(root, "class", "gradebook.db"), query={"timeout": "60"}
).render_as_string(hide_password=False)
# Of a source folder only notebooks are released. nbgrader copies every other file, so what
# editors and systems leave behind is named here; `autograder build` refuses the rest.
c.CourseDirectory.ignore = ["__pycache__", "*.py", "*.pyc", "*.bak", "*~", ".*", "feedback"]

# A stub brings its own `raise NotImplementedError`; nothing is put in a solution's place.
c.ClearSolutions.code_stub = {"python": ""}
c.ClearSolutions.text_stub = "*Write your answer here.*"

# What students wrote and showed appears in formgrader and in nbgrader's own feedback. There it must
# not run with an instructor's rights, so no HTML or JavaScript of theirs comes through unread.
c.HTMLExporter.sanitize_html = True
c.HTMLExporter.filters = {
    "markdown2html": "autograder.safe_html.markdown_filter",
    "clean_html": "autograder.safe_html.clean",
}
c.WidgetsDataTypeFilter.display_data_priority = [
    *("text/html", "image/png", "image/jpeg", "image/svg+xml"),
    *("text/markdown", "text/latex", "text/plain"),
]
