"""The commands, as `rollway --help` lists them without importing any."""

from collections.abc import Mapping

from cli.listed.deployments import DEPLOYMENTS
from cli.listed.fleet import FLEET
from cli.listed.listed import Listed
from cli.listed.machine import MACHINE

COMMANDS: Mapping[str, Listed] = {**MACHINE, **DEPLOYMENTS, **FLEET}
