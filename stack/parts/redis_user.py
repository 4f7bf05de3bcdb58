"""Users of the embedded Redis for other services: each may send commands and read the answers, and nothing else."""

import re
import secrets
from dataclasses import replace

from stack.home.folder import Home
from stack.home.server_settings import HOST, ServerSettings, load_settings, save_settings
from stack.home.stack_state import read_state
from stack.stack_errors import StackError

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
        known = ", ".join(settings.redis_users) or "none"
        raise StackError(f"Redis has no user {name!r} that was made here; there are: {known}.")
    left = {user: word for user, word in settings.redis_users.items() if user != name}
    _remember(home, settings, left, "DELUSER", name)


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

    from stack.parts.valkey import redis_url, valkey_part  # noqa: PLC0415 -- the rules above are written by it

    url = redis_url(settings.named_sockets.valkey, settings.redis_password)
    with redis.Redis.from_url(url, socket_timeout=5) as client:
        client.execute_command("ACL", *change)
    save_settings(home, replace(settings, redis_users=users))
    valkey_part(home.valkey, settings.redis_password, users)
