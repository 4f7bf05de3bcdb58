"""The table of doors: a row for each command, and what its button says."""

from api.people.doors import BUTTONS, DOORS, button_of
from domain.commands.base import DeploymentCommand
from domain.commands.registry import COMMANDS

IN_ORDER = """
    resume promote pause abort activate undo rolling-update retry
    scale restart maintenance
    policy traffic autoscaling
    destroy
"""


def test_each_command_has_a_row_and_each_path_names_the_deployment_that_it_is_about() -> None:
    assert DOORS.keys() == set(COMMANDS.values())
    for command, door in DOORS.items():
        assert not issubclass(command, DeploymentCommand) or "{deployment}" in door.path


def test_buttons_that_lead_out_of_waiting_come_first() -> None:
    of_one = [verb for verb, command in BUTTONS.items() if issubclass(command, DeploymentCommand)]
    assert of_one == IN_ORDER.split()
    groups = [
        [verb for verb in of_one if button_of(verb).group == group]
        for group in ("Release", "Run", "Settings", "Danger")
    ]
    assert groups == [line.split() for line in IN_ORDER.strip().splitlines()]


def test_each_button_says_what_it_does() -> None:
    for button in map(button_of, BUTTONS):
        assert button.label
        assert button.what.endswith(".")
        assert button.label.endswith(" …"), "each opens a dialog"
        about = issubclass(BUTTONS[button.verb], DeploymentCommand)
        assert not about or "{name}" in button.does or "{revision}" in button.does, "what confirms it has its object"
        assert all(field.meaning for field in button.fields), button
        command = BUTTONS[button.verb]
        assert set(command.example) >= {
            field.name for field in button.fields if field.is_needed and f"{{{field.name}}}" not in DOORS[command].path
        }
