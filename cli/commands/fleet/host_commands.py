"""`rollway hosts` with `join` and `leave`, `drain-host`, `undrain-host` and `forget-host`: where replicas run."""

import typer
from rich.text import Text

from cli.client import Reader
from cli.commands.machine.joining import join, leave
from cli.options import AsJson
from cli.sending import Asker
from cli.subcommands import sends
from cli.terminal.exits import READING, WRITING, ExitCode, exits
from cli.terminal.output import ago, columns, in_seconds, print_json, printer, roughly
from db.views.fleet_views import HostView
from db.views.unplaced import UnplacedView
from domain.commands.base import Command
from domain.commands.deeds import deed
from domain.commands.replica_commands import DrainHost, ForgetHost, UndrainHost
from domain.devices.others import others_in_words
from domain.revisions.host_labels import in_words
from domain.text.numbers import number_of

_hosts = typer.Typer(
    epilog=exits(*READING, example="rollway hosts\nrollway hosts --json\nrollway hosts join\nrollway hosts leave"),
    invoke_without_command=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
_hosts.command(
    epilog=exits(
        *WRITING,
        ExitCode.TIMED_OUT,
        example="rollway hosts join --url https://rollway.example.com\n"
        "rollway hosts join 'https://rollway.example.com#SECRET' --labels zone=a",
    )
)(join)
_hosts.command(
    epilog=exits(*WRITING, ExitCode.TIMED_OUT, example="rollway hosts leave\nrollway hosts leave --timeout 3600")
)(leave)
GROUPS = {"hosts": _hosts}


@_hosts.callback()
def hosts(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Show the hosts that workers run on, and their replicas; 'join' adds one, and 'leave' removes this machine.

    A host is up while one of its workers sends heartbeats. Replicas of a host that is down are replaced on other hosts.
    A silent host is not down yet, or no worker is left to notice; other hosts get the new replicas. A deaf host reaches
    PostgreSQL and not Redis: its replicas continue, and it gets no new ones. Replicas of a drained host are replaced on
    other hosts. The lines below the table name the replicas that stay there, and those that no host takes, with the
    reason. LABELS: revisions may require them of their hosts. DEVICES: the part of the host's devices that replicas
    hold; --json names each holder. CLOCK: the difference from PostgreSQL's clock. A host whose clock is off by more
    than a minute gets no new replicas while the clock of another host is right. CONTRACT: the protocol of its workers;
    an upgrade of Rollway may raise it.
    """
    if context.invoked_subcommand is None:
        _show(as_json=as_json)


def _show(*, as_json: bool) -> None:
    with Reader() as reader:
        views = reader.views(HostView, "/v1/hosts")
        waiting = [] if as_json else reader.views(UnplacedView, "/v1/unplaced")
    if as_json:
        return print_json(views)
    if not views:
        return printer().print("No host is known yet: does a worker run? 'rollway up' starts some.")
    remaining: list[str] = []
    table = columns("HOST", "ADDRESS", "LABELS", "DEVICES", "STATE", "SEEN", "CLOCK", "CONTRACT", "REPLICAS")
    for host in views:
        counts = ", ".join(f"{count} {status}" for status, count in sorted(host.replicas.items())) or "none"
        age = ago(host.last_seen_at, host.now)
        table.add_row(
            host.name,
            host.address,
            in_words(host.labels) or "-",
            devices_in_words(host) or "-",
            _state(host),
            age,
            _clock(host),
            str(host.contract),
            counts,
        )
        remaining += [
            f"{words}: nothing is started there." for words in others_in_words(host.name, host.memory_of_others)
        ]
        remaining += [
            f"{deployment} is on {host.name} until {until or 'its replicas are up elsewhere'}."
            for deployment, until in sorted(host.stays.items())
        ]
    remaining += [
        f"{each.deployment}: {number_of(each.replicas, 'replica')} without a host: {each.why}." for each in waiting
    ]
    printer().print(table, soft_wrap=False)
    return printer().print("\n".join(remaining)) if remaining else None


@sends(DrainHost)
def drain_host(asker: Asker, host: str) -> None:
    """Drain a host: its replicas are replaced on other hosts, as their policies have it, and it gets no new ones.

    A replica serves until the one that replaces it is healthy. A replica that no other host takes stays, and 'rollway
    hosts' names it. When 'rollway hosts' shows no replica there, you can switch the machine off; 'undrain-host' puts
    the host back in service.
    """
    _tell(asker, DrainHost, host)


@sends(UndrainHost)
def undrain_host(asker: Asker, host: str) -> None:
    """Put a drained host back in service. Replicas that have moved stay where they are."""
    _tell(asker, UndrainHost, host)


@sends(ForgetHost)
def forget_host(asker: Asker, host: str) -> None:
    """Forget a host that is down and will not come back. Its replicas count as stopped."""
    _tell(asker, ForgetHost, host)


def _tell(asker: Asker, command: type[Command], host: str) -> None:
    result = asker.send(command, host=host)
    asker.say(deed(command, result), result)


def devices_in_words(host: HostView) -> str:
    """E.g. "gpu 3 of 4, memory_gb 120 of 240"."""
    amounts: dict[str, float] = {}
    for each in host.held:
        amounts[each.kind] = amounts.get(each.kind, 0) + each.amount
    return ", ".join(
        f"{kind} {amounts.get(kind, 0):g} of {sum(devices.values()):g}"
        for kind, devices in sorted(host.resources.items())
    )


def _state(host: HostView) -> Text:
    since = host.down_since or host.deaf_since
    if since is not None:
        state = Text(f"{host.state} for {roughly(host.now - since)}", "red")
    else:
        state = Text(host.state, "green" if host.state == "up" else "yellow")
    if host.drained_at is None:
        return state
    return state.append(f", drained by {host.drained_by} {ago(host.drained_at, host.now)}", "yellow")


def _clock(host: HostView) -> Text:
    offset = host.clock_offset_seconds
    if not host.is_clock_off:
        return Text("right", "green")
    return Text(f"{in_seconds(abs(offset))} {'ahead' if offset > 0 else 'behind'}", "yellow")
