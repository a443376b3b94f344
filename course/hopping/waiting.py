"""Show how far a long measurement has come."""

import html
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from IPython.display import display

Item = TypeVar("Item")
PAUSE = 0.1  # seconds between two changes of the bar: each one is a message to the browser


@dataclass(frozen=True)
class Bar:
    """A bar that stands at `done` of `total`."""

    done: int
    total: int
    what: str

    def __repr__(self) -> str:
        return f"{self.done} of {self.total} {self.what}"

    def _repr_html_(self) -> str:
        words = html.escape(repr(self))
        return f'<progress value="{self.done}" max="{self.total}"></progress> {words}'


def counted(items: Sequence[Item], what: str) -> Iterator[Item]:
    """Go through items, below a bar that shows how many are done.

    The bar is an ordinary output that is replaced as it grows, so a saved notebook keeps where
    it ended, and it needs no widgets.

    Parameters
    ----------
    items : sequence
        What to go through.
    what : str
        What they are called, in the plural.

    Yields
    ------
    object
        The items, one by one.

    Examples
    --------
    >>> sum(number for number in counted(range(4), "numbers"))
    0 of 4 numbers
    6
    """
    bar = display(Bar(0, len(items), what), display_id=True)
    shown = time.monotonic()
    for done, item in enumerate(items, start=1):
        yield item
        now = time.monotonic()
        # Outside a notebook there is no bar to replace.
        if bar and (done == len(items) or now > shown + PAUSE):
            bar.update(Bar(done, len(items), what))
            shown = now
