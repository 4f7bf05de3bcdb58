"""Servers that somebody else runs: checked before Rollway uses them.

The client libraries are imported where they are used: half a second that a start with the embedded servers can save.
"""

import socket
import ssl
from collections.abc import Callable
from queue import Empty, Queue
from threading import Thread
from typing import TypeVar
from urllib.parse import SplitResult, parse_qs, urlsplit

from domain.installation.contract import UnfitServerError, doubt_about_memory, refuse_old_postgres, refuse_old_redis
from domain.installation.settings import database_address, libpq_url
from stack.stack_errors import StackError

T = TypeVar("T", int, str)
_TIMEOUT = 3


def check_database(url: str) -> str:
    """Connect to DATABASE_URL and return its address (host:port/database).

    Raises StackError within seconds, never with the password: wrong scheme, unreachable, refused, no such database,
    PostgreSQL older than 18.
    """
    address = database_address(url)
    if "," not in address:  # of several, libpq finds the one that serves
        _, host, port = _parse("DATABASE_URL", url, ("postgresql", "postgresql+psycopg", "postgres"), 5432)
        if host:
            _reach("DATABASE_URL", "PostgreSQL", host, port)
    import psycopg  # noqa: PLC0415

    try:
        with psycopg.connect(libpq_url(url), connect_timeout=_TIMEOUT) as connection:
            version = connection.info.server_version
    except psycopg.Error as error:
        raise StackError(_refusal(address, str(error))) from error
    _refuse_old("DATABASE_URL", refuse_old_postgres, version, address)
    return address


def check_redis(url: str, warn: Callable[[str], None] = lambda _: None) -> str:
    """Connect to REDIS_URL and return its address (host:port/database). Raises StackError as `check_database` does.

    `warn` hears of one that may throw messages away.
    """
    address, host, port = _parse("REDIS_URL", url, ("redis", "rediss", "unix"), 6379)
    import redis  # noqa: PLC0415
    from redis.backoff import NoBackoff  # noqa: PLC0415
    from redis.retry import Retry  # noqa: PLC0415

    if host:
        _reach("REDIS_URL", "Redis", host, port)
    client: redis.Redis | None = None
    try:
        client = redis.Redis.from_url(
            url, protocol=2, socket_timeout=_TIMEOUT, socket_connect_timeout=_TIMEOUT, retry=Retry(NoBackoff(), 0)
        )
        _refuse_old("REDIS_URL", refuse_old_redis, str(client.info("server")["redis_version"]), address)
        if doubt := doubt_about_memory(str(client.info("memory")["maxmemory_policy"]), address):
            warn(f"REDIS_URL: {doubt}")
    except (redis.AuthenticationError, redis.exceptions.NoPermissionError) as error:
        raise StackError(f"REDIS_URL: Redis at {address} refuses the user or password.") from error
    except redis.ResponseError as error:
        raise StackError(f"REDIS_URL: Redis at {address} refuses the database number.") from error
    except redis.ConnectionError as error:
        raise StackError(_no_connection(address, error)) from error
    except (redis.RedisError, ValueError, OSError) as error:
        raise StackError(f"REDIS_URL: what listens at {address} does not answer as Redis does.") from error
    finally:
        if client is not None:
            client.close()
    return address


def _refuse_old(variable: str, refuse: Callable[[T, str], None], version: T, address: str) -> None:
    try:
        refuse(version, address)
    except UnfitServerError as error:
        raise StackError(f"{variable}: {error.message}.") from None


def _parse(variable: str, url: str, schemes: tuple[str, ...], default_port: int) -> tuple[str, str, int]:
    """(address for people, host, port). The sentence never repeats the URL: there is no telling where a secret is."""
    example = f"{schemes[0]}://user:password@host:port/database"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or _socket_host(parts), parts.port or default_port
    except ValueError:
        raise StackError(f"{variable} is not an address: it should look like {example}.") from None
    if parts.scheme not in schemes:
        problem = f"starts with '{parts.scheme}://'" if "://" in url else "has no scheme"
        raise StackError(f"{variable} {problem}: it should look like {example}.")
    if "@" in parts.path + parts.query + parts.fragment:
        raise StackError(f"{variable}: write /, ? and # in a password as %2F, %3F and %23, as in {example}.")
    if host is None:
        raise StackError(f"{variable} names no host: it should look like {example}.")
    if parts.scheme == "unix":
        return host, "", port
    return f"{host}:{port}{parts.path}", "" if host.startswith("/") else host, port


def _socket_host(parts: SplitResult) -> str | None:
    """The Unix socket, or for PostgreSQL its folder."""
    return parts.path if parts.scheme == "unix" else parse_qs(parts.query).get("host", [None])[0]


def _reach(variable: str, what: str, host: str, port: int) -> None:
    # a name server that does not answer knows no timeout, so the attempt is given up from outside
    outcome: Queue[str] = Queue()
    Thread(target=lambda: outcome.put(_why_not(host, port)), daemon=True).start()
    try:
        reason = outcome.get(timeout=_TIMEOUT + 2)
    except Empty:
        reason = "its name is not resolved within seconds"
    if reason:
        raise StackError(f"{variable}: {what} at {host}:{port} cannot be reached: {reason}.")


def _why_not(host: str, port: int) -> str:
    try:
        socket.create_connection((host, port), timeout=_TIMEOUT).close()
    except socket.gaierror:
        return "no machine of that name is known"
    except TimeoutError:
        return f"no answer within {_TIMEOUT} s"
    except ConnectionRefusedError:
        return "nothing listens there"
    except OSError as error:
        return error.strerror or "not reachable"
    return ""


def _no_connection(address: str, error: BaseException) -> str:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return (
                f"REDIS_URL: the certificate of Redis at {address} is not trusted ({cause.verify_message}): "
                "name the file of its authority, as in rediss://...?ssl_ca_certs=/etc/ssl/redis-ca.pem."
            )
        cause = cause.__cause__ or cause.__context__
    return f"REDIS_URL: what listens at {address} does not answer as Redis does."


def _refusal(address: str, words: str) -> str:
    if "authentication" in words or "no password supplied" in words:
        return f"DATABASE_URL: PostgreSQL at {address} refuses the user or password."
    if "does not exist" in words and "database" in words:
        return f"DATABASE_URL: PostgreSQL at {address} has no such database: create it, or name another."
    if "root certificate file" in words:
        return f"DATABASE_URL: name the file of the authority of PostgreSQL at {address} with ?sslrootcert=."
    if "timeout" in words:
        return f"DATABASE_URL: what listens at {address} did not answer within {_TIMEOUT} s as PostgreSQL does."
    return f"DATABASE_URL: PostgreSQL at {address} does not accept the connection."
