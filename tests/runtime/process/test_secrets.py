"""Secrets of a host: what a replica gets, what is allowed, and that no fault tells anything of what was read."""

import json
import os
from pathlib import Path
from uuid import uuid4

import pytest

from domain.revisions.revision import RevisionSpec
from runtime.host_secrets import MOST_BYTES, HostSecrets, SecretFaultError, UnreadSecretError
from runtime.process.process_runtime import ProcessRuntime
from runtime.protocol import ReplicaRequest, ReplicaStartError
from tests.support.workers.runtimes import ended, python
from tests.support.workers.secrets import VALUE, fault, read


@pytest.fixture
def secrets_folder(tmp_path: Path) -> Path:
    """The one that is allowed, beside one that is not."""
    for name in ("secrets", "private"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "db").write_text(f"{VALUE}\n")
    return tmp_path / "secrets"


@pytest.fixture
def secrets(secrets_folder: Path, tmp_path: Path) -> HostSecrets:
    file = tmp_path / "variables"
    file.write_text(f"# of this host\n\nDB = not this\nDB={VALUE}\nEMPTY=\nWITH=a=b 'c'\n")
    return HostSecrets("here", (f"file:{secrets_folder}",), file)


# --- files


@pytest.mark.parametrize(
    ("content", "value"),
    [("hunter2", "hunter2"), ("hunter2\n", "hunter2"), ("a\nb\n\n", "a\nb\n"), (" é ", " é "), ("x" * MOST_BYTES,) * 2],
    ids=["bare", "a newline", "one newline of two", "spaces and letters", "the largest"],
)
def test_a_file_is_its_content_without_one_newline(
    secrets: HostSecrets, secrets_folder: Path, content: str, value: str
) -> None:
    (secrets_folder / "db").write_text(content)
    assert read(secrets, f"file:{secrets_folder}/db") == value


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "it is empty"),
        (b"\n", "it is empty"),
        (b"hunter2\0", "it has a NUL, which no variable can hold"),
        (b"hunter2\xff", "it is no UTF-8 text"),
        (b"x" * (MOST_BYTES + 1), "it has more than 65,536 bytes"),
    ],
)
def test_what_no_variable_can_hold_is_no_secret(
    secrets: HostSecrets, secrets_folder: Path, content: bytes, sentence: str
) -> None:
    (secrets_folder / "db").write_bytes(content)
    assert fault(secrets, f"file:{secrets_folder}/db") == sentence


def test_a_file_that_is_none_says_so_and_nobody_waits_for_it(secrets: HostSecrets, secrets_folder: Path) -> None:
    assert fault(secrets, f"file:{secrets_folder}/none") == "it cannot be read: No such file or directory"
    assert fault(secrets, f"file:{secrets_folder}") == "it cannot be read: Is a directory"
    os.mkfifo(secrets_folder / "pipe")
    assert fault(secrets, f"file:{secrets_folder}/pipe") == "it is no file"
    (secrets_folder / "loop").symlink_to(secrets_folder / "loop")
    assert fault(secrets, f"file:{secrets_folder}/loop").startswith("it cannot be read: ")


@pytest.mark.parametrize("path", ["../private/db", "link", "linked/db", "../secrets-too/db"])
def test_files_outside_of_what_is_allowed_are_not_read_be_it_through_links(
    secrets: HostSecrets, secrets_folder: Path, path: str
) -> None:
    (secrets_folder / "link").symlink_to(secrets_folder.parent / "private/db")
    (secrets_folder / "linked").symlink_to(secrets_folder.parent / "private")
    (secrets_folder.parent / "secrets-too").symlink_to(secrets_folder.parent / "private")
    told = fault(secrets, f"file:{os.path.normpath(secrets_folder / path) if '..' in path else secrets_folder / path}")
    assert told.startswith(
        "it is a file, which ROLLWAY_SECRETS_ALLOW in the environment of this host's workers does not"
    )


def test_links_within_what_is_allowed_are_followed_and_so_is_one_to_it(
    secrets: HostSecrets, secrets_folder: Path
) -> None:
    (secrets_folder / "now").symlink_to(secrets_folder / "db")
    assert read(secrets, f"file:{secrets_folder}/now") == VALUE
    (secrets_folder.parent / "run").symlink_to(secrets_folder)
    assert read(HostSecrets(allow=(f"file:{secrets_folder.parent}/run",)), f"file:{secrets_folder}/db") == VALUE


# --- by deployment


@pytest.fixture
def divided(tmp_path: Path) -> HostSecrets:
    """A host with a folder, variables and a program for each deployment."""
    for deployment in ("web", "web.eu", "spy"):
        (tmp_path / "by" / deployment).mkdir(parents=True)
        (tmp_path / "by" / deployment / "db").write_text(f"of {deployment}")
        (tmp_path / f"{deployment}.env").write_text(f"DB=of {deployment}\n")
    program = tmp_path / "secret-of"
    program.write_text('#!/bin/sh\necho "$2 of $1, $DB"\n')
    program.chmod(0o755)
    allow = f"file:{tmp_path}/by/{{deployment}}", f"command:{program} {{deployment}}"
    return HostSecrets("here", allow, tmp_path / "{deployment}.env")


def test_what_is_allowed_by_deployment_is_for_that_one_alone(divided: HostSecrets, tmp_path: Path) -> None:
    for deployment in ("web", "web.eu", "spy"):
        assert read(divided, f"file:{tmp_path}/by/{deployment}/db", deployment) == f"of {deployment}"
        assert read(divided, "env:DB", deployment) == f"of {deployment}"
        printed = read(divided, f"command:{tmp_path}/secret-of {deployment} key", deployment)
        assert printed == f"key of {deployment}, of {deployment}"
    for other in ("spy", "web.eu", "we", "nobody"):
        assert fault(divided, f"file:{tmp_path}/by/web/db", other).endswith(f"workers does not name for {other}")
        assert fault(divided, f"command:{tmp_path}/secret-of web key", other).endswith(f"does not name for {other}")
    assert fault(divided, "env:DB", "nobody") == "ROLLWAY_SECRETS_ENV_FILE has no line for it"
    assert divided.for_all == []
    assert HostSecrets("here", ("file:/run/a", "command:/bin/x y"), Path("/v")).for_all == [
        "file:/run/a",
        "command:/bin/x",
        "env:/v",
    ]


@pytest.mark.parametrize("name", ["", ".", "..", "../by/web", "web/../spy", "x/../web", "web\n", "*"])
def test_no_name_leads_to_what_is_anothers(divided: HostSecrets, tmp_path: Path, name: str) -> None:
    """Names are not such as these; who asks by one has none of what is divided."""
    for path in ("web", "spy", "by/web"):
        assert "does not name for" in fault(divided, f"file:{tmp_path}/by/{path}/db", name)
    assert fault(divided, "env:DB", name) == "ROLLWAY_SECRETS_ENV_FILE has no line for it"
    assert "does not name for" in fault(divided, f"command:{tmp_path}/secret-of web key", name)


# --- variables


def test_a_variable_is_read_from_the_hosts_file_and_not_from_the_worker(
    secrets: HostSecrets, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THE_WORKER", VALUE)
    assert read(secrets, "env:DB") == VALUE
    assert read(secrets, "env:WITH") == "a=b 'c'"
    assert fault(secrets, "env:OF_THE_WORKER") == "ROLLWAY_SECRETS_ENV_FILE has no line for it"
    assert fault(secrets, "env:EMPTY") == "it is empty"
    assert fault(HostSecrets(), "env:DB").startswith("ROLLWAY_SECRETS_ENV_FILE is not set")
    gone = HostSecrets(variables=Path("/no/such"))
    assert fault(gone, "env:DB") == "the file of ROLLWAY_SECRETS_ENV_FILE cannot be read: No such file or directory"


def test_a_host_that_allows_nothing_gives_nothing(secrets_folder: Path) -> None:
    for reference in (f"file:{secrets_folder}/db", "command:/bin/echo 1", "env:PATH"):
        with pytest.raises(SecretFaultError, match="ROLLWAY_SECRETS_"):
            read(HostSecrets(), reference)


# --- replicas


def revision(**env: object) -> RevisionSpec:
    code = "import json, os; print(json.dumps(dict(os.environ)))"
    return RevisionSpec.model_validate({"command": python(code), "env": env})


def test_a_process_gets_its_secrets_beside_its_plain_variables(
    secrets: HostSecrets, secrets_folder: Path, runtime: ProcessRuntime
) -> None:
    spec = revision(
        PLAIN="1", DB={"secret": f"file:{secrets_folder}/db"}, AGAIN={"secret": f"file:{secrets_folder}/db"}
    )
    request = ReplicaRequest(uuid4(), "web", "web-12345678", spec)
    with pytest.raises(ReplicaStartError, match="the secrets of revision 'web-12345678' were not read"):
        runtime.start(request)
    request = ReplicaRequest(uuid4(), "web", "web-12345678", spec, secrets.of(request))
    assert VALUE not in repr(request)
    replica = runtime.start(request)
    ended(runtime, replica.route_id)
    told = json.loads(runtime.log_tail(replica.route_id, 1))
    assert [told[name] for name in ("PLAIN", "DB", "AGAIN")] == ["1", VALUE, VALUE]


def test_what_is_missing_is_named_with_its_variable_its_reference_and_the_host(
    secrets: HostSecrets, secrets_folder: Path
) -> None:
    request = ReplicaRequest(uuid4(), "web", "v1", revision(DB={"secret": f"file:{secrets_folder}/none"}))
    with pytest.raises(UnreadSecretError) as missing:
        secrets.of(request)
    assert str(missing.value) == (
        f"host here cannot have the secret file:{secrets_folder}/none of variable DB: "
        "it cannot be read: No such file or directory"
    )
