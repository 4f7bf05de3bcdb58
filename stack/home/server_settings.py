"""Ports, sockets and passwords of the embedded servers, kept from one start to the next."""

import secrets
import socket
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

import runtime.machine.free_ports
from runtime.machine.free_ports import SERVER_PORTS, claim
from stack.home.folder import Home, write_private
from stack.home.sockets import Sockets
from stack.stack_errors import StackError, folder_errors
from traffic.edge_settings import NOTHING_IN_FRONT, InFront

HOST = "127.0.0.1"
HANDOVER_SECONDS = 60
"""As long as a drain waits for a silent proxy: rollouts wait for the old process of an Envoy as well."""
_METRICS = "metrics of "
_OPTIONS = {"envoy_tls": "--tls-port"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Ports of 127.0.0.1; 0 leaves the choice to Rollway.

    `forwarded`: the port that leads to a server which listens on a Unix socket in the home, by the server's name:
    postgres, redis, discovery. There is none unless a person asks for it, and 0 closes it.
    """

    flower: int = 0
    api: int = 0
    people: int = 0
    envoy: int = 0
    envoy_tls: int = 0
    envoy_stats: int = 0
    envoy2_stats: int = 0
    forwarded: Mapping[str, int] = field(default_factory=dict)

    @property
    def by_name(self) -> dict[str, int]:
        return {name: port for name, port in asdict(self).items() if name != "forwarded"}


def _password() -> str:
    return secrets.token_urlsafe(24)


def _key() -> str:
    return secrets.token_hex(32)


def _node() -> str:
    return f"envoy-{socket.gethostname()}-{secrets.token_hex(4)}"


def _base_id() -> int:
    return secrets.randbelow(2**28) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The settings that the embedded servers are started with.

    `envoy_node`: the name of the embedded Envoy. It is random: two stacks that share a database must not answer for
    each other. `envoy_base_id` is random too, and keeps the Envoys of several stacks on one machine apart. `proxy_key`:
    the tokens of proxies are made from it. `certificate_key`: it seals the keys of certificates. `envoy_host`: where
    Envoy listens for callers. `envoy_handover_seconds`: the time in which an Envoy that is replaced finishes its
    requests. `metrics`: the port where a part shows its metrics, by its name. `redis_users`: the password of each
    service that may send commands. `sockets`: the folder by which clients name the Unix sockets, the home or a link to
    it. `replica_user`: the account of replicas; empty: that of the workers, since no other was possible; None: that of
    the workers, since nobody has chosen. `in_front`: what is in front of its Envoys.
    """

    ports: Ports = field(default_factory=Ports)
    postgres_password: str = field(default_factory=_password)
    redis_password: str = field(default_factory=_password)
    flower_password: str = field(default_factory=_password)
    envoy_node: str = field(default_factory=_node)
    envoy_base_id: int = field(default_factory=_base_id)
    proxy_key: str = field(default_factory=_key)
    certificate_key: str = field(default_factory=_key)
    envoy_host: str = HOST
    envoy_handover_seconds: int = HANDOVER_SECONDS
    metrics: Mapping[str, int] = field(default_factory=dict)
    redis_users: Mapping[str, str] = field(default_factory=dict)
    sockets: str = ""
    replica_user: str | None = None
    in_front: InFront = NOTHING_IN_FRONT

    @property
    def named_sockets(self) -> Sockets:
        """The Unix sockets, by the names that clients can use."""
        return Sockets(Path(self.sockets))


_SETTINGS = TypeAdapter(ServerSettings)


def load_settings(home: Home) -> ServerSettings | None:
    """The settings of the last start; None before the first one. Raises StackError for a damaged file."""
    try:
        with folder_errors(home.servers_file):
            return _SETTINGS.validate_json(home.servers_file.read_bytes()) if home.servers_file.exists() else None
    except ValidationError as error:
        # the values of the file are secrets, so the reason stays out of the sentence
        raise StackError(
            f"{home.servers_file} is damaged: delete it, new ports and passwords are then chosen."
        ) from error


def choose_settings(  # noqa: PLR0913 -- of these callers name what is not usual
    home: Home,
    requested: Ports,
    on_move: Callable[[str], None],
    running: Collection[str] = (),
    with_metrics: Collection[str] = (),
    claims: ExitStack | None = None,
    initial: Callable[[ServerSettings | None], ServerSettings] = lambda last: last or ServerSettings(),
) -> ServerSettings:
    """Settings of a start, remembered in `home`. `running` parts keep their ports; `with_metrics` parts show metrics.

    `initial`: from the settings of the last start, if there was one, to those that this start begins with.

    `on_move` gets a sentence for each remembered port that another program uses now. `claims` keeps the ports until it
    is closed. Raises StackError when a requested port is taken.
    """
    last = initial(load_settings(home))
    needed = requested.by_name | {_METRICS + name: 0 for name in with_metrics}
    remembered = last.ports.by_name | {_METRICS + name: port for name, port in last.metrics.items()}
    choice = _Choice(on_move, remembered, claims)
    forwarded = {name: port for name, port in {**last.ports.forwarded, **requested.forwarded}.items() if port}
    for name, port in forwarded.items():
        choice.forward(name, port, is_held=f"{name}-port" in running and last.ports.forwarded.get(name) == port)
    for name in sorted(needed, key=lambda name: not needed[name]):  # requested ports first
        choice.choose(name, needed[name], is_held=_part_of(name) in running)
    ports = Ports(**{name: choice.ports[name] for name in requested.by_name}, forwarded=forwarded)
    metrics = {name: choice.ports[_METRICS + name] for name in with_metrics}
    settings = replace(last, ports=ports, metrics=metrics)
    save_settings(home, settings)
    return settings


def save_settings(home: Home, settings: ServerSettings) -> None:
    """Remember them for the next start. Raises StackError."""
    with folder_errors(home.root):
        write_private(home.servers_file, _SETTINGS.dump_json(settings, indent=2).decode())


def _part_of(port: str) -> str:
    return port.removeprefix(_METRICS).partition("_")[0]


@dataclass(frozen=True, slots=True)
class _Choice:
    """Ports for one start, by name: all differ, and none is the remembered port of another name."""

    on_move: Callable[[str], None]
    remembered: Mapping[str, int]
    claims: ExitStack | None
    ports: dict[str, int] = field(default_factory=dict)

    def choose(self, name: str, requested: int, *, is_held: bool) -> None:
        """The requested port, or the last one, which a running part holds, or another."""
        last, used = self.remembered.get(name, 0), self.ports.values()
        if last and is_held and requested in (0, last):
            self.ports[name] = last
            return
        if requested:
            port = asked_port(_option(name), requested, used)
        elif last and last not in used and is_free(last):
            port = last
        else:
            port = free_port({*used, *self.remembered.values()})
        if last and not requested and port != last:
            self.on_move(f"port {last} of {name.replace('_', ' ')} is in use, so it moves to {port}")
        self._claim(name, port)
        self.ports[name] = port

    def forward(self, name: str, port: int, *, is_held: bool) -> None:
        """Take this very port, or fail: services know it by its number."""
        if not is_held:
            self._claim(name, asked_port(_option(name), port, self.ports.values()))
        self.ports[f"{name} forwarded"] = port

    def _claim(self, name: str, port: int) -> None:
        """Take the port now: another stack may choose the same one at this moment, and a stranger may wait for it."""
        if self.claims is not None:
            listener = claim(port, HOST)
            if listener is None:
                raise _in_use(_option(name), port)
            self.claims.enter_context(listener)


def is_free(port: int) -> bool:
    """Whether a server could listen on `port` now; closed connections of one that just stopped do not count."""
    return runtime.machine.free_ports.is_free(port, HOST, reuse=True)


def free_port(reserved: Collection[int] = ()) -> int:
    """A port that nobody uses at the moment and that is not `reserved`. Raises StackError when there is none."""
    port = runtime.machine.free_ports.free_port(SERVER_PORTS, reserved.__contains__)
    if port is None:
        raise StackError(f"No port from {SERVER_PORTS.start} to {SERVER_PORTS.stop - 1} is free: stop what uses them.")
    return port


def asked_port(option: str, port: int, reserved: Collection[int]) -> int:
    """The port that a person chose by `option`. Raises StackError when it is taken, or chosen twice."""
    if port in reserved:
        raise StackError(f"Port {port} is asked for twice: choose another with {option}.")
    if not is_free(port):
        raise _in_use(option, port)
    return port


def _option(name: str) -> str:
    return _OPTIONS.get(name, f"--{name}-port")


def _in_use(option: str, port: int) -> StackError:
    return StackError(f"Port {port} on {HOST} is in use: choose another with {option}, or stop what uses it.")
