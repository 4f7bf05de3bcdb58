"""Commands about the whole fleet, and what keeps it up."""

from collections.abc import Mapping

from cli.listed.listed import Listed
from cli.terminal.exits import READING, WRITING, ExitCode

FLEET: Mapping[str, Listed] = {
    "traffic": Listed(
        "cli.commands.fleet.traffic",
        "Show the table as proxies get it, or set a part of it",
        WRITING,
        "rollway traffic --json\nrollway traffic web --set '{hosts: [web.example.com], path_prefix: /api/}'\n"
        "rollway traffic --explain http://web.localhost/health",
    ),
    "proxies": Listed("cli.commands.fleet.traffic", "Show the proxies that were heard of", READING, "rollway proxies"),
    "hosts": Listed("cli.commands.fleet.host_commands", "Show the hosts that workers run on", READING, "rollway hosts"),
    "drain-host": Listed(
        "cli.commands.fleet.host_commands",
        "Empty a host: what runs there is replaced on others",
        WRITING,
        "rollway drain-host rack-7",
    ),
    "undrain-host": Listed(
        "cli.commands.fleet.host_commands",
        "Let a host that was drained have replicas again",
        WRITING,
        "rollway undrain-host rack-7",
    ),
    "forget-host": Listed(
        "cli.commands.fleet.host_commands",
        "Forget a host that is down and never comes back",
        WRITING,
        "rollway forget-host rack-7",
    ),
    "subscribe": Listed(
        "cli.commands.fleet.subscription_commands",
        "Tell a webhook or a Celery task what happens",
        WRITING,
        "rollway subscribe ci --webhook ci --type rollway.rollout.rolled_back\n"
        "rollway subscribe shop --task shop.deployed --queue shop --deployment web",
    ),
    "unsubscribe": Listed(
        "cli.commands.fleet.subscription_commands", "End a subscription", WRITING, "rollway unsubscribe ci"
    ),
    "subscriptions": Listed(
        "cli.commands.fleet.subscription_commands", "Show who is told of transitions", READING, "rollway subscriptions"
    ),
    "freeze": Listed(
        "cli.commands.fleet.windows",
        "Let nothing start in a window",
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
    "ungroup": Listed("cli.commands.fleet.windows", "End a group", WRITING, "rollway ungroup gpu"),
    "groups": Listed(
        "cli.commands.fleet.windows",
        "Show the groups, who rolls out and who waits",
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
