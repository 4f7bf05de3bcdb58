"""The compose project that is tried: a copy of this tree, as somebody has it who has just cloned it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import docker
import httpx

from tests.support.proxies import plain_http
from tests.support.stack.ports import free_port
from tests.support.stack.waiting import eventually

ROOT = Path(__file__).parents[2]
ONCE = {"migrate", "envoy-bootstrap"}  # services that end when they are done
# On an engine before 25 a first health check comes after the whole interval, a minute for workers.
HEALTHY_WITHIN = 300


class RefusedError(Exception):
    """What a command said that did not end with 0."""


class Project:
    """docker-compose and what it has started, in the engine at `url`."""

    def __init__(self, url: str, folder: Path) -> None:
        self.folder, self.name = folder, f"rollway-try-{os.getpid()}"
        self.port, flower, people = free_port(), free_port(), free_port()
        _clone(folder)
        self._environment = {
            **{name: os.environ[name] for name in ("PATH", "HOME", "LD_LIBRARY_PATH") if name in os.environ},
            "DOCKER_HOST": url,
            "COMPOSE_PROJECT_NAME": self.name,
            "ENVOY_PORT": str(self.port),
            "FLOWER_PORT": str(flower),
            "PEOPLE_PORT": str(people),
        }
        self.engine = docker.APIClient(base_url=url, timeout=120)

    def run(self, *command: str, given: str | None = None) -> str:
        """Standard output. Raises RefusedError."""
        done = subprocess.run(
            command, cwd=self.folder, env=self._environment, input=given, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            said = (done.stdout + done.stderr)[-3000:]
            raise RefusedError(f"{' '.join(command)}: exit code {done.returncode}\n{said}")
        return done.stdout

    def compose(self, *words: str, given: str | None = None) -> str:
        program = shutil.which("docker-compose", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        return self.run(program or "docker-compose", *words, given=given)

    def up(self) -> None:
        """As the header of the compose file says it."""
        self.compose(*f"up --build --detach --scale worker=2 --wait --wait-timeout {HEALTHY_WITHIN}".split())

    def inside(self, *command: str, given: str | None = None) -> str:
        """What this command prints in the first worker's container."""
        return self.compose("exec", "-T", "worker", *command, given=given)

    def containers(self) -> dict[str, dict[str, Any]]:
        """Those of this project, by their name."""
        listed = self.engine.containers(all=True, filters={"label": f"com.docker.compose.project={self.name}"})
        return {container["Names"][0].lstrip("/"): container for container in listed}

    def unwell(self) -> dict[str, str]:
        """The state of each container that is not as it should be."""
        states = {}
        for name, container in self.containers().items():
            once = container["Labels"]["com.docker.compose.service"] in ONCE
            well = "Exited (0)" if once else "(healthy)"
            if well not in container["Status"]:
                states[name] = container["Status"]
        return states

    def wait_until_healthy(self) -> None:
        """Nobody does anything for it."""
        eventually(lambda: not self.unwell() and self.answers(), HEALTHY_WITHIN, "everything healthy by itself")

    def ask(self, path: str = "/", host: str = "web") -> httpx.Response:
        """A request through Envoy."""
        return plain_http.get(f"http://127.0.0.1:{self.port}{path}", headers={"Host": host}, timeout=10)

    def answers(self) -> bool:
        return self.ask().status_code == 200

    @contextmanager
    def loaded(self) -> Iterator["Load"]:
        """Up to twenty requests a second, as long as it lasts."""
        load, over = Load(self), Event()
        thread = Thread(target=load.send_until, args=(over,))
        thread.start()
        try:
            eventually(lambda: load.sent > 5, what="the first requests")
            yield load
        finally:
            over.set()
            thread.join()


class Load:
    """`sent` requests; `lost` says of each that was not answered by 200 what became of it."""

    def __init__(self, project: Project) -> None:
        self.sent, self.lost = 0, list[str]()
        self._project = project

    def send_until(self, over: Event) -> None:
        while not over.wait(0.05):
            try:
                answer = self._project.ask()
                if answer.status_code != 200:
                    self.lost.append(f"{answer.status_code} {answer.text[:100]}")
            except httpx.HTTPError as error:
                self.lost.append(repr(error))
            self.sent += 1


def _clone(folder: Path) -> None:
    """What git knows or would add, as under `umask 077`."""
    command = "git ls-files -z --cached --others --exclude-standard"
    listed = subprocess.run(command.split(), cwd=ROOT, check=True, capture_output=True).stdout.decode()
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
            (folder / name).chmod(0o600)
