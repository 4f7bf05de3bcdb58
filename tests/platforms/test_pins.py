"""Wherever a list of pins is installed, nothing beyond it is looked up: an index changes from day to day."""

from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_no_list_of_pins_is_installed_together_with_what_its_packages_ask_for() -> None:
    pages = [str(path.relative_to(ROOT)) for path in ROOT.glob("docs/**/*.md")]
    programs = ["tools/platforms/__main__.py", "tests/compose/stand_ins.py"]
    places = ["Makefile", "Dockerfile", ".ci/run", *pages, *programs]
    lines = [line for place in places for line in (ROOT / place).read_text(encoding="utf-8").splitlines()]
    installs = [line for line in lines if "require-hashes" in line]
    assert len(installs) >= 6
    assert [line for line in installs if "no-deps" not in line] == []
