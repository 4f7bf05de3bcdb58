"""systemd units for workers, beat, Rollway's servers and Flower, and the environment file that they read."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stack.home.server_settings import HOST
from stack.parts.processes import API, BEAT, PEOPLE, flower, worker

_INSTANCE = "INSTANCE"
_API_PORT, _PEOPLE_PORT, _FLOWER_PORT = 7070, 7072, 5555

_UNIT = """\
[Unit]
Description={description}
Documentation=https://docs.celeryq.dev/en/stable/userguide/daemonizing.html
Wants=network-online.target
After=network-online.target postgresql.service redis-server.service valkey.service
PartOf=rollway.target
StartLimitIntervalSec=0

[Service]
User={user}
Group={user}
EnvironmentFile={environment_file}
Environment=ROLLWAY_HOME=/var/lib/rollway PYTHONUNBUFFERED=1
StateDirectory=rollway
StateDirectoryMode=0700
UMask=0077
WorkingDirectory=/var/lib/rollway
ExecStart={command}
Restart=always
RestartSec=2
# 78: it belongs to another installation, or its servers are too old. Starting it again changes nothing.
RestartPreventExitStatus=78
TimeoutStopSec=30
LimitNOFILE=65536
# No more lines a minute than these go into the journal, whose size is SystemMaxUse= of journald.conf.
LogRateLimitIntervalSec=60
LogRateLimitBurst=6000
{more}
[Install]
WantedBy=rollway.target
"""

_WATCHED = """\
# One that hangs is ended, and started again.
WatchdogSec=60
NotifyAccess=main
"""

# It starts no replica, so that it needs nothing of the machine but sockets, its own files and what it is made of.
_CONFINED = """\
NoNewPrivileges=yes
CapabilityBoundingSet=
ProtectSystem=strict
ProtectHome=read-only
PrivateTmp=yes
PrivateDevices=yes
ProtectProc=invisible
ProtectClock=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectControlGroups=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
RemoveIPC=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM
"""

_WORKER = """\
# Its replicas are processes in its control group, and outlive it: only the worker itself is ended, the next one takes
# them over. So there is no PrivateTmp= and the like, which would give replicas of each worker a /tmp of their own.
KillMode=process
OOMPolicy=continue
TasksMax=infinity
"""

_SOCKET = """\
[Unit]
Description={description}: its port, which nobody else gets while it is started again
PartOf=rollway.target

[Socket]
ListenStream={address}

[Install]
WantedBy=sockets.target
"""

_TARGET = """\
[Unit]
Description=Rollway

[Install]
WantedBy=multi-user.target
"""

_ENVIRONMENT = """\
# Read by systemd: NAME=value, without `export` and $VARIABLES; readable by root alone, since it holds passwords.
DATABASE_URL=postgresql://rollway:PASSWORD@db.internal:5432/rollway
REDIS_URL=redis://:PASSWORD@redis.internal:6379/0

# Where proxies reach the replicas of this host; its name is ROLLWAY_HOST, the host name if left out.
ROLLWAY_HOST_ADDRESS=10.0.0.1

# The labels of this host, which revisions may require of theirs.
# ROLLWAY_HOST_LABELS=zone=a,disk=ssd
# ROLLWAY_HOST_RESOURCES=gpu=4,memory_gb=240

# Where the server for proxies listens, the second port for Envoy, and the server for people. Where their socket units
# are enabled, they contain the address of ROLLWAY_API_PORT and of ROLLWAY_PEOPLE_PORT.
# ROLLWAY_PROXY_KEY: the secret (32 characters or more) that tokens of proxies are made from.
ROLLWAY_API_HOST=127.0.0.1
ROLLWAY_API_PORT=7070
ROLLWAY_DISCOVERY_PORT=7073
#ROLLWAY_PROXY_KEY=

# Where Envoys listen for HTTPS; and the secret that the keys of certificates are sealed with, the same on each host.
#ROLLWAY_TLS_PORT=443
#ROLLWAY_CERTIFICATE_KEY=

# What is in front of Envoys: how many proxies are believed, and whether they send the PROXY protocol. The environment
# of `rollway envoy-bootstrap` needs the same: docs/proxies.md.
#ROLLWAY_TRUSTED_HOPS=1
#ROLLWAY_PROXY_PROTOCOL=on

# Where the server for people listens: docs/http-api.md. Every request to it shows a token.
ROLLWAY_PEOPLE_HOST=127.0.0.1
ROLLWAY_PEOPLE_PORT=7072

# Who may look at Flower, which shows every command with the plain values of its payload.
FLOWER_BASIC_AUTH=rollway:PASSWORD
"""


@dataclass(frozen=True, slots=True)
class SystemdService:
    """A unit: its description, its command line, and its own lines in the section [Service].

    `address`: where it listens, if systemd keeps that for it.
    """

    description: str
    command: Sequence[str]
    more: str = ""
    address: str = ""


_SERVICES: Mapping[str, SystemdService] = {
    "rollway-worker@.service": SystemdService(
        f"Rollway worker {_INSTANCE}", worker(f"worker{_INSTANCE}"), _WATCHED + _WORKER
    ),
    "rollway-beat.service": SystemdService("Rollway beat", BEAT, _WATCHED + _CONFINED),
    "rollway-api.service": SystemdService(
        "Rollway server for proxies", API, _WATCHED + _CONFINED, f"{HOST}:{_API_PORT}"
    ),
    "rollway-people.service": SystemdService(
        "Rollway server for people", PEOPLE, _WATCHED + _CONFINED, f"{HOST}:{_PEOPLE_PORT}"
    ),
    "rollway-flower.service": SystemdService(
        "Flower for Rollway", flower(HOST, _FLOWER_PORT), _CONFINED, f"{HOST}:{_FLOWER_PORT}"
    ),
}


def files(user: str, environment_file: str) -> dict[str, str]:
    """The text of each file by its name. `user`: the account of all units, and the owner of /var/lib/rollway."""
    units = {name: _unit(service, user, environment_file) for name, service in _SERVICES.items()}
    sockets = {
        name.replace(".service", ".socket"): _SOCKET.format(description=service.description, address=service.address)
        for name, service in _SERVICES.items()
        if service.address
    }
    return {**units, **sockets, "rollway.target": _TARGET, "rollway.environment": _ENVIRONMENT}


def _unit(service: SystemdService, user: str, environment_file: str) -> str:
    text = _UNIT.format(
        description=service.description,
        user=user,
        environment_file=environment_file,
        command=_command_line(service.command),
        more=service.more,
    )
    return text.replace(_INSTANCE, "%i")


def _command_line(command: Sequence[str]) -> str:
    """The command line as systemd reads it, with % and $ doubled."""
    return shlex.join(command).replace("%", "%%").replace("$", "$$")
