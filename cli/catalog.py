"""The commands, as `rollway --help` lists them without importing any."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cli.terminal.exits import READING, STARTING, WAITING, WRITING, ExitCode


@dataclass(frozen=True, slots=True)
class Listed:
    """One command: its module, its line in the list, its exit codes besides 0, and examples, one a line.

    `module` has a function of the command's name, one in GROUPS, whose commands have codes and examples of their own,
    or perhaps an entry in VERBS: help, options and example are then what the class of the command says.
    """

    module: str
    line: str
    codes: Sequence[ExitCode] = ()
    example: str = ""


_CHANGE = "cli.commands.deployments.change_commands"

RELEASE: Mapping[str, Listed] = {
    "apply": Listed(
        "cli.apply",
        "Create or change deployments as a YAML file describes them",
        (*WAITING, ExitCode.DIFFERENT),
        "rollway apply -f examples/web.yaml --wait\n"
        "cat web.yaml | rollway apply -f -\n"
        "rollway apply -f web.yaml --dry-run",
    ),
    "diff": Listed(
        "cli.apply",
        "Show what a file would change",
        (*READING, ExitCode.DIFFERENT),
        "rollway diff -f examples/web.yaml\nrollway diff -f web.yaml --json",
    ),
    "plan": Listed(
        "cli.planning.plan_command",
        "Show what a change will do before it starts",
        READING,
        "rollway plan web v2\nrollway plan -f examples/web.yaml --json",
    ),
    "activate": Listed(_CHANGE, "Make a revision the current one"),
    "rolling-update": Listed(
        "cli.commands.deployments.change_commands",
        "Roll out the current revision with another image",
        WAITING,
        "rollway rolling-update web --image web:2\n"
        "rollway rolling-update web v2 -- python serve.py\n"
        "rollway rolling-update web --rollback",
    ),
    "create": Listed(
        "cli.commands.deployments.settings_commands",
        "Create a deployment that runs nothing yet",
        WRITING,
        "rollway create web --replicas 3 --policy '{strategy: rolling_update}'",
    ),
    "policy": Listed(
        "cli.commands.deployments.settings_commands",
        "Show the policy, or set it",
        WRITING,
        "rollway policy web\n"
        "rollway policy web --set '{strategy: rolling_update, spec: {max_surge: 2, max_unavailable: 0}}'\n"
        "rollway policy web --set policy.yaml",
    ),
    "autoscaling": Listed(
        "cli.commands.deployments.settings_commands",
        "Show the autoscaling rules, or replace all of them",
        WRITING,
        "rollway autoscaling web\nrollway autoscaling web --set rules.yaml\nrollway autoscaling web --remove",
    ),
    "push-metric": Listed(
        "cli.commands.deployments.settings_commands",
        "Push a metric value",
        WRITING,
        "rollway push-metric web queue_length 17",
    ),
}

STEER: Mapping[str, Listed] = {
    "pause": Listed(_CHANGE, "Pause a rollout"),
    "resume": Listed(_CHANGE, "Continue a paused rollout"),
    "promote": Listed(_CHANGE, "Move the traffic to a green set"),
    "abort": Listed(_CHANGE, "Abort a rollout: the old revision comes back"),
    "undo": Listed(_CHANGE, "Go back to the revision before, at once"),
    "retry": Listed(_CHANGE, "Begin a rolled back rollout again"),
    "scale": Listed(_CHANGE, "Change the number of replicas"),
    "maintenance": Listed(
        "cli.commands.deployments.change_commands",
        "Turn maintenance mode (503) on or off",
        WRITING,
        "rollway maintenance web on --reason 'the database moves'\n"
        "rollway maintenance web on --page sorry.html --allow 'x-from-inside: yes'\n"
        "rollway maintenance web off",
    ),
    "destroy": Listed(_CHANGE, "Stop all replicas and delete the deployment"),
}

WATCH: Mapping[str, Listed] = {
    "status": Listed(
        "cli.commands.deployments.status_commands",
        "List deployments with their state",
        READING,
        "rollway status\nrollway status web --watch",
    ),
    "why": Listed(
        "cli.planning.receipt_command", "Explain in one sentence why a deployment waits", READING, "rollway why web"
    ),
    "receipt": Listed(
        "cli.planning.receipt_command", "Show the promises of a rollout and what it did", READING, "rollway receipt web"
    ),
    "replay": Listed(
        "cli.planning.receipt_command", "Re-check every decision of a rollout", READING, "rollway replay web --at 3"
    ),
    "history": Listed(
        "cli.commands.deployments.look_commands",
        "Show what happened, with actor and reason",
        READING,
        "rollway history web -n 50\nrollway history --since 2d --who ann",
    ),
    "events": Listed(
        "cli.events_command",
        "Show what changes as it changes",
        READING,
        "rollway events --follow\nrollway events web shop --follow --json",
    ),
    "routes": Listed(
        "cli.commands.deployments.status_commands",
        "Show the replicas of a deployment",
        READING,
        "rollway routes web --all",
    ),
    "revisions": Listed(
        "cli.commands.deployments.revisions_command",
        "List revisions, show one, or how two differ",
        (*READING, ExitCode.DIFFERENT),
        "rollway revisions list web\nrollway revisions show web v2 > web.yaml\nrollway revisions diff web v1 v2",
    ),
    "probe": Listed(
        "cli.commands.deployments.look_commands",
        "Examine how replicas answer, and how to repair them",
        READING,
        "rollway probe web\nrollway probe web --revision v2 --json",
    ),
    "logs": Listed(
        "cli.commands.deployments.logs_command",
        "Show what a replica has printed",
        READING,
        "rollway logs web --follow\nrollway logs 3f2a9c1b",
    ),
}


FLEET: Mapping[str, Listed] = {
    "traffic": Listed(
        "cli.commands.fleet.traffic",
        "Show the table as proxies get it, or set a part of it",
        WRITING,
        "rollway traffic --json\nrollway traffic web --set '{hosts: [web.example.com], path_prefix: /api/}'\n"
        "rollway traffic --explain http://web.localhost/health",
    ),
    "proxies": Listed("cli.commands.fleet.traffic", "List known proxies", READING, "rollway proxies"),
    "hosts": Listed("cli.commands.fleet.host_commands", "Show the hosts that workers run on"),
    "drain-host": Listed(
        "cli.commands.fleet.host_commands",
        "Drain a host: its replicas are replaced on other hosts",
        WRITING,
        "rollway drain-host rack-7",
    ),
    "undrain-host": Listed(
        "cli.commands.fleet.host_commands",
        "Put a drained host back in service",
        WRITING,
        "rollway undrain-host rack-7",
    ),
    "forget-host": Listed(
        "cli.commands.fleet.host_commands",
        "Forget a host that is down and will not come back",
        WRITING,
        "rollway forget-host rack-7",
    ),
    "subscribe": Listed(
        "cli.commands.fleet.subscribe_commands",
        "Send events to a webhook or a Celery task",
        WRITING,
        "rollway subscribe ci --webhook ci --type rollway.rollout.rolled_back\n"
        "rollway subscribe shop --task shop.deployed --queue shop --deployment web",
    ),
    "unsubscribe": Listed(
        "cli.commands.fleet.subscribe_commands", "Remove a subscription", WRITING, "rollway unsubscribe ci"
    ),
    "subscriptions": Listed(
        "cli.commands.fleet.subscribe_commands", "List subscriptions", READING, "rollway subscriptions"
    ),
    "freeze": Listed(
        "cli.commands.fleet.windows",
        "Block new rollouts for a time",
        WRITING,
        "rollway freeze tonight --for 4h --pause\n"
        "rollway freeze weekend --cron '0 18 * * FRI' --for 62h --time-zone Europe/Berlin --deployment 'shop-*'",
    ),
    "unfreeze": Listed("cli.commands.fleet.windows", "End a freeze", WRITING, "rollway unfreeze weekend"),
    "freezes": Listed("cli.commands.fleet.windows", "Show in which windows nothing starts", READING, "rollway freezes"),
    "group": Listed(
        "cli.commands.fleet.windows",
        "Let deployments share a budget of rollouts",
        WRITING,
        "rollway group gpu chat search images --at-most 1\nrollway group shop api web --in-order",
    ),
    "ungroup": Listed("cli.commands.fleet.windows", "Delete a group", WRITING, "rollway ungroup gpu"),
    "groups": Listed(
        "cli.commands.fleet.windows",
        "Show the groups, their rollouts, and those that wait",
        READING,
        "rollway groups",
    ),
}

UPKEEP: Mapping[str, Listed] = {
    "envoy-bootstrap": Listed(
        "cli.commands.machine.proxy_files",
        "Print the bootstrap of an Envoy of your own",
        (ExitCode.USAGE,),
        "rollway envoy-bootstrap --xds rollway.internal:7073 > envoy.yaml\nenvoy --config-path envoy.yaml",
    ),
    "proxy-token": Listed(
        "cli.commands.machine.proxy_files",
        "Print the token of a node id",
        (ExitCode.USAGE,),
        "rollway proxy-token traefik-1",
    ),
    "scrape-config": Listed(
        "cli.commands.machine.proxy_files",
        "Print the configuration of a Prometheus for this stack",
        (ExitCode.USAGE,),
        "rollway scrape-config > prometheus.yml",
    ),
    "redis-user": Listed(
        "cli.commands.machine.upkeep",
        "Print the REDIS_URL of a service that sends commands",
        (ExitCode.REFUSED, ExitCode.USAGE),
        "rollway redis-user shop\nrollway redis-user shop --remove",
    ),
    "open": Listed(
        "cli.commands.fleet.token",
        "Open the page, logged in",
        WRITING,
        "rollway open\nrollway open --print --as ann",
    ),
    "token": Listed("cli.commands.fleet.token", "Make, list and revoke tokens of the HTTP API"),
    "slots": Listed(
        "cli.commands.machine.upkeep",
        "Show or set how many workers may share a handler",
        (ExitCode.UNREACHABLE, ExitCode.USAGE),
        "rollway slots\nrollway slots 4\nrollway slots --reset",
    ),
    "doctor": Listed(
        "cli.doctor.doctor_command",
        "Look for states that should be impossible",
        READING,
        "rollway doctor --sizes\nrollway doctor --json",
    ),
}


MACHINE: Mapping[str, Listed] = {
    "demo": Listed(
        "cli.demo.demo_command",
        "Show a real rollout, a rollback and a canary, under load",
        (ExitCode.REFUSED, ExitCode.UNREACHABLE, ExitCode.INTERRUPTED),
        "rollway demo",
    ),
    "init": Listed(
        "cli.commands.machine.init",
        "Write the file of a service, after a test start here",
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


GROUPS: Mapping[str, Mapping[str, Listed]] = {
    "On this machine": MACHINE,
    "Release": RELEASE,
    "Steer": STEER,
    "Look and ask": WATCH,
    "The fleet": FLEET,
    "Proxies, tokens, upkeep": UPKEEP,
}
"""The commands by their heading in the list."""

COMMANDS: Mapping[str, Listed] = {name: entry for group in GROUPS.values() for name, entry in group.items()}
