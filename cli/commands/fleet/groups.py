"""`rollway group`, `ungroup` and `groups`: deployments that share a budget of rollouts."""

from dataclasses import asdict
from typing import Annotated

import typer

from cli.completing import deployments_offered
from cli.options import AsJson
from cli.sending import Asker, asking
from cli.servers import Reader
from cli.terminal.output import columns, print_json, printer
from db.views.fleet.windows import GroupView
from domain.commands.fleet import DeleteGroup, SetGroup

_Group = Annotated[str, typer.Argument(metavar="NAME", help="Name of the group.", show_default=False)]
_Members = Annotated[
    list[str],
    typer.Argument(
        metavar="DEPLOYMENT...",
        help="Those in it, in their order.",
        show_default=False,
        autocompletion=deployments_offered,
    ),
]
_Most = Annotated[
    int | None, typer.Option("--at-most", metavar="N", min=1, help="Rollouts at once.", show_default="any number")
]
_InOrder = Annotated[bool, typer.Option("--in-order", help="Each waits until those before it roll out no more.")]


@asking
def group(
    *,
    name: _Group,
    deployments: _Members,
    at_most: _Most = None,
    in_order: _InOrder = False,
    asker: Asker,
) -> None:
    """Let deployments share a budget of rollouts. Replaces the group of that name.

    A rollout that finds no place begins and waits, its clocks standing still; who asked first goes first, or with
    --in-order who stands first. An undo and the way back wait for nobody.
    """
    given = {"group": name, "deployments": deployments, "most_at_once": at_most, "in_order": in_order}
    result = asker.send(SetGroup, **given)
    budget = f"at most {at_most} at once" if at_most else "any number at once"
    order = ", in this order" if in_order else ""
    asker.say(f"{name}: {', '.join(deployments)} roll out {budget}{order}", result)


@asking
def ungroup(*, name: _Group, asker: Asker) -> None:
    """End a group. Its deployments stay, and wait for each other no more."""
    asker.say(f"{name} is a group no more", asker.send(DeleteGroup, group=name))


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
