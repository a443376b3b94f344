"""What a lesson on the geometry of attention imports: checks, predictions and pictures."""

from hopping.checking import check
from hopping.predict import check_answers, commit, pick, reveal
from hopping.unwritten import speak_in_notebooks

__all__ = ["check", "check_answers", "commit", "pick", "reveal"]

speak_in_notebooks()
