"""`rollway hosts` and `forget-host`: where replicas run."""

from rich.text import Text

from cli.options import AsJson
from cli.sending import Asker
from cli.servers import Reader
from cli.subcommands import sends
from cli.terminal.output import ago, columns, in_seconds, print_json, printer, roughly
from db.views.fleet.signs import HostView
from domain.commands.replicas import ForgetHost
from domain.replicas.clocks import is_warned_of


def hosts(*, as_json: AsJson = False) -> None:
    """Show the hosts that workers run on, and their replicas.

    A host is up while a worker on it gives signs of life. The replicas of one that is down are replaced elsewhere.
    One that is deaf reaches PostgreSQL and not Redis: what it runs goes on, and it gets no new replicas.
    CLOCK: by how much its clock differs from PostgreSQL's. A host that is off by more than a minute gets no new
    replicas while another is not. CONTRACT: what its worker reads and writes; an upgrade of Rollway may count it up.
    """
    with Reader() as reader:
        found = reader.views(HostView, "/v1/hosts")
    if as_json:
        return print_json(found)
    if not found:
        return printer().print("No host is known yet: does a worker run? 'rollway up' starts some.")
    shown = columns("HOST", "ADDRESS", "STATE", "SEEN", "CLOCK", "CONTRACT", "REPLICAS")
    for host in found:
        counts = ", ".join(f"{count} {status}" for status, count in sorted(host.replicas.items())) or "none"
        seen = ago(host.last_seen_at, host.now)
        shown.add_row(host.name, host.address, _state(host), seen, _clock(host), str(host.contract), counts)
    return printer().print(shown, soft_wrap=False)


@sends(ForgetHost)
def forget_host(asker: Asker, host: str) -> None:
    """Forget a host that is down and never comes back. Its replicas count as stopped."""
    asker.say(f"{host} is forgotten", asker.send(ForgetHost, host=host))


def _state(host: HostView) -> Text:
    since = host.down_since or host.deaf_since
    if since is None:
        return Text("up", "green")
    return Text(f"{host.state} for {roughly(host.now - since)}", "red")


def _clock(host: HostView) -> Text:
    offset = host.clock_offset_seconds
    if not is_warned_of(offset):
        return Text("right", "green")
    return Text(f"{in_seconds(abs(offset))} {'ahead' if offset > 0 else 'behind'}", "yellow")
