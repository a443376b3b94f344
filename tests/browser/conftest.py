"""Fixtures: one server and one browser a session, one page a test that must stay without faults."""

import pytest
from jupyter import Faults, chromium, jupyter_server


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


@pytest.fixture
def faults():
    return Faults()


@pytest.fixture
def page(browser_program, faults):
    context = browser_program.new_context(viewport={"width": 1280, "height": 1400})
    page = context.new_page()
    faults.watch(page)
    yield page
    context.close()
    faults.check()
