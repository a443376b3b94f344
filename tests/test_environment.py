"""The learners' environment, the two packages and the lock file must not contradict each other."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
INSTRUCTORS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
LEARNERS = tomllib.loads((ROOT / "course" / "pyproject.toml").read_text("utf-8"))["project"]
LOCK = [Requirement(line) for line in (ROOT / "requirements.lock").read_text("utf-8").splitlines()]


def requirements(project):
    extras = project.get("optional-dependencies", {}).values()
    lines = [*project["dependencies"], *(line for extra in extras for line in extra)]
    return [Requirement(line) for line in lines if Requirement(line).name != "hopping"]


def test_environment_yml_asks_for_what_the_learners_package_asks_for():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text("utf-8"))
    conda = [line for line in environment["dependencies"] if isinstance(line, str)]
    theirs = {r.name: str(r.specifier) for r in map(Requirement, conda) if r.name != "pip"}
    ours = {r.name: str(r.specifier) for r in requirements(LEARNERS)}
    assert theirs == ours | {"python": LEARNERS["requires-python"]}


def test_environment_yml_installs_the_learners_package_and_nothing_else_with_pip():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text("utf-8"))
    (pip,) = [line["pip"] for line in environment["dependencies"] if isinstance(line, dict)]
    assert pip == ["./course"]
    assert environment["channels"] == ["conda-forge"]


def test_both_packages_take_the_same_versions_of_python():
    assert INSTRUCTORS["requires-python"] == LEARNERS["requires-python"]


@pytest.mark.parametrize("python", ["3.11.7", "3.12.1", "3.14.0"])
@pytest.mark.parametrize("project", [INSTRUCTORS, LEARNERS], ids=["autograder", "hopping"])
def test_the_lock_satisfies_the_packages(project, python):
    here = {"python_full_version": python, "python_version": python.rpartition(".")[0]}
    locked = {}
    for pin in LOCK:
        if pin.marker is None or pin.marker.evaluate(here):
            assert pin.name not in locked
            locked[pin.name] = str(pin.specifier).removeprefix("==")
    for wanted in requirements(project):
        assert wanted.specifier.contains(locked[wanted.name]), f"{wanted}: {locked[wanted.name]}"


def test_the_lock_is_exact_and_names_no_host():
    assert all(re.fullmatch(r"==[\w.]+", str(pin.specifier)) for pin in LOCK)
    assert not any(pin.url for pin in LOCK)
    assert "://" not in (ROOT / "requirements.lock").read_text("utf-8")


def test_the_learners_package_brings_no_framework():
    assert {r.name for r in map(Requirement, LEARNERS["dependencies"])} == {
        "numpy",
        "scipy",
        "matplotlib",
        "ipywidgets",
        "anywidget",
    }
