"""The waits of `rollway hosts join` and `leave`: for the first heartbeat of a host, and for its last replica."""

import os
import time
from collections.abc import Callable, Mapping
from functools import partial

from cli.client import Reader, database_errors, send
from cli.options import new_request_id
from cli.remote import URL
from cli.terminal.exits import WaitTimedOutError
from db.views.fleet_views import HostView
from domain.commands.replica_commands import DrainHost, ForgetHost
from domain.replicas.host_choice import FRESH_SECONDS
from stack.membership import Membership, start, stop
from stack.prepare import Say

_UP_WITHIN_SECONDS, _UNSEEN_WITHIN_SECONDS = 90.0, 30.0
_POLL_SECONDS = 0.5


def leave_fleet(member: Membership, timeout: float, actor: str, say: Say) -> None:
    """Drain the host, stop its workers, and forget it. For a host that is forgotten already, only stop the workers."""
    with Reader() as reader:
        host = _host(reader, member.host)
        if host is None:
            stop(member, say)
            return
        if host.state != "up":
            start(member, say)  # only its own workers can stop the replicas that run here
        how: dict[str, str] = {"actor": actor, "reason": "rollway hosts leave"}
        send(DrainHost(request_id=new_request_id(), host=member.host, **how))
        _wait(lambda: not _replicas(reader, member.host), timeout, lambda: _stays(reader, member.host, timeout))
        stop(member, say)
        _wait(
            lambda: _is_unseen(reader, member.host),
            _UNSEEN_WITHIN_SECONDS,
            lambda: f"{member.host} still sends heartbeats: was one of its workers started by other means?",
        )
        _forget(reader, member.host, how)


def _forget(reader: Reader, name: str, how: Mapping[str, str]) -> None:
    from db.connection.transactions import engine, in_transaction  # noqa: PLC0415  (SQLAlchemy takes half a second)
    from db.replicas.lost_hosts import count_as_down  # noqa: PLC0415

    host = _host(reader, name)
    if host is not None:
        with database_errors():
            in_transaction(engine(), partial(count_as_down, name=name, unseen_since=host.now))
        send(ForgetHost(request_id=new_request_id(), host=name, **how))


def _host(reader: Reader, name: str) -> HostView | None:
    return next((host for host in reader.views(HostView, "/v1/hosts") if host.name == name), None)


def wait_until_up(member: Membership) -> None:
    """Wait for the first heartbeat of the host. Raises WaitTimedOutError."""
    _wait(
        lambda: _is_up(member.host),
        _UP_WITHIN_SECONDS,
        lambda: f"{member.host} has sent no heartbeat for {_UP_WITHIN_SECONDS:g} s: {member.log}",
    )


def _is_up(name: str) -> bool:
    with Reader() as reader:
        host = _host(reader, name)
    return host is not None and host.state == "up" and host.last_seen_at > host.registered_at


def _is_unseen(reader: Reader, name: str) -> bool:
    host = _host(reader, name)
    return host is None or (host.now - host.last_seen_at).total_seconds() > FRESH_SECONDS


def _replicas(reader: Reader, name: str) -> Mapping[str, int]:
    host = _host(reader, name)
    return host.replicas if host else {}


def _stays(reader: Reader, name: str, timeout: float) -> str:
    host = _host(reader, name)
    stays = host.stays if host else {}
    which = "; ".join(
        f"{deployment} until {until or 'it is up elsewhere'}" for deployment, until in sorted(stays.items())
    )
    return (
        f"{name} still has replicas after {timeout:g} s ({which or 'which are stopping'}), and nothing is removed: "
        f"repeat the command later, or put the host back in service with 'rollway undrain-host {name}'"
    )


def _wait(is_over: Callable[[], bool], seconds: float, otherwise: Callable[[], str]) -> None:
    """Wait until `is_over`. Raises WaitTimedOutError with the sentence `otherwise` after these seconds."""
    deadline = time.monotonic() + seconds
    while not is_over():
        if time.monotonic() >= deadline:
            raise WaitTimedOutError(otherwise())
        time.sleep(_POLL_SECONDS)


def use(environment: Mapping[str, str]) -> None:
    """Use the variables of the workers of this host, so that commands reach the same servers."""
    os.environ.update(environment)
    os.environ.pop(URL, None)
