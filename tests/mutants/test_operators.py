"""Which mutants are made of a few lines, and that those are made which are explained."""

from pathlib import Path

import pytest

from tools.mutants.explained import EXPLAINED
from tools.mutants.mutant import all_mutants, mutants_of


@pytest.mark.parametrize(
    ("code", "mutants"),
    [
        ("x = a < b", ["x = a >= b", "x = a <= b"]),
        ("x = a is b", ["x = a is not b"]),
        ("x = a and b", ["x = a or b", "x = b", "x = a"]),
        ("x = -a", ["x = a"]),
        ("x = not (a or b)", ["x = (a or b)", "x = not (a and b)", "x = not (b)", "x = not (a)"]),
        ("x = a * b", ["x = a / b"]),
        ("x = 1", ["x = 2", "x = 0"]),
        ("x = True", ["x = False"]),
        ("x = min(a, b)", ["x = max(a, b)"]),
        ("x = f(a, b=c)", ["x = f(a)"]),
        ("x = a if t else b", ["x = b if t else a"]),
        ("x = [a for a in b if c]", ["x = [a for a in b if True]"]),
        ("x = {a, b}", ["x = {b}", "x = {a}"]),
        ("x = {a: b}", ["x = {}"]),
        ("if a: x = b", ["if False: x = b", "if not (a): x = b"]),
        ("a()", ["pass"]),
        ("def f() -> str:\n    return a", ["def f() -> str:\n    return None"]),
        ("x[a] += b", ["pass"]),
        ("raise A(b + 1)", ["pass"]),
        (
            "match a:\n    case b.C | b.D if e: pass",
            [
                "match a:\n    case b.C | b.D if False: pass",
                "match a:\n    case b.C | b.D if True: pass",
                "match a:\n    case b.D if e: pass",
                "match a:\n    case b.C if e: pass",
            ],
        ),
    ],
)
def test_each_thing_that_can_be_wrong_is_made_wrong(tmp_path: Path, code: str, mutants: list[str]) -> None:
    assert made_of(tmp_path, code) == mutants


@pytest.mark.parametrize(
    "code",
    [
        '"""What it is for."""',
        "x = 'a text'",
        "x = f'{a + 1}'",
        "x: Annotated[int, 1]",
        "@dataclass(frozen=True)\nclass A(B, c=1): x: int",
        "def f(a: Annotated[int, 1]) -> Annotated[int, 1]: x = a",
        "x = f(frozen=True)",
    ],
)
def test_what_says_what_a_thing_is_stays(tmp_path: Path, code: str) -> None:
    assert made_of(tmp_path, code) == []


def test_a_mutant_is_named_after_what_is_changed_where_and_not_after_its_folder(tmp_path: Path) -> None:
    file = tmp_path / "drain.py"
    file.write_text("class A:\n    def f(self):\n        '■'; return g(\n            a + 1) + 1\n")
    names = [mutant.name for mutant in mutants_of(file)]
    assert "drain.A.f: a + 1 -> a - 1" in names
    assert "drain.A.f: 1 -> 2" in names
    assert "drain.A.f: 1 -> 2 (2)" in names
    (mutant,) = [mutant for mutant in mutants_of(file) if mutant.name == "drain.A.f: a + 1 -> a - 1"]
    assert mutant.diff().splitlines()[2:] == [
        "         '■'; return g(",
        "-            a + 1) + 1",
        "+            a - 1) + 1",
    ]


def test_every_mutant_that_is_explained_can_still_be_made() -> None:
    assert EXPLAINED.keys() - {mutant.name for mutant in all_mutants()} == set()


def made_of(folder: Path, code: str) -> list[str]:
    file = folder / "code.py"
    file.write_text(code)
    return [mutant.source.decode() for mutant in mutants_of(file)]
