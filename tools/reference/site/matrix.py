"""The page about what the tests show: every test is a sentence, below what its file is about."""

import ast
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

MATRIX = "tests.md"

_HEAD = """# What the tests show

Every test has a sentence for a name. They stand here by their folders, below what each file is about;
[guarantees](guarantees.md) are the thirty that matter most.
"""


def matrix_page(root: Path) -> str:
    """The whole page."""
    files = sorted(root.glob("tests/**/test_*.py"))
    rooms = [
        "\n".join([f"\n## {room.relative_to(root)}\n", *(line for file in of for line in _file(file))])
        for room, of in groupby(files, lambda file: file.parent)
    ]
    return _HEAD + "\n".join(rooms) + "\n"


def _file(file: Path) -> Iterator[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    tests = [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    sentences = [name for name in tests if name.startswith("test_")]
    if sentences:
        about = (ast.get_docstring(tree) or "").partition("\n")[0]
        yield f"**{file.name}**: {_plain(about)}\n"
        yield from (f"- {sentence(name)}" for name in sentences)
        yield ""


def sentence(name: str) -> str:
    """`test_trap_a_wave_waits` -> "a wave waits"."""
    return name.removeprefix("test_").removeprefix("trap_").replace("_", " ")


def _plain(words: str) -> str:
    """Words that Markdown shows as they are; what stands between backticks is code in both."""
    parts = words.split("`")
    return "`".join(
        re.sub(r"([\\*_<\[{|])", r"\\\1", part) if number % 2 == 0 else part for number, part in enumerate(parts)
    )
