"""Ports and passwords of the embedded servers, kept from one start to the next."""

import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace

from pydantic import TypeAdapter, ValidationError

from stack.errors import StackError, folder_errors
from stack.home import Home, write_private
from stack.ports import asked_port, free_port, is_free


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedPorts:
    """Ports a person asked for; None leaves the choice to Rollway."""

    postgres: int | None = None
    redis: int | None = None
    flower: int | None = None
    api: int | None = None
    envoy: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """What the embedded servers are started with. `envoy_node` is how the embedded Envoy calls itself.

    What has a default was not in the file of earlier versions. A port of 0 is one that is not chosen yet.
    """

    postgres_port: int
    postgres_password: str
    redis_port: int
    redis_password: str
    flower_port: int
    api_port: int = 0
    envoy_port: int = 0
    envoy_admin_port: int = 0
    envoy_node: str = ""


_SETTINGS = TypeAdapter(ServerSettings)


def load_settings(home: Home) -> ServerSettings | None:
    """The settings of the last start; None before the first. Raises StackError when the file makes no sense."""
    try:
        with folder_errors(home.servers_file):
            return _SETTINGS.validate_json(home.servers_file.read_bytes()) if home.servers_file.exists() else None
    except ValidationError as error:
        # the values of the file are secrets, so the reason stays out of the sentence
        raise StackError(
            f"{home.servers_file} is damaged: delete it, new ports and passwords are then chosen."
        ) from error


def choose_settings(home: Home, asked: AskedPorts, moved: Callable[[str], None]) -> ServerSettings:
    """Settings for a start, remembered in `home`; `moved` hears a sentence for each remembered port that is taken.

    Raises StackError when an asked port is taken.
    """
    last = load_settings(home)
    before = last or _first()
    chosen = replace(
        before,
        postgres_port=_port("postgres", "--postgres-port", asked.postgres, before.postgres_port, moved),
        redis_port=_port("valkey", "--redis-port", asked.redis, before.redis_port, moved),
        flower_port=_port("flower", "--flower-port", asked.flower, before.flower_port, moved),
        api_port=_port("api", "--api-port", asked.api, before.api_port, moved),
        envoy_port=_port("envoy", "--envoy-port", asked.envoy, before.envoy_port, moved),
        envoy_admin_port=_port("envoy's admin", "", None, before.envoy_admin_port, moved),
        # random, for two stacks that share a database must not answer for each other
        envoy_node=before.envoy_node or f"envoy-{socket.gethostname()}-{secrets.token_hex(4)}",
    )
    if chosen != last:
        with folder_errors(home.root):
            write_private(home.servers_file, _SETTINGS.dump_json(chosen, indent=2).decode())
    return chosen


def _first() -> ServerSettings:
    return ServerSettings(
        postgres_port=0,
        postgres_password=secrets.token_urlsafe(24),
        redis_port=0,
        redis_password=secrets.token_urlsafe(24),
        flower_port=0,
    )


def _port(name: str, option: str, asked: int | None, last: int, moved: Callable[[str], None]) -> int:
    if asked is not None:
        return asked_port(option, asked)
    if not last:
        return free_port()
    if is_free(last):
        return last
    port = free_port()
    moved(f"port {last} of {name} is in use by another program, so it moves to {port}")
    return port
