"""Rollway beside other projects in one environment."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("stranger", ["tasks/__init__.py", "db.py", "api/__init__.py"])
def test_a_package_of_another_project_in_the_place_of_rollways_is_named(tmp_path: Path, stranger: str) -> None:
    (tmp_path / stranger).parent.mkdir(exist_ok=True)
    (tmp_path / stranger).touch()
    command = [str(Path(sys.executable).with_name("rollway")), "status"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert f"is not Rollway's: {tmp_path / stranger}. Rollway is an application" in ended.stderr
