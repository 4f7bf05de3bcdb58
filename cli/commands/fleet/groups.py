"""`rollway group`, `ungroup` and `groups`: deployments that share a budget of rollouts."""

from dataclasses import asdict

from cli.options import AsJson
from cli.sending import Asker
from cli.servers import Reader
from cli.subcommands import sends
from cli.terminal.output import columns, print_json, printer
from db.views.fleet.windows import GroupView
from domain.commands.fleet import DeleteGroup, SetGroup


@sends(SetGroup, most_at_once="--at-most")
def group(asker: Asker, **said: object) -> None:
    """Let deployments share a budget of rollouts. Replaces the group of that name.

    A rollout that finds no place begins and waits, its clocks standing still; who asked first goes first, or with
    --in-order who stands first. An undo and the way back wait for nobody.
    """
    result = asker.send(SetGroup, **said)
    budget = f"at most {result['most_at_once']} at once" if result["most_at_once"] else "any number at once"
    order = ", in this order" if result["in_order"] else ""
    asker.say(f"{result['group']}: {', '.join(result['deployments'])} roll out {budget}{order}", result)


@sends(DeleteGroup)
def ungroup(asker: Asker, group: str) -> None:
    """End a group. Its deployments stay, and wait for each other no more."""
    asker.say(f"{group} is a group no more", asker.send(DeleteGroup, group=group))


def groups(*, as_json: AsJson = False) -> None:
    """Show the groups, who rolls out and who waits."""
    with Reader() as reader:
        found = reader.views(GroupView, "/v1/groups")
    if as_json:
        return print_json([asdict(view) for view in found])
    if not found:
        return printer().print("There are no groups; 'rollway group --help' says how to make one.")
    table = columns("NAME", "AT MOST", "UNDER WAY", "WAITING", "DEPLOYMENTS")
    for view in found:
        table.add_row(
            view.name, str(view.most_at_once or "-"), *map(_listed, (view.under_way, view.waiting)), _members(view)
        )
    return printer().print(table)


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "-"


def _members(view: GroupView) -> str:
    return (" → " if view.in_order else ", ").join(view.deployments)
