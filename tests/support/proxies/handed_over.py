"""An Envoy that hands its sockets over to one with another bootstrap, as an upgrade does it."""

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from stack.parts.envoy import envoy_program
from tests.support.stack.stack import Fleet
from tests.support.stack.version_before import run_with


@dataclass
class HandedOver:
    """An Envoy that hands its sockets over to one with a new bootstrap."""

    url: str
    settings: tuple[str, ...]
    folder: Path
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, fleet: Fleet, xds: int) -> None:
        """The next one, told by the server at this port, with a bootstrap of the code that the fleet is at."""
        epoch = len(self.started)
        config = self.folder / f"envoy-{epoch}.yaml"
        config.write_text(run_with(fleet, "cli.main", "envoy-bootstrap", *self.settings, "--xds", f"127.0.0.1:{xds}"))
        options = ("--base-id", str(os.getpid()), "--restart-epoch", str(epoch), "--log-level", "warn")
        times = ("--drain-time-s", "1", "--drain-strategy", "immediate", "--parent-shutdown-time-s", "5")
        command = [str(envoy_program()), "--config-path", str(config), *options, *times]
        with (self.folder / "envoy.log").open("ab") as log:
            self.started.append(subprocess.Popen(command, stdout=log, stderr=log))

    def end(self) -> None:
        for process in self.started:
            process.kill()
            process.wait()
