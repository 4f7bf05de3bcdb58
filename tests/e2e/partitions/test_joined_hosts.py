"""Machines become hosts by a line, in networks of their own, and are none any more: with a home and an address each."""

import json
import os
import shlex
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from runtime.process.termination import stop_all
from stack.home.server_settings import HOST
from tests.support.partitions.network import Network, networks
from tests.support.partitions.up import fleet_in
from tests.support.people.people_api import people_process
from tests.support.rows.deployments import read
from tests.support.stack.stack import ROOT, Fleet, service
from tests.support.stack.waiting import eventually

pytestmark = pytest.mark.e2e

PEOPLE, MACHINES = "api", ("east", "west")


@dataclass
class Ended:
    """How a command ended on a machine."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        assert self.out, self.err
        return dict(json.loads(self.out))


@dataclass
class Installation:
    """PostgreSQL, Redis, beat and the server for people, and machines that have nothing but Rollway."""

    network: Network
    fleet: Fleet
    folder: Path
    url: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    mounts: str = ""
    """What is typed before each command of a machine, in a mount namespace of its own."""

    def home(self, machine: str) -> Path:
        return self.folder / f"home-{machine}"

    def begin(self, machine: str, *arguments: str) -> subprocess.Popen[str]:
        """Type it, and do not wait. A machine with systemd has files of its own in place of this one's."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ROLLWAY_")}
        for server in ("DATABASE_URL", "REDIS_URL"):
            environment.pop(server, None)
        files = ["sh", "-c", self.mounts, "sh"] if self.mounts else []
        command = [*self.network.within(machine), *files, sys.executable, "-m", "cli.main", *arguments]
        given = {**environment, "ROLLWAY_HOME": str(self.home(machine))}
        return subprocess.Popen(command, cwd=ROOT, env=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def rollway(self, machine: str, *arguments: str) -> Ended:
        """Type it on a machine."""
        process = self.begin(machine, *arguments)
        out, err = process.communicate(timeout=1200)
        return Ended(process.returncode, out, err)

    def line(self, *options: str) -> list[str]:
        """What the first machine prints, as the words that follow `rollway`."""
        command = [sys.executable, "-m", "cli.main", "hosts", "join", "--url", self.url, *options]
        given = {**self.fleet.environment, **self.environment}
        done = subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True, check=True)
        (line,) = done.stdout.splitlines()
        return shlex.split(line)[1:]

    def join(self, machine: str, line: list[str], *options: str) -> Ended:
        return self.rollway(machine, *line, "--name", machine, "--workers", "1", *options)

    def states(self) -> dict[str, str]:
        rows = self.fleet.rows("SELECT name, address, labels, down_since IS NULL AS is_up FROM hosts ORDER BY name")
        return {row["name"]: f"{row['address']} {'up' if row['is_up'] else 'down'}" for row in rows}

    def placed(self) -> Counter[str]:
        return Counter(route["host"] for route in self.fleet.routes("web"))


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    tmp_path.chmod(0o700)
    with networks() as network, ExitStack() as stack:
        fleet = fleet_in(network, tmp_path, stack)
        here = network.address(PEOPLE)
        people = people_process(fleet.database, fleet.environment["REDIS_URL"], tmp_path, ROLLWAY_PEOPLE_HOST=here)
        people.command = [*network.within(PEOPLE), *people.command]
        people.ready = people.ready.replace(HOST, here)
        people.start()
        stack.callback(people.end, kill=True)
        made = Installation(network, fleet, tmp_path, f"http://{here}:{people.port}")
        for machine in MACHINES:
            stack.callback(stop_all, made.home(machine), 2)
            stack.callback(made.rollway, machine, "down", "--yes")
        fleet.start_beat()
        yield made


SYSTEMCTL = """#!{python}
# Stands for systemd, which does not run where tests do: it starts what the unit says, with what its file says.
import os, shlex, signal, subprocess, sys
from configparser import ConfigParser
from pathlib import Path

from domain.installation.host_invitation import in_lines

units, pids = Path("/etc/systemd/system"), Path("/run/systemd/pids")
with open("/run/systemd/told", "a") as told:
    print(*sys.argv[1:], file=told)
for name in [word for word in sys.argv[2:] if word.endswith(".service")]:
    pid = pids / name
    if sys.argv[1] == "disable":
        os.kill(int(pid.read_text()), signal.SIGTERM)
        pid.unlink()
    elif not pid.exists():
        parser = ConfigParser(interpolation=None, strict=False)
        parser.optionxform = str
        parser.read_string((units / name.replace("@1", "@")).read_text())
        service = dict(parser["Service"])
        own = dict(word.partition("=")[::2] for word in service["Environment"].split())
        Path(service["WorkingDirectory"]).mkdir(mode=0o700, exist_ok=True)
        given = {{"PATH": os.environ["PATH"], **own, **in_lines(Path(service["EnvironmentFile"]).read_text())}}
        command = shlex.split(service["ExecStart"].replace("%i", "1").replace("%%", "%"))
        with open("/run/systemd/log", "a") as log:
            started = subprocess.Popen(command, env=given, cwd="{code}", stdout=log, stderr=log, start_new_session=True)
        pid.write_text(str(started.pid))
"""


def with_systemd(installation: Installation) -> Path:
    """The folder whose parts are /etc, /run and /var/lib of the machines from now on."""
    folder = installation.folder / "machine"
    (folder / "run" / "systemd" / "system").mkdir(parents=True)
    (folder / "run" / "systemd" / "pids").mkdir()
    (folder / "lib").mkdir()
    (folder / "bin").mkdir()
    subprocess.run(["cp", "-a", "/etc", folder / "etc"], check=True)
    (folder / "etc" / "systemd" / "system").mkdir(parents=True, exist_ok=True)
    stand_in = folder / "bin" / "systemctl"
    stand_in.write_text(SYSTEMCTL.format(python=sys.executable, code=ROOT))
    stand_in.chmod(0o755)
    binds = [
        f"mount --bind {folder}/{part} {where}"
        for part, where in (("etc", "/etc"), ("lib", "/var/lib"), ("run", "/run"))
    ]
    path = f"PATH={folder}/bin:$PATH PYTHONPATH={ROOT}"
    installation.mounts = " && ".join([*binds, f'{path} exec "$@"'])
    return folder


def test_where_systemd_runs_the_workers_are_units_and_leave_removes_them(installation: Installation) -> None:
    folder = with_systemd(installation)
    line = installation.line()
    (folder / "etc" / "rollway").mkdir()
    (folder / "etc" / "rollway" / "environment").write_text("# of a person")
    there = installation.join("east", line)
    assert (
        there.code,
        "/etc/rollway/environment exists, and 'rollway hosts join' did not write it" in there.err,
    ) == (1, True)
    assert (folder / "etc" / "rollway" / "environment").read_text() == "# of a person"
    (folder / "etc" / "rollway" / "environment").unlink()
    joined = installation.join("east", line, "--user", "rollway", "--json").document
    assert (joined["started_by"], joined["home"]) == ("systemd", "/var/lib/rollway")
    units, accounts = folder / "etc" / "systemd" / "system", folder / "etc" / "passwd"
    assert "rollway:x:" in accounts.read_text(), "as whom the units run"
    assert {"rollway-worker@.service", "rollway.target"} <= {unit.name for unit in units.iterdir()}
    assert (folder / "etc" / "rollway" / "environment").stat().st_mode & 0o777 == 0o600
    assert installation.states() == {"east": f"{installation.network.address('east')} up"}
    assert installation.join("east", line).code == 0, "typed again it finds all as it is"
    assert installation.rollway("east", "hosts", "leave").code == 0
    told = (folder / "run" / "systemd" / "told").read_text().splitlines()
    assert "enable --now rollway.target rollway-worker@1.service" in told
    assert told[-2:] == ["disable --now rollway-worker@1.service rollway.target", "daemon-reload"]
    assert not list(units.glob("rollway*"))
    assert "rollway:x:" not in accounts.read_text()
    assert not (folder / "etc" / "rollway").exists()
    assert not (folder / "lib" / "rollway").exists()
    assert installation.states() == {}


def test_two_machines_join_serve_and_leave(installation: Installation) -> None:
    fleet, network = installation.fleet, installation.network
    for machine in MACHINES:
        zone = machine[0]
        joined = installation.join(machine, installation.line(), "--labels", f"zone={zone}", "--json").document
        assert (joined["host"], joined["address"]) == (machine, network.address(machine))
    assert installation.states() == {machine: f"{network.address(machine)} up" for machine in MACHINES}
    assert fleet.rows("SELECT labels FROM hosts ORDER BY name") == [
        {"labels": {"zone": "e"}},
        {"labels": {"zone": "w"}},
    ]
    parts = json.loads(installation.rollway("east", "status", "--json").out)
    assert [part["name"] for part in parts["stack"]["parts"] if part["name"].startswith("worker")] == ["worker1"]
    fleet.ask("create_deployment", deployment="web", desired_replicas=4, policy={"strategy": "rolling_update"})
    fleet.ask("add_revision", deployment="web", name="v1", spec={**service(), "spread": "zone"})
    fleet.activate("web", "v1")
    eventually(lambda: installation.placed() == {"east": 2, "west": 2}, what="replicas on both")
    left = installation.rollway("east", "hosts", "leave", "--json").document
    assert left == {"host": "east", "left": True, "remaining": []}
    assert not installation.home("east").exists(), "a home that join made is gone"
    assert installation.placed() == {"west": 4}
    assert installation.states() == {"west": f"{network.address('west')} up"}
    nothing = installation.rollway("east", "hosts", "leave")
    assert (nothing.code, "'rollway hosts join' did not make this machine a host" in nothing.err) == (1, True)
    again = installation.join("east", installation.line())
    assert again.code == 0, again.err
    assert installation.states().keys() == {"east", "west"}


def test_a_line_is_for_one_machine_and_a_name_for_one_host(installation: Installation) -> None:
    line = installation.line()
    assert installation.join("east", line).code == 0
    used = installation.join("west", line)
    assert used.code == 1
    assert "this line has been used already by east; 'rollway hosts join' on a machine of the" in used.err
    fresh = installation.line()
    taken = installation.rollway("west", *fresh, "--name", "east")
    at = installation.network.address("east")
    assert (taken.code, f"a host called east is up, at {at}; give this one another name with --name" in taken.err) == (
        1,
        True,
    )
    assert installation.join("west", fresh).code == 0, "who was refused has not used it up"
    other = installation.join("west", installation.line())
    assert "This machine is the host west already: 'rollway hosts leave' undoes that." in other.err
    read(installation.fleet.engine, "UPDATE host_invitations SET ends_at = clock_timestamp() RETURNING 1")
    assert installation.join("west", fresh).code == 0, "who is a host already needs no line any more"


def test_a_machine_that_is_cut_off_in_the_middle_continues_with_the_same_line(installation: Installation) -> None:
    line, home = installation.line(), installation.home("east")
    for file in ("host.json", "environment", "stack.json"):
        process = installation.begin("east", *line, "--name", "east", "--workers", "1")
        eventually((home / file).exists, what=f"{file} to be written")
        for child in psutil.Process(process.pid).children(recursive=True):
            child.send_signal(signal.SIGKILL)
        process.kill()
        process.communicate()
    joined = installation.join("east", line)
    assert joined.code == 0, joined.err
    assert list(installation.states()) == ["east"]
    assert len(installation.fleet.rows("SELECT FROM fleet_history WHERE phase = 'join_host'")) == 1


def test_what_join_did_not_write_stays_and_what_stays_on_the_host_is_named(installation: Installation) -> None:
    home = installation.home("east")
    home.mkdir(mode=0o700)
    (home / "mine").write_text("of a person")
    assert installation.join("east", installation.line()).code == 0
    assert (home / "environment").stat().st_mode & 0o777 == 0o600
    fleet = installation.fleet
    fleet.ask("create_deployment", deployment="web", desired_replicas=1, policy={"strategy": "rolling_update"})
    fleet.ask("add_revision", deployment="web", name="v1", spec=service())
    fleet.activate("web", "v1")
    eventually(lambda: installation.placed() == {"east": 1}, what="its replica")
    stays = installation.rollway("east", "hosts", "leave", "--timeout", "2")
    assert stays.code == 4
    assert "east still has replicas after 2 s (web until another host takes it), and nothing is removed" in stays.err
    assert installation.placed() == {"east": 1}
    fleet.ask("scale", deployment="web", desired_replicas=0)
    left = installation.rollway("east", "hosts", "leave")
    assert left.code == 0, left.err
    assert (home / "mine").read_text() == "of a person"
    assert not (home / "environment").exists()
    assert not (home / "host.json").exists()
    assert installation.states() == {}


def test_keys_and_settings_of_the_installation_come_with_the_line(installation: Installation) -> None:
    keys = installation.folder / "keys"
    keys.write_text("shop = " + "a" * 43 + "\n")
    keys.chmod(0o600)
    installation.environment = {"ROLLWAY_COMMAND_KEYS": str(keys), "ROLLWAY_CERTIFICATE_KEY": "c" * 32}
    line = installation.line()
    stored = json.dumps(installation.fleet.rows("SELECT sealed, encode(hash, 'hex') AS hash FROM host_invitations"))
    assert not any(secret in stored for secret in (line[-1].rpartition("#")[2], "c" * 32, "postgresql"))
    joined = installation.join("east", line)
    assert joined.code == 0, joined.err
    home = installation.home("east")
    assert (home / "command_keys").read_text() == keys.read_text()
    assert f"ROLLWAY_CERTIFICATE_KEY={'c' * 32}" in (home / "environment").read_text()
    assert f"ROLLWAY_COMMAND_KEYS={home}/command_keys" in (home / "environment").read_text()
