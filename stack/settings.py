"""Ports and passwords of the embedded servers, kept from one start to the next."""

import secrets
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """What the embedded servers are started with."""

    postgres_port: int
    postgres_password: str
    redis_port: int
    redis_password: str
    flower_port: int


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
    chosen = ServerSettings(
        postgres_port=_port("postgres", "--postgres-port", asked.postgres, last.postgres_port if last else None, moved),
        redis_port=_port("valkey", "--redis-port", asked.redis, last.redis_port if last else None, moved),
        flower_port=_port("flower", "--flower-port", asked.flower, last.flower_port if last else None, moved),
        postgres_password=secrets.token_urlsafe(24),
        redis_password=secrets.token_urlsafe(24),
    )
    if last is not None:
        chosen = replace(chosen, postgres_password=last.postgres_password, redis_password=last.redis_password)
    if chosen != last:
        with folder_errors(home.root):
            write_private(home.servers_file, _SETTINGS.dump_json(chosen, indent=2).decode())
    return chosen


def _port(name: str, option: str, asked: int | None, last: int | None, moved: Callable[[str], None]) -> int:
    if asked is not None:
        return asked_port(option, asked)
    if last is None:
        return free_port()
    if is_free(last):
        return last
    port = free_port()
    moved(f"port {last} of {name} is in use by another program, so it moves to {port}")
    return port
