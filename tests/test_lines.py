"""The program takes what stands in the blocks of pages as it stands: command lines, and parts of files."""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.apply import read_file
from domain.commands.deployment_commands import SetAutoscalingRules
from tests.test_pages import PAGES, ROOT, rollway

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?<=\n\n)((?: {4}.*\n)+)")
_LINE = re.compile(r"^(?:\$ )?(?:[\w/.]*bin/)?rollway ([a-z][a-z-]*(?: .*)?)$", re.MULTILINE)
_ENDS = ("|", "||", "&&", ">", ";")
_NUMBERS = {"N": "3", "SECONDS": "3"}
NOT_OURS = {"specversion", "content-type", "action", "providers", "scrape_configs", "global"}
"""What files and messages of others begin with."""


@cache
def blocks() -> list[tuple[str, str, str]]:
    """Page, language and text of each block; those that are indented have none."""
    found = []
    for page in PAGES:
        name, text = str(page.relative_to(ROOT)), page.read_text(encoding="utf-8")
        found += [(name, language, block) for language, block in _FENCE.findall(text)]
        indented = _INDENTED.findall(_FENCE.sub("", text))
        found += [(name, "", re.sub(r"^ {4}", "", block, flags=re.MULTILINE)) for block in indented]
    return found


def lines() -> list[str]:
    return sorted({line for _, _, block in blocks() for line in _LINE.findall(block)})


@pytest.mark.parametrize("line", lines())
def test_a_command_line_is_understood(line: str) -> None:
    words = shlex.split(line, comments=True)
    words = words[: next((place for place, word in enumerate(words) if word in _ENDS), None)]
    command = rollway()
    while hasattr(command, "commands") and words[:1] != ["--help"]:
        if command.invoke_without_command and not any(word in command.commands for word in words[:1]):
            break
        name, *words = words
        command = command.commands[name]
    if "--help" not in words:
        command.make_context(line, [_NUMBERS.get(word, word) for word in words])


def parts() -> Iterator[tuple[str, Any]]:
    for page, language, block in blocks():
        if language not in ("yaml", ""):
            continue
        try:
            found = list(yaml.safe_load_all(block))
        except yaml.YAMLError:
            assert language == "", block
            continue
        for part in found:
            is_prose = isinstance(part, str) or (isinstance(part, dict) and any(" " in str(name) for name in part))
            if part is not None and not is_prose:
                yield page, part


def whole(part: dict[str, Any]) -> dict[str, Any]:
    """The smallest file of which it is a part."""
    match next(iter(part)):
        case "judge":
            return whole({"spec": {"steps": ["5%"], **part}})
        case "spec":
            return whole({"policy": {"strategy": "canary", **part}})
        case "env":
            return whole({"revision": part})
    revision = part.get("revision")
    if revision and "runtime" not in revision:
        part = {**part, "revision": {"command": "serve", **revision}}
    return {"deployment": "web", **part}


@pytest.mark.parametrize(("page", "part"), list(parts()))
def test_a_part_of_a_file_is_accepted(page: str, part: Any, tmp_path: Path) -> None:
    if isinstance(part, list):
        SetAutoscalingRules(request_id="r", actor="ann", deployment="web", rules=part)
    elif NOT_OURS.isdisjoint(part):
        file = tmp_path / "web.yaml"
        file.write_text(yaml.safe_dump(whole(part)), encoding="utf-8")
        (read,) = read_file(str(file))
        assert read.deployment, page
        assert read.parsed_policy or not part.get("policy"), page
