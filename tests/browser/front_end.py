"""A real Jupyter server and a real browser for tests, and how to wait for them.

Also used by benchmarks/widgets.py. Nothing here is read from or written to the user's own
Jupyter settings, and every server and browser is ended by whoever started it.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import nbformat
from playwright.sync_api import Browser, ConsoleMessage, Error, Page, Request, sync_playwright

PATIENCE = 120_000  # ms for anything that waits for a kernel on a busy machine
CHROMIUM_SWITCHES = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]
# Nothing asks for news, nothing is left unrendered because it is out of sight.
SETTINGS = {
    "@jupyterlab/apputils-extension/notification": {
        "fetchNews": "false",
        "checkForUpdates": False,
        "doNotDisturbMode": True,
    },
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"},
}


@dataclass(frozen=True)
class Server:
    """A running Jupyter server: its address and the folder it shows."""

    url: str
    folder: Path
    app: str

    def address(self, notebook: str) -> str:
        """Return the page of a notebook in this server's front end.

        JupyterLab would reopen what earlier pages had open, with their kernels, but for `reset`.
        """
        if self.app == "lab":
            return f"{self.url}lab/tree/{notebook}?reset"
        return f"{self.url}notebooks/{notebook}"

    def write(self, name: str, *cells: str) -> str:
        """Put a notebook of code cells into the folder and return its name."""
        notebook = nbformat.v4.new_notebook()
        notebook.cells = [
            nbformat.v4.new_code_cell(cell, id=f"cell-{place}") for place, cell in enumerate(cells)
        ]
        notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
        nbformat.write(notebook, self.folder / name)
        return name


@contextmanager
def jupyter_server(scratch: Path, app: str = "lab") -> Iterator[Server]:
    """Start `jupyter lab` (or, with app="notebook", Notebook 7) on a free local port.

    Parameters
    ----------
    scratch : Path
        An empty folder for the notebooks, settings and logs of this server.
    app : str
        "lab" or "notebook".
    """
    folder, runtime = scratch / "notebooks", scratch / "runtime"
    folder.mkdir(parents=True)
    settings = scratch / "settings"
    for name, values in SETTINGS.items():
        file = settings / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values))
    own = {
        "JUPYTER_CONFIG_DIR": scratch / "config",
        "JUPYTER_DATA_DIR": scratch / "data",
        "JUPYTER_RUNTIME_DIR": runtime,
        "JUPYTERLAB_SETTINGS_DIR": settings,
        "JUPYTERLAB_WORKSPACES_DIR": scratch / "workspaces",
        "IPYTHONDIR": scratch / "ipython",
        "MPLCONFIGDIR": os.environ.get("MPLCONFIGDIR", scratch / "matplotlib"),
    }
    command = [
        sys.executable,
        "-m",
        "jupyterlab" if app == "lab" else "notebook",
        "--no-browser",
        "--expose-app-in-browser",
        "--ServerApp.ip=127.0.0.1",
        "--ServerApp.port=0",
        "--ServerApp.allow_root=True",
        "--IdentityProvider.token=",
        "--LabApp.extension_manager=readonly",
        f"--ServerApp.root_dir={folder}",
    ]
    with (scratch / "server.log").open("w") as log:
        server = subprocess.Popen(
            command,
            env=os.environ | {name: str(value) for name, value in own.items()},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        yield Server(_address(server, runtime, scratch / "server.log"), folder, app)
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _address(server: subprocess.Popen, runtime: Path, log: Path) -> str:
    deadline = time.monotonic() + PATIENCE / 1000
    while time.monotonic() < deadline and server.poll() is None:
        for file in runtime.glob("jpserver-*.json"):
            text = file.read_text()
            if text.endswith("}"):  # written completely
                return json.loads(text)["url"]
        time.sleep(0.1)
    raise RuntimeError(f"the Jupyter server did not start:\n{log.read_text()}")


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start headless Chromium: $CHROMIUM, Debian's, or the one Playwright installed."""
    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=CHROMIUM_SWITCHES)
        yield browser
        browser.close()


# Faults of the front ends themselves, seen on an empty notebook too.
KNOWN = ("Cannot read properties of undefined (reading 'schema')",)  # Notebook 7.6, shortcuts


@dataclass
class Faults:
    """What a page did that it must not: console errors, and requests to other hosts."""

    errors: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    def watch(self, page: Page) -> None:
        """Record the faults of a page from now on."""
        page.on("console", self._console)
        page.on("pageerror", self._uncaught)
        page.on("request", self._request)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(f"{message.text} ({message.location.get('url', '')})")

    def _uncaught(self, error: Error) -> None:
        if error.message not in KNOWN:
            self.errors.append(f"uncaught: {error.message}")

    def _request(self, request: Request) -> None:
        address = urlsplit(request.url)
        if address.scheme not in ("data", "blob", "about") and address.hostname != "127.0.0.1":
            self.elsewhere.append(request.url)

    def check(self) -> None:
        """Fail when there was any fault since the last check."""
        errors, self.errors = self.errors, []
        elsewhere, self.elsewhere = self.elsewhere, []
        assert not errors, "console errors: " + "; ".join(errors)
        assert not elsewhere, "requests elsewhere: " + "; ".join(elsewhere)


def open_notebook(page: Page, server: Server, name: str) -> None:
    """Open a notebook and wait until its kernel is connected and answers.

    A page that shows JupyterLab already goes on with it: to start it anew takes longer than most
    tests. The toolbar's idle mark is no sign of a kernel; the connection of the session is.
    """
    if page.url.startswith(f"{server.url}lab") and not page.locator(".jp-Dialog").count():
        page.evaluate(
            """async (path) => {
                await window.jupyterapp.commands.execute("docmanager:open", { path });
            }""",
            name,
        )
    else:
        page.goto(server.address(name))
        page.wait_for_function("() => window.jupyterapp", timeout=PATIENCE)
        page.evaluate("() => window.jupyterapp.restored")
    page.wait_for_function(
        """(name) => {
            const open = window.jupyterapp.shell.currentWidget;
            return open?.sessionContext && open.context.path === name;
        }""",
        arg=name,
        timeout=PATIENCE,
    )
    wait_for_kernel(page)


def wait_for_kernel(page: Page) -> None:
    """Wait until the kernel of the open notebook is connected and has answered a request."""
    page.evaluate(
        """async () => {
            const panel = window.jupyterapp.shell.currentWidget;
            await panel.context.ready;
            await panel.sessionContext.ready;
        }"""
    )
    page.wait_for_function(
        """() => {
            const kernel =
                window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel;
            return kernel?.connectionStatus === "connected" && kernel.status === "idle";
        }""",
        timeout=PATIENCE,
    )
    page.evaluate(
        """async () => {
            const { kernel } = window.jupyterapp.shell.currentWidget.sessionContext.session;
            await kernel.requestKernelInfo();
        }"""
    )


def run_all(page: Page) -> None:
    """Run all cells and wait until the last one is done, or one that may not fail has failed.

    A cell that waits for its turn counts as idle for JupyterLab; its number tells that it was run.
    """
    page.set_default_timeout(PATIENCE)
    page.evaluate(
        """async () => {
            for (const { model } of window.jupyterapp.shell.currentWidget.content.widgets)
                if (model.type === "code") model.executionCount = null;
            await window.jupyterapp.commands.execute("notebook:run-all-cells");
        }"""
    )
    page.wait_for_function(
        """() => {
            const { content } = window.jupyterapp.shell.currentWidget;
            const models = content.widgets.map((cell) => cell.model).filter(
                ({ type, sharedModel }) => type === "code" && sharedModel.source.trim());
            const mayFail = (model) => model.getMetadata("tags")?.includes("raises-exception");
            const failed = (model) => !mayFail(model)
                && model.outputs.toJSON().some(({ output_type }) => output_type === "error");
            const done = (model) => model.executionCount && model.executionState === "idle";
            const last = models.findIndex(failed);
            return models.slice(0, last < 0 ? undefined : last + 1).every(done);
        }""",
        timeout=PATIENCE,
    )


def run_cell(page: Page, place: int) -> None:
    """Run the cell at a place and wait until it is done."""
    page.evaluate(
        """async (place) => {
            const { content } = window.jupyterapp.shell.currentWidget;
            content.activeCellIndex = place;
            content.deselectAll();
            await window.jupyterapp.commands.execute("notebook:run-cell");
        }""",
        place,
    )


def set_cell(page: Page, place: int, source: str) -> None:
    """Replace the source of the cell at a place, as typing it would."""
    page.evaluate(
        """([place, source]) => {
            const { content } = window.jupyterapp.shell.currentWidget;
            content.widgets[place].model.sharedModel.setSource(source);
        }""",
        [place, source],
    )


def change_theme(page: Page, theme: str) -> None:
    """Switch to "JupyterLab Dark" or "JupyterLab Light"."""
    page.evaluate(
        """async (theme) => {
            await window.jupyterapp.commands.execute("apputils:change-theme", { theme });
        }""",
        theme,
    )
    page.wait_for_function(
        "(theme) => document.body.dataset.jpThemeName === theme", arg=theme, timeout=PATIENCE
    )


def close_notebook(page: Page) -> None:
    """End the kernel of the open notebook and close it, without asking whether to save it."""
    page.evaluate(
        """async () => {
            const open = window.jupyterapp?.shell.currentWidget;
            if (!open?.sessionContext) return;
            await open.sessionContext.shutdown();
            open.dispose();
        }"""
    )


@contextmanager
def resized(page: Page, width: int, zoom: float = 1) -> Iterator[None]:
    """Give a page another width for a while, with so many device pixels to one of its own.

    A browser's zoom of 200 % halves the width and doubles the device pixels.
    """
    usual = page.viewport_size
    measures = {"width": width, "height": usual["height"], "deviceScaleFactor": zoom}
    session = page.context.new_cdp_session(page)
    page.set_viewport_size({"width": width, "height": usual["height"]})
    session.send("Emulation.setDeviceMetricsOverride", measures | {"mobile": False})
    try:
        yield
    finally:
        session.detach()
        page.set_viewport_size(usual)
