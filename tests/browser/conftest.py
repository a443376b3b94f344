"""Fixtures: one server and one page a session, and no test may leave faults on a page."""

import pytest
from front_end import Faults, chromium, jupyter_server


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    with jupyter_server(tmp_path_factory.mktemp("lab") / "server") as server:
        yield server


@pytest.fixture(scope="session")
def classic(tmp_path_factory):
    with jupyter_server(tmp_path_factory.mktemp("classic") / "server", "notebook") as server:
        yield server


@pytest.fixture(scope="session")
def browser_program():
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
def faults():
    return Faults()


@pytest.fixture(autouse=True)
def no_faults(faults):
    yield
    faults.check()


def new_page(browser, faults):
    page = browser.new_page(viewport={"width": 1280, "height": 1400})
    faults.watch(page)
    return page


@pytest.fixture(scope="session")
def page(browser_program, faults):
    """Return the page that most tests use, one after the other."""
    page = new_page(browser_program, faults)
    yield page
    page.close()


@pytest.fixture
def own_page(browser_program, faults):
    """Return a page for a test that must start JupyterLab itself."""
    page = new_page(browser_program, faults)
    yield page
    page.close()
