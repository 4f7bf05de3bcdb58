"""A command that has no wording of its own at the terminal is what its class says."""

import pytest
import typer
from typer.testing import CliRunner

from cli.commands.deployments.change import VERBS
from cli.subcommands import subcommand, verb_of


def said_of(name: str) -> str:
    app = typer.Typer(rich_markup_mode=None)
    app.command(name)(subcommand(verb_of(name)))
    return CliRunner().invoke(app, ["--help"], catch_exceptions=False).output


@pytest.mark.parametrize("name", VERBS)
def test_the_class_says_the_help_and_which_command_is_sent(name: str) -> None:
    verb = verb_of(name)
    assert verb.command is VERBS[name].command
    assert {option.name for option in verb.options} == {option.name for option in VERBS[name].options}
    assert str(verb.command.__doc__).split(":", maxsplit=1)[0][:40] in said_of(name)


def test_needed_fields_are_arguments_and_others_are_options() -> None:
    assert "DESIRED_REPLICAS" in said_of("scale")
    assert "--full" in said_of("promote")
    assert "--revision" in said_of("undo")
    assert all(option in said_of("activate") for option in ("REVISION", "--supersede", "--through-freeze"))


def test_it_says_what_was_asked_and_whether_it_was_so_already() -> None:
    sentence = verb_of("pause").sentence
    assert sentence({"deployment": "web", "already": False}) == "web: pause"
    assert sentence({"deployment": "web", "already": True}) == "web: pause already"
