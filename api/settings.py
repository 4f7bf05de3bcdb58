"""Where the server for proxies listens, read from the environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from domain.errors import InvalidInputError

_PORTS = 65_536


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """`host`: an address of this machine. Who reaches the port learns where replicas are, and can delay drains."""

    host: str = "127.0.0.1"
    port: int = 7070

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Self:
        """From ROLLWAY_API_HOST and ROLLWAY_API_PORT. Raises InvalidInputError naming the variable."""
        given = os.environ if environment is None else environment
        host = given.get("ROLLWAY_API_HOST") or "127.0.0.1"
        return cls(host, _port(given.get("ROLLWAY_API_PORT") or "7070"))


def _port(raw: str) -> int:
    if raw.isascii() and raw.isdigit() and 0 < int(raw) < _PORTS:
        return int(raw)
    raise InvalidInputError(
        f"ROLLWAY_API_PORT must be a port from 1 to {_PORTS - 1}, not {raw!r}", field="ROLLWAY_API_PORT"
    )
