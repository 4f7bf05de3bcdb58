"""What a replica's command is told, and what is said of one that is not there."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from domain.revisions.revision import RevisionSpec
from runtime.process.process_runtime import ProcessRuntime
from runtime.protocol import ReplicaStartError
from tasks.replicas.probing import end_of
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


def test_variables_are_told_where_to_listen_and_secrets_arrive_as_they_are(runtime: ProcessRuntime) -> None:
    code = "import os, json; print(json.dumps(dict(os.environ)))"
    env: dict[str, object] = {
        "URLS": "http://{host}:{port}/{route}",
        "JSON": '{"port": {port}, "{other}": "${port}"}',
        "PASSWORD": {"secret": "env:PASSWORD"},
    }
    asked = request(python(code))
    spec = asked.spec.model_copy(update={"env": RevisionSpec.model_validate({"command": "x", "env": env}).env})
    asked = replace(asked, spec=spec, secrets={"PASSWORD": "{port}{host}"})
    replica = runtime.start(asked)
    ended(runtime, asked.route_id)
    told = json.loads(runtime.log_tail(asked.route_id, 1))
    assert replica.address is not None
    host, port = replica.address.split(":")
    assert told["URLS"] == f"http://{host}:{port}/{asked.route_id}"
    assert told["JSON"] == f'{{"port": {port}, "{{other}}": "${port}"}}'
    assert told["PASSWORD"] == "{port}{host}"


@pytest.mark.parametrize(("own", "listens"), [("0.0.0.0", "0.0.0.0"), ("[{host}]", "[127.0.0.1]")])
def test_where_a_revision_says_its_host_variables_and_command_are_told_that_one(
    runtime: ProcessRuntime, own: str, listens: str
) -> None:
    code = "import os, sys; print(os.environ['HOST'], os.environ['URL'], sys.argv[1])"
    asked = request((*python(code), "{host}"), env={"HOST": own, "URL": "http://{host}"})
    runtime.start(asked)
    ended(runtime, asked.route_id)
    assert runtime.log_tail(asked.route_id, 1) == f"{listens} http://{listens} {listens}"


DAEMONS = {
    "it forks": "import os, time\nif os.fork():\n    os._exit(0)\ntime.sleep(60)",
    "it forks twice": "import os, time\nif os.fork():\n    os._exit(0)\nos.setsid()\nif os.fork():\n    os._exit(0)\n"
    "time.sleep(60)",
    "it starts another": "import subprocess, sys\nsubprocess.Popen(['sleep', '60'], start_new_session=True)",
    "it starts one in its session": "import subprocess, sys\nsubprocess.Popen(['sleep', '60'])",
    "it closes its output": "import os, time\nif os.fork():\n    os._exit(0)\nos.setsid()\nos.closerange(0, 3)\n"
    "time.sleep(60)",
}


@pytest.mark.parametrize("how", DAEMONS)
def test_a_program_that_went_into_the_background_is_called_that(runtime: ProcessRuntime, how: str) -> None:
    asked = request(python(DAEMONS[how]))
    runtime.start(asked)
    detail = end_of(ended(runtime, asked.route_id)).detail
    assert detail.startswith("its process ended with exit code 0; it went into the background as ")
    assert "a replica stays in the foreground, by its option for that, or without the one to be a daemon" in detail


@pytest.mark.parametrize("code", ["print('done')", "import sys; sys.exit(3)"])
def test_a_program_that_leaves_nothing_went_nowhere(runtime: ProcessRuntime, code: str) -> None:
    asked = request(python(code))
    runtime.start(asked)
    assert "background" not in end_of(ended(runtime, asked.route_id)).detail


SERVE = b"cd /tmp\r\nexec python3 nowhere.py\r\n"
CRLF = {
    "./start.sh": b"#!/bin/sh\r\n" + SERVE,
    "sh start.sh": b"#!/bin/sh\r\n" + SERVE,
    "bash start.sh": SERVE,
    "sh -e ./start": b"#!/bin/sh -e\r\n" + SERVE,
    "./serve.py": b"#!/usr/bin/env python3\r\nprint(1)\r\n",
    "sh -c './start.sh'": b"#!/usr/bin/env sh\r\n" + SERVE,
    "sh -c 'bash start.sh; exit 9'": SERVE,
}


@pytest.mark.parametrize("command", CRLF)
def test_a_script_with_lines_of_windows_is_named(runtime: ProcessRuntime, tmp_path: Path, command: str) -> None:
    name = next(
        word for word in command.replace("'", " ").replace(";", " ").split() if "start" in word or "serve" in word
    )
    script = tmp_path / name
    script.write_bytes(CRLF[command])
    script.chmod(0o755)
    spec = RevisionSpec.model_validate({"command": command, "working_directory": str(tmp_path)})
    asked = replace(request(), spec=spec)
    try:
        runtime.start(asked)
        said = end_of(ended(runtime, asked.route_id)).detail
    except ReplicaStartError as error:
        said = str(error)
    assert "as on Windows, by CR LF" in said
    assert "/bin/sh\\r" in said or str(script) in said


def test_a_program_of_python_may_have_lines_of_windows(runtime: ProcessRuntime, tmp_path: Path) -> None:
    (tmp_path / "serve.py").write_bytes(b"#!/usr/bin/env python3\r\nraise SystemExit(3)\r\n")
    spec = RevisionSpec.model_validate({"command": "python3 serve.py", "working_directory": str(tmp_path)})
    asked = replace(request(), spec=spec)
    runtime.start(asked)
    assert end_of(ended(runtime, asked.route_id)).detail == "its process ended with exit code 3"
