"""What a restart calls its revision."""

import pytest

from domain.revisions.revision import is_restart, restarted_name


@pytest.mark.parametrize(
    ("name", "taken", "restarted"),
    [
        ("v3", ["v3"], "v3.r2"),
        ("v3.r2", ["v3", "v3.r2"], "v3.r3"),
        ("v3.r9", ["v3.r9"], "v3.r10"),
        ("v3", ["v3", "v3.r2"], "v3.r3"),
        ("v3.r", [], "v3.r.r2"),
        ("v" * 63, [], "v" * 60 + ".r2"),
        ("v" * 59 + "-vvv", ["v" * 59 + ".r2"], "v" * 59 + ".r3"),
    ],
)
def test_a_restart_has_the_next_free_name(name: str, taken: list[str], restarted: str) -> None:
    assert restarted_name(name, taken) == restarted
    assert is_restart(restarted, name)


@pytest.mark.parametrize(
    ("name", "of", "is_one"),
    [("v3.r2", "v3", True), ("v3.r3", "v3.r2", True), ("v3", "v3", False), ("v3.r2", "v2", False)],
)
def test_a_restart_is_known_by_its_name(name: str, of: str, is_one: bool) -> None:  # noqa: FBT001
    assert is_restart(name, of) is is_one
