"""Shows text that somebody else chose, a file's name for one, on the line where it belongs."""


def printable(text: str) -> str:
    """Return text with "?" for what would begin a new line or move a cursor."""
    return "".join(character if character.isprintable() else "?" for character in text)
