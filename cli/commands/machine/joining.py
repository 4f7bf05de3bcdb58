"""`rollway hosts join` makes a machine a host, and `rollway hosts leave` undoes that."""

import os
import secrets
import shlex
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated

import typer

from cli.client import database_errors
from cli.commands.machine.handover import (
    address_towards,
    environment_here,
    seal_of,
    settings_from,
    shared_files,
    url_here,
)
from cli.commands.machine.host_waits import leave_fleet, use, wait_until_up
from cli.options import WAIT_SECONDS, Actor, AsJson
from cli.remote import needs_database, remote
from cli.terminal.exits import UsageError
from cli.terminal.output import print_json, printer
from domain.installation.host_invitation import (
    Invitation,
    SharedSettings,
    is_here,
    refuse_unreachable,
    shared_of,
)
from domain.installation.tokens import SECRET_BYTES
from domain.replicas.host_choice import host_name
from domain.revisions.host_labels import labels_in
from domain.text.errors import InvalidInputError
from stack.home.folder import Home, find_home
from stack.membership import (
    SYSTEM_FOLDER,
    SYSTEM_HOME,
    Membership,
    keep_record,
    membership_here,
    read_record,
    refuse_another_stack,
    remove,
    start,
    stop,
    systemd_runs_here,
    write_for,
)
from stack.parts.external_servers import check_database, check_redis
from stack.parts.processes import default_workers
from stack.prepare import Say
from stack.stack_errors import StackError

Line = Annotated[
    str | None,
    typer.Argument(metavar="LINE", help="On the new machine: the line that the first one printed.", show_default=False),
]
_Url = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", help="Where others reach the server for people.", show_default=False),
]
_Database = Annotated[
    str | None,
    typer.Option("--database-url", metavar="URL", help="PostgreSQL, as others reach it.", show_default="DATABASE_URL"),
]
_Redis = Annotated[
    str | None,
    typer.Option("--redis-url", metavar="URL", help="Redis, as others reach it.", show_default="REDIS_URL"),
]
_HostName = Annotated[
    str | None, typer.Option("--name", metavar="HOST", help="Its name.", show_default="its host name")
]
_Address = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="ADDRESS",
        help="Where proxies reach its replicas.",
        show_default="the one by which it reaches PostgreSQL",
    ),
]
_Labels = Annotated[str, typer.Option("--labels", metavar="LABELS", help="As in zone=a,disk=ssd.", show_default=False)]
_Workers = Annotated[
    int | None, typer.Option("--workers", min=1, help="Workers.", show_default="one for each core, at most 8")
]
_User = Annotated[
    str | None,
    typer.Option(
        "--user",
        metavar="USER",
        help="Of the units; root for replicas as others.",
        show_default="rollway, or root where ROLLWAY_REPLICA_USER is set",
    ),
]
_Foreground = Annotated[
    bool, typer.Option("--foreground", help="Without systemd: stay, and stop the workers on Ctrl-C.")
]
_Timeout = Annotated[float, typer.Option("--timeout", min=0, metavar="SECONDS", help="How long replicas may take.")]


@dataclass(frozen=True, slots=True)
class NewHost:
    """The options of `rollway hosts join` on the new host."""

    name: str
    address: str | None
    labels: str
    workers: int
    user: str | None
    foreground: bool


def join(
    *,
    line: Line = None,
    url: _Url = None,
    database_url: _Database = None,
    redis_url: _Redis = None,
    name: _HostName = None,
    address: _Address = None,
    labels: _Labels = "",
    workers: _Workers = None,
    user: _User = None,
    foreground: _Foreground = False,
    actor: Actor,
    as_json: AsJson = False,
) -> None:
    """Make another machine a host: print the line to type there, which works for one machine and for one hour.

    On the new machine, where Rollway is installed, the line gets the settings that all hosts share, writes an
    environment file with the name, the address and the labels of the machine, and starts its workers. Where systemd
    runs and root types the line, workers are units; elsewhere they run as 'rollway up' starts them. If the line was cut
    off, type it again, and it continues. 'rollway hosts leave' undoes it.
    """
    with_line = {"--name": name, "--address": address, "--labels": labels, "--workers": workers, "--user": user}
    without_line = {"--url": url, "--database-url": database_url, "--redis-url": redis_url}
    misplaced = [option for option, value in (without_line if line else with_line).items() if value]
    if misplaced:
        where = "on the machine that prints the line" if line else "with the line, on the new machine"
        raise UsageError(f"{misplaced[0]} is for 'rollway hosts join' {where}")
    if line is None:
        return _invite(url, {"DATABASE_URL": database_url, "REDIS_URL": redis_url}, actor, as_json=as_json)
    host = NewHost(
        _checked_name(name or socket.gethostname()), address, labels, workers or default_workers(), user, foreground
    )
    _refuse_wrong(host)
    return _become(Invitation.parse(line), host, as_json=as_json)


def leave(*, timeout: _Timeout = WAIT_SECONDS, actor: Actor, as_json: AsJson = False) -> None:
    """Undo 'rollway hosts join' on this machine: move its replicas, stop its workers, and remove what join wrote.

    Replicas move as 'rollway drain-host' moves them. The command waits while a replica stays that no other host takes,
    and ends after --timeout without removing anything. Type it again, and it continues.
    """
    member = membership_here(os.environ)
    if member is None:
        raise StackError(
            "'rollway hosts join' did not make this machine a host, so there is nothing to undo: 'rollway down' stops "
            "a stack, and 'rollway drain-host' drains a host."
        )
    say = _sayer(as_json=as_json)
    if member.is_complete:
        use(member.environment)
        leave_fleet(member, timeout, actor, say)
    else:
        stop(member, say)
    remaining = remove(member)
    if as_json:
        return print_json({"host": member.host, "left": True, "remaining": remaining})
    rest = f"; Rollway did not write {', '.join(map(str, remaining))}, and leaves it there" if remaining else ""
    return printer().print(f"{member.host} is no longer a host{rest}.")


def _invite(url: str | None, others: Mapping[str, str | None], actor: str, *, as_json: bool) -> None:
    from db.connection.transactions import engine, in_transaction  # noqa: PLC0415  (SQLAlchemy takes half a second)
    from db.host_invitations import invite_host  # noqa: PLC0415

    if remote() is not None:
        raise needs_database()
    environ = {**environment_here(), **{variable: value for variable, value in others.items() if value}}
    refuse_unreachable(environ)
    invitation = Invitation(url_here(url, environ), secrets.token_urlsafe(SECRET_BYTES))
    settings = SharedSettings(environment=shared_of(environ), files=shared_files(environ))
    sealed_settings = seal_of(invitation).seal(settings.model_dump_json())
    with database_errors():
        ends_at = in_transaction(
            engine(), lambda connection: invite_host(connection, invitation.proof, sealed_settings, actor)
        )
    line = f"rollway hosts join {shlex.quote(str(invitation))}"
    if as_json:
        return print_json({"line": line, "ends_at": ends_at, "url": invitation.url})
    printer(stderr=True).print("This line makes one machine a host. Type it on that machine within an hour:")
    return typer.echo(line)


def _become(invitation: Invitation, host: NewHost, *, as_json: bool) -> None:
    """Get the settings, write them, start the workers, and wait until the host is up."""
    began = time.monotonic()
    say = _sayer(as_json=as_json)
    member = _record_of(invitation, host)
    if not member.is_complete:
        member = _write_settings(member, invitation, host)
    start(member, say)
    use(member.environment)
    wait_until_up(member)
    if as_json:
        print_json(
            {
                "host": member.host,
                "address": member.address,
                "home": member.home,
                "workers": member.workers,
                "started_by": member.started_by,
                "environment_file": member.environment_file,
                "seconds": round(time.monotonic() - began, 2),
            }
        )
    else:
        printer().print(f"{member.host} is a host now, at {member.address}; 'rollway hosts leave' undoes it.")
    if host.foreground:
        from cli.commands.machine.stack import stay_until_stopped  # noqa: PLC0415

        stay_until_stopped(Home(member.home), say)


def _record_of(invitation: Invitation, host: NewHost) -> Membership:
    """The record of this machine, new if it has none. Raises StackError if another line made it a host already."""
    by_systemd = systemd_runs_here() and not host.foreground
    home = SYSTEM_HOME if by_systemd else find_home(os.environ).root
    record = read_record(SYSTEM_FOLDER if by_systemd else home)
    if record is not None and record.is_complete:
        if record.invitation != invitation.proof:
            raise StackError(f"This machine is the host {record.host} already: 'rollway hosts leave' undoes that.")
        return record
    if record is not None:
        return keep_record(replace(record, invitation=invitation.proof, host=host.name, workers=host.workers))
    if not by_systemd:
        refuse_another_stack(home)
    return keep_record(
        Membership(
            started_by="systemd" if by_systemd else "supervisor",
            home=home,
            host=host.name,
            invitation=invitation.proof,
            machine=secrets.token_hex(16),
            workers=host.workers,
            makes_home=not home.exists() or not any(home.iterdir()),
        )
    )


def _write_settings(member: Membership, invitation: Invitation, host: NewHost) -> Membership:
    settings = settings_from(invitation, member)
    environment = settings.environment
    check_database(environment["DATABASE_URL"])
    check_redis(environment["REDIS_URL"])
    address = host.address or address_towards(environment["DATABASE_URL"])
    if is_here(address):
        raise InvalidInputError(
            f"--address must be an address by which proxies on other machines reach this one, which {address} is not",
            field="address",
        )
    user = host.user or ("root" if environment.get("ROLLWAY_REPLICA_USER") else "rollway")
    own = {"ROLLWAY_HOST": member.host, "ROLLWAY_HOST_ADDRESS": address, "ROLLWAY_HOST_LABELS": host.labels}
    if member.started_by == "supervisor":
        own["ROLLWAY_HOME"] = str(member.home)
    elif user != "root":
        environment = {name: value for name, value in environment.items() if name != "ROLLWAY_REPLICA_USER"}
    variables = {name: value for name, value in {**environment, **own}.items() if value}
    return write_for(replace(member, user=user), variables, settings.files, address)


def _checked_name(name: str) -> str:
    try:
        return host_name(name)
    except ValueError as error:
        raise InvalidInputError(f"--name {error}", field="name") from None


def _refuse_wrong(host: NewHost) -> None:
    try:
        labels_in(host.labels)
    except ValueError:
        right = "labels, each once, separated by commas, as in zone=a,disk=ssd"
        raise InvalidInputError(f"--labels must be {right}, not {host.labels!r}", field="labels") from None
    if host.user is not None and not host.user.replace("-", "").replace("_", "").isalnum():
        raise InvalidInputError(f"--user must be the name of an account, which {host.user!r} is not", field="user")


def _sayer(*, as_json: bool) -> Say:
    from cli.commands.machine.stack import sayer  # noqa: PLC0415  (loads the supervisor)

    return sayer(printer(quiet=as_json))
