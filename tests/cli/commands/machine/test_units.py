"""`rollway units`: what systemd reads there, and that it starts what the stack starts."""

import json
import re
import shlex
import shutil
import stat
import subprocess
from configparser import ConfigParser
from pathlib import Path

import pytest

from api.people.people_app import PEOPLE_PORT, PeopleSettings
from api.proxy_settings import API_PORT, ApiSettings
from db.connection.database_settings import DatabaseSettings
from domain.installation.contract import WRONG_INSTALLATION
from stack.home.folder import project_root
from stack.parts.processes import API, BEAT, FLOWER_OPTIONS, PEOPLE, worker
from tasks.task_settings import TaskSettings
from tests.cli.conftest import Rollway
from traffic.edge_settings import InFront

SERVICES = {
    "rollway-worker@.service",
    "rollway-beat.service",
    "rollway-api.service",
    "rollway-people.service",
    "rollway-flower.service",
}
SOCKETS = {"rollway-api.socket", "rollway-people.socket", "rollway-flower.socket"}


@pytest.fixture
def folder(rollway: Rollway, tmp_path: Path) -> Path:
    folder = tmp_path / "units"
    ended = rollway("units", "--to", str(folder), "--user", "web", "--environment-file", "/etc/web")
    assert (ended.code, ended.err) == (0, "")
    return folder


def section(unit: Path, name: str = "Service") -> dict[str, str]:
    parser = ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(unit.read_text(encoding="utf-8"))
    return dict(parser[name])


def test_every_service_reads_the_file_runs_as_the_user_and_is_not_started_again_where_that_changes_nothing(
    folder: Path,
) -> None:
    files = {*SERVICES, *SOCKETS, "rollway.target", "rollway.environment"}
    assert {file.name for file in folder.iterdir()} == files
    for name in SERVICES:
        service = section(folder / name)
        assert (service["User"], service["Group"], service["EnvironmentFile"]) == ("web", "web", "/etc/web")
        assert (service["Restart"], service["RestartPreventExitStatus"]) == ("always", str(WRONG_INSTALLATION))
        assert (service["StateDirectoryMode"], service["UMask"]) == ("0700", "0077")
        assert int(service["LogRateLimitBurst"]) > 0
        assert section(folder / name, "Unit")["PartOf"] == section(folder / name, "Install")["WantedBy"]


def test_the_ports_of_servers_are_kept_by_sockets_of_the_same_name(folder: Path) -> None:
    addresses = {name: section(folder / name, "Socket")["ListenStream"] for name in SOCKETS}
    assert addresses == dict(
        zip(sorted(SOCKETS), (f"127.0.0.1:{port}" for port in (API_PORT, 5555, PEOPLE_PORT)), strict=True)
    )


def test_of_a_worker_alone_only_the_main_process_is_ended(folder: Path) -> None:
    modes = {name: section(folder / name).get("KillMode") for name in SERVICES}
    assert modes == {**dict.fromkeys(SERVICES), "rollway-worker@.service": "process"}
    worker_unit = section(folder / "rollway-worker@.service")
    assert worker_unit["OOMPolicy"] == "continue", "one replica that takes too much must not end the worker"
    assert not [key for key in worker_unit if key.startswith(("Private", "Protect"))]


def test_what_starts_no_replica_is_confined_and_what_hangs_is_ended(folder: Path, tmp_path: Path) -> None:
    for name in SERVICES:
        service = section(folder / name)
        assert ("ProtectSystem" in service) == (name != "rollway-worker@.service"), name
        assert service.get("WatchdogSec") == (None if name == "rollway-flower.service" else "60"), name
    if (program := shutil.which("systemd-analyze")) is None:
        pytest.skip("no systemd-analyze here: what it says of the units is not looked at")
    for name in SERVICES - {"rollway-worker@.service"}:
        unit = shutil.copy(folder / name, tmp_path / name)
        command = [program, "security", "--offline=true", "--threshold=25", str(unit)]
        told = subprocess.run(command, capture_output=True, text=True, check=False)
        assert told.returncode == 0, told.stdout[-300:] + told.stderr


def test_the_settings_of_the_page_confine_a_worker(folder: Path, tmp_path: Path) -> None:
    if (program := shutil.which("systemd-analyze")) is None:
        pytest.skip("no systemd-analyze here: what it says of a worker is not looked at")
    page = (project_root() / "docs/systemd.md").read_text(encoding="utf-8")
    _, settings, _ = re.split(r"^```(?:ini)?\n", page, flags=re.MULTILINE)
    unit = (folder / "rollway-worker@.service").read_text(encoding="utf-8")
    for name, text, is_confined in (
        ("open@.service", unit, False),
        ("confined@.service", unit.replace("[Install]", f"{settings}[Install]"), True),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
        looked = [program, "security", "--offline=true", "--threshold=50", name]
        told = subprocess.run(looked, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (told.returncode == 0) is is_confined, told.stdout[-300:] + told.stderr
    verify = [program, "verify", "--man=no", "confined@.service"]
    verified = subprocess.run(verify, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (verified.returncode, verified.stderr) == (0, "")


def test_what_is_started_is_what_the_stack_starts(folder: Path) -> None:
    def command(name: str) -> list[str]:
        line = section(folder / name)["ExecStart"].replace("%i", "1").replace("%%", "%")
        return shlex.split(line)

    assert command("rollway-worker@.service") == list(worker("worker1"))
    assert command("rollway-beat.service") == list(BEAT)
    assert command("rollway-api.service") == list(API)
    assert command("rollway-people.service") == list(PEOPLE)
    assert command("rollway-flower.service")[-len(FLOWER_OPTIONS) :] == list(FLOWER_OPTIONS)


def test_the_environment_file_is_for_its_owner_alone_and_names_variables_that_there_are(folder: Path) -> None:
    file = folder / "rollway.environment"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    lines = [line.lstrip("#") for line in file.read_text(encoding="utf-8").splitlines()]
    named = {line.partition("=")[0] for line in lines if line and not line.startswith(" ")}
    models = (DatabaseSettings, TaskSettings, ApiSettings, PeopleSettings)
    fields = [field for model in models for field in model.model_fields.values()]
    of_flower = {"FLOWER_BASIC_AUTH"}
    in_front = {field.validation_alias for field in InFront.model_fields.values()}
    assert {"DATABASE_URL", "REDIS_URL"} | in_front < named <= {field.validation_alias for field in fields} | of_flower


def test_systemd_finds_no_fault_with_them(folder: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("NO SYSTEMD, SO THE UNITS ARE ONLY PARSED HERE: there is no systemd-analyze")
    names = [*SERVICES, "rollway.target"]
    verified = subprocess.run(
        [analyze, "verify", "--man=no", *names], cwd=folder, capture_output=True, text=True, check=False
    )
    assert (verified.returncode, verified.stderr) == (0, "")


def test_without_a_folder_all_of_it_is_printed(rollway: Rollway) -> None:
    printed = rollway("units").out
    told = json.loads(rollway("units", "--json").out)
    assert all(f"# {name}\n{text}" in printed for name, text in told["files"].items())
    assert "EnvironmentFile=/etc/rollway/environment" in printed


@pytest.mark.parametrize(
    ("option", "value"),
    [("--user", ""), ("--user", "a b"), ("--environment-file", "etc/web"), ("--environment-file", "/etc/%n")],
)
def test_what_systemd_would_misread_is_refused(rollway: Rollway, option: str, value: str) -> None:
    ended = rollway("units", option, value)
    assert ended.code == 2
    assert ended.err.startswith(f"{option} must be ")


def test_a_folder_that_cannot_be_written_is_one_sentence(rollway: Rollway, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ended = rollway("units", "--to", str(tmp_path / "file"))
    assert (ended.code, ended.err) == (2, f"--to {tmp_path / 'file'}: File exists.\n")
