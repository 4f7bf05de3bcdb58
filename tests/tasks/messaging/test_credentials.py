"""The file of keys: its owner's alone, and every fault named by the variable and the file."""

from pathlib import Path

import pytest

from domain.text.errors import InvalidInputError
from tasks.messaging.credentials import read_keys

KEY = "k" * 32


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "keys"
    path.write_text(f"ci = {KEY}")
    path.chmod(0o600)
    return path


def test_a_file_of_its_owner_is_read(file: Path) -> None:
    assert read_keys(file) == {"ci": KEY}


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o606, 0o620])
def test_a_file_that_others_can_reach_is_refused(file: Path, mode: int) -> None:
    file.chmod(mode)
    with pytest.raises(InvalidInputError, match=f"^ROLLWAY_COMMAND_KEYS: {file} can be read by others; 'chmod 600 "):
        read_keys(file)


@pytest.mark.parametrize("content", [None, b"\xff", b"", f"ci {KEY}".encode()])
def test_a_file_that_makes_no_sense_is_named_without_what_is_in_it(file: Path, content: bytes | None) -> None:
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)
    with pytest.raises(InvalidInputError, match=f"^ROLLWAY_COMMAND_KEYS: {file}") as refused:
        read_keys(file)
    assert KEY not in refused.value.message
