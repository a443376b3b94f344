"""The bar above a long measurement."""

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from hopping import waiting
from hopping.waiting import Bar, counted


def test_goes_through_everything_outside_a_notebook_too(capsys):
    assert list(counted("abc", "letters")) == ["a", "b", "c"]
    assert capsys.readouterr().out.strip() == "0 of 3 letters"


def test_in_a_notebook_one_output_grows_and_ends_whole(monkeypatch):
    monkeypatch.setattr(waiting, "PAUSE", 0.0)
    InteractiveShell.instance()
    try:
        with capture_output() as captured:
            assert sum(counted(range(5), "sets")) == 10
    finally:
        InteractiveShell.clear_instance()
    texts = [output.data["text/plain"] for output in captured.outputs]
    assert texts == [f"{done} of 5 sets" for done in range(6)]
    assert [output.update for output in captured.outputs] == [False] + [True] * 5
    assert len({output.transient["display_id"] for output in captured.outputs}) == 1


def test_a_bar_is_readable_without_seeing_it_and_escapes_its_words():
    page = Bar(3, 60, "a < b")._repr_html_()
    assert page == '<progress value="3" max="60"></progress> 3 of 60 a &lt; b'
