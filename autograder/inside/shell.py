"""An IPython shell that keeps what cells print and show, as a kernel would send it."""

from __future__ import annotations

import base64
import io
import json
import os
import zlib
from types import TracebackType
from typing import Any

from IPython.core.compilerop import CachingCompiler
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.error import StdinNotImplementedError
from IPython.core.interactiveshell import InteractiveShell
from traitlets import Type
from traitlets.config import Config

OUTPUTS = 500  # of one cell
FRAMES = 60  # of an error: an endless recursion has thousands, which take IPython half a minute
CUT = "\n... (more was printed; the rest is not kept)\n"


class Record:
    """The outputs of the cell that runs now, in nbformat's form, up to a number of bytes."""

    def __init__(self) -> None:
        self.start(0)

    def start(self, limit: int) -> None:
        """Forget everything and keep up to `limit` bytes from now on."""
        self.outputs: list[dict[str, Any]] = []
        self.updates: list[dict[str, Any]] = []
        self.cut = False
        self._room = limit
        self._clear_next = False

    def text(self, name: str, text: str) -> None:
        """Add text to a stream; text that follows text of the same stream joins it."""
        self._clear_if_told()
        if not text or self.cut:
            return
        if len(text) > self._room:
            text, self.cut = text[: self._room] + CUT, True
        self._room -= len(text)
        last = self.outputs[-1] if self.outputs else {}
        if last.get("output_type") == "stream" and last["name"] == name:
            # Pieces are joined when the cell is done: adding them up one by one takes
            # quadratic time.
            last["text"].append(text)
        elif len(self.outputs) < OUTPUTS:
            self.outputs.append({"output_type": "stream", "name": name, "text": [text]})

    def add(self, output: dict[str, Any]) -> None:
        """Add an output; what does not fit is left out."""
        self._clear_if_told()
        output = _as_json(output)
        if self._fits(output):
            self.outputs.append(output)

    def update(self, data: dict[str, Any], metadata: dict[str, Any], display_id: str) -> None:
        """Change what an earlier display shows, in this cell or in one before."""
        change = _as_json({"display_id": display_id, "data": data, "metadata": metadata})
        if self._fits(change):
            self.updates.append(change)

    def clear(self, wait: bool) -> None:
        """Forget the outputs, at once or before the next one."""
        self._clear_next = wait
        if not wait:
            self.outputs.clear()

    def finish(self) -> list[dict[str, Any]]:
        """Return the outputs of the cell."""
        for output in self.outputs:
            if output["output_type"] == "stream":
                output["text"] = "".join(output["text"])
        return self.outputs

    def _fits(self, output: dict[str, Any]) -> bool:
        size = len(json.dumps(output))
        if size > self._room or len(self.outputs) + len(self.updates) >= OUTPUTS:
            self.cut = True
            return False
        self._room -= size
        return True

    def _clear_if_told(self) -> None:
        if self._clear_next:
            self._clear_next = False
            self.outputs.clear()


class Stream(io.TextIOBase):
    """Standard output or error of a cell."""

    encoding = "UTF-8"

    def __init__(self, record: Record, name: str, descriptor: int) -> None:
        self._record, self._name, self._descriptor = record, name, descriptor

    def write(self, text: str) -> int:
        """Keep `text`."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text)}")
        self._record.text(self._name, text)
        return len(text)

    def writable(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """Return the descriptor for programs that write past Python."""
        return self._descriptor


class Descriptors:
    """What is written to the descriptors 1 and 2 past Python: by C code, by other programs."""

    def __init__(self, folder: str) -> None:
        self._files = {}
        for name, descriptor in (("stdout", 1), ("stderr", 2)):
            path = os.path.join(folder, f".{name}")
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            os.unlink(path)
            os.dup2(file, descriptor)
            self._files[name] = file

    def collect(self, record: Record, limit: int) -> None:
        """Move what has been written since into `record`."""
        for name, file in self._files.items():
            size = os.fstat(file).st_size
            if size:
                record.text(name, os.pread(file, min(size, limit + 1), 0).decode(errors="replace"))
                os.ftruncate(file, 0)


class Hook(DisplayHook):
    """Keeps the value of a cell's last expression."""

    def write_output_prompt(self) -> None:
        """Write nothing: the count is part of the output."""

    def write_format_data(self, format_dict: dict, md_dict: dict | None = None) -> None:
        """Keep the value in all its forms."""
        self.shell.record.add(
            {
                "output_type": "execute_result",
                "execution_count": self.prompt_count,
                "data": format_dict,
                "metadata": md_dict or {},
            }
        )

    def finish_displayhook(self) -> None:
        """Write nothing."""
        self._is_active = False


class Publisher(DisplayPublisher):
    """Keeps what a cell displays."""

    def publish(  # noqa: D102
        self, data, metadata=None, *, transient=None, update=False, **kwargs
    ) -> None:
        self._validate_data(data, metadata)
        display_id = (transient or {}).get("display_id")
        if update:
            self.shell.record.update(data, metadata or {}, display_id)
            return
        output = {"output_type": "display_data", "data": data, "metadata": metadata or {}}
        self.shell.record.add({**output, "display_id": display_id} if display_id else output)

    def clear_output(self, wait: bool = False) -> None:
        """Clear what the cell has shown so far."""
        self.shell.record.clear(wait)


class Compiler(CachingCompiler):
    """Names a cell as a kernel does, on which depends how IPython shows an error in it."""

    def get_code_name(self, raw_code: str, code: str, number: int) -> str:
        """Return the file name that stands for a cell."""
        return f"/tmp/ipykernel/{zlib.crc32(raw_code.encode(errors='replace'))}.py"


class Shell(InteractiveShell):
    """IPython without a terminal and without a front end."""

    compiler_class = Type(Compiler)
    displayhook_class = Type(Hook)
    display_pub_class = Type(Publisher)
    autoindent = False

    def __init__(self, record: Record, **kwargs: Any) -> None:
        self.record = record
        super().__init__(**kwargs)

    def _get_exc_info(self, exc_tuple: tuple | None = None) -> tuple:
        etype, evalue, tb = super()._get_exc_info(exc_tuple)
        error = evalue
        for _ in range(FRAMES):
            if error is None:
                break
            _shorten(error.__traceback__)
            error = error.__cause__ or error.__context__
        return etype, evalue, tb

    def _format_exception_for_storage(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Keep nothing: it would be formatted twice, and nobody reads this history."""
        return {}

    def ask_exit(self) -> None:
        """Do nothing for `exit()`: the cells after it still run."""

    def _showtraceback(self, etype: type, evalue: BaseException, stb: list[str]) -> None:
        self.record.add(
            {
                "output_type": "error",
                "ename": etype.__name__,
                "evalue": str(evalue),
                "traceback": stb,
            }
        )

    def init_environment(self) -> None:
        """Ask other programs for what they ask in a notebook: colours, no pager."""
        os.environ.update(
            TERM="xterm-color",
            CLICOLOR="1",
            FORCE_COLOR="1",
            CLICOLOR_FORCE="1",
            PAGER="cat",
            GIT_PAGER="cat",
        )

    def enable_gui(self, gui: str | None = None) -> None:
        """Do nothing: there is no window."""


def make_shell(folder: str) -> Shell:
    """Return a shell with matplotlib's inline figures, ready to run cells.

    Parameters
    ----------
    folder : str
        Where IPython may keep its profile.
    """
    config = Config()
    config.HistoryAccessor.enabled = False
    config.HistoryManager.enabled = False
    os.environ["IPYTHONDIR"] = os.path.join(folder, ".ipython")
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    return Shell.instance(Record(), config=config)


def _shorten(tb: TracebackType | None) -> None:
    """Leave out the middle of a very long traceback."""
    frames = []
    while tb is not None:
        frames.append(tb)
        tb = tb.tb_next
    if len(frames) > FRAMES:
        frames[FRAMES // 2].tb_next = frames[-FRAMES // 2]


def no_input(prompt: object = "") -> str:
    """Refuse to ask: nobody is there to answer."""
    raise StdinNotImplementedError(
        "raw_input was called, but this frontend does not support input requests."
    )


def _as_json(value: Any) -> Any:
    """Return a copy that JSON can hold; what it cannot hold is written as text."""
    return json.loads(json.dumps(value, default=_plain_text))


def _plain_text(value: Any) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
