"""What a replica's command is told, and what is said of one that is not there."""

from dataclasses import replace
from pathlib import Path

import pytest

from runtime.base import ReplicaStartError
from runtime.process.runtime import ProcessRuntime
from tests.support.workers.runtimes import ended, python, request


def test_the_command_is_told_where_to_listen(runtime: ProcessRuntime) -> None:
    asked = request((*python("import sys; print(*sys.argv[1:])"), "{host}:{port}", "{route}", "{other}"))
    replica = runtime.start(asked)
    ended(runtime, asked.route_id)
    assert replica.address is not None
    assert runtime.log_tail(asked.route_id, 1).split() == [replica.address, str(asked.route_id), "{other}"]


def test_a_relative_command_that_is_missing_is_told_with_the_folder_it_is_looked_for_in(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    unset = request(("venv/bin/gunicorn",))
    elsewhere = replace(unset, spec=unset.spec.model_copy(update={"working_directory": str(tmp_path)}))
    for asked, where in ((unset, f"{Path.cwd()}, as no working_directory is set"), (elsewhere, str(tmp_path))):
        with pytest.raises(ReplicaStartError) as refused:
            runtime.start(asked)
        assert str(refused.value).endswith(f"was not found on this host: it is looked for in {where}")
