"""The commands, as `rollway --help` lists them without importing any."""

from collections.abc import Mapping

from cli.listed.deployments import RELEASE, STEER, WATCH
from cli.listed.fleet import FLEET, UPKEEP
from cli.listed.listed import Listed
from cli.listed.machine import MACHINE

GROUPS: Mapping[str, Mapping[str, Listed]] = {
    "On this machine": MACHINE,
    "Release": RELEASE,
    "Steer": STEER,
    "Look and ask": WATCH,
    "The fleet": FLEET,
    "Proxies, tokens, upkeep": UPKEEP,
}
"""By the heading in the list."""

COMMANDS: Mapping[str, Listed] = {name: listed for group in GROUPS.values() for name, listed in group.items()}
