"""What every lesson must hold: ten parts, true examples, questions that agree with themselves."""

import ast
import doctest
import html
import json
import re
from pathlib import Path

import nbformat
import numpy as np
import pytest
from nbconvert import HTMLExporter

from autograder.exercises import load

ROOT = Path(__file__).parents[1]
TEXTS = sorted((ROOT / "course" / "lessons").glob("*.py"))
PARTS = (
    "challenge",
    "warm_up",
    "predict",
    "model",
    "practice",
    "see_it",
    "claim",
    "retrieve",
    "project",
    "limits",
)


def cells(path):
    """Return the cells of a lesson's text as (header, body)."""
    pieces = re.split(r"^# %%(.*)$", path.read_text("utf-8"), flags=re.MULTILINE)[1:]
    return list(zip(pieces[::2], pieces[1::2], strict=True))


def solution(path):
    """Return the executed solution notebook of a lesson."""
    folder = ROOT / "solutions" / path.stem
    return nbformat.read(next(folder.glob("*.ipynb")), as_version=4)


def prose(path):
    """Return the text cells of a lesson without the comment signs."""
    texts = [body for header, body in cells(path) if "[markdown]" in header]
    return "\n".join(re.sub(r"^# ?", "", text, flags=re.MULTILINE) for text in texts)


def printed_options(path):
    """Return {question: {letter: words}} as the learner reads them."""
    found = {}
    questions = re.findall(r"\*\*([wq]\d)\.\*\*(.*?)(?=\n\n|\Z)", prose(path), flags=re.DOTALL)
    for name, text in questions:
        options = re.findall(r"\(([a-d])\) (.*?)(?= · \(|\Z)", text.strip(), flags=re.DOTALL)
        found[name] = {letter: words.strip(" .`\n") for letter, words in options}
    return found


def measured_options(path):
    """Return {question: {letter: value}} as the code picks from them."""
    code = "\n".join(body for header, body in cells(path) if "[markdown]" not in header)
    found = {}
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(value, ast.Lambda) and isinstance(key, ast.Constant):
                    call = value.body
                    found[key.value] = {k.arg: ast.literal_eval(k.value) for k in call.keywords}
    return found


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: p.stem)
class TestLesson:
    def test_has_its_ten_parts_in_order(self, path):
        names = re.findall(r'(?:name=|"grade_id": )"(\w+)"', "".join(h for h, _ in cells(path)))
        assert [name for name in names if name in PARTS] == list(PARTS)

    def test_offers_the_options_that_it_measures(self, path):
        printed, measured = printed_options(path), measured_options(path)
        assert set(printed) == set(measured)
        assert sum(name.startswith("q") for name in printed) in (3, 4, 5)
        for question, options in measured.items():
            assert list(options) == ["a", "b", "c", "d"]
            for letter, value in options.items():
                words = printed[question][letter]
                if isinstance(value, str):
                    assert words.replace("`", "") == value, (question, letter)
                else:
                    number = re.search(r"-?[\d.]+(?:e-?\d+)?", words.replace(" 000", "000"))
                    assert float(number.group().rstrip(".")) == value, (question, letter)

    def test_measures_the_answers_of_its_own_solution(self, path):
        texts = [
            output.data["text/plain"]
            for cell in solution(path).cells
            for output in cell.get("outputs", ())
            if "data" in output
        ]
        counted = len([q for q in measured_options(path) if q.startswith("q")])
        assert any(f"You predicted {counted} of {counted}." in text for text in texts)
        warm_up = len([q for q in measured_options(path) if q.startswith("w")])
        assert any(f"{warm_up} of {warm_up} right." in text for text in texts)

    def test_docstring_examples_hold_for_its_solution(self, path):
        names = [name for name, e in load().items() if e.lesson == path.stem]
        namespace = {"np": np}
        for cell in solution(path).cells:
            if cell.cell_type == "code" and re.match(r"(import |def |from scipy)", cell.source):
                exec(cell.source, namespace)
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
        for name in names:
            found = doctest.DocTestFinder().find(namespace[name], name, globs=namespace)
            assert any(test.examples for test in found), f"{name} has no example"
            for test in found:
                runner.run(test)
        assert runner.failures == 0

    def test_names_only_lessons_that_exist(self, path):
        text = re.sub(r"\n(# )?", " ", path.read_text("utf-8"))
        named = re.findall(r"lessons? (\d+(?:(?:,| and| to) +\d+)*)", text, re.IGNORECASE)
        numbers = {int(number) for group in named for number in re.findall(r"\d+", group)}
        assert numbers  # or the pattern finds nothing
        assert numbers <= {int(other.stem[:2]) for other in TEXTS}

    def test_says_what_each_picture_shows(self, path):
        pictures = [
            output
            for cell in solution(path).cells
            for output in cell.get("outputs", ())
            if "image/png" in output.get("data", {})
        ]
        assert len(pictures) >= 2
        for picture in pictures:
            assert len(picture.data["text/plain"].split()) >= 8
            assert "Figure(" not in picture.data["text/plain"]
        page, _ = HTMLExporter().from_notebook_node(solution(path))
        shown = [html.unescape(words) for words in re.findall(r'<img alt="([^"]+)"', page)]
        assert shown == [picture.data["text/plain"] for picture in pictures]
        assert page.count("<img") == len(shown)

    def test_has_stable_unique_cell_ids(self, path):
        source = next((ROOT / "source" / path.stem).glob("*.ipynb"))
        ids = [cell["id"] for cell in json.loads(source.read_text("utf-8"))["cells"]]
        assert len(set(ids)) == len(ids)
        assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in ids)
