"""Commands about the servers and workers of this machine."""

from collections.abc import Mapping

from cli.listed.listed import Listed
from cli.terminal.exits import READING, STARTING, WAITING, ExitCode

MACHINE: Mapping[str, Listed] = {
    "demo": Listed(
        "cli.demo.demo_command",
        "Show a real rollout, way back and canary, under load",
        (ExitCode.REFUSED, ExitCode.UNREACHABLE, ExitCode.INTERRUPTED),
        "rollway demo",
    ),
    "init": Listed(
        "cli.commands.machine.init",
        "Write the file of a service of yours, tried here first",
        (ExitCode.REFUSED, ExitCode.USAGE),
        "rollway init\n"
        "rollway init --name shop --command 'venv/bin/fastapi run' --port PORT --health /healthz --replicas 3",
    ),
    "up": Listed(
        "cli.commands.machine.stack",
        "Start servers, workers, beat, Flower and Envoy here",
        STARTING,
        "rollway up\nrollway up --foreground --workers 4",
    ),
    "down": Listed(
        "cli.commands.machine.stack",
        "Stop everything that `up` started, and every replica",
        STARTING,
        "rollway down\nrollway down --keep-replicas",
    ),
    "restart": Listed(
        "cli.commands.deployments.change_commands",
        "Restart a deployment, or the servers and workers here",
        WAITING,
        "rollway restart web --wait\nrollway restart\nrollway restart --part worker1 --part worker2",
    ),
    "units": Listed(
        "cli.commands.machine.upkeep",
        "Write systemd units",
        (ExitCode.USAGE,),
        "rollway units\nrollway units --to /etc/systemd/system --user rollway",
    ),
    "migrate": Listed(
        "cli.commands.machine.upkeep", "Bring the database to the newest schema", READING, "rollway migrate"
    ),
}
