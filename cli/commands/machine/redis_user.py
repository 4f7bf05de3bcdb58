"""`rollway redis-user`: a user of the embedded Redis for a service that sends commands."""

import os
from typing import Annotated

import typer

from cli.options import AsJson
from cli.terminal.output import print_json, printer
from stack.home.folder import find_home
from stack.parts.redis_user import add_user, remove_user
from stack.supervisor.supervise import one_at_a_time


def redis_user(
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the service.", show_default=False)],
    remove: Annotated[bool, typer.Option("--remove", help="End the user, and its connections at once.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print the REDIS_URL of a service that sends commands, with a password of its own.

    With it Celery sends every command and reads the answers, and nothing else: no other key, no other queue, no message
    of somebody else. The same name gets the same URL again. 'rollway up --redis-port 6379' opens the port in it.
    """
    home = find_home(os.environ)
    with one_at_a_time(home, lambda: None):
        if remove:
            remove_user(home, name)
            return print_json({"name": name, "removed": True}) if as_json else printer().print(f"{name} is removed.")
        url = add_user(home, name)
    return print_json({"name": name, "url": url}) if as_json else typer.echo(url)
