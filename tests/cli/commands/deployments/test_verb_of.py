"""A verb at the terminal is what the class of its command says: help, arguments, options and example."""

import shlex
from typing import Any

import pytest
import typer

from api.people.doors import DOORS
from cli.catalog import COMMANDS
from cli.commands.deployments.change_commands import VERBS
from cli.subcommands import example_of, subcommand, verb_of
from domain.commands.fields import fields_of


def made(name: str) -> Any:
    app = typer.Typer(rich_markup_mode=None)
    app.command(name)(subcommand(VERBS[name]))
    return typer.main.get_command(app)


def said_of(name: str) -> str:
    return str(made(name).get_help(made(name).make_context(name, [], resilient_parsing=True)))


@pytest.mark.parametrize("name", VERBS)
def test_the_class_says_the_help_the_list_has_its_beginning_and_each_field_stands_there(name: str) -> None:
    command = VERBS[name].command
    assert command is verb_of(name).command
    assert str(command.__doc__).startswith(COMMANDS[name].line)
    said = " ".join(said_of(name).split())
    for field in fields_of(command):
        assert field.meaning in said
        assert VERBS[name].called.get(field.name, field.name.replace("_", "-")) in said.lower().replace("_", "-")


@pytest.mark.parametrize("name", VERBS)
def test_the_example_is_read_as_the_command_that_it_is_of(name: str) -> None:
    for line in example_of(VERBS[name]).splitlines():
        given = made(name).make_context(name, shlex.split(line)[2:]).params
        fields = {field.name: given[field.name] for field in fields_of(VERBS[name].command)}
        payload = {"deployment": given["deployment"] or "web", "request_id": "r", "reason": given["reason"], **fields}
        assert DOORS[type(VERBS[name].command.model_validate(payload))].verb == name


def test_needed_fields_are_arguments_and_others_are_options_with_their_bounds() -> None:
    assert "DESIRED_REPLICAS" in said_of("scale")
    assert "0<=x<=10000" in said_of("scale")
    assert "--full" in said_of("promote")
    assert "--to REVISION" in said_of("undo")
    assert all(
        option in said_of("activate") for option in ("REVISION", "--replicas", "--supersede", "--through-freeze")
    )


def test_it_says_what_was_asked_and_whether_it_was_so_already() -> None:
    sentence = verb_of("pause").sentence
    assert sentence({"deployment": "web", "already": False}) == "web: pause"
    assert sentence({"deployment": "web", "already": True}) == "web: pause already"
