"""What all tests share: a test that needs a browser says so when there is none."""

import os
import shutil

import pytest


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
