"""Standard output and error: those that are no UTF-8 get ASCII, and one that nobody reads any more gets nothing."""

import codecs
import os
import sys
from io import TextIOWrapper

_HANDLER = "rollway.ascii"

_ASCII = {
    "■": "#",
    "□": "o",
    "△": "^",
    "▲": "!",
    "◇": "+",
    "✗": "x",
    "✓": "v",
    "✔": "v",
    "→": "->",
    "≤": "<=",
    "…": "...",
}
"""So that pictures still differ where a replica does."""


def write_ascii_where_needed() -> None:
    """From now on; a stream of UTF-8 stays as it is."""
    codecs.register_error(_HANDLER, _in_ascii)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and codecs.lookup(stream.encoding).name != "utf-8":
            stream.reconfigure(errors=_HANDLER)


def close_quietly() -> None:
    """Nobody reads any more, as behind `| head`: what is left is written to nobody, and not complained of."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    unfit = error.object[error.start : error.end]
    return "".join(_ASCII.get(character, "?") for character in unfit), error.end
