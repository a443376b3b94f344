"""What all tests share: no browser tests without a browser; one warm sandbox for all classes."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest
from classroom import copy_course, make_course

from autograder import pool, worker


def pytest_collection_modifyitems(items):
    """Skip browser tests without Chromium, except in continuous integration: there they fail."""
    if os.environ.get("CI") == "true" or os.environ.get("CHROMIUM"):
        return
    if shutil.which("chromium") or shutil.which("chrome"):
        return
    skip = pytest.mark.skip(reason="no Chromium: install it, or name it in $CHROMIUM")
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(skip)


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    """Make the small course of `classroom` once."""
    return make_course(tmp_path_factory.mktemp("template") / "course")


@pytest.fixture
def course(template, tmp_path):
    """Give a copy of that course which a test may change."""
    return copy_course(template, tmp_path / "course")


@pytest.fixture(scope="session")
def warm_worker():
    """Give an executor with one worker, which keeps its sandbox from one test to the next."""
    with ThreadPoolExecutor(1) as executor:
        yield executor
        executor.submit(worker._close_sandbox).result()


@pytest.fixture
def no_pool(warm_worker, monkeypatch):
    """Let grading use the warm worker instead of starting processes of its own."""
    monkeypatch.setattr(pool, "process_pool", lambda workers: nullcontext(warm_worker))
