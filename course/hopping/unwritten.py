"""Say in one sentence, where a notebook would show a traceback, what is not written yet.

A given cell that calls a stub cannot go on, and neither can a cell that uses what it would have
made. Both are no mistake of the learner's, who may well run all cells before writing anything.
"""

from __future__ import annotations

import ast
import dis
import inspect
import linecache
import sys
import textwrap
import traceback
from types import CodeType, FrameType, TracebackType
from typing import Any

LEFT_OVER = "the line `raise NotImplementedError` is still there. Return your result instead of it."
_awaited: dict[str, str] = {}  # names that a cell would have made, and the stub that stopped it


def speak_in_notebooks() -> None:
    """Show the sentences in the kernel that runs now, unless somebody else has a say in it."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is not None and not shell.custom_exceptions:
        shell.set_custom_exc((NotImplementedError, NameError), _show)


def _show(
    shell: Any,
    kind: type[BaseException],
    error: BaseException,
    trace: TracebackType,
    tb_offset: int | None = None,
) -> None:
    frames = [frame for frame, _ in traceback.walk_tb(trace)]
    sentence = _sentence(error, [f for f in frames if f.f_globals is shell.user_global_ns], frames)
    if sentence:
        error._render_traceback_ = lambda: [sentence]
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset)


def _sentence(error: BaseException, own: list[FrameType], frames: list[FrameType]) -> str:
    """Return what to say instead of a traceback, "" where the traceback is worth reading."""
    if not own or own[-1] is not frames[-1]:  # raised within a library
        return ""
    if isinstance(error, NotImplementedError):
        stub = own[-1].f_code.co_name
        if error.args or not stub.isidentifier():
            return ""
        sentence = f"not written yet: {stub}"
        if is_started(own[-1].f_code):
            sentence = f"{stub}: {LEFT_OVER}"
    else:
        name = getattr(error, "name", None)
        stub = _awaited.get(name, "")
        if not stub:  # a slip of the pen
            return ""
        sentence = (
            f"not there yet: {name}. A cell above makes it, and needs {stub}. Write that function, "
            "then run that cell and this one."
        )
    _awaited.update(dict.fromkeys(_made_by(own[0].f_code.co_filename), stub))
    return sentence


def _made_by(cell: str) -> list[str]:
    """Return the names that a cell makes, none if it is not plain Python."""
    try:
        code = compile("".join(linecache.getlines(cell)), cell, "exec")
    except SyntaxError:
        return []
    return [step.argval for step in dis.get_instructions(code) if step.opname == "STORE_NAME"]


def is_started(code: CodeType | None) -> bool:
    """Whether a function holds more than a docstring and ``raise NotImplementedError``.

    Parameters
    ----------
    code : code object or None
        The function's code; without one, or without its source, the answer is False.
    """
    try:
        (function,) = ast.parse(textwrap.dedent(inspect.getsource(code))).body
        body = function.body
    except Exception:  # what cannot be read holds nothing that is known
        return False
    return isinstance(body, list) and not all(map(_is_no_code, body))


def _is_no_code(step: ast.stmt) -> bool:
    if isinstance(step, ast.Raise):
        return "NotImplementedError" in ast.dump(step)
    return isinstance(step, ast.Pass) or (
        isinstance(step, ast.Expr) and isinstance(step.value, ast.Constant)
    )
